/* read/read_int.h - shared inside the read room. */
#ifndef READ_READ_INT_H
#define READ_READ_INT_H

#include "base/map.h"
#include "base/pool.h"
#include "read/read_columns.h"
#include "read/scan.h"

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
/* pool_for's work: jobs[index]. */
tarn_code manifest_job_run(void *jobs, size_t index, tarn_error *err);

#endif
