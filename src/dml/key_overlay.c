/* dml/key_overlay.c - the changes of one checkpoint in memory, and keys in order.
 *
 * Keys lie one after the other in one block, entries in another in the order of their first
 * mention, and an open-addressing table of entry numbers finds them. Nothing is allocated per key.
 */
#include "dml/key_overlay.h"

#include "base/num.h"

#define FIRST_BYTES 4096
#define FIRST_CAP   256
#define FIRST_SLOTS 512

void overlay_init(key_overlay *o, tarn_env *env) {
    memset(o, 0, sizeof *o);
    o->env = env;
}

void overlay_release(key_overlay *o) {
    env_free(o->env, o->bytes);
    env_free(o->env, o->entries);
    env_free(o->env, o->slots);
    overlay_init(o, o->env);
}

void overlay_reset(key_overlay *o) {
    o->n_bytes = 0;
    o->n = 0;
    if (o->slots != NULL) {
        memset(o->slots, 0, o->n_slots * sizeof *o->slots);
    }
}

static size_t grown(size_t cap, size_t need, size_t first) {
    size_t next = cap;
    if (need <= cap) {
        return cap;
    }
    next += cap / 2;
    next = next < first ? first : next;
    return next < need ? need : next;
}

static size_t grown_slots(const key_overlay *o) {
    if (o->n_slots == 0) {
        return FIRST_SLOTS;
    }
    return (o->n + 1) * 4 > o->n_slots * 3 ? o->n_slots * 2 : o->n_slots;
}

size_t overlay_bytes_with(const key_overlay *o, size_t key_len) {
    return grown(o->cap_bytes, o->n_bytes + key_len, FIRST_BYTES) +
           grown(o->cap, o->n + 1, FIRST_CAP) * sizeof *o->entries +
           grown_slots(o) * sizeof *o->slots + (o->n + 1) * sizeof(key_item);
}

/* The slot of the key, or the free one where it would go. */
static size_t find_slot(const key_overlay *o, tarn_str key, uint32_t hash) {
    size_t mask = o->n_slots - 1;
    size_t at = hash & mask;
    while (o->slots[at] != 0) {
        const overlay_entry *e = &o->entries[o->slots[at] - 1];
        if (e->hash == hash && e->len == key.len &&
            memcmp(o->bytes + e->at, key.data, key.len) == 0) {
            break;
        }
        at = (at + 1) & mask;
    }
    return at;
}

uint32_t overlay_hash(tarn_str key) {
    return (uint32_t)str_hash(key);
}

const overlay_entry *overlay_find_hashed(const key_overlay *o, tarn_str key, uint32_t hash) {
    if (o->n == 0) {
        return NULL;
    }
    size_t at = find_slot(o, key, hash);
    return o->slots[at] != 0 ? &o->entries[o->slots[at] - 1] : NULL;
}

const overlay_entry *overlay_find(const key_overlay *o, tarn_str key) {
    return overlay_find_hashed(o, key, overlay_hash(key));
}

static tarn_code grow_slots(key_overlay *o, tarn_error *err) {
    size_t n_slots = grown_slots(o);
    if (n_slots == o->n_slots) {
        return TARN_OK;
    }
    uint32_t *slots = env_calloc(o->env, n_slots, sizeof *slots);
    if (slots == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < o->n; i++) {
        size_t at = o->entries[i].hash & (n_slots - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (uint32_t)i + 1;
    }
    env_free(o->env, o->slots);
    o->slots = slots;
    o->n_slots = n_slots;
    return TARN_OK;
}

static tarn_code make_room(key_overlay *o, size_t key_len, tarn_error *err) {
    size_t cap_bytes = grown(o->cap_bytes, o->n_bytes + key_len, FIRST_BYTES);
    size_t cap = grown(o->cap, o->n + 1, FIRST_CAP);
    if (o->n_bytes + key_len > UINT32_MAX || o->n >= UINT32_MAX / 4) {
        return err_set(err, TARN_LIMIT, "more than 4 GiB of keys waited for a checkpoint");
    }
    if (cap_bytes != o->cap_bytes) {
        uint8_t *bytes = env_realloc(o->env, o->bytes, cap_bytes);
        if (bytes == NULL) {
            return err_nomem(err);
        }
        o->bytes = bytes;
        o->cap_bytes = cap_bytes;
    }
    if (cap != o->cap) {
        overlay_entry *entries = env_realloc(o->env, o->entries, cap * sizeof *entries);
        if (entries == NULL) {
            return err_nomem(err);
        }
        o->entries = entries;
        o->cap = cap;
    }
    return grow_slots(o, err);
}

tarn_code overlay_set(key_overlay *o, tarn_str key, key_location location, tarn_error *err) {
    key_location before;
    return overlay_swap(o, key, location, &before, err);
}

tarn_code overlay_swap(key_overlay *o, tarn_str key, key_location location, key_location *before,
                       tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t hash = overlay_hash(key);
    overlay_entry *e;
    TRY(make_room(o, key.len, err));
    size_t at = find_slot(o, key, hash);
    if (o->slots[at] != 0) {
        e = &o->entries[o->slots[at] - 1];
        *before = (key_location){e->file, e->position};
    } else {
        e = &o->entries[o->n++];
        e->at = (uint32_t)o->n_bytes;
        e->len = (uint32_t)key.len;
        e->hash = hash;
        memcpy(o->bytes + o->n_bytes, key.data, key.len);
        o->n_bytes += key.len;
        o->slots[at] = (uint32_t)o->n;
    }
    e->file = location.file;
    e->position = location.position;
done:
    return code;
}

void key_item_set(key_item *item, tarn_str key, uint32_t index) {
    uint8_t first[8] = {0};
    memcpy(first, key.data, key.len < 8 ? key.len : 8);
    item->prefix = num_load_be64(first);
    item->key = (const uint8_t *)key.data;
    item->len = (uint32_t)key.len;
    item->index = index;
}

static void sort_few(key_item *items, size_t n) {
    for (size_t i = 1; i < n; i++) {
        key_item item = items[i];
        size_t j = i;
        while (j > 0 && key_item_less(&item, &items[j - 1])) {
            items[j] = items[j - 1];
            j--;
        }
        items[j] = item;
    }
}

/* Hoare's partition around a pivot by chance: [0, result) <= pivot <= [result, n), both shorter
 * than n. */
static size_t split_items(key_item *items, size_t n, uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    key_item pivot = items[(size_t)(*seed >> 33) % (n - 1)];
    size_t i = 0;
    size_t j = n - 1;
    for (;;) {
        while (key_item_less(&items[i], &pivot)) {
            i++;
        }
        while (key_item_less(&pivot, &items[j])) {
            j--;
        }
        if (i >= j) {
            return j + 1;
        }
        key_item t = items[i];
        items[i++] = items[j];
        items[j--] = t;
    }
}

void key_items_sort(key_item *items, size_t n, uint64_t seed) {
    struct {
        key_item *items;
        size_t n;
    } stack[64]; /* the longer part waits, so that log2(n) places are enough */
    size_t depth = 0;
    for (;;) {
        while (n > 24) {
            size_t left = split_items(items, n, &seed);
            bool left_longer = left > n - left;
            stack[depth].items = left_longer ? items : items + left;
            stack[depth++].n = left_longer ? left : n - left;
            items = left_longer ? items + left : items;
            n = left_longer ? n - left : left;
        }
        sort_few(items, n);
        if (depth == 0) {
            return;
        }
        items = stack[--depth].items;
        n = stack[depth].n;
    }
}

tarn_code overlay_sorted(const key_overlay *o, key_item **out, tarn_error *err) {
    key_item *items = env_alloc(o->env, (o->n + 1) * sizeof *items);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (size_t i = 0; i < o->n; i++) {
        key_item_set(&items[i], overlay_key(o, &o->entries[i]), (uint32_t)i);
    }
    key_items_sort(items, o->n, env_random_u64(o->env));
    *out = items;
    return TARN_OK;
}
