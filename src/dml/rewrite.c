/* dml/rewrite.c - one data file loses the rows that an operation chose, and gains what stands in
 * for them.
 *
 * Copy-on-write: count the rows first (reading few columns); none? the file stays; all, and nothing
 * stands in for them? it goes; else its rows are read again and go to new files. Merge-on-read: the
 * positions of the rows are collected, rows that stand in for them are written; all? the file goes;
 * else its positions go to the delete writer, with what was deleted in it before. Both see the rows
 * without those that row deletes took already. */
#include "dml/dml_int.h"

#define PATH_COLUMN_ID 2147483546 /* file_path of position deletes (spec, "Reserved Field IDs") */

typedef struct file_rows {
    file_scan *scan;
    tarn_batch batch;
    scan_counters counters;
} file_rows;

static tarn_code open_rows(dml_work *w, const scan_task *task, const tarn_type *wanted,
                           const tarn_expr *filter, file_rows *rows, tarn_error *err) {
    file_scan_options options;
    memset(&options, 0, sizeof options);
    memset(rows, 0, sizeof *rows);
    options.wanted = wanted;
    options.root = w->plan->schema->root;
    options.filter = filter;
    options.parallel = true;
    return task_scan_open(w->plan, task, &options, &rows->scan, err);
}

static tarn_code next_rows(dml_work *w, file_rows *rows, bool *more, tarn_error *err) {
    tarn_code code = TARN_OK;
    batch_release(&rows->batch);
    TRY(env_check_cancel(w->env, err));
    TRY(file_scan_next(rows->scan, &rows->batch, &rows->counters, err));
    *more = batch_rows(&rows->batch) > 0;
done:
    return code;
}

static void close_rows(file_rows *rows) {
    batch_release(&rows->batch);
    file_scan_close(rows->scan);
}

/* The filter of a task's rows: NULL where all match. */
static const tarn_expr *residual(const dml_work *w, const scan_task *task) {
    return w->plan->filter == NULL || task->residual == NULL || task->residual->op == EXPR_TRUE
               ? NULL
               : task->residual;
}

static tarn_code choose(dml_work *w, const tarn_batch *batch, const tarn_expr *filter, bool last,
                        int64_t *n, tarn_error *err) {
    size_t bytes = bit_bytes(batch_rows(batch)) + 8;
    if (bytes > w->selection_cap) {
        uint8_t *selection = env_realloc(w->env, w->selection, bytes);
        if (selection == NULL) {
            return err_nomem(err);
        }
        w->selection = selection;
        w->selection_cap = bytes;
    }
    if (w->action->choose != NULL) {
        return w->action->choose(w, batch, last, w->selection, n, err);
    }
    return expr_eval(w->env, filter != NULL ? filter : expr_true(), batch, w->selection, n, err);
}

/* Rows of the file that row deletes left; -1: not known without reading. */
static tarn_code live_rows(dml_work *w, const scan_task *task, int64_t *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_positions *gone = NULL;
    *out = task->file.record_count;
    for (int32_t i = 0; i < task->n_deletes; i++) {
        if (task->deletes[i]->file.content == TARN_CONTENT_EQUALITY_DELETES) {
            *out = -1;
            return TARN_OK;
        }
    }
    if (task->n_deletes > 0) {
        TRY(task_positions(w->plan, task, &gone, err));
        *out -= gone != NULL ? positions_count(gone) : 0;
    }
done:
    return code;
}

static tarn_code count_matches(dml_work *w, const scan_task *task, int64_t *matches,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    file_rows rows;
    bool more = true;
    memset(&rows, 0, sizeof rows);
    const tarn_type *wanted =
        w->action->columns != NULL ? w->action->columns(w) : type_struct(&w->arena, NULL, 0);
    if (wanted == NULL) {
        return err_nomem(err);
    }
    TRY(open_rows(w, task, wanted, residual(w, task), &rows, err));
    *matches = 0;
    TRY(next_rows(w, &rows, &more, err));
    while (more) {
        int64_t n = batch_rows(&rows.batch);
        if (w->action->choose != NULL) {
            TRY(choose(w, &rows.batch, NULL, false, &n, err));
        }
        *matches += n;
        TRY(next_rows(w, &rows, &more, err));
    }
done:
    close_rows(&rows);
    return code;
}

/* The rows of batch whose bit in the selection is set (keep) or not. */
static tarn_code part_of(dml_work *w, const tarn_batch *batch, bool keep, tarn_batch *out,
                         tarn_error *err) {
    if (!keep) {
        for (size_t i = 0; i < bit_bytes(batch_rows(batch)); i++) {
            w->selection[i] = (uint8_t)~w->selection[i];
        }
    }
    return batch_filter(w->env, batch, w->selection, out, err);
}

/* Writes what stands in for n rows of a batch of row_type that were chosen. */
static tarn_code write_replaced(dml_work *w, const tarn_batch *batch, int64_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_batch chosen;
    tarn_batch made;
    memset(&chosen, 0, sizeof chosen);
    memset(&made, 0, sizeof made);
    if (w->action->replace == NULL || n == 0) {
        w->out->rows_deleted += n;
        return TARN_OK;
    }
    TRY(part_of(w, batch, true, &chosen, err));
    TRY(w->action->replace(w, &chosen, &made, err));
    TRY(dml_write_rows(w, &made, err));
    w->out->rows_updated += n;
done:
    batch_release(&chosen);
    batch_release(&made);
    return code;
}

static tarn_code rewrite_file(dml_work *w, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_rows rows;
    tarn_batch rest;
    bool more = true;
    memset(&rows, 0, sizeof rows);
    memset(&rest, 0, sizeof rest);
    TRY(open_rows(w, task, w->row_type, NULL, &rows, err));
    TRY(next_rows(w, &rows, &more, err));
    while (more) {
        int64_t n = 0;
        TRY(choose(w, &rows.batch, w->plan->filter, true, &n, err));
        TRY(write_replaced(w, &rows.batch, n, err));
        TRY(part_of(w, &rows.batch, false, &rest, err));
        w->out->rows_kept += batch_rows(&rest);
        TRY(dml_write_rows(w, &rest, err));
        batch_release(&rest);
        TRY(next_rows(w, &rows, &more, err));
    }
    w->out->files_rewritten++;
done:
    batch_release(&rest);
    close_rows(&rows);
    return code;
}

static tarn_code all_rows_match(dml_work *w, const scan_task *task, bool *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = metadata_spec_by_id(w->base->metadata, task->file.spec_id);
    *out = w->action->choose == NULL && residual(w, task) == NULL;
    if (*out || w->action->choose != NULL) {
        return TARN_OK;
    }
    if (spec == NULL) {
        return err_set(err, TARN_CORRUPT, "file %.*s has partition spec %d, which the table lacks",
                       STR_ARG(task->file.path), task->file.spec_id);
    }
    if (w->evaluator.spec != spec) {
        TRY(evaluator_init(&w->arena, w->base->metadata, spec, w->plan->filter, &w->evaluator,
                           err));
    }
    *out = evaluator_file_all(&w->evaluator, &task->file);
done:
    return code;
}

static void remove_file(dml_work *w, const scan_task *task) {
    tarn_entry *entry = &w->removed[w->n_removed++];
    entry->file = task->file;
    w->out->files_removed++;
}

static tarn_code copy_on_write(dml_work *w, const scan_task *task, int64_t matches, int64_t live,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    if (matches < 0) {
        TRY(count_matches(w, task, &matches, err));
    }
    if (matches == 0) {
        return TARN_OK;
    }
    if (w->action->replace == NULL && w->action->choose == NULL && matches == live) {
        w->out->rows_deleted += matches;
    } else {
        TRY(rewrite_file(w, task, err));
    }
    remove_file(w, task);
done:
    return code;
}

/* ---- merge-on-read ---- */

static tarn_code ensure_deletes(dml_work *w, tarn_error *err) {
    delete_writer_options options;
    if (w->deletes != NULL) {
        return TARN_OK;
    }
    memset(&options, 0, sizeof options);
    options.metadata = w->base->metadata;
    options.kind = w->base->metadata->format_version >= 3 ? DELETE_VECTOR : DELETE_POSITION;
    return delete_writer_new(w->env, w->catalog->store, &options, &w->deletes, err);
}

/* Whether a delete file holds deletes of one data file only, so that another can take its place. */
static bool is_of_one_file(const tarn_file *file) {
    tarn_str low;
    tarn_str high;
    if (file->content != TARN_CONTENT_POSITION_DELETES) {
        return false;
    }
    return file->referenced_data_file.len > 0 ||
           (metric_find_bound(file->lower, file->n_lower, PATH_COLUMN_ID, &low) &&
            metric_find_bound(file->upper, file->n_upper, PATH_COLUMN_ID, &high) &&
            str_eq(low, high));
}

/* What was deleted in the file before: a vector must hold all of it, and position deletes of the
 * file alone are taken up, so that a file has one delete file. */
static tarn_code merge_before(dml_work *w, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_positions *before = NULL;
    int32_t n = 0;
    bool vectors = w->base->metadata->format_version >= 3;
    const tarn_entry **replaced =
        ARENA_ARRAY(&w->arena, const tarn_entry *, (size_t)task->n_deletes + 1);
    if (replaced == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < task->n_deletes; i++) {
        if (is_of_one_file(&task->deletes[i]->file)) {
            replaced[n++] = task->deletes[i];
        }
    }
    if (n == 0 && !vectors) {
        return TARN_OK;
    }
    TRY(task_positions(w->plan, task, &before, err));
    if (before != NULL) {
        TRY(delete_writer_merge(w->deletes, &task->file, before, replaced, n, err));
    }
done:
    return code;
}

static tarn_code add_positions(dml_work *w, const tarn_batch *batch, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_view view;
    view_column(batch, batch->type->n_fields - 1, &view);
    const int64_t *values = view.values;
    int64_t rows = batch_rows(batch);
    TRY(buf_reserve(&w->positions, (size_t)rows * sizeof *values, err));
    int64_t *out = (int64_t *)(void *)(w->positions.data + w->positions.len);
    size_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        out[n] = values[i];
        n += bit_get(w->selection, i);
    }
    w->positions.len += n * sizeof *values;
done:
    return code;
}

/* Rows of row_type with _pos behind, which is how merge-on-read reads them. */
static tarn_code with_position(dml_work *w, const tarn_type *columns, const tarn_type **out,
                               tarn_error *err) {
    tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)columns->n_fields + 1);
    if (fields == NULL) {
        return err_nomem(err);
    }
    if (columns->n_fields > 0) {
        memcpy(fields, columns->fields, (size_t)columns->n_fields * sizeof *fields);
    }
    for (int32_t i = 0; i < RESERVED_FIELDS; i++) {
        if (reserved_field_at(i)->id == FIELD_ID_POS) {
            fields[columns->n_fields] = *reserved_field_at(i);
        }
    }
    *out = type_struct(&w->arena, fields, columns->n_fields + 1);
    return *out != NULL ? TARN_OK : err_nomem(err);
}

/* The columns that are read of a file: all of them only where rows are written anew. */
static tarn_code columns_to_mark(dml_work *w, const tarn_type **out, tarn_error *err) {
    const tarn_type *columns = w->row_type;
    if (w->action->replace == NULL) {
        columns =
            w->action->columns != NULL ? w->action->columns(w) : type_struct(&w->arena, NULL, 0);
    }
    return columns != NULL ? with_position(w, columns, out, err) : err_nomem(err);
}

/* A batch without its last column, which is _pos; borrows. */
static tarn_batch without_position(const dml_work *w, const tarn_batch *batch) {
    tarn_batch rows = *batch;
    if (w->action->replace != NULL) {
        rows.type = w->row_type;
        rows.array.n_children--;
    }
    return rows;
}

static tarn_code mark_rows(dml_work *w, const scan_task *task, int64_t live, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_rows rows;
    const tarn_type *wanted;
    bool more = true;
    memset(&rows, 0, sizeof rows);
    buf_reset(&w->positions);
    TRY(columns_to_mark(w, &wanted, err));
    TRY(open_rows(w, task, wanted, residual(w, task), &rows, err));
    TRY(next_rows(w, &rows, &more, err));
    while (more) {
        int64_t n = 0;
        tarn_batch plain = without_position(w, &rows.batch);
        TRY(choose(w, &plain, NULL, true, &n, err));
        TRY(add_positions(w, &rows.batch, err));
        TRY(write_replaced(w, &plain, n, err));
        TRY(next_rows(w, &rows, &more, err));
    }
    size_t n = w->positions.len / sizeof(int64_t);
    if (n == 0) {
        goto done;
    }
    if ((int64_t)n == live) {
        remove_file(w, task);
        goto done;
    }
    TRY(ensure_deletes(w, err));
    TRY(delete_writer_add(w->deletes, &task->file, (const int64_t *)(const void *)w->positions.data,
                          n, err));
    TRY(merge_before(w, task, err));
done:
    close_rows(&rows);
    return code;
}

tarn_code dml_do_task(dml_work *w, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool all;
    int64_t live;
    TRY(all_rows_match(w, task, &all, err));
    TRY(live_rows(w, task, &live, err));
    if (all && w->action->replace == NULL && live >= 0) {
        w->out->rows_deleted += live;
        remove_file(w, task);
    } else if (w->options->merge_on_read) {
        TRY(mark_rows(w, task, live, err));
    } else {
        TRY(copy_on_write(w, task, all && live >= 0 ? live : -1, live, err));
    }
done:
    return code;
}

tarn_code dml_replace_columns(dml_work *w, const tarn_batch *rows, dml_column_fn make, void *ctx,
                              tarn_batch *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_builder builder;
    int64_t n = batch_rows(rows);
    memset(&builder, 0, sizeof builder);
    TRY(builder_init(&builder, w->env, w->row_type, err));
    TRY(builder_reserve(&builder, n, err));
    for (int32_t i = 0; i < w->row_type->n_fields; i++) {
        const tarn_field *field = &w->row_type->fields[i];
        tarn_builder *column = &builder.children[i];
        tarn_view view;
        bool made = false;
        if (field->id == FIELD_ID_LAST_UPDATED_SEQUENCE) {
            TRY(builder_nulls(column, n, err)); /* inherited: the commit that changed it */
            continue;
        }
        TRY(make(ctx, field, rows, column, &made, err));
        if (!made) {
            view_column(rows, i, &view);
            TRY(builder_view(column, &view, 0, n, err));
        }
    }
    builder.length = n;
    TRY(builder_finish_batch(&builder, out, err));
done:
    builder_release(&builder);
    return code;
}
