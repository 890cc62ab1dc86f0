/* service/queue.h - group commit: per table one leader at a time takes every commit that waits,
 * applies them in order, each to what the one before made of the table, and moves the pointer once.
 *
 * Invariants: 1 a commit is checked against the very metadata that it is applied to; one that does
 * not hold is refused alone, the others go on; 2 every caller gets its own outcome, after the one
 * swap that decides for all: COMMITTED only when the swap was, UNKNOWN for all when it is unknown;
 * 3 when somebody else moved the pointer everything is done again on the newer table; 4 commits of
 * one table take effect in the order in which they came; 5 what was last seen of a table is where
 * the next group begins, and nothing is refused by it alone: the swap shows whether it was current,
 * and without a swap the table is loaded. */
#ifndef SERVICE_QUEUE_H
#define SERVICE_QUEUE_H

#include "service/counters.h"
#include "service/written.h"
#include "write/commit/commit.h"

#include <semaphore.h>

typedef struct commit_queues commit_queues;

/* One caller's commit, on its stack: changes that make gives, or a request. */
typedef struct commit_job {
    /* Gives the changes for a base (which may be one that no document holds yet); called again when
     * the base changes; what it gives lives in files' arena, and what it writes goes where it is
     * not committed. NULL: request is to be committed. */
    tarn_code (*make)(struct commit_job *job, written_files *files, const tarn_metadata *base,
                      tarn_change_set *out, tarn_error *err);
    void *ctx;
    /* With a commit id: done once, whoever sent it and how often. Its check is asked of the base
     * that it is applied to. */
    const commit_request *request;
    bool resent; /* it may be there since long ago: look everywhere */
    /* A file of the request that is not there any more, len 0: none. Where it was done before, its
     * files may be gone since (compact.h); else it is refused. */
    tarn_str absent;
    /* filled when commit_queue_run returns */
    tarn_code code;
    tarn_error err;
    tarn_table_version *version; /* committed: the table after the whole group */
    int64_t snapshot_id;         /* a request's; TARN_NO_SNAPSHOT: there was nothing to do */
    bool repeated;               /* it was committed before */
    /* private */
    sem_t turn;                    /* posted once: it is done, or leads */
    const struct commit_job *twin; /* of the same commit id, in the same group */
    bool leads;
    struct commit_job *next;
    /* private, of compaction before commit (compact.h) */
    bool seen;                     /* its files were looked at */
    struct compact_merge **merged; /* what each of its files went into; NULL: none did */
    const tarn_error *lie;         /* a file is not what was said of it */
    uint32_t unit;                 /* that it was put into last */
} commit_job;

tarn_code commit_queues_new(tarn_env *env, tarn_catalog *catalog, service_counters *counters,
                            commit_queues **out, tarn_error *err) TARN_MUST_USE;
void commit_queues_free(commit_queues *queues); /* nobody waits any more; takes NULL */
/* Waits for the outcome; job->version is the caller's to release. */
tarn_code commit_queue_run(commit_queues *queues, const tarn_ident *table, commit_job *job);
/* The table as it was last seen here, or as it is now: loaded where fresh or where nothing is
 * known. */
tarn_code commit_queue_look(commit_queues *queues, const tarn_ident *table, bool fresh,
                            tarn_table_version **out, tarn_error *err) TARN_MUST_USE;

#endif
