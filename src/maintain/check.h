/* maintain/check.h - whether a table's metadata, manifests and files agree with the specification
 * and with each other. Reads only; repairs nothing.
 *
 * Invariants: 1 every finding names a rule, a place (a file) and the section of the specification;
 * 2 a damaged part is a finding, not a failure, and the check goes on beside it; 3 memory is that
 * of the largest manifest and a few dozen bytes per live file of one snapshot. */
#ifndef MAINTAIN_CHECK_H
#define MAINTAIN_CHECK_H

#include "iceberg/metadata.h"
#include "store/store.h"

typedef enum check_severity {
    CHECK_WARNING, /* a deviation that readers bear, or something that only costs */
    CHECK_ERROR    /* rows may be lost, wrong or unreadable for somebody */
} check_severity;

/* Everything a check can find: rule, severity, section of the specification. */
#define CHECK_RULES(X)                                                                             \
    X(SCHEMA, "schema", ERROR, "Schemas and Data Types")                                           \
    X(LAST_COLUMN_ID, "last-column-id", ERROR, "Table Metadata Fields")                            \
    X(SPEC, "partition-spec", ERROR, "Partitioning")                                               \
    X(SPEC_SOURCE, "partition-source", WARNING, "Partitioning")                                    \
    X(TRANSFORM, "unknown-transform", WARNING, "Partition Transforms")                             \
    X(LAST_PARTITION_ID, "last-partition-id", ERROR, "Table Metadata Fields")                      \
    X(SORT_ORDER, "sort-order", ERROR, "Sorting")                                                  \
    X(SNAPSHOT, "snapshot", ERROR, "Snapshots")                                                    \
    X(SNAPSHOT_SCHEMA, "snapshot-schema", WARNING, "Snapshots")                                    \
    X(SNAPSHOT_TIME, "snapshot-time", WARNING, "Table Metadata Fields")                            \
    X(SEQUENCE, "sequence-number", ERROR, "Sequence Numbers")                                      \
    X(ROW_IDS, "row-ids", ERROR, "Row Lineage")                                                    \
    X(LOG, "log-order", WARNING, "Table Metadata Fields")                                          \
    X(STATISTICS, "statistics", WARNING, "Table Statistics")                                       \
    X(SUMMARY, "summary", WARNING, "Optional Snapshot Summary Fields")                             \
    X(LIST_UNREADABLE, "manifest-list-unreadable", ERROR, "Manifest Lists")                        \
    X(LIST_HEADER, "manifest-list-header", WARNING, "Manifest Lists")                              \
    X(MANIFEST_MISSING, "manifest-missing", ERROR, "Manifests")                                    \
    X(MANIFEST_LENGTH, "manifest-length", ERROR, "Manifest Lists")                                 \
    X(MANIFEST_UNREADABLE, "manifest-unreadable", ERROR, "Manifests")                              \
    X(MANIFEST_HEADER, "manifest-header", WARNING, "Manifests")                                    \
    X(MANIFEST_SCHEMA_ID, "manifest-schema-id", WARNING, "Manifests")                              \
    X(MANIFEST_CONTENT, "manifest-content", ERROR, "Manifests")                                    \
    X(FIELD_IDS, "field-ids", ERROR, "Appendix A: Avro")                                           \
    X(MANIFEST_COUNTS, "manifest-counts", ERROR, "Manifest Lists")                                 \
    X(PARTITION_SUMMARY, "partition-summary", ERROR, "Manifest Lists")                             \
    X(ENTRY, "entry", ERROR, "Data File Fields")                                                   \
    X(ENTRY_DETAIL, "entry-detail", WARNING, "Data File Fields")                                   \
    X(PARTITION_VALUE, "partition-value", ERROR, "Partition Transforms")                           \
    X(PARTITION_BOUNDS, "partition-bounds", ERROR, "Partition Transforms")                         \
    X(BOUNDS, "bounds", ERROR, "Data File Fields")                                                 \
    X(COUNTS, "column-counts", ERROR, "Data File Fields")                                          \
    X(DUPLICATE, "duplicate-file", ERROR, "Snapshots")                                             \
    X(DELETES, "deletes", ERROR, "Scan Planning")                                                  \
    X(DELETES_IDLE, "deletes-idle", WARNING, "Scan Planning")                                      \
    X(FILE_MISSING, "file-missing", ERROR, "Data File Fields")                                     \
    X(FILE_SIZE, "file-size", ERROR, "Data File Fields")                                           \
    X(FILE_UNREADABLE, "file-unreadable", ERROR, "Data File Fields")                               \
    X(FILE_ROWS, "file-rows", ERROR, "Data File Fields")                                           \
    X(FILE_FIELDS, "file-field-ids", ERROR, "Column Projection")                                   \
    X(FILE_METRICS, "file-metrics", ERROR, "Data File Fields")                                     \
    X(FILE_NOT_CHECKED, "file-not-checked", WARNING, "Data File Fields")

typedef enum check_rule {
#define CHECK_RULE_ENUM(name, text, severity, section) CHECK_##name,
    CHECK_RULES(CHECK_RULE_ENUM)
#undef CHECK_RULE_ENUM
        N_CHECK_RULES
} check_rule;

typedef struct check_finding {
    check_severity severity;
    const char *rule;    /* its name, stable */
    const char *section; /* of the specification */
    tarn_str place;      /* the file that holds what was found */
    tarn_str message;
} check_finding;

typedef struct check_counts {
    int64_t errors, warnings;
    int64_t snapshots, manifests, entries; /* looked at; manifests and entries once each */
    int64_t files;                         /* live ones whose size was looked at */
    int64_t opened;                        /* files whose footer was read */
} check_counts;

typedef struct check_options {
    bool deep; /* opens every live file: rows, field ids, statistics */
    /* Findings are borrowed. A code other than OK ends the check with it. NULL: only counted. */
    tarn_code (*found)(void *ctx, const check_finding *finding, tarn_error *err);
    void (*progress)(void *ctx, const check_counts *so_far); /* now and then; may be NULL */
    void *ctx;
} check_options;

/* location is the metadata document's. *out is filled in every case. Fails by what keeps it from
 * going on (NOMEM, CANCELLED, what found said), never by what is wrong with the table. */
tarn_code check_table(tarn_env *env, tarn_store *store, const tarn_metadata *metadata,
                      tarn_str location, const check_options *options, check_counts *out,
                      tarn_error *err) TARN_MUST_USE;

#endif
