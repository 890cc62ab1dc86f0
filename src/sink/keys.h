/* sink/keys.h - changes by key: which columns, which kind of deletes, and the key indexes of the
 * tasks, one each, that keep in step with the table.
 *
 * Invariants: 1 an index stands for a snapshot of the branch; where that is not its head, the files
 * that came since are read, and where it can't be told which ones those are, all of them (B35's
 * kin: expired, rolled back, another number of writers); 2 what a checkpoint changes in the indexes
 * settles with its snapshot, or is discarded; 3 of a key that the table holds more than once all
 * rows are known (key_index_older): looked for where files are read, as a stream makes none itself.
 */
#ifndef SINK_KEYS_H
#define SINK_KEYS_H

#include "base/num.h"
#include "dml/key_index.h"
#include "read/scan.h"
#include "table/key_rows.h"
#include "write/files/delete_writer.h"

typedef struct keys_options {
    bool wanted; /* rows come with kinds, or replace others */
    bool upsert;
    const tarn_str *names; /* NULL: the identifier fields */
    int32_t n_names;
    tarn_str deletes;   /* "equality", "position", "vector"; len 0: as the table says */
    tarn_str state_dir; /* len 0: none */
    tarn_str branch;
    size_t memory_bytes; /* for the indexes together */
    int32_t n_tasks;
    bool shared; /* others change rows of the same input */
} keys_options;

typedef struct sink_keys {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena;
    tarn_arena now; /* of one checkpoint: type, specs */
    keys_options options;
    delete_kind kind; /* DELETE_NONE: appends only */
    const int32_t *ids;
    int32_t n_ids;
    const tarn_type *type;   /* equality: a struct of the key's columns */
    const tarn_spec **specs; /* equality: those that deletes are written for */
    int32_t n_specs;
    key_index **indexes;  /* position, vector: one a task; NULL: not open */
    const char **scratch; /* equality: folders; NULL: none */
} sink_keys;

/* Resolves names and kinds against a table; INVALID says what is missing. */
tarn_code keys_init(sink_keys *k, tarn_env *env, tarn_store *store, const keys_options *options,
                    const tarn_metadata *m, tarn_error *err) TARN_MUST_USE;
void keys_release(sink_keys *k); /* also of a zeroed one */
/* Opens the indexes, if there are any: nobody else has them then. IO: somebody does. */
tarn_code keys_open(sink_keys *k, const tarn_metadata *m, tarn_error *err) TARN_MUST_USE;
/* Before a checkpoint's first row: the table may have changed. m outlives what is written. follow:
 * the indexes are to stand for head; else they do, or for it and checkpoints on their way. */
tarn_code keys_begin(sink_keys *k, const tarn_metadata *m, int64_t head, bool follow,
                     tarn_error *err) TARN_MUST_USE;
/* No key column is null (INVALID names column and row). */
tarn_code keys_check(const sink_keys *k, const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;
/* The checkpoint is closed; its changes wait for their snapshot. */
tarn_code keys_step(sink_keys *k, tarn_error *err) TARN_MUST_USE;
/* The changes of the oldest n that wait belong to this snapshot and those between it and the one
 * that the indexes stood for. */
tarn_code keys_settle(sink_keys *k, int32_t n, int64_t snapshot_id, tarn_error *err) TARN_MUST_USE;
bool keys_are_full(const sink_keys *k); /* too much waits */
/* What did not settle belongs to none: what the indexes lack is read from the table before they are
 * next used. */
void keys_discard(sink_keys *k);
/* The task that a key's rows go to; the same in every process, since indexes outlive them. */
static inline int32_t keys_task(tarn_str key, int32_t n_tasks) {
    return n_tasks > 1 ? (int32_t)(num_murmur3(key.data, key.len) % (uint32_t)n_tasks) : 0;
}

#endif
