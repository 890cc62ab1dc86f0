/* base/map.h - a hash map from bytes to a 64-bit value or pointer, living in an arena; and an int32
 * one. Insert order is kept: entries can be walked by index. No removal. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/arena.h"
#include "base/err.h"

typedef struct map_entry {
    tarn_str key; /* as given: not copied; the caller keeps it alive */
    union {
        void *ptr;
        int64_t i64;
    } value;
    uint64_t hash;
} map_entry;

typedef struct tarn_map {
    tarn_arena *arena;
    map_entry *entries;
    size_t count;
    size_t cap;
    uint32_t *slots; /* index + 1 into entries, 0: free */
    size_t n_slots;
} tarn_map;

void map_init(tarn_map *map, tarn_arena *arena); /* allocates nothing yet */
map_entry *map_find(const tarn_map *map, tarn_str key);
/* The entry for key, made with value 0 if it was absent (*added says so, may be NULL). NULL: no
 * memory. Pointers to entries hold until the next put. */
map_entry *map_put(tarn_map *map, tarn_str key, bool *added);

typedef struct tarn_idmap_entry {
    int32_t key;
    int32_t value;
} tarn_idmap_entry;

/* int32 -> int32, for field ids. */
typedef struct tarn_idmap {
    tarn_arena *arena;
    tarn_idmap_entry *slots;
    uint8_t *taken;
    size_t count;
    size_t n_slots;
} tarn_idmap;

void idmap_init(tarn_idmap *map, tarn_arena *arena);
bool idmap_get(const tarn_idmap *map, int32_t key, int32_t *value);
tarn_code idmap_set(tarn_idmap *map, int32_t key, int32_t value, tarn_error *err) TARN_MUST_USE;

#endif
