/* Goal: whatever allocation fails while a group is decided, every commit that was acknowledged is
 * in the table, none is there twice, and what failed can be sent again. Method: the k-th allocation
 * of a group fails, for every k until none does; then all is sent again. */
#include "fail_alloc.h"
#include "unit/write/commit/commit_case.h"

#include "service/group.h"

#define JOBS 5

typedef struct memory_case {
    table_case c;
    commit_index index;
    commit_group group;
    tarn_file files[JOBS];
    commit_request requests[JOBS];
    commit_job jobs[JOBS];
} memory_case;

static void make_jobs(memory_case *m) {
    static const char *const ids[JOBS] = {"c0", "c1", "c2", "c3", "c4"};
    static const char *const names[JOBS] = {"f0", "f1", "f2", "f3", "f4"};
    memset(m->jobs, 0, sizeof m->jobs);
    for (int i = 0; i < JOBS; i++) {
        m->files[i] = commit_file(&m->c, names[i], i, 10);
        m->requests[i] = commit_of(COMMIT_FAST_APPEND, &m->files[i], 1);
        m->requests[i].commit_id = ids[i];
        m->requests[i].share = i != 3; /* one of them for itself */
        m->jobs[i].request = &m->requests[i];
        m->jobs[i].next = i + 1 < JOBS ? &m->jobs[i + 1] : NULL;
    }
}

static int run_all(memory_case *m, bool again) {
    int committed = 0;
    group_run(&m->group, m->jobs);
    for (int i = 0; i < JOBS; i++) {
        tarn_code code = m->jobs[i].code;
        committed += code == TARN_OK;
        assert_true((m->jobs[i].version != NULL) == (code == TARN_OK));
        assert_true(code == TARN_OK ||
                    (!again && (code == TARN_NOMEM || code == TARN_COMMIT_UNKNOWN)));
        table_version_release(m->jobs[i].version);
        m->jobs[i].version = NULL;
    }
    return committed;
}

static void check_count(memory_case *m, int least, int most) {
    tarn_table_version *version = case_load(&m->c);
    const tarn_snapshot *head = metadata_current_snapshot(version->metadata);
    tarn_str text = STR("0");
    int64_t n = 0;
    if (head != NULL) {
        assert_true(properties_get(&head->summary, "total-data-files", &text));
    }
    assert_true(str_to_i64(text, &n));
    if (n < least || n > most) {
        fail_msg("%lld files, not %d to %d", (long long)n, least, most);
    }
    table_version_release(version);
}

static bool fail_at(uint64_t k) {
    static const char *const policy[] = {"tarn.expire-on-commit", "true",
                                         "history.expire.max-snapshot-age-ms", "0", NULL};
    fail_alloc plan;
    memory_case m;
    memset(&m, 0, sizeof m);
    tarn_env *env = fail_alloc_env(&plan, 0);
    case_open(&m.c, env, CASE_DIR_MEMORY);
    case_table(&m.c, 2, "p int, v string", "p", policy);
    commit_index_init(&m.index, env);
    m.group = (commit_group){env, m.c.catalog, &m.c.ident, &m.index, NULL, NULL, NULL};
    make_jobs(&m);
    atomic_store(&plan.count, 0);
    plan.fail_at = k;
    int committed = run_all(&m, false);
    plan.fail_at = 0;
    check_count(&m, committed, JOBS);
    make_jobs(&m);
    (void)run_all(&m, true);
    check_count(&m, JOBS, JOBS);
    table_version_release(m.group.known);
    commit_index_release(&m.index);
    case_done(&m.c);
    bool failed = atomic_load(&plan.failed);
    fail_alloc_done(&plan, env);
    return failed;
}

static void test_group_memory(void **state) {
    (void)state;
    for (uint64_t k = 1; fail_at(k); k++) {
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_group_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
