/* Goal: a filter means the same as text, bound, on rows and on statistics.
 * Method: texts there and back; folding cases by hand; every comparison on rows of every kind
 * against a slow reference; pruning never against the rows it prunes. */
#include "rows.h"

#include "table/expr.h"

static const char table_type[] =
    "struct<b: boolean, i: int, r: int not null, l: long, f: float, d: double, n: decimal(9,2), s: "
    "string, t: timestamp, tz: timestamptz, tn: timestamp_ns, dt: date, tm: time, u: uuid, x: "
    "fixed[2], z: binary, q: unknown, \"odd name\": int, st: struct<a: int, c: string>, li: "
    "list<int>>";

static const tarn_type *make_type(tarn_arena *arena) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *type = NULL;
    int32_t next = 1;
    assert_ok(type_from_text(arena, str_of(table_type), &type, &err));
    return type_assign_ids(arena, type, &next);
}

static void check_text(const tarn_expr *expr, tarn_env *env, const char *from, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    buf_init(&buf, env, 0);
    assert_ok(expr_text(expr, &buf, &err));
    assert_ok(buf_append_char(&buf, '\0', &err));
    if (strcmp((const char *)buf.data, want) != 0) {
        fail_msg("%s gave %s and not %s", from, (const char *)buf.data, want);
    }
    buf_release(&buf);
}

static void test_parse(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"i=1", "i = 1"},
        {"i == 1 AND l<>2 or not f > 1.50", "i = 1 and l != 2 or not (f > 1.5)"},
        {"i in (1,2 , -3) and (s = 'it''s' or s is null)",
         "i in (1, 2, -3) and (s = 'it''s' or s is null)"},
        {"s like 'ab\\%c%'", "s starts with 'ab%c'"},
        {"s not like 'abc'", "s != 'abc'"},
        {"s not starts with 'a'", "s not starts with 'a'"},
        {"i between 1 and 2", "i >= 1 and i <= 2"},
        {"i not between 1 and 2", "i < 1 or i > 2"},
        {"5 < i", "i > 5"},
        {"b", "b = true"},
        {"not b", "not (b = true)"},
        {"true and i = 1", "i = 1"},
        {"d is not nan", "d is not nan"},
        {"is_nan(d)", "d is nan"},
        {"\"odd name\" = 1", "\"odd name\" = 1"},
        {"\".a\" = 1 and \"b.\" = 2", "\".a\" = 1 and \"b.\" = 2"},
        {"st.`a` = 1e3", "st.a = 1000"},
        {"z = X'0aFF'", "z = X'0aff'"},
        {"dt = date '2020-01-01' and date = '2020-01-01'",
         "dt = date '2020-01-01' and date = '2020-01-01'"},
        {"t < timestamp '2020-01-01 00:00:00'", "t < timestamp '2020-01-01T00:00:00.000000'"},
        {"t < timestamp '2020-01-01T00:00:00.000000001'",
         "t < timestamp '2020-01-01T00:00:00.000000001'"},
        {"tz < timestamp '2020-01-01T00:00:00Z'",
         "tz < timestamp '2020-01-01T00:00:00.000000+00:00'"},
        {"l = 99999999999999999999", "l = 99999999999999999999"},
        {"d = 1e300", "d = 1e300"},
        {"d < -.5", "d < -0.5"},
        {"not not i = 1", "i = 1"},
    };
    static const char *const bad[][2] = {
        {"", "column 1"},           {"i =", "column 4"},           {"i = 1 and", "column 10"},
        {"(i = 1", "no )"},         {"i = 1)", "column 6"},        {"i = 'a", "without end"},
        {"i = null", "null"},       {"i in ()", "no value"},       {"s like '%a'", "prefix"},
        {"i ! 1", "unknown"},       {"i = 1 2", "column 7"},       {"i is 5", "neither"},
        {"i = 1.2.3", "number"},    {"dt = date 'x'", "date"},     {"i between 1 or 2", "no and"},
        {"i not = 1", "after not"}, {"z = X'0'", "no valid text"}, {"\xff = 1", "UTF-8"},
    };
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_expr *expr = NULL;
    const tarn_expr *again = NULL;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_ok(expr_parse(&arena, str_of(texts[i][0]), &expr, &err));
        check_text(expr, env, texts[i][0], texts[i][1]);
        assert_ok(expr_parse(&arena, str_of(texts[i][1]), &again, &err));
        check_text(again, env, texts[i][1], texts[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_code(expr_parse(&arena, str_of(bad[i][0]), &expr, &err), TARN_INVALID);
        if (strstr(err.message, bad[i][1]) == NULL) {
            fail_msg("\"%s\": \"%s\" did not hold \"%s\"", bad[i][0], err.message, bad[i][1]);
        }
    }
    char deep[1000];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_code(expr_parse(&arena, str_of(deep), &expr, &err), TARN_LIMIT);
    arena_release(&arena);
    test_env_done(env);
}

static void test_bind(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"not (i < 5)", "i >= 5"},
        {"not (i = 1 and l > 2 or s is null)", "(i != 1 or l <= 2) and s is not null"},
        {"i < 99999999999", "i is not null"},
        {"i >= 99999999999", "false"},
        {"i > -99999999999", "i is not null"},
        {"i != 99999999999", "i is not null"},
        {"r != 99999999999", "true"},
        {"not i = 99999999999", "i is not null"},
        {"l = 1e20", "false"},
        {"l < '1e20'", "l is not null"},
        {"i < 1.5", "i <= 1"},
        {"i >= -1.5", "i > -2"},
        {"i = 1.5", "false"},
        {"i != 1.5", "i is not null"},
        {"i = 2.0", "i = 2"},
        {"n = 1.5", "n = 1.50"},
        {"n < 1.505", "n <= 1.50"},
        {"n < 1e30", "n is not null"},
        {"f = 0.1", "f = 0.1"},
        {"f < 1e300", "f <= 3.4028235e38"},
        {"f > 1e300", "f > 3.4028235e38"},
        {"f < -1e300", "f <= '-Infinity'"},
        {"d = -0.0", "d = 0.0"},
        {"d = 'NaN'", "d = 'NaN'"},
        {"d = 60", "d = 60.0"},
        {"r is null", "false"},
        {"r is not null", "true"},
        {"i is nan", "false"},
        {"i is not nan", "i is not null"},
        {"q is null", "true"},
        {"q = 1", "false"},
        {"i in (3, 1, 2, 1, 99999999999)", "i in (1, 2, 3)"},
        {"i in (3, 3.0)", "i = 3"},
        {"i in (1.5)", "false"},
        {"i not in (1.5)", "i is not null"},
        {"not i in (1, 2)", "i not in (1, 2)"},
        {"dt = '2020-01-02'", "dt = date '2020-01-02'"},
        {"dt < '2020-01-02T12:00:00'", "dt <= date '2020-01-02'"},
        {"t >= '2020-01-02'", "t >= timestamp '2020-01-02T00:00:00.000000'"},
        {"t < '2020-01-02T00:00:00.0000005'", "t <= timestamp '2020-01-02T00:00:00.000000'"},
        {"t >= date '2020-01-02'", "t >= timestamp '2020-01-02T00:00:00.000000'"},
        {"tz = '2020-01-02 03:04:05'", "tz = timestamp '2020-01-02T03:04:05.000000+00:00'"},
        {"tz = '2020-01-02T03:04:05+01:00'", "tz = timestamp '2020-01-02T02:04:05.000000+00:00'"},
        {"tn < '3000-01-01'", "tn is not null"},
        {"tm = '12:00'", "tm = time '12:00:00.000000'"},
        {"u = 'F79C3E09-677C-4bbd-a479-3f349cb785e7'",
         "u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"},
        {"x = X'0102'", "x = X'0102'"},
        {"st.a is null", "st.a is null"},
        {"st.c like 'x%'", "st.c starts with 'x'"},
        {"st is null", "st is null"},
        {"i = '7'", "i = 7"},
        {"false or i = 1", "i = 1"},
    };
    static const char *const bad[][2] = {
        {"nope = 1", "nope"},
        {"I = 1", "I of"},
        {"li.element = 1", "inside a list"},
        {"li = 1", "compared"},
        {"s = 5", "string"},
        {"b = 5", "boolean"},
        {"dt = 'x'", "date"},
        {"i = 'x'", "number"},
        {"x = X'01'", "fixed"},
        {"i like 'a%'", "prefix"},
        {"t = '2020-01-01T00:00:00Z'", "timestamp"},
        {"i = 'NaN'", "int"},
    };
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_expr *expr = NULL;
    const tarn_expr *bound = NULL;
    arena_init(&arena, env);
    const tarn_type *root = make_type(&arena);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_ok(expr_parse(&arena, str_of(texts[i][0]), &expr, &err));
        assert_ok(expr_bind(&arena, expr, root, true, &bound, &err));
        check_text(bound, env, texts[i][0], texts[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_ok(expr_parse(&arena, str_of(bad[i][0]), &expr, &err));
        assert_code(expr_bind(&arena, expr, root, true, &bound, &err), TARN_INVALID);
        if (strstr(err.message, bad[i][1]) == NULL) {
            fail_msg("\"%s\": \"%s\" did not hold \"%s\"", bad[i][0], err.message, bad[i][1]);
        }
    }
    assert_ok(expr_parse(&arena, STR("I = 1 and L = 2 and i = 3"), &expr, &err));
    assert_ok(expr_bind(&arena, expr, root, false, &bound, &err));
    int32_t ids[4];
    assert_int_equal(expr_field_ids(bound, ids, 4), 2);
    assert_int_equal(ids[0], 2);
    assert_int_equal(ids[1], 4);
    const tarn_expr *turned = expr_not(&arena, bound);
    check_text(turned, env, "not", "I != 1 or L != 2 or i != 3");
    arena_release(&arena);
    test_env_done(env);
}

/* ---- rows ---- */

#define NUMBERS                                                                                    \
    "{\"b\":true,\"i\":1,\"r\":0,\"l\":10,\"f\":1.5,\"d\":-0.0,\"n\":\"1.00\",\"s\":\"abc\","      \
    "\"t\":\"2020-01-01T00:00:00\",\"u\":\"00000000-0000-0000-0000-000000000001\",\"x\":\"0102\"," \
    "\"z\":\"01\",\"st\":{\"a\":1,\"c\":\"x\"}}\n"                                                 \
    "{\"b\":false,\"i\":-5,\"r\":0,\"l\":11,\"f\":\"NaN\",\"d\":0.0,\"n\":\"-2.50\",\"s\":\"\","   \
    "\"u\":\"ffffffff-0000-0000-0000-000000000001\",\"x\":\"ff00\",\"z\":\"\",\"st\":null}\n"      \
    "{\"b\":null,\"i\":null,\"r\":0,\"l\":null,\"f\":null,\"d\":null,\"n\":null,\"s\":null,"       \
    "\"st\":"                                                                                      \
    "{\"a\":null,\"c\":null}}\n"                                                                   \
    "{\"b\":true,\"i\":7,\"r\":1,\"l\":-3,\"f\":\"Infinity\",\"d\":\"NaN\",\"n\":\"100.00\","      \
    "\"s\":"                                                                                       \
    "\"abd\",\"u\":\"00000000-0000-0000-0000-000000000002\",\"x\":\"0102\",\"z\":\"ff\",\"st\":"   \
    "{\"a\":5,\"c\":\"xyz\"}}\n"                                                                   \
    "{\"b\":false,\"i\":1,\"r\":1,\"l\":12,\"f\":\"-Infinity\",\"d\":1e300,\"n\":\"1.01\",\"s\":"  \
    "\"\xc3\xa9\",\"x\":\"0103\",\"z\":\"0100\",\"st\":{\"a\":-1,\"c\":\"\"}}\n"

/* rows kept, as digits */
static const char *const row_cases[][2] = {
    {"i = 1", "04"},
    {"i != 1", "13"},
    {"i < 1", "1"},
    {"not i < 1", "034"},
    {"i is null", "2"},
    {"i is not null and l > 10", "14"},
    {"i in (1, 7)", "034"},
    {"i not in (1, 7)", "1"},
    {"b", "03"},
    {"not b", "14"},
    {"b < true", "14"},
    {"b <= false", "14"},
    {"b in (true, false)", "0134"},
    {"b != true", "14"},
    {"f > 1", "013"},
    {"f <= 1.5", "04"},
    {"f = 'NaN'", "1"},
    {"f != 'NaN'", "034"},
    {"f < 'NaN'", "034"},
    {"f >= 'NaN'", "1"},
    {"f <= 'NaN'", "0134"},
    {"f > 'NaN'", ""},
    {"f is nan", "1"},
    {"f is not nan", "034"},
    {"f < 1e300", "04"},
    {"f > 1e300", "13"},
    {"f < -1e300", "4"},
    {"d = 0.0", "01"},
    {"d = -0.0", "01"},
    {"d < 0.0", ""},
    {"d in (0, 1e300, 'NaN')", "0134"},
    {"d not in (-0.0, 5)", "34"},
    {"f in (1.5, 'NaN')", "01"},
    {"n < 1.005", "01"},
    {"n >= 1.01", "34"},
    {"n in (1, 1.01, 5)", "04"},
    {"s = 'abc'", "0"},
    {"s < 'abd'", "01"},
    {"s >= 'abd'", "34"},
    {"s like 'ab%'", "03"},
    {"s not like 'ab%'", "14"},
    {"s like '%'", "0134"},
    {"s in ('abc', '', 'zz')", "01"},
    {"s not in ('abc', '', 'zz')", "34"},
    {"u > '00000000-0000-0000-0000-000000000001'", "13"},
    {"x = X'0102'", "03"},
    {"x in (X'0103', X'ff00')", "14"},
    {"z < X'0100'", "01"},
    {"z = X''", "1"},
    {"st.a > 0", "03"},
    {"st.a is null", "12"},
    {"st.a is not null", "034"},
    {"st is null", "1"},
    {"st.c like 'x%'", "03"},
    {"i = 1 or s = 'abd' or b", "034"},
    {"(i = 1 or i = 7) and not (s = 'abc')", "34"},
    {"q is null", "01234"},
    {"t = '2020-01-01'", "0"},
    {"false", ""},
    {"r = 1", "34"},
};

static void check_rows(tarn_env *env, tarn_arena *arena, const tarn_batch *batch,
                       const char *filter, const char *want) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *expr = NULL;
    const tarn_expr *bound = NULL;
    uint8_t selection[32];
    int64_t n = -1;
    int64_t want_n = 0;
    memset(selection, 0xaa, sizeof selection);
    assert_ok(expr_parse(arena, str_of(filter), &expr, &err));
    assert_ok(expr_bind(arena, expr, batch->type, true, &bound, &err));
    assert_ok(expr_eval(env, bound, batch, selection, &n, &err));
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        bool kept = strchr(want, (int)('0' + i % 5)) != NULL;
        if (bit_get(selection, i) != kept) {
            fail_msg("%s: row %d was %s", filter, (int)(i % 5), kept ? "lost" : "kept");
        }
        want_n += kept;
    }
    assert_int_equal(n, want_n);
}

static void test_rows(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_batch batch;
    tarn_batch slice;
    tarn_buf lines;
    arena_init(&arena, env);
    buf_init(&lines, env, 0);
    const tarn_type *root = make_type(&arena);
    for (int i = 0; i < 30; i++) {
        assert_ok(buf_append_str(&lines, STR(NUMBERS), &err));
    }
    assert_ok(buf_append_char(&lines, '\0', &err));
    assert_ok(rows_read(env, &arena, root, (const char *)lines.data, &batch, &err));
    assert_int_equal(batch_rows(&batch), 150);
    for (size_t i = 0; i < sizeof row_cases / sizeof row_cases[0]; i++) {
        check_rows(env, &arena, &batch, row_cases[i][0], row_cases[i][1]);
    }
    assert_ok(batch_slice(env, &batch, 5, 133, &slice, &err));
    for (size_t i = 0; i < sizeof row_cases / sizeof row_cases[0]; i++) {
        check_rows(env, &arena, &slice, row_cases[i][0], row_cases[i][1]);
    }
    batch_release(&slice);
    batch_release(&batch);
    buf_release(&lines);
    arena_release(&arena);
    test_env_done(env);
}

static tarn_str random_text(tarn_env *env, char out[12]) {
    size_t len = (size_t)(env_random_u64(env) % 12);
    for (size_t i = 0; i < len; i++) {
        out[i] = "aab\x01"[env_random_u64(env) % 4];
    }
    return str_make(out, len);
}

/* Strings whose first eight bytes agree or not, against plain comparison. */
static void test_random_strings(void **state) {
    (void)state;
    static const expr_op ops[] = {
        EXPR_LT, EXPR_LE, EXPR_GT,     EXPR_GE,          EXPR_EQ,
        EXPR_NE, EXPR_IN, EXPR_NOT_IN, EXPR_STARTS_WITH, EXPR_NOT_STARTS_WITH};
    enum { ROWS = 300 };
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_builder b;
    tarn_batch batch;
    tarn_view view;
    char text[12];
    uint8_t bits[ROWS / 8 + 1];
    arena_init(&arena, env);
    const tarn_type *root = make_type(&arena);
    const tarn_type *type = type_primitive(TARN_STRING);
    tarn_field field = *type_child(root, STR("s"));
    root = type_struct(&arena, &field, 1);
    assert_ok(builder_init(&b, env, root, &err));
    for (int i = 0; i < ROWS; i++) {
        assert_ok(builder_bytes(&b.children[0], random_text(env, text), &err));
        assert_ok(builder_close(&b, &err));
    }
    assert_ok(builder_finish_batch(&b, &batch, &err));
    view_column(&batch, 0, &view);
    for (int round = 0; round < 300; round++) {
        char other[12];
        tarn_value values[2] = {value_str(type, random_text(env, text)),
                                value_str(type, random_text(env, other))};
        tarn_expr expr = {.op = ops[round % 10], .name = STR("s"), .values = values, .n_values = 1};
        const tarn_expr *bound = NULL;
        expr.n_values = expr.op == EXPR_IN || expr.op == EXPR_NOT_IN ? 2 : 1;
        assert_ok(expr_bind(&arena, &expr, root, true, &bound, &err));
        assert_ok(expr_eval(env, bound, &batch, bits, NULL, &err));
        for (int i = 0; i < ROWS; i++) {
            tarn_str x = view_bytes(&view, i);
            int cmp = str_cmp(x, values[0].as.bytes);
            bool among = cmp == 0 || str_eq(x, values[1].as.bytes);
            bool prefix = str_starts_with(x, values[0].as.bytes);
            bool want[] = {cmp<0, cmp <= 0, cmp> 0,
                           cmp >= 0,
                           cmp == 0,
                           cmp != 0,
                           among,
                           !among,
                           prefix,
                           !prefix};
            assert_int_equal(bit_get(bits, i), want[round % 10]);
        }
    }
    batch_release(&batch);
    builder_release(&b);
    arena_release(&arena);
    test_env_done(env);
}

/* ---- statistics ---- */

typedef struct batch_stats {
    tarn_env *env;
    const tarn_batch *batch;
    unsigned known; /* which parts are told: bits null, nan, value, lower, upper */
} batch_stats;

static bool stats_of(void *ctx, const tarn_field *field, expr_stats *out) {
    batch_stats *b = ctx;
    tarn_error err = TARN_ERROR_INIT;
    tarn_path_view path;
    memset(out, 0, sizeof *out);
    assert_ok(path_view_init(&path, b->env, b->batch, field->id, &err));
    out->value_count = path.view.length;
    for (int64_t i = 0; i < path.view.length; i++) {
        tarn_value v;
        if (view_is_null(&path.view, i)) {
            out->null_count++;
            continue;
        }
        if (type_is_nested(field->type)) {
            continue;
        }
        view_value(&path.view, i, &v);
        if ((field->type->kind == TARN_FLOAT && v.as.f32 != v.as.f32) ||
            (field->type->kind == TARN_DOUBLE && v.as.f64 != v.as.f64)) {
            out->nan_count++;
            continue;
        }
        if (!out->has_lower || value_cmp(&v, &out->lower) < 0) {
            out->lower = v;
        }
        if (!out->has_upper || value_cmp(&v, &out->upper) > 0) {
            out->upper = v;
        }
        out->has_lower = out->has_upper = true;
    }
    out->has_null_count = b->known & 1;
    out->has_nan_count = b->known & 2;
    out->has_value_count = b->known & 4;
    out->has_lower = out->has_lower && (b->known & 8);
    out->has_upper = out->has_upper && (b->known & 16);
    path_view_release(&path);
    return true;
}

/* Over every run of rows and every subset of what is told. */
static void test_statistics_agree_with_rows(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_batch batch;
    int pruned = 0;
    int proven = 0;
    arena_init(&arena, env);
    const tarn_type *root = make_type(&arena);
    assert_ok(rows_read(env, &arena, root, NUMBERS NUMBERS, &batch, &err));
    for (size_t c = 0; c < sizeof row_cases / sizeof row_cases[0]; c++) {
        const tarn_expr *expr = NULL;
        const tarn_expr *bound = NULL;
        assert_ok(expr_parse(&arena, str_of(row_cases[c][0]), &expr, &err));
        assert_ok(expr_bind(&arena, expr, root, true, &bound, &err));
        for (int64_t start = 0; start < 5; start++) {
            for (int64_t n = 1; n <= 5; n++) {
                tarn_batch slice;
                uint8_t bits[2];
                int64_t kept;
                assert_ok(batch_slice(env, &batch, start, n, &slice, &err));
                assert_ok(expr_eval(env, bound, &slice, bits, &kept, &err));
                for (unsigned known = 0; known < 32; known++) {
                    batch_stats ctx = {env, &slice, known};
                    bool may = expr_may_match(bound, stats_of, &ctx);
                    bool all = expr_all_match(bound, stats_of, &ctx);
                    if ((!may && kept > 0) || (all && kept < n)) {
                        fail_msg("%s on rows %d..+%d, told %x: may %d, all %d, kept %d",
                                 row_cases[c][0], (int)start, (int)n, known, may, all, (int)kept);
                    }
                    pruned += !may;
                    proven += all;
                }
                batch_release(&slice);
            }
        }
    }
    assert_true(pruned > 5000); /* and it is of use */
    assert_true(proven > 1000);
    batch_release(&batch);
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code exercise(tarn_env *env, tarn_error *err) {
    tarn_arena arena;
    tarn_batch batch = {0};
    const tarn_type *type = NULL;
    const tarn_expr *expr = NULL;
    tarn_buf text;
    int32_t next = 1;
    uint8_t bits[1];
    tarn_code code;
    arena_init(&arena, env);
    buf_init(&text, env, 0);
    TRY(type_from_text(&arena, str_of(table_type), &type, err));
    type = type_assign_ids(&arena, type, &next);
    if (type == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(rows_read(env, &arena, type, NUMBERS, &batch, err));
    TRY(expr_parse(&arena,
                   STR("(i in (1, 2) or s in ('a', 'b') or not st.a < 1.5) and d != 'NaN' and "
                       "n < 1e10 and t > '2010-01-01' and \"odd name\" is null"),
                   &expr, err));
    TRY(expr_bind(&arena, expr, type, true, &expr, err));
    TRY(expr_text(expr, &text, err));
    TRY(expr_eval(env, expr, &batch, bits, NULL, err));
done:
    buf_release(&text);
    batch_release(&batch);
    arena_release(&arena);
    return code;
}

static void test_without_memory(void **state) {
    (void)state;
    each_failure(exercise);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_random_strings),
        cmocka_unit_test(test_statistics_agree_with_rows),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
