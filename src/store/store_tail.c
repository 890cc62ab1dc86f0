/* store/store_tail.c - see store_tail.h. The file is looked at again and again.
 *
 * Whoever wrote it may have it open for a while after it was renamed: the file is left when the one
 * that has its name now has bytes, so that nothing waits, or when that one stayed empty for long.
 */
#include "store/store_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20
#define LEAVE_MS      1000
#define LAST_BYTES    256

struct store_tail {
    tarn_env *env;
    const char *name; /* the caller's */
    int fd;
    int64_t at;
    uint64_t inode;
    int64_t replaced_ms; /* since when its name has another file; 0: it does not */
    bool cut;
    int64_t modified;
    size_t n_last; /* bytes before at, as they were read */
    char last[LAST_BYTES];
};

static int64_t ns_of(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + (int64_t)st->st_mtim.tv_nsec;
}

tarn_code store_tail_open(tarn_env *env, const char *path, const char *name, store_tail **out,
                          tarn_error *err) {
    struct stat st;
    tarn_code code = TARN_OK;
    store_tail *t = env_calloc(env, 1, sizeof *t);
    if (t == NULL) {
        return err_nomem(err);
    }
    t->env = env;
    t->name = name;
    t->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (t->fd < 0 || fstat(t->fd, &st) != 0) {
        code = err_os(err, errno, "file %s could not be opened", path);
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        code = err_set(err, TARN_INVALID, "%s is no file that could be followed", path);
        goto done;
    }
    t->inode = (uint64_t)st.st_ino;
    t->modified = ns_of(&st);
    *out = t;
    t = NULL;
done:
    store_tail_close(t);
    return code;
}

void store_tail_seek(store_tail *t, int64_t at) {
    t->at = at;
    t->n_last = 0;
}

static void keep_last(store_tail *t, const char *bytes, size_t len) {
    if (len >= LAST_BYTES) {
        memcpy(t->last, bytes + (len - LAST_BYTES), LAST_BYTES);
        t->n_last = LAST_BYTES;
        return;
    }
    size_t keep = t->n_last < LAST_BYTES - len ? t->n_last : LAST_BYTES - len;
    memmove(t->last, t->last + (t->n_last - keep), keep);
    memcpy(t->last + keep, bytes, len);
    t->n_last = keep + len;
}

/* One read gives what comes next and what is before it, so that a file that was cut and grew again
 * in between is told from one that grew. */
static tarn_code read_now(store_tail *t, void *dst, size_t cap, size_t *got, tarn_error *err) {
    char before[LAST_BYTES];
    const struct iovec parts[] = {{before, t->n_last}, {dst, cap}};
    struct stat st;
    ssize_t n;
    if (fstat(t->fd, &st) != 0) {
        return err_os(err, errno, "could not read %s", t->name);
    }
    do {
        n = preadv(t->fd, parts, 2, (off_t)(t->at - (int64_t)t->n_last));
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_os(err, errno, "could not read %s", t->name);
    }
    t->cut = (size_t)n < t->n_last || memcmp(before, t->last, t->n_last) != 0 ||
             (int64_t)st.st_size < t->at;
    *got = t->cut ? 0 : (size_t)n - t->n_last;
    if (*got > 0) {
        t->at += (int64_t)*got;
        t->modified = ns_of(&st);
        keep_last(t, dst, *got);
    }
    return TARN_OK;
}

/* Whether the file at hand was left for another one that has its name. */
static bool is_left(store_tail *t) {
    struct stat st;
    bool other = stat(t->name, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_ino != t->inode;
    if (!other) {
        t->replaced_ms = 0;
        return false;
    }
    int64_t now = env_now_ms(t->env);
    t->replaced_ms = t->replaced_ms != 0 ? t->replaced_ms : now;
    return st.st_size > 0 || now - t->replaced_ms >= LEAVE_MS || now < t->replaced_ms;
}

tarn_code store_tail_read(store_tail *t, void *dst, size_t cap, int64_t timeout_ms, size_t *got,
                          bool *ended, tarn_error *err) {
    int64_t waited = 0;
    *ended = false;
    for (;;) {
        bool left = is_left(t);
        tarn_code code = read_now(t, dst, cap, got, err);
        if (code != TARN_OK || *got > 0) {
            return code;
        }
        *ended = left || t->cut; /* what was written before it was left has been read by now */
        if (*ended || (timeout_ms >= 0 && waited >= timeout_ms)) {
            return TARN_OK;
        }
        code = env_check_cancel(t->env, err);
        if (code != TARN_OK) {
            return code;
        }
        env_sleep_ms(t->env, LOOK_AGAIN_MS);
        waited += LOOK_AGAIN_MS;
    }
}

uint64_t store_tail_inode(const store_tail *t) {
    return t->inode;
}

bool store_tail_was_cut(const store_tail *t) {
    return t->cut;
}

int64_t store_tail_modified(const store_tail *t) {
    return t->modified;
}

void store_tail_close(store_tail *t) {
    if (t == NULL) {
        return;
    }
    if (t->fd >= 0) {
        (void)close(t->fd);
    }
    env_free(t->env, t);
}

bool store_is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

uint64_t store_inode_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_ino : 0;
}
