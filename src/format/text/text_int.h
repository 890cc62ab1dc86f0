/* format/text/text_int.h - what the files of this folder share: the plan (a schema made ready for
 * matching), the decoder (one chunk's state) and appending to builders without calls.
 *
 * Invariants: a plan never changes once made and serves any number of decoders at once; a chunk's
 * bytes end with '\n' and TEXT_PADDING zeros, so that scanners may look ahead without asking.
 * A decoding function answers TARN_INVALID for a bad record, with the words in decoder.reason and
 * err untouched; every other code is fatal and told in err. */
#ifndef FORMAT_TEXT_TEXT_INT_H
#define FORMAT_TEXT_TEXT_INT_H

#include "base/limits.h"
#include "base/num.h"
#include "format/text/text.h"
#include "format/variant/variant.h"
#include "table/row_kind.h"

#define TEXT_PADDING      64
#define TEXT_REASON_BYTES 400
#define TEXT_BATCH_ROWS   16384
#define TEXT_CHUNK_BYTES  ((size_t)2 << 20)

typedef struct text_node text_node;
struct text_node {
    const tarn_type *type;
    tarn_kind kind;
    bool required;
    bool is_key; /* of root: rows that delete must have it too */
    tarn_str name;
    const tarn_field *fallback; /* whose write default stands for an absent member; NULL: null */
    tarn_value absent;          /* it, of a primitive */
    const text_node *parent;    /* NULL: the root */
    text_node *children;        /* struct fields; element; key and value */
    int32_t n_children;
    int32_t predict_at; /* struct: where its n_children + 1 entries of decoder.successor begin */
    uint32_t n_slots;   /* struct: hash table of names; a power of two */
    int32_t *slots;     /* child + 1, 0: free */
    /* name as it stands in a record, with its closing quote; the first 8 bytes for comparing */
    const char *key;
    size_t key_len;
    uint64_t key_word;
    uint64_t key_mask;
};

/* How a change stream spells the values of a column (text_change.c). */
typedef struct text_spelling {
    uint8_t how;
    int8_t digits; /* of times and decimals, behind the point */
} text_spelling;

typedef struct text_plan {
    tarn_arena arena;
    text_options options; /* with defaults filled in */
    text_node root;
    bool has_kinds;           /* then root.type has no required columns, but root.children say */
    text_spelling *spellings; /* Debezium: of root's children where no schema tells; else NULL */
    int32_t n_predict;
    bool null_begins[256]; /* whether a null text begins with the byte */
    bool null_empty;
    /* CSV: field of root for each column of the file, -1: ignored. Set once the header is known. */
    int32_t *columns;
    int32_t n_columns;
    int32_t *absent; /* fields that no column gives */
    int32_t n_absent;
} text_plan;

typedef struct text_decoder {
    tarn_env *env;
    const text_plan *plan;
    tarn_builder rows;
    int32_t *successor; /* which member came after which, last time */
    tarn_buf scratch;   /* unescaped strings */
    tarn_buf nested;    /* JSON text of a CSV cell */
    tarn_buf key_slots; /* hash table of the keys of a large map */
    const char *record; /* start of the record at hand */
    const char *p;
    const char *end; /* of the chunk, without padding */
    int64_t lines;   /* ends of lines inside of records that were read (CSV) */
    tarn_buf kinds;  /* of rows, one a byte, where the plan has kinds */
    /* Debezium: how the columns at hand are spelt; NULL: as everywhere. What the schema seen last
     * says, and its text. */
    const text_spelling *spellings;
    text_spelling *told;
    tarn_buf schema;
    tarn_buf variant_names; /* of the variant at hand, and its value */
    variant_maker variant;
    int32_t date_text_days;
    uint64_t date_text[2]; /* the ten bytes of the last date, for columns where dates repeat */
    tarn_error *err;
    char reason[TEXT_REASON_BYTES];
} text_decoder;

/* ---- text_plan.c ---- */
tarn_code text_plan_init(text_plan *plan, tarn_env *env, const tarn_type *root,
                         const text_options *options, tarn_error *err) TARN_MUST_USE;
void text_plan_release(text_plan *plan);
/* Fills in defaults and refuses nonsense. */
tarn_code text_options_check(const text_options *given, text_options *out,
                             tarn_error *err) TARN_MUST_USE;
int32_t text_plan_find(const text_plan *plan, const text_node *node, tarn_str name); /* -1: none */

tarn_code text_decoder_init(text_decoder *d, tarn_env *env, const text_plan *plan,
                            tarn_error *err) TARN_MUST_USE;
void text_decoder_release(text_decoder *d); /* also of a zeroed one */
/* Sets the reason, "column a.b: ..." where node is not the root, and returns TARN_INVALID. */
tarn_code text_bad(text_decoder *d, const text_node *node, const char *fmt, ...) TARN_PRINTF(3, 4);

/* ---- text_value.c ---- */
/* A null, if the column may have one. */
tarn_code text_put_null(text_decoder *d, const text_node *node, tarn_builder *b);
/* What a row that does not name the column has there: its default for writing, else null. */
tarn_code text_put_absent(text_decoder *d, const text_node *node, tarn_builder *b);
/* A primitive from its text: a CSV cell, a JSON string where the type is written as one, or a JSON
 * number. */
tarn_code text_put_text(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text);
bool text_is_null(const text_plan *plan, tarn_str cell);

/* ---- text_variant.c ---- */
/* A variant from JSON that was checked. */
tarn_code text_put_variant(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str json);

/* ---- text_json.c ---- */
/* One record at d->p, not blank; on success a row was added and d->p is at the '\n'. */
tarn_code text_json_record(text_decoder *d);
/* A nested value from the JSON text of a cell. */
tarn_code text_json_cell(text_decoder *d, const text_node *node, tarn_builder *b, tarn_str text);

/* Parts of it, for envelopes: a struct as a row of root, a value into a builder, the string at d->p
 * (until the next one), a member's name with its colon, a value that nobody asked for. */
tarn_code text_json_row(text_decoder *d);
tarn_code text_json_value(text_decoder *d, const text_node *node, tarn_builder *b);
tarn_code text_json_string(text_decoder *d, const text_node *node, tarn_str *out);
tarn_code text_json_name(text_decoder *d, tarn_str *out);
tarn_code text_json_skip(text_decoder *d);
tarn_code text_json_expected(text_decoder *d, const char *p, const char *what);
const char *text_json_space(const char *p);
/* Behind the JSON number at p; NULL: none is there. */
const char *text_json_number(const char *p, bool *whole);

/* ---- text_change.c ---- */
/* Behind a record's value there may stand this byte and, as JSON, its message's key. */
#define TEXT_KEY_MARK '\x1e'
tarn_code text_change_plan(text_plan *plan, tarn_error *err) TARN_MUST_USE;
/* The envelope at d->p, as text_json_record, but it may add no row or two. */
tarn_code text_change_record(text_decoder *d);
/* A value of a column of root, by d->spellings. */
tarn_code text_change_value(text_decoder *d, const text_node *node, tarn_builder *b);
/* Kind and completeness of the row that was added last, by the column that says the kind. */
tarn_code text_kind_row(text_decoder *d);
/* The rows' type by the schema of an envelope; *out NULL: there is none in it. */
tarn_code text_change_type(tarn_arena *arena, const json_value *record, const tarn_type **out,
                           tarn_error *err) TARN_MUST_USE;

/* ---- text_csv.c ---- */
typedef struct text_cell {
    tarn_str text; /* in the chunk or in scratch, until the next cell */
    bool quoted;
    bool last; /* the record ended behind it */
    int64_t lines;
} text_cell;
/* The cell at *p; *p moves behind it and its delimiter. false: a quote is open or has text behind
 * it (*why says which). */
tarn_code text_csv_cell(const text_options *o, const char **p, const char *end, tarn_buf *scratch,
                        text_cell *out, const char **why, tarn_error *err) TARN_MUST_USE;
/* Behind the '\n' that ends the record at p; NULL when it is not in [p, end). whole: no more bytes
 * will follow end. */
const char *text_csv_record_end(const text_options *o, const char *p, const char *end, bool whole);
/* Bytes of whole records at the front of [p, end), p being the start of one. */
size_t text_csv_cut(const text_options *o, const char *p, const char *end);
tarn_code text_csv_record(text_decoder *d);
/* The header's names (or column1...), copied; duplicates are INVALID. */
tarn_code text_csv_header(tarn_arena *arena, const text_options *o, const char *name,
                          const char **p, const char *end, tarn_str **names, int32_t *n,
                          tarn_error *err) TARN_MUST_USE;
tarn_code text_csv_bind(text_plan *plan, const char *name, const tarn_str *names, int32_t n,
                        tarn_error *err) TARN_MUST_USE;

/* ---- text_chunk.c ---- */
/* The stream's bytes in pieces of whole records. */
typedef struct text_chunker {
    tarn_env *env;
    io_stream *stream; /* borrowed */
    const text_options *options;
    tarn_buf carry; /* the beginning of a record */
    bool started;
    bool ended;
    int64_t bytes_read;
    int64_t bytes_given; /* in pieces */
} text_chunker;
void text_chunker_init(text_chunker *c, tarn_env *env, io_stream *stream,
                       const text_options *options);
void text_chunker_release(text_chunker *c);
/* Next piece into bytes: whole records of about target bytes, ended as said above; *len 0 at the
 * end of the stream. *skip bytes at its front are a mark and no record. */
tarn_code text_chunker_next(text_chunker *c, size_t target, tarn_buf *bytes, size_t *skip,
                            size_t *len, tarn_error *err) TARN_MUST_USE;

/* ---- appending without a call where there is room ---- */
static inline tarn_code text_room(tarn_builder *b, tarn_error *err) {
    tarn_code code = b->length < b->capacity ? TARN_OK : builder_reserve(b, 1, err);
    if (b->validity != NULL && code == TARN_OK) {
        bit_set(b->validity, b->length);
    }
    return code;
}
static inline tarn_code text_append_i64(tarn_builder *b, int64_t v, tarn_error *err) {
    tarn_code code = text_room(b, err);
    if (code == TARN_OK) {
        memcpy(b->values + (size_t)b->length * sizeof v, &v, sizeof v);
        b->length++;
    }
    return code;
}
static inline tarn_code text_append_i32(tarn_builder *b, int32_t v, tarn_error *err) {
    tarn_code code = text_room(b, err);
    if (code == TARN_OK) {
        memcpy(b->values + (size_t)b->length * sizeof v, &v, sizeof v);
        b->length++;
    }
    return code;
}
/* Short texts are copied as 16 bytes: there is padding behind what is read, and room was made. */
static inline tarn_code text_append_bytes(tarn_builder *b, const char *p, size_t len,
                                          tarn_error *err) {
    tarn_code code = text_room(b, err);
    if (code == TARN_OK && b->bytes_cap - b->bytes_len < len + 16) {
        code = builder_reserve_bytes(b, len + 16, err);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (len <= 16) {
        memcpy(b->bytes + b->bytes_len, p, 16);
    } else {
        memcpy(b->bytes + b->bytes_len, p, len);
    }
    b->bytes_len += len;
    b->length++;
    b->offsets[b->length] = (int32_t)b->bytes_len;
    return TARN_OK;
}

#endif
