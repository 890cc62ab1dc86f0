/* table/type.h - types and schemas, in the words of the Iceberg specification ("Schemas and Data
 * Types").
 *
 * One tree serves tables and files. Every node below a struct, list or map is a tarn_field, so an
 * id, a name and "required" are said in one way everywhere. Types are immutable and live in the
 * arena that made them; primitives without parameters are static. Files of other writers are read
 * into the same types (see the format rooms for the mapping). */
#ifndef TABLE_TYPE_H
#define TABLE_TYPE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

typedef enum tarn_kind {
    TARN_BOOLEAN = 1,
    TARN_INT,
    TARN_LONG,
    TARN_FLOAT,
    TARN_DOUBLE,
    TARN_DECIMAL, /* precision 1..38, scale */
    TARN_DATE,    /* days since 1970-01-01 */
    TARN_TIME,    /* microseconds of the day */
    TARN_TIMESTAMP,
    TARN_TIMESTAMPTZ, /* microseconds */
    TARN_TIMESTAMP_NS,
    TARN_TIMESTAMPTZ_NS,
    TARN_STRING,
    TARN_UUID,
    TARN_FIXED, /* length */
    TARN_BINARY,
    TARN_UNKNOWN, /* only nulls */
    TARN_VARIANT,
    TARN_GEOMETRY,
    TARN_GEOGRAPHY,
    TARN_STRUCT,
    TARN_LIST,
    TARN_MAP
} tarn_kind;

typedef struct tarn_type tarn_type;
typedef struct tarn_field tarn_field;

#define TARN_NO_ID (-1) /* a file's field that carries no field id */

struct tarn_type {
    tarn_kind kind;
    int32_t precision; /* decimal */
    int32_t scale;     /* decimal */
    int32_t length;    /* fixed */
    int32_t n_fields;  /* struct: its fields; list: 1, the element; map: 2, key and value */
    const tarn_field *fields;
    tarn_str text; /* geometry, geography: parameters as written; else empty */
};

struct tarn_field {
    int32_t id; /* TARN_NO_ID when there is none */
    bool required;
    tarn_str name; /* "element", "key", "value" below lists and maps */
    const tarn_type *type;
    tarn_str doc;                      /* data NULL: none */
    const json_value *initial_default; /* NULL: none; single-value JSON (v3) */
    const json_value *write_default;
};

typedef struct tarn_schema {
    int32_t schema_id;
    const tarn_type *root; /* a struct */
    int32_t n_identifier_ids;
    const int32_t *identifier_ids;
    const json_value *extra; /* unknown members of the JSON object, or NULL */
} tarn_schema;

/* Static types for kinds without parameters; NULL for others. */
const tarn_type *type_primitive(tarn_kind kind);
const tarn_type *type_decimal(tarn_arena *arena, int32_t precision,
                              int32_t scale); /* NULL: no memory */
const tarn_type *type_fixed(tarn_arena *arena, int32_t length);
const tarn_type *type_struct(tarn_arena *arena, const tarn_field *fields,
                             int32_t n_fields); /* fields are kept, not copied */
const tarn_type *type_list(tarn_arena *arena, tarn_field element);
const tarn_type *type_map(tarn_arena *arena, tarn_field key, tarn_field value);
const tarn_type *type_copy(tarn_arena *arena,
                           const tarn_type *type); /* deep: names, docs and defaults too */

static inline bool type_is_nested(const tarn_type *type) {
    return type->kind >= TARN_STRUCT;
}
bool type_eq(const tarn_type *a, const tarn_type *b); /* ids, names, required and all */
bool type_same_shape(const tarn_type *a,
                     const tarn_type *b); /* kinds and parameters only; ids and names ignored */
/* Width in bytes of one value in canonical Arrow layout: 4, 8, 16 (decimal), L (fixed); 0: bit
 * (boolean), variable or nested. */
int32_t type_width(const tarn_type *type);
bool type_is_var(
    const tarn_type *type); /* string, binary, variant-free geometry..: offsets + bytes */
const char *type_kind_name(tarn_kind kind);
/* "decimal(9, 2)", "fixed[16]", "struct<...>": the spec's JSON text for primitives, a readable form
 * for nested. */
tarn_code type_text(const tarn_type *type, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

/* Iceberg's JSON of types and schemas, both ways ("Appendix C"). Parsing checks ids, duplicates,
 * nesting, parameters. */
tarn_code type_from_json(tarn_arena *arena, const json_value *json, const tarn_type **out,
                         tarn_error *err) TARN_MUST_USE;
/* "id long not null, name string": a table's fields, as in struct<...> without the brackets. */
tarn_code type_columns_from_text(tarn_arena *arena, tarn_str text, const tarn_type **out,
                                 tarn_error *err) TARN_MUST_USE;
/* "long", "decimal(9,2)", "timestamptz", "list<string>", "struct<a: int, b: map<string, long>>":
 * what people type. Ids are TARN_NO_ID. */
tarn_code type_from_text(tarn_arena *arena, tarn_str text, const tarn_type **out,
                         tarn_error *err) TARN_MUST_USE;
void type_put_json(const tarn_type *type, json_writer *w);
tarn_code schema_from_json(tarn_arena *arena, const json_value *json, const tarn_schema **out,
                           tarn_error *err) TARN_MUST_USE;
void schema_put_json(const tarn_schema *schema, json_writer *w);

/* Finding. path is the dotted name ("a.b.element.c"); names that hold dots themselves are tried
 * too. */
const tarn_field *type_find_id(const tarn_type *root, int32_t id);
const tarn_field *type_find_name(const tarn_type *root, tarn_str path, bool case_sensitive);
const tarn_field *type_child(const tarn_type *parent, tarn_str name); /* direct field of a struct */
/* Dotted full name of a field id into out; false if absent. */
tarn_code type_full_name(const tarn_type *root, int32_t id, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE;
int32_t type_max_id(const tarn_type *root); /* 0 if none */
/* Gives fresh ids, breadth first as Iceberg does (all fields of a struct, then below them), from
 * *next_id on. */
const tarn_type *type_assign_ids(tarn_arena *arena, const tarn_type *root,
                                 int32_t *next_id); /* NULL: no memory */

/* Nodes in depth-first preorder: 0 is the root's first field; a node is one tarn_field (the root
 * has no number). Formats and projections talk of columns by this number. */
int32_t type_node_count(const tarn_type *root);
const tarn_field *type_node(const tarn_type *root, int32_t node);
/* Nodes below field, itself counted: the next sibling's number is node + type_field_span(field). */
int32_t type_field_span(const tarn_field *field);
/* The type that has only selected nodes. A selected leaf keeps its ancestors; a selected struct
 * with no selected child is kept with no children; map keys and the shape of lists are kept with
 * any of their content. selected[n_nodes]; it is completed in place so that it says exactly which
 * nodes are in *out. NULL: no memory. */
const tarn_type *type_prune(tarn_arena *arena, const tarn_type *root, uint8_t *selected);

#endif
