/* iceberg/evolve_spec.c - one edit of the partition spec or the sort order (spec, "Partition
 * Evolution"). Field ids are never used for two things, and a field that was there before gets its
 * old id back; version 1 keeps dropped fields in their place as void. */
#include "iceberg/evolve_int.h"
#include "iceberg/spec_text.h"

static bool is_v1(const evolve_work *w) {
    return w->base->format_version < 2;
}

/* Room for one more field. */
static tarn_code reserve_field(evolve_work *w) {
    size_t old = (size_t)w->n_fields * sizeof *w->fields;
    tarn_partition_field *grown = arena_grow(w->arena, w->fields, old, old + sizeof *w->fields);
    if (grown == NULL) {
        return err_nomem(w->err);
    }
    w->fields = grown;
    return TARN_OK;
}

static tarn_partition_field *find_name(evolve_work *w, tarn_str name) {
    for (int32_t i = 0; i < w->n_fields; i++) {
        if (str_eq(w->fields[i].name, name)) {
            return &w->fields[i];
        }
    }
    return NULL;
}

static tarn_partition_field *find_transform(evolve_work *w, int32_t source_id,
                                            const tarn_transform *transform) {
    for (int32_t i = 0; i < w->n_fields; i++) {
        if (w->fields[i].source_id == source_id &&
            transform_eq(&w->fields[i].transform, transform)) {
            return &w->fields[i];
        }
    }
    return NULL;
}

/* The field that some spec of the table had for this source and transform. name data NULL: any. */
static const tarn_partition_field *find_former(const evolve_work *w, int32_t source_id,
                                               const tarn_transform *transform, tarn_str name) {
    for (int32_t i = w->base->n_specs - 1; i >= 0 && !is_v1(w); i--) {
        const tarn_spec *spec = w->base->specs[i];
        for (int32_t k = 0; k < spec->n_fields; k++) {
            const tarn_partition_field *f = &spec->fields[k];
            if (f->source_id == source_id && transform_eq(&f->transform, transform) &&
                (name.data == NULL || str_eq(f->name, name))) {
                return f;
            }
        }
    }
    return NULL;
}

static tarn_code resolve_term(evolve_work *w, const spec_term *term, int32_t *source_id) {
    const tarn_field *field = type_find_name(w->schema.root, term->column, true);
    const tarn_type *result;
    if (field == NULL) {
        return err_set(w->err, TARN_INVALID, "there is no column \"%.*s\" to partition by",
                       STR_ARG(term->column));
    }
    *source_id = field->id;
    return transform_result_type(w->arena, &term->transform, field->type, &result, w->err);
}

static tarn_code name_field(evolve_work *w, const spec_term *term, const tarn_edit *edit,
                            tarn_partition_field *f) {
    tarn_str given = edit->new_name.len > 0 ? edit->new_name : term->name;
    const tarn_partition_field *former = find_former(w, f->source_id, &f->transform, given);
    tarn_code code = TARN_OK;
    if (former != NULL) {
        f->name = former->name;
        f->field_id = former->field_id;
        return TARN_OK;
    }
    if (given.len > 0) {
        f->name = arena_str(w->arena, given);
        code = f->name.data == NULL ? err_nomem(w->err) : TARN_OK;
    } else {
        code = spec_field_name(w->arena, term->column, &f->transform, true, &f->name, w->err);
    }
    f->field_id = ++w->last_partition_id;
    return code;
}

/* A void field of version 1 gives its name up: "x" becomes "x_1000". */
static tarn_code free_name(evolve_work *w, tarn_str name) {
    tarn_partition_field *f = find_name(w, name);
    if (f == NULL) {
        return TARN_OK;
    }
    if (f->transform.kind != TRANSFORM_VOID) {
        return err_set(w->err, TARN_INVALID, "a partition field \"%.*s\" is there already",
                       STR_ARG(name));
    }
    char *text = arena_printf(w->arena, "%.*s_%d", STR_ARG(name), f->field_id);
    f->name = str_of(text);
    return text != NULL ? TARN_OK : err_nomem(w->err);
}

static tarn_code add_field(evolve_work *w, const tarn_edit *edit) {
    spec_term term;
    tarn_partition_field f;
    memset(&f, 0, sizeof f);
    tarn_code code = spec_term_parse(w->arena, edit->text, &term, w->err);
    if (code == TARN_OK) {
        code = resolve_term(w, &term, &f.source_id);
    }
    if (code != TARN_OK) {
        return code;
    }
    f.transform = term.transform;
    const tarn_partition_field *same = find_transform(w, f.source_id, &f.transform);
    if (same != NULL) {
        return err_set(w->err, TARN_INVALID, "partition field \"%.*s\" says the same already",
                       STR_ARG(same->name));
    }
    code = name_field(w, &term, edit, &f);
    if (code == TARN_OK) {
        code = free_name(w, f.name);
    }
    if (code == TARN_OK) {
        code = reserve_field(w);
    }
    if (code == TARN_OK) {
        w->fields[w->n_fields++] = f;
    }
    return code;
}

static void take_out(evolve_work *w, tarn_partition_field *f) {
    if (is_v1(w)) {
        f->transform = (tarn_transform){TRANSFORM_VOID, 0, STR_NULL};
        return;
    }
    size_t after = (size_t)(w->fields + w->n_fields - (f + 1));
    memmove(f, f + 1, after * sizeof *f);
    w->n_fields--;
}

static tarn_code drop_field(evolve_work *w, const tarn_edit *edit) {
    tarn_partition_field *f = find_name(w, str_trim(edit->text));
    spec_term term;
    int32_t source_id;
    tarn_error ignored = TARN_ERROR_INIT;
    if (f == NULL && spec_term_parse(w->arena, edit->text, &term, &ignored) == TARN_OK) {
        tarn_error *err = w->err;
        w->err = &ignored;
        if (resolve_term(w, &term, &source_id) == TARN_OK) {
            f = find_transform(w, source_id, &term.transform);
        }
        w->err = err;
    }
    if (f == NULL || f->transform.kind == TRANSFORM_VOID) {
        return err_set(w->err, TARN_INVALID, "there is no partition field \"%.*s\"",
                       STR_ARG(edit->text));
    }
    take_out(w, f);
    return TARN_OK;
}

static tarn_code rename_field(evolve_work *w, const tarn_edit *edit) {
    tarn_partition_field *f = find_name(w, edit->path);
    if (f == NULL || edit->new_name.len == 0) {
        return err_set(w->err, TARN_INVALID, "partition field \"%.*s\" %s", STR_ARG(edit->path),
                       f == NULL ? "is not there" : "cannot have an empty name");
    }
    tarn_code code = str_eq(f->name, edit->new_name) ? TARN_OK : free_name(w, edit->new_name);
    tarn_str name = arena_str(w->arena, edit->new_name);
    if (code != TARN_OK || name.data == NULL) {
        return code != TARN_OK ? code : err_nomem(w->err);
    }
    f->name = name;
    return TARN_OK;
}

/* A whole new spec: fields that say the same stay as they are, others go, new ones come. */
static tarn_code set_partition(evolve_work *w, const tarn_edit *edit) {
    int32_t ignored = 0;
    tarn_spec wanted;
    tarn_code code =
        spec_from_text(w->arena, w->schema.root, edit->text, &ignored, &wanted, w->err);
    if (code != TARN_OK) {
        return code;
    }
    int32_t n = 0;
    tarn_partition_field *fields =
        ARENA_ARRAY(w->arena, tarn_partition_field, (size_t)(wanted.n_fields + w->n_fields));
    if (fields == NULL) {
        return err_nomem(w->err);
    }
    for (int32_t i = 0; i < w->n_fields && is_v1(w); i++) { /* in their place, void if unwanted */
        fields[n] = w->fields[i];
        bool stays = false;
        for (int32_t k = 0; k < wanted.n_fields; k++) {
            stays |= wanted.fields[k].source_id == fields[n].source_id &&
                     transform_eq(&wanted.fields[k].transform, &fields[n].transform);
        }
        if (!stays) {
            fields[n].transform = (tarn_transform){TRANSFORM_VOID, 0, STR_NULL};
        }
        n++;
    }
    w->fields = fields;
    w->n_fields = n;
    for (int32_t i = 0; i < wanted.n_fields; i++) {
        tarn_partition_field f = wanted.fields[i];
        const tarn_partition_field *former = find_former(w, f.source_id, &f.transform, STR_NULL);
        if (find_transform(w, f.source_id, &f.transform) != NULL) {
            continue; /* version 1, in its place */
        }
        f.field_id = former != NULL ? former->field_id : ++w->last_partition_id;
        code = free_name(w, f.name);
        if (code != TARN_OK) {
            return code;
        }
        w->fields[w->n_fields++] = f;
    }
    return TARN_OK;
}

tarn_code evolve_spec_edit(evolve_work *w, const tarn_edit *edit) {
    tarn_code code = TARN_OK;
    if (edit->kind == EVOLVE_SET_SORT_ORDER) {
        w->order_edited = true;
        return sort_order_from_text(w->arena, w->schema.root, edit->text, &w->order, w->err);
    }
    w->spec_edited = true;
    if (edit->kind == EVOLVE_ADD_PARTITION_FIELD) {
        code = add_field(w, edit);
    } else if (edit->kind == EVOLVE_DROP_PARTITION_FIELD) {
        code = drop_field(w, edit);
    } else if (edit->kind == EVOLVE_RENAME_PARTITION_FIELD) {
        code = rename_field(w, edit);
    } else {
        code = set_partition(w, edit);
    }
    return code == TARN_OK ? spec_check(w->schema.root, w->fields, w->n_fields, false, w->err)
                           : code;
}
