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
    bool ended;
    size_t given;     /* of first; what is behind it was only looked at */
    size_t first_len; /* what came first stays, to know the input by */
    char first[STORE_PIPE_FIRST];
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
    size_t left = self->first_len - self->given;
    if (left > 0) {
        *got = left < cap ? left : cap;
        memcpy(dst, self->first + self->given, *got);
        self->given += *got;
        return TARN_OK;
    }
    *got = 0;
    tarn_code code = self->ended ? TARN_OK : read_fd(self, dst, cap, got, err);
    size_t room = STORE_PIPE_FIRST - self->first_len;
    size_t kept = *got < room ? *got : room;
    self->ended = code == TARN_OK && *got == 0;
    memcpy(self->first + self->first_len, dst, kept);
    self->first_len += kept;
    self->given = self->first_len;
    return code;
}

static void pipe_close(io_stream *stream) {
    pipe_stream *self = (pipe_stream *)stream;
    if (self->owned && self->fd >= 0) {
        (void)close(self->fd);
    }
    env_free(stream->env, self);
}

bool store_is_pipe(const char *path) {
    struct stat st;
    return strcmp(path, "-") == 0 ||
           (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)));
}

tarn_code store_pipe_open(tarn_env *env, const char *path, io_stream **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    pipe_stream *self = env_calloc(env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->owned = strcmp(path, "-") != 0;
    self->base = (io_stream){env, self->owned ? path : "standard input", pipe_read, pipe_close};
    /* a named pipe without a writer is waited for later on, not here */
    self->fd = self->owned ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
    if (self->fd < 0 || (self->owned && fcntl(self->fd, F_SETFL, O_RDONLY) != 0)) {
        code = err_os(err, errno, "%s could not be opened", path);
        pipe_close(&self->base);
        return code;
    }
    *out = &self->base;
    return code;
}

static tarn_code wait_fd(const pipe_stream *self, int64_t timeout_ms, bool *ready,
                         tarn_error *err) {
    struct pollfd look = {self->fd, POLLIN, 0};
    int n = poll(&look, 1, timeout_ms < 0 || timeout_ms > INT32_MAX ? -1 : (int)timeout_ms);
    if (n < 0 && errno != EINTR) {
        return err_os(err, errno, "could not wait for %s", self->base.name);
    }
    *ready = n > 0;
    return env_check_cancel(self->base.env, err);
}

tarn_code store_pipe_look(io_stream *pipe, size_t want, int64_t timeout_ms, tarn_str *first,
                          bool *ended, tarn_error *err) {
    pipe_stream *self = (pipe_stream *)pipe;
    tarn_code code = TARN_OK;
    want = want < STORE_PIPE_FIRST ? want : STORE_PIPE_FIRST;
    while (self->first_len < want && !self->ended) {
        bool ready;
        size_t got = 0;
        TRY(wait_fd(self, timeout_ms, &ready, err));
        if (!ready && timeout_ms >= 0) {
            break;
        }
        if (ready) {
            TRY(read_fd(self, self->first + self->first_len, want - self->first_len, &got, err));
            self->first_len += got;
            self->ended = got == 0;
        }
        timeout_ms = timeout_ms > 0 ? 0 : timeout_ms; /* what is there already comes along */
    }
    *first = str_make(self->first, self->first_len);
    *ended = self->ended;
done:
    return code;
}

tarn_str store_pipe_first(const io_stream *pipe) {
    const pipe_stream *self = (const pipe_stream *)pipe;
    return str_make(self->first, self->first_len);
}

tarn_code store_pipe_wait(io_stream *pipe, int64_t timeout_ms, bool *ready, tarn_error *err) {
    const pipe_stream *self = (const pipe_stream *)pipe;
    *ready = self->given < self->first_len || self->ended;
    return *ready ? TARN_OK : wait_fd(self, timeout_ms, ready, err);
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
