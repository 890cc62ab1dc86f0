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
    /* Places where clients may put tables besides the warehouse, comma separated; "/" is anywhere.
     * NULL: none. @borrow */
    const char *allowed_locations;
} tarn_service_options;

#define TARN_SERVICE_OPTIONS_INIT                                                                  \
    { sizeof(tarn_service_options), NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL }

/* Starts listening on threads of its own and returns. INVALID: an address that is none; IO: in use;
 * UNSUPPORTED: not built in. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_service_start(tarn_catalog_handle *catalog,        /* @keep */
                   const tarn_service_options *options, /* @borrow, may be NULL */
                   tarn_service **out,                  /* @give: tarn_service_stop */
                   tarn_error *err /* @borrow, may be NULL */);
/* "http://127.0.0.1:8181"; lives as long as the service. @since 0.2 */
TARN_API const char *tarn_service_url(const tarn_service *service /* @borrow */);
/* No new request is taken; those at work are finished. @since 0.2 */
TARN_API void tarn_service_stop(tarn_service *service /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
