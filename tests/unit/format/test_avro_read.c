/* Goal: container files of other writers are read as what they say, whole and in part, and damaged
 * ones end in an error. Method: files made by fastavro beside their rows as JSON, the inputs of the
 * bug cases B43 and B53, and loops that damage a file at every byte and fail every allocation. */
#include "avro_dump.h"

#include "fail_alloc.h"

#define FIXTURES TARN_TEST_FIXTURES "/avro"

static void expect_text(const tarn_buf *got, const tarn_buf *want) {
    for (size_t i = 0; i < got->len && i < want->len; i++) {
        if (got->data[i] != want->data[i]) {
            size_t from = i > 60 ? i - 60 : 0;
            fail_msg("differs at byte %zu: got %.*s\nwant %.*s", i,
                     (int)(got->len - from > 160 ? 160 : got->len - from), got->data + from,
                     (int)(want->len - from > 160 ? 160 : want->len - from), want->data + from);
        }
    }
    assert_int_equal(got->len, want->len);
}

static void test_avro_read_types(void **state) {
    (void)state;
    static const char *const names[] = {"types_null.avro", "types_deflate.avro",
                                        "types_snappy.avro", "types_zstandard.avro"};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf want;
    assert_true(fixture_read(env, FIXTURES, "types.ndjson", &want));
    for (size_t i = 0; i < 4; i++) {
        for (int64_t batch = 0; batch < 20; batch += 7) {
            avro_scan_options options = {.batch_rows = batch};
            tarn_buf bytes;
            tarn_buf got;
            buf_init(&got, env, 0);
            assert_true(fixture_read(env, FIXTURES, names[i], &bytes));
            assert_ok(dump_bytes(env, buf_str(&bytes), &options, &got, &err));
            expect_text(&got, &want);
            buf_release(&bytes);
            buf_release(&got);
        }
    }
    buf_release(&want);
    test_env_done(env);
}

static bool holds(tarn_str text, tarn_str part) {
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (memcmp(text.data + i, part.data, part.len) == 0) {
            return true;
        }
    }
    return false;
}

static avro_file *open_fixture(tarn_env *env, const char *name, tarn_buf *bytes) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    avro_file *file = NULL;
    assert_true(fixture_read(env, FIXTURES, name, bytes));
    assert_ok(io_source_memory(env, name, bytes->data, bytes->len, &source, &err));
    assert_ok(avro_open(env, source, &file, &err));
    return file;
}

static void test_avro_read_header(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf text;
    tarn_str value;
    int64_t rows = 0;
    avro_file *file = open_fixture(env, "types_snappy.avro", &bytes);
    assert_int_equal(avro_file_codec(file), CODEC_SNAPPY);
    assert_true(avro_file_meta(file, "made by", &value));
    assert_true(str_is(value, "make.py"));
    assert_false(avro_file_meta(file, "not there", &value));
    assert_int_equal(avro_file_meta_count(file), 3);
    assert_ok(avro_file_count(file, &rows, &err));
    assert_int_equal(rows, 60);
    buf_init(&text, env, 0);
    assert_ok(type_text(avro_file_type(file), &text, &err));
    const tarn_field *field = type_find_id(avro_file_type(file), 14);
    assert_non_null(field);
    assert_true(str_is(field->name, "z.a"));
    assert_int_equal(type_find_id(avro_file_type(file), 13)->type->kind, TARN_DOUBLE);
    assert_false(type_find_id(avro_file_type(file), 13)->required);
    assert_true(type_find_id(avro_file_type(file), 7)->required);
    assert_int_equal(type_find_id(avro_file_type(file), 9)->type->kind, TARN_INT);
    buf_release(&text);
    avro_close(file);
    buf_release(&bytes);
    test_env_done(env);
}

/* Each node alone: what is skipped around it must not move it. Compared with the same node's text
 * in the whole row. */
static void test_avro_read_selection(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf whole;
    avro_file *file = open_fixture(env, "types_deflate.avro", &bytes);
    const tarn_type *type = avro_file_type(file);
    int32_t n = type_node_count(type);
    uint8_t selected[200];
    assert_true(n < 200);
    buf_init(&whole, env, 0);
    assert_ok(dump_scan(env, file, NULL, &whole, &err));
    int32_t node = 0;
    for (int32_t c = 0; c < type->n_fields; c++) {
        tarn_buf got;
        tarn_arena arena;
        buf_init(&got, env, 0);
        arena_init(&arena, env);
        memset(selected, 0, sizeof selected);
        memset(selected + node, 1, (size_t)type_field_span(&type->fields[c]));
        avro_scan_options options = {.selected = selected};
        assert_ok(dump_scan(env, file, &options, &got, &err));
        tarn_str all = buf_str(&whole);
        tarn_str some = buf_str(&got);
        tarn_str row;
        tarn_str one;
        while (str_split(&all, '\n', &row) && row.len > 0) {
            assert_true(str_split(&some, '\n', &one));
            one = str_sub(one, 1, one.len - 2); /* without { } */
            assert_true(holds(row, one));
        }
        arena_release(&arena);
        buf_release(&got);
        node += type_field_span(&type->fields[c]);
    }
    for (node = 0; node < n; node++) { /* deeper nodes alone: the reader agrees with type_prune */
        tarn_buf got;
        buf_init(&got, env, 0);
        memset(selected, 0, sizeof selected);
        selected[node] = 1;
        avro_scan_options options = {.selected = selected};
        assert_ok(dump_scan(env, file, &options, &got, &err));
        buf_release(&got);
    }
    buf_release(&whole);
    avro_close(file);
    buf_release(&bytes);
    test_env_done(env);
}

/* Any cut into ranges gives every row once, in order. */
static void test_avro_read_ranges(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf whole;
    avro_file *file = open_fixture(env, "types_null.avro", &bytes);
    buf_init(&whole, env, 0);
    assert_ok(dump_scan(env, file, NULL, &whole, &err));
    for (int64_t step = 97; step < 20000; step = step * 2 + 1) {
        tarn_buf parts;
        buf_init(&parts, env, 0);
        for (int64_t at = 0; at < (int64_t)bytes.len; at += step) {
            avro_scan_options options = {.start = at, .end = at + step};
            assert_ok(dump_scan(env, file, &options, &parts, &err));
        }
        expect_text(&parts, &whole);
        buf_release(&parts);
    }
    buf_release(&whole);
    avro_close(file);
    buf_release(&bytes);
    test_env_done(env);
}

static void test_avro_read_b53_good(void **state) {
    (void)state;
    static const char *const names[] = {"b53/positive_one_block.avro",
                                        "b53/positive_many_blocks.avro", "b53/negative_counts.avro",
                                        "b53/negative_one_each.avro", "b53/empty_block.avro"};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tarn_buf bytes;
        avro_scan *scan = NULL;
        tarn_batch batch;
        static const int32_t want[] = {0, 1, 5, 266};
        avro_file *file = open_fixture(env, names[i], &bytes);
        assert_ok(avro_scan_open(file, NULL, &scan, &err));
        assert_ok(avro_scan_next(scan, &batch, &err));
        assert_int_equal(batch_rows(&batch), 4);
        tarn_view parts[3];
        for (int32_t c = 0; c < 3; c++) {
            view_column(&batch, c, &parts[c]);
        }
        for (int32_t row = 0; row < 4; row++) {
            assert_int_equal(parts[0].offsets[row + 1] - parts[0].offsets[row], want[row]);
            assert_int_equal(parts[1].offsets[row + 1] - parts[1].offsets[row], want[row]);
            assert_int_equal(((const int32_t *)parts[2].values)[row], want[row]);
        }
        batch_release(&batch);
        avro_scan_close(scan);
        uint8_t selected[] = {0, 0, 0, 0, 0, 1}; /* a, element, m, key, value, z */
        avro_scan_options options = {.selected = selected};
        tarn_buf got;
        buf_init(&got, env, 0);
        assert_ok(dump_scan(env, file, &options, &got, &err));
        assert_true(str_is(buf_str(&got), "{\"z\":0}\n{\"z\":1}\n{\"z\":5}\n{\"z\":266}\n"));
        buf_release(&got);
        avro_close(file);
        buf_release(&bytes);
    }
    test_env_done(env);
}

static void test_avro_read_b53_bad(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *words;
    } cases[] = {{"b53/bad_sync.avro", "a sync marker was not the file's"},
                 {"b53/negative_record_count.avro", "negative count"},
                 {"b53/records_without_bytes.avro", "count of records"},
                 {"b53/huge_string.avro", "passed the end"}};
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_buf bytes;
        tarn_buf got;
        buf_init(&got, env, 0);
        assert_true(fixture_read(env, FIXTURES, cases[i].name, &bytes));
        assert_code(dump_bytes(env, buf_str(&bytes), NULL, &got, &err), TARN_CORRUPT);
        if (strstr(err.message, cases[i].words) == NULL || strstr(err.message, "byte ") == NULL) {
            fail_msg("%s: %s", cases[i].name, err.message);
        }
        assert_true(tarn_env_memory_peak(env) < (8u << 20));
        buf_release(&got);
        buf_release(&bytes);
    }
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf got;
    buf_init(&got, env, 0);
    assert_true(fixture_read(env, FIXTURES, "b53/negative_header_map.avro", &bytes));
    uint8_t selected[] = {0, 0, 0, 0, 0, 1};
    avro_scan_options options = {.selected = selected};
    assert_ok(dump_bytes(env, buf_str(&bytes), &options, &got, &err));
    assert_true(str_is(buf_str(&got), "{\"z\":5}\n"));
    buf_release(&got);
    buf_release(&bytes);
    test_env_done(env);
}

/* The microseconds are the same in every form, and are floored below zero; whether they are an
 * instant is what differs. */
static void test_avro_read_b43(void **state) {
    (void)state;
    static const struct {
        const char *name;
        tarn_kind ts;
        int64_t micros[3];
    } cases[] = {
        {"b43_spec.avro", TARN_TIMESTAMP, {1685923199999999, -1, 0}},
        {"b43_local.avro", TARN_TIMESTAMP, {1685923199999999, -1, 0}},
        {"b43_no_property.avro", TARN_TIMESTAMPTZ, {1685923199999999, -1, 0}},
        {"b43_millis.avro", TARN_TIMESTAMPTZ, {1685923199999000, -1000, 0}},
    };
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_buf bytes;
        avro_scan *scan = NULL;
        tarn_batch batch;
        avro_file *file = open_fixture(env, cases[i].name, &bytes);
        assert_ok(avro_scan_open(file, NULL, &scan, &err));
        assert_ok(avro_scan_next(scan, &batch, &err));
        assert_int_equal(batch_rows(&batch), 3);
        tarn_view ts;
        view_column(&batch, 1, &ts);
        assert_int_equal(ts.type->kind, cases[i].ts);
        for (int32_t row = 0; row < 3; row++) {
            assert_int_equal(((const int64_t *)ts.values)[row], cases[i].micros[row]);
        }
        batch_release(&batch);
        avro_scan_close(scan);
        avro_close(file);
        buf_release(&bytes);
    }
    test_env_done(env);
}

/* Any damage ends in rows or an error, never in a fault (this runs under sanitizers). */
static void test_avro_read_damaged(void **state) {
    (void)state;
    static const char *const names[] = {"types_null.avro", "types_snappy.avro",
                                        "b53/negative_one_each.avro"};
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tarn_buf bytes;
        assert_true(fixture_read(env, FIXTURES, names[i], &bytes));
        for (size_t at = 0; at < bytes.len; at++) {
            tarn_error err = TARN_ERROR_INIT;
            tarn_buf got;
            buf_init(&got, env, 0);
            uint8_t was = bytes.data[at];
            bytes.data[at] ^= (uint8_t)(1u << (at % 8));
            tarn_code code = dump_bytes(env, buf_str(&bytes), NULL, &got, &err);
            assert_true(code == TARN_OK || err.message[0] != '\0');
            assert_int_not_equal(code, TARN_NOMEM);
            bytes.data[at] = was;
            buf_reset(&got);
            code = dump_bytes(env, str_make(bytes.data, at), NULL, &got, &err);
            assert_true(code == TARN_OK || err.message[0] != '\0');
            buf_release(&got);
        }
        buf_release(&bytes);
    }
    assert_true(tarn_env_memory_peak(env) < (256u << 20));
    test_env_done(env);
}

static void test_avro_read_no_memory(void **state) {
    (void)state;
    tarn_env *plain = test_env();
    tarn_buf bytes;
    assert_true(fixture_read(plain, FIXTURES, "types_zstandard.avro", &bytes));
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_buf got;
        buf_init(&got, env, 0);
        avro_scan_options options = {.batch_rows = 20};
        tarn_code code = dump_bytes(env, buf_str(&bytes), &options, &got, &err);
        assert_int_equal(code, plan.failed ? TARN_NOMEM : TARN_OK);
        buf_release(&got);
        bool failed = plan.failed;
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
    buf_release(&bytes);
    test_env_done(plain);
}

/* A header with this schema and no blocks. */
static tarn_code open_schema(tarn_env *env, const char *schema, const char *codec,
                             tarn_error *out_err) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf got;
    uint8_t len[10];
    buf_init(&bytes, env, 0);
    buf_init(&got, env, 0);
    assert_ok(buf_append(&bytes,
                         "Obj\1\x04\x16"
                         "avro.schema",
                         17, &err));
    assert_ok(buf_append(&bytes, len, num_put_varint(len, (int64_t)strlen(schema)), &err));
    assert_ok(buf_append_str(&bytes, str_of(schema), &err));
    assert_ok(buf_append(&bytes,
                         "\x14"
                         "avro.codec",
                         11, &err));
    assert_ok(buf_append(&bytes, len, num_put_varint(len, (int64_t)strlen(codec)), &err));
    assert_ok(buf_append_str(&bytes, str_of(codec), &err));
    assert_ok(buf_append(&bytes,
                         "\0"
                         "0123456789abcdef",
                         17, &err));
    tarn_code code = dump_bytes(env, buf_str(&bytes), NULL, &got, out_err);
    buf_release(&bytes);
    buf_release(&got);
    return code;
}

static void test_avro_read_schemas(void **state) {
    (void)state;
    static const struct {
        const char *schema;
        const char *codec;
        tarn_code code;
        const char *words;
    } cases[] = {
        {"\"string\"", "null", TARN_OK, ""},
        {"[\"null\",\"int\",{\"type\":\"map\",\"values\":\"bytes\"}]", "null", TARN_OK, ""},
        {"{\"type\":{\"type\":\"long\"}}", "deflate", TARN_OK, ""},
        {"{\"type\":\"record\",\"name\":\"n\",\"fields\":[]}", "null", TARN_OK, ""},
        /* names that Avro forbids, as found in the field (B22) */
        {"{\"type\":\"record\",\"name\":\"1\",\"fields\":[{\"name\":\"a.b\",\"type\":\"int\"},"
         "{\"name\":\"\xf0\x9f\x98\x8e\",\"type\":\"int\"},{\"name\":\"\",\"type\":\"int\"}]}",
         "null", TARN_OK, ""},
        {"\"int\"", "xz", TARN_UNSUPPORTED, "xz"},
        {"{\"type\":\"record\",\"name\":\"node\",\"namespace\":\"x\",\"fields\":[{\"name\":"
         "\"next\","
         "\"type\":[\"null\",\"node\"]}]}",
         "null", TARN_UNSUPPORTED, "x.node held itself"},
        {"{\"type\":\"record\",\"name\":\"n\",\"fields\":[{\"name\":\"a\",\"type\":\"nowhere\"}]}",
         "null", TARN_CORRUPT, "nowhere"},
        {"{\"type\":\"record\",\"name\":\"n\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
         "{\"name\":\"a\",\"type\":\"int\"}]}",
         "null", TARN_CORRUPT, "two fields named a"},
        {"[\"null\",\"null\"]", "null", TARN_CORRUPT, "two nulls"},
        {"[[\"int\"]]", "null", TARN_CORRUPT, "union"},
        {"{\"type\":\"array\"}", "null", TARN_CORRUPT, "items"},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", "null", TARN_CORRUPT, "size"},
        {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":2147483647}", "null", TARN_UNSUPPORTED, "f"},
        {"{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":60}", "null",
         TARN_UNSUPPORTED, "60"},
    };
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_code code = open_schema(env, cases[i].schema, cases[i].codec, &err);
        if (code != cases[i].code || strstr(err.message, cases[i].words) == NULL) {
            fail_msg("%s: %s: %s", cases[i].schema, tarn_code_name(code), err.message);
        }
    }
    test_env_done(env);
}

/* Shared names unfold to 2^60 fields: refused, not followed. */
static void test_avro_read_unfolding(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf schema;
    buf_init(&schema, env, 0);
    for (int i = 0; i < 60; i++) {
        assert_ok(buf_printf(
            &schema, &err,
            "{\"type\":\"record\",\"name\":\"r%d\",\"fields\":[{\"name\":\"a\",\"type\":", i));
    }
    assert_ok(buf_append_str(&schema, STR("\"int\""), &err));
    for (int i = 59; i >= 0; i--) {
        if (i == 59) {
            assert_ok(buf_append_str(&schema, STR("}]}"), &err));
        } else {
            assert_ok(buf_printf(&schema, &err, "},{\"name\":\"b\",\"type\":\"r%d\"}]}", i + 1));
        }
    }
    assert_ok(buf_append_char(&schema, '\0', &err));
    assert_code(open_schema(env, (const char *)schema.data, "null", &err), TARN_LIMIT);
    buf_release(&schema);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avro_read_types),     cmocka_unit_test(test_avro_read_header),
        cmocka_unit_test(test_avro_read_selection), cmocka_unit_test(test_avro_read_ranges),
        cmocka_unit_test(test_avro_read_b53_good),  cmocka_unit_test(test_avro_read_b53_bad),
        cmocka_unit_test(test_avro_read_b43),       cmocka_unit_test(test_avro_read_damaged),
        cmocka_unit_test(test_avro_read_no_memory), cmocka_unit_test(test_avro_read_schemas),
        cmocka_unit_test(test_avro_read_unfolding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
