/* Goal: every task runs once, errors come back to whoever waits, nesting cannot deadlock, and a
 * failed or cancelled loop starts nothing more.
 * Method: the same cases with one, two and eight threads. */
#include "fail_alloc.h"

#include <stdatomic.h>

#include "base/pool.h"

static tarn_env *env_of(uint32_t threads) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.threads = threads;
    tarn_env *env = NULL;
    assert_ok(tarn_env_new(&options, &env, &err));
    return env;
}

static const uint32_t thread_counts[] = {1, 2, 8};
#define FOR_EACH_ENV(env)                                                                          \
    for (size_t t_ = 0; t_ < 3; t_++)                                                              \
        for (tarn_env *env = env_of(thread_counts[t_]); env != NULL; test_env_done(env), env = NULL)

typedef struct job {
    atomic_int *runs;
    int fail; /* code to return */
    int id;
} job;

static tarn_code run_job(void *ctx, tarn_error *err) {
    job *j = ctx;
    atomic_fetch_add(j->runs, 1);
    if (j->fail != 0) {
        return err_set(err, (tarn_code)j->fail, "job %d failed", j->id);
    }
    return TARN_OK;
}

static void test_tasks_run_once(void **state) {
    (void)state;
    FOR_EACH_ENV(env) {
        enum { COUNT = 200 };
        atomic_int runs;
        atomic_init(&runs, 0);
        static job jobs[COUNT];
        static pool_task tasks[COUNT];
        memset(tasks, 0, sizeof tasks);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < COUNT; i++) {
                jobs[i] = (job){&runs, i % 7 == 3 ? TARN_CONFLICT : 0, i};
                tasks[i].run = run_job;
                tasks[i].ctx = &jobs[i];
                pool_submit(env, &tasks[i]);
            }
            for (int i = COUNT - 1; i >= 0; i--) {
                tarn_error err = TARN_ERROR_INIT;
                char text[64];
                (void)snprintf(text, sizeof text, "job %d failed", i);
                assert_code(pool_wait(env, &tasks[i], &err), jobs[i].fail);
                assert_string_equal(err.message, jobs[i].fail ? text : "");
                assert_code(pool_wait(env, &tasks[i], NULL), jobs[i].fail);
            }
            assert_int_equal(atomic_load(&runs), COUNT * (round + 1));
        }
        pool_task never;
        memset(&never, 0, sizeof never);
        tarn_error err = TARN_ERROR_INIT;
        assert_code(pool_wait(env, &never, &err), TARN_INTERNAL);
    }
}

typedef struct loop {
    tarn_env *env;
    atomic_int runs;
    size_t fail_from; /* indexes from here on fail */
    size_t cancel_at;
    int depth;
} loop;

static tarn_code run_index(void *ctx, size_t index, tarn_error *err) {
    loop *l = ctx;
    atomic_fetch_add(&l->runs, 1);
    if (index >= l->cancel_at) {
        tarn_env_cancel(l->env);
    }
    if (index >= l->fail_from) {
        return err_set(err, TARN_CORRUPT, "index %zu", index);
    }
    return TARN_OK;
}

static void test_loops(void **state) {
    (void)state;
    FOR_EACH_ENV(env) {
        tarn_error err = TARN_ERROR_INIT;
        loop l = {.env = env, .fail_from = SIZE_MAX, .cancel_at = SIZE_MAX};
        assert_ok(pool_for(env, 0, run_index, &l, &err));
        assert_ok(pool_for(env, 1, run_index, &l, &err));
        assert_ok(pool_for(env, 1000, run_index, &l, &err));
        assert_int_equal(atomic_load(&l.runs), 1001);
        /* The lowest failing index is told: all below it were started before it. */
        for (int i = 0; i < 50; i++) {
            atomic_store(&l.runs, 0);
            l.fail_from = 10;
            assert_code(pool_for(env, 1000, run_index, &l, &err), TARN_CORRUPT);
            assert_string_equal(err.message, "index 10");
            assert_true(atomic_load(&l.runs) >= 11 && atomic_load(&l.runs) <= 11 + 8);
        }
        l.fail_from = SIZE_MAX;
        l.cancel_at = 20;
        atomic_store(&l.runs, 0);
        assert_code(pool_for(env, 1000, run_index, &l, &err), TARN_CANCELLED);
        /* Each thread runs at most one index from there on; some below may be cut off too. */
        assert_true(atomic_load(&l.runs) >= 1 && atomic_load(&l.runs) <= 20 + 8);
        atomic_store(&l.runs, 0);
        assert_code(pool_for(env, 10, run_index, &l, NULL), TARN_CANCELLED);
        assert_int_equal(atomic_load(&l.runs), 0);
        tarn_env_cancel_reset(env);
    }
}

static tarn_code run_nested(void *ctx, size_t index, tarn_error *err);

static tarn_code run_nested_task(void *ctx, tarn_error *err) {
    loop *l = ctx;
    return pool_for(l->env, 4, run_nested, l, err);
}

/* Loops in tasks in loops: index 0 of each level goes deeper by a task, index 1 by a loop. */
static tarn_code run_nested(void *ctx, size_t index, tarn_error *err) {
    loop *l = ctx;
    atomic_fetch_add(&l->runs, 1);
    if (l->depth == 0 || index > 1) {
        return TARN_OK;
    }
    loop inner = {.env = l->env, .depth = l->depth - 1};
    tarn_code code;
    if (index == 0) {
        pool_task task;
        memset(&task, 0, sizeof task);
        task.run = run_nested_task;
        task.ctx = &inner;
        pool_submit(l->env, &task);
        code = pool_wait(l->env, &task, err);
    } else {
        code = pool_for(l->env, 4, run_nested, &inner, err);
    }
    atomic_fetch_add(&l->runs, atomic_load(&inner.runs));
    return code;
}

static void test_nesting(void **state) {
    (void)state;
    FOR_EACH_ENV(env) {
        tarn_error err = TARN_ERROR_INIT;
        for (int i = 0; i < 20; i++) {
            loop l = {.env = env, .depth = 5};
            assert_ok(pool_for(env, 4, run_nested, &l, &err));
            assert_int_equal(atomic_load(&l.runs), 4 * 63); /* 4 * (1 + 2 + ... + 32) */
        }
    }
}

static tarn_code run_parent(void *ctx, tarn_error *err) {
    loop *l = ctx;
    static const size_t children = 3;
    pool_task tasks[3];
    job jobs[3];
    memset(tasks, 0, sizeof tasks);
    for (size_t i = 0; i < children; i++) {
        jobs[i] = (job){&l->runs, 0, 0};
        tasks[i].run = run_job;
        tasks[i].ctx = &jobs[i];
        pool_submit(l->env, &tasks[i]);
    }
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < children; i++) {
        tarn_code one = pool_wait(l->env, &tasks[i], err);
        code = code == TARN_OK ? one : code;
    }
    return code;
}

static void test_many_waiting_parents(void **state) {
    (void)state;
    FOR_EACH_ENV(env) {
        enum { COUNT = 2000 };
        static pool_task tasks[COUNT];
        memset(tasks, 0, sizeof tasks);
        loop l = {.env = env};
        tarn_error err = TARN_ERROR_INIT;
        for (int i = 0; i < COUNT; i++) {
            tasks[i].run = run_parent;
            tasks[i].ctx = &l;
            pool_submit(env, &tasks[i]);
        }
        for (int i = 0; i < COUNT; i++) {
            assert_ok(pool_wait(env, &tasks[i], &err));
        }
        assert_int_equal(atomic_load(&l.runs), COUNT * 3);
    }
}

static tarn_code run_allocating(void *ctx, size_t index, tarn_error *err) {
    tarn_env *env = ctx;
    void *p = env_alloc(env, 1000 + index);
    if (p == NULL) {
        return err_nomem(err);
    }
    env_free(env, p);
    return TARN_OK;
}

static void test_allocation_failures_inside_loops(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        for (uint64_t k = 1; k <= 101; k++) {
            fail_alloc plan;
            tarn_error err = TARN_ERROR_INIT;
            tarn_env *env = fail_alloc_env_threads(&plan, k, threads);
            tarn_code code = pool_for(env, 100, run_allocating, env, &err);
            assert_int_equal(code, k <= 100 ? TARN_NOMEM : TARN_OK);
            fail_alloc_done(&plan, env);
        }
    }
}

typedef struct waits {
    _Atomic int runs[100];
    size_t fail_from;
} waits;

static tarn_code run_waiting(void *ctx, size_t index, tarn_error *err) {
    waits *w = ctx;
    atomic_fetch_add(&w->runs[index], 1);
    return index < w->fail_from ? TARN_OK : err_set(err, TARN_IO, "index %zu", index);
}

/* Every index runs once, failures or not; the lowest failing one is told. */
static void test_blocking(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 2, 17, 100};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t fail_from = 0; fail_from <= counts[i]; fail_from += 1 + counts[i] / 3) {
            tarn_error err = TARN_ERROR_INIT;
            waits w;
            memset(&w, 0, sizeof w);
            w.fail_from = fail_from;
            tarn_code code = pool_for_blocking(counts[i], run_waiting, &w, &err);
            assert_int_equal(code, fail_from < counts[i] ? TARN_IO : TARN_OK);
            if (code != TARN_OK) {
                char want[32];
                (void)snprintf(want, sizeof want, "index %zu", fail_from);
                assert_string_equal(err.message, want);
            }
            for (size_t k = 0; k < 100; k++) {
                assert_int_equal(atomic_load(&w.runs[k]), k < counts[i]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_run_once),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_many_waiting_parents),
        cmocka_unit_test(test_allocation_failures_inside_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
