/* bench/bench_batch.c - many clients that commit to one table of a service at the same time.
 * room: base
 *
 *     bench_batch PORT TABLE FILE FOLDER CLIENTS COMMITS [append|merge-append] [alone]
 *
 * TABLE is a path such as /v1/namespaces/ns/tables/t of a service at 127.0.0.1. Every client has
 * one connection, kept alive, and sends COMMITS appends one after the other, each of one file of
 * FOLDER (below the table's location) that was linked from FILE before the clock starts: files that
 * are already there. alone: appends do not share snapshots. Prints commits in a second,
 * milliseconds a commit (median, 99 of 100, largest), and how many failed. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_BYTES 4096

typedef struct client {
    int socket, number, done;
    double sent;
    size_t got;
    char answer[ANSWER_BYTES];
} client;

typedef struct bench {
    const char *table, *file, *folder, *kind;
    int port, clients, commits;
    int share;
    long long bytes, run;
    double *ms;
    int n_ms, failed;
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

static void name_file(const bench *b, int number, int commit, char *out, size_t size) {
    snprintf(out, size, "%s/b-%lld-%d-%d.parquet", b->folder, b->run, number, commit);
}

static void link_files(bench *b) {
    char path[1024];
    struct stat info;
    if (stat(b->file, &info) != 0) {
        die(b->file);
    }
    b->bytes = (long long)info.st_size;
    for (int i = 0; i < b->clients; i++) {
        for (int k = 0; k < b->commits; k++) {
            name_file(b, i, k, path, sizeof path);
            if (link(b->file, path) != 0) {
                die(path);
            }
        }
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
    if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&at, sizeof at) != 0) {
        die("connect");
    }
    (void)setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void send_next(const bench *b, client *c) {
    char path[1024], body[2048], request[4096];
    name_file(b, c->number, c->done, path, sizeof path);
    int n =
        snprintf(body, sizeof body,
                 "{\"kind\":\"%s\",\"commit-id\":\"%lld-%d-%d\",\"share\":%s,\"data-files\":[{"
                 "\"content\":\"data\",\"file-path\":\"%s\",\"file-format\":\"parquet\","
                 "\"spec-id\":0,\"partition\":[],\"record-count\":1,\"file-size-in-bytes\":%lld"
                 "}]}",
                 b->kind, b->run, c->number, c->done, b->share ? "true" : "false", path, b->bytes);
    int len = snprintf(request, sizeof request,
                       "POST %s/write-results HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n"
                       "Content-Type: application/json\r\n\r\n%s",
                       b->table, n, body);
    c->got = 0;
    c->sent = now();
    if (write(c->socket, request, (size_t)len) != len) {
        die("write");
    }
}

/* True once the whole answer is there. */
static int is_whole(client *c) {
    c->answer[c->got] = '\0';
    const char *end = strstr(c->answer, "\r\n\r\n");
    const char *length = strstr(c->answer, "Content-Length: ");
    return end != NULL && length != NULL &&
           c->got >= (size_t)(end + 4 - c->answer) + (size_t)atol(length + 16);
}

/* True when the client has sent all. */
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
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 || strstr(c->answer, "committed") == NULL) {
        if (b->failed++ == 0) {
            fprintf(stderr, "%s\n", c->answer);
        }
    }
    if (++c->done == b->commits) {
        close(c->socket);
        return 1;
    }
    send_next(b, c);
    return 0;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void run(bench *b) {
    client *clients = calloc((size_t)b->clients, sizeof *clients);
    b->ms = calloc((size_t)b->clients * (size_t)b->commits, sizeof *b->ms);
    int poll = epoll_create1(0);
    if (clients == NULL || b->ms == NULL || poll < 0) {
        die("begin");
    }
    for (int i = 0; i < b->clients; i++) {
        struct epoll_event e = {EPOLLIN, {.ptr = &clients[i]}};
        clients[i].number = i;
        connect_client(b, &clients[i]);
        (void)epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].socket, &e);
    }
    double began = now();
    for (int i = 0; i < b->clients; i++) {
        send_next(b, &clients[i]);
    }
    for (int left = b->clients; left > 0;) {
        struct epoll_event events[64];
        int n = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            left -= take_answer(b, events[i].data.ptr);
        }
    }
    double s = (now() - began) / 1e3;
    qsort(b->ms, (size_t)b->n_ms, sizeof *b->ms, compare);
    printf("%d clients: %d commits in %.2f s, %.0f a second; ms median %.1f, p99 %.1f, max %.1f; "
           "%d failed\n",
           b->clients, b->n_ms, s, b->n_ms / s, b->ms[b->n_ms / 2], b->ms[b->n_ms * 99 / 100],
           b->ms[b->n_ms - 1], b->failed);
    free(b->ms);
    free(clients);
    close(poll);
}

int main(int argc, char **argv) {
    bench b;
    memset(&b, 0, sizeof b);
    if (argc < 7) {
        fprintf(stderr,
                "usage: bench_batch PORT TABLE FILE FOLDER CLIENTS COMMITS [KIND] [alone]\n");
        return 2;
    }
    b.port = atoi(argv[1]);
    b.table = argv[2];
    b.file = argv[3];
    b.folder = argv[4];
    b.clients = atoi(argv[5]);
    b.commits = atoi(argv[6]);
    b.kind = argc > 7 ? argv[7] : "append";
    b.share = argc <= 8;
    b.run = (long long)time(NULL) * 100000 + getpid() % 100000;
    link_files(&b);
    run(&b);
    return b.failed > 0;
}
