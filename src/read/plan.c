/* read/plan.c - metadata becomes file tasks (spec, "Scan Planning").
 *
 * Manifests that the filter's projection rules out are not opened; the others are decoded in
 * parallel, each into its own arena, with the statistics of the filter's columns only. Files are
 * pruned by partition tuple, then by bounds; what the partition decides is folded out of the
 * residual. Tasks keep the order of manifests and entries. Delete manifests are read first, so that
 * it is known which columns' statistics tell deletes and data apart; each task gets the deletes
 * that apply to it. */
#include "iceberg/delete_index.h"
#include "read/history.h"
#include "read/plan_deletes.h"
#include "read/read_int.h"

#define MAX_STAT_IDS 64 /* key columns that files are told apart by */

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
    task->deletes = NULL;
    task->n_deletes = 0;
    return TARN_OK;
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
        if (cache->file == NULL || !files_share_partition(cache->file, &entry->file)) {
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

/* ---- manifests ---- */

typedef struct manifest_jobs {
    manifest_job *items;
    int32_t n;
} manifest_jobs;

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

/* Reads the manifests of one content, in parallel; out->items has room for all. */
static tarn_code read_manifests(tarn_plan *plan, const spec_evaluators *evaluators,
                                const tarn_manifest *manifests, int32_t n_manifests,
                                const manifest_read_options *options, bool deletes,
                                manifest_jobs *out, tarn_error *err) {
    out->n = 0;
    for (int32_t i = 0; i < n_manifests; i++) {
        if (manifests[i].is_deletes == deletes && wants_manifest(plan, evaluators, &manifests[i])) {
            manifest_job *job = &out->items[out->n++];
            job->env = plan->env;
            job->store = plan->store;
            job->metadata = plan->options.metadata;
            job->manifest = &manifests[i];
            job->options = options;
            arena_init(&job->arena, plan->env);
        }
    }
    tarn_code code = pool_for(plan->env, (size_t)out->n, manifest_job_run, out->items, err);
    for (int32_t i = 0; i < out->n; i++) {
        arena_move(&plan->manifest_arenas[plan->n_manifest_arenas++], &out->items[i].arena);
    }
    return code;
}

/* ---- row deletes ---- */

static tarn_code index_deletes(tarn_plan *plan, const manifest_jobs *jobs, delete_index **out,
                               tarn_error *err) {
    int64_t n = 0;
    for (int32_t i = 0; i < jobs->n; i++) {
        n += jobs->items[i].entries.count;
    }
    *out = NULL;
    if (n == 0) {
        return TARN_OK;
    }
    const tarn_entry **entries = ARENA_ARRAY(&plan->arena, const tarn_entry *, (size_t)n);
    if (entries == NULL) {
        return err_nomem(err);
    }
    n = 0;
    for (int32_t i = 0; i < jobs->n; i++) {
        for (int64_t k = 0; k < jobs->items[i].entries.count; k++) {
            entries[n++] = &jobs->items[i].entries.items[k];
        }
    }
    return delete_index_new(&plan->arena, plan->options.metadata, entries, n, out, err);
}

/* Adds the key columns of equality deletes to ids, which has room for n and is grown by them; each
 * once. */
static int32_t add_key_ids(const manifest_jobs *jobs, int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < jobs->n; i++) {
        for (int64_t k = 0; k < jobs->items[i].entries.count; k++) {
            const tarn_file *f = &jobs->items[i].entries.items[k].file;
            for (int32_t e = 0; e < f->n_equality_ids; e++) {
                int32_t at = 0;
                while (at < n && ids[at] != f->equality_ids[e]) {
                    at++;
                }
                if (at == n && n < MAX_STAT_IDS) {
                    ids[n++] = f->equality_ids[e];
                }
            }
        }
    }
    return n;
}

/* Statistics of data files are wanted of the filter's columns and of key columns. */
static tarn_code data_options(const tarn_plan *plan, tarn_arena *arena,
                              const manifest_jobs *deletes, manifest_read_options *out,
                              tarn_error *err) {
    memset(out, 0, sizeof *out);
    out->live_only = true;
    out->want = plan->options.metadata->format_version >= 3 ? MANIFEST_WANT_REST : 0;
    if (plan->options.no_prune) {
        return TARN_OK;
    }
    size_t n = plan->filter != NULL ? expr_field_ids(plan->filter, NULL, 0) : 0;
    int32_t *ids = ARENA_ARRAY(arena, int32_t, n + MAX_STAT_IDS);
    if (ids == NULL) {
        return err_nomem(err);
    }
    n = n > 0 ? expr_field_ids(plan->filter, ids, n) : 0;
    out->stat_ids = ids;
    out->n_stat_ids = add_key_ids(deletes, ids, (int32_t)n);
    out->want |= out->n_stat_ids > 0 ? MANIFEST_WANT_STATS : 0;
    return TARN_OK;
}

static tarn_code take_entries(tarn_plan *plan, const spec_evaluators *evaluators,
                              const manifest_jobs *jobs, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t cap = 0;
    residual_cache cache;
    memset(&cache, 0, sizeof cache);
    for (int32_t i = 0; i < jobs->n; i++) {
        for (int64_t k = 0; k < jobs->items[i].entries.count; k++) {
            const tarn_entry *entry = &jobs->items[i].entries.items[k];
            if (plan->options.appends &&
                (entry->status != TARN_ENTRY_ADDED ||
                 entry->snapshot_id != jobs->items[i].manifest->added_snapshot_id)) {
                continue;
            }
            TRY(plan_entry(plan, find_evaluator(plan, evaluators, entry->file.spec_id), entry,
                           &cache, &cap, err));
        }
    }
done:
    return code;
}

static tarn_code find_deletes(tarn_plan *plan, const delete_index *index, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int64_t i = 0; i < plan->n_tasks && index != NULL; i++) {
        scan_task *task = &plan->tasks[i];
        TRY(delete_index_find(index, &plan->arena, &task->file, task->sequence_number,
                              &task->deletes, &task->n_deletes, err));
    }
    TRY(plan_deletes_new(plan, &plan->deletes, err));
done:
    return code;
}

/* Those of the snapshot, or those with what was appended. */
static tarn_code list_manifests(tarn_plan *plan, const tarn_manifest **out, int32_t *n,
                                tarn_error *err) {
    const tarn_snapshot *const *snapshots;
    int32_t n_snapshots;
    tarn_code code = TARN_OK;
    if (!plan->options.appends) {
        return snapshot_manifests(&plan->arena, plan->store, plan->snapshot, out, n, err);
    }
    TRY(history_between(&plan->arena, plan->options.metadata, plan->snapshot,
                        plan->options.from_snapshot_id, &snapshots, &n_snapshots, err));
    TRY(history_appended(&plan->arena, plan->store, snapshots, n_snapshots, out, n, err));
done:
    return code;
}

static tarn_code plan_files(tarn_plan *plan, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests;
    int32_t n_manifests;
    manifest_jobs jobs = {NULL, 0}, deletes = {NULL, 0};
    manifest_read_options options;
    static const manifest_read_options delete_options = {MANIFEST_WANT_REST | MANIFEST_WANT_STATS,
                                                         NULL, 0, true};
    delete_index *index = NULL;
    spec_evaluators evaluators;
    TRY(make_evaluators(plan, &evaluators, err));
    TRY(list_manifests(plan, &manifests, &n_manifests, err));
    jobs.items = ARENA_ARRAY(&plan->arena, manifest_job, (size_t)n_manifests + 1);
    deletes.items = ARENA_ARRAY(&plan->arena, manifest_job, (size_t)n_manifests + 1);
    plan->manifest_arenas = ARENA_ARRAY(&plan->arena, tarn_arena, (size_t)n_manifests + 1);
    if (jobs.items == NULL || deletes.items == NULL || plan->manifest_arenas == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(read_manifests(plan, &evaluators, manifests, n_manifests, &delete_options, true, &deletes,
                       err));
    TRY(index_deletes(plan, &deletes, &index, err));
    TRY(data_options(plan, &plan->arena, &deletes, &options, err));
    TRY(read_manifests(plan, &evaluators, manifests, n_manifests, &options, false, &jobs, err));
    TRY(take_entries(plan, &evaluators, &jobs, err));
    TRY(find_deletes(plan, index, err));
done:
    return code;
}

static tarn_code plan_init(tarn_plan *plan, tarn_error *err) {
    tarn_code code = TARN_OK;
    const scan_options *o = &plan->options;
    tarn_str mapping;
    TRY(pick_snapshot(plan, err));
    if (properties_get(&o->metadata->properties, "schema.name-mapping.default", &mapping)) {
        json_value *json;
        TRY(json_parse(&plan->arena, mapping, "property schema.name-mapping.default", &json, err));
        plan->name_mapping = json;
    }
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
    plan_deletes_free(plan->deletes);
    for (int32_t i = 0; i < plan->n_manifest_arenas; i++) {
        arena_release(&plan->manifest_arenas[i]);
    }
    arena_release(&plan->arena);
    env_free(plan->env, plan);
}
