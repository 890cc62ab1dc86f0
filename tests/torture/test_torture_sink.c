/* Goal: a stream with a state reaches its end state exactly, whatever store call or allocation
 * fails: a job that failed is started again, goes on from the
 * sink's offsets, and no row is lost or doubled. Method: a job writes a fixed stream with a
 * checkpoint every two batches; its k-th call (table and state alike) fails, before or after its
 * effect; another job then runs to the end without faults. */
#include "fail_alloc.h"
#include "torture/sink_flows.h"

/* ---- failing calls ---- */

static void strike_all(const flow *f, case_kind kind, bool after) {
    bool reached = true;
    bool indexed = f->version > 2 || str_is(str_of(f->deletes), "position");
    int64_t step = test_every() ? (indexed ? 11 : 3) : indexed || kind != CASE_DIR_MEMORY ? 41 : 7;
    for (int64_t k = 1 + after; reached; k += step) {
        tarn_env *env = test_env();
        tarn_error e = TARN_ERROR_INIT;
        sink_case t;
        start_flow(&t, env, kind, f);
        t.c.plan.calls = 0;
        t.c.plan.struck = NULL;
        t.c.plan.after = after;
        t.c.plan.fail_at = k;
        tarn_code code = run_job(&t, f, &e);
        reached = t.c.plan.struck != NULL;
        t.c.plan.fail_at = 0;
        assert_true(reached || code == TARN_OK);
        assert_true(code == TARN_OK || e.message[0] != '\0');
        finish_flow(&t, f);
        sink_case_done(&t);
        test_env_done(env);
    }
}

static void test_store(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof FLOWS / sizeof FLOWS[0]; i++) {
        for (int after = 0; after < 2; after++) {
            strike_all(&FLOWS[i], CASE_DIR_MEMORY, after != 0);
        }
    }
    strike_all(&FLOWS[0], CASE_SQLITE_FILE, true);
    strike_all(&FLOWS[1], CASE_SQLITE_MEMORY, false);
}

/* ---- failing allocations ---- */

static void test_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof FLOWS / sizeof FLOWS[0]; i++) {
        bool failed = true;
        uint64_t step = test_every() ? (i < 2 ? 7 : 37) : i < 2 ? 97 : 397;
        for (uint64_t k = 1; failed; k += step) {
            fail_alloc plan;
            tarn_error e = TARN_ERROR_INIT;
            tarn_env *env = fail_alloc_env(&plan, 0);
            sink_case t;
            start_flow(&t, env, CASE_DIR_MEMORY, &FLOWS[i]);
            plan.fail_at = atomic_load(&plan.count) + k;
            tarn_code code = run_job(&t, &FLOWS[i], &e);
            failed = atomic_load(&plan.failed);
            plan.fail_at = 0;
            assert_true(failed || code == TARN_OK);
            if (code != TARN_OK && code != TARN_NOMEM && code != TARN_COMMIT_UNKNOWN) {
                fail_msg("%s, allocation %d: %s: %s", FLOWS[i].name, (int)k, tarn_code_name(code),
                         e.message);
            }
            finish_flow(&t, &FLOWS[i]);
            sink_case_done(&t);
            fail_alloc_done(&plan, env);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
