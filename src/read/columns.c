/* read/columns.c - which part of a schema a read asks for. Pure. */
#include "read/read_columns.h"

#include "read/reserved.h"

/* Number of the node with this id, or -1. */
static int32_t node_of_id(const tarn_type *type, int32_t id, int32_t first) {
    int32_t node = first;
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        if (f->id == id) {
            return node;
        }
        int32_t below = node_of_id(f->type, id, node + 1);
        if (below >= 0) {
            return below;
        }
        node += type_field_span(f);
    }
    return -1;
}

static void select_whole(const tarn_type *root, uint8_t *selected, const tarn_field *field) {
    int32_t node = node_of_id(root, field->id, 0);
    tarn_assert(node >= 0);
    memset(selected + node, 1, (size_t)type_field_span(field));
}

static const tarn_field *top_of(const tarn_type *root, int32_t id) {
    for (int32_t i = 0; i < root->n_fields; i++) {
        const tarn_field *f = &root->fields[i];
        if (f->id == id || (type_is_nested(f->type) && type_find_id(f->type, id) != NULL)) {
            return f;
        }
    }
    return NULL;
}

/* pruned's top fields in the order in which the columns first named them. */
static tarn_code reorder(tarn_arena *arena, const tarn_type *pruned, const int32_t *top_ids,
                         int32_t n, const tarn_type **out, tarn_error *err) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)n + 1);
    int32_t count = 0;
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        bool seen = false;
        for (int32_t j = 0; j < count; j++) {
            seen = seen || fields[j].id == top_ids[i];
        }
        for (int32_t j = 0; j < pruned->n_fields && !seen; j++) {
            if (pruned->fields[j].id == top_ids[i]) {
                fields[count++] = pruned->fields[j];
                break;
            }
        }
    }
    *out = type_struct(arena, fields, count);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

/* root, and those reserved columns that are named and that no column of the table hides. */
static tarn_code add_reserved(tarn_arena *arena, const tarn_type *root, const tarn_str *columns,
                              int32_t n_columns, const tarn_type **out, tarn_error *err) {
    tarn_field fields[RESERVED_FIELDS];
    int32_t n = 0;
    for (int32_t k = 0; k < RESERVED_FIELDS; k++) {
        const tarn_field *field = reserved_field_at(k);
        bool named = false;
        for (int32_t i = 0; i < n_columns; i++) {
            named = named || str_eq(columns[i], field->name);
        }
        if (named && type_find_name(root, field->name, true) == NULL) {
            fields[n++] = *field;
        }
    }
    const tarn_type added = {.kind = TARN_STRUCT, .n_fields = n, .fields = fields};
    return columns_merge(arena, root, &added, out, err);
}

tarn_code columns_select(tarn_arena *arena, const tarn_type *root, const tarn_str *columns,
                         int32_t n_columns, bool case_insensitive, const tarn_type **out,
                         tarn_error *err) {
    if (n_columns == 0) {
        *out = root;
        return TARN_OK;
    }
    tarn_code code = add_reserved(arena, root, columns, n_columns, &root, err);
    if (code != TARN_OK) {
        return code;
    }
    uint8_t *selected = ARENA_ARRAY(arena, uint8_t, (size_t)type_node_count(root) + 1);
    int32_t *top_ids = ARENA_ARRAY(arena, int32_t, (size_t)n_columns);
    if (selected == NULL || top_ids == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n_columns; i++) {
        const tarn_field *f = type_find_name(root, columns[i], !case_insensitive);
        if (f == NULL) {
            return err_set(err, TARN_INVALID, "there is no column %.*s", STR_ARG(columns[i]));
        }
        select_whole(root, selected, f);
        top_ids[i] = top_of(root, f->id)->id;
    }
    const tarn_type *pruned = type_prune(arena, root, selected);
    return pruned != NULL ? reorder(arena, pruned, top_ids, n_columns, out, err) : err_nomem(err);
}

/* ---- what a file is read for ---- */

static tarn_code merge_fields(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                              const tarn_type **out, tarn_error *err) {
    tarn_field *fields =
        ARENA_ARRAY(arena, tarn_field, (size_t)a->n_fields + (size_t)b->n_fields + 1);
    int32_t n = a->n_fields;
    if (fields == NULL) {
        return err_nomem(err);
    }
    if (n > 0) {
        memcpy(fields, a->fields, (size_t)n * sizeof *fields);
    }
    for (int32_t i = 0; i < b->n_fields; i++) {
        int32_t at = 0;
        while (at < a->n_fields && a->fields[at].id != b->fields[i].id) {
            at++;
        }
        if (at == a->n_fields) {
            fields[n++] = b->fields[i];
        } else if (fields[at].type->kind == TARN_STRUCT && b->fields[i].type->kind == TARN_STRUCT) {
            tarn_code code =
                merge_fields(arena, fields[at].type, b->fields[i].type, &fields[at].type, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    *out = type_struct(arena, fields, n);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

tarn_code columns_merge(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                        const tarn_type **out, tarn_error *err) {
    if (b == NULL || b->n_fields == 0) {
        *out = a;
        return TARN_OK;
    }
    return merge_fields(arena, a, b, out, err);
}

tarn_code columns_of_ids(tarn_arena *arena, const tarn_type *root, const int32_t *ids, int32_t n,
                         const tarn_type **out, tarn_error *err) {
    uint8_t *selected = ARENA_ARRAY(arena, uint8_t, (size_t)type_node_count(root) + 1);
    if (selected == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t node = node_of_id(root, ids[i], 0);
        if (node < 0) {
            return err_set(err, TARN_INTERNAL, "column id %d is not in the schema", (int)ids[i]);
        }
        selected[node] = 1;
    }
    *out = type_prune(arena, root, selected);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

tarn_code columns_with_filter(tarn_arena *arena, const tarn_type *root, const tarn_type *wanted,
                              const tarn_expr *filter, const tarn_type **out, tarn_error *err) {
    size_t n = filter != NULL ? expr_field_ids(filter, NULL, 0) : 0;
    int32_t *ids = ARENA_ARRAY(arena, int32_t, n + 1);
    int32_t missing = 0;
    const tarn_type *more = NULL;
    if (ids == NULL) {
        return err_nomem(err);
    }
    if (n > 0) {
        n = expr_field_ids(filter, ids, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (type_find_id(wanted, ids[i]) == NULL) {
            ids[missing++] = ids[i];
        }
    }
    tarn_code code = missing > 0 ? columns_of_ids(arena, root, ids, missing, &more, err) : TARN_OK;
    return code == TARN_OK ? columns_merge(arena, wanted, more, out, err) : code;
}

tarn_code columns_optional(tarn_arena *arena, const tarn_type *type, const tarn_type **out,
                           tarn_error *err) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        fields[i] = type->fields[i];
        fields[i].required = false;
        if (fields[i].type->kind == TARN_STRUCT) {
            tarn_code code = columns_optional(arena, fields[i].type, &fields[i].type, err);
            if (code != TARN_OK) {
                return code;
            }
        }
    }
    *out = type_struct(arena, fields, type->n_fields);
    return *out != NULL ? TARN_OK : err_nomem(err);
}
