/* format/parquet/thrift.h - the Thrift compact protocol, both ways, driven by descriptions of
 * structs.
 *
 * A described C struct begins with `uint32_t has`: bit <field id> says that the field is there, so
 * that what was read is written again exactly, and unions are structs with one bit. Ids are 1..31.
 * Reading checks everything (ends, kinds, ranges, required fields, nesting of what it skips) and
 * borrows binaries from the input; unknown fields are skipped. Lists live in the arena. */
#ifndef FORMAT_PARQUET_THRIFT_H
#define FORMAT_PARQUET_THRIFT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

typedef enum thrift_kind {
    THRIFT_BOOL,   /* bool */
    THRIFT_I8,     /* int8_t */
    THRIFT_I16,    /* int16_t */
    THRIFT_I32,    /* int32_t; enums too */
    THRIFT_I64,    /* int64_t */
    THRIFT_DOUBLE, /* double */
    THRIFT_BINARY, /* tarn_str, borrowed from the input */
    THRIFT_STRUCT, /* the described struct, in place */
    THRIFT_LIST,   /* pointer to items, with an int32_t count */
    THRIFT_EMPTY,  /* a struct without fields that matter: only its bit; written as an empty struct
                    */
    THRIFT_SEEN    /* anything: only its bit; never written */
} thrift_kind;

typedef struct thrift_struct thrift_struct;

typedef struct thrift_field {
    uint8_t id;
    uint8_t kind;              /* thrift_kind */
    uint8_t item;              /* list: thrift_kind of the items */
    bool required;             /* reading fails without it; writing always writes it */
    uint16_t offset;           /* of the member; list: of the pointer */
    uint16_t counter;          /* list: offset of the int32_t count */
    const thrift_struct *type; /* struct, or list of structs */
    const char *name;
} thrift_field;

struct thrift_struct {
    const char *name;
    const thrift_field *fields; /* ascending ids */
    uint16_t n_fields;
    uint16_t size;
};

#define THRIFT_BIT(id)           (UINT32_C(1) << (id))
#define THRIFT_HAS(object, id)   (((object)->has & THRIFT_BIT(id)) != 0)
#define THRIFT_SET(object, id)   ((object)->has |= THRIFT_BIT(id))
#define THRIFT_UNSET(object, id) ((object)->has &= ~THRIFT_BIT(id))

/* Reads one struct from the beginning of data into out (zeroed first); *used (may be NULL) is the
 * number of bytes taken. what names the bytes in errors. The struct is only whole on success. */
tarn_code thrift_decode(tarn_arena *arena, const thrift_struct *type, tarn_str data,
                        const char *what, void *out, size_t *used, tarn_error *err) TARN_MUST_USE;
/* Appends one struct. Required fields are written whether their bit is set or not. */
tarn_code thrift_encode(const thrift_struct *type, const void *object, tarn_buf *out,
                        tarn_error *err) TARN_MUST_USE;

#endif
