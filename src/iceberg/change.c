/* iceberg/change.c - from a base and a change set to the next metadata (REST specification,
 * commitTable; the behaviour is that of Iceberg Java's TableMetadata.Builder).
 *
 * Invariants: 1 nothing of base is written to; 2 the current snapshot and main are always the same;
 * 3 sequence numbers and row ids only grow (B31); 4 the snapshot log holds no snapshot that main
 * only passed through in this change set, and nothing from before a removed snapshot. */
#include "iceberg/change.h"

#include "iceberg/change_int.h"
#include "iceberg/schema_check.h"
#include "iceberg/spec_text.h"

int32_t change_set_count(const tarn_change_set *set, change_kind kind) {
    int32_t n = 0;
    for (int32_t i = 0; i < set->n_changes; i++) {
        n += set->changes[i].kind == kind;
    }
    return n;
}

/* ---- requirements ---- */

static tarn_code wanted_number(const char *what, int64_t wanted, int64_t there, tarn_error *err) {
    return wanted == there ? TARN_OK
                           : err_set(err, TARN_CONFLICT,
                                     "requirement failed: %s changed: %lld was wanted, "
                                     "and %lld is there",
                                     what, (long long)wanted, (long long)there);
}

static tarn_code check_ref(const tarn_metadata *base, const tarn_requirement *r, tarn_error *err) {
    const tarn_ref *ref = metadata_ref(base, r->text);
    if (ref == NULL) {
        return r->number == TARN_NO_SNAPSHOT
                   ? TARN_OK
                   : err_set(err, TARN_CONFLICT,
                             "requirement failed: branch or tag %.*s is missing, expected %lld",
                             STR_ARG(r->text), (long long)r->number);
    }
    if (r->number == TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_CONFLICT,
                       "requirement failed: branch or tag %.*s was created concurrently at "
                       "snapshot %lld",
                       STR_ARG(r->text), (long long)ref->snapshot_id);
    }
    return r->number == ref->snapshot_id
               ? TARN_OK
               : err_set(
                     err, TARN_CONFLICT,
                     "requirement failed: branch or tag %.*s has changed: expected id %lld, and "
                     "it is at %lld",
                     STR_ARG(r->text), (long long)r->number, (long long)ref->snapshot_id);
}

static tarn_code check_one(const tarn_metadata *base, const tarn_requirement *r, tarn_error *err) {
    switch (r->kind) {
    case REQUIRE_CREATE:
        return err_set(err, TARN_CONFLICT, "requirement failed: table already exists");
    case REQUIRE_UUID:
        return str_eq_nocase(r->text, base->table_uuid)
                   ? TARN_OK
                   : err_set(err, TARN_CONFLICT,
                             "requirement failed: UUID does not match: %.*s was wanted, and %.*s "
                             "is there",
                             STR_ARG(r->text), STR_ARG(base->table_uuid));
    case REQUIRE_REF_SNAPSHOT_ID:
        return check_ref(base, r, err);
    case REQUIRE_LAST_ASSIGNED_FIELD_ID:
        return wanted_number("last assigned field id", r->number, base->last_column_id, err);
    case REQUIRE_CURRENT_SCHEMA_ID:
        return wanted_number("current schema", r->number, base->current_schema_id, err);
    case REQUIRE_LAST_ASSIGNED_PARTITION_ID:
        return wanted_number("last assigned partition id", r->number, base->last_partition_id, err);
    case REQUIRE_DEFAULT_SPEC_ID:
        return wanted_number("default partition spec", r->number, base->default_spec_id, err);
    case REQUIRE_DEFAULT_SORT_ORDER_ID:
        return wanted_number("default sort order", r->number, base->default_sort_order_id, err);
    }
    return err_set(err, TARN_INVALID, "requirement %d is unknown", (int)r->kind);
}

tarn_code change_check(const tarn_metadata *base, const tarn_change_set *set, tarn_error *err) {
    bool create = false;
    for (int32_t i = 0; i < set->n_requirements; i++) {
        create |= set->requirements[i].kind == REQUIRE_CREATE;
    }
    if (base == NULL) {
        return create ? TARN_OK
                      : err_set(err, TARN_CONFLICT, "requirement failed: the table does not exist");
    }
    for (int32_t i = 0; i < set->n_requirements; i++) {
        tarn_code code = check_one(base, &set->requirements[i], err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* ---- the frame ---- */

/* A private copy of a list with room for extra more. */
static void *widen(tarn_arena *arena, const void *list, int32_t n, int32_t extra, size_t size) {
    void *copy = arena_calloc(arena, (size_t)n + (size_t)extra, size);
    if (copy != NULL && n > 0) {
        memcpy(copy, list, (size_t)n * size);
    }
    return copy;
}

static tarn_code begin_work(change_work *w, const tarn_metadata *base, int32_t n_changes) {
    tarn_metadata *m = &w->m;
    int32_t more = n_changes + 1; /* a new table may lack a spec or an order: one is added */
    w->base = base;
    if (base != NULL) {
        *m = *base;
    } else {
        memset(m, 0, sizeof *m);
        m->format_version = 2;
        m->last_partition_id = TARN_FIRST_PARTITION_ID - 1;
        m->current_snapshot_id = TARN_NO_SNAPSHOT;
        m->current_schema_id = -1;
        m->default_spec_id = -1;
        m->default_sort_order_id = -1;
    }
    w->last_schema = w->last_spec = w->last_order = -1;
    w->n_base_snapshots = m->n_snapshots;
    w->schemas = widen(w->arena, m->schemas, m->n_schemas, more, sizeof *w->schemas);
    w->specs = widen(w->arena, m->specs, m->n_specs, more, sizeof *w->specs);
    w->sort_orders =
        widen(w->arena, m->sort_orders, m->n_sort_orders, more, sizeof *w->sort_orders);
    w->snapshots = widen(w->arena, m->snapshots, m->n_snapshots, more, sizeof *w->snapshots);
    w->refs = widen(w->arena, m->refs, m->n_refs, more, sizeof *w->refs);
    w->log = widen(w->arena, m->snapshot_log, m->n_snapshot_log, more, sizeof *w->log);
    w->set_main = ARENA_ARRAY(w->arena, int64_t, (size_t)more);
    if (w->schemas == NULL || w->specs == NULL || w->sort_orders == NULL || w->snapshots == NULL ||
        w->refs == NULL || w->log == NULL || w->set_main == NULL) {
        return err_nomem(w->err);
    }
    m->schemas = w->schemas;
    m->specs = w->specs;
    m->sort_orders = w->sort_orders;
    m->snapshots = w->snapshots;
    m->refs = w->refs;
    m->snapshot_log = w->log;
    return TARN_OK;
}

static bool passed_through(const change_work *w, int64_t id) {
    if (id == w->m.current_snapshot_id) {
        return false;
    }
    for (int32_t i = 0; i < w->n_set_main; i++) {
        if (w->set_main[i] == id) {
            return true;
        }
    }
    return false;
}

/* Snapshots that main only passed through leave no trace, and history before a removed snapshot is
 * cut off, since it would have a hole. */
static void trim_log(change_work *w) {
    int32_t kept = 0;
    bool passed =
        w->n_set_main > 1 || (w->n_set_main == 1 && w->set_main[0] != w->m.current_snapshot_id);
    if (!w->removed_snapshots && !passed) {
        return;
    }
    for (int32_t i = 0; i < w->m.n_snapshot_log; i++) {
        tarn_snapshot_log_entry entry = w->log[i];
        if (metadata_snapshot_by_id(&w->m, entry.snapshot_id) == NULL) {
            kept = w->removed_snapshots ? 0 : kept;
        } else if (!passed_through(w, entry.snapshot_id)) {
            w->log[kept++] = entry;
        }
    }
    w->m.n_snapshot_log = kept;
}

static tarn_code fill_new_table(change_work *w) {
    static const tarn_spec unpartitioned = {0, 0, NULL};
    static const tarn_sort_order unsorted = {0, 0, NULL};
    tarn_metadata *m = &w->m;
    if (m->n_specs == 0) {
        w->specs[m->n_specs++] = &unpartitioned;
    }
    if (m->n_sort_orders == 0) {
        w->sort_orders[m->n_sort_orders++] = &unsorted;
    }
    m->default_spec_id = m->default_spec_id < 0 ? m->specs[0]->spec_id : m->default_spec_id;
    m->default_sort_order_id =
        m->default_sort_order_id < 0 ? m->sort_orders[0]->order_id : m->default_sort_order_id;
    if (m->current_schema_id < 0 && m->n_schemas > 0) {
        m->current_schema_id = m->schemas[0]->schema_id;
    }
    return m->location.len > 0 ? TARN_OK
                               : err_set(w->err, TARN_INVALID, "a new table had no location");
}

static tarn_code give_uuid(change_work *w) {
    if (w->m.table_uuid.len > 0) {
        return TARN_OK;
    }
    char *uuid = arena_alloc(w->arena, 37);
    if (uuid == NULL) {
        return err_nomem(w->err);
    }
    env_uuid_v4(w->arena->env, uuid);
    w->m.table_uuid = str_of(uuid);
    return TARN_OK;
}

static tarn_code end_work(change_work *w) {
    tarn_metadata *m = &w->m;
    tarn_error *err = w->err;
    tarn_code code = TARN_OK;
    if (w->base == NULL) {
        TRY(fill_new_table(w));
    }
    if (w->base == NULL || m->format_version > 1) {
        TRY(give_uuid(w));
    }
    const tarn_schema *schema = metadata_schema(m);
    const tarn_spec *spec = metadata_spec(m);
    const tarn_sort_order *order = metadata_sort_order(m);
    if (schema == NULL || spec == NULL) {
        TRY(err_set(err, TARN_INVALID, "the changes left the table without a current %s",
                    schema == NULL ? "schema" : "partition spec"));
    }
    /* What was there before may be as odd as its writer left it: it does not stop other changes. */
    if (w->base == NULL || w->base->current_schema_id != m->current_schema_id ||
        w->base->default_spec_id != m->default_spec_id ||
        w->base->default_sort_order_id != m->default_sort_order_id) {
        TRY(spec_check_sources(schema->root, spec, err));
        TRY(order != NULL ? sort_order_check_sources(schema->root, order, err) : TARN_OK);
    }
    if (w->base != NULL && w->base->current_schema_id != m->current_schema_id) {
        TRY(schema_check_written(w->arena, w->base, m, err));
    }
    trim_log(w);
    m->last_updated_ms = w->now_ms > m->last_updated_ms ? w->now_ms : m->last_updated_ms;
    if (m->n_snapshot_log > 0 &&
        m->snapshot_log[m->n_snapshot_log - 1].timestamp_ms > m->last_updated_ms) {
        m->last_updated_ms = m->snapshot_log[m->n_snapshot_log - 1].timestamp_ms;
    }
done:
    return code;
}

tarn_code change_apply(tarn_arena *arena, const tarn_metadata *base, const tarn_change_set *set,
                       int64_t now_ms, const tarn_metadata **out, tarn_error *err) {
    change_work *w = ARENA_NEW(arena, change_work);
    tarn_code code = TARN_OK;
    if (w == NULL) {
        return err_nomem(err);
    }
    w->arena = arena;
    w->err = err;
    w->now_ms = now_ms;
    TRY(change_check(base, set, err));
    TRY(begin_work(w, base, set->n_changes));
    for (int32_t i = 0; i < set->n_changes; i++) {
        TRY(change_step(w, &set->changes[i]));
    }
    TRY(end_work(w));
    *out = &w->m;
done:
    return code;
}

tarn_code change_log_previous(tarn_arena *arena, const tarn_metadata *m, tarn_str previous_location,
                              int64_t previous_updated_ms, const tarn_metadata **out,
                              const tarn_str **removed, int32_t *n_removed, tarn_error *err) {
    int64_t most = 0;
    tarn_code code =
        properties_i64(&m->properties, "write.metadata.previous-versions-max", 100, &most, err);
    if (code != TARN_OK) {
        return code;
    }
    most = most < 1 ? 1 : most;
    int32_t n = m->n_metadata_log;
    int32_t drop = n >= most ? (int32_t)(n - most + 1) : 0;
    tarn_metadata *copy = ARENA_NEW(arena, tarn_metadata);
    tarn_metadata_log_entry *log =
        ARENA_ARRAY(arena, tarn_metadata_log_entry, (size_t)(n - drop) + 1);
    tarn_str *gone = ARENA_ARRAY(arena, tarn_str, (size_t)drop);
    tarn_str location = arena_str(arena, previous_location);
    if (copy == NULL || log == NULL || gone == NULL || location.data == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        if (i < drop) {
            gone[i] = m->metadata_log[i].metadata_file;
        } else {
            log[i - drop] = m->metadata_log[i];
        }
    }
    log[n - drop] = (tarn_metadata_log_entry){previous_updated_ms, location};
    *copy = *m;
    copy->metadata_log = log;
    copy->n_metadata_log = n - drop + 1;
    *out = copy;
    if (removed != NULL) {
        *removed = gone;
    }
    if (n_removed != NULL) {
        *n_removed = drop;
    }
    return TARN_OK;
}
