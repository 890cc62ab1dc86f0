/* Known faults of other readers of Parquet. Goal: each input of tests/fixtures/bugs gives what its
 * expected.json says. Method: read whole, by splits, and with pruning on and off. */
#include "../../test.h"

#include "parquet_dump.h"

#define BUGS TARN_TEST_FIXTURES "/bugs"

typedef struct opened {
    tarn_env *env;
    uint8_t *bytes;
    io_source *source;
    parquet_file *file;
} opened;

static opened open_bug(const char *name) {
    opened o = {test_env(), NULL, NULL, NULL};
    tarn_error err = TARN_ERROR_INIT;
    char path[1000];
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s.parquet", BUGS, name);
    o.bytes = dump_load(path, &len);
    assert_non_null(o.bytes);
    assert_ok(io_source_memory(o.env, name, o.bytes, len, &o.source, &err));
    assert_ok(parquet_open(o.env, o.source, NULL, &o.file, &err));
    return o;
}

static void close_bug(opened *o) {
    parquet_close(o->file);
    o->source->close(o->source);
    free(o->bytes);
    test_env_done(o->env);
}

typedef struct sums {
    int64_t rows, sum, next_row;
} sums;

/* Sums the longs or ints of column 0; first_row must say where the rows stand. */
static void sum_scan(opened *o, const parquet_scan_options *options, sums *s) {
    tarn_error err = TARN_ERROR_INIT;
    parquet_scan *scan = NULL;
    assert_ok(parquet_scan_open(o->file, options, &scan, &err));
    for (;;) {
        tarn_batch batch = {0};
        tarn_view v;
        int64_t first = 0;
        assert_ok(parquet_scan_next(scan, &batch, &first, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        view_column(&batch, 0, &v);
        for (int64_t i = 0; i < v.length; i++) {
            tarn_value value;
            view_value(&v, i, &value);
            s->sum += value.type->kind == TARN_LONG ? value.as.i64 : value.as.i32;
        }
        s->rows += batch_rows(&batch);
        s->next_row = first + batch_rows(&batch);
        batch_release(&batch);
    }
    parquet_scan_close(scan);
}

/* B44: wrong file_offset of row groups and chunks. Splits go by the first page. */
static void test_b44_offsets(void **state) {
    (void)state;
    static const char *const names[] = {
        "B44/good",
        "B44/chunk_offset_nonsense",
        "B44/rowgroup_offset_at_end",
        "B44/rowgroup_offset_huge",
        "B44/rowgroup_offset_missing",
        "B44/rowgroup_offset_repeated",
        "B44/rowgroup_offset_zero",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        opened o = open_bug(names[i]);
        sums whole = {0}, split = {0};
        sum_scan(&o, NULL, &whole);
        assert_int_equal(whole.rows, 300);
        assert_int_equal(whole.sum, 44850);
        assert_int_equal(parquet_group_start(o.file, 0), 4);
        assert_int_equal(parquet_group_start(o.file, 1), 720);
        assert_int_equal(parquet_group_start(o.file, 2), 1438);
        const int64_t size = o.source->size_bytes, third = size / 3;
        for (int k = 0; k < 3; k++) {
            uint8_t groups[3];
            parquet_groups_within(o.file, k * third, k == 2 ? size : (k + 1) * third, groups);
            parquet_scan_options options = {.groups = groups};
            sum_scan(&o, &options, &split);
        }
        assert_int_equal(split.rows, 300);
        assert_int_equal(split.sum, 44850);
        close_bug(&o);
    }
}

/* B44: a dictionary page that no offset tells of: rows or an error, never other values. */
static void test_b44_hidden_dictionary(void **state) {
    (void)state;
    opened o = open_bug("B44/no_dict_offset");
    tarn_error err = TARN_ERROR_INIT;
    int64_t rows = 0;
    tarn_code code = dump_scan(o.file, NULL, NULL, &rows, &err);
    if (code == TARN_OK) {
        sums s = {0};
        sum_scan(&o, NULL, &s);
        assert_int_equal(s.sum, 44850);
    } else {
        assert_non_null(strstr(err.message, "column id of row group 0"));
    }
    close_bug(&o);
}

static void test_b46_int96(void **state) {
    (void)state;
    static const char *const want[] = {"1970-01-01T00:00:00.000000", "1969-12-31T23:59:59.999999",
                                       "1969-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999",
                                       "0001-01-01T00:00:00.000000", "1900-01-01T00:00:00.000000",
                                       "2262-04-11T23:47:16.854775", "2262-04-12T00:00:00.000000",
                                       "1582-10-15T00:00:00.000000", "2000-02-29T12:00:00.123456"};
    opened o = open_bug("B46/int96");
    tarn_error err = TARN_ERROR_INIT;
    parquet_scan *scan = NULL;
    tarn_batch batch = {0};
    tarn_view v;
    assert_ok(parquet_scan_open(o.file, NULL, &scan, &err));
    assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
    assert_int_equal(batch_rows(&batch), 10);
    view_column(&batch, 0, &v);
    assert_int_equal(v.type->kind, TARN_TIMESTAMP);
    for (int64_t i = 0; i < 10; i++) {
        tarn_value value;
        tarn_buf text;
        buf_init(&text, o.env, 0);
        view_value(&v, i, &value);
        assert_ok(value_to_text(&value, &text, &err));
        assert_int_equal(text.len, strlen(want[i]));
        assert_memory_equal(text.data, want[i], text.len);
        buf_release(&text);
    }
    batch_release(&batch);
    parquet_scan_close(scan);
    close_bug(&o);
}

typedef struct left_out {
    int n;
    int64_t rows[8];
} left_out;

static tarn_code leave_out(void *ctx, int64_t row, tarn_str reason, tarn_error *err) {
    left_out *seen = ctx;
    (void)err;
    assert_true(seen->n < 8);
    assert_true(str_ends_with(reason, STR("had a value out of range of a timestamp")));
    seen->rows[seen->n++] = row;
    return TARN_OK;
}

static tarn_code refuse_row(void *ctx, int64_t row, tarn_str reason, tarn_error *err) {
    (void)ctx;
    return err_set(err, TARN_INVALID, "row %lld: %.*s", (long long)row, STR_ARG(reason));
}

/* INT96 reaches further than a timestamp. A row with such a value is an error that names it, or is
 * left out for a caller who asks and is told; its neighbours keep their numbers. Columns that are
 * not read, null slots and dictionary entries without a row do not matter. */
static void test_int96_beyond(void **state) {
    (void)state;
    static const char want[] = "{\"n\":1,\"a\":\"2024-01-01T00:00:00.000000\",\"s\":{\"t\":\"2024-"
                               "01-01T00:00:00.000000\"}}\n"
                               "{\"n\":4,\"a\":\"2200-01-01T00:00:00.000000\",\"s\":{\"t\":\"2200-"
                               "01-01T00:00:00.000000\"}}\n"
                               "{\"n\":6,\"a\":\"1970-01-01T00:00:00.000000\",\"s\":{\"t\":\"1970-"
                               "01-01T00:00:00.000000\"}}\n";
    opened o = open_bug("../parquet/int96_beyond");
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf out;
    left_out seen = {0};
    int64_t rows = 0;
    const uint8_t only_n[] = {1, 0, 0, 0};
    const parquet_range early = {3, 4};
    parquet_scan_options options = {.reject = leave_out, .reject_ctx = &seen};
    buf_init(&out, o.env, 0);
    assert_int_equal(dump_scan(o.file, NULL, NULL, &rows, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "column a of row group 0 had a value out of range"));
    for (options.batch_rows = 1; options.batch_rows <= 7; options.batch_rows += 3) {
        buf_reset(&out);
        seen.n = 0;
        assert_ok(dump_scan(o.file, &options, &out, &rows, &err));
        assert_int_equal(rows, 3);
        assert_int_equal(out.len, strlen(want));
        assert_memory_equal(out.data, want, out.len);
        assert_int_equal(seen.n, 3);
        assert_int_equal(seen.rows[0] + seen.rows[1] + seen.rows[2], 1 + 2 + 4);
    }
    options.reject = refuse_row;
    assert_int_equal(dump_scan(o.file, &options, NULL, &rows, &err), TARN_INVALID);
    options = (parquet_scan_options){.selected = only_n};
    assert_ok(dump_scan(o.file, &options, NULL, &rows, &err));
    assert_int_equal(rows, 6);
    options = (parquet_scan_options){.ranges = &early, .n_ranges = 1};
    assert_ok(dump_scan(o.file, &options, NULL, &rows, &err));
    assert_int_equal(rows, 1);
    buf_release(&out);
    close_bug(&o);
}

/* Rows of a file for which a filter holds, with or without pruning. */
static int64_t filter_rows(const char *name, const char *filter, bool prune, parquet_pruned *out) {
    opened o = open_bug(name);
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, o.env);
    const tarn_expr *expr = NULL, *bound = NULL;
    const tarn_type *root = parquet_file_schema(o.file)->root;
    assert_ok(expr_parse(&arena, str_of(filter), &expr, &err));
    assert_ok(expr_bind(&arena, expr, root, true, &bound, &err));
    uint8_t groups[8];
    memset(groups, 1, sizeof groups);
    parquet_pruned pruned = {0};
    if (prune) {
        assert_ok(parquet_prune(o.file, bound, NULL, &arena, groups, &pruned, &err));
    }
    parquet_scan_options options = {
        .groups = groups, .ranges = pruned.ranges, .n_ranges = pruned.n_ranges};
    parquet_scan *scan = NULL;
    assert_ok(parquet_scan_open(o.file, &options, &scan, &err));
    int64_t total = 0;
    for (;;) {
        tarn_batch batch = {0};
        uint8_t bits[64];
        int64_t n = 0;
        assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        assert_ok(expr_eval(o.env, bound, &batch, bits, &n, &err));
        total += n;
        batch_release(&batch);
    }
    *out = pruned;
    out->ranges = NULL;
    parquet_scan_close(scan);
    arena_release(&arena);
    close_bug(&o);
    return total;
}

typedef struct filter_case {
    const char *file;
    const char *filter;
    int64_t rows;
} filter_case;

static void test_b47_floats(void **state) {
    (void)state;
    static const filter_case cases[] = {
        {"B47/min_plus_zero_holds_minus_zero", "x = -0.0", 1},
        {"B47/min_plus_zero_holds_minus_zero", "x < 1", 1},
        {"B47/max_minus_zero_holds_plus_zero", "x = 0.0", 1},
        {"B47/max_minus_zero_holds_plus_zero", "x >= 0", 1},
        {"B47/nan_max", "x = 7", 1},
        {"B47/nan_min", "x = 3", 1},
        {"B47/nan_first", "x = 9", 1},
        {"B47/nan_hidden", "x is nan", 1},
        {"B47/old_fields", "x < 0", 1},
        {"B47/no_column_orders", "x < 0", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parquet_pruned pruned;
        assert_int_equal(filter_rows(cases[i].file, cases[i].filter, false, &pruned),
                         cases[i].rows);
        assert_int_equal(filter_rows(cases[i].file, cases[i].filter, true, &pruned), cases[i].rows);
    }
}

/* Contradictory counts: the error names column, row group and both numbers; memory stays small. */
static void test_b49_counts(void **state) {
    (void)state;
    static const char *const bad[][4] = {
        {"B49/page_count_negative", "column x of row group 0", "", ""},
        {"B49/page_count_too_big", "column x of row group 0", "3", ""},
        {"B49/chunk_count_less", "column x of row group 0", "3", ""},
        {"B49/rows_more_than_values", "column x of row group 0", "5", "3"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opened o = open_bug(bad[i][0]);
        tarn_error err = TARN_ERROR_INIT;
        int64_t rows = 0;
        assert_code(dump_scan(o.file, NULL, NULL, &rows, &err), TARN_CORRUPT);
        for (int k = 1; k < 4; k++) {
            assert_non_null(strstr(err.message, bad[i][k]));
        }
        assert_true(tarn_env_memory_now(o.env) < 100u << 20);
        close_bug(&o);
    }
}

static void test_b49_empty_groups(void **state) {
    (void)state;
    static const struct {
        const char *file;
        int64_t rows, sum;
    } good[] = {{"B49/empty_row_group", 0, 0},
                {"B49/no_row_groups", 0, 0},
                {"B49/empty_in_the_middle", 4, 10}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        opened o = open_bug(good[i].file);
        sums s = {0};
        sum_scan(&o, NULL, &s);
        assert_int_equal(s.rows, good[i].rows);
        assert_int_equal(s.sum, good[i].sum);
        assert_int_equal(s.next_row, good[i].rows);
        close_bug(&o);
    }
}

static void test_b50_dictionaries(void **state) {
    (void)state;
    static const char *const files[] = {"B50/delta_after_dict", "B50/encodings_listed",
                                        "B50/encodings_two_only"};
    static const filter_case cases[] = {
        {NULL, "x = 30", 1}, {NULL, "x = 40", 1}, {NULL, "x = 10", 5}, {NULL, "x = 50", 0}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            parquet_pruned pruned;
            assert_int_equal(filter_rows(files[f], cases[i].filter, true, &pruned), cases[i].rows);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_b44_offsets),      cmocka_unit_test(test_b44_hidden_dictionary),
        cmocka_unit_test(test_int96_beyond),     cmocka_unit_test(test_b46_int96),
        cmocka_unit_test(test_b47_floats),       cmocka_unit_test(test_b49_counts),
        cmocka_unit_test(test_b49_empty_groups), cmocka_unit_test(test_b50_dictionaries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
