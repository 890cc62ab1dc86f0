/* read/row_deletes.h - the rows of one data file that are gone, ready to be applied to its batches.
 * Positions stand for position deletes and vectors; key sets for equality deletes, one a set of key
 * columns and scope. Read-only: any number of threads. */
#ifndef READ_ROW_DELETES_H
#define READ_ROW_DELETES_H

#include "read/key_set.h"
#include "table/key_rows.h"
#include "table/positions.h"

typedef struct row_delete_keys {
    const key_set *set;
    const int32_t *ids; /* key columns, rising */
    int32_t n_ids;
} row_delete_keys;

typedef struct row_deletes {
    const tarn_positions *positions; /* NULL: none */
    const row_delete_keys *keys;
    int32_t n_keys;
    const tarn_type *key_type; /* all key columns, also those that the schema has no more; NULL:
                                  none */
} row_deletes;

/* Clears the bits of batch's rows that are gone (first_row: the first one's number in its file) and
 * takes them off *kept, the bits that are set. The batch has the columns of key_type. scratch is
 * the caller's, for keys. */
tarn_code row_deletes_apply(const row_deletes *d, const tarn_batch *batch, int64_t first_row,
                            int64_t sequence_number, key_rows *scratch, uint8_t *selection,
                            int64_t *kept, tarn_error *err) TARN_MUST_USE;

#endif
