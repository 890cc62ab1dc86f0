/* tests/torture.h - an allocator that fails at the k-th allocation: a flow is repeated with k = 1,
 * 2, ... until it passes, and must report NOMEM and leave nothing each time before. */
#ifndef TARN_TEST_TORTURE_H
#define TARN_TEST_TORTURE_H

#include "test.h"

typedef struct test_memory {
    int64_t fail_at; /* 1: the next one; 0: never */
} test_memory;

static inline int test_memory_hit(test_memory *m) {
    return m->fail_at > 0 && --m->fail_at == 0;
}
static inline void *test_memory_alloc(void *ctx, size_t size) {
    return test_memory_hit(ctx) ? NULL : malloc(size);
}
static inline void *test_memory_realloc(void *ctx, void *ptr, size_t old_size, size_t size) {
    (void)old_size;
    return test_memory_hit(ctx) ? NULL : realloc(ptr, size);
}
static inline void test_memory_free(void *ctx, void *ptr, size_t size) {
    (void)ctx;
    (void)size;
    free(ptr);
}

/* An env without worker threads whose memory is m's. */
static inline tarn_env *test_env_memory(test_memory *m) {
    tarn_allocator allocator = {m, test_memory_alloc, test_memory_realloc, test_memory_free};
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    tarn_error err = TARN_ERROR_INIT;
    options.threads = 1;
    options.allocator = &allocator;
    assert_ok(tarn_env_new(&options, &env, &err));
    return env;
}

#endif
