/* parquet_write_int.h - what the files of the Parquet writer share. See parquet_write.h for the
 * flow.
 *
 * A write_leaf is one column of the file: constants, the open page, the finished pages of the open
 * row group, and what is counted over row group and file. A write_scratch is the working memory of
 * one thread while it works on one leaf; nothing in it outlives that. */
#ifndef FORMAT_PARQUET_PARQUET_WRITE_INT_H
#define FORMAT_PARQUET_PARQUET_WRITE_INT_H

#include "format/parquet/bloom.h"
#include "format/parquet/encode.h"
#include "format/parquet/encode_dict.h"
#include "format/parquet/parquet_schema.h"
#include "format/parquet/parquet_write.h"

#include <stdatomic.h>

/* Bytes of a minimum or maximum in statistics and column index. */
#define WRITE_STATS_LENGTH 64

/* ---- statistics ---- */

typedef enum write_order { /* how the values of a leaf are compared */
                           ORDER_NONE,
                           ORDER_BOOL,
                           ORDER_I32,
                           ORDER_I64,
                           ORDER_F32,
                           ORDER_F64,
                           ORDER_DECIMAL, /* as 128-bit integers, in FIXED */
                           ORDER_FIXED,   /* unsigned bytes */
                           ORDER_BYTES    /* unsigned bytes, then length */
} write_order;

typedef union write_number {
    int64_t i64; /* also booleans */
    double f64;  /* also floats */
    tarn_int128 i128;
} write_number;

typedef struct write_stats {
    bool has; /* false: no value, or only NaNs */
    write_number min, max;
    tarn_buf min_bytes, max_bytes; /* ORDER_FIXED, ORDER_BYTES */
} write_stats;

void stats_init(write_stats *s, tarn_env *env);
void stats_release(write_stats *s);
void stats_add_bool(write_stats *s, bool has_false, bool has_true);
void stats_add_i32(write_stats *s, const int32_t *v, size_t n);
void stats_add_i64(write_stats *s, const int64_t *v, size_t n);
int64_t stats_add_f32(write_stats *s, const float *v, size_t n);  /* returns NaNs */
int64_t stats_add_f64(write_stats *s, const double *v, size_t n); /* returns NaNs */
void stats_add_i128(write_stats *s, const tarn_int128 *v, size_t n);
tarn_code stats_add_fixed(write_stats *s, const uint8_t *v, size_t n, size_t width,
                          tarn_error *err) TARN_MUST_USE;
tarn_code stats_add_bytes(write_stats *s, const int32_t *offsets, const uint8_t *bytes, size_t n,
                          tarn_error *err) TARN_MUST_USE;
/* The values that n indices name. marks is scratch. */
tarn_code stats_add_indices(write_stats *s, const encode_dict *dict, const uint32_t *indices,
                            size_t n, tarn_buf *marks, tarn_error *err) TARN_MUST_USE;
tarn_code stats_merge(write_stats *into, write_order order, const write_stats *s,
                      tarn_error *err) TARN_MUST_USE;
/* -1, 0, 1 for the minima (maxima) of two that have some. */
int stats_cmp(write_order order, const write_stats *a, const write_stats *b, bool maxima);
/* Length of the prefix of s with at most n code points, or bytes. */
size_t bound_prefix(tarn_str s, bool is_text, size_t n);
/* Raises the last code point or byte of value[0, *len) that can be; false when none can. A code
 * point may need one byte more than before: room for len + 1. */
bool bound_raise(uint8_t *value, size_t *len, bool is_text);

/* ---- leaves ---- */

typedef enum step_kind { /* structs and variants; lists and maps */ STEP_STRUCT,
                         STEP_LIST,
                         STEP_LEAF } step_kind;

/* One node on the way from a column of the batch to the leaf. */
typedef struct write_step {
    step_kind kind;
    bool optional;
    int32_t child; /* to go on with */
} write_step;

typedef enum write_mode {
    MODE_DICTIONARY, /* indices */
    MODE_PLAIN,      /* values as PLAIN; booleans as bits */
    MODE_RAW         /* values side by side, encoded when the page ends */
} write_mode;

typedef struct write_page {
    uint8_t *data; /* header and body */
    size_t size_bytes;
    int64_t unpacked_bytes; /* header too */
    int64_t first_row;      /* in the row group */
    int64_t n_nulls;
    bool is_null;                              /* no value at all */
    bool has_bounds;                           /* or is_null */
    uint32_t min_at, min_len, max_at, max_len; /* in the leaf's bounds */
} write_page;

typedef struct write_leaf {
    /* constant */
    tarn_env *env;
    const parquet_write_options *options;
    const parquet_leaf *leaf;
    const tarn_field *field; /* of the batch's type */
    int32_t column;          /* of the batch */
    const write_step *steps;
    int32_t n_steps;
    const tarn_str *path; /* names in the file's schema */
    int32_t n_path;
    write_order order;
    size_t width; /* of a value in the file; 0: byte array; booleans 0 too */
    bool is_text;
    bool in_repeated;
    bool stats_on;
    bool bloom_on;
    double bloom_fpp;
    parquet_write_encoding wanted;
    parquet_metrics metrics;

    /* the open page */
    write_mode mode;
    int64_t page_rows;
    int64_t page_levels;
    int64_t page_values; /* not null */
    size_t page_plain;   /* bytes of its values as PLAIN */
    size_t page_new;     /* bytes of the dictionary when it began */
    tarn_buf defs;       /* flat: bits, once a null was seen; else a byte each */
    tarn_buf reps;       /* a byte each */
    tarn_buf values;
    tarn_buf indices; /* MODE_DICTIONARY: uint32_t each */
    tarn_buf offsets; /* MODE_RAW byte arrays: uint32_t ends */
    write_stats page_stats;

    /* the open row group */
    encode_dict dict;
    bool dict_checked; /* the early look was taken */
    write_page *pages;
    size_t n_pages;
    size_t cap_pages;
    tarn_buf bounds; /* of the pages */
    uint8_t *dict_page;
    size_t dict_page_bytes;
    size_t held_bytes; /* of pages and dict_page */
    int64_t rows;
    int64_t levels;
    int64_t nulls;
    int64_t unpacked_bytes;
    int64_t value_bytes; /* of byte arrays */
    int32_t n_dict_pages;
    int32_t n_other_pages;
    int64_t *def_counts; /* max_def + 1; NULL: not counted */
    int64_t *rep_counts;
    write_stats stats;
    bool ascending, descending, bounds_known; /* of pages' bounds so far */
    write_stats last;                         /* of the page with bounds before */
    tarn_buf hashes;                          /* bloom: uint64_t each */
    parquet_bloom bloom;                      /* words NULL: none yet */

    /* the file */
    int64_t file_levels;
    int64_t file_nulls;
    int64_t file_nans;
    int64_t file_bytes;
    write_stats file_stats;
} write_leaf;

typedef struct write_scratch {
    tarn_env *env;
    codec_ctx codec;
    tarn_buf raw;      /* page body before compression */
    tarn_buf packed;   /* and after */
    tarn_buf gathered; /* values side by side */
    tarn_buf shaped;   /* in physical form */
    tarn_buf offsets;  /* of gathered byte arrays */
    tarn_buf marks;
    tarn_buf index[2], def[2], rep[2]; /* levels; see write_levels.c */
    atomic_flag busy;                  /* taken by a thread */
} write_scratch;

/* PLAIN bytes of minimum or maximum of the leaf's values, at most WRITE_STATS_LENGTH of a byte
 * array, appended; *exact says whether they are the value itself. */
tarn_code stats_put(const write_leaf *leaf, const write_stats *s, bool maximum, tarn_buf *out,
                    bool *exact, tarn_error *err) TARN_MUST_USE;

void scratch_init(write_scratch *s, tarn_env *env);
void scratch_release(write_scratch *s);
size_t scratch_memory(const write_scratch *s);

/* Levels and non-null values of some rows of a leaf. */
typedef struct write_block {
    int64_t n_rows;
    int64_t n_levels;
    int64_t n_values;
    const uint8_t *validity; /* flat leaves with nulls: bit of row i is validity_start + i */
    int64_t validity_start;
    const uint8_t *def;   /* other leaves: a byte per level; NULL where max_def is 0 */
    const uint8_t *rep;   /* NULL where max_rep is 0 */
    tarn_view view;       /* of the leaf */
    int64_t first;        /* values are rows first.. of the view, side by side, */
    const int32_t *index; /* or those of the index, n_values long */
} write_block;

/* How many of the rows [start, end) make a block of about max_bytes and max_levels; at least 1. */
int64_t levels_block_rows(const write_leaf *leaf, const tarn_view *column, int64_t start,
                          int64_t end, int64_t max_bytes, int64_t max_levels);
typedef struct write_rows { /* rows [start, end) of a column of the batch */
    const tarn_view *column;
    int64_t start;
    int64_t end;
} write_rows;

tarn_code levels_make(const write_leaf *leaf, const write_rows *rows, write_scratch *scratch,
                      write_block *out, tarn_error *err) TARN_MUST_USE;

/* Values of a block side by side in physical form, borrowed from the batch or the scratch. */
typedef struct write_dense {
    size_t n;
    const uint8_t *values;  /* fixed width; booleans: bits from bit 0 on */
    const int32_t *offsets; /* byte arrays */
    const uint8_t *bytes;
} write_dense;

/* Also counts them into the page's statistics, byte arrays excepted. */
tarn_code dense_make(write_leaf *leaf, const write_block *block, write_scratch *scratch,
                     write_dense *out, tarn_error *err) TARN_MUST_USE;

/* The leaves of a schema, with everything constant in them, in arena; all but leaf_init. */
tarn_code leaves_make(tarn_env *env, tarn_arena *arena, const parquet_schema *schema,
                      const parquet_write_options *options, write_leaf **out,
                      tarn_error *err) TARN_MUST_USE;
tarn_code leaf_init(write_leaf *leaf, tarn_error *err) TARN_MUST_USE; /* after its constants */
void leaf_release(write_leaf *leaf);
/* Rows [start, end) of the batch's column. */
tarn_code leaf_add(write_leaf *leaf, write_scratch *scratch, const tarn_view *column, int64_t start,
                   int64_t end, tarn_error *err) TARN_MUST_USE;
/* Byte arrays that the page's indices name count into the page's statistics, once. */
tarn_code count_indices(write_leaf *leaf, write_scratch *scratch, tarn_error *err) TARN_MUST_USE;
/* Turns what the page has into PLAIN (or MODE_RAW) and goes on so. */
tarn_code leaf_leave_dictionary(write_leaf *leaf, write_scratch *scratch,
                                tarn_error *err) TARN_MUST_USE;
tarn_code page_end(write_leaf *leaf, write_scratch *scratch, tarn_error *err) TARN_MUST_USE;
/* Ends the last page, makes the dictionary page and the bloom filter. */
tarn_code chunk_end(write_leaf *leaf, write_scratch *scratch, tarn_error *err) TARN_MUST_USE;
void chunk_reset(write_leaf *leaf); /* for the next row group */
/* parquet_encoding of the pages that are not dictionary-encoded. */
int32_t leaf_other_encoding(const write_leaf *leaf);
/* Memory held; bytes that the open page would add to the file, roughly. */
size_t leaf_memory(const write_leaf *leaf);
size_t leaf_open_bytes(const write_leaf *leaf);
/* Values from `from` on, and those of the dictionary, for the bloom filter. */
tarn_code bloom_note(write_leaf *leaf, const write_dense *dense, size_t from,
                     tarn_error *err) TARN_MUST_USE;
tarn_code bloom_note_dictionary(write_leaf *leaf, tarn_error *err) TARN_MUST_USE;
tarn_code bloom_end(write_leaf *leaf, tarn_error *err) TARN_MUST_USE;

/* ---- metrics ---- */

/* Fills each leaf's metrics by the options (write_metrics.c). */
tarn_code metrics_choose(tarn_env *env, const tarn_type *root, const parquet_write_options *options,
                         write_leaf *leaves, int32_t n_leaves, tarn_error *err) TARN_MUST_USE;
tarn_code metrics_make(const write_leaf *leaves, int32_t n_leaves, tarn_arena *arena,
                       tarn_file *out, tarn_error *err) TARN_MUST_USE;

#endif
