/* format/avro/avro.h - Avro object container files (Avro 1.12, "Object Container Files") as
 * batches, both ways, with what Iceberg asks of them (spec, "Appendix A: Avro").
 *
 * Types. record -> struct; ["null", X] -> optional X; enum -> string; array -> list, or map where
 * its logicalType is "map"; map -> map<string, X>; fixed -> fixed, decimal or uuid; bytes with
 * decimal -> decimal; string with uuid -> uuid; duration -> fixed[12]; any other union -> struct of
 * optional fields member0, member1, ... for its branches that are not null, in order, of which one
 * is set. time-millis and timestamp-millis become microseconds. timestamp-* with adjust-to-utc
 * false and local-timestamp-* are timestamps, all others timestamptz: without the property Avro
 * means an instant, and a table's type may say otherwise (B43: the microseconds are the same). A
 * field's name is its iceberg-field-name where there is one (B22). Recursive types are UNSUPPORTED.
 * A root that is not a record becomes a struct of one field, "value". */
#ifndef FORMAT_AVRO_AVRO_H
#define FORMAT_AVRO_AVRO_H

#include "base/io.h"
#include "format/codec.h"
#include "table/batch.h"

/* ---- reading ---- */

/* An open file. Nothing in it changes, so any number of scans in any threads may share it. */
typedef struct avro_file avro_file;

/* Reads the header. Takes source on success. CORRUPT, UNSUPPORTED (codec, type), LIMIT. */
tarn_code avro_open(tarn_env *env, io_source *source, avro_file **out,
                    tarn_error *err) TARN_MUST_USE;
void avro_close(avro_file *file); /* after its scans; closes the source; takes NULL */

/* The schema as tarn types (ids where the file has them); lives as long as the file. */
const tarn_type *avro_file_type(const avro_file *file);
tarn_str avro_file_schema_json(const avro_file *file); /* exactly as written */
codec_kind avro_file_codec(const avro_file *file);
const char *avro_file_name(const avro_file *file);
/* Metadata of the header, avro.schema and avro.codec too; false: absent. Borrowed. */
bool avro_file_meta(const avro_file *file, const char *key, tarn_str *value);
size_t avro_file_meta_count(const avro_file *file);
void avro_file_meta_at(const avro_file *file, size_t i, tarn_str *key, tarn_str *value);

typedef struct avro_scan_options {
    const uint8_t *selected; /* nodes of avro_file_type to read; NULL: all. Copied. */
    /* Only blocks whose preceding sync marker begins in [start, end) of the file's bytes: ranges
     * that cover the file give every row once. end 0: to the end. */
    int64_t start;
    int64_t end;
    int64_t batch_rows; /* at most this many; 0: 4096 */
    bool numbered;      /* avro_scan_first_row is asked for: blocks before start are counted */
} avro_scan_options;

/* One pass over a file. One thread at a time; must not outlive the file. */
typedef struct avro_scan avro_scan;
tarn_code avro_scan_open(avro_file *file, const avro_scan_options *options /* NULL: all */,
                         avro_scan **out, tarn_error *err) TARN_MUST_USE;
void avro_scan_close(avro_scan *scan);                  /* takes NULL */
const tarn_type *avro_scan_type(const avro_scan *scan); /* what type_prune makes of the selection */
/* The next rows; batch_rows(out) is 0 at the end. Batches borrow their type from the scan. */
tarn_code avro_scan_next(avro_scan *scan, tarn_batch *out, tarn_error *err) TARN_MUST_USE;
/* Number in the file of the first row of the batch given last (B16); of a numbered scan. */
int64_t avro_scan_first_row(const avro_scan *scan);

/* Rows in the file, from the blocks' heads alone (values are not unpacked). */
tarn_code avro_file_count(avro_file *file, int64_t *rows, tarn_error *err) TARN_MUST_USE;

/* ---- writing ---- */

typedef struct avro_meta {
    tarn_str key;
    tarn_str value;
} avro_meta;

typedef struct avro_write_options {
    tarn_str record_name;  /* of the generated schema; empty: "table" */
    tarn_str schema_json;  /* exactly this schema (it must fit the type); empty: generated */
    const avro_meta *meta; /* besides avro.schema and avro.codec */
    size_t n_meta;
    codec_kind codec;   /* NONE, DEFLATE (GZIP says the same here), SNAPPY, ZSTD, BZIP2 */
    int level;          /* CODEC_LEVEL_DEFAULT or the codec's */
    size_t block_bytes; /* before packing; 0: 128 KiB */
} avro_write_options;

#define AVRO_WRITE_OPTIONS_INIT                                                                    \
    { {NULL, 0}, {NULL, 0}, NULL, 0, CODEC_DEFLATE, CODEC_LEVEL_DEFAULT, 0 }

typedef struct avro_writer avro_writer;
/* Writes the header. Takes sink on success. type is copied. INVALID: a schema_json that does not
 * fit the type, a codec that Avro has not. */
tarn_code avro_writer_open(tarn_env *env, io_sink *sink, const tarn_type *type,
                           const avro_write_options *options, avro_writer **out,
                           tarn_error *err) TARN_MUST_USE;
/* Appends rows of the writer's type (same shape). */
tarn_code avro_writer_write(avro_writer *writer, const tarn_batch *batch,
                            tarn_error *err) TARN_MUST_USE;
/* Bytes so far, those waiting in the open block as if unpacked: for rolling by size. */
int64_t avro_writer_bytes(const avro_writer *writer);
int64_t avro_writer_rows(const avro_writer *writer);
/* Writes what waits, finishes the sink. The writer is gone in every case; after a failure nothing
 * is visible. bytes, rows may be NULL. */
tarn_code avro_writer_finish(avro_writer *writer, int64_t *bytes, int64_t *rows,
                             tarn_error *err) TARN_MUST_USE;
void avro_writer_abort(avro_writer *writer); /* aborts the sink; takes NULL */

/* The Avro schema for a struct type by Iceberg's rules, appended as JSON: nested records r<id>, ids
 * as attributes, optional as ["null", X] with default null (list elements and
 * map values never), maps with other keys than strings as arrays of key and value, decimals and
 * uuids as fixed, names made valid with the true name in iceberg-field-name. */
tarn_code avro_schema_from_type(tarn_env *env, const tarn_type *type, tarn_str record_name,
                                tarn_buf *out, tarn_error *err) TARN_MUST_USE;

/* A name that Avro allows, by Iceberg's escape rules ("a.b" -> "a_x2Eb", "9" -> "_9"); appended. A
 * valid name is kept. Letters and digits are Unicode's within the basic plane, as in Java. */
tarn_code avro_name_sanitize(tarn_str name, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
