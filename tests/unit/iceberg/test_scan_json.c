/* Goal: filters and files come and go in the JSON of server-side scan planning.
 * Method: each JSON is read and compared with the filter that it means, bound and written again;
 * wrong ones name what is wrong; every allocation fails once. */
#include "fail_alloc.h"
#include "fixture.h"

#include "iceberg/scan_json.h"

#define COLUMNS "id long, s string, d date, x double, dec decimal(9,2), b binary, st struct<a: int>"

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_type *root;
    tarn_error err;
} bench;

static tarn_code bench_open(bench *b) {
    int32_t next_id = 1;
    arena_init(&b->arena, b->env);
    tarn_code code = type_columns_from_text(&b->arena, STR(COLUMNS), &b->root, &b->err);
    if (code == TARN_OK) {
        b->root = type_assign_ids(&b->arena, b->root, &next_id);
        code = b->root != NULL ? TARN_OK : err_nomem(&b->err);
    }
    return code;
}

/* The bound filter as text and as JSON. */
static tarn_code read(bench *b, const char *json, bool *exact, tarn_str *text, tarn_str *again) {
    json_value *parsed = NULL;
    const tarn_expr *expr = NULL, *bound = NULL;
    tarn_buf out;
    json_writer w;
    tarn_code code;
    buf_init(&out, b->arena.env, 0);
    TRY(json_parse(&b->arena, str_of(json), "filter", &parsed, &b->err));
    TRY(filter_from_json(&b->arena, parsed, b->root, true, &expr, exact, &b->err));
    TRY(expr_bind(&b->arena, expr, b->root, true, &bound, &b->err));
    TRY(expr_text(bound, &out, &b->err));
    *text = arena_str(&b->arena, buf_str(&out));
    buf_reset(&out);
    json_begin(&w, &out, false, &b->err);
    filter_put_json(bound, &w);
    TRY(json_end(&w));
    *again = arena_str(&b->arena, buf_str(&out));
    code = text->data != NULL && again->data != NULL ? TARN_OK : err_nomem(&b->err);
done:
    buf_release(&out);
    return code;
}

static const struct {
    const char *json, *meaning; /* in the words of filters that people type */
    bool exact;
} GOOD[] = {
    {"true", "true", true},
    {"{\"type\":\"false\"}", "false", true},
    {"{\"type\":\"not\",\"child\":true}", "false", true},
    {"{\"type\":\"eq\",\"term\":\"id\",\"value\":5}", "id = 5", true},
    {"{\"type\":\"gt-eq\",\"term\":{\"type\":\"reference\",\"term\":\"st.a\"},\"value\":5}",
     "st.a >= 5", true},
    {"{\"type\":\"lt\",\"term\":\"d\",\"value\":\"2024-01-02\"}", "d < date '2024-01-02'", true},
    {"{\"type\":\"eq\",\"term\":\"dec\",\"value\":\"1.50\"}", "dec = 1.50", true},
    {"{\"type\":\"eq\",\"term\":\"b\",\"value\":\"7879\"}", "b = X'7879'", true},
    {"{\"type\":\"in\",\"term\":\"s\",\"values\":[\"b\",\"a\",\"b\"]}", "s in ('a', 'b')", true},
    {"{\"type\":\"starts-with\",\"term\":\"s\",\"value\":\"ab\"}", "s like 'ab%'", true},
    {"{\"type\":\"is-nan\",\"term\":\"x\"}", "x is nan", true},
    {"{\"type\":\"and\",\"left\":{\"type\":\"is-null\",\"term\":\"s\"},\"right\":{\"type\":\"not\","
     "\"child\":{\"type\":\"or\",\"left\":{\"type\":\"not-null\",\"term\":\"d\"},\"right\":{"
     "\"type\":\"lt-eq\",\"term\":\"id\",\"value\":7}}}}",
     "s is null and (d is null and id > 7)", true},
    {"{\"type\":\"not-eq\",\"term\":\"id\",\"value\":5}", "id <> 5 or id is null", false},
    {"{\"type\":\"not\",\"child\":{\"type\":\"in\",\"term\":\"id\",\"values\":[1,2]}}",
     "id not in (1, 2) or id is null", false},
    {"{\"type\":\"not\",\"child\":{\"type\":\"eq\",\"term\":{\"type\":\"transform\",\"transform\":"
     "\"day\",\"term\":\"d\"},\"value\":1}}",
     "true", false},
    {"{\"type\":\"gt\",\"term\":\"id\",\"value\":1e30}", "false", true},
};

static void filters_are_read(void **state) {
    (void)state;
    bench b = {.env = test_env()};
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(bench_open(&b));
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        const tarn_expr *expr, *bound;
        tarn_str text, json, text_again, json_again;
        tarn_buf want;
        bool exact, exact_again;
        tarn_code code = read(&b, GOOD[i].json, &exact, &text, &json);
        if (code != TARN_OK) {
            fail_msg("%s: %s", GOOD[i].json, b.err.message);
        }
        buf_init(&want, b.env, 0);
        assert_ok(expr_parse(&b.arena, str_of(GOOD[i].meaning), &expr, &err));
        assert_ok(expr_bind(&b.arena, expr, b.root, true, &bound, &err));
        assert_ok(expr_text(bound, &want, &err));
        if (!str_eq(text, buf_str(&want)) || exact != GOOD[i].exact) {
            fail_msg("%s: %.*s", GOOD[i].json, STR_ARG(text));
        }
        if (exact) { /* what was written means the same */
            assert_ok(read(&b, json.data, &exact_again, &text_again, &json_again));
            assert_true(str_eq(text, text_again));
            assert_true(str_eq(json, json_again));
        }
        buf_release(&want);
    }
    arena_release(&b.arena);
    test_env_done(b.env);
}

static void wrong_filters(void **state) {
    (void)state;
    static const char *const cases[] = {
        "null",
        "5",
        "{}",
        "{\"type\":\"and\",\"left\":true}",
        "{\"type\":\"not\"}",
        "{\"type\":\"near\",\"term\":\"id\",\"value\":1}",
        "{\"type\":\"eq\",\"value\":1}",
        "{\"type\":\"eq\",\"term\":\"id\"}",
        "{\"type\":\"eq\",\"term\":\"id\",\"value\":null}",
        "{\"type\":\"eq\",\"term\":\"id\",\"value\":\"five\"}",
        "{\"type\":\"in\",\"term\":\"id\",\"values\":5}",
        "{\"type\":\"eq\",\"term\":\"nope\",\"value\":1}",
    };
    bench b = {.env = test_env()};
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(bench_open(&b));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_str text, json;
        bool exact;
        assert_code(read(&b, cases[i], &exact, &text, &json), TARN_INVALID);
    }
    arena_release(&b.arena);
    test_env_done(b.env);
}

static void files_are_written(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    json_writer w;
    tarn_value partition[] = {value_i32(type_primitive(TARN_DATE), 1),
                              value_null(type_primitive(TARN_LONG))};
    int64_t offsets[] = {4, 99};
    int32_t ids[] = {1, 2};
    tarn_file data = {.path = STR("/t/f"),
                      .n_partition = 2,
                      .partition = partition,
                      .record_count = 3,
                      .size_bytes = 100,
                      .n_split_offsets = 2,
                      .split_offsets = offsets,
                      .key_metadata = STR("\x01\xff"),
                      .sort_order_id = 0,
                      .first_row_id = 7,
                      .content_offset = -1};
    tarn_file vector = {.content = TARN_CONTENT_POSITION_DELETES,
                        .format = TARN_FORMAT_PUFFIN,
                        .path = STR("/t/p"),
                        .sort_order_id = -1,
                        .first_row_id = -1,
                        .referenced_data_file = STR("/t/f"),
                        .content_offset = 4,
                        .content_size = 40};
    tarn_file keys = {.content = TARN_CONTENT_EQUALITY_DELETES,
                      .path = STR("/t/e"),
                      .sort_order_id = -1,
                      .first_row_id = -1,
                      .n_equality_ids = 2,
                      .equality_ids = ids,
                      .content_offset = -1};
    buf_init(&out, env, 0);
    json_begin(&w, &out, false, &err);
    json_put_array(&w);
    content_file_put_json(&data, &w);
    content_file_put_json(&vector, &w);
    content_file_put_json(&keys, &w);
    json_end_array(&w);
    assert_ok(json_end(&w));
    static const char want[] =
        "[{\"spec-id\":0,\"content\":\"data\",\"file-path\":\"/t/f\",\"file-format\":\"parquet\","
        "\"partition\":[\"1970-01-02\",null],\"file-size-in-bytes\":100,\"record-count\":3,"
        "\"key-metadata\":\"01FF\",\"split-offsets\":[4,99],\"sort-order-id\":0,\"first-row-id\":7}"
        ",{\"spec-id\":0,\"content\":\"position-deletes\",\"file-path\":\"/t/p\",\"file-format\":"
        "\"puffin\",\"partition\":[],\"file-size-in-bytes\":0,\"record-count\":0,"
        "\"referenced-data-file\":\"/t/f\",\"content-offset\":4,\"content-size-in-bytes\":40},"
        "{\"spec-id\":0,\"content\":\"equality-deletes\",\"file-path\":\"/t/e\",\"file-format\":"
        "\"parquet\",\"partition\":[],\"file-size-in-bytes\":0,\"record-count\":0,"
        "\"equality-ids\":[1,2]}]";
    assert_true(str_eq_nocase(buf_str(&out), str_of(want)));
    buf_release(&out);
    test_env_done(env);
}

static void without_memory(void **state) {
    (void)state;
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        fail_alloc plan;
        bench b = {.env = fail_alloc_env(&plan, k)};
        tarn_str text, json;
        bool exact;
        tarn_code code = bench_open(&b);
        for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0] && code == TARN_OK; i++) {
            code = read(&b, GOOD[i].json, &exact, &text, &json);
        }
        failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        arena_release(&b.arena);
        fail_alloc_done(&plan, b.env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_read),
        cmocka_unit_test(wrong_filters),
        cmocka_unit_test(files_are_written),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
