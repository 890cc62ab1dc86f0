/* Goal: a file comes back from its JSON as it was, to the last bit, and JSON that is wrong in one
 * thing is refused by the name of that thing.
 * Method: files with every member set, with none, and partition values that text could bend; then
 * documents that differ from a good one by one text. */
#include "iceberg/file_json.h"
#include "test.h"

#include <math.h>

static tarn_error err;

static const tarn_metadata *table_of(tarn_arena *arena) {
    const tarn_metadata *m;
    metadata_new_options o;
    memset(&o, 0, sizeof o);
    assert_ok(type_from_text(
        arena, STR("struct<a: double, b: string, c: decimal(9, 2), d: binary>"), &o.root, &err));
    o.partition_by = STR("a, b, c, d");
    o.location = STR("/t");
    assert_ok(metadata_new(arena, &o, &m, &err));
    return m;
}

static void set_partition(tarn_arena *arena, const tarn_metadata *m, double a, tarn_file *f) {
    const tarn_type *type;
    tarn_value *values = ARENA_ARRAY(arena, tarn_value, 4);
    assert_ok(spec_partition_type(arena, metadata_spec(m), m, &type, &err));
    values[0] = value_null(type->fields[0].type);
    values[0].is_null = false;
    values[0].as.f64 = a;
    values[1] = value_str(type->fields[1].type, str_make("q\"\\\n\x01", 5));
    assert_ok(value_from_text(arena, type->fields[2].type, STR("-12.30"), &values[2], &err));
    values[3] = value_null(type->fields[3].type);
    f->spec_id = m->default_spec_id;
    f->partition = values;
    f->n_partition = 4;
}

static tarn_file full_file(tarn_arena *arena, const tarn_metadata *m, double a) {
    static const metric_count counts[] = {{1, INT64_MAX}, {2, 0}};
    static const metric_bound bounds[] = {{1, {"\0\xff\x80", 3}}, {2, {"", 0}}};
    static const int64_t offsets[] = {4, INT64_C(1) << 40};
    static const int32_t ids[] = {1, 3};
    tarn_file f;
    memset(&f, 0, sizeof f);
    set_partition(arena, m, a, &f);
    f.content = TARN_CONTENT_EQUALITY_DELETES;
    f.format = TARN_FORMAT_AVRO;
    f.path = STR("/t/data/ü %20.avro");
    f.record_count = 7;
    f.size_bytes = INT64_MAX;
    f.column_sizes = f.value_counts = f.null_counts = f.nan_counts = counts;
    f.n_column_sizes = f.n_value_counts = f.n_null_counts = f.n_nan_counts = 2;
    f.lower = f.upper = bounds;
    f.n_lower = f.n_upper = 2;
    f.key_metadata = STR("");
    f.split_offsets = offsets;
    f.n_split_offsets = 2;
    f.equality_ids = ids;
    f.n_equality_ids = 2;
    f.sort_order_id = 3;
    f.first_row_id = 0;
    f.referenced_data_file = STR("/t/data/x");
    f.content_offset = 4;
    f.content_size = 9;
    return f;
}

static void write_text(tarn_arena *arena, const tarn_file *f, tarn_str *out) {
    tarn_buf text;
    json_writer w;
    buf_init(&text, arena->env, 0);
    json_begin(&w, &text, false, &err);
    file_put_json(f, &w);
    assert_ok(json_end(&w));
    *out = arena_str(arena, buf_str(&text));
    buf_release(&text);
}

static tarn_code read_text(tarn_arena *arena, const tarn_metadata *m, tarn_str text,
                           tarn_file *out) {
    json_value *json;
    assert_ok(json_parse(arena, text, "test", &json, &err));
    return file_from_json(arena, json, m, out, &err);
}

static void test_file_json_round(void **state) {
    (void)state;
    static const double values[] = {0.1, -0.0, 1e308, 5e-324, INFINITY, -INFINITY, NAN};
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_metadata *m = table_of(&arena);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        tarn_file f = full_file(&arena, m, values[i]);
        tarn_file g;
        tarn_str first, second;
        write_text(&arena, &f, &first);
        assert_ok(read_text(&arena, m, first, &g));
        write_text(&arena, &g, &second);
        assert_true(str_eq(first, second));
        for (int p = 0; p < 4; p++) {
            assert_true(value_eq(&f.partition[p], &g.partition[p]));
        }
        assert_true(signbit(g.partition[0].as.f64) == signbit(values[i]) || isnan(values[i]));
        assert_true(g.lower[0].bytes.len == 3 &&
                    memcmp(g.lower[0].bytes.data, "\0\xff\x80", 3) == 0);
        assert_true(g.key_metadata.data != NULL && g.key_metadata.len == 0);
        assert_true(g.first_row_id == 0 && g.size_bytes == INT64_MAX);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void test_file_json_least(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    tarn_file f;
    arena_init(&arena, env);
    const tarn_metadata *m = table_of(&arena);
    assert_ok(
        read_text(&arena, m,
                  STR("{\"content\":\"DATA\",\"file-path\":\"/x\",\"file-format\":\"PARQUET\","
                      "\"spec-id\":0,\"partition\":[null,null,null,null],\"record-count\":1,"
                      "\"file-size-in-bytes\":2,\"key-metadata\":null,\"split-offsets\":null,"
                      "\"lower-bounds\":{\"keys\":[],\"values\":[]}}"),
                  &f));
    assert_true(f.content == TARN_CONTENT_DATA && f.format == TARN_FORMAT_PARQUET);
    assert_true(f.sort_order_id == -1 && f.first_row_id == -1 && f.content_offset == -1 &&
                f.content_size == -1 && f.key_metadata.data == NULL &&
                f.referenced_data_file.data == NULL && f.n_lower == 0);
    arena_release(&arena);
    test_env_done(env);
}

static void test_file_json_wrong(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *word;
    } cases[] = {
        {"equality-deletes", "deletes", "content"},
        {"\"avro\"", "\"csv\"", "file-format"},
        {"\"spec-id\":0", "\"spec-id\":\"0\"", "spec-id"},
        {"\"record-count\":7", "\"record-count\":7.5", "record-count"},
        {"\"record-count\":7", "\"record-count\":99999999999999999999", "record-count"},
        {"\"file-path\":\"/t", "\"file-pth\":\"/t", "file-path"},
        {"\"partition\":[0.5", "\"partition\":[0.5,1", "partition"},
        {"\"partition\":[0.5", "\"partition\":[true", "double"},
        {"\"-12.30\"", "\"-12.301\"", "decimal"},
        {"\"00FF80\"", "\"00FF8\"", "bounds"},
        {"\"00FF80\"", "\"00FFxy\"", "bounds"},
        {"\"sort-order-id\":3", "\"sort-order-id\":4294967296", "sort-order-id"},
        {"\"split-offsets\":[4", "\"split-offsets\":[null", "split-offsets"},
        {"\"equality-ids\":[1", "\"equality-ids\":[\"1\"", "equality-ids"},
        {"\"key-metadata\":\"\"", "\"key-metadata\":1", "key-metadata"},
        {"\"keys\":[1,2]", "\"keys\":[1]", "column-sizes"},
        {"\"referenced-data-file\":\"", "\"referenced-data-file\":{},\"x\":\"", "referenced"},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    tarn_file f;
    tarn_str good;
    arena_init(&arena, env);
    const tarn_metadata *m = table_of(&arena);
    f = full_file(&arena, m, 0.5);
    write_text(&arena, &f, &good);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *at = strstr(good.data, cases[i].from);
        assert_non_null(at);
        char *text = arena_printf(&arena, "%.*s%s%s", (int)(at - good.data), good.data, cases[i].to,
                                  at + strlen(cases[i].from));
        err_reset(&err);
        assert_int_equal(read_text(&arena, m, str_of(text), &f), TARN_INVALID);
        if (strstr(err.message, cases[i].word) == NULL) {
            fail_msg("%s: %s", cases[i].to, err.message);
        }
    }
    f.path = STR("/x");
    assert_int_equal(read_text(&arena, m,
                               STR("{\"content\":\"data\",\"file-path\":\"/x\",\"file-format\":"
                                   "\"orc\",\"spec-id\":9}"),
                               &f),
                     TARN_CONFLICT);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file_json_round),
                                       cmocka_unit_test(test_file_json_least),
                                       cmocka_unit_test(test_file_json_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
