/* iceberg/transform_human.c - partition values as people read them in paths and listings; the forms
 * are those of Iceberg Java, so that paths agree. */
#include <stdio.h>

#include "iceberg/transform_int.h"

static tarn_code put_civil(int64_t days, tarn_buf *out, tarn_error *err) {
    int64_t year;
    int32_t month, day;
    time_civil_from_days(days, &year, &month, &day);
    return buf_printf(out, err, "%04lld-%02d-%02d", (long long)year, month, day);
}

static tarn_code put_base64(tarn_str bytes, tarn_buf *out, tarn_error *err) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tarn_code code = buf_reserve(out, (bytes.len + 2) / 3 * 4, err);
    if (code != TARN_OK) {
        return code;
    }
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        const uint8_t *p = (const uint8_t *)bytes.data + i;
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)(left > 1 ? p[1] : 0) << 8 |
                     (uint32_t)(left > 2 ? p[2] : 0);
        char *dst = (char *)out->data + out->len;
        dst[0] = digits[v >> 18];
        dst[1] = digits[(v >> 12) & 63];
        dst[2] = left > 1 ? digits[(v >> 6) & 63] : '=';
        dst[3] = left > 2 ? digits[v & 63] : '=';
        out->len += 4;
    }
    return TARN_OK;
}

/* Time of the day; seconds always shown when full (timestamps), and the fraction without its zeros
 * (timestamps) or in groups of three digits (times). */
static tarn_code put_clock(int64_t nanos, bool timestamp, tarn_buf *out, tarn_error *err) {
    int64_t seconds = nanos / 1000000000, rest = nanos % 1000000000;
    tarn_code code =
        buf_printf(out, err, "%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60));
    if (code == TARN_OK && (timestamp || seconds % 60 != 0 || rest != 0)) {
        code = buf_printf(out, err, ":%02d", (int)(seconds % 60));
    }
    if (code != TARN_OK || rest == 0) {
        return code;
    }
    char text[16];
    int len = snprintf(text, sizeof text, ".%09d", (int)rest);
    while (timestamp && text[len - 1] == '0') {
        len--;
    }
    while (!timestamp && len > 4 && memcmp(text + len - 3, "000", 3) == 0) {
        len -= 3;
    }
    return buf_append(out, text, (size_t)len, err);
}

static tarn_code put_timestamp(const tarn_value *v, tarn_buf *out, tarn_error *err) {
    int64_t second = units_per_second(v->type->kind);
    int64_t day = second * 86400;
    bool zoned = v->type->kind == TARN_TIMESTAMPTZ || v->type->kind == TARN_TIMESTAMPTZ_NS;
    tarn_code code = put_civil(num_floor_div(v->as.i64, day), out, err);
    if (code == TARN_OK) {
        code = buf_append_char(out, 'T', err);
    }
    if (code == TARN_OK) {
        code = put_clock(num_floor_mod(v->as.i64, day) * (1000000000 / second), true, out, err);
    }
    return code == TARN_OK && zoned ? buf_append_str(out, STR("+00:00"), err) : code;
}

/* Shortest digits, in Java's clothes: plain between 1e-3 and 1e7, else d.dddE-7. */
static tarn_code put_float(const char *shortest, size_t len, tarn_buf *out, tarn_error *err) {
    char digits[40];
    int n = 0, point = -1, exponent = 0;
    size_t i = 0;
    bool negative = len > 0 && shortest[0] == '-';
    for (i = negative ? 1 : 0; i < len && n < 32; i++) {
        if (shortest[i] >= '0' && shortest[i] <= '9') {
            digits[n++] = shortest[i];
        } else if (shortest[i] == '.') {
            point = n;
        } else {
            break;
        }
    }
    if (n == 0) { /* NaN, Infinity */
        return buf_append(out, shortest, len, err);
    }
    int64_t written = 0;
    if (i < len && (shortest[i] == 'e' || shortest[i] == 'E')) {
        tarn_str rest = str_make(shortest + i + 1, len - i - 1);
        (void)str_to_i64(rest.len > 0 && rest.data[0] == '+' ? str_from(rest, 1) : rest, &written);
    }
    int lead = 0; /* zeros in front */
    while (lead < n - 1 && digits[lead] == '0') {
        lead++;
    }
    exponent = (int)written + (point < 0 ? n : point) - lead - 1;
    char *d = digits + lead;
    n -= lead;
    while (n > 1 && d[n - 1] == '0') {
        n--;
    }
    bool zero = n == 1 && d[0] == '0';
    tarn_code code = negative ? buf_append_char(out, '-', err) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    if (zero) {
        return buf_append_str(out, STR("0.0"), err);
    }
    if (exponent < -3 || exponent >= 7) {
        return n == 1 ? buf_printf(out, err, "%c.0E%d", d[0], exponent)
                      : buf_printf(out, err, "%c.%.*sE%d", d[0], n - 1, d + 1, exponent);
    }
    if (exponent < 0) {
        return buf_printf(out, err, "0.%.*s%.*s", -exponent - 1, "000", n, d);
    }
    int whole = exponent + 1;
    if (n <= whole) {
        return buf_printf(out, err, "%.*s%.*s.0", n, d, whole - n, "0000000");
    }
    return buf_printf(out, err, "%.*s.%.*s", whole, d, n - whole, d + whole);
}

static tarn_code put_decimal(const tarn_value *v, tarn_buf *out, tarn_error *err) {
    int32_t scale = v->type->scale;
    int32_t digits = num_digits_i128(v->as.i128);
    char text[64];
    /* Java turns to an exponent below 1e-6. */
    if (scale > 0 && digits - 1 - scale < -6) {
        size_t len = value_format_decimal(v->as.i128, 0, text);
        size_t sign = text[0] == '-' ? 1 : 0;
        size_t n = len - sign;
        return buf_printf(out, err, "%.*s%c%s%.*sE%d", (int)sign, text, text[sign],
                          n > 1 ? "." : "", (int)(n - 1), text + sign + 1, digits - 1 - scale);
    }
    return buf_append(out, text, value_format_decimal(v->as.i128, scale, text), err);
}

static tarn_code put_plain(const tarn_value *v, tarn_buf *out, tarn_error *err) {
    char text[64];
    switch (v->type->kind) {
    case TARN_DATE:
        return put_civil(v->as.i32, out, err);
    case TARN_TIME:
        return put_clock(v->as.i64 * 1000, false, out, err);
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return put_timestamp(v, out, err);
    case TARN_FLOAT:
        return put_float(text, str_from_f32(v->as.f32, text), out, err);
    case TARN_DOUBLE:
        return put_float(text, str_from_f64(v->as.f64, text), out, err);
    case TARN_DECIMAL:
        return put_decimal(v, out, err);
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        return put_base64(v->as.bytes, out, err);
    case TARN_STRING:
        return buf_append_str(out, v->as.bytes, err);
    case TARN_BOOLEAN:
    case TARN_INT:
    case TARN_LONG:
    case TARN_UUID:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return value_to_text(v, out, err);
}

tarn_code transform_human(const tarn_transform *transform, const tarn_value *value, tarn_buf *out,
                          tarn_error *err) {
    tarn_code code;
    int32_t v = value->as.i32;
    if (value->is_null || transform->kind == TRANSFORM_VOID ||
        transform->kind == TRANSFORM_UNKNOWN) {
        return buf_append_str(out, STR("null"), err);
    }
    switch (transform->kind) {
    case TRANSFORM_YEAR:
        return buf_printf(out, err, "%04lld", (long long)v + 1970);
    case TRANSFORM_MONTH:
        return buf_printf(out, err, "%04lld-%02lld", (long long)num_floor_div(v, 12) + 1970,
                          (long long)num_floor_mod(v, 12) + 1);
    case TRANSFORM_DAY:
        return put_civil(v, out, err);
    case TRANSFORM_HOUR:
        code = put_civil(num_floor_div(v, 24), out, err);
        return code == TARN_OK ? buf_printf(out, err, "-%02lld", (long long)num_floor_mod(v, 24))
                               : code;
    case TRANSFORM_IDENTITY:
    case TRANSFORM_BUCKET:
    case TRANSFORM_TRUNCATE:
    case TRANSFORM_VOID:
    case TRANSFORM_UNKNOWN:
        break;
    }
    return put_plain(value, out, err);
}
