/* dml/import_schema.c - the schema of a table that is made of files: the union of theirs by name,
 * then the keys of the folders, with types that all their values fit. */
#include "base/map.h"
#include "dml/import_int.h"
#include "iceberg/evolve.h"
#include "iceberg/spec_text.h"

#define MAX_COLUMN_ID 2147483447 /* higher ids are reserved (spec, "Reserved Field IDs") */

typedef struct field_list {
    tarn_field *items;
    int32_t n, cap;
} field_list;

static tarn_code add_field(tarn_arena *arena, field_list *list, const tarn_field *field,
                           tarn_error *err) {
    if (list->n == list->cap) {
        const int32_t cap = list->cap * 2 + 16;
        tarn_field *items = arena_grow(arena, list->items, (size_t)list->cap * sizeof *items,
                                       (size_t)cap * sizeof *items);
        if (items == NULL) {
            return err_nomem(err);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = *field;
    return TARN_OK;
}

static tarn_code join_types(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                            const tarn_type **out, tarn_error *err);

/* Fields by name; every one optional, for nothing says that the next file has it. */
static tarn_code join_structs(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                              const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    field_list list = {0};
    for (int32_t i = 0; i < a->n_fields; i++) {
        TRY(add_field(arena, &list, &a->fields[i], err));
        const tarn_field *other = type_child(b, a->fields[i].name);
        list.items[i].required = false;
        if (other != NULL) {
            list.items[i].id = list.items[i].id != TARN_NO_ID ? list.items[i].id : other->id;
            code = join_types(arena, a->fields[i].type, other->type, &list.items[i].type, err);
            if (code != TARN_OK) {
                code = err_add(err, code, "column %.*s", STR_ARG(other->name));
                goto done;
            }
        }
    }
    for (int32_t i = 0; i < b->n_fields; i++) {
        if (type_child(a, b->fields[i].name) == NULL) {
            TRY(add_field(arena, &list, &b->fields[i], err));
            list.items[list.n - 1].required = false;
        }
    }
    *out = type_struct(arena, list.items, list.n);
    code = *out != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

static tarn_code join_items(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                            const tarn_type **out, tarn_error *err) {
    tarn_field fields[2] = {a->fields[0], a->kind == TARN_MAP ? a->fields[1] : a->fields[0]};
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < a->n_fields && code == TARN_OK; i++) {
        code = join_types(arena, a->fields[i].type, b->fields[i].type, &fields[i].type, err);
        fields[i].required = a->fields[i].required && b->fields[i].required;
        fields[i].id = fields[i].id != TARN_NO_ID ? fields[i].id : b->fields[i].id;
    }
    if (code == TARN_OK) {
        *out = a->kind == TARN_MAP ? type_map(arena, fields[0], fields[1])
                                   : type_list(arena, fields[0]);
        code = *out != NULL ? TARN_OK : err_nomem(err);
    }
    return code;
}

static tarn_code join_types(tarn_arena *arena, const tarn_type *a, const tarn_type *b,
                            const tarn_type **out, tarn_error *err) {
    if (a->kind == TARN_STRUCT && b->kind == TARN_STRUCT) {
        return join_structs(arena, a, b, out, err);
    }
    if (a->kind == b->kind && type_is_nested(a) && a->kind != TARN_VARIANT) {
        return join_items(arena, a, b, out, err);
    }
    if (type_eq(a, b) || evolve_can_widen(b, a, 2)) {
        *out = a;
        return TARN_OK;
    }
    if (evolve_can_widen(a, b, 2)) {
        *out = b;
        return TARN_OK;
    }
    return err_set(err, TARN_INVALID, "a column was %s in one file and %s in another",
                   type_kind_name(a->kind), type_kind_name(b->kind));
}

/* ---- ids ---- */

/* Fields of lists and maps have their places for names. */
const tarn_field *import_ids_differ(const tarn_type *root, const tarn_type *file) {
    for (int32_t i = 0; i < file->n_fields && root->kind == file->kind; i++) {
        const tarn_field *f = &file->fields[i];
        const tarn_field *of =
            root->kind == TARN_STRUCT ? type_child(root, f->name) : &root->fields[i];
        if (of == NULL || of->id != f->id || f->id == TARN_NO_ID) {
            return f;
        }
        const tarn_field *below =
            type_is_nested(f->type) ? import_ids_differ(of->type, f->type) : NULL;
        if (below != NULL) {
            return below;
        }
    }
    return NULL;
}

/* Once each, and none that is reserved. */
static tarn_code ids_unique(tarn_arena *arena, tarn_map *seen, const tarn_type *type, bool *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < type->n_fields && *out; i++) {
        const tarn_field *f = &type->fields[i];
        char *key = arena_printf(arena, "%d", f->id);
        bool added = false;
        if (key == NULL || (f->id != TARN_NO_ID && map_put(seen, str_of(key), &added) == NULL)) {
            return err_nomem(err);
        }
        *out = f->id == TARN_NO_ID || (added && f->id > 0 && f->id <= MAX_COLUMN_ID);
        if (*out && type_is_nested(f->type)) {
            TRY(ids_unique(arena, seen, f->type, out, err));
        }
    }
done:
    return code;
}

/* Ids for the fields that have none, behind all others. */
static const tarn_type *fill_ids(tarn_arena *arena, const tarn_type *type, int32_t *next) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields + 1);
    if (fields == NULL || type->kind == TARN_VARIANT) {
        return fields == NULL ? NULL : type;
    }
    for (int32_t i = 0; i < type->n_fields; i++) {
        fields[i] = type->fields[i];
        fields[i].id = fields[i].id != TARN_NO_ID ? fields[i].id : (*next)++;
        if (type_is_nested(fields[i].type)) {
            fields[i].type = fill_ids(arena, fields[i].type, next);
        }
        if (fields[i].type == NULL) {
            return NULL;
        }
    }
    return type->kind == TARN_STRUCT ? type_struct(arena, fields, type->n_fields)
           : type->kind == TARN_LIST ? type_list(arena, fields[0])
                                     : type_map(arena, fields[0], fields[1]);
}

/* Files of another table, whose ids all say the same, are right by these ids alone: *out is whether
 * the new table can take them over. */
static tarn_code may_keep_ids(importer *im, const tarn_type *root, bool *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena scratch;
    tarn_map seen;
    arena_init(&scratch, im->env);
    map_init(&seen, &scratch);
    *out = catalog_keeps_ids(im->catalog) && type_max_id(root) > 0;
    TRY(ids_unique(&scratch, &seen, root, out, err));
    for (int64_t i = 0; i < im->n_files && *out; i++) {
        import_open open;
        TRY(env_check_cancel(im->env, err));
        TRY(import_open_file(im, &im->files[i], &open, err));
        *out = type_max_id(open.root) <= 0 || import_ids_differ(root, open.root) == NULL;
        import_close_file(&open);
    }
done:
    arena_release(&scratch);
    return code;
}

/* Ids of files are theirs, not the table's, unless the table takes them over. */
static const tarn_type *without_ids(tarn_arena *arena, const tarn_type *root) {
    int32_t next = 1;
    return type_assign_ids(arena, root, &next);
}

static tarn_code join_files(importer *im, const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *root = NULL;
    for (int64_t i = 0; i < im->n_files; i++) {
        import_open open;
        const tarn_type *joined = NULL;
        tarn_arena scratch;
        TRY(env_check_cancel(im->env, err));
        TRY(import_open_file(im, &im->files[i], &open, err));
        arena_init(&scratch, im->env);
        code = root == NULL ? join_structs(&scratch, open.root, open.root, &joined, err)
                            : join_structs(&scratch, root, open.root, &joined, err);
        if (code != TARN_OK) {
            code = err_add(err, code, "file %.*s", STR_ARG(im->files[i].path));
        } else if (root == NULL || !type_eq(root, joined)) { /* most files say the same again */
            root = type_copy(&im->arena, joined);
            code = root != NULL ? TARN_OK : err_nomem(err);
        }
        arena_release(&scratch);
        import_close_file(&open);
        TRY(code);
    }
    *out = root;
done:
    return code;
}

/* ---- keys ---- */

static const import_key *key_of(const import_file *file, tarn_str name) {
    for (int32_t k = 0; k < file->n_keys; k++) {
        if (str_eq(file->keys[k].name, name)) {
            return &file->keys[k];
        }
    }
    return NULL;
}

/* Whether text is how the type writes its value: "007" and "+1" stay text. */
static bool is_text_of(tarn_arena *arena, tarn_env *env, const tarn_type *type, tarn_str text) {
    tarn_value v;
    tarn_buf back;
    tarn_error why = TARN_ERROR_INIT;
    buf_init(&back, env, 0);
    const bool same = value_from_text(arena, type, text, &v, &why) == TARN_OK &&
                      value_to_text(&v, &back, &why) == TARN_OK && str_eq(buf_str(&back), text);
    buf_release(&back);
    return same;
}

/* The first of int, long, date that gives all values back as they are written; else string. */
static const tarn_type *infer_key(importer *im, tarn_str name) {
    static const tarn_kind kinds[] = {TARN_INT, TARN_LONG, TARN_DATE};
    tarn_arena scratch;
    const tarn_type *found = NULL;
    arena_init(&scratch, im->env);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && found == NULL; k++) {
        bool fits = true, any = false;
        for (int64_t i = 0; i < im->n_files && fits; i++) {
            const import_key *key = key_of(&im->files[i], name);
            if (key != NULL && !key->is_null) {
                any = true;
                fits = is_text_of(&scratch, im->env, type_primitive(kinds[k]), key->value);
            }
        }
        found = fits && any ? type_primitive(kinds[k]) : NULL;
    }
    arena_release(&scratch);
    return found != NULL ? found : type_primitive(TARN_STRING);
}

static tarn_code check_keys(importer *im, tarn_error *err) {
    const import_file *first = &im->files[0];
    for (int64_t i = 1; i < im->n_files; i++) {
        const import_file *file = &im->files[i];
        for (int32_t k = 0; k < first->n_keys; k++) {
            if (key_of(file, first->keys[k].name) == NULL) {
                return err_set(
                    err, TARN_INVALID, "%.*s lay in no folder of key \"%.*s\", as %.*s does",
                    STR_ARG(file->path), STR_ARG(first->keys[k].name), STR_ARG(first->path));
            }
        }
        if (file->n_keys != first->n_keys) {
            return err_set(err, TARN_INVALID, "%.*s lay in folders of other keys than %.*s",
                           STR_ARG(file->path), STR_ARG(first->path));
        }
    }
    return TARN_OK;
}

/* The next term of "a, bucket(16, b)", at commas outside parentheses and quotes. */
static bool next_term(tarn_str *rest, tarn_str *term) {
    int depth = 0;
    char quote = '\0';
    size_t i = 0;
    if (rest->len == 0) {
        return false;
    }
    for (; i < rest->len && (rest->data[i] != ',' || depth > 0 || quote != '\0'); i++) {
        const char c = rest->data[i];
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '`') {
            quote = c;
        } else {
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        }
    }
    *term = str_sub(*rest, 0, i);
    *rest = i < rest->len ? str_from(*rest, i + 1) : STR("");
    return true;
}

/* Whether a key is the name of a partition field that is made of another column ("ts_month"). */
static tarn_code is_field_name(importer *im, tarn_str key, bool *out, tarn_error *err) {
    tarn_str rest = im->options->partition_by, text;
    tarn_code code = TARN_OK;
    *out = false;
    while (next_term(&rest, &text)) {
        spec_term term;
        tarn_str name;
        TRY(spec_term_parse(&im->arena, text, &term, err));
        name = term.name;
        if (name.data == NULL) {
            TRY(spec_field_name(&im->arena, term.column, &term.transform, false, &name, err));
        }
        *out |= str_eq(name, key) && !str_eq(term.column, key);
    }
done:
    return code;
}

static tarn_code add_keys(importer *im, const tarn_type *root, field_list *list, tarn_buf *spec,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    bool is_field = false;
    for (int32_t k = 0; k < im->files[0].n_keys; k++) {
        const tarn_str name = im->files[0].keys[k].name;
        const tarn_field *typed =
            im->options->key_types != NULL ? type_child(im->options->key_types, name) : NULL;
        TRY(buf_printf(spec, err, "%s\"", k > 0 ? ", " : ""));
        for (size_t i = 0; i < name.len; i++) {
            TRY(buf_append_str(spec, name.data[i] == '"' ? STR("\"\"") : str_sub(name, i, 1), err));
        }
        TRY(buf_append_char(spec, '"', err));
        TRY(is_field_name(im, name, &is_field, err));
        if (type_child(root, name) == NULL && !is_field) {
            tarn_field field;
            memset(&field, 0, sizeof field);
            field.id = TARN_NO_ID;
            field.name = name;
            field.type = typed != NULL ? typed->type : infer_key(im, name);
            TRY(add_field(&im->arena, list, &field, err));
        }
    }
done:
    return code;
}

tarn_code import_schema(importer *im, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *root = NULL;
    field_list list = {0};
    int32_t next_id;
    tarn_buf spec;
    buf_init(&spec, im->env, 0);
    TRY(check_keys(im, err));
    TRY(join_files(im, &root, err));
    for (int32_t i = 0; i < root->n_fields; i++) {
        TRY(add_field(&im->arena, &list, &root->fields[i], err));
    }
    TRY(add_keys(im, root, &list, &spec, err));
    root = type_struct(&im->arena, list.items, list.n);
    if (root != NULL) {
        TRY(may_keep_ids(im, root, &im->make.keep_ids, err));
        next_id = type_max_id(root) + 1;
        root = im->make.keep_ids ? fill_ids(&im->arena, root, &next_id)
                                 : without_ids(&im->arena, root);
    }
    im->make.root = root;
    im->make.format_version = im->options->format_version;
    im->make.partition_by = im->options->partition_by.len > 0
                                ? im->options->partition_by
                                : arena_str(&im->arena, buf_str(&spec));
    code = root != NULL && im->make.partition_by.data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&spec);
    return code;
}

/* ---- the name mapping ---- */

static json_value *map_fields(tarn_arena *arena, const tarn_type *type) {
    json_value *array = json_new(arena, JSON_ARRAY);
    for (int32_t i = 0; array != NULL && i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        json_value *entry = json_new(arena, JSON_OBJECT), *names = json_new(arena, JSON_ARRAY);
        json_value *name = json_new_str(arena, f->name), *id = json_new_i64(arena, f->id);
        json_value *below =
            type_is_nested(f->type) && f->type->n_fields > 0 ? map_fields(arena, f->type) : NULL;
        if (entry == NULL || names == NULL || name == NULL || id == NULL) {
            return NULL;
        }
        json_add(names, name);
        if (!json_put(arena, entry, "field-id", id) || !json_put(arena, entry, "names", names) ||
            (below != NULL && !json_put(arena, entry, "fields", below)) ||
            (below == NULL && type_is_nested(f->type) && f->type->n_fields > 0)) {
            return NULL;
        }
        json_add(array, entry);
    }
    return array;
}

tarn_code import_mapping(tarn_arena *arena, const tarn_type *root, json_value **out,
                         tarn_error *err) {
    *out = map_fields(arena, root);
    return *out != NULL ? TARN_OK : err_nomem(err);
}
