/* read/read_columns.h - which part of a schema a read asks for. Pure. */
#ifndef READ_READ_COLUMNS_H
#define READ_READ_COLUMNS_H

#include "table/expr.h"

/* The struct of these columns of root, whole or parts of nested ones, in the order asked for; none:
 * root. */
tarn_code columns_select(tarn_arena *arena, const tarn_type *root, const tarn_str *columns,
                         int32_t n_columns, bool case_insensitive, const tarn_type **out,
                         tarn_error *err) TARN_MUST_USE;
/* wanted, with what the bound filter needs besides (found in root) added: wanted itself when it
 * needs nothing. */
tarn_code columns_with_filter(tarn_arena *arena, const tarn_type *root, const tarn_type *wanted,
                              const tarn_expr *filter, const tarn_type **out,
                              tarn_error *err) TARN_MUST_USE;

#endif
