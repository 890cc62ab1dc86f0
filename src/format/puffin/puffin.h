/* format/puffin/puffin.h - Puffin files (Puffin spec): blobs between magics with a JSON footer; and
 * the blob deletion-vector-v1. No I/O: bytes in memory, ranges through io_source. */
#ifndef FORMAT_PUFFIN_PUFFIN_H
#define FORMAT_PUFFIN_PUFFIN_H

#include "base/arena.h"
#include "base/io.h"
#include "base/json.h"
#include "table/positions.h"

typedef struct puffin_property {
    tarn_str key, value;
} puffin_property;

typedef struct puffin_blob { /* Puffin spec, "BlobMetadata" */
    tarn_str type;           /* "deletion-vector-v1", "apache-datasketches-theta-v1" */
    const int32_t *fields;
    int32_t n_fields;
    int64_t snapshot_id, sequence_number; /* -1 for vectors: to be inherited */
    int64_t offset, length;               /* of the blob in the file */
    tarn_str codec;                       /* "", "lz4", "zstd" */
    const puffin_property *properties;
    int32_t n_properties;
} puffin_blob;

typedef struct puffin_footer {
    const puffin_blob *blobs; /* in the arena */
    int32_t n_blobs;
    const puffin_property *properties;
    int32_t n_properties;
    const json_value *document; /* as it is written, unknown members too */
} puffin_footer;

/* Reads and checks the footer of a whole file. CORRUPT names offset and reason. */
tarn_code puffin_read_footer(tarn_arena *arena, io_source *source, puffin_footer *out,
                             tarn_error *err) TARN_MUST_USE;

typedef struct puffin_writer puffin_writer;
/* Takes sink on success. */
tarn_code puffin_writer_new(tarn_env *env, io_sink *sink, puffin_writer **out,
                            tarn_error *err) TARN_MUST_USE;
/* blob says everything but offset, length and codec (blobs are stored as they are); out_offset is
 * where the bytes begin. */
tarn_code puffin_writer_add(puffin_writer *w, const puffin_blob *blob, tarn_str bytes,
                            int64_t *out_offset, tarn_error *err) TARN_MUST_USE;
/* One byte that belongs to no blob, before the next one. */
tarn_code puffin_writer_gap(puffin_writer *w, tarn_error *err) TARN_MUST_USE;
/* Writes the footer (created-by in its properties), finishes the sink, frees w in every case. */
tarn_code puffin_writer_close(puffin_writer *w, int64_t *size_bytes, tarn_error *err) TARN_MUST_USE;
void puffin_writer_abort(puffin_writer *w); /* takes NULL */

/* deletion-vector-v1: length, magic, bitmap, CRC-32. vector_decode checks all four (B20);
 * cardinality -1: not checked. */
tarn_code vector_encode(const tarn_positions *p, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code vector_decode(tarn_env *env, tarn_str bytes, int64_t cardinality, tarn_positions **out,
                        tarn_error *err) TARN_MUST_USE;

#endif
