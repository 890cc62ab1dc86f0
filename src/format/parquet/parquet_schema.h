/* format/parquet/parquet_schema.h - a Parquet schema and the tarn type that stands for it, with the
 * levels by which columns are taken apart and put together.
 *
 * One parquet_schema is made from a file's elements (any writer's, also the legacy list and map
 * forms) or from a tarn type (always the standard three-level forms). nodes[i] belongs to
 * type_node(root, i); leaves[c] to column chunk c of every row group. */
#ifndef FORMAT_PARQUET_SCHEMA_H
#define FORMAT_PARQUET_SCHEMA_H

#include "format/parquet/parquet_meta.h"
#include "table/type.h"

/* Levels are kept in bytes; LIMIT_NESTING keeps them far below this. */
#define PARQUET_MAX_LEVEL 250

typedef struct parquet_schema parquet_schema;

typedef struct parquet_node {
    const tarn_field *field;
    int32_t leaf;       /* primitives: their column; variant: the column of metadata; else -1 */
    int32_t value_leaf; /* variant: the column of value; else -1 */
    const parquet_schema
        *shredded;      /* variant with a typed_value: the parts of its group, with the
                           file\'s leaves; else NULL, as for everything that tarn writes */
    int32_t span;       /* nodes from this one to its next sibling */
    bool is_nullable;   /* OPTIONAL in the file */
    uint8_t def;        /* definition level from which on this node is not null */
    uint8_t def_entry;  /* list, map: level from which on there is an entry; else def */
    uint8_t rep;        /* list, map: repetition level of its further entries; else that of the
                           enclosing list (0: none) */
    int32_t first_leaf; /* leaves [first_leaf, end_leaf) lie below */
    int32_t end_leaf;
} parquet_node;

typedef struct parquet_leaf {
    const parquet_element *element;
    const tarn_type
        *type;           /* what its values become; NULL: nothing reads it (see parquet_schema.c) */
    int32_t node;        /* -1 when type is NULL */
    int32_t physical;    /* parquet_physical */
    int32_t type_length; /* fixed-length byte arrays */
    uint8_t max_def;
    uint8_t max_rep;
    tarn_str path;         /* dotted, for errors */
    const tarn_str *parts; /* the path as the names of its elements, root left out */
    int32_t n_parts;
} parquet_leaf;

struct parquet_schema {
    const tarn_type *root;
    const parquet_element *elements; /* the root first */
    int32_t n_elements;
    const parquet_node *nodes;
    int32_t n_nodes;
    const parquet_leaf *leaves;
    int32_t n_leaves;
};

/* A file's schema. INT96 becomes timestamp, or timestamptz where int96_zoned. All in arena;
 * elements are kept. */
tarn_code parquet_schema_from_elements(tarn_arena *arena, const parquet_element *elements,
                                       int32_t n_elements, bool int96_zoned,
                                       const parquet_schema **out, tarn_error *err) TARN_MUST_USE;
/* The schema that tarn writes for a type: root called `name`, field ids where there are some,
 * logical and converted types; decimals by precision INT32 (to 9), INT64 (to 18), else FIXED; uuid
 * as FIXED(16). Fields of unknown type are left out (leaf is -1), as Iceberg asks; a struct without
 * any column is INVALID. All in arena; root is kept. */
tarn_code parquet_schema_from_type(tarn_arena *arena, const tarn_type *root, const char *name,
                                   const parquet_schema **out, tarn_error *err) TARN_MUST_USE;

#endif
