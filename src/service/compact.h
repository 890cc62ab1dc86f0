/* service/compact.h - compaction before commit: small data files that wait in one group of commits
 * become larger ones before the commit, so that the table never has the small ones.
 *
 *   jobs of a unit -> sets (compact_plan.h) -> merged side by side (compact_merge.h)
 *                  -> the unit's files, with what was merged in place of its originals
 *                  -> outcome of the swap: originals or merged files go
 *
 * Invariants: 1 originals are removed only after COMMITTED, only those whose merged file is in what
 * was committed and which, by the table as it then is, no snapshot names (file_index.h), and only
 * within COMPACT_REMOVE_US of the swap: whoever else commits to the table remembers for longer that
 * they were merged away; merged files only where nothing that was committed, or may have been,
 * names them; 2 files are merged once in a group, whatever conflicts come: a merged file serves
 * every round whose unit holds all of its originals, and whose table has the schema that it was
 * made by; 3 no failure here refuses a commit, except that of a client whose file is not what it
 * said: the originals are committed as they are; 4 only files of appends that may share a snapshot
 * are touched, since nobody but the table remembers them; 5 a file is sent once: one that the
 * branch has, or that was merged away, or that another commit of the round sends, is refused. One
 * leader's; the pool merges. */
#ifndef SERVICE_COMPACT_H
#define SERVICE_COMPACT_H

#include "service/file_index.h"
#include "service/queue.h"

/* Tables that are merged for at the same time; one more commits as it is. */
#define COMPACT_TABLES 4
/* Originals that are still there this long after the swap stay. */
#define COMPACT_REMOVE_US INT64_C(10000000)

typedef struct compact_merge compact_merge;

typedef struct compact_work {
    tarn_env *env;
    tarn_store *store;
    service_counters *counters;
    file_index *index; /* NULL: nothing is merged or refused */
    bool follows;      /* index knows the round's base */
    int64_t swap_us;   /* before the last swap */
    tarn_arena arena;
    compact_merge *merges; /* the newest first */
    int64_t deadline_us;   /* 0: nothing was merged yet */
    int64_t bytes, files;  /* read for the group so far */
    uint32_t unit;         /* number of the unit that is put together */
    bool committed;
} compact_work;

/* What a unit's request becomes. */
typedef struct compact_taken {
    tarn_file *files; /* NULL: nothing was merged */
    int32_t n_files;
    int32_t n_merged; /* originals that merged files stand for */
    tarn_str paths;   /* of those (FILE_INDEX_KEY) */
} compact_taken;

void compact_begin(compact_work *work, tarn_env *env, tarn_store *store, service_counters *counters,
                   file_index *index, commit_job *jobs);
/* A round on this base. */
tarn_code compact_round_begin(compact_work *work, const tarn_metadata *base,
                              tarn_error *err) TARN_MUST_USE;
/* INVALID: the branch of m has the file, or it was merged away (invariant 5). */
tarn_code compact_check_file(const compact_work *work, const tarn_metadata *m, tarn_str branch,
                             tarn_str path, tarn_error *err) TARN_MUST_USE;
/* Merges what the table m wants merged of jobs that it has not seen before. A job whose file is
 * not what was said gets `lie`. */
void compact_jobs(compact_work *work, const tarn_metadata *m, commit_job *const *jobs, int32_t n);
/* The jobs' files in their order, merged ones behind; in arena. */
tarn_code compact_take(compact_work *work, const tarn_metadata *m, commit_job *const *jobs,
                       int32_t n, tarn_arena *arena, compact_taken *out,
                       tarn_error *err) TARN_MUST_USE;
/* The unit that took last was given up. */
void compact_untake(compact_work *work);
/* What became of the round's swap. */
void compact_round_end(compact_work *work, tarn_outcome_kind outcome);
/* Removes what is of no use. m: the table after the commit; NULL: not known. */
void compact_end(compact_work *work, const tarn_metadata *m);

#endif
