/* Goal: what others commit between the planning of row deletes and their swap is a conflict where
 * it would lose or bring back rows, and none where it would not. Method: a catalog in between
 * commits one rival's request before the first swap. */
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define SCHEMA "p int, v string"

typedef struct race {
    table_case c;
    proxy_catalog proxy;
    const commit_request *rival; /* NULL: nobody, or made already */
    tarn_file f1, f2;            /* live, in partitions 1 and 2 */
    int64_t from;
} race;

static void let_rival(void *ctx) {
    race *r = ctx;
    const commit_request *rival = r->rival;
    commit_outcome outcome;
    if (rival != NULL) {
        r->rival = NULL;
        assert_ok(commit_now(&r->c, r->c.catalog, rival, &outcome, &err));
        assert_int_equal(outcome.kind, TARN_COMMITTED);
    }
}

typedef void (*story)(race *r);

static void on_race(story tell, int32_t version) {
    static const char *const quick[] = {"commit.retry.min-wait-ms", "1", NULL};
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        race r;
        memset(&r, 0, sizeof r);
        tarn_env *env = test_env();
        case_open(&r.c, env, (case_kind)kind);
        case_table(&r.c, version, SCHEMA, "p", quick);
        proxy_init(&r.proxy, r.c.catalog);
        r.proxy.before = let_rival;
        r.proxy.ctx = &r;
        commit_append_file(&r.c, "f1", 1);
        commit_append_file(&r.c, "f2", 2);
        r.f1 = commit_file(&r.c, "f1", 1, 10);
        r.f2 = commit_file(&r.c, "f2", 2, 10);
        tarn_table_version *v = case_load(&r.c);
        r.from = v->metadata->current_snapshot_id;
        table_version_release(v);
        tell(&r);
        case_check_files(&r.c, 0);
        case_done(&r.c);
        test_env_done(env);
    }
}

static commit_request delta(const race *r, const tarn_file *deletes, const tarn_file *data) {
    commit_request q = commit_of(COMMIT_ROW_DELTA, NULL, 0);
    q.added_deletes = deletes;
    q.n_added_deletes = 1;
    q.referenced = data != NULL ? &data->path : NULL;
    q.n_referenced = data != NULL;
    q.from_snapshot_id = r->from;
    return q;
}

/* The request goes through at the second try. */
static void passes(race *r, const commit_request *q, const commit_request *rival) {
    commit_outcome outcome;
    r->rival = rival;
    assert_ok(commit_now(&r->c, &r->proxy.base, q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 2);
}

static void conflicts(race *r, const commit_request *q, const commit_request *rival,
                      const char *part) {
    commit_outcome outcome;
    r->rival = rival;
    assert_code(commit_now(&r->c, &r->proxy.base, q, &outcome, &err), TARN_CONFLICT);
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    assert_int_equal(outcome.attempts, 2);
    if (strstr(err.message, part) == NULL) {
        fail_msg("%s", err.message);
    }
    err_reset(&err);
    for (int32_t i = 0; i < q->n_added; i++) {
        commit_remove(&r->c, &q->added[i]);
    }
    for (int32_t i = 0; i < q->n_added_deletes; i++) {
        if (i == 0 || !str_eq(q->added_deletes[i].path, q->added_deletes[i - 1].path)) {
            commit_remove(&r->c, &q->added_deletes[i]);
        }
    }
}

/* Manifests of the first try serve the second; sequence numbers are of the commit that was made. */
static void tell_retried(race *r) {
    tarn_file f3 = commit_file(&r->c, "f3", 1, 10);
    tarn_file rivals = commit_file(&r->c, "rival", 1, 10);
    tarn_file p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    commit_request rival = commit_of(COMMIT_FAST_APPEND, &rivals, 1);
    commit_request q = delta(r, &p1, &r->f1);
    q.added = &f3;
    q.n_added = 1;
    q.check_new_deletes = true;
    passes(r, &q, &rival);
    state_check(&r->c, "main",
                "4/4 1 0 0: +f3@4\n3/3 1 0 0: +rival@3'\n2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\n"
                "D 4/4 1 0 0: +p1@4\n");
}

static void tell_referenced_gone(race *r) {
    tarn_entry gone = commit_entry(r->f1);
    tarn_file p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    commit_request rival = commit_of(COMMIT_DELETE_FILES, NULL, 0);
    rival.removed = &gone;
    rival.n_removed = 1;
    commit_request q = delta(r, &p1, &r->f1);
    conflicts(r, &q, &rival, "f1");
    /* the same without a snapshot to start from: it is looked for among what is live */
    p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    q = delta(r, &p1, &r->f1);
    q.from_snapshot_id = TARN_NO_SNAPSHOT;
    commit_outcome outcome;
    assert_code(commit_now(&r->c, r->c.catalog, &q, &outcome, &err), TARN_CONFLICT);
    assert_non_null(strstr(err.message, "f1"));
    err_reset(&err);
    commit_remove(&r->c, &p1);
    tarn_file p2 = commit_position_file(&r->c, "p2", &r->f2, 2);
    q = delta(r, &p2, &r->f2);
    q.from_snapshot_id = TARN_NO_SNAPSHOT;
    assert_ok(commit_now(&r->c, r->c.catalog, &q, &outcome, &err));
}

/* Rows that one deletes in a file do not hinder another, unless asked to. */
static void tell_new_deletes(race *r) {
    tarn_file theirs = commit_position_file(&r->c, "theirs", &r->f1, 2);
    tarn_file p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    tarn_file p2 = commit_position_file(&r->c, "p2", &r->f2, 2);
    commit_request rival = delta(r, &theirs, NULL);
    commit_request q = delta(r, &p2, &r->f2);
    q.check_new_deletes = true;
    passes(r, &q, &rival);
    q = delta(r, &p1, &r->f1);
    q.check_new_deletes = true;
    commit_outcome outcome;
    assert_code(commit_now(&r->c, r->c.catalog, &q, &outcome, &err), TARN_CONFLICT);
    assert_non_null(strstr(err.message, "theirs"));
    err_reset(&err);
    q.check_new_deletes = false;
    assert_ok(commit_now(&r->c, r->c.catalog, &q, &outcome, &err));
}

/* Two checkpoints in flight: the second was made before the first was committed, and knows it. */
static void tell_mine(race *r) {
    static const tarn_property mine = {{"a", 1}, {"x", 1}}, other = {{"a", 1}, {"y", 1}};
    tarn_file first = commit_vector(&r->c, "first", &r->f1, 4, 2);
    tarn_file second = commit_vector(&r->c, "second", &r->f1, 4, 3);
    tarn_entry old = commit_entry(first);
    commit_outcome outcome;
    commit_request q = delta(r, &first, &r->f1);
    q.summary = (tarn_properties){1, &mine};
    assert_ok(commit_now(&r->c, r->c.catalog, &q, &outcome, &err));
    q = delta(r, &second, &r->f1);
    q.removed_deletes = &old;
    q.n_removed_deletes = 1;
    q.check_new_deletes = true;
    const tarn_property *wrong[2] = {NULL, &other};
    for (int i = 0; i < 2; i++) {
        q.mine = wrong[i];
        assert_code(commit_now(&r->c, r->c.catalog, &q, &outcome, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "first"));
        err_reset(&err);
    }
    q.mine = &mine;
    assert_ok(commit_now(&r->c, r->c.catalog, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
}

/* Equality deletes: by what they may hold, as far as that is known. */
static void tell_new_equality(race *r) {
    tarn_arena arena;
    const tarn_expr *parsed, *filters[2];
    static const char *const texts[2] = {"p = 1", "p = 2"};
    tarn_table_version *v = case_load(&r->c);
    arena_init(&arena, r->c.env);
    for (int i = 0; i < 2; i++) {
        assert_ok(expr_parse(&arena, str_of(texts[i]), &parsed, &err));
        assert_ok(
            expr_bind(&arena, parsed, metadata_schema(v->metadata)->root, true, &filters[i], &err));
    }
    tarn_file theirs = commit_delete_file(&r->c, "theirs", TARN_CONTENT_EQUALITY_DELETES, 2, 2);
    tarn_file p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    commit_request rival = delta(r, &theirs, NULL);
    commit_request q = delta(r, &p1, &r->f1);
    q.check_new_deletes = true;
    q.conflict_filter = filters[0];
    passes(r, &q, &rival);
    tarn_file p2 = commit_position_file(&r->c, "p2", &r->f1, 2);
    q.added_deletes = &p2;
    commit_outcome outcome;
    const tarn_expr *hits[2] = {filters[1], NULL};
    for (int i = 0; i < 2; i++) {
        q.conflict_filter = hits[i];
        q.referenced = &r->f2.path;
        assert_code(commit_now(&r->c, r->c.catalog, &q, &outcome, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "theirs"));
        err_reset(&err);
    }
    commit_remove(&r->c, &p2);
    arena_release(&arena);
    table_version_release(v);
}

/* A delete file that somebody else has replaced meanwhile. */
static void tell_replaced(race *r) {
    tarn_file old = commit_position_file(&r->c, "old", &r->f1, 2);
    tarn_file theirs = commit_position_file(&r->c, "theirs", &r->f1, 3);
    tarn_file mine = commit_position_file(&r->c, "mine", &r->f1, 4);
    tarn_entry gone = commit_entry(old);
    commit_outcome outcome;
    commit_request first = delta(r, &old, NULL);
    assert_ok(commit_now(&r->c, r->c.catalog, &first, &outcome, &err));
    commit_request rival = delta(r, &theirs, NULL);
    rival.removed_deletes = &gone;
    rival.n_removed_deletes = 1;
    commit_request q = delta(r, &mine, &r->f1);
    q.removed_deletes = &gone;
    q.n_removed_deletes = 1;
    conflicts(r, &q, &rival, "old");
}

/* A file has one vector, whoever is asked to check. */
static void tell_vectors(race *r) {
    tarn_file theirs = commit_vector(&r->c, "theirs", &r->f1, 4, 2);
    tarn_file mine[2] = {commit_vector(&r->c, "mine", &r->f1, 4, 3),
                         commit_vector(&r->c, "mine", &r->f2, 14, 3)};
    commit_request rival = delta(r, &theirs, NULL);
    commit_request q = delta(r, mine, NULL);
    q.n_added_deletes = 2;
    conflicts(r, &q, &rival, "f1");
    tarn_file other = commit_vector(&r->c, "other", &r->f2, 4, 3);
    tarn_file rows = commit_file(&r->c, "rows", 2, 1);
    rival = commit_of(COMMIT_FAST_APPEND, &rows, 1);
    q = delta(r, &other, &r->f2);
    passes(r, &q, &rival);
}

/* A rewrite of f1: row deletes that may reach it must not be lost, others do not matter. */
static void tell_rewrite(race *r) {
    tarn_file f3 = commit_file(&r->c, "f3", 1, 9);
    tarn_entry gone = commit_entry(r->f1);
    tarn_file others[3] = {commit_position_file(&r->c, "p2", &r->f2, 2),
                           commit_delete_file(&r->c, "q2", TARN_CONTENT_POSITION_DELETES, 2, 2),
                           commit_delete_file(&r->c, "e2", TARN_CONTENT_EQUALITY_DELETES, 2, 2)};
    commit_request rival = delta(r, others, NULL);
    rival.n_added_deletes = 3;
    commit_request q = commit_of(COMMIT_OVERWRITE, &f3, 1);
    q.removed = &gone;
    q.n_removed = 1;
    q.from_snapshot_id = r->from;
    passes(r, &q, &rival);
    tarn_table_version *v = case_load(&r->c);
    q.from_snapshot_id = v->metadata->current_snapshot_id;
    table_version_release(v);
    for (int i = 0; i < 3; i++) {
        tarn_file theirs =
            i == 0   ? commit_position_file(&r->c, "t0", &f3, 2)
            : i == 1 ? commit_delete_file(&r->c, "t1", TARN_CONTENT_POSITION_DELETES, 1, 2)
                     : commit_delete_file(&r->c, "t2", TARN_CONTENT_EQUALITY_DELETES, 1, 2);
        tarn_file f4 = commit_file(&r->c, "f4", 1, 8);
        gone = commit_entry(f3);
        q.added = &f4;
        rival = delta(r, &theirs, NULL);
        conflicts(r, &q, &rival, i == 0 ? "t0" : i == 1 ? "t1" : "t2");
        v = case_load(&r->c);
        q.from_snapshot_id = v->metadata->current_snapshot_id;
        table_version_release(v);
    }
}

static void tell_lost_answer(race *r) {
    tarn_file p1 = commit_position_file(&r->c, "p1", &r->f1, 2);
    commit_request q = delta(r, &p1, &r->f1);
    commit_outcome outcome;
    r->proxy.mode = PROXY_APPLIED_UNKNOWN;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    state_check(&r->c, "main", "2/2 1 0 0: +f2@2'\n1/1 1 0 0: +f1@1'\nD 3/3 1 0 0: +p1@3\n");
}

static void test_delta_race_retried(void **state) {
    (void)state;
    on_race(tell_retried, 2);
    on_race(tell_lost_answer, 2);
}

static void test_delta_race_referenced(void **state) {
    (void)state;
    on_race(tell_referenced_gone, 2);
}

static void test_delta_race_new_deletes(void **state) {
    (void)state;
    on_race(tell_new_deletes, 2);
    on_race(tell_new_equality, 2);
    on_race(tell_mine, 3);
}

static void test_delta_race_replaced(void **state) {
    (void)state;
    on_race(tell_replaced, 2);
    on_race(tell_vectors, 3);
}

static void test_delta_race_rewrite(void **state) {
    (void)state;
    on_race(tell_rewrite, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delta_race_retried),     cmocka_unit_test(test_delta_race_referenced),
        cmocka_unit_test(test_delta_race_new_deletes), cmocka_unit_test(test_delta_race_replaced),
        cmocka_unit_test(test_delta_race_rewrite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
