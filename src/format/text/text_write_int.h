/* format/text/text_write_int.h - what the writer's files share: columns bound to a batch, their
 * values as text, and the table for people. */
#ifndef FORMAT_TEXT_TEXT_WRITE_INT_H
#define FORMAT_TEXT_TEXT_WRITE_INT_H

#include "base/num.h"
#include "format/text/text.h"

#define TEXT_VALUE_BYTES 64 /* the longest text of a value of bounded length, and more */

/* A column, made once from its type and bound to each batch. */
typedef struct text_column text_column;
struct text_column {
    const tarn_type *type;
    tarn_str name;
    tarn_str member; /* "name": as JSON, with a comma in front unless it is the first */
    tarn_view view;
    text_column *children;
    int32_t n_children;
};

/* ---- text_format.c ---- */
tarn_code text_column_init(text_column *column, tarn_arena *arena, const tarn_type *type,
                           tarn_error *err) TARN_MUST_USE;
/* The columns of root (a column of a struct type) to those of batch. */
void text_column_bind(text_column *root, const tarn_batch *batch);
/* Whether values of the type are JSON without quotes, but for NaN and infinities. */
bool text_is_number(const tarn_type *type);
/* Single-value JSON (spec, Appendix D) of row i. */
tarn_code text_put_json(const text_column *column, int64_t i, tarn_buf *out,
                        tarn_error *err) TARN_MUST_USE;
/* The same without quotes at the outside; row i is not null. */
tarn_code text_put_plain(const text_column *column, int64_t i, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE;

/* ---- text_table.c ---- */
typedef struct text_table text_table;
/* root stays the caller's and must be bound when rows are added. Text goes to out. */
tarn_code text_table_new(tarn_env *env, const text_column *root, const text_options *options,
                         tarn_buf *out, text_table **table, tarn_error *err) TARN_MUST_USE;
tarn_code text_table_row(text_table *table, int64_t i, tarn_error *err) TARN_MUST_USE;
/* Header and the rows held back; from here on rows go straight out. */
tarn_code text_table_flush(text_table *table, tarn_error *err) TARN_MUST_USE;
void text_table_free(text_table *table); /* takes NULL */

#endif
