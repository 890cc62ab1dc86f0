/* net/url.h - the little that callers need of URLs (RFC 3986). */
#ifndef NET_URL_H
#define NET_URL_H

#include "base/arena.h"

/* One segment of a path or one value of a query: all but unreserved characters become %XX. NULL
 * data: no memory. */
tarn_str url_encode(tarn_arena *arena, tarn_str text);
/* scheme://host:port/path for messages, without user, password, query and fragment, which may hold
 * secrets. "?" when there is no memory. */
const char *url_label(tarn_arena *arena, tarn_str url);
/* Host of an absolute URL, without user and port; no data where there is none. */
tarn_str url_host(tarn_str url);
/* localhost, 127.x.x.x, ::1 */
bool url_is_loopback(tarn_str url);

#endif
