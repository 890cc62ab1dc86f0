/* Goal: CSV records (RFC 4180 and its usual dialects) become rows of the schema by header or
 * position; bad ones are told with the line they begin on and leave nothing behind.
 * Method: small texts are read and written again as NDJSON, and compared as text. */
#include "text_case.h"

static void check(const char *schema, const char *text, const char *rows, const char *rejects) {
    text_case_check(schema, text, (text_options){.kind = TEXT_CSV}, rows, rejects);
}

static void columns_go_by_name(void **state) {
    (void)state;
    check("struct<a: int, b: string, c: double>",
          "b,c,a\r\nx,1.5,1\r\n,,\n\"\",-2,3\ny,1e3,2147483647",
          "{\"a\":1,\"b\":\"x\",\"c\":1.5}\n"
          "{\"a\":null,\"b\":null,\"c\":null}\n"
          "{\"a\":3,\"b\":\"\",\"c\":-2.0}\n"
          "{\"a\":2147483647,\"b\":\"y\",\"c\":1000.0}\n",
          "");
    check("struct<a: int, b: string>", "\xEF\xBB\xBF\"b\"\n1\n\n2\n",
          "{\"a\":null,\"b\":\"1\"}\n{\"a\":null,\"b\":null}\n{\"a\":null,\"b\":\"2\"}\n", "");
    check("struct<a: int>", "", "", "");
    /* names longer than a word within a cell, in the order of the row before */
    check("struct<s: struct<a_name_of_many_letters: int, another_long_name: int>>",
          "s\n\"{\"\"a_name_of_many_letters\"\":1,\"\"another_long_name\"\":2}\"\n"
          "\"{\"\"a_name_of_many_letters\"\":3,\"\"another_long_name\"\":4}\"\n",
          "{\"s\":{\"a_name_of_many_letters\":1,\"another_long_name\":2}}\n"
          "{\"s\":{\"a_name_of_many_letters\":3,\"another_long_name\":4}}\n",
          "");
    check("struct<a: int>", "a", "", "");
}

static void quotes_hold_everything(void **state) {
    (void)state;
    check(
        "struct<a: string, b: int>",
        "a,b\n\"x,y\",1\n\"two\nlines\",2\n\"say \"\"hi\"\"\",3\n\"a\r\nb\n\",\"4\"\r\n5\" pipe,5\n"
        "bad,x\n\n\"\"\"\",6\n",
        "{\"a\":\"x,y\",\"b\":1}\n{\"a\":\"two\\nlines\",\"b\":2}\n{\"a\":\"say "
        "\\\"hi\\\"\",\"b\":3}\n"
        "{\"a\":\"a\\r\\nb\\n\",\"b\":4}\n{\"a\":\"5\\\" "
        "pipe\",\"b\":5}\n{\"a\":\"\\\"\",\"b\":6}\n",
        "10: column b: \"x\" was not a valid int\n");
}

static void bad_records_end_where_they_end(void **state) {
    (void)state;
    check("struct<a: string, b: int>",
          "a,b\n\"x\"y,1\n1\n1,2,3\n\"q\"z,\"in\nside\"\n,\n\"ok\",7\nx,99999999999\nx,"
          "99999999999999999"
          "999\nx,\"open\n",
          "{\"a\":null,\"b\":null}\n{\"a\":\"ok\",\"b\":7}\n",
          "2: column a: text stood behind a closing quote\n"
          "3: the record had 1 cells and the file has 2 columns\n"
          "4: the record had more than 2 cells and the file has 2 columns\n"
          "5: column a: text stood behind a closing quote\n"
          "9: column b: 99999999999 was out of the range of an int\n"
          "10: column b: \"99999999999999999999\" was not a valid int\n"
          "11: column b: a quote was not closed\n");
}

static void dialects(void **state) {
    (void)state;
    static const tarn_str nulls[] = {{"NA", 2}, {"-", 1}, {"-99", 3}};
    text_case_check("struct<a: string, b: int>", "a\tb\nNA\t-99\n'N''A'\t-9\n'NA'\t-\n\t5\n",
                    (text_options){.kind = TEXT_CSV,
                                   .delimiter = '\t',
                                   .quote = '\'',
                                   .null_texts = nulls,
                                   .n_null_texts = 3},
                    "{\"a\":null,\"b\":null}\n{\"a\":\"N'A\",\"b\":-9}\n{\"a\":\"NA\",\"b\":null}\n"
                    "{\"a\":\"\",\"b\":5}\n",
                    "");
    text_case_check(
        "struct<a: string, b: int>", "a|b\n\"x\\\"y\\\\\"|1\n\"\\|\n\"|2\n\"z\"\"\"|3\nq\\|4\n",
        (text_options){.kind = TEXT_CSV, .delimiter = '|', .escape = '\\'},
        "{\"a\":\"x\\\"y\\\\\",\"b\":1}\n{\"a\":\"|\\n\",\"b\":2}\n{\"a\":\"z\\\"\",\"b\":3}\n"
        "{\"a\":\"q\\\\\",\"b\":4}\n",
        "");
    text_case_check("struct<a: string, b: int>", "x,1\ny,2\n",
                    (text_options){.kind = TEXT_CSV, .no_header = true},
                    "{\"a\":\"x\",\"b\":1}\n{\"a\":\"y\",\"b\":2}\n", "");
    text_case_check(
        "struct<a: string, b: int>", "B,zzz,A\n1,junk,x\n2,\"more,\n\",y\n",
        (text_options){.kind = TEXT_CSV, .case_insensitive = true, .ignore_unknown = true},
        "{\"a\":\"x\",\"b\":1}\n{\"a\":\"y\",\"b\":2}\n", "");
}

static void every_type(void **state) {
    (void)state;
    check(
        "struct<t: boolean, l: long, f: float, x: decimal(7, 2), d: date, h: time, "
        "z: timestamptz, u: uuid, b: binary, s: struct<p: int>, v: list<string>>",
        "t,l,f,x,d,h,z,u,b,s,v\n"
        "TRUE,-9223372036854775808,0.5,1E+2,2013-01-01,10:00:01,2013-01-01 10:00:00Z,"
        "f79c3e09-677c-4bbd-a479-3f349cb785e7,0aFF,{},\"[\"\"a\"\",\n\"\"b\"\"]\"\n"
        "false,007,nan,-0.5,,,,,,\"{\"\"p\"\": 5}\",[]\n"
        "yes,,,,,,,,,,\n,,,,,,,,,{\"p\":1},\n,,,1.005,,,,,,,\n,,,,,,,,,,[1]\n,,,,,,,,,,[]]\n",
        "{\"t\":true,\"l\":-9223372036854775808,\"f\":0.5,\"x\":\"100.00\",\"d\":\"2013-01-01\","
        "\"h\":\"10:00:01.000000\",\"z\":\"2013-01-01T10:00:00.000000+00:00\","
        "\"u\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"b\":\"0aff\",\"s\":{\"p\":null},"
        "\"v\":[\"a\",\"b\"]}\n"
        "{\"t\":false,\"l\":7,\"f\":\"NaN\",\"x\":\"-0.50\",\"d\":null,\"h\":null,\"z\":null,"
        "\"u\":null,\"b\":null,\"s\":{\"p\":5},\"v\":[]}\n"
        "{\"t\":null,\"l\":null,\"f\":null,\"x\":null,\"d\":null,\"h\":null,\"z\":null,\"u\":null,"
        "\"b\":null,\"s\":{\"p\":1},\"v\":null}\n",
        "5: column t: \"yes\" was not a valid boolean\n"
        "7: column x: 1.005 had more fraction digits than decimal(7, 2)\n"
        "8: column v.element: a number was found, not string: 1]\n"
        "9: column v: ']' at byte 3 stood where the end of the cell was expected\n");
}

static void bad_text_is_no_string(void **state) {
    (void)state;
    check("struct<a: string>", "a\n\xC3\xA9\n\xC3\nx\xFFyzxyzxyzxyz\n", "{\"a\":\"\xC3\xA9\"}\n",
          "3: column a: a string was not valid UTF-8\n"
          "4: column a: a string was not valid UTF-8\n");
}

static void refuse(const char *schema, const char *text, text_options in, const char *message) {
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    in.reject = text_case_reject;
    in.reject_ctx = &t;
    assert_code(text_case_read(&t, schema, str_of(text), &in), TARN_INVALID);
    assert_string_equal(t.err.message, message);
    text_case_done(&t);
    test_env_done(env);
}

static void headers_that_do_not_fit(void **state) {
    (void)state;
    text_options csv = {.kind = TEXT_CSV};
    refuse("struct<a: int>", "a,b\n1,2\n", csv, "input line 1: column b was not in the schema");
    refuse("struct<a: int>", "a,a\n1,2\n", csv, "input line 1: column a was there twice");
    refuse("struct<a: int>", "a,\"b\n1,2\n", csv, "input line 1: a quote was not closed");
    refuse("struct<a: int>", "a\n", (text_options){.kind = TEXT_CSV, .delimiter = '"'},
           "delimiter, quote and escape of a CSV file were not three different characters within "
           "a line");
}

/* Where pieces end must not matter, quotes and line ends in cells or not. */
static void pieces_change_nothing(void **state) {
    (void)state;
    tarn_buf text;
    tarn_buf rows;
    tarn_buf rejects;
    int line = 2;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    buf_init(&text, env, 0);
    buf_init(&rows, env, 0);
    buf_init(&rejects, env, 0);
    assert_ok(buf_printf(&text, &err, "s,a\n"));
    for (int i = 0; i < 400; i++) {
        if (i % 7 == 3) {
            assert_ok(buf_printf(&text, &err, "\"x\"\"\n,\n\"z,\"\n\",%d\r\n", i));
            assert_ok(buf_printf(&rejects, &err,
                                 "%d: column s: text stood behind a closing quote\n", line));
            line += 4;
        } else if (i % 3 == 1) {
            assert_ok(buf_printf(&text, &err, "\"q\"\"\"\"\nr\",%d\r\n", i));
            assert_ok(buf_printf(&rows, &err, "{\"a\":%d,\"s\":\"q\\\"\\\"\\nr\"}\n", i));
            line += 2;
        } else {
            assert_ok(buf_printf(&text, &err, "in\"ch,%d\n", i));
            assert_ok(buf_printf(&rows, &err, "{\"a\":%d,\"s\":\"in\\\"ch\"}\n", i));
            line += 1;
        }
    }
    assert_ok(buf_append_char(&rows, '\0', &err));
    assert_ok(buf_append_char(&rejects, '\0', &err));
    static const size_t chunks[] = {1, 7, 64, 1000, 0};
    for (size_t c = 0; c < 5; c++) {
        text_case t;
        text_case_init(&t, env);
        text_options in = {.kind = TEXT_CSV,
                           .chunk_bytes = chunks[c],
                           .batch_rows = 50,
                           .reject = text_case_reject,
                           .reject_ctx = &t};
        assert_ok(text_case_read(&t, "struct<a: int, s: string>", buf_str(&text), &in));
        text_case_same(&t.out, (const char *)rows.data);
        text_case_same(&t.rejects, (const char *)rejects.data);
        text_case_done(&t);
    }
    buf_release(&text);
    buf_release(&rows);
    buf_release(&rejects);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_go_by_name),
        cmocka_unit_test(quotes_hold_everything),
        cmocka_unit_test(bad_records_end_where_they_end),
        cmocka_unit_test(dialects),
        cmocka_unit_test(every_type),
        cmocka_unit_test(bad_text_is_no_string),
        cmocka_unit_test(headers_that_do_not_fit),
        cmocka_unit_test(pieces_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
