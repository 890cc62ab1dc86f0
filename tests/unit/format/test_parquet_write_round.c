/* What the Parquet writer writes, the reader reads.
 * Goal: every type, nesting, codec, page version and encoding comes back value for value, also when
 * pages and row groups are tiny and when the batch is a slice; and many threads write the same
 * bytes as one.
 * Method: seeded random rows are written, read, and compared as JSON. */
#include "unit/format/parquet_write_case.h"

#include "format/parquet/parquet.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_types_come_back),
        cmocka_unit_test(nested_types_come_back),
        cmocka_unit_test(threads_write_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
