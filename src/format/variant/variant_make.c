/* format/variant/variant_make.c - variant bytes made, for shredded ones that are put together again
 * and for those that come as JSON. Invariant: sizes are the smallest that do, members of an object
 * are sorted by name. */
#include "format/variant/variant.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/num.h"

/* A member of an object or item of an array that is open. */
typedef struct member {
    tarn_str name;
    uint32_t id;
    size_t start; /* of its bytes within the content */
} member;

#define SHORT_STRING_MAX 63
#define SMALL_COUNT_MAX  255
#define SORTED_NAMES     0x11 /* version 1, sorted */

void variant_maker_init(variant_maker *m, tarn_env *env) {
    buf_init(&m->out, env, LIMIT_BATCH_BYTES);
    buf_init(&m->members, env, LIMIT_BATCH_BYTES);
    buf_init(&m->names, env, LIMIT_BATCH_BYTES);
}

void variant_maker_release(variant_maker *m) {
    buf_release(&m->out);
    buf_release(&m->members);
    buf_release(&m->names);
}

void variant_maker_reset(variant_maker *m) {
    buf_reset(&m->out);
    buf_reset(&m->members);
    buf_reset(&m->names);
}

static uint32_t bytes_for(size_t top) {
    return top < 1u << 8 ? 1 : top < 1u << 16 ? 2 : top < 1u << 24 ? 3 : 4;
}

static void put_le(uint8_t **at, size_t v, uint32_t size) {
    const uint32_t word = (uint32_t)v;
    memcpy(*at, &word, size);
    *at += size;
}

/* ---- primitives ---- */

tarn_code variant_put_primitive(variant_maker *m, int primitive, const void *payload, size_t len,
                                tarn_error *err) {
    tarn_code code = buf_append_char(&m->out, (char)(primitive << 2), err);
    return code == TARN_OK ? buf_append(&m->out, payload, len, err) : code;
}

tarn_code variant_put_text(variant_maker *m, int primitive, tarn_str text, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (primitive == VARIANT_STRING && text.len <= SHORT_STRING_MAX) {
        code = buf_append_char(&m->out, (char)(text.len << 2 | VARIANT_BASIC_SHORT_STRING), err);
    } else {
        const uint32_t len = (uint32_t)text.len;
        code = variant_put_primitive(m, primitive, &len, 4, err);
    }
    return code == TARN_OK ? buf_append_str(&m->out, text, err) : code;
}

tarn_code variant_put_decimal(variant_maker *m, int primitive, int32_t scale, tarn_int128 v,
                              tarn_error *err) {
    uint8_t payload[17];
    payload[0] = (uint8_t)scale;
    num_store_i128(payload + 1, v);
    return variant_put_primitive(m, primitive, payload,
                                 1 + (size_t)(4 << (primitive - VARIANT_DECIMAL4)), err);
}

/* ---- objects and arrays ---- */

variant_mark variant_begin(const variant_maker *m) {
    return (variant_mark){m->out.len, m->members.len / sizeof(member)};
}

tarn_code variant_put_member(variant_maker *m, variant_mark mark, size_t at, tarn_str name,
                             uint32_t id, tarn_error *err) {
    const member one = {name, id, at - mark.start};
    return buf_append(&m->members, &one, sizeof one, err);
}

static int by_name(const void *a, const void *b) {
    return str_cmp(((const member *)a)->name, ((const member *)b)->name);
}

/* Sorts the members of an object. */
static size_t order_members(member *members, size_t n, bool *twice) {
    size_t top_id = 0;
    if (n > 1) {
        qsort(members, n, sizeof *members, by_name);
    }
    for (size_t i = 0; i < n; i++) {
        top_id = members[i].id > top_id ? members[i].id : top_id;
        *twice = *twice || (i > 0 && str_eq(members[i].name, members[i - 1].name));
    }
    return top_id;
}

tarn_code variant_end(variant_maker *m, bool object, variant_mark mark, bool *twice,
                      tarn_error *err) {
    const size_t n = m->members.len / sizeof(member) - mark.first;
    member *members = n > 0 ? (member *)(void *)m->members.data + mark.first : NULL;
    const size_t len = m->out.len - mark.start;
    bool same = false;
    const size_t top_id = object ? order_members(members, n, &same) : 0;
    if (same) {
        *twice = true;
        return TARN_OK;
    }
    const uint32_t offset_size = bytes_for(len), id_size = object ? bytes_for(top_id) : 0;
    const bool large = n > SMALL_COUNT_MAX;
    const size_t head = 1 + (large ? 4u : 1u) + n * id_size + (n + 1) * offset_size;
    tarn_code code = buf_reserve(&m->out, head, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *at = m->out.data + mark.start;
    memmove(at + head, at, len);
    m->out.len += head;
    const uint32_t header = object ? (large ? 16u : 0) | (id_size - 1) << 2 | (offset_size - 1)
                                   : (large ? 4u : 0) | (offset_size - 1);
    *at++ = (uint8_t)(header << 2 | (object ? VARIANT_BASIC_OBJECT : VARIANT_BASIC_ARRAY));
    put_le(&at, n, large ? 4 : 1);
    for (size_t i = 0; object && i < n; i++) {
        put_le(&at, members[i].id, id_size);
    }
    for (size_t i = 0; i < n; i++) {
        put_le(&at, members[i].start, offset_size);
    }
    put_le(&at, len, offset_size);
    m->members.len = mark.first * sizeof *members;
    return TARN_OK;
}

/* ---- the dictionary ---- */

tarn_code variant_put_names(const tarn_str *names, size_t n, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        len += names[i].len;
    }
    const uint32_t size = bytes_for(len > n ? len : n);
    const size_t head = 1 + size * (n + 2);
    TRY(buf_reserve(out, head + len, err));
    uint8_t *at = out->data + out->len;
    size_t offset = 0;
    *at++ = (uint8_t)(SORTED_NAMES | (size - 1) << 6);
    put_le(&at, n, size);
    put_le(&at, 0, size);
    for (size_t i = 0; i < n; i++) {
        offset += names[i].len;
        put_le(&at, offset, size);
    }
    out->len += head;
    for (size_t i = 0; i < n; i++) {
        TRY(buf_append_str(out, names[i], err));
    }
done:
    return code;
}
