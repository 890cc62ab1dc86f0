/* service/rebase_delta.h - what a client's snapshot does to the one that it was made on, as files
 * that come and go. */
#ifndef SERVICE_REBASE_DELTA_H
#define SERVICE_REBASE_DELTA_H

#include "service/added_files.h"
#include "service/sent_snapshot.h"
#include "store/store.h"

typedef struct rebase_delta {
    const tarn_file *added, *added_deletes;
    const int64_t *added_sequences, *added_delete_sequences; /* as given; -1: the snapshot's own */
    int32_t n_added, n_added_deletes;
    added_paths paths; /* of the added data files */
    /* Delete files that go with the removed data, or reach nothing that is left, are not here: they
     * go by themselves wherever the commit is made. */
    const tarn_entry *removed, *removed_deletes;
    int32_t n_removed, n_removed_deletes;
    const tarn_str *referenced; /* data files, not of its own, that its position deletes name */
    int32_t n_referenced;
    const tarn_manifest *manifests; /* its own, where they hold the added data files alone */
    int32_t n_manifests;
} rebase_delta;

/* In arena. CONFLICT: its manifests say what a snapshot on this parent alone does not. sent
 * outlives the result. */
tarn_code rebase_delta_find(tarn_arena *arena, tarn_store *store, const sent_snapshot *sent,
                            rebase_delta *out, tarn_error *err) TARN_MUST_USE;

#endif
