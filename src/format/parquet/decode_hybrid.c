/* format/parquet/decode_hybrid.c - see decode_hybrid.h (parquet-format, Encodings.md). */
#include "format/parquet/decode_hybrid.h"

#include <string.h>

#include "base/num.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Eight values that begin at a byte; width is a constant where this is inlined, so shifts and masks
 * are too. Reads up to 8 bytes beyond the width bytes that it uses. */
ALWAYS_INLINE void unpack8(const uint8_t *p, uint32_t *out, const int width) {
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    if (width <= 8) {
        const uint64_t word = num_load_u64(p);
        for (int i = 0; i < 8; i++) {
            out[i] = (uint32_t)((word >> (i * width)) & mask);
        }
    } else if (width <= 16) {
        const uint64_t low = num_load_u64(p);
        const uint64_t high = num_load_u64(p + width / 2) >> (width % 2 * 4);
        for (int i = 0; i < 4; i++) {
            out[i] = (uint32_t)((low >> (i * width)) & mask);
            out[i + 4] = (uint32_t)((high >> (i * width)) & mask);
        }
    } else {
        for (int i = 0; i < 8; i++) {
            const int bit = i * width;
            out[i] = (uint32_t)((num_load_u64(p + bit / 8) >> (bit % 8)) & mask);
        }
    }
}

/* Groups of eight while the loads stay within end; returns how many values were done. */
#define UNPACK_CASE(w)                                                                             \
    case w:                                                                                        \
        for (; done + 8 <= n && end - p >= (w) + 8; done += 8, p += (w)) {                         \
            unpack8(p, out + done, w);                                                             \
        }                                                                                          \
        break;

static size_t unpack_groups(const uint8_t *p, const uint8_t *end, int width, size_t n,
                            uint32_t *out) {
    size_t done = 0;
    switch (width) {
        UNPACK_CASE(1)
        UNPACK_CASE(2)
        UNPACK_CASE(3)
        UNPACK_CASE(4)
        UNPACK_CASE(5)
        UNPACK_CASE(6)
        UNPACK_CASE(7)
        UNPACK_CASE(8)
        UNPACK_CASE(9)
        UNPACK_CASE(10)
        UNPACK_CASE(11)
        UNPACK_CASE(12)
        UNPACK_CASE(13)
        UNPACK_CASE(14)
        UNPACK_CASE(15)
        UNPACK_CASE(16)
        UNPACK_CASE(17)
        UNPACK_CASE(18)
        UNPACK_CASE(19)
        UNPACK_CASE(20)
        UNPACK_CASE(21)
        UNPACK_CASE(22)
        UNPACK_CASE(23)
        UNPACK_CASE(24)
        UNPACK_CASE(25)
        UNPACK_CASE(26)
        UNPACK_CASE(27)
        UNPACK_CASE(28)
        UNPACK_CASE(29)
        UNPACK_CASE(30)
        UNPACK_CASE(31)
        UNPACK_CASE(32)
    default:
        break;
    }
    return done;
}

/* One value of up to 64 bits, reading only bytes before end. */
static uint64_t load_bits(const uint8_t *data, const uint8_t *end, uint64_t bit, int width) {
    const uint8_t *p = data + bit / 8;
    const int shift = (int)(bit % 8);
    if (p >= end) {
        return 0;
    }
    uint8_t bytes[16] = {0};
    const size_t have = (size_t)(end - p) < 9 ? (size_t)(end - p) : 9;
    memcpy(bytes, p, have);
    uint64_t word = num_load_u64(bytes) >> shift;
    if (shift + width > 64) {
        word |= (uint64_t)bytes[8] << (64 - shift);
    }
    return width == 64 ? word : word & ((UINT64_C(1) << width) - 1);
}

void unpack_u32(const uint8_t *data, const uint8_t *end, uint64_t start, int bit_width, size_t n,
                uint32_t *out) {
    size_t i = 0;
    if (bit_width == 0) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    for (; i < n && start % 8 != 0; i++, start += (uint64_t)bit_width) {
        out[i] = (uint32_t)load_bits(data, end, start, bit_width);
    }
    const size_t done = unpack_groups(data + start / 8, end, bit_width, n - i, out + i);
    start += done * (uint64_t)bit_width;
    for (i += done; i < n; i++, start += (uint64_t)bit_width) {
        out[i] = (uint32_t)load_bits(data, end, start, bit_width);
    }
}

void unpack_u64(const uint8_t *data, const uint8_t *end, uint64_t start, int bit_width, size_t n,
                uint64_t *out) {
    size_t i = 0;
    if (bit_width == 0) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    if (bit_width <= 56) {
        const uint64_t mask = (UINT64_C(1) << bit_width) - 1;
        for (; i < n && (uint64_t)(end - data) >= start / 8 + 8;
             i++, start += (uint64_t)bit_width) {
            out[i] = (num_load_u64(data + start / 8) >> (start % 8)) & mask;
        }
    }
    for (; i < n; i++, start += (uint64_t)bit_width) {
        out[i] = load_bits(data, end, start, bit_width);
    }
}

void unpack_msb_u8(const uint8_t *data, uint64_t start, int bit_width, size_t n, uint8_t *out) {
    for (size_t i = 0; i < n; i++) {
        unsigned v = 0;
        for (int b = 0; b < bit_width; b++, start++) {
            v = v << 1 | (unsigned)((data[start / 8] >> (7 - start % 8)) & 1);
        }
        out[i] = (uint8_t)v;
    }
}

void hybrid_open(hybrid_reader *h, const uint8_t *data, size_t len, int bit_width) {
    *h = (hybrid_reader){.at = data, .end = data + len, .bit_width = bit_width};
}

/* Reads the header of the next run; false at the end or in damage. */
static bool next_run(hybrid_reader *h) {
    uint64_t header = 0;
    while (h->rle_left == 0 && h->packed_left == 0) {
        if (h->at >= h->end || !num_get_uvarint(&h->at, h->end, &header)) {
            return false;
        }
        const size_t left = (size_t)(h->end - h->at);
        if ((header & 1) == 0) {
            const size_t bytes = (size_t)(h->bit_width + 7) / 8;
            if (left < bytes) {
                return false;
            }
            uint8_t word[4] = {0};
            memcpy(word, h->at, bytes);
            h->at += bytes;
            h->value = num_load_u32(word);
            if (h->bit_width < 32 && h->value >> h->bit_width != 0) {
                return false;
            }
            h->rle_left = header >> 1;
            continue;
        }
        /* The last run of a page may claim more groups than there are bytes: writers pad the values
         * but some not the bytes. */
        uint64_t groups = header >> 1;
        uint64_t values = 0;
        if (h->bit_width == 0) {
            values = groups > UINT64_MAX / 8 ? UINT64_MAX : groups * 8;
        } else {
            uint64_t whole = (uint64_t)left / (uint64_t)h->bit_width;
            values = groups <= whole ? groups * 8 : (uint64_t)left * 8 / (uint64_t)h->bit_width;
            groups = groups <= whole ? groups : whole + 1;
        }
        uint64_t bytes = groups * (uint64_t)h->bit_width;
        bytes = h->bit_width == 0 ? 0 : bytes < left ? bytes : left;
        h->packed = h->at;
        h->packed_at = 0;
        h->packed_left = values;
        h->at += bytes;
    }
    return true;
}

static void take_packed(hybrid_reader *h, size_t n) {
    h->packed_at += n;
    h->packed_left -= n;
}

bool hybrid_read_u32(hybrid_reader *h, size_t n, uint32_t *out) {
    while (n > 0) {
        bool repeated = false;
        uint32_t value = 0;
        const size_t got = hybrid_next(h, n, out, &repeated, &value);
        if (got == 0) {
            return false;
        }
        for (size_t i = 0; i < got && repeated; i++) {
            out[i] = value;
        }
        out += got;
        n -= got;
    }
    return true;
}

size_t hybrid_next(hybrid_reader *h, size_t max, uint32_t *out, bool *repeated, uint32_t *value) {
    if (max == 0 || !next_run(h)) {
        return 0;
    }
    if (h->rle_left > 0) {
        const size_t n = h->rle_left < max ? (size_t)h->rle_left : max;
        h->rle_left -= n;
        *repeated = true;
        *value = h->value;
        return n;
    }
    const size_t n = h->packed_left < max ? (size_t)h->packed_left : max;
    unpack_u32(h->packed, h->end, h->packed_at * (uint64_t)h->bit_width, h->bit_width, n, out);
    take_packed(h, n);
    *repeated = false;
    return n;
}

bool hybrid_read_u8(hybrid_reader *h, size_t n, uint8_t *out) {
    uint32_t block[256];
    while (n > 0) {
        bool repeated = false;
        uint32_t value = 0;
        size_t max = n;
        if (h->rle_left == 0 && max > 256) {
            max = next_run(h) && h->rle_left > 0 ? n : 256;
        }
        const size_t got = hybrid_next(h, max, block, &repeated, &value);
        if (got == 0) {
            return false;
        }
        if (repeated) {
            memset(out, (int)value, got);
        } else {
            for (size_t i = 0; i < got; i++) {
                out[i] = (uint8_t)block[i];
            }
        }
        out += got;
        n -= got;
    }
    return true;
}

bool hybrid_read_bits(hybrid_reader *h, size_t n, uint8_t *bits, int64_t start, int64_t *n_set) {
    int64_t set = 0;
    while (n > 0) {
        if (!next_run(h)) {
            return false;
        }
        if (h->rle_left > 0) {
            const size_t take = h->rle_left < n ? (size_t)h->rle_left : n;
            bit_fill(bits, start, (int64_t)take, h->value != 0);
            set += h->value != 0 ? (int64_t)take : 0;
            h->rle_left -= take;
            start += (int64_t)take;
            n -= take;
            continue;
        }
        const size_t take = h->packed_left < n ? (size_t)h->packed_left : n;
        bit_copy(bits, start, h->packed, (int64_t)h->packed_at, (int64_t)take);
        set += bit_count(h->packed, (int64_t)h->packed_at, (int64_t)take);
        take_packed(h, take);
        start += (int64_t)take;
        n -= take;
    }
    *n_set = set;
    return true;
}

bool hybrid_skip(hybrid_reader *h, size_t n) {
    while (n > 0) {
        if (!next_run(h)) {
            return false;
        }
        if (h->rle_left > 0) {
            const size_t take = h->rle_left < n ? (size_t)h->rle_left : n;
            h->rle_left -= take;
            n -= take;
        } else {
            const size_t take = h->packed_left < n ? (size_t)h->packed_left : n;
            take_packed(h, take);
            n -= take;
        }
    }
    return true;
}
