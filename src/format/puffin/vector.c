/* format/puffin/vector.c - the blob deletion-vector-v1 (Puffin spec): the length of what follows
 * but for the checksum (4 bytes, big-endian), the magic D1 D3 39 64, the bitmap of table/positions,
 * and the CRC-32 of magic and bitmap (4 bytes, big-endian).
 *
 * Invariant: a set that was given out passed all four checks, and has the cardinality asked for. */
#include "base/num.h"
#include "format/puffin/puffin.h"

#define LENGTH_BYTES 4
#define MAGIC_BYTES  4
#define CRC_BYTES    4
#define FRAME_BYTES  (LENGTH_BYTES + MAGIC_BYTES + CRC_BYTES)

static const uint8_t vector_magic[MAGIC_BYTES] = {0xd1, 0xd3, 0x39, 0x64};

static uint32_t swap(uint32_t v) {
    return __builtin_bswap32(v);
}

tarn_code vector_encode(const tarn_positions *p, tarn_buf *out, tarn_error *err) {
    tarn_code code;
    size_t start = out->len;
    uint32_t word = 0;
    TRY(buf_append(out, &word, sizeof word, err));
    TRY(buf_append(out, vector_magic, MAGIC_BYTES, err));
    TRY(positions_write(p, out, err));
    size_t len = out->len - start - LENGTH_BYTES;
    if (len > INT32_MAX) {
        code =
            err_set(err, TARN_LIMIT,
                    "a deletion vector of %zu bytes was larger than its length field holds", len);
        goto done;
    }
    word = swap((uint32_t)len);
    memcpy(out->data + start, &word, sizeof word);
    word = swap(num_crc32(0, out->data + start + LENGTH_BYTES, len));
    TRY(buf_append(out, &word, sizeof word, err));
done:
    if (code != TARN_OK) {
        out->len = start;
    }
    return code;
}

tarn_code vector_decode(tarn_env *env, tarn_str bytes, int64_t cardinality, tarn_positions **out,
                        tarn_error *err) {
    const uint8_t *data = (const uint8_t *)bytes.data;
    tarn_positions *p = NULL;
    if (bytes.len < FRAME_BYTES) {
        return err_set(err, TARN_CORRUPT, "a deletion vector of %zu bytes was cut off", bytes.len);
    }
    size_t len = bytes.len - LENGTH_BYTES - CRC_BYTES;
    uint32_t said = num_load_be32(data);
    if (said != len) {
        return err_set(err, TARN_CORRUPT, "a deletion vector said that it had %u bytes and had %zu",
                       said, len);
    }
    if (memcmp(data + LENGTH_BYTES, vector_magic, MAGIC_BYTES) != 0) {
        return err_set(err, TARN_CORRUPT, "a deletion vector did not begin with D1D33964");
    }
    uint32_t crc = num_crc32(0, data + LENGTH_BYTES, len);
    uint32_t want = num_load_be32(data + LENGTH_BYTES + len);
    if (crc != want) {
        return err_set(err, TARN_CORRUPT,
                       "a deletion vector had checksum %08x where %08x was stored", crc, want);
    }
    tarn_code code =
        positions_read(env, data + LENGTH_BYTES + MAGIC_BYTES, len - MAGIC_BYTES, &p, err);
    if (code != TARN_OK) {
        return err_add(err, code, "deletion vector");
    }
    if (cardinality >= 0 && positions_count(p) != cardinality) {
        code = err_set(err, TARN_CORRUPT, "a deletion vector held %lld positions and not %lld",
                       (long long)positions_count(p), (long long)cardinality);
        positions_free(p);
        return code;
    }
    *out = p;
    return TARN_OK;
}
