/* service/snapshot_files.h - the data files that a snapshot itself added or removed, read from its
 * manifests. */
#ifndef SERVICE_SNAPSHOT_FILES_H
#define SERVICE_SNAPSHOT_FILES_H

#include "iceberg/manifest.h"
#include "store/store.h"

typedef struct snapshot_files_taker {
    /* e lives as long as the call; its error ends the reading. */
    tarn_code (*take)(void *ctx, const tarn_entry *e, tarn_error *err);
    void *ctx;
} snapshot_files_taker;

/* Every entry of the data manifests that it made, also those that it kept (EXISTING). */
tarn_code snapshot_files_read(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              const tarn_snapshot *s, const snapshot_files_taker *taker,
                              tarn_error *err) TARN_MUST_USE;

#endif
