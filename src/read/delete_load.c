/* read/delete_load.c - delete files become positions and keys (spec, "Row-level Deletes").
 *
 * Position and equality delete files are files of rows, read as data files are, with their columns
 * found by field id; where a position delete file is asked about few data files, row groups and
 * pages of others are left out by its statistics. A vector's bytes are where its manifest entry
 * says, whatever lies around them (B20). */
#include "read/delete_load.h"

#include "base/limits.h"
#include "format/puffin/puffin.h"

#include <stdlib.h>

#define FIELD_ID_DELETE_FILE_PATH 2147483546
#define FIELD_ID_DELETE_POS       2147483545
#define PRUNE_TARGETS             32 /* data files to look for in a file's statistics, at most */

static const tarn_type path_type = {.kind = TARN_STRING};
static const tarn_type pos_type = {.kind = TARN_LONG};
static const tarn_field position_fields[] = {
    {.id = FIELD_ID_DELETE_FILE_PATH, .required = true, .name = {"file_path", 9}, &path_type},
    {.id = FIELD_ID_DELETE_POS, .required = true, .name = {"pos", 3}, &pos_type},
};
static const tarn_type position_type = {
    .kind = TARN_STRUCT, .n_fields = 2, .fields = position_fields};

const tarn_type *delete_position_type(void) {
    return &position_type;
}

/* What others wrote cannot be our caller's fault. */
static tarn_code as_corrupt(tarn_code code, tarn_error *err) {
    if (code == TARN_INVALID && err != NULL) {
        err->code = TARN_CORRUPT;
    }
    return code == TARN_INVALID ? TARN_CORRUPT : code;
}

/* ---- position deletes ---- */

typedef struct target_node { /* targets of one path */
    delete_target *target;
    struct target_node *next;
} target_node;

typedef struct position_load {
    const delete_loader *loader;
    tarn_map targets; /* path to target_node */
} position_load;

static tarn_code index_targets(position_load *p, delete_target *const *targets, int32_t n,
                               tarn_error *err) {
    for (int32_t i = 0; i < n; i++) {
        map_entry *slot = map_put(&p->targets, targets[i]->path, NULL);
        target_node *node = ARENA_NEW(p->targets.arena, target_node);
        if (slot == NULL || node == NULL) {
            return err_nomem(err);
        }
        node->target = targets[i];
        node->next = slot->value.ptr;
        slot->value.ptr = node;
    }
    return TARN_OK;
}

static int compare_values(const void *a, const void *b) {
    return value_cmp(a, b);
}

/* file_path in (targets), as a bound filter; NULL in *out: there are too many of them. */
static tarn_code targets_filter(tarn_arena *arena, const tarn_map *targets, const tarn_expr **out,
                                tarn_error *err) {
    *out = NULL;
    if (targets->count > PRUNE_TARGETS || targets->count == 0) {
        return TARN_OK;
    }
    tarn_value *values = ARENA_ARRAY(arena, tarn_value, targets->count);
    tarn_expr *e = ARENA_NEW(arena, tarn_expr);
    if (values == NULL || e == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < targets->count; i++) {
        values[i] = value_str(&path_type, targets->entries[i].key);
    }
    qsort(values, targets->count, sizeof *values, compare_values);
    e->op = targets->count == 1 ? EXPR_EQ : EXPR_IN;
    e->name = position_fields[0].name;
    e->field = &position_fields[0];
    e->field_id = FIELD_ID_DELETE_FILE_PATH;
    e->values = values;
    e->n_values = (int32_t)targets->count;
    *out = e;
    return TARN_OK;
}

static tarn_code add_positions(const delete_loader *l, const target_node *node,
                               const int64_t *positions, int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (; node != NULL && code == TARN_OK; node = node->next) {
        if (node->target->positions == NULL) {
            code = positions_new(l->env, &node->target->positions, err);
        }
        if (code == TARN_OK) {
            code = positions_add(node->target->positions, positions, (size_t)n, err);
        }
    }
    return as_corrupt(code, err);
}

/* Rows of one data file that follow each other are added together. */
static tarn_code take_batch(position_load *p, const tarn_batch *batch, tarn_error *err) {
    tarn_view paths, positions;
    tarn_code code = TARN_OK;
    const int64_t rows = batch_rows(batch);
    view_column(batch, 0, &paths);
    view_column(batch, 1, &positions);
    if (view_null_count(&paths) > 0 || view_null_count(&positions) > 0) {
        return err_set(err, TARN_CORRUPT, "a position delete had no file or no position");
    }
    const int64_t *values = positions.values;
    for (int64_t from = 0, to; from < rows && code == TARN_OK; from = to) {
        const tarn_str path = view_bytes(&paths, from);
        for (to = from + 1; to < rows && str_eq(view_bytes(&paths, to), path); to++) {
        }
        const map_entry *slot = map_find(&p->targets, path);
        if (slot != NULL) {
            code = add_positions(p->loader, slot->value.ptr, values + from, to - from, err);
        }
    }
    return code;
}

static tarn_code read_positions(position_load *p, file_scan *scan, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    scan_counters counters;
    memset(&batch, 0, sizeof batch);
    memset(&counters, 0, sizeof counters);
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        if (batch_rows(&batch) > 0) {
            pthread_mutex_lock(p->loader->fill);
            code = take_batch(p, &batch, err);
            pthread_mutex_unlock(p->loader->fill);
        }
    } while (code == TARN_OK && batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    return code;
}

tarn_code load_positions(const delete_loader *l, const tarn_entry *entry,
                         delete_target *const *targets, int32_t n_targets, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    file_scan *scan = NULL;
    file_scan_options options;
    position_load p = {.loader = l};
    arena_init(&arena, l->env);
    map_init(&p.targets, &arena);
    memset(&options, 0, sizeof options);
    options.wanted = &position_type;
    TRY(index_targets(&p, targets, n_targets, err));
    TRY(targets_filter(&arena, &p.targets, &options.filter, err));
    TRY(file_scan_open(l->env, l->store, &entry->file, NULL, &options, &scan, err));
    TRY(read_positions(&p, scan, err));
done:
    file_scan_close(scan);
    arena_release(&arena);
    return code;
}

static tarn_code take_paths(const tarn_batch *batch, tarn_map *paths, tarn_error *err) {
    tarn_view view;
    tarn_str last = STR_NULL;
    view_column(batch, 0, &view);
    if (view_null_count(&view) > 0) {
        return err_set(err, TARN_CORRUPT, "a position delete had no file");
    }
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        tarn_str path = view_bytes(&view, i);
        if (str_eq(path, last) || map_find(paths, path) != NULL) {
            last = path;
            continue;
        }
        tarn_str kept = arena_str(paths->arena, path);
        if (kept.data == NULL || map_put(paths, kept, NULL) == NULL) {
            return err_nomem(err);
        }
        last = path;
    }
    return TARN_OK;
}

tarn_code load_paths(const delete_loader *l, const tarn_file *file, tarn_map *paths,
                     tarn_error *err) {
    static const tarn_type only_path = {
        .kind = TARN_STRUCT, .n_fields = 1, .fields = position_fields};
    const file_scan_options options = {.wanted = &only_path};
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    tarn_batch batch;
    scan_counters counters;
    memset(&batch, 0, sizeof batch);
    memset(&counters, 0, sizeof counters);
    TRY(file_scan_open(l->env, l->store, file, NULL, &options, &scan, err));
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        TRY(take_paths(&batch, paths, err));
    } while (batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

/* ---- vectors ---- */

static tarn_code read_range(const delete_loader *l, const tarn_file *file, tarn_buf *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    const int64_t start = file->content_offset, len = file->content_size;
    if (start < 0 || len < 0) {
        return err_set(err, TARN_CORRUPT, "a deletion vector had no place in its file");
    }
    TRY(store_open(l->store, file->path, file->size_bytes, &source, err));
    if (start > source->size_bytes || len > source->size_bytes - start) {
        code = err_set(err, TARN_CORRUPT,
                       "a deletion vector of %lld bytes at %lld passed the file's end at %lld",
                       (long long)len, (long long)start, (long long)source->size_bytes);
        goto done;
    }
    TRY(buf_reserve(out, (size_t)len + 1, err));
    TRY(source->read_at(source, start, out->data, (size_t)len, err));
    out->len = (size_t)len;
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

tarn_code load_vector(const delete_loader *l, const tarn_entry *entry,
                      delete_target *const *targets, int32_t n_targets, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    tarn_positions *positions = NULL;
    bool locked = false;
    buf_init(&bytes, l->env, LIMIT_DECODE_BLOCK_BYTES);
    TRY(read_range(l, &entry->file, &bytes, err));
    TRY(vector_decode(l->env, buf_str(&bytes), entry->file.record_count, &positions, err));
    pthread_mutex_lock(l->fill);
    locked = true;
    for (int32_t i = 1; i < n_targets; i++) {
        if (targets[i]->positions == NULL) {
            TRY(positions_new(l->env, &targets[i]->positions, err));
        }
        TRY(positions_add_all(targets[i]->positions, positions, err));
    }
    if (n_targets > 0 && targets[0]->positions == NULL) {
        targets[0]->positions = positions;
        positions = NULL;
    } else if (n_targets > 0) {
        TRY(positions_add_all(targets[0]->positions, positions, err));
    }
done:
    if (locked) {
        pthread_mutex_unlock(l->fill);
    }
    positions_free(positions);
    buf_release(&bytes);
    return code == TARN_OK ? code
                           : err_add(err, code, "delete file %.*s", STR_ARG(entry->file.path));
}

/* ---- equality deletes ---- */

tarn_code load_keys(const delete_loader *l, const tarn_entry *entry, const tarn_type *key_type,
                    const row_delete_keys *keys, key_set *set, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    file_scan_options options;
    tarn_batch batch;
    scan_counters counters;
    key_rows rows;
    memset(&options, 0, sizeof options);
    memset(&batch, 0, sizeof batch);
    memset(&counters, 0, sizeof counters);
    key_rows_init(&rows, l->env);
    options.wanted = key_type;
    options.name_mapping = l->name_mapping;
    TRY(file_scan_open(l->env, l->store, &entry->file,
                       metadata_spec_by_id(l->metadata, entry->file.spec_id), &options, &scan,
                       err));
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        if (batch_rows(&batch) > 0) {
            TRY(as_corrupt(key_encode(&rows, &batch, keys->ids, keys->n_ids, err), err));
            pthread_mutex_lock(l->fill);
            code = key_set_add(set, &rows, entry->sequence_number, err);
            pthread_mutex_unlock(l->fill);
        }
    } while (code == TARN_OK && batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    key_rows_release(&rows);
    file_scan_close(scan);
    return code;
}
