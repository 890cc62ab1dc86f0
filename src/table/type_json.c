/* table/type_json.c - Iceberg's JSON of types and schemas (spec, Appendix C "Schemas").
 *
 * Outside JSON is checked here: field ids once per schema, names once per struct, parameters,
 * nesting, the number of fields. What is read is copied, so the document may go. */
#include "table/type.h"

#include "base/limits.h"
#include "base/map.h"
#include "table/type_int.h"

#include <stdio.h>

typedef struct type_parser {
    tarn_arena *arena;
    tarn_error *err;
    tarn_idmap ids;
    int32_t n_fields;
} type_parser;

static tarn_code parse_type(type_parser *p, const json_value *json, int depth,
                            const tarn_type **out);

static tarn_code take_id(type_parser *p, const json_value *json, const char *member, int32_t *id) {
    int32_t before;
    if (!json_i32(json_get(json, member), id) || *id < 0) {
        return err_set(p->err, TARN_CORRUPT, "a type in a schema had no valid %s", member);
    }
    if (idmap_get(&p->ids, *id, &before)) {
        return err_set(p->err, TARN_CORRUPT, "field id %d occurred twice in a schema", (int)*id);
    }
    if (++p->n_fields > LIMIT_SCHEMA_FIELDS) {
        return err_set(p->err, TARN_LIMIT, "a schema had more than %d fields", LIMIT_SCHEMA_FIELDS);
    }
    return idmap_set(&p->ids, *id, 1, p->err);
}

static tarn_code copy_default(type_parser *p, const json_value *json, const char *member,
                              const json_value **out) {
    const json_value *value = json_get(json, member);
    if (value == NULL || value->kind == JSON_NULL) {
        return TARN_OK;
    }
    *out = type_copy_json(p->arena, value);
    return *out != NULL ? TARN_OK : err_nomem(p->err);
}

static tarn_code parse_field(type_parser *p, const json_value *json, int depth, tarn_field *field) {
    tarn_code code = take_id(p, json, "id", &field->id);
    tarn_str name;
    tarn_str doc;
    if (code != TARN_OK) {
        return code;
    }
    if (!json_str(json_get(json, "name"), &name) || name.len > LIMIT_NAME_BYTES) {
        return err_set(p->err, TARN_CORRUPT, "field %d of a schema had no valid name",
                       (int)field->id);
    }
    if (!json_bool(json_get(json, "required"), &field->required)) {
        return err_set(p->err, TARN_CORRUPT, "field %d (%.*s) did not say whether it was required",
                       (int)field->id, STR_ARG(name));
    }
    field->name = arena_str(p->arena, name);
    if (field->name.data == NULL) {
        return err_nomem(p->err);
    }
    if (json_str(json_get(json, "doc"), &doc)) {
        field->doc = arena_str(p->arena, doc);
        if (field->doc.data == NULL) {
            return err_nomem(p->err);
        }
    }
    code = copy_default(p, json, "initial-default", &field->initial_default);
    if (code == TARN_OK) {
        code = copy_default(p, json, "write-default", &field->write_default);
    }
    if (code == TARN_OK) {
        code = parse_type(p, json_get(json, "type"), depth + 1, &field->type);
    }
    return code;
}

static tarn_code parse_struct(type_parser *p, const json_value *json, int depth,
                              const tarn_type **out) {
    const json_value *list = json_get(json, "fields");
    if (!json_is(list, JSON_ARRAY)) {
        return err_set(p->err, TARN_CORRUPT, "a struct type had no list of fields");
    }
    if (list->count > LIMIT_SCHEMA_FIELDS) {
        return err_set(p->err, TARN_LIMIT, "a schema had more than %d fields", LIMIT_SCHEMA_FIELDS);
    }
    tarn_field *fields = ARENA_ARRAY(p->arena, tarn_field, list->count);
    if (fields == NULL) {
        return err_nomem(p->err);
    }
    tarn_map names;
    map_init(&names, p->arena);
    int32_t n = 0;
    for (const json_value *item = list->first; item != NULL; item = item->next, n++) {
        bool added = false;
        tarn_code code = parse_field(p, item, depth, &fields[n]);
        if (code != TARN_OK) {
            return code;
        }
        if (map_put(&names, fields[n].name, &added) == NULL) {
            return err_nomem(p->err);
        }
        if (!added) {
            return err_set(p->err, TARN_CORRUPT, "column name %.*s occurred twice in one struct",
                           STR_ARG(fields[n].name));
        }
    }
    *out = type_struct(p->arena, fields, n);
    return *out != NULL ? TARN_OK : err_nomem(p->err);
}

static tarn_code parse_inner(type_parser *p, const json_value *json, const char *what, int depth,
                             tarn_field *field) {
    char id[32];
    char required[32];
    (void)snprintf(id, sizeof id, "%s-id", what);
    (void)snprintf(required, sizeof required, "%s-required", what);
    tarn_code code = take_id(p, json, id, &field->id);
    if (code != TARN_OK) {
        return code;
    }
    field->required = true;
    if (strcmp(what, "key") != 0 && !json_bool(json_get(json, required), &field->required)) {
        return err_set(p->err, TARN_CORRUPT, "field %d of a schema had no %s", (int)field->id,
                       required);
    }
    return parse_type(p, json_get(json, what), depth + 1, &field->type);
}

static tarn_code parse_container(type_parser *p, const json_value *json, tarn_str name, int depth,
                                 const tarn_type **out) {
    tarn_field first;
    tarn_field second;
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    tarn_code code = TARN_OK;
    if (str_is(name, "list")) {
        TRY(parse_inner(p, json, "element", depth, &first));
        *out = type_list(p->arena, first);
    } else {
        TRY(parse_inner(p, json, "key", depth, &first));
        TRY(parse_inner(p, json, "value", depth, &second));
        *out = type_map(p->arena, first, second);
    }
    code = *out != NULL ? TARN_OK : err_nomem(p->err);
done:
    return code;
}

static tarn_code parse_type(type_parser *p, const json_value *json, int depth,
                            const tarn_type **out) {
    tarn_str text;
    if (depth > LIMIT_NESTING) {
        return err_set(p->err, TARN_LIMIT, "a type was nested more than %d levels deep",
                       LIMIT_NESTING);
    }
    if (json_str(json, &text)) {
        const tarn_type *type = NULL;
        tarn_code code = type_parse_primitive(p->arena, text, &type, p->err);
        if (code == TARN_OK && type == NULL) {
            code = err_set(p->err, TARN_CORRUPT, "%.*s was not the name of a type", STR_ARG(text));
        }
        if (code == TARN_OK) {
            *out = type;
        }
        return code;
    }
    if (json_str(json_get(json, "type"), &text)) {
        if (str_is(text, "struct")) {
            return parse_struct(p, json, depth, out);
        }
        if (str_is(text, "list") || str_is(text, "map")) {
            return parse_container(p, json, text, depth, out);
        }
        return err_set(p->err, TARN_CORRUPT, "%.*s was not the name of a nested type",
                       STR_ARG(text));
    }
    return err_set(p->err, TARN_CORRUPT, "a type was neither a name nor a struct, list or map");
}

tarn_code type_from_json(tarn_arena *arena, const json_value *json, const tarn_type **out,
                         tarn_error *err) {
    type_parser p = {.arena = arena, .err = err};
    idmap_init(&p.ids, arena);
    const tarn_type *type = NULL;
    tarn_code code = parse_type(&p, json, 0, &type);
    if (code == TARN_OK) {
        *out = type;
    }
    return code;
}

static bool is_schema_member(tarn_str name) {
    return str_is(name, "type") || str_is(name, "fields") || str_is(name, "schema-id") ||
           str_is(name, "identifier-field-ids");
}

static tarn_code copy_extra(tarn_arena *arena, const json_value *json, const json_value **out,
                            tarn_error *err) {
    json_value *extra = NULL;
    for (const json_value *item = json->first; item != NULL; item = item->next) {
        if (is_schema_member(item->name)) {
            continue;
        }
        if (extra == NULL && (extra = json_new(arena, JSON_OBJECT)) == NULL) {
            return err_nomem(err);
        }
        json_value *copy = type_copy_json(arena, item);
        if (copy == NULL) {
            return err_nomem(err);
        }
        json_add(extra, copy);
    }
    *out = extra;
    return TARN_OK;
}

static tarn_code parse_identifiers(type_parser *p, const json_value *json, tarn_schema *schema) {
    const json_value *list = json_get(json, "identifier-field-ids");
    if (list == NULL || list->kind == JSON_NULL) {
        return TARN_OK;
    }
    if (list->kind != JSON_ARRAY || list->count > LIMIT_SCHEMA_FIELDS) {
        return err_set(p->err, TARN_CORRUPT, "identifier-field-ids of a schema was not a list");
    }
    int32_t *ids = ARENA_ARRAY(p->arena, int32_t, list->count);
    if (ids == NULL) {
        return err_nomem(p->err);
    }
    int32_t n = 0;
    for (const json_value *item = list->first; item != NULL; item = item->next, n++) {
        int32_t known;
        if (!json_i32(item, &ids[n]) || !idmap_get(&p->ids, ids[n], &known)) {
            return err_set(p->err, TARN_CORRUPT,
                           "identifier-field-ids of schema %d named no field of it",
                           (int)schema->schema_id);
        }
    }
    schema->identifier_ids = ids;
    schema->n_identifier_ids = n;
    return TARN_OK;
}

tarn_code schema_from_json(tarn_arena *arena, const json_value *json, const tarn_schema **out,
                           tarn_error *err) {
    type_parser p = {.arena = arena, .err = err};
    idmap_init(&p.ids, arena);
    tarn_schema *schema = ARENA_NEW(arena, tarn_schema);
    if (schema == NULL) {
        return err_nomem(err);
    }
    if (!json_is(json, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "a schema was not a JSON object");
    }
    const json_value *id = json_get(json, "schema-id"); /* absent in v1: 0 */
    if (id != NULL && !json_i32(id, &schema->schema_id)) {
        return err_set(err, TARN_CORRUPT, "the schema-id of a schema was not an int");
    }
    tarn_code code;
    TRY(parse_struct(&p, json, 0, &schema->root));
    TRY(parse_identifiers(&p, json, schema));
    TRY(copy_extra(arena, json, &schema->extra, err));
    *out = schema;
done:
    return code;
}

/* ---- writing ---- */

static void put_text(const tarn_type *type, json_writer *w) {
    char text[64];
    switch ((int)type->kind) {
    case TARN_DECIMAL:
        (void)snprintf(text, sizeof text, "decimal(%d, %d)", (int)type->precision,
                       (int)type->scale);
        break;
    case TARN_FIXED:
        (void)snprintf(text, sizeof text, "fixed[%d]", (int)type->length);
        break;
    default:
        if (type->text.len > 0) {
            json_put_string(w, type->text);
            return;
        }
        (void)snprintf(text, sizeof text, "%s", type_kind_name(type->kind));
        break;
    }
    json_put_string(w, str_of(text));
}

static void put_field(const tarn_field *field, json_writer *w) {
    json_put_object(w);
    json_member_i64(w, "id", field->id);
    json_member_str(w, "name", field->name);
    json_member_bool(w, "required", field->required);
    json_put_name(w, STR("type"));
    type_put_json(field->type, w);
    if (field->doc.data != NULL) {
        json_member_str(w, "doc", field->doc);
    }
    if (field->initial_default != NULL) {
        json_put_name(w, STR("initial-default"));
        json_put_value(w, field->initial_default);
    }
    if (field->write_default != NULL) {
        json_put_name(w, STR("write-default"));
        json_put_value(w, field->write_default);
    }
    json_end_object(w);
}

static void put_fields(const tarn_type *type, json_writer *w) {
    json_put_name(w, STR("fields"));
    json_put_array(w);
    for (int32_t i = 0; i < type->n_fields; i++) {
        put_field(&type->fields[i], w);
    }
    json_end_array(w);
}

static void put_inner(const tarn_field *field, const char *what, json_writer *w) {
    char member[32];
    (void)snprintf(member, sizeof member, "%s-id", what);
    json_member_i64(w, member, field->id);
    json_put_name(w, str_of(what));
    type_put_json(field->type, w);
    if (strcmp(what, "key") != 0) {
        (void)snprintf(member, sizeof member, "%s-required", what);
        json_member_bool(w, member, field->required);
    }
}

void type_put_json(const tarn_type *type, json_writer *w) {
    if (!type_is_nested(type)) {
        put_text(type, w);
        return;
    }
    json_put_object(w);
    json_member_str(w, "type", str_of(type_kind_name(type->kind)));
    if (type->kind == TARN_STRUCT) {
        put_fields(type, w);
    } else if (type->kind == TARN_LIST) {
        put_inner(&type->fields[0], "element", w);
    } else {
        put_inner(&type->fields[0], "key", w);
        put_inner(&type->fields[1], "value", w);
    }
    json_end_object(w);
}

void schema_put_json(const tarn_schema *schema, json_writer *w) {
    json_put_object(w);
    json_member_str(w, "type", STR("struct"));
    json_member_i64(w, "schema-id", schema->schema_id);
    if (schema->n_identifier_ids > 0) {
        json_put_name(w, STR("identifier-field-ids"));
        json_put_array(w);
        for (int32_t i = 0; i < schema->n_identifier_ids; i++) {
            json_put_i64(w, schema->identifier_ids[i]);
        }
        json_end_array(w);
    }
    put_fields(schema->root, w);
    if (schema->extra != NULL) {
        for (const json_value *item = schema->extra->first; item != NULL; item = item->next) {
            json_put_name(w, item->name);
            json_put_value(w, item);
        }
    }
    json_end_object(w);
}
