/* service/counters.h - what the service did since it began, for GET /metrics. Any thread. */
#ifndef SERVICE_COUNTERS_H
#define SERVICE_COUNTERS_H

#include "base/buf.h"

#include <stdatomic.h>

typedef struct service_counters {
    atomic_llong requests[6]; /* by the first digit of the status */
    atomic_llong request_us;
    atomic_llong commits, conflicts, unknown, failed; /* commits that callers sent */
    atomic_llong groups;                              /* swaps that decided them */
} service_counters;

void counters_request(service_counters *c, int status, int64_t us);
void counters_commit(service_counters *c, tarn_code code);
void counters_group(service_counters *c);
/* OpenMetrics text. */
tarn_code counters_write(service_counters *c, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
