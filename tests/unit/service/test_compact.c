/* Goal: small files that wait in one group of commits are merged before the commit: rows once,
 * originals removed when the commit is certain and never before, nothing left of what did not come
 * about, and no commit refused for what fails on the way, but that of a client that lied.
 * Method: the leader's work on jobs with real files, over every catalog and store; a catalog in
 * between loses answers, refuses, or lets others commit first. */
#include "unit/service/compact_case.h"

#include "iceberg/evolve.h"

typedef void (*story)(compact_case *g);

static void on_tables_with(const char *const *properties, story tell) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 2; version <= 3; version++) {
            compact_case g;
            tarn_env *env = test_env();
            compact_open_on(&g, env, (case_kind)kind, version, properties);
            tell(&g);
            case_check_files(&g.c, 0);
            compact_close(&g);
            test_env_done(env);
        }
    }
}

static void check_codes(compact_case *g, int n, tarn_code code) {
    for (int i = 0; i < n; i++) {
        if (g->jobs[i].code != code) {
            fail_msg("job %d: %s %s", i, tarn_code_name(g->jobs[i].code), g->jobs[i].err.message);
        }
    }
}

static void run(compact_case *g, tarn_code code) {
    compact_let_go(g);
    group_run(&g->group, g->jobs);
    for (const commit_job *job = g->jobs; job != NULL; job = job->next) {
        assert_int_equal(job->code, code);
    }
}

static void tell_merged(compact_case *g) {
    static const char *const summary[] = {"tarn.compacted-files",
                                          "6",
                                          "tarn.commit-count",
                                          "6",
                                          "added-data-files",
                                          "2",
                                          "added-records",
                                          "6",
                                          NULL};
    compact_make_jobs(g, 6);
    run(g, TARN_OK);
    compact_check(g, 6, 0, 2);
    state_check_summary(&g->c, summary);
    assert_int_equal(compact_originals(g, 6), 0);
    for (int i = 0; i < 6; i++) {
        assert_true(g->jobs[i].snapshot_id == g->jobs[0].snapshot_id);
    }
    assert_int_equal(g->counters.merged_files[0], 6);
    assert_int_equal(g->counters.merged_files[1], 2);
    /* sent again, though its file is gone */
    int64_t first = g->jobs[3].snapshot_id;
    g->jobs[3].absent = g->written[3].files[0].path;
    g->jobs[3].next = NULL;
    compact_let_go(g);
    group_run(&g->group, &g->jobs[3]);
    assert_true(g->jobs[3].code == TARN_OK && g->jobs[3].repeated);
    assert_true(g->jobs[3].snapshot_id == first);
    /* but a new one whose file is not there is refused */
    g->ids[3][0] = 'x';
    compact_let_go(g);
    group_run(&g->group, &g->jobs[3]);
    assert_int_equal(g->jobs[3].code, TARN_INVALID);
}

static void test_compact_merged(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_merged);
}

static void tell_unasked(compact_case *g) {
    compact_make_jobs(g, 4);
    run(g, TARN_OK);
    compact_check(g, 4, 0, 4);
    assert_int_equal(compact_originals(g, 4), 4);
}

static void test_compact_unasked(void **state) {
    (void)state;
    static const char *const off[] = {"tarn.compact-before-commit", "false", NULL};
    static const char *const wrong[] = {"tarn.compact-before-commit", "maybe", NULL};
    static const char *const wrong_bound[] = {"tarn.compact-before-commit", "true",
                                              "tarn.compact-before-commit.min-files", "-1", NULL};
    on_tables_with(NULL, tell_unasked);
    on_tables_with(off, tell_unasked);
    on_tables_with(wrong, tell_unasked);
    on_tables_with(wrong_bound, tell_unasked);
}

/* One bound each that nothing fits: all is committed as it is. */
static void test_compact_bounds(void **state) {
    (void)state;
    static const char *const bounds[][2] = {{"tarn.compact-before-commit.max-file-bytes", "10"},
                                            {"tarn.compact-before-commit.target-file-bytes", "10"},
                                            {"tarn.compact-before-commit.min-files", "3"},
                                            {"tarn.compact-before-commit.max-group-bytes", "10"},
                                            {"tarn.compact-before-commit.max-group-files", "1"}};
    for (int i = 0; i < 5; i++) {
        const char *const properties[] = {"tarn.compact-before-commit", "true", bounds[i][0],
                                          bounds[i][1], NULL};
        on_tables_with(properties, tell_unasked);
    }
}

/* Several files of one append, alone; an append that does not share is left as it is. */
static void tell_one_job(compact_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    write_result more;
    compact_make_jobs(g, 1);
    assert_ok(case_write(&g->c, g->base, "{\"p\":0,\"v\":\"r2\"}\n{\"p\":1,\"v\":\"r1\"}\n",
                         &g->c.arena, &more, &err));
    assert_int_equal(more.n_files, 2);
    const tarn_file files[] = {g->written[0].files[0], more.files[0], more.files[1]};
    g->requests[0].added = files;
    g->requests[0].n_added = 3;
    run(g, TARN_OK);
    compact_check(g, 3, 0, 2);
    static const char *const summary[] = {
        "tarn.compacted-files", "2", "tarn.commit-id", "c0", "tarn.commit-count", NULL, NULL};
    state_check_summary(&g->c, summary);
    compact_let_go(g);
    tarn_file again[2];
    assert_ok(case_write(&g->c, g->base, "{\"p\":1,\"v\":\"r3\"}\n", &g->c.arena, &more, &err));
    again[0] = more.files[0];
    assert_ok(case_write(&g->c, g->base, "{\"p\":1,\"v\":\"r5\"}\n", &g->c.arena, &more, &err));
    again[1] = more.files[0];
    g->requests[0].added = again;
    g->requests[0].n_added = 2;
    g->requests[0].share = false;
    g->ids[0][1] = '9';
    run(g, TARN_OK);
    assert_int_equal(g->counters.merged_files[0], 2);
    static const char *const total[] = {"total-data-files", "4", NULL};
    state_check_summary(&g->c, total);
}

static void test_compact_one_job(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_one_job);
}

/* Deletes name the files that come with them, which so stay what they are, though the request says
 * that it may share; those on both sides of it are no unit. */
static void tell_row_delta(compact_case *g) {
    compact_make_jobs(g, 6);
    tarn_file deletes = commit_position_file(&g->c, "deletes", &g->written[2].files[0], 1);
    g->requests[2].kind = COMMIT_ROW_DELTA;
    g->requests[2].added_deletes = &deletes;
    g->requests[2].n_added_deletes = 1;
    run(g, TARN_OK);
    assert_int_equal(g->counters.merged_files[0], 2); /* of jobs 3 and 5 */
    assert_int_equal(compact_originals(g, 6), 4);
    assert_true(store_exists(g->c.catalog->store, g->written[2].files[0].path));
    assert_true(g->jobs[2].snapshot_id != g->jobs[0].snapshot_id &&
                g->jobs[2].snapshot_id != g->jobs[3].snapshot_id);
    case_check_files(&g->c, 0);
}

static void test_compact_row_delta(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        compact_case g;
        tarn_env *env = test_env();
        compact_open_on(&g, env, (case_kind)kind, 2, compact_policy_on);
        tell_row_delta(&g);
        compact_close(&g);
        test_env_done(env);
    }
}

/* Others move the pointer: what was merged serves the next rounds. */
static void tell_rival(compact_case *g) {
    compact_make_jobs(g, 4);
    g->rivals = 3;
    g->group.known = case_load(&g->c);
    run(g, TARN_OK);
    compact_check(g, 4, 3, 5);
    assert_int_equal(compact_originals(g, 4), 0);
    assert_int_equal(g->counters.merged_files[0], 4);
    assert_int_equal(g->counters.merged_files[1], 2);
}

static void test_compact_rival(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_rival);
}

/* The swap was done, and its answer was lost, or was the refusal of a second sending. */
static void tell_lost_answer(compact_case *g) {
    static const proxy_mode modes[] = {PROXY_APPLIED_UNKNOWN, PROXY_APPLIED_CONFLICT};
    compact_make_jobs(g, 4);
    g->jobs[1].next = NULL;
    for (int i = 0; i < 2; i++) {
        g->proxy.mode = modes[i];
        g->proxy.times = 1;
        group_run(&g->group, &g->jobs[2 * i]);
    }
    check_codes(g, 4, TARN_OK);
    compact_check(g, 4, 0, 4); /* one of each partition in each group: nothing to merge */
}

static void tell_lost_answer_merged(compact_case *g) {
    static const proxy_mode modes[] = {PROXY_APPLIED_UNKNOWN, PROXY_APPLIED_CONFLICT};
    for (int i = 0; i < 2; i++) {
        tarn_error err = TARN_ERROR_INIT;
        for (int k = 0; k < 2; k++) {
            char line[64];
            int job = 2 * i + k;
            (void)snprintf(line, sizeof line, "{\"p\":%d,\"v\":\"r%d\"}\n", i, 2 * k + i);
            assert_ok(compact_set_job(g, job, line, &err));
        }
        g->proxy.mode = modes[i];
        g->proxy.times = 1;
        group_run(&g->group, &g->jobs[2 * i]);
        assert_int_equal(compact_originals(g, 2 * i + 2), 0);
    }
    check_codes(g, 4, TARN_OK);
    compact_check(g, 4, 0, 2);
}

static void test_compact_lost_answer(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_lost_answer);
    on_tables_with(compact_policy_on, tell_lost_answer_merged);
}

/* It is not known whether it was done: nothing is removed. Certainly not: what was merged goes. */
static void test_compact_lost_swap(void **state) {
    (void)state;
    compact_case g;
    tarn_env *env = test_env();
    compact_open_on(&g, env, CASE_SQLITE_MEMORY, 2, compact_policy_on);
    compact_make_jobs(&g, 4);
    g.proxy.mode = PROXY_FAILED;
    g.proxy.times = 1;
    run(&g, TARN_DENIED);
    case_check_files(&g.c, 4); /* the originals */
    assert_int_equal(compact_originals(&g, 4), 4);
    g.proxy.mode = PROXY_DROPPED_UNKNOWN;
    g.proxy.times = 1;
    run(&g, TARN_COMMIT_UNKNOWN);
    assert_int_equal(compact_originals(&g, 4), 4);
    char first[256];
    assert_int_equal(case_count_orphans(&g.c, first), 8); /* two merged, manifest and list more */
    run(&g, TARN_OK);
    compact_check(&g, 4, 0, 2);
    assert_int_equal(compact_originals(&g, 4), 0);
    compact_close(&g);
    test_env_done(env);
}

/* The pointer moved, by ourselves and unseen: the table names what was merged, and so it stays. */
static void test_compact_unseen(void **state) {
    (void)state;
    compact_case g;
    tarn_env *env = test_env();
    compact_open_on(&g, env, CASE_SQLITE_MEMORY, 2, compact_policy_on);
    g.group.known = case_load(&g.c);
    compact_make_jobs(&g, 4);
    g.proxy.mode = PROXY_APPLIED_CONFLICT;
    g.proxy.times = 1;
    g.proxy.blind = true;
    run(&g, TARN_COMMIT_UNKNOWN);
    g.proxy.blind = false;
    compact_check(&g, 4, 0, 2);
    assert_int_equal(compact_originals(&g, 4), 4);
    run(&g, TARN_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(g.jobs[i].repeated);
    }
    compact_check(&g, 4, 0, 2);
    compact_close(&g);
    test_env_done(env);
}

/* ---- files that are not what was said, or cannot be read ---- */

/* Job 2 of four lies: it alone is refused. */
static void check_lie(compact_case *g) {
    compact_let_go(g);
    group_run(&g->group, g->jobs);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(g->jobs[i].code, i == 2 ? TARN_INVALID : TARN_OK);
    }
    char name[64];
    tarn_str path = g->written[2].files[0].path;
    (void)snprintf(name, sizeof name, "%.*s", (int)(path.len < 63 ? path.len : 63), path.data);
    assert_non_null(strstr(g->jobs[2].err.message, name));
    case_check_rows(&g->c, NULL,
                    "{\"p\":0,\"v\":\"r0\"}\n{\"p\":1,\"v\":\"r1\"}\n{\"p\":1,\"v\":\"r3\"}\n");
    case_check_files(&g->c, 1);
    assert_int_equal(g->counters.unmerged_failed, 1);
    commit_remove(&g->c, &g->written[2].files[0]);
}

static void tell_wrong_count(compact_case *g) {
    compact_make_jobs(g, 4);
    g->written[2].files[0].record_count = 2;
    check_lie(g);
}

static void tell_wrong_partition(compact_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    compact_make_jobs(g, 4);
    commit_job *next = g->jobs[2].next;
    const tarn_value *said = g->written[2].files[0].partition;
    commit_remove(&g->c, &g->written[2].files[0]);
    assert_ok(compact_set_job(g, 2, "{\"p\":5,\"v\":\"r2\"}\n", &err));
    g->jobs[2].next = next;
    g->written[2].files[0].partition = said;
    check_lie(g);
}

static void test_compact_lies(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_wrong_count);
    on_tables_with(compact_policy_on, tell_wrong_partition);
}

/* Bytes that are no file: committed as it is, as without the policy, and so are its companions. */
static void tell_unreadable(compact_case *g) {
    compact_make_jobs(g, 4);
    tarn_file junk = commit_file(&g->c, "junk", 0, 1);
    g->requests[2].added = &junk;
    commit_remove(&g->c, &g->written[2].files[0]);
    run(g, TARN_OK);
    assert_int_equal(g->counters.unmerged_failed, 1);
    assert_int_equal(g->counters.merged_files[0], 2);
    static const char *const total[] = {"total-data-files", "3", NULL};
    state_check_summary(&g->c, total);
}

static void test_compact_unreadable(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_unreadable);
}

/* ---- schemas, orders, formats ---- */

static void edit_table(compact_case *g, const tarn_edit *edits, int32_t n) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_change_set set;
    tarn_outcome_kind outcome;
    tarn_table_version *version = case_load(&g->c);
    assert_ok(evolve_changes(&g->c.arena, version->metadata, edits, n, &set, &err));
    assert_ok(catalog_commit(g->c.catalog, &g->c.ident, version, &set, &outcome, NULL, &err));
    table_version_release(version);
}

static void add_column(compact_case *g) {
    const tarn_edit edit = {
        .kind = EVOLVE_ADD_COLUMN, .path = STR("n"), .type = type_primitive(TARN_LONG)};
    edit_table(g, &edit, 1);
}

static void look_again(compact_case *g) {
    table_version_release(g->base);
    g->base = case_load(&g->c);
}

/* Files of the old schema and the new one become one of the new. */
static void tell_schema(compact_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(compact_set_job(g, 0, "{\"p\":1,\"v\":\"a\"}\n", &err));
    const tarn_edit rename = {.kind = EVOLVE_RENAME_COLUMN, .path = STR("v"), .new_name = STR("w")};
    edit_table(g, &rename, 1);
    add_column(g);
    look_again(g);
    assert_ok(compact_set_job(g, 1, "{\"p\":1,\"w\":\"b\",\"n\":5}\n", &err));
    run(g, TARN_OK);
    case_check_rows(&g->c, NULL,
                    "{\"p\":1,\"w\":\"a\",\"n\":null}\n{\"p\":1,\"w\":\"b\",\"n\":5}\n");
    assert_int_equal(g->counters.merged_files[1], 1);
}

/* The schema changes while the swap is tried: what was merged by the old one is of no use. */
static void evolve_once(void *ctx) {
    compact_case *g = ctx;
    if (g->rivals > 0) {
        g->rivals--;
        add_column(g);
    }
}

static void tell_schema_race(compact_case *g) {
    compact_make_jobs(g, 4);
    g->group.known = case_load(&g->c);
    g->proxy.before = evolve_once;
    g->rivals = 1;
    run(g, TARN_OK);
    case_check_rows(&g->c, NULL,
                    "{\"p\":0,\"v\":\"r0\",\"n\":null}\n{\"p\":1,\"v\":\"r1\",\"n\":null}\n"
                    "{\"p\":0,\"v\":\"r2\",\"n\":null}\n{\"p\":1,\"v\":\"r3\",\"n\":null}\n");
    assert_int_equal(compact_originals(g, 4), 4);
    assert_int_equal(g->counters.merged_files[0], 0);
}

static void test_compact_schema(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_schema);
    on_tables_with(compact_policy_on, tell_schema_race);
}

static int32_t order_of_only_file(compact_case *g) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_manifest *manifests;
    int32_t n;
    io_source *source;
    manifest_entries entries;
    const manifest_read_options options = {.want = MANIFEST_WANT_REST};
    tarn_table_version *version = case_load(&g->c);
    const tarn_metadata *m = version->metadata;
    assert_ok(snapshot_manifests(&g->c.arena, g->c.catalog->store, metadata_current_snapshot(m),
                                 &manifests, &n, &err));
    assert_int_equal(n, 1);
    assert_ok(store_open(g->c.catalog->store, manifests->path, manifests->length, &source, &err));
    assert_ok(manifest_read(&g->c.arena, source, m, manifests, &options, &entries, &err));
    source->close(source);
    assert_int_equal(entries.count, 1);
    table_version_release(version);
    return entries.items[0].file.sort_order_id;
}

/* In the table's order where all claim it; else as they came, and nothing is claimed. */
static void tell_sorted(compact_case *g, bool claim) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    const tarn_edit edit = {.kind = EVOLVE_SET_SORT_ORDER, .text = STR("v desc")};
    edit_table(g, &edit, 1);
    look_again(g);
    static const char *const lines[] = {"{\"p\":1,\"v\":\"b\"}\n{\"p\":1,\"v\":\"e\"}\n",
                                        "{\"p\":1,\"v\":\"d\"}\n{\"p\":1,\"v\":\"a\"}\n",
                                        "{\"p\":1,\"v\":\"c\"}\n"};
    for (int i = 0; i < 3; i++) {
        assert_ok(compact_set_job(g, i, lines[i], &err));
        assert_true(g->written[i].files[0].sort_order_id > 0);
        g->written[i].files[0].sort_order_id = claim ? g->written[i].files[0].sort_order_id : 0;
    }
    run(g, TARN_OK);
    scan_options options = case_scan_options();
    buf_init(&text, g->c.env, 0);
    assert_ok(case_scan(&g->c, &options, NULL, &text, NULL, &err));
    static const char *const want[] = {"{\"p\":1,\"v\":\"e\"}\n{\"p\":1,\"v\":\"b\"}\n{\"p\":1,"
                                       "\"v\":\"d\"}\n{\"p\":1,\"v\":\"a\"}\n"
                                       "{\"p\":1,\"v\":\"c\"}\n",
                                       "{\"p\":1,\"v\":\"e\"}\n{\"p\":1,\"v\":\"d\"}\n{\"p\":1,"
                                       "\"v\":\"c\"}\n{\"p\":1,\"v\":\"b\"}\n"
                                       "{\"p\":1,\"v\":\"a\"}\n"};
    assert_true(str_is(buf_str(&text), want[claim]));
    assert_int_equal(order_of_only_file(g), claim ? g->base->metadata->default_sort_order_id : 0);
    buf_release(&text);
}

static void tell_claimed(compact_case *g) {
    tell_sorted(g, true);
}

static void tell_unclaimed(compact_case *g) {
    tell_sorted(g, false);
}

static void test_compact_sorted(void **state) {
    (void)state;
    on_tables_with(compact_policy_on, tell_claimed);
    on_tables_with(compact_policy_on, tell_unclaimed);
}

static void test_compact_avro(void **state) {
    (void)state;
    static const char *const avro[] = {"tarn.compact-before-commit", "true", "write.format.default",
                                       "avro", NULL};
    on_tables_with(avro, tell_merged);
    on_tables_with(avro, tell_wrong_count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compact_merged),      cmocka_unit_test(test_compact_unasked),
        cmocka_unit_test(test_compact_bounds),      cmocka_unit_test(test_compact_one_job),
        cmocka_unit_test(test_compact_row_delta),   cmocka_unit_test(test_compact_rival),
        cmocka_unit_test(test_compact_lost_answer), cmocka_unit_test(test_compact_lost_swap),
        cmocka_unit_test(test_compact_unseen),      cmocka_unit_test(test_compact_lies),
        cmocka_unit_test(test_compact_unreadable),  cmocka_unit_test(test_compact_schema),
        cmocka_unit_test(test_compact_sorted),      cmocka_unit_test(test_compact_avro),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
