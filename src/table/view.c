/* table/view.c - reading columns: views of children, single values, single-value JSON. */
#include "table/array_int.h"

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
