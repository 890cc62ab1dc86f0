/* Goal: tables of other writers are read as they are meant, whole and by filter, and files piece by
 * piece.
 * Method: the tables of B05, B11, B26 and B43 below the fixtures, planned and scanned with the
 * rooms alone; the Parquet files of B44 in every cut of byte ranges. */
#include "read_case.h"

/* Rows of a filter; skipped: how many files pruning left out at least. */
static void check_where(read_case *c, const char *columns, const char *where, int64_t skipped,
                        const char *want) {
    tarn_buf out;
    scan_counters counters;
    scan_options options = options_of(c, where);
    tarn_str name = str_of(columns);
    buf_init(&out, c->env, 0);
    options.columns = &name;
    options.n_columns = columns != NULL;
    assert_ok(scan_text(c, &options, &out, &counters, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal((const char *)out.data, want);
    assert_true(counters.files_skipped >= skipped);
    assert_true(counters.bytes_read > 0);
    buf_release(&out);
}

static void test_read_null_partitions(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B05/tbl/metadata/v1.metadata.json");
    assert_int_equal(count_rows(&c, NULL), 10);
    assert_int_equal(count_rows(&c, "k is null"), 4);
    assert_int_equal(count_rows(&c, "s is null"), 4);
    check_where(&c, "id", "k = 2", 4, "{\"id\":30}\n{\"id\":31}\n");
    check_where(&c, "id", "s = ''", 4, "{\"id\":40}\n{\"id\":41}\n");
    close_case(&c);
}

/* An imported file is read by the mapping, under the column's new name too; without a mapping its
 * columns are nobody's. */
static void test_read_name_mapping(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B11/tbl/metadata/v1.metadata.json");
    assert_int_equal(count_rows(&c, NULL), 2);
    check_where(&c, "n", "renamed = 'bbb'", 0, "{\"n\":7}\n");
    close_case(&c);
    open_case(&c, "B11/tbl_no_mapping/metadata/v1.metadata.json");
    tarn_buf out;
    scan_counters counters;
    scan_options options = options_of(&c, NULL);
    buf_init(&out, c.env, 0);
    tarn_code code = scan_text(&c, &options, &out, &counters, &err);
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_null(strstr((const char *)out.data, "bbb"));
    assert_true(code == TARN_OK || err.message[0] != '\0');
    err = (tarn_error)TARN_ERROR_INIT;
    buf_release(&out);
    close_case(&c);
}

static void test_read_old_metadata(void **state) {
    static const char *const two[] = {"v2_no_refs",          "v1_full",
                                      "v1_minimal",          "v1_manifests_inline",
                                      "v2_old_schemas_gone", "v2_snapshot_without_sequence"};
    static const char *const none[] = {"v2_no_current", "v2_minimal", "v2_current_minus_one"};
    (void)state;
    for (size_t i = 0; i < sizeof two / sizeof *two + sizeof none / sizeof *none; i++) {
        read_case c;
        char path[128];
        bool has = i < sizeof two / sizeof *two;
        (void)snprintf(path, sizeof path, "B26/%s.metadata.json",
                       has ? two[i] : none[i - sizeof two / sizeof *two]);
        open_case(&c, path);
        assert_int_equal(count_rows(&c, NULL), has ? 2 : 0);
        close_case(&c);
    }
}

static void test_read_avro_times(void **state) {
    (void)state;
    read_case c;
    open_case(&c, "B43/spec/metadata/v1.metadata.json");
    assert_int_equal(count_rows(&c, NULL), 3);
    check_where(&c, "id", "tz = '2023-06-04T19:59:59.999999-04:00'", 0, "{\"id\":0}\n");
    close_case(&c);
}

static void test_read_refuses(void **state) {
    (void)state;
    read_case c;
    tarn_plan *plan;
    open_case(&c, "B05/tbl/metadata/v1.metadata.json");
    scan_options options = options_of(&c, "nobody = 1");
    assert_code(plan_new(c.env, c.store, &options, &plan, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "nobody"));
    err = (tarn_error)TARN_ERROR_INIT;
    options = options_of(&c, NULL);
    options.snapshot_id = 4;
    assert_code(plan_new(c.env, c.store, &options, &plan, &err), TARN_NOT_FOUND);
    err = (tarn_error)TARN_ERROR_INIT;
    const tarn_str gone = STR("gone");
    options = options_of(&c, NULL);
    options.columns = &gone;
    options.n_columns = 1;
    assert_code(plan_new(c.env, c.store, &options, &plan, &err), TARN_INVALID);
    err = (tarn_error)TARN_ERROR_INIT;
    close_case(&c);
}

/* ---- pieces of one file ---- */

static tarn_code read_piece(read_case *c, const tarn_file *file, const tarn_type *wanted,
                            int64_t start, int64_t end, int64_t *rows, int64_t *sum,
                            tarn_error *e) {
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    scan_counters counters;
    tarn_batch batch;
    file_scan_options options;
    memset(&options, 0, sizeof options);
    memset(&counters, 0, sizeof counters);
    memset(&batch, 0, sizeof batch);
    options.wanted = wanted;
    options.by_name = true;
    options.start = start;
    options.end = end;
    TRY(file_scan_open(c->env, c->store, file, NULL, &options, &scan, e));
    for (;;) {
        tarn_view ids;
        TRY(file_scan_next(scan, &batch, &counters, e));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 0, &ids);
        for (int64_t i = 0; i < batch_rows(&batch); i++) {
            *sum += ids.type->kind == TARN_INT ? ((const int32_t *)ids.values)[i]
                                               : ((const int64_t *)ids.values)[i];
        }
        *rows += batch_rows(&batch);
        batch_release(&batch);
    }
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

static void test_read_file_pieces(void **state) {
    static const char *const names[] = {"good",
                                        "rowgroup_offset_at_end",
                                        "rowgroup_offset_huge",
                                        "rowgroup_offset_missing",
                                        "rowgroup_offset_repeated",
                                        "rowgroup_offset_zero"};
    (void)state;
    read_case c;
    open_case(&c, "B05/tbl/metadata/v1.metadata.json");
    tarn_field id = {0};
    id.id = 1;
    id.name = STR("id");
    id.type = type_primitive(TARN_LONG);
    const tarn_type *wanted = type_struct(&c.arena, &id, 1);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[128];
        store_stat_info info;
        tarn_file file;
        memset(&file, 0, sizeof file);
        (void)snprintf(path, sizeof path, "file://" PLACE "/B44/%s.parquet", names[n]);
        file.path = str_of(path);
        assert_ok(store_stat(c.store, file.path, &info, &err));
        file.size_bytes = info.size_bytes;
        for (int64_t pieces = 1; pieces <= 7; pieces++) {
            int64_t rows = 0;
            int64_t sum = 0;
            for (int64_t p = 0; p < pieces; p++) {
                assert_ok(read_piece(&c, &file, wanted, info.size_bytes * p / pieces,
                                     info.size_bytes * (p + 1) / pieces, &rows, &sum, &err));
            }
            assert_int_equal(rows, 300);
            assert_int_equal(sum, 44850);
        }
    }
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_null_partitions), cmocka_unit_test(test_read_name_mapping),
        cmocka_unit_test(test_read_old_metadata),    cmocka_unit_test(test_read_avro_times),
        cmocka_unit_test(test_read_refuses),         cmocka_unit_test(test_read_file_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
