/* iceberg/evolve_mapping.c - what follows when columns change: the name mapping learns new names
 * and keeps the old ones (spec, "Name Mapping Serialization"; B11), and properties that name a
 * column follow it. */
#include "iceberg/evolve_int.h"

#define MAPPING_PROPERTY "schema.name-mapping.default"

static const char *const column_prefixes[] = {"write.metadata.metrics.column.",
                                              "write.parquet.bloom-filter-enabled.column.",
                                              "write.parquet.stats-enabled.column."};

tarn_code evolve_mapping_read(evolve_work *w) {
    tarn_str text;
    tarn_error ignored = TARN_ERROR_INIT;
    json_value *json = NULL;
    if (!properties_get(&w->base->properties, MAPPING_PROPERTY, &text)) {
        return TARN_OK;
    }
    tarn_code code = json_parse(w->arena, text, MAPPING_PROPERTY, &json, &ignored);
    if (code == TARN_NOMEM) {
        return err_nomem(w->err);
    }
    /* A mapping that nobody can read is left as it is. */
    w->mapping = code == TARN_OK && json->kind == JSON_ARRAY ? json : NULL;
    return TARN_OK;
}

static json_value *member_of(const json_value *object, const char *name) {
    for (json_value *m = object->kind == JSON_OBJECT ? object->first : NULL; m != NULL;
         m = m->next) {
        if (str_is(m->name, name)) {
            return m;
        }
    }
    return NULL;
}

/* The entry of a field id; *siblings is the array it is in. */
static json_value *find_entry(json_value *array, int32_t id, json_value **siblings, int depth) {
    for (json_value *e = array->first; e != NULL && depth < JSON_MAX_DEPTH; e = e->next) {
        int32_t got;
        json_value *fields = member_of(e, "fields");
        if (json_i32(member_of(e, "field-id"), &got) && got == id) {
            *siblings = array;
            return e;
        }
        json_value *below =
            json_is(fields, JSON_ARRAY) ? find_entry(fields, id, siblings, depth + 1) : NULL;
        if (below != NULL) {
            return below;
        }
    }
    return NULL;
}

static bool has_name(const json_value *names, tarn_str name) {
    for (const json_value *n = names != NULL ? names->first : NULL; n != NULL; n = n->next) {
        if (n->kind == JSON_STRING && str_eq(n->text, name)) {
            return true;
        }
    }
    return false;
}

/* A name means one field: the one that has it now. */
static void take_name(json_value *siblings, const json_value *owner, tarn_str name) {
    for (json_value *e = siblings->first; e != NULL; e = e->next) {
        json_value *names = e == owner ? NULL : member_of(e, "names");
        if (!has_name(names, name)) {
            continue;
        }
        json_value **at = &names->first;
        while (*at != NULL) {
            if (str_eq((*at)->text, name)) {
                *at = (*at)->next;
                names->count--;
            } else {
                at = &(*at)->next;
            }
        }
    }
}

tarn_code evolve_mapping_rename(evolve_work *w, int32_t id, tarn_str new_name) {
    json_value *siblings = NULL;
    json_value *entry = w->mapping != NULL ? find_entry(w->mapping, id, &siblings, 0) : NULL;
    json_value *names = entry != NULL ? member_of(entry, "names") : NULL;
    if (!json_is(names, JSON_ARRAY)) {
        return TARN_OK;
    }
    take_name(siblings, entry, new_name);
    if (!has_name(names, new_name)) {
        json_value *name = json_new_str(w->arena, new_name);
        if (name == NULL) {
            return err_nomem(w->err);
        }
        json_add(names, name);
    }
    w->mapping_edited = true;
    return TARN_OK;
}

static json_value *new_entry(evolve_work *w, const tarn_field *field) {
    json_value *entry = json_new(w->arena, JSON_OBJECT);
    json_value *names = json_new(w->arena, JSON_ARRAY);
    json_value *name = json_new_str(w->arena, field->name);
    json_value *id = json_new_i64(w->arena, field->id);
    if (entry == NULL || names == NULL || name == NULL || id == NULL) {
        return NULL;
    }
    json_add(names, name);
    if (!json_put(w->arena, entry, "field-id", id) || !json_put(w->arena, entry, "names", names)) {
        return NULL;
    }
    if (field->type->n_fields == 0) {
        return entry;
    }
    json_value *fields = json_new(w->arena, JSON_ARRAY);
    for (int32_t i = 0; fields != NULL && i < field->type->n_fields; i++) {
        json_value *below = new_entry(w, &field->type->fields[i]);
        if (below == NULL) {
            return NULL;
        }
        json_add(fields, below);
    }
    return fields != NULL && json_put(w->arena, entry, "fields", fields) ? entry : NULL;
}

tarn_code evolve_mapping_add(evolve_work *w, int32_t parent_id, const tarn_field *field) {
    json_value *ignored = NULL, *array = w->mapping;
    if (array == NULL) {
        return TARN_OK;
    }
    json_value *entry = new_entry(w, field);
    if (entry == NULL) {
        return err_nomem(w->err);
    }
    if (parent_id != TARN_NO_ID) {
        json_value *parent = find_entry(w->mapping, parent_id, &ignored, 0);
        if (parent == NULL) {
            return TARN_OK; /* the mapping does not know the parent either */
        }
        array = member_of(parent, "fields");
        if (array == NULL) {
            array = json_new(w->arena, JSON_ARRAY);
            if (array == NULL || !json_put(w->arena, parent, "fields", array)) {
                return err_nomem(w->err);
            }
        }
    }
    take_name(array, NULL, field->name);
    json_add(array, entry);
    w->mapping_edited = true;
    return TARN_OK;
}

static tarn_code mapping_text(evolve_work *w, tarn_str *out) {
    tarn_buf buf;
    json_writer json;
    buf_init(&buf, w->arena->env, 0);
    json_begin(&json, &buf, false, w->err);
    json_put_value(&json, w->mapping);
    tarn_code code = json_end(&json);
    if (code == TARN_OK) {
        *out = arena_str(w->arena, buf_str(&buf));
        code = out->data != NULL ? TARN_OK : err_nomem(w->err);
    }
    buf_release(&buf);
    return code;
}

/* The property's new key after all renames; same text: none. Dropped columns give STR_NULL. */
static tarn_code follow_columns(evolve_work *w, tarn_str key, tarn_str *out) {
    *out = key;
    for (size_t p = 0; p < sizeof column_prefixes / sizeof column_prefixes[0]; p++) {
        tarn_str prefix = str_of(column_prefixes[p]);
        if (!str_starts_with(key, prefix)) {
            continue;
        }
        tarn_str column = str_from(key, prefix.len);
        for (int32_t i = 0; i < w->n_renamed; i++) {
            if (str_eq(column, w->renamed[i].key)) {
                column = w->renamed[i].value;
            }
        }
        if (column.len == 0) {
            *out = STR_NULL;
            return TARN_OK;
        }
        char *text =
            arena_printf(w->arena, "%s%.*s", column_prefixes[p], (int)column.len, column.data);
        *out = str_of(text);
        return text != NULL ? TARN_OK : err_nomem(w->err);
    }
    return TARN_OK;
}

tarn_code evolve_properties(evolve_work *w, tarn_properties *set, tarn_properties *remove) {
    size_t n = (size_t)w->base->properties.count + 1;
    tarn_property *sets = ARENA_ARRAY(w->arena, tarn_property, n);
    tarn_property *removes = ARENA_ARRAY(w->arena, tarn_property, n);
    if (sets == NULL || removes == NULL) {
        return err_nomem(w->err);
    }
    *set = (tarn_properties){0, sets};
    *remove = (tarn_properties){0, removes};
    if (w->mapping_edited) {
        tarn_str text;
        tarn_code code = mapping_text(w, &text);
        if (code != TARN_OK) {
            return code;
        }
        sets[set->count++] = (tarn_property){STR(MAPPING_PROPERTY), text};
    }
    for (int32_t i = 0; i < w->base->properties.count && w->n_renamed > 0; i++) {
        const tarn_property *p = &w->base->properties.items[i];
        tarn_str key;
        tarn_code code = follow_columns(w, p->key, &key);
        if (code != TARN_OK) {
            return code;
        }
        if (!str_eq(key, p->key)) {
            removes[remove->count++] = (tarn_property){p->key, STR_NULL};
            if (key.len > 0) {
                sets[set->count++] = (tarn_property){key, p->value};
            }
        }
    }
    return TARN_OK;
}
