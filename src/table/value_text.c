/* table/value_text.c - values as text and as single-value JSON (spec, Appendix D "JSON single-value
 * serialization"), both ways.
 *
 * Writing always gives the full form (six or nine fraction digits, "+00:00", lower-case hex, the
 * shortest digits that read back); reading takes every form that means the same. */
#include "table/value.h"

#include "base/time.h"

static tarn_code bad_text(const tarn_type *type, tarn_str text, tarn_error *err) {
    return err_set(err, TARN_INVALID, "\"%.*s\" was not a valid %s", STR_ARG(text),
                   type_kind_name(type->kind));
}

static int sub_digits(tarn_kind kind) {
    return kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS ? 9 : 6;
}

static bool is_zoned(tarn_kind kind) {
    return kind == TARN_TIMESTAMPTZ || kind == TARN_TIMESTAMPTZ_NS;
}

/* A timestamp with a zone may be written without one (it is UTC then); one without a zone may not
 * be written with one, since dropping it would move the value. A date alone is its midnight. */
static bool parse_timestamp(tarn_kind kind, tarn_str text, int64_t *out) {
    bool zoned = false;
    int32_t days;
    if (time_parse_timestamp(text, sub_digits(kind), &zoned, out)) {
        return is_zoned(kind) || !zoned;
    }
    int64_t per_day = sub_digits(kind) == 9 ? TIME_US_PER_DAY * 1000 : TIME_US_PER_DAY;
    return time_parse_date(text, &days) && num_mul_i64(days, per_day, out);
}

static tarn_code parse_hex(tarn_arena *arena, const tarn_type *type, tarn_str text, tarn_str *out,
                           tarn_error *err) {
    size_t len = text.len / 2;
    if (text.len % 2 != 0) {
        return bad_text(type, text, err);
    }
    if (type->kind == TARN_FIXED && len != (size_t)type->length) {
        return err_set(err, TARN_INVALID, "\"%.*s\" had %zu bytes and not the %d of fixed[%d]",
                       STR_ARG(text), len, (int)type->length, (int)type->length);
    }
    uint8_t *bytes = arena_alloc(arena, len);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < len; i++) {
        int high = str_hex_digit(text.data[2 * i]);
        int low = str_hex_digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return bad_text(type, text, err);
        }
        bytes[i] = (uint8_t)(high * 16 + low);
    }
    *out = str_make(bytes, len);
    return TARN_OK;
}

static tarn_code parse_bytes(tarn_arena *arena, const tarn_type *type, tarn_str text, tarn_value *v,
                             tarn_error *err) {
    uint8_t uuid[16];
    if (type->kind == TARN_STRING || type->kind == TARN_UUID) {
        tarn_str bytes = text;
        if (type->kind == TARN_STRING && !str_utf8_valid(text)) {
            return err_set(err, TARN_INVALID, "a string was not valid UTF-8: %.*s", STR_ARG(text));
        }
        if (type->kind == TARN_UUID) {
            if (!value_parse_uuid(text, uuid)) {
                return bad_text(type, text, err);
            }
            bytes = str_make(uuid, 16);
        }
        v->as.bytes = arena_str(arena, bytes);
        return v->as.bytes.data != NULL ? TARN_OK : err_nomem(err);
    }
    return parse_hex(arena, type, text, &v->as.bytes, err);
}

static bool parse_float(const tarn_type *type, tarn_str text, tarn_value *v) {
    return type->kind == TARN_FLOAT ? str_to_f32(text, &v->as.f32) : str_to_f64(text, &v->as.f64);
}

tarn_code value_from_text(tarn_arena *arena, const tarn_type *type, tarn_str text, tarn_value *out,
                          tarn_error *err) {
    tarn_value v = value_null(type);
    tarn_code code = TARN_OK;
    bool good = true;
    v.is_null = false;
    switch ((int)type->kind) {
    case TARN_BOOLEAN:
        good = str_to_bool(text, &v.as.boolean);
        break;
    case TARN_INT:
        good = str_to_i32(text, &v.as.i32);
        break;
    case TARN_LONG:
        good = str_to_i64(text, &v.as.i64);
        break;
    case TARN_FLOAT:
    case TARN_DOUBLE:
        good = parse_float(type, text, &v);
        break;
    case TARN_DECIMAL:
        code = value_parse_decimal(text, type->precision, type->scale, &v.as.i128, err);
        break;
    case TARN_DATE:
        good = time_parse_date(text, &v.as.i32);
        break;
    case TARN_TIME:
        good = time_parse_time(text, &v.as.i64);
        break;
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        good = parse_timestamp(type->kind, text, &v.as.i64);
        break;
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        code = parse_bytes(arena, type, text, &v, err);
        break;
    default:
        return err_set(err, TARN_INVALID, "a %s has no text form", type_kind_name(type->kind));
    }
    if (!good) {
        code = bad_text(type, text, err);
    }
    if (code == TARN_OK) {
        *out = v;
    }
    return code;
}

/* ---- writing ---- */

static tarn_code put_hex(tarn_str bytes, tarn_buf *out, tarn_error *err) {
    static const char digits[] = "0123456789abcdef";
    tarn_code code = buf_reserve(out, bytes.len * 2, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *p = out->data + out->len;
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t b = (uint8_t)bytes.data[i];
        *p++ = (uint8_t)digits[b >> 4];
        *p++ = (uint8_t)digits[b & 15];
    }
    out->len += bytes.len * 2;
    return TARN_OK;
}

/* Text of at most 63 bytes of the kinds that have a bounded one; 0 for others. */
static size_t format_short(const tarn_value *v, char out[64]) {
    tarn_kind kind = v->type->kind;
    switch ((int)kind) {
    case TARN_BOOLEAN:
        memcpy(out, v->as.boolean ? "true" : "false", 6 - (v->as.boolean ? 1u : 0u));
        return v->as.boolean ? 4 : 5;
    case TARN_INT:
        return str_from_i64(v->as.i32, out);
    case TARN_LONG:
        return str_from_i64(v->as.i64, out);
    case TARN_FLOAT:
        return str_from_f32(v->as.f32, out);
    case TARN_DOUBLE:
        return str_from_f64(v->as.f64, out);
    case TARN_DECIMAL:
        return value_format_decimal(v->as.i128, v->type->scale, out);
    case TARN_DATE:
        return time_format_date(v->as.i32, out);
    case TARN_TIME:
        return time_format_time(v->as.i64, out);
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return time_format_timestamp(v->as.i64, sub_digits(kind), is_zoned(kind), out);
    case TARN_UUID:
        if (v->as.bytes.len == 16) {
            value_format_uuid((const uint8_t *)v->as.bytes.data, out);
            return 36;
        }
        return 0;
    default:
        return 0;
    }
}

tarn_code value_to_text(const tarn_value *v, tarn_buf *out, tarn_error *err) {
    char text[64];
    if (v->is_null) {
        return buf_append_str(out, STR("null"), err);
    }
    size_t len = format_short(v, text);
    if (len > 0) {
        return buf_append(out, text, len, err);
    }
    if (v->type->kind == TARN_STRING) {
        return buf_append_str(out, v->as.bytes, err);
    }
    return put_hex(v->as.bytes, out, err);
}

static bool is_bare_json(const tarn_value *v) {
    switch ((int)v->type->kind) {
    case TARN_BOOLEAN:
    case TARN_INT:
    case TARN_LONG:
        return true;
    case TARN_FLOAT:
        return v->as.f32 - v->as.f32 == 0; /* finite */
    case TARN_DOUBLE:
        return v->as.f64 - v->as.f64 == 0;
    default:
        return false;
    }
}

/* Hex is plain ASCII, so it goes between quotes without a look. */
static void put_hex_json(tarn_str bytes, json_writer *w) {
    json_put_raw(w, STR("\""));
    if (w->code == TARN_OK) {
        w->code = put_hex(bytes, w->out, w->err);
    }
    if (w->code == TARN_OK) {
        w->code = buf_append_char(w->out, '"', w->err);
    }
}

void value_put_json(const tarn_value *v, json_writer *w) {
    char text[64];
    if (v->is_null) {
        json_put_null(w);
        return;
    }
    size_t len = format_short(v, text);
    if (len > 0 && is_bare_json(v)) {
        json_put_raw(w, str_make(text, len));
    } else if (len > 0) {
        json_put_string(w, str_make(text, len));
    } else if (v->type->kind == TARN_STRING) {
        json_put_string(w, v->as.bytes);
    } else {
        put_hex_json(v->as.bytes, w);
    }
}

/* ---- JSON in ---- */

static tarn_code bad_json(const tarn_type *type, tarn_error *err) {
    return err_set(err, TARN_INVALID, "a JSON value was not a valid %s",
                   type_kind_name(type->kind));
}

tarn_code value_from_json(tarn_arena *arena, const tarn_type *type, const json_value *json,
                          tarn_value *out, tarn_error *err) {
    if (type_is_nested(type)) {
        return err_set(err, TARN_INVALID, "a %s is not a single value", type_kind_name(type->kind));
    }
    if (json == NULL || json->kind == JSON_NULL) {
        *out = value_null(type);
        return TARN_OK;
    }
    if (json->kind == JSON_BOOL) {
        if (type->kind != TARN_BOOLEAN) {
            return bad_json(type, err);
        }
        tarn_value v = value_null(type);
        v.is_null = false;
        v.as.boolean = json->boolean;
        *out = v;
        return TARN_OK;
    }
    bool number = type->kind == TARN_INT || type->kind == TARN_LONG;
    bool either =
        type->kind == TARN_FLOAT || type->kind == TARN_DOUBLE || type->kind == TARN_DECIMAL;
    bool fits = json->kind == JSON_NUMBER ? number || either : json->kind == JSON_STRING && !number;
    if (!fits || type->kind == TARN_BOOLEAN) {
        return bad_json(type, err);
    }
    return value_from_text(arena, type, json->text, out, err);
}
