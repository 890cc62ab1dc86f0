/* Encodings of the Parquet writer against the reader's decoders.
 * Goal: what is encoded is decoded to the same values, for widths, lengths, runs and extremes.
 * Method: seeded random arrays of many shapes, hand-made worst cases, and hostile dictionaries. */
#include "test.h"

#include "format/parquet/decode_delta.h"
#include "format/parquet/decode_hybrid.h"
#include "format/parquet/encode.h"
#include "format/parquet/encode_dict.h"

#define N 3000

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Runs of random lengths, mostly of random values below 2^width. */
static void fill_runs(uint32_t *values, size_t n, int width) {
    for (size_t i = 0; i < n;) {
        size_t run = next_random() % 3 == 0 ? next_random() % 40 + 1 : 1;
        uint32_t v = width == 0 ? 0 : (uint32_t)(next_random() >> (64 - width));
        for (; run > 0 && i < n; run--) {
            values[i++] = v;
        }
    }
}

static void hybrid_comes_back(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    uint32_t values[N];
    uint32_t read[N];
    uint8_t narrow[N];
    uint8_t narrow_read[N];
    buf_init(&out, env, 0);
    for (int width = 0; width <= 32; width++) {
        for (size_t n = 0; n < N; n = n * 2 + 1 + next_random() % 5) {
            hybrid_reader h;
            fill_runs(values, n, width);
            buf_reset(&out);
            assert_ok(encode_hybrid_u32(&out, values, n, width, &err));
            hybrid_open(&h, out.data, out.len, width);
            assert_true(hybrid_read_u32(&h, n, read));
            assert_memory_equal(values, read, n * sizeof values[0]);
            if (width > 8) {
                continue;
            }
            for (size_t i = 0; i < n; i++) {
                narrow[i] = (uint8_t)values[i];
            }
            buf_reset(&out);
            assert_ok(encode_hybrid_u8(&out, narrow, n, width, &err));
            hybrid_open(&h, out.data, out.len, width);
            assert_true(hybrid_read_u8(&h, n, narrow_read));
            assert_memory_equal(narrow, narrow_read, n);
        }
    }
    buf_release(&out);
    test_env_done(env);
}

static void hybrid_bits_come_back(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    uint8_t bits[N / 8 + 8];
    uint32_t read[N];
    buf_init(&out, env, 0);
    for (size_t n = 0; n < N; n += 1 + next_random() % 97) {
        for (size_t i = 0; i < sizeof bits;) {
            uint8_t fill =
                (uint8_t)(next_random() % 3 == 0 ? next_random() : next_random() % 2 * 255);
            for (size_t run = next_random() % 20 + 1; run > 0 && i < sizeof bits; run--) {
                bits[i++] = fill;
            }
        }
        hybrid_reader h;
        buf_reset(&out);
        assert_ok(encode_hybrid_bits(&out, bits, n, &err));
        hybrid_open(&h, out.data, out.len, 1);
        assert_true(hybrid_read_u32(&h, n, read));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(read[i], bit_get(bits, (int64_t)i));
        }
    }
    buf_reset(&out);
    assert_ok(encode_hybrid_run(&out, 1, 1000000, 1, &err));
    assert_true(out.len <= 4);
    buf_release(&out);
    test_env_done(env);
}

/* Random walks with jumps to the ends of the type. */
static int64_t next_value(int64_t last) {
    switch (next_random() % 8) {
    case 0:
        return INT64_MAX;
    case 1:
        return INT64_MIN;
    case 2:
        return (int64_t)next_random();
    default:
        return (int64_t)((uint64_t)last + next_random() % 1000);
    }
}

static void delta_comes_back(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    static int64_t longs[N], longs_read[N];
    static int32_t ints[N], ints_read[N];
    buf_init(&out, env, 0);
    for (size_t n = 0; n < N; n += 1 + next_random() % 61) {
        for (size_t i = 0; i < n; i++) {
            longs[i] = n % 3 == 0 ? (int64_t)i * 7 : next_value(i > 0 ? longs[i - 1] : 0);
            ints[i] = (int32_t)(uint32_t)(uint64_t)longs[i];
        }
        delta_reader d;
        buf_reset(&out);
        assert_ok(encode_delta_i64(&out, longs, n, &err));
        assert_true(delta_open(&d, out.data, out.len));
        assert_int_equal(d.count, n);
        assert_true(delta_read_i64(&d, n, longs_read));
        assert_memory_equal(longs, longs_read, n * sizeof longs[0]);
        buf_reset(&out);
        assert_ok(encode_delta_i32(&out, ints, n, &err));
        assert_true(delta_open(&d, out.data, out.len));
        assert_true(delta_read_i32(&d, n, ints_read));
        assert_memory_equal(ints, ints_read, n * sizeof ints[0]);
        assert_ptr_equal(delta_find_end(&d), out.data + out.len);
    }
    buf_release(&out);
    test_env_done(env);
}

static void byte_arrays_come_back(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    tarn_buf scratch;
    static uint32_t offsets[N + 1];
    static uint8_t bytes[N * 12];
    static uint8_t again[N * 12];
    static int32_t prefixes[N], lengths[N];
    buf_init(&out, env, 0);
    buf_init(&scratch, env, 0);
    for (size_t n = 0; n < N; n = n * 3 + 1) {
        for (size_t i = 0; i < n; i++) {
            uint32_t len = (uint32_t)(next_random() % 12);
            offsets[i + 1] = offsets[i] + len;
            for (uint32_t k = 0; k < len; k++) {
                bytes[offsets[i] + k] = (uint8_t)('a' + (k < 9 ? 0 : next_random() % 26));
            }
        }
        delta_reader d;
        buf_reset(&out);
        assert_ok(encode_delta_bytes(&out, offsets, bytes, n, &scratch, &err));
        assert_true(delta_open(&d, out.data, out.len));
        assert_true(delta_read_i32(&d, n, prefixes));
        const uint8_t *at = delta_find_end(&d);
        assert_true(delta_open(&d, at, (size_t)(out.data + out.len - at)));
        assert_true(delta_read_i32(&d, n, lengths));
        at = delta_find_end(&d);
        for (size_t i = 0; i < n; i++) { /* undo the front coding */
            uint8_t *to = again + offsets[i];
            if (i > 0) {
                memmove(to, again + offsets[i - 1], (size_t)prefixes[i]);
            }
            memcpy(to + prefixes[i], at, (size_t)lengths[i]);
            at += lengths[i];
            assert_int_equal(prefixes[i] + lengths[i], offsets[i + 1] - offsets[i]);
        }
        assert_ptr_equal(at, out.data + out.len);
        assert_memory_equal(again, bytes, offsets[n]);
        buf_reset(&out);
        assert_ok(encode_delta_length(&out, offsets, bytes, n, &err));
        assert_true(delta_open(&d, out.data, out.len));
        assert_true(delta_read_i32(&d, n, lengths));
        assert_memory_equal(delta_find_end(&d), bytes, offsets[n]);
    }
    buf_release(&out);
    buf_release(&scratch);
    test_env_done(env);
}

static void streams_are_split(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    buf_init(&out, env, 0);
    assert_ok(encode_stream_split(&out, (const uint8_t *)"abcdABCD1234", 3, 4, &err));
    assert_int_equal(out.len, 12);
    assert_memory_equal(out.data, "aA1bB2cC3dD4", 12);
    buf_release(&out);
    test_env_done(env);
}

static void dictionary_finds_every_value(void **unused) {
    (void)unused;
    static const size_t widths[] = {4, 8, 1, 3, 12, 16, 40};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    static uint8_t values[N * 40];
    static uint32_t indices[N];
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        encode_dict dict;
        tarn_buf back;
        size_t width = widths[w];
        size_t taken = 0;
        encode_dict_init(&dict, env, width, 1 << 20);
        buf_init(&back, env, 0);
        for (size_t i = 0; i < N; i++) {
            uint64_t v = next_random() % 700;
            memset(values + i * width, 0, width);
            memcpy(values + i * width + (width > 8 ? width - 8 : 0), &v, width < 8 ? width : 8);
        }
        assert_ok(encode_dict_fixed(&dict, values, N, indices, &taken, &err));
        assert_int_equal(taken, N);
        assert_true(dict.count <= 700);
        assert_ok(encode_dict_expand(&dict, indices, N, &back, &err));
        assert_memory_equal(back.data, values, N * width);
        buf_release(&back);
        encode_dict_reset(&dict);
        assert_int_equal(dict.count, 0);
        assert_ok(encode_dict_fixed(&dict, values, 10, indices, &taken, &err));
        assert_memory_equal(encode_dict_value(&dict, indices[9]).data, values + 9 * width, width);
        encode_dict_release(&dict);
    }
    test_env_done(env);
}

static void dictionary_of_strings(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    static int32_t offsets[N + 1];
    static uint8_t bytes[N * 40];
    static uint32_t indices[N];
    encode_dict dict;
    size_t taken = 0;
    encode_dict_init(&dict, env, 0, 30000);
    for (size_t i = 0; i < N; i++) {
        size_t len = next_random() % 40;
        offsets[i + 1] = offsets[i] + (int32_t)len;
        memset(bytes + offsets[i], (int)('a' + next_random() % 2), len);
    }
    assert_ok(encode_dict_bytes(&dict, offsets, bytes, N, indices, &taken, &err));
    assert_int_equal(taken, N);
    assert_int_equal(dict.count, 79); /* the empty one, and 39 lengths of a and of b */
    for (size_t i = 0; i < N; i++) {
        tarn_str value = str_make(bytes + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
        assert_true(str_eq(encode_dict_value(&dict, indices[i]), value));
    }
    encode_dict_release(&dict);
    /* full: stops at a value, and what came before stays right */
    encode_dict_init(&dict, env, 0, 100);
    assert_ok(encode_dict_bytes(&dict, offsets, bytes, N, indices, &taken, &err));
    assert_true(taken < N);
    assert_true(dict.values.len <= 100);
    encode_dict_release(&dict);
    test_env_done(env);
}

/* Values chosen so that all probes begin at one slot: the dictionary gives up instead of crawling.
 */
static void dictionary_refuses_hostile_values(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    encode_dict dict;
    static uint32_t values[4000];
    static uint32_t indices[4000];
    size_t n = 0;
    size_t taken = 0;
    encode_dict_init(&dict, env, 4, 1 << 20);
    for (uint32_t v = 0; n < 4000 && v < 200000000; v++) {
        uint64_t slot = (v * UINT64_C(0x9E3779B97F4A7C15)) >> 32 & 0x3fff;
        if (slot == 0) {
            values[n++] = v;
        }
    }
    assert_ok(encode_dict_fixed(&dict, (const uint8_t *)values, n, indices, &taken, &err));
    assert_true(taken < n);
    encode_dict_release(&dict);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hybrid_comes_back),
        cmocka_unit_test(hybrid_bits_come_back),
        cmocka_unit_test(delta_comes_back),
        cmocka_unit_test(byte_arrays_come_back),
        cmocka_unit_test(streams_are_split),
        cmocka_unit_test(dictionary_finds_every_value),
        cmocka_unit_test(dictionary_of_strings),
        cmocka_unit_test(dictionary_refuses_hostile_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
