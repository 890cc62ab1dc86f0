/* format/parquet/parquet_read_int.h - what the files of the reader share.
 *
 * From below: read_page.c takes pages out of a chunk's bytes; read_value.c decodes the values of
 * one page; read_convert.c turns physical values into canonical ones; read_column.c puts levels and
 * values into a leaf's builder; read_nested.c makes structs, lists and maps of levels; read_fetch.c
 * brings a row group's bytes; read_scan.c walks row groups and ranges. A dense value is one that is
 * not null. */
#ifndef FORMAT_PARQUET_READ_INT_H
#define FORMAT_PARQUET_READ_INT_H

#include "format/codec.h"
#include "format/parquet/bloom.h"
#include "format/parquet/decode_delta.h"
#include "format/parquet/decode_hybrid.h"
#include "format/parquet/parquet.h"

struct parquet_file {
    tarn_env *env;
    io_source *source;
    parquet_options options;
    tarn_arena arena;
    parquet_footer footer;
    const parquet_schema *schema;
    const int64_t *group_first_rows; /* n_row_groups + 1 */
    const uint8_t *tail;             /* the end of the file, as it was read for the footer */
    int64_t tail_start;
};

/* ---- where a column's bytes are ---- */
typedef struct read_segment { /* consecutive pages; the first one begins at a row's beginning */
    const uint8_t *data;
    size_t len;
    int64_t offset;    /* in the file */
    int64_t first_row; /* within the row group */
} read_segment;

/* ---- physical values to canonical ones ---- */
typedef enum read_convert {
    CONVERT_NOTHING, /* values are of no interest: unknown, or only levels are wanted */
    CONVERT_COPY,    /* same bytes, width of the physical type */
    CONVERT_BYTES,   /* string, binary */
    CONVERT_BOOL,
    CONVERT_U32_LONG,
    CONVERT_I32_MILLIS, /* times of day */
    CONVERT_I64_MILLIS, /* timestamps */
    CONVERT_I32_DECIMAL,
    CONVERT_I64_DECIMAL,
    CONVERT_U64_DECIMAL,
    CONVERT_FIXED_DECIMAL,
    CONVERT_BYTES_DECIMAL,
    CONVERT_INT96,
    CONVERT_FLOAT16
} read_convert;

/* Stands for an INT96 that microseconds can't say: whether it matters is only known once its row is
 * wanted, for a dictionary may hold values that no row has. Never a value itself. */
#define INT96_BEYOND INT64_MIN

read_convert convert_choose(const parquet_leaf *leaf);
/* Width in bytes of a physical value; 0: bits or byte arrays. */
size_t physical_width(const parquet_leaf *leaf);
/* n fixed-width physical values into canonical ones (raw and dst don't overlap). Returns the index
 * of the first value that can't be said, n if there is none. */
size_t convert_fixed(read_convert how, const uint8_t *raw, size_t raw_width, size_t n,
                     uint8_t *dst);
bool convert_decimal_bytes(const uint8_t *p, size_t len, uint8_t *dst);
bool convert_utf8_ok(const uint8_t *bytes, const int32_t *offsets, int64_t n);

/* ---- dictionaries: canonical values already ---- */
typedef struct read_dictionary {
    bool present;
    uint32_t count;
    bool utf8_ok;
    tarn_builder values; /* of the leaf's type */
} read_dictionary;

/* ---- values of one page ---- */
typedef struct value_reader {
    int32_t encoding;
    const uint8_t *start, *at, *end;
    size_t width;      /* of the physical value */
    uint64_t bit;      /* plain booleans */
    size_t stream_len; /* byte stream split: values in the page */
    size_t taken;      /* byte stream split: values given so far */
    hybrid_reader hybrid;
    delta_reader delta;    /* values, or lengths of byte arrays */
    delta_reader prefixes; /* delta byte arrays */
    tarn_buf last;         /* delta byte arrays: the value before */
} value_reader;

typedef struct read_column {
    tarn_env *env;
    const parquet_file *file;
    codec_ctx *codec;
    int32_t group;
    int32_t index; /* of the leaf */
    const parquet_leaf *leaf;
    const parquet_chunk *chunk;
    read_convert convert;
    bool beyond;           /* INT96: values beyond a long were marked (INT96_BEYOND) */
    bool with_levels;      /* levels are kept for read_nested.c */
    uint8_t slot_def;      /* level from which on an entry is a slot of the innermost list */
    tarn_builder *builder; /* NULL: only levels are wanted */

    const read_segment *segments;
    int32_t n_segments;
    read_segment dictionary_bytes; /* before the first page, when segments may not hold it */
    int32_t segment;               /* present one */
    const uint8_t *at, *end;       /* what is left of it */
    bool indexed;                  /* segments were chosen by the offset index */
    int64_t row;                   /* next row, within the row group */
    int64_t values_seen;           /* entries of the pages read so far */

    parquet_page_header header;
    const uint8_t *body; /* compressed bytes of the present page */
    tarn_buf page;       /* unpacked ones */
    bool page_waiting;   /* its header was read, its body not unpacked */
    int64_t page_left;   /* entries not taken from the levels' readers */
    hybrid_reader def, rep;
    const uint8_t *def_msb, *rep_msb; /* deprecated BIT_PACKED levels: next block's first byte */
    uint64_t msb_at;                  /* entries taken from them */
    value_reader values;
    int64_t bad_value; /* after a failed values_read: which of the n it was, -1: not known */
    read_dictionary dictionary;

    uint8_t *block_defs, *block_reps; /* READ_BLOCK entries decoded ahead, with_levels only */
    int32_t block_at, block_len;
    uint8_t *defs, *reps; /* entries of the present batch */
    int64_t n_entries, entries_cap;
    uint8_t *bits; /* validity of a run before the builder needs it; also other scratch */
    size_t bits_cap;
} read_column;

#define READ_BLOCK 4096

/* "column a.b of row group 3" and the problem. */
tarn_code column_error(const read_column *c, tarn_code code, tarn_error *err, const char *fmt, ...)
    TARN_PRINTF(4, 5);

/* read_page.c. column_page: makes the next data page's header the present one (reading a dictionary
 * on the way); *more is false at the end of the segment or chunk. */
tarn_code column_next_page(read_column *c, bool *more, tarn_error *err) TARN_MUST_USE;
tarn_code column_unpack_page(read_column *c, tarn_error *err) TARN_MUST_USE;
int64_t page_values(const parquet_page_header *header); /* of a data page */
/* Reads the dictionary out of c->dictionary_bytes. */
tarn_code column_load_dictionary(read_column *c, tarn_error *err) TARN_MUST_USE;

/* read_value.c. Appends n dense values to builder (length is not moved; bytes are); skip drops
 * them. */
tarn_code values_open(read_column *c, int32_t encoding, const uint8_t *data, size_t len,
                      tarn_error *err) TARN_MUST_USE;
tarn_code values_read(read_column *c, tarn_builder *b, int64_t n, tarn_error *err) TARN_MUST_USE;
tarn_code values_skip(read_column *c, int64_t n, tarn_error *err) TARN_MUST_USE;
tarn_code dictionary_open(read_column *c, int32_t encoding, const uint8_t *data, size_t len,
                          int32_t count, tarn_error *err) TARN_MUST_USE;
void values_release(read_column *c);

/* read_column.c */
tarn_code column_open(read_column *c,
                      tarn_error *err) TARN_MUST_USE; /* fields down to n_segments set */
void column_release(read_column *c);
tarn_code column_seek(read_column *c, int64_t row, tarn_error *err) TARN_MUST_USE;
/* Appends the next n rows to the builder; levels of the batch are in defs, reps. */
tarn_code column_read(read_column *c, int64_t n, tarn_error *err) TARN_MUST_USE;

/* ---- a row group's bytes (read_fetch.c) ---- */
typedef struct read_run { /* rows of a row group */
    int64_t start, end;
} read_run;

/* The bytes of a range that was checked: where the source or the tail has them, else read into
 * arena with 16 bytes of room behind. */
tarn_code file_bytes(const parquet_file *file, int64_t start, int64_t len, tarn_arena *arena,
                     const uint8_t **out, tarn_error *err) TARN_MUST_USE;
/* Where a chunk begins and ends, by its own metadata only. */
tarn_code chunk_bounds(const parquet_file *file, int32_t group, int32_t leaf, int64_t *start,
                       int64_t *len, tarn_error *err) TARN_MUST_USE;
/* A chunk's offset index, checked (NULL: it has none), in arena. */
tarn_code chunk_offset_index(const parquet_file *file, int32_t group, int32_t leaf,
                             tarn_arena *arena, const parquet_offset_index **out,
                             tarn_error *err) TARN_MUST_USE;
/* Brings the bytes that columns need for the runs into segments; what is read lives in arena. */
tarn_code fetch_group(const parquet_file *file, read_column *columns, int32_t n_columns,
                      const read_run *runs, size_t n_runs, tarn_arena *arena,
                      tarn_error *err) TARN_MUST_USE;

/* ---- nested columns (read_nested.c) ---- */
typedef struct read_node { /* one node of the pruned type, in preorder */
    const parquet_node *node;
    tarn_builder *builder;
    int32_t levels;      /* column whose levels tell of this node; -1: rows alone do */
    uint8_t context_def; /* entries from this level on ... */
    uint8_t context_rep; /* ... and up to this one are its slots */
    tarn_builder *parts; /* shredded variant: its group, whose nodes follow this one; else NULL */
} read_node;

/* Completes the builders of all nodes for a batch of rows whose leaves were read. */
tarn_code nested_fill(const read_node *nodes, int32_t n_nodes, const read_column *columns,
                      int64_t rows, tarn_error *err) TARN_MUST_USE;

/* Appends the values of a shredded variant's rows to its builder's children, from the parts that
 * were read (and are let go). Validity of the variant is there already. read_variant.c */
tarn_code variant_rebuild(const read_node *n, const read_column *column, int64_t rows,
                          tarn_error *err) TARN_MUST_USE;

/* ---- pruning ---- */
/* Whether min_value and max_value of a column mean anything: its order must be told. */
bool stats_are_ordered(const parquet_file *file, int32_t leaf);
/* Bounds in plain bytes into out->lower and upper, as far as they say anything. n_min SIZE_MAX:
 * none. */
void stats_bounds(const parquet_leaf *leaf, tarn_str min, tarn_str max, expr_stats *out);
/* A value of a file's type as one of the table's type; false when it can't be said. */
bool stats_promote(const tarn_type *type, tarn_value *v);

typedef struct prune_column { /* a field that the filter names, and where the file has it */
    int32_t field_id;
    int32_t leaf; /* -1: it is not there, or not as a flat primitive */
    /* per row group, made when first asked for */
    bool bloom_tried, dictionary_tried, pages_tried;
    parquet_bloom bloom;                 /* n_blocks 0: none */
    read_column *dictionary;             /* NULL: none, or not all pages use it */
    const parquet_offset_index *offsets; /* NULL: no page index */
    const parquet_column_index *index;
} prune_column;

typedef struct pruner {
    parquet_file *file;
    tarn_arena *arena;  /* the caller's: the result */
    tarn_arena scratch; /* of one row group */
    codec_ctx codec;
    int32_t group;
    prune_column *columns;
    size_t n_columns;
    tarn_code code; /* first failure that is not mere damage of an index */
    tarn_error *err;
} pruner;

prune_column *prune_find(pruner *p, const tarn_field *field); /* NULL: nothing is known */
/* Failures to read an index: damage is forgotten (the rows will be read), others stay in p->code.
 */
bool prune_note(pruner *p, tarn_code code);
/* False: no value of an equality (or IN, or prefix) can be in the row group. */
bool prune_bloom(pruner *p, const tarn_expr *bound);
bool prune_dictionary(pruner *p, const tarn_expr *bound);
void prune_drop_group(pruner *p); /* forgets what belongs to a row group */
/* Rows of the group that the page indexes leave, as runs in arena; *skipped counts pages. */
tarn_code prune_pages(pruner *p, const tarn_expr *bound, const read_run **runs, size_t *n_runs,
                      int64_t *skipped);

#endif
