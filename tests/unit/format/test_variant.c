/* Goal: a variant's bytes become the JSON that they are, JSON becomes the bytes that the encoding
 * asks for, and damaged bytes are told, never believed.
 * Method: bytes written out by hand from the specification (VariantEncoding.md), both ways; then
 * every cut and every byte changed. */
#include "../../test.h"

#include "base/limits.h"
#include "format/variant/variant.h"

#define NO_NAMES "010000"
#define BYTES    4096

static tarn_str unhex(const char *hex, uint8_t *out) {
    size_t n = 0;
    for (; hex[2 * n] != '\0'; n++) {
        out[n] = (uint8_t)(str_hex_digit(hex[2 * n]) << 4 | str_hex_digit(hex[2 * n + 1]));
    }
    return str_make(out, n);
}

/* want NULL: refused with words. */
static void check(const char *metadata, const char *value, const char *want, const char *words) {
    uint8_t names[BYTES], bytes[BYTES];
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    buf_init(&out, env, 0);
    tarn_code code = variant_to_json(unhex(metadata, names), unhex(value, bytes), &out, &err);
    if (want != NULL) {
        if (code != TARN_OK || !str_is(buf_str(&out), want)) {
            fail_msg("%s: got %.*s (%s), wanted %s", value, STR_ARG(buf_str(&out)), err.message,
                     want);
        }
    } else if (code != TARN_CORRUPT || strstr(err.message, words) == NULL) {
        fail_msg("%s: got %d %s, wanted %s", value, (int)code, err.message, words);
    }
    buf_release(&out);
    test_env_done(env);
}

static void shows(const char *value, const char *want) {
    check(NO_NAMES, value, want, NULL);
}

static void refuses(const char *metadata, const char *value, const char *words) {
    check(metadata, value, NULL, words);
}

static void every_primitive_is_shown(void **state) {
    (void)state;
    shows("00", "null");
    shows("04", "true");
    shows("08", "false");
    shows("0cfb", "-5");
    shows("102c01", "300");
    shows("1400000080", "-2147483648");
    shows("18ffffffffffffff7f", "9223372036854775807");
    shows("1c00000000000002c0", "-2.25");
    shows("1c000000000000f87f", "\"NaN\"");
    shows("1c000000000000f0ff", "\"-Infinity\"");
    shows("2002d2040000", "12.34");
    shows("2000d2040000", "1234");
    shows("2409ffffffffffffffff", "-0.000000001");
    shows("282615cd5b07000000000000000000000000", "0.00000000000000000000000000000123456789");
    shows("2c79ce0000", "\"2114-09-20\"");
    shows("30d5c9e6b7f1050000", "\"1970-03-17T15:28:50.612693+00:00\"");
    shows("340000000000000000", "\"1970-01-01T00:00:00.000000\"");
    shows("380000c03f", "1.5");
    shows("3c00000000", "\"\"");
    shows("3c01000000ff", "\"/w==\"");
    shows("3c02000000ffff", "\"//8=\"");
    shows("3c030000000102ff", "\"AQL/\"");
    shows("40020000006869", "\"hi\"");
    shows("440000000000000000", "\"00:00:00.000000\"");
    shows("480100000000000000", "\"1970-01-01T00:00:00.000000001+00:00\"");
    shows("4cffffffffffffffff", "\"1969-12-31T23:59:59.999999999\"");
    shows("50f79c3e09677c4bbda4793f349cb785e7", "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"");
    shows("01", "\"\"");
    shows("0d22c3a9", "\"\\\"\xC3\xA9\"");
}

/* Objects and arrays of every width of count, id and offset; values in any order. */
static void containers_are_shown(void **state) {
    (void)state;
    const char *abc = "11030001020361"
                      "6263"; /* a, b, c */
    check(abc,
          "0203000102"
          "00020406"
          "0c010c020c03",
          "{\"a\":1,\"b\":2,\"c\":3}", NULL);
    check(abc,
          "020300010204020006"
          "0c030c020c01",
          "{\"a\":1,\"b\":2,\"c\":3}", NULL);
    check(abc,
          "7e01000000020000000000000001000000"
          "00",
          "{\"c\":null}", NULL);
    check(abc, "02000000", NULL, "bytes behind");
    check(abc, "020000", "{}", NULL);
    shows("030000", "[]");
    shows("0302000102"
          "0408",
          "[true,false]");
    shows("1f0100000000000000010000"
          "0004",
          "[true]");
    check(abc, "0f01000000000600000003010002000c07", NULL, "");
    /* Names that a writer sorted in another way, or that stand in the dictionary twice. */
    check(abc,
          "02020200000204"
          "0c010c02",
          "{\"c\":1,\"a\":2}", NULL);
    refuses("010200010261"
            "61",
            "02020001000204"
            "0c010c02",
            "a field twice");
    refuses(abc,
            "0203000100"
            "00020406"
            "0c010c020c03",
            "a field twice");
}

static void damage_is_told(void **state) {
    (void)state;
    refuses("", "00", "metadata of another version");
    refuses("020000", "00", "metadata of another version");
    refuses("01", "00", "short metadata");
    refuses("010300", "00", "short metadata");
    refuses("c1ffffffff00", "00", "short metadata");
    refuses(NO_NAMES, "", "cut off");
    refuses(NO_NAMES, "54", "unknown type");
    refuses(NO_NAMES, "14000000", "cut off");
    refuses(NO_NAMES, "40ffffffff", "cut off");
    refuses(NO_NAMES, "0000", "bytes behind its value");
    refuses(NO_NAMES, "2027ffffff7f", "more than 38 digits");
    refuses(NO_NAMES, "2800ffffffffffffffffffffffffffffff7f", "more than 38 digits");
    refuses(NO_NAMES, "44ffffffffffffffff", "a time beyond its day");
    refuses(NO_NAMES, "05ff", "not UTF-8");
    refuses("0101"
            "0001"
            "ff",
            "0201000001"
            "00",
            "not UTF-8");
    refuses(NO_NAMES,
            "0201000001"
            "00",
            "did not name");
    refuses("01010502"
            "61",
            "0201000001"
            "00",
            "did not name");
    refuses(NO_NAMES,
            "0302000001"
            "04",
            "values that overlapped");
    refuses(NO_NAMES, "0301050104", "cut off");
    refuses(NO_NAMES, "07ffffffff", "cut off");
    refuses(NO_NAMES, "03010001", "cut off");
}

/* ---- from JSON ---- */

static void to_hex(tarn_str bytes, char *out) {
    for (size_t i = 0; i < bytes.len; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned char)bytes.data[i]);
    }
    out[2 * bytes.len] = '\0';
}

static tarn_code encode(tarn_env *env, const char *json, variant_maker *m, tarn_buf *metadata,
                        tarn_error *err) {
    tarn_arena arena;
    json_value *tree = NULL;
    arena_init(&arena, env);
    tarn_code code = json_parse(&arena, str_of(json), "test", &tree, err);
    code = code == TARN_OK ? variant_from_json(m, tree, metadata, err) : code;
    arena_release(&arena);
    return code;
}

/* The bytes, and that they are shown as the JSON again (shown NULL: as it was). */
static void makes(const char *json, const char *names, const char *value, const char *shown) {
    char hex[2 * BYTES + 1];
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    variant_maker m;
    tarn_buf metadata, back;
    variant_maker_init(&m, env);
    buf_init(&metadata, env, 0);
    buf_init(&back, env, 0);
    assert_ok(encode(env, json, &m, &metadata, &err));
    to_hex(buf_str(&metadata), hex);
    assert_string_equal(hex, names);
    to_hex(buf_str(&m.out), hex);
    assert_string_equal(hex, value);
    assert_ok(variant_to_json(buf_str(&metadata), buf_str(&m.out), &back, &err));
    assert_ok(buf_append_char(&back, '\0', &err));
    assert_string_equal((const char *)back.data, shown != NULL ? shown : json);
    variant_maker_release(&m);
    buf_release(&metadata);
    buf_release(&back);
    test_env_done(env);
}

static void numbers_take_the_smallest_type(void **state) {
    (void)state;
    const char *none = "110000";
    makes("null", none, "00", NULL);
    makes("true", none, "04", NULL);
    makes("false", none, "08", NULL);
    makes("-128", none, "0c80", NULL);
    makes("128", none, "108000", NULL);
    makes("-32769", none, "14ff7fffff", NULL);
    makes("2147483648", none, "180000008000000000", NULL);
    makes("-9223372036854775808", none, "180000000000000080", NULL);
    makes("-0", none, "0c00", "0");
    makes("9223372036854775808", none, "280000000000000000800000000000000000", NULL);
    makes("1.5", none, "20010f000000", NULL);
    makes("1.50", none, "200296000000", NULL);
    makes("-999999999.9", none, "2401011cf4abfdffffff", NULL);
    makes("0.0000000001", none, "240a0100000000000000", NULL);
    makes("99999999999999999999999999999999999999", none, "2800ffffffff3f228a097ac4865aa84c3b4b",
          NULL);
    makes("-0.0", none, "1c0000000000000080", NULL);
    makes("1e2", none, "1c0000000000005940", "100.0");
    makes("999999999999999999999999999999999999999", none, "1c1d4a9cf487820748", "1e39");
}

static void texts_and_containers_are_made(void **state) {
    (void)state;
    makes("\"hi\"", "110000", "096869", NULL);
    makes("\"0123456789012345678901234567890123456789012345678901234567890123\"", "110000",
          "4040000000"
          "30313233343536373839303132333435363738393031323334353637383930313233343536373839303132"
          "333435363738393031323334353637383930313233",
          NULL);
    makes("[]", "110000", "030000", NULL);
    makes("{}", "110000", "020000", NULL);
    makes("[1,[null],\"a\"]", "110000",
          "0303000207090c010301000100"
          "0561",
          NULL);
    /* The dictionary has each name once, sorted; so are members, values stay in their order. */
    makes("{\"b\":{\"b\":1,\"a\":2},\"a\":3}",
          "110200010261"
          "62",
          "020200010b000d"
          "020200010200040c010c020c03",
          "{\"a\":3,\"b\":{\"a\":2,\"b\":1}}");
}

static void what_json_cannot_be_is_refused(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    variant_maker m;
    tarn_buf metadata;
    variant_maker_init(&m, env);
    buf_init(&metadata, env, 0);
    assert_code(encode(env, "[1e400]", &m, &metadata, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "1e400 was beyond a double"));
    assert_code(encode(env, "{\"a\":1,\"a\":2}", &m, &metadata, &err), TARN_CORRUPT);
    variant_maker_release(&m);
    buf_release(&metadata);
    test_env_done(env);
}

/* Counts, ids and offsets of more than one byte. */
static void wide_containers_come_back(void **state) {
    (void)state;
    enum { MEMBERS = 70000 };
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    variant_maker m;
    tarn_buf json, metadata, back;
    variant_maker_init(&m, env);
    buf_init(&json, env, 0);
    buf_init(&metadata, env, 0);
    buf_init(&back, env, 0);
    for (int n = 1; n <= MEMBERS; n = n < 300 ? n + 23 : n * 17) {
        buf_reset(&json);
        buf_reset(&metadata);
        buf_reset(&back);
        assert_ok(buf_append_char(&json, '{', &err));
        for (int i = 0; i < n; i++) {
            assert_ok(buf_printf(&json, &err, "%s\"%06d\":[%d]", i > 0 ? "," : "", i, i));
        }
        assert_ok(buf_append(&json, "}", 2, &err));
        assert_ok(encode(env, (const char *)json.data, &m, &metadata, &err));
        assert_ok(variant_to_json(buf_str(&metadata), buf_str(&m.out), &back, &err));
        assert_ok(buf_append_char(&back, '\0', &err));
        assert_string_equal((const char *)back.data, (const char *)json.data);
    }
    variant_maker_release(&m);
    buf_release(&json);
    buf_release(&metadata);
    buf_release(&back);
    test_env_done(env);
}

/* An array in an array and so on, deeper than JSON may be. */
static void depth_is_bounded(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf value, out;
    tarn_str names = STR("\x01\0\0");
    buf_init(&value, env, 0);
    buf_init(&out, env, 0);
    variant_maker m;
    variant_maker_init(&m, env);
    variant_mark marks[JSON_MAX_DEPTH + 1];
    bool twice = false;
    for (int levels = JSON_MAX_DEPTH; levels <= JSON_MAX_DEPTH + 1; levels++) {
        variant_maker_reset(&m);
        for (int i = 0; i < levels; i++) {
            marks[i] = variant_begin(&m);
            if (i < levels - 1) {
                assert_ok(variant_put_member(&m, marks[i], m.out.len, STR_NULL, 0, &err));
            }
        }
        for (int i = levels - 1; i >= 0; i--) {
            assert_ok(variant_end(&m, false, marks[i], &twice, &err));
        }
        assert_code(variant_to_json(names, buf_str(&m.out), &out, &err),
                    levels == JSON_MAX_DEPTH ? TARN_OK : TARN_LIMIT);
    }
    variant_maker_release(&m);
    buf_release(&value);
    buf_release(&out);
    test_env_done(env);
}

/* A long name under which many objects keep a value: few bytes, much text. */
static void text_is_bounded(void **state) {
    (void)state;
    enum { NAME = 1 << 20, OBJECTS = 100 };
    static const uint8_t object[] = {0x02, 1, 0, 0, 1, 0x00};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf names, text, out;
    variant_maker m;
    variant_maker_init(&m, env);
    buf_init(&names, env, 0);
    buf_init(&text, env, 0);
    buf_init(&out, env, 0);
    assert_ok(buf_reserve(&text, NAME, &err));
    memset(text.data, 'n', NAME);
    tarn_str name = str_make(text.data, NAME);
    assert_ok(variant_put_names(&name, 1, &names, &err));
    variant_mark mark = variant_begin(&m);
    for (int i = 0; i < OBJECTS; i++) {
        assert_ok(variant_put_member(&m, mark, m.out.len, STR_NULL, 0, &err));
        assert_ok(buf_append(&m.out, object, sizeof object, &err));
    }
    assert_ok(variant_end(&m, false, mark, NULL, &err));
    assert_code(variant_to_json(buf_str(&names), buf_str(&m.out), &out, &err), TARN_LIMIT);
    assert_true(out.len < LIMIT_TEXT_LINE_BYTES + 2 * NAME);
    variant_maker_release(&m);
    buf_release(&names);
    buf_release(&text);
    buf_release(&out);
    test_env_done(env);
}

/* Whatever is changed, it is JSON or an error, and nothing is read outside (the sanitizers say). */
static void no_damage_is_believed(void **state) {
    (void)state;
    static const char json[] = "{\"a\":[1,300,70000,5000000000,1.5,1e30,\"text\",null,true],"
                               "\"b\":{\"c\":{\"d\":[[],{}]}},\"a long name of a member\":-1}";
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    variant_maker m;
    tarn_buf metadata, out;
    tarn_arena arena;
    json_value *tree = NULL;
    variant_maker_init(&m, env);
    buf_init(&metadata, env, 0);
    buf_init(&out, env, 0);
    assert_ok(encode(env, json, &m, &metadata, &err));
    tarn_buf *parts[2] = {&metadata, &m.out};
    for (int part = 0; part < 2; part++) {
        for (size_t i = 0; i < parts[part]->len; i++) {
            const uint8_t was = parts[part]->data[i];
            for (int b = 0; b < 256; b++) {
                parts[part]->data[i] = (uint8_t)b;
                buf_reset(&out);
                tarn_code code = variant_to_json(buf_str(&metadata), buf_str(&m.out), &out, &err);
                assert_true(code == TARN_OK || code == TARN_CORRUPT);
                arena_init(&arena, env);
                assert_true(code != TARN_OK ||
                            json_parse(&arena, buf_str(&out), "it", &tree, &err) == TARN_OK);
                arena_release(&arena);
            }
            parts[part]->data[i] = was;
            tarn_buf cut;
            buf_init(&cut, env, 0);
            assert_ok(buf_append(&cut, parts[part]->data, i, &err));
            assert_code(variant_to_json(buf_str(part == 0 ? &cut : &metadata),
                                        buf_str(part == 0 ? &m.out : &cut), &out, &err),
                        TARN_CORRUPT);
            buf_release(&cut);
        }
    }
    variant_maker_release(&m);
    buf_release(&metadata);
    buf_release(&out);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_primitive_is_shown),
        cmocka_unit_test(containers_are_shown),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(numbers_take_the_smallest_type),
        cmocka_unit_test(texts_and_containers_are_made),
        cmocka_unit_test(what_json_cannot_be_is_refused),
        cmocka_unit_test(wide_containers_come_back),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(text_is_bounded),
        cmocka_unit_test(no_damage_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
