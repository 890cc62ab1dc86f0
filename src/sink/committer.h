/* sink/committer.h - deltas become snapshots: everything complete up to a checkpoint, in order, one
 * snapshot each, exactly once. Plain ones that wait together are committed with one swap.
 *
 *   put (durable in the state) -> commit_run with the delta's commit id -> committed (state) ->
 * gone
 *
 * Invariants: 1 with a state, nothing is committed that is not durable there; 2 a delta leaves the
 * state only when it is known to be in the table or was given up for certain; 3 a snapshot of a
 * delta is looked for by commit id with every base, and by checkpoint number and files where
 * snapshots have expired, so nothing is committed twice; 4 a job that a newer one took the place of
 * commits nothing; 5 deltas are given up from the newest to the oldest, so that what is left after
 * a kill is always a beginning of the stream. One thread at a time. */
#ifndef SINK_COMMITTER_H
#define SINK_COMMITTER_H

#include "sink/state.h"
#include "write/commit/commit.h"

/* Summary entries of every snapshot of a sink that has a state or was given an id. */
#define SINK_KEY_ID         "tarn.sink-id"
#define SINK_KEY_OPERATOR   "tarn.operator-id"
#define SINK_KEY_CHECKPOINT "tarn.max-committed-checkpoint-id"
#define SINK_KEY_EPOCH      "tarn.sink-epoch"

typedef struct committer_options {
    tarn_catalog *catalog; /* all of this outlives the committer */
    const tarn_ident *ident;
    tarn_str branch;    /* never empty */
    commit_kind append; /* fast or merge append, or replace partitions */
    tarn_properties summary;
    tarn_str table_uuid;
    tarn_str sink_id;     /* len 0: no sink entries in summaries */
    sink_state *state;    /* NULL: none */
    int32_t empty_every;  /* 0: empty checkpoints make no snapshot */
    bool accept_rollback; /* a branch that no longer holds what was committed is gone on from */
    tarn_str shared;      /* entry of sink/shared_offsets.h, without a state; len 0: none */
} committer_options;

typedef struct committer_counts {
    int64_t commits, retries, commit_ms;
    /* Of deltas that are in the table, whoever put them there: */
    int64_t rows, deleted_rows, data_files, delete_files, bytes;
} committer_counts;

typedef struct committer_note { /* a checkpoint that is a snapshot now */
    int64_t checkpoint, snapshot_id;
    committer_counts counts; /* its own; time and retries are of the swap, which may be shared */
} committer_note;

#define COMMITTER_NOTES 1024 /* that wait to be asked for; later ones are not kept */

typedef struct committer {
    tarn_env *env;
    committer_options options;
    tarn_property mine;       /* how its snapshots are known */
    tarn_property fenced[2];  /* the same, and its operator's among them */
    sink_committed committed; /* offsets in offsets_text */
    tarn_buf offsets_text;
    sink_pending *pending;
    int32_t empty_in_row;
    int64_t next_checkpoint;
    bool outdated; /* the first pending one can't go to the table's format version any more */
    committer_counts counts, last; /* of all runs, of the last one */
    int64_t rows;                  /* of the last run */
    int32_t files;
    commit_memory *memory; /* of what its commits found; NULL: there was no memory for it */
    committer_counts swap; /* time and retries of the last one */
    tarn_buf notes;        /* committer_note each, until the owner takes them */
} committer;

void committer_init(committer *c, tarn_env *env, const committer_options *options);
void committer_release(committer *c); /* what is pending stays in the state */
/* Takes the state's epoch and commits what other jobs left there, up to checkpoint `complete` (-1:
 * all of it; later ones are dropped). base: a loaded version. out: as committer_run. */
tarn_code committer_recover(committer *c, const tarn_table_version *base, int64_t complete,
                            commit_outcome *out, tarn_error *err) TARN_MUST_USE;
/* Makes deltas durable, in their order and by one sync; takes the list in every case. On failure
 * their files are removed, unless the state may name them. */
tarn_code committer_add(committer *c, sink_pending *first, tarn_error *err) TARN_MUST_USE;
/* Commits all that is pending up to this checkpoint; numbers that are done already, or were never
 * there, change nothing. out: the last commit; version is the caller's. */
tarn_code committer_run(committer *c, int64_t up_to, commit_outcome *out,
                        tarn_error *err) TARN_MUST_USE;
int32_t committer_pending(const committer *c); /* how many */
/* Counts a snapshot of these files. */
void committer_count(committer *c, const write_result *w);
/* Gives up everything that is not committed, and removes its files. */
tarn_code committer_drop_all(committer *c, tarn_error *err) TARN_MUST_USE;

/* sink/sink_history.c: what a branch's snapshots say about a sink. */
typedef struct sink_history {
    int64_t checkpoint; /* the highest committed; 0: none */
    int64_t epoch;      /* the highest */
    int64_t snapshot_id;
} sink_history;
/* newest_only: stops at the newest snapshot of this sink. */
tarn_code sink_history_read(const tarn_metadata *m, tarn_str branch, tarn_str sink_id,
                            tarn_str operator_id, bool newest_only, sink_history *out,
                            tarn_error *err) TARN_MUST_USE;
/* Whether every snapshot of the branch since this one is still there. */
bool sink_history_reaches(const tarn_metadata *m, tarn_str branch, int64_t snapshot_id);
/* Whether a snapshot of the table names one of the delta's files. */
tarn_code sink_history_has_files(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                                 const sink_delta *delta, bool *out, tarn_error *err) TARN_MUST_USE;

#endif
