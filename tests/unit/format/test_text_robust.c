/* Goal: no text, however damaged, and no failed allocation makes the reader, the writer or the
 * inference crash, leak or give rows that break the invariants of batches; known bugs of other
 * readers stay away.
 * Method: samples that hold every type are cut and flipped at every byte and read with both kinds'
 * readers (under the sanitizers); the k-th allocation fails until none does; threads read the same
 * rows as one thread; the bug cases are read from fixtures. */
#include "fail_alloc.h"
#include "text_case.h"

static const char schema[] =
    "struct<a: boolean, b: int, c: long, d: float, e: double, f: decimal(9, 2), g: date, "
    "h: time, i: timestamp, j: timestamptz, m: string, n: uuid, o: fixed[2], p: binary, "
    "q: struct<x: int, y: string>, r: list<list<int>>, s: map<string, int>, v: variant>";

static const char ndjson[] =
    "{\"a\":true,\"b\":-21,\"c\":922,\"d\":1.5,\"e\":-0.25e1,\"f\":\"-0.01\",\"g\":\"1969-12-31\","
    "\"h\":\"23:59:59.9\",\"i\":\"2013-01-01T10:00:00.5\",\"j\":\"2013-01-01 10:00:00Z\","
    "\"m\":\"q\\\"\\u00e9\xC3\xA9\",\"n\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\",\"o\":\"00ff\","
    "\"p\":\"0a\",\"q\":{\"x\":1,\"y\":\"a\"},\"r\":[[1,null],[]],\"s\":{\"k\":1},"
    "\"v\":{\"b\":[1,2.5],\"a\":1e9}}\n"
    "{\"m\":null,\"zz\":[{\"k\":[1,2.5]},{\"t\":false}],\"s\":{\"keys\":[\"a\"],\"values\":[2]},"
    "\"b\":7}"
    "\n";

static const char csv[] =
    "a,b,c,d,e,f,g,h,i,j,m,n,o,p,q,r,s,v\r\n"
    "true,-21,922,1.5,-2.5,-0.01,1969-12-31,23:59:59.9,2013-01-01T10:00:00.5,2013-01-01 10:00:00Z,"
    "\"q\"\"\n,\",f79c3e09-677c-4bbd-a479-3f349cb785e7,00ff,0a,\"{\"\"x\"\":1,\"\"y\"\":\"\"a\"\"}"
    "\","
    "\"[[1,null],[]]\",{},\"{\"\"a\"\":[1,true]}\"\r\n"
    ",7,,,,,,,,,\"\",,,,,,,\n";

static tarn_str sample(text_kind kind) {
    return kind == TEXT_CSV ? str_make(csv, sizeof csv - 1) : str_make(ndjson, sizeof ndjson - 1);
}

static tarn_code pass_over(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                           tarn_error *err) {
    (void)ctx;
    (void)err;
    assert_true(line > 0 && reason.len > 0 && raw.data != NULL);
    return TARN_OK;
}

/* Reads text by the schema and by what is inferred from it; any outcome but a crash will do. */
static void read_any(tarn_env *env, tarn_str text, text_kind kind) {
    text_case t;
    const tarn_type *root = NULL;
    io_stream *stream = NULL;
    tarn_error err = TARN_ERROR_INIT;
    text_options in = {
        .kind = kind, .ignore_unknown = true, .reject = pass_over, .chunk_bytes = 100};
    text_case_init(&t, env);
    tarn_code code = text_case_read(&t, schema, text, &in);
    assert_true(code == TARN_OK || code == TARN_INVALID);
    assert_ok(text_case_stream(&t, text, &stream));
    code = text_infer(&t.arena, &stream, &in, 0, &root, &err);
    if (code == TARN_OK) {
        assert_ok(text_case_copy(&t, stream, root, &in, &(text_options){.kind = TEXT_CSV}));
    } else {
        assert_code(code, TARN_INVALID);
        stream->close(stream);
    }
    text_case_done(&t);
}

static void cut_and_flip(text_kind kind) {
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xFF};
    char copy[2048];
    tarn_str text = sample(kind);
    tarn_env *env = test_env();
    assert_true(text.len <= sizeof copy);
    for (size_t i = 0; i <= text.len; i++) {
        read_any(env, str_sub(text, 0, i), kind);
    }
    for (size_t i = 0; i < text.len; i++) {
        for (size_t k = 0; k < sizeof flips; k++) {
            memcpy(copy, text.data, text.len);
            copy[i] = (char)(copy[i] ^ flips[k]);
            read_any(env, str_make(copy, text.len), kind);
        }
        memcpy(copy, text.data, text.len);
        copy[i] = i % 2 == 0 ? '\n' : '"';
        read_any(env, str_make(copy, text.len), kind);
    }
    test_env_done(env);
}

static void damaged_ndjson(void **state) {
    (void)state;
    cut_and_flip(TEXT_NDJSON);
}

static void damaged_csv(void **state) {
    (void)state;
    cut_and_flip(TEXT_CSV);
}

static tarn_code infer_and_copy(text_case *t, text_kind in_kind, text_kind out_kind) {
    io_stream *stream = NULL;
    const tarn_type *root = NULL;
    text_options in = {.kind = in_kind, .ignore_unknown = true};
    text_options out = {.kind = out_kind};
    tarn_code code = text_case_stream(t, sample(in_kind), &stream);
    TRY(code);
    TRY(text_infer(&t->arena, &stream, &in, 0, &root, &t->err));
    io_stream *taken = stream;
    stream = NULL;
    TRY(text_case_copy(t, taken, root, &in, &out));
    TRY(text_case_read(t, schema, sample(in_kind), &in));
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

static void fail_each(text_kind in, text_kind out) {
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        text_case t;
        tarn_env *env = fail_alloc_env(&plan, k);
        text_case_init(&t, env);
        tarn_code code = infer_and_copy(&t, in, out);
        bool failed = atomic_load(&plan.failed);
        if (failed) {
            assert_code(code, TARN_NOMEM);
            assert_true(t.err.message[0] != '\0');
        } else if (code != TARN_OK) {
            fail_msg("%s (%s)", t.err.message, t.err.detail);
        }
        text_case_done(&t);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

static void failing_allocations(void **state) {
    (void)state;
    fail_each(TEXT_NDJSON, TEXT_CSV);
    fail_each(TEXT_CSV, TEXT_NDJSON);
    fail_each(TEXT_NDJSON, TEXT_TABLE);
}

static void threads_read_in_order(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.threads = 4;
    tarn_env *env = NULL;
    assert_ok(tarn_env_new(&options, &env, &err));
    tarn_buf text;
    buf_init(&text, env, 0);
    for (int i = 0; i < 20000; i++) {
        assert_ok(buf_printf(&text, &err, "{\"a\":%d}\n", i));
        assert_ok(i % 1000 == 0 ? buf_printf(&text, &err, "{\"a\":%d\n", i) : TARN_OK);
    }
    io_stream *stream = NULL;
    text_reader *reader = NULL;
    text_case t;
    text_case_init(&t, env);
    text_options in = {.kind = TEXT_NDJSON,
                       .chunk_bytes = 4096,
                       .batch_rows = 100,
                       .reject = text_case_reject,
                       .reject_ctx = &t};
    const tarn_type *root = NULL;
    assert_ok(type_from_text(&t.arena, STR("struct<a: int>"), &root, &err));
    assert_ok(text_case_stream(&t, buf_str(&text), &stream));
    assert_ok(text_reader_open(env, stream, root, &in, &reader, &err));
    int32_t next = 0;
    for (;;) {
        tarn_batch batch;
        tarn_view view;
        assert_ok(text_reader_next(reader, &batch, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 0, &view);
        for (int64_t i = 0; i < view.length; i++) {
            assert_int_equal(((const int32_t *)view.values)[i], next++);
        }
        batch_release(&batch);
    }
    assert_int_equal(next, 20000);
    assert_int_equal(text_reader_bytes_read(reader), (int64_t)text.len);
    assert_true(str_starts_with(buf_str(&t.rejects), STR("2: the record ended where")));
    size_t at;
    assert_true(str_find_last_char(buf_str(&t.rejects), ':', &at));
    assert_true(str_ends_with(str_sub(buf_str(&t.rejects), 0, at), STR("\n19021")));
    text_reader_close(reader);
    /* Closing while pieces fly. */
    assert_ok(text_case_stream(&t, buf_str(&text), &stream));
    assert_ok(text_reader_open(env, stream, root, &in, &reader, &err));
    tarn_batch batch;
    assert_ok(text_reader_next(reader, &batch, &err));
    text_reader_close(reader);
    batch_release(&batch);
    buf_release(&text);
    text_case_done(&t);
    test_env_done(env);
}

typedef struct raw_case {
    tarn_buf raws;
    int64_t stop_at; /* the line at which reading is to stop */
} raw_case;

static tarn_code keep_raw(void *ctx, int64_t line, tarn_str raw, tarn_str reason, tarn_error *err) {
    raw_case *c = ctx;
    (void)reason;
    if (line == c->stop_at) {
        return err_set(err, TARN_IO, "the caller stopped at line %lld", (long long)line);
    }
    return buf_printf(&c->raws, err, "%lld:<%.*s>", (long long)line, STR_ARG(raw));
}

static void check_raw(const char *text, text_kind kind, int64_t stop_at, tarn_code want,
                      const char *raws) {
    text_case t;
    raw_case c = {.stop_at = stop_at};
    tarn_env *env = test_env();
    text_case_init(&t, env);
    buf_init(&c.raws, env, 0);
    text_options in = {.kind = kind, .reject = keep_raw, .reject_ctx = &c};
    assert_code(text_case_read(&t, "struct<a: int>", str_of(text), &in), want);
    if (want != TARN_OK) {
        assert_string_equal(t.err.message, "the caller stopped at line 3");
    }
    text_case_same(&c.raws, raws);
    buf_release(&c.raws);
    text_case_done(&t);
    test_env_done(env);
}

/* Bad records are given as they stand, without the end of the line; their taker may stop it all. */
static void bad_records_as_they_stand(void **state) {
    (void)state;
    check_raw("{\"a\":x}\r\n{\"a\":1}\n [] \n{", TEXT_NDJSON, 0, TARN_OK,
              "1:<{\"a\":x}>3:< [] >4:<{>");
    check_raw("a\n\"x\n\"\r\n1,2\n\"", TEXT_CSV, 0, TARN_OK, "2:<\"x\n\">4:<1,2>5:<\">");
    check_raw("x\n{}\ny\nz\n", TEXT_NDJSON, 3, TARN_IO, "1:<x>");
}

static void cancelled_reading_ends(void **state) {
    (void)state;
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    tarn_env_cancel(env);
    text_options in = {.kind = TEXT_NDJSON};
    assert_code(text_case_read(&t, "struct<a: int>", STR("{}\n"), &in), TARN_CANCELLED);
    text_case_done(&t);
    test_env_done(env);
}

typedef struct endless_stream {
    io_stream base;
    char fill;
} endless_stream;

static tarn_code read_endless(io_stream *base, void *dst, size_t cap, size_t *got,
                              tarn_error *err) {
    (void)err;
    memset(dst, ((endless_stream *)base)->fill, cap);
    *got = cap;
    return TARN_OK;
}

static void close_endless(io_stream *base) {
    (void)base;
}

/* A record without an end is LIMIT, and memory stays bounded. */
static void records_without_end(void **state) {
    (void)state;
    static const text_kind kinds[] = {TEXT_NDJSON, TEXT_CSV};
    for (size_t i = 0; i < 2; i++) {
        tarn_env *env = test_env();
        text_case t;
        text_case_init(&t, env);
        endless_stream s = {{env, "endless", read_endless, close_endless}, i == 0 ? 'x' : '"'};
        text_options in = {.kind = kinds[i], .no_header = true};
        text_options out = {.kind = TEXT_NDJSON};
        const tarn_type *root = NULL;
        tarn_error err = TARN_ERROR_INIT;
        assert_ok(type_from_text(&t.arena, STR("struct<a: string>"), &root, &err));
        assert_code(text_case_copy(&t, &s.base, root, &in, &out), TARN_LIMIT);
        assert_non_null(strstr(t.err.message, "endless: a record was longer than 67108864 bytes"));
        text_case_done(&t);
        test_env_done(env);
    }
}

static tarn_str read_fixture(const char *name, char *text, size_t cap) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/bugs/B10/%s", TARN_TEST_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(text, 1, cap, file);
    (void)fclose(file);
    return str_make(text, len);
}

/* B10: decimals with exponents keep the exponent's sign, and nothing is rounded. */
static void decimals_with_exponents(void **state) {
    (void)state;
    char text[1024];
    text_case t;
    tarn_env *env = test_env();
    text_case_init(&t, env);
    text_options in = {.kind = TEXT_NDJSON, .reject = text_case_reject, .reject_ctx = &t};
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(text_case_read(&t, "struct<id: int, v: decimal(7, 2)>",
                             read_fixture("rows.jsonl", text, sizeof text), &in));
    text_case_same(&t.out, "{\"id\":0,\"v\":\"100.00\"}\n{\"id\":1,\"v\":\"50.00\"}\n"
                           "{\"id\":2,\"v\":\"-9969.53\"}\n{\"id\":3,\"v\":\"12.50\"}\n"
                           "{\"id\":4,\"v\":\"0.00\"}\n{\"id\":5,\"v\":\"12.00\"}\n"
                           "{\"id\":6,\"v\":\"-1.28\"}\n{\"id\":7,\"v\":\"99999.99\"}\n"
                           "{\"id\":8,\"v\":\"1.00\"}\n");
    buf_reset(&t.out);
    assert_ok(text_case_read(&t, "struct<id: int, v: decimal(7, 2)>",
                             read_fixture("bad.jsonl", text, sizeof text), &in));
    text_case_same(&t.out, "");
    text_case_same(&t.rejects, "1: column v: 1.005 had more fraction digits than decimal(7, 2)\n"
                               "2: column v: 1E+5 did not fit decimal(7, 2)\n"
                               "3: column v: 1e400 did not fit decimal(7, 2)\n");
    text_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_ndjson),         cmocka_unit_test(damaged_csv),
        cmocka_unit_test(failing_allocations),    cmocka_unit_test(threads_read_in_order),
        cmocka_unit_test(records_without_end),    cmocka_unit_test(bad_records_as_they_stand),
        cmocka_unit_test(cancelled_reading_ends), cmocka_unit_test(decimals_with_exponents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
