/* iceberg/change_step.c - each kind of change, applied to the metadata in the making. */
#include "base/map.h"
#include "iceberg/change_int.h"
#include "iceberg/metadata_int.h"
#include "iceberg/schema_check.h"
#include "iceberg/spec_text.h"

#define HIGHEST_VERSION 3

/* ---- identity, version, location, properties ---- */

static tarn_code assign_uuid(change_work *w, const tarn_change *c) {
    if (w->m.table_uuid.len > 0 && !str_eq_nocase(w->m.table_uuid, c->text)) {
        return err_set(w->err, TARN_INVALID, "table uuid %.*s cannot become %.*s",
                       STR_ARG(w->m.table_uuid), STR_ARG(c->text));
    }
    if (c->text.len == 0) {
        return err_set(w->err, TARN_INVALID, "a table uuid was empty");
    }
    w->m.table_uuid = c->text;
    return TARN_OK;
}

static tarn_code upgrade_version(change_work *w, const tarn_change *c) {
    if (c->number < 1 || c->number > HIGHEST_VERSION) {
        return err_set(w->err, TARN_INVALID,
                       "format version %d is not supported; the highest supported one is %d",
                       c->number, HIGHEST_VERSION);
    }
    bool fresh =
        w->base == NULL && w->m.n_schemas == 0; /* the first version is chosen, not raised */
    if (c->number < w->m.format_version && !fresh) {
        return err_set(w->err, TARN_INVALID, "format version %d cannot go down to %d",
                       w->m.format_version, c->number);
    }
    w->m.format_version = c->number;
    return TARN_OK;
}

static tarn_code set_location(change_work *w, const tarn_change *c) {
    if (c->text.len == 0) {
        return err_set(w->err, TARN_INVALID, "a table location was empty");
    }
    w->m.location = c->text;
    return TARN_OK;
}

static tarn_code set_properties(change_work *w, const tarn_change *c) {
    return properties_with(w->arena, &w->m.properties, &c->properties, &w->m.properties, w->err);
}

static tarn_code remove_properties(change_work *w, const tarn_change *c) {
    return properties_without(w->arena, &w->m.properties, &c->properties, &w->m.properties, w->err);
}

/* ---- schemas ---- */

static tarn_code add_schema(change_work *w, const tarn_change *c) {
    tarn_metadata *m = &w->m;
    int32_t id = m->current_schema_id < 0 ? 0 : m->current_schema_id;
    tarn_code code = schema_check(c->schema, m->format_version, w->err);
    if (code != TARN_OK) {
        return code;
    }
    int32_t highest = type_max_id(c->schema->root);
    m->last_column_id = highest > m->last_column_id ? highest : m->last_column_id;
    if (c->number > m->last_column_id) {
        m->last_column_id = c->number;
    }
    for (int32_t i = 0; i < m->n_schemas; i++) {
        if (schema_same(m->schemas[i], c->schema)) {
            w->last_schema = m->schemas[i]->schema_id;
            return TARN_OK;
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
    return TARN_OK;
}

/* The id meant by a change where -1 says "the one added last". */
static tarn_code resolve_id(change_work *w, int32_t wanted, int32_t last, const char *what,
                            int32_t *id) {
    if (wanted != -1) {
        *id = wanted;
        return TARN_OK;
    }
    *id = last;
    return last >= 0
               ? TARN_OK
               : err_set(w->err, TARN_INVALID, "the last added %s was named, and none was", what);
}

static tarn_code set_current_schema(change_work *w, const tarn_change *c) {
    int32_t id;
    tarn_code code = resolve_id(w, c->number, w->last_schema, "schema", &id);
    if (code == TARN_OK && metadata_schema_by_id(&w->m, id) == NULL) {
        code = err_set(w->err, TARN_INVALID, "schema %d is unknown", id);
    }
    if (code == TARN_OK) {
        w->m.current_schema_id = id;
    }
    return code;
}

static bool has_id(const tarn_change *c, int64_t id) {
    for (int32_t i = 0; i < c->n_ids; i++) {
        if (c->ids[i] == id) {
            return true;
        }
    }
    return false;
}

static tarn_code remove_schemas(change_work *w, const tarn_change *c) {
    int32_t n = 0;
    if (has_id(c, w->m.current_schema_id)) {
        return err_set(w->err, TARN_INVALID, "the current schema %d cannot be removed",
                       w->m.current_schema_id);
    }
    for (int32_t i = 0; i < w->m.n_schemas; i++) {
        if (!has_id(c, w->schemas[i]->schema_id)) {
            w->schemas[n++] = w->schemas[i];
        }
    }
    w->m.n_schemas = n;
    return TARN_OK;
}

/* ---- specs and sort orders ---- */

/* Whether the id stands for another source in some spec, and for this one in none. (Tables that
 * began in version 1 may have both.) */
static const tarn_partition_field *taken_by(const tarn_metadata *m, const tarn_partition_field *f) {
    const tarn_partition_field *other = NULL;
    for (int32_t i = 0; i < m->n_specs; i++) {
        for (int32_t k = 0; k < m->specs[i]->n_fields; k++) {
            const tarn_partition_field *g = &m->specs[i]->fields[k];
            if (g->field_id == f->field_id && g->source_id == f->source_id) {
                return NULL;
            }
            other = g->field_id == f->field_id ? g : other;
        }
    }
    return other;
}

/* A partition field id means one thing in all specs: tuples are read by it. */
static tarn_code check_field_ids(change_work *w, const tarn_spec *spec) {
    for (int32_t i = 0; i < spec->n_fields; i++) {
        const tarn_partition_field *f = &spec->fields[i];
        if (w->m.format_version == 1 && f->field_id != TARN_FIRST_PARTITION_ID + i) {
            return err_set(w->err, TARN_INVALID,
                           "partition field \"%.*s\" had id %d; version 1 counts from %d",
                           STR_ARG(f->name), f->field_id, TARN_FIRST_PARTITION_ID);
        }
        const tarn_partition_field *g = w->m.format_version > 1 ? taken_by(&w->m, f) : NULL;
        if (g != NULL) {
            return err_set(w->err, TARN_INVALID,
                           "partition field id %d of \"%.*s\" is taken by \"%.*s\"", f->field_id,
                           STR_ARG(f->name), STR_ARG(g->name));
        }
    }
    return TARN_OK;
}

/* What the fields of a new spec or order are of: the current schema, or the last added while none
 * is current. NULL: none. */
static const tarn_schema *binding_schema(const change_work *w) {
    const tarn_schema *schema = metadata_schema(&w->m);
    return schema != NULL || w->last_schema < 0 ? schema
                                                : metadata_schema_by_id(&w->m, w->last_schema);
}

static tarn_code add_spec(change_work *w, const tarn_change *c) {
    tarn_metadata *m = &w->m;
    int32_t id = 0;
    const tarn_schema *schema = binding_schema(w);
    for (int32_t i = 0; i < m->n_specs; i++) {
        if (spec_same(m->specs[i], c->spec)) {
            w->last_spec = m->specs[i]->spec_id;
            return TARN_OK;
        }
        id = m->specs[i]->spec_id >= id ? m->specs[i]->spec_id + 1 : id;
    }
    if (schema == NULL) {
        return err_set(w->err, TARN_INVALID, "a partition spec came before a schema");
    }
    tarn_code code = spec_check_sources(schema->root, c->spec, w->err);
    if (code == TARN_OK) {
        code = spec_check(schema->root, c->spec->fields, c->spec->n_fields, false, w->err);
    }
    if (code == TARN_OK) {
        code = check_field_ids(w, c->spec);
    }
    tarn_spec *spec = ARENA_NEW(w->arena, tarn_spec);
    if (code != TARN_OK || spec == NULL) {
        return code != TARN_OK ? code : err_nomem(w->err);
    }
    *spec = *c->spec;
    spec->spec_id = id;
    for (int32_t i = 0; i < spec->n_fields; i++) {
        int32_t field_id = spec->fields[i].field_id;
        m->last_partition_id = field_id > m->last_partition_id ? field_id : m->last_partition_id;
    }
    w->specs[m->n_specs++] = spec;
    w->last_spec = id;
    return TARN_OK;
}

static tarn_code set_default_spec(change_work *w, const tarn_change *c) {
    int32_t id;
    tarn_code code = resolve_id(w, c->number, w->last_spec, "partition spec", &id);
    if (code == TARN_OK && metadata_spec_by_id(&w->m, id) == NULL) {
        code = err_set(w->err, TARN_INVALID, "partition spec %d is unknown", id);
    }
    if (code == TARN_OK) {
        w->m.default_spec_id = id;
    }
    return code;
}

static tarn_code remove_specs(change_work *w, const tarn_change *c) {
    int32_t n = 0;
    if (has_id(c, w->m.default_spec_id)) {
        return err_set(w->err, TARN_INVALID, "the default partition spec %d cannot be removed",
                       w->m.default_spec_id);
    }
    for (int32_t i = 0; i < w->m.n_specs; i++) {
        if (!has_id(c, w->specs[i]->spec_id)) {
            w->specs[n++] = w->specs[i];
        }
    }
    w->m.n_specs = n;
    return TARN_OK;
}

static tarn_code add_sort_order(change_work *w, const tarn_change *c) {
    tarn_metadata *m = &w->m;
    bool unsorted = c->sort_order->n_fields == 0;
    int32_t id = unsorted ? 0 : 1; /* 0 is kept for unsorted */
    const tarn_schema *schema = binding_schema(w);
    for (int32_t i = 0; i < m->n_sort_orders; i++) {
        if (sort_order_same(m->sort_orders[i], c->sort_order)) {
            w->last_order = m->sort_orders[i]->order_id;
            return TARN_OK;
        }
        if (!unsorted && m->sort_orders[i]->order_id >= id) {
            id = m->sort_orders[i]->order_id + 1;
        }
    }
    if (schema == NULL) {
        return err_set(w->err, TARN_INVALID, "a sort order came before a schema");
    }
    tarn_code code = sort_order_check_sources(schema->root, c->sort_order, w->err);
    tarn_sort_order *order = ARENA_NEW(w->arena, tarn_sort_order);
    if (code != TARN_OK || order == NULL) {
        return code != TARN_OK ? code : err_nomem(w->err);
    }
    *order = *c->sort_order;
    order->order_id = id;
    w->sort_orders[m->n_sort_orders++] = order;
    w->last_order = id;
    return TARN_OK;
}

static tarn_code set_default_sort_order(change_work *w, const tarn_change *c) {
    int32_t id;
    tarn_code code = resolve_id(w, c->number, w->last_order, "sort order", &id);
    bool known = false;
    for (int32_t i = 0; code == TARN_OK && i < w->m.n_sort_orders; i++) {
        known |= w->m.sort_orders[i]->order_id == id;
    }
    if (code == TARN_OK && !known) {
        code = err_set(w->err, TARN_INVALID, "sort order %d is unknown", id);
    }
    if (code == TARN_OK) {
        w->m.default_sort_order_id = id;
    }
    return code;
}

/* ---- snapshots and references ---- */

static tarn_code check_rows(change_work *w, const tarn_snapshot *s) {
    if (s->first_row_id < w->m.next_row_id || s->added_rows < 0) {
        return err_set(w->err, TARN_INVALID,
                       "snapshot %lld: first row id %lld with %lld added rows; the next row id of "
                       "the table is %lld",
                       (long long)s->snapshot_id, (long long)s->first_row_id,
                       (long long)s->added_rows, (long long)w->m.next_row_id);
    }
    int64_t next;
    if (!num_add_i64(s->first_row_id, s->added_rows, &next)) {
        return err_set(w->err, TARN_INVALID, "snapshot %lld: row ids ran out",
                       (long long)s->snapshot_id);
    }
    w->m.next_row_id = next;
    return TARN_OK;
}

static tarn_code add_snapshot(change_work *w, const tarn_change *c) {
    tarn_metadata *m = &w->m;
    const tarn_snapshot *s = c->snapshot;
    if (m->n_schemas == 0) {
        return err_set(w->err, TARN_INVALID, "a snapshot came before a schema");
    }
    if (s->snapshot_id < 0 || metadata_snapshot_by_id(m, s->snapshot_id) != NULL) {
        return err_set(w->err, TARN_INVALID, "snapshot id %lld %s", (long long)s->snapshot_id,
                       s->snapshot_id < 0 ? "is negative" : "is there already");
    }
    /* the first one of a table that was replaced whole, main taken away before it, stands on
     * nothing that could be newer; the last number stays the highest (B31) */
    bool replaced = s->parent_id == TARN_NO_SNAPSHOT && w->base != NULL &&
                    metadata_ref(w->base, STR(TARN_MAIN_BRANCH)) != NULL &&
                    metadata_ref(m, STR(TARN_MAIN_BRANCH)) == NULL;
    if (m->format_version > 1 && s->sequence_number <= m->last_sequence_number && !replaced) {
        return err_set(w->err, TARN_CONFLICT, /* it was made on an older table */
                       "snapshot %lld: sequence number %lld is not above the last one, %lld",
                       (long long)s->snapshot_id, (long long)s->sequence_number,
                       (long long)m->last_sequence_number);
    }
    if (m->format_version > 1 && s->manifest_list.len == 0) {
        return err_set(w->err, TARN_INVALID, "snapshot %lld had no manifest list",
                       (long long)s->snapshot_id);
    }
    if (m->format_version >= 3) {
        tarn_code code = check_rows(w, s);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (s->sequence_number > m->last_sequence_number) {
        m->last_sequence_number = s->sequence_number;
    }
    w->snapshots[m->n_snapshots++] = s;
    return TARN_OK;
}

static bool was_added(const change_work *w, int64_t id) {
    for (int32_t i = w->n_base_snapshots; i < w->m.n_snapshots; i++) {
        if (w->snapshots[i]->snapshot_id == id) {
            return true;
        }
    }
    return false;
}

static bool ref_same(const tarn_ref *a, const tarn_ref *b) {
    return a->snapshot_id == b->snapshot_id && a->is_tag == b->is_tag &&
           a->max_ref_age_ms == b->max_ref_age_ms &&
           a->max_snapshot_age_ms == b->max_snapshot_age_ms &&
           a->min_snapshots_to_keep == b->min_snapshots_to_keep;
}

static void move_main(change_work *w, const tarn_snapshot *s) {
    bool added = was_added(w, s->snapshot_id);
    int64_t now = w->now_ms > w->m.last_updated_ms ? w->now_ms : w->m.last_updated_ms;
    w->m.current_snapshot_id = s->snapshot_id;
    w->log[w->m.n_snapshot_log++] = /* clocks differ; the log must not run backwards */
        (tarn_snapshot_log_entry){added ? s->timestamp_ms : now, s->snapshot_id};
    if (added) {
        w->set_main[w->n_set_main++] = s->snapshot_id;
    }
}

static tarn_code set_ref(change_work *w, const tarn_change *c) {
    const tarn_ref *ref = &c->ref;
    const tarn_snapshot *s = metadata_snapshot_by_id(&w->m, ref->snapshot_id);
    bool is_main = str_is(ref->name, TARN_MAIN_BRANCH);
    if (ref->name.len == 0 || s == NULL) {
        return err_set(w->err, TARN_INVALID, "reference \"%.*s\": snapshot %lld is unknown",
                       STR_ARG(ref->name), (long long)ref->snapshot_id);
    }
    if (is_main && ref->is_tag) {
        return err_set(w->err, TARN_INVALID, "main cannot be a tag");
    }
    int32_t at = 0;
    while (at < w->m.n_refs && !str_eq(w->refs[at].name, ref->name)) {
        at++;
    }
    if (at < w->m.n_refs && ref_same(&w->refs[at], ref)) {
        return TARN_OK;
    }
    if (is_main && w->m.current_snapshot_id != ref->snapshot_id) {
        move_main(w, s);
    }
    w->refs[at] = *ref;
    w->m.n_refs = at == w->m.n_refs ? at + 1 : w->m.n_refs;
    return TARN_OK;
}

static void remove_ref(change_work *w, tarn_str name) {
    int32_t n = 0;
    for (int32_t i = 0; i < w->m.n_refs; i++) {
        if (!str_eq(w->refs[i].name, name)) {
            w->refs[n++] = w->refs[i];
        }
    }
    w->m.n_refs = n;
    if (str_is(name, TARN_MAIN_BRANCH)) {
        w->m.current_snapshot_id = TARN_NO_SNAPSHOT;
    }
}

/* ---- statistics and keys: arrays of JSON objects ---- */

static bool names_key(const json_value *item, const char *member, int64_t id, tarn_str key) {
    int64_t v;
    tarn_str s;
    if (key.data != NULL) {
        return json_str(json_get(item, member), &s) && str_eq(s, key);
    }
    return json_i64(json_get(item, member), &v) && v == id;
}

static tarn_code append_item(change_work *w, json_value *array, json_value **last,
                             const json_value *item) {
    json_value *copy = ARENA_NEW(w->arena, json_value);
    if (copy == NULL) {
        return err_nomem(w->err);
    }
    *copy = *item;
    copy->next = NULL;
    copy->name = STR_NULL;
    if (*last == NULL) {
        array->first = copy;
    } else {
        (*last)->next = copy;
    }
    *last = copy;
    array->count++;
    return TARN_OK;
}

/* The array without the items of that id (or key), and with item at its end if there is one. */
static tarn_code replace_item(change_work *w, const json_value **array, const char *member,
                              int64_t id, tarn_str key, const json_value *item) {
    json_value *fresh = json_new(w->arena, JSON_ARRAY), *last = NULL;
    if (fresh == NULL) {
        return err_nomem(w->err);
    }
    for (const json_value *j = *array != NULL ? (*array)->first : NULL; j != NULL; j = j->next) {
        tarn_code code = names_key(j, member, id, key) ? TARN_OK : append_item(w, fresh, &last, j);
        if (code != TARN_OK) {
            return code;
        }
    }
    tarn_code code = item != NULL ? append_item(w, fresh, &last, item) : TARN_OK;
    if (code == TARN_OK) {
        *array = fresh;
    }
    return code;
}

static tarn_code set_statistics(change_work *w, const json_value **array, const tarn_change *c) {
    int64_t id;
    tarn_code code = json_need_i64(c->json, "snapshot-id", "statistics", &id, w->err);
    return code == TARN_OK ? replace_item(w, array, "snapshot-id", id, STR_NULL, c->json) : code;
}

static tarn_code remove_statistics(change_work *w, const json_value **array, const tarn_change *c) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < c->n_ids && code == TARN_OK && *array != NULL; i++) {
        code = replace_item(w, array, "snapshot-id", c->ids[i], STR_NULL, NULL);
    }
    return code;
}

static tarn_code add_encryption_key(change_work *w, const tarn_change *c) {
    tarn_str id;
    tarn_code code = json_need_str(c->json, "key-id", "encryption key", &id, w->err);
    return code == TARN_OK ? replace_item(w, &w->m.encryption_keys, "key-id", 0, id, c->json)
                           : code;
}

/* Removed snapshots take their statistics and the references to them along; main's stays. */
static tarn_code remove_snapshots(change_work *w, const tarn_change *c) {
    int32_t n = 0, base = 0;
    if (w->m.current_snapshot_id != TARN_NO_SNAPSHOT && has_id(c, w->m.current_snapshot_id)) {
        return err_set(w->err, TARN_INVALID, "the current snapshot %lld cannot be removed",
                       (long long)w->m.current_snapshot_id);
    }
    tarn_map gone;
    map_init(&gone, w->arena);
    for (int32_t i = 0; i < c->n_ids; i++) {
        if (map_put(&gone, str_make(&c->ids[i], sizeof c->ids[i]), NULL) == NULL) {
            return err_nomem(w->err);
        }
    }
    for (int32_t i = 0; i < w->m.n_snapshots; i++) {
        const int64_t *id = &w->snapshots[i]->snapshot_id;
        if (map_find(&gone, str_make(id, sizeof *id)) != NULL) {
            w->removed_snapshots = true;
            continue;
        }
        w->snapshots[n++] = w->snapshots[i];
        base += i < w->n_base_snapshots;
    }
    w->m.n_snapshots = n;
    w->n_base_snapshots = base;
    for (int32_t i = w->m.n_refs - 1; i >= 0; i--) {
        if (map_find(&gone, str_make(&w->refs[i].snapshot_id, sizeof(int64_t))) != NULL) {
            remove_ref(w, w->refs[i].name);
        }
    }
    tarn_code code = remove_statistics(w, &w->m.statistics, c);
    return code == TARN_OK ? remove_statistics(w, &w->m.partition_statistics, c) : code;
}

tarn_code change_step(change_work *w, const tarn_change *c) {
    switch (c->kind) {
    case CHANGE_ASSIGN_UUID:
        return assign_uuid(w, c);
    case CHANGE_UPGRADE_FORMAT_VERSION:
        return upgrade_version(w, c);
    case CHANGE_ADD_SCHEMA:
        return add_schema(w, c);
    case CHANGE_SET_CURRENT_SCHEMA:
        return set_current_schema(w, c);
    case CHANGE_ADD_SPEC:
        return add_spec(w, c);
    case CHANGE_SET_DEFAULT_SPEC:
        return set_default_spec(w, c);
    case CHANGE_ADD_SORT_ORDER:
        return add_sort_order(w, c);
    case CHANGE_SET_DEFAULT_SORT_ORDER:
        return set_default_sort_order(w, c);
    case CHANGE_ADD_SNAPSHOT:
        return add_snapshot(w, c);
    case CHANGE_SET_SNAPSHOT_REF:
        return set_ref(w, c);
    case CHANGE_REMOVE_SNAPSHOTS:
        return remove_snapshots(w, c);
    case CHANGE_REMOVE_SNAPSHOT_REF:
        remove_ref(w, c->text);
        return TARN_OK;
    case CHANGE_SET_LOCATION:
        return set_location(w, c);
    case CHANGE_SET_PROPERTIES:
        return set_properties(w, c);
    case CHANGE_REMOVE_PROPERTIES:
        return remove_properties(w, c);
    case CHANGE_REMOVE_PARTITION_SPECS:
        return remove_specs(w, c);
    case CHANGE_REMOVE_SCHEMAS:
        return remove_schemas(w, c);
    case CHANGE_SET_STATISTICS:
        return set_statistics(w, &w->m.statistics, c);
    case CHANGE_REMOVE_STATISTICS:
        return remove_statistics(w, &w->m.statistics, c);
    case CHANGE_SET_PARTITION_STATISTICS:
        return set_statistics(w, &w->m.partition_statistics, c);
    case CHANGE_REMOVE_PARTITION_STATISTICS:
        return remove_statistics(w, &w->m.partition_statistics, c);
    case CHANGE_ADD_ENCRYPTION_KEY:
        return add_encryption_key(w, c);
    case CHANGE_REMOVE_ENCRYPTION_KEY:
        return replace_item(w, &w->m.encryption_keys, "key-id", 0, c->text, NULL);
    }
    return err_set(w->err, TARN_INVALID, "change %d is unknown", (int)c->kind);
}
