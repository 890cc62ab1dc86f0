/* dml/import.h - data files that are already there become a table's, without being written again
 * (hive-style folders: k=v below a root). Rows are not read: footers give counts and bounds, folder
 * names the partition values, each decoded exactly once (B04). All files are looked at before
 * anything is made or committed; then they are added in one snapshot. */
#ifndef DML_IMPORT_H
#define DML_IMPORT_H

#include "write/commit/commit.h"

typedef struct import_options {
    tarn_str folder; /* absolute */
    bool create;     /* the table, from the files' schemas and the folders' names */
    tarn_str
        partition_by; /* with create: as in metadata_new; len 0: identity of every folder key */
    const tarn_type *key_types; /* with create: a struct of folder keys whose type is not to be
                                   inferred; NULL: none */
    int32_t format_version;     /* with create; 0: 2 */
    tarn_properties properties; /* with create */
    bool dry_run;               /* look at everything, change nothing */
    bool skip_existing;         /* files that the table has already are left out, not refused */
    bool merge;                 /* COMMIT_MERGE_APPEND instead of COMMIT_FAST_APPEND */
    void (*progress)(void *ctx, int64_t done, int64_t total); /* files; may be NULL */
    void *ctx;
} import_options;

typedef struct import_result {
    commit_outcome outcome;
    int64_t files, skipped, rows, bytes;
    bool created;
} import_result;

/* *out is filled in every case. Errors name the file and why it cannot be one of the table's. */
tarn_code dml_import(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const import_options *options, import_result *out,
                     tarn_error *err) TARN_MUST_USE;

#endif
