/* read/history.c - a snapshot's ancestors, and the appends among them (incremental reads). */
#include "read/history.h"

static tarn_code not_an_ancestor(const tarn_metadata *m, int64_t from_id, const tarn_snapshot *last,
                                 const tarn_snapshot *oldest, tarn_error *err) {
    if (from_id != TARN_NO_SNAPSHOT && metadata_snapshot_by_id(m, from_id) != NULL &&
        oldest->parent_id == TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_INVALID, "snapshot %lld is no ancestor of snapshot %lld",
                       (long long)from_id, (long long)last->snapshot_id);
    }
    if (from_id != TARN_NO_SNAPSHOT && oldest->parent_id == TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_NOT_FOUND, "there is no snapshot %lld: it may have been expired",
                       (long long)from_id);
    }
    return err_set(err, TARN_NOT_FOUND,
                   "snapshot %lld, the parent of snapshot %lld, was expired: what changed before "
                   "cannot be told",
                   (long long)oldest->parent_id, (long long)oldest->snapshot_id);
}

tarn_code history_between(tarn_arena *arena, const tarn_metadata *m, const tarn_snapshot *last,
                          int64_t from_id, const tarn_snapshot *const **out, int32_t *n,
                          tarn_error *err) {
    const tarn_snapshot **found =
        ARENA_ARRAY(arena, const tarn_snapshot *, (size_t)m->n_snapshots + 1);
    int32_t count = 0;
    if (found == NULL) {
        return err_nomem(err);
    }
    const tarn_snapshot *at = last;
    const tarn_snapshot *oldest = last;
    while (at != NULL && at->snapshot_id != from_id && count < m->n_snapshots) {
        found[m->n_snapshots - 1 - count++] = at;
        oldest = at;
        at = at->parent_id != TARN_NO_SNAPSHOT ? metadata_snapshot_by_id(m, at->parent_id) : NULL;
    }
    const bool begins = from_id != TARN_NO_SNAPSHOT && oldest != NULL &&
                        oldest->parent_id == from_id; /* from itself may be gone */
    const bool arrived = begins || (at != NULL && at->snapshot_id == from_id) ||
                         (at == NULL && from_id == TARN_NO_SNAPSHOT &&
                          (oldest == NULL || oldest->parent_id == TARN_NO_SNAPSHOT));
    if (!arrived && oldest == NULL) {
        return err_set(err, TARN_NOT_FOUND, "there is no snapshot %lld", (long long)from_id);
    }
    if (!arrived) {
        return not_an_ancestor(m, from_id, last, oldest, err);
    }
    *out = found + m->n_snapshots - count;
    *n = count;
    return TARN_OK;
}

snapshot_operation snapshot_operation_of(const tarn_snapshot *snapshot) {
    tarn_str operation;
    if (!properties_get(&snapshot->summary, "operation", &operation)) {
        return OPERATION_CHANGE;
    }
    return str_is(operation, "append")    ? OPERATION_APPEND
           : str_is(operation, "replace") ? OPERATION_REPLACE
                                          : OPERATION_CHANGE;
}

tarn_code history_check_first(tarn_arena *arena, tarn_store *store, const tarn_snapshot *first,
                              tarn_error *err) {
    const tarn_manifest *manifests;
    int32_t n;
    bool older = snapshot_operation_of(first) == OPERATION_REPLACE;
    tarn_code code = snapshot_manifests(arena, store, first, &manifests, &n, err);
    for (int32_t i = 0; code == TARN_OK && i < n; i++) {
        const tarn_manifest *m = &manifests[i];
        older = older || m->added_snapshot_id != first->snapshot_id || m->existing_files > 0 ||
                m->deleted_files > 0;
    }
    if (code == TARN_OK && older) {
        return err_set(err, TARN_NOT_FOUND,
                       "snapshot %lld is the oldest that is left and holds rows of expired ones: "
                       "what came before it cannot be told, only what came after it",
                       (long long)first->snapshot_id);
    }
    return code;
}

typedef struct manifest_list {
    tarn_manifest *items;
    int32_t n, cap;
} manifest_list;

static tarn_code add_manifests(tarn_arena *arena, tarn_store *store, const tarn_snapshot *snapshot,
                               manifest_list *to, tarn_error *err) {
    const tarn_manifest *manifests;
    int32_t n;
    tarn_code code = snapshot_manifests(arena, store, snapshot, &manifests, &n, err);
    for (int32_t i = 0; i < n && code == TARN_OK; i++) {
        if (manifests[i].added_snapshot_id != snapshot->snapshot_id || manifests[i].is_deletes) {
            continue;
        }
        if (to->n == to->cap) {
            const int32_t cap = to->cap == 0 ? 16 : to->cap * 2;
            tarn_manifest *items = arena_grow(arena, to->items, (size_t)to->cap * sizeof *items,
                                              (size_t)cap * sizeof *items);
            if (items == NULL) {
                return err_nomem(err);
            }
            to->items = items;
            to->cap = cap;
        }
        to->items[to->n++] = manifests[i];
    }
    return code;
}

tarn_code history_appended(tarn_arena *arena, tarn_store *store,
                           const tarn_snapshot *const *snapshots, int32_t n_snapshots,
                           const tarn_manifest **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    manifest_list list = {NULL, 0, 0};
    if (n_snapshots > 0 && snapshots[0]->parent_id == TARN_NO_SNAPSHOT) {
        code = history_check_first(arena, store, snapshots[0], err);
    }
    for (int32_t i = 0; i < n_snapshots && code == TARN_OK; i++) {
        switch (snapshot_operation_of(snapshots[i])) {
        case OPERATION_APPEND:
            code = add_manifests(arena, store, snapshots[i], &list, err);
            break;
        case OPERATION_REPLACE:
            break;
        case OPERATION_CHANGE:
            return err_set(
                err, TARN_INVALID,
                "snapshot %lld changed rows instead of only appending some (tarn changes "
                "tells what)",
                (long long)snapshots[i]->snapshot_id);
        }
    }
    *out = list.items;
    *n = list.n;
    return code;
}
