/* iceberg/transform.h - partition transforms (spec, "Partition Transforms", Appendix B for the
 * hash), as pure functions. */
#ifndef ICEBERG_TRANSFORM_H
#define ICEBERG_TRANSFORM_H

#include "table/batch.h"
#include "table/expr.h"

typedef enum transform_kind {
    TRANSFORM_IDENTITY,
    TRANSFORM_BUCKET,
    TRANSFORM_TRUNCATE,
    TRANSFORM_YEAR,
    TRANSFORM_MONTH,
    TRANSFORM_DAY,
    TRANSFORM_HOUR,
    TRANSFORM_VOID,
    TRANSFORM_UNKNOWN /* a name this version does not know: read as null, never written */
} transform_kind;

typedef struct tarn_transform {
    transform_kind kind;
    int32_t param; /* bucket: N; truncate: W */
    tarn_str text; /* unknown: as written */
} tarn_transform;

/* "bucket[16]", "truncate[4]", "month", "void"... as in metadata. Unknown names are
 * TRANSFORM_UNKNOWN; bad parameters INVALID. */
tarn_code transform_parse(tarn_arena *arena, tarn_str text, tarn_transform *out,
                          tarn_error *err) TARN_MUST_USE;
tarn_code transform_text(const tarn_transform *transform, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE;
/* "identity", "bucket", ... without parameters; never NULL. */
const char *transform_name(transform_kind kind);
bool transform_eq(const tarn_transform *a, const tarn_transform *b);
/* NULL with INVALID when the transform does not take the source type. Result types live in arena or
 * are static. day gives date, as Iceberg Java shows it. */
tarn_code transform_result_type(tarn_arena *arena, const tarn_transform *transform,
                                const tarn_type *source, const tarn_type **out,
                                tarn_error *err) TARN_MUST_USE;
/* One value. Null gives null. Truncate that would step below the type's minimum is INVALID naming
 * value and transform (B01). Bytes of the result borrow from the value. */
tarn_code transform_value(const tarn_transform *transform, const tarn_value *in,
                          const tarn_type *result, tarn_value *out, tarn_error *err) TARN_MUST_USE;
/* A whole column appended to out (a builder of the result type). Hot path: one loop per kind. */
tarn_code transform_column(const tarn_transform *transform, const tarn_view *in, tarn_builder *out,
                           tarn_error *err) TARN_MUST_USE;
/* As people read it in paths and listings: 2013-01, 2013-01-02, 2013-01-02-05, numbers, text
 * (spec-free; Iceberg Java's toHumanString). */
tarn_code transform_human(const tarn_transform *transform, const tarn_value *value, tarn_buf *out,
                          tarn_error *err) TARN_MUST_USE;
/* Inclusive projection of a bound predicate on the source column onto the partition value: a
 * predicate that is true whenever the source predicate can be (spec, "Scan Planning"); EXPR_TRUE
 * when nothing can be said. Negative time values also admit value + 1 (B02). partition_field is the
 * field (id, result type) of the spec's partition type. */
tarn_code transform_project(tarn_arena *arena, const tarn_transform *transform,
                            const tarn_expr *predicate, const tarn_field *partition_field,
                            const tarn_expr **out, tarn_error *err) TARN_MUST_USE;
/* Strict projection: true only where the source predicate must be; EXPR_FALSE when nothing can be
 * said. */
tarn_code transform_project_strict(tarn_arena *arena, const tarn_transform *transform,
                                   const tarn_expr *predicate, const tarn_field *partition_field,
                                   const tarn_expr **out, tarn_error *err) TARN_MUST_USE;

#endif
