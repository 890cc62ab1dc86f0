/* iceberg/spec_text.h - pieces of specs as people type them, for the files of this room. */
#ifndef ICEBERG_SPEC_TEXT_H
#define ICEBERG_SPEC_TEXT_H

#include "iceberg/metadata.h"

typedef struct spec_term {
    tarn_str column;
    tarn_transform transform;
    tarn_str name; /* after "as"; data NULL: none */
} spec_term;

/* One term, "bucket(16, a) as b"; borrows from text and arena. */
tarn_code spec_term_parse(tarn_arena *arena, tarn_str text, spec_term *out,
                          tarn_error *err) TARN_MUST_USE;
/* "ts_month", "a_bucket"; with_param "a_bucket_16" as Iceberg Java names fields that are added
 * later. */
tarn_code spec_field_name(tarn_arena *arena, tarn_str column, const tarn_transform *transform,
                          bool with_param, tarn_str *out, tarn_error *err) TARN_MUST_USE;
/* Names that clash with each other or with columns; with redundant also transforms that say the
 * same twice. */
tarn_code spec_check(const tarn_type *root, const tarn_partition_field *fields, int32_t n,
                     bool redundant, tarn_error *err) TARN_MUST_USE;
/* Sources that are not in root or do not fit their transforms. */
tarn_code spec_check_sources(const tarn_type *root, const tarn_spec *spec,
                             tarn_error *err) TARN_MUST_USE;
tarn_code sort_order_check_sources(const tarn_type *root, const tarn_sort_order *order,
                                   tarn_error *err) TARN_MUST_USE;
/* Same sources, transforms and names in the same order; field ids and spec id aside. */
bool spec_same(const tarn_spec *a, const tarn_spec *b);
bool sort_order_same(const tarn_sort_order *a, const tarn_sort_order *b);
bool schema_same(const tarn_schema *a, const tarn_schema *b);

#endif
