/* read/key_set.c - a hash set of keys by open addressing with linear probes.
 *
 * Keys lie one after the other in chunks: the number of their sequence number (4 bytes), their
 * length (a varint), their bytes. A slot holds a place in the chunks and 24 bits of the key's hash,
 * so that nearly every probe of a key that is not there ends within the slots; and a filter of two
 * bits a key, which stays in the cache, leaves few keys to be probed at all.
 * Invariants: the number of slots is a power of two and at most three quarters of them are taken;
 * no key lies in two chunks; only a lone chunk is smaller than CHUNK_BYTES. */
#include "read/key_set.h"

#define CHUNK_BITS    20
#define CHUNK_BYTES   ((size_t)1 << CHUNK_BITS)
#define FIRST_CHUNK   ((size_t)1024)
#define FIRST_SLOTS   ((size_t)64)
#define KEY_BYTES_MAX ((size_t)256 << 10)
#define PLACE_BITS    40
#define PLACE_MASK    ((UINT64_C(1) << PLACE_BITS) - 1)
#define BLOCK_ROWS    64
#define FILTER_SLOTS  8 /* slots that share a word of the filter */

typedef struct key_chunk {
    uint8_t *data;
    size_t bytes, used;
} key_chunk;

struct key_set {
    tarn_env *env;
    key_budget *budget;
    size_t taken; /* of the budget */
    key_chunk *chunks;
    size_t n_chunks, cap_chunks;
    uint64_t *slots; /* place + 1, and the hash's upper bits; 0: free */
    size_t n_slots;
    uint64_t *filter; /* two bits a key in one word of n_slots / FILTER_SLOTS */
    size_t count;
    int64_t *sequences; /* distinct ones */
    size_t n_sequences, cap_sequences;
};

tarn_code key_set_new(tarn_env *env, key_budget *budget, key_set **out, tarn_error *err) {
    key_set *s = env_calloc(env, 1, sizeof *s);
    if (s == NULL) {
        return err_nomem(err);
    }
    s->env = env;
    s->budget = budget;
    *out = s;
    return TARN_OK;
}

void key_set_free(key_set *s) {
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->n_chunks; i++) {
        env_free(s->env, s->chunks[i].data);
    }
    (void)atomic_fetch_sub(&s->budget->bytes, s->taken);
    env_free(s->env, s->chunks);
    env_free(s->env, s->slots);
    env_free(s->env, s->filter);
    env_free(s->env, s->sequences);
    env_free(s->env, s);
}

int64_t key_set_count(const key_set *s) {
    return (int64_t)s->count;
}

/* ---- memory ---- */

static tarn_code take_budget(key_set *s, size_t bytes, tarn_error *err) {
    size_t before = atomic_fetch_add(&s->budget->bytes, bytes);
    s->taken += bytes;
    if (before + bytes > s->budget->max_bytes) {
        return err_set(err, TARN_LIMIT,
                       "the keys of equality deletes took more than %zu bytes of memory",
                       s->budget->max_bytes);
    }
    return TARN_OK;
}

/* A new last chunk, or the lone one twice as large; what it grows by is taken off the budget. */
static tarn_code add_chunk(key_set *s, tarn_error *err) {
    const bool grow = s->n_chunks == 1 && s->chunks[0].bytes < CHUNK_BYTES;
    const size_t had = grow ? s->chunks[0].bytes : 0;
    const size_t bytes = grow ? had * 2 : (s->n_chunks == 0 ? FIRST_CHUNK : CHUNK_BYTES);
    tarn_code code = take_budget(s, bytes - had, err);
    if (code != TARN_OK) {
        return code;
    }
    if (!grow && s->n_chunks == s->cap_chunks) {
        size_t cap = s->cap_chunks == 0 ? 4 : s->cap_chunks * 2;
        key_chunk *chunks = env_realloc(s->env, s->chunks, cap * sizeof *chunks);
        if (chunks == NULL) {
            return err_nomem(err);
        }
        s->chunks = chunks;
        s->cap_chunks = cap;
    }
    uint8_t *data = env_realloc(s->env, grow ? s->chunks[0].data : NULL, bytes);
    if (data == NULL) {
        return err_nomem(err);
    }
    if (grow) {
        s->chunks[0].data = data;
        s->chunks[0].bytes = bytes;
    } else {
        s->chunks[s->n_chunks++] = (key_chunk){data, bytes, 0};
    }
    return TARN_OK;
}

/* ---- keys ---- */

typedef struct stored_key {
    uint8_t *sequence; /* 4 bytes */
    tarn_str key;
    size_t end; /* of the record in its chunk */
} stored_key;

static stored_key key_of(const key_set *s, uint64_t place) {
    stored_key k;
    uint8_t *chunk = s->chunks[place >> CHUNK_BITS].data;
    uint8_t *p = chunk + (place & (CHUNK_BYTES - 1));
    size_t len = 0;
    k.sequence = p;
    p += 4;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *p++;
        len |= (size_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            break;
        }
    }
    k.key = str_make(p, len);
    k.end = (size_t)(p - chunk) + len;
    return k;
}

/* Keys of one word or two short ones, the usual, take one multiplication. */
static inline uint64_t hash_of(tarn_str key) {
    if (key.len >= 8 && key.len <= 16) {
        const uint64_t a = num_load_u64(key.data) ^ UINT64_C(0x9e3779b97f4a7c15) ^ key.len;
        const uint64_t b = num_load_u64(key.data + key.len - 8) ^ UINT64_C(0xe7037ed1a0b428db);
        const tarn_uint128 product = (tarn_uint128)a * b;
        const uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
        return folded ^ (folded >> 29);
    }
    return str_hash(key);
}

/* Two of the hash's bits that tell keys of one word apart. */
static inline uint64_t filter_bits(uint64_t hash) {
    return (UINT64_C(1) << (hash >> 58)) | (UINT64_C(1) << ((hash >> 52) & 63));
}

static inline size_t filter_word(uint64_t hash, size_t mask) {
    return ((size_t)hash & mask) / FILTER_SLOTS;
}

static inline uint64_t tag_of(uint64_t hash) {
    return hash & ~PLACE_MASK;
}

/* The slot of key, or the free one where it would go. */
static size_t find_slot(const key_set *s, tarn_str key, uint64_t hash) {
    const size_t mask = s->n_slots - 1;
    size_t at = (size_t)hash & mask;
    for (;; at = (at + 1) & mask) {
        const uint64_t slot = s->slots[at];
        if (slot == 0) {
            return at;
        }
        if (tag_of(slot) == tag_of(hash) && str_eq(key_of(s, (slot & PLACE_MASK) - 1).key, key)) {
            return at;
        }
    }
}

/* Puts every stored key into new slots and a new filter. */
static void fill_slots(const key_set *s, uint64_t *slots, size_t n_slots, uint64_t *filter) {
    const size_t mask = n_slots - 1;
    for (size_t c = 0; c < s->n_chunks; c++) {
        for (size_t in_chunk = 0; in_chunk < s->chunks[c].used;) {
            const uint64_t place = ((uint64_t)c << CHUNK_BITS) | in_chunk;
            const stored_key k = key_of(s, place);
            const uint64_t hash = hash_of(k.key);
            size_t at = (size_t)hash & mask;
            while (slots[at] != 0) {
                at = (at + 1) & mask;
            }
            slots[at] = tag_of(hash) | (place + 1);
            filter[filter_word(hash, mask)] |= filter_bits(hash);
            in_chunk = k.end;
        }
    }
}

static tarn_code grow_slots(key_set *s, tarn_error *err) {
    const size_t n_slots = s->n_slots == 0 ? FIRST_SLOTS : s->n_slots * 2;
    const size_t slot_bytes = sizeof *s->slots + sizeof *s->filter / FILTER_SLOTS;
    tarn_code code = take_budget(s, (n_slots - s->n_slots) * slot_bytes, err);
    if (code != TARN_OK) {
        return code;
    }
    uint64_t *slots = env_calloc(s->env, n_slots, sizeof *slots);
    uint64_t *filter = env_calloc(s->env, n_slots / FILTER_SLOTS, sizeof *filter);
    if (slots == NULL || filter == NULL) {
        env_free(s->env, slots);
        env_free(s->env, filter);
        return err_nomem(err);
    }
    fill_slots(s, slots, n_slots, filter);
    env_free(s->env, s->slots);
    env_free(s->env, s->filter);
    s->slots = slots;
    s->filter = filter;
    s->n_slots = n_slots;
    return TARN_OK;
}

/* Appends a key; *place is where. */
static tarn_code store_key(key_set *s, tarn_str key, uint32_t sequence, uint64_t *place,
                           tarn_error *err) {
    uint8_t head[14];
    memcpy(head, &sequence, sizeof sequence);
    const size_t n_head = 4 + num_put_uvarint(head + 4, key.len);
    tarn_code code = TARN_OK;
    if (key.len > KEY_BYTES_MAX) {
        return err_set(err, TARN_LIMIT, "a key of equality deletes had %zu bytes, at most %zu",
                       key.len, KEY_BYTES_MAX);
    }
    while (s->n_chunks == 0 ||
           s->chunks[s->n_chunks - 1].bytes - s->chunks[s->n_chunks - 1].used < n_head + key.len) {
        TRY(add_chunk(s, err));
    }
    key_chunk *c = &s->chunks[s->n_chunks - 1];
    *place = ((uint64_t)(s->n_chunks - 1) << CHUNK_BITS) | c->used;
    memcpy(c->data + c->used, head, n_head);
    if (key.len > 0) {
        memcpy(c->data + c->used + n_head, key.data, key.len);
    }
    c->used += n_head + key.len;
done:
    return code;
}

/* The number of a sequence number among those of the set. */
static tarn_code sequence_index(key_set *s, int64_t sequence_number, uint32_t *out,
                                tarn_error *err) {
    for (size_t i = s->n_sequences; i > 0; i--) {
        if (s->sequences[i - 1] == sequence_number) {
            *out = (uint32_t)(i - 1);
            return TARN_OK;
        }
    }
    if (s->n_sequences == s->cap_sequences) {
        size_t cap = s->cap_sequences == 0 ? 8 : s->cap_sequences * 2;
        int64_t *sequences = env_realloc(s->env, s->sequences, cap * sizeof *sequences);
        if (sequences == NULL) {
            return err_nomem(err);
        }
        s->sequences = sequences;
        s->cap_sequences = cap;
    }
    *out = (uint32_t)s->n_sequences;
    s->sequences[s->n_sequences++] = sequence_number;
    return TARN_OK;
}

static int64_t stored_sequence(const key_set *s, const stored_key *k) {
    return s->sequences[num_load_u32(k->sequence)];
}

tarn_code key_set_add(key_set *s, const key_rows *keys, int64_t sequence_number, tarn_error *err) {
    uint32_t sequence = 0;
    tarn_code code = sequence_index(s, sequence_number, &sequence, err);
    for (int64_t i = 0; i < keys->rows && code == TARN_OK; i++) {
        const tarn_str key = key_at(keys, i);
        const uint64_t hash = hash_of(key);
        uint64_t place = 0;
        if ((s->count + 1) * 4 > s->n_slots * 3) {
            TRY(grow_slots(s, err));
        }
        const size_t at = find_slot(s, key, hash);
        if (s->slots[at] == 0) {
            TRY(store_key(s, key, sequence, &place, err));
            s->slots[at] = tag_of(hash) | (place + 1);
            s->filter[filter_word(hash, s->n_slots - 1)] |= filter_bits(hash);
            s->count++;
            continue;
        }
        const stored_key k = key_of(s, (s->slots[at] & PLACE_MASK) - 1);
        if (stored_sequence(s, &k) < sequence_number) {
            memcpy(k.sequence, &sequence, sizeof sequence);
        }
    }
done:
    return code;
}

/* Whether the key is in the set with a higher sequence number. */
static bool is_deleted(const key_set *s, tarn_str key, uint64_t hash, int64_t sequence_number) {
    const size_t at = find_slot(s, key, hash);
    if (s->slots[at] == 0) {
        return false;
    }
    const stored_key k = key_of(s, (s->slots[at] & PLACE_MASK) - 1);
    return stored_sequence(s, &k) > sequence_number;
}

int64_t key_set_clear(const key_set *s, const key_rows *keys, int64_t sequence_number,
                      uint8_t *selection) {
    uint64_t hashes[BLOCK_ROWS];
    const size_t mask = s->n_slots - 1;
    int64_t cleared = 0;
    for (int64_t from = 0; from < keys->rows && s->count > 0; from += BLOCK_ROWS) {
        const int64_t n = keys->rows - from < BLOCK_ROWS ? keys->rows - from : BLOCK_ROWS;
        uint64_t maybe = 0;
        for (int64_t i = 0; i < n; i++) {
            hashes[i] = hash_of(key_at(keys, from + i));
            __builtin_prefetch(&s->filter[filter_word(hashes[i], mask)]);
        }
        for (int64_t i = 0; i < n; i++) {
            const uint64_t bits = filter_bits(hashes[i]);
            maybe |= (uint64_t)((s->filter[filter_word(hashes[i], mask)] & bits) == bits) << i;
        }
        for (uint64_t left = maybe; left != 0; left &= left - 1) {
            __builtin_prefetch(&s->slots[(size_t)hashes[__builtin_ctzll(left)] & mask]);
        }
        for (; maybe != 0; maybe &= maybe - 1) {
            const int64_t i = __builtin_ctzll(maybe);
            if (bit_get(selection, from + i) &&
                is_deleted(s, key_at(keys, from + i), hashes[i], sequence_number)) {
                bit_clear(selection, from + i);
                cleared++;
            }
        }
    }
    return cleared;
}
