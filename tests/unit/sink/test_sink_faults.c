/* Goal: a stream that meets a clock that runs backwards, a branch that was rolled back, a durable
 * checkpoint whose deletes no longer fit, and calls of the store that fail while files roll (B64)
 * loses and doubles nothing, and says what it met. Method: the room alone on a table_case; after a
 * failure the sink is opened again and what its offsets say was not committed is written again. */
#include "sink_case.h"

#include "write/commit/commit.h"

static tarn_error err;

#define ROW1 "{\"id\":1,\"v\":1}\n"
#define ROW2 "{\"id\":2,\"v\":2}\n"
#define ROW3 "{\"id\":3,\"v\":3}\n"
#define ROW4 "{\"id\":4,\"v\":4}\n"

static const tarn_str KEY[] = {{"id", 2}};

static void start(sink_case *t, tarn_env *env, case_kind kind, int32_t version,
                  const char *deletes) {
    sink_case_init(t, env, kind);
    case_table(&t->c, version, "id int not null, v int", NULL, NULL);
    if (deletes != NULL) {
        t->options.upsert = true;
        t->options.key = KEY;
        t->options.n_key = 1;
        t->options.deletes = str_of(deletes);
    }
    assert_ok(sink_case_open(t, &err));
}

static void checkpoint(sink_case *t, const char *rows, const char *offsets) {
    assert_ok(sink_case_write(t, rows, NULL, &err));
    assert_ok(sink_case_checkpoint(t, offsets, &err));
}

static int64_t head(sink_case *t) {
    tarn_table_version *version = case_load(&t->c);
    int64_t id = version->metadata->current_snapshot_id;
    table_version_release(version);
    return id;
}

static tarn_code set_main(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                          tarn_change_set *out, tarn_error *e) {
    const int64_t *id = ctx;
    tarn_change *change = ARENA_NEW(arena, tarn_change);
    if (change == NULL) {
        return err_nomem(e);
    }
    change->kind = CHANGE_SET_SNAPSHOT_REF;
    change->ref = *metadata_ref(base, STR(TARN_MAIN_BRANCH));
    change->ref.snapshot_id = *id;
    memset(out, 0, sizeof *out);
    out->changes = change;
    out->n_changes = 1;
    return TARN_OK;
}

static void move_main(sink_case *t, int64_t id) {
    commit_outcome outcome;
    assert_ok(commit_changes(t->c.env, t->c.catalog, &t->c.ident, set_main, &id, &outcome, &err));
    table_version_release(outcome.version);
}

/* ---- the clock ---- */

static int64_t falling_clock(void *ctx) {
    int64_t *now = ctx;
    return *now -= 60 * INT64_C(1000000);
}

static void run_clock(int32_t format_version, const char *deletes) {
    int64_t now = INT64_C(1800000000000000);
    tarn_env_options options;
    tarn_env *env = NULL;
    sink_case t;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.clock_us = falling_clock;
    options.ctx = &now;
    assert_ok(tarn_env_new(&options, &env, &err));
    start(&t, env, CASE_SQLITE_MEMORY, format_version, deletes);
    checkpoint(&t, ROW1, "one");
    int64_t first = head(&t);
    checkpoint(&t, ROW2, "two");
    int64_t second = head(&t);
    move_main(&t, first); /* a move of a ref has a time too */
    move_main(&t, second);
    checkpoint(&t, ROW1 ROW3, "three");
    tarn_table_version *version = case_load(&t.c);
    const tarn_metadata *m = version->metadata;
    assert_int_equal(m->n_snapshots, 3);
    for (int32_t i = 1; i < m->n_snapshots; i++) {
        assert_true(m->snapshots[i]->timestamp_ms > m->snapshots[i - 1]->timestamp_ms);
    }
    assert_int_equal(m->n_snapshot_log, 5);
    for (int32_t i = 1; i < m->n_snapshot_log; i++) {
        assert_true(m->snapshot_log[i].timestamp_ms >= m->snapshot_log[i - 1].timestamp_ms);
    }
    for (int32_t i = 1; i < m->n_metadata_log; i++) {
        assert_true(m->metadata_log[i].timestamp_ms >= m->metadata_log[i - 1].timestamp_ms);
    }
    assert_true(m->last_updated_ms >= m->snapshot_log[4].timestamp_ms);
    table_version_release(version);
    sink_case_close(&t);
    assert_ok(sink_case_open(&t, &err));
    sink_case_rows_are(&t, ROW1 ROW2 ROW3);
    sink_case_done(&t);
    test_env_done(env);
}

static void test_clock(void **state) {
    (void)state;
    run_clock(2, "equality");
    run_clock(2, "position");
    run_clock(3, "vector");
}

/* ---- the branch ---- */

static void test_rolled_back(void **state) {
    (void)state;
    static const char *const kinds[] = {NULL, "equality", "position"};
    for (int k = 0; k < 3; k++) {
        tarn_env *env = test_env();
        sink_case t;
        start(&t, env, CASE_SQLITE_MEMORY, 2, kinds[k]);
        checkpoint(&t, ROW1, "one");
        int64_t first = head(&t);
        checkpoint(&t, ROW2, "two");
        int64_t second = head(&t);
        move_main(&t, first);
        assert_ok(sink_case_write(&t, ROW3, NULL, &err));
        assert_code(sink_case_checkpoint(&t, "three", &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "no longer holds checkpoint 2"));
        assert_non_null(strstr(err.message, "checkpoint 1"));
        sink_case_close(&t);
        assert_code(sink_case_open(&t, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "no longer holds checkpoint 2"));
        sink_case_rows_are(&t, ROW1);
        if (k == 0) { /* what was durable is committed once the branch is where it was */
            move_main(&t, second);
            assert_ok(sink_case_open(&t, &err));
            sink_case_rows_are(&t, ROW1 ROW2 ROW3);
        } else {
            t.options.accept_rollback = true;
            assert_ok(sink_case_open(&t, &err));
            checkpoint(&t, ROW4, "four");
            t.options.accept_rollback = false;
            sink_case_close(&t);
            assert_ok(sink_case_open(&t, &err));
            assert_true(str_is(sink_offsets(t.sink), "four"));
        }
        sink_case_done(&t);
        test_env_done(env);
    }
}

/* ---- a checkpoint that fits no more ---- */

static void remove_all_files(sink_case *t) {
    tarn_arena arena;
    commit_request request;
    commit_outcome outcome;
    arena_init(&arena, t->c.env);
    memset(&request, 0, sizeof request);
    request.kind = COMMIT_DELETE_FILES;
    tarn_table_version *version = case_load(&t->c);
    tarn_plan *plan = NULL;
    scan_options options = case_scan_options();
    options.metadata = version->metadata;
    assert_ok(plan_new(t->c.env, t->c.catalog->store, &options, &plan, &err));
    tarn_entry *removed = ARENA_ARRAY(&arena, tarn_entry, (size_t)plan->n_tasks + 1);
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        removed[i].file = plan->tasks[i].file;
        removed[i].sequence_number = plan->tasks[i].sequence_number;
    }
    request.removed = removed;
    request.n_removed = (int32_t)plan->n_tasks;
    request.from_snapshot_id = version->metadata->current_snapshot_id;
    assert_ok(commit_run(t->c.env, t->c.catalog, &t->c.ident, NULL, &request, &outcome, &err));
    table_version_release(outcome.version);
    plan_free(plan);
    table_version_release(version);
    arena_release(&arena);
}

static void test_unfit(void **state) {
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        tarn_env *env = test_env();
        sink_case t;
        int64_t n;
        start(&t, env, CASE_SQLITE_MEMORY, vectors != 0 ? 3 : 2,
              vectors != 0 ? "vector" : "position");
        checkpoint(&t, ROW1 ROW2, "one");
        assert_ok(sink_case_write(&t, "{\"id\":1,\"v\":9}\n", NULL, &err));
        assert_ok(sink_precommit(t.sink, "two", &n, &err));
        sink_case_close(&t); /* killed; then somebody removes the files */
        remove_all_files(&t);
        assert_ok(sink_case_open(&t, &err));
        assert_true(str_is(sink_offsets(t.sink), "one"));
        assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
        checkpoint(&t, "{\"id\":1,\"v\":9}\n", "two");
        sink_case_rows_are(&t, "{\"id\":1,\"v\":9}\n");
        assert_ok(sink_case_write(&t, ROW1, NULL, &err));
        remove_all_files(&t); /* while it runs */
        assert_code(sink_case_checkpoint(&t, "three", &err), TARN_CONFLICT);
        assert_code(sink_case_write(&t, ROW3, NULL, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "opened again"));
        sink_case_close(&t);
        assert_ok(sink_case_open(&t, &err));
        assert_true(str_is(sink_offsets(t.sink), "two"));
        checkpoint(&t, ROW1, "three");
        sink_case_rows_are(&t, ROW1);
        case_check_files(&t.c, 0);
        sink_case_done(&t);
        test_env_done(env);
    }
}

/* ---- calls that fail while files roll (B64) ---- */

#define BATCHES 4

static void put_batch(char *lines, int batch) {
    char *at = lines;
    for (int i = 0; i < 40; i++) {
        at += sprintf(at, "{\"id\":%d,\"v\":%d}\n", batch * 20 + i, batch * 1000 + i);
    }
}

/* Batches from `from` on, with a checkpoint after every second one; false: something failed. */
static bool feed(sink_case *t, int from) {
    char lines[4096];
    char offsets[16];
    bool ok = true;
    for (int batch = from; batch < BATCHES && ok; batch++) {
        put_batch(lines, batch);
        ok = sink_case_write(t, lines, NULL, &err) == TARN_OK;
        if (!ok) { /* either nothing of it was taken, or the sink takes no more */
            ok = sink_case_write(t, lines, NULL, &err) == TARN_OK;
            assert_true(ok || strstr(err.message, "opened again") != NULL);
        }
        if (!ok) {
            int64_t n;
            assert_true(sink_precommit(t->sink, "again", &n, &err) != TARN_OK);
        } else if (batch % 2 == 1) {
            (void)snprintf(offsets, sizeof offsets, "%d", batch + 1);
            ok = sink_case_checkpoint(t, offsets, &err) == TARN_OK;
        }
    }
    return ok;
}

static int at_offset(const sink_case *t) {
    tarn_str offsets = sink_offsets(t->sink);
    return offsets.data != NULL ? offsets.data[0] - '0' : 0;
}

/* Ids 20 * b ... 20 * b + 39 of batch b: with keys the later batch's row counts. */
static void check_rows(sink_case *t, bool keyed) {
    static char want[1 << 15];
    char lines[4096];
    want[0] = '\0';
    if (keyed) {
        for (int id = 0; id < 20 * (BATCHES - 1) + 40; id++) {
            int batch = id / 20 < BATCHES ? id / 20 : BATCHES - 1;
            (void)sprintf(want + strlen(want), "{\"id\":%d,\"v\":%d}\n", id,
                          batch * 1000 + id - batch * 20);
        }
    } else {
        for (int batch = 0; batch < BATCHES; batch++) {
            put_batch(lines, batch);
            strcat(want, lines);
        }
    }
    sink_case_rows_are(t, want);
}

/* Whether the k-th call was there to fail. */
static bool strike(int64_t k, bool after, const char *deletes) {
    static const char *const small[] = {"write.target-file-size-bytes", "300", NULL};
    tarn_env *env = test_env();
    sink_case t;
    sink_case_init(&t, env, CASE_SQLITE_MEMORY);
    case_table(&t.c, 2, "id int not null, v int", NULL, small);
    if (deletes != NULL) {
        t.options.upsert = true;
        t.options.key = KEY;
        t.options.n_key = 1;
        t.options.deletes = str_of(deletes);
    }
    assert_ok(sink_case_open(&t, &err));
    t.c.plan.fail_at = k;
    t.c.plan.after = after;
    t.c.plan.struck = NULL;
    bool ok = feed(&t, 0);
    bool struck = t.c.plan.struck != NULL;
    t.c.plan.fail_at = 0;
    sink_case_close(&t);
    for (int tries = 0; !ok || tries == 0; tries++) { /* opened again, with nothing failing now */
        assert_true(tries < 3);
        assert_ok(sink_case_open(&t, &err));
        ok = feed(&t, at_offset(&t));
        sink_case_close(&t);
    }
    assert_ok(sink_case_open(&t, &err));
    assert_int_equal(at_offset(&t), BATCHES);
    check_rows(&t, deletes != NULL);
    case_check_files(&t.c, 1000); /* what the table names is there, and whole */
    sink_case_done(&t);
    test_env_done(env);
    return struck;
}

static void test_rolling(void **state) {
    (void)state;
    static const char *const kinds[] = {NULL, "equality", "position"};
    for (int k = 0; k < 3; k++) {
        for (int after = 0; after < 2; after++) {
            int64_t step = test_every() ? 1 : 3;
            int64_t at = 1 + (test_every() ? 0 : k);
            while (strike(at, after != 0, kinds[k])) {
                at += step;
            }
            assert_true(at > 30); /* files rolled */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_rolled_back),
        cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_rolling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
