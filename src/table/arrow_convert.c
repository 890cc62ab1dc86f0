/* table/arrow_convert.c - outside leaves and lists that are not canonical, rewritten: narrower and
 * unsigned integers, half floats, other units, other widths, views. Values that would change are
 * refused with their row. */
#include "base/limits.h"
#include "table/arrow_import_int.h"

typedef struct leaf_import {
    const array_import *im;
    const struct ArrowSchema *schema;
    const struct ArrowArray *a;
    const arrow_format *f;
    tarn_builder *b;
} leaf_import;

static bool is_null_at(const struct ArrowArray *a, int64_t i) {
    const uint8_t *validity = a->buffers[0];
    return validity != NULL && a->null_count != 0 && !bit_get(validity, a->offset + i);
}

/* The array's own validity into a builder whose values were written directly. */
static tarn_code take_validity(const leaf_import *l) {
    const struct ArrowArray *a = l->a;
    tarn_builder *b = l->b;
    if (a->buffers[0] != NULL && a->null_count != 0 && a->length > 0) {
        tarn_code code = builder_need_validity(b, l->im->err);
        if (code != TARN_OK) {
            return code;
        }
        bit_copy(b->validity, 0, a->buffers[0], a->offset, a->length);
        b->null_count = a->length - bit_count(b->validity, 0, a->length);
    }
    b->length = a->length;
    return TARN_OK;
}

static const uint8_t *value_at(const leaf_import *l, int64_t i) {
    return (const uint8_t *)l->a->buffers[1] + (size_t)(l->a->offset + i) * (size_t)l->f->width;
}

static int64_t load_int(const uint8_t *p, int32_t width, bool is_signed) {
    switch (width) {
    case 1:
        return is_signed ? (int64_t)(int8_t)p[0] : (int64_t)p[0];
    case 2:
        return is_signed ? (int64_t)(int16_t)num_load_u16(p) : (int64_t)num_load_u16(p);
    case 4:
        return is_signed ? (int64_t)num_load_i32(p) : (int64_t)num_load_u32(p);
    default:
        return num_load_i64(p);
    }
}

static void convert_ints(const leaf_import *l) {
    tarn_kind kind = l->b->type->kind;
    for (int64_t i = 0; i < l->a->length; i++) {
        int64_t v = load_int(value_at(l, i), l->f->width, l->f->is_signed);
        if (kind == TARN_INT) {
            ((int32_t *)(void *)l->b->values)[i] = (int32_t)v;
        } else if (kind == TARN_LONG) {
            ((int64_t *)(void *)l->b->values)[i] = v;
        } else {
            num_store_i128(l->b->values + i * 16, (tarn_int128)(uint64_t)v);
        }
    }
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 31u;
    uint32_t fraction = h & 0x3ffu;
    uint32_t bits;
    float f;
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 is exact */
        f = (float)fraction * 0x1p-24f;
        return sign != 0 ? -f : f;
    }
    bits = exponent == 31 ? sign | 0x7f800000u | fraction << 13
                          : sign | (exponent + 112) << 23 | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void convert_halves(const leaf_import *l) {
    for (int64_t i = 0; i < l->a->length; i++) {
        float f = half_to_float(num_load_u16(value_at(l, i)));
        memcpy(l->b->values + i * 4, &f, 4);
    }
}

static tarn_code convert_decimals(const leaf_import *l) {
    for (int64_t i = 0; i < l->a->length; i++) {
        const uint8_t *p = value_at(l, i);
        tarn_int128 v;
        if (l->f->width >= 16) {
            v = num_load_i128(p);
        } else {
            v = load_int(p, l->f->width, true);
        }
        tarn_int128 high = l->f->width == 32 ? num_load_i128(p + 16) : v >> 127;
        if (high != v >> 127) {
            if (!is_null_at(l->a, i)) {
                return arrow_bad_value(l->im, l->schema, i, "the decimal had more than 38 digits");
            }
            v = 0;
        }
        num_store_i128(l->b->values + i * 16, v);
    }
    return TARN_OK;
}

/* Counts of one unit as counts of another: by factor (finer) or divisor (coarser, exactly). */
static tarn_code convert_counts(const leaf_import *l, int64_t factor, int64_t divisor,
                                bool floor_it) {
    bool narrow = type_width(l->b->type) == 4;
    for (int64_t i = 0; i < l->a->length; i++) {
        int64_t v = load_int(value_at(l, i), l->f->width, true);
        int64_t out = 0;
        bool good = num_mul_i64(v, factor, &out) && (floor_it || out % divisor == 0);
        out = num_floor_div(out, divisor);
        good = good && (!narrow || (out >= INT32_MIN && out <= INT32_MAX));
        if (!good && !is_null_at(l->a, i)) {
            return arrow_bad_value(l->im, l->schema, i,
                                   "the time did not fit the unit of the table's type");
        }
        if (narrow) {
            int32_t day = good ? (int32_t)out : 0;
            memcpy(l->b->values + i * 4, &day, 4);
        } else {
            memcpy(l->b->values + i * 8, &out, 8);
        }
    }
    return TARN_OK;
}

static tarn_code convert_values(const leaf_import *l) {
    int64_t per_second = l->f->per_second;
    switch ((int)l->f->layout) {
    case ARROW_INT:
        convert_ints(l);
        return TARN_OK;
    case ARROW_DECIMAL:
        return convert_decimals(l);
    case ARROW_DATE:
        return convert_counts(l, 1, l->f->width == 8 ? 86400000 : 1, true);
    case ARROW_TIME:
    case ARROW_TIMESTAMP:
        if (l->b->type->kind == TARN_TIMESTAMP_NS || l->b->type->kind == TARN_TIMESTAMPTZ_NS) {
            return convert_counts(l, 1, 1, false);
        }
        return per_second <= 1000000 ? convert_counts(l, 1000000 / per_second, 1, false)
                                     : convert_counts(l, 1, per_second / 1000000, false);
    case ARROW_FLOAT:
        if (l->f->width == 2) {
            convert_halves(l);
            return TARN_OK;
        }
        break;
    default:
        break;
    }
    /* Only the alignment was wrong. */
    memcpy(l->b->values, value_at(l, 0), (size_t)l->a->length * (size_t)l->f->width);
    return TARN_OK;
}

/* ---- bytes ---- */

static int64_t load_offset(const void *offsets, int32_t width, int64_t i) {
    return load_int((const uint8_t *)offsets + (size_t)i * (size_t)width, width, true);
}

static tarn_code convert_bytes(const leaf_import *l) {
    const struct ArrowArray *a = l->a;
    int64_t start = load_offset(a->buffers[1], l->f->width, a->offset);
    int64_t last = start;
    tarn_code code;
    for (int64_t i = 1; i <= a->length; i++) {
        int64_t at = load_offset(a->buffers[1], l->f->width, a->offset + i);
        if (last < 0 || at < last) {
            return arrow_bad_value(l->im, l->schema, i - 1, "the offsets decreased");
        }
        last = at;
    }
    code = builder_reserve_bytes(l->b, (size_t)(last - start), l->im->err);
    if (code != TARN_OK) {
        return code;
    }
    if (last > start && a->buffers[2] == NULL) {
        return arrow_bad_value(l->im, l->schema, 0, "the array had no bytes");
    }
    if (last > start) {
        memcpy(l->b->bytes, (const uint8_t *)a->buffers[2] + start, (size_t)(last - start));
    }
    l->b->bytes_len = (size_t)(last - start);
    for (int64_t i = 0; i <= a->length; i++) {
        int64_t at = load_offset(a->buffers[1], l->f->width, a->offset + i) - start;
        l->b->offsets[i] = (int32_t)at;
    }
    return TARN_OK;
}

/* A 16-byte view: length and the bytes themselves, or length, prefix, buffer, offset. */
static tarn_code view_text(const leaf_import *l, int64_t i, tarn_str *out) {
    const struct ArrowArray *a = l->a;
    const uint8_t *p = (const uint8_t *)a->buffers[1] + (size_t)(a->offset + i) * 16;
    int32_t len = num_load_i32(p);
    int64_t n_data = a->n_buffers - 3;
    if (len < 0) {
        return arrow_bad_value(l->im, l->schema, i, "a view had a negative length");
    }
    if (len <= 12) {
        *out = str_make(p + 4, (size_t)len);
        return TARN_OK;
    }
    int32_t buffer = num_load_i32(p + 8);
    int32_t offset = num_load_i32(p + 12);
    const uint8_t *sizes = a->buffers[a->n_buffers - 1];
    if (buffer < 0 || buffer >= n_data || offset < 0 || sizes == NULL ||
        a->buffers[2 + buffer] == NULL ||
        (int64_t)offset + len > num_load_i64(sizes + (size_t)buffer * 8)) {
        return arrow_bad_value(l->im, l->schema, i, "a view pointed outside of its buffers");
    }
    *out = str_make((const uint8_t *)a->buffers[2 + buffer] + offset, (size_t)len);
    return TARN_OK;
}

static tarn_code convert_views(const leaf_import *l) {
    tarn_code code = TARN_OK;
    tarn_str text = STR_NULL;
    for (int64_t i = 0; i < l->a->length; i++) {
        if (is_null_at(l->a, i)) {
            TRY(builder_null(l->b, l->im->err));
        } else {
            TRY(view_text(l, i, &text));
            TRY(builder_bytes(l->b, text, l->im->err));
        }
    }
done:
    return code;
}

static tarn_code check_text(const leaf_import *l) {
    for (int64_t i = 0; i < l->b->length; i++) {
        tarn_str text = str_make(l->b->bytes + l->b->offsets[i],
                                 (size_t)(l->b->offsets[i + 1] - l->b->offsets[i]));
        if (!is_null_at(l->a, i) && !str_utf8_valid(text)) {
            return arrow_bad_value(l->im, l->schema, i, "the string was not valid UTF-8");
        }
    }
    return TARN_OK;
}

tarn_code arrow_convert(const array_import *im, const struct ArrowSchema *schema,
                        const struct ArrowArray *a, const arrow_format *f, const tarn_type *type,
                        struct ArrowArray *out) {
    tarn_builder b;
    leaf_import l = {im, schema, a, f, &b};
    tarn_code code = builder_init(&b, im->env, type, im->err);
    if (code != TARN_OK) {
        return code;
    }
    TRY(builder_reserve(&b, a->length, im->err));
    if (f->layout == ARROW_VIEWS) {
        TRY(convert_views(&l));
    } else {
        if (a->length > 0) {
            TRY(f->layout == ARROW_BYTES ? convert_bytes(&l) : convert_values(&l));
        }
        TRY(take_validity(&l));
    }
    if (f->is_text) {
        TRY(check_text(&l));
    }
    TRY(builder_finish(&b, out, im->err));
done:
    builder_release(&b);
    return code;
}

/* ---- lists ---- */

static tarn_code fill_offsets(const leaf_import *l, int32_t *offsets) {
    const struct ArrowArray *a = l->a;
    int64_t limit = a->children[0]->length < INT32_MAX ? a->children[0]->length : INT32_MAX;
    bool fixed = l->f->layout == ARROW_FIXED_LIST;
    int64_t last = 0;
    for (int64_t i = 0; i <= a->length; i++) {
        int64_t at = 0;
        bool good = true;
        if (fixed) {
            good = num_mul_i64(a->offset + i, l->f->width, &at);
        } else if (a->length > 0) {
            at = load_offset(a->buffers[1], l->f->width, a->offset + i);
        }
        if (!good || at < last || (at > limit && a->length > 0)) {
            return arrow_bad_value(l->im, l->schema, i, "the lists did not fit their child");
        }
        offsets[i] = a->length > 0 ? (int32_t)at : 0;
        last = at;
    }
    return TARN_OK;
}

static tarn_code copy_validity(const leaf_import *l, struct ArrowArray *made) {
    const struct ArrowArray *a = l->a;
    if (a->buffers[0] == NULL || a->null_count == 0 || a->length == 0) {
        made->null_count = 0;
        return TARN_OK;
    }
    uint8_t *bits = env_calloc(l->im->env, bit_bytes(a->length), 1);
    if (bits == NULL) {
        return err_nomem(l->im->err);
    }
    bit_copy(bits, 0, a->buffers[0], a->offset, a->length);
    array_node_own(made, 0, bits);
    made->null_count = a->length - bit_count(bits, 0, a->length);
    return TARN_OK;
}

tarn_code arrow_convert_offsets(const array_import *im, const struct ArrowSchema *schema,
                                const struct ArrowArray *a, const arrow_format *f,
                                struct ArrowArray *out) {
    leaf_import l = {im, schema, a, f, NULL};
    struct ArrowArray made;
    int32_t *offsets = env_calloc(im->env, (size_t)a->length + 1, sizeof *offsets);
    if (offsets == NULL) {
        return err_nomem(im->err);
    }
    tarn_code code = array_node_init(im->env, im->owner, 2, 1, &made, im->err);
    if (code != TARN_OK) {
        env_free(im->env, offsets);
        return code;
    }
    array_node_own(&made, 1, offsets);
    made.length = a->length;
    TRY(fill_offsets(&l, offsets));
    TRY(copy_validity(&l, &made));
    *out = made;
done:
    if (code != TARN_OK) {
        array_release(&made);
    }
    return code;
}

/* ---- rows by index ---- */

/* Dictionary indexes as int32; nulls point at row 0. */
static tarn_code read_indexes(const leaf_import *l, int64_t n_values, int32_t *index) {
    arrow_format f = *l->f;
    for (int64_t i = 0; i < l->a->length; i++) {
        const uint8_t *p =
            (const uint8_t *)l->a->buffers[1] + (size_t)(l->a->offset + i) * (size_t)f.width;
        int64_t at = load_int(p, f.width, f.is_signed);
        index[i] = 0;
        if (!is_null_at(l->a, i)) {
            if (at < 0 || at >= n_values) {
                return arrow_bad_value(l->im, l->schema, i, "the dictionary has no such index");
            }
            index[i] = (int32_t)at;
        }
    }
    return TARN_OK;
}

/* Clears the rows that the indexes' own validity says are null. */
static tarn_code add_nulls(const leaf_import *l) {
    tarn_builder *b = l->b;
    if (l->a->buffers[0] == NULL || l->a->null_count == 0) {
        return TARN_OK;
    }
    tarn_code code = builder_need_validity(b, l->im->err);
    for (int64_t i = 0; code == TARN_OK && b->validity != NULL && i < b->length; i++) {
        if (is_null_at(l->a, i) && bit_get(b->validity, i)) {
            bit_clear(b->validity, i);
            b->null_count++;
        }
    }
    return code;
}

static tarn_code gather_dictionary(const leaf_import *l, const tarn_view *values) {
    int64_t n = l->a->length;
    tarn_code code = TARN_OK;
    int32_t *index = env_calloc(l->im->env, (size_t)n + 1, sizeof *index);
    if (index == NULL) {
        return err_nomem(l->im->err);
    }
    TRY(read_indexes(l, values->length, index));
    if (values->length == 0) {
        TRY(builder_nulls(l->b, n, l->im->err)); /* every index was null */
    } else {
        TRY(builder_gather(l->b, values, index, n, l->im->err));
        TRY(add_nulls(l));
    }
done:
    env_free(l->im->env, index);
    return code;
}

/* Run ends say up to which logical row each value holds. */
static tarn_code expand_runs(const leaf_import *l, const tarn_view *values) {
    const struct ArrowArray *ends = l->a->children[0];
    arrow_format f;
    tarn_code code;
    int64_t row = l->a->offset;
    int64_t end_row = row + l->a->length;
    TRY(arrow_read_format(l->schema->children[0], &f, l->im->err));
    if (f.layout != ARROW_INT || ends == NULL || ends->length < 0 || ends->offset < 0 ||
        ends->n_buffers < 2 || ends->length > values->length ||
        (ends->length > 0 && ends->buffers[1] == NULL)) {
        return arrow_bad_value(l->im, l->schema, 0, "the run ends were not valid");
    }
    for (int64_t run = 0; run < ends->length && row < end_row; run++) {
        const uint8_t *p =
            (const uint8_t *)ends->buffers[1] + (size_t)(ends->offset + run) * (size_t)f.width;
        int64_t end = load_int(p, f.width, f.is_signed);
        int32_t at = (int32_t)run;
        end = end < end_row ? end : end_row;
        for (; row < end; row++) {
            TRY(builder_gather(l->b, values, &at, 1, l->im->err));
        }
    }
    if (row < end_row) {
        return arrow_bad_value(l->im, l->schema, row - l->a->offset, "the runs ended too early");
    }
done:
    return code;
}

static tarn_code expand_list_views(const leaf_import *l, const tarn_view *values) {
    const struct ArrowArray *a = l->a;
    tarn_code code = TARN_OK;
    if (a->length > 0 && a->buffers[2] == NULL) {
        return arrow_bad_value(l->im, l->schema, 0, "the list views had no sizes");
    }
    for (int64_t i = 0; i < a->length; i++) {
        if (is_null_at(a, i)) {
            TRY(builder_null(l->b, l->im->err));
            continue;
        }
        int64_t start = load_offset(a->buffers[1], l->f->width, a->offset + i);
        int64_t n = load_offset(a->buffers[2], l->f->width, a->offset + i);
        if (start < 0 || n < 0 || start > values->length || n > values->length - start) {
            return arrow_bad_value(l->im, l->schema, i, "the list did not fit its child");
        }
        TRY(builder_view(&l->b->children[0], values, start, n, l->im->err));
        TRY(builder_close(l->b, l->im->err));
    }
done:
    return code;
}

tarn_code arrow_import_indexed(const array_import *im, const struct ArrowSchema *schema,
                               const struct ArrowArray *a, const arrow_format *f,
                               const tarn_type *type, struct ArrowArray *out) {
    tarn_builder b;
    tarn_view values;
    struct ArrowArray child;
    leaf_import l = {im, schema, a, f, &b};
    bool dictionary = f->layout == ARROW_DICTIONARY;
    int part = f->layout == ARROW_RUNS ? 1 : 0;
    const tarn_type *value_type = f->layout == ARROW_LIST_VIEW ? type->fields[0].type : type;
    tarn_code code =
        arrow_import_array(im, dictionary ? schema->dictionary : schema->children[part],
                           dictionary ? a->dictionary : a->children[part], value_type, &child);
    if (code != TARN_OK) {
        return code;
    }
    array_view(&child, value_type, 0, child.length, &values);
    code = builder_init(&b, im->env, type, im->err);
    if (code != TARN_OK) {
        array_release(&child);
        return code;
    }
    if (dictionary) {
        TRY(gather_dictionary(&l, &values));
    } else {
        TRY(part == 1 ? expand_runs(&l, &values) : expand_list_views(&l, &values));
    }
    TRY(builder_finish(&b, out, im->err));
done:
    builder_release(&b);
    array_release(&child);
    return code;
}
