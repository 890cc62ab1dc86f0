/* table/value_convert.c - a literal of one type as a value of another: what a filter's 60 means for
 * a double column, or '2013-01-02' for a date.
 *
 * Numbers go through exact forms (128-bit integers with a scale), so nothing is rounded on the way;
 * only a target of float or double rounds, once. */
#include "table/value.h"

#include "base/time.h"
#include "table/value_int.h"

#include <float.h>
#include <math.h>

typedef struct conversion {
    tarn_arena *arena;
    const tarn_type *type; /* target */
    tarn_value *out;
    value_fit *fit;
    tarn_error *err;
} conversion;

static bool is_timestamp(tarn_kind kind) {
    return kind == TARN_TIMESTAMP || kind == TARN_TIMESTAMPTZ || kind == TARN_TIMESTAMP_NS ||
           kind == TARN_TIMESTAMPTZ_NS;
}

static bool is_nanos(tarn_kind kind) {
    return kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS;
}

static bool is_zoned(tarn_kind kind) {
    return kind == TARN_TIMESTAMPTZ || kind == TARN_TIMESTAMPTZ_NS;
}

static tarn_code refuse(const conversion *c, const tarn_value *v) {
    tarn_buf text;
    char shown[128] = "";
    buf_init(&text, c->arena->env, 0);
    if (value_to_text(v, &text, NULL) == TARN_OK && text.len > 0) {
        size_t n = text.len < sizeof shown - 1 ? text.len : sizeof shown - 1;
        memcpy(shown, text.data, n);
        shown[n] = '\0';
    }
    buf_release(&text);
    return err_set(c->err, TARN_INVALID, "%s \"%s\" could not be taken as %s",
                   type_kind_name(v->type->kind), shown, type_kind_name(c->type->kind));
}

/* ---- numbers ---- */

tarn_code value_from_number(tarn_arena *arena, tarn_str text, tarn_value *out, tarn_error *err) {
    int64_t i64;
    tarn_int128 i128;
    tarn_value v = value_null(type_primitive(TARN_DOUBLE));
    if (str_to_i64(text, &i64)) {
        *out = value_i64(type_primitive(TARN_LONG), i64);
        return TARN_OK;
    }
    if (!str_to_f64(text, &v.as.f64)) {
        return err_set(err, TARN_INVALID, "\"%.*s\" was not a number", STR_ARG(text));
    }
    v.is_null = false;
    for (int32_t scale = 0; scale <= 38; scale++) {
        if (value_parse_decimal(text, 38, scale, &i128, NULL) == TARN_OK) {
            v.type = type_decimal(arena, 38, scale);
            if (v.type == NULL) {
                return err_nomem(err);
            }
            v.as.i128 = i128;
            break;
        }
    }
    *out = v;
    return TARN_OK;
}

/* An integer-like target: its limits, and the scale of its unit. */
static void limits_of(const tarn_type *type, tarn_int128 *min, tarn_int128 *max, int32_t *scale) {
    *scale = 0;
    if (type->kind == TARN_DECIMAL) {
        *max = num_pow10_i128(type->precision) - 1;
        *min = -*max;
        *scale = type->scale;
    } else if (type->kind == TARN_INT || type->kind == TARN_DATE) {
        *max = INT32_MAX;
        *min = INT32_MIN;
    } else {
        *max = INT64_MAX;
        *min = INT64_MIN;
    }
}

static void store_exact(const conversion *c, tarn_int128 unscaled) {
    *c->out = value_null(c->type);
    c->out->is_null = false;
    if (c->type->kind == TARN_DECIMAL) {
        c->out->as.i128 = unscaled;
    } else if (c->type->kind == TARN_INT || c->type->kind == TARN_DATE) {
        c->out->as.i32 = (int32_t)unscaled;
    } else {
        c->out->as.i64 = (int64_t)unscaled;
    }
}

/* unscaled * 10^-scale into an integer-like target. */
static tarn_code exact_to_exact(const conversion *c, tarn_int128 unscaled, int32_t scale) {
    tarn_int128 min;
    tarn_int128 max;
    int32_t wanted;
    limits_of(c->type, &min, &max, &wanted);
    if (wanted >= scale) {
        tarn_int128 product;
        if (__builtin_mul_overflow(unscaled, num_pow10_i128(wanted - scale), &product)) {
            c->fit->range = unscaled < 0 ? -1 : 1;
            return TARN_OK;
        }
        unscaled = product;
    } else {
        tarn_int128 unit = num_pow10_i128(scale - wanted);
        tarn_int128 rest = unscaled % unit;
        unscaled = unscaled / unit - (rest < 0 ? 1 : 0);
        c->fit->inexact = rest != 0;
    }
    if (unscaled > max || unscaled < min) {
        c->fit->range = unscaled > max ? 1 : -1;
        c->fit->inexact = false;
        return TARN_OK;
    }
    store_exact(c, unscaled);
    return TARN_OK;
}

static tarn_code exact_to_float(const conversion *c, tarn_int128 unscaled, int32_t scale) {
    char text[64];
    tarn_str s = str_make(text, value_format_decimal(unscaled, scale, text));
    *c->out = value_null(c->type);
    c->out->is_null = false;
    bool good = c->type->kind == TARN_FLOAT ? str_to_f32(s, &c->out->as.f32)
                                            : str_to_f64(s, &c->out->as.f64);
    return good ? TARN_OK : err_set(c->err, TARN_INTERNAL, "\"%s\" was not a number", text);
}

static tarn_code float_to_float(const conversion *c, double d) {
    *c->out = value_null(c->type);
    c->out->is_null = false;
    if (c->type->kind == TARN_DOUBLE) {
        c->out->as.f64 = d;
        return TARN_OK;
    }
    if (isfinite(d) && fabs(d) > (double)FLT_MAX) {
        c->fit->range = d > 0 ? 1 : -1;
        return TARN_OK;
    }
    c->out->as.f32 = (float)d;
    return TARN_OK;
}

/* A double as the decimal that its shortest text says. Beyond 38 digits it is out of every range,
 * or so near zero that only its sign matters. */
static tarn_code float_to_exact(const conversion *c, const tarn_value *v, double d) {
    char text[32];
    tarn_value exact;
    if (isnan(d)) {
        return refuse(c, v);
    }
    if (fabs(d) >= 1e38) {
        c->fit->range = d > 0 ? 1 : -1;
        return TARN_OK;
    }
    tarn_str s = str_make(text, str_from_f64(d, text));
    tarn_code code = value_from_number(c->arena, s, &exact, c->err);
    if (code != TARN_OK) {
        return code;
    }
    if (exact.type->kind == TARN_LONG) {
        return exact_to_exact(c, exact.as.i64, 0);
    }
    if (exact.type->kind == TARN_DECIMAL) {
        return exact_to_exact(c, exact.as.i128, exact.type->scale);
    }
    store_exact(c, d < 0 ? -1 : 0);
    c->fit->inexact = true;
    return TARN_OK;
}

static tarn_code number_to(const conversion *c, const tarn_value *v) {
    bool to_float = c->type->kind == TARN_FLOAT || c->type->kind == TARN_DOUBLE;
    if (v->type->kind == TARN_FLOAT || v->type->kind == TARN_DOUBLE) {
        double d = v->type->kind == TARN_FLOAT ? (double)v->as.f32 : v->as.f64;
        return to_float ? float_to_float(c, d) : float_to_exact(c, v, d);
    }
    tarn_int128 unscaled = v->type->kind == TARN_DECIMAL ? v->as.i128
                           : v->type->kind == TARN_LONG  ? v->as.i64
                                                         : v->as.i32;
    int32_t scale = v->type->kind == TARN_DECIMAL ? v->type->scale : 0;
    return to_float ? exact_to_float(c, unscaled, scale) : exact_to_exact(c, unscaled, scale);
}

/* ---- times ---- */

static tarn_code timestamp_to(const conversion *c, const tarn_value *v) {
    tarn_kind from = v->type->kind;
    int64_t value = v->as.i64;
    if (c->type->kind == TARN_DATE) {
        int64_t per_day = is_nanos(from) ? TIME_US_PER_DAY * 1000 : TIME_US_PER_DAY;
        c->fit->inexact = num_floor_mod(value, per_day) != 0;
        return exact_to_exact(c, num_floor_div(value, per_day), 0);
    }
    if (!is_timestamp(c->type->kind) || (is_zoned(from) && !is_zoned(c->type->kind))) {
        return refuse(c, v);
    }
    if (is_nanos(from) && !is_nanos(c->type->kind)) {
        c->fit->inexact = num_floor_mod(value, 1000) != 0;
        value = num_floor_div(value, 1000);
    } else if (!is_nanos(from) && is_nanos(c->type->kind) && !num_mul_i64(value, 1000, &value)) {
        c->fit->range = v->as.i64 > 0 ? 1 : -1;
        return TARN_OK;
    }
    *c->out = value_i64(c->type, value);
    return TARN_OK;
}

static tarn_code date_to(const conversion *c, const tarn_value *v) {
    tarn_int128 value = v->as.i32;
    if (!is_timestamp(c->type->kind)) {
        return refuse(c, v);
    }
    value *= TIME_US_PER_DAY;
    value *= is_nanos(c->type->kind) ? 1000 : 1;
    return exact_to_exact(c, value, 0);
}

/* ---- texts ---- */

/* A text that the target's own form does not take may be a finer or wider time. */
static tarn_code time_text_to(const conversion *c, const tarn_value *v) {
    static const tarn_kind plain[] = {TARN_TIMESTAMP, TARN_TIMESTAMP_NS};
    static const tarn_kind zoned[] = {TARN_TIMESTAMPTZ, TARN_TIMESTAMPTZ_NS};
    tarn_value parsed;
    if (value_from_text(c->arena, c->type, v->as.bytes, c->out, NULL) == TARN_OK) {
        return TARN_OK;
    }
    for (int i = 0; i < 2 && c->type->kind != TARN_TIME; i++) {
        tarn_kind kind = is_zoned(c->type->kind) ? zoned[i] : plain[i];
        if (value_from_text(c->arena, type_primitive(kind), v->as.bytes, &parsed, NULL) ==
            TARN_OK) {
            return timestamp_to(c, &parsed);
        }
    }
    return refuse(c, v);
}

static tarn_code text_to(const conversion *c, const tarn_value *v) {
    tarn_value number;
    tarn_kind kind = c->type->kind;
    if (kind == TARN_DATE || kind == TARN_TIME || is_timestamp(kind)) {
        return time_text_to(c, v);
    }
    if (kind == TARN_INT || kind == TARN_LONG || kind == TARN_DECIMAL || kind == TARN_FLOAT ||
        kind == TARN_DOUBLE) {
        tarn_code code = value_from_number(c->arena, v->as.bytes, &number, c->err);
        return code == TARN_OK ? number_to(c, &number) : code;
    }
    return value_from_text(c->arena, c->type, v->as.bytes, c->out, c->err);
}

static tarn_code bytes_to(const conversion *c, const tarn_value *v) {
    tarn_kind kind = c->type->kind;
    size_t len = v->as.bytes.len;
    bool fits = kind == TARN_BINARY || (kind == TARN_FIXED && len == (size_t)c->type->length) ||
                (kind == TARN_UUID && len == 16);
    if (!fits) {
        return refuse(c, v);
    }
    *c->out = *v;
    c->out->type = c->type;
    return TARN_OK;
}

static tarn_code same_kind(const conversion *c, const tarn_value *v) {
    *c->out = *v;
    c->out->type = c->type;
    return TARN_OK;
}

static bool is_number(tarn_kind kind) {
    return kind == TARN_INT || kind == TARN_LONG || kind == TARN_FLOAT || kind == TARN_DOUBLE ||
           kind == TARN_DECIMAL;
}

static tarn_code convert(const conversion *c, const tarn_value *v) {
    tarn_kind from = v->type->kind;
    tarn_kind to = c->type->kind;
    if (from == to && from != TARN_DECIMAL && from != TARN_FIXED && !type_is_nested(c->type)) {
        return same_kind(c, v);
    }
    if (is_number(from) && is_number(to)) {
        return number_to(c, v);
    }
    if ((from == TARN_INT || from == TARN_LONG) &&
        (to == TARN_DATE || to == TARN_TIME || is_timestamp(to))) {
        return number_to(c, v); /* as the reference implementation: a count of the type's unit */
    }
    if (is_timestamp(from)) {
        return timestamp_to(c, v);
    }
    if (from == TARN_DATE) {
        return date_to(c, v);
    }
    if (from == TARN_STRING) {
        return text_to(c, v);
    }
    if (from == TARN_BINARY || from == TARN_FIXED) {
        return bytes_to(c, v);
    }
    return refuse(c, v);
}

tarn_code value_floor(tarn_arena *arena, const tarn_value *v, const tarn_type *type,
                      tarn_value *out, value_fit *fit, tarn_error *err) {
    tarn_value made = value_null(type);
    conversion c = {arena, type, &made, fit, err};
    memset(fit, 0, sizeof *fit);
    if (!v->is_null) {
        tarn_code code = convert(&c, v);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (fit->range == 0) {
        *out = made;
    }
    return TARN_OK;
}

tarn_code value_convert(tarn_arena *arena, const tarn_value *v, const tarn_type *type,
                        tarn_value *out, int *out_of_range, tarn_error *err) {
    tarn_value made;
    value_fit fit;
    tarn_code code = value_floor(arena, v, type, &made, &fit, err);
    if (code != TARN_OK) {
        return code;
    }
    if (fit.inexact) {
        conversion c = {arena, type, &made, &fit, err};
        return refuse(&c, v);
    }
    *out_of_range = fit.range;
    if (fit.range == 0) {
        *out = made;
    }
    return TARN_OK;
}
