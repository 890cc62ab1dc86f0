/* format/parquet/bloom.h - the split-block bloom filter of Parquet with xxHash64 (seed 0): sized
 * for a false-positive rate, filled, probed, and turned to and from the bytes of a file.
 *
 * A filter is blocks of eight 32-bit words; a value sets one bit in each word of one block. A probe
 * that misses is certain; a hit is not. Values are hashed in their PLAIN bytes, byte arrays without
 * the length before them. */
#ifndef FORMAT_PARQUET_BLOOM_H
#define FORMAT_PARQUET_BLOOM_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

#define BLOOM_MIN_BYTES 32
#define BLOOM_MAX_BYTES (128 << 20)

typedef struct parquet_bloom {
    tarn_env *env;
    uint32_t *words; /* n_blocks * 8 */
    size_t n_blocks;
} parquet_bloom;

/* Bytes for n_distinct values at rate fpp: a power of two, BLOOM_MIN_BYTES..max_bytes. */
size_t bloom_size_bytes(uint64_t n_distinct, double fpp, size_t max_bytes);
/* An empty filter; size_bytes as bloom_size_bytes gives it. */
tarn_code bloom_init(parquet_bloom *bloom, tarn_env *env, size_t size_bytes,
                     tarn_error *err) TARN_MUST_USE;
void bloom_release(parquet_bloom *bloom); /* also of a zeroed one */

uint64_t bloom_hash(const void *plain, size_t len);
void bloom_add(parquet_bloom *bloom, uint64_t hash);
bool bloom_may_hold(const parquet_bloom *bloom, uint64_t hash);

/* Appends header and bitset as they stand in a file. */
tarn_code bloom_put(const parquet_bloom *bloom, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
/* Bytes of header and bitset, from the header at the beginning of data (data need hold only that).
 * UNSUPPORTED for another algorithm, hash or compression. */
tarn_code bloom_header(tarn_str data, size_t *header_bytes, size_t *bitset_bytes,
                       tarn_error *err) TARN_MUST_USE;
/* A filter from the bitset of a file (copied, for alignment). */
tarn_code bloom_get(parquet_bloom *bloom, tarn_env *env, tarn_str bitset,
                    tarn_error *err) TARN_MUST_USE;

#endif
