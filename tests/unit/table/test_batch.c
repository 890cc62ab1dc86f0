/* Goal: builders, views, slices, gathers, filters and concatenation keep every value of every kind.
 * Method: rows as JSON in and out, against the same rows picked as lines; every allocation failing
 * in turn. */
#include "rows.h"

static const char type_text_all[] =
    "struct<b: boolean, i: int, l: long, f: float, d: double, n: decimal(9,2), t: timestamptz, s: "
    "string, u: uuid, x: fixed[3], z: binary, q: unknown, st: struct<a: int, c: string>, li: "
    "list<string>, m: map<string, list<int>>>";

#define ROW_A                                                                                      \
    "{\"b\":true,\"i\":1,\"l\":-5,\"f\":0.1,\"d\":\"NaN\",\"n\":\"1.50\",\"t\":"                   \
    "\"2020-01-01T00:00:00.000000+00:00\",\"s\":\"hello\",\"u\":"                                  \
    "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"x\":\"010203\",\"z\":\"\",\"q\":null,\"st\":"      \
    "{\"a\":7,\"c\":null},\"li\":[\"x\",null,\"\"],\"m\":{\"keys\":[\"k\",\"j\"],\"values\":"      \
    "[[1,2],null]}}\n"
#define ROW_B                                                                                      \
    "{\"b\":null,\"i\":null,\"l\":null,\"f\":null,\"d\":null,\"n\":null,\"t\":null,\"s\":null,"    \
    "\"u\":null,\"x\":null,\"z\":null,\"q\":null,\"st\":null,\"li\":null,\"m\":null}\n"
#define ROW_C                                                                                      \
    "{\"b\":false,\"i\":-2147483648,\"l\":9,\"f\":-0.0,\"d\":1e300,\"n\":\"-0.01\",\"t\":"         \
    "\"1969-12-31T23:59:59.999999+00:00\",\"s\":\"a string that is longer than sixteen bytes\","   \
    "\"u\":\"00000000-0000-0000-0000-000000000001\",\"x\":\"ffffff\",\"z\":\"00ff\",\"q\":null,"   \
    "\"st\":{\"a\":null,\"c\":\"inner\"},\"li\":[],\"m\":{\"keys\":[],\"values\":[]}}\n"

static const char *const all_rows[] = {ROW_A, ROW_B, ROW_C};

static const tarn_type *all_type(tarn_arena *arena) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *type = NULL;
    assert_ok(type_from_text(arena, str_of(type_text_all), &type, &err));
    return type;
}

/* n rows, the i-th of kind i % 3. */
static void make_lines(tarn_buf *buf, const int32_t *index, int64_t n) {
    tarn_error err = TARN_ERROR_INIT;
    buf_reset(buf);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = index != NULL ? index[i] : i;
        assert_ok(buf_append_str(buf, str_of(all_rows[row % 3]), &err));
    }
    assert_ok(buf_append_char(buf, '\0', &err));
}

static void test_round_trip(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf lines;
    tarn_batch batch;
    arena_init(&arena, env);
    buf_init(&lines, env, 0);
    for (int64_t n = 0; n < 200; n = n * 2 + 1) {
        make_lines(&lines, NULL, n);
        assert_ok(rows_read(env, &arena, all_type(&arena), (const char *)lines.data, &batch, &err));
        assert_int_equal(batch_rows(&batch), n);
        rows_check(env, &batch, (const char *)lines.data);
        assert_true((batch_bytes(&batch) > 0) == (n > 0));
        batch_release(&batch);
    }
    buf_release(&lines);
    arena_release(&arena);
    test_env_done(env);
}

static void test_slices_outlive_source(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf lines;
    tarn_batch batch;
    tarn_batch slice;
    tarn_batch inner;
    arena_init(&arena, env);
    buf_init(&lines, env, 0);
    make_lines(&lines, NULL, 30);
    assert_ok(rows_read(env, &arena, all_type(&arena), (const char *)lines.data, &batch, &err));
    assert_ok(batch_slice(env, &batch, 4, 20, &slice, &err));
    rows_check(env, &batch, (const char *)lines.data);
    assert_ok(batch_slice(env, &slice, 3, 5, &inner, &err));
    batch_release(&batch);
    batch_release(&slice);
    int32_t want[] = {7, 8, 9, 10, 11};
    make_lines(&lines, want, 5);
    rows_check(env, &inner, (const char *)lines.data);

    /* A column may be moved out and outlive the rest. */
    struct ArrowArray column = *inner.array.children[7];
    inner.array.children[7]->release = NULL;
    batch_release(&inner);
    tarn_view view;
    view_array(&column, type_primitive(TARN_STRING), &view);
    assert_true(str_is(view_bytes(&view, 2), "hello"));
    column.release(&column);
    buf_release(&lines);
    arena_release(&arena);
    test_env_done(env);
}

static void test_gather_filter_concat(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf lines;
    tarn_batch whole;
    tarn_batch batch;
    tarn_batch out;
    enum { ROWS = 100, PICKS = 333 };
    static int32_t index[PICKS];
    arena_init(&arena, env);
    buf_init(&lines, env, 0);
    make_lines(&lines, NULL, ROWS + 5);
    assert_ok(rows_read(env, &arena, all_type(&arena), (const char *)lines.data, &whole, &err));
    assert_ok(batch_slice(env, &whole, 3, ROWS, &batch, &err)); /* 3: row kinds stay the same */
    batch_release(&whole);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < PICKS; i++) {
            index[i] = (int32_t)(env_random_u64(env) % ROWS);
        }
        int64_t n = (int64_t)(env_random_u64(env) % (PICKS + 1));
        assert_ok(batch_gather(env, &batch, index, n, &out, &err));
        make_lines(&lines, index, n);
        rows_check(env, &out, (const char *)lines.data);

        uint8_t bits[ROWS / 8 + 1];
        int32_t kept[ROWS];
        int64_t n_kept = 0;
        for (int32_t i = 0; i < ROWS; i++) {
            /* in odd rounds few rows go */
            bool drawn = env_random_u64(env) % (unsigned)(round * 2 + 1) == 0;
            bool keep = round == 0 || drawn == (round % 2 == 0);
            keep ? bit_set(bits, i) : bit_clear(bits, i);
            if (keep) {
                kept[n_kept++] = i;
            }
        }
        tarn_batch filtered;
        tarn_batch joined;
        assert_ok(batch_filter(env, &batch, bits, &filtered, &err));
        make_lines(&lines, kept, n_kept);
        rows_check(env, &filtered, (const char *)lines.data);

        const tarn_batch *both[] = {&out, &filtered};
        assert_ok(batch_concat(env, both, 2, &joined, &err));
        assert_int_equal(batch_rows(&joined), n + n_kept);
        int32_t all[PICKS + ROWS];
        memcpy(all, index, (size_t)n * sizeof *all);
        memcpy(all + n, kept, (size_t)n_kept * sizeof *all);
        make_lines(&lines, all, n + n_kept);
        rows_check(env, &joined, (const char *)lines.data);
        batch_release(&out);
        batch_release(&filtered);
        batch_release(&joined);
    }
    batch_release(&batch);
    buf_release(&lines);
    arena_release(&arena);
    test_env_done(env);
}

/* As bytes and back; bytes that end early or lie are refused and leave nothing behind. */
static void test_dump(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf lines;
    tarn_buf bytes;
    tarn_batch batch;
    tarn_builder b;
    arena_init(&arena, env);
    buf_init(&lines, env, 0);
    buf_init(&bytes, env, 0);
    for (int64_t n = 0; n < 200; n = n * 2 + 1) {
        tarn_view rows;
        make_lines(&lines, NULL, n);
        assert_ok(rows_read(env, &arena, all_type(&arena), (const char *)lines.data, &batch, &err));
        view_array(&batch.array, batch.type, &rows);
        assert_ok(builder_init(&b, env, batch.type, &err));
        assert_ok(builder_view(&b, &rows, 0, n, &err));
        buf_reset(&bytes);
        assert_ok(builder_dump(&b, &bytes, &err));
        builder_release(&b);
        for (size_t cut = 0; cut < bytes.len; cut += 1 + cut / 20) {
            assert_ok(builder_init(&b, env, batch.type, &err));
            assert_code(builder_load(&b, str_make(bytes.data, cut), &err), TARN_CORRUPT);
            builder_release(&b);
            err_reset(&err);
        }
        assert_ok(builder_init(&b, env, batch.type, &err));
        assert_ok(builder_load(&b, buf_str(&bytes), &err));
        batch_release(&batch);
        assert_ok(builder_finish_batch(&b, &batch, &err));
        builder_release(&b);
        assert_int_equal(batch_rows(&batch), n);
        rows_check(env, &batch, (const char *)lines.data);
        batch_release(&batch);
    }
    bytes.data[7] = 0x7f; /* of the length */
    assert_ok(builder_init(&b, env, all_type(&arena), &err));
    assert_code(builder_load(&b, buf_str(&bytes), &err), TARN_CORRUPT);
    builder_release(&b);
    buf_release(&bytes);
    buf_release(&lines);
    arena_release(&arena);
    test_env_done(env);
}

static void test_truncate(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_builder b;
    tarn_batch batch;
    json_value *json = NULL;
    arena_init(&arena, env);
    assert_ok(builder_init(&b, env, all_type(&arena), &err));
    for (int i = 0; i < 9; i++) {
        assert_ok(json_parse(&arena, str_of(all_rows[i % 3]), "row", &json, &err));
        assert_ok(rows_append(&b, &arena, json, &err));
    }
    /* A row given up half way: some children are ahead. */
    assert_ok(builder_bool(&b.children[0], true, &err));
    assert_ok(builder_bytes(&b.children[13].children[0], STR("half"), &err));
    builder_truncate(&b, 9);
    assert_int_equal(b.children[13].children[0].length, 9);
    builder_truncate(&b, 4);
    assert_ok(rows_append(&b, &arena, json, &err));
    assert_ok(builder_finish_batch(&b, &batch, &err));
    rows_check(env, &batch, ROW_A ROW_B ROW_C ROW_A ROW_C);
    batch_release(&batch);
    builder_release(&b);
    arena_release(&arena);
    test_env_done(env);
}

static void test_path_view(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_batch batch;
    tarn_path_view path;
    const tarn_type *type = NULL;
    int32_t next = 1;
    arena_init(&arena, env);
    assert_ok(
        type_from_text(&arena, STR("struct<a: int, s: struct<t: struct<x: int>>>"), &type, &err));
    type = type_assign_ids(&arena, type, &next);
    assert_ok(rows_read(env, &arena, type,
                        "{\"a\":1,\"s\":{\"t\":{\"x\":5}}}\n{\"a\":1,\"s\":{\"t\":null}}\n"
                        "{\"a\":1,\"s\":null}\n{\"a\":1,\"s\":{\"t\":{\"x\":null}}}\n",
                        &batch, &err));
    assert_ok(path_view_init(&path, env, &batch, 4, &err));
    assert_false(view_is_null(&path.view, 0));
    for (int i = 1; i < 4; i++) {
        assert_true(view_is_null(&path.view, i));
    }
    assert_int_equal(view_null_count(&path.view), 3);
    path_view_release(&path);
    assert_code(path_view_init(&path, env, &batch, 40, &err), TARN_INTERNAL);
    batch_release(&batch);
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code exercise(tarn_env *env, tarn_error *err) {
    tarn_arena arena;
    tarn_batch batch = {0};
    tarn_batch slice = {0};
    tarn_batch out = {0};
    const tarn_type *type = NULL;
    static const int32_t index[] = {2, 0, 1, 2, 2};
    tarn_code code;
    arena_init(&arena, env);
    TRY(type_from_text(&arena, str_of(type_text_all), &type, err));
    TRY(rows_read(env, &arena, type, ROW_A ROW_B ROW_C ROW_A, &batch, err));
    TRY(batch_slice(env, &batch, 1, 3, &slice, err));
    TRY(batch_gather(env, &slice, index, 5, &out, err));
    batch_release(&out);
    TRY(batch_filter(env, &slice, (const uint8_t *)"\5", &out, err));
done:
    batch_release(&batch);
    batch_release(&slice);
    batch_release(&out);
    arena_release(&arena);
    return code;
}

static void test_without_memory(void **state) {
    (void)state;
    each_failure(exercise);
}

static void test_validate_refuses(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_batch batch;
    const tarn_type *type = NULL;
    arena_init(&arena, env);
    assert_ok(type_from_text(&arena, STR("struct<s: string, l: list<int>>"), &type, &err));
    assert_ok(rows_read(env, &arena, type, "{\"s\":\"ab\",\"l\":[1,2]}\n{\"s\":\"c\",\"l\":[]}\n",
                        &batch, &err));
    int32_t *offsets = (int32_t *)(uintptr_t)batch.array.children[0]->buffers[1];
    offsets[1] = 7;
    assert_code(batch_validate(&batch, &err), TARN_INVALID);
    offsets[1] = 2;
    assert_ok(batch_validate(&batch, &err));
    int32_t *list = (int32_t *)(uintptr_t)batch.array.children[1]->buffers[1];
    list[2] = 3;
    assert_code(batch_validate(&batch, &err), TARN_INVALID);
    list[2] = 2;
    ((uint8_t *)(uintptr_t)batch.array.children[0]->buffers[2])[0] = 0xff;
    assert_code(batch_validate(&batch, &err), TARN_INVALID);
    batch_release(&batch);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_slices_outlive_source),
        cmocka_unit_test(test_gather_filter_concat),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_path_view),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_validate_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
