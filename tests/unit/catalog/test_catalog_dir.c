/* Goal: the current version of a folder is found whatever the hint says, tables that other engines
 * made are found by dir and path catalogs, and lack of memory leaves nothing.
 * Method: one table of a few versions in memory, whose hint and files are then changed by hand;
 * fixtures of Iceberg Java. */
#include "tempdir.h"
#include "torture.h"

#include "catalog/catalog_int.h"

static tarn_error err;

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
    tarn_store *store; /* the catalog's */
    tarn_catalog *dir;
    tarn_ident table;
} fixture;

static tarn_code set_property(tarn_catalog *c, const tarn_ident *table, const char *key,
                              const char *value, tarn_error *error) {
    tarn_property pair = {str_of(key), str_of(value)};
    tarn_change change = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &pair}};
    tarn_change_set set = {0, NULL, 1, &change};
    tarn_table_version *base = NULL;
    tarn_outcome_kind outcome;
    tarn_code code = catalog_load(c, table, &base, error);
    if (code == TARN_OK) {
        code = catalog_commit(c, table, base, &set, &outcome, NULL, error);
    }
    table_version_release(base);
    return code;
}

/* ns.t at version 4: n=1, 2, 3 from version 2 on. */
static void set_up(fixture *f) {
    metadata_new_options options = {0};
    f->env = test_env();
    arena_init(&f->arena, f->env);
    assert_ok(store_memory_new(f->env, &f->store, &err));
    assert_ok(catalog_dir_new(f->env, f->store, STR("/w"), &f->dir, &err));
    assert_ok(ident_parse(&f->arena, STR("ns.t"), false, &f->table, &err));
    tarn_ident ns = {1, f->table.levels, STR_NULL};
    assert_ok(type_from_text(&f->arena, STR("struct<id: long>"), &options.root, &err));
    assert_ok(catalog_create_namespace(f->dir, &ns, NULL, &err));
    assert_ok(catalog_create(f->dir, &f->table, &options, NULL, &err));
    assert_ok(set_property(f->dir, &f->table, "n", "1", &err));
    assert_ok(set_property(f->dir, &f->table, "n", "2", &err));
    assert_ok(set_property(f->dir, &f->table, "n", "3", &err));
}

static void tear_down(fixture *f) {
    catalog_close(f->dir);
    arena_release(&f->arena);
    test_env_done(f->env);
}

static void expect_n(tarn_catalog *c, const tarn_ident *table, const char *want) {
    tarn_table_version *v = NULL;
    assert_ok(catalog_load(c, table, &v, &err));
    assert_true(str_is(properties_str(&v->metadata->properties, "n", ""), want));
    table_version_release(v);
}

static void put(fixture *f, const char *name, tarn_str text) {
    char path[128];
    (void)snprintf(path, sizeof path, "/w/ns/t/metadata/%s", name);
    assert_ok(store_put(f->store, str_of(path), STORE_REPLACE, text, &err));
}

static void move_file(fixture *f, const char *from, const char *to) {
    char path[128];
    tarn_buf bytes;
    buf_init(&bytes, f->env, 0);
    (void)snprintf(path, sizeof path, "/w/ns/t/metadata/%s", from);
    assert_ok(store_get(f->store, str_of(path), 1 << 20, &bytes, &err));
    assert_ok(store_remove(f->store, str_of(path), &err));
    put(f, to, buf_str(&bytes));
    buf_release(&bytes);
}

static void finds_the_version_whatever_the_hint_says(void **state) {
    (void)state;
    static const char *const HINTS[] = {"4",
                                        "1",
                                        "3\n",
                                        "9",
                                        "0",
                                        "-2",
                                        "",
                                        "v4",
                                        "4x",
                                        " 4 ",
                                        "99999999999999999999",
                                        "9223372036854775807"};
    fixture f;
    tarn_buf hint;
    set_up(&f);
    buf_init(&hint, f.env, 0);
    assert_ok(store_get(f.store, STR("/w/ns/t/metadata/version-hint.text"), 100, &hint, &err));
    assert_true(str_is(buf_str(&hint), "4"));
    buf_release(&hint);
    for (size_t i = 0; i < sizeof HINTS / sizeof HINTS[0]; i++) {
        put(&f, "version-hint.text", str_of(HINTS[i]));
        expect_n(f.dir, &f.table, "3");
    }
    assert_ok(store_remove(f.store, STR("/w/ns/t/metadata/version-hint.text"), &err));
    expect_n(f.dir, &f.table, "3");
    /* Old versions are gone, and the hint names one of them. */
    put(&f, "version-hint.text", STR("2"));
    assert_ok(store_remove(f.store, STR("/w/ns/t/metadata/v1.metadata.json"), &err));
    assert_ok(store_remove(f.store, STR("/w/ns/t/metadata/v2.metadata.json"), &err));
    expect_n(f.dir, &f.table, "3");
    assert_ok(set_property(f.dir, &f.table, "n", "4", &err));
    expect_n(f.dir, &f.table, "4");
    /* A hint far behind. */
    for (int i = 0; i < 30; i++) {
        assert_ok(set_property(f.dir, &f.table, "i", "x", &err));
    }
    put(&f, "version-hint.text", STR("4"));
    assert_ok(set_property(f.dir, &f.table, "n", "5", &err));
    put(&f, "version-hint.text", STR("4"));
    expect_n(f.dir, &f.table, "5");
    tear_down(&f);
}

static void reads_old_names_of_packed_documents(void **state) {
    (void)state;
    fixture f;
    set_up(&f);
    move_file(&f, "v4.metadata.json", "v4.metadata.json.gz"); /* found by name, read by content */
    expect_n(f.dir, &f.table, "3");
    assert_ok(set_property(f.dir, &f.table, "n", "4", &err));
    expect_n(f.dir, &f.table, "4");
    assert_true(store_exists(f.store, STR("/w/ns/t/metadata/v5.metadata.json")));
    tear_down(&f);
}

static void does_not_take_a_lost_place(void **state) {
    (void)state;
    fixture f;
    set_up(&f);
    tarn_table_version *base = NULL;
    tarn_outcome_kind outcome;
    tarn_property pair = {STR("n"), STR("late")};
    tarn_change change = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &pair}};
    tarn_change_set set = {0, NULL, 1, &change};
    assert_ok(catalog_load(f.dir, &f.table, &base, &err));
    assert_ok(set_property(f.dir, &f.table, "n", "4", &err));
    assert_ok(set_property(f.dir, &f.table, "n", "5", &err));
    /* Version 5 was removed as old: its name is free again. */
    assert_ok(store_remove(f.store, STR("/w/ns/t/metadata/v5.metadata.json"), &err));
    assert_code(catalog_commit(f.dir, &f.table, base, &set, &outcome, NULL, &err), TARN_CONFLICT);
    assert_int_equal(outcome, TARN_NOT_COMMITTED);
    expect_n(f.dir, &f.table, "5");
    table_version_release(base);
    tear_down(&f);
}

/* A writer that sleeps between its last look and its create, while others commit and remove old
 * versions: it then creates a version that was there before. */
static struct {
    const store_vtable *vt;
    fixture *f;
    bool armed;
    int commits;
} sleeper;

static tarn_code create_late(tarn_store *store, tarn_str path, store_mode mode, io_sink **out,
                             tarn_error *error) {
    if (sleeper.armed && str_ends_with(path, STR("v6.metadata.json"))) {
        sleeper.armed = false;
        for (int i = 0; i < sleeper.commits; i++) {
            char text[24];
            text[str_from_i64(100 + i, text)] = 0;
            assert_ok(set_property(sleeper.f->dir, &sleeper.f->table, "n", text, error));
        }
        env_sleep_ms(store->env, 3); /* times are compared by the millisecond */
    }
    return sleeper.vt->create(store, path, mode, out, error);
}

static void finds_out_that_it_came_too_late(void **state) {
    (void)state;
    fixture f;
    store_vtable late;
    tarn_table_version *base = NULL;
    tarn_outcome_kind outcome;
    tarn_property pairs[] = {{STR("write.metadata.previous-versions-max"), STR("1")},
                             {STR("write.metadata.delete-after-commit.enabled"), STR("true")}};
    tarn_property pair = {STR("n"), STR("late")};
    tarn_change trim = {.kind = CHANGE_SET_PROPERTIES, .properties = {2, pairs}};
    tarn_change change = {.kind = CHANGE_SET_PROPERTIES, .properties = {1, &pair}};
    tarn_change_set trim_set = {0, NULL, 1, &trim};
    tarn_change_set set = {0, NULL, 1, &change};
    set_up(&f);
    assert_ok(catalog_load(f.dir, &f.table, &base, &err));
    assert_ok(catalog_commit(f.dir, &f.table, base, &trim_set, &outcome, NULL, &err));
    table_version_release(base);
    assert_ok(catalog_load(f.dir, &f.table, &base, &err)); /* version 5 */
    late = *f.store->vt;
    late.create = create_late;
    sleeper.vt = f.store->vt;
    sleeper.f = &f;
    sleeper.armed = true;
    sleeper.commits = 4; /* 6 to 9; 6 and 7 are removed again */
    f.store->vt = &late;
    assert_code(catalog_commit(f.dir, &f.table, base, &set, &outcome, NULL, &err), TARN_CONFLICT);
    assert_int_equal(outcome, TARN_NOT_COMMITTED);
    assert_false(sleeper.armed);
    expect_n(f.dir, &f.table, "103");
    assert_false(store_exists(f.store, STR("/w/ns/t/metadata/v6.metadata.json")));
    table_version_release(base);
    tear_down(&f);
}

/* An old version that escaped its removal, and a hint that was written late: they are no table. */
static void is_not_led_back_by_a_late_hint(void **state) {
    (void)state;
    fixture f;
    tarn_buf bytes;
    char n[2] = "4";
    set_up(&f);
    buf_init(&bytes, f.env, 0);
    assert_ok(set_property(f.dir, &f.table, "write.metadata.previous-versions-max", "1", &err));
    assert_ok(
        set_property(f.dir, &f.table, "write.metadata.delete-after-commit.enabled", "true", &err));
    assert_ok(store_get(f.store, STR("/w/ns/t/metadata/v6.metadata.json"), 1 << 20, &bytes, &err));
    for (; n[0] <= '8'; n[0]++) {
        assert_ok(set_property(f.dir, &f.table, "n", n, &err));
    }
    assert_false(store_exists(f.store, STR("/w/ns/t/metadata/v7.metadata.json")));
    put(&f, "v6.metadata.json", buf_str(&bytes));
    put(&f, "version-hint.text", STR("6"));
    expect_n(f.dir, &f.table, "8");
    assert_ok(set_property(f.dir, &f.table, "n", "9", &err));
    expect_n(f.dir, &f.table, "9");
    buf_release(&bytes);
    tear_down(&f);
}

static void refuses_to_leave_the_folder(void **state) {
    (void)state;
    fixture f;
    set_up(&f);
    tarn_table_version *base = NULL;
    tarn_outcome_kind outcome;
    tarn_change change = {.kind = CHANGE_SET_LOCATION, .text = STR("/elsewhere")};
    tarn_change_set set = {0, NULL, 1, &change};
    assert_ok(catalog_load(f.dir, &f.table, &base, &err));
    assert_code(catalog_commit(f.dir, &f.table, base, &set, &outcome, NULL, &err), TARN_INVALID);
    table_version_release(base);
    assert_code(set_property(f.dir, &f.table, "write.metadata.path", "/elsewhere", &err),
                TARN_INVALID);
    expect_n(f.dir, &f.table, "3");
    tear_down(&f);
}

static tarn_catalog *open_path(tarn_env *env, tarn_store *store, const char *path) {
    tarn_catalog *c = NULL;
    assert_ok(catalog_path_new(env, store, str_of(path), &c, &err));
    return c;
}

static void reads_one_table_by_its_path(void **state) {
    (void)state;
    fixture f;
    set_up(&f);
    tarn_ident any = {0, NULL, STR("any")};
    static const struct {
        const char *path, *n;
    } CASES[] = {{"/w/ns/t", "3"},
                 {"/w/ns/t/", "3"},
                 {"/w/ns/t/metadata", "3"},
                 {"/w/ns/t/metadata/v3.metadata.json", "2"}};
    /* A copy of the store's handle that does not own it: the path catalog must not close it. */
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tarn_store *moved = NULL;
        store_trace trace = {0};
        assert_ok(store_trace_new(f.store, &trace, &moved, &err));
        tarn_catalog *c = open_path(f.env, moved, CASES[i].path);
        tarn_outcome_kind outcome;
        tarn_change_set set = {0};
        tarn_table_version *v = NULL;
        expect_n(c, &any, CASES[i].n);
        assert_ok(catalog_load(c, &any, &v, &err));
        assert_code(catalog_commit(c, &any, v, &set, &outcome, NULL, &err), TARN_UNSUPPORTED);
        assert_int_equal(outcome, TARN_NOT_COMMITTED);
        assert_code(catalog_drop(c, &any, &err), TARN_UNSUPPORTED);
        table_version_release(v);
        env_free(f.env, moved); /* the wrappers alone */
        env_free(f.env, c);
    }
    tear_down(&f);
}

static void reads_numbered_names_by_path(void **state) {
    (void)state;
    fixture f;
    set_up(&f);
    tarn_ident any = {0, NULL, STR("any")};
    assert_ok(store_remove(f.store, STR("/w/ns/t/metadata/version-hint.text"), &err));
    move_file(&f, "v1.metadata.json", "00009-z.metadata.json");
    move_file(&f, "v4.metadata.json", "00011-a.metadata.json");
    move_file(&f, "v2.metadata.json", "00010-x.metadata.json");
    move_file(&f, "v3.metadata.json", "00010-y.metadata.json");
    tarn_store *wrapped = NULL;
    store_trace trace = {0};
    assert_ok(store_trace_new(f.store, &trace, &wrapped, &err));
    tarn_catalog *c = open_path(f.env, wrapped, "/w/ns/t");
    expect_n(c, &any, "3");
    put(&f, "version-hint.text", STR("00010-x"));
    expect_n(c, &any, "1");
    put(&f, "version-hint.text", STR("00010-y.metadata.json\n"));
    expect_n(c, &any, "2");
    put(&f, "version-hint.text", STR("gone"));
    expect_n(c, &any, "3");
    tarn_catalog *none = open_path(f.env, wrapped, "/w/none");
    tarn_table_version *v = NULL;
    assert_code(catalog_load(none, &any, &v, &err), TARN_NOT_FOUND);
    env_free(f.env, wrapped);
    env_free(f.env, c);
    env_free(f.env, none);
    tear_down(&f);
}

/* folder NULL: a dir catalog in memory; else SQLite in that folder. */
static tarn_code open_kind(tarn_env *env, const char *folder, tarn_store **store,
                           tarn_catalog **out) {
    char path[128];
    if (folder == NULL) {
        return catalog_dir_new(env, *store, STR("/w"), out, &err);
    }
    (void)snprintf(path, sizeof path, "%s/catalog.db", folder);
    (void)unlink(path);
    return catalog_sqlite_new(env, *store, str_of(path), STR("c"), STR("/w"), out, &err);
}

static tarn_code whole_life(tarn_env *env, const char *folder) {
    tarn_arena arena;
    tarn_store *store = NULL;
    tarn_catalog *c = NULL;
    metadata_new_options options = {0};
    tarn_ident table;
    tarn_ident *tables = NULL;
    int32_t n = 0;
    tarn_code code;
    arena_init(&arena, env);
    TRY(ident_parse(&arena, STR("ns.t"), false, &table, &err));
    tarn_ident ns = {1, table.levels, STR_NULL};
    TRY(type_from_text(&arena, STR("struct<id: long>"), &options.root, &err));
    TRY(store_memory_new(env, &store, &err));
    TRY(open_kind(env, folder, &store, &c));
    store = NULL;
    TRY(catalog_create_namespace(c, &ns, NULL, &err));
    TRY(catalog_create(c, &table, &options, NULL, &err));
    TRY(set_property(c, &table, "write.metadata.compression-codec", "gzip", &err));
    TRY(set_property(c, &table, "n", "1", &err));
    TRY(catalog_list_tables(c, &arena, &ns, &tables, &n, &err));
    TRY(catalog_list_namespaces(c, &arena, &ns, &tables, &n, &err));
    code = catalog_drop(c, &table, &err);
done:
    catalog_close(c);
    store_close(store);
    arena_release(&arena);
    return code;
}

static void torture_memory(const char *folder) {
    test_memory memory = {0};
    tarn_env *env = test_env_memory(&memory);
    tarn_code code = TARN_NOMEM;
    int k = 0;
    while (code != TARN_OK && k < 20000) {
        memory.fail_at = ++k;
        code = whole_life(env, folder);
        /* UNKNOWN: what was sent could not be looked at. */
        assert_true(code == TARN_OK || code == TARN_NOMEM || code == TARN_COMMIT_UNKNOWN);
        assert_int_equal(tarn_env_memory_now(env), 0);
        if (code == TARN_OK && memory.fail_at <= 0) {
            code = TARN_NOMEM; /* it was hit where it does not matter (hint, label): go on */
        }
    }
    assert_true(k > 50 && k < 20000);
    memory.fail_at = 0;
    test_env_done(env);
}

static void survives_lack_of_memory(void **state) {
    (void)state;
    char folder[64];
    torture_memory(NULL);
    test_tempdir(folder);
    torture_memory(folder);
    test_tempdir_done(folder);
}

/* Tables of Hadoop catalogs, made by Iceberg Java 0.11 to 1.10 and copied here. */
static void reads_tables_of_iceberg_java(void **state) {
    (void)state;
    static const struct {
        const char *ns, *table;
        int64_t version;
    } CASES[] = {
        {"java_old", "v011_partitioned", 0}, {"java_old", "v014_partitioned", 7},
        {"java_old", "v014_rowdelta", 0},    {"spark", "metadata_gzip", 4},
        {"spark", "v1_unpartitioned", 0},    {"spark", "with_crc", 2},
    };
    const char *root = TARN_TEST_SHARED "/fixtures/iceberg";
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    tarn_catalog *c = NULL;
    assert_ok(store_file_new(env, false, &store, &err));
    if (!store_exists(store, STR(TARN_TEST_SHARED "/fixtures/iceberg/jdbc.db"))) {
        store_close(store);
        test_env_done(env);
        skip();
    }
    assert_ok(catalog_dir_new(env, store, str_of(root), &c, &err));
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tarn_str level = str_of(CASES[i].ns);
        tarn_ident table = {1, &level, str_of(CASES[i].table)};
        tarn_table_version *v = NULL;
        int64_t number = 0;
        assert_ok(catalog_load(c, &table, &v, &err));
        assert_true(folder_parse_version(folder_file_name(v->metadata_location), &number));
        assert_true(CASES[i].version == 0 || CASES[i].version == number);
        assert_true(v->metadata->n_snapshots > 0);
        table_version_release(v);
    }
    tarn_arena arena;
    arena_init(&arena, env);
    tarn_str level = STR("java_old");
    tarn_ident ns = {1, &level, STR_NULL};
    tarn_ident *tables = NULL;
    int32_t n = 0;
    assert_ok(catalog_list_tables(c, &arena, &ns, &tables, &n, &err));
    assert_int_equal(n, 5);
    arena_release(&arena);
    catalog_close(c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_version_whatever_the_hint_says),
        cmocka_unit_test(reads_old_names_of_packed_documents),
        cmocka_unit_test(does_not_take_a_lost_place),
        cmocka_unit_test(finds_out_that_it_came_too_late),
        cmocka_unit_test(is_not_led_back_by_a_late_hint),
        cmocka_unit_test(refuses_to_leave_the_folder),
        cmocka_unit_test(reads_one_table_by_its_path),
        cmocka_unit_test(reads_numbered_names_by_path),
        cmocka_unit_test(survives_lack_of_memory),
        cmocka_unit_test(reads_tables_of_iceberg_java),
    };
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
