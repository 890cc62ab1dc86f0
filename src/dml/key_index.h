/* dml/key_index.h - where the row of a key lies: key -> (data file, position), on RocksDB under a
 * hard memory budget. A cache of the table: it can be thrown away at any time and is rebuilt from
 * it.
 *
 * Invariants: 1 the index knows the table (uuid, key columns) and the snapshot that it stands for,
 * and says neither of another; 2 changes of one checkpoint come to stand for the snapshot that they
 * belong to together, or not at all; 3 after a close it stands for the last snapshot applied, after
 * a kill for that one or an earlier one, or is empty; 4 memory stays under the budget, whatever the
 * number of keys. One thread at a time.
 *
 * A checkpoint whose snapshot is still on its way is a step: what is said after it is seen on top
 * of it, and steps settle in their order. */
#ifndef DML_KEY_INDEX_H
#define DML_KEY_INDEX_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define KEY_INDEX_STEPS 16 /* that may wait for their snapshots */

typedef struct key_index key_index;

typedef struct key_index_options {
    const char *dir;        /* own folder, made when missing */
    tarn_str table_uuid;    /* len 0: a scratch index, emptied at open and removed at close */
    const int32_t *key_ids; /* field ids, in order */
    int32_t n_key_ids;
    tarn_str branch;
    size_t memory_bytes; /* 0: 128 MiB */
} key_index_options;

typedef struct key_location {
    int32_t file;     /* number of a data file in the index; -1: the key has no row */
    int64_t position; /* and KEY_OLDER */
} key_location;

/* In a position that was found: the table holds older rows of the key too. Keys are no constraint
 * of a table, and it may come with them. */
#define KEY_OLDER (INT64_C(1) << 62)

/* An index of another table, branch or key, a damaged one, and one left in the middle of a large
 * checkpoint are emptied (and logged). Damage that shows only later is CORRUPT from the call that
 * met it: key_index_clear and filling it again is the way on. IO: another process has it open. */
tarn_code key_index_open(tarn_env *env, const key_index_options *options, key_index **out,
                         tarn_error *err) TARN_MUST_USE;
void key_index_close(key_index *index);             /* takes NULL */
int64_t key_index_snapshot(const key_index *index); /* TARN_NO_SNAPSHOT: it stands for none */

/* Data files by number; a path gets one number for ever. */
tarn_code key_index_file_number(key_index *index, tarn_str path, int32_t *out,
                                tarn_error *err) TARN_MUST_USE;
/* path in arena; NOT_FOUND: no such number. */
tarn_code key_index_file_path(key_index *index, int32_t file, tarn_arena *arena, tarn_str *out,
                              tarn_error *err) TARN_MUST_USE;

/* Keys are bytes made by key_encode (table/key_rows.h). Looks up n keys at once; sees all that
 * key_index_put and key_index_remove said. */
tarn_code key_index_find(key_index *index, const tarn_str *keys, size_t n, key_location *out,
                         tarn_error *err) TARN_MUST_USE;
/* INVALID: a location in no numbered file. */
tarn_code key_index_put(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, tarn_error *err) TARN_MUST_USE;
tarn_code key_index_remove(key_index *index, const tarn_str *keys, size_t n,
                           tarn_error *err) TARN_MUST_USE;
/* Rows of a table, older ones first, for an index that is empty: far faster than add, and all rows
 * of a key are known (key_index_older). From the next step or apply on; until then nothing else is
 * said or asked. INVALID: the index knows keys, or a location in no numbered file. */
tarn_code key_index_load(key_index *index, const tarn_str *keys, const key_location *locations,
                         size_t n, tarn_error *err) TARN_MUST_USE;
/* As put, and says where each key lay until then (also by a key before it in the list). */
tarn_code key_index_add(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, key_location *before, tarn_error *err) TARN_MUST_USE;
/* The key's row is at `at`, and an older one, with those that it has, at `before`. CORRUPT: another
 * one was said to be older than that. */
tarn_code key_index_put_older(key_index *index, tarn_str key, key_location at, key_location before,
                              tarn_error *err) TARN_MUST_USE;
/* Rows of a key, newest first. Begins with the place that was found; ends, with file -1, also where
 * they go round: a data file that left the table may have come back. Some are told twice then. */
typedef struct key_chain {
    key_location at;
    key_location newest;
    key_location mark; /* seen before; moves on with every power of two */
    uint64_t n, limit;
} key_chain;
static inline key_chain key_chain_of(key_location newest) {
    return (key_chain){newest, newest, newest, 0, 1};
}
tarn_code key_index_older(key_index *index, key_chain *c, tarn_error *err) TARN_MUST_USE;
/* Everything since the last step or apply is a step now. LIMIT: KEY_INDEX_STEPS wait. CORRUPT: what
 * was loaded is not what is read again. */
tarn_code key_index_step(key_index *index, tarn_error *err) TARN_MUST_USE;
/* The oldest n steps stand for this snapshot, together with what stood for the one before. They are
 * written to the disk now and then (invariant 3). On failure look at key_index_snapshot. */
tarn_code key_index_settle(key_index *index, int32_t n, int64_t snapshot_id,
                           tarn_error *err) TARN_MUST_USE;
/* Both, for everything that was said. */
tarn_code key_index_apply(key_index *index, int64_t snapshot_id, tarn_error *err) TARN_MUST_USE;
/* Whether what waits takes so much of the memory that more of it should not be waited for. */
bool key_index_is_full(const key_index *index);
/* Forgets what was said since the last apply and all steps (file numbers stay). Where that was more
 * than memory holds, the index is empty afterwards: look at key_index_snapshot. */
tarn_code key_index_discard(key_index *index, tarn_error *err) TARN_MUST_USE;
/* Empty, as made; file numbers given before mean nothing any more. */
tarn_code key_index_clear(key_index *index, tarn_error *err) TARN_MUST_USE;

#endif
