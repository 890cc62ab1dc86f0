/* sink/background.h - checkpoints made durable and committed beside the stream that goes on.
 *
 *   the stream's thread: closes files -> background_push ... background_take: what became of them
 *   an errand of the pool: all that waits -> committer_add -> committer_run -> what waits then ...
 *
 * Invariants: 1 the committer is the errand's from background_push until background_wait; 2 deltas
 * are added and committed in the order in which they were pushed, those that wait together with one
 * sync and one swap; 3 at most BACKGROUND_AHEAD wait, then the stream does; 4 after the first
 * failure nothing more is committed: what waits is dropped with its files, what is durable stays in
 * the state; but where the catalog was away what
 * waits is made durable still. One thread pushes, takes, waits. */
#ifndef SINK_BACKGROUND_H
#define SINK_BACKGROUND_H

#include <pthread.h>

#include "base/pool.h"
#include "sink/committer.h"

#define BACKGROUND_AHEAD 16

typedef struct background_result { /* since the last background_take */
    tarn_code code;
    tarn_error err;
    commit_outcome outcome; /* of the last commit; version is the taker's */
    int64_t rows;           /* of all commits */
    int32_t files;
    bool any;
    int32_t done; /* checkpoints that are over, with so many snapshots */
    int64_t commits;
} background_result;

typedef struct background {
    tarn_env *env;
    committer *committer;
    pool_errand errand;
    pthread_mutex_t lock;
    pthread_cond_t moved;  /* something that waited was taken, or the errand ended */
    sink_pending *waiting; /* guarded by lock, as all below */
    int32_t n_waiting, n_working;
    bool running, stop;
    bool away; /* it failed since the catalog is */
    background_result result;
    tarn_buf notes;   /* of commits: committer_note each */
    tarn_buf offsets; /* of the last commit */
    bool has_offsets;
    committer_counts counts, last;
} background;

tarn_code background_init(background *b, tarn_env *env, committer *c,
                          tarn_error *err) TARN_MUST_USE;
void background_release(background *b); /* waits for what is under way, drops what waits */
/* Takes p. Waits while too many wait already. */
void background_push(background *b, sink_pending *p);
void background_wait(background *b); /* until nothing waits and nothing runs */
/* Until at most n checkpoints wait or are worked on, or something failed. */
void background_wait_for(background *b, int32_t n);
/* What happened since it was last asked: code is that of the failure that ended it, every time. */
void background_take(background *b, background_result *out);
/* Notes of commits since it was last asked are appended to out, or given up where they can't be. */
void background_notes(background *b, tarn_buf *out);
/* Whether something failed, without taking anything. err may not be NULL. */
bool background_failed(background *b, tarn_error *err);
/* The committer's counts, and how many checkpoints are not committed yet. */
int32_t background_counts(background *b, committer_counts *counts, committer_counts *last);
/* Offsets of the last commit are appended to out; *has: there are some. */
tarn_code background_offsets(background *b, tarn_buf *out, bool *has,
                             tarn_error *err) TARN_MUST_USE;

#endif
