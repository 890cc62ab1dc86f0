/* Goal: requests go out as they were meant, answers come back whole or not at all, nothing grows
 * beyond its limit, and the caller knows whether a request may have been read. Method: a server of
 * this test plays fixed bytes; memory fails at every allocation. */
#include "fail_alloc.h"
#include "http_stub.h"

#include "net/http.h"
#include "net/wait.h"

static tarn_error err = TARN_ERROR_INIT;

typedef struct exchange {
    http_response response;
    bool sent;
    tarn_code code;
} exchange;

/* The response's body stays the caller's on success. */
static exchange ask(http_client *client, tarn_arena *arena, const http_stub *s,
                    http_request request) {
    exchange x = {.sent = false};
    request.url = str_of(arena_printf(arena, "http://127.0.0.1:%d/a?b=%%20", s->port));
    if (request.url.data == NULL) {
        x.code = TARN_NOMEM;
        return x;
    }
    request.max_body = request.max_body > 0 ? request.max_body : 1000;
    x.code = http_send(client, arena, &request, &x.response, &x.sent, &err);
    return x;
}

#define WITH_CLIENT                                                                                \
    tarn_env *env = test_env();                                                                    \
    tarn_arena arena;                                                                              \
    http_client *client = NULL;                                                                    \
    http_stub s;                                                                                   \
    (void)state;                                                                                   \
    arena_init(&arena, env);                                                                       \
    assert_ok(http_client_new(env, NULL, &client, &err))
#define WITHOUT_CLIENT                                                                             \
    http_client_free(client);                                                                      \
    arena_release(&arena);                                                                         \
    test_env_done(env)

static void sends_and_receives(void **state) {
    WITH_CLIENT;
    const http_header headers[] = {{STR("X-One"), STR("1")}, {STR("X-Empty"), STR("")}};
    stub_start(&s, "HTTP/1.1 201 Made\r\nContent-Length: 5\r\neTag:  \"x\" \r\n\r\nhello", true);
    for (int i = 0; i < 3; i++) {
        exchange x =
            ask(client, &arena, &s,
                (http_request){
                    .method = "POST", .n_headers = 2, .headers = headers, .body = STR("a\0b")});
        assert_ok(x.code);
        assert_true(x.sent);
        assert_int_equal(x.response.status, 201);
        assert_true(str_is(buf_str(&x.response.body), "hello"));
        assert_true(str_is(http_response_header(&x.response, "etag"), "\"x\""));
        assert_null(http_response_header(&x.response, "none").data);
        http_response_release(&x.response);
    }
    assert_int_equal(s.n_connections, 1); /* reused */
    assert_non_null(strstr(s.got, "POST /a?b=%20 HTTP/1.1\r\n"));
    assert_non_null(strstr(s.got, "X-One: 1\r\n"));
    assert_non_null(strstr(s.got, "X-Empty:"));
    assert_null(strstr(s.got, "Expect:"));
    exchange x = ask(client, &arena, &s, (http_request){.method = "DELETE", .once = true});
    assert_ok(x.code);
    assert_int_equal(s.n_connections, 2); /* once: a connection of its own */
    http_response_release(&x.response);
    stub_stop(&s);
    WITHOUT_CLIENT;
}

static void reports_what_went_wrong(void **state) {
    static const struct {
        const char *answer;
        tarn_code code;
    } CASES[] = {
        {"", TARN_IO},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", TARN_IO},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\nhello", TARN_IO},
        {"no such thing\r\n\r\n", TARN_IO},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", TARN_IO},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", TARN_IO},
    };
    WITH_CLIENT;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        stub_start(&s, CASES[i].answer, false);
        exchange x = ask(client, &arena, &s, (http_request){.method = "GET", .once = true});
        assert_code(x.code, CASES[i].code);
        assert_true(x.sent);
        assert_null(strstr(err.message, "%20")); /* no query in messages */
        stub_stop(&s);
    }
    stub_start(&s, "", false);
    stub_stop(&s);
    exchange x = ask(client, &arena, &s, (http_request){.method = "GET"});
    assert_code(x.code, TARN_IO);
    assert_false(x.sent); /* nobody listened */
    const http_header bad = {STR("X"), STR("a\r\nY: b")};
    x = ask(client, &arena, &s, (http_request){.method = "GET", .n_headers = 1, .headers = &bad});
    assert_code(x.code, TARN_INVALID);
    http_request odd = {.method = "GET", .url = STR("file:///etc/passwd"), .max_body = 10};
    assert_code(http_send(client, &arena, &odd, &x.response, &x.sent, &err), TARN_INVALID);
    assert_false(x.sent);
    WITHOUT_CLIENT;
}

static void keeps_limits(void **state) {
    WITH_CLIENT;
    static char many[60000];
    size_t len = (size_t)snprintf(many, sizeof many, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 400; i++) {
        len += (size_t)snprintf(many + len, sizeof many - len, "X-%d: y\r\n", i);
    }
    (void)snprintf(many + len, sizeof many - len, "Content-Length: 0\r\n\r\n");
    stub_start(&s, many, false);
    assert_code(ask(client, &arena, &s, (http_request){.method = "GET"}).code, TARN_LIMIT);
    stub_stop(&s);
    stub_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world", false);
    exchange x = ask(client, &arena, &s, (http_request){.method = "GET", .max_body = 10});
    assert_code(x.code, TARN_LIMIT);
    assert_true(x.sent);
    stub_stop(&s);
    stub_start(&s, "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
               false);
    x = ask(client, &arena, &s, (http_request){.method = "GET"});
    assert_ok(x.code);
    assert_int_equal(x.response.status, 307); /* not followed */
    http_response_release(&x.response);
    stub_stop(&s);
    WITHOUT_CLIENT;
}

static void is_cancelled(void **state) {
    WITH_CLIENT;
    stub_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false);
    tarn_env_cancel(env);
    exchange x = ask(client, &arena, &s, (http_request){.method = "GET"});
    assert_code(x.code, TARN_CANCELLED);
    assert_false(x.sent);
    bool ready = true;
    assert_code(net_wait_readable(env, s.fd, 1000, true, &ready, &err), TARN_CANCELLED);
    assert_ok(net_wait_readable(env, s.fd, 20, false, &ready, &err));
    assert_false(ready);
    tarn_env_cancel_reset(env);
    stub_stop(&s);
    WITHOUT_CLIENT;
}

static void survives_no_memory(void **state) {
    (void)state;
    http_stub s;
    bool failed = true;
    const http_header h = {STR("X"), STR("1")};
    for (uint64_t k = 1; failed; k++) {
        stub_start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello", true);
        fail_alloc plan;
        tarn_arena arena;
        http_client *client = NULL;
        tarn_env *env = fail_alloc_env(&plan, k);
        arena_init(&arena, env);
        tarn_code code = http_client_new(env, NULL, &client, &err);
        if (code == TARN_OK) {
            exchange x = ask(client, &arena, &s,
                             (http_request){.method = "GET", .n_headers = 1, .headers = &h});
            code = x.code;
            if (code == TARN_OK) {
                http_response_release(&x.response);
            }
        }
        failed = plan.failed;
        assert_true(code == TARN_OK || (failed && code == TARN_NOMEM));
        http_client_free(client);
        arena_release(&arena);
        fail_alloc_done(&plan, env);
        stub_stop(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_and_receives), cmocka_unit_test(reports_what_went_wrong),
        cmocka_unit_test(keeps_limits),       cmocka_unit_test(is_cancelled),
        cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
