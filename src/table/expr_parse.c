/* table/expr_parse.c - filters from text, as people write them in SQL.
 *
 * A token ahead is enough everywhere. Long chains of and/or become balanced trees, so the depth of
 * a filter is that of its parentheses. Errors say the column of the text. */
#include "table/expr.h"

#include "base/limits.h"
#include "table/expr_int.h"
#include "table/value_int.h"

#include <stdio.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* also words of the language: text is as written */
    TOKEN_QUOTED, /* a quoted name: never a word of the language */
    TOKEN_NUMBER,
    TOKEN_STRING, /* text is unquoted */
    TOKEN_HEX,
    TOKEN_SIGN /* operators and punctuation */
} token_kind;

typedef struct token {
    token_kind kind;
    tarn_str text;
    size_t at;
} token;

typedef struct parser {
    tarn_arena *arena;
    tarn_error *err;
    tarn_str text;
    size_t at; /* behind next */
    token next;
    int32_t n_literals;
    int depth;
} parser;

typedef struct operands {
    const tarn_expr **items;
    size_t n;
    size_t cap;
} operands;

static tarn_code parse_or(parser *p, const tarn_expr **out);

static tarn_code fail(parser *p, const char *what) {
    return err_set(p->err, TARN_INVALID, "filter was not understood at column %zu: %s (\"%.*s\")",
                   p->next.at + 1, what, STR_ARG(p->text));
}

/* ---- tokens ---- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char peek(const parser *p, size_t ahead) {
    return p->at + ahead < p->text.len ? p->text.data[p->at + ahead] : '\0';
}

/* Between two quotes, a doubled quote being one. */
static tarn_code read_quoted(parser *p, char quote, tarn_str *out) {
    size_t start = ++p->at;
    size_t n = 0;
    while (peek(p, 0) != quote || peek(p, 1) == quote) {
        if (p->at >= p->text.len) {
            return fail(p, "a quote without end");
        }
        p->at += peek(p, 0) == quote ? 2 : 1;
        n++;
    }
    char *copy = arena_alloc(p->arena, n + 1);
    if (copy == NULL) {
        return err_nomem(p->err);
    }
    for (size_t i = 0; i < n; i++) {
        copy[i] = p->text.data[start];
        start += copy[i] == quote ? 2 : 1;
    }
    p->at++;
    *out = str_make(copy, n);
    return TARN_OK;
}

static void read_number(parser *p) {
    size_t start = p->at;
    while (is_digit(peek(p, 0)) || peek(p, 0) == '.') {
        p->at++;
    }
    if (peek(p, 0) == 'e' || peek(p, 0) == 'E') {
        size_t sign = peek(p, 1) == '+' || peek(p, 1) == '-' ? 1 : 0;
        if (is_digit(peek(p, 1 + sign))) {
            p->at += 1 + sign;
            while (is_digit(peek(p, 0))) {
                p->at++;
            }
        }
    }
    p->next.kind = TOKEN_NUMBER;
    p->next.text = str_sub(p->text, start, p->at - start);
}

/* name, name.name, "any".`any` and so on: one token with dots between the parts. */
static tarn_code read_name(parser *p) {
    tarn_buf name;
    tarn_code code = TARN_OK;
    bool quoted = false;
    buf_init(&name, p->arena->env, LIMIT_NAME_BYTES);
    for (;;) {
        tarn_str part;
        char c = peek(p, 0);
        if (c == '"' || c == '`') {
            quoted = true;
            TRY(read_quoted(p, c, &part));
        } else {
            size_t start = p->at;
            while (is_letter(peek(p, 0)) || is_digit(peek(p, 0))) {
                p->at++;
            }
            part = str_sub(p->text, start, p->at - start);
        }
        TRY(buf_append_str(&name, part, p->err));
        if (peek(p, 0) != '.' || !(is_letter(peek(p, 1)) || is_digit(peek(p, 1)) ||
                                   peek(p, 1) == '"' || peek(p, 1) == '`')) {
            break;
        }
        quoted = true; /* a path is no word of the language */
        TRY(buf_append_char(&name, '.', p->err));
        p->at++;
    }
    p->next.kind = quoted ? TOKEN_QUOTED : TOKEN_NAME;
    p->next.text = arena_str(p->arena, buf_str(&name));
    code = p->next.text.data != NULL ? TARN_OK : err_nomem(p->err);
done:
    buf_release(&name);
    return code;
}

static tarn_code read_sign(parser *p) {
    static const char *const signs[] = {"<=", ">=", "<>", "!=", "==", "<", ">",
                                        "=",  "(",  ")",  ",",  "-",  "+"};
    tarn_str rest = str_from(p->text, p->at);
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (str_starts_with(rest, str_of(signs[i]))) {
            p->next.kind = TOKEN_SIGN;
            p->next.text = str_of(signs[i]);
            p->at += p->next.text.len;
            return TARN_OK;
        }
    }
    return fail(p, "an unknown character");
}

static tarn_code advance(parser *p) {
    while (peek(p, 0) == ' ' || peek(p, 0) == '\t' || peek(p, 0) == '\n' || peek(p, 0) == '\r') {
        p->at++;
    }
    char c = peek(p, 0);
    p->next.at = p->at;
    p->next.text = STR_NULL;
    if (p->at >= p->text.len) {
        p->next.kind = TOKEN_END;
        return TARN_OK;
    }
    if ((c == 'X' || c == 'x') && peek(p, 1) == '\'') {
        p->at++;
        p->next.kind = TOKEN_HEX;
        return read_quoted(p, '\'', &p->next.text);
    }
    if (is_letter(c) || c == '"' || c == '`') {
        return read_name(p);
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(p, 1)))) {
        read_number(p);
        return TARN_OK;
    }
    if (c == '\'') {
        p->next.kind = TOKEN_STRING;
        return read_quoted(p, '\'', &p->next.text);
    }
    return read_sign(p);
}

static bool is_word(const parser *p, const char *word) {
    return p->next.kind == TOKEN_NAME && str_eq_nocase(p->next.text, str_of(word));
}

static bool is_sign(const parser *p, const char *sign) {
    return p->next.kind == TOKEN_SIGN && str_is(p->next.text, sign);
}

static tarn_code expect_word(parser *p, const char *word) {
    char what[32];
    if (is_word(p, word)) {
        return advance(p);
    }
    (void)snprintf(what, sizeof what, "no %s", word);
    return fail(p, what);
}

static tarn_code expect_sign(parser *p, const char *sign) {
    char what[32];
    if (is_sign(p, sign)) {
        return advance(p);
    }
    (void)snprintf(what, sizeof what, "no %s", sign);
    return fail(p, what);
}

/* ---- literals ---- */

static tarn_code parse_number(parser *p, bool negative, tarn_value *out) {
    const char *text = arena_printf(p->arena, "%s%.*s", negative ? "-" : "", STR_ARG(p->next.text));
    if (text == NULL) {
        return err_nomem(p->err);
    }
    if (p->next.text.len > 380 || value_from_number(p->arena, str_of(text), out, NULL) != TARN_OK) {
        return fail(p, "no valid number");
    }
    return advance(p);
}

/* date '...', time '...', timestamp '...': the first kind that takes the text. */
static tarn_code parse_time(parser *p, const tarn_kind *kinds, tarn_value *out) {
    for (; *kinds != TARN_UNKNOWN; kinds++) {
        if (value_from_text(p->arena, type_primitive(*kinds), p->next.text, out, NULL) == TARN_OK) {
            return advance(p);
        }
    }
    return fail(p, "no valid date or time");
}

static const tarn_kind *time_kinds(tarn_str word) {
    static const tarn_kind date[] = {TARN_DATE, TARN_UNKNOWN};
    static const tarn_kind time[] = {TARN_TIME, TARN_UNKNOWN};
    static const tarn_kind timestamp[] = {TARN_TIMESTAMP, TARN_TIMESTAMP_NS, TARN_TIMESTAMPTZ,
                                          TARN_TIMESTAMPTZ_NS, TARN_UNKNOWN};
    if (str_eq_nocase(word, STR("date"))) {
        return date;
    }
    if (str_eq_nocase(word, STR("time"))) {
        return time;
    }
    return str_eq_nocase(word, STR("timestamp")) ? timestamp : NULL;
}

/* The word before a quoted text: "date" in date '2020-01-01'. */
static bool before_text(const parser *p) {
    size_t ahead = 0;
    while (peek(p, ahead) == ' ') {
        ahead++;
    }
    return peek(p, ahead) == '\'';
}

static bool is_literal(const parser *p) {
    return p->next.kind == TOKEN_NUMBER || p->next.kind == TOKEN_STRING ||
           p->next.kind == TOKEN_HEX || is_sign(p, "-") || is_sign(p, "+") || is_word(p, "true") ||
           is_word(p, "false") ||
           (p->next.kind == TOKEN_NAME && time_kinds(p->next.text) != NULL && before_text(p));
}

static tarn_code parse_literal(parser *p, tarn_value *out) {
    tarn_code code = TARN_OK;
    if (++p->n_literals > LIMIT_EXPR_LITERALS) {
        return err_set(p->err, TARN_LIMIT, "a filter had more than %d literals",
                       LIMIT_EXPR_LITERALS);
    }
    if (!is_literal(p)) {
        return fail(p, is_word(p, "null") ? "null outside of is null" : "no value");
    }
    if (p->next.kind == TOKEN_SIGN) {
        bool negative = is_sign(p, "-");
        TRY(advance(p));
        return p->next.kind == TOKEN_NUMBER ? parse_number(p, negative, out)
                                            : fail(p, "no number after a sign");
    }
    if (p->next.kind == TOKEN_NUMBER) {
        return parse_number(p, false, out);
    }
    if (p->next.kind == TOKEN_NAME && time_kinds(p->next.text) != NULL) {
        const tarn_kind *kinds = time_kinds(p->next.text);
        TRY(advance(p));
        return parse_time(p, kinds, out);
    }
    if (p->next.kind == TOKEN_NAME) {
        *out = value_null(type_primitive(TARN_BOOLEAN));
        out->is_null = false;
        out->as.boolean = is_word(p, "true");
        return advance(p);
    }
    tarn_kind kind = p->next.kind == TOKEN_HEX ? TARN_BINARY : TARN_STRING;
    code = value_from_text(p->arena, type_primitive(kind), p->next.text, out, NULL);
    if (code != TARN_OK) {
        return code == TARN_NOMEM ? err_nomem(p->err) : fail(p, "no valid text");
    }
    return advance(p);
done:
    return code;
}

/* ---- predicates ---- */

static tarn_code make_predicate(parser *p, expr_op op, tarn_str name, const tarn_value *values,
                                int32_t n, const tarn_expr **out) {
    tarn_expr *expr = ARENA_NEW(p->arena, tarn_expr);
    tarn_value *copy = ARENA_ARRAY(p->arena, tarn_value, (size_t)n);
    if (expr == NULL || copy == NULL) {
        return err_nomem(p->err);
    }
    if (n > 0) {
        memcpy(copy, values, (size_t)n * sizeof *copy);
    }
    expr->op = op;
    expr->name = name;
    expr->values = copy;
    expr->n_values = n;
    expr->field_id = TARN_NO_ID;
    *out = expr;
    return TARN_OK;
}

static tarn_code parse_in(parser *p, tarn_str name, bool negated, const tarn_expr **out) {
    tarn_value *values = NULL;
    int32_t n = 0;
    int32_t cap = 0;
    tarn_code code = TARN_OK;
    TRY(expect_sign(p, "("));
    for (;;) {
        if (n == cap) {
            int32_t more = cap > 0 ? cap * 2 : 8;
            values = arena_grow(p->arena, values, (size_t)cap * sizeof *values,
                                (size_t)more * sizeof *values);
            if (values == NULL) {
                return err_nomem(p->err);
            }
            cap = more;
        }
        TRY(parse_literal(p, &values[n]));
        n++;
        if (!is_sign(p, ",")) {
            break;
        }
        TRY(advance(p));
    }
    TRY(expect_sign(p, ")"));
    return make_predicate(p, negated ? EXPR_NOT_IN : EXPR_IN, name, values, n, out);
done:
    return code;
}

static tarn_code parse_between(parser *p, tarn_str name, bool negated, const tarn_expr **out) {
    tarn_value low;
    tarn_value high;
    const tarn_expr *first = NULL;
    const tarn_expr *second = NULL;
    tarn_code code;
    TRY(parse_literal(p, &low));
    TRY(expect_word(p, "and"));
    TRY(parse_literal(p, &high));
    TRY(make_predicate(p, negated ? EXPR_LT : EXPR_GE, name, &low, 1, &first));
    TRY(make_predicate(p, negated ? EXPR_GT : EXPR_LE, name, &high, 1, &second));
    *out = negated ? expr_or(p->arena, first, second) : expr_and(p->arena, first, second);
    code = *out != NULL ? TARN_OK : err_nomem(p->err);
done:
    return code;
}

/* A pattern with at most one %, at its end; backslash takes the next character as it is. */
static tarn_code parse_like(parser *p, tarn_str name, bool negated, const tarn_expr **out) {
    if (p->next.kind != TOKEN_STRING) {
        return fail(p, "no text after like");
    }
    tarn_str pattern = p->next.text;
    char *prefix = arena_alloc(p->arena, pattern.len + 1);
    size_t n = 0;
    bool open = false;
    if (prefix == NULL) {
        return err_nomem(p->err);
    }
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        if (c == '%' && i + 1 == pattern.len) {
            open = true;
            break;
        }
        if (c == '%' || c == '_') {
            return fail(p, "a pattern that is more than a prefix and %");
        }
        if (c == '\\' && i + 1 < pattern.len) {
            c = pattern.data[++i];
        }
        prefix[n++] = c;
    }
    if (!str_utf8_valid(str_make(prefix, n))) {
        return fail(p, "no valid text");
    }
    tarn_value value = value_str(type_primitive(TARN_STRING), str_make(prefix, n));
    expr_op op = open ? EXPR_STARTS_WITH : EXPR_EQ;
    tarn_code code = make_predicate(p, negated ? expr_negated_op(op) : op, name, &value, 1, out);
    return code == TARN_OK ? advance(p) : code;
}

static tarn_code parse_starts(parser *p, tarn_str name, bool negated, const tarn_expr **out) {
    tarn_value value;
    tarn_code code;
    TRY(expect_word(p, "with"));
    if (p->next.kind != TOKEN_STRING) {
        return fail(p, "no text after starts with");
    }
    TRY(parse_literal(p, &value));
    return make_predicate(p, negated ? EXPR_NOT_STARTS_WITH : EXPR_STARTS_WITH, name, &value, 1,
                          out);
done:
    return code;
}

static tarn_code parse_is(parser *p, tarn_str name, const tarn_expr **out) {
    tarn_code code = TARN_OK;
    bool negated = is_word(p, "not");
    if (negated) {
        TRY(advance(p));
    }
    if (!is_word(p, "null") && !is_word(p, "nan")) {
        return fail(p, "neither null nor nan after is");
    }
    expr_op op = is_word(p, "null") ? EXPR_IS_NULL : EXPR_IS_NAN;
    TRY(advance(p));
    return make_predicate(p, negated ? expr_negated_op(op) : op, name, NULL, 0, out);
done:
    return code;
}

static bool comparison_op(const parser *p, expr_op *op) {
    static const struct {
        const char *sign;
        expr_op op;
    } signs[] = {{"=", EXPR_EQ}, {"==", EXPR_EQ}, {"!=", EXPR_NE}, {"<>", EXPR_NE},
                 {"<", EXPR_LT}, {"<=", EXPR_LE}, {">", EXPR_GT},  {">=", EXPR_GE}};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (is_sign(p, signs[i].sign)) {
            *op = signs[i].op;
            return true;
        }
    }
    return false;
}

/* After a column's name. A column alone is a boolean that must be true. */
static tarn_code parse_tail(parser *p, tarn_str name, const tarn_expr **out) {
    tarn_value value;
    expr_op op;
    tarn_code code = TARN_OK;
    if (comparison_op(p, &op)) {
        TRY(advance(p));
        TRY(parse_literal(p, &value));
        return make_predicate(p, op, name, &value, 1, out);
    }
    if (is_word(p, "is")) {
        TRY(advance(p));
        return parse_is(p, name, out);
    }
    bool negated = is_word(p, "not");
    if (negated) {
        TRY(advance(p));
    }
    static const struct {
        const char *word;
        tarn_code (*parse)(parser *p, tarn_str name, bool negated, const tarn_expr **out);
    } tails[] = {{"in", parse_in},
                 {"between", parse_between},
                 {"like", parse_like},
                 {"starts", parse_starts}};
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        if (is_word(p, tails[i].word)) {
            TRY(advance(p));
            return tails[i].parse(p, name, negated, out);
        }
    }
    if (negated) {
        return fail(p, "no in, between, like or starts with after not");
    }
    value = value_null(type_primitive(TARN_BOOLEAN));
    value.is_null = false;
    value.as.boolean = true;
    return make_predicate(p, EXPR_EQ, name, &value, 1, out);
done:
    return code;
}

/* 5 < x is x > 5. */
static tarn_code parse_turned(parser *p, const tarn_expr **out) {
    static const expr_op turned[] = {
        [EXPR_LT] = EXPR_GT, [EXPR_LE] = EXPR_GE, [EXPR_GT] = EXPR_LT,
        [EXPR_GE] = EXPR_LE, [EXPR_EQ] = EXPR_EQ, [EXPR_NE] = EXPR_NE,
    };
    tarn_value value;
    expr_op op;
    tarn_code code;
    TRY(parse_literal(p, &value));
    if (!comparison_op(p, &op)) {
        if (value.type->kind == TARN_BOOLEAN) {
            *out = value.as.boolean ? expr_true() : expr_false();
            return TARN_OK;
        }
        return fail(p, "no comparison after a value");
    }
    TRY(advance(p));
    if (p->next.kind != TOKEN_NAME && p->next.kind != TOKEN_QUOTED) {
        return fail(p, "no column");
    }
    tarn_str name = p->next.text;
    TRY(advance(p));
    return make_predicate(p, turned[op], name, &value, 1, out);
done:
    return code;
}

/* is_nan(x), is_null(x) and their opposites, as programs write them. */
static tarn_code parse_call(parser *p, expr_op op, const tarn_expr **out) {
    tarn_code code;
    tarn_str name;
    TRY(expect_sign(p, "("));
    if (p->next.kind != TOKEN_NAME && p->next.kind != TOKEN_QUOTED) {
        return fail(p, "no column");
    }
    name = p->next.text;
    TRY(advance(p));
    TRY(expect_sign(p, ")"));
    return make_predicate(p, op, name, NULL, 0, out);
done:
    return code;
}

static bool call_op(tarn_str name, expr_op *op) {
    static const struct {
        const char *name;
        expr_op op;
    } calls[] = {{"is_null", EXPR_IS_NULL}, {"not_null", EXPR_NOT_NULL}, {"is_nan", EXPR_IS_NAN},
                 {"isnan", EXPR_IS_NAN},    {"not_nan", EXPR_NOT_NAN},   {"isnull", EXPR_IS_NULL}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (str_eq_nocase(name, str_of(calls[i].name))) {
            *op = calls[i].op;
            return true;
        }
    }
    return false;
}

static tarn_code parse_primary(parser *p, const tarn_expr **out) {
    tarn_code code = TARN_OK;
    expr_op op;
    if (is_sign(p, "(")) {
        if (++p->depth > LIMIT_EXPR_DEPTH) {
            return err_set(p->err, TARN_LIMIT, "a filter was nested more than %d levels deep",
                           LIMIT_EXPR_DEPTH);
        }
        TRY(advance(p));
        TRY(parse_or(p, out));
        p->depth--;
        return expect_sign(p, ")");
    }
    if (is_literal(p)) {
        return parse_turned(p, out);
    }
    if (p->next.kind != TOKEN_NAME && p->next.kind != TOKEN_QUOTED) {
        return fail(p, p->next.kind == TOKEN_END ? "it ended there" : "no column");
    }
    token name = p->next;
    TRY(advance(p));
    if (name.kind == TOKEN_NAME && is_sign(p, "(") && call_op(name.text, &op)) {
        return parse_call(p, op, out);
    }
    return parse_tail(p, name.text, out);
done:
    return code;
}

/* ---- not, and, or ---- */

static tarn_code parse_not(parser *p, const tarn_expr **out) {
    tarn_code code = TARN_OK;
    bool negated = false;
    while (is_word(p, "not")) {
        negated = !negated;
        TRY(advance(p));
    }
    TRY(parse_primary(p, out));
    if (negated) {
        *out = expr_not(p->arena, *out);
        code = *out != NULL ? TARN_OK : err_nomem(p->err);
    }
done:
    return code;
}

static tarn_code push(parser *p, operands *list, const tarn_expr *expr) {
    if (list->n == list->cap) {
        size_t more = list->cap > 0 ? list->cap * 2 : 4;
        list->items = arena_grow(p->arena, list->items, list->cap * sizeof *list->items,
                                 more * sizeof *list->items);
        if (list->items == NULL) {
            return err_nomem(p->err);
        }
        list->cap = more;
    }
    list->items[list->n++] = expr;
    return TARN_OK;
}

static const tarn_expr *join(parser *p, const tarn_expr **items, size_t n, bool all) {
    if (n == 1) {
        return items[0];
    }
    const tarn_expr *left = join(p, items, n / 2, all);
    const tarn_expr *right = join(p, items + n / 2, n - n / 2, all);
    if (left == NULL || right == NULL) {
        return NULL;
    }
    return all ? expr_and(p->arena, left, right) : expr_or(p->arena, left, right);
}

static tarn_code parse_chain(parser *p, bool all, const tarn_expr **out) {
    operands list = {0};
    const tarn_expr *expr = NULL;
    tarn_code code = TARN_OK;
    for (;;) {
        TRY(all ? parse_not(p, &expr) : parse_chain(p, true, &expr));
        TRY(push(p, &list, expr));
        if (!is_word(p, all ? "and" : "or")) {
            break;
        }
        TRY(advance(p));
    }
    *out = join(p, list.items, list.n, all);
    code = *out != NULL ? TARN_OK : err_nomem(p->err);
done:
    return code;
}

static tarn_code parse_or(parser *p, const tarn_expr **out) {
    return parse_chain(p, false, out);
}

tarn_code expr_parse(tarn_arena *arena, tarn_str text, const tarn_expr **out, tarn_error *err) {
    parser p = {.arena = arena, .err = err, .text = text};
    const tarn_expr *expr = NULL;
    tarn_code code = TARN_OK;
    if (!str_utf8_valid(text)) {
        return err_set(err, TARN_INVALID, "a filter was not valid UTF-8");
    }
    TRY(advance(&p));
    TRY(parse_or(&p, &expr));
    if (p.next.kind != TOKEN_END) {
        return fail(&p, "more text after the filter");
    }
    *out = expr;
done:
    return code;
}
