/* api/api_file.c - include/tarn/file.h, reading: one file of any format as batches.
 *
 * Parquet and Avro are opened once for their schema and metadata, and once more by read's file_scan
 * when rows are asked for, which prunes, projects and filters as it does for tables. Text formats
 * are decoded in full and then filtered and projected here. A document (table metadata JSON) has no
 * rows. */
#include "api/api_file.h"

#include "api/handles.h"
#include "format/parquet/parquet_print.h"
#include "store/store_path.h"
#include "store/store_stdio.h"

static tarn_code by_option(const char *name, file_kind *out, tarn_error *err) {
    static const char *const names[] = {"parquet", "avro", "ndjson", "csv", "json", "table"};
    for (int i = 0; i < 6; i++) {
        if (str_eq_nocase(str_of(name), str_of(names[i]))) {
            *out = (file_kind)i;
            return TARN_OK;
        }
    }
    return err_set(err, TARN_INVALID,
                   "\"%s\" is no file format; known are parquet, avro, ndjson, csv, json", name);
}

/* Kind and compression by the name's endings. */
static bool by_name(tarn_str name, file_kind *kind, codec_kind *codec) {
    static const struct {
        const char *ending;
        file_kind kind;
    } endings[] = {{".parquet", FILE_PARQUET},
                   {".avro", FILE_AVRO},
                   {".ndjson", FILE_NDJSON},
                   {".jsonl", FILE_NDJSON},
                   {".metadata.json", FILE_JSON},
                   {".json", FILE_NDJSON},
                   {".csv", FILE_CSV},
                   {".tsv", FILE_CSV}};
    *codec = CODEC_NONE;
    if (str_ends_with(name, STR(".gz"))) {
        *codec = CODEC_GZIP;
        name.len -= 3;
    } else if (str_ends_with(name, STR(".zst"))) {
        *codec = CODEC_ZSTD;
        name.len -= 4;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (str_ends_with(name, str_of(endings[i].ending))) {
            *kind = endings[i].kind;
            return true;
        }
    }
    return false;
}

static file_kind by_content(tarn_str head) {
    if (str_starts_with(head, STR("PAR1")) || str_starts_with(head, STR("PARE"))) {
        return FILE_PARQUET;
    }
    if (str_starts_with(head, STR("Obj\1"))) {
        return FILE_AVRO;
    }
    head = str_trim(head);
    return head.len > 0 && head.data[0] == '{' ? FILE_NDJSON : FILE_CSV;
}

tarn_code file_kind_for_writing(const char *path, const tarn_file_options *o, file_kind *kind,
                                codec_kind *codec, tarn_error *err) {
    bool named = by_name(str_of(path), kind, codec);
    if (o->format != NULL) {
        return by_option(o->format, kind, err);
    }
    return named && *kind != FILE_JSON
               ? TARN_OK
               : err_set(err, TARN_INVALID, "the name %s does not say a format; give one", path);
}

static tarn_code read_head(tarn_file_reader *r, char head[64], size_t *len, tarn_error *err) {
    io_source *source = NULL;
    tarn_code code = store_open(r->store, r->path, -1, &source, err);
    if (code != TARN_OK) {
        return code;
    }
    *len = source->size_bytes < 64 ? (size_t)source->size_bytes : 64;
    r->total_bytes = source->size_bytes;
    code = io_read_at(source, 0, head, *len, err);
    source->close(source);
    return code;
}

/* A pipe of a format that needs random access is read into a store in memory first. */
static tarn_code load_pipe(tarn_file_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf all;
    size_t got = 1;
    buf_init(&all, r->env, 0);
    while (got > 0) {
        TRY(buf_reserve(&all, 1 << 20, err));
        TRY(r->pipe->read(r->pipe, all.data + all.len, 1 << 20, &got, err));
        all.len += got;
    }
    TRY(store_memory_new(r->env, &r->store, err));
    r->path = str_of(r->name);
    r->total_bytes = (int64_t)all.len;
    TRY(store_put(r->store, r->path, STORE_REPLACE, buf_str(&all), err));
done:
    buf_release(&all);
    return code;
}

/* What the option says, then the name, then the first bytes; the compression of text by the first
 * bytes in any case. */
static tarn_code choose_kind(tarn_file_reader *r, const tarn_file_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    char bytes[64];
    size_t len = 0;
    tarn_str head = STR_NULL;
    bool named = by_name(r->path, &r->kind, &r->codec);
    if (o->format != NULL) {
        TRY(by_option(o->format, &r->kind, err));
        named = true;
    }
    if (r->is_pipe) {
        TRY(store_pipe_open(r->env, r->path.data, &head, &r->pipe, err));
    } else {
        TRY(read_head(r, bytes, &len, err));
        head = str_make(bytes, len);
    }
    codec_kind sniffed = codec_sniff(head.data, head.len);
    if (!named && sniffed != CODEC_NONE) {
        return err_set(err, TARN_INVALID,
                       "%s is compressed, and nothing says what it holds; give a format (--format)",
                       r->name);
    }
    if (!named) {
        r->kind = by_content(head);
    }
    bool text = r->kind == FILE_NDJSON || r->kind == FILE_CSV || r->kind == FILE_JSON;
    if (text) {
        r->codec = sniffed != CODEC_NONE ? sniffed : r->codec;
    } else if (r->is_pipe) {
        TRY(load_pipe(r, err));
    }
    if (r->is_pipe && r->kind == FILE_JSON) {
        TRY(load_pipe(r, err));
    }
    if (o->compression != NULL && !codec_from_name(str_of(o->compression), &r->codec)) {
        return err_set(err, TARN_INVALID, "\"%s\" is no compression", o->compression);
    }
done:
    return code;
}

/* ---- opening by kind ---- */

static tarn_code open_parquet(tarn_file_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(store_open(r->store, r->path, -1, &r->source, err));
    TRY(parquet_open(r->env, r->source, NULL, &r->parquet, err));
    r->file_root = parquet_file_schema(r->parquet)->root;
done:
    return code;
}

static tarn_code open_avro(tarn_file_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    TRY(store_open(r->store, r->path, -1, &source, err));
    code = avro_open(r->env, source, &r->avro, err);
    if (code != TARN_OK) {
        source->close(source);
        return code;
    }
    r->file_root = avro_file_type(r->avro);
done:
    return code;
}

/* Any JSON document is shown; only its schema asks that it follows the specification. */
static tarn_code open_document(tarn_file_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf bytes;
    tarn_buf plain;
    codec_ctx ctx;
    json_value *json;
    buf_init(&bytes, r->env, LIMIT_METADATA_JSON_BYTES);
    buf_init(&plain, r->env, LIMIT_METADATA_JSON_BYTES);
    codec_ctx_init(&ctx, r->env);
    TRY(store_get(r->store, r->path, LIMIT_METADATA_JSON_BYTES, &bytes, err));
    if (codec_sniff(bytes.data, bytes.len) == CODEC_GZIP) {
        TRY(codec_decompress_buf(&ctx, CODEC_GZIP, buf_str(&bytes), &plain, err));
        TRY(json_parse(&r->arena, buf_str(&plain), r->name, &json, err));
    } else {
        TRY(json_parse(&r->arena, buf_str(&bytes), r->name, &json, err));
    }
    r->document = json;
    r->file_root = type_struct(&r->arena, NULL, 0);
    code = r->file_root != NULL ? TARN_OK : err_nomem(err);
done:
    codec_ctx_release(&ctx);
    buf_release(&plain);
    buf_release(&bytes);
    return code == TARN_OK ? TARN_OK : err_add(err, code, "file %s", r->name);
}

static tarn_code one_char(const char *text, const char *what, char *out, tarn_error *err) {
    if (text == NULL) {
        return TARN_OK;
    }
    if (strcmp(text, "\\t") == 0) {
        *out = '\t';
        return TARN_OK;
    }
    if (strlen(text) != 1) {
        return err_set(err, TARN_INVALID, "the CSV %s was \"%s\", not one character", what, text);
    }
    *out = text[0];
    return TARN_OK;
}

static tarn_code on_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                           tarn_error *err) {
    tarn_file_reader *r = ctx;
    char text[512];
    size_t len = reason.len < sizeof text - 1 ? reason.len : sizeof text - 1;
    memcpy(text, reason.data, len);
    text[len] = '\0';
    if (r->reject(r->reject_ctx, line, raw.data != NULL ? raw.data : "", raw.len, text) == 0) {
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "%s %s %lld: %s", r->name, r->text != NULL ? "line" : "row",
                   (long long)line, text);
}

tarn_code file_text_options(tarn_arena *arena, const tarn_file_options *o, file_kind kind,
                            text_options *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->kind = kind == FILE_CSV ? TEXT_CSV : kind == FILE_TABLE ? TEXT_TABLE : TEXT_NDJSON;
    TRY(one_char(o->csv_delimiter, "delimiter", &out->delimiter, err));
    TRY(one_char(o->csv_quote, "quote", &out->quote, err));
    out->no_header = o->csv_no_header;
    out->ignore_unknown = o->ignore_unknown;
    out->batch_rows = o->batch_rows;
    if (o->null_text != NULL) {
        tarn_str *texts = ARENA_ARRAY(arena, tarn_str, 2);
        if (texts == NULL) {
            return err_nomem(err);
        }
        texts[0] = arena_str(arena, str_of(o->null_text));
        texts[1] = STR("");
        out->null_texts = texts;
        out->n_null_texts = 2;
    }
done:
    return code;
}

static tarn_code open_text_stream(tarn_file_reader *r, io_stream **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    io_stream *raw = NULL;
    if (r->is_pipe) {
        raw = r->pipe;
        r->pipe = NULL;
    } else {
        TRY(store_open(r->store, r->path, -1, &source, err));
        TRY(file_counted_stream(r, source, &raw, err));
        source = NULL;
    }
    if (r->codec == CODEC_NONE) {
        *out = raw;
        return TARN_OK;
    }
    code = codec_stream_open(r->env, r->codec, raw, out, err);
    if (code != TARN_OK) {
        raw->close(raw);
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

static tarn_code open_text(tarn_file_reader *r, const tarn_file_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *stream = NULL;
    text_options options;
    TRY(file_text_options(&r->arena, o, r->kind, &options, err));
    if (str_ends_with(r->path, STR(".tsv")) && o->csv_delimiter == NULL) {
        options.delimiter = '\t';
    }
    if (r->reject != NULL) {
        options.reject = on_reject;
        options.reject_ctx = r;
    }
    TRY(open_text_stream(r, &stream, err));
    if (o->schema != NULL) {
        TRY(type_from_arrow(&r->arena, o->schema, &r->file_root, err));
    } else {
        TRY(text_infer(&r->arena, &stream, &options, 0, &r->file_root, err));
        options.scalars_as_text = true;
    }
    int32_t next_id = 1;
    r->file_root = type_assign_ids(&r->arena, r->file_root, &next_id);
    if (r->file_root == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(text_reader_open(r->env, stream, r->file_root, &options, &r->text, err));
    stream = NULL;
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* ---- what is asked of the rows ---- */

static tarn_code choose_rows(tarn_file_reader *r, const tarn_file_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t next_id = 1;
    const tarn_str *columns;
    int32_t n_columns;
    const tarn_expr *filter;
    project_options options;
    r->batch_rows = o->batch_rows;
    r->root = r->text != NULL ? r->file_root : type_assign_ids(&r->arena, r->file_root, &next_id);
    if (r->root == NULL) {
        return err_nomem(err);
    }
    TRY(api_names(&r->arena, o->columns, &columns, &n_columns, err));
    TRY(columns_select(&r->arena, r->root, columns, n_columns, false, &r->output, err));
    TRY(api_filter(&r->arena, o->where, &filter, err));
    if (filter != NULL) {
        TRY(expr_bind(&r->arena, filter, r->root, true, &r->filter, err));
    }
    if (r->text != NULL && r->output != r->root) {
        memset(&options, 0, sizeof options);
        options.file = r->name;
        options.whole = true;
        TRY(project_plan(&r->arena, r->root, r->output, &options, &r->to_output, err));
    }
done:
    return code;
}

static tarn_code open_reader(tarn_file_reader *r, const tarn_file_options *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(choose_kind(r, o, err));
    r->reject = o->reject;
    r->reject_ctx = o->reject_ctx;
    switch (r->kind) {
    case FILE_PARQUET:
        TRY(open_parquet(r, err));
        break;
    case FILE_AVRO:
        TRY(open_avro(r, err));
        break;
    case FILE_JSON:
        TRY(open_document(r, err));
        break;
    case FILE_NDJSON:
    case FILE_CSV:
        TRY(open_text(r, o, err));
        break;
    case FILE_TABLE:
        return err_set(err, TARN_INVALID, "format table is written only");
    }
    TRY(choose_rows(r, o, err));
done:
    return code;
}

tarn_code tarn_file_open(tarn_env *env, const char *path, const tarn_file_options *options,
                         tarn_file_reader **out, tarn_error *err) {
    API_ERROR(err);
    tarn_file_options defaults = TARN_FILE_OPTIONS_INIT;
    tarn_code code = TARN_OK;
    tarn_file_reader *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    r->total_bytes = -1;
    arena_init(&r->arena, env);
    r->is_pipe = store_is_pipe(path);
    r->name = strcmp(path, "-") == 0 ? "standard input" : arena_strdup(&r->arena, path);
    r->path = strcmp(path, "-") == 0 ? STR("-") : str_of(r->name);
    if (r->name == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (!r->is_pipe) {
        TRY(store_for_location(env, r->path, &r->store, err));
    }
    TRY(open_reader(r, options != NULL ? options : &defaults, err));
    *out = r;
    r = NULL;
done:
    tarn_file_close(r);
    return code;
}

void tarn_file_close(tarn_file_reader *r) {
    if (r == NULL) {
        return;
    }
    tarn_env *env = r->env;
    file_scan_close(r->scan);
    text_reader_close(r->text);
    parquet_close(r->parquet);
    avro_close(r->avro);
    if (r->source != NULL) {
        r->source->close(r->source);
    }
    if (r->pipe != NULL) {
        r->pipe->close(r->pipe);
    }
    store_close(r->store);
    env_free(env, r->selection);
    arena_release(&r->arena);
    env_free(env, r);
}

const char *tarn_file_reader_format(const tarn_file_reader *r) {
    static const char *const names[] = {"parquet", "avro", "ndjson", "csv", "json", "table"};
    return names[r->kind];
}

tarn_code tarn_file_schema(tarn_file_reader *r, struct ArrowSchema *out, tarn_error *err) {
    API_ERROR(err);
    return type_to_arrow(r->env, r->output, out, err);
}

void tarn_file_progress(const tarn_file_reader *r, int64_t *done_bytes, int64_t *total_bytes) {
    *done_bytes = r->text != NULL ? r->read_bytes : 0;
    *total_bytes = r->total_bytes;
}

/* ---- rows ---- */

/* A row that the reader could decode but not say; it has no bytes of its own to show. */
static tarn_code on_reject_row(void *ctx, int64_t row, tarn_str reason, tarn_error *err) {
    return on_reject(ctx, row + 1, STR(""), reason, err);
}

static tarn_code open_scan(tarn_file_reader *r, tarn_error *err) {
    tarn_file file;
    file_scan_options options;
    memset(&file, 0, sizeof file);
    memset(&options, 0, sizeof options);
    file.path = r->path;
    file.size_bytes = r->total_bytes;
    file.format = r->kind == FILE_PARQUET ? TARN_FORMAT_PARQUET : TARN_FORMAT_AVRO;
    options.wanted = r->output;
    options.root = r->root;
    options.filter = r->filter;
    options.by_name = true;
    options.parallel = true;
    options.batch_rows = r->batch_rows;
    options.reject = r->reject != NULL ? on_reject_row : NULL;
    options.reject_ctx = r;
    return file_scan_open(r->env, r->store, &file, NULL, &options, &r->scan, err);
}

static tarn_code filter_text(tarn_file_reader *r, tarn_batch *batch, tarn_batch *out,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch chosen;
    int64_t kept = batch_rows(batch);
    int64_t rows = kept;
    memset(&chosen, 0, sizeof chosen);
    if (r->filter != NULL) {
        uint8_t *bits = env_realloc(r->env, r->selection, bit_bytes(rows) + 8);
        if (bits == NULL) {
            return err_nomem(err);
        }
        r->selection = bits;
        TRY(expr_eval(r->env, r->filter, batch, bits, &kept, err));
    }
    if (kept == 0) {
        goto done;
    }
    if (r->to_output != NULL) {
        TRY(project_apply(r->to_output, r->env, batch, &chosen, err));
    } else {
        batch_move(&chosen, batch);
    }
    if (kept == rows) {
        batch_move(out, &chosen);
    } else {
        TRY(batch_filter(r->env, &chosen, r->selection, out, err));
    }
done:
    batch_release(&chosen);
    return code;
}

static tarn_code next_text(tarn_file_reader *r, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    while (batch_rows(out) == 0) {
        TRY(text_reader_next(r->text, &batch, err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        TRY(filter_text(r, &batch, out, err));
        batch_release(&batch);
    }
done:
    batch_release(&batch);
    return code;
}

tarn_code tarn_file_next(tarn_file_reader *r, struct ArrowArray *out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_batch batch;
    scan_counters counters;
    memset(&batch, 0, sizeof batch);
    memset(&counters, 0, sizeof counters);
    if (r->text != NULL) {
        TRY(next_text(r, &batch, err));
    } else if (r->kind != FILE_JSON) {
        if (r->scan == NULL) {
            TRY(open_scan(r, err));
        }
        TRY(file_scan_next(r->scan, &batch, &counters, err));
    }
    if (batch_rows(&batch) == 0) {
        batch_release(&batch);
        memset(out, 0, sizeof *out);
    } else {
        *out = batch.array;
    }
done:
    return code;
}

/* ---- what the format itself says ---- */

static tarn_code print_document(tarn_file_reader *r, tarn_buf *out, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, true, err);
    json_put_value(&w, r->document);
    return json_end(&w);
}

tarn_code tarn_file_native_schema(tarn_file_reader *r, char **text_out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_buf text;
    json_writer w;
    const tarn_metadata *metadata;
    buf_init(&text, r->env, 0);
    if (r->parquet != NULL) {
        TRY(parquet_print_schema(r->parquet, &text, err));
    } else if (r->avro != NULL) {
        TRY(buf_append_str(&text, avro_file_schema_json(r->avro), err));
    } else if (r->document != NULL) {
        TRY(print_document(r, &text, err));
        TRY(metadata_parse(&r->arena, buf_str(&text), r->name, &metadata, err));
        buf_reset(&text);
        json_begin(&w, &text, true, err);
        schema_put_json(metadata_schema(metadata), &w);
        TRY(json_end(&w));
    } else {
        TRY(type_text(r->file_root, &text, err));
    }
    code = api_give_text(r->env, &text, text_out, err);
done:
    buf_release(&text);
    return code;
}

static void put_avro_meta(tarn_file_reader *r, json_writer *w) {
    json_put_object(w);
    json_member_str(w, "format", STR("avro"));
    json_member_str(w, "codec", str_of(codec_name(avro_file_codec(r->avro))));
    json_put_name(w, STR("metadata"));
    json_put_object(w);
    for (size_t i = 0; i < avro_file_meta_count(r->avro); i++) {
        tarn_str key;
        tarn_str value;
        avro_file_meta_at(r->avro, i, &key, &value);
        json_put_name(w, key);
        json_put_string(w, value);
    }
    json_end_object(w);
    json_end_object(w);
}

tarn_code tarn_file_meta_json(tarn_file_reader *r, char **json_out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_buf text;
    json_writer w;
    buf_init(&text, r->env, 0);
    json_begin(&w, &text, true, err);
    if (r->parquet != NULL) {
        parquet_print_meta(r->parquet, &w);
        TRY(json_end(&w));
    } else if (r->avro != NULL) {
        put_avro_meta(r, &w);
        TRY(json_end(&w));
    } else if (r->document != NULL) {
        TRY(print_document(r, &text, err));
    } else {
        json_put_object(&w);
        json_member_str(&w, "format", str_of(tarn_file_reader_format(r)));
        json_member_str(&w, "compression", str_of(codec_name(r->codec)));
        json_end_object(&w);
        TRY(json_end(&w));
    }
    code = api_give_text(r->env, &text, json_out, err);
done:
    buf_release(&text);
    return code;
}
