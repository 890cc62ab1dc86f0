/* dml/key_runs.h - keys with locations, put in order beyond memory: what a key index is made from.
 *
 * Keys wait in memory; where they outgrow it they are sorted and written as a run to a file without
 * a name, and runs are merged at the end (earlier ones in between, where they are many).
 *
 * Invariants: 1 of one key, locations come out in the order in which they came in; 2 memory stays
 * under the share that was given, but for a single key that is longer than that; 3 what comes out
 * is what went in, or the merge ends with CORRUPT: each run has a checksum. One thread at a time.
 */
#ifndef DML_KEY_RUNS_H
#define DML_KEY_RUNS_H

#include "base/buf.h"
#include "dml/key_overlay.h"
#include "store/store_temp.h"

typedef struct key_run {
    int64_t at, bytes; /* in the file */
    uint32_t crc;
    int32_t level; /* how often its keys were merged */
} key_run;

typedef struct key_runs {
    tarn_env *env;
    size_t memory_bytes;
    uint64_t n;       /* keys in all */
    tarn_buf records; /* keys that wait: location, length, key */
    size_t n_waiting;
    tarn_buf first; /* all keys begin with its bytes: no use in comparing them */
    store_temp *file;
    key_run *runs; /* earlier keys first */
    size_t n_runs, cap_runs;
} key_runs;

typedef tarn_code (*key_runs_fn)(void *ctx, tarn_str key, key_location location, tarn_error *err);

void key_runs_init(key_runs *r, tarn_env *env, size_t memory_bytes);
void key_runs_release(key_runs *r); /* also of a zeroed one */
tarn_code key_runs_add(key_runs *r, tarn_str key, key_location location,
                       tarn_error *err) TARN_MUST_USE;
/* Tells all, in the order of their bytes, once; a key lives until fn returns. Takes half of the
 * memory. */
tarn_code key_runs_merge(key_runs *r, key_runs_fn fn, void *ctx, tarn_error *err) TARN_MUST_USE;

#endif
