/* Goal: schemas and arrays of others come in whole or are refused, never read beyond themselves.
 * Method: our own schema there and back; hand-made arrays of every foreign layout, then the same
 * with one thing wrong each. */
#include "rows.h"

/* A static array: release only marks it. */
static int releases;

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
    releases++;
}

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

typedef struct foreign {
    struct ArrowSchema schema, column_schema, inner_schema;
    struct ArrowArray array, column, inner;
    struct ArrowSchema *schema_children[1], *inner_schemas[1];
    struct ArrowArray *array_children[1], *inner_arrays[1];
    const void *root_buffers[1];
    const void *buffers[4];
    const void *inner_buffers[3];
} foreign;

static const uint8_t valid_but_one[] = {0xfd}; /* row 1 is null */

/* A batch of one column "c" of three rows. */
static void make_foreign(foreign *f, const char *format, int64_t n_buffers) {
    memset(f, 0, sizeof *f);
    f->schema.format = "+s";
    f->schema.n_children = 1;
    f->schema_children[0] = &f->column_schema;
    f->schema.children = f->schema_children;
    f->schema.release = release_schema;
    f->column_schema.format = format;
    f->column_schema.name = "c";
    f->column_schema.flags = ARROW_FLAG_NULLABLE;
    f->column_schema.release = release_schema;
    f->inner_schema.name = "item";
    f->inner_schema.flags = ARROW_FLAG_NULLABLE;
    f->inner_schema.release = release_schema;
    f->array.length = 3;
    f->array.n_buffers = 1;
    f->array.buffers = f->root_buffers;
    f->array.n_children = 1;
    f->array_children[0] = &f->column;
    f->array.children = f->array_children;
    f->array.release = release_array;
    f->column.length = 3;
    f->column.null_count = -1;
    f->column.n_buffers = n_buffers;
    f->column.buffers = f->buffers;
    f->column.release = release_array;
    f->buffers[0] = valid_but_one;
    f->inner.buffers = f->inner_buffers;
    f->inner.release = release_array;
}

static void add_child(foreign *f, const char *format, int64_t rows, const void *values) {
    f->inner_schema.format = format;
    f->inner_schemas[0] = &f->inner_schema;
    f->column_schema.n_children = 1;
    f->column_schema.children = f->inner_schemas;
    f->inner_arrays[0] = &f->inner;
    f->column.n_children = 1;
    f->column.children = f->inner_arrays;
    f->inner.length = rows;
    f->inner.n_buffers = 2;
    f->inner_buffers[1] = values;
}

static void check_foreign(foreign *f, const char *want_type, const char *want) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf text;
    tarn_batch batch;
    const tarn_type *type = NULL;
    releases = 0;
    arena_init(&arena, env);
    buf_init(&text, env, 0);
    assert_ok(type_from_arrow(&arena, &f->schema, &type, &err));
    assert_ok(type_text(type->fields[0].type, &text, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    assert_string_equal((const char *)text.data, want_type);
    assert_ok(batch_import(env, &f->schema, &f->array, type, &batch, &err));
    assert_null(f->array.release);
    assert_int_equal(releases, 0);
    rows_check(env, &batch, want);
    batch_release(&batch);
    assert_int_equal(releases, 1);
    buf_release(&text);
    arena_release(&arena);
    test_env_done(env);
}

static void refuse_foreign(foreign *f, tarn_code want, const char *part) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_batch batch;
    const tarn_type *type = NULL;
    arena_init(&arena, env);
    tarn_code code = type_from_arrow(&arena, &f->schema, &type, &err);
    if (code == TARN_OK) {
        code = batch_import(env, &f->schema, &f->array, type, &batch, &err);
    }
    assert_int_equal(code, want);
    if (strstr(err.message, part) == NULL) {
        fail_msg("\"%s\" did not hold \"%s\"", err.message, part);
    }
    assert_non_null(f->array.release); /* still the caller's */
    arena_release(&arena);
    test_env_done(env);
}

static void test_schema_round_trip(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    struct ArrowSchema schema;
    const tarn_type *type = NULL;
    const tarn_type *again = NULL;
    int32_t next = 1;
    arena_init(&arena, env);
    assert_ok(type_from_text(
        &arena,
        STR("struct<a: boolean, b: int not null, c: long, d: float, e: double, f: decimal(9, 2), "
            "g: "
            "date, h: time, i: timestamp, j: timestamptz, k: timestamp_ns, l: timestamptz_ns, m: "
            "string, n: uuid, o: fixed[5], p: binary, q: unknown, r: variant, s: struct<x: int>, "
            "t: "
            "list<string>, u: map<string, list<int>>>"),
        &type, &err));
    type = type_assign_ids(&arena, type, &next);
    assert_ok(type_to_arrow(env, type, &schema, &err));
    assert_ok(type_from_arrow(&arena, &schema, &again, &err));
    assert_true(type_eq(type, again));
    schema.release(&schema);
    arena_release(&arena);
    test_env_done(env);
}

static void test_layouts(void **state) {
    (void)state;
    foreign f;
    static const int8_t small[] = {-1, 0, 127};
    make_foreign(&f, "c", 2);
    f.buffers[1] = small;
    check_foreign(&f, "int", "{\"c\":-1}\n{\"c\":null}\n{\"c\":127}\n");

    static const uint64_t big[] = {UINT64_MAX, 0, 7};
    make_foreign(&f, "L", 2);
    f.buffers[1] = big;
    check_foreign(&f, "decimal(20, 0)",
                  "{\"c\":\"18446744073709551615\"}\n{\"c\":null}\n{\"c\":\"7\"}\n");

    static const uint16_t half[] = {0x3c00, 0, 0x0001};
    make_foreign(&f, "e", 2);
    f.buffers[1] = half;
    check_foreign(&f, "float", "{\"c\":1.0}\n{\"c\":null}\n{\"c\":5.9604645e-8}\n");

    static const int64_t large[] = {1, 3, 3, 5};
    make_foreign(&f, "U", 3);
    f.buffers[1] = large;
    f.buffers[2] = "xabcd";
    check_foreign(&f, "string", "{\"c\":\"ab\"}\n{\"c\":null}\n{\"c\":\"cd\"}\n");

    static const int64_t millis[] = {-1, 0, 1};
    make_foreign(&f, "tsm:Europe/Paris", 2);
    f.buffers[1] = millis;
    check_foreign(&f, "timestamptz",
                  "{\"c\":\"1969-12-31T23:59:59.999000+00:00\"}\n{\"c\":null}\n"
                  "{\"c\":\"1970-01-01T00:00:00.001000+00:00\"}\n");

    /* Values off their alignment are copied. */
    static _Alignas(8) uint8_t odd[32];
    static const int64_t longs[] = {1, 2, 3};
    memcpy(odd + 1, longs, sizeof longs);
    make_foreign(&f, "l", 2);
    f.buffers[1] = odd + 1;
    check_foreign(&f, "long", "{\"c\":1}\n{\"c\":null}\n{\"c\":3}\n");

    static const int32_t items[] = {1, 2, 3, 4, 5, 6};
    make_foreign(&f, "+w:2", 1);
    add_child(&f, "i", 6, items);
    check_foreign(&f, "list<int>", "{\"c\":[1,2]}\n{\"c\":null}\n{\"c\":[5,6]}\n");

    static const int32_t starts[] = {4, 0, 0};
    static const int32_t sizes[] = {2, 0, 3};
    make_foreign(&f, "+vl", 3);
    f.buffers[1] = starts;
    f.buffers[2] = sizes;
    add_child(&f, "i", 6, items);
    check_foreign(&f, "list<int>", "{\"c\":[5,6]}\n{\"c\":null}\n{\"c\":[1,2,3]}\n");

    static const uint8_t index[] = {1, 9, 0};
    make_foreign(&f, "C", 2);
    f.buffers[1] = index;
    f.inner_schema.format = "i";
    f.column_schema.dictionary = &f.inner_schema;
    f.column.dictionary = &f.inner;
    f.inner.length = 2;
    f.inner.n_buffers = 2;
    f.inner_buffers[1] = items;
    check_foreign(&f, "int", "{\"c\":2}\n{\"c\":null}\n{\"c\":1}\n");

    /* A canonical column is shared, with its own and the root's offsets. */
    make_foreign(&f, "i", 2);
    f.buffers[1] = items;
    f.column.offset = 1;
    f.column.length = 5;
    f.array.offset = 1;
    check_foreign(&f, "int", "{\"c\":3}\n{\"c\":4}\n{\"c\":5}\n");
}

static void test_refused(void **state) {
    (void)state;
    foreign f;
    static const int32_t down[] = {0, 3, 2, 4};
    make_foreign(&f, "u", 3);
    f.buffers[1] = down;
    f.buffers[2] = "abcd";
    refuse_foreign(&f, TARN_INVALID, "decreased");

    static const int64_t negative[] = {-1, 0, 1, 2};
    make_foreign(&f, "Z", 3);
    f.buffers[1] = negative;
    f.buffers[2] = "abcd";
    refuse_foreign(&f, TARN_INVALID, "decreased");

    static const int32_t up[] = {0, 1, 2, 3};
    make_foreign(&f, "u", 3);
    f.buffers[1] = up;
    f.buffers[2] = "a\xff\xc3";
    refuse_foreign(&f, TARN_INVALID, "row 2");

    static const int32_t items[] = {1, 2};
    make_foreign(&f, "+l", 2);
    f.buffers[1] = up;
    add_child(&f, "i", 2, items);
    refuse_foreign(&f, TARN_INVALID, "beyond");

    static const int64_t far[] = {0, 1, 2, INT64_MAX};
    make_foreign(&f, "+L", 2);
    f.buffers[1] = far;
    add_child(&f, "i", 2, items);
    refuse_foreign(&f, TARN_INVALID, "child");

    make_foreign(&f, "+w:2147483647", 1);
    add_child(&f, "i", 2, items);
    refuse_foreign(&f, TARN_INVALID, "child");

    static const int32_t index[] = {0, 0, 5};
    make_foreign(&f, "i", 2);
    f.buffers[1] = index;
    f.inner_schema.format = "i";
    f.column_schema.dictionary = &f.inner_schema;
    f.column.dictionary = &f.inner;
    f.inner.length = 2;
    f.inner.n_buffers = 2;
    f.inner_buffers[1] = items;
    refuse_foreign(&f, TARN_INVALID, "row 2");

    static const int32_t views[3][4] = {{1, 'a', 0, 0}, {0, 0, 0, 0}, {20, 0, 0, 100}};
    static const int64_t view_sizes[] = {50};
    make_foreign(&f, "vu", 4);
    f.buffers[1] = views;
    f.buffers[2] = "data";
    f.buffers[3] = view_sizes;
    refuse_foreign(&f, TARN_INVALID, "outside");

    static const int64_t seconds[] = {INT64_MAX / 2, 0, 0};
    make_foreign(&f, "tss:", 2);
    f.buffers[1] = seconds;
    refuse_foreign(&f, TARN_INVALID, "row 0");

    make_foreign(&f, "i", 1);
    refuse_foreign(&f, TARN_INVALID, "too few buffers");
    make_foreign(&f, "i", 2);
    refuse_foreign(&f, TARN_INVALID, "no values");
    make_foreign(&f, "tDs", 2);
    refuse_foreign(&f, TARN_UNSUPPORTED, "tDs");
    make_foreign(&f, "d:39,2", 2);
    refuse_foreign(&f, TARN_UNSUPPORTED, "(39, 2)");
    make_foreign(&f, "d:x", 2);
    refuse_foreign(&f, TARN_INVALID, "d:x");
    make_foreign(&f, "i", 2);
    f.buffers[1] = index;
    f.column.length = 2;
    refuse_foreign(&f, TARN_INVALID, "shorter");
    make_foreign(&f, "i", 2);
    f.buffers[1] = index;
    f.root_buffers[0] = valid_but_one;
    f.array.null_count = 1;
    refuse_foreign(&f, TARN_INVALID, "null as a whole");
}

static tarn_code exercise(tarn_env *env, tarn_error *err) {
    static const int64_t large[] = {1, 3, 3, 5};
    static const int32_t items[] = {1, 2, 3, 4, 5, 6};
    tarn_arena arena;
    foreign f;
    struct ArrowSchema schema = {0};
    tarn_batch batch = {0};
    const tarn_type *type = NULL;
    tarn_code code;
    arena_init(&arena, env);
    make_foreign(&f, "U", 3);
    f.buffers[1] = large;
    f.buffers[2] = "xabcd";
    TRY(type_from_arrow(&arena, &f.schema, &type, err));
    TRY(batch_import(env, &f.schema, &f.array, type, &batch, err));
    batch_release(&batch);
    make_foreign(&f, "+w:2", 1);
    add_child(&f, "s", 6, items);
    TRY(type_from_arrow(&arena, &f.schema, &type, err));
    TRY(type_to_arrow(env, type, &schema, err));
    TRY(batch_import(env, &f.schema, &f.array, type, &batch, err));
done:
    if (schema.release != NULL) {
        schema.release(&schema);
    }
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
        cmocka_unit_test(test_schema_round_trip),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
