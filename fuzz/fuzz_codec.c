/* Fuzz target: packed bytes of every codec (format/codec.h). The first byte says which, the second
 * how much room the output has. What unpacks, packs, and unpacks the same again.
 * rooms: format */
#include "fuzz.h"

#include "format/codec.h"

#define OUTPUT_MAX ((size_t)1 << 20)

static void unpack_whole(codec_ctx *ctx, codec_kind kind, tarn_str packed) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    tarn_buf repacked;
    buf_init(&out, ctx->env, OUTPUT_MAX);
    buf_init(&repacked, ctx->env, 0);
    tarn_code code = codec_decompress_buf(ctx, kind, packed, &out, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        fuzz_check(out.len <= OUTPUT_MAX);
        fuzz_check(codec_compress(ctx, kind, CODEC_LEVEL_DEFAULT, buf_str(&out), &repacked, &err) ==
                   TARN_OK);
        uint8_t *same = malloc(out.len + 1);
        fuzz_check(same != NULL);
        fuzz_check(codec_decompress(ctx, kind, buf_str(&repacked), same, out.len, &err) == TARN_OK);
        fuzz_check(out.len == 0 || memcmp(same, out.data, out.len) == 0);
        free(same);
    }
    buf_release(&out);
    buf_release(&repacked);
}

static void unpack_exactly(codec_ctx *ctx, codec_kind kind, tarn_str packed, size_t size) {
    tarn_error err = TARN_ERROR_INIT;
    uint8_t *out =
        malloc(size > 0 ? size : 1); /* of exactly the size, so that ASan sees one byte more */
    fuzz_check(out != NULL);
    fuzz_check_error(codec_decompress(ctx, kind, packed, out, size, &err), &err);
    free(out);
}

/* The same bytes as a stream, which must say the same. */
static void unpack_stream(tarn_env *env, codec_kind kind, tarn_str packed) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    io_stream *raw = NULL;
    io_stream *stream = NULL;
    fuzz_check(io_source_memory(env, "input", packed.data, packed.len, &source, &err) == TARN_OK);
    fuzz_check(io_stream_source(source, &raw, &err) == TARN_OK);
    tarn_code code = codec_stream_open(env, kind, raw, &stream, &err);
    if (code != TARN_OK) {
        raw->close(raw);
        return;
    }
    char piece[4096];
    size_t total = 0;
    size_t got = 1;
    while (code == TARN_OK && got > 0 && total < OUTPUT_MAX) {
        code = stream->read(stream, piece, sizeof piece, &got, &err);
        fuzz_check_error(code, &err);
        fuzz_check(code != TARN_OK || got <= sizeof piece);
        total += code == TARN_OK ? got : 0;
    }
    stream->close(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    codec_kind kind = (codec_kind)(data[0] % (CODEC_BZIP2 + 1));
    tarn_str packed = str_make(data + 2, size - 2);
    tarn_env *env = fuzz_env();
    codec_ctx ctx;
    codec_ctx_init(&ctx, env);
    unpack_whole(&ctx, kind, packed);
    unpack_exactly(&ctx, kind, packed, (size_t)data[1] * 4);
    if (kind == CODEC_NONE || kind == CODEC_GZIP || kind == CODEC_ZSTD) {
        unpack_stream(env, kind, packed);
    }
    codec_ctx_release(&ctx);
    fuzz_env_done(env);
    return 0;
}
