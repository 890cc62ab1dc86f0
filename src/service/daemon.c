/* service/daemon.c - libmicrohttpd: one thread a connection, bodies gathered up to a maximum, TLS;
 * slow clients are cut off by service/connections.h.
 *
 * Invariants: 1 a request is handled once, after its whole body came, or refused before; 2 a body
 * over the maximum is drained, not kept, and answered 413; 3 whatever happens to the connection,
 * what a request owns is freed when the library is done with it; 4 a connection keeps the keys of
 * TLS that it began with. */
#include "service/daemon.h"

#ifdef TARN_SERVICE

#include "base/str.h"
#include "service/connections.h"
#include "service/tls.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_BYTES  (64u << 20)
#define CONNECTIONS 1000
#define TIMEOUT_S   60
#define REQUEST_S   60
#define STACK_BYTES (512u << 10)
#define DRAIN_MS    10000
#define DRAIN_TIMES 4 /* of the largest body that are read and dropped before the line is cut */
#define PRIORITIES  "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http_server {
    tarn_env *env;
    struct MHD_Daemon *daemon;
    http_handle_fn handle;
    void *ctx;
    size_t body_bytes;
    connections *open;
    bool is_tls;
    atomic_bool ends;
    pthread_mutex_t lock; /* of what follows */
    tls_keys *keys;       /* of new connections */
};

typedef struct http_connection {
    connection_entry place; /* among the open ones */
    tls_keys *keys;
} http_connection;

/* Paths and parameters stay as they came: an escaped slash is no slash. */
static size_t keep_escapes(void *ctx, struct MHD_Connection *connection, char *text) {
    (void)ctx;
    (void)connection;
    return strlen(text);
}

const char *http_value(void *connection, bool header, const char *name) {
    return MHD_lookup_connection_value(connection, header ? MHD_HEADER_KIND : MHD_GET_ARGUMENT_KIND,
                                       name);
}

typedef struct parameter_search {
    const char *const *names;
    const char *found;
} parameter_search;

static enum MHD_Result look_at_parameter(void *ctx, enum MHD_ValueKind kind, const char *name,
                                         const char *value) {
    parameter_search *search = ctx;
    size_t i = 0;
    (void)kind;
    (void)value;
    while (search->names[i] != NULL && strcmp(search->names[i], name) != 0) {
        i++;
    }
    search->found = search->names[i] == NULL ? name : NULL;
    return search->found != NULL ? MHD_NO : MHD_YES;
}

const char *http_other_parameter(void *connection, const char *const *names) {
    parameter_search search = {names, NULL};
    (void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, look_at_parameter, &search);
    return search.found;
}

static service_request *request_new(http_server *server, struct MHD_Connection *connection,
                                    const char *url, const char *method) {
    service_request *r = env_calloc(server->env, 1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    arena_init(&r->arena, server->env);
    buf_init(&r->body, server->env, server->body_bytes);
    r->connection = connection;
    r->body_limit = server->body_bytes;
    r->method = method;
    r->path = str_of(url);
    return r;
}

static void request_free(tarn_env *env, service_request *r) {
    buf_release(&r->body);
    arena_release(&r->arena);
    env_free(env, r);
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, const service_reply *reply) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->body.len, reply->body.data, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    if (reply->body.len > 0) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                      reply->content_type != NULL ? reply->content_type
                                                                  : "application/json");
    }
    for (int32_t i = 0; i < reply->n_headers; i++) {
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
    if (reply->ends) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    enum MHD_Result sent = MHD_queue_response(connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return sent;
}

static http_connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* The keys of now, held for as long as the session lasts. */
static tls_keys *take_keys(http_server *server, struct MHD_Connection *connection) {
    (void)pthread_mutex_lock(&server->lock);
    tls_keys *keys = server->keys != NULL ? tls_keys_hold(server->keys) : NULL;
    (void)pthread_mutex_unlock(&server->lock);
    if (keys != NULL) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        tls_keys_use(keys, info->tls_session);
    }
    return keys;
}

/* Called when the library took a connection, and when it is done with it but for closing the
 * socket, its thread and its session of TLS gone. Without memory a connection has no context and is
 * ended at its first request. */
static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    http_server *server = cls;
    http_connection *x = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = x = env_calloc(server->env, 1, sizeof *x);
        if (x != NULL) {
            x->keys = take_keys(server, connection);
            connections_open(server->open, &x->place, info->connect_fd);
        }
    } else if (x != NULL) {
        connections_close(server->open, &x->place);
        tls_keys_release(x->keys);
        env_free(server->env, x);
        *context = NULL;
    }
}

static enum MHD_Result answer(http_server *server, http_connection *x, service_request *r,
                              struct MHD_Connection *connection) {
    service_reply reply;
    memset(&reply, 0, sizeof reply);
    buf_init(&reply.body, server->env, 0);
    connections_stage(server->open, &x->place, CONNECTION_AT_WORK, 0);
    server->handle(server->ctx, r, &reply);
    reply.ends = reply.ends || r->refused != 0 || atomic_load(&server->ends);
    enum MHD_Result sent = send_reply(connection, &reply);
    connections_stage(server->open, &x->place, CONNECTION_ANSWERING, reply.body.len);
    buf_release(&reply.body);
    return sent;
}

/* Who asks first whether a body is welcome can be told at once. */
static bool is_announced_too_large(const http_server *server, struct MHD_Connection *connection) {
    const char *length = http_value(connection, true, MHD_HTTP_HEADER_CONTENT_LENGTH);
    int64_t bytes;
    return length != NULL && http_value(connection, true, MHD_HTTP_HEADER_EXPECT) != NULL &&
           (!str_to_i64(str_of(length), &bytes) || (uint64_t)bytes > server->body_bytes);
}

typedef struct header_counts {
    int lengths, encodings, keys;
    bool foreign; /* a key has bytes beyond ASCII */
} header_counts;

static enum MHD_Result count_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    header_counts *n = ctx;
    (void)kind;
    n->lengths += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    n->encodings += strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
    if (strcasecmp(name, "Idempotency-Key") == 0) {
        n->keys++;
        for (const char *c = value; c != NULL && *c != '\0'; c++) {
            n->foreign = n->foreign || (unsigned char)*c > 0x7e;
        }
    }
    return MHD_YES;
}

/* What a proxy in front could read otherwise: where the body ends, or which key it is. */
static bool is_ambiguous(struct MHD_Connection *connection) {
    header_counts n = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &n);
    return n.lengths + n.encodings > 1 || n.keys > 1 || n.foreign;
}

static enum MHD_Result begin_request(http_server *server, http_connection *x, service_request *r,
                                     struct MHD_Connection *connection) {
    if (!connections_admit(server->open, &x->place)) {
        r->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    } else if (is_announced_too_large(server, connection)) {
        r->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    } else if (is_ambiguous(connection)) {
        r->refused = MHD_HTTP_BAD_REQUEST;
    }
    if (r->refused != 0) {
        return answer(server, x, r, connection);
    }
    connections_stage(server->open, &x->place, CONNECTION_COMING, 0);
    return MHD_YES;
}

static enum MHD_Result take_body(http_server *server, http_connection *x, service_request *r,
                                 tarn_str part) {
    r->received += part.len;
    connections_stage(server->open, &x->place, CONNECTION_COMING, r->received);
    if (r->refused == 0 && buf_append(&r->body, part.data, part.len, NULL) != TARN_OK) {
        r->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        buf_release(&r->body);
    }
    return r->received / DRAIN_TIMES <= server->body_bytes ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **state) {
    http_server *server = cls;
    http_connection *x = connection_of(connection);
    service_request *r = *state;
    (void)version;
    if (x == NULL) {
        return MHD_NO;
    }
    if (r == NULL) {
        *state = r = request_new(server, connection, url, method);
        return r != NULL ? begin_request(server, x, r, connection) : MHD_NO;
    }
    if (*data_len > 0) {
        tarn_str part = str_make(data, *data_len);
        *data_len = 0;
        return take_body(server, x, r, part);
    }
    return answer(server, x, r, connection);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how) {
    http_server *server = cls;
    http_connection *x = connection_of(connection);
    (void)how;
    if (*state != NULL) {
        request_free(server->env, *state);
        *state = NULL;
    }
    if (x != NULL) {
        connections_stage(server->open, &x->place, CONNECTION_WAITING, 0);
    }
}

static tarn_code find_address(const char *host, uint16_t port, struct addrinfo **out,
                              tarn_error *err) {
    struct addrinfo hints;
    char service[8];
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host != NULL ? host : "127.0.0.1", service, &hints, out);
    return failed == 0 ? TARN_OK
                       : err_set(err, TARN_INVALID, "address %s is not known: %s",
                                 host != NULL ? host : "127.0.0.1", gai_strerror(failed));
}

/* Listens. The library takes some more connections than are served, to refuse them in words. */
static struct MHD_Daemon *start_daemon(http_server *server, const service_options *options,
                                       const connection_limits *limits,
                                       const struct addrinfo *address) {
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_cert.data},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key.data},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES},
        {MHD_OPTION_END, 0, NULL}};
    if (address->ai_family == AF_INET6) {
        flags |= MHD_USE_IPv6;
    }
    if (server->is_tls) {
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    return MHD_start_daemon(
        flags, options->port, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR,
        address->ai_addr, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT,
        limits->connections + limits->connections / 4 + 16, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(limits->idle_ms / 1000), MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static tarn_code start_server(http_server *server, const service_options *options,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    struct addrinfo *address = NULL;
    connection_limits limits = {
        .connections = options->connections > 0 ? options->connections : CONNECTIONS,
        .idle_ms = (int64_t)(options->timeout_s > 0 ? options->timeout_s : TIMEOUT_S) * 1000,
        .request_ms =
            (int64_t)(options->request_timeout_s > 0 ? options->request_timeout_s : REQUEST_S) *
            1000};
    TRY(connections_new(server->env, &limits, &server->open, err));
    if (options->tls_cert.len > 0) {
        server->is_tls = true;
        TRY(tls_keys_new(server->env, options->tls_cert, options->tls_key, &server->keys, err));
    }
    TRY(find_address(options->host, options->port, &address, err));
    server->daemon = start_daemon(server, options, &limits, address);
    if (server->daemon == NULL) {
        TRY(err_os(err, errno, "listening on %s port %u failed",
                   options->host != NULL ? options->host : "127.0.0.1", options->port));
    }
    code = connections_watch(server->open, err);
done:
    if (address != NULL) {
        freeaddrinfo(address);
    }
    return code;
}

tarn_code http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                     void *ctx, http_server **out, tarn_error *err) {
    http_server *server = env_calloc(env, 1, sizeof *server);
    if (server == NULL) {
        return err_nomem(err);
    }
    server->env = env;
    server->handle = handle;
    server->ctx = ctx;
    server->body_bytes = options->body_bytes > 0 ? options->body_bytes : BODY_BYTES;
    atomic_init(&server->ends, false);
    (void)pthread_mutex_init(&server->lock, NULL);
    tarn_code code = start_server(server, options, err);
    if (code == TARN_OK) {
        *out = server;
    } else {
        http_stop(server);
    }
    return code;
}

tarn_code http_reload(http_server *server, tarn_str cert, tarn_str key, tarn_error *err) {
    tls_keys *keys = NULL;
    tarn_code code = tls_keys_new(server->env, cert, key, &keys, err);
    if (code != TARN_OK) {
        return code;
    }
    (void)pthread_mutex_lock(&server->lock);
    tls_keys *old = server->keys;
    server->keys = keys;
    (void)pthread_mutex_unlock(&server->lock);
    tls_keys_release(old);
    return TARN_OK;
}

bool http_is_tls(const http_server *server) {
    return server->is_tls;
}

uint16_t http_port(const http_server *server) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info != NULL ? info->port : 0;
}

void http_stop(http_server *server) {
    if (server == NULL) {
        return;
    }
    tarn_env *env = server->env;
    if (server->daemon != NULL) {
        MHD_socket listening = MHD_quiesce_daemon(server->daemon);
        atomic_store(&server->ends, true); /* who is served now is served last */
        for (int waited = 0; connections_busy(server->open) > 0 && waited < DRAIN_MS;
             waited += 10) {
            env_sleep_ms(env, 10);
        }
        MHD_stop_daemon(server->daemon);
        if (listening != MHD_INVALID_SOCKET) {
            (void)close(listening);
        }
    }
    connections_free(server->open);
    tls_keys_release(server->keys);
    (void)pthread_mutex_destroy(&server->lock);
    env_free(env, server);
}

#else

tarn_code http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                     void *ctx, http_server **out, tarn_error *err) {
    (void)env;
    (void)options;
    (void)handle;
    (void)ctx;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED, "this build has no service (TARN_SERVICE is off)");
}

tarn_code http_reload(http_server *server, tarn_str cert, tarn_str key, tarn_error *err) {
    (void)server;
    (void)cert;
    (void)key;
    return err_set(err, TARN_UNSUPPORTED, "this build has no service (TARN_SERVICE is off)");
}

bool http_is_tls(const http_server *server) {
    (void)server;
    return false;
}

uint16_t http_port(const http_server *server) {
    (void)server;
    return 0;
}

void http_stop(http_server *server) {
    (void)server;
}

const char *http_other_parameter(void *connection, const char *const *names) {
    (void)connection;
    (void)names;
    return NULL;
}

const char *http_value(void *connection, bool header, const char *name) {
    (void)connection;
    (void)header;
    (void)name;
    return NULL;
}

#endif
