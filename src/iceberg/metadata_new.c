/* iceberg/metadata_new.c - the first metadata of a table. */
#include "base/limits.h"
#include "iceberg/schema_check.h"

static tarn_code find_identifiers(tarn_arena *arena, const metadata_new_options *options,
                                  tarn_schema *schema, tarn_error *err) {
    int32_t n = options->n_identifier_names;
    int32_t *ids = ARENA_ARRAY(arena, int32_t, (size_t)n);
    if (ids == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        const tarn_field *field = type_find_name(schema->root, options->identifier_names[i], true);
        if (field == NULL) {
            return err_set(err, TARN_INVALID, "there is no column \"%.*s\" to identify rows by",
                           STR_ARG(options->identifier_names[i]));
        }
        ids[i] = field->id;
    }
    schema->identifier_ids = ids;
    schema->n_identifier_ids = n;
    return TARN_OK;
}

static tarn_code copy_properties(tarn_arena *arena, const tarn_properties *in, tarn_properties *out,
                                 tarn_error *err) {
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)in->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < in->count; i++) {
        items[i].key = arena_str(arena, in->items[i].key);
        items[i].value = arena_str(arena, in->items[i].value);
        if (items[i].key.data == NULL || items[i].value.data == NULL) {
            return err_nomem(err);
        }
    }
    out->count = in->count;
    out->items = items;
    return TARN_OK;
}

typedef struct new_parts { /* what a new table's lists point to */
    tarn_metadata m;
    tarn_schema schema;
    tarn_spec spec;
    tarn_sort_order order;
    const tarn_schema *schemas[1];
    const tarn_spec *specs[1];
    const tarn_sort_order *orders[1];
    char uuid[37];
} new_parts;

static void link_parts(tarn_arena *arena, new_parts *p) {
    tarn_metadata *m = &p->m;
    p->schemas[0] = &p->schema;
    p->specs[0] = &p->spec;
    p->orders[0] = &p->order;
    m->schemas = p->schemas;
    m->specs = p->specs;
    m->sort_orders = p->orders;
    m->n_schemas = m->n_specs = m->n_sort_orders = 1;
    m->default_sort_order_id = p->order.order_id;
    m->current_snapshot_id = TARN_NO_SNAPSHOT;
    m->last_updated_ms = env_now_ms(arena->env);
    env_uuid_v4(arena->env, p->uuid);
    m->table_uuid = str_of(p->uuid);
}

tarn_code metadata_new(tarn_arena *arena, const metadata_new_options *options,
                       const tarn_metadata **out, tarn_error *err) {
    new_parts *p = ARENA_NEW(arena, new_parts);
    int32_t next_id = 1, next_partition_id = TARN_FIRST_PARTITION_ID;
    tarn_code code = TARN_OK;
    if (p == NULL) {
        return err_nomem(err);
    }
    tarn_metadata *m = &p->m;
    m->format_version = options->format_version == 0 ? 2 : options->format_version;
    if (m->format_version < 1 || m->format_version > 3) {
        TRY(err_set(err, TARN_INVALID, "format version %d is not one of 1 to 3",
                    m->format_version));
    }
    if (options->location.len == 0) {
        TRY(err_set(err, TARN_INVALID, "a new table had no location"));
    }
    p->schema.root = type_assign_ids(arena, options->root, &next_id);
    if (p->schema.root != NULL) {
        p->schema.root = type_copy(arena, p->schema.root); /* names too: options may go away */
    }
    m->location = arena_str(arena, options->location);
    if (p->schema.root == NULL || m->location.data == NULL) {
        TRY(err_nomem(err));
    }
    m->last_column_id = next_id - 1;
    TRY(find_identifiers(arena, options, &p->schema, err));
    TRY(schema_check(&p->schema, m->format_version, err));
    TRY(spec_from_text(arena, p->schema.root, options->partition_by, &next_partition_id, &p->spec,
                       err));
    m->last_partition_id = next_partition_id - 1;
    TRY(sort_order_from_text(arena, p->schema.root, options->sort_by, &p->order, err));
    TRY(copy_properties(arena, &options->properties, &m->properties, err));
    link_parts(arena, p);
    *out = m;
done:
    return code;
}
