/* encode_delta.c - DELTA_BINARY_PACKED and the two byte-array encodings built on it, and
 * BYTE_STREAM_SPLIT and PLAIN of byte arrays (Encodings.md).
 *
 * Deltas are taken in unsigned arithmetic of the value's own width, so every input is fine and the
 * reader's wrapping sum gives the value back. */
#include "format/parquet/encode.h"

#define DELTA_BLOCK     128
#define DELTA_MINI      32
#define DELTA_MINIS     (DELTA_BLOCK / DELTA_MINI)
#define DELTA_BLOCK_MAX (10 + DELTA_MINIS + DELTA_BLOCK * 8 + 16)

/* 32 values of width bits, least significant first. Returns the end. */
static uint8_t *pack_mini(uint8_t *p, const uint64_t *values, unsigned width) {
    tarn_uint128 acc = 0;
    unsigned bits = 0;
    if (width == 0) {
        return p;
    }
    for (unsigned k = 0; k < DELTA_MINI; k++) {
        acc |= (tarn_uint128)values[k] << bits;
        bits += width;
        if (bits >= 64) {
            uint64_t word = (uint64_t)acc;
            memcpy(p, &word, 8);
            p += 8;
            acc >>= 64;
            bits -= 64;
        }
    }
    uint64_t word = (uint64_t)acc;
    memcpy(p, &word, 8);
    return p + bits / 8;
}

/* One block: n deltas (1..128), which are overwritten. */
static tarn_code put_block(tarn_buf *out, int64_t *deltas, size_t n, tarn_error *err) {
    int64_t min = deltas[0];
    for (size_t k = 1; k < n; k++) {
        min = deltas[k] < min ? deltas[k] : min;
    }
    tarn_code code = buf_reserve(out, DELTA_BLOCK_MAX, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    p += num_put_varint(p, min);
    uint8_t *widths = p;
    p += DELTA_MINIS;
    for (size_t m = 0; m < DELTA_MINIS; m++) {
        uint64_t part[DELTA_MINI] = {0};
        size_t start = m * DELTA_MINI;
        size_t len = start >= n ? 0 : (n - start < DELTA_MINI ? n - start : DELTA_MINI);
        uint64_t any = 0;
        for (size_t k = 0; k < len; k++) {
            part[k] = (uint64_t)deltas[start + k] - (uint64_t)min;
            any |= part[k];
        }
        widths[m] = (uint8_t)encode_bit_width(any);
        if (len > 0) { /* miniblocks after the last value are not stored */
            p = pack_mini(p, part, widths[m]);
        }
    }
    out->len = (size_t)(p - out->data);
    return TARN_OK;
}

static tarn_code put_header(tarn_buf *out, size_t n, int64_t first, tarn_error *err) {
    tarn_code code = buf_reserve(out, 40, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    p += num_put_uvarint(p, DELTA_BLOCK);
    p += num_put_uvarint(p, DELTA_MINIS);
    p += num_put_uvarint(p, n);
    p += num_put_varint(p, first);
    out->len = (size_t)(p - out->data);
    return TARN_OK;
}

tarn_code encode_delta_i64(tarn_buf *out, const int64_t *values, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t deltas[DELTA_BLOCK];
    TRY(put_header(out, n, n > 0 ? values[0] : 0, err));
    for (size_t i = 1; i < n; i += DELTA_BLOCK) {
        size_t len = n - i < DELTA_BLOCK ? n - i : DELTA_BLOCK;
        for (size_t k = 0; k < len; k++) {
            deltas[k] = (int64_t)((uint64_t)values[i + k] - (uint64_t)values[i + k - 1]);
        }
        TRY(put_block(out, deltas, len, err));
    }
done:
    return code;
}

/* INT32 columns: deltas wrap in 32 bits, so that they and their spread need at most 32. */
tarn_code encode_delta_i32(tarn_buf *out, const int32_t *values, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t deltas[DELTA_BLOCK];
    TRY(put_header(out, n, n > 0 ? values[0] : 0, err));
    for (size_t i = 1; i < n; i += DELTA_BLOCK) {
        size_t len = n - i < DELTA_BLOCK ? n - i : DELTA_BLOCK;
        for (size_t k = 0; k < len; k++) {
            deltas[k] = (int32_t)((uint32_t)values[i + k] - (uint32_t)values[i + k - 1]);
        }
        TRY(put_block(out, deltas, len, err));
    }
done:
    return code;
}

/* Lengths of the values (ends[i] - starts[i]) as DELTA_BINARY_PACKED. */
static tarn_code put_lengths(tarn_buf *out, const uint32_t *offsets, const uint32_t *skips,
                             size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t deltas[DELTA_BLOCK];
    int64_t last = n == 0 ? 0 : (int64_t)(offsets[1] - offsets[0]) - (skips ? skips[0] : 0);
    TRY(put_header(out, n, last, err));
    for (size_t i = 1; i < n; i += DELTA_BLOCK) {
        size_t len = n - i < DELTA_BLOCK ? n - i : DELTA_BLOCK;
        for (size_t k = 0; k < len; k++) {
            int64_t now = (int64_t)(offsets[i + k + 1] - offsets[i + k]);
            now -= skips != NULL ? skips[i + k] : 0;
            deltas[k] = now - last;
            last = now;
        }
        TRY(put_block(out, deltas, len, err));
    }
done:
    return code;
}

tarn_code encode_delta_length(tarn_buf *out, const uint32_t *offsets, const uint8_t *bytes,
                              size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(put_lengths(out, offsets, NULL, n, err));
    if (n > 0) {
        TRY(buf_append(out, bytes + offsets[0], offsets[n] - offsets[0], err));
    }
done:
    return code;
}

static uint32_t common_prefix(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len) {
    uint32_t len = a_len < b_len ? a_len : b_len;
    uint32_t i = 0;
    while (i + 8 <= len) {
        uint64_t differ = num_load_u64(a + i) ^ num_load_u64(b + i);
        if (differ != 0) {
            return i + (uint32_t)__builtin_ctzll(differ) / 8;
        }
        i += 8;
    }
    while (i < len && a[i] == b[i]) {
        i++;
    }
    return i;
}

tarn_code encode_delta_bytes(tarn_buf *out, const uint32_t *offsets, const uint8_t *bytes, size_t n,
                             tarn_buf *scratch, tarn_error *err) {
    tarn_code code = TARN_OK;
    buf_reset(scratch);
    TRY(buf_reserve(scratch, n * sizeof(uint32_t) + 1, err));
    uint32_t *prefixes = (uint32_t *)(void *)scratch->data;
    for (size_t i = 0; i < n; i++) {
        prefixes[i] = i == 0 ? 0
                             : common_prefix(bytes + offsets[i - 1], offsets[i] - offsets[i - 1],
                                             bytes + offsets[i], offsets[i + 1] - offsets[i]);
    }
    TRY(encode_delta_i32(out, (const int32_t *)prefixes, n, err));
    TRY(put_lengths(out, offsets, prefixes, n, err));
    TRY(buf_reserve(out, n == 0 ? 0 : offsets[n] - offsets[0], err));
    for (size_t i = 0; i < n; i++) {
        size_t start = offsets[i] + prefixes[i];
        size_t len = offsets[i + 1] - start;
        if (len > 0) {
            memcpy(out->data + out->len, bytes + start, len);
            out->len += len;
        }
    }
done:
    return code;
}

tarn_code encode_stream_split(tarn_buf *out, const uint8_t *values, size_t n, size_t width,
                              tarn_error *err) {
    size_t total = 0;
    if (!num_mul_size(n, width, &total)) {
        return err_nomem(err);
    }
    tarn_code code = buf_reserve(out, total, err);
    if (code != TARN_OK) {
        return code;
    }
    for (size_t k = 0; k < width; k++) {
        uint8_t *p = out->data + out->len + k * n;
        for (size_t i = 0; i < n; i++) {
            p[i] = values[i * width + k];
        }
    }
    out->len += total;
    return TARN_OK;
}

tarn_code encode_plain_bytes(tarn_buf *out, const int32_t *offsets, const uint8_t *bytes, size_t n,
                             tarn_error *err) {
    if (n == 0) {
        return TARN_OK;
    }
    const uint8_t *end = bytes + offsets[n];
    tarn_code code = buf_reserve(out, (size_t)(offsets[n] - offsets[0]) + n * 4 + 16, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *value = bytes + offsets[i];
        uint32_t len = (uint32_t)(offsets[i + 1] - offsets[i]);
        memcpy(p, &len, 4);
        p += 4;
        if (len <= 16 && end - value >= 16) {
            memcpy(p, value, 16); /* one store; what is too much is overwritten next */
        } else if (len > 0) {
            memcpy(p, value, len);
        }
        p += len;
    }
    out->len = (size_t)(p - out->data);
    return TARN_OK;
}
