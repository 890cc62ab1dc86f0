/* service/compact_plan.h - which files of a commit are worth merging, as the table's properties say
 * it. Pure. */
#ifndef SERVICE_COMPACT_PLAN_H
#define SERVICE_COMPACT_PLAN_H

#include "iceberg/metadata.h"
#include "table/file_entry.h"

#define COMPACT_PROPERTY "tarn.compact-before-commit"

typedef struct compact_policy {
    bool wanted;             /* COMPACT_PROPERTY, default false; the others are behind its name: */
    int64_t max_file_bytes;  /* .max-file-bytes, 8 MiB: files smaller than this are merged */
    int64_t target_bytes;    /* .target-file-bytes, default write.target-file-size-bytes */
    int64_t min_files;       /* .min-files, 2: fewer are left as they are */
    int64_t max_group_bytes; /* .max-group-bytes, 128 MiB: read for one group of commits */
    int64_t max_group_files; /* .max-group-files, 4096: the same in files */
    int64_t max_ms;          /* .max-ms, 2000: what is not merged by then stays as it is */
} compact_policy;

/* INVALID names a property that says nothing sensible. */
tarn_code compact_policy_read(const tarn_metadata *m, compact_policy *out,
                              tarn_error *err) TARN_MUST_USE;

/* Files that become one: of one spec, partition, format and sort order. */
typedef struct compact_set {
    int32_t n, cap;
    int32_t *items; /* indexes into the files that were given, rising */
    int64_t bytes, rows;
} compact_set;

/* Sets of min_files or more, none larger than the target; whatever is in none stays as it is. In
 * arena. */
tarn_code compact_plan(tarn_arena *arena, const tarn_metadata *m, const compact_policy *policy,
                       const tarn_file *const *files, int32_t n, compact_set **out, int32_t *n_out,
                       tarn_error *err) TARN_MUST_USE;

#endif
