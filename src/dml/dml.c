/* dml/dml.c - delete and overwrite by filter, copy-on-write.
 *
 *   plan the filter -> for each file: all rows match? remove it : count matches -> none? leave it :
 * all? remove it : rewrite the rest
 *   -> one overwrite commit, validated against what was committed since the plan's snapshot -> on
 * CONFLICT plan again
 *
 * Invariants: 1 a row is either in the new files or matched the filter as the plan's snapshot had
 * it; 2 new files are removed when the commit definitely failed, and kept when its fate is unknown.
 */
#include "dml/dml.h"

#define MAX_PLANS 5

typedef struct dml_work {
    tarn_env *env;
    tarn_catalog *catalog;
    const tarn_ident *table;
    const dml_options *options;
    const tarn_file *added; /* the caller's */
    int32_t n_added;
    tarn_arena arena; /* of one plan */
    tarn_table_version *base;
    tarn_plan *plan;
    data_writer *writer;
    tarn_entry *removed;
    int32_t n_removed;
    const json_value *name_mapping;
    tarn_evaluator evaluator; /* of the spec last met */
    dml_result *out;
} dml_work;

static tarn_code make_plan(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    scan_options options;
    tarn_str mapping;
    memset(&options, 0, sizeof options);
    TRY(catalog_load(w->catalog, w->table, &w->base, err));
    options.metadata = w->base->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.filter = w->options->filter;
    options.case_insensitive = w->options->case_insensitive;
    options.limit = -1;
    if (w->options->branch.len > 0) {
        const tarn_ref *ref = metadata_ref(options.metadata, w->options->branch);
        if (ref == NULL) {
            code = err_set(err, TARN_NOT_FOUND, "there is no branch %.*s",
                           STR_ARG(w->options->branch));
            goto done;
        }
        options.snapshot_id = ref->snapshot_id;
    }
    TRY(plan_new(w->env, w->catalog->store, &options, &w->plan, err));
    if (properties_get(&options.metadata->properties, "schema.name-mapping.default", &mapping)) {
        json_value *json;
        TRY(json_parse(&w->arena, mapping, "property schema.name-mapping.default", &json, err));
        w->name_mapping = json;
    }
    if (w->plan->n_tasks > INT32_MAX - 1) {
        code = err_set(err, TARN_LIMIT, "the filter touched more than %d files", INT32_MAX - 1);
        goto done;
    }
    w->removed = ARENA_ARRAY(&w->arena, tarn_entry, (size_t)w->plan->n_tasks + 1);
    if (w->removed == NULL) {
        code = err_nomem(err);
    }
done:
    return code;
}

static tarn_code open_task(dml_work *w, const scan_task *task, const tarn_type *wanted, bool invert,
                           file_scan **out, tarn_error *err) {
    file_scan_options options;
    memset(&options, 0, sizeof options);
    options.wanted = wanted;
    options.root = w->plan->schema->root;
    options.filter = task->residual;
    options.invert = invert;
    options.parallel = true;
    options.name_mapping = w->name_mapping;
    return file_scan_open(w->env, w->catalog->store, &task->file,
                          metadata_spec_by_id(w->base->metadata, task->file.spec_id), &options, out,
                          err);
}

/* How many rows of the file match, reading the filter's columns alone. */
static tarn_code count_matches(dml_work *w, const scan_task *task, int64_t *matches,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    tarn_batch batch;
    scan_counters counters;
    memset(&counters, 0, sizeof counters);
    memset(&batch, 0, sizeof batch);
    const tarn_type *nothing = type_struct(&w->arena, NULL, 0);
    if (nothing == NULL) {
        return err_nomem(err);
    }
    TRY(open_task(w, task, nothing, false, &scan, err));
    *matches = 0;
    do {
        batch_release(&batch);
        TRY(file_scan_next(scan, &batch, &counters, err));
        *matches += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

static tarn_code ensure_writer(dml_work *w, tarn_error *err) {
    data_writer_options options;
    if (w->writer != NULL) {
        return TARN_OK;
    }
    memset(&options, 0, sizeof options);
    options.metadata = w->base->metadata;
    return data_writer_new(w->env, w->catalog->store, &options, &w->writer, err);
}

static tarn_code rewrite_rest(dml_work *w, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_scan *scan = NULL;
    tarn_batch batch;
    scan_counters counters;
    memset(&counters, 0, sizeof counters);
    memset(&batch, 0, sizeof batch);
    TRY(ensure_writer(w, err));
    TRY(open_task(w, task, w->plan->schema->root, true, &scan, err));
    do {
        batch_release(&batch);
        TRY(env_check_cancel(w->env, err));
        TRY(file_scan_next(scan, &batch, &counters, err));
        if (batch_rows(&batch) > 0) {
            TRY(data_writer_write(w->writer, &batch, err));
        }
        w->out->rows_kept += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
    w->out->files_rewritten++;
done:
    batch_release(&batch);
    file_scan_close(scan);
    return code;
}

static tarn_code all_rows_match(dml_work *w, const scan_task *task, bool *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = metadata_spec_by_id(w->base->metadata, task->file.spec_id);
    *out = w->plan->filter == NULL || task->residual->op == EXPR_TRUE;
    if (*out) {
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

static tarn_code do_task(dml_work *w, const scan_task *task, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t matches = task->file.record_count;
    bool all;
    TRY(all_rows_match(w, task, &all, err));
    if (!all) {
        TRY(count_matches(w, task, &matches, err));
        if (matches == 0) {
            return TARN_OK;
        }
        if (matches < task->file.record_count) {
            TRY(rewrite_rest(w, task, err));
        }
    }
    tarn_entry *entry = &w->removed[w->n_removed++];
    entry->file = task->file;
    w->out->rows_deleted += matches;
    w->out->files_removed++;
done:
    return code;
}

static tarn_code commit_work_done(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    write_result written;
    commit_request request;
    memset(&written, 0, sizeof written);
    memset(&request, 0, sizeof request);
    if (w->writer != NULL) {
        TRY(data_writer_close(w->writer, &w->arena, &written, err));
    }
    tarn_file *added =
        ARENA_ARRAY(&w->arena, tarn_file, (size_t)written.n_files + (size_t)w->n_added + 1);
    if (added == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (written.n_files > 0) {
        memcpy(added, written.files, (size_t)written.n_files * sizeof *added);
    }
    if (w->n_added > 0) {
        memcpy(added + written.n_files, w->added, (size_t)w->n_added * sizeof *added);
    }
    request.kind = COMMIT_OVERWRITE;
    request.added = added;
    request.n_added = written.n_files + w->n_added;
    request.removed = w->removed;
    request.n_removed = w->n_removed;
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
    plan_free(w->plan);
    table_version_release(w->base);
    arena_release(&w->arena);
    arena_init(&w->arena, w->env);
    w->writer = NULL;
    w->plan = NULL;
    w->base = NULL;
    w->removed = NULL;
    w->n_removed = 0;
    w->name_mapping = NULL;
    memset(&w->evaluator, 0, sizeof w->evaluator);
}

static tarn_code run_once(dml_work *w, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(w->out, 0, sizeof *w->out);
    w->out->outcome.snapshot_id = TARN_NO_SNAPSHOT;
    TRY(make_plan(w, err));
    for (int64_t i = 0; i < w->plan->n_tasks; i++) {
        TRY(env_check_cancel(w->env, err));
        TRY(do_task(w, &w->plan->tasks[i], err));
    }
    if (w->n_removed > 0 || w->n_added > 0) {
        TRY(commit_work_done(w, err));
    }
done:
    return code;
}

tarn_code dml_overwrite(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                        const dml_options *options, const tarn_file *added, int32_t n_added,
                        dml_result *out, tarn_error *err) {
    tarn_code code;
    dml_work w;
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    memset(&w, 0, sizeof w);
    w.env = env;
    w.catalog = catalog;
    w.table = table;
    w.options = options;
    w.added = added;
    w.n_added = n_added;
    w.out = out;
    arena_init(&w.arena, env);
    for (int32_t i = 1;; i++) {
        code = run_once(&w, e);
        bool again =
            code == TARN_CONFLICT && out->outcome.kind == TARN_NOT_COMMITTED && i < MAX_PLANS;
        if (!again) {
            break;
        }
        env_log(env, TARN_LOG_INFO, "dml", "replan", "%s", e->message);
        err_reset(e);
        reset_work(&w);
    }
    reset_work(&w);
    arena_release(&w.arena);
    return code;
}

tarn_code dml_delete(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const dml_options *options, dml_result *out, tarn_error *err) {
    if (options->filter == NULL) {
        return err_set(err, TARN_INVALID, "a delete needs a filter; \"true\" removes every row");
    }
    return dml_overwrite(env, catalog, table, options, NULL, 0, out, err);
}
