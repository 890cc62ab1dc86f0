/* service/daemon.c - libmicrohttpd: one thread a connection, bodies gathered up to a maximum, slow
 * clients cut off.
 *
 * Invariants: 1 a request is handled once, after its whole body came; 2 a body over the maximum is
 * drained, not kept, and answered 413; 3 whatever happens to the connection, what a request owns is
 * freed when the library is done with it. */
#include "service/daemon.h"

#ifdef TARN_SERVICE

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_BYTES  (64u << 20)
#define CONNECTIONS 1000
#define TIMEOUT_S   60
#define STACK_BYTES (512u << 10)
#define DRAIN_MS    10000

struct http_server {
    tarn_env *env;
    struct MHD_Daemon *daemon;
    http_handle_fn handle;
    void *ctx;
    size_t body_bytes;
    atomic_int at_work;
};

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

static service_request *request_new(http_server *server, struct MHD_Connection *connection,
                                    const char *url, const char *method) {
    service_request *r = env_calloc(server->env, 1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    arena_init(&r->arena, server->env);
    buf_init(&r->body, server->env, server->body_bytes);
    r->connection = connection;
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
    enum MHD_Result sent = MHD_queue_response(connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_len, void **state) {
    http_server *server = cls;
    service_request *r = *state;
    (void)version;
    if (r == NULL) {
        *state = request_new(server, connection, url, method);
        return *state != NULL ? MHD_YES : MHD_NO;
    }
    if (*data_len > 0) {
        if (!r->too_large && buf_append(&r->body, data, *data_len, NULL) != TARN_OK) {
            r->too_large = true;
            buf_release(&r->body);
        }
        *data_len = 0;
        return MHD_YES;
    }
    service_reply reply;
    memset(&reply, 0, sizeof reply);
    buf_init(&reply.body, server->env, 0);
    (void)atomic_fetch_add(&server->at_work, 1);
    server->handle(server->ctx, r, &reply);
    enum MHD_Result sent = send_reply(connection, &reply);
    (void)atomic_fetch_sub(&server->at_work, 1);
    buf_release(&reply.body);
    return sent;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how) {
    http_server *server = cls;
    (void)connection;
    (void)how;
    if (*state != NULL) {
        request_free(server->env, *state);
        *state = NULL;
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

tarn_code http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                     void *ctx, http_server **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    struct addrinfo *address = NULL;
    http_server *server = env_calloc(env, 1, sizeof *server);
    if (server == NULL) {
        return err_nomem(err);
    }
    server->env = env;
    server->handle = handle;
    server->ctx = ctx;
    server->body_bytes = options->body_bytes > 0 ? options->body_bytes : BODY_BYTES;
    TRY(find_address(options->host, options->port, &address, err));
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL;
    if (address->ai_family == AF_INET6) {
        flags |= MHD_USE_IPv6;
    }
    server->daemon = MHD_start_daemon(
        flags, options->port, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR,
        address->ai_addr, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT,
        options->connections > 0 ? options->connections : CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, options->timeout_s > 0 ? options->timeout_s : TIMEOUT_S,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
    if (server->daemon == NULL) {
        code = err_os(err, errno, "listening on %s port %u failed",
                      options->host != NULL ? options->host : "127.0.0.1", options->port);
        goto done;
    }
    *out = server;
    server = NULL;
done:
    if (address != NULL) {
        freeaddrinfo(address);
    }
    env_free(env, server);
    return code;
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
    MHD_socket listening = MHD_quiesce_daemon(server->daemon);
    for (int waited = 0; atomic_load(&server->at_work) > 0 && waited < DRAIN_MS; waited += 10) {
        env_sleep_ms(env, 10);
    }
    MHD_stop_daemon(server->daemon);
    if (listening != MHD_INVALID_SOCKET) {
        (void)close(listening);
    }
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

uint16_t http_port(const http_server *server) {
    (void)server;
    return 0;
}

void http_stop(http_server *server) {
    (void)server;
}

const char *http_value(void *connection, bool header, const char *name) {
    (void)connection;
    (void)header;
    (void)name;
    return NULL;
}

#endif
