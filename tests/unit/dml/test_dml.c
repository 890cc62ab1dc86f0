/* Goal: delete and overwrite by filter change just the rows they say, in one commit, whatever
 * others do meanwhile.
 * Method: rows as JSON before and after, on every catalog and store; a catalog in between lets
 * rivals commit first, refuses, or loses answers; B17's upgraded table. */
#include "table_rows.h"
#include "unit/write/commit/commit_case.h"

#include "dml/dml.h"
#include "dml/purge.h"
#include "iceberg/evolve.h"

static tarn_error err;

#define SCHEMA            "id long not null, day int, tag string"
#define ROW(id, day, tag) "{\"id\":" #id ",\"day\":" #day ",\"tag\":" tag "}\n"

typedef struct dml_case {
    table_case c;
    proxy_catalog proxy;
    const char *rival_rows; /* appended by another before the next commit */
} dml_case;

static void rival(void *ctx) {
    dml_case *d = ctx;
    if (d->rival_rows != NULL) {
        const char *rows = d->rival_rows;
        d->rival_rows = NULL;
        case_append(&d->c, rows);
    }
}

static void open_case(dml_case *d, case_kind kind, int32_t version, const char *by) {
    static const char *const properties[] = {"commit.retry.min-wait-ms", "1", NULL};
    memset(d, 0, sizeof *d);
    tarn_env *env = test_env();
    case_open(&d->c, env, kind);
    case_table(&d->c, version, SCHEMA, by, properties);
    proxy_init(&d->proxy, d->c.catalog);
    d->proxy.before = rival;
    d->proxy.ctx = d;
}

static void close_case(dml_case *d) {
    tarn_env *env = d->c.env;
    case_done(&d->c);
    test_env_done(env);
}

static tarn_code delete_where(dml_case *d, const char *where, bool serializable, dml_result *out,
                              tarn_error *e) {
    tarn_arena arena;
    dml_options options;
    memset(&options, 0, sizeof options);
    memset(out, 0, sizeof *out);
    arena_init(&arena, d->c.env);
    options.serializable = serializable;
    tarn_code code = expr_parse(&arena, str_of(where), &options.filter, e);
    if (code == TARN_OK) {
        code = dml_delete(d->c.env, &d->proxy.base, &d->c.ident, &options, out, e);
    }
    table_version_release(out->outcome.version);
    out->outcome.version = NULL;
    arena_release(&arena);
    return code;
}

static void check_delete(dml_case *d, const char *where, int64_t deleted, int32_t removed,
                         int32_t rewritten, const char *left) {
    dml_result result;
    assert_ok(delete_where(d, where, true, &result, &err));
    assert_int_equal(result.outcome.kind, deleted > 0 ? TARN_COMMITTED : TARN_NOT_COMMITTED);
    assert_int_equal(result.rows_deleted, deleted);
    assert_int_equal(result.files_removed, removed);
    assert_int_equal(result.files_rewritten, rewritten);
    case_check_rows(&d->c, NULL, left);
    case_check_files(&d->c, 0);
}

static void tell_deletes(case_kind kind, int32_t version) {
    dml_case d;
    open_case(&d, kind, version, "day");
    case_append(&d.c,
                ROW(1, 1, "\"a\"") ROW(2, 1, "null") ROW(3, 2, "\"b\"") ROW(4, null, "\"a\""));
    case_append(&d.c, ROW(5, 1, "\"c\"") ROW(6, 3, "\"a\""));
    check_delete(&d, "id = 99", 0, 0, 0,
                 ROW(1, 1, "\"a\"") ROW(2, 1, "null") ROW(3, 2, "\"b\"") ROW(4, null, "\"a\"")
                     ROW(5, 1, "\"c\"") ROW(6, 3, "\"a\""));
    /* a partition, and bounds: no file is read */
    check_delete(&d, "day = 3 or id = 3", 2, 2, 0,
                 ROW(1, 1, "\"a\"") ROW(2, 1, "null") ROW(4, null, "\"a\"") ROW(5, 1, "\"c\""));
    /* a part of a file, a whole one found by counting */
    check_delete(&d, "tag = 'a'", 2, 2, 1, ROW(2, 1, "null") ROW(5, 1, "\"c\""));
    check_delete(&d, "tag is null", 1, 1, 0, ROW(5, 1, "\"c\""));
    check_delete(&d, "true", 1, 1, 0, "");
    check_delete(&d, "true", 0, 0, 0, "");
    case_append(&d.c, ROW(7, 7, "\"z\""));
    case_check_rows(&d.c, NULL, ROW(7, 7, "\"z\""));
    close_case(&d);
}

static void test_dml_delete(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        tell_deletes((case_kind)kind, 1);
        tell_deletes((case_kind)kind, 2);
    }
}

static void test_dml_delete_needs_filter(void **state) {
    (void)state;
    dml_case d;
    dml_result result;
    dml_options options;
    memset(&options, 0, sizeof options);
    open_case(&d, CASE_DIR_MEMORY, 2, NULL);
    assert_code(dml_delete(d.c.env, d.c.catalog, &d.c.ident, &options, &result, &err),
                TARN_INVALID);
    err_reset(&err);
    assert_code(delete_where(&d, "nothing = 1", true, &result, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "nothing"));
    err_reset(&err);
    close_case(&d);
}

/* ---- overwrite ---- */

static void overwrite(dml_case *d, const char *where, const char *branch, const char *rows,
                      tarn_code want) {
    tarn_arena arena;
    dml_options options;
    dml_result result;
    write_result written;
    tarn_table_version *v = case_load(&d->c);
    memset(&options, 0, sizeof options);
    memset(&result, 0, sizeof result);
    memset(&written, 0, sizeof written);
    arena_init(&arena, d->c.env);
    options.branch = str_of(branch);
    if (where != NULL) {
        assert_ok(expr_parse(&arena, str_of(where), &options.filter, &err));
    }
    assert_ok(case_write(&d->c, v, rows, &arena, &written, &err));
    assert_code(dml_overwrite(d->c.env, &d->proxy.base, &d->c.ident, &options, written.files,
                              written.n_files, &result, &err),
                want);
    if (want != TARN_OK && result.outcome.kind == TARN_NOT_COMMITTED) {
        write_result_remove(d->c.catalog->store, &written);
    }
    table_version_release(result.outcome.version);
    table_version_release(v);
    arena_release(&arena);
}

static void test_dml_overwrite(void **state) {
    (void)state;
    dml_case d;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        open_case(&d, (case_kind)kind, 2, "day");
        overwrite(&d, NULL, NULL, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\""),
                  TARN_OK);
        overwrite(&d, "day = 1", NULL, ROW(4, 1, "\"n\""), TARN_OK);
        case_check_rows(&d.c, NULL, ROW(3, 2, "\"c\"") ROW(4, 1, "\"n\""));
        overwrite(&d, "id < 4 and tag = 'c'", NULL, ROW(5, 9, "\"n\""), TARN_OK);
        case_check_rows(&d.c, NULL, ROW(4, 1, "\"n\"") ROW(5, 9, "\"n\""));
        overwrite(&d, NULL, NULL, ROW(6, 1, "null"), TARN_OK);
        case_check_rows(&d.c, NULL, ROW(6, 1, "null"));
        overwrite(&d, NULL, "nowhere", ROW(7, 1, "null"), TARN_NOT_FOUND);
        assert_non_null(strstr(err.message, "nowhere"));
        err_reset(&err);
        case_check_files(&d.c, 0);
        close_case(&d);
    }
}

/* ---- others meanwhile ---- */

static void test_dml_serializable(void **state) {
    (void)state;
    for (int isolation = 0; isolation < 2; isolation++) {
        dml_case d;
        dml_result result;
        open_case(&d, CASE_SQLITE_MEMORY, 2, "day");
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\""));
        d.rival_rows = ROW(3, 1, "\"a\"") ROW(4, 1, "\"x\"");
        assert_ok(delete_where(&d, "tag = 'a'", isolation == 0, &result, &err));
        assert_int_equal(result.outcome.kind, TARN_COMMITTED);
        if (isolation == 0) {
            assert_int_equal(result.rows_deleted, 2);
            case_check_rows(&d.c, NULL, ROW(2, 1, "\"b\"") ROW(4, 1, "\"x\""));
        } else {
            assert_int_equal(result.rows_deleted, 1);
            case_check_rows(&d.c, NULL, ROW(2, 1, "\"b\"") ROW(3, 1, "\"a\"") ROW(4, 1, "\"x\""));
        }
        case_check_files(&d.c, 0);
        close_case(&d);
    }
}

/* Another deletes from the same file between our plan and our commit. */
static void rival_deletes(void *ctx) {
    dml_case *d = ctx;
    tarn_arena arena;
    dml_options options;
    dml_result result;
    if (d->rival_rows == NULL) {
        return;
    }
    memset(&options, 0, sizeof options);
    arena_init(&arena, d->c.env);
    assert_ok(expr_parse(&arena, str_of(d->rival_rows), &options.filter, &err));
    d->rival_rows = NULL;
    assert_ok(dml_delete(d->c.env, d->c.catalog, &d->c.ident, &options, &result, &err));
    table_version_release(result.outcome.version);
    arena_release(&arena);
}

static void test_dml_same_file_twice(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        dml_case d;
        open_case(&d, (case_kind)kind, 2, NULL);
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 1, "\"c\""));
        d.proxy.before = rival_deletes;
        d.rival_rows = "id = 1";
        check_delete(&d, "id = 2", 1, 1, 1, ROW(3, 1, "\"c\""));
        close_case(&d);
    }
}

static void test_dml_refused_and_unknown(void **state) {
    (void)state;
    dml_case d;
    dml_result result;
    open_case(&d, CASE_DIR_MEMORY, 2, NULL);
    case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\""));
    d.proxy.mode = PROXY_FAILED;
    assert_code(delete_where(&d, "id = 1", true, &result, &err), TARN_DENIED);
    assert_int_equal(result.outcome.kind, TARN_NOT_COMMITTED);
    err_reset(&err);
    case_check_files(&d.c, 0);
    d.proxy.mode = PROXY_DROPPED_UNKNOWN;
    assert_code(delete_where(&d, "id = 1", true, &result, &err), TARN_COMMIT_UNKNOWN);
    assert_int_equal(result.outcome.kind, TARN_OUTCOME_UNKNOWN);
    err_reset(&err);
    case_check_files(&d.c, 4); /* data file, two manifests, list */
    d.proxy.mode = PROXY_APPLIED_UNKNOWN;
    assert_ok(delete_where(&d, "id = 1", true, &result, &err));
    case_check_rows(&d.c, NULL, ROW(2, 1, "\"b\""));
    close_case(&d);
}

/* ---- evolution ---- */

static tarn_code make_edits(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                            tarn_change_set *out, tarn_error *e) {
    const tarn_edit *edits = ctx;
    return evolve_changes(arena, base, edits, 1, out, e);
}

static void edit_table(dml_case *d, tarn_edit edit) {
    commit_outcome outcome;
    assert_ok(
        commit_changes(d->c.env, d->c.catalog, &d->c.ident, make_edits, &edit, &outcome, &err));
    assert_int_equal(outcome.kind, TARN_COMMITTED);
    table_version_release(outcome.version);
}

/* Rewritten rows have the table's present shape and lie in its present partitioning. */
static void test_dml_after_evolution(void **state) {
    (void)state;
    dml_case d;
    open_case(&d, CASE_DIR_FILE, 2, "day");
    case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\""));
    edit_table(&d, (tarn_edit){.kind = EVOLVE_ADD_COLUMN,
                               .path = STR("extra"),
                               .type = type_primitive(TARN_DOUBLE)});
    edit_table(&d, (tarn_edit){
                       .kind = EVOLVE_RENAME_COLUMN, .path = STR("tag"), .new_name = STR("label")});
    edit_table(&d, (tarn_edit){.kind = EVOLVE_UPDATE_TYPE,
                               .path = STR("day"),
                               .type = type_primitive(TARN_LONG)});
    edit_table(&d, (tarn_edit){.kind = EVOLVE_SET_PARTITION, .text = STR("bucket(2, id)")});
    case_append(&d.c, "{\"id\":4,\"day\":5000000000,\"label\":\"a\",\"extra\":0.5}\n");
    check_delete(&d, "label = 'a'", 2, 2, 1,
                 "{\"id\":2,\"day\":1,\"label\":\"b\",\"extra\":null}\n"
                 "{\"id\":3,\"day\":2,\"label\":\"c\",\"extra\":null}\n");
    check_delete(&d, "day = 2", 1, 1, 0, "{\"id\":2,\"day\":1,\"label\":\"b\",\"extra\":null}\n");
    close_case(&d);
}

/* ---- B17 ---- */

static void copy_folder(const char *from, const char *to) {
    DIR *dir = opendir(from);
    assert_non_null(dir);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char source[512], target[512], bytes[65536];
        struct stat st;
        (void)snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        (void)snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        assert_int_equal(stat(source, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            if (entry->d_name[0] != '.') {
                copy_folder(source, target);
            }
            continue;
        }
        FILE *in = fopen(source, "rb");
        FILE *out = fopen(target, "wb");
        assert_non_null(in);
        assert_non_null(out);
        size_t n = fread(bytes, 1, sizeof bytes, in);
        assert_true(n < sizeof bytes);
        assert_int_equal(fwrite(bytes, 1, n, out), n);
        (void)fclose(in);
        assert_int_equal(fclose(out), 0);
    }
    (void)closedir(dir);
}

static void check_b17(table_case *c, int64_t records) {
    tarn_arena arena;
    io_source *source;
    const tarn_manifest *manifests;
    int32_t n;
    int64_t live = 0;
    bool deletes = false;
    tarn_table_version *v = case_load(c);
    arena_init(&arena, c->env);
    const tarn_snapshot *s = metadata_current_snapshot(v->metadata);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        deletes = deletes || (manifests[i].is_deletes && manifests[i].added_files == 1);
        if (!manifests[i].is_deletes) {
            live += manifests[i].added_rows + manifests[i].existing_rows;
            assert_int_equal(manifests[i].min_sequence_number, 0);
        }
    }
    assert_true(deletes);
    assert_int_equal(live, records);
    arena_release(&arena);
    table_version_release(v);
}

static void test_dml_upgraded_table(void **state) {
    static const tarn_str level = {"B17", 3};
    (void)state;
    dml_case d;
    char path[160];
    dml_result result;
    tarn_store *files, *moved;
    memset(&d, 0, sizeof d);
    tarn_env *env = test_env();
    case_open(&d.c, env, CASE_DIR_FILE);
    catalog_close(d.c.catalog);
    (void)snprintf(path, sizeof path, "%s/tbl", d.c.folder);
    copy_folder(TARN_TEST_FIXTURES "/bugs/B17/tbl", path);
    assert_ok(store_file_new(env, false, &files, &err));
    assert_ok(store_moved_new(files, STR("file:///tarn-fixtures/bugs/open/B17/tbl"), str_of(path),
                              &moved, &err));
    assert_ok(
        catalog_dir_new(env, moved, STR("file:///tarn-fixtures/bugs/open"), &d.c.catalog, &err));
    d.c.ident = (tarn_ident){1, &level, STR("tbl")};
    proxy_init(&d.proxy, d.c.catalog);
    assert_ok(delete_where(&d, "day = 3", true, &result, &err));
    assert_int_equal(result.rows_deleted, 3);
    assert_int_equal(result.files_rewritten, 0);
    check_b17(&d.c, 6); /* with row 21, which the position delete hides: 5 */
    assert_ok(delete_where(&d, "day = 1", true, &result, &err));
    assert_int_equal(result.rows_deleted, 3);
    check_b17(&d.c, 3);
    case_check_rows(&d.c, "day <> 2", "");
    scan_options options = case_scan_options(); /* the position delete still hides row 21 */
    tarn_buf buf;
    buf_init(&buf, env, 0);
    assert_ok(case_scan(&d.c, &options, NULL, &buf, NULL, &err));
    assert_ok(buf_append_char(&buf, '\0', &err));
    assert_non_null(strstr((const char *)buf.data, "\"id\":20"));
    assert_non_null(strstr((const char *)buf.data, "\"id\":22"));
    assert_null(strstr((const char *)buf.data, "\"id\":21"));
    buf_release(&buf);
    close_case(&d);
}

/* ---- purge ---- */

static tarn_code count_object(void *ctx, tarn_str path, const store_stat_info *info,
                              tarn_error *e) {
    (void)path;
    (void)info;
    (void)e;
    ++*(int *)ctx;
    return TARN_OK;
}

static void test_dml_purge(void **state) {
    (void)state;
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        dml_case d;
        dml_result result;
        int n = 0;
        open_case(&d, (case_kind)kind, 2, "day");
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 1, "\"b\"") ROW(3, 2, "\"c\""));
        assert_ok(delete_where(&d, "id = 1", true, &result, &err));
        case_append(&d.c, ROW(4, 1, "\"a\""));
        tarn_table_version *v = case_load(&d.c);
        assert_ok(catalog_drop(d.c.catalog, &d.c.ident, &err));
        assert_ok(purge_table(d.c.env, d.c.catalog, v, NULL, &err));
        assert_ok(store_list(d.c.catalog->store, str_of(d.c.warehouse), count_object, &n, &err));
        assert_int_equal(n, 0);
        table_version_release(v);
        close_case(&d);
    }
}

/* A purge that failed at some call can be done again, and then nothing is left. */
static void test_dml_purge_again(void **state) {
    (void)state;
    bool reached = true;
    for (int64_t k = 1; reached; k++) {
        dml_case d;
        int n = 0;
        open_case(&d, CASE_DIR_MEMORY, 2, "day");
        case_append(&d.c, ROW(1, 1, "\"a\"") ROW(2, 2, "\"b\""));
        case_append(&d.c, ROW(3, 2, "\"c\""));
        tarn_table_version *v = case_load(&d.c);
        assert_ok(catalog_drop(d.c.catalog, &d.c.ident, &err));
        d.c.plan.fail_at = k;
        d.c.plan.after = k % 2 == 0;
        tarn_code code = purge_table(d.c.env, d.c.catalog, v, NULL, &err);
        d.c.plan.fail_at = 0;
        reached = d.c.plan.struck != NULL;
        assert_true(code == TARN_OK || (reached && code == TARN_IO && err.message[0] != '\0'));
        err = (tarn_error)TARN_ERROR_INIT;
        assert_ok(purge_table(d.c.env, d.c.catalog, v, NULL, &err));
        assert_ok(store_list(d.c.catalog->store, str_of(d.c.warehouse), count_object, &n, &err));
        assert_int_equal(n, 0);
        table_version_release(v);
        close_case(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dml_delete),          cmocka_unit_test(test_dml_delete_needs_filter),
        cmocka_unit_test(test_dml_overwrite),       cmocka_unit_test(test_dml_serializable),
        cmocka_unit_test(test_dml_same_file_twice), cmocka_unit_test(test_dml_refused_and_unknown),
        cmocka_unit_test(test_dml_after_evolution), cmocka_unit_test(test_dml_upgraded_table),
        cmocka_unit_test(test_dml_purge),           cmocka_unit_test(test_dml_purge_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
