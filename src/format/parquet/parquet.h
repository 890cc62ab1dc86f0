/* format/parquet/parquet.h - reading Parquet files: open, look at row groups, prune, scan.
 *
 * A parquet_file is read-only after parquet_open and may be shared by threads; a scan belongs to
 * one thread at a time. So row groups are read in parallel by one scan each. Offsets of pages come
 * from the column chunks' metadata only (B44). Counts that contradict each other are CORRUPT and
 * name the column, the row group and both numbers (B49). See README.md for the mapping of types. */
#ifndef FORMAT_PARQUET_H
#define FORMAT_PARQUET_H

#include "base/io.h"
#include "format/parquet/parquet_schema.h"
#include "table/batch.h"
#include "table/expr.h"
#include "table/project.h"

typedef struct parquet_options {
    bool skip_checksums; /* pages' CRCs are not looked at */
    bool int96_zoned;    /* INT96 is timestamptz (what Spark and Impala tables mean by it) */
} parquet_options;

typedef struct parquet_file parquet_file;

/* Reads the footer. source is borrowed and must outlive the file; options may be NULL. Encrypted
 * files are UNSUPPORTED. */
tarn_code parquet_open(tarn_env *env, io_source *source, const parquet_options *options,
                       parquet_file **out, tarn_error *err) TARN_MUST_USE;
void parquet_close(parquet_file *file); /* NULL is fine */

/* All borrowed from the file. */
const parquet_schema *parquet_file_schema(const parquet_file *file); /* ->root is the type */
const parquet_footer *parquet_file_footer(const parquet_file *file);
bool parquet_file_metadata(const parquet_file *file, const char *key, tarn_str *out);
int64_t parquet_file_rows(const parquet_file *file);
int32_t parquet_group_count(const parquet_file *file);
int64_t parquet_group_rows(const parquet_file *file, int32_t group);
int64_t parquet_group_first_row(const parquet_file *file, int32_t group); /* in the file */
/* Where the group's first page begins: what splits by byte ranges go by. -1: it has no columns. */
int64_t parquet_group_start(const parquet_file *file, int32_t group);
/* groups[parquet_group_count] = 1 where the group's first page begins within [start, end). Ranges
 * that cut the file into pieces choose every group once. */
void parquet_groups_within(const parquet_file *file, int64_t start, int64_t end, uint8_t *groups);
/* What a row group's metadata says of a leaf node (NaN and signed zero taken care of, B47). False:
 * nothing. Decimals and such are in the node's type; bytes are borrowed. */
bool parquet_group_stats(const parquet_file *file, int32_t group, int32_t node, expr_stats *out);

/* The same of the whole file: what its row groups say together; a part that one of them does not
 * say is not said. */
void parquet_file_stats(const parquet_file *file, int32_t node, expr_stats *out);

/* ---- pruning ---- */
typedef struct parquet_range {
    int64_t start, end; /* rows of the file, end excluded */
} parquet_range;

typedef struct parquet_pruned {
    const parquet_range *ranges; /* sorted, not touching; NULL when whole groups are wanted */
    size_t n_ranges;
    int64_t groups_by_stats, groups_by_bloom, groups_by_dictionary; /* left out, and by what */
    int64_t groups_kept;
    int64_t pages_skipped; /* data pages of filter columns in kept groups */
    int64_t rows_kept;     /* rows that have to be read */
} parquet_pruned;

/* Takes out of groups[] (1: wanted; both in and out) those that hold no row for which the bound
 * filter can be true, and finds the rows that page indexes leave. plan (may be NULL: by the file's
 * own field ids) says which of the file's nodes feeds a field id. Result in arena. */
tarn_code parquet_prune(parquet_file *file, const tarn_expr *bound, const tarn_projection *plan,
                        tarn_arena *arena, uint8_t *groups, parquet_pruned *out,
                        tarn_error *err) TARN_MUST_USE;

/* ---- scanning ---- */
typedef struct parquet_scan parquet_scan;

#define PARQUET_BATCH_ROWS 16384

/* A row that holds a value which its type can't say (INT96 beyond the microseconds of a long): row
 * (from 0) of the file, and why. OK leaves the row out; anything else ends the scan. */
typedef tarn_code (*parquet_reject_fn)(void *ctx, int64_t row, tarn_str reason, tarn_error *err);

typedef struct parquet_scan_options {
    const uint8_t *groups;       /* one a row group; NULL: all */
    const uint8_t *selected;     /* one a node, as type_prune takes them; NULL: all */
    const parquet_range *ranges; /* NULL: all rows of the groups */
    size_t n_ranges;
    int64_t batch_rows; /* at most; 0: PARQUET_BATCH_ROWS */
    bool parallel; /* columns of a batch are decoded side by side on the env's pool: for files of
                      few row groups; where row groups are scanned side by side it only costs */
    parquet_reject_fn reject; /* NULL: such a row is CORRUPT */
    void *reject_ctx;
} parquet_scan_options;

/* options (may be NULL) is copied but for ranges, which must outlive the scan. No data is read yet.
 */
tarn_code parquet_scan_open(parquet_file *file, const parquet_scan_options *options,
                            parquet_scan **out, tarn_error *err) TARN_MUST_USE;
void parquet_scan_close(parquet_scan *scan); /* NULL is fine */
/* The pruned type of its batches, borrowed from the scan: batches must not outlive it unless their
 * type is set to an equal one. */
const tarn_type *parquet_scan_type(const parquet_scan *scan);
/* Next rows; no rows at the end (then *out is empty). The rows of one batch follow each other in
 * the file, *first_row (may be NULL) being the number of the first (B16). */
tarn_code parquet_scan_next(parquet_scan *scan, tarn_batch *out, int64_t *first_row,
                            tarn_error *err) TARN_MUST_USE;

#endif
