/* Goal: what the face of the stores says of paths and locations.
 * Method: tables of texts with their right readings; conformance covers the vtables. */
#include "test.h"

#include "store/store.h"

static void reads_schemes(void **state) {
    (void)state;
    static const struct {
        const char *location, *scheme, *path; /* path NULL: not local */
    } CASES[] = {
        {"/a/b", "", "/a/b"},
        {"a/b", "", "a/b"},
        {"file:a", "file", "a"},
        {"file:/a", "file", "/a"},
        {"file:///a%20b", "file", "/a%20b"},
        {"FILE:///a", "FILE", "/a"},
        {"file://localhost/a", "file", "/a"},
        {"file://other/a", "file", NULL},
        {"file://", "file", NULL},
        {"s3://b/k", "s3", NULL},
        {"hdfs:/k", "hdfs", NULL},
        {"a:b", "", "a:b"},
        {"c:/x", "", "c:/x"},
        {"ts=12:30/x", "", "ts=12:30/x"},
        {"12:/x", "", "12:/x"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tarn_str path = STR_NULL;
        tarn_str location = str_of(CASES[i].location);
        assert_true(str_is(store_scheme(location), CASES[i].scheme));
        assert_int_equal(store_local_path(location, &path), CASES[i].path != NULL);
        if (CASES[i].path != NULL) {
            assert_true(str_is(path, CASES[i].path));
        }
    }
}

static void compares_prefixes(void **state) {
    (void)state;
    static const struct {
        const char *base, *path, *rest; /* rest NULL: not below */
    } CASES[] = {
        {"/a", "/a", ""},
        {"/a/", "/a/b", "/b"},
        {"/a", "/ab", NULL},
        {"/a", "file:///a/b", "/b"},
        {"file:/a", "/a/b%20", "/b%20"},
        {"file:/a", "file:///a/b", "/b"},
        {"s3://x/a", "s3a://x/a/b", "/b"},
        {"s3://x/a", "s3://y/a/b", NULL},
        {"s3://x/a", "gs://x/a/b", NULL},
        {"/x/a", "s3://x/a", NULL},
        {"s3://x/a", "/x/a", NULL},
        {"/a/b", "/a", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tarn_str rest = STR_NULL;
        assert_int_equal(store_path_below(str_of(CASES[i].base), str_of(CASES[i].path), &rest),
                         CASES[i].rest != NULL);
        if (CASES[i].rest != NULL) {
            assert_true(str_is(rest, CASES[i].rest));
        }
    }
}

static void joins(void **state) {
    (void)state;
    static const char *const CASES[][3] = {
        {"/a", "b", "/a/b"}, {"/a/", "/b", "/a/b"}, {"s3://x//", "b/c", "s3://x/b/c"},
        {"/", "b", "/b"},    {"", "b", "/b"},       {"/a", "", "/a/"},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_string_equal(store_join(&arena, str_of(CASES[i][0]), str_of(CASES[i][1])),
                            CASES[i][2]);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void finds_the_store_of_a_location(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    assert_code(store_for_location(env, STR("s3://b/k"), &store, &err), TARN_UNSUPPORTED);
    assert_non_null(strstr(err.message, "s3 "));
    assert_code(store_for_location(env, STR("file://host/k"), &store, &err), TARN_UNSUPPORTED);
    assert_ok(store_for_location(env, STR("file:///tmp"), &store, &err));
    assert_true(store_traits_of(store) & STORE_DURABLE);
    assert_code(store_put(store, STR("s3://b/k"), STORE_CREATE, STR("x"), &err), TARN_UNSUPPORTED);
    store_close(store);
    store_close(NULL);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_schemes),
        cmocka_unit_test(compares_prefixes),
        cmocka_unit_test(joins),
        cmocka_unit_test(finds_the_store_of_a_location),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
