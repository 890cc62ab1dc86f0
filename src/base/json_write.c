/* base/json_write.c - JSON text into a buffer; commas, indents and escapes are its business.
 * Invariants: after the first error nothing is written and json_end returns that error; what was
 * written without one is valid JSON. need_comma[depth] is a state of the innermost open value. */
#include <math.h>

#include "base/json.h"

/* States of a level. */
enum {
    LEVEL_EMPTY = 0,
    LEVEL_FILLED = 1, /* a comma is due before the next */
    LEVEL_NAMED = 2   /* a name was written, its value is due */
};

void json_begin(json_writer *w, tarn_buf *out, bool pretty, tarn_error *err) {
    memset(w, 0, sizeof *w);
    w->out = out;
    w->err = err;
    w->code = TARN_OK;
    w->pretty = pretty;
}

tarn_code json_end(json_writer *w) {
    if (w->code == TARN_OK && w->depth != 0) {
        w->code = err_set(w->err, TARN_INTERNAL, "a JSON text ended with %d open values", w->depth);
    }
    return w->code;
}

static void put(json_writer *w, const char *text, size_t len) {
    if (w->code == TARN_OK) {
        w->code = buf_append(w->out, text, len, w->err);
    }
}

static void put_line(json_writer *w) {
    static const char spaces[] = "                                ";
    put(w, "\n", 1);
    size_t left = 2 * (size_t)w->depth;
    while (left > 0) {
        size_t piece = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
        put(w, spaces, piece);
        left -= piece;
    }
}

/* What stands between the value before and the next value or name. */
static void put_gap(json_writer *w) {
    uint8_t *level = &w->need_comma[w->depth];
    if (*level == LEVEL_NAMED) {
        *level = LEVEL_FILLED;
        return;
    }
    if (*level == LEVEL_FILLED) {
        put(w, ",", 1);
    }
    *level = LEVEL_FILLED;
    if (w->pretty && w->depth > 0) {
        put_line(w);
    }
}

static void put_token(json_writer *w, const char *text, size_t len) {
    if (w->code == TARN_OK) {
        put_gap(w);
        put(w, text, len);
    }
}

static void open_level(json_writer *w, const char *bracket) {
    if (w->code != TARN_OK) {
        return;
    }
    if (w->depth == JSON_MAX_DEPTH) {
        w->code = err_set(w->err, TARN_LIMIT, "JSON values were nested deeper than %d levels",
                          JSON_MAX_DEPTH);
        return;
    }
    put_token(w, bracket, 1);
    w->depth++;
    w->need_comma[w->depth] = LEVEL_EMPTY;
}

static void close_level(json_writer *w, const char *bracket) {
    if (w->code != TARN_OK) {
        return;
    }
    if (w->depth == 0 || w->need_comma[w->depth] == LEVEL_NAMED) {
        w->code = err_set(w->err, TARN_INTERNAL, "a JSON value was closed that was not open");
        return;
    }
    bool filled = w->need_comma[w->depth] == LEVEL_FILLED;
    w->depth--;
    if (w->pretty && filled) {
        put_line(w);
    }
    put(w, bracket, 1);
}

void json_put_object(json_writer *w) {
    open_level(w, "{");
}

void json_end_object(json_writer *w) {
    close_level(w, "}");
}

void json_put_array(json_writer *w) {
    open_level(w, "[");
}

void json_end_array(json_writer *w) {
    close_level(w, "]");
}

/* How many bytes from at on can be written as they are. *bad says that a byte follows which is not
 * UTF-8. */
static size_t find_escape(tarn_str s, size_t at, bool *bad) {
    *bad = false;
    size_t i = at;
    while (i < s.len) {
        unsigned char c = (unsigned char)s.data[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            break;
        }
        if (c < 0x80) {
            i++;
            continue;
        }
        size_t next = i;
        if (str_utf8_next(s, &next) == 0xFFFD && next == i + 1) {
            *bad = true;
            break;
        }
        i = next;
    }
    return i - at;
}

static size_t write_escape(unsigned char c, char out[6]) {
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn?fr"; /* of 8 to 13; 11 has none */
    out[0] = '\\';
    if (c == '"' || c == '\\') {
        out[1] = (char)c;
        return 2;
    }
    if (c >= 8 && c <= 13 && c != 11) {
        out[1] = letters[c - 8];
        return 2;
    }
    memcpy(out + 1, "u00", 3);
    out[4] = hex[c >> 4];
    out[5] = hex[c & 15];
    return 6;
}

tarn_code json_escape(tarn_buf *out, tarn_str s, tarn_error *err) {
    size_t at = 0;
    while (at < s.len) {
        bool bad;
        size_t run = find_escape(s, at, &bad);
        tarn_code code = buf_append(out, s.data + at, run, err);
        if (code != TARN_OK) {
            return code;
        }
        at += run;
        if (at == s.len) {
            break;
        }
        char escape[6];
        size_t len = 3;
        if (bad) {
            memcpy(escape, "\xEF\xBF\xBD", 3);
        } else {
            len = write_escape((unsigned char)s.data[at], escape);
        }
        code = buf_append(out, escape, len, err);
        if (code != TARN_OK) {
            return code;
        }
        at++;
    }
    return TARN_OK;
}

static void put_quoted(json_writer *w, tarn_str s) {
    put(w, "\"", 1);
    if (w->code == TARN_OK) {
        w->code = json_escape(w->out, s, w->err);
    }
    put(w, "\"", 1);
}

void json_put_name(json_writer *w, tarn_str name) {
    if (w->code != TARN_OK) {
        return;
    }
    put_gap(w);
    put_quoted(w, name);
    put(w, ": ", w->pretty ? 2 : 1);
    w->need_comma[w->depth] = LEVEL_NAMED;
}

void json_put_string(json_writer *w, tarn_str s) {
    if (w->code == TARN_OK) {
        put_gap(w);
        put_quoted(w, s);
    }
}

void json_put_i64(json_writer *w, int64_t v) {
    char digits[24];
    put_token(w, digits, str_from_i64(v, digits));
}

void json_put_f64(json_writer *w, double v) {
    char digits[32];
    size_t len = str_from_f64(v, digits);
    if (isfinite(v)) {
        put_token(w, digits, len);
    } else {
        json_put_string(w, str_make(digits, len));
    }
}

void json_put_bool(json_writer *w, bool v) {
    if (v) {
        put_token(w, "true", 4);
    } else {
        put_token(w, "false", 5);
    }
}

void json_put_null(json_writer *w) {
    put_token(w, "null", 4);
}

void json_put_raw(json_writer *w, tarn_str text) {
    put_token(w, text.data, text.len);
}

static void put_members(json_writer *w, const json_value *value) {
    for (const json_value *m = value->first; m != NULL && w->code == TARN_OK; m = m->next) {
        if (value->kind == JSON_OBJECT) {
            json_put_name(w, m->name);
        }
        json_put_value(w, m);
    }
}

void json_put_value(json_writer *w, const json_value *value) {
    switch (value->kind) {
    case JSON_NULL:
        json_put_null(w);
        break;
    case JSON_BOOL:
        json_put_bool(w, value->boolean);
        break;
    case JSON_NUMBER:
        json_put_raw(w, value->text);
        break;
    case JSON_STRING:
        json_put_string(w, value->text);
        break;
    case JSON_ARRAY:
        json_put_array(w);
        put_members(w, value);
        json_end_array(w);
        break;
    case JSON_OBJECT:
        json_put_object(w);
        put_members(w, value);
        json_end_object(w);
        break;
    }
}

void json_member_str(json_writer *w, const char *name, tarn_str s) {
    json_put_name(w, str_of(name));
    json_put_string(w, s);
}

void json_member_i64(json_writer *w, const char *name, int64_t v) {
    json_put_name(w, str_of(name));
    json_put_i64(w, v);
}

void json_member_bool(json_writer *w, const char *name, bool v) {
    json_put_name(w, str_of(name));
    json_put_bool(w, v);
}
