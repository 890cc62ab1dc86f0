/* table/batch.c - batches as wholes: slices, gathers, filters, concatenation, the check of the
 * canonical layout. Slices share buffers through counted owners (array_int.h). */
#include "table/batch.h"

#include "base/limits.h"
#include "table/array_int.h"

void batch_release(tarn_batch *batch) {
    if (batch->array.release != NULL) {
        batch->array.release(&batch->array);
    }
    memset(batch, 0, sizeof *batch);
}

void batch_move(tarn_batch *dst, tarn_batch *src) {
    *dst = *src;
    memset(src, 0, sizeof *src);
}

/* ---- slices ---- */

static tarn_code clone_tree(tarn_env *env, array_owner *owner, const struct ArrowArray *src,
                            struct ArrowArray *out, tarn_error *err) {
    tarn_code code = array_node_init(env, owner, src->n_buffers, src->n_children, out, err);
    if (code != TARN_OK) {
        return code;
    }
    array_node *node = array_node_of(out);
    node->whole = true;
    for (int64_t i = 0; i < src->n_buffers; i++) {
        node->buffers[i] = src->buffers[i];
    }
    out->length = src->length;
    out->null_count = src->null_count;
    out->offset = src->offset;
    for (int64_t i = 0; i < src->n_children; i++) {
        code = clone_tree(env, owner, src->children[i], out->children[i], err);
        if (code != TARN_OK) {
            array_release(out);
            return code;
        }
    }
    return TARN_OK;
}

tarn_code batch_slice(tarn_env *env, tarn_batch *src, int64_t start, int64_t n, tarn_batch *out,
                      tarn_error *err) {
    tarn_assert(src->array.release != NULL);
    tarn_assert(start >= 0 && n >= 0 && start + n <= src->array.length);
    struct ArrowArray slice;
    struct ArrowArray shared;
    const tarn_type *type = src->type;
    tarn_code code;
    if (src->array.release == array_release && array_node_of(&src->array)->whole) {
        code = clone_tree(env, array_node_of(&src->array)->owner, &src->array, &slice, err);
        if (code != TARN_OK) {
            return code;
        }
    } else {
        array_owner *owner = array_owner_new(env);
        if (owner == NULL) {
            return err_nomem(err);
        }
        code = clone_tree(env, owner, &src->array, &shared, err);
        if (code == TARN_OK) {
            code = clone_tree(env, owner, &src->array, &slice, err);
            if (code != TARN_OK) {
                array_release(&shared);
            }
        }
        if (code == TARN_OK) {
            array_owner_take(owner, &src->array);
            src->array = shared;
        }
        array_owner_unref(owner); /* the nodes hold it now, or nobody does */
        if (code != TARN_OK) {
            return code;
        }
    }
    array_cut_root(&slice, start, n);
    out->array = slice;
    out->type = type;
    return TARN_OK;
}

/* ---- copies ---- */

static void root_view(const tarn_batch *batch, tarn_view *out) {
    array_view(&batch->array, batch->type, 0, batch->array.length, out);
    out->validity = NULL; /* a root row is never null */
}

tarn_code batch_gather(tarn_env *env, const tarn_batch *src, const int32_t *index, int64_t n,
                       tarn_batch *out, tarn_error *err) {
    tarn_builder b;
    tarn_view view;
    tarn_code code = builder_init(&b, env, src->type, err);
    if (code != TARN_OK) {
        return code;
    }
    root_view(src, &view);
    TRY(builder_gather(&b, &view, index, n, err));
    TRY(builder_finish_batch(&b, out, err));
done:
    builder_release(&b);
    return code;
}

/* The numbers of set bits, ascending. */
static int64_t list_bits(const uint8_t *bits, int64_t rows, int32_t *index) {
    int64_t n = 0;
    for (int64_t at = 0; at < rows; at += 64) {
        int64_t left = rows - at < 64 ? rows - at : 64;
        uint64_t word = 0;
        memcpy(&word, bits + at / 8, bit_bytes(left));
        if (left < 64) {
            word &= (UINT64_C(1) << left) - 1;
        }
        for (; word != 0; word &= word - 1) {
            index[n++] = (int32_t)(at + __builtin_ctzll(word));
        }
    }
    return n;
}

static tarn_code copy_whole(tarn_env *env, const tarn_batch *src, tarn_batch *out,
                            tarn_error *err) {
    return batch_concat(env, &src, 1, out, err);
}

typedef struct row_run {
    int64_t start, n;
} row_run;

/* The runs of set bits, of which there are at most one more than clear ones. */
static int64_t list_runs(const uint8_t *bits, int64_t rows, row_run *runs) {
    int64_t n = 0, from = 0;
    for (int64_t at = 0; at < rows; at += 64) {
        const int64_t left = rows - at < 64 ? rows - at : 64;
        uint64_t word = 0;
        memcpy(&word, bits + at / 8, bit_bytes(left));
        uint64_t clear = ~word & (left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX);
        for (; clear != 0; clear &= clear - 1) {
            const int64_t gap = at + __builtin_ctzll(clear);
            if (gap > from) {
                runs[n++] = (row_run){from, gap - from};
            }
            from = gap + 1;
        }
    }
    if (rows > from) {
        runs[n++] = (row_run){from, rows - from};
    }
    return n;
}

/* Where few rows go, those between them are copied together. n: set bits. */
static tarn_code copy_runs(tarn_env *env, const tarn_batch *src, const uint8_t *selection,
                           int64_t n, tarn_batch *out, tarn_error *err) {
    tarn_builder b;
    const int64_t rows = batch_rows(src);
    tarn_code code = builder_init(&b, env, src->type, err);
    if (code != TARN_OK) {
        return code;
    }
    row_run *runs = env_alloc(env, (size_t)(rows - n + 1) * sizeof *runs);
    if (runs == NULL) {
        code = err_nomem(err);
        goto done;
    }
    const int64_t n_runs = list_runs(selection, rows, runs);
    TRY(builder_reserve(&b, n, err));
    for (int32_t i = 0; i < b.n_children; i++) {
        tarn_builder *child = &b.children[i];
        tarn_view view;
        view_column(src, i, &view);
        if (type_is_var(view.type)) {
            TRY(builder_reserve_bytes(child, (size_t)(view.offsets[rows] - view.offsets[0]), err));
        }
        for (int64_t k = 0; k < n_runs; k++) {
            TRY(builder_view(child, &view, runs[k].start, runs[k].n, err));
        }
    }
    b.length = n;
    TRY(builder_finish_batch(&b, out, err));
done:
    env_free(env, runs);
    builder_release(&b);
    return code;
}

tarn_code batch_filter(tarn_env *env, const tarn_batch *src, const uint8_t *selection,
                       tarn_batch *out, tarn_error *err) {
    int64_t rows = batch_rows(src);
    int64_t n = bit_count(selection, 0, rows);
    if (n == rows) {
        return copy_whole(env, src, out, err);
    }
    if (rows - n <= rows / 16) {
        return copy_runs(env, src, selection, n, out, err);
    }
    int32_t *index = env_alloc(env, (size_t)(n > 0 ? n : 1) * sizeof *index);
    if (index == NULL) {
        return err_nomem(err);
    }
    n = list_bits(selection, rows, index);
    tarn_code code = batch_gather(env, src, index, n, out, err);
    env_free(env, index);
    return code;
}

tarn_code batch_concat(tarn_env *env, const tarn_batch *const *batches, size_t n, tarn_batch *out,
                       tarn_error *err) {
    tarn_builder b;
    tarn_view view;
    int64_t rows = 0;
    tarn_assert(n >= 1);
    tarn_code code = builder_init(&b, env, batches[0]->type, err);
    if (code != TARN_OK) {
        return code;
    }
    for (size_t i = 0; i < n; i++) {
        if (!num_add_i64(rows, batch_rows(batches[i]), &rows)) {
            code = err_set(err, TARN_LIMIT, "batches together had too many rows");
            goto done;
        }
    }
    TRY(builder_reserve(&b, rows, err));
    for (size_t i = 0; i < n; i++) {
        if (batch_rows(batches[i]) > 0) {
            root_view(batches[i], &view);
            TRY(builder_view(&b, &view, 0, view.length, err));
        }
    }
    TRY(builder_finish_batch(&b, out, err));
done:
    builder_release(&b);
    return code;
}

tarn_code batch_assemble(tarn_env *env, const tarn_type *type, int64_t rows,
                         struct ArrowArray *children, tarn_batch *out, tarn_error *err) {
    struct ArrowArray root;
    tarn_code code = array_node_init(env, NULL, 1, type->n_fields, &root, err);
    if (code != TARN_OK) {
        for (int32_t i = 0; i < type->n_fields; i++) {
            if (children[i].release != NULL) {
                children[i].release(&children[i]);
            }
        }
        return code;
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        tarn_assert(children[i].length >= rows);
        *root.children[i] = children[i];
        children[i].release = NULL;
    }
    root.length = rows;
    out->array = root;
    out->type = type;
    return TARN_OK;
}

/* ---- sizes and checks ---- */

static int64_t view_bytes_used(const tarn_view *v) {
    int64_t bytes = v->validity != NULL ? (int64_t)bit_bytes(v->length) : 0;
    if (v->length == 0) {
        return 0;
    }
    if (v->type->kind == TARN_BOOLEAN) {
        bytes += (int64_t)bit_bytes(v->length);
    } else {
        bytes += v->length * type_width(v->type);
    }
    if (v->offsets != NULL) {
        bytes += (v->length + 1) * 4;
        bytes += v->bytes != NULL ? v->offsets[v->length] - v->offsets[0] : 0;
    }
    for (int32_t i = 0; i < array_part_count(v->type); i++) {
        tarn_view child;
        view_child(v, i, &child);
        if (v->offsets != NULL) {
            tarn_view part;
            int64_t first = child.start - child.array->offset + v->offsets[0];
            array_view(child.array, child.type, first, v->offsets[v->length] - v->offsets[0],
                       &part);
            child = part;
        }
        bytes += view_bytes_used(&child);
    }
    return bytes;
}

int64_t batch_bytes(const tarn_batch *batch) {
    tarn_view root;
    if (batch_rows(batch) == 0) {
        return 0;
    }
    root_view(batch, &root);
    return view_bytes_used(&root);
}

static tarn_code bad_array(const char *what, const tarn_type *type, tarn_error *err) {
    return err_set(err, TARN_INVALID, "an array of %s was not valid: %s",
                   type_kind_name(type->kind), what);
}

static tarn_code check_offsets(const tarn_view *v, int64_t limit, tarn_error *err) {
    if (v->length == 0) {
        return TARN_OK;
    }
    if (v->offsets == NULL) {
        return bad_array("it had no offsets", v->type, err);
    }
    int32_t last = v->offsets[0];
    bool ordered = last >= 0;
    for (int64_t i = 1; i <= v->length; i++) {
        ordered &= v->offsets[i] >= last;
        last = v->offsets[i];
    }
    if (!ordered) {
        return bad_array("its offsets decreased", v->type, err);
    }
    if (limit >= 0 && last > limit) {
        return bad_array("its offsets ended beyond the child", v->type, err);
    }
    return TARN_OK;
}

static tarn_code check_strings(const tarn_view *v, tarn_error *err) {
    for (int64_t i = 0; i < v->length; i++) {
        if (!view_is_null(v, i) && !str_utf8_valid(view_bytes(v, i))) {
            return err_set(err, TARN_INVALID, "the string of row %lld was not valid UTF-8",
                           (long long)i);
        }
    }
    return TARN_OK;
}

static tarn_code check_view(const tarn_view *v, int depth, tarn_error *err) {
    const struct ArrowArray *a = v->array;
    int64_t n_children = array_child_count(v->type);
    tarn_code code = TARN_OK;
    if (depth > LIMIT_NESTING) {
        return err_set(err, TARN_LIMIT, "an array was nested too deep");
    }
    if (a->release == NULL || a->offset < 0 || a->length < 0 || v->length < 0 ||
        v->start + v->length > a->offset + a->length) {
        return bad_array("it was released or shorter than its parent", v->type, err);
    }
    if (a->n_buffers != array_buffer_count(v->type) || a->n_children != n_children ||
        a->dictionary != NULL) {
        return bad_array("its buffers or children were not those of the layout", v->type, err);
    }
    if (a->null_count > 0 && v->type->kind != TARN_UNKNOWN && a->buffers[0] == NULL) {
        return bad_array("it had nulls but no validity", v->type, err);
    }
    bool fixed = v->type->kind == TARN_BOOLEAN || type_width(v->type) > 0;
    if (fixed && v->length > 0 && v->values == NULL) {
        return bad_array("it had no values", v->type, err);
    }
    if (type_is_var(v->type)) {
        TRY(check_offsets(v, -1, err));
        if (v->length > 0 && v->offsets[v->length] > v->offsets[0] && v->bytes == NULL) {
            return bad_array("it had no bytes", v->type, err);
        }
        return v->type->kind == TARN_STRING ? check_strings(v, err) : TARN_OK;
    }
    for (int32_t i = 0; i < array_part_count(v->type); i++) {
        tarn_view child;
        view_child(v, i, &child);
        if (v->type->kind == TARN_LIST || v->type->kind == TARN_MAP) {
            TRY(check_offsets(v, child.length, err));
        }
        TRY(check_view(&child, depth + 1, err));
    }
done:
    return code;
}

tarn_code batch_validate(const tarn_batch *batch, tarn_error *err) {
    tarn_view root;
    if (batch->array.release == NULL) {
        return TARN_OK;
    }
    root_view(batch, &root);
    return check_view(&root, 0, err);
}
