/* Goal: requests go out as they were meant, answers come back whole or not at all, nothing grows
 * beyond its limit, and the caller knows whether a request may have been read. Method: a server of
 * this test plays fixed bytes; memory fails at every allocation. */
#include "fail_alloc.h"
#include "test.h"

#include "net/http.h"
#include "net/wait.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static tarn_error err = TARN_ERROR_INIT;

#define MOST_CONNECTIONS 8

/* Answers each request by the same bytes; empty: closes without an answer. */
typedef struct stub stub;
typedef struct connection {
    stub *of;
    int fd;
    pthread_t thread;
} connection;
struct stub {
    int fd;
    int port;
    const char *answer;
    bool keep;
    pthread_t thread;
    char got[65536]; /* the last request */
    connection connections[MOST_CONNECTIONS];
    int n_connections;
};

static bool is_whole(const char *text, size_t len) {
    const char *body = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "Content-Length: ");
    long want = length != NULL ? strtol(length + 16, NULL, 10) : 0;
    return body != NULL && len >= (size_t)(body + 4 - text) + (size_t)want;
}

static bool read_request(stub *s, int fd) {
    char got[sizeof s->got] = {0};
    size_t len = 0;
    while (!is_whole(got, len)) {
        ssize_t n = read(fd, got + len, sizeof got - 1 - len);
        if (n <= 0) {
            return false;
        }
        len += (size_t)n;
        got[len] = 0;
    }
    memcpy(s->got, got, sizeof got);
    return true;
}

static void *talk(void *ctx) {
    connection *c = ctx;
    stub *s = c->of;
    while (read_request(s, c->fd)) {
        size_t len = strlen(s->answer);
        if (send(c->fd, s->answer, len, MSG_NOSIGNAL) != (ssize_t)len || !s->keep) {
            break;
        }
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    return NULL;
}

static void *serve(void *ctx) {
    stub *s = ctx;
    while (s->n_connections < MOST_CONNECTIONS) {
        connection *c = &s->connections[s->n_connections];
        *c = (connection){.of = s, .fd = accept(s->fd, NULL, NULL)};
        if (c->fd < 0 || pthread_create(&c->thread, NULL, talk, c) != 0) {
            return NULL;
        }
        s->n_connections++;
    }
    return NULL;
}

static void start(stub *s, const char *answer, bool keep) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    memset(s, 0, sizeof *s);
    s->answer = answer;
    s->keep = keep;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(stub *s) {
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    for (int i = 0; i < s->n_connections; i++) {
        (void)shutdown(s->connections[i].fd, SHUT_RDWR);
        (void)pthread_join(s->connections[i].thread, NULL);
        (void)close(s->connections[i].fd);
    }
}

typedef struct exchange {
    http_response response;
    bool sent;
    tarn_code code;
} exchange;

/* The response's body stays the caller's on success. */
static exchange ask(http_client *client, tarn_arena *arena, const stub *s, http_request request) {
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
    stub s;                                                                                        \
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
    start(&s, "HTTP/1.1 201 Made\r\nContent-Length: 5\r\neTag:  \"x\" \r\n\r\nhello", true);
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
    stop(&s);
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
        start(&s, CASES[i].answer, false);
        exchange x = ask(client, &arena, &s, (http_request){.method = "GET", .once = true});
        assert_code(x.code, CASES[i].code);
        assert_true(x.sent);
        assert_null(strstr(err.message, "%20")); /* no query in messages */
        stop(&s);
    }
    start(&s, "", false);
    stop(&s);
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
    start(&s, many, false);
    assert_code(ask(client, &arena, &s, (http_request){.method = "GET"}).code, TARN_LIMIT);
    stop(&s);
    start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world", false);
    exchange x = ask(client, &arena, &s, (http_request){.method = "GET", .max_body = 10});
    assert_code(x.code, TARN_LIMIT);
    assert_true(x.sent);
    stop(&s);
    start(&s, "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
          false);
    x = ask(client, &arena, &s, (http_request){.method = "GET"});
    assert_ok(x.code);
    assert_int_equal(x.response.status, 307); /* not followed */
    http_response_release(&x.response);
    stop(&s);
    WITHOUT_CLIENT;
}

static void is_cancelled(void **state) {
    WITH_CLIENT;
    start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false);
    tarn_env_cancel(env);
    exchange x = ask(client, &arena, &s, (http_request){.method = "GET"});
    assert_code(x.code, TARN_CANCELLED);
    assert_false(x.sent);
    bool ready = true;
    assert_code(net_wait_readable(env, s.fd, 1000, true, &ready, &err), TARN_CANCELLED);
    assert_ok(net_wait_readable(env, s.fd, 20, false, &ready, &err));
    assert_false(ready);
    tarn_env_cancel_reset(env);
    stop(&s);
    WITHOUT_CLIENT;
}

static void survives_no_memory(void **state) {
    (void)state;
    stub s;
    bool failed = true;
    const http_header h = {STR("X"), STR("1")};
    for (uint64_t k = 1; failed; k++) {
        start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello", true);
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
        stop(&s);
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
