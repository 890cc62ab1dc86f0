/* service/serve_view.c - views (REST specification, "Catalog API"): list, create, register, load,
 * replace, drop, rename. */
#include "service/homes.h"
#include "service/service_int.h"

#define MAX_TRIES 10 /* of a change that others came before */

tarn_code rest_list_views(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_properties unused;
    tarn_ident *items;
    int32_t n;
    tarn_code code = TARN_OK;
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &unused, err));
    TRY(catalog_list_views(r->service->catalog, &r->arena, &r->ns, &items, &n, err));
    TRY(rest_put_page(r, reply, "identifiers", items, n, err));
done:
    return code;
}

static tarn_code put_view(service_reply *reply, const catalog_view *view, tarn_error *err) {
    json_writer w;
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, reply->body.env, 0);
    TRY(view_write(view->metadata, &text, err));
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_member_str(&w, "metadata-location", view->metadata_location);
    json_put_name(&w, STR("metadata"));
    json_put_raw(&w, buf_str(&text));
    json_put_name(&w, STR("config"));
    json_put_object(&w);
    json_end_object(&w);
    json_end_object(&w);
    TRY(json_end(&w));
    reply->status = 200;
done:
    buf_release(&text);
    return code;
}

/* A new view as changes: what was sent, under a uuid of its own. */
static tarn_code read_create(service_request *r, const json_value *body, view_change_set *out,
                             tarn_error *err) {
    enum { N_CHANGES = 6 };
    const json_value *schema_json = json_get(body, "schema");
    const json_value *version_json = json_get(body, "view-version");
    view_version *version = ARENA_NEW(&r->arena, view_version);
    view_change *c = ARENA_ARRAY(&r->arena, view_change, N_CHANGES);
    char *uuid = arena_alloc(&r->arena, 37);
    const tarn_schema *schema;
    tarn_properties properties;
    tarn_str location;
    tarn_code code = TARN_OK;
    if (version == NULL || c == NULL || uuid == NULL) {
        return err_nomem(err);
    }
    if (!json_is(schema_json, JSON_OBJECT) || !json_is(version_json, JSON_OBJECT)) {
        TRY(err_set(err, TARN_INVALID, "member \"%s\" is missing or no object",
                    json_is(schema_json, JSON_OBJECT) ? "view-version" : "schema"));
    }
    TRY(schema_from_json(&r->arena, schema_json, &schema, err));
    TRY(view_version_from_json(&r->arena, version_json, version, err));
    TRY(request_member_properties(r, body, "properties", &properties, err));
    TRY(homes_allow_properties(r, &r->table, &properties, err));
    TRY(request_member_str(body, "location", false, &location, err));
    if (location.len > 0) {
        TRY(homes_allow(r, &r->table, location, err));
    } else {
        TRY(catalog_default_location(r->service->catalog, &r->arena, &r->table, &location, err));
    }
    env_uuid_v4(r->service->env, uuid);
    version->schema_id = VIEW_LAST_ADDED;
    c[0] = (view_change){.kind = VIEW_ASSIGN_UUID, .text = str_of(uuid)};
    c[1] = (view_change){.kind = VIEW_SET_LOCATION, .text = location};
    c[2] = (view_change){.kind = VIEW_SET_PROPERTIES, .properties = properties};
    c[3] = (view_change){.kind = VIEW_ADD_SCHEMA, .schema = schema};
    c[4] = (view_change){.kind = VIEW_ADD_VERSION, .version = version};
    c[5] = (view_change){.kind = VIEW_SET_CURRENT_VERSION, .number = VIEW_LAST_ADDED};
    *out = (view_change_set){.n_changes = N_CHANGES, .changes = c};
done:
    return rest_as_invalid(code, err);
}

/* A change that is well-formed and does not hold: clients of Iceberg know it by this name. */
static tarn_code refuse_invalid(service_request *r, service_reply *reply, tarn_code code,
                                tarn_error *err) {
    if (code != TARN_INVALID) {
        return code;
    }
    reply_refuse(r, reply, 400, "IllegalArgumentException", err->message);
    err_reset(err);
    return TARN_OK;
}

tarn_code rest_create_view(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_ident view = r->ns;
    view_change_set set;
    catalog_view *made = NULL;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "name", true, &view.name, err));
    r->table = view;
    TRY(read_create(r, body, &set, err));
    code = catalog_commit_view(r->service->catalog, &view, NULL, &set, &made, err);
    if (code == TARN_OK) {
        code = put_view(reply, made, err);
    } else {
        code = refuse_invalid(r, reply, code, err);
    }
done:
    catalog_view_release(made);
    return code;
}

tarn_code rest_register_view(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_ident view = r->ns;
    tarn_properties unused;
    tarn_str location;
    catalog_view *made = NULL;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "name", true, &view.name, err));
    r->table = view;
    TRY(request_member_str(body, "metadata-location", true, &location, err));
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &unused, err));
    TRY(homes_allow_register_view(r, &view, location, err));
    TRY(rest_as_named(catalog_register_view(r->service->catalog, &view, location, err), err));
    TRY(catalog_load_view(r->service->catalog, &view, &made, err));
    TRY(put_view(reply, made, err));
done:
    catalog_view_release(made);
    return code;
}

tarn_code rest_load_view(service_request *r, service_reply *reply, tarn_error *err) {
    catalog_view *view = NULL;
    tarn_code code = TARN_OK;
    TRY(catalog_load_view(r->service->catalog, &r->table, &view, err));
    TRY(put_view(reply, view, err));
done:
    catalog_view_release(view);
    return code;
}

tarn_code rest_has_view(service_request *r, service_reply *reply, tarn_error *err) {
    catalog_view *view = NULL;
    tarn_code code = catalog_load_view(r->service->catalog, &r->table, &view, err);
    catalog_view_release(view);
    reply->status = 204;
    return code;
}

/* On what the view is now; again when another change came between. */
tarn_code rest_commit_view(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_catalog *catalog = r->service->catalog;
    const json_value *body;
    view_change_set set;
    catalog_view *base = NULL;
    catalog_view *made = NULL;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_same_ident(r, body, err));
    TRY(rest_as_invalid(view_changes_from_json(&r->arena, body, &set, err), err));
    TRY(homes_allow_view(r, &r->table, &set, err));
    for (int i = 0; i < MAX_TRIES; i++) {
        catalog_view_release(base);
        base = NULL;
        err_reset(err);
        TRY(catalog_load_view(catalog, &r->table, &base, err));
        code = catalog_commit_view(catalog, &r->table, base, &set, &made, err);
        if (code != TARN_CONFLICT) {
            break;
        }
    }
    if (code == TARN_OK) {
        code = put_view(reply, made, err);
    } else {
        code = refuse_invalid(r, reply, code, err);
    }
done:
    catalog_view_release(made);
    catalog_view_release(base);
    return code;
}

tarn_code rest_drop_view(service_request *r, service_reply *reply, tarn_error *err) {
    reply->status = 204;
    return catalog_drop_view(r->service->catalog, &r->table, err);
}

tarn_code rest_rename_view(service_request *r, service_reply *reply, tarn_error *err) {
    return rest_rename(r, reply, catalog_rename_view, err);
}
