/* write_metrics.c - what a manifest entry says of the file's columns (spec, "Data File Fields"), as
 * Iceberg's own writers count it: sizes of all columns; counts by metrics mode, where a value is
 * one level (so nulls and empty lists above a leaf count as nulls of it); bounds as single values,
 * cut by the mode, and none below lists and maps. */
#include "format/parquet/parquet_write_int.h"

#include <stdlib.h>

/* ---- modes ---- */

/* Leaves (by their fields) in the order in which unasked defaults are given out: all primitives of
 * a struct, then what is below its nested fields. */
static void allow_fields(const tarn_type *type, write_leaf *leaves, int32_t n_leaves, int32_t *left,
                         parquet_metrics metrics) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *field = &type->fields[i];
        if (type_is_nested(field->type) || *left <= 0) {
            continue;
        }
        for (int32_t k = 0; k < n_leaves; k++) {
            if (leaves[k].field == field) {
                leaves[k].metrics = metrics;
            }
        }
        (*left)--;
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (type_is_nested(type->fields[i].type)) {
            allow_fields(type->fields[i].type, leaves, n_leaves, left, metrics);
        }
    }
}

tarn_code metrics_choose(tarn_env *env, const tarn_type *root, const parquet_write_options *options,
                         write_leaf *leaves, int32_t n_leaves, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf name;
    buf_init(&name, env, 0);
    bool all = options->has_metrics_default || n_leaves <= options->metrics_max_inferred;
    for (int32_t i = 0; i < n_leaves; i++) {
        leaves[i].metrics =
            all ? options->metrics_default : (parquet_metrics){PARQUET_METRICS_NONE, 0};
    }
    if (!all) {
        int32_t left = options->metrics_max_inferred;
        allow_fields(root, leaves, n_leaves, &left, options->metrics_default);
    }
    for (int32_t i = 0; i < n_leaves && options->n_columns > 0; i++) {
        if (leaves[i].field->id < 0) {
            continue;
        }
        buf_reset(&name);
        TRY(type_full_name(root, leaves[i].field->id, &name, err));
        for (size_t k = 0; k < options->n_columns; k++) {
            if (options->columns[k].has_metrics &&
                str_eq(options->columns[k].name, buf_str(&name))) {
                leaves[i].metrics = options->columns[k].metrics;
            }
        }
    }
done:
    buf_release(&name);
    return code;
}

/* ---- values ---- */

static tarn_value number_value(const write_leaf *leaf, write_number number, bool maximum) {
    tarn_value v = value_null(leaf->field->type);
    v.is_null = false;
    switch (leaf->field->type->kind) {
    case TARN_BOOLEAN:
        v.as.boolean = number.i64 != 0;
        break;
    case TARN_INT:
    case TARN_DATE:
        v.as.i32 = (int32_t)number.i64;
        break;
    case TARN_FLOAT:
        v.as.f32 = number.f64 == 0 ? (maximum ? 0.0F : -0.0F) : (float)number.f64;
        break;
    case TARN_DOUBLE:
        v.as.f64 = number.f64 == 0 ? (maximum ? 0.0 : -0.0) : number.f64;
        break;
    case TARN_DECIMAL:
        v.as.i128 = leaf->order == ORDER_DECIMAL ? number.i128 : number.i64;
        break;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        v.as.i64 = number.i64;
        break;
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return v;
}

/* The bound of a leaf; *exists is false when there is none. */
static tarn_code make_bound(const write_leaf *leaf, bool maximum, tarn_arena *arena, tarn_str *out,
                            bool *exists, tarn_error *err) {
    const write_stats *s = &leaf->file_stats;
    tarn_str bytes = buf_str(maximum ? &s->max_bytes : &s->min_bytes);
    *exists = true;
    if (leaf->order == ORDER_BYTES) {
        size_t n = leaf->metrics.mode == PARQUET_METRICS_TRUNCATE ? (size_t)leaf->metrics.length
                                                                  : bytes.len;
        if (maximum) {
            return parquet_bound_upper(arena, bytes, leaf->is_text, n, out, exists, err);
        }
        *out = arena_str(arena, parquet_bound_lower(bytes, leaf->is_text, n));
        return out->data == NULL ? err_nomem(err) : TARN_OK;
    }
    if (leaf->order == ORDER_FIXED) { /* not cut: a shorter one would not be of its type */
        *out = arena_str(arena, bytes);
        return out->data == NULL ? err_nomem(err) : TARN_OK;
    }
    tarn_value v = number_value(leaf, maximum ? s->max : s->min, maximum);
    return value_to_binary(arena, &v, out, err);
}

typedef struct lists {
    metric_count *sizes, *values, *nulls, *nans;
    metric_bound *lower, *upper;
    int32_t n_sizes, n_values, n_nulls, n_nans, n_lower, n_upper;
} lists;

static void add_count(metric_count *counts, int32_t *n, int32_t id, int64_t count) {
    counts[(*n)++] = (metric_count){id, count};
}

static tarn_code add_leaf(const write_leaf *leaf, tarn_arena *arena, lists *m, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t id = leaf->field->id;
    tarn_str bytes = STR_NULL;
    bool exists = false;
    if (m->n_sizes > 0 && m->sizes[m->n_sizes - 1].id == id) { /* a variant's second column */
        m->sizes[m->n_sizes - 1].count += leaf->file_bytes;
        return TARN_OK;
    }
    add_count(m->sizes, &m->n_sizes, id, leaf->file_bytes);
    if (leaf->metrics.mode == PARQUET_METRICS_NONE) {
        return TARN_OK;
    }
    add_count(m->values, &m->n_values, id, leaf->file_levels);
    add_count(m->nulls, &m->n_nulls, id, leaf->file_nulls);
    if (leaf->order == ORDER_F32 || leaf->order == ORDER_F64) {
        add_count(m->nans, &m->n_nans, id, leaf->file_nans);
    }
    if (leaf->metrics.mode == PARQUET_METRICS_COUNTS || leaf->in_repeated ||
        !leaf->file_stats.has) {
        return TARN_OK;
    }
    TRY(make_bound(leaf, false, arena, &bytes, &exists, err));
    m->lower[m->n_lower++] = (metric_bound){id, bytes};
    TRY(make_bound(leaf, true, arena, &bytes, &exists, err));
    if (exists) {
        m->upper[m->n_upper++] = (metric_bound){id, bytes};
    }
done:
    return code;
}

static int cmp_count(const void *a, const void *b) {
    int32_t x = ((const metric_count *)a)->id;
    int32_t y = ((const metric_count *)b)->id;
    return (x > y) - (x < y);
}

static int cmp_bound(const void *a, const void *b) {
    int32_t x = ((const metric_bound *)a)->id;
    int32_t y = ((const metric_bound *)b)->id;
    return (x > y) - (x < y);
}

tarn_code metrics_make(const write_leaf *leaves, int32_t n_leaves, tarn_arena *arena,
                       tarn_file *out, tarn_error *err) {
    size_t cap = (size_t)n_leaves + 1;
    metric_count *counts = ARENA_ARRAY(arena, metric_count, cap * 4);
    metric_bound *bounds = ARENA_ARRAY(arena, metric_bound, cap * 2);
    if (counts == NULL || bounds == NULL) {
        return err_nomem(err);
    }
    lists m = {.sizes = counts,
               .values = counts + cap,
               .nulls = counts + 2 * cap,
               .nans = counts + 3 * cap,
               .lower = bounds,
               .upper = bounds + cap};
    for (int32_t i = 0; i < n_leaves; i++) {
        if (leaves[i].field->id >= 0) {
            tarn_code code = add_leaf(&leaves[i], arena, &m, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    qsort(m.sizes, (size_t)m.n_sizes, sizeof *m.sizes, cmp_count);
    qsort(m.values, (size_t)m.n_values, sizeof *m.values, cmp_count);
    qsort(m.nulls, (size_t)m.n_nulls, sizeof *m.nulls, cmp_count);
    qsort(m.nans, (size_t)m.n_nans, sizeof *m.nans, cmp_count);
    qsort(m.lower, (size_t)m.n_lower, sizeof *m.lower, cmp_bound);
    qsort(m.upper, (size_t)m.n_upper, sizeof *m.upper, cmp_bound);
    out->column_sizes = m.sizes;
    out->value_counts = m.values;
    out->null_counts = m.nulls;
    out->nan_counts = m.nans;
    out->lower = m.lower;
    out->upper = m.upper;
    out->n_column_sizes = m.n_sizes;
    out->n_value_counts = m.n_values;
    out->n_null_counts = m.n_nulls;
    out->n_nan_counts = m.n_nans;
    out->n_lower = m.n_lower;
    out->n_upper = m.n_upper;
    return TARN_OK;
}
