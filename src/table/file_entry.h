/* table/file_entry.h - one finished data or delete file as a manifest entry describes it (spec,
 * "Data File Fields"), and what writers hand to committers. Everything lives in an arena named by
 * whoever made it. */
#ifndef TABLE_FILE_ENTRY_H
#define TABLE_FILE_ENTRY_H

#include "table/value.h"

typedef enum tarn_content {
    TARN_CONTENT_DATA = 0,
    TARN_CONTENT_POSITION_DELETES = 1,
    TARN_CONTENT_EQUALITY_DELETES = 2
} tarn_content;
typedef enum tarn_file_format {
    TARN_FORMAT_PARQUET,
    TARN_FORMAT_AVRO,
    TARN_FORMAT_ORC,
    TARN_FORMAT_PUFFIN,
    TARN_FORMAT_OTHER
} tarn_file_format;
typedef enum tarn_entry_status {
    TARN_ENTRY_EXISTING = 0,
    TARN_ENTRY_ADDED = 1,
    TARN_ENTRY_DELETED = 2
} tarn_entry_status;

typedef struct metric_count {
    int32_t id;
    int64_t count;
} metric_count;
typedef struct metric_bound {
    int32_t id;
    tarn_str bytes;
} metric_bound; /* single-value binary */

typedef struct tarn_file {
    tarn_content content;
    tarn_file_format format;
    tarn_str path;
    int32_t spec_id;
    int32_t n_partition; /* fields of the spec */
    const tarn_value *partition;
    int64_t record_count;
    int64_t size_bytes;
    /* per column, by field id, any order; n 0: not known */
    int32_t n_column_sizes, n_value_counts, n_null_counts, n_nan_counts, n_lower, n_upper;
    const metric_count *column_sizes, *value_counts, *null_counts, *nan_counts;
    const metric_bound *lower, *upper;
    tarn_str key_metadata; /* data NULL: none (B25) */
    int32_t n_split_offsets;
    const int64_t *split_offsets;
    int32_t n_equality_ids;
    const int32_t *equality_ids;
    int32_t sort_order_id;                /* -1: none */
    int64_t first_row_id;                 /* -1: none (v3) */
    tarn_str referenced_data_file;        /* data NULL: none */
    int64_t content_offset, content_size; /* -1: none (v3 vectors) */
} tarn_file;

/* A manifest entry: a file and its life. */
typedef struct tarn_entry {
    tarn_entry_status status;
    int64_t snapshot_id;          /* inherited already, or -1 */
    int64_t sequence_number;      /* data sequence number, inherited already; -1: not known */
    int64_t file_sequence_number; /* -1: not known */
    tarn_file file;
} tarn_entry;

bool metric_find_count(const metric_count *counts, int32_t n, int32_t id, int64_t *out);
bool metric_find_bound(const metric_bound *bounds, int32_t n, int32_t id, tarn_str *out);
tarn_code file_copy(tarn_arena *arena, const tarn_file *file, tarn_file *out,
                    tarn_error *err) TARN_MUST_USE; /* deep */

#endif
