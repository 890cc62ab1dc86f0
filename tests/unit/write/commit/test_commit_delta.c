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

static int64_t head(table_case *c) {
    tarn_table_version *v = case_load(c);
    int64_t id = v->metadata->current_snapshot_id;
    table_version_release(v);
    return id;
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

/* A request that is wrong in itself. */
static void tell_refused(table_case *c) {
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    commit_request r = delta(&f1, 1, NULL, 0);
    run(c, &r);
    tarn_file vector = commit_vector(c, "v", &f1, 4, 1);
    r = delta(NULL, 0, &vector, 1);
    refused(c, &r, TARN_INVALID, "format version 3");
    commit_remove(c, &vector);
    tarn_file data = commit_file(c, "d", 1, 10);
    r = delta(NULL, 0, &data, 1);
    refused(c, &r, TARN_INVALID, "is a data file");
    commit_remove(c, &data);
    tarn_file e = commit_delete_file(c, "e", TARN_CONTENT_EQUALITY_DELETES, 1, 2);
    e.n_equality_ids = 0;
    r = delta(NULL, 0, &e, 1);
    refused(c, &r, TARN_INVALID, "no equality columns");
    commit_remove(c, &e);
    tarn_file p = commit_position_file(c, "p", &f1, 2);
    tarn_entry gone = commit_entry(f1);
    r = delta(NULL, 0, &p, 1);
    r.removed = &gone;
    r.n_removed = 1;
    r.referenced = &f1.path;
    r.n_referenced = 1;
    refused(c, &r, TARN_INVALID, "f1");
    commit_remove(c, &p);
}

static void tell_refused_v1(table_case *c) {
    commit_append_file(c, "f1", 1);
    tarn_file e = commit_delete_file(c, "e", TARN_CONTENT_EQUALITY_DELETES, 1, 2);
    commit_request r = delta(NULL, 0, &e, 1);
    refused(c, &r, TARN_INVALID, "format version 2");
    commit_remove(c, &e);
}

static void tell_refused_v3(table_case *c) {
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    commit_request r = delta(&f1, 1, NULL, 0);
    run(c, &r);
    tarn_file p = commit_position_file(c, "p", &f1, 2);
    r = delta(NULL, 0, &p, 1);
    refused(c, &r, TARN_INVALID, "vectors");
    commit_remove(c, &p);
    tarn_file vectors[2] = {commit_vector(c, "v", &f1, 4, 1), commit_vector(c, "v", &f1, 14, 2)};
    r = delta(NULL, 0, vectors, 2);
    refused(c, &r, TARN_INVALID, "two deletion vectors");
    commit_remove(c, &vectors[0]);
}

static void test_delta_refused(void **state) {
    (void)state;
    on_table(tell_refused, 2, "p", NULL);
    on_table(tell_refused_v1, 1, "p", NULL);
    on_table(tell_refused_v3, 3, "p", NULL);
}

/* Only partitions that may hold what goes are opened: the manifest of p = 2 keeps its name, and
 * nothing reads it. */
static void tell_pruned(table_case *c) {
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    tarn_file f2 = commit_file(c, "f2", 2, 10);
    tarn_file vectors[2] = {commit_vector(c, "v1", &f1, 4, 1), commit_vector(c, "v2", &f2, 4, 2)};
    const tarn_file *data[2] = {&f1, &f2};
    for (int i = 0; i < 2; i++) {
        commit_request r = delta(data[i], 1, &vectors[i], 1);
        run(c, &r);
    }
    tarn_file next = commit_vector(c, "w", &f1, 4, 4);
    tarn_entry old = commit_entry(vectors[0]);
    commit_request r = delta(NULL, 0, &next, 1);
    r.removed_deletes = &old;
    r.n_removed_deletes = 1;
    run(c, &r);
    state_check(c, "main",
                "2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\nD 3/3 1 0 0: +w#4@3\n"
                "D 3/3 0 0 1: -v1#4@1\nD 2/2 1 0 0: +v2#4@2'\n");
}

static void test_delta_pruned(void **state) {
    (void)state;
    on_table(tell_pruned, 3, "p", NULL);
}

/* ---- merging ---- */

static void tell_merge(table_case *c) {
    tarn_file last;
    for (int i = 1; i <= 3; i++) {
        char names[2][16];
        (void)snprintf(names[0], sizeof names[0], "f%d", i);
        (void)snprintf(names[1], sizeof names[1], "e%d", i);
        tarn_file f = commit_file(c, names[0], 1, 10);
        last = commit_delete_file(c, names[1], TARN_CONTENT_EQUALITY_DELETES, 1, 1);
        commit_request r = delta(&f, 1, &last, 1);
        r.merge = true;
        run(c, &r);
    }
    state_check(c, "main", "3/1 1 2 0: +f3@3 =f2@2' =f1@1'\nD 3/1 1 2 0: +e3@3 =e2@2' =e1@1'\n");
    /* what this commit rewrote is merged as it stands */
    tarn_file f4 = commit_file(c, "f4", 1, 10);
    tarn_file e4 = commit_delete_file(c, "e4", TARN_CONTENT_EQUALITY_DELETES, 1, 1);
    commit_request r = delta(&f4, 1, &e4, 1);
    tarn_entry old = commit_entry(last);
    r.removed_deletes = &old;
    r.n_removed_deletes = 1;
    run(c, &r);
    tarn_file e5 = commit_delete_file(c, "e5", TARN_CONTENT_EQUALITY_DELETES, 1, 1);
    tarn_entry gone = commit_entry(f4);
    old = commit_entry(e4);
    r = delta(NULL, 0, &e5, 1);
    r.removed = &gone;
    r.n_removed = 1;
    r.removed_deletes = &old;
    r.n_removed_deletes = 1;
    r.merge = true;
    r.from_snapshot_id = head(c);
    run(c, &r);
    state_check(c, "main",
                "5/1 0 3 1: -f4@4 =f3@3' =f2@2' =f1@1'\n"
                "D 5/1 1 2 1: +e5@5 -e4@4 =e2@2' =e1@1'\n");
}

static void test_delta_merge(void **state) {
    static const char *const properties[] = {"commit.manifest.min-count-to-merge", "2", NULL};
    (void)state;
    on_table(tell_merge, 2, "p", properties);
}

/* What a commit writes anew goes into one manifest where manifests are merged, and each for itself
 * where they are not; what holds nothing that goes stays as it is. */
static void tell_rewritten(table_case *c, bool merge, const char *want) {
    tarn_file data[4], vectors[4];
    tarn_entry old[2];
    for (int i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%d", i + 1);
        data[i] = commit_file(c, name, 1, 10);
        name[0] = 'v';
        vectors[i] = commit_vector(c, name, &data[i], 4, 1);
        commit_request r = delta(&data[i], 1, &vectors[i], 1);
        run(c, &r);
    }
    tarn_file next[2] = {commit_vector(c, "w", &data[0], 4, 2),
                         commit_vector(c, "w", &data[2], 14, 2)};
    old[0] = commit_entry(vectors[0]);
    old[1] = commit_entry(vectors[2]);
    commit_request r = delta(NULL, 0, next, 2);
    r.removed_deletes = old;
    r.n_removed_deletes = 2;
    r.merge = merge;
    run(c, &r);
    state_check(c, "main", want);
}

static void tell_rewritten_joined(table_case *c) {
    tell_rewritten(c, true,
                   "4/4 1 0 0: +f4@4'\n3/3 1 0 0: +f3@3'\n2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\n"
                   "D 5/5 2 0 0: +w#4@5 +w#14@5\nD 5/5 0 0 2: -v3#4@3 -v1#4@1\n"
                   "D 4/4 1 0 0: +v4#4@4'\nD 2/2 1 0 0: +v2#4@2'\n");
}

static void tell_rewritten_apart(table_case *c) {
    tell_rewritten(c, false,
                   "4/4 1 0 0: +f4@4'\n3/3 1 0 0: +f3@3'\n2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\n"
                   "D 5/5 2 0 0: +w#4@5 +w#14@5\nD 5/5 0 0 1: -v3#4@3\nD 5/5 0 0 1: -v1#4@1\n"
                   "D 4/4 1 0 0: +v4#4@4'\nD 2/2 1 0 0: +v2#4@2'\n");
}

static void test_delta_rewritten(void **state) {
    (void)state;
    on_table(tell_rewritten_joined, 3, "p", NULL);
    on_table(tell_rewritten_apart, 3, "p", NULL);
}

/* ---- what is dead, and what is not (B17) ---- */

typedef struct upgrade {
    tarn_change change;
} upgrade;

static tarn_code make_upgrade(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                              tarn_change_set *out, tarn_error *e) {
    upgrade *u = ctx;
    (void)arena;
    (void)base;
    (void)e;
    memset(out, 0, sizeof *out);
    out->changes = &u->change;
    out->n_changes = 1;
    return TARN_OK;
}

static void upgrade_to(table_case *c, int32_t version) {
    upgrade u = {{.kind = CHANGE_UPGRADE_FORMAT_VERSION, .number = version}};
    commit_outcome outcome;
    assert_ok(commit_changes(c->env, c->catalog, &c->ident, make_upgrade, &u, &outcome, &err));
    table_version_release(outcome.version);
}

/* Data of a version 1 table has sequence number 0, which is less than that of any delete. */
static void tell_sequence_zero(table_case *c) {
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    commit_append_file(c, "f3", 3);
    upgrade_to(c, 2);
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    tarn_file p1 = commit_position_file(c, "p1", &f1, 1);
    commit_request r = delta(NULL, 0, &p1, 1);
    run(c, &r);
    for (int32_t part = 3; part >= 2; part--) {
        tarn_entry gone = commit_entry(commit_file(c, part == 3 ? "f3" : "f2", part, 10));
        r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
        r.removed = &gone;
        r.n_removed = 1;
        run(c, &r);
    }
    state_check(c, "main", "3/3 0 0 1: -f2@0\n0/0 1 0 0: +f1@0'\nD 1/1 1 0 0: +p1@1'\n");
    tarn_entry gone = commit_entry(f1);
    r.removed = &gone;
    run(c, &r);
    state_check(c, "main", "4/4 0 0 1: -f1@0\nD 4/4 0 0 1: -p1@1\n");
}

/* Deletes that are older than all data go with the next commit that looks at what is there. */
static void tell_dead(table_case *c) {
    static const char *const summary[] = {"total-delete-files",
                                          "1",
                                          "total-equality-deletes",
                                          "7",
                                          "removed-equality-delete-files",
                                          "1",
                                          NULL};
    tarn_file f1 = commit_file(c, "f1", 1, 10);
    tarn_file e1 = commit_delete_file(c, "e1", TARN_CONTENT_EQUALITY_DELETES, 1, 5);
    commit_request r = delta(&f1, 1, NULL, 0);
    run(c, &r);
    r = delta(NULL, 0, &e1, 1);
    run(c, &r);
    tarn_file f2 = commit_file(c, "f2", 1, 10);
    tarn_entry gone = commit_entry(f1);
    r = commit_of(COMMIT_OVERWRITE, &f2, 1);
    r.from_snapshot_id = head(c);
    r.removed = &gone;
    r.n_removed = 1;
    run(c, &r);
    state_check(c, "main", "3/3 1 0 0: +f2@3\n3/3 0 0 1: -f1@1\nD 2/2 1 0 0: +e1@2'\n");
    tarn_file e2 = commit_delete_file(c, "e2", TARN_CONTENT_EQUALITY_DELETES, 1, 7);
    r = delta(NULL, 0, &e2, 1);
    run(c, &r);
    state_check(c, "main", "3/3 1 0 0: +f2@3'\nD 4/4 1 0 0: +e2@4\nD 4/4 0 0 1: -e1@2\n");
    state_check_summary(c, summary);
}

static void test_delta_dead_deletes(void **state) {
    (void)state;
    on_table(tell_sequence_zero, 1, "p", NULL);
    on_table(tell_dead, 2, "p", NULL);
}

/* A partition that is replaced loses its delete files too; others keep theirs. */
static void tell_replace(table_case *c) {
    tarn_file data[2] = {commit_file(c, "f1", 1, 10), commit_file(c, "f2", 2, 10)};
    commit_request r = delta(data, 2, NULL, 0);
    run(c, &r);
    tarn_file deletes[2] = {commit_delete_file(c, "e1", TARN_CONTENT_EQUALITY_DELETES, 1, 5),
                            commit_delete_file(c, "e2", TARN_CONTENT_EQUALITY_DELETES, 2, 5)};
    r = delta(NULL, 0, deletes, 2);
    run(c, &r);
    tarn_file f3 = commit_file(c, "f3", 1, 10);
    r = commit_of(COMMIT_REPLACE_PARTITIONS, &f3, 1);
    run(c, &r);
    state_check(c, "main",
                "3/3 1 0 0: +f3@3\n3/1 0 1 1: -f1@1 =f2@1'\nD 3/2 0 1 1: -e1@2 =e2@2'\n");
}

static void test_delta_replace_partitions(void **state) {
    (void)state;
    on_table(tell_replace, 2, "p", NULL);
}

/* ---- row ids (version 3) ---- */

/* "f1:0 f2:10 next 20": first row ids of the head's live data files, and the table's next one. */
static void ids_check(table_case *c, const char *want) {
    tarn_table_version *v = case_load(c);
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    tarn_arena arena;
    tarn_buf out;
    io_source *source;
    const tarn_manifest *manifests;
    int32_t n;
    arena_init(&arena, c->env);
    buf_init(&out, c->env, 0);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {.want = MANIFEST_WANT_REST, .live_only = true};
        manifest_entries entries;
        assert_true(manifests[i].is_deletes == (manifests[i].first_row_id < 0));
        assert_ok(
            store_open(c->catalog->store, manifests[i].path, manifests[i].length, &source, &err));
        assert_ok(
            manifest_read(&arena, source, v->metadata, &manifests[i], &options, &entries, &err));
        source->close(source);
        for (int64_t j = 0; j < entries.count && !manifests[i].is_deletes; j++) {
            tarn_str path = entries.items[j].file.path;
            size_t slash = 0;
            (void)str_find_last_char(path, '/', &slash);
            tarn_str name = str_from(path, slash + 1);
            name.len -= strlen(".parquet");
            assert_ok(buf_printf(&out, &err, "%.*s:%lld ", STR_ARG(name),
                                 (long long)entries.items[j].file.first_row_id));
        }
    }
    assert_int_equal(s->first_row_id + s->added_rows, v->metadata->next_row_id);
    assert_ok(buf_printf(&out, &err, "next %lld", (long long)v->metadata->next_row_id));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
    arena_release(&arena);
    table_version_release(v);
}

static void tell_row_ids(table_case *c) {
    tarn_file data[2] = {commit_file(c, "f1", 1, 10), commit_file(c, "f2", 2, 7)};
    data[0].first_row_id = 12345; /* never taken from a new file */
    commit_request r = commit_of(COMMIT_FAST_APPEND, data, 2);
    run(c, &r);
    ids_check(c, "f1:0 f2:10 next 17");
    commit_append_file(c, "f3", 1);
    ids_check(c, "f3:17 f1:0 f2:10 next 27");
    tarn_entry gone = commit_entry(data[0]);
    r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    r.removed = &gone;
    r.n_removed = 1;
    run(c, &r); /* the rewritten manifest gets a range that it does not need */
    ids_check(c, "f3:17 f2:10 next 34");
    tarn_file f4 = commit_file(c, "f4", 1, 3);
    tarn_file v = commit_vector(c, "v", &data[1], 4, 1);
    r = delta(&f4, 1, &v, 1);
    r.merge = true;
    run(c, &r);
    ids_check(c, "f4:34 f3:17 f2:10 next 54");
    /* removal and merge in one commit: what was rewritten keeps its ids */
    tarn_file f5 = commit_file(c, "f5", 1, 1);
    gone = commit_entry(commit_file(c, "f3", 1, 10));
    r = delta(&f5, 1, NULL, 0);
    r.removed = &gone;
    r.n_removed = 1;
    r.merge = true;
    run(c, &r);
    ids_check(c, "f5:54 f4:34 f2:10 next 65");
}

/* Files of before the upgrade get ids with the first commit after it. */
static void tell_row_ids_upgraded(table_case *c) {
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    upgrade_to(c, 3);
    commit_append_file(c, "f3", 3);
    ids_check(c, "f3:0 f2:10 f1:20 next 30");
    commit_append_file(c, "f4", 4);
    ids_check(c, "f4:30 f3:0 f2:10 f1:20 next 40");
}

/* A list of version 1 that leaves all counts open, as it may. */
static void forget_counts(table_case *c) {
    tarn_table_version *v = case_load(c);
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    manifest_list_options options = {.format_version = 1,
                                     .snapshot_id = s->snapshot_id,
                                     .parent_id = s->parent_id,
                                     .first_row_id = -1};
    tarn_arena arena;
    io_source *source;
    io_sink *sink;
    const tarn_manifest *manifests;
    int32_t n;
    arena_init(&arena, c->env);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
    source->close(source);
    tarn_manifest *bare = ARENA_ARRAY(&arena, tarn_manifest, (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        bare[i] = manifests[i];
        bare[i].added_files = bare[i].existing_files = bare[i].deleted_files = -1;
        bare[i].added_rows = bare[i].existing_rows = bare[i].deleted_rows = -1;
    }
    assert_ok(store_remove(c->catalog->store, s->manifest_list, &err));
    assert_ok(store_create(c->catalog->store, s->manifest_list, STORE_CREATE, &sink, &err));
    assert_ok(manifest_list_write(c->env, &options, bare, n, sink, &err));
    assert_ok(sink->finish(sink, &err));
    arena_release(&arena);
    table_version_release(v);
}

static void tell_counts_unknown(table_case *c) {
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    forget_counts(c);
    upgrade_to(c, 2);
    commit_append_file(c, "f3", 3);
    state_check(c, "main", "1/1 1 0 0: +f3@1\n0/0 1 0 0: +f2@0'\n0/0 1 0 0: +f1@0'\n");
}

static void tell_row_ids_unknown(table_case *c) {
    commit_append_file(c, "f1", 1);
    commit_append_file(c, "f2", 2);
    forget_counts(c);
    upgrade_to(c, 3);
    commit_append_file(c, "f3", 3);
    ids_check(c, "f3:0 f2:10 f1:20 next 30");
}

static void test_delta_counts_unknown(void **state) {
    (void)state;
    on_table(tell_counts_unknown, 1, "p", NULL);
    on_table(tell_row_ids_unknown, 1, "p", NULL);
}

static void test_delta_row_ids(void **state) {
    static const char *const properties[] = {"commit.manifest.min-count-to-merge", "2", NULL};
    (void)state;
    on_table(tell_row_ids, 3, "p", properties);
    on_table(tell_row_ids_upgraded, 2, "p", NULL);
    on_table(tell_row_ids_upgraded, 1, "p", NULL);
}

/* ---- looking for a summary ---- */

static void tell_summary(table_case *c) {
    bool cut = true;
    int64_t ids[3];
    for (int i = 0; i < 3; i++) {
        char name[16];
        const tarn_property extra[] = {{STR("sink"), i == 2 ? STR("b") : STR("a")}};
        (void)snprintf(name, sizeof name, "f%d", i);
        tarn_file f = commit_file(c, name, 1, 1);
        commit_request r = delta(&f, 1, NULL, 0);
        commit_outcome outcome;
        r.summary = (tarn_properties){1, extra};
        assert_ok(commit_now(c, c->catalog, &r, &outcome, &err));
        ids[i] = outcome.snapshot_id;
    }
    tarn_table_version *v = case_load(c);
    const tarn_metadata *m = v->metadata;
    const tarn_snapshot *s = commit_find_summary(m, STR("main"), "sink", STR("a"), &cut);
    assert_non_null(s);
    assert_int_equal(s->snapshot_id, ids[1]);
    assert_false(cut);
    assert_null(commit_find_summary(m, STR("main"), "sink", STR("x"), &cut));
    assert_false(cut);
    assert_null(commit_find_summary(m, STR("other"), "sink", STR("a"), &cut));
    assert_false(cut);
    /* its ancestors expired */
    tarn_metadata short_of = *m;
    short_of.n_snapshots = 1;
    short_of.snapshots = m->snapshots + 2;
    assert_null(commit_find_summary(&short_of, STR("main"), "sink", STR("a"), &cut));
    assert_true(cut);
    assert_non_null(commit_find_summary(&short_of, STR("main"), "sink", STR("b"), &cut));
    assert_false(cut);
    table_version_release(v);
}

static void test_delta_find_summary(void **state) {
    (void)state;
    on_table(tell_summary, 2, NULL, NULL);
    on_table(tell_summary, 1, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_upsert),       cmocka_unit_test(test_delta_vectors),
        cmocka_unit_test(test_delta_refused),      cmocka_unit_test(test_delta_pruned),
        cmocka_unit_test(test_delta_merge),        cmocka_unit_test(test_delta_rewritten),
        cmocka_unit_test(test_delta_dead_deletes), cmocka_unit_test(test_delta_replace_partitions),
        cmocka_unit_test(test_delta_row_ids),      cmocka_unit_test(test_delta_counts_unknown),
        cmocka_unit_test(test_delta_find_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
