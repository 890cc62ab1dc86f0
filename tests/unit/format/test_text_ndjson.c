/* Goal: NDJSON records become rows of the schema, whatever their order, spacing and escapes; bad
 * ones are told with line, column and reason and leave nothing behind.
 * Method: small texts are read and written again as NDJSON, and compared as text. */
#include "text_case.h"

static void check(const char *schema, const char *text, const char *rows, const char *rejects) {
    text_case_check(schema, text, (text_options){.kind = TEXT_NDJSON}, rows, rejects);
}

static void members_are_found_in_any_order(void **state) {
    (void)state;
    check("struct<a: int, b: string, long_name_of_a_column: long>",
          "{\"a\":1,\"b\":\"x\",\"long_name_of_a_column\":3}\n"
          " { \"long_name_of_a_column\" : 6 , \"b\" : \"y\" ,\t\"a\" : 4 } \r\n"
          "\n   \n"
          "{\"\\u0062\":\"z\"}\n"
          "{}\n"
          "{\"a\":null,\"b\":null}",
          "{\"a\":1,\"b\":\"x\",\"long_name_of_a_column\":3}\n"
          "{\"a\":4,\"b\":\"y\",\"long_name_of_a_column\":6}\n"
          "{\"a\":null,\"b\":\"z\",\"long_name_of_a_column\":null}\n"
          "{\"a\":null,\"b\":null,\"long_name_of_a_column\":null}\n"
          "{\"a\":null,\"b\":null,\"long_name_of_a_column\":null}\n",
          "");
}

static void a_mark_and_nothing_are_no_records(void **state) {
    (void)state;
    check("struct<a: int>", "\xEF\xBB\xBF{\"a\":1}\n", "{\"a\":1}\n", "");
    check("struct<a: int>", "", "", "");
    check("struct<a: int>", "\n\n", "", "");
    check("struct<a: int>", "\xEF\xBB\xBF", "", "");
}

static void whole_numbers(void **state) {
    (void)state;
    check("struct<i: int, l: long>",
          "{\"i\":-2147483648,\"l\":-9223372036854775808}\n"
          "{\"i\":2147483647,\"l\":9223372036854775807}\n"
          "{\"i\":-0,\"l\":100000000000000000}\n"
          "{\"i\":2147483648}\n{\"i\":1.0}\n{\"i\":1e3}\n{\"i\":\"1\"}\n{\"i\":01}\n{\"i\":-}\n"
          "{\"l\":9223372036854775808}\n{\"i\":true}\n{\"i\":+1}\n{\"i\":1x}\n",
          "{\"i\":-2147483648,\"l\":-9223372036854775808}\n"
          "{\"i\":2147483647,\"l\":9223372036854775807}\n"
          "{\"i\":0,\"l\":100000000000000000}\n",
          "4: column i: 2147483648 was out of the range of an int\n"
          "5: column i: 1.0 was not a whole number\n"
          "6: column i: 1e3 was not a whole number\n"
          "7: column i: a string was found, not int: \"1\"\n"
          "8: column i: 01} was not a JSON number\n"
          "9: column i: -} was not a JSON number\n"
          "10: column l: \"9223372036854775808\" was not a valid long\n"
          "11: column i: a boolean was found, not int: true\n"
          "12: column i: '+' at byte 6 stood where a JSON value was expected\n"
          "13: 'x' at byte 7 stood where ',' or '}' was expected\n");
}

static void floats_and_decimals(void **state) {
    (void)state;
    check(
        "struct<d: double, f: float, x: decimal(9, 2), y: decimal(38, 10)>",
        "{\"d\":1.5,\"f\":0.1,\"x\":12.3,\"y\":\"1234567890123456789012345678.0123456789\"}\n"
        "{\"d\":1e300,\"f\":-3.4028235e38,\"x\":\"1E+2\",\"y\":1E-10}\n"
        "{\"d\":\"NaN\",\"f\":\"-Infinity\",\"x\":-0.01,\"y\":0}\n"
        "{\"d\":5,\"f\":16777217,\"x\":1234567,\"y\":-1}\n"
        "{\"d\":0.30000000000000004,\"x\":1.20}\n"
        "{\"d\":1e400}\n{\"f\":1e39}\n{\"x\":1.234}\n{\"x\":12345678}\n{\"d\":\"1.5\"}\n"
        "{\"d\":1.}\n{\"d\":.5}\n{\"x\":\"a\"}\n{\"x\":[]}\n",
        "{\"d\":1.5,\"f\":0.1,\"x\":\"12.30\",\"y\":\"1234567890123456789012345678.0123456789\"}\n"
        "{\"d\":1e300,\"f\":-3.4028235e38,\"x\":\"100.00\",\"y\":\"0.0000000001\"}\n"
        "{\"d\":\"NaN\",\"f\":\"-Infinity\",\"x\":\"-0.01\",\"y\":\"0.0000000000\"}\n"
        "{\"d\":5.0,\"f\":16777216.0,\"x\":\"1234567.00\",\"y\":\"-1.0000000000\"}\n"
        "{\"d\":0.30000000000000004,\"f\":null,\"x\":\"1.20\",\"y\":null}\n",
        "6: column d: \"1e400\" was not a valid double\n"
        "7: column f: 1e39 was out of the range of a float\n"
        "8: column x: 1.234 had more fraction digits than decimal(9, 2)\n"
        "9: column x: 12345678 did not fit decimal(9, 2)\n"
        "10: column d: a string was found, not double: \"1.5\"\n"
        "11: column d: a number was found, not double: 1.\n"
        "12: column d: '.' at byte 6 stood where a JSON value was expected\n"
        "13: column x: \"a\" was not a decimal\n"
        "14: column x: an array was found, not decimal: []\n");
}

static void strings_and_escapes(void **state) {
    (void)state;
    check(
        "struct<s: string>",
        "{\"s\":\"\"}\n"
        "{\"s\":\"exactly sixteen.\"}\n"
        "{\"s\":\"a text that is rather longer than sixteen bytes \xC3\xA9\"}\n"
        "{\"s\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00 tail\"}\n"
        "{\"s\":\"\\u0000\"}\n"
        "{\"s\":\"\\ud83d\"}\n{\"s\":\"\\x\"}\n{\"s\":\"a\tb\"}\n{\"s\":\"\xFF\"}\n{\"s\":\"open\n"
        "{\"s\":\"\\\n{\"s\":5}\n{\"s\":\"\\n\xC3(\"}\n",
        "{\"s\":\"\"}\n"
        "{\"s\":\"exactly sixteen.\"}\n"
        "{\"s\":\"a text that is rather longer than sixteen bytes \xC3\xA9\"}\n"
        "{\"s\":\"\\\"\\\\/\\b\\f\\n\\r\\t\xC3\xA9\xF0\x9F\x98\x80 tail\"}\n"
        "{\"s\":\"\\u0000\"}\n",
        "6: column s: '\\' at byte 7 stood where a valid escape was expected\n"
        "7: column s: '\\' at byte 7 stood where a valid escape was expected\n"
        "8: column s: byte 0x09 at byte 8 stood where a character of a string was expected\n"
        "9: column s: a string was not valid UTF-8\n"
        "10: column s: the record ended where the end of a string was expected\n"
        "11: column s: '\\' at byte 7 stood where a valid escape was expected\n"
        "12: column s: a number was found, not string: 5\n"
        "13: column s: a string was not valid UTF-8\n");
}

static void dates_and_times(void **state) {
    (void)state;
    check("struct<d: date, t: time, ts: timestamp, tz: timestamptz, ns: timestamp_ns>",
          "{\"d\":\"2013-01-31\",\"t\":\"23:59:59.999999\",\"ts\":\"2013-01-01T10:00:00\","
          "\"tz\":\"2013-01-01T10:00:00Z\",\"ns\":\"2013-01-01 10:00:00.123456789\"}\n"
          "{\"d\":\"-0001-12-31\",\"t\":\"10:00\",\"ts\":\"2013-01-01 10:00:00.5\","
          "\"tz\":\"2013-01-01T10:00:00.25+02:00\",\"ns\":\"1969-12-31T23:59:59.999999999\"}\n"
          "{\"ts\":\"2013-01-01\",\"tz\":\"1969-12-31 23:59:59.000001\"}\n"
          "{\"d\":\"2013-02-29\"}\n{\"d\":15706}\n{\"ts\":\"2013-01-01T10:00:00Z\"}\n"
          "{\"tz\":\"2013-01-01T24:00:00Z\"}\n{\"ts\":\"2013-01-01T10:00:00.1234567\"}\n"
          "{\"t\":\"1:00\"}\n{\"ns\":\"2263-01-01T00:00:00\"}\n",
          "{\"d\":\"2013-01-31\",\"t\":\"23:59:59.999999\",\"ts\":\"2013-01-01T10:00:00.000000\","
          "\"tz\":\"2013-01-01T10:00:00.000000+00:00\",\"ns\":\"2013-01-01T10:00:00.123456789\"}\n"
          "{\"d\":\"-0001-12-31\",\"t\":\"10:00:00.000000\",\"ts\":\"2013-01-01T10:00:00.500000\","
          "\"tz\":\"2013-01-01T08:00:00.250000+00:00\",\"ns\":\"1969-12-31T23:59:59.999999999\"}\n"
          "{\"d\":null,\"t\":null,\"ts\":\"2013-01-01T00:00:00.000000\","
          "\"tz\":\"1969-12-31T23:59:59.000001+00:00\",\"ns\":null}\n",
          "4: column d: \"2013-02-29\" was not a valid date\n"
          "5: column d: a number was found, not date: 15706\n"
          "6: column ts: \"2013-01-01T10:00:00Z\" has a zone offset, which a timestamp does not "
          "keep\n"
          "7: column tz: \"2013-01-01T24:00:00Z\" was not a valid timestamptz\n"
          "8: column ts: \"2013-01-01T10:00:00.1234567\" was not a valid timestamp\n"
          "9: column t: \"1:00\" was not a valid time\n"
          "10: column ns: \"2263-01-01T00:00:00\" was not a valid timestamp_ns\n");
}

static void bytes_and_booleans(void **state) {
    (void)state;
    check(
        "struct<u: uuid, b: binary, f: fixed[3], t: boolean>",
        "{\"u\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"b\":\"00fF\",\"f\":\"010203\","
        "\"t\":true}\n"
        "{\"b\":\"\",\"t\":false}\n"
        "{\"f\":\"0102\"}\n{\"b\":\"0\"}\n{\"b\":\"0g\"}\n{\"u\":\"x\"}\n{\"t\":1}\n{\"t\":trub}\n",
        "{\"u\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"b\":\"00ff\",\"f\":\"010203\","
        "\"t\":true}\n"
        "{\"u\":null,\"b\":\"\",\"f\":null,\"t\":false}\n",
        "3: column f: 2 bytes were given and not the 3 of fixed[3]\n"
        "4: column b: \"0\" was not a valid binary\n"
        "5: column b: \"0g\" was not a valid binary\n"
        "6: column u: \"x\" was not a valid uuid\n"
        "7: column t: a number was found, not boolean: 1\n"
        "8: column t: a boolean was found, not boolean: trub\n");
}

/* What is inferred from {} has no fields; a later record may name some. */
static void a_struct_of_no_fields(void **state) {
    (void)state;
    static const char text[] = "{\"s\":{},\"a\":1}\n{\"s\":{\"x\":1},\"a\":2}\n{\"a\":3}\n";
    check("struct<a: int, s: struct<>>", text, "{\"a\":1,\"s\":{}}\n{\"a\":3,\"s\":null}\n",
          "2: column s: member x was not in the schema\n");
    text_case_check("struct<a: int, s: struct<>>", text,
                    (text_options){.kind = TEXT_NDJSON, .ignore_unknown = true},
                    "{\"a\":1,\"s\":{}}\n{\"a\":2,\"s\":{}}\n{\"a\":3,\"s\":null}\n", "");
}

/* Also nested ones, and in a column that may have no null. */
static void variants_are_any_json(void **state) {
    (void)state;
    check("struct<v: variant, l: list<variant>>",
          "{\"v\":{\"b\" : [ 1, 2.50,\"\\u00e9\" ],\"a\":{}},\"l\":[1,null,\"x\"]}\n"
          "{\"v\":null,\"l\":null}\n"
          "{\"v\":{\"metadata\":\"010000\",\"value\":\"00\"}}\n"
          "{\"v\":{\"a\":1,\"a\":2}}\n{\"v\":[1e400]}\n{\"v\":{\"a\":}}\n{\"v\":tru}\n{\"v\":01}\n",
          "{\"v\":{\"a\":{},\"b\":[1,2.50,\"\xC3\xA9\"]},\"l\":[1,null,\"x\"]}\n"
          "{\"v\":null,\"l\":null}\n"
          "{\"v\":{\"metadata\":\"010000\",\"value\":\"00\"},\"l\":null}\n",
          "4: column v: the value: line 1, column 8: the name \"a\" stood twice in one object\n"
          "5: column v: the number 1e400 was beyond a double\n"
          "6: column v: '}' at byte 11 stood where a JSON value was expected\n"
          "7: column v: 't' at byte 6 stood where a JSON value was expected\n"
          "8: column v: '0' at byte 6 stood where a JSON value was expected\n");
    text_case_check("struct<v: variant not null>", "{\"v\":null}\n{}\n",
                    (text_options){.kind = TEXT_NDJSON}, "{\"v\":null}\n",
                    "2: column v: a required value was null or absent\n");
}

static void nested_values(void **state) {
    (void)state;
    check(
        "struct<s: struct<x: int, y: string>, l: list<list<int>>, m: map<string, int>, "
        "n: map<int, string>>",
        "{\"s\":{\"y\":\"q\",\"x\":1},\"l\":[[1,2],[],null,[3]],\"m\":{\"a\":1,\"b\":null},"
        "\"n\":{\"keys\":[1,2],\"values\":[\"x\",null]}}\n"
        "{\"s\":{},\"l\":[],\"m\":{},\"n\":{\"values\":[],\"keys\":[]}}\n"
        "{\"s\":null,\"l\":null,\"m\":{\"keys\":[\"k\"],\"values\":[7]},\"n\":null}\n"
        "{\"m\":{\"keys\":5}}\n"
        "{\"l\":[[1,2],[3,\"x\"]]}\n{\"m\":{\"a\":1,\"a\":2}}\n{\"s\":{\"x\":\"1\"}}\n"
        "{\"n\":{\"keys\":[1],\"values\":[]}}\n{\"n\":{\"1\":\"x\"}}\n{\"s\":[]}\n{\"l\":{}}\n"
        "{\"m\":[]}\n{\"n\":{\"keys\":[null],\"values\":[\"x\"]}}\n{\"l\":[1 2]}\n{\"l\":[[1,]]}\n"
        "{\"m\":{\"a\":1,}}\n{\"l\":[[9]]}\n",
        "{\"s\":{\"x\":1,\"y\":\"q\"},\"l\":[[1,2],[],null,[3]],"
        "\"m\":{\"keys\":[\"a\",\"b\"],\"values\":[1,null]},"
        "\"n\":{\"keys\":[1,2],\"values\":[\"x\",null]}}\n"
        "{\"s\":{\"x\":null,\"y\":null},\"l\":[],\"m\":{\"keys\":[],\"values\":[]},"
        "\"n\":{\"keys\":[],\"values\":[]}}\n"
        "{\"s\":null,\"l\":null,\"m\":{\"keys\":[\"k\"],\"values\":[7]},\"n\":null}\n"
        "{\"s\":null,\"l\":null,\"m\":{\"keys\":[\"keys\"],\"values\":[5]},\"n\":null}\n"
        "{\"s\":null,\"l\":[[9]],\"m\":null,\"n\":null}\n",
        "5: column l.element.element: a string was found, not int: \"x\"]]\n"
        "6: column m: key a was there twice\n"
        "7: column s.x: a string was found, not int: \"1\"\n"
        "8: column n: a map's keys and values were not equally many\n"
        "9: column n: '\"' at byte 7 stood where one \"keys\" and one \"values\" was expected\n"
        "10: column s: an array was found, not struct: []\n"
        "11: column l: an object was found, not list: {\n"
        "12: column m: an array was found, not map: []\n"
        "13: column n.key: a required value was null or absent\n"
        "14: column l.element: a number was found, not list: 1 2]\n"
        "15: column l.element.element: ']' at byte 10 stood where a JSON value was expected\n"
        "16: column m: '}' at byte 13 stood where a member's name was expected\n");
}

/* A date is a number of days and a timestamp one of microseconds, whatever others hold of them. */
static void years_of_any_length(void **state) {
    (void)state;
    check("struct<d: date, t: timestamp>",
          "{\"d\":\"99999-01-01\",\"t\":\"99999-01-01T00:00:00\"}\n{\"d\":\"+99999-01-01\"}\n"
          "{\"d\":\"-0005-01-01\"}\n{\"d\":\"9999999-01-01\"}\n{\"t\":\"999999-01-01T00:00:00\"}\n",
          "{\"d\":\"+99999-01-01\",\"t\":\"+99999-01-01T00:00:00.000000\"}\n"
          "{\"d\":\"+99999-01-01\",\"t\":null}\n{\"d\":\"-0005-01-01\",\"t\":null}\n",
          "4: column d: \"9999999-01-01\" was not a valid date\n"
          "5: column t: \"999999-01-01T00:00:00\" was not a valid timestamp\n");
}

/* Keys are unique whatever their type and however the map is written. */
static void keys_of_any_type(void **state) {
    (void)state;
    check("struct<b: map<boolean, int>, n: map<int, int>, s: map<string, int>, "
          "d: map<decimal(9, 2), int>, u: map<uuid, int>>",
          "{\"s\":{\"keys\":[\"a\",\"b\",\"a\"],\"values\":[1,2,3]}}\n"
          "{\"n\":{\"keys\":[1,1],\"values\":[2,2]}}\n"
          "{\"d\":{\"values\":[1,2,3],\"keys\":[\"2.1\",\"2\",\"2.10\"]}}\n"
          "{\"b\":{\"keys\":[true,false,true],\"values\":[1,2,3]}}\n"
          "{\"u\":{\"keys\":[\"00000000-0000-0000-0000-000000000001\","
          "\"00000000-0000-0000-0000-000000000001\"],\"values\":[1,2]}}\n"
          "{\"b\":{\"keys\":[true,false],\"values\":[1,2]},\"n\":{\"keys\":[1,2],\"values\":[1,1]}}"
          "\n",
          "{\"b\":{\"keys\":[true,false],\"values\":[1,2]},\"n\":{\"keys\":[1,2],\"values\":[1,1]},"
          "\"s\":null,\"d\":null,\"u\":null}\n",
          "1: column s: key a was there twice\n"
          "2: column n: its key number 2 was there before\n"
          "3: column d: its key number 3 was there before\n"
          "4: column b: its key number 3 was there before\n"
          "5: column u: its key number 2 was there before\n");
}

/* Many keys are compared by a table, and so are those of a map in a map. */
static void large_maps(void **state) {
    (void)state;
    tarn_buf text;
    tarn_buf rows;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    buf_init(&text, env, 0);
    buf_init(&rows, env, 0);
    for (int twice = 0; twice < 2; twice++) {
        assert_ok(buf_printf(&text, &err, "{\"m\":{"));
        for (int i = 0; i < 100; i++) {
            assert_ok(buf_printf(&text, &err, "%s\"k%d\":{\"a%d\":1}", i > 0 ? "," : "",
                                 twice && i == 90 ? 3 : i, i));
        }
        assert_ok(buf_printf(&text, &err, "}}\n"));
    }
    assert_ok(buf_append_char(&text, '\0', &err));
    assert_ok(buf_printf(&rows, &err, "{\"m\":{\"keys\":["));
    for (int i = 0; i < 100; i++) {
        assert_ok(buf_printf(&rows, &err, "%s\"k%d\"", i > 0 ? "," : "", i));
    }
    assert_ok(buf_printf(&rows, &err, "],\"values\":["));
    for (int i = 0; i < 100; i++) {
        assert_ok(
            buf_printf(&rows, &err, "%s{\"keys\":[\"a%d\"],\"values\":[1]}", i > 0 ? "," : "", i));
    }
    assert_ok(buf_printf(&rows, &err, "]}}\n"));
    assert_ok(buf_append_char(&rows, '\0', &err));
    check("struct<m: map<string, map<string, int>>>", (const char *)text.data,
          (const char *)rows.data, "2: column m: key k3 was there twice\n");
    buf_release(&text);
    buf_release(&rows);
    test_env_done(env);
}

static void members_missing_twice_and_unknown(void **state) {
    (void)state;
    const char *schema = "struct<a: int, b: struct<c: int>>";
    const char *text = "{\"a\":1,\"a\":2}\n{\"z\":[{\"a\":[1,2.5e1,true,false,null,\"s\"]},{}],"
                       "\"a\":3}\n{\"b\":{\"c\":1,\"d\":2}}\n{\"a\":1,\"z\":[}\n{\"A\":4}\n";
    check(schema, text, "",
          "1: column a: the member was there twice\n"
          "2: member z was not in the schema\n"
          "3: column b: member d was not in the schema\n"
          "4: member z was not in the schema\n"
          "5: member A was not in the schema\n");
    text_case_check(schema, text, (text_options){.kind = TEXT_NDJSON, .ignore_unknown = true},
                    "{\"a\":3,\"b\":null}\n{\"a\":null,\"b\":{\"c\":1}}\n{\"a\":null,\"b\":null}\n",
                    "1: column a: the member was there twice\n"
                    "4: '}' at byte 13 stood where a JSON value was expected\n");
    text_case_check(schema, "{\"A\":4}\n{\"a\":5}\n{\"A\":4,\"a\":5}\n",
                    (text_options){.kind = TEXT_NDJSON, .case_insensitive = true},
                    "{\"a\":4,\"b\":null}\n{\"a\":5,\"b\":null}\n",
                    "3: column a: the member was there twice\n");
}

static void records_that_are_no_objects(void **state) {
    (void)state;
    check("struct<a: int>",
          "[1]\n5\nnull\n{\"a\":1}{\"a\":2}\n{\"a\":1\n{\"a\"}\n{a:1}\n{\"a\":}\n{", "",
          "1: the record was not a JSON object\n"
          "2: the record was not a JSON object\n"
          "3: the record was not a JSON object\n"
          "4: '{' at byte 8 stood where the end of the record was expected\n"
          "5: the record ended where ',' or '}' was expected\n"
          "6: '}' at byte 5 stood where ':' was expected\n"
          "7: 'a' at byte 2 stood where a member's name was expected\n"
          "8: column a: '}' at byte 6 stood where a JSON value was expected\n"
          "9: the record ended where a member's name was expected\n");
}

static void required_columns(void **state) {
    (void)state;
    tarn_field fields[2];
    memset(fields, 0, sizeof fields);
    fields[0] = (tarn_field){.id = 1, .required = true, .name = STR("a")};
    fields[1] = (tarn_field){.id = 2, .name = STR("b")};
    fields[0].type = fields[1].type = type_primitive(TARN_INT);
    tarn_type root = {.kind = TARN_STRUCT, .fields = fields, .n_fields = 2};
    text_case t;
    io_stream *stream = NULL;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    tarn_error err = TARN_ERROR_INIT;
    text_options in = {.kind = TEXT_NDJSON, .reject = text_case_reject, .reject_ctx = &t};
    text_options out = {.kind = TEXT_NDJSON};
    assert_ok(text_case_stream(&t, STR("{\"b\":1}\n{\"a\":null}\n{\"a\":5}\n"), &stream));
    assert_ok(text_case_copy(&t, stream, &root, &in, &out));
    text_case_same(&t.out, "{\"a\":5,\"b\":null}\n");
    text_case_same(&t.rejects, "1: column a: a required value was null or absent\n"
                               "2: column a: a required value was null or absent\n");
    text_case_done(&t);
    test_env_done(env);
}

/* Lines, rows and their order must not depend on where pieces end or how full batches are. */
static void pieces_and_batches_change_nothing(void **state) {
    (void)state;
    tarn_buf text;
    tarn_buf rows;
    tarn_buf rejects;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    buf_init(&text, env, 0);
    buf_init(&rows, env, 0);
    buf_init(&rejects, env, 0);
    for (int i = 0; i < 500; i++) {
        if (i % 7 == 3) {
            assert_ok(buf_printf(&text, &err, "{\"a\":\"bad\"}\n"));
            assert_ok(buf_printf(&rejects, &err,
                                 "%d: column a: a string was found, not int: "
                                 "\"bad\"\n",
                                 i + 1));
        } else if (i % 11 == 5) {
            assert_ok(buf_printf(&text, &err, "\n"));
        } else {
            assert_ok(buf_printf(&text, &err, "{\"a\":%d,\"s\":\"row %d\"}\n", i, i));
            assert_ok(buf_printf(&rows, &err, "{\"a\":%d,\"s\":\"row %d\"}\n", i, i));
        }
    }
    assert_ok(buf_append_char(&rows, '\0', &err));
    assert_ok(buf_append_char(&rejects, '\0', &err));
    static const size_t chunks[] = {1, 16, 100, 1000, 0};
    static const int64_t batches[] = {1, 3, 0};
    for (size_t c = 0; c < 5; c++) {
        for (size_t b = 0; b < 3; b++) {
            text_case t;
            text_case_init(&t, env);
            text_options in = {.kind = TEXT_NDJSON,
                               .chunk_bytes = chunks[c],
                               .batch_rows = batches[b],
                               .reject = text_case_reject,
                               .reject_ctx = &t};
            assert_ok(text_case_read(&t, "struct<a: int, s: string>", buf_str(&text), &in));
            text_case_same(&t.out, (const char *)rows.data);
            text_case_same(&t.rejects, (const char *)rejects.data);
            assert_true(batches[b] == 0 || t.batches * batches[b] >= t.rows);
            text_case_done(&t);
        }
    }
    buf_release(&text);
    buf_release(&rows);
    buf_release(&rejects);
    test_env_done(env);
}

static void the_first_bad_record_stops(void **state) {
    (void)state;
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    text_options in = {.kind = TEXT_NDJSON, .chunk_bytes = 20};
    assert_code(text_case_read(&t, "struct<a: int>",
                               STR("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":\"x\"}\n{\"a\":5}\n"),
                               &in),
                TARN_INVALID);
    assert_string_equal(t.err.message,
                        "input line 4: column a: a string was found, not int: \"x\"");
    text_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_in_any_order),
        cmocka_unit_test(a_mark_and_nothing_are_no_records),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(floats_and_decimals),
        cmocka_unit_test(strings_and_escapes),
        cmocka_unit_test(dates_and_times),
        cmocka_unit_test(bytes_and_booleans),
        cmocka_unit_test(nested_values),
        cmocka_unit_test(variants_are_any_json),
        cmocka_unit_test(a_struct_of_no_fields),
        cmocka_unit_test(years_of_any_length),
        cmocka_unit_test(keys_of_any_type),
        cmocka_unit_test(large_maps),
        cmocka_unit_test(members_missing_twice_and_unknown),
        cmocka_unit_test(records_that_are_no_objects),
        cmocka_unit_test(required_columns),
        cmocka_unit_test(pieces_and_batches_change_nothing),
        cmocka_unit_test(the_first_bad_record_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
