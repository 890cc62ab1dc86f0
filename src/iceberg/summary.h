/* iceberg/summary.h - snapshot summaries as Iceberg Java writes them: what was added and removed,
 * and the totals. Pure. */
#ifndef ICEBERG_SUMMARY_H
#define ICEBERG_SUMMARY_H

#include "iceberg/manifest.h"

typedef struct summary_counts { /* one side: added or removed */
    int64_t data_files, records, files_size;
    int64_t delete_files, position_delete_files, equality_delete_files, dvs;
    int64_t position_deletes, equality_deletes;
} summary_counts;

typedef struct summary_builder {
    summary_counts added, removed;
    int64_t changed_partitions; /* -1: not counted */
    bool replaced_all;
} summary_builder;

void summary_add(summary_counts *counts, const tarn_file *file);
/* operation first, then extra (caller's, may override nothing of ours), then counts that are not
 * zero, then total-* from the parent's summary (left out where the parent's are unknown or would go
 * below zero). Keys: added-data-files, added-records, added-files-size, deleted-data-files, ...,
 * changed-partition-count, total-records... */
tarn_code summary_make(tarn_arena *arena, const char *operation, const summary_builder *b,
                       const tarn_properties *extra, const tarn_snapshot *parent,
                       tarn_properties *out, tarn_error *err) TARN_MUST_USE;

#endif
