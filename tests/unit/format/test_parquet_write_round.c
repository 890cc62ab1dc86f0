/* What the Parquet writer writes, the reader reads.
 * Goal: every type, nesting, codec, page version and encoding comes back value for value, also when
 * pages and row groups are tiny and when the batch is a slice; and many threads write the same
 * bytes as one. Statistics, indexes and bloom filters never hide a row from a filter.
 * Method: seeded random rows are written, read, and compared as JSON, whole and filtered. */
#include "unit/format/parquet_write_case.h"

#include "format/parquet/parquet.h"
#include "table/expr.h"

static uint64_t state;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void put_random(tarn_builder *b, bool required);

static void put_text(tarn_builder *b) {
    static const char *const texts[] = {"", "a", "tarn", "\xc3\xa9t\xc3\xa9", "a longer text here"};
    tarn_error err = TARN_ERROR_INIT;
    char number[32];
    size_t kind = next_random() % 8;
    if (kind < 5) {
        assert_ok(builder_bytes(b, str_of(texts[kind]), &err));
        return;
    }
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)next_random());
    assert_ok(builder_bytes(b, str_of(number), &err));
}

static void put_number(tarn_builder *b) {
    tarn_error err = TARN_ERROR_INIT;
    uint64_t v[2] = {next_random(), next_random()};
    uint8_t bytes[64] = {0};
    if (next_random() % 2 == 0) {
        v[0] %= 5;
        v[1] = 0;
    }
    if (b->type->kind == TARN_DECIMAL) { /* within the precision, either sign */
        tarn_int128 wide = (tarn_int128)((tarn_uint128)v[1] << 64 | v[0]);
        wide %= num_pow10_i128(b->type->precision);
        memcpy(v, &wide, sizeof v);
    } else if (b->type->kind == TARN_FLOAT) {
        float f = (float)(int32_t)(uint32_t)v[0] / 4;
        memcpy(v, &f, sizeof f);
    } else if (b->type->kind == TARN_DOUBLE) {
        double d = v[0] % 7 == 0 ? -0.0 : (double)(int64_t)v[0] / 3;
        memcpy(v, &d, sizeof d);
    } else if (b->type->kind == TARN_TIME) {
        v[0] %= UINT64_C(86400000000);
    } else if (b->type->kind == TARN_DATE) {
        uint32_t days = (uint32_t)(v[0] % 100000);
        memcpy(v, &days, sizeof days);
    } else if (b->type->kind == TARN_TIMESTAMP || b->type->kind == TARN_TIMESTAMPTZ) {
        v[0] %= UINT64_C(1) << 55;
    }
    memcpy(bytes, v, sizeof v);
    assert_ok(builder_fixed(b, bytes, &err));
}

static void put_nested(tarn_builder *b) {
    tarn_error err = TARN_ERROR_INIT;
    size_t n = b->type->kind == TARN_STRUCT ? 1 : next_random() % 4;
    for (size_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < b->n_children; k++) {
            put_random(&b->children[k], b->type->fields[k].required);
        }
    }
    assert_ok(builder_close(b, &err));
}

static void put_random(tarn_builder *b, bool required) {
    tarn_error err = TARN_ERROR_INIT;
    if (!required && next_random() % 4 == 0) {
        assert_ok(builder_null(b, &err));
    } else if (type_is_nested(b->type)) {
        put_nested(b);
    } else if (b->type->kind == TARN_BOOLEAN) {
        assert_ok(builder_bool(b, next_random() % 3 == 0, &err));
    } else if (type_is_var(b->type)) {
        put_text(b);
    } else {
        put_number(b);
    }
}

static void make_rows(tarn_env *env, const tarn_type *type, int64_t n, tarn_batch *out) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_builder b;
    assert_ok(builder_init(&b, env, type, &err));
    for (int64_t i = 0; i < n; i++) {
        put_nested(&b);
    }
    assert_ok(builder_finish_batch(&b, out, &err));
    builder_release(&b);
}

static void write_batches(write_case *c, tarn_batch *batch, int64_t step) {
    tarn_error err = TARN_ERROR_INIT;
    io_sink *sink = NULL;
    parquet_writer *w = NULL;
    int64_t n = batch_rows(batch);
    buf_reset(&c->bytes);
    assert_ok(io_sink_memory(c->env, &c->bytes, &sink, &err));
    assert_ok(parquet_writer_new(c->env, c->type, &c->options, sink, &w, &err));
    for (int64_t start = 0; start < n; start += step) {
        tarn_batch part;
        assert_ok(
            batch_slice(c->env, batch, start, n - start < step ? n - start : step, &part, &err));
        assert_ok(parquet_writer_write(w, &part, &err));
        batch_release(&part);
    }
    assert_ok(parquet_writer_close(w, &c->arena, &c->file, &err));
    parquet_writer_free(w);
    assert_int_equal(c->file.record_count, n);
}

static void read_rows(const write_case *c, tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    parquet_file *file = NULL;
    parquet_scan *scan = NULL;
    assert_ok(io_source_memory(c->env, "round", c->bytes.data, c->bytes.len, &source, &err));
    assert_ok(parquet_open(c->env, source, NULL, &file, &err));
    assert_ok(parquet_scan_open(file, NULL, &scan, &err));
    for (;;) {
        tarn_batch batch;
        assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        assert_ok(rows_write(&batch, out, &err));
        batch_release(&batch);
    }
    parquet_scan_close(scan);
    parquet_close(file);
    source->close(source);
}

static void expect_same(write_case *c, tarn_batch *batch, int64_t step) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf want;
    tarn_buf got;
    buf_init(&want, c->env, 0);
    buf_init(&got, c->env, 0);
    write_batches(c, batch, step);
    assert_ok(rows_write(batch, &want, &err));
    read_rows(c, &got);
    assert_int_equal(got.len, want.len);
    if (got.len > 0) {
        assert_memory_equal(got.data, want.data, want.len);
    }
    buf_release(&want);
    buf_release(&got);
}

#define OPTIONAL(id, name, type)                                                                   \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define REQUIRED(id, name, type)                                                                   \
    "{\"id\":" #id ",\"name\":\"" name "\",\"required\":true,\"type\":" type "}"
#define LIST(id, type)                                                                             \
    "{\"type\":\"list\",\"element-id\":" #id ",\"element-required\":false,\"element\":" type "}"
#define MAP(key, value, type)                                                                      \
    "{\"type\":\"map\",\"key-id\":" #key ",\"value-id\":" #value                                   \
    ",\"key\":\"string\",\"value-required\":false,\"value\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

static const char *const flat = STRUCT(OPTIONAL(
    1, "b", "\"boolean\"") "," OPTIONAL(2, "i", "\"int\"") "," REQUIRED(3,
                                                                        "l", "\"long\"") "," OPTIONAL(4, "f", "\"float\"") "," OPTIONAL(5, "d", "\"double\"") "," OPTIONAL(6, "d9", "\"decimal(9,2)\"") "," OPTIONAL(7, "d18", "\"decimal(18,4)\"") "," OPTIONAL(8, "d38", "\"decimal(38,6)\"") "," OPTIONAL(9,
                                                                                                                                                                                                                                                                                                             "dt",
                                                                                                                                                                                                                                                                                                             "\"date\"") "," REQUIRED(10,
                                                                                                                                                                                                                                                                                                                                      "tm",
                                                                                                                                                                                                                                                                                                                                      "\"time\"") "," OPTIONAL(11, "ts", "\"timestamp\"") "," OPTIONAL(12,
                                                                                                                                                                                                                                                                                                                                                                                                       "tz",
                                                                                                                                                                                                                                                                                                                                                                                                       "\"timestamptz\"") "," OPTIONAL(13,
                                                                                                                                                                                                                                                                                                                                                                                                                                       "ns",
                                                                                                                                                                                                                                                                                                                                                                                                                                       "\"timestamp_ns\"") "," OPTIONAL(14,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                        "nz", "\"timestamptz_ns\"") "," REQUIRED(15, "s", "\"string\"") "," OPTIONAL(16, "u", "\"uuid\"") "," OPTIONAL(17,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       "x",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       "\"fixed[5]\"") "," OPTIONAL(18,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "y",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    "\"binary\"") "," OPTIONAL(19,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               "d20",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               "\"decimal(20,0)\""));
static const char *const nested = STRUCT(
    OPTIONAL(1, "a", STRUCT(OPTIONAL(2, "b", STRUCT(OPTIONAL(3, "c", "\"int\"") "," REQUIRED(4, "d", "\"string\""))))) "," OPTIONAL(
        5, "l",
        LIST(
            6,
            "\"string\"")) "," REQUIRED(7, "ll",
                                        LIST(
                                            8,
                                            LIST(
                                                9,
                                                "\"long\""))) "," OPTIONAL(10, "m",
                                                                           MAP(11, 12,
                                                                               LIST(
                                                                                   13,
                                                                                   STRUCT(OPTIONAL(14, "x", "\"decimal(25,1)\"") "," REQUIRED(
                                                                                       15,
                                                                                       "y",
                                                                                       "\"boolean"
                                                                                       "\""))))) "," REQUIRED(16,
                                                                                                              "r",
                                                                                                              STRUCT(OPTIONAL(
                                                                                                                  17,
                                                                                                                  "z",
                                                                                                                  "\"double\""))));

static const char *const codecs[] = {"none", "snappy", "gzip", "zstd", "lz4", "brotli"};

/* Every codec and page version with every encoding, with limits from tiny to usual. */
static void all_options(const char *type, int64_t rows) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    state = 1234567;
    for (size_t i = 0; i < 24; i++) {
        write_case c;
        tarn_batch batch;
        parquet_column_options columns[40];
        char properties[200];
        (void)snprintf(properties, sizeof properties,
                       "write.parquet.compression-codec=%s\nwrite.parquet.page-version=v%zu\n"
                       "write.parquet.page-row-limit=%zu\nwrite.parquet.dict-size-bytes=%zu",
                       codecs[i % 6], 1 + i / 2 % 2, i % 5 == 0 ? (size_t)3 : 20000,
                       i % 3 == 0 ? (size_t)40 : (size_t)1 << 20);
        assert_ok(case_open(&c, env, type, properties, &err));
        memset(columns, 0, sizeof columns);
        int32_t n = type_node_count(c.type);
        assert_true(n <= 40);
        for (int32_t k = 0; k < n; k++) {
            tarn_buf name;
            buf_init(&name, env, 0);
            assert_ok(type_full_name(c.type, type_node(c.type, k)->id, &name, &err));
            columns[k].name = arena_str(&c.arena, buf_str(&name));
            columns[k].has_encoding = true;
            columns[k].encoding = (parquet_write_encoding)((i + (size_t)k) % 6);
            columns[k].has_bloom = columns[k].bloom = k % 2 == 0;
            buf_release(&name);
        }
        c.options.columns = columns;
        c.options.n_columns = (size_t)n;
        c.options.row_group_rows = i % 4 == 0 ? rows / 3 + 1 : INT64_MAX;
        make_rows(env, c.type, rows, &batch);
        expect_same(&c, &batch, i % 2 == 0 ? rows : 37);
        batch_release(&batch);
        case_close(&c);
    }
    test_env_done(env);
}

static void flat_types_come_back(void **unused) {
    (void)unused;
    all_options(flat, 300);
}

static void nested_types_come_back(void **unused) {
    (void)unused;
    all_options(nested, 200);
}

static void threads_write_the_same_bytes(void **unused) {
    (void)unused;
    tarn_buf bytes[2];
    tarn_env *envs[2];
    for (uint32_t i = 0; i < 2; i++) {
        tarn_env_options options = TARN_ENV_OPTIONS_INIT;
        tarn_error err = TARN_ERROR_INIT;
        write_case c;
        tarn_batch batch;
        options.threads = i == 0 ? 1 : 4;
        assert_ok(tarn_env_new(&options, &envs[i], &err));
        state = 99;
        assert_ok(case_open(&c, envs[i], nested, "", &err));
        c.options.row_group_rows = 12000;
        make_rows(envs[i], c.type, 20000, &batch);
        write_batches(&c, &batch, 9000);
        batch_release(&batch);
        bytes[i] = c.bytes;
        buf_init(&c.bytes, envs[i], 0);
        case_close(&c);
    }
    assert_int_equal(bytes[0].len, bytes[1].len);
    assert_memory_equal(bytes[0].data, bytes[1].data, bytes[0].len);
    for (int i = 0; i < 2; i++) {
        buf_release(&bytes[i]);
        test_env_done(envs[i]);
    }
}

/* Rows that a filter keeps, with what pruning leaves to read, or from the whole file. */
static int64_t filtered_rows(const write_case *c, parquet_file *file, const tarn_expr *bound,
                             bool pruning, int64_t *rows_read, tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    uint8_t groups[64];
    parquet_pruned pruned = {0};
    parquet_scan_options options = {0};
    parquet_scan *scan = NULL;
    int64_t kept = 0;
    arena_init(&arena, c->env);
    memset(groups, 1, sizeof groups);
    assert_true(parquet_group_count(file) <= 64);
    if (pruning) {
        assert_ok(parquet_prune(file, bound, NULL, &arena, groups, &pruned, &err));
        options.groups = groups;
        options.ranges = pruned.ranges;
        options.n_ranges = pruned.n_ranges;
    }
    *rows_read = 0;
    assert_ok(parquet_scan_open(file, &options, &scan, &err));
    for (;;) {
        tarn_batch batch;
        tarn_batch found;
        uint8_t selection[4096];
        int64_t n = 0;
        assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        assert_true(bit_bytes(batch_rows(&batch)) <= sizeof selection);
        *rows_read += batch_rows(&batch);
        assert_ok(expr_eval(c->env, bound, &batch, selection, &n, &err));
        assert_ok(batch_filter(c->env, &batch, selection, &found, &err));
        assert_ok(rows_write(&found, out, &err));
        kept += n;
        batch_release(&found);
        batch_release(&batch);
    }
    parquet_scan_close(scan);
    arena_release(&arena);
    return kept;
}

/* The same rows with pruning as without; returns how many were read with it. */
static int64_t check_filter(write_case *c, parquet_file *file, const char *filter) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *parsed = NULL;
    const tarn_expr *bound = NULL;
    tarn_buf all;
    tarn_buf some;
    int64_t whole = 0;
    int64_t less = 0;
    buf_init(&all, c->env, 0);
    buf_init(&some, c->env, 0);
    assert_ok(expr_parse(&c->arena, str_of(filter), &parsed, &err));
    assert_ok(expr_bind(&c->arena, parsed, c->type, true, &bound, &err));
    int64_t want = filtered_rows(c, file, bound, false, &whole, &all);
    assert_int_equal(filtered_rows(c, file, bound, true, &less, &some), want);
    assert_int_equal(all.len, some.len);
    assert_true(all.len == 0 || memcmp(all.data, some.data, all.len) == 0);
    assert_int_equal(whole, parquet_file_rows(file));
    buf_release(&all);
    buf_release(&some);
    return less;
}

static void filters_find_every_row(void **unused) {
    (void)unused;
    static const char *const filters[] = {"i = 3",
                                          "i < -1000000000",
                                          "l > 9000000000000000000",
                                          "l in (1, 2, 77)",
                                          "f >= 536870000",
                                          "d = 0.0",
                                          "d < -6100000000000000000 or d > 6100000000000000000",
                                          "d9 = 0.01",
                                          "d38 < -99999999999999999999999999999999",
                                          "dt >= date '2243-01-01'",
                                          "s = 'a longer text here'",
                                          "s > '98'",
                                          "s starts with '77'",
                                          "u is null",
                                          "y is not null",
                                          "b = true and i is null",
                                          "tm < 100",
                                          "d20 > 99000000000000000000",
                                          "s = 'never written'",
                                          "l = 12345"};
    tarn_env *env = test_env();
    int64_t least = INT64_MAX;
    state = 4711;
    for (size_t i = 0; i < 3; i++) {
        tarn_error err = TARN_ERROR_INIT;
        write_case c;
        tarn_batch batch;
        io_source *source = NULL;
        parquet_file *file = NULL;
        assert_ok(case_open(&c, env, flat,
                            i == 0 ? "write.parquet.page-row-limit=20\n"
                                     "write.parquet.bloom-filter-enabled.column.s=true\n"
                                     "write.parquet.bloom-filter-enabled.column.l=true"
                            : i == 1
                                ? "write.parquet.page-version=v2\nwrite.parquet.page-row-limit=3"
                                : "write.parquet.dict-size-bytes=100\n"
                                  "write.parquet.stats-enabled.column.i=false",
                            &err));
        c.options.row_group_rows = 700;
        make_rows(env, c.type, 2000, &batch);
        write_batches(&c, &batch, 450);
        assert_ok(io_source_memory(env, "round", c.bytes.data, c.bytes.len, &source, &err));
        assert_ok(parquet_open(env, source, NULL, &file, &err));
        for (size_t k = 0; k < sizeof filters / sizeof filters[0]; k++) {
            int64_t rows_read = check_filter(&c, file, filters[k]);
            least = rows_read < least ? rows_read : least;
        }
        parquet_close(file);
        source->close(source);
        batch_release(&batch);
        case_close(&c);
    }
    assert_int_equal(least, 0); /* and there was something to skip */
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_types_come_back),
        cmocka_unit_test(nested_types_come_back),
        cmocka_unit_test(threads_write_the_same_bytes),
        cmocka_unit_test(filters_find_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
