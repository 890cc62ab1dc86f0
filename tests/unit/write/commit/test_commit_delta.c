/* Goal: row deltas make the snapshots that the spec asks for: delete files in delete manifests,
 * those that are replaced or reach nothing any more out of them, totals right, conflicts told.
 * Method: made-up files, manifests told as text. */
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define SCHEMA "p int, v string"

typedef void (*story)(table_case *c);

static void on_table(story tell, int32_t version, const char *partition_by,
                     const char *const *properties) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        table_case c;
        case_open(&c, env, (case_kind)kind);
        case_table(&c, version, SCHEMA, partition_by, properties);
        tell(&c);
        case_check_files(&c, 0);
        case_done(&c);
        test_env_done(env);
    }
}

static void run(table_case *c, const commit_request *r) {
    commit_outcome outcome;
    assert_ok(commit_now(c, c->catalog, r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 1);
}

static void refused(table_case *c, const commit_request *r, tarn_code want, const char *part) {
    commit_outcome outcome;
    assert_code(commit_now(c, c->catalog, r, &outcome, &err), want);
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    if (strstr(err.message, part) == NULL) {
        fail_msg("%s", err.message);
    }
    err_reset(&err);
}

static commit_request delta(const tarn_file *added, int32_t n, const tarn_file *deletes,
                            int32_t n_deletes) {
    commit_request r = commit_of(COMMIT_ROW_DELTA, added, n);
    r.added_deletes = deletes;
    r.n_added_deletes = n_deletes;
    return r;
}

/* ---- what is written ---- */

static void tell_upsert(table_case *c) {
    static const char *const first[] = {"operation", "append", "total-delete-files", "0", NULL};
    static const char *const second[] = {"operation",
                                         "overwrite",
                                         "added-data-files",
                                         "1",
                                         "added-delete-files",
                                         "2",
                                         "added-position-delete-files",
                                         "1",
                                         "added-equality-delete-files",
                                         "1",
                                         "added-position-deletes",
                                         "3",
                                         "added-equality-deletes",
                                         "4",
                                         "total-delete-files",
                                         "2",
                                         "total-position-deletes",
                                         "3",
                                         "total-equality-deletes",
                                         "4",
                                         "total-records",
                                         "20",
                                         "changed-partition-count",
                                         "1",
                                         "added-dvs",
                                         NULL,
                                         NULL};
    static const char *const third[] = {"operation",
                                        "delete",
                                        "removed-position-delete-files",
                                        "1",
                                        "removed-delete-files",
                                        "1",
                                        "removed-position-deletes",
                                        "3",
                                        "added-position-deletes",
                                        "5",
                                        "total-delete-files",
                                        "2",
                                        "total-position-deletes",
                                        "5",
                                        "total-equality-deletes",
                                        "4",
                                        NULL};
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    commit_request r = delta(&f1, 1, NULL, 0);
    run(c, &r);
    state_check_summary(c, first);
    tarn_file f2 = commit_file(c, "f2", 1, 10);
    tarn_file deletes[2] = {commit_position_file(c, "p1", &f1, 3),
                            commit_delete_file(c, "e1", TARN_CONTENT_EQUALITY_DELETES, 1, 4)};
    r = delta(&f2, 1, deletes, 2);
    run(c, &r);
    state_check(c, "main", "2/2 1 0 0: +f2@2\n1/1 1 0 0: +f1@1'\nD 2/2 2 0 0: +p1@2 +e1@2\n");
    state_check_summary(c, second);
    tarn_file p2 = commit_position_file(c, "p2", &f1, 5);
    tarn_entry old = commit_entry(deletes[0]);
    r = delta(NULL, 0, &p2, 1);
    r.removed_deletes = &old;
    r.n_removed_deletes = 1;
    run(c, &r);
    state_check(c, "main",
                "2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\nD 3/3 1 0 0: +p2@3\n"
                "D 3/2 0 1 1: -p1@2 =e1@2'\n");
    state_check_summary(c, third);
    refused(c, &r, TARN_CONFLICT, "p1");
}

static void test_delta_upsert(void **state) {
    (void)state;
    on_table(tell_upsert, 2, "p", NULL);
    on_table(tell_upsert, 2, NULL, NULL);
}

static void tell_vectors(table_case *c) {
    static const char *const summary[] = {"operation",
                                          "delete",
                                          "added-dvs",
                                          "1",
                                          "removed-dvs",
                                          "1",
                                          "added-position-delete-files",
                                          NULL,
                                          "total-delete-files",
                                          "2",
                                          "total-position-deletes",
                                          "6",
                                          NULL};
    tarn_file data[2] = {commit_file(c, "f1", 1, 10), commit_file(c, "f2", 1, 10)};
    commit_request r = delta(data, 2, NULL, 0);
    run(c, &r);
    tarn_file vectors[2] = {commit_vector(c, "v", &data[0], 4, 1),
                            commit_vector(c, "v", &data[1], 14, 2)};
    r = delta(NULL, 0, vectors, 2);
    run(c, &r);
    state_check(c, "main", "1/1 2 0 0: +f1@1' +f2@1'\nD 2/2 2 0 0: +v#4@2 +v#14@2\n");
    tarn_file next = commit_vector(c, "w", &data[0], 4, 4);
    tarn_entry old = commit_entry(vectors[0]);
    r = delta(NULL, 0, &next, 1);
    refused(c, &r, TARN_CONFLICT, "f1"); /* one vector a file */
    r.removed_deletes = &old;
    r.n_removed_deletes = 1;
    run(c, &r);
    state_check(c, "main",
                "1/1 2 0 0: +f1@1' +f2@1'\nD 3/3 1 0 0: +w#4@3\nD 3/2 0 1 1: -v#4@2 =v#14@2'\n");
    state_check_summary(c, summary);
    /* a data file that goes takes its vector along */
    tarn_entry gone = commit_entry(data[0]);
    r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    r.removed = &gone;
    r.n_removed = 1;
    run(c, &r);
    state_check(c, "main",
                "4/1 0 1 1: -f1@1 =f2@1'\nD 4/4 0 0 1: -w#4@3\nD 3/2 0 1 1: -v#4@2' =v#14@2'\n");
}

static void test_delta_vectors(void **state) {
    (void)state;
    on_table(tell_vectors, 3, "p", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_upsert),
        cmocka_unit_test(test_delta_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
