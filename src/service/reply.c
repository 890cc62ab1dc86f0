/* service/reply.c - failures in the words of the REST specification ("ErrorModel"). */
#include "service/request.h"

#include <stdio.h>

typedef struct error_shape {
    int status;
    const char *type;
} error_shape;

static const char *missing_type(reply_subject subject) {
    return subject == REPLY_NAMESPACE                              ? "NoSuchNamespaceException"
           : subject == REPLY_VIEW || subject == REPLY_VIEW_COMMIT ? "NoSuchViewException"
           : subject == REPLY_TABLE || subject == REPLY_COMMIT     ? "NoSuchTableException"
                                                                   : "NotFoundException";
}

/* What is behind the service is away, and nothing was done: it may be asked again. Of changes other
 * than commits an answer may have been lost. */
static bool is_unavailable(const service_request *r, reply_subject subject, tarn_code code,
                           const tarn_error *error) {
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    return code == TARN_IO && err_is_away(error) && (reads || subject == REPLY_COMMIT);
}

static error_shape shape_of(reply_subject subject, tarn_code code) {
    switch (code) {
    case TARN_INVALID:
        return (error_shape){400, "BadRequestException"};
    case TARN_NOT_FOUND:
        return (error_shape){404, missing_type(subject)};
    case TARN_CONFLICT:
        return (error_shape){409, subject == REPLY_COMMIT || subject == REPLY_VIEW_COMMIT
                                      ? "CommitFailedException"
                                      : "AlreadyExistsException"};
    case TARN_COMMIT_UNKNOWN:
        return (error_shape){500, "CommitStateUnknownException"};
    case TARN_DENIED:
        return (error_shape){403, "ForbiddenException"};
    case TARN_UNSUPPORTED:
        return (error_shape){406, "UnsupportedOperationException"};
    case TARN_LIMIT:
        return (error_shape){400, "BadRequestException"};
    case TARN_NOMEM:
    case TARN_CANCELLED:
        return (error_shape){503, "ServiceUnavailableException"};
    case TARN_OK:
    case TARN_CORRUPT:
    case TARN_IO:
    case TARN_INTERNAL:
        break;
    }
    return (error_shape){500, "InternalServerError"};
}

void reply_refuse(service_request *r, service_reply *reply, int status, const char *type,
                  const char *message) {
    json_writer w;
    (void)r;
    buf_reset(&reply->body);
    json_begin(&w, &reply->body, false, NULL);
    json_put_object(&w);
    json_put_name(&w, STR("error"));
    json_put_object(&w);
    json_member_str(&w, "message", str_of(message));
    json_member_str(&w, "type", str_of(type));
    json_member_i64(&w, "code", status);
    json_end_object(&w);
    json_end_object(&w);
    if (json_end(&w) != TARN_OK) {
        buf_reset(&reply->body); /* the status alone says it */
    }
    reply->status = status;
    reply->content_type = NULL;
}

void reply_error(service_request *r, service_reply *reply, reply_subject subject, tarn_code code,
                 const tarn_error *error) {
    error_shape shape = is_unavailable(r, subject, code, error)
                            ? (error_shape){503, "ServiceUnavailableException"}
                            : shape_of(subject, code);
    char text[sizeof error->message + sizeof error->detail + 8];
    snprintf(text, sizeof text, error->detail[0] != '\0' ? "%s (%s)" : "%s", error->message,
             error->detail);
    if (text[0] >= 'a' && text[0] <= 'z') {
        text[0] = (char)(text[0] - 'a' + 'A'); /* clients show it as a sentence */
    }
    reply_refuse(r, reply, shape.status, shape.type, text);
}

tarn_code reply_header(service_request *r, service_reply *reply, const char *name,
                       const char *value, tarn_error *err) {
    (void)r;
    if (reply->n_headers == REPLY_MAX_HEADERS) {
        return err_set(err, TARN_INTERNAL, "a reply has more than %d headers", REPLY_MAX_HEADERS);
    }
    reply->headers[reply->n_headers].name = name;
    reply->headers[reply->n_headers].value = value;
    reply->n_headers++;
    return TARN_OK;
}
