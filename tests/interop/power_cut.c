/* tests/interop/power_cut.c - see power_cut.h. */
#define _GNU_SOURCE
#include "power_cut.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512

enum { LOSE_ALL, KEEP_ALL, KEEP_SOME, KEEP_FIRST, POLICIES };

/* A write, or a change of length (now NULL), since the file's last sync. */
typedef struct change {
    off_t at;
    size_t n;
    unsigned char *now;
    off_t size; /* of the file before it */
    size_t n_before;
    unsigned char *before; /* what lay at `at` */
} change;

typedef struct dirty_file {
    dev_t dev;
    ino_t ino;
    int fd;
    change *changes;
    size_t n, cap;
} dirty_file;

/* A name that stood for another file, or for none (0), since its folder's last sync. */
typedef struct name_change {
    char *path;
    ino_t before, after;
    int is_folder;
    long group; /* those of one call */
} name_change;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static const char *lost;
static uint64_t chance;
static const char *by_stdio; /* a file whose writes are not seen, and how much of it was synced */
static off_t by_stdio_synced;
static dirty_file *files;
static size_t n_files, files_cap;
static name_change *names;
static size_t n_names, names_cap;
static long groups;

/* ---- small things ---- */

static void *grown(void *array, size_t n, size_t *cap, size_t size) {
    if (n < *cap) {
        return array;
    }
    *cap = *cap * 2 + 16;
    array = realloc(array, *cap * size);
    if (array == NULL) {
        abort();
    }
    return array;
}

static void *copied(const void *bytes, size_t n) {
    void *copy = malloc(n + 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, bytes, n);
    return copy;
}

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (chance += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static int coin(void) {
    return (int)(draw() & 1);
}

int power_is_on(void) {
    return root[0] != '\0';
}

void power_begin(void) {
    const char *folder = getenv("POWER_ROOT");
    const char *seed = getenv("POWER_SEED");
    struct rlimit limit;
    lost = getenv("POWER_LOST");
    if (folder == NULL || lost == NULL || realpath(folder, root) == NULL) {
        root[0] = '\0';
        return;
    }
    by_stdio = getenv("POWER_STDIO");
    chance = seed != NULL ? strtoull(seed, NULL, 10) : 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* a descriptor for each file that is not synced */
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void power_lock(void) {
    (void)pthread_mutex_lock(&lock);
}

void power_unlock(void) {
    (void)pthread_mutex_unlock(&lock);
}

static int is_below(const char *path) {
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int path_of_fd(int fd, char *out) {
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 && is_below(out);
}

/* Absolute, without doubled slashes, single dots and a slash at its end. */
static void full_path(const char *path, char *out) {
    char whole[2 * PATH_MAX];
    char folder[PATH_MAX];
    size_t n = 0;
    if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL) {
        folder[0] = '\0';
    }
    (void)snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (const char *p = whole; *p != '\0' && n + 1 < PATH_MAX; p++) {
        if (p[0] == '/' && p[1] == '.' && (p[2] == '/' || p[2] == '\0')) {
            p++;
        } else if (p[0] != '/' || (p[1] != '/' && p[1] != '\0')) {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

static void lost_path(ino_t ino, char *out) {
    (void)snprintf(out, PATH_MAX, "%s/%llu", lost, (unsigned long long)ino);
}

/* ---- bytes ---- */

static dirty_file *find_file(const struct stat *st) {
    for (size_t i = 0; i < n_files; i++) {
        if (files[i].ino == st->st_ino && files[i].dev == st->st_dev) {
            return &files[i];
        }
    }
    return NULL;
}

static void forget_changes(dirty_file *f) {
    for (size_t i = 0; i < f->n; i++) {
        free(f->changes[i].now);
        free(f->changes[i].before);
    }
    free(f->changes);
    (void)close(f->fd);
    *f = files[--n_files];
}

/* NULL: no file that is watched. */
static dirty_file *dirty_of(int fd, struct stat *st) {
    char path[PATH_MAX];
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        return NULL;
    }
    dirty_file *f = find_file(st);
    if (f != NULL || !path_of_fd(fd, path)) {
        return f;
    }
    files = grown(files, n_files, &files_cap, sizeof *files);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    dirty_file made = {st->st_dev, st->st_ino, REAL(open)(path, O_RDWR | O_CLOEXEC), NULL, 0, 0};
    if (made.fd < 0) {
        return NULL;
    }
    files[n_files] = made;
    return &files[n_files++];
}

static void note_change(dirty_file *f, const struct stat *st, off_t at, size_t n,
                        const void *bytes) {
    f->changes = grown(f->changes, f->n, &f->cap, sizeof *f->changes);
    change *c = &f->changes[f->n++];
    size_t old = st->st_size > at ? (size_t)(st->st_size - at) : 0;
    *c = (change){at, n, bytes != NULL ? copied(bytes, n) : NULL, st->st_size, 0, NULL};
    c->n_before = bytes != NULL && old > n ? n : old;
    c->before = malloc(c->n_before + 1);
    if (c->before == NULL || pread(f->fd, c->before, c->n_before, at) != (ssize_t)c->n_before) {
        abort();
    }
}

void power_write(int fd, const void *bytes, size_t n, off_t at) {
    struct stat st;
    dirty_file *f = dirty_of(fd, &st);
    if (f == NULL) {
        return;
    }
    if (at < 0) {
        at = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? st.st_size : lseek(fd, 0, SEEK_CUR);
    }
    note_change(f, &st, at, n, bytes);
}

void power_truncate(int fd, off_t size) {
    struct stat st;
    dirty_file *f = dirty_of(fd, &st);
    if (f != NULL) {
        note_change(f, &st, size, 0, NULL);
    }
}

int power_sync(int fd) {
    char path[PATH_MAX];
    struct stat st;
    if (fstat(fd, &st) != 0 || !path_of_fd(fd, path)) {
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        dirty_file *f = find_file(&st);
        if (f != NULL) {
            forget_changes(f);
        }
        if (by_stdio != NULL && strcmp(path, by_stdio) == 0) {
            by_stdio_synced = st.st_size;
        }
        return 1;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n_names; i++) {
        const char *slash = strrchr(names[i].path, '/');
        size_t len = (size_t)(slash - names[i].path);
        if (len == strlen(path) && strncmp(names[i].path, path, len) == 0) {
            free(names[i].path);
        } else {
            names[kept++] = names[i];
        }
    }
    n_names = kept;
    return 1;
}

static void put(int fd, const unsigned char *bytes, size_t n, off_t at) {
    if (REAL(pwrite)(fd, bytes, n, at) != (ssize_t)n) {
        abort();
    }
}

static void set_size(int fd, off_t size) {
    if (REAL(ftruncate)(fd, size) != 0) {
        abort();
    }
}

/* Some sectors of a write. */
static void put_some(int fd, const change *c) {
    size_t n;
    for (size_t at = 0; at < c->n; at += n) {
        n = SECTOR - (size_t)((c->at + (off_t)at) % SECTOR);
        n = n < c->n - at ? n : c->n - at;
        if (coin()) {
            put(fd, c->now + at, n, c->at + (off_t)at);
        }
    }
}

/* The length came to the disk, the bytes behind what came did not. */
static void put_tail(int fd, off_t from, off_t to) {
    unsigned char bytes[SECTOR];
    int zeros = coin();
    set_size(fd, to);
    for (off_t at = from; at < to && !zeros; at += SECTOR) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)draw();
        }
        put(fd, bytes, to - at < SECTOR ? (size_t)(to - at) : SECTOR, at);
    }
}

static void cut_file(dirty_file *f, int policy) {
    struct stat st;
    if (fstat(f->fd, &st) != 0) {
        abort();
    }
    off_t full = st.st_size;
    for (size_t i = f->n; i-- > 0;) {
        put(f->fd, f->changes[i].before, f->changes[i].n_before, f->changes[i].at);
        set_size(f->fd, f->changes[i].size);
    }
    size_t first = policy == KEEP_FIRST ? (size_t)draw() % (f->n + 1) : 0;
    for (size_t i = 0; i < f->n; i++) {
        const change *c = &f->changes[i];
        int whole = policy == KEEP_ALL || i < first || (policy == KEEP_SOME && coin());
        if (c->now == NULL && whole) {
            set_size(f->fd, c->at);
        } else if (c->now != NULL && whole) {
            put(f->fd, c->now, c->n, c->at);
        } else if (c->now != NULL && policy == KEEP_SOME && coin()) {
            put_some(f->fd, c);
        }
    }
    if (fstat(f->fd, &st) == 0 && st.st_size < full && coin()) {
        put_tail(f->fd, st.st_size, full);
    }
}

/* ---- names ---- */

static ino_t stands_for(const char *path, int *is_folder) {
    struct stat st;
    if (lstat(path, &st) != 0) {
        return 0;
    }
    *is_folder |= S_ISDIR(st.st_mode);
    return st.st_ino;
}

/* What a name stands for is kept, in case that its going is undone. */
static void keep(const char *path) {
    char kept[PATH_MAX];
    int is_folder = 0;
    ino_t ino = stands_for(path, &is_folder);
    if (ino != 0 && !is_folder) {
        lost_path(ino, kept);
        (void)REAL(link)(path, kept);
    }
}

void power_before_names(power_names *n, const char *a, const char *b) {
    memset(n, 0, sizeof *n);
    n->paths[0] = a;
    n->paths[1] = b;
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        if (n->paths[i] == NULL) {
            continue;
        }
        full_path(n->paths[i], path);
        if (is_below(path)) {
            n->before[i] = stands_for(path, &n->is_folder);
            keep(path);
        }
    }
}

void power_after_names(const power_names *n, int worked) {
    groups++;
    for (int i = 0; i < 2 && worked; i++) {
        char path[PATH_MAX];
        int is_folder = n->is_folder;
        if (n->paths[i] == NULL) {
            continue;
        }
        full_path(n->paths[i], path);
        ino_t after = is_below(path) ? stands_for(path, &is_folder) : 0;
        if (after == n->before[i]) {
            continue;
        }
        names = grown(names, n_names, &names_cap, sizeof *names);
        names[n_names++] = (name_change){strdup(path), n->before[i], after, is_folder, groups};
    }
}

static void remove_tree(const char *path) {
    DIR *folder = opendir(path);
    struct dirent *e;
    while (folder != NULL && (e = readdir(folder)) != NULL) {
        char below[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if ((size_t)snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= sizeof below) {
            abort();
        }
        if (e->d_type == DT_DIR) {
            remove_tree(below);
        } else {
            (void)REAL(unlink)(below);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)REAL(rmdir)(path);
}

/* What a name stands for after the cut: the first change of it tells what was durable. */
static ino_t wanted(size_t first, const char *survives, int *is_folder) {
    ino_t ino = names[first].before;
    *is_folder = 0;
    for (size_t i = first; i < n_names; i++) {
        if (strcmp(names[i].path, names[first].path) != 0) {
            continue;
        }
        ino = survives[names[i].group] != 0 ? names[i].after : ino;
        *is_folder |= names[i].is_folder;
    }
    return ino;
}

static int is_first(size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (strcmp(names[i].path, names[at].path) == 0) {
            return 0;
        }
    }
    return 1;
}

static void cut_name(size_t at, const char *survives) {
    char kept[PATH_MAX];
    int is_folder = 0;
    int was_folder = 0;
    ino_t want = wanted(at, survives, &is_folder);
    ino_t have = stands_for(names[at].path, &was_folder);
    if (want == have || (want != 0 && have != 0 && is_folder)) {
        return;
    }
    if (was_folder) {
        remove_tree(names[at].path);
    } else if (have != 0) {
        (void)REAL(unlink)(names[at].path);
    }
    lost_path(want, kept);
    if (want != 0 && is_folder) {
        (void)REAL(mkdir)(names[at].path, 0777);
    } else if (want != 0) { /* its folder may be gone */
        (void)REAL(link)(kept, names[at].path);
    }
}

static void cut_names(int policy) {
    char *survives = calloc((size_t)groups + 2, 1);
    long first = policy == KEEP_FIRST ? (long)(draw() % (uint64_t)(groups + 1)) : 0;
    if (survives == NULL) {
        abort();
    }
    for (long g = 0; g <= groups; g++) {
        survives[g] = policy == KEEP_ALL || g < first || (policy == KEEP_SOME && coin());
    }
    for (size_t i = 0; i < n_names; i++) {
        keep(names[i].path);
    }
    for (size_t i = 0; i < 2 * n_names; i++) { /* twice: a folder may come back behind its files */
        if (is_first(i % n_names)) {
            cut_name(i % n_names, survives);
        }
    }
    free(survives);
}

void power_cut(void) {
    int of_files = (int)(draw() % POLICIES);
    int of_names = getenv("POWER_NAMES") != NULL ? KEEP_SOME : (int)(draw() % POLICIES);
    for (size_t i = 0; i < n_files; i++) {
        cut_file(&files[i], of_files);
    }
    struct stat st;
    if (by_stdio != NULL && of_files != KEEP_ALL && stat(by_stdio, &st) == 0 &&
        st.st_size > by_stdio_synced) {
        (void)!truncate(by_stdio, by_stdio_synced);
    }
    cut_names(of_names);
}
