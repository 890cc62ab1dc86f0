/* dml/dml_int.h - what delete, update and merge share: the work of one plan, the rows that an
 * operation chooses, and how a file loses them (rewrite.c). */
#ifndef DML_DML_INT_H
#define DML_DML_INT_H

#include "dml/dml.h"
#include "write/files/delete_writer.h"

typedef struct dml_work dml_work;

/* What an operation does with rows. All are called on one thread; members may be NULL. */
typedef struct dml_action {
    void *ctx;
    /* Before the plan: w->base is loaded; may set w->filter. */
    tarn_code (*begin)(dml_work *w, tarn_error *err);
    /* After the plan, before any row. */
    tarn_code (*planned)(dml_work *w, tarn_error *err);
    /* Columns that choose needs; NULL where it is the filter that chooses. */
    const tarn_type *(*columns)(dml_work *w);
    /* Which rows of a batch are concerned: bits of selection, overwritten. last: the rows' fate is
     * decided (not only counted). NULL: those for which the filter is true. */
    tarn_code (*choose)(dml_work *w, const tarn_batch *batch, bool last, uint8_t *selection,
                        int64_t *n, tarn_error *err);
    /* What stands in for the rows chosen last (of w->row_type, both). NULL: nothing, they are
     * deleted. */
    tarn_code (*replace)(dml_work *w, const tarn_batch *rows, tarn_batch *out, tarn_error *err);
    /* After all files: rows to add (write_rows). */
    tarn_code (*finish)(dml_work *w, tarn_error *err);
} dml_action;

struct dml_work {
    tarn_env *env;
    tarn_catalog *catalog;
    const tarn_ident *table;
    const dml_options *options;
    const dml_action *action;
    const tarn_file *added; /* the caller's */
    int32_t n_added;
    dml_result *out;
    /* of one plan */
    tarn_arena arena;
    tarn_table_version *base;
    const tarn_expr *filter; /* unbound */
    tarn_plan *plan;
    const tarn_type *row_type; /* of rows that are written: the schema's, v3's row lineage */
    bool lineage;
    data_writer *writer;
    delete_writer *deletes;
    tarn_entry *removed;
    int32_t n_removed;
    tarn_evaluator evaluator; /* of the spec last met */
    tarn_buf positions;       /* int64, of one file */
    uint8_t *selection;
    size_t selection_cap;
};

/* Plans, lets every file lose its rows, commits; plans again on conflict. */
tarn_code dml_run(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table, dml_work *w,
                  tarn_error *err) TARN_MUST_USE;
/* One file of the plan (rewrite.c). */
tarn_code dml_do_task(dml_work *w, const scan_task *task, tarn_error *err) TARN_MUST_USE;
/* Rows of w->row_type into data files. */
tarn_code dml_write_rows(dml_work *w, tarn_batch *rows, tarn_error *err) TARN_MUST_USE;
/* A copy of rows (of w->row_type) in which some columns are new: make appends values for a field to
 * a builder, or says no. */
typedef tarn_code (*dml_column_fn)(void *ctx, const tarn_field *field, const tarn_batch *rows,
                                   tarn_builder *out, bool *made, tarn_error *err);
tarn_code dml_replace_columns(dml_work *w, const tarn_batch *rows, dml_column_fn make, void *ctx,
                              tarn_batch *out, tarn_error *err) TARN_MUST_USE;

#endif
