/* source/schema_grow.h - a schema that learns from records that it did not fit. Pure. */
#ifndef SOURCE_SCHEMA_GROW_H
#define SOURCE_SCHEMA_GROW_H

#include "base/json.h"
#include "table/type.h"

/* root with the columns that it lacks and seen has, in structs below too; new ones are optional.
 * root itself when it lacks none. */
tarn_code schema_grow(tarn_arena *arena, const tarn_type *root, const tarn_type *seen,
                      const tarn_type **out, tarn_error *err) TARN_MUST_USE;
/* root with ints as longs, floats as doubles, and decimals with more digits, where the JSON record
 * has values that are beyond them, in lists, structs and values of maps too; root itself where it
 * has none. */
tarn_code schema_widen(tarn_arena *arena, const tarn_type *root, const json_value *record,
                       const tarn_type **out, tarn_error *err) TARN_MUST_USE;

#endif
