/* read/metadata_table.h - inside of the metadata tables: which there are, and how each makes its
 * rows. */
#ifndef READ_METADATA_TABLE_H
#define READ_METADATA_TABLE_H

#include "read/read_int.h"
#include "read/row_choice.h"

typedef enum metadata_kind {
    META_SNAPSHOTS,
    META_HISTORY,
    META_REFS,
    META_LOG,
    META_MANIFESTS,
    META_FILES,
    META_ENTRIES,
    META_PARTITIONS,
    META_POSITION_DELETES
} metadata_kind;

typedef struct delete_cursor delete_cursor; /* metadata_deletes.c */

struct metadata_table {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena;
    const tarn_metadata *metadata;
    tarn_str metadata_location;
    metadata_kind kind;
    bool all;                      /* over all snapshots instead of one */
    int contents;                  /* files: bits 1 data, 2 deletes */
    const tarn_snapshot *snapshot; /* NULL: none */
    const tarn_type *root;
    const tarn_type *partition_type; /* union over all specs */
    const tarn_type *metrics_type;   /* struct of readable metrics */
    const tarn_manifest *manifests;  /* that the rows come from */
    int32_t n_manifests;
    int32_t at;            /* next manifest or snapshot; 1 when a table of one chunk was given */
    delete_cursor *cursor; /* position_deletes; NULL: not begun */
    row_choice choice;     /* what is asked for of root's rows */
};

/* The struct of the table's rows, with ids. */
tarn_code metadata_table_root(metadata_table *t, const tarn_type **out,
                              tarn_error *err) TARN_MUST_USE;
/* Union of all specs' partition fields, by field id (Iceberg's Partitioning.partitionType). */
tarn_code metadata_partition_type(metadata_table *t, tarn_error *err) TARN_MUST_USE;

/* Rows appended to a builder of root. */
tarn_code metadata_rows_small(metadata_table *t, tarn_builder *b,
                              tarn_error *err) TARN_MUST_USE; /* snapshots, history, refs, log */
tarn_code metadata_rows_manifests(metadata_table *t, tarn_builder *b,
                                  tarn_error *err) TARN_MUST_USE;
tarn_code metadata_rows_files(metadata_table *t, const tarn_manifest *manifest, tarn_builder *b,
                              tarn_error *err) TARN_MUST_USE; /* files, entries */
tarn_code metadata_rows_partitions(metadata_table *t, tarn_builder *b,
                                   tarn_error *err) TARN_MUST_USE;

/* A batch's worth; *more false: there are none left. */
tarn_code metadata_rows_deletes(metadata_table *t, tarn_builder *b, bool *more,
                                tarn_error *err) TARN_MUST_USE;
void delete_cursor_free(delete_cursor *c); /* takes NULL */
tarn_code metadata_read_entries(metadata_table *t, tarn_arena *arena, const tarn_manifest *manifest,
                                bool live_only, unsigned want, manifest_entries *out,
                                tarn_error *err) TARN_MUST_USE;

/* ---- small hands for builders ---- */
tarn_code put_i64(tarn_builder *b, int64_t v, bool is_null,
                  tarn_error *err) TARN_MUST_USE; /* long, timestamptz */
tarn_code put_i32(tarn_builder *b, int64_t v, bool is_null, tarn_error *err) TARN_MUST_USE;
tarn_code put_str(tarn_builder *b, tarn_str s,
                  tarn_error *err) TARN_MUST_USE; /* data NULL: null; also binary */
tarn_code put_bool(tarn_builder *b, bool v, bool is_null, tarn_error *err) TARN_MUST_USE;
/* A partition tuple of any spec as a row of the union struct. */
tarn_code put_partition(const metadata_table *t, tarn_builder *b, int32_t spec_id,
                        const tarn_value *values, int32_t n, tarn_error *err) TARN_MUST_USE;

#endif
