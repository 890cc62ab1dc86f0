/* format/text/text.h - NDJSON and CSV as batches, both ways. Bytes come and go through base/io.h
 * (compressed ones through format/codec.h's wrappers).
 *
 * Reading cuts the stream at record ends into chunks of a few MB, decodes chunks on the pool
 * straight into builders, and gives batches in input order in bounded memory. A bad record is
 * reported with its line number and reason and is never half in a batch. */
#ifndef FORMAT_TEXT_TEXT_H
#define FORMAT_TEXT_TEXT_H

#include "base/io.h"
#include "table/batch.h"

typedef enum text_kind {
    TEXT_NDJSON,
    TEXT_CSV,
    TEXT_TABLE /* writing only: aligned columns for people; widths from the first rows, long cells
                  are cut */
} text_kind;

/* A record that could not be read: line is 1-based, raw the record's bytes (borrowed), reason one
 * line naming the column. Returning an error stops the reader with it; TARN_OK skips the record.
 * Called in input order from the thread that calls text_reader_next. */
typedef tarn_code (*text_reject_fn)(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                                    tarn_error *err);

typedef struct text_options {
    text_kind kind;
    char delimiter; /* CSV; 0: ',' */
    char quote;     /* CSV; 0: '"'; doubled inside */
    char escape;    /* CSV; 0: none */
    bool no_header; /* CSV: columns by position, named by the schema (or column1, column2, ...) */
    const tarn_str *null_texts; /* CSV: unquoted texts that are null; none given: the empty text */
    int32_t n_null_texts;
    bool ignore_unknown;  /* NDJSON members and CSV columns that the schema lacks: ignore instead of
                             reject */
    bool scalars_as_text; /* NDJSON: a number or boolean in a string column is its text instead of a
                             bad record; for inferred schemas, where mixed columns are strings */
    bool case_insensitive;
    /* Change streams. With either, rows that delete may lack required columns. */
    bool debezium;        /* NDJSON: records are Debezium's envelopes, of rows (text_change.c) */
    const tarn_str *keys; /* columns that no row may lack, whatever it does */
    int32_t n_keys;
    int32_t kind_column;   /* 1 + number of root's string column that says what each row does
                              (table/row_kind.h); 0: none. It stays among the columns. */
    int64_t first_line;    /* lines that came before the stream, where it goes on with a file */
    int64_t batch_rows;    /* most rows of a batch; 0: 16384 */
    size_t chunk_bytes;    /* 0: 2 MiB */
    text_reject_fn reject; /* NULL: the first bad record stops the reader: INVALID with file, line,
                              column, reason */
    void *reject_ctx;
} text_options;

typedef struct text_reader text_reader;
/* Reads records as rows of root (absent members are null; a missing or null required column is a
 * bad record). root must outlive the reader. Takes stream on success. */
tarn_code text_reader_open(tarn_env *env, io_stream *stream, const tarn_type *root,
                           const text_options *options, text_reader **out,
                           tarn_error *err) TARN_MUST_USE;
/* Next batch, of root; batch_rows(out) == 0 at the end. */
tarn_code text_reader_next(text_reader *r, tarn_batch *out, tarn_error *err) TARN_MUST_USE;
int64_t text_reader_bytes_read(const text_reader *r);
/* What the last batch's rows do (tarn_row_kind), until the next call; NULL: the options tell of no
 * kinds. */
const uint8_t *text_reader_kinds(const text_reader *r);
/* Of the batches: root, or with kinds root without required columns. Lives as long as r and root.
 */
const tarn_type *text_reader_type(const text_reader *r);
/* Bytes of the stream, and lines, that the batches given so far (and the bad records told) take up:
 * another reader may go on from there. */
void text_reader_position(const text_reader *r, int64_t *bytes, int64_t *lines);
/* Of those, the mark and the header of a CSV file. */
void text_reader_head(const text_reader *r, int64_t *bytes, int64_t *lines);
void text_reader_close(text_reader *r); /* takes NULL */

/* Of a record of changes what stands before its message's key, if there is one: the envelope. */
tarn_str text_change_envelope(tarn_str record);
/* Bytes of whole records at the front of len bytes, which begin with a record; all: nothing follows
 * them. */
size_t text_cut(const text_options *options, const char *bytes, size_t len, bool all);

/* The schema that a sample of whole records suggests: booleans, long, double, date, timestamp(tz),
 * string; NDJSON also structs and lists; null-only columns string. Reads at most max_bytes from the
 * stream (default 16 MiB when 0) and hands back a stream that starts from the beginning again (the
 * sample is kept in memory). Takes stream. */
tarn_code text_infer(tarn_arena *arena, io_stream **stream, const text_options *options,
                     size_t max_bytes, const tarn_type **out, tarn_error *err) TARN_MUST_USE;

typedef struct text_writer text_writer;
/* kind, delimiter, quote, no_header, null_texts[0] are used. The sink stays the caller's. Values
 * follow the Iceberg spec's single-value JSON; CSV cells of nested columns are JSON text. */
tarn_code text_writer_new(tarn_env *env, const tarn_type *root, const text_options *options,
                          io_sink *sink, text_writer **out, tarn_error *err) TARN_MUST_USE;
tarn_code text_writer_write(text_writer *w, const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;
tarn_code text_writer_flush(text_writer *w, tarn_error *err)
    TARN_MUST_USE; /* to the sink; also writes a CSV header when there were no rows */
void text_writer_free(text_writer *w); /* takes NULL */

#endif
