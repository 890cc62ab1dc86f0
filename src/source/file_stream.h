/* source/file_stream.h - a text file's bytes from where reading goes on: first its head (a CSV
 * header) again, then what follows start. */
#ifndef SOURCE_FILE_STREAM_H
#define SOURCE_FILE_STREAM_H

#include "base/io.h"
#include "format/codec.h"

typedef struct file_stream_part {
    codec_kind codec;
    int64_t head;     /* bytes after unpacking */
    int64_t start;    /* at least head */
    int64_t *counter; /* atomic: bytes read before unpacking; outlives the stream */
} file_stream_part;

/* What is not packed is sought, the rest read and passed over; an end before start is INVALID. Take
 * source, or pipe, on success. */
tarn_code file_stream_open(io_source *source, const file_stream_part *part, io_stream **out,
                           tarn_error *err) TARN_MUST_USE;
tarn_code file_stream_pipe(io_stream *pipe, const file_stream_part *part, io_stream **out,
                           tarn_error *err) TARN_MUST_USE;

#endif
