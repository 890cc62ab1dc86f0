/* format/text/text_change.c - records that are changes: Debezium's envelopes, and the column that
 * says what a row does.
 *
 * An envelope is {"before": row, "after": row, "op": "c"...}, bare or as the payload of {"schema":
 * ..., "payload": ...}. It is passed once to find its parts; then the images that its op asks for
 * are decoded as rows of root: before and after an update, what is there of a delete, else after.
 * Both rows of an update come from one record, so a batch never ends between them, and a bad one
 * takes the other with it. Invariant: decoder.kinds has one byte for each row of decoder.rows. */
#include "base/time.h"
#include "format/text/text_int.h"
#include "format/text/text_scan.h"
#include "table/value.h"

enum {
    SPELT_AS_EVER,
    SPELT_TEXT, /* a string, unless the source left the value out */
    SPELT_DAYS,
    SPELT_TIME,      /* a number, digits behind the second's point */
    SPELT_TIMESTAMP, /* the same */
    SPELT_UNTOLD,    /* a time whose unit nothing says */
    SPELT_BASE64,
    SPELT_DECIMAL,         /* base64 of a two's complement, biggest byte first */
    SPELT_VARIABLE_DECIMAL /* {"scale": n, "value": base64} */
};

/* What Debezium puts for a large value that an update left alone. */
#define UNAVAILABLE STR("__debezium_unavailable_value")

typedef struct envelope {
    const char *before; /* NULL: absent or null */
    const char *after;
    const char *end; /* behind it, white space passed */
    char op;         /* 0: absent, 1: not one letter */
    bool is_null;
} envelope;

/* ---- the kind of a row ---- */

/* What deletes needs no more than its key; what stays must be whole. */
static tarn_code check_row(text_decoder *d, uint8_t kind) {
    const text_node *root = &d->plan->root;
    bool whole = !row_kind_deletes(kind);
    for (int32_t i = 0; i < root->n_children; i++) {
        const text_node *node = &root->children[i];
        const tarn_builder *b = &d->rows.children[i];
        if ((node->is_key || (whole && node->required)) && b->validity != NULL &&
            !bit_get(b->validity, b->length - 1)) {
            return text_bad(d, node, "a %s value was null or absent",
                            node->is_key ? "key" : "required");
        }
    }
    return TARN_OK;
}

tarn_code text_kind_row(text_decoder *d) {
    int32_t column = d->plan->options.kind_column - 1;
    const text_node *node = &d->plan->root.children[column];
    const tarn_builder *b = &d->rows.children[column];
    int64_t row = b->length - 1;
    uint8_t kind = TARN_ROW_INSERT;
    if (b->validity != NULL && !bit_get(b->validity, row)) {
        return text_bad(d, node, "the kind of the row was null or absent");
    }
    tarn_str text =
        str_make(b->bytes + b->offsets[row], (size_t)(b->offsets[row + 1] - b->offsets[row]));
    if (!row_kind_parse(text, &kind)) {
        return text_bad(d, node, "\"%.*s\" was no kind of row (c r u d, I U D, +I -U +U -D)",
                        STR_ARG(text));
    }
    tarn_code code = check_row(d, kind);
    return code == TARN_OK ? buf_append_char(&d->kinds, (char)kind, d->err) : code;
}

/* ---- how columns are spelt ---- */

static uint8_t spelling_without_schema(tarn_kind kind) {
    switch ((int)kind) {
    case TARN_STRING:
        return SPELT_TEXT;
    case TARN_DATE:
        return SPELT_DAYS;
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return SPELT_UNTOLD;
    case TARN_BINARY:
    case TARN_FIXED:
        return SPELT_BASE64;
    default:
        return SPELT_AS_EVER;
    }
}

tarn_code text_change_plan(text_plan *plan, tarn_error *err) {
    const text_node *root = &plan->root;
    plan->spellings = ARENA_ARRAY(&plan->arena, text_spelling, (size_t)root->n_children + 1);
    if (plan->spellings == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < root->n_children; i++) {
        plan->spellings[i].how = spelling_without_schema(root->children[i].kind);
        plan->spellings[i].digits = 0;
    }
    return TARN_OK;
}

typedef struct semantic {
    const char *name;
    uint8_t how;
    int8_t digits;
} semantic;

/* Debezium's and Kafka Connect's names of what a schema's primitive stands for. */
static const semantic semantics[] = {
    {"io.debezium.time.Date", SPELT_DAYS, 0},
    {"org.apache.kafka.connect.data.Date", SPELT_DAYS, 0},
    {"io.debezium.time.Time", SPELT_TIME, 3},
    {"org.apache.kafka.connect.data.Time", SPELT_TIME, 3},
    {"io.debezium.time.MicroTime", SPELT_TIME, 6},
    {"io.debezium.time.NanoTime", SPELT_TIME, 9},
    {"io.debezium.time.Timestamp", SPELT_TIMESTAMP, 3},
    {"org.apache.kafka.connect.data.Timestamp", SPELT_TIMESTAMP, 3},
    {"io.debezium.time.MicroTimestamp", SPELT_TIMESTAMP, 6},
    {"io.debezium.time.NanoTimestamp", SPELT_TIMESTAMP, 9},
    {"org.apache.kafka.connect.data.Decimal", SPELT_DECIMAL, 0},
    {"io.debezium.data.VariableScaleDecimal", SPELT_VARIABLE_DECIMAL, 0}};

static const semantic *find_semantic(const json_value *field) {
    tarn_str name;
    if (json_str(json_get(field, "name"), &name)) {
        for (size_t i = 0; i < sizeof semantics / sizeof *semantics; i++) {
            if (str_is(name, semantics[i].name)) {
                return &semantics[i];
            }
        }
    }
    return NULL;
}

static int32_t parameter(const json_value *field, const char *name, int32_t otherwise) {
    tarn_str text;
    int32_t value;
    return json_str(json_get(json_get(field, "parameters"), name), &text) &&
                   str_to_i32(text, &value) && value >= 0 && value <= 38
               ? value
               : otherwise;
}

/* The fields of the images in an envelope's schema: those of after, else of before. */
static const json_value *image_fields(const json_value *schema) {
    static const char *const names[] = {"after", "before"};
    const json_value *fields = json_get(schema, "fields");
    tarn_str name;
    for (int i = 0; i < 2 && json_is(fields, JSON_ARRAY); i++) {
        for (const json_value *field = fields->first; field != NULL; field = field->next) {
            if (json_str(json_get(field, "field"), &name) && str_is(name, names[i]) &&
                json_is(json_get(field, "fields"), JSON_ARRAY)) {
                return json_get(field, "fields");
            }
        }
    }
    return NULL;
}

static bool is_time(tarn_kind kind) {
    return kind == TARN_TIMESTAMP || kind == TARN_TIMESTAMPTZ || kind == TARN_TIMESTAMP_NS ||
           kind == TARN_TIMESTAMPTZ_NS;
}

/* Whether a column of this kind takes what is spelt so; others take the number as it is. */
static bool spelling_fits(uint8_t how, tarn_kind kind) {
    switch (how) {
    case SPELT_DAYS:
        return kind == TARN_DATE || kind == TARN_STRING;
    case SPELT_TIME:
        return kind == TARN_TIME || kind == TARN_STRING;
    case SPELT_TIMESTAMP:
        return is_time(kind) || kind == TARN_STRING;
    default:
        return true;
    }
}

static void tell_spelling(const text_node *node, const json_value *field, text_spelling *out) {
    const semantic *known = find_semantic(field);
    tarn_str type;
    if (known != NULL && spelling_fits(known->how, node->kind)) {
        out->how = known->how;
        out->digits =
            known->how == SPELT_DECIMAL ? (int8_t)parameter(field, "scale", 0) : known->digits;
    } else if (json_str(json_get(field, "type"), &type) && str_is(type, "bytes")) {
        out->how = SPELT_BASE64;
    }
}

/* What the schema at d->schema tells of root's columns; the others are spelt as without one. */
static tarn_code tell_spellings(text_decoder *d) {
    tarn_arena arena;
    json_value *schema;
    const text_node *root = &d->plan->root;
    tarn_error why = TARN_ERROR_INIT;
    tarn_str name;
    arena_init(&arena, d->env);
    tarn_code code = json_parse(&arena, buf_str(&d->schema), "schema", &schema, &why);
    if (code != TARN_OK) {
        buf_reset(&d->schema);
        code = code == TARN_NOMEM ? err_nomem(d->err)
                                  : text_bad(d, root, "schema of the envelope: %s", why.message);
        goto done;
    }
    size_t bytes = ((size_t)root->n_children + 1) * sizeof *d->told;
    d->told = d->told != NULL ? d->told : env_alloc(d->env, bytes);
    if (d->told == NULL) {
        buf_reset(&d->schema);
        code = err_nomem(d->err);
        goto done;
    }
    memcpy(d->told, d->plan->spellings, bytes);
    const json_value *fields = image_fields(schema);
    for (const json_value *f = fields != NULL ? fields->first : NULL; f != NULL; f = f->next) {
        int32_t at =
            json_str(json_get(f, "field"), &name) ? text_plan_find(d->plan, root, name) : -1;
        if (at >= 0) {
            tell_spelling(&root->children[at], f, &d->told[at]);
        }
    }
done:
    arena_release(&arena);
    return code;
}

/* The schema at d->p. Messages mostly repeat it byte by byte. */
static tarn_code read_schema(text_decoder *d) {
    const char *start = d->p;
    size_t len = d->schema.len;
    if (*start == '{' && len > 0 && (size_t)(d->end - start) > len &&
        memcmp(start, d->schema.data, len) == 0) {
        d->p += len;
        d->spellings = d->told;
        return TARN_OK;
    }
    tarn_code code = text_json_skip(d);
    if (code != TARN_OK || *start != '{') {
        return code;
    }
    buf_reset(&d->schema);
    code = buf_append(&d->schema, start, (size_t)(d->p - start), d->err);
    code = code == TARN_OK ? tell_spellings(d) : code;
    d->spellings = code == TARN_OK ? d->told : d->spellings;
    return code;
}

/* ---- values ---- */

/* Into d->nested, with room behind it. */
static tarn_code read_base64(text_decoder *d, const text_node *node, tarn_str *out) {
    tarn_str text;
    tarn_code code = text_json_string(d, node, &text);
    if (code != TARN_OK) {
        return code;
    }
    for (int i = 0; i < 2 && text.len > 0 && text.data[text.len - 1] == '='; i++) {
        text.len--;
    }
    buf_reset(&d->nested);
    code = buf_reserve(&d->nested, text.len + TEXT_PADDING, d->err);
    if (code != TARN_OK) {
        return code;
    }
    uint32_t bits = 0;
    uint8_t *to = d->nested.data;
    for (size_t i = 0; i < text.len; i++) {
        int digit = str_base64_digit(text.data[i]);
        if (digit < 0) {
            return text_bad(d, node, "a string was not base64");
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0) {
            *to++ = (uint8_t)(bits >> (6 - 2 * (i % 4)));
        }
    }
    *out = str_make(d->nested.data, (size_t)(to - d->nested.data));
    return text.len % 4 == 1 ? text_bad(d, node, "a string was not base64") : TARN_OK;
}

static tarn_code put_bytes(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_str bytes = STR_NULL;
    tarn_code code = read_base64(d, node, &bytes);
    if (code != TARN_OK) {
        return code;
    }
    if (node->kind == TARN_FIXED || node->kind == TARN_UUID) {
        size_t width = (size_t)type_width(node->type);
        return bytes.len == width
                   ? builder_fixed(b, bytes.data, d->err)
                   : text_bad(d, node, "%zu bytes were found, not %zu", bytes.len, width);
    }
    if (node->kind != TARN_BINARY) {
        return text_bad(d, node, "bytes were found, not %s", type_kind_name(node->kind));
    }
    return text_append_bytes(b, bytes.data, bytes.len, d->err);
}

static tarn_code put_unscaled(text_decoder *d, const text_node *node, tarn_builder *b,
                              tarn_str bytes, int32_t scale) {
    char text[64];
    if (bytes.len == 0 || bytes.len > 16) {
        return text_bad(d, node, "a decimal of %zu bytes was found", bytes.len);
    }
    tarn_uint128 value = (unsigned char)bytes.data[0] >= 0x80 ? ~(tarn_uint128)0 : 0;
    for (size_t i = 0; i < bytes.len; i++) {
        value = value << 8 | (unsigned char)bytes.data[i];
    }
    size_t len = value_format_decimal((tarn_int128)value, scale, text);
    return text_put_text(d, node, b, str_make(text, len));
}

/* Numbers and plain texts are decimals in other settings of Debezium's. */
static tarn_code put_decimal(text_decoder *d, const text_node *node, tarn_builder *b,
                             int32_t scale) {
    tarn_str bytes = STR_NULL;
    if (*d->p != '"') {
        return text_json_value(d, node, b);
    }
    tarn_code code = read_base64(d, node, &bytes);
    return code == TARN_OK ? put_unscaled(d, node, b, bytes, scale) : code;
}

static tarn_code read_whole(text_decoder *d, const text_node *node, int64_t *out);

static tarn_code put_variable_decimal(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_code code = TARN_OK;
    tarn_str name;
    tarn_str bytes = STR_NULL;
    int64_t scale = -1;
    if (*d->p != '{') {
        return text_json_value(d, node, b);
    }
    d->p = text_json_space(d->p + 1);
    for (;;) {
        TRY(text_json_name(d, &name));
        if (str_is(name, "scale")) {
            TRY(read_whole(d, node, &scale));
        } else if (str_is(name, "value")) {
            TRY(read_base64(d, node, &bytes));
        } else {
            TRY(text_json_skip(d));
        }
        const char *p = text_json_space(d->p);
        d->p = p + 1;
        if (*p == '}') {
            break;
        }
        if (*p != ',') {
            return text_json_expected(d, p, "',' or '}'");
        }
        d->p = text_json_space(d->p);
    }
    code = scale < 0 || scale > 38
               ? text_bad(d, node, "a decimal's scale was absent or out of range")
               : put_unscaled(d, node, b, bytes, (int32_t)scale);
done:
    return code;
}

static tarn_code read_whole(text_decoder *d, const text_node *node, int64_t *out) {
    bool whole;
    const char *start = d->p;
    const char *end = text_json_number(start, &whole);
    if (end == NULL) {
        return text_json_expected(d, start, "a number");
    }
    if (!whole || !str_to_i64(str_make(start, (size_t)(end - start)), out)) {
        return text_bad(d, node, "%.*s was not a whole number of 64 bits", (int)(end - start),
                        start);
    }
    d->p = end;
    return TARN_OK;
}

static tarn_code put_days(text_decoder *d, const text_node *node, tarn_builder *b) {
    char text[32];
    int64_t days = 0;
    if (*d->p == '"') {
        return text_json_value(d, node, b);
    }
    tarn_code code = read_whole(d, node, &days);
    if (code != TARN_OK) {
        return code;
    }
    if (days < INT32_MIN || days > INT32_MAX) {
        return text_bad(d, node, "%lld days were out of the range of a date", (long long)days);
    }
    return node->kind == TARN_DATE
               ? text_append_i32(b, (int32_t)days, d->err)
               : text_put_text(d, node, b, str_make(text, time_format_date(days, text)));
}

/* A count of 10^-from seconds in 10^-to ones; nothing is rounded. */
static bool change_digits(int64_t *v, int from, int to) {
    for (; from < to; from++) {
        if (*v > INT64_MAX / 10 || *v < INT64_MIN / 10) {
            return false;
        }
        *v *= 10;
    }
    for (; from > to; from--) {
        if (*v % 10 != 0) {
            return false;
        }
        *v /= 10;
    }
    return true;
}

static tarn_code put_count(text_decoder *d, const text_node *node, tarn_builder *b,
                           const text_spelling *s) {
    char text[48];
    int64_t v = 0;
    if (*d->p == '"') {
        return text_json_value(d, node, b);
    }
    tarn_code code = read_whole(d, node, &v);
    if (code != TARN_OK) {
        return code;
    }
    bool nano = node->kind == TARN_TIMESTAMP_NS || node->kind == TARN_TIMESTAMPTZ_NS ||
                (node->kind == TARN_STRING && s->how == SPELT_TIMESTAMP && s->digits == 9);
    int64_t given = v;
    if (!change_digits(&v, s->digits, nano ? 9 : 6)) {
        return text_bad(d, node, "%lld (10^-%d s) did not fit %s", (long long)given, s->digits,
                        type_kind_name(node->kind));
    }
    if (node->kind == TARN_TIME && (v < 0 || v >= TIME_US_PER_DAY)) {
        return text_bad(d, node, "%lld was out of the range of a time", (long long)given);
    }
    if (node->kind != TARN_STRING) {
        return text_append_i64(b, v, d->err);
    }
    size_t len = s->how == SPELT_TIME ? time_format_time(v, text)
                                      : time_format_timestamp(v, nano ? 9 : 6, false, text);
    return text_put_text(d, node, b, str_make(text, len));
}

static tarn_code put_text(text_decoder *d, const text_node *node, tarn_builder *b) {
    tarn_code code = text_json_value(d, node, b);
    if (code != TARN_OK || b->offsets == NULL) {
        return code;
    }
    int32_t start = b->offsets[b->length - 1];
    tarn_str text = str_make(b->bytes + start, (size_t)(b->offsets[b->length] - start));
    return text.len == UNAVAILABLE.len && str_eq(text, UNAVAILABLE)
               ? text_bad(d, node,
                          "the source left out the unchanged value (%s); let it send whole rows",
                          UNAVAILABLE.data)
               : TARN_OK;
}

tarn_code text_change_value(text_decoder *d, const text_node *node, tarn_builder *b) {
    const text_spelling *s = &d->spellings[node - d->plan->root.children];
    if (s->how == SPELT_AS_EVER || *d->p == 'n') {
        return text_json_value(d, node, b);
    }
    switch (s->how) {
    case SPELT_DAYS:
        return put_days(d, node, b);
    case SPELT_TIME:
    case SPELT_TIMESTAMP:
        return put_count(d, node, b, s);
    case SPELT_UNTOLD:
        return *d->p == '-' || text_is_digit(*d->p)
                   ? text_bad(d, node,
                              "a number was found for a %s, and no schema in the envelope says its "
                              "unit",
                              type_kind_name(node->kind))
                   : text_json_value(d, node, b);
    case SPELT_BASE64:
        return put_bytes(d, node, b);
    case SPELT_DECIMAL:
        return put_decimal(d, node, b, s->digits);
    case SPELT_VARIABLE_DECIMAL:
        return put_variable_decimal(d, node, b);
    default:
        return put_text(d, node, b);
    }
}

/* ---- envelopes ---- */

static tarn_code refuse_twice(text_decoder *d, const char *name) {
    return text_bad(d, &d->plan->root, "member \"%s\" of the envelope was there twice", name);
}

static tarn_code note_image(text_decoder *d, const char *name, const char **image) {
    const char *start = d->p;
    if (*image != NULL) {
        return refuse_twice(d, name);
    }
    tarn_code code = text_json_skip(d);
    if (*start == '{') {
        *image = start;
    } else if (code == TARN_OK && *start != 'n') {
        return text_json_expected(d, start, "an object or null");
    }
    return code;
}

static tarn_code note_op(text_decoder *d, char *op) {
    tarn_str text;
    if (*d->p != '"') {
        *op = 1;
        return text_json_skip(d);
    }
    tarn_code code = text_json_string(d, &d->plan->root, &text);
    *op = code == TARN_OK && text.len == 1 && text.data[0] > ' ' ? text.data[0] : (char)1;
    return code;
}

static tarn_code scan_members(text_decoder *d, envelope *e, bool inner);

static tarn_code scan_object(text_decoder *d, envelope *e, bool inner) {
    if (*d->p == 'n') {
        e->is_null = true;
        return text_json_skip(d);
    }
    return *d->p == '{' ? scan_members(d, e, inner)
                        : text_json_expected(d, d->p, "an object or null");
}

static tarn_code scan_member(text_decoder *d, envelope *e, bool inner) {
    tarn_str name;
    tarn_code code = text_json_name(d, &name);
    if (code != TARN_OK) {
        return code;
    }
    if (str_is(name, "before")) {
        return note_image(d, "before", &e->before);
    }
    if (str_is(name, "after")) {
        return note_image(d, "after", &e->after);
    }
    if (str_is(name, "op")) {
        return e->op != 0 ? refuse_twice(d, "op") : note_op(d, &e->op);
    }
    if (!inner && str_is(name, "schema")) {
        return read_schema(d);
    }
    return !inner && str_is(name, "payload") ? scan_object(d, e, true) : text_json_skip(d);
}

/* The object at d->p, passed. */
static tarn_code scan_members(text_decoder *d, envelope *e, bool inner) {
    d->p = text_json_space(d->p + 1);
    if (*d->p == '}') {
        d->p++;
        return TARN_OK;
    }
    for (;;) {
        tarn_code code = scan_member(d, e, inner);
        if (code != TARN_OK) {
            return code;
        }
        const char *p = text_json_space(d->p);
        d->p = p + 1;
        if (*p == '}') {
            return TARN_OK;
        }
        if (*p != ',') {
            return text_json_expected(d, p, "',' or '}'");
        }
        d->p = text_json_space(d->p);
    }
}

static tarn_code put_image(text_decoder *d, const char *image, uint8_t kind) {
    d->p = image;
    tarn_code code = text_json_row(d);
    code = code == TARN_OK ? check_row(d, kind) : code;
    return code == TARN_OK ? buf_append_char(&d->kinds, (char)kind, d->err) : code;
}

/* The message's key, where the row that is gone is not in the envelope. */
static tarn_code find_key(text_decoder *d, const char *mark, const char **image) {
    envelope key;
    memset(&key, 0, sizeof key);
    if (*mark != TEXT_KEY_MARK) {
        return text_bad(d, &d->plan->root,
                        "a delete without the row before it, and without its key");
    }
    d->p = text_json_space(mark + 1);
    const char *start = d->p;
    if (*start != '{') {
        return text_bad(d, &d->plan->root,
                        "a delete without the row before it, and its key is not an object");
    }
    /* {"schema":..., "payload": {...}}, or the key itself */
    tarn_str name;
    *image = start;
    for (d->p = text_json_space(start + 1); *d->p == '"';) {
        tarn_code code = text_json_name(d, &name);
        bool payload = code == TARN_OK && str_is(name, "payload") && *d->p == '{';
        if (payload) {
            *image = d->p;
        }
        code = code == TARN_OK ? text_json_skip(d) : code;
        if (code != TARN_OK) {
            return code;
        }
        d->p = text_json_space(d->p);
        d->p = *d->p == ',' ? text_json_space(d->p + 1) : d->p;
    }
    return *d->p == '}' ? TARN_OK : text_json_expected(d, d->p, "'}' at the end of the key");
}

static tarn_code put_rows(text_decoder *d, const envelope *e) {
    tarn_code code = TARN_OK;
    const text_node *root = &d->plan->root;
    const char *gone = e->before;
    switch (e->op) {
    case 'c':
    case 'r':
        return e->after != NULL ? put_image(d, e->after, TARN_ROW_INSERT)
                                : text_bad(d, root, "op \"%c\" came without the row", e->op);
    case 'u':
        if (e->after == NULL) {
            return text_bad(d, root, "op \"u\" came without the row as it is now");
        }
        TRY(e->before != NULL ? put_image(d, e->before, TARN_ROW_UPDATE_BEFORE) : TARN_OK);
        return put_image(d, e->after, TARN_ROW_UPDATE_AFTER);
    case 'd':
        if (gone == NULL) {
            TRY(find_key(d, e->end, &gone));
        }
        return put_image(d, gone, TARN_ROW_DELETE);
    case 'm': /* a message of the source's log, of no row */
        return TARN_OK;
    case 't':
        return text_bad(d, root, "op \"t\" (truncate) is not taken: it names no row");
    case 0:
        return text_bad(d, root, "there was no \"op\": this is no change envelope");
    default:
        return text_bad(d, root, "the \"op\" was none of c, r, u, d");
    }
done:
    return code;
}

tarn_str text_change_envelope(tarn_str record) {
    /* JSON has no such byte: not in its texts either, which escape it */
    const char *mark = record.len > 0 ? memchr(record.data, TEXT_KEY_MARK, record.len) : NULL;
    return mark != NULL ? str_make(record.data, (size_t)(mark - record.data)) : record;
}

tarn_code text_change_record(text_decoder *d) {
    envelope e;
    memset(&e, 0, sizeof e);
    d->spellings = d->plan->spellings;
    tarn_code code = scan_object(d, &e, false);
    if (code != TARN_OK) {
        return code;
    }
    e.end = text_json_space(d->p);
    if (*e.end != '\n' && *e.end != TEXT_KEY_MARK) {
        return text_json_expected(d, e.end, "the end of the record");
    }
    code = e.is_null ? TARN_OK : put_rows(d, &e);
    if (code == TARN_OK) {
        d->p = memchr(e.end, '\n', (size_t)(d->end - e.end));
    }
    return code;
}

/* ---- the type that a schema says ---- */

static tarn_code type_of_schema(tarn_arena *arena, const json_value *schema, int depth,
                                const tarn_type **out, tarn_error *err);

static tarn_code part_of_schema(tarn_arena *arena, const json_value *schema, tarn_str name,
                                int depth, tarn_field *out, tarn_error *err) {
    bool optional = true;
    (void)json_bool(json_get(schema, "optional"), &optional);
    memset(out, 0, sizeof *out);
    out->id = TARN_NO_ID;
    out->name = name;
    out->required = !optional;
    return type_of_schema(arena, schema, depth + 1, &out->type, err);
}

static tarn_code struct_of_fields(tarn_arena *arena, const json_value *list, int depth,
                                  const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, list->count + 1);
    int32_t n = 0;
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (const json_value *f = list->first; f != NULL; f = f->next) {
        tarn_str name;
        if (!json_str(json_get(f, "field"), &name)) {
            return err_set(err, TARN_INVALID, "a field of the envelope's schema had no name");
        }
        TRY(part_of_schema(arena, f, name, depth, &fields[n], err));
        n++;
    }
    *out = type_struct(arena, fields, n);
    code = *out != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

static const tarn_type *primitive_of_schema(tarn_arena *arena, const json_value *schema,
                                            tarn_str type) {
    static const struct {
        const char *name;
        tarn_kind kind;
    } known[] = {{"boolean", TARN_BOOLEAN}, {"int8", TARN_INT},      {"int16", TARN_INT},
                 {"int32", TARN_INT},       {"int64", TARN_LONG},    {"float", TARN_FLOAT},
                 {"float32", TARN_FLOAT},   {"double", TARN_DOUBLE}, {"float64", TARN_DOUBLE},
                 {"string", TARN_STRING},   {"bytes", TARN_BINARY}};
    const semantic *meant = find_semantic(schema);
    tarn_str name;
    if (meant != NULL && meant->how == SPELT_DECIMAL) {
        return type_decimal(arena, parameter(schema, "connect.decimal.precision", 38),
                            parameter(schema, "scale", 0));
    }
    if (meant != NULL && meant->how != SPELT_VARIABLE_DECIMAL) {
        return type_primitive(meant->how == SPELT_DAYS   ? TARN_DATE
                              : meant->how == SPELT_TIME ? TARN_TIME
                              : meant->digits == 9       ? TARN_TIMESTAMP_NS
                                                         : TARN_TIMESTAMP);
    }
    if (json_str(json_get(schema, "name"), &name)) {
        if (str_is(name, "io.debezium.time.ZonedTimestamp")) {
            return type_primitive(TARN_TIMESTAMPTZ);
        }
        if (str_is(name, "io.debezium.data.Uuid")) {
            return type_primitive(TARN_UUID);
        }
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (str_is(type, known[i].name)) {
            return type_primitive(known[i].kind);
        }
    }
    return type_primitive(TARN_STRING);
}

static tarn_code type_of_schema(tarn_arena *arena, const json_value *schema, int depth,
                                const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str type = STR_NULL;
    tarn_field parts[2];
    const semantic *meant = find_semantic(schema);
    if (depth > LIMIT_NESTING || !json_str(json_get(schema, "type"), &type)) {
        return err_set(err, TARN_INVALID,
                       "the envelope's schema was nested deeper than %d levels, or had no type",
                       LIMIT_NESTING);
    }
    bool variable = meant != NULL && meant->how == SPELT_VARIABLE_DECIMAL;
    if (str_is(type, "struct") && !variable && json_is(json_get(schema, "fields"), JSON_ARRAY)) {
        return struct_of_fields(arena, json_get(schema, "fields"), depth, out, err);
    }
    if (str_is(type, "array")) {
        TRY(part_of_schema(arena, json_get(schema, "items"), STR("element"), depth, &parts[0],
                           err));
        *out = type_list(arena, parts[0]);
    } else if (str_is(type, "map")) {
        TRY(part_of_schema(arena, json_get(schema, "keys"), STR("key"), depth, &parts[0], err));
        TRY(part_of_schema(arena, json_get(schema, "values"), STR("value"), depth, &parts[1], err));
        parts[0].required = true;
        *out = type_map(arena, parts[0], parts[1]);
    } else {
        *out = primitive_of_schema(arena, schema, type);
    }
    code = *out != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

tarn_code text_change_type(tarn_arena *arena, const json_value *record, const tarn_type **out,
                           tarn_error *err) {
    const json_value *fields = image_fields(json_get(record, "schema"));
    *out = NULL;
    return fields != NULL ? struct_of_fields(arena, fields, 0, out, err) : TARN_OK;
}
