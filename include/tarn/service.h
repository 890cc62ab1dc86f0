/* tarn/service.h - the service: an Iceberg REST catalog over a catalog of this process, in which
 * commits to one table meet and move its pointer once. */
#ifndef TARN_SERVICE_H
#define TARN_SERVICE_H

#include <tarn/catalog.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_service tarn_service;

typedef struct tarn_service_options {
    uint32_t struct_size;
    const char *listen; /* "HOST:PORT", "[::1]:8181"; port 0: any. NULL: 127.0.0.1:8181. @borrow */
    const char *warehouse; /* the only name that clients may ask config for; NULL: any. @borrow */
    uint32_t connections;  /* at once; 0: 1000 */
    uint32_t timeout_s;    /* of an idle or slow connection; 0: 60 */
    uint64_t body_bytes;   /* the largest request; 0: 64 MiB */
    /* Who may do what, as JSON (docs/serve.md); NULL: everybody everything. @borrow */
    const char *access_json;
    /* One line of JSON for each request, on any thread; NULL: none. @keep */
    void (*log)(void *ctx, const char *line);
    void *log_ctx; /* @keep */
    /* Places where clients may put tables besides the warehouse: absolute paths or URIs, comma
     * separated; "/" is anywhere. NULL: none. @borrow */
    const char *allowed_locations;
    /* Seconds in which a request has to come, or an answer to be taken, besides its bytes, for
     * which a slow line is enough; 0: 60 */
    uint32_t request_timeout_s;
    /* HTTPS: a certificate with those it was issued by, and its key, as PEM. NULL: HTTP. @borrow */
    const char *tls_cert_pem;
    const char *tls_key_pem;
    /* Folder for the log of row intake (docs/serve.md); NULL: no rows are taken. @borrow */
    const char *intake_dir;
    uint32_t intake_interval_ms; /* between its commits of a table; 0: 1000 */
    uint64_t intake_bytes;       /* the most rows that wait for their commits; 0: 1 GiB */
} tarn_service_options;

#define TARN_SERVICE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(tarn_service_options), NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL,  \
            NULL, 0, 0                                                                             \
    }

/* Starts listening on threads of its own and returns. INVALID: an address that is none; IO: in use;
 * UNSUPPORTED: not built in. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_service_start(tarn_catalog_handle *catalog,        /* @keep */
                   const tarn_service_options *options, /* @borrow, may be NULL */
                   tarn_service **out,                  /* @give: tarn_service_stop */
                   tarn_error *err /* @borrow, may be NULL */);
/* What can be said of options before anything is opened: the address, the access file, the places
 * and the keys of HTTPS. INVALID: what is wrong. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_service_check(tarn_env *env,                       /* @borrow */
                   const tarn_service_options *options, /* @borrow, may be NULL */
                   tarn_error *err /* @borrow, may be NULL */);
/* Who may do what (access_json) and the keys of HTTPS anew, for connections and requests to come;
 * of the options only these are read, and only where the service was started with such. Tokens that
 * were issued hold on while their client keeps its secret. INVALID: what is wrong in them; nothing
 * has changed then. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_service_reload(tarn_service *service,               /* @borrow */
                    const tarn_service_options *options, /* @borrow */
                    tarn_error *err /* @borrow, may be NULL */);
/* "http://127.0.0.1:8181"; lives as long as the service. @since 0.2 */
TARN_API const char *tarn_service_url(const tarn_service *service /* @borrow */);
/* No new request is taken; those at work are finished. @since 0.2 */
TARN_API void tarn_service_stop(tarn_service *service /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
