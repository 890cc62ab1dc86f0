/* read/reserved.h - columns that every table has besides its own (spec, "Reserved Field IDs"):
 * where a row lies, and v3's row lineage (spec, "Row Lineage"). Files may hold those of the
 * lineage; what they hold goes before what is inherited. */
#ifndef READ_RESERVED_H
#define READ_RESERVED_H

#include "table/batch.h"
#include "table/file_entry.h"

#define FIELD_ID_FILE                  2147483646 /* _file string */
#define FIELD_ID_POS                   2147483645 /* _pos long */
#define FIELD_ID_ROW_ID                2147483540 /* _row_id long (v3) */
#define FIELD_ID_LAST_UPDATED_SEQUENCE 2147483539 /* _last_updated_sequence_number long (v3) */

#define RESERVED_FIELDS 4
const tarn_field *reserved_field_at(int32_t i);

/* Whether any column of a struct is a reserved one; with_rows: one that needs the rows' numbers. */
bool reserved_any(const tarn_type *type, bool with_rows);

/* Fills in the reserved columns among batch's, whose first row is that number in the file; each
 * came as nulls or as the file has it. */
tarn_code reserved_fill(tarn_env *env, tarn_batch *batch, const tarn_file *file,
                        int64_t sequence_number, int64_t first_row, tarn_error *err) TARN_MUST_USE;

#endif
