/* tests/interop/delete_rows.c - row deletes by position, committed with the inner parts of the
 * library, so that other engines can be asked what is left whatever command makes such deletes.
 *
 * usage: delete_rows DB WAREHOUSE NAMESPACE TABLE position|vector MODULUS REST
 *        delete_rows DB WAREHOUSE NAMESPACE TABLE equality FIRST COUNT
 *
 * position, vector: the rows of each live data file whose position has this rest. A vector takes in
 * the one before. equality: the rows whose first column, a long, is FIRST .. FIRST + COUNT - 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "format/puffin/puffin.h"
#include "iceberg/manifest.h"
#include "write/commit/commit.h"
#include "write/files/delete_writer.h"

typedef struct job {
    tarn_env *env;
    tarn_arena arena;
    tarn_catalog *catalog;
    tarn_table_version *base;
    tarn_entry *data, *deletes; /* live ones */
    int64_t n_data, n_deletes;
    delete_kind kind;
    int64_t a, b; /* MODULUS and REST, or FIRST and COUNT */
} job;

static tarn_code add_entries(job *j, const tarn_manifest *manifest, tarn_error *err) {
    tarn_code code;
    io_source *source = NULL;
    manifest_entries entries = {0};
    const manifest_read_options options = {.want = MANIFEST_WANT_ALL, .live_only = true};
    TRY(store_open(j->catalog->store, manifest->path, -1, &source, err));
    TRY(manifest_read(&j->arena, source, j->base->metadata, manifest, &options, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        bool is_data = entries.items[i].file.content == TARN_CONTENT_DATA;
        tarn_entry **list = is_data ? &j->data : &j->deletes;
        int64_t *n = is_data ? &j->n_data : &j->n_deletes;
        *list = arena_grow(&j->arena, *list, (size_t)*n * sizeof **list,
                           (size_t)(*n + 1) * sizeof **list);
        (*list)[(*n)++] = entries.items[i];
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static tarn_code read_entries(job *j, tarn_error *err) {
    tarn_code code;
    io_source *source = NULL;
    const tarn_manifest *manifests = NULL;
    int32_t n = 0;
    const tarn_snapshot *snapshot = metadata_current_snapshot(j->base->metadata);
    TRY(store_open(j->catalog->store, snapshot->manifest_list, -1, &source, err));
    TRY(manifest_list_read(&j->arena, source, &manifests, &n, err));
    for (int32_t i = 0; i < n; i++) {
        TRY(add_entries(j, &manifests[i], err));
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

/* The vector that a data file has already goes into the new one. */
static tarn_code merge_vector(job *j, delete_writer *w, const tarn_file *data,
                              const tarn_entry *entry, tarn_error *err) {
    tarn_code code;
    io_source *source = NULL;
    tarn_positions *before = NULL;
    size_t len = (size_t)entry->file.content_size;
    char *bytes = arena_alloc(&j->arena, len);
    TRY(store_open(j->catalog->store, entry->file.path, -1, &source, err));
    TRY(io_read_at(source, entry->file.content_offset, bytes, len, err));
    TRY(vector_decode(j->env, str_make(bytes, len), entry->file.record_count, &before, err));
    TRY(delete_writer_merge(w, data, before, &entry, 1, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    positions_free(before);
    return code;
}

static tarn_code write_positions(job *j, write_result *out, tarn_error *err) {
    tarn_code code;
    delete_writer *w = NULL;
    const delete_writer_options options = {.metadata = j->base->metadata, .kind = j->kind};
    TRY(delete_writer_new(j->env, j->catalog->store, &options, &w, err));
    for (int64_t i = 0; i < j->n_data; i++) {
        const tarn_file *data = &j->data[i].file;
        for (int64_t k = 0; k < j->n_deletes && j->kind == DELETE_VECTOR; k++) {
            if (str_eq(j->deletes[k].file.referenced_data_file, data->path)) {
                TRY(merge_vector(j, w, data, &j->deletes[k], err));
            }
        }
        for (int64_t position = j->b; position < data->record_count; position += j->a) {
            TRY(delete_writer_add(w, data, &position, 1, err));
        }
    }
    TRY(delete_writer_close(w, &j->arena, out, err));
done:
    delete_writer_free(w);
    return code;
}

static tarn_code write_equality(job *j, write_result *out, tarn_error *err) {
    tarn_code code;
    data_writer *w = NULL;
    tarn_builder rows = {0};
    tarn_batch batch = {0};
    const tarn_type *root = metadata_schema(j->base->metadata)->root;
    const int32_t id = root->fields[0].id;
    const data_writer_options options = {.metadata = j->base->metadata,
                                         .root = type_struct(&j->arena, root->fields, 1),
                                         .equality_ids = &id,
                                         .n_equality_ids = 1};
    TRY(builder_init(&rows, j->env, options.root, err));
    for (int64_t v = j->a; v < j->a + j->b; v++) {
        TRY(builder_fixed(&rows.children[0], &v, err));
        TRY(builder_close(&rows, err));
    }
    TRY(builder_finish_batch(&rows, &batch, err));
    TRY(data_writer_new(j->env, j->catalog->store, &options, &w, err));
    TRY(data_writer_write(w, &batch, err));
    TRY(data_writer_close(w, &j->arena, out, err));
done:
    batch_release(&batch);
    builder_release(&rows);
    data_writer_free(w);
    return code;
}

static tarn_code commit(job *j, const tarn_ident *ident, const write_result *written,
                        tarn_error *err) {
    commit_outcome outcome = {0};
    const commit_request request = {.kind = COMMIT_ROW_DELTA,
                                    .added_deletes = written->deletes,
                                    .n_added_deletes = written->n_deletes,
                                    .removed_deletes = written->removed_deletes,
                                    .n_removed_deletes = written->n_removed_deletes,
                                    .referenced = written->referenced,
                                    .n_referenced = written->n_referenced,
                                    .from_snapshot_id = j->base->metadata->current_snapshot_id};
    tarn_code code = commit_run(j->env, j->catalog, ident, NULL, &request, &outcome, err);
    table_version_release(outcome.version);
    return code;
}

static tarn_code run(job *j, char **arguments, tarn_error *err) {
    tarn_code code;
    tarn_store *store = NULL;
    write_result written = {0};
    const tarn_str level = str_of(arguments[3]);
    const tarn_ident ident = {1, &level, str_of(arguments[4])};
    TRY(store_file_new(j->env, false, &store, err));
    TRY(catalog_sqlite_new(j->env, store, str_of(arguments[1]), STR("tarn"), str_of(arguments[2]),
                           &j->catalog, err));
    store = NULL;
    TRY(catalog_load(j->catalog, &ident, &j->base, err));
    TRY(read_entries(j, err));
    if (j->kind == DELETE_EQUALITY) {
        TRY(write_equality(j, &written, err));
    } else {
        TRY(write_positions(j, &written, err));
    }
    TRY(commit(j, &ident, &written, err));
done:
    store_close(store);
    return code;
}

int main(int n, char **arguments) {
    job j = {0};
    tarn_error err = TARN_ERROR_INIT;
    if (n != 8) {
        (void)fprintf(stderr, "usage: DB WAREHOUSE NAMESPACE TABLE KIND A B\n");
        return 2;
    }
    j.kind = strcmp(arguments[5], "vector") == 0     ? DELETE_VECTOR
             : strcmp(arguments[5], "position") == 0 ? DELETE_POSITION
                                                     : DELETE_EQUALITY;
    j.a = strtoll(arguments[6], NULL, 10);
    j.b = strtoll(arguments[7], NULL, 10);
    tarn_code code = tarn_env_new(NULL, &j.env, &err);
    if (code == TARN_OK) {
        arena_init(&j.arena, j.env);
        code = run(&j, arguments, &err);
        table_version_release(j.base);
        catalog_close(j.catalog);
        arena_release(&j.arena);
        tarn_env_free(j.env);
    }
    if (code != TARN_OK) {
        (void)fprintf(stderr, "%s (%s)\n", err.message, err.detail);
    }
    return code == TARN_OK ? 0 : 1;
}
