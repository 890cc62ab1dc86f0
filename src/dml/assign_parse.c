/* dml/assign_parse.c - the text of SET into trees, and names into columns.
 *
 *   list := name = sum {, name = sum}      sum := product {(+ | - | ||) product}
 *   product := factor {(* | /) factor}     factor := - factor | ( sum ) | literal | name */
#include "base/limits.h"
#include "dml/assign_int.h"

typedef struct set_parser {
    tarn_arena *arena;
    tarn_str text;
    size_t at;
    int depth;
    tarn_error *err;
} set_parser;

static tarn_code wrong(const set_parser *p, const char *what) {
    return err_set(p->err, TARN_INVALID, "SET \"%.*s\", column %zu: %s", STR_ARG(p->text),
                   p->at + 1, what);
}

static char peek(set_parser *p) {
    while (p->at < p->text.len && strchr(" \t\r\n", p->text.data[p->at]) != NULL) {
        p->at++;
    }
    return p->at < p->text.len ? p->text.data[p->at] : '\0';
}

static bool take(set_parser *p, const char *token) {
    size_t n = strlen(token);
    (void)peek(p);
    if (p->text.len - p->at < n || memcmp(p->text.data + p->at, token, n) != 0) {
        return false;
    }
    p->at += n;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* A word of letters, digits and dots. */
static tarn_str take_word(set_parser *p) {
    size_t start = p->at;
    while (p->at < p->text.len && (is_letter(p->text.data[p->at]) ||
                                   is_digit(p->text.data[p->at]) || p->text.data[p->at] == '.')) {
        p->at++;
    }
    return str_sub(p->text, start, p->at - start);
}

/* Text between quotes; two of them inside stand for one. */
static tarn_code take_quoted(set_parser *p, char quote, tarn_str *out) {
    char *bytes = arena_alloc(p->arena, p->text.len - p->at + 1);
    size_t n = 0;
    if (bytes == NULL) {
        return err_nomem(p->err);
    }
    for (p->at++; p->at < p->text.len; p->at++) {
        char c = p->text.data[p->at];
        if (c == quote) {
            if (p->at + 1 >= p->text.len || p->text.data[p->at + 1] != quote) {
                p->at++;
                *out = str_make(bytes, n);
                return TARN_OK;
            }
            p->at++;
        }
        bytes[n++] = c;
    }
    return wrong(p, "a quote was not closed");
}

static tarn_code new_node(set_parser *p, assign_op op, assign_node **out) {
    *out = ARENA_NEW(p->arena, assign_node);
    if (*out == NULL) {
        return err_nomem(p->err);
    }
    (*out)->op = op;
    return TARN_OK;
}

static tarn_code parse_number(set_parser *p, assign_node *node) {
    size_t start = p->at;
    int64_t i64;
    tarn_int128 i128;
    while (p->at < p->text.len &&
           (is_digit(p->text.data[p->at]) || p->text.data[p->at] == '.' ||
            ((p->text.data[p->at] == '-' || p->text.data[p->at] == '+') &&
             (p->text.data[p->at - 1] == 'e' || p->text.data[p->at - 1] == 'E')) ||
            p->text.data[p->at] == 'e' || p->text.data[p->at] == 'E')) {
        p->at++;
    }
    tarn_str text = str_sub(p->text, start, p->at - start);
    if (str_to_i64(text, &i64)) {
        node->literal = value_i64(type_primitive(TARN_LONG), i64);
        return TARN_OK;
    }
    node->literal = value_null(type_primitive(TARN_DOUBLE));
    node->literal.is_null = false;
    if (!str_to_f64(text, &node->literal.as.f64)) {
        return wrong(p, "this is not a number");
    }
    for (int32_t scale = 0; scale <= 38; scale++) {
        if (value_parse_decimal(text, 38, scale, &i128, NULL) == TARN_OK) {
            node->literal.type = type_decimal(p->arena, 38, scale);
            node->literal.as.i128 = i128;
            return node->literal.type != NULL ? TARN_OK : err_nomem(p->err);
        }
    }
    return TARN_OK;
}

static tarn_code set_bool(assign_node *node, bool value) {
    node->literal = value_null(type_primitive(TARN_BOOLEAN));
    node->literal.is_null = false;
    node->literal.as.boolean = value;
    return TARN_OK;
}

/* date '...', time '...', timestamp '...', timestamptz '...' */
static tarn_code parse_typed(set_parser *p, tarn_kind kind, assign_node *node) {
    tarn_str text;
    tarn_code code = take_quoted(p, '\'', &text);
    return code != TARN_OK
               ? code
               : value_from_text(p->arena, type_primitive(kind), text, &node->literal, p->err);
}

static tarn_code parse_word(set_parser *p, assign_node *node) {
    static const struct {
        const char *name;
        tarn_kind kind;
    } typed[] = {{"date", TARN_DATE},
                 {"time", TARN_TIME},
                 {"timestamp", TARN_TIMESTAMP},
                 {"timestamptz", TARN_TIMESTAMPTZ}};
    tarn_str word = take_word(p);
    if (str_eq_nocase(word, STR("null"))) {
        return TARN_OK; /* a literal without a type */
    }
    if (str_eq_nocase(word, STR("true")) || str_eq_nocase(word, STR("false"))) {
        return set_bool(node, word.len == 4);
    }
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        if (str_eq_nocase(word, str_of(typed[i].name)) && peek(p) == '\'') {
            return parse_typed(p, typed[i].kind, node);
        }
    }
    node->op = ASSIGN_COLUMN;
    node->name = word;
    return TARN_OK;
}

static tarn_code parse_sum(set_parser *p, assign_node **out);

static tarn_code parse_negative(set_parser *p, assign_node **out);

static tarn_code parse_factor(set_parser *p, assign_node **out) {
    tarn_code code = TARN_OK;
    assign_node *node;
    char c = peek(p);
    if (++p->depth > LIMIT_EXPR_DEPTH) {
        return err_set(p->err, TARN_LIMIT, "a SET expression was nested more than %d deep",
                       LIMIT_EXPR_DEPTH);
    }
    if (c == '(') {
        p->at++;
        TRY(parse_sum(p, out));
        code = take(p, ")") ? TARN_OK : wrong(p, "a parenthesis was not closed");
        goto done;
    }
    if (c == '-') {
        p->at++;
        TRY(parse_negative(p, out));
        goto done;
    }
    TRY(new_node(p, ASSIGN_LITERAL, &node));
    *out = node;
    if (c == '\'') {
        node->literal = value_str(type_primitive(TARN_STRING), STR_NULL);
        TRY(take_quoted(p, c, &node->literal.as.bytes));
    } else if (c == '"' || c == '`') {
        node->op = ASSIGN_COLUMN;
        TRY(take_quoted(p, c, &node->name));
    } else if (is_digit(c) || c == '.') {
        TRY(parse_number(p, node));
    } else if (is_letter(c)) {
        TRY(parse_word(p, node));
    } else {
        code = wrong(p, c == '\0' ? "a value was missing" : "this is no value");
    }
done:
    p->depth--;
    return code;
}

static bool negate(tarn_value *v) {
    if (v->type == NULL) {
        return true;
    }
    if (v->type->kind == TARN_LONG) {
        v->as.i64 = -v->as.i64; /* written without a sign: never the least one */
    } else if (v->type->kind == TARN_DECIMAL) {
        v->as.i128 = -v->as.i128;
    } else if (v->type->kind == TARN_DOUBLE) {
        v->as.f64 = -v->as.f64;
    }
    return v->type->kind == TARN_LONG || v->type->kind == TARN_DECIMAL ||
           v->type->kind == TARN_DOUBLE;
}

/* -x is 0 - x, but for numbers as they are written. */
static tarn_code parse_negative(set_parser *p, assign_node **out) {
    tarn_code code = TARN_OK;
    assign_node *zero;
    assign_node *minus;
    assign_node *of;
    TRY(parse_factor(p, &of));
    if (of->op == ASSIGN_LITERAL && negate(&of->literal)) {
        *out = of;
        goto done;
    }
    TRY(new_node(p, ASSIGN_LITERAL, &zero));
    TRY(new_node(p, ASSIGN_SUBTRACT, &minus));
    zero->literal = value_i64(type_primitive(TARN_LONG), 0);
    minus->left = zero;
    minus->right = of;
    *out = minus;
done:
    return code;
}

static tarn_code join(set_parser *p, assign_op op, assign_node **left, assign_node *right) {
    assign_node *node;
    tarn_code code = new_node(p, op, &node);
    if (code == TARN_OK) {
        node->left = *left;
        node->right = right;
        *left = node;
    }
    return code;
}

static tarn_code parse_product(set_parser *p, assign_node **out) {
    tarn_code code = TARN_OK;
    assign_node *right;
    int joined = 0;
    TRY(parse_factor(p, out));
    for (char c = peek(p); c == '*' || c == '/'; c = peek(p)) {
        p->at++;
        if (++joined > LIMIT_EXPR_DEPTH) {
            code = wrong(p, "too many operators stood in a row");
            goto done;
        }
        TRY(parse_factor(p, &right));
        TRY(join(p, c == '*' ? ASSIGN_MULTIPLY : ASSIGN_DIVIDE, out, right));
    }
done:
    return code;
}

static tarn_code parse_sum(set_parser *p, assign_node **out) {
    tarn_code code = TARN_OK;
    assign_node *right;
    int joined = 0;
    TRY(parse_product(p, out));
    for (;;) {
        assign_op op;
        if (take(p, "||")) {
            op = ASSIGN_CONCAT;
        } else if (take(p, "+")) {
            op = ASSIGN_ADD;
        } else if (take(p, "-")) {
            op = ASSIGN_SUBTRACT;
        } else {
            break;
        }
        if (++joined > LIMIT_EXPR_DEPTH) {
            code = wrong(p, "too many operators stood in a row");
            goto done;
        }
        TRY(parse_product(p, &right));
        TRY(join(p, op, out, right));
    }
done:
    return code;
}

static tarn_code parse_assignment(set_parser *p, assignment *out) {
    tarn_code code = TARN_OK;
    char c = peek(p);
    if (c == '"' || c == '`') {
        TRY(take_quoted(p, c, &out->name));
    } else if (is_letter(c)) {
        out->name = take_word(p);
    } else {
        code = wrong(p, "a column's name was missing");
        goto done;
    }
    if (!take(p, "=")) {
        code = wrong(p, "\"=\" was missing after a column's name");
        goto done;
    }
    TRY(parse_sum(p, &out->value));
done:
    return code;
}

tarn_code assign_parse(tarn_arena *arena, tarn_str text, assign_list *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    set_parser p = {arena, arena_str(arena, text), 0, 0, err};
    assign_list list = {NULL, 0};
    int32_t cap = 0;
    if (p.text.data == NULL) {
        return err_nomem(err);
    }
    if (!str_utf8_valid(text)) {
        return err_set(err, TARN_INVALID, "the text of SET was not UTF-8");
    }
    do {
        if (list.n == cap) {
            int32_t more = cap == 0 ? 8 : cap * 2;
            list.items = arena_grow(arena, list.items, (size_t)cap * sizeof *list.items,
                                    (size_t)more * sizeof *list.items);
            if (list.items == NULL) {
                return err_nomem(err);
            }
            cap = more;
        }
        memset(&list.items[list.n], 0, sizeof *list.items);
        TRY(parse_assignment(&p, &list.items[list.n]));
        list.n++;
    } while (take(&p, ","));
    if (peek(&p) != '\0') {
        code = wrong(&p, "\",\" or the end was expected");
        goto done;
    }
    *out = list;
done:
    return code;
}

/* ---- binding ---- */

typedef struct set_binder {
    tarn_arena *arena;
    const tarn_type *root;
    bool case_insensitive;
    int32_t n_columns;
    tarn_error *err;
} set_binder;

static bool is_number(const tarn_type *type) {
    return type == NULL || (type->kind >= TARN_INT && type->kind <= TARN_DECIMAL);
}

static tarn_code refuse_types(const set_binder *b, const assign_node *node, const char *op) {
    tarn_buf left;
    tarn_buf right;
    buf_init(&left, b->arena->env, 0);
    buf_init(&right, b->arena->env, 0);
    tarn_code code = TARN_OK;
    if (node->left->type != NULL) {
        code = type_text(node->left->type, &left, b->err);
    }
    if (code == TARN_OK && node->right->type != NULL) {
        code = type_text(node->right->type, &right, b->err);
    }
    if (code == TARN_OK) {
        code = err_set(b->err, TARN_INVALID, "%.*s %s %.*s does not go together in SET",
                       STR_ARG(buf_str(&left)), op, STR_ARG(buf_str(&right)));
    }
    buf_release(&left);
    buf_release(&right);
    return code;
}

static int32_t scale_of(const tarn_type *type) {
    return type->kind == TARN_DECIMAL ? type->scale : 0;
}

static bool is_double(const tarn_type *type) {
    return type->kind == TARN_FLOAT || type->kind == TARN_DOUBLE;
}

static tarn_code bind_operator(set_binder *b, assign_node *node) {
    static const char *const names[] = {"", "", "+", "-", "*", "/", "||"};
    const tarn_type *left = node->left->type;
    const tarn_type *right = node->right->type;
    if (node->op == ASSIGN_CONCAT) {
        bool texts = (left == NULL || left->kind == TARN_STRING) &&
                     (right == NULL || right->kind == TARN_STRING);
        node->type = left == NULL || right == NULL ? NULL : type_primitive(TARN_STRING);
        return texts ? TARN_OK : refuse_types(b, node, names[node->op]);
    }
    if (!is_number(left) || !is_number(right)) {
        return refuse_types(b, node, names[node->op]);
    }
    if (left == NULL || right == NULL) {
        node->type = NULL;
    } else if (node->op == ASSIGN_DIVIDE || is_double(left) || is_double(right)) {
        node->type = type_primitive(TARN_DOUBLE);
    } else if (left->kind == TARN_DECIMAL || right->kind == TARN_DECIMAL) {
        int32_t a = scale_of(left);
        int32_t c = scale_of(right);
        int32_t scale = node->op == ASSIGN_MULTIPLY ? a + c : a > c ? a : c;
        if (scale > 38) {
            return err_set(b->err, TARN_INVALID, "a product in SET had %d digits after its point",
                           scale);
        }
        node->type = type_decimal(b->arena, 38, scale);
        return node->type != NULL ? TARN_OK : err_nomem(b->err);
    } else {
        node->type = type_primitive(TARN_LONG);
    }
    return TARN_OK;
}

static tarn_code bind_node(set_binder *b, const assign_node *from, assign_node **out) {
    tarn_code code = TARN_OK;
    assign_node *node = ARENA_NEW(b->arena, assign_node);
    if (node == NULL) {
        return err_nomem(b->err);
    }
    *node = *from;
    *out = node;
    if (node->op == ASSIGN_LITERAL) {
        node->type = node->literal.type;
    } else if (node->op == ASSIGN_COLUMN) {
        node->field = type_find_name(b->root, node->name, !b->case_insensitive);
        if (node->field == NULL) {
            return err_set(b->err, TARN_INVALID, "SET names column %.*s, which the table lacks",
                           STR_ARG(node->name));
        }
        node->type = node->field->type;
        node->column = b->n_columns++;
    } else {
        TRY(bind_node(b, from->left, &node->left));
        TRY(bind_node(b, from->right, &node->right));
        TRY(bind_operator(b, node));
    }
done:
    return code;
}

/* Values that no column of that type can ever take are said before anything is read. */
static tarn_code check_target(set_binder *b, const assignment *a) {
    tarn_value converted;
    int range = 0;
    const assign_node *node = a->value;
    const tarn_type *type = a->field->type;
    if (node->type == NULL || (node->op == ASSIGN_COLUMN && type_same_shape(node->type, type))) {
        return TARN_OK;
    }
    if (type_is_nested(type) || type_is_nested(node->type) || type->kind == TARN_VARIANT ||
        type->kind == TARN_GEOMETRY || type->kind == TARN_GEOGRAPHY || type->kind == TARN_UNKNOWN) {
        return err_set(b->err, TARN_UNSUPPORTED,
                       "column %.*s is a %s, and takes only null or a column of the same type",
                       STR_ARG(a->field->name), type_kind_name(type->kind));
    }
    if (node->op != ASSIGN_LITERAL) {
        return TARN_OK;
    }
    tarn_code code = value_convert(b->arena, &node->literal, type, &converted, &range, b->err);
    if (code == TARN_OK && range != 0) {
        code = err_set(b->err, TARN_INVALID, "the value is beyond what a %s holds",
                       type_kind_name(type->kind));
    }
    return code == TARN_OK ? code
                           : err_add(b->err, code, "SET of column %.*s", STR_ARG(a->field->name));
}

static tarn_code bind_one(set_binder *b, const assign_list *before, assignment *a) {
    tarn_code code = TARN_OK;
    a->field = type_find_name(b->root, a->name, !b->case_insensitive);
    if (a->field == NULL) {
        return err_set(b->err, TARN_INVALID, "SET names column %.*s, which the table lacks",
                       STR_ARG(a->name));
    }
    if (type_child(b->root, a->field->name) != a->field) {
        return err_set(b->err, TARN_UNSUPPORTED,
                       "column %.*s lies inside another; SET takes whole columns",
                       STR_ARG(a->name));
    }
    if (assign_of(before, a->field->id) != NULL) {
        return err_set(b->err, TARN_INVALID, "column %.*s was set twice", STR_ARG(a->field->name));
    }
    b->n_columns = 0;
    TRY(bind_node(b, a->value, &a->value));
    if (a->field->required && a->value->type == NULL) {
        return err_set(b->err, TARN_INVALID, "column %.*s is required and was set to null",
                       STR_ARG(a->field->name));
    }
    TRY(check_target(b, a));
done:
    return code;
}

tarn_code assign_bind(tarn_arena *arena, const assign_list *list, const tarn_type *root,
                      bool case_insensitive, assign_list *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    set_binder b = {arena, root, case_insensitive, 0, err};
    assign_list bound = {ARENA_ARRAY(arena, assignment, (size_t)list->n + 1), 0};
    if (bound.items == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < list->n; i++) {
        bound.items[i] = list->items[i];
        TRY(bind_one(&b, &bound, &bound.items[i]));
        bound.n++;
    }
    *out = bound;
done:
    return code;
}

const assignment *assign_of(const assign_list *list, int32_t field_id) {
    for (int32_t i = 0; i < list->n; i++) {
        if (list->items[i].field->id == field_id) {
            return &list->items[i];
        }
    }
    return NULL;
}
