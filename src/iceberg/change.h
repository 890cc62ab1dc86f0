/* iceberg/change.h - the one vocabulary for every change of a table, in the words of the Iceberg
 * REST specification (TableUpdate, TableRequirement). Applying changes to a base is a pure
 * function; local catalogs, the REST client and the REST server all use it. */
#ifndef ICEBERG_CHANGE_H
#define ICEBERG_CHANGE_H

#include "iceberg/metadata.h"

typedef enum change_kind {
    CHANGE_ASSIGN_UUID,
    CHANGE_UPGRADE_FORMAT_VERSION,
    CHANGE_ADD_SCHEMA,
    CHANGE_SET_CURRENT_SCHEMA, /* id -1: the last added */
    CHANGE_ADD_SPEC,
    CHANGE_SET_DEFAULT_SPEC, /* id -1: the last added */
    CHANGE_ADD_SORT_ORDER,
    CHANGE_SET_DEFAULT_SORT_ORDER, /* id -1: the last added */
    CHANGE_ADD_SNAPSHOT,
    CHANGE_SET_SNAPSHOT_REF,
    CHANGE_REMOVE_SNAPSHOTS,
    CHANGE_REMOVE_SNAPSHOT_REF,
    CHANGE_SET_LOCATION,
    CHANGE_SET_PROPERTIES,
    CHANGE_REMOVE_PROPERTIES,
    CHANGE_REMOVE_PARTITION_SPECS,
    CHANGE_REMOVE_SCHEMAS,
    CHANGE_SET_STATISTICS,              /* json: the file */
    CHANGE_REMOVE_STATISTICS,           /* ids: snapshots */
    CHANGE_SET_PARTITION_STATISTICS,    /* json */
    CHANGE_REMOVE_PARTITION_STATISTICS, /* ids: snapshots */
    CHANGE_ADD_ENCRYPTION_KEY,          /* json */
    CHANGE_REMOVE_ENCRYPTION_KEY        /* text: key id */
} change_kind;

typedef struct tarn_change {
    change_kind kind;
    tarn_str text;  /* uuid, location, ref name to remove */
    int32_t number; /* format version; ids; add-schema: last column id, or 0 */
    const tarn_schema *schema;
    const tarn_spec *spec;
    const tarn_sort_order *sort_order;
    const tarn_snapshot *snapshot;
    tarn_ref ref;
    tarn_properties properties; /* set: pairs; remove: keys */
    int32_t n_ids;
    const int64_t *ids;     /* snapshots, specs, schemas to remove */
    const json_value *json; /* statistics, partition statistics, encryption key */
} tarn_change;

typedef enum requirement_kind {
    REQUIRE_CREATE, /* the table must not exist */
    REQUIRE_UUID,
    REQUIRE_REF_SNAPSHOT_ID, /* snapshot_id TARN_NO_SNAPSHOT: the ref must not exist (B31) */
    REQUIRE_LAST_ASSIGNED_FIELD_ID,
    REQUIRE_CURRENT_SCHEMA_ID,
    REQUIRE_LAST_ASSIGNED_PARTITION_ID,
    REQUIRE_DEFAULT_SPEC_ID,
    REQUIRE_DEFAULT_SORT_ORDER_ID
} requirement_kind;

typedef struct tarn_requirement {
    requirement_kind kind;
    tarn_str text;  /* uuid, ref */
    int64_t number; /* snapshot id, other ids */
} tarn_requirement;

/* What a commit sends: all requirements are checked against the base, then all changes applied in
 * order. */
typedef struct tarn_change_set {
    int32_t n_requirements;
    const tarn_requirement *requirements;
    int32_t n_changes;
    const tarn_change *changes;
} tarn_change_set;

int32_t change_set_count(const tarn_change_set *set, change_kind kind);
/* CONFLICT naming the requirement, what was wanted and what is there. base NULL: no table. */
tarn_code change_check(const tarn_metadata *base, const tarn_change_set *set,
                       tarn_error *err) TARN_MUST_USE;
/* Checks the requirements, then makes a new metadata in arena that may share parts of base and of
 * set (both must outlive it). base NULL with REQUIRE_CREATE: a new table. Sets last-updated-ms to
 * now_ms (never backwards), keeps snapshot log, validates every change (unknown ids, sequence
 * numbers not above the last, duplicate snapshot ids, versions going down: INVALID). */
tarn_code change_apply(tarn_arena *arena, const tarn_metadata *base, const tarn_change_set *set,
                       int64_t now_ms, const tarn_metadata **out, tarn_error *err) TARN_MUST_USE;
/* The same with one metadata-log entry for the document being replaced, trimmed to
 * write.metadata.previous-versions-max (default 100). removed (may be NULL) gets the paths that
 * fell out, for write.metadata.delete-after-commit.enabled. */
tarn_code change_log_previous(tarn_arena *arena, const tarn_metadata *m, tarn_str previous_location,
                              int64_t previous_updated_ms, const tarn_metadata **out,
                              const tarn_str **removed, int32_t *n_removed,
                              tarn_error *err) TARN_MUST_USE;

tarn_code change_set_put_json(const tarn_change_set *set, json_writer *w,
                              tarn_error *err) TARN_MUST_USE; /* {"requirements":[],"updates":[]} */
/* The same two members alone, for an object that has more. */
void change_set_put_members(const tarn_change_set *set, json_writer *w);
tarn_code change_set_from_json(tarn_arena *arena, const json_value *json, tarn_change_set *out,
                               tarn_error *err) TARN_MUST_USE;
/* What creates this table from nothing, as changes. */
tarn_code change_set_create(tarn_arena *arena, const tarn_metadata *m, tarn_change_set *out,
                            tarn_error *err) TARN_MUST_USE;

#endif
