/* format/avro/avro_int.h - what the files of this room share: the parsed schema, the decoder, the
 * encoder. Not for other rooms.
 *
 *   avro_schema.c  JSON -> avro_schema          avro_generate.c  tarn_type -> JSON
 *   avro_type.c    avro_schema -> tarn_type     avro_name.c      names that Avro allows
 *   avro_plan.c    schema + selection -> ops    avro_encode.c    schema + batches -> bytes
 *   avro_decode.c  ops + bytes -> builders      avro_write.c     bytes -> container
 *   avro_read.c    container -> blocks */
#ifndef FORMAT_AVRO_AVRO_INT_H
#define FORMAT_AVRO_AVRO_INT_H

#include "base/json.h"
#include "base/num.h"
#include "format/avro/avro.h"
#include "table/batch.h"

#define AVRO_MAGIC      "Obj\1"
#define AVRO_SYNC_BYTES 16
/* Items without bytes (nulls, empty records) that one array or block may claim to hold: nothing in
 * the file stands for them, so nothing else bounds them. */
#define AVRO_EMPTY_ITEMS 1000000

/* The longest fixed type: columns hold many values side by side, whatever the file really has. */
#define AVRO_FIXED_BYTES (1 << 20)

/* ---- schema ---- */

typedef enum avro_kind {
    AVRO_NULL,
    AVRO_BOOLEAN,
    AVRO_INT,
    AVRO_LONG,
    AVRO_FLOAT,
    AVRO_DOUBLE,
    AVRO_BYTES,
    AVRO_STRING,
    AVRO_RECORD,
    AVRO_ENUM,
    AVRO_ARRAY,
    AVRO_MAP,
    AVRO_UNION,
    AVRO_FIXED
} avro_kind;

/* Only logical types that fit what they annotate: others are ignored, as Avro asks. */
typedef enum avro_logical {
    AVRO_PLAIN,
    AVRO_DECIMAL,
    AVRO_UUID,
    AVRO_DATE,
    AVRO_TIME_MILLIS,
    AVRO_TIME_MICROS,
    AVRO_TIMESTAMP_MILLIS,
    AVRO_TIMESTAMP_MICROS,
    AVRO_TIMESTAMP_NANOS,
    AVRO_LOCAL_MILLIS,
    AVRO_LOCAL_MICROS,
    AVRO_LOCAL_NANOS,
    AVRO_DURATION,
    AVRO_KEY_VALUES, /* Iceberg's logicalType "map" of an array of records of key and value */
    AVRO_VARIANT     /* record of metadata and value */
} avro_logical;

typedef struct avro_schema avro_schema;

typedef struct avro_field {
    tarn_str name;         /* in the file */
    tarn_str iceberg_name; /* iceberg-field-name, else name */
    int32_t id;            /* field-id, or TARN_NO_ID */
    tarn_str doc;
    avro_schema *schema;
} avro_field;

/* A node. Named types are shared by all who refer to them, so this is a graph that may have cycles;
 * avro_type.c refuses those, and everything after it may recurse freely. */
struct avro_schema {
    avro_kind kind;
    avro_logical logical;
    tarn_str name; /* full name of record, enum, fixed */
    int32_t precision;
    int32_t scale;
    int32_t size;    /* fixed */
    bool utc;        /* timestamps: adjust-to-utc, true when absent */
    bool entered;    /* avro_type.c is below it */
    int32_t n;       /* fields, branches, symbols */
    int32_t null_at; /* union: the branch that is null, -1: none */
    int32_t ids[2];  /* element-id, or key-id and value-id */
    avro_field *fields;
    avro_schema **branches; /* union; array and map: one, the items */
    tarn_str *symbols;
};

/* what names the file in errors. */
tarn_code avro_schema_parse(tarn_arena *arena, tarn_str json, const char *what, avro_schema **out,
                            tarn_error *err) TARN_MUST_USE;
const char *avro_kind_name(avro_kind kind);

/* The one branch of a union that is not null, or the schema itself when it is no union; NULL for
 * unions of several branches and of none. *null_at as in the schema. */
const avro_schema *avro_schema_value(const avro_schema *schema, int32_t *null_at);

/* The struct type of a root schema. */
tarn_code avro_type_from_schema(tarn_arena *arena, avro_schema *root, const char *what,
                                const tarn_type **out, tarn_error *err) TARN_MUST_USE;

/* ---- decoding ---- */

typedef struct avro_op avro_op;

/* Decodes values of one schema into builders. The plan is an array of ops; ops of nested values
 * follow their owner. */
typedef struct avro_decoder {
    tarn_env *env;
    tarn_builder rows; /* of the pruned type; one row per value */
    avro_op *ops;
    size_t n_ops;
    size_t min_bytes; /* the least that one value takes */
    const uint8_t *p; /* where decoding is; after a failure near what failed */
    const uint8_t *end;
    const char *reason;   /* what was wrong, when CORRUPT came back without words in err */
    uint64_t empty_items; /* of arrays in this call, see AVRO_EMPTY_ITEMS */
} avro_decoder;

/* read_type and selected as type_prune left them (selected NULL: all). Schema and types must
 * outlive the decoder. */
tarn_code avro_decoder_init(avro_decoder *d, tarn_arena *arena, const avro_schema *schema,
                            const tarn_type *full, const uint8_t *selected,
                            const tarn_type *read_type, tarn_error *err) TARN_MUST_USE;
void avro_decoder_release(avro_decoder *d);
/* Appends at most count values found at d->p to d->rows, moving d->p; stops early after the one
 * that reaches the byte at soft_end. *done: how many. */
tarn_code avro_decode(avro_decoder *d, int64_t count, const uint8_t *soft_end, int64_t *done,
                      tarn_error *err) TARN_MUST_USE;

/* ---- encoding ---- */

typedef struct avro_encoder avro_encoder;
/* Fits schema to type: fields by id where both have ids, else by name. Lives in arena. */
tarn_code avro_encoder_new(tarn_arena *arena, const avro_schema *schema, const tarn_type *type,
                           avro_encoder **out, tarn_error *err) TARN_MUST_USE;
void avro_encoder_bind(avro_encoder *e, const tarn_batch *batch);
/* Appends row of the bound batch. INVALID: a null where the schema has none, a value it can't hold.
 */
tarn_code avro_encode(avro_encoder *e, int64_t row, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
