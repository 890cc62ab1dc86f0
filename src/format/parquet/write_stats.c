/* write_stats.c - minima and maxima of the values of a leaf, over a page, a row group, a file.
 *
 * Order is Parquet's TYPE_ORDER: signed numbers, unsigned bytes. NaNs are left out and zeros are
 * widened when written (minimum -0.0, maximum +0.0), so that no reader's comparison can miss a
 * value (B47). Byte arrays are compared by their first eight bytes as a number, and in full only
 * when these are equal. */
#include "format/parquet/parquet_write_int.h"

#include <math.h>

void stats_init(write_stats *s, tarn_env *env) {
    memset(s, 0, sizeof *s);
    buf_init(&s->min_bytes, env, 0);
    buf_init(&s->max_bytes, env, 0);
}

void stats_release(write_stats *s) {
    buf_release(&s->min_bytes);
    buf_release(&s->max_bytes);
    s->has = false;
}

void stats_add_bool(write_stats *s, bool has_false, bool has_true) {
    if (!has_false && !has_true) {
        return;
    }
    int64_t min = has_false ? 0 : 1;
    int64_t max = has_true ? 1 : 0;
    s->min.i64 = !s->has || min < s->min.i64 ? min : s->min.i64;
    s->max.i64 = !s->has || max > s->max.i64 ? max : s->max.i64;
    s->has = true;
}

void stats_add_i32(write_stats *s, const int32_t *v, size_t n) {
    if (n == 0) {
        return;
    }
    int32_t min = v[0];
    int32_t max = v[0];
    for (size_t i = 1; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
    }
    s->min.i64 = !s->has || min < s->min.i64 ? min : s->min.i64;
    s->max.i64 = !s->has || max > s->max.i64 ? max : s->max.i64;
    s->has = true;
}

void stats_add_i64(write_stats *s, const int64_t *v, size_t n) {
    if (n == 0) {
        return;
    }
    int64_t min = v[0];
    int64_t max = v[0];
    for (size_t i = 1; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
    }
    s->min.i64 = !s->has || min < s->min.i64 ? min : s->min.i64;
    s->max.i64 = !s->has || max > s->max.i64 ? max : s->max.i64;
    s->has = true;
}

/* Minimum and maximum of floats that are at least one number; comparisons with NaN are false, so
 * NaNs leave both as they are. */
static void merge_floats(write_stats *s, double min, double max) {
    if (min > max) {
        return; /* nothing but NaNs */
    }
    s->min.f64 = !s->has || min < s->min.f64 ? min : s->min.f64;
    s->max.f64 = !s->has || max > s->max.f64 ? max : s->max.f64;
    s->has = true;
}

int64_t stats_add_f32(write_stats *s, const float *v, size_t n) {
    float min = INFINITY;
    float max = -INFINITY;
    int64_t nans = 0;
    for (size_t i = 0; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
        nans += v[i] != v[i];
    }
    merge_floats(s, (double)min, (double)max);
    return nans;
}

int64_t stats_add_f64(write_stats *s, const double *v, size_t n) {
    double min = (double)INFINITY;
    double max = -(double)INFINITY;
    int64_t nans = 0;
    for (size_t i = 0; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
        nans += v[i] != v[i];
    }
    merge_floats(s, min, max);
    return nans;
}

void stats_add_i128(write_stats *s, const tarn_int128 *v, size_t n) {
    if (n == 0) {
        return;
    }
    tarn_int128 min = num_load_i128(v);
    tarn_int128 max = min;
    for (size_t i = 1; i < n; i++) {
        tarn_int128 x = num_load_i128(v + i);
        min = x < min ? x : min;
        max = x > max ? x : max;
    }
    s->min.i128 = !s->has || min < s->min.i128 ? min : s->min.i128;
    s->max.i128 = !s->has || max > s->max.i128 ? max : s->max.i128;
    s->has = true;
}

/* A candidate with its first bytes as a number, so that most comparisons are one. */
typedef struct extreme {
    uint64_t prefix;
    tarn_str value;
} extreme;

static inline uint64_t prefix_of(const uint8_t *p, size_t len, const uint8_t *end) {
    if (len >= 8) {
        return num_load_be64(p);
    }
    if (end - p >= 8) {
        return len == 0 ? 0 : num_load_be64(p) & ~(UINT64_MAX >> (8 * len));
    }
    uint64_t prefix = 0;
    for (size_t i = 0; i < len; i++) {
        prefix |= (uint64_t)p[i] << (56 - 8 * i);
    }
    return prefix;
}

static inline void take_extremes(extreme *min, extreme *max, const uint8_t *p, size_t len,
                                 const uint8_t *end) {
    uint64_t prefix = prefix_of(p, len, end);
    if (prefix <= min->prefix) {
        tarn_str value = str_make(p, len);
        if (prefix < min->prefix || str_cmp(value, min->value) < 0) {
            *min = (extreme){prefix, value};
        }
    }
    if (prefix >= max->prefix) {
        tarn_str value = str_make(p, len);
        if (prefix > max->prefix || str_cmp(value, max->value) > 0) {
            *max = (extreme){prefix, value};
        }
    }
}

static tarn_code merge_bytes(write_stats *s, tarn_str min, tarn_str max, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!s->has || str_cmp(min, buf_str(&s->min_bytes)) < 0) {
        buf_reset(&s->min_bytes);
        TRY(buf_append_str(&s->min_bytes, min, err));
    }
    if (!s->has || str_cmp(max, buf_str(&s->max_bytes)) > 0) {
        buf_reset(&s->max_bytes);
        TRY(buf_append_str(&s->max_bytes, max, err));
    }
    s->has = true;
done:
    return code;
}

tarn_code stats_add_fixed(write_stats *s, const uint8_t *v, size_t n, size_t width,
                          tarn_error *err) {
    if (n == 0) {
        return TARN_OK;
    }
    const uint8_t *end = v + n * width;
    extreme min = {prefix_of(v, width, end), str_make(v, width)};
    extreme max = min;
    for (size_t i = 1; i < n; i++) {
        take_extremes(&min, &max, v + i * width, width, end);
    }
    return merge_bytes(s, min.value, max.value, err);
}

tarn_code stats_add_bytes(write_stats *s, const int32_t *offsets, const uint8_t *bytes, size_t n,
                          tarn_error *err) {
    if (n == 0) {
        return TARN_OK;
    }
    if (bytes == NULL) { /* only empty values */
        return merge_bytes(s, STR_NULL, STR_NULL, err);
    }
    const uint8_t *end = bytes + offsets[n];
    tarn_str first = str_make(bytes + offsets[0], (size_t)(offsets[1] - offsets[0]));
    extreme min = {prefix_of((const uint8_t *)first.data, first.len, end), first};
    extreme max = min;
    for (size_t i = 1; i < n; i++) {
        take_extremes(&min, &max, bytes + offsets[i], (size_t)(offsets[i + 1] - offsets[i]), end);
    }
    return merge_bytes(s, min.value, max.value, err);
}

tarn_code stats_add_indices(write_stats *s, const encode_dict *dict, const uint32_t *indices,
                            size_t n, tarn_buf *marks, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (n == 0) {
        return TARN_OK;
    }
    const uint8_t *end = dict->values.data + dict->values.len;
    tarn_str first = encode_dict_value(dict, indices[0]);
    extreme min = {prefix_of((const uint8_t *)first.data, first.len, end), first};
    extreme max = min;
    if (dict->count > n / 2) {
        for (size_t i = 1; i < n; i++) {
            tarn_str value = encode_dict_value(dict, indices[i]);
            take_extremes(&min, &max, (const uint8_t *)value.data, value.len, end);
        }
        return merge_bytes(s, min.value, max.value, err);
    }
    buf_reset(marks);
    TRY(buf_reserve(marks, dict->count, err));
    memset(marks->data, 0, dict->count);
    for (size_t i = 0; i < n; i++) {
        marks->data[indices[i]] = 1;
    }
    for (uint32_t i = 0; i < dict->count; i++) {
        if (marks->data[i]) {
            tarn_str value = encode_dict_value(dict, i);
            take_extremes(&min, &max, (const uint8_t *)value.data, value.len, end);
        }
    }
    TRY(merge_bytes(s, min.value, max.value, err));
done:
    return code;
}

static int cmp_number(write_order order, write_number a, write_number b) {
    switch (order) {
    case ORDER_F32:
    case ORDER_F64:
        return (a.f64 > b.f64) - (a.f64 < b.f64);
    case ORDER_DECIMAL:
        return (a.i128 > b.i128) - (a.i128 < b.i128);
    case ORDER_BOOL:
    case ORDER_I32:
    case ORDER_I64:
        return (a.i64 > b.i64) - (a.i64 < b.i64);
    case ORDER_NONE:
    case ORDER_FIXED:
    case ORDER_BYTES:
        break;
    }
    return 0;
}

int stats_cmp(write_order order, const write_stats *a, const write_stats *b, bool maxima) {
    if (order == ORDER_FIXED || order == ORDER_BYTES) {
        int cmp = maxima ? str_cmp(buf_str(&a->max_bytes), buf_str(&b->max_bytes))
                         : str_cmp(buf_str(&a->min_bytes), buf_str(&b->min_bytes));
        return (cmp > 0) - (cmp < 0);
    }
    return cmp_number(order, maxima ? a->max : a->min, maxima ? b->max : b->min);
}

tarn_code stats_merge(write_stats *into, write_order order, const write_stats *s, tarn_error *err) {
    if (!s->has) {
        return TARN_OK;
    }
    if (order == ORDER_FIXED || order == ORDER_BYTES) {
        return merge_bytes(into, buf_str(&s->min_bytes), buf_str(&s->max_bytes), err);
    }
    if (!into->has || cmp_number(order, s->min, into->min) < 0) {
        into->min = s->min;
    }
    if (!into->has || cmp_number(order, s->max, into->max) > 0) {
        into->max = s->max;
    }
    into->has = true;
    return TARN_OK;
}

/* ---- bytes ---- */

size_t bound_prefix(tarn_str s, bool is_text, size_t n) {
    return is_text ? str_utf8_prefix(s, n) : (s.len < n ? s.len : n);
}

bool bound_raise(uint8_t *value, size_t *len, bool is_text) {
    size_t end = *len;
    while (end > 0) {
        size_t start = end - 1;
        if (!is_text) {
            if (value[start] != 0xff) {
                value[start]++;
                *len = end;
                return true;
            }
            end = start;
            continue;
        }
        while (start > 0 && (value[start] & 0xc0) == 0x80) {
            start--;
        }
        size_t at = start;
        uint32_t point = str_utf8_next(str_make(value, end), &at) + 1;
        point = point == 0xd800 ? 0xe000 : point; /* no surrogates (B08) */
        if (point <= 0x10ffff) {
            char text[4];
            size_t n = str_utf8_put(point, text);
            memcpy(value + start, text, n);
            *len = start + n;
            return true;
        }
        end = start;
    }
    return false;
}

static tarn_code put_bytes(tarn_str value, bool is_text, bool maximum, tarn_buf *out, bool *exact,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t len = value.len;
    if (len > WRITE_STATS_LENGTH) {
        len = WRITE_STATS_LENGTH;
        while (is_text && len > 0 && ((uint8_t)value.data[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    *exact = len == value.len;
    TRY(buf_reserve(out, len + 1, err));
    uint8_t *p = out->data + out->len;
    if (len > 0) {
        memcpy(p, value.data, len);
    }
    if (maximum && !*exact && !bound_raise(p, &len, is_text)) {
        *exact = true; /* nothing to raise: the value in full */
        TRY(buf_append_str(out, value, err));
        return TARN_OK;
    }
    out->len += len;
done:
    return code;
}

static tarn_code put_decimal(tarn_int128 v, size_t width, tarn_buf *out, tarn_error *err) {
    uint8_t bytes[16];
    for (size_t i = 0; i < 16; i++) {
        bytes[15 - i] = (uint8_t)(v >> (8 * i));
    }
    return buf_append(out, bytes + 16 - width, width, err);
}

tarn_code stats_put(const write_leaf *leaf, const write_stats *s, bool maximum, tarn_buf *out,
                    bool *exact, tarn_error *err) {
    write_number number = maximum ? s->max : s->min;
    *exact = true;
    switch (leaf->order) {
    case ORDER_BOOL:
        return buf_append_char(out, (char)number.i64, err);
    case ORDER_I32: {
        int32_t v = (int32_t)number.i64;
        return buf_append(out, &v, sizeof v, err);
    }
    case ORDER_I64:
        return buf_append(out, &number.i64, sizeof number.i64, err);
    case ORDER_F32: {
        float v = number.f64 == 0 ? (maximum ? 0.0F : -0.0F) : (float)number.f64;
        return buf_append(out, &v, sizeof v, err);
    }
    case ORDER_F64: {
        double v = number.f64 == 0 ? (maximum ? 0.0 : -0.0) : number.f64;
        return buf_append(out, &v, sizeof v, err);
    }
    case ORDER_DECIMAL:
        return put_decimal(number.i128, leaf->width, out, err);
    case ORDER_FIXED:
        return buf_append_str(out, buf_str(maximum ? &s->max_bytes : &s->min_bytes), err);
    case ORDER_BYTES:
        return put_bytes(buf_str(maximum ? &s->max_bytes : &s->min_bytes), leaf->is_text, maximum,
                         out, exact, err);
    case ORDER_NONE:
        break;
    }
    return TARN_OK;
}

tarn_str parquet_bound_lower(tarn_str value, bool is_text, size_t n) {
    return str_sub(value, 0, bound_prefix(value, is_text, n));
}

tarn_code parquet_bound_upper(tarn_arena *arena, tarn_str value, bool is_text, size_t n,
                              tarn_str *out, bool *exists, tarn_error *err) {
    size_t len = bound_prefix(value, is_text, n);
    uint8_t *bytes = arena_alloc(arena, len + 1);
    if (bytes == NULL) {
        return err_nomem(err);
    }
    if (len > 0) {
        memcpy(bytes, value.data, len);
    }
    *exists = len == value.len || bound_raise(bytes, &len, is_text);
    *out = str_make(bytes, len);
    return TARN_OK;
}
