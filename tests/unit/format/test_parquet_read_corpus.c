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
    {"int96_from_spark.parquet", TARN_CORRUPT, "out of range"}, /* its last row is beyond int64 */
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

static void test_variants(void **state) {
    (void)state;
    int bad = 0;
    if (check_folder("shredded_variant", &bad) == 0) {
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
