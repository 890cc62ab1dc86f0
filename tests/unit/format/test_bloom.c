/* bloom.c. Goal: what was added is found, what was not is mostly missed at the rate that was asked
 * for, and bytes go both ways. Method: many values; a known hash; damaged headers. */
#include "../../test.h"

#include "format/parquet/bloom.h"

static void test_add_and_probe(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    parquet_bloom bloom = {0}, again = {0};
    tarn_buf bytes;
    const size_t size = bloom_size_bytes(10000, 0.01, 1 << 20);
    assert_int_equal(size, 16384);
    assert_int_equal(bloom_size_bytes(0, 0.01, 1 << 20), BLOOM_MIN_BYTES);
    assert_int_equal(bloom_size_bytes(UINT64_MAX, 0.01, 1000), 512);
    assert_ok(bloom_init(&bloom, env, size, &err));
    for (int64_t i = 0; i < 10000; i++) {
        bloom_add(&bloom, bloom_hash(&i, sizeof i));
    }
    buf_init(&bytes, env, 0);
    assert_ok(bloom_put(&bloom, &bytes, &err));
    size_t header = 0, bits = 0;
    assert_ok(bloom_header(buf_str(&bytes), &header, &bits, &err));
    assert_int_equal(bits, size);
    assert_int_equal(header + bits, bytes.len);
    assert_ok(bloom_get(&again, env, str_make(bytes.data + header, bits), &err));
    int64_t wrong = 0;
    for (int64_t i = 0; i < 30000; i++) {
        const bool hit = bloom_may_hold(&again, bloom_hash(&i, sizeof i));
        assert_true(hit || i >= 10000);
        wrong += hit && i >= 10000;
    }
    assert_true(wrong < 400); /* 1% of 20000 is 200 */
    bloom_release(&bloom);
    bloom_release(&again);
    bloom_release(&again);
    buf_release(&bytes);
    test_env_done(env);
}

static void test_hash(void **state) {
    (void)state;
    /* xxHash64 of nothing, seed 0, as its specification gives it. */
    assert_true(bloom_hash("", 0) == UINT64_C(0xef46db3751d8e999));
}

static void test_bad_headers(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    size_t header = 0, bits = 0;
    /* num_bytes 32, then the three unions with their member 1 */
    assert_ok(bloom_header(STR("\x15\x40\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"),
                           &header, &bits, &err));
    assert_int_equal(bits, 32);
    assert_code(bloom_header(STR("\x15\x40\x1c\x2c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"),
                             &header, &bits, &err),
                TARN_UNSUPPORTED);
    assert_code(bloom_header(STR("\x15\x42\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x1c\x1c\x00\x00\x00"),
                             &header, &bits, &err),
                TARN_CORRUPT); /* 33 bytes */
    assert_code(bloom_header(STR("\x15\x40"), &header, &bits, &err), TARN_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_add_and_probe),
                                       cmocka_unit_test(test_hash),
                                       cmocka_unit_test(test_bad_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
