/* table/expr_text.c - filters as the text that expr_parse reads. */
#include "table/expr.h"

#include "base/limits.h"
#include "table/expr_int.h"

static const char *const op_texts[] = {
    [EXPR_LT] = " < ", [EXPR_LE] = " <= ", [EXPR_GT] = " > ",   [EXPR_GE] = " >= ",
    [EXPR_EQ] = " = ", [EXPR_NE] = " != ", [EXPR_IN] = " in (", [EXPR_NOT_IN] = " not in (",
};

static bool is_plain(tarn_str name) {
    static const char *const reserved[] = {"and",  "or",   "not",     "in",     "is",   "null",
                                           "like", "true", "between", "starts", "false"};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (str_eq_nocase(name, str_of(reserved[i]))) {
            return false;
        }
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool inner = i > 0 && ((c >= '0' && c <= '9') ||
                               (c == '.' && i + 1 < name.len && name.data[i - 1] != '.'));
        if (!letter && !inner) {
            return false;
        }
    }
    return name.len > 0;
}

/* quote, the text with quotes doubled, quote */
static tarn_code put_quoted(tarn_str text, char quote, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(buf_append_char(out, quote, err));
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == quote) {
            TRY(buf_append_char(out, quote, err));
        }
        TRY(buf_append_char(out, text.data[i], err));
    }
    TRY(buf_append_char(out, quote, err));
done:
    return code;
}

static tarn_code put_literal(const tarn_value *v, tarn_buf *out, tarn_error *err) {
    const char *prefix = NULL;
    bool quoted = false;
    tarn_code code = TARN_OK;
    switch ((int)v->type->kind) {
    case TARN_STRING:
        return put_quoted(v->as.bytes, '\'', out, err);
    case TARN_BINARY:
    case TARN_FIXED:
        prefix = "X";
        break;
    case TARN_DATE:
        prefix = "date ";
        break;
    case TARN_TIME:
        prefix = "time ";
        break;
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        prefix = "timestamp ";
        break;
    case TARN_UUID:
        quoted = true;
        break;
    case TARN_FLOAT: /* NaN and infinities are texts */
        quoted = v->as.f32 - v->as.f32 != 0;
        break;
    case TARN_DOUBLE:
        quoted = v->as.f64 - v->as.f64 != 0;
        break;
    default:
        break;
    }
    quoted = (quoted || prefix != NULL) && !v->is_null;
    if (quoted) {
        TRY(buf_append_str(out, str_of(prefix != NULL ? prefix : ""), err));
        TRY(buf_append_char(out, '\'', err));
    }
    TRY(value_to_text(v, out, err));
    if (quoted) {
        TRY(buf_append_char(out, '\'', err));
    }
done:
    return code;
}

static tarn_code put_predicate(const tarn_expr *expr, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(is_plain(expr->name) ? buf_append_str(out, expr->name, err)
                             : put_quoted(expr->name, '"', out, err));
    switch ((int)expr->op) {
    case EXPR_IS_NULL:
        return buf_append_str(out, STR(" is null"), err);
    case EXPR_NOT_NULL:
        return buf_append_str(out, STR(" is not null"), err);
    case EXPR_IS_NAN:
        return buf_append_str(out, STR(" is nan"), err);
    case EXPR_NOT_NAN:
        return buf_append_str(out, STR(" is not nan"), err);
    case EXPR_STARTS_WITH:
        TRY(buf_append_str(out, STR(" starts with "), err));
        break;
    case EXPR_NOT_STARTS_WITH:
        TRY(buf_append_str(out, STR(" not starts with "), err));
        break;
    default:
        TRY(buf_append_str(out, str_of(op_texts[expr->op]), err));
        break;
    }
    for (int32_t i = 0; i < expr->n_values; i++) {
        TRY(buf_append_str(out, i > 0 ? STR(", ") : STR(""), err));
        TRY(put_literal(&expr->values[i], out, err));
    }
    if (expr->op == EXPR_IN || expr->op == EXPR_NOT_IN) {
        TRY(buf_append_char(out, ')', err));
    }
done:
    return code;
}

static tarn_code put_expr(const tarn_expr *expr, expr_op parent, int depth, tarn_buf *out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    if (depth > 4 * LIMIT_EXPR_DEPTH) {
        return err_set(err, TARN_LIMIT, "a filter was nested more than %d levels deep",
                       4 * LIMIT_EXPR_DEPTH);
    }
    if (expr_is_predicate(expr)) {
        return put_predicate(expr, out, err);
    }
    if (expr->op == EXPR_TRUE || expr->op == EXPR_FALSE) {
        return buf_append_str(out, expr->op == EXPR_TRUE ? STR("true") : STR("false"), err);
    }
    if (expr->op == EXPR_NOT) {
        TRY(buf_append_str(out, STR("not ("), err));
        TRY(put_expr(expr->left, EXPR_NOT, depth + 1, out, err));
        return buf_append_char(out, ')', err);
    }
    bool inside = parent == EXPR_AND && expr->op == EXPR_OR;
    TRY(buf_append_str(out, inside ? STR("(") : STR(""), err));
    TRY(put_expr(expr->left, expr->op, depth + 1, out, err));
    TRY(buf_append_str(out, expr->op == EXPR_AND ? STR(" and ") : STR(" or "), err));
    TRY(put_expr(expr->right, expr->op, depth + 1, out, err));
    TRY(buf_append_str(out, inside ? STR(")") : STR(""), err));
done:
    return code;
}

tarn_code expr_text(const tarn_expr *expr, tarn_buf *out, tarn_error *err) {
    return put_expr(expr, EXPR_TRUE, 0, out, err);
}
