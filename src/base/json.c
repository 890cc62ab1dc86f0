/* base/json.c - JSON text (RFC 8259) into a tree in an arena, and getters and builders of trees.
 *
 * The text is copied into the arena once, ended by NULs, and strings are unescaped in place: no
 * allocation per string, and the scanners need not look for the end, since NUL is no JSON. Each
 * value is one node. Invariants while parsing: p never passes the first NUL after the text; bytes
 * before p may have been rewritten, so positions in errors are told from the original. */
#include "base/json.h"

#include <stdio.h>

#include "base/map.h"
#include "base/num.h"

#define PAD_BYTES     16
#define SMALL_OBJECT  16 /* members compared pairwise for duplicates; more are hashed */
#define NODES_AT_ONCE 64

typedef struct json_parser {
    tarn_arena *arena;
    tarn_error *err;
    const char *what;
    tarn_str original;
    char *text; /* the copy */
    char *p;
    json_value *spare; /* nodes cut from the arena and not used yet */
    size_t n_spare;
    int depth;
} json_parser;

static tarn_code fail_as(json_parser *q, tarn_code code, const char *at, const char *why) {
    size_t offset = (size_t)(at - q->text);
    size_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < offset; i++) {
        if (q->original.data[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    }
    size_t column = 1;
    for (size_t i = line_start; i < offset; i++) {
        column += ((unsigned char)q->original.data[i] & 0xC0) != 0x80;
    }
    return err_set(q->err, code, "%s: line %zu, column %zu: %s", q->what, line, column, why);
}

static tarn_code fail_at(json_parser *q, const char *at, const char *why) {
    return fail_as(q, TARN_CORRUPT, at, why);
}

static tarn_code fail_found(json_parser *q, const char *expected) {
    char why[128];
    unsigned char c = (unsigned char)*q->p;
    if (q->p == q->text + q->original.len) {
        (void)snprintf(why, sizeof why, "the text ended where %s was expected", expected);
    } else if (c > 0x20 && c < 0x7F) {
        (void)snprintf(why, sizeof why, "'%c' stood where %s was expected", c, expected);
    } else {
        (void)snprintf(why, sizeof why, "byte 0x%02x stood where %s was expected", c, expected);
    }
    return fail_at(q, q->p, why);
}

static json_value *new_node(json_parser *q, json_kind kind) {
    if (q->n_spare == 0) {
        q->spare = arena_alloc(q->arena, NODES_AT_ONCE * sizeof(json_value));
        if (q->spare == NULL) {
            return NULL;
        }
        q->n_spare = NODES_AT_ONCE;
    }
    json_value *node = q->spare++;
    q->n_spare--;
    memset(node, 0, sizeof *node);
    node->kind = kind;
    return node;
}

static inline void skip_space(json_parser *q) {
    char *p = q->p;
    if ((unsigned char)*p > ' ') {
        return;
    }
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    q->p = p;
}

static bool read_hex4(const char *p, uint32_t *out) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (uint32_t)(c - 'a' + 10);
        } else if (c >= 'A' && c <= 'F') {
            digit = (uint32_t)(c - 'A' + 10);
        } else {
            return false;
        }
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

/* p is at the 'u'. Surrogates must come as a pair. */
static tarn_code read_code_point(json_parser *q, char **p, uint32_t *out) {
    char *at = *p;
    uint32_t high;
    if (!read_hex4(at + 1, &high)) {
        return fail_at(q, at - 1, "an escape \\u lacked four hex digits");
    }
    if (high < 0xD800 || high > 0xDFFF) {
        *out = high;
        *p = at + 5;
        return TARN_OK;
    }
    uint32_t low;
    if (high > 0xDBFF || at[5] != '\\' || at[6] != 'u' || !read_hex4(at + 7, &low) ||
        low < 0xDC00 || low > 0xDFFF) {
        return fail_at(q, at - 1, "a surrogate stood alone");
    }
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    *p = at + 11;
    return TARN_OK;
}

/* p is after a backslash; *to is where the unescaped byte goes, which is never ahead of p. */
static tarn_code read_escape(json_parser *q, char **p, char **to) {
    char c = **p;
    char plain;
    switch (c) {
    case '"':
    case '\\':
    case '/':
        plain = c;
        break;
    case 'b':
        plain = '\b';
        break;
    case 'f':
        plain = '\f';
        break;
    case 'n':
        plain = '\n';
        break;
    case 'r':
        plain = '\r';
        break;
    case 't':
        plain = '\t';
        break;
    case 'u': {
        uint32_t code_point = 0;
        char bytes[4];
        tarn_code code = read_code_point(q, p, &code_point);
        if (code != TARN_OK) {
            return code;
        }
        size_t len = str_utf8_put(code_point, bytes);
        memcpy(*to, bytes, len);
        *to += len;
        return TARN_OK;
    }
    default:
        return fail_at(q, *p - 1, "an escape was none of JSON's");
    }
    *(*to)++ = plain;
    (*p)++;
    return TARN_OK;
}

/* First byte from p on that is a quote, a backslash or a control character. Eight at a time: the
 * padding after the text makes the loads safe, and its NULs end the search. */
static char *find_special(char *p) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = ones << 7;
    for (;;) {
        uint64_t v = num_load_u64(p);
        uint64_t quote = v ^ (ones * '"');
        uint64_t slash = v ^ (ones * '\\');
        uint64_t hit = (quote - ones) & ~quote;
        hit |= (slash - ones) & ~slash;
        hit |= (v - ones * 0x20) & ~v;
        hit &= highs;
        if (hit != 0) {
            return p + (__builtin_ctzll(hit) >> 3);
        }
        p += 8;
    }
}

static tarn_code parse_string(json_parser *q, tarn_str *out) {
    char *start = q->p + 1;
    char *p = find_special(start);
    if (*p == '"') {
        *out = str_make(start, (size_t)(p - start));
        q->p = p + 1;
        return TARN_OK;
    }
    char *to = p;
    for (;;) {
        if (*p == '"') {
            break;
        }
        if (*p != '\\') {
            q->p = p;
            return p == q->text + q->original.len
                       ? fail_at(q, p, "the text ended inside a string")
                       : fail_at(q, p, "a control character stood in a string");
        }
        p++;
        tarn_code code = read_escape(q, &p, &to);
        if (code != TARN_OK) {
            return code;
        }
        char *next = find_special(p);
        memmove(to, p, (size_t)(next - p));
        to += next - p;
        p = next;
    }
    *out = str_make(start, (size_t)(to - start));
    q->p = p + 1;
    return TARN_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static tarn_code parse_number(json_parser *q, json_value **out) {
    char *start = q->p;
    if (*q->p == '-') {
        q->p++;
    }
    if (!is_digit(*q->p)) {
        return fail_found(q, "a digit");
    }
    if (*q->p == '0') {
        q->p++;
    } else {
        while (is_digit(*q->p)) {
            q->p++;
        }
    }
    if (is_digit(*q->p)) {
        return fail_at(q, start, "a number began with a needless zero");
    }
    if (*q->p == '.') {
        q->p++;
        if (!is_digit(*q->p)) {
            return fail_found(q, "a digit");
        }
        while (is_digit(*q->p)) {
            q->p++;
        }
    }
    if (*q->p == 'e' || *q->p == 'E') {
        q->p++;
        if (*q->p == '+' || *q->p == '-') {
            q->p++;
        }
        if (!is_digit(*q->p)) {
            return fail_found(q, "a digit");
        }
        while (is_digit(*q->p)) {
            q->p++;
        }
    }
    json_value *node = new_node(q, JSON_NUMBER);
    if (node == NULL) {
        return err_nomem(q->err);
    }
    node->text = str_make(start, (size_t)(q->p - start));
    *out = node;
    return TARN_OK;
}

static tarn_code parse_word(json_parser *q, const char *word, json_kind kind, bool boolean,
                            json_value **out) {
    size_t len = strlen(word);
    if (strncmp(q->p, word, len) != 0) {
        return fail_found(q, "a value");
    }
    json_value *node = new_node(q, kind);
    if (node == NULL) {
        return err_nomem(q->err);
    }
    q->p += len;
    node->boolean = boolean;
    *out = node;
    return TARN_OK;
}

static tarn_code parse_value(json_parser *q, json_value **out);

static tarn_code enter(json_parser *q) {
    if (q->depth == JSON_MAX_DEPTH) {
        return fail_as(q, TARN_LIMIT, q->p, "values were nested deeper than 200 levels");
    }
    q->depth++;
    q->p++;
    skip_space(q);
    return TARN_OK;
}

static tarn_code parse_array(json_parser *q, json_value **out) {
    json_value *array = new_node(q, JSON_ARRAY);
    if (array == NULL) {
        return err_nomem(q->err);
    }
    tarn_code code = enter(q);
    if (code != TARN_OK) {
        return code;
    }
    json_value **link = &array->first;
    if (*q->p != ']') {
        for (;;) {
            code = parse_value(q, link);
            if (code != TARN_OK) {
                return code;
            }
            link = &(*link)->next;
            array->count++;
            skip_space(q);
            if (*q->p != ',') {
                break;
            }
            q->p++;
            skip_space(q);
        }
        if (*q->p != ']') {
            return fail_found(q, "',' or ']'");
        }
    }
    q->p++;
    q->depth--;
    *out = array;
    return TARN_OK;
}

static tarn_code fail_duplicate(json_parser *q, tarn_str name) {
    char why[256];
    (void)snprintf(why, sizeof why, "the name \"%.*s\" stood twice in one object",
                   (int)(name.len < 180 ? name.len : 180), name.data);
    return fail_at(q, name.data - 1, why);
}

static tarn_code check_names_hashed(json_parser *q, const json_value *object) {
    tarn_arena scratch;
    tarn_map names;
    tarn_code code = TARN_OK;
    arena_init(&scratch, q->arena->env);
    map_init(&names, &scratch);
    for (const json_value *m = object->first; m != NULL && code == TARN_OK; m = m->next) {
        bool added;
        if (map_put(&names, m->name, &added) == NULL) {
            code = err_nomem(q->err);
        } else if (!added) {
            code = fail_duplicate(q, m->name);
        }
    }
    arena_release(&scratch);
    return code;
}

static tarn_code check_names(json_parser *q, const json_value *object) {
    if (object->count > SMALL_OBJECT) {
        return check_names_hashed(q, object);
    }
    for (const json_value *a = object->first; a != NULL; a = a->next) {
        for (const json_value *b = a->next; b != NULL; b = b->next) {
            if (a->name.len == b->name.len && str_eq(a->name, b->name)) {
                return fail_duplicate(q, b->name);
            }
        }
    }
    return TARN_OK;
}

static tarn_code parse_member(json_parser *q, json_value **link) {
    if (*q->p != '"') {
        return fail_found(q, "a name in quotes");
    }
    tarn_str name;
    tarn_code code = parse_string(q, &name);
    if (code != TARN_OK) {
        return code;
    }
    skip_space(q);
    if (*q->p != ':') {
        return fail_found(q, "':'");
    }
    q->p++;
    skip_space(q);
    code = parse_value(q, link);
    if (code == TARN_OK) {
        (*link)->name = name;
    }
    return code;
}

static tarn_code parse_object(json_parser *q, json_value **out) {
    json_value *object = new_node(q, JSON_OBJECT);
    if (object == NULL) {
        return err_nomem(q->err);
    }
    tarn_code code = enter(q);
    if (code != TARN_OK) {
        return code;
    }
    json_value **link = &object->first;
    if (*q->p != '}') {
        for (;;) {
            code = parse_member(q, link);
            if (code != TARN_OK) {
                return code;
            }
            link = &(*link)->next;
            object->count++;
            skip_space(q);
            if (*q->p != ',') {
                break;
            }
            q->p++;
            skip_space(q);
        }
        if (*q->p != '}') {
            return fail_found(q, "',' or '}'");
        }
    }
    q->p++;
    q->depth--;
    *out = object;
    return check_names(q, object);
}

static tarn_code parse_value(json_parser *q, json_value **out) {
    switch (*q->p) {
    case '{':
        return parse_object(q, out);
    case '[':
        return parse_array(q, out);
    case '"': {
        tarn_str text;
        tarn_code code = parse_string(q, &text);
        if (code != TARN_OK) {
            return code;
        }
        *out = new_node(q, JSON_STRING);
        if (*out == NULL) {
            return err_nomem(q->err);
        }
        (*out)->text = text;
        return TARN_OK;
    }
    case 't':
        return parse_word(q, "true", JSON_BOOL, true, out);
    case 'f':
        return parse_word(q, "false", JSON_BOOL, false, out);
    case 'n':
        return parse_word(q, "null", JSON_NULL, false, out);
    default:
        if (*q->p == '-' || is_digit(*q->p)) {
            return parse_number(q, out);
        }
        return fail_found(q, "a value");
    }
}

static tarn_code check_utf8(json_parser *q) {
    if (str_utf8_valid(q->original)) {
        return TARN_OK;
    }
    size_t at = 0;
    while (at < q->original.len) {
        size_t before = at;
        uint32_t c = str_utf8_next(q->original, &at);
        if (c == 0xFFFD && at == before + 1) {
            return fail_at(q, q->text + before, "a byte was not UTF-8");
        }
    }
    return TARN_OK;
}

tarn_code json_parse(tarn_arena *arena, tarn_str text, const char *what, json_value **out,
                     tarn_error *err) {
    json_parser q;
    memset(&q, 0, sizeof q);
    q.arena = arena;
    q.err = err;
    q.what = what;
    q.original = text;
    q.text = text.len > SIZE_MAX / 8 ? NULL : arena_alloc(arena, text.len + PAD_BYTES);
    if (q.text == NULL) {
        return err_nomem(err);
    }
    if (text.len > 0) {
        memcpy(q.text, text.data, text.len);
    }
    memset(q.text + text.len, 0, PAD_BYTES);
    tarn_code code = check_utf8(&q);
    if (code != TARN_OK) {
        return code;
    }
    q.p = q.text;
    skip_space(&q);
    json_value *root = NULL;
    code = parse_value(&q, &root);
    if (code != TARN_OK) {
        return code;
    }
    skip_space(&q);
    if (q.p != q.text + text.len) {
        return fail_found(&q, "the end");
    }
    *out = root;
    return TARN_OK;
}

const json_value *json_get(const json_value *object, const char *name) {
    if (!json_is(object, JSON_OBJECT)) {
        return NULL;
    }
    tarn_str wanted = str_of(name);
    for (const json_value *m = object->first; m != NULL; m = m->next) {
        if (str_eq(m->name, wanted)) {
            return m;
        }
    }
    return NULL;
}

const json_value *json_stranger(const json_value *object, const char *const *names) {
    const json_value *m = json_is(object, JSON_OBJECT) ? object->first : NULL;
    for (; m != NULL; m = m->next) {
        size_t i = 0;
        while (names[i] != NULL && !str_is(m->name, names[i])) {
            i++;
        }
        if (names[i] == NULL) {
            return m;
        }
    }
    return NULL;
}

bool json_i64(const json_value *value, int64_t *out) {
    return json_is(value, JSON_NUMBER) && str_to_i64(value->text, out);
}

bool json_i32(const json_value *value, int32_t *out) {
    return json_is(value, JSON_NUMBER) && str_to_i32(value->text, out);
}

/* Also the strings by which the writer tells what JSON has no number for. */
bool json_f64(const json_value *value, double *out) {
    if (json_is(value, JSON_STRING)) {
        return (str_is(value->text, "NaN") || str_is(value->text, "Infinity") ||
                str_is(value->text, "-Infinity")) &&
               str_to_f64(value->text, out);
    }
    return json_is(value, JSON_NUMBER) && str_to_f64(value->text, out);
}

bool json_str(const json_value *value, tarn_str *out) {
    if (!json_is(value, JSON_STRING)) {
        return false;
    }
    *out = value->text;
    return true;
}

bool json_bool(const json_value *value, bool *out) {
    if (!json_is(value, JSON_BOOL)) {
        return false;
    }
    *out = value->boolean;
    return true;
}

json_value *json_new(tarn_arena *arena, json_kind kind) {
    json_value *value = ARENA_NEW(arena, json_value);
    if (value != NULL) {
        value->kind = kind;
    }
    return value;
}

json_value *json_new_str(tarn_arena *arena, tarn_str s) {
    json_value *value = json_new(arena, JSON_STRING);
    if (value == NULL) {
        return NULL;
    }
    value->text = arena_str(arena, s);
    return value->text.data != NULL ? value : NULL;
}

json_value *json_new_i64(tarn_arena *arena, int64_t v) {
    char digits[24];
    size_t len = str_from_i64(v, digits);
    json_value *value = json_new_str(arena, str_make(digits, len));
    if (value != NULL) {
        value->kind = JSON_NUMBER;
    }
    return value;
}

json_value *json_new_bool(tarn_arena *arena, bool v) {
    json_value *value = json_new(arena, JSON_BOOL);
    if (value != NULL) {
        value->boolean = v;
    }
    return value;
}

void json_add(json_value *array, json_value *item) {
    json_value **link = &array->first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    item->next = NULL;
    *link = item;
    array->count++;
}

bool json_put(tarn_arena *arena, json_value *object, const char *name, json_value *item) {
    tarn_str wanted = str_of(name);
    json_value **link = &object->first;
    while (*link != NULL && !str_eq((*link)->name, wanted)) {
        link = &(*link)->next;
    }
    json_value *old = *link;
    if (old == item) {
        return true;
    }
    tarn_str copy = old != NULL ? old->name : arena_str(arena, wanted);
    if (copy.data == NULL) {
        return false;
    }
    item->name = copy;
    item->next = old != NULL ? old->next : NULL;
    object->count += old == NULL;
    *link = item;
    return true;
}
