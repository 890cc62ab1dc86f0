/* sink/distribute.h - which task a row goes to (write.distribution-mode).
 *
 *   none  whole batches, one after the other
 *   hash  rows of one partition to one task
 *   range rows by the first column of the table's sort order, in ranges that the first batch shows
 *   key   rows of one key to one task, in order: whatever was asked, where there are changes
 *
 * What can't be told apart by its mode (no partitions, no sort order) goes as by none. One thread.
 */
#ifndef SINK_DISTRIBUTE_H
#define SINK_DISTRIBUTE_H

#include "sink/keys.h"

typedef struct distributor distributor;
/* mode: len 0: as the table says. INVALID: an unknown one, or range with changes. keys, m outlive
 * it. */
tarn_code distributor_new(tarn_env *env, const tarn_metadata *m, tarn_str mode,
                          const sink_keys *keys, int32_t n_tasks, distributor **out,
                          tarn_error *err) TARN_MUST_USE;
/* Whole batches go to tasks by turns: distributor_route need not be asked. */
bool distributor_is_whole(const distributor *d);
/* The rows of a batch by task, each list rising; they hold until the next call. */
typedef struct task_rows {
    int32_t *rows;
    int64_t n;
} task_rows;
tarn_code distributor_route(distributor *d, const tarn_batch *batch, const task_rows **out,
                            tarn_error *err) TARN_MUST_USE;
void distributor_free(distributor *d); /* takes NULL */

#endif
