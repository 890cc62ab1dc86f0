/* table/expr_bind.c - names become field ids, literals become values of the column's type, and
 * not(...) moves down to the leaves.
 *
 * What the column's type decides folds here: a literal outside its range, between two of its
 * values, null, or a null test on a required column. Folding keeps SQL's rule that a comparison
 * with null is never TRUE, so "x < 99999999999" on an int becomes "x is not null". */
#include "table/expr.h"

#include "base/limits.h"
#include "table/expr_int.h"
#include "table/value_int.h"

#include <float.h>
#include <math.h>

typedef struct binder {
    tarn_arena *arena;
    const tarn_type *root;
    bool case_sensitive;
    tarn_error *err;
    tarn_str name; /* of the predicate at hand, as written */
} binder;

/* ---- columns ---- */

/* Whether the field is reached from the root through structs only; *nullable: one of them, or it,
 * may be null. */
static bool reach(const tarn_type *type, const tarn_field *field, bool *nullable) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        bool found = f == field;
        if (!found && f->type->kind == TARN_STRUCT) {
            found = reach(f->type, field, nullable);
        }
        if (found) {
            *nullable = *nullable || !f->required;
            return true;
        }
    }
    return false;
}

static tarn_code find_field(const binder *b, tarn_str name, const tarn_field **out,
                            bool *nullable) {
    const tarn_field *field = type_find_name(b->root, name, b->case_sensitive);
    if (field == NULL) {
        return err_set(b->err, TARN_INVALID, "column %.*s of the filter was not in the schema",
                       STR_ARG(name));
    }
    if (!reach(b->root, field, nullable)) {
        return err_set(b->err, TARN_INVALID, "column %.*s of the filter lies inside a list or map",
                       STR_ARG(name));
    }
    *out = field;
    return TARN_OK;
}

static bool is_comparable(const tarn_type *type) {
    return !type_is_nested(type) && type->kind != TARN_VARIANT && type->kind != TARN_GEOMETRY &&
           type->kind != TARN_GEOGRAPHY;
}

/* ---- predicates ---- */

static tarn_code make_predicate(const binder *b, expr_op op, const tarn_field *field,
                                const tarn_value *values, int32_t n, const tarn_expr **out) {
    tarn_expr *expr = ARENA_NEW(b->arena, tarn_expr);
    if (expr == NULL) {
        return err_nomem(b->err);
    }
    expr->op = op;
    expr->name = arena_str(b->arena, b->name);
    if (expr->name.data == NULL) {
        return err_nomem(b->err);
    }
    expr->field = field;
    expr->field_id = field->id;
    expr->values = values;
    expr->n_values = n;
    *out = expr;
    return TARN_OK;
}

static tarn_code make_not_null(const binder *b, const tarn_field *field, bool nullable,
                               const tarn_expr **out) {
    if (!nullable) {
        *out = expr_true();
        return TARN_OK;
    }
    if (field->type->kind == TARN_UNKNOWN) {
        *out = expr_false();
        return TARN_OK;
    }
    return make_predicate(b, EXPR_NOT_NULL, field, NULL, 0, out);
}

static tarn_code make_is_null(const binder *b, const tarn_field *field, bool nullable,
                              const tarn_expr **out) {
    if (!nullable || field->type->kind == TARN_UNKNOWN) {
        *out = nullable ? expr_true() : expr_false();
        return TARN_OK;
    }
    return make_predicate(b, EXPR_IS_NULL, field, NULL, 0, out);
}

static tarn_code bind_nan(const binder *b, expr_op op, const tarn_field *field, bool nullable,
                          const tarn_expr **out) {
    if (field->type->kind == TARN_FLOAT || field->type->kind == TARN_DOUBLE) {
        return make_predicate(b, op, field, NULL, 0, out);
    }
    if (op == EXPR_NOT_NAN) {
        return make_not_null(b, field, nullable, out);
    }
    *out = expr_false();
    return TARN_OK;
}

/* -0.0 and 0.0 are one value in filters. */
static void normalize_zero(tarn_value *v) {
    if (v->type->kind == TARN_FLOAT && v->as.f32 == 0) {
        v->as.f32 = 0;
    } else if (v->type->kind == TARN_DOUBLE && v->as.f64 == 0) {
        v->as.f64 = 0;
    }
}

/* A literal beyond a float column's finite values still lies below its infinity. */
static void clamp_float(const tarn_type *type, tarn_value *v, value_fit *fit) {
    if (type->kind == TARN_FLOAT && fit->range != 0) {
        *v = value_null(type);
        v->is_null = false;
        v->as.f32 = fit->range > 0 ? FLT_MAX : -INFINITY; /* the next value below */
        fit->range = 0;
        fit->inexact = true;
    }
}

static tarn_code bind_literal(const binder *b, const tarn_field *field, const tarn_value *literal,
                              tarn_value *out, value_fit *fit) {
    tarn_code code = value_floor(b->arena, literal, field->type, out, fit, b->err);
    if (code != TARN_OK) {
        return err_add(b->err, code, "filter on column %.*s", STR_ARG(field->name));
    }
    clamp_float(field->type, out, fit);
    if (fit->range == 0) {
        normalize_zero(out);
        return value_copy(b->arena, out, out, b->err);
    }
    return TARN_OK;
}

/* The comparison with the greatest value below a literal that the type does not have. */
static expr_op floor_op(expr_op op) {
    if (op == EXPR_LT || op == EXPR_LE) {
        return EXPR_LE;
    }
    return op == EXPR_GT || op == EXPR_GE ? EXPR_GT : op;
}

static tarn_code bind_compare(const binder *b, expr_op op, const tarn_field *field, bool nullable,
                              const tarn_value *literal, const tarn_expr **out) {
    value_fit fit;
    tarn_value *value = ARENA_NEW(b->arena, tarn_value);
    if (value == NULL) {
        return err_nomem(b->err);
    }
    if (literal->is_null || field->type->kind == TARN_UNKNOWN) {
        *out = expr_false();
        return TARN_OK;
    }
    tarn_code code = bind_literal(b, field, literal, value, &fit);
    if (code != TARN_OK) {
        return code;
    }
    if (fit.range != 0 || (fit.inexact && (op == EXPR_EQ || op == EXPR_NE))) {
        bool always = op == EXPR_NE || (fit.range > 0 && (op == EXPR_LT || op == EXPR_LE)) ||
                      (fit.range < 0 && (op == EXPR_GT || op == EXPR_GE));
        if (always) {
            return make_not_null(b, field, nullable, out);
        }
        *out = expr_false();
        return TARN_OK;
    }
    return make_predicate(b, fit.inexact ? floor_op(op) : op, field, value, 1, out);
}

/* Heap sort: no memory, and no worst case. */
static void sift(tarn_value *values, int32_t root, int32_t n) {
    for (;;) {
        int32_t child = 2 * root + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && expr_cmp(&values[child], &values[child + 1]) < 0) {
            child++;
        }
        if (expr_cmp(&values[root], &values[child]) >= 0) {
            return;
        }
        tarn_value swap = values[root];
        values[root] = values[child];
        values[child] = swap;
        root = child;
    }
}

static int32_t sort_distinct(tarn_value *values, int32_t n) {
    for (int32_t i = n / 2; i-- > 0;) {
        sift(values, i, n);
    }
    for (int32_t i = n - 1; i > 0; i--) {
        tarn_value swap = values[0];
        values[0] = values[i];
        values[i] = swap;
        sift(values, 0, i);
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        if (kept == 0 || expr_cmp(&values[kept - 1], &values[i]) != 0) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static tarn_code bind_in(const binder *b, expr_op op, const tarn_field *field, bool nullable,
                         const tarn_expr *expr, const tarn_expr **out) {
    int32_t n = 0;
    bool has_null = false;
    if (expr->n_values > LIMIT_EXPR_LITERALS) {
        return err_set(b->err, TARN_LIMIT, "a filter had more than %d literals",
                       LIMIT_EXPR_LITERALS);
    }
    tarn_value *values = ARENA_ARRAY(b->arena, tarn_value, (size_t)expr->n_values);
    if (values == NULL) {
        return err_nomem(b->err);
    }
    for (int32_t i = 0; i < expr->n_values; i++) {
        value_fit fit;
        has_null = has_null || expr->values[i].is_null;
        if (expr->values[i].is_null || field->type->kind == TARN_UNKNOWN) {
            continue;
        }
        tarn_code code = bind_literal(b, field, &expr->values[i], &values[n], &fit);
        if (code != TARN_OK) {
            return code;
        }
        n += fit.range == 0 && !fit.inexact;
    }
    n = sort_distinct(values, n);
    bool never = (op == EXPR_NOT_IN && has_null) || field->type->kind == TARN_UNKNOWN;
    if (never || (n == 0 && op == EXPR_IN)) {
        *out = expr_false(); /* x not in (..., null) is never TRUE */
        return TARN_OK;
    }
    if (n == 0) {
        return make_not_null(b, field, nullable, out);
    }
    if (n == 1) {
        op = op == EXPR_IN ? EXPR_EQ : EXPR_NE;
    }
    return make_predicate(b, op, field, values, n, out);
}

static tarn_code bind_prefix(const binder *b, expr_op op, const tarn_field *field,
                             const tarn_expr *expr, const tarn_expr **out) {
    tarn_value *prefix = ARENA_NEW(b->arena, tarn_value);
    if (prefix == NULL) {
        return err_nomem(b->err);
    }
    if (field->type->kind != TARN_STRING || expr->values[0].type->kind != TARN_STRING) {
        return err_set(b->err, TARN_INVALID, "column %.*s was no string to have a prefix",
                       STR_ARG(field->name));
    }
    if (expr->values[0].is_null) {
        *out = expr_false();
        return TARN_OK;
    }
    tarn_code code = value_copy(b->arena, &expr->values[0], prefix, b->err);
    return code == TARN_OK ? make_predicate(b, op, field, prefix, 1, out) : code;
}

static tarn_code bind_predicate(binder *b, const tarn_expr *expr, expr_op op,
                                const tarn_expr **out) {
    const tarn_field *field = NULL;
    bool nullable = false;
    b->name = expr->name;
    tarn_code code = find_field(b, expr->name, &field, &nullable);
    if (code != TARN_OK) {
        return code;
    }
    if (op == EXPR_IS_NULL) {
        return make_is_null(b, field, nullable, out);
    }
    if (op == EXPR_NOT_NULL) {
        return make_not_null(b, field, nullable, out);
    }
    if (!is_comparable(field->type)) {
        return err_set(b->err, TARN_INVALID,
                       "column %.*s of type %s cannot be compared in a filter",
                       STR_ARG(field->name), type_kind_name(field->type->kind));
    }
    if (op == EXPR_IS_NAN || op == EXPR_NOT_NAN) {
        return bind_nan(b, op, field, nullable, out);
    }
    if (op == EXPR_IN || op == EXPR_NOT_IN) {
        return bind_in(b, op, field, nullable, expr, out);
    }
    tarn_assert(expr->n_values == 1);
    if (op == EXPR_STARTS_WITH || op == EXPR_NOT_STARTS_WITH) {
        return bind_prefix(b, op, field, expr, out);
    }
    return bind_compare(b, op, field, nullable, &expr->values[0], out);
}

static tarn_code bind_tree(binder *b, const tarn_expr *expr, bool negated, int depth,
                           const tarn_expr **out) {
    const tarn_expr *left = NULL;
    const tarn_expr *right = NULL;
    tarn_code code;
    if (depth > 4 * LIMIT_EXPR_DEPTH) {
        return err_set(b->err, TARN_LIMIT, "a filter was nested more than %d levels deep",
                       4 * LIMIT_EXPR_DEPTH);
    }
    if (expr->op == EXPR_NOT) {
        return bind_tree(b, expr->left, !negated, depth + 1, out);
    }
    expr_op op = negated ? expr_negated_op(expr->op) : expr->op;
    if (op == EXPR_TRUE || op == EXPR_FALSE) {
        *out = op == EXPR_TRUE ? expr_true() : expr_false();
        return TARN_OK;
    }
    if (op != EXPR_AND && op != EXPR_OR) {
        return bind_predicate(b, expr, op, out);
    }
    TRY(bind_tree(b, expr->left, negated, depth + 1, &left));
    TRY(bind_tree(b, expr->right, negated, depth + 1, &right));
    *out = op == EXPR_AND ? expr_and(b->arena, left, right) : expr_or(b->arena, left, right);
    code = *out != NULL ? TARN_OK : err_nomem(b->err);
done:
    return code;
}

tarn_code expr_bind(tarn_arena *arena, const tarn_expr *expr, const tarn_type *root,
                    bool case_sensitive, const tarn_expr **out, tarn_error *err) {
    binder b = {arena, root, case_sensitive, err, STR_NULL};
    const tarn_expr *bound = NULL;
    tarn_code code = bind_tree(&b, expr, false, 0, &bound);
    if (code == TARN_OK) {
        *out = bound;
    }
    return code;
}
