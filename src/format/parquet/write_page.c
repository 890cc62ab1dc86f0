/* write_page.c - the open page of a leaf becomes bytes: levels, values, compression, checksum,
 * header ("Data Pages"); and at the end of a row group its dictionary page and bloom filter.
 *
 * A finished page is one block of memory, header and body, as it will lie in the file. Its minimum
 * and maximum go into the leaf's bounds for the column index. */
#include "format/parquet/parquet_write_int.h"

#include <stdlib.h>

/* A hash of every value is kept until a filter of the largest size could not be avoided. */
#define BLOOM_BITS_PER_VALUE 8

/* ---- bloom filter ---- */

/* Values that fill a filter of the largest size. */
static size_t bloom_hashes_max(const write_leaf *leaf) {
    return (size_t)leaf->options->bloom_max_bytes * 8 / BLOOM_BITS_PER_VALUE;
}

static tarn_code note_hash(write_leaf *leaf, uint64_t hash, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (leaf->bloom.words != NULL) {
        bloom_add(&leaf->bloom, hash);
        return TARN_OK;
    }
    TRY(buf_append(&leaf->hashes, &hash, sizeof hash, err));
    size_t n = leaf->hashes.len / sizeof hash;
    if (n >= bloom_hashes_max(leaf)) {
        size_t size = bloom_size_bytes(n, leaf->bloom_fpp, (size_t)leaf->options->bloom_max_bytes);
        TRY(bloom_init(&leaf->bloom, leaf->env, size, err));
        for (size_t i = 0; i < n; i++) {
            bloom_add(&leaf->bloom, num_load_u64(leaf->hashes.data + i * sizeof hash));
        }
        buf_release(&leaf->hashes);
        buf_init(&leaf->hashes, leaf->env, 0);
    }
done:
    return code;
}

tarn_code bloom_note(write_leaf *leaf, const write_dense *dense, size_t from, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (size_t i = from; i < dense->n; i++) {
        uint64_t hash = leaf->width > 0
                            ? bloom_hash(dense->values + i * leaf->width, leaf->width)
                            : bloom_hash(dense->bytes == NULL ? (const uint8_t *)""
                                                              : dense->bytes + dense->offsets[i],
                                         (size_t)(dense->offsets[i + 1] - dense->offsets[i]));
        TRY(note_hash(leaf, hash, err));
    }
done:
    return code;
}

tarn_code bloom_note_dictionary(write_leaf *leaf, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (uint32_t i = 0; i < leaf->dict.count; i++) {
        tarn_str value = encode_dict_value(&leaf->dict, i);
        TRY(note_hash(leaf, bloom_hash(value.data, value.len), err));
    }
done:
    return code;
}

static int cmp_hash(const void *a, const void *b) {
    uint64_t x = num_load_u64(a);
    uint64_t y = num_load_u64(b);
    return (x > y) - (x < y);
}

tarn_code bloom_end(write_leaf *leaf, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (leaf->mode == MODE_DICTIONARY) {
        TRY(bloom_note_dictionary(leaf, err));
    }
    if (leaf->bloom.words != NULL) {
        return TARN_OK;
    }
    size_t n = leaf->hashes.len / sizeof(uint64_t);
    if (n == 0) {
        return TARN_OK; /* no value: statistics say as much */
    }
    uint64_t *hashes = (uint64_t *)(void *)leaf->hashes.data;
    qsort(hashes, n, sizeof *hashes, cmp_hash);
    size_t distinct = 1;
    for (size_t i = 1; i < n; i++) {
        distinct += hashes[i] != hashes[i - 1];
    }
    size_t size =
        bloom_size_bytes(distinct, leaf->bloom_fpp, (size_t)leaf->options->bloom_max_bytes);
    TRY(bloom_init(&leaf->bloom, leaf->env, size, err));
    for (size_t i = 0; i < n; i++) {
        bloom_add(&leaf->bloom, hashes[i]);
    }
done:
    return code;
}

/* ---- levels and values ---- */

/* A hybrid run of levels; for data pages of version 1 its length goes before it. */
static tarn_code put_levels(const write_leaf *leaf, bool repetition, bool with_length,
                            tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t max = repetition ? leaf->leaf->max_rep : leaf->leaf->max_def;
    const tarn_buf *levels = repetition ? &leaf->reps : &leaf->defs;
    size_t n = (size_t)leaf->page_levels;
    size_t start = out->len;
    if (max == 0) {
        return TARN_OK;
    }
    if (with_length) {
        TRY(buf_append(out, "\0\0\0\0", 4, err));
    }
    if (leaf->def_counts != NULL) {
        TRY(encode_hybrid_u8(out, levels->data, n, encode_bit_width(max), err));
    } else if (levels->len == 0) {
        TRY(encode_hybrid_run(out, 1, n, 1, err));
    } else {
        TRY(encode_hybrid_bits(out, levels->data, n, err));
    }
    if (with_length) {
        uint32_t len = (uint32_t)(out->len - start - 4);
        memcpy(out->data + start, &len, 4);
    }
done:
    return code;
}

static tarn_code put_indices(const write_leaf *leaf, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int width = encode_bit_width(leaf->dict.count > 0 ? leaf->dict.count - 1 : 0);
    TRY(buf_append_char(out, (char)width, err));
    TRY(encode_hybrid_u32(out, (const uint32_t *)(const void *)leaf->indices.data,
                          leaf->indices.len / sizeof(uint32_t), width, err));
done:
    return code;
}

int32_t leaf_other_encoding(const write_leaf *leaf) {
    bool is_bytes = leaf->leaf->physical == PARQUET_BYTE_ARRAY;
    if (leaf->leaf->physical == PARQUET_BOOLEAN && leaf->options->page_version == 2) {
        return PARQUET_RLE;
    }
    switch (leaf->wanted) {
    case PARQUET_WRITE_DELTA:
        return is_bytes ? PARQUET_DELTA_BYTE_ARRAY : PARQUET_DELTA_BINARY_PACKED;
    case PARQUET_WRITE_DELTA_LENGTH:
        return PARQUET_DELTA_LENGTH_BYTE_ARRAY;
    case PARQUET_WRITE_STREAM_SPLIT:
        return PARQUET_BYTE_STREAM_SPLIT;
    case PARQUET_WRITE_AUTO:
    case PARQUET_WRITE_PLAIN:
    case PARQUET_WRITE_DICTIONARY:
        break;
    }
    return PARQUET_PLAIN;
}

static tarn_code put_raw(const write_leaf *leaf, write_scratch *scratch, int32_t encoding,
                         tarn_buf *out, tarn_error *err) {
    size_t n = (size_t)leaf->page_values;
    const uint8_t *values = leaf->values.data;
    static const uint32_t none[1] = {0};
    const uint32_t *offsets = n > 0 ? (const uint32_t *)(const void *)leaf->offsets.data : none;
    switch (encoding) {
    case PARQUET_BYTE_STREAM_SPLIT:
        return encode_stream_split(out, values, n, leaf->width, err);
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return encode_delta_length(out, offsets, values, n, err);
    case PARQUET_DELTA_BYTE_ARRAY:
        return encode_delta_bytes(out, offsets, values, n, &scratch->marks, err);
    default:
        return leaf->width == 4
                   ? encode_delta_i32(out, (const int32_t *)(const void *)values, n, err)
                   : encode_delta_i64(out, (const int64_t *)(const void *)values, n, err);
    }
}

/* Booleans of version 2 pages are run-length encoded, with their length in front. */
static tarn_code put_bools(const write_leaf *leaf, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t start = out->len;
    TRY(buf_append(out, "\0\0\0\0", 4, err));
    TRY(encode_hybrid_bits(out, leaf->values.data, (size_t)leaf->page_values, err));
    uint32_t len = (uint32_t)(out->len - start - 4);
    memcpy(out->data + start, &len, 4);
done:
    return code;
}

static tarn_code put_values(const write_leaf *leaf, write_scratch *scratch, tarn_buf *out,
                            int32_t *encoding, tarn_error *err) {
    if (leaf->mode == MODE_DICTIONARY && leaf->dict.count > 0) {
        *encoding = PARQUET_RLE_DICTIONARY;
        return put_indices(leaf, out, err);
    }
    *encoding = leaf_other_encoding(leaf);
    if (leaf->mode == MODE_RAW) {
        return put_raw(leaf, scratch, *encoding, out, err);
    }
    if (*encoding == PARQUET_RLE) {
        return put_bools(leaf, out, err);
    }
    return buf_append(out, leaf->values.data, leaf->values.len, err);
}

/* ---- page ---- */

typedef struct page_body {
    tarn_str bytes; /* as they will lie in the file */
    size_t plain;   /* of these so many are never compressed: levels of version 2 */
    bool may_stay_plain;
    bool packed; /* the rest is compressed */
} page_body;

/* Compresses what the scratch's raw buffer holds. */
static tarn_code pack(const write_leaf *leaf, write_scratch *scratch, page_body *body,
                      tarn_error *err) {
    tarn_code code = TARN_OK;
    const parquet_write_options *o = leaf->options;
    tarn_buf *raw = &scratch->raw;
    body->bytes = buf_str(raw);
    body->packed = false;
    if (o->codec == CODEC_NONE || (body->may_stay_plain && raw->len == body->plain)) {
        return TARN_OK;
    }
    buf_reset(&scratch->packed);
    TRY(buf_append(&scratch->packed, raw->data, body->plain, err));
    TRY(codec_compress(&scratch->codec, o->codec, o->level, str_from(buf_str(raw), body->plain),
                       &scratch->packed, err));
    if (body->may_stay_plain && scratch->packed.len >= raw->len) {
        return TARN_OK;
    }
    body->bytes = buf_str(&scratch->packed);
    body->packed = true;
done:
    return code;
}

/* Header and body as one block. */
static tarn_code seal(const write_leaf *leaf, write_scratch *scratch, parquet_page_header *header,
                      tarn_str body, write_page *page, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (scratch->raw.len > INT32_MAX || body.len > INT32_MAX) {
        return err_set(err, TARN_LIMIT, "column %.*s had a page of %zu bytes, more than %d",
                       STR_ARG(leaf->leaf->path), scratch->raw.len, INT32_MAX);
    }
    header->uncompressed_size = (int32_t)scratch->raw.len;
    header->compressed_size = (int32_t)body.len;
    if (!leaf->options->no_checksums) {
        THRIFT_SET(header, PARQUET_PAGE_CRC);
        header->crc = (int32_t)num_crc32(0, body.data, body.len);
    }
    tarn_buf *head = &scratch->marks;
    buf_reset(head);
    TRY(thrift_encode(&parquet_page_header_thrift, header, head, err));
    uint8_t *data = env_alloc(leaf->env, head->len + body.len);
    if (data == NULL) {
        return err_nomem(err);
    }
    memcpy(data, head->data, head->len);
    if (body.len > 0) {
        memcpy(data + head->len, body.data, body.len);
    }
    page->data = data;
    page->size_bytes = head->len + body.len;
    page->unpacked_bytes = (int64_t)(head->len + scratch->raw.len);
done:
    return code;
}

static tarn_code build_page(const write_leaf *leaf, write_scratch *scratch, write_page *page,
                            bool *is_dictionary, tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_page_header header;
    memset(&header, 0, sizeof header);
    bool v2 = leaf->options->page_version == 2;
    tarn_buf *raw = &scratch->raw;
    buf_reset(raw);
    TRY(put_levels(leaf, true, !v2, raw, err));
    size_t rep_bytes = raw->len;
    TRY(put_levels(leaf, false, !v2, raw, err));
    size_t level_bytes = raw->len;
    int32_t encoding = PARQUET_PLAIN;
    TRY(put_values(leaf, scratch, raw, &encoding, err));
    page_body body = {.plain = v2 ? level_bytes : 0, .may_stay_plain = v2};
    TRY(pack(leaf, scratch, &body, err));
    if (v2) {
        header.type = PARQUET_DATA_PAGE_V2;
        THRIFT_SET(&header, PARQUET_PAGE_V2);
        header.v2.num_values = (int32_t)leaf->page_levels;
        header.v2.num_nulls = (int32_t)(leaf->page_levels - leaf->page_values);
        header.v2.num_rows = (int32_t)leaf->page_rows;
        header.v2.encoding = encoding;
        header.v2.definition_bytes = (int32_t)(level_bytes - rep_bytes);
        header.v2.repetition_bytes = (int32_t)rep_bytes;
        THRIFT_SET(&header.v2, PARQUET_V2_IS_COMPRESSED);
        header.v2.is_compressed = body.packed;
    } else {
        header.type = PARQUET_DATA_PAGE;
        THRIFT_SET(&header, PARQUET_PAGE_DATA);
        header.data.num_values = (int32_t)leaf->page_levels;
        header.data.encoding = encoding;
        header.data.definition_encoding = PARQUET_RLE;
        header.data.repetition_encoding = PARQUET_RLE;
    }
    TRY(seal(leaf, scratch, &header, body.bytes, page, err));
    *is_dictionary = encoding == PARQUET_RLE_DICTIONARY;
done:
    return code;
}

/* Whether the dictionary was worth having for the page that ends. */
static bool dictionary_pays(const write_leaf *leaf) {
    int width = encode_bit_width(leaf->dict.count > 0 ? leaf->dict.count - 1 : 0);
    size_t added = leaf->dict.values.len - leaf->page_new;
    return added + (size_t)leaf->page_values * (size_t)width / 8 < leaf->page_plain ||
           leaf->page_values == 0;
}

/* The page's place in the column index. */
static tarn_code note_bounds(write_leaf *leaf, write_page *page, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool exact = false;
    page->is_null = leaf->page_values == 0;
    page->has_bounds = !page->is_null && leaf->page_stats.has;
    if (page->is_null) {
        return TARN_OK;
    }
    if (!page->has_bounds) { /* only NaNs: the chunk gets no column index */
        leaf->bounds_known = false;
        return TARN_OK;
    }
    page->min_at = (uint32_t)leaf->bounds.len;
    TRY(stats_put(leaf, &leaf->page_stats, false, &leaf->bounds, &exact, err));
    page->max_at = (uint32_t)leaf->bounds.len;
    TRY(stats_put(leaf, &leaf->page_stats, true, &leaf->bounds, &exact, err));
    page->min_len = page->max_at - page->min_at;
    page->max_len = (uint32_t)leaf->bounds.len - page->max_at;
    if (leaf->last.has) {
        int min = stats_cmp(leaf->order, &leaf->page_stats, &leaf->last, false);
        int max = stats_cmp(leaf->order, &leaf->page_stats, &leaf->last, true);
        leaf->ascending = leaf->ascending && min >= 0 && max >= 0;
        leaf->descending = leaf->descending && min <= 0 && max <= 0;
    }
    TRY(stats_merge(&leaf->stats, leaf->order, &leaf->page_stats, err));
    write_stats swap = leaf->last;
    leaf->last = leaf->page_stats;
    leaf->page_stats = swap;
done:
    return code;
}

static tarn_code reserve_page(write_leaf *leaf, tarn_error *err) {
    if (leaf->n_pages == INT32_MAX) {
        return err_set(err, TARN_LIMIT, "column %.*s had too many pages",
                       STR_ARG(leaf->leaf->path));
    }
    if (leaf->n_pages < leaf->cap_pages) {
        return TARN_OK;
    }
    size_t cap = leaf->cap_pages == 0 ? 4 : leaf->cap_pages * 2;
    write_page *pages = env_realloc(leaf->env, leaf->pages, cap * sizeof *pages);
    if (pages == NULL) {
        return err_nomem(err);
    }
    leaf->pages = pages;
    leaf->cap_pages = cap;
    return TARN_OK;
}

static void open_page(write_leaf *leaf) {
    leaf->page_rows = leaf->page_levels = leaf->page_values = 0;
    leaf->page_plain = 0;
    leaf->page_new = leaf->dict.values.len;
    leaf->page_stats.has = false;
    buf_reset(&leaf->defs);
    buf_reset(&leaf->reps);
    buf_reset(&leaf->values);
    buf_reset(&leaf->indices);
    buf_reset(&leaf->offsets);
}

tarn_code page_end(write_leaf *leaf, write_scratch *scratch, tarn_error *err) {
    tarn_code code = TARN_OK;
    write_page page = {0};
    bool is_dictionary = false;
    bool pays = true;
    if (leaf->page_rows == 0) {
        return TARN_OK;
    }
    if (leaf->mode == MODE_DICTIONARY) {
        pays = leaf->wanted == PARQUET_WRITE_DICTIONARY || dictionary_pays(leaf);
        if (!pays) {
            TRY(leaf_leave_dictionary(leaf, scratch, err));
        } else {
            TRY(count_indices(leaf, scratch, err));
        }
    }
    TRY(reserve_page(leaf, err));
    TRY(build_page(leaf, scratch, &page, &is_dictionary, err));
    page.first_row = leaf->rows;
    page.n_nulls = leaf->page_levels - leaf->page_values;
    leaf->pages[leaf->n_pages++] = page;
    write_page *placed = &leaf->pages[leaf->n_pages - 1];
    leaf->held_bytes += page.size_bytes;
    leaf->unpacked_bytes += page.unpacked_bytes;
    leaf->n_dict_pages += is_dictionary;
    leaf->n_other_pages += !is_dictionary;
    leaf->rows += leaf->page_rows;
    leaf->levels += leaf->page_levels;
    leaf->nulls += placed->n_nulls;
    leaf->value_bytes += leaf->leaf->physical == PARQUET_BYTE_ARRAY
                             ? (int64_t)leaf->page_plain - 4 * leaf->page_values
                             : 0;
    TRY(note_bounds(leaf, placed, err));
    open_page(leaf);
done:
    return code;
}

static tarn_code end_dictionary(write_leaf *leaf, write_scratch *scratch, tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_page_header header;
    page_body body = {0};
    write_page page = {0};
    memset(&header, 0, sizeof header);
    buf_reset(&scratch->raw);
    TRY(buf_append(&scratch->raw, leaf->dict.values.data, leaf->dict.values.len, err));
    TRY(pack(leaf, scratch, &body, err));
    header.type = PARQUET_DICTIONARY_PAGE;
    THRIFT_SET(&header, PARQUET_PAGE_DICTIONARY);
    header.dictionary.num_values = (int32_t)leaf->dict.count;
    header.dictionary.encoding = PARQUET_PLAIN;
    TRY(seal(leaf, scratch, &header, body.bytes, &page, err));
    leaf->dict_page = page.data;
    leaf->dict_page_bytes = page.size_bytes;
    leaf->held_bytes += page.size_bytes;
    leaf->unpacked_bytes += page.unpacked_bytes;
done:
    return code;
}

tarn_code chunk_end(write_leaf *leaf, write_scratch *scratch, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(page_end(leaf, scratch, err));
    if (leaf->bloom_on) {
        TRY(bloom_end(leaf, err));
    }
    if (leaf->n_dict_pages > 0) {
        TRY(end_dictionary(leaf, scratch, err));
    }
    TRY(stats_merge(&leaf->file_stats, leaf->order, &leaf->stats, err));
    leaf->file_levels += leaf->levels;
    leaf->file_nulls += leaf->nulls;
    leaf->file_bytes += (int64_t)leaf->held_bytes;
done:
    return code;
}
