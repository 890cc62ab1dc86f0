/* tarn/table.h - one table: what it is now, and changes of everything but rows.
 *
 * A table handle shows one version until tarn_table_refresh; one thread at a time. All changes are
 * commits: compare-and-swap with retries as commit.retry.* say. When a call fails with anything but
 * COMMIT_UNKNOWN the table is as it was. */
#ifndef TARN_TABLE_H
#define TARN_TABLE_H

#include <tarn/arrow.h>
#include <tarn/catalog.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_table tarn_table;

/* What became of a commit; always filled. */
typedef enum tarn_commit_state {
    TARN_COMMIT_NONE = 0,
    TARN_COMMIT_DONE = 1,
    TARN_COMMIT_MAYBE = 2
} tarn_commit_state;

typedef struct tarn_outcome {
    uint32_t struct_size;
    tarn_commit_state state;
    int64_t snapshot_id; /* -1: the commit made no snapshot */
    int32_t attempts;
    int64_t rows; /* added; deleted by a delete; updated by an update; deleted or updated by a
                     merge */
    int64_t rows_rewritten; /* as they were, into new files */
    int32_t files_added;
    int32_t files_removed;
    int64_t rows_inserted;      /* by a merge; @since 0.2 */
    int32_t delete_files_added; /* position deletes or vectors; @since 0.2 */
} tarn_outcome;

#define TARN_OUTCOME_INIT                                                                          \
    { sizeof(tarn_outcome), TARN_COMMIT_NONE, -1, 0, 0, 0, 0, 0, 0, 0 }

/* Loads by name in the catalog. NOT_FOUND. Cost: two requests. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_table_load(tarn_catalog_handle *catalog, /* @keep */
                                                 const char *name,             /* @borrow */
                                                 tarn_table **out, /* @give: tarn_table_free */
                                                 tarn_error *err /* @borrow, may be NULL */);
/* Opens a table folder or metadata file (path or file: URI) read-only, without a catalog. options:
 * moved_from, moved_to. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_open_path(tarn_env *env,                       /* @keep */
                     const char *path,                    /* @borrow */
                     const tarn_catalog_options *options, /* @borrow, may be NULL */
                     tarn_table **out,                    /* @give: tarn_table_free */
                     tarn_error *err /* @borrow, may be NULL */);
TARN_API void tarn_table_free(tarn_table *table /* @take, may be NULL */);
/* For who made a table for a job that came to nothing: drops it with its files, where it still is
 * the one that was loaded, and nobody has put a snapshot into it. CONFLICT: it stays. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_take_back(tarn_table *table, /* @borrow */ tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code
tarn_table_refresh(tarn_table *table, /* @borrow */ tarn_error *err /* @borrow, may be NULL */);

/* The table metadata document (spec, "Table Metadata Fields") with one more member
 * "metadata-location". */
TARN_API TARN_MUST_USE tarn_code
tarn_table_metadata_json(tarn_table *table, /* @borrow */
                         char **json_out,   /* @give: tarn_text_free */
                         tarn_error *err /* @borrow, may be NULL */);
/* The current schema as Arrow. */
TARN_API TARN_MUST_USE tarn_code
tarn_table_schema_arrow(tarn_table *table,       /* @borrow */
                        struct ArrowSchema *out, /* @give: its release */
                        tarn_error *err /* @borrow, may be NULL */);

/* Edits of schema, partitioning, order and properties, applied together as one commit. edits_json
 * is an array of objects with "op" and, by op: add-column {path, or name with points in it and the
 * parent?'s path, type, doc, required, default (of rows that are there and of rows without it;
 * format version 3)}; drop-column {path}; rename-column {path, name}; update-type {path, type};
 * make-optional {path}; update-doc {path, doc}; move-first {path}; move-before, move-after {path,
 * other}; set-identifiers {columns:
 * [..]}; add-partition-field {transform, name?}; drop-partition-field {name};
 * rename-partition-field {name, to}; set-partition-by {text}; set-sort-order {text}; set-properties
 * {properties: {..}}; remove-properties {keys: [..]}; upgrade-format-version {version};
 *   set-location {location}; set-ref {name, type: branch|tag, snapshot-id, replace?,
 * max-ref-age-ms?, ...}; remove-ref {name}; rollback {snapshot-id}. INVALID names the op, column
 * and reason. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_table_alter(tarn_table *table,      /* @borrow */
                                                  const char *edits_json, /* @borrow */
                                                  tarn_outcome *outcome,  /* @borrow */
                                                  tarn_error *err /* @borrow, may be NULL */);

/* Row-level changes: delete, update, merge. Each is one commit. Whole files go by metadata; of
 * others the properties write.delete.mode, write.update.mode and write.merge.mode say what becomes
 * of them: copy-on-write (the default) rewrites them, merge-on-read marks rows as deleted (by
 * position delete files in format version 2, by deletion vectors in 3) and adds new ones.
 * write.delete.isolation-level and its siblings: serializable (the default; rows that others add
 * meanwhile are seen) or snapshot. Rows keep their row ids in format version 3. branch NULL: main.
 */

/* Removes the rows for which the filter is true. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code tarn_table_delete(tarn_table *table,     /* @borrow */
                                                   const char *where,     /* @borrow */
                                                   const char *branch,    /* @borrow, may be NULL */
                                                   tarn_outcome *outcome, /* @borrow */
                                                   tarn_error *err /* @borrow, may be NULL */);

/* Sets columns of the rows for which the filter is true. set: "a = 1, b = c || '!', d = null":
 * literals, columns as they were, + - * / of numbers, || of texts. INVALID: what a column cannot
 * hold, integers that overflow, a division by zero. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_table_update(tarn_table *table,     /* @borrow */
                                                   const char *set,       /* @borrow */
                                                   const char *where,     /* @borrow */
                                                   const char *branch,    /* @borrow, may be NULL */
                                                   tarn_outcome *outcome, /* @borrow */
                                                   tarn_error *err /* @borrow, may be NULL */);

typedef enum tarn_merge_matched {
    TARN_MATCHED_UPDATE = 0, /* takes the source's columns; those that it lacks stay */
    TARN_MATCHED_DELETE = 1,
    TARN_MATCHED_IGNORE = 2
} tarn_merge_matched;

typedef struct tarn_merge_options {
    uint32_t struct_size;
    const char *key; /* comma separated columns; NULL: the identifier fields. @borrow */
    tarn_merge_matched matched;
    bool ignore_not_matched; /* source rows whose key the table lacks are not added */
    const char *branch;      /* NULL: main. @borrow */
} tarn_merge_options;

#define TARN_MERGE_OPTIONS_INIT                                                                    \
    { sizeof(tarn_merge_options), NULL, TARN_MATCHED_UPDATE, false, NULL }

/* Merges rows into the table by key. Columns are matched by name; the source is held in memory.
 * INVALID: a key twice in the source (named), null or missing; a column that the table lacks.
 * @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_table_merge(tarn_table *table,                 /* @borrow */
                 struct ArrowArrayStream *source,   /* @take: released in every case */
                 const tarn_merge_options *options, /* @borrow, may be NULL */
                 tarn_outcome *outcome,             /* @borrow */
                 tarn_error *err /* @borrow, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
