/* read/key_set.h - the keys that equality deletes name, each with the highest sequence number that
 * deletes it: one set for all delete files of the same key columns (B19).
 *
 * A key costs its bytes, 5 or 6 more, and 12 to 24 of the table that finds it: 10 million keys of
 * one long stay below 400 MB. What all sets of a budget take has a limit. Filled by one thread at a
 * time; read by any number when it is full. */
#ifndef READ_KEY_SET_H
#define READ_KEY_SET_H

#include "table/key_rows.h"

#include <stdatomic.h>

typedef struct key_budget { /* shared by the sets of one plan */
    atomic_size_t bytes;
    size_t max_bytes;
} key_budget;

typedef struct key_set key_set;

tarn_code key_set_new(tarn_env *env, key_budget *budget, key_set **out,
                      tarn_error *err) TARN_MUST_USE;
void key_set_free(key_set *s); /* takes NULL */
int64_t key_set_count(const key_set *s);
/* LIMIT: the budget is used up, or a key is longer than 256 KiB. */
tarn_code key_set_add(key_set *s, const key_rows *keys, int64_t sequence_number,
                      tarn_error *err) TARN_MUST_USE;
/* Clears the bits of rows whose key is deleted with a higher sequence number than this; returns how
 * many bits that were set. */
int64_t key_set_clear(const key_set *s, const key_rows *keys, int64_t sequence_number,
                      uint8_t *selection);

#endif
