/* format/parquet/decode_hybrid.h - reading the RLE / bit-packed hybrid (levels, dictionary indexes,
 * booleans) and the deprecated bit-packed levels, many values at a time.
 *
 * Never reads beyond the end it was given, whatever the runs claim: a run that is cut off is an
 * error when its missing values are asked for. */
#ifndef FORMAT_PARQUET_DECODE_HYBRID_H
#define FORMAT_PARQUET_DECODE_HYBRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hybrid_reader {
    const uint8_t *at, *end; /* next run */
    int bit_width;           /* 0..32 */
    uint32_t value;          /* of the present RLE run */
    uint64_t rle_left;
    uint64_t packed_left;  /* values left in the present packed run */
    const uint8_t *packed; /* its first byte */
    uint64_t packed_at;    /* values taken from it */
} hybrid_reader;

void hybrid_open(hybrid_reader *h, const uint8_t *data, size_t len, int bit_width);
/* All n or false. */
bool hybrid_read_u32(hybrid_reader *h, size_t n, uint32_t *out);
bool hybrid_read_u8(hybrid_reader *h, size_t n, uint8_t *out); /* bit_width <= 8 */
/* Width 1: into a bitmap from bit `start` on; *n_set counts ones. */
bool hybrid_read_bits(hybrid_reader *h, size_t n, uint8_t *bits, int64_t start, int64_t *n_set);
/* Up to max values of one kind: a repeated one (*repeated, *value), or unpacked ones in out.
 * Returns how many, 0 at the end. */
size_t hybrid_next(hybrid_reader *h, size_t max, uint32_t *out, bool *repeated, uint32_t *value);
bool hybrid_skip(hybrid_reader *h, size_t n);

/* n values of bit_width bits, least significant bit first, from bit `start` of data; the caller
 * knows that data holds them. Reads no byte at or after end. */
void unpack_u32(const uint8_t *data, const uint8_t *end, uint64_t start, int bit_width, size_t n,
                uint32_t *out);
void unpack_u64(const uint8_t *data, const uint8_t *end, uint64_t start, int bit_width, size_t n,
                uint64_t *out);
/* Deprecated BIT_PACKED: most significant bit first. */
void unpack_msb_u8(const uint8_t *data, uint64_t start, int bit_width, size_t n, uint8_t *out);

#endif
