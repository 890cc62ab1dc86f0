/* service/file_check.h - what clients say of a file against the table, and against its footer. */
#ifndef SERVICE_FILE_CHECK_H
#define SERVICE_FILE_CHECK_H

#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/file_entry.h"

/* INVALID: a Parquet file with another number of rows than was said, or with such columns as
 * file_check_columns refuses. Files of other formats are not opened. */
tarn_code file_check_footer(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                            const tarn_file *file, tarn_error *err) TARN_MUST_USE;
/* INVALID: columns with ids that the table never gave out, or of types that cannot be read as
 * theirs. what and path name the file that has them. */
tarn_code file_check_columns(const tarn_metadata *m, const tarn_type *root, const char *what,
                             tarn_str path, tarn_error *err) TARN_MUST_USE;
/* What is said of a new file, whoever commits it and how: INVALID where statistics or equality ids
 * are of columns that the table never had, counts are negative, bounds are none of the column's
 * type, or a partition value cannot be the transform's or is not for what the bounds say. */
tarn_code file_check_entry(const tarn_metadata *m, const tarn_file *file,
                           tarn_error *err) TARN_MUST_USE;

#endif
