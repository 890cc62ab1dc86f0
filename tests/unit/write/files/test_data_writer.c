/* Goal: rows become finished files, each in one result; what is not handed out does not stay.
 * Method: the store is listed after each story: rolling, more partitions than open files, a small
 * memory budget, bad rows, failing memory, and every store call failing in turn, before and after
 * its effect (B64). */
#include "writer_case.h"

static tarn_code open_case(writer_case *c, tarn_env *env, const char *schema, const char *by,
                           const char *format, const char *target, tarn_error *e) {
    const table_shape shape = {
        .schema = schema,
        .by = by,
        .properties = {{STR("write.format.default"), str_of(format)},
                       {STR("write.target-file-size-bytes"), str_of(target)}},
        .n_properties = 2};
    return case_open(c, env, &shape, e);
}

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* rows of (p int, v long, s string): p is part, or random below -part. */
static tarn_code make_rows(writer_case *c, int32_t part, int rows, uint64_t *seed, tarn_batch *out,
                           tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    TRY(builder_init(&b, c->env, metadata_schema(c->metadata)->root, e));
    for (int i = 0; i < rows; i++) {
        char text[64];
        int64_t v = (int64_t)next_random(seed) * (int64_t)next_random(seed);
        int32_t p = part >= 0 ? part : (int32_t)(next_random(seed) % (uint64_t)-part);
        int n = snprintf(text, sizeof text, "row %lld of %d", (long long)v, (int)p);
        TRY(builder_fixed(&b.children[0], &p, e));
        TRY(builder_fixed(&b.children[1], &v, e));
        TRY(builder_bytes(&b.children[2], str_make(text, (size_t)n), e));
        TRY(builder_close(&b, e));
    }
    TRY(builder_finish_batch(&b, out, e));
done:
    builder_release(&b);
    return code;
}

static tarn_code write_rows(writer_case *c, data_writer *w, int32_t part, int rows, uint64_t *seed,
                            tarn_error *e) {
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    tarn_code code = make_rows(c, part, rows, seed, &batch, e);
    if (code == TARN_OK) {
        code = data_writer_write(w, &batch, e);
    }
    batch_release(&batch);
    return code;
}

#define SCHEMA "struct<p: int, v: long, s: string>"

/* Every file of a result is there with its size, once. */
static int64_t check_result(writer_case *c, const write_result *result) {
    tarn_map seen;
    int64_t rows = 0;
    map_init(&seen, &c->arena);
    for (int32_t i = 0; i < result->n_files; i++) {
        const tarn_file *f = &result->files[i];
        store_stat_info info;
        bool added;
        assert_non_null(map_put(&seen, f->path, &added));
        assert_true(added);
        assert_ok(store_stat(c->store, f->path, &info, &err));
        assert_int_equal(info.size_bytes, f->size_bytes);
        assert_true(f->record_count > 0);
        rows += f->record_count;
    }
    assert_int_equal(rows, result->rows);
    return rows;
}

static void rolling(const char *format) {
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 1;
    assert_ok(open_case(&c, env, SCHEMA, NULL, format, "100000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 20; i++) {
        assert_ok(write_rows(&c, w, 1, 2000, &seed, &err));
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 40000);
    assert_true(result.n_files >= 5);
    for (int32_t i = 0; i < result.n_files; i++) {
        assert_true(result.files[i].size_bytes < 250000);
        assert_true(str_ends_with(result.files[i].path, str_of(format)));
    }
    assert_int_equal(objects(&c), result.n_files);
    /* the next checkpoint */
    write_result second;
    assert_ok(write_rows(&c, w, 1, 10, &seed, &err));
    assert_ok(data_writer_close(w, &c.arena, &second, &err));
    assert_int_equal(second.n_files, 1);
    assert_int_equal(check_result(&c, &second), 10);
    assert_int_equal(objects(&c), result.n_files + 1);
    /* an empty one */
    assert_ok(data_writer_close(w, &c.arena, &second, &err));
    assert_int_equal(second.n_files, 0);
    write_result_remove(c.store, &result);
    assert_int_equal(objects(&c), 1);
    data_writer_free(w);
    assert_int_equal(objects(&c), 1);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_rolls(void **state) {
    (void)state;
    rolling("parquet");
    rolling("avro");
}

static void test_writer_max_open(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 2;
    assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "100000000", &err));
    c.options.max_open = 3;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int round = 0; round < 2; round++) {
        for (int32_t p = 0; p < 6; p++) {
            assert_ok(write_rows(&c, w, p, 4096, &seed, &err));
        }
        assert_true(objects(&c) >= 3); /* the first ones were finished to make room */
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 2 * 6 * 4096);
    assert_int_equal(result.n_files, 12);
    for (int32_t i = 0; i < result.n_files; i++) {
        assert_int_equal(result.files[i].n_partition, 1);
        assert_false(result.files[i].partition[0].is_null);
    }
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void budget(const char *format, size_t memory_bytes) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 3;
    options.threads = 1;
    assert_ok(tarn_env_new(&options, &env, &err));
    assert_ok(open_case(&c, env, SCHEMA, "p", format, "100000000", &err));
    c.options.memory_bytes = memory_bytes;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int round = 0; round < 40; round++) {
        assert_ok(write_rows(&c, w, -200, 1000, &seed, &err));
    }
    assert_true(objects(&c) > 0);
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 40000);
    assert_true(result.n_files > 200);
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_memory_budget(void **state) {
    (void)state;
    budget("parquet", 300000);
    budget("avro", 300000);
}

static void test_writer_required(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    tarn_batch batch;
    write_result result;
    assert_ok(
        open_case(&c, env, "struct<a: int, b: string not null>", "a", "parquet", "1000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    const tarn_type *root = metadata_schema(c.metadata)->root;
    assert_ok(rows_read(env, &c.arena, root, "{\"a\":1,\"b\":\"x\"}", &batch, &err));
    assert_ok(data_writer_write(w, &batch, &err));
    batch_release(&batch);
    assert_ok(rows_read(env, &c.arena, root, "{\"a\":1,\"b\":\"x\"}\n{\"a\":1,\"b\":null}", &batch,
                        &err));
    assert_code(data_writer_write(w, &batch, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "column b "));
    err_reset(&err);
    batch_release(&batch);
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.rows, 1);
    data_writer_free(w);
    assert_int_equal(objects(&c), 1);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_options(void **state) {
    (void)state;
    static const struct {
        const char *format, *target, *word;
        tarn_code code;
    } bad[] = {
        {"orc", "1000", "orc", TARN_UNSUPPORTED},
        {"parquet", "big", "write.target-file-size-bytes", TARN_INVALID},
    };
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        writer_case c;
        data_writer *w;
        assert_ok(open_case(&c, env, SCHEMA, NULL, bad[i].format, bad[i].target, &err));
        assert_code(data_writer_new(env, c.store, &c.options, &w, &err), bad[i].code);
        assert_non_null(strstr(err.message, bad[i].word));
        err_reset(&err);
        close_case(&c);
    }
    test_env_done(env);
}

/* Freed before close: finished files and begun ones are gone. */
static void test_writer_abandoned(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    uint64_t seed = 4;
    assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "50000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 6; i++) {
        assert_ok(write_rows(&c, w, -2, 8000, &seed, &err));
    }
    assert_true(objects(&c) > 0);
    data_writer_free(w);
    assert_int_equal(objects(&c), 0);
    close_case(&c);
    test_env_done(env);
}

/* ---- where rows go ---- */

/* What a row of a read file says; v is the row's own number. */
static void check_located(writer_case *c, const write_result *result, const row_location *where,
                          int64_t rows, int64_t kept, const data_writer *w) {
    int64_t seen = 0;
    for (int32_t i = 0; i < result->n_files; i++) {
        tarn_buf text;
        tarn_str line;
        int64_t position = 0;
        read_back(c, &result->files[i], &text);
        tarn_str rest = str_make(text.data, text.len - 1);
        while (rest.len > 0 && str_split(&rest, '\n', &line) && line.len > 0) {
            json_value *json = NULL;
            int64_t row = -1;
            assert_ok(json_parse(&c->arena, line, "row", &json, &err));
            assert_true(json_i64(json_get(json, "v"), &row));
            assert_in_range(row, 0, rows - 1);
            assert_int_equal(where[row].position, position);
            const tarn_file *f = data_writer_file(w, where[row].file);
            assert_true(str_eq(f->path, result->files[i].path));
            assert_int_equal(f->n_partition, 1);
            assert_int_equal(f->spec_id, result->files[i].spec_id);
            position++;
            seen++;
        }
        assert_int_equal(position, result->files[i].record_count);
        buf_release(&text);
    }
    assert_int_equal(seen, kept);
}

static tarn_code make_numbered(writer_case *c, int64_t first, int rows, int parts, uint64_t *seed,
                               tarn_batch *out, tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    TRY(builder_init(&b, c->env, metadata_schema(c->metadata)->root, e));
    for (int64_t i = first; i < first + rows; i++) {
        int32_t p = (int32_t)(next_random(seed) % (uint64_t)parts);
        TRY(builder_fixed(&b.children[0], &p, e));
        TRY(builder_fixed(&b.children[1], &i, e));
        TRY(builder_bytes(&b.children[2], STR("text that takes room in the file"), e));
        TRY(builder_close(&b, e));
    }
    TRY(builder_finish_batch(&b, out, e));
done:
    builder_release(&b);
    return code;
}

/* Small files, few open ones, little memory: wherever a row goes, it was said when it was written.
 */
static void locating(const char *format, int32_t max_open, size_t memory_bytes) {
    enum { ROWS = 30000 };
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 7;
    row_location *where = test_malloc(ROWS * sizeof *where);
    assert_ok(open_case(&c, env, SCHEMA, "p", format, "20000", &err));
    c.options.keep_order = true;
    c.options.max_open = max_open;
    c.options.memory_bytes = memory_bytes;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int round = 0; round < 2; round++) { /* numbers go on after a close */
        for (int64_t row = 0, n = 1; row < ROWS; row += n) {
            tarn_batch batch;
            int parts = row % 5 == 0 ? 1 : 9;
            n = (int64_t)(next_random(&seed) % 3000) + 1;
            n = n < ROWS - row ? n : ROWS - row;
            assert_ok(make_numbered(&c, row, (int)n, parts, &seed, &batch, &err));
            assert_ok(data_writer_locate(w, &batch, where + row, &err));
            const tarn_file *file = data_writer_file(w, where[row].file);
            assert_true(str_starts_with(file->path, STR("/t/data/p=")));
            batch_release(&batch);
        }
        assert_ok(data_writer_close(w, &c.arena, &result, &err));
        check_located(&c, &result, where, ROWS, ROWS, w);
        assert_true(result.n_files > 9);
    }
    data_writer_free(w);
    test_free(where);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_locates(void **state) {
    (void)state;
    locating("parquet", 0, 0);
    locating("parquet", 3, 0);
    locating("parquet", 0, 200000);
    locating("avro", 2, 100000);
}

static void test_writer_locate_needs_order(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    row_location where[10];
    tarn_batch batch;
    uint64_t seed = 8;
    assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "20000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    assert_ok(make_numbered(&c, 0, 10, 2, &seed, &batch, &err));
    assert_code(data_writer_locate(w, &batch, where, &err), TARN_INTERNAL);
    batch_release(&batch);
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

/* ---- sorted tables ---- */

/* Lines of a file whose order is "s desc nulls last, bucket(4, v), p". */
static void check_sorted(writer_case *c, const tarn_file *f) {
    tarn_buf text;
    tarn_str line;
    tarn_str before = STR_NULL;
    int64_t p_before = INT64_MIN;
    bool first = true;
    read_back(c, f, &text);
    tarn_str rest = str_make(text.data, text.len - 1);
    while (rest.len > 0 && str_split(&rest, '\n', &line) && line.len > 0) {
        json_value *json = NULL;
        tarn_str s = STR_NULL;
        int64_t p = 0;
        assert_ok(json_parse(&c->arena, line, "row", &json, &err));
        (void)json_str(json_get(json, "s"), &s);
        assert_true(json_i64(json_get(json, "p"), &p));
        if (!first) {
            bool same = (s.data == NULL) == (before.data == NULL) && str_eq(s, before);
            assert_true(s.data == NULL || before.data != NULL);
            assert_true(s.data == NULL || str_cmp(s, before) <= 0);
            assert_true(!same || p >= p_before);
        }
        first = false;
        before = s;
        p_before = p;
    }
    buf_release(&text);
}

static tarn_code make_words(writer_case *c, int rows, uint64_t *seed, tarn_batch *out) {
    static const char *const words[] = {"", "a", "ab", "a\x01", "b", "tolstoy", "z", "zz"};
    tarn_code code = TARN_OK;
    tarn_builder b;
    TRY(builder_init(&b, c->env, metadata_schema(c->metadata)->root, &err));
    for (int64_t i = 0; i < rows; i++) {
        int32_t p = (int32_t)(next_random(seed) % 100) - 50;
        int64_t v = (int64_t)next_random(seed);
        size_t word = next_random(seed) % 9;
        TRY(builder_fixed(&b.children[0], &p, &err));
        TRY(builder_fixed(&b.children[1], &v, &err));
        TRY(word == 8 ? builder_null(&b.children[2], &err)
                      : builder_bytes(&b.children[2], str_of(words[word]), &err));
        TRY(builder_close(&b, &err));
    }
    TRY(builder_finish_batch(&b, out, &err));
done:
    builder_release(&b);
    return code;
}

typedef struct sorting_case {
    const char *by, *format, *target;
    size_t memory_bytes;
    bool keep_order;
} sorting_case;

/* Every file is wholly sorted and says so, or does not say it; how many there are. */
static int32_t sorting(const sorting_case *how) {
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 9;
    const table_shape shape = {
        .schema = SCHEMA,
        .by = how->by,
        .order = "s desc nulls last, p",
        .properties = {{STR("write.format.default"), str_of(how->format)},
                       {STR("write.target-file-size-bytes"), str_of(how->target)}},
        .n_properties = how->target != NULL ? 2 : 1};
    assert_ok(case_open(&c, env, &shape, &err));
    c.options.memory_bytes = how->memory_bytes;
    c.options.keep_order = how->keep_order;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 30; i++) {
        tarn_batch batch;
        assert_ok(make_words(&c, 2000, &seed, &batch));
        assert_ok(data_writer_write(w, &batch, &err));
        batch_release(&batch);
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 60000);
    for (int32_t i = 0; i < result.n_files; i++) {
        assert_int_equal(result.files[i].sort_order_id, how->keep_order ? 0 : 1);
        if (!how->keep_order) {
            check_sorted(&c, &result.files[i]);
        }
    }
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
    return result.n_files;
}

static void test_writer_sorts(void **state) {
    (void)state;
    static const struct {
        sorting_case how;
        int32_t least, most; /* files */
    } cases[] = {
        {{NULL, "parquet", NULL, 0, false}, 1, 1},
        {{"bucket(3, v)", "avro", NULL, 0, false}, 3, 3},
        /* rows that do not fit: files are as large as ever */
        {{NULL, "parquet", NULL, 1000000, false}, 1, 1},
        {{"bucket(3, v)", "parquet", NULL, 1000000, false}, 3, 3},
        {{"bucket(3, v)", "avro", NULL, 50000, false}, 3, 3},
        {{"p", "parquet", NULL, 200000, false}, 100, 100},
        {{NULL, "parquet", "100000", 500000, false}, 5, 12},
        /* what waits on disk is bounded by the target size */
        {{NULL, "parquet", "20000", 100000, false}, 12, 60},
        {{NULL, "parquet", NULL, 0, true}, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t files = sorting(&cases[i].how);
        if (files < cases[i].least || files > cases[i].most) {
            fail_msg("case %zu: %d files", i, files);
        }
    }
}

/* Where runs can't be kept, the writer says where, and nothing of its files stays. */
static void test_writer_sort_disk(void **state) {
    (void)state;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 12;
    tarn_code code = TARN_OK;
    const table_shape shape = {.schema = SCHEMA, .order = "v"};
    options.temp_dir = "/tmp/tarn-no-such-folder";
    assert_ok(tarn_env_new(&options, &env, &err));
    assert_ok(case_open(&c, env, &shape, &err));
    c.options.memory_bytes = 100000;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 20 && code == TARN_OK; i++) {
        code = write_rows(&c, w, -3, 1000, &seed, &err);
    }
    assert_code(code, TARN_NOT_FOUND);
    assert_non_null(strstr(err.message, "/tmp/tarn-no-such-folder"));
    err_reset(&err);
    assert_code(data_writer_close(w, &c.arena, &result, &err), TARN_NOT_FOUND);
    err_reset(&err);
    data_writer_free(w);
    assert_int_equal(objects(&c), 0);
    close_case(&c);
    test_env_done(env);
}

/* Rows that come in order go on in one file, whatever the memory; the files roll at their target.
 */
static void test_writer_sorted_input(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 10;
    const table_shape shape = {.schema = SCHEMA, .order = "v"};
    assert_ok(case_open(&c, env, &shape, &err));
    c.options.memory_bytes = 6000000;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int64_t row = 0; row < 300000; row += 10000) {
        tarn_batch batch;
        assert_ok(make_numbered(&c, row, 10000, 9, &seed, &batch, &err));
        assert_ok(data_writer_write(w, &batch, &err));
        batch_release(&batch);
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_files, 1);
    assert_int_equal(result.rows, 300000);
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

/* ---- held rows ---- */

static tarn_code hear_place(void *ctx, const tarn_batch *rows, int32_t file, int64_t position,
                            tarn_error *e) {
    row_location *where = ctx;
    tarn_view v;
    (void)e;
    assert_int_equal(rows->array.n_children, 3);
    view_column(rows, 1, &v);
    for (int64_t i = 0; i < v.length; i++) {
        where[((const int64_t *)v.values)[i]] = (row_location){file, position + i};
    }
    return TARN_OK;
}

/* Rows have numbers while they are held, of which some are dropped, soon or late; the others are
 * said to be where they are read, in sorted files. Without an order they are located at once. */
static tarn_code hold_rows(writer_case *c, const table_shape *shape, bool check, tarn_error *e) {
    enum { ROWS = 12000 };
    tarn_code code = TARN_OK;
    data_writer *w = NULL;
    write_result result;
    tarn_batch batch = {0};
    uint64_t seed = 13;
    row_location *where = test_calloc(ROWS, sizeof *where);
    row_location *at = test_malloc(ROWS * sizeof *at);
    c->options.hold = true;
    c->options.placed = hear_place;
    c->options.placed_ctx = where;
    TRY(data_writer_new(c->env, c->store, &c->options, &w, e));
    for (int round = 0; round < 2; round++) { /* numbers go on after a close */
        int64_t dropped = 0;
        for (int64_t row = 0, n = 1000; row < ROWS; row += n) {
            TRY(make_numbered(c, row, (int)n, 5, &seed, &batch, e));
            TRY(data_writer_locate(w, &batch, at, e));
            batch_release(&batch);
            for (int64_t i = 0; i < n && shape->order != NULL; i++) {
                assert_int_equal(at[i].file, DATA_HELD);
                assert_int_equal(at[i].position, round * ROWS + row + i);
            }
            for (int64_t i = row / 2; shape->order != NULL && i < row / 2 + n / 2; i += 3) {
                TRY(data_writer_drop(w, round * ROWS + i, e));
                dropped++;
            }
            if (shape->order == NULL) {
                memcpy(where + row, at, (size_t)n * sizeof *at);
            }
        }
        TRY(data_writer_close(w, &c->arena, &result, e));
        if (!check) { /* reading back takes memory too */
            continue;
        }
        check_located(c, &result, where, ROWS, ROWS - dropped, w);
        for (int32_t i = 0; i < result.n_files; i++) {
            assert_int_equal(result.files[i].sort_order_id, shape->order != NULL ? 1 : 0);
        }
    }
done:
    batch_release(&batch);
    data_writer_free(w);
    test_free(where);
    test_free(at);
    return code;
}

static void holding(const char *order, const char *target, size_t memory_bytes) {
    tarn_env *env = test_env();
    writer_case c;
    const table_shape shape = {
        .schema = SCHEMA,
        .by = "p",
        .order = order,
        .properties = {{STR("write.target-file-size-bytes"), str_of(target)}},
        .n_properties = 1};
    assert_ok(case_open(&c, env, &shape, &err));
    c.options.memory_bytes = memory_bytes;
    assert_ok(hold_rows(&c, &shape, true, &err));
    close_case(&c);
    test_env_done(env);
}

static void test_writer_holds(void **state) {
    (void)state;
    holding("bucket(7, v), v desc", "1000000", 0);
    holding("v desc", "10000", 0);
    holding("v", "20000", 100000);
    holding("bucket(7, v), v desc", "10000", 50000);
    holding(NULL, "20000", 100000);
}

static void test_writer_holds_memory(void **state) {
    (void)state;
    const table_shape shape = {.schema = SCHEMA, .by = "p", .order = "v desc"};
    for (uint64_t k = 1;; k += 1 + k % (test_every() ? 29 : 401)) {
        fail_alloc plan;
        writer_case c;
        tarn_error e = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, 0);
        assert_ok(case_open(&c, env, &shape, &err));
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        c.options.memory_bytes = 400000;
        tarn_code code = hold_rows(&c, &shape, false, &e);
        bool failed = plan.failed;
        plan.fail_at = 0;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        close_case(&c);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

/* ---- equality delete files ---- */

static void test_writer_equality(void **state) {
    (void)state;
    static const int32_t ids[] = {3, 1};
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    tarn_batch batch;
    tarn_buf text;
    table_shape shape = {.schema = SCHEMA,
                         .by = "p",
                         .properties = {{STR("write.metadata.metrics.default"), STR("none")}},
                         .n_properties = 1};
    assert_ok(case_open(&c, env, &shape, &err));
    const tarn_type *root = metadata_schema(c.metadata)->root;
    const tarn_field fields[] = {root->fields[0], root->fields[2]};
    c.options.root = type_struct(&c.arena, fields, 2);
    c.options.equality_ids = ids;
    c.options.n_equality_ids = 2;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    assert_ok(
        rows_read(env, &c.arena, c.options.root,
                  "{\"p\":1,\"s\":\"a longer text than sixteen bytes\"}\n{\"p\":1,\"s\":null}",
                  &batch, &err));
    assert_ok(data_writer_write(w, &batch, &err));
    batch_release(&batch);
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_files, 0);
    assert_int_equal(result.n_deletes, 1);
    assert_int_equal(result.deleted_rows, 2);
    const tarn_file *f = &result.deletes[0];
    assert_int_equal(f->content, TARN_CONTENT_EQUALITY_DELETES);
    assert_int_equal(f->n_equality_ids, 2);
    assert_memory_equal(f->equality_ids, ids, sizeof ids);
    assert_true(str_ends_with(f->path, STR("-00001-eq-deletes.parquet")));
    tarn_str bound;
    int64_t nulls;
    assert_true(metric_find_bound(f->upper, f->n_upper, 3, &bound));
    assert_true(str_is(bound, "a longer text than sixteen bytes"));
    assert_true(metric_find_count(f->null_counts, f->n_null_counts, 3, &nulls));
    assert_int_equal(nulls, 1);
    read_back(&c, f, &text);
    assert_string_equal((const char *)text.data,
                        "{\"p\":1,\"s\":\"a longer text than sixteen bytes\"}\n"
                        "{\"p\":1,\"s\":null}\n");
    buf_release(&text);
    write_result_remove(c.store, &result);
    assert_int_equal(objects(&c), 0);
    data_writer_free(w);
    close_case(&c);
    shape.version = 1;
    assert_ok(case_open(&c, env, &shape, &err));
    c.options.root = metadata_schema(c.metadata)->root;
    c.options.equality_ids = ids;
    c.options.n_equality_ids = 2;
    assert_code(data_writer_new(env, c.store, &c.options, &w, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "version"));
    close_case(&c);
    test_env_done(env);
}

/* ---- many partitions ---- */

/* 10,000 partitions open at once, rows for all of them again and again: what is held stays near the
 * budget, beside a fixed amount for each partition. */
static void many_partitions(const char *order, uint64_t most) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 11;
    options.threads = 1;
    assert_ok(tarn_env_new(&options, &env, &err));
    const table_shape shape = {.schema = SCHEMA, .by = "p", .order = order};
    char folder[64];
    assert_ok(case_open(&c, env, &shape, &err));
    /* files go to disk, so that the store's memory is not counted */
    (void)snprintf(folder, sizeof folder, "/tmp/tarn-many-XXXXXX");
    assert_non_null(mkdtemp(folder));
    tarn_metadata moved = *c.metadata;
    moved.location = str_of(folder);
    tarn_store *store = NULL;
    assert_ok(store_file_new(env, false, &store, &err));
    c.options.metadata = &moved;
    c.options.memory_bytes = 16u << 20;
    c.options.max_open = 200;
    assert_ok(data_writer_new(env, store, &c.options, &w, &err));
    for (int round = 0; round < 2; round++) {
        tarn_batch batch;
        assert_ok(make_numbered(&c, 0, 20000, 10000, &seed, &batch, &err));
        assert_ok(data_writer_write(w, &batch, &err));
        batch_release(&batch);
    }
    uint64_t peak = tarn_env_memory_peak(env);
    if (peak > most) {
        fail_msg("%llu bytes were held", (unsigned long long)peak);
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.rows, 40000);
    write_result_remove(store, &result);
    data_writer_free(w);
    store_close(store);
    close_case(&c);
    char remove[128];
    (void)snprintf(remove, sizeof remove, "rm -r %s", folder);
    assert_int_equal(system(remove), 0);
    test_env_done(env);
}

static void test_writer_many_partitions(void **state) {
    (void)state;
    many_partitions(NULL, 48u << 20);
    many_partitions("v", 56u << 20);
}

/* A story that rolls, fans out and closes twice. */
static tarn_code tell(writer_case *c, data_writer **w, write_result results[2], tarn_error *e) {
    tarn_code code = TARN_OK;
    uint64_t seed = 5;
    c->options.max_open = 2;
    TRY(data_writer_new(c->env, c->store, &c->options, w, e));
    TRY(write_rows(c, *w, 1, 3000, &seed, e));
    TRY(write_rows(c, *w, -3, 500, &seed, e));
    TRY(write_rows(c, *w, 2, 3000, &seed, e));
    TRY(data_writer_close(*w, &c->arena, &results[0], e));
    TRY(write_rows(c, *w, -3, 300, &seed, e));
    TRY(data_writer_close(*w, &c->arena, &results[1], e));
done:
    return code;
}

static bool fault_story(tarn_env *env, const char *format, int64_t k, bool after) {
    writer_case c;
    data_writer *w = NULL;
    write_result results[2];
    tarn_error e = TARN_ERROR_INIT;
    memset(results, 0, sizeof results);
    assert_ok(open_case(&c, env, SCHEMA, "p", format, "20000", &err));
    c.plan.fail_at = k;
    c.plan.after = after;
    tarn_code code = tell(&c, &w, results, &e);
    bool clean = code == TARN_OK && c.plan.calls < k;
    c.plan.fail_at = 0;
    if (code != TARN_OK) {
        write_result again;
        tarn_batch batch;
        uint64_t seed = 6;
        assert_code(code, TARN_IO);
        assert_true(e.message[0] != '\0');
        /* it stays failed: nothing is handed out later */
        assert_ok(make_rows(&c, 1, 10, &seed, &batch, &err));
        assert_code(data_writer_write(w, &batch, &e), TARN_IO);
        batch_release(&batch);
        assert_code(data_writer_close(w, &c.arena, &again, &e), TARN_IO);
    }
    data_writer_free(w);
    assert_int_equal(objects(&c), results[0].n_files + results[1].n_files);
    (void)check_result(&c, &results[0]);
    (void)check_result(&c, &results[1]);
    close_case(&c);
    return clean;
}

static void test_writer_store_faults(void **state) {
    (void)state;
    tarn_env *env = test_env();
    for (int kind = 0; kind < 4; kind++) {
        for (int64_t k = 1; !fault_story(env, kind < 2 ? "parquet" : "avro", k, kind % 2); k++) {
            assert_true(k < 1000);
        }
    }
    test_env_done(env);
}

static void each_allocation(const char *order, const char *format, size_t memory_bytes) {
    const table_shape shape = {.schema = SCHEMA,
                               .by = "p",
                               .order = order,
                               .properties = {{STR("write.target-file-size-bytes"), STR("20000")},
                                              {STR("write.format.default"), str_of(format)}},
                               .n_properties = 2};
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        writer_case c;
        data_writer *w = NULL;
        write_result results[2];
        tarn_error e = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, 0);
        memset(results, 0, sizeof results);
        assert_ok(case_open(&c, env, &shape, &err));
        c.options.memory_bytes = memory_bytes;
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        tarn_code code = tell(&c, &w, results, &e);
        bool failed = plan.failed;
        plan.fail_at = 0;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        data_writer_free(w);
        assert_int_equal(objects(&c), results[0].n_files + results[1].n_files);
        close_case(&c);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
        k += k > 100 ? k % (test_every() ? 5 : 67) : 0;
    }
}

static void test_writer_memory(void **state) {
    (void)state;
    each_allocation(NULL, "parquet", 0);
    each_allocation("s desc, v", "parquet", 0);
    each_allocation("v", "avro", 0);
    each_allocation("v", "parquet", 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_rolls),
        cmocka_unit_test(test_writer_max_open),
        cmocka_unit_test(test_writer_memory_budget),
        cmocka_unit_test(test_writer_required),
        cmocka_unit_test(test_writer_options),
        cmocka_unit_test(test_writer_abandoned),
        cmocka_unit_test(test_writer_store_faults),
        cmocka_unit_test(test_writer_memory),
        cmocka_unit_test(test_writer_locates),
        cmocka_unit_test(test_writer_locate_needs_order),
        cmocka_unit_test(test_writer_sorts),
        cmocka_unit_test(test_writer_sort_disk),
        cmocka_unit_test(test_writer_sorted_input),
        cmocka_unit_test(test_writer_holds),
        cmocka_unit_test(test_writer_holds_memory),
        cmocka_unit_test(test_writer_equality),
        cmocka_unit_test(test_writer_many_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
