/* read/plan.c - metadata becomes file tasks (spec, "Scan Planning").
 *
 * Manifests that the filter's projection rules out are not opened; the others are decoded in
 * parallel, each into its own arena, with the statistics of the filter's columns only. Files are
 * pruned by partition tuple, then by bounds; what the partition decides is folded out of the
 * residual. Tasks keep the order of manifests and entries. */
#include "read/read_int.h"

static tarn_code pick_snapshot(tarn_plan *plan, tarn_error *err) {
    const tarn_metadata *m = plan->options.metadata;
    int64_t id = plan->options.snapshot_id;
    plan->schema = metadata_schema(m);
    if (id == TARN_NO_SNAPSHOT) {
        plan->snapshot = metadata_current_snapshot(m);
        return TARN_OK;
    }
    plan->snapshot = metadata_snapshot_by_id(m, id);
    if (plan->snapshot == NULL) {
        return err_set(err, TARN_NOT_FOUND, "there is no snapshot %lld", (long long)id);
    }
    if (plan->options.snapshot_schema) {
        plan->schema = metadata_snapshot_schema(m, plan->snapshot);
    }
    return TARN_OK;
}

static tarn_code inline_manifests(tarn_arena *arena, const tarn_snapshot *snapshot,
                                  const tarn_manifest **out, int32_t *n, tarn_store *store,
                                  tarn_error *err) {
    tarn_manifest *list = ARENA_ARRAY(arena, tarn_manifest, (size_t)snapshot->n_manifests + 1);
    if (list == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < snapshot->n_manifests; i++) {
        store_stat_info info;
        tarn_code code = store_stat(store, snapshot->manifests[i], &info, err);
        if (code != TARN_OK) {
            return code;
        }
        list[i].path = snapshot->manifests[i];
        list[i].length = info.size_bytes;
        list[i].spec_id = -1; /* the manifest's header says */
        list[i].sequence_number = 0;
        list[i].min_sequence_number = 0;
        list[i].added_snapshot_id = snapshot->snapshot_id;
        list[i].added_files = list[i].existing_files = list[i].deleted_files = -1;
        list[i].added_rows = list[i].existing_rows = list[i].deleted_rows = -1;
        list[i].first_row_id = -1;
    }
    *out = list;
    *n = snapshot->n_manifests;
    return TARN_OK;
}

tarn_code snapshot_manifests(tarn_arena *arena, tarn_store *store, const tarn_snapshot *snapshot,
                             const tarn_manifest **out, int32_t *n, tarn_error *err) {
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    if (snapshot->manifest_list.len == 0) {
        return inline_manifests(arena, snapshot, out, n, store, err);
    }
    TRY(store_open(store, snapshot->manifest_list, -1, &source, err));
    TRY(manifest_list_read(arena, source, out, n, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

tarn_code manifest_job_run(void *jobs, size_t index, tarn_error *err) {
    manifest_job *job = (manifest_job *)jobs + index;
    tarn_code code = TARN_OK;
    io_source *source = NULL;
    TRY(store_open(job->store, job->manifest->path, job->manifest->length, &source, err));
    TRY(manifest_read(&job->arena, source, job->metadata, job->manifest, job->options,
                      &job->entries, err));
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

/* One a spec of the metadata; none without a filter. */
typedef struct spec_evaluators {
    tarn_evaluator *items;
} spec_evaluators;

static tarn_code make_evaluators(tarn_plan *plan, spec_evaluators *out, tarn_error *err) {
    const tarn_metadata *m = plan->options.metadata;
    tarn_code code = TARN_OK;
    out->items = NULL;
    if (plan->filter == NULL) {
        return TARN_OK;
    }
    out->items = ARENA_ARRAY(&plan->arena, tarn_evaluator, (size_t)m->n_specs + 1);
    if (out->items == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < m->n_specs; i++) {
        TRY(evaluator_init(&plan->arena, m, m->specs[i], plan->filter, &out->items[i], err));
    }
done:
    return code;
}

static const tarn_evaluator *find_evaluator(const tarn_plan *plan,
                                            const spec_evaluators *evaluators, int32_t spec_id) {
    const tarn_metadata *m = plan->options.metadata;
    for (int32_t i = 0; i < m->n_specs && evaluators->items != NULL; i++) {
        if (m->specs[i]->spec_id == spec_id) {
            return &evaluators->items[i];
        }
    }
    return NULL;
}

static tarn_code add_task(tarn_plan *plan, int64_t *cap, const tarn_entry *entry,
                          const tarn_expr *residual, tarn_error *err) {
    if (plan->n_tasks == *cap) {
        int64_t new_cap = *cap == 0 ? 256 : *cap * 2;
        scan_task *tasks = arena_grow(&plan->arena, plan->tasks, (size_t)*cap * sizeof *tasks,
                                      (size_t)new_cap * sizeof *tasks);
        if (tasks == NULL) {
            return err_nomem(err);
        }
        plan->tasks = tasks;
        *cap = new_cap;
    }
    scan_task *task = &plan->tasks[plan->n_tasks++];
    task->file = entry->file;
    task->sequence_number = entry->sequence_number;
    task->residual = residual;
    return TARN_OK;
}

/* Of one partition of one spec. */
static bool same_tuple(const tarn_file *a, const tarn_file *b) {
    if (a->spec_id != b->spec_id || a->n_partition != b->n_partition) {
        return false;
    }
    for (int32_t i = 0; i < a->n_partition; i++) {
        if (!value_eq(&a->partition[i], &b->partition[i])) {
            return false;
        }
    }
    return true;
}

/* The residual depends on the partition alone, so it is worked out once for runs of files of one
 * partition. */
typedef struct residual_cache {
    const tarn_file *file; /* one of that partition */
    const tarn_expr *residual;
} residual_cache;

static tarn_code plan_entry(tarn_plan *plan, const tarn_evaluator *e, const tarn_entry *entry,
                            residual_cache *cache, int64_t *cap, tarn_error *err) {
    const tarn_expr *residual = plan->filter;
    tarn_code code = TARN_OK;
    plan->counters.files++;
    if (plan->filter != NULL && e != NULL && !plan->options.no_prune) {
        if (!evaluator_partition(e, entry->file.partition) || !evaluator_file(e, &entry->file)) {
            plan->counters.files_skipped++;
            return TARN_OK;
        }
        if (cache->file == NULL || !same_tuple(cache->file, &entry->file)) {
            TRY(evaluator_residual(&plan->arena, e, entry->file.partition, &cache->residual, err));
            cache->file = &entry->file;
        }
        residual = cache->residual;
        if (residual->op == EXPR_FALSE) {
            plan->counters.files_skipped++;
            return TARN_OK;
        }
    }
    TRY(add_task(plan, cap, entry, residual, err));
done:
    return code;
}

/* Spec, "Scan Planning": a position delete reaches data of its own or an older sequence number, an
 * equality delete only older data; both their own partition only, but for equality deletes of an
 * unpartitioned spec, which reach all. */
static bool delete_reaches(const tarn_entry *d, const scan_task *task) {
    bool is_equality = d->file.content == TARN_CONTENT_EQUALITY_DELETES;
    if (task->sequence_number > d->sequence_number - is_equality) {
        return false;
    }
    if (d->file.referenced_data_file.data != NULL &&
        !str_eq(d->file.referenced_data_file, task->file.path)) {
        return false;
    }
    return (is_equality && d->file.n_partition == 0) || same_tuple(&d->file, &task->file);
}

/* Until row deletes are applied, a live one that reaches a file of the plan makes the table
 * unreadable here, never read wrong. */
static tarn_code refuse_deletes(const tarn_plan *plan, const manifest_entries *deletes,
                                tarn_error *err) {
    for (int64_t i = 0; i < deletes->count; i++) {
        const tarn_entry *d = &deletes->items[i];
        for (int64_t t = 0; t < plan->n_tasks; t++) {
            const scan_task *task = &plan->tasks[t];
            if (delete_reaches(d, task)) {
                return err_set(
                    err, TARN_UNSUPPORTED,
                    "row deletes of %.*s apply to %.*s and cannot be applied by this version",
                    STR_ARG(d->file.path), STR_ARG(task->file.path));
            }
        }
    }
    return TARN_OK;
}

static tarn_code take_entries(tarn_plan *plan, const spec_evaluators *evaluators,
                              manifest_job *jobs, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t cap = 0;
    residual_cache cache;
    memset(&cache, 0, sizeof cache);
    for (int32_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < jobs[i].entries.count && !jobs[i].manifest->is_deletes; j++) {
            const tarn_entry *entry = &jobs[i].entries.items[j];
            TRY(plan_entry(plan, find_evaluator(plan, evaluators, entry->file.spec_id), entry,
                           &cache, &cap, err));
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (jobs[i].manifest->is_deletes) {
            TRY(refuse_deletes(plan, &jobs[i].entries, err));
        }
    }
done:
    return code;
}

static tarn_code read_options(const tarn_plan *plan, tarn_arena *arena, manifest_read_options *out,
                              tarn_error *err) {
    memset(out, 0, sizeof *out);
    out->live_only = true;
    if (plan->filter == NULL || plan->options.no_prune) {
        return TARN_OK;
    }
    size_t n = expr_field_ids(plan->filter, NULL, 0);
    int32_t *ids = ARENA_ARRAY(arena, int32_t, n + 1);
    if (ids == NULL) {
        return err_nomem(err);
    }
    out->want = MANIFEST_WANT_STATS;
    out->stat_ids = ids;
    out->n_stat_ids = (int32_t)expr_field_ids(plan->filter, ids, n);
    return TARN_OK;
}

static bool wants_manifest(tarn_plan *plan, const spec_evaluators *evaluators,
                           const tarn_manifest *manifest) {
    if (manifest->added_files == 0 && manifest->existing_files == 0) {
        return false; /* nothing live in it */
    }
    plan->counters.manifests++;
    const tarn_evaluator *e = find_evaluator(plan, evaluators, manifest->spec_id);
    if (plan->filter != NULL && e != NULL && !plan->options.no_prune &&
        !evaluator_manifest(e, manifest)) {
        plan->counters.manifests_skipped++;
        return false;
    }
    return true;
}

static tarn_code plan_files(tarn_plan *plan, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests;
    int32_t n_manifests;
    int32_t n_jobs = 0;
    manifest_job *jobs = NULL;
    manifest_read_options options;
    manifest_read_options delete_options = {MANIFEST_WANT_REST, NULL, 0, true};
    spec_evaluators evaluators;
    TRY(make_evaluators(plan, &evaluators, err));
    TRY(snapshot_manifests(&plan->arena, plan->store, plan->snapshot, &manifests, &n_manifests,
                           err));
    TRY(read_options(plan, &plan->arena, &options, err));
    jobs = ARENA_ARRAY(&plan->arena, manifest_job, (size_t)n_manifests + 1);
    plan->manifest_arenas = ARENA_ARRAY(&plan->arena, tarn_arena, (size_t)n_manifests + 1);
    if (jobs == NULL || plan->manifest_arenas == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n_manifests; i++) {
        if (wants_manifest(plan, &evaluators, &manifests[i])) {
            manifest_job *job = &jobs[n_jobs++];
            job->env = plan->env;
            job->store = plan->store;
            job->metadata = plan->options.metadata;
            job->manifest = &manifests[i];
            job->options = manifests[i].is_deletes ? &delete_options : &options;
            arena_init(&job->arena, plan->env);
        }
    }
    code = pool_for(plan->env, (size_t)n_jobs, manifest_job_run, jobs, err);
    for (int32_t i = 0; i < n_jobs; i++) {
        arena_move(&plan->manifest_arenas[i], &jobs[i].arena);
        plan->n_manifest_arenas = i + 1;
    }
    if (code == TARN_OK) {
        code = take_entries(plan, &evaluators, jobs, n_jobs, err);
    }
done:
    return code;
}

static tarn_code plan_init(tarn_plan *plan, tarn_error *err) {
    tarn_code code = TARN_OK;
    const scan_options *o = &plan->options;
    TRY(pick_snapshot(plan, err));
    const tarn_type *root = plan->schema->root;
    TRY(columns_select(&plan->arena, root, o->columns, o->n_columns, o->case_insensitive,
                       &plan->output, err));
    if (o->filter != NULL) {
        TRY(expr_bind(&plan->arena, o->filter, root, !o->case_insensitive, &plan->filter, err));
        if (plan->filter->op == EXPR_TRUE) {
            plan->filter = NULL;
        }
    }
    if (plan->snapshot != NULL && (plan->filter == NULL || plan->filter->op != EXPR_FALSE)) {
        TRY(plan_files(plan, err));
    }
done:
    return code;
}

tarn_code plan_new(tarn_env *env, tarn_store *store, const scan_options *options, tarn_plan **out,
                   tarn_error *err) {
    tarn_plan *plan = env_calloc(env, 1, sizeof *plan);
    if (plan == NULL) {
        return err_nomem(err);
    }
    plan->env = env;
    plan->store = store;
    plan->options = *options;
    arena_init(&plan->arena, env);
    tarn_code code = plan_init(plan, err);
    if (code == TARN_OK) {
        *out = plan;
    } else {
        plan_free(plan);
    }
    return code;
}

void plan_free(tarn_plan *plan) {
    if (plan == NULL) {
        return;
    }
    for (int32_t i = 0; i < plan->n_manifest_arenas; i++) {
        arena_release(&plan->manifest_arenas[i]);
    }
    arena_release(&plan->arena);
    env_free(plan->env, plan);
}
