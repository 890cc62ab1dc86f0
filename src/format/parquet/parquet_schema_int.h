/* format/parquet/parquet_schema_int.h - shared by the two files that make schemas. */
#ifndef FORMAT_PARQUET_SCHEMA_INT_H
#define FORMAT_PARQUET_SCHEMA_INT_H

#include "base/limits.h"
#include "format/parquet/parquet_schema.h"

/* Names of the elements from the root down to where a walk stands. */
#define PARQUET_MAX_PARTS (2 * LIMIT_NESTING + 4)
typedef struct parquet_trail {
    tarn_str names[PARQUET_MAX_PARTS];
} parquet_trail;

/* Fills path and parts of a leaf from the first n names. */
tarn_code parquet_schema_path(tarn_arena *arena, const parquet_trail *trail, int32_t n,
                              parquet_leaf *leaf, tarn_error *err) TARN_MUST_USE;
/* Points nodes[*at...] at the fields below type, in preorder. */
void parquet_schema_link(parquet_node *nodes, const tarn_type *type, int32_t *at);

#endif
