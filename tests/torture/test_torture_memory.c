/* Goal: whatever allocation fails, an operation reports NOMEM, leaks nothing, and the table is the
 * old or the new version as the outcome says, with no file that it does not name; the next
 * operation works.
 * Method: each operation through include/tarn, on a file store, with its 1st, 2nd, ... allocation
 * failing (all up to 300, then in strides of a fixed pattern, unless TARN_TORTURE_ALL is set); the
 * table is looked at with another env. Memory of SQLite itself is not the env's. */
#include "fail_alloc.h"
#include "flow/flow.h"
#include "table_rows.h"

#include <errno.h>

#define ALL_UP_TO 300

typedef struct memory_run {
    table_case c; /* of the env that does not fail */
    bool sqlite;
    fail_alloc plan;
    tarn_env *env; /* the one that fails */
    const char *old;
    const char *new;
} memory_run;

/* What an operation does with a table; outcome is filled where it commits. */
typedef tarn_code (*operation)(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                               tarn_error *err);

static tarn_error err;                         /* of what must not fail */
static const char *row_mode = "copy-on-write"; /* of row-level changes */

static tarn_code run_append(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                            tarn_error *e) {
    (void)r;
    return flow_write(table, NULL, "7,1,seven;8,,", outcome, e);
}

static tarn_code run_overwrite(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                               tarn_error *e) {
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    (void)r;
    options.mode = TARN_SINK_OVERWRITE;
    options.overwrite_where = "tag = 'a'";
    options.summary_json = "{\"job\":\"x\"}";
    return flow_write(table, &options, "9,2,n", outcome, e);
}

static tarn_code run_delete(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                            tarn_error *e) {
    (void)r;
    return tarn_table_delete(table, "id = 2 or day = 2", NULL, outcome, e);
}

static tarn_code run_update(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                            tarn_error *e) {
    (void)r;
    return tarn_table_update(table, "tag = tag || '!', day = day + 1", "id = 1 or day = 2", NULL,
                             outcome, e);
}

static tarn_code run_merge(memory_run *r, tarn_table *table, tarn_outcome *outcome, tarn_error *e) {
    struct ArrowArrayStream source;
    tarn_merge_options options = TARN_MERGE_OPTIONS_INIT;
    (void)r;
    options.key = "id";
    flow_stream(flow_batch_of("2,8,m;9,9,n"), &source);
    return tarn_table_merge(table, &source, &options, outcome, e);
}

static tarn_code run_alter(memory_run *r, tarn_table *table, tarn_outcome *outcome, tarn_error *e) {
    (void)r;
    return tarn_table_alter(table,
                            "[{\"op\":\"rename-column\",\"path\":\"tag\",\"name\":\"label\"},"
                            "{\"op\":\"add-partition-field\",\"transform\":\"bucket(2, id)\"},"
                            "{\"op\":\"set-properties\",\"properties\":{\"a\":\"b\"}}]",
                            outcome, e);
}

/* Errors of a stream are errno values. */
static tarn_code run_scan_of(tarn_table *table, const char *name, tarn_error *e) {
    struct ArrowArrayStream stream;
    int error;
    char message[512] = "";
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    options.where = name == NULL ? "day = 1 or tag = 'c'" : NULL;
    options.columns = name == NULL ? "tag, id" : NULL;
    options.metadata_table = name;
    tarn_code code = tarn_table_scan(table, &options, &stream, NULL, e);
    if (code != TARN_OK) {
        return code;
    }
    char *text = flow_read(&stream, &error, message);
    if (text != NULL && name == NULL) {
        assert_string_equal(text, "a,1\nb,2\nc,3\n");
    }
    free(text);
    if (error == ENOMEM) {
        (void)snprintf(e->message, sizeof e->message, "%s", message);
        return TARN_NOMEM;
    }
    return error == 0 ? TARN_OK : TARN_INTERNAL;
}

static tarn_code run_scan(memory_run *r, tarn_table *table, tarn_outcome *outcome, tarn_error *e) {
    (void)r;
    (void)outcome;
    return run_scan_of(table, NULL, e);
}

static tarn_code run_files(memory_run *r, tarn_table *table, tarn_outcome *outcome, tarn_error *e) {
    (void)r;
    (void)outcome;
    return run_scan_of(table, "files", e);
}

static tarn_code run_partitions(memory_run *r, tarn_table *table, tarn_outcome *outcome,
                                tarn_error *e) {
    (void)r;
    (void)outcome;
    return run_scan_of(table, "partitions", e);
}

/* Opens, loads, runs, closes: all with memory that fails once. */
static tarn_code run_all(memory_run *r, operation op, tarn_outcome *outcome, tarn_error *e) {
    tarn_catalog_handle *catalog = NULL;
    tarn_table *table = NULL;
    tarn_code code = flow_connect(r->env, r->c.folder, r->sqlite, &catalog, e);
    if (code == TARN_OK) {
        code = tarn_table_load(catalog, "ns.t", &table, e);
    }
    if (code == TARN_OK) {
        code = op(r, table, outcome, e);
    }
    tarn_table_free(table);
    tarn_catalog_close(catalog);
    return code;
}

/* ---- looking at the table ---- */

/* The clean env reads whatever is there now: its catalog is opened anew for each look. */
static bool shows(memory_run *r, const char *rows) {
    tarn_buf buf;
    tarn_arena arena;
    scan_options options = case_scan_options();
    arena_init(&arena, r->c.env);
    buf_init(&buf, r->c.env, 0);
    assert_ok(case_scan(&r->c, &options, NULL, &buf, NULL, &err));
    bool same = strcmp(case_sorted(&arena, buf_str(&buf)), case_sorted(&arena, str_of(rows))) == 0;
    buf_release(&buf);
    arena_release(&arena);
    return same;
}

#define ROW(id, day, tag) "{\"id\":" #id ",\"day\":" #day ",\"tag\":" tag "}\n"
#define OLD_ROWS          ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\"")

static void make_table(memory_run *r) {
    const char *const properties[] = {"commit.retry.num-retries",
                                      "0",
                                      "write.update.mode",
                                      row_mode,
                                      "write.merge.mode",
                                      row_mode,
                                      NULL};
    case_table(&r->c, 2, "id long not null, day int, tag string", "day", properties);
    case_append(&r->c, OLD_ROWS);
}

static void begin(memory_run *r, bool sqlite, const char *new_rows) {
    memset(r, 0, sizeof *r);
    r->sqlite = sqlite;
    r->old = OLD_ROWS;
    r->new = new_rows;
    case_open(&r->c, test_env(), sqlite ? CASE_SQLITE_FILE : CASE_DIR_FILE);
    make_table(r);
    r->env = fail_alloc_env(&r->plan, 0);
}

static void end(memory_run *r) {
    tarn_env *env = r->c.env;
    case_done(&r->c);
    test_env_done(env);
    fail_alloc_done(&r->plan, r->env);
}

/* The table goes back to its old rows by being made anew. */
static void renew(memory_run *r) {
    tarn_error e = TARN_ERROR_INIT;
    char path[160];
    assert_ok(catalog_drop(r->c.catalog, &r->c.ident, &e));
    (void)snprintf(path, sizeof path, "%s/ns/t", r->c.warehouse);
    if (access(path, F_OK) == 0) {
        test_tempdir_done(path);
    }
    make_table(r);
}

static void check_after(memory_run *r, uint64_t k, tarn_code code, const tarn_outcome *outcome,
                        bool commits) {
    bool is_new = commits && shows(r, r->new);
    if (!is_new && !shows(r, r->old)) {
        fail_msg("allocation %llu failed: the table is neither old nor new", (unsigned long long)k);
    }
    if (commits && outcome->state != TARN_COMMIT_MAYBE &&
        is_new != (outcome->state == TARN_COMMIT_DONE)) {
        fail_msg("allocation %llu failed: %s, outcome %d, but the table is %s",
                 (unsigned long long)k, tarn_code_name(code), (int)outcome->state,
                 is_new ? "new" : "old");
    }
    if (outcome->state != TARN_COMMIT_MAYBE) {
        case_check_files(&r->c, 0);
    }
    if (is_new) {
        renew(r);
    }
}

static bool fail_one(memory_run *r, operation op, uint64_t k, bool commits) {
    tarn_error e = TARN_ERROR_INIT;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    atomic_store(&r->plan.count, 0);
    atomic_store(&r->plan.failed, false);
    r->plan.fail_at = k;
    tarn_code code = run_all(r, op, &outcome, &e);
    r->plan.fail_at = 0;
    bool failed = atomic_load(&r->plan.failed);
    if (tarn_env_memory_now(r->env) != 0) {
        fail_msg("allocation %llu failed: %llu bytes leaked", (unsigned long long)k,
                 (unsigned long long)tarn_env_memory_now(r->env));
    }
    if (code != TARN_OK && (!failed || (code != TARN_NOMEM && code != TARN_COMMIT_UNKNOWN))) {
        fail_msg("allocation %llu failed: %s: %s (%s)", (unsigned long long)k, tarn_code_name(code),
                 e.message, e.detail);
    }
    assert_true(code == TARN_OK || e.message[0] != '\0');
    assert_true((code == TARN_COMMIT_UNKNOWN) == (outcome.state == TARN_COMMIT_MAYBE));
    if (commits || k % 16 == 0) {
        check_after(r, k, code, &outcome, commits);
    }
    return failed;
}

static void fail_all(operation op, bool sqlite, const char *new_rows) {
    memory_run r;
    begin(&r, sqlite, new_rows != NULL ? new_rows : "");
    uint64_t k = 1;
    uint64_t seed = 7;
    while (fail_one(&r, op, k, new_rows != NULL)) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        k += k < ALL_UP_TO || test_every() ? 1 : 1 + (seed >> 40) % (k / 40);
    }
    assert_true(k > 40);
    end(&r);
}

static void on_both(operation op, const char *new_rows) {
    fail_all(op, false, new_rows);
    fail_all(op, true, new_rows);
}

static void test_memory_append(void **state) {
    (void)state;
    on_both(run_append, OLD_ROWS ROW(7, 1, "\"seven\"") ROW(8, null, "null"));
}

static void test_memory_overwrite(void **state) {
    (void)state;
    on_both(run_overwrite, ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\"") ROW(9, 2, "\"n\""));
}

static void test_memory_delete(void **state) {
    (void)state;
    on_both(run_delete, ROW(1, 1, "\"a\""));
}

static void test_memory_update(void **state) {
    static const char want[] = ROW(1, 2, "\"a!\"") ROW(2, 1, "\"b\"") ROW(3, 3, "\"c!\"");
    (void)state;
    on_both(run_update, want);
    row_mode = "merge-on-read";
    on_both(run_update, want);
    row_mode = "copy-on-write";
}

static void test_memory_merge(void **state) {
    static const char want[] =
        ROW(1, 1, "\"a\"") ROW(2, 8, "\"m\"") ROW(3, 2, "\"c\"") ROW(9, 9, "\"n\"");
    (void)state;
    on_both(run_merge, want);
    row_mode = "merge-on-read";
    on_both(run_merge, want);
    row_mode = "copy-on-write";
}

static void test_memory_alter(void **state) {
    (void)state;
    on_both(run_alter,
            "{\"id\":1,\"day\":1,\"label\":\"a\"}\n{\"id\":2,\"day\":1,\"label\":\"b\"}\n"
            "{\"id\":3,\"day\":2,\"label\":\"c\"}\n");
}

static void test_memory_scan(void **state) {
    (void)state;
    fail_all(run_scan, false, NULL);
    fail_all(run_files, true, NULL);
    fail_all(run_partitions, false, NULL);
}

/* ---- create ---- */

static bool create_one(memory_run *r, uint64_t k) {
    tarn_error e = TARN_ERROR_INIT;
    tarn_catalog_handle *catalog = NULL;
    tarn_table_version *version = NULL;
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    options.schema_text = "id long not null, at timestamp, s struct<a: int, b: list<string>>";
    options.partition_by = "month(at), bucket(4, id)";
    options.sort_by = "id desc";
    options.identifiers = "id";
    options.properties_json = "{\"a\":\"b\",\"n\":1}";
    atomic_store(&r->plan.count, 0);
    atomic_store(&r->plan.failed, false);
    r->plan.fail_at = k;
    tarn_code code = flow_connect(r->env, r->c.folder, r->sqlite, &catalog, &e);
    if (code == TARN_OK) {
        code = tarn_catalog_create_table(catalog, "ns.made", &options, &e);
    }
    tarn_catalog_close(catalog);
    r->plan.fail_at = 0;
    bool failed = atomic_load(&r->plan.failed);
    assert_int_equal(tarn_env_memory_now(r->env), 0);
    if (code != TARN_OK && (!failed || (code != TARN_NOMEM && code != TARN_COMMIT_UNKNOWN))) {
        fail_msg("allocation %llu failed: %s: %s", (unsigned long long)k, tarn_code_name(code),
                 e.message);
    }
    r->c.ident.name = STR("made");
    tarn_code loaded = catalog_load(r->c.catalog, &r->c.ident, &version, &e);
    table_version_release(version);
    if (code != TARN_COMMIT_UNKNOWN && (loaded == TARN_OK) != (code == TARN_OK)) {
        fail_msg("allocation %llu failed: create said %s, but load says %s", (unsigned long long)k,
                 tarn_code_name(code), tarn_code_name(loaded));
    }
    if (loaded == TARN_OK) {
        assert_ok(catalog_drop(r->c.catalog, &r->c.ident, &err));
    }
    r->c.ident.name = STR("t");
    return failed;
}

static void test_memory_create(void **state) {
    (void)state;
    for (int sqlite = 0; sqlite < 2; sqlite++) {
        memory_run r;
        uint64_t k = 1;
        begin(&r, sqlite == 1, "");
        while (create_one(&r, k)) {
            k += k < ALL_UP_TO || test_every() ? 1 : 1 + k / 40;
        }
        end(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_create),    cmocka_unit_test(test_memory_append),
        cmocka_unit_test(test_memory_overwrite), cmocka_unit_test(test_memory_delete),
        cmocka_unit_test(test_memory_update),    cmocka_unit_test(test_memory_merge),
        cmocka_unit_test(test_memory_alter),     cmocka_unit_test(test_memory_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
