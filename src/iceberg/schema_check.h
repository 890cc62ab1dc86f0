/* iceberg/schema_check.h - whether a schema may stand in a table of a format version. */
#ifndef ICEBERG_SCHEMA_CHECK_H
#define ICEBERG_SCHEMA_CHECK_H

#include "iceberg/metadata.h"

/* INVALID: types or defaults of a later version, doubled names or ids, too many fields, identifier
 * fields that cannot identify (spec, "Identifier Field IDs"). */
tarn_code schema_check(const tarn_schema *schema, int32_t format_version,
                       tarn_error *err) TARN_MUST_USE;

/* Rows that base's main leaves to m's can be read with m's current schema: of each column that they
 * hold, its type is the one that they were written with or a promotion of it. INVALID names the
 * column that broke that. */
tarn_code schema_check_written(tarn_arena *arena, const tarn_metadata *base, const tarn_metadata *m,
                               tarn_error *err) TARN_MUST_USE;

#endif
