/* source/kind_column.h - what rows of a batch must have whose format checks nothing of it (Parquet,
 * Avro): a kind, where a column says kinds, and a key. */
#ifndef SOURCE_KIND_COLUMN_H
#define SOURCE_KIND_COLUMN_H

#include "base/buf.h"
#include "table/batch.h"

typedef tarn_code (*kind_reject_fn)(void *ctx, int64_t row, tarn_str raw, tarn_str reason,
                                    tarn_error *err);

typedef struct kind_rules {
    int32_t at;           /* string column that says kinds; -1: none */
    const tarn_str *keys; /* columns that no row may lack; those that the batch lacks itself are
                             not looked for */
    int32_t n_keys;
    kind_reject_fn reject;
    void *ctx;
} kind_rules;

/* Kinds by column at into kinds (replaced; untouched without such a column). Rows whose kind is
 * unknown or whose key is null are told to reject (row from 0, the row as JSON) and taken out of
 * the batch. */
tarn_code kind_column_read(tarn_env *env, tarn_batch *batch, const kind_rules *rules,
                           tarn_buf *kinds, tarn_error *err) TARN_MUST_USE;

#endif
