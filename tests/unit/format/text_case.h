/* text_case.h - what the tests of format/text share: text in, text out, and the bad records as
 * lines "number: reason". */
#ifndef TEXT_CASE_H
#define TEXT_CASE_H

#include "test.h"

#include "format/text/text.h"

typedef struct text_case {
    tarn_env *env;
    tarn_arena arena;
    tarn_buf out;     /* what was written */
    tarn_buf rejects; /* what was not */
    int64_t rows;
    int64_t batches;
    tarn_error err;
} text_case;

static inline void text_case_init(text_case *t, tarn_env *env) {
    tarn_error clean = TARN_ERROR_INIT;
    memset(t, 0, sizeof *t);
    t->env = env;
    t->err = clean;
    arena_init(&t->arena, env);
    buf_init(&t->out, env, 0);
    buf_init(&t->rejects, env, 0);
}

static inline void text_case_done(text_case *t) {
    arena_release(&t->arena);
    buf_release(&t->out);
    buf_release(&t->rejects);
}

static inline tarn_code text_case_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                                         tarn_error *err) {
    text_case *t = ctx;
    (void)raw;
    return buf_printf(&t->rejects, err, "%lld: %.*s\n", (long long)line, STR_ARG(reason));
}

static inline tarn_code text_case_stream(text_case *t, tarn_str text, io_stream **out) {
    io_source *source = NULL;
    tarn_code code = io_source_memory(t->env, "input", text.data, text.len, &source, &t->err);
    if (code == TARN_OK) {
        code = io_stream_source(source, out, &t->err);
        if (code != TARN_OK) {
            source->close(source);
        }
    }
    return code;
}

/* Reads all of stream (taken) as root and writes it as out_kind to t->out. */
static inline tarn_code text_case_copy(text_case *t, io_stream *stream, const tarn_type *root,
                                       const text_options *in, const text_options *out) {
    tarn_code code = TARN_OK;
    text_reader *reader = NULL;
    text_writer *writer = NULL;
    io_sink *sink = NULL;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    TRY(text_reader_open(t->env, stream, root, in, &reader, &t->err));
    stream = NULL;
    TRY(io_sink_memory(t->env, &t->out, &sink, &t->err));
    TRY(text_writer_new(t->env, root, out, sink, &writer, &t->err));
    for (;;) {
        TRY(text_reader_next(reader, &batch, &t->err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(batch_validate(&batch, &t->err));
        TRY(text_writer_write(writer, &batch, &t->err));
        t->rows += batch_rows(&batch);
        t->batches++;
        batch_release(&batch);
    }
    TRY(text_writer_flush(writer, &t->err));
    io_sink *last = sink;
    sink = NULL;
    code = last->finish(last, &t->err);
done:
    batch_release(&batch);
    if (stream != NULL) {
        stream->close(stream);
    }
    if (sink != NULL) {
        sink->abort(sink);
    }
    text_reader_close(reader);
    text_writer_free(writer);
    return code;
}

/* text as schema (struct<...>) to NDJSON in t->out. */
static inline tarn_code text_case_read(text_case *t, const char *schema, tarn_str text,
                                       const text_options *in) {
    static const text_options ndjson = {.kind = TEXT_NDJSON};
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    tarn_code code = type_from_text(&t->arena, str_of(schema), &root, &t->err);
    if (code == TARN_OK) {
        code = text_case_stream(t, text, &stream);
    }
    return code == TARN_OK ? text_case_copy(t, stream, root, in, &ndjson) : code;
}

static inline void text_case_same(const tarn_buf *got, const char *want) {
    if (!str_is(buf_str(got), want)) {
        fail_msg("got:\n%.*s\nwanted:\n%s\n", (int)got->len,
                 got->data != NULL ? (const char *)got->data : "", want);
    }
}

/* Reads text with bad records set aside, and compares rows and bad records. */
static inline void text_case_check(const char *schema, const char *text, text_options in,
                                   const char *rows, const char *rejects) {
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    in.reject = text_case_reject;
    in.reject_ctx = &t;
    tarn_code code = text_case_read(&t, schema, str_of(text), &in);
    if (code != TARN_OK) {
        fail_msg("%s: %s (%s)", tarn_code_name(code), t.err.message, t.err.detail);
    }
    text_case_same(&t.out, rows);
    text_case_same(&t.rejects, rejects);
    text_case_done(&t);
    test_env_done(env);
}

#endif
