/* dml/key_overlay.h - changes of keys that wait in memory: key -> location, the last word counts.
 * What key_index holds back until it is applied. Memory is said before it is taken, so that a
 * budget can be kept. */
#ifndef DML_KEY_OVERLAY_H
#define DML_KEY_OVERLAY_H

#include "dml/key_index.h"

typedef struct overlay_entry {
    uint32_t at; /* of the key in bytes */
    uint32_t len;
    uint32_t hash;
    int32_t file; /* -1: the key is removed */
    int64_t position;
} overlay_entry;

typedef struct key_overlay {
    tarn_env *env;
    uint8_t *bytes;
    size_t n_bytes, cap_bytes;
    overlay_entry *entries;
    size_t n, cap;
    uint32_t *slots; /* index + 1 into entries, 0: free */
    size_t n_slots;  /* a power of two, or 0 */
} key_overlay;

void overlay_init(key_overlay *o, tarn_env *env); /* allocates nothing yet */
void overlay_release(key_overlay *o);
void overlay_reset(key_overlay *o); /* empty; memory is kept */
/* Memory that there would be after one more key, with what sorting takes. */
size_t overlay_bytes_with(const key_overlay *o, size_t key_len);
const overlay_entry *overlay_find(const key_overlay *o, tarn_str key); /* NULL: nothing said */
uint32_t overlay_hash(tarn_str key);
const overlay_entry *overlay_find_hashed(const key_overlay *o, tarn_str key, uint32_t hash);
tarn_code overlay_set(key_overlay *o, tarn_str key, key_location location,
                      tarn_error *err) TARN_MUST_USE;
/* The same; *before: what was said, untouched where nothing was. */
tarn_code overlay_swap(key_overlay *o, tarn_str key, key_location location, key_location *before,
                       tarn_error *err) TARN_MUST_USE;
static inline tarn_str overlay_key(const key_overlay *o, const overlay_entry *e) {
    return str_make(o->bytes + e->at, e->len);
}

/* Keys in the order of their bytes. */
typedef struct key_item {
    uint64_t prefix; /* the first 8 bytes, so that most comparisons touch no key */
    const uint8_t *key;
    uint32_t len;
    uint32_t index; /* the caller's */
} key_item;

void key_item_set(key_item *item, tarn_str key, uint32_t index);
/* Equal keys in the order of their index. */
static inline bool key_item_less(const key_item *a, const key_item *b) {
    if (a->prefix != b->prefix) {
        return a->prefix < b->prefix;
    }
    int cmp = str_cmp(str_make(a->key, a->len), str_make(b->key, b->len));
    return cmp != 0 ? cmp < 0 : a->index < b->index;
}
/* seed: chance, so that no input makes it slow. */
void key_items_sort(key_item *items, size_t n, uint64_t seed);
/* All entries as sorted items; the caller frees them (env_free). */
tarn_code overlay_sorted(const key_overlay *o, key_item **out, tarn_error *err) TARN_MUST_USE;

#endif
