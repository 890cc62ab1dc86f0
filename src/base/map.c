/* base/map.c - hash maps in an arena, by open addressing with linear probes.
 * Invariants: the number of slots is a power of two and at most half of them are taken, so a probe
 * always ends; entries lie in insert order. */
#include "base/map.h"

#include "base/num.h"

#define FIRST_SLOTS ((size_t)16)

void map_init(tarn_map *map, tarn_arena *arena) {
    memset(map, 0, sizeof *map);
    map->arena = arena;
}

/* The slot of key, or the free one where it would go. */
static size_t find_slot(const tarn_map *map, tarn_str key, uint64_t hash) {
    size_t mask = map->n_slots - 1;
    size_t at = (size_t)hash & mask;
    for (;;) {
        uint32_t index = map->slots[at];
        if (index == 0) {
            return at;
        }
        const map_entry *entry = &map->entries[index - 1];
        if (entry->hash == hash && str_eq(entry->key, key)) {
            return at;
        }
        at = (at + 1) & mask;
    }
}

map_entry *map_find(const tarn_map *map, tarn_str key) {
    if (map->count == 0) {
        return NULL;
    }
    uint32_t index = map->slots[find_slot(map, key, str_hash(key))];
    return index == 0 ? NULL : &map->entries[index - 1];
}

static bool grow_map(tarn_map *map) {
    size_t n_slots = map->n_slots == 0 ? FIRST_SLOTS : map->n_slots * 2;
    size_t cap = n_slots / 2;
    if (cap >= UINT32_MAX) {
        return false;
    }
    uint32_t *slots = arena_calloc(map->arena, n_slots, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    map_entry *entries =
        arena_grow(map->arena, map->entries, map->cap * sizeof *entries, cap * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->count; i++) {
        size_t at = (size_t)entries[i].hash & (n_slots - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (uint32_t)(i + 1);
    }
    map->entries = entries;
    map->cap = cap;
    map->slots = slots;
    map->n_slots = n_slots;
    return true;
}

map_entry *map_put(tarn_map *map, tarn_str key, bool *added) {
    uint64_t hash = str_hash(key);
    size_t at = 0;
    if (map->n_slots > 0) {
        at = find_slot(map, key, hash);
        if (map->slots[at] != 0) {
            if (added != NULL) {
                *added = false;
            }
            return &map->entries[map->slots[at] - 1];
        }
    }
    if (map->count == map->cap) {
        if (!grow_map(map)) {
            return NULL;
        }
        at = find_slot(map, key, hash);
    }
    map_entry *entry = &map->entries[map->count++];
    memset(entry, 0, sizeof *entry);
    entry->key = key;
    entry->hash = hash;
    map->slots[at] = (uint32_t)map->count;
    if (added != NULL) {
        *added = true;
    }
    return entry;
}

void idmap_init(tarn_idmap *map, tarn_arena *arena) {
    memset(map, 0, sizeof *map);
    map->arena = arena;
}

static size_t find_id(const tarn_idmap_entry *slots, const uint8_t *taken, size_t n_slots,
                      int32_t key) {
    uint32_t hash = (uint32_t)key * UINT32_C(0x9E3779B1);
    size_t at = (size_t)(hash ^ (hash >> 15)) & (n_slots - 1);
    while (taken[at] && slots[at].key != key) {
        at = (at + 1) & (n_slots - 1);
    }
    return at;
}

bool idmap_get(const tarn_idmap *map, int32_t key, int32_t *value) {
    if (map->count == 0) {
        return false;
    }
    size_t at = find_id(map->slots, map->taken, map->n_slots, key);
    if (!map->taken[at]) {
        return false;
    }
    *value = map->slots[at].value;
    return true;
}

static bool grow_idmap(tarn_idmap *map) {
    size_t n_slots = map->n_slots == 0 ? FIRST_SLOTS : map->n_slots * 2;
    tarn_idmap_entry *slots = ARENA_ARRAY(map->arena, tarn_idmap_entry, n_slots);
    uint8_t *taken = ARENA_ARRAY(map->arena, uint8_t, n_slots);
    if (slots == NULL || taken == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->taken[i]) {
            size_t at = find_id(slots, taken, n_slots, map->slots[i].key);
            slots[at] = map->slots[i];
            taken[at] = 1;
        }
    }
    map->slots = slots;
    map->taken = taken;
    map->n_slots = n_slots;
    return true;
}

tarn_code idmap_set(tarn_idmap *map, int32_t key, int32_t value, tarn_error *err) {
    if (map->count >= map->n_slots / 2 && !grow_idmap(map)) {
        return err_nomem(err);
    }
    size_t at = find_id(map->slots, map->taken, map->n_slots, key);
    if (!map->taken[at]) {
        map->taken[at] = 1;
        map->slots[at].key = key;
        map->count++;
    }
    map->slots[at].value = value;
    return TARN_OK;
}
