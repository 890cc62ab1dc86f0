/* format/parquet/parquet_print.c - see parquet_print.h. */
#include "format/parquet/parquet_print.h"

#include "table/value.h"

static const char *name_in(const char *const *names, size_t n, int32_t i) {
    return i >= 0 && (size_t)i < n ? names[i] : "unknown";
}
#define NAME_IN(names, i) name_in(names, sizeof(names) / sizeof *(names), i)

static const char *const PHYSICAL[] = {"boolean", "int32",  "int64",  "int96",
                                       "float",   "double", "binary", "fixed_len_byte_array"};
static const char *const REPETITION[] = {"required", "optional", "repeated"};
static const char *const CODECS[] = {"uncompressed", "snappy", "gzip", "lzo",
                                     "brotli",       "lz4",    "zstd", "lz4_raw"};
static const char *const ENCODINGS[] = {
    "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
static const char *const CONVERTED[] = {"UTF8",
                                        "MAP",
                                        "MAP_KEY_VALUE",
                                        "LIST",
                                        "ENUM",
                                        "DECIMAL",
                                        "DATE",
                                        "TIME_MILLIS",
                                        "TIME_MICROS",
                                        "TIMESTAMP_MILLIS",
                                        "TIMESTAMP_MICROS",
                                        "UINT_8",
                                        "UINT_16",
                                        "UINT_32",
                                        "UINT_64",
                                        "INT_8",
                                        "INT_16",
                                        "INT_32",
                                        "INT_64",
                                        "JSON",
                                        "BSON",
                                        "INTERVAL"};
static const char *const LOGICAL[] = {
    "",        "STRING",  "MAP",  "LIST", "ENUM", "DECIMAL", "DATE",    "TIME",     "TIMESTAMP", "",
    "INTEGER", "UNKNOWN", "JSON", "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"};

static bool has(uint32_t bits, int field) {
    return (bits >> field & 1) != 0;
}

static const char *unit_name(const parquet_logical_time *time) {
    return has(time->unit.has, PARQUET_UNIT_MILLIS)   ? "MILLIS"
           : has(time->unit.has, PARQUET_UNIT_MICROS) ? "MICROS"
                                                      : "NANOS";
}

static tarn_code print_logical(const parquet_element *e, tarn_buf *out, tarn_error *err) {
    int kind = 0;
    for (int i = 1; i < (int)(sizeof LOGICAL / sizeof *LOGICAL); i++) {
        kind = has(e->logical.has, i) ? i : kind;
    }
    if (kind == PARQUET_LOGICAL_DECIMAL) {
        return buf_printf(out, err, " (DECIMAL(%d,%d))", e->logical.decimal.precision,
                          e->logical.decimal.scale);
    }
    if (kind == PARQUET_LOGICAL_TIME || kind == PARQUET_LOGICAL_TIMESTAMP) {
        const parquet_logical_time *t =
            kind == PARQUET_LOGICAL_TIME ? &e->logical.time : &e->logical.timestamp;
        return buf_printf(out, err, " (%s(%s,%s))", LOGICAL[kind], unit_name(t),
                          t->is_adjusted_to_utc ? "true" : "false");
    }
    if (kind == PARQUET_LOGICAL_INTEGER) {
        return buf_printf(out, err, " (INTEGER(%d,%s))", e->logical.integer.bit_width,
                          e->logical.integer.is_signed ? "true" : "false");
    }
    return buf_printf(out, err, " (%s)", LOGICAL[kind]);
}

static tarn_code print_annotation(const parquet_element *e, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (has(e->has, PARQUET_ELEMENT_LOGICAL)) {
        TRY(print_logical(e, out, err));
    } else if (has(e->has, PARQUET_ELEMENT_CONVERTED)) {
        if (e->converted == PARQUET_CONVERTED_DECIMAL) {
            TRY(buf_printf(out, err, " (DECIMAL(%d,%d))", e->precision, e->scale));
        } else {
            TRY(buf_printf(out, err, " (%s)", NAME_IN(CONVERTED, e->converted)));
        }
    }
    if (has(e->has, PARQUET_ELEMENT_FIELD_ID)) {
        TRY(buf_printf(out, err, " = %d", e->field_id));
    }
done:
    return code;
}

/* Elements are in depth-first order; the schema was built from them, so counts are sound. */
static tarn_code print_element(const parquet_schema *s, int32_t *at, int depth, tarn_buf *out,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const parquet_element *e = &s->elements[(*at)++];
    int32_t children = has(e->has, PARQUET_ELEMENT_NUM_CHILDREN) ? e->num_children : 0;
    bool group = !has(e->has, PARQUET_ELEMENT_TYPE);
    TRY(buf_printf(out, err, "%*s", depth * 2, ""));
    if (depth == 0) {
        TRY(buf_printf(out, err, "message "));
    } else {
        TRY(buf_printf(out, err, "%s %s ", NAME_IN(REPETITION, e->repetition),
                       group ? "group" : NAME_IN(PHYSICAL, e->type)));
        if (!group && e->type == PARQUET_FIXED_LEN_BYTE_ARRAY) {
            out->len--;
            TRY(buf_printf(out, err, "(%d) ", e->type_length));
        }
    }
    TRY(buf_append_str(out, e->name, err));
    if (depth > 0) {
        TRY(print_annotation(e, out, err));
    }
    if (!group) {
        return buf_printf(out, err, ";\n");
    }
    TRY(buf_printf(out, err, " {\n"));
    for (int32_t i = 0; i < children && *at < s->n_elements; i++) {
        TRY(print_element(s, at, depth + 1, out, err));
    }
    TRY(buf_printf(out, err, "%*s}\n", depth * 2, ""));
done:
    return code;
}

tarn_code parquet_print_schema(const parquet_file *file, tarn_buf *out, tarn_error *err) {
    int32_t at = 0;
    tarn_code code = print_element(parquet_file_schema(file), &at, 0, out, err);
    if (code == TARN_OK && out->len > 0 && out->data[out->len - 1] == '\n') {
        out->len--;
    }
    return code;
}

static void put_stats(const parquet_file *file, int32_t group, int32_t node, json_writer *w) {
    expr_stats stats;
    if (node < 0 || !parquet_group_stats(file, group, node, &stats)) {
        return;
    }
    json_put_name(w, STR("statistics"));
    json_put_object(w);
    if (stats.has_null_count) {
        json_member_i64(w, "null-count", stats.null_count);
    }
    if (stats.has_lower) {
        json_put_name(w, STR("min"));
        value_put_json(&stats.lower, w);
    }
    if (stats.has_upper) {
        json_put_name(w, STR("max"));
        value_put_json(&stats.upper, w);
    }
    json_end_object(w);
}

static void put_column(const parquet_file *file, int32_t group, int32_t leaf,
                       const parquet_column_meta *m, json_writer *w) {
    const parquet_leaf *l = &parquet_file_schema(file)->leaves[leaf];
    json_put_object(w);
    json_member_str(w, "path", l->path);
    json_member_str(w, "type", str_of(NAME_IN(PHYSICAL, m->type)));
    json_member_str(w, "codec", str_of(NAME_IN(CODECS, m->codec)));
    json_put_name(w, STR("encodings"));
    json_put_array(w);
    for (int32_t i = 0; i < m->n_encodings; i++) {
        json_put_string(w, str_of(NAME_IN(ENCODINGS, m->encodings[i])));
    }
    json_end_array(w);
    json_member_i64(w, "values", m->num_values);
    json_member_i64(w, "compressed-bytes", m->total_compressed_size);
    json_member_i64(w, "uncompressed-bytes", m->total_uncompressed_size);
    json_member_i64(w, "data-page-offset", m->data_page_offset);
    if (has(m->has, PARQUET_COLUMN_DICTIONARY_PAGE_OFFSET)) {
        json_member_i64(w, "dictionary-page-offset", m->dictionary_page_offset);
    }
    if (has(m->has, PARQUET_COLUMN_BLOOM_FILTER_OFFSET)) {
        json_member_i64(w, "bloom-filter-offset", m->bloom_filter_offset);
    }
    put_stats(file, group, l->node, w);
    json_end_object(w);
}

static void put_group(const parquet_file *file, int32_t group, const parquet_row_group *g,
                      json_writer *w) {
    const parquet_schema *schema = parquet_file_schema(file);
    json_put_object(w);
    json_member_i64(w, "rows", g->num_rows);
    json_member_i64(w, "bytes", g->total_byte_size);
    json_put_name(w, STR("columns"));
    json_put_array(w);
    for (int32_t i = 0; i < g->n_columns && i < schema->n_leaves; i++) {
        put_column(file, group, i, &g->columns[i].meta, w);
    }
    json_end_array(w);
    json_end_object(w);
}

void parquet_print_meta(const parquet_file *file, json_writer *w) {
    const parquet_footer *footer = parquet_file_footer(file);
    json_put_object(w);
    json_member_str(w, "format", STR("parquet"));
    json_member_i64(w, "version", footer->version);
    json_member_str(w, "created-by", footer->created_by);
    json_member_i64(w, "rows", parquet_file_rows(file));
    json_put_name(w, STR("metadata"));
    json_put_object(w);
    for (int32_t i = 0; i < footer->n_key_values; i++) {
        json_put_name(w, footer->key_values[i].key);
        json_put_string(w, footer->key_values[i].value);
    }
    json_end_object(w);
    json_put_name(w, STR("row-groups"));
    json_put_array(w);
    for (int32_t i = 0; i < footer->n_row_groups; i++) {
        put_group(file, i, &footer->row_groups[i], w);
    }
    json_end_array(w);
    json_end_object(w);
}
