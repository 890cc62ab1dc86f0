/* sink/old_files.h - the data files that a checkpoint's deletes by position may reach: those of the
 * snapshot that it is based on, by path, with what was deleted of them before.
 *
 * Planning a snapshot takes as long as it has manifests, so what it gave is kept from checkpoint to
 * checkpoint while nobody but the sink changes the branch: files and vectors of the sink's own
 * checkpoints are added to it, before they are committed.
 *
 * Invariant: what is here stands for snapshot_id, and the checkpoints that were added and are not
 * in it yet, as a plan made of it now would. */
#ifndef SINK_OLD_FILES_H
#define SINK_OLD_FILES_H

#include "base/map.h"
#include "read/scan.h"
#include "write/files/data_writer.h"

typedef struct old_file {
    const tarn_file *file;
    const scan_task *task; /* of the plan, with the deletes of then; NULL: came later */
    tarn_entry *vector;    /* came later: the newest; NULL: what the task says */
    int64_t merged;        /* turn in which what was deleted went to the delete writer */
} old_file;

typedef struct old_files {
    tarn_env *env; /* NULL: not open */
    tarn_store *store;
    tarn_arena arena;
    int64_t snapshot_id;
    tarn_plan *plan; /* NULL: there was no snapshot */
    tarn_map by_path;
    int64_t turn;    /* of the checkpoint that is written */
    int64_t n_later; /* files and vectors that came after the plan */
} old_files;

/* m outlives it. */
tarn_code old_files_open(old_files *old, tarn_env *env, tarn_store *store, const tarn_metadata *m,
                         int64_t snapshot_id, tarn_error *err) TARN_MUST_USE;
/* Whether another checkpoint on this snapshot can go on with what is there; begins its turn. */
bool old_files_go_on(old_files *old, int64_t snapshot_id);
old_file *old_files_find(const old_files *old, tarn_str path); /* NULL: not there */
/* What was deleted of a file before, for a vector that takes its place: *before NULL: nothing.
 * made: the caller's to free, or NULL. The entries that go live as long as old. */
tarn_code old_file_deleted(const old_files *old, const old_file *file,
                           const tarn_positions **before, tarn_positions **made,
                           const tarn_entry *const **replaced, int32_t *n_replaced,
                           tarn_error *err) TARN_MUST_USE;
/* A checkpoint's data files and vectors. On failure nothing is open. */
tarn_code old_files_add(old_files *old, const write_result *written, tarn_error *err) TARN_MUST_USE;
void old_files_moved(old_files *old, int64_t snapshot_id); /* what was added is in this one */
void old_files_close(old_files *old);                      /* also of a zeroed one */

#endif
