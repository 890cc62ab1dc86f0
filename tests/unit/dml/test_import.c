/* Goal: an import takes every file of a folder or none, whatever fails; folder names are decoded
 * once (B04). Method: the hive folder of B04 is put into the store of each kind of catalog and
 * imported, as it is, again, with each allocation and each store call failing once. */
#include "fail_alloc.h"
#include "table_rows.h"

#include "dml/import.h"

#define HIVE TARN_TEST_FIXTURES "/bugs/B04/hive"

static const char *const KEYS[] = {"s=100%25", "s=11%2F12%2F13", "s=__HIVE_DEFAULT_PARTITION__",
                                   "s=a%20b", "s=x%3Ay"};

/* The folder beside the warehouse, in the case's own store; its path in out. */
static void put_hive(table_case *c, char out[128]) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_store *files = NULL;
    assert_ok(store_file_new(c->env, false, &files, &err));
    (void)snprintf(out, 128, "%s/hive", c->folder);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        char from[512], to[512];
        tarn_buf bytes;
        buf_init(&bytes, c->env, 0);
        (void)snprintf(from, sizeof from, "%s/%s/part-0.parquet", HIVE, KEYS[i]);
        (void)snprintf(to, sizeof to, "%s/%s/part-0.parquet", out, KEYS[i]);
        assert_ok(store_get(files, str_of(from), 1 << 20, &bytes, &err));
        assert_ok(store_put(c->catalog->store, str_of(to), STORE_REPLACE, buf_str(&bytes), &err));
        buf_release(&bytes);
    }
    store_close(files);
}

static const char ROWS[] = "{\"id\":1,\"s\":\"100%\"}\n{\"id\":2,\"s\":\"100%\"}\n"
                           "{\"id\":1,\"s\":\"11/12/13\"}\n{\"id\":2,\"s\":\"11/12/13\"}\n"
                           "{\"id\":1,\"s\":null}\n{\"id\":2,\"s\":null}\n"
                           "{\"id\":1,\"s\":\"a b\"}\n{\"id\":2,\"s\":\"a b\"}\n"
                           "{\"id\":1,\"s\":\"x:y\"}\n{\"id\":2,\"s\":\"x:y\"}\n";

static tarn_code import_hive(table_case *c, const char *folder, bool skip, import_result *out,
                             tarn_error *err) {
    const import_options options = {
        .folder = str_of(folder), .create = true, .skip_existing = skip};
    tarn_code code = dml_import(c->env, c->catalog, &c->ident, &options, out, err);
    table_version_release(out->outcome.version);
    out->outcome.version = NULL;
    return code;
}

static void test_import_hive(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = test_env();
        table_case c;
        char folder[128];
        import_result result;
        case_open(&c, env, (case_kind)kind);
        put_hive(&c, folder);
        assert_ok(import_hive(&c, folder, false, &result, &err));
        assert_true(result.created && result.files == 5 && result.rows == 10);
        case_check_rows(&c, NULL, ROWS);
        case_check_rows(&c, "s = '100%'", "{\"id\":1,\"s\":\"100%\"}\n{\"id\":2,\"s\":\"100%\"}\n");
        case_check_rows(&c, "id > 2", "");
        assert_code(import_hive(&c, folder, false, &result, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "is in the table already"));
        assert_ok(import_hive(&c, folder, true, &result, &err));
        assert_true(!result.created && result.files == 0 && result.skipped == 5);
        case_check_rows(&c, NULL, ROWS);
        case_done(&c);
        test_env_done(env);
    }
}

/* After a failure the table is not there, or without a row; and the import works again. */
static void check_after_failure(table_case *c, const char *folder) {
    tarn_error err = TARN_ERROR_INIT;
    import_result result;
    tarn_table_version *version = NULL;
    tarn_code code = catalog_load(c->catalog, &c->ident, &version, &err);
    assert_true(code == TARN_OK || code == TARN_NOT_FOUND);
    const bool committed = code == TARN_OK && version->metadata->n_snapshots > 0;
    table_version_release(version);
    assert_ok(import_hive(c, folder, committed, &result, &err));
    assert_int_equal(result.files + result.skipped, 5);
    case_check_rows(c, NULL, ROWS);
}

static void test_import_no_memory(void **state) {
    (void)state;
    bool failed = true;
    for (uint64_t k = 1; failed; k += test_every() ? 1 : 37) {
        tarn_error err = TARN_ERROR_INIT;
        fail_alloc plan;
        table_case c;
        char folder[128];
        import_result result;
        tarn_env *env = fail_alloc_env(&plan, 0);
        case_open(&c, env, CASE_DIR_MEMORY);
        put_hive(&c, folder);
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        tarn_code code = import_hive(&c, folder, false, &result, &err);
        failed = plan.failed;
        plan.fail_at = 0;
        /* what is best effort, such as the log, may go without memory */
        assert_true(code == TARN_OK || (failed && code == TARN_NOMEM));
        assert_true(code == TARN_OK || strlen(err.message) > 0);
        check_after_failure(&c, folder);
        case_done(&c);
        fail_alloc_done(&plan, env);
    }
}

static void test_import_store_fails(void **state) {
    (void)state;
    bool struck = true;
    for (int64_t k = 1; struck; k += test_every() ? 1 : 3) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = test_env();
        table_case c;
        char folder[128];
        import_result result;
        case_open(&c, env, CASE_DIR_MEMORY);
        put_hive(&c, folder);
        c.plan.fail_at = k;
        c.plan.struck = NULL;
        tarn_code code = import_hive(&c, folder, false, &result, &err);
        struck = c.plan.struck != NULL;
        c.plan.fail_at = 0;
        assert_true(code == TARN_OK || struck);
        check_after_failure(&c, folder);
        case_done(&c);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_import_hive),
        cmocka_unit_test(test_import_no_memory),
        cmocka_unit_test(test_import_store_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
