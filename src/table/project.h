/* table/project.h - rows of a file as rows of a wanted schema (spec, "Column Projection").
 *
 * A plan is made once a file from its schema and the wanted one; it says which of the file's nodes
 * to read, and then maps each batch: by field id (or name mapping where the file has no ids, B11),
 * renames, reorders, widens (int->long, float->double, decimal precision, date->timestamp in v3),
 * fills missing columns with initial defaults or nulls. Columns that fit are shared, not copied. */
#ifndef TABLE_PROJECT_H
#define TABLE_PROJECT_H

#include "table/batch.h"

typedef struct tarn_projection tarn_projection;

typedef struct project_constant { /* a column whose value the caller knows (identity partition value
                                     of a hive-style import) */
    int32_t field_id;
    tarn_value value;
} project_constant;

typedef struct project_options {
    const json_value *name_mapping; /* the property schema.name-mapping.default as JSON, or NULL */
    const project_constant *constants; /* used where the file has no such column */
    size_t n_constants;
    bool by_name;     /* match by name instead of id (plain files, no table) */
    bool writes;      /* rows to be written: what they lack is the write default, not the initial */
    bool whole;       /* batches come with all of the file's columns, read or not */
    const char *file; /* for errors */
} project_options;

/* *plan lives in arena. Missing required columns without default, impossible promotions, and files
 * without ids and without a mapping give nulls or INVALID/CORRUPT as the spec says, naming file and
 * column. */
tarn_code project_plan(tarn_arena *arena, const tarn_type *file_type, const tarn_type *wanted,
                       const project_options *options, tarn_projection **plan,
                       tarn_error *err) TARN_MUST_USE;
/* For the file's reader: selected[type_node_count(file_type)], and the pruned type that its batches
 * will have. */
const uint8_t *project_selected(const tarn_projection *plan);
const tarn_type *project_read_type(const tarn_projection *plan);
/* The file's node that feeds a wanted field id, or -1 (missing or constant). */
int32_t project_source_node(const tarn_projection *plan, int32_t field_id);
/* Maps one batch of project_read_type to the wanted type. Takes in (moves) on success. */
tarn_code project_apply(const tarn_projection *plan, tarn_env *env, tarn_batch *in, tarn_batch *out,
                        tarn_error *err) TARN_MUST_USE;

#endif
