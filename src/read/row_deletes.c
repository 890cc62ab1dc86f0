/* read/row_deletes.c - row deletes against batches of a data file. */
#include "read/row_deletes.h"

tarn_code row_deletes_apply(const row_deletes *d, const tarn_batch *batch, int64_t first_row,
                            int64_t sequence_number, key_rows *scratch, uint8_t *selection,
                            int64_t *kept, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t left = *kept;
    if (d->positions != NULL) {
        left -= positions_clear(d->positions, first_row, batch_rows(batch), selection);
    }
    for (int32_t i = 0; i < d->n_keys && left > 0; i++) {
        const row_delete_keys *keys = &d->keys[i];
        TRY(key_encode(scratch, batch, keys->ids, keys->n_ids, err));
        left -= key_set_clear(keys->set, scratch, sequence_number, selection);
    }
    *kept = left;
done:
    return code;
}
