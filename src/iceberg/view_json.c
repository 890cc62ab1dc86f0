/* iceberg/view_json.c - the document of a view as JSON, both ways, and changes as the REST catalog
 * sends them. Members come in the order that Iceberg Java writes them. */
#include "iceberg/metadata_int.h"
#include "iceberg/view.h"

/* ---- reading ---- */

static tarn_code levels_from_json(tarn_arena *arena, const json_value *j, view_version *v,
                                  tarn_error *err) {
    if (!json_is(j, JSON_ARRAY) || j->count > INT32_MAX) {
        return err_set(err, TARN_CORRUPT,
                       "view version: \"default-namespace\" was missing or no array");
    }
    tarn_str *levels = ARENA_ARRAY(arena, tarn_str, j->count);
    if (levels == NULL) {
        return err_nomem(err);
    }
    for (const json_value *level = j->first; level != NULL; level = level->next) {
        if (!json_str(level, &levels[v->n_levels++])) {
            return err_set(err, TARN_CORRUPT,
                           "view version: a level of \"default-namespace\" was no string");
        }
    }
    v->levels = levels;
    return TARN_OK;
}

static tarn_code representations_from_json(const json_value *j, view_version *v, tarn_error *err) {
    tarn_str type, text;
    tarn_code code = TARN_OK;
    if (!json_is(j, JSON_ARRAY)) {
        return err_set(err, TARN_CORRUPT,
                       "view version: \"representations\" was missing or no array");
    }
    for (const json_value *r = j->first; r != NULL; r = r->next) {
        TRY(json_need_str(r, "type", "view representation", &type, err));
        if (str_is(type, "sql")) {
            TRY(json_need_str(r, "sql", "view representation", &text, err));
            TRY(json_need_str(r, "dialect", "view representation", &text, err));
        }
    }
    v->representations = j;
done:
    return code;
}

tarn_code view_version_from_json(tarn_arena *arena, const json_value *json, view_version *out,
                                 tarn_error *err) {
    static const char *const known[] = {
        "version-id",      "timestamp-ms",      "schema-id",       "summary",
        "default-catalog", "default-namespace", "representations", NULL};
    static const char where[] = "view version";
    view_version v = {0};
    tarn_code code = TARN_OK;
    if (!json_is(json, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "a view version was no object");
    }
    TRY(json_need_i32(json, "version-id", where, &v.version_id, err));
    TRY(json_need_i32(json, "schema-id", where, &v.schema_id, err));
    TRY(json_need_i64(json, "timestamp-ms", where, &v.timestamp_ms, err));
    TRY(properties_from_json(arena, json_member(json, "summary"), "view version: \"summary\"",
                             &v.summary, err));
    if (json_member(json, "default-catalog") != NULL) {
        TRY(json_need_str(json, "default-catalog", where, &v.default_catalog, err));
    }
    TRY(levels_from_json(arena, json_member(json, "default-namespace"), &v, err));
    TRY(representations_from_json(json_member(json, "representations"), &v, err));
    TRY(json_unknown(arena, json, known, &v.extra, err));
    *out = v;
done:
    return code;
}

static tarn_code need_array(const json_value *root, const char *name, const json_value **out,
                            tarn_error *err) {
    const json_value *j = json_member(root, name);
    if (!json_is(j, JSON_ARRAY) || j->count > INT32_MAX) {
        return err_set(err, TARN_CORRUPT, "\"%s\" was missing or no array", name);
    }
    *out = j;
    return TARN_OK;
}

static tarn_code read_versions(tarn_arena *arena, const json_value *root, view_metadata *m,
                               tarn_error *err) {
    const json_value *j = NULL;
    tarn_code code = TARN_OK;
    TRY(need_array(root, "versions", &j, err));
    const view_version **list = ARENA_ARRAY(arena, const view_version *, j->count);
    view_version *versions = ARENA_ARRAY(arena, view_version, j->count);
    if (list == NULL || versions == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *v = j->first; v != NULL; v = v->next) {
        TRY(view_version_from_json(arena, v, &versions[m->n_versions], err));
        list[m->n_versions] = &versions[m->n_versions];
        m->n_versions++;
    }
    m->versions = list;
    if (view_version_by_id(m, m->current_version_id) == NULL) {
        TRY(err_set(err, TARN_CORRUPT, "current version %d was not among the versions",
                    m->current_version_id));
    }
done:
    return code;
}

static tarn_code read_lists(tarn_arena *arena, const json_value *root, view_metadata *m,
                            tarn_error *err) {
    const json_value *j = NULL;
    tarn_code code = TARN_OK;
    TRY(need_array(root, "schemas", &j, err));
    const tarn_schema **schemas = ARENA_ARRAY(arena, const tarn_schema *, j->count);
    if (schemas == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *s = j->first; s != NULL; s = s->next) {
        TRY(schema_from_json(arena, s, &schemas[m->n_schemas++], err));
    }
    m->schemas = schemas;
    TRY(read_versions(arena, root, m, err));
    TRY(need_array(root, "version-log", &j, err));
    view_log_entry *log = ARENA_ARRAY(arena, view_log_entry, j->count);
    if (log == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *e = j->first; e != NULL; e = e->next, m->n_log++) {
        TRY(json_need_i64(e, "timestamp-ms", "version-log", &log[m->n_log].timestamp_ms, err));
        TRY(json_need_i32(e, "version-id", "version-log", &log[m->n_log].version_id, err));
    }
    m->log = log;
done:
    return code;
}

static tarn_code read_view(tarn_arena *arena, const json_value *root, const char *what,
                           view_metadata *m, tarn_error *err) {
    static const char *const known[] = {"view-uuid",  "format-version", "location",
                                        "properties", "schemas",        "current-version-id",
                                        "versions",   "version-log",    NULL};
    tarn_code code = TARN_OK;
    if (!json_is(root, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "%s: the document was not an object", what);
    }
    TRY(json_need_i32(root, "format-version", what, &m->format_version, err));
    TRY(json_need_str(root, "view-uuid", what, &m->uuid, err));
    if (m->format_version != 1) {
        TRY(err_set(err, TARN_UNSUPPORTED, "%s: views of format version %d are not supported", what,
                    m->format_version));
    }
    TRY(json_need_str(root, "location", what, &m->location, err));
    TRY(properties_from_json(arena, json_member(root, "properties"), "properties", &m->properties,
                             err));
    TRY(json_need_i32(root, "current-version-id", what, &m->current_version_id, err));
    TRY(read_lists(arena, root, m, err));
    TRY(json_unknown(arena, root, known, &m->extra, err));
done:
    return code == TARN_OK ? code : err_add(err, code, "view %s", what);
}

tarn_code view_parse(tarn_arena *arena, tarn_str text, const char *what, const view_metadata **out,
                     tarn_error *err) {
    view_metadata *m = ARENA_NEW(arena, view_metadata);
    json_value *root = NULL;
    tarn_code code = TARN_OK;
    if (m == NULL) {
        return err_nomem(err);
    }
    TRY(metadata_parse_json(arena, text, what, &root, err));
    TRY(read_view(arena, root, what, m, err));
    *out = m;
done:
    return code;
}

/* ---- writing ---- */

static void put_version(const view_version *v, json_writer *w) {
    json_put_object(w);
    json_member_i64(w, "version-id", v->version_id);
    json_member_i64(w, "timestamp-ms", v->timestamp_ms);
    json_member_i64(w, "schema-id", v->schema_id);
    json_put_name(w, STR("summary"));
    properties_put_json(&v->summary, w);
    if (v->default_catalog.data != NULL) {
        json_member_str(w, "default-catalog", v->default_catalog);
    }
    json_put_name(w, STR("default-namespace"));
    json_put_array(w);
    for (int32_t i = 0; i < v->n_levels; i++) {
        json_put_string(w, v->levels[i]);
    }
    json_end_array(w);
    json_put_name(w, STR("representations"));
    json_put_value(w, v->representations);
    json_put_members(w, v->extra);
    json_end_object(w);
}

static void put_log(const view_metadata *view, json_writer *w) {
    json_put_name(w, STR("version-log"));
    json_put_array(w);
    for (int32_t i = 0; i < view->n_log; i++) {
        json_put_object(w);
        json_member_i64(w, "timestamp-ms", view->log[i].timestamp_ms);
        json_member_i64(w, "version-id", view->log[i].version_id);
        json_end_object(w);
    }
    json_end_array(w);
}

tarn_code view_write(const view_metadata *view, tarn_buf *out, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, false, err);
    json_put_object(&w);
    json_member_str(&w, "view-uuid", view->uuid);
    json_member_i64(&w, "format-version", view->format_version);
    json_member_str(&w, "location", view->location);
    if (view->properties.count > 0) {
        json_put_name(&w, STR("properties"));
        properties_put_json(&view->properties, &w);
    }
    json_put_name(&w, STR("schemas"));
    json_put_array(&w);
    for (int32_t i = 0; i < view->n_schemas; i++) {
        schema_put_json(view->schemas[i], &w);
    }
    json_end_array(&w);
    json_member_i64(&w, "current-version-id", view->current_version_id);
    json_put_name(&w, STR("versions"));
    json_put_array(&w);
    for (int32_t i = 0; i < view->n_versions; i++) {
        put_version(view->versions[i], &w);
    }
    json_end_array(&w);
    put_log(view, &w);
    json_put_members(&w, view->extra);
    json_end_object(&w);
    return json_end(&w);
}

/* ---- changes ---- */

static const struct {
    const char *action;
    view_change_kind kind;
    const char *member;
    const char *old_member; /* of earlier clients */
} actions[] = {
    {"assign-uuid", VIEW_ASSIGN_UUID, "uuid", NULL},
    {"upgrade-format-version", VIEW_UPGRADE_FORMAT_VERSION, "format-version", NULL},
    {"add-schema", VIEW_ADD_SCHEMA, "schema", NULL},
    {"set-location", VIEW_SET_LOCATION, "location", NULL},
    {"set-properties", VIEW_SET_PROPERTIES, "updates", "updated"},
    {"remove-properties", VIEW_REMOVE_PROPERTIES, "removals", "removed"},
    {"add-view-version", VIEW_ADD_VERSION, "view-version", NULL},
    {"set-current-view-version", VIEW_SET_CURRENT_VERSION, "view-version-id", NULL},
};
#define N_ACTIONS (sizeof actions / sizeof actions[0])

static tarn_code version_change(tarn_arena *arena, const json_value *j, view_change *c,
                                tarn_error *err) {
    view_version *v = ARENA_NEW(arena, view_version);
    c->version = v;
    return v != NULL ? view_version_from_json(arena, j, v, err) : err_nomem(err);
}

static tarn_code payload_from_json(tarn_arena *arena, const json_value *change, size_t action,
                                   view_change *c, tarn_error *err) {
    const char *name = actions[action].action;
    const char *member = actions[action].member;
    const json_value *j = json_member(change, member);
    if (j == NULL && actions[action].old_member != NULL) {
        member = actions[action].old_member;
        j = json_member(change, member);
    }
    if (j == NULL) {
        return err_set(err, TARN_INVALID, "%s: \"%s\" was missing", name, actions[action].member);
    }
    switch (actions[action].kind) {
    case VIEW_ASSIGN_UUID:
    case VIEW_SET_LOCATION:
        return json_need_str(change, member, name, &c->text, err);
    case VIEW_UPGRADE_FORMAT_VERSION:
    case VIEW_SET_CURRENT_VERSION:
        return json_need_i32(change, member, name, &c->number, err);
    case VIEW_ADD_SCHEMA:
        return schema_from_json(arena, j, &c->schema, err);
    case VIEW_ADD_VERSION:
        return version_change(arena, j, c, err);
    case VIEW_SET_PROPERTIES:
        return properties_from_json(arena, j, name, &c->properties, err);
    case VIEW_REMOVE_PROPERTIES:
        return properties_keys_from_json(arena, j, &c->properties, err);
    }
    return TARN_OK;
}

static tarn_code change_from_json(tarn_arena *arena, const json_value *j, view_change *c,
                                  tarn_error *err) {
    tarn_str action;
    tarn_code code = json_need_str(j, "action", "update", &action, err);
    for (size_t i = 0; code == TARN_OK && i < N_ACTIONS; i++) {
        if (str_is(action, actions[i].action)) {
            c->kind = actions[i].kind;
            return payload_from_json(arena, j, i, c, err);
        }
    }
    return code != TARN_OK ? code
                           : err_set(err, TARN_INVALID, "update \"%.*s\" is unknown for a view",
                                     STR_ARG(action));
}

static tarn_code requirement_from_json(const json_value *j, tarn_str *uuid, tarn_error *err) {
    tarn_str type;
    tarn_code code = TARN_OK;
    TRY(json_need_str(j, "type", "requirement", &type, err));
    if (!str_is(type, "assert-view-uuid")) {
        TRY(err_set(err, TARN_INVALID, "requirement \"%.*s\" is unknown for a view",
                    STR_ARG(type)));
    }
    TRY(json_need_str(j, "uuid", "assert-view-uuid", uuid, err));
done:
    return code;
}

tarn_code view_changes_from_json(tarn_arena *arena, const json_value *json, view_change_set *out,
                                 tarn_error *err) {
    const json_value *requirements = NULL, *updates = NULL;
    view_change_set set = {0};
    tarn_code code = TARN_OK;
    TRY(json_want_array(json, "requirements", "view change set", &requirements, err));
    TRY(json_want_array(json, "updates", "view change set", &updates, err));
    tarn_str *uuids = ARENA_ARRAY(arena, tarn_str, requirements != NULL ? requirements->count : 0);
    view_change *changes = ARENA_ARRAY(arena, view_change, updates != NULL ? updates->count : 0);
    if (uuids == NULL || changes == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *j = requirements != NULL ? requirements->first : NULL; j != NULL;
         j = j->next) {
        TRY(requirement_from_json(j, &uuids[set.n_uuids++], err));
    }
    for (const json_value *j = updates != NULL ? updates->first : NULL; j != NULL; j = j->next) {
        TRY(change_from_json(arena, j, &changes[set.n_changes++], err));
    }
    set.uuids = uuids;
    set.changes = changes;
    *out = set;
done:
    if (code == TARN_CORRUPT) { /* an argument, not stored bytes */
        code = TARN_INVALID;
        if (err != NULL) {
            err->code = code;
        }
    }
    return code;
}
