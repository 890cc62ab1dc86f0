/* iceberg/transform_column.c - a whole column through a transform: one loop per kind, writing
 * straight into the builder. Values under nulls may be anything, so a loop only notes that some
 * value did not fit, and a second look says whether that value was there. */
#include "iceberg/transform_int.h"

/* Room for the rows of in, with their validity copied; values are the caller's to write. */
static tarn_code prepare_rows(tarn_builder *out, const tarn_view *in, tarn_error *err) {
    tarn_code code = builder_reserve(out, in->length, err);
    if (code != TARN_OK || (in->validity == NULL && out->validity == NULL)) {
        return code;
    }
    code = builder_need_validity(out, err);
    if (code != TARN_OK) {
        return code;
    }
    if (in->validity != NULL) {
        bit_copy(out->validity, out->length, in->validity, in->start, in->length);
        out->null_count += in->length - bit_count(in->validity, in->start, in->length);
    } else {
        bit_fill(out->validity, out->length, in->length, true);
    }
    return TARN_OK;
}

/* The error of the first row that does not fit, or OK when all such rows are null. */
static tarn_code explain_misfit(const tarn_transform *transform, const tarn_view *in,
                                const tarn_type *result, tarn_error *err) {
    for (int64_t i = 0; i < in->length; i++) {
        tarn_value v, t;
        view_value(in, i, &v);
        tarn_code code = transform_value(transform, &v, result, &t, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static void bucket_bytes(const tarn_view *in, int32_t n, int32_t *dst) {
    for (int64_t i = 0; i < in->length; i++) {
        int32_t from = in->offsets[i];
        dst[i] = bucket_of(num_murmur3(in->bytes + from, (size_t)(in->offsets[i + 1] - from)), n);
    }
}

static void bucket_fixed(const tarn_view *in, int32_t n, int32_t *dst) {
    size_t width = (size_t)type_width(in->type);
    const uint8_t *src = (const uint8_t *)in->values;
    uint8_t digits[16];
    for (int64_t i = 0; i < in->length; i++, src += width) {
        uint32_t hash = in->type->kind == TARN_DECIMAL
                            ? num_murmur3(digits, num_put_be_i128(num_load_i128(src), digits))
                            : num_murmur3(src, width);
        dst[i] = bucket_of(hash, n);
    }
}

static bool bucket_rows(const tarn_view *in, int32_t n, int32_t *dst) {
    const int32_t *ints = (const int32_t *)in->values;
    const int64_t *longs = (const int64_t *)in->values;
    tarn_kind kind = in->type->kind;
    if (kind == TARN_INT || kind == TARN_DATE) {
        for (int64_t i = 0; i < in->length; i++) {
            dst[i] = bucket_of(hash_long(ints[i]), n);
        }
    } else if (kind == TARN_LONG || (kind >= TARN_TIME && kind <= TARN_TIMESTAMPTZ)) {
        for (int64_t i = 0; i < in->length; i++) {
            dst[i] = bucket_of(hash_long(longs[i]), n);
        }
    } else if (kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS) {
        for (int64_t i = 0; i < in->length; i++) {
            dst[i] = bucket_of(hash_long(num_floor_div(longs[i], 1000)), n);
        }
    } else if (kind == TARN_STRING || kind == TARN_BINARY) {
        bucket_bytes(in, n, dst);
    } else if (kind == TARN_DECIMAL || kind == TARN_UUID || kind == TARN_FIXED) {
        bucket_fixed(in, n, dst);
    } else {
        return false;
    }
    return true;
}

/* Returns whether some value went out of range of int. */
static bool divide_rows(const int64_t *src, int64_t n, int64_t unit, int32_t *dst) {
    bool misfit = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = num_floor_div(src[i], unit);
        misfit |= v != (int32_t)v;
        dst[i] = (int32_t)v;
    }
    return misfit;
}

static bool time_rows(const tarn_transform *transform, const tarn_view *in, int32_t *dst) {
    int64_t second = units_per_second(in->type->kind);
    bool misfit = false;
    if (transform->kind == TRANSFORM_HOUR) {
        return divide_rows((const int64_t *)in->values, in->length, second * 3600, dst);
    }
    if (second == 0) {
        memcpy(dst, in->values, (size_t)in->length * sizeof *dst);
    } else {
        misfit = divide_rows((const int64_t *)in->values, in->length, second * 86400, dst);
    }
    if (transform->kind == TRANSFORM_DAY) {
        return misfit;
    }
    /* Days of neighbouring rows are mostly the same: the calendar is asked only when they change.
     */
    bool months = transform->kind == TRANSFORM_MONTH;
    int32_t last_day = 0, last = 0;
    for (int64_t i = 0; i < in->length; i++) {
        if (dst[i] != last_day) {
            last_day = dst[i];
            last = (int32_t)(months ? months_of_days(last_day) : years_of_days(last_day));
        }
        dst[i] = last;
    }
    return misfit;
}

static bool truncate_fixed(const tarn_view *in, int32_t width, uint8_t *dst) {
    bool misfit = false;
    if (in->type->kind == TARN_INT) {
        const int32_t *src = (const int32_t *)in->values;
        for (int64_t i = 0; i < in->length; i++) {
            int64_t v = src[i] - num_floor_mod(src[i], width);
            int32_t v4 = (int32_t)v;
            misfit |= v < INT32_MIN;
            memcpy(dst + i * 4, &v4, 4);
        }
    } else if (in->type->kind == TARN_LONG) {
        const int64_t *src = (const int64_t *)in->values;
        for (int64_t i = 0; i < in->length; i++) {
            int64_t v = 0;
            misfit |= !truncate_long(src[i], width, INT64_MIN, &v);
            memcpy(dst + i * 8, &v, 8);
        }
    } else {
        const uint8_t *src = (const uint8_t *)in->values;
        for (int64_t i = 0; i < in->length; i++) {
            tarn_int128 v = truncate_i128(num_load_i128(src + i * 16), width);
            misfit |= num_digits_i128(v) > in->type->precision;
            num_store_i128(dst + i * 16, v);
        }
    }
    return misfit;
}

static tarn_code truncate_bytes(const tarn_view *in, int32_t width, tarn_builder *out,
                                tarn_error *err) {
    size_t total = (size_t)(in->offsets[in->length] - in->offsets[0]);
    bool text = in->type->kind == TARN_STRING;
    tarn_code code = builder_reserve_bytes(out, total, err);
    if (code != TARN_OK) {
        return code;
    }
    for (int64_t i = 0; i < in->length; i++) {
        tarn_str s = view_bytes(in, i);
        size_t keep = s.len;
        if (keep > (size_t)width) { /* no text has more characters than bytes */
            keep = text ? str_utf8_prefix(s, (size_t)width) : (size_t)width;
        }
        if (keep > 0) {
            memcpy(out->bytes + out->bytes_len, s.data, keep);
        }
        out->bytes_len += keep;
        out->offsets[out->length + i + 1] = (int32_t)out->bytes_len;
    }
    out->length += in->length;
    return TARN_OK;
}

tarn_code transform_column(const tarn_transform *transform, const tarn_view *in, tarn_builder *out,
                           tarn_error *err) {
    if (transform->kind == TRANSFORM_IDENTITY) {
        return builder_view(out, in, 0, in->length, err);
    }
    if (transform->kind == TRANSFORM_VOID || transform->kind == TRANSFORM_UNKNOWN) {
        return builder_nulls(out, in->length, err);
    }
    const tarn_type *result;
    tarn_code code = transform_result_type(NULL, transform, in->type, &result, err);
    if (code != TARN_OK || in->length == 0) {
        return code;
    }
    code = prepare_rows(out, in, err);
    if (code != TARN_OK) {
        return code;
    }
    bool misfit = false;
    int32_t *ints = (int32_t *)out->values;
    if (transform->kind == TRANSFORM_TRUNCATE && type_is_var(in->type)) {
        return truncate_bytes(in, transform->param, out, err);
    }
    if (transform->kind == TRANSFORM_TRUNCATE) {
        size_t width = (size_t)type_width(in->type);
        misfit = truncate_fixed(in, transform->param, out->values + (size_t)out->length * width);
    } else if (transform->kind == TRANSFORM_BUCKET) {
        (void)bucket_rows(in, transform->param, ints + out->length);
    } else {
        misfit = time_rows(transform, in, ints + out->length);
    }
    if (misfit) {
        code = explain_misfit(transform, in, result, err);
    }
    if (code == TARN_OK) {
        out->length += in->length;
    }
    return code;
}
