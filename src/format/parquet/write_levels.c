/* write_levels.c - definition and repetition levels of a leaf from Arrow's validity and offsets
 * ("Nested Encoding" of the Parquet format), and its values side by side.
 *
 * A block of rows is a list of slots, one per row, that grows at every list on the way down. A slot
 * has a repetition level, a definition level and, while it lives, an index into the present view. A
 * slot lives as long as its definition level is the highest possible so far; a null or an empty
 * list stops it there. The slots alive at the end are the values. Leaves with one nullable level
 * and no list keep to the validity bits instead. */
#include "format/parquet/parquet_write_int.h"

#define BLOCK_ROWS 4096

int64_t levels_block_rows(const write_leaf *leaf, const tarn_view *column, int64_t start,
                          int64_t end, int64_t max_bytes, int64_t max_levels) {
    int64_t rows = end - start < BLOCK_ROWS ? end - start : BLOCK_ROWS;
    while (rows > 1) {
        tarn_view view = *column;
        int64_t from = start;
        int64_t to = start + rows;
        int64_t levels = rows;
        for (int32_t i = 0; i < leaf->n_steps - 1; i++) {
            if (leaf->steps[i].kind == STEP_LIST) {
                from = view.offsets[from];
                to = view.offsets[to];
                levels += to - from;
            }
            tarn_view child;
            view_child(&view, leaf->steps[i].child, &child);
            view = child;
        }
        int64_t bytes = view.offsets != NULL ? view.offsets[to] - view.offsets[from]
                                             : (to - from) * (int64_t)leaf->width;
        if (bytes <= max_bytes && levels <= max_levels) {
            break;
        }
        rows /= 2;
    }
    return rows;
}

static tarn_code refuse_null(const write_leaf *leaf, tarn_error *err) {
    return err_set(err, TARN_INVALID, "required column %.*s held a null",
                   STR_ARG(leaf->leaf->path));
}

/* Whether the view has a null where the block's validity so far has none. */
static bool has_bare_null(const tarn_view *view, int64_t start, const write_block *block) {
    for (int64_t i = 0; i < block->n_rows; i++) {
        bool above = block->validity == NULL || bit_get(block->validity, block->validity_start + i);
        if (above && view_is_null(view, start + i)) {
            return true;
        }
    }
    return false;
}

/* The leaf has at most one nullable level and no list: finds that level's validity. */
static tarn_code make_flat(const write_leaf *leaf, const tarn_view *column, int64_t start,
                           write_scratch *scratch, write_block *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_view view = *column;
    for (int32_t i = 0; i < leaf->n_steps; i++) {
        if (view.validity != NULL &&
            bit_count(view.validity, view.start + start, out->n_rows) != out->n_rows) {
            if (leaf->steps[i].optional) {
                out->validity = view.validity;
                out->validity_start = view.start + start;
            } else if (has_bare_null(&view, start, out)) {
                return refuse_null(leaf, err);
            }
        }
        if (leaf->steps[i].kind != STEP_LEAF) {
            tarn_view child;
            view_child(&view, leaf->steps[i].child, &child);
            view = child;
        }
    }
    out->view = view;
    out->first = start;
    out->n_values = out->n_rows;
    if (out->validity == NULL) {
        return TARN_OK;
    }
    tarn_buf *buf = &scratch->index[0];
    buf_reset(buf);
    TRY(buf_reserve(buf, (size_t)out->n_rows * sizeof(int32_t) + 1, err));
    int32_t *index = (int32_t *)(void *)buf->data;
    size_t n = 0;
    for (int64_t i = 0; i < out->n_rows; i++) {
        index[n] = (int32_t)(start + i);
        n += bit_get(out->validity, out->validity_start + i);
    }
    out->index = index;
    out->n_values = (int64_t)n;
done:
    return code;
}

/* The slots of a block, in one of the scratch's two sets of arrays. */
typedef struct slots {
    const write_leaf *leaf;
    write_scratch *scratch;
    int set;
    size_t n;
    uint8_t *def;
    uint8_t *rep;
    int32_t *index;
    uint8_t alive; /* the definition level of living slots */
    uint8_t depth; /* lists above */
    tarn_error *err;
} slots;

static tarn_code take_set(slots *s, int set, size_t n) {
    tarn_code code = TARN_OK;
    tarn_error *err = s->err;
    write_scratch *scratch = s->scratch;
    if (n > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "column %.*s had %zu values in one row",
                       STR_ARG(s->leaf->leaf->path), n);
    }
    buf_reset(&scratch->def[set]);
    buf_reset(&scratch->rep[set]);
    buf_reset(&scratch->index[set]);
    TRY(buf_reserve(&scratch->def[set], n + 1, err));
    TRY(buf_reserve(&scratch->rep[set], n + 1, err));
    TRY(buf_reserve(&scratch->index[set], n * sizeof(int32_t) + 1, err));
    s->set = set;
    s->n = n;
    s->def = scratch->def[set].data;
    s->rep = scratch->rep[set].data;
    s->index = (int32_t *)(void *)scratch->index[set].data;
done:
    return code;
}

/* Nulls of the view stop their slots. */
static tarn_code apply_validity(slots *s, const tarn_view *view, bool optional) {
    if (view->validity == NULL) {
        if (optional) {
            for (size_t i = 0; i < s->n; i++) {
                s->def[i] = (uint8_t)(s->def[i] + (s->def[i] == s->alive));
            }
            s->alive++;
        }
        return TARN_OK;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->def[i] != s->alive) {
            continue;
        }
        bool valid = bit_get(view->validity, view->start + s->index[i]);
        if (optional) {
            s->def[i] = (uint8_t)(s->def[i] + valid);
        } else if (!valid) {
            return refuse_null(s->leaf, s->err);
        }
    }
    s->alive = (uint8_t)(s->alive + optional);
    return TARN_OK;
}

/* Every living slot becomes as many as its list has entries, or stops when it has none. */
static tarn_code expand_lists(slots *s, const tarn_view *view) {
    slots old = *s;
    size_t total = 0;
    for (size_t i = 0; i < old.n; i++) {
        size_t len = 1;
        if (old.def[i] == old.alive) {
            len = (size_t)(view->offsets[old.index[i] + 1] - view->offsets[old.index[i]]);
            len = len == 0 ? 1 : len;
        }
        total += len;
    }
    tarn_code code = take_set(s, 1 - old.set, total);
    if (code != TARN_OK) {
        return code;
    }
    s->depth++;
    s->alive++;
    size_t at = 0;
    for (size_t i = 0; i < old.n; i++) {
        int32_t first = 0;
        int32_t len = 0;
        if (old.def[i] == old.alive) {
            first = view->offsets[old.index[i]];
            len = view->offsets[old.index[i] + 1] - first;
        }
        s->rep[at] = old.rep[i];
        s->def[at] = len > 0 ? s->alive : old.def[i];
        s->index[at] = first;
        at++;
        for (int32_t k = 1; k < len; k++, at++) {
            s->rep[at] = s->depth;
            s->def[at] = s->alive;
            s->index[at] = first + k;
        }
    }
    return TARN_OK;
}

tarn_code levels_make(const write_leaf *leaf, const write_rows *rows, write_scratch *scratch,
                      write_block *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->n_rows = rows->end - rows->start;
    out->n_levels = out->n_rows;
    if (leaf->leaf->max_rep == 0 && leaf->leaf->max_def <= 1) {
        return make_flat(leaf, rows->column, rows->start, scratch, out, err);
    }
    slots s = {.leaf = leaf, .scratch = scratch, .err = err};
    TRY(take_set(&s, 0, (size_t)out->n_rows));
    memset(s.def, 0, s.n);
    memset(s.rep, 0, s.n);
    for (size_t i = 0; i < s.n; i++) {
        s.index[i] = (int32_t)(rows->start + (int64_t)i);
    }
    tarn_view view = *rows->column;
    for (int32_t i = 0; i < leaf->n_steps; i++) {
        TRY(apply_validity(&s, &view, leaf->steps[i].optional));
        if (leaf->steps[i].kind == STEP_LIST) {
            TRY(expand_lists(&s, &view));
        }
        if (leaf->steps[i].kind != STEP_LEAF) {
            tarn_view child;
            view_child(&view, leaf->steps[i].child, &child);
            view = child;
        }
    }
    tarn_assert(s.alive == leaf->leaf->max_def && s.depth == leaf->leaf->max_rep);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) { /* the index of the living, in place */
        s.index[n] = s.index[i];
        n += s.def[i] == s.alive;
    }
    out->n_levels = (int64_t)s.n;
    out->n_values = (int64_t)n;
    out->def = s.def;
    out->rep = leaf->leaf->max_rep > 0 ? s.rep : NULL;
    out->view = view;
    out->first = n > 0 ? s.index[0] : 0;
    out->index = n > 0 && (size_t)(s.index[n - 1] - s.index[0]) != n - 1 ? s.index : NULL;
done:
    return code;
}

/* ---- values ---- */

#define GATHER(type)                                                                               \
    do {                                                                                           \
        type *to_ = (type *)(void *)scratch->gathered.data;                                        \
        const type *from_ = (const type *)block->view.values;                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            to_[i] = from_[block->index[i]];                                                       \
        }                                                                                          \
    } while (0)

/* Fixed-width values of the block side by side, as the batch has them. */
static tarn_code gather_fixed(const write_block *block, size_t width, write_scratch *scratch,
                              const uint8_t **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)block->n_values;
    if (n == 0) {
        *out = (const uint8_t *)"";
        return TARN_OK;
    }
    const uint8_t *from = block->view.values;
    if (block->index == NULL) {
        *out = from + (size_t)block->first * width;
        return TARN_OK;
    }
    buf_reset(&scratch->gathered);
    TRY(buf_reserve(&scratch->gathered, n * width + 1, err));
    if (width == 4) {
        GATHER(uint32_t);
    } else if (width == 8) {
        GATHER(uint64_t);
    } else {
        for (size_t i = 0; i < n; i++) {
            memcpy(scratch->gathered.data + i * width, from + (size_t)block->index[i] * width,
                   width);
        }
    }
    *out = scratch->gathered.data;
done:
    return code;
}

static tarn_code gather_bits(const write_block *block, write_scratch *scratch, const uint8_t **out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)block->n_values;
    buf_reset(&scratch->gathered);
    TRY(buf_reserve(&scratch->gathered, n / 8 + 1, err));
    uint8_t *bits = scratch->gathered.data;
    memset(bits, 0, n / 8 + 1);
    const uint8_t *from = block->view.values;
    if (block->index == NULL) {
        bit_copy(bits, 0, from, block->view.start + block->first, block->n_values);
    } else {
        for (size_t i = 0; i < n; i++) {
            unsigned bit = bit_get(from, block->view.start + block->index[i]);
            bits[i / 8] = (uint8_t)(bits[i / 8] | bit << i % 8);
        }
    }
    *out = bits;
done:
    return code;
}

/* Offsets and bytes of the block's byte arrays. Where the skipped ones are empty (the rule for
 * nulls), the bytes already lie side by side and only offsets are dropped. */
static tarn_code gather_bytes(const write_block *block, write_scratch *scratch, write_dense *out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = (size_t)block->n_values;
    const tarn_view *view = &block->view;
    static const int32_t none[1] = {0};
    if (n == 0) {
        out->offsets = none;
        return TARN_OK;
    }
    out->bytes = view->bytes;
    if (block->index == NULL) {
        out->offsets = view->offsets + block->first;
        return TARN_OK;
    }
    buf_reset(&scratch->offsets);
    TRY(buf_reserve(&scratch->offsets, (n + 1) * sizeof(int32_t), err));
    int32_t *offsets = (int32_t *)(void *)scratch->offsets.data;
    bool adjacent = true;
    int64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t at = block->index[i];
        offsets[i] = view->offsets[at];
        adjacent = adjacent && (i == 0 || offsets[i] == view->offsets[block->index[i - 1] + 1]);
        total += view->offsets[at + 1] - view->offsets[at];
    }
    offsets[n] = view->offsets[block->index[n - 1] + 1];
    out->offsets = offsets;
    if (adjacent) {
        return TARN_OK;
    }
    buf_reset(&scratch->gathered);
    TRY(buf_reserve(&scratch->gathered, (size_t)total + 1, err));
    int32_t end = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t at = block->index[i];
        int32_t len = view->offsets[at + 1] - view->offsets[at];
        if (len > 0) {
            memcpy(scratch->gathered.data + end, view->bytes + view->offsets[at], (size_t)len);
        }
        offsets[i] = end;
        end += len;
    }
    offsets[n] = end;
    out->bytes = scratch->gathered.data;
done:
    return code;
}

/* Decimals from 128-bit integers to the file's 32 or 64 bits, or big-endian bytes. */
static tarn_code shape_decimals(write_leaf *leaf, const uint8_t *from, size_t n,
                                write_scratch *scratch, write_dense *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    buf_reset(&scratch->shaped);
    TRY(buf_reserve(&scratch->shaped, n * leaf->width + 1, err));
    uint8_t *to = scratch->shaped.data;
    if (leaf->order == ORDER_I32) {
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * 4, from + i * 16, 4);
        }
    } else if (leaf->order == ORDER_I64) {
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * 8, from + i * 16, 8);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            uint64_t halves[2] = {__builtin_bswap64(num_load_u64(from + i * 16 + 8)),
                                  __builtin_bswap64(num_load_u64(from + i * 16))};
            memcpy(to + i * leaf->width, (const uint8_t *)halves + 16 - leaf->width, leaf->width);
        }
    }
    out->values = to;
done:
    return code;
}

static tarn_code count_stats(write_leaf *leaf, const write_dense *dense, tarn_error *err) {
    write_stats *s = &leaf->page_stats;
    switch (leaf->order) {
    case ORDER_BOOL: {
        int64_t set = bit_count(dense->values, 0, (int64_t)dense->n);
        stats_add_bool(s, set<(int64_t)dense->n, set> 0);
        break;
    }
    case ORDER_I32:
        stats_add_i32(s, (const int32_t *)(const void *)dense->values, dense->n);
        break;
    case ORDER_I64:
        stats_add_i64(s, (const int64_t *)(const void *)dense->values, dense->n);
        break;
    case ORDER_F32:
        leaf->file_nans += stats_add_f32(s, (const float *)(const void *)dense->values, dense->n);
        break;
    case ORDER_F64:
        leaf->file_nans += stats_add_f64(s, (const double *)(const void *)dense->values, dense->n);
        break;
    case ORDER_FIXED:
        return stats_add_fixed(s, dense->values, dense->n, leaf->width, err);
    case ORDER_DECIMAL: /* counted before they were shaped */
    case ORDER_BYTES:   /* when they are encoded */
    case ORDER_NONE:
        break;
    }
    return TARN_OK;
}

tarn_code dense_make(write_leaf *leaf, const write_block *block, write_scratch *scratch,
                     write_dense *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->n = (size_t)block->n_values;
    if (leaf->leaf->physical == PARQUET_BYTE_ARRAY) {
        return gather_bytes(block, scratch, out, err);
    }
    if (leaf->leaf->physical == PARQUET_BOOLEAN) {
        TRY(gather_bits(block, scratch, &out->values, err));
    } else if (block->view.type->kind == TARN_DECIMAL) {
        const uint8_t *wide = NULL;
        TRY(gather_fixed(block, 16, scratch, &wide, err));
        if (leaf->order == ORDER_DECIMAL) {
            stats_add_i128(&leaf->page_stats, (const tarn_int128 *)(const void *)wide, out->n);
        }
        TRY(shape_decimals(leaf, wide, out->n, scratch, out, err));
    } else {
        TRY(gather_fixed(block, leaf->width, scratch, &out->values, err));
    }
    TRY(count_stats(leaf, out, err));
done:
    return code;
}
