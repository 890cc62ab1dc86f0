/* iceberg/schema_check.c - the rules a schema must keep before it becomes part of a table. */
#include "iceberg/schema_check.h"

#include "base/limits.h"

static int32_t first_version(tarn_kind kind) {
    switch (kind) {
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
        return 3;
    case TARN_BOOLEAN:
    case TARN_INT:
    case TARN_LONG:
    case TARN_FLOAT:
    case TARN_DOUBLE:
    case TARN_DECIMAL:
    case TARN_DATE:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_STRING:
    case TARN_UUID:
    case TARN_FIXED:
    case TARN_BINARY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        break;
    }
    return 1;
}

static tarn_code check_fields(const tarn_type *type, int32_t version, int depth, tarn_error *err) {
    if (depth > LIMIT_NESTING) {
        return err_set(err, TARN_LIMIT, "a schema had more than %d levels", LIMIT_NESTING);
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        if (first_version(f->type->kind) > version) {
            return err_set(err, TARN_INVALID,
                           "column \"%.*s\" of type %s needs format version 3, the table has %d",
                           STR_ARG(f->name), type_kind_name(f->type->kind), version);
        }
        if (f->initial_default != NULL && version < 3) {
            return err_set(err, TARN_INVALID,
                           "the default of column \"%.*s\" needs format version 3, the table has "
                           "%d",
                           STR_ARG(f->name), version);
        }
        if (f->type->kind == TARN_UNKNOWN && f->required) {
            return err_set(err, TARN_INVALID, "column \"%.*s\" of type unknown was required",
                           STR_ARG(f->name));
        }
        if (f->name.len == 0 || f->name.len > LIMIT_NAME_BYTES) {
            return err_set(err, TARN_INVALID, "the name of a column had %zu bytes", f->name.len);
        }
        tarn_code code = check_fields(f->type, version, depth + 1, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* All parents of a field must be required structs. NULL: not below type. */
static const tarn_field *find_with_parents(const tarn_type *type, int32_t id, bool *sound) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        if (f->id == id) {
            return f;
        }
        const tarn_field *below = find_with_parents(f->type, id, sound);
        if (below != NULL) {
            *sound = *sound && f->required && f->type->kind == TARN_STRUCT;
            return below;
        }
    }
    return NULL;
}

static tarn_code check_identifiers(const tarn_schema *schema, tarn_error *err) {
    for (int32_t i = 0; i < schema->n_identifier_ids; i++) {
        bool sound = true;
        const tarn_field *f = find_with_parents(schema->root, schema->identifier_ids[i], &sound);
        if (f == NULL) {
            return err_set(err, TARN_INVALID, "identifier field %d was not in the schema",
                           schema->identifier_ids[i]);
        }
        if (!sound || !f->required || type_is_nested(f->type) || f->type->kind == TARN_FLOAT ||
            f->type->kind == TARN_DOUBLE) {
            return err_set(err, TARN_INVALID,
                           "column \"%.*s\" cannot identify rows: it must be required, not a "
                           "float or double, and in required structs only",
                           STR_ARG(f->name));
        }
    }
    return TARN_OK;
}

tarn_code schema_check(const tarn_schema *schema, int32_t format_version, tarn_error *err) {
    tarn_code code = check_fields(schema->root, format_version, 0, err);
    if (code == TARN_OK && type_node_count(schema->root) > LIMIT_SCHEMA_FIELDS) {
        code = err_set(err, TARN_LIMIT, "a schema had more than %d fields", LIMIT_SCHEMA_FIELDS);
    }
    for (int32_t i = 1; code == TARN_OK && i < schema->root->n_fields; i++) {
        const tarn_field *f = &schema->root->fields[i];
        if (type_child(schema->root, f->name) != f) {
            code = err_set(err, TARN_INVALID, "column \"%.*s\" was there twice", STR_ARG(f->name));
        }
    }
    return code == TARN_OK ? check_identifiers(schema, err) : code;
}
