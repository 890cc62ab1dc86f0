/* maintain/check_values.c - values of entries: partition values that their transform cannot give
 * (B01), or not for the column's bounds; bounds and counts that contradict themselves. */
#include "maintain/check_int.h"

#define HOURS_MOST  INT64_C(2562047788) /* of 64-bit microseconds */
#define DAYS_MOST   106751991
#define MONTHS_MOST 3507324
#define YEARS_MOST  292277

/* ---- columns of all schemas ---- */

static tarn_code add_column(checker *c, const tarn_field *field, bool nested, tarn_error *err) {
    int32_t at = 0;
    if (idmap_get(&c->column_ids, field->id, &at)) {
        return TARN_OK;
    }
    if (c->n_columns == c->columns_cap) {
        const int32_t cap = c->columns_cap * 2 + 64;
        check_column_info *columns =
            arena_grow(&c->arena, c->columns, (size_t)c->columns_cap * sizeof *columns,
                       (size_t)cap * sizeof *columns);
        if (columns == NULL) {
            return err_nomem(err);
        }
        c->columns = columns;
        c->columns_cap = cap;
    }
    c->columns[c->n_columns] = (check_column_info){field, nested};
    return idmap_set(&c->column_ids, field->id, c->n_columns++, err);
}

static tarn_code add_columns(checker *c, const tarn_type *type, bool nested, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < type->n_fields && code == TARN_OK; i++) {
        code = add_column(c, &type->fields[i], nested, err);
        if (code == TARN_OK && type_is_nested(type->fields[i].type)) {
            code = add_columns(c, type->fields[i].type, true, err);
        }
    }
    return code;
}

tarn_code check_columns_find(checker *c, tarn_error *err) {
    idmap_init(&c->column_ids, &c->arena);
    tarn_code code = add_columns(c, metadata_schema(c->m)->root, false, err);
    for (int32_t i = 0; i < c->m->n_schemas && code == TARN_OK; i++) {
        code = add_columns(c, c->m->schemas[i]->root, false, err);
    }
    return code;
}

const tarn_field *check_column(const checker *c, int32_t id, bool *nested) {
    int32_t at = 0;
    if (!idmap_get(&c->column_ids, id, &at)) {
        return NULL;
    }
    if (nested != NULL) {
        *nested = c->columns[at].nested;
    }
    return c->columns[at].field;
}

/* ---- partition values ---- */

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

static tarn_code say_value(checker *c, check_rule rule, tarn_str place,
                           const tarn_partition_field *field, const tarn_file *file,
                           const tarn_value *v, const char *problem, tarn_error *err) {
    tarn_buf value, transform;
    buf_init(&value, c->env, 0);
    buf_init(&transform, c->env, 0);
    tarn_code code = value_to_text(v, &value, err);
    if (code == TARN_OK) {
        code = transform_text(&field->transform, &transform, err);
    }
    if (code == TARN_OK) {
        code = check_found(c, rule, place, err,
                           "partition value %.*s of field \"%.*s\" %s for %.*s (file %.*s)",
                           STR_ARG(buf_str(&value)), STR_ARG(field->name), problem,
                           STR_ARG(buf_str(&transform)), STR_ARG(file->path));
    }
    buf_release(&value);
    buf_release(&transform);
    return code;
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
static tarn_code check_against_bounds(checker *c, tarn_str place, const tarn_partition_field *field,
                                      const tarn_file *file, const tarn_value *v, tarn_error *err) {
    const tarn_field *source = check_column(c, field->source_id, NULL);
    tarn_str bytes;
    tarn_value bound;
    if (source == NULL || type_is_nested(source->type) || !keeps_order(field->transform.kind) ||
        v->type->kind == TARN_FLOAT || v->type->kind == TARN_DOUBLE) {
        return TARN_OK;
    }
    if (metric_find_bound(file->lower, file->n_lower, field->source_id, &bytes) &&
        transformed_bound(&field->transform, source->type, v->type, bytes, &bound) &&
        value_cmp(&bound, v) > 0) {
        return say_value(c, CHECK_PARTITION_BOUNDS, place, field, file, v,
                         "lay below what the column's lower bound gives", err);
    }
    if (metric_find_bound(file->upper, file->n_upper, field->source_id, &bytes) &&
        transformed_bound(&field->transform, source->type, v->type, bytes, &bound) &&
        value_cmp(&bound, v) < 0 && !is_rounded_time(&field->transform, &bound, v)) {
        return say_value(c, CHECK_PARTITION_BOUNDS, place, field, file, v,
                         "lay above what the column's upper bound gives", err);
    }
    return TARN_OK;
}

static tarn_code check_null_value(checker *c, tarn_str place, const tarn_partition_field *field,
                                  const tarn_file *file, const tarn_value *v, tarn_error *err) {
    int64_t nulls = 0;
    if (file->record_count == 0 || field->transform.kind == TRANSFORM_VOID ||
        field->transform.kind == TRANSFORM_UNKNOWN ||
        !metric_find_count(file->null_counts, file->n_null_counts, field->source_id, &nulls) ||
        nulls >= file->record_count) {
        return TARN_OK;
    }
    return say_value(c, CHECK_PARTITION_BOUNDS, place, field, file, v,
                     "stood for rows that are not null", err);
}

tarn_code check_partition(checker *c, tarn_str place, const tarn_spec *spec, const tarn_file *file,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t k = 0; k < spec->n_fields && k < file->n_partition; k++) {
        const tarn_partition_field *field = &spec->fields[k];
        const tarn_value *v = &file->partition[k];
        if (v->type == NULL || v->type->kind == TARN_UNKNOWN) {
            continue;
        }
        if (v->is_null) {
            TRY(check_null_value(c, place, field, file, v, err));
        } else if (!is_possible(&field->transform, v)) {
            TRY(say_value(c, CHECK_PARTITION_VALUE, place, field, file, v, "was impossible", err));
        } else if (file->content == TARN_CONTENT_DATA) {
            TRY(check_against_bounds(c, place, field, file, v, err));
        }
    }
done:
    return code;
}

/* ---- metrics ---- */

static bool decode(checker *c, int32_t id, tarn_str bytes, tarn_value *out, bool *known,
                   tarn_error *why) {
    const tarn_field *column = check_column(c, id, NULL);
    *known = column != NULL && !type_is_nested(column->type) &&
             column->type->kind != TARN_GEOMETRY && column->type->kind != TARN_GEOGRAPHY &&
             column->type->kind != TARN_UNKNOWN;
    return !*known || value_from_binary(column->type, bytes, out, why) == TARN_OK;
}

static tarn_code check_bounds(checker *c, tarn_str place, const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < file->n_lower + file->n_upper; i++) {
        const bool is_lower = i < file->n_lower;
        const metric_bound *b = is_lower ? &file->lower[i] : &file->upper[i - file->n_lower];
        tarn_value v, other;
        tarn_str bytes;
        bool known = false;
        tarn_error why = TARN_ERROR_INIT;
        if (!decode(c, b->id, b->bytes, &v, &known, &why)) {
            TRY(check_found(c, CHECK_BOUNDS, place, err,
                            "the %s bound of column %d could not be read: %s (file %.*s)",
                            is_lower ? "lower" : "upper", b->id, why.message, STR_ARG(file->path)));
        } else if (known && is_lower &&
                   metric_find_bound(file->upper, file->n_upper, b->id, &bytes) &&
                   decode(c, b->id, bytes, &other, &known, &why) && value_cmp(&v, &other) > 0) {
            TRY(check_found(c, CHECK_BOUNDS, place, err,
                            "the lower bound of column %d was above the upper one (file %.*s)",
                            b->id, STR_ARG(file->path)));
        }
    }
done:
    return code;
}

static tarn_code check_counts_of(checker *c, tarn_str place, const tarn_file *file,
                                 tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < file->n_value_counts; i++) {
        const metric_count *values = &file->value_counts[i];
        int64_t nulls = 0, nans = 0;
        bool nested = false;
        const tarn_field *column = check_column(c, values->id, &nested);
        (void)metric_find_count(file->null_counts, file->n_null_counts, values->id, &nulls);
        (void)metric_find_count(file->nan_counts, file->n_nan_counts, values->id, &nans);
        if (values->count < 0 || nulls < 0 || nans < 0 || nulls > values->count - nans) {
            TRY(check_found(c, CHECK_COUNTS, place, err,
                            "column %d had %lld values, %lld nulls and %lld NaN (file %.*s)",
                            values->id, (long long)values->count, (long long)nulls, (long long)nans,
                            STR_ARG(file->path)));
        } else if (column != NULL && !nested && !type_is_nested(column->type) &&
                   values->count != file->record_count) {
            TRY(check_found(c, CHECK_COUNTS, place, err,
                            "column %d had %lld values in a file of %lld records (file %.*s)",
                            values->id, (long long)values->count, (long long)file->record_count,
                            STR_ARG(file->path)));
        }
    }
done:
    return code;
}

tarn_code check_metrics(checker *c, tarn_str place, const tarn_file *file, tarn_error *err) {
    tarn_code code = check_bounds(c, place, file, err);
    return code == TARN_OK ? check_counts_of(c, place, file, err) : code;
}
