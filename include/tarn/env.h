/* tarn/env.h - what a process lends to libtarn: memory, time, chance, threads, log, limits.
 *
 * There is no global state. An env is the first argument of every constructor; two envs in one
 * process know nothing of each other. An env is internally locked and may be used from any thread.
 * It must outlive everything that was made with it. */
#ifndef TARN_ENV_H
#define TARN_ENV_H

#include <stddef.h>
#include <stdint.h>

#include <tarn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_env tarn_env;

/* Memory. alloc and realloc return NULL when there is none; sizes given to free are those
 * allocated. Thread-safe. */
typedef struct tarn_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size_bytes);
    void *(*realloc)(void *ctx, void *ptr, size_t old_bytes, size_t new_bytes);
    void (*free)(void *ctx, void *ptr, size_t size_bytes);
} tarn_allocator;

typedef enum tarn_log_level {
    TARN_LOG_ERROR = 0, /* data at risk */
    TARN_LOG_WARN = 1,  /* degraded */
    TARN_LOG_INFO = 2,  /* one line per commit or maintenance run */
    TARN_LOG_DEBUG = 3  /* one line per request */
} tarn_log_level;

typedef struct tarn_env_options {
    uint32_t struct_size;
    uint32_t threads;                /* worker threads; 0: one per processor */
    const tarn_allocator *allocator; /* NULL: the C library's. @keep */
    /* microseconds since 1970-01-01 UTC; NULL: the system's clock */
    int64_t (*clock_us)(void *ctx);
    /* fills out with random bytes; NULL: the operating system's */
    void (*random)(void *ctx, void *out, size_t len);
    void (*sleep_ms)(void *ctx, int64_t ms); /* NULL: sleeps */
    void *ctx;                               /* given to clock_us, random, sleep_ms. @keep */
    /* one event: room ("commit"), event ("retry"), text ("attempt=2 ..."); NULL: no log */
    void (*log)(void *ctx, tarn_log_level level, const char *room, const char *event,
                const char *text);
    void *log_ctx;         /* @keep */
    uint64_t memory_bytes; /* the most that may be allocated at once; 0: no limit */
    /* folder for temporary files, which have no names there: rows of a table with a sort order, and
     * keys of an index that is made, which memory does not hold. NULL: /var/tmp, or where that
     * can't be written /tmp. @keep. @since 0.2 */
    const char *temp_dir;
} tarn_env_options;

#define TARN_ENV_OPTIONS_INIT                                                                      \
    { sizeof(tarn_env_options), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL }

/* Makes an env. options may be NULL. Fails with NOMEM, INVALID, IO (threads). @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_env_new(const tarn_env_options *options, /* @borrow */
                                              tarn_env **out, /* @give: tarn_env_free */
                                              tarn_error *err /* @borrow, may be NULL */);

/* Frees an env after everything made with it; takes NULL. @since 0.1 */
TARN_API void tarn_env_free(tarn_env *env /* @take */);

/* Asks all work running under env to end with CANCELLED at its next I/O boundary.
 * Async-signal-safe. The flag stays set until tarn_env_cancel_reset. @since 0.1 */
TARN_API void tarn_env_cancel(tarn_env *env /* @borrow */);
TARN_API void tarn_env_cancel_reset(tarn_env *env /* @borrow */);

/* Bytes allocated now, and the most at any time. @since 0.1 */
TARN_API uint64_t tarn_env_memory_now(const tarn_env *env /* @borrow */);
TARN_API uint64_t tarn_env_memory_peak(const tarn_env *env /* @borrow */);

#ifdef __cplusplus
}
#endif
#endif
