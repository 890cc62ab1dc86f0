/* format/parquet/bloom.c - see bloom.h (parquet-format, BloomFilter.md). */
#include "format/parquet/bloom.h"

#include "base/num.h"
#include "format/parquet/parquet_meta.h"

#include <math.h>
#include <xxhash.h>

#define WORDS_PER_BLOCK 8
#define BLOCK_BYTES     32

static const uint32_t salts[WORDS_PER_BLOCK] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                                0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};

size_t bloom_size_bytes(uint64_t n_distinct, double fpp, size_t max_bytes) {
    const size_t top = max_bytes < BLOOM_MAX_BYTES ? max_bytes : BLOOM_MAX_BYTES;
    const double rate = fpp > 0 && fpp < 1 ? fpp : 0.01;
    const double bits = -8.0 * (double)n_distinct / log(1 - pow(rate, 1.0 / 8));
    size_t size = BLOOM_MIN_BYTES;
    while (size * 2 <= top && (double)size * 8 < bits) {
        size *= 2;
    }
    return size;
}

tarn_code bloom_init(parquet_bloom *bloom, tarn_env *env, size_t size_bytes, tarn_error *err) {
    if (size_bytes < BLOOM_MIN_BYTES || size_bytes > BLOOM_MAX_BYTES ||
        size_bytes % BLOCK_BYTES != 0) {
        return err_set(err, TARN_INVALID, "a bloom filter of %zu bytes was asked for", size_bytes);
    }
    uint32_t *words = env_calloc(env, 1, size_bytes);
    if (words == NULL) {
        return err_nomem(err);
    }
    *bloom = (parquet_bloom){env, words, size_bytes / BLOCK_BYTES};
    return TARN_OK;
}

void bloom_release(parquet_bloom *bloom) {
    if (bloom->env != NULL) {
        env_free(bloom->env, bloom->words);
    }
    *bloom = (parquet_bloom){NULL, NULL, 0};
}

uint64_t bloom_hash(const void *plain, size_t len) {
    return XXH64(plain, len, 0);
}

static uint32_t *block_of(const parquet_bloom *bloom, uint64_t hash) {
    const uint64_t block = ((hash >> 32) * (uint64_t)bloom->n_blocks) >> 32;
    return bloom->words + block * WORDS_PER_BLOCK;
}

void bloom_add(parquet_bloom *bloom, uint64_t hash) {
    uint32_t *block = block_of(bloom, hash);
    for (int i = 0; i < WORDS_PER_BLOCK; i++) {
        block[i] |= UINT32_C(1) << (((uint32_t)hash * salts[i]) >> 27);
    }
}

bool bloom_may_hold(const parquet_bloom *bloom, uint64_t hash) {
    const uint32_t *block = block_of(bloom, hash);
    uint32_t missing = 0;
    for (int i = 0; i < WORDS_PER_BLOCK; i++) {
        missing |= ~block[i] & (UINT32_C(1) << (((uint32_t)hash * salts[i]) >> 27));
    }
    return missing == 0;
}

tarn_code bloom_put(const parquet_bloom *bloom, tarn_buf *out, tarn_error *err) {
    const size_t size = bloom->n_blocks * BLOCK_BYTES;
    parquet_bloom_header header = {.num_bytes = (int32_t)size};
    THRIFT_SET(&header.algorithm, 1);
    THRIFT_SET(&header.hash, 1);
    THRIFT_SET(&header.compression, 1);
    tarn_code code = thrift_encode(&parquet_bloom_header_thrift, &header, out, err);
    return code == TARN_OK ? buf_append(out, bloom->words, size, err) : code;
}

tarn_code bloom_header(tarn_str data, size_t *header_bytes, size_t *bitset_bytes, tarn_error *err) {
    parquet_bloom_header header;
    size_t used = 0;
    tarn_code code = thrift_decode(NULL, &parquet_bloom_header_thrift, data, "bloom filter header",
                                   &header, &used, err);
    if (code != TARN_OK) {
        return code;
    }
    if (!THRIFT_HAS(&header.algorithm, 1) || !THRIFT_HAS(&header.hash, 1) ||
        !THRIFT_HAS(&header.compression, 1)) {
        return err_set(err, TARN_UNSUPPORTED,
                       "a bloom filter had an unknown algorithm, hash or compression");
    }
    if (header.num_bytes < BLOOM_MIN_BYTES || header.num_bytes > BLOOM_MAX_BYTES ||
        header.num_bytes % BLOCK_BYTES != 0) {
        return err_set(err, TARN_CORRUPT, "a bloom filter claimed %d bytes", header.num_bytes);
    }
    *header_bytes = used;
    *bitset_bytes = (size_t)header.num_bytes;
    return TARN_OK;
}

tarn_code bloom_get(parquet_bloom *bloom, tarn_env *env, tarn_str bitset, tarn_error *err) {
    parquet_bloom made = {NULL, NULL, 0};
    tarn_code code = bloom_init(&made, env, bitset.len, err);
    if (code == TARN_OK) {
        memcpy(made.words, bitset.data, bitset.len);
        *bloom = made;
    }
    return code;
}
