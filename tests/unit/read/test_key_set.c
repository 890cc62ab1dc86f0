/* Goal: a set of deleted keys takes a row exactly where its key was named with a higher sequence
 * number than the row's.
 * Method: random keys of several lengths in several rounds, against an array of what was named; the
 * budget; memory that fails. */
#include "torture.h"
#include "unit/table/rows.h"

#include "read/key_set.h"

#define KEYS 3000

static tarn_error err;

/* Key i: its number, and for every seventh a tail of up to 3000 bytes. */
static void make_keys(key_rows *k, const int *numbers, int64_t n) {
    tarn_env *env = k->bytes.env;
    k->offsets = env_realloc(env, k->offsets, (size_t)(n + 1) * sizeof *k->offsets);
    buf_reset(&k->bytes);
    for (int64_t i = 0; i < n; i++) {
        k->offsets[i] = (uint32_t)k->bytes.len;
        assert_ok(buf_append(&k->bytes, &numbers[i], sizeof numbers[i], &err));
        for (int t = 0; numbers[i] % 7 == 0 && t < numbers[i]; t++) {
            assert_ok(buf_append_char(&k->bytes, 'x', &err));
        }
    }
    k->offsets[n] = (uint32_t)k->bytes.len;
    k->rows = n;
}

static void keys_by_sequence(void **state) {
    (void)state;
    tarn_env *env = test_env();
    key_budget budget = {.max_bytes = 64u << 20};
    key_set *set = NULL;
    key_rows keys;
    static int64_t named[KEYS]; /* the highest sequence number */
    static int numbers[KEYS];
    static uint8_t bits[KEYS / 8 + 1];
    srand(7);
    memset(named, -1, sizeof named);
    key_rows_init(&keys, env);
    assert_ok(key_set_new(env, &budget, &set, &err));
    for (int round = 0; round < 20; round++) {
        const int64_t sequence = rand() % 12;
        const int n = 1 + rand() % 400;
        for (int i = 0; i < n; i++) {
            numbers[i] = rand() % KEYS;
            named[numbers[i]] = named[numbers[i]] > sequence ? named[numbers[i]] : sequence;
        }
        make_keys(&keys, numbers, n);
        assert_ok(key_set_add(set, &keys, sequence, &err));
    }
    for (int i = 0; i < KEYS; i++) {
        numbers[i] = i;
    }
    make_keys(&keys, numbers, KEYS);
    for (int64_t sequence = 0; sequence < 13; sequence++) {
        int64_t want = 0;
        memset(bits, 0xff, sizeof bits);
        bit_clear(bits, 5); /* gone already */
        int64_t cleared = key_set_clear(set, &keys, sequence, bits);
        for (int i = 0; i < KEYS; i++) {
            const bool gone = named[i] > sequence;
            assert_int_equal(bit_get(bits, i), !(gone || i == 5));
            want += gone && i != 5;
        }
        assert_int_equal(cleared, want);
    }
    key_set_free(set);
    assert_int_equal(atomic_load(&budget.bytes), 0);
    key_rows_release(&keys);
    test_env_done(env);
}

static void budget_is_kept(void **state) {
    (void)state;
    tarn_env *env = test_env();
    key_budget budget = {.max_bytes = 4000};
    key_set *set = NULL;
    key_rows keys;
    int numbers[400];
    for (int i = 0; i < 400; i++) {
        numbers[i] = i;
    }
    key_rows_init(&keys, env);
    make_keys(&keys, numbers, 400);
    assert_ok(key_set_new(env, &budget, &set, &err));
    assert_code(key_set_add(set, &keys, 1, &err), TARN_LIMIT);
    assert_non_null(strstr(err.message, "4000 bytes"));
    err = (tarn_error)TARN_ERROR_INIT;
    key_set_free(set);
    key_rows_release(&keys);
    test_env_done(env);
}

static void sets_without_memory(void **state) {
    (void)state;
    tarn_env *outside = test_env();
    key_rows keys;
    int numbers[500];
    tarn_code code = TARN_NOMEM;
    for (int i = 0; i < 500; i++) {
        numbers[i] = i;
    }
    key_rows_init(&keys, outside);
    make_keys(&keys, numbers, 500);
    for (int64_t k = 1; code != TARN_OK; k++) {
        test_memory memory = {0};
        tarn_env *env = test_env_memory(&memory);
        tarn_error e = TARN_ERROR_INIT;
        key_budget budget = {.max_bytes = 64u << 20};
        key_set *set = NULL;
        memory.fail_at = k;
        code = key_set_new(env, &budget, &set, &e);
        if (code == TARN_OK) {
            code = key_set_add(set, &keys, 3, &e);
        }
        memory.fail_at = 0;
        assert_true(code == TARN_OK || code == TARN_NOMEM);
        assert_true(code != TARN_OK || key_set_count(set) == 500);
        key_set_free(set);
        test_env_done(env);
    }
    key_rows_release(&keys);
    test_env_done(outside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_by_sequence),
        cmocka_unit_test(budget_is_kept),
        cmocka_unit_test(sets_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
