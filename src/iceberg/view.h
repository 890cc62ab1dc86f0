/* iceberg/view.h - the metadata document of a view (view specification, version 1) and every change
 * of it, in the words of the REST specification (ViewUpdate, ViewRequirement). Immutable once made;
 * applying changes is a pure function, as it is for tables (change.h). */
#ifndef ICEBERG_VIEW_H
#define ICEBERG_VIEW_H

#include "iceberg/metadata.h"

#define VIEW_LAST_ADDED (-1)

/* One definition of the view; never changed once it is in a document. */
typedef struct view_version {
    int32_t version_id;
    int32_t schema_id; /* in a change VIEW_LAST_ADDED: that of the schema added last */
    int64_t timestamp_ms;
    tarn_properties summary;
    const json_value *representations; /* objects, each with "type"; one SQL text a dialect */
    tarn_str default_catalog;          /* data NULL: none */
    int32_t n_levels;                  /* default namespace */
    const tarn_str *levels;
    const json_value *extra; /* unknown members or NULL */
} view_version;

typedef struct view_log_entry {
    int64_t timestamp_ms;
    int32_t version_id;
} view_log_entry;

typedef struct view_metadata {
    tarn_str uuid;
    int32_t format_version;
    tarn_str location;
    tarn_properties properties;
    int32_t n_schemas;
    const tarn_schema *const *schemas;
    int32_t current_version_id; /* there is such a version */
    int32_t n_versions;
    const view_version *const *versions;
    int32_t n_log;
    const view_log_entry *log;
    const json_value *extra; /* unknown members or NULL */
} view_metadata;

/* text may be gzip. what names the document in errors. */
tarn_code view_parse(tarn_arena *arena, tarn_str text, const char *what, const view_metadata **out,
                     tarn_error *err) TARN_MUST_USE;
tarn_code view_write(const view_metadata *view, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code view_version_from_json(tarn_arena *arena, const json_value *json, view_version *out,
                                 tarn_error *err) TARN_MUST_USE;
const view_version *view_version_by_id(const view_metadata *view, int32_t id); /* NULL: none */

typedef enum view_change_kind {
    VIEW_ASSIGN_UUID,
    VIEW_UPGRADE_FORMAT_VERSION,
    VIEW_ADD_SCHEMA,
    VIEW_SET_LOCATION,
    VIEW_SET_PROPERTIES,
    VIEW_REMOVE_PROPERTIES,
    VIEW_ADD_VERSION,
    VIEW_SET_CURRENT_VERSION
} view_change_kind;

typedef struct view_change {
    view_change_kind kind;
    tarn_str text;  /* uuid, location */
    int32_t number; /* format version; version id, or VIEW_LAST_ADDED */
    const tarn_schema *schema;
    const view_version *version;
    tarn_properties properties; /* set: pairs; remove: keys */
} view_change;

typedef struct view_change_set {
    int32_t n_uuids; /* assert-view-uuid */
    const tarn_str *uuids;
    int32_t n_changes;
    const view_change *changes;
} view_change_set;

/* INVALID names what is missing, unknown or of the wrong kind. */
tarn_code view_changes_from_json(tarn_arena *arena, const json_value *json, view_change_set *out,
                                 tarn_error *err) TARN_MUST_USE;
/* Checks the requirements (CONFLICT), then makes a new document in arena that may share parts of
 * base and set (both must outlive it). base NULL: a new view. An equal schema or version is taken
 * again under its old id; the log gets one entry when the current version became another; old
 * versions beyond version.history.num-entries (10) fall out, and with them the log up to them.
 * INVALID: a change that does not hold, or a SQL dialect that the version replaced had and the new
 * one lacks, unless replace.drop-dialect.allowed. */
tarn_code view_apply(tarn_arena *arena, const view_metadata *base, const view_change_set *set,
                     int64_t now_ms, const view_metadata **out, tarn_error *err) TARN_MUST_USE;

#endif
