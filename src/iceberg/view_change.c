/* iceberg/view_change.c - changes applied to the document of a view (REST specification,
 * "ViewUpdate"; the rules are those of Iceberg Java's ViewMetadata).
 *
 * Invariants of what comes out: there is a current version and it is among the versions; ids only
 * grow; a version that is in a document is never changed; the log ends with the current version and
 * names only versions that are there. */
#include "iceberg/metadata_int.h"
#include "iceberg/spec_text.h"
#include "iceberg/view.h"

#define HISTORY_KEY     "version.history.num-entries"
#define HISTORY_DEFAULT 10
#define DROP_KEY        "replace.drop-dialect.allowed"

typedef struct view_work {
    tarn_arena *arena;
    tarn_error *err;
    int64_t now_ms;
    const view_metadata *base; /* NULL: a new view */
    view_metadata m;           /* its lists are the arrays below, with room for every change */
    const tarn_schema **schemas;
    const view_version **versions;
    view_log_entry *log;
    int32_t n_base_versions; /* from here on they were added by this change set */
    bool has_current, has_schema, has_version;
    int32_t last_schema, last_version; /* ids added last */
} view_work;

const view_version *view_version_by_id(const view_metadata *view, int32_t id) {
    for (int32_t i = 0; i < view->n_versions; i++) {
        if (view->versions[i]->version_id == id) {
            return view->versions[i];
        }
    }
    return NULL;
}

static bool has_schema(const view_metadata *m, int32_t id) {
    for (int32_t i = 0; i < m->n_schemas; i++) {
        if (m->schemas[i]->schema_id == id) {
            return true;
        }
    }
    return false;
}

/* ---- equal versions ---- */

static bool same_json(const json_value *a, const json_value *b) {
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    if (a->kind == JSON_ARRAY || a->kind == JSON_OBJECT) {
        const json_value *y = b->first;
        for (const json_value *x = a->first; x != NULL; x = x->next) {
            const json_value *match = y;
            if (a->kind == JSON_OBJECT) {
                for (match = b->first; match != NULL && !str_eq(match->name, x->name);) {
                    match = match->next;
                }
            }
            if (match == NULL || !same_json(x, match)) {
                return false;
            }
            y = y->next;
        }
        return true;
    }
    return a->kind == JSON_BOOL ? a->boolean == b->boolean : str_eq(a->text, b->text);
}

static bool same_properties(const tarn_properties *a, const tarn_properties *b) {
    if (a->count != b->count) {
        return false;
    }
    for (int32_t i = 0; i < a->count; i++) {
        bool found = false;
        for (int32_t k = 0; k < b->count && !found; k++) {
            found = str_eq(a->items[i].key, b->items[k].key) &&
                    str_eq(a->items[i].value, b->items[k].value);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Whether both mean the same: all but the id and the time. */
static bool same_version(const view_version *a, const view_version *b, int32_t b_schema) {
    if (a->schema_id != b_schema || a->n_levels != b->n_levels ||
        (a->default_catalog.data == NULL) != (b->default_catalog.data == NULL) ||
        !str_eq(a->default_catalog, b->default_catalog)) {
        return false;
    }
    for (int32_t i = 0; i < a->n_levels; i++) {
        if (!str_eq(a->levels[i], b->levels[i])) {
            return false;
        }
    }
    return same_properties(&a->summary, &b->summary) &&
           same_json(a->representations, b->representations);
}

/* ---- one change ---- */

static tarn_code assign_uuid(view_work *w, const view_change *c) {
    if (c->text.len == 0) {
        return err_set(w->err, TARN_INVALID, "a view uuid was empty");
    }
    if (w->m.uuid.len > 0 && !str_eq_nocase(w->m.uuid, c->text)) {
        return err_set(w->err, TARN_INVALID, "view uuid %.*s cannot become %.*s",
                       STR_ARG(w->m.uuid), STR_ARG(c->text));
    }
    w->m.uuid = c->text;
    return TARN_OK;
}

static tarn_code add_schema(view_work *w, const view_change *c) {
    view_metadata *m = &w->m;
    int32_t id = 0;
    for (int32_t i = 0; i < m->n_schemas; i++) {
        if (schema_same(m->schemas[i], c->schema)) {
            w->last_schema = m->schemas[i]->schema_id;
            w->has_schema = true;
            return TARN_OK;
        }
        if (m->schemas[i]->schema_id == INT32_MAX) {
            return err_set(w->err, TARN_INVALID, "no schema id was left");
        }
        id = m->schemas[i]->schema_id >= id ? m->schemas[i]->schema_id + 1 : id;
    }
    tarn_schema *schema = ARENA_NEW(w->arena, tarn_schema);
    if (schema == NULL) {
        return err_nomem(w->err);
    }
    *schema = *c->schema;
    schema->schema_id = id;
    w->schemas[m->n_schemas++] = schema;
    w->last_schema = id;
    w->has_schema = true;
    return TARN_OK;
}

static bool sql_dialect(const json_value *representation, tarn_str *out) {
    tarn_str type;
    return json_str(json_get(representation, "type"), &type) && str_is(type, "sql") &&
           json_str(json_get(representation, "dialect"), out);
}

static bool has_dialect(const json_value *representations, const json_value *end,
                        tarn_str dialect) {
    tarn_str other;
    for (const json_value *r = representations->first; r != NULL && r != end; r = r->next) {
        if (sql_dialect(r, &other) && str_eq_nocase(other, dialect)) {
            return true;
        }
    }
    return false;
}

static tarn_code check_version(view_work *w, const view_version *v) {
    tarn_str dialect;
    if (!has_schema(&w->m, v->schema_id)) {
        return err_set(w->err, TARN_INVALID, "a view version named schema %d, which did not exist",
                       v->schema_id);
    }
    for (const json_value *r = v->representations->first; r != NULL; r = r->next) {
        if (sql_dialect(r, &dialect) && has_dialect(v->representations, r, dialect)) {
            return err_set(w->err, TARN_INVALID,
                           "Invalid view version: Cannot add multiple queries for dialect %.*s",
                           STR_ARG(dialect));
        }
    }
    return TARN_OK;
}

static tarn_code add_version(view_work *w, const view_change *c) {
    view_metadata *m = &w->m;
    int32_t id = c->version->version_id;
    int32_t schema_id = c->version->schema_id;
    if (schema_id == VIEW_LAST_ADDED) {
        if (!w->has_schema) {
            return err_set(w->err, TARN_INVALID,
                           "a view version named the last added schema, and none was added");
        }
        schema_id = w->last_schema;
    }
    for (int32_t i = 0; i < m->n_versions; i++) {
        if (same_version(m->versions[i], c->version, schema_id)) {
            w->last_version = m->versions[i]->version_id;
            w->has_version = true;
            return TARN_OK;
        }
        if (m->versions[i]->version_id == INT32_MAX) {
            return err_set(w->err, TARN_INVALID, "no version id was left");
        }
        id = m->versions[i]->version_id >= id ? m->versions[i]->version_id + 1 : id;
    }
    if (id < 0) {
        return err_set(w->err, TARN_INVALID, "view version %d was negative", id);
    }
    view_version *v = ARENA_NEW(w->arena, view_version);
    if (v == NULL) {
        return err_nomem(w->err);
    }
    *v = *c->version;
    v->version_id = id;
    v->schema_id = schema_id;
    w->versions[m->n_versions++] = v;
    w->last_version = id;
    w->has_version = true;
    return check_version(w, v);
}

static tarn_code set_current(view_work *w, const view_change *c) {
    int32_t id = c->number;
    if (id == VIEW_LAST_ADDED) {
        if (!w->has_version) {
            return err_set(w->err, TARN_INVALID,
                           "the last added version was to be current, and none was added");
        }
        id = w->last_version;
    }
    if (view_version_by_id(&w->m, id) == NULL) {
        return err_set(w->err, TARN_INVALID, "version %d was to be current, and did not exist", id);
    }
    w->m.current_version_id = id;
    w->has_current = true;
    return TARN_OK;
}

static tarn_code step(view_work *w, const view_change *c) {
    switch (c->kind) {
    case VIEW_ASSIGN_UUID:
        return assign_uuid(w, c);
    case VIEW_UPGRADE_FORMAT_VERSION:
        return c->number == 1
                   ? TARN_OK
                   : err_set(w->err, TARN_INVALID,
                             "view format version %d is not supported; the only one is 1",
                             c->number);
    case VIEW_ADD_SCHEMA:
        return add_schema(w, c);
    case VIEW_SET_LOCATION:
        w->m.location = c->text;
        return TARN_OK;
    case VIEW_SET_PROPERTIES:
        return properties_with(w->arena, &w->m.properties, &c->properties, &w->m.properties,
                               w->err);
    case VIEW_REMOVE_PROPERTIES:
        return properties_without(w->arena, &w->m.properties, &c->properties, &w->m.properties,
                                  w->err);
    case VIEW_ADD_VERSION:
        return add_version(w, c);
    case VIEW_SET_CURRENT_VERSION:
        return set_current(w, c);
    }
    return TARN_OK;
}

/* ---- the frame ---- */

static tarn_code check_uuids(const view_metadata *base, const view_change_set *set,
                             tarn_error *err) {
    for (int32_t i = 0; i < set->n_uuids; i++) {
        if (base == NULL || !str_eq_nocase(base->uuid, set->uuids[i])) {
            return err_set(err, TARN_CONFLICT,
                           "requirement failed: view UUID does not match: expected %.*s != %.*s",
                           STR_ARG(set->uuids[i]),
                           STR_ARG(base != NULL ? base->uuid : STR("none")));
        }
    }
    return TARN_OK;
}

/* A dialect that is gone leaves its engines without the view. */
static tarn_code check_dialects(view_work *w) {
    const view_metadata *m = &w->m;
    tarn_str dialect;
    bool allowed = false;
    if (w->base == NULL || m->current_version_id == w->base->current_version_id) {
        return TARN_OK;
    }
    tarn_code code = properties_bool(&m->properties, DROP_KEY, false, &allowed, w->err);
    if (code != TARN_OK || allowed) {
        return code;
    }
    const view_version *now = view_version_by_id(m, m->current_version_id);
    const view_version *old = view_version_by_id(w->base, w->base->current_version_id);
    for (const json_value *r = old->representations->first; r != NULL; r = r->next) {
        if (sql_dialect(r, &dialect) && !has_dialect(now->representations, NULL, dialect)) {
            return err_set(w->err, TARN_INVALID,
                           "Cannot replace view due to loss of view dialects (" DROP_KEY
                           "=false): %.*s",
                           STR_ARG(dialect));
        }
    }
    return TARN_OK;
}

static void log_current(view_work *w) {
    view_metadata *m = &w->m;
    if (w->base != NULL && w->base->current_version_id == m->current_version_id) {
        return;
    }
    int64_t at = w->now_ms;
    for (int32_t i = w->n_base_versions; i < m->n_versions; i++) {
        if (m->versions[i]->version_id == m->current_version_id) {
            at = m->versions[i]->timestamp_ms;
        }
    }
    w->log[m->n_log++] = (view_log_entry){at, m->current_version_id};
}

/* How many versions have a higher id, the current one left aside. */
static int32_t rank(const view_metadata *m, const view_version *v) {
    int32_t above = 0;
    for (int32_t i = 0; i < m->n_versions; i++) {
        int32_t id = m->versions[i]->version_id;
        above += id > v->version_id && id != m->current_version_id;
    }
    return above;
}

/* Keeps the current version and those with the highest ids, and never fewer than were added. */
static tarn_code trim(view_work *w) {
    view_metadata *m = &w->m;
    int64_t keep = 0;
    tarn_code code = properties_i64(&m->properties, HISTORY_KEY, HISTORY_DEFAULT, &keep, w->err);
    if (code != TARN_OK) {
        return code;
    }
    if (keep <= 0) {
        return err_set(w->err, TARN_INVALID, HISTORY_KEY " must be positive but was %lld",
                       (long long)keep);
    }
    int32_t added = m->n_versions - w->n_base_versions;
    for (int32_t i = 0; i < w->n_base_versions; i++) {
        added += m->versions[i]->version_id == m->current_version_id;
    }
    keep = added > keep ? added : keep;
    if (m->n_versions <= keep) {
        return TARN_OK;
    }
    const view_version **kept = ARENA_ARRAY(w->arena, const view_version *, (size_t)keep);
    if (kept == NULL) {
        return err_nomem(w->err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_versions && n < keep; i++) {
        const view_version *v = m->versions[i];
        if (v->version_id == m->current_version_id || rank(m, v) < keep - 1) {
            kept[n++] = v;
        }
    }
    m->versions = kept;
    m->n_versions = n;
    int32_t first = 0;
    for (int32_t i = 0; i < m->n_log; i++) {
        first = view_version_by_id(m, w->log[i].version_id) == NULL ? i + 1 : first;
    }
    m->log = w->log + first;
    m->n_log -= first;
    return TARN_OK;
}

static tarn_code make_room(view_work *w, const view_change_set *set) {
    const view_metadata *base = w->base;
    size_t n = (size_t)set->n_changes;
    if (base != NULL) {
        w->m = *base;
        w->has_current = true;
        w->n_base_versions = base->n_versions;
    } else {
        w->m.format_version = 1;
    }
    view_metadata *m = &w->m;
    w->schemas = ARENA_ARRAY(w->arena, const tarn_schema *, (size_t)m->n_schemas + n);
    w->versions = ARENA_ARRAY(w->arena, const view_version *, (size_t)m->n_versions + n);
    w->log = ARENA_ARRAY(w->arena, view_log_entry, (size_t)m->n_log + 1);
    if (w->schemas == NULL || w->versions == NULL || w->log == NULL) {
        return err_nomem(w->err);
    }
    for (int32_t i = 0; i < m->n_schemas; i++) {
        w->schemas[i] = m->schemas[i];
    }
    for (int32_t i = 0; i < m->n_versions; i++) {
        w->versions[i] = m->versions[i];
    }
    for (int32_t i = 0; i < m->n_log; i++) {
        w->log[i] = m->log[i];
    }
    m->schemas = w->schemas;
    m->versions = w->versions;
    m->log = w->log;
    return TARN_OK;
}

tarn_code view_apply(tarn_arena *arena, const view_metadata *base, const view_change_set *set,
                     int64_t now_ms, const view_metadata **out, tarn_error *err) {
    view_work w = {.arena = arena, .err = err, .now_ms = now_ms, .base = base};
    view_metadata *made = ARENA_NEW(arena, view_metadata);
    tarn_code code = TARN_OK;
    if (made == NULL) {
        return err_nomem(err);
    }
    TRY(check_uuids(base, set, err));
    TRY(make_room(&w, set));
    for (int32_t i = 0; i < set->n_changes; i++) {
        TRY(step(&w, &set->changes[i]));
    }
    if (w.m.uuid.len == 0 || w.m.location.len == 0 || !w.has_current) {
        TRY(err_set(err, TARN_INVALID, "a view had no %s",
                    w.m.uuid.len == 0       ? "uuid"
                    : w.m.location.len == 0 ? "location"
                                            : "current version"));
    }
    TRY(check_dialects(&w));
    log_current(&w);
    TRY(trim(&w));
    *made = w.m;
    *out = made;
done:
    return code;
}
