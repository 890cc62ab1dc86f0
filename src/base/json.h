/* base/json.h - JSON (RFC 8259) as a document in an arena, and a writer into a buffer.
 *
 * Numbers keep their text (so nothing is rounded), member order is kept, duplicate keys are an
 * error, nesting is at most JSON_MAX_DEPTH, strings must be valid UTF-8 (a lone surrogate escape is
 * an error), errors name line and column. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define JSON_MAX_DEPTH 200

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value json_value;
struct json_value {
    json_kind kind;
    bool boolean;
    tarn_str text; /* number: as written; string: unescaped */
    tarn_str name; /* when a member of an object */
    size_t count;  /* items or members */
    json_value *first;
    json_value *next; /* sibling */
};

/* what names the document in errors. The tree borrows from text only when it says so: strings are
 * copied. */
tarn_code json_parse(tarn_arena *arena, tarn_str text, const char *what, json_value **out,
                     tarn_error *err) TARN_MUST_USE;

const json_value *json_get(const json_value *object,
                           const char *name); /* NULL: absent or not an object */
/* The first member of an object whose name is none of names (NULL at the end); NULL: there is none.
 */
const json_value *json_stranger(const json_value *object, const char *const *names);
bool json_i64(const json_value *value,
              int64_t *out); /* false: NULL, not a number, fraction, or out of range */
bool json_i32(const json_value *value, int32_t *out);
bool json_f64(const json_value *value, double *out);
bool json_str(const json_value *value, tarn_str *out);
bool json_bool(const json_value *value, bool *out);
static inline bool json_is(const json_value *v, json_kind kind) {
    return v != NULL && v->kind == kind;
}

/* Builds trees (values kept when a document is changed and written again). NULL: no memory. */
json_value *json_new(tarn_arena *arena, json_kind kind);
json_value *json_new_str(tarn_arena *arena, tarn_str s);
json_value *json_new_i64(tarn_arena *arena, int64_t v);
json_value *json_new_bool(tarn_arena *arena, bool v);
void json_add(json_value *array, json_value *item); /* appends; O(n) */
bool json_put(tarn_arena *arena, json_value *object, const char *name,
              json_value *item); /* replaces or appends */

/* Writer: commas and escapes are its business. First error sticks; json_end returns it. */
typedef struct json_writer {
    tarn_buf *out;
    tarn_error *err;
    tarn_code code;
    int depth;
    bool pretty;
    uint8_t need_comma[JSON_MAX_DEPTH + 1];
} json_writer;

void json_begin(json_writer *w, tarn_buf *out, bool pretty, tarn_error *err);
tarn_code json_end(json_writer *w) TARN_MUST_USE;
void json_put_object(json_writer *w); /* { */
void json_end_object(json_writer *w);
void json_put_array(json_writer *w); /* [ */
void json_end_array(json_writer *w);
void json_put_name(json_writer *w, tarn_str name);
void json_put_string(json_writer *w, tarn_str s); /* invalid UTF-8 bytes become U+FFFD */
void json_put_i64(json_writer *w, int64_t v);
void json_put_f64(json_writer *w, double v); /* NaN and infinities as strings */
void json_put_bool(json_writer *w, bool v);
void json_put_null(json_writer *w);
void json_put_raw(json_writer *w, tarn_str text); /* already JSON */
void json_put_value(json_writer *w, const json_value *value);
/* name and value in one call */
void json_member_str(json_writer *w, const char *name, tarn_str s);
void json_member_i64(json_writer *w, const char *name, int64_t v);
void json_member_bool(json_writer *w, const char *name, bool v);
/* Appends s with JSON escapes, without quotes. */
tarn_code json_escape(tarn_buf *out, tarn_str s, tarn_error *err) TARN_MUST_USE;

#endif
