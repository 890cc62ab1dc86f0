/* iceberg/evolve.h - schema, spec and sort order evolution as pure functions: edits on a base
 * metadata give changes. spec: "Schema Evolution", "Partition Evolution", "Sort Orders". */
#ifndef ICEBERG_EVOLVE_H
#define ICEBERG_EVOLVE_H

#include "iceberg/change.h"

typedef enum evolve_kind {
    EVOLVE_ADD_COLUMN,  /* path, type, doc; required only with a default in v3; into nested structs:
                           "a.b", or new_name, which may have points in it, below path */
    EVOLVE_DROP_COLUMN, /* path */
    EVOLVE_RENAME_COLUMN, /* path, new_name: also extends the name mapping property if there is one
                             (B11) */
    EVOLVE_UPDATE_TYPE,   /* path, type: widening only */
    EVOLVE_MAKE_OPTIONAL,
    EVOLVE_UPDATE_DOC, /* path, doc */
    EVOLVE_MOVE_FIRST,
    EVOLVE_MOVE_BEFORE, /* path, other: sibling's path */
    EVOLVE_MOVE_AFTER,
    EVOLVE_SET_IDENTIFIERS,        /* names: comma separated paths in text; empty: none */
    EVOLVE_ADD_PARTITION_FIELD,    /* text: "bucket(16, a)" [as name in new_name] */
    EVOLVE_DROP_PARTITION_FIELD,   /* text: name, or transform text */
    EVOLVE_RENAME_PARTITION_FIELD, /* path: name, new_name */
    EVOLVE_SET_PARTITION,          /* text: a whole new spec */
    EVOLVE_SET_SORT_ORDER          /* text: a whole new order; empty: unsorted */
} evolve_kind;

typedef struct tarn_edit {
    evolve_kind kind;
    tarn_str path;
    tarn_str other;
    tarn_str new_name;
    const tarn_type *type;
    bool required;
    tarn_str doc;
    tarn_str text;
    const json_value *default_value; /* EVOLVE_ADD_COLUMN: single-value JSON, initial and write
                                        default (v3); NULL: none */
} tarn_edit;

/* All edits in order, as one change set with the requirements that protect it (uuid, current schema
 * id, last assigned ids). v1 specs drop fields by void transforms, v2 by leaving them out; a field
 * dropped and added again gets its old id back. INVALID names column and reason. */
tarn_code evolve_changes(tarn_arena *arena, const tarn_metadata *base, const tarn_edit *edits,
                         int32_t n_edits, tarn_change_set *out, tarn_error *err) TARN_MUST_USE;
bool evolve_can_widen(const tarn_type *from, const tarn_type *to, int32_t format_version);

#endif
