/* service/sent_match.h - files that a client's snapshot says were there before, against those that
 * were: nothing comes or goes that its entries do not say. */
#ifndef SERVICE_SENT_MATCH_H
#define SERVICE_SENT_MATCH_H

#include "service/sent_snapshot.h"
#include "store/store.h"

/* A file's key in a snapshot, in arena: its path, and where a vector lies in it. data NULL: no
 * memory. */
tarn_str sent_file_key(tarn_arena *arena, const tarn_file *file);
/* INVALID: an entry of the snapshot's own keeps or removes a file that the parent's manifests that
 * it replaces do not have; one of theirs has no such entry, so that it would go and nobody be told;
 * or a file is named twice. Manifests of the parent's are read where they are not in the list any
 * more. */
tarn_code sent_match(tarn_arena *arena, tarn_store *store, const sent_snapshot *sent,
                     tarn_error *err) TARN_MUST_USE;

#endif
