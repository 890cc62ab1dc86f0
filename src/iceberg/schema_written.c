/* iceberg/schema_written.c - whether rows that are there can be read with another current schema.
 *
 * What counts is what rows were written with: the schemas of main's snapshots, as far back as they
 * are there. A table that was replaced whole holds none of the rows before, and may give the ids of
 * its columns to other types, as Iceberg Java does. A column that was odd before stays so. */
#include "base/map.h"
#include "iceberg/evolve.h"
#include "iceberg/schema_check.h"

static tarn_code index_fields(tarn_map *index, const tarn_type *type, tarn_error *err) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        const tarn_field *f = &type->fields[i];
        map_entry *entry = map_put(index, str_make(&f->id, sizeof f->id), NULL);
        if (entry == NULL) {
            return err_nomem(err);
        }
        entry->value.ptr = (void *)(uintptr_t)f;
        tarn_code code = index_fields(index, f->type, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

static const tarn_type *type_of(const tarn_map *index, int32_t id) {
    const map_entry *entry = map_find(index, str_make(&id, sizeof id));
    return entry != NULL ? ((const tarn_field *)entry->value.ptr)->type : NULL;
}

/* Fields within nested types are looked at by themselves. */
static bool is_same(const tarn_type *a, const tarn_type *b) {
    return type_is_nested(a) || type_is_nested(b) ? a->kind == b->kind : type_eq(a, b);
}

/* Besides promotions: types of the same bytes, which PyIceberg lets a column change between. */
static bool can_read(const tarn_type *written, const tarn_type *now, int32_t version) {
    const bool bytes =
        (written->kind == TARN_STRING && now->kind == TARN_BINARY) ||
        (written->kind == TARN_BINARY && now->kind == TARN_STRING) ||
        (written->kind == TARN_FIXED && written->length == 16 && now->kind == TARN_UUID);
    return is_same(written, now) || bytes ||
           (!type_is_nested(written) && !type_is_nested(now) &&
            evolve_can_widen(written, now, version));
}

typedef struct schema_step {
    tarn_map before, written; /* id to tarn_field */
    int32_t version;
    tarn_error *err;
} schema_step;

static tarn_code check_types(const schema_step *step, const tarn_type *now) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < now->n_fields && code == TARN_OK; i++) {
        const tarn_field *f = &now->fields[i];
        const tarn_type *before = type_of(&step->before, f->id);
        const tarn_type *written = type_of(&step->written, f->id);
        const bool kept = before != NULL && is_same(before, f->type);
        if (!kept && written != NULL && !can_read(written, f->type, step->version)) {
            return err_set(step->err, TARN_INVALID,
                           "column \"%.*s\" (id %d) of type %s cannot become %s: rows of the table "
                           "hold it",
                           STR_ARG(f->name), f->id, type_kind_name(written->kind),
                           type_kind_name(f->type->kind));
        }
        code = check_types(step, f->type);
    }
    return code;
}

/* Marks, among base's schemas, those of at and its ancestors in m. */
static void mark_written(const tarn_metadata *base, const tarn_metadata *m, uint8_t *written) {
    const tarn_snapshot *at = metadata_current_snapshot(m);
    for (int32_t steps = 0; at != NULL && steps <= m->n_snapshots; steps++) {
        const int32_t id = at->schema_id >= 0 ? at->schema_id : base->current_schema_id;
        for (int32_t i = 0; i < base->n_schemas; i++) {
            written[i] |= base->schemas[i]->schema_id == id;
        }
        at = metadata_parent(m, at);
    }
}

tarn_code schema_check_written(tarn_arena *arena, const tarn_metadata *base, const tarn_metadata *m,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_schema *before = metadata_schema(base);
    schema_step step = {.version = m->format_version, .err = err};
    uint8_t *written = ARENA_ARRAY(arena, uint8_t, (size_t)base->n_schemas + 1);
    if (written == NULL) {
        return err_nomem(err);
    }
    mark_written(base, m, written);
    map_init(&step.before, arena);
    if (before != NULL) {
        TRY(index_fields(&step.before, before->root, err));
    }
    for (int32_t i = 0; i < base->n_schemas; i++) {
        if (written[i]) {
            map_init(&step.written, arena);
            TRY(index_fields(&step.written, base->schemas[i]->root, err));
            TRY(check_types(&step, metadata_schema(m)->root));
        }
    }
done:
    return code;
}
