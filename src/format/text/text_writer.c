/* format/text/text_writer.c - batches as NDJSON, CSV, or a table for people.
 *
 * Rows are formatted into one buffer, which goes to the sink when it is large. In CSV a null and an
 * empty string differ: what would be read as a null is quoted, and nulls never are. */
#include "format/text/text_int.h"
#include "format/text/text_write_int.h"

#define FLUSH_BYTES ((size_t)256 << 10)

struct text_writer {
    tarn_env *env;
    tarn_arena arena;
    text_options options;
    text_column root;
    io_sink *sink;
    tarn_buf out;
    text_table *table;
    int64_t rows; /* that were given before the batch at hand */
    bool begun;
    bool special[256]; /* CSV: bytes that may stand only between quotes */
};

tarn_code text_writer_new(tarn_env *env, const tarn_type *root, const text_options *options,
                          io_sink *sink, text_writer **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    text_writer *w = env_calloc(env, 1, sizeof *w);
    if (w == NULL) {
        return err_nomem(err);
    }
    w->env = env;
    w->sink = sink;
    arena_init(&w->arena, env);
    buf_init(&w->out, env, 0);
    TRY(text_options_check(options, &w->options, err));
    tarn_str *null_text = ARENA_ARRAY(&w->arena, tarn_str, 1);
    if (null_text == NULL) {
        code = err_nomem(err);
        goto done;
    }
    *null_text = arena_str(&w->arena, w->options.null_texts[0]);
    if (null_text->data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    w->special[(unsigned char)w->options.delimiter] = true;
    w->special[(unsigned char)w->options.quote] = true;
    w->special[(unsigned char)w->options.escape] = w->options.escape != '\0';
    w->special['\n'] = true;
    w->special['\r'] = true;
    w->options.n_null_texts = options->n_null_texts > 0 ? 1 : 0;
    w->options.null_texts = null_text;
    TRY(text_column_init(&w->root, &w->arena, root, err));
    if (options->kind == TEXT_TABLE) {
        TRY(text_table_new(env, &w->root, &w->options, &w->out, &w->table, err));
    }
    *out = w;
    w = NULL;
done:
    text_writer_free(w);
    return code;
}

void text_writer_free(text_writer *w) {
    if (w == NULL) {
        return;
    }
    text_table_free(w->table);
    buf_release(&w->out);
    arena_release(&w->arena);
    env_free(w->env, w);
}

/* ---- NDJSON ---- */

static tarn_code put_json_row(text_writer *w, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append_char(&w->out, '{', err));
    for (int32_t i = 0; i < w->root.n_children; i++) {
        const text_column *column = &w->root.children[i];
        TRY(buf_append_str(&w->out, column->member, err));
        TRY(text_put_json(column, row, &w->out, err));
    }
    code = buf_append_str(&w->out, STR("}\n"), err);
done:
    return code;
}

/* ---- CSV ---- */

static bool needs_quotes(const text_writer *w, tarn_str cell, bool first) {
    const text_options *o = &w->options;
    bool special = false;
    for (size_t i = 0; i < cell.len; i++) {
        special |= w->special[(unsigned char)cell.data[i]];
    }
    if (special) {
        return true;
    }
    /* A reader may skip a blank line, take the empty text for null, or three bytes for a mark. */
    return cell.len == 0 || str_eq(cell, o->null_texts[0]) ||
           (first && str_starts_with(cell, STR("\xEF\xBB\xBF")));
}

/* Puts quotes around what was appended from start on, and doubles those within. */
static tarn_code quote_cell(const text_options *o, tarn_buf *out, size_t start, tarn_error *err) {
    size_t more = 2;
    for (size_t i = start; i < out->len; i++) {
        char c = (char)out->data[i];
        more += c == o->quote || (o->escape != '\0' && c == o->escape);
    }
    tarn_code code = buf_reserve(out, more, err);
    if (code != TARN_OK) {
        return code;
    }
    size_t from = out->len;
    size_t to = out->len + more;
    out->len = to;
    out->data[--to] = (uint8_t)o->quote;
    while (from > start) {
        char c = (char)out->data[--from];
        out->data[--to] = (uint8_t)c;
        if (c == o->quote) {
            out->data[--to] = (uint8_t)o->quote;
        } else if (o->escape != '\0' && c == o->escape) {
            out->data[--to] = (uint8_t)o->escape;
        }
    }
    out->data[start] = (uint8_t)o->quote;
    return TARN_OK;
}

static tarn_code close_cell(text_writer *w, size_t start, bool first, tarn_error *err) {
    tarn_str cell = str_make(w->out.data + start, w->out.len - start);
    return needs_quotes(w, cell, first) ? quote_cell(&w->options, &w->out, start, err) : TARN_OK;
}

static tarn_code put_csv_header(text_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < w->root.n_children; i++) {
        if (i > 0) {
            TRY(buf_append_char(&w->out, w->options.delimiter, err));
        }
        size_t start = w->out.len;
        TRY(buf_append_str(&w->out, w->root.children[i].name, err));
        TRY(close_cell(w, start, i == 0, err));
    }
    code = buf_append_char(&w->out, '\n', err);
done:
    return code;
}

static tarn_code put_csv_row(text_writer *w, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < w->root.n_children; i++) {
        const text_column *column = &w->root.children[i];
        if (i > 0) {
            TRY(buf_append_char(&w->out, w->options.delimiter, err));
        }
        size_t start = w->out.len;
        if (view_is_null(&column->view, row)) {
            TRY(buf_append_str(&w->out, w->options.null_texts[0], err));
        } else {
            TRY(text_put_plain(column, row, &w->out, err));
            TRY(close_cell(w, start, i == 0, err));
        }
    }
    code = buf_append_char(&w->out, '\n', err);
done:
    return code;
}

/* ---- both ---- */

static tarn_code drain(text_writer *w, size_t at_least, tarn_error *err) {
    if (w->out.len < at_least || w->out.len == 0) {
        return TARN_OK;
    }
    tarn_code code = io_write(w->sink, w->out.data, w->out.len, err);
    buf_reset(&w->out);
    return code;
}

static tarn_code begin(text_writer *w, tarn_error *err) {
    if (w->begun) {
        return TARN_OK;
    }
    w->begun = true;
    return w->options.kind == TEXT_CSV && !w->options.no_header ? put_csv_header(w, err) : TARN_OK;
}

tarn_code text_writer_write(text_writer *w, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t rows = batch_rows(batch);
    TRY(begin(w, err));
    if (rows > 0) {
        text_column_bind(&w->root, batch);
    }
    for (int64_t row = 0; row < rows; row++) {
        code = w->options.kind == TEXT_NDJSON ? put_json_row(w, row, err)
               : w->options.kind == TEXT_CSV  ? put_csv_row(w, row, err)
                                              : text_table_row(w->table, row, err);
        if (code != TARN_OK) {
            code = err_add(err, code, "row %lld of the text", (long long)(w->rows + row + 1));
            goto done;
        }
        TRY(drain(w, FLUSH_BYTES, err));
    }
    w->rows += rows;
done:
    return code;
}

tarn_code text_writer_flush(text_writer *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(begin(w, err));
    if (w->table != NULL) {
        TRY(text_table_flush(w->table, err));
    }
    code = drain(w, 0, err);
done:
    return code;
}
