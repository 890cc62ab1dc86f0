/* tests/fail_alloc.h - an env whose k-th allocation fails, for torture tests.
 *
 *     for (uint64_t k = 1;; k++) {
 *         fail_alloc plan;
 *         tarn_env *env = fail_alloc_env(&plan, k);
 *         tarn_code code = work(env, &err);
 *         ... code must be NOMEM with a message while plan.failed, OK when not ...
 *         fail_alloc_done(&plan, env);
 *         if (!plan.failed) { break; }
 *     }
 *
 * Counting begins when fail_alloc_env returns; k 0 never fails. Blocks still alive at the end are
 * leaks and fail the test, and so does a free with a size that is not the block's. A failed
 * allocation fails once: the next succeeds, so clean-up that allocates is seen too. Threads may use
 * the env; which allocation is the k-th is then up to them, so threads is 1 unless asked for. */
#ifndef TARN_TESTS_FAIL_ALLOC_H
#define TARN_TESTS_FAIL_ALLOC_H

#include <stdatomic.h>
#include <stdbool.h>

#include "test.h"

typedef struct fail_alloc {
    tarn_allocator allocator;
    atomic_uint_fast64_t count; /* allocations so far */
    uint64_t fail_at;           /* 0: never */
    atomic_bool failed;         /* whether the k-th was reached */
    atomic_int_fast64_t live_blocks;
    atomic_int_fast64_t live_bytes;
} fail_alloc;

/* The size lies in front of each block, so that a free can be held against it. */
#define FAIL_ALLOC_HEADER 16

static inline bool fail_alloc_now(fail_alloc *plan) {
    uint64_t n = atomic_fetch_add(&plan->count, 1) + 1;
    if (plan->fail_at != 0 && n == plan->fail_at) {
        atomic_store(&plan->failed, true);
        return true;
    }
    return false;
}

static inline void *fail_alloc_alloc(void *ctx, size_t size_bytes) {
    fail_alloc *plan = ctx;
    unsigned char *block = fail_alloc_now(plan) ? NULL : malloc(size_bytes + FAIL_ALLOC_HEADER);
    if (block == NULL) {
        return NULL;
    }
    memcpy(block, &size_bytes, sizeof size_bytes);
    memset(block + FAIL_ALLOC_HEADER, 0xA5, size_bytes); /* nobody may count on zeros */
    atomic_fetch_add(&plan->live_blocks, 1);
    atomic_fetch_add(&plan->live_bytes, (int64_t)size_bytes);
    return block + FAIL_ALLOC_HEADER;
}

static inline void fail_alloc_free(void *ctx, void *ptr, size_t size_bytes) {
    fail_alloc *plan = ctx;
    unsigned char *block = (unsigned char *)ptr - FAIL_ALLOC_HEADER;
    size_t known;
    memcpy(&known, block, sizeof known);
    assert_int_equal(known, size_bytes);
    atomic_fetch_sub(&plan->live_blocks, 1);
    atomic_fetch_sub(&plan->live_bytes, (int64_t)size_bytes);
    free(block);
}

/* Always moves, so that a stale pointer is found. */
static inline void *fail_alloc_realloc(void *ctx, void *ptr, size_t old_bytes, size_t new_bytes) {
    void *moved = fail_alloc_alloc(ctx, new_bytes);
    if (moved != NULL) {
        memcpy(moved, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
        fail_alloc_free(ctx, ptr, old_bytes);
    }
    return moved;
}

static inline tarn_env *fail_alloc_env_threads(fail_alloc *plan, uint64_t k, uint32_t threads) {
    memset(plan, 0, sizeof *plan);
    plan->allocator = (tarn_allocator){plan, fail_alloc_alloc, fail_alloc_realloc, fail_alloc_free};
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.threads = threads;
    options.allocator = &plan->allocator;
    tarn_env *env = NULL;
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(tarn_env_new(&options, &env, &err));
    atomic_store(&plan->count, 0);
    plan->fail_at = k;
    return env;
}

static inline tarn_env *fail_alloc_env(fail_alloc *plan, uint64_t k) {
    return fail_alloc_env_threads(plan, k, 1);
}

/* Frees the env; fails the test if anything was left. */
static inline void fail_alloc_done(fail_alloc *plan, tarn_env *env) {
    plan->fail_at = 0;
    assert_int_equal(tarn_env_memory_now(env), 0);
    tarn_env_free(env);
    assert_int_equal(atomic_load(&plan->live_blocks), 0);
    assert_int_equal(atomic_load(&plan->live_bytes), 0);
}

#endif
