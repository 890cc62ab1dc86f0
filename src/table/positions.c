/* table/positions.c - sets of row positions as one 32-bit roaring bitmap for each upper half.
 *
 * Invariants: halves rise and none of their bitmaps is empty; what positions_read takes was checked
 * to the last byte before CRoaring sees it, because version 0.2 of it believes what it reads.
 *
 * Memory: the list of halves comes from the env. The bitmaps are CRoaring's own, from malloc (this
 * version of it takes no other allocator): what they may take is counted in with the env before
 * they grow, and set right when a quarter of it was guessed. So a limit of the env holds for them;
 * where the system itself has no memory left, CRoaring ends the process by a null pointer. */
#include "table/positions.h"

#include <roaring/roaring.h>

#include "base/num.h"

/* The most that a deletion vector of Iceberg's own library holds: its upper halves are indices of
 * a Java array. */
#define HALF_MAX     UINT32_C(0x7ffffffe)
#define POSITION_MAX ((int64_t)(((uint64_t)HALF_MAX << 32) | UINT32_C(0x80000000)))

/* Roaring format specification, "Cookie header". */
#define COOKIE_NO_RUNS     12346u
#define COOKIE_RUNS        12347u
#define OFFSETS_FROM       4     /* with runs, fewer containers have no offsets */
#define ARRAY_MAX          4096u /* values of an array container */
#define BITSET_BYTES       8192u
#define CONTAINERS_MAX     65536u
#define BITMAP_BYTES_LEAST 8u /* of a bitmap without containers */
#define VALUES_AT_ONCE     1024
#define CONTAINER_EXTRA    64u /* memory of a container beside its values, with its two blocks */
#define VALUE_BYTES_MOST   80u /* what one more value may take: a container of its own */

typedef struct half {
    uint32_t upper;
    roaring_bitmap_t *bits;
    size_t counted; /* with the env: at least what bits take */
    size_t known;   /* what they took when that was last looked at */
} half;

struct tarn_positions {
    tarn_env *env;
    half *halves; /* by upper, rising */
    size_t n_halves;
    size_t cap;
};

/* ---- memory ---- */

/* What a bitmap takes, rather more: arrays may have room for half as much again. (CRoaring's own
 * statistics tell kinds of containers apart, but look at each value.) */
static size_t memory_of(const roaring_bitmap_t *bits) {
    size_t bytes = roaring_bitmap_portable_size_in_bytes(bits);
    return sizeof *bits + bytes + bytes / 2 +
           (size_t)bits->high_low_container.size * CONTAINER_EXTRA;
}

static tarn_code no_room(tarn_error *err) {
    return err_set(err, TARN_NOMEM, "out of memory: a set of row positions found no room");
}

/* After bits grew: small guesses are left, so that looking costs little beside the growing. */
static void settle(tarn_positions *p, half *h) {
    if (h->counted - h->known <= h->known / 4 + 256) {
        return;
    }
    size_t now = memory_of(h->bits);
    if (now < h->counted) {
        env_count_out(p->env, h->counted - now);
        h->counted = now;
    }
    h->known = h->counted;
}

tarn_code positions_new(tarn_env *env, tarn_positions **out, tarn_error *err) {
    tarn_positions *p = env_calloc(env, 1, sizeof *p);
    if (p == NULL) {
        return err_nomem(err);
    }
    p->env = env;
    *out = p;
    return TARN_OK;
}

void positions_free(tarn_positions *p) {
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->n_halves; i++) {
        roaring_bitmap_free(p->halves[i].bits);
        env_count_out(p->env, p->halves[i].counted);
    }
    env_free(p->env, p->halves);
    env_free(p->env, p);
}

/* The index of the first half that is not below upper. */
static size_t find_half(const tarn_positions *p, uint32_t upper) {
    size_t low = 0;
    size_t high = p->n_halves;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->halves[middle].upper < upper) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const roaring_bitmap_t *get_half(const tarn_positions *p, uint32_t upper) {
    size_t i = find_half(p, upper);
    return i < p->n_halves && p->halves[i].upper == upper ? p->halves[i].bits : NULL;
}

/* Puts bits at index i: takes them, and what was counted in for them, in any case. */
static tarn_code put_half(tarn_positions *p, size_t i, uint32_t upper, roaring_bitmap_t *bits,
                          size_t counted, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (bits == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (p->n_halves == p->cap) {
        size_t cap = p->cap == 0 ? 1 : p->cap * 2;
        half *halves = env_realloc(p->env, p->halves, cap * sizeof *halves);
        if (halves == NULL) {
            code = err_nomem(err);
            goto done;
        }
        p->halves = halves;
        p->cap = cap;
    }
    memmove(p->halves + i + 1, p->halves + i, (p->n_halves - i) * sizeof *p->halves);
    p->halves[i] = (half){upper, bits, counted, 0};
    p->n_halves++;
    settle(p, &p->halves[i]);
    bits = NULL;
    counted = 0;
done:
    if (bits != NULL) {
        roaring_bitmap_free(bits);
    }
    env_count_out(p->env, counted);
    return code;
}

/* The half of this upper one, made where there is none: the caller puts a value into it. */
static tarn_code make_half(tarn_positions *p, uint32_t upper, half **out, tarn_error *err) {
    size_t i = find_half(p, upper);
    if (i == p->n_halves || p->halves[i].upper != upper) {
        if (!env_count_in(p->env, sizeof(roaring_bitmap_t))) {
            return no_room(err);
        }
        tarn_code code =
            put_half(p, i, upper, roaring_bitmap_create(), sizeof(roaring_bitmap_t), err);
        if (code != TARN_OK) {
            return code;
        }
    }
    *out = &p->halves[i];
    return TARN_OK;
}

static uint32_t upper_of(int64_t position) {
    return (uint32_t)((uint64_t)position >> 32);
}

static tarn_code add_values(tarn_positions *p, uint32_t upper, const uint32_t *values, size_t n,
                            tarn_error *err) {
    half *h = NULL;
    if (!env_count_in(p->env, n * VALUE_BYTES_MOST)) {
        return no_room(err);
    }
    tarn_code code = make_half(p, upper, &h, err);
    if (code != TARN_OK) {
        env_count_out(p->env, n * VALUE_BYTES_MOST);
        return code;
    }
    h->counted += n * VALUE_BYTES_MOST;
    roaring_bitmap_add_many(h->bits, n, values);
    settle(p, h);
    return TARN_OK;
}

tarn_code positions_add(tarn_positions *p, const int64_t *positions, size_t n, tarn_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (positions[i] < 0 || positions[i] > POSITION_MAX) {
            return err_set(err, TARN_INVALID, "row position %lld was not between 0 and %lld",
                           (long long)positions[i], (long long)POSITION_MAX);
        }
    }
    uint32_t values[VALUES_AT_ONCE];
    tarn_code code = TARN_OK;
    for (size_t i = 0; i < n && code == TARN_OK;) {
        uint32_t upper = upper_of(positions[i]);
        size_t got = 0;
        do {
            values[got++] = (uint32_t)positions[i++];
        } while (got < VALUES_AT_ONCE && i < n && upper_of(positions[i]) == upper);
        code = add_values(p, upper, values, got, err);
    }
    return code;
}

tarn_code positions_add_all(tarn_positions *p, const tarn_positions *from, tarn_error *err) {
    for (size_t k = 0; k < from->n_halves; k++) {
        const half *other = &from->halves[k];
        size_t i = find_half(p, other->upper);
        bool there = i < p->n_halves && p->halves[i].upper == other->upper;
        if (!env_count_in(p->env, other->counted)) {
            return no_room(err);
        }
        if (there) {
            p->halves[i].counted += other->counted;
            roaring_bitmap_or_inplace(p->halves[i].bits, other->bits);
            settle(p, &p->halves[i]);
            continue;
        }
        tarn_code code =
            put_half(p, i, other->upper, roaring_bitmap_copy(other->bits), other->counted, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

bool positions_has(const tarn_positions *p, int64_t position) {
    if (position < 0) {
        return false;
    }
    const roaring_bitmap_t *bits = get_half(p, upper_of(position));
    return bits != NULL && roaring_bitmap_contains(bits, (uint32_t)position);
}

int64_t positions_count(const tarn_positions *p) {
    int64_t count = 0;
    for (size_t i = 0; i < p->n_halves; i++) {
        count += (int64_t)roaring_bitmap_get_cardinality(p->halves[i].bits);
    }
    return count;
}

int64_t positions_max(const tarn_positions *p) {
    if (p->n_halves == 0) {
        return -1;
    }
    const half *last = &p->halves[p->n_halves - 1];
    return (int64_t)(((uint64_t)last->upper << 32) | roaring_bitmap_maximum(last->bits));
}

size_t positions_bytes(const tarn_positions *p) {
    size_t bytes = sizeof *p + p->cap * sizeof *p->halves;
    for (size_t i = 0; i < p->n_halves; i++) {
        bytes += p->halves[i].counted;
    }
    return bytes;
}

/* Clears what bits has from first to last (both in). at: the bit of keep that means value 0. */
static int64_t clear_half(const roaring_bitmap_t *bits, uint32_t first, uint32_t last, int64_t at,
                          uint8_t *keep) {
    roaring_uint32_iterator_t it;
    uint32_t values[VALUES_AT_ONCE];
    int64_t cleared = 0;
    roaring_init_iterator(bits, &it);
    if (!roaring_move_uint32_iterator_equalorlarger(&it, first)) {
        return 0;
    }
    while (it.has_value && it.current_value <= last) {
        uint32_t got = roaring_read_uint32_iterator(&it, values, VALUES_AT_ONCE);
        for (uint32_t i = 0; i < got && values[i] <= last; i++) {
            int64_t bit = at + values[i];
            cleared += bit_get(keep, bit);
            bit_clear(keep, bit);
        }
    }
    return cleared;
}

int64_t positions_clear(const tarn_positions *p, int64_t start, int64_t n, uint8_t *keep) {
    int64_t cleared = 0;
    if (n <= 0 || start < 0) {
        return 0;
    }
    int64_t end = start > INT64_MAX - n ? INT64_MAX : start + n - 1; /* in */
    for (size_t i = find_half(p, upper_of(start)); i < p->n_halves; i++) {
        int64_t base = (int64_t)((uint64_t)p->halves[i].upper << 32);
        if (base > end) {
            break;
        }
        uint32_t first = start > base ? (uint32_t)(start - base) : 0;
        uint32_t last = end - base >= UINT32_MAX ? UINT32_MAX : (uint32_t)(end - base);
        cleared += clear_half(p->halves[i].bits, first, last, base - start, keep);
    }
    return cleared;
}

size_t positions_from(const tarn_positions *p, int64_t from, int64_t *out, size_t cap) {
    uint32_t values[VALUES_AT_ONCE];
    size_t n = 0;
    from = from < 0 ? 0 : from;
    for (size_t i = find_half(p, upper_of(from)); i < p->n_halves && n < cap; i++) {
        uint64_t base = (uint64_t)p->halves[i].upper << 32;
        roaring_uint32_iterator_t it;
        roaring_init_iterator(p->halves[i].bits, &it);
        if (p->halves[i].upper == upper_of(from)) {
            (void)roaring_move_uint32_iterator_equalorlarger(&it, (uint32_t)from);
        }
        while (it.has_value && n < cap) {
            size_t most = cap - n < VALUES_AT_ONCE ? cap - n : VALUES_AT_ONCE;
            uint32_t got = roaring_read_uint32_iterator(&it, values, (uint32_t)most);
            for (uint32_t v = 0; v < got; v++) {
                out[n++] = (int64_t)(base | values[v]);
            }
        }
    }
    return n;
}

void positions_list(const tarn_positions *p, int64_t *out) {
    (void)positions_from(p, 0, out, SIZE_MAX);
}

/* Puffin spec, "deletion-vector-v1 blob type": number of bitmaps, then for each its upper half and
 * the 32-bit bitmap. Runs make it small, and are made in a copy. */
static tarn_code write_half(tarn_env *env, const half *h, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!env_count_in(env, h->counted)) {
        return no_room(err);
    }
    roaring_bitmap_t *bits = roaring_bitmap_copy(h->bits);
    if (bits == NULL) {
        code = err_nomem(err);
        goto done;
    }
    (void)roaring_bitmap_run_optimize(bits);
    size_t bytes = roaring_bitmap_portable_size_in_bytes(bits);
    TRY(buf_append(out, &h->upper, sizeof h->upper, err));
    TRY(buf_reserve(out, bytes, err));
    out->len += roaring_bitmap_portable_serialize(bits, (char *)out->data + out->len);
done:
    if (bits != NULL) {
        roaring_bitmap_free(bits);
    }
    env_count_out(env, h->counted);
    return code;
}

tarn_code positions_write(const tarn_positions *p, tarn_buf *out, tarn_error *err) {
    uint64_t n = p->n_halves;
    tarn_code code = buf_append(out, &n, sizeof n, err);
    for (size_t i = 0; code == TARN_OK && i < p->n_halves; i++) {
        code = write_half(p->env, &p->halves[i], out, err);
    }
    return code;
}

/* Bytes being checked. */
typedef struct cursor {
    const uint8_t *start, *at, *end;
} cursor;

static tarn_code corrupt(const cursor *c, const char *what, tarn_error *err) {
    return err_set(err, TARN_CORRUPT, "byte %lld of the position bitmap: %s",
                   (long long)(c->at - c->start), what);
}

static bool holds(const cursor *c, size_t bytes) {
    return (size_t)(c->end - c->at) >= bytes;
}

static tarn_code check_array(cursor *c, uint32_t count, tarn_error *err) {
    if (!holds(c, (size_t)count * 2)) {
        return corrupt(c, "an array container was cut off", err);
    }
    uint16_t before = num_load_u16(c->at);
    for (uint32_t i = 1; i < count; i++) {
        uint16_t value = num_load_u16(c->at + (size_t)i * 2);
        if (value <= before) {
            return corrupt(c, "the values of an array container did not rise", err);
        }
        before = value;
    }
    c->at += (size_t)count * 2;
    return TARN_OK;
}

static tarn_code check_bitset(cursor *c, uint32_t count, tarn_error *err) {
    if (!holds(c, BITSET_BYTES)) {
        return corrupt(c, "a bitset container was cut off", err);
    }
    if (bit_count(c->at, 0, (int64_t)BITSET_BYTES * 8) != (int64_t)count) {
        return corrupt(c, "a bitset container did not hold as many values as its header says", err);
    }
    c->at += BITSET_BYTES;
    return TARN_OK;
}

static tarn_code check_runs(cursor *c, uint32_t count, tarn_error *err) {
    if (!holds(c, 2)) {
        return corrupt(c, "a run container was cut off", err);
    }
    uint32_t n = num_load_u16(c->at);
    if (!holds(c, 2 + (size_t)n * 4)) {
        return corrupt(c, "a run container was cut off", err);
    }
    const uint8_t *runs = c->at + 2;
    uint32_t least = 0;
    uint32_t held = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = num_load_u16(runs + (size_t)i * 4);
        uint32_t more = num_load_u16(runs + (size_t)i * 4 + 2);
        if (first < least || first + more > UINT16_MAX) {
            return corrupt(c, "the runs of a run container did not rise", err);
        }
        least = first + more + 2; /* runs that touch would be one */
        held += more + 1;
    }
    if (held != count) {
        return corrupt(c, "a run container did not hold as many values as its header says", err);
    }
    c->at += 2 + (size_t)n * 4;
    return TARN_OK;
}

/* What stands in front of a bitmap's containers. */
typedef struct bitmap_header {
    uint32_t n;
    const uint8_t *runs;    /* a bit a container; NULL: none */
    const uint8_t *keys;    /* key and count - 1, 16 bits each */
    const uint8_t *offsets; /* NULL: none */
} bitmap_header;

static tarn_code read_header(cursor *c, bitmap_header *h, tarn_error *err) {
    *h = (bitmap_header){0};
    if (!holds(c, 4)) {
        return corrupt(c, "a bitmap was cut off", err);
    }
    uint32_t cookie = num_load_u32(c->at);
    if ((cookie & 0xffff) == COOKIE_RUNS) {
        h->n = (cookie >> 16) + 1;
        h->runs = c->at + 4;
        if (!holds(c, 4 + bit_bytes(h->n))) {
            return corrupt(c, "a bitmap was cut off", err);
        }
        c->at += 4 + bit_bytes(h->n);
    } else if (cookie == COOKIE_NO_RUNS && holds(c, 8)) {
        h->n = num_load_u32(c->at + 4);
        if (h->n > CONTAINERS_MAX) {
            return corrupt(c, "a bitmap claimed more than 65536 containers", err);
        }
        c->at += 8;
    } else {
        return corrupt(c, "a bitmap did not begin with a cookie of the roaring format", err);
    }
    bool offsets = h->runs == NULL || h->n >= OFFSETS_FROM;
    if (!holds(c, (size_t)h->n * (offsets ? 8 : 4))) {
        return corrupt(c, "the headers of a bitmap's containers were cut off", err);
    }
    h->keys = c->at;
    h->offsets = offsets ? c->at + (size_t)h->n * 4 : NULL;
    c->at += (size_t)h->n * (offsets ? 8 : 4);
    return TARN_OK;
}

/* Checks one 32-bit bitmap and moves behind it. */
static tarn_code check_bitmap(cursor *c, uint32_t *n_containers, tarn_error *err) {
    const uint8_t *start = c->at;
    bitmap_header h;
    tarn_code code = read_header(c, &h, err);
    for (uint32_t i = 0; code == TARN_OK && i < h.n; i++) {
        const uint8_t *key = h.keys + (size_t)i * 4;
        uint32_t count = (uint32_t)num_load_u16(key + 2) + 1;
        if (i > 0 && num_load_u16(key) <= num_load_u16(key - 4)) {
            return corrupt(c, "the keys of a bitmap's containers did not rise", err);
        }
        if (h.offsets != NULL &&
            num_load_u32(h.offsets + (size_t)i * 4) != (uint64_t)(c->at - start)) {
            return corrupt(c, "a container did not lie where its offset says", err);
        }
        if (h.runs != NULL && bit_get(h.runs, i)) {
            code = check_runs(c, count, err);
        } else if (count <= ARRAY_MAX) {
            code = check_array(c, count, err);
        } else {
            code = check_bitset(c, count, err);
        }
    }
    *n_containers = h.n;
    return code;
}

/* One bitmap of a set, put behind those of p; empty ones (Iceberg writes them for halves between)
 * are dropped. */
static tarn_code read_half(cursor *c, int64_t *before, tarn_positions *p, tarn_error *err) {
    if (!holds(c, 4 + BITMAP_BYTES_LEAST)) {
        return corrupt(c, "a bitmap was cut off", err);
    }
    uint32_t upper = num_load_u32(c->at);
    if (upper > HALF_MAX || (int64_t)upper <= *before) {
        return corrupt(c, "the upper halves of positions did not rise from 0 to 2147483646", err);
    }
    *before = upper;
    c->at += 4;
    const uint8_t *bytes = c->at;
    uint32_t n_containers = 0;
    tarn_code code = check_bitmap(c, &n_containers, err);
    if (code != TARN_OK || n_containers == 0) {
        return code;
    }
    size_t len = (size_t)(c->at - bytes);
    size_t memory =
        sizeof(roaring_bitmap_t) + len + len / 2 + (size_t)n_containers * CONTAINER_EXTRA;
    if (!env_count_in(p->env, memory)) {
        return no_room(err);
    }
    return put_half(p, p->n_halves, upper,
                    roaring_bitmap_portable_deserialize_safe((const char *)bytes, len), memory,
                    err);
}

tarn_code positions_read(tarn_env *env, const uint8_t *bytes, size_t len, tarn_positions **out,
                         tarn_error *err) {
    cursor c = {bytes, bytes, bytes + len};
    tarn_positions *p = NULL;
    int64_t before = -1;
    if (len < 8) {
        return corrupt(&c, "the number of bitmaps was cut off", err);
    }
    uint64_t n = num_load_u64(bytes);
    if (n > (len - 8) / (4 + BITMAP_BYTES_LEAST)) {
        return corrupt(&c, "more bitmaps were claimed than the bytes could hold", err);
    }
    c.at += 8;
    tarn_code code = positions_new(env, &p, err);
    for (uint64_t i = 0; code == TARN_OK && i < n; i++) {
        code = read_half(&c, &before, p, err);
    }
    if (code == TARN_OK && c.at != c.end) {
        code = corrupt(&c, "bytes followed the last bitmap", err);
    }
    if (code != TARN_OK) {
        positions_free(p);
        return code;
    }
    *out = p;
    return TARN_OK;
}
