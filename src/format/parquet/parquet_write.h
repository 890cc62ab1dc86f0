/* format/parquet/parquet_write.h - batches become a Parquet file, and what Iceberg wants to know of
 * it is counted on the way, in one pass.
 *
 * Flow: rows -> levels and dense values per leaf (write_levels.c) -> pages, encoded and compressed
 * as rows arrive (write_column.c, write_page.c) -> a row group when enough is held -> sink ->
 * indexes and footer at close. Leaves are independent, so they are worked on in parallel on the
 * env's pool. Compressed pages of the open row group are held in memory; everything else of it is
 * at most one page per leaf. A writer that was given no rows holds next to nothing. */
#ifndef FORMAT_PARQUET_WRITE_H
#define FORMAT_PARQUET_WRITE_H

#include "base/io.h"
#include "format/codec.h"
#include "table/batch.h"
#include "table/file_entry.h"

/* ---- options ---- */

typedef enum parquet_metrics_mode {
    PARQUET_METRICS_NONE,     /* column size only */
    PARQUET_METRICS_COUNTS,   /* and counts of values, nulls, NaNs */
    PARQUET_METRICS_TRUNCATE, /* and bounds, text cut at code points and binary at bytes */
    PARQUET_METRICS_FULL
} parquet_metrics_mode;

typedef struct parquet_metrics {
    parquet_metrics_mode mode;
    int32_t length; /* of TRUNCATE */
} parquet_metrics;

typedef enum parquet_write_encoding {
    PARQUET_WRITE_AUTO,         /* dictionary while it pays, then plain */
    PARQUET_WRITE_PLAIN,        /* never a dictionary */
    PARQUET_WRITE_DICTIONARY,   /* dictionary up to its limit, paying or not, then plain */
    PARQUET_WRITE_DELTA,        /* DELTA_BINARY_PACKED; byte arrays DELTA_BYTE_ARRAY */
    PARQUET_WRITE_DELTA_LENGTH, /* byte arrays DELTA_LENGTH_BYTE_ARRAY */
    PARQUET_WRITE_STREAM_SPLIT  /* BYTE_STREAM_SPLIT of fixed widths */
} parquet_write_encoding;

/* What is said of one column by its dotted name ("a.b", "list.element", "map.key"). Names that the
 * schema does not have are ignored, and so are encodings that do not fit the column's type. */
typedef struct parquet_column_options {
    tarn_str name;
    bool has_metrics, has_stats, has_bloom, has_encoding;
    parquet_metrics metrics;
    bool stats;       /* statistics and column index in the file; default true */
    bool bloom;       /* default false */
    double bloom_fpp; /* 0: 0.01 */
    parquet_write_encoding encoding;
} parquet_column_options;

typedef struct parquet_property {
    tarn_str key;
    tarn_str value;
} parquet_property;

typedef struct parquet_write_options {
    int64_t row_group_bytes;  /* 128 MiB, as held: compressed pages and open ones */
    int64_t row_group_rows;   /* at most; INT64_MAX */
    int64_t page_bytes;       /* 1 MiB */
    int64_t page_rows;        /* 20000 */
    int64_t page_values;      /* 1 Mi values, nulls too, unless one row has more */
    int64_t dictionary_bytes; /* 2 MiB; 0: no dictionaries */
    int64_t bloom_max_bytes;  /* 1 MiB */
    int32_t page_version;     /* 1 or 2 */
    codec_kind codec;         /* zstd */
    int level;                /* CODEC_LEVEL_DEFAULT */
    bool no_checksums;
    bool no_page_index;
    bool has_metrics_default;        /* metrics_default was asked for, also beyond max_inferred */
    parquet_metrics metrics_default; /* truncate(16) */
    int32_t metrics_max_inferred;    /* 100: leaf columns that get the unasked default */
    const parquet_column_options *columns;
    size_t n_columns;
    const parquet_property *key_values; /* of the footer, such as iceberg.schema */
    size_t n_key_values;
} parquet_write_options;

void parquet_write_options_init(parquet_write_options *options);
/* Reads Iceberg's table properties write.parquet.* and write.metadata.metrics.* on top of options
 * that were initialised; with for_deletes those of write.delete.parquet.* go before. Also
 * write.parquet.encoding.column.<name> = auto | plain | dictionary | delta | delta-length |
 * byte-stream-split. Other keys are ignored; a bad value is INVALID and names key and value. What
 * is kept lives in arena. */
tarn_code parquet_write_options_parse(tarn_arena *arena, const parquet_property *properties,
                                      size_t n, bool for_deletes, parquet_write_options *options,
                                      tarn_error *err) TARN_MUST_USE;

/* ---- writing ---- */

typedef struct parquet_writer parquet_writer;

/* root is a struct (copied); batches given later have its shape. Fields of type unknown are left
 * out of the file (spec, Appendix A). options may be NULL; what they point to must live as long as
 * the writer. Takes sink on success. INVALID: a type that Parquet cannot hold, bad options. */
tarn_code parquet_writer_new(tarn_env *env, const tarn_type *root,
                             const parquet_write_options *options, io_sink *sink,
                             parquet_writer **out, tarn_error *err) TARN_MUST_USE;
/* Appends the batch's rows. A null in a required column is INVALID and names it. After a failure
 * the writer only takes free. */
tarn_code parquet_writer_write(parquet_writer *w, const tarn_batch *batch,
                               tarn_error *err) TARN_MUST_USE;
/* Ends the present row group, if it has rows. */
tarn_code parquet_writer_end_row_group(parquet_writer *w, tarn_error *err) TARN_MUST_USE;
/* Writes what is held and the footer and finishes the sink. out (may be NULL) gets format,
 * record_count, size_bytes, per-column sizes, counts and bounds, and split_offsets, all in arena
 * and sorted by field id; its other members are not touched. Only free is left to call. */
tarn_code parquet_writer_close(parquet_writer *w, tarn_arena *arena, tarn_file *out,
                               tarn_error *err) TARN_MUST_USE;
/* Aborts the sink unless close succeeded; takes NULL. */
void parquet_writer_free(parquet_writer *w);

int64_t parquet_writer_rows(const parquet_writer *w);
/* Memory held by the writer, roughly. */
int64_t parquet_writer_buffered_bytes(const parquet_writer *w);
/* The file's size if it were closed now, roughly: for rolling by target size. */
int64_t parquet_writer_written_bytes(const parquet_writer *w);

/* ---- bounds (spec, "Data File Fields", lower_bounds and upper_bounds) ---- */

/* The first n code points of valid UTF-8, or n bytes: itself a lower bound. */
tarn_str parquet_bound_lower(tarn_str value, bool is_text, size_t n);
/* A value of at most n code points (text) or bytes that is not below value: value itself when it is
 * short, else its prefix with the last code point or byte that can be raised raised by one. *out
 * lives in arena; *exists is false when nothing can be raised. */
tarn_code parquet_bound_upper(tarn_arena *arena, tarn_str value, bool is_text, size_t n,
                              tarn_str *out, bool *exists, tarn_error *err) TARN_MUST_USE;

#endif
