/* table/type_text.c - types as people write them: "long", "decimal(9,2)", "list<string>",
 * "struct<a: int not null, b: map<string, long>>".
 *
 * type_text writes what type_from_text reads. Primitives are the spec's own names, so the JSON
 * reader shares their parser. */
#include "table/type.h"

#include "base/limits.h"
#include "base/map.h"
#include "table/type_int.h"

#include <stdio.h>

/* Names that people and other systems use beside the spec's. */
static const struct {
    const char *name;
    tarn_kind kind;
} aliases[] = {{"integer", TARN_INT}, {"bigint", TARN_LONG},  {"bool", TARN_BOOLEAN},
               {"text", TARN_STRING}, {"bytes", TARN_BINARY}, {"varchar", TARN_STRING}};

/* "(9, 2)" or "[16]" after a name: the numbers between open and close. */
static bool parse_numbers(tarn_str text, char open, char close, int32_t *numbers, int n) {
    text = str_trim(text);
    if (text.len < 2 || text.data[0] != open || text.data[text.len - 1] != close) {
        return false;
    }
    tarn_str rest = str_sub(text, 1, text.len - 2);
    tarn_str piece;
    int got = 0;
    while (str_split(&rest, ',', &piece)) {
        if (got == n || !str_to_i32(str_trim(piece), &numbers[got])) {
            return false;
        }
        got++;
    }
    return got == n;
}

static tarn_code parse_parametric(tarn_arena *arena, tarn_str text, const tarn_type **out,
                                  tarn_error *err) {
    int32_t numbers[2];
    if (str_starts_with(text, STR("decimal")) &&
        parse_numbers(str_from(text, 7), '(', ')', numbers, 2)) {
        if (numbers[0] < 1 || numbers[0] > 38 || numbers[1] < 0 || numbers[1] > numbers[0]) {
            return TARN_OK;
        }
        *out = type_decimal(arena, numbers[0], numbers[1]);
        return *out != NULL ? TARN_OK : err_nomem(err);
    }
    if (str_starts_with(text, STR("fixed")) &&
        (parse_numbers(str_from(text, 5), '[', ']', numbers, 1) ||
         parse_numbers(str_from(text, 5), '(', ')', numbers, 1))) {
        if (numbers[0] < 1 || numbers[0] > (64 << 20)) {
            return TARN_OK;
        }
        *out = type_fixed(arena, numbers[0]);
        return *out != NULL ? TARN_OK : err_nomem(err);
    }
    bool geometry = str_starts_with(text, STR("geometry("));
    if ((geometry || str_starts_with(text, STR("geography("))) && text.data[text.len - 1] == ')' &&
        str_utf8_valid(text)) {
        tarn_type *type = ARENA_NEW(arena, tarn_type);
        if (type == NULL || (type->text = arena_str(arena, text)).data == NULL) {
            return err_nomem(err);
        }
        type->kind = geometry ? TARN_GEOMETRY : TARN_GEOGRAPHY;
        *out = type;
    }
    return TARN_OK;
}

tarn_code type_parse_primitive(tarn_arena *arena, tarn_str text, const tarn_type **out,
                               tarn_error *err) {
    *out = NULL;
    for (int kind = TARN_BOOLEAN; kind < TARN_STRUCT; kind++) {
        if (str_is(text, type_kind_name((tarn_kind)kind))) {
            *out = type_primitive((tarn_kind)kind);
            return TARN_OK;
        }
    }
    return parse_parametric(arena, text, out, err);
}

/* ---- nested types ---- */

typedef struct text_parser {
    tarn_arena *arena;
    tarn_error *err;
    tarn_str text;
    size_t at;
    bool columns; /* the fields of a table: they end with the text */
    int32_t n_fields;
} text_parser;

static tarn_code parse_type(text_parser *p, int depth, const tarn_type **out);

static tarn_code fail_at(text_parser *p, const char *what) {
    return err_set(p->err, TARN_INVALID, "%s was not understood at column %zu: %s (\"%.*s\")",
                   p->columns ? "schema" : "type", p->at + 1, what, STR_ARG(p->text));
}

static tarn_code fail_with(text_parser *p, const char *what, tarn_str name) {
    const char *text = arena_printf(p->arena, "%s \"%.*s\"", what,
                                    (int)(name.len < 100 ? name.len : 100), name.data);
    return text != NULL ? fail_at(p, text) : err_nomem(p->err);
}

static void skip_space(text_parser *p) {
    while (p->at < p->text.len && (p->text.data[p->at] == ' ' || p->text.data[p->at] == '\t' ||
                                   p->text.data[p->at] == '\n' || p->text.data[p->at] == '\r')) {
        p->at++;
    }
}

static bool take_char(text_parser *p, char c) {
    skip_space(p);
    if (p->at < p->text.len && p->text.data[p->at] == c) {
        p->at++;
        return true;
    }
    return false;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static tarn_str take_word(text_parser *p) {
    skip_space(p);
    size_t start = p->at;
    while (p->at < p->text.len && is_word(p->text.data[p->at])) {
        p->at++;
    }
    return str_sub(p->text, start, p->at - start);
}

/* The text between quotes, where a doubled quote stands for one. */
static tarn_code take_quoted(text_parser *p, char quote, tarn_str *name) {
    char *text = arena_alloc(p->arena, LIMIT_NAME_BYTES);
    size_t len = 0;
    if (text == NULL) {
        return err_nomem(p->err);
    }
    for (size_t i = p->at + 1; i < p->text.len; i++) {
        if (p->text.data[i] == quote) {
            if (i + 1 == p->text.len || p->text.data[i + 1] != quote) {
                *name = str_make(text, len);
                p->at = i + 1;
                return TARN_OK;
            }
            i++;
        }
        if (len == LIMIT_NAME_BYTES) {
            return fail_at(p, "no valid field name");
        }
        text[len++] = p->text.data[i];
    }
    return fail_at(p, "a quoted name without end");
}

/* A field's name: a word, or anything between double quotes or backticks. */
static tarn_code take_name(text_parser *p, tarn_str *name) {
    skip_space(p);
    char quote = p->at < p->text.len ? p->text.data[p->at] : '\0';
    if (quote == '"' || quote == '`') {
        tarn_code code = take_quoted(p, quote, name);
        if (code != TARN_OK) {
            return code;
        }
    } else {
        *name = take_word(p);
    }
    if (name->len == 0 || name->len > LIMIT_NAME_BYTES || !str_utf8_valid(*name)) {
        return fail_at(p, "no valid field name");
    }
    *name = arena_str(p->arena, *name);
    return name->data != NULL ? TARN_OK : err_nomem(p->err);
}

/* "not null" after a field's type. */
static tarn_code take_required(text_parser *p, bool *required) {
    size_t start = p->at;
    *required = str_eq_nocase(take_word(p), STR("not"));
    if (!*required) {
        p->at = start;
        return TARN_OK;
    }
    return str_eq_nocase(take_word(p), STR("null")) ? TARN_OK : fail_at(p, "no null after not");
}

/* Past the end of a struct's fields. */
static bool take_end(text_parser *p, int depth) {
    if (!p->columns || depth > 0) {
        return take_char(p, '>');
    }
    skip_space(p);
    return p->at == p->text.len;
}

static tarn_code parse_struct(text_parser *p, int depth, const tarn_type **out) {
    tarn_field *fields = NULL;
    int32_t n = 0;
    int32_t cap = 0;
    tarn_map names;
    map_init(&names, p->arena);
    tarn_code code = TARN_OK;
    while (!take_end(p, depth)) {
        bool added = false;
        if (n > 0 && !take_char(p, ',')) {
            return fail_at(p, "no comma between fields");
        }
        if (n == cap) {
            int32_t more = cap > 0 ? cap * 2 : 8;
            fields = arena_grow(p->arena, fields, (size_t)cap * sizeof *fields,
                                (size_t)more * sizeof *fields);
            if (fields == NULL) {
                return err_nomem(p->err);
            }
            cap = more;
        }
        tarn_field field = type_make_field(TARN_NO_ID, false, STR_NULL, NULL);
        TRY(take_name(p, &field.name));
        (void)take_char(p, ':'); /* "a int" as in SQL is as good as "a: int" */
        TRY(parse_type(p, depth + 1, &field.type));
        TRY(take_required(p, &field.required));
        if (map_put(&names, field.name, &added) == NULL) {
            return err_nomem(p->err);
        }
        if (!added) {
            return fail_with(p, "a second field", field.name);
        }
        if (++p->n_fields > LIMIT_SCHEMA_FIELDS) {
            return err_set(p->err, TARN_LIMIT, "a type had more than %d fields",
                           LIMIT_SCHEMA_FIELDS);
        }
        fields[n++] = field;
    }
    *out = type_struct(p->arena, fields, n);
    code = *out != NULL ? TARN_OK : err_nomem(p->err);
done:
    return code;
}

static tarn_code parse_nested(text_parser *p, tarn_kind kind, int depth, const tarn_type **out) {
    tarn_field first = type_make_field(TARN_NO_ID, false, STR_NULL, NULL);
    tarn_field second = first;
    tarn_code code = TARN_OK;
    if (!take_char(p, '<')) {
        return fail_at(p, "no < after a nested type's name");
    }
    if (kind == TARN_STRUCT) {
        return parse_struct(p, depth, out);
    }
    TRY(parse_type(p, depth + 1, &first.type));
    TRY(take_required(p, &first.required));
    if (kind == TARN_MAP) {
        if (!take_char(p, ',')) {
            return fail_at(p, "no comma between key and value");
        }
        TRY(parse_type(p, depth + 1, &second.type));
        TRY(take_required(p, &second.required));
    }
    if (!take_char(p, '>')) {
        return fail_at(p, "no > after a nested type");
    }
    *out = kind == TARN_MAP ? type_map(p->arena, first, second) : type_list(p->arena, first);
    code = *out != NULL ? TARN_OK : err_nomem(p->err);
done:
    return code;
}

static void lower_case(tarn_str word, char out[24]) {
    size_t n = word.len < 23 ? word.len : 23;
    for (size_t i = 0; i < n; i++) {
        char c = word.data[i];
        out[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    out[word.len <= 23 ? n : 0] = '\0';
}

/* The name with its parameters, which end at ) or ]. */
static tarn_code parse_leaf(text_parser *p, size_t start, const char *word, const tarn_type **out) {
    size_t word_end = p->at;
    skip_space(p);
    char open = p->at < p->text.len ? p->text.data[p->at] : '\0';
    tarn_str text = str_of(word);
    if (open == '(' || open == '[') {
        size_t len;
        if (!str_find_char(str_from(p->text, p->at), open == '(' ? ')' : ']', &len)) {
            return fail_at(p, "parameters without end");
        }
        text.data =
            arena_printf(p->arena, "%s%.*s", word, STR_ARG(str_sub(p->text, p->at, len + 1)));
        if (text.data == NULL) {
            return err_nomem(p->err);
        }
        text.len = strlen(text.data);
        p->at += len + 1;
    } else {
        p->at = word_end;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (str_is(text, aliases[i].name)) {
            *out = type_primitive(aliases[i].kind);
            return TARN_OK;
        }
    }
    const tarn_type *type = NULL;
    tarn_code code = type_parse_primitive(p->arena, text, &type, p->err);
    if (code == TARN_OK && type == NULL) {
        p->at = start;
        code = word[0] != '\0' ? fail_with(p, "there is no type", text) : fail_at(p, "no type");
    }
    *out = type;
    return code;
}

static tarn_code parse_type(text_parser *p, int depth, const tarn_type **out) {
    char word[24];
    if (depth > LIMIT_NESTING) {
        return err_set(p->err, TARN_LIMIT, "a type was nested more than %d levels deep",
                       LIMIT_NESTING);
    }
    skip_space(p);
    size_t start = p->at;
    lower_case(take_word(p), word);
    if (strcmp(word, "struct") == 0) {
        return parse_nested(p, TARN_STRUCT, depth, out);
    }
    if (strcmp(word, "list") == 0 || strcmp(word, "array") == 0) {
        return parse_nested(p, TARN_LIST, depth, out);
    }
    if (strcmp(word, "map") == 0) {
        return parse_nested(p, TARN_MAP, depth, out);
    }
    return parse_leaf(p, start, word, out);
}

tarn_code type_from_text(tarn_arena *arena, tarn_str text, const tarn_type **out, tarn_error *err) {
    text_parser p = {.arena = arena, .err = err, .text = text};
    const tarn_type *type = NULL;
    tarn_code code = parse_type(&p, 0, &type);
    if (code != TARN_OK) {
        return code;
    }
    skip_space(&p);
    if (p.at != text.len) {
        return fail_at(&p, "more text after the type");
    }
    *out = type;
    return TARN_OK;
}

tarn_code type_columns_from_text(tarn_arena *arena, tarn_str text, const tarn_type **out,
                                 tarn_error *err) {
    text_parser p = {.arena = arena, .err = err, .text = text, .columns = true};
    return parse_struct(&p, 0, out);
}

/* ---- writing ---- */

static bool is_plain_name(tarn_str name) {
    for (size_t i = 0; i < name.len; i++) {
        if (!is_word(name.data[i])) {
            return false;
        }
    }
    return name.len > 0;
}

static tarn_code put_name(tarn_str name, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (is_plain_name(name)) {
        return buf_append_str(out, name, err);
    }
    TRY(buf_append_char(out, '"', err));
    for (size_t i = 0; i < name.len; i++) {
        TRY(buf_append_char(out, name.data[i], err));
        if (name.data[i] == '"') {
            TRY(buf_append_char(out, '"', err));
        }
    }
    TRY(buf_append_char(out, '"', err));
done:
    return code;
}

static tarn_code put_struct(const tarn_type *type, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append_str(out, STR("struct<"), err));
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *field = &type->fields[i];
        TRY(buf_append_str(out, i > 0 ? STR(", ") : STR(""), err));
        TRY(put_name(field->name, out, err));
        TRY(buf_append_str(out, STR(": "), err));
        TRY(type_text(field->type, out, err));
        TRY(buf_append_str(out, field->required ? STR(" not null") : STR(""), err));
    }
    TRY(buf_append_char(out, '>', err));
done:
    return code;
}

tarn_code type_text(const tarn_type *type, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (type->kind == TARN_STRUCT) {
        return put_struct(type, out, err);
    }
    if (type->kind == TARN_DECIMAL) {
        return buf_printf(out, err, "decimal(%d, %d)", (int)type->precision, (int)type->scale);
    }
    if (type->kind == TARN_FIXED) {
        return buf_printf(out, err, "fixed[%d]", (int)type->length);
    }
    if (!type_is_nested(type)) {
        return buf_append_str(
            out, type->text.len > 0 ? type->text : str_of(type_kind_name(type->kind)), err);
    }
    TRY(buf_append_str(out, type->kind == TARN_LIST ? STR("list<") : STR("map<"), err));
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *field = &type->fields[i];
        bool said = field->required && !(type->kind == TARN_MAP && i == 0);
        TRY(buf_append_str(out, i > 0 ? STR(", ") : STR(""), err));
        TRY(type_text(field->type, out, err));
        TRY(buf_append_str(out, said ? STR(" not null") : STR(""), err));
    }
    TRY(buf_append_char(out, '>', err));
done:
    return code;
}
