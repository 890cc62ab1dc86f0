/* format/parquet/read_value.c - the values of one page, by encoding, as dense canonical values.
 *
 * Every loop checks that the bytes are there before it takes them, whole runs at a time where
 * widths are fixed. What needs memory by a count from outside streams instead. */
#include "format/parquet/parquet_read_int.h"

#include "base/limits.h"

#define SCRATCH_VALUES 512

static tarn_code too_short(const read_column *c, tarn_error *err) {
    return column_error(c, TARN_CORRUPT, err,
                        "had a page whose values ended early or were damaged");
}

static tarn_code bad_encoding(const read_column *c, int32_t encoding, tarn_error *err) {
    return column_error(c, TARN_UNSUPPORTED, err, "had values of physical type %d in encoding %d",
                        c->leaf->physical, encoding);
}

static tarn_code bad_value(read_column *c, int64_t at, const char *problem, tarn_error *err) {
    c->bad_value = at;
    return column_error(c, TARN_CORRUPT, err, "%s", problem);
}

void values_release(read_column *c) {
    buf_release(&c->values.last);
    builder_release(&c->dictionary.values);
}

/* ---- opening a page ---- */

static tarn_code open_dictionary_indexes(read_column *c, value_reader *v, tarn_error *err) {
    if (!c->dictionary.present) {
        return column_error(c, TARN_CORRUPT, err,
                            "had a dictionary-encoded page but no dictionary");
    }
    const size_t len = (size_t)(v->end - v->at);
    const int width = len > 0 ? v->at[0] : 0;
    if (width > 32) {
        return column_error(c, TARN_CORRUPT, err, "had dictionary indexes of %d bits", width);
    }
    hybrid_open(&v->hybrid, v->at + (len > 0), len > 0 ? len - 1 : 0, width);
    return TARN_OK;
}

static tarn_code open_bool_runs(read_column *c, value_reader *v, tarn_error *err) {
    const size_t len = (size_t)(v->end - v->at);
    if (len == 0) { /* nothing but nulls */
        hybrid_open(&v->hybrid, v->at, 0, 1);
        return TARN_OK;
    }
    if (len < 4 || num_load_u32(v->at) > len - 4) {
        return too_short(c, err);
    }
    hybrid_open(&v->hybrid, v->at + 4, num_load_u32(v->at), 1);
    return TARN_OK;
}

static bool open_delta(delta_reader *d, const uint8_t *at, const uint8_t *end) {
    if (at == end) { /* nothing but nulls */
        memset(d, 0, sizeof *d);
        return true;
    }
    return delta_open(d, at, (size_t)(end - at));
}

/* Lengths, or prefix lengths and suffix lengths, stand before the bytes. */
static tarn_code open_delta_bytes(read_column *c, value_reader *v, tarn_error *err) {
    const uint8_t *at = v->at;
    if (v->encoding == PARQUET_DELTA_BYTE_ARRAY) {
        if (!open_delta(&v->prefixes, at, v->end)) {
            return too_short(c, err);
        }
        at = at == v->end ? at : delta_find_end(&v->prefixes);
        if (at == NULL) {
            return too_short(c, err);
        }
        buf_reset(&v->last);
    }
    if (!open_delta(&v->delta, at, v->end)) {
        return too_short(c, err);
    }
    at = at == v->end ? at : delta_find_end(&v->delta);
    v->at = at;
    return at != NULL ? TARN_OK : too_short(c, err);
}

static tarn_code open_stream_split(read_column *c, value_reader *v, tarn_error *err) {
    const size_t len = (size_t)(v->end - v->at);
    if (v->width == 0 || c->leaf->physical == PARQUET_INT96) {
        return bad_encoding(c, v->encoding, err);
    }
    if (len % v->width != 0) {
        return column_error(c, TARN_CORRUPT, err, "had a page of %zu bytes for values of %zu", len,
                            v->width);
    }
    v->stream_len = len / v->width;
    v->taken = 0;
    return TARN_OK;
}

tarn_code values_open(read_column *c, int32_t encoding, const uint8_t *data, size_t len,
                      tarn_error *err) {
    value_reader *v = &c->values;
    const int32_t physical = c->leaf->physical;
    const bool is_bytes = physical == PARQUET_BYTE_ARRAY;
    v->encoding = encoding == PARQUET_PLAIN_DICTIONARY ? PARQUET_RLE_DICTIONARY : encoding;
    v->at = v->start = data;
    v->end = data + len;
    v->width = physical_width(c->leaf);
    v->bit = 0;
    if (c->convert == CONVERT_NOTHING) {
        return TARN_OK;
    }
    switch (v->encoding) {
    case PARQUET_PLAIN:
        return TARN_OK;
    case PARQUET_RLE_DICTIONARY:
        return open_dictionary_indexes(c, v, err);
    case PARQUET_RLE:
        return physical == PARQUET_BOOLEAN ? open_bool_runs(c, v, err)
                                           : bad_encoding(c, encoding, err);
    case PARQUET_DELTA_BINARY_PACKED:
        if (physical != PARQUET_INT32 && physical != PARQUET_INT64) {
            return bad_encoding(c, encoding, err);
        }
        return open_delta(&v->delta, v->at, v->end) ? TARN_OK : too_short(c, err);
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return is_bytes ? open_delta_bytes(c, v, err) : bad_encoding(c, encoding, err);
    case PARQUET_DELTA_BYTE_ARRAY:
        return is_bytes || physical == PARQUET_FIXED_LEN_BYTE_ARRAY
                   ? open_delta_bytes(c, v, err)
                   : bad_encoding(c, encoding, err);
    case PARQUET_BYTE_STREAM_SPLIT:
        return open_stream_split(c, v, err);
    default:
        return bad_encoding(c, encoding, err);
    }
}

/* ---- fixed widths ---- */

static void join_streams(const uint8_t *data, size_t stream_len, size_t first, size_t width,
                         size_t n, uint8_t *dst) {
    for (size_t k = 0; k < width; k++) {
        const uint8_t *src = data + k * stream_len + first;
        for (size_t i = 0; i < n; i++) {
            dst[i * width + k] = src[i];
        }
    }
}

static void join_streams4(const uint8_t *data, size_t stream_len, size_t first, size_t n,
                          uint8_t *dst) {
    const uint8_t *a = data + first, *b = a + stream_len, *c = b + stream_len, *d = c + stream_len;
    for (size_t i = 0; i < n; i++) {
        const uint32_t v =
            (uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
        memcpy(dst + i * 4, &v, 4);
    }
}

/* The next byte array; for front-coded ones it stands in v->last until the next call. */
static tarn_code next_bytes(read_column *c, tarn_str *out, tarn_error *err) {
    value_reader *v = &c->values;
    const size_t left = (size_t)(v->end - v->at);
    int32_t len = 0, prefix = 0;
    if (v->encoding == PARQUET_PLAIN) {
        if (left < 4 || num_load_u32(v->at) > left - 4) {
            return too_short(c, err);
        }
        *out = str_make(v->at + 4, num_load_u32(v->at));
        v->at += 4 + out->len;
        return TARN_OK;
    }
    if (!delta_read_i32(&v->delta, 1, &len) || len < 0 || (size_t)len > left) {
        return too_short(c, err);
    }
    *out = str_make(v->at, (size_t)len);
    v->at += len;
    if (v->encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY) {
        return TARN_OK;
    }
    if (!delta_read_i32(&v->prefixes, 1, &prefix) || prefix < 0 || (size_t)prefix > v->last.len) {
        return too_short(c, err);
    }
    v->last.len = (size_t)prefix;
    tarn_code code = buf_append_str(&v->last, *out, err);
    *out = buf_str(&v->last);
    return code;
}

/* Up to SCRATCH_VALUES of raw values that are not simply there to be pointed at. */
static tarn_code read_raw(read_column *c, size_t n, uint8_t *dst, tarn_error *err) {
    value_reader *v = &c->values;
    if (v->encoding == PARQUET_DELTA_BINARY_PACKED) {
        const bool ok = v->width == 4 ? delta_read_i32(&v->delta, n, (int32_t *)(void *)dst)
                                      : delta_read_i64(&v->delta, n, (int64_t *)(void *)dst);
        return ok ? TARN_OK : too_short(c, err);
    }
    if (v->encoding == PARQUET_BYTE_STREAM_SPLIT) {
        if (n > v->stream_len - v->taken) {
            return too_short(c, err);
        }
        if (v->width == 4) {
            join_streams4(v->start, v->stream_len, v->taken, n, dst);
        } else {
            join_streams(v->start, v->stream_len, v->taken, v->width, n, dst);
        }
        v->taken += n;
        return TARN_OK;
    }
    for (size_t i = 0; i < n; i++) { /* DELTA_BYTE_ARRAY */
        tarn_str s;
        tarn_code code = next_bytes(c, &s, err);
        if (code != TARN_OK) {
            return code;
        }
        if (s.len != v->width) {
            return column_error(c, TARN_CORRUPT, err, "had a value of %zu bytes, not %zu", s.len,
                                v->width);
        }
        memcpy(dst + i * v->width, s.data, s.len);
    }
    return TARN_OK;
}

/* As convert_fixed. INT96 values out of range are marked and judged when their rows are known
 * (read_scan.c); within lists, where that is not one slot a row, they are errors at once. */
static size_t convert_values(read_column *c, const uint8_t *raw, size_t n, uint8_t *dst) {
    const size_t width = c->values.width;
    size_t done = convert_fixed(c->convert, raw, width, n, dst);
    while (done < n && c->convert == CONVERT_INT96 && c->leaf->max_rep == 0) {
        const int64_t mark = INT96_BEYOND;
        memcpy(dst + done * 8, &mark, 8);
        c->beyond = true;
        done++;
        done += convert_fixed(c->convert, raw + done * width, width, n - done, dst + done * 8);
    }
    return done;
}

static tarn_code read_fixed(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    value_reader *v = &c->values;
    const size_t width = (size_t)type_width(b->type);
    uint8_t *dst = b->values + (size_t)b->length * width;
    if (v->encoding == PARQUET_PLAIN) {
        if (n > (size_t)(v->end - v->at) / v->width) {
            return too_short(c, err);
        }
        const size_t done = convert_values(c, v->at, n, dst);
        v->at += n * v->width;
        return done == n ? TARN_OK : bad_value(c, (int64_t)done, "had a value out of range", err);
    }
    if (c->convert == CONVERT_COPY) {
        return read_raw(c, n, dst, err);
    }
    uint8_t *raw = env_alloc(c->env, SCRATCH_VALUES * v->width);
    tarn_code code = raw != NULL ? TARN_OK : err_nomem(err);
    for (size_t at = 0; at < n && code == TARN_OK;) {
        const size_t take = n - at < SCRATCH_VALUES ? n - at : SCRATCH_VALUES;
        code = read_raw(c, take, raw, err);
        if (code == TARN_OK) {
            const size_t done = convert_values(c, raw, take, dst + at * width);
            code = done == take
                       ? TARN_OK
                       : bad_value(c, (int64_t)(at + done), "had a value out of range", err);
        }
        at += take;
    }
    env_free(c->env, raw);
    return code;
}

static tarn_code read_bools(read_column *c, tarn_builder *b, int64_t n, tarn_error *err) {
    value_reader *v = &c->values;
    int64_t set = 0;
    if (v->encoding == PARQUET_RLE) {
        return hybrid_read_bits(&v->hybrid, (size_t)n, b->values, b->length, &set)
                   ? TARN_OK
                   : too_short(c, err);
    }
    if ((uint64_t)n > (uint64_t)(v->end - v->at) * 8 - v->bit) {
        return too_short(c, err);
    }
    bit_copy(b->values, b->length, v->at, (int64_t)v->bit, n);
    v->bit += (uint64_t)n;
    return TARN_OK;
}

/* ---- byte arrays ---- */

/* Room behind the bytes of a builder, so that short values are copied by whole registers. */
#define COPY_SLACK 32

static inline void copy_bytes(uint8_t *dst, const uint8_t *src, size_t len, size_t readable) {
    if (len <= 16 && readable >= 16) {
        memcpy(dst, src, 16);
    } else if (len <= 32 && readable >= 32) {
        memcpy(dst, src, 16);
        memcpy(dst + 16, src + 16, 16);
    } else {
        memcpy(dst, src, len);
    }
}

/* Bytes of the next n plain values, or SIZE_MAX when they are not all there. */
static size_t plain_total(const value_reader *v, size_t n) {
    const uint8_t *at = v->at;
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        if (v->end - at < 4 || num_load_u32(at) > (size_t)(v->end - at) - 4) {
            return SIZE_MAX;
        }
        total += num_load_u32(at);
        at += 4 + num_load_u32(at);
    }
    return total;
}

static tarn_code read_plain_bytes(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    value_reader *v = &c->values;
    size_t most = (size_t)(v->end - v->at);
    if (n > most / 4) {
        return too_short(c, err);
    }
    most -= n * 4;
    if (most > 4u << 20) {
        most = plain_total(v, n);
        if (most == SIZE_MAX) {
            return too_short(c, err);
        }
    }
    tarn_code code = builder_reserve_bytes(b, most + COPY_SLACK, err);
    if (code != TARN_OK) {
        return code;
    }
    const uint8_t *at = v->at;
    int32_t *offsets = b->offsets + b->length + 1;
    size_t len = b->bytes_len;
    const size_t end = len + most;
    for (size_t i = 0; i < n; i++) {
        const size_t left = (size_t)(v->end - at);
        const size_t size = left >= 4 ? num_load_u32(at) : SIZE_MAX;
        if (left < 4 || size > left - 4 || size > end - len) {
            return too_short(c, err); /* n values and their lengths do not fit into the page */
        }
        copy_bytes(b->bytes + len, at + 4, size, left - 4);
        len += size;
        at += 4 + size;
        offsets[i] = (int32_t)len;
    }
    v->at = at;
    b->bytes_len = len;
    return TARN_OK;
}

/* DELTA_LENGTH_BYTE_ARRAY: the bytes of a run lie together. */
static tarn_code read_length_bytes(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    value_reader *v = &c->values;
    int32_t *offsets = b->offsets + b->length + 1;
    size_t total = 0;
    const size_t left = (size_t)(v->end - v->at);
    if (!delta_read_i32(&v->delta, n, offsets)) {
        return too_short(c, err);
    }
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < n && code == TARN_OK; i++) {
        if (offsets[i] < 0 || (size_t)offsets[i] > left - total) {
            return too_short(c, err);
        }
        total += (size_t)offsets[i];
        if (total > LIMIT_BATCH_BYTES - b->bytes_len) {
            return builder_reserve_bytes(b, total, err);
        }
        offsets[i] = (int32_t)(b->bytes_len + total);
    }
    code = builder_reserve_bytes(b, total, err);
    if (code == TARN_OK && total > 0) {
        memcpy(b->bytes + b->bytes_len, v->at, total);
        b->bytes_len += total;
        v->at += total;
    }
    return code;
}

static tarn_code read_front_coded(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    int32_t *offsets = b->offsets + b->length + 1;
    for (size_t i = 0; i < n; i++) {
        tarn_str s;
        tarn_code code = next_bytes(c, &s, err);
        if (code == TARN_OK) {
            code = builder_reserve_bytes(b, s.len, err);
        }
        if (code != TARN_OK) {
            return code;
        }
        if (s.len > 0) {
            memcpy(b->bytes + b->bytes_len, s.data, s.len);
        }
        b->bytes_len += s.len;
        offsets[i] = (int32_t)b->bytes_len;
    }
    return TARN_OK;
}

static tarn_code read_decimal_bytes(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    uint8_t *dst = b->values + (size_t)b->length * 16;
    for (size_t i = 0; i < n; i++) {
        tarn_str s = STR_NULL;
        tarn_code code = next_bytes(c, &s, err);
        if (code != TARN_OK) {
            return code;
        }
        if (!convert_decimal_bytes((const uint8_t *)s.data, s.len, dst + i * 16)) {
            return bad_value(c, (int64_t)i, "had a decimal of more than 16 bytes", err);
        }
    }
    return TARN_OK;
}

/* ---- dictionaries ---- */

#define INDEX_BLOCK 1024

typedef struct index_run {
    uint32_t index[INDEX_BLOCK];
    size_t n;
    bool repeated; /* index[0], n times */
} index_run;

static tarn_code next_indexes(read_column *c, size_t max, index_run *run, tarn_error *err) {
    uint32_t top = 0;
    uint32_t value = 0;
    size_t most = max < INDEX_BLOCK ? max : INDEX_BLOCK;
    run->n = hybrid_next(&c->values.hybrid, most, run->index, &run->repeated, &value);
    if (run->n == 0) {
        return too_short(c, err);
    }
    if (run->repeated) {
        run->index[0] = top = value;
    } else {
        for (size_t i = 0; i < run->n; i++) {
            top = run->index[i] > top ? run->index[i] : top;
        }
    }
    return top < c->dictionary.count
               ? TARN_OK
               : column_error(c, TARN_CORRUPT, err, "had index %u in a dictionary of %u values",
                              top, c->dictionary.count);
}

#define GATHER(type)                                                                               \
    do {                                                                                           \
        type value_;                                                                               \
        if (run->repeated) {                                                                       \
            memcpy(&value_, values + (size_t)run->index[0] * sizeof value_, sizeof value_);        \
            for (size_t i = 0; i < run->n; i++) {                                                  \
                memcpy(dst + i * sizeof value_, &value_, sizeof value_);                           \
            }                                                                                      \
            break;                                                                                 \
        }                                                                                          \
        for (size_t i = 0; i < run->n; i++) {                                                      \
            memcpy(&value_, values + (size_t)run->index[i] * sizeof value_, sizeof value_);        \
            memcpy(dst + i * sizeof value_, &value_, sizeof value_);                               \
        }                                                                                          \
    } while (0)

static void gather_fixed(const uint8_t *values, size_t width, const index_run *run, uint8_t *dst) {
    if (width == 4) {
        GATHER(uint32_t);
    } else if (width == 8) {
        GATHER(uint64_t);
    } else if (width == 16) {
        GATHER(tarn_int128);
    } else {
        for (size_t i = 0; i < run->n; i++) {
            memcpy(dst + i * width, values + run->index[run->repeated ? 0 : i] * width, width);
        }
    }
}

/* The same value again and again: its bytes are copied once, then what was copied is doubled. */
static tarn_code repeat_bytes(const read_column *c, tarn_builder *b, const index_run *run,
                              int32_t *ends, tarn_error *err) {
    const tarn_builder *d = &c->dictionary.values;
    const uint32_t k = run->index[0];
    const size_t size = (size_t)(d->offsets[k + 1] - d->offsets[k]);
    tarn_code code = builder_reserve_bytes(b, size * run->n + COPY_SLACK, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *dst = b->bytes + b->bytes_len;
    for (size_t i = 0; i < run->n; i++) {
        ends[i] = (int32_t)(b->bytes_len + (i + 1) * size);
    }
    size_t done = size, all = size * run->n;
    if (size > 0) {
        memcpy(dst, d->bytes + d->offsets[k], size);
    }
    while (done < all) {
        const size_t more = done < all - done ? done : all - done;
        memcpy(dst + done, dst, more);
        done += more;
    }
    b->bytes_len += all;
    return TARN_OK;
}

static tarn_code gather_bytes(const read_column *c, tarn_builder *b, const index_run *run,
                              int32_t *ends, tarn_error *err) {
    const tarn_builder *d = &c->dictionary.values;
    size_t total = b->bytes_len;
    if (run->repeated) {
        return repeat_bytes(c, b, run, ends, err);
    }
    if (run->n * (size_t)d->offsets[c->dictionary.count] > LIMIT_BATCH_BYTES) {
        for (size_t i = 0; i < run->n; i++) { /* may pass an int32 before reserving refuses */
            total += (size_t)(d->offsets[run->index[i] + 1] - d->offsets[run->index[i]]);
        }
        tarn_code code = builder_reserve_bytes(b, total - b->bytes_len, err);
        if (code != TARN_OK) {
            return code;
        }
        total = b->bytes_len;
    }
    for (size_t i = 0; i < run->n; i++) {
        total += (size_t)(d->offsets[run->index[i] + 1] - d->offsets[run->index[i]]);
        ends[i] = (int32_t)total;
    }
    tarn_code code = builder_reserve_bytes(b, total - b->bytes_len + COPY_SLACK, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t at = b->bytes_len;
    for (size_t i = 0; i < run->n; i++) {
        const int32_t start = d->offsets[run->index[i]];
        const size_t size = (size_t)ends[i] - at;
        copy_bytes(b->bytes + at, d->bytes + start, size, d->bytes_cap - (size_t)start);
        at += size;
    }
    b->bytes_len = total;
    return TARN_OK;
}

static tarn_code read_indexed(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    const size_t width = (size_t)type_width(b->type);
    index_run run;
    for (size_t at = 0; at < n; at += run.n) {
        tarn_code code = next_indexes(c, n - at, &run, err);
        if (code == TARN_OK && width > 0) {
            gather_fixed(c->dictionary.values.values, width, &run,
                         b->values + ((size_t)b->length + at) * width);
        } else if (code == TARN_OK) {
            code = gather_bytes(c, b, &run, b->offsets + (size_t)b->length + 1 + at, err);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* ---- the two faces ---- */

static tarn_code check_utf8(read_column *c, const tarn_builder *b, int64_t n, tarn_error *err) {
    const int32_t *offsets = b->offsets + b->length;
    if (c->values.encoding == PARQUET_RLE_DICTIONARY && c->dictionary.utf8_ok) {
        return TARN_OK;
    }
    if (convert_utf8_ok(b->bytes, offsets, n)) {
        return TARN_OK;
    }
    int64_t bad = 0;
    while (bad < n && convert_utf8_ok(b->bytes, offsets + bad, 1)) {
        bad++;
    }
    return bad_value(c, bad, "had a string that was not UTF-8", err);
}

static tarn_code read_bytes(read_column *c, tarn_builder *b, size_t n, tarn_error *err) {
    switch (c->values.encoding) {
    case PARQUET_PLAIN:
        return read_plain_bytes(c, b, n, err);
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return read_length_bytes(c, b, n, err);
    default:
        return read_front_coded(c, b, n, err);
    }
}

tarn_code values_read(read_column *c, tarn_builder *b, int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    c->bad_value = -1;
    if (n == 0 || c->convert == CONVERT_NOTHING) {
        return TARN_OK;
    }
    if (c->convert == CONVERT_BOOL) {
        return read_bools(c, b, n, err);
    }
    if (c->values.encoding == PARQUET_RLE_DICTIONARY) {
        code = read_indexed(c, b, (size_t)n, err);
    } else if (c->convert == CONVERT_BYTES) {
        code = read_bytes(c, b, (size_t)n, err);
    } else if (c->convert == CONVERT_BYTES_DECIMAL) {
        code = read_decimal_bytes(c, b, (size_t)n, err);
    } else {
        code = read_fixed(c, b, (size_t)n, err);
    }
    return code == TARN_OK && b->type->kind == TARN_STRING ? check_utf8(c, b, n, err) : code;
}

static tarn_code skip_bytes(read_column *c, int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str s;
    for (int64_t i = 0; i < n && code == TARN_OK; i++) {
        code = next_bytes(c, &s, err);
    }
    return code;
}

static tarn_code skip_delta(read_column *c, int64_t n, tarn_error *err) {
    int64_t drop[128];
    while (n > 0) {
        const int64_t take = n < 128 ? n : 128;
        if (!delta_read_i64(&c->values.delta, (size_t)take, drop)) {
            return too_short(c, err);
        }
        n -= take;
    }
    return TARN_OK;
}

tarn_code values_skip(read_column *c, int64_t n, tarn_error *err) {
    value_reader *v = &c->values;
    if (n == 0 || c->convert == CONVERT_NOTHING) {
        return TARN_OK;
    }
    if (v->encoding == PARQUET_RLE_DICTIONARY || v->encoding == PARQUET_RLE) {
        return hybrid_skip(&v->hybrid, (size_t)n) ? TARN_OK : too_short(c, err);
    }
    if (v->encoding == PARQUET_DELTA_BINARY_PACKED) {
        return skip_delta(c, n, err);
    }
    if (v->encoding == PARQUET_BYTE_STREAM_SPLIT) {
        if ((uint64_t)n > v->stream_len - v->taken) {
            return too_short(c, err);
        }
        v->taken += (size_t)n;
        return TARN_OK;
    }
    if (c->convert == CONVERT_BOOL) {
        if ((uint64_t)n > (uint64_t)(v->end - v->at) * 8 - v->bit) {
            return too_short(c, err);
        }
        v->bit += (uint64_t)n;
        return TARN_OK;
    }
    if (v->encoding != PARQUET_PLAIN || v->width == 0) {
        return skip_bytes(c, n, err);
    }
    if ((uint64_t)n > (uint64_t)(v->end - v->at) / v->width) {
        return too_short(c, err);
    }
    v->at += (size_t)n * v->width;
    return TARN_OK;
}

/* A dictionary page is a plain page whose values are converted once. */
tarn_code dictionary_open(read_column *c, int32_t encoding, const uint8_t *data, size_t len,
                          int32_t count, tarn_error *err) {
    read_dictionary *d = &c->dictionary;
    if (c->convert == CONVERT_NOTHING) {
        d->present = true;
        return TARN_OK;
    }
    if ((encoding != PARQUET_PLAIN && encoding != PARQUET_PLAIN_DICTIONARY) ||
        c->convert == CONVERT_BOOL) {
        return bad_encoding(c, encoding, err);
    }
    const size_t least = physical_width(c->leaf) > 0 ? physical_width(c->leaf) : 4;
    if (count < 0 || (size_t)count > len / least) {
        return column_error(c, TARN_CORRUPT, err, "had a dictionary of %d values in %zu bytes",
                            count, len);
    }
    builder_release(&d->values);
    tarn_code code = builder_init(&d->values, c->env, c->leaf->type, err);
    if (code == TARN_OK) {
        code = builder_reserve(&d->values, count + 1, err);
    }
    if (code == TARN_OK) {
        code = values_open(c, PARQUET_PLAIN, data, len, err);
    }
    if (code == TARN_OK) {
        d->utf8_ok = true;
        code = values_read(c, &d->values, count, err);
    }
    if (code == TARN_CORRUPT && c->bad_value >= 0 && c->convert == CONVERT_BYTES) {
        d->utf8_ok = false; /* a value that no row has does no harm */
        code = TARN_OK;
    } else if (code == TARN_CORRUPT && c->bad_value >= 0) {
        code = err_add(err, code, "entry %lld of the dictionary", (long long)c->bad_value);
        c->bad_value = -1; /* which rows have it is not known */
    }
    d->values.length = count;
    d->count = (uint32_t)count;
    d->present = code == TARN_OK;
    return code;
}
