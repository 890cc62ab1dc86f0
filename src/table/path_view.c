/* table/path_view.c - a nested column as if it stood at the top: parents' nulls folded into its
 * own. */
#include "table/batch.h"

void view_array(const struct ArrowArray *array, const tarn_type *type, tarn_view *out) {
    struct ArrowArray parent;
    struct ArrowArray *child = (struct ArrowArray *)(uintptr_t)array;
    tarn_field field;
    tarn_type holder;
    tarn_batch batch;
    memset(&parent, 0, sizeof parent);
    memset(&field, 0, sizeof field);
    memset(&holder, 0, sizeof holder);
    field.type = type;
    holder.kind = TARN_STRUCT;
    holder.n_fields = 1;
    holder.fields = &field;
    parent.length = array->length;
    parent.n_children = 1;
    parent.children = &child;
    batch.array = parent;
    batch.type = &holder;
    view_column(&batch, 0, out);
}

static bool holds_id(const tarn_type *type, int32_t id) {
    return type->kind == TARN_STRUCT && type_find_id(type, id) != NULL;
}

/* Clears in bits (bit start + i for row i) what is null in parent. */
static void fold_nulls(const tarn_view *parent, uint8_t *bits, int64_t start) {
    for (int64_t i = 0; i < parent->length; i++) {
        if (view_is_null(parent, i)) {
            bit_clear(bits, start + i);
        }
    }
}

static tarn_code fold_parent(tarn_path_view *out, const tarn_view *parent, const tarn_view *child,
                             tarn_error *err) {
    size_t bytes = bit_bytes(child->start + child->length) + 8;
    uint8_t *bits = env_calloc(out->env, 1, bytes);
    if (bits == NULL) {
        return err_nomem(err);
    }
    bit_fill(bits, child->start, child->length, true);
    if (child->validity != NULL) {
        bit_copy(bits, child->start, child->validity, child->start, child->length);
    }
    fold_nulls(parent, bits, child->start);
    env_free(out->env, out->validity);
    out->validity = bits;
    return TARN_OK;
}

tarn_code path_view_init(tarn_path_view *out, tarn_env *env, const tarn_batch *batch,
                         int32_t field_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *type = batch->type;
    bool at_top = true;
    memset(out, 0, sizeof *out);
    out->env = env;
    for (;;) {
        int32_t i = 0;
        while (i < type->n_fields && type->fields[i].id != field_id &&
               !holds_id(type->fields[i].type, field_id)) {
            i++;
        }
        if (i == type->n_fields) {
            code = err_set(err, TARN_INTERNAL, "column id %d was not in the batch", field_id);
            goto done;
        }
        tarn_view parent = out->view;
        tarn_view child;
        if (at_top) {
            view_column(batch, i, &child);
        } else {
            view_child(&parent, i, &child);
            if (parent.validity != NULL) {
                TRY(fold_parent(out, &parent, &child, err));
                child.validity = out->validity;
            }
        }
        out->view = child;
        at_top = false;
        if (type->fields[i].id == field_id) {
            return TARN_OK;
        }
        type = type->fields[i].type;
    }
done:
    path_view_release(out);
    return code;
}

void path_view_release(tarn_path_view *path) {
    if (path->env != NULL) {
        env_free(path->env, path->validity);
    }
    memset(path, 0, sizeof *path);
}
