/* store/store_stdio.h - standard input and output as ends of base/io.h. */
#ifndef STORE_STORE_STDIO_H
#define STORE_STORE_STDIO_H

#include "base/io.h"

tarn_code store_stdin(tarn_env *env, io_stream **out, tarn_error *err) TARN_MUST_USE;
/* What is written is out at once; finish and abort only free. A closed pipe is IO. */
tarn_code store_stdout(tarn_env *env, io_sink **out, tarn_error *err) TARN_MUST_USE;

#endif
