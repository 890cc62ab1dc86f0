/* iceberg/schema_check.h - whether a schema may stand in a table of a format version. */
#ifndef ICEBERG_SCHEMA_CHECK_H
#define ICEBERG_SCHEMA_CHECK_H

#include "iceberg/metadata.h"

/* INVALID: types or defaults of a later version, doubled names or ids, too many fields, identifier
 * fields that cannot identify (spec, "Identifier Field IDs"). */
tarn_code schema_check(const tarn_schema *schema, int32_t format_version,
                       tarn_error *err) TARN_MUST_USE;

#endif
