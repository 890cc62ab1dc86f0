/* iceberg/metadata_read.c - a metadata document from its JSON (spec, "Table Metadata Fields",
 * Appendix C, and the defaults of Appendix E for older versions).
 *
 * Read leniently where documents of real writers differ (absent, null and -1 mean no snapshot; a v1
 * table may know only "schema" and "partition-spec"), strictly where a guess could lose data (ids
 * that nothing answers to, a main branch that is not the current snapshot). */
#include <stdio.h>

#include "base/limits.h"
#include "format/codec.h"
#include "iceberg/metadata_int.h"

#define HIGHEST_VERSION 3

static const char *const table_members[] = {"format-version",
                                            "table-uuid",
                                            "location",
                                            "last-sequence-number",
                                            "last-updated-ms",
                                            "last-column-id",
                                            "schema",
                                            "schemas",
                                            "current-schema-id",
                                            "partition-spec",
                                            "partition-specs",
                                            "default-spec-id",
                                            "last-partition-id",
                                            "sort-orders",
                                            "default-sort-order-id",
                                            "properties",
                                            "current-snapshot-id",
                                            "refs",
                                            "snapshots",
                                            "snapshot-log",
                                            "metadata-log",
                                            "statistics",
                                            "partition-statistics",
                                            "encryption-keys",
                                            "next-row-id",
                                            NULL};

typedef struct reading {
    tarn_arena *arena;
    const json_value *root;
    const char *what;
    tarn_metadata *m;
    const tarn_metadata *known; /* NULL, or: has the snapshots and their log */
    tarn_error *err;
} reading;

static tarn_code read_head(reading *r) {
    tarn_metadata *m = r->m;
    tarn_error *err = r->err;
    tarn_code code = TARN_OK;
    TRY(json_need_i32(r->root, "format-version", r->what, &m->format_version, err));
    if (m->format_version < 1) {
        TRY(err_set(err, TARN_CORRUPT, "%s: format version %d is none", r->what,
                    m->format_version));
    }
    if (m->format_version > HIGHEST_VERSION) {
        TRY(err_set(err, TARN_UNSUPPORTED,
                    "%s: format version %d is not supported; the highest supported one is %d",
                    r->what, m->format_version, HIGHEST_VERSION));
    }
    if (m->format_version > 1 || json_member(r->root, "table-uuid") != NULL) {
        TRY(json_need_str(r->root, "table-uuid", r->what, &m->table_uuid, err));
    }
    if (m->format_version > 1) {
        TRY(json_need_i64(r->root, "last-sequence-number", r->what, &m->last_sequence_number, err));
    }
    TRY(json_need_str(r->root, "location", r->what, &m->location, err));
    TRY(json_need_i64(r->root, "last-updated-ms", r->what, &m->last_updated_ms, err));
    TRY(json_need_i32(r->root, "last-column-id", r->what, &m->last_column_id, err));
    TRY(json_want_i64(r->root, "next-row-id", r->what, 0, &m->next_row_id, err));
    TRY(properties_from_json(r->arena, json_member(r->root, "properties"), r->what, &m->properties,
                             err));
    TRY(json_want_array(r->root, "statistics", r->what, &m->statistics, err));
    TRY(json_want_array(r->root, "partition-statistics", r->what, &m->partition_statistics, err));
    TRY(json_want_array(r->root, "encryption-keys", r->what, &m->encryption_keys, err));
    TRY(json_unknown(r->arena, r->root, table_members, &m->extra, err));
done:
    return code;
}

static tarn_code read_schemas(reading *r) {
    tarn_metadata *m = r->m;
    const json_value *array = NULL;
    tarn_code code = json_want_array(r->root, "schemas", r->what, &array, r->err);
    if (code != TARN_OK) {
        return code;
    }
    bool legacy = array == NULL || array->count == 0;
    const json_value *one = json_member(r->root, "schema");
    if (legacy && (one == NULL || m->format_version > 1)) {
        return err_set(r->err, TARN_CORRUPT, "%s: \"schemas\" was missing", r->what);
    }
    size_t n = legacy ? 1 : array->count;
    const tarn_schema **schemas = ARENA_ARRAY(r->arena, const tarn_schema *, n);
    if (schemas == NULL) {
        return err_nomem(r->err);
    }
    for (const json_value *j = legacy ? one : array->first; j != NULL;
         j = legacy ? NULL : j->next) {
        code = schema_from_json(r->arena, j, &schemas[m->n_schemas], r->err);
        if (code != TARN_OK) {
            return code;
        }
        m->n_schemas++;
    }
    m->schemas = schemas;
    if (legacy || m->n_schemas == 1) {
        m->current_schema_id = schemas[0]->schema_id;
    }
    if (!legacy) {
        code = m->n_schemas == 1 && m->format_version == 1
                   ? json_want_i32(r->root, "current-schema-id", r->what, m->current_schema_id,
                                   &m->current_schema_id, r->err)
                   : json_need_i32(r->root, "current-schema-id", r->what, &m->current_schema_id,
                                   r->err);
    }
    if (code == TARN_OK && metadata_schema(m) == NULL) {
        code = err_set(r->err, TARN_CORRUPT, "%s: current schema %d was missing from the schemas",
                       r->what, m->current_schema_id);
    }
    return code;
}

/* v1 tables may have only the fields of one spec, without ids. */
static tarn_code read_legacy_spec(reading *r) {
    const json_value *fields = json_member(r->root, "partition-spec");
    tarn_spec *spec = ARENA_NEW(r->arena, tarn_spec);
    const tarn_spec **specs = ARENA_NEW(r->arena, const tarn_spec *);
    if (spec == NULL || specs == NULL) {
        return err_nomem(r->err);
    }
    if (fields == NULL || r->m->format_version > 1) {
        return err_set(r->err, TARN_CORRUPT, "%s: \"partition-specs\" was missing", r->what);
    }
    tarn_code code = json_is(fields, JSON_OBJECT)
                         ? spec_from_json(r->arena, fields, spec, r->err)
                         : spec_fields_from_json(r->arena, fields, spec, r->err);
    specs[0] = spec;
    r->m->specs = specs;
    r->m->n_specs = 1;
    r->m->default_spec_id = spec->spec_id;
    return code;
}

static tarn_code read_spec_list(reading *r, const json_value *array) {
    tarn_metadata *m = r->m;
    const tarn_spec **specs = ARENA_ARRAY(r->arena, const tarn_spec *, array->count);
    tarn_spec *items = ARENA_ARRAY(r->arena, tarn_spec, array->count);
    if (specs == NULL || items == NULL) {
        return err_nomem(r->err);
    }
    for (const json_value *j = array->first; j != NULL; j = j->next) {
        tarn_code code = spec_from_json(r->arena, j, &items[m->n_specs], r->err);
        if (code != TARN_OK) {
            return code;
        }
        specs[m->n_specs] = &items[m->n_specs];
        m->n_specs++;
    }
    m->specs = specs;
    tarn_code code =
        json_need_i32(r->root, "default-spec-id", r->what, &m->default_spec_id, r->err);
    if (code == TARN_OK && metadata_spec(m) == NULL) {
        code = err_set(r->err, TARN_CORRUPT, "%s: default spec %d was missing from the specs",
                       r->what, m->default_spec_id);
    }
    return code;
}

static tarn_code read_specs(reading *r) {
    tarn_metadata *m = r->m;
    const json_value *array = NULL;
    tarn_code code = json_want_array(r->root, "partition-specs", r->what, &array, r->err);
    if (code != TARN_OK) {
        return code;
    }
    code = array == NULL || array->count == 0 ? read_legacy_spec(r) : read_spec_list(r, array);
    if (code != TARN_OK) {
        return code;
    }
    int32_t last = TARN_FIRST_PARTITION_ID - 1;
    for (int32_t i = 0; i < m->n_specs; i++) {
        for (int32_t k = 0; k < m->specs[i]->n_fields; k++) {
            int32_t id = m->specs[i]->fields[k].field_id;
            last = id > last ? id : last;
        }
    }
    return json_want_i32(r->root, "last-partition-id", r->what, last, &m->last_partition_id,
                         r->err);
}

static tarn_code read_sort_orders(reading *r) {
    tarn_metadata *m = r->m;
    const json_value *array = NULL;
    tarn_code code = json_want_array(r->root, "sort-orders", r->what, &array, r->err);
    if (code != TARN_OK) {
        return code;
    }
    bool none = array == NULL || array->count == 0;
    size_t n = none ? 1 : array->count;
    const tarn_sort_order **orders = ARENA_ARRAY(r->arena, const tarn_sort_order *, n);
    tarn_sort_order *items = ARENA_ARRAY(r->arena, tarn_sort_order, n);
    if (orders == NULL || items == NULL) {
        return err_nomem(r->err);
    }
    orders[0] = &items[0]; /* order 0, unsorted */
    for (const json_value *j = none ? NULL : array->first; j != NULL; j = j->next) {
        code = sort_order_from_json(r->arena, j, &items[m->n_sort_orders], r->err);
        if (code != TARN_OK) {
            return code;
        }
        orders[m->n_sort_orders] = &items[m->n_sort_orders];
        m->n_sort_orders++;
    }
    m->n_sort_orders = none ? 1 : m->n_sort_orders;
    m->sort_orders = orders;
    code = json_want_i32(r->root, "default-sort-order-id", r->what, 0, &m->default_sort_order_id,
                         r->err);
    if (code == TARN_OK && m->default_sort_order_id != 0 && metadata_sort_order(m) == NULL) {
        code = err_set(r->err, TARN_CORRUPT,
                       "%s: default sort order %d was missing from the sort orders", r->what,
                       m->default_sort_order_id);
    }
    return code;
}

static tarn_code take_known(reading *r) {
    tarn_metadata *m = r->m;
    const tarn_metadata *known = r->known;
    const tarn_snapshot **list =
        ARENA_ARRAY(r->arena, const tarn_snapshot *, (size_t)known->n_snapshots + 1);
    tarn_snapshot_log_entry *log =
        ARENA_ARRAY(r->arena, tarn_snapshot_log_entry, (size_t)known->n_snapshot_log + 1);
    if (list == NULL || log == NULL) {
        return err_nomem(r->err);
    }
    if (known->n_snapshots > 0) {
        memcpy(list, known->snapshots, (size_t)known->n_snapshots * sizeof *list);
    }
    if (known->n_snapshot_log > 0) {
        memcpy(log, known->snapshot_log, (size_t)known->n_snapshot_log * sizeof *log);
    }
    m->snapshots = list;
    m->n_snapshots = known->n_snapshots;
    m->snapshot_log = log;
    m->n_snapshot_log = known->n_snapshot_log;
    return TARN_OK;
}

static tarn_code read_snapshots(reading *r) {
    tarn_metadata *m = r->m;
    const json_value *array = NULL;
    tarn_code code = json_want_array(r->root, "snapshots", r->what, &array, r->err);
    if (code == TARN_OK && r->known != NULL) {
        code = take_known(r);
        array = NULL;
    }
    if (code == TARN_OK) {
        code = json_want_i64(r->root, "current-snapshot-id", r->what, TARN_NO_SNAPSHOT,
                             &m->current_snapshot_id, r->err);
    }
    if (code != TARN_OK || array == NULL) {
        return code;
    }
    tarn_snapshot *items = ARENA_ARRAY(r->arena, tarn_snapshot, array->count);
    const tarn_snapshot **list = ARENA_ARRAY(r->arena, const tarn_snapshot *, array->count);
    if (items == NULL || list == NULL) {
        return err_nomem(r->err);
    }
    for (const json_value *j = array->first; j != NULL; j = j->next) {
        code = snapshot_from_json(r->arena, j, &items[m->n_snapshots], r->err);
        if (code != TARN_OK) {
            return code;
        }
        list[m->n_snapshots] = &items[m->n_snapshots];
        m->n_snapshots++;
    }
    m->snapshots = list;
    return TARN_OK;
}

static tarn_code read_ref_list(reading *r, const json_value *object, tarn_ref *refs) {
    tarn_metadata *m = r->m;
    for (const json_value *j = object->first; j != NULL; j = j->next) {
        tarn_ref *ref = &refs[m->n_refs];
        tarn_code code = ref_from_json(j, j->name, ref, r->err);
        if (code != TARN_OK) {
            return code;
        }
        if (metadata_snapshot_by_id(m, ref->snapshot_id) == NULL) {
            return err_set(r->err, TARN_CORRUPT,
                           "%s: snapshot %lld of reference %.*s was missing from the snapshots",
                           r->what, (long long)ref->snapshot_id, STR_ARG(ref->name));
        }
        m->n_refs++;
    }
    return TARN_OK;
}

/* The current snapshot and the main branch are one thing under two names. */
static tarn_code read_refs(reading *r) {
    tarn_metadata *m = r->m;
    const json_value *object = json_member(r->root, "refs");
    if (object != NULL && object->kind != JSON_OBJECT) {
        return err_set(r->err, TARN_CORRUPT, "%s: \"refs\" was not an object", r->what);
    }
    tarn_ref *refs = ARENA_ARRAY(r->arena, tarn_ref, (object != NULL ? object->count : 0) + 1);
    if (refs == NULL) {
        return err_nomem(r->err);
    }
    m->refs = refs;
    if (m->current_snapshot_id != TARN_NO_SNAPSHOT && metadata_current_snapshot(m) == NULL) {
        return err_set(r->err, TARN_CORRUPT,
                       "%s: current snapshot %lld was missing from the snapshots", r->what,
                       (long long)m->current_snapshot_id);
    }
    tarn_code code = object != NULL ? read_ref_list(r, object, refs) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    const tarn_ref *main_ref = metadata_ref(m, STR(TARN_MAIN_BRANCH));
    if (main_ref == NULL) {
        if (m->current_snapshot_id != TARN_NO_SNAPSHOT) {
            refs[m->n_refs++] =
                (tarn_ref){STR(TARN_MAIN_BRANCH), m->current_snapshot_id, false, -1, -1, -1};
        }
    } else if (m->current_snapshot_id == TARN_NO_SNAPSHOT) {
        m->current_snapshot_id = main_ref->snapshot_id;
    } else if (main_ref->snapshot_id != m->current_snapshot_id) {
        return err_set(r->err, TARN_CORRUPT,
                       "%s: main was snapshot %lld and current-snapshot-id was %lld", r->what,
                       (long long)main_ref->snapshot_id, (long long)m->current_snapshot_id);
    }
    return TARN_OK;
}

static tarn_code read_snapshot_log(reading *r) {
    tarn_metadata *m = r->m;
    tarn_error *err = r->err;
    const json_value *array = NULL;
    tarn_code code = TARN_OK;
    TRY(json_want_array(r->root, "snapshot-log", r->what, &array, err));
    tarn_snapshot_log_entry *log =
        ARENA_ARRAY(r->arena, tarn_snapshot_log_entry, array != NULL ? array->count : 0);
    if (log == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *j = array != NULL ? array->first : NULL; j != NULL;
         j = j->next, m->n_snapshot_log++) {
        TRY(json_need_i64(j, "timestamp-ms", r->what, &log[m->n_snapshot_log].timestamp_ms, err));
        TRY(json_need_i64(j, "snapshot-id", r->what, &log[m->n_snapshot_log].snapshot_id, err));
    }
    m->snapshot_log = log;
done:
    return code;
}

static tarn_code read_metadata_log(reading *r) {
    tarn_metadata *m = r->m;
    tarn_error *err = r->err;
    const json_value *array = NULL;
    tarn_code code = TARN_OK;
    TRY(json_want_array(r->root, "metadata-log", r->what, &array, err));
    tarn_metadata_log_entry *log =
        ARENA_ARRAY(r->arena, tarn_metadata_log_entry, array != NULL ? array->count : 0);
    if (log == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *j = array != NULL ? array->first : NULL; j != NULL;
         j = j->next, m->n_metadata_log++) {
        TRY(json_need_i64(j, "timestamp-ms", r->what, &log[m->n_metadata_log].timestamp_ms, err));
        TRY(json_need_str(j, "metadata-file", r->what, &log[m->n_metadata_log].metadata_file, err));
    }
    m->metadata_log = log;
done:
    return code;
}

static tarn_code read_document(reading *r) {
    tarn_error *err = r->err;
    tarn_code code = TARN_OK;
    if (!json_is(r->root, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "%s: the document was not an object", r->what);
    }
    if (json_get(r->root, "view-uuid") != NULL) {
        TRY(err_set(err, TARN_UNSUPPORTED, "%s: the document is a view, not a table", r->what));
    }
    TRY(read_head(r));
    TRY(read_schemas(r));
    TRY(read_specs(r));
    TRY(read_sort_orders(r));
    TRY(read_snapshots(r));
    TRY(read_refs(r));
    if (r->known == NULL) {
        TRY(read_snapshot_log(r));
    }
    TRY(read_metadata_log(r));
done:
    return code == TARN_OK ? code : err_add(err, code, "metadata %s", r->what);
}

static tarn_code unpack(tarn_arena *arena, codec_kind kind, tarn_str text, tarn_buf *out,
                        tarn_error *err) {
    codec_ctx ctx;
    codec_ctx_init(&ctx, arena->env);
    tarn_code code = codec_decompress_buf(&ctx, kind, text, out, err);
    codec_ctx_release(&ctx);
    return code;
}

tarn_code metadata_from_json(tarn_arena *arena, const json_value *json, const char *what,
                             const tarn_metadata **out, tarn_error *err) {
    reading r = {arena, json, what, ARENA_NEW(arena, tarn_metadata), NULL, err};
    tarn_code code = r.m != NULL ? read_document(&r) : err_nomem(err);
    if (code == TARN_OK) {
        *out = r.m;
    }
    return code;
}

tarn_code metadata_parse_json(tarn_arena *arena, tarn_str text, const char *what, json_value **out,
                              tarn_error *err) {
    tarn_buf unpacked;
    tarn_code code = TARN_OK;
    buf_init(&unpacked, arena->env, LIMIT_METADATA_JSON_BYTES);
    codec_kind kind = codec_sniff(text.data, text.len);
    if (kind != CODEC_NONE) {
        TRY(unpack(arena, kind, text, &unpacked, err));
        text = buf_str(&unpacked);
    }
    if (text.len > LIMIT_METADATA_JSON_BYTES) {
        TRY(err_set(err, TARN_LIMIT, "%s: %zu bytes are more than the limit of %u", what, text.len,
                    LIMIT_METADATA_JSON_BYTES));
    }
    code = json_parse(arena, text, what, out, err);
done:
    buf_release(&unpacked);
    return code;
}

tarn_code metadata_parse(tarn_arena *arena, tarn_str text, const char *what,
                         const tarn_metadata **out, tarn_error *err) {
    json_value *root = NULL;
    tarn_code code = metadata_parse_json(arena, text, what, &root, err);
    return code == TARN_OK ? metadata_from_json(arena, root, what, out, err) : code;
}

tarn_code metadata_read_back(tarn_arena *arena, const tarn_metadata *m, const char *what,
                             const tarn_metadata **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    json_value *root = NULL;
    tarn_metadata rest = *m;
    rest.n_snapshots = 0;
    rest.n_snapshot_log = 0;
    buf_init(&text, arena->env, LIMIT_METADATA_JSON_BYTES);
    TRY(metadata_write(&rest, &text, err));
    TRY(json_parse(arena, buf_str(&text), what, &root, err));
    reading r = {arena, root, what, ARENA_NEW(arena, tarn_metadata), m, err};
    code = r.m != NULL ? read_document(&r) : err_nomem(err);
    if (code == TARN_OK) {
        *out = r.m;
    }
done:
    buf_release(&text);
    return code;
}
