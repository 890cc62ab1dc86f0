/* service/trim.h - snapshots that the table's own policy lets go, dropped by the very commit that
 * adds new ones, so that metadata does not grow with every group.
 *
 * Only for tables that ask for it (property TRIM_PROPERTY is true), and only where it is cheap to
 * be right: the table has one branch and no tag, and all of its snapshots are appends. Then every
 * data file stays live, and what goes with the old snapshots is their manifest lists, and manifests
 * that the oldest one that stays has merged away. Everything else is for maintenance to expire. */
#ifndef SERVICE_TRIM_H
#define SERVICE_TRIM_H

#include "iceberg/change.h"
#include "store/store.h"

/* With history.expire.max-snapshot-age-ms and history.expire.min-snapshots-to-keep, or the
 * branch's own. */
#define TRIM_PROPERTY "tarn.expire-on-commit"

typedef struct trim_plan {
    const tarn_snapshot **expired; /* the oldest last */
    int32_t n;
    const tarn_snapshot *oldest_kept;
    tarn_change change;
} trim_plan;

/* What may go of m that base had already (what came after it is not known to anybody yet, whatever
 * its age). n 0: nothing. In arena, and borrowed from m. */
tarn_code trim_find(tarn_arena *arena, const tarn_metadata *m, const tarn_metadata *base,
                    int64_t now_ms, trim_plan *out, tarn_error *err) TARN_MUST_USE;
/* After the commit that took the change: the files. Failures leave orphans, and are logged. */
void trim_files(tarn_env *env, tarn_store *store, const trim_plan *plan);

#endif
