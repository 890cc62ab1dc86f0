/* dml/key_index_older.c - rows that come from the table, which may hold a key more than once.
 *
 * The entry of the key names its newest row, marked KEY_OLDER where there are older ones; from each
 * of them an entry by its place names the next older one. Only marked keys cost a second look.
 * Entries of rows that are gone stay: nothing leads to them, or the table is read anew where a row
 * in their place says otherwise. */
#include "dml/key_index_int.h"

#ifdef TARN_ROCKSDB

/* Adds keys whose places are found, up to where memory has to be written first: what is written is
 * found anew. */
static tarn_code add_found(key_index *index, const tarn_str *keys, const key_location *locations,
                           size_t n, key_location *before, size_t *n_added, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t held = layers_held_bytes(&index->layers);
    size_t at = 0;
    size_t i = 0;
    for (; i < n; i++) {
        tarn_str key = str_make(index->probe.data + at, keys[i].len + 1);
        at += key.len;
        if (i > 0 && !key_index_has_room(index, held, key.len)) {
            break;
        }
        TRY(key_index_reserve(index, key.len, &held, err));
        TRY(overlay_swap(&index->layers.now, key, locations[i], &before[i], err));
    }
    *n_added = i;
done:
    return code;
}

tarn_code key_index_add(key_index *index, const tarn_str *keys, const key_location *locations,
                        size_t n, key_location *before, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(key_index_check_locations(index, locations, n, err));
    for (size_t at = 0; at < n;) {
        size_t added = 0;
        TRY(key_index_find(index, keys + at, n - at, before + at, err));
        TRY(add_found(index, keys + at, locations + at, n - at, before + at, &added, err));
        at += added;
    }
done:
    return code;
}

tarn_str key_index_link_key(key_location at, uint8_t out[LINK_BYTES]) {
    uint32_t file = __builtin_bswap32((uint32_t)at.file);
    uint64_t position = __builtin_bswap64((uint64_t)(at.position & ~KEY_OLDER));
    out[0] = 2;
    memcpy(out + 1, &file, 4);
    memcpy(out + 5, &position, 8);
    return str_make(out, LINK_BYTES);
}

static tarn_code find_link(key_index *index, tarn_str key, key_location *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool found;
    tarn_buf value;
    const overlay_entry *e = layers_find(&index->layers, key);
    buf_init(&value, index->env, 0);
    *out = (key_location){-1, 0};
    if (e != NULL) {
        *out = (key_location){e->file, e->position};
    }
    if (e != NULL || index->bare) {
        goto done;
    }
    TRY(key_index_value(index, key, &value, &found, err));
    if (found) {
        TRY(key_index_read_location(index, buf_str(&value), out, err));
    }
done:
    buf_release(&value);
    return code;
}

tarn_code key_index_put_older(key_index *index, tarn_str key, key_location at, key_location before,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t bytes[LINK_BYTES];
    key_location known;
    size_t held = layers_held_bytes(&index->layers);
    tarn_str link = key_index_link_key(at, bytes);
    TRY(key_index_check_locations(index, &before, 1, err));
    TRY(find_link(index, link, &known, err));
    if (known.file >= 0 && !key_index_same_place(known, before)) {
        code = err_set(err, TARN_CORRUPT, "key index %s: a row has two older ones of its key",
                       index->dir);
        goto done;
    }
    TRY(key_index_reserve(index, link.len, &held, err));
    TRY(overlay_set(&index->layers.now, link, before, err));
    at.position |= KEY_OLDER;
    TRY(key_index_put(index, &key, &at, 1, err));
done:
    return code;
}

tarn_code key_index_older(key_index *index, key_chain *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint8_t bytes[LINK_BYTES];
    key_location next;
    TRY(find_link(index, key_index_link_key(c->at, bytes), &next, err));
    bool round = key_index_same_place(next, c->newest) || key_index_same_place(next, c->mark);
    c->at = round ? (key_location){-1, 0} : next;
    if (++c->n == c->limit) {
        c->mark = c->at;
        c->limit *= 2;
    }
done:
    return code;
}

#endif
