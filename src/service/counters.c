/* service/counters.c - see counters.h. */
#include "service/counters.h"

static void count(atomic_llong *what, int64_t n) {
    (void)atomic_fetch_add_explicit(what, n, memory_order_relaxed);
}

void counters_request(service_counters *c, int status, int64_t us) {
    count(&c->requests[status >= 100 && status < 600 ? status / 100 : 0], 1);
    count(&c->request_us, us);
}

void counters_commit(service_counters *c, tarn_code code) {
    count(code == TARN_OK               ? &c->commits
          : code == TARN_CONFLICT       ? &c->conflicts
          : code == TARN_COMMIT_UNKNOWN ? &c->unknown
                                        : &c->failed,
          1);
}

void counters_group(service_counters *c) {
    count(&c->groups, 1);
}

void counters_merged(service_counters *c, int64_t files_in, int64_t bytes_in, int64_t files_out,
                     int64_t bytes_out) {
    count(&c->merged_files[0], files_in);
    count(&c->merged_files[1], files_out);
    count(&c->merged_bytes[0], bytes_in);
    count(&c->merged_bytes[1], bytes_out);
}

void counters_unmerged(service_counters *c, bool late) {
    count(late ? &c->unmerged_late : &c->unmerged_failed, 1);
}

bool counters_begin_compacting(service_counters *c, int most) {
    bool may = atomic_fetch_add(&c->compacting, 1) < most;
    if (!may) {
        counters_end_compacting(c);
    }
    return may;
}

void counters_end_compacting(service_counters *c) {
    (void)atomic_fetch_sub(&c->compacting, 1);
}

static long long now(atomic_llong *what) {
    return atomic_load_explicit(what, memory_order_relaxed);
}

tarn_code counters_write(service_counters *c, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append_str(out, STR("# TYPE tarn_http_requests counter\n"), err));
    for (int i = 1; i < 6; i++) {
        TRY(buf_printf(out, err, "tarn_http_requests_total{status=\"%dxx\"} %lld\n", i,
                       now(&c->requests[i])));
    }
    TRY(buf_printf(out, err,
                   "# TYPE tarn_http_request_seconds counter\n"
                   "tarn_http_request_seconds_total %.6f\n",
                   (double)now(&c->request_us) / 1e6));
    TRY(buf_printf(out, err,
                   "# TYPE tarn_commits counter\n"
                   "tarn_commits_total{outcome=\"committed\"} %lld\n"
                   "tarn_commits_total{outcome=\"conflict\"} %lld\n"
                   "tarn_commits_total{outcome=\"unknown\"} %lld\n"
                   "tarn_commits_total{outcome=\"failed\"} %lld\n",
                   now(&c->commits), now(&c->conflicts), now(&c->unknown), now(&c->failed)));
    TRY(buf_printf(out, err, "# TYPE tarn_commit_groups counter\ntarn_commit_groups_total %lld\n",
                   now(&c->groups)));
    TRY(buf_printf(out, err,
                   "# TYPE tarn_compacted_files counter\n"
                   "tarn_compacted_files_total{side=\"in\"} %lld\n"
                   "tarn_compacted_files_total{side=\"out\"} %lld\n"
                   "# TYPE tarn_compacted_bytes counter\n"
                   "tarn_compacted_bytes_total{side=\"in\"} %lld\n"
                   "tarn_compacted_bytes_total{side=\"out\"} %lld\n",
                   now(&c->merged_files[0]), now(&c->merged_files[1]), now(&c->merged_bytes[0]),
                   now(&c->merged_bytes[1])));
    TRY(buf_printf(out, err,
                   "# TYPE tarn_not_compacted counter\n"
                   "tarn_not_compacted_total{reason=\"bound\"} %lld\n"
                   "tarn_not_compacted_total{reason=\"failed\"} %lld\n",
                   now(&c->unmerged_late), now(&c->unmerged_failed)));
done:
    return code;
}
