/* iceberg/spec_check.c - comparing specs, sort orders and schemas, and fitting them to a schema. */
#include "iceberg/spec_text.h"

static tarn_code check_source(const tarn_type *root, int32_t source_id,
                              const tarn_transform *transform, const char *what, tarn_error *err) {
    const tarn_field *field = type_find_id(root, source_id);
    const tarn_type *result;
    if (transform->kind == TRANSFORM_VOID || transform->kind == TRANSFORM_UNKNOWN) {
        return TARN_OK; /* holds nothing of its source */
    }
    if (field == NULL) {
        return err_set(err, TARN_INVALID, "source column %d of %s was not in the schema", source_id,
                       what);
    }
    tarn_code code = transform_result_type(NULL, transform, field->type, &result, err);
    return code == TARN_OK ? code
                           : err_add(err, code, "%s, column %.*s", what, STR_ARG(field->name));
}

tarn_code spec_check_sources(const tarn_type *root, const tarn_spec *spec, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < spec->n_fields && code == TARN_OK; i++) {
        code = check_source(root, spec->fields[i].source_id, &spec->fields[i].transform,
                            "a partition field", err);
    }
    return code;
}

tarn_code sort_order_check_sources(const tarn_type *root, const tarn_sort_order *order,
                                   tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < order->n_fields && code == TARN_OK; i++) {
        code = check_source(root, order->fields[i].source_id, &order->fields[i].transform,
                            "a sort field", err);
    }
    return code;
}

bool spec_same(const tarn_spec *a, const tarn_spec *b) {
    bool same = a->n_fields == b->n_fields;
    for (int32_t i = 0; same && i < a->n_fields; i++) {
        const tarn_partition_field *f = &a->fields[i], *g = &b->fields[i];
        same = f->source_id == g->source_id && str_eq(f->name, g->name) &&
               transform_eq(&f->transform, &g->transform);
    }
    return same;
}

bool sort_order_same(const tarn_sort_order *a, const tarn_sort_order *b) {
    bool same = a->n_fields == b->n_fields;
    for (int32_t i = 0; same && i < a->n_fields; i++) {
        const tarn_sort_field *f = &a->fields[i], *g = &b->fields[i];
        same = f->source_id == g->source_id && f->descending == g->descending &&
               f->nulls_last == g->nulls_last && transform_eq(&f->transform, &g->transform);
    }
    return same;
}

static bool has_identifier(const tarn_schema *schema, int32_t id) {
    for (int32_t i = 0; i < schema->n_identifier_ids; i++) {
        if (schema->identifier_ids[i] == id) {
            return true;
        }
    }
    return false;
}

bool schema_same(const tarn_schema *a, const tarn_schema *b) {
    bool same = a->n_identifier_ids == b->n_identifier_ids && type_eq(a->root, b->root);
    for (int32_t i = 0; same && i < a->n_identifier_ids; i++) {
        same = has_identifier(b, a->identifier_ids[i]);
    }
    return same;
}
