/* Goal: while the catalog is away a sink waits, or, asked not to, ends with every checkpoint in its
 * state; and what it counts is what is in the table. Method: a catalog whose loads and commits fail
 * as of one that is away until a test lets it back; its answers to who asks while it waits; a
 * background over a committer of the test's own, whose second turn fails. */
#include "sink_case.h"

#include "sink/background.h"

#include <stdatomic.h>

static tarn_error err;

/* ---- a catalog that goes away ---- */

static const catalog_vtable *real;
static catalog_vtable away_vtable;
static atomic_bool away;
static atomic_int refused;

static tarn_code refuse(tarn_error *e) {
    atomic_fetch_add(&refused, 1);
    return err_set_away(e, err_set(e, TARN_IO, "nobody answered"));
}

static tarn_code away_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                           tarn_error *e) {
    return atomic_load(&away) ? refuse(e) : real->load(c, table, out, e);
}

static tarn_code away_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                             const tarn_change_set *set, tarn_outcome_kind *outcome,
                             tarn_table_version **out, tarn_error *e) {
    *outcome = TARN_NOT_COMMITTED;
    return atomic_load(&away) ? refuse(e) : real->commit(c, table, base, set, outcome, out, e);
}

typedef struct listener {
    atomic_int begins, ends, asked;
    atomic_bool enough; /* false is the answer from now on */
} listener;

static bool on_away(void *ctx, tarn_away_event event, int64_t ms, const char *why) {
    listener *l = ctx;
    assert_true(ms >= 0);
    assert_string_equal(why, event == TARN_AWAY_ENDS ? "" : "nobody answered");
    atomic_fetch_add(&l->begins, event == TARN_AWAY_BEGINS);
    atomic_fetch_add(&l->ends, event == TARN_AWAY_ENDS);
    atomic_fetch_add(&l->asked, 1);
    return !atomic_load(&l->enough);
}

static void start(sink_case *t, tarn_env *env, listener *l, int64_t timeout_ms) {
    sink_case_init(t, env, CASE_SQLITE_MEMORY);
    case_table(&t->c, 2, "id int not null", NULL, NULL);
    real = t->c.catalog->vt;
    away_vtable = *real;
    away_vtable.load = away_load;
    away_vtable.commit = away_commit;
    t->c.catalog->vt = &away_vtable;
    atomic_store(&away, false);
    memset(l, 0, sizeof *l);
    const catalog_patience patience = {timeout_ms, on_away, l};
    assert_ok(catalog_set_patience(t->c.catalog, &patience, &err));
    t->options.background = true;
    assert_ok(sink_case_open(t, &err));
}

static void push(sink_case *t, int id) {
    char line[32];
    char offset[16];
    (void)snprintf(line, sizeof line, "{\"id\":%d}\n", id);
    (void)snprintf(offset, sizeof offset, "%d", id);
    assert_ok(sink_case_write(t, line, NULL, &err));
    assert_ok(sink_push(t->sink, offset, &err));
}

static tarn_code flush(sink_case *t) {
    sink_progress progress;
    tarn_code code = sink_flush(t->sink, &progress, &err);
    table_version_release(progress.commit.version);
    return code;
}

static void wait_until(tarn_env *env, atomic_int *what, int least) {
    for (int i = 0; i < 2400 && atomic_load(what) < least; i++) {
        env_sleep_ms(env, 50);
    }
    assert_true(atomic_load(what) >= least);
}

static void test_waits(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    listener l;
    start(&t, env, &l, -1);
    push(&t, 1);
    assert_ok(flush(&t));
    atomic_store(&away, true);
    push(&t, 2);
    push(&t, 3);
    wait_until(env, &l.begins, 1);
    atomic_store(&away, false);
    assert_ok(flush(&t));
    assert_int_equal(atomic_load(&l.begins), 1);
    assert_int_equal(atomic_load(&l.ends), 1);
    assert_int_equal(sink_case_snapshots(&t), 3);
    sink_case_rows_are(&t, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    sink_case_done(&t);
    test_env_done(env);
}

/* The first checkpoint fails; those behind it are durable all the same, and the next job commits
 * all of them. */
static void test_enough(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_stats stats;
    listener l;
    start(&t, env, &l, -1);
    atomic_store(&away, true);
    push(&t, 1);
    wait_until(env, &l.asked, 1);
    push(&t, 2);
    push(&t, 3);
    atomic_store(&l.enough, true);
    assert_code(flush(&t), TARN_IO);
    assert_true(err_is_away(&err));
    assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 3);
    sink_stats_get(t.sink, &stats);
    assert_int_equal(stats.total.rows, 0);
    assert_int_equal(stats.commits.commits, 0);
    atomic_store(&away, false);
    sink_case_close(&t);
    assert_ok(sink_case_open(&t, &err));
    sink_stats_get(t.sink, &stats);
    assert_int_equal(stats.total.rows, 3);
    assert_int_equal(stats.total.data_files, 3);
    assert_int_equal(stats.commits.commits, 3);
    assert_int_equal(sink_case_snapshots(&t), 3);
    sink_case_rows_are(&t, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    sink_case_done(&t);
    test_env_done(env);
}

/* In calls of the caller's own, and with nobody to ask. */
static void test_time_is_up(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    listener l;
    tarn_table_version *version;
    start(&t, env, &l, -1);
    atomic_store(&away, true);
    const catalog_patience short_one = {.timeout_ms = 250};
    assert_ok(catalog_set_patience(t.c.catalog, &short_one, &err));
    int before = atomic_load(&refused);
    int64_t began = env_now_ms(env);
    assert_code(catalog_load(t.c.catalog, &t.c.ident, &version, &err), TARN_IO);
    assert_true(err_is_away(&err));
    assert_true(atomic_load(&refused) - before > 1);
    assert_true(env_now_ms(env) - began >= 200); /* its clock is the day's */
    assert_true(catalog_waited_ms(t.c.catalog) >= 200);
    assert_ok(catalog_set_patience(t.c.catalog, NULL, &err));
    before = atomic_load(&refused);
    assert_code(catalog_load(t.c.catalog, &t.c.ident, &version, &err), TARN_IO);
    assert_int_equal(atomic_load(&refused) - before, 1);
    assert_int_equal(atomic_load(&l.asked), 0);
    atomic_store(&away, false);
    sink_case_done(&t);
    test_env_done(env);
}

/* ---- what is counted ---- */

static void test_failed_turn(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    listener l;
    committer c;
    background b;
    background_result result;
    commit_outcome outcome;
    sink_state *st;
    start(&t, env, &l, -1);
    sink_case_close(&t);
    tarn_table_version *version = case_load(&t.c);
    tarn_str uuid = version->metadata->table_uuid;
    const sink_state_options so = {.store = t.c.catalog->store,
                                   .dir = str_of(t.state_dir),
                                   .table = t.c.ident.name,
                                   .table_uuid = uuid,
                                   .branch = STR("main")};
    assert_ok(sink_state_open(env, &so, &st, &err));
    const committer_options co = {.catalog = t.c.catalog,
                                  .ident = &t.c.ident,
                                  .branch = STR("main"),
                                  .append = COMMIT_FAST_APPEND,
                                  .table_uuid = uuid,
                                  .sink_id = sink_state_id(st),
                                  .state = st,
                                  .empty_every = 1};
    committer_init(&c, env, &co);
    assert_ok(committer_recover(&c, version, -1, &outcome, &err));
    table_version_release(outcome.version);
    assert_ok(background_init(&b, env, &c, &err));
    background_push(&b, sink_pending_new(env));
    background_wait(&b);
    background_take(&b, &result);
    table_version_release(result.outcome.version);
    assert_int_equal(result.code, TARN_OK);
    assert_int_equal(result.commits, 1);
    assert_int_equal(result.done, 1);
    t.c.plan.fail_at = 1; /* it can't be made durable */
    background_push(&b, sink_pending_new(env));
    background_wait(&b);
    t.c.plan.fail_at = 0;
    background_take(&b, &result);
    assert_int_equal(result.code, TARN_IO);
    assert_int_equal(result.commits, 0); /* the turn before made it */
    background_release(&b);
    committer_release(&c);
    sink_state_close(st);
    table_version_release(version);
    case_done(&t.c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_enough),
        cmocka_unit_test(test_time_is_up),
        cmocka_unit_test(test_failed_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
