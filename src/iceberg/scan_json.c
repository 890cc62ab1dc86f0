/* iceberg/scan_json.c - see scan_json.h. Iceberg's filters have two values where SQL has three:
 * what is null does not equal anything. Negations are therefore moved to the leaves here, and a
 * leaf that negates keeps nulls. */
#include "iceberg/scan_json.h"
#include "iceberg/metadata_int.h"

typedef struct filter_reader {
    tarn_arena *arena;
    const tarn_type *root;
    bool case_sensitive;
    bool exact;
    tarn_error *err;
} filter_reader;

static const struct {
    const char *name;
    expr_op op, negated;
} predicates[] = {
    {"is-null", EXPR_IS_NULL, EXPR_NOT_NULL},
    {"not-null", EXPR_NOT_NULL, EXPR_IS_NULL},
    {"is-nan", EXPR_IS_NAN, EXPR_NOT_NAN},
    {"not-nan", EXPR_NOT_NAN, EXPR_IS_NAN},
    {"lt", EXPR_LT, EXPR_GE},
    {"lt-eq", EXPR_LE, EXPR_GT},
    {"gt", EXPR_GT, EXPR_LE},
    {"gt-eq", EXPR_GE, EXPR_LT},
    {"eq", EXPR_EQ, EXPR_NE},
    {"not-eq", EXPR_NE, EXPR_EQ},
    {"in", EXPR_IN, EXPR_NOT_IN},
    {"not-in", EXPR_NOT_IN, EXPR_IN},
    {"starts-with", EXPR_STARTS_WITH, EXPR_NOT_STARTS_WITH},
    {"not-starts-with", EXPR_NOT_STARTS_WITH, EXPR_STARTS_WITH},
};
#define N_PREDICATES (sizeof predicates / sizeof predicates[0])

/* ---- reading ---- */

static tarn_code plain_literal(filter_reader *r, const json_value *json, tarn_value *out) {
    memset(out, 0, sizeof *out);
    switch (json->kind) {
    case JSON_STRING:
        *out = value_str(type_primitive(TARN_STRING), json->text);
        return TARN_OK;
    case JSON_BOOL:
        out->type = type_primitive(TARN_BOOLEAN);
        out->as.boolean = json->boolean;
        return TARN_OK;
    case JSON_NUMBER:
        out->type = type_primitive(TARN_LONG);
        if (!json_i64(json, &out->as.i64)) {
            out->type = type_primitive(TARN_DOUBLE);
            if (!json_f64(json, &out->as.f64)) {
                break;
            }
        }
        return TARN_OK;
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return err_set(r->err, TARN_INVALID, "a literal of the filter was null, a list or an object");
}

/* As the column's type writes it; else what it is by itself, for the binding to convert. */
static tarn_code literal_from_json(filter_reader *r, tarn_str name, const json_value *json,
                                   tarn_value *out) {
    const tarn_field *field = type_find_name(r->root, name, r->case_sensitive);
    if (field != NULL && !type_is_nested(field->type) && json->kind != JSON_NULL) {
        tarn_code code = value_from_json(r->arena, field->type, json, out, NULL);
        if (code == TARN_OK || code == TARN_NOMEM) {
            return code == TARN_OK ? code : err_nomem(r->err);
        }
    }
    return plain_literal(r, json, out);
}

static tarn_code literals_from_json(filter_reader *r, const json_value *json, tarn_expr *expr) {
    bool many = expr->op == EXPR_IN || expr->op == EXPR_NOT_IN;
    const json_value *list = json_get(json, many ? "values" : "value");
    if (list == NULL || (many && list->kind != JSON_ARRAY) || list->count > INT32_MAX) {
        return err_set(r->err, TARN_INVALID, "a predicate of the filter lacked its \"%s\"",
                       many ? "values" : "value");
    }
    tarn_value *values = ARENA_ARRAY(r->arena, tarn_value, many ? list->count : 1);
    if (values == NULL) {
        return err_nomem(r->err);
    }
    for (const json_value *v = many ? list->first : list; v != NULL; v = many ? v->next : NULL) {
        tarn_code code = literal_from_json(r, expr->name, v, &values[expr->n_values++]);
        if (code != TARN_OK) {
            return code;
        }
    }
    expr->values = values;
    return TARN_OK;
}

/* "a.b", or {"type": "reference", "term": "a.b"}; false: a transform, or by id. */
static bool term_name(const json_value *term, tarn_str *out) {
    tarn_str type;
    if (json_is(term, JSON_OBJECT)) {
        return json_str(json_get(term, "type"), &type) && str_is(type, "reference") &&
               json_str(json_get(term, "term"), out);
    }
    return json_str(term, out);
}

static tarn_code predicate_from_json(filter_reader *r, const json_value *json, size_t which,
                                     bool negated, const tarn_expr **out) {
    const json_value *term = json_get(json, "term");
    tarn_expr *expr = ARENA_NEW(r->arena, tarn_expr);
    if (expr == NULL) {
        return err_nomem(r->err);
    }
    if (term == NULL) {
        return err_set(r->err, TARN_INVALID, "a predicate of the filter lacked its \"term\"");
    }
    if (!term_name(term, &expr->name)) {
        r->exact = false;
        *out = expr_true();
        return TARN_OK;
    }
    expr->op = negated ? predicates[which].negated : predicates[which].op;
    if (expr->op > EXPR_NOT_NAN) {
        tarn_code code = literals_from_json(r, json, expr);
        if (code != TARN_OK) {
            return code;
        }
    }
    *out = expr;
    if (expr->op == EXPR_NE || expr->op == EXPR_NOT_IN || expr->op == EXPR_NOT_STARTS_WITH ||
        expr->op == EXPR_NOT_NAN) {
        tarn_expr *null = ARENA_NEW(r->arena, tarn_expr);
        if (null == NULL) {
            return err_nomem(r->err);
        }
        null->op = EXPR_IS_NULL;
        null->name = expr->name;
        *out = expr_or(r->arena, expr, null);
        r->exact = false;
    }
    return *out != NULL ? TARN_OK : err_nomem(r->err);
}

static tarn_code read_filter(filter_reader *r, const json_value *json, bool negated,
                             const tarn_expr **out);

static tarn_code read_pair(filter_reader *r, const json_value *json, bool both, bool negated,
                           const tarn_expr **out) {
    const tarn_expr *left = NULL, *right = NULL;
    tarn_code code = TARN_OK;
    TRY(read_filter(r, json_get(json, "left"), negated, &left));
    TRY(read_filter(r, json_get(json, "right"), negated, &right));
    *out = both != negated ? expr_and(r->arena, left, right) : expr_or(r->arena, left, right);
    code = *out != NULL ? TARN_OK : err_nomem(r->err);
done:
    return code;
}

static tarn_code read_filter(filter_reader *r, const json_value *json, bool negated,
                             const tarn_expr **out) {
    tarn_str type = STR_NULL;
    if (json_is(json, JSON_BOOL)) {
        *out = json->boolean != negated ? expr_true() : expr_false();
        return TARN_OK;
    }
    if (!json_str(json_get(json, "type"), &type)) {
        return err_set(r->err, TARN_INVALID, "a part of the filter was missing or had no type");
    }
    if (str_is(type, "true") || str_is(type, "false")) {
        *out = str_is(type, "true") != negated ? expr_true() : expr_false();
        return TARN_OK;
    }
    if (str_is(type, "and") || str_is(type, "or")) {
        return read_pair(r, json, str_is(type, "and"), negated, out);
    }
    if (str_is(type, "not")) {
        return read_filter(r, json_get(json, "child"), !negated, out);
    }
    for (size_t i = 0; i < N_PREDICATES; i++) {
        if (str_is(type, predicates[i].name)) {
            return predicate_from_json(r, json, i, negated, out);
        }
    }
    return err_set(r->err, TARN_INVALID, "filter \"%.*s\" is unknown", STR_ARG(type));
}

tarn_code filter_from_json(tarn_arena *arena, const json_value *json, const tarn_type *root,
                           bool case_sensitive, const tarn_expr **out, bool *exact,
                           tarn_error *err) {
    filter_reader r = {arena, root, case_sensitive, true, err};
    tarn_code code = read_filter(&r, json, false, out);
    *exact = r.exact;
    return code;
}

/* ---- writing ---- */

static void put_predicate(const tarn_expr *e, const char *name, json_writer *w) {
    json_put_object(w);
    json_member_str(w, "type", str_of(name));
    json_member_str(w, "term", e->name);
    if (e->op == EXPR_IN || e->op == EXPR_NOT_IN) {
        json_put_name(w, STR("values"));
        json_put_array(w);
        for (int32_t i = 0; i < e->n_values; i++) {
            value_put_json(&e->values[i], w);
        }
        json_end_array(w);
    } else if (e->n_values > 0) {
        json_put_name(w, STR("value"));
        value_put_json(&e->values[0], w);
    }
    json_end_object(w);
}

void filter_put_json(const tarn_expr *e, json_writer *w) {
    if (e->op == EXPR_TRUE || e->op == EXPR_FALSE) {
        json_put_bool(w, e->op == EXPR_TRUE);
        return;
    }
    if (e->op == EXPR_AND || e->op == EXPR_OR) {
        json_put_object(w);
        json_member_str(w, "type", e->op == EXPR_AND ? STR("and") : STR("or"));
        json_put_name(w, STR("left"));
        filter_put_json(e->left, w);
        json_put_name(w, STR("right"));
        filter_put_json(e->right, w);
        json_end_object(w);
        return;
    }
    for (size_t i = 0; i < N_PREDICATES; i++) {
        if (predicates[i].op == e->op) {
            put_predicate(e, predicates[i].name, w);
        }
    }
}

static const char *format_name(tarn_file_format format) {
    switch (format) {
    case TARN_FORMAT_AVRO:
        return "avro";
    case TARN_FORMAT_ORC:
        return "orc";
    case TARN_FORMAT_PUFFIN:
        return "puffin";
    case TARN_FORMAT_PARQUET:
    case TARN_FORMAT_OTHER:
        break;
    }
    return "parquet";
}

static void put_hex(tarn_str bytes, json_writer *w) {
    static const tarn_type type = {.kind = TARN_BINARY};
    tarn_value v = value_str(&type, bytes);
    value_put_json(&v, w);
}

static void put_deletes(const tarn_file *f, json_writer *w) {
    if (f->referenced_data_file.data != NULL) {
        json_member_str(w, "referenced-data-file", f->referenced_data_file);
    }
    if (f->content_offset >= 0) {
        json_member_i64(w, "content-offset", f->content_offset);
        json_member_i64(w, "content-size-in-bytes", f->content_size);
    }
    if (f->content == TARN_CONTENT_EQUALITY_DELETES) {
        json_put_name(w, STR("equality-ids"));
        json_put_array(w);
        for (int32_t i = 0; i < f->n_equality_ids; i++) {
            json_put_i64(w, f->equality_ids[i]);
        }
        json_end_array(w);
    }
}

void content_file_put_json(const tarn_file *f, json_writer *w) {
    static const char *const contents[] = {"data", "position-deletes", "equality-deletes"};
    json_put_object(w);
    json_member_i64(w, "spec-id", f->spec_id);
    json_member_str(w, "content", str_of(contents[f->content]));
    json_member_str(w, "file-path", f->path);
    json_member_str(w, "file-format", str_of(format_name(f->format)));
    json_put_name(w, STR("partition"));
    json_put_array(w);
    for (int32_t i = 0; i < f->n_partition; i++) {
        value_put_json(&f->partition[i], w);
    }
    json_end_array(w);
    json_member_i64(w, "file-size-in-bytes", f->size_bytes);
    json_member_i64(w, "record-count", f->record_count);
    if (f->key_metadata.data != NULL) {
        json_put_name(w, STR("key-metadata"));
        put_hex(f->key_metadata, w);
    }
    if (f->n_split_offsets > 0) {
        json_put_name(w, STR("split-offsets"));
        json_put_array(w);
        for (int32_t i = 0; i < f->n_split_offsets; i++) {
            json_put_i64(w, f->split_offsets[i]);
        }
        json_end_array(w);
    }
    if (f->sort_order_id >= 0) {
        json_member_i64(w, "sort-order-id", f->sort_order_id);
    }
    if (f->content == TARN_CONTENT_DATA && f->first_row_id >= 0) {
        json_member_i64(w, "first-row-id", f->first_row_id);
    }
    if (f->content != TARN_CONTENT_DATA) {
        put_deletes(f, w);
    }
    json_end_object(w);
}
