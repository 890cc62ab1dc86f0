/* service/service.h - where commits meet: an Iceberg REST catalog over any catalog, on
 * libmicrohttpd.
 *
 * One thread a connection, made by the HTTP library; handlers may block. What they share is the
 * catalog (any thread) and the commit queues (service/queue.h). */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "catalog/catalog.h"

typedef struct rest_service rest_service;

/* One line of JSON for each request answered, without its end; any thread. */
typedef void (*service_log_fn)(void *ctx, const char *line);

typedef struct service_options {
    const char *host;     /* address to listen on; NULL: 127.0.0.1 */
    uint16_t port;        /* 0: any free one */
    uint32_t connections; /* at once; 0: 1000 */
    uint32_t timeout_s;   /* of an idle or slow connection; 0: 60 */
    size_t body_bytes;    /* the largest request; 0: 64 MiB */
    tarn_str access;      /* who may do what (service/auth.h); len 0: everybody everything */
    tarn_str allowed;     /* places besides the warehouse (service/places.h) */
    service_log_fn log;   /* NULL: none */
    void *log_ctx;
    tarn_str warehouse;         /* what clients may name in config; len 0: anything */
    uint32_t request_timeout_s; /* service/connections.h; 0: 60 */
    tarn_str tls_cert, tls_key; /* PEM, with a NUL behind; len 0: no TLS */
    const char *intake_dir; /* the log of row intake (service/intake.h); NULL: no rows are taken */
    uint32_t intake_interval_ms; /* between its commits of a table; 0: 1000 */
    uint64_t intake_bytes;       /* the most that waits for its commit; 0: 1 GiB */
} service_options;

/* What is wrong with options, as far as nothing has to be opened for it. */
tarn_code service_check(tarn_env *env, const service_options *options,
                        tarn_error *err) TARN_MUST_USE;
/* catalog outlives the service. */
tarn_code service_start(tarn_env *env, tarn_catalog *catalog, const service_options *options,
                        rest_service **out, tarn_error *err) TARN_MUST_USE;
/* Who may do what and the keys of TLS anew, where the service had them from the beginning. After a
 * failure nothing has changed. */
tarn_code service_reload(rest_service *s, tarn_str access, tarn_str tls_cert, tarn_str tls_key,
                         tarn_error *err) TARN_MUST_USE;
bool service_is_tls(const rest_service *s);
uint16_t service_port(const rest_service *s);
/* Takes no new request, waits for those at work, and frees. Takes NULL. */
void service_stop(rest_service *s);

#endif
