/* iceberg/metadata.h - the table metadata document (spec, "Table Metadata", Appendix C), immutable
 * once made. Versions 1 to 3 are read and written. Unknown members are kept. */
#ifndef ICEBERG_METADATA_H
#define ICEBERG_METADATA_H

#include "iceberg/transform.h"
#include "table/type.h"

#define TARN_NO_SNAPSHOT        INT64_C(-1)
#define TARN_MAIN_BRANCH        "main"
#define TARN_FIRST_PARTITION_ID 1000

typedef struct tarn_property {
    tarn_str key;
    tarn_str value;
} tarn_property;

typedef struct tarn_properties { /* order of the document kept; keys distinct */
    int32_t count;
    const tarn_property *items;
} tarn_properties;

typedef struct tarn_partition_field {
    int32_t source_id;
    int32_t field_id;
    tarn_str name;
    tarn_transform transform;
} tarn_partition_field;

typedef struct tarn_spec {
    int32_t spec_id;
    int32_t n_fields; /* 0: unpartitioned */
    const tarn_partition_field *fields;
} tarn_spec;

typedef struct tarn_sort_field {
    int32_t source_id;
    tarn_transform transform;
    bool descending;
    bool nulls_last;
} tarn_sort_field;

typedef struct tarn_sort_order {
    int32_t order_id;
    int32_t n_fields;
    const tarn_sort_field *fields;
} tarn_sort_order;

typedef struct tarn_snapshot {
    int64_t snapshot_id;
    int64_t parent_id;       /* TARN_NO_SNAPSHOT: none */
    int64_t sequence_number; /* 0 in v1 */
    int64_t timestamp_ms;
    tarn_str manifest_list; /* len 0: v1 with inline manifests */
    int32_t n_manifests;    /* v1 inline manifest paths */
    const tarn_str *manifests;
    tarn_properties summary; /* with "operation" */
    int32_t schema_id;       /* -1: none */
    int64_t first_row_id;    /* -1: none */
    int64_t added_rows;      /* -1: none */
    const json_value *extra; /* unknown members or NULL */
    tarn_str text; /* len 0, or: what snapshot_put_json makes of it for text_version (no snapshot
                      ever changes, so that a document is written without making it anew) */
    int32_t text_version;
} tarn_snapshot;

typedef struct tarn_ref {
    tarn_str name;
    int64_t snapshot_id;
    bool is_tag;
    int64_t max_ref_age_ms, max_snapshot_age_ms; /* -1: not set */
    int32_t min_snapshots_to_keep;               /* -1: not set */
} tarn_ref;

typedef struct tarn_snapshot_log_entry {
    int64_t timestamp_ms, snapshot_id;
} tarn_snapshot_log_entry;
typedef struct tarn_metadata_log_entry {
    int64_t timestamp_ms;
    tarn_str metadata_file;
} tarn_metadata_log_entry;

typedef struct tarn_metadata {
    int32_t format_version;
    tarn_str table_uuid; /* len 0: a v1 table without one */
    tarn_str location;
    int64_t last_sequence_number;
    int64_t last_updated_ms;
    int32_t last_column_id;
    int32_t n_schemas;
    const tarn_schema *const *schemas;
    int32_t current_schema_id;
    int32_t n_specs;
    const tarn_spec *const *specs;
    int32_t default_spec_id;
    int32_t last_partition_id;
    int32_t n_sort_orders;
    const tarn_sort_order *const *sort_orders;
    int32_t default_sort_order_id;
    tarn_properties properties;
    int64_t current_snapshot_id; /* TARN_NO_SNAPSHOT: none (absent, null, -1: B26) */
    int32_t n_snapshots;
    const tarn_snapshot *const *snapshots;
    int32_t n_snapshot_log;
    const tarn_snapshot_log_entry *snapshot_log;
    int32_t n_metadata_log;
    const tarn_metadata_log_entry *metadata_log;
    int32_t n_refs;
    const tarn_ref *refs; /* main is always here when there is a current snapshot */
    int64_t next_row_id;  /* v3; 0 */
    const json_value *statistics, *partition_statistics, *encryption_keys; /* arrays, or NULL */
    const json_value *extra; /* unknown members or NULL */
} tarn_metadata;

/* text may be gzip (found by its magic, whatever the file's name). what names the document in
 * errors. */
tarn_code metadata_parse(tarn_arena *arena, tarn_str text, const char *what,
                         const tarn_metadata **out, tarn_error *err) TARN_MUST_USE;
/* The same of a document that was parsed; json lives as long as what is made of it. */
tarn_code metadata_from_json(tarn_arena *arena, const json_value *json, const char *what,
                             const tarn_metadata **out, tarn_error *err) TARN_MUST_USE;
tarn_code metadata_write(const tarn_metadata *metadata, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE; /* JSON, not compressed */
/* As if it were written and parsed again: all but the snapshots is of arena and stands on its own.
 * The snapshots are those of m itself, so that this costs no more where there are many; they must
 * outlive what is made. */
tarn_code metadata_read_back(tarn_arena *arena, const tarn_metadata *m, const char *what,
                             const tarn_metadata **out, tarn_error *err) TARN_MUST_USE;

const tarn_schema *metadata_schema(const tarn_metadata *m); /* current */
const tarn_schema *metadata_schema_by_id(const tarn_metadata *m, int32_t id);
const tarn_schema *
metadata_snapshot_schema(const tarn_metadata *m,
                         const tarn_snapshot *s);       /* its schema, or the current one */
const tarn_spec *metadata_spec(const tarn_metadata *m); /* default */
const tarn_spec *metadata_spec_by_id(const tarn_metadata *m, int32_t id);
const tarn_sort_order *
metadata_sort_order(const tarn_metadata *m); /* default; NULL or 0 fields: unsorted */
const tarn_snapshot *metadata_snapshot_by_id(const tarn_metadata *m, int64_t id);
/* NULL: none, or expired. As good as free where snapshots stand in the order of their sequence
 * numbers, as they do. */
const tarn_snapshot *metadata_parent(const tarn_metadata *m, const tarn_snapshot *s);
const tarn_snapshot *metadata_current_snapshot(const tarn_metadata *m); /* of main; NULL: none */
const tarn_ref *metadata_ref(const tarn_metadata *m, tarn_str name);    /* "main" too */
/* What a commit to the branch is made on: its snapshot or, where there is no such branch yet, that
 * of main, which the branch then begins at. NULL: none. */
const tarn_snapshot *metadata_head(const tarn_metadata *m, tarn_str branch);
/* Newest snapshot of main at or before this time, by the snapshot log. */
const tarn_snapshot *metadata_snapshot_at(const tarn_metadata *m, int64_t timestamp_ms);
bool metadata_is_ancestor(const tarn_metadata *m, int64_t descendant_id, int64_t ancestor_id);

bool properties_get(const tarn_properties *p, const char *key, tarn_str *out);
/* With defaults; INVALID naming key and value when the text is not such a thing. */
tarn_code properties_i64(const tarn_properties *p, const char *key, int64_t fallback, int64_t *out,
                         tarn_error *err) TARN_MUST_USE;
tarn_code properties_bool(const tarn_properties *p, const char *key, bool fallback, bool *out,
                          tarn_error *err) TARN_MUST_USE;
tarn_str properties_str(const tarn_properties *p, const char *key, const char *fallback);
/* An object of texts; numbers and booleans are taken as their text. json NULL: none. */
tarn_code properties_from_json(tarn_arena *arena, const json_value *json, const char *where,
                               tarn_properties *out, tarn_error *err) TARN_MUST_USE;
void properties_put_json(const tarn_properties *p, json_writer *w);

/* The struct type of a spec's partition tuple: field ids are partition field ids; sources are
 * looked up in schema, then in all schemas of m (dropped columns); an unknown source makes the
 * field's type unknown. */
tarn_code spec_partition_type(tarn_arena *arena, const tarn_spec *spec, const tarn_metadata *m,
                              const tarn_type **out, tarn_error *err) TARN_MUST_USE;
/* "a=1/b_bucket=3": path of a partition as Iceberg Java writes it, each part URL-encoded (B04).
 * Empty for unpartitioned. */
tarn_code spec_partition_path(const tarn_spec *spec, const tarn_value *partition, tarn_buf *out,
                              tarn_error *err) TARN_MUST_USE;

/* A new table's metadata. Fresh ids are given to the schema's fields (breadth first) and spec and
 * order, which name their sources by the ids of the given schema, are mapped along. */
typedef struct metadata_new_options {
    int32_t format_version; /* 0: by the property "format-version", which is not kept; or 2 */
    const tarn_type
        *root;     /* required; ids may be TARN_NO_ID when spec and order are empty or by name */
    bool keep_ids; /* root's ids stay; else new ones are given, as the specification has it */
    tarn_str partition_by; /* "month(ts), bucket(16, carrier), id": names resolved in the schema;
                              len 0: none */
    tarn_str sort_by;      /* "a desc nulls last, b": len 0: none */
    const tarn_str *identifier_names;
    int32_t n_identifier_names;
    /* The same as others say it, by the ids of root; NULL: by the texts above. */
    const tarn_spec *spec;
    const tarn_sort_order *order;
    const int32_t *identifier_ids;
    int32_t n_identifier_ids;
    tarn_str location;
    tarn_properties properties;
} metadata_new_options;
tarn_code metadata_new(tarn_arena *arena, const metadata_new_options *options,
                       const tarn_metadata **out, tarn_error *err) TARN_MUST_USE;

/* Text forms that people type, against a schema. Partition field ids from *next_field_id; names as
 * Iceberg makes them (ts_month, carrier_bucket, x_trunc). */
tarn_code spec_from_text(tarn_arena *arena, const tarn_type *root, tarn_str text,
                         int32_t *next_field_id, tarn_spec *out, tarn_error *err) TARN_MUST_USE;
tarn_code sort_order_from_text(tarn_arena *arena, const tarn_type *root, tarn_str text,
                               tarn_sort_order *out, tarn_error *err) TARN_MUST_USE;
void spec_put_json(const tarn_spec *spec, json_writer *w);
tarn_code spec_from_json(tarn_arena *arena, const json_value *json, tarn_spec *out,
                         tarn_error *err) TARN_MUST_USE;
void sort_order_put_json(const tarn_sort_order *order, json_writer *w);
tarn_code sort_order_from_json(tarn_arena *arena, const json_value *json, tarn_sort_order *out,
                               tarn_error *err) TARN_MUST_USE;
void snapshot_put_json(const tarn_snapshot *snapshot, int32_t format_version, json_writer *w);
tarn_code snapshot_from_json(tarn_arena *arena, const json_value *json, tarn_snapshot *out,
                             tarn_error *err) TARN_MUST_USE;
/* A snapshot of its own in arena, with its text: written for format_version and read back. */
tarn_code snapshot_keep(tarn_arena *arena, const tarn_snapshot *snapshot, int32_t format_version,
                        const tarn_snapshot **out, tarn_error *err) TARN_MUST_USE;

#endif
