/* table/batch.h - rows: Arrow arrays in the one layout that all rooms use, views to read them,
 * builders to make them.
 *
 * Canonical layout by kind (Arrow format string):
 *   boolean b | int i | long l | float f | double g | decimal d:P,S (16 bytes little-endian) | date
 * tdD | time ttu | timestamp tsu: | timestamptz tsu:UTC | timestamp_ns tsn: | timestamptz_ns
 * tsn:UTC | string u | uuid w:16 | fixed w:L | binary z | unknown n (no buffers) | geometry,
 * geography z | variant +s of metadata z, value z | struct +s | list +l | map +m (struct "entries"
 * of key, value) 32-bit offsets; no dictionaries; array offsets may be non-zero at any level (views
 * hide them). Invariants: 1 a batch's array has as many children as its struct type has fields, in
 * that order, each as long as the batch says; 2 a validity buffer may be absent only where nothing
 * is null; the root struct itself is never null; 3 offsets never decrease and end within the bytes
 * or the child; 4 strings are valid UTF-8 (whoever makes a batch from outside bytes has checked
 * it). Whoever takes rows from outside (formats, api) establishes these; everybody else relies on
 * them. batch_validate checks them. */
#ifndef TABLE_BATCH_H
#define TABLE_BATCH_H

#include <tarn/arrow.h>

#include "base/num.h"
#include "table/type.h"
#include "table/value.h"

typedef struct tarn_batch {
    struct ArrowArray
        array; /* a struct array; release is NULL when the batch is empty or was moved */
    const tarn_type *type; /* its struct type, borrowed from whoever made it */
} tarn_batch;

static inline int64_t batch_rows(const tarn_batch *batch) {
    return batch->array.release != NULL ? batch->array.length : 0;
}
void batch_release(tarn_batch *batch); /* also of a zeroed one */
void batch_move(tarn_batch *dst, tarn_batch *src);
tarn_code batch_validate(const tarn_batch *batch, tarn_error *err) TARN_MUST_USE;

/* ---- reading ---- */
typedef struct tarn_view {
    const tarn_type *type;
    const struct ArrowArray *array;
    int64_t start;           /* logical index of the first row within array's buffers */
    int64_t length;          /* rows */
    const uint8_t *validity; /* NULL: no nulls; bit of row i is start + i */
    const void *values;      /* fixed width: already at row 0; boolean: bitmap, bit start + i */
    const int32_t *offsets;  /* string, binary, list, map: already at row 0, length + 1 of them */
    const uint8_t *bytes;    /* string, binary data */
} tarn_view;

void view_column(const tarn_batch *batch, int32_t column, tarn_view *out);
/* Struct: field i with the same rows. Variant: metadata i=0, value i=1. List and map: i = 0, the
 * child array whole (list element; map: key i=0, value i=1); use offsets to index it. */
void view_child(const tarn_view *view, int32_t i, tarn_view *out);
static inline bool view_is_null(const tarn_view *v, int64_t i) {
    return v->validity != NULL ? !bit_get(v->validity, v->start + i)
                               : v->type->kind == TARN_UNKNOWN;
}
static inline bool view_bool(const tarn_view *v, int64_t i) {
    return bit_get((const uint8_t *)v->values, v->start + i);
}
static inline tarn_str view_bytes(const tarn_view *v, int64_t i) {
    return str_make(v->bytes != NULL ? v->bytes + v->offsets[i] : NULL,
                    (size_t)(v->offsets[i + 1] - v->offsets[i]));
}
int64_t view_null_count(const tarn_view *v);
void view_value(const tarn_view *v, int64_t i,
                tarn_value *out); /* primitive kinds; bytes borrowed */
/* One value as single-value JSON, nested kinds too: structs as objects by NAME, lists, maps
 * {"keys":[],"values":[]}. */
void view_put_json(const tarn_view *v, int64_t i, json_writer *w);

/* Any canonical array of a type, alone. */
void view_array(const struct ArrowArray *array, const tarn_type *type, tarn_view *out);

/* The column of a field id at any depth below structs (not inside lists or maps), where nulls of
 * parent structs count as its own. Hold it as long as the view is used. */
typedef struct tarn_path_view {
    tarn_env *env;
    tarn_view view;
    uint8_t *validity; /* own memory where parents' nulls were folded in, else NULL */
} tarn_path_view;
/* INTERNAL when the batch has no such column. */
tarn_code path_view_init(tarn_path_view *out, tarn_env *env, const tarn_batch *batch,
                         int32_t field_id, tarn_error *err) TARN_MUST_USE;
void path_view_release(tarn_path_view *path); /* also of a zeroed one */

/* ---- making ---- */
typedef struct tarn_builder tarn_builder;
/* Open for hot loops; keep to the functions elsewhere. Bits of validity exist once a null was seen.
 */
struct tarn_builder {
    tarn_env *env;
    const tarn_type *type;
    int64_t length;   /* rows so far */
    int64_t capacity; /* rows that values, offsets (and validity if there) have room for */
    int64_t null_count;
    uint8_t *validity; /* NULL until the first null */
    uint8_t *values;   /* fixed width, or bits for boolean */
    int32_t *offsets;  /* length + 1 */
    uint8_t *bytes;
    size_t bytes_len;
    size_t bytes_cap;
    tarn_builder *children; /* struct fields; list element; map key and value */
    int32_t n_children;
};

tarn_code builder_init(tarn_builder *b, tarn_env *env, const tarn_type *type,
                       tarn_error *err) TARN_MUST_USE;
void builder_release(tarn_builder *b);      /* also of a zeroed one */
void builder_reset(tarn_builder *b);        /* no rows, keeps memory */
size_t builder_held(const tarn_builder *b); /* memory, whether rows fill it or not */
tarn_code builder_reserve(tarn_builder *b, int64_t extra_rows, tarn_error *err) TARN_MUST_USE;
tarn_code builder_reserve_bytes(tarn_builder *b, size_t extra_bytes,
                                tarn_error *err) TARN_MUST_USE; /* LIMIT beyond LIMIT_BATCH_BYTES */
tarn_code builder_need_validity(tarn_builder *b,
                                tarn_error *err) TARN_MUST_USE; /* makes validity, all set so far */
/* A null; for a struct its children get nulls too. */
tarn_code builder_null(tarn_builder *b, tarn_error *err) TARN_MUST_USE;
tarn_code builder_nulls(tarn_builder *b, int64_t n, tarn_error *err) TARN_MUST_USE;
tarn_code builder_fixed(tarn_builder *b, const void *value,
                        tarn_error *err) TARN_MUST_USE; /* type_width bytes */
tarn_code builder_bool(tarn_builder *b, bool value, tarn_error *err) TARN_MUST_USE;
tarn_code builder_bytes(tarn_builder *b, tarn_str value, tarn_error *err) TARN_MUST_USE;
tarn_code builder_value(tarn_builder *b, const tarn_value *value, tarn_error *err) TARN_MUST_USE;
/* Closes one non-null row of a struct whose children were appended, or of a list or map up to its
 * child's present length. */
tarn_code builder_close(tarn_builder *b, tarn_error *err) TARN_MUST_USE;
/* The field's default, or null: the one for writing, or the initial one. The builder is of its
 * type. */
tarn_code builder_default(tarn_builder *b, const tarn_field *field, bool writes,
                          tarn_error *err) TARN_MUST_USE;
/* Appends rows [start, start+n) of a view of the same shape (kinds and parameters), fast. */
tarn_code builder_view(tarn_builder *b, const tarn_view *view, int64_t start, int64_t n,
                       tarn_error *err) TARN_MUST_USE;
/* Appends the rows named by index. */
tarn_code builder_gather(tarn_builder *b, const tarn_view *view, const int32_t *index, int64_t n,
                         tarn_error *err) TARN_MUST_USE;
/* Takes back the last row(s) so that length is again n (a row that turned out bad). */
void builder_truncate(tarn_builder *b, int64_t n);
/* Moves what was built into out; the builder is empty again (its memory is gone with out). */
tarn_code builder_finish(tarn_builder *b, struct ArrowArray *out, tarn_error *err) TARN_MUST_USE;
/* A struct builder's rows as a batch. */
tarn_code builder_finish_batch(tarn_builder *b, tarn_batch *out, tarn_error *err) TARN_MUST_USE;
/* The rows as bytes, appended to out, for a temporary file of this process; and back into a builder
 * without rows of the same type, to be released after a failure. */
tarn_code builder_dump(const tarn_builder *b, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code builder_load(tarn_builder *b, tarn_str bytes, tarn_error *err) TARN_MUST_USE;

/* ---- whole batches ---- */
/* Rows [start, start+n) sharing buffers: src is kept alive by a counted reference, and may be
 * released by its owner. src must own its buffers (release non-NULL); src's array is rewritten in
 * place into a shared form, and stays valid. */
tarn_code batch_slice(tarn_env *env, tarn_batch *src, int64_t start, int64_t n, tarn_batch *out,
                      tarn_error *err) TARN_MUST_USE;
tarn_code batch_gather(tarn_env *env, const tarn_batch *src, const int32_t *index, int64_t n,
                       tarn_batch *out, tarn_error *err) TARN_MUST_USE;
/* Keeps rows whose bit is set in selection (bit i for row i). */
tarn_code batch_filter(tarn_env *env, const tarn_batch *src, const uint8_t *selection,
                       tarn_batch *out, tarn_error *err) TARN_MUST_USE;
tarn_code batch_concat(tarn_env *env, const tarn_batch *const *batches, size_t n, tarn_batch *out,
                       tarn_error *err) TARN_MUST_USE; /* same shape; n >= 1 */
/* A struct array of these children (moved in; released on failure too). For projections that reuse
 * columns. */
tarn_code batch_assemble(tarn_env *env, const tarn_type *type, int64_t rows,
                         struct ArrowArray *children, tarn_batch *out,
                         tarn_error *err) TARN_MUST_USE;
int64_t batch_bytes(const tarn_batch *batch); /* memory of the visible rows, roughly */

/* ---- edges: ArrowSchema ---- */
/* Field ids travel as metadata "PARQUET:field_id", uuid as extension "arrow.uuid" and defaults for
 * writing, as JSON, as "tarn.write-default". */
tarn_code type_to_arrow(tarn_env *env, const tarn_type *root, struct ArrowSchema *out,
                        tarn_error *err) TARN_MUST_USE;
/* Any Arrow schema whose rows batch_import can take (narrower ints, large and view strings,
 * dictionaries, other units, ...). */
tarn_code type_from_arrow(tarn_arena *arena, const struct ArrowSchema *schema,
                          const tarn_type **out, tarn_error *err) TARN_MUST_USE;
/* The type that type_from_arrow made of the schema, with the defaults for writing that columns (and
 * fields of structs) have: what is absent of rows to be read for a table is theirs. */
tarn_code type_defaults_from_arrow(tarn_arena *arena, const struct ArrowSchema *schema,
                                   const tarn_type *type, const tarn_type **out,
                                   tarn_error *err) TARN_MUST_USE;
/* An outside array as a canonical batch of type (as type_from_arrow gave it): shares what fits,
 * converts what does not, checks what is not to be trusted (offsets, UTF-8). Takes array (moves it)
 * on success only. */
tarn_code batch_import(tarn_env *env, const struct ArrowSchema *schema, struct ArrowArray *array,
                       const tarn_type *type, tarn_batch *out, tarn_error *err) TARN_MUST_USE;

#endif
