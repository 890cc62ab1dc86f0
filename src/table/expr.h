/* table/expr.h - filters. Names are unbound until expr_bind gives them field ids; everything after
 * works on bound ones.
 *
 * Rows are kept where the filter is TRUE under SQL's three-valued logic. not(...) is pushed down to
 * the leaves while binding, so bound expressions hold only AND, OR and predicates. */
#ifndef TABLE_EXPR_H
#define TABLE_EXPR_H

#include "table/batch.h"

typedef enum expr_op {
    EXPR_TRUE,
    EXPR_FALSE,
    EXPR_AND,
    EXPR_OR,
    EXPR_NOT, /* unbound only */
    EXPR_IS_NULL,
    EXPR_NOT_NULL,
    EXPR_IS_NAN,
    EXPR_NOT_NAN,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_EQ,
    EXPR_NE,
    EXPR_IN,
    EXPR_NOT_IN,
    EXPR_STARTS_WITH,
    EXPR_NOT_STARTS_WITH
} expr_op;

typedef struct tarn_expr tarn_expr;
struct tarn_expr {
    expr_op op;
    const tarn_expr *left; /* AND, OR, NOT */
    const tarn_expr *right;
    tarn_str name;            /* predicates: column as written */
    int32_t field_id;         /* bound predicates */
    const tarn_field *field;  /* bound predicates: field of the schema bound to */
    const tarn_value *values; /* comparisons 1, IN n (bound: sorted, distinct, of the field's type),
                                 starts-with 1 string */
    int32_t n_values;
};

/* Text: = == != <> < <= > >=, [not] in (...), is [not] null, is [not] nan, [not] like 'abc%'
 * (prefix only), starts with 'abc', [not] between a and b, and, or, not, parentheses, true, false.
 * Names: a.b, "quoted name", `quoted`. Literals: 1, 1.5, 1e3, 'text' ('' inside), true, false, null
 * in is-null only, date '...', timestamp '...', time '...', X'hex'. Errors name the column of the
 * text. */
tarn_code expr_parse(tarn_arena *arena, tarn_str text, const tarn_expr **out,
                     tarn_error *err) TARN_MUST_USE;
tarn_code expr_bind(tarn_arena *arena, const tarn_expr *expr, const tarn_type *root,
                    bool case_sensitive, const tarn_expr **out, tarn_error *err) TARN_MUST_USE;
tarn_code expr_text(const tarn_expr *expr, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
const tarn_expr *expr_and(tarn_arena *arena, const tarn_expr *a,
                          const tarn_expr *b); /* simplifies true and false; NULL: no memory */
const tarn_expr *expr_or(tarn_arena *arena, const tarn_expr *a, const tarn_expr *b);
const tarn_expr *expr_not(tarn_arena *arena,
                          const tarn_expr *a); /* unbound or bound; bound: pushed down */
const tarn_expr *expr_true(void);
const tarn_expr *expr_false(void);
/* Ids of all fields a bound expression names, each once, appended to ids (cap items); returns how
 * many there are. */
size_t expr_field_ids(const tarn_expr *expr, int32_t *ids, size_t cap);

/* Rows of a batch for which a bound filter is TRUE: bit i of selection (bit_bytes(rows),
 * overwritten). Nested fields are found by id, nulls of parent structs count. The batch must hold
 * every column named. *n_selected may be NULL. */
tarn_code expr_eval(tarn_env *env, const tarn_expr *expr, const tarn_batch *batch,
                    uint8_t *selection, int64_t *n_selected, tarn_error *err) TARN_MUST_USE;

/* What is known of one column in some part of a table or file, for pruning. */
typedef struct expr_stats {
    bool has_null_count, has_nan_count, has_value_count;
    int64_t null_count, nan_count, value_count;
    bool has_lower, has_upper; /* bounds may be wider than the values (truncated) */
    tarn_value lower, upper;   /* never NaN: a NaN bound is left out (B47) */
} expr_stats;

/* false: *out unknown for that field. */
typedef bool (*expr_stats_fn)(void *ctx, const tarn_field *field, expr_stats *out);
/* false only when no row can match (inclusive metrics evaluation). Unknown means may match. */
bool expr_may_match(const tarn_expr *bound, expr_stats_fn stats, void *ctx);
/* true only when every row matches (strict metrics evaluation): whole-file deletes. */
bool expr_all_match(const tarn_expr *bound, expr_stats_fn stats, void *ctx);

#endif
