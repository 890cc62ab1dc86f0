/* Goal: rows become single files of every kind and compression, and come back from them.
 * Method: the same few rows through tarn_file_writer and tarn_file_open; what the files begin with,
 * filters, columns, bad records, and what is left when writing ends early. */
#include "flow.h"

#include <unistd.h>

static tarn_error err;

static const char ROWS[] = "1,1,a;2,,b;3,2,";
static const char SAME[] = "1,1,a\n2,null,b\n3,2,null\n";

typedef struct file_case {
    tarn_env *env;
    char folder[64];
    char path[128];
} file_case;

static void begin(file_case *f, const char *name) {
    f->env = test_env();
    test_tempdir(f->folder);
    (void)snprintf(f->path, sizeof f->path, "%s/%s", f->folder, name);
}

static void end(file_case *f) {
    test_tempdir_done(f->folder);
    test_env_done(f->env);
}

static tarn_code write_rows(file_case *f, const tarn_file_options *options, const char *rows) {
    tarn_file_writer *writer = NULL;
    flow_batch *b = flow_batch_of(rows);
    struct ArrowArray array = b->array; /* the batch goes with whoever releases it */
    tarn_code code = tarn_file_writer_open(f->env, f->path, &b->schema, options, &writer, &err);
    if (code == TARN_OK) {
        code = tarn_file_writer_write(writer, &array, &err);
        assert_int_not_equal(access(f->path, F_OK), 0); /* not before it is closed */
        if (code == TARN_OK) {
            code = tarn_file_writer_close(writer, &err);
        } else {
            tarn_file_writer_abort(writer);
        }
    }
    if (array.release != NULL) {
        array.release(&array);
    }
    return code;
}

/* The rows of the file as sorted lines; NULL: it failed. */
static char *read_rows(file_case *f, const tarn_file_options *options) {
    tarn_file_reader *reader = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    char *text = NULL;
    size_t len = 0;
    if (tarn_file_open(f->env, f->path, options, &reader, &err) != TARN_OK) {
        return NULL;
    }
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_ok(tarn_file_schema(reader, &schema, &err));
    tarn_code code;
    while ((code = tarn_file_next(reader, &array, &err)) == TARN_OK && array.release != NULL) {
        for (int64_t i = 0; i < array.length; i++) {
            for (int64_t c = 0; c < array.n_children; c++) {
                fprintf(out, c == 0 ? "" : ",");
                flow_put(out, schema.children[c], array.children[c], i);
            }
            fprintf(out, "\n");
        }
        array.release(&array);
    }
    schema.release(&schema);
    tarn_file_close(reader);
    (void)fclose(out);
    if (code != TARN_OK) {
        free(text);
        return NULL;
    }
    return flow_sort(text, len);
}

static void check_rows(file_case *f, const tarn_file_options *options, const char *want) {
    char *got = read_rows(f, options);
    if (got == NULL) {
        fail_msg("%s: %s", f->path, err.message);
    }
    assert_string_equal(got, want);
    free(got);
}

static void check_start(const file_case *f, const char *want, size_t len) {
    char start[8] = {0};
    FILE *file = fopen(f->path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, len, file), len);
    assert_memory_equal(start, want, len);
    (void)fclose(file);
}

static void test_file_kinds(void **state) {
    (void)state;
    static const struct {
        const char *name, *format, *compression, *start, *kind;
    } cases[] = {
        {"a.parquet", NULL, NULL, "PAR1", "parquet"},
        {"a.avro", NULL, NULL, "Obj\1", "avro"},
        {"a.ndjson", NULL, NULL, "{\"id", "ndjson"},
        {"a.jsonl.gz", NULL, NULL, "\x1f\x8b", "ndjson"},
        {"a.ndjson.zst", NULL, NULL, "\x28\xb5\x2f\xfd", "ndjson"},
        {"a.csv", NULL, NULL, "id,d", "csv"},
        {"a.csv.gz", NULL, NULL, "\x1f\x8b", "csv"},
        {"a.csv.zst", NULL, NULL, "\x28\xb5\x2f\xfd", "csv"},
        {"rows", "ndjson", "gzip", "\x1f\x8b", "ndjson"},
        {"rows", "csv", "zstd", "\x28\xb5\x2f\xfd", "csv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file_case f;
        tarn_file_reader *reader;
        tarn_file_options options = TARN_FILE_OPTIONS_INIT;
        begin(&f, cases[i].name);
        options.format = cases[i].format;
        options.compression = cases[i].compression;
        flow_batch *like = flow_batch_new();
        options.schema = &like->schema;
        assert_ok(write_rows(&f, &options, ROWS));
        check_start(&f, cases[i].start, strlen(cases[i].start));
        check_rows(&f, &options, SAME);
        options.compression = NULL; /* found in the bytes */
        assert_ok(tarn_file_open(f.env, f.path, &options, &reader, &err));
        assert_string_equal(tarn_file_reader_format(reader), cases[i].kind);
        tarn_file_close(reader);
        check_rows(&f, &options, SAME);
        like->array.release(&like->array);
        end(&f);
    }
}

static void test_file_choices(void **state) {
    (void)state;
    static const char *const names[] = {"a.parquet", "a.avro", "a.ndjson.gz", "a.csv"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        file_case f;
        tarn_file_options options = TARN_FILE_OPTIONS_INIT;
        begin(&f, names[i]);
        assert_ok(write_rows(&f, NULL, ROWS));
        options.columns = "tag,id";
        options.where = "day = 1 or id = 3";
        check_rows(&f, &options, "a,1\nnull,3\n");
        options.where = "nope = 1";
        assert_null(read_rows(&f, &options));
        assert_non_null(strstr(err.message, "nope"));
        end(&f);
    }
}

static int keep_line(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    int64_t *lines = ctx;
    assert_true(raw_len > 0 && raw != NULL && reason[0] != '\0');
    *lines = *lines * 10 + line;
    return 0;
}

static void test_file_rejects(void **state) {
    (void)state;
    file_case f;
    int64_t lines = 0;
    tarn_file_options options = TARN_FILE_OPTIONS_INIT;
    flow_batch *like = flow_batch_new();
    begin(&f, "bad.ndjson");
    FILE *file = fopen(f.path, "wb");
    assert_non_null(file);
    fprintf(file, "{\"id\":1}\n{\"id\":\"x\"}\n{\"id\":3}\nnothing\n");
    (void)fclose(file);
    options.schema = &like->schema;
    assert_null(read_rows(&f, &options));
    assert_int_equal(err.code, TARN_INVALID);
    assert_non_null(strstr(err.message, "line 2"));
    options.reject = keep_line;
    options.reject_ctx = &lines;
    check_rows(&f, &options, "1,null,null\n3,null,null\n");
    assert_int_equal(lines, 24);
    like->array.release(&like->array);
    end(&f);
}

static void test_file_bad_writers(void **state) {
    (void)state;
    file_case f;
    tarn_file_options options = TARN_FILE_OPTIONS_INIT;
    begin(&f, "a.parquet");
    options.codec = "lzo";
    assert_code(write_rows(&f, &options, ROWS), TARN_INVALID);
    options.codec = NULL;
    options.properties_json = "{\"write.parquet.page-version\":\"v3\"}";
    assert_code(write_rows(&f, &options, ROWS), TARN_INVALID);
    options.properties_json = NULL;
    options.format = "xml";
    assert_code(write_rows(&f, &options, ROWS), TARN_INVALID);
    /* one that is given up leaves nothing */
    tarn_file_writer *writer;
    flow_batch *b = flow_batch_of(ROWS);
    assert_ok(tarn_file_writer_open(f.env, f.path, &b->schema, NULL, &writer, &err));
    struct ArrowArray array = b->array;
    assert_ok(tarn_file_writer_write(writer, &array, &err));
    tarn_file_writer_abort(writer);
    assert_int_equal(rmdir(f.folder), 0);
    assert_int_equal(mkdir(f.folder, 0700), 0);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_kinds), cmocka_unit_test(test_file_choices),
        cmocka_unit_test(test_file_rejects), cmocka_unit_test(test_file_bad_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
