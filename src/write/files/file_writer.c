/* write/files/file_writer.c - see file_writer.h. */
#include "write/files/file_writer.h"

#define TARGET_FILE_BYTES   INT64_C(536870912)
#define TARGET_DELETE_BYTES INT64_C(67108864)

/* Metrics of these columns are kept whole, whatever the properties say of them: they come last. */
static tarn_code add_full_columns(tarn_arena *arena, const file_purpose *purpose,
                                  file_format_options *out, tarn_error *err) {
    size_t n = out->parquet.n_columns;
    parquet_column_options *columns =
        ARENA_ARRAY(arena, parquet_column_options, n + (size_t)purpose->n_full_ids + 1);
    tarn_buf name;
    tarn_code code = TARN_OK;
    buf_init(&name, arena->env, LIMIT_METADATA_JSON_BYTES);
    if (columns == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (n > 0) {
        memcpy(columns, out->parquet.columns, n * sizeof *columns);
    }
    for (int32_t i = 0; i < purpose->n_full_ids; i++) {
        parquet_column_options *column = &columns[n++];
        buf_reset(&name);
        TRY(type_full_name(out->root, purpose->full_ids[i], &name, err));
        column->name = arena_str(arena, buf_str(&name));
        if (column->name.data == NULL) {
            code = err_nomem(err);
            goto done;
        }
        column->has_metrics = true;
        column->metrics.mode = PARQUET_METRICS_FULL;
    }
    out->parquet.columns = columns;
    out->parquet.n_columns = n;
done:
    buf_release(&name);
    return code;
}

static tarn_code read_parquet_options(tarn_arena *arena, const tarn_metadata *m,
                                      const file_purpose *purpose, file_format_options *out,
                                      tarn_error *err) {
    tarn_code code = TARN_OK;
    parquet_property *properties =
        ARENA_ARRAY(arena, parquet_property, (size_t)m->properties.count + 1);
    parquet_property *meta = ARENA_ARRAY(arena, parquet_property, (size_t)out->n_meta);
    if (properties == NULL || meta == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < m->properties.count; i++) {
        properties[i].key = m->properties.items[i].key;
        properties[i].value = m->properties.items[i].value;
    }
    for (int32_t i = 0; i < out->n_meta; i++) {
        meta[i].key = out->meta[i].key;
        meta[i].value = out->meta[i].value;
    }
    parquet_write_options_init(&out->parquet);
    TRY(parquet_write_options_parse(arena, properties, (size_t)m->properties.count,
                                    purpose->deletes, &out->parquet, err));
    out->parquet.key_values = meta;
    out->parquet.n_key_values = (size_t)out->n_meta;
    if (purpose->n_full_ids > 0) {
        TRY(add_full_columns(arena, purpose, out, err));
    }
done:
    return code;
}

static tarn_code read_avro_options(const tarn_metadata *m, bool deletes, file_format_options *out,
                                   tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str name = properties_str(&m->properties, "write.avro.compression-codec", "gzip");
    int64_t level = CODEC_LEVEL_DEFAULT;
    TRY(properties_i64(&m->properties, "write.avro.compression-level", level, &level, err));
    if (deletes) {
        (void)properties_get(&m->properties, "write.delete.avro.compression-codec", &name);
        TRY(properties_i64(&m->properties, "write.delete.avro.compression-level", level, &level,
                           err));
    }
    if (!codec_from_name(name, &out->avro_codec)) {
        return err_set(err, TARN_INVALID,
                       "property write.%savro.compression-codec was \"%.*s\", which is no codec",
                       deletes ? "delete." : "", STR_ARG(name));
    }
    out->avro_level = (int)level;
done:
    return code;
}

/* iceberg.schema, and what the purpose adds. */
static tarn_code make_meta(tarn_arena *arena, const tarn_metadata *m, const file_purpose *purpose,
                           file_format_options *out, tarn_error *err) {
    tarn_buf text;
    json_writer w;
    tarn_schema schema = *metadata_schema(m);
    avro_meta *meta = ARENA_ARRAY(arena, avro_meta, (size_t)purpose->n_meta + 1);
    if (meta == NULL) {
        return err_nomem(err);
    }
    if (purpose->root != NULL) {
        schema = (tarn_schema){.schema_id = schema.schema_id, .root = purpose->root};
    }
    out->root = schema.root;
    buf_init(&text, arena->env, LIMIT_METADATA_JSON_BYTES);
    json_begin(&w, &text, false, err);
    schema_put_json(&schema, &w);
    tarn_code code = json_end(&w);
    if (code == TARN_OK) {
        meta[0].key = STR("iceberg.schema");
        meta[0].value = arena_str(arena, buf_str(&text));
        code = meta[0].value.data != NULL ? TARN_OK : err_nomem(err);
    }
    for (int32_t i = 0; i < purpose->n_meta; i++) {
        meta[i + 1] = purpose->meta[i];
    }
    out->meta = meta;
    out->n_meta = purpose->n_meta + 1;
    buf_release(&text);
    return code;
}

tarn_code file_target_bytes(const tarn_metadata *m, bool deletes, int64_t *out, tarn_error *err) {
    return deletes ? properties_i64(&m->properties, "write.delete.target-file-size-bytes",
                                    TARGET_DELETE_BYTES, out, err)
                   : properties_i64(&m->properties, "write.target-file-size-bytes",
                                    TARGET_FILE_BYTES, out, err);
}

tarn_code file_format_options_init(tarn_arena *arena, const tarn_metadata *m,
                                   const file_purpose *purpose, file_format_options *out,
                                   tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *key = "write.format.default";
    memset(out, 0, sizeof *out);
    TRY(file_target_bytes(m, purpose->deletes, &out->target_bytes, err));
    TRY(make_meta(arena, m, purpose, out, err));
    tarn_str format = properties_str(&m->properties, key, "parquet");
    if (purpose->deletes &&
        properties_get(&m->properties, "write.delete.format.default", &format)) {
        key = "write.delete.format.default";
    }
    if (str_eq_nocase(format, STR("parquet"))) {
        out->format = TARN_FORMAT_PARQUET;
        out->extension = "parquet";
        TRY(read_parquet_options(arena, m, purpose, out, err));
    } else if (str_eq_nocase(format, STR("avro"))) {
        out->format = TARN_FORMAT_AVRO;
        out->extension = "avro";
        TRY(read_avro_options(m, purpose->deletes, out, err));
    } else {
        code =
            err_set(err, TARN_UNSUPPORTED, "property %s was \"%.*s\"; parquet and avro are written",
                    key, STR_ARG(format));
    }
done:
    return code;
}

tarn_code file_writer_open(file_writer *w, tarn_env *env, tarn_store *store,
                           const file_format_options *options, tarn_str path, tarn_error *err) {
    io_sink *sink = NULL;
    memset(w, 0, sizeof *w);
    w->options = options;
    w->path = path;
    tarn_code code = store_create(store, path, STORE_CREATE_LATER, &sink, err);
    if (code != TARN_OK) {
        return code;
    }
    if (options->format == TARN_FORMAT_PARQUET) {
        code = parquet_writer_new(env, options->root, &options->parquet, sink, &w->parquet, err);
    } else {
        avro_write_options avro = AVRO_WRITE_OPTIONS_INIT;
        avro.record_name = STR("table");
        avro.codec = options->avro_codec;
        avro.level = options->avro_level;
        avro.meta = options->meta;
        avro.n_meta = (size_t)options->n_meta;
        code = avro_writer_open(env, sink, options->root, &avro, &w->avro, err);
    }
    if (code != TARN_OK) {
        sink->abort(sink);
    }
    return code;
}

tarn_code file_writer_write(file_writer *w, const tarn_batch *batch, tarn_error *err) {
    if (w->parquet != NULL) {
        return parquet_writer_write(w->parquet, batch, err);
    }
    return avro_writer_write(w->avro, batch, err);
}

tarn_code file_writer_relieve(file_writer *w, tarn_error *err) {
    return w->parquet != NULL ? parquet_writer_end_row_group(w->parquet, err) : TARN_OK;
}

int64_t file_writer_buffered_bytes(const file_writer *w) {
    return w->parquet != NULL ? parquet_writer_buffered_bytes(w->parquet) : 0;
}

int64_t file_writer_written_bytes(const file_writer *w) {
    return w->parquet != NULL ? parquet_writer_written_bytes(w->parquet)
                              : avro_writer_bytes(w->avro);
}

tarn_code file_writer_close(file_writer *w, tarn_arena *arena, tarn_file *out, tarn_error *err) {
    tarn_code code;
    memset(out, 0, sizeof *out);
    /* before the file is there: a file without an entry would be an orphan */
    tarn_str path = arena_str(arena, w->path);
    if (path.data == NULL) {
        file_writer_abort(w);
        return err_nomem(err);
    }
    if (w->parquet != NULL) {
        code = parquet_writer_close(w->parquet, arena, out, err);
        parquet_writer_free(w->parquet);
        w->parquet = NULL;
    } else {
        avro_writer *avro = w->avro;
        w->avro = NULL;
        code = avro_writer_finish(avro, &out->size_bytes, &out->record_count, err);
    }
    out->content = TARN_CONTENT_DATA;
    out->format = w->options->format;
    out->sort_order_id = 0;
    out->first_row_id = -1;
    out->content_offset = -1;
    out->content_size = -1;
    out->path = path;
    return code;
}

void file_writer_abort(file_writer *w) {
    parquet_writer_free(w->parquet);
    avro_writer_abort(w->avro);
    w->parquet = NULL;
    w->avro = NULL;
}
