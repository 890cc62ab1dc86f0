/* dml/key_index_load.c - an index that is made from nothing: all rows of a table at once.
 *
 *   load -> rows in order of keys -> sorted files that do not overlap -> RocksDB's lowest level
 *                                 -> links to older rows, in order     -> the same
 *
 * Nothing is looked up, since rows of one key meet where they are merged, and nothing is left to
 * compact. Few rows wait in memory, like other changes. From the first file on the index is dirty,
 * until what was loaded settles. */
#include "dml/key_index_int.h"

#ifdef TARN_ROCKSDB

#define FEW_ROWS   20000 /* are not worth a file */
#define LEAST_FILE ((size_t)2 << 20)

void key_index_load_drop(key_index *index) {
    if (index->load != NULL) {
        key_runs_release(&index->load->rows);
        key_runs_release(&index->load->links);
        env_free(index->env, index->load);
        index->load = NULL;
    }
}

static tarn_code start_load(key_index *index, tarn_error *err) {
    size_t share = key_index_share(index);
    if (!index->bare || layers_held_bytes(&index->layers) > 0 || index->layers.now.n > 0) {
        return err_set(err, TARN_INVALID, "key index %s: rows were loaded beside others",
                       index->dir);
    }
    index->load = env_alloc(index->env, sizeof *index->load);
    if (index->load == NULL) {
        return err_nomem(err);
    }
    key_runs_init(&index->load->rows, index->env, share);
    key_runs_init(&index->load->links, index->env, share / 2);
    return TARN_OK;
}

tarn_code key_index_load(key_index *index, const tarn_str *keys, const key_location *locations,
                         size_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(key_index_check_locations(index, locations, n, err));
    if (index->load == NULL) {
        TRY(start_load(index, err));
    }
    for (size_t i = 0; i < n; i++) {
        TRY(key_runs_add(&index->load->rows, keys[i], locations[i], err));
    }
done:
    return code;
}

/* ---- where rows go ---- */

typedef struct load_out {
    key_index *index;
    bool few;
    rocksdb_envoptions_t *env_options;
    rocksdb_sstfilewriter_t *writer; /* NULL: no file is open */
    size_t file_bytes, most_bytes;
    bool any; /* a key is at hand, and its newest row so far */
    tarn_buf key;
    key_location newest;
} load_out;

static tarn_code finish_file(load_out *o, tarn_error *err) {
    char *text = NULL;
    if (o->writer == NULL) {
        return TARN_OK;
    }
    rocksdb()->sstfilewriter_finish(o->writer, &text);
    rocksdb()->sstfilewriter_destroy(o->writer);
    o->writer = NULL;
    return text != NULL ? key_index_fail(o->index, &text, "writing", err)
                        : key_index_take_in(o->index, err);
}

static tarn_code open_file(load_out *o, tarn_error *err) {
    tarn_code code = TARN_OK;
    char *text = NULL;
    if (o->index->dirty == 0) {
        TRY(key_index_mark_dirty(o->index, err));
        o->index->bare = false;
    }
    o->file_bytes = 0;
    o->writer = rocksdb()->sstfilewriter_create(o->env_options, o->index->options);
    rocksdb()->sstfilewriter_open(o->writer, o->index->pending_path, &text);
    if (text != NULL) {
        code = key_index_fail(o->index, &text, "writing", err);
    }
done:
    return code;
}

static tarn_code put_few(load_out *o, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t held = layers_held_bytes(&o->index->layers);
    TRY(key_index_reserve(o->index, key.len, &held, err));
    TRY(overlay_set(&o->index->layers.now, key, location, err));
done:
    return code;
}

/* One entry of RocksDB. */
static tarn_code put_entry(load_out *o, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t value[LOCATION_BYTES];
    char *text = NULL;
    if (o->few) {
        return put_few(o, key, location, err);
    }
    if (o->writer == NULL) {
        TRY(open_file(o, err));
    }
    size_t len = key_index_location_bytes(location, value);
    rocksdb()->sstfilewriter_put(o->writer, key.data, key.len, (const char *)value, len, &text);
    if (text != NULL) {
        code = key_index_fail(o->index, &text, "writing", err);
        goto done;
    }
    o->file_bytes += key.len + len;
    if (o->file_bytes >= o->most_bytes) {
        TRY(finish_file(o, err));
    }
done:
    return code;
}

static tarn_code put_newest(load_out *o, tarn_error *err) {
    return o->any ? put_entry(o, buf_str(&o->key), o->newest, err) : TARN_OK;
}

static tarn_code set_newest(load_out *o, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    o->any = true;
    o->newest = location;
    buf_reset(&o->key);
    TRY(buf_append(&o->key, "\1", 1, err));
    TRY(buf_append_str(&o->key, key, err));
done:
    return code;
}

static tarn_code take_row(void *ctx, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    load_out *o = ctx;
    uint8_t link[LINK_BYTES];
    if (!o->any || !str_eq(str_from(buf_str(&o->key), 1), key)) {
        TRY(put_newest(o, err));
        TRY(set_newest(o, key, location, err));
    } else if (!key_index_same_place(o->newest, location)) {
        TRY(key_runs_add(&o->index->load->links, key_index_link_key(location, link), o->newest,
                         err));
        o->newest = location;
        o->newest.position |= KEY_OLDER;
    }
done:
    return code;
}

/* The last word counts where a place is named twice. */
static tarn_code take_link(void *ctx, tarn_str key, key_location location, tarn_error *err) {
    tarn_code code = TARN_OK;
    load_out *o = ctx;
    if (!o->any || !str_eq(buf_str(&o->key), key)) {
        TRY(put_newest(o, err));
        buf_reset(&o->key);
        TRY(buf_append_str(&o->key, key, err));
    }
    o->any = true;
    o->newest = location;
done:
    return code;
}

static tarn_code put_all(load_out *o, key_runs *runs, key_runs_fn take, tarn_error *err) {
    tarn_code code = TARN_OK;
    o->any = false;
    if (runs->n > 0) {
        TRY(key_runs_merge(runs, take, o, err));
    }
    TRY(put_newest(o, err));
    TRY(finish_file(o, err));
done:
    return code;
}

tarn_code key_index_load_end(key_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_load *load = index->load;
    load_out out;
    if (load == NULL) {
        return TARN_OK;
    }
    memset(&out, 0, sizeof out);
    out.index = index;
    out.few = load->rows.n <= FEW_ROWS;
    out.most_bytes = index->memory_bytes / 32 > LEAST_FILE ? index->memory_bytes / 32 : LEAST_FILE;
    out.env_options = rocksdb()->envoptions_create();
    buf_init(&out.key, index->env, 0);
    TRY(put_all(&out, &load->rows, take_row, err));
    key_runs_release(&load->rows);
    TRY(put_all(&out, &load->links, take_link, err));
done:
    if (out.writer != NULL) {
        rocksdb()->sstfilewriter_destroy(out.writer);
    }
    rocksdb()->envoptions_destroy(out.env_options);
    buf_release(&out.key);
    key_index_load_drop(index);
    return code;
}

#endif
