/* Goal: transforms give what Iceberg's own code gives, value by value and as columns.
 * Method: 2081 vectors made by Iceberg Java; hash values of the specification's Appendix B; the
 * edges of B01 and B02. */
#include "fixture.h"

#include "base/time.h"
#include "iceberg/metadata.h"
#include "iceberg/transform.h"

static tarn_value parse_value(tarn_arena *arena, const tarn_type *type, const json_value *json) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_value v;
    if (json->kind == JSON_NULL) {
        return value_null(type);
    }
    assert_ok(value_from_json(arena, type, json, &v, &err));
    return v;
}

static void check_column(tarn_env *env, const tarn_transform *t, const tarn_value *in,
                         const tarn_type *result, const tarn_value *want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_builder src, dst;
    struct ArrowArray a;
    tarn_field field = {1, false, STR("x"), in->type, STR_NULL, NULL, NULL};
    tarn_arena arena;
    arena_init(&arena, env);
    assert_ok(builder_init(&src, env, type_struct(&arena, &field, 1), &err));
    assert_ok(builder_init(&dst, env, result, &err));
    for (int i = 0; i < 3; i++) {
        tarn_value row = i == 1 ? value_null(in->type) : *in;
        assert_ok(builder_value(&src.children[0], &row, &err));
        assert_ok(builder_close(&src, &err));
    }
    tarn_batch batch;
    assert_ok(builder_finish_batch(&src, &batch, &err));
    tarn_view view, out;
    view_column(&batch, 0, &view);
    assert_ok(transform_column(t, &view, &dst, &err));
    assert_ok(transform_column(t, &view, &dst, &err)); /* onto what is there */
    assert_ok(builder_finish(&dst, &a, &err));
    field.type = result;
    tarn_batch got;
    assert_ok(batch_assemble(env, type_struct(&arena, &field, 1), 6, &a, &got, &err));
    view_column(&got, 0, &out);
    for (int i = 0; i < 6; i++) {
        tarn_value v;
        view_value(&out, i, &v);
        if (i % 3 == 1) {
            assert_true(v.is_null);
        } else {
            assert_true(value_eq(&v, want));
        }
    }
    batch_release(&got);
    batch_release(&batch);
    builder_release(&src);
    builder_release(&dst);
    arena_release(&arena);
}

static void check_vector(tarn_arena *arena, tarn_str line) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = fixture_json(arena, line);
    const tarn_type *source, *result;
    tarn_transform t;
    tarn_value got;
    tarn_buf buf;
    buf_init(&buf, arena->env, 0);
    assert_ok(type_from_json(arena, json_get(json, "type"), &source, &err));
    assert_ok(transform_parse(arena, fixture_str(json, "transform"), &t, &err));
    assert_ok(transform_text(&t, &buf, &err));
    assert_true(str_eq(buf_str(&buf), fixture_str(json, "transform")));
    assert_ok(transform_result_type(arena, &t, source, &result, &err));
    buf_reset(&buf);
    assert_ok(type_text(result, &buf, &err));
    assert_true(str_eq(buf_str(&buf), fixture_str(json, "result_type")));
    tarn_value in = parse_value(arena, source, json_get(json, "value"));
    tarn_code code = transform_value(&t, &in, result, &got, &err);
    if (code == TARN_INVALID) { /* Java wraps or leaves the type (B01); we refuse */
        assert_non_null(strstr(err.message, "truncate["));
        buf_release(&buf);
        return;
    }
    assert_ok(code);
    tarn_value want = parse_value(arena, result, json_get(json, "result"));
    if (!value_eq(&got, &want)) {
        fail_msg("%.*s", STR_ARG(line));
    }
    buf_reset(&buf);
    assert_ok(transform_human(&t, &got, &buf, &err));
    /* Some Java versions print more digits of a float than needed: the value is what counts. */
    if (!got.is_null && (result->kind == TARN_FLOAT || result->kind == TARN_DOUBLE)) {
        tarn_value back;
        assert_true(buf.len <= fixture_str(json, "human").len);
        assert_ok(value_from_text(arena, result, buf_str(&buf), &back, &err));
        assert_true(value_eq(&back, &got));
    } else if (!str_eq(buf_str(&buf), fixture_str(json, "human"))) {
        fail_msg("%.*s gave %.*s", STR_ARG(line), STR_ARG(buf_str(&buf)));
    }
    check_column(arena->env, &t, &in, result, &want);
    buf_release(&buf);
}

static void vectors(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena all, one;
    arena_init(&all, env);
    tarn_str rest = fixture_unpack(
        &all, fixture_read(&all, TARN_TEST_FIXTURES "/vectors/transforms.ndjson.gz"));
    tarn_str line;
    int n = 0;
    while (str_split(&rest, '\n', &line)) {
        if (line.len == 0) {
            continue;
        }
        arena_init(&one, env);
        check_vector(&one, line);
        arena_release(&one);
        n++;
    }
    assert_int_equal(n, 2081);
    arena_release(&all);
    test_env_done(env);
}

static uint32_t bucket(tarn_arena *arena, const char *type_text_, const char *text) {
    /* N of 2^31 - 1 shows all bits of the hash but the sign and one wrap. */
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *type;
    tarn_value in, out;
    tarn_transform t = {TRANSFORM_BUCKET, INT32_MAX, STR_NULL};
    assert_ok(type_from_text(arena, str_of(type_text_), &type, &err));
    assert_ok(value_from_text(arena, type, str_of(text), &in, &err));
    assert_ok(transform_value(&t, &in, type_primitive(TARN_INT), &out, &err));
    return (uint32_t)out.as.i32;
}

static void appendix_b(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    static const struct {
        const char *type, *text;
        int32_t hash;
    } cases[] = {
        {"int", "34", 2017239379},
        {"long", "34", 2017239379},
        {"decimal(9,2)", "14.20", -500754589},
        {"date", "2017-11-16", -653330422},
        {"time", "22:31:08", -662762989},
        {"timestamp", "2017-11-16T22:31:08", -2047944441},
        {"timestamp", "2017-11-16T22:31:08.000001", -1207196810},
        {"timestamptz", "2017-11-16T14:31:08-08:00", -2047944441},
        {"timestamp_ns", "2017-11-16T22:31:08.000001001", -1207196810},
        {"timestamptz_ns", "2017-11-16T14:31:08.000001001-08:00", -1207196810},
        {"string", "iceberg", 1210000089},
        {"uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340},
        {"fixed[4]", "00010203", -188683207},
        {"binary", "00010203", -188683207},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bucket(&arena, cases[i].type, cases[i].text),
                         ((uint32_t)cases[i].hash & 0x7fffffffu) % INT32_MAX);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void truncate_refuses_below_minimum(void **state) { /* B01 */
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_value out;
    tarn_transform t = {TRANSFORM_TRUNCATE, 10000, STR_NULL};
    tarn_value v = value_i32(type_primitive(TARN_INT), INT32_MIN);
    assert_code(transform_value(&t, &v, v.type, &out, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "-2147483648"));
    assert_non_null(strstr(err.message, "truncate[10000]"));
    v.as.i32 = -2147480000;
    assert_ok(transform_value(&t, &v, v.type, &out, &err));
    assert_int_equal(out.as.i32, -2147480000);
    t.param = 10;
    tarn_value w = value_i64(type_primitive(TARN_LONG), INT64_MIN);
    assert_code(transform_value(&t, &w, w.type, &out, &err), TARN_INVALID);
    w.as.i64 = INT64_MAX;
    assert_ok(transform_value(&t, &w, w.type, &out, &err));
    assert_true(out.as.i64 == INT64_MAX - 7);
    t.param = 16; /* divides the range: the least value is its own truncation */
    w.as.i64 = INT64_MIN;
    assert_ok(transform_value(&t, &w, w.type, &out, &err));
    assert_true(out.as.i64 == INT64_MIN);
}

static void times_use_floor(void **state) { /* B02 */
    (void)state;
    static const struct {
        int64_t us;
        int32_t hour, day, month, year;
    } rows[] = {{-1, -1, -1, -1, -1},
                {-3600000000, -1, -1, -1, -1},
                {-3600000001, -2, -1, -1, -1},
                {-86400000000, -24, -1, -1, -1},
                {-86400000001, -25, -2, -1, -1},
                {-31536000000000, -8760, -365, -12, -1},
                {-31536000000001, -8761, -366, -13, -2},
                {0, 0, 0, 0, 0},
                {1, 0, 0, 0, 0},
                {3599999999, 0, 0, 0, 0},
                {3600000000, 1, 0, 0, 0}};
    tarn_error err = TARN_ERROR_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tarn_value v = value_i64(type_primitive(TARN_TIMESTAMP), rows[i].us), out;
        static const transform_kind kinds[] = {TRANSFORM_HOUR, TRANSFORM_DAY, TRANSFORM_MONTH,
                                               TRANSFORM_YEAR};
        int32_t want[] = {rows[i].hour, rows[i].day, rows[i].month, rows[i].year};
        for (int k = 0; k < 4; k++) {
            tarn_transform t = {kinds[k], 0, STR_NULL};
            assert_ok(transform_value(&t, &v, type_primitive(TARN_INT), &out, &err));
            assert_int_equal(out.as.i32, want[k]);
        }
    }
}

static void names(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_transform t, u;
    arena_init(&arena, env);
    assert_ok(transform_parse(&arena, STR("zorder[3]"), &t, &err));
    assert_int_equal(t.kind, TRANSFORM_UNKNOWN);
    assert_ok(transform_parse(&arena, STR("zorder[3]"), &u, &err));
    assert_true(transform_eq(&t, &u));
    assert_code(transform_parse(&arena, STR("bucket[0]"), &t, &err), TARN_INVALID);
    assert_code(transform_parse(&arena, STR("truncate[-1]"), &t, &err), TARN_INVALID);
    assert_code(transform_parse(&arena, STR("bucket[99999999999]"), &t, &err), TARN_INVALID);
    const tarn_type *out;
    t = (tarn_transform){TRANSFORM_BUCKET, 4, STR_NULL};
    assert_code(transform_result_type(&arena, &t, type_primitive(TARN_DOUBLE), &out, &err),
                TARN_INVALID);
    t.kind = TRANSFORM_HOUR;
    assert_code(transform_result_type(&arena, &t, type_primitive(TARN_DATE), &out, &err),
                TARN_INVALID);
    arena_release(&arena);
    test_env_done(env);
}

static void partition_paths(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf buf;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    const tarn_type *decimal;
    assert_ok(type_from_text(&arena, STR("decimal(9,2)"), &decimal, &err));
    tarn_partition_field fields[] = {{1, 1000, STR("s p/é"), {TRANSFORM_IDENTITY, 0, STR_NULL}},
                                     {2, 1001, STR("n_trunc"), {TRANSFORM_TRUNCATE, 5, STR_NULL}},
                                     {3, 1002, STR("t_hour"), {TRANSFORM_HOUR, 0, STR_NULL}},
                                     {4, 1003, STR("b"), {TRANSFORM_IDENTITY, 0, STR_NULL}}};
    tarn_spec spec = {0, 4, fields};
    const tarn_type *types[] = {type_primitive(TARN_STRING), decimal, type_primitive(TARN_INT),
                                type_primitive(TARN_BINARY)};
    tarn_str line,
        rest = fixture_unpack(
            &arena, fixture_read(&arena, TARN_TEST_FIXTURES "/vectors/partition_paths.ndjson.gz"));
    int n = 0;
    while (str_split(&rest, '\n', &line)) {
        if (line.len == 0) {
            continue;
        }
        json_value *json = fixture_json(&arena, line);
        tarn_value tuple[4];
        int k = 0;
        for (const json_value *v = json_get(json, "partition")->first; v != NULL; v = v->next) {
            tuple[k] = parse_value(&arena, types[k], v);
            k++;
        }
        assert_int_equal(k, 4);
        buf_reset(&buf);
        assert_ok(spec_partition_path(&spec, tuple, &buf, &err));
        if (!str_eq(buf_str(&buf), fixture_str(json, "path"))) {
            fail_msg("%.*s gave %.*s", STR_ARG(line), STR_ARG(buf_str(&buf)));
        }
        n++;
    }
    assert_int_equal(n, 18);
    buf_release(&buf);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),         cmocka_unit_test(appendix_b),
        cmocka_unit_test(names),           cmocka_unit_test(truncate_refuses_below_minimum),
        cmocka_unit_test(times_use_floor), cmocka_unit_test(partition_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
