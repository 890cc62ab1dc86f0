/* decode_hybrid.c and decode_delta.c. Goal: what our encoders write is read again in any pieces, at
 * every width; cut bytes end in false, never beyond the end. Method: random runs through both, read
 * in pieces of random size from memory of exact size (so that the sanitizer sees a read too far).
 */
#include "../../test.h"

#include "format/parquet/decode_delta.h"
#include "format/parquet/decode_hybrid.h"
#include "format/parquet/encode.h"

static uint64_t seed = 1;
static uint64_t next_random(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 31;
}

/* A copy that ends where the heap block ends. */
static uint8_t *exact_copy(const tarn_buf *buf) {
    uint8_t *copy = malloc(buf->len + 1);
    assert_non_null(copy);
    memcpy(copy + 1, buf->data, buf->len);
    return copy;
}

#define N 2000

static void make_values(uint32_t *values, int width) {
    const uint64_t mask = width == 32 ? UINT32_MAX : (UINT64_C(1) << width) - 1;
    for (size_t i = 0; i < N;) {
        const bool run = next_random() % 3 == 0;
        const uint32_t v = (uint32_t)(next_random() & mask);
        for (size_t k = next_random() % 50 + 1; k > 0 && i < N; k--) {
            values[i++] = run ? v : (uint32_t)(next_random() & mask);
        }
    }
}

static void test_hybrid_widths(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    static uint32_t values[N], got[N];
    for (int width = 0; width <= 32; width++) {
        tarn_buf buf;
        hybrid_reader h;
        buf_init(&buf, env, 0);
        make_values(values, width);
        assert_ok(encode_hybrid_u32(&buf, values, N, width, &err));
        uint8_t *bytes = exact_copy(&buf);
        hybrid_open(&h, bytes + 1, buf.len, width);
        for (size_t at = 0; at < N;) {
            size_t n = next_random() % 70;
            n = n < N - at ? n : N - at;
            if (next_random() % 4 == 0) {
                assert_true(hybrid_skip(&h, n));
                memcpy(got + at, values + at, n * sizeof *got);
            } else {
                assert_true(hybrid_read_u32(&h, n, got + at));
            }
            at += n;
        }
        assert_memory_equal(got, values, sizeof values);
        for (size_t cut = 0; cut < buf.len && width > 0; cut += 7) {
            uint8_t *cut_bytes = malloc(cut + 1);
            memcpy(cut_bytes + 1, bytes + 1, cut);
            hybrid_open(&h, cut_bytes + 1, cut, width);
            (void)hybrid_read_u32(&h, N, got);
            free(cut_bytes);
        }
        free(bytes);
        buf_release(&buf);
    }
    test_env_done(env);
}

static void test_hybrid_bits(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    static uint32_t values[N];
    static uint8_t levels[N], bits[N / 8 + 2];
    tarn_buf buf;
    hybrid_reader h;
    buf_init(&buf, env, 0);
    make_values(values, 1);
    assert_ok(encode_hybrid_u32(&buf, values, N, 1, &err));
    uint8_t *bytes = exact_copy(&buf);
    hybrid_open(&h, bytes + 1, buf.len, 1);
    int64_t total = 0, want = 0;
    for (int64_t at = 0; at < N;) {
        int64_t n = (int64_t)(next_random() % 90), set = 0;
        n = n < N - at ? n : N - at;
        assert_true(hybrid_read_bits(&h, (size_t)n, bits, at, &set));
        total += set;
        at += n;
    }
    hybrid_open(&h, bytes + 1, buf.len, 1);
    assert_true(hybrid_read_u8(&h, N, levels));
    for (int64_t i = 0; i < N; i++) {
        assert_int_equal(bit_get(bits, i), values[i]);
        assert_int_equal(levels[i], values[i]);
        want += values[i];
    }
    assert_int_equal(total, want);
    assert_false(hybrid_read_u8(&h, 9, levels)); /* a group is padded with seven at most */
    free(bytes);
    buf_release(&buf);
    test_env_done(env);
}

static void test_hybrid_damage(void **state) {
    (void)state;
    uint32_t out[16];
    hybrid_reader h;
    hybrid_open(&h, (const uint8_t *)"\x10\x09", 2, 3); /* a run of 9 in 3 bits */
    assert_false(hybrid_read_u32(&h, 1, out));
    hybrid_open(&h, (const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x55", 11, 1);
    assert_true(hybrid_read_u32(&h, 8, out)); /* claims much more than is there */
    assert_false(hybrid_read_u32(&h, 1, out));
}

static void test_msb_levels(void **state) {
    (void)state;
    /* Encodings.md: 0..7 in three bits are 00000101 00111001 01110111. */
    static const uint8_t bytes[] = {0x05, 0x39, 0x77};
    uint8_t out[8];
    unpack_msb_u8(bytes, 0, 3, 8, out);
    for (uint8_t i = 0; i < 8; i++) {
        assert_int_equal(out[i], i);
    }
}

static void test_delta(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    static int64_t values[N], got[N];
    static int32_t narrow[N], narrow_got[N];
    for (int round = 0; round < 80; round++) {
        const size_t n = round < 3 ? (size_t)round : next_random() % N;
        const int shift = (int)(next_random() % 64);
        for (size_t i = 0; i < n; i++) {
            values[i] = (int64_t)(((next_random() << 33) ^ next_random()) >> shift) *
                        (next_random() % 2 == 0 ? 1 : -1);
            narrow[i] = (int32_t)values[i];
        }
        for (int kind = 0; kind < 2; kind++) {
            tarn_buf buf;
            delta_reader d;
            buf_init(&buf, env, 0);
            assert_ok(kind == 0 ? encode_delta_i64(&buf, values, n, &err)
                                : encode_delta_i32(&buf, narrow, n, &err));
            uint8_t *bytes = exact_copy(&buf);
            assert_true(delta_open(&d, bytes + 1, buf.len));
            assert_true(delta_find_end(&d) == bytes + 1 + buf.len);
            for (size_t at = 0; at < n;) {
                size_t take = next_random() % 300;
                take = take < n - at ? take : n - at;
                assert_true(kind == 0 ? delta_read_i64(&d, take, got + at)
                                      : delta_read_i32(&d, take, narrow_got + at));
                at += take;
            }
            assert_false(delta_read_i64(&d, 1, got + n));
            for (size_t i = 0; i < n; i++) {
                assert_true(kind == 0 ? got[i] == values[i] : narrow_got[i] == narrow[i]);
            }
            for (size_t cut = 0; cut < buf.len; cut += 11) {
                uint8_t *cut_bytes = malloc(cut + 1);
                memcpy(cut_bytes + 1, bytes + 1, cut);
                if (delta_open(&d, cut_bytes + 1, cut)) {
                    (void)delta_find_end(&d);
                    (void)delta_read_i64(&d, n, got);
                }
                free(cut_bytes);
            }
            free(bytes);
            buf_release(&buf);
        }
    }
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hybrid_widths), cmocka_unit_test(test_hybrid_bits),
        cmocka_unit_test(test_hybrid_damage), cmocka_unit_test(test_msb_levels),
        cmocka_unit_test(test_delta)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
