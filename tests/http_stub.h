/* tests/http_stub.h - a server of a test on a free port of this machine: a thread a connection,
 * each request answered by fixed bytes, or by what the test makes of it. */
#ifndef TARN_TEST_HTTP_STUB_H
#define TARN_TEST_HTTP_STUB_H

#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CONNECTIONS 8

typedef struct http_stub http_stub;
typedef struct stub_connection {
    http_stub *of;
    int fd;
    pthread_t thread;
} stub_connection;
struct http_stub {
    int fd;
    int port;
    /* Empty: closes without an answer. */
    const char *answer;
    bool keep;
    /* NULL, or gives the answer to what was got; the stub frees it. */
    char *(*reply)(void *ctx, const char *got);
    void *ctx;
    pthread_t thread;
    char got[65536]; /* the last request */
    stub_connection connections[MOST_CONNECTIONS];
    int n_connections;
};

static inline bool stub_is_whole(const char *text, size_t len) {
    const char *body = strstr(text, "\r\n\r\n");
    const char *length = strstr(text, "Content-Length: ");
    long want = length != NULL ? strtol(length + 16, NULL, 10) : 0;
    return body != NULL && len >= (size_t)(body + 4 - text) + (size_t)want;
}

static inline bool stub_read(http_stub *s, int fd) {
    char got[sizeof s->got] = {0};
    size_t len = 0;
    while (!stub_is_whole(got, len)) {
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

static inline void *stub_talk(void *ctx) {
    stub_connection *c = ctx;
    http_stub *s = c->of;
    bool open = true;
    while (open && stub_read(s, c->fd)) {
        char *made = s->reply != NULL ? s->reply(s->ctx, s->got) : NULL;
        const char *answer = made != NULL ? made : s->answer;
        size_t len = strlen(answer);
        open = send(c->fd, answer, len, MSG_NOSIGNAL) == (ssize_t)len && s->keep;
        free(made);
    }
    (void)shutdown(c->fd, SHUT_RDWR);
    return NULL;
}

static inline void *stub_serve(void *ctx) {
    http_stub *s = ctx;
    while (s->n_connections < MOST_CONNECTIONS) {
        stub_connection *c = &s->connections[s->n_connections];
        *c = (stub_connection){.of = s, .fd = accept(s->fd, NULL, NULL)};
        if (c->fd < 0 || pthread_create(&c->thread, NULL, stub_talk, c) != 0) {
            return NULL;
        }
        s->n_connections++;
    }
    return NULL;
}

/* reply and ctx are set before, or NULL. */
static inline void stub_listen(http_stub *s, const char *answer, bool keep) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    s->answer = answer;
    s->keep = keep;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, stub_serve, s), 0);
}

static inline void stub_start(http_stub *s, const char *answer, bool keep) {
    memset(s, 0, sizeof *s);
    stub_listen(s, answer, keep);
}

static inline void stub_stop(http_stub *s) {
    (void)shutdown(s->fd, SHUT_RDWR);
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    for (int i = 0; i < s->n_connections; i++) {
        (void)shutdown(s->connections[i].fd, SHUT_RDWR);
        (void)pthread_join(s->connections[i].thread, NULL);
        (void)close(s->connections[i].fd);
    }
}

#endif
