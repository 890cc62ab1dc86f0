/* format/parquet/decode_delta.c - see decode_delta.h (parquet-format, Encodings.md, "Delta
 * encoding"). */
#include "format/parquet/decode_delta.h"

#include "base/num.h"
#include "format/parquet/decode_hybrid.h"

bool delta_open(delta_reader *d, const uint8_t *data, size_t len) {
    uint64_t block = 0, minis = 0, count = 0;
    const uint8_t *at = data, *end = data + len;
    int64_t first = 0;
    if (!num_get_uvarint(&at, end, &block) || !num_get_uvarint(&at, end, &minis) ||
        !num_get_uvarint(&at, end, &count) || !num_get_varint(&at, end, &first)) {
        return false;
    }
    if (minis == 0 || minis > DELTA_MAX_MINIBLOCKS || block == 0 || block > (1u << 24) ||
        block % minis != 0 || (block / minis) % 8 != 0) {
        return false;
    }
    *d = (delta_reader){.at = at,
                        .end = end,
                        .count = count,
                        .left = count,
                        .mini_values = (uint32_t)(block / minis),
                        .n_minis = (uint32_t)minis,
                        .mini = (uint32_t)minis,
                        .last = first,
                        .first_pending = count > 0};
    return true;
}

static bool next_block(delta_reader *d) {
    if (!num_get_varint(&d->at, d->end, &d->min_delta) || (size_t)(d->end - d->at) < d->n_minis) {
        return false;
    }
    d->widths = d->at;
    d->at += d->n_minis;
    d->mini = 0;
    return true;
}

/* Makes the mini block that holds the next value the present one. The last one may be cut off after
 * the values that are still wanted. */
static bool next_mini(delta_reader *d) {
    if (d->mini < d->n_minis) {
        d->mini++;
    }
    if (d->mini == d->n_minis && !next_block(d)) {
        return false;
    }
    const uint32_t width = d->widths[d->mini];
    const size_t bytes = (size_t)d->mini_values / 8 * width;
    const uint64_t needed = d->left < d->mini_values ? (d->left * width + 7) / 8 : (uint64_t)bytes;
    const size_t have = (size_t)(d->end - d->at);
    if (width > 64 || have < needed) {
        return false;
    }
    d->packed = d->at;
    d->at += bytes < have ? bytes : have;
    d->mini_pos = 0;
    return true;
}

/* Up to max deltas of one mini block, unpacked; 0 in damage. */
static size_t next_deltas(delta_reader *d, size_t max, uint64_t *out) {
    if ((d->mini == d->n_minis || d->mini_pos == d->mini_values) && !next_mini(d)) {
        return 0;
    }
    size_t n = d->mini_values - d->mini_pos;
    n = n < max ? n : max;
    const int width = d->widths[d->mini];
    unpack_u64(d->packed, d->end, (uint64_t)d->mini_pos * (uint64_t)width, width, n, out);
    d->mini_pos += (uint32_t)n;
    d->left -= n;
    return n;
}

bool delta_read_i64(delta_reader *d, size_t n, int64_t *out) {
    uint64_t block[128];
    if (n > d->left) {
        return false;
    }
    if (n > 0 && d->first_pending) {
        *out++ = d->last;
        d->first_pending = false;
        d->left--;
        n--;
    }
    while (n > 0) {
        const size_t got = next_deltas(d, n < 128 ? n : 128, block);
        if (got == 0) {
            return false;
        }
        uint64_t last = (uint64_t)d->last;
        for (size_t i = 0; i < got; i++) {
            last += block[i] + (uint64_t)d->min_delta;
            out[i] = (int64_t)last;
        }
        d->last = (int64_t)last;
        out += got;
        n -= got;
    }
    return true;
}

bool delta_read_i32(delta_reader *d, size_t n, int32_t *out) {
    int64_t block[128];
    while (n > 0) {
        const size_t take = n < 128 ? n : 128;
        if (!delta_read_i64(d, take, block)) {
            return false;
        }
        for (size_t i = 0; i < take; i++) {
            out[i] = (int32_t)(uint32_t)(uint64_t)block[i];
        }
        out += take;
        n -= take;
    }
    return true;
}

const uint8_t *delta_find_end(const delta_reader *d) {
    delta_reader walk = *d;
    if (walk.first_pending) {
        walk.first_pending = false;
        walk.left--;
    }
    while (walk.left > 0) {
        if (!next_mini(&walk)) {
            return NULL;
        }
        walk.left -= walk.left < walk.mini_values ? walk.left : walk.mini_values;
    }
    return walk.at;
}
