/* source/schema_grow.c - see schema_grow.h. Types are rebuilt along the path to what changed, the
 * rest is shared. */
#include "source/schema_grow.h"

#include "base/limits.h"

static int32_t find_field(const tarn_type *root, tarn_str name) {
    for (int32_t i = 0; i < root->n_fields; i++) {
        if (str_eq(root->fields[i].name, name)) {
            return i;
        }
    }
    return -1;
}

/* A column of which nothing but its type is known. */
static tarn_code new_field(tarn_arena *arena, const tarn_field *seen, tarn_field *out,
                           tarn_error *err) {
    memset(out, 0, sizeof *out);
    out->id = TARN_NO_ID;
    out->name = arena_str(arena, seen->name);
    out->type = type_copy(arena, seen->type);
    return out->name.data != NULL && out->type != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code with_part(tarn_arena *arena, const tarn_type *type, int32_t at,
                           const tarn_type *part, const tarn_type **out, tarn_error *err) {
    if (part == type->fields[at].type) {
        *out = type;
        return TARN_OK;
    }
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, (size_t)type->n_fields);
    tarn_type *copy = ARENA_NEW(arena, tarn_type);
    if (fields == NULL || copy == NULL) {
        return err_nomem(err);
    }
    memcpy(fields, type->fields, (size_t)type->n_fields * sizeof *fields);
    fields[at].type = part;
    *copy = *type;
    copy->fields = fields;
    *out = copy;
    return TARN_OK;
}

/* Whether a map is written as {"keys": [...], "values": [...]}, and not as an object of its values.
 */
static bool is_of_lists(const tarn_type *map, tarn_str first_name, bool first_is_list) {
    return map->fields[0].type->kind != TARN_STRING ||
           (first_is_list && (str_is(first_name, "keys") || str_is(first_name, "values")));
}

/* What a map looks like is a struct. */
static tarn_code grow_map(tarn_arena *arena, const tarn_type *map, const tarn_type *seen,
                          const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *value = map->fields[1].type;
    bool of_lists = seen->n_fields > 0 &&
                    is_of_lists(map, seen->fields[0].name, seen->fields[0].type->kind == TARN_LIST);
    for (int32_t i = 0; i < seen->n_fields; i++) {
        const tarn_type *part = seen->fields[i].type;
        if (!of_lists) {
            TRY(schema_grow(arena, value, part, &value, err));
        } else if (str_is(seen->fields[i].name, "values") && part->kind == TARN_LIST) {
            TRY(schema_grow(arena, value, part->fields[0].type, &value, err));
        }
    }
    code = with_part(arena, map, 1, value, out, err);
done:
    return code;
}

tarn_code schema_grow(tarn_arena *arena, const tarn_type *root, const tarn_type *seen,
                      const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *now = root;
    const tarn_type *part;
    *out = root;
    if (root->kind == TARN_MAP && seen->kind == TARN_STRUCT) {
        return grow_map(arena, root, seen, out, err);
    }
    if (root->kind != seen->kind || !type_is_nested(root)) {
        return TARN_OK;
    }
    if (root->kind != TARN_STRUCT) {
        for (int32_t i = 0; i < root->n_fields && i < seen->n_fields; i++) {
            TRY(schema_grow(arena, now->fields[i].type, seen->fields[i].type, &part, err));
            TRY(with_part(arena, now, i, part, &now, err));
        }
        *out = now;
        return TARN_OK;
    }
    tarn_field *fields =
        ARENA_ARRAY(arena, tarn_field, (size_t)root->n_fields + (size_t)seen->n_fields + 1);
    int32_t n = root->n_fields;
    bool changed = false;
    if (fields == NULL) {
        return err_nomem(err);
    }
    if (n > 0) {
        memcpy(fields, root->fields, (size_t)n * sizeof *fields);
    }
    for (int32_t i = 0; i < seen->n_fields; i++) {
        int32_t at = find_field(root, seen->fields[i].name);
        if (at < 0) {
            TRY(new_field(arena, &seen->fields[i], &fields[n++], err));
        } else {
            TRY(schema_grow(arena, fields[at].type, seen->fields[i].type, &part, err));
            changed = changed || part != fields[at].type;
            fields[at].type = part;
        }
    }
    if (changed || n > root->n_fields) {
        *out = type_struct(arena, fields, n);
        code = *out != NULL ? TARN_OK : err_nomem(err);
    }
done:
    return code;
}

/* Digits before the point of a plain decimal text. */
static int32_t whole_digits(tarn_str text) {
    int32_t n = 0;
    size_t i = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+') ? 1 : 0;
    while (i < text.len && text.data[i] == '0') {
        i++;
    }
    for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++) {
        n++;
    }
    return i == text.len || text.data[i] == '.' ? n : 0;
}

static tarn_code widen_value(tarn_arena *arena, const tarn_type *type, const json_value *value,
                             int depth, const tarn_type **out, tarn_error *err);

static tarn_code widen_struct(tarn_arena *arena, const tarn_type *type, const json_value *value,
                              int depth, const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *now = type;
    const tarn_type *part;
    for (const json_value *m = value->first; m != NULL; m = m->next) {
        int32_t at = find_field(type, m->name);
        if (at >= 0) {
            TRY(widen_value(arena, now->fields[at].type, m, depth + 1, &part, err));
            TRY(with_part(arena, now, at, part, &now, err));
        }
    }
    *out = now;
done:
    return code;
}

/* What is in a list, or in a map; its keys stay, since Iceberg has them never change. */
static tarn_code widen_items(tarn_arena *arena, const tarn_type *type, const json_value *value,
                             int depth, const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool is_map = type->kind == TARN_MAP;
    const tarn_type *part = type->fields[is_map].type;
    const json_value *first = value->first;
    if (is_map && first != NULL && is_of_lists(type, first->name, first->kind == JSON_ARRAY)) {
        value = json_get(value, "values");
        first = json_is(value, JSON_ARRAY) ? value->first : NULL;
    }
    for (const json_value *v = first; v != NULL; v = v->next) {
        TRY(widen_value(arena, part, v, depth + 1, &part, err));
    }
    code = with_part(arena, type, is_map, part, out, err);
done:
    return code;
}

static bool is_beyond_float(tarn_str text) {
    float narrow;
    double wide;
    return !str_to_f32(text, &narrow) && str_to_f64(text, &wide);
}

static tarn_code widen_value(tarn_arena *arena, const tarn_type *type, const json_value *value,
                             int depth, const tarn_type **out, tarn_error *err) {
    int64_t number;
    *out = type;
    bool is_number = value->kind == JSON_NUMBER || value->kind == JSON_STRING;
    if (type->kind == TARN_INT && value->kind == JSON_NUMBER && json_i64(value, &number) &&
        (number < INT32_MIN || number > INT32_MAX)) {
        *out = type_primitive(TARN_LONG);
    } else if (type->kind == TARN_FLOAT && value->kind == JSON_NUMBER &&
               is_beyond_float(value->text)) {
        *out = type_primitive(TARN_DOUBLE);
    } else if (type->kind == TARN_DECIMAL && is_number) {
        int32_t need = whole_digits(value->text) + type->scale;
        if (need > type->precision && need <= 38) {
            *out = type_decimal(arena, need, type->scale);
        }
    } else if (type->kind == TARN_STRUCT && value->kind == JSON_OBJECT && depth < LIMIT_NESTING) {
        return widen_struct(arena, type, value, depth, out, err);
    } else if (((type->kind == TARN_MAP && value->kind == JSON_OBJECT) ||
                (type->kind == TARN_LIST && value->kind == JSON_ARRAY)) &&
               depth < LIMIT_NESTING) {
        return widen_items(arena, type, value, depth, out, err);
    }
    return *out != NULL ? TARN_OK : err_nomem(err);
}

tarn_code schema_widen(tarn_arena *arena, const tarn_type *root, const json_value *record,
                       const tarn_type **out, tarn_error *err) {
    return widen_value(arena, root, record, 0, out, err);
}
