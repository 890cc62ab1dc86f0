/* encode.h - the value encodings of Parquet ("Encodings.md"), writing side.
 *
 * Pure functions from whole arrays of dense (non-null) values to bytes appended to a buffer. The
 * column writer (write_column.c) calls them once a page. Nothing here knows of pages, levels'
 * meaning or types. */
#ifndef FORMAT_PARQUET_ENCODE_H
#define FORMAT_PARQUET_ENCODE_H

#include "base/buf.h"
#include "base/num.h"

/* Bits that hold every value up to max (0 for 0). */
static inline int encode_bit_width(uint64_t max) {
    return max == 0 ? 0 : 64 - __builtin_clzll(max);
}

/* RLE / bit-packed hybrid without a length in front. Values are below 2^width, width <= 32. */
tarn_code encode_hybrid_u32(tarn_buf *out, const uint32_t *values, size_t n, int width,
                            tarn_error *err) TARN_MUST_USE;
tarn_code encode_hybrid_u8(tarn_buf *out, const uint8_t *values, size_t n, int width,
                           tarn_error *err) TARN_MUST_USE;
/* The n bits from bit 0 on, as values of width 1. Bits after n in the last byte may be anything. */
tarn_code encode_hybrid_bits(tarn_buf *out, const uint8_t *bits, size_t n,
                             tarn_error *err) TARN_MUST_USE;
/* The same value n times (nothing for n 0). */
tarn_code encode_hybrid_run(tarn_buf *out, uint32_t value, size_t n, int width,
                            tarn_error *err) TARN_MUST_USE;

/* DELTA_BINARY_PACKED: blocks of 128 in four miniblocks. Differences wrap around. */
tarn_code encode_delta_i32(tarn_buf *out, const int32_t *values, size_t n,
                           tarn_error *err) TARN_MUST_USE;
tarn_code encode_delta_i64(tarn_buf *out, const int64_t *values, size_t n,
                           tarn_error *err) TARN_MUST_USE;
/* DELTA_LENGTH_BYTE_ARRAY: value i is bytes[offsets[i], offsets[i + 1]). */
tarn_code encode_delta_length(tarn_buf *out, const uint32_t *offsets, const uint8_t *bytes,
                              size_t n, tarn_error *err) TARN_MUST_USE;
/* DELTA_BYTE_ARRAY (front coding); scratch is overwritten. */
tarn_code encode_delta_bytes(tarn_buf *out, const uint32_t *offsets, const uint8_t *bytes, size_t n,
                             tarn_buf *scratch, tarn_error *err) TARN_MUST_USE;

/* BYTE_STREAM_SPLIT: byte k of every value, for each k below width. */
tarn_code encode_stream_split(tarn_buf *out, const uint8_t *values, size_t n, size_t width,
                              tarn_error *err) TARN_MUST_USE;

/* PLAIN for BYTE_ARRAY: a length of four bytes and the bytes. */
tarn_code encode_plain_bytes(tarn_buf *out, const int32_t *offsets, const uint8_t *bytes, size_t n,
                             tarn_error *err) TARN_MUST_USE;

#endif
