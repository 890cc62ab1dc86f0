/* base/io.c - checked entry to sources and sinks, and their ends in memory.
 * Formats read and write through these wrappers, so cancellation and bounds are looked at in one
 * place. */
#include "base/io.h"

#include "base/num.h"

#define STREAM_NAME_MEMORY "<memory>"

tarn_code io_read_at(io_source *source, int64_t offset, void *dst, size_t len, tarn_error *err) {
    tarn_code code = env_check_cancel(source->env, err);
    if (code != TARN_OK) {
        return code;
    }
    if (offset < 0 || offset > source->size_bytes ||
        len > (uint64_t)(source->size_bytes - offset)) {
        return err_set(err, TARN_CORRUPT,
                       "%s: a read of %zu bytes at offset %lld passed the end at %lld",
                       source->name, len, (long long)offset, (long long)source->size_bytes);
    }
    if (len == 0) {
        return TARN_OK;
    }
    return source->read_at(source, offset, dst, len, err);
}

tarn_code io_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    tarn_code code = env_check_cancel(sink->env, err);
    if (code != TARN_OK || len == 0) {
        return code;
    }
    int64_t before = sink->written_bytes;
    code = sink->write(sink, data, len, err);
    if (code == TARN_OK) {
        sink->written_bytes = before + (int64_t)len;
    }
    return code;
}

tarn_code io_read_all(io_source *source, tarn_buf *out, tarn_error *err) {
    if (source->size_bytes < 0 || (uint64_t)source->size_bytes > SIZE_MAX / 2) {
        return err_set(err, TARN_LIMIT, "%s: %lld bytes do not fit in memory", source->name,
                       (long long)source->size_bytes);
    }
    size_t size = (size_t)source->size_bytes;
    tarn_code code = buf_reserve(out, size, err);
    if (code != TARN_OK) {
        return err_add(err, code, "file %s", source->name);
    }
    code = io_read_at(source, 0, out->data + out->len, size, err);
    if (code == TARN_OK) {
        out->len += size;
    }
    return code;
}

typedef struct memory_source {
    io_source base;
    const uint8_t *data;
    char name[];
} memory_source;

static tarn_code read_memory(io_source *source, int64_t offset, void *dst, size_t len,
                             tarn_error *err) {
    (void)err;
    memcpy(dst, ((memory_source *)source)->data + offset, len);
    return TARN_OK;
}

static const uint8_t *peek_memory(io_source *source, int64_t offset, size_t len) {
    if (offset < 0 || offset > source->size_bytes ||
        len > (uint64_t)(source->size_bytes - offset)) {
        return NULL;
    }
    return ((memory_source *)source)->data + offset;
}

static void close_memory(io_source *source) {
    env_free(source->env, source);
}

tarn_code io_source_memory(tarn_env *env, const char *name, const void *data, size_t len,
                           io_source **out, tarn_error *err) {
    static const uint8_t nothing[1] = {0};
    const char *known = name != NULL ? name : STREAM_NAME_MEMORY;
    if (len > (size_t)INT64_MAX) {
        return err_set(err, TARN_LIMIT, "%s: %zu bytes were too many", known, len);
    }
    size_t name_size = strlen(known) + 1;
    memory_source *source = env_alloc(env, sizeof *source + name_size);
    if (source == NULL) {
        return err_nomem(err);
    }
    memset(source, 0, sizeof *source);
    memcpy(source->name, known, name_size);
    source->base.env = env;
    source->base.name = source->name;
    source->base.size_bytes = (int64_t)len;
    source->base.read_at = read_memory;
    source->base.peek = peek_memory;
    source->base.close = close_memory;
    source->data = data != NULL ? data : nothing;
    *out = &source->base;
    return TARN_OK;
}

typedef struct memory_sink {
    io_sink base;
    tarn_buf pending; /* becomes visible in out at finish */
    tarn_buf *out;
    tarn_code failed; /* of an earlier write: finish must not succeed then */
} memory_sink;

static tarn_code write_memory(io_sink *base, const void *data, size_t len, tarn_error *err) {
    memory_sink *sink = (memory_sink *)base;
    tarn_code code = buf_append(&sink->pending, data, len, err);
    if (code != TARN_OK) {
        sink->failed = code;
    }
    return code;
}

static void abort_memory(io_sink *base) {
    memory_sink *sink = (memory_sink *)base;
    buf_release(&sink->pending);
    env_free(base->env, sink);
}

static tarn_code finish_memory(io_sink *base, tarn_error *err) {
    memory_sink *sink = (memory_sink *)base;
    tarn_code code = sink->failed;
    if (code != TARN_OK) {
        code = err_set(err, code, "%s: an earlier write had failed", base->name);
    } else {
        code = buf_append(sink->out, sink->pending.data, sink->pending.len, err);
    }
    abort_memory(base);
    return code;
}

tarn_code io_sink_memory(tarn_env *env, tarn_buf *out, io_sink **sink, tarn_error *err) {
    memory_sink *made = env_calloc(env, 1, sizeof *made);
    if (made == NULL) {
        return err_nomem(err);
    }
    made->base.env = env;
    made->base.name = STREAM_NAME_MEMORY;
    made->base.write = write_memory;
    made->base.finish = finish_memory;
    made->base.abort = abort_memory;
    buf_init(&made->pending, env, out->max);
    made->out = out;
    *sink = &made->base;
    return TARN_OK;
}

typedef struct source_stream {
    io_stream base;
    io_source *source;
    int64_t at;
} source_stream;

static tarn_code read_stream(io_stream *base, void *dst, size_t cap, size_t *got, tarn_error *err) {
    source_stream *stream = (source_stream *)base;
    int64_t left = stream->source->size_bytes - stream->at;
    size_t len = (uint64_t)left < cap ? (size_t)left : cap;
    tarn_code code = io_read_at(stream->source, stream->at, dst, len, err);
    if (code == TARN_OK) {
        stream->at += (int64_t)len;
        *got = len;
    }
    return code;
}

static void close_stream(io_stream *base) {
    source_stream *stream = (source_stream *)base;
    stream->source->close(stream->source);
    env_free(base->env, stream);
}

tarn_code io_stream_source(io_source *source, io_stream **out, tarn_error *err) {
    source_stream *stream = env_calloc(source->env, 1, sizeof *stream);
    if (stream == NULL) {
        return err_nomem(err);
    }
    stream->base.env = source->env;
    stream->base.name = source->name;
    stream->base.read = read_stream;
    stream->base.close = close_stream;
    stream->source = source;
    *out = &stream->base;
    return TARN_OK;
}
