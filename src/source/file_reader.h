/* source/file_reader.h - one file of any format as batches: what include/tarn/file.h and sources
 * read files with. */
#ifndef SOURCE_FILE_READER_H
#define SOURCE_FILE_READER_H

#include <tarn/file.h>

#include "base/json.h"
#include "format/avro/avro.h"
#include "format/codec.h"
#include "format/parquet/parquet.h"
#include "format/text/text.h"
#include "store/store.h"
#include "table/expr.h"

typedef enum file_kind {
    FILE_PARQUET,
    FILE_AVRO,
    FILE_NDJSON,
    FILE_CSV,
    FILE_JSON,
    FILE_TABLE
} file_kind;

/* Where reading begins: behind what was read of the file before. */
typedef struct file_position {
    int64_t rows;       /* Parquet, Avro */
    int64_t bytes;      /* text: after unpacking */
    int64_t lines;      /* text: in those bytes */
    int64_t head_bytes; /* CSV: its header, which is read again */
    int64_t head_lines;
} file_position;

typedef struct file_request {
    const tarn_file_options *options; /* columns and where are not looked at */
    const tarn_type *root;            /* text: columns to read as, instead of options->schema; as
                                         long as the reader */
    io_stream *pipe; /* path, where it was opened already (store_pipe_open): taken on success */
    tarn_str head;   /* and its first bytes */
    const tarn_str *columns; /* of the rows; none: all */
    int32_t n_columns;
    const tarn_expr *where; /* unbound; NULL: all */
    bool debezium;          /* NDJSON */
    const char
        *kind_column;     /* a string column that says what rows do, and is not given; NULL: none */
    const tarn_str *keys; /* columns that no row may lack, as long as the reader */
    int32_t n_keys;
    const file_position *start; /* NULL: the beginning */
} file_request;

typedef struct file_reader file_reader;
/* Opens path; "-" is standard input. options' callbacks must outlive the reader, the rest is
 * copied. */
tarn_code file_reader_open(tarn_env *env, const char *path, const file_request *request,
                           file_reader **out, tarn_error *err) TARN_MUST_USE;
void file_reader_close(file_reader *r); /* takes NULL */
/* The next rows, of file_reader_type; batch_rows(out) == 0 at the end. */
tarn_code file_reader_next(file_reader *r, tarn_batch *out, tarn_error *err) TARN_MUST_USE;
/* What the rows of the last batch do, until the next call; NULL: all are inserts. */
const uint8_t *file_reader_kinds(const file_reader *r);
/* Behind the rows given so far. */
void file_reader_position(const file_reader *r, file_position *out);
const tarn_type *file_reader_type(const file_reader *r); /* as long as r */
const char *file_reader_format(const file_reader *r);    /* "parquet", ... */
/* Bytes read: of a text file without what was sought over, of another one all, once it gave rows.
 */
int64_t file_reader_taken(const file_reader *r);
void file_reader_progress(const file_reader *r, int64_t *done_bytes, int64_t *total_bytes);
/* What the format itself says, appended. */
tarn_code file_reader_schema_text(file_reader *r, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code file_reader_meta_json(file_reader *r, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

/* ---- parts that others need too ---- */
const char *file_kind_name(file_kind kind);
/* An option's name of a format, "debezium-json" (NDJSON) too. */
tarn_code file_kind_by_option(const char *name, file_kind *out, tarn_error *err) TARN_MUST_USE;
/* Kind and compression by a path's endings. */
bool file_kind_by_name(tarn_str name, file_kind *kind, codec_kind *codec);
file_kind file_kind_by_content(tarn_str head);
/* By option, name or first bytes; the compression of text by its first bytes in any case. */
tarn_code file_kind_choose(tarn_str path, const tarn_file_options *o, tarn_str head,
                           file_kind *kind, codec_kind *codec, tarn_error *err) TARN_MUST_USE;
/* A bad record to the options' function, or as an error naming it. */
tarn_code file_tell_reject(const tarn_file_options *o, const char *name, int64_t line, tarn_str raw,
                           tarn_str reason, tarn_error *err) TARN_MUST_USE;
bool file_kind_is_text(file_kind kind);
tarn_code file_kind_for_writing(const char *path, const tarn_file_options *o, file_kind *kind,
                                codec_kind *codec, tarn_error *err) TARN_MUST_USE;
tarn_code file_text_options(tarn_arena *arena, const tarn_file_options *o, file_kind kind,
                            text_options *out, tarn_error *err) TARN_MUST_USE;

#endif
