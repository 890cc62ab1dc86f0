/* iceberg/spec_text.c - partition specs and sort orders as people type them:
 * "month(ts), bucket(16, carrier) as b, id" and "a desc nulls last, bucket(16, b)". */
#include "iceberg/spec_text.h"
#include "base/limits.h"

typedef struct cursor {
    tarn_arena *arena; /* of quoted names */
    tarn_str text;
    size_t at;
    tarn_error *err;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->text.len && (c->text.data[c->at] == ' ' || c->text.data[c->at] == '\t' ||
                                   c->text.data[c->at] == '\n' || c->text.data[c->at] == '\r')) {
        c->at++;
    }
}

static bool take_char(cursor *c, char wanted) {
    skip_space(c);
    if (c->at < c->text.len && c->text.data[c->at] == wanted) {
        c->at++;
        return true;
    }
    return false;
}

static bool is_word(char ch) {
    return strchr(" \t\r\n,()[]\"`", ch) == NULL;
}

static tarn_code refuse(const cursor *c, const char *wanted) {
    return err_set(c->err, TARN_INVALID, "\"%.*s\": at character %zu %s was expected",
                   STR_ARG(c->text), c->at + 1, wanted);
}

/* The text between quotes, where a doubled quote stands for one. */
static tarn_code take_quoted(cursor *c, char quote, tarn_str *out) {
    tarn_str rest = str_from(c->text, c->at + 1);
    char *text = arena_alloc(c->arena, rest.len + 1);
    size_t len = 0;
    if (text == NULL) {
        return err_nomem(c->err);
    }
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.data[i] != quote) {
            text[len++] = rest.data[i];
        } else if (i + 1 < rest.len && rest.data[i + 1] == quote) {
            text[len++] = rest.data[i++];
        } else if (len > 0) {
            *out = str_make(text, len);
            c->at += i + 2;
            return TARN_OK;
        } else {
            break;
        }
    }
    return refuse(c, "a name and its closing quote");
}

/* A bare word, or a name in "" or ``. quoted says which. */
static tarn_code take_word(cursor *c, tarn_str *out, bool *quoted) {
    skip_space(c);
    size_t start = c->at;
    char quote = c->at < c->text.len ? c->text.data[c->at] : '\0';
    *quoted = quote == '"' || quote == '`';
    if (*quoted) {
        return take_quoted(c, quote, out);
    }
    while (c->at < c->text.len && is_word(c->text.data[c->at])) {
        c->at++;
    }
    *out = str_sub(c->text, start, c->at - start);
    return out->len > 0 ? TARN_OK : refuse(c, "a name");
}

/* The next bare word if it is this one (ASCII case ignored). */
static bool take_keyword(cursor *c, const char *word) {
    size_t before = c->at;
    tarn_str got;
    bool quoted;
    tarn_error ignored = TARN_ERROR_INIT;
    tarn_error *err = c->err;
    c->err = &ignored;
    bool same =
        take_word(c, &got, &quoted) == TARN_OK && !quoted && str_eq_nocase(got, str_of(word));
    c->err = err;
    if (!same) {
        c->at = before;
    }
    return same;
}

static bool known_transform(tarn_str word, transform_kind *kind) {
    static const struct {
        const char *name;
        transform_kind kind;
    } names[] = {{"identity", TRANSFORM_IDENTITY}, {"bucket", TRANSFORM_BUCKET},
                 {"truncate", TRANSFORM_TRUNCATE}, {"year", TRANSFORM_YEAR},
                 {"years", TRANSFORM_YEAR},        {"month", TRANSFORM_MONTH},
                 {"months", TRANSFORM_MONTH},      {"day", TRANSFORM_DAY},
                 {"days", TRANSFORM_DAY},          {"date", TRANSFORM_DAY},
                 {"hour", TRANSFORM_HOUR},         {"hours", TRANSFORM_HOUR},
                 {"date_hour", TRANSFORM_HOUR},    {"void", TRANSFORM_VOID}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_eq_nocase(word, str_of(names[i].name))) {
            *kind = names[i].kind;
            return true;
        }
    }
    return false;
}

/* What stands between the parentheses: a column and, for bucket and truncate, a number on either
 * side of it. */
static tarn_code take_arguments(cursor *c, spec_term *term) {
    bool needs_number =
        term->transform.kind == TRANSFORM_BUCKET || term->transform.kind == TRANSFORM_TRUNCATE;
    bool has_number = term->transform.param > 0, has_column = false;
    do {
        tarn_str word;
        bool quoted;
        int32_t number;
        tarn_code code = take_word(c, &word, &quoted);
        if (code != TARN_OK) {
            return code;
        }
        if (needs_number && !has_number && !quoted && str_to_i32(word, &number)) {
            if (number <= 0) {
                return refuse(c, "a positive number before this");
            }
            term->transform.param = number;
            has_number = true;
        } else if (!has_column) {
            term->column = word;
            has_column = true;
        } else {
            return refuse(c, "one column (and for bucket and truncate one number)");
        }
    } while (take_char(c, ','));
    if (!take_char(c, ')')) {
        return refuse(c, "\")\"");
    }
    return has_column && has_number == needs_number
               ? TARN_OK
               : refuse(c, "a column and a number before this");
}

/* column | transform(...) | transform[n](column) */
static tarn_code take_term(cursor *c, spec_term *term) {
    bool quoted;
    tarn_str word;
    memset(term, 0, sizeof *term);
    tarn_code code = take_word(c, &word, &quoted);
    if (code != TARN_OK) {
        return code;
    }
    term->column = word;
    if (!quoted && known_transform(word, &term->transform.kind)) {
        size_t before = c->at;
        if (take_char(c, '[')) {
            tarn_str number;
            code = take_word(c, &number, &quoted);
            if (code != TARN_OK || !str_to_i32(number, &term->transform.param) ||
                term->transform.param <= 0 || !take_char(c, ']')) {
                return refuse(c, "a positive number in brackets");
            }
        }
        if (take_char(c, '(')) {
            return take_arguments(c, term);
        }
        c->at = before; /* a column that is called so */
        term->transform.param = 0;
    } else {
        size_t before = c->at;
        if (!quoted && take_char(c, '(')) {
            c->at = before;
            return err_set(c->err, TARN_INVALID, "\"%.*s\": there is no transform \"%.*s\"",
                           STR_ARG(c->text), STR_ARG(word));
        }
    }
    term->transform.kind = TRANSFORM_IDENTITY;
    return TARN_OK;
}

tarn_code spec_term_parse(tarn_arena *arena, tarn_str text, spec_term *out, tarn_error *err) {
    cursor c = {arena, text, 0, err};
    spec_term term;
    bool quoted;
    tarn_code code = take_term(&c, &term);
    if (code == TARN_OK && take_keyword(&c, "as")) {
        code = take_word(&c, &term.name, &quoted);
    }
    skip_space(&c);
    if (code == TARN_OK && c.at < text.len) {
        code = refuse(&c, "the end");
    }
    if (code == TARN_OK) {
        *out = term;
    }
    return code;
}

static tarn_code resolve(const tarn_type *root, const spec_term *term, int32_t *id,
                         tarn_error *err) {
    const tarn_field *field = type_find_name(root, term->column, true);
    const tarn_type *result;
    if (field == NULL) {
        return err_set(err, TARN_INVALID, "there is no column \"%.*s\" to partition or sort by",
                       STR_ARG(term->column));
    }
    tarn_code code = transform_result_type(NULL, &term->transform, field->type, &result, err);
    if (code != TARN_OK) {
        return err_add(err, code, "column %.*s", STR_ARG(term->column));
    }
    *id = field->id;
    return TARN_OK;
}

tarn_code spec_field_name(tarn_arena *arena, tarn_str column, const tarn_transform *transform,
                          bool with_param, tarn_str *out, tarn_error *err) {
    static const char *const suffixes[] = {"",       "_bucket", "_trunc", "_year",
                                           "_month", "_day",    "_hour",  "_null"};
    char *text;
    if (transform->kind == TRANSFORM_UNKNOWN) {
        return err_set(err, TARN_INVALID, "an unknown transform of %.*s has no name of its own",
                       STR_ARG(column));
    }
    if (with_param && transform->param > 0) {
        text = arena_printf(arena, "%.*s%s_%d", STR_ARG(column), suffixes[transform->kind],
                            transform->param);
    } else {
        text = arena_printf(arena, "%.*s%s", STR_ARG(column), suffixes[transform->kind]);
    }
    if (text == NULL) {
        return err_nomem(err);
    }
    *out = str_of(text);
    return TARN_OK;
}

static bool is_time(transform_kind kind) {
    return kind >= TRANSFORM_YEAR && kind <= TRANSFORM_HOUR;
}

tarn_code spec_check(const tarn_type *root, const tarn_partition_field *fields, int32_t n,
                     bool redundant, tarn_error *err) {
    for (int32_t i = 0; i < n; i++) {
        const tarn_partition_field *f = &fields[i];
        const tarn_field *column = type_child(root, f->name);
        if (column != NULL && f->transform.kind != TRANSFORM_VOID &&
            (f->transform.kind != TRANSFORM_IDENTITY || column->id != f->source_id)) {
            return err_set(err, TARN_INVALID,
                           "partition field \"%.*s\" had the name of a column it is not",
                           STR_ARG(f->name));
        }
        for (int32_t k = 0; k < i; k++) {
            if (str_eq(fields[k].name, f->name)) {
                return err_set(err, TARN_INVALID, "partition field \"%.*s\" was there twice",
                               STR_ARG(f->name));
            }
            if (redundant && fields[k].source_id == f->source_id &&
                f->transform.kind != TRANSFORM_VOID &&
                (transform_eq(&fields[k].transform, &f->transform) ||
                 (is_time(fields[k].transform.kind) && is_time(f->transform.kind)))) {
                return err_set(err, TARN_INVALID,
                               "partition fields \"%.*s\" and \"%.*s\" were redundant",
                               STR_ARG(fields[k].name), STR_ARG(f->name));
            }
        }
    }
    return TARN_OK;
}

/* Commas at the top level, plus one: the most terms there can be. */
static size_t count_terms(tarn_str text) {
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++) {
        n += text.data[i] == ',';
    }
    return n;
}

tarn_code spec_from_text(tarn_arena *arena, const tarn_type *root, tarn_str text,
                         int32_t *next_field_id, tarn_spec *out, tarn_error *err) {
    cursor c = {arena, text, 0, err};
    tarn_spec spec = {0, 0, NULL};
    int32_t next = *next_field_id;
    tarn_code code = TARN_OK;
    if (str_trim(text).len == 0) {
        *out = spec;
        return TARN_OK;
    }
    tarn_partition_field *fields = ARENA_ARRAY(arena, tarn_partition_field, count_terms(text));
    if (fields == NULL) {
        return err_nomem(err);
    }
    do {
        tarn_partition_field *f = &fields[spec.n_fields];
        spec_term term;
        bool quoted;
        TRY(take_term(&c, &term));
        if (take_keyword(&c, "as")) {
            TRY(take_word(&c, &term.name, &quoted));
            f->name = arena_str(arena, term.name);
            if (f->name.data == NULL) {
                TRY(err_nomem(err));
            }
        } else {
            TRY(spec_field_name(arena, term.column, &term.transform, false, &f->name, err));
        }
        TRY(resolve(root, &term, &f->source_id, err));
        f->transform = term.transform;
        f->field_id = next++;
        spec.n_fields++;
    } while (take_char(&c, ','));
    skip_space(&c);
    if (c.at < text.len) {
        TRY(refuse(&c, "\",\" or the end"));
    }
    TRY(spec_check(root, fields, spec.n_fields, true, err));
    spec.fields = fields;
    *out = spec;
    *next_field_id = next;
done:
    return code;
}

static tarn_code take_direction(cursor *c, tarn_sort_field *f) {
    f->descending = take_keyword(c, "desc");
    if (!f->descending) {
        (void)take_keyword(c, "asc");
    }
    f->nulls_last = f->descending; /* Iceberg's defaults: asc nulls first, desc nulls last */
    if (take_keyword(c, "nulls")) {
        bool first = take_keyword(c, "first");
        if (!first && !take_keyword(c, "last")) {
            return refuse(c, "first or last");
        }
        f->nulls_last = !first;
    }
    return TARN_OK;
}

tarn_code sort_order_from_text(tarn_arena *arena, const tarn_type *root, tarn_str text,
                               tarn_sort_order *out, tarn_error *err) {
    cursor c = {arena, text, 0, err};
    tarn_sort_order order = {0, 0, NULL};
    tarn_code code = TARN_OK;
    if (str_trim(text).len == 0) {
        *out = order;
        return TARN_OK;
    }
    tarn_sort_field *fields = ARENA_ARRAY(arena, tarn_sort_field, count_terms(text));
    if (fields == NULL) {
        return err_nomem(err);
    }
    do {
        tarn_sort_field *f = &fields[order.n_fields];
        spec_term term;
        TRY(take_term(&c, &term));
        TRY(resolve(root, &term, &f->source_id, err));
        TRY(take_direction(&c, f));
        f->transform = term.transform;
        order.n_fields++;
    } while (take_char(&c, ','));
    skip_space(&c);
    if (c.at < text.len) {
        TRY(refuse(&c, "\",\" or the end"));
    }
    order.order_id = 1;
    order.fields = fields;
    *out = order;
done:
    return code;
}
