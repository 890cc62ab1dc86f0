/* dml/assign.h - SET a = expr, b = expr: what an update puts into columns.
 *
 * Expressions: literals (1, 1.5, 'text', true, null, date '...', timestamp '...'), columns of the
 * row as it was, + - * / of numbers, || of texts, parentheses. Integers stay exact and never
 * overflow silently, decimals keep their digits, a division is of doubles. What a column cannot
 * hold is INVALID, and says the value. */
#ifndef DML_ASSIGN_H
#define DML_ASSIGN_H

#include "table/batch.h"

typedef struct assign_node assign_node;

typedef struct assignment {
    tarn_str name;           /* as written */
    assign_node *value;      /* bound in place */
    const tarn_field *field; /* of the schema bound to */
} assignment;

typedef struct assign_list {
    assignment *items;
    int32_t n;
} assign_list;

/* In arena; INVALID says where in the text. */
tarn_code assign_parse(tarn_arena *arena, tarn_str text, assign_list *out,
                       tarn_error *err) TARN_MUST_USE;
/* A bound copy: names become columns of root. INVALID: no such column, one set twice, types that do
 * not go together. UNSUPPORTED: a column inside a struct as target. */
tarn_code assign_bind(tarn_arena *arena, const assign_list *list, const tarn_type *root,
                      bool case_insensitive, assign_list *out, tarn_error *err) TARN_MUST_USE;
const assignment *assign_of(const assign_list *list, int32_t field_id); /* NULL: none */
/* The values of one assignment for all rows of a batch, appended to a builder of the field's type.
 */
tarn_code assign_values(const assignment *a, tarn_env *env, const tarn_batch *rows,
                        tarn_builder *out, tarn_error *err) TARN_MUST_USE;

#endif
