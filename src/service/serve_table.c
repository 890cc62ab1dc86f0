/* service/serve_table.c - tables (REST specification, "Catalog API"): list, create, register, load,
 * drop, rename. */
#include <stdio.h>

#include "dml/purge.h"
#include "iceberg/location.h"
#include "service/homes.h"
#include "service/service_int.h"

tarn_code rest_list_tables(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_properties unused;
    tarn_ident *items;
    int32_t n;
    tarn_code code = TARN_OK;
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &unused, err));
    TRY(catalog_list_tables(r->service->catalog, &r->arena, &r->ns, &items, &n, err));
    TRY(rest_put_page(r, reply, "identifiers", items, n, err));
done:
    return code;
}

tarn_code rest_put_table(service_reply *reply, const tarn_metadata *m, tarn_str location,
                         bool config, tarn_error *err) {
    json_writer w;
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, reply->body.env, 0);
    TRY(metadata_write(m, &text, err));
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    if (location.len > 0) {
        json_member_str(&w, "metadata-location", location);
    }
    json_put_name(&w, STR("metadata"));
    json_put_raw(&w, buf_str(&text));
    if (config) {
        json_put_name(&w, STR("config"));
        json_put_object(&w);
        json_end_object(&w);
    }
    json_end_object(&w);
    TRY(json_end(&w));
    reply->status = 200;
done:
    buf_release(&text);
    return code;
}

/* A version's own tag: the document's place, and what of it was asked for. */
static char *make_etag(service_request *r, const tarn_table_version *version,
                       const char *snapshots) {
    return arena_printf(&r->arena, "\"%016llx-%s\"",
                        (unsigned long long)(str_hash(version->metadata_location) ^
                                             str_hash(version->metadata->table_uuid)),
                        snapshots);
}

static tarn_code put_etag(service_request *r, service_reply *reply,
                          const tarn_table_version *version, const char *snapshots,
                          tarn_error *err) {
    char *tag = make_etag(r, version, snapshots);
    return tag != NULL ? reply_header(r, reply, "ETag", tag, err) : err_nomem(err);
}

static tarn_code read_create(service_request *r, const json_value *body, metadata_new_options *out,
                             tarn_error *err) {
    const tarn_schema *schema;
    tarn_code code = TARN_OK;
    tarn_str version = STR_NULL;
    memset(out, 0, sizeof *out);
    const json_value *json = json_get(body, "schema");
    if (!json_is(json, JSON_OBJECT)) {
        TRY(err_set(err, TARN_INVALID, "member \"schema\" is missing or no object"));
    }
    TRY(schema_from_json(&r->arena, json, &schema, err));
    out->root = schema->root;
    out->identifier_ids = schema->identifier_ids;
    out->n_identifier_ids = schema->n_identifier_ids;
    json = json_get(body, "partition-spec");
    if (json_is(json, JSON_OBJECT)) {
        tarn_spec *spec = ARENA_NEW(&r->arena, tarn_spec);
        code = spec != NULL ? spec_from_json(&r->arena, json, spec, err) : err_nomem(err);
        TRY(code);
        out->spec = spec;
    }
    json = json_get(body, "write-order");
    if (json_is(json, JSON_OBJECT)) {
        tarn_sort_order *order = ARENA_NEW(&r->arena, tarn_sort_order);
        code = order != NULL ? sort_order_from_json(&r->arena, json, order, err) : err_nomem(err);
        TRY(code);
        out->order = order;
    }
    TRY(request_member_str(body, "location", false, &out->location, err));
    TRY(request_member_properties(r, body, "properties", &out->properties, err));
    if (properties_get(&out->properties, "format-version", &version) &&
        !str_to_i32(version, &out->format_version)) {
        code = err_set(err, TARN_INVALID, "property format-version is \"%.*s\", not a number",
                       STR_ARG(version));
    }
done:
    return code == TARN_CORRUPT ? err_add(err, err->code = TARN_INVALID, "the request") : code;
}

/* format-version is no property of a table but its version. */
static void drop_version(tarn_properties *p, tarn_property *items) {
    int32_t n = 0;
    for (int32_t i = 0; i < p->count; i++) {
        if (!str_is(p->items[i].key, "format-version")) {
            items[n++] = p->items[i];
        }
    }
    p->items = items;
    p->count = n;
}

static tarn_code check_free(service_request *r, const tarn_ident *table, tarn_error *err) {
    tarn_catalog *catalog = r->service->catalog;
    tarn_table_version *there = NULL;
    catalog_view *view = NULL;
    tarn_code code = catalog_load(catalog, table, &there, err);
    table_version_release(there);
    if (code == TARN_NOT_FOUND && catalog_has_views(catalog)) {
        code = catalog_load_view(catalog, table, &view, err);
        catalog_view_release(view);
    }
    if (code == TARN_OK) {
        return err_set(err, TARN_CONFLICT, "%.*s exists", STR_ARG(table->name));
    }
    if (code == TARN_NOT_FOUND) {
        err_reset(err);
        code = TARN_OK;
    }
    return code;
}

/* Some clients write their first manifests into a folder that they take to be there, as it is when
 * a table was created at once. A file that is begun and given up makes it, where folders are a
 * thing.
 */
static tarn_code make_metadata_folder(service_request *r, const tarn_metadata *m, tarn_error *err) {
    tarn_store *store = r->service->catalog->store;
    tarn_str path;
    io_sink *sink = NULL;
    tarn_code code = location_metadata_file(&r->arena, m, STR("staged"), &path, err);
    if (code == TARN_OK) {
        code = store_create(store, path, STORE_CREATE, &sink, err);
    }
    if (code == TARN_OK) {
        sink->abort(sink);
    }
    return code;
}

static tarn_code stage_table(service_request *r, service_reply *reply, const tarn_ident *table,
                             metadata_new_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m;
    tarn_properties unused;
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &unused, err));
    TRY(check_free(r, table, err));
    if (options->location.len == 0) {
        TRY(catalog_default_location(r->service->catalog, &r->arena, table, &options->location,
                                     err));
    }
    TRY(metadata_new(&r->arena, options, &m, err));
    TRY(make_metadata_folder(r, m, err));
    TRY(rest_put_table(reply, m, STR_NULL, true, err));
done:
    return code;
}

tarn_code rest_create_table(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    metadata_new_options options;
    tarn_table_version *version = NULL;
    tarn_ident table = r->ns;
    tarn_code code = TARN_OK;
    bool stage = false;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "name", true, &table.name, err));
    r->table = table;
    TRY(read_create(r, body, &options, err));
    code = options.location.len > 0 ? homes_allow(r, &table, options.location, err)
                                    : homes_allow_default(r, &table, err);
    TRY(code);
    TRY(homes_allow_properties(r, &table, &options.properties, err));
    tarn_property *kept =
        ARENA_ARRAY(&r->arena, tarn_property, (size_t)options.properties.count + 1);
    if (kept == NULL) {
        return err_nomem(err);
    }
    drop_version(&options.properties, kept);
    (void)json_bool(json_get(body, "stage-create"), &stage);
    if (stage) {
        TRY(stage_table(r, reply, &table, &options, err));
        goto done;
    }
    TRY(catalog_create(r->service->catalog, &table, &options, &version, err));
    TRY(put_etag(r, reply, version, "all", err));
    TRY(rest_put_table(reply, version->metadata, version->metadata_location, true, err));
done:
    table_version_release(version);
    return code;
}

tarn_code rest_register_table(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_table_version *version = NULL;
    tarn_ident table = r->ns;
    tarn_properties unused;
    tarn_str location;
    bool overwrite = false;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "name", true, &table.name, err));
    r->table = table;
    TRY(request_member_str(body, "metadata-location", true, &location, err));
    if (json_bool(json_get(body, "overwrite"), &overwrite) && overwrite) {
        TRY(err_set(err, TARN_UNSUPPORTED, "registering over an existing table is not offered"));
    }
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &unused, err));
    TRY(homes_allow_register(r, &table, location, err));
    TRY(rest_as_named(catalog_register(r->service->catalog, &table, location, err), err));
    TRY(catalog_load(r->service->catalog, &table, &version, err));
    TRY(rest_put_table(reply, version->metadata, version->metadata_location, true, err));
done:
    table_version_release(version);
    return code;
}

/* The metadata with those snapshots only that a branch or tag names. */
static tarn_code only_refs(service_request *r, const tarn_metadata *m, const tarn_metadata **out,
                           tarn_error *err) {
    tarn_metadata *cut = ARENA_NEW(&r->arena, tarn_metadata);
    const tarn_snapshot **kept =
        ARENA_ARRAY(&r->arena, const tarn_snapshot *, (size_t)m->n_snapshots + 1);
    if (cut == NULL || kept == NULL) {
        return err_nomem(err);
    }
    *cut = *m;
    cut->snapshots = kept;
    cut->n_snapshots = 0;
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        bool named = m->snapshots[i]->snapshot_id == m->current_snapshot_id;
        for (int32_t j = 0; j < m->n_refs && !named; j++) {
            named = m->refs[j].snapshot_id == m->snapshots[i]->snapshot_id;
        }
        if (named) {
            kept[cut->n_snapshots++] = m->snapshots[i];
        }
    }
    *out = cut;
    return TARN_OK;
}

tarn_code rest_load_table(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_table_version *version = NULL;
    const char *snapshots;
    const tarn_metadata *m;
    tarn_code code = TARN_OK;
    TRY(request_query(r, "snapshots", &snapshots, err));
    if (snapshots == NULL || snapshots[0] == '\0') {
        snapshots = "all";
    }
    if (strcmp(snapshots, "all") != 0 && strcmp(snapshots, "refs") != 0) {
        TRY(err_set(err, TARN_INVALID, "snapshots is \"%s\"; it is all or refs", snapshots));
    }
    TRY(catalog_load(r->service->catalog, &r->table, &version, err));
    TRY(put_etag(r, reply, version, snapshots, err));
    const char *have = request_header(r, "If-None-Match");
    if (have != NULL && strcmp(have, reply->headers[reply->n_headers - 1].value) == 0) {
        reply->status = 304;
        goto done;
    }
    m = version->metadata;
    if (strcmp(snapshots, "refs") == 0) {
        TRY(only_refs(r, m, &m, err));
    }
    TRY(rest_put_table(reply, m, version->metadata_location, true, err));
done:
    table_version_release(version);
    return code;
}

tarn_code rest_has_table(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_code code = catalog_load(r->service->catalog, &r->table, &version, err);
    table_version_release(version);
    reply->status = 204;
    return code;
}

/* The table is gone, as was asked; what is left over is no reason to say otherwise. */
static void purge_dropped(service_request *r, const tarn_table_version *version) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = homes_check_tables(r, &r->table, version->metadata->location, &err);
    if (code == TARN_OK) {
        code = purge_table(r->service->env, r->service->catalog, version, places_are_own, &err);
    }
    if (code != TARN_OK) {
        env_log(r->service->env, TARN_LOG_WARN, "service", "purge", "table=%.*s %s",
                STR_ARG(r->table.name), err.message);
    }
}

/* A drop for one version of the table (RFC 9110, "If-Match"), which may arrive late. */
static tarn_code drop_matching(service_request *r, const char *wanted, tarn_table_version **out,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(catalog_load(r->service->catalog, &r->table, out, err));
    const char *tag = make_etag(r, *out, "all");
    if (tag == NULL) {
        return err_nomem(err);
    }
    code = strcmp(tag, wanted) == 0
               ? catalog_drop_version(r->service->catalog, &r->table, *out, err)
               : err_set(err, TARN_CONFLICT, "table %s is not what the request is for (If-Match)",
                         rest_ident_text(r, &r->table));
done:
    return code;
}

tarn_code rest_drop_table(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_catalog *catalog = r->service->catalog;
    const char *wanted = request_header(r, "If-Match");
    bool purge;
    tarn_code code = TARN_OK;
    TRY(request_query_bool(r, "purgeRequested", false, &purge, err));
    code = wanted != NULL ? drop_matching(r, wanted, &version, err)
           : purge        ? purge_drop(catalog, &r->table, &version, err)
                          : catalog_drop(catalog, &r->table, err);
    if (code == TARN_CONFLICT) {
        reply_refuse(r, reply, wanted != NULL ? 412 : 409, "CommitFailedException", err->message);
        err_reset(err);
        code = TARN_OK;
        goto done;
    }
    TRY(code);
    if (purge) {
        purge_dropped(r, version);
    }
    reply->status = 204;
done:
    table_version_release(version);
    return code;
}

/* The body of a rename. *refused: the reply says that there is no such namespace to go to. */
static tarn_code read_rename(service_request *r, service_reply *reply, tarn_ident *from,
                             tarn_ident *to, bool *refused, tarn_error *err) {
    const json_value *body;
    tarn_ident space;
    tarn_properties unused;
    tarn_code code = TARN_OK;
    *refused = false;
    TRY(request_json(r, &body, err));
    TRY(request_member_ident(r, body, "source", from, err));
    TRY(request_member_ident(r, body, "destination", to, err));
    r->table = *from;
    TRY(request_allow(r, from, AUTH_WRITE, err));
    TRY(request_allow(r, to, AUTH_WRITE, err));
    space = *to;
    space.name = STR_NULL;
    code = catalog_load_namespace(r->service->catalog, &r->arena, &space, &unused, err);
    if (code == TARN_NOT_FOUND) {
        char text[512];
        err_reset(err);
        code = TARN_OK;
        snprintf(text, sizeof text, "Namespace does not exist: %s", rest_ident_text(r, &space));
        reply_refuse(r, reply, 404, "NoSuchNamespaceException", text);
        *refused = true;
    }
done:
    return code;
}

/* The new name is taken. */
static void refuse_rename(service_request *r, service_reply *reply, const tarn_ident *from,
                          const tarn_ident *to) {
    char text[1024];
    catalog_view *view = NULL;
    bool is_view = catalog_load_view(r->service->catalog, to, &view, NULL) == TARN_OK;
    catalog_view_release(view);
    snprintf(text, sizeof text, "Cannot rename %s to %s. %s already exists",
             rest_ident_text(r, from), rest_ident_text(r, to), is_view ? "View" : "Table");
    reply_refuse(r, reply, 409, "AlreadyExistsException", text);
}

tarn_code rest_rename(service_request *r, service_reply *reply, rename_fn move, tarn_error *err) {
    tarn_ident from, to;
    bool refused;
    tarn_code code = TARN_OK;
    TRY(read_rename(r, reply, &from, &to, &refused, err));
    if (refused) {
        goto done;
    }
    code = move(r->service->catalog, &from, &to, err);
    if (code == TARN_CONFLICT) {
        code = TARN_OK;
        refuse_rename(r, reply, &from, &to);
        goto done;
    }
    TRY(code);
    reply->status = 204;
done:
    return code;
}

tarn_code rest_rename_table(service_request *r, service_reply *reply, tarn_error *err) {
    return rest_rename(r, reply, catalog_rename, err);
}

tarn_code rest_unregister_table(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_catalog *catalog = r->service->catalog;
    tarn_table_version *version = NULL;
    tarn_code code = TARN_OK;
    do { /* what is answered is what the table was when it went */
        table_version_release(version);
        version = NULL;
        err_reset(err);
        TRY(env_check_cancel(r->service->env, err));
        TRY(catalog_load(catalog, &r->table, &version, err));
        code = catalog_unregister(catalog, &r->table, version, err);
    } while (code == TARN_CONFLICT);
    TRY(code);
    TRY(rest_put_table(reply, version->metadata, version->metadata_location, false, err));
done:
    table_version_release(version);
    return code;
}

tarn_code rest_metrics(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_str kind;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_str(body, "report-type", true, &kind, err));
    env_log(r->service->env, TARN_LOG_DEBUG, "service", "metrics", "table=%.*s report=%.*s",
            STR_ARG(r->table.name), STR_ARG(kind));
    reply->status = 204;
done:
    return code;
}
