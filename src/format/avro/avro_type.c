/* format/avro/avro_type.c - a parsed schema as a tarn type (the mapping is told in avro.h).
 *
 * Here the graph becomes a tree: recursion is refused, and so is a schema whose shared names would
 * unfold into too many fields or levels. Everything after this walks schema and type side by side.
 */
#include "base/limits.h"
#include "format/avro/avro_int.h"

typedef struct type_maker {
    tarn_arena *arena;
    const char *what;
    int32_t n_fields;
    int32_t depth;
    tarn_error *err;
} type_maker;

static tarn_code map_type(type_maker *m, avro_schema *schema, const tarn_type **out);

static tarn_code no_memory_if_null(type_maker *m, const tarn_type *type) {
    return type != NULL ? TARN_OK : err_nomem(m->err);
}

/* One field of a struct, list or map: whether it is optional is said by its schema's union. */
static tarn_code map_field(type_maker *m, avro_schema *schema, int32_t id, tarn_str name,
                           tarn_field *field) {
    if (++m->n_fields > LIMIT_SCHEMA_FIELDS) {
        return err_set(m->err, TARN_LIMIT, "avro schema of %s had more than %d fields", m->what,
                       LIMIT_SCHEMA_FIELDS);
    }
    field->id = id;
    field->name = name;
    field->required =
        schema->kind != AVRO_NULL && !(schema->kind == AVRO_UNION && schema->null_at >= 0);
    return map_type(m, schema, &field->type);
}

static tarn_code map_record(type_maker *m, avro_schema *schema, const tarn_type **out) {
    tarn_field *fields = ARENA_ARRAY(m->arena, tarn_field, (size_t)schema->n);
    if (fields == NULL) {
        return err_nomem(m->err);
    }
    for (int32_t i = 0; i < schema->n; i++) {
        const avro_field *f = &schema->fields[i];
        fields[i].doc = f->doc;
        tarn_code code = map_field(m, f->schema, f->id, f->iceberg_name, &fields[i]);
        if (code != TARN_OK) {
            return code;
        }
    }
    *out = type_struct(m->arena, fields, schema->n);
    return no_memory_if_null(m, *out);
}

/* Several branches: one optional member for each that is not null. */
static tarn_code map_union(type_maker *m, avro_schema *schema, const tarn_type **out) {
    int32_t null_at;
    const avro_schema *value = avro_schema_value(schema, &null_at);
    if (value != NULL) {
        return map_type(m, schema->branches[null_at == 0 ? 1 : 0], out);
    }
    tarn_field *fields = ARENA_ARRAY(m->arena, tarn_field, (size_t)schema->n);
    int32_t n = 0;
    if (fields == NULL) {
        return err_nomem(m->err);
    }
    for (int32_t i = 0; i < schema->n; i++) {
        if (i == null_at) {
            continue;
        }
        char *name = arena_printf(m->arena, "member%d", (int)n);
        if (name == NULL) {
            return err_nomem(m->err);
        }
        tarn_code code = map_field(m, schema->branches[i], TARN_NO_ID, str_of(name), &fields[n]);
        if (code != TARN_OK) {
            return code;
        }
        fields[n++].required = false;
    }
    *out = n > 0 ? type_struct(m->arena, fields, n) : type_primitive(TARN_UNKNOWN);
    return no_memory_if_null(m, *out);
}

static tarn_code map_items(type_maker *m, avro_schema *schema, const tarn_type **out) {
    tarn_field first = {0};
    tarn_field second = {0};
    tarn_code code = TARN_OK;
    avro_schema *items = schema->branches[0];
    if (schema->kind == AVRO_MAP) {
        first = (tarn_field){.id = schema->ids[0],
                             .name = STR("key"),
                             .required = true,
                             .type = type_primitive(TARN_STRING)};
        m->n_fields++;
        TRY(map_field(m, items, schema->ids[1], STR("value"), &second));
        *out = type_map(m->arena, first, second);
    } else if (schema->logical == AVRO_KEY_VALUES) {
        TRY(map_field(m, items->fields[0].schema, items->fields[0].id, STR("key"), &first));
        TRY(map_field(m, items->fields[1].schema, items->fields[1].id, STR("value"), &second));
        *out = type_map(m->arena, first, second);
    } else {
        TRY(map_field(m, items, schema->ids[0], STR("element"), &first));
        *out = type_list(m->arena, first);
    }
    code = no_memory_if_null(m, *out);
done:
    return code;
}

static tarn_code map_decimal(type_maker *m, const avro_schema *schema, const tarn_type **out) {
    if (schema->precision > 38) {
        return err_set(m->err, TARN_UNSUPPORTED,
                       "avro schema of %s had a decimal of %d digits, at most 38 can be read",
                       m->what, (int)schema->precision);
    }
    *out = type_decimal(m->arena, schema->precision, schema->scale);
    return no_memory_if_null(m, *out);
}

static tarn_code map_fixed(type_maker *m, const avro_schema *schema, const tarn_type **out) {
    if (schema->size == 0 || schema->size > AVRO_FIXED_BYTES) {
        return err_set(m->err, TARN_UNSUPPORTED, "avro schema of %s had %.*s of %d bytes", m->what,
                       STR_ARG(schema->name), (int)schema->size);
    }
    if (schema->logical == AVRO_DECIMAL) {
        return map_decimal(m, schema, out);
    }
    if (schema->logical == AVRO_UUID) {
        *out = type_primitive(TARN_UUID);
        return TARN_OK;
    }
    *out = type_fixed(m->arena, schema->size);
    return no_memory_if_null(m, *out);
}

static const tarn_type *long_type(const avro_schema *schema) {
    switch (schema->logical) {
    case AVRO_TIME_MICROS:
        return type_primitive(TARN_TIME);
    case AVRO_TIMESTAMP_MILLIS:
    case AVRO_TIMESTAMP_MICROS:
        return type_primitive(schema->utc ? TARN_TIMESTAMPTZ : TARN_TIMESTAMP);
    case AVRO_TIMESTAMP_NANOS:
        return type_primitive(schema->utc ? TARN_TIMESTAMPTZ_NS : TARN_TIMESTAMP_NS);
    case AVRO_LOCAL_MILLIS:
    case AVRO_LOCAL_MICROS:
        return type_primitive(TARN_TIMESTAMP);
    case AVRO_LOCAL_NANOS:
        return type_primitive(TARN_TIMESTAMP_NS);
    case AVRO_PLAIN:
    case AVRO_DECIMAL:
    case AVRO_UUID:
    case AVRO_DATE:
    case AVRO_TIME_MILLIS:
    case AVRO_DURATION:
    case AVRO_KEY_VALUES:
    case AVRO_VARIANT:
        break;
    }
    return type_primitive(TARN_LONG);
}

static tarn_code map_kind(type_maker *m, avro_schema *schema, const tarn_type **out) {
    switch (schema->kind) {
    case AVRO_NULL:
        *out = type_primitive(TARN_UNKNOWN);
        return TARN_OK;
    case AVRO_BOOLEAN:
        *out = type_primitive(TARN_BOOLEAN);
        return TARN_OK;
    case AVRO_INT:
        *out = type_primitive(schema->logical == AVRO_DATE          ? TARN_DATE
                              : schema->logical == AVRO_TIME_MILLIS ? TARN_TIME
                                                                    : TARN_INT);
        return TARN_OK;
    case AVRO_LONG:
        *out = long_type(schema);
        return TARN_OK;
    case AVRO_FLOAT:
        *out = type_primitive(TARN_FLOAT);
        return TARN_OK;
    case AVRO_DOUBLE:
        *out = type_primitive(TARN_DOUBLE);
        return TARN_OK;
    case AVRO_BYTES:
        if (schema->logical == AVRO_DECIMAL) {
            return map_decimal(m, schema, out);
        }
        *out = type_primitive(TARN_BINARY);
        return TARN_OK;
    case AVRO_STRING:
        *out = type_primitive(schema->logical == AVRO_UUID ? TARN_UUID : TARN_STRING);
        return TARN_OK;
    case AVRO_ENUM:
        *out = type_primitive(TARN_STRING);
        return TARN_OK;
    case AVRO_FIXED:
        return map_fixed(m, schema, out);
    case AVRO_UNION:
        return map_union(m, schema, out);
    case AVRO_ARRAY:
    case AVRO_MAP:
        return map_items(m, schema, out);
    case AVRO_RECORD:
        if (schema->logical == AVRO_VARIANT) {
            *out = type_primitive(TARN_VARIANT);
            return TARN_OK;
        }
        return map_record(m, schema, out);
    }
    return err_set(m->err, TARN_INTERNAL, "avro kind %d is unknown", (int)schema->kind);
}

static tarn_code map_type(type_maker *m, avro_schema *schema, const tarn_type **out) {
    if (schema->entered) {
        return err_set(m->err, TARN_UNSUPPORTED,
                       "avro schema of %s was recursive: %.*s held itself", m->what,
                       STR_ARG(schema->name));
    }
    if (m->depth >= LIMIT_NESTING) {
        return err_set(m->err, TARN_LIMIT, "avro schema of %s had more than %d levels", m->what,
                       LIMIT_NESTING);
    }
    schema->entered = true;
    m->depth++;
    tarn_code code = map_kind(m, schema, out);
    m->depth--;
    schema->entered = false;
    return code;
}

tarn_code avro_type_from_schema(tarn_arena *arena, avro_schema *root, const char *what,
                                const tarn_type **out, tarn_error *err) {
    type_maker m = {.arena = arena, .what = what, .err = err};
    if (root->kind == AVRO_RECORD && root->logical != AVRO_VARIANT) {
        return map_type(&m, root, out);
    }
    tarn_field *field = ARENA_NEW(arena, tarn_field);
    if (field == NULL) {
        return err_nomem(err);
    }
    tarn_code code = map_field(&m, root, TARN_NO_ID, STR("value"), field);
    if (code != TARN_OK) {
        return code;
    }
    *out = type_struct(arena, field, 1);
    return no_memory_if_null(&m, *out);
}
