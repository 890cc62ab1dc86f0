/* Goal: a temporary file gives back what was put in, has no name, and says what went wrong.
 * Method: a folder of the test's own, looked into; a folder that is not there; a limit on
 * the size of files in place of a full disk. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "store/store_temp.h"

static tarn_error err;

static int count_names(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        n += e->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

static void test_temp_round_trip(void **state) {
    (void)state;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    store_temp *t = NULL;
    char folder[] = "/tmp/tarn-temp-test-XXXXXX";
    char got[8] = {0};
    assert_non_null(mkdtemp(folder));
    options.temp_dir = folder;
    assert_ok(tarn_env_new(&options, &env, &err));
    assert_ok(store_temp_new(env, &t, &err));
    for (int round = 0; round < 2; round++) {
        assert_ok(store_temp_append(t, "hello ", 6, &err));
        assert_ok(store_temp_append(t, "world", 5, &err));
        assert_int_equal(store_temp_bytes(t), 11);
        assert_ok(store_temp_read(t, 4, got, 4, &err));
        assert_memory_equal(got, "o wo", 4);
        assert_int_equal(count_names(folder), 0);
        assert_code(store_temp_read(t, 8, got, 4, &err), TARN_CORRUPT);
        err_reset(&err);
        assert_ok(store_temp_clear(t, &err));
        assert_int_equal(store_temp_bytes(t), 0);
    }
    store_temp_free(t);
    assert_int_equal(rmdir(folder), 0);
    assert_code(store_temp_new(env, &t, &err), TARN_NOT_FOUND);
    assert_non_null(strstr(err.message, folder));
    assert_non_null(strstr(err.message, "TMPDIR"));
    err_reset(&err);
    test_env_done(env);
}

static void test_temp_full(void **state) {
    (void)state;
    static char bytes[8192];
    tarn_env *env = test_env();
    store_temp *t = NULL;
    struct rlimit before;
    assert_ok(store_temp_new(env, &t, &err));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {10000, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tarn_code first = store_temp_append(t, bytes, sizeof bytes, &err);
    tarn_code second = store_temp_append(t, bytes, sizeof bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_code(first, TARN_OK);
    assert_code(second, TARN_IO);
    assert_non_null(strstr(err.message, "temporary file"));
    assert_non_null(strstr(err.message, "TMPDIR"));
    err_reset(&err);
    store_temp_free(t);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temp_round_trip),
        cmocka_unit_test(test_temp_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
