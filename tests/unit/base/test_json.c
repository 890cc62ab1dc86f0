/* Goal: JSON texts are read exactly as RFC 8259 says, wrong ones are refused with line and column,
 * and what the writer makes is read back the same.
 * Method: tables of texts with their trees or their messages. */
#include "fail_alloc.h"

#include "base/json.h"

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
} fixture;

static void setup(fixture *f) {
    f->env = test_env();
    arena_init(&f->arena, f->env);
}
static void teardown(fixture *f) {
    arena_release(&f->arena);
    test_env_done(f->env);
}

static void test_reads_what_it_writes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1e5",
        "-12.50E-3",
        "\"\"",
        "[]",
        "{}",
        "[1,2,[3,[]],{}]",
        "{\"a\":{\"b\":[null,true]},\"c\":\"x\"}",
        "\"\xC3\xA9\\\"\\\\\\b\\f\\n\\r\\t\\u0001/\"",
        "123456789012345678901234567890.123456789",
    };
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_value *root = NULL;
        assert_ok(json_parse(&f.arena, str_of(texts[i]), "t", &root, &err));
        tarn_buf out;
        buf_init(&out, f.env, 0);
        json_writer w;
        json_begin(&w, &out, false, &err);
        json_put_value(&w, root);
        assert_ok(json_end(&w));
        assert_int_equal(out.len, strlen(texts[i]));
        assert_memory_equal(out.data, texts[i], out.len);
        buf_release(&out);
    }
    teardown(&f);
}

static void test_tree_and_getters(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    json_value *root = NULL;
    tarn_str text =
        STR(" \t\r\n{ \"a\" : [ 1 , -2.5 , \"x\\u00e9\\ud83d\\ude00\\/\" , true , null ],\n"
            "\"big\":9223372036854775807,\"over\":9223372036854775808,\"f\":1e2,"
            "\"nan\":\"NaN\",\"min\":-9223372036854775808,\"i33\":2147483648,\"\":0} ");
    assert_ok(json_parse(&f.arena, text, "t", &root, &err));
    assert_int_equal(root->kind, JSON_OBJECT);
    assert_int_equal(root->count, 8);
    const json_value *a = json_get(root, "a");
    assert_true(json_is(a, JSON_ARRAY));
    assert_int_equal(a->count, 5);
    int64_t i = 0;
    int32_t i32 = 0;
    double d = 0;
    bool b = false;
    tarn_str s;
    assert_true(json_i64(a->first, &i) && i == 1);
    assert_false(json_i64(a->first->next, &i));
    assert_true(json_f64(a->first->next, &d) && d == -2.5);
    assert_true(json_str(a->first->next->next, &s));
    assert_true(str_is(s, "x\xC3\xA9\xF0\x9F\x98\x80/"));
    assert_true(json_bool(a->first->next->next->next, &b) && b);
    assert_true(json_is(a->first->next->next->next->next, JSON_NULL));
    assert_true(json_i64(json_get(root, "big"), &i) && i == INT64_MAX);
    assert_true(json_i64(json_get(root, "min"), &i) && i == INT64_MIN);
    assert_false(json_i64(json_get(root, "over"), &i));
    assert_true(str_is(json_get(root, "over")->text, "9223372036854775808"));
    assert_false(json_i32(json_get(root, "i33"), &i32));
    assert_true(json_i32(json_get(root, ""), &i32) && i32 == 0);
    assert_true(json_f64(json_get(root, "f"), &d) && d == 100);
    assert_true(json_f64(json_get(root, "nan"), &d) && d != d);
    assert_false(json_f64(a, &d));
    assert_null(json_get(root, "none"));
    assert_null(json_get(a, "a"));
    assert_null(json_get(NULL, "a"));
    assert_false(json_i64(NULL, &i) || json_str(NULL, &s) || json_bool(NULL, &b) ||
                 json_f64(NULL, &d) || json_i32(NULL, &i32));
    teardown(&f);
}

static void test_errors_name_line_and_column(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t len; /* 0: strlen */
        const char *message;
    } cases[] = {
        {"", 0, "t: line 1, column 1: the text ended where a value was expected"},
        {"\n\n  ", 0, "t: line 3, column 3: the text ended where a value was expected"},
        {"[1,\n2,]", 0, "t: line 2, column 3: ']' stood where a value was expected"},
        {"[1 2]", 0, "t: line 1, column 4: '2' stood where ',' or ']' was expected"},
        {"{\"a\":1,}", 0, "t: line 1, column 8: '}' stood where a name in quotes was expected"},
        {"{\"a\" 1}", 0, "t: line 1, column 6: '1' stood where ':' was expected"},
        {"{\"a\":1", 0, "t: line 1, column 7: the text ended where ',' or '}' was expected"},
        {"{\"\xC3\xA9\":\n\"\xC3\xA9\" x}", 0,
         "t: line 2, column 5: 'x' stood where ',' or '}' was expected"},
        {"01", 0, "t: line 1, column 1: a number began with a needless zero"},
        {"-", 0, "t: line 1, column 2: the text ended where a digit was expected"},
        {"1.", 0, "t: line 1, column 3: the text ended where a digit was expected"},
        {"1.e5", 0, "t: line 1, column 3: 'e' stood where a digit was expected"},
        {"1e", 0, "t: line 1, column 3: the text ended where a digit was expected"},
        {"1e+", 0, "t: line 1, column 4: the text ended where a digit was expected"},
        {".5", 0, "t: line 1, column 1: '.' stood where a value was expected"},
        {"+1", 0, "t: line 1, column 1: '+' stood where a value was expected"},
        {"NaN", 0, "t: line 1, column 1: 'N' stood where a value was expected"},
        {"nul", 0, "t: line 1, column 1: 'n' stood where a value was expected"},
        {"true false", 0, "t: line 1, column 6: 'f' stood where the end was expected"},
        {"truex", 0, "t: line 1, column 5: 'x' stood where the end was expected"},
        {"\"abc", 0, "t: line 1, column 5: the text ended inside a string"},
        {"\"abc\\", 0, "t: line 1, column 5: an escape was none of JSON's"},
        {"\"a\nb\"", 0, "t: line 1, column 3: a control character stood in a string"},
        {"\"a\0b\"", 5, "t: line 1, column 3: a control character stood in a string"},
        {"1\0", 2, "t: line 1, column 2: byte 0x00 stood where the end was expected"},
        {"\"\\x\"", 0, "t: line 1, column 2: an escape was none of JSON's"},
        {"\"\\u12g4\"", 0, "t: line 1, column 2: an escape \\u lacked four hex digits"},
        {"\"\\u12", 0, "t: line 1, column 2: an escape \\u lacked four hex digits"},
        {"\"\\ud800\"", 0, "t: line 1, column 2: a surrogate stood alone"},
        {"\"x\\ud800\\u0041\"", 0, "t: line 1, column 3: a surrogate stood alone"},
        {"\"\\udc00\\ud800\"", 0, "t: line 1, column 2: a surrogate stood alone"},
        {"\"\\ud800\\", 0, "t: line 1, column 2: a surrogate stood alone"},
        {"[\"\xC3\xA9\",\n\"\xC3(\"]", 0, "t: line 2, column 2: a byte was not UTF-8"},
        {"\"\xED\xA0\x80\"", 0, "t: line 1, column 2: a byte was not UTF-8"},
        {"\"\xC3", 0, "t: line 1, column 2: a byte was not UTF-8"},
        {"{\"a\":1,\n \"b\":{\"c\":1,\"\\u0063\":2}}", 0,
         "t: line 2, column 13: the name \"c\" stood twice in one object"},
        {"[1]]", 0, "t: line 1, column 4: ']' stood where the end was expected"},
        {"[\xE2\x80\x8B]", 0, "t: line 1, column 2: byte 0xe2 stood where a value was expected"},
    };
    fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        json_value *root = NULL;
        size_t len = cases[i].len != 0 ? cases[i].len : strlen(cases[i].text);
        /* An exact copy on the heap, so that ASan sees a read beyond it. */
        char *copy = malloc(len + (len == 0));
        memcpy(copy, cases[i].text, len);
        tarn_code code = json_parse(&f.arena, str_make(copy, len), "t", &root, &err);
        free(copy);
        assert_string_equal(err.message, cases[i].message);
        assert_code(code, TARN_CORRUPT);
        assert_null(root);
    }
    teardown(&f);
}

static void test_duplicates_in_a_large_object(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    json_value *root = NULL;
    tarn_buf text;
    buf_init(&text, f.env, 0);
    assert_ok(buf_append_char(&text, '{', &err));
    for (int i = 0; i < 5000; i++) {
        assert_ok(buf_printf(&text, &err, "\"k%d\":%d,\n", i, i));
    }
    size_t before = text.len;
    assert_ok(buf_printf(&text, &err, "\"last\":0}"));
    assert_ok(json_parse(&f.arena, buf_str(&text), "t", &root, &err));
    assert_int_equal(root->count, 5001);
    text.len = before;
    assert_ok(buf_printf(&text, &err, "\"k17\":0}"));
    assert_code(json_parse(&f.arena, buf_str(&text), "t", &root, &err), TARN_CORRUPT);
    assert_string_equal(err.message,
                        "t: line 5001, column 1: the name \"k17\" stood twice in one object");
    buf_release(&text);
    teardown(&f);
}

static void test_depth(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    json_value *root = NULL;
    char text[1000];
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    assert_ok(json_parse(&f.arena, str_make(text, 2 * JSON_MAX_DEPTH), "t", &root, &err));
    tarn_buf out;
    buf_init(&out, f.env, 0);
    json_writer w;
    json_begin(&w, &out, false, &err);
    json_put_value(&w, root);
    assert_ok(json_end(&w));
    assert_int_equal(out.len, 2 * JSON_MAX_DEPTH);
    memset(text, '[', sizeof text);
    assert_code(json_parse(&f.arena, str_make(text, sizeof text), "t", &root, &err), TARN_LIMIT);
    assert_string_equal(err.message,
                        "t: line 1, column 201: values were nested deeper than 200 levels");
    json_begin(&w, &out, false, &err);
    for (int i = 0; i < 201; i++) {
        json_put_array(&w);
    }
    assert_code(json_end(&w), TARN_LIMIT);
    buf_release(&out);
    teardown(&f);
}

static void test_writer(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    buf_init(&out, f.env, 0);
    for (int pretty = 0; pretty < 2; pretty++) {
        json_writer w;
        buf_reset(&out);
        json_begin(&w, &out, pretty != 0, &err);
        json_put_object(&w);
        json_member_i64(&w, "i", INT64_MIN);
        json_member_bool(&w, "b", true);
        json_member_str(&w, "s", STR("\x01\"\\\b\f\n\r\t\x0B\x7F\xFF\xC3\xA9\xED\xA0\x80"));
        json_put_name(&w, STR("l"));
        json_put_array(&w);
        json_put_f64(&w, 0.1);
        json_put_f64(&w, 1);
        json_put_f64(&w, strtod("nan", NULL));
        json_put_f64(&w, -strtod("inf", NULL));
        json_put_null(&w);
        json_put_bool(&w, false);
        json_put_raw(&w, STR("1.50"));
        json_end_array(&w);
        json_put_name(&w, STR("e"));
        json_put_object(&w);
        json_end_object(&w);
        json_end_object(&w);
        assert_ok(json_end(&w));
        assert_ok(buf_append_char(&out, '\0', &err));
        static const char *const wanted[] = {
            "{\"i\":-9223372036854775808,\"b\":true,\"s\":"
            "\"\\u0001\\\"\\\\\\b\\f\\n\\r\\t\\u000b\x7F"
            "\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\",\"l\":[0.1,1.0,\"NaN\","
            "\"-Infinity\",null,false,1.50],\"e\":{}}",
            "{\n  \"i\": -9223372036854775808,\n  \"b\": true,\n  \"s\": "
            "\"\\u0001\\\"\\\\\\b\\f\\n\\r\\t\\u000b\x7F\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF"
            "\xBD"
            "\xEF\xBF\xBD\",\n  \"l\": [\n    0.1,\n    1.0,\n    \"NaN\",\n    \"-Infinity\",\n   "
            " "
            "null,\n    false,\n    1.50\n  ],\n  \"e\": {}\n}"};
        assert_string_equal((char *)out.data, wanted[pretty]);
    }
    json_writer w;
    json_begin(&w, &out, false, &err);
    json_put_array(&w);
    assert_code(json_end(&w), TARN_INTERNAL);
    json_begin(&w, &out, false, &err);
    json_end_array(&w);
    json_put_i64(&w, 1);
    assert_code(json_end(&w), TARN_INTERNAL);
    buf_release(&out);
    buf_init(&out, f.env, 10);
    json_begin(&w, &out, false, &err);
    json_put_string(&w, STR("0123456789"));
    json_put_array(&w);
    assert_code(json_end(&w), TARN_LIMIT);
    buf_release(&out);
    teardown(&f);
}

static void test_trees_are_changed(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    json_value *root = NULL;
    assert_ok(json_parse(&f.arena, STR("{\"a\":1,\"b\":2}"), "t", &root, &err));
    char name[2] = "a";
    assert_true(json_put(&f.arena, root, name, json_new_str(&f.arena, STR("x"))));
    name[0] = '!';
    json_value *list = json_new(&f.arena, JSON_ARRAY);
    json_add(list, json_new_i64(&f.arena, -7));
    json_add(list, json_new_bool(&f.arena, true));
    json_add(list, json_new(&f.arena, JSON_NULL));
    name[0] = 'c';
    assert_true(json_put(&f.arena, root, name, list));
    name[0] = '!';
    assert_true(json_put(&f.arena, root, "c", list));
    assert_int_equal(root->count, 3);
    assert_int_equal(list->count, 3);
    tarn_buf out;
    buf_init(&out, f.env, 0);
    json_writer w;
    json_begin(&w, &out, false, &err);
    json_put_value(&w, root);
    assert_ok(json_end(&w));
    assert_true(str_is(buf_str(&out), "{\"a\":\"x\",\"b\":2,\"c\":[-7,true,null]}"));
    buf_release(&out);
    teardown(&f);
}

static tarn_code read_and_write(tarn_env *env, tarn_str text, tarn_error *err) {
    tarn_arena arena;
    tarn_buf out;
    json_writer w;
    json_value *root = NULL;
    tarn_code code = TARN_OK;
    arena_init(&arena, env);
    buf_init(&out, env, 0);
    TRY(json_parse(&arena, text, "t", &root, err));
    json_value *item = json_new_str(&arena, STR("value"));
    if (item == NULL || !json_put(&arena, root, "added", item)) {
        code = err_nomem(err);
        goto done;
    }
    json_begin(&w, &out, true, err);
    json_put_value(&w, root);
    TRY(json_end(&w));
done:
    buf_release(&out);
    arena_release(&arena);
    return code;
}

static void test_json_allocations_may_fail(void **state) {
    (void)state;
    char text[8000] = "{\"first\":[1,2,{\"a\":\"\\u00e9\"}]";
    size_t len = strlen(text);
    for (int i = 0; i < 200; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, ",\"name %d\":[%d,true]", i, i);
    }
    text[len++] = '}';
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = read_and_write(env, str_make(text, len), &err);
        bool failed = atomic_load(&plan.failed);
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        assert_int_equal(err.code, code);
        fail_alloc_done(&plan, env);
        if (!failed) {
            assert_true(k > 10);
            break;
        }
    }
}

/* Every prefix of a good text, and every byte of it changed, must be answered without a fault. */
static void test_damaged_texts(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,-2.5e+7,\"x\\u00e9\\ud83d\\ude00\\n\",true,false,null],"
                               "\"b\":{\"c\":[[],{}]}}";
    fixture f;
    setup(&f);
    for (size_t len = 0; len < sizeof text - 1; len++) {
        tarn_error err = TARN_ERROR_INIT;
        json_value *root = NULL;
        assert_code(json_parse(&f.arena, str_make(text, len), "t", &root, &err), TARN_CORRUPT);
    }
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            copy[at] = (char)c;
            tarn_error err = TARN_ERROR_INIT;
            json_value *root = NULL;
            tarn_code code =
                json_parse(&f.arena, str_make(copy, sizeof text - 1), "t", &root, &err);
            assert_true(code == TARN_OK || (code == TARN_CORRUPT && err.message[0] != '\0'));
        }
        arena_release(&f.arena);
    }
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_it_writes),
        cmocka_unit_test(test_tree_and_getters),
        cmocka_unit_test(test_errors_name_line_and_column),
        cmocka_unit_test(test_duplicates_in_a_large_object),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_trees_are_changed),
        cmocka_unit_test(test_json_allocations_may_fail),
        cmocka_unit_test(test_damaged_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
