/* Reading Parquet. Goal: rows, row numbers, selection, ranges, pruning and errors of the reader.
 * Method: small files of another writer with their rows beside them; the same files with bytes
 * changed and with memory that runs out; files of our own writer where the other cannot make what
 * is needed. */
#include "../../test.h"

#include "base/pool.h"
#include "format/parquet/parquet_write.h"
#include "parquet_dump.h"

#define FIXTURES TARN_TEST_FIXTURES "/parquet"

static const char *const names[] = {"flat", "nested", "encodings"};
#define N_NAMES (sizeof names / sizeof *names)

static uint8_t *load(const char *name, const char *ending, size_t *len) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s.%s", FIXTURES, name, ending);
    uint8_t *bytes = dump_load(path, len);
    assert_non_null(bytes);
    return bytes;
}

typedef struct opened {
    tarn_env *env;
    uint8_t *bytes;
    io_source *source;
    parquet_file *file;
} opened;

static opened open_file(const char *name) {
    opened o = {test_env(), NULL, NULL, NULL};
    tarn_error err = TARN_ERROR_INIT;
    size_t len = 0;
    o.bytes = load(name, "parquet", &len);
    assert_ok(io_source_memory(o.env, name, o.bytes, len, &o.source, &err));
    assert_ok(parquet_open(o.env, o.source, NULL, &o.file, &err));
    return o;
}

static void close_file(opened *o) {
    parquet_close(o->file);
    o->source->close(o->source);
    free(o->bytes);
    test_env_done(o->env);
}

static tarn_str line_of(tarn_str text, int64_t n) {
    tarn_str line = STR_NULL;
    for (int64_t i = 0; i <= n; i++) {
        assert_true(str_split(&text, '\n', &line));
    }
    return line;
}

static void test_whole_files(void **state) {
    (void)state;
    for (size_t i = 0; i < N_NAMES; i++) {
        for (int64_t batch = 1; batch < 200; batch = batch * 7) {
            opened o = open_file(names[i]);
            tarn_error err = TARN_ERROR_INIT;
            size_t len = 0;
            int64_t rows = 0;
            uint8_t *want = load(names[i], "ndjson", &len);
            tarn_buf got;
            buf_init(&got, o.env, 0);
            parquet_scan_options options = {.batch_rows = batch, .parallel = batch > 1};
            assert_ok(dump_scan(o.file, &options, &got, &rows, &err));
            assert_int_equal(rows, parquet_file_rows(o.file));
            assert_true(dump_compare(o.env, names[i], buf_str(&got), str_make(want, len)));
            buf_release(&got);
            free(want);
            close_file(&o);
        }
    }
}

/* Ranges across row groups and pages, with a source that can and one that cannot be pointed into.
 */
static void test_ranges(void **state) {
    (void)state;
    static const parquet_range ranges[] = {{0, 1},   {3, 4},   {10, 31},
                                           {33, 36}, {49, 50}, {58, 1000}};
    for (size_t i = 0; i < N_NAMES * 2; i++) {
        const char *name = names[i / 2];
        opened o = open_file(name);
        tarn_error err = TARN_ERROR_INIT;
        size_t len = 0;
        uint8_t *want = load(name, "ndjson", &len);
        if (i % 2 == 0) {
            o.source->peek = NULL;
        }
        parquet_scan_options options = {.ranges = ranges, .n_ranges = 6, .batch_rows = 9};
        parquet_scan *scan = NULL;
        assert_ok(parquet_scan_open(o.file, &options, &scan, &err));
        int64_t rows = 0;
        for (;;) {
            tarn_batch batch = {0};
            int64_t first = -1;
            assert_ok(parquet_scan_next(scan, &batch, &first, &err));
            if (batch_rows(&batch) == 0) {
                break;
            }
            tarn_buf got;
            buf_init(&got, o.env, 0);
            assert_ok(dump_batch(&batch, &got, &err));
            tarn_str text = buf_str(&got), line;
            for (int64_t r = 0; r < batch_rows(&batch); r++) {
                assert_true(str_split(&text, '\n', &line));
                assert_true(
                    dump_compare(o.env, name, line, line_of(str_make(want, len), first + r)));
            }
            rows += batch_rows(&batch);
            buf_release(&got);
            batch_release(&batch);
        }
        assert_int_equal(rows, 1 + 1 + 21 + 3 + 1 + parquet_file_rows(o.file) - 58);
        parquet_scan_close(scan);
        free(want);
        close_file(&o);
    }
}

/* A struct whose only field is a list, a list's length alone, a map by its keys. */
static void test_selection(void **state) {
    (void)state;
    opened o = open_file("nested");
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf got;
    buf_init(&got, o.env, 0);
    const parquet_schema *schema = parquet_file_schema(o.file);
    uint8_t *selected = calloc(1, (size_t)schema->n_nodes);
    for (int32_t i = 0; i < schema->n_nodes; i++) {
        tarn_str name = schema->nodes[i].field->name;
        selected[i] = str_is(name, "y") || str_is(name, "key");
    }
    parquet_scan_options options = {.selected = selected};
    int64_t rows = 0;
    assert_ok(dump_scan(o.file, &options, &got, &rows, &err));
    assert_int_equal(rows, 60);
    tarn_str line = line_of(buf_str(&got), 11);
    assert_non_null(strstr(line.data, "{\"pt\":{\"y\":[0.0,1.0]}"));
    /* Nothing but the struct itself: a hidden column tells where it is null. */
    memset(selected, 0, (size_t)schema->n_nodes);
    for (int32_t i = 0; i < schema->n_nodes; i++) {
        selected[i] = str_is(schema->nodes[i].field->name, "pt");
    }
    buf_reset(&got);
    assert_ok(dump_scan(o.file, &options, &got, &rows, &err));
    line = line_of(buf_str(&got), 7);
    assert_true(str_eq(line, STR("{\"pt\":null}")));
    line = line_of(buf_str(&got), 8);
    assert_true(str_starts_with(line, STR("{\"pt\":{")));
    /* No column at all: rows are still counted. */
    memset(selected, 0, (size_t)schema->n_nodes);
    buf_reset(&got);
    assert_ok(dump_scan(o.file, &options, &got, &rows, &err));
    assert_int_equal(rows, 60);
    free(selected);
    buf_release(&got);
    close_file(&o);
}

typedef struct prune_case {
    const char *filter;
    int64_t rows;
    bool fewer; /* pruning must leave fewer rows than the file has */
} prune_case;

/* Rows for which the filter holds, read through what pruning leaves. */
static int64_t pruned_rows(opened *o, const char *filter, parquet_pruned *out) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, o->env);
    const tarn_expr *expr = NULL, *bound = NULL;
    uint8_t groups[64];
    memset(groups, 1, sizeof groups);
    assert_ok(expr_parse(&arena, str_of(filter), &expr, &err));
    const tarn_type *root = parquet_file_schema(o->file)->root;
    assert_ok(expr_bind(&arena, expr, root, true, &bound, &err));
    assert_ok(parquet_prune(o->file, bound, NULL, &arena, groups, out, &err));
    parquet_scan_options options = {
        .groups = groups, .ranges = out->ranges, .n_ranges = out->n_ranges};
    parquet_scan *scan = NULL;
    assert_ok(parquet_scan_open(o->file, &options, &scan, &err));
    int64_t total = 0, read = 0;
    for (;;) {
        tarn_batch batch = {0};
        uint8_t bits[PARQUET_BATCH_ROWS / 8 + 1];
        int64_t n = 0;
        assert_ok(parquet_scan_next(scan, &batch, NULL, &err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        assert_ok(expr_eval(o->env, bound, &batch, bits, &n, &err));
        total += n;
        read += batch_rows(&batch);
        batch_release(&batch);
    }
    assert_int_equal(read, out->rows_kept);
    out->ranges = NULL;
    parquet_scan_close(scan);
    arena_release(&arena);
    return total;
}

/* 10000 rows in 5 row groups: id rises, k is one of 7 texts a group, u is scattered, n mostly null.
 */
static tarn_buf write_table(tarn_env *env, tarn_arena *arena) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root = NULL;
    assert_ok(
        type_from_text(arena, STR("struct<id: long, k: string, u: long, n: int>"), &root, &err));
    int32_t next_id = 1;
    root = type_assign_ids(arena, root, &next_id);
    parquet_write_options options;
    parquet_write_options_init(&options);
    options.row_group_rows = 2000;
    options.page_rows = 100;
    parquet_column_options bloom = {.name = STR("u"),
                                    .has_bloom = true,
                                    .bloom = true,
                                    .has_encoding = true,
                                    .encoding = PARQUET_WRITE_PLAIN};
    options.columns = &bloom;
    options.n_columns = 1;
    tarn_buf out;
    io_sink *sink = NULL;
    parquet_writer *w = NULL;
    buf_init(&out, env, 0);
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(parquet_writer_new(env, root, &options, sink, &w, &err));
    tarn_builder b;
    assert_ok(builder_init(&b, env, root, &err));
    for (int64_t i = 0; i < 10000; i++) {
        char text[32];
        const int64_t scattered = (int64_t)((uint64_t)i * 2654435761u % 1000003);
        const int32_t few = (int32_t)i;
        snprintf(text, sizeof text, "group%lld-%lld", (long long)(i / 2000), (long long)(i % 7));
        assert_ok(builder_fixed(&b.children[0], &i, &err));
        assert_ok(builder_bytes(&b.children[1], str_of(text), &err));
        assert_ok(builder_fixed(&b.children[2], &scattered, &err));
        assert_ok(i % 1000 == 5 ? builder_fixed(&b.children[3], &few, &err)
                                : builder_null(&b.children[3], &err));
        assert_ok(builder_close(&b, &err));
    }
    tarn_batch batch = {0};
    assert_ok(builder_finish_batch(&b, &batch, &err));
    assert_ok(parquet_writer_write(w, &batch, &err));
    assert_ok(parquet_writer_close(w, arena, NULL, &err));
    parquet_writer_free(w);
    batch_release(&batch);
    builder_release(&b);
    return out;
}

static void test_pruning(void **state) {
    (void)state;
    static const prune_case cases[] = {
        {"id = 4321", 1, true},
        {"id >= 4321 and id < 4421", 100, true},
        {"id < 10 or id > 9990", 19, true},
        {"id in (1, 2, 9999)", 3, true},
        {"id = -1", 0, true},
        {"k = 'group3-4'", 286, true},
        {"k = 'group3-9'", 0, true},
        {"k starts with 'group3-x'", 0, true},
        {"u = 0", 1, false},
        {"u = 12345678", 0, true},
        {"n is not null and id < 3000", 3, true},
        {"n = 5005", 1, true},
        {"n is null", 9990, false},
        {"id > 100 and k != 'x'", 9899, true},
        {"u >= 0", 10000, false},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    tarn_buf bytes = write_table(env, &arena);
    tarn_error err = TARN_ERROR_INIT;
    opened o = {env, NULL, NULL, NULL};
    assert_ok(io_source_memory(env, "pruning", bytes.data, bytes.len, &o.source, &err));
    assert_ok(parquet_open(env, o.source, NULL, &o.file, &err));
    assert_int_equal(parquet_group_count(o.file), 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parquet_pruned pruned;
        assert_int_equal(pruned_rows(&o, cases[i].filter, &pruned), cases[i].rows);
        if (cases[i].fewer) {
            assert_true(pruned.rows_kept < 10000);
        }
    }
    parquet_pruned pruned;
    (void)pruned_rows(&o, "id = 4321", &pruned);
    assert_int_equal(pruned.groups_by_stats, 4);
    assert_int_equal(pruned.rows_kept, 100);
    assert_int_equal(pruned.pages_skipped, 19);
    (void)pruned_rows(&o, "u = 333333", &pruned);
    assert_true(pruned.groups_by_bloom >= 4);
    (void)pruned_rows(&o, "k = 'group3-3x'", &pruned);
    assert_int_equal(pruned.groups_by_dictionary, 1);
    parquet_close(o.file);
    o.source->close(o.source);
    buf_release(&bytes);
    arena_release(&arena);
    test_env_done(env);
}

static void test_statistics(void **state) {
    (void)state;
    opened o = open_file("flat");
    expr_stats stats;
    assert_true(parquet_group_stats(o.file, 1, 0, &stats));
    assert_true(stats.has_lower && stats.has_upper && stats.has_null_count);
    assert_int_equal(stats.lower.as.i64, 50);
    assert_int_equal(stats.upper.as.i64, 99);
    assert_true(parquet_group_stats(o.file, 0, 4, &stats)); /* decimal in fixed bytes */
    assert_true(stats.lower.as.i128 == -3000);
    assert_int_equal(stats.null_count, 7);
    assert_int_equal(parquet_group_first_row(o.file, 2), 100);
    tarn_str value;
    assert_true(parquet_file_metadata(o.file, "ARROW:schema", &value));
    assert_false(parquet_file_metadata(o.file, "no such key", &value));
    close_file(&o);
}

/* Invalid UTF-8 is an error that names column and row. */
static void test_bad_text(void **state) {
    (void)state;
    size_t len = 0;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    uint8_t *bytes = load("encodings", "parquet", &len);
    const parquet_options options = {.skip_checksums = true};
    /* Rows 1, 2, 4, 5: x, xx, xxxx, xxxxx lie together (3 is null), longer than any bound. */
    for (size_t i = 0; i + 12 < len; i++) {
        if (memcmp(bytes + i, "xxxxxxxxxxxx", 12) == 0) {
            bytes[i + 11] = 0xff; /* the last byte of row 5 */
            break;
        }
    }
    assert_code(dump_memory(env, "bad", bytes, len, &options, NULL, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "column dl of row group 0"));
    assert_non_null(strstr(err.detail, "row 5 of the file"));
    free(bytes);
    test_env_done(env);
}

/* A first value that takes the whole page is within it, but leaves nothing for the others. */
static void test_greedy_value(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_type *root = NULL;
    tarn_builder b;
    tarn_batch batch = {0};
    tarn_buf out;
    io_sink *sink = NULL;
    parquet_writer *w = NULL;
    parquet_write_options options;
    arena_init(&arena, env);
    buf_init(&out, env, 0);
    parquet_write_options_init(&options);
    options.codec = CODEC_NONE;
    options.dictionary_bytes = 0;
    assert_ok(type_from_text(&arena, STR("struct<s: string not null>"), &root, &err));
    assert_ok(builder_init(&b, env, root, &err));
    for (int i = 0; i < 100; i++) {
        assert_ok(builder_bytes(&b.children[0], STR("abcd"), &err));
        assert_ok(builder_close(&b, &err));
    }
    assert_ok(builder_finish_batch(&b, &batch, &err));
    assert_ok(io_sink_memory(env, &out, &sink, &err));
    assert_ok(parquet_writer_new(env, root, &options, sink, &w, &err));
    assert_ok(parquet_writer_write(w, &batch, &err));
    assert_ok(parquet_writer_close(w, &arena, NULL, &err));
    parquet_writer_free(w);
    batch_release(&batch);
    builder_release(&b);
    for (size_t i = 0; i + 12 < out.len; i++) {
        if (memcmp(out.data + i, "\4\0\0\0abcd\4\0\0\0", 12) == 0) {
            const uint32_t all = 100 * 8 - 4;
            memcpy(out.data + i, &all, sizeof all);
            break;
        }
    }
    const parquet_options reading = {.skip_checksums = true};
    assert_code(dump_memory(env, "greedy", out.data, out.len, &reading, NULL, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "column s of row group 0"));
    buf_release(&out);
    arena_release(&arena);
    test_env_done(env);
}

/* Any bytes: an answer or an error, and nothing is left behind. */
static void test_changed_bytes(void **state) {
    (void)state;
    const parquet_options options = {.skip_checksums = true};
    uint64_t seed = 42;
    for (size_t i = 0; i < N_NAMES; i++) {
        size_t len = 0;
        uint8_t *bytes = load(names[i], "parquet", &len);
        uint8_t *copy = malloc(len);
        for (int round = 0; round < 700; round++) {
            tarn_error err = TARN_ERROR_INIT;
            tarn_env *env = test_env();
            memcpy(copy, bytes, len);
            for (int k = 0; k < 1 + round % 3; k++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                const size_t at = (size_t)(seed >> 33) % len;
                copy[at] = (uint8_t)(copy[at] ^ (1u << (seed >> 20) % 8));
            }
            tarn_code code = dump_memory(env, names[i], copy, len, &options, NULL, &err);
            assert_true(code == TARN_OK || err.message[0] != '\0');
            assert_true(code != TARN_INTERNAL && code != TARN_INVALID);
            test_env_done(env);
        }
        for (size_t cut = 0; cut < len; cut += len / 50 + 1) {
            tarn_error err = TARN_ERROR_INIT;
            tarn_env *env = test_env();
            assert_code(dump_memory(env, names[i], bytes, cut, &options, NULL, &err), TARN_CORRUPT);
            test_env_done(env);
        }
        free(copy);
        free(bytes);
    }
}

typedef struct failing {
    int64_t left; /* allocations until the one that fails */
} failing;

static void *fail_alloc(void *ctx, size_t size) {
    failing *f = ctx;
    return f->left-- == 0 ? NULL : malloc(size);
}
static void *fail_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    (void)old_size;
    return f->left-- == 0 ? NULL : realloc(ptr, new_size);
}
static void fail_free(void *ctx, void *ptr, size_t size) {
    (void)ctx;
    (void)size;
    free(ptr);
}

static tarn_code read_and_prune(tarn_env *env, const uint8_t *bytes, size_t len, tarn_error *err) {
    io_source *source = NULL;
    parquet_file *file = NULL;
    tarn_arena arena;
    const tarn_expr *expr = NULL, *bound = NULL;
    uint8_t groups[16];
    parquet_pruned pruned = {0};
    int64_t rows = 0;
    memset(groups, 1, sizeof groups);
    arena_init(&arena, env);
    tarn_code code = io_source_memory(env, "memory", bytes, len, &source, err);
    if (code == TARN_OK) {
        source->peek = NULL;
        code = parquet_open(env, source, NULL, &file, err);
    }
    if (code == TARN_OK) {
        code = expr_parse(&arena, STR("id > 3 and id < 57"), &expr, err);
    }
    if (code == TARN_OK) {
        code = expr_bind(&arena, expr, parquet_file_schema(file)->root, true, &bound, err);
    }
    if (code == TARN_OK) {
        code = parquet_prune(file, bound, NULL, &arena, groups, &pruned, err);
    }
    if (code == TARN_OK) {
        parquet_scan_options options = {
            .groups = groups, .ranges = pruned.ranges, .n_ranges = pruned.n_ranges};
        code = dump_scan(file, &options, NULL, &rows, err);
    }
    parquet_close(file);
    if (source != NULL) {
        source->close(source);
    }
    arena_release(&arena);
    return code;
}

/* The k-th allocation fails, for every k until all goes well: NOMEM, and nothing is left behind. */
static void test_no_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t len = 0;
        uint8_t *bytes = load(names[i], "parquet", &len);
        tarn_code code = TARN_NOMEM;
        for (int64_t k = 0; code != TARN_OK; k++) {
            failing f = {INT64_MAX};
            tarn_allocator allocator = {&f, fail_alloc, fail_realloc, fail_free};
            tarn_env_options options = TARN_ENV_OPTIONS_INIT;
            tarn_error err = TARN_ERROR_INIT;
            tarn_env *env = NULL;
            options.allocator = &allocator;
            options.threads = 1;
            assert_ok(tarn_env_new(&options, &env, &err));
            f.left = k;
            code = read_and_prune(env, bytes, len, &err);
            assert_true(code == TARN_OK || code == TARN_NOMEM);
            f.left = INT64_MAX;
            test_env_done(env);
            assert_true(k < 20000);
        }
        free(bytes);
    }
}

typedef struct shared {
    parquet_file *file;
    int64_t rows[8];
} shared;

static tarn_code scan_group(void *ctx, size_t index, tarn_error *err) {
    shared *s = ctx;
    uint8_t groups[8] = {0};
    groups[index % 5] = 1;
    parquet_scan_options options = {.groups = groups};
    return dump_scan(s->file, &options, NULL, &s->rows[index], err);
}

/* One file, a scan for each row group on the pool's threads, all columns read by two of them. */
static void test_side_by_side(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    tarn_error err = TARN_ERROR_INIT;
    arena_init(&arena, env);
    tarn_buf bytes = write_table(env, &arena);
    io_source *source = NULL;
    shared s = {0};
    assert_ok(io_source_memory(env, "shared", bytes.data, bytes.len, &source, &err));
    source->peek = NULL;
    assert_ok(parquet_open(env, source, NULL, &s.file, &err));
    assert_ok(pool_for(env, 8, scan_group, &s, &err));
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(s.rows[i], 2000);
    }
    parquet_close(s.file);
    source->close(source);
    buf_release(&bytes);
    arena_release(&arena);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_files),   cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_selection),     cmocka_unit_test(test_pruning),
        cmocka_unit_test(test_statistics),    cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_changed_bytes), cmocka_unit_test(test_greedy_value),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
