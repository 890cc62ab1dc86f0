/* tarn/tarn.h - all of libtarn. Rows come in, become Apache Iceberg tables, are committed once, are
 * read back. */
#ifndef TARN_TARN_H
#define TARN_TARN_H

#include <tarn/arrow.h>
#include <tarn/catalog.h>
#include <tarn/env.h>
#include <tarn/error.h>
#include <tarn/file.h>
#include <tarn/maintain.h>
#include <tarn/scan.h>
#include <tarn/sink.h>
#include <tarn/source.h>
#include <tarn/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0". @since 0.1 */
TARN_API const char *tarn_version(void);

#ifdef __cplusplus
}
#endif
#endif
