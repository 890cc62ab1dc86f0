/* Goal: each kind of commit makes the snapshot that the spec asks for, and leaves no file that the
 * table does not name.
 * Method: made-up files on every catalog and store, both format versions; manifests told as text.
 */
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define SCHEMA "p int, v string"

typedef void (*story)(table_case *c, int32_t version);

static void on_all_kinds(story tell, const char *partition_by, const char *const *properties) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 1; version <= 2; version++) {
            tarn_env *env = test_env();
            table_case c;
            case_open(&c, env, (case_kind)kind);
            case_table(&c, version, SCHEMA, partition_by, properties);
            tell(&c, version);
            case_check_files(&c, 0);
            case_done(&c);
            test_env_done(env);
        }
    }
}

static void run(table_case *c, const commit_request *r) {
    commit_outcome outcome;
    assert_ok(commit_now(c, c->catalog, r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 1);
}

static tarn_entry entry_of(tarn_file f) {
    tarn_entry e;
    memset(&e, 0, sizeof e);
    e.file = f;
    return e;
}

/* ---- append ---- */

static void tell_append(table_case *c, int32_t version) {
    static const char *const first[] = {"operation",
                                        "append",
                                        "added-data-files",
                                        "2",
                                        "added-records",
                                        "30",
                                        "total-records",
                                        "30",
                                        "total-data-files",
                                        "2",
                                        "changed-partition-count",
                                        "2",
                                        "total-delete-files",
                                        "0",
                                        "deleted-data-files",
                                        NULL,
                                        NULL};
    static const char *const second[] = {
        "operation", "append", "added-records", "10", "total-records", "40", "total-data-files",
        "3",         "mine",   "yes",           NULL};
    tarn_file files[2] = {commit_file(c, "f1", 1, 10), commit_file(c, "f2", INT32_MIN, 20)};
    commit_request r = commit_of(COMMIT_FAST_APPEND, files, 2);
    state_check(c, "main", "");
    run(c, &r);
    state_check(c, "main", version == 1 ? "0/0 2 0 0: +f1@0 +f2@0\n" : "1/1 2 0 0: +f1@1 +f2@1\n");
    state_check_summary(c, first);
    tarn_file third = commit_file(c, "f3", 1, 10);
    const tarn_property extra = {STR("mine"), STR("yes")};
    r = commit_of(COMMIT_FAST_APPEND, &third, 1);
    r.summary = (tarn_properties){1, &extra};
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f3@0\n0/0 2 0 0: +f1@0' +f2@0'\n"
                             : "2/2 1 0 0: +f3@2\n1/1 2 0 0: +f1@1' +f2@1'\n");
    state_check_summary(c, second);
    tarn_table_version *v = case_load(c);
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    assert_int_equal(v->metadata->last_sequence_number, version == 1 ? 0 : 2);
    assert_int_equal(s->parent_id, v->metadata->snapshots[0]->snapshot_id);
    assert_true(s->timestamp_ms > v->metadata->snapshots[0]->timestamp_ms);
    assert_int_equal(v->metadata->n_snapshot_log, 2);
    table_version_release(v);
}

static void test_commit_append(void **state) {
    (void)state;
    on_all_kinds(tell_append, "p", NULL);
}

/* Nothing to do makes no snapshot. */
static void tell_nothing(table_case *c, int32_t version) {
    commit_outcome outcome;
    (void)version;
    commit_request r = commit_of(COMMIT_FAST_APPEND, NULL, 0);
    assert_ok(commit_now(c, c->catalog, &r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    assert_int_equal(outcome.snapshot_id, TARN_NO_SNAPSHOT);
    r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    assert_ok(commit_now(c, c->catalog, &r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    state_check(c, "main", "");
}

static void test_commit_nothing(void **state) {
    (void)state;
    on_all_kinds(tell_nothing, NULL, NULL);
}

static void tell_merge(table_case *c, int32_t version) {
    const char *names[] = {"f1", "f2", "f3", "f4", "f5"};
    for (int i = 0; i < 5; i++) {
        tarn_file f = commit_file(c, names[i], i, 10);
        commit_request r = commit_of(COMMIT_MERGE_APPEND, &f, 1);
        run(c, &r);
        if (i == 1) {
            state_check(c, "main",
                        version == 1 ? "0/0 1 0 0: +f2@0\n0/0 1 0 0: +f1@0'\n"
                                     : "2/2 1 0 0: +f2@2\n1/1 1 0 0: +f1@1'\n");
        }
    }
    /* merged at the third, then two more */
    state_check(c, "main",
                version == 1 ? "0/0 1 4 0: +f5@0 =f4@0' =f3@0' =f2@0' =f1@0'\n"
                             : "5/1 1 4 0: +f5@5 =f4@4' =f3@3' =f2@2' =f1@1'\n");
}

static void test_commit_merge_append(void **state) {
    (void)state;
    static const char *const properties[] = {"commit.manifest.min-count-to-merge", "3", NULL};
    on_all_kinds(tell_merge, "p", properties);
}

/* "3 200": how many files each manifest of main has. */
static void manifests_check(table_case *c, const char *want) {
    tarn_table_version *v = case_load(c);
    const tarn_manifest *list;
    int32_t n;
    io_source *source;
    tarn_arena arena;
    tarn_buf out;
    arena_init(&arena, c->env);
    buf_init(&out, c->env, 0);
    tarn_str path = metadata_current_snapshot(v->metadata)->manifest_list;
    assert_ok(store_open(c->catalog->store, path, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &list, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        assert_ok(buf_printf(&out, &err, i > 0 ? " %d" : "%d",
                             list[i].added_files + list[i].existing_files));
    }
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
    arena_release(&arena);
    table_version_release(v);
}

static void append_many(table_case *c, commit_kind kind, int n) {
    tarn_file files[200];
    for (int i = 0; i < n; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "file-%d-%d", i, i * 7919);
        files[i] = commit_file(c, name, 1, 1);
    }
    commit_request r = commit_of(kind, files, n);
    run(c, &r);
}

/* A large manifest is not written again for the sake of a few small ones; it is when they have
 * grown to be as much. Small ones are joined as they come. */
static void tell_merge_large(table_case *c, int32_t version) {
    (void)version;
    append_many(c, COMMIT_FAST_APPEND, 200);
    append_many(c, COMMIT_MERGE_APPEND, 1);
    manifests_check(c, "1 200");
    append_many(c, COMMIT_MERGE_APPEND, 1);
    manifests_check(c, "200 2");
    append_many(c, COMMIT_MERGE_APPEND, 1);
    manifests_check(c, "200 3");
    append_many(c, COMMIT_MERGE_APPEND, 100);
    manifests_check(c, "200 100 3");
    append_many(c, COMMIT_MERGE_APPEND, 100);
    manifests_check(c, "403");
}

static void test_commit_merge_large(void **state) {
    (void)state;
    static const char *const properties[] = {"commit.manifest.min-count-to-merge",
                                             "3",
                                             "commit.manifest.target-size-bytes",
                                             "200000",
                                             "write.avro.compression-codec",
                                             "uncompressed",
                                             NULL};
    on_all_kinds(tell_merge_large, "p", properties);
}

/* Many files roll over several manifests. */
static void tell_roll(table_case *c, int32_t version) {
    tarn_file files[60];
    (void)version;
    for (int i = 0; i < 60; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "file-%d-%d", i, i * 7919);
        files[i] = commit_file(c, name, i, 1);
    }
    commit_request r = commit_of(COMMIT_FAST_APPEND, files, 60);
    run(c, &r);
    tarn_table_version *v = case_load(c);
    static const char *const summary[] = {"added-data-files", "60", "total-records", "60", NULL};
    state_check_summary(c, summary);
    table_version_release(v);
}

static void test_commit_manifests_roll(void **state) {
    (void)state;
    static const char *const properties[] = {"commit.manifest.target-size-bytes", "2000", NULL};
    on_all_kinds(tell_roll, "p", properties);
}

/* ---- removing ---- */

static void tell_delete(table_case *c, int32_t version) {
    static const char *const summary[] = {"operation",
                                          "delete",
                                          "deleted-data-files",
                                          "1",
                                          "deleted-records",
                                          "10",
                                          "total-records",
                                          "20",
                                          "total-data-files",
                                          "2",
                                          "added-records",
                                          NULL,
                                          NULL};
    tarn_file files[2] = {commit_file(c, "f1", 1, 10), commit_file(c, "f2", 2, 10)};
    commit_request r = commit_of(COMMIT_FAST_APPEND, files, 2);
    run(c, &r);
    commit_append_file(c, "f3", 3);
    tarn_entry gone = entry_of(files[0]);
    r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    r.removed = &gone;
    r.n_removed = 1;
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f3@0'\n0/0 0 1 1: -f1@0 =f2@0'\n"
                             : "2/2 1 0 0: +f3@2'\n3/1 0 1 1: -f1@1 =f2@1'\n");
    state_check_summary(c, summary);
    /* the last live file of a manifest, then one more commit: the spent manifest is let go */
    gone = entry_of(files[1]);
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f3@0'\n0/0 0 0 1: -f2@0\n"
                             : "2/2 1 0 0: +f3@2'\n4/4 0 0 1: -f2@1\n");
    gone = entry_of(commit_file(c, "f3", 3, 10));
    run(c, &r);
    state_check(c, "main", version == 1 ? "0/0 0 0 1: -f3@0\n" : "5/5 0 0 1: -f3@2\n");
    /* what is not there cannot be removed */
    commit_outcome outcome;
    assert_code(commit_now(c, c->catalog, &r, &outcome, &err), TARN_CONFLICT);
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    assert_int_equal(outcome.attempts, 1);
    assert_non_null(strstr(err.message, "f3"));
    err_reset(&err);
}

static void test_commit_delete_files(void **state) {
    (void)state;
    on_all_kinds(tell_delete, "p", NULL);
}

static void tell_overwrite(table_case *c, int32_t version) {
    tarn_arena arena;
    const tarn_expr *parsed;
    static const char *const summary[] = {"operation",
                                          "overwrite",
                                          "added-records",
                                          "5",
                                          "deleted-records",
                                          "10",
                                          "total-records",
                                          "15",
                                          "changed-partition-count",
                                          "2",
                                          NULL};
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    tarn_table_version *v = case_load(c);
    arena_init(&arena, c->env);
    tarn_file files[1] = {commit_file(c, "f3", 3, 5)};
    commit_request r = commit_of(COMMIT_OVERWRITE, files, 1);
    assert_ok(expr_parse(&arena, STR("p = 1"), &parsed, &err));
    assert_ok(expr_bind(&arena, parsed, metadata_schema(v->metadata)->root, true, &r.filter, &err));
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f3@0\n0/0 1 0 0: +f2@0'\n0/0 0 0 1: -f1@0\n"
                             : "3/3 1 0 0: +f3@3\n2/2 1 0 0: +f2@2'\n3/3 0 0 1: -f1@1\n");
    state_check_summary(c, summary);
    /* a file that may match in part is refused */
    commit_outcome outcome;
    tarn_file part = commit_file(c, "f4", 4, 5);
    r.added = &part;
    assert_ok(expr_parse(&arena, STR("v = 'x'"), &parsed, &err));
    assert_ok(expr_bind(&arena, parsed, metadata_schema(v->metadata)->root, true, &r.filter, &err));
    assert_code(commit_now(c, c->catalog, &r, &outcome, &err), TARN_CONFLICT);
    err_reset(&err);
    commit_remove(c, &part);
    arena_release(&arena);
    table_version_release(v);
}

static void test_commit_overwrite(void **state) {
    (void)state;
    on_all_kinds(tell_overwrite, "p", NULL);
}

static void tell_replace(table_case *c, int32_t version) {
    static const char *const summary[] = {
        "operation", "overwrite", "replace-partitions", "true", "total-data-files", "3", NULL};
    (void)version;
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    commit_append_file(c, "fnull", INT32_MIN);
    tarn_file files[2] = {commit_file(c, "f3", 2, 1), commit_file(c, "f4", INT32_MIN, 1)};
    commit_request r = commit_of(COMMIT_REPLACE_PARTITIONS, files, 2);
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 2 0 0: +f3@0 +f4@0\n0/0 0 0 1: -fnull@0\n0/0 0 0 1: -f2@0\n"
                               "0/0 1 0 0: +f1@0'\n"
                             : "4/4 2 0 0: +f3@4 +f4@4\n4/4 0 0 1: -fnull@3\n4/4 0 0 1: -f2@2\n"
                               "1/1 1 0 0: +f1@1'\n");
    state_check_summary(c, summary);
}

static void tell_replace_all(table_case *c, int32_t version) {
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    tarn_file f = commit_file(c, "f3", 2, 1);
    commit_request r = commit_of(COMMIT_REPLACE_PARTITIONS, &f, 1);
    run(c, &r);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f3@0\n0/0 0 0 1: -f2@0\n0/0 0 0 1: -f1@0\n"
                             : "3/3 1 0 0: +f3@3\n3/3 0 0 1: -f2@2\n3/3 0 0 1: -f1@1\n");
}

static void test_commit_replace_partitions(void **state) {
    (void)state;
    on_all_kinds(tell_replace, "p", NULL);
    on_all_kinds(tell_replace_all, NULL, NULL);
}

/* ---- branches ---- */

static void tell_branch(table_case *c, int32_t version) {
    commit_append_file(c, "f1", 1);
    tarn_file f = commit_file(c, "f2", 2, 1);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r.branch = STR("audit");
    run(c, &r); /* it begins at main's head */
    state_check(c, "main", version == 1 ? "0/0 1 0 0: +f1@0\n" : "1/1 1 0 0: +f1@1\n");
    state_check(c, "audit",
                version == 1 ? "0/0 1 0 0: +f2@0\n0/0 1 0 0: +f1@0'\n"
                             : "2/2 1 0 0: +f2@2\n1/1 1 0 0: +f1@1'\n");
    tarn_file g = commit_file(c, "f3", 2, 1);
    r.added = &g;
    run(c, &r);
    state_check(c, "audit",
                version == 1 ? "0/0 1 0 0: +f3@0\n0/0 1 0 0: +f2@0'\n0/0 1 0 0: +f1@0'\n"
                             : "3/3 1 0 0: +f3@3\n2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\n");
    tarn_table_version *v = case_load(c);
    const tarn_snapshot *head = metadata_head(v->metadata, STR("audit"));
    tarn_str total;
    assert_true(
        metadata_is_ancestor(v->metadata, head->snapshot_id, v->metadata->current_snapshot_id));
    assert_true(properties_get(&head->summary, "total-data-files", &total) && str_is(total, "3"));
    assert_ptr_equal(metadata_head(v->metadata, STR("other")),
                     metadata_current_snapshot(v->metadata));
    assert_int_equal(v->metadata->n_snapshot_log, 1); /* the log is main's */
    table_version_release(v);
}

static void test_commit_branch(void **state) {
    (void)state;
    on_all_kinds(tell_branch, "p", NULL);
}

typedef struct tag_making {
    tarn_change change;
} tag_making;

static tarn_code make_tag(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                          tarn_change_set *out, tarn_error *e) {
    tag_making *t = ctx;
    (void)arena;
    (void)e;
    memset(out, 0, sizeof *out);
    t->change.kind = CHANGE_SET_SNAPSHOT_REF;
    t->change.ref = (tarn_ref){STR("v1"), base->current_snapshot_id, true, -1, -1, -1};
    out->changes = &t->change;
    out->n_changes = 1;
    return TARN_OK;
}

static void tell_tag(table_case *c, int32_t version) {
    tag_making making = {0};
    commit_outcome outcome;
    (void)version;
    commit_append_file(c, "f1", 1);
    assert_ok(commit_changes(c->env, c->catalog, &c->ident, make_tag, &making, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.version->metadata->n_refs, 2);
    table_version_release(outcome.version);
    tarn_file f = commit_file(c, "f2", 2, 1);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r.branch = STR("v1");
    assert_code(commit_now(c, c->catalog, &r, &outcome, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "tag"));
    err_reset(&err);
    commit_remove(c, &f);
}

static void test_commit_tag(void **state) {
    (void)state;
    on_all_kinds(tell_tag, NULL, NULL);
}

/* ---- once only ---- */

static void tell_commit_id(table_case *c, int32_t version) {
    commit_outcome first, again;
    tarn_file f = commit_file(c, "f1", 1, 1);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r.commit_id = "checkpoint-7";
    assert_ok(commit_now(c, c->catalog, &r, &first, &err));
    commit_append_file(c, "f2", 2);
    assert_ok(commit_now(c, c->catalog, &r, &again, &err));
    assert_int_equal(again.kind, TARN_COMMITTED);
    assert_int_equal(again.snapshot_id, first.snapshot_id);
    state_check(c, "main",
                version == 1 ? "0/0 1 0 0: +f2@0\n0/0 1 0 0: +f1@0'\n"
                             : "2/2 1 0 0: +f2@2\n1/1 1 0 0: +f1@1'\n");
    /* looked for only where it can be; everywhere, where what it comes after is not there */
    tarn_table_version *v = case_load(c);
    const tarn_metadata *m = v->metadata;
    r.id_is_after = 12345;
    assert_int_equal(commit_find_id(m, &r)->snapshot_id, first.snapshot_id);
    r.id_is_after = metadata_current_snapshot(m)->snapshot_id;
    assert_null(commit_find_id(m, &r));
    r.id_is_after = first.snapshot_id;
    assert_null(commit_find_id(m, &r));
    table_version_release(v);
}

static void test_commit_id(void **state) {
    (void)state;
    on_all_kinds(tell_commit_id, NULL, NULL);
}

static void tell_refused(table_case *c, int32_t version) {
    commit_outcome outcome;
    (void)version;
    tarn_file f = commit_file(c, "f1", 1, 1);
    f.spec_id = 77;
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    assert_code(commit_now(c, c->catalog, &r, &outcome, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "77"));
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    err_reset(&err);
    commit_remove(c, &f);
}

static void test_commit_unknown_spec(void **state) {
    (void)state;
    on_all_kinds(tell_refused, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit_append),
        cmocka_unit_test(test_commit_nothing),
        cmocka_unit_test(test_commit_merge_append),
        cmocka_unit_test(test_commit_merge_large),
        cmocka_unit_test(test_commit_manifests_roll),
        cmocka_unit_test(test_commit_delete_files),
        cmocka_unit_test(test_commit_overwrite),
        cmocka_unit_test(test_commit_replace_partitions),
        cmocka_unit_test(test_commit_branch),
        cmocka_unit_test(test_commit_tag),
        cmocka_unit_test(test_commit_id),
        cmocka_unit_test(test_commit_unknown_spec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
