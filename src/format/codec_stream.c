/* format/codec_stream.c - gzip and zstd as layers over a stream or a sink.
 *
 * Reading: input is drawn in pieces of STEP_BYTES; members or frames follow each other until the
 * inner stream ends, which it may do only between them. Where inner fails since it has nothing yet
 * it may be read on from later: what came before was given. Writing: one member or frame, ended at
 * finish. A sink that failed once stays failed, so that finish can never publish half a file. */
#include "format/codec.h"

#define ZLIB_CONST
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_customMem: memory that the env counts */
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define STEP_BYTES ((size_t)64 << 10)

static void *zlib_alloc(void *opaque, unsigned items, unsigned size) {
    return env_calloc(opaque, items, size);
}

static void zlib_free(void *opaque, void *ptr) {
    env_free(opaque, ptr);
}

static void *zstd_alloc(void *opaque, size_t size) {
    return env_alloc(opaque, size);
}

static void zstd_free(void *opaque, void *ptr) {
    env_free(opaque, ptr);
}

/* ---- reading ---- */

typedef struct packed_stream {
    io_stream base;
    io_stream *inner;
    codec_kind kind;
    bool inside;   /* a member or frame was begun and has not ended */
    bool ended;    /* inner gave its last byte */
    bool any;      /* a member has ended: zeros that follow are padding */
    bool full;     /* the last step filled what it was given: more may come without input */
    uint8_t *data; /* STEP_BYTES of inner, of which [at, len) is not used yet */
    size_t at;
    size_t len;
    int64_t in_bytes; /* of inner up to data[len] */
    z_stream zlib;
    ZSTD_DCtx *zstd;
} packed_stream;

static tarn_code stream_damaged(packed_stream *s, const char *what, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "%s data of %s were damaged near byte %lld: %s",
                   codec_name(s->kind), s->base.name,
                   (long long)(s->in_bytes - (int64_t)(s->len - s->at)), what);
}

/* One call of zlib; adds what came out to *got. */
static tarn_code step_gzip(packed_stream *s, uint8_t *dst, size_t cap, size_t *got,
                           tarn_error *err) {
    if (!s->inside && s->any) {
        while (s->at < s->len && s->data[s->at] == 0) {
            s->at++;
        }
        if (s->at == s->len) {
            return TARN_OK;
        }
        inflateReset(&s->zlib);
    }
    s->inside = true;
    s->zlib.next_in = s->data + s->at;
    s->zlib.avail_in = (uInt)(s->len - s->at);
    s->zlib.next_out = dst;
    s->zlib.avail_out = (uInt)cap;
    int result = inflate(&s->zlib, Z_NO_FLUSH);
    s->at = s->len - s->zlib.avail_in;
    *got += cap - s->zlib.avail_out;
    if (result == Z_STREAM_END) {
        s->inside = false;
        s->any = true;
    } else if (result == Z_MEM_ERROR) {
        return err_nomem(err);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return stream_damaged(s, s->zlib.msg != NULL ? s->zlib.msg : "bad data", err);
    }
    return TARN_OK;
}

static tarn_code step_zstd(packed_stream *s, uint8_t *dst, size_t cap, size_t *got,
                           tarn_error *err) {
    ZSTD_inBuffer in = {s->data, s->len, s->at};
    ZSTD_outBuffer out = {dst, cap, 0};
    size_t result = ZSTD_decompressStream(s->zstd, &out, &in);
    s->at = in.pos;
    *got += out.pos;
    if (ZSTD_isError(result)) {
        return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation
                   ? err_nomem(err)
                   : stream_damaged(s, ZSTD_getErrorName(result), err);
    }
    s->inside = result != 0;
    return TARN_OK;
}

static tarn_code read_packed(io_stream *base, void *dst, size_t cap, size_t *got, tarn_error *err) {
    packed_stream *s = (packed_stream *)base;
    size_t n = 0;
    cap = cap < (1u << 30) ? cap : (1u << 30);
    while (n == 0 && cap > 0) {
        bool drain = s->full;
        s->full = false;
        if (s->at == s->len && !s->ended && !drain) {
            size_t more = 0;
            tarn_code code = s->inner->read(s->inner, s->data, STEP_BYTES, &more, err);
            if (code != TARN_OK) {
                return code;
            }
            s->at = 0;
            s->len = more;
            s->in_bytes += (int64_t)more;
            s->ended = more == 0;
        }
        size_t at = s->at;
        if (s->at < s->len || s->inside) {
            tarn_code code = s->kind == CODEC_GZIP ? step_gzip(s, dst, cap, &n, err)
                                                   : step_zstd(s, dst, cap, &n, err);
            if (code != TARN_OK) {
                return code;
            }
        }
        if (n == 0 && s->ended && s->at == at) {
            if (s->inside) {
                return stream_damaged(s, "it ended early", err);
            }
            break;
        }
    }
    s->full = n == cap;
    *got = n;
    return TARN_OK;
}

static void free_packed_stream(packed_stream *s) {
    if (s->kind == CODEC_GZIP) {
        inflateEnd(&s->zlib);
    }
    ZSTD_freeDCtx(s->zstd);
    env_free(s->base.env, s->data);
    env_free(s->base.env, s);
}

static void close_packed(io_stream *base) {
    packed_stream *s = (packed_stream *)base;
    s->inner->close(s->inner);
    free_packed_stream(s);
}

static tarn_code check_kind(codec_kind kind, const char *name, tarn_error *err) {
    if (kind != CODEC_NONE && kind != CODEC_GZIP && kind != CODEC_ZSTD) {
        return err_set(err, TARN_UNSUPPORTED, "%s can not be compressed as a whole with %s", name,
                       codec_name(kind));
    }
    return TARN_OK;
}

tarn_code codec_stream_open(tarn_env *env, codec_kind kind, io_stream *inner, io_stream **out,
                            tarn_error *err) {
    packed_stream *s = NULL;
    tarn_code code = check_kind(kind, inner->name, err);
    if (code != TARN_OK) {
        return code;
    }
    if (kind == CODEC_NONE) {
        *out = inner;
        return TARN_OK;
    }
    s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->base = (io_stream){env, inner->name, read_packed, close_packed};
    s->inner = inner;
    s->data = env_alloc(env, STEP_BYTES);
    bool ready = s->data != NULL;
    if (ready && kind == CODEC_GZIP) {
        s->zlib.zalloc = zlib_alloc;
        s->zlib.zfree = zlib_free;
        s->zlib.opaque = env;
        ready = inflateInit2(&s->zlib, 15 + 16) == Z_OK;
    } else if (ready) {
        s->zstd = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, env});
        ready = s->zstd != NULL;
    }
    if (!ready) {
        free_packed_stream(s); /* kind is still NONE: zlib's state was not made */
        return err_nomem(err);
    }
    s->kind = kind;
    *out = &s->base;
    return TARN_OK;
}

/* ---- writing ---- */

typedef struct packed_sink {
    io_sink base;
    io_sink *inner;
    codec_kind kind;
    tarn_code failed; /* the first failure */
    uint8_t *data;    /* STEP_BYTES of packed output */
    z_stream zlib;
    ZSTD_CCtx *zstd;
} packed_sink;

static tarn_code pack_gzip(packed_sink *s, tarn_str src, bool end, tarn_error *err) {
    s->zlib.next_in = (const Bytef *)src.data;
    s->zlib.avail_in = (uInt)src.len;
    int result;
    do {
        s->zlib.next_out = s->data;
        s->zlib.avail_out = (uInt)STEP_BYTES;
        result = deflate(&s->zlib, end ? Z_FINISH : Z_NO_FLUSH);
        if (result == Z_STREAM_ERROR) {
            return err_set(err, TARN_INTERNAL, "gzip of %s failed", s->base.name);
        }
        size_t n = STEP_BYTES - s->zlib.avail_out;
        tarn_code code = n > 0 ? io_write(s->inner, s->data, n, err) : TARN_OK;
        if (code != TARN_OK) {
            return code;
        }
    } while (s->zlib.avail_in > 0 || (end && result != Z_STREAM_END));
    return TARN_OK;
}

static tarn_code pack_zstd_part(packed_sink *s, tarn_str src, bool end, tarn_error *err) {
    ZSTD_inBuffer in = {src.data, src.len, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {s->data, STEP_BYTES, 0};
        left = ZSTD_compressStream2(s->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation
                       ? err_nomem(err)
                       : err_set(err, TARN_INTERNAL, "zstd of %s failed: %s", s->base.name,
                                 ZSTD_getErrorName(left));
        }
        tarn_code code = out.pos > 0 ? io_write(s->inner, s->data, out.pos, err) : TARN_OK;
        if (code != TARN_OK) {
            return code;
        }
    } while (in.pos < in.size || (end && left != 0));
    return TARN_OK;
}

static tarn_code pack_part(packed_sink *s, tarn_str src, bool end, tarn_error *err) {
    return s->kind == CODEC_GZIP ? pack_gzip(s, src, end, err) : pack_zstd_part(s, src, end, err);
}

static tarn_code write_packed(io_sink *base, const void *data, size_t len, tarn_error *err) {
    packed_sink *s = (packed_sink *)base;
    const char *p = data;
    while (len > 0 && s->failed == TARN_OK) {
        size_t n = len < (1u << 30) ? len : (1u << 30);
        s->failed = pack_part(s, str_make(p, n), false, err);
        p += n;
        len -= n;
    }
    return s->failed;
}

static void free_packed_sink(packed_sink *s) {
    if (s->kind == CODEC_GZIP) {
        deflateEnd(&s->zlib);
    }
    ZSTD_freeCCtx(s->zstd);
    env_free(s->base.env, s->data);
    env_free(s->base.env, s);
}

static tarn_code finish_packed(io_sink *base, tarn_error *err) {
    packed_sink *s = (packed_sink *)base;
    tarn_code code = s->failed;
    if (code != TARN_OK) {
        err_set(err, code, "%s was not finished, a write had failed", base->name);
    } else {
        code = pack_part(s, STR(""), true, err);
    }
    if (code == TARN_OK) {
        code = s->inner->finish(s->inner, err);
    } else {
        s->inner->abort(s->inner);
    }
    free_packed_sink(s);
    return code;
}

static void abort_packed(io_sink *base) {
    packed_sink *s = (packed_sink *)base;
    s->inner->abort(s->inner);
    free_packed_sink(s);
}

static tarn_code start_gzip(packed_sink *s, int level, tarn_error *err) {
    if (level == CODEC_LEVEL_DEFAULT) {
        level = 6;
    }
    if (level < 0 || level > 9) {
        return err_set(err, TARN_INVALID, "compression level %d of gzip was not in 0 to 9", level);
    }
    s->zlib.zalloc = zlib_alloc;
    s->zlib.zfree = zlib_free;
    s->zlib.opaque = s->base.env;
    if (deflateInit2(&s->zlib, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return err_nomem(err);
    }
    return TARN_OK;
}

static tarn_code start_zstd(packed_sink *s, int level, tarn_error *err) {
    s->zstd = ZSTD_createCCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, s->base.env});
    if (s->zstd == NULL) {
        return err_nomem(err);
    }
    if (level == CODEC_LEVEL_DEFAULT) {
        level = 3;
    }
    if (level > ZSTD_maxCLevel() || level < -999) {
        return err_set(err, TARN_INVALID, "compression level %d of zstd was above %d or below -999",
                       level, ZSTD_maxCLevel());
    }
    ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1); /* as gzip has one */
    return TARN_OK;
}

tarn_code codec_sink_open(tarn_env *env, codec_kind kind, int level, io_sink *inner, io_sink **out,
                          tarn_error *err) {
    packed_sink *s = NULL;
    tarn_code code = check_kind(kind, inner->name, err);
    if (code != TARN_OK) {
        return code;
    }
    if (kind == CODEC_NONE) {
        *out = inner;
        return TARN_OK;
    }
    s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->base.env = env;
    s->base.name = inner->name;
    s->base.write = write_packed;
    s->base.finish = finish_packed;
    s->base.abort = abort_packed;
    s->inner = inner;
    s->data = env_alloc(env, STEP_BYTES);
    code = s->data == NULL      ? err_nomem(err)
           : kind == CODEC_GZIP ? start_gzip(s, level, err)
                                : start_zstd(s, level, err);
    if (code != TARN_OK) {
        free_packed_sink(s); /* kind is still NONE: zlib's state was not made */
        return code;
    }
    s->kind = kind;
    *out = &s->base;
    return TARN_OK;
}
