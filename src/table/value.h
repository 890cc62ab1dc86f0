/* table/value.h - one value of a primitive type: literals of filters, bounds, partition values,
 * defaults. */
#ifndef TABLE_VALUE_H
#define TABLE_VALUE_H

#include "base/num.h"
#include "table/type.h"

typedef struct tarn_value {
    const tarn_type *type; /* primitive; NULL only in a zeroed value */
    bool is_null;
    union {
        bool boolean;
        int32_t i32; /* int, date */
        int64_t i64; /* long, time, timestamps */
        float f32;
        double f64;
        tarn_int128 i128; /* decimal, unscaled */
        tarn_str bytes; /* string, binary, fixed, uuid (16 bytes, big-endian); borrowed or arena */
    } as;
} tarn_value;

static inline tarn_value value_null(const tarn_type *type) {
    tarn_value v;
    memset(&v, 0, sizeof v);
    v.type = type;
    v.is_null = true;
    return v;
}
tarn_value value_i32(const tarn_type *type, int32_t v);
tarn_value value_i64(const tarn_type *type, int64_t v);
tarn_value value_str(const tarn_type *type, tarn_str s);

/* Order of the spec (unsigned bytes for strings, binary, fixed, uuid; -0.0 < 0.0; NaN last). Both
 * non-null, same kind. */
int value_cmp(const tarn_value *a, const tarn_value *b);
bool value_eq(const tarn_value *a,
              const tarn_value *b); /* nulls equal each other; NaN equals NaN */
uint64_t value_hash(const tarn_value *v);
tarn_code value_copy(tarn_arena *arena, const tarn_value *v, tarn_value *out,
                     tarn_error *err) TARN_MUST_USE;

/* Single-value binary serialization (spec, Appendix D). Reading takes what other writers leave too:
 * int bytes for a long, float bytes for a double, padded decimals (B10). Bytes are borrowed. */
tarn_code value_from_binary(const tarn_type *type, tarn_str bytes, tarn_value *out,
                            tarn_error *err) TARN_MUST_USE;
tarn_code value_to_binary(tarn_arena *arena, const tarn_value *v, tarn_str *out,
                          tarn_error *err) TARN_MUST_USE;

/* Single-value JSON (spec, Appendix D). */
tarn_code value_from_json(tarn_arena *arena, const tarn_type *type, const json_value *json,
                          tarn_value *out, tarn_error *err) TARN_MUST_USE;
void value_put_json(const tarn_value *v, json_writer *w);

/* From text as people and CSV files write it: numbers, true/false, ISO dates and times, decimals
 * (also 1E+2), uuid, hex for binary and fixed. Strings are taken as they are. Numbers out of range,
 * lost digits, bad UTF-8 are INVALID and say the value. */
tarn_code value_from_text(tarn_arena *arena, const tarn_type *type, tarn_str text, tarn_value *out,
                          tarn_error *err) TARN_MUST_USE;
/* The same text without quotes; null is "null". */
tarn_code value_to_text(const tarn_value *v, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

/* A literal of one type as another type (a filter's 60 against a double, '2013-01-02' against a
 * date). INVALID if it makes no sense; *out_of_range is -1 or 1 where the value lies below or above
 * all of the target type (then *out is unset). */
tarn_code value_convert(tarn_arena *arena, const tarn_value *v, const tarn_type *type,
                        tarn_value *out, int *out_of_range, tarn_error *err) TARN_MUST_USE;

/* Text to decimal digits: "12.30", "1E+2", "-.5". INVALID when digits beyond scale are not zero or
 * precision is exceeded. */
tarn_code value_parse_decimal(tarn_str text, int32_t precision, int32_t scale, tarn_int128 *out,
                              tarn_error *err) TARN_MUST_USE;
size_t value_format_decimal(tarn_int128 v, int32_t scale, char out[64]);
bool value_parse_uuid(tarn_str text, uint8_t out[16]);
void value_format_uuid(const uint8_t in[16], char out[37]);

#endif
