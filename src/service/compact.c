/* service/compact.c - see compact.h. */
#include "service/compact.h"

#include "base/pool.h"
#include "service/compact_merge.h"
#include "service/compact_plan.h"

typedef struct compact_input {
    commit_job *job;
    int32_t file; /* of its request */
} compact_input;

struct compact_merge {
    compact_merge *next;
    compact_work *work;
    const compact_policy *policy;
    const tarn_metadata *metadata; /* while it is merged */
    int32_t schema_id;
    tarn_str table_uuid;
    int32_t n;
    const compact_input *inputs;
    const tarn_file *const *files; /* the same */
    int64_t bytes;
    /* of the pool's thread */
    tarn_arena arena;
    write_result made;
    bool done;
    int32_t liar; /* -1: none */
    tarn_error err;
    /* of the rounds */
    uint32_t taken_by; /* unit whose request names it in place of its originals; 0: none */
    bool may_be_there; /* a swap that named it may have been done */
};

void compact_begin(compact_work *w, tarn_env *env, tarn_store *store, service_counters *counters,
                   file_index *index, commit_job *jobs) {
    memset(w, 0, sizeof *w);
    w->index = index;
    w->env = env;
    w->store = store;
    w->counters = counters;
    arena_init(&w->arena, env);
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        job->seen = false;
        job->merged = NULL;
        job->lie = NULL;
        job->unit = 0;
    }
}

/* ---- files are sent once ---- */

/* A table that wanted it once is followed on: what was merged away may still be sent again. */
tarn_code compact_round_begin(compact_work *w, const tarn_metadata *base, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool wanted;
    w->follows = false;
    if (w->index == NULL || w->counters == NULL) {
        return TARN_OK;
    }
    wanted =
        properties_bool(&base->properties, COMPACT_PROPERTY, false, &wanted, NULL) == TARN_OK &&
        wanted;
    if (wanted || w->index->begun) {
        TRY(file_index_follow(w->index, w->store, base, err));
        w->follows = true;
    }
done:
    return code;
}

/* As an id's: taken back by a rollback, or of another branch, it does not count. */
static bool counts(const tarn_metadata *m, tarn_str branch, int64_t id) {
    const tarn_snapshot *head = metadata_head(m, branch);
    return id != TARN_NO_SNAPSHOT &&
           (metadata_snapshot_by_id(m, id) == NULL ||
            (head != NULL && metadata_is_ancestor(m, head->snapshot_id, id)));
}

tarn_code compact_check_file(const compact_work *w, const tarn_metadata *m, tarn_str branch,
                             tarn_str path, tarn_error *err) {
    int64_t by;
    if (file_index_merged(w->index, path, &by)) {
        return err_set(err, TARN_INVALID,
                       "file %.*s was sent before, and merged into others by snapshot %lld",
                       STR_ARG(path), (long long)by);
    }
    if (file_index_has(w->index, path, &by) && counts(m, branch, by)) {
        return err_set(err, TARN_INVALID,
                       "file %.*s is in the table already: snapshot %lld added it", STR_ARG(path),
                       (long long)by);
    }
    return TARN_OK;
}

/* ---- merging ---- */

static tarn_code run_merge(void *ctx, size_t index, tarn_error *err) {
    compact_merge *merge = ((compact_merge **)ctx)[index];
    compact_work *w = merge->work;
    const compact_input_files in = {merge->metadata, merge->files, merge->n,
                                    merge->policy->target_bytes, w->deadline_us};
    (void)err; /* one that fails is no reason not to try the next */
    merge->done = compact_merge_files(w->env, w->store, &in, &merge->arena, &merge->made,
                                      &merge->liar, &merge->err) == TARN_OK;
    return TARN_OK;
}

typedef struct job_files {
    compact_input *inputs;
    const tarn_file **files;
    int32_t n;
} job_files;

/* What the table may have already is left alone; what is not there is refused. */
static tarn_code list_file(compact_work *w, commit_job *job, int32_t file, job_files *out,
                           tarn_error *err) {
    const tarn_file *f = &job->request->added[file];
    tarn_error own = TARN_ERROR_INIT;
    bool fresh = false;
    tarn_code code = file_index_fresh(w->index, w->store, f->path, &fresh, &own);
    if (code == TARN_OK && fresh) {
        out->inputs[out->n] = (compact_input){job, file};
        out->files[out->n++] = f;
    } else if (code == TARN_NOT_FOUND && job->lie == NULL) {
        tarn_error *lie = ARENA_NEW(&w->arena, tarn_error);
        if (lie == NULL) {
            return err_nomem(err);
        }
        *lie = own;
        job->lie = lie;
    }
    return TARN_OK;
}

/* The files of jobs that were not looked at before. */
static tarn_code list_files(compact_work *w, commit_job *const *jobs, int32_t n, job_files *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    size_t total = 0;
    memset(out, 0, sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        total += jobs[i]->seen ? 0 : (size_t)jobs[i]->request->n_added;
    }
    if (total == 0 || total > INT32_MAX / 2) {
        return TARN_OK;
    }
    out->inputs = ARENA_ARRAY(&w->arena, compact_input, total);
    out->files = ARENA_ARRAY(&w->arena, const tarn_file *, total);
    if (out->inputs == NULL || out->files == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t k = 0; !jobs[i]->seen && k < jobs[i]->request->n_added; k++) {
            TRY(list_file(w, jobs[i], k, out, err));
        }
        jobs[i]->seen = true;
    }
done:
    return code;
}

static tarn_code new_merge(compact_work *w, const tarn_metadata *m, const job_files *all,
                           const compact_set *set, compact_merge **out, tarn_error *err) {
    compact_merge *merge = ARENA_NEW(&w->arena, compact_merge);
    compact_input *inputs = ARENA_ARRAY(&w->arena, compact_input, (size_t)set->n);
    const tarn_file **files = ARENA_ARRAY(&w->arena, const tarn_file *, (size_t)set->n);
    if (merge == NULL || inputs == NULL || files == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < set->n; i++) {
        inputs[i] = all->inputs[set->items[i]];
        files[i] = all->files[set->items[i]];
    }
    merge->work = w;
    merge->metadata = m;
    merge->schema_id = m->current_schema_id;
    merge->table_uuid = arena_str(&w->arena, m->table_uuid);
    merge->n = set->n;
    merge->inputs = inputs;
    merge->files = files;
    merge->bytes = set->bytes;
    merge->liar = -1;
    merge->err = (tarn_error)TARN_ERROR_INIT;
    (void)err_set(&merge->err, TARN_INTERNAL, "the merge was not begun");
    arena_init(&merge->arena, w->env);
    *out = merge;
    return merge->table_uuid.data != NULL ? TARN_OK : err_nomem(err);
}

/* Where each file of the job went. */
static bool mark_inputs(compact_work *w, compact_merge *merge) {
    for (int32_t i = 0; i < merge->n; i++) {
        commit_job *job = merge->inputs[i].job;
        if (job->merged == NULL) {
            job->merged = ARENA_ARRAY(&w->arena, compact_merge *, (size_t)job->request->n_added);
        }
        if (job->merged == NULL) {
            return false;
        }
    }
    for (int32_t i = 0; i < merge->n; i++) {
        merge->inputs[i].job->merged[merge->inputs[i].file] = merge;
    }
    return true;
}

static void settle_merge(compact_work *w, compact_merge *merge) {
    if (merge->done && !mark_inputs(w, merge)) {
        write_result_remove(w->store, &merge->made);
        merge->done = false;
    }
    merge->metadata = NULL;
    if (merge->done) {
        return;
    }
    counters_unmerged(w->counters, merge->err.code == TARN_LIMIT);
    env_log(w->env, TARN_LOG_WARN, "service", "compact", "files=%d %s", merge->n,
            merge->err.message);
    if (merge->liar >= 0) {
        commit_job *job = merge->inputs[merge->liar].job;
        job->lie = job->lie != NULL ? job->lie : &merge->err;
    }
}

/* The sets that the group's bounds allow, as merges. */
static tarn_code choose_merges(compact_work *w, const tarn_metadata *m,
                               const compact_policy *policy, const job_files *all,
                               compact_merge ***out, size_t *n_out, tarn_error *err) {
    tarn_code code = TARN_OK;
    compact_set *sets;
    int32_t n;
    TRY(compact_plan(&w->arena, m, policy, all->files, all->n, &sets, &n, err));
    compact_policy *kept = ARENA_NEW(&w->arena, compact_policy);
    compact_merge **merges = ARENA_ARRAY(&w->arena, compact_merge *, (size_t)n + 1);
    if (kept == NULL || merges == NULL) {
        return err_nomem(err);
    }
    *kept = *policy;
    *n_out = 0;
    for (int32_t i = 0; i < n; i++) {
        if (w->bytes + sets[i].bytes > policy->max_group_bytes ||
            w->files + sets[i].n > policy->max_group_files) {
            counters_unmerged(w->counters, true);
            continue;
        }
        w->bytes += sets[i].bytes;
        w->files += sets[i].n;
        TRY(new_merge(w, m, all, &sets[i], &merges[*n_out], err));
        merges[(*n_out)++]->policy = kept;
    }
    *out = merges;
done:
    return code;
}

static void run_merges(compact_work *w, const compact_policy *policy, compact_merge **merges,
                       size_t n) {
    if (!counters_begin_compacting(w->counters, COMPACT_TABLES)) {
        for (size_t i = 0; i < n; i++) {
            counters_unmerged(w->counters, true);
        }
        return;
    }
    if (w->deadline_us == 0) {
        w->deadline_us = env_now_us(w->env) + policy->max_ms * 1000;
    }
    tarn_error err = TARN_ERROR_INIT;
    if (pool_for(w->env, n, run_merge, merges, &err) != TARN_OK) {
        env_log(w->env, TARN_LOG_WARN, "service", "compact", "%s", err.message);
    }
    counters_end_compacting(w->counters);
    for (size_t i = 0; i < n; i++) {
        merges[i]->next = w->merges;
        w->merges = merges[i];
        settle_merge(w, merges[i]);
    }
}

void compact_jobs(compact_work *w, const tarn_metadata *m, commit_job *const *jobs, int32_t n) {
    tarn_code code = TARN_OK;
    tarn_error err = TARN_ERROR_INIT;
    compact_policy policy;
    job_files all;
    compact_merge **merges = NULL;
    size_t n_merges = 0;
    TRY(compact_policy_read(m, &policy, &err));
    if (!policy.wanted) {
        return;
    }
    TRY(list_files(w, jobs, n, &all, &err));
    if (all.n < policy.min_files) {
        return;
    }
    TRY(choose_merges(w, m, &policy, &all, &merges, &n_merges, &err));
    if (n_merges > 0) {
        run_merges(w, &policy, merges, n_merges);
    }
done:
    if (code != TARN_OK) {
        counters_unmerged(w->counters, false);
        env_log(w->env, TARN_LOG_WARN, "service", "compact", "%s", err.message);
    }
}

/* ---- units ---- */

static bool may_take(const compact_work *w, const tarn_metadata *m, const compact_merge *merge) {
    bool may = merge->done && w->follows && merge->schema_id == m->current_schema_id &&
               str_eq(merge->table_uuid, m->table_uuid);
    for (int32_t i = 0; may && i < merge->n; i++) {
        may = merge->inputs[i].job->unit == w->unit &&
              !file_index_has(w->index, merge->files[i]->path, NULL);
    }
    return may;
}

static tarn_code list_taken(compact_work *w, tarn_arena *arena, compact_taken *out,
                            tarn_error *err) {
    tarn_str *paths = ARENA_ARRAY(arena, tarn_str, (size_t)out->n_merged);
    int32_t n = 0;
    if (paths == NULL) {
        return err_nomem(err);
    }
    for (const compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        for (int32_t i = 0; merge->taken_by == w->unit && i < merge->n; i++) {
            paths[n++] = merge->files[i]->path;
        }
    }
    return file_index_text(arena, paths, n, &out->paths, err);
}

static tarn_code list_unit(compact_work *w, commit_job *const *jobs, int32_t n, tarn_arena *arena,
                           compact_taken *out, tarn_error *err) {
    size_t total = 0;
    for (int32_t i = 0; i < n; i++) {
        total += (size_t)jobs[i]->request->n_added;
    }
    tarn_file *files = ARENA_ARRAY(arena, tarn_file, total);
    if (files == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t k = 0; k < jobs[i]->request->n_added; k++) {
            const compact_merge *merge = jobs[i]->merged != NULL ? jobs[i]->merged[k] : NULL;
            if (merge == NULL || merge->taken_by != w->unit) {
                files[out->n_files++] = jobs[i]->request->added[k];
            }
        }
    }
    for (const compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        for (int32_t i = 0; merge->taken_by == w->unit && i < merge->made.n_files; i++) {
            files[out->n_files++] = merge->made.files[i];
        }
    }
    out->files = files;
    return TARN_OK;
}

tarn_code compact_take(compact_work *w, const tarn_metadata *m, commit_job *const *jobs, int32_t n,
                       tarn_arena *arena, compact_taken *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    w->unit++;
    for (int32_t i = 0; i < n; i++) {
        jobs[i]->unit = w->unit;
    }
    for (compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        if (may_take(w, m, merge)) {
            merge->taken_by = w->unit;
            out->n_merged += merge->n;
        }
    }
    if (out->n_merged == 0) {
        return TARN_OK;
    }
    TRY(list_unit(w, jobs, n, arena, out, err));
    TRY(list_taken(w, arena, out, err));
done:
    if (code != TARN_OK) {
        compact_untake(w);
    }
    return code;
}

void compact_untake(compact_work *w) {
    for (compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        merge->taken_by = merge->taken_by == w->unit ? 0 : merge->taken_by;
    }
}

void compact_round_end(compact_work *w, tarn_outcome_kind outcome) {
    w->committed = outcome == TARN_COMMITTED;
    for (compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        if (merge->taken_by != 0 && outcome == TARN_OUTCOME_UNKNOWN) {
            merge->may_be_there = true;
        }
        merge->taken_by = w->committed ? merge->taken_by : 0;
    }
}

/* An original that somebody named all the same, or of which that is not certain, stays. */
static bool may_remove(const compact_work *w, tarn_str path) {
    bool fresh = false;
    return w->follows && env_now_us(w->env) - w->swap_us <= COMPACT_REMOVE_US &&
           file_index_fresh(w->index, w->store, path, &fresh, NULL) == TARN_OK && fresh;
}

static void end_merged(compact_work *w, const compact_merge *merge) {
    int64_t made = 0;
    int32_t left = 0;
    for (int32_t i = 0; i < merge->made.n_files; i++) {
        made += merge->made.files[i].size_bytes;
    }
    counters_merged(w->counters, merge->n, merge->bytes, merge->made.n_files, made);
    for (int32_t i = 0; i < merge->n; i++) {
        if (may_remove(w, merge->files[i]->path)) {
            store_discard(w->store, merge->files[i]->path);
        } else {
            left++;
        }
    }
    if (left > 0) {
        env_log(w->env, TARN_LOG_WARN, "service", "compact", "originals-left=%d", left);
    }
}

static bool took_any(const compact_work *w) {
    const compact_merge *merge = w->merges;
    while (merge != NULL && !(merge->done && merge->taken_by != 0)) {
        merge = merge->next;
    }
    return merge != NULL && w->committed;
}

void compact_end(compact_work *w, const tarn_metadata *m) {
    tarn_error err = TARN_ERROR_INIT;
    if (took_any(w)) { /* others' snapshots may have come into it */
        w->follows = m != NULL && file_index_follow(w->index, w->store, m, &err) == TARN_OK;
    }
    for (compact_merge *merge = w->merges; merge != NULL; merge = merge->next) {
        if (merge->done && w->committed && merge->taken_by != 0) {
            end_merged(w, merge);
        } else if (merge->done && !merge->may_be_there) {
            write_result_remove(w->store, &merge->made);
        }
        arena_release(&merge->arena);
    }
    arena_release(&w->arena);
}
