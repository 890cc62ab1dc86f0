/* The Parquet writer when memory or the sink fails.
 * Goal: every failure is told with its own code, leaves no memory behind and nothing visible.
 * Method: the k-th allocation, then the k-th write, fails, for every k until all goes through. */
#include "unit/format/parquet_write_case.h"

static const char *const type =
    "{\"type\":\"struct\",\"fields\":["
    "{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"long\"},"
    "{\"id\":2,\"name\":\"s\",\"required\":false,\"type\":\"string\"},"
    "{\"id\":3,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":4,"
    "\"element-required\":false,\"element\":\"binary\"}},"
    "{\"id\":5,\"name\":\"d\",\"required\":false,\"type\":\"decimal(30,2)\"},"
    "{\"id\":6,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":7,"
    "\"value-id\":8,\"key\":\"string\",\"value-required\":false,\"value\":\"boolean\"}}]}";
static const char *const properties = "write.parquet.page-row-limit=2\n"
                                      "write.parquet.bloom-filter-enabled.column.s=true\n"
                                      "write.parquet.encoding.column.a=delta\n"
                                      "write.parquet.encoding.column.l.element=delta\n"
                                      "write.metadata.metrics.default=full";
static const char *const lines =
    "{\"a\":1,\"s\":\"one\",\"l\":[\"01\",null],\"d\":\"1.50\",\"m\":{\"keys\":[\"k\"],\"values\":["
    "true]}}\n"
    "{\"a\":2,\"s\":null,\"l\":[],\"d\":null,\"m\":null}\n"
    "{\"a\":3,\"s\":\"one\",\"l\":null,\"d\":\"-7.25\",\"m\":{\"keys\":[],\"values\":[]}}\n"
    "{\"a\":4,\"s\":\"two\",\"l\":[\"\",\"ffff\"],\"d\":\"0.00\",\"m\":null}\n"
    "{\"a\":5,\"s\":\"one\",\"l\":[null],\"d\":\"2.00\",\"m\":null}";

static tarn_code write_all(tarn_env *env, tarn_error *err) {
    write_case c;
    tarn_code code = TARN_OK;
    TRY(case_open(&c, env, type, properties, err));
    c.options.row_group_rows = 3;
    TRY(case_write(&c, lines, err));
done:
    case_close(&c);
    return code;
}

static void no_memory_leaves_nothing(void **unused) {
    (void)unused;
    each_failure(write_all);
}

typedef struct failing_sink {
    io_sink sink;
    int64_t left; /* calls until one fails */
    bool failed;
    bool *finished;
    bool *aborted;
} failing_sink;

static tarn_code fail_or_go(failing_sink *s, tarn_error *err) {
    if (s->left-- == 0) {
        s->failed = true;
        return err_set(err, TARN_IO, "the disk was full");
    }
    return TARN_OK;
}

static tarn_code sink_write(io_sink *sink, const void *data, size_t len, tarn_error *err) {
    (void)data;
    (void)len;
    return fail_or_go((failing_sink *)sink, err);
}

static tarn_code sink_finish(io_sink *sink, tarn_error *err) {
    failing_sink *s = (failing_sink *)sink;
    tarn_code code = fail_or_go(s, err);
    *s->finished = code == TARN_OK;
    *s->aborted = code != TARN_OK; /* gone in every case */
    return code;
}

static void sink_abort(io_sink *sink) {
    *((failing_sink *)sink)->aborted = true;
}

static void failing_sinks_are_aborted_once(void **unused) {
    (void)unused;
    for (int64_t k = 0;; k++) {
        tarn_env *env = test_env();
        tarn_error err = TARN_ERROR_INIT;
        write_case c;
        bool finished = false;
        bool aborted = false;
        failing_sink s = {.sink = {.env = env,
                                   .name = "full.parquet",
                                   .write = sink_write,
                                   .finish = sink_finish,
                                   .abort = sink_abort},
                          .left = k,
                          .finished = &finished,
                          .aborted = &aborted};
        assert_ok(case_open(&c, env, type, properties, &err));
        c.options.row_group_rows = 3;
        tarn_code code = case_write_to(&c, lines, &s.sink, &err);
        assert_int_equal(code, s.failed ? TARN_IO : TARN_OK);
        assert_int_equal(finished, !s.failed);
        assert_int_equal(aborted, s.failed);
        case_close(&c);
        test_env_done(env);
        if (!s.failed) {
            assert_true(k > 20);
            break;
        }
    }
}

/* After a failure the writer takes nothing more but free. */
static void failed_writers_stay_failed(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    parquet_writer *w = NULL;
    io_sink *sink = NULL;
    tarn_batch batch;
    assert_ok(case_open(&c, env, type, "", &err));
    assert_ok(io_sink_memory(env, &c.bytes, &sink, &err));
    assert_ok(parquet_writer_new(env, c.type, &c.options, sink, &w, &err));
    assert_ok(rows_read(env, &c.arena, c.type, "{\"a\":null}", &batch, &err));
    assert_code(parquet_writer_write(w, &batch, &err), TARN_INVALID);
    batch_release(&batch);
    assert_ok(rows_read(env, &c.arena, c.type, "{\"a\":1}", &batch, &err));
    assert_code(parquet_writer_write(w, &batch, &err), TARN_INTERNAL);
    assert_code(parquet_writer_close(w, &c.arena, &c.file, &err), TARN_INTERNAL);
    parquet_writer_free(w);
    batch_release(&batch);
    assert_int_equal(c.bytes.len, 0);
    case_close(&c);
    test_env_done(env);
}

/* Many writers may be open at once: one that was given a row holds little. */
static void small_writers_hold_little(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    parquet_writer *w[50];
    tarn_batch batch;
    assert_ok(case_open(&c, env, type, "", &err));
    assert_ok(rows_read(env, &c.arena, c.type, lines, &batch, &err));
    uint64_t before = tarn_env_memory_now(env);
    for (int i = 0; i < 50; i++) {
        io_sink *sink = NULL;
        assert_ok(io_sink_memory(env, &c.bytes, &sink, &err));
        assert_ok(parquet_writer_new(env, c.type, &c.options, sink, &w[i], &err));
        assert_ok(parquet_writer_write(w[i], &batch, &err));
        assert_true(parquet_writer_buffered_bytes(w[i]) > 0);
        assert_true(parquet_writer_written_bytes(w[i]) > 0);
    }
    assert_true(tarn_env_memory_now(env) - before < 50 * (96 << 10));
    for (int i = 0; i < 50; i++) {
        parquet_writer_free(w[i]);
    }
    batch_release(&batch);
    case_close(&c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_leaves_nothing),
        cmocka_unit_test(failing_sinks_are_aborted_once),
        cmocka_unit_test(failed_writers_stay_failed),
        cmocka_unit_test(small_writers_hold_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
