/* service/commit_index.h - which commit ids a table has: read from its snapshots, so that a restart
 * or another server finds them too. A snapshot of one commit says its id in its summary, one of
 * several in the header of its manifest list (write/commit/commit.h).
 *
 * Invariants: 1 only ids of snapshots that are in a document that became current are here; 2 what
 * is forgotten (memory is bounded: the newest INDEX_IDS at least are known) is found again by a
 * search of the snapshots, which whoever sends a request again asks for. One thread at a time. */
#ifndef SERVICE_COMMIT_INDEX_H
#define SERVICE_COMMIT_INDEX_H

#include "base/map.h"
#include "iceberg/metadata.h"
#include "store/store.h"

#define INDEX_IDS 200000

typedef struct commit_index {
    tarn_env *env;
    struct {
        tarn_arena arena;
        tarn_map ids; /* to snapshot ids */
    } generations[2]; /* the newer first */
    char uuid[64];    /* of the table that it is about: another of its name begins anew */
    int64_t newest;   /* the last snapshot that was read; TARN_NO_SNAPSHOT: none */
} commit_index;

void commit_index_init(commit_index *index, tarn_env *env);
void commit_index_release(commit_index *index);
/* Reads what m has and the index lacks. */
tarn_code commit_index_follow(commit_index *index, tarn_store *store, const tarn_metadata *m,
                              tarn_error *err) TARN_MUST_USE;
/* The snapshot that did it: of this branch, or one that has expired since. TARN_NO_SNAPSHOT: not
 * known here, or taken back by a rollback. */
int64_t commit_index_find(const commit_index *index, const tarn_metadata *m, tarn_str branch,
                          tarn_str id);
/* The same by reading every snapshot's own word. */
tarn_code commit_index_search(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              tarn_str branch, tarn_str id, int64_t *out,
                              tarn_error *err) TARN_MUST_USE;

#endif
