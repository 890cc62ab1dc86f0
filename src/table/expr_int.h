/* table/expr_int.h - what the files of filters share. */
#ifndef TABLE_EXPR_INT_H
#define TABLE_EXPR_INT_H

#include "table/expr.h"

static inline bool expr_is_predicate(const tarn_expr *expr) {
    return expr->op >= EXPR_IS_NULL;
}
/* The predicate that is TRUE exactly where this one is FALSE. */
expr_op expr_negated_op(expr_op op);
/* Order of values in filters: as value_cmp, but -0.0 equals 0.0. */
int expr_cmp(const tarn_value *a, const tarn_value *b);
bool expr_value_is_nan(const tarn_value *v);

/* bits[i] = x[i] against the filter's values, for rows of a leaf column; nulls give any bit. */
tarn_code expr_compare(tarn_env *env, const tarn_expr *expr, const tarn_view *view, uint8_t *bits,
                       tarn_error *err) TARN_MUST_USE;

#endif
