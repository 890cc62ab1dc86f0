/* source/feed.c - see feed.h. */
#include "source/feed.h"

#include "base/num.h"

#define STEP ((size_t)256 << 10)

typedef struct stream_feed {
    byte_feed base;
    io_stream *stream;
} stream_feed;

static tarn_code more_stream(byte_feed *feed, tarn_buf *into, size_t want, int64_t timeout_ms,
                             bool *ended, tarn_error *err) {
    stream_feed *f = (stream_feed *)feed;
    tarn_code code = TARN_OK;
    (void)timeout_ms;
    for (size_t left = want; left > 0 && !*ended;) {
        size_t step = left < STEP ? left : STEP;
        size_t got = 0;
        TRY(env_check_cancel(feed->env, err));
        TRY(buf_reserve(into, step, err));
        TRY(f->stream->read(f->stream, into->data + into->len, step, &got, err));
        into->len += got;
        left -= got;
        *ended = got == 0;
    }
done:
    return code;
}

static void close_stream(byte_feed *feed) {
    stream_feed *f = (stream_feed *)feed;
    f->stream->close(f->stream);
    env_free(feed->env, f);
}

tarn_code feed_stream(io_stream *stream, byte_feed **out, tarn_error *err) {
    stream_feed *f = env_calloc(stream->env, 1, sizeof *f);
    if (f == NULL) {
        return err_nomem(err);
    }
    f->base = (byte_feed){stream->env, stream->name, more_stream, close_stream};
    f->stream = stream;
    *out = &f->base;
    return TARN_OK;
}

/* What a pipe has now: it fails where that is nothing, and is dry. */
typedef struct gate_stream {
    io_stream base;
    io_stream *pipe;
    bool dry;
} gate_stream;

static tarn_code read_gate(io_stream *stream, void *dst, size_t cap, size_t *got, tarn_error *err) {
    gate_stream *g = (gate_stream *)stream;
    bool ready;
    tarn_code code = store_pipe_wait(g->pipe, 0, &ready, err);
    if (code != TARN_OK) {
        return code;
    }
    g->dry = !ready;
    return ready ? g->pipe->read(g->pipe, dst, cap, got, err)
                 : err_set(err, TARN_IO, "%s has nothing yet", g->base.name);
}

static void close_gate(io_stream *stream) {
    (void)stream; /* its owner's, as the pipe */
}

typedef struct pipe_feed {
    byte_feed base;
    gate_stream gate;
    io_stream *text;   /* the gate, or what unpacks it */
    int64_t head_left; /* bytes to give first */
    int64_t pass;      /* then bytes that were read before */
    int64_t sum;       /* of both; -1: not known */
    int64_t got_bytes; /* of text by now, with this checksum */
    uint32_t got_sum;
} pipe_feed;

static tarn_code read_pipe(pipe_feed *f, tarn_buf *into, size_t want, bool *ended,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t got = 0;
    int64_t known = f->head_left > 0 ? f->head_left : f->pass; /* and no more at once */
    want = known > 0 && (uint64_t)known < want ? (size_t)known : want;
    TRY(buf_reserve(into, want, err));
    TRY(f->text->read(f->text, into->data + into->len, want, &got, err));
    f->got_sum = num_crc32(f->got_sum, into->data + into->len, got);
    f->got_bytes += (int64_t)got;
    *ended = got == 0;
    if (*ended && f->pass > 0) {
        return err_set(err, TARN_INVALID,
                       "%s ended %lld bytes before what was read of it before: it is not the same; "
                       "another input is read with another state folder (--state)",
                       f->base.name, (long long)f->pass);
    }
    if (f->head_left > 0) {
        f->head_left -= (int64_t)got;
        into->len += got;
        return TARN_OK;
    }
    size_t passed = (uint64_t)f->pass < got ? (size_t)f->pass : got;
    f->pass -= (int64_t)passed;
    if (passed > 0 && f->pass == 0 && f->sum >= 0 && (int64_t)f->got_sum != f->sum) {
        return err_set(err, TARN_INVALID,
                       "%s begins as the one that was read before, but its first %lld bytes are "
                       "not the same: it is another input, and is read with another state folder "
                       "(--state)",
                       f->base.name, (long long)f->got_bytes);
    }
    memmove(into->data + into->len, into->data + into->len + passed, got - passed);
    into->len += got - passed;
done:
    return code;
}

static tarn_code more_pipe(byte_feed *feed, tarn_buf *into, size_t want, int64_t timeout_ms,
                           bool *ended, tarn_error *err) {
    pipe_feed *f = (pipe_feed *)feed;
    tarn_code code = TARN_OK;
    size_t stop = into->len + want;
    bool ready = true;
    while (into->len < stop && !*ended && ready) {
        size_t left = stop - into->len;
        f->gate.dry = false;
        code = read_pipe(f, into, left < STEP ? left : STEP, ended, err);
        if (f->gate.dry) {
            err_reset(err);
            TRY(store_pipe_wait(f->gate.pipe, timeout_ms, &ready, err));
            continue;
        }
        TRY(code);
        timeout_ms = f->pass > 0 ? timeout_ms : 0;
    }
done:
    return code;
}

static void close_pipe(byte_feed *feed) {
    pipe_feed *f = (pipe_feed *)feed;
    if (f->text != NULL) {
        f->text->close(f->text);
    }
    f->gate.pipe->close(f->gate.pipe);
    env_free(feed->env, f);
}

tarn_code feed_pipe(io_stream *pipe, const feed_part *part, byte_feed **out, tarn_error *err) {
    pipe_feed *f = env_calloc(pipe->env, 1, sizeof *f);
    if (f == NULL) {
        return err_nomem(err);
    }
    f->base = (byte_feed){pipe->env, pipe->name, more_pipe, close_pipe};
    f->gate.base = (io_stream){pipe->env, pipe->name, read_gate, close_gate};
    f->gate.pipe = pipe;
    tarn_code code = codec_stream_open(pipe->env, part->codec, &f->gate.base, &f->text, err);
    if (code != TARN_OK) {
        env_free(pipe->env, f);
        return code;
    }
    f->head_left = part->start > 0 ? part->head : 0;
    f->pass = part->start - f->head_left;
    f->sum = part->sum;
    *out = &f->base;
    return TARN_OK;
}

uint32_t feed_pipe_sum(const byte_feed *feed, int64_t *bytes) {
    const pipe_feed *f = (const pipe_feed *)feed;
    *bytes = f->got_bytes;
    return f->got_sum;
}

typedef struct tail_feed {
    byte_feed base;
    store_tail *tail;
    int64_t head_left;
    int64_t start;
} tail_feed;

static tarn_code more_tail(byte_feed *feed, tarn_buf *into, size_t want, int64_t timeout_ms,
                           bool *ended, tarn_error *err) {
    tail_feed *f = (tail_feed *)feed;
    tarn_code code = TARN_OK;
    size_t got = 1;
    size_t stop = into->len + want;
    while (into->len < stop && got > 0 && !*ended) {
        size_t step = stop - into->len < STEP ? stop - into->len : STEP;
        step = f->head_left > 0 && (uint64_t)f->head_left < step ? (size_t)f->head_left : step;
        TRY(buf_reserve(into, step, err));
        TRY(store_tail_read(f->tail, into->data + into->len, step, timeout_ms, &got, ended, err));
        into->len += got;
        timeout_ms = 0;
        if (f->head_left > 0) {
            f->head_left -= (int64_t)got;
            if (f->head_left == 0) {
                store_tail_seek(f->tail, f->start);
            }
        }
    }
done:
    return code;
}

static void close_tail(byte_feed *feed) {
    tail_feed *f = (tail_feed *)feed;
    store_tail_close(f->tail);
    env_free(feed->env, f);
}

tarn_code feed_tail(tarn_env *env, const char *name, store_tail *tail, int64_t head, int64_t start,
                    byte_feed **out, tarn_error *err) {
    tail_feed *f = env_calloc(env, 1, sizeof *f);
    if (f == NULL) {
        return err_nomem(err);
    }
    f->base = (byte_feed){env, name, more_tail, close_tail};
    f->tail = tail;
    f->head_left = start > 0 ? head : 0;
    f->start = start;
    if (f->head_left == 0) {
        store_tail_seek(tail, start);
    }
    *out = &f->base;
    return TARN_OK;
}
