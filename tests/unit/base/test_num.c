/* Goal: varints, bitmaps, 128-bit integers and checksums are right at their edges.
 * Method: published vectors, and slow twins of the fast loops. */
#include "test.h"

#include "base/num.h"

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_varints(void **state) {
    (void)state;
    static const uint64_t values[] = {
        0,         1, 127, 128, 300, 16383, 16384, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1,
        UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint8_t bytes[10];
        size_t len = num_put_uvarint(bytes, values[i]);
        const uint8_t *p = bytes;
        uint64_t v = 0;
        assert_true(num_get_uvarint(&p, bytes + len, &v));
        assert_true(v == values[i]);
        assert_ptr_equal(p, bytes + len);
        for (size_t cut = 0; cut < len; cut++) {
            p = bytes;
            assert_false(num_get_uvarint(&p, bytes + cut, &v));
            assert_ptr_equal(p, bytes);
        }
        int64_t s = (int64_t)values[i];
        len = num_put_varint(bytes, s);
        p = bytes;
        int64_t back = 0;
        assert_true(num_get_varint(&p, bytes + len, &back));
        assert_true(back == s);
        assert_ptr_equal(p, bytes + len);
    }
    assert_int_equal(num_zigzag(-1), 1);
    assert_int_equal(num_zigzag(1), 2);
    assert_true(num_unzigzag(UINT64_MAX) == INT64_MIN);
    /* Beyond 64 bits, and beyond ten bytes. */
    uint8_t over[11];
    memset(over, 0xFF, sizeof over);
    over[9] = 0x02;
    const uint8_t *p = over;
    uint64_t v;
    assert_false(num_get_uvarint(&p, over + 10, &v));
    memset(over, 0x80, sizeof over);
    over[10] = 0x00;
    p = over;
    assert_false(num_get_uvarint(&p, over + 11, &v));
    /* Needless but legal zeros. */
    over[9] = 0x00;
    p = over;
    assert_true(num_get_uvarint(&p, over + 10, &v));
    assert_true(v == 0);
}

static void test_bitmaps(void **state) {
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 3000; round++) {
        uint8_t src[64];
        uint8_t dst[64];
        uint8_t want[64];
        for (size_t i = 0; i < 64; i++) {
            src[i] = (uint8_t)next_random(&seed);
            dst[i] = (uint8_t)next_random(&seed);
        }
        memcpy(want, dst, sizeof want);
        int64_t from = (int64_t)(next_random(&seed) % 200);
        int64_t to = (int64_t)(next_random(&seed) % 200);
        int64_t len = (int64_t)(next_random(&seed) % 300);
        int64_t count = 0;
        for (int64_t i = 0; i < len; i++) {
            bool bit = bit_get(src, from + i);
            count += bit;
            bit ? bit_set(want, to + i) : bit_clear(want, to + i);
        }
        /* On the heap and exactly as long as needed, so that ASan sees an over-read. */
        size_t need = bit_bytes(from + len);
        uint8_t *tight = malloc(need + (need == 0));
        memcpy(tight, src, need);
        bit_copy(dst, to, tight, from, len);
        assert_memory_equal(dst, want, sizeof want);
        assert_int_equal(bit_count(tight, from, len), count);
        bit_fill(tight, from, len, round % 2 == 0);
        assert_int_equal(bit_count(tight, from, len), round % 2 == 0 ? len : 0);
        for (int64_t i = 0; i < from; i++) {
            assert_int_equal(bit_get(tight, i), bit_get(src, i));
        }
        free(tight);
    }
    assert_int_equal(bit_bytes(0), 0);
    assert_int_equal(bit_bytes(9), 2);
}

static void test_int128(void **state) {
    (void)state;
    tarn_int128 v = 1;
    for (int32_t n = 0; n <= 38; n++) {
        assert_true(num_pow10_i128(n) == v);
        assert_int_equal(num_digits_i128(v), n + 1);
        assert_int_equal(num_digits_i128(-v), n + 1);
        assert_int_equal(num_digits_i128(v - 1), n == 0 ? 1 : n);
        if (n < 38) {
            v *= 10;
        }
    }
    tarn_int128 least = (tarn_int128)((tarn_uint128)1 << 127);
    assert_int_equal(num_digits_i128(least), 39);
    assert_int_equal(num_digits_i128(-(least + 1)), 39);
    static const struct {
        int64_t value;
        const char *hex;
    } cases[] = {
        {0, "00"},           {1, "01"},      {-1, "ff"},      {127, "7f"},
        {128, "0080"},       {-128, "80"},   {-129, "ff7f"},  {255, "00ff"},
        {-996953, "f0c9a7"}, {1420, "058c"}, {32767, "7fff"}, {32768, "008000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[16];
        char hex[40] = "";
        size_t len = num_put_be_i128(cases[i].value, bytes);
        for (size_t j = 0; j < len; j++) {
            (void)snprintf(hex + 2 * j, 3, "%02x", bytes[j]);
        }
        assert_string_equal(hex, cases[i].hex);
        /* Padded by its sign to any length it still is the same. */
        uint8_t padded[40];
        for (size_t pad = 0; pad + len <= sizeof padded; pad++) {
            memset(padded, cases[i].value < 0 ? 0xFF : 0, pad);
            memcpy(padded + pad, bytes, len);
            tarn_int128 back = 7;
            assert_true(num_get_be_i128(padded, pad + len, &back));
            assert_true(back == cases[i].value);
        }
    }
    uint8_t bytes[17];
    assert_int_equal(num_put_be_i128(least, bytes), 16);
    tarn_int128 back = 0;
    assert_true(num_get_be_i128(bytes, 16, &back) && back == least);
    assert_true(num_get_be_i128(bytes, 0, &back) && back == 0);
    memset(bytes, 0, sizeof bytes);
    bytes[1] = 0x80; /* 2^127 needs a 17th byte */
    assert_false(num_get_be_i128(bytes, 17, &back));
    bytes[0] = 1;
    assert_false(num_get_be_i128(bytes, 17, &back));
    num_store_i128(bytes, least + 5);
    assert_true(num_load_i128(bytes) == least + 5);
}

static void test_checksums(void **state) {
    (void)state;
    assert_int_equal(num_crc32(0, "123456789", 9), 0xCBF43926);
    assert_int_equal(num_crc32(num_crc32(0, "1234", 4), "56789", 5), 0xCBF43926);
    assert_int_equal(num_crc32(0, NULL, 0), 0);
    /* Values of the Iceberg specification, Appendix B: int 34, the string "iceberg", and others. */
    int64_t n = 34;
    assert_int_equal((int32_t)num_murmur3(&n, 8), 2017239379);
    assert_int_equal((int32_t)num_murmur3("iceberg", 7), 1210000089);
    assert_int_equal((int32_t)num_murmur3("\x00\x01\x02\x03", 4), -188683207);
    static const uint8_t decimal[] = {0x05, 0x8C}; /* 14.20 */
    assert_int_equal((int32_t)num_murmur3(decimal, 2), -500754589);
    assert_int_equal(num_murmur3("", 0), 0);
    assert_int_equal(num_murmur3("a", 1), 0x3C2569B2);
    assert_int_equal(num_murmur3("\xFF\xFF\xFF\xFF", 4), 0x76293B50);
    assert_int_equal(num_murmur3("\x21\x43\x65", 3), 0x7E4A8634);
}

static void test_divisions_and_sums(void **state) {
    (void)state;
    assert_int_equal(num_floor_div(-1, 1000), -1);
    assert_int_equal(num_floor_div(-1000, 1000), -1);
    assert_int_equal(num_floor_div(999, 1000), 0);
    assert_int_equal(num_floor_mod(-1, 1000), 999);
    assert_int_equal(num_floor_mod(-1000, 1000), 0);
    size_t size;
    int64_t v;
    assert_false(num_add_size(SIZE_MAX, 1, &size));
    assert_false(num_mul_size(SIZE_MAX / 2, 3, &size));
    assert_false(num_add_i64(INT64_MAX, 1, &v));
    assert_false(num_mul_i64(INT64_MIN, -1, &v));
    assert_true(num_mul_i64(-3, 4, &v) && v == -12);
    assert_int_equal(num_load_be32("\x01\x02\x03\x04"), 0x01020304);
    assert_true(num_load_be64("\x01\x02\x03\x04\x05\x06\x07\x08") == UINT64_C(0x0102030405060708));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_bitmaps),
        cmocka_unit_test(test_int128),
        cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_divisions_and_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
