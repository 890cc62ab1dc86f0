/* The Parquet writer: what it says of a file in metrics, footer, page headers and indexes.
 * Goal: bounds and counts are those that Iceberg expects (B07, B08, B10, B47), pages keep to their
 * limits (B49), options are obeyed or refused.
 * Method: small batches from JSON lines; the footer and page headers are read back by hand. */
#include "unit/format/parquet_write_case.h"

#include "format/parquet/bloom.h"

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

/* Lower and upper bound of one text column with the lines given. */
static void expect_text_bounds(const char *lines, const char *lower, const char *upper) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "s", "\"string\"")), "", &err));
    assert_ok(case_write(&c, lines, &err));
    assert_string_equal(case_bound(&c, 1, false, hex), lower);
    assert_string_equal(case_bound(&c, 1, true, hex), upper);
    case_close(&c);
    test_env_done(env);
}

/* B08: the expected bounds are those of Iceberg Java with truncate(16). */
static void text_bounds_are_raised_by_code_points(void **unused) {
    (void)unused;
    expect_text_bounds("{\"s\":\"aaaaaaaaaaaaaaabzzz\"}\n{\"s\":\"aaa\"}", "616161",
                       "61616161616161616161616161616163");
    expect_text_bounds("{\"s\":\"aaaaaaaaaaaaaaa\xed\x9f\xbfzzz\"}\n{\"s\":\"aaa\"}", "616161",
                       "616161616161616161616161616161ee8080");
    expect_text_bounds("{\"s\":\"aaaaaaaaaaaaaaa\xf4\x8f\xbf\xbfz\"}\n{\"s\":\"aaa\"}", "616161",
                       "616161616161616161616161616162");
    expect_text_bounds("{\"s\":\"aaaaaaaaaaaaaaa\\ud83d\\ude00tail\"}\n{\"s\":\"aaa\"}", "616161",
                       "616161616161616161616161616161f09f9881");
    expect_text_bounds("{\"s\":\"aaaaaaaaaaaaaaaa\"}\n{\"s\":\"aaa\"}", "616161",
                       "61616161616161616161616161616161");
    expect_text_bounds("{\"s\":\"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
                       "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\"}\n{\"s\":\"\u00e9\"}",
                       "c3a9", "c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3a9c3aa");
}

/* B08: nothing above U+10FFFF, so there is no upper bound. */
static void text_of_highest_code_points_has_no_upper_bound(void **unused) {
    (void)unused;
    char lines[200] = "{\"s\":\"";
    for (int i = 0; i < 17; i++) {
        strcat(lines, "\xf4\x8f\xbf\xbf");
    }
    strcat(lines, "\"}\n{\"s\":\"\xf4\x8f\xbf\xbf\"}");
    expect_text_bounds(lines, "f48fbfbf", "none");
}

/* B07: a lower bound is cut between code points, never inside one. */
static void text_bounds_are_cut_at_code_points(void **unused) {
    (void)unused;
    expect_text_bounds("{\"s\":\"{name: Jane O\u2019\u2019\u2019Xyz}\"}",
                       "7b6e616d653a204a616e65204fe28099e28099e28099",
                       "7b6e616d653a204a616e65204fe28099e28099e2809a");
}

static void binary_bounds_are_cut_at_bytes(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "b", "\"binary\"")),
                        "write.metadata.metrics.column.b=truncate(3)", &err));
    assert_ok(case_write(&c, "{\"b\":\"01ffffff\"}\n{\"b\":\"0102ff05\"}", &err));
    assert_string_equal(case_bound(&c, 1, false, hex), "0102ff");
    assert_string_equal(case_bound(&c, 1, true, hex), "02");
    assert_ok(case_write(&c, "{\"b\":\"ffffffff\"}", &err));
    assert_string_equal(case_bound(&c, 1, true, hex), "none");
    case_close(&c);
    test_env_done(env);
}

/* B10: decimals as minimal two's complement, by all three physical types. */
static void decimal_bounds_are_minimal(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    assert_ok(case_open(&c, env,
                        STRUCT(FIELD(1, "a", "\"decimal(7,2)\"") "," FIELD(
                            2, "b", "\"decimal(18,2)\"") "," FIELD(3, "c", "\"decimal(38,2)\"")),
                        "", &err));
    assert_ok(case_write(&c,
                         "{\"a\":\"100.00\",\"b\":\"100.00\",\"c\":\"100.00\"}\n"
                         "{\"a\":\"-9969.53\",\"b\":\"-9969.53\",\"c\":\"-9969.53\"}\n"
                         "{\"a\":\"99999.99\",\"b\":\"99999.99\",\"c\":\"99999.99\"}\n"
                         "{\"a\":\"-1.28\",\"b\":\"-1.28\",\"c\":\"-1.28\"}",
                         &err));
    for (int32_t id = 1; id <= 3; id++) {
        assert_string_equal(case_bound(&c, id, false, hex), "f0c9a7");
        assert_string_equal(case_bound(&c, id, true, hex), "0098967f");
    }
    const parquet_statistics *s = &c.footer->row_groups[0].columns[2].meta.statistics;
    assert_int_equal(s->min_value.len, 16);
    assert_int_equal((uint8_t)s->min_value.data[0], 0xff);
    case_close(&c);
    test_env_done(env);
}

/* B47: no NaN in a bound, zeros widened, NaNs counted. */
static void float_bounds_leave_nan_out(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    int64_t count = 0;
    double zero = 0;
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "x", "\"double\"")), "", &err));
    assert_ok(case_write(&c, "{\"x\":\"NaN\"}\n{\"x\":0.0}\n{\"x\":null}\n{\"x\":\"NaN\"}", &err));
    assert_string_equal(case_bound(&c, 1, false, hex), "0000000000000080");
    assert_string_equal(case_bound(&c, 1, true, hex), "0000000000000000");
    assert_true(metric_find_count(c.file.nan_counts, c.file.n_nan_counts, 1, &count));
    assert_int_equal(count, 2);
    assert_true(metric_find_count(c.file.null_counts, c.file.n_null_counts, 1, &count));
    assert_int_equal(count, 1);
    const parquet_statistics *s = &c.footer->row_groups[0].columns[0].meta.statistics;
    assert_memory_equal(s->max_value.data, &zero, 8);
    zero = -0.0;
    assert_memory_equal(s->min_value.data, &zero, 8);
    assert_ok(case_write(&c, "{\"x\":-0.0}", &err));
    assert_string_equal(case_bound(&c, 1, true, hex), "0000000000000000");
    /* nothing but NaN: no bounds, and no column index that could hide them */
    assert_ok(case_write(&c, "{\"x\":\"NaN\"}", &err));
    assert_string_equal(case_bound(&c, 1, false, hex), "none");
    const parquet_chunk *chunk = &c.footer->row_groups[0].columns[0];
    assert_false(THRIFT_HAS(&chunk->meta.statistics, PARQUET_STATS_MIN_VALUE));
    assert_false(THRIFT_HAS(chunk, PARQUET_CHUNK_COLUMN_INDEX_OFFSET));
    assert_true(THRIFT_HAS(chunk, PARQUET_CHUNK_OFFSET_INDEX_OFFSET));
    case_close(&c);
    test_env_done(env);
}

/* B49: pages are split by count, whatever their encoded size. */
static void pages_are_split_by_count(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    page_seen pages[24];
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 5000; i++) {
        assert_ok(buf_append_str(&lines, STR("{\"s\":\"same\",\"l\":[1,1,1]}\n"), &err));
    }
    assert_ok(buf_append_char(&lines, 0, &err));
    assert_ok(case_open(&c, env,
                        STRUCT(FIELD(1, "n", "\"int\"") "," FIELD(2, "s", "\"string\"") "," FIELD(
                            3, "l",
                            "{\"type\":\"list\",\"element-id\":4,\"element-required\":false,"
                            "\"element\":\"int\"}")),
                        "write.parquet.page-row-limit=1000", &err));
    c.options.page_values = 1000;
    assert_ok(case_write(&c, (const char *)lines.data, &err));
    for (int32_t column = 0; column < 3; column++) {
        size_t n = case_pages(&c, 0, column, pages, 24);
        int64_t values = 0;
        for (size_t i = 0; i < n; i++) {
            if (pages[i].header.type == PARQUET_DATA_PAGE) {
                assert_in_range(pages[i].header.data.num_values, 1, 1000);
                values += pages[i].header.data.num_values;
            }
        }
        assert_int_equal(values, c.footer->row_groups[0].columns[column].meta.num_values);
    }
    buf_release(&lines);
    case_close(&c);
    test_env_done(env);
}

static void properties_are_read_or_refused(void **unused) {
    (void)unused;
    static const char *const bad[] = {"write.parquet.page-row-limit=0",
                                      "write.parquet.page-size-bytes=1k",
                                      "write.parquet.row-group-size-bytes=-1",
                                      "write.parquet.compression-codec=lzo",
                                      "write.parquet.page-version=v3",
                                      "write.parquet.compression-level=99",
                                      "write.parquet.bloom-filter-fpp.column.a=1",
                                      "write.parquet.bloom-filter-enabled.column.a=maybe",
                                      "write.parquet.encoding.column.a=fast",
                                      "write.metadata.metrics.default=truncate(0)",
                                      "write.metadata.metrics.default=truncate(16",
                                      "write.metadata.metrics.column.a=some",
                                      "write.metadata.metrics.max-inferred-column-defaults=x"};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char key[100];
        (void)snprintf(key, sizeof key, "%.*s", (int)strcspn(bad[i], "="), bad[i]);
        assert_code(case_open(&c, env, STRUCT(FIELD(1, "a", "\"int\"")), bad[i], &err),
                    TARN_INVALID);
        assert_non_null(strstr(err.message, key));
        case_close(&c);
    }
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "a", "\"int\"")),
                        "write.parquet.compression-codec=LZ4\nwrite.parquet.new-thing=?\n"
                        "write.parquet.page-version=v2\nwrite.parquet.dict-size-bytes=77\n"
                        "write.delete.parquet.page-row-limit=5\nunrelated=1\n"
                        "write.metadata.metrics.default=full",
                        &err));
    assert_int_equal(c.options.codec, CODEC_LZ4_RAW);
    assert_int_equal(c.options.page_version, 2);
    assert_int_equal(c.options.dictionary_bytes, 77);
    assert_int_equal(c.options.page_rows, 20000);
    assert_int_equal(c.options.metrics_default.mode, PARQUET_METRICS_FULL);
    parquet_property one = {STR("write.delete.parquet.page-row-limit"), STR("5")};
    assert_ok(parquet_write_options_parse(&c.arena, &one, 1, true, &c.options, &err));
    assert_int_equal(c.options.page_rows, 5);
    case_close(&c);
    test_env_done(env);
}

static void metrics_follow_their_modes(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    int64_t count = 0;
    assert_ok(
        case_open(&c, env,
                  STRUCT(FIELD(1, "a", "\"string\"") "," FIELD(2, "b", "\"string\"") "," FIELD(
                      3, "c", "\"string\"") "," FIELD(4, "d", "\"string\"")),
                  "write.metadata.metrics.default=counts\n"
                  "write.metadata.metrics.column.a=none\n"
                  "write.metadata.metrics.column.c=full\n"
                  "write.metadata.metrics.column.d=truncate(2)",
                  &err));
    assert_ok(case_write(
        &c, "{\"a\":\"x\",\"b\":\"x\",\"c\":\"0123456789012345678\",\"d\":\"abc\"}\n{}", &err));
    assert_int_equal(c.file.n_column_sizes, 4);
    assert_int_equal(c.file.n_value_counts, 3);
    assert_int_equal(c.file.n_null_counts, 3);
    assert_int_equal(c.file.n_nan_counts, 0);
    assert_false(metric_find_count(c.file.value_counts, 3, 1, &count));
    assert_string_equal(case_bound(&c, 2, false, hex), "none");
    assert_string_equal(case_bound(&c, 3, true, hex), "30313233343536373839303132333435363738");
    assert_string_equal(case_bound(&c, 4, false, hex), "6162");
    assert_string_equal(case_bound(&c, 4, true, hex), "6163");
    case_close(&c);
    /* beyond the number of columns that get a default unasked: primitives of the root first */
    assert_ok(case_open(&c, env,
                        STRUCT(FIELD(1, "s", STRUCT(FIELD(4, "x", "\"int\""))) "," FIELD(
                            2, "a", "\"int\"") "," FIELD(3, "b", "\"int\"")),
                        "write.metadata.metrics.max-inferred-column-defaults=2", &err));
    assert_ok(case_write(&c, "{\"s\":{\"x\":1},\"a\":2,\"b\":3}", &err));
    assert_int_equal(c.file.n_lower, 2);
    assert_string_equal(case_bound(&c, 4, false, hex), "none");
    assert_string_equal(case_bound(&c, 3, false, hex), "03000000");
    case_close(&c);
    test_env_done(env);
}

/* Fields of structs have bounds, those below lists and maps only counts, of levels. */
static void nested_metrics_are_those_of_iceberg(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    char hex[200];
    int64_t count = 0;
    assert_ok(case_open(&c, env,
                        STRUCT(FIELD(1, "s", STRUCT(FIELD(2, "x", "\"int\""))) "," FIELD(
                            3, "l",
                            "{\"type\":\"list\",\"element-id\":4,\"element-required\":false,"
                            "\"element\":\"int\"}") "," FIELD(5, "u", "\"unknown\"")),
                        "", &err));
    assert_ok(
        case_write(&c, "{\"s\":{\"x\":7},\"l\":[1,null,3]}\n{\"s\":null,\"l\":[]}\n{}", &err));
    assert_string_equal(case_bound(&c, 2, true, hex), "07000000");
    assert_string_equal(case_bound(&c, 4, true, hex), "none");
    assert_true(metric_find_count(c.file.value_counts, c.file.n_value_counts, 4, &count));
    assert_int_equal(count, 5);
    assert_true(metric_find_count(c.file.null_counts, c.file.n_null_counts, 4, &count));
    assert_int_equal(count, 3);
    assert_true(metric_find_count(c.file.null_counts, c.file.n_null_counts, 2, &count));
    assert_int_equal(count, 2);
    assert_false(metric_find_count(c.file.value_counts, c.file.n_value_counts, 5, &count));
    assert_int_equal(c.footer->row_groups[0].n_columns, 2);
    assert_int_equal(c.file.record_count, 3);
    assert_int_equal(c.file.size_bytes, c.bytes.len);
    case_close(&c);
    test_env_done(env);
}

static void dictionaries_give_way_to_plain_pages(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    page_seen pages[24];
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 4000; i++) { /* few values, then ever new ones */
        assert_ok(
            buf_printf(&lines, &err, "{\"a\":\"value %d\",\"b\":%d}\n", i < 2000 ? i % 10 : i, i));
    }
    assert_ok(buf_append_char(&lines, 0, &err));
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "a", "\"string\"") "," FIELD(2, "b", "\"long\"")),
                        "write.parquet.page-row-limit=500", &err));
    assert_ok(case_write(&c, (const char *)lines.data, &err));
    size_t n = case_pages(&c, 0, 0, pages, 24);
    assert_int_equal(n, 9);
    assert_int_equal(pages[0].header.type, PARQUET_DICTIONARY_PAGE);
    assert_int_equal(pages[0].header.dictionary.num_values, 10 + 500);
    assert_int_equal(pages[4].header.data.encoding, PARQUET_RLE_DICTIONARY);
    assert_int_equal(pages[5].header.data.encoding, PARQUET_PLAIN);
    assert_int_equal(pages[8].header.data.encoding, PARQUET_PLAIN);
    const parquet_column_meta *meta = &c.footer->row_groups[0].columns[0].meta;
    assert_int_equal(meta->n_encoding_stats, 3);
    assert_int_equal(meta->encoding_stats[1].count, 4);
    assert_int_equal(meta->encoding_stats[2].count, 4);
    /* unique from the first page on: no dictionary at all */
    n = case_pages(&c, 0, 1, pages, 24);
    assert_int_equal(n, 8);
    assert_int_equal(pages[0].header.data.encoding, PARQUET_PLAIN);
    buf_release(&lines);
    case_close(&c);
    test_env_done(env);
}

static void nulls_in_required_columns_are_refused(void **unused) {
    (void)unused;
    static const char *const type =
        "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"s\",\"required\":false,\"type\":"
        "{\"type\":\"struct\",\"fields\":[{\"id\":2,\"name\":\"must\",\"required\":true,\"type\":"
        "\"int\"}]}}]}";
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    assert_ok(case_open(&c, env, type, "", &err));
    assert_ok(case_write(&c, "{\"s\":{\"must\":1}}\n{\"s\":null}", &err));
    assert_code(case_write(&c, "{\"s\":{\"must\":1}}\n{\"s\":null}\n{\"s\":{}}", &err),
                TARN_INVALID);
    assert_non_null(strstr(err.message, "s.must"));
    assert_int_equal(c.bytes.len, 0);
    case_close(&c);
    test_env_done(env);
}

/* Row groups end by rows; each is a split; statistics of long text are cut and say so. */
static void row_groups_and_statistics_are_in_the_footer(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 10; i++) {
        assert_ok(buf_printf(&lines, &err, "{\"a\":\"%d%070d\"}\n", i, i));
    }
    assert_ok(buf_append_char(&lines, 0, &err));
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "a", "\"string\"")),
                        "write.parquet.bloom-filter-enabled.column.a=true", &err));
    c.options.row_group_rows = 4;
    assert_ok(case_write(&c, (const char *)lines.data, &err));
    assert_int_equal(c.footer->n_row_groups, 3);
    assert_int_equal(c.footer->row_groups[2].num_rows, 2);
    assert_int_equal(c.file.n_split_offsets, 3);
    assert_int_equal(c.file.split_offsets[0], 4);
    const parquet_column_meta *meta = &c.footer->row_groups[1].columns[0].meta;
    assert_int_equal(c.file.split_offsets[1],
                     THRIFT_HAS(meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET)
                         ? meta->dictionary_page_offset
                         : meta->data_page_offset);
    assert_true(THRIFT_HAS(meta, PARQUET_COLUMN_BLOOM_FILTER_OFFSET));
    assert_int_equal(meta->statistics.min_value.len, 64);
    assert_int_equal(meta->statistics.max_value.len, 64);
    assert_false(meta->statistics.is_min_exact);
    assert_false(meta->statistics.is_max_exact);
    assert_int_equal(meta->statistics.max_value.data[63], '1');
    assert_string_equal("tarn version 0.1.0",
                        arena_printf(&c.arena, "%.*s", STR_ARG(c.footer->created_by)));
    buf_release(&lines);
    case_close(&c);
    test_env_done(env);
}

/* Column and offset index against the pages themselves: place, rows, nulls, bounds, order. */
static void indexes_describe_their_pages(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    page_seen pages[24];
    tarn_buf lines;
    parquet_offset_index offsets;
    parquet_column_index columns;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 50;
         i++) { /* ascending, the third page only nulls; and the same descending */
        if (i / 10 == 2 || i % 7 == 3) {
            assert_ok(buf_append_str(&lines, STR("{}\n"), &err));
        } else {
            assert_ok(buf_printf(&lines, &err, "{\"a\":%d,\"b\":\"%03d\"}\n", i, 100 - i));
        }
    }
    assert_ok(buf_append_char(&lines, 0, &err));
    assert_ok(case_open(
        &c, env, STRUCT(FIELD(1, "a", "\"int\"") "," FIELD(2, "b", "\"string\"")),
        "write.parquet.page-row-limit=10\nwrite.parquet.encoding.column.b=dictionary", &err));
    assert_ok(case_write(&c, (const char *)lines.data, &err));
    for (int32_t column = 0; column < 2; column++) {
        const parquet_chunk *chunk = &c.footer->row_groups[0].columns[column];
        size_t dictionary = THRIFT_HAS(&chunk->meta, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET);
        size_t n = case_pages(&c, 0, column, pages, 24);
        tarn_str bytes =
            str_make(c.bytes.data + chunk->offset_index_offset, (size_t)chunk->offset_index_length);
        assert_ok(thrift_decode(&c.arena, &parquet_offset_index_thrift, bytes, "index", &offsets,
                                NULL, &err));
        bytes =
            str_make(c.bytes.data + chunk->column_index_offset, (size_t)chunk->column_index_length);
        assert_ok(thrift_decode(&c.arena, &parquet_column_index_thrift, bytes, "index", &columns,
                                NULL, &err));
        assert_int_equal(dictionary, column);
        assert_int_equal(n, 5 + dictionary);
        assert_int_equal(offsets.n_pages, 5);
        assert_int_equal(columns.n_null_pages, 5);
        assert_int_equal(columns.boundary_order,
                         column == 0 ? PARQUET_ASCENDING : PARQUET_DESCENDING);
        for (int32_t i = 0; i < 5; i++) {
            assert_int_equal(offsets.pages[i].offset, pages[(size_t)i + dictionary].offset);
            assert_int_equal(offsets.pages[i].first_row_index, i * 10);
            assert_int_equal(columns.null_pages[i], i == 2);
            assert_in_range(columns.null_counts[i], 1, i == 2 ? 10 : 2);
            if (i == 2) {
                assert_int_equal(columns.min_values[i].len, 0);
            } else if (column == 0) {
                assert_in_range(num_load_i32(columns.min_values[i].data), i * 10, i * 10 + 1);
                assert_in_range(num_load_i32(columns.max_values[i].data), i * 10 + 8, i * 10 + 9);
            } else {
                assert_int_equal(columns.max_values[i].len, 3);
                assert_true(str_cmp(columns.min_values[i], columns.max_values[i]) < 0);
            }
        }
    }
    buf_release(&lines);
    case_close(&c);
    test_env_done(env);
}

/* Every value is found in the row group's filter, whether it came by dictionary or not. */
static void bloom_filters_hold_every_value(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    tarn_buf lines;
    buf_init(&lines, env, 0);
    for (int i = 0; i < 3000; i++) {
        assert_ok(
            buf_printf(&lines, &err, "{\"a\":\"value %d\",\"b\":%d}\n", i < 1000 ? i % 5 : i, i));
    }
    assert_ok(buf_append_char(&lines, 0, &err));
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "a", "\"string\"") "," FIELD(2, "b", "\"long\"")),
                        "write.parquet.page-row-limit=500\n"
                        "write.parquet.bloom-filter-enabled.column.a=true\n"
                        "write.parquet.bloom-filter-enabled.column.b=true\n"
                        "write.parquet.bloom-filter-max-bytes=2048",
                        &err));
    assert_ok(case_write(&c, (const char *)lines.data, &err));
    for (int32_t column = 0; column < 2; column++) {
        const parquet_column_meta *meta = &c.footer->row_groups[0].columns[column].meta;
        size_t head = 0;
        size_t len = 0;
        int missing = 0;
        parquet_bloom bloom;
        tarn_str bytes =
            str_make(c.bytes.data + meta->bloom_filter_offset, (size_t)meta->bloom_filter_length);
        assert_ok(bloom_header(bytes, &head, &len, &err));
        assert_int_equal(head + len, bytes.len);
        assert_true(len <= 2048);
        assert_ok(bloom_get(&bloom, env, str_from(bytes, head), &err));
        for (int64_t i = 0; i < 3000; i++) {
            char text[32];
            int n = snprintf(text, sizeof text, "value %d", (int)(i < 1000 ? i % 5 : i));
            uint64_t hash = column == 0 ? bloom_hash(text, (size_t)n) : bloom_hash(&i, sizeof i);
            assert_true(bloom_may_hold(&bloom, hash));
            i = -i - 1; /* a value that was never written */
            n = snprintf(text, sizeof text, "none %d", (int)i);
            hash = column == 0 ? bloom_hash(text, (size_t)n) : bloom_hash(&i, sizeof i);
            missing += !bloom_may_hold(&bloom, hash);
            i = -i - 1;
        }
        assert_true(missing > 500);
        bloom_release(&bloom);
    }
    buf_release(&lines);
    case_close(&c);
    test_env_done(env);
}

static void files_without_rows_are_whole(void **unused) {
    (void)unused;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    write_case c;
    assert_ok(case_open(&c, env, STRUCT(FIELD(1, "a", "\"string\"")), "", &err));
    assert_ok(case_write(&c, "", &err));
    assert_memory_equal(c.bytes.data, "PAR1", 4);
    assert_int_equal(c.footer->n_row_groups, 0);
    assert_int_equal(c.footer->num_rows, 0);
    assert_int_equal(c.file.record_count, 0);
    case_close(&c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_bounds_are_raised_by_code_points),
        cmocka_unit_test(text_of_highest_code_points_has_no_upper_bound),
        cmocka_unit_test(text_bounds_are_cut_at_code_points),
        cmocka_unit_test(binary_bounds_are_cut_at_bytes),
        cmocka_unit_test(decimal_bounds_are_minimal),
        cmocka_unit_test(float_bounds_leave_nan_out),
        cmocka_unit_test(pages_are_split_by_count),
        cmocka_unit_test(properties_are_read_or_refused),
        cmocka_unit_test(metrics_follow_their_modes),
        cmocka_unit_test(nested_metrics_are_those_of_iceberg),
        cmocka_unit_test(dictionaries_give_way_to_plain_pages),
        cmocka_unit_test(nulls_in_required_columns_are_refused),
        cmocka_unit_test(row_groups_and_statistics_are_in_the_footer),
        cmocka_unit_test(indexes_describe_their_pages),
        cmocka_unit_test(bloom_filters_hold_every_value),
        cmocka_unit_test(files_without_rows_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
