/* iceberg/metadata_new.c - the first metadata of a table. */
#include "base/limits.h"
#include "iceberg/schema_check.h"

#define VERSION_PROPERTY "format-version"

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

/* The new id of the column that has this id in the schema given. */
static tarn_code map_id(tarn_arena *arena, const metadata_new_options *options,
                        const tarn_type *root, int32_t id, const char *what, int32_t *out,
                        tarn_error *err) {
    tarn_buf name;
    tarn_code code = TARN_OK;
    buf_init(&name, arena->env, 0);
    if (type_find_id(options->root, id) == NULL) {
        TRY(err_set(err, TARN_INVALID, "%s names column id %d, which the schema lacks", what, id));
    }
    TRY(type_full_name(options->root, id, &name, err));
    const tarn_field *field = type_find_name(root, buf_str(&name), true);
    if (field == NULL) {
        TRY(err_set(err, TARN_INTERNAL, "column %.*s was lost", STR_ARG(buf_str(&name))));
    }
    *out = field->id;
done:
    buf_release(&name);
    return code;
}

static tarn_code map_identifiers(tarn_arena *arena, const metadata_new_options *options,
                                 tarn_schema *schema, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t *ids = ARENA_ARRAY(arena, int32_t, (size_t)options->n_identifier_ids);
    if (ids == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < options->n_identifier_ids; i++) {
        TRY(map_id(arena, options, schema->root, options->identifier_ids[i], "identifier-field-ids",
                   &ids[i], err));
    }
    schema->identifier_ids = ids;
    schema->n_identifier_ids = options->n_identifier_ids;
done:
    return code;
}

static tarn_code map_spec(tarn_arena *arena, const metadata_new_options *options,
                          const tarn_type *root, int32_t *next_id, tarn_spec *out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t n = options->spec->n_fields;
    tarn_partition_field *fields = ARENA_ARRAY(arena, tarn_partition_field, (size_t)n);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        fields[i] = options->spec->fields[i];
        fields[i].field_id = (*next_id)++;
        fields[i].name = arena_str(arena, fields[i].name);
        if (fields[i].name.data == NULL) {
            TRY(err_nomem(err));
        }
        TRY(map_id(arena, options, root, fields[i].source_id, "the partition spec",
                   &fields[i].source_id, err));
    }
    out->spec_id = 0;
    out->n_fields = n;
    out->fields = fields;
done:
    return code;
}

static tarn_code map_order(tarn_arena *arena, const metadata_new_options *options,
                           const tarn_type *root, tarn_sort_order *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int32_t n = options->order->n_fields;
    tarn_sort_field *fields = ARENA_ARRAY(arena, tarn_sort_field, (size_t)n);
    if (fields == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        fields[i] = options->order->fields[i];
        TRY(map_id(arena, options, root, fields[i].source_id, "the sort order",
                   &fields[i].source_id, err));
    }
    out->order_id = n > 0 ? 1 : 0;
    out->n_fields = n;
    out->fields = fields;
done:
    return code;
}

static tarn_code make_parts(tarn_arena *arena, const metadata_new_options *options,
                            tarn_schema *schema, int32_t *next_partition_id, tarn_spec *spec,
                            tarn_sort_order *order, tarn_error *err) {
    const tarn_type *root = schema->root;
    tarn_code code = TARN_OK;
    if (options->identifier_ids != NULL) {
        TRY(map_identifiers(arena, options, schema, err));
    } else {
        TRY(find_identifiers(arena, options, schema, err));
    }
    if (options->spec != NULL) {
        TRY(map_spec(arena, options, root, next_partition_id, spec, err));
    } else {
        TRY(spec_from_text(arena, root, options->partition_by, next_partition_id, spec, err));
    }
    if (options->order != NULL) {
        TRY(map_order(arena, options, root, order, err));
    } else {
        TRY(sort_order_from_text(arena, root, options->sort_by, order, err));
    }
done:
    return code;
}

/* The property is how other writers are told it; as there, it chooses and is not kept. */
static tarn_code choose_version(const metadata_new_options *options, int32_t *out,
                                tarn_error *err) {
    int64_t version = options->format_version;
    if (version == 0) {
        tarn_code code = properties_i64(&options->properties, VERSION_PROPERTY, 2, &version, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (version < 1 || version > 3) {
        return err_set(err, TARN_INVALID, "format version %lld is not one of 1 to 3",
                       (long long)version);
    }
    *out = (int32_t)version;
    return TARN_OK;
}

static tarn_code copy_properties(tarn_arena *arena, const tarn_properties *in, tarn_properties *out,
                                 tarn_error *err) {
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)in->count);
    if (items == NULL) {
        return err_nomem(err);
    }
    int32_t n = 0;
    for (int32_t i = 0; i < in->count; i++) {
        if (str_is(in->items[i].key, VERSION_PROPERTY)) {
            continue;
        }
        items[n].key = arena_str(arena, in->items[i].key);
        items[n].value = arena_str(arena, in->items[i].value);
        if (items[n].key.data == NULL || items[n].value.data == NULL) {
            return err_nomem(err);
        }
        n++;
    }
    out->count = n;
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
    TRY(choose_version(options, &m->format_version, err));
    if (options->location.len == 0) {
        TRY(err_set(err, TARN_INVALID, "a new table had no location"));
    }
    if (options->keep_ids) {
        next_id = type_max_id(options->root) + 1;
        p->schema.root = options->root;
    } else {
        p->schema.root = type_assign_ids(arena, options->root, &next_id);
    }
    if (p->schema.root != NULL) {
        p->schema.root = type_copy(arena, p->schema.root); /* names too: options may go away */
    }
    m->location = arena_str(arena, options->location);
    if (p->schema.root == NULL || m->location.data == NULL) {
        TRY(err_nomem(err));
    }
    m->last_column_id = next_id - 1;
    TRY(make_parts(arena, options, &p->schema, &next_partition_id, &p->spec, &p->order, err));
    TRY(schema_check(&p->schema, m->format_version, err));
    m->last_partition_id = next_partition_id - 1;
    TRY(copy_properties(arena, &options->properties, &m->properties, err));
    link_parts(arena, p);
    *out = m;
done:
    return code;
}
