/* Goal: a sample suggests the schema that reads it, and the stream begins again behind it.
 * Method: small texts are inferred, the type is told as text, and the same stream is then read with
 * it. */
#include "format/codec.h"
#include "text_case.h"

#define FLIGHTS TARN_TEST_SHARED "/data/flights/flights.csv.gz"

static void infer_with(const char *text, const text_options *in, size_t max_bytes, const char *want,
                       const char *rows) {
    text_case t;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    tarn_buf type;
    tarn_error err = TARN_ERROR_INIT;
    text_options out = {.kind = TEXT_NDJSON};
    tarn_env *env = test_env();
    text_case_init(&t, env);
    buf_init(&type, env, 0);
    assert_ok(text_case_stream(&t, str_of(text), &stream));
    assert_ok(text_infer(&t.arena, &stream, in, max_bytes, &root, &err));
    assert_ok(type_text(root, &type, &err));
    text_case_same(&type, want);
    text_options again = *in;
    again.scalars_as_text = true;
    again.reject = text_case_reject;
    again.reject_ctx = &t;
    assert_ok(text_case_copy(&t, stream, root, &again, &out));
    text_case_same(&t.rejects, "");
    if (rows != NULL) {
        text_case_same(&t.out, rows);
    }
    buf_release(&type);
    text_case_done(&t);
    test_env_done(env);
}

static void csv(const char *text, const char *want) {
    infer_with(text, &(text_options){.kind = TEXT_CSV}, 0, want, NULL);
}

static void ndjson(const char *text, const char *want) {
    infer_with(text, &(text_options){.kind = TEXT_NDJSON}, 0, want, NULL);
}

static void kinds_of_cells(void **state) {
    (void)state;
    csv("a,b,c,d,e,f\n1,1.5,true,2013-01-01,2013-01-01T10:00:00,2013-01-01T10:00:00Z\n"
        "-20,2,FALSE,2014-02-03,2013-01-01 10:00,2013-01-01 10:00:00+01:00\n,,,,,\n",
        "struct<a: long, b: double, c: boolean, d: date, e: timestamp, f: timestamptz>");
    csv("zip,big,mix,time,plus,none,date\n01234,99999999999999999999,1,2013-01-01,+1,,2013-01-01\n"
        "0,1,x,2013-01-01 10:00:00,+2,,x\n",
        "struct<zip: string, big: string, mix: string, time: timestamp, plus: string, none: "
        "string, date: string>");
    csv("a,b,c,d\nNaN,0.5,-0,.5\n1,0,0,1e3\n", "struct<a: double, b: double, c: long, d: double>");
    csv("a,\n1,2\n", "struct<a: long, column2: long>");
    csv("a\n\"\"\n1\n", "struct<a: string>");
    csv("", "struct<>");
}

static void without_a_header(void **state) {
    (void)state;
    infer_with("1,x\n2,y\n", &(text_options){.kind = TEXT_CSV, .no_header = true}, 0,
               "struct<column1: long, column2: string>",
               "{\"column1\":1,\"column2\":\"x\"}\n{\"column1\":2,\"column2\":\"y\"}\n");
}

/* why: what the error says; NULL: there is none. */
static void first_fault(const char *text, const char *why) {
    text_case t;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    tarn_error err = TARN_ERROR_INIT;
    text_options in = {.kind = TEXT_NDJSON};
    tarn_env *env = test_env();
    text_case_init(&t, env);
    assert_ok(text_case_stream(&t, str_of(text), &stream));
    assert_code(text_infer(&t.arena, &stream, &in, 0, &root, &err),
                why != NULL ? TARN_INVALID : TARN_OK);
    assert_non_null(strstr(err.message, why != NULL ? why : ""));
    stream->close(stream);
    text_case_done(&t);
    test_env_done(env);
}

/* Where no record is good, the first one's fault is the answer, and not a schema of nothing. */
static void no_good_record(void **state) {
    (void)state;
    first_fault("\n[1,2]\n{\"a\":\n", "line 2: the record was not a JSON object");
    first_fault("{\"a\":\"\xff\"}\n[]\n", "line 1: ");
    first_fault("[1]\n{\"a\":1}\n", NULL);
    first_fault("{}\n[1]\n", NULL);
    first_fault("\n\n", NULL);
}

static void null_texts_say_nothing(void **state) {
    (void)state;
    static const tarn_str nulls[] = {{"NA", 2}};
    infer_with("a,b\nNA,1\n2,NA\n",
               &(text_options){.kind = TEXT_CSV, .null_texts = nulls, .n_null_texts = 1}, 0,
               "struct<a: long, b: long>", "{\"a\":null,\"b\":1}\n{\"a\":2,\"b\":null}\n");
}

static void kinds_of_members(void **state) {
    (void)state;
    ndjson("{\"a\":1,\"b\":1.5,\"c\":true,\"d\":\"2013-01-01\",\"e\":\"x\",\"f\":null}\n"
           "\n{\"a\":2,\"b\":1,\"g\":\"2013-01-01T10:00:00Z\",\"h\":12345678901234567890}\n",
           "struct<a: long, b: double, c: boolean, d: date, e: string, f: string, g: timestamptz, "
           "h: string>");
    ndjson("{\"s\":{\"x\":1},\"l\":[],\"m\":[{\"k\":1},{\"k\":2.5,\"j\":\"t\"}]}\n"
           "{\"s\":{\"y\":[1]},\"l\":[null,\"a\"]}\n{\"s\":null}\n",
           "struct<s: struct<x: long, y: list<long>>, l: list<string>, m: list<struct<k: double, "
           "j: string>>>");
    ndjson("", "struct<>");
}

/* Mixed scalars are strings, and are read as the text that stands there. */
static void mixed_members_are_texts(void **state) {
    (void)state;
    infer_with("{\"a\":1.50}\n{\"a\":\"x\"}\n{\"a\":true}\n{\"a\":null}\n",
               &(text_options){.kind = TEXT_NDJSON}, 0, "struct<a: string>",
               "{\"a\":\"1.50\"}\n{\"a\":\"x\"}\n{\"a\":\"true\"}\n{\"a\":null}\n");
}

static void values_that_have_no_type_together(void **state) {
    (void)state;
    text_case t;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    text_options in = {.kind = TEXT_NDJSON};
    tarn_env *env = test_env();
    text_case_init(&t, env);
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(text_case_stream(&t, STR("{\"a\":{\"b\":1}}\n{\"a\":{\"b\":[1]}}\n"), &stream));
    assert_code(text_infer(&t.arena, &stream, &in, 0, &root, &err), TARN_INVALID);
    assert_string_equal(err.message, "input: column b held values of kinds that have no type "
                                     "together (arrays and others)");
    stream->close(stream);
    text_case_done(&t);
    test_env_done(env);
}

/* The sample ends inside of the third record. */
static void the_stream_begins_again(void **state) {
    (void)state;
    infer_with("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}", &(text_options){.kind = TEXT_NDJSON},
               20, "struct<a: long>", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
    infer_with("\xEF\xBB\xBF"
               "a\n1\n2\n\"3\"\n4",
               &(text_options){.kind = TEXT_CSV}, 10, "struct<a: long>",
               "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
}

/* A real file: every flight that left New York in 2013, with NA for null. */
static void flights(void **state) {
    (void)state;
    FILE *file = fopen(FLIGHTS, "rb");
    if (file == NULL) {
        skip();
    }
    static const tarn_str nulls[] = {{"NA", 2}};
    text_options in = {.kind = TEXT_CSV, .null_texts = nulls, .n_null_texts = 1};
    text_options out = {.kind = TEXT_NDJSON};
    static const size_t cap = (size_t)16 << 20;
    char *bytes = malloc(cap);
    assert_non_null(bytes);
    size_t len = fread(bytes, 1, cap, file);
    (void)fclose(file);
    text_case t;
    io_stream *packed = NULL;
    io_stream *stream = NULL;
    const tarn_type *root = NULL;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    assert_ok(text_case_stream(&t, str_make(bytes, len), &packed));
    assert_ok(codec_stream_open(env, CODEC_GZIP, packed, &stream, &err));
    assert_ok(text_infer(&t.arena, &stream, &in, 1 << 20, &root, &err));
    tarn_buf type;
    buf_init(&type, env, 0);
    assert_ok(type_text(root, &type, &err));
    text_case_same(&type, "struct<year: long, month: long, day: long, dep_time: long, "
                          "sched_dep_time: long, dep_delay: long, arr_time: long, "
                          "sched_arr_time: long, arr_delay: long, carrier: string, flight: long, "
                          "tailnum: string, origin: string, dest: string, air_time: long, "
                          "distance: long, hour: long, minute: long, time_hour: timestamptz>");
    assert_ok(text_case_copy(&t, stream, root, &in, &out));
    assert_int_equal(t.rows, 336776);
    tarn_str first =
        STR("{\"year\":2013,\"month\":1,\"day\":1,\"dep_time\":517,\"sched_dep_time\":515,"
            "\"dep_delay\":2,\"arr_time\":830,\"sched_arr_time\":819,\"arr_delay\":11,"
            "\"carrier\":\"UA\",\"flight\":1545,\"tailnum\":\"N14228\",\"origin\":\"EWR\","
            "\"dest\":\"IAH\",\"air_time\":227,\"distance\":1400,\"hour\":5,\"minute\":15,"
            "\"time_hour\":\"2013-01-01T10:00:00.000000+00:00\"}\n");
    assert_true(str_starts_with(buf_str(&t.out), first));
    buf_release(&type);
    text_case_done(&t);
    test_env_done(env);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_cells),
        cmocka_unit_test(without_a_header),
        cmocka_unit_test(null_texts_say_nothing),
        cmocka_unit_test(no_good_record),
        cmocka_unit_test(kinds_of_members),
        cmocka_unit_test(mixed_members_are_texts),
        cmocka_unit_test(values_that_have_no_type_together),
        cmocka_unit_test(the_stream_begins_again),
        cmocka_unit_test(flights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
