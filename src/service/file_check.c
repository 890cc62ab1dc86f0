/* service/file_check.c - see file_check.h. */
#include "service/file_check.h"

#include "format/parquet/parquet.h"

const tarn_field *file_check_field(const tarn_metadata *m, int32_t id) {
    const tarn_field *field = type_find_id(metadata_schema(m)->root, id);
    for (int32_t i = 0; field == NULL && i < m->n_schemas; i++) {
        field = type_find_id(m->schemas[i]->root, id);
    }
    return field;
}

bool file_check_reserved(int32_t id) {
    return id >= INT32_MAX - 200;
}

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

static tarn_code check_columns(const tarn_type *root, const tarn_metadata *m, const tarn_file *file,
                               tarn_error *err) {
    int32_t n = type_node_count(root);
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *column = type_node(root, i);
        if (column->id == TARN_NO_ID || file_check_reserved(column->id)) {
            continue;
        }
        const tarn_field *field = file_check_field(m, column->id);
        if (field == NULL) {
            return err_set(err, TARN_INVALID,
                           "file %.*s has a column %.*s of id %d, which no schema of the table has",
                           STR_ARG(file->path), STR_ARG(column->name), column->id);
        }
        if (!fits(column->type, field->type)) {
            return err_set(err, TARN_INVALID,
                           "file %.*s has %s in its column %.*s of id %d, the table %s",
                           STR_ARG(file->path), type_kind_name(column->type->kind),
                           STR_ARG(column->name), column->id, type_kind_name(field->type->kind));
        }
    }
    return TARN_OK;
}

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
        TRY(check_columns(parquet_file_schema(parquet)->root, m, file, err));
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
