/* format/variant/variant_json.c - variants as JSON and back.
 *
 * A value is shown within the bytes that its container says it has. What its values take in sum is
 * checked, so none is shown twice; names may be, so the text has a limit of its own. */
#include "format/variant/variant.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/time.h"
#include "table/value.h"

#define SHORT_TEXT_BYTES   64
#define DECIMAL_MAX_DIGITS 38

static tarn_code bad(tarn_error *err, const char *problem) {
    return err_set(err, TARN_CORRUPT, "a variant had %s", problem);
}

static int by_bytes(const void *a, const void *b) {
    return str_cmp(*(const tarn_str *)a, *(const tarn_str *)b);
}

/* ---- as JSON ---- */

typedef struct shower {
    variant_names names;
    tarn_buf *out;
    size_t most; /* bytes that out may come to hold */
    tarn_error *err;
} shower;

static tarn_code put_string(shower *s, tarn_str text) {
    tarn_code code = TARN_OK;
    if (!str_utf8_valid(text)) {
        return bad(s->err, "a string that was not UTF-8");
    }
    TRY(buf_append_char(s->out, '"', s->err));
    TRY(json_escape(s->out, text, s->err));
    code = buf_append_char(s->out, '"', s->err);
done:
    return code;
}

static tarn_code put_base64(shower *s, tarn_str bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tarn_code code = buf_reserve(s->out, bytes.len / 3 * 4 + 6, s->err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *to = s->out->data + s->out->len;
    *to++ = '"';
    for (size_t i = 0; i < bytes.len; i += 3) {
        const size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint8_t three[3] = {0};
        memcpy(three, bytes.data + i, n);
        *to++ = (uint8_t)digits[three[0] >> 2];
        *to++ = (uint8_t)digits[(three[0] & 3) << 4 | three[1] >> 4];
        *to++ = (uint8_t)(n > 1 ? digits[(three[1] & 15) << 2 | three[2] >> 6] : '=');
        *to++ = (uint8_t)(n > 2 ? digits[three[2] & 63] : '=');
    }
    *to++ = '"';
    s->out->len = (size_t)(to - s->out->data);
    return TARN_OK;
}

static size_t format_float(int primitive, const uint8_t *p, char *out) {
    float f32;
    double f64;
    if (primitive == VARIANT_FLOAT) {
        memcpy(&f32, p, sizeof f32);
        return str_from_f32(f32, out);
    }
    memcpy(&f64, p, sizeof f64);
    return str_from_f64(f64, out);
}

static size_t format_integer(int primitive, const uint8_t *p, char *out) {
    const int64_t v = primitive == VARIANT_INT8    ? (int8_t)p[0]
                      : primitive == VARIANT_INT16 ? (int16_t)num_load_u16(p)
                      : primitive == VARIANT_INT32 ? num_load_i32(p)
                                                   : num_load_i64(p);
    return str_from_i64(v, out);
}

static size_t format_time(int primitive, const uint8_t *p, char *out) {
    char uuid[37];
    switch (primitive) {
    case VARIANT_DATE:
        return time_format_date(num_load_i32(p), out);
    case VARIANT_TIME:
        return time_format_time(num_load_i64(p), out);
    case VARIANT_UUID:
        value_format_uuid(p, uuid);
        memcpy(out, uuid, 36);
        return 36;
    default:
        return time_format_timestamp(
            num_load_i64(p), primitive >= VARIANT_TIMESTAMPTZ_NS ? 9 : 6,
            primitive == VARIANT_TIMESTAMPTZ || primitive == VARIANT_TIMESTAMPTZ_NS, out);
    }
}

static tarn_code put_decimal(shower *s, int primitive, const uint8_t *p) {
    char text[SHORT_TEXT_BYTES];
    const tarn_int128 v = primitive == VARIANT_DECIMAL4   ? num_load_i32(p + 1)
                          : primitive == VARIANT_DECIMAL8 ? num_load_i64(p + 1)
                                                          : num_load_i128(p + 1);
    if (p[0] > DECIMAL_MAX_DIGITS || num_digits_i128(v) > DECIMAL_MAX_DIGITS) {
        return bad(s->err, "a decimal of more than 38 digits");
    }
    return buf_append(s->out, text, value_format_decimal(v, p[0], text), s->err);
}

/* bytes are as many as the primitive has. */
static tarn_code put_primitive(shower *s, tarn_str bytes) {
    const int primitive = (uint8_t)bytes.data[0] >> 2;
    const uint8_t *p = (const uint8_t *)bytes.data + 1;
    char text[SHORT_TEXT_BYTES];
    switch (primitive) {
    case VARIANT_NULL:
        return buf_append_str(s->out, STR("null"), s->err);
    case VARIANT_TRUE:
        return buf_append_str(s->out, STR("true"), s->err);
    case VARIANT_FALSE:
        return buf_append_str(s->out, STR("false"), s->err);
    case VARIANT_INT8:
    case VARIANT_INT16:
    case VARIANT_INT32:
    case VARIANT_INT64:
        return buf_append(s->out, text, format_integer(primitive, p, text), s->err);
    case VARIANT_DECIMAL4:
    case VARIANT_DECIMAL8:
    case VARIANT_DECIMAL16:
        return put_decimal(s, primitive, p);
    case VARIANT_BINARY:
        return put_base64(s, str_from(bytes, 5));
    case VARIANT_STRING:
        return put_string(s, str_from(bytes, 5));
    case VARIANT_FLOAT:
    case VARIANT_DOUBLE: {
        const size_t len = format_float(primitive, p, text);
        const bool finite = text[len - 1] >= '0' && text[len - 1] <= '9'; /* no NaN, no Infinity */
        return finite ? buf_append(s->out, text, len, s->err) : put_string(s, str_make(text, len));
    }
    default:
        if (primitive == VARIANT_TIME &&
            (num_load_i64(p) < 0 || num_load_i64(p) >= TIME_US_PER_DAY)) {
            return bad(s->err, "a time beyond its day");
        }
        return put_string(s, str_make(text, format_time(primitive, p, text)));
    }
}

/* Names of an object come sorted, as a rule; writers differ in how, so their order is not asked
 * for, but that they differ is. */
static tarn_code check_names(const shower *s, const variant_container *c) {
    tarn_str name, before = STR_NULL;
    bool sorted = true, twice = false;
    for (uint32_t i = 0; i < c->count; i++) {
        if (!variant_name(&s->names, variant_id(c, i), &name)) {
            return bad(s->err, "a field that its metadata did not name");
        }
        sorted = sorted && (i == 0 || str_cmp(before, name) < 0);
        before = name;
    }
    if (sorted) {
        return TARN_OK;
    }
    tarn_str *names = env_alloc(s->out->env, c->count * sizeof *names);
    if (names == NULL) {
        return err_nomem(s->err);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        names[i] = STR_NULL;
        (void)variant_name(&s->names, variant_id(c, i), &names[i]);
    }
    qsort(names, c->count, sizeof *names, by_bytes);
    for (uint32_t i = 1; i < c->count; i++) {
        twice = twice || str_eq(names[i], names[i - 1]);
    }
    env_free(s->out->env, names);
    return twice ? bad(s->err, "a field twice") : TARN_OK;
}

static tarn_code put_value(shower *s, tarn_str bytes, int depth);

static tarn_code put_container(shower *s, tarn_str bytes, int depth) {
    tarn_code code = TARN_OK;
    variant_container c;
    size_t used = 0;
    const bool object = (bytes.data[0] & 3) == VARIANT_BASIC_OBJECT;
    if (depth == JSON_MAX_DEPTH) {
        return err_set(s->err, TARN_LIMIT, "a variant was nested deeper than %d levels",
                       JSON_MAX_DEPTH);
    }
    if (!variant_open_container(bytes, &c)) {
        return bad(s->err, "an object or array that was cut off");
    }
    TRY(object ? check_names(s, &c) : TARN_OK);
    TRY(buf_append_char(s->out, object ? '{' : '[', s->err));
    for (uint32_t i = 0; i < c.count; i++) {
        tarn_str item, name;
        TRY(i > 0 ? buf_append_char(s->out, ',', s->err) : TARN_OK);
        if (object && variant_name(&s->names, variant_id(&c, i), &name)) {
            TRY(put_string(s, name));
            TRY(buf_append_char(s->out, ':', s->err));
        }
        if (!variant_item(&c, i, &item)) {
            code = bad(s->err, "a value that was cut off or of an unknown type");
            goto done;
        }
        used += item.len;
        if (used > c.content_len) {
            code = bad(s->err, "values that overlapped");
            goto done;
        }
        TRY(put_value(s, item, depth + 1));
    }
    code = buf_append_char(s->out, object ? '}' : ']', s->err);
done:
    return code;
}

/* bytes are one whole value (variant_size). */
static tarn_code put_value(shower *s, tarn_str bytes, int depth) {
    const int basic = bytes.data[0] & 3;
    if (s->out->len > s->most) {
        return err_set(s->err, TARN_LIMIT, "a variant's JSON was longer than %u bytes",
                       LIMIT_TEXT_LINE_BYTES);
    }
    return basic == VARIANT_BASIC_PRIMITIVE      ? put_primitive(s, bytes)
           : basic == VARIANT_BASIC_SHORT_STRING ? put_string(s, str_from(bytes, 1))
                                                 : put_container(s, bytes, depth);
}

tarn_code variant_to_json(tarn_str metadata, tarn_str value, tarn_buf *out, tarn_error *err) {
    shower s = {.out = out, .most = out->len + LIMIT_TEXT_LINE_BYTES, .err = err};
    const char *problem = variant_open_names(metadata, &s.names);
    if (problem != NULL) {
        return bad(err, problem);
    }
    const size_t size = variant_size(value);
    if (size == 0) {
        return bad(err, "a value that was cut off or of an unknown type");
    }
    return size == value.len ? put_value(&s, value, 0) : bad(err, "bytes behind its value");
}

/* ---- from JSON ---- */

static tarn_code put_integer(variant_maker *m, int64_t v, tarn_error *err) {
    const bool i8 = v >= INT8_MIN && v <= INT8_MAX;
    const bool i16 = v >= INT16_MIN && v <= INT16_MAX;
    const bool i32 = v >= INT32_MIN && v <= INT32_MAX;
    const int primitive = i8    ? VARIANT_INT8
                          : i16 ? VARIANT_INT16
                          : i32 ? VARIANT_INT32
                                : VARIANT_INT64;
    return variant_put_primitive(m, primitive, &v, (size_t)1 << (primitive - VARIANT_INT8), err);
}

/* A number without an exponent whose digits and scale a decimal holds; it has no negative zero. */
static bool read_decimal(tarn_str text, int32_t *scale, tarn_int128 *v) {
    size_t point = 0, at = 0;
    if (str_find_char(text, 'e', &at) || str_find_char(text, 'E', &at)) {
        return false;
    }
    const size_t places = str_find_char(text, '.', &point) ? text.len - point - 1 : 0;
    *scale = (int32_t)(places <= DECIMAL_MAX_DIGITS ? places : 0);
    return places <= DECIMAL_MAX_DIGITS &&
           value_parse_decimal(text, DECIMAL_MAX_DIGITS, *scale, v, NULL) == TARN_OK &&
           (*v != 0 || text.data[0] != '-');
}

static tarn_code put_number(variant_maker *m, tarn_str text, tarn_error *err) {
    int64_t whole;
    int32_t scale;
    tarn_int128 v;
    double f64;
    if (str_to_i64(text, &whole)) {
        return put_integer(m, whole, err);
    }
    if (read_decimal(text, &scale, &v)) {
        const int32_t digits = num_digits_i128(v) > scale ? num_digits_i128(v) : scale;
        const int primitive = digits <= 9    ? VARIANT_DECIMAL4
                              : digits <= 18 ? VARIANT_DECIMAL8
                                             : VARIANT_DECIMAL16;
        return variant_put_decimal(m, primitive, scale, v, err);
    }
    if (!str_to_f64(text, &f64)) {
        return err_set(err, TARN_INVALID, "the number %.*s was beyond a double", STR_ARG(text));
    }
    return variant_put_primitive(m, VARIANT_DOUBLE, &f64, sizeof f64, err);
}

static tarn_code collect_names(variant_maker *m, const json_value *json, tarn_error *err) {
    for (const json_value *v = json->first; v != NULL; v = v->next) {
        tarn_code code = json->kind == JSON_OBJECT
                             ? buf_append(&m->names, &v->name, sizeof v->name, err)
                             : TARN_OK;
        code = code == TARN_OK ? collect_names(m, v, err) : code;
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* Sorts the names and leaves each once. */
static void order_names(variant_maker *m) {
    tarn_str *names = (tarn_str *)(void *)m->names.data;
    const size_t n = m->names.len / sizeof *names;
    size_t kept = n > 0 ? 1 : 0;
    if (n > 1) {
        qsort(names, n, sizeof *names, by_bytes);
    }
    for (size_t i = 1; i < n; i++) {
        if (!str_eq(names[i], names[kept - 1])) {
            names[kept++] = names[i];
        }
    }
    m->names.len = kept * sizeof *names;
}

static uint32_t id_of(const variant_maker *m, tarn_str name) {
    const tarn_str *names = (const tarn_str *)(const void *)m->names.data;
    size_t low = 0, high = m->names.len / sizeof *names;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (str_cmp(names[middle], name) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

static tarn_code put_tree(variant_maker *m, const json_value *json, tarn_error *err) {
    tarn_code code = TARN_OK;
    const variant_mark mark = variant_begin(m);
    const bool object = json->kind == JSON_OBJECT;
    bool twice = false; /* the parser refused that */
    switch (json->kind) {
    case JSON_NULL:
        return variant_put_primitive(m, VARIANT_NULL, NULL, 0, err);
    case JSON_BOOL:
        return variant_put_primitive(m, json->boolean ? VARIANT_TRUE : VARIANT_FALSE, NULL, 0, err);
    case JSON_NUMBER:
        return put_number(m, json->text, err);
    case JSON_STRING:
        return variant_put_text(m, VARIANT_STRING, json->text, err);
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    for (const json_value *v = json->first; v != NULL; v = v->next) {
        TRY(variant_put_member(m, mark, m->out.len, object ? v->name : STR_NULL,
                               object ? id_of(m, v->name) : 0, err));
        TRY(put_tree(m, v, err));
    }
    code = variant_end(m, object, mark, &twice, err);
done:
    return code;
}

tarn_code variant_from_json(variant_maker *m, const json_value *json, tarn_buf *metadata,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    variant_maker_reset(m);
    TRY(collect_names(m, json, err));
    order_names(m);
    TRY(put_tree(m, json, err));
    code = variant_put_names((const tarn_str *)(const void *)m->names.data,
                             m->names.len / sizeof(tarn_str), metadata, err);
done:
    return code;
}
