/* iceberg/evolve.c - edits of schema, spec and sort order, in their order, as one change set with
 * the requirements that protect it. */
#include "iceberg/evolve.h"

#include "iceberg/evolve_int.h"
#include "iceberg/schema_check.h"
#include "iceberg/spec_text.h"

static tarn_code begin_edits(evolve_work *w, int32_t n_edits) {
    const tarn_schema *schema = metadata_schema(w->base);
    const tarn_spec *spec = metadata_spec(w->base);
    const tarn_sort_order *order = metadata_sort_order(w->base);
    if (schema == NULL || spec == NULL) {
        return err_set(w->err, TARN_CORRUPT, "the table had no current schema or spec");
    }
    w->schema = *schema;
    w->last_column_id = w->base->last_column_id;
    w->last_partition_id = w->base->last_partition_id;
    w->n_fields = spec->n_fields;
    w->fields = ARENA_ARRAY(w->arena, tarn_partition_field, (size_t)spec->n_fields);
    w->renamed = ARENA_ARRAY(w->arena, tarn_property, (size_t)n_edits);
    if (w->fields == NULL || w->renamed == NULL) {
        return err_nomem(w->err);
    }
    if (spec->n_fields > 0) {
        memcpy(w->fields, spec->fields, (size_t)spec->n_fields * sizeof *w->fields);
    }
    if (order != NULL) {
        w->order = *order;
    }
    return evolve_mapping_read(w);
}

typedef struct change_list {
    tarn_change *items;
    int32_t n;
    tarn_requirement *demands;
    int32_t n_demands;
} change_list;

static void demand(change_list *l, requirement_kind kind, int64_t number) {
    l->demands[l->n_demands++] = (tarn_requirement){kind, STR_NULL, number};
}

/* A part that the table has already is named by its id: some servers refuse to add it again. A new
 * one has the next id, since some take it as it comes. */
static tarn_code list_schema(evolve_work *w, change_list *l) {
    tarn_schema *schema = ARENA_NEW(w->arena, tarn_schema);
    if (schema == NULL) {
        return err_nomem(w->err);
    }
    demand(l, REQUIRE_LAST_ASSIGNED_FIELD_ID, w->base->last_column_id);
    demand(l, REQUIRE_CURRENT_SCHEMA_ID, w->base->current_schema_id);
    *schema = w->schema;
    int32_t id = -1;
    schema->schema_id = 0;
    for (int32_t i = 0; i < w->base->n_schemas; i++) {
        if (w->base->schemas[i]->schema_id >= schema->schema_id) {
            schema->schema_id = w->base->schemas[i]->schema_id + 1;
        }
        if (schema_same(w->base->schemas[i], schema) &&
            w->last_column_id == w->base->last_column_id) {
            id = w->base->schemas[i]->schema_id;
        }
    }
    if (id < 0) {
        l->items[l->n++] =
            (tarn_change){.kind = CHANGE_ADD_SCHEMA, .schema = schema, .number = w->last_column_id};
    }
    l->items[l->n++] = (tarn_change){.kind = CHANGE_SET_CURRENT_SCHEMA, .number = id};
    return TARN_OK;
}

static tarn_code list_spec(evolve_work *w, change_list *l) {
    tarn_spec *spec = ARENA_NEW(w->arena, tarn_spec);
    if (spec == NULL) {
        return err_nomem(w->err);
    }
    demand(l, REQUIRE_DEFAULT_SPEC_ID, w->base->default_spec_id);
    demand(l, REQUIRE_LAST_ASSIGNED_PARTITION_ID, w->base->last_partition_id);
    *spec = (tarn_spec){0, w->n_fields, w->fields};
    int32_t id = -1;
    for (int32_t i = 0; i < w->base->n_specs; i++) {
        id = spec_same(w->base->specs[i], spec) ? w->base->specs[i]->spec_id : id;
        if (w->base->specs[i]->spec_id >= spec->spec_id) {
            spec->spec_id = w->base->specs[i]->spec_id + 1;
        }
    }
    if (id < 0) {
        l->items[l->n++] = (tarn_change){.kind = CHANGE_ADD_SPEC, .spec = spec};
    }
    l->items[l->n++] = (tarn_change){.kind = CHANGE_SET_DEFAULT_SPEC, .number = id};
    return TARN_OK;
}

static tarn_code list_order(evolve_work *w, change_list *l) {
    tarn_sort_order *order = ARENA_NEW(w->arena, tarn_sort_order);
    if (order == NULL) {
        return err_nomem(w->err);
    }
    demand(l, REQUIRE_DEFAULT_SORT_ORDER_ID, w->base->default_sort_order_id);
    *order = w->order;
    int32_t id = -1;
    order->order_id = order->n_fields > 0 ? 1 : 0; /* 0 is kept for unsorted */
    for (int32_t i = 0; i < w->base->n_sort_orders; i++) {
        if (order->n_fields > 0 && w->base->sort_orders[i]->order_id >= order->order_id) {
            order->order_id = w->base->sort_orders[i]->order_id + 1;
        }
        if (sort_order_same(w->base->sort_orders[i], order)) {
            id = w->base->sort_orders[i]->order_id;
        }
    }
    if (id < 0) {
        l->items[l->n++] = (tarn_change){.kind = CHANGE_ADD_SORT_ORDER, .sort_order = order};
    }
    l->items[l->n++] = (tarn_change){.kind = CHANGE_SET_DEFAULT_SORT_ORDER, .number = id};
    return TARN_OK;
}

static tarn_code list_properties(evolve_work *w, change_list *l) {
    tarn_properties set, removed;
    tarn_code code = evolve_properties(w, &set, &removed);
    if (code != TARN_OK) {
        return code;
    }
    if (removed.count > 0) {
        l->items[l->n++] = (tarn_change){.kind = CHANGE_REMOVE_PROPERTIES, .properties = removed};
    }
    if (set.count > 0) {
        l->items[l->n++] = (tarn_change){.kind = CHANGE_SET_PROPERTIES, .properties = set};
    }
    return TARN_OK;
}

/* Everything that partitions or sorts must still find its column. */
static tarn_code check_result(evolve_work *w) {
    tarn_spec spec = {0, w->n_fields, w->fields};
    tarn_code code = schema_check(&w->schema, w->base->format_version, w->err);
    if (code == TARN_OK) {
        code = spec_check_sources(w->schema.root, &spec, w->err);
    }
    return code == TARN_OK ? sort_order_check_sources(w->schema.root, &w->order, w->err) : code;
}

static bool is_schema_edit(evolve_kind kind) {
    return kind <= EVOLVE_SET_IDENTIFIERS;
}

tarn_code evolve_changes(tarn_arena *arena, const tarn_metadata *base, const tarn_edit *edits,
                         int32_t n_edits, tarn_change_set *out, tarn_error *err) {
    evolve_work w;
    change_list l = {ARENA_ARRAY(arena, tarn_change, 8), 0, ARENA_ARRAY(arena, tarn_requirement, 8),
                     0};
    tarn_code code = TARN_OK;
    memset(&w, 0, sizeof w);
    w.arena = arena;
    w.err = err;
    w.base = base;
    if (l.items == NULL || l.demands == NULL) {
        return err_nomem(err);
    }
    TRY(begin_edits(&w, n_edits));
    for (int32_t i = 0; i < n_edits; i++) {
        TRY(is_schema_edit(edits[i].kind) ? evolve_schema_edit(&w, &edits[i])
                                          : evolve_spec_edit(&w, &edits[i]));
    }
    TRY(check_result(&w));
    if (base->table_uuid.len > 0) {
        l.demands[l.n_demands++] = (tarn_requirement){REQUIRE_UUID, base->table_uuid, 0};
    }
    if (w.schema_edited) {
        TRY(list_schema(&w, &l));
    }
    if (w.spec_edited) {
        TRY(list_spec(&w, &l));
    }
    if (w.order_edited) {
        TRY(list_order(&w, &l));
    }
    TRY(list_properties(&w, &l));
    *out = (tarn_change_set){l.n_demands, l.demands, l.n, l.items};
done:
    return code;
}
