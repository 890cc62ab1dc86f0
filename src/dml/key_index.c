/* dml/key_index.c - key -> (data file, position) on RocksDB.
 *
 *   put, remove -> layers (memory) -> settled, now and then -> one batch (few changes) or one
 * sorted file (many), which holds the changes and the snapshot id both find        -> layers ->
 * RocksDB, keys in order, side by side on the pool
 *
 * Rows that change soon change again soon, so what settled stays in memory for a while: most keys
 * are found there, and RocksDB hears of the last word only. One write to RocksDB is all or nothing,
 * and so a kill leaves an earlier snapshot. Where changes that wait outgrow their share of memory,
 * they are written early as a sorted file that also says "dirty"; an index that is found dirty is
 * emptied. What is in RocksDB:
 *
 *   00 00              state: dirty or not, snapshot id, the next file number
 *   00 'f' number path data files by number
 *   00 'i'             identity: whose index this is
 *   00 'p' path        the number of a data file
 *   01 key             location: file and position as varints
 *   02 file position   of a row whose key has older rows: location of the next older one
 *                      (dml/key_index_older.c)
 *
 * Memory: three sixteenths of the budget are for changes that wait, three eighths for blocks,
 * indexes and filters (all in the block cache), the rest for write buffers, for what compaction and
 * sorted files build, and for what the allocator cannot give back. */
#include "dml/key_index.h"

#ifdef TARN_ROCKSDB
#include "base/num.h"
#include "base/pool.h"
#include "dml/key_index_int.h"
#include "iceberg/metadata.h"

#define DEFAULT_MEMORY  ((size_t)128 << 20)
#define LEAST_MEMORY    ((size_t)8 << 20)
#define MOST_CHANGES    ((size_t)2 << 30)
#define BATCH_CHANGES   20000 /* up to here one write batch is faster than a file */
#define FIND_AT_ONCE    128   /* keys of one call of RocksDB */
#define FIND_CHUNK      1024  /* keys of one piece of work of the pool */
#define MOST_UNWRITTEN  64    /* snapshots that only memory knows, so that a kill costs little */
#define MOST_LEVEL0     24    /* sorted files that wait for compaction, before writes wait for it */
#define FILTER_BITS     10.0
#define OPEN_FILES      1000
#define IDENTITY_FORMAT 2

#define KEY_STATE    STR("\0\0")
#define KEY_IDENTITY STR("\0i")
#define FILE_PREFIX  'f'

tarn_code key_index_fail(key_index *index, char **text, const char *what, tarn_error *err) {
    tarn_str t = str_of(*text);
    bool damaged = str_starts_with(t, STR("Corruption"));
    tarn_code code = damaged ? TARN_CORRUPT : TARN_IO;
    (void)err_set(err, code, "key index %s: %s failed: %.*s", index->dir, what, STR_ARG(t));
    index->failed = true;
    rocksdb()->free(*text);
    *text = NULL;
    return code;
}

/* ---- opening ---- */

static void set_table_options(key_index *index) {
    rocksdb_block_based_table_options_t *table = rocksdb()->block_based_options_create();
    rocksdb()->block_based_options_set_block_cache(table, index->cache);
    rocksdb()->block_based_options_set_block_size(table, 4096);
    rocksdb()->block_based_options_set_filter_policy(
        table, rocksdb()->filterpolicy_create_bloom_full(FILTER_BITS));
    rocksdb()->block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb()->block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb()->block_based_options_set_format_version(table, 5);
    rocksdb()->block_based_options_set_data_block_index_type(
        table, rocksdb_block_based_table_data_block_index_type_binary_search_and_hash);
    rocksdb()->options_set_block_based_table_factory(index->options, table);
    rocksdb()->block_based_options_destroy(table);
}

static size_t at_least(size_t a, size_t b) {
    return a > b ? a : b;
}

static void make_options(key_index *index) {
    size_t memory = index->memory_bytes;
    index->options = rocksdb()->options_create();
    index->cache = rocksdb()->cache_create_lru(memory / 8 * 3);
    index->read_options = rocksdb()->readoptions_create();
    index->write_options = rocksdb()->writeoptions_create();
    rocksdb_options_t *o = index->options;
    set_table_options(index);
    rocksdb()->options_set_create_if_missing(o, 1);
    rocksdb()->options_set_write_buffer_size(o, at_least(memory / 32, (size_t)1 << 20));
    rocksdb()->options_set_max_write_buffer_number(o, 2);
    rocksdb()->options_set_max_open_files(o, OPEN_FILES);
    rocksdb()->options_set_max_background_jobs(o, 2);
    rocksdb()->options_set_compression(o, rocksdb_no_compression);
    rocksdb()->options_set_target_file_size_base(o, at_least(memory / 32, (size_t)2 << 20));
    rocksdb()->options_set_max_bytes_for_level_base(o, at_least(memory / 2, (size_t)16 << 20));
    rocksdb()->options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb()->options_set_level0_file_num_compaction_trigger(o, 4);
    rocksdb()->options_set_max_total_wal_size(o, at_least(memory / 8, (size_t)4 << 20));
    rocksdb()->options_set_bytes_per_sync(o, (size_t)1 << 20);
    /* Above all levels, and not rolled: its own log stays empty, since on a full disk it ends the
     * process where it is written to again. What matters is in its errors. */
    rocksdb()->options_set_info_log_level(o, 6);
    rocksdb()->options_set_keep_log_file_num(o, 2);
    rocksdb()->options_set_stats_dump_period_sec(o, 0);
    rocksdb()->options_set_stats_persist_period_sec(o, 0);
    rocksdb()->readoptions_set_verify_checksums(index->read_options, 1);
    rocksdb()->writeoptions_set_sync(index->write_options, 1);
}

static void close_db(key_index *index) {
    if (index->family != NULL) {
        rocksdb()->column_family_handle_destroy(index->family);
    }
    if (index->db != NULL) {
        rocksdb()->close(index->db);
    }
    index->family = NULL;
    index->db = NULL;
}

static tarn_code open_db(key_index *index, tarn_error *err) {
    const char *name = "default";
    const rocksdb_options_t *options = index->options;
    char *text = NULL;
    index->db = rocksdb()->open_column_families(index->options, index->dir, 1, &name, &options,
                                                &index->family, &text);
    if (text != NULL && strstr(text, "/LOCK") != NULL) {
        rocksdb()->free(text);
        return err_set(err, TARN_IO, "key index %s is in use: another job has this state folder",
                       index->dir);
    }
    if (text != NULL) {
        tarn_str t = str_of(text);
        bool damaged = !str_starts_with(t, STR("IO error")) ||
                       str_starts_with(t, STR("IO error: No such file"));
        (void)key_index_fail(index, &text, "opening", err);
        return damaged ? TARN_CORRUPT : TARN_IO;
    }
    return TARN_OK;
}

static tarn_code destroy_db(key_index *index, tarn_error *err) {
    char *text = NULL;
    close_db(index);
    rocksdb()->destroy_db(index->options, index->dir, &text);
    return text != NULL ? key_index_fail(index, &text, "emptying", err) : TARN_OK;
}

/* One value, copied; *found false: there is none. */
tarn_code key_index_value(key_index *index, tarn_str key, tarn_buf *out, bool *found,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    char *text = NULL;
    rocksdb_pinnableslice_t *value = rocksdb()->get_pinned_cf(
        index->db, index->read_options, index->family, key.data, key.len, &text);
    if (text != NULL) {
        return key_index_fail(index, &text, "reading", err);
    }
    *found = value != NULL;
    if (value != NULL) {
        size_t len;
        const char *data = rocksdb()->pinnableslice_value(value, &len);
        buf_reset(out);
        code = buf_append(out, data, len, err);
        rocksdb()->pinnableslice_destroy(value);
    }
    return code;
}

#define STATE_BYTES 13
static void write_state(const key_index *index, bool dirty, int64_t snapshot_id,
                        uint8_t out[STATE_BYTES]) {
    out[0] = dirty ? 1 : 0;
    memcpy(out + 1, &snapshot_id, 8);
    memcpy(out + 9, &index->next_file, 4);
}

static tarn_code put_identity(key_index *index, tarn_error *err) {
    uint8_t state[STATE_BYTES];
    char *text = NULL;
    rocksdb_writebatch_t *batch = rocksdb()->writebatch_create();
    write_state(index, false, TARN_NO_SNAPSHOT, state);
    rocksdb()->writebatch_put(batch, KEY_STATE.data, KEY_STATE.len, (const char *)state,
                              STATE_BYTES);
    rocksdb()->writebatch_put(batch, KEY_IDENTITY.data, KEY_IDENTITY.len,
                              (const char *)index->identity.data, index->identity.len);
    rocksdb()->write(index->db, index->write_options, batch, &text);
    rocksdb()->writebatch_destroy(batch);
    if (text == NULL) {
        /* Out of the log, which RocksDB would play back into a folder that lost its files. */
        rocksdb_flushoptions_t *flush = rocksdb()->flushoptions_create();
        rocksdb()->flush(index->db, flush, &text);
        rocksdb()->flushoptions_destroy(flush);
    }
    return text != NULL ? key_index_fail(index, &text, "writing", err) : TARN_OK;
}

static tarn_code start_empty(key_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    index->snapshot_id = TARN_NO_SNAPSHOT;
    index->failed = false;
    index->bare = true;
    index->dirty = 0;
    index->unwritten = 0;
    layers_release(&index->layers);
    key_index_load_drop(index);
    overlay_reset(&index->files);
    index->first_new = index->next_file;
    TRY(destroy_db(index, err));
    TRY(open_db(index, err));
    TRY(put_identity(index, err));
done:
    return code;
}

/* What the folder says of itself. *why: the reason to empty it, NULL for none; "" for a new one. */
static tarn_code read_state(key_index *index, const char **why, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool found;
    tarn_buf value;
    buf_init(&value, index->env, 0);
    TRY(key_index_value(index, KEY_IDENTITY, &value, &found, err));
    *why = "";
    if (!found) {
        goto done;
    }
    *why = "it is of another table, branch or key";
    if (!str_eq(buf_str(&value), buf_str(&index->identity))) {
        goto done;
    }
    TRY(key_index_value(index, KEY_STATE, &value, &found, err));
    *why = "its state is damaged";
    if (!found || value.len != STATE_BYTES || value.data[0] > 1) {
        goto done;
    }
    *why = "it was left in the middle of a large checkpoint";
    if (value.data[0] == 0) {
        *why = NULL;
        index->snapshot_id = num_load_i64(value.data + 1);
        index->next_file = num_load_i32(value.data + 9);
        index->first_new = index->next_file;
    }
done:
    buf_release(&value);
    return code;
}

static tarn_code open_or_empty(key_index *index, tarn_error *err) {
    tarn_error local = TARN_ERROR_INIT;
    const char *why = NULL;
    tarn_code code = TARN_OK;
    if (index->scratch) {
        return start_empty(index, err);
    }
    code = open_db(index, &local);
    if (code == TARN_OK) {
        code = read_state(index, &why, &local);
    }
    if (code == TARN_CORRUPT) {
        why = local.message;
        code = TARN_OK;
    }
    if (code != TARN_OK) {
        return err_set(err, code, "%s", local.message);
    }
    if (why == NULL) {
        return TARN_OK;
    }
    if (why[0] != '\0') {
        env_log(index->env, TARN_LOG_WARN, "dml", "key_index_emptied", "key index %s: %s",
                index->dir, why);
    }
    return start_empty(index, err);
}

static tarn_code set_identity(key_index *index, const key_index_options *options, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t sizes[3] = {IDENTITY_FORMAT, (uint32_t)options->table_uuid.len,
                         (uint32_t)options->branch.len};
    TRY(buf_append(&index->identity, sizes, sizeof sizes, err));
    TRY(buf_append_str(&index->identity, options->table_uuid, err));
    TRY(buf_append_str(&index->identity, options->branch, err));
    if (options->n_key_ids > 0) {
        TRY(buf_append(&index->identity, options->key_ids,
                       (size_t)options->n_key_ids * sizeof *options->key_ids, err));
    }
done:
    return code;
}

static tarn_code set_paths(key_index *index, const char *dir, tarn_error *err) {
    static const char name[] = "/pending.sst";
    size_t len = strlen(dir);
    if (len == 0) {
        return err_set(err, TARN_INVALID, "a key index needs a folder");
    }
    index->dir = env_alloc(index->env, len + 1);
    index->pending_path = env_alloc(index->env, len + sizeof name);
    if (index->dir == NULL || index->pending_path == NULL) {
        return err_nomem(err);
    }
    memcpy(index->dir, dir, len + 1);
    memcpy(index->pending_path, dir, len);
    memcpy(index->pending_path + len, name, sizeof name);
    return TARN_OK;
}

static void free_index(key_index *index) {
    key_index_load_drop(index);
    close_db(index);
    if (index->options != NULL) {
        rocksdb()->options_destroy(index->options);
        rocksdb()->cache_destroy(index->cache);
        rocksdb()->readoptions_destroy(index->read_options);
        rocksdb()->writeoptions_destroy(index->write_options);
    }
    overlay_release(&index->files);
    layers_release(&index->layers);
    buf_release(&index->probe);
    buf_release(&index->identity);
    env_free(index->env, index->items);
    env_free(index->env, index->dir);
    env_free(index->env, index->pending_path);
    env_free(index->env, index);
}

tarn_code key_index_open(tarn_env *env, const key_index_options *options, key_index **out,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    key_index *index = env_calloc(env, 1, sizeof *index);
    if (index == NULL) {
        return err_nomem(err);
    }
    index->env = env;
    index->scratch = options->table_uuid.len == 0;
    index->snapshot_id = TARN_NO_SNAPSHOT;
    index->memory_bytes =
        options->memory_bytes == 0 ? DEFAULT_MEMORY : at_least(options->memory_bytes, LEAST_MEMORY);
    buf_init(&index->identity, env, 0);
    buf_init(&index->probe, env, 0);
    overlay_init(&index->files, env);
    layers_init(&index->layers, env);
    TRY(set_identity(index, options, err));
    TRY(set_paths(index, options->dir, err));
    TRY(rocksdb_load(err));
    make_options(index);
    TRY(open_or_empty(index, err));
    *out = index;
done:
    if (code != TARN_OK) {
        free_index(index);
    }
    return code;
}

int64_t key_index_snapshot(const key_index *index) {
    return index->snapshot_id;
}

tarn_code key_index_clear(key_index *index, tarn_error *err) {
    return start_empty(index, err);
}

/* ---- writing ---- */

size_t key_index_location_bytes(key_location location, uint8_t out[LOCATION_BYTES]) {
    size_t n = num_put_uvarint(out, (uint64_t)location.file);
    return n + num_put_uvarint(out + n, (uint64_t)location.position);
}

/* The key of number -> path for an entry of path -> number. */
static tarn_code file_key(tarn_buf *out, int32_t number, tarn_str path, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t n = __builtin_bswap32((uint32_t)number);
    buf_reset(out);
    TRY(buf_append(out, "\0f", 2, err));
    TRY(buf_append(out, &n, 4, err));
    TRY(buf_append_str(out, path, err));
done:
    return code;
}

static tarn_str path_of(const key_overlay *files, size_t i) {
    return str_from(overlay_key(files, &files->entries[i]), 2);
}

static void batch_overlay(rocksdb_writebatch_t *batch, const key_overlay *o) {
    uint8_t value[LOCATION_BYTES];
    for (size_t i = 0; i < o->n; i++) {
        const overlay_entry *e = &o->entries[i];
        tarn_str key = overlay_key(o, e);
        if (e->file < 0) {
            rocksdb()->writebatch_delete(batch, key.data, key.len);
        } else {
            size_t len = key_index_location_bytes((key_location){e->file, e->position}, value);
            rocksdb()->writebatch_put(batch, key.data, key.len, (const char *)value, len);
        }
    }
}

/* Few changes: one batch in the log, synced. */
static tarn_code write_batch(key_index *index, const key_overlay *rows, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t state[STATE_BYTES];
    char *text = NULL;
    tarn_buf key;
    rocksdb_writebatch_t *batch = rocksdb()->writebatch_create();
    buf_init(&key, index->env, 0);
    write_state(index, false, index->snapshot_id, state);
    rocksdb()->writebatch_put(batch, KEY_STATE.data, KEY_STATE.len, (const char *)state,
                              STATE_BYTES);
    for (size_t i = 0; i < index->files.n; i++) {
        TRY(file_key(&key, index->first_new + (int32_t)i, path_of(&index->files, i), err));
        rocksdb()->writebatch_put(batch, (const char *)key.data, key.len, "", 0);
    }
    batch_overlay(batch, &index->files);
    batch_overlay(batch, rows);
    index->bare = index->bare && rows->n == 0;
    rocksdb()->write(index->db, index->write_options, batch, &text);
    if (text != NULL) {
        code = key_index_fail(index, &text, "writing", err);
    }
done:
    rocksdb()->writebatch_destroy(batch);
    buf_release(&key);
    return code;
}

static void add_sorted(rocksdb_sstfilewriter_t *writer, const key_overlay *o, const key_item *items,
                       char **text) {
    uint8_t value[LOCATION_BYTES];
    for (size_t i = 0; i < o->n && *text == NULL; i++) {
        const overlay_entry *e = &o->entries[items[i].index];
        const char *key = (const char *)items[i].key;
        if (e->file < 0) {
            rocksdb()->sstfilewriter_delete(writer, key, items[i].len, text);
        } else {
            size_t len = key_index_location_bytes((key_location){e->file, e->position}, value);
            rocksdb()->sstfilewriter_put(writer, key, items[i].len, (const char *)value, len, text);
        }
    }
}

/* All of a sorted file, in order: state, files by number, files by path, keys. */
static tarn_code fill_sorted(key_index *index, const key_overlay *changes,
                             rocksdb_sstfilewriter_t *writer, const uint8_t *state,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    char *text = NULL;
    key_item *files = NULL;
    key_item *rows = NULL;
    tarn_buf key;
    buf_init(&key, index->env, 0);
    TRY(overlay_sorted(&index->files, &files, err));
    TRY(overlay_sorted(changes, &rows, err));
    rocksdb()->sstfilewriter_open(writer, index->pending_path, &text);
    if (text == NULL) {
        rocksdb()->sstfilewriter_put(writer, KEY_STATE.data, KEY_STATE.len, (const char *)state,
                                     STATE_BYTES, &text);
    }
    for (size_t i = 0; i < index->files.n && text == NULL; i++) {
        TRY(file_key(&key, index->first_new + (int32_t)i, path_of(&index->files, i), err));
        rocksdb()->sstfilewriter_put(writer, (const char *)key.data, key.len, "", 0, &text);
    }
    add_sorted(writer, &index->files, files, &text);
    add_sorted(writer, changes, rows, &text);
    if (text == NULL) {
        rocksdb()->sstfilewriter_finish(writer, &text);
    }
    if (text != NULL) {
        code = key_index_fail(index, &text, "writing", err);
    }
done:
    env_free(index->env, files);
    env_free(index->env, rows);
    buf_release(&key);
    return code;
}

static uint64_t int_property(const key_index *index, const char *name) {
    uint64_t value = 0;
    return rocksdb()->property_int(index->db, name, &value) == 0 ? value : 0;
}

/* Taking in files has no brake of its own: without one, reads would look into ever more files. */
static tarn_code wait_for_compaction(key_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    char *level0 = rocksdb()->property_value(index->db, "rocksdb.num-files-at-level0");
    int64_t files = 0;
    while (level0 != NULL && str_to_i64(str_of(level0), &files) && files > MOST_LEVEL0) {
        rocksdb()->free(level0);
        level0 = NULL;
        TRY(env_check_cancel(index->env, err));
        if (int_property(index, "rocksdb.background-errors") > 0) {
            code = err_set(err, TARN_IO, "key index %s: compaction failed", index->dir);
            goto done;
        }
        env_sleep_ms(index->env, 2);
        level0 = rocksdb()->property_value(index->db, "rocksdb.num-files-at-level0");
    }
done:
    rocksdb()->free(level0);
    return code;
}

tarn_code key_index_take_in(key_index *index, tarn_error *err) {
    char *text = NULL;
    const char *path = index->pending_path;
    rocksdb_ingestexternalfileoptions_t *ingest = rocksdb()->ingestexternalfileoptions_create();
    rocksdb()->ingestexternalfileoptions_set_move_files(ingest, 1);
    rocksdb()->ingest_external_file_cf(index->db, index->family, &path, 1, ingest, &text);
    rocksdb()->ingestexternalfileoptions_destroy(ingest);
    return text != NULL ? key_index_fail(index, &text, "taking in changes", err)
                        : wait_for_compaction(index, err);
}

/* Many changes: one sorted file, taken in whole. */
static tarn_code write_sorted(key_index *index, const key_overlay *changes, bool dirty,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t state[STATE_BYTES];
    rocksdb_envoptions_t *env_options = rocksdb()->envoptions_create();
    rocksdb_sstfilewriter_t *writer = rocksdb()->sstfilewriter_create(env_options, index->options);
    write_state(index, dirty, dirty ? TARN_NO_SNAPSHOT : index->snapshot_id, state);
    TRY(fill_sorted(index, changes, writer, state, err));
    index->bare = index->bare && changes->n == 0;
    TRY(key_index_take_in(index, err));
done:
    rocksdb()->sstfilewriter_destroy(writer);
    rocksdb()->envoptions_destroy(env_options);
    return code;
}

static void forget_written(key_index *index, key_overlay *changes) {
    overlay_release(changes);
    overlay_reset(&index->files);
    index->first_new = index->next_file;
}

/* Early, since memory holds no more: what waits, in its order. */
static tarn_code spill_one(key_index *index, key_overlay *changes, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (changes->n > 0) {
        TRY(write_sorted(index, changes, true, err));
        forget_written(index, changes);
    }
done:
    return code;
}

static tarn_code write_settled(key_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_overlay *settled = &index->layers.settled;
    if (settled->n + index->files.n <= BATCH_CHANGES) {
        TRY(write_batch(index, settled, err));
    } else {
        TRY(write_sorted(index, settled, false, err));
    }
    index->unwritten = 0;
    forget_written(index, settled);
done:
    return code;
}

size_t key_index_share(const key_index *index) {
    size_t share = index->memory_bytes / 16 * 3;
    return share < MOST_CHANGES ? share : MOST_CHANGES;
}

tarn_code key_index_mark_dirty(key_index *index, tarn_error *err) {
    uint8_t state[STATE_BYTES];
    char *text = NULL;
    rocksdb_writebatch_t *batch = rocksdb()->writebatch_create();
    index->dirty = index->layers.n_steps + 1;
    write_state(index, true, TARN_NO_SNAPSHOT, state);
    rocksdb()->writebatch_put(batch, KEY_STATE.data, KEY_STATE.len, (const char *)state,
                              STATE_BYTES);
    rocksdb()->write(index->db, index->write_options, batch, &text);
    rocksdb()->writebatch_destroy(batch);
    return text != NULL ? key_index_fail(index, &text, "writing", err) : TARN_OK;
}

/* What settled goes first: it leaves the index whole. */
static tarn_code make_room(key_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_layers *l = &index->layers;
    if (l->settled.n > 0 && index->dirty == 0) {
        return write_settled(index, err);
    }
    index->dirty = l->n_steps + 1; /* also where it fails in the middle: nothing is known of the
                                      folder */
    TRY(spill_one(index, &l->settled, err));
    for (int32_t i = 0; i < l->n_steps; i++) {
        TRY(spill_one(index, &l->steps[i], err));
    }
    TRY(spill_one(index, &l->now, err));
done:
    return code;
}

tarn_code key_index_step(key_index *index, tarn_error *err) {
    tarn_code code = key_index_load_end(index, err);
    return code == TARN_OK ? layers_step(&index->layers, err) : code;
}

tarn_code key_index_settle(key_index *index, int32_t n, int64_t snapshot_id, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_layers *l = &index->layers;
    if (n < 0 || n > l->n_steps) {
        return err_set(err, TARN_INVALID, "key index %s: %d steps settled, of %d", index->dir, n,
                       l->n_steps);
    }
    code = layers_settle(l, n, err);
    if (code != TARN_OK) { /* on the disk there is an earlier snapshot, for whoever opens it next */
        index->snapshot_id = TARN_NO_SNAPSHOT;
        index->unwritten = 0;
        layers_release(l);
        return code;
    }
    bool was_dirty = index->dirty > 0;
    index->snapshot_id = snapshot_id;
    index->dirty -= n < index->dirty ? n : index->dirty;
    index->unwritten++;
    if (index->dirty == 0 && (was_dirty || index->unwritten >= MOST_UNWRITTEN ||
                              overlay_bytes_with(&l->settled, 0) > key_index_share(index) / 2)) {
        code = write_settled(index, err);
    }
    return code;
}

tarn_code key_index_apply(key_index *index, int64_t snapshot_id, tarn_error *err) {
    tarn_code code = key_index_step(index, err);
    return code == TARN_OK ? key_index_settle(index, index->layers.n_steps, snapshot_id, err)
                           : code;
}

bool key_index_is_full(const key_index *index) {
    return index->layers.n_steps == KEY_INDEX_STEPS ||
           layers_step_bytes(&index->layers) > key_index_share(index) / 2;
}

tarn_code key_index_discard(key_index *index, tarn_error *err) {
    if (index->dirty > 0) {
        env_log(index->env, TARN_LOG_WARN, "dml", "key_index_emptied",
                "key index %s: a large checkpoint was discarded", index->dir);
        return start_empty(index, err);
    }
    layers_drop(&index->layers);
    key_index_load_drop(index);
    return TARN_OK;
}

void key_index_close(key_index *index) {
    tarn_error err = TARN_ERROR_INIT;
    if (index == NULL) {
        return;
    }
    if (index->scratch && destroy_db(index, &err) != TARN_OK) {
        env_log(index->env, TARN_LOG_WARN, "dml", "key_index_left", "%s", err.message);
    }
    if (index->unwritten > 0 && index->dirty == 0 && !index->failed &&
        write_settled(index, &err) != TARN_OK) {
        env_log(index->env, TARN_LOG_WARN, "dml", "key_index_behind", "%s", err.message);
    }
    free_index(index);
}

/* The keys with the prefix that they have in RocksDB, one after the other in probe. */
static tarn_code set_probe(key_index *index, const tarn_str *keys, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t total = n;
    for (size_t i = 0; i < n; i++) {
        if (keys[i].len >= UINT32_MAX || !num_add_size(total, keys[i].len, &total)) {
            return err_set(err, TARN_LIMIT, "a key had %zu bytes", keys[i].len);
        }
    }
    buf_reset(&index->probe);
    TRY(buf_reserve(&index->probe, total, err));
    uint8_t *at = index->probe.data;
    for (size_t i = 0; i < n; i++) {
        *at++ = 1;
        if (keys[i].len > 0) {
            memcpy(at, keys[i].data, keys[i].len);
        }
        at += keys[i].len;
    }
    index->probe.len = total;
done:
    return code;
}

bool key_index_has_room(const key_index *index, size_t held, size_t key_len) {
    const key_overlay *now = &index->layers.now;
    return held + now->n == 0 || held + overlay_bytes_with(now, key_len) <= key_index_share(index);
}

tarn_code key_index_reserve(key_index *index, size_t key_len, size_t *held, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (!key_index_has_room(index, *held, key_len)) {
        TRY(make_room(index, err));
        *held = layers_held_bytes(&index->layers);
    }
done:
    return code;
}

static tarn_code set_keys(key_index *index, const tarn_str *keys, const key_location *locations,
                          size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t held = layers_held_bytes(&index->layers);
    size_t at = 0;
    TRY(set_probe(index, keys, n, err));
    for (size_t i = 0; i < n; i++) {
        tarn_str key = str_make(index->probe.data + at, keys[i].len + 1);
        at += key.len;
        TRY(key_index_reserve(index, key.len, &held, err));
        TRY(overlay_set(&index->layers.now, key,
                        locations != NULL ? locations[i] : (key_location){-1, 0}, err));
    }
done:
    return code;
}

tarn_code key_index_check_locations(const key_index *index, const key_location *locations, size_t n,
                                    tarn_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (locations[i].file < 0 || locations[i].file >= index->next_file ||
            locations[i].position < 0) {
            return err_set(err, TARN_INVALID,
                           "a key was put at position %lld of file %d, of %d files",
                           (long long)locations[i].position, locations[i].file, index->next_file);
        }
    }
    return TARN_OK;
}

tarn_code key_index_put(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, tarn_error *err) {
    tarn_code code = key_index_check_locations(index, locations, n, err);
    return code == TARN_OK ? set_keys(index, keys, locations, n, err) : code;
}

tarn_code key_index_remove(key_index *index, const tarn_str *keys, size_t n, tarn_error *err) {
    return set_keys(index, keys, NULL, n, err);
}

/* ---- reading ---- */

typedef struct find_work {
    key_index *index;
    const key_item *items;
    size_t n;
    key_location *out;
} find_work;

tarn_code key_index_read_location(const key_index *index, tarn_str value, key_location *out,
                                  tarn_error *err) {
    const uint8_t *p = (const uint8_t *)value.data;
    const uint8_t *end = p + value.len;
    uint64_t file;
    uint64_t position;
    if (!num_get_uvarint(&p, end, &file) || !num_get_uvarint(&p, end, &position) || p != end ||
        file >= (uint64_t)index->next_file || position > INT64_MAX) {
        return err_set(err, TARN_CORRUPT, "key index %s: a location of %zu bytes says nothing",
                       index->dir, value.len);
    }
    out->file = (int32_t)file;
    out->position = (int64_t)position;
    return TARN_OK;
}

static tarn_code find_some(const find_work *w, const key_item *items, size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *keys[FIND_AT_ONCE] = {NULL};
    size_t sizes[FIND_AT_ONCE] = {0};
    rocksdb_pinnableslice_t *values[FIND_AT_ONCE];
    char *texts[FIND_AT_ONCE];
    for (size_t i = 0; i < n; i++) {
        keys[i] = (const char *)items[i].key;
        sizes[i] = items[i].len;
    }
    rocksdb()->batched_multi_get_cf(w->index->db, w->index->read_options, w->index->family, n, keys,
                                    sizes, values, texts, true);
    for (size_t i = 0; i < n; i++) {
        key_location *out = &w->out[items[i].index];
        if (texts[i] != NULL) {
            if (code == TARN_OK) {
                code = key_index_fail(w->index, &texts[i], "reading", err);
            } else {
                rocksdb()->free(texts[i]);
            }
        } else if (values[i] == NULL) {
            *out = (key_location){-1, 0};
        } else {
            size_t len;
            const char *value = rocksdb()->pinnableslice_value(values[i], &len);
            if (code == TARN_OK) {
                code = key_index_read_location(w->index, str_make(value, len), out, err);
            }
            rocksdb()->pinnableslice_destroy(values[i]);
        }
    }
    return code;
}

static tarn_code find_chunk(void *ctx, size_t chunk, tarn_error *err) {
    tarn_code code = TARN_OK;
    const find_work *w = ctx;
    size_t end = (chunk + 1) * FIND_CHUNK < w->n ? (chunk + 1) * FIND_CHUNK : w->n;
    for (size_t at = chunk * FIND_CHUNK; at < end; at += FIND_AT_ONCE) {
        TRY(find_some(w, w->items + at, end - at < FIND_AT_ONCE ? end - at : FIND_AT_ONCE, err));
    }
done:
    return code;
}

static tarn_code reserve_items(key_index *index, size_t n, tarn_error *err) {
    if (n <= index->cap_items) {
        return TARN_OK;
    }
    key_item *items = env_realloc(index->env, index->items, n * sizeof *items);
    if (items == NULL) {
        return err_nomem(err);
    }
    index->items = items;
    index->cap_items = n;
    return TARN_OK;
}

tarn_code key_index_find(key_index *index, const tarn_str *keys, size_t n, key_location *out,
                         tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t at = 0;
    size_t left = 0;
    if (n > UINT32_MAX) {
        return err_set(err, TARN_LIMIT, "%zu keys were looked up at once", n);
    }
    TRY(set_probe(index, keys, n, err));
    TRY(reserve_items(index, n, err));
    for (size_t i = 0; i < n; i++) {
        tarn_str key = str_make(index->probe.data + at, keys[i].len + 1);
        const overlay_entry *e = layers_find(&index->layers, key);
        at += key.len;
        if (e != NULL) {
            out[i] = (key_location){e->file, e->position};
        } else if (index->bare) {
            out[i] = (key_location){-1, 0};
        } else {
            key_item_set(&index->items[left++], key, (uint32_t)i);
        }
    }
    key_items_sort(index->items, left, left);
    find_work work = {index, index->items, left, out};
    size_t chunks = (left + FIND_CHUNK - 1) / FIND_CHUNK;
    if (chunks == 1) {
        TRY(find_chunk(&work, 0, err));
    } else if (chunks > 1) {
        TRY(pool_for(index->env, chunks, find_chunk, &work, err));
    }
done:
    return code;
}

/* ---- files ---- */

tarn_code key_index_file_number(key_index *index, tarn_str path, int32_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool found;
    tarn_buf key;
    tarn_buf value;
    key_location location = {-1, 0};
    buf_init(&key, index->env, 0);
    buf_init(&value, index->env, 0);
    TRY(buf_append(&key, "\0p", 2, err));
    TRY(buf_append_str(&key, path, err));
    const overlay_entry *e = overlay_find(&index->files, buf_str(&key));
    if (e != NULL) {
        *out = e->file;
        goto done;
    }
    TRY(key_index_value(index, buf_str(&key), &value, &found, err));
    if (found) {
        TRY(key_index_read_location(index, buf_str(&value), &location, err));
    } else if (index->next_file == INT32_MAX) {
        code = err_set(err, TARN_LIMIT, "key index %s: more than %d data files", index->dir,
                       INT32_MAX);
        goto done;
    } else {
        location.file = index->next_file;
        TRY(overlay_set(&index->files, buf_str(&key), location, err));
        index->next_file++;
    }
    *out = location.file;
done:
    buf_release(&key);
    buf_release(&value);
    return code;
}

tarn_code key_index_file_path(key_index *index, int32_t file, tarn_arena *arena, tarn_str *out,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    char *text = NULL;
    uint8_t prefix[6] = {0, FILE_PREFIX, 0, 0, 0, 0};
    uint32_t number = __builtin_bswap32((uint32_t)file);
    tarn_str path = STR_NULL;
    if (file >= index->first_new && file < index->next_file) {
        path = path_of(&index->files, (size_t)(file - index->first_new));
    }
    memcpy(prefix + 2, &number, 4);
    rocksdb_iterator_t *it =
        rocksdb()->create_iterator_cf(index->db, index->read_options, index->family);
    if (path.data == NULL && file >= 0) {
        rocksdb()->iter_seek(it, (const char *)prefix, sizeof prefix);
        rocksdb()->iter_get_error(it, &text);
        if (text != NULL) {
            code = key_index_fail(index, &text, "reading", err);
            goto done;
        }
        if (rocksdb()->iter_valid(it)) {
            size_t len;
            const char *key = rocksdb()->iter_key(it, &len);
            if (len >= sizeof prefix && memcmp(key, prefix, sizeof prefix) == 0) {
                path = str_make(key + sizeof prefix, len - sizeof prefix);
            }
        }
    }
    if (path.data == NULL) {
        code = err_set(err, TARN_NOT_FOUND, "key index %s has no file %d", index->dir, file);
        goto done;
    }
    path = arena_str(arena, path);
    if (path.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    *out = path;
done:
    rocksdb()->iter_destroy(it);
    return code;
}

#endif
