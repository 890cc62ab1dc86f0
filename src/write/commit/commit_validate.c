/* write/commit/commit_validate.c - does anything that was committed since the work began stand
 * against it?
 *
 * Snapshots of the branch after request->from_snapshot_id are walked newest first. With a
 * conflict_filter (serializable isolation) a data file added there that may hold rows of it is a
 * conflict. Where data files are rewritten (removed by path), a delete file added there
 * may point into them, so any is a conflict. That a removed file is still live is checked where
 * manifests are filtered. */
#include "write/commit/commit_int.h"

static tarn_code conflict_in(commit_attempt *a, const tarn_manifest *manifest,
                             const tarn_snapshot *snapshot, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_evaluator evaluator;
    manifest_entries entries;
    const tarn_spec *spec = metadata_spec_by_id(a->metadata, manifest->spec_id);
    arena_init(&arena, a->work->env);
    TRY(evaluator_init(&arena, a->metadata, spec != NULL ? spec : metadata_spec(a->metadata),
                       request->conflict_filter, &evaluator, err));
    if (!evaluator_manifest(&evaluator, manifest)) {
        goto done;
    }
    TRY(produce_read_manifest(a, &arena, manifest, MANIFEST_WANT_STATS, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        if (e->status == TARN_ENTRY_ADDED && evaluator_partition(&evaluator, e->file.partition) &&
            evaluator_file(&evaluator, &e->file)) {
            code =
                err_set(err, TARN_CONFLICT,
                        "snapshot %lld added file %.*s, which may hold rows that match the filter",
                        (long long)snapshot->snapshot_id, STR_ARG(e->file.path));
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

static tarn_code check_manifest(commit_attempt *a, const tarn_manifest *manifest,
                                const tarn_snapshot *snapshot, tarn_error *err) {
    const commit_request *request = a->work->request;
    if (manifest->added_snapshot_id != snapshot->snapshot_id || manifest->added_files == 0) {
        return TARN_OK;
    }
    if (manifest->is_deletes) {
        if (request->n_removed > 0) {
            return err_set(err, TARN_CONFLICT,
                           "snapshot %lld added row deletes, which may concern a rewritten file",
                           (long long)snapshot->snapshot_id);
        }
        return TARN_OK;
    }
    if (request->conflict_filter == NULL) {
        return TARN_OK;
    }
    return conflict_in(a, manifest, snapshot, err);
}

static tarn_code check_snapshot(commit_attempt *a, const tarn_snapshot *snapshot, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests;
    int32_t n = 0;
    TRY(produce_read_list(a, snapshot, &manifests, &n, err));
    for (int32_t i = 0; i < n; i++) {
        TRY(check_manifest(a, &manifests[i], snapshot, err));
    }
done:
    return code;
}

tarn_code validate_history(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    if (a->parent == NULL || request->kind == COMMIT_FAST_APPEND ||
        request->kind == COMMIT_MERGE_APPEND ||
        (request->n_removed == 0 && request->conflict_filter == NULL)) {
        return TARN_OK;
    }
    const tarn_snapshot *s = a->parent;
    while (s != NULL && s->snapshot_id != request->from_snapshot_id) {
        TRY(check_snapshot(a, s, err));
        s = s->parent_id != TARN_NO_SNAPSHOT ? metadata_snapshot_by_id(a->metadata, s->parent_id)
                                             : NULL;
    }
    if (s == NULL && request->from_snapshot_id != TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_CONFLICT,
                       "snapshot %lld, on which the work was based, is no ancestor of %.*s",
                       (long long)request->from_snapshot_id, STR_ARG(a->branch));
    }
done:
    return code;
}
