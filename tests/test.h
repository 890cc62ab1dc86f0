/* tests/test.h - what every test program starts with. */
#ifndef TARN_TEST_H
#define TARN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tarn/env.h>
#include <tarn/error.h>

/* Fails with the error's own words. */
#define assert_ok(expr)                                                                            \
    do {                                                                                           \
        tarn_code code_ = (expr);                                                                  \
        if (code_ != TARN_OK) {                                                                    \
            fail_msg("%s: %s: %s (%s)", #expr, tarn_code_name(code_), err.message, err.detail);    \
        }                                                                                          \
    } while (0)
#define assert_code(expr, want) assert_int_equal((int)(expr), (int)(want))

/* Whether torture strikes every call there is (TARN_TORTURE_ALL, where time allows it) or a sample.
 */
static inline bool test_every(void) {
    return getenv("TARN_TORTURE_ALL") != NULL;
}

static inline tarn_env *test_env(void) {
    tarn_env *env = NULL;
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(tarn_env_new(NULL, &env, &err));
    return env;
}
/* Frees the env and fails if anything made with it was left. */
static inline void test_env_done(tarn_env *env) {
    assert_int_equal(tarn_env_memory_now(env), 0);
    tarn_env_free(env);
}

#endif
