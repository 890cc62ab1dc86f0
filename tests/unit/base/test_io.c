/* Goal: the seams check bounds and cancellation, and the ends in memory keep the promises that
 * every source, stream and sink makes.
 * Method: memory ends, read at and beyond their edges, and each allocation made to fail. */
#include "fail_alloc.h"

#include "base/io.h"

static void test_source(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    char name[] = "thing";
    assert_ok(io_source_memory(env, name, "0123456789", 10, &source, &err));
    name[0] = '!';
    assert_string_equal(source->name, "thing");
    char got[11] = "";
    assert_ok(io_read_at(source, 3, got, 4, &err));
    assert_string_equal(got, "3456");
    assert_ok(io_read_at(source, 10, got, 0, &err));
    assert_code(io_read_at(source, 7, got, 4, &err), TARN_CORRUPT);
    assert_string_equal(err.message, "thing: a read of 4 bytes at offset 7 passed the end at 10");
    assert_code(io_read_at(source, -1, got, 1, &err), TARN_CORRUPT);
    assert_code(io_read_at(source, 11, got, 0, &err), TARN_CORRUPT);
    assert_code(io_read_at(source, INT64_MAX, got, SIZE_MAX, &err), TARN_CORRUPT);
    assert_memory_equal(source->peek(source, 2, 8), "23456789", 8);
    assert_null(source->peek(source, 2, 9));
    assert_null(source->peek(source, -1, 1));
    tarn_buf all;
    buf_init(&all, env, 15);
    assert_ok(buf_append_char(&all, '>', &err));
    assert_ok(io_read_all(source, &all, &err));
    assert_true(str_is(buf_str(&all), ">0123456789"));
    assert_code(io_read_all(source, &all, &err), TARN_LIMIT);
    assert_int_equal(all.len, 11);
    tarn_env_cancel(env);
    assert_code(io_read_at(source, 0, got, 1, &err), TARN_CANCELLED);
    tarn_env_cancel_reset(env);
    buf_release(&all);
    source->close(source);
    assert_ok(io_source_memory(env, NULL, NULL, 0, &source, &err));
    assert_string_equal(source->name, "<memory>");
    assert_ok(io_read_at(source, 0, got, 0, &err));
    source->close(source);
    test_env_done(env);
}

static void test_stream(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    io_stream *stream = NULL;
    assert_ok(io_source_memory(env, "s", "0123456789", 10, &source, &err));
    assert_ok(io_stream_source(source, &stream, &err));
    assert_string_equal(stream->name, "s");
    char text[11] = "";
    size_t at = 0;
    size_t got = 1;
    while (got > 0) {
        assert_ok(stream->read(stream, text + at, at < 9 ? 3 : 1, &got, &err));
        at += got;
    }
    assert_string_equal(text, "0123456789");
    tarn_env_cancel(env);
    assert_code(stream->read(stream, text, 1, &got, &err), TARN_CANCELLED);
    stream->close(stream);
    test_env_done(env);
}

static void test_sink(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    buf_init(&out, env, 10);
    io_sink *sink = NULL;
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(io_write(sink, "abc", 3, &err));
    assert_ok(io_write(sink, NULL, 0, &err));
    assert_ok(io_write(sink, "def", 3, &err));
    assert_int_equal(sink->written_bytes, 6);
    assert_int_equal(out.len, 0);
    assert_ok(sink->finish(sink, &err));
    assert_true(str_is(buf_str(&out), "abcdef"));
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(io_write(sink, "x", 1, &err));
    sink->abort(sink);
    /* After a failed write finish fails too, and nothing of it is seen. */
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(io_write(sink, "x", 1, &err));
    assert_code(io_write(sink, "0123456789", 10, &err), TARN_LIMIT);
    assert_int_equal(sink->written_bytes, 1);
    assert_ok(io_write(sink, "y", 1, &err));
    assert_code(sink->finish(sink, &err), TARN_LIMIT);
    assert_true(str_is(buf_str(&out), "abcdef"));
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(io_write(sink, "01234", 5, &err));
    assert_code(sink->finish(sink, &err), TARN_LIMIT);
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    tarn_env_cancel(env);
    assert_code(io_write(sink, "y", 1, &err), TARN_CANCELLED);
    sink->abort(sink);
    assert_true(str_is(buf_str(&out), "abcdef"));
    buf_release(&out);
    test_env_done(env);
}

static tarn_code copy_through(tarn_env *env, tarn_error *err) {
    io_source *source = NULL;
    io_stream *stream = NULL;
    io_sink *sink = NULL;
    tarn_code code = TARN_OK;
    tarn_buf out;
    buf_init(&out, env, 0);
    TRY(io_source_memory(env, "x", "0123456789", 10, &source, err));
    TRY(io_read_all(source, &out, err));
    TRY(io_stream_source(source, &stream, err));
    source = NULL;
    TRY(io_sink_memory(env, &out, &sink, err));
    for (int i = 0; i < 30; i++) {
        TRY(io_write(sink, "0123456789", 10, err));
    }
    code = sink->finish(sink, err);
    sink = NULL;
done:
    if (sink != NULL) {
        sink->abort(sink);
    }
    if (stream != NULL) {
        stream->close(stream);
    }
    if (source != NULL) {
        source->close(source);
    }
    buf_release(&out);
    return code;
}

static void test_io_allocations_may_fail(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_code code = copy_through(env, &err);
        bool failed = atomic_load(&plan.failed);
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        fail_alloc_done(&plan, env);
        if (!failed) {
            assert_true(k > 6);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_sink),
        cmocka_unit_test(test_io_allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
