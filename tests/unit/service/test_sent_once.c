/* Goal: where small files are merged before the commit, a file that the table names is never
 * removed and never there twice: one that is sent again under another id is refused by name, and
 * what cannot be proven to be new is left as it is.
 * Method: the leader's work on files that the table has, had, or merged away, that come twice, by
 * other spellings, from other servers, while the swap is tried; clocks, histories and manifests
 * that leave it open whether a file is new. */
#include "unit/service/compact_case.h"

#include "iceberg/change.h"

typedef struct world {
    atomic_llong now_us; /* merges on the pool look at it */
    int64_t jump_us;     /* what each swap takes */
    compact_case g;
} world;

static int64_t tell_time(void *ctx) {
    return ((world *)ctx)->now_us++;
}

static void swap_slowly(void *ctx) {
    world *w = ctx;
    w->now_us += w->jump_us;
}

/* A table in memory, its clock the test's own. */
static tarn_env *world_open(world *w) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env;
    memset(w, 0, sizeof *w);
    w->now_us = INT64_C(1700000000000000);
    options.clock_us = tell_time;
    options.ctx = w;
    assert_ok(tarn_env_new(&options, &env, &err));
    compact_open_on(&w->g, env, CASE_SQLITE_MEMORY, 2, compact_policy_on);
    return env;
}

static void world_done(world *w, tarn_env *env) {
    compact_close(&w->g);
    test_env_done(env);
}

/* As a server that has just begun knows it: nothing. */
static void forget_all(compact_case *g) {
    commit_index_release(&g->index);
    commit_index_init(&g->index, g->c.env);
    file_index_release(&g->files);
    file_index_init(&g->files, g->c.env);
    table_version_release(g->group.known);
    g->group.known = NULL;
}

typedef void (*story)(compact_case *g);

static void on_tables(story tell) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        compact_case g;
        tarn_env *env = test_env();
        compact_open_on(&g, env, (case_kind)kind, 2, compact_policy_on);
        tell(&g);
        compact_close(&g);
        test_env_done(env);
    }
}

static void run(compact_case *g) {
    compact_let_go(g);
    group_run(&g->group, g->jobs);
}

static void check_refused(compact_case *g, int i, const char *why) {
    tarn_str path = g->requests[i].added[0].path;
    char name[512];
    (void)snprintf(name, sizeof name, "%.*s", (int)path.len, path.data);
    assert_int_equal(g->jobs[i].code, TARN_INVALID);
    if (strstr(g->jobs[i].err.message, name) == NULL ||
        strstr(g->jobs[i].err.message, why) == NULL) {
        fail_msg("%s", g->jobs[i].err.message);
    }
}

static void check_taken(compact_case *g, int first, int end) {
    for (int i = first; i < end; i++) {
        if (g->jobs[i].code != TARN_OK) {
            fail_msg("job %d: %s", i, g->jobs[i].err.message);
        }
    }
}

static int is_there(compact_case *g, int i) {
    return store_exists(g->c.catalog->store, g->written[i].files[0].path);
}

/* Job i's file, committed by somebody who asks no service. */
static int64_t commit_beside(compact_case *g, int i, const char *branch) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    commit_request request = commit_of(COMMIT_FAST_APPEND, g->written[i].files, 1);
    request.branch = str_of(branch);
    assert_ok(commit_run(g->c.env, g->c.catalog, &g->c.ident, NULL, &request, &outcome, &err));
    table_version_release(outcome.version);
    return outcome.snapshot_id;
}

static void apply(compact_case *g, tarn_change *change) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_outcome_kind outcome;
    tarn_table_version *version = case_load(&g->c);
    const tarn_change_set set = {0, NULL, 1, change};
    assert_ok(catalog_commit(g->c.catalog, &g->c.ident, version, &set, &outcome, NULL, &err));
    table_version_release(version);
}

/* ---- what the table has ---- */

/* Whoever committed it, and also where the service begins only now. */
static void tell_in_table(compact_case *g) {
    compact_make_jobs(g, 6);
    (void)commit_beside(g, 2, NULL);
    run(g);
    check_refused(g, 2, "is in the table already");
    check_taken(g, 0, 2);
    check_taken(g, 3, 6);
    compact_check(g, 6, 0, 3);
    assert_true(is_there(g, 2));
    assert_int_equal(compact_originals(g, 6), 1);
    case_check_files(&g->c, 0);
}

static void test_once_in_table(void **state) {
    (void)state;
    on_tables(tell_in_table);
}

/* It comes into the table while the swap is tried: seen by the next round. */
static void name_second(void *ctx) {
    compact_case *g = ctx;
    if (g->rivals > 0) {
        g->rivals--;
        (void)commit_beside(g, 2, NULL);
    }
}

static void tell_meanwhile(compact_case *g) {
    compact_make_jobs(g, 6);
    g->group.known = case_load(&g->c);
    g->proxy.before = name_second;
    g->rivals = 1;
    run(g);
    check_refused(g, 2, "is in the table already");
    check_taken(g, 3, 6);
    compact_check(g, 6, 0, -1);
    assert_true(is_there(g, 2));
    case_check_files(&g->c, 2); /* companions of what could not be merged: committed as they are */
}

static void test_once_meanwhile(void **state) {
    (void)state;
    on_tables(tell_meanwhile);
}

/* On a branch or in a snapshot that is no part of this branch: taken, as without the policy, but
 * not merged, since it is named there. */
static void tell_elsewhere(compact_case *g) {
    compact_make_jobs(g, 4);
    (void)commit_beside(g, 3, NULL);
    int64_t kept = commit_beside(g, 0, NULL);
    (void)commit_beside(g, 2, NULL);
    tarn_change back = {.kind = CHANGE_SET_SNAPSHOT_REF};
    back.ref = (tarn_ref){.name = STR("main"),
                          .snapshot_id = kept,
                          .max_ref_age_ms = -1,
                          .max_snapshot_age_ms = -1,
                          .min_snapshots_to_keep = -1};
    apply(g, &back);
    run(g);
    check_refused(g, 0, "is in the table already");
    check_refused(g, 3, "is in the table already");
    check_taken(g, 1, 3);
    compact_check(g, 4, 0, 4);
    assert_int_equal(compact_originals(g, 4), 4);
    case_check_files(&g->c, 0); /* what the snapshot that was rolled back names is there */
}

static void test_once_elsewhere(void **state) {
    (void)state;
    on_tables(tell_elsewhere);
}

/* Another branch gets it while the swap is tried: it is committed here, too, but as it is. */
static void name_on_branch(void *ctx) {
    compact_case *g = ctx;
    if (g->rivals > 0) {
        g->rivals--;
        (void)commit_beside(g, 2, "other");
    }
}

static void tell_branch(compact_case *g) {
    compact_make_jobs(g, 6);
    g->group.known = case_load(&g->c);
    g->proxy.before = name_on_branch;
    g->rivals = 1;
    run(g);
    check_taken(g, 0, 6);
    compact_check(g, 6, 0, 4);
    assert_int_equal(compact_originals(g, 6), 3);
    case_check_files(&g->c, 0);
}

static void test_once_branch(void **state) {
    (void)state;
    on_tables(tell_branch);
}

/* A client's own snapshot of the same round names it, which no look at the base can tell. */
static tarn_code add_own(commit_job *job, written_files *files, const tarn_metadata *base,
                         tarn_change_set *out, tarn_error *err) {
    (void)files;
    return commit_maker_attempt(job->ctx, base, out, err);
}

static void tell_own_snapshot(compact_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    commit_maker *maker;
    compact_make_jobs(g, 6);
    const commit_request request = commit_of(COMMIT_FAST_APPEND, g->written[0].files, 1);
    assert_ok(commit_maker_new(g->c.env, g->c.catalog->store, &request, &maker, &err));
    commit_job own = {.make = add_own, .ctx = maker, .next = g->jobs};
    group_run(&g->group, &own);
    assert_int_equal(own.code, TARN_OK);
    check_taken(g, 0, 6);
    assert_true(is_there(g, 0));
    assert_int_equal(compact_originals(g, 6), 1);
    case_check_files(&g->c, 0);
    commit_maker_end(maker, TARN_COMMITTED);
    table_version_release(own.version);
}

static void test_once_own_snapshot(void **state) {
    (void)state;
    on_tables(tell_own_snapshot);
}

/* ---- what was merged away ---- */

static void test_once_merged(void **state) {
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        tarn_error err = TARN_ERROR_INIT;
        compact_case g;
        tarn_env *env = test_env();
        tarn_buf bytes;
        compact_open_on(&g, env, CASE_SQLITE_MEMORY, 2, compact_policy_on);
        compact_make_jobs(&g, 4);
        tarn_str path = g.written[0].files[0].path;
        buf_init(&bytes, env, 0);
        assert_ok(store_get(g.c.catalog->store, path, SIZE_MAX, &bytes, &err));
        run(&g);
        check_taken(&g, 0, 4);
        assert_int_equal(compact_originals(&g, 4), 0);
        /* as another server sees it that has not removed it yet */
        assert_ok(store_put(g.c.catalog->store, path, STORE_CREATE, buf_str(&bytes), &err));
        if (begun == 1) {
            forget_all(&g);
        }
        g.ids[0][0] = 'x';
        g.jobs[0].next = NULL;
        for (int share = 0; share < 2; share++) {
            g.requests[0].share = share;
            run(&g);
            check_refused(&g, 0, "merged into others");
        }
        compact_check(&g, 4, 0, 2);
        buf_release(&bytes);
        compact_close(&g);
        test_env_done(env);
    }
}

/* Its id tells whose it is, though the service knows the id no more. */
static void tell_known_id(compact_case *g) {
    compact_make_jobs(g, 4);
    int64_t by = commit_beside(g, 1, NULL);
    g->jobs[0].next = &g->jobs[2];
    g->jobs[2].next = &g->jobs[3];
    g->jobs[1].next = NULL;
    run(g);
    check_taken(g, 2, 4);
    assert_true(g->jobs[2].snapshot_id != by);
    commit_index_release(&g->index);
    commit_index_init(&g->index, g->c.env);
    memcpy(g->index.uuid, g->group.known->metadata->table_uuid.data,
           g->group.known->metadata->table_uuid.len);
    g->index.newest = g->jobs[2].snapshot_id; /* it was read, and forgotten */
    int64_t before = g->jobs[2].snapshot_id;
    g->jobs[2].next = NULL;
    compact_let_go(g);
    group_run(&g->group, &g->jobs[2]);
    check_taken(g, 2, 3);
    assert_true(g->jobs[2].repeated && g->jobs[2].snapshot_id == before);
    assert_non_null(g->jobs[2].version);
    g->jobs[1].next = NULL;
    group_run(&g->group, &g->jobs[1]);
    check_refused(g, 1, "is in the table already");
    compact_check(g, 4, 0, 3);
}

static void test_once_known_id(void **state) {
    (void)state;
    on_tables(tell_known_id);
}

/* ---- what comes twice ---- */

/* In one unit, in two of one group, in one request: the first is taken. */
static void tell_twice(compact_case *g) {
    compact_make_jobs(g, 6);
    g->requests[2].added = g->written[0].files;
    const tarn_file both[] = {g->written[3].files[0], g->written[3].files[0]};
    g->requests[3].added = both;
    g->requests[3].n_added = 2;
    g->requests[4].added = g->written[1].files;
    g->requests[4].share = false;
    run(g);
    check_refused(g, 2, "is sent twice");
    check_refused(g, 3, "is sent twice");
    check_refused(g, 4, "is sent twice");
    check_taken(g, 0, 2);
    check_taken(g, 5, 6);
    case_check_rows(&g->c, NULL,
                    "{\"p\":0,\"v\":\"r0\"}\n{\"p\":1,\"v\":\"r1\"}\n{\"p\":1,\"v\":\"r5\"}\n");
    case_check_files(&g->c, 3); /* of those that were refused, and sent nothing else */
}

static void test_once_twice(void **state) {
    (void)state;
    on_tables(tell_twice);
}

static void test_once_spelled(void **state) {
    (void)state;
    compact_case g;
    tarn_env *env = test_env();
    compact_open_on(&g, env, CASE_SQLITE_FILE, 2, compact_policy_on);
    compact_make_jobs(&g, 4);
    (void)commit_beside(&g, 2, NULL);
    tarn_file other[2] = {g.written[2].files[0], g.written[1].files[0]};
    other[0].path =
        str_of(arena_printf(&g.c.arena, "file://%.*s", STR_ARG(g.written[2].files[0].path)));
    other[1].path =
        str_of(arena_printf(&g.c.arena, "file:%.*s", STR_ARG(g.written[1].files[0].path)));
    g.requests[2].added = &other[0];
    g.requests[3].added = &other[1];
    run(&g);
    check_refused(&g, 2, "is in the table already");
    check_refused(&g, 3, "is sent twice");
    check_taken(&g, 0, 2);
    assert_true(is_there(&g, 2));
    compact_close(&g);
    test_env_done(env);
    assert_true(file_index_hash(STR("s3://b/k")) == file_index_hash(STR("s3a://b/./k")));
    assert_true(file_index_hash(STR("s3://b/k")) != file_index_hash(STR("s3://b/kk")));
    assert_true(file_index_hash(STR("/a/bc")) != file_index_hash(STR("/ab/c")));
}

/* Without the policy nothing is looked at: the table has what it is given. */
static void test_once_unasked(void **state) {
    (void)state;
    compact_case g;
    tarn_env *env = test_env();
    compact_open_on(&g, env, CASE_SQLITE_MEMORY, 2, NULL);
    compact_make_jobs(&g, 4);
    g.requests[2].added = g.written[0].files;
    run(&g);
    check_taken(&g, 0, 4);
    assert_int_equal(compact_originals(&g, 4), 4);
    assert_false(g.files.begun);
    compact_close(&g);
    test_env_done(env);
}

/* ---- what cannot be proven ---- */

static void run_with(world *w, int64_t later_us, int merged, int orphans) {
    compact_case *g = &w->g;
    forget_all(g);
    w->now_us += later_us;
    int64_t before = g->counters.merged_files[0];
    compact_let_go(g);
    compact_make_jobs(g, 4);
    for (int i = 0; i < 4; i++) {
        static int n;
        (void)snprintf(g->ids[i], sizeof g->ids[i], "o%d", n++);
    }
    run(g);
    check_taken(g, 0, 4);
    assert_int_equal(g->counters.merged_files[0] - before, merged);
    assert_int_equal(compact_originals(g, 4), 4 - merged);
    case_check_files(&g->c, orphans);
}

/* The history was cut: what may be older than that is not merged. */
static void test_once_history(void **state) {
    (void)state;
    world w;
    tarn_env *env = world_open(&w);
    case_append(&w.g.c, "{\"p\":7,\"v\":\"old\"}\n");
    run_with(&w, 0, 4, 0);
    int64_t first = w.g.group.known->metadata->snapshots[0]->snapshot_id;
    case_append(&w.g.c, "{\"p\":7,\"v\":\"new\"}\n");
    tarn_change expire = {.kind = CHANGE_REMOVE_SNAPSHOTS, .ids = &first, .n_ids = 1};
    apply(&w.g, &expire);
    tarn_table_version *version = case_load(&w.g.c);
    w.now_us = version->metadata->snapshots[0]->timestamp_ms * 1000;
    table_version_release(version);
    run_with(&w, 30000000, 0, 1); /* its list is left; the clocks may differ */
    run_with(&w, 60000000, 4, 1);
    world_done(&w, env);
}

/* Nor what is from the future, or a history that is too long to be read. */
static void test_once_long_ago(void **state) {
    (void)state;
    world w;
    tarn_env *env = world_open(&w);
    case_append(&w.g.c, "{\"p\":7,\"v\":\"old\"}\n");
    w.now_us += INT64_C(1000) * FILE_INDEX_BACK_MS + 1000000;
    run_with(&w, 0, 4, 0);
    w.now_us += INT64_C(1000) * FILE_INDEX_BACK_MS + 1000000;
    forget_all(&w.g);
    compact_let_go(&w.g);
    compact_make_jobs(&w.g, 4);
    for (int i = 0; i < 4; i++) {
        w.g.ids[i][0] = 'f';
    }
    w.now_us -= 70000000; /* they were written when the server's clock was ahead */
    run(&w.g);
    check_taken(&w.g, 0, 4);
    assert_int_equal(compact_originals(&w.g, 4), 4);
    world_done(&w, env);
}

/* A manifest is gone: its snapshot's files are not known, and commits go on. */
static void test_once_unread(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    const tarn_manifest *manifests;
    int32_t n;
    world w;
    tarn_env *env = world_open(&w);
    case_append(&w.g.c, "{\"p\":7,\"v\":\"old\"}\n");
    compact_make_jobs(&w.g, 4);
    tarn_table_version *version = case_load(&w.g.c);
    assert_ok(snapshot_manifests(&w.g.c.arena, w.g.c.catalog->store,
                                 version->metadata->snapshots[0], &manifests, &n, &err));
    table_version_release(version);
    assert_ok(store_remove(w.g.c.catalog->store, manifests[0].path, &err));
    run(&w.g);
    check_taken(&w.g, 0, 4);
    assert_int_equal(w.g.counters.merged_files[0], 0);
    assert_int_equal(compact_originals(&w.g, 4), 4);
    world_done(&w, env);
}

/* Who was held up after the swap removes nothing: others may know nothing of it any more. */
static void test_once_late(void **state) {
    (void)state;
    world w;
    tarn_env *env = world_open(&w);
    compact_make_jobs(&w.g, 4);
    w.g.proxy.before = swap_slowly;
    w.g.proxy.ctx = &w;
    w.jump_us = COMPACT_REMOVE_US + 1;
    run(&w.g);
    check_taken(&w.g, 0, 4);
    compact_check(&w.g, 4, 0, 2);
    assert_int_equal(compact_originals(&w.g, 4), 4);
    w.g.jobs[0].next = NULL;
    w.g.ids[0][0] = 'x';
    run(&w.g);
    check_refused(&w.g, 0, "merged into others");
    world_done(&w, env);
}

/* A file that was there when it was sent, and is there no more. */
static void test_once_gone(void **state) {
    (void)state;
    compact_case g;
    tarn_env *env = test_env();
    compact_open_on(&g, env, CASE_DIR_FILE, 2, compact_policy_on);
    compact_make_jobs(&g, 4);
    commit_remove(&g.c, &g.written[2].files[0]);
    run(&g);
    assert_int_equal(g.jobs[2].code, TARN_INVALID);
    check_taken(&g, 0, 2);
    check_taken(&g, 3, 4);
    case_check_rows(&g.c, NULL,
                    "{\"p\":0,\"v\":\"r0\"}\n{\"p\":1,\"v\":\"r1\"}\n{\"p\":1,\"v\":\"r3\"}\n");
    compact_close(&g);
    test_env_done(env);
}

/* Memory is bounded: what is forgotten is not new. */
static void test_once_forgotten(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    world w;
    tarn_env *env = world_open(&w);
    tarn_arena arena;
    const int32_t n = FILE_INDEX_PATHS;
    tarn_file *files;
    commit_outcome outcome;
    compact_make_jobs(&w.g, 1);
    arena_init(&arena, env);
    files = ARENA_ARRAY(&arena, tarn_file, (size_t)n);
    for (int round = 0; round < 4; round++) {
        for (int32_t i = 0; i < n; i++) {
            files[i] = w.g.written[0].files[0];
            files[i].path = str_of(arena_printf(&arena, "/f/%d/%d", round, i));
        }
        commit_request request = commit_of(COMMIT_FAST_APPEND, files, n);
        assert_ok(commit_run(env, w.g.c.catalog, &w.g.c.ident, NULL, &request, &outcome, &err));
        assert_ok(
            file_index_follow(&w.g.files, w.g.c.catalog->store, outcome.version->metadata, &err));
        assert_true(file_index_has(&w.g.files, STR("/f/0/5"), NULL) == (round < 2));
        assert_true(w.g.files.since_ms == INT64_MIN || round >= 2);
        assert_true(
            file_index_has(&w.g.files, str_of(arena_printf(&arena, "/f/%d/5", round)), NULL));
        bool fresh;
        assert_ok(file_index_fresh(&w.g.files, w.g.c.catalog->store, w.g.written[0].files[0].path,
                                   &fresh, &err));
        assert_int_equal(fresh, round < 2);
        table_version_release(outcome.version);
    }
    arena_release(&arena);
    world_done(&w, env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_in_table),  cmocka_unit_test(test_once_meanwhile),
        cmocka_unit_test(test_once_elsewhere), cmocka_unit_test(test_once_merged),
        cmocka_unit_test(test_once_known_id),  cmocka_unit_test(test_once_twice),
        cmocka_unit_test(test_once_spelled),   cmocka_unit_test(test_once_unasked),
        cmocka_unit_test(test_once_history),   cmocka_unit_test(test_once_long_ago),
        cmocka_unit_test(test_once_unread),    cmocka_unit_test(test_once_late),
        cmocka_unit_test(test_once_branch),    cmocka_unit_test(test_once_own_snapshot),
        cmocka_unit_test(test_once_gone),      cmocka_unit_test(test_once_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
