/* read/read_columns.h - which part of a schema a read asks for. Pure. */
#ifndef READ_READ_COLUMNS_H
#define READ_READ_COLUMNS_H

#include "table/expr.h"

/* The struct of these columns of root, whole or parts of nested ones, in the order asked for; none:
 * root. Reserved columns (read/reserved.h) can be named too. */
tarn_code columns_select(tarn_arena *arena, const tarn_type *root, const tarn_str *columns,
                         int32_t n_columns, bool case_insensitive, const tarn_type **out,
                         tarn_error *err) TARN_MUST_USE;
/* wanted, with what the bound filter needs besides (found in root) added: wanted itself when it
 * needs nothing. */
tarn_code columns_with_filter(tarn_arena *arena, const tarn_type *root, const tarn_type *wanted,
                              const tarn_expr *filter, const tarn_type **out,
                              tarn_error *err) TARN_MUST_USE;

/* The fields of a, and what b has besides, at any depth below structs (by id). */
tarn_code columns_merge(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                        const tarn_type **out, tarn_error *err) TARN_MUST_USE;
/* The part of root that leads to these fields. */
tarn_code columns_of_ids(tarn_arena *arena, const tarn_type *root, const int32_t *ids, int32_t n,
                         const tarn_type **out, tarn_error *err) TARN_MUST_USE;
/* The same struct, nothing in it required: a file that has no such column has nulls there. */
tarn_code columns_optional(tarn_arena *arena, const tarn_type *type, const tarn_type **out,
                           tarn_error *err) TARN_MUST_USE;

#endif
