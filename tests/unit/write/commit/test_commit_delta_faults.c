/* Goal: whatever allocation or store call fails, a row delta is committed whole or not at all, says
 * truly which, leaks nothing, and leaves no file that the table does not name.
 * Method: one row delta that does all there is (adds data and vectors, removes a data file with its
 * vector, replaces a vector, merges both contents), with its 1st, 2nd, ... allocation or call
 * failing, on a fresh table each. */
#include "fail_alloc.h"
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define OLD_STATE "1/1 2 0 0: +f1@1' +f2@1'\nD 2/2 2 0 0: +v#4@2 +v#14@2\n"
#define NEW_STATE "3/1 1 1 1: +f3@3 =f1@1' -f2@1\nD 3/3 1 0 2: +w#4@3 -v#4@2 -v#14@2\n"

typedef struct fault_case {
    table_case c;
    tarn_file data[2], vectors[2];
    tarn_file f3, w;
    int64_t from;
} fault_case;

static void begin(fault_case *t, tarn_env *env, case_kind kind) {
    static const char *const properties[] = {"commit.manifest.min-count-to-merge", "2",
                                             "commit.retry.num-retries", "0", NULL};
    commit_outcome outcome;
    memset(t, 0, sizeof *t);
    case_open(&t->c, env, kind);
    case_table(&t->c, 3, "p int, v string", "p", properties);
    t->data[0] = commit_file(&t->c, "f1", 1, 10);
    t->data[1] = commit_file(&t->c, "f2", 2, 10);
    t->vectors[0] = commit_vector(&t->c, "v", &t->data[0], 4, 1);
    t->vectors[1] = commit_vector(&t->c, "v", &t->data[1], 14, 1);
    commit_request r = commit_of(COMMIT_ROW_DELTA, t->data, 2);
    assert_ok(commit_now(&t->c, t->c.catalog, &r, &outcome, &err));
    r = commit_of(COMMIT_ROW_DELTA, NULL, 0);
    r.added_deletes = t->vectors;
    r.n_added_deletes = 2;
    assert_ok(commit_now(&t->c, t->c.catalog, &r, &outcome, &err));
    t->from = outcome.snapshot_id;
    t->f3 = commit_file(&t->c, "f3", 1, 10);
    t->w = commit_vector(&t->c, "w", &t->data[0], 4, 2);
}

static tarn_code run(fault_case *t, commit_outcome *outcome, tarn_error *e) {
    tarn_entry gone = commit_entry(t->data[1]);
    tarn_entry replaced = commit_entry(t->vectors[0]);
    commit_request r = commit_of(COMMIT_ROW_DELTA, &t->f3, 1);
    r.removed = &gone;
    r.n_removed = 1;
    r.added_deletes = &t->w;
    r.n_added_deletes = 1;
    r.removed_deletes = &replaced;
    r.n_removed_deletes = 1;
    r.referenced = &t->data[0].path;
    r.n_referenced = 1;
    r.check_new_deletes = true;
    r.merge = true;
    r.from_snapshot_id = t->from;
    tarn_code code = commit_run(t->c.env, t->c.catalog, &t->c.ident, NULL, &r, outcome, e);
    table_version_release(outcome->version);
    outcome->version = NULL;
    return code;
}

static bool is_at(fault_case *t, const char *want) {
    tarn_table_version *v = case_load(&t->c);
    tarn_buf out;
    buf_init(&out, t->c.env, 0);
    state_snapshot(&t->c, v->metadata, metadata_current_snapshot(v->metadata), &out);
    bool same = str_is(buf_str(&out), want);
    buf_release(&out);
    table_version_release(v);
    return same;
}

static void check(fault_case *t, const char *what, int64_t k, tarn_code code,
                  const commit_outcome *outcome) {
    bool removing = t->c.plan.struck != NULL && (strcmp(t->c.plan.struck, "remove") == 0 ||
                                                 strcmp(t->c.plan.struck, "list_folder") == 0);
    bool is_new = is_at(t, NEW_STATE);
    if (!is_new && !is_at(t, OLD_STATE)) {
        fail_msg("%s %lld failed: the table is neither old nor new", what, (long long)k);
    }
    if ((outcome->kind == TARN_COMMITTED && !is_new) ||
        (outcome->kind == TARN_NOT_COMMITTED && is_new) ||
        (outcome->kind == TARN_COMMITTED) != (code == TARN_OK)) {
        fail_msg("%s %lld failed: %s, outcome %d, but the table is %s", what, (long long)k,
                 tarn_code_name(code), (int)outcome->kind, is_new ? "new" : "old");
    }
    if (outcome->kind != TARN_OUTCOME_UNKNOWN && !removing) {
        case_check_files(&t->c, is_new ? 0 : 2); /* the request's own files are the caller's */
    }
}

static bool strike_store(case_kind kind, int64_t k, bool after) {
    fault_case t;
    commit_outcome outcome;
    tarn_error e = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    begin(&t, env, kind);
    t.c.plan.struck = NULL;
    t.c.plan.after = after;
    t.c.plan.calls = 0;
    t.c.plan.fail_at = k;
    tarn_code code = run(&t, &outcome, &e);
    t.c.plan.fail_at = 0;
    bool reached = t.c.plan.struck != NULL;
    assert_true(code == TARN_OK || e.message[0] != '\0');
    check(&t, "call", k, code, &outcome);
    case_done(&t.c);
    test_env_done(env);
    return reached;
}

static void test_delta_store_faults(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int after = 0; after < 2; after++) {
            int64_t k = 1 + after;
            while (strike_store((case_kind)kind, k, after == 1)) {
                k += case_is_file((case_kind)kind) && !test_every() ? 5 : 1;
            }
            assert_true(k > 20);
        }
    }
}

static bool strike_memory(case_kind kind, uint64_t k) {
    fault_case t;
    commit_outcome outcome;
    fail_alloc plan;
    tarn_error e = TARN_ERROR_INIT;
    tarn_env *env = fail_alloc_env(&plan, 0);
    begin(&t, env, kind);
    atomic_store(&plan.count, 0);
    plan.fail_at = k;
    tarn_code code = run(&t, &outcome, &e);
    plan.fail_at = 0;
    bool failed = atomic_load(&plan.failed);
    if (code != TARN_OK && code != TARN_NOMEM && code != TARN_COMMIT_UNKNOWN) {
        fail_msg("allocation %llu failed: %s: %s", (unsigned long long)k, tarn_code_name(code),
                 e.message);
    }
    check(&t, "allocation", (int64_t)k, code, &outcome);
    case_done(&t.c);
    fail_alloc_done(&plan, env);
    return failed;
}

static void test_delta_memory_faults(void **state) {
    (void)state;
    uint64_t seed = 7;
    uint64_t k = 1;
    while (strike_memory(k % 2 == 0 ? CASE_DIR_MEMORY : CASE_SQLITE_MEMORY, k)) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        k += k < 100 || test_every() ? 1 : 1 + (seed >> 40) % (k / 10);
    }
    assert_true(k > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_store_faults),
        cmocka_unit_test(test_delta_memory_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
