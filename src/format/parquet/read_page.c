/* format/parquet/read_page.c - pages out of a column's bytes: headers, checksums, unpacking,
 * levels.
 *
 * A page's body is only unpacked when a value of it is wanted. Sizes and counts of headers are
 * checked against the bytes that are there and against the chunk before memory follows them (B49).
 */
#include "format/parquet/parquet_read_int.h"

#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>

tarn_code column_error(const read_column *c, tarn_code code, tarn_error *err, const char *fmt,
                       ...) {
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(err, code, "%s: column %.*s of row group %d %s", c->file->source->name,
                   STR_ARG(c->leaf->path), c->group, text);
}

int64_t page_values(const parquet_page_header *header) {
    return header->type == PARQUET_DATA_PAGE_V2 ? header->v2.num_values : header->data.num_values;
}

static tarn_code codec_of(const read_column *c, codec_kind *out, tarn_error *err) {
    switch ((parquet_codec)c->chunk->meta.codec) {
    case PARQUET_UNCOMPRESSED:
        *out = CODEC_NONE;
        return TARN_OK;
    case PARQUET_SNAPPY:
        *out = CODEC_SNAPPY;
        return TARN_OK;
    case PARQUET_GZIP:
        *out = CODEC_GZIP;
        return TARN_OK;
    case PARQUET_BROTLI:
        *out = CODEC_BROTLI;
        return TARN_OK;
    case PARQUET_LZ4:
        *out = CODEC_LZ4_HADOOP;
        return TARN_OK;
    case PARQUET_ZSTD:
        *out = CODEC_ZSTD;
        return TARN_OK;
    case PARQUET_LZ4_RAW:
        *out = CODEC_LZ4_RAW;
        return TARN_OK;
    case PARQUET_LZO:
        return column_error(c, TARN_UNSUPPORTED, err, "was compressed with LZO");
    }
    return column_error(c, TARN_UNSUPPORTED, err, "was compressed with unknown codec %d",
                        c->chunk->meta.codec);
}

/* How much a byte of each codec can become at most; beyond it a size is a lie, not worth memory. */
static size_t most_unpacked(codec_kind kind, size_t packed) {
    size_t ratio = 1 << 16;
    if (kind == CODEC_SNAPPY) {
        ratio = 32;
    } else if (kind == CODEC_GZIP) {
        ratio = 1100;
    } else if (kind == CODEC_LZ4_RAW || kind == CODEC_LZ4_HADOOP) {
        ratio = 256;
    }
    size_t most = 0;
    return num_mul_size(packed + 64, ratio, &most) ? most : SIZE_MAX;
}

/* Unpacks src to `len` bytes, in the column's page buffer or where src is when nothing is packed.
 */
static tarn_code unpack(read_column *c, tarn_str src, size_t len, const uint8_t **out,
                        tarn_error *err) {
    codec_kind kind = CODEC_NONE;
    tarn_code code = codec_of(c, &kind, err);
    if (code != TARN_OK) {
        return code;
    }
    if (kind == CODEC_NONE) {
        if (src.len != len) {
            return column_error(c, TARN_CORRUPT, err,
                                "had a page of %zu bytes that should have been %zu", src.len, len);
        }
        *out = (const uint8_t *)src.data;
        return TARN_OK;
    }
    if (len > most_unpacked(kind, src.len)) {
        return column_error(c, TARN_CORRUPT, err, "had a page of %zu bytes that claimed %zu",
                            src.len, len);
    }
    buf_reset(&c->page);
    code = buf_reserve(&c->page, len + 16, err);
    if (code != TARN_OK) {
        return code;
    }
    *out = c->page.data;
    /* A page of nulls may hold no bytes at all, not even those of the codec. */
    if (len == 0) {
        return TARN_OK;
    }
    code = codec_decompress(c->codec, kind, src, c->page.data, len, err);
    return code == TARN_OK ? code
                           : err_add(err, code, "column %.*s of row group %d",
                                     STR_ARG(c->leaf->path), c->group);
}

/* Reads one header and checks that its body is there; c->at is after the body then. */
static tarn_code next_header(read_column *c, tarn_error *err) {
    size_t used = 0;
    parquet_page_header *h = &c->header;
    tarn_code code =
        thrift_decode(NULL, &parquet_page_header_thrift, str_make(c->at, (size_t)(c->end - c->at)),
                      "page header", h, &used, err);
    if (code != TARN_OK) {
        return err_add(err, code, "%s, column %.*s of row group %d", c->file->source->name,
                       STR_ARG(c->leaf->path), c->group);
    }
    c->at += used;
    const size_t left = (size_t)(c->end - c->at);
    if (h->compressed_size < 0 || (size_t)h->compressed_size > left) {
        return column_error(c, TARN_CORRUPT, err, "had a page of %d bytes where %zu were left",
                            h->compressed_size, left);
    }
    if (h->uncompressed_size < 0 || (uint32_t)h->uncompressed_size > LIMIT_DECODE_BLOCK_BYTES) {
        return column_error(c, TARN_CORRUPT, err, "had a page that claimed %d unpacked bytes",
                            h->uncompressed_size);
    }
    c->body = c->at;
    c->at += h->compressed_size;
    return TARN_OK;
}

static tarn_code check_crc(const read_column *c, tarn_error *err) {
    const parquet_page_header *h = &c->header;
    if (c->file->options.skip_checksums || !THRIFT_HAS(h, PARQUET_PAGE_CRC)) {
        return TARN_OK;
    }
    const uint32_t crc = num_crc32(0, c->body, (size_t)h->compressed_size);
    return crc == (uint32_t)h->crc
               ? TARN_OK
               : column_error(c, TARN_CORRUPT, err,
                              "had a page with checksum %08x that should have been %08x", crc,
                              (uint32_t)h->crc);
}

static tarn_code read_dictionary_page(read_column *c, tarn_error *err) {
    const parquet_page_header *h = &c->header;
    const uint8_t *data = NULL;
    if (!THRIFT_HAS(h, PARQUET_PAGE_DICTIONARY)) {
        return column_error(c, TARN_CORRUPT, err, "had a dictionary page without its header");
    }
    if (c->dictionary.present) {
        return column_error(c, TARN_CORRUPT, err, "had two dictionaries");
    }
    tarn_code code = check_crc(c, err);
    if (code == TARN_OK) {
        code = unpack(c, str_make(c->body, (size_t)h->compressed_size),
                      (size_t)h->uncompressed_size, &data, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    return dictionary_open(c, h->dictionary.encoding, data, (size_t)h->uncompressed_size,
                           h->dictionary.num_values, err);
}

/* A data page's counts against the chunk's. */
static tarn_code check_data_page(read_column *c, tarn_error *err) {
    const parquet_page_header *h = &c->header;
    const bool v2 = h->type == PARQUET_DATA_PAGE_V2;
    if (!THRIFT_HAS(h, v2 ? PARQUET_PAGE_V2 : PARQUET_PAGE_DATA)) {
        return column_error(c, TARN_CORRUPT, err, "had a data page without its header");
    }
    const int64_t n = page_values(h);
    const int64_t left = c->chunk->meta.num_values - c->values_seen;
    if (n < 0 || n > left) {
        return column_error(c, TARN_CORRUPT, err,
                            "had a page of %lld values where %lld of %lld were left", (long long)n,
                            (long long)left, (long long)c->chunk->meta.num_values);
    }
    if (v2 &&
        (h->v2.num_nulls < 0 || h->v2.num_nulls > n || h->v2.num_rows < 0 || h->v2.num_rows > n)) {
        return column_error(c, TARN_CORRUPT, err,
                            "had a page of %lld values with %d nulls and %d rows", (long long)n,
                            h->v2.num_nulls, h->v2.num_rows);
    }
    c->values_seen += n;
    return TARN_OK;
}

tarn_code column_next_page(read_column *c, bool *more, tarn_error *err) {
    *more = false;
    for (;;) {
        const bool done = c->values_seen >= c->chunk->meta.num_values;
        if (done || (c->indexed && c->at >= c->end)) {
            return TARN_OK;
        }
        if (c->at >= c->end) {
            return column_error(c, TARN_CORRUPT, err, "ended after %lld of %lld values",
                                (long long)c->values_seen, (long long)c->chunk->meta.num_values);
        }
        tarn_code code = next_header(c, err);
        if (code != TARN_OK) {
            return code;
        }
        if (c->header.type == PARQUET_DICTIONARY_PAGE) {
            code = read_dictionary_page(c, err);
        } else if (c->header.type == PARQUET_DATA_PAGE || c->header.type == PARQUET_DATA_PAGE_V2) {
            code = check_data_page(c, err);
            if (code == TARN_OK && page_values(&c->header) > 0) {
                c->page_left = page_values(&c->header);
                c->page_waiting = true;
                *more = true;
                return TARN_OK;
            }
        }
        if (code != TARN_OK) {
            return code;
        }
    }
}

tarn_code column_load_dictionary(read_column *c, tarn_error *err) {
    const uint8_t *at = c->at, *end = c->end;
    c->at = c->dictionary_bytes.data;
    c->end = c->at + c->dictionary_bytes.len;
    tarn_code code = TARN_OK;
    while (code == TARN_OK && !c->dictionary.present && c->at < c->end) {
        code = next_header(c, err);
        if (code == TARN_OK && c->header.type == PARQUET_DICTIONARY_PAGE) {
            code = read_dictionary_page(c, err);
        }
    }
    c->at = at;
    c->end = end;
    return code;
}

static int level_width(uint32_t max) {
    int width = 0;
    while (max >> width != 0) {
        width++;
    }
    return width;
}

typedef struct level_place {
    const uint8_t *at;
    const uint8_t *end;
    int64_t n; /* entries */
} level_place;

/* The levels of a v1 page: a length and the hybrid, or bit-packed without one. */
static tarn_code open_levels(read_column *c, level_place *p, int32_t encoding, uint8_t max,
                             hybrid_reader *hybrid, const uint8_t **msb, tarn_error *err) {
    const size_t left = (size_t)(p->end - p->at);
    const int width = level_width(max);
    *msb = NULL;
    if (max == 0) {
        return TARN_OK;
    }
    if (encoding == PARQUET_BIT_PACKED) {
        const size_t need = ((size_t)p->n * (size_t)width + 7) / 8;
        if (need > left) {
            return column_error(c, TARN_CORRUPT, err, "had a page too short for its levels");
        }
        *msb = p->at;
        p->at += need;
        return TARN_OK;
    }
    if (encoding != PARQUET_RLE) {
        return column_error(c, TARN_UNSUPPORTED, err, "had levels of encoding %d", encoding);
    }
    if (left < 4 || num_load_u32(p->at) > left - 4) {
        return column_error(c, TARN_CORRUPT, err, "had a page too short for its levels");
    }
    const uint32_t len = num_load_u32(p->at);
    hybrid_open(hybrid, p->at + 4, len, width);
    p->at += 4 + len;
    return TARN_OK;
}

static tarn_code open_v1(read_column *c, tarn_error *err) {
    const parquet_page_header *h = &c->header;
    const uint8_t *data = NULL;
    tarn_code code = unpack(c, str_make(c->body, (size_t)h->compressed_size),
                            (size_t)h->uncompressed_size, &data, err);
    if (code != TARN_OK) {
        return code;
    }
    level_place p = {data, data + h->uncompressed_size, h->data.num_values};
    code = open_levels(c, &p, h->data.repetition_encoding, c->leaf->max_rep, &c->rep, &c->rep_msb,
                       err);
    if (code == TARN_OK) {
        code = open_levels(c, &p, h->data.definition_encoding, c->leaf->max_def, &c->def,
                           &c->def_msb, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    return values_open(c, h->data.encoding, p.at, (size_t)(p.end - p.at), err);
}

static tarn_code open_v2(read_column *c, tarn_error *err) {
    const parquet_page_header *h = &c->header;
    const int64_t levels = (int64_t)h->v2.repetition_bytes + h->v2.definition_bytes;
    if (h->v2.repetition_bytes < 0 || h->v2.definition_bytes < 0 || levels > h->compressed_size ||
        levels > h->uncompressed_size) {
        return column_error(c, TARN_CORRUPT, err, "had a page of %d bytes with %lld of levels",
                            h->compressed_size, (long long)levels);
    }
    hybrid_open(&c->rep, c->body, (size_t)h->v2.repetition_bytes, level_width(c->leaf->max_rep));
    hybrid_open(&c->def, c->body + h->v2.repetition_bytes, (size_t)h->v2.definition_bytes,
                level_width(c->leaf->max_def));
    c->rep_msb = NULL;
    c->def_msb = NULL;
    const uint8_t *data = c->body + levels;
    const size_t packed = (size_t)(h->compressed_size - levels);
    size_t len = (size_t)(h->uncompressed_size - levels);
    if (!THRIFT_HAS(&h->v2, PARQUET_V2_IS_COMPRESSED) || h->v2.is_compressed) {
        tarn_code code = unpack(c, str_make(data, packed), len, &data, err);
        if (code != TARN_OK) {
            return code;
        }
    } else {
        len = packed;
    }
    return values_open(c, h->v2.encoding, data, len, err);
}

tarn_code column_unpack_page(read_column *c, tarn_error *err) {
    c->page_waiting = false;
    c->msb_at = 0;
    tarn_code code = check_crc(c, err);
    if (code != TARN_OK) {
        return code;
    }
    return c->header.type == PARQUET_DATA_PAGE_V2 ? open_v2(c, err) : open_v1(c, err);
}
