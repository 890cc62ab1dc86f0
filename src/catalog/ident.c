/* catalog/ident.c - names of tables and namespaces: from the text that people type and back, the
 * checks that hold in every catalog, and names as parts of paths. */
#include "base/limits.h"
#include "catalog/catalog_int.h"

static tarn_code check_part(tarn_str part, const char *what, tarn_error *err) {
    if (part.len == 0) {
        return err_set(err, TARN_INVALID, "%s was empty", what);
    }
    if (part.len > LIMIT_NAME_BYTES) {
        return err_set(err, TARN_LIMIT, "%s of %zu bytes was longer than %d: %.*s", what, part.len,
                       LIMIT_NAME_BYTES, STR_ARG(part));
    }
    if (!str_utf8_valid(part)) {
        return err_set(err, TARN_INVALID, "%s was not UTF-8: %.*s", what, STR_ARG(part));
    }
    for (size_t i = 0; i < part.len; i++) {
        if ((unsigned char)part.data[i] < 0x20 || part.data[i] == 0x7f) {
            return err_set(err, TARN_INVALID, "%s held a control character: %.*s", what,
                           STR_ARG(part));
        }
    }
    return TARN_OK;
}

tarn_code ident_check_namespace(const tarn_ident *ident, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < ident->n_levels && code == TARN_OK; i++) {
        code = check_part(ident->levels[i], "a namespace's name", err);
    }
    return code;
}

tarn_code ident_check_table(const tarn_ident *ident, tarn_error *err) {
    tarn_code code = ident_check_namespace(ident, err);
    return code != TARN_OK ? code : check_part(ident->name, "a table's name", err);
}

/* One part of text, from *at to its dot or the end: plain, or quoted by ` or " with the quote
 * doubled inside. */
static tarn_code parse_part(tarn_str text, size_t *at, char *to, tarn_str *part, tarn_error *err) {
    char quote = *at < text.len ? text.data[*at] : 0;
    bool quoted = quote == '`' || quote == '"';
    size_t i = *at + (quoted ? 1 : 0);
    size_t len = 0;
    bool closed = false;
    while (i < text.len && !closed && (quoted || text.data[i] != '.')) {
        char c = text.data[i++];
        if (quoted && c == quote) {
            closed = i >= text.len || text.data[i] != quote;
            i += closed ? 0 : 1;
        } else if (!quoted && (c == '`' || c == '"')) {
            return err_set(err, TARN_INVALID, "name %.*s had a quote inside a part", STR_ARG(text));
        }
        if (!closed) {
            to[len++] = c;
        }
    }
    if (quoted && !closed) {
        return err_set(err, TARN_INVALID, "name %.*s had an open quote", STR_ARG(text));
    }
    if (i < text.len && text.data[i] != '.') {
        return err_set(err, TARN_INVALID, "name %.*s had something after a quote", STR_ARG(text));
    }
    *part = str_make(to, len);
    *at = i;
    return TARN_OK;
}

tarn_code ident_parse(tarn_arena *arena, tarn_str text, bool is_namespace, tarn_ident *out,
                      tarn_error *err) {
    tarn_ident ident = {0};
    size_t n_max = 1;
    tarn_code code = TARN_OK;
    if (text.len == 0) {
        *out = ident;
        return is_namespace ? TARN_OK : err_set(err, TARN_INVALID, "a table's name was empty");
    }
    if (text.len > (size_t)LIMIT_NAME_BYTES * 8) {
        return err_set(err, TARN_LIMIT, "name of %zu bytes was too long", text.len);
    }
    for (size_t i = 0; i < text.len; i++) {
        n_max += text.data[i] == '.';
    }
    tarn_str *parts = ARENA_ARRAY(arena, tarn_str, n_max);
    char *chars = arena_alloc(arena, text.len + 1);
    if (parts == NULL || chars == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    size_t at = 0;
    for (bool more = true; more && code == TARN_OK;) {
        code = parse_part(text, &at, chars, &parts[n], err);
        if (code == TARN_OK) {
            chars += parts[n++].len;
            more = at < text.len;
            at++; /* past the dot */
        }
    }
    if (code != TARN_OK) {
        return code;
    }
    ident.levels = parts;
    ident.n_levels = is_namespace ? n : n - 1;
    ident.name = is_namespace ? STR_NULL : parts[n - 1];
    code = is_namespace ? ident_check_namespace(&ident, err) : ident_check_table(&ident, err);
    if (code == TARN_OK) {
        *out = ident;
    }
    return code;
}

static bool needs_quotes(tarn_str part) {
    for (size_t i = 0; i < part.len; i++) {
        char c = part.data[i];
        if (c == '.' || c == '`' || c == '"' || c == ' ') {
            return true;
        }
    }
    return part.len == 0;
}

static tarn_code put_part(tarn_str part, tarn_buf *out, tarn_error *err) {
    tarn_code code;
    if (!needs_quotes(part)) {
        return buf_append_str(out, part, err);
    }
    TRY(buf_append_char(out, '`', err));
    for (size_t i = 0; i < part.len; i++) {
        if (part.data[i] == '`') {
            TRY(buf_append_char(out, '`', err));
        }
        TRY(buf_append_char(out, part.data[i], err));
    }
    code = buf_append_char(out, '`', err);
done:
    return code;
}

tarn_code ident_text(const tarn_ident *ident, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < ident->n_levels; i++) {
        if (i > 0) {
            TRY(buf_append_char(out, '.', err));
        }
        TRY(put_part(ident->levels[i], out, err));
    }
    if (ident->name.len > 0) {
        if (ident->n_levels > 0) {
            TRY(buf_append_char(out, '.', err));
        }
        code = put_part(ident->name, out, err);
    }
done:
    return code;
}

const char *ident_label(tarn_arena *arena, const tarn_ident *ident) {
    tarn_buf buf;
    buf_init(&buf, arena->env, 0);
    const char *label = NULL;
    if (ident_text(ident, &buf, NULL) == TARN_OK) {
        label = arena_str(arena, buf_str(&buf)).data;
    }
    buf_release(&buf);
    return label != NULL ? label : "?";
}

static bool is_path_safe(unsigned char c) {
    static const char UNSAFE[] = "/\\#?%*\"<>|:";
    return c >= 0x20 && c != 0x7f && memchr(UNSAFE, c, sizeof UNSAFE - 1) == NULL;
}

tarn_str ident_path_part(tarn_arena *arena, tarn_str name) {
    bool dots = str_is(name, ".") || str_is(name, "..");
    char *out = arena_alloc(arena, name.len * 3 + 1);
    size_t len = 0;
    if (out == NULL) {
        return STR_NULL;
    }
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (is_path_safe(c) && !dots) {
            out[len++] = (char)c;
        } else {
            out[len++] = '%';
            out[len++] = "0123456789ABCDEF"[c >> 4];
            out[len++] = "0123456789ABCDEF"[c & 15];
        }
    }
    out[len] = 0;
    return str_make(out, len);
}
