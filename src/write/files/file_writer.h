/* write/files/file_writer.h - one data or delete file in the making, whatever its format
 * (write.format.default, write.delete.format.default). */
#ifndef WRITE_FILES_FILE_WRITER_H
#define WRITE_FILES_FILE_WRITER_H

#include "base/limits.h"
#include "format/avro/avro.h"
#include "format/parquet/parquet_write.h"
#include "iceberg/metadata.h"
#include "store/store.h"
#include "table/file_entry.h"

/* What files are made for, where it is not data: all members may be zero. */
typedef struct file_purpose {
    bool deletes;            /* write.delete.* go before the properties of data files */
    const tarn_type *root;   /* of the rows; NULL: the current schema's */
    const int32_t *full_ids; /* columns whose metrics are kept whole */
    int32_t n_full_ids;
    const avro_meta *meta; /* more that a file says of itself, besides its schema */
    int32_t n_meta;
} file_purpose;

/* What all files of one writer have in common, worked out once from the table's properties. */
typedef struct file_format_options {
    tarn_file_format format; /* parquet or avro */
    const tarn_type *root;
    int64_t target_bytes;
    parquet_write_options parquet;
    codec_kind avro_codec;
    int avro_level;
    const avro_meta *meta; /* iceberg.schema, for readers that look for it, and the purpose's */
    int32_t n_meta;
    const char *extension;
} file_format_options;

/* How large files grow: write.target-file-size-bytes (512 MB), or
 * write.delete.target-file-size-bytes (64 MB). */
tarn_code file_target_bytes(const tarn_metadata *m, bool deletes, int64_t *out,
                            tarn_error *err) TARN_MUST_USE;
/* Lives in arena, and borrows from purpose. INVALID names a property that says nothing sensible;
 * UNSUPPORTED: a format that is not written. */
tarn_code file_format_options_init(tarn_arena *arena, const tarn_metadata *m,
                                   const file_purpose *purpose, file_format_options *out,
                                   tarn_error *err) TARN_MUST_USE;

typedef struct file_writer {
    const file_format_options *options;
    tarn_str path;
    parquet_writer *parquet; /* one of the two */
    avro_writer *avro;
} file_writer;

tarn_code file_writer_open(file_writer *w, tarn_env *env, tarn_store *store,
                           const file_format_options *options, tarn_str path,
                           tarn_error *err) TARN_MUST_USE;
tarn_code file_writer_write(file_writer *w, const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;
/* Writes out what is held in memory without ending the file, where the format can. */
tarn_code file_writer_relieve(file_writer *w, tarn_error *err) TARN_MUST_USE;
int64_t file_writer_buffered_bytes(const file_writer *w);
int64_t file_writer_written_bytes(const file_writer *w);
/* Finishes the file: path, format, counts, sizes and metrics of out, in arena. The writer is closed
 * in every case. */
tarn_code file_writer_close(file_writer *w, tarn_arena *arena, tarn_file *out,
                            tarn_error *err) TARN_MUST_USE;
void file_writer_abort(file_writer *w); /* nothing stays; also of a closed or zeroed one */

#endif
