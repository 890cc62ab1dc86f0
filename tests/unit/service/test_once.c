/* Goal: a request under a key is done once: its answer is given again, and who comes while it is
 * at work waits. Method: keys by hand, and threads that send the same request at once. */
#include "fail_alloc.h"

#include "service/once.h"

#include <pthread.h>

#define KEY     STR("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
#define THREADS 8

typedef struct bench {
    tarn_env *env;
    once_keys *keys;
    tarn_buf body;
    int status;
    bool has_body;
    int runs;     /* of the request */
    int failures; /* how many of them come to nothing first */
    pthread_mutex_t lock;
} bench;

static void bench_open(bench *b) {
    tarn_error err = TARN_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->env = test_env();
    assert_ok(once_keys_new(b->env, &b->keys, &err));
    buf_init(&b->body, b->env, 0);
    (void)pthread_mutex_init(&b->lock, NULL);
}

static void bench_close(bench *b) {
    buf_release(&b->body);
    once_keys_free(b->keys);
    (void)pthread_mutex_destroy(&b->lock);
    test_env_done(b->env);
}

static once_turn begin(bench *b, tarn_str key, uint64_t request) {
    buf_reset(&b->body);
    return once_begin(b->keys, key, request, &b->status, &b->has_body, &b->body);
}

static void answers_are_held(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    assert_int_equal(begin(&b, KEY, 1), ONCE_RUN);
    once_end(b.keys, KEY, 409, STR("taken"));
    assert_int_equal(begin(&b, KEY, 1), ONCE_REPLAY);
    assert_int_equal(b.status, 409);
    assert_true(b.has_body && str_is(buf_str(&b.body), "taken"));
    assert_int_equal(begin(&b, KEY, 2), ONCE_MISUSED);
    assert_int_equal(begin(&b, STR("117f22e2-79b0-7cc3-98c4-dc0c0c07398f"), 1), ONCE_RUN);
    once_end(b.keys, STR("117f22e2-79b0-7cc3-98c4-dc0c0c07398f"), 204, STR(""));
    assert_int_equal(begin(&b, STR("117f22e2-79b0-7cc3-98c4-dc0c0c07398f"), 1), ONCE_REPLAY);
    assert_false(b.has_body);
    bench_close(&b);
}

/* What may go otherwise the next time is done again. */
static void failures_are_not_held(void **state) {
    (void)state;
    static const int statuses[] = {500, 503, 401, 403, 429};
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        assert_int_equal(begin(&b, KEY, 1), ONCE_RUN);
        once_end(b.keys, KEY, statuses[i], STR("x"));
    }
    assert_int_equal(begin(&b, KEY, 7), ONCE_RUN); /* nor is the key taken */
    once_end(b.keys, KEY, 200, STR(""));
    bench_close(&b);
}

static void long_answers_are_not_held(void **state) {
    (void)state;
    static char text[5000];
    bench b;
    bench_open(&b);
    memset(text, 'x', sizeof text);
    assert_int_equal(begin(&b, KEY, 1), ONCE_RUN);
    once_end(b.keys, KEY, 200, str_make(text, sizeof text));
    assert_int_equal(begin(&b, KEY, 1), ONCE_REPLAY);
    assert_true(b.has_body && b.body.len == 0);
    bench_close(&b);
}

static void keys_are_uuids(void **state) {
    (void)state;
    assert_true(once_key_valid(KEY));
    assert_false(once_key_valid(STR("")));
    assert_false(once_key_valid(STR("017f22e2-79b0-7cc3-98c4-dc0c0c07398")));
    assert_false(once_key_valid(STR("017f22e2x79b0-7cc3-98c4-dc0c0c07398f")));
}

static void *send_one(void *ctx) {
    bench *b = ctx;
    tarn_buf body;
    int status = 0;
    bool has_body = false;
    buf_init(&body, b->env, 0);
    once_turn turn = once_begin(b->keys, KEY, 1, &status, &has_body, &body);
    if (turn == ONCE_RUN) {
        (void)pthread_mutex_lock(&b->lock);
        bool fails = b->runs++ < b->failures;
        (void)pthread_mutex_unlock(&b->lock);
        env_sleep_ms(b->env, 5);
        once_end(b->keys, KEY, fails ? 503 : 200, STR("done"));
        status = fails ? 503 : 200;
    }
    buf_release(&body);
    return (void *)(intptr_t)status;
}

static void who_comes_meanwhile_waits(void **state) {
    (void)state;
    for (int failures = 0; failures < 3; failures++) {
        bench b;
        pthread_t threads[THREADS];
        int n_done = 0;
        bench_open(&b);
        b.failures = failures;
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, send_one, &b), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            void *status;
            assert_int_equal(pthread_join(threads[i], &status), 0);
            n_done += (intptr_t)status == 200;
        }
        assert_int_equal(b.runs, failures + 1); /* done once, after what failed */
        assert_int_equal(n_done, THREADS - failures);
        bench_close(&b);
    }
}

static void without_memory(void **state) {
    (void)state;
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        bench b = {.env = fail_alloc_env(&plan, k)};
        tarn_code code = once_keys_new(b.env, &b.keys, &err);
        if (code == TARN_OK) { /* a key that cannot be held is done all the same */
            buf_init(&b.body, b.env, 0);
            for (int i = 0; i < 2; i++) {
                if (begin(&b, KEY, 1) == ONCE_RUN) {
                    once_end(b.keys, KEY, 200, STR("done"));
                }
            }
            buf_release(&b.body);
            once_keys_free(b.keys);
        }
        failed = plan.failed;
        assert_true(code == TARN_OK || (failed && code == TARN_NOMEM));
        fail_alloc_done(&plan, b.env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_held),          cmocka_unit_test(failures_are_not_held),
        cmocka_unit_test(long_answers_are_not_held), cmocka_unit_test(keys_are_uuids),
        cmocka_unit_test(who_comes_meanwhile_waits), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
