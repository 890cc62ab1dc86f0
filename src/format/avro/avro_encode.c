/* format/avro/avro_encode.c - rows of a batch as Avro values.
 *
 * The encoder is a tree that was fitted once to schema and type; for each batch it is bound to the
 * batch's columns, then every row is one walk. Its nodes follow the schema's order, which need not
 * be the type's. */
#include "base/limits.h"
#include "format/avro/avro_int.h"

typedef enum encode_way {
    WAY_NULL, /* unknown, or a field that the type has not */
    WAY_BOOLEAN,
    WAY_I32,
    WAY_I64,
    WAY_MILLIS, /* stored as microseconds */
    WAY_FLOAT,
    WAY_DOUBLE,
    WAY_FLOAT_AS_DOUBLE,
    WAY_BYTES,
    WAY_FIXED,
    WAY_UUID_TEXT,
    WAY_DECIMAL_FIXED,
    WAY_DECIMAL_BYTES,
    WAY_ENUM,
    WAY_RECORD,
    WAY_LIST,
    WAY_MAP,  /* an Avro map, or an array of pairs */
    WAY_UNION /* the one member of a struct that is set */
} encode_way;

struct avro_encoder {
    encode_way way;
    bool in_union; /* a branch number goes first */
    int32_t null_at;
    int32_t branch;          /* of a value */
    int32_t column;          /* in the parent's type */
    const tarn_field *field; /* NULL: the root */
    const avro_schema *schema;
    tarn_view view;
    avro_encoder *children;
    int32_t n_children;
};

typedef struct fitter {
    tarn_arena *arena;
    tarn_buf *scratch;
    tarn_error *err;
} fitter;

static tarn_code fit_field(fitter *f, const avro_schema *schema, const tarn_field *field,
                           int32_t column, avro_encoder *out);

static tarn_str field_name(const avro_encoder *e) {
    return e->field != NULL ? e->field->name : STR("(root)");
}

/* ---- fitting ---- */

static tarn_code misfit(fitter *f, const avro_encoder *e) {
    return err_set(f->err, TARN_INVALID, "avro %s can not hold column %.*s of type %s",
                   avro_kind_name(e->schema->kind), STR_ARG(field_name(e)),
                   type_kind_name(e->field->type->kind));
}

static tarn_code new_children(fitter *f, avro_encoder *e, int32_t n) {
    e->children = ARENA_ARRAY(f->arena, avro_encoder, (size_t)n);
    if (e->children == NULL) {
        return err_nomem(f->err);
    }
    e->n_children = n;
    return TARN_OK;
}

/* The type's field for a schema's: by id where both have one, else by either name. */
static tarn_code find_column(fitter *f, const avro_field *wanted, const tarn_type *type,
                             int32_t *column) {
    *column = -1;
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *field = &type->fields[i];
        bool same = false;
        if (wanted->id != TARN_NO_ID && field->id != TARN_NO_ID) {
            same = wanted->id == field->id;
        } else {
            buf_reset(f->scratch);
            tarn_code code = avro_name_sanitize(field->name, f->scratch, f->err);
            if (code != TARN_OK) {
                return code;
            }
            same = str_eq(wanted->iceberg_name, field->name) ||
                   str_eq(wanted->name, buf_str(f->scratch));
        }
        if (same) {
            *column = i;
            return TARN_OK;
        }
    }
    return TARN_OK;
}

static tarn_code fit_missing(fitter *f, const avro_field *wanted, avro_encoder *out) {
    int32_t null_at = wanted->schema->null_at;
    bool nullable = wanted->schema->kind == AVRO_NULL || null_at >= 0;
    if (!nullable) {
        return err_set(f->err, TARN_INVALID, "avro field %.*s is required, but no column fits it",
                       STR_ARG(wanted->name));
    }
    *out = (avro_encoder){.way = WAY_NULL,
                          .in_union = wanted->schema->kind == AVRO_UNION,
                          .null_at = null_at,
                          .column = -1,
                          .schema = wanted->schema};
    return TARN_OK;
}

static tarn_code fit_record(fitter *f, const avro_schema *schema, const tarn_type *type,
                            avro_encoder *e) {
    int32_t used = 0;
    tarn_code code = new_children(f, e, schema->n);
    e->way = WAY_RECORD;
    for (int32_t i = 0; i < schema->n && code == TARN_OK; i++) {
        const avro_field *wanted = &schema->fields[i];
        int32_t column = -1;
        code = find_column(f, wanted, type, &column);
        if (code == TARN_OK && column < 0) {
            code = fit_missing(f, wanted, &e->children[i]);
        } else if (code == TARN_OK) {
            used++;
            code = fit_field(f, wanted->schema, &type->fields[column], column, &e->children[i]);
        }
    }
    if (code == TARN_OK && used != type->n_fields) {
        return err_set(
            f->err, TARN_INVALID, "avro record %.*s had places for %d of the %d columns of %.*s",
            STR_ARG(schema->name), (int)used, (int)type->n_fields, STR_ARG(field_name(e)));
    }
    return code;
}

static const tarn_field VARIANT_PARTS[2] = {
    {.id = TARN_NO_ID, .required = true, .name = {"metadata", 8}},
    {.id = TARN_NO_ID, .required = true, .name = {"value", 5}}};

static tarn_code fit_variant(fitter *f, const avro_schema *schema, avro_encoder *e) {
    tarn_code code = new_children(f, e, 2);
    for (int32_t i = 0; i < 2 && code == TARN_OK; i++) {
        tarn_field *part = ARENA_NEW(f->arena, tarn_field);
        if (part == NULL) {
            return err_nomem(f->err);
        }
        *part = VARIANT_PARTS[i];
        part->type = type_primitive(TARN_BINARY);
        code = fit_field(f, schema->fields[i].schema, part, i, &e->children[i]);
    }
    e->way = WAY_RECORD;
    return code;
}

static tarn_code fit_items(fitter *f, const avro_schema *schema, const tarn_type *type,
                           avro_encoder *e) {
    const avro_schema *items = schema->branches[0];
    bool is_map = type->kind == TARN_MAP;
    if (is_map == (schema->kind == AVRO_ARRAY && schema->logical != AVRO_KEY_VALUES) ||
        (!is_map && type->kind != TARN_LIST)) {
        return misfit(f, e);
    }
    e->way = is_map ? WAY_MAP : WAY_LIST;
    tarn_code code = new_children(f, e, is_map ? 2 : 1);
    if (code != TARN_OK) {
        return code;
    }
    if (!is_map) {
        return fit_field(f, items, &type->fields[0], 0, &e->children[0]);
    }
    if (schema->kind == AVRO_MAP) {
        avro_schema *keys = ARENA_NEW(f->arena, avro_schema);
        if (keys == NULL) {
            return err_nomem(f->err);
        }
        keys->kind = AVRO_STRING;
        keys->null_at = -1;
        code = fit_field(f, keys, &type->fields[0], 0, &e->children[0]);
    } else {
        code = fit_field(f, items->fields[0].schema, &type->fields[0], 0, &e->children[0]);
        items = items->fields[1].schema;
    }
    return code == TARN_OK ? fit_field(f, items, &type->fields[1], 1, &e->children[1]) : code;
}

static tarn_code fit_members(fitter *f, const avro_schema *schema, const tarn_type *type,
                             avro_encoder *e) {
    int32_t n_members = schema->n - (schema->null_at >= 0 ? 1 : 0);
    int32_t member = 0;
    if (type->kind != TARN_STRUCT || type->n_fields != n_members) {
        return misfit(f, e);
    }
    e->way = WAY_UNION;
    tarn_code code = new_children(f, e, n_members);
    for (int32_t i = 0; i < schema->n && code == TARN_OK; i++) {
        if (i != schema->null_at) {
            avro_encoder *child = &e->children[member];
            code = fit_field(f, schema->branches[i], &type->fields[member], member, child);
            child->branch = i;
            member++;
        }
    }
    return code;
}

static bool is_decimal_of(const avro_schema *schema, const tarn_type *type) {
    return schema->logical == AVRO_DECIMAL && schema->scale == type->scale &&
           schema->precision >= type->precision;
}

static bool is_micros(avro_logical logical) {
    return logical == AVRO_PLAIN || logical == AVRO_TIME_MICROS ||
           logical == AVRO_TIMESTAMP_MICROS || logical == AVRO_LOCAL_MICROS;
}

static bool is_nanos(avro_logical logical) {
    return logical == AVRO_PLAIN || logical == AVRO_TIMESTAMP_NANOS || logical == AVRO_LOCAL_NANOS;
}

static bool fit_long(avro_logical logical, tarn_kind kind, encode_way *way) {
    *way = WAY_I64;
    if (kind == TARN_LONG) {
        return logical == AVRO_PLAIN;
    }
    if (kind == TARN_TIMESTAMP_NS || kind == TARN_TIMESTAMPTZ_NS) {
        return is_nanos(logical);
    }
    if (kind == TARN_TIME || kind == TARN_TIMESTAMP || kind == TARN_TIMESTAMPTZ) {
        bool millis = logical == AVRO_TIMESTAMP_MILLIS || logical == AVRO_LOCAL_MILLIS;
        *way = millis ? WAY_MILLIS : WAY_I64;
        return millis ? kind != TARN_TIME : is_micros(logical);
    }
    *way = WAY_I32;
    return kind == TARN_INT && logical == AVRO_PLAIN;
}

/* How a primitive of type is written as schema; false: it can not be. */
static bool fit_primitive(const avro_schema *schema, const tarn_type *type, encode_way *way) {
    tarn_kind kind = type->kind;
    switch (schema->kind) {
    case AVRO_NULL:
        *way = WAY_NULL;
        return kind == TARN_UNKNOWN;
    case AVRO_BOOLEAN:
        *way = WAY_BOOLEAN;
        return kind == TARN_BOOLEAN;
    case AVRO_INT:
        *way = schema->logical == AVRO_TIME_MILLIS ? WAY_MILLIS : WAY_I32;
        return kind == (schema->logical == AVRO_TIME_MILLIS ? TARN_TIME
                        : schema->logical == AVRO_DATE      ? TARN_DATE
                                                            : TARN_INT);
    case AVRO_LONG:
        return fit_long(schema->logical, kind, way);
    case AVRO_FLOAT:
        *way = WAY_FLOAT;
        return kind == TARN_FLOAT;
    case AVRO_DOUBLE:
        *way = kind == TARN_FLOAT ? WAY_FLOAT_AS_DOUBLE : WAY_DOUBLE;
        return kind == TARN_FLOAT || kind == TARN_DOUBLE;
    case AVRO_BYTES:
        *way = kind == TARN_DECIMAL ? WAY_DECIMAL_BYTES : WAY_BYTES;
        return kind == TARN_DECIMAL ? is_decimal_of(schema, type)
                                    : type_is_var(type) && schema->logical == AVRO_PLAIN;
    case AVRO_STRING:
        *way = kind == TARN_UUID ? WAY_UUID_TEXT : WAY_BYTES;
        return schema->logical == AVRO_UUID ? kind == TARN_UUID : kind == TARN_STRING;
    case AVRO_ENUM:
        *way = WAY_ENUM;
        return kind == TARN_STRING;
    case AVRO_FIXED:
        *way = kind == TARN_DECIMAL ? WAY_DECIMAL_FIXED : WAY_FIXED;
        return kind == TARN_DECIMAL
                   ? is_decimal_of(schema, type)
                   : schema->logical != AVRO_DECIMAL && (kind == TARN_UUID || kind == TARN_FIXED) &&
                         type_width(type) == schema->size;
    case AVRO_RECORD:
    case AVRO_ARRAY:
    case AVRO_MAP:
    case AVRO_UNION:
        break;
    }
    return false;
}

static tarn_code fit_value(fitter *f, const avro_schema *schema, const tarn_type *type,
                           avro_encoder *e) {
    e->schema = schema;
    if (schema->kind == AVRO_RECORD && type->kind == TARN_STRUCT) {
        return fit_record(f, schema, type, e);
    }
    if (schema->kind == AVRO_RECORD && type->kind == TARN_VARIANT &&
        schema->logical == AVRO_VARIANT) {
        return fit_variant(f, schema, e);
    }
    if (schema->kind == AVRO_ARRAY || schema->kind == AVRO_MAP) {
        return fit_items(f, schema, type, e);
    }
    return fit_primitive(schema, type, &e->way) ? TARN_OK : misfit(f, e);
}

static tarn_code fit_field(fitter *f, const avro_schema *schema, const tarn_field *field,
                           int32_t column, avro_encoder *out) {
    int32_t null_at;
    const avro_schema *value = avro_schema_value(schema, &null_at);
    memset(out, 0, sizeof *out);
    out->in_union = schema->kind == AVRO_UNION;
    out->null_at = null_at;
    out->column = column;
    out->field = field;
    out->schema = schema;
    if (out->in_union && field->type->kind == TARN_UNKNOWN && null_at >= 0) {
        out->way = WAY_NULL;
        return TARN_OK;
    }
    if (out->in_union && value == NULL) {
        return fit_members(f, schema, field->type, out);
    }
    if (out->in_union) {
        value = schema->n == 1 ? schema->branches[0] : value;
        out->branch = null_at == 0 ? 1 : 0;
    }
    return fit_value(f, value, field->type, out);
}

tarn_code avro_encoder_new(tarn_arena *arena, const avro_schema *schema, const tarn_type *type,
                           avro_encoder **out, tarn_error *err) {
    tarn_buf scratch;
    fitter f = {.arena = arena, .scratch = &scratch, .err = err};
    avro_encoder *e = ARENA_NEW(arena, avro_encoder);
    if (e == NULL) {
        return err_nomem(err);
    }
    if (schema->kind != AVRO_RECORD) {
        return err_set(err, TARN_INVALID, "an avro file of rows was to have a root of type %s",
                       avro_kind_name(schema->kind));
    }
    buf_init(&scratch, arena->env, (size_t)LIMIT_NAME_BYTES * 8);
    e->schema = schema;
    e->null_at = -1;
    tarn_code code = fit_record(&f, schema, type, e);
    buf_release(&scratch);
    if (code == TARN_OK) {
        *out = e;
    }
    return code;
}

/* ---- binding ---- */

static void bind_children(avro_encoder *e) {
    for (int32_t i = 0; i < e->n_children; i++) {
        avro_encoder *child = &e->children[i];
        if (child->column >= 0) {
            view_child(&e->view, child->column, &child->view);
            bind_children(child);
        }
    }
}

void avro_encoder_bind(avro_encoder *e, const tarn_batch *batch) {
    for (int32_t i = 0; i < e->n_children; i++) {
        avro_encoder *child = &e->children[i];
        if (child->column >= 0) {
            view_column(batch, child->column, &child->view);
            bind_children(child);
        }
    }
}

/* ---- encoding ---- */

static tarn_code put_value(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err);

static inline tarn_code need_bytes(tarn_buf *out, size_t n, tarn_error *err) {
    return out->cap - out->len >= n ? TARN_OK : buf_reserve(out, n, err);
}

/* The caller has room for 10 bytes. */
static inline void put_long(tarn_buf *out, int64_t v) {
    uint64_t u = num_zigzag(v);
    uint8_t *p = out->data + out->len;
    while (u >= 0x80) {
        *p++ = (uint8_t)(u | 0x80);
        u >>= 7;
    }
    *p++ = (uint8_t)u;
    out->len = (size_t)(p - out->data);
}

static inline void put_raw(tarn_buf *out, const void *data, size_t n) {
    memcpy(out->data + out->len, data, n);
    out->len += n;
}

static tarn_code put_sized(tarn_buf *out, tarn_str s, tarn_error *err) {
    tarn_code code = need_bytes(out, s.len + 10, err);
    if (code == TARN_OK) {
        put_long(out, (int64_t)s.len);
        if (s.len > 0) {
            put_raw(out, s.data, s.len);
        }
    }
    return code;
}

static tarn_code put_decimal(const avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    uint8_t bytes[16];
    tarn_int128 v = num_load_i128((const uint8_t *)e->view.values + row * 16);
    size_t n = num_put_be_i128(v, bytes);
    if (e->way == WAY_DECIMAL_BYTES) {
        return put_sized(out, str_make(bytes, n), err);
    }
    size_t size = (size_t)e->schema->size;
    if (n > size) {
        return err_set(err, TARN_INVALID, "a decimal of column %.*s did not fit its %zu bytes",
                       STR_ARG(field_name(e)), size);
    }
    tarn_code code = need_bytes(out, size, err);
    if (code == TARN_OK) {
        memset(out->data + out->len, v < 0 ? 0xff : 0, size - n);
        out->len += size - n;
        put_raw(out, bytes, n);
    }
    return code;
}

static tarn_code put_symbol(const avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    tarn_str text = view_bytes(&e->view, row);
    for (int32_t i = 0; i < e->schema->n; i++) {
        if (str_eq(e->schema->symbols[i], text)) {
            put_long(out, i);
            return TARN_OK;
        }
    }
    return err_set(err, TARN_INVALID, "avro enum %.*s had no symbol %.*s", STR_ARG(e->schema->name),
                   STR_ARG(text));
}

/* All items in one block with a plain count: every reader knows that form (B53). */
static tarn_code put_items(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    int32_t first = e->view.offsets[row];
    int32_t last = e->view.offsets[row + 1];
    tarn_code code = TARN_OK;
    if (last > first) {
        put_long(out, last - first);
    }
    for (int32_t i = first; i < last; i++) {
        for (int32_t j = 0; j < e->n_children; j++) {
            code = put_value(&e->children[j], i, out, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    code = need_bytes(out, 1, err);
    if (code == TARN_OK) {
        put_long(out, 0);
    }
    return code;
}

static tarn_code put_member(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    for (int32_t i = 0; i < e->n_children; i++) {
        if (!view_is_null(&e->children[i].view, row)) {
            put_long(out, e->children[i].branch);
            return put_value(&e->children[i], row, out, err);
        }
    }
    return err_set(err, TARN_INVALID, "no member of union %.*s was set", STR_ARG(field_name(e)));
}

static tarn_code put_present(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    const uint8_t *values = e->view.values;
    tarn_code code = TARN_OK;
    double wide;
    char text[37];
    switch (e->way) {
    case WAY_NULL:
        return TARN_OK;
    case WAY_BOOLEAN:
        put_raw(out, &(uint8_t){view_bool(&e->view, row)}, 1);
        return TARN_OK;
    case WAY_I32:
        put_long(out, num_load_i32(values + row * 4));
        return TARN_OK;
    case WAY_I64:
        put_long(out, num_load_i64(values + row * 8));
        return TARN_OK;
    case WAY_MILLIS:
        put_long(out, num_floor_div(num_load_i64(values + row * 8), 1000));
        return TARN_OK;
    case WAY_FLOAT:
        put_raw(out, values + row * 4, 4);
        return TARN_OK;
    case WAY_DOUBLE:
        put_raw(out, values + row * 8, 8);
        return TARN_OK;
    case WAY_FLOAT_AS_DOUBLE:
        wide = (double)((const float *)e->view.values)[row];
        put_raw(out, &wide, 8);
        return TARN_OK;
    case WAY_BYTES:
        return put_sized(out, view_bytes(&e->view, row), err);
    case WAY_FIXED:
        code = need_bytes(out, (size_t)e->schema->size, err);
        if (code == TARN_OK) {
            put_raw(out, values + row * e->schema->size, (size_t)e->schema->size);
        }
        return code;
    case WAY_UUID_TEXT:
        value_format_uuid(values + row * 16, text);
        return put_sized(out, str_make(text, 36), err);
    case WAY_DECIMAL_FIXED:
    case WAY_DECIMAL_BYTES:
        return put_decimal(e, row, out, err);
    case WAY_ENUM:
        return put_symbol(e, row, out, err);
    case WAY_RECORD:
        for (int32_t i = 0; i < e->n_children && code == TARN_OK; i++) {
            code = put_value(&e->children[i], row, out, err);
        }
        return code;
    case WAY_LIST:
    case WAY_MAP:
        return put_items(e, row, out, err);
    case WAY_UNION:
        return put_member(e, row, out, err);
    }
    return code;
}

static tarn_code put_value(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    tarn_code code = need_bytes(out, 32, err);
    if (code != TARN_OK) {
        return code;
    }
    bool is_null = e->way == WAY_NULL || view_is_null(&e->view, row);
    if (is_null && e->null_at >= 0) {
        put_long(out, e->null_at);
        return TARN_OK;
    }
    if (is_null && e->way != WAY_NULL) {
        return err_set(err, TARN_INVALID, "column %.*s was null where the avro schema has no null",
                       STR_ARG(field_name(e)));
    }
    if (e->in_union && e->way != WAY_UNION) {
        put_long(out, e->branch);
    }
    return put_present(e, row, out, err);
}

tarn_code avro_encode(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) {
    return put_present(e, row, out, err);
}
