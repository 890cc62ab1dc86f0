/* table/type_int.h - what the files of this room that make types share. */
#ifndef TABLE_TYPE_INT_H
#define TABLE_TYPE_INT_H

#include "table/type.h"

/* A deep copy of a JSON tree; NULL: no memory. */
json_value *type_copy_json(tarn_arena *arena, const json_value *json);
/* The name of a primitive with its parameters ("decimal(9, 2)", "long"); *out is NULL when the text
 * names no type. NOMEM or OK. */
tarn_code type_parse_primitive(tarn_arena *arena, tarn_str text, const tarn_type **out,
                               tarn_error *err);
/* Any list or map field: the fixed names below them. */
tarn_field type_make_field(int32_t id, bool required, tarn_str name, const tarn_type *type);

#endif
