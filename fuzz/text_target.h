/* fuzz/text_target.h - NDJSON and CSV as two targets with one body: schema given and schema
 * inferred, bad records skipped, what was read written and read again. */
#ifndef FUZZ_TEXT_TARGET_H
#define FUZZ_TEXT_TARGET_H

#include "fuzz.h"

#include "format/text/text.h"

/* Small, so that records lie across the ends of chunks. */
#define CHUNK_BYTES 128

static const char text_schema[] =
    "struct<a: int, b: long, c: string, d: double, e: float, f: boolean, g: date, h: timestamp, "
    "i: timestamptz, j: time, k: decimal(9, 2), l: uuid, m: binary, n: fixed[4], s: struct<x: int, "
    "y: string>, t: list<int>, v: variant>";

static inline tarn_code skip_record(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                                    tarn_error *err) {
    (void)ctx;
    (void)err;
    fuzz_check(line > 0 && reason.len > 0 && (raw.len == 0 || raw.data != NULL));
    return TARN_OK;
}

static inline io_stream *open_stream(tarn_env *env, tarn_str bytes) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    io_stream *stream = NULL;
    fuzz_check(io_source_memory(env, "input", bytes.data, bytes.len, &source, &err) == TARN_OK);
    fuzz_check(io_stream_source(source, &stream, &err) == TARN_OK);
    return stream;
}

/* Rows read, or -1; writes them to writer where there is one. Takes stream. */
static inline int64_t read_rows(tarn_env *env, io_stream *stream, const tarn_type *root,
                                const text_options *options, text_writer *writer) {
    tarn_error err = TARN_ERROR_INIT;
    text_reader *reader = NULL;
    tarn_code code = text_reader_open(env, stream, root, options, &reader, &err);
    fuzz_check_error(code, &err);
    if (code != TARN_OK) {
        stream->close(stream);
        return -1;
    }
    int64_t rows = 0;
    int64_t got = 1;
    while (code == TARN_OK && got > 0) {
        tarn_batch batch;
        memset(&batch, 0, sizeof batch);
        code = text_reader_next(reader, &batch, &err);
        fuzz_check_error(code, &err);
        got = code == TARN_OK ? batch_rows(&batch) : 0;
        if (got > 0) {
            fuzz_check(batch_validate(&batch, &err) == TARN_OK);
            fuzz_check(writer == NULL || text_writer_write(writer, &batch, &err) == TARN_OK);
        }
        batch_release(&batch);
        rows += got;
    }
    text_reader_close(reader);
    return code == TARN_OK ? rows : -1;
}

static inline void read_with_schema(tarn_env *env, tarn_arena *arena, tarn_str bytes,
                                    text_kind kind) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root = NULL;
    int32_t next_id = 1;
    text_options options = {
        .kind = kind, .ignore_unknown = true, .reject = skip_record, .chunk_bytes = CHUNK_BYTES};
    text_options plain = {.kind = kind, .chunk_bytes = CHUNK_BYTES};
    text_writer *writer = NULL;
    io_sink *sink = NULL;
    tarn_buf out;
    buf_init(&out, env, 0);
    tarn_str schema = str_make(text_schema, sizeof text_schema - 1);
    fuzz_check(type_from_text(arena, schema, &root, &err) == TARN_OK);
    root = type_assign_ids(arena, root, &next_id);
    fuzz_check(root != NULL);
    fuzz_check(io_sink_memory(env, &out, &sink, &err) == TARN_OK);
    fuzz_check(text_writer_new(env, root, &plain, sink, &writer, &err) == TARN_OK);
    int64_t rows = read_rows(env, open_stream(env, bytes), root, &options, writer);
    fuzz_check(text_writer_flush(writer, &err) == TARN_OK);
    text_writer_free(writer);
    fuzz_check(sink->finish(sink, &err) == TARN_OK);
    if (rows > 0) {
        fuzz_check(read_rows(env, open_stream(env, buf_str(&out)), root, &plain, NULL) == rows);
    }
    buf_release(&out);
}

static inline void read_inferred(tarn_env *env, tarn_arena *arena, tarn_str bytes, text_kind kind) {
    tarn_error err = TARN_ERROR_INIT;
    text_options options = {
        .kind = kind, .ignore_unknown = true, .reject = skip_record, .chunk_bytes = CHUNK_BYTES};
    const tarn_type *root = NULL;
    io_stream *stream = open_stream(env, bytes);
    tarn_code code = text_infer(arena, &stream, &options, 0, &root, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        (void)read_rows(env, stream, root, &options, NULL);
    } else if (stream != NULL) {
        stream->close(stream);
    }
}

static inline int run_text_target(const uint8_t *data, size_t size, text_kind kind) {
    tarn_env *env = fuzz_env();
    tarn_arena arena;
    arena_init(&arena, env);
    read_with_schema(env, &arena, str_make(data, size), kind);
    read_inferred(env, &arena, str_make(data, size), kind);
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}

#endif
