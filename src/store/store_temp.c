/* store/store_temp.c - see store_temp.h. */
#include "store/store_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

struct store_temp {
    tarn_env *env;
    int fd;
    int64_t bytes;
    char folder[LIMIT_PATH_BYTES];
};

/* -1 with errno. The name is gone before anything is written. */
static int open_unnamed(const char *folder) {
    char path[LIMIT_PATH_BYTES + 32];
    (void)snprintf(path, sizeof path, "%s/tarn-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd >= 0 && (unlink(path) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)) {
        int failed = errno;
        (void)close(fd);
        errno = failed;
        return -1;
    }
    return fd;
}

static tarn_code open_somewhere(store_temp *t, tarn_error *err) {
    const char *const system[] = {"/var/tmp", "/tmp"};
    const char *given = env_temp_dir(t->env);
    const char *const *folders = given != NULL ? &given : system;
    for (size_t i = 0; t->fd < 0 && i < (given != NULL ? 1 : 2); i++) {
        (void)snprintf(t->folder, sizeof t->folder, "%s", folders[i]);
        t->fd = open_unnamed(t->folder);
    }
    return t->fd >= 0
               ? TARN_OK
               : err_os(err, errno, "no temporary file could be made in %s (TMPDIR)", t->folder);
}

tarn_code store_temp_new(tarn_env *env, store_temp **out, tarn_error *err) {
    store_temp *t = env_calloc(env, 1, sizeof *t);
    if (t == NULL) {
        return err_nomem(err);
    }
    t->env = env;
    t->fd = -1;
    tarn_code code = open_somewhere(t, err);
    if (code == TARN_OK) {
        *out = t;
    } else {
        store_temp_free(t);
    }
    return code;
}

tarn_code store_temp_append(store_temp *t, const void *data, size_t len, tarn_error *err) {
    const char *at = data;
    tarn_code code = env_check_cancel(t->env, err);
    while (code == TARN_OK && len > 0) {
        ssize_t n = pwrite(t->fd, at, len, t->bytes);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
            t->bytes += n;
        } else if (n == 0 || errno != EINTR) {
            code = err_os(err, n == 0 ? EIO : errno,
                          "could not write a temporary file in %s (TMPDIR, temp_dir)", t->folder);
        }
    }
    return code;
}

int64_t store_temp_bytes(const store_temp *t) {
    return t->bytes;
}

tarn_code store_temp_read(store_temp *t, int64_t offset, void *dst, size_t len, tarn_error *err) {
    char *at = dst;
    tarn_code code = env_check_cancel(t->env, err);
    while (code == TARN_OK && len > 0) {
        ssize_t n = pread(t->fd, at, len, offset);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
            offset += n;
        } else if (n == 0) {
            code = err_set(err, TARN_CORRUPT, "a temporary file in %s ended at byte %lld",
                           t->folder, (long long)offset);
        } else if (errno != EINTR) {
            code = err_os(err, errno, "could not read a temporary file in %s", t->folder);
        }
    }
    return code;
}

tarn_code store_temp_clear(store_temp *t, tarn_error *err) {
    while (ftruncate(t->fd, 0) != 0) {
        if (errno != EINTR) {
            return err_os(err, errno, "could not empty a temporary file in %s", t->folder);
        }
    }
    t->bytes = 0;
    return TARN_OK;
}

void store_temp_free(store_temp *t) {
    if (t == NULL) {
        return;
    }
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    env_free(t->env, t);
}
