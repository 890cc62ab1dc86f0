/* table/project.c - making a projection plan (spec, "Column Projection").
 *
 * First every wanted field looks for its column in the file: by field id, by the id that the name
 * mapping gives a column without one (never by place, never by luck of the name: B11), or by name
 * where that is asked for. What is found is selected for reading; the rest becomes a constant, the
 * initial default, or null. Then, the pruned type being known, places in it are filled in. */
#include "table/project.h"

#include "base/limits.h"
#include "base/map.h"
#include "table/array_int.h"
#include "table/project_int.h"

typedef struct planner {
    tarn_arena *arena;
    tarn_error *err;
    const project_options *options;
    const char *file;
    uint8_t *selected;
    bool has_ids; /* some column of the file has a field id */
} planner;

/* The file's fields of one struct, list or map, ready to be looked up. */
typedef struct file_level {
    const tarn_type *type;
    int32_t *nodes;   /* number of each field */
    tarn_idmap ids;   /* field id to place; those of the name mapping too */
    tarn_map names;   /* name to place */
    tarn_map mapping; /* name to the name mapping's entry */
} file_level;

static tarn_code plan_field(planner *p, const tarn_field *wanted, const file_level *level,
                            int32_t index, int depth, project_node *out);

static bool any_ids(const tarn_type *type) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (type->fields[i].id != TARN_NO_ID || any_ids(type->fields[i].type)) {
            return true;
        }
    }
    return false;
}

/* ---- finding ---- */

static tarn_code index_mapping(planner *p, const json_value *mapping, file_level *level) {
    map_init(&level->mapping, p->arena);
    if (!json_is(mapping, JSON_ARRAY)) {
        return TARN_OK;
    }
    for (const json_value *entry = mapping->first; entry != NULL; entry = entry->next) {
        const json_value *names = json_get(entry, "names");
        const json_value *item = json_is(names, JSON_ARRAY) ? names->first : NULL;
        for (; item != NULL; item = item->next) {
            bool added = false;
            map_entry *slot =
                item->kind == JSON_STRING ? map_put(&level->mapping, item->text, &added) : NULL;
            if (item->kind == JSON_STRING && slot == NULL) {
                return err_nomem(p->err);
            }
            if (added) {
                slot->value.ptr = (void *)(uintptr_t)entry;
            }
        }
    }
    return TARN_OK;
}

static const json_value *mapping_entry(const file_level *level, tarn_str name) {
    const map_entry *slot = map_find(&level->mapping, name);
    return slot != NULL ? slot->value.ptr : NULL;
}

/* Ids that columns carry go before those that only the mapping gives. */
static tarn_code index_ids(planner *p, file_level *level) {
    int32_t known;
    tarn_code code = TARN_OK;
    idmap_init(&level->ids, p->arena);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < level->type->n_fields; i++) {
            const tarn_field *field = &level->type->fields[i];
            int32_t id = field->id;
            if (pass == 1) {
                const json_value *entry = mapping_entry(level, field->name);
                id = field->id == TARN_NO_ID && json_i32(json_get(entry, "field-id"), &id)
                         ? id
                         : TARN_NO_ID;
            }
            if (id != TARN_NO_ID && !idmap_get(&level->ids, id, &known)) {
                TRY(idmap_set(&level->ids, id, i, p->err));
            }
        }
    }
done:
    return code;
}

static tarn_code index_level(planner *p, const tarn_type *type, int32_t first_node,
                             const json_value *mapping, file_level *level) {
    memset(level, 0, sizeof *level);
    level->type = type;
    level->nodes = ARENA_ARRAY(p->arena, int32_t, (size_t)type->n_fields);
    if (level->nodes == NULL) {
        return err_nomem(p->err);
    }
    map_init(&level->names, p->arena);
    for (int32_t i = 0; i < type->n_fields; i++) {
        bool added = false;
        level->nodes[i] = first_node;
        first_node += type_field_span(&type->fields[i]);
        map_entry *slot = map_put(&level->names, type->fields[i].name, &added);
        if (slot == NULL) {
            return err_nomem(p->err);
        }
        if (added) {
            slot->value.i64 = i;
        }
    }
    tarn_code code = index_mapping(p, mapping, level);
    return code == TARN_OK ? index_ids(p, level) : code;
}

/* The file's field for a wanted one, by its place among the siblings; -1: none. */
static int32_t find_index(const planner *p, const file_level *level, const tarn_field *wanted) {
    int32_t index = -1;
    if (p->options->by_name) {
        const map_entry *slot = map_find(&level->names, wanted->name);
        return slot != NULL ? (int32_t)slot->value.i64 : -1;
    }
    return wanted->id != TARN_NO_ID && idmap_get(&level->ids, wanted->id, &index) ? index : -1;
}

/* ---- columns that the file has not ---- */

static const tarn_value *find_constant(const planner *p, int32_t id) {
    for (size_t i = 0; i < p->options->n_constants; i++) {
        if (p->options->constants[i].field_id == id) {
            return &p->options->constants[i].value;
        }
    }
    return NULL;
}

static tarn_code refuse_missing(const planner *p, const tarn_field *wanted) {
    tarn_code code = p->options->by_name ? TARN_INVALID : TARN_CORRUPT;
    if (!p->has_ids && !p->options->by_name && p->options->name_mapping == NULL) {
        return err_set(p->err, code,
                       "file %s had no field ids and the table no name mapping, so required column "
                       "%.*s could not be found in it",
                       p->file, STR_ARG(wanted->name));
    }
    return err_set(p->err, code, "required column %.*s (field id %d) was missing in file %s",
                   STR_ARG(wanted->name), (int)wanted->id, p->file);
}

static tarn_code plan_missing(planner *p, const tarn_field *wanted, project_node *out) {
    const tarn_value *constant = find_constant(p, wanted->id);
    out->op = PROJECT_NULL;
    if (constant != NULL && constant->is_null) {
        return TARN_OK;
    }
    if (constant != NULL) {
        out->op = PROJECT_CONSTANT;
        return value_copy(p->arena, constant, &out->value, p->err);
    }
    const json_value *given = p->options->writes ? wanted->write_default : wanted->initial_default;
    if (given == NULL) {
        return wanted->required ? refuse_missing(p, wanted) : TARN_OK;
    }
    if (type_is_nested(wanted->type)) {
        out->op = PROJECT_DEFAULT;
        return TARN_OK;
    }
    tarn_code code = value_from_json(p->arena, wanted->type, given, &out->value, p->err);
    out->op = out->value.is_null ? PROJECT_NULL : PROJECT_CONSTANT;
    return code == TARN_OK ? code
                           : err_add(p->err, code, "default of column %.*s", STR_ARG(wanted->name));
}

/* ---- columns that it has ---- */

static tarn_code refuse_type(const planner *p, const tarn_field *wanted, const tarn_type *type) {
    return err_set(p->err, p->options->by_name ? TARN_INVALID : TARN_CORRUPT,
                   "column %.*s of file %s was %s and could not be read as %s",
                   STR_ARG(wanted->name), p->file, type_kind_name(type->kind),
                   type_kind_name(wanted->type->kind));
}

/* A nested column of which no part is wanted still has its nulls and lengths: the first leaf below
 * is read for them. */
static void select_first_leaf(planner *p, const tarn_field *field, int32_t node) {
    p->selected[node] = 1;
    while (type_is_nested(field->type) && field->type->n_fields > 0) {
        field = &field->type->fields[0];
        node++;
        p->selected[node] = 1;
    }
}

static bool any_selected(const planner *p, int32_t node, int32_t span) {
    return memchr(p->selected + node, 1, (size_t)span) != NULL;
}

static tarn_code plan_nested(planner *p, const tarn_field *field, int32_t node,
                             const json_value *mapping, int depth, project_node *out) {
    const tarn_type *type = out->wanted->type;
    file_level level;
    tarn_code code = index_level(p, field->type, node + 1, mapping, &level);
    if (code != TARN_OK) {
        return code;
    }
    out->op = PROJECT_REBUILD;
    out->children = ARENA_ARRAY(p->arena, project_node, (size_t)type->n_fields);
    if (out->children == NULL) {
        return err_nomem(p->err);
    }
    out->n_children = type->n_fields;
    for (int32_t i = 0; i < type->n_fields; i++) {
        int32_t index = type->kind == TARN_STRUCT ? find_index(p, &level, &type->fields[i]) : i;
        code = plan_field(p, &type->fields[i], &level, index, depth + 1, &out->children[i]);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (!any_selected(p, node + 1, type_field_span(field) - 1)) {
        select_first_leaf(p, field, node);
    }
    return TARN_OK;
}

/* index: of the file's field in level, -1: none. */
static tarn_code plan_field(planner *p, const tarn_field *wanted, const file_level *level,
                            int32_t index, int depth, project_node *out) {
    out->wanted = wanted;
    out->file_node = -1;
    out->file_index = -1;
    if (depth > LIMIT_NESTING) {
        return err_set(p->err, TARN_LIMIT, "a type was nested more than %d levels deep",
                       LIMIT_NESTING);
    }
    if (index < 0) {
        return plan_missing(p, wanted, out);
    }
    const tarn_field *field = &level->type->fields[index];
    int32_t node = level->nodes[index];
    out->file_field = field;
    out->file_node = node;
    out->file_index = index;
    if (type_is_nested(wanted->type)) {
        if (field->type->kind != wanted->type->kind) {
            return refuse_type(p, wanted, field->type);
        }
        const json_value *entry = mapping_entry(level, field->name);
        return plan_nested(p, field, node, json_get(entry, "fields"), depth, out);
    }
    p->selected[node] = 1;
    if (type_same_shape(field->type, wanted->type)) {
        out->op = PROJECT_SHARE;
    } else if (project_can_convert(field->type, wanted->type)) {
        out->op = PROJECT_CONVERT;
    } else {
        return refuse_type(p, wanted, field->type);
    }
    return TARN_OK;
}

/* ---- second pass: places in the pruned type ---- */

/* Place of each selected sibling among the selected ones; called with the file's type of the
 * parent. */
static tarn_code place_children(const planner *p, project_node *parent, const tarn_type *file_type,
                                int32_t first_node) {
    tarn_code code = TARN_OK;
    int32_t *places = ARENA_ARRAY(p->arena, int32_t, (size_t)file_type->n_fields);
    if (places == NULL) {
        return err_nomem(p->err);
    }
    int32_t node = first_node;
    for (int32_t i = 0, at = 0; i < file_type->n_fields; i++) {
        places[i] = at;
        at += p->selected[node];
        node += type_field_span(&file_type->fields[i]);
    }
    for (int32_t i = 0; i < parent->n_children; i++) {
        project_node *child = &parent->children[i];
        child->read_index = -1;
        if (child->file_index >= 0) {
            child->read_index = places[child->file_index];
        }
        if (child->n_children > 0) {
            TRY(place_children(p, child, child->file_field->type, child->file_node + 1));
        }
    }
done:
    return code;
}

/* Turns REBUILD into SHARE from the leaves up, where all parts are shared in their places. */
static void settle_shares(project_node *node, const tarn_type *read_type) {
    bool same = read_type->n_fields == node->n_children;
    for (int32_t i = 0; i < node->n_children; i++) {
        project_node *child = &node->children[i];
        if (child->op == PROJECT_REBUILD) {
            settle_shares(child, read_type->fields[child->read_index].type);
        }
        same = same && child->op == PROJECT_SHARE && child->read_index == i;
    }
    if (same) {
        node->op = PROJECT_SHARE;
    }
}

tarn_code project_plan(tarn_arena *arena, const tarn_type *file_type, const tarn_type *wanted,
                       const project_options *options, tarn_projection **plan, tarn_error *err) {
    static const project_options no_options = {0};
    const project_options *asked = options != NULL ? options : &no_options;
    planner p = {.arena = arena, .err = err, .options = asked};
    tarn_projection *made = ARENA_NEW(arena, tarn_projection);
    size_t n_nodes = (size_t)type_node_count(file_type);
    p.selected = arena_calloc(arena, n_nodes + 1, 1);
    if (made == NULL || p.selected == NULL) {
        return err_nomem(err);
    }
    p.file = arena_strdup(arena, asked->file != NULL ? asked->file : "?");
    made->root.children = ARENA_ARRAY(arena, project_node, (size_t)wanted->n_fields);
    if (p.file == NULL || made->root.children == NULL) {
        return err_nomem(err);
    }
    p.has_ids = any_ids(file_type);
    made->root.n_children = wanted->n_fields;
    made->root.op = PROJECT_REBUILD;
    made->wanted = wanted;
    made->writes = asked->writes;
    made->selected = p.selected;
    made->file = p.file;
    file_level level;
    tarn_code code = index_level(&p, file_type, 0, asked->name_mapping, &level);
    if (code != TARN_OK) {
        return code;
    }
    for (int32_t i = 0; i < wanted->n_fields; i++) {
        const tarn_field *field = &wanted->fields[i];
        code = plan_field(&p, field, &level, find_index(&p, &level, field), 1,
                          &made->root.children[i]);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (asked->whole && n_nodes > 0) {
        memset(made->selected, 1, (size_t)n_nodes);
    }
    made->read_type = type_prune(arena, file_type, made->selected);
    if (made->read_type == NULL) {
        return err_nomem(err);
    }
    code = place_children(&p, &made->root, file_type, 0);
    if (code != TARN_OK) {
        return code;
    }
    settle_shares(&made->root, made->read_type);
    *plan = made;
    return TARN_OK;
}

const uint8_t *project_selected(const tarn_projection *plan) {
    return plan->selected;
}

const tarn_type *project_read_type(const tarn_projection *plan) {
    return plan->read_type;
}

static const project_node *find_node(const project_node *node, int32_t field_id) {
    for (int32_t i = 0; i < node->n_children; i++) {
        const project_node *child = &node->children[i];
        if (child->wanted->id == field_id) {
            return child;
        }
        child = find_node(child, field_id);
        if (child != NULL) {
            return child;
        }
    }
    return NULL;
}

int32_t project_source_node(const tarn_projection *plan, int32_t field_id) {
    const project_node *node = find_node(&plan->root, field_id);
    return node != NULL ? node->file_node : -1;
}
