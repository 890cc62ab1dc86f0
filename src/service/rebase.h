/* service/rebase.h - an append that was made on an older head of its branch, put on the present
 * one: what lets unmodified clients commit at the same time without a conflict. */
#ifndef SERVICE_REBASE_H
#define SERVICE_REBASE_H

#include "catalog/catalog.h"
#include "service/written.h"

/* The same commit on base, where that is proven to mean the same:
 *   - it adds one snapshot of operation append to one branch and sets that branch to it, and
 * changes nothing else but properties;
 *   - the head that it was made on is still an ancestor of the branch's head;
 *   - its manifest list holds that old head's manifests as they are, and manifests of its own that
 *     only add data files, of specs and a schema that base has;
 *   - every other requirement holds.
 * The snapshot keeps its id; its new manifest list names the new manifests before the head's, its
 * sequence number, first row id, time and totals are the next ones. The list is written through
 * files, not yet synced, and is the caller's to discard where the changes are not committed, also
 * after a failure here. CONFLICT (as change_check says it) where it is not so. */
tarn_code rebase_append(written_files *files, const tarn_metadata *base, const tarn_change_set *set,
                        tarn_change_set *out, tarn_error *err) TARN_MUST_USE;

#endif
