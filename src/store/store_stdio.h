/* store/store_stdio.h - pipes, standard input and output as ends of base/io.h. */
#ifndef STORE_STORE_STDIO_H
#define STORE_STORE_STDIO_H

#include "base/io.h"

#define STORE_PIPE_HEAD 64

/* "-", or a named pipe or device: bytes that come once, in order. */
bool store_is_pipe(const char *path);
/* *head is what comes first (at most STORE_PIPE_HEAD bytes, fewer only at the end), to tell formats
 * by; it is read again from the stream, and lives as long. path too must live as long. */
tarn_code store_pipe_open(tarn_env *env, const char *path, tarn_str *head, io_stream **out,
                          tarn_error *err) TARN_MUST_USE;
/* Waits until such a stream has bytes or its end to give, or timeout_ms (-1: for ever) are over. */
tarn_code store_pipe_wait(io_stream *pipe, int64_t timeout_ms, bool *ready,
                          tarn_error *err) TARN_MUST_USE;
/* What is written is out at once; finish and abort only free. A closed pipe is IO. */
tarn_code store_stdout(tarn_env *env, io_sink **out, tarn_error *err) TARN_MUST_USE;

#endif
