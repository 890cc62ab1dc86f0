/* Goal: whatever store call fails, once, before or after its effect: the table is the old or the
 * new version as the outcome says, nothing is half visible, no file is left that the table does not
 * name (but where its removal failed, or the fate is not known), and the next commit works.
 * Method: each operation is repeated with its 1st, 2nd, ... call failing until none does, on every
 * catalog and store. */
#include "torture/operations.h"

static tarn_error err;

#define MAX_CALLS 2000

typedef enum verdict { VERDICT_OLD, VERDICT_NEW, VERDICT_EITHER } verdict;

static verdict verdict_of(tarn_code code, const commit_outcome *outcome) {
    if (outcome->kind == TARN_COMMITTED) {
        assert_code(code, TARN_OK);
        return VERDICT_NEW;
    }
    if (outcome->kind == TARN_OUTCOME_UNKNOWN) {
        assert_code(code, TARN_COMMIT_UNKNOWN);
        return VERDICT_EITHER;
    }
    assert_true(code != TARN_OK && code != TARN_COMMIT_UNKNOWN);
    return VERDICT_OLD;
}

/* ---- the loop ---- */

static void check_orphans(fault_run *r, const char *name, int64_t k, verdict v) {
    char first[256] = "";
    int found = case_count_orphans(&r->c, first);
    const char *struck = r->c.plan.struck != NULL ? r->c.plan.struck : "";
    /* a dir catalog lists, and reads its new document again, before it removes old ones; one that
     * is cancelled at any call before does not read */
    bool reads =
        strcmp(struck, "open") == 0 || strcmp(struck, "read_at") == 0 || r->c.plan.die != NULL;
    bool old = reads && v == VERDICT_NEW && !case_is_sqlite(r->c.kind);
    bool may = v == VERDICT_EITHER || strcmp(struck, "remove") == 0 ||
               strcmp(struck, "list_folder") == 0 || old;
    if (found > r->orphans && !may) {
        fail_msg("%s on %d, call %lld (%s) failed %s its effect (%d): orphan %s", name,
                 (int)r->c.kind, (long long)k, r->c.plan.struck, r->after ? "after" : "before",
                 (int)v, first);
    }
    r->orphans = found;
}

static void check_rows(fault_run *r, const char *name, int64_t k, verdict v) {
    bool is_new = v != VERDICT_OLD && shows(r, r->new);
    if (!is_new && (v == VERDICT_NEW || !shows(r, r->old))) {
        fail_msg("%s on %d, call %lld (%s) failed %s its effect: the table is not as was said (%d)",
                 name, (int)r->c.kind, (long long)k, r->c.plan.struck,
                 r->after ? "after" : "before", (int)v);
    }
    if (is_new) {
        (void)snprintf(r->old, sizeof r->old, "%s", r->new);
    }
}

/* True while the k-th call was reached. */
static bool strike_once(fault_run *r, const operation *op, int64_t k) {
    commit_outcome outcome;
    tarn_error e = TARN_ERROR_INIT;
    memset(&outcome, 0, sizeof outcome);
    op->prepare(r);
    r->c.plan.struck = NULL;
    r->c.plan.after = r->after;
    r->c.plan.fail_at = k;
    tarn_code code = op->run(r, &outcome, &e);
    r->c.plan.fail_at = 0;
    bool reached = r->c.plan.struck != NULL;
    verdict v = verdict_of(code, &outcome);
    assert_true(code == TARN_OK || e.message[0] != '\0');
    assert_true(reached || v == VERDICT_NEW);
    check_rows(r, op->name, k, v);
    check_orphans(r, op->name, k, v);
    r->next_id++;
    /* the next commit works */
    if (v != VERDICT_OLD) {
        op->prepare(r);
    } else if (op->run == run_append || op->run == run_merge) {
        prepare_append(r);
    }
    assert_ok(op->run(r, &outcome, &err));
    (void)snprintf(r->old, sizeof r->old, "%s", r->new);
    assert_true(shows(r, r->old));
    r->next_id++;
    return reached;
}

/* On files, where each call costs more and is the same call, every fifth is struck unless all are
 * to be. */
static void strike_all(case_kind kind, const operation *op, bool after) {
    fault_run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    tarn_env *env = test_env();
    int64_t step = case_is_file(kind) && !test_every() ? 5 : 1;
    int64_t n = 0;
    int64_t k = 1 + after;
    case_open(&r->c, env, kind);
    r->version = op->version;
    r->after = after;
    do {
        if (n++ % PER_TABLE == 0) {
            fresh_table(r, k);
        }
        k += step;
        assert_true(k < MAX_CALLS);
    } while (strike_once(r, op, k - step));
    assert_true(n > 5);
    case_done(&r->c);
    test_env_done(env);
    free(r);
}

static void on_all(const operation *op) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        strike_all((case_kind)kind, op, false);
        strike_all((case_kind)kind, op, true);
    }
}

static void test_store_append(void **state) {
    (void)state;
    on_all(&OPERATIONS[0]);
}

static void test_store_merge(void **state) {
    (void)state;
    on_all(&OPERATIONS[1]);
}

static void test_store_overwrite(void **state) {
    (void)state;
    on_all(&OPERATIONS[2]);
}

static void test_store_delete(void **state) {
    (void)state;
    on_all(&OPERATIONS[3]);
}

/* In memory alone: what a store of files adds is seen with the others. */
static void in_memory(const operation *op) {
    for (int after = 0; after < 2; after++) {
        strike_all(CASE_DIR_MEMORY, op, after == 1);
        strike_all(CASE_SQLITE_MEMORY, op, after == 1);
    }
}

static void test_store_update(void **state) {
    (void)state;
    in_memory(&OPERATIONS[4]);
}

static void test_store_update_vectors(void **state) {
    (void)state;
    in_memory(&OPERATIONS[5]);
}

/* ---- cancelled at a call ---- */

static tarn_env *to_cancel;

static void cancel_now(void) {
    tarn_env_cancel(to_cancel);
}

/* The call fails, and so does every later one but removals: what was begun cleans up after itself.
 */
static bool cancel_once(fault_run *r, const operation *op, int64_t k) {
    commit_outcome outcome;
    tarn_error e = TARN_ERROR_INIT;
    memset(&outcome, 0, sizeof outcome);
    op->prepare(r);
    r->c.plan.struck = NULL;
    r->c.plan.after = r->after;
    r->c.plan.code = TARN_CANCELLED;
    r->c.plan.die = cancel_now;
    r->c.plan.fail_at = k;
    to_cancel = r->c.env;
    tarn_code code = op->run(r, &outcome, &e);
    tarn_env_cancel_reset(r->c.env);
    r->c.plan.fail_at = 0;
    r->c.plan.code = TARN_OK;
    bool reached = r->c.plan.struck != NULL;
    verdict v = verdict_of(code, &outcome);
    assert_true(code == TARN_OK || code == TARN_CANCELLED || code == TARN_COMMIT_UNKNOWN);
    check_rows(r, op->name, k, v);
    check_orphans(r, op->name, k, v);
    r->c.plan.die = NULL;
    r->next_id++;
    return reached;
}

static void test_store_cancelled(void **state) {
    (void)state;
    for (int i = 0; i < 24; i++) {
        fault_run *r = calloc(1, sizeof *r);
        assert_non_null(r);
        tarn_env *env = test_env();
        case_open(&r->c, env, i / 2 % 2 == 0 ? CASE_DIR_MEMORY : CASE_SQLITE_MEMORY);
        r->version = OPERATIONS[i / 4].version;
        r->after = i % 2 == 1;
        int64_t k = 1;
        do {
            if (k % PER_TABLE == 1) {
                fresh_table(r, k);
            }
        } while (cancel_once(r, &OPERATIONS[i / 4], k++));
        assert_true(k > 10);
        case_done(&r->c);
        test_env_done(env);
        free(r);
    }
}

/* ---- create, scan ---- */

static tarn_code count_object(void *ctx, tarn_str path, const store_stat_info *info,
                              tarn_error *e) {
    (void)path;
    (void)info;
    (void)e;
    ++*(int *)ctx;
    return TARN_OK;
}

static bool create_once(table_case *c, int64_t k, bool after) {
    tarn_error e = TARN_ERROR_INIT;
    tarn_table_version *version = NULL;
    int before = 0;
    int now = 0;
    assert_ok(store_list(c->catalog->store, str_of(c->warehouse), count_object, &before, &err));
    c->plan.struck = NULL;
    c->plan.after = after;
    c->plan.fail_at = k;
    tarn_code code = case_create(c, 2, "id int", NULL, NULL, &e);
    c->plan.fail_at = 0;
    bool reached = c->plan.struck != NULL;
    assert_true(reached || code == TARN_OK);
    tarn_code loaded = catalog_load(c->catalog, &c->ident, &version, &err);
    table_version_release(version);
    memset(&err, 0, sizeof err);
    err.struct_size = sizeof err;
    if (code != TARN_COMMIT_UNKNOWN) {
        assert_code(loaded, code == TARN_OK ? TARN_OK : TARN_NOT_FOUND);
    }
    assert_ok(store_list(c->catalog->store, str_of(c->warehouse), count_object, &now, &err));
    if (loaded == TARN_NOT_FOUND && code != TARN_COMMIT_UNKNOWN &&
        strcmp(c->plan.struck, "remove") != 0 && now != before) {
        fail_msg("create on %d, call %lld (%s): %d files left", (int)c->kind, (long long)k,
                 c->plan.struck, now - before);
    }
    if (loaded == TARN_NOT_FOUND) {
        assert_ok(case_create(c, 2, "id int", NULL, NULL, &err));
    }
    assert_ok(catalog_drop(c->catalog, &c->ident, &err));
    return reached;
}

static void test_store_create(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS * 2; kind++) {
        tarn_env *env = test_env();
        table_case c;
        char name[16];
        case_open(&c, env, (case_kind)(kind / 2));
        int64_t k = 0;
        do {
            k++;
            (void)snprintf(name, sizeof name, "t%d", (int)k);
            c.ident.name = str_of(name);
        } while (create_once(&c, k, kind % 2 == 1));
        assert_true(k > 2);
        case_done(&c);
        test_env_done(env);
    }
}

/* A scan with a failing call fails, or gives all rows (a call whose failure does not matter). */
static void test_store_scan(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        table_case c;
        bool reached = true;
        case_open(&c, env, (case_kind)kind);
        case_table(&c, 2, "id int not null, day int", "day", NULL);
        case_append(&c, "{\"id\":1,\"day\":1}\n{\"id\":2,\"day\":2}\n");
        case_append(&c, "{\"id\":3,\"day\":1}\n");
        for (int64_t k = 1; reached; k++) {
            tarn_buf buf;
            tarn_error e = TARN_ERROR_INIT;
            scan_options options = case_scan_options();
            buf_init(&buf, env, 0);
            c.plan.struck = NULL;
            c.plan.fail_at = k;
            tarn_code code = case_scan(&c, &options, "id > 0", &buf, NULL, &e);
            c.plan.fail_at = 0;
            reached = c.plan.struck != NULL;
            if (code == TARN_OK) {
                tarn_arena arena;
                arena_init(&arena, env);
                assert_string_equal(
                    case_sorted(&arena, buf_str(&buf)),
                    "{\"id\":1,\"day\":1}\n{\"id\":2,\"day\":2}\n{\"id\":3,\"day\":1}\n");
                arena_release(&arena);
            } else {
                assert_code(code, TARN_IO);
                assert_true(reached && e.message[0] != '\0');
            }
            buf_release(&buf);
        }
        case_done(&c);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_create),    cmocka_unit_test(test_store_scan),
        cmocka_unit_test(test_store_append),    cmocka_unit_test(test_store_merge),
        cmocka_unit_test(test_store_overwrite), cmocka_unit_test(test_store_delete),
        cmocka_unit_test(test_store_update),    cmocka_unit_test(test_store_update_vectors),
        cmocka_unit_test(test_store_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
