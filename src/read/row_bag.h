/* read/row_bag.h - how often each row was seen, by 128-bit digests of rows: what tells rows that a
 * commit only moved from those that it changed, in 40 bytes a distinct row. One thread at a time.
 */
#ifndef READ_ROW_BAG_H
#define READ_ROW_BAG_H

#include "table/key_rows.h"

typedef struct row_digest {
    uint64_t low, high;
} row_digest;

/* Digests of batches' rows, by columns of a type. */
typedef struct row_digester {
    tarn_env *env;
    int32_t *ids; /* columns as keys are compared */
    int32_t n_ids;
    int32_t *others; /* columns of the batch that can be no keys: by their JSON text */
    int32_t n_others;
    key_rows keys;
    tarn_buf text;
    row_digest *digests; /* of the present batch */
    size_t cap;
} row_digester;

/* ids NULL: all columns of type. */
tarn_code digester_init(row_digester *d, tarn_env *env, const tarn_type *type, const int32_t *ids,
                        int32_t n_ids, tarn_error *err) TARN_MUST_USE;
void digester_release(row_digester *d); /* also of a zeroed one */
tarn_code digester_run(row_digester *d, const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;

typedef struct bag_item {
    row_digest digest;
    uint32_t count, carried;
    bool used, removed, added; /* removed, added: of a key, in one commit */
} bag_item;

typedef struct row_bag {
    tarn_env *env;
    bag_item *items; /* slots, a power of two */
    size_t n_slots, count;
} row_bag;

void bag_init(row_bag *b, tarn_env *env);
void bag_release(row_bag *b);
bag_item *bag_find(const row_bag *b, row_digest digest); /* NULL: never put */
/* The item, made if it was absent; valid until the next put. LIMIT: LIMIT_CHANGED_ROWS_BYTES. */
tarn_code bag_put(row_bag *b, row_digest digest, bag_item **out, tarn_error *err) TARN_MUST_USE;

#endif
