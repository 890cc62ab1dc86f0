/* read/read_int.h - shared inside the read room. */
#ifndef READ_READ_INT_H
#define READ_READ_INT_H

#include "base/pool.h"
#include "read/scan.h"

/* The struct of these columns of root, whole or parts of nested ones, in the order asked for. */
tarn_code columns_select(tarn_arena *arena, const tarn_type *root, const tarn_str *columns,
                         int32_t n_columns, bool case_insensitive, const tarn_type **out,
                         tarn_error *err) TARN_MUST_USE;
/* wanted, with what the bound filter needs besides (found in root) added: wanted itself when it
 * needs nothing. */
tarn_code columns_with_filter(tarn_arena *arena, const tarn_type *root, const tarn_type *wanted,
                              const tarn_expr *filter, const tarn_type **out,
                              tarn_error *err) TARN_MUST_USE;

/* Live entries of a snapshot's manifests, each manifest in an arena of its own. */
typedef struct manifest_job {
    tarn_env *env;
    tarn_store *store;
    const tarn_metadata *metadata;
    const tarn_manifest *manifest;
    const manifest_read_options *options;
    tarn_arena arena;
    manifest_entries entries;
} manifest_job;
/* The manifests of a snapshot (also v1 ones listed inline); in arena. */
tarn_code snapshot_manifests(tarn_arena *arena, tarn_store *store, const tarn_snapshot *snapshot,
                             const tarn_manifest **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
/* pool_for's work: jobs[index]. */
tarn_code manifest_job_run(void *jobs, size_t index, tarn_error *err);

#endif
