/* service/rebase.h - a commit that was made on an older head of its branch, put on the present one:
 * what lets unmodified clients commit at the same time without a conflict. The rules are in
 * rebase.c. */
#ifndef SERVICE_REBASE_H
#define SERVICE_REBASE_H

#include "catalog/catalog.h"
#include "service/rebase_delta.h"
#include "service/written.h"

/* A client's commit, and what was found out about it. */
typedef struct rebase_commit {
    tarn_change_set set;
    const sent_snapshot *snapshots; /* that it adds; as read when it came */
    int32_t n_snapshots;
    added_files *added;    /* the service's */
    bool exact;            /* its client says that it holds for its own base alone */
    tarn_arena *arena;     /* lives as long as the commit: what is found out later goes there */
    rebase_delta **deltas; /* NULL, or one a snapshot, once it was found */
} rebase_commit;

/* The same commit on base, where that is proven to mean the same. The snapshots keep their
 * ids, schemas and summaries; manifest lists, sequence numbers, row ids, times and totals are new.
 * Files are written through `files`, not yet synced, and are the caller's to discard where the
 * changes are not committed, also after a failure here. CONFLICT (as change_check says it) where it
 * is not so. */
tarn_code rebase_make(rebase_commit *commit, written_files *files, const tarn_metadata *base,
                      tarn_change_set *out, tarn_error *err) TARN_MUST_USE;

#endif
