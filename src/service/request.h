/* service/request.h - one request as handlers see it, and the reply they make. */
#ifndef SERVICE_REQUEST_H
#define SERVICE_REQUEST_H

#include "base/json.h"
#include "service/service.h"

#define REQUEST_MAX_SEGMENTS 12
#define REPLY_MAX_HEADERS    4

typedef struct service_request {
    struct rest_service *service;
    tarn_arena arena;
    void *connection; /* of the HTTP library */
    const char *method;
    tarn_str path;
    int32_t n_segments; /* of the path, still encoded */
    tarn_str segments[REQUEST_MAX_SEGMENTS];
    tarn_buf body;
    uint64_t body_limit;
    uint64_t received; /* of the body, also what was not kept */
    int refused;       /* before it was read: 400, headers contradict; 413, the body is too
                           large; 503, too many are here */
    const struct auth_caller *caller; /* NULL: an open service, or nobody */
    tarn_str once_key;                /* of Idempotency-Key; len 0: none */
    /* what the route found */
    tarn_ident ns;    /* {namespace} */
    tarn_ident table; /* {namespace} with {table} or {view} */
    tarn_str id;      /* {plan-id} and the like */
} service_request;

typedef struct service_reply {
    int status;
    const char *content_type; /* NULL: application/json */
    tarn_buf body;
    bool ends; /* the connection is closed after it */
    struct {
        const char *name;
        const char *value; /* in the request's arena */
    } headers[REPLY_MAX_HEADERS];
    int32_t n_headers;
} service_reply;

/* What a failure is about: it decides the name of the error (REST specification, "ErrorModel"). */
typedef enum reply_subject {
    REPLY_REQUEST,
    REPLY_NAMESPACE,
    REPLY_TABLE,
    REPLY_VIEW,
    REPLY_COMMIT,
    REPLY_VIEW_COMMIT
} reply_subject;

typedef tarn_code (*service_handler)(service_request *r, service_reply *reply, tarn_error *err);

/* Headers and query parameters, decoded; NULL: absent. In the request's arena. */
const char *request_header(service_request *r, const char *name);
tarn_code request_query(service_request *r, const char *name, const char **out,
                        tarn_error *err) TARN_MUST_USE;
/* INVALID names a parameter that is none of names (NULL at the end): for endpoints of our own. */
tarn_code request_check_query(service_request *r, const char *const *names,
                              tarn_error *err) TARN_MUST_USE;
tarn_code request_query_bool(service_request *r, const char *name, bool fallback, bool *out,
                             tarn_error *err) TARN_MUST_USE;
/* %XX decoded; "+" stays. INVALID on a broken escape, a NUL or what is no UTF-8. */
tarn_code request_decode(service_request *r, tarn_str encoded, tarn_str *out,
                         tarn_error *err) TARN_MUST_USE;
/* The body as JSON object; INVALID says where it is broken. */
tarn_code request_json(service_request *r, const json_value **out, tarn_error *err) TARN_MUST_USE;
/* Members that must or may be there; INVALID names the member. */
tarn_code request_member_str(const json_value *object, const char *name, bool required,
                             tarn_str *out, tarn_error *err) TARN_MUST_USE;
tarn_code request_member_properties(service_request *r, const json_value *object, const char *name,
                                    tarn_properties *out, tarn_error *err) TARN_MUST_USE;
tarn_code request_member_levels(service_request *r, const json_value *object, const char *name,
                                tarn_ident *out, tarn_error *err) TARN_MUST_USE;
tarn_code request_member_ident(service_request *r, const json_value *object, const char *name,
                               tarn_ident *out, tarn_error *err) TARN_MUST_USE;

/* What a body holds or names is an argument, not stored bytes: what is wrong with it is INVALID. */
tarn_code rest_as_invalid(tarn_code code, tarn_error *err) TARN_MUST_USE;
/* The same of a file that a body names: it is not the request's subject that is missing. */
tarn_code rest_as_named(tarn_code code, tarn_error *err) TARN_MUST_USE;
/* A body may name its table or view again, in "identifier": INVALID where that is another than the
 * path's. */
tarn_code request_same_ident(service_request *r, const json_value *body,
                             tarn_error *err) TARN_MUST_USE;

/* One page of n sorted idents by pageToken and pageSize: [*first, *end), and the token of the next
 * (NULL: none). Without pageToken in the request everything is one page. */
tarn_code request_page(service_request *r, const tarn_ident *items, int32_t n, int32_t *first,
                       int32_t *end, const char **next, tarn_error *err) TARN_MUST_USE;

/* The status and body of a failure. Never fails itself: without memory the body is a constant. */
void reply_error(service_request *r, service_reply *reply, reply_subject subject, tarn_code code,
                 const tarn_error *error);
/* The same with a status and type of one's own. */
void reply_refuse(service_request *r, service_reply *reply, int status, const char *type,
                  const char *message);
tarn_code reply_header(service_request *r, service_reply *reply, const char *name,
                       const char *value, tarn_error *err) TARN_MUST_USE;

#endif
