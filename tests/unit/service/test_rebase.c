/* Goal: each rule at the top of rebase.c, alone: a late commit that it lets through is put on the
 * newer head as it was meant, one that it does not is refused with the reason, and the table stays
 * as it was.
 * Method: a client makes a snapshot on a table of two files in two partitions; others commit; the
 * client's commit comes then. Cases differ in one thing. */
#include "unit/service/rebase_case.h"

typedef struct bench {
    tarn_env *env;
    table_case c;
    late_client late;
    commit_maker *second; /* of a snapshot on the client's first */
    tarn_file old[2], added[2], deletes[2];
    tarn_entry removed[2], removed_deletes[2];
    tarn_str referenced[1];
    int64_t sequences[2];
} bench;

/* a in partition 1 and b in partition 2, and a client that has read them. */
static void bench_begin(bench *b, int32_t version, const char *const *properties) {
    memset(b, 0, sizeof *b);
    b->env = test_env();
    case_open(&b->c, b->env, CASE_DIR_MEMORY);
    case_table(&b->c, version, "p int, v string", "p", properties);
    commit_append_file(&b->c, "a", 1);
    commit_append_file(&b->c, "b", 2);
    b->old[0] = commit_file(&b->c, "a", 1, 10);
    b->old[1] = commit_file(&b->c, "b", 2, 10);
}

static void read_now(bench *b) {
    commit_request *r = &b->late.request;
    late_open(&b->late, &b->c);
    r->kind = COMMIT_ROW_DELTA;
    r->added = b->added;
    r->added_deletes = b->deletes;
    r->removed = b->removed;
    r->removed_deletes = b->removed_deletes;
    r->referenced = b->referenced;
}

static void adds(bench *b, const char *name, int32_t part, int64_t rows) {
    b->added[b->late.request.n_added++] = commit_file(&b->c, name, part, rows);
}

static void removes(bench *b, int i) {
    b->removed[b->late.request.n_removed++] = commit_entry(b->old[i]);
}

static void deletes_rows(bench *b, const char *name, int i, int64_t rows) {
    b->deletes[b->late.request.n_added_deletes++] =
        commit_position_file(&b->c, name, &b->old[i], rows);
}

static void deletes_keys(bench *b, const char *name, int32_t part) {
    b->deletes[b->late.request.n_added_deletes++] =
        commit_delete_file(&b->c, name, TARN_CONTENT_EQUALITY_DELETES, part, 1);
}

static void is_rewrite(bench *b) {
    late_origin(&b->late, "replace");
    b->late.request.kind = COMMIT_OVERWRITE;
}

/* What others do meanwhile. */
static void others(bench *b, const commit_request *r) {
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    assert_ok(commit_now(&b->c, b->c.catalog, r, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
}

static void others_delete(bench *b, tarn_file deletes) {
    commit_request r = commit_of(COMMIT_ROW_DELTA, NULL, 0);
    r.added_deletes = &deletes;
    r.n_added_deletes = 1;
    others(b, &r);
}

static void others_remove(bench *b, int i) {
    tarn_entry e = commit_entry(b->old[i]);
    commit_request r = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    r.removed = &e;
    r.n_removed = 1;
    others(b, &r);
}

static void others_rewrite(bench *b, int i, const char *name) {
    late_client other;
    const tarn_file added = commit_file(&b->c, name, i + 1, 10);
    const tarn_entry removed = commit_entry(b->old[i]);
    late_open(&other, &b->c);
    late_origin(&other, "replace");
    other.request.kind = COMMIT_OVERWRITE;
    other.request.added = &added;
    other.request.removed = &removed;
    other.request.n_added = other.request.n_removed = 1;
    late_make(&other);
    late_run(&b->c, late_send(&other));
    assert_int_equal(other.job.code, TARN_OK);
    late_done(&other);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The head's live files with their sequence numbers, by name. */
static void list_live(bench *b, char out[256]) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *version = case_load(&b->c);
    const char *names[16];
    int n_names = 0;
    io_source *source;
    const tarn_manifest *list;
    int32_t n;
    assert_ok(store_open(b->c.catalog->store,
                         metadata_current_snapshot(version->metadata)->manifest_list, -1, &source,
                         &err));
    assert_ok(manifest_list_read(&b->c.arena, source, &list, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {.live_only = true};
        manifest_entries entries;
        assert_ok(store_open(b->c.catalog->store, list[i].path, -1, &source, &err));
        assert_ok(manifest_read(&b->c.arena, source, version->metadata, &list[i], &options,
                                &entries, &err));
        source->close(source);
        for (int64_t k = 0; k < entries.count; k++) {
            tarn_str path = entries.items[k].file.path;
            size_t slash = 0;
            (void)str_find_last_char(path, '/', &slash);
            tarn_str name = str_from(path, slash + 1);
            name.len -= strlen(".parquet");
            assert_true(n_names < 16);
            names[n_names++] = arena_printf(&b->c.arena, " %.*s@%lld", STR_ARG(name),
                                            (long long)entries.items[k].sequence_number);
        }
    }
    qsort(names, (size_t)n_names, sizeof names[0], compare_names);
    out[0] = '\0';
    for (int i = 0; i < n_names; i++) {
        size_t len = strlen(out);
        (void)snprintf(out + len, 256 - len, "%s", names[i]);
    }
    table_version_release(version);
}

/* Made now, so that what comes next finds it late. */
static void make(bench *b) {
    commit_request *r = &b->late.request;
    if (r->n_added_deletes == 0 && r->kind == COMMIT_ROW_DELTA) {
        r->kind = COMMIT_OVERWRITE;
    }
    late_make(&b->late);
}

static void bench_end(bench *b) {
    commit_maker_end(b->second, TARN_OUTCOME_UNKNOWN);
    late_done(&b->late);
    case_done(&b->c);
    test_env_done(b->env);
}

static void is_taken(bench *b, const char *live) {
    char got[256];
    late_run(&b->c, late_send(&b->late));
    if (b->late.job.code != TARN_OK) {
        fail_msg("it was refused: %s", b->late.job.err.message);
    }
    tarn_table_version *now = case_load(&b->c);
    assert_int_equal(now->metadata->current_snapshot_id,
                     b->late.sent.snapshots[b->late.sent.n_snapshots - 1].snapshot->snapshot_id);
    table_version_release(now);
    list_live(b, got);
    assert_string_equal(got, live);
    bench_end(b);
}

static void is_refused(bench *b, const char *why) {
    tarn_table_version *before = case_load(&b->c);
    late_run(&b->c, late_send(&b->late));
    tarn_table_version *now = case_load(&b->c);
    assert_int_equal(b->late.job.code, TARN_CONFLICT);
    if (strstr(b->late.job.err.message, why) == NULL) {
        fail_msg("\"%s\" is not in: %s", why, b->late.job.err.message);
    }
    assert_true(str_eq(now->metadata_location, before->metadata_location));
    table_version_release(before);
    table_version_release(now);
    bench_end(b);
}

/* ---- append ---- */

static void test_append_follows_anything(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    read_now(&b);
    adds(&b, "mine", 1, 5);
    b.late.request.kind = COMMIT_FAST_APPEND;
    make(&b);
    commit_append_file(&b.c, "c", 1);
    others_delete(&b, commit_position_file(&b.c, "d", &b.old[0], 1));
    others_remove(&b, 1);
    is_taken(&b, " a@1 c@3 d@4 mine@6");
}

/* It may be a merge that found nothing to change. */
static void test_append_by_isolation(void **state) {
    static const char *const asked[] = {"write.merge.isolation-level", "serializable", NULL};
    static const char *const not_asked[] = {"write.merge.isolation-level", "snapshot", NULL};
    bench b;
    (void)state;
    for (int i = 0; i < 3; i++) {
        bench_begin(&b, 2, i == 0 ? not_asked : asked);
        read_now(&b);
        adds(&b, "mine", 1, 5);
        b.late.request.kind = COMMIT_FAST_APPEND;
        make(&b);
        if (i < 2) {
            commit_append_file(&b.c, "c", 1);
        } else {
            others_rewrite(&b, 1, "b2");
        }
        if (i == 1) {
            is_refused(&b, "c.parquet, whose rows the commit may concern");
        } else {
            is_taken(&b, i == 0 ? " a@1 b@2 c@3 mine@4" : " a@1 b2@3 mine@4");
        }
    }
}

static void test_append_is_one(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    read_now(&b);
    late_origin(&b.late, "append");
    adds(&b, "mine", 1, 5);
    deletes_rows(&b, "d", 0, 1);
    make(&b);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "called an append");

    bench_begin(&b, 2, NULL);
    read_now(&b);
    late_origin(&b.late, "append");
    adds(&b, "mine", 1, 5);
    b.sequences[0] = 1;
    b.late.origin.added_sequences = b.sequences;
    make(&b);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "called an append");
}

/* ---- replace ---- */

static void rewrites_a(bench *b, int64_t rows) {
    read_now(b);
    is_rewrite(b);
    removes(b, 0);
    adds(b, "mine", 1, rows);
}

static void test_replace_follows(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    rewrites_a(&b, 10);
    make(&b);
    commit_append_file(&b.c, "c", 1);
    others_rewrite(&b, 1, "b2");
    is_taken(&b, " b2@4 c@3 mine@5");
}

static void test_replace_needs_its_files(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    rewrites_a(&b, 10);
    make(&b);
    others_remove(&b, 0);
    is_refused(&b, "a.parquet");

    bench_begin(&b, 2, NULL); /* rows that are gone would come back */
    rewrites_a(&b, 10);
    make(&b);
    others_delete(&b, commit_position_file(&b.c, "d", &b.old[0], 1));
    is_refused(&b, "d.parquet");
}

static void test_replace_and_equality_deletes(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    rewrites_a(&b, 10);
    make(&b);
    others_delete(&b, commit_delete_file(&b.c, "d", TARN_CONTENT_EQUALITY_DELETES, 1, 1));
    is_refused(&b, "d.parquet");

    bench_begin(&b, 2, NULL); /* the new file is as old as the rows in it */
    rewrites_a(&b, 10);
    b.sequences[0] = 1;
    b.late.origin.added_sequences = b.sequences;
    make(&b);
    others_delete(&b, commit_delete_file(&b.c, "d", TARN_CONTENT_EQUALITY_DELETES, 1, 1));
    is_taken(&b, " b@2 d@3 mine@1");
}

static void test_replace_has_no_more_rows(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    rewrites_a(&b, 11);
    make(&b);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "does more than that");
}

/* Delete files d become e. */
static void rewrites_deletes(bench *b, tarn_file was, tarn_file is) {
    others_delete(b, was);
    read_now(b);
    is_rewrite(b);
    b->removed_deletes[0] = commit_entry(was);
    b->deletes[0] = is;
    b->late.request.n_removed_deletes = b->late.request.n_added_deletes = 1;
    b->late.request.kind = COMMIT_ROW_DELTA;
    make(b);
    commit_append_file(&b->c, "c", 1);
}

static void test_replace_of_deletes(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    rewrites_deletes(&b, commit_position_file(&b.c, "d", &b.old[0], 3),
                     commit_position_file(&b.c, "e", &b.old[0], 3));
    is_taken(&b, " a@1 b@2 c@4 e@5");

    bench_begin(&b, 2, NULL);
    rewrites_deletes(&b, commit_position_file(&b.c, "d", &b.old[0], 3),
                     commit_position_file(&b.c, "e", &b.old[0], 4));
    is_refused(&b, "do not stand in");

    bench_begin(&b, 2, NULL);
    rewrites_deletes(&b, commit_delete_file(&b.c, "d", TARN_CONTENT_EQUALITY_DELETES, 1, 3),
                     commit_delete_file(&b.c, "e", TARN_CONTENT_EQUALITY_DELETES, 1, 3));
    is_refused(&b, "do not stand in");
}

/* ---- delete, overwrite ---- */

static void deletes_of_a(bench *b) {
    read_now(b);
    deletes_rows(b, "mine", 0, 1);
}

static void test_delete_follows(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL); /* rows of others, or files of others, that went or were rewritten */
    deletes_of_a(&b);
    make(&b);
    others_delete(&b, commit_position_file(&b.c, "d", &b.old[1], 1));
    is_taken(&b, " a@1 b@2 d@3 mine@4");

    bench_begin(&b, 2, NULL);
    deletes_of_a(&b);
    make(&b);
    others_rewrite(&b, 1, "b2");
    is_taken(&b, " a@1 b2@3 mine@4");
}

static void test_delete_needs_its_files(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    deletes_of_a(&b);
    make(&b);
    others_delete(&b, commit_position_file(&b.c, "d", &b.old[0], 1));
    is_refused(&b, "d.parquet");

    bench_begin(&b, 2, NULL);
    deletes_of_a(&b);
    make(&b);
    others_remove(&b, 0);
    is_refused(&b, "a.parquet");

    bench_begin(&b, 2, NULL);
    deletes_of_a(&b);
    make(&b);
    others_rewrite(&b, 0, "a2");
    is_refused(&b, "a.parquet");

    bench_begin(&b, 2, NULL); /* the whole file */
    read_now(&b);
    removes(&b, 0);
    make(&b);
    others_delete(&b, commit_position_file(&b.c, "d", &b.old[0], 1));
    is_refused(&b, "d.parquet");
}

/* Under which levels rows that came since stay as they are. */
static void after_new_rows(const char *const *properties, bool update, const char *why) {
    bench b;
    bench_begin(&b, 2, properties);
    read_now(&b);
    removes(&b, 0);
    if (update) {
        adds(&b, "mine", 1, 10);
    }
    make(&b);
    commit_append_file(&b.c, "c", 2);
    if (why != NULL) {
        is_refused(&b, why);
    } else {
        is_taken(&b, update ? " b@2 c@3 mine@4" : " b@2 c@3");
    }
}

static void test_new_rows_by_isolation(void **state) {
    static const char *const all[] = {"write.delete.isolation-level",
                                      "snapshot",
                                      "write.update.isolation-level",
                                      "SNAPSHOT",
                                      "write.merge.isolation-level",
                                      "snapshot",
                                      NULL};
    static const char *const no_update[] = {"write.delete.isolation-level", "snapshot",
                                            "write.merge.isolation-level", "snapshot", NULL};
    static const char *const delete_alone[] = {"write.delete.isolation-level", "snapshot", NULL};
    static const char *const serializable[] = {"write.delete.isolation-level",
                                               "serializable",
                                               "write.update.isolation-level",
                                               "snapshot",
                                               "write.merge.isolation-level",
                                               "snapshot",
                                               NULL};
    (void)state;
    for (int update = 0; update < 2; update++) {
        after_new_rows(NULL, update, "c.parquet");
        after_new_rows(all, update, NULL);
        after_new_rows(no_update, update, update ? "c.parquet" : NULL);
        after_new_rows(delete_alone, update, "c.parquet");
        after_new_rows(serializable, update, "c.parquet");
    }
}

static void upserts(bench *b) {
    read_now(b);
    adds(b, "mine", 1, 1);
    deletes_keys(b, "keys", 1);
    make(b);
}

static void test_equality_deletes_keep_their_reach(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    upserts(&b);
    commit_append_file(&b.c, "c", 2);
    others_rewrite(&b, 0, "a2");
    is_taken(&b, " a2@4 b@2 c@3 keys@5 mine@5");

    bench_begin(&b, 2, NULL);
    upserts(&b);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "c.parquet");
}

static void test_files_have_no_numbers_of_their_own(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    read_now(&b);
    late_origin(&b.late, "overwrite");
    removes(&b, 0);
    adds(&b, "mine", 1, 10);
    b.sequences[0] = 1;
    b.late.origin.added_sequences = b.sequences;
    make(&b);
    others_rewrite(&b, 1, "b2");
    is_refused(&b, "sequence numbers of their own");
}

static void test_whole_partitions(void **state) {
    static const char *const values[] = {"true", "false"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        bench b;
        const tarn_property item = {STR("replace-partitions"), str_of(values[i])};
        bench_begin(&b, 2, NULL);
        read_now(&b);
        removes(&b, 0);
        adds(&b, "mine", 1, 10);
        b.late.request.summary = (tarn_properties){1, &item};
        make(&b);
        others_rewrite(&b, 1, "b2");
        if (i == 0) {
            is_refused(&b, "replaces whole partitions");
        } else {
            is_taken(&b, " b2@3 mine@4");
        }
    }
}

static void test_vectors(void **state) {
    bench b;
    (void)state;
    for (int forgets = 0; forgets < 2; forgets++) {
        bench_begin(&b, 3, NULL);
        tarn_file was = commit_vector(&b.c, "d", &b.old[0], 4, 1);
        tarn_file beside = commit_vector(&b.c, "e", &b.old[1], 4, 1);
        others_delete(&b, was);
        others_delete(&b, beside);
        read_now(&b);
        b.removed_deletes[b.late.request.n_removed_deletes++] = commit_entry(was);
        if (forgets) {
            b.removed_deletes[b.late.request.n_removed_deletes++] = commit_entry(beside);
        }
        b.deletes[b.late.request.n_added_deletes++] = commit_vector(&b.c, "mine", &b.old[0], 4, 2);
        make(&b);
        others_rewrite(&b, 1, "b2");
        if (forgets) {
            is_refused(&b, "for which none comes");
        } else {
            is_taken(&b, " a@1 b2@5 mine@6");
        }
    }
}

/* ---- what may be put on another at all ---- */

static tarn_change *more_changes(bench *b, int32_t n) {
    tarn_change_set *set = &b->late.sent.set;
    tarn_change *changes = ARENA_ARRAY(&b->c.arena, tarn_change, (size_t)(set->n_changes + n));
    assert_non_null(changes);
    memcpy(changes, set->changes, (size_t)set->n_changes * sizeof *changes);
    set->changes = changes;
    set->n_changes += n;
    memset(&changes[set->n_changes - n], 0, (size_t)n * sizeof *changes);
    return changes;
}

static void appends(bench *b) {
    bench_begin(b, 2, NULL);
    read_now(b);
    adds(b, "mine", 1, 5);
    b->late.request.kind = COMMIT_FAST_APPEND;
    make(b);
    commit_append_file(&b->c, "c", 1);
}

static void test_what_may_come_with_it(void **state) {
    bench b;
    const tarn_property item = {STR("k"), STR("v")};
    (void)state;
    appends(&b);
    more_changes(&b, 1)[2] = (tarn_change){.kind = CHANGE_SET_PROPERTIES, .properties = {1, &item}};
    is_taken(&b, " a@1 b@2 c@3 mine@4");

    appends(&b);
    more_changes(&b, 1)[2] = (tarn_change){.kind = CHANGE_UPGRADE_FORMAT_VERSION, .number = 3};
    is_refused(&b, "requirement failed");

    appends(&b); /* and a tag */
    tarn_change *changes = more_changes(&b, 1);
    changes[2] = changes[1];
    changes[2].ref.name = STR("t");
    changes[2].ref.is_tag = true;
    is_refused(&b, "requirement failed");
}

/* ---- several snapshots ---- */

/* One more, on the one that is made, sent with it. */
static void make_second(bench *b, commit_kind kind) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_metadata *m;
    tarn_change_set step;
    static tarn_file file;
    static tarn_entry removed;
    static commit_request r;
    file = commit_file(&b->c, "second", 1, 2);
    removed = commit_entry(b->old[1]);
    r = commit_of(kind, &file, kind == COMMIT_DELETE_FILES ? 0 : 1);
    r.removed = &removed;
    r.n_removed = kind == COMMIT_DELETE_FILES;
    r.from_snapshot_id = b->late.sent.set.changes[0].snapshot->snapshot_id;
    assert_ok(change_apply(&b->c.arena, b->late.base->metadata, &b->late.sent.set,
                           env_now_ms(b->env), &m, &err));
    assert_ok(commit_maker_new(b->env, b->c.catalog->store, &r, &b->second, &err));
    assert_ok(commit_maker_attempt(b->second, m, &step, &err));
    assert_int_equal(step.n_changes, 2);
    memcpy(more_changes(b, 2) + 2, step.changes, 2 * sizeof *step.changes);
}

static void test_appends_on_the_first(void **state) {
    static const char *const merge[] = {"commit.manifest.min-count-to-merge", "2", NULL};
    bench b;
    (void)state;
    for (int32_t version = 2; version <= 3; version++) {
        for (int merges = 0; merges < 2; merges++) {
            bench_begin(&b, version, merges ? merge : NULL);
            read_now(&b);
            adds(&b, "mine", 1, 5);
            b.late.request.kind = COMMIT_FAST_APPEND;
            make(&b);
            make_second(&b, merges ? COMMIT_MERGE_APPEND : COMMIT_FAST_APPEND);
            commit_append_file(&b.c, "c", 1);
            is_taken(&b, " a@1 b@2 c@3 mine@4 second@5");
        }
    }

    bench_begin(&b, 2, NULL); /* what is called an overwrite, such as PyIceberg's */
    read_now(&b);
    removes(&b, 0);
    make(&b);
    make_second(&b, COMMIT_FAST_APPEND);
    others_rewrite(&b, 1, "b2");
    is_taken(&b, " b2@3 second@5");

    bench_begin(&b, 2, NULL);
    read_now(&b);
    removes(&b, 0);
    make(&b);
    make_second(&b, COMMIT_FAST_APPEND);
    commit_append_file(&b.c, "c", 2);
    is_refused(&b, "c.parquet");
}

static void test_others_on_the_first(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL); /* it could not be held against what came since */
    read_now(&b);
    adds(&b, "mine", 1, 5);
    b.late.request.kind = COMMIT_FAST_APPEND;
    make(&b);
    make_second(&b, COMMIT_DELETE_FILES);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "branch or tag main has changed");

    bench_begin(&b, 2, NULL); /* it is left beside the branch */
    read_now(&b);
    adds(&b, "mine", 1, 5);
    b.late.request.kind = COMMIT_FAST_APPEND;
    make(&b);
    make_second(&b, COMMIT_FAST_APPEND);
    b.late.sent.set.n_changes--;
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "branch or tag main has changed");
}

static void test_other_requirements_hold(void **state) {
    bench b;
    static const tarn_requirement wrong[] = {
        {REQUIRE_CURRENT_SCHEMA_ID, {NULL, 0}, 7},
        {REQUIRE_DEFAULT_SPEC_ID, {NULL, 0}, 7},
        {REQUIRE_LAST_ASSIGNED_FIELD_ID, {NULL, 0}, 7},
        {REQUIRE_REF_SNAPSHOT_ID, {"side", 4}, 7},
        {REQUIRE_UUID, {"00000000-0000-0000-0000-000000000000", 36}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        appends(&b);
        b.late.sent.set.requirements = &wrong[i];
        b.late.sent.set.n_requirements = 1;
        is_refused(&b, "requirement failed");
    }
}

static void set_main(bench *b, int64_t snapshot_id) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_outcome_kind outcome;
    tarn_table_version *version = case_load(&b->c);
    tarn_change change = {.kind = CHANGE_SET_SNAPSHOT_REF};
    change.ref = (tarn_ref){STR(TARN_MAIN_BRANCH), snapshot_id, false, -1, -1, -1};
    const tarn_change_set set = {.n_changes = 1, .changes = &change};
    assert_ok(catalog_commit(b->c.catalog, &b->c.ident, version, &set, &outcome, NULL, &err));
    table_version_release(version);
}

static void test_its_parent_is_below_the_head(void **state) {
    bench b;
    (void)state;
    appends(&b); /* the table was rolled back behind it */
    set_main(&b, b.late.base->metadata->snapshots[0]->snapshot_id);
    is_refused(&b, "requirement failed: branch or tag main has changed");

    appends(&b); /* it is in the table already */
    late_run(&b.c, late_send(&b.late));
    assert_int_equal(b.late.job.code, TARN_OK);
    table_version_release(b.late.job.version);
    b.late.job.version = NULL;
    commit_append_file(&b.c, "e", 1);
    is_refused(&b, "requirement failed");
}

/* A branch's commits follow that branch: what comes to main is not in their way. */
static void test_branches_are_apart(void **state) {
    bench b;
    char got[256];
    tarn_error err = TARN_ERROR_INIT;
    commit_outcome outcome;
    (void)state;
    bench_begin(&b, 2, NULL);
    tarn_file f = commit_file(&b.c, "x", 1, 1);
    commit_request r = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r.branch = STR("side");
    assert_ok(commit_now(&b.c, b.c.catalog, &r, &outcome, &err));
    read_now(&b);
    b.late.request.branch = STR("side");
    b.late.request.from_snapshot_id = outcome.snapshot_id;
    b.deletes[b.late.request.n_added_deletes++] = commit_position_file(&b.c, "mine", &f, 1);
    make(&b);
    commit_append_file(&b.c, "c", 1); /* to main: new rows there do not matter */
    late_run(&b.c, late_send(&b.late));
    assert_int_equal(b.late.job.code, TARN_OK);
    list_live(&b, got);
    assert_string_equal(got, " a@1 b@2 c@4");
    tarn_table_version *now = case_load(&b.c);
    assert_int_equal(metadata_ref(now->metadata, STR("side"))->snapshot_id,
                     b.late.sent.set.changes[0].snapshot->snapshot_id);
    table_version_release(now);
    bench_end(&b);
}

/* Whoever makes a branch makes it at main's head, and follows that until it is made. */
static void test_a_new_branch_follows_main(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    read_now(&b);
    b.late.request.branch = STR("side");
    adds(&b, "mine", 1, 5);
    b.late.request.kind = COMMIT_FAST_APPEND;
    make(&b);
    commit_append_file(&b.c, "c", 1); /* to main */
    late_run(&b.c, late_send(&b.late));
    assert_int_equal(b.late.job.code, TARN_OK);
    tarn_table_version *now = case_load(&b.c);
    const tarn_snapshot *head = metadata_head(now->metadata, STR("side"));
    assert_int_equal(head->snapshot_id, b.late.sent.set.changes[0].snapshot->snapshot_id);
    assert_int_equal(head->parent_id, now->metadata->current_snapshot_id);
    table_version_release(now);
    bench_end(&b);
}

/* ---- files that came since ---- */

static void appends_mine(bench *b) {
    read_now(b);
    adds(b, "mine", 1, 10);
    b->late.request.kind = COMMIT_FAST_APPEND;
    make(b);
}

static void test_files_that_came_since(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL);
    appends_mine(&b);
    commit_append_file(&b.c, "mine", 1);
    commit_append_file(&b.c, "c", 1);
    is_refused(&b, "has added file");

    bench_begin(&b, 2, NULL); /* and went */
    appends_mine(&b);
    commit_append_file(&b.c, "mine", 1);
    b.old[0] = b.added[0];
    others_rewrite(&b, 0, "c");
    is_refused(&b, "mine.parquet since");

    bench_begin(&b, 2, NULL); /* of the second snapshot, of which the first knows nothing */
    appends_mine(&b);
    make_second(&b, COMMIT_FAST_APPEND);
    commit_append_file(&b.c, "second", 1);
    is_refused(&b, "second.parquet since");

    bench_begin(&b, 2, NULL); /* not of an append */
    rewrites_a(&b, 10);
    make(&b);
    commit_append_file(&b.c, "mine", 1);
    is_refused(&b, "mine.parquet since");
}

static void test_files_that_came_before(void **state) {
    bench b;
    (void)state;
    bench_begin(&b, 2, NULL); /* the client knew */
    commit_append_file(&b.c, "mine", 1);
    appends_mine(&b);
    commit_append_file(&b.c, "c", 1);
    is_taken(&b, " a@1 b@2 c@4 mine@3 mine@5");

    bench_begin(&b, 2, NULL); /* on the head as it is, as every catalog takes it */
    commit_append_file(&b.c, "mine", 1);
    appends_mine(&b);
    is_taken(&b, " a@1 b@2 mine@3 mine@4");
}

/* What it was is not known, so nothing is. */
static void test_what_came_cannot_be_read(void **state) {
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    const tarn_manifest *list;
    io_source *source;
    int32_t n;
    (void)state;
    bench_begin(&b, 2, NULL);
    appends_mine(&b);
    commit_append_file(&b.c, "c", 1);
    tarn_table_version *now = case_load(&b.c);
    tarn_store *store = b.c.catalog->store;
    const tarn_snapshot *head = metadata_current_snapshot(now->metadata);
    assert_ok(store_open(store, head->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&b.c.arena, source, &list, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        if (list[i].added_snapshot_id == head->snapshot_id) {
            assert_ok(store_remove(store, list[i].path, &err));
        }
    }
    table_version_release(now);
    is_refused(&b, "could not follow");
}

/* A commit that was made on the empty table: what it has not seen has expired in part. */
static void test_what_came_has_expired(void **state) {
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    tarn_outcome_kind outcome;
    (void)state;
    memset(&b, 0, sizeof b);
    b.env = test_env();
    case_open(&b.c, b.env, CASE_DIR_MEMORY);
    case_table(&b.c, 2, "p int, v string", "p", NULL);
    appends_mine(&b);
    commit_append_file(&b.c, "mine", 1);
    commit_append_file(&b.c, "c", 1);
    tarn_table_version *now = case_load(&b.c);
    tarn_change change = {.kind = CHANGE_REMOVE_SNAPSHOTS, .n_ids = 1};
    change.ids = &now->metadata->snapshots[0]->snapshot_id;
    const tarn_change_set set = {.n_changes = 1, .changes = &change};
    assert_ok(catalog_commit(b.c.catalog, &b.c.ident, now, &set, &outcome, NULL, &err));
    table_version_release(now);
    is_refused(&b, "not all in the history");
}

static tarn_properties two_of(bench *b, const char *const words[4]) {
    tarn_property *items = ARENA_ARRAY(&b->c.arena, tarn_property, 2);
    assert_non_null(items);
    items[0] = (tarn_property){str_of(words[0]), str_of(words[1])};
    items[1] = (tarn_property){str_of(words[2]), str_of(words[3])};
    return (tarn_properties){2, items};
}

/* Of a stream, two steps at once are one too many: the older one may be of a job that is gone. */
static void test_steps_of_streams(void **state) {
    static const struct {
        const char *ours[4], *theirs[4];
        bool taken;
    } cases[] = {
        {{"flink.job-id", "j", "flink.operator-id", "o"},
         {"flink.job-id", "j", "flink.operator-id", "o"},
         false},
        {{"flink.job-id", "j", "flink.operator-id", "o"},
         {"flink.job-id", "j", "flink.operator-id", "p"},
         true},
        {{"flink.job-id", "j", "x", "1"}, {"flink.job-id", "k", "x", "1"}, true},
        {{"spark.sql.streaming.queryId", "q", "spark.sql.streaming.epochId", "5"},
         {"spark.sql.streaming.epochId", "5", "spark.sql.streaming.queryId", "q"},
         false},
        {{"kafka.connect.offsets.c.g", "{0:5}", "x", "1"},
         {"x", "1", "kafka.connect.offsets.c.g", "{0:4}"},
         false},
        {{"kafka.connect.offsets.c.g", "{0:5}", "x", "1"},
         {"x", "1", "kafka.connect.offsets.c.h", "{0:5}"},
         true},
    };
    bench b;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_begin(&b, 2, NULL);
        read_now(&b);
        adds(&b, "mine", 1, 10);
        b.late.request.kind = COMMIT_FAST_APPEND;
        b.late.request.summary = two_of(&b, cases[i].ours);
        make(&b);
        tarn_file c = commit_file(&b.c, "c", 1, 1);
        commit_request r = commit_of(COMMIT_FAST_APPEND, &c, 1);
        r.summary = two_of(&b, cases[i].theirs);
        others(&b, &r);
        if (cases[i].taken) {
            is_taken(&b, " a@1 b@2 c@3 mine@4");
        } else {
            is_refused(&b, "is of the same stream");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_follows_anything),
        cmocka_unit_test(test_append_by_isolation),
        cmocka_unit_test(test_append_is_one),
        cmocka_unit_test(test_replace_follows),
        cmocka_unit_test(test_replace_needs_its_files),
        cmocka_unit_test(test_replace_and_equality_deletes),
        cmocka_unit_test(test_replace_has_no_more_rows),
        cmocka_unit_test(test_replace_of_deletes),
        cmocka_unit_test(test_delete_follows),
        cmocka_unit_test(test_delete_needs_its_files),
        cmocka_unit_test(test_new_rows_by_isolation),
        cmocka_unit_test(test_equality_deletes_keep_their_reach),
        cmocka_unit_test(test_files_have_no_numbers_of_their_own),
        cmocka_unit_test(test_whole_partitions),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_what_may_come_with_it),
        cmocka_unit_test(test_appends_on_the_first),
        cmocka_unit_test(test_others_on_the_first),
        cmocka_unit_test(test_other_requirements_hold),
        cmocka_unit_test(test_its_parent_is_below_the_head),
        cmocka_unit_test(test_branches_are_apart),
        cmocka_unit_test(test_a_new_branch_follows_main),
        cmocka_unit_test(test_steps_of_streams),
        cmocka_unit_test(test_files_that_came_since),
        cmocka_unit_test(test_files_that_came_before),
        cmocka_unit_test(test_what_came_cannot_be_read),
        cmocka_unit_test(test_what_came_has_expired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
