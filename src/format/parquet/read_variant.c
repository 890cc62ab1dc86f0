/* format/parquet/read_variant.c - shredded variants put together again (parquet-format,
 * VariantShredding.md and VariantEncoding.md).
 *
 * Each place of a shredded variant is a pair of value and typed_value; what is typed is encoded as
 * variant bytes (format/variant), objects and arrays from their parts. Field names are found in the
 * row's own metadata. */
#include "format/parquet/parquet_read_int.h"

#include "format/variant/variant.h"

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

typedef struct rebuilder {
    const read_column *column;
    tarn_arena *arena;
    tarn_error *err;
    variant_maker maker;
    variant_names names;
} rebuilder;

static tarn_code bad(const rebuilder *r, const char *problem) {
    return column_error(r->column, TARN_CORRUPT, r->err, "had a variant %s", problem);
}

static tarn_code end_container(rebuilder *r, bool object, variant_mark mark) {
    bool twice = false;
    tarn_code code = variant_end(&r->maker, object, mark, &twice, r->err);
    return twice ? bad(r, "with a field twice") : code;
}

static tarn_code put_primitive(rebuilder *r, int primitive, const void *payload, size_t len) {
    return variant_put_primitive(&r->maker, primitive, payload, len, r->err);
}

static tarn_code put_typed(rebuilder *r, const shred *s, int64_t i) {
    tarn_value v;
    view_value(&s->typed, i, &v);
    switch (s->primitive) {
    case VARIANT_TRUE:
        return put_primitive(r, v.as.boolean ? VARIANT_TRUE : VARIANT_FALSE, NULL, 0);
    case VARIANT_INT8:
        return put_primitive(r, s->primitive, &v.as, 1);
    case VARIANT_INT16:
        return put_primitive(r, s->primitive, &v.as, 2);
    case VARIANT_INT32:
    case VARIANT_DATE:
    case VARIANT_FLOAT:
        return put_primitive(r, s->primitive, &v.as, 4);
    case VARIANT_DECIMAL4:
    case VARIANT_DECIMAL8:
    case VARIANT_DECIMAL16:
        return variant_put_decimal(&r->maker, s->primitive, v.type->scale, v.as.i128, r->err);
    case VARIANT_BINARY:
    case VARIANT_STRING:
        return variant_put_text(&r->maker, s->primitive, v.as.bytes, r->err);
    case VARIANT_UUID:
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
    return code == TARN_OK && missing ? put_primitive(r, VARIANT_NULL, NULL, 0) : code;
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
static tarn_code put_residual(rebuilder *r, const shred *s, tarn_str bytes, variant_mark mark) {
    variant_container c;
    if (bytes.len == 0 || (bytes.data[0] & 3) != VARIANT_BASIC_OBJECT) {
        return bad(r, "that was no object but had shredded fields");
    }
    if (!variant_open_container(bytes, &c)) {
        return bad(r, "whose object was cut off");
    }
    for (uint32_t k = 0; k < c.count; k++) {
        const uint32_t id = variant_id(&c, k);
        tarn_str name, item;
        if (!variant_name(&r->names, id, &name)) {
            return bad(r, "whose object had a bad field");
        }
        if (!variant_item(&c, k, &item)) {
            return bad(r, "whose object had a bad value");
        }
        if (is_shredded_name(s, name)) {
            continue;
        }
        tarn_code code = variant_put_member(&r->maker, mark, r->maker.out.len, name, id, r->err);
        if (code == TARN_OK) {
            code = buf_append_str(&r->maker.out, item, r->err);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static tarn_code put_object(rebuilder *r, const shred *s, int64_t i) {
    const variant_mark mark = variant_begin(&r->maker);
    for (int32_t k = 0; k < s->n_parts; k++) {
        const shred *part = &s->parts[k];
        const size_t at = r->maker.out.len;
        bool missing = false;
        uint32_t id = 0;
        tarn_code code = put_place(r, part, i, &missing);
        if (code == TARN_OK && !missing) {
            code = variant_find_name(&r->names, part->name, &id)
                       ? variant_put_member(&r->maker, mark, at, part->name, id, r->err)
                       : bad(r, "with a field that its metadata did not name");
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    if (s->has_value && !view_is_null(&s->value, i)) {
        tarn_code code = put_residual(r, s, view_bytes(&s->value, i), mark);
        if (code != TARN_OK) {
            return code;
        }
    }
    return end_container(r, true, mark);
}

static tarn_code put_array(rebuilder *r, const shred *s, int64_t i) {
    const variant_mark mark = variant_begin(&r->maker);
    for (int64_t k = s->typed.offsets[i]; k < s->typed.offsets[i + 1]; k++) {
        tarn_code code = variant_put_member(&r->maker, mark, r->maker.out.len, STR_NULL, 0, r->err);
        if (code == TARN_OK) {
            code = put_or_null(r, s->parts, k);
        }
        if (code != TARN_OK) {
            return code;
        }
    }
    return end_container(r, false, mark);
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
        const size_t size = variant_size(bytes);
        return size > 0 && size == bytes.len ? buf_append_str(&r->maker.out, bytes, r->err)
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
    return width == 8    ? VARIANT_INT8
           : width == 16 ? VARIANT_INT16
           : width == 32 ? VARIANT_INT32
                         : VARIANT_INT64;
}

static int decimal_primitive(const parquet_leaf *leaf) {
    return leaf->physical == PARQUET_INT32   ? VARIANT_DECIMAL4
           : leaf->physical == PARQUET_INT64 ? VARIANT_DECIMAL8
                                             : VARIANT_DECIMAL16;
}

/* -1: no variant type stands for it. */
static int primitive_of(const parquet_leaf *leaf) {
    switch ((int)leaf->type->kind) {
    case TARN_BOOLEAN:
        return VARIANT_TRUE;
    case TARN_INT:
    case TARN_LONG:
        return int_primitive(leaf->element);
    case TARN_FLOAT:
        return leaf->physical == PARQUET_FLOAT ? VARIANT_FLOAT : -1;
    case TARN_DOUBLE:
        return VARIANT_DOUBLE;
    case TARN_DECIMAL:
        return convert_choose(leaf) != CONVERT_U64_DECIMAL ? decimal_primitive(leaf) : -1;
    case TARN_DATE:
        return VARIANT_DATE;
    case TARN_TIME:
        return VARIANT_TIME;
    case TARN_TIMESTAMP:
        return VARIANT_TIMESTAMP;
    case TARN_TIMESTAMPTZ:
        return VARIANT_TIMESTAMPTZ;
    case TARN_TIMESTAMP_NS:
        return VARIANT_TIMESTAMP_NS;
    case TARN_TIMESTAMPTZ_NS:
        return VARIANT_TIMESTAMPTZ_NS;
    case TARN_STRING:
        return VARIANT_STRING;
    case TARN_BINARY:
        return VARIANT_BINARY;
    case TARN_UUID:
        return VARIANT_UUID;
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
    const char *problem = variant_open_names(bytes, &r->names);
    if (problem != NULL) {
        return column_error(r->column, TARN_CORRUPT, r->err, "had a variant with %s", problem);
    }
    variant_maker_reset(&r->maker);
    tarn_code code = put_or_null(r, top, row);
    if (code == TARN_OK) {
        code = builder_bytes(&b->children[0], bytes, r->err);
    }
    return code == TARN_OK ? builder_bytes(&b->children[1], buf_str(&r->maker.out), r->err) : code;
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
    variant_maker_init(&r.maker, n->builder->env);
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
    variant_maker_release(&r.maker);
    arena_release(&arena);
    return code;
}
