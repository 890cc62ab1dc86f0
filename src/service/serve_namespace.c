/* service/serve_namespace.c - config, and namespaces (REST specification, "Configuration API",
 * "Catalog API"). */
#include <stdio.h>

#include "service/homes.h"
#include "service/service_int.h"

static tarn_code end_json(json_writer *w, service_reply *reply) {
    json_end_object(w);
    reply->status = 200;
    return json_end(w);
}

/* Whether the catalog below can do what the route asks for. */
static bool offers(const rest_service *s, const service_route *route) {
    const tarn_catalog *c = s->catalog;
    if (strstr(route->pattern, "view") != NULL) {
        return catalog_has_views(c);
    }
    return (route->handle != rest_rows || s->intake != NULL) &&
           (route->handle != rest_commit_transaction || c->vt->commit_many != NULL) &&
           (route->handle != rest_unregister_table || c->vt->unregister_table != NULL);
}

tarn_code rest_config(service_request *r, service_reply *reply, tarn_error *err) {
    json_writer w;
    const char *warehouse;
    const rest_service *s = r->service;
    tarn_code code = request_query(r, "warehouse", &warehouse, err);
    if (code != TARN_OK) {
        return code;
    }
    if (warehouse != NULL && s->warehouse.len > 0 && !str_is(s->warehouse, warehouse)) {
        return err_set(err, TARN_NOT_FOUND, "warehouse \"%s\" is not served here; it is \"%.*s\"",
                       warehouse, STR_ARG(s->warehouse));
    }
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("defaults"));
    json_put_object(&w);
    json_end_object(&w);
    json_put_name(&w, STR("overrides"));
    json_put_object(&w);
    json_end_object(&w);
    json_member_str(&w, "idempotency-key-lifetime", STR(ONCE_LIFETIME));
    json_put_name(&w, STR("endpoints"));
    json_put_array(&w);
    for (size_t i = 0; i < SERVICE_N_ROUTES; i++) {
        char text[160];
        if (SERVICE_ROUTES[i].kind == ROUTE_LISTED && offers(s, &SERVICE_ROUTES[i])) {
            snprintf(text, sizeof text, "%s %s", SERVICE_ROUTES[i].method,
                     SERVICE_ROUTES[i].pattern);
            json_put_string(&w, str_of(text));
        }
    }
    json_end_array(&w);
    return end_json(&w, reply);
}

static void put_levels(json_writer *w, const tarn_ident *ns) {
    json_put_array(w);
    for (int32_t i = 0; i < ns->n_levels; i++) {
        json_put_string(w, ns->levels[i]);
    }
    json_end_array(w);
}

tarn_code rest_put_page(service_request *r, service_reply *reply, const char *name,
                        const tarn_ident *items, int32_t n, tarn_error *err) {
    json_writer w;
    int32_t first, end;
    const char *next;
    tarn_code code = request_page(r, items, n, &first, &end, &next, err);
    if (code != TARN_OK) {
        return code;
    }
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_put_name(&w, str_of(name));
    json_put_array(&w);
    for (int32_t i = first; i < end; i++) {
        if (items[i].name.len == 0) {
            put_levels(&w, &items[i]);
        } else {
            json_put_object(&w);
            json_put_name(&w, STR("namespace"));
            put_levels(&w, &items[i]);
            json_member_str(&w, "name", items[i].name);
            json_end_object(&w);
        }
    }
    json_end_array(&w);
    json_put_name(&w, STR("next-page-token"));
    if (next != NULL) {
        json_put_string(&w, str_of(next));
    } else {
        json_put_null(&w);
    }
    return end_json(&w, reply);
}

tarn_code rest_list_namespaces(service_request *r, service_reply *reply, tarn_error *err) {
    const char *parent_text;
    tarn_ident parent;
    tarn_ident *items;
    int32_t n;
    tarn_code code = TARN_OK;
    memset(&parent, 0, sizeof parent);
    TRY(request_query(r, "parent", &parent_text, err));
    if (parent_text != NULL && parent_text[0] != '\0') {
        tarn_str rest = str_of(parent_text);
        tarn_str piece;
        tarn_properties unused;
        tarn_str *levels = ARENA_ARRAY(&r->arena, tarn_str, rest.len + 1);
        if (levels == NULL) {
            return err_nomem(err);
        }
        while (str_split(&rest, '\x1f', &piece)) {
            levels[parent.n_levels++] = piece;
        }
        parent.levels = levels;
        r->ns = parent;
        if (!auth_sees(r->caller, &parent)) {
            return err_set(err, TARN_NOT_FOUND, "there is no such namespace");
        }
        TRY(catalog_load_namespace(r->service->catalog, &r->arena, &parent, &unused, err));
    }
    TRY(catalog_list_namespaces(r->service->catalog, &r->arena, &parent, &items, &n, err));
    int32_t seen = 0;
    for (int32_t i = 0; i < n; i++) {
        if (auth_sees(r->caller, &items[i])) {
            items[seen++] = items[i];
        }
    }
    n = seen;
    TRY(rest_put_page(r, reply, "namespaces", items, n, err));
done:
    return code;
}

static void put_properties(json_writer *w, const char *name, const tarn_properties *p) {
    json_put_name(w, str_of(name));
    json_put_object(w);
    for (int32_t i = 0; i < p->count; i++) {
        json_put_name(w, p->items[i].key);
        json_put_string(w, p->items[i].value);
    }
    json_end_object(w);
}

static tarn_code put_namespace(service_reply *reply, const tarn_ident *ns, const tarn_properties *p,
                               tarn_error *err) {
    json_writer w;
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("namespace"));
    put_levels(&w, ns);
    put_properties(&w, "properties", p);
    return end_json(&w, reply);
}

tarn_code rest_create_namespace(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_ident ns;
    tarn_properties properties;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_levels(r, body, "namespace", &ns, err));
    r->ns = ns;
    if (!auth_allows(r->caller, &ns, AUTH_ADMIN)) { /* the same whether it is there or not */
        return request_deny(r, &ns, AUTH_ADMIN, err);
    }
    TRY(request_member_properties(r, body, "properties", &properties, err));
    TRY(homes_allow_properties(r, &ns, &properties, err));
    TRY(catalog_create_namespace(r->service->catalog, &ns, &properties, err));
    TRY(put_namespace(reply, &ns, &properties, err));
done:
    return code;
}

/* Where tables of the namespace go, said as Iceberg's JDBC catalog says it: Trino asks for it to
 * place a table itself. A dir catalog has no choice: its tables lie where their names say. */
static tarn_code add_location(service_request *r, tarn_properties *p, tarn_error *err) {
    tarn_catalog *catalog = r->service->catalog;
    tarn_ident table = r->ns;
    tarn_str path;
    size_t slash;
    tarn_code code = TARN_OK;
    table.name = STR("t");
    if (strcmp(catalog->vt->name, "sql") != 0 || properties_get(p, "location", &path) ||
        catalog_default_location(catalog, &r->arena, &table, &path, NULL) != TARN_OK ||
        !str_find_last_char(path, '/', &slash)) {
        return TARN_OK;
    }
    tarn_property *items = ARENA_ARRAY(&r->arena, tarn_property, (size_t)p->count + 1);
    if (items == NULL) {
        TRY(err_nomem(err));
    }
    for (int32_t i = 0; i < p->count; i++) {
        items[i] = p->items[i];
    }
    items[p->count] = (tarn_property){STR("location"), str_sub(path, 0, slash)};
    *p = (tarn_properties){p->count + 1, items};
done:
    return code;
}

tarn_code rest_load_namespace(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_properties properties;
    tarn_code code = TARN_OK;
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &properties, err));
    TRY(add_location(r, &properties, err));
    TRY(put_namespace(reply, &r->ns, &properties, err));
done:
    return code;
}

tarn_code rest_has_namespace(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_properties properties;
    tarn_code code =
        catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &properties, err);
    reply->status = 204;
    return code;
}

tarn_code rest_drop_namespace(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_code code = catalog_drop_namespace(r->service->catalog, &r->ns, err);
    reply->status = 204;
    if (code == TARN_CONFLICT) {
        char text[sizeof err->message + 32];
        tarn_str last = r->ns.levels[r->ns.n_levels - 1];
        snprintf(text, sizeof text, "Namespace %.*s is not empty", STR_ARG(last));
        reply_refuse(r, reply, 409, "NamespaceNotEmptyException", text);
        code = TARN_OK;
    }
    return code;
}

static bool has_key(const tarn_properties *p, tarn_str key) {
    for (int32_t i = 0; i < p->count; i++) {
        if (str_eq(p->items[i].key, key)) {
            return true;
        }
    }
    return false;
}

static tarn_code read_removals(service_request *r, const json_value *body, tarn_properties *out,
                               tarn_error *err) {
    const json_value *removals = json_get(body, "removals");
    memset(out, 0, sizeof *out);
    if (removals == NULL || removals->kind == JSON_NULL) {
        return TARN_OK;
    }
    if (removals->kind != JSON_ARRAY) {
        return err_set(err, TARN_INVALID, "member \"removals\" is no array");
    }
    tarn_property *items = ARENA_ARRAY(&r->arena, tarn_property, removals->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    out->items = items;
    for (const json_value *m = removals->first; m != NULL; m = m->next) {
        if (m->kind != JSON_STRING) {
            return err_set(err, TARN_INVALID, "an item of \"removals\" is no string");
        }
        if (!has_key(out, m->text)) {
            items[out->count++] = (tarn_property){m->text, STR("")};
        }
    }
    return TARN_OK;
}

static void put_keys(json_writer *w, const char *name, const tarn_properties *keys,
                     const tarn_properties *before, bool there) {
    json_put_name(w, str_of(name));
    json_put_array(w);
    for (int32_t i = 0; i < keys->count; i++) {
        if (before == NULL || has_key(before, keys->items[i].key) == there) {
            json_put_string(w, keys->items[i].key);
        }
    }
    json_end_array(w);
}

tarn_code rest_update_namespace(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_properties updates, removals, before;
    json_writer w;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_member_properties(r, body, "updates", &updates, err));
    TRY(read_removals(r, body, &removals, err));
    for (int32_t i = 0; i < removals.count; i++) {
        if (has_key(&updates, removals.items[i].key)) {
            char text[300];
            snprintf(text, sizeof text, "property \"%.*s\" is both updated and removed",
                     STR_ARG(removals.items[i].key));
            reply_refuse(r, reply, 422, "UnprocessableEntityException", text);
            return TARN_OK;
        }
    }
    TRY(catalog_load_namespace(r->service->catalog, &r->arena, &r->ns, &before, err));
    TRY(homes_allow_properties(r, &r->ns, &updates, err));
    TRY(catalog_update_namespace(r->service->catalog, &r->ns, &updates, &removals, err));
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    put_keys(&w, "updated", &updates, NULL, true);
    put_keys(&w, "removed", &removals, &before, true);
    put_keys(&w, "missing", &removals, &before, false);
    TRY(end_json(&w, reply));
done:
    return code;
}
