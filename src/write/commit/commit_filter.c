/* write/commit/commit_filter.c - what data a commit removes: live files named by path, wholly
 * matched by a filter, or lying in replaced partitions. A manifest that holds none of them is kept
 * as it is (its name, its sequence numbers); one that does is rewritten with its other live entries
 * as EXISTING and the removed ones as DELETED by this snapshot (spec, "Manifests": status). */
#include "write/commit/commit_int.h"

typedef struct filter_state {
    tarn_map paths;             /* request->removed by path; value 1 once found */
    tuple_set tuples;           /* where they lie */
    tarn_evaluator *evaluators; /* per spec of the metadata, where there is a filter */
    manifest_rewriter rewriter;
} filter_state;

static tarn_code init_paths(commit_attempt *a, filter_state *s, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < request->n_removed; i++) {
        if (map_put(&s->paths, request->removed[i].file.path, NULL) == NULL) {
            return err_nomem(err);
        }
        TRY(tuple_set_add(a, &s->tuples, &request->removed[i].file, err));
    }
done:
    return code;
}

static tarn_code init_partitions(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    tarn_buf key;
    buf_init(&key, a->work->env, 0);
    for (int32_t i = 0; i < request->n_added; i++) {
        if (request->added[i].n_partition == 0) {
            a->replaced_all = true;
        }
        TRY(produce_tuple_key(&a->arena, &request->added[i], &key, err));
        tarn_str kept = arena_str(&a->arena, buf_str(&key));
        if (kept.data == NULL || map_put(&a->replaced, kept, NULL) == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
done:
    buf_release(&key);
    return code;
}

static tarn_code init_evaluators(commit_attempt *a, filter_state *s, tarn_error *err) {
    const tarn_metadata *m = a->metadata;
    tarn_code code = TARN_OK;
    s->evaluators = ARENA_ARRAY(&a->arena, tarn_evaluator, (size_t)m->n_specs + 1);
    if (s->evaluators == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < m->n_specs; i++) {
        TRY(evaluator_init(&a->arena, m, m->specs[i], a->work->request->filter, &s->evaluators[i],
                           err));
    }
done:
    return code;
}

static const tarn_evaluator *evaluator_of(const commit_attempt *a, const filter_state *s,
                                          int32_t spec_id) {
    for (int32_t i = 0; i < a->metadata->n_specs && s->evaluators != NULL; i++) {
        if (a->metadata->specs[i]->spec_id == spec_id) {
            return &s->evaluators[i];
        }
    }
    return NULL;
}

/* Whether this live entry goes. A file that the filter matches only in part is the caller's to
 * rewrite first. */
static tarn_code entry_goes(commit_attempt *a, filter_state *s, const tarn_entry *entry,
                            tarn_buf *key, bool *goes, tarn_error *err) {
    tarn_code code = TARN_OK;
    map_entry *named = map_find(&s->paths, entry->file.path);
    *goes = a->replaced_all;
    if (named != NULL) {
        named->value.i64 = 1;
        *goes = true;
        return TARN_OK;
    }
    if (a->replaced.count > 0 && !*goes) {
        TRY(produce_tuple_key(&a->arena, &entry->file, key, err));
        *goes = map_find(&a->replaced, buf_str(key)) != NULL;
    }
    const tarn_evaluator *e = evaluator_of(a, s, entry->file.spec_id);
    if (e != NULL && !*goes && evaluator_partition(e, entry->file.partition) &&
        evaluator_file(e, &entry->file)) {
        if (!evaluator_file_all(e, &entry->file)) {
            return err_set(err, TARN_CONFLICT,
                           "file %.*s may hold rows that match the filter and rows that do not",
                           STR_ARG(entry->file.path));
        }
        *goes = true;
    }
done:
    return code;
}

tarn_code filter_note_removed(commit_attempt *a, const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    summary_add(&a->summary.removed, file);
    TRY(produce_count_partition(a, file, err));
    if (a->has_deletes && file->content == TARN_CONTENT_DATA) {
        tarn_str kept = arena_str(&a->arena, file->path);
        if (kept.data == NULL || map_put(&a->gone, kept, NULL) == NULL) {
            code = err_nomem(err);
            goto done;
        }
        TRY(tuple_set_add(a, &a->gone_tuples, file, err));
    }
done:
    return code;
}

tarn_code filter_rewritable(const commit_attempt *a, const tarn_manifest *manifest,
                            const tarn_spec **out, tarn_error *err) {
    const tarn_spec *spec = metadata_spec_by_id(a->metadata, manifest->spec_id);
    if (spec == NULL) {
        return err_set(err, TARN_CORRUPT,
                       "manifest %.*s has partition spec %d, which the table lacks",
                       STR_ARG(manifest->path), manifest->spec_id);
    }
    if (manifest->key_metadata.data != NULL) { /* what was encrypted is not written in clear: B25 */
        return err_set(err, TARN_UNSUPPORTED,
                       "manifest %.*s has key metadata; encrypted manifests are not rewritten",
                       STR_ARG(manifest->path));
    }
    *out = spec;
    return TARN_OK;
}

/* A writer for the manifest's entries: the open one where it can take them. */
static tarn_code open_rewriter(commit_attempt *a, manifest_rewriter *rw,
                               const tarn_manifest *manifest, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = NULL;
    TRY(filter_rewritable(a, manifest, &spec, err));
    if (rw->writer != NULL && rw->spec_id == manifest->spec_id &&
        manifest_writer_bytes(rw->writer) < rw->target_bytes) {
        return TARN_OK;
    }
    TRY(filter_rewritten(a, rw, err));
    TRY(properties_i64(&a->metadata->properties, "commit.manifest.target-size-bytes",
                       MERGE_TARGET_BYTES, &rw->target_bytes, err));
    rw->spec_id = manifest->spec_id;
    rw->place = a->n_list;
    TRY(produce_add_manifest(a, manifest, err));
    code = produce_manifest_writer(a, spec, manifest->is_deletes, &rw->path, &rw->writer, err);
done:
    return code;
}

tarn_code filter_rewritten(commit_attempt *a, manifest_rewriter *rw, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_manifest written;
    manifest_writer *closing = rw->writer;
    rw->writer = NULL;
    if (closing != NULL) {
        TRY(manifest_writer_close(closing, &a->arena, &written, err));
        a->list[rw->place] = written;
    }
done:
    return code;
}

tarn_code filter_rewrite(commit_attempt *a, manifest_rewriter *rw, const tarn_manifest *manifest,
                         const manifest_entries *entries, const uint8_t *goes, tarn_error *err) {
    commit_work *work = a->work;
    tarn_code code = TARN_OK;
    TRY(open_rewriter(a, rw, manifest, err));
    for (int64_t i = 0; i < entries->count; i++) {
        tarn_entry entry = entries->items[i];
        entry.status = goes[i] ? TARN_ENTRY_DELETED : TARN_ENTRY_EXISTING;
        if (goes[i]) {
            entry.snapshot_id = work->snapshot_id;
            TRY(filter_note_removed(a, &entry.file, err));
        }
        TRY(manifest_writer_add(rw->writer, &entry, err));
    }
    if (!a->merges) {
        TRY(filter_rewritten(a, rw, err));
    }
done:
    return code;
}

static bool may_hold(const commit_attempt *a, const filter_state *s,
                     const tarn_manifest *manifest) {
    if (a->replaced_all || a->replaced.count > 0 || tuple_set_may_hold(&s->tuples, manifest)) {
        return true;
    }
    const tarn_evaluator *e = evaluator_of(a, s, manifest->spec_id);
    return e != NULL && evaluator_manifest(e, manifest);
}

static tarn_code filter_one(commit_attempt *a, filter_state *s, const tarn_manifest *manifest,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_buf key;
    manifest_entries entries;
    int64_t n_goes = 0;
    arena_init(&arena, a->work->env);
    buf_init(&key, a->work->env, 0);
    TRY(produce_read_manifest(a, &arena, manifest, MANIFEST_WANT_ALL, true, &entries, err));
    uint8_t *goes = ARENA_ARRAY(&arena, uint8_t, (size_t)entries.count + 1);
    if (goes == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int64_t i = 0; i < entries.count; i++) {
        bool go;
        TRY(entry_goes(a, s, &entries.items[i], &key, &go, err));
        goes[i] = go;
        n_goes += go;
    }
    if (n_goes == 0) {
        TRY(produce_add_manifest(a, manifest, err));
    } else {
        a->n_removed += (int32_t)n_goes;
        TRY(filter_rewrite(a, &s->rewriter, manifest, &entries, goes, err));
    }
done:
    buf_release(&key);
    arena_release(&arena);
    return code;
}

/* Manifests whose entries were all deleted by earlier snapshots have nothing left to say. */
bool filter_is_spent(const tarn_manifest *manifest) {
    return manifest->added_files == 0 && manifest->existing_files == 0;
}

tarn_code filter_manifests(commit_attempt *a, tarn_error *err) {
    const commit_request *request = a->work->request;
    tarn_code code = TARN_OK;
    filter_state s;
    memset(&s, 0, sizeof s);
    map_init(&s.paths, &a->arena);
    TRY(init_paths(a, &s, err));
    if (request->kind == COMMIT_REPLACE_PARTITIONS) {
        TRY(init_partitions(a, err));
    }
    if (request->filter != NULL) {
        TRY(init_evaluators(a, &s, err));
    }
    for (int32_t i = 0; i < a->n_manifests; i++) {
        if (a->manifests[i].is_deletes || filter_is_spent(&a->manifests[i])) {
            continue;
        }
        if (may_hold(a, &s, &a->manifests[i])) {
            TRY(filter_one(a, &s, &a->manifests[i], err));
        } else {
            TRY(produce_add_manifest(a, &a->manifests[i], err));
        }
    }
    TRY(filter_rewritten(a, &s.rewriter, err));
    for (size_t i = 0; i < s.paths.count; i++) {
        if (s.paths.entries[i].value.i64 == 0) {
            return err_set(err, TARN_CONFLICT, "file %.*s was removed by another commit",
                           STR_ARG(s.paths.entries[i].key));
        }
    }
done:
    manifest_writer_abort(s.rewriter.writer);
    return code;
}
