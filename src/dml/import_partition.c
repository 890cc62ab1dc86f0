/* dml/import_partition.c - a file's partition tuple: from its folders' names, or where they are
 * silent from bounds that leave one value only. */
#include "base/time.h"
#include "dml/import_int.h"

static const import_key *key_of(const import_file *file, tarn_str name) {
    for (int32_t k = 0; k < file->n_keys; k++) {
        if (str_eq(file->keys[k].name, name)) {
            return &file->keys[k];
        }
    }
    return NULL;
}

/* "2013", "2013-01", "2013-01-02-05": as transforms are written in paths. */
static bool parse_period(transform_kind kind, tarn_str text, int64_t *out) {
    int32_t part[4] = {0, 1, 1, 0};
    const int wanted = kind == TRANSFORM_YEAR ? 1 : kind == TRANSFORM_MONTH ? 2 : 4;
    int n = 0;
    const bool negative = text.len > 0 && text.data[0] == '-';
    tarn_str rest = negative ? str_from(text, 1) : text, piece;
    while (n < wanted && str_split(&rest, '-', &piece)) {
        if (!str_to_i32(piece, &part[n++])) {
            return false;
        }
    }
    const int64_t year = negative ? -(int64_t)part[0] : part[0];
    if (n != wanted || rest.len > 0 || year < -300000 || year > 300000 || part[1] < 1 ||
        part[1] > 12 || part[2] < 1 || part[2] > 31 || part[3] < 0 || part[3] > 23) {
        return false;
    }
    if (kind == TRANSFORM_YEAR) {
        *out = year - 1970;
    } else if (kind == TRANSFORM_MONTH) {
        *out = (year - 1970) * 12 + part[1] - 1;
    } else {
        *out = time_days_from_civil(year, part[1], part[2]) * 24 + part[3];
    }
    return true;
}

static tarn_code parse_value(tarn_arena *arena, const tarn_partition_field *f,
                             const tarn_type *type, const import_key *key, tarn_value *out,
                             tarn_error *err) {
    const transform_kind kind = f->transform.kind;
    int64_t period = 0;
    if (key->is_null) {
        *out = value_null(type);
        return TARN_OK;
    }
    if (kind != TRANSFORM_YEAR && kind != TRANSFORM_MONTH && kind != TRANSFORM_HOUR) {
        return value_from_text(arena, type, key->value, out, err);
    }
    if (!parse_period(kind, key->value, &period) || period < INT32_MIN || period > INT32_MAX) {
        return err_set(err, TARN_INVALID, "\"%.*s\" was no %s", STR_ARG(key->value),
                       transform_name(kind));
    }
    *out = value_i32(type, (int32_t)period);
    return TARN_OK;
}

/* One value for all rows, by the bounds: transforms keep the order, buckets need one value. */
static tarn_code from_bounds(tarn_arena *arena, const tarn_partition_field *f,
                             const tarn_type *source, const tarn_type *type, expr_stats *s,
                             tarn_value *out, bool *known, tarn_error *err) {
    tarn_value lower, upper, other;
    int beyond = 0, beyond_too = 0;
    tarn_code code = TARN_OK;
    *known = false;
    if (s->has_null_count && s->has_value_count && s->null_count == s->value_count) {
        *out = value_null(type);
        *known = true;
        return TARN_OK;
    }
    if (!s->has_null_count || s->null_count != 0 || !s->has_lower || !s->has_upper) {
        return TARN_OK;
    }
    TRY(value_convert(arena, &s->lower, source, &lower, &beyond, err));
    TRY(value_convert(arena, &s->upper, source, &upper, &beyond_too, err));
    if (beyond != 0 || beyond_too != 0 ||
        (f->transform.kind == TRANSFORM_BUCKET && value_cmp(&lower, &upper) != 0)) {
        goto done;
    }
    TRY(transform_value(&f->transform, &lower, type, out, err));
    TRY(transform_value(&f->transform, &upper, type, &other, err));
    *known = value_eq(out, &other);
done:
    return code;
}

static tarn_code fill_field(importer *im, tarn_arena *arena, const import_file *file,
                            const tarn_projection *plan, const parquet_file *p, int32_t i,
                            const tarn_type *type, tarn_value *out, tarn_error *err) {
    const tarn_partition_field *f = &metadata_spec(im->m)->fields[i];
    const tarn_field *source = type_find_id(metadata_schema(im->m)->root, f->source_id);
    const import_key *key = key_of(file, f->name);
    bool known = false;
    tarn_code code = TARN_OK;
    if (key == NULL && source != NULL && f->transform.kind == TRANSFORM_IDENTITY) {
        key = key_of(file, source->name);
    }
    if (f->transform.kind == TRANSFORM_VOID) {
        *out = value_null(type);
        return TARN_OK;
    }
    if (key != NULL) {
        code = parse_value(arena, f, type, key, out, err);
        return code == TARN_OK ? code
                               : err_add(err, code, "folder key \"%.*s\" of file %.*s",
                                         STR_ARG(key->name), STR_ARG(file->path));
    }
    const int32_t node = source != NULL ? project_source_node(plan, source->id) : -1;
    if (p != NULL && node >= 0) {
        expr_stats stats;
        parquet_file_stats(p, node, &stats);
        TRY(from_bounds(arena, f, source->type, type, &stats, out, &known, err));
    }
    if (!known) {
        code = err_set(err, TARN_INVALID,
                       "%.*s: neither a folder nor the file's statistics gave one value of "
                       "partition field \"%.*s\"",
                       STR_ARG(file->path), STR_ARG(f->name));
    }
done:
    return code;
}

/* A folder's key that no partition field takes up, and no column of the file holds, would be lost.
 */
static tarn_code check_key(importer *im, const import_file *file, const tarn_projection *plan,
                           const import_key *key, tarn_error *err) {
    const tarn_spec *spec = metadata_spec(im->m);
    const tarn_type *root = metadata_schema(im->m)->root;
    const tarn_field *column = type_child(root, key->name);
    for (int32_t i = 0; i < spec->n_fields; i++) {
        if (str_eq(spec->fields[i].name, key->name) ||
            (column != NULL && spec->fields[i].source_id == column->id &&
             spec->fields[i].transform.kind == TRANSFORM_IDENTITY)) {
            return TARN_OK;
        }
    }
    return column != NULL && project_source_node(plan, column->id) >= 0
               ? TARN_OK
               : err_set(err, TARN_INVALID,
                         "%.*s: folder key \"%.*s\" was no partition field of the table and no "
                         "column of the file",
                         STR_ARG(file->path), STR_ARG(key->name));
}

tarn_code import_partition(importer *im, tarn_arena *arena, const import_file *file,
                           const tarn_projection *plan, const parquet_file *p, tarn_value *out,
                           tarn_error *err) {
    const tarn_spec *spec = metadata_spec(im->m);
    const tarn_type *tuple = NULL;
    tarn_code code = TARN_OK;
    TRY(spec_partition_type(arena, spec, im->m, &tuple, err));
    for (int32_t k = 0; k < file->n_keys; k++) {
        TRY(check_key(im, file, plan, &file->keys[k], err));
    }
    for (int32_t i = 0; i < spec->n_fields; i++) {
        TRY(fill_field(im, arena, file, plan, p, i, tuple->fields[i].type, &out[i], err));
    }
done:
    return code;
}
