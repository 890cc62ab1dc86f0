/* format/avro/avro_schema.c - the JSON of an Avro schema as a graph of nodes (Avro 1.12, "Schema
 * Declaration"), with Iceberg's attributes.
 *
 * Takes more than the specification allows where files in the field need it: names that are not
 * valid (B22), a type wrapped in an object twice, "adjust-to-utc" as text. Logical types that do
 * not fit what they annotate are ignored, as Avro asks. */
#include "base/limits.h"
#include "base/map.h"
#include "format/avro/avro_int.h"

typedef struct schema_parser {
    tarn_arena *arena;
    const char *what;
    tarn_map names; /* full name -> avro_schema */
    tarn_error *err;
} schema_parser;

static const char *const KIND_NAMES[] = {"null",   "boolean", "int",    "long",   "float",
                                         "double", "bytes",   "string", "record", "enum",
                                         "array",  "map",     "union",  "fixed"};

const char *avro_kind_name(avro_kind kind) {
    return KIND_NAMES[kind];
}

static bool kind_from_name(tarn_str name, avro_kind *out) {
    for (size_t i = 0; i < sizeof KIND_NAMES / sizeof *KIND_NAMES; i++) {
        if (str_is(name, KIND_NAMES[i])) {
            *out = (avro_kind)i;
            return true;
        }
    }
    if (str_is(name, "error")) { /* a record, in protocols */
        *out = AVRO_RECORD;
        return true;
    }
    return false;
}

static tarn_code parse_schema(schema_parser *p, const json_value *json, tarn_str space,
                              avro_schema **out);

static tarn_code schema_wrong(schema_parser *p, const char *what, tarn_str name) {
    return err_set(p->err, TARN_CORRUPT, "avro schema of %s was wrong: %s%s%.*s", p->what, what,
                   name.len > 0 ? " " : "", STR_ARG(name));
}

static avro_schema *new_schema(schema_parser *p, avro_kind kind) {
    avro_schema *schema = ARENA_NEW(p->arena, avro_schema);
    if (schema == NULL) {
        err_nomem(p->err);
        return NULL;
    }
    schema->kind = kind;
    schema->utc = true;
    schema->null_at = -1;
    schema->ids[0] = TARN_NO_ID;
    schema->ids[1] = TARN_NO_ID;
    return schema;
}

/* An id attribute; absent leaves *id. */
static tarn_code get_id(schema_parser *p, const json_value *json, const char *name, int32_t *id) {
    const json_value *value = json_get(json, name);
    if (value != NULL && !json_i32(value, id)) {
        return schema_wrong(p, "no whole number in", str_of(name));
    }
    return TARN_OK;
}

static tarn_str text_member(const json_value *json, const char *name) {
    tarn_str text = STR_NULL;
    return json_str(json_get(json, name), &text) ? text : STR_NULL;
}

/* ---- names ---- */

/* "a.b" stands for itself, "b" is within space; the name's own space comes back in *space. */
static tarn_code full_name(schema_parser *p, tarn_str name, tarn_str *space, tarn_str *out) {
    size_t dot = 0;
    if (str_find_last_char(name, '.', &dot)) {
        *space = str_sub(name, 0, dot);
        *out = name;
        return TARN_OK;
    }
    if (space->len == 0) {
        *out = name;
        return TARN_OK;
    }
    char *full = arena_alloc(p->arena, space->len + 1 + name.len);
    if (full == NULL) {
        return err_nomem(p->err);
    }
    memcpy(full, space->data, space->len);
    full[space->len] = '.';
    memcpy(full + space->len + 1, name.data, name.len);
    *out = str_make(full, space->len + 1 + name.len);
    return TARN_OK;
}

static tarn_code define_name(schema_parser *p, const json_value *json, avro_schema *schema,
                             tarn_str *space) {
    tarn_str name = text_member(json, "name");
    if (name.len == 0) {
        return schema_wrong(p, "no name in a", str_of(avro_kind_name(schema->kind)));
    }
    tarn_str given = STR_NULL;
    if (json_str(json_get(json, "namespace"), &given)) {
        *space = given;
    }
    tarn_code code = full_name(p, name, space, &schema->name);
    if (code != TARN_OK) {
        return code;
    }
    bool added = false;
    map_entry *entry = map_put(&p->names, schema->name, &added);
    if (entry == NULL) {
        return err_nomem(p->err);
    }
    if (!added) {
        return schema_wrong(p, "two definitions of", schema->name);
    }
    entry->value.ptr = schema;
    return TARN_OK;
}

static tarn_code parse_name(schema_parser *p, tarn_str name, tarn_str space, avro_schema **out) {
    avro_kind kind;
    if (kind_from_name(name, &kind) && kind < AVRO_RECORD) {
        *out = new_schema(p, kind);
        return *out != NULL ? TARN_OK : TARN_NOMEM;
    }
    tarn_str full = STR_NULL;
    tarn_code code = full_name(p, name, &space, &full);
    if (code != TARN_OK) {
        return code;
    }
    map_entry *entry = map_find(&p->names, full);
    if (entry == NULL) {
        entry = map_find(&p->names, name);
    }
    if (entry == NULL) {
        return schema_wrong(p, "no definition before the use of", full);
    }
    *out = entry->value.ptr;
    return TARN_OK;
}

/* ---- logical types ---- */

static const struct {
    const char *name;
    avro_kind kind;
    avro_logical logical;
} LOGICALS[] = {
    {"decimal", AVRO_BYTES, AVRO_DECIMAL},
    {"decimal", AVRO_FIXED, AVRO_DECIMAL},
    {"uuid", AVRO_STRING, AVRO_UUID},
    {"uuid", AVRO_FIXED, AVRO_UUID},
    {"date", AVRO_INT, AVRO_DATE},
    {"time-millis", AVRO_INT, AVRO_TIME_MILLIS},
    {"time-micros", AVRO_LONG, AVRO_TIME_MICROS},
    {"timestamp-millis", AVRO_LONG, AVRO_TIMESTAMP_MILLIS},
    {"timestamp-micros", AVRO_LONG, AVRO_TIMESTAMP_MICROS},
    {"timestamp-nanos", AVRO_LONG, AVRO_TIMESTAMP_NANOS},
    {"local-timestamp-millis", AVRO_LONG, AVRO_LOCAL_MILLIS},
    {"local-timestamp-micros", AVRO_LONG, AVRO_LOCAL_MICROS},
    {"local-timestamp-nanos", AVRO_LONG, AVRO_LOCAL_NANOS},
    {"duration", AVRO_FIXED, AVRO_DURATION},
    {"map", AVRO_ARRAY, AVRO_KEY_VALUES},
    {"variant", AVRO_RECORD, AVRO_VARIANT},
};

static bool is_record_of(const avro_schema *schema, const char *first, const char *second) {
    return schema->kind == AVRO_RECORD && schema->n == 2 && str_is(schema->fields[0].name, first) &&
           str_is(schema->fields[1].name, second);
}

/* Whether the node can carry the logical type, its parameters read. */
static bool fit_logical(avro_schema *schema, avro_logical logical, const json_value *json) {
    if (logical == AVRO_DECIMAL) {
        const json_value *scale = json_get(json, "scale");
        return json_i32(json_get(json, "precision"), &schema->precision) && schema->precision > 0 &&
               (scale == NULL || json_i32(scale, &schema->scale)) && schema->scale >= 0 &&
               schema->scale <= schema->precision;
    }
    if (logical == AVRO_UUID) {
        return schema->kind == AVRO_STRING || schema->size == 16;
    }
    if (logical == AVRO_DURATION) {
        return schema->size == 12;
    }
    if (logical == AVRO_KEY_VALUES) {
        return is_record_of(schema->branches[0], "key", "value");
    }
    if (logical == AVRO_VARIANT) {
        return is_record_of(schema, "metadata", "value") &&
               schema->fields[0].schema->kind == AVRO_BYTES &&
               schema->fields[1].schema->kind == AVRO_BYTES;
    }
    return true;
}

static void set_logical(avro_schema *schema, const json_value *json) {
    tarn_str name = text_member(json, "logicalType");
    for (size_t i = 0; name.len > 0 && i < sizeof LOGICALS / sizeof *LOGICALS; i++) {
        if (LOGICALS[i].kind == schema->kind && str_is(name, LOGICALS[i].name) &&
            fit_logical(schema, LOGICALS[i].logical, json)) {
            schema->logical = LOGICALS[i].logical;
        }
    }
    const json_value *utc = json_get(json, "adjust-to-utc");
    tarn_str text = STR_NULL;
    bool given = true;
    if (json_bool(utc, &given) || (json_str(utc, &text) && str_to_bool(text, &given))) {
        schema->utc = given;
    }
}

/* ---- nested types ---- */

static tarn_code parse_field(schema_parser *p, const json_value *json, tarn_str space,
                             avro_field *field) {
    field->id = TARN_NO_ID;
    if (json->kind != JSON_OBJECT || !json_str(json_get(json, "name"), &field->name)) {
        return schema_wrong(p, "a field without a name", STR_NULL);
    }
    field->doc = text_member(json, "doc");
    field->iceberg_name = text_member(json, "iceberg-field-name");
    if (field->iceberg_name.data == NULL) {
        field->iceberg_name = field->name;
    }
    tarn_code code = get_id(p, json, "field-id", &field->id);
    if (code != TARN_OK) {
        return code;
    }
    const json_value *type = json_get(json, "type");
    if (type == NULL) {
        return schema_wrong(p, "no type of field", field->name);
    }
    return parse_schema(p, type, space, &field->schema);
}

static tarn_code parse_record(schema_parser *p, const json_value *json, tarn_str space,
                              avro_schema *schema) {
    const json_value *fields = json_get(json, "fields");
    if (!json_is(fields, JSON_ARRAY)) {
        return schema_wrong(p, "no fields in record", schema->name);
    }
    if (fields->count > LIMIT_SCHEMA_FIELDS) {
        return err_set(p->err, TARN_LIMIT, "avro schema of %s had %zu fields in %.*s, at most %d",
                       p->what, fields->count, STR_ARG(schema->name), LIMIT_SCHEMA_FIELDS);
    }
    schema->fields = ARENA_ARRAY(p->arena, avro_field, fields->count);
    if (schema->fields == NULL) {
        return err_nomem(p->err);
    }
    tarn_map seen;
    map_init(&seen, p->arena);
    for (const json_value *v = fields->first; v != NULL; v = v->next) {
        avro_field *field = &schema->fields[schema->n];
        bool added = false;
        tarn_code code = parse_field(p, v, space, field);
        if (code != TARN_OK) {
            return code;
        }
        if (map_put(&seen, field->name, &added) == NULL) {
            return err_nomem(p->err);
        }
        if (!added) {
            return schema_wrong(p, "two fields named", field->name);
        }
        schema->n++;
    }
    return TARN_OK;
}

static tarn_code parse_union(schema_parser *p, const json_value *json, tarn_str space,
                             avro_schema **out) {
    avro_schema *schema = new_schema(p, AVRO_UNION);
    if (schema == NULL) {
        return TARN_NOMEM;
    }
    if (json->count == 0 || json->count > LIMIT_SCHEMA_FIELDS) {
        return schema_wrong(p, "no branches or too many in a union", STR_NULL);
    }
    schema->branches = ARENA_ARRAY(p->arena, avro_schema *, json->count);
    if (schema->branches == NULL) {
        return err_nomem(p->err);
    }
    for (const json_value *v = json->first; v != NULL; v = v->next) {
        avro_schema *branch = NULL;
        tarn_code code = parse_schema(p, v, space, &branch);
        if (code != TARN_OK) {
            return code;
        }
        if (branch->kind == AVRO_UNION) {
            return schema_wrong(p, "a union directly within a union", STR_NULL);
        }
        if (branch->kind == AVRO_NULL) {
            if (schema->null_at >= 0) {
                return schema_wrong(p, "two nulls in a union", STR_NULL);
            }
            schema->null_at = schema->n;
        }
        schema->branches[schema->n++] = branch;
    }
    *out = schema;
    return TARN_OK;
}

static tarn_code parse_items(schema_parser *p, const json_value *json, tarn_str space,
                             avro_schema *schema) {
    bool is_map = schema->kind == AVRO_MAP;
    const json_value *items = json_get(json, is_map ? "values" : "items");
    schema->branches = ARENA_ARRAY(p->arena, avro_schema *, 1);
    if (schema->branches == NULL) {
        return err_nomem(p->err);
    }
    if (items == NULL) {
        return schema_wrong(p, is_map ? "no values in a map" : "no items in an array", STR_NULL);
    }
    schema->n = 1;
    tarn_code code = get_id(p, json, is_map ? "key-id" : "element-id", &schema->ids[0]);
    if (code == TARN_OK && is_map) {
        code = get_id(p, json, "value-id", &schema->ids[1]);
    }
    return code == TARN_OK ? parse_schema(p, items, space, &schema->branches[0]) : code;
}

static tarn_code parse_enum(schema_parser *p, const json_value *json, avro_schema *schema) {
    const json_value *symbols = json_get(json, "symbols");
    if (!json_is(symbols, JSON_ARRAY) || symbols->count > INT32_MAX) {
        return schema_wrong(p, "no symbols in enum", schema->name);
    }
    schema->symbols = ARENA_ARRAY(p->arena, tarn_str, symbols->count);
    if (schema->symbols == NULL) {
        return err_nomem(p->err);
    }
    for (const json_value *v = symbols->first; v != NULL; v = v->next) {
        if (!json_str(v, &schema->symbols[schema->n++])) {
            return schema_wrong(p, "a symbol that is no text in enum", schema->name);
        }
    }
    return TARN_OK;
}

static tarn_code parse_body(schema_parser *p, const json_value *json, tarn_str space,
                            avro_schema *schema) {
    if (schema->kind == AVRO_ARRAY || schema->kind == AVRO_MAP) {
        return parse_items(p, json, space, schema);
    }
    if (schema->kind < AVRO_RECORD) {
        return TARN_OK;
    }
    tarn_code code = define_name(p, json, schema, &space);
    if (code != TARN_OK) {
        return code;
    }
    if (schema->kind == AVRO_RECORD) {
        return parse_record(p, json, space, schema);
    }
    if (schema->kind == AVRO_ENUM) {
        return parse_enum(p, json, schema);
    }
    if (!json_i32(json_get(json, "size"), &schema->size) || schema->size < 0) {
        return schema_wrong(p, "no size in fixed", schema->name);
    }
    return TARN_OK;
}

static tarn_code parse_schema(schema_parser *p, const json_value *json, tarn_str space,
                              avro_schema **out) {
    avro_kind kind = AVRO_NULL;
    if (json->kind == JSON_STRING) {
        return parse_name(p, json->text, space, out);
    }
    if (json->kind == JSON_ARRAY) {
        return parse_union(p, json, space, out);
    }
    const json_value *type = json_get(json, "type");
    if (type == NULL) {
        return schema_wrong(p, "a schema without a type", STR_NULL);
    }
    if (type->kind != JSON_STRING || !kind_from_name(type->text, &kind) || kind == AVRO_UNION) {
        return parse_schema(p, type, space, out);
    }
    avro_schema *schema = new_schema(p, kind);
    if (schema == NULL) {
        return TARN_NOMEM;
    }
    tarn_code code = parse_body(p, json, space, schema);
    if (code != TARN_OK) {
        return code;
    }
    set_logical(schema, json);
    *out = schema;
    return TARN_OK;
}

tarn_code avro_schema_parse(tarn_arena *arena, tarn_str json, const char *what, avro_schema **out,
                            tarn_error *err) {
    schema_parser p = {.arena = arena, .what = what, .err = err};
    json_value *document = NULL;
    map_init(&p.names, arena);
    tarn_code code = json_parse(arena, json, what, &document, err);
    return code == TARN_OK ? parse_schema(&p, document, STR_NULL, out) : code;
}

const avro_schema *avro_schema_value(const avro_schema *schema, int32_t *null_at) {
    *null_at = -1;
    if (schema->kind != AVRO_UNION) {
        return schema;
    }
    *null_at = schema->null_at;
    int32_t n_values = schema->n - (schema->null_at >= 0 ? 1 : 0);
    if (n_values != 1) {
        return NULL;
    }
    return schema->branches[schema->null_at == 0 ? 1 : 0];
}
