/* format/text/text_json.c - NDJSON records straight into builders: no tree in between.
 *
 * A value is read by its column's type. Members are found by the order of the record before: after
 * member f came successor[f + 1]; a name that differs is looked up and remembered. A record never
 * passes its '\n', since no token may hold one. */
#include "format/text/text_int.h"
#include "format/text/text_scan.h"
#include "table/value.h"

#define SHOWN_BYTES 40
#define PAIRWISE    16 /* keys of a map compared pairwise for duplicates */

static inline const char *skip_space(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\r') {
        p++;
    }
    return p;
}

/* ---- bad records ---- */

static tarn_code expected(text_decoder *d, const text_node *node, const char *p, const char *what) {
    size_t at = (size_t)(p - d->record) + 1;
    unsigned char c = (unsigned char)*p;
    if (c == '\n') {
        return text_bad(d, node, "the record ended where %s was expected", what);
    }
    if (c > 0x20 && c < 0x7F) {
        return text_bad(d, node, "'%c' at byte %zu stood where %s was expected", c, at, what);
    }
    return text_bad(d, node, "byte 0x%02x at byte %zu stood where %s was expected", c, at, what);
}

/* What stands at p, for people. */
static tarn_code mismatch(text_decoder *d, const text_node *node, const char *p) {
    const char *type = type_kind_name(node->kind);
    const char *found = *p == '"'                        ? "a string"
                        : *p == '{'                      ? "an object"
                        : *p == '['                      ? "an array"
                        : *p == 't' || *p == 'f'         ? "a boolean"
                        : *p == '-' || text_is_digit(*p) ? "a number"
                                                         : NULL;
    if (found == NULL) {
        return expected(d, node, p, "a JSON value");
    }
    int len = 0;
    while (len < SHOWN_BYTES && (unsigned char)p[len] >= 0x20 && p[len] != ',' && p[len] != '}') {
        len++;
    }
    return text_bad(d, node, "%s was found, not %s: %.*s", found, type, len, p);
}

/* ---- tokens ---- */

static bool read_hex4(const char *p, uint32_t *out) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        char lower = (char)(c | 0x20);
        if (text_is_digit(c)) {
            v = v << 4 | (uint32_t)(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            v = v << 4 | (uint32_t)(lower - 'a' + 10);
        } else {
            return false;
        }
    }
    *out = v;
    return true;
}

/* *p is at the 'u' of an escape. Surrogates must come as a pair. */
static bool read_code_point(const char **p, uint32_t *out) {
    const char *at = *p;
    uint32_t high;
    uint32_t low;
    if (!read_hex4(at + 1, &high)) {
        return false;
    }
    if (high < 0xD800 || high > 0xDFFF) {
        *out = high;
        *p = at + 5;
        return true;
    }
    if (high > 0xDBFF || at[5] != '\\' || at[6] != 'u' || !read_hex4(at + 7, &low) ||
        low < 0xDC00 || low > 0xDFFF) {
        return false;
    }
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    *p = at + 11;
    return true;
}

/* *p is behind a backslash. Returns the bytes put, 0 for a bad escape. */
static size_t read_escape(const char **p, char out[4]) {
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = **p;
    if (c == 'u') {
        uint32_t code_point;
        return read_code_point(p, &code_point) ? str_utf8_put(code_point, out) : 0;
    }
    const char *at = c != '\0' ? memchr(from, c, sizeof from - 1) : NULL;
    if (at == NULL) {
        return 0;
    }
    out[0] = to[at - from];
    (*p)++;
    return 1;
}

/* The rest of a string whose first special byte is the backslash at p, into scratch. */
static tarn_code unescape(text_decoder *d, const text_node *node, const char *start, const char *p,
                          tarn_str *out, bool *high) {
    tarn_code code = TARN_OK;
    buf_reset(&d->scratch);
    TRY(buf_append(&d->scratch, start, (size_t)(p - start), d->err));
    while (*p == '\\') {
        char bytes[4];
        const char *escape = p++;
        size_t len = read_escape(&p, bytes);
        if (len == 0) {
            return expected(d, node, escape, "a valid escape");
        }
        bool more;
        const char *next = text_find_special(p, &more);
        *high = *high || more || (unsigned char)bytes[0] >= 0x80;
        TRY(buf_append(&d->scratch, bytes, len, d->err));
        TRY(buf_append(&d->scratch, p, (size_t)(next - p), d->err));
        p = next;
    }
    TRY(buf_reserve(&d->scratch, TEXT_PADDING, d->err));
    *out = buf_str(&d->scratch);
    d->p = p;
done:
    return code;
}

/* The string whose quote is at d->p, checked; borrowed from the chunk or from scratch. */
static inline tarn_code read_string(text_decoder *d, const text_node *node, tarn_str *out) {
    const char *start = d->p + 1;
    bool high;
    const char *p = text_find_special(start, &high);
    *out = str_make(start, (size_t)(p - start));
    if (*p == '\\') {
        tarn_code code = unescape(d, node, start, p, out, &high);
        if (code != TARN_OK) {
            return code;
        }
        p = d->p;
    }
    if (*p != '"') {
        return *p == '\n' ? expected(d, node, p, "the end of a string")
                          : expected(d, node, p, "a character of a string");
    }
    if (high && !str_utf8_valid(*out)) {
        return text_bad(d, node, "a string was not valid UTF-8");
    }
    d->p = p + 1;
    return TARN_OK;
}

/* Behind the JSON number at p; NULL when there is none. *whole: no fraction, no exponent. */
static const char *number_end(const char *p, bool *whole) {
    *whole = true;
    p += *p == '-';
    if (*p == '0') {
        p++;
    } else if (text_is_digit(*p)) {
        while (text_is_digit(*p)) {
            p++;
        }
    } else {
        return NULL;
    }
    if (*p == '.') {
        *whole = false;
        if (!text_is_digit(*++p)) {
            return NULL;
        }
        while (text_is_digit(*p)) {
            p++;
        }
    }
    if (*p == 'e' || *p == 'E') {
        *whole = false;
        p++;
        p += *p == '+' || *p == '-';
        if (!text_is_digit(*p)) {
            return NULL;
        }
        while (text_is_digit(*p)) {
            p++;
        }
    }
    return text_is_digit(*p) ? NULL : p;
}

static inline bool is_literal(const char *p, const char *text, size_t len) {
    return memcmp(p, text, len) == 0;
}

/* ---- values nobody asked for ---- */

static tarn_code skip_value(text_decoder *d, const text_node *node, int depth);

/* A member's name and its colon. */
static tarn_code read_name(text_decoder *d, const text_node *node, tarn_str *name) {
    if (*d->p != '"') {
        return expected(d, node, d->p, "a member's name");
    }
    tarn_code code = read_string(d, node, name);
    if (code != TARN_OK) {
        return code;
    }
    d->p = skip_space(d->p);
    if (*d->p != ':') {
        return expected(d, node, d->p, "':'");
    }
    d->p = skip_space(d->p + 1);
    return TARN_OK;
}

/* The object or array whose bracket is at d->p. */
static tarn_code skip_nested(text_decoder *d, const text_node *node, int depth) {
    bool object = *d->p == '{';
    char close = object ? '}' : ']';
    if (depth == JSON_MAX_DEPTH) {
        return text_bad(d, node, "values were nested deeper than %d levels", JSON_MAX_DEPTH);
    }
    d->p = skip_space(d->p + 1);
    if (*d->p == close) {
        d->p++;
        return TARN_OK;
    }
    for (;;) {
        tarn_str name;
        tarn_code code = object ? read_name(d, node, &name) : TARN_OK;
        code = code == TARN_OK ? skip_value(d, node, depth + 1) : code;
        if (code != TARN_OK) {
            return code;
        }
        const char *p = skip_space(d->p);
        d->p = p + 1;
        if (*p == close) {
            return TARN_OK;
        }
        if (*p != ',') {
            return expected(d, node, p, object ? "',' or '}'" : "',' or ']'");
        }
        d->p = skip_space(d->p);
    }
}

/* Checks and passes the value at d->p. */
static tarn_code skip_value(text_decoder *d, const text_node *node, int depth) {
    tarn_str text;
    bool whole;
    const char *p = d->p;
    if (*p == '"') {
        return read_string(d, node, &text);
    }
    if (*p == '{' || *p == '[') {
        return skip_nested(d, node, depth);
    }
    const char *end = is_literal(p, "true", 4) || is_literal(p, "null", 4) ? p + 4
                      : is_literal(p, "false", 5)                          ? p + 5
                                                                           : number_end(p, &whole);
    if (end == NULL) {
        return expected(d, node, p, "a JSON value");
    }
    d->p = end;
    return TARN_OK;
}

/* ---- primitives ---- */

static tarn_code read_integer(text_decoder *d, const text_node *node, tarn_builder *b) {
    const char *start = d->p;
    const char *p = start;
    bool negative = *p == '-';
    p += negative;
    const char *digits = p;
    uint64_t v = 0;
    while (text_is_digit(*p)) {
        v = v * 10 + (uint64_t)(*p - '0');
        p++;
    }
    ptrdiff_t n = p - digits;
    bool other = *p == '.' || *p == 'e' || *p == 'E';
    if (n == 0 || other || (n > 1 && *digits == '0')) {
        bool whole;
        const char *end = number_end(start, &whole);
        if (end == NULL && (negative || n > 0)) {
            return text_bad(d, node, "%.*s was not a JSON number", (int)(p - start + 1), start);
        }
        return end == NULL
                   ? mismatch(d, node, start)
                   : text_bad(d, node, "%.*s was not a whole number", (int)(end - start), start);
    }
    d->p = p;
    if (n > 18) { /* may not fit */
        return text_put_text(d, node, b, str_make(start, (size_t)(p - start)));
    }
    int64_t value = negative ? -(int64_t)v : (int64_t)v;
    if (node->kind == TARN_LONG) {
        return text_append_i64(b, value, d->err);
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        return text_bad(d, node, "%lld was out of the range of an int", (long long)value);
    }
    return text_append_i32(b, (int32_t)value, d->err);
}

/* Floats and decimals: numbers, or strings where the spec has them so. */
static tarn_code read_fraction(text_decoder *d, const text_node *node, tarn_builder *b) {
    const char *start = d->p;
    tarn_str text;
    if (*start == '"') {
        tarn_code code = read_string(d, node, &text);
        if (code != TARN_OK) {
            return code;
        }
        if (node->kind != TARN_DECIMAL && !str_is(text, "NaN") && !str_is(text, "Infinity") &&
            !str_is(text, "-Infinity")) {
            return mismatch(d, node, start);
        }
        return text_put_text(d, node, b, text);
    }
    bool whole;
    const char *end = number_end(start, &whole);
    if (end == NULL) {
        return mismatch(d, node, start);
    }
    d->p = end;
    return text_put_text(d, node, b, str_make(start, (size_t)(end - start)));
}

static tarn_code read_boolean(text_decoder *d, const text_node *node, tarn_builder *b) {
    bool truth = is_literal(d->p, "true", 4);
    if (!truth && !is_literal(d->p, "false", 5)) {
        return mismatch(d, node, d->p);
    }
    d->p += truth ? 4 : 5;
    return builder_bool(b, truth, d->err);
}

/* A number or boolean as it stands, for a string column that takes them. */
static tarn_code read_scalar_text(text_decoder *d, const text_node *node, tarn_builder *b) {
    bool whole;
    const char *start = d->p;
    const char *end = is_literal(start, "true", 4)    ? start + 4
                      : is_literal(start, "false", 5) ? start + 5
                                                      : number_end(start, &whole);
    if (end == NULL || node->kind != TARN_STRING) {
        return mismatch(d, node, start);
    }
    d->p = end;
    return text_append_bytes(b, start, (size_t)(end - start), d->err);
}

static tarn_code read_text(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_str text;
    if (*d->p != '"') {
        return d->plan->options.scalars_as_text ? read_scalar_text(d, node, b)
                                                : mismatch(d, node, d->p);
    }
    tarn_code code = read_string(d, node, &text);
    if (code != TARN_OK) {
        return code;
    }
    return node->kind == TARN_STRING ? text_append_bytes(b, text.data, text.len, d->err)
                                     : text_put_text(d, node, b, text);
}

/* ---- nested ---- */

static tarn_code read_value(text_decoder *d, const text_node *node, tarn_builder *b);

/* Padding covers the first word; a name may be longer than the padding and what is left. */
static inline bool key_matches(const text_decoder *d, const text_node *node, const char *p) {
    if (((num_load_u64(p) ^ node->key_word) & node->key_mask) != 0) {
        return false;
    }
    return node->key_len <= 8 ||
           ((size_t)(d->end - p) >= node->key_len && memcmp(p, node->key, node->key_len) == 0);
}

/* The name at d->p, which is at its quote; *field is -1 for one that the schema lacks. */
static tarn_code find_member(text_decoder *d, const text_node *node, int32_t *field) {
    tarn_str name;
    if (*d->p != '"') {
        return expected(d, node, d->p, "a member's name");
    }
    tarn_code code = read_string(d, node, &name);
    if (code != TARN_OK) {
        return code;
    }
    *field = text_plan_find(d->plan, node, name);
    if (*field < 0 && !d->plan->options.ignore_unknown) {
        return text_bad(d, node, "member %.*s was not in the schema", STR_ARG(name));
    }
    return TARN_OK;
}

/* Columns that the record did not name. */
static tarn_code fill_absent(text_decoder *d, const text_node *node, tarn_builder *b) {
    for (int32_t i = 0; i < node->n_children; i++) {
        if (b->children[i].length == b->length) {
            tarn_code code = text_put_absent(d, &node->children[i], &b->children[i]);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    return TARN_OK;
}

/* One member, d->p at its name's quote; *before is the field that came before it. */
static inline tarn_code read_member(text_decoder *d, const text_node *node, tarn_builder *b,
                                    int32_t *successor, int32_t *before, int32_t *found) {
    tarn_code code;
    int32_t field = successor[*before + 1];
    if (field >= 0 && *d->p == '"' && key_matches(d, &node->children[field], d->p + 1)) {
        d->p += node->children[field].key_len + 1;
    } else {
        code = find_member(d, node, &field);
        if (code != TARN_OK) {
            return code;
        }
        successor[*before + 1] = field >= 0 ? field : successor[*before + 1];
    }
    const char *p = skip_space(d->p);
    if (*p != ':') {
        return expected(d, node, p, "':'");
    }
    d->p = skip_space(p + 1);
    if (field < 0) {
        return skip_value(d, node, 0);
    }
    if (b->children[field].length != b->length) {
        return text_bad(d, &node->children[field], "the member was there twice");
    }
    *before = field;
    (*found)++;
    if (d->spellings != NULL && node->parent == NULL) {
        return text_change_value(d, &node->children[field], &b->children[field]);
    }
    return read_value(d, &node->children[field], &b->children[field]);
}

static tarn_code read_struct(text_decoder *d, const text_node *node, tarn_builder *b) {
    int32_t *successor = d->successor + node->predict_at;
    int32_t before = -1;
    int32_t found = 0;
    if (*d->p != '{') {
        return mismatch(d, node, d->p);
    }
    d->p = skip_space(d->p + 1);
    if (*d->p == '}') {
        d->p++;
    } else {
        for (;;) {
            tarn_code code = read_member(d, node, b, successor, &before, &found);
            if (code != TARN_OK) {
                return code;
            }
            const char *p = skip_space(d->p);
            d->p = p + 1;
            if (*p == '}') {
                break;
            }
            if (*p != ',') {
                return expected(d, node, p, "',' or '}'");
            }
            d->p = skip_space(d->p);
        }
    }
    if (found < node->n_children) {
        tarn_code code = fill_absent(d, node, b);
        if (code != TARN_OK) {
            return code;
        }
    }
    return builder_close(b, d->err);
}

/* The items of an array into a builder. */
static tarn_code read_items(text_decoder *d, const text_node *node, const text_node *item,
                            tarn_builder *b) {
    if (*d->p != '[') {
        return mismatch(d, node, d->p);
    }
    d->p = skip_space(d->p + 1);
    if (*d->p == ']') {
        d->p++;
        return TARN_OK;
    }
    for (;;) {
        tarn_code code = read_value(d, item, b);
        if (code != TARN_OK) {
            return code;
        }
        const char *p = skip_space(d->p);
        d->p = p + 1;
        if (*p == ']') {
            return TARN_OK;
        }
        if (*p != ',') {
            return expected(d, node, p, "',' or ']'");
        }
        d->p = skip_space(d->p);
    }
}

static tarn_str key_at(const tarn_builder *keys, int64_t i) {
    if (keys->type->kind == TARN_BOOLEAN) {
        return bit_get(keys->values, i) ? STR("true") : STR("false");
    }
    if (keys->offsets == NULL) {
        const size_t width = (size_t)type_width(keys->type);
        return str_make(keys->values + (size_t)i * width, width);
    }
    return str_make(keys->bytes + keys->offsets[i],
                    (size_t)(keys->offsets[i + 1] - keys->offsets[i]));
}

/* The number of a key from first on that stands there twice, or -1. Few are compared in pairs, many
 * by a hash table (slots of 1 + number, 0: free). */
static tarn_code find_duplicate(text_decoder *d, const tarn_builder *keys, int64_t first,
                                int64_t *found) {
    size_t n_slots = 2 * PAIRWISE;
    *found = -1;
    if (keys->length - first <= PAIRWISE) {
        for (int64_t i = first; i < keys->length; i++) {
            for (int64_t k = first; k < i; k++) {
                *found = str_eq(key_at(keys, k), key_at(keys, i)) ? i : *found;
            }
        }
        return TARN_OK;
    }
    while (n_slots < 2 * (size_t)(keys->length - first)) {
        n_slots *= 2;
    }
    buf_reset(&d->key_slots);
    tarn_code code = buf_reserve(&d->key_slots, n_slots * sizeof(uint32_t), d->err);
    if (code != TARN_OK) {
        return code;
    }
    uint32_t *slots = (uint32_t *)(void *)d->key_slots.data;
    memset(slots, 0, n_slots * sizeof *slots);
    for (int64_t i = first; i < keys->length && *found < 0; i++) {
        size_t at = (size_t)str_hash(key_at(keys, i)) & (n_slots - 1);
        for (; slots[at] != 0 && *found < 0; at = (at + 1) & (n_slots - 1)) {
            *found = str_eq(key_at(keys, slots[at] - 1), key_at(keys, i)) ? i : -1;
        }
        slots[at] = (uint32_t)i + 1;
    }
    return TARN_OK;
}

/* Keys of a map are told apart, but for nested ones. */
static tarn_code close_map(text_decoder *d, const text_node *node, tarn_builder *b, int64_t first) {
    int64_t twice = -1;
    const tarn_builder *keys = &b->children[0];
    tarn_code code = type_is_nested(keys->type) ? TARN_OK : find_duplicate(d, keys, first, &twice);
    if (code == TARN_OK && twice >= 0 && keys->type->kind == TARN_STRING) {
        return text_bad(d, node, "key %.*s was there twice", STR_ARG(key_at(keys, twice)));
    }
    if (code == TARN_OK && twice >= 0) {
        return text_bad(d, node, "its key number %lld was there before",
                        (long long)(twice - first + 1));
    }
    return code == TARN_OK ? builder_close(b, d->err) : code;
}

/* The map {"a": 1, ...}: only for keys that are strings. */
static tarn_code read_plain_map(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_code code = TARN_OK;
    tarn_builder *keys = &b->children[0];
    int64_t first = keys->length;
    while (*d->p != '}') {
        tarn_str name;
        if (*d->p != '"') {
            return expected(d, node, d->p, "a member's name");
        }
        TRY(read_string(d, node, &name));
        TRY(text_append_bytes(keys, name.data, name.len, d->err));
        d->p = skip_space(d->p);
        if (*d->p != ':') {
            return expected(d, node, d->p, "':'");
        }
        d->p = skip_space(d->p + 1);
        TRY(read_value(d, &node->children[1], &b->children[1]));
        d->p = skip_space(d->p);
        if (*d->p == ',') {
            d->p = skip_space(d->p + 1);
            if (*d->p != '"') {
                return expected(d, node, d->p, "a member's name");
            }
        } else if (*d->p != '}') {
            return expected(d, node, d->p, "',' or '}'");
        }
    }
    d->p++;
    code = close_map(d, node, b, first);
done:
    return code;
}

/* Whether p, behind '{', begins the spec's form {"keys": [...], "values": [...]}. */
static bool is_spec_map(const char *p) {
    size_t len = is_literal(p, "\"keys\"", 6) ? 6 : is_literal(p, "\"values\"", 8) ? 8 : 0;
    if (len == 0) {
        return false;
    }
    p = skip_space(p + len);
    return *p == ':' && *skip_space(p + 1) == '[';
}

static tarn_code read_spec_map(text_decoder *d, const text_node *node, tarn_builder *b) {
    bool seen[2] = {false, false};
    const int64_t first = b->children[0].length;
    while (*d->p != '}') {
        int part = is_literal(d->p, "\"keys\"", 6) ? 0 : is_literal(d->p, "\"values\"", 8) ? 1 : -1;
        if (part < 0 || seen[part]) {
            return expected(d, node, d->p, "one \"keys\" and one \"values\"");
        }
        seen[part] = true;
        d->p = skip_space(d->p + (part == 0 ? 6 : 8));
        if (*d->p != ':') {
            return expected(d, node, d->p, "':'");
        }
        d->p = skip_space(d->p + 1);
        tarn_code code = read_items(d, node, &node->children[part], &b->children[part]);
        if (code != TARN_OK) {
            return code;
        }
        d->p = skip_space(d->p);
        if (*d->p == ',' && !(seen[0] && seen[1])) {
            d->p = skip_space(d->p + 1);
        } else if (*d->p != '}' || !(seen[0] && seen[1])) {
            return expected(d, node, d->p, "the end of a map of \"keys\" and \"values\"");
        }
    }
    if (!seen[0] || b->children[0].length != b->children[1].length) {
        return text_bad(d, node, "a map's keys and values were not equally many");
    }
    d->p++;
    return close_map(d, node, b, first);
}

static tarn_code read_map(text_decoder *d, const text_node *node, tarn_builder *b) {
    if (*d->p != '{') {
        return mismatch(d, node, d->p);
    }
    d->p = skip_space(d->p + 1);
    bool spec = node->children[0].kind != TARN_STRING || is_spec_map(d->p);
    return spec ? read_spec_map(d, node, b) : read_plain_map(d, node, b);
}

/* Any JSON. Null is a null, but where the column may have none it is the variant that is null. */
static tarn_code read_variant(text_decoder *d, const text_node *node, tarn_builder *b) {
    const char *start = d->p;
    tarn_code code = skip_value(d, node, 0);
    return code == TARN_OK ? text_put_variant(d, node, b, str_make(start, (size_t)(d->p - start)))
                           : code;
}

static tarn_code read_value(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_code code;
    if (*d->p == 'n' && is_literal(d->p, "null", 4) &&
        !(node->required && node->kind == TARN_VARIANT)) {
        d->p += 4;
        return text_put_null(d, node, b);
    }
    switch ((int)node->kind) {
    case TARN_INT:
    case TARN_LONG:
        return read_integer(d, node, b);
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_DECIMAL:
        return read_fraction(d, node, b);
    case TARN_BOOLEAN:
        return read_boolean(d, node, b);
    case TARN_STRUCT:
        return read_struct(d, node, b);
    case TARN_VARIANT:
        return read_variant(d, node, b);
    case TARN_LIST:
        code = read_items(d, node, &node->children[0], &b->children[0]);
        return code == TARN_OK ? builder_close(b, d->err) : code;
    case TARN_MAP:
        return read_map(d, node, b);
    default:
        return read_text(d, node, b);
    }
}

tarn_code text_json_record(text_decoder *d) {
    const text_node *root = &d->plan->root;
    if (*d->p != '{') {
        return text_bad(d, root, "the record was not a JSON object");
    }
    tarn_code code = read_struct(d, root, &d->rows);
    if (code != TARN_OK) {
        return code;
    }
    d->p = skip_space(d->p);
    return *d->p == '\n' ? TARN_OK : expected(d, root, d->p, "the end of the record");
}

/* ---- for envelopes ---- */

tarn_code text_json_row(text_decoder *d) {
    return read_struct(d, &d->plan->root, &d->rows);
}

tarn_code text_json_value(text_decoder *d, const text_node *node, tarn_builder *b) {
    return read_value(d, node, b);
}

tarn_code text_json_string(text_decoder *d, const text_node *node, tarn_str *out) {
    return *d->p == '"' ? read_string(d, node, out) : expected(d, node, d->p, "a string");
}

tarn_code text_json_name(text_decoder *d, tarn_str *out) {
    return read_name(d, &d->plan->root, out);
}

tarn_code text_json_skip(text_decoder *d) {
    return skip_value(d, &d->plan->root, 0);
}

tarn_code text_json_expected(text_decoder *d, const char *p, const char *what) {
    return expected(d, &d->plan->root, p, what);
}

const char *text_json_space(const char *p) {
    return skip_space(p);
}

const char *text_json_number(const char *p, bool *whole) {
    return number_end(p, whole);
}

/* Line ends are white space in JSON but end records here, so the copy has none. */
tarn_code text_json_cell(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text) {
    const char *p = d->p;
    const char *record = d->record;
    const char *end = d->end;
    tarn_code code = TARN_OK;
    buf_reset(&d->nested);
    TRY(buf_reserve(&d->nested, text.len + 1 + TEXT_PADDING, d->err));
    for (size_t i = 0; i < text.len; i++) {
        d->nested.data[i] = text.data[i] == '\n' ? ' ' : (uint8_t)text.data[i];
    }
    memset(d->nested.data + text.len, 0, 1 + TEXT_PADDING);
    d->nested.data[text.len] = '\n';
    d->record = (const char *)d->nested.data;
    d->end = d->record + text.len + 1;
    d->p = skip_space(d->record);
    code = read_value(d, node, b);
    if (code == TARN_OK) {
        d->p = skip_space(d->p);
        code = *d->p == '\n' ? TARN_OK : expected(d, node, d->p, "the end of the cell");
    }
done:
    d->p = p;
    d->record = record;
    d->end = end;
    return code;
}
