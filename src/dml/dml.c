/* dml/dml.c - delete, overwrite, update and merge: the plan, the commit, and again on conflict.
 *
 *   load -> (merge: the filter that its keys make) -> plan the filter
 *     -> for each file: rewrite.c (all rows match? remove it; some? rewrite the rest, or mark them)
 *     -> rows to add -> one commit, validated against what was committed since the plan's snapshot
 *     -> on CONFLICT plan again
 *
 * Invariants: 1 a row is either in the new files or matched as the plan's snapshot had it; 2 new
 * files are removed when the commit definitely failed, and kept when its fate is unknown. */
#include "dml/dml_int.h"

#define MAX_PLANS 5

/* Rows that are written have v3's row lineage with them, so that a row keeps its id when it moves
 * to another file (spec, "Row Lineage"). */
static tarn_code set_row_type(dml_work *w, tarn_error *err) {
    const tarn_type *root = w->plan->schema->root;
    w->row_type = root;
    w->lineage = w->base->metadata->format_version >= 3;
    if (!w->lineage) {
        return TARN_OK;
    }
    tarn_field *fields = ARENA_ARRAY(&w->arena, tarn_field, (size_t)root->n_fields + 2);
    if (fields == NULL) {
        return err_nomem(err);
    }
    int32_t n = root->n_fields;
    memcpy(fields, root->fields, (size_t)n * sizeof *fields);
    for (int32_t i = 0; i < RESERVED_FIELDS; i++) {
        const tarn_field *field = reserved_field_at(i);
        if (field->id == FIELD_ID_ROW_ID || field->id == FIELD_ID_LAST_UPDATED_SEQUENCE) {
            fields[n++] = *field;
        }
    }
    w->row_type = type_struct(&w->arena, fields, n);
    return w->row_type != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code make_plan(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_options options;
    memset(&options, 0, sizeof options);
    w->filter = w->options->filter;
    TRY(catalog_load(w->catalog, w->table, &w->base, err));
    options.metadata = w->base->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    if (w->options->branch.len > 0) {
        const tarn_ref *ref = metadata_ref(options.metadata, w->options->branch);
        const tarn_snapshot *head = metadata_head(options.metadata, w->options->branch);
        if (ref == NULL && !w->options->makes_branch) {
            code = err_set(err, TARN_NOT_FOUND, "there is no branch %.*s",
                           STR_ARG(w->options->branch));
            goto done;
        }
        if (ref != NULL || head != NULL) {
            options.snapshot_id = ref != NULL ? ref->snapshot_id : head->snapshot_id;
        }
    }
    if (w->action->begin != NULL) {
        TRY(w->action->begin(w, err));
    }
    options.filter = w->filter;
    options.case_insensitive = w->options->case_insensitive;
    options.limit = -1;
    TRY(plan_new(w->env, w->catalog->store, &options, &w->plan, err));
    if (w->plan->n_tasks > INT32_MAX - 1) {
        code = err_set(err, TARN_LIMIT, "the filter touched more than %d files", INT32_MAX - 1);
        goto done;
    }
    w->removed = ARENA_ARRAY(&w->arena, tarn_entry, (size_t)w->plan->n_tasks + 1);
    if (w->removed == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(set_row_type(w, err));
    if (w->action->planned != NULL) {
        TRY(w->action->planned(w, err));
    }
done:
    return code;
}

tarn_code dml_write_rows(dml_work *w, tarn_batch *rows, tarn_error *err) {
    data_writer_options options;
    if (batch_rows(rows) == 0) {
        return TARN_OK;
    }
    if (w->writer == NULL) {
        memset(&options, 0, sizeof options);
        options.metadata = w->base->metadata;
        options.root = w->lineage ? w->row_type : NULL;
        tarn_code code = data_writer_new(w->env, w->catalog->store, &options, &w->writer, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    return data_writer_write(w->writer, rows, err);
}

/* What was written, and the caller's files; all of it is in *written, to be removed on failure. */
static tarn_code take_files(dml_work *w, write_result *written, commit_request *request,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    if (w->writer != NULL) {
        TRY(data_writer_close(w->writer, &w->arena, written, err));
    }
    if (w->deletes != NULL) {
        TRY(delete_writer_close(w->deletes, &w->arena, written, err));
    }
    tarn_file *added =
        ARENA_ARRAY(&w->arena, tarn_file, (size_t)written->n_files + (size_t)w->n_added + 1);
    if (added == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (written->n_files > 0) {
        memcpy(added, written->files, (size_t)written->n_files * sizeof *added);
    }
    if (w->n_added > 0) {
        memcpy(added + written->n_files, w->added, (size_t)w->n_added * sizeof *added);
    }
    request->added = added;
    request->n_added = written->n_files + w->n_added;
    request->added_deletes = written->deletes;
    request->n_added_deletes = written->n_deletes;
    request->removed_deletes = written->removed_deletes;
    request->n_removed_deletes = written->n_removed_deletes;
    request->referenced = written->referenced;
    request->n_referenced = written->n_referenced;
    w->out->files_added = written->n_files;
    w->out->deletes_added = written->n_deletes;
done:
    return code;
}

static tarn_code commit_work_done(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    write_result written;
    commit_request request;
    memset(&written, 0, sizeof written);
    memset(&request, 0, sizeof request);
    TRY(take_files(w, &written, &request, err));
    if (request.n_added + request.n_added_deletes + w->n_removed == 0) {
        goto done;
    }
    request.kind = w->n_removed > 0 || w->n_added > 0 ? COMMIT_OVERWRITE : COMMIT_ROW_DELTA;
    request.removed = w->removed;
    request.n_removed = w->n_removed;
    request.check_new_deletes = true;
    request.branch = w->options->branch;
    request.from_snapshot_id =
        w->plan->snapshot != NULL ? w->plan->snapshot->snapshot_id : TARN_NO_SNAPSHOT;
    if (w->options->serializable) {
        request.conflict_filter = w->plan->filter != NULL ? w->plan->filter : expr_true();
    }
    TRY(commit_run(w->env, w->catalog, w->table, w->base, &request, &w->out->outcome, err));
done:
    if (code != TARN_OK && w->out->outcome.kind == TARN_NOT_COMMITTED) {
        write_result_remove(w->catalog->store, &written);
    }
    return code;
}

static void reset_work(dml_work *w) {
    data_writer_free(w->writer);
    delete_writer_free(w->deletes);
    plan_free(w->plan);
    table_version_release(w->base);
    arena_release(&w->arena);
    arena_init(&w->arena, w->env);
    w->writer = NULL;
    w->deletes = NULL;
    w->plan = NULL;
    w->base = NULL;
    w->filter = NULL;
    w->row_type = NULL;
    w->removed = NULL;
    w->n_removed = 0;
    memset(&w->evaluator, 0, sizeof w->evaluator);
}

static tarn_code run_once(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(w->out, 0, sizeof *w->out);
    w->out->outcome.snapshot_id = TARN_NO_SNAPSHOT;
    TRY(make_plan(w, err));
    for (int64_t i = 0; i < w->plan->n_tasks; i++) {
        TRY(env_check_cancel(w->env, err));
        TRY(dml_do_task(w, &w->plan->tasks[i], err));
    }
    if (w->action->finish != NULL) {
        TRY(w->action->finish(w, err));
    }
    TRY(commit_work_done(w, err));
done:
    return code;
}

tarn_code dml_run(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table, dml_work *w,
                  tarn_error *err) {
    tarn_code code;
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    w->env = env;
    w->catalog = catalog;
    w->table = table;
    arena_init(&w->arena, env);
    buf_init(&w->positions, env, 0);
    for (int32_t i = 1;; i++) {
        code = run_once(w, e);
        bool again =
            code == TARN_CONFLICT && w->out->outcome.kind == TARN_NOT_COMMITTED && i < MAX_PLANS;
        if (!again) {
            break;
        }
        env_log(env, TARN_LOG_INFO, "dml", "replan", "%s", e->message);
        err_reset(e);
        reset_work(w);
    }
    reset_work(w);
    arena_release(&w->arena);
    buf_release(&w->positions);
    env_free(env, w->selection);
    return code;
}

static const dml_action nothing_stays = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};

tarn_code dml_overwrite(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                        const dml_options *options, const tarn_file *added, int32_t n_added,
                        dml_result *out, tarn_error *err) {
    dml_work w;
    memset(&w, 0, sizeof w);
    w.options = options;
    w.action = &nothing_stays;
    w.added = added;
    w.n_added = n_added;
    w.out = out;
    return dml_run(env, catalog, table, &w, err);
}

tarn_code dml_delete(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, dml_result *out, tarn_error *err) {
    if (options->filter == NULL) {
        return err_set(err, TARN_INVALID, "a delete needs a filter; \"true\" removes every row");
    }
    return dml_overwrite(env, catalog, table, options, NULL, 0, out, err);
}
