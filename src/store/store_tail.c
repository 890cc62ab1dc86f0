/* store/store_tail.c - see store_tail.h. The file is looked at again and again. */
#define _GNU_SOURCE /* statx: when a file was made */
#include "store/store_tail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20

struct store_tail {
    tarn_env *env;
    const char *name; /* the caller's */
    int fd;
    int64_t at;
    store_tail_id who;
};

static int64_t ns_of(int64_t seconds, int64_t ns) {
    return seconds * 1000000000 + ns;
}

/* Size 0 where it is no regular file. */
static bool look_at(int fd, const char *path, store_tail_id *who, int64_t *size) {
    struct statx st;
    memset(who, 0, sizeof *who);
    *size = 0;
    if (statx(fd, path, path[0] == '\0' ? AT_EMPTY_PATH : 0, STATX_BASIC_STATS | STATX_BTIME,
              &st) != 0) {
        return false;
    }
    who->inode = st.stx_ino;
    who->written_ns = ns_of(st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec);
    if ((st.stx_mask & STATX_BTIME) != 0) {
        who->born_ns = ns_of(st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    }
    *size = S_ISREG(st.stx_mode) ? (int64_t)st.stx_size : 0;
    return S_ISREG(st.stx_mode);
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
    int64_t size;
    (void)look_at(t->fd, "", &t->who, &size);
    t->who.inode = (uint64_t)st.st_ino;
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
    return (now == 0 || now == t->who.inode) && fstat(t->fd, &st) == 0 &&
           (int64_t)st.st_size >= t->at;
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

store_tail_id store_tail_who(const store_tail *t) {
    return t->who;
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

/* The folder that path lies in, with a slash; its name in it. */
static bool split_path(const char *path, char *folder, size_t cap, const char **base) {
    const char *slash = strrchr(path, '/');
    int len = slash != NULL ? (int)(slash - path) : 1;
    *base = slash != NULL ? slash + 1 : path;
    return snprintf(folder, cap, "%.*s/", len, slash != NULL ? path : ".") < (int)cap;
}

static bool find_beside(const char *path, uint64_t inode, char *name, size_t cap) {
    char folder[PATH_MAX];
    const char *base;
    bool found = false;
    DIR *dir = split_path(path, folder, sizeof folder, &base) ? opendir(folder) : NULL;
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

bool store_find_inode(const char *path, uint64_t inode, char *name, size_t cap) {
    char real[PATH_MAX];
    return find_beside(path, inode, name, cap) ||
           (realpath(path, real) != NULL && find_beside(real, inode, name, cap));
}

static bool is_number_or_date(const char *text, size_t len) {
    bool any = false;
    for (size_t i = 0; i < len; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        any = any || digit;
        if (!digit && strchr(".-_:T", text[i]) == NULL) {
            return false;
        }
    }
    return any;
}

/* "log.1", "log-20260101" of "log"; "app.1.log", too, of "app.log". */
static bool is_rotated_name(const char *base, const char *name) {
    size_t len = strlen(name);
    size_t base_len = strlen(base);
    const char *dot = strrchr(base, '.');
    size_t stem = dot != NULL ? (size_t)(dot - base) : base_len;
    if (len > base_len && strncmp(name, base, base_len) == 0 &&
        is_number_or_date(name + base_len, len - base_len)) {
        return true;
    }
    return dot != NULL && len > base_len && strncmp(name, base, stem) == 0 &&
           strcmp(name + len - (base_len - stem), dot) == 0 &&
           is_number_or_date(name + stem, len - base_len);
}

static bool is_after(const store_tail_id *a, const store_tail_id *b) {
    return a->born_ns != b->born_ns ? a->born_ns > b->born_ns : a->written_ns > b->written_ns;
}

uint64_t store_inode_after(const char *path, const store_tail_id *read) {
    char real[PATH_MAX];
    char folder[PATH_MAX];
    char name[2 * PATH_MAX];
    const char *base;
    store_tail_id first = {0, 0, 0};
    uint64_t now = store_inode_of(path);
    bool beside = now != 0 && now != read->inode && realpath(path, real) != NULL &&
                  split_path(real, folder, sizeof folder, &base);
    DIR *dir = beside ? opendir(folder) : NULL;
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        store_tail_id who;
        int64_t size;
        if (!is_rotated_name(base, entry->d_name)) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%s%s", folder, entry->d_name);
        if (look_at(AT_FDCWD, name, &who, &size) && size > 0 && who.inode != read->inode &&
            who.inode != now && who.written_ns >= read->written_ns && is_after(&who, read) &&
            (first.inode == 0 || is_after(&first, &who))) {
            first = who;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return first.inode != 0 ? first.inode : now;
}
