/* table/builder.c - columns made row by row.
 *
 * Invariants: capacity rows fit values, offsets and (if there) validity; offsets[length] is
 * bytes_len for strings, and the child's length at the last close for lists and maps; a null's
 * value bytes are zero. After a failed append the rows are as before for leaves; for nested columns
 * builder_truncate to the old length makes all parts agree again. */
#include "table/batch.h"

#include "base/limits.h"
#include "table/array_int.h"

static bool has_offsets(const tarn_type *type) {
    return type_is_var(type) || type->kind == TARN_LIST || type->kind == TARN_MAP;
}

static bool is_struct_like(const tarn_type *type) {
    return type->kind == TARN_STRUCT || type->kind == TARN_VARIANT;
}

static size_t values_size(const tarn_builder *b, int64_t rows) {
    if (b->type->kind == TARN_BOOLEAN) {
        return bit_bytes(rows);
    }
    return (size_t)rows * (size_t)type_width(b->type);
}

tarn_code builder_init(tarn_builder *b, tarn_env *env, const tarn_type *type, tarn_error *err) {
    int32_t n = array_part_count(type);
    memset(b, 0, sizeof *b);
    b->env = env;
    b->type = type;
    if (n == 0) {
        return TARN_OK;
    }
    b->children = env_calloc(env, (size_t)n, sizeof *b->children);
    if (b->children == NULL) {
        memset(b, 0, sizeof *b);
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        tarn_code code = builder_init(&b->children[i], env, array_part_type(type, i), err);
        if (code != TARN_OK) {
            builder_release(b);
            return code;
        }
        b->n_children++;
    }
    return TARN_OK;
}

void builder_release(tarn_builder *b) {
    for (int32_t i = 0; i < b->n_children; i++) {
        builder_release(&b->children[i]);
    }
    if (b->env != NULL) {
        env_free(b->env, b->children);
        env_free(b->env, b->validity);
        env_free(b->env, b->values);
        env_free(b->env, b->offsets);
        env_free(b->env, b->bytes);
    }
    memset(b, 0, sizeof *b);
}

void builder_reset(tarn_builder *b) {
    b->length = 0;
    b->null_count = 0;
    b->bytes_len = 0;
    if (b->validity != NULL) {
        env_free(b->env, b->validity);
        b->validity = NULL;
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        builder_reset(&b->children[i]);
    }
}

size_t builder_held(const tarn_builder *b) {
    size_t bytes = b->bytes_cap;
    if (b->capacity > 0) {
        bytes += values_size(b, b->capacity);
        bytes += b->validity != NULL ? bit_bytes(b->capacity) : 0;
        bytes += b->offsets != NULL ? ((size_t)b->capacity + 1) * sizeof *b->offsets : 0;
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        bytes += sizeof *b->children + builder_held(&b->children[i]);
    }
    return bytes;
}

static tarn_code grow_rows(tarn_builder *b, int64_t need, tarn_error *err) {
    int64_t rows = b->capacity * 2 > 64 ? b->capacity * 2 : 64;
    rows = rows > need ? rows : need;
    if (need > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "a column of a batch reached %d rows", INT32_MAX);
    }
    rows = rows < INT32_MAX ? rows : INT32_MAX;
    if (b->validity != NULL) {
        void *p = env_realloc(b->env, b->validity, bit_bytes(rows));
        if (p == NULL) {
            return err_nomem(err);
        }
        b->validity = p;
    }
    if (values_size(b, rows) > 0) {
        void *p = env_realloc(b->env, b->values, values_size(b, rows));
        if (p == NULL) {
            return err_nomem(err);
        }
        b->values = p;
    }
    if (has_offsets(b->type)) {
        int32_t *p = env_realloc(b->env, b->offsets, ((size_t)rows + 1) * sizeof *p);
        if (p == NULL) {
            return err_nomem(err);
        }
        b->offsets = p;
        b->offsets[0] = 0;
    }
    b->capacity = rows;
    return TARN_OK;
}

static inline tarn_code need_rows(tarn_builder *b, int64_t extra, tarn_error *err) {
    return b->length + extra > b->capacity ? grow_rows(b, b->length + extra, err) : TARN_OK;
}

tarn_code builder_reserve(tarn_builder *b, int64_t extra_rows, tarn_error *err) {
    if (extra_rows > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "a column of a batch reached %d rows", INT32_MAX);
    }
    tarn_code code = need_rows(b, extra_rows, err);
    for (int32_t i = 0; code == TARN_OK && is_struct_like(b->type) && i < b->n_children; i++) {
        code = builder_reserve(&b->children[i], extra_rows, err);
    }
    return code;
}

tarn_code builder_reserve_bytes(tarn_builder *b, size_t extra_bytes, tarn_error *err) {
    size_t need;
    if (!num_add_size(b->bytes_len, extra_bytes, &need) || need > LIMIT_BATCH_BYTES) {
        return err_set(err, TARN_LIMIT, "the bytes of one column of a batch reached %llu",
                       (unsigned long long)LIMIT_BATCH_BYTES);
    }
    if (need <= b->bytes_cap) {
        return TARN_OK;
    }
    size_t cap = b->bytes_cap * 2 > 256 ? b->bytes_cap * 2 : 256;
    cap = cap > need ? cap : need;
    void *p = env_realloc(b->env, b->bytes, cap);
    if (p == NULL) {
        return err_nomem(err);
    }
    b->bytes = p;
    b->bytes_cap = cap;
    return TARN_OK;
}

tarn_code builder_need_validity(tarn_builder *b, tarn_error *err) {
    if (b->validity != NULL || b->type->kind == TARN_UNKNOWN) {
        return TARN_OK;
    }
    if (b->capacity == 0) {
        tarn_code code = grow_rows(b, 1, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    b->validity = env_alloc(b->env, bit_bytes(b->capacity));
    if (b->validity == NULL) {
        return err_nomem(err);
    }
    bit_fill(b->validity, 0, b->length, true);
    return TARN_OK;
}

/* ---- single rows ---- */

tarn_code builder_nulls(tarn_builder *b, int64_t n, tarn_error *err) {
    tarn_code code = need_rows(b, n, err);
    if (code == TARN_OK) {
        code = builder_need_validity(b, err);
    }
    for (int32_t i = 0; code == TARN_OK && is_struct_like(b->type) && i < b->n_children; i++) {
        code = builder_nulls(&b->children[i], n, err);
    }
    if (code != TARN_OK || n == 0) {
        return code;
    }
    if (b->validity != NULL) {
        bit_fill(b->validity, b->length, n, false);
    }
    if (b->type->kind == TARN_BOOLEAN) {
        bit_fill(b->values, b->length, n, false);
    } else if (b->values != NULL) {
        size_t width = (size_t)type_width(b->type);
        memset(b->values + (size_t)b->length * width, 0, (size_t)n * width);
    }
    if (b->offsets != NULL) {
        int32_t last = b->offsets[b->length];
        for (int64_t i = 1; i <= n; i++) {
            b->offsets[b->length + i] = last;
        }
    }
    b->length += n;
    b->null_count += n;
    return TARN_OK;
}

tarn_code builder_null(tarn_builder *b, tarn_error *err) {
    return builder_nulls(b, 1, err);
}

/* Room for one more row, marked as not null. */
static inline tarn_code open_row(tarn_builder *b, tarn_error *err) {
    tarn_code code = need_rows(b, 1, err);
    if (code == TARN_OK && b->validity != NULL) {
        bit_set(b->validity, b->length);
    }
    return code;
}

tarn_code builder_fixed(tarn_builder *b, const void *value, tarn_error *err) {
    tarn_code code = open_row(b, err);
    if (code != TARN_OK) {
        return code;
    }
    int32_t width = type_width(b->type);
    uint8_t *p = b->values + (size_t)b->length * (size_t)width;
    if (width == 8) {
        memcpy(p, value, 8);
    } else if (width == 4) {
        memcpy(p, value, 4);
    } else {
        memcpy(p, value, (size_t)width);
    }
    b->length++;
    return TARN_OK;
}

tarn_code builder_bool(tarn_builder *b, bool value, tarn_error *err) {
    tarn_code code = open_row(b, err);
    if (code != TARN_OK) {
        return code;
    }
    if (value) {
        bit_set(b->values, b->length);
    } else {
        bit_clear(b->values, b->length);
    }
    b->length++;
    return TARN_OK;
}

tarn_code builder_bytes(tarn_builder *b, tarn_str value, tarn_error *err) {
    tarn_code code = open_row(b, err);
    if (code == TARN_OK) {
        code = builder_reserve_bytes(b, value.len, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (value.len > 0) {
        memcpy(b->bytes + b->bytes_len, value.data, value.len);
    }
    b->bytes_len += value.len;
    b->length++;
    b->offsets[b->length] = (int32_t)b->bytes_len;
    return TARN_OK;
}

static tarn_code bad_value(const tarn_builder *b, const char *given, tarn_error *err) {
    return err_set(err, TARN_INVALID, "a %s value was given to a column of type %s", given,
                   type_kind_name(b->type->kind));
}

tarn_code builder_value(tarn_builder *b, const tarn_value *value, tarn_error *err) {
    if (value->is_null) {
        return builder_null(b, err);
    }
    if (value->type->kind != b->type->kind) {
        return bad_value(b, type_kind_name(value->type->kind), err);
    }
    if (b->type->kind == TARN_BOOLEAN) {
        return builder_bool(b, value->as.boolean, err);
    }
    if (type_is_var(b->type)) {
        return builder_bytes(b, value->as.bytes, err);
    }
    if (b->type->kind == TARN_FIXED || b->type->kind == TARN_UUID) {
        if (value->as.bytes.len != (size_t)type_width(b->type)) {
            return bad_value(b, "longer or shorter", err);
        }
        return builder_fixed(b, value->as.bytes.data, err);
    }
    if (type_width(b->type) == 0) {
        return bad_value(b, type_kind_name(value->type->kind), err);
    }
    return builder_fixed(b, &value->as, err);
}

tarn_code builder_close(tarn_builder *b, tarn_error *err) {
    tarn_code code = open_row(b, err);
    if (code != TARN_OK) {
        return code;
    }
    if (is_struct_like(b->type)) {
        for (int32_t i = 0; i < b->n_children; i++) {
            tarn_assert(b->children[i].length == b->length + 1);
        }
    } else {
        tarn_assert(b->n_children < 2 || b->children[0].length == b->children[1].length);
        b->offsets[b->length + 1] = (int32_t)b->children[0].length; /* at most INT32_MAX rows */
    }
    b->length++;
    return TARN_OK;
}

void builder_truncate(tarn_builder *b, int64_t n) {
    int64_t keep = n < b->length ? n : b->length;
    if (b->validity != NULL) {
        b->null_count -= b->length - keep - bit_count(b->validity, keep, b->length - keep);
    } else if (b->type->kind == TARN_UNKNOWN) {
        b->null_count = keep;
    }
    b->length = keep;
    if (type_is_var(b->type)) {
        b->bytes_len = b->offsets != NULL ? (size_t)b->offsets[keep] : 0;
        return;
    }
    int64_t below = keep;
    if (has_offsets(b->type)) {
        below = b->offsets != NULL ? b->offsets[keep] : 0;
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        builder_truncate(&b->children[i], below);
    }
}

/* ---- the end ---- */

/* Buffers must be there even when no row is: not every consumer takes NULL for empty. */
static tarn_code fill_buffers(tarn_builder *b, tarn_error *err) {
    tarn_code code = b->capacity == 0 ? grow_rows(b, 1, err) : TARN_OK;
    if (code == TARN_OK && type_is_var(b->type) && b->bytes == NULL) {
        code = builder_reserve_bytes(b, 1, err);
    }
    for (int32_t i = 0; code == TARN_OK && i < b->n_children; i++) {
        code = fill_buffers(&b->children[i], err);
    }
    return code;
}

static void move_buffers(tarn_builder *b, struct ArrowArray *out) {
    out->length = b->length;
    out->null_count = b->null_count;
    if (b->type->kind == TARN_UNKNOWN) {
        out->null_count = b->length;
    } else if (b->null_count > 0) {
        array_node_own(out, 0, b->validity);
    } else {
        env_free(b->env, b->validity);
    }
    if (b->offsets != NULL) {
        array_node_own(out, 1, b->offsets);
        if (b->bytes != NULL) {
            array_node_own(out, 2, b->bytes);
        }
    } else if (b->values != NULL) {
        array_node_own(out, 1, b->values);
    }
    b->validity = NULL;
    b->values = NULL;
    b->offsets = NULL;
    b->bytes = NULL;
    b->bytes_cap = 0;
    b->capacity = 0;
    b->length = 0;
    b->null_count = 0;
    b->bytes_len = 0;
}

/* Makes the nodes of a whole tree first, since that can fail. */
static tarn_code make_nodes(const tarn_type *type, tarn_env *env, struct ArrowArray *out,
                            tarn_error *err) {
    tarn_code code =
        array_node_init(env, NULL, array_buffer_count(type), array_child_count(type), out, err);
    if (code != TARN_OK) {
        return code;
    }
    struct ArrowArray *parent = out;
    if (type->kind == TARN_MAP) {
        parent = out->children[0];
        code = array_node_init(env, NULL, 1, 2, parent, err);
    }
    for (int32_t i = 0; code == TARN_OK && i < array_part_count(type); i++) {
        code = make_nodes(array_part_type(type, i), env, parent->children[i], err);
    }
    if (code != TARN_OK) {
        array_release(out);
    }
    return code;
}

static void move_tree(tarn_builder *b, struct ArrowArray *out) {
    struct ArrowArray *parent = out;
    if (b->type->kind == TARN_MAP) {
        parent = out->children[0];
        parent->length = b->children[0].length;
    }
    for (int32_t i = 0; i < b->n_children; i++) {
        move_tree(&b->children[i], parent->children[i]);
    }
    move_buffers(b, out);
}

tarn_code builder_finish(tarn_builder *b, struct ArrowArray *out, tarn_error *err) {
    struct ArrowArray array;
    tarn_code code = fill_buffers(b, err);
    if (code == TARN_OK) {
        code = make_nodes(b->type, b->env, &array, err);
    }
    if (code == TARN_OK) {
        move_tree(b, &array);
        *out = array;
    }
    return code;
}

tarn_code builder_finish_batch(tarn_builder *b, tarn_batch *out, tarn_error *err) {
    tarn_assert(b->type->kind == TARN_STRUCT && b->null_count == 0);
    struct ArrowArray array;
    tarn_code code = builder_finish(b, &array, err);
    if (code == TARN_OK) {
        out->type = b->type;
        out->array = array;
    }
    return code;
}

static tarn_code put_default(tarn_builder *b, tarn_arena *arena, const tarn_field *field,
                             bool writes, tarn_error *err) {
    const json_value *json = writes ? field->write_default : field->initial_default;
    tarn_code code = TARN_OK;
    tarn_value value;
    if (json == NULL || json->kind == JSON_NULL) {
        return builder_null(b, err);
    }
    if (b->type->kind == TARN_STRUCT) { /* spec: empty, its fields have their own */
        for (int32_t i = 0; i < b->n_children; i++) {
            TRY(put_default(&b->children[i], arena, &b->type->fields[i], writes, err));
        }
        return builder_close(b, err);
    }
    if (b->type->kind == TARN_LIST || b->type->kind == TARN_MAP) {
        return builder_close(b, err); /* spec: such a default is null or empty */
    }
    TRY(value_from_json(arena, b->type, json, &value, err));
    code = builder_value(b, &value, err);
done:
    return code;
}

tarn_code builder_default(tarn_builder *b, const tarn_field *field, bool writes, tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, b->env);
    tarn_code code = put_default(b, &arena, field, writes, err);
    arena_release(&arena);
    return code;
}
