/* Goal: rows become NDJSON, CSV and tables for people; what is written as NDJSON or CSV reads back
 * as the same rows.
 * Method: NDJSON texts are read and written in each form, compared as text, and read again. */
#include "text_case.h"

static void write_as(const char *schema, const char *rows, text_options out, const char *want) {
    text_case t;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    text_options in = {.kind = TEXT_NDJSON};
    assert_ok(type_from_text(&t.arena, str_of(schema), &root, &err));
    assert_ok(text_case_stream(&t, str_of(rows), &stream));
    if (text_case_copy(&t, stream, root, &in, &out) != TARN_OK) {
        fail_msg("%s (%s)", t.err.message, t.err.detail);
    }
    text_case_same(&t.out, want);
    if (out.kind != TEXT_TABLE) {
        text_case back;
        text_options plain = {.kind = TEXT_NDJSON};
        text_case_init(&back, env);
        assert_ok(text_case_stream(&back, buf_str(&t.out), &stream));
        assert_ok(text_case_copy(&back, stream, root, &out, &plain));
        text_case_same(&back.out, rows);
        text_case_done(&back);
    }
    text_case_done(&t);
    test_env_done(env);
}

static void csv_tells_nulls_from_empty_texts(void **state) {
    (void)state;
    write_as("struct<a: string, b: int>",
             "{\"a\":\"\",\"b\":null}\n{\"a\":null,\"b\":1}\n{\"a\":\"x,y\",\"b\":-2}\n"
             "{\"a\":\"say \\\"hi\\\"\",\"b\":3}\n{\"a\":\"two\\r\\nlines\",\"b\":4}\n"
             "{\"a\":\" plain \",\"b\":5}\n",
             (text_options){.kind = TEXT_CSV},
             "a,b\n\"\",\n,1\n\"x,y\",-2\n\"say \"\"hi\"\"\",3\n\"two\r\nlines\",4\n plain ,5\n");
    write_as("struct<a: string>", "{\"a\":null}\n{\"a\":\"\"}\n{\"a\":\"\xEF\xBB\xBF\"}\n",
             (text_options){.kind = TEXT_CSV, .no_header = true}, "\n\"\"\n\"\xEF\xBB\xBF\"\n");
}

static void csv_dialects(void **state) {
    (void)state;
    static const tarn_str nulls[] = {{"NA", 2}};
    static const tarn_str zero[] = {{"0", 1}};
    write_as("struct<a: string, b: string>",
             "{\"a\":null,\"b\":\"NA\"}\n{\"a\":\"\",\"b\":\"x\\ty'\"}\n",
             (text_options){.kind = TEXT_CSV,
                            .delimiter = '\t',
                            .quote = '\'',
                            .null_texts = nulls,
                            .n_null_texts = 1},
             "a\tb\nNA\t'NA'\n''\t'x\ty'''\n");
    write_as(
        "struct<a: int, b: date>", "{\"a\":0,\"b\":\"2013-01-02\"}\n{\"a\":null,\"b\":null}\n",
        (text_options){.kind = TEXT_CSV, .delimiter = '-', .null_texts = zero, .n_null_texts = 1},
        "a-b\n\"0\"-\"2013-01-02\"\n0-0\n");
    write_as("struct<a: string>", "{\"a\":\"q\\\\\\\"\"}\n",
             (text_options){.kind = TEXT_CSV, .escape = '\\'}, "a\n\"q\\\\\"\"\"\n");
}

static void every_type_comes_back(void **state) {
    (void)state;
    const char *schema =
        "struct<a: boolean, b: int, c: long, d: float, e: double, f: decimal(9, 2), g: date, "
        "h: time, i: timestamp, j: timestamptz, k: timestamp_ns, l: timestamptz_ns, m: string, "
        "n: uuid, o: fixed[2], p: binary, q: struct<x: int, y: struct<z: string>>, "
        "r: list<list<int>>, s: map<string, list<int>>, t: map<int, string>>";
    const char *rows =
        "{\"a\":true,\"b\":-2147483648,\"c\":9223372036854775807,\"d\":\"NaN\",\"e\":-0.0,"
        "\"f\":\"-0.01\",\"g\":\"1969-12-31\",\"h\":\"23:59:59.999999\","
        "\"i\":\"0001-01-01T00:00:00.000000\",\"j\":\"9999-12-31T23:59:59.999999+00:00\","
        "\"k\":\"1969-12-31T23:59:59.999999999\",\"l\":\"2013-01-01T00:00:00.000000001+00:00\","
        "\"m\":\"\\\"\\u0001\xF0\x9F\x98\x80\",\"n\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\","
        "\"o\":\"00ff\",\"p\":\"\",\"q\":{\"x\":1,\"y\":{\"z\":\"a,b\"}},\"r\":[[1,null],[],null],"
        "\"s\":{\"keys\":[\"keys\",\"\"],\"values\":[[1],null]},"
        "\"t\":{\"keys\":[],\"values\":[]}}\n"
        "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":null,\"f\":null,\"g\":null,\"h\":null,"
        "\"i\":null,\"j\":null,\"k\":null,\"l\":null,\"m\":null,\"n\":null,\"o\":null,\"p\":null,"
        "\"q\":null,\"r\":null,\"s\":null,\"t\":null}\n";
    write_as(schema, rows, (text_options){.kind = TEXT_NDJSON}, rows);
    write_as(schema, rows, (text_options){.kind = TEXT_CSV},
             "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t\n"
             "true,-2147483648,9223372036854775807,NaN,-0.0,-0.01,1969-12-31,23:59:59.999999,"
             "0001-01-01T00:00:00.000000,9999-12-31T23:59:59.999999+00:00,"
             "1969-12-31T23:59:59.999999999,2013-01-01T00:00:00.000000001+00:00,"
             "\"\"\"\x01\xF0\x9F\x98\x80\",f79c3e09-677c-4bbd-a479-3f349cb785e7,00ff,\"\","
             "\"{\"\"x\"\":1,\"\"y\"\":{\"\"z\"\":\"\"a,b\"\"}}\",\"[[1,null],[],null]\","
             "\"{\"\"keys\"\":[\"\"keys\"\",\"\"\"\"],\"\"values\"\":[[1],null]}\","
             "\"{\"\"keys\"\":[],\"\"values\"\":[]}\"\n"
             ",,,,,,,,,,,,,,,,,,,\n");
}

/* Variants are the JSON that they are, geometries hex; the unknown type holds nulls only. */
static void rare_types_come_back(void **state) {
    (void)state;
    const char *schema = "struct<v: variant, g: geometry, u: unknown, e: list<boolean>>";
    const char *rows = "{\"v\":{\"a\":[1,\"x\"]},\"g\":\"0101\",\"u\":null,"
                       "\"e\":[true,null,false]}\n"
                       "{\"v\":null,\"g\":null,\"u\":null,\"e\":[]}\n"
                       "{\"v\":\"x\",\"g\":null,\"u\":null,\"e\":[]}\n";
    write_as(schema, rows, (text_options){.kind = TEXT_NDJSON}, rows);
    write_as(schema, rows, (text_options){.kind = TEXT_CSV},
             "v,g,u,e\n\"{\"\"a\"\":[1,\"\"x\"\"]}\",0101,,\"[true,null,false]\"\n,,,[]\n"
             "\"\"\"x\"\"\",,,[]\n");
}

/* Bytes that were taken as they are (from Parquet, say): the second row's value is cut off. */
static void a_damaged_variant_is_told(void **state) {
    (void)state;
    static const uint8_t names[] = {0x01, 0, 0};
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    text_case t;
    tarn_builder rows;
    tarn_batch batch;
    const tarn_type *root = NULL;
    text_case_init(&t, env);
    assert_ok(type_from_text(&t.arena, STR("struct<id: int, v: variant>"), &root, &err));
    for (int kind = TEXT_NDJSON; kind <= TEXT_TABLE; kind++) {
        io_sink *sink = NULL;
        text_writer *writer = NULL;
        memset(&batch, 0, sizeof batch);
        assert_ok(builder_init(&rows, env, root, &err));
        for (int32_t i = 0; i < 2; i++) {
            tarn_builder *v = &rows.children[1];
            assert_ok(builder_fixed(&rows.children[0], &i, &err));
            assert_ok(builder_bytes(&v->children[0], str_make(names, sizeof names), &err));
            assert_ok(builder_bytes(&v->children[1], i == 0 ? STR("\x0c\x07") : STR("\x0c"), &err));
            assert_ok(builder_close(v, &err));
            assert_ok(builder_close(&rows, &err));
        }
        assert_ok(builder_finish_batch(&rows, &batch, &err));
        text_options options = {.kind = (text_kind)kind};
        assert_ok(io_sink_memory(env, &t.out, &sink, &err));
        assert_ok(text_writer_new(env, root, &options, sink, &writer, &err));
        assert_code(text_writer_write(writer, &batch, &err), TARN_CORRUPT);
        assert_non_null(strstr(err.message, "a variant had a value that was cut off"));
        assert_non_null(strstr(err.detail, "column v"));
        assert_non_null(strstr(err.detail, "row 2 of the text"));
        text_writer_free(writer);
        sink->abort(sink);
        batch_release(&batch);
        builder_release(&rows);
    }
    text_case_done(&t);
    test_env_done(env);
}

static void tables_are_aligned(void **state) {
    (void)state;
    write_as("struct<id: long, name: string, at: timestamptz, t: time, x: double>",
             "{\"id\":1,\"name\":\"\xC3\xA9t\xC3\xA9\",\"at\":\"2013-01-01T10:00:00Z\",\"t\":"
             "\"10:00\",\"x\":0.5}\n"
             "{\"id\":-1000,\"name\":\"012345678901234567890123456789012345678901234567\",\"at\":"
             "\"2013-01-01T10:00:00.25Z\",\"t\":null,\"x\":null}\n"
             "{\"id\":null,\"name\":\"0123456789012345678901234567890123456789012345670\"}\n"
             "{\"name\":\"tab\\there\\u001b[0m\"}\n",
             (text_options){.kind = TEXT_TABLE},
             "   id  name                                              at                       t  "
             "       "
             "   x\n"
             "─────  ────────────────────────────────────────────────  ───────────────────────  "
             "────────  "
             "────\n"
             "    1  été                                               2013-01-01 10:00:00Z     "
             "10:00:00  "
             " 0.5\n"
             "-1000  012345678901234567890123456789012345678901234567  2013-01-01 10:00:00.25Z  "
             "NULL      "
             "NULL\n"
             " NULL  01234567890123456789012345678901234567890123456…  NULL                     "
             "NULL      "
             "NULL\n"
             " NULL  tab\\there?[0m                                     NULL                     "
             "NULL      "
             "NULL\n");
}

static void no_rows_are_a_header(void **state) {
    (void)state;
    write_as("struct<a: int, bb: string>", "", (text_options){.kind = TEXT_CSV}, "a,bb\n");
    write_as("struct<a: int, bb: string>", "", (text_options){.kind = TEXT_TABLE},
             "a  bb\n─  ──\n");
    write_as("struct<a: int, bb: string>", "", (text_options){.kind = TEXT_NDJSON}, "");
    write_as("struct<a: int>", "", (text_options){.kind = TEXT_CSV, .no_header = true}, "");
}

/* More rows than are held back for their widths. */
static void long_tables_go_on(void **state) {
    (void)state;
    tarn_buf rows;
    tarn_buf want;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    buf_init(&rows, env, 0);
    buf_init(&want, env, 0);
    assert_ok(buf_printf(&want, &err, "  a\n───\n"));
    for (int i = 0; i < 2500; i++) {
        assert_ok(buf_printf(&rows, &err, "{\"a\":%d}\n", i));
        assert_ok(buf_printf(&want, &err, "%3d\n", i));
    }
    assert_ok(buf_append_char(&rows, '\0', &err));
    text_case t;
    text_case_init(&t, env);
    text_options in = {.kind = TEXT_NDJSON, .batch_rows = 100};
    text_options out = {.kind = TEXT_TABLE};
    io_stream *stream = NULL;
    const tarn_type *root = NULL;
    assert_ok(type_from_text(&t.arena, STR("struct<a: int>"), &root, &err));
    assert_ok(text_case_stream(&t, str_of((const char *)rows.data), &stream));
    assert_ok(text_case_copy(&t, stream, root, &in, &out));
    assert_ok(buf_append_char(&want, '\0', &err));
    text_case_same(&t.out, (const char *)want.data);
    buf_release(&rows);
    buf_release(&want);
    text_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_tells_nulls_from_empty_texts),
        cmocka_unit_test(csv_dialects),
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(rare_types_come_back),
        cmocka_unit_test(a_damaged_variant_is_told),
        cmocka_unit_test(tables_are_aligned),
        cmocka_unit_test(no_rows_are_a_header),
        cmocka_unit_test(long_tables_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
