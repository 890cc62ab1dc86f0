/* Goal: pruning never loses a row and never claims one too many.
 * Method: for many transforms, predicates and values it is checked that a matching value's
 * partition passes the inclusive projection, and that a partition passing the strict one holds only
 * matching values; also with the faults of old writers (B01 wrapped, B02 one too high). Then
 * manifests, files and residuals by hand. */
#include "fixture.h"

#include "iceberg/evaluate.h"

static bool one_value(void *ctx, const tarn_field *field, expr_stats *out) {
    const tarn_value *v = ctx;
    (void)field;
    memset(out, 0, sizeof *out);
    out->has_value_count = out->has_null_count = out->has_nan_count = true;
    out->value_count = 1;
    out->null_count = v->is_null;
    out->has_lower = out->has_upper = !v->is_null;
    out->lower = out->upper = *v;
    return true;
}

/* Exact for a single value. */
static bool holds(const tarn_expr *e, const tarn_value *v) {
    return expr_all_match(e, one_value, (void *)(uintptr_t)v);
}
static bool may_hold(const tarn_expr *e, const tarn_value *v) {
    return expr_may_match(e, one_value, (void *)(uintptr_t)v);
}

typedef struct law {
    tarn_arena arena;
    const tarn_type *root;
    const tarn_field *column;
    tarn_transform transform;
    tarn_field target;
    tarn_value *values;
    int n_values;
    int checked;
} law;

static bool is_time(const tarn_transform *t) {
    return t->kind >= TRANSFORM_YEAR && t->kind <= TRANSFORM_HOUR;
}

/* The partition value as it is, and as faulty writers stored it. */
static int stored_values(const law *l, const tarn_value *v, tarn_value out[2]) {
    tarn_error err = TARN_ERROR_INIT;
    if (transform_value(&l->transform, v, l->target.type, &out[0], &err) != TARN_OK) {
        int64_t w = l->transform.param;
        out[0] = *v;
        out[0].type = l->target.type;
        if (v->type->kind == TARN_INT) {
            int64_t low = v->as.i32 - num_floor_mod(v->as.i32, w);
            out[0].as.i32 = (int32_t)(uint32_t)(uint64_t)low;
        } else if (v->type->kind == TARN_LONG) {
            out[0].as.i64 = (int64_t)((uint64_t)v->as.i64 - (uint64_t)num_floor_mod(v->as.i64, w));
        } else {
            return 0;
        }
        return 1;
    }
    if (is_time(&l->transform) && !out[0].is_null && out[0].as.i32 < 0) {
        out[1] = out[0];
        out[1].as.i32++;
        return 2;
    }
    return 1;
}

static void check_predicate(law *l, const char *text) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *parsed, *bound, *inclusive, *strict;
    assert_ok(expr_parse(&l->arena, str_of(text), &parsed, &err));
    assert_ok(expr_bind(&l->arena, parsed, l->root, true, &bound, &err));
    if (bound->op == EXPR_TRUE || bound->op == EXPR_FALSE) {
        return;
    }
    assert_ok(transform_project(&l->arena, &l->transform, bound, &l->target, &inclusive, &err));
    assert_ok(transform_project_strict(&l->arena, &l->transform, bound, &l->target, &strict, &err));
    for (int i = 0; i < l->n_values; i++) {
        tarn_value stored[2];
        int n = stored_values(l, &l->values[i], stored);
        bool matches = holds(bound, &l->values[i]);
        for (int k = 0; k < n; k++) {
            if (matches && !may_hold(inclusive, &stored[k])) {
                fail_msg("%s, transform %d[%d], value %d: lost by the inclusive projection", text,
                         (int)l->transform.kind, l->transform.param, i);
            }
            if (!matches && holds(strict, &stored[k])) {
                fail_msg("%s, transform %d[%d], value %d: claimed by the strict projection", text,
                         (int)l->transform.kind, l->transform.param, i);
            }
            l->checked++;
        }
    }
}

static void check_column(tarn_env *env, const char *type, const char *const *texts, int n,
                         bool text_type, int *checked) {
    tarn_error err = TARN_ERROR_INIT;
    static const tarn_transform transforms[] = {
        {TRANSFORM_IDENTITY, 0, {NULL, 0}},  {TRANSFORM_BUCKET, 4, {NULL, 0}},
        {TRANSFORM_TRUNCATE, 3, {NULL, 0}},  {TRANSFORM_TRUNCATE, 10000, {NULL, 0}},
        {TRANSFORM_TRUNCATE, 16, {NULL, 0}}, {TRANSFORM_YEAR, 0, {NULL, 0}},
        {TRANSFORM_MONTH, 0, {NULL, 0}},     {TRANSFORM_DAY, 0, {NULL, 0}},
        {TRANSFORM_HOUR, 0, {NULL, 0}},      {TRANSFORM_VOID, 0, {NULL, 0}}};
    static const char *const ops[] = {"<", "<=", ">", ">=", "=", "!="};
    law l;
    memset(&l, 0, sizeof l);
    arena_init(&l.arena, env);
    char *root = arena_printf(&l.arena, "struct<x: %s>", type);
    assert_ok(type_from_text(&l.arena, str_of(root), &l.root, &err));
    int32_t next = 1;
    l.root = type_assign_ids(&l.arena, l.root, &next);
    l.column = &l.root->fields[0];
    l.values = ARENA_ARRAY(&l.arena, tarn_value, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        assert_ok(value_from_text(&l.arena, l.column->type, str_of(texts[i]), &l.values[i], &err));
    }
    l.values[n] = value_null(l.column->type);
    l.n_values = n + 1;
    for (size_t t = 0; t < sizeof transforms / sizeof transforms[0]; t++) {
        l.transform = transforms[t];
        l.target = (tarn_field){.id = 1000, .name = STR("p")};
        if (transform_result_type(&l.arena, &l.transform, l.column->type, &l.target.type, &err) !=
            TARN_OK) {
            continue;
        }
        for (int i = 0; i < n; i++) {
            const char *a = texts[i], *b = texts[(i * 7 + 3) % n];
            for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
                check_predicate(&l, arena_printf(&l.arena, "x %s '%s'", ops[o], a));
            }
            check_predicate(&l, arena_printf(&l.arena, "x in ('%s', '%s')", a, b));
            check_predicate(&l, arena_printf(&l.arena, "x not in ('%s', '%s')", a, b));
            if (text_type) {
                check_predicate(&l, arena_printf(&l.arena, "x like '%s%%'", a));
                check_predicate(&l, arena_printf(&l.arena, "x not like '%s%%'", a));
            }
        }
        check_predicate(&l, "x is null");
        check_predicate(&l, "x is not null");
    }
    *checked += l.checked;
    arena_release(&l.arena);
}

static void projections(void **state) { /* B01, B02 */
    (void)state;
    static const char *const ints[] = {
        "-2147483648", "-2147483647", "-2147480001", "-2147480000", "-2147479999", "-20000",
        "-10001",      "-10000",      "-17",         "-16",         "-4",          "-3",
        "-2",          "-1",          "0",           "1",           "2",           "3",
        "15",          "16",          "9999",        "10000",       "2147477296",  "2147480000",
        "2147483646",  "2147483647"};
    static const char *const longs[] = {"-9223372036854775808",
                                        "-9223372036854775807",
                                        "-9223372036854770001",
                                        "-9223372036854770000",
                                        "-10000",
                                        "-5",
                                        "-1",
                                        "0",
                                        "1",
                                        "7",
                                        "10000",
                                        "9223372036854770000",
                                        "9223372036854775806",
                                        "9223372036854775807"};
    static const char *const decimals[] = {"-9999999.00", "-100.01", "-100.00",   "-0.04", "-0.03",
                                           "-0.01",       "0.00",    "0.02",      "0.03",  "1.50",
                                           "99.99",       "100.00",  "9999999.99"};
    static const char *const strings[] = {"",    "a",       "ab",           "abc",
                                          "abd", "abcdefg", "zz",           "abcdefghijklmnopq",
                                          "日",  "日本語x", "日本語文字列", "ab\xf0\x9f\x98\x80z"};
    static const char *const dates[] = {"1968-12-31", "1969-01-01", "1969-11-30", "1969-12-01",
                                        "1969-12-31", "1970-01-01", "1970-01-02", "1970-02-01",
                                        "1971-01-01", "2024-02-29", "0001-01-01", "9999-12-31"};
    static const char *const times[] = {
        "1968-12-31T23:59:59.999999", "1969-01-01T00:00:00", "1969-12-30T23:59:59.999999",
        "1969-12-31T00:00:00",        "1969-12-31T10:00:00", "1969-12-31T22:59:59.999999",
        "1969-12-31T23:00:00",        "1969-12-31T23:30:00", "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00",        "1970-01-01T00:30:00", "1970-01-01T01:00:00",
        "1970-02-01T00:00:00",        "2024-02-29T12:34:56"};
    tarn_env *env = test_env();
    int checked = 0;
#define CHECK(type, list, text)                                                                    \
    check_column(env, type, list, sizeof list / sizeof list[0], text, &checked)
    CHECK("int", ints, false);
    CHECK("long", longs, false);
    CHECK("decimal(9, 2)", decimals, false);
    CHECK("string", strings, true);
    CHECK("date", dates, false);
    CHECK("timestamp", times, false);
    CHECK("timestamp_ns", times, false);
    assert_true(checked > 50000);
    test_env_done(env);
}

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    tarn_evaluator e;
} bench;

static void bench_open(bench *b, const char *type, const char *by) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root;
    b->env = test_env();
    arena_init(&b->arena, b->env);
    assert_ok(type_from_text(&b->arena, str_of(type), &root, &err));
    metadata_new_options options = {
        .root = root, .partition_by = str_of(by), .location = STR("/t")};
    assert_ok(metadata_new(&b->arena, &options, &b->m, &err));
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

static void ask(bench *b, const char *filter) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *parsed, *bound;
    assert_ok(expr_parse(&b->arena, str_of(filter), &parsed, &err));
    assert_ok(expr_bind(&b->arena, parsed, metadata_schema(b->m)->root, true, &bound, &err));
    assert_ok(evaluator_init(&b->arena, b->m, metadata_spec(b->m), bound, &b->e, &err));
}

static void manifests(void **state) {
    (void)state;
    bench b;
    bench_open(&b, "struct<k: int, s: string>", "k, truncate(2, s)");
    tarn_field_summary parts[] = {
        {.contains_null = false,
         .contains_nan = 0,
         .has_lower = true,
         .has_upper = true,
         .lower = STR("\5\0\0\0"),
         .upper = STR("\11\0\0\0")},
        {.contains_null = true, .contains_nan = 0}}; /* nothing but nulls */
    tarn_manifest m = {.n_partitions = 2, .partitions = parts};
    static const struct {
        const char *filter;
        bool may;
    } cases[] = {{"k = 5", true},          {"k = 4", false},         {"k > 9", false},
                 {"k >= 9", true},         {"k is null", false},     {"k in (1, 2)", false},
                 {"k in (1, 7)", true},    {"s = 'x'", false},       {"s is null", true},
                 {"s like 'abc%'", false}, {"k = 4 or k = 6", true}, {"k = 6 and s = 'q'", false},
                 {"not (k = 5)", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask(&b, cases[i].filter);
        if (evaluator_manifest(&b.e, &m) != cases[i].may) {
            fail_msg("%s", cases[i].filter);
        }
    }
    tarn_manifest unknown = {.n_partitions = 0};
    ask(&b, "k = 4");
    assert_true(evaluator_manifest(&b.e, &unknown));
    bench_close(&b);
}

static void files_and_residuals(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *rest;
    bench_open(&b, "struct<ts: timestamp, v: long, in: struct<w: long>>", "day(ts)");
    tarn_value day = value_i32(type_primitive(TARN_DATE), 19000); /* 2022-01-08 */
    static const metric_count values[] = {{2, 10}, {4, 10}}, nulls[] = {{2, 0}, {4, 0}};
    static const metric_bound lower[] = {{2, {"\12\0\0\0\0\0\0\0", 8}},
                                         {4, {"\12\0\0\0\0\0\0\0", 8}}};
    static const metric_bound upper[] = {{2, {"\24\0\0\0\0\0\0\0", 8}},
                                         {4, {"\24\0\0\0\0\0\0\0", 8}}};
    tarn_file f = {.n_partition = 1,
                   .partition = &day,
                   .record_count = 10,
                   .n_value_counts = 2,
                   .value_counts = values,
                   .n_null_counts = 2,
                   .null_counts = nulls,
                   .n_lower = 2,
                   .lower = lower,
                   .n_upper = 2,
                   .upper = upper};
    static const struct {
        const char *filter;
        bool may, all;
        const char *residual; /* NULL: as it is */
    } cases[] = {
        {"ts >= '2022-01-08T00:00:00'", true, true, "true"},
        {"ts >= '2022-01-08T00:00:01'", true, false, NULL},
        {"ts < '2022-01-08T00:00:00'", false, false, "false"},
        {"ts < '2022-01-09T00:00:00'", true, true, "true"},
        {"v >= 10", true, true, NULL},
        {"v > 10", true, false, NULL},
        {"v > 20", false, false, NULL},
        {"in.w >= 10", true, false, NULL}, /* the struct may be null */
        {"in.w > 20", false, false, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask(&b, cases[i].filter);
        assert_ok(evaluator_residual(&b.arena, &b.e, &day, &rest, &err));
        bool as_is = rest == b.e.filter;
        const char *got = as_is ? NULL : rest->op == EXPR_TRUE ? "true" : "false";
        if (evaluator_file(&b.e, &f) != cases[i].may ||
            evaluator_file_all(&b.e, &f) != cases[i].all ||
            (got == NULL) != (cases[i].residual == NULL) ||
            (got != NULL && strcmp(got, cases[i].residual) != 0)) {
            fail_msg("%s: may %d, all %d, residual %s", cases[i].filter, evaluator_file(&b.e, &f),
                     evaluator_file_all(&b.e, &f), got != NULL ? got : "as it is");
        }
    }
    ask(&b, "ts >= '2022-01-08T00:00:00' and v = 12");
    assert_ok(evaluator_residual(&b.arena, &b.e, &day, &rest, &err));
    assert_int_equal(rest->op, EXPR_EQ);
    f.record_count = 0;
    assert_false(evaluator_file(&b.e, &f));
    bench_close(&b);
}

static void bounds_cut_within_a_character(void **state) { /* B07: compared as bytes */
    (void)state;
    bench b;
    bench_open(&b, "struct<s: string>", "");
    static const metric_bound lower = {1, {"ab\xe2\x80", 4}}, upper = {1, {"ab\xe2\x80\x9a", 5}};
    tarn_file f = {.record_count = 3, .n_lower = 1, .lower = &lower, .n_upper = 1, .upper = &upper};
    static const struct {
        const char *filter;
        bool may;
    } cases[] = {{"s = 'ab\xe2\x80\x99'", true},
                 {"s = 'ab'", false},
                 {"s < 'ab'", false},
                 {"s < 'ac'", true},
                 {"s like 'ab%'", true},
                 {"s > 'ac'", false},
                 {"s is not null", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask(&b, cases[i].filter);
        if (evaluator_file(&b.e, &f) != cases[i].may) {
            fail_msg("%s", cases[i].filter);
        }
    }
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections),
        cmocka_unit_test(manifests),
        cmocka_unit_test(files_and_residuals),
        cmocka_unit_test(bounds_cut_within_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
