/* read/scan.h - snapshots become rows. plan: metadata -> file tasks; scan: file tasks -> batches,
 * in parallel, in bounded memory, in plan order. */
#ifndef READ_SCAN_H
#define READ_SCAN_H

#include "iceberg/evaluate.h"
#include "read/reserved.h"
#include "store/store.h"
#include "table/positions.h"
#include "table/project.h"

typedef struct scan_options {
    const tarn_metadata *metadata; /* outlives plan and scan */
    int64_t snapshot_id;  /* TARN_NO_SNAPSHOT: the current one of main (no snapshot: no rows) */
    bool snapshot_schema; /* rows as the snapshot's schema had them (time travel, tags); false: as
                             now */
    const tarn_expr *filter; /* unbound; NULL: all */
    bool case_insensitive;
    const tarn_str *columns; /* dotted names in output order, reserved columns too; NULL: all */
    int32_t n_columns;
    int64_t limit;            /* rows; -1: all */
    int64_t batch_rows;       /* 0: 16384 */
    bool no_prune;            /* read everything, filter rows only (tests compare both) */
    bool appends;             /* only what append snapshots added after from_snapshot_id, an
                                 ancestor of snapshot_id, as they added it; INVALID when a
                                 snapshot between changed rows */
    int64_t from_snapshot_id; /* TARN_NO_SNAPSHOT: from the table's first on */
} scan_options;

/* What pruning did: shown by `tarn cat --stats`. */
typedef struct scan_counters {
    int64_t manifests, manifests_skipped;
    int64_t files, files_skipped; /* of the manifests read */
    int64_t row_groups, row_groups_skipped, pages_skipped;
    int64_t rows_read, rows_matched, bytes_read;
} scan_counters;

typedef struct scan_task {
    tarn_file file; /* in the plan's arena */
    int64_t sequence_number;
    const tarn_expr *residual;
    const tarn_entry *const *deletes; /* row deletes that apply (iceberg/delete_index.h) */
    int32_t n_deletes;
} scan_task;

typedef struct tarn_plan {
    tarn_arena arena;
    tarn_arena *manifest_arenas; /* one a manifest read: entries of tasks live there */
    int32_t n_manifest_arenas;
    tarn_env *env;
    tarn_store *store;
    scan_options options;
    const tarn_snapshot *snapshot; /* NULL: empty table */
    const tarn_schema *schema;     /* of the snapshot (time travel) or current */
    const tarn_type *output;       /* struct of the columns asked for */
    const tarn_expr *filter;       /* bound */
    scan_task *tasks;
    int64_t n_tasks;
    const json_value *name_mapping; /* of the table; NULL: none */
    struct plan_deletes *deletes;   /* what tasks' row deletes say, loaded on demand; NULL: none */
    scan_counters counters;
} tarn_plan;

/* The manifests of a snapshot (also v1 ones listed inline); in arena. */
tarn_code snapshot_manifests(tarn_arena *arena, tarn_store *store, const tarn_snapshot *snapshot,
                             const tarn_manifest **out, int32_t *n, tarn_error *err) TARN_MUST_USE;

/* Manifests are read in parallel on the pool. */
tarn_code plan_new(tarn_env *env, tarn_store *store, const scan_options *options, tarn_plan **out,
                   tarn_error *err) TARN_MUST_USE;
void plan_free(tarn_plan *plan); /* takes NULL */

typedef struct tarn_scan tarn_scan;
tarn_code scan_open(tarn_plan *plan, tarn_scan **out,
                    tarn_error *err) TARN_MUST_USE; /* plan must outlive the scan */
tarn_code scan_next(tarn_scan *scan, tarn_batch *out,
                    tarn_error *err) TARN_MUST_USE;     /* 0 rows at the end */
const scan_counters *scan_counters_of(tarn_scan *scan); /* plan's and its own, so far */
void scan_close(tarn_scan *scan);                       /* takes NULL */

/* One data file's rows as a wanted type, with a bound filter applied (NULL: all): what scans and
 * rewrites share. */
typedef struct file_scan file_scan;
typedef struct file_scan_options {
    const tarn_type *wanted; /* output columns */
    const tarn_type *root;   /* the schema that wanted and filter come from; NULL: wanted itself */
    const tarn_expr *filter; /* bound; its columns need not be in wanted */
    bool by_name;            /* the file is no table's: columns are matched by name */
    bool invert;             /* keep rows for which filter is NOT true (copy-on-write delete) */
    const json_value *name_mapping;
    bool no_prune;
    bool parallel; /* columns side by side on the pool: where few files are read at once */
    int64_t batch_rows;
    int64_t start,
        end; /* only row groups that begin in this range of the file's bytes; end 0: all */
    const struct row_deletes *deletes; /* rows that are gone (read/row_deletes.h); NULL: none */
    const struct row_deletes *only;    /* NULL, or: of what is left, the rows that these take */
    int64_t sequence_number;           /* of the data file: for v3's row lineage */
    /* Parquet rows with values that can't be said (parquet_reject_fn); NULL: they are CORRUPT */
    tarn_code (*reject)(void *ctx, int64_t row, tarn_str reason, tarn_error *err);
    void *reject_ctx;
} file_scan_options;
tarn_code file_scan_open(tarn_env *env, tarn_store *store, const tarn_file *file,
                         const tarn_spec *spec, const file_scan_options *options, file_scan **out,
                         tarn_error *err) TARN_MUST_USE;
tarn_code file_scan_next(file_scan *s, tarn_batch *out, scan_counters *counters,
                         tarn_error *err) TARN_MUST_USE;
bool file_scan_has(const file_scan *s, int32_t field_id); /* whether the file itself has it */
void file_scan_close(file_scan *s);

/* One task of a plan (a pointer into plan->tasks): its file's rows with its row deletes applied.
 * Options are the caller's but for deletes, sequence_number and name_mapping, which are filled in;
 * root NULL is the plan's schema. Delete files are loaded once
 * per plan, whatever the number of tasks that share them. Any thread. */
tarn_code task_scan_open(tarn_plan *plan, const scan_task *task, const file_scan_options *options,
                         file_scan **out, tarn_error *err) TARN_MUST_USE;
/* The positions that vectors and position deletes take from a task's file, for writers of vectors
 * (delete_writer_merge); borrowed from the plan. NULL in *out: none. */
tarn_code task_positions(tarn_plan *plan, const scan_task *task, const tarn_positions **out,
                         tarn_error *err) TARN_MUST_USE;

/* The positions of a deletion vector, the caller's. */
tarn_code vector_positions(tarn_env *env, tarn_store *store, const tarn_entry *vector,
                           tarn_positions **out, tarn_error *err) TARN_MUST_USE;

/* Metadata tables (spec-free; names and columns as Iceberg Java and Spark show them): snapshots,
 * history, refs, manifests, files, data_files, delete_files, entries, partitions,
 * metadata_log_entries, all_data_files, all_delete_files, all_files, all_entries, all_manifests.
 * Gives batches of *type in arena-free form. */
bool metadata_table_known(tarn_str name);
typedef struct metadata_table metadata_table;
tarn_code metadata_table_open(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              tarn_str metadata_location, tarn_str name,
                              const scan_options *options, metadata_table **out,
                              tarn_error *err) TARN_MUST_USE;
const tarn_type *metadata_table_type(const metadata_table *t); /* after columns */
tarn_code metadata_table_next(metadata_table *t, tarn_batch *out, tarn_error *err) TARN_MUST_USE;
void metadata_table_close(metadata_table *t);

#endif
