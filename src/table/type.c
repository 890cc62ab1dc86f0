/* table/type.c - making, comparing, finding and pruning types.
 *
 * Invariants: a type never changes once made; lists have one field, maps two; primitives without
 * parameters are the static ones below, so comparing kinds is enough for them. Recursion is bounded
 * because every parser of outside types stops at LIMIT_NESTING. */
#include "table/type.h"

#include "base/limits.h"
#include "table/type_int.h"

#define PRIMITIVE(k)                                                                               \
    { .kind = (k) }

static const tarn_type primitives[] = {
    [TARN_BOOLEAN] = PRIMITIVE(TARN_BOOLEAN),
    [TARN_INT] = PRIMITIVE(TARN_INT),
    [TARN_LONG] = PRIMITIVE(TARN_LONG),
    [TARN_FLOAT] = PRIMITIVE(TARN_FLOAT),
    [TARN_DOUBLE] = PRIMITIVE(TARN_DOUBLE),
    [TARN_DATE] = PRIMITIVE(TARN_DATE),
    [TARN_TIME] = PRIMITIVE(TARN_TIME),
    [TARN_TIMESTAMP] = PRIMITIVE(TARN_TIMESTAMP),
    [TARN_TIMESTAMPTZ] = PRIMITIVE(TARN_TIMESTAMPTZ),
    [TARN_TIMESTAMP_NS] = PRIMITIVE(TARN_TIMESTAMP_NS),
    [TARN_TIMESTAMPTZ_NS] = PRIMITIVE(TARN_TIMESTAMPTZ_NS),
    [TARN_STRING] = PRIMITIVE(TARN_STRING),
    [TARN_UUID] = PRIMITIVE(TARN_UUID),
    [TARN_BINARY] = PRIMITIVE(TARN_BINARY),
    [TARN_UNKNOWN] = PRIMITIVE(TARN_UNKNOWN),
    [TARN_VARIANT] = PRIMITIVE(TARN_VARIANT),
    [TARN_GEOMETRY] = PRIMITIVE(TARN_GEOMETRY),
    [TARN_GEOGRAPHY] = PRIMITIVE(TARN_GEOGRAPHY),
};

static const char *const kind_names[] = {
    [TARN_BOOLEAN] = "boolean",
    [TARN_INT] = "int",
    [TARN_LONG] = "long",
    [TARN_FLOAT] = "float",
    [TARN_DOUBLE] = "double",
    [TARN_DECIMAL] = "decimal",
    [TARN_DATE] = "date",
    [TARN_TIME] = "time",
    [TARN_TIMESTAMP] = "timestamp",
    [TARN_TIMESTAMPTZ] = "timestamptz",
    [TARN_TIMESTAMP_NS] = "timestamp_ns",
    [TARN_TIMESTAMPTZ_NS] = "timestamptz_ns",
    [TARN_STRING] = "string",
    [TARN_UUID] = "uuid",
    [TARN_FIXED] = "fixed",
    [TARN_BINARY] = "binary",
    [TARN_UNKNOWN] = "unknown",
    [TARN_VARIANT] = "variant",
    [TARN_GEOMETRY] = "geometry",
    [TARN_GEOGRAPHY] = "geography",
    [TARN_STRUCT] = "struct",
    [TARN_LIST] = "list",
    [TARN_MAP] = "map",
};

const tarn_type *type_primitive(tarn_kind kind) {
    size_t i = (size_t)kind;
    if (i >= sizeof primitives / sizeof primitives[0] || primitives[i].kind != kind) {
        return NULL;
    }
    return &primitives[i];
}

const char *type_kind_name(tarn_kind kind) {
    size_t i = (size_t)kind;
    if (i >= sizeof kind_names / sizeof kind_names[0] || kind_names[i] == NULL) {
        return "?";
    }
    return kind_names[i];
}

const tarn_type *type_decimal(tarn_arena *arena, int32_t precision, int32_t scale) {
    tarn_type *type = ARENA_NEW(arena, tarn_type);
    if (type != NULL) {
        type->kind = TARN_DECIMAL;
        type->precision = precision;
        type->scale = scale;
    }
    return type;
}

const tarn_type *type_fixed(tarn_arena *arena, int32_t length) {
    tarn_type *type = ARENA_NEW(arena, tarn_type);
    if (type != NULL) {
        type->kind = TARN_FIXED;
        type->length = length;
    }
    return type;
}

const tarn_type *type_struct(tarn_arena *arena, const tarn_field *fields, int32_t n_fields) {
    tarn_type *type = ARENA_NEW(arena, tarn_type);
    if (type != NULL) {
        type->kind = TARN_STRUCT;
        type->fields = fields;
        type->n_fields = n_fields;
    }
    return type;
}

static const tarn_type *make_container(tarn_arena *arena, tarn_kind kind, const tarn_field *fields,
                                       int32_t n_fields) {
    tarn_type *type = ARENA_NEW(arena, tarn_type);
    tarn_field *copy = ARENA_ARRAY(arena, tarn_field, (size_t)n_fields);
    if (type == NULL || copy == NULL) {
        return NULL;
    }
    memcpy(copy, fields, (size_t)n_fields * sizeof *copy);
    type->kind = kind;
    type->fields = copy;
    type->n_fields = n_fields;
    return type;
}

const tarn_type *type_list(tarn_arena *arena, tarn_field element) {
    element.name = STR("element");
    return make_container(arena, TARN_LIST, &element, 1);
}

const tarn_type *type_map(tarn_arena *arena, tarn_field key, tarn_field value) {
    tarn_field fields[2] = {key, value};
    fields[0].name = STR("key");
    fields[0].required = true; /* spec: "Map keys must be required" */
    fields[1].name = STR("value");
    return make_container(arena, TARN_MAP, fields, 2);
}

tarn_field type_make_field(int32_t id, bool required, tarn_str name, const tarn_type *type) {
    tarn_field field;
    memset(&field, 0, sizeof field);
    field.id = id;
    field.required = required;
    field.name = name;
    field.type = type;
    return field;
}

json_value *type_copy_json(tarn_arena *arena, const json_value *json) {
    json_value *copy = ARENA_NEW(arena, json_value);
    if (copy == NULL) {
        return NULL;
    }
    *copy = *json;
    copy->first = NULL;
    copy->next = NULL;
    if (json->text.data != NULL && (copy->text = arena_str(arena, json->text)).data == NULL) {
        return NULL;
    }
    if (json->name.data != NULL && (copy->name = arena_str(arena, json->name)).data == NULL) {
        return NULL;
    }
    json_value **tail = &copy->first;
    for (const json_value *item = json->first; item != NULL; item = item->next) {
        *tail = type_copy_json(arena, item);
        if (*tail == NULL) {
            return NULL;
        }
        tail = &(*tail)->next;
    }
    return copy;
}

static bool copy_field(tarn_arena *arena, const tarn_field *src, tarn_field *dst) {
    *dst = *src;
    dst->name = arena_str(arena, src->name);
    dst->type = type_copy(arena, src->type);
    if (dst->name.data == NULL || dst->type == NULL) {
        return false;
    }
    if (src->doc.data != NULL && (dst->doc = arena_str(arena, src->doc)).data == NULL) {
        return false;
    }
    if (src->initial_default != NULL) {
        dst->initial_default = type_copy_json(arena, src->initial_default);
        if (dst->initial_default == NULL) {
            return false;
        }
    }
    if (src->write_default != NULL) {
        dst->write_default = type_copy_json(arena, src->write_default);
        if (dst->write_default == NULL) {
            return false;
        }
    }
    return true;
}

const tarn_type *type_copy(tarn_arena *arena, const tarn_type *type) {
    const tarn_type *fixed = type_primitive(type->kind);
    if (fixed != NULL && type->text.len == 0) {
        return fixed;
    }
    tarn_type *copy = ARENA_NEW(arena, tarn_type);
    if (copy == NULL) {
        return NULL;
    }
    *copy = *type;
    if (type->text.len > 0 && (copy->text = arena_str(arena, type->text)).data == NULL) {
        return NULL;
    }
    if (type_is_nested(type)) {
        tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields);
        if (fields == NULL) {
            return NULL;
        }
        for (int32_t i = 0; i < type->n_fields; i++) {
            if (!copy_field(arena, &type->fields[i], &fields[i])) {
                return NULL;
            }
        }
        copy->fields = fields;
    }
    return copy;
}

/* ---- comparing ---- */

static bool same_parameters(const tarn_type *a, const tarn_type *b) {
    if (a->kind != b->kind || a->n_fields != b->n_fields) {
        return false;
    }
    if (a->kind == TARN_DECIMAL) {
        return a->precision == b->precision && a->scale == b->scale;
    }
    return a->kind != TARN_FIXED || a->length == b->length;
}

static bool same_json(const json_value *a, const json_value *b) {
    if (a == NULL || b == NULL) {
        return a == b;
    }
    if (a->kind != b->kind || a->boolean != b->boolean || a->count != b->count ||
        !str_eq(a->text, b->text)) {
        return false;
    }
    const json_value *x = a->first;
    const json_value *y = b->first;
    while (x != NULL && y != NULL) {
        if (!str_eq(x->name, y->name) || !same_json(x, y)) {
            return false;
        }
        x = x->next;
        y = y->next;
    }
    return x == NULL && y == NULL;
}

bool type_eq(const tarn_type *a, const tarn_type *b) {
    if (a == b) {
        return true;
    }
    if (!same_parameters(a, b) || !str_eq(a->text, b->text)) {
        return false;
    }
    for (int32_t i = 0; i < a->n_fields; i++) {
        const tarn_field *x = &a->fields[i];
        const tarn_field *y = &b->fields[i];
        if (x->id != y->id || x->required != y->required || !str_eq(x->name, y->name) ||
            !str_eq(x->doc, y->doc) || !same_json(x->initial_default, y->initial_default) ||
            !same_json(x->write_default, y->write_default) || !type_eq(x->type, y->type)) {
            return false;
        }
    }
    return true;
}

bool type_same_shape(const tarn_type *a, const tarn_type *b) {
    if (a == b) {
        return true;
    }
    if (!same_parameters(a, b)) {
        return false;
    }
    for (int32_t i = 0; i < a->n_fields; i++) {
        if (!type_same_shape(a->fields[i].type, b->fields[i].type)) {
            return false;
        }
    }
    return true;
}

int32_t type_width(const tarn_type *type) {
    switch (type->kind) {
    case TARN_INT:
    case TARN_FLOAT:
    case TARN_DATE:
        return 4;
    case TARN_LONG:
    case TARN_DOUBLE:
    case TARN_TIME:
    case TARN_TIMESTAMP:
    case TARN_TIMESTAMPTZ:
    case TARN_TIMESTAMP_NS:
    case TARN_TIMESTAMPTZ_NS:
        return 8;
    case TARN_DECIMAL:
    case TARN_UUID:
        return 16;
    case TARN_FIXED:
        return type->length;
    case TARN_BOOLEAN:
    case TARN_STRING:
    case TARN_BINARY:
    case TARN_UNKNOWN:
    case TARN_VARIANT:
    case TARN_GEOMETRY:
    case TARN_GEOGRAPHY:
    case TARN_STRUCT:
    case TARN_LIST:
    case TARN_MAP:
        return 0;
    }
    return 0;
}

bool type_is_var(const tarn_type *type) {
    return type->kind == TARN_STRING || type->kind == TARN_BINARY || type->kind == TARN_GEOMETRY ||
           type->kind == TARN_GEOGRAPHY;
}

/* ---- finding ---- */

const tarn_field *type_find_id(const tarn_type *root, int32_t id) {
    for (int32_t i = 0; i < root->n_fields; i++) {
        const tarn_field *field = &root->fields[i];
        if (field->id == id && id != TARN_NO_ID) {
            return field;
        }
        const tarn_field *below =
            type_is_nested(field->type) ? type_find_id(field->type, id) : NULL;
        if (below != NULL) {
            return below;
        }
    }
    return NULL;
}

static bool same_name(tarn_str a, tarn_str b, bool case_sensitive) {
    return case_sensitive ? str_eq(a, b) : str_eq_nocase(a, b);
}

const tarn_field *type_find_name(const tarn_type *root, tarn_str path, bool case_sensitive) {
    for (int32_t i = 0; i < root->n_fields; i++) {
        if (same_name(root->fields[i].name, path, case_sensitive)) {
            return &root->fields[i];
        }
    }
    for (int32_t i = 0; i < root->n_fields; i++) {
        const tarn_field *field = &root->fields[i];
        size_t len = field->name.len;
        if (type_is_nested(field->type) && path.len > len && path.data[len] == '.' &&
            same_name(field->name, str_sub(path, 0, len), case_sensitive)) {
            const tarn_field *below =
                type_find_name(field->type, str_from(path, len + 1), case_sensitive);
            if (below != NULL) {
                return below;
            }
        }
    }
    /* Iceberg lets "element" and "value" be left out before a struct's field. */
    if (root->kind == TARN_LIST || root->kind == TARN_MAP) {
        const tarn_type *inner = root->fields[root->n_fields - 1].type;
        if (inner->kind == TARN_STRUCT) {
            return type_find_name(inner, path, case_sensitive);
        }
    }
    return NULL;
}

const tarn_field *type_child(const tarn_type *parent, tarn_str name) {
    for (int32_t i = 0; i < parent->n_fields; i++) {
        if (str_eq(parent->fields[i].name, name)) {
            return &parent->fields[i];
        }
    }
    return NULL;
}

/* 1: found and written; 0: not below here. Names are written on the way back, so from the end. */
static bool find_full_name(const tarn_type *parent, int32_t id, const tarn_field **path,
                           size_t depth, size_t *len) {
    if (depth > LIMIT_NESTING) {
        return false;
    }
    for (int32_t i = 0; i < parent->n_fields; i++) {
        path[depth] = &parent->fields[i];
        if (parent->fields[i].id == id) {
            *len = depth + 1;
            return true;
        }
        if (type_is_nested(parent->fields[i].type) &&
            find_full_name(parent->fields[i].type, id, path, depth + 1, len)) {
            return true;
        }
    }
    return false;
}

tarn_code type_full_name(const tarn_type *root, int32_t id, tarn_buf *out, tarn_error *err) {
    const tarn_field *path[LIMIT_NESTING + 1];
    size_t len = 0;
    if (!find_full_name(root, id, path, 0, &len)) {
        return err_set(err, TARN_NOT_FOUND, "field id %d was not in the schema", (int)id);
    }
    size_t start = out->len;
    for (size_t i = 0; i < len; i++) {
        tarn_code code = i > 0 ? buf_append_char(out, '.', err) : TARN_OK;
        if (code == TARN_OK) {
            code = buf_append_str(out, path[i]->name, err);
        }
        if (code != TARN_OK) {
            out->len = start;
            return code;
        }
    }
    return TARN_OK;
}

int32_t type_max_id(const tarn_type *root) {
    int32_t max = 0;
    for (int32_t i = 0; i < root->n_fields; i++) {
        int32_t id = root->fields[i].id;
        int32_t below =
            type_is_nested(root->fields[i].type) ? type_max_id(root->fields[i].type) : 0;
        max = id > max ? id : max;
        max = below > max ? below : max;
    }
    return max;
}

const tarn_type *type_assign_ids(tarn_arena *arena, const tarn_type *root, int32_t *next_id) {
    tarn_type *type = ARENA_NEW(arena, tarn_type);
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)root->n_fields);
    if (type == NULL || fields == NULL) {
        return NULL;
    }
    *type = *root;
    type->fields = fields;
    for (int32_t i = 0; i < root->n_fields; i++) {
        fields[i] = root->fields[i];
        fields[i].id = (*next_id)++;
    }
    for (int32_t i = 0; i < root->n_fields; i++) {
        if (type_is_nested(fields[i].type)) {
            fields[i].type = type_assign_ids(arena, fields[i].type, next_id);
            if (fields[i].type == NULL) {
                return NULL;
            }
        }
    }
    return type;
}

/* ---- nodes ---- */

int32_t type_node_count(const tarn_type *root) {
    int32_t count = root->n_fields;
    for (int32_t i = 0; i < root->n_fields; i++) {
        if (type_is_nested(root->fields[i].type)) {
            count += type_node_count(root->fields[i].type);
        }
    }
    return count;
}

int32_t type_field_span(const tarn_field *field) {
    return 1 + (type_is_nested(field->type) ? type_node_count(field->type) : 0);
}

const tarn_field *type_node(const tarn_type *root, int32_t node) {
    const tarn_type *type = root;
    int32_t at = 0;
    int32_t i = 0;
    while (i < type->n_fields) {
        const tarn_field *field = &type->fields[i];
        int32_t span = type_field_span(field);
        if (node == at) {
            return field;
        }
        if (node < at + span) {
            type = field->type;
            at += 1;
            i = 0;
            continue;
        }
        at += span;
        i++;
    }
    return NULL;
}

static void select_all(const tarn_field *field, uint8_t *selected, int32_t node) {
    memset(selected + node, 1, (size_t)type_field_span(field));
}

/* Selects what a value of this field cannot do without: not the fields of a struct, but a list's
 * element and a map's whole key. */
static void select_shape(const tarn_field *field, uint8_t *selected, int32_t node) {
    selected[node] = 1;
    if (field->type->kind == TARN_LIST) {
        select_shape(&field->type->fields[0], selected, node + 1);
    } else if (field->type->kind == TARN_MAP) {
        const tarn_field *key = &field->type->fields[0];
        select_all(key, selected, node + 1);
        select_shape(&field->type->fields[1], selected, node + 1 + type_field_span(key));
    }
}

/* Completes selected for field and what is below; returns the next sibling's node. */
static int32_t complete_selection(const tarn_field *field, uint8_t *selected, int32_t node) {
    int32_t next = node + 1;
    for (int32_t i = 0; i < (type_is_nested(field->type) ? field->type->n_fields : 0); i++) {
        int32_t child = next;
        next = complete_selection(&field->type->fields[i], selected, child);
        selected[node] = (uint8_t)(selected[node] | selected[child]);
    }
    if (selected[node]) {
        select_shape(field, selected, node);
    }
    return next;
}

static const tarn_type *prune_type(tarn_arena *arena, const tarn_type *type,
                                   const uint8_t *selected, int32_t *node) {
    tarn_type *pruned = ARENA_NEW(arena, tarn_type);
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields);
    if (pruned == NULL || fields == NULL) {
        return NULL;
    }
    *pruned = *type;
    pruned->fields = fields;
    pruned->n_fields = 0;
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *field = &type->fields[i];
        if (!selected[*node]) {
            *node += type_field_span(field);
            continue;
        }
        *node += 1;
        tarn_field *kept = &fields[pruned->n_fields++];
        *kept = *field;
        if (type_is_nested(field->type)) {
            kept->type = prune_type(arena, field->type, selected, node);
            if (kept->type == NULL) {
                return NULL;
            }
        }
    }
    return pruned;
}

const tarn_type *type_prune(tarn_arena *arena, const tarn_type *root, uint8_t *selected) {
    int32_t node = 0;
    for (int32_t i = 0; i < root->n_fields; i++) {
        node = complete_selection(&root->fields[i], selected, node);
    }
    if (node == 0 || memchr(selected, 0, (size_t)node) == NULL) {
        return root;
    }
    node = 0;
    return prune_type(arena, root, selected, &node);
}
