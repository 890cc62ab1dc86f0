/* Goal: a group of commits is decided by one swap, each for itself, once each, and leaves no file
 * that the table does not name, whatever happens to the swap.
 * Method: the leader's work on lists of jobs over every catalog and store; a catalog in between
 * loses answers, refuses, or lets others commit first. */
#include "unit/write/commit/commit_case.h"

#include "service/group.h"
#include "service/rebase.h"

#define SCHEMA "p int, v string"
#define JOBS   6

typedef struct group_case {
    table_case c;
    proxy_catalog proxy;
    int rivals;
    int made;
    commit_index index;
    commit_group group;
    tarn_file files[JOBS];
    commit_request requests[JOBS];
    commit_job jobs[JOBS];
    char ids[JOBS][16];
} group_case;

static void rival_appends(void *ctx) {
    group_case *g = ctx;
    if (g->rivals > 0) {
        char name[32];
        g->rivals--;
        (void)snprintf(name, sizeof name, "rival%d", ++g->made);
        commit_append_file(&g->c, name, 100 + g->made);
    }
}

/* n appends of one file each, f0.. under the ids c0.., in one list. */
static void make_jobs(group_case *g, int n, bool share) {
    memset(g->jobs, 0, sizeof g->jobs);
    for (int i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%d", i);
        (void)snprintf(g->ids[i], sizeof g->ids[i], "c%d", i);
        g->files[i] = commit_file(&g->c, name, i, 10);
        g->requests[i] = commit_of(COMMIT_FAST_APPEND, &g->files[i], 1);
        g->requests[i].commit_id = g->ids[i];
        g->requests[i].share = share;
        g->jobs[i].request = &g->requests[i];
        g->jobs[i].next = i + 1 < n ? &g->jobs[i + 1] : NULL;
    }
}

static void let_go(group_case *g) {
    for (int i = 0; i < JOBS; i++) {
        table_version_release(g->jobs[i].version);
        g->jobs[i].version = NULL;
    }
}

static void forget(group_case *g) {
    table_version_release(g->group.known);
    g->group.known = NULL;
    commit_index_release(&g->index);
    commit_index_init(&g->index, g->c.env);
}

static void check_snapshots(group_case *g, int32_t n) {
    tarn_table_version *version = case_load(&g->c);
    assert_int_equal(version->metadata->n_snapshots, n);
    table_version_release(version);
}

typedef void (*story)(group_case *g);

static void on_tables_with(const char *const *properties, story tell) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 2; version <= 3; version++) {
            group_case g;
            memset(&g, 0, sizeof g);
            tarn_env *env = test_env();
            case_open(&g.c, env, (case_kind)kind);
            case_table(&g.c, version, SCHEMA, "p", properties);
            proxy_init(&g.proxy, g.c.catalog);
            g.proxy.before = rival_appends;
            g.proxy.ctx = &g;
            commit_index_init(&g.index, env);
            g.group = (commit_group){env, &g.proxy.base, &g.c.ident, &g.index, NULL, NULL, NULL};
            tell(&g);
            let_go(&g);
            table_version_release(g.group.known);
            commit_index_release(&g.index);
            case_check_files(&g.c, 0);
            case_done(&g.c);
            test_env_done(env);
        }
    }
}

static void on_all_kinds(story tell) {
    on_tables_with(NULL, tell);
}

static void tell_shared(group_case *g) {
    make_jobs(g, 3, true);
    group_run(&g->group, g->jobs);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(g->jobs[i].code, TARN_OK);
        assert_false(g->jobs[i].repeated);
        assert_true(g->jobs[i].snapshot_id == g->jobs[0].snapshot_id);
    }
    state_check(&g->c, "main", "1/1 3 0 0: +f0@1 +f1@1 +f2@1\n");
    check_snapshots(g, 1);
}

static void test_group_shared(void **state) {
    (void)state;
    on_all_kinds(tell_shared);
}

static void tell_chained(group_case *g) {
    make_jobs(g, 3, false);
    group_run(&g->group, g->jobs);
    state_check(&g->c, "main", "3/3 1 0 0: +f2@3\n2/2 1 0 0: +f1@2'\n1/1 1 0 0: +f0@1'\n");
    for (int i = 0; i < 3; i++) {
        tarn_table_version *v = g->jobs[i].version;
        assert_non_null(metadata_snapshot_by_id(v->metadata, g->jobs[i].snapshot_id));
    }
}

static void test_group_chained(void **state) {
    (void)state;
    on_all_kinds(tell_chained);
}

/* A row delta between appends follows the first and is seen by those after it. */
static void tell_refused(group_case *g) {
    make_jobs(g, 5, true);
    tarn_entry gone = commit_entry(commit_file(&g->c, "not-there", 1, 1));
    g->requests[1].removed = &gone; /* no longer an append that could be shared */
    g->requests[1].n_removed = 1;
    g->requests[1].kind = COMMIT_OVERWRITE;
    g->requests[3].table_uuid = STR("another");
    group_run(&g->group, g->jobs);
    static const tarn_code want[] = {TARN_OK, TARN_CONFLICT, TARN_OK, TARN_CONFLICT, TARN_OK};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(g->jobs[i].code, want[i]);
        assert_true((g->jobs[i].version != NULL) == (want[i] == TARN_OK));
    }
    state_check(&g->c, "main", "3/3 1 0 0: +f4@3\n2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f0@1'\n");
    commit_remove(&g->c, &g->files[1]);
    commit_remove(&g->c, &g->files[3]);
    commit_remove(&g->c, &gone.file);
}

static void test_group_refused(void **state) {
    (void)state;
    on_all_kinds(tell_refused);
}

/* Sent again: at once, from memory, after a restart, and by whoever says so, however long ago. */
static void tell_repeated(group_case *g) {
    make_jobs(g, 3, true);
    g->requests[1].commit_id = g->ids[0]; /* twins in one group: the first counts */
    group_run(&g->group, g->jobs);
    assert_true(g->jobs[1].repeated);
    assert_true(g->jobs[1].snapshot_id == g->jobs[0].snapshot_id);
    int64_t first = g->jobs[0].snapshot_id;
    commit_remove(&g->c, &g->files[1]);
    for (int round = 0; round < 3; round++) {
        let_go(g);
        make_jobs(g, 1, round != 1);
        if (round > 0) {
            forget(g);
        }
        if (round == 2) { /* as if the index had lost it */
            tarn_table_version *version = case_load(&g->c);
            g->index.newest = version->metadata->snapshots[0]->snapshot_id;
            table_version_release(version);
            g->jobs[0].resent = true;
        }
        group_run(&g->group, g->jobs);
        assert_int_equal(g->jobs[0].code, TARN_OK);
        assert_true(g->jobs[0].repeated);
        assert_true(g->jobs[0].snapshot_id == first);
    }
    check_snapshots(g, 1);
}

static void test_group_repeated(void **state) {
    (void)state;
    on_all_kinds(tell_repeated);
}

static void tell_rival(group_case *g) {
    make_jobs(g, 2, true);
    group_run(&g->group, g->jobs);
    let_go(g);
    g->rivals = 2;
    make_jobs(g, 4, true); /* two of them again */
    group_run(&g->group, g->jobs);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(g->jobs[i].code, TARN_OK);
        assert_true(g->jobs[i].repeated == (i < 2));
    }
    state_check(&g->c, "main",
                "4/4 2 0 0: +f2@4 +f3@4\n3/3 1 0 0: +rival2@3'\n2/2 1 0 0: +rival1@2'\n"
                "1/1 2 0 0: +f0@1' +f1@1'\n");
}

static void test_group_rival(void **state) {
    (void)state;
    on_all_kinds(tell_rival);
}

/* The swap was done, and its answer was lost, or was the refusal of a second sending. */
static void tell_lost_answer(group_case *g) {
    static const proxy_mode modes[] = {PROXY_APPLIED_UNKNOWN, PROXY_APPLIED_CONFLICT};
    for (int i = 0; i < 2; i++) {
        g->proxy.mode = modes[i];
        g->proxy.times = 1;
        make_jobs(g, 4, true);
        g->jobs[1].next = NULL; /* two this time, two the next */
        group_run(&g->group, &g->jobs[2 * i]);
        assert_int_equal(g->jobs[2 * i].code, TARN_OK);
        assert_int_equal(g->jobs[2 * i + 1].code, TARN_OK);
        let_go(g);
    }
    state_check(&g->c, "main", "2/2 2 0 0: +f2@2 +f3@2\n1/1 2 0 0: +f0@1' +f1@1'\n");
}

static void test_group_lost_answer(void **state) {
    (void)state;
    on_all_kinds(tell_lost_answer);
}

static void tell_lost_swap(group_case *g) {
    g->proxy.mode = PROXY_DROPPED_UNKNOWN;
    g->proxy.times = 1;
    make_jobs(g, 2, true);
    group_run(&g->group, g->jobs);
    assert_int_equal(g->jobs[0].code, TARN_COMMIT_UNKNOWN);
    assert_int_equal(g->jobs[1].code, TARN_COMMIT_UNKNOWN);
    assert_null(g->group.known);
    case_check_files(&g->c,
                     4); /* files, manifest, list: nothing is removed while it is not known */
    g->proxy.mode = PROXY_FAILED;
    g->proxy.times = 1;
    group_run(&g->group, g->jobs);
    assert_int_equal(g->jobs[0].code, TARN_DENIED);
    case_check_files(&g->c, 4);
    group_run(&g->group, g->jobs);
    assert_int_equal(g->jobs[0].code, TARN_OK);
    assert_false(g->jobs[0].repeated);
    case_check_files(&g->c, 2);
    state_check(&g->c, "main", "1/1 2 0 0: +f0@1 +f1@1\n");
}

static void test_group_lost_swap(void **state) {
    (void)state;
    group_case g;
    memset(&g, 0, sizeof g);
    tarn_env *env = test_env();
    case_open(&g.c, env, CASE_SQLITE_MEMORY);
    case_table(&g.c, 2, SCHEMA, "p", NULL);
    proxy_init(&g.proxy, g.c.catalog);
    commit_index_init(&g.index, env);
    g.group = (commit_group){env, &g.proxy.base, &g.c.ident, &g.index, NULL, NULL, NULL};
    tell_lost_swap(&g);
    let_go(&g);
    table_version_release(g.group.known);
    commit_index_release(&g.index);
    case_done(&g.c);
    test_env_done(env);
}

/* A sink that a later job took over commits nothing, also within one group. */
static void tell_fenced(group_case *g) {
    static const tarn_property later[] = {{{"sink", sizeof "sink" - 1}, {"s", sizeof "s" - 1}},
                                          {{"epoch", sizeof "epoch" - 1}, {"2", sizeof "2" - 1}}};
    static const tarn_property who[] = {
        {{"sink", sizeof "sink" - 1}, {"s", sizeof "s" - 1}},
        {{"operator", sizeof "operator" - 1}, {"o", sizeof "o" - 1}}};
    static const tarn_property other[] = {{{"sink", sizeof "sink" - 1}, {"t", sizeof "t" - 1}}};
    const commit_fence fences[] = {{.of = {2, who}, .number = STR("epoch"), .at_most = 2},
                                   {.of = {2, who}, .number = STR("epoch"), .at_most = 1},
                                   {.of = {1, other}, .number = STR("epoch"), .at_most = 1},
                                   {.of = {2, who},
                                    .number = STR("epoch"),
                                    .at_most = 2,
                                    .step = STR("epoch"),
                                    .step_below = 2}};
    static const tarn_code want[] = {TARN_OK, TARN_DENIED, TARN_OK, TARN_DENIED};
    make_jobs(g, 4, true);
    for (int i = 0; i < 4; i++) {
        g->requests[i].fence = &fences[i];
        g->requests[i].summary = (tarn_properties){2, later};
    }
    group_run(&g->group, g->jobs);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(g->jobs[i].code, want[i]);
    }
    check_snapshots(g, 2);
    commit_remove(&g->c, &g->files[1]);
    commit_remove(&g->c, &g->files[3]);
}

static void test_group_fenced(void **state) {
    (void)state;
    on_all_kinds(tell_fenced);
}

/* Snapshots older than the newest two go, and all that only they lived by. */
static void tell_trim(group_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    for (int i = 0; i < JOBS; i++) {
        make_jobs(g, JOBS, true);
        g->jobs[i].next = NULL;
        g->requests[i].kind = COMMIT_MERGE_APPEND;
        env_sleep_ms(g->c.env, 5); /* a snapshot of this very millisecond is not old */
        group_run(&g->group, &g->jobs[i]);
        assert_int_equal(g->jobs[i].code, TARN_OK);
        let_go(g);
        tarn_table_version *version = case_load(&g->c);
        assert_true(version->metadata->n_snapshots <= 2);
        table_version_release(version);
    }
    static const char *const want[] = {"total-records", "60", "total-data-files", "6", NULL};
    state_check_summary(&g->c, want);
    make_jobs(g, 1, true); /* its snapshot is gone, and it is remembered */
    group_run(&g->group, g->jobs);
    assert_true(g->jobs[0].code == TARN_OK && g->jobs[0].repeated);
    let_go(g);
    /* a tag makes it maintenance's business */
    tarn_change tag = {.kind = CHANGE_SET_SNAPSHOT_REF};
    tarn_table_version *version = case_load(&g->c);
    tarn_outcome_kind outcome;
    tag.ref = (tarn_ref){STR("kept"), version->metadata->current_snapshot_id, true, -1, -1, -1};
    const tarn_change_set set = {0, NULL, 1, &tag};
    assert_ok(catalog_commit(g->c.catalog, &g->c.ident, version, &set, &outcome, NULL, &err));
    table_version_release(version);
    for (int i = 0; i < 3; i++) {
        make_jobs(g, 1, true);
        g->requests[0].commit_id = NULL;
        group_run(&g->group, g->jobs);
        assert_int_equal(g->jobs[0].code, TARN_OK);
        let_go(g);
    }
    check_snapshots(g, 5);
}

static void test_group_trim(void **state) {
    (void)state;
    static const char *const policy[] = {"tarn.expire-on-commit",
                                         "true",
                                         "history.expire.max-snapshot-age-ms",
                                         "0",
                                         "history.expire.min-snapshots-to-keep",
                                         "2",
                                         "commit.manifest.min-count-to-merge",
                                         "2",
                                         NULL};
    on_tables_with(policy, tell_trim);
}

static tarn_code make_late(commit_job *job, written_files *files, const tarn_metadata *base,
                           tarn_change_set *out, tarn_error *err) {
    return rebase_make(job->ctx, files, base, out, err);
}

/* An append of a standard client on an older head: its new manifest list goes with its swap, and
 * what the client wrote stays the client's. */
static void tell_rebased(group_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    static const tarn_str anywhere = {"", 0};
    const service_places places = {1, &anywhere, {NULL, 0}};
    rebase_commit sent = {.arena = &g->c.arena};
    commit_maker *maker = NULL;
    assert_ok(added_files_new(g->c.env, &sent.added, &err));
    tarn_file late = commit_file(&g->c, "late", 9, 10);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &late, 1);
    tarn_table_version *base = case_load(&g->c);
    assert_ok(commit_maker_new(g->c.env, g->c.catalog->store, &r, &maker, &err));
    assert_ok(commit_maker_attempt(maker, base->metadata, &sent.set, &err));
    assert_ok(sent_snapshots_read(&g->c.arena, g->c.catalog->store, &places, base->metadata,
                                  &sent.set, &sent.snapshots, &sent.n_snapshots, &err));
    tarn_str list = sent.set.changes[0].snapshot->manifest_list;
    make_jobs(g, 1, true);
    group_run(&g->group, g->jobs);
    let_go(g);
    commit_job job = {.make = make_late, .ctx = &sent};
    g->proxy.mode = PROXY_FAILED;
    g->proxy.times = 1;
    group_run(&g->group, &job);
    assert_int_equal(job.code, TARN_DENIED);
    case_check_files(&g->c, 3); /* the client's file, manifest and list */
    g->rivals = 2;
    group_run(&g->group, &job);
    assert_int_equal(job.code, TARN_OK);
    case_check_files(&g->c, 1); /* the client's list */
    state_check(&g->c, "main",
                "4/4 1 0 0: +late@4\n3/3 1 0 0: +rival2@3'\n2/2 1 0 0: +rival1@2'\n"
                "1/1 1 0 0: +f0@1'\n");
    assert_ok(store_remove(g->c.catalog->store, list, &err));
    commit_maker_end(maker, TARN_OUTCOME_UNKNOWN);
    added_files_free(sent.added);
    table_version_release(job.version);
    table_version_release(base);
}

static void test_group_rebased(void **state) {
    (void)state;
    on_all_kinds(tell_rebased);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_shared),    cmocka_unit_test(test_group_chained),
        cmocka_unit_test(test_group_refused),   cmocka_unit_test(test_group_repeated),
        cmocka_unit_test(test_group_rival),     cmocka_unit_test(test_group_lost_answer),
        cmocka_unit_test(test_group_lost_swap), cmocka_unit_test(test_group_trim),
        cmocka_unit_test(test_group_fenced),    cmocka_unit_test(test_group_rebased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
