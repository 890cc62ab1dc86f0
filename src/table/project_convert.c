/* table/project_convert.c - leaves of one type as leaves of another: the promotions of the
 * specification ("Schema Evolution"), and what other writers store differently for the same type
 * (uuid as fixed[16], strings as binary, another unit of time). Nothing is lost in silence. */
#include "table/array_int.h"
#include "table/project_int.h"

static bool is_timestamp(tarn_kind kind) {
    return kind == TARN_TIMESTAMP || kind == TARN_TIMESTAMPTZ || kind == TARN_TIMESTAMP_NS ||
           kind == TARN_TIMESTAMPTZ_NS;
}

static bool is_nanos(tarn_kind kind) {
    return kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS;
}

bool project_can_convert(const tarn_type *from, const tarn_type *to) {
    tarn_kind f = from->kind;
    tarn_kind t = to->kind;
    if (f == TARN_UNKNOWN) {
        return true;
    }
    if (f == TARN_DECIMAL && t == TARN_DECIMAL) {
        return to->scale == from->scale && to->precision >= from->precision;
    }
    if (f == TARN_FIXED && t == TARN_UUID) {
        return from->length == 16;
    }
    if (f == TARN_UUID && t == TARN_FIXED) {
        return to->length == 16;
    }
    if (f == TARN_FIXED && t == TARN_BINARY) {
        return true;
    }
    if (type_is_var(from) && type_is_var(to)) {
        return f == TARN_BINARY || t == TARN_BINARY || f == t;
    }
    if (f == TARN_DATE && (t == TARN_TIMESTAMP || t == TARN_TIMESTAMP_NS)) {
        return true;
    }
    return (f == TARN_INT && t == TARN_LONG) || (f == TARN_FLOAT && t == TARN_DOUBLE) ||
           (is_timestamp(f) && is_timestamp(t));
}

/* ---- values; nulls hold anything, so only what is valid is checked ---- */

static void int_to_long(const tarn_view *v, int64_t *out) {
    const int32_t *in = v->values;
    for (int64_t i = 0; i < v->length; i++) {
        out[i] = in[i];
    }
}

static void float_to_double(const tarn_view *v, double *out) {
    const float *in = v->values;
    for (int64_t i = 0; i < v->length; i++) {
        out[i] = (double)in[i];
    }
}

static tarn_code bad_row(const tarn_view *v, int64_t row, const tarn_type *to, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "the %s of row %lld was not exactly a %s",
                   type_kind_name(v->type->kind), (long long)row, type_kind_name(to->kind));
}

static tarn_code multiply(const tarn_view *v, const tarn_type *to, int64_t by, int64_t *out,
                          tarn_error *err) {
    bool days = v->type->kind == TARN_DATE;
    for (int64_t i = 0; i < v->length; i++) {
        int64_t in = days ? ((const int32_t *)v->values)[i] : ((const int64_t *)v->values)[i];
        if (!num_mul_i64(in, by, &out[i])) {
            if (!view_is_null(v, i)) {
                return bad_row(v, i, to, err);
            }
            out[i] = 0;
        }
    }
    return TARN_OK;
}

static tarn_code divide(const tarn_view *v, const tarn_type *to, int64_t by, int64_t *out,
                        tarn_error *err) {
    const int64_t *in = v->values;
    for (int64_t i = 0; i < v->length; i++) {
        out[i] = in[i] / by;
        if (out[i] * by != in[i] && !view_is_null(v, i)) {
            return bad_row(v, i, to, err);
        }
    }
    return TARN_OK;
}

static tarn_code convert_values(const tarn_view *v, const tarn_type *to, void *out,
                                tarn_error *err) {
    tarn_kind f = v->type->kind;
    if (f == TARN_INT) {
        int_to_long(v, out);
        return TARN_OK;
    }
    if (f == TARN_FLOAT) {
        float_to_double(v, out);
        return TARN_OK;
    }
    if (f == TARN_DATE) {
        int64_t per_day = INT64_C(86400000000) * (is_nanos(to->kind) ? 1000 : 1);
        return multiply(v, to, per_day, out, err);
    }
    return is_nanos(f) ? divide(v, to, 1000, out, err) : multiply(v, to, 1000, out, err);
}

/* ---- arrays ---- */

/* The same bytes under another type: no work but a look at strings. */
static bool same_bytes(const tarn_type *from, const tarn_type *to) {
    if (is_timestamp(from->kind) && is_timestamp(to->kind)) {
        return is_nanos(from->kind) == is_nanos(to->kind);
    }
    return (type_is_var(from) && type_is_var(to)) || from->kind == TARN_DECIMAL ||
           (type_width(from) == 16 && type_width(to) == 16);
}

static tarn_code check_utf8(const tarn_view *v, tarn_error *err) {
    for (int64_t i = 0; i < v->length; i++) {
        if (!view_is_null(v, i) && !str_utf8_valid(view_bytes(v, i))) {
            return err_set(err, TARN_CORRUPT, "the string of row %lld was not valid UTF-8",
                           (long long)i);
        }
    }
    return TARN_OK;
}

static tarn_code rebuild(tarn_env *env, const tarn_view *from, const tarn_type *to,
                         struct ArrowArray *out, tarn_error *err) {
    tarn_builder b;
    tarn_view as = *from;
    tarn_code code = builder_init(&b, env, to, err);
    if (code != TARN_OK) {
        return code;
    }
    if (from->type->kind == TARN_UNKNOWN) {
        TRY(builder_nulls(&b, from->length, err));
    } else if (from->type->kind == TARN_FIXED && to->kind == TARN_BINARY) {
        TRY(builder_reserve(&b, from->length, err));
        for (int64_t i = 0; i < from->length; i++) {
            tarn_value value;
            view_value(from, i, &value);
            TRY(value.is_null ? builder_null(&b, err) : builder_bytes(&b, value.as.bytes, err));
        }
    } else {
        as.type = to;
        if (to->kind == TARN_STRING) {
            TRY(check_utf8(from, err));
        }
        TRY(builder_view(&b, &as, 0, as.length, err));
    }
    TRY(builder_finish(&b, out, err));
done:
    builder_release(&b);
    return code;
}

tarn_code project_convert(tarn_env *env, const tarn_view *from, const tarn_type *to,
                          struct ArrowArray *out, tarn_error *err) {
    tarn_builder b;
    if (from->type->kind == TARN_UNKNOWN || same_bytes(from->type, to) || type_width(to) != 8) {
        return rebuild(env, from, to, out, err);
    }
    tarn_code code = builder_init(&b, env, to, err);
    if (code != TARN_OK) {
        return code;
    }
    TRY(builder_reserve(&b, from->length, err));
    if (from->length > 0) {
        TRY(convert_values(from, to, b.values, err));
    }
    if (from->validity != NULL) {
        TRY(builder_need_validity(&b, err));
        bit_copy(b.validity, 0, from->validity, from->start, from->length);
        b.null_count = from->length - bit_count(b.validity, 0, from->length);
    }
    b.length = from->length;
    TRY(builder_finish(&b, out, err));
done:
    builder_release(&b);
    return code;
}
