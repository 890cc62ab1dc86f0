/* format/parquet/decode_delta.h - DELTA_BINARY_PACKED, and the lengths of the two delta encodings
 * of byte arrays that build on it. Never reads beyond its end; counts are checked before memory
 * follows. */
#ifndef FORMAT_PARQUET_DECODE_DELTA_H
#define FORMAT_PARQUET_DECODE_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELTA_MAX_MINIBLOCKS 512

typedef struct delta_reader {
    const uint8_t *at, *end; /* after the last mini block that was entered */
    uint64_t count;          /* values in all, as the header says */
    uint64_t left;           /* values not yet given */
    uint32_t mini_values;    /* values in a mini block */
    uint32_t n_minis;
    uint32_t mini;     /* present mini block, n_minis: the next block begins */
    uint32_t mini_pos; /* values taken from it */
    const uint8_t *widths;
    const uint8_t *packed;
    int64_t min_delta;
    int64_t last;
    bool first_pending;
} delta_reader;

/* Reads the header. False: damaged. */
bool delta_open(delta_reader *d, const uint8_t *data, size_t len);
/* All n or false. 32-bit values wrap as 32-bit ones. */
bool delta_read_i64(delta_reader *d, size_t n, int64_t *out);
bool delta_read_i32(delta_reader *d, size_t n, int32_t *out);
/* Where the bytes after the last value begin, found without decoding; NULL: damaged. */
const uint8_t *delta_find_end(const delta_reader *d);

#endif
