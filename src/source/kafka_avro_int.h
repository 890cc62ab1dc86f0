/* source/kafka_avro_int.h - what the files of Avro messages share: the run that is being decoded.
 */
#ifndef SOURCE_KAFKA_AVRO_INT_H
#define SOURCE_KAFKA_AVRO_INT_H

#include "source/kafka_int.h"

#ifdef TARN_KAFKA

#include "source/registry.h"

struct kafka_avro {
    tarn_env *env;
    schema_registry *registry;
    rd_kafka_message_t *held; /* begins the next run */
    tarn_arena arena;         /* of the run: types */
    tarn_buf blocks;
    tarn_buf ends; /* size_t a message: where its block ends */
    tarn_buf keys; /* of messages of envelopes, one after the other */
    tarn_buf key_ends;
    tarn_buf header;
    tarn_buf file;
    tarn_buf key_file; /* a key, as a file */
    int64_t n;         /* messages of the run */
    int64_t given;     /* of them, done */
    int64_t step;      /* decoded at once: the run, or 1 */
    avro_file *avro;
    avro_scan *scan;
    const tarn_type *type; /* of the rows given; in arena */
    tarn_buf kinds;
    bool ended;
};

/* ---- kafka_avro.c ---- */
/* The number of a schema, before a datum; false: there is none. */
bool kafka_avro_wire_id(const void *bytes, size_t len, int32_t *id);
/* A datum as a container file of one block, in the place of what was in out. */
tarn_code kafka_avro_put_file(tarn_buf *out, tarn_str schema, tarn_str datum,
                              tarn_error *err) TARN_MUST_USE;
/* Message i of the run, without its schema's number. */
tarn_str kafka_avro_datum(const kafka_avro *a, int64_t i);
/* Its key, as it came; len 0: it had none. */
tarn_str kafka_avro_key(const kafka_avro *a, int64_t i);
/* -1: the type has no such column. */
int32_t kafka_avro_field(const tarn_type *type, tarn_str name);

/* ---- kafka_envelope.c ---- */
/* Envelopes, the last rows of the run that were decoded, become the rows that they are about. IO:
 * the schema of a key could not be had; nothing was told or done. */
tarn_code kafka_envelopes_open(kafka_source *k, tarn_batch *batch, tarn_error *err) TARN_MUST_USE;

#endif
#endif
