/* fuzz/fuzz.h - what every fuzz target starts with: an env whose time and chance are fixed, whose
 * memory is bounded and counted, and one way to say that a promise was broken. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tarn/env.h>

/* More than any decoder may want for an input of a few kilobytes. */
#define FUZZ_MEMORY_BYTES (UINT64_C(1) << 30)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops the program, so that the fuzzer keeps the input. */
#define fuzz_check(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #cond);               \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static int64_t fuzz_clock(void *ctx) {
    (void)ctx;
    return INT64_C(1700000000000000);
}

static void fuzz_random(void *ctx, void *out, size_t len) {
    (void)ctx;
    memset(out, 0x5a, len);
}

static inline tarn_env *fuzz_env(void) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.threads = 1;
    options.clock_us = fuzz_clock;
    options.random = fuzz_random;
    options.memory_bytes = FUZZ_MEMORY_BYTES;
    tarn_env *env = NULL;
    tarn_error err = TARN_ERROR_INIT;
    fuzz_check(tarn_env_new(&options, &env, &err) == TARN_OK);
    return env;
}

/* Nothing made with env may be left. */
static inline void fuzz_env_done(tarn_env *env) {
    fuzz_check(tarn_env_memory_now(env) == 0);
    tarn_env_free(env);
}

/* An error says something, in one line; a refusal of memory means that a decoder believed a size
 * that its input could not hold; INTERNAL is never right. */
static inline void fuzz_check_error(tarn_code code, const tarn_error *err) {
    if (code == TARN_OK) {
        return;
    }
    fuzz_check(err->code == code);
    fuzz_check(code != TARN_NOMEM);
    fuzz_check(code != TARN_INTERNAL);
    fuzz_check(err->message[0] != '\0');
    fuzz_check(strchr(err->message, '\n') == NULL);
}

#endif
