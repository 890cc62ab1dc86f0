/* dml/key_index_int.h - what the files of the key index share. */
#ifndef DML_KEY_INDEX_INT_H
#define DML_KEY_INDEX_INT_H

#ifdef TARN_ROCKSDB
#include "base/buf.h"
#include "dml/key_index.h"
#include "dml/key_layers.h"
#include "dml/key_runs.h"
#include "dml/rocksdb_calls.h"

#include <stdatomic.h>

/* Rows that are read into an empty index (dml/key_index_load.c). */
typedef struct key_load {
    key_runs rows;  /* key -> location */
    key_runs links; /* place of a row -> place of the next older one of its key */
} key_load;

struct key_index {
    tarn_env *env;
    char *dir;
    char *pending_path; /* of a sorted file in the making */
    tarn_buf identity;
    bool scratch;
    size_t memory_bytes;
    rocksdb_t *db;
    rocksdb_column_family_handle_t *family;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_options;
    rocksdb_writeoptions_t *write_options;
    atomic_bool failed; /* something: nothing more is written, since RocksDB ends the process at
                    times where a file that failed is written to again */
    bool bare;          /* RocksDB knows no key: it is not asked for one */
    int64_t snapshot_id;
    int32_t next_file;
    int32_t dirty;     /* RocksDB holds changes of this many steps that did not settle */
    int32_t unwritten; /* snapshots that only memory knows */
    key_overlay files; /* path -> number, not yet in RocksDB */
    int32_t first_new; /* number of the first of them: the others follow */
    key_layers layers; /* key -> location */
    key_load *load;    /* NULL: nothing is being loaded */
    tarn_buf probe;    /* keys with their prefix */
    key_item *items;   /* keys that only RocksDB may know */
    size_t cap_items;
};

#define LOCATION_BYTES 20 /* at most */
size_t key_index_location_bytes(key_location location, uint8_t out[LOCATION_BYTES]);
#define LINK_BYTES 13
tarn_str key_index_link_key(key_location at, uint8_t out[LINK_BYTES]);
static inline bool key_index_same_place(key_location a, key_location b) {
    return a.file == b.file && ((a.position ^ b.position) & ~KEY_OLDER) == 0;
}

/* What RocksDB says of a failure, which is freed: `what` failed. Nothing more is written then. */
tarn_code key_index_fail(key_index *index, char **text, const char *what, tarn_error *err);
/* RocksDB holds changes from now on that did not settle. */
tarn_code key_index_mark_dirty(key_index *index, tarn_error *err) TARN_MUST_USE;
size_t key_index_share(const key_index *index); /* of the memory, for what waits */
/* One sorted file that is finished, at pending_path, becomes part of RocksDB. */
tarn_code key_index_take_in(key_index *index, tarn_error *err) TARN_MUST_USE;
/* What was loaded becomes known; nothing where nothing was. */
tarn_code key_index_load_end(key_index *index, tarn_error *err) TARN_MUST_USE;
void key_index_load_drop(key_index *index);

/* One value of RocksDB, copied; *found false: there is none. */
tarn_code key_index_value(key_index *index, tarn_str key, tarn_buf *out, bool *found,
                          tarn_error *err) TARN_MUST_USE;
tarn_code key_index_read_location(const key_index *index, tarn_str value, key_location *out,
                                  tarn_error *err) TARN_MUST_USE;
/* INVALID: a location in no numbered file. */
tarn_code key_index_check_locations(const key_index *index, const key_location *locations, size_t n,
                                    tarn_error *err) TARN_MUST_USE;
/* Whether memory holds one more key; held: bytes of all layers but now. */
bool key_index_has_room(const key_index *index, size_t held, size_t key_len);
/* Room for it in `now`: writes what waits where there is none. */
tarn_code key_index_reserve(key_index *index, size_t key_len, size_t *held,
                            tarn_error *err) TARN_MUST_USE;

#endif
#endif
