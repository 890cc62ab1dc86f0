/* table/file_entry.c - looking into and copying descriptions of files. */
#include "table/file_entry.h"

bool metric_find_count(const metric_count *counts, int32_t n, int32_t id, int64_t *out) {
    for (int32_t i = 0; i < n; i++) {
        if (counts[i].id == id) {
            *out = counts[i].count;
            return true;
        }
    }
    return false;
}

bool metric_find_bound(const metric_bound *bounds, int32_t n, int32_t id, tarn_str *out) {
    for (int32_t i = 0; i < n; i++) {
        if (bounds[i].id == id) {
            *out = bounds[i].bytes;
            return true;
        }
    }
    return false;
}

/* n items of size bytes; NULL only without memory. */
static void *copy_items(tarn_arena *arena, const void *items, int32_t n, size_t size) {
    size_t bytes = (size_t)n * size;
    void *copy = arena_alloc(arena, bytes);
    if (copy != NULL && bytes > 0) {
        memcpy(copy, items, bytes);
    }
    return copy;
}

static bool copy_str(tarn_arena *arena, tarn_str *s) {
    if (s->data == NULL) {
        return true;
    }
    *s = arena_str(arena, *s);
    return s->data != NULL;
}

static bool copy_bounds(tarn_arena *arena, const metric_bound **bounds, int32_t n) {
    metric_bound *copy = copy_items(arena, *bounds, n, sizeof *copy);
    for (int32_t i = 0; copy != NULL && i < n; i++) {
        if (!copy_str(arena, &copy[i].bytes)) {
            return false;
        }
    }
    *bounds = copy;
    return copy != NULL;
}

static bool copy_counts(tarn_arena *arena, const metric_count **counts, int32_t n) {
    *counts = copy_items(arena, *counts, n, sizeof **counts);
    return *counts != NULL;
}

static tarn_code copy_partition(tarn_arena *arena, tarn_file *file, tarn_error *err) {
    tarn_value *copy = ARENA_ARRAY(arena, tarn_value, (size_t)file->n_partition);
    if (copy == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < file->n_partition; i++) {
        tarn_code code = value_copy(arena, &file->partition[i], &copy[i], err);
        if (code != TARN_OK) {
            return code;
        }
        if (copy[i].type != NULL) {
            copy[i].type = type_copy(arena, copy[i].type);
            if (copy[i].type == NULL) {
                return err_nomem(err);
            }
        }
    }
    file->partition = copy;
    return TARN_OK;
}

tarn_code file_copy(tarn_arena *arena, const tarn_file *file, tarn_file *out, tarn_error *err) {
    tarn_file copy = *file;
    tarn_code code = copy_partition(arena, &copy, err);
    if (code != TARN_OK) {
        return code;
    }
    copy.split_offsets =
        copy_items(arena, file->split_offsets, file->n_split_offsets, sizeof *file->split_offsets);
    copy.equality_ids =
        copy_items(arena, file->equality_ids, file->n_equality_ids, sizeof *file->equality_ids);
    if (copy.split_offsets == NULL || copy.equality_ids == NULL || !copy_str(arena, &copy.path) ||
        !copy_str(arena, &copy.key_metadata) || !copy_str(arena, &copy.referenced_data_file) ||
        !copy_counts(arena, &copy.column_sizes, copy.n_column_sizes) ||
        !copy_counts(arena, &copy.value_counts, copy.n_value_counts) ||
        !copy_counts(arena, &copy.null_counts, copy.n_null_counts) ||
        !copy_counts(arena, &copy.nan_counts, copy.n_nan_counts) ||
        !copy_bounds(arena, &copy.lower, copy.n_lower) ||
        !copy_bounds(arena, &copy.upper, copy.n_upper)) {
        return err_nomem(err);
    }
    *out = copy;
    return TARN_OK;
}
