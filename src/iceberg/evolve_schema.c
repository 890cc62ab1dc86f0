/* iceberg/evolve_schema.c - one edit of a schema's tree. Trees are immutable: the way from the root
 * to the edited field is made new, everything else is shared. */
#include "base/limits.h"
#include "iceberg/evolve_int.h"
#include "table/value.h"

/* What happens to the fields of one struct. */
typedef enum tree_op { TREE_REPLACE, TREE_DROP, TREE_APPEND, TREE_MOVE } tree_op;

typedef struct tree_edit {
    tree_op op;
    int32_t id;       /* the field; append: the parent's field id, TARN_NO_ID: the root */
    tarn_field field; /* replace, append */
    int32_t other_id; /* move: beside this one; TARN_NO_ID: first */
    bool after;
    bool done;
} tree_edit;

static const tarn_type *with_fields(tarn_arena *arena, const tarn_type *type, tarn_field *fields,
                                    int32_t n) {
    tarn_type *copy = ARENA_NEW(arena, tarn_type);
    if (copy != NULL) {
        *copy = *type;
        copy->fields = fields;
        copy->n_fields = n;
    }
    return copy;
}

static int32_t index_of(const tarn_type *type, int32_t id) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (type->fields[i].id == id) {
            return i;
        }
    }
    return -1;
}

static void move_field(tarn_field *fields, int32_t n, int32_t from, const tree_edit *e) {
    tarn_field moved = fields[from];
    memmove(fields + from, fields + from + 1, (size_t)(n - 1 - from) * sizeof *fields);
    int32_t to = 0;
    for (int32_t i = 0; i < n - 1 && e->other_id != TARN_NO_ID; i++) {
        if (fields[i].id == e->other_id) {
            to = e->after ? i + 1 : i;
        }
    }
    memmove(fields + to + 1, fields + to, (size_t)(n - 1 - to) * sizeof *fields);
    fields[to] = moved;
}

/* The edit carried out on the fields of this very type. */
static const tarn_type *edit_here(tarn_arena *arena, const tarn_type *type, tree_edit *e,
                                  int32_t at) {
    int32_t n = type->n_fields;
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)n + 1);
    if (fields == NULL) {
        return NULL;
    }
    if (n > 0) {
        memcpy(fields, type->fields, (size_t)n * sizeof *fields);
    }
    e->done = true;
    if (e->op == TREE_APPEND) {
        fields[n++] = e->field;
    } else if (e->op == TREE_REPLACE) {
        fields[at] = e->field;
    } else if (e->op == TREE_DROP) {
        memmove(fields + at, fields + at + 1, (size_t)(n - 1 - at) * sizeof *fields);
        n--;
    } else {
        move_field(fields, n, at, e);
    }
    return with_fields(arena, type, fields, n);
}

/* Returns type itself where nothing below it changed; NULL: no memory. Depth is that of the parsed
 * schema, which is limited. */
static const tarn_type *edit_tree(tarn_arena *arena, const tarn_type *type, int32_t own_id,
                                  tree_edit *e) {
    int32_t at = e->op == TREE_APPEND ? -1 : index_of(type, e->id);
    if (at >= 0 || (e->op == TREE_APPEND && own_id == e->id && type->kind == TARN_STRUCT)) {
        return edit_here(arena, type, e, at);
    }
    for (int32_t i = 0; i < type->n_fields && !e->done; i++) {
        const tarn_field *f = &type->fields[i];
        if (!type_is_nested(f->type)) {
            continue;
        }
        const tarn_type *below = edit_tree(arena, f->type, f->id, e);
        if (below == NULL) {
            return NULL;
        }
        if (below == f->type) {
            continue;
        }
        tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields);
        if (fields == NULL) {
            return NULL;
        }
        memcpy(fields, type->fields, (size_t)type->n_fields * sizeof *fields);
        fields[i].type = below;
        return with_fields(arena, type, fields, type->n_fields);
    }
    return type;
}

static tarn_code apply_tree(evolve_work *w, tree_edit *e) {
    const tarn_type *root = edit_tree(w->arena, w->schema.root, TARN_NO_ID, e);
    if (root == NULL) {
        return err_nomem(w->err);
    }
    w->schema.root = root;
    w->schema_edited = true;
    return e->done ? TARN_OK : err_set(w->err, TARN_INTERNAL, "field %d was not found", e->id);
}

/* ---- finding ---- */

static tarn_code find_column(evolve_work *w, tarn_str path, const tarn_field **out) {
    *out = type_find_name(w->schema.root, path, true);
    return *out != NULL
               ? TARN_OK
               : err_set(w->err, TARN_INVALID, "there is no column \"%.*s\"", STR_ARG(path));
}

/* The type whose field it is. */
static const tarn_type *parent_of(const tarn_type *type, int32_t id) {
    const tarn_type *found = index_of(type, id) >= 0 ? type : NULL;
    for (int32_t i = 0; i < type->n_fields && found == NULL; i++) {
        found = parent_of(type->fields[i].type, id);
    }
    return found;
}

static bool is_identifier(const evolve_work *w, int32_t id) {
    for (int32_t i = 0; i < w->schema.n_identifier_ids; i++) {
        if (w->schema.identifier_ids[i] == id) {
            return true;
        }
    }
    return false;
}

static bool holds_identifier(const evolve_work *w, const tarn_field *field) {
    bool held = is_identifier(w, field->id);
    for (int32_t i = 0; i < field->type->n_fields && !held; i++) {
        held = holds_identifier(w, &field->type->fields[i]);
    }
    return held;
}

/* Names "element", "key" and "value" below lists and maps are fixed. */
static tarn_code need_struct(evolve_work *w, const tarn_field *field, tarn_str path,
                             const tarn_type **parent) {
    *parent = parent_of(w->schema.root, field->id);
    return (*parent)->kind == TARN_STRUCT
               ? TARN_OK
               : err_set(w->err, TARN_INVALID, "\"%.*s\" is not a field of a struct",
                         STR_ARG(path));
}

static tarn_code note_rename(evolve_work *w, int32_t id, tarn_str new_name) {
    tarn_buf old;
    buf_init(&old, w->arena->env, 0);
    tarn_code code = type_full_name(w->schema.root, id, &old, w->err);
    if (code == TARN_OK) {
        tarn_property *p = &w->renamed[w->n_renamed++];
        p->key = arena_str(w->arena, buf_str(&old));
        size_t dot;
        tarn_str head = p->key;
        head.len = str_find_last_char(p->key, '.', &dot) ? dot + 1 : 0;
        char *text = new_name.len == 0
                         ? arena_strdup(w->arena, "")
                         : arena_printf(w->arena, "%.*s%.*s", (int)head.len, p->key.data,
                                        (int)new_name.len, new_name.data);
        p->value = str_of(text);
        code = p->key.data == NULL || text == NULL ? err_nomem(w->err) : TARN_OK;
    }
    buf_release(&old);
    return code;
}

/* ---- edits ---- */

static tarn_code check_default(evolve_work *w, const tarn_edit *edit, const tarn_type *type) {
    tarn_value ignored;
    if (edit->default_value == NULL) {
        return !edit->required ? TARN_OK
                               : err_set(w->err, TARN_INVALID,
                                         "column \"%.*s\" was required and had no default",
                                         STR_ARG(edit->path));
    }
    if (w->base->format_version < 3) {
        return err_set(w->err, TARN_INVALID,
                       "the default of column \"%.*s\" needs format version 3, the table has %d",
                       STR_ARG(edit->path), w->base->format_version);
    }
    if (type_is_nested(type)) {
        return err_set(w->err, TARN_INVALID, "column \"%.*s\" of a nested type had a default",
                       STR_ARG(edit->path));
    }
    return value_from_json(w->arena, type, edit->default_value, &ignored, w->err);
}

/* Where "a.b.c" goes: the struct at "a.b" (through a list's element or a map's value), name "c". A
 * name that is given apart may have points in it. */
static tarn_code find_parent(evolve_work *w, const tarn_edit *edit, int32_t *parent_id,
                             const tarn_type **parent, tarn_str *name) {
    size_t dot;
    tarn_str path = edit->path;
    *parent_id = TARN_NO_ID;
    *parent = w->schema.root;
    *name = edit->new_name.len > 0 ? edit->new_name : path;
    if (edit->new_name.len == 0 && str_find_last_char(path, '.', &dot)) {
        *name = str_from(path, dot + 1);
        path = str_sub(path, 0, dot);
    } else if (edit->new_name.len == 0 || path.len == 0) {
        return TARN_OK;
    }
    const tarn_field *field;
    tarn_code code = find_column(w, path, &field);
    if (code != TARN_OK) {
        return code;
    }
    if (field->type->kind == TARN_LIST || field->type->kind == TARN_MAP) {
        field = &field->type->fields[field->type->n_fields - 1];
    }
    if (field->type->kind != TARN_STRUCT) {
        return err_set(w->err, TARN_INVALID, "\"%.*s\" is not a struct", STR_ARG(path));
    }
    *parent_id = field->id;
    *parent = field->type;
    return TARN_OK;
}

static tarn_code add_column(evolve_work *w, const tarn_edit *edit) {
    tree_edit e = {.op = TREE_APPEND};
    const tarn_type *parent;
    tarn_str name;
    tarn_code code = find_parent(w, edit, &e.id, &parent, &name);
    if (code != TARN_OK) {
        return code;
    }
    if (name.len == 0 || name.len > LIMIT_NAME_BYTES || type_child(parent, name) != NULL) {
        return err_set(w->err, TARN_INVALID, "a column \"%.*s\" %s",
                       STR_ARG(edit->new_name.len > 0 ? name : edit->path),
                       name.len == 0 ? "has no name" : "is there already");
    }
    code = check_default(w, edit, edit->type);
    if (code != TARN_OK) {
        return code;
    }
    int32_t next = w->last_column_id + 2; /* the field's own id comes first */
    const tarn_type *type = edit->type;
    if (type_is_nested(type)) {
        type = type_assign_ids(w->arena, type, &next);
    }
    e.field = (tarn_field){.id = w->last_column_id + 1,
                           .required = edit->required,
                           .name = arena_str(w->arena, name),
                           .type = type,
                           .initial_default = edit->default_value,
                           .write_default = edit->default_value};
    if (edit->doc.data != NULL) {
        e.field.doc = arena_str(w->arena, edit->doc);
    }
    if (type == NULL || e.field.name.data == NULL ||
        (edit->doc.data != NULL && e.field.doc.data == NULL)) {
        return err_nomem(w->err);
    }
    w->last_column_id = next - 1;
    code = apply_tree(w, &e);
    return code == TARN_OK ? evolve_mapping_add(w, e.id, &e.field) : code;
}

static tarn_code drop_column(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field;
    const tarn_type *parent;
    tarn_code code = find_column(w, edit->path, &field);
    if (code == TARN_OK) {
        code = need_struct(w, field, edit->path, &parent);
    }
    if (code == TARN_OK && holds_identifier(w, field)) {
        code =
            err_set(w->err, TARN_INVALID, "column \"%.*s\" identifies rows", STR_ARG(edit->path));
    }
    if (code == TARN_OK) {
        code = note_rename(w, field->id, STR_NULL);
    }
    tree_edit e = {.op = TREE_DROP, .id = code == TARN_OK ? field->id : TARN_NO_ID};
    return code == TARN_OK ? apply_tree(w, &e) : code;
}

static tarn_code rename_column(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field;
    const tarn_type *parent = NULL;
    tarn_code code = find_column(w, edit->path, &field);
    if (code == TARN_OK) {
        code = need_struct(w, field, edit->path, &parent);
    }
    if (code != TARN_OK) {
        return code;
    }
    const tarn_field *taken = type_child(parent, edit->new_name);
    if (edit->new_name.len == 0 || edit->new_name.len > LIMIT_NAME_BYTES ||
        (taken != NULL && taken != field)) {
        return err_set(w->err, TARN_INVALID, "column \"%.*s\" cannot be renamed to \"%.*s\": %s",
                       STR_ARG(edit->path), STR_ARG(edit->new_name),
                       taken != NULL ? "it is there already" : "no name");
    }
    code = note_rename(w, field->id, edit->new_name);
    tree_edit e = {.op = TREE_REPLACE, .id = field->id, .field = *field};
    e.field.name = arena_str(w->arena, edit->new_name);
    if (code != TARN_OK || e.field.name.data == NULL) {
        return code != TARN_OK ? code : err_nomem(w->err);
    }
    code = apply_tree(w, &e);
    return code == TARN_OK ? evolve_mapping_rename(w, e.id, e.field.name) : code;
}

bool evolve_can_widen(const tarn_type *from, const tarn_type *to, int32_t format_version) {
    if (type_eq(from, to)) {
        return true;
    }
    bool v3 = format_version >= 3;
    if (from->kind == TARN_INT || from->kind == TARN_FLOAT) {
        return to->kind == (from->kind == TARN_INT ? TARN_LONG : TARN_DOUBLE);
    }
    if (from->kind == TARN_DECIMAL) {
        return to->kind == TARN_DECIMAL && to->scale == from->scale &&
               to->precision >= from->precision;
    }
    if (from->kind == TARN_DATE) {
        return v3 && (to->kind == TARN_TIMESTAMP || to->kind == TARN_TIMESTAMP_NS);
    }
    return v3 && from->kind == TARN_UNKNOWN && !type_is_nested(to);
}

/* A promotion must not change what a partition transform gives (spec, "Schema Evolution"): days are
 * hashed and kept as days, timestamps as microseconds. */
static tarn_code check_partitions(evolve_work *w, const tarn_field *field, const tarn_type *to) {
    if (field->type->kind != TARN_DATE || to->kind == TARN_DATE) {
        return TARN_OK;
    }
    for (int32_t i = 0; i < w->base->n_specs; i++) {
        const tarn_spec *spec = w->base->specs[i];
        for (int32_t k = 0; k < spec->n_fields; k++) {
            transform_kind kind = spec->fields[k].transform.kind;
            if (spec->fields[k].source_id == field->id &&
                (kind == TRANSFORM_IDENTITY || kind == TRANSFORM_BUCKET)) {
                return err_set(w->err, TARN_INVALID,
                               "column \"%.*s\" cannot become a timestamp: partition field "
                               "\"%.*s\" would change",
                               STR_ARG(field->name), STR_ARG(spec->fields[k].name));
            }
        }
    }
    return TARN_OK;
}

static tarn_code update_type(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field;
    tarn_code code = find_column(w, edit->path, &field);
    if (code != TARN_OK) {
        return code;
    }
    const tarn_type *parent = parent_of(w->schema.root, field->id);
    bool key = parent->kind == TARN_MAP && field == &parent->fields[0];
    if (key || !evolve_can_widen(field->type, edit->type, w->base->format_version)) {
        return err_set(w->err, TARN_INVALID, "column \"%.*s\" of type %s cannot become %s",
                       STR_ARG(edit->path), type_kind_name(field->type->kind),
                       key ? "another type: it is a map's key" : type_kind_name(edit->type->kind));
    }
    code = check_partitions(w, field, edit->type);
    if (code != TARN_OK) {
        return code;
    }
    tree_edit e = {.op = TREE_REPLACE, .id = field->id, .field = *field};
    e.field.type = edit->type;
    return apply_tree(w, &e);
}

static tarn_code make_optional(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field;
    tarn_code code = find_column(w, edit->path, &field);
    if (code != TARN_OK) {
        return code;
    }
    const tarn_type *parent = parent_of(w->schema.root, field->id);
    if (holds_identifier(w, field) || (parent->kind == TARN_MAP && field == &parent->fields[0])) {
        return err_set(w->err, TARN_INVALID, "column \"%.*s\" must stay required",
                       STR_ARG(edit->path));
    }
    tree_edit e = {.op = TREE_REPLACE, .id = field->id, .field = *field};
    e.field.required = false;
    return apply_tree(w, &e);
}

static tarn_code update_doc(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field;
    tarn_code code = find_column(w, edit->path, &field);
    if (code != TARN_OK) {
        return code;
    }
    tree_edit e = {.op = TREE_REPLACE, .id = field->id, .field = *field};
    e.field.doc = STR_NULL;
    if (edit->doc.data != NULL) {
        e.field.doc = arena_str(w->arena, edit->doc);
        if (e.field.doc.data == NULL) {
            return err_nomem(w->err);
        }
    }
    return apply_tree(w, &e);
}

static tarn_code move_column(evolve_work *w, const tarn_edit *edit) {
    const tarn_field *field, *other;
    const tarn_type *parent;
    tree_edit e = {
        .op = TREE_MOVE, .other_id = TARN_NO_ID, .after = edit->kind == EVOLVE_MOVE_AFTER};
    tarn_code code = find_column(w, edit->path, &field);
    if (code == TARN_OK) {
        code = need_struct(w, field, edit->path, &parent);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (edit->kind != EVOLVE_MOVE_FIRST) {
        code = find_column(w, edit->other, &other);
        if (code != TARN_OK) {
            return code;
        }
        if (other == field || index_of(parent, other->id) < 0) {
            return err_set(w->err, TARN_INVALID, "\"%.*s\" is no neighbour of column \"%.*s\"",
                           STR_ARG(edit->other), STR_ARG(edit->path));
        }
        e.other_id = other->id;
    }
    e.id = field->id;
    return apply_tree(w, &e);
}

static tarn_code set_identifiers(evolve_work *w, const tarn_edit *edit) {
    size_t most = 1;
    for (size_t i = 0; i < edit->text.len; i++) {
        most += edit->text.data[i] == ',';
    }
    int32_t *ids = ARENA_ARRAY(w->arena, int32_t, most);
    tarn_str rest = edit->text, piece;
    int32_t n = 0;
    if (ids == NULL) {
        return err_nomem(w->err);
    }
    while (edit->text.len > 0 && str_split(&rest, ',', &piece)) {
        const tarn_field *field;
        tarn_code code = find_column(w, str_trim(piece), &field);
        if (code != TARN_OK) {
            return code;
        }
        ids[n++] = field->id;
    }
    w->schema.identifier_ids = ids;
    w->schema.n_identifier_ids = n;
    w->schema_edited = true;
    return TARN_OK;
}

tarn_code evolve_schema_edit(evolve_work *w, const tarn_edit *edit) {
    switch (edit->kind) {
    case EVOLVE_ADD_COLUMN:
        return add_column(w, edit);
    case EVOLVE_DROP_COLUMN:
        return drop_column(w, edit);
    case EVOLVE_RENAME_COLUMN:
        return rename_column(w, edit);
    case EVOLVE_UPDATE_TYPE:
        return update_type(w, edit);
    case EVOLVE_MAKE_OPTIONAL:
        return make_optional(w, edit);
    case EVOLVE_UPDATE_DOC:
        return update_doc(w, edit);
    case EVOLVE_MOVE_FIRST:
    case EVOLVE_MOVE_BEFORE:
    case EVOLVE_MOVE_AFTER:
        return move_column(w, edit);
    case EVOLVE_SET_IDENTIFIERS:
        return set_identifiers(w, edit);
    case EVOLVE_ADD_PARTITION_FIELD:
    case EVOLVE_DROP_PARTITION_FIELD:
    case EVOLVE_RENAME_PARTITION_FIELD:
    case EVOLVE_SET_PARTITION:
    case EVOLVE_SET_SORT_ORDER:
        break;
    }
    return err_set(w->err, TARN_INTERNAL, "edit %d is none of a schema", (int)edit->kind);
}
