/* format/avro/avro_generate.c - a tarn type as the JSON of an Avro schema, by Iceberg's rules
 * (spec, "Appendix A: Avro"; names of nested types as Iceberg's Java library gives them).
 *
 * Avro forbids two definitions of one name, so fixed types are defined where they are first used
 * and named after that; records are named after field ids, or counted where there are none. */
#include "base/limits.h"
#include "base/map.h"
#include "format/avro/avro_int.h"

typedef struct schema_maker {
    json_writer w;
    tarn_arena arena;
    tarn_map defined; /* names of fixed types and records */
    tarn_buf scratch;
    int32_t counter; /* for records without ids */
    int32_t depth;
    tarn_error *err;
} schema_maker;

static tarn_code put_type(schema_maker *m, const tarn_type *type, int32_t id);

static void put_simple(schema_maker *m, const char *name) {
    json_put_string(&m->w, str_of(name));
}

static void put_logical(schema_maker *m, const char *base, const char *logical) {
    json_put_object(&m->w);
    json_member_str(&m->w, "type", str_of(base));
    json_member_str(&m->w, "logicalType", str_of(logical));
    json_end_object(&m->w);
}

static void put_timestamp(schema_maker *m, const char *logical, bool utc) {
    json_put_object(&m->w);
    json_member_str(&m->w, "type", STR("long"));
    json_member_str(&m->w, "logicalType", str_of(logical));
    json_member_bool(&m->w, "adjust-to-utc", utc);
    json_end_object(&m->w);
}

/* Whether name is new; *code is NOMEM when that could not be kept. */
static bool define(schema_maker *m, const char *name, tarn_code *code) {
    bool added = false;
    if (name == NULL || map_put(&m->defined, str_of(name), &added) == NULL) {
        *code = err_nomem(m->err);
        return false;
    }
    return added;
}

static int32_t decimal_bytes(int32_t precision) {
    uint8_t bytes[16];
    return (int32_t)num_put_be_i128(num_pow10_i128(precision) - 1, bytes);
}

static tarn_code put_fixed(schema_maker *m, const tarn_type *type) {
    tarn_code code = TARN_OK;
    char *name =
        type->kind == TARN_UUID ? arena_strdup(&m->arena, "uuid_fixed")
        : type->kind == TARN_DECIMAL
            ? arena_printf(&m->arena, "decimal_%d_%d", (int)type->precision, (int)type->scale)
            : arena_printf(&m->arena, "fixed_%d", (int)type->length);
    if (!define(m, name, &code)) {
        if (code == TARN_OK) {
            put_simple(m, name);
        }
        return code;
    }
    json_put_object(&m->w);
    json_member_str(&m->w, "type", STR("fixed"));
    json_member_str(&m->w, "name", str_of(name));
    if (type->kind == TARN_DECIMAL) {
        json_member_i64(&m->w, "size", decimal_bytes(type->precision));
        json_member_str(&m->w, "logicalType", STR("decimal"));
        json_member_i64(&m->w, "precision", type->precision);
        json_member_i64(&m->w, "scale", type->scale);
    } else if (type->kind == TARN_UUID) {
        json_member_i64(&m->w, "size", 16);
        json_member_str(&m->w, "logicalType", STR("uuid"));
    } else {
        json_member_i64(&m->w, "size", type->length);
    }
    json_end_object(&m->w);
    return code;
}

/* The type of a field: with null where it is optional. */
static tarn_code put_field_type(schema_maker *m, const tarn_field *field) {
    bool optional = !field->required && field->type->kind != TARN_UNKNOWN;
    if (optional) {
        json_put_array(&m->w);
        put_simple(m, "null");
    }
    tarn_code code = put_type(m, field->type, field->id);
    if (optional) {
        json_end_array(&m->w);
    }
    return code;
}

static void put_id(schema_maker *m, const char *name, int32_t id) {
    if (id != TARN_NO_ID) {
        json_member_i64(&m->w, name, id);
    }
}

/* A valid name that no field of this record has; two names may be escaped to one. */
static tarn_code put_field_name(schema_maker *m, tarn_map *names, tarn_str name) {
    tarn_code code = TARN_OK;
    bool added = false;
    buf_reset(&m->scratch);
    TRY(avro_name_sanitize(name, &m->scratch, m->err));
    for (;;) {
        tarn_str valid = arena_str(&m->arena, buf_str(&m->scratch));
        if (valid.data == NULL || map_put(names, valid, &added) == NULL) {
            code = err_nomem(m->err);
            goto done;
        }
        if (added) {
            json_member_str(&m->w, "name", valid);
            if (!str_eq(valid, name)) {
                json_member_str(&m->w, "iceberg-field-name", name);
            }
            goto done;
        }
        TRY(buf_append_char(&m->scratch, '_', m->err));
    }
done:
    return code;
}

static tarn_code put_field(schema_maker *m, tarn_map *names, const tarn_field *field) {
    tarn_code code = TARN_OK;
    json_put_object(&m->w);
    TRY(put_field_name(m, names, field->name));
    json_put_name(&m->w, STR("type"));
    TRY(put_field_type(m, field));
    if (field->doc.data != NULL) {
        json_member_str(&m->w, "doc", field->doc);
    }
    if (!field->required) {
        json_put_name(&m->w, STR("default"));
        json_put_null(&m->w);
    }
    put_id(m, "field-id", field->id);
    json_end_object(&m->w);
done:
    return code;
}

static tarn_code two_records(schema_maker *m, const char *name) {
    return err_set(m->err, TARN_INVALID, "two avro records would be named %s", name);
}

static tarn_code put_record(schema_maker *m, const tarn_type *type, const char *name) {
    tarn_map names;
    map_init(&names, &m->arena);
    tarn_code code = TARN_OK;
    if (!define(m, name, &code)) {
        return code != TARN_OK ? code : two_records(m, name);
    }
    json_put_object(&m->w);
    json_member_str(&m->w, "type", STR("record"));
    json_member_str(&m->w, "name", str_of(name));
    json_put_name(&m->w, STR("fields"));
    json_put_array(&m->w);
    for (int32_t i = 0; i < type->n_fields; i++) {
        TRY(put_field(m, &names, &type->fields[i]));
    }
    json_end_array(&m->w);
    json_end_object(&m->w);
done:
    return code;
}

static tarn_code put_variant(schema_maker *m, int32_t id) {
    tarn_code code = TARN_OK;
    char *name = id != TARN_NO_ID ? arena_printf(&m->arena, "r%d", (int)id)
                                  : arena_printf(&m->arena, "r_%d", (int)++m->counter);
    if (!define(m, name, &code)) {
        return code != TARN_OK ? code : two_records(m, name);
    }
    json_put_object(&m->w);
    json_member_str(&m->w, "type", STR("record"));
    json_member_str(&m->w, "name", str_of(name));
    json_member_str(&m->w, "logicalType", STR("variant"));
    json_put_name(&m->w, STR("fields"));
    json_put_raw(&m->w, STR("[{\"name\":\"metadata\",\"type\":\"bytes\"},"
                            "{\"name\":\"value\",\"type\":\"bytes\"}]"));
    json_end_object(&m->w);
    return code;
}

static tarn_code put_struct(schema_maker *m, const tarn_type *type, int32_t id) {
    char *name = id != TARN_NO_ID ? arena_printf(&m->arena, "r%d", (int)id)
                                  : arena_printf(&m->arena, "r_%d", (int)++m->counter);
    return put_record(m, type, name);
}

static tarn_code put_list(schema_maker *m, const tarn_type *type) {
    json_put_object(&m->w);
    json_member_str(&m->w, "type", STR("array"));
    json_put_name(&m->w, STR("items"));
    tarn_code code = put_field_type(m, &type->fields[0]);
    put_id(m, "element-id", type->fields[0].id);
    json_end_object(&m->w);
    return code;
}

/* Avro's own maps have only strings as keys: others are arrays of records k<id>_v<id>. */
static tarn_code put_map(schema_maker *m, const tarn_type *type) {
    const tarn_field *key = &type->fields[0];
    const tarn_field *value = &type->fields[1];
    tarn_code code = TARN_OK;
    json_put_object(&m->w);
    if (key->type->kind == TARN_STRING) {
        json_member_str(&m->w, "type", STR("map"));
        json_put_name(&m->w, STR("values"));
        TRY(put_field_type(m, value));
        put_id(m, "key-id", key->id);
        put_id(m, "value-id", value->id);
    } else {
        tarn_field fields[2] = {*key, *value};
        tarn_type pair = {.kind = TARN_STRUCT, .n_fields = 2, .fields = fields};
        fields[0].name = STR("key");
        fields[1].name = STR("value");
        char *name = key->id != TARN_NO_ID
                         ? arena_printf(&m->arena, "k%d_v%d", (int)key->id, (int)value->id)
                         : arena_printf(&m->arena, "k_v_%d", (int)++m->counter);
        json_member_str(&m->w, "type", STR("array"));
        json_put_name(&m->w, STR("items"));
        TRY(put_record(m, &pair, name));
        json_member_str(&m->w, "logicalType", STR("map"));
    }
    json_end_object(&m->w);
done:
    return code;
}

static tarn_code put_kind(schema_maker *m, const tarn_type *type, int32_t id) {
    switch (type->kind) {
    case TARN_BOOLEAN:
        put_simple(m, "boolean");
        break;
    case TARN_INT:
        put_simple(m, "int");
        break;
    case TARN_LONG:
        put_simple(m, "long");
        break;
    case TARN_FLOAT:
        put_simple(m, "float");
        break;
    case TARN_DOUBLE:
        put_simple(m, "double");
        break;
    case TARN_DATE:
        put_logical(m, "int", "date");
        break;
    case TARN_TIME:
        put_logical(m, "long", "time-micros");
        break;
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
        put_timestamp(m, "timestamp-micros", type->kind == TARN_TIMESTAMPTZ);
        break;
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        put_timestamp(m, "timestamp-nanos", type->kind == TARN_TIMESTAMPTZ_NS);
        break;
    case TARN_STRING:
        put_simple(m, "string");
        break;
    case TARN_BINARY:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        put_simple(m, "bytes");
        break;
    case TARN_UNKNOWN:
        put_simple(m, "null");
        break;
    case TARN_DECIMAL:
    case TARN_UUID:
    case TARN_FIXED:
        return put_fixed(m, type);
    case TARN_VARIANT:
        return put_variant(m, id);
    case TARN_STRUCT:
        return put_struct(m, type, id);
    case TARN_LIST:
        return put_list(m, type);
    case TARN_MAP:
        return put_map(m, type);
    }
    return TARN_OK;
}

static tarn_code put_type(schema_maker *m, const tarn_type *type, int32_t id) {
    /* a level here is up to four of JSON: record, fields, field, union */
    if (m->depth >= JSON_MAX_DEPTH / 4 - 1) {
        return err_set(m->err, TARN_LIMIT, "a type had more than %d levels",
                       JSON_MAX_DEPTH / 4 - 1);
    }
    m->depth++;
    tarn_code code = put_kind(m, type, id);
    m->depth--;
    return code;
}

tarn_code avro_schema_from_type(tarn_env *env, const tarn_type *type, tarn_str record_name,
                                tarn_buf *out, tarn_error *err) {
    schema_maker m = {.err = err};
    tarn_code code = TARN_OK;
    size_t start = out->len;
    arena_init(&m.arena, env);
    map_init(&m.defined, &m.arena);
    buf_init(&m.scratch, env, (size_t)LIMIT_NAME_BYTES * 8);
    json_begin(&m.w, out, false, err);
    tarn_str name = arena_str(&m.arena, record_name.len > 0 ? record_name : STR("table"));
    TRY(put_record(&m, type, name.data));
    code = json_end(&m.w);
done:
    if (code != TARN_OK) {
        out->len = start;
    }
    buf_release(&m.scratch);
    arena_release(&m.arena);
    return code;
}
