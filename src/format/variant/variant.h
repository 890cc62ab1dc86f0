/* format/variant/variant.h - the Variant binary encoding (parquet-format, VariantEncoding.md): a
 * value's bytes taken apart, made, shown as JSON and made from JSON.
 *
 * A variant is two texts of bytes: metadata is the dictionary of member names, value the value. All
 * bytes are hostile: what an opener gives out lies within what it was given, and values of one
 * container never overlap, so that work and text stay in proportion to the bytes. */
#ifndef FORMAT_VARIANT_VARIANT_H
#define FORMAT_VARIANT_VARIANT_H

#include "base/json.h"
#include "base/num.h"

enum {
    VARIANT_BASIC_PRIMITIVE = 0,
    VARIANT_BASIC_SHORT_STRING = 1,
    VARIANT_BASIC_OBJECT = 2,
    VARIANT_BASIC_ARRAY = 3
};

enum {
    VARIANT_NULL = 0,
    VARIANT_TRUE = 1,
    VARIANT_FALSE = 2,
    VARIANT_INT8 = 3,
    VARIANT_INT16 = 4,
    VARIANT_INT32 = 5,
    VARIANT_INT64 = 6,
    VARIANT_DOUBLE = 7,
    VARIANT_DECIMAL4 = 8,
    VARIANT_DECIMAL8 = 9,
    VARIANT_DECIMAL16 = 10,
    VARIANT_DATE = 11,
    VARIANT_TIMESTAMPTZ = 12,
    VARIANT_TIMESTAMP = 13,
    VARIANT_FLOAT = 14,
    VARIANT_BINARY = 15,
    VARIANT_STRING = 16,
    VARIANT_TIME = 17,
    VARIANT_TIMESTAMPTZ_NS = 18,
    VARIANT_TIMESTAMP_NS = 19,
    VARIANT_UUID = 20
};

/* ---- variant_bytes.c ---- */

/* The dictionary of names; borrows the metadata. */
typedef struct variant_names {
    const uint8_t *offsets, *bytes;
    size_t bytes_len;
    uint32_t count;
    uint32_t offset_size;
} variant_names;

/* NULL, or what the variant had instead ("metadata of another version"). */
const char *variant_open_names(tarn_str metadata, variant_names *out);
bool variant_name(const variant_names *n, uint32_t id, tarn_str *out); /* false: none there */
bool variant_find_name(const variant_names *n, tarn_str name, uint32_t *id);

/* An object or array; borrows the value. */
typedef struct variant_container {
    const uint8_t *ids, *offsets, *content;
    uint32_t count, id_size, offset_size;
    size_t content_len;
} variant_container;

/* bytes, not empty, begin with an object or array; false: it is cut off. */
bool variant_open_container(tarn_str bytes, variant_container *c);
uint32_t variant_id(const variant_container *c, uint32_t i); /* of an object's member i */
/* Value i, whole and nothing else; false: it lies outside, is cut off or of an unknown type. */
bool variant_item(const variant_container *c, uint32_t i, tarn_str *out);
/* Bytes of the value that data begins with; 0 when it is cut off or unknown. */
size_t variant_size(tarn_str data);

/* ---- variant_make.c ---- */

/* A value that is being made at the end of out. Containers are written after their content, which
 * is then moved to make room for their header, so that one buffer serves all levels. */
typedef struct variant_maker {
    tarn_buf out;
    tarn_buf members; /* a stack of members of the containers that are open */
    tarn_buf names;   /* variant_from_json: tarn_str, sorted */
} variant_maker;

/* Where a container's content and members begin. */
typedef struct variant_mark {
    size_t start, first;
} variant_mark;

void variant_maker_init(variant_maker *m, tarn_env *env);
void variant_maker_release(variant_maker *m); /* also of a zeroed one */
void variant_maker_reset(variant_maker *m);   /* nothing made, keeps memory */
tarn_code variant_put_primitive(variant_maker *m, int primitive, const void *payload, size_t len,
                                tarn_error *err) TARN_MUST_USE;
/* A string or binary. */
tarn_code variant_put_text(variant_maker *m, int primitive, tarn_str text,
                           tarn_error *err) TARN_MUST_USE;
tarn_code variant_put_decimal(variant_maker *m, int primitive, int32_t scale, tarn_int128 v,
                              tarn_error *err) TARN_MUST_USE;
variant_mark variant_begin(const variant_maker *m);
/* The value that begins at `at` in out is a member (name and id) or an item (no name, 0) of the
 * container. */
tarn_code variant_put_member(variant_maker *m, variant_mark mark, size_t at, tarn_str name,
                             uint32_t id, tarn_error *err) TARN_MUST_USE;
/* Puts the header before the content. *twice (may be NULL for arrays): two members had one name;
 * then nothing was put. */
tarn_code variant_end(variant_maker *m, bool object, variant_mark mark, bool *twice,
                      tarn_error *err) TARN_MUST_USE;
/* A dictionary of the names, which are sorted and differ. */
tarn_code variant_put_names(const tarn_str *names, size_t n, tarn_buf *out,
                            tarn_error *err) TARN_MUST_USE;

/* ---- variant_json.c ---- */

/* Appends the value as JSON: numbers, decimals too, as numbers; NaN and infinities, dates, times
 * and UUIDs as strings; bytes as base64. CORRUPT: the bytes were damaged; LIMIT: values were nested
 * deeper than JSON_MAX_DEPTH, or the text was longer than LIMIT_TEXT_LINE_BYTES. */
tarn_code variant_to_json(tarn_str metadata, tarn_str value, tarn_buf *out,
                          tarn_error *err) TARN_MUST_USE;
/* The value that json is, left in m->out: whole numbers in the smallest integer, other numbers
 * without exponent as decimals while 38 digits hold them, else (and -0.0) doubles. Appends the
 * dictionary to metadata. INVALID: a number was beyond a double. */
tarn_code variant_from_json(variant_maker *m, const json_value *json, tarn_buf *metadata,
                            tarn_error *err) TARN_MUST_USE;

#endif
