/* sink/delta.h - what one task writes: rows, and for changes by key the deletes of the rows before.
 *
 * Invariants: 1 rows of one key come to one writer in order; 2 nothing that a close did not hand
 * out outlives the writer. */
#ifndef SINK_DELTA_H
#define SINK_DELTA_H

#include "table/row_kind.h"
#include "write/files/data_writer.h"
#include "write/files/delete_writer.h"

typedef struct delta_options {
    tarn_store *store;
    const tarn_metadata *metadata; /* outlives the writer */
    int32_t task_id;
    size_t memory_bytes; /* 0: 128 MiB */
} delta_options;

typedef struct delta_writer delta_writer;
tarn_code delta_writer_new(tarn_env *env, const delta_options *options, delta_writer **out,
                           tarn_error *err) TARN_MUST_USE;
/* kinds: one a row; NULL: all inserts. */
tarn_code delta_writer_write(delta_writer *w, const tarn_batch *batch, const uint8_t *kinds,
                             tarn_error *err) TARN_MUST_USE;
/* Finishes everything since the last close; as data_writer_close. Adds to out. */
tarn_code delta_writer_close(delta_writer *w, tarn_arena *arena, write_result *out,
                             tarn_error *err) TARN_MUST_USE;
void delta_writer_free(delta_writer *w); /* takes NULL */

#endif
