/* Goal: whatever happens between reading the base and the swap, a commit is in the table once or
 * not at all, says truly which, and leaves no file that the table does not name.
 * Method: a catalog in between lets others commit first, loses answers (B28, B29) or refuses. */
#include "unit/write/commit/commit_case.h"

static tarn_error err;

#define SCHEMA "p int, v string"

typedef struct race_case {
    table_case c;
    proxy_catalog proxy;
    int rivals; /* commits that others still make in between */
    int made;
} race_case;

static void rival_appends(void *ctx) {
    race_case *r = ctx;
    if (r->rivals > 0) {
        char name[32];
        r->rivals--;
        (void)snprintf(name, sizeof name, "rival%d", ++r->made);
        commit_append_file(&r->c, name, 100 + r->made);
    }
}

typedef void (*story)(race_case *r, int32_t version);

static void on_all_kinds(story tell, const char *const *properties) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 1; version <= 2; version++) {
            race_case r;
            memset(&r, 0, sizeof r);
            tarn_env *env = test_env();
            case_open(&r.c, env, (case_kind)kind);
            case_table(&r.c, version, SCHEMA, "p", properties);
            proxy_init(&r.proxy, r.c.catalog);
            r.proxy.before = rival_appends;
            r.proxy.ctx = &r;
            tell(&r, version);
            case_check_files(&r.c, 0);
            case_done(&r.c);
            test_env_done(env);
        }
    }
}

static const char *const QUICK[] = {"commit.retry.min-wait-ms",
                                    "1",
                                    "commit.retry.num-retries",
                                    "3",
                                    "commit.manifest.min-count-to-merge",
                                    "2",
                                    NULL};

/* ---- others commit first ---- */

/* B31: two writers on an empty table. */
static void tell_empty_table(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->rivals = 1;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 2);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 0 0: +mine@0\n0/0 1 0 0: +rival1@0'\n"
                             : "2/2 1 0 0: +mine@2\n1/1 1 0 0: +rival1@1'\n");
}

static void test_race_empty_table(void **state) {
    (void)state;
    on_all_kinds(tell_empty_table, QUICK);
}

static void tell_append(race_case *r, int32_t version) {
    static const char *const summary[] = {"total-records", "40", "total-data-files", "4", NULL};
    commit_outcome outcome;
    commit_append_file(&r->c, "old", 0);
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->rivals = 2;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.attempts, 3);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 0 0: +mine@0\n0/0 1 0 0: +rival2@0'\n0/0 1 0 0: +rival1@0'\n"
                               "0/0 1 0 0: +old@0'\n"
                             : "4/4 1 0 0: +mine@4\n3/3 1 0 0: +rival2@3'\n2/2 1 0 0: +rival1@2'\n"
                               "1/1 1 0 0: +old@1'\n");
    state_check_summary(&r->c, summary);
}

static void test_race_append(void **state) {
    (void)state;
    on_all_kinds(tell_append, QUICK);
}

/* What the lost attempt merged is merged again, and its manifest goes. */
static void tell_merge(race_case *r, int32_t version) {
    commit_outcome outcome;
    commit_append_file(&r->c, "old", 0);
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_MERGE_APPEND, &f, 1);
    r->rivals = 2;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.attempts, 3);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 3 0: +mine@0 =rival2@0' =rival1@0' =old@0'\n"
                             : "4/1 1 3 0: +mine@4 =rival2@3' =rival1@2' =old@1'\n");
}

static void test_race_merge_append(void **state) {
    (void)state;
    on_all_kinds(tell_merge, QUICK);
}

static void tell_give_up(race_case *r, int32_t version) {
    commit_outcome outcome;
    (void)version;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_MERGE_APPEND, &f, 1);
    r->rivals = 100;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), TARN_CONFLICT);
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    assert_int_equal(outcome.attempts, 4);
    assert_true(err.message[0] != '\0');
    err_reset(&err);
    commit_remove(&r->c, &f);
    assert_int_equal(r->made, 4);
}

static void test_race_give_up(void **state) {
    (void)state;
    on_all_kinds(tell_give_up, QUICK);
}

/* A table that says nothing of retries: an append outlasts more rivals than the four tries of
 * Iceberg's own writers. */
static void tell_outlasts(race_case *r, int32_t version) {
    commit_outcome outcome;
    (void)version;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->rivals = 12;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 13);
}

static void test_race_outlasts(void **state) {
    static const char *const fast[] = {"commit.retry.min-wait-ms", "1", "commit.retry.max-wait-ms",
                                       "1", NULL};
    (void)state;
    on_all_kinds(tell_outlasts, fast);
}

/* ---- validation ---- */

typedef struct bound_filter {
    tarn_arena arena;
    const tarn_expr *expr;
} bound_filter;

static void bind_filter(race_case *r, bound_filter *b, const char *text) {
    const tarn_expr *parsed;
    tarn_table_version *v = case_load(&r->c);
    arena_init(&b->arena, r->c.env);
    assert_ok(expr_parse(&b->arena, str_of(text), &parsed, &err));
    const tarn_type *root = type_copy(&b->arena, metadata_schema(v->metadata)->root);
    assert_ok(expr_bind(&b->arena, parsed, root, true, &b->expr, &err));
    table_version_release(v);
}

/* A rewrite of "old" while others append: a conflict only where the new file may match. */
static void rewrite_old(race_case *r, const char *conflict_filter, tarn_code want) {
    commit_outcome outcome;
    bound_filter filter;
    tarn_entry gone;
    commit_append_file(&r->c, "old", 0);
    tarn_table_version *v = case_load(&r->c);
    memset(&gone, 0, sizeof gone);
    gone.file = commit_file(&r->c, "old", 0, 10);
    tarn_file f = commit_file(&r->c, "mine", 0, 9);
    commit_request q = commit_of(COMMIT_OVERWRITE, &f, 1);
    q.removed = &gone;
    q.n_removed = 1;
    q.from_snapshot_id = v->metadata->current_snapshot_id;
    if (conflict_filter != NULL) {
        bind_filter(r, &filter, conflict_filter);
        q.conflict_filter = filter.expr;
    }
    r->rivals = 1;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), want);
    if (want == TARN_OK) {
        assert_int_equal(outcome.attempts, 2);
    } else {
        assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
        assert_non_null(strstr(err.message, "rival1"));
        err_reset(&err);
        commit_remove(&r->c, &f);
    }
    if (conflict_filter != NULL) {
        arena_release(&filter.arena);
    }
    table_version_release(v);
}

static void tell_snapshot_isolation(race_case *r, int32_t version) {
    rewrite_old(r, NULL, TARN_OK);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 0 0: +mine@0\n0/0 1 0 0: +rival1@0'\n0/0 0 0 1: -old@0\n"
                             : "3/3 1 0 0: +mine@3\n2/2 1 0 0: +rival1@2'\n3/3 0 0 1: -old@1\n");
}

static void tell_serializable_misses(race_case *r, int32_t version) {
    (void)version;
    rewrite_old(r, "p = 0", TARN_OK); /* the rival's partition is 101 */
}

static void tell_serializable_hits(race_case *r, int32_t version) {
    rewrite_old(r, "p >= 0", TARN_CONFLICT);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 0 0: +rival1@0\n0/0 1 0 0: +old@0'\n"
                             : "2/2 1 0 0: +rival1@2\n1/1 1 0 0: +old@1'\n");
}

static void test_race_isolation(void **state) {
    (void)state;
    on_all_kinds(tell_snapshot_isolation, QUICK);
    on_all_kinds(tell_serializable_misses, QUICK);
    on_all_kinds(tell_serializable_hits, QUICK);
}

static void rival_deletes(void *ctx) {
    race_case *r = ctx;
    if (r->rivals > 0) {
        commit_outcome outcome;
        tarn_entry gone;
        memset(&gone, 0, sizeof gone);
        r->rivals--;
        gone.file = commit_file(&r->c, "old", 0, 10);
        commit_request q = commit_of(COMMIT_DELETE_FILES, NULL, 0);
        q.removed = &gone;
        q.n_removed = 1;
        assert_ok(commit_now(&r->c, r->c.catalog, &q, &outcome, &err));
    }
}

/* Two rewrites of one file: the second would bring back the rows that the first removed. */
static void tell_removed_twice(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_entry gone;
    (void)version;
    commit_append_file(&r->c, "old", 0);
    memset(&gone, 0, sizeof gone);
    gone.file = commit_file(&r->c, "old", 0, 10);
    tarn_file f = commit_file(&r->c, "mine", 0, 9);
    commit_request q = commit_of(COMMIT_OVERWRITE, &f, 1);
    q.removed = &gone;
    q.n_removed = 1;
    r->proxy.before = rival_deletes;
    r->rivals = 1;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), TARN_CONFLICT);
    assert_int_equal(outcome.attempts, 2);
    assert_non_null(strstr(err.message, "old"));
    err_reset(&err);
    commit_remove(&r->c, &f);
}

static void test_race_removed_twice(void **state) {
    (void)state;
    on_all_kinds(tell_removed_twice, QUICK);
}

/* ---- answers that are lost ---- */

static void tell_applied_unknown(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->proxy.mode = PROXY_APPLIED_UNKNOWN;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(err.code, TARN_OK);
    state_check(&r->c, "main", version == 1 ? "0/0 1 0 0: +mine@0\n" : "1/1 1 0 0: +mine@1\n");
}

/* B28: the resent request met a conflict with itself. B29: what the table names stays. */
static void tell_applied_conflict(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_MERGE_APPEND, &f, 1);
    commit_append_file(&r->c, "old", 0);
    r->rivals = 1; /* so that an attempt is lost too, and its files are the ones that go */
    r->proxy.mode = PROXY_APPLIED_CONFLICT;
    r->proxy.times = 0;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    tarn_file g = commit_file(&r->c, "mine2", 1, 10);
    q.added = &g;
    r->proxy.times = 1;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 1);
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 3 0: +mine2@0 =mine@0' =rival1@0' =old@0'\n"
                             : "4/1 1 3 0: +mine2@4 =mine@3' =rival1@2' =old@1'\n");
}

/* Not applied: nothing may go while that is not known, and a retry adds the rows once. */
static void tell_dropped_unknown(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    q.commit_id = "once";
    commit_append_file(&r->c, "old", 0);
    r->proxy.mode = PROXY_DROPPED_UNKNOWN;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), TARN_COMMIT_UNKNOWN);
    assert_int_equal(outcome.kind, TARN_OUTCOME_UNKNOWN);
    assert_true(outcome.snapshot_id != TARN_NO_SNAPSHOT);
    err_reset(&err);
    case_check_files(&r->c, 3); /* data file, manifest, list */
    r->proxy.mode = PROXY_PASS;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    state_check(&r->c, "main",
                version == 1 ? "0/0 1 0 0: +mine@0\n0/0 1 0 0: +old@0'\n"
                             : "2/2 1 0 0: +mine@2\n1/1 1 0 0: +old@1'\n");
    /* a resend after it went through is told so */
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.attempts, 0);
}

static void on_kinds_with_leftovers(story tell) {
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 1; version <= 2; version++) {
            race_case r;
            memset(&r, 0, sizeof r);
            tarn_env *env = test_env();
            case_open(&r.c, env, (case_kind)kind);
            case_table(&r.c, version, SCHEMA, "p", QUICK);
            proxy_init(&r.proxy, r.c.catalog);
            tell(&r, version);
            case_check_files(&r.c, 2); /* manifest and list of the attempt that was not applied */
            case_done(&r.c);
            test_env_done(env);
        }
    }
}

/* The answer was lost and the catalog does not speak any more. */
static void go_blind(void *ctx) {
    race_case *r = ctx;
    r->proxy.blind = true;
}

static void tell_unseen(race_case *r, proxy_mode mode, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->proxy.mode = mode;
    r->proxy.before = go_blind;
    r->proxy.ctx = r;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), TARN_COMMIT_UNKNOWN);
    assert_int_equal(outcome.kind, TARN_OUTCOME_UNKNOWN);
    err_reset(&err);
    state_check(&r->c, "main", version == 1 ? "0/0 1 0 0: +mine@0\n" : "1/1 1 0 0: +mine@1\n");
}

static void tell_blind(race_case *r, int32_t version) {
    tell_unseen(r, PROXY_APPLIED_UNKNOWN, version);
}

/* The answer was a conflict, with what the swap itself had made, and then nobody answers; or there
 * is no attempt left. */
static void tell_unseen_conflict(race_case *r, int32_t version) {
    tell_unseen(r, PROXY_APPLIED_CONFLICT, version);
}

static void tell_last_conflict(race_case *r, int32_t version) {
    commit_outcome outcome;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->proxy.mode = PROXY_APPLIED_CONFLICT;
    r->proxy.times = 1;
    assert_ok(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err));
    assert_int_equal(outcome.attempts, 1);
    state_check(&r->c, "main", version == 1 ? "0/0 1 0 0: +mine@0\n" : "1/1 1 0 0: +mine@1\n");
}

static void test_race_lost_answers(void **state) {
    static const char *const no_retry[] = {"commit.retry.num-retries", "0", NULL};
    (void)state;
    on_all_kinds(tell_unseen_conflict, QUICK);
    on_all_kinds(tell_last_conflict, no_retry);
    on_all_kinds(tell_applied_unknown, QUICK);
    on_all_kinds(tell_applied_conflict, QUICK);
    on_all_kinds(tell_blind, QUICK);
    on_kinds_with_leftovers(tell_dropped_unknown);
}

/* ---- requests that arrive late ---- */

/* A server that refuses the first request, and when the second comes puts that first one on the
 * newer head. */
typedef struct late_server {
    tarn_catalog base;
    race_case *r;
    tarn_snapshot first;
    int calls;
    tarn_outcome_kind answer; /* to the second */
} late_server;

static void keep_first(late_server *s, const tarn_change_set *set) {
    tarn_arena *arena = &s->r->c.arena;
    for (int32_t i = 0; i < set->n_changes; i++) {
        if (set->changes[i].kind == CHANGE_ADD_SNAPSHOT) {
            s->first = *set->changes[i].snapshot;
        }
    }
    s->first.manifest_list = arena_str(arena, s->first.manifest_list);
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)s->first.summary.count);
    for (int32_t i = 0; i < s->first.summary.count; i++) {
        items[i].key = arena_str(arena, s->first.summary.items[i].key);
        items[i].value = arena_str(arena, s->first.summary.items[i].value);
    }
    s->first.summary.items = items;
    s->first.text = STR_NULL;
}

static void take_first(late_server *s) {
    tarn_outcome_kind outcome;
    tarn_table_version *now = case_load(&s->r->c);
    const tarn_metadata *m = now->metadata;
    s->first.parent_id = m->current_snapshot_id;
    s->first.sequence_number = m->format_version > 1 ? m->last_sequence_number + 1 : 0;
    tarn_change changes[2];
    memset(changes, 0, sizeof changes);
    changes[0] = (tarn_change){.kind = CHANGE_ADD_SNAPSHOT, .snapshot = &s->first};
    changes[1].kind = CHANGE_SET_SNAPSHOT_REF;
    changes[1].ref = *metadata_ref(m, STR(TARN_MAIN_BRANCH));
    changes[1].ref.snapshot_id = s->first.snapshot_id;
    const tarn_change_set set = {0, NULL, 2, changes};
    assert_ok(catalog_commit(s->r->c.catalog, &s->r->c.ident, now, &set, &outcome, NULL, &err));
    table_version_release(now);
}

static tarn_code late_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                           tarn_error *e) {
    return catalog_load(((late_server *)c)->r->c.catalog, table, out, e);
}

static tarn_code late_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                             const tarn_change_set *set, tarn_outcome_kind *outcome,
                             tarn_table_version **out, tarn_error *e) {
    late_server *s = (late_server *)c;
    (void)table;
    (void)base;
    (void)out;
    if (++s->calls == 1) {
        keep_first(s, set);
        commit_append_file(&s->r->c, "rival", 100);
    } else {
        take_first(s);
    }
    *outcome = s->calls == 1 ? TARN_NOT_COMMITTED : s->answer;
    return *outcome == TARN_NOT_COMMITTED ? err_set(e, TARN_CONFLICT, "the head had moved")
                                          : err_set(e, TARN_COMMIT_UNKNOWN, "the answer was lost");
}

static const catalog_vtable LATE_VTABLE = {
    .name = "late", .load = late_load, .commit = late_commit};

/* The table has what the first attempt made, and nothing of that goes. */
static void tell_late_first(race_case *r, tarn_outcome_kind answer) {
    commit_outcome outcome;
    char first[256] = "";
    late_server s = {.base = {&LATE_VTABLE, r->c.env, r->c.catalog->store}, .r = r};
    s.answer = answer;
    commit_append_file(&r->c, "old", 0);
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_MERGE_APPEND, &f, 1);
    tarn_code code = commit_run(r->c.env, &s.base, &r->c.ident, NULL, &q, &outcome, &err);
    table_version_release(outcome.version);
    assert_int_equal(code, TARN_OK);
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    assert_int_equal(outcome.attempts, 2);
    assert_true(outcome.snapshot_id == s.first.snapshot_id);
    assert_true(case_count_orphans(&r->c, first) >
                0); /* of the second; all that is named is there */
}

static void test_race_late_first(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        for (int32_t version = 1; version <= 2; version++) {
            for (int lost = 0; lost < 2; lost++) {
                race_case r;
                memset(&r, 0, sizeof r);
                tarn_env *env = test_env();
                case_open(&r.c, env, (case_kind)kind);
                case_table(&r.c, version, SCHEMA, "p", QUICK);
                tell_late_first(&r, lost ? TARN_OUTCOME_UNKNOWN : TARN_NOT_COMMITTED);
                case_done(&r.c);
                test_env_done(env);
            }
        }
    }
}

static void tell_failed(race_case *r, int32_t version) {
    commit_outcome outcome;
    (void)version;
    tarn_file f = commit_file(&r->c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    r->proxy.mode = PROXY_FAILED;
    assert_code(commit_now(&r->c, &r->proxy.base, &q, &outcome, &err), TARN_DENIED);
    assert_int_equal(outcome.kind, TARN_NOT_COMMITTED);
    err_reset(&err);
    commit_remove(&r->c, &f);
}

static void test_race_refused(void **state) {
    (void)state;
    on_all_kinds(tell_failed, QUICK);
}

/* The first attempt's manifest is used again by the second (invariant 5: no manifest is read). */
static void test_race_manifest_once(void **state) {
    (void)state;
    race_case r;
    commit_outcome outcome;
    memset(&r, 0, sizeof r);
    tarn_env *env = test_env();
    case_open(&r.c, env, CASE_DIR_MEMORY);
    case_table(&r.c, 2, SCHEMA, "p", QUICK);
    proxy_init(&r.proxy, r.c.catalog);
    r.proxy.before = rival_appends;
    r.proxy.ctx = &r;
    tarn_file f = commit_file(&r.c, "mine", 1, 10);
    commit_request q = commit_of(COMMIT_FAST_APPEND, &f, 1);
    assert_ok(commit_now(&r.c, &r.proxy.base, &q, &outcome, &err));
    tarn_table_version *v = case_load(&r.c);
    int64_t calls = r.c.plan.calls;
    tarn_file g = commit_file(&r.c, "more", 1, 10);
    q.added = &g;
    assert_ok(commit_run(env, &r.proxy.base, &r.c.ident, v, &q, &outcome, &err));
    table_version_release(outcome.version);
    int64_t at_one = r.c.plan.calls - calls;
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%d", i);
        commit_append_file(&r.c, name, i);
    }
    table_version_release(v);
    v = case_load(&r.c);
    tarn_file h = commit_file(&r.c, "most", 1, 10);
    q.added = &h;
    calls = r.c.plan.calls;
    assert_ok(commit_run(env, &r.proxy.base, &r.c.ident, v, &q, &outcome, &err));
    table_version_release(outcome.version);
    /* as many calls with 22 manifests as with 1, but for reading a longer list */
    assert_true(r.c.plan.calls - calls <= at_one + 2);
    table_version_release(v);
    case_check_files(&r.c, 0);
    case_done(&r.c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_race_empty_table),  cmocka_unit_test(test_race_append),
        cmocka_unit_test(test_race_merge_append), cmocka_unit_test(test_race_give_up),
        cmocka_unit_test(test_race_isolation),    cmocka_unit_test(test_race_removed_twice),
        cmocka_unit_test(test_race_late_first),   cmocka_unit_test(test_race_lost_answers),
        cmocka_unit_test(test_race_refused),      cmocka_unit_test(test_race_manifest_once),
        cmocka_unit_test(test_race_outlasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
