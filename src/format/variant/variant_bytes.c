/* format/variant/variant_bytes.c - a variant's bytes taken apart: the dictionary, objects, arrays,
 * sizes of values. Nothing is read outside of what was given. */
#include "format/variant/variant.h"

#include "base/num.h"

static uint32_t load_le(const uint8_t *p, uint32_t size) {
    uint8_t word[4] = {0};
    memcpy(word, p, size);
    return num_load_u32(word);
}

/* ---- names ---- */

const char *variant_open_names(tarn_str metadata, variant_names *out) {
    const uint8_t *p = (const uint8_t *)metadata.data;
    if (metadata.len < 1 || (p[0] & 15) != 1) {
        return "metadata of another version";
    }
    out->offset_size = (uint32_t)(p[0] >> 6) + 1;
    if (metadata.len < 1 + out->offset_size) {
        return "short metadata";
    }
    out->count = load_le(p + 1, out->offset_size);
    const uint64_t head = 1 + (uint64_t)out->offset_size * ((uint64_t)out->count + 2);
    if (head > metadata.len) {
        return "short metadata";
    }
    out->offsets = p + 1 + out->offset_size;
    out->bytes = p + head;
    out->bytes_len = metadata.len - (size_t)head;
    return NULL;
}

bool variant_name(const variant_names *n, uint32_t id, tarn_str *out) {
    if (id >= n->count) {
        return false;
    }
    const uint32_t start = load_le(n->offsets + (size_t)id * n->offset_size, n->offset_size);
    const uint32_t end = load_le(n->offsets + ((size_t)id + 1) * n->offset_size, n->offset_size);
    if (start > end || end > n->bytes_len) {
        return false;
    }
    *out = str_make(n->bytes + start, end - start);
    return true;
}

bool variant_find_name(const variant_names *n, tarn_str name, uint32_t *id) {
    tarn_str other;
    for (uint32_t i = 0; i < n->count; i++) {
        if (variant_name(n, i, &other) && str_eq(name, other)) {
            *id = i;
            return true;
        }
    }
    return false;
}

/* ---- objects and arrays ---- */

bool variant_open_container(tarn_str bytes, variant_container *c) {
    const uint8_t *p = (const uint8_t *)bytes.data;
    const uint32_t header = p[0] >> 2;
    const bool object = (p[0] & 3) == VARIANT_BASIC_OBJECT;
    const uint32_t count_size = (header >> (object ? 4 : 2) & 1) != 0 ? 4 : 1;
    c->offset_size = (header & 3) + 1;
    c->id_size = object ? (header >> 2 & 3) + 1 : 0;
    if (bytes.len < 1 + count_size) {
        return false;
    }
    c->count = load_le(p + 1, count_size);
    const uint64_t head = 1 + count_size + (uint64_t)c->count * c->id_size +
                          ((uint64_t)c->count + 1) * c->offset_size;
    if (head > bytes.len) {
        return false;
    }
    c->ids = p + 1 + count_size;
    c->offsets = c->ids + (size_t)c->count * c->id_size;
    c->content = p + head;
    const uint32_t last = load_le(c->offsets + (size_t)c->count * c->offset_size, c->offset_size);
    c->content_len = last;
    return last <= bytes.len - head;
}

uint32_t variant_id(const variant_container *c, uint32_t i) {
    return load_le(c->ids + (size_t)i * c->id_size, c->id_size);
}

bool variant_item(const variant_container *c, uint32_t i, tarn_str *out) {
    const uint32_t at = load_le(c->offsets + (size_t)i * c->offset_size, c->offset_size);
    if (at > c->content_len) {
        return false;
    }
    const size_t size = variant_size(str_make(c->content + at, c->content_len - at));
    *out = str_make(c->content + at, size);
    return size > 0;
}

size_t variant_size(tarn_str data) {
    static const uint8_t sizes[] = {1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18,
                                    5, 9, 9, 5, 0, 0, 9, 9, 9, 17};
    if (data.len == 0) {
        return 0;
    }
    const uint8_t *p = (const uint8_t *)data.data;
    const uint32_t header = p[0] >> 2;
    size_t size = 0;
    variant_container c;
    switch (p[0] & 3) {
    case VARIANT_BASIC_SHORT_STRING:
        size = 1 + header;
        break;
    case VARIANT_BASIC_PRIMITIVE:
        if (header == VARIANT_BINARY || header == VARIANT_STRING) {
            size = data.len >= 5 ? 5 + (size_t)num_load_u32(p + 1) : 0;
        } else {
            size = header < sizeof sizes ? sizes[header] : 0;
        }
        break;
    default:
        size = variant_open_container(data, &c) ? (size_t)(c.content - p) + c.content_len : 0;
        break;
    }
    return size <= data.len ? size : 0;
}
