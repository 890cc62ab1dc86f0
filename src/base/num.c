/* base/num.c - varints, bitmaps, 128-bit integers, checksums. Pure functions that read no byte
 * beyond what their arguments span. */
#include "base/num.h"

#include <libdeflate.h>

bool num_get_uvarint(const uint8_t **p, const uint8_t *end, uint64_t *out) {
    const uint8_t *at = *p;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at >= end) {
            return false;
        }
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return false; /* beyond 64 bits, or an eleventh byte would follow */
        }
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *p = at;
            *out = v;
            return true;
        }
    }
    return false;
}

size_t num_put_uvarint(uint8_t out[10], uint64_t v) {
    size_t len = 0;
    while (v >= 0x80) {
        out[len++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    out[len++] = (uint8_t)v;
    return len;
}

int64_t bit_count(const uint8_t *bits, int64_t start, int64_t len) {
    int64_t count = 0;
    int64_t i = start;
    int64_t end = start + len;
    for (; i < end && (i & 7) != 0; i++) {
        count += bit_get(bits, i);
    }
    for (; i + 64 <= end; i += 64) {
        count += __builtin_popcountll(num_load_u64(bits + (i >> 3)));
    }
    for (; i + 8 <= end; i += 8) {
        count += __builtin_popcount(bits[i >> 3]);
    }
    for (; i < end; i++) {
        count += bit_get(bits, i);
    }
    return count;
}

static void put_bit(uint8_t *bits, int64_t i, bool value) {
    if (value) {
        bit_set(bits, i);
    } else {
        bit_clear(bits, i);
    }
}

void bit_fill(uint8_t *bits, int64_t start, int64_t len, bool value) {
    int64_t i = start;
    int64_t end = start + len;
    for (; i < end && (i & 7) != 0; i++) {
        put_bit(bits, i, value);
    }
    int64_t whole = (end - i) / 8;
    if (whole > 0) {
        memset(bits + (i >> 3), value ? 0xFF : 0, (size_t)whole);
        i += whole * 8;
    }
    for (; i < end; i++) {
        put_bit(bits, i, value);
    }
}

void bit_copy(uint8_t *dst, int64_t dst_start, const uint8_t *src, int64_t src_start, int64_t len) {
    int64_t d = dst_start;
    int64_t s = src_start;
    int64_t end = dst_start + len;
    for (; d < end && (d & 7) != 0; d++, s++) {
        put_bit(dst, d, bit_get(src, s));
    }
    if ((s & 7) == 0) {
        int64_t whole = (end - d) / 8;
        if (whole > 0) {
            memcpy(dst + (d >> 3), src + (s >> 3), (size_t)whole);
            d += whole * 8;
            s += whole * 8;
        }
    }
    unsigned shift = (unsigned)(s & 7);
    for (; shift != 0 && d + 64 <= end; d += 64, s += 64) {
        /* The 64 bits begin inside a byte, so they end in the ninth. */
        const uint8_t *from = src + (s >> 3);
        uint64_t v = num_load_u64(from) >> shift | (uint64_t)from[8] << (64 - shift);
        memcpy(dst + (d >> 3), &v, sizeof v);
    }
    for (; d < end; d++, s++) {
        put_bit(dst, d, bit_get(src, s));
    }
}

static const uint64_t pow10_u64[20] = {1u,
                                       10u,
                                       100u,
                                       1000u,
                                       10000u,
                                       100000u,
                                       1000000u,
                                       10000000u,
                                       100000000u,
                                       1000000000u,
                                       10000000000u,
                                       100000000000u,
                                       1000000000000u,
                                       10000000000000u,
                                       100000000000000u,
                                       1000000000000000u,
                                       10000000000000000u,
                                       100000000000000000u,
                                       1000000000000000000u,
                                       10000000000000000000u};

tarn_int128 num_pow10_i128(int32_t n) {
    if (n <= 19) {
        return (tarn_int128)pow10_u64[n];
    }
    return (tarn_int128)pow10_u64[19] * (tarn_int128)pow10_u64[n - 19];
}

int32_t num_digits_i128(tarn_int128 v) {
    tarn_uint128 u = v < 0 ? -(tarn_uint128)v : (tarn_uint128)v;
    int32_t digits = 0;
    if (u >= pow10_u64[19]) {
        u /= pow10_u64[19];
        digits = 19;
    }
    if (u >= pow10_u64[19]) {
        /* 2^127 has 39 digits: one is left after two times 19. */
        return 39;
    }
    uint64_t low = (uint64_t)u;
    int32_t more = 1;
    while (more < 20 && low >= pow10_u64[more]) {
        more++;
    }
    return digits + more;
}

size_t num_put_be_i128(tarn_int128 v, uint8_t out[16]) {
    tarn_uint128 u = (tarn_uint128)v;
    size_t len = 1;
    while (len < 16) {
        tarn_int128 rest = v >> (8 * len - 1);
        if (rest == 0 || rest == -1) {
            break; /* what is left says no more than the sign does */
        }
        len++;
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(u >> (8 * (len - 1 - i)));
    }
    return len;
}

bool num_get_be_i128(const uint8_t *p, size_t len, tarn_int128 *out) {
    if (len == 0) {
        *out = 0;
        return true;
    }
    uint8_t sign = p[0] & 0x80 ? 0xFF : 0;
    while (len > 16) {
        if (p[0] != sign) {
            return false;
        }
        p++;
        len--;
    }
    if ((p[0] & 0x80) != (sign & 0x80)) {
        return false; /* the padding said another sign */
    }
    tarn_uint128 u = sign ? ~(tarn_uint128)0 : 0;
    for (size_t i = 0; i < len; i++) {
        u = u << 8 | p[i];
    }
    *out = (tarn_int128)u;
    return true;
}

uint32_t num_crc32(uint32_t crc, const void *data, size_t len) {
    return len == 0 ? crc : libdeflate_crc32(crc, data, len);
}

static uint32_t rotl32(uint32_t x, int r) {
    return x << r | x >> (32 - r);
}

static uint32_t mix_k(uint32_t k) {
    k *= UINT32_C(0xCC9E2D51);
    k = rotl32(k, 15);
    return k * UINT32_C(0x1B873593);
}

/* spec: Appendix B "32-bit Hash Requirements": murmur3 x86 32-bit with seed 0. */
uint32_t num_murmur3(const void *data, size_t len) {
    const uint8_t *p = data;
    uint32_t h = 0;
    size_t blocks = len / 4;
    for (size_t i = 0; i < blocks; i++) {
        h ^= mix_k(num_load_u32(p + 4 * i));
        h = rotl32(h, 13) * 5 + UINT32_C(0xE6546B64);
    }
    uint32_t tail = 0;
    for (size_t i = len; i > blocks * 4; i--) {
        tail = tail << 8 | p[i - 1];
    }
    h ^= mix_k(tail);
    h ^= (uint32_t)len;
    h ^= h >> 16;
    h *= UINT32_C(0x85EBCA6B);
    h ^= h >> 13;
    h *= UINT32_C(0xC2B2AE35);
    h ^= h >> 16;
    return h;
}
