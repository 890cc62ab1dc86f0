/* Goal: new files go where the table's properties say.
 * Method: one table, its properties changed, and the paths that come out; the hashed one is checked
 * by its rule, and by two names that Iceberg's own tests have. */
#include "fixture.h"

#include "base/num.h"
#include "iceberg/location.h"

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const tarn_metadata *m;
    tarn_value tuple[1];
} bench;

static void bench_open(bench *b, const tarn_property *properties, int32_t n) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_type *root;
    b->env = test_env();
    arena_init(&b->arena, b->env);
    assert_ok(type_from_text(&b->arena, STR("struct<s: string>"), &root, &err));
    metadata_new_options options = {.format_version = 2,
                                    .root = root,
                                    .partition_by = STR("s"),
                                    .location = STR("/t/"),
                                    .properties = {n, properties}};
    assert_ok(metadata_new(&b->arena, &options, &b->m, &err));
    b->tuple[0] = value_null(type_primitive(TARN_STRING));
    b->tuple[0].is_null = false;
    b->tuple[0].as.bytes = STR("a/b");
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

static void expect_data_file(const tarn_property *properties, int32_t n, const char *want) {
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    tarn_str path;
    bench_open(&b, properties, n);
    assert_ok(location_data_file(&b.arena, b.m, metadata_spec(b.m), b.tuple, STR("f.parquet"),
                                 &path, &err));
    assert_string_equal(path.data, want);
    bench_close(&b);
}

static void data_files(void **state) {
    (void)state;
    const tarn_property folders[] = {{STR("write.folder-storage.path"), STR("/old")},
                                     {STR("write.object-storage.path"), STR("/older")},
                                     {STR("write.data.path"), STR("/new//")}};
    expect_data_file(NULL, 0, "/t/data/s=a%2Fb/f.parquet");
    expect_data_file(folders, 1, "/old/s=a%2Fb/f.parquet");
    expect_data_file(folders, 2, "/older/s=a%2Fb/f.parquet");
    expect_data_file(folders, 3, "/new/s=a%2Fb/f.parquet");
}

/* A long value makes no folder name that a file system refuses, and no half "%xx". */
static void long_values(void **state) {
    char text[1024];
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        bench b;
        tarn_error err = TARN_ERROR_INIT;
        tarn_str path;
        bench_open(&b, NULL, 0);
        memset(text, '/', sizeof text); /* each is %2F */
        memset(text, 'a', shift);
        b.tuple[0].as.bytes = str_make(text, sizeof text);
        assert_ok(location_data_file(&b.arena, b.m, metadata_spec(b.m), b.tuple, STR("f.parquet"),
                                     &path, &err));
        const char *name = strstr(path.data, "s=");
        const char *end = strchr(name, '/');
        assert_in_range(end - name, 230, 255);
        assert_int_equal((size_t)(end - name - 2) % 3, shift);
        assert_string_equal(end, "/f.parquet");
        bench_close(&b);
    }
}

/* The lowest 20 of the hash's bits: three folders of four, one of eight. */
static char *hashed(const char *base, const char *name, char between, char *out) {
    uint32_t hash = num_murmur3(name, strlen(name));
    char bits[24];
    int at = 0;
    for (int bit = 0; bit < 20; bit++) {
        if (bit == 4 || bit == 8 || bit == 12) {
            bits[at++] = '/';
        }
        bits[at++] = (char)('0' + (hash >> (19 - bit) & 1));
    }
    (void)snprintf(out, 200, "%s/%.*s%c%s", base, at, bits, between, name);
    return out;
}

/* "/d/<hash>/name" with the table's folder before the name. */
static char *of_table(char *path) {
    const size_t at = sizeof "/d/0000/0000/0000/00000000/" - 1;
    memmove(path + at + 2, path + at, strlen(path + at) + 1);
    memcpy(path + at, "t/", 2);
    return path;
}

static void object_storage(void **state) {
    (void)state;
    char want[200];
    tarn_property properties[] = {{STR("write.object-storage.enabled"), STR("true")},
                                  {STR("write.data.path"), STR("/d")},
                                  {STR("write.object-storage.partitioned-paths"), STR("false")}};
    expect_data_file(properties, 1, hashed("/t/data", "s=a%2Fb/f.parquet", '/', want));
    /* elsewhere than below the table, its own folders part it from other tables' files */
    expect_data_file(properties, 2, of_table(hashed("/d", "s=a%2Fb/f.parquet", '/', want)));
    expect_data_file(properties, 3, of_table(hashed("/d", "f.parquet", '/', want)));
    properties[1].value = STR("/t/there");
    expect_data_file(properties, 3, hashed("/t/there", "f.parquet", '-', want));
    assert_string_equal(hashed("/d", "a", '/', want), "/d/0101/0110/1001/10110010/a");
    assert_string_equal(hashed("/d", "b", '/', want), "/d/1110/0111/1110/00000011/b");
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    tarn_str path;
    const tarn_property bad = {STR("write.object-storage.enabled"), STR("perhaps")};
    bench_open(&b, &bad, 1);
    assert_code(
        location_data_file(&b.arena, b.m, metadata_spec(b.m), b.tuple, STR("f"), &path, &err),
        TARN_INVALID);
    bench_close(&b);
}

static void metadata_files(void **state) {
    (void)state;
    const tarn_property folder = {STR("write.metadata.path"), STR("/m")};
    for (int32_t n = 0; n < 2; n++) {
        bench b;
        tarn_error err = TARN_ERROR_INIT;
        tarn_str path;
        bench_open(&b, &folder, n);
        assert_ok(location_metadata_file(&b.arena, b.m, STR("x.avro"), &path, &err));
        assert_string_equal(path.data, n == 0 ? "/t/metadata/x.avro" : "/m/x.avro");
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(data_files), cmocka_unit_test(long_values),
                                       cmocka_unit_test(object_storage),
                                       cmocka_unit_test(metadata_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
