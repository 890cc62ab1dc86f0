/* table/builder_gather.c - appending many rows at once: runs by memcpy, rows by index in tight
 * loops. The hot paths of partitioning, filtering and sorting. */
#include "table/batch.h"

#include "table/array_int.h"

static bool is_struct_like(const tarn_type *type) {
    return type->kind == TARN_STRUCT || type->kind == TARN_VARIANT;
}

/* ---- runs ---- */

static tarn_code append_validity(tarn_builder *b, const tarn_view *view, int64_t start, int64_t n,
                                 tarn_error *err) {
    if (view->validity == NULL) {
        if (b->validity != NULL) {
            bit_fill(b->validity, b->length, n, true);
        }
        return TARN_OK;
    }
    int64_t nulls = n - bit_count(view->validity, view->start + start, n);
    if (nulls > 0) {
        tarn_code code = builder_need_validity(b, err);
        if (code != TARN_OK) {
            return code;
        }
        bit_copy(b->validity, b->length, view->validity, view->start + start, n);
        b->null_count += nulls;
    } else if (b->validity != NULL) {
        bit_fill(b->validity, b->length, n, true);
    }
    return TARN_OK;
}

/* offsets of n rows from src on, moved so that they go on from dst[0]. */
static void copy_offsets(int32_t *dst, const int32_t *src, int64_t n) {
    int32_t delta = dst[0] - src[0];
    for (int64_t i = 1; i <= n; i++) {
        dst[i] = src[i] + delta;
    }
}

static tarn_code append_content(tarn_builder *b, const tarn_view *view, int64_t start, int64_t n,
                                tarn_error *err) {
    tarn_view child;
    tarn_code code = TARN_OK;
    if (is_struct_like(b->type)) {
        for (int32_t i = 0; i < b->n_children && code == TARN_OK; i++) {
            view_child(view, i, &child);
            code = builder_view(&b->children[i], &child, start, n, err);
        }
        return code;
    }
    if (view->offsets != NULL) {
        int32_t first = view->offsets[start];
        int32_t count = view->offsets[start + n] - first;
        if (type_is_var(b->type)) {
            code = builder_reserve_bytes(b, (size_t)count, err);
            if (code == TARN_OK && count > 0) {
                memcpy(b->bytes + b->bytes_len, view->bytes + first, (size_t)count);
                b->bytes_len += (size_t)count;
            }
        }
        for (int32_t i = 0; i < b->n_children && code == TARN_OK; i++) {
            view_child(view, i, &child);
            code = builder_view(&b->children[i], &child, first, count, err);
        }
        if (code == TARN_OK) {
            copy_offsets(b->offsets + b->length, view->offsets + start, n);
        }
        return code;
    }
    if (b->type->kind == TARN_BOOLEAN) {
        bit_copy(b->values, b->length, view->values, view->start + start, n);
    } else if (b->values != NULL) {
        size_t width = (size_t)type_width(b->type);
        memcpy(b->values + (size_t)b->length * width,
               (const uint8_t *)view->values + (size_t)start * width, (size_t)n * width);
    }
    return TARN_OK;
}

tarn_code builder_view(tarn_builder *b, const tarn_view *view, int64_t start, int64_t n,
                       tarn_error *err) {
    tarn_assert(start >= 0 && n >= 0 && start + n <= view->length);
    tarn_assert(b->type->kind == view->type->kind);
    if (n == 0) {
        return TARN_OK;
    }
    tarn_code code = TARN_OK;
    if (b->length + n > b->capacity) {
        TRY(builder_reserve(b, n, err));
    }
    int64_t nulls_before = b->null_count;
    TRY(append_validity(b, view, start, n, err));
    code = append_content(b, view, start, n, err);
    if (code != TARN_OK) {
        b->null_count = nulls_before;
        goto done;
    }
    b->length += n;
done:
    return code;
}

/* ---- rows by index ---- */

/* Bits of the rows named, from dst_start on; returns how many were set. */
static int64_t gather_bits(uint8_t *dst, int64_t dst_start, const uint8_t *src, int64_t src_start,
                           const int32_t *index, int64_t n) {
    int64_t set = 0;
    int64_t i = 0;
    for (; i < n && ((dst_start + i) & 7) != 0; i++) {
        bool bit = bit_get(src, src_start + index[i]);
        set += bit;
        if (bit) {
            bit_set(dst, dst_start + i);
        } else {
            bit_clear(dst, dst_start + i);
        }
    }
    uint8_t *out = dst + ((dst_start + i) >> 3);
    for (; i < n; i += 8) {
        int64_t left = n - i < 8 ? n - i : 8;
        unsigned byte = 0;
        for (int64_t j = 0; j < left; j++) {
            byte |= (unsigned)bit_get(src, src_start + index[i + j]) << j;
        }
        set += __builtin_popcount(byte);
        *out++ = (uint8_t)byte;
    }
    return set;
}

static void gather_4(uint8_t *dst, const uint8_t *src, const int32_t *index, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(dst + i * 4, src + (size_t)index[i] * 4, 4);
    }
}

static void gather_8(uint8_t *dst, const uint8_t *src, const int32_t *index, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(dst + i * 8, src + (size_t)index[i] * 8, 8);
    }
}

static void gather_16(uint8_t *dst, const uint8_t *src, const int32_t *index, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        memcpy(dst + i * 16, src + (size_t)index[i] * 16, 16);
    }
}

static void gather_fixed(uint8_t *dst, const uint8_t *src, size_t width, const int32_t *index,
                         int64_t n) {
    if (width == 4) {
        gather_4(dst, src, index, n);
    } else if (width == 8) {
        gather_8(dst, src, index, n);
    } else if (width == 16) {
        gather_16(dst, src, index, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            memcpy(dst + (size_t)i * width, src + (size_t)index[i] * width, width);
        }
    }
}

/* First pass: sums lengths into offsets[1..n], going on from offsets[0]. The total may pass what
 * an int32 holds: the caller checks it against the limit before the offsets are used. */
static int64_t gather_lengths(int32_t *offsets, const int32_t *src, const int32_t *index,
                              int64_t n) {
    int64_t at = offsets[0];
    int64_t first = at;
    for (int64_t i = 0; i < n; i++) {
        at += src[index[i] + 1] - src[index[i]];
        offsets[i + 1] = (int32_t)(uint32_t)(uint64_t)at;
    }
    return at - first;
}

/* Room after the last byte on both sides lets short strings go as one 16-byte move. */
#define SHORT_MOVE 16

static tarn_code gather_strings(tarn_builder *b, const tarn_view *view, const int32_t *index,
                                int64_t n, tarn_error *err) {
    int64_t total = gather_lengths(b->offsets + b->length, view->offsets, index, n);
    tarn_code code = builder_reserve_bytes(b, (size_t)total, err);
    if (code != TARN_OK || total == 0) {
        return code;
    }
    uint8_t *dst = b->bytes + b->bytes_len;
    const uint8_t *dst_end = b->bytes + b->bytes_cap;
    const int32_t src_end = view->offsets[view->length];
    for (int64_t i = 0; i < n; i++) {
        int32_t start = view->offsets[index[i]];
        int32_t len = view->offsets[index[i] + 1] - start;
        if (len <= SHORT_MOVE && src_end - start >= SHORT_MOVE && dst_end - dst >= SHORT_MOVE) {
            memcpy(dst, view->bytes + start, SHORT_MOVE);
        } else {
            memcpy(dst, view->bytes + start, (size_t)len);
        }
        dst += len;
    }
    b->bytes_len += (size_t)total;
    return TARN_OK;
}

/* Lists and maps: the rows of the children that the wanted lists hold, gathered in one go. */
static tarn_code gather_lists(tarn_builder *b, const tarn_view *view, const int32_t *index,
                              int64_t n, tarn_error *err) {
    int64_t total = gather_lengths(b->offsets + b->length, view->offsets, index, n);
    if (total > INT32_MAX - b->children[0].length) {
        return err_set(err, TARN_LIMIT, "a column of a batch reached %d rows", INT32_MAX);
    }
    int32_t *below = env_alloc(b->env, (size_t)(total > 0 ? total : 1) * sizeof *below);
    if (below == NULL) {
        return err_nomem(err);
    }
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int32_t j = view->offsets[index[i]]; j < view->offsets[index[i] + 1]; j++) {
            below[at++] = j;
        }
    }
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < b->n_children && code == TARN_OK; i++) {
        tarn_view child;
        view_child(view, i, &child);
        code = builder_gather(&b->children[i], &child, below, total, err);
    }
    env_free(b->env, below);
    return code;
}

static tarn_code gather_content(tarn_builder *b, const tarn_view *view, const int32_t *index,
                                int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (is_struct_like(b->type)) {
        for (int32_t i = 0; i < b->n_children && code == TARN_OK; i++) {
            tarn_view child;
            view_child(view, i, &child);
            code = builder_gather(&b->children[i], &child, index, n, err);
        }
    } else if (type_is_var(b->type)) {
        code = gather_strings(b, view, index, n, err);
    } else if (b->offsets != NULL) {
        code = gather_lists(b, view, index, n, err);
    } else if (b->type->kind == TARN_BOOLEAN) {
        (void)gather_bits(b->values, b->length, view->values, view->start, index, n);
    } else if (b->values != NULL) {
        size_t width = (size_t)type_width(b->type);
        gather_fixed(b->values + (size_t)b->length * width, view->values, width, index, n);
    }
    return code;
}

tarn_code builder_gather(tarn_builder *b, const tarn_view *view, const int32_t *index, int64_t n,
                         tarn_error *err) {
    tarn_assert(b->type->kind == view->type->kind);
    if (n == 0) {
        return TARN_OK;
    }
    tarn_code code = TARN_OK;
    if (b->length + n > b->capacity) {
        TRY(builder_reserve(b, n, err));
    }
    if (view->validity != NULL) {
        TRY(builder_need_validity(b, err));
    }
    TRY(gather_content(b, view, index, n, err));
    if (view->validity != NULL) {
        b->null_count +=
            n - gather_bits(b->validity, b->length, view->validity, view->start, index, n);
    } else if (b->validity != NULL) {
        bit_fill(b->validity, b->length, n, true);
    }
    b->length += n;
done:
    return code;
}
