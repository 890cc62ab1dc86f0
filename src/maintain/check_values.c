/* maintain/check_values.c - values of entries: partition values that their transform cannot give
 * (B01), or not for the column's bounds; bounds and counts that contradict themselves. */
#include "iceberg/partition_check.h"
#include "maintain/check_int.h"

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

tarn_code check_partition(checker *c, tarn_str place, const tarn_spec *spec, const tarn_file *file,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t k = 0; k < spec->n_fields && k < file->n_partition; k++) {
        const tarn_partition_field *field = &spec->fields[k];
        const tarn_field *source = check_column(c, field->source_id, NULL);
        const char *what;
        const partition_fault fault =
            partition_check_value(field, source, file, &file->partition[k], &what);
        if (fault != PARTITION_FITS) {
            TRY(say_value(
                c, fault == PARTITION_IMPOSSIBLE ? CHECK_PARTITION_VALUE : CHECK_PARTITION_BOUNDS,
                place, field, file, &file->partition[k], what, err));
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
