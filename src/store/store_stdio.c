/* store/store_stdio.c - see store_stdio.h. */
#include "store/store_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct pipe_stream {
    io_stream base;
    int fd;
    bool owned; /* not standard input */
    size_t head_at;
    size_t head_len;
    char head[STORE_PIPE_HEAD]; /* read ahead for the caller to look at */
} pipe_stream;

static tarn_code read_fd(pipe_stream *self, void *dst, size_t cap, size_t *got, tarn_error *err) {
    for (;;) {
        ssize_t n = read(self->fd, dst, cap);
        if (n >= 0) {
            *got = (size_t)n;
            return TARN_OK;
        }
        if (errno != EINTR) {
            return err_os(err, errno, "could not read %s", self->base.name);
        }
        tarn_code code = env_check_cancel(self->base.env, err);
        if (code != TARN_OK) {
            return code;
        }
    }
}

static tarn_code pipe_read(io_stream *stream, void *dst, size_t cap, size_t *got, tarn_error *err) {
    pipe_stream *self = (pipe_stream *)stream;
    size_t left = self->head_len - self->head_at;
    if (left == 0) {
        return read_fd(self, dst, cap, got, err);
    }
    *got = left < cap ? left : cap;
    memcpy(dst, self->head + self->head_at, *got);
    self->head_at += *got;
    return TARN_OK;
}

static void pipe_close(io_stream *stream) {
    pipe_stream *self = (pipe_stream *)stream;
    if (self->owned && self->fd >= 0) {
        (void)close(self->fd);
    }
    env_free(stream->env, self);
}

static tarn_code fill_head(pipe_stream *self, tarn_error *err) {
    size_t got = 1;
    while (got > 0 && self->head_len < STORE_PIPE_HEAD) {
        tarn_code code =
            read_fd(self, self->head + self->head_len, STORE_PIPE_HEAD - self->head_len, &got, err);
        if (code != TARN_OK) {
            return code;
        }
        self->head_len += got;
    }
    return TARN_OK;
}

bool store_is_pipe(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 ||
           (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)));
}

tarn_code store_pipe_open(tarn_env *env, const char *path, tarn_str *head, io_stream **out,
                          tarn_error *err) {
    tarn_code code;
    pipe_stream *self = env_calloc(env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->owned = strcmp(path, "-") != 0;
    self->base = (io_stream){env, self->owned ? path : "standard input", pipe_read, pipe_close};
    self->fd = self->owned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (self->fd < 0) {
        code = err_os(err, errno, "%s could not be opened", path);
        goto done;
    }
    TRY(fill_head(self, err));
    *head = str_make(self->head, self->head_len);
    *out = &self->base;
    self = NULL;
done:
    if (self != NULL) {
        pipe_close(&self->base);
    }
    return code;
}

tarn_code store_pipe_wait(io_stream *pipe, int64_t timeout_ms, bool *ready, tarn_error *err) {
    const pipe_stream *self = (const pipe_stream *)pipe;
    struct pollfd look = {self->fd, POLLIN, 0};
    *ready = self->head_at < self->head_len;
    if (*ready) {
        return TARN_OK;
    }
    int n = poll(&look, 1, timeout_ms < 0 || timeout_ms > INT32_MAX ? -1 : (int)timeout_ms);
    if (n < 0 && errno != EINTR) {
        return err_os(err, errno, "could not wait for %s", pipe->name);
    }
    *ready = n > 0;
    return env_check_cancel(pipe->env, err);
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
