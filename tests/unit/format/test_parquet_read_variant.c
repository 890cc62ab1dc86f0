/* Variants of Parquet. Goal: a shredded variant gives the bytes that it was taken apart from, and
 * contradictions are refused. Method: a file whose column `var` is a plain struct of the right
 * parts gets the annotation here, by reading its footer and writing it again. */
#include "../../test.h"

#include "parquet_dump.h"

#define PARQUET_MAX_FOOTER 65536

/* The file with column 1's group annotated as a variant. */
static tarn_buf annotate(tarn_env *env, const uint8_t *bytes, size_t len) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    parquet_footer footer;
    tarn_buf out;
    arena_init(&arena, env);
    buf_init(&out, env, 0);
    const size_t size = num_load_u32(bytes + len - 8), start = len - 8 - size;
    assert_true(size < PARQUET_MAX_FOOTER);
    assert_ok(thrift_decode(&arena, &parquet_footer_thrift, str_make(bytes + start, size), "footer",
                            &footer, NULL, &err));
    parquet_element *schema = ARENA_ARRAY(&arena, parquet_element, (size_t)footer.n_schema);
    assert_non_null(schema);
    memcpy(schema, footer.schema, (size_t)footer.n_schema * sizeof *schema);
    assert_true(str_is(schema[2].name, "var"));
    THRIFT_SET(&schema[2], PARQUET_ELEMENT_LOGICAL);
    THRIFT_SET(&schema[2].logical, PARQUET_LOGICAL_VARIANT);
    footer.schema = schema;
    assert_ok(buf_append(&out, bytes, start, &err));
    assert_ok(thrift_encode(&parquet_footer_thrift, &footer, &out, &err));
    const uint32_t new_size = (uint32_t)(out.len - start);
    assert_ok(buf_append(&out, &new_size, 4, &err));
    assert_ok(buf_append(&out, "PAR1", 4, &err));
    arena_release(&arena);
    return out;
}

static tarn_buf load_shredded(tarn_env *env) {
    size_t len = 0;
    uint8_t *bytes = dump_load(TARN_TEST_FIXTURES "/parquet/shredded.parquet", &len);
    assert_non_null(bytes);
    tarn_buf out = annotate(env, bytes, len);
    free(bytes);
    return out;
}

static void check_value(const tarn_view *value, int64_t row, const char *want, size_t len) {
    tarn_str got = view_bytes(value, row);
    assert_int_equal(got.len, len);
    assert_memory_equal(got.data, want, len);
}

static void test_shredded(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes = load_shredded(env);
    io_source *source = NULL;
    parquet_file *file = NULL;
    assert_ok(io_source_memory(env, "shredded", bytes.data, bytes.len, &source, &err));
    assert_ok(parquet_open(env, source, NULL, &file, &err));
    const tarn_type *root = parquet_file_schema(file)->root;
    assert_int_equal(root->n_fields, 2);
    assert_int_equal(root->fields[1].type->kind, TARN_VARIANT);
    for (int64_t rows = 1; rows <= 4; rows++) {
        parquet_scan *scan = NULL;
        parquet_scan_options options = {.batch_rows = rows};
        assert_ok(parquet_scan_open(file, &options, &scan, &err));
        for (int64_t at = 0; at < 4;) {
            tarn_batch batch = {0};
            tarn_view v, metadata, value;
            assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
            assert_ok(batch_validate(&batch, &err));
            view_column(&batch, 1, &v);
            view_child(&v, 0, &metadata);
            view_child(&v, 1, &value);
            for (int64_t i = 0; i < batch_rows(&batch); i++, at++) {
                assert_int_equal(view_is_null(&v, i), at == 1);
                if (at != 1) {
                    check_value(&metadata, i, "\x11\x03\x00\x01\x02\x03\x61\x62\x63", 9);
                }
                if (at == 0) { /* {a: 5, b: ["x", "y"]} */
                    check_value(&value, i,
                                "\x02\x02\x00\x01\x00\x09\x12\x18\x05\x00\x00\x00\x00\x00\x00\x00"
                                "\x03\x02\x00\x02\x04\x05x\x05y",
                                25);
                } else if (at == 2) { /* 7 */
                    check_value(&value, i, "\x0c\x07", 2);
                } else if (at == 3) { /* {b: null, c: true} */
                    check_value(&value, i, "\x02\x02\x01\x02\x00\x01\x02\x00\x04", 9);
                }
            }
            batch_release(&batch);
        }
        parquet_scan_close(scan);
    }
    parquet_close(file);
    source->close(source);
    buf_release(&bytes);
    test_env_done(env);
}

/* Any bytes: an answer or an error, and nothing is left behind. */
static void test_changed(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_buf bytes = load_shredded(env);
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        tarn_error err = TARN_ERROR_INIT;
        const parquet_options options = {.skip_checksums = true};
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t at = (size_t)(seed >> 33) % bytes.len;
        const uint8_t before = bytes.data[at];
        bytes.data[at] = (uint8_t)(before ^ (1u << (seed >> 20) % 8));
        tarn_code code = dump_memory(env, "changed", bytes.data, bytes.len, &options, NULL, &err);
        assert_true(code != TARN_INTERNAL && code != TARN_INVALID);
        bytes.data[at] = before;
    }
    buf_release(&bytes);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shredded),
                                       cmocka_unit_test(test_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
