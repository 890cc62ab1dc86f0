/* store/store_stdio.c - see store_stdio.h. */
#include "store/store_stdio.h"

#include <errno.h>
#include <unistd.h>

static tarn_code read_stdin(io_stream *stream, void *dst, size_t cap, size_t *got,
                            tarn_error *err) {
    for (;;) {
        ssize_t n = read(STDIN_FILENO, dst, cap);
        if (n >= 0) {
            *got = (size_t)n;
            return TARN_OK;
        }
        if (errno != EINTR) {
            return err_os(err, errno, "could not read standard input");
        }
        tarn_code code = env_check_cancel(stream->env, err);
        if (code != TARN_OK) {
            return code;
        }
    }
}

static void close_stdin(io_stream *stream) {
    env_free(stream->env, stream);
}

tarn_code store_stdin(tarn_env *env, io_stream **out, tarn_error *err) {
    io_stream *stream = env_calloc(env, 1, sizeof *stream);
    if (stream == NULL) {
        return err_nomem(err);
    }
    stream->env = env;
    stream->name = "standard input";
    stream->read = read_stdin;
    stream->close = close_stdin;
    *out = stream;
    return TARN_OK;
}

static tarn_code write_stdout(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
            sink->written_bytes += n;
        } else if (n < 0 && errno != EINTR) {
            return err_os(err, errno, "could not write standard output");
        } else {
            tarn_code code = env_check_cancel(sink->env, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    return TARN_OK;
}

static tarn_code finish_stdout(io_sink *sink, tarn_error *err) {
    (void)err;
    env_free(sink->env, sink);
    return TARN_OK;
}

static void abort_stdout(io_sink *sink) {
    env_free(sink->env, sink);
}

tarn_code store_stdout(tarn_env *env, io_sink **out, tarn_error *err) {
    io_sink *sink = env_calloc(env, 1, sizeof *sink);
    if (sink == NULL) {
        return err_nomem(err);
    }
    sink->env = env;
    sink->name = "standard output";
    sink->write = write_stdout;
    sink->finish = finish_stdout;
    sink->abort = abort_stdout;
    *out = sink;
    return TARN_OK;
}
