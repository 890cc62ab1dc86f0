/* service/file_check.c - see file_check.h. */
#include "service/file_check.h"

#include "format/parquet/parquet.h"
#include "iceberg/partition_check.h"

/* A column by id in any schema, the current one first; NULL: none. */
static const tarn_field *find_field(const tarn_metadata *m, int32_t id) {
    const tarn_field *field = type_find_id(metadata_schema(m)->root, id);
    for (int32_t i = 0; field == NULL && i < m->n_schemas; i++) {
        field = type_find_id(m->schemas[i]->root, id);
    }
    return field;
}

/* Columns that the table never had are another table's. The ids of dropped ones may be gone from
 * its schemas; those of columns that files have beside the table's are above all others (spec,
 * "Reserved Field IDs"). */
static bool may_have(const tarn_metadata *m, int32_t id) {
    return (id >= 1 && id <= m->last_column_id) || id >= INT32_MAX - 200 ||
           find_field(m, id) != NULL;
}

/* ---- columns ---- */

/* Kinds that files may hold for each other: what differs between writers is let through, what can
 * never be read as the column is not. */
static int class_of(tarn_kind kind) {
    switch ((int)kind) {
    case TARN_BOOLEAN:
    case TARN_DECIMAL:
    case TARN_TIME:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        return (int)kind;
    case TARN_INT:
    case TARN_LONG:
        return TARN_INT;
    case TARN_FLOAT:
    case TARN_DOUBLE:
        return TARN_FLOAT;
    case TARN_DATE:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return TARN_DATE;
    default:
        return TARN_BINARY;
    }
}

static bool fits(const tarn_type *file, const tarn_type *table) {
    bool narrower = (file->kind == TARN_LONG && table->kind == TARN_INT) ||
                    (file->kind == TARN_DOUBLE && table->kind == TARN_FLOAT);
    return file->kind == TARN_UNKNOWN || table->kind == TARN_UNKNOWN ||
           table->kind == TARN_VARIANT ||
           (class_of(file->kind) == class_of(table->kind) && !narrower);
}

tarn_code file_check_columns(const tarn_metadata *m, const tarn_type *root, const char *what,
                             tarn_str path, tarn_error *err) {
    int32_t n = type_node_count(root);
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *column = type_node(root, i);
        if (column->id == TARN_NO_ID) {
            continue;
        }
        if (!may_have(m, column->id)) {
            return err_set(err, TARN_INVALID,
                           "%s %.*s has a column %.*s of id %d, which no schema of the table has",
                           what, STR_ARG(path), STR_ARG(column->name), column->id);
        }
        const tarn_field *field = find_field(m, column->id);
        if (field != NULL && !fits(column->type, field->type)) {
            return err_set(err, TARN_INVALID,
                           "%s %.*s has %s in its column %.*s of id %d, the table %s", what,
                           STR_ARG(path), type_kind_name(column->type->kind), STR_ARG(column->name),
                           column->id, type_kind_name(field->type->kind));
        }
    }
    return TARN_OK;
}

/* ---- entries ---- */

static tarn_code check_counts(const tarn_metadata *m, const tarn_file *f, const char *what,
                              const metric_count *counts, int32_t n, tarn_error *err) {
    for (int32_t i = 0; i < n; i++) {
        if (!may_have(m, counts[i].id)) {
            return err_set(err, TARN_INVALID,
                           "file %.*s has %s of field %d, which no schema of the table has",
                           STR_ARG(f->path), what, counts[i].id);
        }
        if (counts[i].count < 0) {
            return err_set(err, TARN_INVALID, "file %.*s has %lld %s of field %d", STR_ARG(f->path),
                           (long long)counts[i].count, what, counts[i].id);
        }
    }
    return TARN_OK;
}

static tarn_code check_bounds(const tarn_metadata *m, const tarn_file *f,
                              const metric_bound *bounds, int32_t n, tarn_error *err) {
    for (int32_t i = 0; i < n; i++) {
        tarn_value value;
        const tarn_field *field = find_field(m, bounds[i].id);
        if (!may_have(m, bounds[i].id)) {
            return err_set(err, TARN_INVALID,
                           "file %.*s has a bound of field %d, which no schema of the table has",
                           STR_ARG(f->path), bounds[i].id);
        }
        if (field != NULL && type_width(field->type) > 0 &&
            value_from_binary(field->type, bounds[i].bytes, &value, err) != TARN_OK) {
            return err_set(err, TARN_INVALID, "file %.*s has a bound of field %d that is no %s",
                           STR_ARG(f->path), bounds[i].id, type_kind_name(field->type->kind));
        }
    }
    return TARN_OK;
}

static tarn_code check_partition(const tarn_metadata *m, const tarn_file *f, tarn_error *err) {
    const tarn_spec *spec = metadata_spec_by_id(m, f->spec_id);
    for (int32_t k = 0; spec != NULL && k < spec->n_fields && k < f->n_partition; k++) {
        const tarn_partition_field *field = &spec->fields[k];
        const char *what;
        if (partition_check_value(field, find_field(m, field->source_id), f, &f->partition[k],
                                  &what) != PARTITION_FITS) {
            return err_set(err, TARN_INVALID,
                           "file %.*s has a value of partition field \"%.*s\" that %s",
                           STR_ARG(f->path), STR_ARG(field->name), what);
        }
    }
    return TARN_OK;
}

tarn_code file_check_entry(const tarn_metadata *m, const tarn_file *f, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(check_counts(m, f, "a size", f->column_sizes, f->n_column_sizes, err));
    TRY(check_counts(m, f, "values", f->value_counts, f->n_value_counts, err));
    TRY(check_counts(m, f, "nulls", f->null_counts, f->n_null_counts, err));
    TRY(check_counts(m, f, "NaNs", f->nan_counts, f->n_nan_counts, err));
    TRY(check_bounds(m, f, f->lower, f->n_lower, err));
    TRY(check_bounds(m, f, f->upper, f->n_upper, err));
    for (int32_t i = 0; i < f->n_equality_ids; i++) {
        if (!may_have(m, f->equality_ids[i])) {
            return err_set(err, TARN_INVALID,
                           "file %.*s deletes by field %d, which no schema of the table has",
                           STR_ARG(f->path), f->equality_ids[i]);
        }
    }
    TRY(check_partition(m, f, err));
done:
    return code;
}

/* ---- footers ---- */

tarn_code file_check_footer(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                            const tarn_file *file, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    parquet_file *parquet = NULL;
    if (file->format != TARN_FORMAT_PARQUET) {
        return TARN_OK;
    }
    TRY(store_open(store, file->path, file->size_bytes, &source, err));
    TRY(parquet_open(env, source, NULL, &parquet, err));
    if (parquet_file_rows(parquet) != file->record_count) {
        code = err_set(err, TARN_INVALID, "file %.*s has %lld rows, and %lld were said",
                       STR_ARG(file->path), (long long)parquet_file_rows(parquet),
                       (long long)file->record_count);
        goto done;
    }
    if (file->content == TARN_CONTENT_DATA) {
        TRY(file_check_columns(m, parquet_file_schema(parquet)->root, "file", file->path, err));
    }
done:
    parquet_close(parquet);
    if (source != NULL) {
        source->close(source);
    }
    if (code == TARN_CORRUPT) { /* the client's file, not the table's */
        code = err_set(err, TARN_INVALID, "file %.*s is no Parquet file that could be read",
                       STR_ARG(file->path));
    }
    return code;
}
