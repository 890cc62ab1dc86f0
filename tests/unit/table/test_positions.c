/* Goal: sets of positions hold what was put in, in memory and as bytes, and no bytes are believed.
 * Method: random sets against a sorted array; documents made by hand, cut, and changed in each byte
 * and bit; every allocation of the env failing in turn. */
#include "table/positions.h"

#include "base/num.h"
#include "fail_alloc.h"
#include "test.h"

#define UPPER(n) ((int64_t)(n) << 32)

/* The same numbers in every run. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_unique(int64_t *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || values[kept - 1] != values[i]) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static void check_same(const tarn_positions *p, const int64_t *want, size_t n) {
    assert_int_equal(positions_count(p), n);
    assert_int_equal(positions_max(p), n == 0 ? -1 : want[n - 1]);
    int64_t *got = test_malloc((n + 1) * sizeof *got);
    positions_list(p, got);
    assert_memory_equal(got, want, n * sizeof *got);
    size_t i = 0;
    size_t step = n / 7 + 1;
    for (int64_t from = -5; i < n; from = got[i - 1] + 1) { /* in pieces */
        size_t k = positions_from(p, from, got + i, step);
        assert_int_equal(k, n - i < step ? n - i : step);
        i += k;
    }
    assert_memory_equal(got, want, n * sizeof *got);
    assert_int_equal(positions_from(p, n == 0 ? 0 : want[n - 1] + 1, got, 1), 0);
    test_free(got);
}

/* positions_clear from start on against the list. */
static void check_clear(const tarn_positions *p, const int64_t *want, size_t n, int64_t start) {
    uint8_t keep[125];
    uint8_t model[125];
    int64_t rows = 1000;
    memset(keep, 0xff, sizeof keep);
    for (int64_t i = 0; i < rows; i += 7) {
        bit_clear(keep, i);
    }
    memcpy(model, keep, sizeof keep);
    int64_t cleared = 0;
    for (size_t i = 0; i < n; i++) {
        if (want[i] >= start && want[i] - start < rows) {
            cleared += bit_get(model, want[i] - start);
            bit_clear(model, want[i] - start);
        }
    }
    assert_int_equal(positions_clear(p, start, rows, keep), cleared);
    assert_memory_equal(keep, model, sizeof keep);
}

static void check_bytes(tarn_env *env, const tarn_positions *p, const int64_t *want, size_t n) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_positions *again = NULL;
    buf_init(&bytes, env, 0);
    assert_ok(positions_write(p, &bytes, &err));
    assert_ok(positions_read(env, bytes.data, bytes.len, &again, &err));
    check_same(again, want, n);
    positions_free(again);
    buf_release(&bytes);
}

/* How a random set is spread. */
enum { SPARSE, DENSE, RUNS, HALVES, N_SHAPES };

static size_t make_values(uint64_t *seed, int shape, int64_t *out, size_t cap) {
    size_t n = next_random(seed) % cap;
    int64_t run = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = next_random(seed);
        switch (shape) {
        case SPARSE:
            out[i] = (int64_t)(r % 100000000);
            break;
        case DENSE:
            out[i] = (int64_t)(r % 150000);
            break;
        case RUNS:
            run = i % 500 == 0 ? (int64_t)(r % 3000000) : run + 1;
            out[i] = run;
            break;
        default:
            out[i] = UPPER(r % 5) + (int64_t)(r >> 8) % 70000;
            break;
        }
    }
    return n;
}

static void test_random(void **state) {
    (void)state;
    enum { CAP = 60000 };
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    int64_t *values = test_malloc(2 * CAP * sizeof *values);
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 24; round++) {
        tarn_positions *p = NULL;
        tarn_positions *other = NULL;
        assert_ok(positions_new(env, &p, &err));
        assert_ok(positions_new(env, &other, &err));
        size_t n = make_values(&seed, round % N_SHAPES, values, CAP);
        size_t more = make_values(&seed, (round / N_SHAPES) % N_SHAPES, values + n, CAP);
        for (size_t i = 0; i < n; i += 777) { /* in pieces */
            assert_ok(positions_add(p, values + i, n - i < 777 ? n - i : 777, &err));
        }
        assert_ok(positions_add(other, values + n, more, &err));
        assert_ok(positions_add_all(p, other, &err));
        n = sort_unique(values, n + more);
        check_same(p, values, n);
        check_bytes(env, p, values, n);
        for (size_t i = 0; i < 200 && n > 0; i++) {
            int64_t value = values[next_random(&seed) % n] + (int64_t)(next_random(&seed) % 3) - 1;
            bool have = bsearch(&value, values, n, sizeof value, compare) != NULL;
            assert_int_equal(positions_has(p, value), have);
            check_clear(p, values, n, value < 0 ? 0 : value - value % 501);
        }
        assert_true(positions_bytes(p) < 2000 + n * 100);
        positions_free(p);
        positions_free(other);
    }
    test_free(values);
    test_env_done(env);
}

static void test_edges(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_positions *p = NULL;
    assert_ok(positions_new(env, &p, &err));
    check_same(p, NULL, 0);
    check_bytes(env, p, NULL, 0);
    assert_false(positions_has(p, 0));
    assert_false(positions_has(p, -1));
    const int64_t max = INT64_C(0x7ffffffe80000000);
    const int64_t wrong[] = {5, -1, max + 1};
    assert_code(positions_add(p, wrong, 2, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "-1"));
    assert_code(positions_add(p, wrong + 2, 1, &err), TARN_INVALID);
    assert_int_equal(positions_count(p), 0);
    int64_t values[] = {max, UPPER(1), UPPER(1) - 1, 0, UPPER(3) + UINT32_MAX};
    assert_ok(positions_add(p, values, 5, &err));
    size_t n = sort_unique(values, 5);
    check_same(p, values, n);
    check_bytes(env, p, values, n);
    check_clear(p, values, n, UPPER(1) - 500);
    check_clear(p, values, n, UPPER(4) - 1000);
    check_clear(p, values, n, UPPER(3) - 4);
    check_clear(p, values, n, max);
    check_clear(p, values, n, INT64_MAX - 999);
    positions_free(p);
    positions_free(NULL);
    test_env_done(env);
}

/* A long run is small as bytes, and its bytes are those of the specification. */
static void test_layout(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_positions *p = NULL;
    tarn_buf bytes;
    buf_init(&bytes, env, 0);
    assert_ok(positions_new(env, &p, &err));
    for (int64_t i = 10; i < 5010; i++) {
        assert_ok(positions_add(p, &i, 1, &err));
    }
    int64_t far = UPPER(2) + 65536 * 7 + 9;
    assert_ok(positions_add(p, &far, 1, &err));
    assert_ok(positions_write(p, &bytes, &err));
    const uint8_t want[] = {
        2,    0,    0,  0, 0,    0,    0, 0,          /* two bitmaps */
        0,    0,    0,  0,                            /* upper half 0 */
        0x3b, 0x30, 0,  0, 1,    0,    0, 0x87, 0x13, /* one container, a run one, of 5000 */
        1,    0,    10, 0, 0x87, 0x13,                /* one run: 10 and 4999 more */
        2,    0,    0,  0,                            /* upper half 2 */
        0x3a, 0x30, 0,  0, 1,    0,    0, 0,    7,    0, 0, 0, /* one container, key 7, one value */
        16,   0,    0,  0, 9,    0};                           /* its offset and its value */
    assert_int_equal(bytes.len, sizeof want);
    assert_memory_equal(bytes.data, want, sizeof want);
    buf_release(&bytes);
    positions_free(p);
    test_env_done(env);
}

/* A document of one bitmap for upper half 0. */
static void check_refused(tarn_env *env, const uint8_t *bitmap, size_t len, const char *word) {
    uint8_t bytes[256] = {1};
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *p = NULL;
    memcpy(bytes + 12, bitmap, len);
    assert_code(positions_read(env, bytes, 12 + len, &p, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, word));
    assert_null(p);
}

static void test_refused(void **state) {
    (void)state;
    tarn_env *env = test_env();
    const uint8_t falling[] = {0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 9, 0, 9, 0};
    check_refused(env, falling, sizeof falling, "did not rise");
    const uint8_t offset[] = {0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 9, 0};
    check_refused(env, offset, sizeof offset, "offset");
    const uint8_t keys[] = {0x3a, 0x30, 0,  0, 2, 0, 0,  0, 1, 0, 0, 0, 1, 0,
                            0,    0,    24, 0, 0, 0, 26, 0, 0, 0, 1, 0, 1, 0};
    check_refused(env, keys, sizeof keys, "keys");
    const uint8_t many[] = {0x3a, 0x30, 0, 0, 1, 0, 1, 0};
    check_refused(env, many, sizeof many, "65536");
    const uint8_t cookie[] = {0x3c, 0x30, 0, 0, 1, 0, 0, 0};
    check_refused(env, cookie, sizeof cookie, "cookie");
    const uint8_t bitset[] = {0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 255, 255, 16, 0, 0, 0, 1, 1};
    check_refused(env, bitset, sizeof bitset, "bitset");
    const uint8_t count[] = {0x3b, 0x30, 0, 0, 1, 0, 0, 3, 0, 1, 0, 9, 0, 2, 0};
    check_refused(env, count, sizeof count, "run container");
    const uint8_t touch[] = {0x3b, 0x30, 0, 0, 1, 0, 0, 3, 0, 2, 0, 9, 0, 1, 0, 11, 0, 1, 0};
    check_refused(env, touch, sizeof touch, "did not rise");
    const uint8_t beyond[] = {0x3b, 0x30, 0, 0, 1, 0, 0, 3, 0, 1, 0, 253, 255, 3, 0};
    check_refused(env, beyond, sizeof beyond, "did not rise");
    const uint8_t behind[] = {0x3a, 0x30, 0, 0, 0, 0, 0, 0, 0};
    check_refused(env, behind, sizeof behind, "followed");
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *p = NULL;
    const uint8_t claimed[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    assert_code(positions_read(env, claimed, 8, &p, &err), TARN_CORRUPT);
    const uint8_t twice[] = {2, 0, 0, 0, 0, 0, 0, 0, 1,    0,    0, 0, 0x3a, 0x30, 0, 0,
                             0, 0, 0, 0, 1, 0, 0, 0, 0x3a, 0x30, 0, 0, 0,    0,    0, 0};
    assert_code(positions_read(env, twice, sizeof twice, &p, &err), TARN_CORRUPT);
    uint8_t rising[sizeof twice];
    memcpy(rising, twice, sizeof rising);
    rising[20] = 2; /* empty bitmaps between, as Iceberg writes them */
    assert_ok(positions_read(env, rising, sizeof rising, &p, &err));
    check_same(p, NULL, 0);
    positions_free(p);
    test_env_done(env);
}

/* What is read after any damage is a sound set: it is listed in order and written again. */
static void check_damaged(tarn_env *env, const uint8_t *bytes, size_t len) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *p = NULL;
    uint8_t *exact = test_malloc(len + 1); /* so that a byte too far is found */
    uint8_t *tight = exact + 1;
    memcpy(tight, bytes, len);
    tarn_code code = positions_read(env, tight, len, &p, &err);
    if (code == TARN_OK) {
        int64_t n = positions_count(p);
        int64_t *list = test_malloc((size_t)(n + 1) * sizeof *list);
        positions_list(p, list);
        for (int64_t i = 1; i < n; i++) {
            assert_true(list[i - 1] < list[i]);
        }
        check_bytes(env, p, list, (size_t)n);
        test_free(list);
        positions_free(p);
    } else {
        assert_int_equal(code, TARN_CORRUPT);
    }
    test_free(exact);
}

static void test_damaged(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_positions *p = NULL;
    tarn_buf bytes;
    buf_init(&bytes, env, 0);
    assert_ok(positions_new(env, &p, &err));
    for (int64_t i = 0; i < 5000; i++) { /* a bitset, runs and arrays in two halves */
        int64_t at[] = {i * 13, 65536 + i, 65536 * (4 + i / 4) + i % 4 * 2, UPPER(1) + i * i * 9};
        assert_ok(positions_add(p, at, i < 20 ? 4 : 2, &err));
    }
    assert_ok(positions_write(p, &bytes, &err));
    for (size_t len = 0; len < bytes.len; len += len < 300 ? 1 : 97) {
        tarn_positions *cut = NULL;
        assert_code(positions_read(env, bytes.data, len, &cut, &err), TARN_CORRUPT);
    }
    for (size_t i = 0; i < bytes.len; i += i < 300 || i + 900 > bytes.len ? 1 : 61) {
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] ^= (uint8_t)(1 << bit);
            check_damaged(env, bytes.data, bytes.len);
            bytes.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    buf_release(&bytes);
    positions_free(p);
    test_env_done(env);
}

/* A set of n values, each far from the others. */
static tarn_code fill(tarn_env *env, int64_t n, tarn_positions **out, tarn_error *err) {
    enum { AT_ONCE = 1000 };
    int64_t values[AT_ONCE];
    tarn_positions *p = NULL;
    tarn_code code = positions_new(env, &p, err);
    for (int64_t i = 0; i < n && code == TARN_OK; i += AT_ONCE) {
        for (int64_t k = 0; k < AT_ONCE; k++) {
            values[k] = (i + k) * 400;
        }
        code = positions_add(p, values, AT_ONCE, err);
    }
    if (code != TARN_OK) {
        positions_free(p);
        return code;
    }
    *out = p;
    return TARN_OK;
}

/* Sets are counted with the env, whatever way they came, and so kept below its limit. */
static void test_counted(void **state) {
    (void)state;
    enum { N = 400000 };
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_positions *p = NULL;
    tarn_positions *again = NULL;
    tarn_buf bytes;
    buf_init(&bytes, env, 0);
    assert_ok(fill(env, N, &p, &err));
    uint64_t whole = tarn_env_memory_now(env);
    assert_in_range(whole, 2 * N, 8 * N); /* two bytes a value, and parts of containers */
    assert_in_range(positions_bytes(p), whole - 200, whole);
    assert_ok(positions_write(p, &bytes, &err));
    assert_true(tarn_env_memory_peak(env) >= whole * 2); /* it makes a copy */
    assert_int_equal(tarn_env_memory_now(env) - whole, bytes.cap + 16);
    assert_ok(positions_read(env, bytes.data, bytes.len, &again, &err));
    assert_in_range(positions_bytes(again), 2 * N, whole);
    positions_free(p);
    assert_ok(positions_new(env, &p, &err));
    assert_ok(positions_add_all(p, again, &err));
    assert_in_range(positions_bytes(p), 2 * N, whole);
    assert_ok(positions_add_all(p, again, &err));
    assert_in_range(positions_bytes(p), 2 * N, whole);
    positions_free(again);
    positions_free(p);
    buf_release(&bytes);
    test_env_done(env);
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.memory_bytes = whole / 2;
    assert_ok(tarn_env_new(&options, &env, &err));
    assert_code(fill(env, N, &p, &err), TARN_NOMEM);
    assert_non_null(strstr(err.message, "row positions"));
    assert_int_equal(tarn_env_memory_now(env), 0);
    assert_ok(fill(env, N / 3, &p, &err));
    buf_init(&bytes, env, 0);
    assert_code(positions_write(p, &bytes, &err), TARN_NOMEM); /* the copy */
    buf_release(&bytes);
    positions_free(p);
    test_env_done(env);
}

static tarn_code work(tarn_env *env, tarn_error *err) {
    tarn_code code;
    tarn_positions *p = NULL;
    tarn_positions *again = NULL;
    tarn_buf bytes;
    buf_init(&bytes, env, 0);
    const int64_t values[] = {1, 2, UPPER(1), UPPER(2), UPPER(3) + 7};
    TRY(positions_new(env, &p, err));
    TRY(positions_add(p, values, 5, err));
    TRY(positions_write(p, &bytes, err));
    TRY(positions_read(env, bytes.data, bytes.len, &again, err));
    TRY(positions_add(again, values + 1, 1, err));
    TRY(positions_add_all(again, p, err));
done:
    buf_release(&bytes);
    positions_free(p);
    positions_free(again);
    return code;
}

static void test_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = work(env, &err);
        bool failed = plan.failed;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),  cmocka_unit_test(test_edges),
        cmocka_unit_test(test_layout),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_counted),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
