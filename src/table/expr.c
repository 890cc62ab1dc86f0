/* table/expr.c - building filters, and turning them over. */
#include "table/expr.h"

#include "table/expr_int.h"

const tarn_expr *expr_true(void) {
    static const tarn_expr yes = {.op = EXPR_TRUE};
    return &yes;
}

const tarn_expr *expr_false(void) {
    static const tarn_expr no = {.op = EXPR_FALSE};
    return &no;
}

static const tarn_expr *make_pair(tarn_arena *arena, expr_op op, const tarn_expr *a,
                                  const tarn_expr *b) {
    tarn_expr *expr = ARENA_NEW(arena, tarn_expr);
    if (expr != NULL) {
        expr->op = op;
        expr->left = a;
        expr->right = b;
    }
    return expr;
}

const tarn_expr *expr_and(tarn_arena *arena, const tarn_expr *a, const tarn_expr *b) {
    if (a->op == EXPR_FALSE || b->op == EXPR_TRUE) {
        return a;
    }
    if (b->op == EXPR_FALSE || a->op == EXPR_TRUE) {
        return b;
    }
    return make_pair(arena, EXPR_AND, a, b);
}

const tarn_expr *expr_or(tarn_arena *arena, const tarn_expr *a, const tarn_expr *b) {
    if (a->op == EXPR_TRUE || b->op == EXPR_FALSE) {
        return a;
    }
    if (b->op == EXPR_TRUE || a->op == EXPR_FALSE) {
        return b;
    }
    return make_pair(arena, EXPR_OR, a, b);
}

expr_op expr_negated_op(expr_op op) {
    switch (op) {
    case EXPR_TRUE:
        return EXPR_FALSE;
    case EXPR_FALSE:
        return EXPR_TRUE;
    case EXPR_AND:
        return EXPR_OR;
    case EXPR_OR:
        return EXPR_AND;
    case EXPR_NOT:
        return EXPR_NOT;
    case EXPR_IS_NULL:
        return EXPR_NOT_NULL;
    case EXPR_NOT_NULL:
        return EXPR_IS_NULL;
    case EXPR_IS_NAN:
        return EXPR_NOT_NAN;
    case EXPR_NOT_NAN:
        return EXPR_IS_NAN;
    case EXPR_LT:
        return EXPR_GE;
    case EXPR_LE:
        return EXPR_GT;
    case EXPR_GT:
        return EXPR_LE;
    case EXPR_GE:
        return EXPR_LT;
    case EXPR_EQ:
        return EXPR_NE;
    case EXPR_NE:
        return EXPR_EQ;
    case EXPR_IN:
        return EXPR_NOT_IN;
    case EXPR_NOT_IN:
        return EXPR_IN;
    case EXPR_STARTS_WITH:
        return EXPR_NOT_STARTS_WITH;
    case EXPR_NOT_STARTS_WITH:
        return EXPR_STARTS_WITH;
    }
    return op;
}

static bool is_bound(const tarn_expr *expr) {
    while (expr->op == EXPR_AND || expr->op == EXPR_OR || expr->op == EXPR_NOT) {
        expr = expr->left;
    }
    return !expr_is_predicate(expr) || expr->field != NULL;
}

/* The negation of a bound filter, pushed down to the leaves. */
static const tarn_expr *negate(tarn_arena *arena, const tarn_expr *expr) {
    if (expr->op == EXPR_TRUE || expr->op == EXPR_FALSE) {
        return expr->op == EXPR_TRUE ? expr_false() : expr_true();
    }
    if (expr->op == EXPR_AND || expr->op == EXPR_OR) {
        const tarn_expr *left = negate(arena, expr->left);
        const tarn_expr *right = negate(arena, expr->right);
        if (left == NULL || right == NULL) {
            return NULL;
        }
        return expr->op == EXPR_AND ? expr_or(arena, left, right) : expr_and(arena, left, right);
    }
    tarn_expr *turned = ARENA_NEW(arena, tarn_expr);
    if (turned != NULL) {
        *turned = *expr;
        turned->op = expr_negated_op(expr->op);
    }
    return turned;
}

const tarn_expr *expr_not(tarn_arena *arena, const tarn_expr *a) {
    if (a->op == EXPR_NOT) {
        return a->left;
    }
    return is_bound(a) ? negate(arena, a) : make_pair(arena, EXPR_NOT, a, NULL);
}

static void collect_ids(const tarn_expr *expr, int32_t *ids, size_t cap, size_t *n) {
    if (expr->op == EXPR_AND || expr->op == EXPR_OR || expr->op == EXPR_NOT) {
        collect_ids(expr->left, ids, cap, n);
        if (expr->right != NULL) {
            collect_ids(expr->right, ids, cap, n);
        }
        return;
    }
    if (!expr_is_predicate(expr)) {
        return;
    }
    for (size_t i = 0; i < *n && i < cap; i++) {
        if (ids[i] == expr->field_id) {
            return;
        }
    }
    if (*n < cap) {
        ids[*n] = expr->field_id;
    }
    (*n)++;
}

size_t expr_field_ids(const tarn_expr *expr, int32_t *ids, size_t cap) {
    size_t n = 0;
    collect_ids(expr, ids, cap, &n);
    return n;
}

bool expr_value_is_nan(const tarn_value *v) {
    return (v->type->kind == TARN_FLOAT && v->as.f32 != v->as.f32) ||
           (v->type->kind == TARN_DOUBLE && v->as.f64 != v->as.f64);
}

int expr_cmp(const tarn_value *a, const tarn_value *b) {
    bool zeros = (a->type->kind == TARN_FLOAT && a->as.f32 == 0 && b->as.f32 == 0) ||
                 (a->type->kind == TARN_DOUBLE && a->as.f64 == 0 && b->as.f64 == 0);
    return zeros ? 0 : value_cmp(a, b);
}
