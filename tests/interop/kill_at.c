/* tests/interop/kill_at.c - preloaded into the command: ends the process with SIGKILL right before
 * its k-th call that changes files, or in the middle of it. Everything counts: data files,
 * manifests, the state folder, SQLite's and RocksDB's own files. Environment: KILL_AT (k; unset:
 * never), KILL_TORN (a write is done by half first), KILL_COUNT (file that gets the number of calls
 * at exit). With POWER_ROOT the process does not only end, the power is cut (power_cut.h): then
 * what was not durable may be lost; POWER_AT_EXIT: that is done as the process ends by itself.
 * SYNC_MS: every sync takes so long, as on a slow disk.
 * KILL_NAMED: only calls that make or remove a name with this word in it are counted.
 * STOP_AT: "unlink v1." stops the process (SIGSTOP) before its first unlink, rename, link, mkdir or
 * rmdir, as it says, of a path with the word in it.
 * FAULT_FILE: while this file is there, it says which calls fail: "write 28 rows-" is every write
 * to a file in whose path the word is, with that errno; or "sync 5 rows-".
 * Changes through stdio are the C library's own, and are not seen. */
#define _GNU_SOURCE
#include "power_cut.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;
static long kill_at = -1;
static int torn;
static const char *fault_file;
static const char *named;
static struct timespec sync_time;
static char stop_call[16];
static char stop_word[256];
static atomic_flag stopped = ATOMIC_FLAG_INIT;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("KILL_AT");
    kill_at = at != NULL ? atol(at) : -1;
    torn = getenv("KILL_TORN") != NULL;
    fault_file = getenv("FAULT_FILE");
    named = getenv("KILL_NAMED");
    const char *ms = getenv("SYNC_MS");
    sync_time.tv_nsec = ms != NULL ? atol(ms) * 1000000 : 0;
    const char *stop_at = getenv("STOP_AT");
    if (stop_at != NULL && sscanf(stop_at, "%15s %255s", stop_call, stop_word) != 2) {
        abort();
    }
    power_begin();
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("KILL_COUNT");
    FILE *out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fprintf(out, "%ld\n", atomic_load(&calls));
        fclose(out);
    }
    if (power_is_on() && getenv("POWER_AT_EXIT") != NULL) {
        power_lock();
        power_cut();
        power_unlock();
    }
}

static void die(void) {
    if (power_is_on()) {
        power_cut();
    }
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

/* Begins a change, of the name (NULL: of bytes); true: it is the fatal one, and is to be torn. */
static int strike(int can_tear, const char *name) {
    if (power_is_on()) {
        power_lock();
    }
    if (named != NULL && (name == NULL || strstr(name, named) == NULL)) {
        return 0;
    }
    if (atomic_fetch_add(&calls, 1) + 1 != kill_at) {
        return 0;
    }
    if (!can_tear || !torn || power_is_on()) {
        die();
    }
    return 1;
}

static void ended(void) {
    if (power_is_on()) {
        power_unlock();
    }
}

/* Whether such a call fails now; errno says how. */
static int fails(const char *call, int fd) {
    char link[64];
    char path[4096];
    char what[16];
    char word[256];
    int error = 0;
    FILE *in = fault_file != NULL ? fopen(fault_file, "re") : NULL;
    if (in == NULL) {
        return 0;
    }
    int n = fscanf(in, "%15s %d %255s", what, &error, word);
    fclose(in);
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = n == 3 && strcmp(what, call) == 0 ? readlink(link, path, sizeof path - 1) : -1;
    path[len > 0 ? len : 0] = '\0';
    errno = error;
    return len > 0 && strstr(path, word) != NULL;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    if (fd <= STDERR_FILENO) {
        return REAL(write)(fd, bytes, n);
    }
    if (fails("write", fd)) {
        return -1;
    }
    if (strike(1, NULL)) {
        (void)!REAL(write)(fd, bytes, n / 2);
        die();
    }
    if (power_is_on()) {
        power_write(fd, bytes, n, -1);
    }
    ssize_t done = REAL(write)(fd, bytes, n);
    ended();
    return done;
}

#define STRIKE_PWRITE(name, offset)                                                                \
    ssize_t name(int fd, const void *bytes, size_t n, offset at) {                                 \
        if (fails("write", fd)) {                                                                  \
            return -1;                                                                             \
        }                                                                                          \
        if (strike(1, NULL)) {                                                                     \
            (void)!REAL(name)(fd, bytes, n / 2, at);                                               \
            die();                                                                                 \
        }                                                                                          \
        if (power_is_on()) {                                                                       \
            power_write(fd, bytes, n, at);                                                         \
        }                                                                                          \
        ssize_t done = REAL(name)(fd, bytes, n, at);                                               \
        ended();                                                                                   \
        return done;                                                                               \
    }

STRIKE_PWRITE(pwrite, off_t)
STRIKE_PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int n) {
    if (fd <= STDERR_FILENO) {
        return REAL(writev)(fd, parts, n);
    }
    if (strike(1, NULL)) {
        (void)!REAL(writev)(fd, parts, n / 2);
        die();
    }
    off_t at = power_is_on() ? lseek(fd, 0, SEEK_CUR) : -1;
    for (int i = 0; i < n && at >= 0; i++) {
        power_write(fd, parts[i].iov_base, parts[i].iov_len, at);
        at += (off_t)parts[i].iov_len;
    }
    ssize_t done = REAL(writev)(fd, parts, n);
    ended();
    return done;
}

#define STRIKE_SYNC(name)                                                                          \
    int name(int fd) {                                                                             \
        if (fails("sync", fd)) {                                                                   \
            return -1;                                                                             \
        }                                                                                          \
        (void)nanosleep(&sync_time, NULL);                                                         \
        strike(0, NULL);                                                                           \
        int done = power_is_on() && power_sync(fd) ? 0 : REAL(name)(fd);                           \
        ended();                                                                                   \
        return done;                                                                               \
    }

STRIKE_SYNC(fsync)
STRIKE_SYNC(fdatasync)

#define STRIKE_TRUNCATE(name, offset)                                                              \
    int name(int fd, offset size) {                                                                \
        strike(0, NULL);                                                                           \
        if (power_is_on()) {                                                                       \
            power_truncate(fd, size);                                                              \
        }                                                                                          \
        int done = REAL(name)(fd, size);                                                           \
        ended();                                                                                   \
        return done;                                                                               \
    }

STRIKE_TRUNCATE(ftruncate, off_t)
STRIKE_TRUNCATE(ftruncate64, off64_t)

static const char *last_of(const char *a, const char *b) {
    return b != NULL ? b : a;
}

static void stop_before(const char *call, const char *path, const char *other) {
    if (strcmp(call, stop_call) == 0 &&
        (strstr(path, stop_word) != NULL || (other != NULL && strstr(other, stop_word) != NULL)) &&
        !atomic_flag_test_and_set(&stopped)) {
        (void)raise(SIGSTOP); /* to this thread, so that it goes no further */
    }
}

/* A change of the names a and b (may be NULL). */
#define STRIKE_NAMES(name, declared, passed, a, b)                                                 \
    int name declared {                                                                            \
        power_names names;                                                                         \
        stop_before(#name, a, b);                                                                  \
        strike(0, last_of(a, b));                                                                  \
        if (power_is_on()) {                                                                       \
            power_before_names(&names, a, b);                                                      \
        }                                                                                          \
        int done = REAL(name) passed;                                                              \
        int why = errno;                                                                           \
        if (power_is_on()) {                                                                       \
            power_after_names(&names, done == 0);                                                  \
        }                                                                                          \
        ended();                                                                                   \
        errno = why;                                                                               \
        return done;                                                                               \
    }

STRIKE_NAMES(rename, (const char *from, const char *to), (from, to), from, to)
STRIKE_NAMES(link, (const char *from, const char *to), (from, to), to, NULL)
STRIKE_NAMES(unlink, (const char *path), (path), path, NULL)
STRIKE_NAMES(rmdir, (const char *path), (path), path, NULL)
STRIKE_NAMES(mkdir, (const char *path, mode_t mode), (path, mode), path, NULL)

/* A file that is there may be emptied, another is made. */
static int open_and_tell(int (*open_file)(const char *, int, ...), const char *path, int flags,
                         mode_t mode) {
    power_names names;
    power_before_names(&names, path, NULL);
    int fd = open_file(path, flags & ~O_TRUNC, mode);
    int why = errno;
    power_after_names(&names, fd >= 0);
    if (fd >= 0 && (flags & O_TRUNC) != 0 && names.before[0] != 0) {
        power_truncate(fd, 0);
        (void)!REAL(ftruncate)(fd, 0);
    }
    errno = why;
    return fd;
}

#define STRIKE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...) {                                                   \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;             \
        va_end(more);                                                                              \
        if ((flags & (O_CREAT | O_TRUNC)) == 0) {                                                  \
            return REAL(name)(path, flags, mode);                                                  \
        }                                                                                          \
        strike(0, NULL);                                                                           \
        int fd = power_is_on() ? open_and_tell(REAL(name), path, flags, mode)                      \
                               : REAL(name)(path, flags, mode);                                    \
        ended();                                                                                   \
        return fd;                                                                                 \
    }

STRIKE_OPEN(open)
STRIKE_OPEN(open64)
