/* read/history.h - the snapshots from one to another, and what appends among them added. */
#ifndef READ_HISTORY_H
#define READ_HISTORY_H

#include "read/read_int.h"

/* The snapshots after from_id (TARN_NO_SNAPSHOT: the table's first) up to last, oldest first, in
 * arena; from_id itself may have been expired. last NULL: none. INVALID: from_id is no ancestor of
 * last; NOT_FOUND: snapshots between were expired. */
tarn_code history_between(tarn_arena *arena, const tarn_metadata *m, const tarn_snapshot *last,
                          int64_t from_id, const tarn_snapshot *const **out, int32_t *n,
                          tarn_error *err) TARN_MUST_USE;

typedef enum snapshot_operation {
    OPERATION_APPEND,
    OPERATION_REPLACE, /* the same rows in other files */
    OPERATION_CHANGE   /* overwrite, delete, and what is not said */
} snapshot_operation;
snapshot_operation snapshot_operation_of(const tarn_snapshot *snapshot);

/* first, a snapshot without a parent, begins the table: it holds what it wrote itself alone.
 * NOT_FOUND: it only seems to, its ancestors having been expired. */
tarn_code history_check_first(tarn_arena *arena, tarn_store *store, const tarn_snapshot *first,
                              tarn_error *err) TARN_MUST_USE;

/* The manifests that these snapshots added, oldest first; their entries that are ADDED by the
 * manifest's snapshot are what was appended. Replacing snapshots add no rows; INVALID: one that
 * changes rows; as history_check_first. */
tarn_code history_appended(tarn_arena *arena, tarn_store *store,
                           const tarn_snapshot *const *snapshots, int32_t n_snapshots,
                           const tarn_manifest **out, int32_t *n, tarn_error *err) TARN_MUST_USE;

#endif
