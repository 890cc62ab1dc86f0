/* write/files/row_runs.h - rows to be sorted that memory does not hold: sorted runs in a temporary
 * file, merged by blocks. One spill serves all partitions of a writer, whose runs lie in its one
 * file one behind the other.
 *
 * Invariants: 1 a run is sorted; 2 a merge gives batches whose rows lie neither before those of the
 * batches given before nor behind those to come (within a batch they come in no order: it is sorted
 * once more, which takes the place of comparing runs row by row); 3 equal rows stay as they came;
 * 4 a merge reads RUNS_MERGED runs at most at once, by blocks of which all fit memory_bytes. */
#ifndef WRITE_FILES_ROW_RUNS_H
#define WRITE_FILES_ROW_RUNS_H

#include "store/store_temp.h"
#include "write/files/row_order.h"

#define RUNS_MERGED 64

typedef struct row_spill {
    tarn_env *env;
    const row_sorter *sorter;
    const tarn_type *root;
    size_t block_bytes;
    store_temp *temp;   /* NULL: nothing was spilled yet */
    tarn_builder piece; /* of a run that is written */
    tarn_buf bytes;     /* of a block */
} row_spill;

/* Those of one partition; zeroed: none. */
typedef struct row_runs {
    struct row_run *items;
    int32_t n, cap;
} row_runs;

/* sorter and root outlive it. */
void row_spill_init(row_spill *s, tarn_env *env, const row_sorter *sorter, const tarn_type *root,
                    int64_t memory_bytes);
void row_spill_release(row_spill *s); /* also of a zeroed one */
int64_t row_spill_bytes(const row_spill *s);
/* A batch as a run: runs has it when this succeeds. */
tarn_code row_spill_add(row_spill *s, row_runs *runs, const tarn_batch *batch,
                        const row_order *order, tarn_error *err) TARN_MUST_USE;
/* Gives the disk its room back; no runs are left. */
tarn_code row_spill_clear(row_spill *s, tarn_error *err) TARN_MUST_USE;
void row_runs_release(row_runs *runs, tarn_env *env);

/* The runs and, unsorted, the rows behind them (taken on success; may have none), as one order. */
typedef struct row_merge row_merge;
tarn_code row_merge_open(row_spill *s, row_runs *runs, tarn_batch *tail, row_merge **out,
                         tarn_error *err) TARN_MUST_USE;
tarn_code row_merge_next(row_merge *m, tarn_batch *out, tarn_error *err) TARN_MUST_USE; /* 0: end */
void row_merge_free(row_merge *m); /* takes NULL */

#endif
