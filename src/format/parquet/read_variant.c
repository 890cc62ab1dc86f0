/* format/parquet/read_variant.c - shredded variants put together again (parquet-format,
 * VariantShredding.md and VariantEncoding.md).
 *
 * Each place of a shredded variant is a pair of value and typed_value; what is typed is encoded as
 * variant bytes, objects and arrays from their parts. Containers are written after their content,
 * which is then moved to make room for the header, so that one buffer serves all levels. Field
 * names are found in the row's own metadata. */
#include "format/parquet/parquet_read_int.h"

#include <stdlib.h>

#include "base/limits.h"

enum { BASIC_PRIMITIVE = 0, BASIC_SHORT_STRING = 1, BASIC_OBJECT = 2, BASIC_ARRAY = 3 };

enum {
    PRIMITIVE_NULL = 0,
    PRIMITIVE_TRUE = 1,
    PRIMITIVE_FALSE = 2,
    PRIMITIVE_INT8 = 3,
    PRIMITIVE_INT16 = 4,
    PRIMITIVE_INT32 = 5,
    PRIMITIVE_INT64 = 6,
    PRIMITIVE_DOUBLE = 7,
    PRIMITIVE_DECIMAL4 = 8,
    PRIMITIVE_DECIMAL8 = 9,
    PRIMITIVE_DECIMAL16 = 10,
    PRIMITIVE_DATE = 11,
    PRIMITIVE_TIMESTAMPTZ = 12,
    PRIMITIVE_TIMESTAMP = 13,
    PRIMITIVE_FLOAT = 14,
    PRIMITIVE_BINARY = 15,
    PRIMITIVE_STRING = 16,
    PRIMITIVE_TIME = 17,
    PRIMITIVE_TIMESTAMPTZ_NS = 18,
    PRIMITIVE_TIMESTAMP_NS = 19,
    PRIMITIVE_UUID = 20
};

/* One value and typed_value of the shredded type, with the present batch's views of them. */
typedef struct shred shred;
struct shred {
    tarn_str name; /* of an object's field */
    tarn_view group;
    bool has_group, has_value, has_typed;
    tarn_view value, typed;
    uint8_t primitive; /* of typed, where it is neither object nor array */
    int32_t n_parts;   /* object: fields; array: 1 */
    shred *parts;
};

/* A field of the object that is being made. */
typedef struct member {
    tarn_str name;
    uint32_t id;
    size_t start; /* of its bytes within the object's content */
} member;

/* The dictionary of names of one row. */
typedef struct names {
    const uint8_t *offsets, *bytes;
    size_t bytes_len;
    uint32_t count;
    uint32_t offset_size;
} names;

typedef struct rebuilder {
    const read_column *column;
    tarn_arena *arena;
    tarn_error *err;
    tarn_buf out;
    tarn_buf members; /* a stack of members of the objects that are open */
    names names;
} rebuilder;

static tarn_code bad(const rebuilder *r, const char *problem) {
    return column_error(r->column, TARN_CORRUPT, r->err, "had a variant %s", problem);
}

static uint32_t load_le(const uint8_t *p, uint32_t size) {
    uint8_t word[4] = {0};
    memcpy(word, p, size);
    return num_load_u32(word);
}

/* ---- metadata ---- */

static tarn_code open_names(rebuilder *r, tarn_str metadata) {
    names *n = &r->names;
    const uint8_t *p = (const uint8_t *)metadata.data;
    if (metadata.len < 1 || (p[0] & 15) != 1) {
        return bad(r, "with metadata of another version");
    }
    n->offset_size = (uint32_t)(p[0] >> 6) + 1;
    if (metadata.len < 1 + n->offset_size) {
        return bad(r, "with short metadata");
    }
    n->count = load_le(p + 1, n->offset_size);
    const uint64_t head = 1 + (uint64_t)n->offset_size * ((uint64_t)n->count + 2);
    if (head > metadata.len) {
        return bad(r, "with short metadata");
    }
    n->offsets = p + 1 + n->offset_size;
    n->bytes = p + head;
    n->bytes_len = metadata.len - (size_t)head;
    return TARN_OK;
}

static bool name_of(const names *n, uint32_t id, tarn_str *out) {
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

static bool find_name(const names *n, tarn_str name, uint32_t *id) {
    tarn_str other;
    for (uint32_t i = 0; i < n->count; i++) {
        if (name_of(n, i, &other) && str_eq(name, other)) {
            *id = i;
            return true;
        }
    }
    return false;
}

/* ---- variant bytes that are there already ---- */

typedef struct container { /* an object or array in bytes */
    const uint8_t *ids, *offsets, *content;
    uint32_t count, id_size, offset_size;
    size_t content_len;
} container;

static bool open_container(tarn_str bytes, container *c) {
    const uint8_t *p = (const uint8_t *)bytes.data;
    const uint32_t header = p[0] >> 2;
    const bool object = (p[0] & 3) == BASIC_OBJECT;
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

/* Bytes of the value that data begins with; 0 when it is cut off or unknown. */
static size_t value_size(tarn_str data) {
    static const uint8_t sizes[] = {1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18,
                                    5, 9, 9, 5, 0, 0, 9, 9, 9, 17};
    if (data.len == 0) {
        return 0;
    }
    const uint8_t *p = (const uint8_t *)data.data;
    const uint32_t header = p[0] >> 2;
    size_t size = 0;
    container c;
    switch (p[0] & 3) {
    case BASIC_SHORT_STRING:
        size = 1 + header;
        break;
    case BASIC_PRIMITIVE:
        if (header == PRIMITIVE_BINARY || header == PRIMITIVE_STRING) {
            size = data.len >= 5 ? 5 + (size_t)num_load_u32(p + 1) : 0;
        } else {
            size = header < sizeof sizes ? sizes[header] : 0;
        }
        break;
    default:
        size = open_container(data, &c) ? (size_t)(c.content - p) + c.content_len : 0;
        break;
    }
    return size <= data.len ? size : 0;
}

/* ---- containers of what was put at the end of out ---- */

static uint32_t bytes_for(size_t top) {
    return top < 1u << 8 ? 1 : top < 1u << 16 ? 2 : top < 1u << 24 ? 3 : 4;
}

static void put_le(uint8_t **at, size_t v, uint32_t size) {
    const uint32_t word = (uint32_t)v;
    memcpy(*at, &word, size);
    *at += size;
}

static int by_name(const void *a, const void *b) {
    return str_cmp(((const member *)a)->name, ((const member *)b)->name);
}

/* Puts the header of an object or array before its content, which begins at start. The members from
 * first on are what it holds, and are taken off. */
static tarn_code end_container(rebuilder *r, bool object, size_t start, size_t first) {
    const size_t n = r->members.len / sizeof(member) - first;
    member *m = n > 0 ? (member *)(void *)r->members.data + first : NULL;
    const size_t len = r->out.len - start;
    size_t top_id = 0;
    if (object && n > 1) {
        qsort(m, n, sizeof *m, by_name);
    }
    for (size_t i = 0; i < n; i++) {
        top_id = m[i].id > top_id ? m[i].id : top_id;
        if (object && i > 0 && str_eq(m[i].name, m[i - 1].name)) {
            return bad(r, "with a field twice");
        }
    }
    const uint32_t offset_size = bytes_for(len), id_size = object ? bytes_for(top_id) : 0;
    const bool large = n > 255;
    const size_t head = 1 + (large ? 4u : 1u) + n * id_size + (n + 1) * offset_size;
    tarn_code code = buf_reserve(&r->out, head, r->err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *at = r->out.data + start;
    memmove(at + head, at, len);
    r->out.len += head;
    const uint32_t header = object ? (large ? 16u : 0) | (id_size - 1) << 2 | (offset_size - 1)
                                   : (large ? 4u : 0) | (offset_size - 1);
    *at++ = (uint8_t)(header << 2 | (object ? BASIC_OBJECT : BASIC_ARRAY));
    put_le(&at, n, large ? 4 : 1);
    for (size_t i = 0; object && i < n; i++) {
        put_le(&at, m[i].id, id_size);
    }
    for (size_t i = 0; i < n; i++) {
        put_le(&at, m[i].start, offset_size);
    }
    put_le(&at, len, offset_size);
    r->members.len = first * sizeof *m;
    return TARN_OK;
}

static tarn_code push_member(rebuilder *r, tarn_str name, uint32_t id, size_t start) {
    const member m = {name, id, start};
    return buf_append(&r->members, &m, sizeof m, r->err);
}

/* ---- primitives ---- */

static tarn_code put_primitive(rebuilder *r, int primitive, const void *payload, size_t len) {
    tarn_code code = buf_append_char(&r->out, (char)(primitive << 2), r->err);
    return code == TARN_OK ? buf_append(&r->out, payload, len, r->err) : code;
}

static tarn_code put_text(rebuilder *r, int primitive, tarn_str text) {
    tarn_code code = TARN_OK;
    if (primitive == PRIMITIVE_STRING && text.len < 64) {
        code = buf_append_char(&r->out, (char)(text.len << 2 | BASIC_SHORT_STRING), r->err);
    } else {
        const uint32_t len = (uint32_t)text.len;
        code = put_primitive(r, primitive, &len, 4);
    }
    return code == TARN_OK ? buf_append_str(&r->out, text, r->err) : code;
}

static tarn_code put_typed(rebuilder *r, const shred *s, int64_t i) {
    tarn_value v;
    view_value(&s->typed, i, &v);
    uint8_t decimal[17];
    switch (s->primitive) {
    case PRIMITIVE_TRUE:
        return put_primitive(r, v.as.boolean ? PRIMITIVE_TRUE : PRIMITIVE_FALSE, NULL, 0);
    case PRIMITIVE_INT8:
        return put_primitive(r, s->primitive, &v.as, 1);
    case PRIMITIVE_INT16:
        return put_primitive(r, s->primitive, &v.as, 2);
    case PRIMITIVE_INT32:
    case PRIMITIVE_DATE:
    case PRIMITIVE_FLOAT:
        return put_primitive(r, s->primitive, &v.as, 4);
    case PRIMITIVE_DECIMAL4:
    case PRIMITIVE_DECIMAL8:
    case PRIMITIVE_DECIMAL16:
        decimal[0] = (uint8_t)v.type->scale;
        num_store_i128(decimal + 1, v.as.i128);
        return put_primitive(r, s->primitive, decimal,
                             1 + (size_t)(4 << (s->primitive - PRIMITIVE_DECIMAL4)));
    case PRIMITIVE_BINARY:
    case PRIMITIVE_STRING:
        return put_text(r, s->primitive, v.as.bytes);
    case PRIMITIVE_UUID:
        return put_primitive(r, s->primitive, v.as.bytes.data, 16);
    default:
        return put_primitive(r, s->primitive, &v.as, 8);
    }
}

/* ---- one place of a row ---- */

static tarn_code put_place(rebuilder *r, const shred *s, int64_t i, bool *missing);

/* A place that must not be missing: then it is a variant null. */
static tarn_code put_or_null(rebuilder *r, const shred *s, int64_t i) {
    bool missing = false;
    tarn_code code = put_place(r, s, i, &missing);
    return code == TARN_OK && missing ? put_primitive(r, PRIMITIVE_NULL, NULL, 0) : code;
}

static bool is_shredded_name(const shred *s, tarn_str name) {
    for (int32_t k = 0; k < s->n_parts; k++) {
        if (str_eq(s->parts[k].name, name)) {
            return true;
        }
    }
    return false;
}

/* The fields that are not shredded. One that is shredded too is left out: the typed one counts. */
static tarn_code put_residual(rebuilder *r, const shred *s, tarn_str bytes, size_t start) {
    container c;
    if (bytes.len == 0 || (bytes.data[0] & 3) != BASIC_OBJECT) {
        return bad(r, "that was no object but had shredded fields");
    }
    if (!open_container(bytes, &c)) {
        return bad(r, "whose object was cut off");
    }
    for (uint32_t k = 0; k < c.count; k++) {
        const uint32_t id = load_le(c.ids + (size_t)k * c.id_size, c.id_size);
        const uint32_t at = load_le(c.offsets + (size_t)k * c.offset_size, c.offset_size);
        tarn_str name;
        if (!name_of(&r->names, id, &name) || at > c.content_len) {
            return bad(r, "whose object had a bad field");
        }
        const size_t size = value_size(str_make(c.content + at, c.content_len - at));
        if (size == 0) {
            return bad(r, "whose object had a bad value");
        }
        if (is_shredded_name(s, name)) {
            continue;
        }
        tarn_code code = push_member(r, name, id, r->out.len - start);
        if (code == TARN_OK) {
            code = buf_append(&r->out, c.content + at, size, r->err);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code put_object(rebuilder *r, const shred *s, int64_t i) {
    const size_t start = r->out.len, first = r->members.len / sizeof(member);
    for (int32_t k = 0; k < s->n_parts; k++) {
        const shred *part = &s->parts[k];
        const size_t at = r->out.len;
        bool missing = false;
        uint32_t id = 0;
        tarn_code code = put_place(r, part, i, &missing);
        if (code == TARN_OK && !missing) {
            code = find_name(&r->names, part->name, &id)
                       ? push_member(r, part->name, id, at - start)
                       : bad(r, "with a field that its metadata did not name");
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    if (s->has_value && !view_is_null(&s->value, i)) {
        tarn_code code = put_residual(r, s, view_bytes(&s->value, i), start);
        if (code != TARN_OK) {
            return code;
        }
    }
    return end_container(r, true, start, first);
}

static tarn_code put_array(rebuilder *r, const shred *s, int64_t i) {
    const size_t start = r->out.len, first = r->members.len / sizeof(member);
    for (int64_t k = s->typed.offsets[i]; k < s->typed.offsets[i + 1]; k++) {
        tarn_code code = push_member(r, STR_NULL, 0, r->out.len - start);
        if (code == TARN_OK) {
            code = put_or_null(r, s->parts, k);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return end_container(r, false, start, first);
}

static tarn_code put_place(rebuilder *r, const shred *s, int64_t i, bool *missing) {
    const bool there = !s->has_group || !view_is_null(&s->group, i);
    const bool value = there && s->has_value && !view_is_null(&s->value, i);
    const bool typed = there && s->has_typed && !view_is_null(&s->typed, i);
    *missing = !value && !typed;
    if (typed && s->typed.type->kind == TARN_STRUCT) {
        return put_object(r, s, i);
    }
    if (typed && value) {
        return bad(r, "with conflicting value and typed_value");
    }
    if (typed) {
        return s->typed.type->kind == TARN_LIST ? put_array(r, s, i) : put_typed(r, s, i);
    }
    if (value) {
        tarn_str bytes = view_bytes(&s->value, i);
        const size_t size = value_size(bytes);
        return size > 0 && size == bytes.len ? buf_append_str(&r->out, bytes, r->err)
                                             : bad(r, "whose value was cut off");
    }
    return TARN_OK;
}

/* ---- the shape of the type ---- */

static int int_primitive(const parquet_element *e) {
    int width = e->type == PARQUET_INT32 ? 32 : 64;
    bool is_signed = true;
    if (THRIFT_HAS(e, PARQUET_ELEMENT_LOGICAL) &&
        THRIFT_HAS(&e->logical, PARQUET_LOGICAL_INTEGER)) {
        width = e->logical.integer.bit_width;
        is_signed = e->logical.integer.is_signed;
    } else if (THRIFT_HAS(e, PARQUET_ELEMENT_CONVERTED)) {
        width = e->converted == PARQUET_CONVERTED_INT_8    ? 8
                : e->converted == PARQUET_CONVERTED_INT_16 ? 16
                                                           : width;
        is_signed =
            e->converted < PARQUET_CONVERTED_UINT_8 || e->converted > PARQUET_CONVERTED_UINT_64;
    }
    if (!is_signed) {
        return -1;
    }
    return width == 8    ? PRIMITIVE_INT8
           : width == 16 ? PRIMITIVE_INT16
           : width == 32 ? PRIMITIVE_INT32
                         : PRIMITIVE_INT64;
}

static int decimal_primitive(const parquet_leaf *leaf) {
    return leaf->physical == PARQUET_INT32   ? PRIMITIVE_DECIMAL4
           : leaf->physical == PARQUET_INT64 ? PRIMITIVE_DECIMAL8
                                             : PRIMITIVE_DECIMAL16;
}

/* -1: no variant type stands for it. */
static int primitive_of(const parquet_leaf *leaf) {
    switch ((int)leaf->type->kind) {
    case TARN_BOOLEAN:
        return PRIMITIVE_TRUE;
    case TARN_INT:
    case TARN_LONG:
        return int_primitive(leaf->element);
    case TARN_FLOAT:
        return leaf->physical == PARQUET_FLOAT ? PRIMITIVE_FLOAT : -1;
    case TARN_DOUBLE:
        return PRIMITIVE_DOUBLE;
    case TARN_DECIMAL:
        return convert_choose(leaf) != CONVERT_U64_DECIMAL ? decimal_primitive(leaf) : -1;
    case TARN_DATE:
        return PRIMITIVE_DATE;
    case TARN_TIME:
        return PRIMITIVE_TIME;
    case TARN_TIMESTAMP:
        return PRIMITIVE_TIMESTAMP;
    case TARN_TIMESTAMPTZ:
        return PRIMITIVE_TIMESTAMPTZ;
    case TARN_TIMESTAMP_NS:
        return PRIMITIVE_TIMESTAMP_NS;
    case TARN_TIMESTAMPTZ_NS:
        return PRIMITIVE_TIMESTAMPTZ_NS;
    case TARN_STRING:
        return PRIMITIVE_STRING;
    case TARN_BINARY:
        return PRIMITIVE_BINARY;
    case TARN_UUID:
        return PRIMITIVE_UUID;
    default:
        return -1;
    }
}

static tarn_code shape_pair(rebuilder *r, const parquet_schema *parts, int32_t first, shred *out);

static tarn_code unsupported(const rebuilder *r, tarn_str what) {
    return column_error(r->column, TARN_UNSUPPORTED, r->err,
                        "had a shredded variant whose %.*s had an unexpected type", STR_ARG(what));
}

/* typed_value: node is its number; out->typed is set. */
static tarn_code shape_typed(rebuilder *r, const parquet_schema *parts, int32_t node, shred *out) {
    const tarn_type *type = out->typed.type;
    out->n_parts = 0;
    if (type->kind != TARN_STRUCT && type->kind != TARN_LIST) {
        const int primitive = parts->nodes[node].leaf >= 0 && type->kind != TARN_VARIANT
                                  ? primitive_of(&parts->leaves[parts->nodes[node].leaf])
                                  : -1;
        out->primitive = primitive >= 0 ? (uint8_t)primitive : 0;
        return primitive >= 0 ? TARN_OK : unsupported(r, STR("typed_value"));
    }
    out->parts = ARENA_ARRAY(r->arena, shred, (size_t)type->n_fields + 1);
    if (out->parts == NULL) {
        return err_nomem(r->err);
    }
    int32_t child = node + 1;
    for (int32_t k = 0; k < type->n_fields; k++) {
        shred *part = &out->parts[k];
        view_child(&out->typed, k, &part->group);
        part->name = type->fields[k].name;
        part->has_group = true;
        if (part->group.type->kind != TARN_STRUCT) {
            return unsupported(r, part->name);
        }
        tarn_code code = shape_pair(r, parts, child, part);
        if (code != TARN_OK) {
            return code;
        }
        child += parts->nodes[child].span;
    }
    out->n_parts = type->n_fields;
    return TARN_OK;
}

/* A group of value and typed_value; node is the group's number, its view is set. */
static tarn_code shape_pair(rebuilder *r, const parquet_schema *parts, int32_t node, shred *out) {
    const tarn_type *type = out->group.type;
    int32_t child = node + 1;
    for (int32_t k = 0; k < type->n_fields; k++) {
        tarn_code code = TARN_OK;
        if (str_is(type->fields[k].name, "value") && type->fields[k].type->kind == TARN_BINARY) {
            out->has_value = true;
            view_child(&out->group, k, &out->value);
        } else if (str_is(type->fields[k].name, "typed_value")) {
            out->has_typed = true;
            view_child(&out->group, k, &out->typed);
            code = shape_typed(r, parts, child, out);
        }
        if (code != TARN_OK) {
            return code;
        }
        child += parts->nodes[child].span;
    }
    return TARN_OK;
}

static tarn_code rebuild_row(rebuilder *r, const shred *top, const tarn_view *metadata, int64_t row,
                             tarn_builder *b) {
    if (b->validity != NULL && !bit_get(b->validity, row)) {
        tarn_code code = builder_null(&b->children[0], r->err);
        return code == TARN_OK ? builder_null(&b->children[1], r->err) : code;
    }
    if (view_is_null(metadata, row)) {
        return bad(r, "without metadata");
    }
    const tarn_str bytes = view_bytes(metadata, row);
    r->out.len = 0;
    r->members.len = 0;
    tarn_code code = open_names(r, bytes);
    if (code == TARN_OK) {
        code = put_or_null(r, top, row);
    }
    if (code == TARN_OK) {
        code = builder_bytes(&b->children[0], bytes, r->err);
    }
    return code == TARN_OK ? builder_bytes(&b->children[1], buf_str(&r->out), r->err) : code;
}

tarn_code variant_rebuild(const read_node *n, const read_column *column, int64_t rows,
                          tarn_error *err) {
    tarn_batch batch = {0};
    tarn_arena arena;
    tarn_view metadata = {0};
    bool found = false;
    tarn_code code = TARN_OK;
    arena_init(&arena, n->builder->env);
    rebuilder r = {.column = column, .arena = &arena, .err = err};
    buf_init(&r.out, n->builder->env, LIMIT_BATCH_BYTES);
    buf_init(&r.members, n->builder->env, LIMIT_BATCH_BYTES);
    n->parts->length = rows;
    TRY(builder_finish_batch(n->parts, &batch, err));
    shred top = {.has_group = false};
    top.group = (tarn_view){.type = batch.type, .array = &batch.array, .length = rows};
    TRY(shape_pair(&r, n->node->shredded, -1, &top));
    for (int32_t i = 0; i < batch.type->n_fields && !found; i++) {
        if (str_is(batch.type->fields[i].name, "metadata") &&
            batch.type->fields[i].type->kind == TARN_BINARY) {
            view_column(&batch, i, &metadata);
            found = true;
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        TRY(rebuild_row(&r, &top, &metadata, row, n->builder));
    }
done:
    batch_release(&batch);
    buf_release(&r.out);
    buf_release(&r.members);
    arena_release(&arena);
    return code;
}
