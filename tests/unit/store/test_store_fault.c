/* Goal: the fault store fails exactly the call it was asked to, before or after its effect; the
 * trace store counts.
 * Method: one flow of known calls, failed at each of them; B64 as a rule of sinks. */
#include "test.h"

#include "store/store.h"

static tarn_error err;
static int deaths;

static void note_death(void) {
    deaths++;
}

static tarn_code ignore_path(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *e) {
    (void)path;
    (void)info;
    (void)e;
    ++*(int *)ctx;
    return TARN_OK;
}

/* create write finish, stat, open read_at, list, remove: eight calls. */
static tarn_code flow(tarn_store *store) {
    tarn_env *env = store->env;
    tarn_buf buf;
    store_stat_info info;
    int n = 0;
    tarn_code code;
    buf_init(&buf, env, 0);
    TRY(store_put(store, STR("/a/b"), STORE_CREATE, STR("bytes"), &err));
    TRY(store_stat(store, STR("/a/b"), &info, &err));
    TRY(store_get(store, STR("/a/b"), 100, &buf, &err));
    TRY(store_list(store, STR("/a"), ignore_path, &n, &err));
    code = store_remove(store, STR("/a/b"), &err);
done:
    buf_release(&buf);
    return code;
}

static void fails_every_call_once(void **state) {
    (void)state;
    static const char *const CALLS[] = {"create", "write",   "finish", "stat",
                                        "open",   "read_at", "list",   "remove"};
    tarn_env *env = test_env();
    for (int after = 0; after <= 1; after++) {
        for (int k = 1; k <= 9; k++) {
            tarn_store *inner = NULL;
            tarn_store *store = NULL;
            store_fault_plan plan = {.fail_at = k, .after = after != 0, .code = TARN_DENIED};
            assert_ok(store_memory_new(env, &inner, &err));
            assert_ok(store_fault_new(inner, &plan, &store, &err));
            if (k == 9) {
                assert_ok(flow(store));
                assert_int_equal(plan.calls, 8);
            } else {
                assert_code(flow(store), TARN_DENIED);
                assert_string_equal(plan.last_call, CALLS[k - 1]);
                assert_int_equal(plan.calls, k);
                /* After finish the object is there only when the answer was what got lost; after
                 * remove it is gone only then. */
                bool there = k > 3 || (k == 3 && after);
                there = k == 8 ? !after : there;
                assert_int_equal(store_exists(inner, STR("/a/b")), there);
            }
            store_close(store);
        }
    }
    test_env_done(env);
}

static void keeps_failing_when_told(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    store_stat_info info;
    store_fault_plan plan = {.fail_at = 2, .fail_forever = true};
    assert_ok(store_memory_new(env, &store, &err));
    assert_ok(store_fault_new(store, &plan, &store, &err));
    assert_code(store_stat(store, STR("/x"), &info, &err), TARN_NOT_FOUND);
    assert_code(store_stat(store, STR("/x"), &info, &err), TARN_IO);
    assert_code(store_stat(store, STR("/x"), &info, &err), TARN_IO);
    plan.fail_at = 0;
    assert_code(store_stat(store, STR("/x"), &info, &err), TARN_NOT_FOUND);
    plan = (store_fault_plan){.fail_at = 1, .die = note_death};
    assert_code(store_remove(store, STR("/x"), &err), TARN_IO);
    assert_int_equal(deaths, 1);
    store_close(store);
    test_env_done(env);
}

/* B64: finish after a failed write is an error and shows nothing. */
static void finish_after_failed_write_fails(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    io_sink *sink = NULL;
    store_fault_plan plan = {0};
    assert_ok(store_memory_new(env, &store, &err));
    assert_ok(store_fault_new(store, &plan, &store, &err));
    for (int after = 0; after <= 1; after++) {
        plan = (store_fault_plan){.fail_at = 2, .after = after != 0};
        assert_ok(store_create(store, STR("/x"), STORE_CREATE, &sink, &err));
        assert_code(io_write(sink, "part", 4, &err), TARN_IO);
        assert_code(sink->finish(sink, &err), TARN_IO);
        assert_false(store_exists(store, STR("/x")));
    }
    store_close(store);
    test_env_done(env);
}

static void counts_calls(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    store_trace t = {0};
    assert_ok(store_memory_new(env, &store, &err));
    assert_ok(store_trace_new(store, &t, &store, &err));
    assert_ok(flow(store));
    assert_int_equal(t.opens, 1);
    assert_int_equal(t.reads, 1);
    assert_int_equal(t.read_bytes, 5);
    assert_int_equal(t.creates, 1);
    assert_int_equal(t.writes, 1);
    assert_int_equal(t.written_bytes, 5);
    assert_int_equal(t.stats, 1);
    assert_int_equal(t.lists, 1);
    assert_int_equal(t.removes, 1);
    store_close(store);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_every_call_once),
        cmocka_unit_test(keeps_failing_when_told),
        cmocka_unit_test(finish_after_failed_write_fails),
        cmocka_unit_test(counts_calls),
    };
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
