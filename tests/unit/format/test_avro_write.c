/* Goal: what is written reads back the same, types and ids too, in every codec; generated schemas
 * follow Iceberg's rules to the letter; a caller's own schema is used as it is or refused. Method:
 * rows as JSON there and back, golden schema texts, the escape vectors of Iceberg's own library. */
#include "avro_dump.h"

#include "fail_alloc.h"
#include "unit/table/rows.h"

static const char ALL_TYPES[] =
    "{\"type\":\"struct\",\"fields\":["
    "{\"id\":1,\"name\":\"b\",\"required\":true,\"type\":\"boolean\"},"
    "{\"id\":2,\"name\":\"i\",\"required\":false,\"type\":\"int\",\"doc\":\"an int\"},"
    "{\"id\":3,\"name\":\"l\",\"required\":false,\"type\":\"long\"},"
    "{\"id\":4,\"name\":\"f\",\"required\":false,\"type\":\"float\"},"
    "{\"id\":5,\"name\":\"d\",\"required\":false,\"type\":\"double\"},"
    "{\"id\":6,\"name\":\"dec\",\"required\":false,\"type\":\"decimal(9, 2)\"},"
    "{\"id\":7,\"name\":\"dec38\",\"required\":false,\"type\":\"decimal(38, 10)\"},"
    "{\"id\":8,\"name\":\"date\",\"required\":false,\"type\":\"date\"},"
    "{\"id\":9,\"name\":\"time\",\"required\":false,\"type\":\"time\"},"
    "{\"id\":10,\"name\":\"ts\",\"required\":false,\"type\":\"timestamp\"},"
    "{\"id\":11,\"name\":\"tz\",\"required\":false,\"type\":\"timestamptz\"},"
    "{\"id\":12,\"name\":\"tsn\",\"required\":false,\"type\":\"timestamp_ns\"},"
    "{\"id\":13,\"name\":\"tzn\",\"required\":false,\"type\":\"timestamptz_ns\"},"
    "{\"id\":14,\"name\":\"s\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":15,\"name\":\"u\",\"required\":false,\"type\":\"uuid\"},"
    "{\"id\":16,\"name\":\"u2\",\"required\":true,\"type\":\"uuid\"},"
    "{\"id\":17,\"name\":\"fx\",\"required\":false,\"type\":\"fixed[3]\"},"
    "{\"id\":18,\"name\":\"bin\",\"required\":false,\"type\":\"binary\"},"
    "{\"id\":19,\"name\":\"st\",\"required\":false,\"type\":{\"type\":\"struct\",\"fields\":["
    "{\"id\":20,\"name\":\"a.b\",\"required\":false,\"type\":\"int\"},"
    "{\"id\":21,\"name\":\"c\",\"required\":true,\"type\":{\"type\":\"struct\",\"fields\":["
    "{\"id\":22,\"name\":\"deep\",\"required\":true,\"type\":\"fixed[3]\"}]}}]}},"
    "{\"id\":23,\"name\":\"li\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":24,"
    "\"element-required\":false,\"element\":\"decimal(9, 2)\"}},"
    "{\"id\":25,\"name\":\"ma\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":26,"
    "\"key\":\"string\",\"value-id\":27,\"value-required\":false,\"value\":\"long\"}},"
    "{\"id\":28,\"name\":\"mi\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":29,"
    "\"key\":\"int\",\"value-id\":30,\"value-required\":true,\"value\":{\"type\":\"list\","
    "\"element-id\":31,\"element-required\":true,\"element\":\"string\"}}},"
    "{\"id\":32,\"name\":\"un\",\"required\":false,\"type\":\"unknown\"}]}";

static const char ALL_ROWS[] =
    "{\"b\":true,\"i\":-5,\"l\":9007199254740993,\"f\":1.5,\"d\":-0.25,\"dec\":\"-1234567.89\","
    "\"dec38\":\"9999999999999999999999999999.9999999999\",\"date\":\"1969-12-31\","
    "\"time\":\"23:59:59.999999\",\"ts\":\"1969-12-31T23:59:59.999999\","
    "\"tz\":\"2023-06-04T23:59:59.999999+00:00\",\"tsn\":\"2023-06-04T23:59:59.999999999\","
    "\"tzn\":\"1969-12-31T23:59:59.999999999+00:00\",\"s\":\"\xc3\xa9\","
    "\"u\":\"01234567-89ab-cdef-0123-456789abcdef\",\"u2\":\"ffffffff-ffff-ffff-ffff-"
    "ffffffffffff\",\"fx\":\"616263\",\"bin\":\"00ff\",\"st\":{\"a.b\":7,\"c\":{\"deep\":"
    "\"010203\"}},\"li\":[\"0.01\",null,\"-0.02\"],\"ma\":{\"keys\":[\"x\",\"y\"],\"values\":[1,"
    "null]},\"mi\":{\"keys\":[3,-4],\"values\":[[\"p\",\"q\"],[]]},\"un\":null}\n"
    "{\"b\":false,\"i\":null,\"l\":null,\"f\":null,\"d\":null,\"dec\":null,\"dec38\":null,\"date\":"
    "null,\"time\":null,\"ts\":null,\"tz\":null,\"tsn\":null,\"tzn\":null,\"s\":null,\"u\":null,"
    "\"u2\":\"00000000-0000-0000-0000-000000000000\",\"fx\":null,\"bin\":null,\"st\":null,\"li\":"
    "null,\"ma\":null,\"mi\":null,\"un\":null}\n"
    "{\"b\":true,\"i\":2147483647,\"l\":-9223372036854775808,\"f\":0.0,\"d\":0.0,\"dec\":\"0.00\","
    "\"dec38\":\"-9999999999999999999999999999.9999999999\",\"date\":\"2038-01-19\",\"time\":"
    "\"00:00:00.000000\",\"ts\":\"1970-01-01T00:00:00.000000\",\"tz\":null,\"tsn\":null,\"tzn\":"
    "null,\"s\":\"\",\"u\":null,\"u2\":\"00000000-0000-0000-0000-000000000001\",\"fx\":null,"
    "\"bin\":\"\",\"st\":{\"a.b\":null,\"c\":{\"deep\":\"040506\"}},\"li\":[],\"ma\":{\"keys\":[],"
    "\"values\":[]},\"mi\":{\"keys\":[],\"values\":[]},\"un\":null}\n";

static tarn_code parse_type(tarn_arena *arena, const char *text, const tarn_type **out,
                            tarn_error *err) {
    json_value *json = NULL;
    tarn_code code = json_parse(arena, str_of(text), "type", &json, err);
    return code == TARN_OK ? type_from_json(arena, json, out, err) : code;
}

static tarn_code write_batch(tarn_env *env, const tarn_batch *batch, const tarn_type *type,
                             const avro_write_options *options, int times, tarn_buf *out,
                             tarn_error *err) {
    io_sink *sink = NULL;
    avro_writer *writer = NULL;
    int64_t bytes = 0;
    int64_t rows = 0;
    tarn_code code = io_sink_memory(env, out, &sink, err);
    if (code != TARN_OK) {
        return code;
    }
    code = avro_writer_open(env, sink, type, options, &writer, err);
    if (code != TARN_OK) {
        sink->abort(sink);
        return code;
    }
    for (int i = 0; i < times && code == TARN_OK; i++) {
        code = avro_writer_write(writer, batch, err);
    }
    if (code != TARN_OK) {
        avro_writer_abort(writer);
        return code;
    }
    code = avro_writer_finish(writer, &bytes, &rows, err);
    if (code == TARN_OK) {
        assert_int_equal(bytes, out->len);
        assert_int_equal(rows, times * batch_rows(batch));
    }
    return code;
}

static void test_avro_write_round_trip(void **state) {
    (void)state;
    static const codec_kind codecs[] = {CODEC_NONE,   CODEC_DEFLATE, CODEC_GZIP,
                                        CODEC_SNAPPY, CODEC_ZSTD,    CODEC_BZIP2};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_batch batch = {0};
    arena_init(&arena, env);
    assert_ok(parse_type(&arena, ALL_TYPES, &type, &err));
    assert_ok(rows_read(env, &arena, type, ALL_ROWS, &batch, &err));
    for (size_t i = 0; i < 10; i++) {
        avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
        avro_meta meta = {STR("key"), STR("value")};
        tarn_buf bytes;
        tarn_buf got;
        io_source *source = NULL;
        avro_file *file = NULL;
        tarn_str value;
        buf_init(&bytes, env, 0);
        buf_init(&got, env, 0);
        options.codec = codecs[i / 2];
        options.block_bytes = i % 2 == 0 ? 0 : 1;
        options.meta = &meta;
        options.n_meta = 1;
        assert_ok(write_batch(env, &batch, type, &options, 3, &bytes, &err));
        assert_ok(io_source_memory(env, "made", bytes.data, bytes.len, &source, &err));
        assert_ok(avro_open(env, source, &file, &err));
        assert_true(type_eq(avro_file_type(file), type));
        assert_true(avro_file_meta(file, "key", &value) && str_is(value, "value"));
        assert_ok(dump_scan(env, file, NULL, &got, &err));
        assert_int_equal(got.len, 3 * strlen(ALL_ROWS));
        for (size_t part = 0; part < 3; part++) {
            assert_memory_equal(got.data + part * strlen(ALL_ROWS), ALL_ROWS, strlen(ALL_ROWS));
        }
        avro_close(file);
        buf_release(&got);
        buf_release(&bytes);
    }
    batch_release(&batch);
    arena_release(&arena);
    test_env_done(env);
}

static void check_schema(const char *type_json, const char *want) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_buf got;
    arena_init(&arena, env);
    buf_init(&got, env, 0);
    assert_ok(parse_type(&arena, type_json, &type, &err));
    assert_ok(avro_schema_from_type(env, type, STR("table"), &got, &err));
    assert_ok(buf_append_char(&got, '\0', &err));
    assert_string_equal((const char *)got.data, want);
    buf_release(&got);
    arena_release(&arena);
    test_env_done(env);
}

static void test_avro_write_schema(void **state) {
    (void)state;
    check_schema(
        "{\"type\":\"struct\",\"fields\":["
        "{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"timestamp\"},"
        "{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"timestamptz\",\"doc\":\"when\"},"
        "{\"id\":3,\"name\":\"1x\",\"required\":true,\"type\":\"uuid\"},"
        "{\"id\":4,\"name\":\"y\",\"required\":true,\"type\":\"uuid\"},"
        "{\"id\":5,\"name\":\"p\",\"required\":true,\"type\":{\"type\":\"struct\",\"fields\":["
        "{\"id\":6,\"name\":\"q\",\"required\":true,\"type\":\"decimal(38, 0)\"}]}},"
        "{\"id\":7,\"name\":\"m\",\"required\":true,\"type\":{\"type\":\"map\",\"key-id\":8,"
        "\"key\":"
        "\"int\",\"value-id\":9,\"value-required\":false,\"value\":\"binary\"}},"
        "{\"id\":10,\"name\":\"l\",\"required\":true,\"type\":{\"type\":\"list\",\"element-id\":11,"
        "\"element-required\":true,\"element\":{\"type\":\"struct\",\"fields\":[]}}},"
        "{\"id\":12,\"name\":\"n\",\"required\":true,\"type\":{\"type\":\"map\",\"key-id\":13,"
        "\"key\":\"string\",\"value-id\":14,\"value-required\":false,\"value\":\"decimal(1, 0)\"}}"
        "]}",
        "{\"type\":\"record\",\"name\":\"table\",\"fields\":["
        "{\"name\":\"a\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\","
        "\"adjust-to-utc\":false},\"field-id\":1},"
        "{\"name\":\"b\",\"type\":[\"null\",{\"type\":\"long\",\"logicalType\":"
        "\"timestamp-micros\",\"adjust-to-utc\":true}],\"doc\":\"when\",\"default\":null,"
        "\"field-id\":2},"
        "{\"name\":\"_1x\",\"iceberg-field-name\":\"1x\",\"type\":{\"type\":\"fixed\",\"name\":"
        "\"uuid_fixed\",\"size\":16,\"logicalType\":\"uuid\"},\"field-id\":3},"
        "{\"name\":\"y\",\"type\":\"uuid_fixed\",\"field-id\":4},"
        "{\"name\":\"p\",\"type\":{\"type\":\"record\",\"name\":\"r5\",\"fields\":[{\"name\":\"q\","
        "\"type\":{\"type\":\"fixed\",\"name\":\"decimal_38_0\",\"size\":16,\"logicalType\":"
        "\"decimal\",\"precision\":38,\"scale\":0},\"field-id\":6}]},\"field-id\":5},"
        "{\"name\":\"m\",\"type\":{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":"
        "\"k8_v9\",\"fields\":[{\"name\":\"key\",\"type\":\"int\",\"field-id\":8},{\"name\":"
        "\"value\",\"type\":[\"null\",\"bytes\"],\"default\":null,\"field-id\":9}]},"
        "\"logicalType\":\"map\"},\"field-id\":7},"
        "{\"name\":\"l\",\"type\":{\"type\":\"array\",\"items\":{\"type\":\"record\",\"name\":"
        "\"r11\",\"fields\":[]},\"element-id\":11},\"field-id\":10},"
        "{\"name\":\"n\",\"type\":{\"type\":\"map\",\"values\":[\"null\",{\"type\":\"fixed\","
        "\"name\":\"decimal_1_0\",\"size\":1,\"logicalType\":\"decimal\",\"precision\":1,\"scale\":"
        "0}],\"key-id\":13,\"value-id\":14},\"field-id\":12}]}");
    /* two names that escape to one stay two fields */
    check_schema("{\"type\":\"struct\",\"fields\":["
                 "{\"id\":1,\"name\":\"a_x2Eb\",\"required\":true,\"type\":\"int\"},"
                 "{\"id\":2,\"name\":\"a.b\",\"required\":true,\"type\":\"int\"}]}",
                 "{\"type\":\"record\",\"name\":\"table\",\"fields\":["
                 "{\"name\":\"a_x2Eb\",\"type\":\"int\",\"field-id\":1},"
                 "{\"name\":\"a_x2Eb_\",\"iceberg-field-name\":\"a.b\",\"type\":\"int\","
                 "\"field-id\":2}]}");
}

static void check_name(tarn_env *env, tarn_str name, tarn_str want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf got;
    buf_init(&got, env, 0);
    assert_ok(avro_name_sanitize(name, &got, &err));
    if (!str_eq(buf_str(&got), want)) {
        fail_msg("%.*s became %.*s, not %.*s", STR_ARG(name), STR_ARG(buf_str(&got)),
                 STR_ARG(want));
    }
    buf_release(&got);
}

static void test_avro_write_names(void **state) {
    (void)state;
    static const char *const b22[][2] = {{"815d3b57_day", "_815d3b57_day"},
                                         {"a.b", "a_x2Eb"},
                                         {"my#str%x", "my_x23str_x25x"},
                                         {"\xf0\x9f\x98\x8e", "_xD83D_xDE0E"},
                                         {"spa ce", "spa_x20ce"}};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    codec_ctx ctx;
    tarn_buf packed;
    tarn_buf text;
    for (size_t i = 0; i < 5; i++) {
        check_name(env, str_of(b22[i][0]), str_of(b22[i][1]));
    }
    arena_init(&arena, env);
    codec_ctx_init(&ctx, env);
    buf_init(&text, env, 0);
    assert_true(fixture_read(env, TARN_TEST_FIXTURES, "vectors/avro_names.ndjson.gz", &packed));
    assert_ok(codec_decompress_buf(&ctx, CODEC_GZIP, buf_str(&packed), &text, &err));
    tarn_str rest = buf_str(&text);
    tarn_str line;
    int seen = 0;
    while (str_split(&rest, '\n', &line) && line.len > 0) {
        json_value *json = NULL;
        assert_ok(json_parse(&arena, line, "vector", &json, &err));
        check_name(env, json_get(json, "name")->text, json_get(json, "avro")->text);
        seen++;
    }
    assert_true(seen >= 13);
    buf_reset(&text);
    assert_code(avro_name_sanitize(STR(""), &text, &err), TARN_INVALID);
    buf_release(&packed);
    buf_release(&text);
    codec_ctx_release(&ctx);
    arena_release(&arena);
    test_env_done(env);
}

static const char PAIR_TYPE[] =
    "{\"type\":\"struct\",\"fields\":["
    "{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\"},"
    "{\"id\":2,\"name\":\"t\",\"required\":false,\"type\":\"timestamp\"},"
    "{\"id\":3,\"name\":\"s\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":4,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"struct\",\"fields\":["
    "{\"id\":5,\"name\":\"member0\",\"required\":false,\"type\":\"float\"},"
    "{\"id\":6,\"name\":\"member1\",\"required\":false,\"type\":\"decimal(4, 1)\"}]}}]}";
static const char PAIR_ROWS[] =
    "{\"a\":1,\"t\":\"1969-12-31T23:59:59.999999\",\"s\":\"B\",\"m\":{\"member0\":1.5,\"member1\":"
    "null}}\n"
    "{\"a\":null,\"t\":null,\"s\":\"A\",\"m\":{\"member0\":null,\"member1\":\"-12.5\"}}\n"
    "{\"a\":3,\"t\":\"1970-01-01T00:00:01.000000\",\"s\":\"A\",\"m\":null}\n";

static tarn_code write_pair(tarn_env *env, const char *schema, tarn_buf *bytes, tarn_error *err) {
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_batch batch = {0};
    tarn_code code = TARN_OK;
    options.schema_json = str_of(schema);
    arena_init(&arena, env);
    TRY(parse_type(&arena, PAIR_TYPE, &type, err));
    TRY(rows_read(env, &arena, type, PAIR_ROWS, &batch, err));
    TRY(write_batch(env, &batch, type, &options, 1, bytes, err));
done:
    batch_release(&batch);
    arena_release(&arena);
    return code;
}

/* Other order, null last, a wider int, millis, an enum, bytes for a decimal, a field without a
 * column. */
static const char PAIR_SCHEMA[] =
    "{\"type\":\"record\",\"name\":\"own\",\"fields\":["
    "{\"name\":\"q\",\"field-id\":3,\"type\":{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\","
    "\"B\"]}},"
    "{\"name\":\"extra\",\"field-id\":99,\"type\":[\"int\",\"null\"]},"
    "{\"name\":\"when\",\"field-id\":2,\"type\":[\"null\",{\"type\":\"long\",\"logicalType\":"
    "\"timestamp-millis\",\"adjust-to-utc\":false}]},"
    "{\"name\":\"a\",\"type\":[\"long\",\"null\"]},"
    "{\"name\":\"m\",\"field-id\":4,\"type\":[\"double\",\"null\",{\"type\":\"bytes\","
    "\"logicalType\":\"decimal\",\"precision\":9,\"scale\":1}]}]}";

static void test_avro_write_own_schema(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf bytes;
    tarn_buf got;
    buf_init(&bytes, env, 0);
    buf_init(&got, env, 0);
    assert_ok(write_pair(env, PAIR_SCHEMA, &bytes, &err));
    assert_ok(dump_bytes(env, buf_str(&bytes), NULL, &got, &err));
    assert_ok(buf_append_char(&got, '\0', &err));
    assert_string_equal(
        (const char *)got.data,
        "{\"q\":\"B\",\"extra\":null,\"when\":\"1969-12-31T23:59:59.999000\",\"a\":1,\"m\":{"
        "\"member0\":1.5,\"member1\":null}}\n"
        "{\"q\":\"A\",\"extra\":null,\"when\":null,\"a\":null,\"m\":{\"member0\":null,\"member1\":"
        "\"-12.5\"}}\n"
        "{\"q\":\"A\",\"extra\":null,\"when\":\"1970-01-01T00:00:01.000000\",\"a\":3,\"m\":null}"
        "\n");
    buf_release(&bytes);
    buf_release(&got);
    test_env_done(env);
}

static void test_avro_write_refused(void **state) {
    (void)state;
    static const struct {
        const char *schema;
        const char *words;
    } cases[] = {
        {"\"int\"", "root of type int"},
        {"{\"type\":\"record\",\"name\":\"o\",\"fields\":[{\"name\":\"a\",\"type\":[\"null\","
         "\"string\"]}]}",
         "avro string can not hold column a of type int"},
        {"{\"type\":\"record\",\"name\":\"o\",\"fields\":[{\"name\":\"a\",\"type\":[\"null\","
         "\"int\"]}]}",
         "1 of the 4 columns"},
        {"{\"type\":\"record\",\"name\":\"o\",\"fields\":[{\"name\":\"z\",\"type\":\"int\"}]}",
         "field z is required"},
        {"{\"type\":\"record\",\"name\":\"o\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},"
         "{\"name\":\"t\",\"type\":[\"null\",\"long\"]},{\"name\":\"s\",\"type\":\"string\"},"
         "{\"name\":\"m\",\"type\":[\"null\",\"float\",{\"type\":\"fixed\",\"name\":\"x\",\"size\":"
         "2,\"logicalType\":\"decimal\",\"precision\":4,\"scale\":1}]}]}",
         "column a was null"},
        {"{\"type\":\"record\",\"name\":\"o\",\"fields\":[{\"name\":\"a\",\"type\":[\"null\","
         "\"int\"]},{\"name\":\"t\",\"type\":[\"null\",\"long\"]},{\"name\":\"s\",\"type\":{"
         "\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}},{\"name\":\"m\",\"type\":["
         "\"null\","
         "\"float\",{\"type\":\"fixed\",\"name\":\"x\",\"size\":2,\"logicalType\":\"decimal\","
         "\"precision\":4,\"scale\":1}]}]}",
         "no symbol B"},
    };
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_buf bytes;
        buf_init(&bytes, env, 0);
        assert_code(write_pair(env, cases[i].schema, &bytes, &err), TARN_INVALID);
        if (strstr(err.message, cases[i].words) == NULL) {
            fail_msg("%s: %s", cases[i].words, err.message);
        }
        assert_int_equal(bytes.len, 0);
        buf_release(&bytes);
    }
    test_env_done(env);
}

/* A variant is a record of two byte strings; it has no JSON to be made from here. */
static void test_avro_write_variant(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_builder b;
    tarn_batch batch = {0};
    tarn_buf bytes;
    tarn_buf got;
    arena_init(&arena, env);
    buf_init(&bytes, env, 0);
    buf_init(&got, env, 0);
    assert_ok(parse_type(&arena,
                         "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"v\",\"required\":"
                         "false,\"type\":\"variant\"}]}",
                         &type, &err));
    assert_ok(builder_init(&b, env, type, &err));
    assert_ok(builder_bytes(&b.children[0].children[0], STR("\x01"), &err));
    assert_ok(builder_bytes(&b.children[0].children[1], STR("\x0c\x05"), &err));
    assert_ok(builder_close(&b.children[0], &err));
    assert_ok(builder_close(&b, &err));
    assert_ok(builder_null(&b.children[0], &err));
    assert_ok(builder_close(&b, &err));
    assert_ok(builder_finish_batch(&b, &batch, &err));
    builder_release(&b);
    assert_ok(write_batch(env, &batch, type, NULL, 1, &bytes, &err));
    assert_ok(dump_bytes(env, buf_str(&bytes), NULL, &got, &err));
    assert_true(
        str_is(buf_str(&got), "{\"v\":{\"metadata\":\"01\",\"value\":\"0c05\"}}\n{\"v\":null}\n"));
    batch_release(&batch);
    buf_release(&bytes);
    buf_release(&got);
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code write_everything(tarn_env *env, tarn_error *err) {
    tarn_arena arena;
    const tarn_type *type = NULL;
    tarn_batch batch = {0};
    tarn_buf bytes;
    avro_write_options options = AVRO_WRITE_OPTIONS_INIT;
    tarn_code code = TARN_OK;
    options.codec = CODEC_ZSTD;
    arena_init(&arena, env);
    buf_init(&bytes, env, 0);
    TRY(parse_type(&arena, ALL_TYPES, &type, err));
    TRY(rows_read(env, &arena, type, ALL_ROWS, &batch, err));
    TRY(write_batch(env, &batch, type, &options, 2, &bytes, err));
done:
    batch_release(&batch);
    buf_release(&bytes);
    arena_release(&arena);
    return code;
}

static void test_avro_write_no_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = write_everything(env, &err);
        bool failed = plan.failed;
        if (code != (failed ? TARN_NOMEM : TARN_OK)) {
            fail_msg("allocation %llu: %s: %s", (unsigned long long)k, tarn_code_name(code),
                     err.message);
        }
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avro_write_round_trip), cmocka_unit_test(test_avro_write_schema),
        cmocka_unit_test(test_avro_write_names),      cmocka_unit_test(test_avro_write_own_schema),
        cmocka_unit_test(test_avro_write_refused),    cmocka_unit_test(test_avro_write_variant),
        cmocka_unit_test(test_avro_write_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
