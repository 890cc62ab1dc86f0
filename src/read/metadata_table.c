/* read/metadata_table.c - metadata tables as batches: rows of one manifest, or of the whole small
 * table, at a time, then filtered and projected as any rows. Names and columns are those that
 * Iceberg Java and Spark show. */
#include "read/metadata_table.h"

static const struct {
    const char *name;
    metadata_kind kind;
    bool all;
    int contents;
} TABLES[] = {
    {"snapshots", META_SNAPSHOTS, false, 0},
    {"history", META_HISTORY, false, 0},
    {"refs", META_REFS, false, 0},
    {"metadata_log_entries", META_LOG, false, 0},
    {"manifests", META_MANIFESTS, false, 0},
    {"all_manifests", META_MANIFESTS, true, 0},
    {"files", META_FILES, false, 3},
    {"data_files", META_FILES, false, 1},
    {"delete_files", META_FILES, false, 2},
    {"all_files", META_FILES, true, 3},
    {"all_data_files", META_FILES, true, 1},
    {"all_delete_files", META_FILES, true, 2},
    {"entries", META_ENTRIES, false, 3},
    {"all_entries", META_ENTRIES, true, 3},
    {"partitions", META_PARTITIONS, false, 3},
    {"position_deletes", META_POSITION_DELETES, false, 2},
};
#define N_TABLES (sizeof TABLES / sizeof *TABLES)

bool metadata_table_known(tarn_str name) {
    for (size_t i = 0; i < N_TABLES; i++) {
        if (str_is(name, TABLES[i].name)) {
            return true;
        }
    }
    return false;
}

static tarn_code find_table(metadata_table *t, tarn_str name, tarn_error *err) {
    for (size_t i = 0; i < N_TABLES; i++) {
        if (str_is(name, TABLES[i].name)) {
            t->kind = TABLES[i].kind;
            t->all = TABLES[i].all;
            t->contents = TABLES[i].contents;
            return TARN_OK;
        }
    }
    return err_set(err, TARN_NOT_FOUND, "there is no metadata table %.*s", STR_ARG(name));
}

static tarn_code pick_snapshot(metadata_table *t, int64_t id, tarn_error *err) {
    if (id == TARN_NO_SNAPSHOT) {
        t->snapshot = metadata_current_snapshot(t->metadata);
        return TARN_OK;
    }
    t->snapshot = metadata_snapshot_by_id(t->metadata, id);
    return t->snapshot != NULL
               ? TARN_OK
               : err_set(err, TARN_NOT_FOUND, "there is no snapshot %lld", (long long)id);
}

/* Manifests of every snapshot, each once. */
static tarn_code collect_all(metadata_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *m = t->metadata;
    tarn_map seen;
    tarn_manifest *list = NULL;
    size_t count = 0;
    size_t cap = 0;
    map_init(&seen, &t->arena);
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        const tarn_manifest *some;
        int32_t n;
        TRY(snapshot_manifests(&t->arena, t->store, m->snapshots[i], &some, &n, err));
        for (int32_t j = 0; j < n; j++) {
            bool added;
            if (map_put(&seen, some[j].path, &added) == NULL) {
                return err_nomem(err);
            }
            if (!added) {
                continue;
            }
            if (count == cap) {
                size_t more = cap == 0 ? 64 : cap * 2;
                list = arena_grow(&t->arena, list, cap * sizeof *list, more * sizeof *list);
                if (list == NULL) {
                    return err_nomem(err);
                }
                cap = more;
            }
            list[count++] = some[j];
        }
    }
    t->manifests = list;
    t->n_manifests = (int32_t)count;
done:
    return code;
}

static tarn_code collect_manifests(metadata_table *t, tarn_error *err) {
    if (t->kind < META_MANIFESTS) {
        return TARN_OK;
    }
    if (t->all) {
        return t->kind == META_MANIFESTS ? TARN_OK : collect_all(t, err);
    }
    return t->snapshot == NULL ? TARN_OK
                               : snapshot_manifests(&t->arena, t->store, t->snapshot, &t->manifests,
                                                    &t->n_manifests, err);
}

tarn_code metadata_table_open(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              tarn_str metadata_location, tarn_str name,
                              const scan_options *options, metadata_table **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    metadata_table *t = env_calloc(env, 1, sizeof *t);
    if (t == NULL) {
        return err_nomem(err);
    }
    t->env = env;
    t->store = store;
    t->metadata = m;
    t->metadata_location = metadata_location;
    arena_init(&t->arena, env);
    TRY(find_table(t, name, err));
    TRY(pick_snapshot(t, options->snapshot_id, err));
    TRY(metadata_partition_type(t, err));
    TRY(metadata_table_root(t, &t->root, err));
    TRY(row_choice_init(&t->choice, &t->arena, t->root, options, "metadata table", err));
    TRY(collect_manifests(t, err));
    *out = t;
    t = NULL;
done:
    metadata_table_close(t);
    return code;
}

const tarn_type *metadata_table_type(const metadata_table *t) {
    return t->choice.output;
}

static bool wants_manifest(const metadata_table *t, const tarn_manifest *manifest) {
    return t->kind == META_ENTRIES || (t->contents & (manifest->is_deletes ? 2 : 1)) != 0;
}

/* all_manifests: a manifest has a row for each snapshot that lists it. */
static tarn_code next_snapshot(metadata_table *t, tarn_builder *b, bool *more, tarn_error *err) {
    if (t->at >= t->metadata->n_snapshots) {
        return TARN_OK;
    }
    t->snapshot = t->metadata->snapshots[t->at++];
    tarn_code code =
        snapshot_manifests(&t->arena, t->store, t->snapshot, &t->manifests, &t->n_manifests, err);
    *more = code == TARN_OK;
    return code == TARN_OK ? metadata_rows_manifests(t, b, err) : code;
}

/* Appends the next chunk of rows; false when there is none. */
static tarn_code next_chunk(metadata_table *t, tarn_builder *b, bool *more, tarn_error *err) {
    *more = false;
    if (t->kind == META_FILES || t->kind == META_ENTRIES) {
        while (t->at < t->n_manifests) {
            const tarn_manifest *manifest = &t->manifests[t->at++];
            if (wants_manifest(t, manifest)) {
                *more = true;
                return metadata_rows_files(t, manifest, b, err);
            }
        }
        return TARN_OK;
    }
    if (t->kind == META_POSITION_DELETES) {
        return metadata_rows_deletes(t, b, more, err);
    }
    if (t->kind == META_MANIFESTS && t->all) {
        return next_snapshot(t, b, more, err);
    }
    if (t->at > 0) {
        return TARN_OK;
    }
    t->at = 1;
    *more = true;
    if (t->kind == META_MANIFESTS) {
        return metadata_rows_manifests(t, b, err);
    }
    if (t->kind == META_PARTITIONS) {
        return metadata_rows_partitions(t, b, err);
    }
    return metadata_rows_small(t, b, err);
}

tarn_code metadata_table_next(metadata_table *t, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    tarn_batch batch;
    bool more = true;
    memset(&b, 0, sizeof b);
    memset(&batch, 0, sizeof batch);
    memset(out, 0, sizeof *out);
    while (more && batch_rows(&batch) == 0 && t->choice.left != 0) {
        batch_release(&batch);
        TRY(env_check_cancel(t->env, err));
        TRY(builder_init(&b, t->env, t->root, err));
        TRY(next_chunk(t, &b, &more, err));
        TRY(builder_finish_batch(&b, &batch, err));
        builder_release(&b);
        TRY(row_choice_apply(&t->choice, &batch, err));
    }
    if (batch_rows(&batch) > 0) {
        batch_move(out, &batch);
    }
done:
    builder_release(&b);
    batch_release(&batch);
    return code;
}

void metadata_table_close(metadata_table *t) {
    if (t == NULL) {
        return;
    }
    tarn_env *env = t->env;
    delete_cursor_free(t->cursor);
    arena_release(&t->arena);
    env_free(env, t);
}
