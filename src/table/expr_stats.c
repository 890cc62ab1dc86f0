/* table/expr_stats.c - what a filter can say of many rows by their statistics alone (the inclusive
 * and the strict metrics evaluation).
 *
 * Bounds may be wider than the values, counts may be missing: unknown always means "may match" and
 * "not all match". NaN lies above all values but is never in the bounds, so bounds alone say
 * nothing of it: while NaN is possible, only "below" can be ruled out. */
#include "table/expr.h"

#include "table/expr_int.h"

/* A field's statistics with the questions that predicates ask. */
typedef struct stats_view {
    expr_stats s;
    bool all_null; /* certainly no value that is not null */
    bool no_null;  /* certainly no null */
    bool all_nan;  /* certainly only NaN and nulls */
    bool no_nan;   /* certainly no NaN */
    bool single;   /* all values that are neither null nor NaN are lower */
} stats_view;

static bool usable(bool has, const tarn_value *bound, const tarn_field *field) {
    return has && !bound->is_null && bound->type != NULL &&
           bound->type->kind == field->type->kind && !expr_value_is_nan(bound);
}

static bool load(const tarn_field *field, expr_stats_fn stats, void *ctx, stats_view *v) {
    memset(v, 0, sizeof *v);
    if (!stats(ctx, field, &v->s)) {
        return false;
    }
    expr_stats *s = &v->s;
    bool is_float = field->type->kind == TARN_FLOAT || field->type->kind == TARN_DOUBLE;
    int64_t nulls = s->has_null_count ? s->null_count : 0;
    s->has_lower = usable(s->has_lower, &s->lower, field);
    s->has_upper = usable(s->has_upper, &s->upper, field);
    v->all_null = s->has_null_count && s->has_value_count && nulls >= s->value_count;
    v->no_null = s->has_null_count && nulls == 0;
    v->no_nan = !is_float || (s->has_nan_count && s->nan_count == 0);
    v->all_nan = v->all_null || (is_float && s->has_nan_count && s->has_value_count &&
                                 s->nan_count >= s->value_count - nulls);
    v->single = s->has_lower && s->has_upper && expr_cmp(&s->lower, &s->upper) == 0;
    return true;
}

/* Compares a bound, cut to the prefix's length, with the prefix. */
static int cmp_prefix(const tarn_value *bound, tarn_str prefix) {
    return str_cmp(str_sub(bound->as.bytes, 0, prefix.len), prefix);
}

static bool below_lower(const stats_view *v, const tarn_value *x) {
    return v->s.has_lower && expr_cmp(x, &v->s.lower) < 0;
}

static bool above_upper(const stats_view *v, const tarn_value *x) {
    return v->s.has_upper && expr_cmp(x, &v->s.upper) > 0;
}

/* ---- may match ---- */

static bool may_equal(const stats_view *v, const tarn_value *x) {
    if (expr_value_is_nan(x)) {
        return !v->no_nan;
    }
    return !v->all_nan && !below_lower(v, x) && !above_upper(v, x);
}

static bool may_differ(const stats_view *v, const tarn_expr *expr) {
    if (!v->single || !v->no_nan) {
        return true;
    }
    for (int32_t i = 0; i < expr->n_values; i++) {
        if (!expr_value_is_nan(&expr->values[i]) && expr_cmp(&expr->values[i], &v->s.lower) == 0) {
            return false;
        }
    }
    return true;
}

static bool may_be_below(const stats_view *v, expr_op op, const tarn_value *x) {
    if (expr_value_is_nan(x)) {
        return op == EXPR_LE || !v->all_nan;
    }
    if (v->all_nan) {
        return false;
    }
    int cmp = v->s.has_lower ? expr_cmp(&v->s.lower, x) : -1;
    return op == EXPR_LT ? cmp < 0 : cmp <= 0;
}

static bool may_be_above(const stats_view *v, expr_op op, const tarn_value *x) {
    if (expr_value_is_nan(x)) {
        return op == EXPR_GE && !v->no_nan;
    }
    if (!v->no_nan) {
        return true;
    }
    int cmp = v->s.has_upper ? expr_cmp(&v->s.upper, x) : 1;
    return op == EXPR_GT ? cmp > 0 : cmp >= 0;
}

static bool may_match(const tarn_expr *expr, const stats_view *v) {
    const expr_stats *s = &v->s;
    const tarn_value *x = expr->values;
    switch (expr->op) {
    case EXPR_IS_NULL:
        return !v->no_null;
    case EXPR_IS_NAN:
        return !v->no_nan && !v->all_null;
    case EXPR_NOT_NAN:
        return !v->all_nan;
    case EXPR_NOT_NULL:
        return !v->all_null;
    case EXPR_LT:
    case EXPR_LE:
        return !v->all_null && may_be_below(v, expr->op, x);
    case EXPR_GT:
    case EXPR_GE:
        return !v->all_null && may_be_above(v, expr->op, x);
    case EXPR_EQ:
    case EXPR_IN:
        for (int32_t i = 0; i < expr->n_values && !v->all_null; i++) {
            if (may_equal(v, &x[i])) {
                return true;
            }
        }
        return false;
    case EXPR_NE:
    case EXPR_NOT_IN:
        return !v->all_null && may_differ(v, expr);
    case EXPR_STARTS_WITH:
        return !v->all_null && !(s->has_lower && cmp_prefix(&s->lower, x->as.bytes) > 0) &&
               !(s->has_upper && cmp_prefix(&s->upper, x->as.bytes) < 0);
    case EXPR_NOT_STARTS_WITH:
        return !v->all_null &&
               !(s->has_lower && s->has_upper && cmp_prefix(&s->lower, x->as.bytes) == 0 &&
                 cmp_prefix(&s->upper, x->as.bytes) == 0);
    case EXPR_TRUE:
    case EXPR_FALSE:
    case EXPR_AND:
    case EXPR_OR:
    case EXPR_NOT:
        break;
    }
    return true;
}

bool expr_may_match(const tarn_expr *bound, expr_stats_fn stats, void *ctx) {
    stats_view v;
    if (bound->op == EXPR_TRUE || bound->op == EXPR_FALSE) {
        return bound->op == EXPR_TRUE;
    }
    if (bound->op == EXPR_AND) {
        return expr_may_match(bound->left, stats, ctx) && expr_may_match(bound->right, stats, ctx);
    }
    if (bound->op == EXPR_OR) {
        return expr_may_match(bound->left, stats, ctx) || expr_may_match(bound->right, stats, ctx);
    }
    return !load(bound->field, stats, ctx, &v) || may_match(bound, &v);
}

/* ---- all match ---- */

static bool all_below(const stats_view *v, expr_op op, const tarn_value *x) {
    if (expr_value_is_nan(x)) {
        return op == EXPR_LE || v->no_nan;
    }
    int cmp = v->s.has_upper ? expr_cmp(&v->s.upper, x) : 1;
    return v->no_nan && (op == EXPR_LT ? cmp < 0 : cmp <= 0);
}

static bool all_above(const stats_view *v, expr_op op, const tarn_value *x) {
    if (expr_value_is_nan(x)) {
        return op == EXPR_GE && v->all_nan;
    }
    int cmp = v->s.has_lower ? expr_cmp(&v->s.lower, x) : -1;
    return op == EXPR_GT ? cmp > 0 : cmp >= 0;
}

static bool all_among(const stats_view *v, const tarn_expr *expr) {
    for (int32_t i = 0; i < expr->n_values; i++) {
        const tarn_value *x = &expr->values[i];
        if (expr_value_is_nan(x) ? v->all_nan
                                 : v->single && v->no_nan && expr_cmp(x, &v->s.lower) == 0) {
            return true;
        }
    }
    return false;
}

static bool none_among(const stats_view *v, const tarn_expr *expr) {
    for (int32_t i = 0; i < expr->n_values; i++) {
        const tarn_value *x = &expr->values[i];
        if (expr_value_is_nan(x) ? !v->no_nan : !below_lower(v, x) && !above_upper(v, x)) {
            return false;
        }
    }
    return true;
}

static bool all_match(const tarn_expr *expr, const stats_view *v) {
    const expr_stats *s = &v->s;
    const tarn_value *x = expr->values;
    if (expr->op == EXPR_IS_NULL) {
        return v->all_null;
    }
    if (!v->no_null) {
        return false;
    }
    switch (expr->op) {
    case EXPR_NOT_NULL:
        return true;
    case EXPR_IS_NAN:
        return v->all_nan;
    case EXPR_NOT_NAN:
        return v->no_nan;
    case EXPR_LT:
    case EXPR_LE:
        return all_below(v, expr->op, x);
    case EXPR_GT:
    case EXPR_GE:
        return all_above(v, expr->op, x);
    case EXPR_EQ:
    case EXPR_IN:
        return all_among(v, expr);
    case EXPR_NE:
    case EXPR_NOT_IN:
        return none_among(v, expr);
    case EXPR_STARTS_WITH:
        return s->has_lower && s->has_upper && cmp_prefix(&s->lower, x->as.bytes) == 0 &&
               cmp_prefix(&s->upper, x->as.bytes) == 0;
    case EXPR_NOT_STARTS_WITH:
        return (s->has_lower && cmp_prefix(&s->lower, x->as.bytes) > 0) ||
               (s->has_upper && cmp_prefix(&s->upper, x->as.bytes) < 0);
    case EXPR_IS_NULL:
    case EXPR_TRUE:
    case EXPR_FALSE:
    case EXPR_AND:
    case EXPR_OR:
    case EXPR_NOT:
        break;
    }
    return false;
}

bool expr_all_match(const tarn_expr *bound, expr_stats_fn stats, void *ctx) {
    stats_view v;
    if (bound->op == EXPR_TRUE || bound->op == EXPR_FALSE) {
        return bound->op == EXPR_TRUE;
    }
    if (bound->op == EXPR_AND) {
        return expr_all_match(bound->left, stats, ctx) && expr_all_match(bound->right, stats, ctx);
    }
    if (bound->op == EXPR_OR) {
        return expr_all_match(bound->left, stats, ctx) || expr_all_match(bound->right, stats, ctx);
    }
    return load(bound->field, stats, ctx, &v) && all_match(bound, &v);
}
