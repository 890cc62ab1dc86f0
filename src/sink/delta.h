/* sink/delta.h - what one task writes: rows, and for changes by key the deletes of the rows before.
 *
 * A row is told by its key. One that was inserted since the last checkpoint is deleted by position,
 * or, in a table with a sort order, whose rows are held until the checkpoint, never written;
 * an older one by an equality delete (which reaches strictly older data only, spec "Scan
 * Planning"), or by position where a key index says where it lies.
 *
 * Invariants: 1 rows of one key come to one writer in order, and what counts is the last; 2 every
 * key of a checkpoint is known until its end: by spilling, never by forgetting (B14); 3 nothing
 * that a close did not hand out outlives the writer; 4 position deletes are collected, not written:
 * a data file has one vector whatever the number of tasks that delete rows of it. */
#ifndef SINK_DELTA_H
#define SINK_DELTA_H

#include "dml/key_index.h"
#include "sink/old_files.h"
#include "table/row_kind.h"
#include "write/files/data_writer.h"
#include "write/files/delete_writer.h"

typedef struct delta_options {
    tarn_store *store;
    const tarn_metadata *metadata; /* outlives the writer, as all of this */
    int32_t task_id;
    size_t memory_bytes; /* 0: 128 MiB */
    /* Changes by key: */
    delete_kind kind; /* DELETE_NONE: appends only */
    bool upsert;
    const int32_t *key_ids;
    int32_t n_key_ids;
    const tarn_type *key_type;         /* equality: a struct of the key's columns, with their ids */
    const tarn_spec *const *key_specs; /* equality: of the files that deletes must reach */
    int32_t n_key_specs;
    const char *scratch_dir; /* equality: for keys that memory does not hold; NULL: none */
    key_index *index;        /* position, vector: of this task's keys */
    const old_files *old;    /* position, vector */
} delta_options;

typedef struct delta_writer delta_writer;
tarn_code delta_writer_new(tarn_env *env, const delta_options *options, delta_writer **out,
                           tarn_error *err) TARN_MUST_USE;
/* kinds: one a row; NULL: all inserts. */
tarn_code delta_writer_write(delta_writer *w, const tarn_batch *batch, const uint8_t *kinds,
                             tarn_error *err) TARN_MUST_USE;
/* Finishes data files and equality deletes; once. On failure everything is removed. */
tarn_code delta_writer_close(delta_writer *w, tarn_arena *arena, write_result *out,
                             tarn_error *err) TARN_MUST_USE;
/* After the close: hands the position deletes over; to is shared by the tasks of a checkpoint. */
tarn_code delta_writer_give(delta_writer *w, delete_writer *to, tarn_error *err) TARN_MUST_USE;
bool delta_writer_has_deletes(const delta_writer *w); /* by position */
int32_t delta_writer_open_files(const delta_writer *w);
int32_t delta_writer_finished_files(const delta_writer *w);
void delta_writer_free(delta_writer *w); /* takes NULL */

#endif
