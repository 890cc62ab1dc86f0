/* Goal: what commits did to rows, and what was appended between two snapshots.
 * Method: the tables of the bug cases, whose second snapshot deletes rows by position, vector and
 * equality; ranges that are none; memory that fails at any allocation. Commits of other kinds and
 * of other writers are in interop/test_changes.py. */
#include "torture.h"

#include "read/changes.h"

#include "read_case.h"

static tarn_code changes_text(read_case *c, const changes_options *options, tarn_buf *out,
                              int64_t *rows, tarn_error *e) {
    tarn_code code = TARN_OK;
    changes *changed = NULL;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    *rows = 0;
    TRY(changes_open(c->env, c->store, options, &changed, e));
    do {
        batch_release(&batch);
        TRY(changes_next(changed, &batch, e));
        if (batch_rows(&batch) > 0) {
            assert_ok(batch_validate(&batch, e));
            TRY(rows_write(&batch, out, e));
        }
        *rows += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    changes_close(changed);
    return code;
}

static changes_options range_of(const read_case *c, int64_t from, int64_t to) {
    changes_options options;
    memset(&options, 0, sizeof options);
    options.metadata = c->metadata;
    options.from_snapshot_id = from;
    options.to_snapshot_id = to;
    options.limit = -1;
    return options;
}

static void check_changes(read_case *c, int64_t from, int64_t to, bool net, const char *want) {
    tarn_buf out;
    int64_t rows;
    changes_options options = range_of(c, from, to);
    options.net = net;
    buf_init(&out, c->env, 0);
    assert_ok(changes_text(c, &options, &out, &rows, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
}

static void deletes_are_changes(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B13/dropped_key/metadata/v1.metadata.json");
    check_changes(&c, 1001, TARN_NO_SNAPSHOT, false,
                  "{\"payload\":\"P2\",\"_change_type\":\"DELETE\",\"_change_ordinal\":0,"
                  "\"_commit_snapshot_id\":1002}\n");
    check_changes(&c, 1001, 1001, false, "");
    check_changes(&c, TARN_NO_SNAPSHOT, 1002, true,
                  "{\"payload\":\"P1\",\"_change_type\":\"INSERT\",\"_change_ordinal\":0,"
                  "\"_commit_snapshot_id\":1002}\n"
                  "{\"payload\":\"P3\",\"_change_type\":\"INSERT\",\"_change_ordinal\":0,"
                  "\"_commit_snapshot_id\":1002}\n");
    close_case(&c);
}

static void counts_of_changes(void **state) {
    static const struct {
        const char *path;
        int64_t inserted, deleted;
    } tables[] = {{"B16/tbl", 400, 6}, {"B20/framed", 20, 3}, {"B20/two_in_one_file", 20, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        read_case c;
        tarn_buf out;
        char path[128];
        int64_t rows;
        (void)snprintf(path, sizeof path, "%s/metadata/v1.metadata.json", tables[i].path);
        open_case(&c, path);
        buf_init(&out, c.env, 0);
        changes_options options = range_of(&c, TARN_NO_SNAPSHOT, 1002);
        assert_ok(changes_text(&c, &options, &out, &rows, &err));
        assert_int_equal(rows, tables[i].inserted + tables[i].deleted);
        options.net = true;
        assert_ok(changes_text(&c, &options, &out, &rows, &err));
        assert_int_equal(rows, tables[i].inserted - tables[i].deleted);
        options = range_of(&c, 1001, 1002);
        assert_ok(changes_text(&c, &options, &out, &rows, &err));
        assert_int_equal(rows, tables[i].deleted);
        buf_release(&out);
        close_case(&c);
    }
}

static void appends_between(void **state) {
    (void)state;
    read_case c;
    tarn_buf out;
    scan_counters counters;
    tarn_plan *plan = NULL;
    open_case(&c, "B16/tbl/metadata/v1.metadata.json");
    scan_options options = options_of(&c, "id < 3");
    options.appends = true;
    options.from_snapshot_id = TARN_NO_SNAPSHOT;
    options.snapshot_id = 1001;
    buf_init(&out, c.env, 0);
    assert_ok(scan_text(&c, &options, &out, &counters, &err)); /* as they were appended */
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, "{\"id\":0,\"v\":\"r0\"}\n{\"id\":1,\"v\":\"r1\"}\n"
                                                "{\"id\":2,\"v\":\"r2\"}\n");
    options.snapshot_id = 1002;
    assert_code(plan_new(c.env, c.store, &options, &plan, &err), TARN_INVALID);
    assert_string_equal(
        err.message,
        "snapshot 1002 changed rows instead of only appending some (tarn changes tells what)");
    buf_release(&out);
    close_case(&c);
    err = (tarn_error)TARN_ERROR_INIT;
}

static void ranges_that_are_none(void **state) {
    (void)state;
    read_case c;
    changes *changed = NULL;
    const tarn_str nobody = STR("nobody");
    open_case(&c, "B16/tbl/metadata/v1.metadata.json");
    changes_options options = range_of(&c, 1002, 1001);
    assert_code(changes_open(c.env, c.store, &options, &changed, &err), TARN_INVALID);
    assert_string_equal(err.message, "snapshot 1002 is no ancestor of snapshot 1001");
    err = (tarn_error)TARN_ERROR_INIT;
    options = range_of(&c, 7, 1002);
    assert_code(changes_open(c.env, c.store, &options, &changed, &err), TARN_NOT_FOUND);
    err = (tarn_error)TARN_ERROR_INIT;
    options = range_of(&c, 1001, 7);
    assert_code(changes_open(c.env, c.store, &options, &changed, &err), TARN_NOT_FOUND);
    err = (tarn_error)TARN_ERROR_INIT;
    options = range_of(&c, 1001, 1002);
    options.key = &nobody;
    options.n_key = 1;
    assert_code(changes_open(c.env, c.store, &options, &changed, &err), TARN_INVALID);
    assert_string_equal(err.message, "there is no column nobody that can be a key");
    err = (tarn_error)TARN_ERROR_INIT;
    close_case(&c);
}

static void changes_without_memory(void **state) {
    static const char *const tables[] = {"B13/tbl", "B16/tbl", "B20/two_in_one_file"};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        tarn_code code = TARN_NOMEM;
        for (int64_t k = 1; code != TARN_OK; k += test_every() || k < 40 ? 1 : 3) {
            test_memory memory = {0};
            read_case c;
            tarn_buf out;
            tarn_error e = TARN_ERROR_INIT;
            char path[128];
            int64_t rows;
            (void)snprintf(path, sizeof path, "%s/metadata/v1.metadata.json", tables[i]);
            open_case_in(&c, test_env_memory(&memory), path);
            changes_options options = range_of(&c, TARN_NO_SNAPSHOT, 1002);
            options.net = k % 2 == 0;
            buf_init(&out, c.env, 0);
            memory.fail_at = k;
            code = changes_text(&c, &options, &out, &rows, &e);
            memory.fail_at = 0;
            assert_true(code == TARN_NOMEM || code == TARN_OK);
            buf_release(&out);
            close_case(&c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deletes_are_changes),    cmocka_unit_test(counts_of_changes),
        cmocka_unit_test(appends_between),        cmocka_unit_test(ranges_that_are_none),
        cmocka_unit_test(changes_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
