/* net/http.h - HTTP requests: method, URL, headers and body in; status, headers and body out, whole
 * and bounded. One client per server or catalog; connections are kept open between requests. Any
 * thread.
 *
 * A request is sent once: whether it may be repeated only the caller knows. Redirects are not
 * followed (the answer is the 3xx), so that a header with a secret goes where it was sent.
 * Certificates are checked. A server on this machine is never asked through a proxy. */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include "base/arena.h"
#include "base/buf.h"

typedef struct http_client http_client;

typedef struct http_options {
    int64_t connect_ms;  /* 0: 10 s */
    int64_t answer_ms;   /* the whole exchange; 0: 60 s */
    const char *ca_file; /* certificates to trust; NULL: the system's */
} http_options;

typedef struct http_header {
    tarn_str name, value;
} http_header;

typedef struct http_request {
    const char *method; /* "GET" */
    tarn_str url;
    int32_t n_headers;
    const http_header *headers;
    tarn_str body;     /* data NULL: none */
    uint64_t max_body; /* of the answer, unpacked; reaching it is LIMIT */
    /* Over a connection of its own: one that is reused may turn out to be closed, and then the
     * request would be sent again, which not every one may be. */
    bool once;
} http_request;

typedef struct http_response {
    int32_t status;
    int32_t n_headers;
    http_header *headers; /* in the arena of the call */
    tarn_buf body;
} http_response;

/* UNSUPPORTED where HTTP was not built in. */
tarn_code http_client_new(tarn_env *env, const http_options *options, http_client **out,
                          tarn_error *err) TARN_MUST_USE;
void http_client_free(http_client *client); /* takes NULL */

/* OK with any status the server answered. *sent (may be NULL; also on failure): the server may have
 * got the request. out is released by the caller on success. IO, LIMIT, CANCELLED, INVALID. */
tarn_code http_send(http_client *client, tarn_arena *arena, const http_request *request,
                    http_response *out, bool *sent, tarn_error *err) TARN_MUST_USE;
void http_response_release(http_response *response);
/* The last header of this name, any case; data NULL: there is none. */
tarn_str http_response_header(const http_response *response, const char *name);

#endif
