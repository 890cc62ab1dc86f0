/* base/env.c - the inside of a tarn_env. The only place that asks the system for memory, time,
 * random bytes or sleep.
 * Invariants: now_bytes is the sum of all live blocks with their headers, exactly, at any moment;
 * it never passes memory_bytes; what the env needs for itself is not in it. A block is a 16-byte
 * header that keeps its size, then the caller's bytes, 16-byte aligned. */
#include "base/env.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/pool.h"

#define HEADER_BYTES  16
#define SLEEP_SLICE   INT64_C(50) /* ms: how late a sleeper may notice cancellation */
#define LOG_TEXT_SIZE 1024

struct tarn_env {
    tarn_allocator allocator;
    tarn_env_options options;
    uint32_t threads;
    struct tarn_pool *pool;
    uint64_t own_bytes; /* of the pool; not counted as the user's */
    atomic_uint_fast64_t now_bytes;
    atomic_uint_fast64_t peak_bytes;
    atomic_int cancelled; /* lock-free, so a signal handler may set it */
};

static void *system_alloc(void *ctx, size_t size_bytes) {
    (void)ctx;
    return malloc(size_bytes);
}
static void *system_realloc(void *ctx, void *ptr, size_t old_bytes, size_t new_bytes) {
    (void)ctx;
    (void)old_bytes;
    return realloc(ptr, new_bytes);
}
static void system_free(void *ctx, void *ptr, size_t size_bytes) {
    (void)ctx;
    (void)size_bytes;
    free(ptr);
}

static const tarn_allocator system_allocator = {NULL, system_alloc, system_realloc, system_free};

/* Takes the caller's options, which may be those of an older or a newer header. */
static tarn_code read_options(const tarn_env_options *given, tarn_env_options *out,
                              tarn_error *err) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    if (given != NULL) {
        size_t size = given->struct_size;
        if (size < offsetof(tarn_env_options, allocator)) {
            return err_set(err, TARN_INVALID, "env options: struct_size was %zu", size);
        }
        for (size_t i = sizeof options; i < size; i++) {
            if (((const unsigned char *)given)[i] != 0) {
                return err_set(err, TARN_INVALID,
                               "env options: byte %zu was set, which this version does not know",
                               i);
            }
        }
        memcpy(&options, given, size < sizeof options ? size : sizeof options);
        options.struct_size = (uint32_t)sizeof options;
    }
    if (options.threads > LIMIT_THREADS) {
        return err_set(err, TARN_INVALID, "env options: threads was %u, above %u", options.threads,
                       (unsigned)LIMIT_THREADS);
    }
    const tarn_allocator *a = options.allocator;
    if (a != NULL && (a->alloc == NULL || a->realloc == NULL || a->free == NULL)) {
        return err_set(err, TARN_INVALID, "env options: the allocator lacked a function");
    }
    *out = options;
    return TARN_OK;
}

static uint32_t count_processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1) {
        return 1;
    }
    return n > LIMIT_THREADS ? (uint32_t)LIMIT_THREADS : (uint32_t)n;
}

tarn_code tarn_env_new(const tarn_env_options *options, tarn_env **out, tarn_error *err) {
    tarn_env_options known;
    if (out == NULL) {
        return err_set(err, TARN_INVALID, "env: no place for the result was given");
    }
    tarn_code code = read_options(options, &known, err);
    if (code != TARN_OK) {
        return code;
    }
    tarn_allocator allocator = known.allocator != NULL ? *known.allocator : system_allocator;
    tarn_env *env = allocator.alloc(allocator.ctx, sizeof *env);
    if (env == NULL) {
        return err_nomem(err);
    }
    memset(env, 0, sizeof *env);
    env->allocator = allocator;
    env->options = known;
    env->threads = known.threads != 0 ? known.threads : count_processors();
    atomic_init(&env->now_bytes, 0);
    atomic_init(&env->peak_bytes, 0);
    atomic_init(&env->cancelled, 0);
    /* The pool is the env's own: it must come to life under any limit, and is not counted. */
    env->options.memory_bytes = 0;
    env->pool = pool_new(env, env->threads);
    if (env->pool == NULL) {
        allocator.free(allocator.ctx, env, sizeof *env);
        return err_nomem(err);
    }
    env->options.memory_bytes = known.memory_bytes;
    env->own_bytes = atomic_exchange(&env->now_bytes, 0);
    atomic_store(&env->peak_bytes, 0);
    *out = env;
    return TARN_OK;
}

void tarn_env_free(tarn_env *env) {
    if (env == NULL) {
        return;
    }
    atomic_fetch_add(&env->now_bytes, env->own_bytes);
    pool_free(env->pool);
    tarn_allocator allocator = env->allocator;
    allocator.free(allocator.ctx, env, sizeof *env);
}

void tarn_env_cancel(tarn_env *env) {
    atomic_store_explicit(&env->cancelled, 1, memory_order_relaxed);
}

void tarn_env_cancel_reset(tarn_env *env) {
    atomic_store_explicit(&env->cancelled, 0, memory_order_relaxed);
}

uint64_t tarn_env_memory_now(const tarn_env *env) {
    return atomic_load_explicit(&env->now_bytes, memory_order_relaxed);
}

uint64_t tarn_env_memory_peak(const tarn_env *env) {
    return atomic_load_explicit(&env->peak_bytes, memory_order_relaxed);
}

/* Counts bytes in, unless the limit would be passed. The sum is moved by compare-and-swap and not
 * added first and taken back, because a passing overshoot could refuse another thread wrongly. */
bool env_count_in(tarn_env *env, size_t bytes) {
    uint64_t limit = env->options.memory_bytes;
    uint_fast64_t now = atomic_load_explicit(&env->now_bytes, memory_order_relaxed);
    uint64_t then;
    do {
        then = now + bytes;
        if (limit != 0 && then > limit) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&env->now_bytes, &now, then,
                                                    memory_order_relaxed, memory_order_relaxed));
    uint_fast64_t peak = atomic_load_explicit(&env->peak_bytes, memory_order_relaxed);
    while (then > peak &&
           !atomic_compare_exchange_weak_explicit(&env->peak_bytes, &peak, then,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
    return true;
}

void env_count_out(tarn_env *env, size_t bytes) {
    atomic_fetch_sub_explicit(&env->now_bytes, bytes, memory_order_relaxed);
}

static size_t block_bytes(const void *block) {
    size_t total;
    memcpy(&total, block, sizeof total);
    return total;
}

static void *open_block(void *block, size_t total) {
    memcpy(block, &total, sizeof total);
    return (unsigned char *)block + HEADER_BYTES;
}

static void *alloc_block(tarn_env *env, size_t size_bytes, bool zeroed) {
    if (size_bytes > SIZE_MAX / 2) {
        return NULL;
    }
    size_t total = size_bytes + HEADER_BYTES;
    if (!env_count_in(env, total)) {
        return NULL;
    }
    bool system = env->allocator.alloc == system_alloc;
    void *block =
        zeroed && system ? calloc(1, total) : env->allocator.alloc(env->allocator.ctx, total);
    if (block == NULL) {
        env_count_out(env, total);
        return NULL;
    }
    if (zeroed && !system) {
        memset(block, 0, total);
    }
    return open_block(block, total);
}

void *env_alloc(tarn_env *env, size_t size_bytes) {
    return alloc_block(env, size_bytes, false);
}

void *env_calloc(tarn_env *env, size_t count, size_t size_bytes) {
    size_t total;
    if (!num_mul_size(count, size_bytes, &total)) {
        return NULL;
    }
    return alloc_block(env, total, true);
}

void *env_realloc(tarn_env *env, void *ptr, size_t size_bytes) {
    if (ptr == NULL) {
        return env_alloc(env, size_bytes);
    }
    if (size_bytes > SIZE_MAX / 2) {
        return NULL;
    }
    void *block = (unsigned char *)ptr - HEADER_BYTES;
    size_t old_total = block_bytes(block);
    size_t new_total = size_bytes + HEADER_BYTES;
    size_t grown = new_total > old_total ? new_total - old_total : 0;
    if (!env_count_in(env, grown)) {
        return NULL;
    }
    void *moved = env->allocator.realloc(env->allocator.ctx, block, old_total, new_total);
    if (moved == NULL) {
        env_count_out(env, grown);
        return NULL;
    }
    if (new_total < old_total) {
        env_count_out(env, old_total - new_total);
    }
    return open_block(moved, new_total);
}

void env_free(tarn_env *env, void *ptr) {
    if (ptr == NULL) {
        return;
    }
    void *block = (unsigned char *)ptr - HEADER_BYTES;
    size_t total = block_bytes(block);
    env->allocator.free(env->allocator.ctx, block, total);
    env_count_out(env, total);
}

void env_trim(const tarn_env *env) {
#ifdef __GLIBC__
    if (env->allocator.alloc == system_alloc) {
        (void)malloc_trim(0);
    }
#else
    (void)env;
#endif
}

int64_t env_now_us(tarn_env *env) {
    if (env->options.clock_us != NULL) {
        return env->options.clock_us(env->options.ctx);
    }
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return 0;
    }
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t env_now_ms(tarn_env *env) {
    return num_floor_div(env_now_us(env), 1000);
}

/* A cancelled env ends its sleeps early: the next I/O boundary then tells why. */
void env_sleep_ms(tarn_env *env, int64_t ms) {
    if (ms <= 0) {
        return;
    }
    if (env->options.sleep_ms != NULL) {
        env->options.sleep_ms(env->options.ctx, ms);
        return;
    }
    while (ms > 0 && atomic_load_explicit(&env->cancelled, memory_order_relaxed) == 0) {
        int64_t slice = ms < SLEEP_SLICE ? ms : SLEEP_SLICE;
        struct timespec left = {0, (long)(slice * 1000000)};
        while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        }
        ms -= slice;
    }
}

/* Only for a system that refuses random bytes: names stay distinct within and between processes. */
static void fill_by_clock(unsigned char *out, size_t len) {
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t state = (uint64_t)now.tv_nsec ^ ((uint64_t)now.tv_sec << 32) ^
                     ((uint64_t)getpid() << 48) ^ (uint64_t)(uintptr_t)out;
    for (size_t i = 0; i < len; i++) {
        state += UINT64_C(0x9E3779B97F4A7C15);
        uint64_t x = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
        out[i] = (unsigned char)(x >> 56);
    }
}

void env_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t how;
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &how);
    (void)pthread_condattr_destroy(&how);
}

void env_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_cond_timedwait(cond, lock, &until);
}

void env_random(tarn_env *env, void *out, size_t len) {
    if (env->options.random != NULL) {
        env->options.random(env->options.ctx, out, len);
        return;
    }
    unsigned char *p = out;
    while (len > 0) {
        size_t piece = len < 256 ? len : 256; /* the most getentropy gives at once */
        if (getentropy(p, piece) != 0) {
            fill_by_clock(p, piece);
        }
        p += piece;
        len -= piece;
    }
}

uint64_t env_random_u64(tarn_env *env) {
    uint64_t v = 0;
    env_random(env, &v, sizeof v);
    return v;
}

int64_t env_random_snapshot_id(tarn_env *env) {
    int64_t id = (int64_t)(env_random_u64(env) & (uint64_t)INT64_MAX);
    return id != 0 ? id : 1;
}

static void write_uuid(const unsigned char bytes[16], char out[37]) {
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = hex[bytes[i] >> 4];
        out[at++] = hex[bytes[i] & 15];
    }
    out[at] = '\0';
}

void env_uuid_v4(tarn_env *env, char out[37]) {
    unsigned char bytes[16];
    env_random(env, bytes, sizeof bytes);
    bytes[6] = (unsigned char)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3F) | 0x80);
    write_uuid(bytes, out);
}

void env_uuid_v7(tarn_env *env, char out[37]) {
    unsigned char bytes[16];
    uint64_t ms = (uint64_t)env_now_ms(env);
    env_random(env, bytes, sizeof bytes);
    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    }
    bytes[6] = (unsigned char)((bytes[6] & 0x0F) | 0x70);
    bytes[8] = (unsigned char)((bytes[8] & 0x3F) | 0x80);
    write_uuid(bytes, out);
}

const char *env_temp_dir(const tarn_env *env) {
    return env->options.temp_dir;
}

uint32_t env_threads(const tarn_env *env) {
    return env->threads;
}

struct tarn_pool *env_pool(tarn_env *env) {
    return env->pool;
}

tarn_code env_check_cancel(const tarn_env *env, tarn_error *err) {
    if (atomic_load_explicit(&env->cancelled, memory_order_relaxed) != 0) {
        return err_set(err, TARN_CANCELLED, "the work was cancelled");
    }
    return TARN_OK;
}

void env_log(tarn_env *env, tarn_log_level level, const char *room, const char *event,
             const char *fmt, ...) {
    if (env->options.log == NULL) {
        return;
    }
    char text[LOG_TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    int wrote = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (wrote < 0) {
        text[0] = '\0';
    }
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F) {
            *p = '?';
        }
    }
    env->options.log(env->options.log_ctx, level, room, event, text);
}
