/* Goal: checkpoints that are committed beside the stream come to the same as those it waits for:
 * one snapshot each, in order, exactly once, also over failures at every store call and over jobs
 * that are freed while commits are on their way. Method: a sink_case with the background on;
 * numbered rows, one a checkpoint, whose number is the offset; what is in the table is read back.
 */
#include "sink_case.h"

#include <stdlib.h>

#define CHECKPOINTS 40

static tarn_error err;

static void start(sink_case *t, tarn_env *env, case_kind kind) {
    sink_case_init(t, env, kind);
    case_table(&t->c, 2, "id int not null, day int", NULL, NULL);
    t->options.background = true;
    assert_ok(sink_case_open(t, &err));
    assert_true(sink_is_background(t->sink));
}

static tarn_code push_one(sink_case *t, int id, tarn_error *e) {
    char line[64];
    char offset[16];
    (void)snprintf(line, sizeof line, "{\"id\":%d,\"day\":1}\n", id);
    (void)snprintf(offset, sizeof offset, "%d", id);
    tarn_code code = sink_case_write(t, line, NULL, e);
    return code == TARN_OK ? sink_push(t->sink, offset, e) : code;
}

static tarn_code flush(sink_case *t, tarn_error *e) {
    sink_progress progress;
    tarn_code code = sink_flush(t->sink, &progress, e);
    table_version_release(progress.commit.version);
    return code;
}

static int offset_of(sink_case *t) {
    tarn_buf text;
    bool has = false;
    buf_init(&text, t->c.env, 0);
    assert_ok(sink_read_offsets(t->sink, &text, &has, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    int at = has ? atoi((const char *)text.data) : 0;
    buf_release(&text);
    return at;
}

static void rows_are(sink_case *t, int n) {
    char lines[CHECKPOINTS * 32];
    size_t len = 0;
    lines[0] = '\0';
    for (int i = 1; i <= n; i++) {
        len += (size_t)snprintf(lines + len, sizeof lines - len, "{\"id\":%d,\"day\":1}\n", i);
    }
    sink_case_rows_are(t, lines);
}

static void test_stream(void **state) {
    (void)state;
    for (case_kind kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        sink_case t;
        sink_stats stats;
        start(&t, env, kind);
        assert_int_equal(offset_of(&t), 0);
        for (int i = 1; i <= CHECKPOINTS; i++) {
            assert_ok(push_one(&t, i, &err));
        }
        assert_ok(flush(&t, &err));
        assert_int_equal(offset_of(&t), CHECKPOINTS);
        sink_stats_get(t.sink, &stats);
        assert_int_equal(stats.pending, 0);
        assert_int_equal(stats.commits.commits, CHECKPOINTS);
        assert_int_equal(sink_case_snapshots(&t), CHECKPOINTS);
        rows_are(&t, CHECKPOINTS);
        assert_ok(flush(&t, &err)); /* nothing is on its way */
        case_check_files(&t.c, 0);
        sink_case_close(&t);
        assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
        assert_ok(sink_case_open(&t, &err));
        assert_int_equal(offset_of(&t), CHECKPOINTS);
        sink_case_done(&t);
        test_env_done(env);
    }
}

/* Freed with commits on their way: what the next one finds is a beginning of the stream. */
static void test_freed(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, CASE_SQLITE_MEMORY);
    int at = 0;
    while (at < CHECKPOINTS) {
        int before = at;
        for (int i = at + 1; i <= CHECKPOINTS && i <= at + 7; i++) {
            assert_ok(push_one(&t, i, &err));
        }
        sink_case_close(&t);
        assert_ok(sink_case_open(&t, &err));
        at = offset_of(&t);
        assert_true(at >= before); /* 0 more: freed before the first was taken */
        rows_are(&t, at);
        if (at == before) {
            assert_ok(push_one(&t, at + 1, &err));
            assert_ok(flush(&t, &err));
            at++;
        }
    }
    assert_int_equal(sink_case_snapshots(&t), CHECKPOINTS);
    sink_case_done(&t);
    test_env_done(env);
}

/* A store call fails: said by a later call, then by every one, and nothing more is committed. */
static void test_failures(void **state) {
    (void)state;
    for (int64_t k = 1; k < 120; k += test_every() ? 1 : 7) {
        tarn_env *env = test_env();
        sink_case t;
        tarn_code code = TARN_OK;
        start(&t, env, k % 2 == 0 ? CASE_DIR_MEMORY : CASE_SQLITE_MEMORY);
        t.c.plan.fail_at = k;
        for (int i = 1; i <= 6 && code == TARN_OK; i++) {
            code = push_one(&t, i, &err);
        }
        tarn_code flushed = flush(&t, &err);
        t.c.plan.fail_at = 0; /* nothing is under way now */
        sink_stats stats;
        sink_stats_get(t.sink, &stats);
        assert_int_equal(stats.total.rows, stats.commits.commits); /* one a checkpoint */
        assert_true(stats.total.rows <= sink_case_snapshots(&t));
        if (code != TARN_OK || flushed != TARN_OK) {
            assert_true(push_one(&t, 7, &err) != TARN_OK);
        }
        sink_case_close(&t);
        assert_ok(sink_case_open(&t, &err));
        int at = offset_of(&t);
        rows_are(&t, at);
        for (int i = at + 1; i <= 8; i++) {
            assert_ok(push_one(&t, i, &err));
        }
        assert_ok(flush(&t, &err));
        rows_are(&t, 8);
        assert_int_equal(sink_case_snapshots(&t), 8);
        sink_case_done(&t);
        test_env_done(env);
    }
}

/* A newer job began: the older one hears of it. */
static void test_fenced(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, CASE_SQLITE_MEMORY);
    assert_ok(push_one(&t, 1, &err));
    assert_ok(flush(&t, &err));
    sink_case other = t;
    other.sink = NULL;
    assert_ok(sink_case_open(&other, &err));
    assert_int_equal(offset_of(&other), 1);
    tarn_code code = push_one(&t, 2, &err);
    assert_code(code == TARN_OK ? flush(&t, &err) : code, TARN_DENIED);
    assert_ok(push_one(&other, 2, &err));
    assert_ok(flush(&other, &err));
    rows_are(&other, 2);
    sink_case_close(&other);
    sink_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_fenced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
