/* table/arrow.c - schemas at the edge: ours as ArrowSchema, others' as ours. */
#include "table/batch.h"

#include "base/limits.h"
#include "table/array_int.h"
#include "table/arrow_int.h"
#include "table/type_int.h"

#include <stdio.h>

#define KEY_FIELD_ID  "PARQUET:field_id"
#define KEY_EXTENSION "ARROW:extension:name"
#define KEY_DEFAULT   "tarn.write-default"

/* ---- out ---- */

typedef struct schema_node {
    tarn_env *env;
    char format[48];
    char *name;
    char *metadata;
} schema_node;

static void release_schema(struct ArrowSchema *schema) {
    schema_node *node = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL) {
            schema->children[i]->release(schema->children[i]);
        }
    }
    env_free(node->env, node->name);
    env_free(node->env, node->metadata);
    env_free(node->env, node);
    schema->release = NULL;
}

static const char *plain_format(tarn_kind kind) {
    static const char *const formats[] = {
        [TARN_BOOLEAN] = "b",
        [TARN_INT] = "i",
        [TARN_LONG] = "l",
        [TARN_FLOAT] = "f",
        [TARN_DOUBLE] = "g",
        [TARN_DATE] = "tdD",
        [TARN_TIME] = "ttu",
        [TARN_TIMESTAMP] = "tsu:",
        [TARN_TIMESTAMPTZ] = "tsu:UTC",
        [TARN_TIMESTAMP_NS] = "tsn:",
        [TARN_TIMESTAMPTZ_NS] = "tsn:UTC",
        [TARN_STRING] = "u",
        [TARN_UUID] = "w:16",
        [TARN_BINARY] = "z",
        [TARN_UNKNOWN] = "n",
        [TARN_GEOMETRY] = "z",
        [TARN_GEOGRAPHY] = "z",
        [TARN_VARIANT] = "+s",
        [TARN_STRUCT] = "+s",
        [TARN_LIST] = "+l",
        [TARN_MAP] = "+m",
    };
    return formats[kind];
}

static void put_format(const tarn_type *type, char out[48]) {
    if (type->kind == TARN_DECIMAL) {
        (void)snprintf(out, 48, "d:%d,%d", (int)type->precision, (int)type->scale);
    } else if (type->kind == TARN_FIXED) {
        (void)snprintf(out, 48, "w:%d", (int)type->length);
    } else {
        (void)snprintf(out, 48, "%s", plain_format(type->kind));
    }
}

static const char *extension_of(tarn_kind kind) {
    if (kind == TARN_UUID) {
        return "arrow.uuid";
    }
    if (kind == TARN_VARIANT) {
        return "arrow.parquet.variant";
    }
    return kind == TARN_GEOMETRY || kind == TARN_GEOGRAPHY ? "geoarrow.wkb" : NULL;
}

/* One pair of the metadata encoding: int32 length and bytes, twice. */
static tarn_code put_pair(tarn_buf *out, const char *key, tarn_str value, tarn_error *err) {
    int32_t key_len = (int32_t)strlen(key);
    int32_t value_len = (int32_t)value.len;
    tarn_code code = TARN_OK;
    TRY(buf_append(out, &key_len, 4, err));
    TRY(buf_append(out, key, (size_t)key_len, err));
    TRY(buf_append(out, &value_len, 4, err));
    code = buf_append_str(out, value, err);
done:
    return code;
}

static tarn_code put_default(tarn_buf *out, const json_value *value, tarn_error *err) {
    tarn_buf text;
    json_writer w;
    buf_init(&text, out->env, 0);
    json_begin(&w, &text, false, err);
    json_put_value(&w, value);
    tarn_code code = json_end(&w);
    code = code == TARN_OK ? put_pair(out, KEY_DEFAULT, buf_str(&text), err) : code;
    buf_release(&text);
    return code;
}

static tarn_code put_metadata(schema_node *node, const tarn_field *field, tarn_error *err) {
    char id[16];
    tarn_buf out;
    tarn_code code = TARN_OK;
    const char *extension = extension_of(field->type->kind);
    int32_t n =
        (field->id >= 0) + (extension != NULL ? 2 : 0) + (field->write_default != NULL ? 1 : 0);
    if (n == 0) {
        return TARN_OK;
    }
    buf_init(&out, node->env, 0);
    TRY(buf_append(&out, &n, 4, err));
    if (field->id >= 0) {
        (void)snprintf(id, sizeof id, "%d", (int)field->id);
        TRY(put_pair(&out, KEY_FIELD_ID, str_of(id), err));
    }
    if (extension != NULL) {
        TRY(put_pair(&out, KEY_EXTENSION, str_of(extension), err));
        TRY(put_pair(&out, "ARROW:extension:metadata", STR(""), err));
    }
    if (field->write_default != NULL) {
        TRY(put_default(&out, field->write_default, err));
    }
    node->metadata = env_alloc(node->env, out.len);
    if (node->metadata == NULL) {
        code = err_nomem(err);
        goto done;
    }
    memcpy(node->metadata, out.data, out.len);
done:
    buf_release(&out);
    return code;
}

/* A schema of the format with zeroed children. */
static tarn_code make_schema(tarn_env *env, tarn_str name, int64_t n_children,
                             struct ArrowSchema *out, tarn_error *err) {
    size_t each = sizeof(struct ArrowSchema) + sizeof(struct ArrowSchema *);
    schema_node *node = env_calloc(env, 1, sizeof *node + (size_t)n_children * each);
    if (node == NULL) {
        return err_nomem(err);
    }
    node->env = env;
    node->name = env_calloc(env, name.len + 1, 1);
    if (node->name == NULL) {
        env_free(env, node);
        return err_nomem(err);
    }
    if (name.len > 0) {
        memcpy(node->name, name.data, name.len);
    }
    struct ArrowSchema *children = (struct ArrowSchema *)(void *)(node + 1);
    struct ArrowSchema **pointers = (struct ArrowSchema **)(void *)(children + n_children);
    for (int64_t i = 0; i < n_children; i++) {
        pointers[i] = &children[i];
    }
    memset(out, 0, sizeof *out);
    out->format = node->format;
    out->name = node->name;
    out->n_children = n_children;
    out->children = n_children > 0 ? pointers : NULL;
    out->release = release_schema;
    out->private_data = node;
    return TARN_OK;
}

static tarn_code field_to_arrow(tarn_env *env, const tarn_field *field, struct ArrowSchema *out,
                                tarn_error *err) {
    const tarn_type *type = field->type;
    struct ArrowSchema *parent = out;
    tarn_code code = make_schema(env, field->name, array_child_count(type), out, err);
    if (code != TARN_OK) {
        return code;
    }
    schema_node *node = out->private_data;
    out->flags = field->required ? 0 : ARROW_FLAG_NULLABLE;
    put_format(type, node->format);
    TRY(put_metadata(node, field, err));
    out->metadata = node->metadata;
    if (type->kind == TARN_MAP) {
        parent = out->children[0];
        TRY(make_schema(env, STR("entries"), 2, parent, err));
        put_format(type_primitive(TARN_VARIANT), ((schema_node *)parent->private_data)->format);
    }
    for (int32_t i = 0; i < array_part_count(type); i++) {
        tarn_field part = type_make_field(TARN_NO_ID, true, i == 0 ? STR("metadata") : STR("value"),
                                          array_part_type(type, i));
        TRY(field_to_arrow(env, type->kind == TARN_VARIANT ? &part : &type->fields[i],
                           parent->children[i], err));
    }
done:
    if (code != TARN_OK) {
        release_schema(out);
    }
    return code;
}

tarn_code type_to_arrow(tarn_env *env, const tarn_type *root, struct ArrowSchema *out,
                        tarn_error *err) {
    tarn_field field = type_make_field(TARN_NO_ID, true, STR(""), root);
    struct ArrowSchema made;
    tarn_code code = field_to_arrow(env, &field, &made, err);
    if (code == TARN_OK) {
        *out = made;
    }
    return code;
}

/* ---- in ---- */

typedef struct schema_reader {
    tarn_arena *arena;
    tarn_error *err;
    int32_t n_fields;
} schema_reader;

static tarn_code read_schema_type(schema_reader *r, const struct ArrowSchema *schema, int depth,
                                  const tarn_type **out);

/* Metadata has no total length of its own; lengths within it are taken at their word, as the
 * interface demands, but never below zero. */
static bool find_metadata(const char *metadata, const char *key, tarn_str *value) {
    int32_t n = 0;
    if (metadata == NULL) {
        return false;
    }
    memcpy(&n, metadata, 4);
    const char *p = metadata + 4;
    for (int32_t i = 0; i < n; i++) {
        tarn_str pair[2];
        for (int j = 0; j < 2; j++) {
            int32_t len = num_load_i32(p);
            if (len < 0) {
                return false;
            }
            pair[j] = str_make(p + 4, (size_t)len);
            p += 4 + len;
        }
        if (str_is(pair[0], key)) {
            *value = pair[1];
            return true;
        }
    }
    return false;
}

static tarn_code read_field(schema_reader *r, const struct ArrowSchema *schema, int depth,
                            tarn_field *field) {
    tarn_str id;
    tarn_str name = str_of(schema->name != NULL ? schema->name : "");
    *field =
        type_make_field(TARN_NO_ID, (schema->flags & ARROW_FLAG_NULLABLE) == 0, STR_NULL, NULL);
    if (++r->n_fields > LIMIT_SCHEMA_FIELDS) {
        return err_set(r->err, TARN_LIMIT, "a schema had more than %d fields", LIMIT_SCHEMA_FIELDS);
    }
    if (!str_utf8_valid(name) || name.len > LIMIT_NAME_BYTES) {
        return err_set(r->err, TARN_INVALID, "the name of an Arrow column was not valid");
    }
    if (find_metadata(schema->metadata, KEY_FIELD_ID, &id) &&
        (!str_to_i32(id, &field->id) || field->id < 0)) {
        field->id = TARN_NO_ID;
    }
    field->name = arena_str(r->arena, name);
    if (field->name.data == NULL) {
        return err_nomem(r->err);
    }
    return read_schema_type(r, schema, depth, &field->type);
}

static tarn_code check_children(schema_reader *r, const struct ArrowSchema *schema, int64_t n) {
    bool good = schema->n_children == n && (n == 0 || schema->children != NULL);
    for (int64_t i = 0; good && i < n; i++) {
        good = schema->children[i] != NULL && schema->children[i]->release != NULL;
    }
    return good ? TARN_OK
                : err_set(r->err, TARN_INVALID, "the Arrow column %s had %lld children",
                          schema->name != NULL ? schema->name : "", (long long)schema->n_children);
}

static tarn_code read_struct(schema_reader *r, const struct ArrowSchema *schema, int depth,
                             const tarn_type **out) {
    tarn_code code;
    if (schema->n_children < 0 || schema->n_children > LIMIT_SCHEMA_FIELDS) {
        return check_children(r, schema, 0);
    }
    TRY(check_children(r, schema, schema->n_children));
    int32_t n = (int32_t)schema->n_children;
    tarn_field *fields = ARENA_ARRAY(r->arena, tarn_field, (size_t)n);
    if (fields == NULL) {
        return err_nomem(r->err);
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(read_field(r, schema->children[i], depth + 1, &fields[i]));
    }
    *out = type_struct(r->arena, fields, n);
    code = *out != NULL ? TARN_OK : err_nomem(r->err);
done:
    return code;
}

static tarn_code read_container(schema_reader *r, const struct ArrowSchema *schema, bool is_map,
                                int depth, const tarn_type **out) {
    tarn_field first;
    tarn_field second;
    tarn_code code;
    TRY(check_children(r, schema, 1));
    if (!is_map) {
        TRY(read_field(r, schema->children[0], depth + 1, &first));
        *out = type_list(r->arena, first);
    } else {
        TRY(check_children(r, schema->children[0], 2));
        TRY(read_field(r, schema->children[0]->children[0], depth + 1, &first));
        TRY(read_field(r, schema->children[0]->children[1], depth + 1, &second));
        *out = type_map(r->arena, first, second);
    }
    code = *out != NULL ? TARN_OK : err_nomem(r->err);
done:
    return code;
}

static tarn_code read_decimal(schema_reader *r, const struct ArrowSchema *schema,
                              const arrow_format *f, const tarn_type **out) {
    if (f->precision > 38 || f->scale < 0 || f->scale > f->precision) {
        return err_set(r->err, TARN_UNSUPPORTED, "column %s had the decimal (%d, %d)",
                       schema->name != NULL ? schema->name : "", (int)f->precision, (int)f->scale);
    }
    *out = type_decimal(r->arena, f->precision, f->scale);
    return *out != NULL ? TARN_OK : err_nomem(r->err);
}

static tarn_kind leaf_kind(const arrow_format *f) {
    switch (f->layout) {
    case ARROW_NULL:
        return TARN_UNKNOWN;
    case ARROW_BOOL:
        return TARN_BOOLEAN;
    case ARROW_INT: /* the narrowest that holds all; 64 unsigned bits are a decimal */
        return f->width < 4 || (f->width == 4 && f->is_signed) ? TARN_INT : TARN_LONG;
    case ARROW_FLOAT:
        return f->width == 8 ? TARN_DOUBLE : TARN_FLOAT;
    case ARROW_DATE:
        return TARN_DATE;
    case ARROW_TIME:
        return TARN_TIME;
    case ARROW_TIMESTAMP:
        if (f->per_second == 1000000000) {
            return f->zoned ? TARN_TIMESTAMPTZ_NS : TARN_TIMESTAMP_NS;
        }
        return f->zoned ? TARN_TIMESTAMPTZ : TARN_TIMESTAMP;
    case ARROW_BYTES:
    case ARROW_VIEWS:
        return f->is_text ? TARN_STRING : TARN_BINARY;
    case ARROW_FIXED:
    case ARROW_DECIMAL:
    case ARROW_STRUCT:
    case ARROW_LIST:
    case ARROW_LIST_VIEW:
    case ARROW_FIXED_LIST:
    case ARROW_MAP:
    case ARROW_RUNS:
    case ARROW_DICTIONARY:
        break;
    }
    return TARN_UNKNOWN;
}

static tarn_code read_leaf(schema_reader *r, const struct ArrowSchema *schema,
                           const arrow_format *f, const tarn_type **out) {
    tarn_str extension = STR_NULL;
    (void)find_metadata(schema->metadata, KEY_EXTENSION, &extension);
    if (f->layout == ARROW_DECIMAL) {
        return read_decimal(r, schema, f, out);
    }
    if (f->layout == ARROW_INT && f->width == 8 && !f->is_signed) {
        *out = type_decimal(r->arena, 20, 0);
        return *out != NULL ? TARN_OK : err_nomem(r->err);
    }
    if (f->layout == ARROW_FIXED && f->width == 16 && str_is(extension, "arrow.uuid")) {
        *out = type_primitive(TARN_UUID);
        return TARN_OK;
    }
    if (f->layout == ARROW_FIXED) {
        *out = type_fixed(r->arena, f->width);
        return *out != NULL ? TARN_OK : err_nomem(r->err);
    }
    *out = type_primitive(leaf_kind(f));
    return TARN_OK;
}

/* A variant is a struct of two binary columns with a name of its own. */
static bool is_variant(const struct ArrowSchema *schema) {
    tarn_str extension;
    arrow_format part;
    if (!find_metadata(schema->metadata, KEY_EXTENSION, &extension) ||
        !(str_is(extension, "arrow.parquet.variant") || str_is(extension, "parquet.variant")) ||
        schema->n_children != 2) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const struct ArrowSchema *child = schema->children[i];
        if (arrow_read_format(child, &part, NULL) != TARN_OK || part.is_text ||
            (part.layout != ARROW_BYTES && part.layout != ARROW_VIEWS) ||
            strcmp(child->name != NULL ? child->name : "", i == 0 ? "metadata" : "value") != 0) {
            return false;
        }
    }
    return true;
}

static tarn_code read_schema_type(schema_reader *r, const struct ArrowSchema *schema, int depth,
                                  const tarn_type **out) {
    arrow_format f;
    tarn_code code;
    if (depth > LIMIT_NESTING) {
        return err_set(r->err, TARN_LIMIT, "a type was nested more than %d levels deep",
                       LIMIT_NESTING);
    }
    TRY(arrow_read_format(schema, &f, r->err));
    switch (f.layout) {
    case ARROW_DICTIONARY:
        return read_schema_type(r, schema->dictionary, depth + 1, out);
    case ARROW_RUNS:
        TRY(check_children(r, schema, 2));
        return read_schema_type(r, schema->children[1], depth + 1, out);
    case ARROW_STRUCT:
        TRY(check_children(r, schema, schema->n_children < 0 ? 0 : schema->n_children));
        if (is_variant(schema)) {
            *out = type_primitive(TARN_VARIANT);
            return TARN_OK;
        }
        return read_struct(r, schema, depth, out);
    case ARROW_LIST:
    case ARROW_LIST_VIEW:
    case ARROW_FIXED_LIST:
    case ARROW_MAP:
        return read_container(r, schema, f.layout == ARROW_MAP, depth, out);
    case ARROW_NULL:
    case ARROW_BOOL:
    case ARROW_INT:
    case ARROW_FLOAT:
    case ARROW_DECIMAL:
    case ARROW_DATE:
    case ARROW_TIME:
    case ARROW_TIMESTAMP:
    case ARROW_FIXED:
    case ARROW_BYTES:
    case ARROW_VIEWS:
        return read_leaf(r, schema, &f, out);
    }
    code = err_set(r->err, TARN_INTERNAL, "an Arrow layout was not known");
done:
    return code;
}

tarn_code type_from_arrow(tarn_arena *arena, const struct ArrowSchema *schema,
                          const tarn_type **out, tarn_error *err) {
    schema_reader r = {.arena = arena, .err = err};
    const tarn_type *type = NULL;
    if (schema->release == NULL || schema->format == NULL || strcmp(schema->format, "+s") != 0) {
        return err_set(err, TARN_INVALID, "the Arrow schema of a batch was not a struct");
    }
    tarn_code code = read_struct(&r, schema, 0, &type);
    if (code == TARN_OK) {
        *out = type;
    }
    return code;
}

/* ---- defaults ---- */

static tarn_code take_default(tarn_arena *arena, const struct ArrowSchema *schema,
                              tarn_field *field, tarn_error *err) {
    tarn_str text;
    json_value *json;
    if (!find_metadata(schema->metadata, KEY_DEFAULT, &text)) {
        return TARN_OK;
    }
    tarn_code code = json_parse(arena, text, KEY_DEFAULT, &json, err);
    if (code == TARN_OK) {
        field->write_default = json;
    }
    return code;
}

tarn_code type_defaults_from_arrow(tarn_arena *arena, const struct ArrowSchema *schema,
                                   const tarn_type *type, const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    *out = type;
    if (type->kind != TARN_STRUCT || schema->n_children != type->n_fields) {
        return TARN_OK;
    }
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        const struct ArrowSchema *child = schema->children[i];
        fields[i] = type->fields[i];
        TRY(type_defaults_from_arrow(arena, child, fields[i].type, &fields[i].type, err));
        TRY(take_default(arena, child, &fields[i], err));
    }
    *out = type_struct(arena, fields, type->n_fields);
    code = *out != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}
