/* tests/histories.h - seeded histories: one seed is one history. TARN_HISTORY_SEED replays one,
 * TARN_HISTORIES says how many there are. */
#ifndef TESTS_HISTORIES_H
#define TESTS_HISTORIES_H

#include <stdint.h>
#include <stdlib.h>

/* A number below n; *random is never 0. */
static inline uint32_t history_chance(uint64_t *random, uint32_t n) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (uint32_t)(*random >> 33) % n;
}

/* How many were run; 0: the one that was asked for. */
static inline uint64_t run_histories(void (*run)(uint64_t seed), uint64_t fallback) {
    const char *one = getenv("TARN_HISTORY_SEED");
    const char *many = getenv("TARN_HISTORIES");
    if (one != NULL) {
        run(strtoull(one, NULL, 10));
        return 0;
    }
    uint64_t n = many != NULL ? strtoull(many, NULL, 10) : fallback;
    for (uint64_t seed = 1; seed <= n; seed++) {
        run(seed);
    }
    return n;
}

#endif
