/* dml/dml.h - what reads before it writes: delete, update and overwrite by filter, merge by key;
 * copy-on-write (files are rewritten) or merge-on-read (rows are marked as deleted, and new ones
 * are added). */
#ifndef DML_DML_H
#define DML_DML_H

#include "read/scan.h"
#include "write/commit/commit.h"
#include "write/files/data_writer.h"

typedef struct dml_result {
    commit_outcome outcome;
    int64_t rows_deleted; /* gone for good: not those that an update replaced */
    int64_t rows_updated, rows_inserted;
    int64_t rows_kept; /* rewritten as they were */
    int32_t files_removed, files_rewritten;
    int32_t files_added, deletes_added; /* data files, delete files */
} dml_result;

typedef struct dml_options {
    tarn_str branch;
    bool makes_branch;       /* one that is not there begins at main's head; else it is NOT_FOUND */
    const tarn_expr *filter; /* unbound; NULL only for overwrite of everything */
    bool case_insensitive;
    bool serializable;  /* write.*.isolation-level; snapshot otherwise */
    bool merge_on_read; /* write.*.mode; copy-on-write otherwise. Needs format version 2 */
} dml_options;

/* Whole files go by metadata. Files that match in part are rewritten without the matching rows, or
 * get position deletes (format version 2) or a deletion vector (3), in one commit. Retries on
 * conflict by planning again. Files written for a commit that definitely failed are removed. */
tarn_code dml_delete(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, dml_result *out, tarn_error *err) TARN_MUST_USE;
/* The same, with new files added in the same commit (overwrite by filter). added files are the
 * caller's to remove on failure. Always copy-on-write. */
tarn_code dml_overwrite(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                        const dml_options *options, const tarn_file *added, int32_t n_added,
                        dml_result *out, tarn_error *err) TARN_MUST_USE;
/* set: "a = expr, b = expr" (dml/assign.h), for the rows for which the filter is true. */
tarn_code dml_update(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, tarn_str set, dml_result *out,
                     tarn_error *err) TARN_MUST_USE;

typedef enum dml_matched { DML_MATCHED_UPDATE, DML_MATCHED_DELETE, DML_MATCHED_IGNORE } dml_matched;

typedef struct dml_merge_options {
    tarn_batch *source; /* all rows, of any struct type; columns are matched by name. Those that the
                           table has and the source lacks stay as they are (update), or get their
                           default or null (insert) */
    const tarn_str *key; /* column names; n 0: the identifier fields */
    int32_t n_key;
    dml_matched matched;
    bool insert; /* source rows whose key the table lacks */
} dml_merge_options;

/* INVALID: a key column that is not there or null, a key twice in the source (named); a source
 * column that the table lacks. options.filter must be NULL. */
tarn_code dml_merge(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                    const dml_options *options, const dml_merge_options *merge, dml_result *out,
                    tarn_error *err) TARN_MUST_USE;

#endif
