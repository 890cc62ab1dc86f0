/* service/intake_decode.c - see intake_decode.h. */
#include "service/intake_decode.h"

#define CHUNK_BYTES ((size_t)2 << 20)

static tarn_code add_batch(intake_batches *b, tarn_batch *batch, tarn_error *err) {
    if ((b->n & (b->n - 1)) == 0) {
        size_t cap = b->n == 0 ? 1 : (size_t)b->n * 2;
        tarn_batch *grown = env_realloc(b->env, b->items, cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        b->items = grown;
    }
    memset(&b->items[b->n], 0, sizeof *b->items);
    b->rows += batch_rows(batch);
    batch_move(&b->items[b->n++], batch);
    return TARN_OK;
}

void intake_batches_release(intake_batches *b) {
    for (int32_t i = 0; i < b->n; i++) {
        batch_release(&b->items[i]);
    }
    if (b->items != NULL) {
        env_free(b->env, b->items);
    }
    memset(b, 0, sizeof *b);
}

tarn_code intake_decode(tarn_env *env, tarn_str body, const tarn_type *root, text_reject_fn reject,
                        void *ctx, intake_batches *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    io_stream *stream = NULL;
    text_reader *reader = NULL;
    text_options options;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    memset(&options, 0, sizeof options);
    memset(out, 0, sizeof *out);
    out->env = env;
    options.kind = TEXT_NDJSON;
    options.reject = reject;
    options.reject_ctx = ctx;
    options.chunk_bytes = body.len < CHUNK_BYTES ? body.len + 1 : CHUNK_BYTES;
    TRY(io_source_memory(env, "the body", body.data, body.len, &source, err));
    TRY(io_stream_source(source, &stream, err));
    source = NULL;
    TRY(text_reader_open(env, stream, root, &options, &reader, err));
    stream = NULL;
    for (;;) {
        TRY(text_reader_next(reader, &batch, err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(add_batch(out, &batch, err));
    }
done:
    batch_release(&batch);
    text_reader_close(reader);
    if (stream != NULL) {
        stream->close(stream);
    }
    if (source != NULL) {
        source->close(source);
    }
    if (code != TARN_OK) {
        intake_batches_release(out);
    }
    return code;
}
