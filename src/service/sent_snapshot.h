/* service/sent_snapshot.h - snapshots that a standard client made, as it sent them: what their
 * manifest lists have that their parents' have not, and whether it holds. Nobody else looks at it
 * before readers do, and they believe it. */
#ifndef SERVICE_SENT_SNAPSHOT_H
#define SERVICE_SENT_SNAPSHOT_H

#include "iceberg/change.h"
#include "iceberg/manifest.h"
#include "service/places.h"

typedef struct sent_manifest {
    tarn_manifest listed;
    manifest_entries entries; /* as written: what an entry inherits is -1 */
} sent_manifest;

typedef struct sent_snapshot {
    const tarn_snapshot *snapshot;
    const tarn_metadata *metadata; /* the table with the commit's schemas and specs */
    bool understood;               /* false: encrypted or inline manifests; no rebase */
    const tarn_manifest *list;
    int32_t n_list;
    const sent_manifest *own; /* not in the parent's list */
    int32_t n_own;
    const tarn_manifest *dropped; /* the parent's that are not in the list and have live files */
    int32_t n_dropped;
} sent_snapshot;

/* Every snapshot that the commit adds, in order; those that the table has already are left out
 * (they are refused as such). base NULL: the commit creates the table. base outlives the result.
 *
 * INVALID names the file and the place where a list or a manifest of the client's own is not
 * there, cannot be read, lies outside the table and the warehouse, or says what is not so: counts,
 * partition summaries, snapshot ids, sequence numbers, row ids; specs, schemas and fields that the
 * table lacks; tuples that are none of the spec's; added files that lie elsewhere; what
 * file_check_entry and sent_match refuse. Manifests that the parent's list has in the same words
 * are not read. Data files are not looked for: a commit
 * may name what its writer reads back later, and a look at each would cost more than the commit.
 * CONFLICT: the parent is not in the table. */
tarn_code sent_snapshots_read(tarn_arena *arena, tarn_store *store, const service_places *places,
                              const tarn_metadata *base, const tarn_change_set *set,
                              const sent_snapshot **out, int32_t *n, tarn_error *err) TARN_MUST_USE;

#endif
