/* sink/state.h - what a sink knows over restarts, in a folder of its own: who it is, which
 * checkpoints were made durable but are not known to be committed, and where the source stood at
 * the last committed one.
 *
 *   sink             identity: sink id, operator id, table, branch; written once
 *   key              the columns that rows are changed by (state_key.c)
 *   epoch-E          one job's turn; whoever makes the highest one fences the others
 *   checkpoint-N-E   a delta: the files of checkpoint N, written in epoch E
 *   committed-E-N    epoch E saw checkpoint N committed, and all before it
 *
 * Invariants: 1 every file is written whole and carries length and checksum; deltas are synced
 * before they get their names; 2 a delta is there, durable, before anything of it is committed, and
 * goes only when a `committed` that stands for it is durable, or when it was given up for certain.
 * A `committed` is not synced by itself: the next sync of the state does it. Where a power cut
 * takes it, the delta is still there, and the table's history says that it is committed; 3 a job
 * reads deltas after it took its epoch, and looks for higher epochs after it wrote a delta: so of
 * two jobs each sees the other, or the older one's delta is known to the newer one; 4 nothing here
 * is ever taken for another table's or branch's; 5 a delta says which one it follows, and counts
 * only where that one is there or committed (pending.c). */
#ifndef SINK_STATE_H
#define SINK_STATE_H

#include "iceberg/metadata.h"
#include "store/store.h"
#include "write/files/data_writer.h"

typedef struct sink_delta {
    int64_t checkpoint; /* rising over the sink's life */
    int64_t epoch;
    int64_t after_checkpoint; /* the one before it in the stream; 0: none, -1: not said */
    int64_t after_epoch;      /* 0: not known */
    char commit_id[37];       /* commit_request.commit_id: makes it one snapshot whoever commits */
    int64_t base_snapshot_id; /* the branch's head that its deletes were made for */
    tarn_str offsets;         /* data NULL: none */
    write_result written;
} sink_delta;

typedef struct sink_committed { /* the last one */
    int64_t checkpoint;         /* 0: none yet */
    int64_t epoch;              /* of its delta; 0: not known */
    int64_t snapshot_id;
    tarn_str offsets; /* data NULL: none */
} sink_committed;

typedef struct sink_pending { /* deltas in order of their checkpoints */
    tarn_arena arena;
    sink_delta delta;
    struct sink_pending *next;
    struct sink_pending *before; /* what follows is sink_pending_mark's */
    bool rooted, stray;
} sink_pending;

typedef struct sink_state_options {
    tarn_store *store; /* where dir lies; outlives the state */
    tarn_str dir;
    tarn_str table;      /* its name, for messages */
    tarn_str table_uuid; /* len 0: a table without one */
    tarn_str branch;
    tarn_str sink_id; /* len 0: the one that is there, or a fresh one */
} sink_state_options;

typedef struct sink_state sink_state;
/* Reads who the sink is, or makes it up. INVALID: the folder is another table's, branch's or
 * sink's; CORRUPT: damaged. Both name the file. */
tarn_code sink_state_open(tarn_env *env, const sink_state_options *options, sink_state **out,
                          tarn_error *err) TARN_MUST_USE;
void sink_state_close(sink_state *state); /* takes NULL */
/* In place of close, when the table is gone: nothing that can be gone on with is left in the
 * folder. Where a newer job has it, it stays. */
void sink_state_remove(sink_state *state);
tarn_str sink_state_id(const sink_state *state);
tarn_str sink_state_operator(const sink_state *state);
int64_t sink_state_epoch(const sink_state *state); /* 0 before begin */
/* Whether it lies in this very store, so that one sync makes both durable. */
bool sink_state_is_in(const sink_state *state, const tarn_store *store);

/* The job changes rows by this key (field ids; n 0: it only adds rows). The first key with a
 * checkpoint stays the state's: INVALID names both, unless the new one became the table's
 * identifier fields since. */
tarn_code sink_state_key(sink_state *state, const int32_t *ids, int32_t n, const tarn_metadata *m,
                         tarn_error *err) TARN_MUST_USE;

/* Takes the next epoch, at least `least`, and reads what other jobs left. m: the table's, for
 * partition tuples. pending is the caller's: sink_pending_free each. */
tarn_code sink_state_begin(sink_state *state, int64_t least, const tarn_metadata *m,
                           sink_committed *committed, sink_pending **pending,
                           tarn_error *err) TARN_MUST_USE; /* committed lives as long as state */
/* DENIED: a job with a higher epoch is there. */
tarn_code sink_state_check(sink_state *state, tarn_error *err) TARN_MUST_USE;
/* Durable after the next sink_state_sync. Nothing that it names may be less durable then. */
tarn_code sink_state_put(sink_state *state, const sink_delta *delta, tarn_error *err) TARN_MUST_USE;
/* Also removes the files that are not needed any more. */
tarn_code sink_state_sync(sink_state *state, tarn_error *err) TARN_MUST_USE;
tarn_code sink_state_commit(sink_state *state, const sink_committed *committed,
                            tarn_error *err) TARN_MUST_USE;
/* A delta that sink_state_commit has spoken for: it is removed after the next sync. Failing to is
 * logged, and harmless. */
void sink_state_done(sink_state *state, const sink_delta *delta);
/* A delta that is given up; its files are still there, and are the caller's to remove after it. */
tarn_code sink_state_drop(sink_state *state, const sink_delta *delta,
                          tarn_error *err) TARN_MUST_USE;
sink_pending *sink_pending_new(tarn_env *env);
void sink_pending_free(sink_pending *pending); /* this one */
/* Marks as strays the deltas of the list that are not the stream's after checkpoint `known`, the
 * last one that is committed, whose delta was of that epoch (0: not known). */
void sink_pending_mark(sink_pending *list, int64_t known, int64_t known_epoch);

/* sink/delta_text.c: a delta as JSON and back; what names the file in errors. */
typedef struct sink_identity {
    tarn_str sink_id, operator_id, table, table_uuid, branch;
} sink_identity;
tarn_code delta_write(const sink_identity *who, const sink_delta *delta, tarn_buf *out,
                      tarn_error *err) TARN_MUST_USE;
tarn_code delta_read(tarn_arena *arena, const sink_identity *who, const json_value *json,
                     const tarn_metadata *m, const char *what, sink_delta *out,
                     tarn_error *err) TARN_MUST_USE;

#endif
