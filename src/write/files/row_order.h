/* write/files/row_order.h - rows in a table's sort order (spec, "Sorting"): fields with their
 * transforms become bytes that compare as the rows do, and row numbers are sorted by them. */
#ifndef WRITE_FILES_ROW_ORDER_H
#define WRITE_FILES_ROW_ORDER_H

#include "iceberg/metadata.h"
#include "table/batch.h"

/* How rows of one schema are sorted; immutable, in the arena that made it. */
typedef struct row_sorter row_sorter;
/* NULL in *out: order has no fields, or one whose column root does not have, or a transform that is
 * not known: then rows stay as they come. order may be NULL; it and root outlive the sorter. */
tarn_code row_sorter_new(tarn_arena *arena, const tarn_type *root, const tarn_sort_order *order,
                         const row_sorter **out, tarn_error *err) TARN_MUST_USE;

/* What a row costs to be sorted, besides the bytes of its sort fields. */
#define ROW_ORDER_BYTES 48

typedef struct row_rank {
    uint64_t prefix; /* of the key behind what all share, big-endian */
    int32_t row;
} row_rank;

/* The rows of one batch, sorted. */
typedef struct row_order {
    tarn_env *env;
    int32_t *rows; /* the batch's row numbers in order; equal rows as they came */
    int64_t n;
    bool as_came; /* they came in order */
    tarn_buf keys;
    size_t *ends;  /* of the key of each row of the batch, in keys */
    size_t shared; /* bytes that all keys begin with */
} row_order;

/* *out is to be released also after a failure. */
tarn_code row_order_make(const row_sorter *sorter, tarn_env *env, const tarn_batch *batch,
                         row_order *out, tarn_error *err) TARN_MUST_USE;
void row_order_release(row_order *order); /* also of a zeroed one */
/* The key of the rank-th row; unsigned bytes compare as rows do. */
tarn_str row_order_key(const row_order *order, int64_t rank);

#endif
