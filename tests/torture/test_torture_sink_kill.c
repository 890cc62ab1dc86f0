/* Goal: a stream with a state reaches its end state exactly, wherever its process is killed.
 * Method: a child writes a fixed stream with a checkpoint every two batches, and dies by SIGKILL at
 * its 1st, 2nd, ... store call (table and state alike); another child then goes on from the sink's
 * offsets to the end and reads the table. The parent opens no key index: its threads would not be
 * there in the children. */
#include "torture/sink_flows.h"

#include <signal.h>
#include <sys/wait.h>

static tarn_error err;

static void die_now(void) {
    (void)raise(SIGKILL);
}

/* In a child: another process, with everything of its own. k 0: it is not killed, and looks at the
 * end. */
static int run_child(const sink_case *t, const flow *f, int64_t k, bool after) {
    tarn_error e = TARN_ERROR_INIT;
    sink_case child = *t;
    tarn_env *env = NULL;
    memset(&child.c.plan, 0, sizeof child.c.plan);
    child.c.catalog = NULL;
    if (!f->shared) {
        child.options.state_dir = str_of(child.state_dir);
    }
    if (tarn_env_new(NULL, &env, &e) != TARN_OK) {
        return 2;
    }
    child.c.env = env;
    if (case_connect(&child.c, &e) != TARN_OK) {
        return 3;
    }
    child.c.plan.die = die_now;
    child.c.plan.after = after;
    child.c.plan.fail_at = k;
    if (run_job(&child, f, &e) != TARN_OK) {
        (void)fprintf(stderr, "%s\n", e.message);
        return 4;
    }
    if (k == 0) {
        finish_flow(&child, f);
    }
    return 0;
}

static int fork_child(const sink_case *t, const flow *f, int64_t k, bool after) {
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(run_child(t, f, k, after));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* False when the child came to its end. */
static bool kill_once(const flow *f, case_kind kind, int64_t k, bool after) {
    tarn_env *env = test_env();
    sink_case t;
    start_flow(&t, env, kind, f);
    catalog_close(t.c.catalog);
    t.c.catalog = NULL;
    int status = fork_child(&t, f, k, after);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed && status != 0) {
        fail_msg("%s: the child ended with %d instead of dying at call %lld", f->name, status,
                 (long long)k);
    }
    status = fork_child(&t, f, 0, false);
    if (status != 0) {
        fail_msg("%s, killed at call %lld: the next job ended with %d", f->name, (long long)k,
                 status);
    }
    memset(&t.c.plan, 0, sizeof t.c.plan);
    assert_ok(case_connect(&t.c, &err));
    sink_case_done(&t);
    test_env_done(env);
    return killed;
}

/* A call that fails by itself (a stat of what is not there) has no after, so only a child that is
 * to die before a call shows where the calls end. */
static void kill_all(size_t i, case_kind kind) {
    int64_t step = test_every() ? 1 : 17;
    bool more = true;
    for (int64_t k = 1 + (int64_t)i; more; k += step) {
        (void)kill_once(&FLOWS[i], kind, k, true);
        more = kill_once(&FLOWS[i], kind, k, false);
    }
}

static void test_kill_append(void **state) {
    (void)state;
    kill_all(0, CASE_SQLITE_FILE);
    kill_all(0, CASE_DIR_FILE);
}

static void test_kill_equality(void **state) {
    (void)state;
    kill_all(1, CASE_DIR_FILE);
}

static void test_kill_indexed(void **state) {
    (void)state;
    kill_all(2, CASE_SQLITE_FILE);
    kill_all(3, CASE_SQLITE_FILE);
}

static void test_kill_shared(void **state) {
    (void)state;
    kill_all(4, CASE_SQLITE_FILE);
    kill_all(5, CASE_DIR_FILE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_append),
        cmocka_unit_test(test_kill_equality),
        cmocka_unit_test(test_kill_indexed),
        cmocka_unit_test(test_kill_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
