/* Goal: a process that is killed at any store call leaves the table as it was or as it was to be;
 * the next commit works, and no row is lost or doubled.
 * Method: a child makes one commit on a file store and dies by SIGKILL at its 1st, 2nd, ... call;
 * the parent, which holds nothing open meanwhile, then loads, reads and commits. */
#include "torture/operations.h"

#include <signal.h>
#include <sys/wait.h>

static tarn_error err;

static void die_now(void) {
    (void)raise(SIGKILL);
}

/* In the child: another process, with everything of its own. 0: it came to the end. */
static int run_child(fault_run *r, const operation *op, int64_t k) {
    commit_outcome outcome;
    tarn_error e = TARN_ERROR_INIT;
    fault_run child = *r;
    tarn_env *env = NULL;
    memset(&child.c.plan, 0, sizeof child.c.plan);
    child.c.catalog = NULL;
    if (tarn_env_new(NULL, &env, &e) != TARN_OK) {
        return 2;
    }
    child.c.env = env;
    if (case_connect(&child.c, &e) != TARN_OK) {
        return 3;
    }
    child.c.plan.die = die_now;
    child.c.plan.after = r->after;
    child.c.plan.fail_at = k;
    tarn_code code = op->run(&child, &outcome, &e);
    return code == TARN_OK && outcome.kind == TARN_COMMITTED ? 0 : 4;
}

static void disconnect(fault_run *r) {
    catalog_close(r->c.catalog);
    r->c.catalog = NULL;
}

static void connect_again(fault_run *r) {
    memset(&r->c.plan, 0, sizeof r->c.plan);
    assert_ok(case_connect(&r->c, &err));
}

/* False when the child was not killed: k is beyond its last call. */
static bool kill_once(fault_run *r, const operation *op, int64_t k) {
    int status = 0;
    commit_outcome outcome;
    op->prepare(r);
    disconnect(r);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(run_child(r, op, k));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    connect_again(r);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        fail_msg("the child ended with %d instead of dying at call %lld", status, (long long)k);
    }
    bool is_new = shows(r, r->new);
    if (!is_new && (!killed || !shows(r, r->old))) {
        fail_msg("%s killed at call %lld: the table is neither old nor new", op->name,
                 (long long)k);
    }
    (void)case_count_orphans(&r->c, (char[256]){0}); /* all that is named is there */
    if (is_new) {
        (void)snprintf(r->old, sizeof r->old, "%s", r->new);
        r->next_id++;
        op->prepare(r);
    }
    assert_ok(op->run(r, &outcome, &err));
    assert_true(shows(r, r->new));
    (void)snprintf(r->old, sizeof r->old, "%s", r->new);
    r->next_id++;
    return killed;
}

/* Before and after its effect by turns. A call that fails by itself (a stat of what is not there)
 * has no after, so only a child that is to die before a call shows where the calls end. */
static void kill_all(case_kind kind, const operation *op, int64_t step) {
    fault_run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    tarn_env *env = test_env();
    int64_t n = 0;
    int64_t k = 1;
    bool killed = true;
    case_open(&r->c, env, kind);
    r->version = op->version;
    while (killed) {
        if (n % PER_TABLE == 0) {
            fresh_table(r, k);
        }
        r->after = n++ % 2 == 1;
        killed = kill_once(r, op, k) || r->after;
        if (test_every()) {
            k += r->after; /* each call twice */
        } else {
            k += step;
        }
    }
    assert_true(n > 5);
    case_done(&r->c);
    test_env_done(env);
    free(r);
}

static void test_kill_append(void **state) {
    (void)state;
    kill_all(CASE_DIR_FILE, &OPERATIONS[0], 1);
    kill_all(CASE_SQLITE_FILE, &OPERATIONS[0], 1);
}

static void test_kill_merge(void **state) {
    (void)state;
    kill_all(CASE_SQLITE_FILE, &OPERATIONS[1], 2);
}

static void test_kill_overwrite(void **state) {
    (void)state;
    kill_all(CASE_DIR_FILE, &OPERATIONS[2], 2);
    kill_all(CASE_SQLITE_FILE, &OPERATIONS[2], 3);
}

static void test_kill_delete(void **state) {
    (void)state;
    kill_all(CASE_DIR_FILE, &OPERATIONS[3], 3);
}

static void test_kill_update(void **state) {
    (void)state;
    kill_all(CASE_DIR_FILE, &OPERATIONS[4], 3);
    kill_all(CASE_SQLITE_FILE, &OPERATIONS[5], 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_append),    cmocka_unit_test(test_kill_merge),
        cmocka_unit_test(test_kill_overwrite), cmocka_unit_test(test_kill_delete),
        cmocka_unit_test(test_kill_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
