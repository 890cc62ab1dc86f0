/* iceberg/partition_check.c - see partition_check.h. */
#include "iceberg/partition_check.h"

#define HOURS_MOST  INT64_C(2562047788) /* of 64-bit microseconds */
#define DAYS_MOST   106751991
#define MONTHS_MOST 3507324
#define YEARS_MOST  292277

static bool is_multiple(const tarn_value *v, int32_t width) {
    switch ((int)v->type->kind) {
    case TARN_INT:
        return v->as.i32 % width == 0;
    case TARN_LONG:
        return v->as.i64 % width == 0;
    case TARN_DECIMAL:
        return v->as.i128 % width == 0;
    case TARN_STRING:
        return str_utf8_prefix(v->as.bytes, (size_t)width) == v->as.bytes.len;
    case TARN_BINARY:
        return v->as.bytes.len <= (size_t)width;
    default:
        return true;
    }
}

static bool within(int64_t v, int64_t most) {
    return v >= -most - 1 && v <= most;
}

/* Whether the transform has such a result at all. */
static bool is_possible(const tarn_transform *t, const tarn_value *v) {
    const bool is_i32 = v->type->kind == TARN_INT || v->type->kind == TARN_DATE;
    switch (t->kind) {
    case TRANSFORM_TRUNCATE:
        return is_multiple(v, t->param);
    case TRANSFORM_BUCKET:
        return !is_i32 || (v->as.i32 >= 0 && v->as.i32 < t->param);
    case TRANSFORM_YEAR:
        return !is_i32 || within(v->as.i32, YEARS_MOST);
    case TRANSFORM_MONTH:
        return !is_i32 || within(v->as.i32, MONTHS_MOST);
    case TRANSFORM_DAY:
        return !is_i32 || within(v->as.i32, DAYS_MOST);
    case TRANSFORM_HOUR:
        return !is_i32 || within(v->as.i32, HOURS_MOST);
    case TRANSFORM_VOID:
        return false; /* null only */
    case TRANSFORM_IDENTITY:
    case TRANSFORM_UNKNOWN:
        break;
    }
    return true;
}

static bool keeps_order(transform_kind kind) {
    return kind != TRANSFORM_BUCKET && kind != TRANSFORM_VOID && kind != TRANSFORM_UNKNOWN;
}

/* The transform of a column's bound; false: there is none, or it can't be said. */
static bool transformed_bound(const tarn_transform *t, const tarn_type *source,
                              const tarn_type *result, tarn_str bytes, tarn_value *out) {
    tarn_value bound;
    tarn_error why = TARN_ERROR_INIT;
    return value_from_binary(source, bytes, &bound, &why) == TARN_OK &&
           transform_value(t, &bound, result, out, &why) == TARN_OK && !out->is_null &&
           out->type->kind == result->kind;
}

static bool is_i32(const tarn_value *v) {
    return v->type->kind == TARN_INT || v->type->kind == TARN_DATE;
}

/* Times before 1970 were rounded towards zero by some writers (B02): one more is borne. */
static bool is_rounded_time(const tarn_transform *t, const tarn_value *bound, const tarn_value *v) {
    return t->kind >= TRANSFORM_YEAR && t->kind <= TRANSFORM_HOUR && is_i32(v) &&
           bound->as.i32 < 0 && v->as.i32 == bound->as.i32 + 1;
}

/* All rows of a file are of its partition, so its value lies between those of the bounds. */
static const char *fault_of_bounds(const tarn_partition_field *field, const tarn_field *source,
                                   const tarn_file *file, const tarn_value *v) {
    tarn_str bytes;
    tarn_value bound;
    if (source == NULL || type_is_nested(source->type) || !keeps_order(field->transform.kind) ||
        v->type->kind == TARN_FLOAT || v->type->kind == TARN_DOUBLE) {
        return NULL;
    }
    if (metric_find_bound(file->lower, file->n_lower, field->source_id, &bytes) &&
        transformed_bound(&field->transform, source->type, v->type, bytes, &bound) &&
        value_cmp(&bound, v) > 0) {
        return "lay below what the column's lower bound gives";
    }
    if (metric_find_bound(file->upper, file->n_upper, field->source_id, &bytes) &&
        transformed_bound(&field->transform, source->type, v->type, bytes, &bound) &&
        value_cmp(&bound, v) < 0 && !is_rounded_time(&field->transform, &bound, v)) {
        return "lay above what the column's upper bound gives";
    }
    return NULL;
}

static bool null_fits(const tarn_partition_field *field, const tarn_file *file) {
    int64_t nulls = 0;
    return file->record_count == 0 || field->transform.kind == TRANSFORM_VOID ||
           field->transform.kind == TRANSFORM_UNKNOWN ||
           !metric_find_count(file->null_counts, file->n_null_counts, field->source_id, &nulls) ||
           nulls >= file->record_count;
}

partition_fault partition_check_value(const tarn_partition_field *field, const tarn_field *source,
                                      const tarn_file *file, const tarn_value *value,
                                      const char **what) {
    *what = NULL;
    if (value->type == NULL || value->type->kind == TARN_UNKNOWN) {
        return PARTITION_FITS;
    }
    if (value->is_null) {
        *what = null_fits(field, file) ? NULL : "stood for rows that are not null";
    } else if (!is_possible(&field->transform, value)) {
        *what = "was impossible";
        return PARTITION_IMPOSSIBLE;
    } else if (file->content == TARN_CONTENT_DATA) {
        *what = fault_of_bounds(field, source, file, value);
    }
    return *what != NULL ? PARTITION_ELSEWHERE : PARTITION_FITS;
}
