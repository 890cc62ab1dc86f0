/* dml/key_index_none.c - the key index of a build without RocksDB: every call says so by name. */
#include "dml/key_index.h"

#ifndef TARN_ROCKSDB
#include "iceberg/metadata.h"

static tarn_code say_missing(tarn_error *err) {
    return err_set(err, TARN_UNSUPPORTED,
                   "position and vector deletes by key need a key index, and this build has none "
                   "(TARN_ROCKSDB is off)");
}

tarn_code key_index_open(tarn_env *env, const key_index_options *options, key_index **out,
                         tarn_error *err) {
    (void)env;
    (void)options;
    (void)out;
    return say_missing(err);
}

void key_index_close(key_index *index) {
    (void)index;
}

int64_t key_index_snapshot(const key_index *index) {
    (void)index;
    return TARN_NO_SNAPSHOT;
}

tarn_code key_index_file_number(key_index *index, tarn_str path, int32_t *out, tarn_error *err) {
    (void)index;
    (void)path;
    (void)out;
    return say_missing(err);
}

tarn_code key_index_file_path(key_index *index, int32_t file, tarn_arena *arena, tarn_str *out,
                              tarn_error *err) {
    (void)index;
    (void)file;
    (void)arena;
    (void)out;
    return say_missing(err);
}

tarn_code key_index_find(key_index *index, const tarn_str *keys, size_t n, key_location *out,
                         tarn_error *err) {
    (void)index;
    (void)keys;
    (void)n;
    (void)out;
    return say_missing(err);
}

tarn_code key_index_put(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, tarn_error *err) {
    (void)index;
    (void)keys;
    (void)locations;
    (void)n;
    return say_missing(err);
}

tarn_code key_index_remove(key_index *index, const tarn_str *keys, size_t n, tarn_error *err) {
    (void)index;
    (void)keys;
    (void)n;
    return say_missing(err);
}

tarn_code key_index_load(key_index *index, const tarn_str *keys, const key_location *locations,
                         size_t n, tarn_error *err) {
    (void)index;
    (void)keys;
    (void)locations;
    (void)n;
    return say_missing(err);
}

tarn_code key_index_add(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, key_location *before, tarn_error *err) {
    (void)index;
    (void)keys;
    (void)locations;
    (void)n;
    (void)before;
    return say_missing(err);
}

tarn_code key_index_put_older(key_index *index, tarn_str key, key_location at, key_location before,
                              tarn_error *err) {
    (void)index;
    (void)key;
    (void)at;
    (void)before;
    return say_missing(err);
}

tarn_code key_index_older(key_index *index, key_chain *c, tarn_error *err) {
    (void)index;
    (void)c;
    return say_missing(err);
}

tarn_code key_index_apply(key_index *index, int64_t snapshot_id, tarn_error *err) {
    (void)index;
    (void)snapshot_id;
    return say_missing(err);
}

tarn_code key_index_step(key_index *index, tarn_error *err) {
    (void)index;
    return say_missing(err);
}

tarn_code key_index_settle(key_index *index, int32_t n, int64_t snapshot_id, tarn_error *err) {
    (void)index;
    (void)n;
    (void)snapshot_id;
    return say_missing(err);
}

bool key_index_is_full(const key_index *index) {
    (void)index;
    return false;
}

tarn_code key_index_discard(key_index *index, tarn_error *err) {
    (void)index;
    return say_missing(err);
}

tarn_code key_index_clear(key_index *index, tarn_error *err) {
    (void)index;
    return say_missing(err);
}
#endif
