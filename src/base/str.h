/* base/str.h - slices of bytes, and text helpers that never allocate. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes; data may be NULL when len is 0. Not NUL-terminated unless said. */
typedef struct tarn_str {
    const char *data;
    size_t len;
} tarn_str;

#define STR(literal) ((tarn_str){("" literal), sizeof(literal) - 1})
#define STR_NULL     ((tarn_str){NULL, 0})
/* for printf: "%.*s", STR_ARG(s) */
#define STR_ARG(s) (int)((s).len > 400 ? 400 : (s).len), ((s).data != NULL ? (s).data : "")

static inline tarn_str str_of(const char *text) {
    return (tarn_str){text, text != NULL ? strlen(text) : 0};
}
static inline tarn_str str_make(const void *data, size_t len) {
    return (tarn_str){(const char *)data, len};
}
static inline bool str_eq(tarn_str a, tarn_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
static inline bool str_is(tarn_str a, const char *text) {
    return str_eq(a, str_of(text));
}
static inline tarn_str str_from(tarn_str s, size_t start) {
    return start >= s.len ? (tarn_str){s.data != NULL ? s.data + s.len : NULL, 0}
                          : (tarn_str){s.data + start, s.len - start};
}
static inline tarn_str str_sub(tarn_str s, size_t start, size_t len) {
    tarn_str t = str_from(s, start);
    return (tarn_str){t.data, len < t.len ? len : t.len};
}

int str_cmp(tarn_str a, tarn_str b); /* unsigned bytes, then length */
bool str_starts_with(tarn_str s, tarn_str prefix);
bool str_ends_with(tarn_str s, tarn_str suffix);
bool str_eq_nocase(tarn_str a, tarn_str b); /* ASCII only */
bool str_find_char(tarn_str s, char c, size_t *at);
bool str_find_last_char(tarn_str s, char c, size_t *at);
tarn_str str_trim(tarn_str s); /* ASCII white space at both ends */
/* Next piece of *rest before sep; false when nothing is left. "a,,b" gives "a", "", "b". *rest must
 * start non-NULL. */
bool str_split(tarn_str *rest, char sep, tarn_str *piece);

/* Whole-text numbers: false on empty, junk, overflow. Decimal, optional sign. */
bool str_to_i64(tarn_str s, int64_t *out);
bool str_to_i32(tarn_str s, int32_t *out);
bool str_to_u64(tarn_str s, uint64_t *out);
bool str_to_f64(tarn_str s, double *out); /* locale-free; also NaN, Infinity, -Infinity, inf */
bool str_to_f32(tarn_str s, float *out);  /* rounded once from the text, not through double */
bool str_to_bool(tarn_str s, bool *out);  /* true, false, any case */

/* Shortest text that reads back the same value; NaN, Infinity, -Infinity; always has '.', 'e' or a
 * letter. Returns the length; out needs 32 bytes. */
size_t str_from_f64(double v, char out[32]);
size_t str_from_f32(float v, char out[32]);
size_t str_from_i64(int64_t v, char out[24]);

/* UTF-8. str_utf8_valid refuses surrogates, overlong forms, values above U+10FFFF. */
bool str_utf8_valid(tarn_str s);
/* Bytes taken by the first n code points of valid UTF-8 (all of s if it has fewer). */
size_t str_utf8_prefix(tarn_str s, size_t n_code_points);
/* Decodes one code point at *at, moving *at; U+FFFD and one byte on for a bad one. */
uint32_t str_utf8_next(tarn_str s, size_t *at);
size_t str_utf8_put(uint32_t code_point, char out[4]);

/* 16 bytes that stand for s where s itself would be too long to keep; in memory only. */
void str_digest(tarn_str s, uint8_t out[16]);
/* What a digit stands for; -1: it is none. */
int str_hex_digit(char c); /* either case */
int str_base64_digit(char c);

uint64_t str_hash(tarn_str s); /* for maps in memory only; never stored */

#endif
