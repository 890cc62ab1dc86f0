/* service/intake_decode.h - NDJSON in memory as batches. */
#ifndef SERVICE_INTAKE_DECODE_H
#define SERVICE_INTAKE_DECODE_H

#include "format/text/text.h"

typedef struct intake_batches {
    tarn_env *env;
    tarn_batch *items;
    int32_t n;
    int64_t rows;
} intake_batches;

/* reject NULL: the first bad row is INVALID, with line and column. root outlives the batches. */
tarn_code intake_decode(tarn_env *env, tarn_str body, const tarn_type *root, text_reject_fn reject,
                        void *ctx, intake_batches *out, tarn_error *err) TARN_MUST_USE;
void intake_batches_release(intake_batches *batches); /* also of a zeroed one */

#endif
