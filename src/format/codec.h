/* format/codec.h - compression for every format: whole buffers by codec_ctx, and gzip or zstd
 * wrapped around a stream or a sink.
 *
 * Compressed bytes are hostile: output never passes the size that the caller gave, and what a
 * header claims is not allocated before it was found possible. Damage is CORRUPT, more than the
 * caller's maximum LIMIT. */
#ifndef FORMAT_CODEC_H
#define FORMAT_CODEC_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"

typedef enum codec_kind {
    CODEC_NONE = 0,
    CODEC_DEFLATE,    /* raw, RFC 1951 (Avro "deflate") */
    CODEC_ZLIB,       /* RFC 1950 */
    CODEC_GZIP,       /* RFC 1952, any number of members */
    CODEC_SNAPPY,     /* raw, no framing */
    CODEC_ZSTD,       /* any number of frames */
    CODEC_LZ4_RAW,    /* one block */
    CODEC_LZ4_HADOOP, /* Hadoop's block framing; reading also takes one raw block (Parquet "LZ4") */
    CODEC_BROTLI,
    CODEC_BZIP2 /* one stream (Avro "bzip2") */
} codec_kind;

#define CODEC_LEVEL_DEFAULT (-1000) /* zstd knows negative levels, so -1 is not it */

const char *codec_name(codec_kind kind); /* "none", "gzip", ... */
/* Names of all formats, any case: none, null, uncompressed, deflate, zlib, gzip, snappy, zstd,
 * zstandard, lz4_raw, lz4 (LZ4_RAW), lz4_hadoop, brotli, bzip2. False: unknown. */
bool codec_from_name(tarn_str name, codec_kind *out);
/* By the first bytes (4 are enough): CODEC_GZIP, CODEC_ZSTD, or CODEC_NONE. */
codec_kind codec_sniff(const void *data, size_t len);

/* The state of the compressors that one thread uses again and again (made when first needed). One
 * thread at a time; any number of contexts may work at once. Lives where the caller puts it. */
typedef struct codec_ctx {
    tarn_env *env;
    void *zstd_in;     /* ZSTD_DCtx */
    void *zstd_out;    /* ZSTD_CCtx */
    void *deflate_in;  /* libdeflate_decompressor */
    void *deflate_out; /* libdeflate_compressor of deflate_level */
    int deflate_level;
} codec_ctx;

void codec_ctx_init(codec_ctx *ctx, tarn_env *env); /* allocates nothing yet */
void codec_ctx_release(codec_ctx *ctx);             /* also of a zeroed one */

/* Unpacks src into exactly dst_len bytes at dst; any other length is CORRUPT. */
tarn_code codec_decompress(codec_ctx *ctx, codec_kind kind, tarn_str src, void *dst, size_t dst_len,
                           tarn_error *err) TARN_MUST_USE;
/* Unpacks src of unknown size, appending to out; LIMIT when out->max is reached. Memory is at most
 * twice what src really holds. */
tarn_code codec_decompress_buf(codec_ctx *ctx, codec_kind kind, tarn_str src, tarn_buf *out,
                               tarn_error *err) TARN_MUST_USE;
/* Packs src, appending to out. level: CODEC_LEVEL_DEFAULT or the codec's own scale (out of range is
 * INVALID); ignored where the codec has none. */
tarn_code codec_compress(codec_ctx *ctx, codec_kind kind, int level, tarn_str src, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE;

/* A stream that unpacks what inner holds: CODEC_NONE, CODEC_GZIP (all members), CODEC_ZSTD (all
 * frames). Takes inner on success. An inner that ends inside a member or frame is CORRUPT. */
tarn_code codec_stream_open(tarn_env *env, codec_kind kind, io_stream *inner, io_stream **out,
                            tarn_error *err) TARN_MUST_USE;
/* A sink that packs what is written and passes it on; finish ends the member or frame and finishes
 * inner, abort aborts inner. Same kinds. Takes inner on success. */
tarn_code codec_sink_open(tarn_env *env, codec_kind kind, int level, io_sink *inner, io_sink **out,
                          tarn_error *err) TARN_MUST_USE;

#endif
