/* Goal: an env counts its memory exactly, honours its limit and options, and lends time, chance and
 * sleep as it was told.
 * Method: small envs with their own allocator, clock, random and sleep. */
#include "fail_alloc.h"

#include <errno.h>

#include "base/env.h"
#include "base/err.h"

static void test_counts_every_byte(void **state) {
    (void)state;
    fail_alloc plan;
    tarn_env *env = fail_alloc_env(&plan, 0);
    int64_t before = atomic_load(&plan.live_bytes);
    char *a = env_alloc(env, 100);
    char *b = env_calloc(env, 3, 7);
    assert_int_equal((uintptr_t)a % 16, 0);
    assert_int_equal((uintptr_t)b % 16, 0);
    for (int i = 0; i < 21; i++) {
        assert_int_equal(b[i], 0);
    }
    assert_int_equal(tarn_env_memory_now(env), atomic_load(&plan.live_bytes) - before);
    memset(a, 1, 100);
    a = env_realloc(env, a, 1000);
    assert_int_equal(a[99], 1);
    assert_int_equal(tarn_env_memory_now(env), atomic_load(&plan.live_bytes) - before);
    uint64_t peak = tarn_env_memory_peak(env);
    a = env_realloc(env, a, 10);
    assert_int_equal(a[9], 1);
    assert_true(tarn_env_memory_now(env) < peak);
    assert_int_equal(tarn_env_memory_peak(env), peak);
    void *none = env_alloc(env, 0);
    assert_non_null(none);
    env_free(env, none);
    env_free(env, NULL);
    assert_null(env_calloc(env, SIZE_MAX / 2, 3));
    assert_null(env_alloc(env, SIZE_MAX - 8));
    assert_null(env_realloc(env, a, SIZE_MAX - 8));
    env_free(env, a);
    env_free(env, b);
    fail_alloc_done(&plan, env);
}

static void test_honours_the_memory_limit(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.memory_bytes = 1000;
    tarn_env *env = NULL;
    assert_ok(tarn_env_new(&options, &env, &err));
    void *a = env_alloc(env, 500);
    assert_non_null(a);
    assert_null(env_alloc(env, 500));
    assert_null(env_realloc(env, a, 1000));
    a = env_realloc(env, a, 984);
    assert_non_null(a);
    assert_int_equal(tarn_env_memory_now(env), 1000);
    assert_null(env_alloc(env, 0));
    env_free(env, a);
    assert_true(env_count_in(env, 700)); /* what others took */
    assert_false(env_count_in(env, 301));
    assert_null(env_alloc(env, 300));
    assert_int_equal(tarn_env_memory_now(env), 700);
    env_count_out(env, 700);
    test_env_done(env);
}

static void test_options_of_other_versions(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    struct {
        tarn_env_options options;
        uint64_t more;
    } newer = {TARN_ENV_OPTIONS_INIT, 0};
    newer.options.struct_size = sizeof newer;
    assert_ok(tarn_env_new(&newer.options, &env, &err));
    tarn_env_free(env);
    newer.more = 1;
    assert_code(tarn_env_new(&newer.options, &env, &err), TARN_INVALID);
    tarn_env_options older = TARN_ENV_OPTIONS_INIT;
    older.struct_size = offsetof(tarn_env_options, memory_bytes);
    older.memory_bytes = 1; /* beyond what the caller's header had: not looked at */
    assert_ok(tarn_env_new(&older, &env, &err));
    void *a = env_alloc(env, 100);
    assert_non_null(a);
    env_free(env, a);
    tarn_env_free(env);
    older.struct_size = 0;
    assert_code(tarn_env_new(&older, &env, &err), TARN_INVALID);
    tarn_env_options many = TARN_ENV_OPTIONS_INIT;
    many.threads = 100000;
    assert_code(tarn_env_new(&many, &env, &err), TARN_INVALID);
    tarn_allocator lame = {NULL, NULL, NULL, NULL};
    tarn_env_options no_alloc = TARN_ENV_OPTIONS_INIT;
    no_alloc.allocator = &lame;
    assert_code(tarn_env_new(&no_alloc, &env, &err), TARN_INVALID);
    assert_code(tarn_env_new(NULL, NULL, &err), TARN_INVALID);
    tarn_env_free(NULL);
}

static void test_env_new_without_memory(void **state) {
    (void)state;
    for (uint64_t k = 1; k <= 2; k++) {
        fail_alloc plan;
        memset(&plan, 0, sizeof plan);
        plan.allocator =
            (tarn_allocator){&plan, fail_alloc_alloc, fail_alloc_realloc, fail_alloc_free};
        plan.fail_at = k;
        tarn_env_options options = TARN_ENV_OPTIONS_INIT;
        options.allocator = &plan.allocator;
        tarn_env *env = NULL;
        tarn_error err = TARN_ERROR_INIT;
        assert_code(tarn_env_new(&options, &env, &err), TARN_NOMEM);
        assert_null(env);
        assert_int_equal(atomic_load(&plan.live_blocks), 0);
    }
}

typedef struct world {
    int64_t now_us;
    int64_t slept_ms;
    unsigned char fill;
    char line[256];
} world;

static int64_t world_clock(void *ctx) {
    return ((world *)ctx)->now_us;
}
static void world_random(void *ctx, void *out, size_t len) {
    memset(out, ((world *)ctx)->fill, len);
}
static void world_sleep(void *ctx, int64_t ms) {
    ((world *)ctx)->slept_ms += ms;
}
static void world_log(void *ctx, tarn_log_level level, const char *room, const char *event,
                      const char *text) {
    (void)snprintf(((world *)ctx)->line, 256, "%d %s %s %s", (int)level, room, event, text);
}

static void test_borrowed_world(void **state) {
    (void)state;
    world w = {INT64_C(0x0123456789AB) * 1000 + 999, 0, 0xFF, ""};
    tarn_error err = TARN_ERROR_INIT;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.clock_us = world_clock;
    options.random = world_random;
    options.sleep_ms = world_sleep;
    options.ctx = &w;
    options.log = world_log;
    options.log_ctx = &w;
    tarn_env *env = NULL;
    assert_ok(tarn_env_new(&options, &env, &err));
    char uuid[37];
    env_uuid_v4(env, uuid);
    assert_string_equal(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    env_uuid_v7(env, uuid);
    assert_string_equal(uuid, "01234567-89ab-7fff-bfff-ffffffffffff");
    assert_int_equal(env_random_snapshot_id(env), INT64_MAX);
    w.fill = 0;
    assert_int_equal(env_random_snapshot_id(env), 1);
    env_sleep_ms(env, 7);
    env_sleep_ms(env, 0);
    env_sleep_ms(env, -5);
    assert_int_equal(w.slept_ms, 7);
    w.now_us = -1;
    assert_int_equal(env_now_us(env), -1);
    assert_int_equal(env_now_ms(env), -1);
    env_log(env, TARN_LOG_WARN, "commit", "retry", "attempt=%d\n\x01", 2);
    assert_string_equal(w.line, "1 commit retry attempt=2??");
    test_env_done(env);
}

static void test_system_world(void **state) {
    (void)state;
    tarn_env *env = test_env();
    assert_true(env_now_us(env) > INT64_C(1500000000000000));
    assert_true(env_threads(env) >= 1);
    char a[37];
    char b[37];
    env_uuid_v4(env, a);
    env_uuid_v4(env, b);
    assert_int_equal(strlen(a), 36);
    assert_string_not_equal(a, b);
    unsigned char bytes[1000];
    memset(bytes, 0, sizeof bytes);
    env_random(env, bytes, sizeof bytes);
    int zeros = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        zeros += bytes[i] == 0;
    }
    assert_true(zeros < 100);
    env_sleep_ms(env, 1);
    env_log(env, TARN_LOG_INFO, "base", "nothing", "no one listens");
    test_env_done(env);
}

static void test_cancel(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(env_check_cancel(env, &err));
    tarn_env_cancel(env);
    assert_code(env_check_cancel(env, &err), TARN_CANCELLED);
    assert_true(err.message[0] != '\0');
    env_sleep_ms(env, INT64_C(1) << 40); /* returns at once */
    tarn_env_cancel_reset(env);
    assert_ok(env_check_cancel(env, &err));
    test_env_done(env);
}

static void test_error_texts(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    assert_code(err_set(&err, TARN_CONFLICT, "table %s had\na change", "a\tb"), TARN_CONFLICT);
    assert_string_equal(err.message, "table a?b had?a change");
    assert_string_equal(err.detail, "");
    assert_code(err_add(&err, TARN_CONFLICT, "file %d", 1), TARN_CONFLICT);
    assert_code(err_add(&err, TARN_CONFLICT, "column %s", "a.b"), TARN_CONFLICT);
    assert_string_equal(err.detail, "file 1, column a.b");
    assert_string_equal(err.message, "table a?b had?a change");
    assert_int_equal(err.code, TARN_CONFLICT);
    /* An argument out of the error itself. */
    (void)err_set(&err, TARN_IO, "again: %s", err.message);
    assert_string_equal(err.message, "again: table a?b had?a change");

    assert_code(err_os(&err, ENOENT, "opening %s", "x"), TARN_NOT_FOUND);
    assert_int_equal(err.os_code, ENOENT);
    assert_non_null(strstr(err.message, "opening x: "));
    assert_code(err_os(&err, EACCES, "x"), TARN_DENIED);
    assert_code(err_os(&err, ENOSPC, "x"), TARN_IO);
    assert_code(err_os(NULL, EIO, "x"), TARN_IO);
    assert_code(err_set(NULL, TARN_INVALID, "x"), TARN_INVALID);
    assert_code(err_add(NULL, TARN_INVALID, "x"), TARN_INVALID);
    err_reset(NULL);
    err_reset(&err);
    assert_int_equal(err.code, TARN_OK);
    assert_int_equal(err.os_code, 0);
    assert_string_equal(tarn_code_name(TARN_COMMIT_UNKNOWN), "COMMIT_UNKNOWN");
    assert_string_equal(tarn_code_name((tarn_code)77), "UNKNOWN_CODE");
    assert_non_null(strstr(tarn_code_text(TARN_LIMIT), "limit"));
    assert_non_null(tarn_code_text((tarn_code)77));
}

static void test_long_error_texts_are_cut_between_characters(void **state) {
    (void)state;
    char text[1200];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4) {
            memcpy(text + i, "\xF0\x9F\x98\x80", 4);
            text[i + 4] = '\0';
        }
        tarn_error err = TARN_ERROR_INIT;
        (void)err_set(&err, TARN_INVALID, "%s", text);
        size_t len = strlen(err.message);
        assert_true(len > 500 && len < 512);
        assert_int_equal((len - shift) % 4, 0);
        for (int i = 0; i < 300; i++) {
            (void)err_add(&err, TARN_INVALID, "%s", "ab\xC3\xA9");
        }
        assert_true(strlen(err.detail) < 512 && strlen(err.detail) > 500);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_every_byte),
        cmocka_unit_test(test_honours_the_memory_limit),
        cmocka_unit_test(test_options_of_other_versions),
        cmocka_unit_test(test_env_new_without_memory),
        cmocka_unit_test(test_borrowed_world),
        cmocka_unit_test(test_system_world),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_error_texts),
        cmocka_unit_test(test_long_error_texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
