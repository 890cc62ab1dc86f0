/* format/text/text_csv.c - CSV (RFC 4180) records straight into builders.
 *
 * A quote opens only as the first byte of a cell, so text_csv_cut and text_csv_record_end, which
 * look at quotes alone, find the same ends of records as decoding does, bad records included. */
#include "base/map.h"
#include "format/text/text_int.h"
#include "format/text/text_scan.h"

/* ---- ends of records ---- */

/* Behind the quote that closes the one before p; NULL: not in [p, end). A quote as the last byte
 * may be half of a doubled one, unless the text is whole. */
static const char *close_quote(const text_options *o, const char *p, const char *end, bool whole) {
    while (p < end) {
        if (o->escape == '\0') {
            p = memchr(p, o->quote, (size_t)(end - p));
            if (p == NULL) {
                return NULL;
            }
        } else if (*p == o->escape) {
            p += 2;
            continue;
        } else if (*p != o->quote) {
            p++;
            continue;
        }
        if (p + 1 == end) {
            return whole ? end : NULL;
        }
        if (p[1] != o->quote) {
            return p + 1;
        }
        p += 2;
    }
    return NULL;
}

/* The next quote from p on that opens a cell of the text that begins at start. */
static const char *find_open_quote(const text_options *o, const char *start, const char *p,
                                   const char *end) {
    while (p < end) {
        const char *q = memchr(p, o->quote, (size_t)(end - p));
        if (q == NULL || q == start || q[-1] == o->delimiter || q[-1] == '\n') {
            return q;
        }
        p = q + 1;
    }
    return NULL;
}

const char *text_csv_record_end(const text_options *o, const char *p, const char *end, bool whole) {
    const char *start = p;
    const char *line = NULL;
    for (;;) {
        if (line == NULL || line < p) {
            line = memchr(p, '\n', (size_t)(end - p));
        }
        const char *quote = find_open_quote(o, start, p, line != NULL ? line : end);
        if (quote == NULL) {
            return line != NULL ? line + 1 : NULL;
        }
        p = close_quote(o, quote + 1, end, whole);
        if (p == NULL) {
            return NULL;
        }
    }
}

size_t text_csv_cut(const text_options *o, const char *p, const char *end) {
    const char *start = p;
    const char *last = NULL;
    while (p != NULL && p < end) {
        const char *quote = find_open_quote(o, start, p, end);
        const char *line = text_last_line(p, quote != NULL ? quote : end);
        last = line != NULL ? line + 1 : last;
        p = quote != NULL ? close_quote(o, quote + 1, end, false) : NULL;
    }
    return last != NULL ? (size_t)(last - start) : 0;
}

/* ---- cells ---- */

/* [p, close) without doublings and escapes. */
static tarn_code unescape(const text_options *o, const char *p, const char *close,
                          tarn_buf *scratch, tarn_str *out, tarn_error *err) {
    buf_reset(scratch);
    tarn_code code = buf_reserve(scratch, (size_t)(close - p) + TEXT_PADDING, err);
    if (code != TARN_OK) {
        return code;
    }
    char *to = (char *)scratch->data;
    while (p < close) {
        if ((*p == o->quote || (o->escape != '\0' && *p == o->escape)) && p + 1 < close) {
            p++;
        }
        *to++ = *p++;
    }
    scratch->len = (size_t)(to - (char *)scratch->data);
    *out = buf_str(scratch);
    return TARN_OK;
}

static tarn_code quoted_cell(const text_options *o, const char **p, const char *end,
                             tarn_buf *scratch, text_cell *out, const char **why, tarn_error *err) {
    const char *start = *p + 1;
    const char *behind = close_quote(o, start, end, true);
    if (behind == NULL) {
        *why = "a quote was not closed";
        return TARN_INVALID;
    }
    const char *close = behind - 1;
    size_t len = (size_t)(close - start);
    out->quoted = true;
    out->text = str_make(start, len);
    out->lines = text_count_lines(start, close);
    bool crlf = *behind == '\r' && behind[1] == '\n';
    out->last = *behind == '\n' || crlf;
    if (!out->last && *behind != o->delimiter) {
        *why = "text stood behind a closing quote";
        return TARN_INVALID;
    }
    *p = behind + 1 + crlf;
    if (memchr(start, o->quote, len) != NULL ||
        (o->escape != '\0' && memchr(start, o->escape, len) != NULL)) {
        return unescape(o, start, close, scratch, &out->text, err);
    }
    return TARN_OK;
}

static inline void plain_cell(const text_options *o, const char **p, text_cell *out) {
    const char *start = *p;
    const char *stop = text_find_either(start, o->delimiter);
    out->quoted = false;
    out->last = *stop == '\n';
    out->lines = 0;
    *p = stop + 1;
    if (out->last && stop > start && stop[-1] == '\r') {
        stop--;
    }
    out->text = str_make(start, (size_t)(stop - start));
}

tarn_code text_csv_cell(const text_options *o, const char **p, const char *end, tarn_buf *scratch,
                        text_cell *out, const char **why, tarn_error *err) {
    if (**p == o->quote) {
        return quoted_cell(o, p, end, scratch, out, why, err);
    }
    plain_cell(o, p, out);
    return TARN_OK;
}

/* ---- records ---- */

/* A whole number that ends its cell. false: anything else; *p has not moved then. */
static inline bool read_integer(const text_decoder *d, const char **at, int64_t *out, bool *last) {
    const char *p = *at;
    if (d->plan->null_begins[(unsigned char)*p]) {
        return false;
    }
    bool negative = *p == '-';
    p += negative;
    const char *digits = p;
    uint64_t v = 0;
    while (text_is_digit(*p)) {
        v = v * 10 + (uint64_t)(*p - '0');
        p++;
    }
    ptrdiff_t n = p - digits;
    if (n == 0 || n > 18) {
        return false;
    }
    p += *p == '\r' && p[1] == '\n';
    *last = *p == '\n';
    if (!*last && *p != d->plan->options.delimiter) {
        return false;
    }
    *out = negative ? -(int64_t)v : (int64_t)v;
    *at = p + 1;
    return true;
}

static tarn_code put_cell(text_decoder *d, const text_node *node, tarn_builder *b,
                          const text_cell *cell) {
    if (!cell->quoted && text_is_null(d->plan, cell->text)) {
        return text_put_null(d, node, b);
    }
    bool nested = type_is_nested(node->type) || node->kind == TARN_VARIANT;
    return nested ? text_json_cell(d, node, b, cell->text) : text_put_text(d, node, b, cell->text);
}

/* One cell of a column; field -1: passed by. */
static inline tarn_code read_cell(text_decoder *d, int32_t field, bool *last) {
    const text_plan *plan = d->plan;
    const text_node *node = field >= 0 ? &plan->root.children[field] : NULL;
    tarn_builder *b = field >= 0 ? &d->rows.children[field] : NULL;
    int64_t v;
    if (node != NULL && (node->kind == TARN_INT || node->kind == TARN_LONG) &&
        read_integer(d, &d->p, &v, last)) {
        if (node->kind == TARN_LONG) {
            return text_append_i64(b, v, d->err);
        }
        if (v >= INT32_MIN && v <= INT32_MAX) {
            return text_append_i32(b, (int32_t)v, d->err);
        }
        return text_bad(d, node, "%lld was out of the range of an int", (long long)v);
    }
    text_cell cell;
    const char *why = NULL;
    tarn_code code = text_csv_cell(&plan->options, &d->p, d->end, &d->scratch, &cell, &why, d->err);
    if (code != TARN_OK) {
        return why != NULL ? text_bad(d, node, "%s", why) : code;
    }
    *last = cell.last;
    d->lines += cell.lines;
    return node != NULL ? put_cell(d, node, b, &cell) : TARN_OK;
}

static tarn_code bad_count(text_decoder *d, int32_t found, bool more) {
    return text_bad(d, NULL, "the record had %s%d cells and the file has %d columns",
                    more ? "more than " : "", (int)found, (int)d->plan->n_columns);
}

tarn_code text_csv_record(text_decoder *d) {
    const text_plan *plan = d->plan;
    bool last = false;
    for (int32_t i = 0; i < plan->n_columns; i++) {
        if (last) {
            return bad_count(d, i, false);
        }
        tarn_code code = read_cell(d, plan->columns[i], &last);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (!last) {
        return bad_count(d, plan->n_columns, true);
    }
    for (int32_t i = 0; i < plan->n_absent; i++) {
        int32_t field = plan->absent[i];
        tarn_code code = text_put_absent(d, &plan->root.children[field], &d->rows.children[field]);
        if (code != TARN_OK) {
            return code;
        }
    }
    return builder_close(&d->rows, d->err);
}

/* ---- the header ---- */

/* Cells of the record at *p, copied. */
static tarn_code read_cells(tarn_arena *arena, const text_options *o, const char *name,
                            const char **p, const char *end, tarn_str **cells, int32_t *n,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf scratch;
    text_cell cell = {.last = false};
    int32_t cap = 0;
    buf_init(&scratch, arena->env, 0);
    *cells = NULL;
    *n = 0;
    while (!cell.last) {
        const char *why = NULL;
        code = text_csv_cell(o, p, end, &scratch, &cell, &why, err);
        if (code != TARN_OK) {
            code = why != NULL ? err_set(err, code, "%s line 1: %s", name, why) : code;
            goto done;
        }
        if (*n == LIMIT_SCHEMA_FIELDS) {
            code = err_set(err, TARN_LIMIT, "%s line 1: there were more than %d columns", name,
                           LIMIT_SCHEMA_FIELDS);
            goto done;
        }
        if (*n == cap) {
            int32_t more = cap > 0 ? cap * 2 : 16;
            *cells = arena_grow(arena, *cells, (size_t)cap * sizeof **cells,
                                (size_t)more * sizeof **cells);
            cap = more;
        }
        if (*cells == NULL || ((*cells)[*n] = arena_str(arena, cell.text)).data == NULL) {
            code = err_nomem(err);
            goto done;
        }
        (*n)++;
    }
done:
    buf_release(&scratch);
    return code;
}

tarn_code text_csv_header(tarn_arena *arena, const text_options *o, const char *name,
                          const char **p, const char *end, tarn_str **names, int32_t *n,
                          tarn_error *err) {
    const char *start = *p;
    tarn_map seen;
    tarn_code code = read_cells(arena, o, name, p, end, names, n, err);
    if (code != TARN_OK) {
        return code;
    }
    if (o->no_header) { /* the record was looked at for its number of cells only */
        *p = start;
    }
    map_init(&seen, arena);
    for (int32_t i = 0; i < *n; i++) {
        tarn_str *column = &(*names)[i];
        if (o->no_header || column->len == 0) {
            *column = str_of(arena_printf(arena, "column%d", (int)i + 1));
        }
        bool added = false;
        if (column->data == NULL || map_put(&seen, *column, &added) == NULL) {
            return err_nomem(err);
        }
        if (!str_utf8_valid(*column)) {
            return err_set(err, TARN_INVALID, "%s line 1: the name of column %d was not UTF-8",
                           name, (int)i + 1);
        }
        if (!added) {
            return err_set(err, TARN_INVALID, "%s line 1: column %.*s was there twice", name,
                           STR_ARG(*column));
        }
    }
    return TARN_OK;
}

/* With a header columns go by name, without one by position. */
tarn_code text_csv_bind(text_plan *plan, const char *name, const tarn_str *names, int32_t n,
                        tarn_error *err) {
    const text_node *root = &plan->root;
    bool by_position = plan->options.no_header;
    plan->n_columns = by_position ? root->n_children : n;
    plan->columns = ARENA_ARRAY(&plan->arena, int32_t, (size_t)plan->n_columns + 1);
    plan->absent = ARENA_ARRAY(&plan->arena, int32_t, (size_t)root->n_children + 1);
    bool *given = ARENA_ARRAY(&plan->arena, bool, (size_t)root->n_children + 1);
    if (plan->columns == NULL || plan->absent == NULL || given == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < plan->n_columns; i++) {
        int32_t field = by_position ? i : text_plan_find(plan, root, names[i]);
        plan->columns[i] = field;
        if (field < 0 && !plan->options.ignore_unknown) {
            return err_set(err, TARN_INVALID, "%s line 1: column %.*s was not in the schema", name,
                           STR_ARG(names[i]));
        }
        if (field >= 0 && given[field]) {
            return err_set(err, TARN_INVALID, "%s line 1: column %.*s was there twice", name,
                           STR_ARG(names[i]));
        }
        if (field >= 0) {
            given[field] = true;
        }
    }
    for (int32_t i = 0; i < root->n_children; i++) {
        if (!given[i] && root->children[i].required && root->children[i].fallback == NULL &&
            !plan->has_kinds) {
            return err_set(err, TARN_INVALID,
                           "%s line 1: column %.*s was required and not in the header", name,
                           STR_ARG(root->children[i].name));
        }
        if (!given[i]) {
            plan->absent[plan->n_absent++] = i;
        }
    }
    return TARN_OK;
}
