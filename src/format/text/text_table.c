/* format/text/text_table.c - rows as aligned columns for people.
 *
 * The first rows are held back as text until their widths are known; then header, rule and those
 * rows go out, and later rows follow with the same widths. Cells are cut at MAX_WIDTH characters;
 * control characters never reach the terminal. Width is counted in code points. */
#include "format/text/text_int.h"
#include "format/text/text_write_int.h"

#define HELD_ROWS  1000
#define MAX_WIDTH  48
#define GAP        "  "
#define ELLIPSIS   "\xE2\x80\xA6"
#define RULE       "\xE2\x94\x80"
#define HELD_BYTES ((size_t)4 << 20)

typedef struct text_held {
    size_t len; /* bytes; cells lie one behind the other */
    int32_t width;
} text_held;

struct text_table {
    tarn_env *env;
    const text_column *root;
    tarn_str null_text;
    tarn_buf *out;
    tarn_buf cell;  /* the value at hand */
    tarn_buf texts; /* of the rows held back */
    tarn_buf helds; /* text_held of each of their cells */
    int64_t n_held;
    int32_t *widths;
    bool open; /* widths are settled, header and rule are out */
};

tarn_code text_table_new(tarn_env *env, const text_column *root, const text_options *options,
                         tarn_buf *out, text_table **table, tarn_error *err) {
    text_table *t = env_calloc(env, 1, sizeof *t);
    if (t == NULL) {
        return err_nomem(err);
    }
    t->env = env;
    t->root = root;
    t->null_text = options->n_null_texts > 0 ? options->null_texts[0] : STR("NULL");
    t->out = out;
    buf_init(&t->cell, env, 0);
    buf_init(&t->texts, env, 0);
    buf_init(&t->helds, env, 0);
    t->widths = env_calloc(env, (size_t)root->n_children + 1, sizeof *t->widths);
    if (t->widths == NULL) {
        text_table_free(t);
        return err_nomem(err);
    }
    *table = t;
    return TARN_OK;
}

void text_table_free(text_table *t) {
    if (t == NULL) {
        return;
    }
    buf_release(&t->cell);
    buf_release(&t->texts);
    buf_release(&t->helds);
    env_free(t->env, t->widths);
    env_free(t->env, t);
}

/* ---- cells ---- */

static bool is_timestamp(const tarn_type *type) {
    return type->kind >= TARN_TIMESTAMP && type->kind <= TARN_TIMESTAMPTZ_NS;
}

/* "2013-01-01T10:00:00.000000+00:00" as "2013-01-01 10:00:00Z"; times lose zeros only. */
static void shorten_time(tarn_buf *cell) {
    char *text = (char *)cell->data;
    size_t len = cell->len;
    bool zoned = len > 6 && memcmp(text + len - 6, "+00:00", 6) == 0;
    size_t t;
    len -= zoned ? 6 : 0;
    if (memchr(text, '.', len) != NULL) {
        while (text[len - 1] == '0') {
            len--;
        }
        len -= text[len - 1] == '.';
    }
    if (str_find_char(str_make(text, len), 'T', &t)) {
        text[t] = ' ';
    }
    if (zoned) {
        text[len++] = 'Z';
    }
    cell->len = len;
}

/* One code point of a cell, made harmless. */
static tarn_code put_shown(tarn_buf *out, uint32_t c, tarn_error *err) {
    char bytes[4];
    if (c == '\n' || c == '\r' || c == '\t') {
        return buf_append(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", 2, err);
    }
    bool control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 ||
                   (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    return buf_append(out, bytes, str_utf8_put(control ? '?' : c, bytes), err);
}

/* Appends text, cut to MAX_WIDTH characters. */
static tarn_code put_cut(tarn_buf *out, tarn_str text, int32_t *width, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t at = 0;
    size_t cut_at = out->len; /* where the ellipsis goes if it all turns out too wide */
    int32_t cut_width = 0;
    *width = 0;
    while (at < text.len) {
        uint32_t c = str_utf8_next(text, &at);
        int32_t wide = c == '\n' || c == '\r' || c == '\t' ? 2 : 1;
        if (*width + wide > MAX_WIDTH) {
            out->len = cut_at;
            *width = cut_width + 1;
            code = buf_append_str(out, STR(ELLIPSIS), err);
            goto done;
        }
        TRY(put_shown(out, c, err));
        *width += wide;
        if (*width < MAX_WIDTH) {
            cut_at = out->len;
            cut_width = *width;
        }
    }
done:
    return code;
}

static tarn_code put_value(text_table *t, const text_column *column, int64_t row, tarn_buf *out,
                           int32_t *width, tarn_error *err) {
    if (view_is_null(&column->view, row)) {
        return put_cut(out, t->null_text, width, err);
    }
    buf_reset(&t->cell);
    tarn_code code = text_put_plain(column, row, &t->cell, err);
    if (code != TARN_OK) {
        return code;
    }
    if (is_timestamp(column->type) || column->type->kind == TARN_TIME) {
        shorten_time(&t->cell);
    }
    return put_cut(out, buf_str(&t->cell), width, err);
}

/* ---- rows ---- */

static tarn_code put_spaces(tarn_buf *out, int32_t n, tarn_error *err) {
    if (n <= 0) {
        return TARN_OK;
    }
    tarn_code code = buf_reserve(out, (size_t)n, err);
    if (code == TARN_OK) {
        memset(out->data + out->len, ' ', (size_t)n);
        out->len += (size_t)n;
    }
    return code;
}

/* A cell in its column: numbers to the right. */
static tarn_code put_aligned(text_table *t, int32_t i, tarn_str text, int32_t width,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    bool right = text_is_number(t->root->children[i].type);
    bool last = i == t->root->n_children - 1;
    int32_t space = t->widths[i] - width;
    TRY(buf_append_str(t->out, i > 0 ? STR(GAP) : STR(""), err));
    TRY(put_spaces(t->out, right ? space : 0, err));
    TRY(buf_append_str(t->out, text, err));
    TRY(put_spaces(t->out, right || last ? 0 : space, err));
    code = last ? buf_append_char(t->out, '\n', err) : TARN_OK;
done:
    return code;
}

static tarn_code put_header(text_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < t->root->n_children; i++) {
        int32_t width;
        buf_reset(&t->cell);
        TRY(put_cut(&t->cell, t->root->children[i].name, &width, err));
        TRY(put_aligned(t, i, buf_str(&t->cell), width, err));
    }
    for (int32_t i = 0; i < t->root->n_children; i++) {
        TRY(buf_append_str(t->out, i > 0 ? STR(GAP) : STR(""), err));
        for (int32_t k = 0; k < t->widths[i]; k++) {
            TRY(buf_append_str(t->out, STR(RULE), err));
        }
    }
    code = buf_append_char(t->out, '\n', err);
done:
    return code;
}

tarn_code text_table_flush(text_table *t, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (t->open) {
        return TARN_OK;
    }
    t->open = true;
    for (int32_t i = 0; i < t->root->n_children; i++) {
        int32_t width;
        buf_reset(&t->cell);
        TRY(put_cut(&t->cell, t->root->children[i].name, &width, err));
        t->widths[i] = width > t->widths[i] ? width : t->widths[i];
    }
    TRY(put_header(t, err));
    size_t at = 0;
    const text_held *held = (const text_held *)(const void *)t->helds.data;
    for (int64_t row = 0; row < t->n_held; row++) {
        for (int32_t i = 0; i < t->root->n_children; i++, held++) {
            TRY(put_aligned(t, i, str_make(t->texts.data + at, held->len), held->width, err));
            at += held->len;
        }
    }
    buf_release(&t->texts);
    buf_release(&t->helds);
    t->n_held = 0;
done:
    return code;
}

static tarn_code hold_row(text_table *t, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < t->root->n_children; i++) {
        text_held held;
        size_t before = t->texts.len;
        memset(&held, 0, sizeof held);
        TRY(put_value(t, &t->root->children[i], row, &t->texts, &held.width, err));
        held.len = t->texts.len - before;
        t->widths[i] = held.width > t->widths[i] ? held.width : t->widths[i];
        TRY(buf_append(&t->helds, &held, sizeof held, err));
    }
    t->n_held++;
    if (t->n_held == HELD_ROWS || t->texts.len + t->helds.len > HELD_BYTES) {
        code = text_table_flush(t, err);
    }
done:
    return code;
}

tarn_code text_table_row(text_table *t, int64_t row, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!t->open) {
        return hold_row(t, row, err);
    }
    for (int32_t i = 0; i < t->root->n_children; i++) {
        int32_t width = 0;
        buf_reset(&t->texts);
        TRY(put_value(t, &t->root->children[i], row, &t->texts, &width, err));
        TRY(put_aligned(t, i, buf_str(&t->texts), width, err));
    }
done:
    return code;
}
