/* tarn/file.h - single files: Parquet, Avro, NDJSON, CSV (the latter two also gzip or zstd
 * compressed), as Arrow streams, both ways. */
#ifndef TARN_FILE_H
#define TARN_FILE_H

#include <tarn/arrow.h>
#include <tarn/env.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A record that could not be read: its line (of Parquet, its row) from 1, its bytes, why. Return 0
 * to skip it, anything else to stop. Text formats, and of Parquet the rows whose INT96 value is
 * beyond what a timestamp can say (they have no bytes to show). */
typedef int (*tarn_reject_fn)(void *ctx, int64_t line, const char *raw, size_t raw_len,
                              const char *reason);

typedef struct tarn_file_options {
    uint32_t struct_size;
    const char
        *format; /* "parquet", "avro", "ndjson", "csv"; NULL: by name, then by content. @borrow */
    const char *compression; /* text formats: "none", "gzip", "zstd"; NULL: by name, then by
                                content. @borrow */
    const char *columns;     /* comma separated; NULL: all. @borrow */
    const char *where;       /* filter; NULL: all rows. @borrow */
    const struct ArrowSchema
        *schema; /* text formats: columns to read as; NULL: inferred from the beginning. @borrow */
    const char *csv_delimiter; /* one character or "\\t"; NULL: ",". @borrow */
    const char *csv_quote;     /* one character; NULL: "\"". @borrow */
    bool csv_no_header;
    const char *null_text; /* CSV text that is null besides the empty one, "" allowed; NULL: only
                              the empty text. @borrow */
    bool ignore_unknown;   /* text formats with schema: members the schema lacks are ignored, not
                              rejected */
    int64_t batch_rows;    /* 0: 16384 */
    tarn_reject_fn reject; /* NULL: the first bad record stops. @keep */
    void *reject_ctx;      /* @keep */
    const char *codec;     /* writing: parquet, avro: "zstd"...; NULL: zstd. @borrow */
    const char
        *properties_json; /* writing: {"write.parquet.page-version":"v2"...}; NULL: none. @borrow */
} tarn_file_options;

#define TARN_FILE_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(tarn_file_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, false,   \
            0, NULL, NULL, NULL, NULL                                                              \
    }

typedef struct tarn_file_reader tarn_file_reader;
/* Opens PATH; "-" is standard input (text formats and Avro and Parquet are read whole into memory
 * first where they need random access). @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_file_open(tarn_env *env,                    /* @keep */
               const char *path,                 /* @borrow */
               const tarn_file_options *options, /* @borrow, may be NULL */
               tarn_file_reader **out,           /* @give: tarn_file_close */
               tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code tarn_file_schema(tarn_file_reader *reader, /* @borrow */
                                                  struct ArrowSchema *out,  /* @give: its release */
                                                  tarn_error *err /* @borrow, may be NULL */);
/* Next batch; out->length 0 and out->release NULL at the end. */
TARN_API TARN_MUST_USE tarn_code tarn_file_next(tarn_file_reader *reader, /* @borrow */
                                                struct ArrowArray *out,   /* @give: its release */
                                                tarn_error *err /* @borrow, may be NULL */);
/* Compressed bytes consumed so far and in all (-1: not known): for progress. */
TARN_API void tarn_file_progress(const tarn_file_reader *reader, /* @borrow */
                                 int64_t *done_bytes,            /* @borrow */
                                 int64_t *total_bytes /* @borrow */);
/* The schema as the format itself says it (Avro schema JSON, Parquet message text), and everything
 * in the footer or header as JSON. */
TARN_API TARN_MUST_USE tarn_code
tarn_file_native_schema(tarn_file_reader *reader, /* @borrow */
                        char **text_out,          /* @give: tarn_text_free */
                        tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code tarn_file_meta_json(tarn_file_reader *reader, /* @borrow */
                                                     char **json_out, /* @give: tarn_text_free */
                                                     tarn_error *err /* @borrow, may be NULL */);
/* "parquet", "avro", "ndjson", "csv", or "json" for a table metadata document (which has no rows).
 * Borrowed for ever. */
TARN_API const char *tarn_file_reader_format(const tarn_file_reader *reader /* @borrow */);
TARN_API void tarn_file_close(tarn_file_reader *reader /* @take, may be NULL */);

typedef struct tarn_file_writer tarn_file_writer;
/* Writes PATH ("-": standard output, text formats only), visible only after tarn_file_writer_close.
 * schema: an Arrow struct. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_file_writer_open(tarn_env *env,                    /* @keep */
                      const char *path,                 /* @borrow */
                      const struct ArrowSchema *schema, /* @borrow */
                      const tarn_file_options *options, /* @borrow, may be NULL */
                      tarn_file_writer **out,           /* @give: tarn_file_writer_close */
                      tarn_error *err /* @borrow, may be NULL */);
/* array is moved (its release becomes NULL) on success, and when writing failed after it was taken.
 */
TARN_API TARN_MUST_USE tarn_code tarn_file_writer_write(tarn_file_writer *writer, /* @borrow */
                                                        struct ArrowArray *array, /* @take */
                                                        tarn_error *err /* @borrow, may be NULL */);
/* Finishes the file; frees the writer in every case. On failure nothing is visible under PATH. */
TARN_API TARN_MUST_USE tarn_code tarn_file_writer_close(tarn_file_writer *writer, /* @take */
                                                        tarn_error *err /* @borrow, may be NULL */);
TARN_API void tarn_file_writer_abort(tarn_file_writer *writer /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
