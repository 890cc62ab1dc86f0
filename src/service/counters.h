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
    /* compaction before commit: files that were committed, and sets that stayed as they were */
    atomic_llong merged_files[2], merged_bytes[2]; /* originals, and what stands for them */
    atomic_llong unmerged_late, unmerged_failed;
    atomic_int compacting; /* tables, now */
} service_counters;

void counters_request(service_counters *c, int status, int64_t us);
void counters_commit(service_counters *c, tarn_code code);
void counters_group(service_counters *c);
void counters_merged(service_counters *c, int64_t files_in, int64_t bytes_in, int64_t files_out,
                     int64_t bytes_out);
void counters_unmerged(service_counters *c, bool late); /* late: over the group's bounds */
/* Whether one more table may have its files merged now; then it is to be ended. */
bool counters_begin_compacting(service_counters *c, int most);
void counters_end_compacting(service_counters *c);
/* OpenMetrics text, without its end. */
tarn_code counters_write(service_counters *c, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
