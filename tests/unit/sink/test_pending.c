/* Goal: of the checkpoints that a job left in its state only those are gone on with that follow
 * what is committed without a gap, whatever a power cut or an older job did to them. Method: the
 * rule on lists; then jobs whose state lost one of several checkpoints that became durable
 * together, as a power cut before the end of their sync may lose it, or has some of a job that was
 * taken over. */
#include "sink_case.h"

#include "sink/state.h"

static tarn_error err;

typedef struct left_delta {
    int64_t checkpoint, epoch, after, after_epoch;
    bool stray;
} left_delta;

typedef struct left_state {
    const char *name;
    int64_t known, epoch;
    left_delta deltas[5]; /* in the state's order; checkpoint 0 ends them */
} left_state;

static void test_rule(void **state) {
    (void)state;
    static const left_state states[] = {
        {"nothing", 3, 0, {{0, 0, 0, 0, false}}},
        {"a stream", 0, 0, {{1, 1, 0, 0, false}, {2, 1, 1, 1, false}, {3, 2, 2, 1, false}}},
        {"partly committed", 2, 0, {{2, 1, 1, 1, false}, {3, 1, 2, 1, false}, {4, 1, 3, 1, false}}},
        {"a gap", 1, 0, {{2, 1, 1, 0, false}, {4, 1, 3, 1, true}, {5, 1, 4, 1, true}}},
        {"the first one lost", 1, 0, {{3, 1, 2, 1, true}, {4, 1, 3, 1, true}}},
        {"numbers that were passed over", 1, 0, {{4, 2, 1, 0, false}, {7, 2, 4, 2, false}}},
        {"what came back beside a newer job's",
         2,
         0,
         {{4, 1, 3, 1, true}, {5, 2, 2, 1, false}, {6, 2, 5, 2, false}}},
        {"an older job's that the newer one never saw",
         2,
         0,
         {{3, 1, 2, 1, true}, {3, 2, 2, 1, false}, {4, 1, 3, 1, true}}},
        {"the newer job's lost theirs",
         2,
         0,
         {{3, 1, 2, 1, false}, {4, 1, 3, 1, false}, {6, 2, 5, 2, true}}},
        {"committed, of two jobs", 3, 0, {{3, 1, 2, 1, true}, {3, 2, 2, 1, false}}},
        {"after a note", 1, 0, {{2, 1, 1, 0, false}, {3, 3, 2, 0, false}}},
        {"of a version that did not say", 1, 0, {{2, 1, -1, 0, false}, {4, 1, -1, 0, false}}},
        {"of such a one, and two jobs",
         1,
         0,
         {{2, 1, -1, 0, true}, {2, 2, -1, 0, false}, {3, 2, 2, 2, false}}},
        {"none of them", 5, 0, {{4, 1, 3, 1, false}, {5, 1, 4, 1, false}}},
        {"what an older job left behind all that is committed",
         4,
         2,
         {{4, 1, 3, 1, false}, {5, 1, 4, 1, true}, {6, 1, 5, 1, true}}},
        {"beside what the newer one goes on with",
         4,
         2,
         {{5, 1, 4, 1, true}, {5, 3, 4, 2, false}, {6, 1, 5, 1, true}}},
    };
    for (size_t s = 0; s < sizeof states / sizeof *states; s++) {
        sink_pending list[5];
        size_t n = 0;
        memset(list, 0, sizeof list);
        for (; n < 5 && states[s].deltas[n].checkpoint != 0; n++) {
            const left_delta *d = &states[s].deltas[n];
            list[n].delta.checkpoint = d->checkpoint;
            list[n].delta.epoch = d->epoch;
            list[n].delta.after_checkpoint = d->after;
            list[n].delta.after_epoch = d->after_epoch;
            if (n > 0) {
                list[n - 1].next = &list[n];
            }
        }
        sink_pending_mark(n > 0 ? list : NULL, states[s].known, states[s].epoch);
        for (size_t i = 0; i < n; i++) {
            if (list[i].stray != states[s].deltas[i].stray) {
                fail_msg("%s: delta %zu is %sa stray", states[s].name, i,
                         list[i].stray ? "" : "not ");
            }
        }
    }
}

static void start(sink_case *t, tarn_env *env, case_kind kind) {
    sink_case_init(t, env, kind);
    case_table(&t->c, 2, "id int not null, day int", NULL, NULL);
    assert_ok(sink_case_open(t, &err));
}

/* Checkpoints from..to, a row each, whose number is the offset; durable and not committed. */
static void leave(sink_case *t, int from, int to) {
    for (int i = from; i <= to; i++) {
        char line[64];
        char offset[16];
        int64_t number;
        (void)snprintf(line, sizeof line, "{\"id\":%d,\"day\":1}\n", i);
        (void)snprintf(offset, sizeof offset, "%d", i);
        assert_ok(sink_case_write(t, line, NULL, &err));
        assert_ok(sink_precommit(t->sink, offset, &number, &err));
    }
}

static void lose(sink_case *t, int checkpoint, int epoch) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/checkpoint-%012d-%08d", t->state_dir, checkpoint, epoch);
    assert_ok(store_remove(t->c.catalog->store, str_of(path), &err));
}

static void ends_with(sink_case *t, int n) {
    char lines[512];
    char offset[16];
    size_t len = 0;
    tarn_buf text;
    bool has = false;
    lines[0] = '\0';
    for (int i = 1; i <= n; i++) {
        len += (size_t)snprintf(lines + len, sizeof lines - len, "{\"id\":%d,\"day\":1}\n", i);
    }
    sink_case_rows_are(t, lines);
    buf_init(&text, t->c.env, 0);
    assert_ok(sink_read_offsets(t->sink, &text, &has, &err));
    (void)snprintf(offset, sizeof offset, "%d", n);
    assert_int_equal(has, n > 0);
    if (n > 0) {
        assert_true(str_is(buf_str(&text), offset));
    }
    buf_release(&text);
}

static void test_lost(void **state) {
    (void)state;
    for (case_kind kind = 0; kind < CASE_KINDS; kind++) {
        for (int lost = 2; lost <= 5; lost++) { /* 1 is committed */
            tarn_env *env = test_env();
            sink_case t;
            start(&t, env, kind);
            leave(&t, 1, 1);
            assert_ok(sink_case_commit(&t, 1, &err));
            leave(&t, 2, 5);
            sink_case_close(&t);
            lose(&t, lost, 1);
            assert_ok(sink_case_open(&t, &err));
            ends_with(&t, lost - 1);
            assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
            case_check_files(&t.c, 1); /* the lost one's, which nothing tells of */
            leave(&t, lost, 6);
            assert_ok(sink_case_commit(&t, INT64_MAX, &err));
            ends_with(&t, 6);
            sink_case_close(&t);
            assert_ok(sink_case_open(&t, &err));
            ends_with(&t, 6);
            sink_case_done(&t);
            test_env_done(env);
        }
    }
}

/* The older job made two durable that the newer one never saw, and the newer one has the number of
 * the first. */
static void test_two_jobs(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case other;
    char name[2][300];
    tarn_buf kept[2];
    start(&t, env, CASE_SQLITE_MEMORY);
    leave(&t, 1, 3);
    for (int i = 0; i < 2; i++) {
        buf_init(&kept[i], env, 0);
        (void)snprintf(name[i], sizeof name[i], "%s/checkpoint-%012d-00000001", t.state_dir, 2 + i);
        assert_ok(store_get(t.c.catalog->store, str_of(name[i]), 1 << 20, &kept[i], &err));
        lose(&t, 2 + i, 1);
    }
    other = t;
    other.sink = NULL;
    assert_ok(sink_case_open(&other, &err)); /* sees and commits the first */
    ends_with(&other, 1);
    leave(&other, 2, 2);
    sink_case_close(&other);
    sink_case_close(&t);
    for (int i = 0; i < 2; i++) {
        assert_ok(
            store_put(t.c.catalog->store, str_of(name[i]), STORE_CREATE, buf_str(&kept[i]), &err));
        buf_release(&kept[i]);
    }
    assert_ok(sink_case_open(&t, &err));
    ends_with(&t, 2);
    assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
    case_check_files(&t.c, 0);
    sink_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_two_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
