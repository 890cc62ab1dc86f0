/* Goal: rows that were acknowledged are in the table exactly once when commits fail, are lost on
 * the way there or back, and when any allocation fails; requests under one key are done once.
 * Method: an intake over a catalog that misbehaves, closed and opened again without it; the k-th
 * allocation failing from the first request on; keys by hand and by threads. */
#include "fail_alloc.h"
#include "unit/write/commit/commit_case.h"

#include "service/intake.h"
#include "service/intake_keys.h"

#include <pthread.h>

#define REQUESTS 4
#define THREADS  8

typedef struct intake_case {
    table_case c;
    proxy_catalog proxy;
    service_counters counters;
    commit_queues *queues;
    char log[64];
} intake_case;

static void open_case(intake_case *t, tarn_env *env, int32_t format_version) {
    memset(t, 0, sizeof *t);
    case_open(&t->c, env, CASE_DIR_FILE);
    case_table(&t->c, format_version, "id long not null, s string", NULL, NULL);
    proxy_init(&t->proxy, t->c.catalog);
    (void)snprintf(t->log, sizeof t->log, "/tmp/tarn-intake-XXXXXX");
    assert_non_null(mkdtemp(t->log));
}

static void close_case(intake_case *t) {
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", t->log);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
    case_done(&t->c);
}

static tarn_code begin(intake_case *t, intake **in, int64_t interval_ms, tarn_error *err) {
    tarn_code code = TARN_OK;
    const intake_options options = {t->log, interval_ms, 0, 0};
    TRY(commit_queues_new(t->c.env, &t->proxy.base, &t->counters, &t->queues, err));
    TRY(intake_open(t->c.env, &t->proxy.base, t->queues, &options, in, err));
done:
    return code;
}

static void end(intake_case *t, intake *in) {
    intake_close(in);
    commit_queues_free(t->queues);
    t->queues = NULL;
}

/* How many of the requests were acknowledged. */
static int take_all(intake_case *t, intake *in, bool wait) {
    int taken = 0;
    for (int i = 0; i < REQUESTS; i++) {
        tarn_error err = TARN_ERROR_INIT;
        char key[16];
        char body[80];
        intake_answer answer;
        intake_refusal refusal;
        (void)snprintf(key, sizeof key, "key-%d", i);
        (void)snprintf(body, sizeof body, "{\"id\": %d, \"s\": \"x\"}\n{\"id\": %d}\n", 2 * i,
                       2 * i + 1);
        const intake_request request = {&t->c.ident, str_of(key), STR("me"), str_of(body),
                                        wait ? 20000 : 0};
        if (intake_take(in, &request, &answer, &refusal, &err) == TARN_OK) {
            taken++;
            assert_int_equal(answer.rows, 2);
            assert_true(!wait || answer.committed);
        } else {
            assert_true(err.code != TARN_OK && err.message[0] != '\0');
        }
    }
    return taken;
}

static int64_t count_rows(intake_case *t) {
    tarn_table_version *version = case_load(&t->c);
    const tarn_snapshot *head = metadata_current_snapshot(version->metadata);
    tarn_str text = STR("0");
    int64_t n = 0;
    if (head != NULL) {
        assert_true(properties_get(&head->summary, "total-records", &text));
    }
    assert_true(str_to_i64(text, &n));
    table_version_release(version);
    return n;
}

static void test_intake_outcomes(void **state) {
    (void)state;
    static const proxy_mode modes[] = {PROXY_APPLIED_UNKNOWN, PROXY_DROPPED_UNKNOWN,
                                       PROXY_APPLIED_CONFLICT, PROXY_FAILED};
    for (int i = 0; i < 8; i++) {
        intake_case t;
        tarn_error err = TARN_ERROR_INIT;
        intake *in = NULL;
        tarn_env *env = test_env();
        open_case(&t, env, 2);
        t.proxy.mode = modes[i / 2];
        t.proxy.times = 2;
        assert_ok(begin(&t, &in, 1, &err));
        assert_int_equal(take_all(&t, in, i % 2 == 0), REQUESTS);
        assert_int_equal(take_all(&t, in, true), REQUESTS); /* the keys are known */
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS);
        in = NULL;
        assert_ok(begin(&t, &in, 1, &err)); /* and to the next one */
        assert_int_equal(take_all(&t, in, true), REQUESTS);
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS);
        case_check_files(&t.c, modes[i / 2] == PROXY_DROPPED_UNKNOWN ? 8 : 0);
        close_case(&t);
        test_env_done(env);
    }
}

static void go_blind(void *ctx) {
    proxy_catalog *p = ctx;
    p->before = NULL;
    atomic_store(&p->blind, true);
}

static bool has_failed(intake_case *t, intake *in) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    buf_init(&text, t->c.env, 0);
    assert_ok(intake_metrics(in, &text, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    bool none = strstr((const char *)text.data, "commits_failed_total 0\n") != NULL;
    buf_release(&text);
    return !none;
}

/* The commit is done or not, and nobody can say, in this process or in the next. */
static void test_intake_unknown(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        intake_case t;
        tarn_error err = TARN_ERROR_INIT;
        intake *in = NULL;
        tarn_env *env = test_env();
        bool applied = i % 2 == 0;
        bool restarted = i > 1;
        open_case(&t, env, 2);
        t.proxy.mode = applied ? PROXY_APPLIED_UNKNOWN : PROXY_DROPPED_UNKNOWN;
        t.proxy.times = 1;
        t.proxy.before = go_blind;
        t.proxy.ctx = &t.proxy;
        assert_ok(begin(&t, &in, 1, &err));
        assert_int_equal(take_all(&t, in, false), REQUESTS);
        while (!has_failed(&t, in)) {
            env_sleep_ms(env, 1);
        }
        assert_int_equal(take_all(&t, in, false), REQUESTS); /* also while it is so */
        if (restarted) {
            end(&t, in);
            in = NULL;
            assert_ok(begin(&t, &in, 1, &err)); /* the catalog is not asked for it */
        }
        atomic_store(&t.proxy.blind, false);
        assert_int_equal(take_all(&t, in, true), REQUESTS);
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS);
        close_case(&t);
        test_env_done(env);
    }
}

/* Others go on with the table, and let its first snapshot expire. */
static void expire_first(intake_case *t) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *after = NULL;
    tarn_outcome_kind outcome;
    commit_append_file(&t->c, "others", 1);
    tarn_table_version *version = case_load(&t->c);
    assert_int_equal(version->metadata->n_snapshots, 2);
    const tarn_change expire = {.kind = CHANGE_REMOVE_SNAPSHOTS,
                                .n_ids = 1,
                                .ids = &version->metadata->snapshots[0]->snapshot_id};
    const tarn_change_set set = {0, NULL, 1, &expire};
    assert_ok(catalog_commit(t->c.catalog, &t->c.ident, version, &set, &outcome, &after, &err));
    table_version_release(after);
    table_version_release(version);
}

/* The answer to the commit was lost, and its snapshot expired before anybody could look. */
static void test_intake_expired(void **state) {
    (void)state;
    for (int version = 1; version <= 3; version++) {
        intake_case t;
        tarn_error err = TARN_ERROR_INIT;
        intake *in = NULL;
        tarn_env *env = test_env();
        open_case(&t, env, version);
        t.proxy.mode = PROXY_APPLIED_UNKNOWN;
        t.proxy.times = 1;
        t.proxy.before = go_blind;
        t.proxy.ctx = &t.proxy;
        assert_ok(begin(&t, &in, 60000, &err));
        assert_int_equal(take_all(&t, in, false), REQUESTS);
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS);
        expire_first(&t);
        in = NULL;
        assert_ok(begin(&t, &in, 1, &err));
        atomic_store(&t.proxy.blind, false);
        assert_int_equal(take_all(&t, in, true), REQUESTS);
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS + 10);
        close_case(&t);
        test_env_done(env);
    }
}

static atomic_llong shift_us;  /* of the clock below */
static atomic_llong stands_us; /* when it stands still; 0: it goes */

static int64_t told_clock(void *ctx) {
    struct timespec now;
    (void)ctx;
    if (atomic_load(&stands_us) != 0) {
        return atomic_load(&stands_us);
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + atomic_load(&shift_us);
}

/* Rows that wait for long, after failures or without, are no good health; when the clock is set
 * back they are committed all the same. */
static void test_intake_health(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool fails = i > 0;
        intake_case t;
        tarn_error err = TARN_ERROR_INIT;
        intake *in = NULL;
        tarn_env *env = NULL;
        tarn_buf text;
        tarn_env_options options = TARN_ENV_OPTIONS_INIT;
        options.clock_us = told_clock;
        atomic_store(&shift_us, 0);
        const int64_t began = told_clock(NULL);
        assert_ok(tarn_env_new(&options, &env, &err));
        buf_init(&text, env, 0);
        open_case(&t, env, 2);
        assert_ok(begin(&t, &in, fails ? 1 : 7200000, &err));
        t.proxy.mode = fails ? PROXY_FAILED : PROXY_PASS;
        assert_int_equal(take_all(&t, in, false), REQUESTS);
        while (fails && !has_failed(&t, in)) {
            env_sleep_ms(env, 1);
        }
        atomic_store(&stands_us, began + INT64_C(29000000));
        assert_true(intake_health(in, &text));
        atomic_store(&stands_us, began + INT64_C(400000000) + (fails ? 0 : INT64_C(7200000000)));
        if (fails) {
            assert_false(intake_health(in, &text));
            assert_ok(buf_append_char(&text, '\0', &err));
            assert_non_null(strstr((const char *)text.data, "ns.t wait for"));
            assert_non_null(strstr((const char *)text.data, "not allowed"));
        }
        t.proxy.mode = PROXY_PASS;
        atomic_store(&shift_us, -INT64_C(86400000000));
        atomic_store(&stands_us, 0);
        assert_int_equal(take_all(&t, in, true), REQUESTS);
        assert_true(intake_health(in, &text));
        end(&t, in);
        assert_int_equal(count_rows(&t), 2 * REQUESTS);
        buf_release(&text);
        close_case(&t);
        test_env_done(env);
    }
}

static bool fail_at(uint64_t k) {
    fail_alloc plan;
    intake_case t;
    intake *in = NULL;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = fail_alloc_env(&plan, 0);
    open_case(&t, env, 2);
    atomic_store(&plan.count, 0);
    plan.fail_at = k;
    int taken = begin(&t, &in, 1, &err) == TARN_OK ? take_all(&t, in, false) : 0;
    end(&t, in);
    plan.fail_at = 0;
    assert_true(count_rows(&t) <= 2 * taken);
    in = NULL;
    assert_ok(begin(&t, &in, 1, &err));
    assert_int_equal(take_all(&t, in, true), REQUESTS);
    end(&t, in);
    assert_int_equal(count_rows(&t), 2 * REQUESTS);
    close_case(&t);
    bool failed = atomic_load(&plan.failed);
    fail_alloc_done(&plan, env);
    return failed;
}

static void test_intake_memory(void **state) {
    (void)state;
    for (uint64_t k = 1; fail_at(k); k += test_every() ? 1 : 1 + k / 4) {
    }
}

/* ---- keys ---- */

static intake_key make_key(uint8_t key, uint8_t body) {
    intake_key k;
    memset(&k, 0, sizeof k);
    k.key[0] = key;
    k.body[0] = body;
    return k;
}

static void test_keys(void **state) {
    (void)state;
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.clock_us = told_clock;
    atomic_store(&shift_us, 0);
    assert_ok(tarn_env_new(&options, &env, &err));
    atomic_store(&stands_us, told_clock(NULL));
    intake_keys *keys;
    intake_key done;
    intake_key one = make_key(1, 1);
    const intake_key other = make_key(1, 2);
    const intake_key two = make_key(2, 1);
    const intake_key three = make_key(3, 1);
    assert_ok(intake_keys_new(env, 300, 2, &keys, &err));
    assert_int_equal(intake_keys_begin(keys, &one, &done), INTAKE_TURN_TAKE);
    assert_int_equal(intake_keys_begin(keys, &other, &done), INTAKE_TURN_MISUSED);
    intake_keys_end(keys, &one, NULL); /* it came to nothing: another may have it */
    assert_int_equal(intake_keys_begin(keys, &other, &done), INTAKE_TURN_TAKE);
    intake_keys_end(keys, &other, NULL);
    assert_int_equal(intake_keys_begin(keys, &one, &done), INTAKE_TURN_TAKE);
    one.position = 7;
    one.time_ms = env_now_ms(env);
    intake_keys_end(keys, &one, &one);
    assert_int_equal(intake_keys_begin(keys, &one, &done), INTAKE_TURN_REPEATED);
    assert_int_equal(done.position, 7);
    assert_int_equal(intake_keys_begin(keys, &two, &done), INTAKE_TURN_TAKE);
    assert_int_equal(intake_keys_begin(keys, &three, &done), INTAKE_TURN_FULL);
    atomic_fetch_add(&stands_us, 301000);
    assert_int_equal(intake_keys_begin(keys, &one, &done), INTAKE_TURN_TAKE);
    assert_int_equal(intake_keys_count(keys), 2); /* one at work stays, however old */
    intake_keys_free(keys);
    atomic_store(&stands_us, 0);
    test_env_done(env);
}

typedef struct key_race {
    intake_keys *keys;
    pthread_mutex_t lock;
    int failures, takes;
    int64_t positions[THREADS];
    int n;
} key_race;

static void *race(void *ctx) {
    key_race *r = ctx;
    intake_key key = make_key(9, 9);
    intake_key done;
    while (intake_keys_begin(r->keys, &key, &done) == INTAKE_TURN_TAKE) {
        (void)pthread_mutex_lock(&r->lock);
        r->takes++;
        bool fails = r->failures > 0;
        r->failures -= fails;
        (void)pthread_mutex_unlock(&r->lock);
        key.position = 5;
        key.time_ms = INT64_MAX / 2;
        intake_keys_end(r->keys, &key, fails ? NULL : &key);
        if (!fails) {
            done = key;
            break;
        }
    }
    (void)pthread_mutex_lock(&r->lock);
    r->positions[r->n++] = done.position;
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void test_keys_race(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    pthread_t threads[THREADS];
    key_race r;
    memset(&r, 0, sizeof r);
    r.failures = 3;
    (void)pthread_mutex_init(&r.lock, NULL);
    assert_ok(intake_keys_new(env, 1000, 10, &r.keys, &err));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race, &r), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    assert_int_equal(r.takes, 4);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(r.positions[i], 5);
    }
    intake_keys_free(r.keys);
    (void)pthread_mutex_destroy(&r.lock);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_keys_race),
        cmocka_unit_test(test_intake_outcomes),
        cmocka_unit_test(test_intake_unknown),
        cmocka_unit_test(test_intake_expired),
        cmocka_unit_test(test_intake_health),
        cmocka_unit_test(test_intake_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
