/* table/view.c - reading columns: views of children, single values, single-value JSON. */
#include "table/array_int.h"

#include "base/limits.h"

void view_column(const tarn_batch *batch, int32_t column, tarn_view *out) {
    tarn_assert(column >= 0 && column < batch->type->n_fields);
    array_view(batch->array.children[column], batch->type->fields[column].type, batch->array.offset,
               batch->array.length, out);
}

void view_array(const struct ArrowArray *array, const tarn_type *type, tarn_view *out) {
    array_view(array, type, 0, array->length, out);
}

void view_child(const tarn_view *view, int32_t i, tarn_view *out) {
    const struct ArrowArray *array = view->array;
    const tarn_type *type = array_part_type(view->type, i);
    if (view->type->kind == TARN_LIST) {
        array_view(array->children[0], type, 0, array->children[0]->length, out);
    } else if (view->type->kind == TARN_MAP) {
        const struct ArrowArray *entries = array->children[0];
        array_view(entries->children[i], type, entries->offset, entries->length, out);
    } else {
        array_view(array->children[i], type, view->start, view->length, out);
    }
}

int64_t view_null_count(const tarn_view *v) {
    if (v->validity == NULL) {
        return v->type->kind == TARN_UNKNOWN ? v->length : 0;
    }
    if (v->array->null_count >= 0 && v->length == v->array->length &&
        v->validity == v->array->buffers[0]) {
        return v->array->null_count;
    }
    return v->length - bit_count(v->validity, v->start, v->length);
}

void view_value(const tarn_view *v, int64_t i, tarn_value *out) {
    *out = value_null(v->type);
    if (view_is_null(v, i)) {
        return;
    }
    out->is_null = false;
    if (v->type->kind == TARN_BOOLEAN) {
        out->as.boolean = view_bool(v, i);
        return;
    }
    if (v->offsets != NULL) {
        out->as.bytes = view_bytes(v, i);
        return;
    }
    size_t width = (size_t)type_width(v->type);
    const uint8_t *p = (const uint8_t *)v->values + (size_t)i * width;
    if (v->type->kind == TARN_UUID || v->type->kind == TARN_FIXED) {
        out->as.bytes = str_make(p, width);
    } else if (width != 0 && width <= sizeof out->as) {
        memcpy(&out->as, p, width); /* every member starts at the union's first byte */
    }
}

/* ---- by field id ---- */

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

/* ---- JSON ---- */

static void put_items(const tarn_view *child, int32_t start, int32_t end, json_writer *w) {
    json_put_array(w);
    for (int32_t i = start; i < end && w->code == TARN_OK; i++) {
        view_put_json(child, i, w);
    }
    json_end_array(w);
}

void view_put_json(const tarn_view *v, int64_t i, json_writer *w) {
    tarn_view child;
    if (view_is_null(v, i)) {
        json_put_null(w);
        return;
    }
    switch ((int)v->type->kind) {
    case TARN_STRUCT:
    case TARN_VARIANT:
        json_put_object(w);
        for (int32_t f = 0; f < array_part_count(v->type); f++) {
            view_child(v, f, &child);
            if (v->type->kind == TARN_STRUCT) {
                json_put_name(w, v->type->fields[f].name);
            } else {
                json_put_name(w, f == 0 ? STR("metadata") : STR("value"));
            }
            view_put_json(&child, i, w);
        }
        json_end_object(w);
        return;
    case TARN_LIST:
        view_child(v, 0, &child);
        put_items(&child, v->offsets[i], v->offsets[i + 1], w);
        return;
    case TARN_MAP:
        json_put_object(w);
        for (int32_t f = 0; f < 2; f++) {
            view_child(v, f, &child);
            json_put_name(w, f == 0 ? STR("keys") : STR("values"));
            put_items(&child, v->offsets[i], v->offsets[i + 1], w);
        }
        json_end_object(w);
        return;
    default: {
        tarn_value value;
        view_value(v, i, &value);
        value_put_json(&value, w);
        return;
    }
    }
}
