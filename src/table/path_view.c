/* table/path_view.c - a column below structs as if it stood at the top: parents' nulls count as its
 * own. Bitmaps are made only where a parent has nulls. */
#include "table/batch.h"

#include "base/limits.h"

/* Fields from below the root to the one with the id, through structs; 0: none. */
static int32_t find_path(const tarn_type *type, int32_t id, int32_t *path, int32_t depth) {
    if (depth >= LIMIT_NESTING) {
        return 0;
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        path[depth] = i;
        if (type->fields[i].id == id) {
            return depth + 1;
        }
        int32_t len = type->fields[i].type->kind == TARN_STRUCT
                          ? find_path(type->fields[i].type, id, path, depth + 1)
                          : 0;
        if (len > 0) {
            return len;
        }
    }
    return 0;
}

/* Clears the leaf's rows where the parent is null. */
static tarn_code fold_nulls(tarn_path_view *path, const tarn_view *parent, tarn_error *err) {
    tarn_view *leaf = &path->view;
    if (parent->validity == NULL) {
        return TARN_OK;
    }
    if (path->validity == NULL) {
        path->validity = env_alloc(path->env, bit_bytes(leaf->start + leaf->length) + 1);
        if (path->validity == NULL) {
            return err_nomem(err);
        }
        if (leaf->validity != NULL) {
            bit_copy(path->validity, leaf->start, leaf->validity, leaf->start, leaf->length);
        } else {
            bit_fill(path->validity, leaf->start, leaf->length, leaf->type->kind != TARN_UNKNOWN);
        }
        leaf->validity = path->validity;
    }
    for (int64_t i = 0; i < leaf->length; i++) {
        if (!bit_get(parent->validity, parent->start + i)) {
            bit_clear(path->validity, leaf->start + i);
        }
    }
    return TARN_OK;
}

tarn_code path_view_init(tarn_path_view *out, tarn_env *env, const tarn_batch *batch,
                         int32_t field_id, tarn_error *err) {
    tarn_view above[LIMIT_NESTING];
    int32_t steps[LIMIT_NESTING];
    tarn_path_view path = {.env = env};
    int32_t len = find_path(batch->type, field_id, steps, 0);
    if (len == 0) {
        return err_set(err, TARN_INTERNAL, "the batch had no column with field id %d",
                       (int)field_id);
    }
    view_column(batch, steps[0], &path.view);
    for (int32_t i = 1; i < len; i++) {
        above[i - 1] = path.view;
        view_child(&above[i - 1], steps[i], &path.view);
    }
    for (int32_t i = 0; i + 1 < len; i++) {
        tarn_code code = fold_nulls(&path, &above[i], err);
        if (code != TARN_OK) {
            path_view_release(&path);
            return code;
        }
    }
    *out = path;
    return TARN_OK;
}

void path_view_release(tarn_path_view *path) {
    env_free(path->env, path->validity);
    memset(path, 0, sizeof *path);
}
