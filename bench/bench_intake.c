/* bench/bench_intake.c - many clients that send rows to one table of a service at the same time.
 * room: base
 *
 *     bench_intake PORT TABLE FILE CLIENTS REQUESTS ROWS
 *
 * TABLE is a path such as /v1/namespaces/ns/tables/t of a service at 127.0.0.1 that was started
 * with --intake. FILE is NDJSON, which is cut into bodies of ROWS lines before the clock starts.
 * Every client has one connection, kept alive, and sends REQUESTS of them one after the other, each
 * under a key of its own. Prints rows and bytes in a second, milliseconds a request (median, 99 of
 * 100, largest), and how many failed. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES 4096

typedef struct body {
    const char *bytes;
    size_t len;
} body;

typedef struct client {
    int socket, number, done;
    double sent;
    char head[512];
    size_t head_len, written; /* of head and body */
    const body *body;
    size_t got;
    char answer[ANSWER_BYTES];
} client;

typedef struct bench {
    const char *table;
    int port, clients, requests, rows, poll;
    long long run;
    body *bodies;
    int n_bodies;
    double *ms;
    int n_ms, failed;
    double bytes;
} bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static char *read_file(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        die(path);
    }
    *len = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*len + 1);
    if (text == NULL || fread(text, 1, *len, file) != *len) {
        die(path);
    }
    fclose(file);
    return text;
}

static void cut_bodies(bench *b, const char *text, size_t len) {
    const char *end = text + len;
    const char *start = text;
    int lines = 0;
    b->bodies = malloc((len / 2 + 1) * sizeof *b->bodies);
    if (b->bodies == NULL) {
        die("bodies");
    }
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;) {
        p++;
        if (++lines == b->rows) {
            b->bodies[b->n_bodies++] = (body){start, (size_t)(p - start)};
            start = p;
            lines = 0;
        }
        if (p == end) {
            break;
        }
    }
    if (b->n_bodies == 0) {
        fprintf(stderr, "the file has less than %d lines\n", b->rows);
        exit(1);
    }
}

static void connect_client(const bench *b, client *c) {
    struct sockaddr_in at;
    int one = 1;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)b->port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&at, sizeof at) != 0 ||
        fcntl(c->socket, F_SETFL, O_NONBLOCK) != 0) {
        die("connect");
    }
    (void)setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void want(const bench *b, client *c, int operation, uint32_t events) {
    struct epoll_event e = {events, {.ptr = c}};
    if (epoll_ctl(b->poll, operation, c->socket, &e) != 0) {
        die("epoll_ctl");
    }
}

static void begin_request(bench *b, client *c) {
    c->body = &b->bodies[(c->number * b->requests + c->done) % b->n_bodies];
    int n = snprintf(c->head, sizeof c->head,
                     "POST %s/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n"
                     "Content-Type: application/x-ndjson\r\nIdempotency-Key: %lld-%d-%d\r\n\r\n",
                     b->table, c->body->len, b->run, c->number, c->done);
    c->head_len = (size_t)n;
    c->written = c->got = 0;
    c->sent = now();
    b->bytes += (double)c->body->len;
}

/* True when all of it is sent. */
static int send_more(client *c) {
    size_t all = c->head_len + c->body->len;
    while (c->written < all) {
        struct iovec parts[2] = {{c->head, c->head_len},
                                 {(void *)(uintptr_t)c->body->bytes, c->body->len}};
        int first = c->written >= c->head_len;
        size_t skip = first ? c->written - c->head_len : c->written;
        parts[first].iov_base = (char *)parts[first].iov_base + skip;
        parts[first].iov_len -= skip;
        ssize_t n = writev(c->socket, parts + first, 2 - first);
        if (n < 0 && errno == EAGAIN) {
            return 0;
        }
        if (n <= 0) {
            die("write");
        }
        c->written += (size_t)n;
    }
    return 1;
}

static int is_whole(client *c) {
    c->answer[c->got] = '\0';
    const char *end = strstr(c->answer, "\r\n\r\n");
    const char *length = strstr(c->answer, "Content-Length: ");
    return end != NULL && length != NULL &&
           c->got >= (size_t)(end + 4 - c->answer) + (size_t)atol(length + 16);
}

/* True when the client has sent all, and got its answers. */
static int take_answer(bench *b, client *c) {
    ssize_t n = read(c->socket, c->answer + c->got, ANSWER_BYTES - 1 - c->got);
    if (n <= 0) {
        die("read");
    }
    c->got += (size_t)n;
    if (!is_whole(c)) {
        return 0;
    }
    b->ms[b->n_ms++] = now() - c->sent;
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 && b->failed++ == 0) {
        fprintf(stderr, "%s\n", c->answer);
    }
    if (++c->done == b->requests) {
        close(c->socket);
        return 1;
    }
    begin_request(b, c);
    want(b, c, EPOLL_CTL_MOD, send_more(c) ? EPOLLIN : EPOLLOUT);
    return 0;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void run(bench *b) {
    client *clients = calloc((size_t)b->clients, sizeof *clients);
    b->ms = calloc((size_t)b->clients * (size_t)b->requests, sizeof *b->ms);
    b->poll = epoll_create1(0);
    if (clients == NULL || b->ms == NULL || b->poll < 0) {
        die("begin");
    }
    for (int i = 0; i < b->clients; i++) {
        clients[i].number = i;
        connect_client(b, &clients[i]);
    }
    double began = now();
    for (int i = 0; i < b->clients; i++) {
        begin_request(b, &clients[i]);
        want(b, &clients[i], EPOLL_CTL_ADD, EPOLLOUT);
    }
    for (int left = b->clients; left > 0;) {
        struct epoll_event events[64];
        int n = epoll_wait(b->poll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            client *c = events[i].data.ptr;
            if ((events[i].events & EPOLLOUT) == 0) {
                left -= take_answer(b, c);
            } else if (send_more(c)) {
                want(b, c, EPOLL_CTL_MOD, EPOLLIN);
            }
        }
    }
    double s = (now() - began) / 1e3;
    qsort(b->ms, (size_t)b->n_ms, sizeof *b->ms, compare);
    printf("%d clients: %d requests of %d rows in %.2f s, %.0f rows/s, %.1f MB/s; ms median %.1f, "
           "p99 %.1f, max %.1f; %d failed\n",
           b->clients, b->n_ms, b->rows, s, (double)b->n_ms * b->rows / s, b->bytes / 1e6 / s,
           b->ms[b->n_ms / 2], b->ms[b->n_ms * 99 / 100], b->ms[b->n_ms - 1], b->failed);
    free(b->ms);
    free(clients);
    close(b->poll);
}

int main(int argc, char **argv) {
    bench b;
    size_t len;
    memset(&b, 0, sizeof b);
    if (argc != 7) {
        fprintf(stderr, "usage: bench_intake PORT TABLE FILE CLIENTS REQUESTS ROWS\n");
        return 2;
    }
    b.port = atoi(argv[1]);
    b.table = argv[2];
    b.clients = atoi(argv[4]);
    b.requests = atoi(argv[5]);
    b.rows = atoi(argv[6]);
    b.run = (long long)time(NULL) * 100000 + getpid() % 100000;
    char *text = read_file(argv[3], &len);
    cut_bodies(&b, text, len);
    run(&b);
    free(b.bodies);
    free(text);
    return b.failed > 0;
}
