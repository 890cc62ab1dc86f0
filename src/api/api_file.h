/* api/api_file.h - shared by api_file.c (reading) and api_file_write.c. */
#ifndef API_API_FILE_H
#define API_API_FILE_H

#include <tarn/file.h>

#include "base/json.h"
#include "base/limits.h"
#include "format/avro/avro.h"
#include "format/parquet/parquet.h"
#include "format/text/text.h"
#include "read/read_columns.h"
#include "read/scan.h"

typedef enum file_kind {
    FILE_PARQUET,
    FILE_AVRO,
    FILE_NDJSON,
    FILE_CSV,
    FILE_JSON,
    FILE_TABLE
} file_kind;

struct tarn_file_reader {
    tarn_env *env;
    tarn_arena arena;
    tarn_store *store;
    tarn_str path;
    const char *name;
    bool is_pipe;    /* standard input, a named pipe, a device */
    io_stream *pipe; /* until a text reader or a store in memory has it */
    file_kind kind;
    codec_kind codec; /* around a text format */
    int64_t total_bytes;
    int64_t read_bytes; /* of a text file, before unpacking */
    /* one of these */
    io_source *source;
    parquet_file *parquet;
    avro_file *avro;
    text_reader *text;
    const json_value *document; /* table metadata as it is written, unknown members too */
    const tarn_type *file_root; /* as the format gives it */
    const tarn_type *root;      /* the same with ids */
    const tarn_type *output;
    const tarn_expr *filter;
    tarn_projection *to_output; /* text only; NULL: all columns */
    int64_t batch_rows;
    file_scan *scan;
    uint8_t *selection;
    tarn_reject_fn reject;
    void *reject_ctx;
};

tarn_code file_text_options(tarn_arena *arena, const tarn_file_options *o, file_kind kind,
                            text_options *out, tarn_error *err) TARN_MUST_USE;
/* Format and compression by option or name. */
tarn_code file_kind_for_writing(const char *path, const tarn_file_options *o, file_kind *kind,
                                codec_kind *codec, tarn_error *err) TARN_MUST_USE;
/* A stream of source that counts into r->read_bytes. Takes source on success. */
tarn_code file_counted_stream(tarn_file_reader *r, io_source *source, io_stream **out,
                              tarn_error *err) TARN_MUST_USE;

#endif
