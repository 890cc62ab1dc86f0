/* store/store_stdio.h - pipes, standard input and output as ends of base/io.h. */
#ifndef STORE_STORE_STDIO_H
#define STORE_STORE_STDIO_H

#include "base/io.h"

#define STORE_PIPE_HEAD  64   /* enough to tell formats by */
#define STORE_PIPE_FIRST 4096 /* what is kept of the beginning */

/* "-", or a named pipe or device: bytes that come once, in order. */
bool store_is_pipe(const char *path);
/* Waits for no writer. path must live as long as the stream. */
tarn_code store_pipe_open(tarn_env *env, const char *path, io_stream **out,
                          tarn_error *err) TARN_MUST_USE;
/* *first is what comes first: want bytes (at most STORE_PIPE_FIRST), or fewer at the end or where
 * no more came in timeout_ms (-1: for ever). It is read again from the stream, and lives as long.
 */
tarn_code store_pipe_look(io_stream *pipe, size_t want, int64_t timeout_ms, tarn_str *first,
                          bool *ended, tarn_error *err) TARN_MUST_USE;
/* What is known of the beginning by now, read or looked at. */
tarn_str store_pipe_first(const io_stream *pipe);
/* Waits until such a stream has bytes or its end to give, or timeout_ms (-1: for ever) are over. */
tarn_code store_pipe_wait(io_stream *pipe, int64_t timeout_ms, bool *ready,
                          tarn_error *err) TARN_MUST_USE;
/* What is written is out at once; finish and abort only free. A closed pipe is IO. */
tarn_code store_stdout(tarn_env *env, io_sink **out, tarn_error *err) TARN_MUST_USE;

#endif
