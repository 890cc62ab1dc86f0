/* service/compact_merge.h - the rows of several data files as one, by the table's current schema
 * (columns by id, with defaults), in its format and, where the files claim it, its order. */
#ifndef SERVICE_COMPACT_MERGE_H
#define SERVICE_COMPACT_MERGE_H

#include "write/files/data_writer.h"

typedef struct compact_input_files {
    const tarn_metadata *metadata;
    const tarn_file *const *files; /* of one spec, partition and sort order */
    int32_t n;
    int64_t target_bytes;
    int64_t deadline_us; /* of the env's clock: given up then (TARN_LIMIT) */
} compact_input_files;

/* Fewer files than there were, with as many rows as all said; entries in arena. After a failure
 * nothing is left of it, and where it is one file that is not what was said of it (rows, partition,
 * nulls in a required column: INVALID; it is not there: NOT_FOUND) *liar is its number, else -1. */
tarn_code compact_merge_files(tarn_env *env, tarn_store *store, const compact_input_files *in,
                              tarn_arena *arena, write_result *out, int32_t *liar,
                              tarn_error *err) TARN_MUST_USE;

#endif
