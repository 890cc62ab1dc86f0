/* Goal: whatever allocation or call of the store fails while small files are merged before a
 * commit, rows of acknowledged commits are in the table once, the table names nothing that is not
 * there, what failed can be sent again, and no merged file stays behind.
 * Method: the k-th allocation, and the k-th call of the store (which fails, or takes effect and
 * then says that it failed), for one k after the other; then all is sent again. */
#include "fail_alloc.h"
#include "unit/service/compact_case.h"

#define SENT 4

/* Rows of acknowledged jobs once, of others once at most. */
static void check_rows(compact_case *g, const bool *acknowledged) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    scan_options options = case_scan_options();
    buf_init(&text, g->c.env, 0);
    assert_ok(case_scan(&g->c, &options, NULL, &text, NULL, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    for (int i = 0; i < SENT; i++) {
        char row[32];
        (void)snprintf(row, sizeof row, "\"r%d\"", i);
        const char *first = strstr((const char *)text.data, row);
        if (acknowledged[i] ? first == NULL : false) {
            fail_msg("job %d was acknowledged, and its row is not there", i);
        }
        if (first != NULL && strstr(first + 1, row) != NULL) {
            fail_msg("the row of job %d is there twice", i);
        }
    }
    buf_release(&text);
}

static bool run_all(compact_case *g, bool *acknowledged, bool any_code) {
    bool unknown = false;
    group_run(&g->group, g->jobs);
    for (int i = 0; i < SENT; i++) {
        tarn_code code = g->jobs[i].code;
        acknowledged[i] = acknowledged[i] || code == TARN_OK;
        unknown = unknown || code == TARN_COMMIT_UNKNOWN;
        assert_true((g->jobs[i].version != NULL) == (code == TARN_OK));
        if (code != TARN_OK && code != TARN_COMMIT_UNKNOWN && !any_code) {
            fail_msg("job %d: %s: %s", i, tarn_code_name(code), g->jobs[i].err.message);
        }
    }
    compact_let_go(g);
    return unknown;
}

/* Those that were not acknowledged are sent again, as a client would: originals may be gone. */
static void send_again(compact_case *g, bool *acknowledged) {
    static const bool all[SENT] = {true, true, true, true};
    for (int i = 0; i < SENT; i++) {
        const commit_request *request = g->jobs[i].request;
        g->jobs[i].resent = true;
        g->jobs[i].absent = store_exists(g->c.catalog->store, request->added[0].path)
                                ? STR_NULL
                                : request->added[0].path;
    }
    (void)run_all(g, acknowledged, false);
    check_rows(g, all);
}

/* What lies there unnamed is originals, and at most `more`. */
static void check_orphans(compact_case *g, int more) {
    char first[256] = "";
    int originals = 0;
    int orphans = case_count_orphans(&g->c, first);
    for (int i = 0; i < SENT; i++) {
        originals += store_exists(g->c.catalog->store, g->jobs[i].request->added[0].path);
    }
    if (orphans > originals + more) {
        fail_msg("%d orphans, of which %d are originals, such as %s", orphans, originals, first);
    }
}

static bool strike_memory(uint64_t k) {
    fail_alloc plan;
    compact_case g;
    bool acknowledged[SENT] = {0};
    tarn_env *env = fail_alloc_env(&plan, 0);
    compact_open_on(&g, env, CASE_DIR_MEMORY, 2, compact_policy_on);
    compact_make_jobs(&g, SENT);
    atomic_store(&plan.count, 0);
    plan.fail_at = k;
    bool unknown = run_all(&g, acknowledged, true);
    plan.fail_at = 0;
    check_rows(&g, acknowledged);
    check_orphans(&g, unknown ? 6 : 0);
    send_again(&g, acknowledged);
    bool failed = atomic_load(&plan.failed);
    compact_close(&g);
    fail_alloc_done(&plan, env);
    return failed;
}

static void test_compact_memory(void **state) {
    (void)state;
    uint64_t seed = 11;
    uint64_t k = 1;
    while (strike_memory(k)) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        k += test_every() ? 1 : 1 + (seed >> 40) % 5;
    }
    assert_true(k > 500);
}

static bool strike_store(case_kind kind, int64_t k, bool after) {
    compact_case g;
    bool acknowledged[SENT] = {0};
    tarn_env *env = test_env();
    compact_open_on(&g, env, kind, 2, compact_policy_on);
    compact_make_jobs(&g, SENT);
    store_fault_plan *plan = &g.c.plan;
    plan->struck = NULL;
    plan->after = after;
    plan->calls = 0;
    plan->fail_at = k;
    bool unknown = run_all(&g, acknowledged, true);
    plan->fail_at = 0;
    bool reached = plan->struck != NULL;
    bool removing = reached && strcmp(plan->struck, "remove") == 0;
    check_rows(&g, acknowledged);
    check_orphans(&g, unknown ? 6 : removing ? 1 : 0);
    send_again(&g, acknowledged);
    compact_close(&g);
    test_env_done(env);
    return reached;
}

static void test_compact_store(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int after = 0; after < 2; after++) {
            int64_t k = 1;
            while (strike_store((case_kind)kind, k, after == 1)) {
                k += case_is_file((case_kind)kind) && !test_every() ? 3 : 1;
            }
            assert_true(k > 20);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compact_memory),
                                       cmocka_unit_test(test_compact_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
