/* base/io.h - the seams between bytes and whoever stores them. Formats know only these; stores
 * implement them.
 *
 * source: random access to one immutable object.   stream: bytes in order, once.   sink: bytes out,
 * visible only at finish. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

typedef struct io_source io_source;
struct io_source {
    tarn_env *env;
    const char *name; /* for errors: path or "<memory>"; lives as long as the source */
    int64_t size_bytes;
    /* Fills dst with exactly len bytes from offset; a short object is CORRUPT. Thread-safe. */
    tarn_code (*read_at)(io_source *source, int64_t offset, void *dst, size_t len, tarn_error *err);
    /* Optional (NULL): a pointer to bytes that live as long as the source (memory, mapped file), or
     * NULL. */
    const uint8_t *(*peek)(io_source *source, int64_t offset, size_t len);
    void (*close)(io_source *source); /* frees it */
};

typedef struct io_stream io_stream;
struct io_stream {
    tarn_env *env;
    const char *name;
    /* Reads up to cap bytes; *got is 0 only at the end. */
    tarn_code (*read)(io_stream *stream, void *dst, size_t cap, size_t *got, tarn_error *err);
    void (*close)(io_stream *stream);
};

typedef struct io_sink io_sink;
struct io_sink {
    tarn_env *env;
    const char *name;
    int64_t written_bytes;
    tarn_code (*write)(io_sink *sink, const void *data, size_t len, tarn_error *err);
    /* Makes what was written durable and visible under its name, and frees the sink. After a failed
     * write or a failed finish nothing is visible under the name (B64). The sink is gone in every
     * case. */
    tarn_code (*finish)(io_sink *sink, tarn_error *err);
    void (*abort)(io_sink *sink); /* nothing stays; frees it */
};

/* Checked wrappers; they also look at cancellation. */
tarn_code io_read_at(io_source *source, int64_t offset, void *dst, size_t len,
                     tarn_error *err) TARN_MUST_USE;
tarn_code io_write(io_sink *sink, const void *data, size_t len, tarn_error *err) TARN_MUST_USE;
tarn_code io_read_all(io_source *source, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

/* Memory ends, for tests, fuzzing, and small documents. */
tarn_code io_source_memory(tarn_env *env, const char *name, const void *data, size_t len,
                           io_source **out, tarn_error *err) TARN_MUST_USE; /* data is borrowed */
tarn_code io_sink_memory(tarn_env *env, tarn_buf *out, io_sink **sink,
                         tarn_error *err) TARN_MUST_USE; /* appends to out at finish */
tarn_code io_stream_source(io_source *source, io_stream **out,
                           tarn_error *err) TARN_MUST_USE; /* takes source on success */

#endif
