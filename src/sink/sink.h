/* sink/sink.h - the whole sink: batches in, checkpoints, snapshots out.
 *
 *   sink_write -> distribute -> tasks (files) ... sink_precommit: tasks close, the delta is durable
 *              -> sink_commit: snapshots, in order
 * or sink_push: both beside the stream, which goes on (background.h)
 *
 * Invariants: 1 without a state, what was written since the last checkpoint is the caller's once: a
 * failed checkpoint removes it; 2 with a state a checkpoint that was durable is committed sooner or
 * later, or is given up together with all after it, and then the sink is broken: it is opened
 * again, and the source goes back to sink_offsets; 3 rows are written for the version that the last
 * commit saw. One thread at a time. */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include "sink/committer.h"
#include "sink/distribute.h"
#include "table/row_kind.h"

#define SINK_MAX_WRITERS 256

typedef struct sink_options {
    tarn_catalog *catalog; /* outlives the sink, as ident */
    const tarn_ident *ident;
    tarn_table_version *version; /* as loaded */
    commit_kind append;          /* fast or merge append, or replace partitions */
    tarn_str branch;             /* len 0: main */
    tarn_properties summary;     /* outlives the sink */
    size_t memory_bytes;         /* 0: 128 MiB, shared by the writers */
    tarn_str state_dir;          /* len 0: none */
    tarn_store *state_store;     /* NULL: the one for state_dir */
    tarn_str sink_id;            /* len 0: the state's, or none */
    int32_t writers;             /* 0: 1 */
    tarn_str distribution;       /* len 0: as the table says */
    bool changes;                /* rows come with kinds */
    bool upsert;                 /* an insert takes the place of its key's row */
    const tarn_str *key;         /* names, outlive the sink; NULL: the identifier fields */
    int32_t n_key;
    tarn_str deletes; /* len 0: as the table says */
    int32_t empty_every;
    bool background;         /* with a state: sink_push */
    bool hold;               /* what is pending at open is complete up to `complete` only */
    int64_t complete;        /* with hold */
    bool accept_rollback;    /* see committer_options */
    tarn_str shared_offsets; /* name under which the table keeps the offsets of checkpoints
                                (sink/shared_offsets.h), without a state; len 0: it does not */
} sink_options;

typedef struct sink_counts {
    int64_t rows, deleted_rows, data_files, delete_files, bytes;
    int64_t checkpoints;
} sink_counts;
typedef struct sink_stats { /* in the table since it was opened, and of the last checkpoint */
    sink_counts total, last;
    committer_counts commits, last_commits;
    int32_t writers, pending;
    int32_t open_files;     /* now, or, with several writers, at the end of the last checkpoint */
    int32_t finished_files; /* for the next checkpoint */
} sink_stats;

typedef struct sink_job sink_job;
tarn_code sink_open(tarn_env *env, const sink_options *options, sink_job **out,
                    tarn_error *err) TARN_MUST_USE;
/* The version whose current schema the rows of sink_write have. */
const tarn_table_version *sink_version(const sink_job *s);
/* Of the last committed checkpoint; data NULL: none. Not while something is under way in the
 * background: then sink_read_offsets. */
tarn_str sink_offsets(const sink_job *s);
/* The key's column i, by the version of sink_version; data NULL: there are no more. */
tarn_str sink_key_column(const sink_job *s, int32_t i);
tarn_code sink_read_offsets(sink_job *s, tarn_buf *out, bool *has, tarn_error *err) TARN_MUST_USE;
/* Those that the table keeps, as it is now: JSON text; nothing is appended where there are none. */
tarn_code sink_shared_offsets(sink_job *s, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
/* kinds: one a row (tarn_row_kind), or NULL. INVALID: the batch was not taken. Other failures: see
 * the invariants. */
tarn_code sink_write(sink_job *s, tarn_batch *batch, const uint8_t *kinds,
                     tarn_error *err) TARN_MUST_USE; /* takes the batch on success */
/* Closes the files and makes them durable with the offsets, as checkpoint number *out. */
tarn_code sink_precommit(sink_job *s, const char *offsets, int64_t *out,
                         tarn_error *err) TARN_MUST_USE;
/* A notice that this checkpoint is complete: late, twice, out of order as it may come. */
tarn_code sink_commit(sink_job *s, int64_t checkpoint, commit_outcome *out,
                      tarn_error *err) TARN_MUST_USE;
/* Deletes by position, not in the background, and a checkpoint whose commit failed: it must be
 * committed before the next row is written. */
bool sink_waits(const sink_job *s);
/* In place of precommit and commit where the options said background and it is possible: the
 * checkpoint is made durable and committed beside what follows, in its order. At most a few wait;
 * then it waits too. */
bool sink_is_background(const sink_job *s);
tarn_code sink_push(sink_job *s, const char *offsets, tarn_error *err) TARN_MUST_USE;
typedef struct sink_progress {
    commit_outcome commit; /* of the last one; version is the caller's */
    int64_t rows;          /* of all of them */
    int32_t files;
    bool any;
} sink_progress;
/* What was committed since the last poll or flush; its schema may be a newer one. A failure is said
 * each time: then the sink is broken (invariant 2). flush waits until all is committed. */
tarn_code sink_poll(sink_job *s, sink_progress *out, tarn_error *err) TARN_MUST_USE;
tarn_code sink_flush(sink_job *s, sink_progress *out, tarn_error *err) TARN_MUST_USE;
/* The oldest commit that was not told of yet; checkpoint 1 is the first since the sink was opened,
 * one below it another job's. false: there is none. */
bool sink_next_commit(sink_job *s, committer_note *out);
/* Rows and data files of the last sink_commit. */
void sink_last_commit(const sink_job *s, int64_t *rows, int32_t *files);
/* Closes the files without making them durable: for commits of other kinds. The result is the
 * caller's to commit or remove. */
tarn_code sink_take(sink_job *s, tarn_arena *arena, write_result *out,
                    tarn_error *err) TARN_MUST_USE;
/* Counts what sink_take gave as committed, by the caller. */
void sink_note_taken(sink_job *s, const write_result *taken);
/* The table is at this version now (another kind of commit made it). Takes version; NULL: none. */
void sink_adopt(sink_job *s, tarn_table_version *version);
void sink_stats_get(sink_job *s, sink_stats *out);
void sink_forget(sink_job *s); /* the state is removed by sink_free */
void sink_free(sink_job *s);   /* takes NULL; removes what is not durable */

#endif
