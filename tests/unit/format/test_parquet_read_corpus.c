/* Files of many writers, where they are present. Goal: every file gives the rows that another
 * reader gave, or a clear refusal, and damaged ones never a crash. Method: all files of a folder
 * are read whole and compared line by line; the few whose right answer is not the other reader's
 * are named here. */
#include "../../test.h"

#include <dirent.h>
#include <zlib.h>

#include "parquet_dump.h"

#define CORPUS TARN_TEST_SHARED "/corpus/parquet"

typedef struct outcome {
    const char *file;
    tarn_code code;
    const char *says; /* part of the message */
} outcome;

/* Not the other reader's answer, and why. */
static const outcome outcomes[] = {
    {"int96_from_spark.parquet", TARN_CORRUPT, "out of range"}, /* one row is beyond int64 */
    {"datapage_v1-corrupt-checksum.parquet", TARN_CORRUPT, "checksum"},
    {"rle-dict-uncompressed-corrupt-checksum.parquet", TARN_CORRUPT, "checksum"},
    {"encrypt_columns_and_footer_bloom_filter.parquet.encrypted", TARN_UNSUPPORTED, "encrypted"},
    {"encrypt_columns_and_footer_ctr.parquet.encrypted", TARN_UNSUPPORTED, "encrypted"},
    {"encrypt_columns_and_footer_disable_aad_storage.parquet.encrypted", TARN_UNSUPPORTED,
     "encrypted"},
    {"external_key_material_java.parquet.encrypted", TARN_UNSUPPORTED, "encrypted"},
    {"ARROW-GH-41317.parquet", TARN_CORRUPT, ""},
    {"ARROW-GH-45185.parquet", TARN_CORRUPT, "within a row"},
    {"ARROW-GH-47662.parquet", TARN_CORRUPT, "ended early"},
    {"ARROW-RS-GH-6229-LEVELS.parquet", TARN_CORRUPT, "21 values where 1"},
    {"PARQUET-1481.parquet", TARN_CORRUPT, "physical type"},
    {"uniform_encryption.parquet.encrypted", TARN_UNSUPPORTED, "encrypted"},
};

static const outcome *find_outcome(const char *file) {
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        if (strcmp(outcomes[i].file, file) == 0) {
            return &outcomes[i];
        }
    }
    return NULL;
}

static char *load_expected(const char *path, size_t *len) {
    char name[1100];
    snprintf(name, sizeof name, "%s.expected.ndjson.gz", path);
    gzFile f = gzopen(name, "rb");
    if (f == NULL) {
        return NULL;
    }
    char *text = malloc(32u << 20);
    int got = gzread(f, text, 32u << 20);
    gzclose(f);
    *len = got > 0 ? (size_t)got : 0;
    return text;
}

/* Returns whether the file's outcome was right. */
static bool check_file(const char *folder, const char *file) {
    char path[1000];
    size_t len = 0, want_len = 0;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_buf out;
    buf_init(&out, env, 0);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    uint8_t *bytes = dump_load(path, &len);
    char *want = load_expected(path, &want_len);
    const outcome *special = find_outcome(file);
    bool good = true;
    tarn_code code = dump_memory(env, file, bytes, len, NULL, &out, &err);
    if (special != NULL) {
        good = code == special->code && strstr(err.message, special->says) != NULL;
    } else if (want != NULL && code == TARN_OK) {
        good = dump_compare(env, file, buf_str(&out), str_make(want, want_len));
    } else if (want != NULL) {
        good = false;
    }
    if (getenv("TARN_TEST_VERBOSE") != NULL || !good) {
        printf("%-60s %s %s\n", file, tarn_code_name(code), code != TARN_OK ? err.message : "");
    }
    free(want);
    free(bytes);
    buf_release(&out);
    test_env_done(env);
    return good;
}

static int check_folder(const char *name, int *n_bad) {
    char folder[400];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/%s", CORPUS, name);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        size_t len = strlen(e->d_name);
        if ((len > 8 && strcmp(e->d_name + len - 8, ".parquet") == 0) ||
            (len > 10 && strcmp(e->d_name + len - 10, ".encrypted") == 0)) {
            *n_bad += check_file(folder, e->d_name) ? 0 : 1;
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return n;
}

static void test_good_files(void **state) {
    (void)state;
    int bad = 0;
    int n = check_folder("data", &bad) + check_folder("data/geospatial", &bad) +
            check_folder("data/aes256", &bad);
    if (n == 0) {
        skip();
    }
    assert_int_equal(bad, 0);
}

/* Clear refusals: every one of these is damaged. */
static void test_bad_files(void **state) {
    (void)state;
    int bad = 0;
    if (check_folder("bad_data", &bad) == 0) {
        skip();
    }
    assert_int_equal(bad, 0);
}

/* The bytes of a variant: its metadata, then its value. */
static bool same_variant(const tarn_view *v, int64_t row, const char *path) {
    tarn_view metadata, value;
    char name[1200];
    size_t len = 0;
    snprintf(name, sizeof name, "%.*s_row-%lld.variant.bin", (int)(strlen(path) - 8), path,
             (long long)row);
    uint8_t *want = dump_load(name, &len);
    if (want == NULL) {
        return view_is_null(v, row);
    }
    view_child(v, 0, &metadata);
    view_child(v, 1, &value);
    const tarn_str m = view_bytes(&metadata, row), b = view_bytes(&value, row);
    bool same = !view_is_null(v, row) && m.len + b.len == len && memcmp(want, m.data, m.len) == 0 &&
                memcmp(want + m.len, b.data, b.len) == 0;
    free(want);
    return same;
}

static bool check_variants(const char *file) {
    static const char *const refused[] = {"case-040", "case-042", "case-087",
                                          "case-127", "case-128", "case-137"};
    char path[1000];
    size_t len = 0;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    io_source *source = NULL;
    parquet_file *opened = NULL;
    parquet_scan *scan = NULL;
    tarn_batch batch = {0};
    bool good = true, refuse = false;
    snprintf(path, sizeof path, "%s/shredded_variant/%s", CORPUS, file);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        refuse = refuse || strncmp(file, refused[i], 8) == 0;
    }
    uint8_t *bytes = dump_load(path, &len);
    assert_ok(io_source_memory(env, file, bytes, len, &source, &err));
    assert_ok(parquet_open(env, source, NULL, &opened, &err));
    assert_ok(parquet_scan_open(opened, NULL, &scan, &err));
    tarn_code code = parquet_scan_next(scan, &batch, NULL, &err);
    for (int32_t i = 0; code == TARN_OK && i < batch.type->n_fields; i++) {
        tarn_view view;
        view_column(&batch, i, &view);
        for (int64_t row = 0; view.type->kind == TARN_VARIANT && row < view.length; row++) {
            good = good && same_variant(&view, row, path);
        }
    }
    good = refuse ? code == TARN_CORRUPT || code == TARN_UNSUPPORTED : good && code == TARN_OK;
    if (!good) {
        printf("%s: %s %s\n", file, tarn_code_name(code), err.message);
    }
    batch_release(&batch);
    parquet_scan_close(scan);
    parquet_close(opened);
    source->close(source);
    free(bytes);
    test_env_done(env);
    return good;
}

/* Shredded variants give the very bytes that the writer had before it took them apart. */
static void test_variants(void **state) {
    (void)state;
    int n = 0, bad = 0;
    DIR *dir = opendir(CORPUS "/shredded_variant");
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        size_t len = strlen(e->d_name);
        if (len > 8 && strcmp(e->d_name + len - 8, ".parquet") == 0) {
            bad += check_variants(e->d_name) ? 0 : 1;
            n++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    if (n == 0) {
        skip();
    }
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_files),
                                       cmocka_unit_test(test_bad_files),
                                       cmocka_unit_test(test_variants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
