/* table/value_int.h - conversions of literals as the filters of this room need them. */
#ifndef TABLE_VALUE_INT_H
#define TABLE_VALUE_INT_H

#include "table/value.h"

/* A number's text as long, else as the decimal that holds it exactly, else as double. */
tarn_code value_from_number(tarn_arena *arena, tarn_str text, tarn_value *out,
                            tarn_error *err) TARN_MUST_USE;
/* As value_convert, but where the type has no such value (1.5 as int) *out is the greatest value
 * below and *inexact says so. */
tarn_code value_floor(tarn_arena *arena, const tarn_value *v, const tarn_type *type,
                      tarn_value *out, int *out_of_range, bool *inexact,
                      tarn_error *err) TARN_MUST_USE;

#endif
