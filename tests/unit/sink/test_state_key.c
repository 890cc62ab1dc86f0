/* Goal: a state's key is the stream's for good: another key, or none, is refused by name before
 * anything happens, unless the table's identifier fields became that key; what goes into the table
 * is what the first key makes of it. Method: jobs with other keys open one state, in turn with
 * those of the right one; the rows are read after it. */
#include "sink_case.h"

#include "iceberg/evolve.h"

static tarn_error err;
static const tarn_str names[2] = {{"id", 2}, {"day", 3}};

static void start(sink_case *t, tarn_env *env, const char *deletes) {
    sink_case_init(t, env, CASE_SQLITE_FILE);
    case_table(&t->c, 2, "id int not null, day int not null, v int", NULL, NULL);
    t->options.upsert = true;
    t->options.deletes = str_of(deletes);
}

static void use_key(sink_case *t, int32_t first, int32_t n) {
    t->options.key = n > 0 ? names + first : NULL;
    t->options.n_key = n;
    t->options.upsert = n > 0;
}

static void write_one(sink_case *t, int id, int day, int v) {
    char line[64];
    (void)snprintf(line, sizeof line, "{\"id\":%d,\"day\":%d,\"v\":%d}\n", id, day, v);
    assert_ok(sink_case_open(t, &err));
    assert_ok(sink_case_write(t, line, NULL, &err));
    assert_ok(sink_case_checkpoint(t, NULL, &err));
    sink_case_close(t);
}

static void is_refused(sink_case *t, const char *what) {
    char first[128];
    char before[128];
    int epochs = sink_case_count(t, "epoch-", before);
    assert_code(sink_case_open(t, &err), TARN_INVALID);
    if (strstr(err.message, what) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", err.message, what);
    }
    /* No turn was taken: a job that runs goes on. */
    assert_int_equal(sink_case_count(t, "epoch-", first), epochs);
    assert_string_equal(first, before);
}

static void run_keys(const char *deletes) {
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, deletes);
    use_key(&t, 1, 1); /* of no matter while there are no rows */
    assert_ok(sink_case_open(&t, &err));
    sink_case_close(&t);
    use_key(&t, 0, 0); /* rows may come before changes do */
    write_one(&t, 1, 1, 1);
    use_key(&t, 0, 1);
    write_one(&t, 1, 2, 2);
    use_key(&t, 0, 2);
    is_refused(&t, "changes rows by key (id), not by key (id, day)");
    use_key(&t, 1, 1);
    is_refused(&t, "changes rows by key (id), not by key (day)");
    use_key(&t, 0, 0);
    is_refused(&t, "changes rows by key (id); this one only adds rows");
    use_key(&t, 0, 1);
    write_one(&t, 1, 3, 3);
    sink_case_rows_are(&t, "{\"id\":1,\"day\":3,\"v\":3}\n");
    sink_case_done(&t);
    test_env_done(env);
}

static void keys_are_held(void **state) {
    (void)state;
    run_keys("equality");
    run_keys("position");
}

static void set_identifiers(sink_case *t, const char *columns) {
    tarn_edit edit;
    tarn_change_set changes;
    tarn_table_version *version = case_load(&t->c);
    tarn_table_version *made = NULL;
    tarn_outcome_kind outcome;
    memset(&edit, 0, sizeof edit);
    memset(&changes, 0, sizeof changes);
    edit.kind = EVOLVE_SET_IDENTIFIERS;
    edit.text = str_of(columns);
    assert_ok(evolve_changes(&t->c.arena, version->metadata, &edit, 1, &changes, &err));
    assert_ok(catalog_commit(t->c.catalog, &t->c.ident, version, &changes, &outcome, &made, &err));
    table_version_release(made);
    table_version_release(version);
}

/* A table's fields that were its identifier all along say nothing new. */
static void identifiers_decide(void **state) {
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, "position");
    set_identifiers(&t, "day");
    use_key(&t, 0, 1);
    write_one(&t, 1, 1, 1);
    write_one(&t, 2, 1, 2);
    t.options.key = NULL;
    is_refused(&t, "changes rows by key (id), not by key (day)");
    set_identifiers(&t, "id,day");
    write_one(&t, 1, 1, 3); /* by the identifier fields */
    write_one(&t, 1, 2, 4);
    use_key(&t, 0, 1);
    is_refused(&t, "changes rows by key (id, day), not by key (id)");
    sink_case_rows_are(&t, "{\"id\":2,\"day\":1,\"v\":2}\n{\"id\":1,\"day\":1,\"v\":3}\n"
                           "{\"id\":1,\"day\":2,\"v\":4}\n");
    sink_case_done(&t);
    test_env_done(env);
}

static void damage_is_told(void **state) {
    (void)state;
    static const char *const bodies[] = {"", "{}", "{\"key\":[1],\"identifier-fields\":[]}",
                                         "tarn-sink 1 00000000 2\n{}"};
    tarn_env *env = test_env();
    sink_case t;
    start(&t, env, "equality");
    use_key(&t, 0, 1);
    write_one(&t, 1, 1, 1);
    char path[160];
    (void)snprintf(path, sizeof path, "%s/key", t.state_dir);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        io_sink *sink = NULL;
        assert_ok(store_create(t.c.catalog->store, str_of(path), STORE_REPLACE, &sink, &err));
        assert_ok(io_write(sink, bodies[i], strlen(bodies[i]), &err));
        assert_ok(sink->finish(sink, &err));
        assert_code(sink_case_open(&t, &err), TARN_CORRUPT);
        assert_non_null(strstr(err.message, "/key was damaged"));
    }
    sink_case_done(&t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_held),
        cmocka_unit_test(identifiers_decide),
        cmocka_unit_test(damage_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
