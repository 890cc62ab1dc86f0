/* maintain/check_file.c - a live file's own word: its rows, its field ids, and that the entry's
 * bounds and null counts hold for what its footer says. A bound narrower than the rows makes
 * readers skip rows that they were asked for. */
#include "format/avro/avro.h"
#include "format/parquet/parquet.h"
#include "format/puffin/puffin.h"
#include "maintain/check_int.h"

static tarn_code unreadable(checker *c, const tarn_file *f, tarn_code code, const tarn_error *why,
                            tarn_error *err) {
    return check_is_finding(code)
               ? check_found(c, CHECK_FILE_UNREADABLE, f->path, err,
                             "the file could not be read: %s (%s)", why->message, why->detail)
               : err_set(err, code, "%s", why->message);
}

static tarn_code check_rows(checker *c, const tarn_file *f, int64_t rows, tarn_error *err) {
    return rows == f->record_count ? TARN_OK
                                   : check_found(c, CHECK_FILE_ROWS, f->path, err,
                                                 "record_count was %lld and the file has %lld rows",
                                                 (long long)f->record_count, (long long)rows);
}

/* Columns are found by id; by name only where the table says how, and nothing has ids. */
static tarn_code check_field_ids(checker *c, const tarn_file *f, const tarn_type *root,
                                 tarn_error *err) {
    int32_t with = 0;
    tarn_str mapping;
    for (int32_t i = 0; i < root->n_fields; i++) {
        with += root->fields[i].id != TARN_NO_ID;
    }
    if (with == root->n_fields ||
        (with == 0 && properties_get(&c->m->properties, "schema.name-mapping.default", &mapping))) {
        return TARN_OK;
    }
    return check_found(c, CHECK_FILE_FIELDS, f->path, err,
                       with == 0 ? "no column had a field id, and the table has no name mapping"
                                 : "some columns had field ids and some had none");
}

/* ---- Parquet: statistics of the footer against the entry ---- */

/* The footer's bounds may be wider than the rows, so only numbers, whose bounds are exact, tell. */
static bool is_exact(const tarn_type *type) {
    switch ((int)type->kind) {
    case TARN_INT:
    case TARN_LONG:
    case TARN_DATE:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_DECIMAL:
        return true;
    default:
        return false;
    }
}

/* The footer's zeros were widened to both signs, which no entry has to do. */
static int compare(const tarn_value *a, const tarn_value *b) {
    const bool zeros = (a->type->kind == TARN_FLOAT && a->as.f32 == 0 && b->as.f32 == 0) ||
                       (a->type->kind == TARN_DOUBLE && a->as.f64 == 0 && b->as.f64 == 0);
    return zeros ? 0 : value_cmp(a, b);
}

static tarn_code check_bound(checker *c, const tarn_file *f, const tarn_field *field,
                             const tarn_value *fact, bool is_lower, tarn_error *err) {
    tarn_str bytes;
    tarn_value said;
    tarn_error why = TARN_ERROR_INIT;
    if (!(is_lower ? metric_find_bound(f->lower, f->n_lower, field->id, &bytes)
                   : metric_find_bound(f->upper, f->n_upper, field->id, &bytes)) ||
        value_from_binary(fact->type, bytes, &said, &why) != TARN_OK) {
        return TARN_OK;
    }
    const int order = compare(&said, fact);
    return (is_lower ? order <= 0 : order >= 0)
               ? TARN_OK
               : check_found(c, CHECK_FILE_METRICS, f->path, err,
                             "the entry's %s bound of column %d (\"%.*s\") left out rows that the "
                             "file has",
                             is_lower ? "lower" : "upper", field->id, STR_ARG(field->name));
}

static tarn_code check_column_facts(checker *c, const tarn_file *f, const parquet_file *p,
                                    int32_t node, tarn_error *err) {
    const tarn_field *field = parquet_file_schema(p)->nodes[node].field;
    tarn_code code = TARN_OK;
    expr_stats facts;
    int64_t nulls = 0;
    bool nested = false;
    parquet_file_stats(p, node, &facts);
    (void)check_column(c, field->id, &nested);
    if (facts.has_null_count && !nested &&
        metric_find_count(f->null_counts, f->n_null_counts, field->id, &nulls) &&
        nulls != facts.null_count) {
        TRY(check_found(c, CHECK_FILE_METRICS, f->path, err,
                        "the entry had %lld nulls of column %d (\"%.*s\") and the file has %lld",
                        (long long)nulls, field->id, STR_ARG(field->name),
                        (long long)facts.null_count));
    }
    if (facts.has_lower && is_exact(field->type)) {
        TRY(check_bound(c, f, field, &facts.lower, true, err));
    }
    if (facts.has_upper && is_exact(field->type)) {
        TRY(check_bound(c, f, field, &facts.upper, false, err));
    }
done:
    return code;
}

static tarn_code check_parquet(checker *c, const tarn_file *f, const parquet_file *p,
                               tarn_error *err) {
    const parquet_schema *schema = parquet_file_schema(p);
    tarn_code code = TARN_OK;
    TRY(check_rows(c, f, parquet_file_rows(p), err));
    TRY(check_field_ids(c, f, schema->root, err));
    for (int32_t i = 0; i < schema->n_nodes; i++) {
        const parquet_node *node = &schema->nodes[i];
        if (node->leaf >= 0 && node->rep == 0 && node->field->id != TARN_NO_ID &&
            !type_is_nested(node->field->type)) {
            TRY(check_column_facts(c, f, p, i, err));
        }
    }
done:
    return code;
}

static tarn_code open_parquet(checker *c, const tarn_file *f, io_source *source, tarn_error *err) {
    parquet_file *p = NULL;
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = parquet_open(c->env, source, NULL, &p, &why);
    if (code != TARN_OK) {
        source->close(source);
        return unreadable(c, f, code, &why, err);
    }
    code = check_parquet(c, f, p, err);
    parquet_close(p);
    source->close(source);
    return code;
}

static tarn_code open_avro(checker *c, const tarn_file *f, io_source *source, tarn_error *err) {
    avro_file *a = NULL;
    int64_t rows = 0;
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = avro_open(c->env, source, &a, &why);
    if (code != TARN_OK) {
        source->close(source);
        return unreadable(c, f, code, &why, err);
    }
    code = avro_file_count(a, &rows, &why);
    if (code != TARN_OK) {
        code = unreadable(c, f, code, &why, err);
    } else {
        code = check_rows(c, f, rows, err);
        if (code == TARN_OK) {
            code = check_field_ids(c, f, avro_file_type(a), err);
        }
    }
    avro_close(a);
    return code;
}

/* ---- deletion vectors ---- */

static tarn_code read_vector(checker *c, const tarn_file *f, io_source *source, tarn_error *why) {
    tarn_code code = TARN_OK;
    tarn_positions *positions = NULL;
    const size_t len = (size_t)f->content_size;
    uint8_t *bytes = env_alloc(c->env, len + 1);
    if (bytes == NULL) {
        return err_nomem(why);
    }
    code = io_read_at(source, f->content_offset, bytes, len, why);
    if (code == TARN_OK) {
        code = vector_decode(c->env, str_make(bytes, len), f->record_count, &positions, why);
    }
    positions_free(positions);
    env_free(c->env, bytes);
    return code;
}

/* Its magic, checksum and cardinality (Puffin spec, "deletion-vector-v1"). */
static tarn_code open_vector(checker *c, const tarn_file *f, io_source *source, tarn_error *err) {
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    if (f->content_offset < 0 || f->content_size < 0 ||
        f->content_size > source->size_bytes - f->content_offset) {
        code = check_found(c, CHECK_FILE_UNREADABLE, f->path, err,
                           "the deletion vector at %lld of %lld bytes lay outside the file",
                           (long long)f->content_offset, (long long)f->content_size);
    } else {
        code = read_vector(c, f, source, &why);
        code = code == TARN_OK ? TARN_OK : unreadable(c, f, code, &why, err);
    }
    source->close(source);
    return code;
}

tarn_code check_file(checker *c, const tarn_file *f, tarn_error *err) {
    io_source *source = NULL;
    tarn_error why = TARN_ERROR_INIT;
    c->counts->opened++;
    if (f->format != TARN_FORMAT_PARQUET && f->format != TARN_FORMAT_AVRO &&
        f->format != TARN_FORMAT_PUFFIN) {
        return check_found(c, CHECK_FILE_NOT_CHECKED, f->path, err,
                           "files of this format cannot be opened");
    }
    tarn_code code = store_open(c->store, f->path, -1, &source, &why);
    if (code != TARN_OK) {
        return unreadable(c, f, code, &why, err);
    }
    if (f->format == TARN_FORMAT_PUFFIN) {
        return open_vector(c, f, source, err);
    }
    return f->format == TARN_FORMAT_PARQUET ? open_parquet(c, f, source, err)
                                            : open_avro(c, f, source, err);
}
