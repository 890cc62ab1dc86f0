/* service/file_check.h - what clients say of a file against what its footer says. */
#ifndef SERVICE_FILE_CHECK_H
#define SERVICE_FILE_CHECK_H

#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/file_entry.h"

/* INVALID: a Parquet file with another number of rows than was said, with columns whose ids no
 * schema of the table has, or of types that cannot be read as theirs. Files of other formats are
 * not opened. */
tarn_code file_check_footer(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                            const tarn_file *file, tarn_error *err) TARN_MUST_USE;
/* A column by id in any schema, the current one first; NULL: none. */
const tarn_field *file_check_field(const tarn_metadata *m, int32_t id);
/* Columns that a file may have beside the table's (spec, "Reserved Field IDs"). */
bool file_check_reserved(int32_t id);

#endif
