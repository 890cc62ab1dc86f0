/* tests/interop/kill_at.c - preloaded into the command: ends the process with SIGKILL right before
 * its k-th call that changes files, or in the middle of it. Everything counts: data files,
 * manifests, the state folder, SQLite's and RocksDB's own files. Environment: KILL_AT (k; unset:
 * never), KILL_TORN (a write is done by half first), KILL_COUNT (file that gets the number of calls
 * at exit). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long kill_at = -1;
static int torn;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("KILL_AT");
    kill_at = at != NULL ? atol(at) : -1;
    torn = getenv("KILL_TORN") != NULL;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("KILL_COUNT");
    FILE *out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fprintf(out, "%ld\n", atomic_load(&calls));
        fclose(out);
    }
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

/* True: the call is the fatal one, and is to be torn. */
static int strike(int can_tear) {
    if (atomic_fetch_add(&calls, 1) + 1 != kill_at) {
        return 0;
    }
    if (!can_tear || !torn) {
        die();
    }
    return 1;
}

/* The C library's own function of that name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t n) {
    if (fd > STDERR_FILENO && strike(1)) {
        (void)!REAL(write)(fd, bytes, n / 2);
        die();
    }
    return REAL(write)(fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    if (strike(1)) {
        (void)!REAL(pwrite)(fd, bytes, n / 2, at);
        die();
    }
    return REAL(pwrite)(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    if (strike(1)) {
        (void)!REAL(pwrite64)(fd, bytes, n / 2, at);
        die();
    }
    return REAL(pwrite64)(fd, bytes, n, at);
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    if (fd > STDERR_FILENO && strike(1)) {
        (void)!REAL(writev)(fd, parts, n / 2);
        die();
    }
    return REAL(writev)(fd, parts, n);
}

#define STRIKE_BEFORE(name, declared, passed)                                                      \
    int name declared {                                                                            \
        strike(0);                                                                                 \
        return REAL(name) passed;                                                                  \
    }

STRIKE_BEFORE(fsync, (int fd), (fd))
STRIKE_BEFORE(fdatasync, (int fd), (fd))
STRIKE_BEFORE(ftruncate, (int fd, off_t size), (fd, size))
STRIKE_BEFORE(ftruncate64, (int fd, off64_t size), (fd, size))
STRIKE_BEFORE(rename, (const char *from, const char *to), (from, to))
STRIKE_BEFORE(link, (const char *from, const char *to), (from, to))
STRIKE_BEFORE(unlink, (const char *path), (path))
STRIKE_BEFORE(rmdir, (const char *path), (path))
STRIKE_BEFORE(mkdir, (const char *path, mode_t mode), (path, mode))

#define STRIKE_OPEN(name)                                                                          \
    int name(const char *path, int flags, ...) {                                                   \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;             \
        va_end(more);                                                                              \
        if ((flags & O_CREAT) != 0) {                                                              \
            strike(0);                                                                             \
        }                                                                                          \
        return REAL(name)(path, flags, mode);                                                      \
    }

STRIKE_OPEN(open)
STRIKE_OPEN(open64)
