/* iceberg/evolve_int.h - a schema, spec and order being edited, shared by the evolve files. */
#ifndef ICEBERG_EVOLVE_INT_H
#define ICEBERG_EVOLVE_INT_H

#include "iceberg/evolve.h"

typedef struct evolve_work {
    tarn_arena *arena;
    tarn_error *err;
    const tarn_metadata *base;
    tarn_schema schema;     /* as edited so far */
    int32_t last_column_id; /* same */
    tarn_partition_field *fields;
    int32_t n_fields;
    int32_t last_partition_id;
    tarn_sort_order order;
    bool schema_edited, spec_edited, order_edited;
    json_value *mapping; /* of schema.name-mapping.default; NULL: none, or not to be understood */
    bool mapping_edited;
    tarn_property *renamed; /* columns: old name, new name (empty: dropped) */
    int32_t n_renamed;
} evolve_work;

/* evolve_schema.c */
tarn_code evolve_schema_edit(evolve_work *w, const tarn_edit *edit) TARN_MUST_USE;
/* evolve_spec.c */
tarn_code evolve_spec_edit(evolve_work *w, const tarn_edit *edit) TARN_MUST_USE;
/* evolve_mapping.c: the name mapping and per-column properties follow the columns (B11). */
tarn_code evolve_mapping_read(evolve_work *w) TARN_MUST_USE;
tarn_code evolve_mapping_rename(evolve_work *w, int32_t id, tarn_str new_name) TARN_MUST_USE;
tarn_code evolve_mapping_add(evolve_work *w, int32_t parent_id,
                             const tarn_field *field) TARN_MUST_USE;
/* The property changes that result; count 0: none. */
tarn_code evolve_properties(evolve_work *w, tarn_properties *set,
                            tarn_properties *remove) TARN_MUST_USE;

#endif
