/* Goal: the SQLite catalog answers as Iceberg's JDBC catalog, on databases of others too, and a
 * commit is told truly whatever the database's files do.
 * Method: the database of B38 with its expected answers; databases of Iceberg Java, PyIceberg and
 * DuckDB with their tables at another place; a file layer under SQLite whose k-th call fails. */
#include "tempdir.h"

#include "catalog/catalog_int.h"

#include <sqlite3.h>

static tarn_error err;

/* ---- a file layer that fails ---- */

typedef struct fault_file {
    sqlite3_file base;
    sqlite3_file *inner; /* behind this struct */
} fault_file;

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *inner;
    int64_t fail_at; /* 1: the next write, sync, truncate or delete; 0: never */
    bool after;
    bool forever;
    int64_t calls;
} layer;

static bool strikes(void) {
    layer.calls++;
    if (layer.fail_at > 1) {
        layer.fail_at--;
        return false;
    }
    bool hit = layer.fail_at == 1;
    layer.fail_at = hit && !layer.forever ? 0 : layer.fail_at;
    return hit;
}

#define INNER(f) (((fault_file *)(f))->inner)

static int file_close(sqlite3_file *f) {
    return INNER(f)->pMethods->xClose(INNER(f));
}
static int file_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
    return INNER(f)->pMethods->xRead(INNER(f), to, n, at);
}
static int file_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
    bool hit = strikes();
    int code = hit && !layer.after ? SQLITE_OK : INNER(f)->pMethods->xWrite(INNER(f), from, n, at);
    return hit ? SQLITE_IOERR_WRITE : code;
}
static int file_truncate(sqlite3_file *f, sqlite3_int64 n) {
    bool hit = strikes();
    int code = hit && !layer.after ? SQLITE_OK : INNER(f)->pMethods->xTruncate(INNER(f), n);
    return hit ? SQLITE_IOERR_TRUNCATE : code;
}
static int file_sync(sqlite3_file *f, int flags) {
    bool hit = strikes();
    int code = hit && !layer.after ? SQLITE_OK : INNER(f)->pMethods->xSync(INNER(f), flags);
    return hit ? SQLITE_IOERR_FSYNC : code;
}
static int file_size(sqlite3_file *f, sqlite3_int64 *n) {
    return INNER(f)->pMethods->xFileSize(INNER(f), n);
}
static int file_lock(sqlite3_file *f, int kind) {
    return INNER(f)->pMethods->xLock(INNER(f), kind);
}
static int file_unlock(sqlite3_file *f, int kind) {
    return INNER(f)->pMethods->xUnlock(INNER(f), kind);
}
static int file_reserved(sqlite3_file *f, int *out) {
    return INNER(f)->pMethods->xCheckReservedLock(INNER(f), out);
}
static int file_control(sqlite3_file *f, int op, void *arg) {
    return INNER(f)->pMethods->xFileControl(INNER(f), op, arg);
}
static int file_sector(sqlite3_file *f) {
    return INNER(f)->pMethods->xSectorSize(INNER(f));
}
static int file_device(sqlite3_file *f) {
    return INNER(f)->pMethods->xDeviceCharacteristics(INNER(f));
}
static int file_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    return INNER(f)->pMethods->xShmMap(INNER(f), page, size, extend, out);
}
static int file_shm_lock(sqlite3_file *f, int at, int n, int flags) {
    return INNER(f)->pMethods->xShmLock(INNER(f), at, n, flags);
}
static void file_barrier(sqlite3_file *f) {
    INNER(f)->pMethods->xShmBarrier(INNER(f));
}
static int file_unmap(sqlite3_file *f, int delete_it) {
    return INNER(f)->pMethods->xShmUnmap(INNER(f), delete_it);
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_device,
    .xShmMap = file_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_barrier,
    .xShmUnmap = file_unmap,
};

static int layer_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
    (void)vfs;
    fault_file *file = (fault_file *)f;
    file->inner = (sqlite3_file *)(file + 1);
    int code = layer.inner->xOpen(layer.inner, name, file->inner, flags, out);
    f->pMethods = file->inner->pMethods != NULL ? &METHODS : NULL;
    return code;
}

static int layer_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs;
    bool hit = strikes();
    int code = hit && !layer.after ? SQLITE_OK : layer.inner->xDelete(layer.inner, name, sync);
    return hit ? SQLITE_IOERR_DELETE : code;
}

static void install_layer(void) {
    layer.inner = sqlite3_vfs_find(NULL);
    layer.vfs = *layer.inner;
    layer.vfs.zName = "tarn-test-fault";
    layer.vfs.szOsFile = layer.inner->szOsFile + (int)sizeof(fault_file);
    layer.vfs.xOpen = layer_open;
    layer.vfs.xDelete = layer_delete;
    assert_int_equal(sqlite3_vfs_register(&layer.vfs, 1), SQLITE_OK);
}

static void remove_layer(void) {
    assert_int_equal(sqlite3_vfs_unregister(&layer.vfs), SQLITE_OK);
    assert_int_equal(sqlite3_vfs_register(layer.inner, 1), SQLITE_OK);
}

/* ---- helpers ---- */

static tarn_catalog *open_catalog(tarn_env *env, tarn_store *store, const char *folder,
                                  const char *name) {
    tarn_catalog *c = NULL;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/catalog.db", folder);
    assert_ok(catalog_sqlite_new(env, store, str_of(path), str_of(name), STR("/w"), &c, &err));
    return c;
}

static tarn_catalog *open_memory_catalog(tarn_env *env, const char *folder) {
    tarn_store *store = NULL;
    assert_ok(store_memory_new(env, &store, &err));
    return open_catalog(env, store, folder, "c");
}

static void run_sql(const char *folder, const char *sql) {
    sqlite3 *db = NULL;
    char path[128];
    char *message = NULL;
    (void)snprintf(path, sizeof path, "%s/catalog.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void copy_file(tarn_env *env, const char *from, const char *folder) {
    tarn_store *store = NULL;
    tarn_buf bytes;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/catalog.db", folder);
    buf_init(&bytes, env, 0);
    assert_ok(store_file_new(env, false, &store, &err));
    assert_ok(store_get(store, str_of(from), 1 << 20, &bytes, &err));
    assert_ok(store_put(store, str_of(path), STORE_REPLACE, buf_str(&bytes), &err));
    buf_release(&bytes);
    store_close(store);
}

static tarn_ident parse(tarn_arena *arena, const char *text, bool is_namespace) {
    tarn_ident out;
    assert_ok(ident_parse(arena, str_of(text), is_namespace, &out, &err));
    return out;
}

/* ---- B38 ---- */

/* A namespace as the database has it: split at dots, no quotes. */
static tarn_ident split_namespace(tarn_arena *arena, tarn_str text) {
    tarn_str *levels = ARENA_ARRAY(arena, tarn_str, 8);
    tarn_ident ns = {0, levels, STR_NULL};
    tarn_str rest = text;
    while (rest.len > 0 && str_split(&rest, '.', &levels[ns.n_levels])) {
        ns.n_levels++;
    }
    return ns;
}

static void expect_children(tarn_catalog *c, tarn_arena *arena, const json_value *want) {
    tarn_ident parent = split_namespace(arena, want->name);
    tarn_ident *found = NULL;
    int32_t n = 0;
    assert_ok(catalog_list_namespaces(c, arena, &parent, &found, &n, &err));
    assert_int_equal(n, want->count);
    const json_value *item = want->first;
    for (int32_t i = 0; i < n; i++, item = item->next) {
        tarn_ident expected = split_namespace(arena, item->text);
        assert_int_equal(found[i].n_levels, expected.n_levels);
        for (int32_t j = 0; j < expected.n_levels; j++) {
            assert_true(str_eq(found[i].levels[j], expected.levels[j]));
        }
    }
}

static void takes_names_for_names_and_not_patterns(void **state) {
    (void)state;
    char folder[64];
    tarn_env *env = test_env();
    tarn_arena arena;
    tarn_store *store = NULL;
    tarn_buf text;
    json_value *expected = NULL;
    tarn_properties p;
    test_tempdir(folder);
    arena_init(&arena, env);
    buf_init(&text, env, 0);
    copy_file(env, TARN_TEST_FIXTURES "/bugs/B38/catalog.db", folder);
    assert_ok(store_file_new(env, false, &store, &err));
    assert_ok(
        store_get(store, STR(TARN_TEST_FIXTURES "/bugs/B38/expected.json"), 10000, &text, &err));
    assert_ok(json_parse(&arena, buf_str(&text), "expected.json", &expected, &err));
    tarn_catalog *c = open_catalog(env, store, folder, "c");
    for (const json_value *v = json_get(expected, "exists")->first; v != NULL; v = v->next) {
        tarn_ident ns = split_namespace(&arena, v->name);
        tarn_code code = catalog_load_namespace(c, &arena, &ns, &p, &err);
        assert_code(code, v->boolean ? TARN_OK : TARN_NOT_FOUND);
    }
    for (const json_value *v = json_get(expected, "children")->first; v != NULL; v = v->next) {
        expect_children(c, &arena, v);
    }
    tarn_ident gone = split_namespace(&arena, STR("my_ns_112_1"));
    tarn_ident kept = split_namespace(&arena, STR("my_ns_1"));
    tarn_ident made = split_namespace(&arena, STR("my_ns_1_2"));
    assert_ok(catalog_create_namespace(c, &made, NULL, &err));
    assert_ok(catalog_drop_namespace(c, &gone, &err));
    assert_code(catalog_load_namespace(c, &arena, &gone, &p, &err), TARN_NOT_FOUND);
    assert_ok(catalog_load_namespace(c, &arena, &kept, &p, &err));
    assert_code(catalog_drop_namespace(c, &kept, &err), TARN_CONFLICT);
    catalog_close(c);
    buf_release(&text);
    arena_release(&arena);
    test_tempdir_done(folder);
    test_env_done(env);
}

/* ---- databases of others ---- */

static void uses_a_database_of_schema_v0(void **state) {
    (void)state;
    char folder[64];
    tarn_env *env = test_env();
    tarn_arena arena;
    metadata_new_options options = {0};
    tarn_table_version *v = NULL;
    tarn_ident *tables = NULL;
    int32_t n = 0;
    test_tempdir(folder);
    arena_init(&arena, env);
    run_sql(folder, "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
                    "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
                    "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
                    "PRIMARY KEY (catalog_name, table_namespace, table_name));"
                    "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT "
                    "NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), "
                    "property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, "
                    "property_key));"
                    /* As PyIceberg makes a namespace with properties: without an exists row. */
                    "INSERT INTO iceberg_namespace_properties VALUES ('c', 'ns', 'owner', 'x')");
    tarn_catalog *c = open_memory_catalog(env, folder);
    tarn_ident t = parse(&arena, "ns.t", false);
    tarn_ident u = parse(&arena, "ns.u", false);
    tarn_ident ns = parse(&arena, "ns", true);
    assert_ok(type_from_text(&arena, STR("struct<id: long>"), &options.root, &err));
    assert_ok(catalog_create(c, &t, &options, NULL, &err));
    assert_ok(catalog_rename(c, &t, &u, &err));
    assert_ok(catalog_load(c, &u, &v, &err));
    table_version_release(v);
    assert_ok(catalog_list_tables(c, &arena, &ns, &tables, &n, &err));
    assert_int_equal(n, 1);
    assert_ok(catalog_drop(c, &u, &err));
    catalog_close(c);
    arena_release(&arena);
    test_tempdir_done(folder);
    test_env_done(env);
}

static void leaves_views_alone(void **state) {
    (void)state;
    char folder[64];
    tarn_env *env = test_env();
    tarn_arena arena;
    metadata_new_options options = {0};
    tarn_table_version *v = NULL;
    tarn_ident *tables = NULL;
    int32_t n = 0;
    test_tempdir(folder);
    arena_init(&arena, env);
    tarn_catalog *c = open_memory_catalog(env, folder);
    run_sql(folder, "INSERT INTO iceberg_tables VALUES ('c', 'ns', 'v', '/w/v', NULL, 'VIEW')");
    tarn_ident view = parse(&arena, "ns.v", false);
    tarn_ident other = parse(&arena, "ns.w", false);
    tarn_ident ns = parse(&arena, "ns", true);
    assert_ok(type_from_text(&arena, STR("struct<id: long>"), &options.root, &err));
    assert_code(catalog_load(c, &view, &v, &err), TARN_NOT_FOUND);
    assert_code(catalog_drop(c, &view, &err), TARN_NOT_FOUND);
    assert_code(catalog_rename(c, &view, &other, &err), TARN_NOT_FOUND);
    assert_code(catalog_create(c, &view, &options, NULL, &err), TARN_CONFLICT);
    assert_ok(catalog_list_tables(c, &arena, &ns, &tables, &n, &err));
    assert_int_equal(n, 0);
    assert_code(catalog_drop_namespace(c, &ns, &err), TARN_CONFLICT);
    catalog_close(c);
    arena_release(&arena);
    test_tempdir_done(folder);
    test_env_done(env);
}

static void loads_tables_of_others(void **state) {
    (void)state;
    static const struct {
        const char *file, *catalog, *ns;
        int32_t n_tables;
    } CASES[] = {{"jdbc.db", "j_open", "jdbc", 3},
                 {"pyiceberg.db", "tarn", "pyiceberg", 15},
                 {"duckdb.db", "duckdb", "duckdb", 7}};
    const char *root = TARN_TEST_SHARED "/fixtures/iceberg";
    if (access(TARN_TEST_SHARED "/fixtures/iceberg/jdbc.db", R_OK) != 0) {
        skip();
    }
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char folder[64];
        char path[512];
        tarn_env *env = test_env();
        tarn_arena arena;
        tarn_store *store = NULL;
        tarn_ident *tables = NULL;
        int32_t n = 0;
        test_tempdir(folder);
        arena_init(&arena, env);
        (void)snprintf(path, sizeof path, "%s/%s", root, CASES[i].file);
        copy_file(env, path, folder);
        assert_ok(store_file_new(env, false, &store, &err));
        assert_ok(
            store_moved_new(store, STR("/tarn-fixtures/iceberg"), str_of(root), &store, &err));
        tarn_catalog *c = open_catalog(env, store, folder, CASES[i].catalog);
        tarn_ident ns = parse(&arena, CASES[i].ns, true);
        assert_ok(catalog_list_tables(c, &arena, &ns, &tables, &n, &err));
        assert_int_equal(n, CASES[i].n_tables);
        for (int32_t j = 0; j < n; j++) {
            tarn_table_version *v = NULL;
            assert_ok(catalog_load(c, &tables[j], &v, &err));
            assert_true(v->metadata->n_schemas > 0);
            table_version_release(v);
        }
        catalog_close(c);
        arena_release(&arena);
        test_tempdir_done(folder);
        test_env_done(env);
    }
}

/* ---- faults below the database ---- */

static const tarn_change_set *count_up(tarn_arena *arena, const tarn_table_version *base,
                                       int64_t *next) {
    int64_t n = 0;
    (void)str_to_i64(properties_str(&base->metadata->properties, "n", "0"), &n);
    *next = n + 1;
    tarn_property *pair = ARENA_NEW(arena, tarn_property);
    tarn_change *change = ARENA_NEW(arena, tarn_change);
    tarn_change_set *set = ARENA_NEW(arena, tarn_change_set);
    *pair = (tarn_property){STR("n"), str_of(arena_printf(arena, "%lld", (long long)*next))};
    *change = (tarn_change){.kind = CHANGE_SET_PROPERTIES, .properties = {1, pair}};
    *set = (tarn_change_set){0, NULL, 1, change};
    return set;
}

/* Commits with every k-th file operation failing; returns how often the outcome was UNKNOWN. */
static int torture(tarn_env *env, const char *folder, bool after, bool forever) {
    tarn_arena arena;
    tarn_catalog *c = open_memory_catalog(env, folder);
    int n_unknown = 0;
    bool hit = true;
    metadata_new_options options = {0};
    arena_init(&arena, env);
    char name[32];
    (void)snprintf(name, sizeof name, "ns.t%d%d", after, forever);
    tarn_ident t = parse(&arena, name, false);
    assert_ok(type_from_text(&arena, STR("struct<id: long>"), &options.root, &err));
    assert_ok(catalog_create(c, &t, &options, NULL, &err));
    for (int64_t k = 1; hit; k++) {
        tarn_table_version *base = NULL;
        tarn_table_version *now = NULL;
        tarn_outcome_kind outcome = TARN_OUTCOME_UNKNOWN;
        int64_t next = 0;
        int64_t seen = 0;
        assert_ok(catalog_load(c, &t, &base, &err));
        const tarn_change_set *set = count_up(&arena, base, &next);
        layer.calls = 0;
        layer.fail_at = k;
        layer.after = after;
        layer.forever = forever;
        tarn_code code = catalog_commit(c, &t, base, set, &outcome, NULL, &err);
        hit = layer.calls >= k;
        layer.fail_at = 0;
        assert_int_equal(code == TARN_OK, outcome == TARN_COMMITTED);
        assert_ok(catalog_load(c, &t, &now, &err));
        (void)str_to_i64(properties_str(&now->metadata->properties, "n", "0"), &seen);
        if (outcome == TARN_OUTCOME_UNKNOWN) {
            n_unknown++;
        } else {
            assert_int_equal(seen, outcome == TARN_COMMITTED ? next : next - 1);
        }
        assert_true(seen == next || seen == next - 1);
        table_version_release(base);
        table_version_release(now);
        assert_true(k < 200 && (hit || k > 3));
    }
    arena_release(&arena);
    catalog_close(c);
    return n_unknown;
}

static void torture_modes(const char *journal) {
    char folder[64];
    tarn_env *env = test_env();
    tarn_arena arena;
    test_tempdir(folder);
    arena_init(&arena, env);
    tarn_catalog *c = open_memory_catalog(env, folder);
    tarn_ident ns = parse(&arena, "ns", true);
    assert_ok(catalog_create_namespace(c, &ns, NULL, &err));
    catalog_close(c);
    run_sql(folder, journal);
    install_layer();
    assert_int_equal(torture(env, folder, false, false), 0);
    assert_int_equal(torture(env, folder, true, false), 0);
    (void)torture(env, folder, false, true);
    (void)torture(env, folder, true, true);
    remove_layer();
    arena_release(&arena);
    test_tempdir_done(folder);
    test_env_done(env);
}

static void tells_the_truth_when_files_fail_wal(void **state) {
    (void)state;
    torture_modes("PRAGMA journal_mode=WAL");
}

static void tells_the_truth_when_files_fail_delete(void **state) {
    (void)state;
    torture_modes("PRAGMA journal_mode=DELETE");
}

static void refuses_bad_databases(void **state) {
    (void)state;
    char folder[64];
    char path[128];
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    tarn_catalog *c = NULL;
    test_tempdir(folder);
    assert_ok(store_file_new(env, false, &store, &err));
    (void)snprintf(path, sizeof path, "%s/catalog.db", folder);
    assert_ok(store_put(store, str_of(path), STORE_CREATE,
                        STR("this is not a database, and it is longer than a header would be: "
                            "this is not a database, and it is longer than that"),
                        &err));
    assert_code(catalog_sqlite_new(env, store, str_of(path), STR("c"), STR("/w"), &c, &err),
                TARN_CORRUPT);
    (void)snprintf(path, sizeof path, "%s/none/catalog.db", folder);
    assert_code(catalog_sqlite_new(env, store, str_of(path), STR("c"), STR("/w"), &c, &err),
                TARN_NOT_FOUND);
    assert_non_null(strstr(err.message, "none"));
    assert_code(catalog_sqlite_new(env, store, STR("s3://b/c.db"), STR("c"), STR("/w"), &c, &err),
                TARN_INVALID);
    assert_code(catalog_sqlite_new(env, store, str_of(path), STR(""), STR("/w"), &c, &err),
                TARN_INVALID);
    store_close(store);
    test_tempdir_done(folder);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_names_for_names_and_not_patterns),
        cmocka_unit_test(uses_a_database_of_schema_v0),
        cmocka_unit_test(leaves_views_alone),
        cmocka_unit_test(loads_tables_of_others),
        cmocka_unit_test(tells_the_truth_when_files_fail_wal),
        cmocka_unit_test(tells_the_truth_when_files_fail_delete),
        cmocka_unit_test(refuses_bad_databases),
    };
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
