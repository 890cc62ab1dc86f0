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

tarn_code schema_grow(tarn_arena *arena, const tarn_type *root, const tarn_type *seen,
                      const tarn_type **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_type *now = root;
    const tarn_type *part;
    *out = root;
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

static tarn_code widen_value(tarn_arena *arena, const tarn_type *type, const json_value *value,
                             int depth, const tarn_type **out, tarn_error *err) {
    int64_t number;
    *out = type;
    bool is_number = value->kind == JSON_NUMBER || value->kind == JSON_STRING;
    if (type->kind == TARN_INT && value->kind == JSON_NUMBER && json_i64(value, &number) &&
        (number < INT32_MIN || number > INT32_MAX)) {
        *out = type_primitive(TARN_LONG);
    } else if (type->kind == TARN_DECIMAL && is_number) {
        int32_t need = whole_digits(value->text) + type->scale;
        if (need > type->precision && need <= 38) {
            *out = type_decimal(arena, need, type->scale);
        }
    } else if (type->kind == TARN_STRUCT && value->kind == JSON_OBJECT && depth < LIMIT_NESTING) {
        return widen_struct(arena, type, value, depth, out, err);
    } else if (type->kind == TARN_LIST && value->kind == JSON_ARRAY && depth < LIMIT_NESTING) {
        tarn_code code = TARN_OK;
        const tarn_type *part = type->fields[0].type;
        for (const json_value *v = value->first; v != NULL && code == TARN_OK; v = v->next) {
            code = widen_value(arena, part, v, depth + 1, &part, err);
        }
        return code == TARN_OK ? with_part(arena, type, 0, part, out, err) : code;
    }
    return *out != NULL ? TARN_OK : err_nomem(err);
}

tarn_code schema_widen(tarn_arena *arena, const tarn_type *root, const json_value *record,
                       const tarn_type **out, tarn_error *err) {
    return widen_value(arena, root, record, 0, out, err);
}
