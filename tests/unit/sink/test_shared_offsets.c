/* Goal: sinks that share one stream's offsets in the table read every message once: a commit whose
 * rows somebody else committed is refused and leaves nothing behind, also when it is asked with a
 * newer base; parts of others are kept; what is not known is not made up. Method: several sinks of
 * the room on one table_case, with lines of JSON as rows. */
#include "sink_case.h"

static tarn_error err;

#define ROW1 "{\"id\":1,\"day\":1}\n"
#define ROW2 "{\"id\":2,\"day\":2}\n"
#define ROW3 "{\"id\":3,\"day\":3}\n"
#define KEY  "tarn.offsets.g"

static void start(sink_case *t, tarn_env *env, case_kind kind) {
    static const char *const properties[] = {"commit.retry.min-wait-ms", "1", NULL};
    sink_case_init(t, env, kind);
    case_table(&t->c, 2, "id int not null, day int", NULL, properties);
    t->options.state_dir = STR_NULL;
    t->options.shared_offsets = STR("g");
    assert_ok(sink_case_open(t, &err));
}

/* Another sink on the same table. */
static void join(sink_case *other, const sink_case *t) {
    *other = *t;
    other->sink = NULL;
    assert_ok(sink_case_open(other, &err));
}

static void stands(sink_case *t, const char *want) {
    tarn_buf text;
    buf_init(&text, t->c.env, 0);
    assert_ok(sink_shared_offsets(t->sink, &text, &err));
    assert_true(str_is(buf_str(&text), want));
    buf_release(&text);
}

static void members_share(void **state) {
    (void)state;
    for (case_kind kind = 0; kind < CASE_KINDS; kind++) {
        tarn_env *env = test_env();
        sink_case a;
        sink_case b;
        start(&a, env, kind);
        join(&b, &a);
        stands(&a, "");
        assert_ok(sink_case_write(&a, ROW1, NULL, &err));
        assert_ok(sink_case_write(&b, ROW2, NULL, &err));
        assert_ok(sink_case_checkpoint(&a, "{\"k\":{\"t\":{\"0\":[-1,5]}}}", &err));
        assert_ok(sink_case_checkpoint(&b, "{\"k\":{\"t\":{\"1\":[-1,7]},\"u\":{}}}", &err));
        stands(&a, "{\"k\":{\"t\":{\"0\":5,\"1\":7},\"u\":{}}}");
        assert_string_equal(sink_case_summary(&a, KEY),
                            "{\"k\":{\"t\":{\"0\":5,\"1\":7},\"u\":{}}}");
        sink_case_rows_are(&a, ROW1 ROW2);
        /* moves without rows are a snapshot, no moves are none */
        assert_ok(sink_case_checkpoint(&a, "{\"k\":{\"t\":{\"0\":[5,9]}}}", &err));
        assert_ok(sink_case_checkpoint(&a, "{\"k\":{\"t\":{}}}", &err));
        assert_int_equal(sink_case_snapshots(&a), 3);
        stands(&b, "{\"k\":{\"t\":{\"0\":9,\"1\":7},\"u\":{}}}");
        sink_case_close(&b);
        sink_case_done(&a);
        test_env_done(env);
    }
}

static void zombies_are_refused(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case a;
    sink_case b;
    char orphan[256] = "";
    start(&a, env, CASE_SQLITE_FILE);
    join(&b, &a);
    assert_ok(sink_case_write(&a, ROW1 ROW2, NULL, &err));
    assert_ok(sink_case_write(&b, ROW1, NULL, &err)); /* a was slow, b took over */
    assert_ok(sink_case_checkpoint(&b, "{\"0\":[-1,1]}", &err));
    assert_int_equal(sink_case_checkpoint(&a, "{\"0\":[-1,2],\"1\":[-1,1]}", &err), TARN_CONFLICT);
    assert_non_null(strstr(err.message, "taken it over"));
    sink_case_rows_are(&b, ROW1);
    assert_int_equal(case_count_orphans(&a.c, orphan), 0); /* what it wrote is gone */
    stands(&a, "{\"0\":1}");
    /* it goes on from there */
    assert_ok(sink_case_write(&a, ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&a, "{\"0\":[1,2]}", &err));
    assert_int_equal(sink_case_checkpoint(&b, "{\"0\":[1,2]}", &err), TARN_CONFLICT);
    assert_int_equal(sink_case_checkpoint(&b, "{\"0\":[0,2]}", &err), TARN_CONFLICT);
    assert_int_equal(sink_case_checkpoint(&b, "{\"0\":[3,4]}", &err), TARN_CONFLICT);
    sink_case_rows_are(&b, ROW1 ROW2);
    sink_case_close(&b);
    sink_case_done(&a);
    test_env_done(env);
}

static void bad_offsets_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"0\":[1]}",     "{\"0\":[2,1]}", "{\"0\":[-2,1]}",   "{\"0\":7}", "{\"0\":[-1,\"x\"]}",
        "{\"0\":[-1,-1]}", "{\"0\":null}]", "{\"0\":[-1,1.5]}", "[",         "{\"p\":[-1,1]}"};
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, CASE_DIR_MEMORY);
    assert_ok(sink_case_checkpoint(&t, "{\"p\":{\"0\":[-1,1]}}", &err));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_ok(sink_case_write(&t, ROW1, NULL, &err));
        assert_int_not_equal(sink_case_checkpoint(&t, texts[i], &err), TARN_OK);
    }
    sink_case_rows_are(&t, "");
    stands(&t, "{\"p\":{\"0\":1}}");
    assert_int_equal(case_count_orphans(&t.c, (char[256]){0}), 0);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "{\"p\":{\"0\":[1,2]}}", &err));
    sink_case_rows_are(&t, ROW1);
    sink_case_done(&t);
    test_env_done(env);
}

static tarn_code set_property(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                              tarn_change_set *out, tarn_error *e) {
    const char *value = ctx;
    (void)base;
    tarn_property *item = ARENA_NEW(arena, tarn_property);
    tarn_change *change = ARENA_NEW(arena, tarn_change);
    if (item == NULL || change == NULL) {
        return err_nomem(e);
    }
    *item = (tarn_property){STR(KEY), str_of(value)};
    change->kind = CHANGE_SET_PROPERTIES;
    change->properties = (tarn_properties){1, item};
    out->changes = change;
    out->n_changes = 1;
    return TARN_OK;
}

static tarn_code expire_first(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                              tarn_change_set *out, tarn_error *e) {
    (void)ctx;
    int64_t *id = ARENA_NEW(arena, int64_t);
    tarn_change *change = ARENA_NEW(arena, tarn_change);
    if (id == NULL || change == NULL) {
        return err_nomem(e);
    }
    *id = base->snapshots[0]->snapshot_id;
    change->kind = CHANGE_REMOVE_SNAPSHOTS;
    change->ids = id;
    change->n_ids = 1;
    out->changes = change;
    out->n_changes = 1;
    return TARN_OK;
}

static void change(sink_case *t, commit_make_fn make, const char *value) {
    commit_outcome outcome;
    assert_ok(commit_changes(t->c.env, t->c.catalog, &t->c.ident, make, (void *)(uintptr_t)value,
                             &outcome, &err));
    table_version_release(outcome.version);
}

static void expired_offsets_are_not_made_up(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    sink_case other; /* of no stream */
    tarn_buf text;
    start(&t, env, CASE_DIR_MEMORY);
    assert_ok(sink_case_write(&t, ROW1, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "{\"0\":[-1,1]}", &err));
    other = t;
    other.sink = NULL;
    other.options.shared_offsets = STR_NULL;
    assert_ok(sink_case_open(&other, &err));
    assert_ok(sink_case_write(&other, ROW2, NULL, &err));
    assert_ok(sink_case_checkpoint(&other, NULL, &err));
    stands(&t, "{\"0\":1}");
    change(&t, expire_first, NULL);
    buf_init(&text, env, 0);
    assert_int_equal(sink_shared_offsets(t.sink, &text, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "have expired"));
    assert_ok(sink_case_write(&t, ROW3, NULL, &err));
    assert_int_equal(sink_case_checkpoint(&t, "{\"0\":[1,2]}", &err), TARN_CORRUPT);
    sink_case_rows_are(&t, ROW1 ROW2);
    change(&t, set_property, "{\"0\":1}");
    stands(&t, "{\"0\":1}");
    assert_ok(sink_case_write(&t, ROW3, NULL, &err));
    assert_ok(sink_case_checkpoint(&t, "{\"0\":[1,2]}", &err));
    stands(&t, "{\"0\":2}");
    sink_case_rows_are(&t, ROW1 ROW2 ROW3);
    buf_release(&text);
    sink_case_close(&other);
    sink_case_done(&t);
    test_env_done(env);
}

static void what_does_not_go_with_it_is_refused(void **state) {
    (void)state;
    static const tarn_str key = {"id", 2};
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, CASE_DIR_FILE);
    sink_case_close(&t);
    t.options.append = COMMIT_REPLACE_PARTITIONS;
    assert_int_equal(sink_case_open(&t, &err), TARN_INVALID);
    t.options.append = COMMIT_FAST_APPEND;
    t.options.state_dir = str_of(t.state_dir);
    assert_int_equal(sink_case_open(&t, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "no state folder"));
    t.options.state_dir = STR_NULL;
    t.options.key = &key;
    t.options.n_key = 1;
    t.options.changes = true;
    t.options.deletes = STR("position");
    assert_int_equal(sink_case_open(&t, &err), TARN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "equality"));
    t.options.deletes = STR("equality");
    assert_ok(sink_case_open(&t, &err));
    sink_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_share),
        cmocka_unit_test(zombies_are_refused),
        cmocka_unit_test(bad_offsets_are_refused),
        cmocka_unit_test(expired_offsets_are_not_made_up),
        cmocka_unit_test(what_does_not_go_with_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
