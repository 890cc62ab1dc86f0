/* table/key_rows.h - the key columns of rows as bytes: equal keys, and only they, have equal bytes.
 * Columns are compared as the Iceberg types they have in the table's current schema, so that a
 * widened column keeps its keys (int and long alike as 8 bytes, float and double as double, -0.0 as
 * 0.0, every NaN alike, decimals by value). Null is a value of its own. */
#ifndef TABLE_KEY_ROWS_H
#define TABLE_KEY_ROWS_H

#include "table/batch.h"

typedef struct key_rows { /* one key a row, one after the other */
    tarn_buf bytes;
    uint32_t *offsets; /* rows + 1 */
    size_t cap;
    int64_t rows;
} key_rows;

void key_rows_init(key_rows *k, tarn_env *env);
void key_rows_release(key_rows *k);
/* The keys of a batch; columns named by field id, at any depth below structs. Whole columns at a
 * time. */
tarn_code key_encode(key_rows *k, const tarn_batch *batch, const int32_t *key_ids, int32_t n,
                     tarn_error *err) TARN_MUST_USE;
static inline tarn_str key_at(const key_rows *k, int64_t row) {
    return str_make(k->bytes.data + k->offsets[row], k->offsets[row + 1] - k->offsets[row]);
}

#endif
