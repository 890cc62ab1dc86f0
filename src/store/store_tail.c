/* store/store_tail.c - see store_tail.h. The file is looked at again and again. */
#include "store/store_tail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20

struct store_tail {
    tarn_env *env;
    const char *name; /* the caller's */
    int fd;
    int64_t at;
    uint64_t inode;
};

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
    *out = t;
    t = NULL;
done:
    store_tail_close(t);
    return code;
}

void store_tail_seek(store_tail *t, int64_t at) {
    t->at = at;
}

static tarn_code read_now(store_tail *t, void *dst, size_t cap, size_t *got, tarn_error *err) {
    ssize_t n;
    do {
        n = pread(t->fd, dst, cap, (off_t)t->at);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return err_os(err, errno, "could not read %s", t->name);
    }
    *got = (size_t)n;
    t->at += n;
    return TARN_OK;
}

/* Whether the file at hand is what the name means, and as long as what was read of it. */
static bool is_still_it(const store_tail *t) {
    struct stat st;
    uint64_t now = store_inode_of(t->name);
    return (now == 0 || now == t->inode) && fstat(t->fd, &st) == 0 && (int64_t)st.st_size >= t->at;
}

tarn_code store_tail_read(store_tail *t, void *dst, size_t cap, int64_t timeout_ms, size_t *got,
                          bool *ended, tarn_error *err) {
    int64_t waited = 0;
    *ended = false;
    for (;;) {
        bool was_it = is_still_it(t);
        tarn_code code = read_now(t, dst, cap, got, err);
        if (code != TARN_OK || *got > 0) {
            return code;
        }
        *ended = !was_it; /* what was written before it was renamed has been read by now */
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

bool store_find_inode(const char *path, uint64_t inode, char *name, size_t cap) {
    const char *slash = strrchr(path, '/');
    int len = slash != NULL ? (int)(slash - path) : 1;
    char folder[4096];
    bool found = false;
    if (snprintf(folder, sizeof folder, "%.*s/", len, slash != NULL ? path : ".") >=
        (int)sizeof folder) {
        return false;
    }
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        int n = snprintf(name, cap, "%s%s", folder, entry->d_name);
        found = n > 0 && (size_t)n < cap && store_inode_of(name) == inode;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}
