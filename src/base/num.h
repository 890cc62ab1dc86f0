/* base/num.h - checked sums and products, unaligned little- and big-endian loads, varints, bitmaps,
 * 128-bit integers. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef __int128 tarn_int128;
__extension__ typedef unsigned __int128 tarn_uint128;

static inline bool num_add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool num_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool num_add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool num_mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* All formats here are little-endian in memory on the machines tarn supports (checked at configure
 * time). */
static inline uint16_t num_load_u16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t num_load_u32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t num_load_u64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline int32_t num_load_i32(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline int64_t num_load_i64(const void *p) {
    int64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline tarn_int128 num_load_i128(const void *p) {
    tarn_int128 v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void num_store_i128(void *p, tarn_int128 v) {
    memcpy(p, &v, sizeof v);
}
static inline uint32_t num_load_be32(const void *p) {
    return __builtin_bswap32(num_load_u32(p));
}
static inline uint64_t num_load_be64(const void *p) {
    return __builtin_bswap64(num_load_u64(p));
}

static inline int64_t num_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
static inline int64_t num_floor_mod(int64_t a, int64_t b) {
    int64_t r = a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

/* ULEB128 and zigzag varints (Avro, Thrift compact, Parquet). Move *p; false at end or over 10
 * bytes. */
bool num_get_uvarint(const uint8_t **p, const uint8_t *end, uint64_t *out);
static inline int64_t num_unzigzag(uint64_t v) {
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}
static inline uint64_t num_zigzag(int64_t v) {
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline bool num_get_varint(const uint8_t **p, const uint8_t *end, int64_t *out) {
    uint64_t u;
    if (*p < end && **p < 0x80) {
        *out = num_unzigzag(*(*p)++);
        return true;
    }
    if (!num_get_uvarint(p, end, &u)) {
        return false;
    }
    *out = num_unzigzag(u);
    return true;
}
size_t num_put_uvarint(uint8_t out[10], uint64_t v);
static inline size_t num_put_varint(uint8_t out[10], int64_t v) {
    return num_put_uvarint(out, num_zigzag(v));
}

/* Bitmaps, least significant bit first (Arrow). */
static inline bool bit_get(const uint8_t *bits, int64_t i) {
    return (bits[i >> 3] >> (i & 7)) & 1;
}
static inline void bit_set(uint8_t *bits, int64_t i) {
    bits[i >> 3] = (uint8_t)(bits[i >> 3] | (1u << (i & 7)));
}
static inline void bit_clear(uint8_t *bits, int64_t i) {
    bits[i >> 3] = (uint8_t)(bits[i >> 3] & ~(1u << (i & 7)));
}
static inline size_t bit_bytes(int64_t n_bits) {
    return (size_t)((n_bits + 7) / 8);
}
int64_t bit_count(const uint8_t *bits, int64_t start, int64_t len); /* set bits */
void bit_fill(uint8_t *bits, int64_t start, int64_t len, bool value);
void bit_copy(uint8_t *dst, int64_t dst_start, const uint8_t *src, int64_t src_start, int64_t len);

/* Decimals as unscaled 128-bit integers. */
tarn_int128 num_pow10_i128(int32_t n);  /* 0 <= n <= 38 */
int32_t num_digits_i128(tarn_int128 v); /* decimal digits, 1 for 0 */
/* Two's-complement big-endian, as few bytes as possible (Iceberg, Parquet, Avro decimals). Returns
 * the length, 1..16. */
size_t num_put_be_i128(tarn_int128 v, uint8_t out[16]);
/* Any length; false when the value needs more than 16 bytes. Length 0 is 0. */
bool num_get_be_i128(const uint8_t *p, size_t len, tarn_int128 *out);

uint32_t num_crc32(uint32_t crc, const void *data,
                   size_t len); /* IEEE, as zlib and gzip; start with 0 */
/* murmur3 x86 32-bit, seed 0 (Iceberg bucket). */
uint32_t num_murmur3(const void *data, size_t len);

#endif
