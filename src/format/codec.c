/* format/codec.c - whole buffers, packed and unpacked by the libraries that do it best: libdeflate,
 * zstd, snappy, lz4, brotli, bzip2.
 *
 * Every codec is one function that unpacks into a room of given size and says one of: done, room
 * too small, damaged, no memory. Exact and growing output are built on that alone, so no codec can
 * allocate by what its input claims. zstd and brotli's decoder take their memory from the env;
 * libdeflate, snappy, bzip2 and brotli's encoder use the C library's. */
#include "format/codec.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_customMem: memory that the env counts */
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <bzlib.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <limits.h>

#include "base/num.h"

typedef enum unpack_result { UNPACK_DONE, UNPACK_SMALL, UNPACK_BAD, UNPACK_NOMEM } unpack_result;

static const char *const CODEC_NAMES[] = {"none", "deflate", "zlib",       "gzip",   "snappy",
                                          "zstd", "lz4_raw", "lz4_hadoop", "brotli", "bzip2"};

const char *codec_name(codec_kind kind) {
    return CODEC_NAMES[kind];
}

bool codec_from_name(tarn_str name, codec_kind *out) {
    static const struct {
        const char *name;
        codec_kind kind;
    } aliases[] = {{"null", CODEC_NONE},
                   {"uncompressed", CODEC_NONE},
                   {"zstandard", CODEC_ZSTD},
                   {"lz4", CODEC_LZ4_RAW}};
    for (size_t i = 0; i < sizeof CODEC_NAMES / sizeof *CODEC_NAMES; i++) {
        if (str_eq_nocase(name, str_of(CODEC_NAMES[i]))) {
            *out = (codec_kind)i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (str_eq_nocase(name, str_of(aliases[i].name))) {
            *out = aliases[i].kind;
            return true;
        }
    }
    return false;
}

codec_kind codec_sniff(const void *data, size_t len) {
    const uint8_t *p = data;
    if (len >= 2 && p[0] == 0x1f && p[1] == 0x8b) {
        return CODEC_GZIP;
    }
    if (len >= 4 && num_load_u32(p) == ZSTD_MAGICNUMBER) {
        return CODEC_ZSTD;
    }
    return CODEC_NONE;
}

/* ---- context ---- */

static void *zstd_alloc(void *opaque, size_t size) {
    return env_alloc(opaque, size);
}

static void zstd_free(void *opaque, void *ptr) {
    env_free(opaque, ptr);
}

void codec_ctx_init(codec_ctx *ctx, tarn_env *env) {
    memset(ctx, 0, sizeof *ctx);
    ctx->env = env;
}

void codec_ctx_release(codec_ctx *ctx) {
    ZSTD_freeDCtx(ctx->zstd_in);
    ZSTD_freeCCtx(ctx->zstd_out);
    if (ctx->deflate_in != NULL) {
        libdeflate_free_decompressor(ctx->deflate_in);
    }
    if (ctx->deflate_out != NULL) {
        libdeflate_free_compressor(ctx->deflate_out);
    }
    memset(ctx, 0, sizeof *ctx);
}

/* ---- unpacking ---- */

static unpack_result unpack_none(tarn_str src, uint8_t *dst, size_t cap, size_t *got) {
    if (src.len > cap) {
        return UNPACK_SMALL;
    }
    if (src.len > 0) {
        memcpy(dst, src.data, src.len);
    }
    *got = src.len;
    return UNPACK_DONE;
}

static bool is_zeros(tarn_str s) {
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] != 0) {
            return false;
        }
    }
    return true;
}

static enum libdeflate_result inflate_part(codec_ctx *ctx, codec_kind kind, tarn_str src,
                                           uint8_t *dst, size_t cap, size_t used_got[2]) {
    struct libdeflate_decompressor *d = ctx->deflate_in;
    if (kind == CODEC_GZIP) {
        return libdeflate_gzip_decompress_ex(d, src.data, src.len, dst, cap, &used_got[0],
                                             &used_got[1]);
    }
    if (kind == CODEC_ZLIB) {
        return libdeflate_zlib_decompress_ex(d, src.data, src.len, dst, cap, &used_got[0],
                                             &used_got[1]);
    }
    return libdeflate_deflate_decompress_ex(d, src.data, src.len, dst, cap, &used_got[0],
                                            &used_got[1]);
}

/* Bytes after the end of a raw deflate stream are ignored: a common Avro writer cuts zlib's output
 * one byte short of its checksum and leaves the rest there. Zeros pad gzip files. */
static unpack_result unpack_deflate(codec_ctx *ctx, codec_kind kind, tarn_str src, uint8_t *dst,
                                    size_t cap, size_t *got) {
    if (ctx->deflate_in == NULL) {
        ctx->deflate_in = libdeflate_alloc_decompressor();
        if (ctx->deflate_in == NULL) {
            return UNPACK_NOMEM;
        }
    }
    size_t total = 0;
    do {
        size_t used_got[2] = {0, 0};
        enum libdeflate_result result =
            inflate_part(ctx, kind, src, dst + total, cap - total, used_got);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            return UNPACK_SMALL;
        }
        if (result != LIBDEFLATE_SUCCESS) {
            return UNPACK_BAD;
        }
        src = str_from(src, used_got[0]);
        total += used_got[1];
    } while (kind == CODEC_GZIP && !is_zeros(src));
    if (kind == CODEC_ZLIB && src.len > 0) {
        return UNPACK_BAD;
    }
    *got = total;
    return UNPACK_DONE;
}

/* snappy's longest copy makes 64 bytes of 3, so a claim beyond that is a lie. */
static bool snappy_size(tarn_str src, size_t *size) {
    return snappy_uncompressed_length(src.data, src.len, size) == SNAPPY_OK &&
           *size / 22 <= src.len;
}

static unpack_result unpack_snappy(tarn_str src, uint8_t *dst, size_t cap, size_t *got) {
    size_t size = 0;
    if (!snappy_size(src, &size)) {
        return UNPACK_BAD;
    }
    if (size > cap) {
        return UNPACK_SMALL;
    }
    size_t written = cap;
    if (snappy_uncompress(src.data, src.len, (char *)dst, &written) != SNAPPY_OK) {
        return UNPACK_BAD;
    }
    *got = written;
    return UNPACK_DONE;
}

/* A block takes 3 bytes or more and makes at most 128 KiB: whoever asks for a larger room than all
 * blocks could fill is damaged, though zstd itself only says that the room was too small. */
static bool zstd_asks_too_much(tarn_str src, size_t cap) {
    return cap / ZSTD_BLOCKSIZE_MAX > src.len / 3 + 1;
}

static unpack_result unpack_zstd(codec_ctx *ctx, tarn_str src, uint8_t *dst, size_t cap,
                                 size_t *got) {
    if (ctx->zstd_in == NULL) {
        ctx->zstd_in = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, ctx->env});
        if (ctx->zstd_in == NULL) {
            return UNPACK_NOMEM;
        }
    }
    size_t n = ZSTD_decompressDCtx(ctx->zstd_in, dst, cap, src.data, src.len);
    if (!ZSTD_isError(n)) {
        *got = n;
        return UNPACK_DONE;
    }
    ZSTD_ErrorCode code = ZSTD_getErrorCode(n);
    if (code == ZSTD_error_dstSize_tooSmall && !zstd_asks_too_much(src, cap)) {
        return UNPACK_SMALL;
    }
    return code == ZSTD_error_memory_allocation ? UNPACK_NOMEM : UNPACK_BAD;
}

/* lz4 does not tell a small room from damage, but it never makes more than 255 bytes of one. */
static unpack_result unpack_lz4(tarn_str src, uint8_t *dst, size_t cap, size_t *got) {
    if (src.len > INT_MAX) {
        return UNPACK_BAD;
    }
    size_t room = cap < INT_MAX ? cap : INT_MAX;
    int n = LZ4_decompress_safe(src.data, (char *)dst, (int)src.len, (int)room);
    if (n < 0) {
        return room / 255 < src.len ? UNPACK_SMALL : UNPACK_BAD;
    }
    *got = (size_t)n;
    return UNPACK_DONE;
}

/* Hadoop: total size, then packed chunks each behind its packed size until the total is reached;
 * again and again. Both sizes are 32-bit big-endian. */
static unpack_result unpack_lz4_hadoop(tarn_str src, uint8_t *dst, size_t cap, size_t *got) {
    size_t total = 0;
    while (src.len > 0) {
        if (src.len < 8) {
            return UNPACK_BAD;
        }
        size_t left = num_load_be32(src.data);
        src = str_from(src, 4);
        if (left / 255 > src.len) {
            return UNPACK_BAD;
        }
        if (left > cap - total) {
            return UNPACK_SMALL;
        }
        while (left > 0) {
            size_t packed = src.len >= 4 ? num_load_be32(src.data) : 0;
            if (src.len < 4 || packed > src.len - 4 || packed > INT_MAX || left > INT_MAX) {
                return UNPACK_BAD;
            }
            int n = LZ4_decompress_safe(src.data + 4, (char *)dst + total, (int)packed, (int)left);
            if (n <= 0) {
                return UNPACK_BAD;
            }
            src = str_from(src, 4 + packed);
            left -= (size_t)n;
            total += (size_t)n;
        }
    }
    *got = total;
    return UNPACK_DONE;
}

static unpack_result unpack_brotli(codec_ctx *ctx, tarn_str src, uint8_t *dst, size_t cap,
                                   size_t *got) {
    BrotliDecoderState *state = BrotliDecoderCreateInstance(zstd_alloc, zstd_free, ctx->env);
    if (state == NULL) {
        return UNPACK_NOMEM;
    }
    size_t in_left = src.len;
    const uint8_t *in = (const uint8_t *)src.data;
    size_t out_left = cap;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(state, &in_left, &in, &out_left, &dst, NULL);
    unpack_result answer = UNPACK_BAD;
    if (result == BROTLI_DECODER_RESULT_SUCCESS && in_left == 0) {
        *got = cap - out_left;
        answer = UNPACK_DONE;
    } else if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
        answer = UNPACK_SMALL;
    } else if (result == BROTLI_DECODER_RESULT_ERROR) {
        BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(state);
        bool no_memory = code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                         code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
        answer = no_memory ? UNPACK_NOMEM : UNPACK_BAD;
    }
    BrotliDecoderDestroyInstance(state);
    return answer;
}

static unpack_result unpack_bzip2(tarn_str src, uint8_t *dst, size_t cap, size_t *got) {
    unsigned room = cap < UINT_MAX ? (unsigned)cap : UINT_MAX;
    if (src.len > UINT_MAX) {
        return UNPACK_BAD;
    }
    /* the interface is older than const */
    char *in = (char *)(uintptr_t)src.data;
    int result = BZ2_bzBuffToBuffDecompress((char *)dst, &room, in, (unsigned)src.len, 0, 0);
    *got = room;
    return result == BZ_OK             ? UNPACK_DONE
           : result == BZ_OUTBUFF_FULL ? UNPACK_SMALL
           : result == BZ_MEM_ERROR    ? UNPACK_NOMEM
                                       : UNPACK_BAD;
}

static unpack_result unpack(codec_ctx *ctx, codec_kind kind, tarn_str src, uint8_t *dst, size_t cap,
                            size_t *got) {
    switch (kind) {
    case CODEC_NONE:
        return unpack_none(src, dst, cap, got);
    case CODEC_DEFLATE:
    case CODEC_ZLIB:
    case CODEC_GZIP:
        return unpack_deflate(ctx, kind, src, dst, cap, got);
    case CODEC_SNAPPY:
        return unpack_snappy(src, dst, cap, got);
    case CODEC_ZSTD:
        return unpack_zstd(ctx, src, dst, cap, got);
    case CODEC_LZ4_RAW:
        return unpack_lz4(src, dst, cap, got);
    case CODEC_LZ4_HADOOP: {
        unpack_result result = unpack_lz4_hadoop(src, dst, cap, got);
        return result == UNPACK_BAD ? unpack_lz4(src, dst, cap, got) : result;
    }
    case CODEC_BROTLI:
        return unpack_brotli(ctx, src, dst, cap, got);
    case CODEC_BZIP2:
        return unpack_bzip2(src, dst, cap, got);
    }
    return UNPACK_BAD;
}

static tarn_code unpack_failed(unpack_result result, codec_kind kind, size_t len, tarn_error *err) {
    if (result == UNPACK_NOMEM) {
        return err_nomem(err);
    }
    return err_set(err, TARN_CORRUPT, "%s data of %zu bytes were damaged", codec_name(kind), len);
}

tarn_code codec_decompress(codec_ctx *ctx, codec_kind kind, tarn_str src, void *dst, size_t dst_len,
                           tarn_error *err) {
    uint8_t nothing[1];
    size_t got = 0;
    src.data = src.data != NULL ? src.data : "";
    unpack_result result = unpack(ctx, kind, src, dst != NULL ? dst : nothing, dst_len, &got);
    if (result == UNPACK_SMALL) {
        return err_set(err, TARN_CORRUPT, "%s data of %zu bytes held more than the expected %zu",
                       codec_name(kind), src.len, dst_len);
    }
    if (result != UNPACK_DONE) {
        return unpack_failed(result, kind, src.len, err);
    }
    if (got != dst_len) {
        return err_set(err, TARN_CORRUPT, "%s data of %zu bytes held %zu bytes, expected %zu",
                       codec_name(kind), src.len, got, dst_len);
    }
    return TARN_OK;
}

/* What src probably unpacks to; believed only as far as it would not cost much if it was a lie. */
static size_t guess_size(codec_kind kind, tarn_str src) {
    size_t likely = src.len > SIZE_MAX / 8 ? src.len : src.len * 4;
    size_t most = likely > SIZE_MAX / 32 ? likely : likely * 8;
    size_t claimed = 0;
    if (kind == CODEC_NONE) {
        return src.len;
    }
    if (kind == CODEC_SNAPPY) {
        return snappy_size(src, &claimed) ? claimed : 0;
    }
    if (kind == CODEC_ZSTD) {
        unsigned long long size = ZSTD_getFrameContentSize(src.data, src.len);
        claimed = size < SIZE_MAX / 4 ? (size_t)size : 0;
    } else if (kind == CODEC_GZIP && src.len >= 18) {
        claimed = num_load_u32(src.data + src.len - 4);
    }
    size_t guess = claimed > 0 && claimed <= most ? claimed : likely;
    return guess < 1024 ? 1024 : guess;
}

tarn_code codec_decompress_buf(codec_ctx *ctx, codec_kind kind, tarn_str src, tarn_buf *out,
                               tarn_error *err) {
    size_t want = guess_size(kind, src);
    size_t left = out->max - out->len;
    src.data = src.data != NULL ? src.data : "";
    for (;;) {
        want = want < left ? want : left;
        tarn_code code = buf_reserve(out, want > 0 ? want : 1, err);
        if (code != TARN_OK) {
            return code;
        }
        size_t cap = out->cap - out->len;
        size_t got = 0;
        cap = cap < left ? cap : left;
        unpack_result result = unpack(ctx, kind, src, out->data + out->len, cap, &got);
        if (result == UNPACK_DONE) {
            out->len += got;
            return TARN_OK;
        }
        if (result != UNPACK_SMALL) {
            return unpack_failed(result, kind, src.len, err);
        }
        if (cap >= left) {
            return err_set(err, TARN_LIMIT,
                           "%s data of %zu bytes held more than the allowed %zu bytes",
                           codec_name(kind), src.len, out->max);
        }
        want = cap > SIZE_MAX / 4 ? left : cap * 2;
    }
}

/* ---- packing ---- */

static tarn_code check_level(codec_kind kind, int *level, int low, int high, int normal,
                             tarn_error *err) {
    if (*level == CODEC_LEVEL_DEFAULT) {
        *level = normal;
    } else if (*level < low || *level > high) {
        return err_set(err, TARN_INVALID, "compression level %d of %s was not in %d to %d", *level,
                       codec_name(kind), low, high);
    }
    return TARN_OK;
}

static tarn_code pack_deflate(codec_ctx *ctx, codec_kind kind, int level, tarn_str src,
                              tarn_buf *out, tarn_error *err) {
    tarn_code code = check_level(kind, &level, 0, 12, 6, err);
    if (code != TARN_OK) {
        return code;
    }
    if (ctx->deflate_out == NULL || ctx->deflate_level != level) {
        if (ctx->deflate_out != NULL) {
            libdeflate_free_compressor(ctx->deflate_out);
        }
        ctx->deflate_out = libdeflate_alloc_compressor(level);
        ctx->deflate_level = level;
        if (ctx->deflate_out == NULL) {
            return err_nomem(err);
        }
    }
    struct libdeflate_compressor *c = ctx->deflate_out;
    size_t bound = kind == CODEC_GZIP   ? libdeflate_gzip_compress_bound(c, src.len)
                   : kind == CODEC_ZLIB ? libdeflate_zlib_compress_bound(c, src.len)
                                        : libdeflate_deflate_compress_bound(c, src.len);
    code = buf_reserve(out, bound, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *dst = out->data + out->len;
    size_t n = kind == CODEC_GZIP   ? libdeflate_gzip_compress(c, src.data, src.len, dst, bound)
               : kind == CODEC_ZLIB ? libdeflate_zlib_compress(c, src.data, src.len, dst, bound)
                                    : libdeflate_deflate_compress(c, src.data, src.len, dst, bound);
    if (n == 0) {
        return err_set(err, TARN_INTERNAL, "%s did not fit its own bound", codec_name(kind));
    }
    out->len += n;
    return TARN_OK;
}

static tarn_code pack_snappy(tarn_str src, tarn_buf *out, tarn_error *err) {
    if (src.len > UINT32_MAX) {
        return err_set(err, TARN_LIMIT, "snappy takes at most 4 GiB at once, got %zu bytes",
                       src.len);
    }
    size_t n = snappy_max_compressed_length(src.len);
    tarn_code code = buf_reserve(out, n, err);
    if (code != TARN_OK) {
        return code;
    }
    if (snappy_compress(src.data, src.len, (char *)out->data + out->len, &n) != SNAPPY_OK) {
        return err_set(err, TARN_INTERNAL, "snappy did not fit its own bound");
    }
    out->len += n;
    return TARN_OK;
}

static tarn_code pack_zstd(codec_ctx *ctx, int level, tarn_str src, tarn_buf *out,
                           tarn_error *err) {
    tarn_code code =
        check_level(CODEC_ZSTD, &level, ZSTD_minCLevel() < -999 ? -999 : ZSTD_minCLevel(),
                    ZSTD_maxCLevel(), 3, err);
    if (code != TARN_OK) {
        return code;
    }
    if (ctx->zstd_out == NULL) {
        ctx->zstd_out = ZSTD_createCCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, ctx->env});
        if (ctx->zstd_out == NULL) {
            return err_nomem(err);
        }
    }
    size_t bound = ZSTD_compressBound(src.len);
    code = buf_reserve(out, bound, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t n =
        ZSTD_compressCCtx(ctx->zstd_out, out->data + out->len, bound, src.data, src.len, level);
    if (ZSTD_isError(n)) {
        return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation
                   ? err_nomem(err)
                   : err_set(err, TARN_INTERNAL, "zstd failed: %s", ZSTD_getErrorName(n));
    }
    out->len += n;
    return TARN_OK;
}

static tarn_code pack_lz4(bool framed, tarn_str src, tarn_buf *out, tarn_error *err) {
    if (src.len > LZ4_MAX_INPUT_SIZE) {
        return err_set(err, TARN_LIMIT, "lz4 takes at most %d bytes at once, got %zu",
                       LZ4_MAX_INPUT_SIZE, src.len);
    }
    if (framed && src.len == 0) {
        return TARN_OK;
    }
    int bound = LZ4_compressBound((int)src.len);
    size_t head = framed ? 8 : 0;
    tarn_code code = buf_reserve(out, head + (size_t)bound, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *dst = out->data + out->len;
    int n = LZ4_compress_default(src.data, (char *)dst + head, (int)src.len, bound);
    if (n <= 0) {
        return err_set(err, TARN_INTERNAL, "lz4 did not fit its own bound");
    }
    if (framed) {
        uint32_t sizes[2] = {__builtin_bswap32((uint32_t)src.len), __builtin_bswap32((uint32_t)n)};
        memcpy(dst, sizes, sizeof sizes);
    }
    out->len += head + (size_t)n;
    return TARN_OK;
}

/* Brotli's encoder (1.0) ends the process when its allocator refuses, so it must not be the env's,
 * which may have a limit: it takes the C library's. */
static tarn_code pack_brotli(int level, tarn_str src, tarn_buf *out, tarn_error *err) {
    tarn_code code = check_level(CODEC_BROTLI, &level, 0, 11, 5, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t bound = BrotliEncoderMaxCompressedSize(src.len) + 16;
    code = buf_reserve(out, bound, err);
    if (code != TARN_OK) {
        return code;
    }
    BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    if (state == NULL) {
        return err_nomem(err);
    }
    BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, (uint32_t)level);
    uint32_t hint = src.len < (1u << 30) ? (uint32_t)src.len : (1u << 30);
    BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT, hint);
    size_t in_left = src.len;
    const uint8_t *in = (const uint8_t *)src.data;
    size_t out_left = bound;
    uint8_t *dst = out->data + out->len;
    bool done = BrotliEncoderCompressStream(state, BROTLI_OPERATION_FINISH, &in_left, &in,
                                            &out_left, &dst, NULL) &&
                BrotliEncoderIsFinished(state);
    BrotliEncoderDestroyInstance(state);
    if (!done) {
        return err_set(err, TARN_INTERNAL, "brotli did not fit its own bound");
    }
    out->len += bound - out_left;
    return TARN_OK;
}

static tarn_code pack_bzip2(int level, tarn_str src, tarn_buf *out, tarn_error *err) {
    tarn_code code = check_level(CODEC_BZIP2, &level, 1, 9, 9, err);
    if (code != TARN_OK) {
        return code;
    }
    if (src.len > UINT_MAX / 2) {
        return err_set(err, TARN_LIMIT, "bzip2 took %zu bytes at once", src.len);
    }
    size_t bound = src.len + src.len / 100 + 601; /* as its manual says */
    code = buf_reserve(out, bound, err);
    if (code != TARN_OK) {
        return code;
    }
    unsigned room = (unsigned)bound;
    int result =
        BZ2_bzBuffToBuffCompress((char *)out->data + out->len, &room, (char *)(uintptr_t)src.data,
                                 (unsigned)src.len, level, 0, 0);
    if (result != BZ_OK) {
        return result == BZ_MEM_ERROR ? err_nomem(err)
                                      : err_set(err, TARN_INTERNAL, "bzip2 failed with %d", result);
    }
    out->len += room;
    return TARN_OK;
}

tarn_code codec_compress(codec_ctx *ctx, codec_kind kind, int level, tarn_str src, tarn_buf *out,
                         tarn_error *err) {
    src.data = src.data != NULL ? src.data : "";
    switch (kind) {
    case CODEC_NONE:
        return buf_append_str(out, src, err);
    case CODEC_DEFLATE:
    case CODEC_ZLIB:
    case CODEC_GZIP:
        return pack_deflate(ctx, kind, level, src, out, err);
    case CODEC_SNAPPY:
        return pack_snappy(src, out, err);
    case CODEC_ZSTD:
        return pack_zstd(ctx, level, src, out, err);
    case CODEC_LZ4_RAW:
    case CODEC_LZ4_HADOOP:
        return pack_lz4(kind == CODEC_LZ4_HADOOP, src, out, err);
    case CODEC_BROTLI:
        return pack_brotli(level, src, out, err);
    case CODEC_BZIP2:
        return pack_bzip2(level, src, out, err);
    }
    return err_set(err, TARN_INTERNAL, "codec %d is unknown", (int)kind);
}
