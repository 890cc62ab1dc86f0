/* format/parquet/read_stats.c - statistics of chunks and pages as expr_stats (parquet-format,
 * ColumnOrder).
 *
 * Only what is certain is passed on: bounds whose order is told and is that of our values, no NaN,
 * zeros of floats widened to both signs (B47). The deprecated min and max count only for types
 * whose signed order is the right one. */
#include "format/parquet/parquet_read_int.h"

#include <math.h>

static bool has_logical(const parquet_element *e, int id) {
    return THRIFT_HAS(e, PARQUET_ELEMENT_LOGICAL) && THRIFT_HAS(&e->logical, id);
}

bool stats_are_ordered(const parquet_file *file, int32_t leaf) {
    const parquet_footer *footer = &file->footer;
    return leaf < footer->n_column_orders &&
           THRIFT_HAS(&footer->column_orders[leaf], PARQUET_TYPE_ORDER);
}

/* The order of the physical bytes is undefined, or not the order of the values made of them. */
static bool is_unordered(const parquet_leaf *leaf) {
    const parquet_element *e = leaf->element;
    if (leaf->type == NULL || leaf->physical == PARQUET_INT96) {
        return true;
    }
    switch ((int)leaf->type->kind) {
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        return true;
    default:
        return THRIFT_HAS(e, PARQUET_ELEMENT_CONVERTED) &&
               e->converted == PARQUET_CONVERTED_INTERVAL;
    }
}

static bool from_plain(const parquet_leaf *leaf, tarn_str plain, tarn_value *out) {
    const read_convert how = convert_choose(leaf);
    const size_t width = physical_width(leaf);
    tarn_value v = value_null(leaf->type);
    v.is_null = false;
    if (how == CONVERT_BOOL) {
        v.as.boolean = plain.len > 0 && plain.data[0] != 0;
        *out = v;
        return plain.len == 1;
    }
    if (how == CONVERT_BYTES ||
        (how == CONVERT_COPY && leaf->physical == PARQUET_FIXED_LEN_BYTE_ARRAY)) {
        v.as.bytes = plain; /* may be cut off, which is fine for a bound */
        *out = v;
        return true;
    }
    uint8_t wide[16] = {0};
    if (how == CONVERT_BYTES_DECIMAL) {
        if (!convert_decimal_bytes((const uint8_t *)plain.data, plain.len, wide)) {
            return false;
        }
    } else if (plain.len != width || how == CONVERT_NOTHING ||
               convert_fixed(how, (const uint8_t *)plain.data, width, 1, wide) != 1) {
        return false;
    }
    memcpy(&v.as, wide, (size_t)type_width(leaf->type));
    *out = v;
    return true;
}

static bool is_nan_value(const tarn_value *v) {
    return (v->type->kind == TARN_FLOAT && isnan(v->as.f32)) ||
           (v->type->kind == TARN_DOUBLE && isnan(v->as.f64));
}

/* A bound of zero holds for both zeros. */
static void widen_zero(tarn_value *v, bool lower) {
    if (v->type->kind == TARN_FLOAT && v->as.f32 == 0) {
        v->as.f32 = lower ? -0.0F : 0.0F;
    } else if (v->type->kind == TARN_DOUBLE && v->as.f64 == 0) {
        v->as.f64 = lower ? -0.0 : 0.0;
    }
}

void stats_bounds(const parquet_leaf *leaf, tarn_str min, tarn_str max, expr_stats *out) {
    if (is_unordered(leaf)) {
        return;
    }
    out->has_lower = min.data != NULL && from_plain(leaf, min, &out->lower);
    out->has_upper = max.data != NULL && from_plain(leaf, max, &out->upper);
    /* Whoever let NaN into one bound cannot be trusted with the other. */
    if ((out->has_lower && is_nan_value(&out->lower)) ||
        (out->has_upper && is_nan_value(&out->upper))) {
        out->has_lower = out->has_upper = false;
    }
    if (out->has_lower) {
        widen_zero(&out->lower, true);
    }
    if (out->has_upper) {
        widen_zero(&out->upper, false);
    }
}

/* Signed order is right: not for bytes, nor for unsigned integers. */
static bool signed_order_is_right(const parquet_leaf *leaf) {
    switch (leaf->physical) {
    case PARQUET_INT32:
    case PARQUET_INT64: {
        const read_convert how = convert_choose(leaf);
        const bool small = has_logical(leaf->element, PARQUET_LOGICAL_INTEGER) &&
                           !leaf->element->logical.integer.is_signed;
        return !small && how != CONVERT_U32_LONG && how != CONVERT_U64_DECIMAL;
    }
    case PARQUET_FLOAT:
    case PARQUET_DOUBLE:
    case PARQUET_BOOLEAN:
        return true;
    default:
        return false;
    }
}

static tarn_str bound_of(const parquet_statistics *stats, int id, tarn_str bytes) {
    return THRIFT_HAS(stats, id) ? str_make(bytes.data != NULL ? bytes.data : "", bytes.len)
                                 : STR_NULL;
}

bool parquet_group_stats(const parquet_file *file, int32_t group, int32_t node, expr_stats *out) {
    const parquet_schema *schema = file->schema;
    const int32_t leaf = schema->nodes[node].leaf;
    memset(out, 0, sizeof *out);
    if (leaf < 0 || schema->nodes[node].field->type->kind == TARN_VARIANT) {
        return false;
    }
    const parquet_leaf *l = &schema->leaves[leaf];
    const parquet_chunk *chunk = &file->footer.row_groups[group].columns[leaf];
    const parquet_statistics *stats = &chunk->meta.statistics;
    if (!THRIFT_HAS(chunk, PARQUET_CHUNK_META) || l->max_rep > 0) {
        return false;
    }
    out->has_value_count = true;
    out->value_count = chunk->meta.num_values;
    if (!THRIFT_HAS(&chunk->meta, PARQUET_COLUMN_STATISTICS)) {
        return true;
    }
    out->has_null_count = THRIFT_HAS(stats, PARQUET_STATS_NULL_COUNT) && stats->null_count >= 0 &&
                          stats->null_count <= chunk->meta.num_values;
    out->null_count = stats->null_count;
    if (stats_are_ordered(file, leaf)) {
        stats_bounds(l, bound_of(stats, PARQUET_STATS_MIN_VALUE, stats->min_value),
                     bound_of(stats, PARQUET_STATS_MAX_VALUE, stats->max_value), out);
    }
    if (!out->has_lower && !out->has_upper && signed_order_is_right(l) &&
        !THRIFT_HAS(stats, PARQUET_STATS_MIN_VALUE) &&
        !THRIFT_HAS(stats, PARQUET_STATS_MAX_VALUE)) {
        stats_bounds(l, bound_of(stats, PARQUET_STATS_MIN, stats->min),
                     bound_of(stats, PARQUET_STATS_MAX, stats->max), out);
    }
    return true;
}

bool stats_promote(const tarn_type *type, tarn_value *v) {
    const tarn_kind from = v->type->kind, to = type->kind;
    tarn_value w = value_null(type);
    w.is_null = false;
    if (from == to) {
        if (from == TARN_DECIMAL && v->type->scale != type->scale) {
            return false;
        }
        w.as = v->as;
    } else if (from == TARN_INT && to == TARN_LONG) {
        w.as.i64 = v->as.i32;
    } else if (from == TARN_FLOAT && to == TARN_DOUBLE) {
        w.as.f64 = (double)v->as.f32;
    } else if (from == TARN_DATE && (to == TARN_TIMESTAMP || to == TARN_TIMESTAMP_NS)) {
        const int64_t day = INT64_C(86400000000) * (to == TARN_TIMESTAMP_NS ? 1000 : 1);
        if (!num_mul_i64(v->as.i32, day, &w.as.i64)) {
            return false;
        }
    } else if ((from == TARN_BINARY && to == TARN_STRING) ||
               (from == TARN_STRING && to == TARN_BINARY) ||
               (from == TARN_TIMESTAMP && to == TARN_TIMESTAMPTZ) ||
               (from == TARN_TIMESTAMPTZ && to == TARN_TIMESTAMP)) {
        w.as = v->as; /* plain files read as a table's type */
    } else {
        return false;
    }
    *v = w;
    return true;
}

void parquet_file_stats(const parquet_file *file, int32_t node, expr_stats *out) {
    bool any = false, lower = true, upper = true;
    memset(out, 0, sizeof *out);
    out->has_value_count = out->has_null_count = true;
    for (int32_t g = 0, n = parquet_group_count(file); g < n; g++) {
        expr_stats s;
        const bool known = parquet_group_stats(file, g, node, &s);
        out->has_value_count &= known && s.has_value_count;
        out->has_null_count &= known && s.has_null_count;
        out->value_count += s.value_count;
        out->null_count += s.has_null_count ? s.null_count : 0;
        if (known && s.has_null_count && s.null_count == s.value_count) {
            continue; /* nothing to bound */
        }
        lower &= s.has_lower;
        upper &= s.has_upper;
        if (lower && (!any || value_cmp(&s.lower, &out->lower) < 0)) {
            out->lower = s.lower;
        }
        if (upper && (!any || value_cmp(&s.upper, &out->upper) > 0)) {
            out->upper = s.upper;
        }
        any = true;
    }
    out->has_lower = any && lower;
    out->has_upper = any && upper;
}
