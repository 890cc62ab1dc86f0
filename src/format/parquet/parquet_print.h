/* format/parquet/parquet_print.h - a Parquet file's schema and footer for people. */
#ifndef FORMAT_PARQUET_PRINT_H
#define FORMAT_PARQUET_PRINT_H

#include "format/parquet/parquet.h"

/* "message schema { optional int64 a (TIMESTAMP(MICROS,true)) = 1; ... }", as parquet-mr prints it.
 */
tarn_code parquet_print_schema(const parquet_file *file, tarn_buf *out,
                               tarn_error *err) TARN_MUST_USE;
/* Footer as JSON: writer, rows, key-value metadata, row groups and their columns with encodings,
 * sizes and statistics. */
void parquet_print_meta(const parquet_file *file, json_writer *w);

#endif
