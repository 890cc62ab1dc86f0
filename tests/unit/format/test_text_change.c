/* Goal: change records give rows and their kinds: Debezium envelopes bare, wrapped in a schema,
 * with keys, and a column of kinds; bad ones leave nothing behind, an update's both rows stand or
 * fall together, and a reader says where it stands. Method: small texts are read and shown as "kind
 * row" lines; the torture cuts every length. */
#include "text_case.h"
#include "torture.h"

static const char kind_letters[] = "IBUD";

/* Rows as "K {...}" lines and bad records as text_case has them. */
static tarn_code read_changes(text_case *t, const char *schema, tarn_str text, text_options in) {
    static const text_options ndjson = {.kind = TEXT_NDJSON};
    tarn_code code = TARN_OK;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    text_reader *reader = NULL;
    text_writer *writer = NULL;
    io_sink *sink = NULL;
    tarn_buf line;
    tarn_batch batch;
    tarn_batch row;
    memset(&batch, 0, sizeof batch);
    memset(&row, 0, sizeof row);
    buf_init(&line, t->env, 0);
    TRY(type_from_text(&t->arena, str_of(schema), &root, &t->err));
    TRY(text_case_stream(t, text, &stream));
    TRY(text_reader_open(t->env, stream, root, &in, &reader, &t->err));
    stream = NULL;
    for (;;) {
        TRY(text_reader_next(reader, &batch, &t->err));
        const uint8_t *kinds = text_reader_kinds(reader);
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(batch_validate(&batch, &t->err));
        for (int64_t i = 0, n = batch_rows(&batch); i < n; i++) {
            TRY(buf_printf(&t->out, &t->err, "%c ", kind_letters[kinds[i]]));
            TRY(batch_slice(t->env, &batch, i, 1, &row, &t->err));
            TRY(io_sink_memory(t->env, &t->out, &sink, &t->err));
            TRY(text_writer_new(t->env, text_reader_type(reader), &ndjson, sink, &writer, &t->err));
            TRY(text_writer_write(writer, &row, &t->err));
            TRY(text_writer_flush(writer, &t->err));
            io_sink *last = sink;
            sink = NULL;
            TRY(last->finish(last, &t->err));
            text_writer_free(writer);
            writer = NULL;
            batch_release(&row);
        }
        batch_release(&batch);
    }
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    if (sink != NULL) {
        sink->abort(sink);
    }
    batch_release(&row);
    batch_release(&batch);
    text_writer_free(writer);
    text_reader_close(reader);
    buf_release(&line);
    return code;
}

static void check(const char *schema, const char *text, text_options in, const char *rows,
                  const char *rejects) {
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    in.reject = text_case_reject;
    in.reject_ctx = &t;
    tarn_code code = read_changes(&t, schema, str_of(text), in);
    if (code != TARN_OK) {
        fail_msg("%s: %s (%s)", tarn_code_name(code), t.err.message, t.err.detail);
    }
    text_case_same(&t.out, rows);
    text_case_same(&t.rejects, rejects);
    text_case_done(&t);
    test_env_done(env);
}

static const text_options debezium = {.kind = TEXT_NDJSON, .debezium = true};

static void envelopes_give_rows_and_kinds(void **state) {
    (void)state;
    check("struct<id: int, v: string>",
          "{\"before\":null,\"after\":{\"id\":1,\"v\":\"a\"},\"op\":\"c\",\"ts_ms\":5}\n"
          "{\"op\":\"r\",\"source\":{\"x\":[1,{}]},\"after\":{\"v\":\"b\",\"id\":2}}\n"
          "{\"after\":{\"id\":1,\"v\":\"c\"},\"before\":{\"id\":1,\"v\":\"a\"},\"op\":\"u\"}\n"
          "null\n\n"
          "{\"before\":{\"id\":2},\"after\":null,\"op\":\"d\"}\n"
          "{\"after\":{\"id\":7},\"op\":\"u\"}\n"
          "{\"op\":\"m\",\"message\":{}}\n"
          "{\"schema\":null,\"payload\":{\"after\":{\"id\":3},\"op\":\"c\"}}\n"
          "{\"schema\":null,\"payload\":null}\n",
          debezium,
          "I {\"id\":1,\"v\":\"a\"}\nI {\"id\":2,\"v\":\"b\"}\nB {\"id\":1,\"v\":\"a\"}\n"
          "U {\"id\":1,\"v\":\"c\"}\nD {\"id\":2,\"v\":null}\nU {\"id\":7,\"v\":null}\n"
          "I {\"id\":3,\"v\":null}\n",
          "");
}

static void bad_envelopes_are_told(void **state) {
    (void)state;
    check("struct<id: int, v: string>",
          "{\"id\":1}\n{\"op\":\"t\"}\n{\"op\":\"x\"}\n{\"op\":7}\n{\"op\":\"c\"}\n{\"op\":\"u\"}\n"
          "{\"op\":\"d\",\"before\":null}\n"
          "{\"before\":{\"id\":1},\"after\":{\"id\":\"no\"},\"op\":\"u\"}\n"
          "{\"before\":[],\"op\":\"d\"}\n[]\n{\"op\":\"c\",\"after\":{\"id\":1}} x\n"
          "{\"op\":\"c\",\"after\":{\"id\":1,\"v\":\"__debezium_unavailable_value\"}}\n"
          "{\"op\":\"c\",\"after\":{\"id\":1}}\n"
          "{\"op\":\"c\",\"after\":{\"id\":2},\"after\":{\"id\":3}}\n"
          "{\"op\":\"c\",\"after\":{\"id\":4},\"op\":\"d\"}\n",
          debezium, "I {\"id\":1,\"v\":null}\n",
          "1: there was no \"op\": this is no change envelope\n"
          "2: op \"t\" (truncate) is not taken: it names no row\n"
          "3: the \"op\" was none of c, r, u, d\n"
          "4: the \"op\" was none of c, r, u, d\n"
          "5: op \"c\" came without the row\n"
          "6: op \"u\" came without the row as it is now\n"
          "7: a delete without the row before it, and without its key\n"
          "8: column id: a string was found, not int: \"no\"\n"
          "9: '[' at byte 11 stood where an object or null was expected\n"
          "10: '[' at byte 1 stood where an object or null was expected\n"
          "11: 'x' at byte 29 stood where the end of the record was expected\n"
          "12: column v: the source left out the unchanged value (__debezium_unavailable_value); "
          "let it send whole rows\n"
          "14: member \"after\" of the envelope was there twice\n"
          "15: member \"op\" of the envelope was there twice\n");
}

static void keys_stand_in_for_rows_that_are_gone(void **state) {
    (void)state;
    check("struct<id: int, v: string>",
          "{\"op\":\"d\",\"before\":null}\x1e{\"id\":5}\n"
          "{\"op\":\"d\"}\x1e{\"schema\":{},\"payload\":{\"id\":6}}\n"
          "{\"op\":\"c\",\"after\":{\"id\":8}}\x1e{\"id\":8}\n"
          "{\"op\":\"d\"}\x1e"
          "7\n{\"op\":\"d\"}\x1e{\"id\"\n",
          debezium, "D {\"id\":5,\"v\":null}\nD {\"id\":6,\"v\":null}\nI {\"id\":8,\"v\":null}\n",
          "4: a delete without the row before it, and its key is not an object\n"
          "5: the record ended where ':' was expected\n");
}

#define FIELD(type, name, field)                                                                   \
    "{\"type\":\"" type "\",\"optional\":true,\"name\":\"" name "\",\"field\":\"" field "\"}"
#define SCHEMA                                                                                     \
    "\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"field\":\"after\","        \
    "\"fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":\"id\"}," FIELD(                 \
        "int32", "io.debezium.time.Date",                                                          \
        "d") "," FIELD("int64", "io.debezium.time.MicroTimestamp",                                 \
                       "us") "," FIELD("int64", "io.debezium.time.Timestamp",                      \
                                       "ms") "," FIELD("string",                                   \
                                                       "io.debezium.time.ZonedTimestamp",          \
                                                       "z") "," FIELD("int64",                     \
                                                                      "io.debezium.time."          \
                                                                      "MicroTime",                 \
                                                                      "t") ","                     \
                                                                           "{\"type\":\"bytes\","  \
                                                                           "\"optional\":true,"    \
                                                                           "\"name\":\"org."       \
                                                                           "apache.kafka.connect." \
                                                                           "data.Decimal\","       \
                                                                           "\"parameters\":{"      \
                                                                           "\"scale\":\"2\","      \
                                                                           "\"connect.decimal."    \
                                                                           "precision\":\"9\"},"   \
                                                                           "\"field\":\"p\"},"     \
                                                                           "{\"type\":\"bytes\","  \
                                                                           "\"optional\":true,"    \
                                                                           "\"field\":\"b\"}]}]}"

static void schemas_say_what_numbers_mean(void **state) {
    (void)state;
    const char *row = "{" SCHEMA ",\"payload\":{\"after\":{\"id\":1,\"d\":19000,\"us\":1000001,"
                      "\"ms\":-1,\"z\":\"2024-01-01T00:00:00+02:00\",\"t\":1000000,\"p\":\"/zg=\","
                      "\"b\":\"AAH/\"},\"op\":\"c\"}}\n";
    check("struct<id: int, d: date, us: timestamp, ms: timestamp, z: timestamptz, t: time, "
          "p: decimal(9, 2), b: binary>",
          row, debezium,
          "I {\"id\":1,\"d\":\"2022-01-08\",\"us\":\"1970-01-01T00:00:01.000001\","
          "\"ms\":\"1969-12-31T23:59:59.999000\",\"z\":\"2023-12-31T22:00:00.000000+00:00\","
          "\"t\":\"00:00:01.000000\",\"p\":\"-2.00\",\"b\":\"0001ff\"}\n",
          "");
    check("struct<id: int, d: string, us: string, ms: long, p: string>",
          "{" SCHEMA ",\"payload\":{\"op\":\"c\",\"after\":{\"id\":1,\"d\":-1,\"us\":0,\"ms\":7,"
          "\"p\":\"AQ==\"}}}\n",
          debezium,
          "I {\"id\":1,\"d\":\"1969-12-31\",\"us\":\"1970-01-01T00:00:00.000000\",\"ms\":7,"
          "\"p\":\"0.01\"}\n",
          "");
    check("struct<t: timestamp, d: date>",
          "{\"op\":\"c\",\"after\":{\"t\":5}}\n{\"op\":\"c\",\"after\":{\"d\":5}}\n", debezium,
          "I {\"t\":null,\"d\":\"1970-01-06\"}\n",
          "1: column t: a number was found for a timestamp, and no schema in the envelope says its "
          "unit\n");
}

static void infers(const char *text, const char *want) {
    text_case t;
    tarn_env *env = test_env();
    io_stream *stream = NULL;
    const tarn_type *type = NULL;
    tarn_error err = TARN_ERROR_INIT;
    text_case_init(&t, env);
    assert_ok(text_case_stream(&t, str_of(text), &stream));
    assert_ok(text_infer(&t.arena, &stream, &debezium, 0, &type, &err));
    assert_ok(type_text(type, &t.out, &err));
    stream->close(stream);
    text_case_same(&t.out, want);
    text_case_done(&t);
    test_env_done(env);
}

static void schemas_are_inferred(void **state) {
    (void)state;
    infers("null\n{" SCHEMA ",\"payload\":{\"op\":\"c\",\"after\":{}}}\n",
           "struct<id: int not null, d: date, us: timestamp, ms: timestamp, "
           "z: timestamptz, t: time, p: decimal(9, 2), b: binary>");
    /* with the messages' keys */
    infers("{" SCHEMA ",\"payload\":{\"op\":\"c\",\"after\":{}}}\x1e{\"id\":1}\n",
           "struct<id: int not null, d: date, us: timestamp, ms: timestamp, "
           "z: timestamptz, t: time, p: decimal(9, 2), b: binary>");
    infers("{\"op\":\"d\",\"before\":null}\x1e{\"id\":1}\n"
           "{\"op\":\"c\",\"after\":{\"id\":2,\"v\":\"a\"}}\x1e{\"id\":2}\n",
           "struct<id: long, v: string>");
}

static void a_column_says_the_kind(void **state) {
    (void)state;
    text_options in = {.kind = TEXT_NDJSON, .kind_column = 2};
    check("struct<id: int, op: string, v: string not null>",
          "{\"id\":1,\"op\":\"c\",\"v\":\"a\"}\n{\"id\":1,\"op\":\"r\",\"v\":\"a\"}\n"
          "{\"id\":1,\"op\":\"I\",\"v\":\"a\"}\n{\"id\":1,\"op\":\"+I\",\"v\":\"a\"}\n"
          "{\"id\":1,\"op\":\"u\",\"v\":\"a\"}\n{\"id\":1,\"op\":\"+U\",\"v\":\"a\"}\n"
          "{\"id\":1,\"op\":\"-U\"}\n{\"id\":1,\"op\":\"d\"}\n{\"id\":1,\"op\":\"-D\"}\n"
          "{\"id\":1,\"op\":\"D\",\"v\":null}\n"
          "{\"id\":1,\"op\":\"U\"}\n{\"id\":1,\"op\":\"q\",\"v\":\"a\"}\n{\"id\":1,\"v\":\"a\"}\n"
          "{\"id\":1,\"op\":\"\",\"v\":\"a\"}\n",
          in,
          "I {\"id\":1,\"op\":\"c\",\"v\":\"a\"}\nI {\"id\":1,\"op\":\"r\",\"v\":\"a\"}\n"
          "I {\"id\":1,\"op\":\"I\",\"v\":\"a\"}\nI {\"id\":1,\"op\":\"+I\",\"v\":\"a\"}\n"
          "U {\"id\":1,\"op\":\"u\",\"v\":\"a\"}\nU {\"id\":1,\"op\":\"+U\",\"v\":\"a\"}\n"
          "B {\"id\":1,\"op\":\"-U\",\"v\":null}\nD {\"id\":1,\"op\":\"d\",\"v\":null}\n"
          "D {\"id\":1,\"op\":\"-D\",\"v\":null}\nD {\"id\":1,\"op\":\"D\",\"v\":null}\n",
          "11: column v: a required value was null or absent\n"
          "12: column op: \"q\" was no kind of row (c r u d, I U D, +I -U +U -D)\n"
          "13: column op: the kind of the row was null or absent\n"
          "14: column op: \"\" was no kind of row (c r u d, I U D, +I -U +U -D)\n");
    text_options csv = {.kind = TEXT_CSV, .kind_column = 2};
    check("struct<id: int, op: string>", "op,id\nI,1\nD,2\nx,3\n", csv,
          "I {\"id\":1,\"op\":\"I\"}\nD {\"id\":2,\"op\":\"D\"}\n",
          "4: column op: \"x\" was no kind of row (c r u d, I U D, +I -U +U -D)\n");
}

static void an_update_is_never_parted(void **state) {
    (void)state;
    text_case t;
    tarn_env *env = test_env();
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    text_reader *reader = NULL;
    tarn_batch batch;
    tarn_error err = TARN_ERROR_INIT;
    text_options in = debezium;
    const char *line = "{\"before\":{\"id\":1},\"after\":{\"id\":2},\"op\":\"u\"}\n";
    tarn_buf text;
    int64_t rows = 0;
    in.batch_rows = 3;
    text_case_init(&t, env);
    buf_init(&text, env, 0);
    for (int i = 0; i < 10; i++) {
        assert_ok(buf_append_str(&text, str_of(line), &err));
    }
    assert_ok(type_from_text(&t.arena, STR("struct<id: int>"), &root, &err));
    assert_ok(text_case_stream(&t, buf_str(&text), &stream));
    assert_ok(text_reader_open(env, stream, root, &in, &reader, &err));
    for (;;) {
        int64_t bytes;
        int64_t lines;
        assert_ok(text_reader_next(reader, &batch, &err));
        text_reader_position(reader, &bytes, &lines);
        rows += batch_rows(&batch);
        assert_int_equal(lines, rows / 2);
        assert_int_equal(bytes, (int64_t)strlen(line) * rows / 2);
        assert_int_equal(batch_rows(&batch) % 2, 0);
        if (batch_rows(&batch) == 0) {
            break;
        }
        batch_release(&batch);
    }
    assert_int_equal(rows, 20);
    text_reader_close(reader);
    buf_release(&text);
    text_case_done(&t);
    test_env_done(env);
}

static void memory_runs_out_anywhere(void **state) {
    (void)state;
    static const char text[] =
        "{" SCHEMA ",\"payload\":{\"before\":{\"id\":1},\"after\":{\"id\":1,\"d\":5,\"p\":\"AQ==\","
        "\"b\":\"AAAA\"},\"op\":\"u\"}}\n{\"op\":\"t\"}\n";
    for (int64_t k = 1;; k++) {
        test_memory memory = {0};
        tarn_env *env = test_env_memory(&memory);
        text_case t;
        text_case_init(&t, env);
        text_options in = debezium;
        in.reject = text_case_reject;
        in.reject_ctx = &t;
        memory.fail_at = k;
        tarn_code code = read_changes(&t, "struct<id: int, d: date, p: decimal(9, 2), b: binary>",
                                      str_of(text), in);
        bool struck = memory.fail_at == 0;
        memory.fail_at = 0;
        text_case_done(&t);
        test_env_done(env);
        if (!struck) {
            assert_int_equal(code, TARN_OK);
            break;
        }
        assert_int_equal(code, TARN_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(envelopes_give_rows_and_kinds),
                                       cmocka_unit_test(bad_envelopes_are_told),
                                       cmocka_unit_test(keys_stand_in_for_rows_that_are_gone),
                                       cmocka_unit_test(schemas_say_what_numbers_mean),
                                       cmocka_unit_test(schemas_are_inferred),
                                       cmocka_unit_test(a_column_says_the_kind),
                                       cmocka_unit_test(an_update_is_never_parted),
                                       cmocka_unit_test(memory_runs_out_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
