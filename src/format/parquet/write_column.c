/* write_column.c - one leaf of the open row group: rows come in as blocks and go into the open
 * page; pages end by bytes, rows and values (B49).
 *
 * A page is of one mode. In MODE_DICTIONARY it holds indices; when the dictionary is full or does
 * not pay, the indices are turned back into values, the page goes on without, and so does the rest
 * of the row group. Pays means, as for the first page of the well-known writers: dictionary plus
 * indices are smaller than the values; and from the second page on the same of what that page
 * added. An early look after a few thousand values spares the first page of unique values. */
#include "format/parquet/parquet_write_int.h"

#define EARLY_LOOK_VALUES 4096

void scratch_init(write_scratch *s, tarn_env *env) {
    memset(s, 0, sizeof *s);
    s->env = env;
    codec_ctx_init(&s->codec, env);
    tarn_buf *bufs[] = {&s->raw,     &s->packed,   &s->gathered, &s->shaped,
                        &s->offsets, &s->marks,    &s->index[0], &s->def[0],
                        &s->rep[0],  &s->index[1], &s->def[1],   &s->rep[1]};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        buf_init(bufs[i], env, 0);
    }
}

void scratch_release(write_scratch *s) {
    tarn_buf *bufs[] = {&s->raw,     &s->packed,   &s->gathered, &s->shaped,
                        &s->offsets, &s->marks,    &s->index[0], &s->def[0],
                        &s->rep[0],  &s->index[1], &s->def[1],   &s->rep[1]};
    codec_ctx_release(&s->codec);
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        buf_release(bufs[i]);
    }
}

size_t scratch_memory(const write_scratch *s) {
    return s->raw.cap + s->packed.cap + s->gathered.cap + s->shaped.cap + s->offsets.cap +
           s->marks.cap + s->index[0].cap + s->index[1].cap + s->def[0].cap + s->def[1].cap +
           s->rep[0].cap + s->rep[1].cap;
}

/* ---- life ---- */

static bool is_flat(const write_leaf *leaf) {
    return leaf->leaf->max_rep == 0 && leaf->leaf->max_def <= 1;
}

static bool encoding_fits(const write_leaf *leaf, parquet_write_encoding encoding) {
    bool is_bytes = leaf->leaf->physical == PARQUET_BYTE_ARRAY;
    bool is_int = leaf->leaf->physical == PARQUET_INT32 || leaf->leaf->physical == PARQUET_INT64;
    switch (encoding) {
    case PARQUET_WRITE_DELTA:
        return is_bytes || is_int;
    case PARQUET_WRITE_DELTA_LENGTH:
        return is_bytes;
    case PARQUET_WRITE_STREAM_SPLIT:
        return leaf->width > 0;
    case PARQUET_WRITE_AUTO:
    case PARQUET_WRITE_PLAIN:
    case PARQUET_WRITE_DICTIONARY:
        break;
    }
    return true;
}

static write_mode first_mode(const write_leaf *leaf) {
    switch (leaf->wanted) {
    case PARQUET_WRITE_AUTO:
    case PARQUET_WRITE_DICTIONARY:
        return leaf->leaf->physical == PARQUET_BOOLEAN || leaf->options->dictionary_bytes == 0
                   ? MODE_PLAIN
                   : MODE_DICTIONARY;
    case PARQUET_WRITE_PLAIN:
        break;
    case PARQUET_WRITE_DELTA:
    case PARQUET_WRITE_DELTA_LENGTH:
    case PARQUET_WRITE_STREAM_SPLIT:
        return MODE_RAW;
    }
    return MODE_PLAIN;
}

tarn_code leaf_init(write_leaf *leaf, tarn_error *err) {
    tarn_env *env = leaf->env;
    if (!encoding_fits(leaf, leaf->wanted)) {
        leaf->wanted = PARQUET_WRITE_AUTO;
    }
    tarn_buf *bufs[] = {&leaf->defs,    &leaf->reps,   &leaf->values, &leaf->indices,
                        &leaf->offsets, &leaf->bounds, &leaf->hashes};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        buf_init(bufs[i], env, 0);
    }
    stats_init(&leaf->page_stats, env);
    stats_init(&leaf->stats, env);
    stats_init(&leaf->last, env);
    stats_init(&leaf->file_stats, env);
    encode_dict_init(&leaf->dict, env, leaf->width, (size_t)leaf->options->dictionary_bytes);
    leaf->mode = first_mode(leaf);
    leaf->ascending = leaf->descending = leaf->bounds_known = true;
    if (!is_flat(leaf)) {
        size_t n = (size_t)leaf->leaf->max_def + leaf->leaf->max_rep + 2u;
        leaf->def_counts = env_calloc(env, n, sizeof *leaf->def_counts);
        if (leaf->def_counts == NULL) {
            return err_nomem(err);
        }
        leaf->rep_counts = leaf->def_counts + leaf->leaf->max_def + 1;
    }
    return TARN_OK;
}

static void drop_pages(write_leaf *leaf) {
    for (size_t i = 0; i < leaf->n_pages; i++) {
        env_free(leaf->env, leaf->pages[i].data);
    }
    leaf->n_pages = 0;
    env_free(leaf->env, leaf->dict_page);
    leaf->dict_page = NULL;
    leaf->dict_page_bytes = 0;
    leaf->held_bytes = 0;
}

void leaf_release(write_leaf *leaf) {
    if (leaf->env == NULL) {
        return;
    }
    drop_pages(leaf);
    env_free(leaf->env, leaf->pages);
    env_free(leaf->env, leaf->def_counts);
    tarn_buf *bufs[] = {&leaf->defs,    &leaf->reps,   &leaf->values, &leaf->indices,
                        &leaf->offsets, &leaf->bounds, &leaf->hashes};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++) {
        buf_release(bufs[i]);
    }
    stats_release(&leaf->page_stats);
    stats_release(&leaf->stats);
    stats_release(&leaf->last);
    stats_release(&leaf->file_stats);
    encode_dict_release(&leaf->dict);
    bloom_release(&leaf->bloom);
    memset(leaf, 0, sizeof *leaf);
}

void chunk_reset(write_leaf *leaf) {
    drop_pages(leaf);
    encode_dict_reset(&leaf->dict);
    bloom_release(&leaf->bloom);
    buf_reset(&leaf->bounds);
    buf_reset(&leaf->hashes);
    leaf->mode = first_mode(leaf);
    leaf->dict_checked = false;
    leaf->rows = leaf->levels = leaf->nulls = leaf->unpacked_bytes = leaf->value_bytes = 0;
    leaf->n_dict_pages = leaf->n_other_pages = 0;
    leaf->stats.has = leaf->last.has = false;
    leaf->ascending = leaf->descending = leaf->bounds_known = true;
    if (leaf->def_counts != NULL) {
        size_t n = (size_t)leaf->leaf->max_def + leaf->leaf->max_rep + 2u;
        memset(leaf->def_counts, 0, n * sizeof *leaf->def_counts);
    }
}

size_t leaf_memory(const write_leaf *leaf) {
    return leaf->held_bytes + leaf->cap_pages * sizeof *leaf->pages + leaf->defs.cap +
           leaf->reps.cap + leaf->values.cap + leaf->indices.cap + leaf->offsets.cap +
           leaf->bounds.cap + leaf->hashes.cap + encode_dict_memory(&leaf->dict);
}

static size_t page_bytes(const write_leaf *leaf) {
    size_t bytes = leaf->values.len + (size_t)(leaf->page_levels / 8);
    if (leaf->mode == MODE_DICTIONARY) {
        int width = encode_bit_width(leaf->dict.count > 0 ? leaf->dict.count - 1 : 0);
        bytes += (size_t)leaf->page_values * (size_t)width / 8;
    }
    return bytes;
}

size_t leaf_open_bytes(const write_leaf *leaf) {
    return page_bytes(leaf) + leaf->dict.values.len;
}

/* ---- levels of the open page ---- */

static tarn_code add_flat_levels(write_leaf *leaf, const write_block *block, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t before = leaf->defs.len > 0 ? (size_t)leaf->page_levels : 0;
    if (leaf->leaf->max_def == 0 || (block->validity == NULL && before == 0)) {
        return TARN_OK; /* still no null in the page */
    }
    size_t need = bit_bytes(leaf->page_levels + block->n_levels) + 8;
    TRY(buf_reserve(&leaf->defs, need, err));
    if (before == 0) {
        bit_fill(leaf->defs.data, 0, leaf->page_levels, true);
    }
    if (block->validity == NULL) {
        bit_fill(leaf->defs.data, leaf->page_levels, block->n_levels, true);
    } else {
        bit_copy(leaf->defs.data, leaf->page_levels, block->validity, block->validity_start,
                 block->n_levels);
    }
    leaf->defs.len = bit_bytes(leaf->page_levels + block->n_levels);
done:
    return code;
}

static tarn_code add_levels(write_leaf *leaf, const write_block *block, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (is_flat(leaf)) {
        return add_flat_levels(leaf, block, err);
    }
    size_t n = (size_t)block->n_levels;
    TRY(buf_append(&leaf->defs, block->def, n, err));
    for (size_t i = 0; i < n; i++) {
        leaf->def_counts[block->def[i]]++;
    }
    if (block->rep != NULL) {
        TRY(buf_append(&leaf->reps, block->rep, n, err));
        for (size_t i = 0; i < n; i++) {
            leaf->rep_counts[block->rep[i]]++;
        }
    }
done:
    return code;
}

/* ---- values of the open page ---- */

static tarn_code add_bits(write_leaf *leaf, const write_dense *dense, tarn_error *err) {
    size_t len = bit_bytes(leaf->page_values + (int64_t)dense->n);
    tarn_code code = buf_reserve(&leaf->values, len - leaf->values.len + 8, err);
    if (code != TARN_OK) {
        return code;
    }
    memset(leaf->values.data + leaf->values.len, 0, len - leaf->values.len);
    bit_copy(leaf->values.data, leaf->page_values, dense->values, 0, (int64_t)dense->n);
    leaf->values.len = len;
    return TARN_OK;
}

/* Byte arrays side by side, with their ends. */
static tarn_code add_raw_bytes(write_leaf *leaf, const int32_t *offsets, const uint8_t *bytes,
                               size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return TARN_OK;
    }
    size_t base = leaf->values.len;
    if (base + (size_t)(offsets[n] - offsets[0]) > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "column %.*s had a page of more than %d bytes",
                       STR_ARG(leaf->leaf->path), INT32_MAX);
    }
    TRY(buf_reserve(&leaf->offsets, (n + 1) * sizeof(uint32_t), err));
    if (leaf->offsets.len == 0) {
        memset(leaf->offsets.data, 0, sizeof(uint32_t));
        leaf->offsets.len = sizeof(uint32_t);
    }
    uint32_t *ends = (uint32_t *)(void *)(leaf->offsets.data + leaf->offsets.len);
    for (size_t i = 0; i < n; i++) {
        ends[i] = (uint32_t)base + (uint32_t)(offsets[i + 1] - offsets[0]);
    }
    if (offsets[n] > offsets[0]) {
        TRY(buf_append(&leaf->values, bytes + offsets[0], (size_t)(offsets[n] - offsets[0]), err));
    }
    leaf->offsets.len += n * sizeof(uint32_t);
done:
    return code;
}

static tarn_code add_without_dictionary(write_leaf *leaf, const write_dense *dense, size_t from,
                                        tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t n = dense->n - from;
    if (leaf->leaf->physical == PARQUET_BOOLEAN) {
        return add_bits(leaf, dense, err);
    }
    if (leaf->bloom_on) {
        TRY(bloom_note(leaf, dense, from, err));
    }
    if (leaf->width > 0) {
        return buf_append(&leaf->values, dense->values + from * leaf->width, n * leaf->width, err);
    }
    if (leaf->order == ORDER_BYTES) {
        TRY(stats_add_bytes(&leaf->page_stats, dense->offsets + from, dense->bytes, n, err));
    }
    if (leaf->mode == MODE_PLAIN) {
        return encode_plain_bytes(&leaf->values, dense->offsets + from, dense->bytes, n, err);
    }
    TRY(add_raw_bytes(leaf, dense->offsets + from, dense->bytes, n, err));
done:
    return code;
}

tarn_code count_indices(write_leaf *leaf, write_scratch *scratch, tarn_error *err) {
    if (leaf->order != ORDER_BYTES) {
        return TARN_OK;
    }
    return stats_add_indices(&leaf->page_stats, &leaf->dict,
                             (const uint32_t *)(const void *)leaf->indices.data,
                             leaf->indices.len / sizeof(uint32_t), &scratch->marks, err);
}

tarn_code leaf_leave_dictionary(write_leaf *leaf, write_scratch *scratch, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(count_indices(leaf, scratch, err));
    TRY(encode_dict_expand(&leaf->dict, (const uint32_t *)(const void *)leaf->indices.data,
                           leaf->indices.len / sizeof(uint32_t), &leaf->values, err));
    buf_reset(&leaf->indices);
    leaf->mode = MODE_PLAIN;
    if (leaf->bloom_on) {
        TRY(bloom_note_dictionary(leaf, err));
    }
    if (leaf->n_dict_pages == 0) {
        encode_dict_reset(&leaf->dict);
    }
done:
    return code;
}

static tarn_code add_values(write_leaf *leaf, const write_dense *dense, write_scratch *scratch,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t done_values = 0;
    size_t n = dense->n;
    leaf->page_plain += n * (leaf->width > 0 ? leaf->width : 4);
    if (leaf->leaf->physical == PARQUET_BYTE_ARRAY) {
        leaf->page_plain += (size_t)(dense->offsets[n] - dense->offsets[0]);
    }
    if (leaf->mode != MODE_DICTIONARY) {
        return add_without_dictionary(leaf, dense, 0, err);
    }
    TRY(buf_reserve(&leaf->indices, n * sizeof(uint32_t) + 1, err));
    uint32_t *indices = (uint32_t *)(void *)(leaf->indices.data + leaf->indices.len);
    if (leaf->width > 0) {
        TRY(encode_dict_fixed(&leaf->dict, dense->values, n, indices, &done_values, err));
    } else {
        TRY(encode_dict_bytes(&leaf->dict, dense->offsets, dense->bytes, n, indices, &done_values,
                              err));
    }
    leaf->indices.len += done_values * sizeof(uint32_t);
    if (done_values < n) {
        TRY(leaf_leave_dictionary(leaf, scratch, err));
        TRY(add_without_dictionary(leaf, dense, done_values, err));
    } else if (!leaf->dict_checked && leaf->page_values + (int64_t)n >= EARLY_LOOK_VALUES) {
        /* nearly all values new: tens of thousands of them, so the first page cannot pay */
        leaf->dict_checked = true;
        size_t seen = (size_t)leaf->page_values + n;
        if (leaf->wanted == PARQUET_WRITE_AUTO && leaf->dict.count > seen - seen / 16) {
            TRY(leaf_leave_dictionary(leaf, scratch, err));
        }
    }
done:
    return code;
}

/* ---- rows ---- */

static bool page_is_full(const write_leaf *leaf) {
    return leaf->page_rows >= leaf->options->page_rows ||
           leaf->page_levels >= leaf->options->page_values ||
           page_bytes(leaf) >= (size_t)leaf->options->page_bytes;
}

/* The next block's end: small enough that pages end near their limits. */
static int64_t next_end(const write_leaf *leaf, const tarn_view *column, int64_t start,
                        int64_t end) {
    const parquet_write_options *o = leaf->options;
    int64_t rows = o->page_rows - leaf->page_rows;
    int64_t bytes = o->page_bytes - (int64_t)page_bytes(leaf);
    bytes = bytes > o->page_bytes / 8 ? bytes : o->page_bytes / 8;
    int64_t levels = o->page_values - leaf->page_levels;
    end = end - start > rows ? start + rows : end;
    return start + levels_block_rows(leaf, column, start, end, bytes, levels);
}

tarn_code leaf_add(write_leaf *leaf, write_scratch *scratch, const tarn_view *column, int64_t start,
                   int64_t end, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (start < end) {
        write_block block;
        write_dense dense;
        int64_t stop = next_end(leaf, column, start, end);
        write_rows rows = {column, start, stop};
        TRY(levels_make(leaf, &rows, scratch, &block, err));
        if (leaf->page_rows > 0 &&
            leaf->page_levels + block.n_levels > leaf->options->page_values) {
            TRY(page_end(leaf, scratch, err));
        }
        TRY(dense_make(leaf, &block, scratch, &dense, err));
        TRY(add_levels(leaf, &block, err));
        TRY(add_values(leaf, &dense, scratch, err));
        leaf->page_rows += block.n_rows;
        leaf->page_levels += block.n_levels;
        leaf->page_values += block.n_values;
        start = stop;
        if (page_is_full(leaf)) {
            TRY(page_end(leaf, scratch, err));
        }
    }
done:
    return code;
}
