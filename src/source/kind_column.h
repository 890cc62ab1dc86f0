/* source/kind_column.h - row kinds from a column of a batch whose format knows of none (Parquet,
 * Avro). */
#ifndef SOURCE_KIND_COLUMN_H
#define SOURCE_KIND_COLUMN_H

#include "base/buf.h"
#include "table/batch.h"

typedef tarn_code (*kind_reject_fn)(void *ctx, int64_t row, tarn_str raw, tarn_str reason,
                                    tarn_error *err);

/* Kinds by string column at into kinds (replaced). Rows whose kind is unknown are told to reject
 * (row from 0, the row as JSON) and taken out of the batch. */
tarn_code kind_column_read(tarn_env *env, tarn_batch *batch, int32_t at, tarn_buf *kinds,
                           kind_reject_fn reject, void *ctx, tarn_error *err) TARN_MUST_USE;

#endif
