/* Goal: every row of a batch lands in the one group of its partition tuple, and equal tuples keep
 * one key over the partitioner's life.
 * Method: tuples checked by hand for every transform (null, 0 and '' apart: B05); random batches
 * against transform_value row by row; memory that fails. */
#include "fail_alloc.h"
#include "unit/table/rows.h"

#include "write/partition/partition.h"

static tarn_error err;

typedef struct split_case {
    tarn_arena arena;
    const tarn_metadata *metadata;
    const tarn_type *partition_type;
    tarn_partitioner *partitioner;
} split_case;

static tarn_code open_case(split_case *c, tarn_env *env, const char *schema, const char *by,
                           tarn_error *e) {
    tarn_code code = TARN_OK;
    metadata_new_options options;
    memset(c, 0, sizeof *c);
    memset(&options, 0, sizeof options);
    arena_init(&c->arena, env);
    options.location = STR("/t");
    options.partition_by = str_of(by);
    TRY(type_from_text(&c->arena, str_of(schema), &options.root, e));
    TRY(metadata_new(&c->arena, &options, &c->metadata, e));
    TRY(spec_partition_type(&c->arena, metadata_spec(c->metadata), c->metadata, &c->partition_type,
                            e));
    TRY(partitioner_new(env, metadata_schema(c->metadata)->root, metadata_spec(c->metadata),
                        c->partition_type, &c->partitioner, e));
done:
    return code;
}

static void close_case(split_case *c) {
    partitioner_free(c->partitioner);
    arena_release(&c->arena);
}

static tarn_code put_group(const partition_group *g, int32_t n_fields, tarn_buf *out,
                           tarn_error *e) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n_fields; i++) {
        TRY(buf_append_char(out, i == 0 ? '(' : ' ', e));
        bool quoted = !g->partition[i].is_null && g->partition[i].type->kind == TARN_STRING;
        TRY(buf_append_str(out, str_of(quoted ? "'" : ""), e));
        TRY(value_to_text(&g->partition[i], out, e));
        TRY(buf_append_str(out, str_of(quoted ? "'" : ""), e));
    }
    TRY(buf_append_str(out, str_of(n_fields == 0 ? "(" : ""), e));
    TRY(buf_printf(out, e, ") #%lld:", (long long)g->key));
    for (int64_t i = 0; i < g->n_rows; i++) {
        TRY(buf_printf(out, e, " %d", g->rows[i]));
    }
    TRY(buf_append_char(out, '\n', e));
done:
    return code;
}

static tarn_code split_text(split_case *c, tarn_env *env, const char *lines, tarn_buf *out,
                            tarn_error *e) {
    tarn_code code = TARN_OK;
    const partition_group *groups;
    size_t n;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    TRY(rows_read(env, &c->arena, metadata_schema(c->metadata)->root, lines, &batch, e));
    TRY(partitioner_split(c->partitioner, &batch, &groups, &n, e));
    for (size_t g = 0; g < n; g++) {
        TRY(put_group(&groups[g], c->partition_type->n_fields, out, e));
    }
done:
    batch_release(&batch);
    return code;
}

static void check_split(const char *schema, const char *by, const char *lines, const char *want) {
    tarn_env *env = test_env();
    split_case c;
    tarn_buf out;
    buf_init(&out, env, 0);
    assert_ok(open_case(&c, env, schema, by, &err));
    assert_ok(split_text(&c, env, lines, &out, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
    close_case(&c);
    test_env_done(env);
}

static void test_partition_none(void **state) {
    (void)state;
    check_split("struct<a: int>", NULL, "{\"a\":1}\n{\"a\":2}", "() #0: 0 1\n");
}

static void test_partition_null_zero_empty(void **state) {
    (void)state;
    check_split("struct<k: int, s: string>", "k, s",
                "{\"k\":null,\"s\":\"a\"}\n{\"k\":0,\"s\":\"\"}\n{\"k\":0,\"s\":null}\n"
                "{\"k\":null,\"s\":null}\n{\"k\":null,\"s\":\"\"}\n{\"k\":0,\"s\":\"\"}\n"
                "{\"k\":null,\"s\":null}",
                "(null 'a') #0: 0\n(0 '') #1: 1 5\n(0 null) #2: 2\n(null null) #3: 3 6\n"
                "(null '') #4: 4\n");
}

static void test_partition_transforms(void **state) {
    (void)state;
    check_split("struct<t: timestamp, d: date>", "month(t), day(d)",
                "{\"t\":\"1970-01-31T23:59:59.999999\",\"d\":\"1969-12-31\"}\n"
                "{\"t\":\"1970-01-01T00:00:00\",\"d\":\"1969-12-31\"}\n"
                "{\"t\":\"1969-12-31T23:59:59.999999\",\"d\":\"1970-01-01\"}",
                "(0 1969-12-31) #0: 0 1\n(-1 1970-01-01) #1: 2\n");
    check_split("struct<t: timestamptz>", "hour(t)",
                "{\"t\":\"1970-01-01T00:59:59+00:00\"}\n{\"t\":\"1970-01-01T01:00:00+00:00\"}\n"
                "{\"t\":\"1969-12-31T23:00:00+00:00\"}\n{\"t\":null}",
                "(0) #0: 0\n(1) #1: 1\n(-1) #2: 2\n(null) #3: 3\n");
    check_split("struct<i: int, l: long, s: string, x: decimal(9,2)>",
                "truncate(10, i), truncate(10, l), truncate(3, s), truncate(50, x)",
                "{\"i\":-1,\"l\":-1,\"s\":\"\xc3\xa4"
                "bcd\",\"x\":\"10.65\"}\n"
                "{\"i\":-10,\"l\":-10,\"s\":\"\xc3\xa4"
                "bce\",\"x\":\"10.50\"}\n"
                "{\"i\":9,\"l\":0,\"s\":\"\",\"x\":\"-0.01\"}",
                "(-10 -10 '\xc3\xa4"
                "bc' 10.50) #0: 0 1\n(0 0 '' -0.50) #1: 2\n");
    check_split(
        "struct<i: int, s: string>", "bucket(16, i), bucket(100, s)",
        "{\"i\":34,\"s\":\"iceberg\"}\n{\"i\":34,\"s\":\"iceberg\"}\n{\"i\":null,\"s\":null}",
        "(3 89) #0: 0 1\n(null null) #1: 2\n");
    check_split("struct<b: boolean, u: uuid, f: fixed[2], z: binary, x: decimal(20,0)>",
                "b, u, f, z, x",
                "{\"b\":true,\"u\":\"00000000-0000-0000-0000-000000000001\",\"f\":\"0001\","
                "\"z\":\"\",\"x\":\"-1\"}\n"
                "{\"b\":false,\"u\":\"00000000-0000-0000-0000-000000000001\",\"f\":\"0001\","
                "\"z\":\"\",\"x\":\"-1\"}\n"
                "{\"b\":true,\"u\":\"00000000-0000-0000-0000-000000000001\",\"f\":\"0001\","
                "\"z\":\"\",\"x\":\"-1\"}",
                "(true 00000000-0000-0000-0000-000000000001 0001  -1) #0: 0 2\n"
                "(false 00000000-0000-0000-0000-000000000001 0001  -1) #1: 1\n");
}

static void test_partition_nested(void **state) {
    (void)state;
    check_split("struct<s: struct<a: int, b: string>>", "s.a",
                "{\"s\":{\"a\":0,\"b\":\"x\"}}\n{\"s\":null}\n{\"s\":{\"a\":null,\"b\":\"x\"}}\n"
                "{\"s\":{\"a\":0,\"b\":\"y\"}}",
                "(0) #0: 0 3\n(null) #1: 1 2\n");
}

/* Keys stay over batches, and what was met before comes back under its number. */
static void test_partition_keys_stay(void **state) {
    (void)state;
    tarn_env *env = test_env();
    split_case c;
    tarn_buf out;
    buf_init(&out, env, 0);
    assert_ok(open_case(&c, env, "struct<a: int, b: string>", "a, b", &err));
    assert_ok(split_text(&c, env, "{\"a\":1,\"b\":\"x\"}\n{\"a\":1,\"b\":\"y\"}", &out, &err));
    assert_ok(split_text(&c, env, "{\"a\":2,\"b\":\"x\"}\n{\"a\":1,\"b\":\"y\"}", &out, &err));
    assert_ok(split_text(&c, env, "", &out, &err));
    assert_ok(split_text(&c, env, "{\"a\":2,\"b\":\"x\"}", &out, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, "(1 'x') #0: 0\n(1 'y') #1: 1\n(2 'x') #2: 0\n"
                                                "(1 'y') #1: 1\n(2 'x') #2: 0\n");
    buf_release(&out);
    close_case(&c);
    test_env_done(env);
}

static void test_partition_refuses(void **state) {
    (void)state;
    tarn_env *env = test_env();
    split_case c;
    tarn_partition_field fields[1];
    tarn_spec spec = {7, 1, fields};
    tarn_partitioner *p = NULL;
    tarn_field known = {0};
    memset(fields, 0, sizeof fields);
    assert_ok(open_case(&c, env, "struct<a: int>", "a", &err));
    known.id = 1000;
    known.name = STR("z");
    known.type = type_primitive(TARN_UNKNOWN);
    const tarn_type *type = type_struct(&c.arena, &known, 1);
    fields[0] = (tarn_partition_field){1, 1000, STR("z"), {TRANSFORM_UNKNOWN, 0, STR("zorder")}};
    assert_code(partitioner_new(env, metadata_schema(c.metadata)->root, &spec, type, &p, &err),
                TARN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "zorder"));
    err_reset(&err);
    fields[0] = (tarn_partition_field){99, 1000, STR("gone"), {TRANSFORM_IDENTITY, 0, STR_NULL}};
    assert_code(partitioner_new(env, metadata_schema(c.metadata)->root, &spec, type, &p, &err),
                TARN_INVALID);
    assert_non_null(strstr(err.message, "99"));
    err_reset(&err);
    /* a dropped field of a version 1 spec: void of a column that is gone */
    fields[0].transform.kind = TRANSFORM_VOID;
    assert_ok(partitioner_new(env, metadata_schema(c.metadata)->root, &spec, type, &p, &err));
    partitioner_free(p);
    close_case(&c);
    test_env_done(env);
}

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* One group's rows all have its tuple, by transform_value of each row. */
static void check_group(const split_case *c, const tarn_batch *batch, const partition_group *g) {
    const tarn_spec *spec = metadata_spec(c->metadata);
    for (int32_t f = 0; f < spec->n_fields; f++) {
        tarn_path_view source;
        assert_ok(path_view_init(&source, c->arena.env, batch, spec->fields[f].source_id, &err));
        for (int64_t i = 0; i < g->n_rows; i++) {
            tarn_value in, out;
            assert_true(i == 0 || g->rows[i - 1] < g->rows[i]);
            view_value(&source.view, g->rows[i], &in);
            assert_ok(transform_value(&spec->fields[f].transform, &in,
                                      c->partition_type->fields[f].type, &out, &err));
            assert_true(value_eq(&out, &g->partition[f]));
        }
        path_view_release(&source);
    }
}

static void make_random(tarn_builder *b, uint64_t *seed, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        uint64_t r = next_random(seed);
        char text[24];
        int32_t number = (int32_t)(r % 700);
        double real = r % 3 == 0 ? -0.0 : r % 3 == 1 ? 0.0 : 0.0 / 0.0;
        int n = snprintf(text, sizeof text, "k%d", (int)(r / 7 % 40));
        assert_ok(r % 11 == 0 ? builder_null(&b->children[0], &err)
                              : builder_fixed(&b->children[0], &number, &err));
        assert_ok(r % 13 == 0 ? builder_null(&b->children[1], &err)
                              : builder_bytes(&b->children[1], str_make(text, (size_t)n), &err));
        assert_ok(builder_fixed(&b->children[2], &real, &err));
        assert_ok(builder_close(b, &err));
    }
}

static void test_partition_random(void **state) {
    (void)state;
    tarn_env *env = test_env();
    split_case c;
    tarn_builder b;
    uint64_t seed = 11;
    assert_ok(
        open_case(&c, env, "struct<a: int, s: string, d: double>", "a, truncate(2, s), d", &err));
    assert_ok(builder_init(&b, env, metadata_schema(c.metadata)->root, &err));
    for (int round = 0; round < 4; round++) {
        tarn_batch batch;
        const partition_group *groups;
        size_t n;
        int64_t total = 0;
        make_random(&b, &seed, 5000);
        assert_ok(builder_finish_batch(&b, &batch, &err));
        assert_ok(partitioner_split(c.partitioner, &batch, &groups, &n, &err));
        for (size_t g = 0; g < n; g++) {
            check_group(&c, &batch, &groups[g]);
            total += groups[g].n_rows;
            for (size_t h = 0; h < g && h < 50; h++) {
                bool same = true;
                for (int f = 0; f < 3; f++) {
                    same = same && value_eq(&groups[g].partition[f], &groups[h].partition[f]);
                }
                assert_false(same);
            }
        }
        assert_int_equal(total, 5000);
        batch_release(&batch);
    }
    builder_release(&b);
    close_case(&c);
    test_env_done(env);
}

static void test_partition_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error e = TARN_ERROR_INIT;
        split_case c;
        tarn_buf out;
        tarn_env *env = fail_alloc_env(&plan, k);
        buf_init(&out, env, 0);
        tarn_code code = open_case(&c, env, "struct<a: int, s: string>", "a, s", &e);
        if (code == TARN_OK) {
            code = split_text(&c, env,
                              "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"y\"}\n{\"a\":1,\"s\":\"x\"}",
                              &out, &e);
        }
        assert_int_equal(code, plan.failed ? TARN_NOMEM : TARN_OK);
        buf_release(&out);
        close_case(&c);
        bool failed = plan.failed;
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition_none),
        cmocka_unit_test(test_partition_null_zero_empty),
        cmocka_unit_test(test_partition_transforms),
        cmocka_unit_test(test_partition_nested),
        cmocka_unit_test(test_partition_keys_stay),
        cmocka_unit_test(test_partition_refuses),
        cmocka_unit_test(test_partition_random),
        cmocka_unit_test(test_partition_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
