/* table/value_int.h - conversions of literals as the filters of this room need them. */
#ifndef TABLE_VALUE_INT_H
#define TABLE_VALUE_INT_H

#include "table/value.h"

/* A number's text as long, else as the decimal that holds it exactly, else as double. */
tarn_code value_from_number(tarn_arena *arena, tarn_str text, tarn_value *out,
                            tarn_error *err) TARN_MUST_USE;
/* How a literal lies in another type. */
typedef struct value_fit {
    int range;    /* -1, 1: below or above all of the type's values; there is no value then */
    bool inexact; /* between two of them (1.5 as int): the value is the greatest one below */
} value_fit;

tarn_code value_floor(tarn_arena *arena, const tarn_value *v, const tarn_type *type,
                      tarn_value *out, value_fit *fit, tarn_error *err) TARN_MUST_USE;

#endif
