/* write/files/file_writer.c - see file_writer.h. */
#include "write/files/file_writer.h"

static tarn_code read_parquet_options(tarn_arena *arena, const tarn_metadata *m,
                                      file_format_options *out, tarn_error *err) {
    parquet_property *properties =
        ARENA_ARRAY(arena, parquet_property, (size_t)m->properties.count + 1);
    parquet_property *schema = ARENA_NEW(arena, parquet_property);
    if (properties == NULL || schema == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < m->properties.count; i++) {
        properties[i].key = m->properties.items[i].key;
        properties[i].value = m->properties.items[i].value;
    }
    parquet_write_options_init(&out->parquet);
    tarn_code code = parquet_write_options_parse(arena, properties, (size_t)m->properties.count,
                                                 false, &out->parquet, err);
    schema->key = out->schema_meta.key;
    schema->value = out->schema_meta.value;
    out->parquet.key_values = schema;
    out->parquet.n_key_values = 1;
    return code;
}

static tarn_code read_avro_options(const tarn_metadata *m, file_format_options *out,
                                   tarn_error *err) {
    tarn_str name = properties_str(&m->properties, "write.avro.compression-codec", "gzip");
    int64_t level;
    if (!codec_from_name(name, &out->avro_codec)) {
        return err_set(err, TARN_INVALID,
                       "property write.avro.compression-codec was \"%.*s\", which is no codec",
                       STR_ARG(name));
    }
    out->avro_level = CODEC_LEVEL_DEFAULT;
    tarn_code code = properties_i64(&m->properties, "write.avro.compression-level",
                                    CODEC_LEVEL_DEFAULT, &level, err);
    if (code == TARN_OK) {
        out->avro_level = (int)level;
    }
    return code;
}

static tarn_code make_schema_meta(tarn_arena *arena, const tarn_schema *schema, avro_meta *out,
                                  tarn_error *err) {
    tarn_buf text;
    json_writer w;
    buf_init(&text, arena->env, LIMIT_METADATA_JSON_BYTES);
    json_begin(&w, &text, false, err);
    schema_put_json(schema, &w);
    tarn_code code = json_end(&w);
    if (code == TARN_OK) {
        out->key = STR("iceberg.schema");
        out->value = arena_str(arena, buf_str(&text));
        code = out->value.data != NULL ? TARN_OK : err_nomem(err);
    }
    buf_release(&text);
    return code;
}

tarn_code file_format_options_init(tarn_arena *arena, const tarn_metadata *m,
                                   file_format_options *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_schema *schema = metadata_schema(m);
    memset(out, 0, sizeof *out);
    out->root = schema->root;
    TRY(make_schema_meta(arena, schema, &out->schema_meta, err));
    tarn_str format = properties_str(&m->properties, "write.format.default", "parquet");
    if (str_eq_nocase(format, STR("parquet"))) {
        out->format = TARN_FORMAT_PARQUET;
        out->extension = "parquet";
        TRY(read_parquet_options(arena, m, out, err));
    } else if (str_eq_nocase(format, STR("avro"))) {
        out->format = TARN_FORMAT_AVRO;
        out->extension = "avro";
        TRY(read_avro_options(m, out, err));
    } else {
        code = err_set(err, TARN_UNSUPPORTED,
                       "property write.format.default was \"%.*s\"; parquet and avro are written",
                       STR_ARG(format));
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
        avro.meta = &options->schema_meta;
        avro.n_meta = 1;
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
