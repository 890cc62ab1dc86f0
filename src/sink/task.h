/* sink/task.h - one of the writers that work side by side: a serial queue of batches and what
 * writes them. The thread that feeds the tasks is one; the env's pool runs them.
 *
 * Invariants: 1 batches of a task are written in the order in which they were given; 2 at most
 * TASK_QUEUE batches wait, then the feeder waits (and works meanwhile); 3 after the first failure
 * nothing more is written, and every later call reports it. */
#ifndef SINK_TASK_H
#define SINK_TASK_H

#include <stdatomic.h>

#include "base/pool.h"
#include "sink/delta.h"

#define TASK_QUEUE 4

typedef struct task_item {
    tarn_batch batch;
    uint8_t *kinds; /* own memory; NULL: inserts */
} task_item;

typedef struct sink_task {
    tarn_env *env;
    delta_writer *writer;
    bool direct; /* the only task: written at once, on the feeder's thread */
    task_item waiting[TASK_QUEUE], working[TASK_QUEUE];
    int32_t n_waiting, n_working;
    pool_task job;
    bool started;              /* job was submitted and not waited for */
    atomic_bool idle;          /* job is done */
    atomic_int finished_files; /* of the writer, as its last batch left it */
    tarn_code broken;
    tarn_error broken_err;
} sink_task;

/* Takes writer. */
void task_init(sink_task *t, tarn_env *env, delta_writer *writer, bool direct);
void task_release(sink_task *t); /* waits; files that no close handed out are removed */
/* A batch and its kinds (one a row, or NULL); takes the batch on success (a direct task only reads
 * it). */
tarn_code task_write(sink_task *t, tarn_batch *batch, const uint8_t *kinds,
                     tarn_error *err) TARN_MUST_USE;
tarn_code task_flush(sink_task *t, tarn_error *err) TARN_MUST_USE; /* everything given is written */

#endif
