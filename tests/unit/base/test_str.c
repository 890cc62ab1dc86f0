/* Goal: slices, numbers in text and UTF-8 are right at their edges, whatever the locale is.
 * Method: vectors, and random floats held against the C library both ways. */
#include "test.h"

#include <locale.h>
#include <math.h>

#include "base/str.h"

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void test_slices(void **state) {
    (void)state;
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("a\xFF"), STR("a\x01")) > 0);
    assert_true(str_cmp(STR("a"), STR("aa")) < 0);
    assert_true(str_cmp(STR_NULL, STR("")) == 0);
    assert_true(str_starts_with(STR("abc"), STR("ab")) && str_starts_with(STR("abc"), STR_NULL));
    assert_false(str_starts_with(STR("a"), STR("ab")));
    assert_true(str_ends_with(STR("abc"), STR("bc")) && str_ends_with(STR("abc"), STR("")));
    assert_false(str_ends_with(STR("c"), STR("bc")));
    assert_true(str_eq_nocase(STR("aBc1"), STR("AbC1")));
    assert_false(str_eq_nocase(STR("a["), STR("A{")));
    size_t at = 9;
    assert_true(str_find_char(STR("abcb"), 'b', &at) && at == 1);
    assert_true(str_find_last_char(STR("abcb"), 'b', &at) && at == 3);
    assert_false(str_find_char(STR("abc"), 'x', &at) || str_find_last_char(STR_NULL, 'x', &at));
    assert_true(str_is(str_trim(STR(" \t\r\n a b\n")), "a b"));
    assert_int_equal(str_trim(STR("   ")).len, 0);
    tarn_str rest = STR("a,,b,");
    tarn_str piece;
    static const char *const pieces[] = {"a", "", "b", ""};
    for (size_t i = 0; i < 4; i++) {
        assert_true(str_split(&rest, ',', &piece));
        assert_true(str_is(piece, pieces[i]));
    }
    assert_false(str_split(&rest, ',', &piece));
    assert_int_equal(str_sub(STR("abc"), 5, 1).len, 0);
    assert_true(str_is(str_sub(STR("abc"), 1, SIZE_MAX), "bc"));
    assert_true(str_hash(STR("a")) != str_hash(STR("b")));
    assert_true(str_hash(STR_NULL) == str_hash(STR("")));
}

static void test_whole_numbers(void **state) {
    (void)state;
    int64_t i64 = 5;
    int32_t i32;
    uint64_t u64;
    bool b;
    char out[24];
    assert_true(str_to_i64(STR("9223372036854775807"), &i64) && i64 == INT64_MAX);
    assert_true(str_to_i64(STR("-9223372036854775808"), &i64) && i64 == INT64_MIN);
    assert_int_equal(str_from_i64(i64, out), 20);
    assert_string_equal(out, "-9223372036854775808");
    assert_true(str_to_i64(STR("+007"), &i64) && i64 == 7);
    assert_true(str_to_u64(STR("18446744073709551615"), &u64) && u64 == UINT64_MAX);
    assert_true(str_to_i32(STR("-2147483648"), &i32) && i32 == INT32_MIN);
    static const char *const bad[] = {
        "",
        "+",
        "-",
        "--1",
        "1 ",
        " 1",
        "1.0",
        "0x1",
        "1e3",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "\xD9\xA1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(str_to_i64(str_of(bad[i]), &i64));
    }
    assert_false(str_to_i64(STR_NULL, &i64) || str_to_u64(STR_NULL, &u64));
    assert_false(str_to_i32(STR("2147483648"), &i32));
    assert_false(str_to_u64(STR("18446744073709551616"), &u64));
    assert_false(str_to_u64(STR("-1"), &u64));
    assert_true(str_to_bool(STR("TrUe"), &b) && b);
    assert_true(str_to_bool(STR("false"), &b) && !b);
    assert_false(str_to_bool(STR("t"), &b) || str_to_bool(STR("1"), &b));
    assert_int_equal(str_from_i64(0, out), 1);
}

static void test_float_vectors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
        const char *shortest;
    } cases[] = {
        {"0", 0.0, "0.0"},
        {"-0.0", -0.0, "-0.0"},
        {"1", 1.0, "1.0"},
        {"0.1", 0.1, "0.1"},
        {"+.5", 0.5, "0.5"},
        {"5.", 5.0, "5.0"},
        {"100", 100.0, "100.0"},
        {"123456.789", 123456.789, "123456.789"},
        {"1e15", 1e15, "1000000000000000.0"},
        {"1E16", 1e16, "1e16"},
        {"1e23", 1e23, "1e23"},
        {"9007199254740993", 9007199254740992.0, "9007199254740992.0"},
        {"9007199254740993.00000000000000000000000000001", 9007199254740994.0,
         "9007199254740994.0"},
        {"0.00001", 1e-5, "0.00001"},
        {"0.000001", 1e-6, "1e-6"},
        {"1.7976931348623157e308", 0x1.fffffffffffffp1023, "1.7976931348623157e308"},
        {"1."
         "7976931348623158079372897140530341507993413271003782693617377898044496829276475094664e30"
         "8",
         0x1.fffffffffffffp1023, "1.7976931348623157e308"},
        {"4.9e-324", 0x1p-1074, "5e-324"},
        {"2.5e-324", 0x1p-1074, "5e-324"},
        {"2.4e-324", 0.0, "0.0"},
        {"2.4703282292062327208828439643411068618252e-324", 0.0, "0.0"},
        {"2.4703282292062327208828439643411068618253e-324", 0x1p-1074, "5e-324"},
        {"2.2250738585072014e-308", 0x1p-1022, "2.2250738585072014e-308"},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022, "2.225073858507201e-308"},
        {"5.684341886080802e-14", 0x1p-44, "5.684341886080802e-14"},
        {"1e-400", 0.0, "0.0"},
        {"0e999999999999999999999", 0.0, "0.0"},
        {"1e-999999999999999999999", 0.0, "0.0"},
        {"0.000000000000000000000000000000000000000000000000000000000001e60", 1.0, "1.0"},
        {"100000000000000000000000000000000000000000000000000e-50", 1.0, "1.0"},
        {"Infinity", (double)INFINITY, "Infinity"},
        {"-inf", -(double)INFINITY, "-Infinity"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v = 7;
        char out[32];
        assert_true(str_to_f64(str_of(cases[i].text), &v));
        if (memcmp(&v, &cases[i].value, sizeof v) != 0) {
            fail_msg("%s: %a", cases[i].text, v);
        }
        size_t len = str_from_f64(v, out);
        assert_string_equal(out, cases[i].shortest);
        assert_int_equal(len, strlen(out));
    }
    double v = 0;
    char out[32];
    assert_true(str_to_f64(STR("NaN"), &v) && isnan(v));
    assert_int_equal(str_from_f64(v, out), 3);
    static const char *const bad[] = {
        "",    ".",    "-",       "+",      "e5",
        "1e",  "1e+",  "1.2.3",   "0x10",   "1_0",
        "1,5", " 1",   "1 ",      "nan(1)", "infinit",
        "--1", "1e5x", "1.8e308", "1e309",  "1e999999999999999999999",
        "- 1", "-.e1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float f;
        if (str_to_f64(str_of(bad[i]), &v) || str_to_f32(str_of(bad[i]), &f)) {
            fail_msg("%s", bad[i]);
        }
    }
    float f;
    assert_false(str_to_f64(STR_NULL, &v) || str_to_f32(STR_NULL, &f));
    assert_false(str_to_f32(STR("3.5e38"), &f));
    /* Rounded through double this one would be a tie and go down. */
    assert_true(str_to_f32(STR("1.00000005960464477539062500000000000000001"), &f));
    assert_true(f == 0x1.000002p0f);
    assert_true(str_to_f32(STR("1e-45"), &f) && f == 0x1p-149f);
    assert_true(str_to_f32(STR("-Infinity"), &f) && isinf(f));
    (void)str_from_f32(0.1f, out);
    assert_string_equal(out, "0.1");
    (void)str_from_f32(16777216.0f, out);
    assert_string_equal(out, "16777216.0");
    (void)str_from_f32(3.4028235e38f, out);
    assert_string_equal(out, "3.4028235e38");
    (void)str_from_f32(-(float)INFINITY, out);
    assert_string_equal(out, "-Infinity");
}

static int count_digits(const char *text) {
    int digits = 0;
    int zeros = 0;
    for (const char *p = text; *p != '\0' && *p != 'e'; p++) {
        if (*p < '0' || *p > '9' || (digits == 0 && *p == '0')) {
            continue;
        }
        digits++;
        zeros = *p == '0' ? zeros + 1 : 0;
    }
    return digits - zeros;
}

static void check_f64(double v, uint64_t *seed) {
    char ours[32];
    char theirs[64];
    double back = 0;
    size_t len = str_from_f64(v, ours);
    assert_true(str_to_f64(str_make(ours, len), &back));
    assert_memory_equal(&back, &v, sizeof v);
    int digits = 1;
    do {
        (void)snprintf(theirs, sizeof theirs, "%.*e", digits - 1, v);
    } while (strtod(theirs, NULL) != v && ++digits < 18);
    assert_true(count_digits(ours) <= digits);
    /* Halfway to the next one, exactly and cut somewhere. */
    char text[1200];
    long double half = ((long double)v + (long double)nextafter(v, 1e308)) / 2;
    (void)snprintf(text, sizeof text, "%.*Le", (int)(next_random(seed) % 900), half);
    double want = strtod(text, NULL);
    if (isfinite(want)) {
        assert_true(str_to_f64(str_of(text), &back));
        assert_memory_equal(&back, &want, sizeof back);
    }
}

static void check_f32(float v, uint64_t *seed) {
    char ours[32];
    float back = 0;
    size_t len = str_from_f32(v, ours);
    assert_true(str_to_f32(str_make(ours, len), &back));
    assert_memory_equal(&back, &v, sizeof v);
    char theirs[64];
    int digits = 1;
    do {
        (void)snprintf(theirs, sizeof theirs, "%.*e", digits - 1, (double)v);
    } while (strtof(theirs, NULL) != v && ++digits < 10);
    assert_true(count_digits(ours) <= digits);
    char text[300];
    double half = ((double)v + (double)nextafterf(v, 1e38f)) / 2;
    (void)snprintf(text, sizeof text, "%.*e", (int)(next_random(seed) % 200), half);
    float want = strtof(text, NULL);
    if (isfinite(want)) {
        assert_true(str_to_f32(str_of(text), &back));
        assert_memory_equal(&back, &want, sizeof back);
    }
}

static void test_random_floats(void **state) {
    (void)state;
    uint64_t seed = UINT64_C(88172645463325252);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        if (i % 4 == 1) {
            bits &= (UINT64_C(1) << (next_random(&seed) % 63 + 1)) - 1;
        } else if (i % 4 == 2) {
            bits &= ~((UINT64_C(1) << (next_random(&seed) % 53)) - 1);
        }
        double v;
        memcpy(&v, &bits, sizeof v);
        if (i % 4 == 3) {
            v = (double)(int64_t)(bits >> 34) / pow(10, (double)(bits % 10));
        }
        if (isfinite(v)) {
            check_f64(v, &seed);
        }
        float f;
        uint32_t low = (uint32_t)bits;
        memcpy(&f, &low, sizeof f);
        if (isfinite(f)) {
            check_f32(f, &seed);
        }
    }
}

static void test_no_locale(void **state) {
    (void)state;
    /* A locale with a decimal comma, where the machine has one. */
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    for (size_t i = 0; i < 3 && setlocale(LC_ALL, names[i]) == NULL; i++) {
    }
    double v = 0;
    char out[32];
    assert_true(str_to_f64(STR("1234567890.12345678901"), &v));
    (void)str_from_f64(v, out);
    assert_string_equal(out, "1234567890.1234567");
    (void)setlocale(LC_ALL, "C");
}

static void test_utf8(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"", true},
        {"plain", true},
        {"\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", true},
        {"\xED\x9F\xBF\xEE\x80\x80", true},
        {"\x80", false},
        {"\xC0\x80", false},
        {"\xC1\xBF", false},
        {"\xE0\x9F\xBF", false},
        {"\xED\xA0\x80", false},
        {"\xF0\x8F\xBF\xBF", false},
        {"\xF4\x90\x80\x80", false},
        {"\xF5\x80\x80\x80", false},
        {"\xC2", false},
        {"\xE1\x80", false},
        {"\xF1\x80\x80", false},
        {"\xE1\x80\x41", false},
        {"\xFF", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* At every place around the wide loop, in a block as long as the text. */
        size_t len = strlen(cases[i].text);
        for (size_t before = 0; before < 40; before++) {
            for (size_t after = 0; after < 40; after += 13) {
                size_t total = before + len + after;
                char *text = malloc(total + (total == 0));
                memset(text, 'a', total);
                memcpy(text + before, cases[i].text, len);
                assert_int_equal(str_utf8_valid(str_make(text, total)), cases[i].valid);
                free(text);
            }
        }
    }
    tarn_str s = STR("a\xC3\xA9\xF0\x9F\x98\x80z");
    assert_int_equal(str_utf8_prefix(s, 0), 0);
    assert_int_equal(str_utf8_prefix(s, 2), 3);
    assert_int_equal(str_utf8_prefix(s, 3), 7);
    assert_int_equal(str_utf8_prefix(s, 99), 8);
    for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x900 || (c > 0xD700 && c < 0xE100) ? 1 : 251) {
        char bytes[4];
        size_t len = str_utf8_put(c, bytes);
        size_t at = 0;
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        assert_int_equal(str_utf8_next(str_make(bytes, len), &at), surrogate ? 0xFFFD : c);
        assert_int_equal(at, len);
    }
    char bytes[4];
    assert_int_equal(str_utf8_put(0x110000, bytes), 3);
    size_t at = 0;
    assert_int_equal(str_utf8_next(STR("\xF0\x9F\x98"), &at), 0xFFFD);
    assert_int_equal(at, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_float_vectors), cmocka_unit_test(test_random_floats),
        cmocka_unit_test(test_no_locale),     cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
