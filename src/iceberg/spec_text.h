/* iceberg/spec_text.h - pieces of specs as people type them, for the files of this room. */
#ifndef ICEBERG_SPEC_TEXT_H
#define ICEBERG_SPEC_TEXT_H

#include "iceberg/metadata.h"

typedef struct spec_term {
    tarn_str column;
    tarn_transform transform;
    tarn_str name; /* after "as"; data NULL: none */
} spec_term;

/* One term, "bucket(16, a) as b"; borrows from text. */
tarn_code spec_term_parse(tarn_str text, spec_term *out, tarn_error *err) TARN_MUST_USE;
/* "ts_month", "a_bucket"; with_param "a_bucket_16" as Iceberg Java names fields that are added
 * later. */
tarn_code spec_field_name(tarn_arena *arena, tarn_str column, const tarn_transform *transform,
                          bool with_param, tarn_str *out, tarn_error *err) TARN_MUST_USE;
/* Names that clash with each other or with columns, and transforms that say the same twice. */
tarn_code spec_check(const tarn_type *root, const tarn_partition_field *fields, int32_t n,
                     tarn_error *err) TARN_MUST_USE;

#endif
