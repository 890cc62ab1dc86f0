/* encode_dict.c - see encode_dict.h. Open addressing with linear probes; one loop per width so that
 * hash and comparison are inline. */
#include "format/parquet/encode_dict.h"

#define SLOTS_FIRST    256u
#define SLOTS_KEEP     16384u /* more are given back at reset */
#define SLOTS_MAX      (1u << 30)
#define PROBES_MAX     256u
#define AHEAD          32 /* values whose slots are asked for before the first is looked at */
#define HASH_K1        UINT64_C(0x9E3779B97F4A7C15)
#define HASH_K2        UINT64_C(0xD6E8FEB86659FD93)
#define DICT_BYTES_MAX INT32_MAX

void encode_dict_init(encode_dict *dict, tarn_env *env, size_t width, size_t max_bytes) {
    memset(dict, 0, sizeof *dict);
    dict->env = env;
    dict->width = width;
    dict->max_bytes = max_bytes < DICT_BYTES_MAX ? max_bytes : DICT_BYTES_MAX;
    buf_init(&dict->values, env, 0);
    buf_init(&dict->starts, env, 0);
}

void encode_dict_release(encode_dict *dict) {
    if (dict->env != NULL) {
        env_free(dict->env, dict->slots);
        buf_release(&dict->values);
        buf_release(&dict->starts);
    }
    memset(dict, 0, sizeof *dict);
}

void encode_dict_reset(encode_dict *dict) {
    if (dict->n_slots > SLOTS_KEEP || dict->count == 0) {
        encode_dict empty;
        encode_dict_init(&empty, dict->env, dict->width, dict->max_bytes);
        encode_dict_release(dict);
        *dict = empty;
        return;
    }
    memset(dict->slots, 0, dict->n_slots * sizeof *dict->slots);
    dict->count = 0;
    buf_reset(&dict->values);
    buf_reset(&dict->starts);
}

size_t encode_dict_memory(const encode_dict *dict) {
    return dict->n_slots * sizeof *dict->slots + dict->values.cap + dict->starts.cap;
}

/* Where the probe for a tag begins. Tags of 4-byte values are the values themselves. */
static inline uint32_t first_slot(const encode_dict *dict, uint32_t tag) {
    return (uint32_t)((tag * HASH_K1) >> 32) & (dict->n_slots - 1);
}

static tarn_code grow_slots(encode_dict *dict, tarn_error *err) {
    uint32_t n = dict->n_slots == 0 ? SLOTS_FIRST : dict->n_slots * 2;
    if (n > SLOTS_MAX) {
        return err_set(err, TARN_LIMIT, "dictionary had more than %u slots", SLOTS_MAX);
    }
    uint64_t *old = dict->slots;
    uint32_t old_n = dict->n_slots;
    uint64_t *slots = env_calloc(dict->env, n, sizeof *slots);
    if (slots == NULL) {
        return err_nomem(err);
    }
    dict->slots = slots;
    dict->n_slots = n;
    for (uint32_t i = 0; i < old_n; i++) {
        if (old[i] != 0) {
            uint32_t at = first_slot(dict, (uint32_t)(old[i] >> 32));
            while (slots[at] != 0) {
                at = (at + 1) & (n - 1);
            }
            slots[at] = old[i];
        }
    }
    env_free(dict->env, old);
    return TARN_OK;
}

/* Room for one more entry of size bytes; *full when the dictionary may not have it. */
static tarn_code make_room(encode_dict *dict, size_t size_bytes, bool *full, tarn_error *err) {
    tarn_code code = TARN_OK;
    *full = dict->values.len + size_bytes > dict->max_bytes;
    if (*full) {
        return TARN_OK;
    }
    if (dict->count >= dict->n_slots / 2) {
        TRY(grow_slots(dict, err));
    }
    TRY(buf_reserve(&dict->values, size_bytes, err));
    if (dict->width == 0) {
        TRY(buf_reserve(&dict->starts, sizeof(uint32_t), err));
    }
done:
    return code;
}

/* Adds a value that was not found; the table may have grown, so its slot is looked up again. */
static tarn_code add_entry(encode_dict *dict, uint32_t tag, const void *value, size_t len,
                           bool *full, tarn_error *err) {
    size_t size_bytes = dict->width == 0 ? len + 4 : len;
    tarn_code code = make_room(dict, size_bytes, full, err);
    if (code != TARN_OK || *full) {
        return code;
    }
    uint32_t at = first_slot(dict, tag);
    uint32_t probes = 0;
    while (dict->slots[at] != 0) {
        at = (at + 1) & (dict->n_slots - 1);
        if (++probes > PROBES_MAX) {
            *full = true;
            return TARN_OK;
        }
    }
    uint8_t *p = dict->values.data + dict->values.len;
    if (dict->width == 0) {
        uint32_t start = (uint32_t)dict->values.len;
        uint32_t len32 = (uint32_t)len;
        memcpy(dict->starts.data + dict->starts.len, &start, sizeof start);
        dict->starts.len += sizeof start;
        memcpy(p, &len32, 4);
        p += 4;
    }
    if (len > 0) {
        memcpy(p, value, len);
    }
    dict->values.len += size_bytes;
    dict->slots[at] = (uint64_t)tag << 32 | ++dict->count;
    return TARN_OK;
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
    tarn_uint128 product = (tarn_uint128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Every byte counts; reads only the value's own bytes, eight at a time by overlapping loads. */
static inline uint32_t tag_of_bytes(const uint8_t *p, size_t len) {
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t seed = HASH_K2;
    if (len > 16) {
        const uint8_t *last = p + len - 16;
        for (; p < last; p += 16) {
            seed = mix(num_load_u64(p) ^ HASH_K1, num_load_u64(p + 8) ^ seed);
        }
        a = num_load_u64(last);
        b = num_load_u64(last + 8);
    } else if (len >= 8) {
        a = num_load_u64(p);
        b = num_load_u64(p + len - 8);
    } else if (len >= 4) {
        a = num_load_u32(p);
        b = num_load_u32(p + len - 4);
    } else if (len > 0) {
        a = (uint64_t)p[0] << 16 | (uint64_t)p[len >> 1] << 8 | p[len - 1];
    }
    uint64_t h = mix(HASH_K1 ^ len, mix(a ^ HASH_K1, b ^ seed));
    return (uint32_t)(h ^ h >> 32);
}

static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len) {
    if (len > 16) {
        return memcmp(a, b, len) == 0;
    }
    if (len >= 8) {
        return ((num_load_u64(a) ^ num_load_u64(b)) |
                (num_load_u64(a + len - 8) ^ num_load_u64(b + len - 8))) == 0;
    }
    if (len >= 4) {
        return ((num_load_u32(a) ^ num_load_u32(b)) |
                (num_load_u32(a + len - 4) ^ num_load_u32(b + len - 4))) == 0;
    }
    return len == 0 || (a[0] == b[0] && a[len >> 1] == b[len >> 1] && a[len - 1] == b[len - 1]);
}

static inline uint32_t tag_of_u64(uint64_t v) {
    uint64_t h = v * HASH_K1;
    h = (h ^ h >> 32) * HASH_K2;
    return (uint32_t)(h >> 32);
}

/* Index of a value, or UINT32_MAX when it is not there. The comparison is given as an expression
 * over `index`, so that each width gets its own tight loop. */
#define FIND_ENTRY(found, tag, same)                                                               \
    do {                                                                                           \
        uint32_t mask_ = dict->n_slots - 1;                                                        \
        uint32_t at_ = first_slot(dict, (tag));                                                    \
        (found) = UINT32_MAX;                                                                      \
        for (uint64_t slot_; (slot_ = dict->slots[at_]) != 0; at_ = (at_ + 1) & mask_) {           \
            uint32_t index = (uint32_t)slot_ - 1;                                                  \
            if ((uint32_t)(slot_ >> 32) == (tag) && (same)) {                                      \
                (found) = index;                                                                   \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static tarn_code index_u32(encode_dict *dict, const uint8_t *values, size_t n, uint32_t *indices,
                           size_t *done_values, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool full = false;
    size_t i = 0;
    for (; i < n; i++) {
        uint32_t tag = num_load_u32(values + i * 4);
        FIND_ENTRY(indices[i], tag, true);
        if (indices[i] == UINT32_MAX) {
            TRY(add_entry(dict, tag, values + i * 4, 4, &full, err));
            if (full) {
                break;
            }
            indices[i] = dict->count - 1;
        }
    }
    *done_values = i;
done:
    return code;
}

static tarn_code index_u64(encode_dict *dict, const uint8_t *values, size_t n, uint32_t *indices,
                           size_t *done_values, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t tags[AHEAD];
    bool full = false;
    size_t i = 0;
    while (i < n && !full) {
        size_t len = n - i < AHEAD ? n - i : AHEAD;
        for (size_t k = 0; k < len; k++) {
            tags[k] = tag_of_u64(num_load_u64(values + (i + k) * 8));
            __builtin_prefetch(&dict->slots[first_slot(dict, tags[k])]);
        }
        for (size_t k = 0; k < len; k++, i++) {
            uint64_t value = num_load_u64(values + i * 8);
            FIND_ENTRY(indices[i], tags[k],
                       num_load_u64(dict->values.data + (size_t)index * 8) == value);
            if (indices[i] == UINT32_MAX) {
                TRY(add_entry(dict, tags[k], values + i * 8, 8, &full, err));
                if (full) {
                    break;
                }
                indices[i] = dict->count - 1;
            }
        }
    }
    *done_values = i;
done:
    return code;
}

static tarn_code index_wide(encode_dict *dict, const uint8_t *values, size_t n, uint32_t *indices,
                            size_t *done_values, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t width = dict->width;
    bool full = false;
    size_t i = 0;
    for (; i < n; i++) {
        const uint8_t *value = values + i * width;
        uint32_t tag = tag_of_bytes(value, width);
        FIND_ENTRY(indices[i], tag,
                   same_bytes(dict->values.data + (size_t)index * width, value, width));
        if (indices[i] == UINT32_MAX) {
            TRY(add_entry(dict, tag, value, width, &full, err));
            if (full) {
                break;
            }
            indices[i] = dict->count - 1;
        }
    }
    *done_values = i;
done:
    return code;
}

tarn_code encode_dict_fixed(encode_dict *dict, const uint8_t *values, size_t n, uint32_t *indices,
                            size_t *done, tarn_error *err) {
    tarn_assert(dict->width > 0);
    if (dict->n_slots == 0) {
        tarn_code code = grow_slots(dict, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    switch (dict->width) {
    case 4:
        return index_u32(dict, values, n, indices, done, err);
    case 8:
        return index_u64(dict, values, n, indices, done, err);
    default:
        return index_wide(dict, values, n, indices, done, err);
    }
}

static inline bool same_entry(const encode_dict *dict, uint32_t index, const uint8_t *value,
                              uint32_t len) {
    const uint32_t *starts = (const uint32_t *)(const void *)dict->starts.data;
    const uint8_t *entry = dict->values.data + starts[index];
    return num_load_u32(entry) == len && same_bytes(entry + 4, value, len);
}

tarn_code encode_dict_bytes(encode_dict *dict, const int32_t *offsets, const uint8_t *bytes,
                            size_t n, uint32_t *indices, size_t *done_values, tarn_error *err) {
    tarn_code code = TARN_OK;
    uint32_t tags[AHEAD];
    bool full = false;
    size_t i = 0;
    tarn_assert(dict->width == 0);
    bytes = bytes != NULL ? bytes : (const uint8_t *)""; /* only empty values */
    if (dict->n_slots == 0) {
        TRY(grow_slots(dict, err));
    }
    while (i < n && !full) {
        size_t ahead = n - i < AHEAD ? n - i : AHEAD;
        for (size_t k = 0; k < ahead; k++) {
            size_t len = (size_t)(offsets[i + k + 1] - offsets[i + k]);
            tags[k] = tag_of_bytes(bytes + offsets[i + k], len);
            __builtin_prefetch(&dict->slots[first_slot(dict, tags[k])]);
        }
        for (size_t k = 0; k < ahead; k++, i++) {
            uint32_t len = (uint32_t)(offsets[i + 1] - offsets[i]);
            const uint8_t *value = bytes + offsets[i];
            FIND_ENTRY(indices[i], tags[k], same_entry(dict, index, value, len));
            if (indices[i] == UINT32_MAX) {
                TRY(add_entry(dict, tags[k], value, len, &full, err));
                if (full) {
                    break;
                }
                indices[i] = dict->count - 1;
            }
        }
    }
    *done_values = i;
done:
    return code;
}

tarn_code encode_dict_expand(const encode_dict *dict, const uint32_t *indices, size_t n,
                             tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (dict->width > 0) {
        TRY(buf_reserve(out, n * dict->width, err));
        uint8_t *p = out->data + out->len;
        for (size_t i = 0; i < n; i++) {
            memcpy(p, dict->values.data + (size_t)indices[i] * dict->width, dict->width);
            p += dict->width;
        }
        out->len += n * dict->width;
        return TARN_OK;
    }
    for (size_t i = 0; i < n; i++) {
        tarn_str value = encode_dict_value(dict, indices[i]);
        TRY(buf_append(out, value.data - 4, value.len + 4, err));
    }
done:
    return code;
}
