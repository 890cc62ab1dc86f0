/* source/file_stream.c - see file_stream.h. raw (counts, seeks) -> codec -> part (head, then from
 * start on). */
#include "source/file_stream.h"

#define PASS_BYTES ((size_t)64 << 10)

/* ---- raw bytes ---- */

typedef struct raw_stream {
    io_stream base;
    io_source *source; /* or */
    io_stream *pipe;
    int64_t at;
    int64_t *counter;
} raw_stream;

static tarn_code raw_read(io_stream *stream, void *dst, size_t cap, size_t *got, tarn_error *err) {
    raw_stream *s = (raw_stream *)stream;
    tarn_code code;
    if (s->pipe != NULL) {
        code = s->pipe->read(s->pipe, dst, cap, got, err);
    } else {
        int64_t left = s->source->size_bytes - s->at;
        *got = left <= 0 ? 0 : (uint64_t)left < cap ? (size_t)left : cap;
        code = *got > 0 ? io_read_at(s->source, s->at, dst, *got, err) : TARN_OK;
    }
    if (code == TARN_OK) {
        s->at += (int64_t)*got;
        __atomic_add_fetch(s->counter, (int64_t)*got, __ATOMIC_RELAXED);
    }
    return code;
}

static void raw_close(io_stream *stream) {
    raw_stream *s = (raw_stream *)stream;
    if (s->source != NULL) {
        s->source->close(s->source);
    }
    if (s->pipe != NULL) {
        s->pipe->close(s->pipe);
    }
    env_free(stream->env, s);
}

/* ---- a part of them ---- */

typedef struct part_stream {
    io_stream base;
    io_stream *inner;
    raw_stream *raw; /* where inner is not packed and can seek; else NULL */
    int64_t at;
    int64_t head;
    int64_t start;
} part_stream;

static tarn_code pass_over(part_stream *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t *bytes = env_alloc(s->base.env, PASS_BYTES);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    while (s->at < s->start) {
        int64_t left = s->start - s->at;
        size_t got = 0;
        TRY(s->inner->read(s->inner, bytes, left < (int64_t)PASS_BYTES ? (size_t)left : PASS_BYTES,
                           &got, err));
        if (got == 0) {
            code = err_set(err, TARN_INVALID,
                           "%s ended after %lld bytes, and was read up to byte %lld before: it is "
                           "shorter now, or not the same",
                           s->base.name, (long long)s->at, (long long)s->start);
            goto done;
        }
        s->at += (int64_t)got;
    }
done:
    env_free(s->base.env, bytes);
    return code;
}

static tarn_code go_to_start(part_stream *s, tarn_error *err) {
    if (s->raw == NULL) {
        return pass_over(s, err);
    }
    if (s->raw->source->size_bytes < s->start) {
        return err_set(err, TARN_INVALID,
                       "%s has %lld bytes, and was read up to byte %lld before: it is shorter now, "
                       "or not the same",
                       s->base.name, (long long)s->raw->source->size_bytes, (long long)s->start);
    }
    __atomic_add_fetch(s->raw->counter, s->start - s->at, __ATOMIC_RELAXED);
    s->raw->at = s->start;
    s->at = s->start;
    return TARN_OK;
}

static tarn_code part_read(io_stream *stream, void *dst, size_t cap, size_t *got, tarn_error *err) {
    part_stream *s = (part_stream *)stream;
    if (s->at < s->head) {
        int64_t left = s->head - s->at;
        cap = (uint64_t)left < cap ? (size_t)left : cap;
    } else if (s->at < s->start) {
        tarn_code code = go_to_start(s, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    tarn_code code = s->inner->read(s->inner, dst, cap, got, err);
    if (code == TARN_OK) {
        s->at += (int64_t)*got;
    }
    return code;
}

static void part_close(io_stream *stream) {
    part_stream *s = (part_stream *)stream;
    s->inner->close(s->inner);
    env_free(stream->env, s);
}

/* raw is closed on failure, without what it reads from. */
static tarn_code open_part(raw_stream *raw, const file_stream_part *part, io_stream **out,
                           tarn_error *err) {
    tarn_env *env = raw->base.env;
    io_stream *inner = &raw->base;
    tarn_code code = TARN_OK;
    part_stream *s = NULL;
    if (part->codec != CODEC_NONE) {
        TRY(codec_stream_open(env, part->codec, &raw->base, &inner, err));
    }
    if (part->start == 0) {
        *out = inner;
        return TARN_OK;
    }
    s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        code = err_nomem(err);
        goto done;
    }
    s->base = (io_stream){env, raw->base.name, part_read, part_close};
    s->inner = inner;
    s->raw = part->codec == CODEC_NONE && raw->source != NULL ? raw : NULL;
    s->head = part->head;
    s->start = part->start;
    *out = &s->base;
done:
    if (code != TARN_OK) {
        raw->source = NULL;
        raw->pipe = NULL;
        inner->close(inner);
    }
    return code;
}

tarn_code file_stream_open(io_source *source, const file_stream_part *part, io_stream **out,
                           tarn_error *err) {
    raw_stream *raw = env_calloc(source->env, 1, sizeof *raw);
    if (raw == NULL) {
        return err_nomem(err);
    }
    raw->base = (io_stream){source->env, source->name, raw_read, raw_close};
    raw->source = source;
    raw->counter = part->counter;
    return open_part(raw, part, out, err);
}

tarn_code file_stream_pipe(io_stream *pipe, const file_stream_part *part, io_stream **out,
                           tarn_error *err) {
    raw_stream *raw = env_calloc(pipe->env, 1, sizeof *raw);
    if (raw == NULL) {
        return err_nomem(err);
    }
    raw->base = (io_stream){pipe->env, pipe->name, raw_read, raw_close};
    raw->pipe = pipe;
    raw->counter = part->counter;
    return open_part(raw, part, out, err);
}
