/* Goal: slow clients hold nothing for long, and hold nobody up; those in time, and work, are left
 * alone. Method: both ends of real sockets, a clock of the test's own, and the look of the thread
 * done by hand. */
#include "test.h"

#include "service/connections.h"

#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 4 };

typedef struct bench {
    tarn_env *env;
    int64_t now_us;
    connections *open;
    connection_entry x[MOST + 2];
    int ends[MOST + 2][2];
} bench;

static int64_t read_clock(void *ctx) {
    return ((bench *)ctx)->now_us;
}

static void begin(bench *b) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    connection_limits limits = {.connections = MOST, .idle_ms = 20000, .request_ms = 10000};
    tarn_error err = TARN_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->now_us = 1000000;
    options.clock_us = read_clock;
    options.ctx = b;
    assert_ok(tarn_env_new(&options, &b->env, &err));
    assert_ok(connections_new(b->env, &limits, &b->open, &err));
}

static void come(bench *b, int i) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, b->ends[i]), 0);
    connections_open(b->open, &b->x[i], b->ends[i][0]);
}

static void go(bench *b, int i) {
    connections_close(b->open, &b->x[i]);
    (void)close(b->ends[i][0]);
    (void)close(b->ends[i][1]);
}

static void end(bench *b) {
    connections_free(b->open);
    tarn_env_free(b->env);
}

/* The client's end reads the end of the stream. */
static bool is_cut(const bench *b, int i) {
    char byte;
    return recv(b->ends[i][1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void pass(bench *b, int64_t ms) {
    b->now_us += ms * 1000;
    connections_sweep(b->open, b->now_us / 1000);
}

static void test_deadlines(void **state) {
    bench b;
    (void)state;
    begin(&b);
    for (int i = 0; i < MOST; i++) {
        come(&b, i);
    }
    connections_stage(b.open, &b.x[1], CONNECTION_AT_WORK, 0);
    assert_int_equal(connections_busy(b.open), 1);
    pass(&b, 9000);
    connections_stage(b.open, &b.x[2], CONNECTION_COMING, 0);
    connections_stage(b.open, &b.x[3], CONNECTION_AT_WORK, 0);
    connections_stage(b.open, &b.x[3], CONNECTION_WAITING, 0); /* answered: it may be idle */
    assert_false(is_cut(&b, 0));
    pass(&b, 1001);
    assert_true(is_cut(&b, 0)); /* its head never came whole */
    assert_false(is_cut(&b, 2));
    connections_stage(b.open, &b.x[2], CONNECTION_COMING, 640000); /* 10 s more at 64 a ms */
    pass(&b, 18000);
    assert_false(is_cut(&b, 2));
    pass(&b, 2000);
    assert_true(is_cut(&b, 2));
    assert_false(is_cut(&b, 3));
    pass(&b, 10000);
    assert_true(is_cut(&b, 3));
    pass(&b, 1000000);
    assert_false(is_cut(&b, 1)); /* work has no end by time */
    connections_stage(b.open, &b.x[1], CONNECTION_ANSWERING, 128);
    assert_int_equal(connections_busy(b.open), 1);
    pass(&b, 10010);
    assert_true(is_cut(&b, 1)); /* it does not take its answer */
    assert_int_equal(connections_busy(b.open), 0);
    for (int i = 0; i < MOST; i++) {
        go(&b, i);
    }
    end(&b);
}

static void test_too_many(void **state) {
    bench b;
    (void)state;
    begin(&b);
    for (int i = 0; i < MOST; i++) {
        come(&b, i);
    }
    connections_stage(b.open, &b.x[0], CONNECTION_AT_WORK, 0);
    connections_stage(b.open, &b.x[1], CONNECTION_COMING, 0);
    come(&b, MOST); /* nobody has waited long: it is one too many */
    assert_false(connections_admit(b.open, &b.x[MOST]));
    go(&b, MOST);
    pass(&b, 500);
    connections_stage(b.open, &b.x[1], CONNECTION_COMING,
                      64 * 60000); /* quick enough for a minute */
    connections_stage(b.open, &b.x[2], CONNECTION_COMING, 10);
    pass(&b, 600);
    come(&b, MOST);
    assert_true(is_cut(&b, 3)); /* waited longest */
    assert_true(connections_admit(b.open, &b.x[MOST]));
    connections_stage(b.open, &b.x[MOST], CONNECTION_AT_WORK, 0);
    come(&b, MOST + 1);
    assert_false(connections_admit(b.open, &b.x[MOST + 1]));
    assert_false(is_cut(&b, 2));
    pass(&b, 500); /* the drop of a body makes room for it */
    assert_true(is_cut(&b, 2));
    assert_true(connections_admit(b.open, &b.x[MOST + 1]));
    assert_false(is_cut(&b, 0) || is_cut(&b, 1) || is_cut(&b, MOST));
    for (int i = 0; i < MOST + 2; i++) {
        go(&b, i);
    }
    end(&b);
}

static void test_watched(void **state) {
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    char byte;
    (void)state;
    begin(&b);
    come(&b, 0);
    b.x[0].until_ms = 0;
    assert_ok(connections_watch(b.open, &err));
    assert_int_equal(recv(b.ends[0][1], &byte, 1, 0), 0); /* the thread came by */
    go(&b, 0);
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deadlines),
                                       cmocka_unit_test(test_too_many),
                                       cmocka_unit_test(test_watched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
