/* format/avro/avro_op.h - the ops of a decode plan: made by avro_plan.c, run by avro_decode.c.
 *
 * An op with a body is followed by it: the body is [op + 1, op + span), and span is 1 for ops
 * without one. Where a builder is named it gets exactly one value each time the op is run. */
#ifndef FORMAT_AVRO_AVRO_OP_H
#define FORMAT_AVRO_AVRO_OP_H

#include "format/avro/avro_int.h"

typedef enum avro_opcode {
    /* over what was not selected */
    AVRO_OP_SKIP_VARINTS,  /* n of them */
    AVRO_OP_SKIP_BYTES,    /* n */
    AVRO_OP_SKIP_SIZED,    /* n values behind their length */
    AVRO_OP_SKIP_OPTIONAL, /* body: the value of a union whose other branch is number null_at, null
                            */
    AVRO_OP_SKIP_UNION,    /* body: branches, branch i is [jumps[i], jumps[i + 1]) */
    AVRO_OP_SKIP_ITEMS, /* body: one item of an array or map; flat: it is n varints, then n_sized */
    /* into a builder */
    AVRO_OP_NULL,
    AVRO_OP_BOOLEAN,
    AVRO_OP_INT,
    AVRO_OP_LONG,
    AVRO_OP_SCALED, /* a varint times n */
    AVRO_OP_FIXED,  /* n bytes as they are: float, double, fixed */
    AVRO_OP_BYTES,
    AVRO_OP_STRING, /* must be UTF-8 */
    AVRO_OP_ENUM,
    AVRO_OP_UUID_TEXT,
    AVRO_OP_DECIMAL,  /* n > 0: of n bytes; 0: behind its length */
    AVRO_OP_CLOSE,    /* a row of a struct, its fields were read */
    AVRO_OP_OPTIONAL, /* as SKIP_OPTIONAL; the builder gets a null, or what the body gives it */
    AVRO_OP_UNION,    /* as SKIP_UNION; a struct builder of which one child gets the value */
    AVRO_OP_ITEMS     /* body: one item of an array or map; the list or map builder is closed */
} avro_opcode;

struct avro_op {
    avro_opcode code;
    uint32_t span;
    size_t n;
    size_t n_sized; /* see SKIP_ITEMS */
    bool flat;
    int32_t null_at;
    size_t min_bytes;          /* the least that one item takes */
    const avro_schema *schema; /* enum, union */
    const size_t *jumps;       /* indexes from this op on */
    tarn_builder *b;
};

#endif
