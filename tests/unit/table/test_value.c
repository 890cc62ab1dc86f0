/* Goal: values read and write in the single-value forms of the specification, and compare right.
 * Method: the vectors of a reference implementation, then the odd inputs of B10 and of old writers
 * by hand. */
#include "test.h"

#include "table/value.h"

static size_t from_hex(const char *text, uint8_t *out) {
    size_t n = strlen(text) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return n;
}

static void check_vector(tarn_env *env, const json_value *line, tarn_arena *arena) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *type = NULL;
    tarn_value from_value;
    tarn_value from_json;
    tarn_value from_bytes;
    uint8_t bytes[512];
    tarn_str stored;
    tarn_buf text;
    json_writer w;
    char hex[1024];
    assert_ok(type_from_json(arena, json_get(line, "type"), &type, &err));
    assert_ok(value_from_json(arena, type, json_get(line, "value"), &from_value, &err));
    assert_ok(value_from_json(arena, type, json_get(line, "json"), &from_json, &err));
    assert_true(value_eq(&from_value, &from_json));
    tarn_str want = json_get(line, "binary")->text;
    assert_true(want.len < sizeof hex);
    memcpy(hex, want.data != NULL ? want.data : "", want.len);
    hex[want.len] = '\0';
    size_t n = from_hex(hex, bytes);
    assert_ok(value_from_binary(type, str_make(bytes, n), &from_bytes, &err));
    assert_true(value_eq(&from_value, &from_bytes));
    assert_true(value_hash(&from_value) == value_hash(&from_bytes));
    assert_ok(value_to_binary(arena, &from_value, &stored, &err));
    assert_int_equal(stored.len, n);
    assert_memory_equal(stored.data, bytes, n);

    /* What we write is the "value" form, which reads back the same. */
    buf_init(&text, env, 0);
    json_begin(&w, &text, false, &err);
    value_put_json(&from_value, &w);
    assert_ok(json_end(&w));
    json_value *again = NULL;
    assert_ok(json_parse(arena, buf_str(&text), "value", &again, &err));
    if (again->kind == JSON_STRING) {
        assert_true(str_eq(again->text, json_get(line, "value")->text));
    }
    assert_ok(value_from_json(arena, type, again, &from_json, &err));
    assert_true(value_eq(&from_value, &from_json));
    buf_reset(&text);
    assert_ok(value_to_text(&from_value, &text, &err));
    assert_ok(value_from_text(arena, type, buf_str(&text), &from_json, &err));
    assert_true(value_eq(&from_value, &from_json));
    buf_release(&text);
}

static void test_vectors(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    char line[8192];
    int n = 0;
    FILE *f = fopen(TARN_TEST_FIXTURES "/vectors/single_values.ndjson", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        tarn_arena arena;
        json_value *json = NULL;
        arena_init(&arena, env);
        assert_ok(json_parse(&arena, str_of(line), "vector", &json, &err));
        check_vector(env, json, &arena);
        arena_release(&arena);
        n++;
    }
    (void)fclose(f);
    assert_true(n > 200);
    test_env_done(env);
}

/* B10: values of rows.jsonl, the three refused ones of bad.jsonl, and padded bytes. */
static void test_decimals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *written;
        const char *hex;
    } good[] = {{"1E+2", "100.00", "2710"},
                {"5E+1", "50.00", "1388"},
                {"-9969.53", "-9969.53", "f0c9a7"},
                {"12.50", "12.50", "04e2"},
                {"-0.00", "0.00", "00"},
                {"1.2E1", "12.00", "04b0"},
                {"-1.28", "-1.28", "80"},
                {"99999.99", "99999.99", "0098967f"},
                {"0.1e+1", "1.00", "64"},
                {"-.5", "-0.50", "ce"},
                {"5.", "5.00", "01f4"},
                {"1e-2", "0.01", "01"},
                {"0e99999999999999999999", "0.00", "00"},
                {"1.0000000000000000000000000000000000000000000000", "1.00", "64"}};
    static const char *const bad[] = {"1.005", "1E+5", "1e400", "",    ".",      "1e",  "e1", "-",
                                      "1.2.3", "0x10", "1 ",    "NaN", "1e-400", "++1", "1e+"};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    char text[64];
    uint8_t bytes[16];
    tarn_value v;
    tarn_str stored;
    arena_init(&arena, env);
    const tarn_type *type = type_decimal(&arena, 7, 2);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(value_from_text(&arena, type, str_of(good[i].text), &v, &err));
        (void)value_format_decimal(v.as.i128, 2, text);
        assert_string_equal(text, good[i].written);
        assert_ok(value_to_binary(&arena, &v, &stored, &err));
        assert_int_equal(stored.len, from_hex(good[i].hex, bytes));
        assert_memory_equal(stored.data, bytes, stored.len);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (value_from_text(&arena, type, str_of(bad[i]), &v, &err) != TARN_INVALID) {
            fail_msg("%s was taken as decimal(7, 2)", bad[i]);
        }
    }
    assert_ok(value_from_binary(type, str_make("\xff\xff\xff\xff\xf0\xc9\xa7", 7), &v, &err));
    assert_true(v.as.i128 == -996953);
    assert_code(value_from_binary(type, STR_NULL, &v, &err), TARN_CORRUPT);
    arena_release(&arena);
    test_env_done(env);
}

static void test_promoted_binary(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_value v;
    float f = 1.5f;
    assert_ok(
        value_from_binary(type_primitive(TARN_LONG), str_make("\xfe\xff\xff\xff", 4), &v, &err));
    assert_true(v.as.i64 == -2);
    assert_ok(value_from_binary(type_primitive(TARN_DOUBLE), str_make(&f, 4), &v, &err));
    assert_true(v.as.f64 == 1.5);
    assert_ok(value_from_binary(type_primitive(TARN_TIMESTAMP), str_make("\1\0\0\0", 4), &v, &err));
    assert_true(v.as.i64 == INT64_C(86400000000));
    assert_code(
        value_from_binary(type_primitive(TARN_TIMESTAMPTZ), str_make("\1\0\0\0", 4), &v, &err),
        TARN_CORRUPT);
    assert_code(value_from_binary(type_primitive(TARN_INT), str_make("\1\0", 2), &v, &err),
                TARN_CORRUPT);
}

static void test_order(void **state) {
    (void)state;
    const tarn_type *type = type_primitive(TARN_DOUBLE);
    double order[] = {-__builtin_inf(), -1, -0.0, 0.0, 1, __builtin_inf(), __builtin_nan("")};
    for (size_t i = 0; i < 7; i++) {
        for (size_t j = 0; j < 7; j++) {
            tarn_value a = value_null(type);
            tarn_value b = value_null(type);
            a.is_null = b.is_null = false;
            a.as.f64 = order[i];
            b.as.f64 = order[j];
            assert_int_equal(value_cmp(&a, &b), (i > j) - (i < j));
        }
    }
    tarn_value x = value_str(type_primitive(TARN_STRING), STR("z"));
    tarn_value y = value_str(type_primitive(TARN_STRING), STR("\xc3\xa9"));
    assert_true(value_cmp(&x, &y) < 0); /* unsigned bytes */
}

static void test_bad_text(void **state) {
    (void)state;
    static const struct {
        tarn_kind kind;
        const char *text;
    } bad[] = {{TARN_INT, "2147483648"},
               {TARN_INT, "1.0"},
               {TARN_INT, ""},
               {TARN_LONG, "9223372036854775808"},
               {TARN_DATE, "2020-02-30"},
               {TARN_TIME, "24:00:00"},
               {TARN_TIMESTAMP, "2020-01-01T00:00:00Z"},
               {TARN_TIMESTAMP, "2020-01-01T00:00:00.0000001"},
               {TARN_STRING, "\xff"},
               {TARN_BINARY, "abc"},
               {TARN_BINARY, "zz"},
               {TARN_UUID, "1234"},
               {TARN_BOOLEAN, "yes"},
               {TARN_FLOAT, "1.5x"},
               {TARN_TIMESTAMP_NS, "2263-01-01T00:00:00"}};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_value v;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (value_from_text(&arena, type_primitive(bad[i].kind), str_of(bad[i].text), &v, &err) !=
            TARN_INVALID) {
            fail_msg("\"%s\" was taken as %s", bad[i].text, type_kind_name(bad[i].kind));
        }
    }
    assert_ok(value_from_text(&arena, type_primitive(TARN_TIMESTAMPTZ),
                              STR("2020-01-01T01:00:00+01:00"), &v, &err));
    assert_true(v.as.i64 == INT64_C(1577836800000000));
    assert_ok(value_from_text(&arena, type_primitive(TARN_TIMESTAMPTZ), STR("2020-01-01 00:00"), &v,
                              &err));
    assert_true(v.as.i64 == INT64_C(1577836800000000));
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),         cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_promoted_binary), cmocka_unit_test(test_order),
        cmocka_unit_test(test_bad_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
