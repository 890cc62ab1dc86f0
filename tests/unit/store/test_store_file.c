/* Goal: local files keep the promise when things go wrong: nothing half written under a name, no
 * leftovers, clear errors, listings without circles.
 * Method: a size limit of the process stands for a full disk; links, pipes and leftovers are put
 * beside objects; the k-th allocation fails for every k. */
#include "tempdir.h"
#include "torture.h"

#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static tarn_error err;

static tarn_str in_folder(const char *folder, char out[256], const char *rest) {
    int len = snprintf(out, 256, "%s/%s", folder, rest);
    return str_make(out, (size_t)len);
}

static int count_entries(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n - 2;
}

static void leaves_nothing_when_the_disk_is_full(void **state) {
    (void)state;
    char folder[64];
    char text[256];
    static uint8_t block[300000];
    struct rlimit old_limit;
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    io_sink *sink = NULL;
    test_tempdir(folder);
    assert_ok(store_file_new(env, true, &store, &err));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    struct rlimit limit = {100000, old_limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    tarn_str path = in_folder(folder, text, "big");
    /* B64: the write fails; finish after it must fail too. */
    assert_ok(store_create(store, path, STORE_CREATE, &sink, &err));
    assert_code(io_write(sink, block, sizeof block, &err), TARN_IO);
    assert_non_null(strstr(err.message, "big"));
    assert_code(io_write(sink, block, 1, &err), TARN_IO);
    assert_code(sink->finish(sink, &err), TARN_IO);
    assert_int_equal(count_entries(folder), 0);
    /* Bytes that were only buffered fail at finish. */
    assert_ok(store_create(store, path, STORE_REPLACE, &sink, &err));
    assert_ok(io_write(sink, block, 120000, &err));
    assert_code(sink->finish(sink, &err), TARN_IO);
    assert_int_equal(count_entries(folder), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    assert_ok(store_put(store, path, STORE_CREATE, STR("fits"), &err));
    store_close(store);
    test_tempdir_done(folder);
    test_env_done(env);
}

static tarn_code collect(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *e) {
    (void)info;
    tarn_code code = buf_append_str(ctx, path, e);
    return code != TARN_OK ? code : buf_append_char(ctx, '\n', e);
}

static void lists_links_but_not_circles(void **state) {
    (void)state;
    char folder[64];
    char text[256];
    char other[256];
    char want[1024];
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    tarn_buf seen;
    test_tempdir(folder);
    assert_ok(store_file_new(env, false, &store, &err));
    assert_ok(store_put(store, in_folder(folder, text, "d/x"), STORE_CREATE, STR("1"), &err));
    assert_ok(store_put(store, in_folder(folder, text, ".x.tmp-0123456789abcdef"), STORE_CREATE,
                        STR("left"), &err));
    assert_ok(store_put(store, in_folder(folder, text, ".x.tmp-0123456789abcdeX"), STORE_CREATE,
                        STR("kept"), &err));
    (void)in_folder(folder, text, "d/up");
    assert_int_equal(symlink("..", text), 0);
    (void)in_folder(folder, text, "gone");
    assert_int_equal(symlink("nowhere", text), 0);
    (void)in_folder(folder, text, "self");
    assert_int_equal(symlink("self", text), 0);
    (void)in_folder(folder, text, "file-link");
    assert_int_equal(symlink("d/x", text), 0);
    (void)in_folder(folder, text, "pipe");
    assert_int_equal(mkfifo(text, 0600), 0);
    buf_init(&seen, env, 0);
    (void)snprintf(other, sizeof other, "file://%s", folder);
    assert_ok(store_list(store, str_of(other), collect, &seen, &err));
    (void)snprintf(want, sizeof want, "%s/.x.tmp-0123456789abcdeX\n%s/d/x\n%s/file-link\n", other,
                   other, other);
    assert_ok(buf_append_char(&seen, 0, &err));
    assert_string_equal((const char *)seen.data, want);
    buf_release(&seen);
    store_close(store);
    test_tempdir_done(folder);
    test_env_done(env);
}

static void refuses_what_is_not_a_file(void **state) {
    (void)state;
    char folder[64];
    char text[256];
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    io_source *source = NULL;
    io_sink *sink = NULL;
    store_stat_info info;
    test_tempdir(folder);
    assert_ok(store_file_new(env, true, &store, &err));
    assert_ok(store_put(store, in_folder(folder, text, "d/x"), STORE_CREATE, STR("1"), &err));
    tarn_str d = in_folder(folder, text, "d");
    assert_code(store_open(store, d, -1, &source, &err), TARN_INVALID);
    assert_code(store_stat(store, d, &info, &err), TARN_NOT_FOUND);
    assert_code(store_remove(store, d, &err), TARN_NOT_FOUND);
    assert_code(store_put(store, d, STORE_CREATE, STR("1"), &err), TARN_CONFLICT);
    assert_code(store_put(store, d, STORE_REPLACE, STR("1"), &err), TARN_IO);
    assert_code(store_create(store, in_folder(folder, text, "d/"), STORE_CREATE, &sink, &err),
                TARN_INVALID);
    /* A file where a folder should be is no missing one. */
    static const char *const below[] = {"d/x/y", "d/x/y/z", "d/x/y/z/"};
    for (size_t i = 0; i < 3; i++) {
        tarn_str path = in_folder(folder, text, below[i]);
        tarn_code code = i < 2 ? store_create(store, path, STORE_CREATE, &sink, &err)
                               : store_make_folder(store, path, &err);
        assert_int_equal(code, TARN_INVALID);
        assert_non_null(strstr(err.message, "d/x is a file"));
        err_reset(&err);
    }
    (void)in_folder(folder, text, "pipe");
    assert_int_equal(mkfifo(text, 0600), 0);
    assert_code(store_open(store, str_of(text), -1, &source, &err), TARN_INVALID);
    if (geteuid() != 0) { /* root may do everything */
        assert_int_equal(chmod(folder, 0500), 0);
        assert_code(store_create(store, in_folder(folder, text, "no"), STORE_CREATE, &sink, &err),
                    TARN_DENIED);
    }
    store_close(store);
    test_tempdir_done(folder);
    test_env_done(env);
}

/* A file that a writer cut short under a reader is damage, not a short answer. */
static void tells_of_a_file_cut_short(void **state) {
    (void)state;
    char folder[64];
    char text[256];
    char got[10];
    tarn_env *env = test_env();
    tarn_store *store = NULL;
    io_source *source = NULL;
    test_tempdir(folder);
    assert_ok(store_file_new(env, false, &store, &err));
    tarn_str path = in_folder(folder, text, "x");
    assert_ok(store_put(store, path, STORE_CREATE, STR("0123456789"), &err));
    assert_ok(store_open(store, path, -1, &source, &err));
    assert_int_equal(truncate(text, 4), 0);
    assert_code(io_read_at(source, 0, got, 10, &err), TARN_CORRUPT);
    source->close(source);
    store_close(store);
    test_tempdir_done(folder);
    test_env_done(env);
}

static tarn_code use_store(tarn_env *env, const char *folder, const char *to) {
    char text[256];
    tarn_store *store = NULL;
    tarn_store *moved = NULL;
    tarn_buf seen;
    tarn_code code;
    buf_init(&seen, env, 0);
    TRY(store_file_new(env, false, &store, &err));
    TRY(store_moved_new(store, STR("/from"), str_of(folder), &moved, &err));
    store = moved;
    (void)snprintf(text, sizeof text, "/from/%s", to);
    TRY(store_put(store, str_of(text), STORE_REPLACE, STR("bytes"), &err));
    TRY(store_get(store, str_of(text), 100, &seen, &err));
    TRY(store_list(store, STR("/from"), collect, &seen, &err));
    code = store_remove(store, str_of(text), &err);
done:
    buf_release(&seen);
    store_close(store);
    return code;
}

static void survives_lack_of_memory(void **state) {
    (void)state;
    char folder[64];
    test_memory memory = {0};
    tarn_env *env = test_env_memory(&memory);
    tarn_code code = TARN_NOMEM;
    int k = 0;
    test_tempdir(folder);
    while (code != TARN_OK && k < 1000) {
        memory.fail_at = ++k;
        code = use_store(env, folder, "a");
        assert_true(code == TARN_OK || code == TARN_NOMEM);
        assert_int_equal(tarn_env_memory_now(env), 0);
        if (code == TARN_NOMEM) {
            assert_int_equal(err.code, TARN_NOMEM);
            assert_true(count_entries(folder) <= 1); /* "a" itself at most */
        }
    }
    assert_true(k > 8 && k < 1000);
    memory.fail_at = 0;
    test_tempdir_done(folder);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_nothing_when_the_disk_is_full),
        cmocka_unit_test(lists_links_but_not_circles),
        cmocka_unit_test(refuses_what_is_not_a_file),
        cmocka_unit_test(tells_of_a_file_cut_short),
        cmocka_unit_test(survives_lack_of_memory),
    };
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
