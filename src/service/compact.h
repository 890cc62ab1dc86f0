/* service/compact.h - compaction before commit: small data files that wait in one group of commits
 * become larger ones before the commit, so that the table never has the small ones.
 *
 *   jobs of a unit -> sets (compact_plan.h) -> merged side by side (compact_merge.h)
 *                  -> the unit's files, with what was merged in place of its originals
 *                  -> outcome of the swap: originals or merged files go
 *
 * Invariants: 1 originals are removed only after COMMITTED, and only those whose merged file is in
 * what was committed; merged files only where nothing that was committed, or may have been, names
 * them; 2 files are merged once in a group, whatever conflicts come: a merged file serves every
 * round whose unit holds all of its originals, and whose table has the schema that it was made by;
 * 3 no failure here refuses a commit, except that of a client whose file is not what it said: the
 * originals are committed as they are; 4 only files of appends that may share a snapshot are
 * touched, since nobody but the table remembers them. One leader's; the pool merges. */
#ifndef SERVICE_COMPACT_H
#define SERVICE_COMPACT_H

#include "service/queue.h"

/* In the snapshot's summary: how many originals its merged files stand for. */
#define COMPACT_SUMMARY "tarn.compacted-files"
/* Tables that are merged for at the same time; one more commits as it is. */
#define COMPACT_TABLES 4

typedef struct compact_merge compact_merge;

typedef struct compact_work {
    tarn_env *env;
    tarn_store *store;
    service_counters *counters;
    tarn_arena arena;
    compact_merge *merges; /* the newest first */
    int64_t deadline_us;   /* 0: nothing was merged yet */
    int64_t bytes, files;  /* read for the group so far */
    uint32_t unit;         /* number of the unit that is put together */
    bool committed;
} compact_work;

void compact_begin(compact_work *work, tarn_env *env, tarn_store *store, service_counters *counters,
                   commit_job *jobs);
/* Merges what the table m wants merged of jobs that it has not seen before. A job whose file is
 * not what was said gets `lie`. */
void compact_jobs(compact_work *work, const tarn_metadata *m, commit_job *const *jobs, int32_t n);
/* The jobs' files in their order, merged ones behind; *n_merged: originals that they stand for. In
 * arena. Nothing merged: *out is NULL. */
tarn_code compact_take(compact_work *work, const tarn_metadata *m, commit_job *const *jobs,
                       int32_t n, tarn_arena *arena, tarn_file **out, int32_t *n_out,
                       int32_t *n_merged, tarn_error *err) TARN_MUST_USE;
/* The unit that took last was given up. */
void compact_untake(compact_work *work);
/* What became of the round's swap. */
void compact_round_end(compact_work *work, tarn_outcome_kind outcome);
/* Removes what is of no use. */
void compact_end(compact_work *work);

#endif
