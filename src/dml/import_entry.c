/* dml/import_entry.c - a data file that is there as a manifest entry: counts, sizes and bounds from
 * its footer, by the ids that the table's columns have. */
#include "dml/import_int.h"
#include "format/parquet/parquet_write.h"

/* ---- may the file be one of the table's ---- */

/* Ids in a file go before names: they must mean the same columns as the table's. */
static tarn_code check_ids(importer *im, const import_open *open, tarn_error *err) {
    const tarn_field *f = type_max_id(open->root) > 0
                              ? import_ids_differ(metadata_schema(im->m)->root, open->root)
                              : NULL;
    return f == NULL ? TARN_OK
                     : err_set(err, TARN_INVALID,
                               "%.*s had field id %d for column \"%.*s\", which is not the "
                               "table's; such files have to be written anew (tarn ingest)",
                               STR_ARG(open->file->path), f->id, STR_ARG(f->name));
}

/* A column that the table has not would never be seen again. */
static tarn_code check_columns(importer *im, const import_open *open, const tarn_projection *plan,
                               tarn_error *err) {
    const tarn_type *root = metadata_schema(im->m)->root;
    int32_t node = 0;
    for (int32_t i = 0; i < open->root->n_fields; i++) {
        const tarn_field *f = &open->root->fields[i];
        bool taken = f->type->kind == TARN_UNKNOWN;
        for (int32_t k = 0; k < root->n_fields && !taken; k++) {
            taken = project_source_node(plan, root->fields[k].id) == node;
        }
        if (!taken) {
            return err_set(err, TARN_INVALID, "%.*s had column \"%.*s\", which the table has not",
                           STR_ARG(open->file->path), STR_ARG(f->name));
        }
        node += type_field_span(f);
    }
    return TARN_OK;
}

/* ---- metrics ---- */

/* write.metadata.metrics.*: 0 none, 1 counts, 2 bounds. */
static int metrics_mode(const tarn_metadata *m, tarn_arena *arena, tarn_str name, size_t *length) {
    tarn_str mode;
    char *key = arena_printf(arena, "write.metadata.metrics.column.%.*s", STR_ARG(name));
    int32_t n = 16;
    if (key == NULL || !properties_get(&m->properties, key, &mode)) {
        mode = properties_str(&m->properties, "write.metadata.metrics.default", "truncate(16)");
    }
    *length = 16;
    if (str_eq_nocase(mode, STR("none"))) {
        return 0;
    }
    if (str_eq_nocase(mode, STR("counts"))) {
        return 1;
    }
    if (str_eq_nocase(mode, STR("full"))) {
        *length = SIZE_MAX;
    } else if (mode.len > 10 && str_to_i32(str_sub(mode, 9, mode.len - 10), &n) && n > 0) {
        *length = (size_t)n;
    }
    return 2;
}

static tarn_code make_bound(tarn_arena *arena, const tarn_value *fact, const tarn_type *type,
                            size_t length, bool is_upper, tarn_str *out, tarn_error *err) {
    tarn_value v;
    int beyond = 0;
    bool exists = true;
    *out = STR_NULL;
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = value_convert(arena, fact, type, &v, &beyond, &why);
    if (code == TARN_NOMEM) {
        return err_nomem(err);
    }
    if (code != TARN_OK || beyond != 0) {
        return TARN_OK; /* no bound is right too */
    }
    if (type->kind != TARN_STRING && type->kind != TARN_BINARY) {
        return value_to_binary(arena, &v, out, err);
    }
    const bool is_text = type->kind == TARN_STRING;
    if (is_text && !str_utf8_valid(v.as.bytes)) {
        return TARN_OK; /* its writer cut it within a character */
    }
    if (is_upper) {
        code = parquet_bound_upper(arena, v.as.bytes, is_text, length, out, &exists, err);
        *out = exists ? *out : STR_NULL;
        return code;
    }
    *out = arena_str(arena, parquet_bound_lower(v.as.bytes, is_text, length));
    return out->data != NULL ? TARN_OK : err_nomem(err);
}

typedef struct metrics_lists {
    metric_count *sizes, *values, *nulls;
    metric_bound *lower, *upper;
} metrics_lists;

static int64_t column_bytes(const parquet_file *p, int32_t leaf, int64_t *values) {
    int64_t bytes = 0;
    *values = 0;
    for (int32_t g = 0, n = parquet_group_count(p); g < n; g++) {
        const parquet_chunk *chunk = &parquet_file_footer(p)->row_groups[g].columns[leaf];
        if (THRIFT_HAS(chunk, PARQUET_CHUNK_META)) {
            bytes += chunk->meta.total_compressed_size;
            *values += chunk->meta.num_values;
        }
    }
    return bytes;
}

static tarn_code column_metrics(importer *im, tarn_arena *arena, const parquet_file *p,
                                const tarn_field *field, int32_t node, metrics_lists *l,
                                tarn_file *out, tarn_error *err) {
    const parquet_node *n = &parquet_file_schema(p)->nodes[node];
    expr_stats stats;
    tarn_str bytes;
    int64_t values = 0;
    size_t length = 0;
    tarn_code code = TARN_OK;
    const int mode = metrics_mode(im->m, arena, field->name, &length);
    l->sizes[out->n_column_sizes++] = (metric_count){field->id, column_bytes(p, n->leaf, &values)};
    if (mode == 0) {
        return TARN_OK;
    }
    l->values[out->n_value_counts++] = (metric_count){field->id, values};
    parquet_file_stats(p, node, &stats);
    if (stats.has_null_count) {
        l->nulls[out->n_null_counts++] = (metric_count){field->id, stats.null_count};
    }
    if (mode == 2 && stats.has_lower) {
        TRY(make_bound(arena, &stats.lower, field->type, length, false, &bytes, err));
        l->lower[out->n_lower] = (metric_bound){field->id, bytes};
        out->n_lower += bytes.data != NULL;
    }
    if (mode == 2 && stats.has_upper) {
        TRY(make_bound(arena, &stats.upper, field->type, length, true, &bytes, err));
        l->upper[out->n_upper] = (metric_bound){field->id, bytes};
        out->n_upper += bytes.data != NULL;
    }
done:
    return code;
}

/* A column that the table requires has no null in the file. */
static tarn_code check_required(const import_open *open, const tarn_field *field, int32_t node,
                                tarn_error *err) {
    expr_stats stats;
    parquet_file_stats(open->parquet, node, &stats);
    return !field->required || !parquet_file_schema(open->parquet)->nodes[node].is_nullable ||
                   (stats.has_null_count && stats.null_count == 0)
               ? TARN_OK
               : err_set(err, TARN_INVALID,
                         "%.*s may have nulls in column \"%.*s\", which the table requires",
                         STR_ARG(open->file->path), STR_ARG(field->name));
}

static tarn_code parquet_metrics_of(importer *im, tarn_arena *arena, const import_open *open,
                                    const tarn_projection *plan, tarn_file *out, tarn_error *err) {
    const tarn_type *root = metadata_schema(im->m)->root;
    const int32_t n = type_node_count(root), groups = parquet_group_count(open->parquet);
    int64_t *splits = ARENA_ARRAY(arena, int64_t, (size_t)groups + 1);
    metrics_lists l = {ARENA_ARRAY(arena, metric_count, (size_t)n + 1),
                       ARENA_ARRAY(arena, metric_count, (size_t)n + 1),
                       ARENA_ARRAY(arena, metric_count, (size_t)n + 1),
                       ARENA_ARRAY(arena, metric_bound, (size_t)n + 1),
                       ARENA_ARRAY(arena, metric_bound, (size_t)n + 1)};
    tarn_code code = TARN_OK;
    if (splits == NULL || l.sizes == NULL || l.values == NULL || l.nulls == NULL ||
        l.lower == NULL || l.upper == NULL) {
        return err_nomem(err);
    }
    out->record_count = parquet_file_rows(open->parquet);
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *field = type_node(root, i);
        const int32_t node = project_source_node(plan, field->id);
        if (node < 0 || type_is_nested(field->type) ||
            parquet_file_schema(open->parquet)->nodes[node].leaf < 0) {
            continue;
        }
        TRY(check_required(open, field, node, err));
        TRY(column_metrics(im, arena, open->parquet, field, node, &l, out, err));
    }
    for (int32_t g = 0; g < groups; g++) {
        splits[out->n_split_offsets] = parquet_group_start(open->parquet, g);
        out->n_split_offsets += splits[out->n_split_offsets] >= 0;
    }
    out->column_sizes = l.sizes;
    out->value_counts = l.values;
    out->null_counts = l.nulls;
    out->lower = l.lower;
    out->upper = l.upper;
    out->split_offsets = splits;
done:
    return code;
}

tarn_code import_entry(importer *im, tarn_arena *arena, const import_file *file, tarn_file *out,
                       tarn_error *err) {
    const tarn_spec *spec = metadata_spec(im->m);
    tarn_code code = TARN_OK;
    import_open open;
    tarn_projection *plan = NULL;
    const project_options options = {.name_mapping = im->mapping, .file = file->path.data};
    tarn_value *partition = ARENA_ARRAY(arena, tarn_value, (size_t)spec->n_fields + 1);
    memset(out, 0, sizeof *out);
    TRY(import_open_file(im, file, &open, err));
    if (partition == NULL) {
        code = err_nomem(err);
        goto close;
    }
    out->content = TARN_CONTENT_DATA;
    out->format = open.format;
    out->path = file->path;
    out->size_bytes = file->size_bytes;
    out->spec_id = spec->spec_id;
    out->n_partition = spec->n_fields;
    out->partition = partition;
    out->sort_order_id = -1;
    out->first_row_id = out->content_offset = out->content_size = -1;
    code = check_ids(im, &open, err);
    if (code == TARN_OK) {
        code = project_plan(arena, open.root, metadata_schema(im->m)->root, &options, &plan, err);
    }
    if (code == TARN_OK) {
        code = check_columns(im, &open, plan, err);
    }
    if (code == TARN_OK) {
        code = open.parquet != NULL ? parquet_metrics_of(im, arena, &open, plan, out, err)
                                    : avro_file_count(open.avro, &out->record_count, err);
    }
    if (code == TARN_OK) {
        code = import_partition(im, arena, file, plan, open.parquet, partition, err);
    }
close:
    import_close_file(&open);
done:
    return code;
}
