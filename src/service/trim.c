/* service/trim.c - see trim.h. */
#include "service/trim.h"

#include "base/map.h"
#include "read/scan.h"

#define DEFAULT_AGE_MS INT64_C(432000000) /* Iceberg's own: 5 days */
#define MOST           100                /* in one commit */

static bool is_simple(const tarn_metadata *m) {
    bool simple = m->format_version > 1 && m->n_refs == 1 && !m->refs[0].is_tag;
    for (int32_t i = 0; simple && i < m->n_snapshots; i++) {
        tarn_str operation;
        simple = m->snapshots[i]->manifest_list.len > 0 &&
                 properties_get(&m->snapshots[i]->summary, "operation", &operation) &&
                 str_is(operation, "append");
    }
    return simple;
}

static tarn_code read_policy(const tarn_metadata *m, int64_t *age_ms, int64_t *keep,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(properties_i64(&m->properties, "history.expire.max-snapshot-age-ms", DEFAULT_AGE_MS, age_ms,
                       err));
    TRY(properties_i64(&m->properties, "history.expire.min-snapshots-to-keep", 1, keep, err));
    *age_ms = m->refs[0].max_snapshot_age_ms >= 0 ? m->refs[0].max_snapshot_age_ms : *age_ms;
    *keep = m->refs[0].min_snapshots_to_keep >= 0 ? m->refs[0].min_snapshots_to_keep : *keep;
    *keep = *keep < 1 ? 1 : *keep;
done:
    return code;
}

tarn_code trim_find(tarn_arena *arena, const tarn_metadata *m, const tarn_metadata *base,
                    int64_t now_ms, trim_plan *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t age_ms, keep;
    bool wanted = false;
    memset(out, 0, sizeof *out);
    if (properties_bool(&m->properties, TRIM_PROPERTY, false, &wanted, NULL) != TARN_OK ||
        !wanted || !is_simple(m)) {
        return TARN_OK;
    }
    TRY(read_policy(m, &age_ms, &keep, err));
    const tarn_snapshot *s = metadata_snapshot_by_id(m, m->refs[0].snapshot_id);
    int64_t kept = 0;
    while (s != NULL && kept < m->n_snapshots &&
           (kept < keep || s->timestamp_ms >= now_ms - age_ms ||
            s->sequence_number > base->last_sequence_number)) {
        out->oldest_kept = s;
        kept++;
        s = metadata_parent(m, s);
    }
    int32_t n = 0;
    const tarn_snapshot **expired =
        ARENA_ARRAY(arena, const tarn_snapshot *, (size_t)m->n_snapshots + 1);
    int64_t *ids = ARENA_ARRAY(arena, int64_t, (size_t)m->n_snapshots + 1);
    if (expired == NULL || ids == NULL) {
        return err_nomem(err);
    }
    for (; s != NULL && n < m->n_snapshots; s = metadata_parent(m, s)) {
        expired[n] = s;
        ids[n++] = s->snapshot_id;
    }
    /* Snapshots beside the branch make it no simple case. The oldest go first, some at a time. */
    if (n == 0 || n + kept != m->n_snapshots) {
        return TARN_OK;
    }
    int32_t first = n > MOST ? n - MOST : 0;
    out->oldest_kept = first > 0 ? expired[first - 1] : out->oldest_kept;
    out->expired = expired + first;
    out->n = n - first;
    out->change.kind = CHANGE_REMOVE_SNAPSHOTS;
    out->change.ids = ids + first;
    out->change.n_ids = out->n;
done:
    return code;
}

static tarn_code remove_files(tarn_arena *arena, tarn_store *store, const trim_plan *plan,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_map known;
    const tarn_manifest *list;
    int32_t n;
    bool added;
    map_init(&known, arena);
    TRY(snapshot_manifests(arena, store, plan->oldest_kept, &list, &n, err));
    for (int32_t i = 0; i < n; i++) {
        if (map_put(&known, list[i].path, NULL) == NULL) {
            return err_nomem(err);
        }
    }
    for (int32_t k = 0; k < plan->n; k++) {
        TRY(snapshot_manifests(arena, store, plan->expired[k], &list, &n, err));
        for (int32_t i = 0; i < n; i++) {
            if (map_put(&known, list[i].path, &added) == NULL) {
                return err_nomem(err);
            }
            if (added) { /* merged away before the oldest that stays */
                store_discard(store, list[i].path);
            }
        }
        store_discard(store, plan->expired[k]->manifest_list);
    }
done:
    return code;
}

void trim_files(tarn_env *env, tarn_store *store, const trim_plan *plan) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    if (plan->n > 0 && remove_files(&arena, store, plan, &err) != TARN_OK) {
        env_log(env, TARN_LOG_WARN, "service", "trim", "%s", err.message);
    }
    arena_release(&arena);
}
