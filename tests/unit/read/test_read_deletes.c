/* Goal: rows that position deletes, vectors and equality deletes take are gone, and no others,
 * whatever is projected, filtered or cut (B13, B16, B17, B19, B20); a delete file is opened once.
 * Method: tables of the bug cases, scanned whole, by filter, by columns, task by task and in byte
 * ranges; a store that counts what is opened; memory that fails at any allocation. */
#include "torture.h"

#include "base/pool.h"

#include "read_case.h"

typedef struct seen_rows {
    int64_t rows, sum; /* of the first column */
} seen_rows;

static void check_rows(read_case *c, const char *columns, const char *where, const char *want) {
    tarn_buf out;
    scan_counters counters;
    tarn_str names[4];
    tarn_str rest = str_of(columns);
    scan_options options = options_of(c, where);
    options.columns = names;
    while (columns != NULL && str_split(&rest, ',', &names[options.n_columns])) {
        options.n_columns++;
    }
    buf_init(&out, c->env, 0);
    assert_ok(scan_text(c, &options, &out, &counters, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    buf_release(&out);
}

/* Ids in another order than the schema's, an extra column, a null key, a key column dropped later.
 */
static void equality_by_ids_b13(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B13/tbl/metadata/v1.metadata.json");
    check_rows(&c, NULL, NULL,
               "{\"payload\":\"P2\",\"id\":\"id2\",\"day\":\"2022\",\"num\":2}\n"
               "{\"payload\":\"P3\",\"id\":\"2022\",\"day\":\"id1\",\"num\":3}\n");
    check_rows(&c, "payload", NULL, "{\"payload\":\"P2\"}\n{\"payload\":\"P3\"}\n");
    check_rows(&c, "num", NULL, "{\"num\":2}\n{\"num\":3}\n");
    check_rows(&c, "num", "payload = 'P3'", "{\"num\":3}\n");
    close_case(&c);
    open_case(&c, "B13/dropped_key/metadata/v1.metadata.json");
    check_rows(&c, NULL, NULL, "{\"payload\":\"P1\"}\n{\"payload\":\"P3\"}\n");
    close_case(&c);
}

static seen_rows scan_piece(read_case *c, tarn_plan *plan, int64_t start, int64_t end) {
    seen_rows seen = {0, 0};
    file_scan *scan = NULL;
    scan_counters counters;
    file_scan_options options;
    tarn_batch batch;
    memset(&counters, 0, sizeof counters);
    memset(&options, 0, sizeof options);
    options.wanted = plan->output;
    options.start = start;
    options.end = end;
    (void)c;
    assert_ok(task_scan_open(plan, &plan->tasks[0], &options, &scan, &err));
    for (;;) {
        tarn_view pos;
        assert_ok(file_scan_next(scan, &batch, &counters, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 0, &pos);
        for (int64_t i = 0; i < pos.length; i++) {
            seen.sum += ((const int64_t *)pos.values)[i];
        }
        seen.rows += pos.length;
        batch_release(&batch);
    }
    file_scan_close(scan);
    return seen;
}

/* Row numbers are those in the file, whatever groups and pages are left out (the reading half). */
static void positions_of_pieces_b16(void **state) {
    (void)state;
    const tarn_str pos = STR("_pos");
    read_case c;
    tarn_plan *plan = NULL;
    const tarn_positions *positions = NULL;
    open_case(&c, "B16/tbl/metadata/v1.metadata.json");
    assert_int_equal(count_rows(&c, NULL), 394);
    assert_int_equal(count_rows(&c, "id = 399"), 0);
    check_rows(&c, "id,_pos", "id >= 250 and id < 253",
               "{\"id\":251,\"_pos\":251}\n{\"id\":252,\"_pos\":252}\n");
    check_rows(&c, "_pos,id", "id >= 198 and id <= 201",
               "{\"_pos\":198,\"id\":198}\n{\"_pos\":200,\"id\":200}\n{\"_pos\":201,\"id\":201}\n");
    scan_options options = options_of(&c, NULL);
    options.columns = &pos;
    options.n_columns = 1;
    assert_ok(plan_new(c.env, c.store, &options, &plan, &err));
    assert_int_equal(plan->n_tasks, 1);
    const int64_t size = plan->tasks[0].file.size_bytes;
    for (int64_t pieces = 1; pieces <= 9; pieces++) {
        seen_rows all = {0, 0};
        for (int64_t p = 0; p < pieces; p++) {
            seen_rows some = scan_piece(&c, plan, size * p / pieces, size * (p + 1) / pieces);
            all.rows += some.rows;
            all.sum += some.sum;
        }
        assert_int_equal(all.rows, 394);
        assert_int_equal(all.sum, 399 * 400 / 2 - (0 + 99 + 100 + 199 + 250 + 399));
    }
    assert_ok(task_positions(plan, &plan->tasks[0], &positions, &err));
    assert_int_equal(positions_count(positions), 6);
    assert_int_equal(positions_max(positions), 399);
    plan_free(plan);
    close_case(&c);
}

/* Deletes of a table that was v1: data of sequence number 0. */
static void data_of_sequence_zero_b17(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B17/tbl/metadata/v1.metadata.json");
    assert_int_equal(count_rows(&c, NULL), 8);
    assert_int_equal(count_rows(&c, "day = 2"), 2);
    close_case(&c);
}

/* Counts what is opened. */
typedef struct counting_store {
    tarn_store base;
    tarn_store *inner;
    store_vtable vt;
    int64_t opened;
} counting_store;

static tarn_code counting_open(tarn_store *store, tarn_str path, int64_t size, io_source **out,
                               tarn_error *e) {
    counting_store *s = (counting_store *)store;
    s->opened += str_ends_with(path, STR(".parquet"));
    return store_open(s->inner, path, size, out, e);
}

static void many_deletes_b19(void **state) {
    (void)state;
    read_case c;
    tarn_buf out;
    scan_counters counters;
    counting_store counting;
    open_case(&c, "B19/many_deletes/metadata/v1.metadata.json");
    tarn_store *store = c.store;
    memset(&counting, 0, sizeof counting);
    counting.inner = store;
    counting.vt.open = counting_open;
    counting.base.vt = &counting.vt;
    counting.base.env = c.env;
    c.store = &counting.base;
    scan_options options = options_of(&c, NULL);
    int rows = 0;
    buf_init(&out, c.env, 0);
    assert_ok(scan_text(&c, &options, &out, &counters, &err));
    for (size_t i = 0; i < out.len; i++) {
        rows += out.data[i] == '\n';
    }
    assert_int_equal(rows, 12193);
    assert_int_equal(counting.opened, 600 + counters.files);
    assert_true(tarn_env_memory_peak(c.env) < 64 << 20);
    buf_release(&out);
    c.store = store;
    close_case(&c);
    open_case(&c, "B19/many_entries/metadata/v1.metadata.json");
    check_rows(&c, "v", "id = 2048", "{\"v\":\"v2048\"}\n");
    check_rows(&c, "v", "id = 4999", "{\"v\":\"v4999\"}\n");
    close_case(&c);
}

static void vectors_b20(void **state) {
    static const struct {
        const char *name;
        int rows;
    } tables[] = {{"framed", 17}, {"bare_blob", 17}, {"two_in_one_file", 15}};
    (void)state;
    read_case c;
    tarn_buf out;
    scan_counters counters;
    char path[128];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        (void)snprintf(path, sizeof path, "B20/%s/metadata/v1.metadata.json", tables[i].name);
        open_case(&c, path);
        assert_int_equal(count_rows(&c, NULL), tables[i].rows);
        close_case(&c);
    }
    open_case(&c, "B20/bad_crc/metadata/v1.metadata.json");
    scan_options options = options_of(&c, NULL);
    buf_init(&out, c.env, 0);
    assert_code(scan_text(&c, &options, &out, &counters, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.detail, "dv.puffin"));
    err = (tarn_error)TARN_ERROR_INIT;
    buf_release(&out);
    close_case(&c);
}

/* Every task on threads of its own at once: they share what is loaded. */
typedef struct shared_plan {
    tarn_plan *plan;
    int64_t rows[16];
} shared_plan;

static tarn_code count_task(void *ctx, size_t index, tarn_error *e) {
    shared_plan *s = ctx;
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    scan_counters counters;
    file_scan_options options;
    tarn_batch batch;
    memset(&counters, 0, sizeof counters);
    memset(&options, 0, sizeof options);
    memset(&batch, 0, sizeof batch);
    options.wanted = s->plan->output;
    s->rows[index] = 0;
    TRY(task_scan_open(s->plan, &s->plan->tasks[0], &options, &scan, e));
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, e));
        s->rows[index] += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

static void tasks_share_what_is_loaded(void **state) {
    static const char *const tables[] = {"B13/tbl", "B16/tbl", "B19/many_deletes", "B20/framed"};
    (void)state;
    read_case c;
    char path[128];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        shared_plan shared;
        (void)snprintf(path, sizeof path, "%s/metadata/v1.metadata.json", tables[i]);
        open_case(&c, path);
        scan_options options = options_of(&c, NULL);
        assert_ok(plan_new(c.env, c.store, &options, &shared.plan, &err));
        assert_ok(pool_for_blocking(16, count_task, &shared, &err));
        for (int k = 1; k < 16; k++) {
            assert_int_equal(shared.rows[k], shared.rows[0]);
        }
        assert_true(shared.rows[0] > 0);
        plan_free(shared.plan);
        close_case(&c);
    }
}

/* The scan in an env whose k-th allocation fails. */
static tarn_code scan_failing(const char *metadata_path, int64_t k, int *rows) {
    test_memory memory = {0};
    read_case c;
    tarn_buf out;
    scan_counters counters;
    tarn_error e = TARN_ERROR_INIT;
    open_case_in(&c, test_env_memory(&memory), metadata_path);
    scan_options options = options_of(&c, NULL);
    buf_init(&out, c.env, 0);
    memory.fail_at = k;
    tarn_code code = scan_text(&c, &options, &out, &counters, &e);
    memory.fail_at = 0;
    *rows = 0;
    for (size_t i = 0; i < out.len; i++) {
        *rows += out.data[i] == '\n';
    }
    buf_release(&out);
    close_case(&c);
    return code;
}

static void scans_without_memory(void **state) {
    static const struct {
        const char *path;
        int rows;
    } tables[] = {{"B13/tbl/metadata/v1.metadata.json", 2},
                  {"B13/dropped_key/metadata/v1.metadata.json", 2},
                  {"B16/tbl/metadata/v1.metadata.json", 394},
                  {"B20/two_in_one_file/metadata/v1.metadata.json", 15}};
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        tarn_code code = TARN_NOMEM;
        for (int64_t k = 1; code != TARN_OK; k += test_every() || k < 40 ? 1 : 3) {
            int rows = 0;
            code = scan_failing(tables[i].path, k, &rows);
            assert_true(code == TARN_NOMEM || (code == TARN_OK && rows == tables[i].rows));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality_by_ids_b13),
        cmocka_unit_test(positions_of_pieces_b16),
        cmocka_unit_test(data_of_sequence_zero_b17),
        cmocka_unit_test(many_deletes_b19),
        cmocka_unit_test(vectors_b20),
        cmocka_unit_test(tasks_share_what_is_loaded),
        cmocka_unit_test(scans_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
