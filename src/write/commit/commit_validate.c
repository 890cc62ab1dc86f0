/* write/commit/commit_validate.c - does anything that was committed since the work began stand
 * against it?
 *
 * Snapshots of the branch after request->from_snapshot_id are walked newest first, but for those of
 * the caller's own (request->mine); nothing is read where there are none. A conflict is
 *   - with a conflict_filter (serializable isolation), a data file added that may hold rows of it;
 *   - a referenced data file removed (its row deletes would be lost);
 *   - row deletes added that may concern a data file which is rewritten (`removed`: they would come
 *     back; not where files are only removed, since all their rows go), or, with
 *     check_new_deletes, one that is referenced.
 *
 *   - of a snapshot that is made again (request->origin), what it says in no_new_rows and
 *     keeps_reach.
 *
 * Position deletes and vectors that name one data file concern that one, others their partition;
 * equality deletes what may hold rows of the conflict_filter, without one their partition. Without
 * from_snapshot_id nothing is known of referenced files, so they are looked for among all live
 * ones. That a removed file is still live is checked where manifests are filtered. */
#include "iceberg/delete_index.h"
#include "write/commit/commit_int.h"

typedef struct history_check {
    commit_attempt *a;
    tarn_map removed;    /* data files that are rewritten */
    tarn_map referenced; /* value 1: seen */
    tuple_set tuples;    /* of removed */
    const tarn_snapshot *snapshot;
} history_check;

static tarn_code set_evaluator(const history_check *h, tarn_arena *arena,
                               const tarn_manifest *manifest, tarn_evaluator *out,
                               tarn_error *err) {
    const tarn_metadata *m = h->a->metadata;
    const tarn_spec *spec = metadata_spec_by_id(m, manifest->spec_id);
    return evaluator_init(arena, m, spec != NULL ? spec : metadata_spec(m),
                          h->a->work->request->conflict_filter, out, err);
}

/* Data files that the snapshot added and the filter may match. */
static tarn_code check_added(const history_check *h, const tarn_manifest *manifest,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_evaluator evaluator;
    manifest_entries entries;
    arena_init(&arena, h->a->work->env);
    TRY(set_evaluator(h, &arena, manifest, &evaluator, err));
    if (!evaluator_manifest(&evaluator, manifest)) {
        goto done;
    }
    TRY(produce_read_manifest(h->a, &arena, manifest, MANIFEST_WANT_STATS, true, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        if (e->status == TARN_ENTRY_ADDED && evaluator_partition(&evaluator, e->file.partition) &&
            evaluator_file(&evaluator, &e->file)) {
            code =
                err_set(err, TARN_CONFLICT,
                        "snapshot %lld added file %.*s, which may hold rows that match the filter",
                        (long long)h->snapshot->snapshot_id, STR_ARG(e->file.path));
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

/* Whether an added equality delete reaches a data file, with a higher sequence number. */
static bool reaches(const history_check *h, const tarn_file *data) {
    const commit_request *request = h->a->work->request;
    for (int32_t i = 0; i < request->n_added_deletes; i++) {
        const tarn_file *f = &request->added_deletes[i];
        if (f->content == TARN_CONTENT_EQUALITY_DELETES &&
            (delete_is_global(h->a->metadata, f) || files_share_partition(f, data))) {
            return true;
        }
    }
    return false;
}

static bool asks_for_rows(const commit_request *request) {
    return request->origin != NULL &&
           (request->origin->no_new_rows || request->origin->keeps_reach);
}

/* Rows that came since the work began, and its maker had not seen. */
static tarn_code check_rows(const history_check *h, const tarn_manifest *manifest,
                            tarn_error *err) {
    const commit_origin *origin = h->a->work->request->origin;
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    tarn_str operation = STR_NULL;
    if (!asks_for_rows(h->a->work->request) ||
        (properties_get(&h->snapshot->summary, "operation", &operation) &&
         str_is(operation, "replace"))) { /* the same rows in other files */
        return TARN_OK;
    }
    arena_init(&arena, h->a->work->env);
    TRY(produce_read_manifest(h->a, &arena, manifest, 0, true, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        if (e->status == TARN_ENTRY_ADDED && (origin->no_new_rows || reaches(h, &e->file))) {
            code = err_set(err, TARN_CONFLICT,
                           "snapshot %lld added file %.*s, whose rows the commit may concern",
                           (long long)h->snapshot->snapshot_id, STR_ARG(e->file.path));
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

static tarn_code check_removed(const history_check *h, const tarn_manifest *manifest,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, h->a->work->env);
    TRY(produce_read_manifest(h->a, &arena, manifest, 0, false, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_entry *e = &entries.items[i];
        if (e->status == TARN_ENTRY_DELETED && map_find(&h->referenced, e->file.path) != NULL) {
            code = err_set(err, TARN_CONFLICT,
                           "snapshot %lld removed data file %.*s, of which rows were to be deleted",
                           (long long)h->snapshot->snapshot_id, STR_ARG(e->file.path));
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

/* Whether these row deletes may concern a file that the request rewrites or deletes rows of. */
static bool concerns(const history_check *h, const tarn_evaluator *evaluator,
                     const tarn_file *file) {
    const commit_request *request = h->a->work->request;
    tarn_str only = delete_only_file(file);
    bool check = request->check_new_deletes;
    if (file->content == TARN_CONTENT_EQUALITY_DELETES && request->origin != NULL &&
        request->origin->outlives_equality_deletes) {
        return false;
    }
    if (only.len > 0) {
        return map_find(&h->removed, only) != NULL ||
               (check && map_find(&h->referenced, only) != NULL);
    }
    if (file->content == TARN_CONTENT_EQUALITY_DELETES && request->conflict_filter != NULL &&
        !evaluator_file(evaluator, file)) {
        return false;
    }
    if (check && h->referenced.count > 0) {
        return true; /* where those lie is not known */
    }
    const tuple_set *tuples = &h->tuples;
    if (tuples->all || (file->content == TARN_CONTENT_EQUALITY_DELETES && file->n_partition == 0)) {
        return h->removed.count > 0;
    }
    for (int32_t i = 0; i < tuples->n; i++) {
        bool same = tuples->items[i].spec_id == file->spec_id &&
                    tuples->items[i].n_partition == file->n_partition;
        for (int32_t j = 0; same && j < file->n_partition; j++) {
            same = value_eq(&tuples->items[i].partition[j], &file->partition[j]);
        }
        if (same) {
            return true;
        }
    }
    return false;
}

static tarn_code check_deletes(const history_check *h, const tarn_manifest *manifest,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_evaluator evaluator;
    manifest_entries entries;
    arena_init(&arena, h->a->work->env);
    memset(&evaluator, 0, sizeof evaluator);
    if (h->a->work->request->conflict_filter != NULL) {
        TRY(set_evaluator(h, &arena, manifest, &evaluator, err));
    }
    TRY(produce_read_manifest(h->a, &arena, manifest, MANIFEST_WANT_STATS | MANIFEST_WANT_REST,
                              true, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        const tarn_file *file = &entries.items[i].file;
        if (entries.items[i].status == TARN_ENTRY_ADDED && concerns(h, &evaluator, file)) {
            code = err_set(err, TARN_CONFLICT,
                           "snapshot %lld added row deletes %.*s, which may concern a file that is "
                           "rewritten or has rows deleted",
                           (long long)h->snapshot->snapshot_id, STR_ARG(file->path));
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

static tarn_code check_manifest(const history_check *h, const tarn_manifest *manifest,
                                tarn_error *err) {
    const commit_request *request = h->a->work->request;
    tarn_code code = TARN_OK;
    if (manifest->added_snapshot_id != h->snapshot->snapshot_id) {
        return TARN_OK;
    }
    if (manifest->is_deletes) {
        bool asked =
            h->removed.count > 0 || (request->check_new_deletes && h->referenced.count > 0);
        return manifest->added_files != 0 && asked ? check_deletes(h, manifest, err) : TARN_OK;
    }
    if (manifest->deleted_files != 0 && h->referenced.count > 0) {
        TRY(check_removed(h, manifest, err));
    }
    if (manifest->added_files != 0 && request->conflict_filter != NULL) {
        TRY(check_added(h, manifest, err));
    }
    if (manifest->added_files != 0) {
        TRY(check_rows(h, manifest, err));
    }
done:
    return code;
}

static tarn_code check_snapshot(history_check *h, tarn_error *err) {
    commit_attempt *a = h->a;
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests = a->manifests;
    int32_t n = a->n_manifests;
    if (h->snapshot != a->parent) {
        TRY(produce_read_list(a, h->snapshot, &manifests, &n, err));
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(check_manifest(h, &manifests[i], err));
    }
done:
    return code;
}

static void see(history_check *h, tarn_str path) {
    map_entry *known = map_find(&h->referenced, path);
    if (known != NULL) {
        known->value.i64 = 1;
    }
}

static tarn_code see_manifest(history_check *h, const tarn_manifest *manifest, tarn_error *err) {
    tarn_arena arena;
    manifest_entries entries;
    arena_init(&arena, h->a->work->env);
    tarn_code code = produce_read_manifest(h->a, &arena, manifest, 0, true, &entries, err);
    for (int64_t i = 0; code == TARN_OK && i < entries.count; i++) {
        see(h, entries.items[i].file.path);
    }
    arena_release(&arena);
    return code;
}

/* Every referenced file is live or among the added ones. */
static tarn_code check_live(history_check *h, tarn_error *err) {
    commit_attempt *a = h->a;
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < request->n_added; i++) {
        see(h, request->added[i].path);
    }
    for (int32_t i = 0; i < a->n_manifests; i++) {
        if (!a->manifests[i].is_deletes && !filter_is_spent(&a->manifests[i])) {
            TRY(see_manifest(h, &a->manifests[i], err));
        }
    }
    for (size_t i = 0; i < h->referenced.count; i++) {
        if (h->referenced.entries[i].value.i64 == 0) {
            return err_set(err, TARN_CONFLICT,
                           "data file %.*s, of which rows were to be deleted, is not in the table",
                           STR_ARG(h->referenced.entries[i].key));
        }
    }
done:
    return code;
}

static tarn_code init_check(commit_attempt *a, history_check *h, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    memset(h, 0, sizeof *h);
    h->a = a;
    map_init(&h->removed, &a->arena);
    map_init(&h->referenced, &a->arena);
    bool rewritten = request->kind != COMMIT_DELETE_FILES || request->check_new_deletes;
    for (int32_t i = 0; i < request->n_removed && rewritten; i++) {
        if (map_put(&h->removed, request->removed[i].file.path, NULL) == NULL) {
            return err_nomem(err);
        }
        TRY(tuple_set_add(a, &h->tuples, &request->removed[i].file, err));
    }
    for (int32_t i = 0; i < request->n_referenced; i++) {
        if (map_put(&h->referenced, request->referenced[i], NULL) == NULL) {
            return err_nomem(err);
        }
    }
done:
    return code;
}

static bool is_mine(const commit_request *request, const tarn_snapshot *s) {
    for (int32_t i = 0; request->mine != NULL && i < s->summary.count; i++) {
        const tarn_property *p = &s->summary.items[i];
        if (str_eq(p->key, request->mine->key)) {
            return str_eq(p->value, request->mine->value);
        }
    }
    return false;
}

tarn_code validate_history(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    history_check h;
    bool appends = request->kind == COMMIT_FAST_APPEND || request->kind == COMMIT_MERGE_APPEND;
    if (!asks_for_rows(request) &&
        (appends || (request->n_removed == 0 && request->n_referenced == 0 &&
                     request->conflict_filter == NULL))) {
        return TARN_OK;
    }
    TRY(init_check(a, &h, err));
    if (request->from_snapshot_id == TARN_NO_SNAPSHOT && request->n_referenced > 0) {
        TRY(check_live(&h, err));
    }
    h.snapshot = a->parent;
    int32_t steps = 0; /* parents may form a ring */
    while (h.snapshot != NULL && h.snapshot->snapshot_id != request->from_snapshot_id) {
        if (!is_mine(request, h.snapshot)) {
            TRY(check_snapshot(&h, err));
        }
        h.snapshot =
            steps++ < a->metadata->n_snapshots ? metadata_parent(a->metadata, h.snapshot) : NULL;
    }
    if (h.snapshot == NULL && request->from_snapshot_id != TARN_NO_SNAPSHOT) {
        return err_set(err, TARN_CONFLICT,
                       "snapshot %lld, on which the work was based, is no ancestor of %.*s",
                       (long long)request->from_snapshot_id, STR_ARG(a->branch));
    }
done:
    return code;
}
