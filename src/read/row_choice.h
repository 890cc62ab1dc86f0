/* read/row_choice.h - of rows that are made whole, those and that part which was asked for: a
 * filter, columns, and at most so many. */
#ifndef READ_ROW_CHOICE_H
#define READ_ROW_CHOICE_H

#include "read/scan.h"

typedef struct row_choice {
    tarn_env *env;
    const tarn_type *output; /* of the rows that are given */
    const tarn_expr *filter; /* bound to the whole rows; NULL: all */
    tarn_projection *to_output;
    int64_t left; /* rows that may come yet; -1: any number */
} row_choice;

/* options: columns, filter, limit and case_insensitive are looked at. What the choice is made of
 * lies in arena; root outlives it. name is for messages. */
tarn_code row_choice_init(row_choice *c, tarn_arena *arena, const tarn_type *root,
                          const scan_options *options, const char *name,
                          tarn_error *err) TARN_MUST_USE;
/* The batch's rows of root become what is asked for of them. */
tarn_code row_choice_apply(row_choice *c, tarn_batch *batch, tarn_error *err) TARN_MUST_USE;

#endif
