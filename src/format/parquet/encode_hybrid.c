/* encode_hybrid.c - the RLE / bit-packed hybrid (Encodings.md, "Run Length Encoding / Bit-Packing
 * Hybrid") for levels, dictionary indices and booleans.
 *
 * Input is looked at in groups of eight: a group of equal values starts a repeated run, which then
 * is followed value by value; all other groups join a bit-packed run. Runs that straddle groups
 * with fewer than eight values in each are packed, which costs little and keeps one branch per
 * group. */
#include "format/parquet/encode.h"

/* A bit-packed run longer than this is cut in two, so that run headers stay small. */
#define PACKED_GROUPS_MAX (1u << 20)
#define PACK_SLACK        16 /* packing stores whole words */

static tarn_code put_run(tarn_buf *out, uint32_t value, size_t n, int width, tarn_error *err) {
    size_t value_bytes = (size_t)(width + 7) / 8;
    tarn_code code = buf_reserve(out, 10 + 4, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    p += num_put_uvarint(p, (uint64_t)n << 1);
    memcpy(p, &value, value_bytes);
    out->len = (size_t)(p - out->data) + value_bytes;
    return TARN_OK;
}

/* Eight values into width bytes; stores up to 7 bytes beyond them. */
static inline uint8_t *pack_eight(uint8_t *p, const uint32_t *values, unsigned width) {
    uint64_t acc = 0;
    unsigned bits = 0;
    for (unsigned k = 0; k < 8; k++) {
        acc |= (uint64_t)values[k] << bits;
        bits += width;
        if (bits >= 32) {
            memcpy(p, &acc, 4);
            p += 4;
            acc >>= 32;
            bits -= 32;
        }
    }
    memcpy(p, &acc, 4);
    return p + bits / 8;
}

/* Eight values of at most 8 bits each in one word. */
static inline uint8_t *pack_eight_small(uint8_t *p, const uint32_t *v, unsigned width) {
    uint64_t lo = (uint64_t)v[0] | (uint64_t)v[1] << width | (uint64_t)v[2] << 2 * width |
                  (uint64_t)v[3] << 3 * width;
    uint64_t hi = (uint64_t)v[4] | (uint64_t)v[5] << width | (uint64_t)v[6] << 2 * width |
                  (uint64_t)v[7] << 3 * width;
    lo |= hi << 4 * width;
    memcpy(p, &lo, 8);
    return p + width;
}

/* Widths 9 to 16: two words of four values; the second is put where the first ends. */
static inline uint8_t *pack_eight_middle(uint8_t *p, const uint32_t *v, unsigned width) {
    uint64_t lo = (uint64_t)v[0] | (uint64_t)v[1] << width | (uint64_t)v[2] << 2 * width |
                  (uint64_t)v[3] << 3 * width;
    uint64_t hi = (uint64_t)v[4] | (uint64_t)v[5] << width | (uint64_t)v[6] << 2 * width |
                  (uint64_t)v[7] << 3 * width;
    tarn_uint128 all = (tarn_uint128)lo | (tarn_uint128)hi << 4 * width;
    memcpy(p, &all, 16);
    return p + width;
}

static tarn_code put_packed(tarn_buf *out, const uint32_t *values, size_t n, int width,
                            tarn_error *err) {
    unsigned w = (unsigned)width;
    while (n > 0) {
        size_t groups = (n + 7) / 8;
        groups = groups > PACKED_GROUPS_MAX ? PACKED_GROUPS_MAX : groups;
        size_t whole = n / 8 < groups ? n / 8 : groups;
        tarn_code code = buf_reserve(out, 10 + groups * w + PACK_SLACK, err);
        if (code != TARN_OK) {
            return code;
        }
        uint8_t *p = out->data + out->len;
        p += num_put_uvarint(p, (uint64_t)groups << 1 | 1);
        if (w <= 8) {
            for (size_t g = 0; g < whole; g++) {
                p = pack_eight_small(p, values + g * 8, w);
            }
        } else if (w <= 16) {
            for (size_t g = 0; g < whole; g++) {
                p = pack_eight_middle(p, values + g * 8, w);
            }
        } else {
            for (size_t g = 0; g < whole; g++) {
                p = pack_eight(p, values + g * 8, w);
            }
        }
        if (whole < groups) {
            uint32_t last[8] = {0};
            memcpy(last, values + whole * 8, (n - whole * 8) * sizeof last[0]);
            p = pack_eight(p, last, w);
        }
        out->len = (size_t)(p - out->data);
        values += whole * 8;
        n = whole < groups ? 0 : n - whole * 8;
    }
    return TARN_OK;
}

tarn_code encode_hybrid_u32(tarn_buf *out, const uint32_t *values, size_t n, int width,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t literal = 0; /* first value not yet written */
    size_t i = 0;       /* literal plus a multiple of 8 */
    tarn_assert(width >= 0 && width <= 32);
    while (i + 8 <= n) {
        const uint32_t *v = values + i;
        uint32_t first = v[0];
        uint32_t differ = (v[1] ^ first) | (v[2] ^ first) | (v[3] ^ first) | (v[4] ^ first) |
                          (v[5] ^ first) | (v[6] ^ first) | (v[7] ^ first);
        if (differ != 0) {
            i += 8;
            continue;
        }
        size_t end = i + 8;
        while (end < n && values[end] == first) {
            end++;
        }
        TRY(put_packed(out, values + literal, i - literal, width, err));
        TRY(put_run(out, first, end - i, width, err));
        literal = i = end;
    }
    TRY(put_packed(out, values + literal, n - literal, width, err));
done:
    return code;
}

static tarn_code put_packed_u8(tarn_buf *out, const uint8_t *values, size_t n, int width,
                               tarn_error *err) {
    uint32_t wide[512];
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < n && code == TARN_OK; i += 512) {
        size_t len = n - i < 512 ? n - i : 512;
        for (size_t k = 0; k < len; k++) {
            wide[k] = values[i + k];
        }
        code = put_packed(out, wide, len, width, err);
    }
    return code;
}

tarn_code encode_hybrid_u8(tarn_buf *out, const uint8_t *values, size_t n, int width,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t literal = 0;
    size_t i = 0;
    tarn_assert(width >= 0 && width <= 8);
    while (i + 8 <= n) {
        uint64_t all_first = values[i] * UINT64_C(0x0101010101010101);
        if (num_load_u64(values + i) != all_first) {
            i += 8;
            continue;
        }
        size_t end = i + 8;
        while (end + 8 <= n && num_load_u64(values + end) == all_first) {
            end += 8;
        }
        while (end < n && values[end] == values[i]) {
            end++;
        }
        TRY(put_packed_u8(out, values + literal, i - literal, width, err));
        TRY(put_run(out, values[i], end - i, width, err));
        literal = i = end;
    }
    TRY(put_packed_u8(out, values + literal, n - literal, width, err));
done:
    return code;
}

/* Length of the run of bytes equal to fill from byte on, below n_bytes. */
static size_t span_of_bytes(const uint8_t *bits, size_t byte, size_t n_bytes, uint8_t fill) {
    size_t i = byte;
    uint64_t want = fill == 0 ? 0 : UINT64_MAX;
    while (i + 8 <= n_bytes && num_load_u64(bits + i) == want) {
        i += 8;
    }
    while (i < n_bytes && bits[i] == fill) {
        i++;
    }
    return i - byte;
}

static tarn_code put_packed_bits(tarn_buf *out, const uint8_t *bits, size_t n_bytes, size_t n_bits,
                                 tarn_error *err) {
    if (n_bytes == 0) {
        return TARN_OK;
    }
    tarn_code code = buf_reserve(out, 10 + n_bytes, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    p += num_put_uvarint(p, (uint64_t)n_bytes << 1 | 1);
    memcpy(p, bits, n_bytes);
    p += n_bytes;
    if (n_bits % 8 != 0) {
        p[-1] = (uint8_t)(p[-1] & ((1u << n_bits % 8) - 1));
    }
    out->len = (size_t)(p - out->data);
    return TARN_OK;
}

tarn_code encode_hybrid_bits(tarn_buf *out, const uint8_t *bits, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t whole = n / 8;
    size_t literal = 0;
    size_t i = 0;
    while (i < whole) {
        if (bits[i] != 0 && bits[i] != 0xff) {
            i++;
            continue;
        }
        size_t span = span_of_bytes(bits, i, whole, bits[i]);
        if (span < 4) { /* a run and a new packed header cost as much */
            i += span;
            continue;
        }
        TRY(put_packed_bits(out, bits + literal, i - literal, 0, err));
        TRY(put_run(out, bits[i] & 1u, span * 8, 1, err));
        literal = i = i + span;
    }
    TRY(put_packed_bits(out, bits + literal, (n + 7) / 8 - literal, n, err));
done:
    return code;
}

tarn_code encode_hybrid_run(tarn_buf *out, uint32_t value, size_t n, int width, tarn_error *err) {
    return n == 0 ? TARN_OK : put_run(out, value, n, width, err);
}
