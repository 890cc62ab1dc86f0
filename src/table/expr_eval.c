/* table/expr_eval.c - the rows of a batch for which a bound filter is TRUE. Each predicate gives a
 * bitmap over all rows with nulls cleared; AND and OR join bitmaps. */
#include "table/expr.h"

#include "table/expr_int.h"

typedef struct evaluation {
    tarn_env *env;
    const tarn_batch *batch;
    int64_t rows;
    tarn_error *err;
} evaluation;

/* Clears bits of rows that are null. */
static void clear_nulls(const tarn_view *view, uint8_t *bits) {
    size_t n = bit_bytes(view->length);
    if (view->validity == NULL || n == 0) {
        return;
    }
    const uint8_t *valid = view->validity + (view->start >> 3);
    unsigned shift = (unsigned)(view->start & 7);
    size_t last = (size_t)(((view->start & 7) + view->length + 7) / 8); /* bytes of valid used */
    if (shift == 0) {
        for (size_t i = 0; i < n; i++) {
            bits[i] = (uint8_t)(bits[i] & valid[i]);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned next = i + 1 < last ? valid[i + 1] : 0;
        bits[i] = (uint8_t)(bits[i] & ((valid[i] >> shift) | (next << (8 - shift))));
    }
}

static void set_all(uint8_t *bits, int64_t rows, bool value) {
    memset(bits, value ? 0xff : 0, bit_bytes(rows));
}

static void eval_null_test(const tarn_expr *expr, const tarn_view *view, uint8_t *bits) {
    set_all(bits, view->length, view->type->kind != TARN_UNKNOWN);
    clear_nulls(view, bits);
    if (expr->op == EXPR_IS_NULL) {
        for (size_t i = 0; i < bit_bytes(view->length); i++) {
            bits[i] = (uint8_t)~bits[i];
        }
    }
}

static tarn_code eval_predicate(const evaluation *e, const tarn_expr *expr, uint8_t *bits) {
    tarn_path_view path;
    tarn_code code = path_view_init(&path, e->env, e->batch, expr->field_id, e->err);
    if (code != TARN_OK) {
        return code;
    }
    const tarn_view *view = &path.view;
    if (expr->op == EXPR_IS_NULL || expr->op == EXPR_NOT_NULL) {
        eval_null_test(expr, view, bits);
    } else if (view->type->kind != expr->field->type->kind) {
        code = err_set(e->err, TARN_INTERNAL, "a filter bound to %s met a column of %s",
                       type_kind_name(expr->field->type->kind), type_kind_name(view->type->kind));
    } else {
        code = expr_compare(e->env, expr, view, bits, e->err);
        clear_nulls(view, bits);
    }
    path_view_release(&path);
    return code;
}

static bool any_bit(const uint8_t *bits, int64_t rows) {
    return bit_count(bits, 0, rows) > 0;
}

static tarn_code eval(const evaluation *e, const tarn_expr *expr, uint8_t *bits) {
    if (expr->op == EXPR_TRUE || expr->op == EXPR_FALSE) {
        set_all(bits, e->rows, expr->op == EXPR_TRUE);
        return TARN_OK;
    }
    if (expr_is_predicate(expr)) {
        return eval_predicate(e, expr, bits);
    }
    tarn_assert(expr->op == EXPR_AND || expr->op == EXPR_OR);
    tarn_code code = eval(e, expr->left, bits);
    if (code != TARN_OK || (expr->op == EXPR_AND && !any_bit(bits, e->rows))) {
        return code;
    }
    uint8_t *other = env_alloc(e->env, bit_bytes(e->rows) + 1);
    if (other == NULL) {
        return err_nomem(e->err);
    }
    code = eval(e, expr->right, other);
    for (size_t i = 0; code == TARN_OK && i < bit_bytes(e->rows); i++) {
        bits[i] = (uint8_t)(expr->op == EXPR_AND ? bits[i] & other[i] : bits[i] | other[i]);
    }
    env_free(e->env, other);
    return code;
}

tarn_code expr_eval(tarn_env *env, const tarn_expr *expr, const tarn_batch *batch,
                    uint8_t *selection, int64_t *n_selected, tarn_error *err) {
    evaluation e = {env, batch, batch_rows(batch), err};
    if (e.rows > 0) {
        tarn_code code = eval(&e, expr, selection);
        if (code != TARN_OK) {
            return code;
        }
        if (e.rows % 8 != 0) {
            selection[e.rows / 8] = (uint8_t)(selection[e.rows / 8] & ((1u << (e.rows % 8)) - 1));
        }
    }
    if (n_selected != NULL) {
        *n_selected = e.rows > 0 ? bit_count(selection, 0, e.rows) : 0;
    }
    return TARN_OK;
}
