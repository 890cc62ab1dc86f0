/* service/daemon.h - the HTTP library, behind which nobody looks. */
#ifndef SERVICE_DAEMON_H
#define SERVICE_DAEMON_H

#include "service/request.h"

typedef struct http_server http_server;
/* handle is called once a request, on the connection's thread, and fills the reply. */
typedef void (*http_handle_fn)(void *ctx, service_request *r, service_reply *reply);

tarn_code http_start(tarn_env *env, const service_options *options, http_handle_fn handle,
                     void *ctx, http_server **out, tarn_error *err) TARN_MUST_USE;
/* Other keys for connections to come; after a failure it has those of before. */
tarn_code http_reload(http_server *server, tarn_str cert, tarn_str key,
                      tarn_error *err) TARN_MUST_USE;
bool http_is_tls(const http_server *server);
uint16_t http_port(const http_server *server);
/* No new connection, then waits for the requests at work. Takes NULL. */
void http_stop(http_server *server);
/* A header or (still encoded) query parameter; NULL: absent. */
const char *http_value(void *connection, bool header, const char *name);
/* A query parameter that is none of names (NULL at the end); NULL: there is none. */
const char *http_other_parameter(void *connection, const char *const *names);

#endif
