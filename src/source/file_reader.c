/* source/file_reader.c - one file of any format as batches.
 *
 * Parquet and Avro are opened once for their schema and metadata, and once more by read's file_scan
 * when rows are asked for, which prunes, projects and filters as it does for tables. Text formats
 * are decoded in full and then filtered and projected here. A document (table metadata JSON) has no
 * rows. Reading can begin behind what was read before: text is sought by bytes where it is not
 * packed, rows of the others are passed over. */
#include "source/file_reader.h"

#include "base/limits.h"
#include "format/parquet/parquet_print.h"
#include "format/puffin/puffin.h"
#include "iceberg/metadata.h"
#include "read/read_columns.h"
#include "read/scan.h"
#include "source/file_stream.h"
#include "source/kind_column.h"
#include "store/store_path.h"
#include "store/store_stdio.h"

struct file_reader {
    tarn_env *env;
    tarn_arena arena;
    tarn_store *store;
    tarn_str path;
    const char *name;
    bool is_pipe;    /* standard input, a named pipe, a device */
    io_stream *pipe; /* until a text reader or a store in memory has it */
    file_kind kind;
    codec_kind codec; /* around a text format */
    file_position start;
    int64_t total_bytes;
    int64_t read_bytes; /* of a text file, before unpacking */
    /* one of these */
    io_source *source;
    parquet_file *parquet;
    avro_file *avro;
    text_reader *text;
    const json_value *document; /* table metadata as it is written, unknown members too */
    bool is_puffin;             /* document is its footer */
    const tarn_type *file_root; /* as the format gives it */
    const tarn_type *root;      /* the same with ids */
    const tarn_type *output;
    const tarn_expr *filter;
    tarn_projection *to_output; /* NULL: all columns, or the scan does it */
    int64_t batch_rows;
    file_scan *scan;
    int64_t rows_given; /* of the scan, from the file's beginning */
    uint8_t *selection;
    int32_t kind_at; /* of root's columns; -1: none */
    tarn_buf kinds;  /* of a scan's batch */
    const tarn_str *keys;
    int32_t n_keys;
    tarn_file_options rejects; /* the function for them alone */
};

static tarn_code read_head(file_reader *r, char head[64], size_t *len, tarn_error *err) {
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
static tarn_code load_pipe(file_reader *r, tarn_error *err) {
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

static tarn_code choose_kind(file_reader *r, const file_request *q, tarn_error *err) {
    tarn_code code = TARN_OK;
    char bytes[64];
    size_t len = 0;
    tarn_str head = q->head;
    if (r->is_pipe && r->pipe == NULL) {
        bool ended;
        TRY(store_pipe_open(r->env, r->path.data, &r->pipe, err));
        TRY(store_pipe_look(r->pipe, STORE_PIPE_HEAD, -1, &head, &ended, err));
    } else if (!r->is_pipe) {
        TRY(read_head(r, bytes, &len, err));
        head = str_make(bytes, len);
    }
    TRY(file_kind_choose(r->path, q->options, head, &r->kind, &r->codec, err));
    r->is_puffin = str_starts_with(head, STR("PFA1")) || str_ends_with(r->path, STR(".puffin"));
    if (r->is_pipe && (!file_kind_is_text(r->kind) || r->kind == FILE_JSON)) {
        TRY(load_pipe(r, err));
    }
done:
    return code;
}

/* ---- opening by kind ---- */

static tarn_code open_parquet(file_reader *r, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(store_open(r->store, r->path, -1, &r->source, err));
    TRY(parquet_open(r->env, r->source, NULL, &r->parquet, err));
    r->file_root = parquet_file_schema(r->parquet)->root;
done:
    return code;
}

static tarn_code open_avro(file_reader *r, tarn_error *err) {
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

/* Of a Puffin file the footer is shown. */
static tarn_code open_puffin(file_reader *r, tarn_error *err) {
    io_source *source = NULL;
    puffin_footer footer;
    tarn_code code = store_open(r->store, r->path, -1, &source, err);
    if (code != TARN_OK) {
        return code;
    }
    code = puffin_read_footer(&r->arena, source, &footer, err);
    if (code == TARN_OK) {
        r->document = footer.document;
        r->file_root = type_struct(&r->arena, NULL, 0);
        code = r->file_root != NULL ? TARN_OK : err_nomem(err);
    }
    source->close(source);
    return code;
}

/* Any JSON document is shown; only its schema asks that it follows the specification. */
static tarn_code open_document(file_reader *r, tarn_error *err) {
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

static tarn_code on_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                           tarn_error *err) {
    file_reader *r = ctx;
    return file_tell_reject(&r->rejects, r->name, line, raw, reason, err);
}

static tarn_code open_text_stream(file_reader *r, bool whole, io_stream **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    file_stream_part part = {r->codec, whole ? 0 : r->start.head_bytes, whole ? 0 : r->start.bytes,
                             &r->read_bytes};
    if (r->is_pipe) {
        TRY(file_stream_pipe(r->pipe, &part, out, err));
        r->pipe = NULL;
        return TARN_OK;
    }
    TRY(store_open(r->store, r->path, -1, &source, err));
    TRY(file_stream_open(source, &part, out, err));
    source = NULL;
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

/* The columns that the beginning suggests; for a file that is read on, its beginning too. */
static tarn_code infer_text(file_reader *r, const text_options *options, io_stream **stream,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *sample = NULL;
    if (r->start.bytes == 0) {
        return text_infer(&r->arena, stream, options, 0, &r->file_root, err);
    }
    if (r->is_pipe) {
        return err_set(err, TARN_INVALID, "%s cannot be read twice: its columns must be given",
                       r->name);
    }
    TRY(open_text_stream(r, true, &sample, err));
    TRY(text_infer(&r->arena, &sample, options, 0, &r->file_root, err));
done:
    if (sample != NULL) {
        sample->close(sample);
    }
    r->read_bytes = 0;
    return code;
}

/* The schema's columns, and the one of row kinds where it has none. */
static tarn_code with_kind_column(file_reader *r, const char *name, tarn_error *err) {
    const tarn_type *root = r->file_root;
    if (name == NULL || type_child(root, str_of(name)) != NULL) {
        return TARN_OK;
    }
    tarn_field *fields = ARENA_ARRAY(&r->arena, tarn_field, (size_t)root->n_fields + 1);
    tarn_str kept = arena_str(&r->arena, str_of(name));
    if (fields == NULL || kept.data == NULL) {
        return err_nomem(err);
    }
    memcpy(fields, root->fields, (size_t)root->n_fields * sizeof *fields);
    fields[root->n_fields].id = TARN_NO_ID;
    fields[root->n_fields].name = kept;
    fields[root->n_fields].type = type_primitive(TARN_STRING);
    r->file_root = type_struct(&r->arena, fields, root->n_fields + 1);
    return r->file_root != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code find_kind_column(file_reader *r, const char *name, tarn_error *err) {
    r->kind_at = -1;
    for (int32_t i = 0; name != NULL && i < r->file_root->n_fields; i++) {
        if (str_is(r->file_root->fields[i].name, name)) {
            r->kind_at = i;
        }
    }
    if (name == NULL) {
        return TARN_OK;
    }
    if (r->kind_at < 0) {
        return err_set(err, TARN_INVALID, "%s has no column %s, which says what rows do", r->name,
                       name);
    }
    tarn_kind kind = r->file_root->fields[r->kind_at].type->kind;
    return kind == TARN_STRING ? TARN_OK
                               : err_set(err, TARN_INVALID,
                                         "%s: column %s, which says what rows do, was %s, not "
                                         "string",
                                         r->name, name, type_kind_name(kind));
}

static tarn_code open_text(file_reader *r, const file_request *q, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_stream *stream = NULL;
    text_options options;
    const tarn_file_options *o = q->options;
    TRY(file_text_options(&r->arena, o, r->kind, &options, err));
    if (str_ends_with(r->path, STR(".tsv")) && o->csv_delimiter == NULL) {
        options.delimiter = '\t';
    }
    options.debezium = q->debezium;
    options.keys = q->keys;
    options.n_keys = q->n_keys;
    options.first_line = r->start.lines - r->start.head_lines;
    if (o->reject != NULL) {
        options.reject = on_reject;
        options.reject_ctx = r;
    }
    TRY(open_text_stream(r, false, &stream, err));
    if (q->root != NULL) {
        r->file_root = q->root;
        TRY(with_kind_column(r, q->kind_column, err));
    } else if (o->schema != NULL) {
        TRY(type_from_arrow(&r->arena, o->schema, &r->file_root, err));
        TRY(type_defaults_from_arrow(&r->arena, o->schema, r->file_root, &r->file_root, err));
        TRY(with_kind_column(r, q->kind_column, err));
    } else {
        TRY(infer_text(r, &options, &stream, err));
        options.scalars_as_text = true;
    }
    TRY(find_kind_column(r, q->kind_column, err));
    options.kind_column = r->kind_at + 1;
    int32_t next_id = 1;
    r->file_root = type_assign_ids(&r->arena, r->file_root, &next_id);
    if (r->file_root == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(text_reader_open(r->env, stream, r->file_root, &options, &r->text, err));
    stream = NULL;
    r->file_root = text_reader_type(r->text);
done:
    if (stream != NULL) {
        stream->close(stream);
    }
    return code;
}

/* ---- what is asked of the rows ---- */

/* Without the column of row kinds, which the reader keeps for itself. */
static tarn_code drop_kind_column(file_reader *r, tarn_error *err) {
    const tarn_type *all = r->output;
    tarn_field *fields = ARENA_ARRAY(&r->arena, tarn_field, (size_t)all->n_fields + 1);
    int32_t n = 0;
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < all->n_fields; i++) {
        if (all->fields[i].id != r->root->fields[r->kind_at].id) {
            fields[n++] = all->fields[i];
        }
    }
    r->output = type_struct(&r->arena, fields, n);
    return r->output != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code choose_rows(file_reader *r, const file_request *q, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t next_id = 1;
    project_options options;
    r->batch_rows = q->options->batch_rows;
    r->root = r->text != NULL ? r->file_root : type_assign_ids(&r->arena, r->file_root, &next_id);
    if (r->root == NULL) {
        return err_nomem(err);
    }
    TRY(columns_select(&r->arena, r->root, q->columns, q->n_columns, false, &r->output, err));
    if (r->kind_at >= 0) {
        TRY(drop_kind_column(r, err));
    }
    if (q->where != NULL) {
        TRY(expr_bind(&r->arena, q->where, r->root, true, &r->filter, err));
    }
    if ((r->text != NULL || r->kind_at >= 0) && r->output != r->root) {
        memset(&options, 0, sizeof options);
        options.file = r->name;
        options.whole = true;
        TRY(project_plan(&r->arena, r->root, r->output, &options, &r->to_output, err));
    }
done:
    return code;
}

static tarn_code open_reader(file_reader *r, const file_request *q, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(choose_kind(r, q, err));
    if (q->debezium && r->kind != FILE_NDJSON) {
        return err_set(err, TARN_INVALID, "%s is %s, and change envelopes are read from JSON lines",
                       r->name, file_kind_name(r->kind));
    }
    switch (r->kind) {
    case FILE_PARQUET:
        TRY(open_parquet(r, err));
        break;
    case FILE_AVRO:
        TRY(open_avro(r, err));
        break;
    case FILE_JSON:
        TRY(r->is_puffin ? open_puffin(r, err) : open_document(r, err));
        break;
    case FILE_NDJSON:
    case FILE_CSV:
        TRY(open_text(r, q, err));
        break;
    case FILE_TABLE:
        return err_set(err, TARN_INVALID, "format table is written only");
    }
    if (r->text == NULL && r->document == NULL) {
        TRY(find_kind_column(r, q->kind_column, err));
    }
    TRY(choose_rows(r, q, err));
done:
    return code;
}

tarn_code file_reader_open(tarn_env *env, const char *path, const file_request *q,
                           file_reader **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_reader *r = env_calloc(env, 1, sizeof *r);
    if (r == NULL) {
        return err_nomem(err);
    }
    r->env = env;
    r->total_bytes = -1;
    r->kind_at = -1;
    buf_init(&r->kinds, env, 0);
    arena_init(&r->arena, env);
    if (q->start != NULL) {
        r->start = *q->start;
    }
    r->rejects.reject = q->options->reject;
    r->rejects.reject_ctx = q->options->reject_ctx;
    r->keys = q->keys;
    r->n_keys = q->n_keys;
    r->is_pipe = q->pipe != NULL || store_is_pipe(path);
    r->pipe = q->pipe;
    r->name = strcmp(path, "-") == 0 ? "standard input" : arena_strdup(&r->arena, path);
    r->path = strcmp(path, "-") == 0 ? STR("-") : str_of(r->name);
    if (r->name == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (!r->is_pipe) {
        TRY(store_for_location(env, r->path, &r->store, err));
    }
    TRY(open_reader(r, q, err));
    *out = r;
    r = NULL;
done:
    if (r != NULL && r->pipe == q->pipe) {
        r->pipe = NULL; /* still the caller's */
    }
    file_reader_close(r);
    return code;
}

void file_reader_close(file_reader *r) {
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
    buf_release(&r->kinds);
    arena_release(&r->arena);
    env_free(env, r);
}

const char *file_reader_format(const file_reader *r) {
    return file_kind_name(r->kind);
}

const tarn_type *file_reader_type(const file_reader *r) {
    return r->output;
}

int64_t file_reader_taken(const file_reader *r) {
    bool seeks = r->codec == CODEC_NONE && !r->is_pipe;
    if (r->text == NULL) {
        return r->rows_given > r->start.rows ? r->total_bytes : 0;
    }
    int64_t done = __atomic_load_n(&r->read_bytes, __ATOMIC_RELAXED);
    int64_t passed = seeks ? r->start.bytes - r->start.head_bytes : 0;
    return done > passed ? done - passed : 0;
}

void file_reader_progress(const file_reader *r, int64_t *done_bytes, int64_t *total_bytes) {
    *done_bytes = r->text != NULL ? __atomic_load_n(&r->read_bytes, __ATOMIC_RELAXED) : 0;
    *total_bytes = r->total_bytes;
}

void file_reader_position(const file_reader *r, file_position *out) {
    int64_t bytes;
    int64_t lines;
    int64_t head_bytes;
    int64_t head_lines;
    *out = r->start;
    out->rows = r->rows_given > r->start.rows ? r->rows_given : r->start.rows;
    if (r->text == NULL) {
        return;
    }
    text_reader_position(r->text, &bytes, &lines);
    text_reader_head(r->text, &head_bytes, &head_lines);
    if (r->start.bytes == 0) {
        *out = (file_position){0, bytes, lines, head_bytes, head_lines};
    } else if (bytes > head_bytes) { /* the head was read again */
        out->bytes += bytes - head_bytes;
        out->lines += lines - head_lines;
    }
}

/* ---- rows ---- */

/* A row that was decoded but cannot be said (INT96 beyond a timestamp): it has no bytes to show. */
static tarn_code on_reject_row(void *ctx, int64_t row, tarn_str reason, tarn_error *err) {
    return on_reject(ctx, row + 1, STR(""), reason, err);
}

static tarn_code open_scan(file_reader *r, tarn_error *err) {
    tarn_file file;
    file_scan_options options;
    memset(&file, 0, sizeof file);
    memset(&options, 0, sizeof options);
    file.path = r->path;
    file.size_bytes = r->total_bytes;
    file.format = r->kind == FILE_PARQUET ? TARN_FORMAT_PARQUET : TARN_FORMAT_AVRO;
    options.wanted = r->kind_at >= 0 ? r->root : r->output;
    options.root = r->root;
    options.filter = r->filter;
    options.by_name = true;
    options.parallel = true;
    options.batch_rows = r->batch_rows;
    options.reject = r->rejects.reject != NULL ? on_reject_row : NULL;
    options.reject_ctx = r;
    return file_scan_open(r->env, r->store, &file, NULL, &options, &r->scan, err);
}

static tarn_code filter_text(file_reader *r, tarn_batch *batch, tarn_batch *out, tarn_error *err) {
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

static tarn_code next_text(file_reader *r, tarn_batch *out, tarn_error *err) {
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

/* Rows of a file that is read on, without those that were read before. */
static tarn_code pass_rows(file_reader *r, tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch rest;
    int64_t rows = batch_rows(batch);
    int64_t before = r->start.rows - r->rows_given;
    memset(&rest, 0, sizeof rest);
    r->rows_given += rows;
    if (before <= 0) {
        return TARN_OK;
    }
    if (before < rows) {
        TRY(batch_slice(r->env, batch, before, rows - before, &rest, err));
    }
    batch_release(batch);
    batch_move(batch, &rest);
done:
    return code;
}

static tarn_code on_bad_kind(void *ctx, int64_t row, tarn_str raw, tarn_str reason,
                             tarn_error *err) {
    file_reader *r = ctx;
    return on_reject(r, r->rows_given + row + 1, raw, reason, err);
}

static tarn_code take_kinds(file_reader *r, tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch rows;
    const kind_rules rules = {r->kind_at, r->keys, r->n_keys, on_bad_kind, r};
    int64_t given = r->rows_given;
    memset(&rows, 0, sizeof rows);
    r->rows_given = given - batch_rows(batch);
    code = kind_column_read(r->env, batch, &rules, &r->kinds, err);
    r->rows_given = given;
    if (code == TARN_OK && r->kind_at >= 0 && batch_rows(batch) > 0) {
        TRY(project_apply(r->to_output, r->env, batch, &rows, err));
        batch_release(batch);
        batch_move(batch, &rows);
    }
done:
    return code;
}

static tarn_code next_scanned(file_reader *r, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_counters counters;
    memset(&counters, 0, sizeof counters);
    if (r->scan == NULL) {
        TRY(open_scan(r, err));
    }
    while (batch_rows(out) == 0) {
        batch_release(out);
        TRY(file_scan_next(r->scan, out, &counters, err));
        if (batch_rows(out) == 0) {
            break;
        }
        TRY(pass_rows(r, out, err));
        if ((r->kind_at >= 0 || r->n_keys > 0) && batch_rows(out) > 0) {
            TRY(take_kinds(r, out, err));
        }
    }
    if (batch_rows(out) == 0 && r->rows_given < r->start.rows) {
        code = err_set(err, TARN_INVALID,
                       "%s has %lld rows, and %lld were read before: it is not the same file",
                       r->name, (long long)r->rows_given, (long long)r->start.rows);
    }
done:
    return code;
}

tarn_code file_reader_next(file_reader *r, tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    memset(out, 0, sizeof *out);
    if (r->text != NULL) {
        code = next_text(r, &batch, err);
    } else if (r->document == NULL) {
        code = next_scanned(r, &batch, err);
    }
    if (code == TARN_OK && batch_rows(&batch) > 0) {
        batch_move(out, &batch);
    }
    batch_release(&batch);
    return code;
}

const uint8_t *file_reader_kinds(const file_reader *r) {
    return r->text != NULL ? text_reader_kinds(r->text) : r->kind_at >= 0 ? r->kinds.data : NULL;
}

/* ---- what the format itself says ---- */

static tarn_code print_document(file_reader *r, tarn_buf *out, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, true, err);
    json_put_value(&w, r->document);
    return json_end(&w);
}

tarn_code file_reader_schema_text(file_reader *r, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_writer w;
    const tarn_metadata *metadata;
    if (r->parquet != NULL) {
        TRY(parquet_print_schema(r->parquet, out, err));
    } else if (r->avro != NULL) {
        TRY(buf_append_str(out, avro_file_schema_json(r->avro), err));
    } else if (r->document != NULL) {
        TRY(print_document(r, out, err));
        TRY(metadata_parse(&r->arena, buf_str(out), r->name, &metadata, err));
        buf_reset(out);
        json_begin(&w, out, true, err);
        schema_put_json(metadata_schema(metadata), &w);
        TRY(json_end(&w));
    } else {
        TRY(type_text(r->file_root, out, err));
    }
done:
    return code;
}

static void put_avro_meta(file_reader *r, json_writer *w) {
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

tarn_code file_reader_meta_json(file_reader *r, tarn_buf *out, tarn_error *err) {
    json_writer w;
    if (r->document != NULL) {
        return print_document(r, out, err);
    }
    json_begin(&w, out, true, err);
    if (r->parquet != NULL) {
        parquet_print_meta(r->parquet, &w);
    } else if (r->avro != NULL) {
        put_avro_meta(r, &w);
    } else {
        json_put_object(&w);
        json_member_str(&w, "format", str_of(file_reader_format(r)));
        json_member_str(&w, "compression", str_of(codec_name(r->codec)));
        json_end_object(&w);
    }
    return json_end(&w);
}
