/* iceberg/transform_project.c - filters on a column as filters on its partition value (spec, "Scan
 * Planning"). Inclusive: true whenever a row of the partition can match. Strict: true only where
 * every row of it must.
 *
 * Two faults of old writers are allowed for. Negative times were once stored one too high (B02), so
 * inclusive projections of a negative value take the next one too, and strict ones leave it out.
 * Integers near the least one, truncated, wrapped round to a large positive value (B01), so that
 * one value may stand for them. */
#include <stdlib.h>

#include "iceberg/transform_int.h"

typedef struct projection {
    tarn_arena *arena;
    const tarn_transform *transform;
    const tarn_expr *source; /* the predicate */
    const tarn_field *target;
    tarn_error *err;
} projection;

static tarn_code make_predicate(const projection *p, expr_op op, const tarn_value *values,
                                int32_t n_values, const tarn_expr **out) {
    tarn_expr *e = ARENA_NEW(p->arena, tarn_expr);
    tarn_value *copy = ARENA_ARRAY(p->arena, tarn_value, (size_t)n_values);
    if (e == NULL || copy == NULL) {
        return err_nomem(p->err);
    }
    if (n_values > 0) {
        memcpy(copy, values, (size_t)n_values * sizeof *copy);
    }
    e->op = op;
    e->name = p->target->name;
    e->field_id = p->target->id;
    e->field = p->target;
    e->values = n_values > 0 ? copy : NULL;
    e->n_values = n_values;
    *out = e;
    return TARN_OK;
}

static tarn_code fold_and(const projection *p, const tarn_expr *a, const tarn_expr *b,
                          const tarn_expr **out) {
    *out = expr_and(p->arena, a, b);
    return *out == NULL ? err_nomem(p->err) : TARN_OK;
}

static tarn_code fold_or(const projection *p, const tarn_expr *a, const tarn_expr *b,
                         const tarn_expr **out) {
    *out = expr_or(p->arena, a, b);
    return *out == NULL ? err_nomem(p->err) : TARN_OK;
}

/* The least value's true truncation lies below the type; this is where it wrapped to. False: the
 * width divides the range and nothing wraps, or the type does not wrap. */
static bool wrapped_value(const projection *p, tarn_value *out) {
    tarn_kind kind = p->source->field->type->kind;
    if (p->transform->kind != TRANSFORM_TRUNCATE || (kind != TARN_INT && kind != TARN_LONG)) {
        return false;
    }
    int64_t rest = num_floor_mod(kind_min(kind), p->transform->param);
    if (rest == 0) {
        return false;
    }
    int64_t v = kind_max(kind) - rest + 1;
    *out = kind == TARN_INT && p->target->type->kind == TARN_INT
               ? value_i32(p->target->type, (int32_t)v)
               : value_i64(p->target->type, v);
    return kind == TARN_INT || p->target->type->kind == TARN_LONG;
}

/* Whether v lies among the lowest values, whose truncation would be below the type. */
static bool in_lowest(const projection *p, const tarn_value *v) {
    tarn_value ignored;
    int64_t t;
    if (!wrapped_value(p, &ignored)) {
        return false;
    }
    bool narrow = v->type->kind == TARN_INT;
    return !truncate_long(narrow ? v->as.i32 : v->as.i64, p->transform->param,
                          kind_min(v->type->kind), &t);
}

/* v + step (-1 or 1) for kinds that count; 0 done, else the side on which the type ends. Kinds that
 * do not count (text, bytes) are left as they are. */
static int step_value(tarn_value *v, int step) {
    switch (v->type->kind) {
    case TARN_INT:
    case TARN_DATE:
        if (v->as.i32 == (step < 0 ? INT32_MIN : INT32_MAX)) {
            return step;
        }
        v->as.i32 += step;
        return 0;
    case TARN_LONG:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        if (v->as.i64 == (step < 0 ? INT64_MIN : INT64_MAX)) {
            return step;
        }
        v->as.i64 += step;
        return 0;
    case TARN_DECIMAL:
        v->as.i128 += step;
        return 0;
    case TARN_BOOLEAN:
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return 0;
}

static bool counts(const tarn_value *v) {
    return v->type->kind != TARN_STRING && v->type->kind != TARN_BINARY;
}

/* The transformed literal. Decimals may step one digit beyond the precision here: it is only
 * compared. */
static tarn_code transformed(const projection *p, const tarn_value *v, tarn_value *out) {
    if (p->transform->kind == TRANSFORM_TRUNCATE && v->type->kind == TARN_DECIMAL) {
        *out = *v;
        out->type = p->target->type;
        out->as.i128 = truncate_i128(v->as.i128, p->transform->param);
        return TARN_OK;
    }
    tarn_code code = transform_value(p->transform, v, p->target->type, out, p->err);
    /* A column that was an int when the predicate's schema was made and is a long partition now. */
    if (code == TARN_OK && v->type->kind == TARN_INT && p->target->type->kind == TARN_LONG &&
        p->transform->kind == TRANSFORM_TRUNCATE) {
        out->as.i64 = out->as.i32;
    }
    return code;
}

static bool is_time(const projection *p) {
    return p->transform->kind >= TRANSFORM_YEAR && p->transform->kind <= TRANSFORM_HOUR;
}

static void sort_distinct(tarn_value *values, int32_t *n) {
    for (int32_t i = 1; i < *n; i++) { /* nearly sorted already: transforms keep order mostly */
        tarn_value v = values[i];
        int32_t j = i;
        for (; j > 0 && value_cmp(&values[j - 1], &v) > 0; j--) {
            values[j] = values[j - 1];
        }
        values[j] = v;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < *n; i++) {
        if (kept == 0 || value_cmp(&values[kept - 1], &values[i]) != 0) {
            values[kept++] = values[i];
        }
    }
    *n = kept;
}

static int compare_values(const void *a, const void *b) {
    return value_cmp((const tarn_value *)a, (const tarn_value *)b);
}

/* All literals transformed, as a sorted set; for times with the neighbours of negative values. */
static tarn_code transformed_set(const projection *p, tarn_value **out, int32_t *n_out) {
    const tarn_expr *s = p->source;
    tarn_value *set = ARENA_ARRAY(p->arena, tarn_value, (size_t)s->n_values * 2);
    int32_t n = 0;
    if (set == NULL) {
        return err_nomem(p->err);
    }
    for (int32_t i = 0; i < s->n_values; i++) {
        tarn_value wrapped;
        if (in_lowest(p, &s->values[i]) && wrapped_value(p, &wrapped)) {
            set[n++] = wrapped;
            continue;
        }
        tarn_code code = transformed(p, &s->values[i], &set[n]);
        if (code != TARN_OK) {
            return code;
        }
        n++;
        if (is_time(p) && set[n - 1].as.i32 < 0) {
            set[n] = set[n - 1];
            set[n++].as.i32++;
        }
    }
    if (n > 64) {
        qsort(set, (size_t)n, sizeof *set, compare_values);
    }
    sort_distinct(set, &n);
    *out = set;
    *n_out = n;
    return TARN_OK;
}

static tarn_code project_set(const projection *p, bool in, const tarn_expr **out) {
    tarn_value *set = NULL;
    int32_t n = 0;
    tarn_code code = transformed_set(p, &set, &n);
    if (code != TARN_OK) {
        return code;
    }
    expr_op one = in ? EXPR_EQ : EXPR_NE;
    return make_predicate(p, n == 1 ? one : (in ? EXPR_IN : EXPR_NOT_IN), set, n, out);
}

/* starts-with over truncated text: exact while the prefix is not longer than the width. */
static tarn_code project_prefix(const projection *p, bool strict, const tarn_expr **out) {
    const tarn_value *prefix = &p->source->values[0];
    bool negated = p->source->op == EXPR_NOT_STARTS_WITH;
    size_t width = (size_t)p->transform->param;
    size_t head = str_utf8_prefix(prefix->as.bytes, width);
    size_t shorter = str_utf8_prefix(prefix->as.bytes, width - 1);
    tarn_value v = *prefix;
    v.type = p->target->type;
    if (shorter == prefix->as.bytes.len) {
        return make_predicate(p, p->source->op, &v, 1, out);
    }
    if (head == prefix->as.bytes.len) {
        return make_predicate(p, negated ? EXPR_NE : EXPR_EQ, &v, 1, out);
    }
    v.as.bytes.len = head;
    if (negated == strict) { /* what is wanted of a longer prefix can be said by its head */
        return make_predicate(p, negated ? EXPR_NE : EXPR_EQ, &v, 1, out);
    }
    *out = strict ? expr_false() : expr_true();
    return TARN_OK;
}

/* <, <=, >, >= through a transform that keeps order. */
static tarn_code project_range(const projection *p, const tarn_expr **out) {
    tarn_value v = p->source->values[0], t, wrapped;
    expr_op op = p->source->op;
    bool below = op == EXPR_LT || op == EXPR_LE;
    const tarn_expr *range = NULL;
    bool wraps = wrapped_value(p, &wrapped);
    if ((op == EXPR_LT || op == EXPR_GT) && step_value(&v, below ? -1 : 1) != 0) {
        *out = expr_false();
        return TARN_OK;
    }
    if (in_lowest(p, &v)) { /* below: only the lowest can match; above: everything can */
        return below ? make_predicate(p, EXPR_EQ, &wrapped, 1, out)
                     : make_predicate(p, EXPR_NOT_NULL, NULL, 0, out);
    }
    tarn_code code = transformed(p, &v, &t);
    if (code != TARN_OK) {
        return code;
    }
    if (below && is_time(p) && t.as.i32 < 0) {
        t.as.i32++;
    }
    code = make_predicate(p, below ? EXPR_LE : EXPR_GE, &t, 1, &range);
    if (code != TARN_OK || !below || !wraps) {
        *out = range;
        return code;
    }
    const tarn_expr *lowest;
    code = make_predicate(p, EXPR_EQ, &wrapped, 1, &lowest);
    return code == TARN_OK ? fold_or(p, range, lowest, out) : code;
}

static tarn_code project_range_strict(const projection *p, const tarn_expr **out) {
    tarn_value v = p->source->values[0], t, wrapped;
    expr_op op = p->source->op;
    bool below = op == EXPR_LT || op == EXPR_LE;
    bool wraps = wrapped_value(p, &wrapped);
    const tarn_expr *range = NULL;
    if ((op == EXPR_LE || op == EXPR_GE) && counts(&v) && step_value(&v, below ? 1 : -1) != 0) {
        return make_predicate(p, EXPR_NOT_NULL, NULL, 0, out); /* every value matches */
    }
    if (in_lowest(p, &v)) {
        if (below) {
            *out = expr_false();
            return TARN_OK;
        }
        return make_predicate(p, EXPR_NE, &wrapped, 1, out);
    }
    tarn_code code = transformed(p, &v, &t);
    if (code != TARN_OK) {
        return code;
    }
    if (!below && is_time(p) && t.as.i32 <= 0) {
        t.as.i32++;
    }
    code = make_predicate(p, below ? EXPR_LT : EXPR_GT, &t, 1, &range);
    if (code != TARN_OK || below || !wraps) {
        *out = range;
        return code;
    }
    const tarn_expr *not_lowest;
    code = make_predicate(p, EXPR_NE, &wrapped, 1, &not_lowest);
    return code == TARN_OK ? fold_and(p, range, not_lowest, out) : code;
}

static bool keeps_order(const tarn_transform *t) {
    return t->kind == TRANSFORM_TRUNCATE ||
           (t->kind >= TRANSFORM_YEAR && t->kind <= TRANSFORM_HOUR);
}

/* What is the same for both: nulls pass, identity says all, void and unknown nothing. True: done.
 */
static bool project_plain(const projection *p, bool strict, const tarn_expr **out,
                          tarn_code *code) {
    expr_op op = p->source->op;
    const tarn_expr *nothing = strict ? expr_false() : expr_true();
    *code = TARN_OK;
    *out = nothing;
    if (op == EXPR_TRUE || op == EXPR_FALSE) {
        *out = p->source;
        return true;
    }
    if (p->transform->kind == TRANSFORM_VOID || p->transform->kind == TRANSFORM_UNKNOWN ||
        p->target->type->kind == TARN_UNKNOWN || p->source->field == NULL) {
        return true;
    }
    if (p->transform->kind == TRANSFORM_IDENTITY) {
        if (p->source->n_values > 0 && p->source->values[0].type->kind != p->target->type->kind) {
            return true;
        }
        *code = make_predicate(p, op, p->source->values, p->source->n_values, out);
        return true;
    }
    if (op == EXPR_IS_NULL || op == EXPR_NOT_NULL) {
        *code = make_predicate(p, op, NULL, 0, out);
        return true;
    }
    return op == EXPR_IS_NAN || op == EXPR_NOT_NAN || p->source->n_values == 0;
}

tarn_code transform_project(tarn_arena *arena, const tarn_transform *transform,
                            const tarn_expr *predicate, const tarn_field *partition_field,
                            const tarn_expr **out, tarn_error *err) {
    projection p = {arena, transform, predicate, partition_field, err};
    const tarn_expr *result = NULL;
    tarn_code code;
    if (project_plain(&p, false, &result, &code)) {
        if (code == TARN_OK) {
            *out = result;
        }
        return code;
    }
    expr_op op = predicate->op;
    result = expr_true();
    if (op == EXPR_EQ || op == EXPR_IN) {
        code = project_set(&p, true, &result);
    } else if (keeps_order(transform) && op >= EXPR_LT && op <= EXPR_GE) {
        code = project_range(&p, &result);
    } else if ((op == EXPR_STARTS_WITH || op == EXPR_NOT_STARTS_WITH) &&
               transform->kind == TRANSFORM_TRUNCATE &&
               predicate->values[0].type->kind == TARN_STRING) {
        code = project_prefix(&p, false, &result);
    }
    if (code == TARN_OK) {
        *out = result;
    }
    return code;
}

tarn_code transform_project_strict(tarn_arena *arena, const tarn_transform *transform,
                                   const tarn_expr *predicate, const tarn_field *partition_field,
                                   const tarn_expr **out, tarn_error *err) {
    projection p = {arena, transform, predicate, partition_field, err};
    const tarn_expr *result = NULL;
    tarn_code code;
    if (project_plain(&p, true, &result, &code)) {
        if (code == TARN_OK) {
            *out = result;
        }
        return code;
    }
    expr_op op = predicate->op;
    result = expr_false();
    if (op == EXPR_NE || op == EXPR_NOT_IN) {
        code = project_set(&p, false, &result);
    } else if (keeps_order(transform) && op >= EXPR_LT && op <= EXPR_GE) {
        code = project_range_strict(&p, &result);
    } else if ((op == EXPR_STARTS_WITH || op == EXPR_NOT_STARTS_WITH) &&
               transform->kind == TRANSFORM_TRUNCATE &&
               predicate->values[0].type->kind == TARN_STRING) {
        code = project_prefix(&p, true, &result);
    }
    if (code == TARN_OK) {
        *out = result;
    }
    return code;
}
