/* dml/dml.h - what reads before it writes: delete and overwrite by filter, copy-on-write. */
#ifndef DML_DML_H
#define DML_DML_H

#include "read/scan.h"
#include "write/commit/commit.h"
#include "write/files/data_writer.h"

typedef struct dml_result {
    commit_outcome outcome;
    int64_t rows_deleted, rows_kept; /* kept: rewritten */
    int32_t files_removed, files_rewritten;
} dml_result;

typedef struct dml_options {
    tarn_str branch;
    const tarn_expr *filter; /* unbound; NULL only for overwrite of everything */
    bool case_insensitive;
    bool serializable; /* write.delete.isolation-level; snapshot otherwise */
} dml_options;

/* Whole files go by metadata, files that match in part are rewritten without the matching rows, in
 * one commit. Retries on conflict by planning again. Files written for a commit that definitely
 * failed are removed. */
tarn_code dml_delete(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, dml_result *out, tarn_error *err) TARN_MUST_USE;
/* The same, with new files added in the same commit (overwrite by filter). added files are the
 * caller's to remove on failure. */
tarn_code dml_overwrite(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                        const dml_options *options, const tarn_file *added, int32_t n_added,
                        dml_result *out, tarn_error *err) TARN_MUST_USE;

#endif
