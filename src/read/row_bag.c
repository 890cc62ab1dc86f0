/* read/row_bag.c - digests of rows, and a hash table of them by linear probes. */
#include "read/row_bag.h"

#include "base/limits.h"

#define FIRST_SLOTS ((size_t)1024)

/* ---- digests ---- */

static bool is_key_kind(tarn_kind kind) {
    return kind <= TARN_UNKNOWN;
}

tarn_code digester_init(row_digester *d, tarn_env *env, const tarn_type *type, const int32_t *ids,
                        int32_t n_ids, tarn_error *err) {
    const int32_t n = ids != NULL ? n_ids : type->n_fields;
    memset(d, 0, sizeof *d);
    d->env = env;
    key_rows_init(&d->keys, env);
    buf_init(&d->text, env, 0);
    d->ids = env_calloc(env, (size_t)n + 1, sizeof *d->ids);
    d->others = env_calloc(env, (size_t)n + 1, sizeof *d->others);
    if (d->ids == NULL || d->others == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        if (ids != NULL) {
            d->ids[d->n_ids++] = ids[i];
        } else if (is_key_kind(type->fields[i].type->kind)) {
            d->ids[d->n_ids++] = type->fields[i].id;
        } else {
            d->others[d->n_others++] = i;
        }
    }
    return TARN_OK;
}

void digester_release(row_digester *d) {
    if (d->env != NULL) {
        env_free(d->env, d->ids);
        env_free(d->env, d->others);
        env_free(d->env, d->digests);
        key_rows_release(&d->keys);
        buf_release(&d->text);
    }
    memset(d, 0, sizeof *d);
}

static row_digest digest_of(const void *bytes, size_t len) {
    uint8_t digest_bytes[16];
    row_digest digest;
    str_digest(str_make(bytes, len), digest_bytes);
    memcpy(&digest, digest_bytes, sizeof digest);
    return digest;
}

/* Goes on from the digests of the columns before. */
static tarn_code digest_column(row_digester *d, const tarn_view *view, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int64_t i = 0; i < view->length && code == TARN_OK; i++) {
        json_writer w;
        buf_reset(&d->text);
        code = buf_append(&d->text, &d->digests[i], sizeof *d->digests, err);
        if (code == TARN_OK) {
            json_begin(&w, &d->text, false, err);
            view_put_json(view, i, &w);
            code = json_end(&w);
        }
        d->digests[i] = digest_of(d->text.data, d->text.len);
    }
    return code;
}

tarn_code digester_run(row_digester *d, const tarn_batch *batch, tarn_error *err) {
    const int64_t rows = batch_rows(batch);
    tarn_code code = TARN_OK;
    if ((size_t)rows > d->cap) {
        row_digest *digests = env_realloc(d->env, d->digests, (size_t)rows * sizeof *digests);
        if (digests == NULL) {
            return err_nomem(err);
        }
        d->digests = digests;
        d->cap = (size_t)rows;
    }
    TRY(key_encode(&d->keys, batch, d->ids, d->n_ids, err));
    for (int64_t i = 0; i < rows; i++) {
        const tarn_str key = key_at(&d->keys, i);
        d->digests[i] = digest_of(key.data, key.len);
    }
    for (int32_t i = 0; i < d->n_others; i++) {
        tarn_view view;
        view_column(batch, d->others[i], &view);
        TRY(digest_column(d, &view, err));
    }
done:
    return code;
}

/* ---- the bag ---- */

void bag_init(row_bag *b, tarn_env *env) {
    memset(b, 0, sizeof *b);
    b->env = env;
}

void bag_release(row_bag *b) {
    env_free(b->env, b->items);
    b->items = NULL;
    b->n_slots = b->count = 0;
}

static bag_item *find_item(bag_item *items, size_t n_slots, row_digest digest) {
    size_t at = (size_t)digest.low & (n_slots - 1);
    while (items[at].used &&
           (items[at].digest.low != digest.low || items[at].digest.high != digest.high)) {
        at = (at + 1) & (n_slots - 1);
    }
    return &items[at];
}

bag_item *bag_find(const row_bag *b, row_digest digest) {
    bag_item *item = b->n_slots > 0 ? find_item(b->items, b->n_slots, digest) : NULL;
    return item != NULL && item->used ? item : NULL;
}

static tarn_code grow_bag(row_bag *b, tarn_error *err) {
    const size_t n_slots = b->n_slots == 0 ? FIRST_SLOTS : b->n_slots * 2;
    if (n_slots > LIMIT_CHANGED_ROWS_BYTES / sizeof *b->items) {
        return err_set(err, TARN_LIMIT,
                       "telling changed rows of one commit from moved ones took more than %llu "
                       "bytes of memory",
                       (unsigned long long)LIMIT_CHANGED_ROWS_BYTES);
    }
    bag_item *items = env_calloc(b->env, n_slots, sizeof *items);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < b->n_slots; i++) {
        if (b->items[i].used) {
            *find_item(items, n_slots, b->items[i].digest) = b->items[i];
        }
    }
    env_free(b->env, b->items);
    b->items = items;
    b->n_slots = n_slots;
    return TARN_OK;
}

tarn_code bag_put(row_bag *b, row_digest digest, bag_item **out, tarn_error *err) {
    if ((b->count + 1) * 4 > b->n_slots * 3) {
        tarn_code code = grow_bag(b, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    bag_item *item = find_item(b->items, b->n_slots, digest);
    if (!item->used) {
        item->used = true;
        item->digest = digest;
        b->count++;
    }
    *out = item;
    return TARN_OK;
}
