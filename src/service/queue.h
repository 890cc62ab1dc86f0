/* service/queue.h - group commit: per table one leader at a time takes every commit that waits,
 * applies them in order, each to what the one before made of the table, and moves the pointer once.
 *
 * Invariants: 1 a commit is checked against the very metadata that it is applied to; one that does
 * not hold is refused alone, the others go on; 2 every caller gets its own outcome, after the one
 * swap that decides for all: COMMITTED only when the swap was, UNKNOWN for all when it is unknown;
 * 3 when somebody else moved the pointer everything is done again on the newer table; 4 commits of
 * one table take effect in the order in which they came. */
#ifndef SERVICE_QUEUE_H
#define SERVICE_QUEUE_H

#include "catalog/catalog.h"
#include "service/counters.h"

#include <pthread.h>

typedef struct commit_queues commit_queues;

/* One caller's commit, on its stack. make gives the changes for a base (which may be one that no
 * document holds yet); called again when the base changes; what it gives lives in arena. */
typedef struct commit_job {
    tarn_code (*make)(struct commit_job *job, tarn_arena *arena, const tarn_metadata *base,
                      tarn_change_set *out, tarn_error *err);
    void *ctx;
    /* filled when commit_queue_run returns */
    tarn_code code;
    tarn_error err;
    tarn_table_version *version; /* committed: the table after the whole group */
    /* private */
    bool done;
    struct commit_job *next;
} commit_job;

tarn_code commit_queues_new(tarn_env *env, tarn_catalog *catalog, service_counters *counters,
                            commit_queues **out, tarn_error *err) TARN_MUST_USE;
void commit_queues_free(commit_queues *queues); /* nobody waits any more; takes NULL */
/* Waits for the outcome; job->version is the caller's to release. */
tarn_code commit_queue_run(commit_queues *queues, const tarn_ident *table, commit_job *job);

#endif
