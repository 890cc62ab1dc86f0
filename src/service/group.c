/* service/group.c - see group.h.
 *
 *   base -> for each job in order: changes on what the ones before made -> one swap -> outcomes
 *
 * Appends that agree (share, branch, kind, summary, nothing else asked) and stand next to each
 * other are a unit: one snapshot. Every other request is a unit of its own. What a unit wrote is
 * removed when the round's swap did not take it, and so is what jobs wrote that made their changes
 * themselves. */
#include "service/group.h"

#include "base/map.h"
#include "service/compact.h"
#include "service/trim.h"

#define MAX_ATTEMPTS 20
#define BACKOFF_MS   10

/* One or more requests that become one snapshot. */
typedef struct group_unit {
    commit_request request;
    commit_maker *maker;
    struct group_unit *next;
} group_unit;

/* The jobs on one base. */
typedef struct group_round {
    commit_group *group;
    compact_work *compact;
    tarn_arena arena;
    tarn_table_version *base;
    bool current;             /* base was loaded, not remembered */
    const tarn_metadata *now; /* base with the jobs applied so far */
    tarn_change *changes;     /* of all jobs that hold */
    int32_t n_changes, cap;
    written_files files; /* of jobs that make their changes themselves */
    group_unit *units;
    tarn_map ids;      /* of this round's requests, to their jobs */
    tarn_map paths;    /* of the files that they add, by hash, to the same */
    commit_job **open; /* appends that wait to be joined */
    int32_t n_open, open_cap;
} group_round;

static tarn_code add_changes(group_round *rd, const tarn_change_set *set, tarn_error *err) {
    if (rd->n_changes + set->n_changes > rd->cap) {
        int32_t cap = (rd->n_changes + set->n_changes) * 2;
        tarn_change *changes =
            arena_grow(&rd->arena, rd->changes, (size_t)rd->cap * sizeof *changes,
                       (size_t)cap * sizeof *changes);
        if (changes == NULL) {
            return err_nomem(err);
        }
        rd->changes = changes;
        rd->cap = cap;
    }
    if (set->n_changes > 0) {
        memcpy(rd->changes + rd->n_changes, set->changes,
               (size_t)set->n_changes * sizeof *set->changes);
    }
    rd->n_changes += set->n_changes;
    return TARN_OK;
}

static tarn_code apply_set(group_round *rd, const tarn_change_set *set, tarn_error *err) {
    const tarn_metadata *next;
    tarn_code code = TARN_OK;
    TRY(change_check(rd->now, set, err));
    TRY(change_apply(&rd->arena, rd->now, set, env_now_ms(rd->group->env), &next, err));
    TRY(add_changes(rd, set, err));
    rd->now = next;
done:
    return code;
}

static void apply_changes(group_round *rd, commit_job *job) {
    tarn_code code = TARN_OK;
    tarn_change_set set;
    const int32_t before = rd->files.n;
    memset(&set, 0, sizeof set);
    TRY(job->make(job, &rd->files, rd->now, &set, &job->err));
    TRY(apply_set(rd, &set, &job->err));
done:
    if (code != TARN_OK) {
        written_discard(&rd->files, before);
    }
    job->code = code;
}

/* ---- units ---- */

static tarn_str branch_of(const commit_request *request) {
    return request->branch.len > 0 ? request->branch : STR(TARN_MAIN_BRANCH);
}

static bool same_properties(const tarn_properties *a, const tarn_properties *b) {
    bool same = a->count == b->count;
    for (int32_t i = 0; same && i < a->count; i++) {
        same = str_eq(a->items[i].key, b->items[i].key) &&
               str_eq(a->items[i].value, b->items[i].value);
    }
    return same;
}

static bool may_share(const commit_request *r) {
    return r->share && r->commit_id != NULL && r->n_added > 0 && r->n_added_deletes == 0 &&
           r->n_removed == 0 && r->n_removed_deletes == 0 && r->n_referenced == 0 &&
           r->properties.count == 0 && r->fence == NULL &&
           (r->kind == COMMIT_FAST_APPEND || r->kind == COMMIT_MERGE_APPEND);
}

static bool agree(const commit_request *a, const commit_request *b) {
    return a->kind == b->kind && str_eq(branch_of(a), branch_of(b)) &&
           str_eq(a->table_uuid, b->table_uuid) && same_properties(&a->summary, &b->summary);
}

/* The summary says how many files others stand for, the manifest list which. */
static tarn_code tell_merged(group_round *rd, const compact_taken *taken, commit_request *out,
                             tarn_error *err) {
    const tarn_properties *before = &out->summary;
    tarn_property *items = ARENA_ARRAY(&rd->arena, tarn_property, (size_t)before->count + 1);
    tarn_property *paths = ARENA_NEW(&rd->arena, tarn_property);
    char *text = arena_printf(&rd->arena, "%d", taken->n_merged);
    if (items == NULL || paths == NULL || text == NULL) {
        return err_nomem(err);
    }
    if (before->count > 0) {
        memcpy(items, before->items, (size_t)before->count * sizeof *items);
    }
    items[before->count] = (tarn_property){STR(COMPACT_SUMMARY), str_of(text)};
    out->summary = (tarn_properties){before->count + 1, items};
    *paths = (tarn_property){STR(FILE_INDEX_KEY), taken->paths};
    out->list_properties = (tarn_properties){1, paths};
    return TARN_OK;
}

/* The files of all, one after the other, or what they were merged to. */
static tarn_code join_files(group_round *rd, commit_job *const *jobs, int32_t n,
                            commit_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t total = 0;
    compact_taken taken;
    TRY(compact_take(rd->compact, rd->now, jobs, n, &rd->arena, &taken, err));
    if (taken.files != NULL) {
        out->added = taken.files;
        out->n_added = taken.n_files;
        return tell_merged(rd, &taken, out, err);
    }
    if (n == 1) {
        return TARN_OK;
    }
    for (int32_t i = 0; i < n; i++) {
        total += jobs[i]->request->n_added;
    }
    if (total > INT32_MAX / 2) {
        return err_set(err, TARN_LIMIT, "a group of appends had %lld files", (long long)total);
    }
    tarn_file *files = ARENA_ARRAY(&rd->arena, tarn_file, (size_t)total);
    if (files == NULL) {
        return err_nomem(err);
    }
    out->added = files;
    out->n_added = 0;
    for (int32_t i = 0; i < n; i++) {
        const commit_request *r = jobs[i]->request;
        memcpy(files + out->n_added, r->added, (size_t)r->n_added * sizeof *files);
        out->n_added += r->n_added;
    }
done:
    return code;
}

/* The files of all under the ids of all. */
static tarn_code join_requests(group_round *rd, commit_job *const *jobs, int32_t n,
                               commit_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    *out = *jobs[0]->request;
    TRY(join_files(rd, jobs, n, out, err));
    if (n > 1) {
        tarn_str *ids = ARENA_ARRAY(&rd->arena, tarn_str, (size_t)n);
        if (ids == NULL) {
            return err_nomem(err);
        }
        for (int32_t i = 0; i < n; i++) {
            ids[i] = str_of(jobs[i]->request->commit_id);
        }
        out->commit_id = NULL;
        out->shared_ids = ids;
        out->n_shared_ids = n;
    }
done:
    return code;
}

static tarn_code apply_unit(group_round *rd, commit_job *const *jobs, int32_t n, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_change_set set;
    group_unit *unit = ARENA_NEW(&rd->arena, group_unit);
    if (unit == NULL) {
        return err_nomem(err);
    }
    TRY(join_requests(rd, jobs, n, &unit->request, err));
    TRY(commit_maker_new(rd->group->env, rd->group->catalog->store, &unit->request, &unit->maker,
                         err));
    TRY(commit_maker_attempt(unit->maker, rd->now, &set, err));
    if (set.n_changes > 0) {
        TRY(apply_set(rd, &set, err));
    }
    for (int32_t i = 0; i < n; i++) {
        jobs[i]->snapshot_id =
            set.n_changes > 0 ? commit_maker_snapshot_id(unit->maker) : TARN_NO_SNAPSHOT;
    }
    unit->next = rd->units;
    rd->units = unit;
done:
    if (code != TARN_OK) {
        compact_untake(rd->compact);
        commit_maker_end(unit->maker, TARN_NOT_COMMITTED);
    }
    return code;
}

/* Small files of those that wait to be joined become larger ones. Whose file is not what was said
 * is refused, and how many are left is given. */
static int32_t compact_open(group_round *rd) {
    int32_t n = 0;
    if (rd->compact->follows && rd->n_open > 0 && may_share(rd->open[0]->request)) {
        compact_jobs(rd->compact, rd->now, rd->open, rd->n_open);
    }
    for (int32_t i = 0; i < rd->n_open; i++) {
        commit_job *job = rd->open[i];
        if (job->lie != NULL) {
            job->code = TARN_INVALID;
            job->err = *job->lie;
        } else {
            rd->open[n++] = job;
        }
    }
    return n;
}

/* Those that wait to be joined become a unit. If that fails each is tried for itself, so that one
 * is not refused for another's fault. */
static void close_unit(group_round *rd) {
    tarn_error err = TARN_ERROR_INIT;
    int32_t n = compact_open(rd);
    rd->n_open = 0;
    if (n == 0) {
        return;
    }
    tarn_code code = apply_unit(rd, rd->open, n, &err);
    for (int32_t i = 0; i < n && code != TARN_OK; i++) {
        tarn_error own = TARN_ERROR_INIT;
        tarn_code alone = n == 1 ? code : apply_unit(rd, &rd->open[i], 1, &own);
        if (alone != TARN_OK) {
            rd->open[i]->code = alone;
            rd->open[i]->err = n == 1 ? err : own;
        }
    }
}

static tarn_code open_unit(group_round *rd, commit_job *job, tarn_error *err) {
    if (rd->n_open == rd->open_cap) {
        int32_t cap = rd->open_cap == 0 ? 64 : rd->open_cap * 2;
        commit_job **open = arena_grow(&rd->arena, rd->open, (size_t)rd->open_cap * sizeof *open,
                                       (size_t)cap * sizeof *open);
        if (open == NULL) {
            return err_nomem(err);
        }
        rd->open = open;
        rd->open_cap = cap;
    }
    rd->open[rd->n_open++] = job;
    return TARN_OK;
}

static tarn_code search_before(const group_round *rd, const commit_job *job, int64_t *snapshot_id,
                               tarn_error *err) {
    const commit_group *g = rd->group;
    return commit_index_search(g->env, g->catalog->store, rd->base->metadata,
                               branch_of(job->request), str_of(job->request->commit_id),
                               snapshot_id, err);
}

/* Whether it was done before, by a snapshot or (*twin) by a job of this round. */
static tarn_code find_before(group_round *rd, commit_job *job, int64_t *snapshot_id,
                             const commit_job **twin, tarn_error *err) {
    const commit_request *request = job->request;
    const commit_group *g = rd->group;
    const tarn_metadata *m = rd->base->metadata;
    tarn_code code = TARN_OK;
    bool added = true;
    *snapshot_id = TARN_NO_SNAPSHOT;
    *twin = NULL;
    if (request->commit_id == NULL) {
        return TARN_OK;
    }
    tarn_str id = str_of(request->commit_id);
    *snapshot_id = commit_index_find(g->index, m, branch_of(request), id);
    if (*snapshot_id == TARN_NO_SNAPSHOT && (job->resent || job->absent.len > 0)) {
        TRY(search_before(rd, job, snapshot_id, err));
    }
    if (*snapshot_id != TARN_NO_SNAPSHOT) {
        goto done;
    }
    map_entry *e = map_put(&rd->ids, id, &added);
    if (e == NULL) {
        return err_nomem(err);
    }
    *twin = added ? NULL : e->value.ptr;
    e->value.ptr = added ? job : e->value.ptr;
done:
    return code;
}

/* Whether a file of the job was sent before (compact.h, invariant 5). */
static tarn_code check_sent_once(group_round *rd, commit_job *job, tarn_error *err) {
    const commit_request *r = job->request;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; rd->compact->follows && i < r->n_added; i++) {
        bool added;
        uint64_t hash = file_index_hash(r->added[i].path);
        tarn_str key = arena_str(&rd->arena, str_make((const char *)&hash, sizeof hash));
        map_entry *e = key.data != NULL ? map_put(&rd->paths, key, &added) : NULL;
        if (e == NULL) {
            return err_nomem(err);
        }
        const commit_job *other = e->value.ptr;
        if (!added && (other == job || other->code == TARN_OK)) {
            return err_set(err, TARN_INVALID, "file %.*s is sent twice", STR_ARG(r->added[i].path));
        }
        e->value.ptr = job;
        TRY(compact_check_file(rd->compact, rd->base->metadata, branch_of(r), r->added[i].path,
                               err));
    }
done:
    return code;
}

/* The same for a job of this id, which may be known no more: it is looked for everywhere before
 * anybody is refused. */
static tarn_code check_files(group_round *rd, commit_job *job, tarn_error *err) {
    tarn_error none = TARN_ERROR_INIT;
    tarn_code code = check_sent_once(rd, job, err);
    if (code != TARN_INVALID || job->request->commit_id == NULL || job->resent) {
        return code;
    }
    TRY(search_before(rd, job, &job->snapshot_id, &none));
    if (job->snapshot_id != TARN_NO_SNAPSHOT) {
        job->repeated = true;
        err_reset(err);
        return TARN_OK;
    }
    code = TARN_INVALID;
done:
    if (code != TARN_OK && code != TARN_INVALID) {
        *err = none;
    }
    return code;
}

/* A twin's outcome is not known before its unit is closed: it is taken over at the end. */
static void apply_request(group_round *rd, commit_job *job) {
    tarn_code code = TARN_OK;
    int64_t before;
    const commit_job *twin;
    TRY(find_before(rd, job, &before, &twin, &job->err));
    if (before != TARN_NO_SNAPSHOT || twin != NULL) {
        job->repeated = true;
        job->twin = twin;
        job->snapshot_id = before;
        goto done;
    }
    if (job->absent.len > 0) {
        code = err_set(&job->err, TARN_INVALID, "file %.*s does not exist", STR_ARG(job->absent));
        goto done;
    }
    TRY(check_files(rd, job, &job->err));
    if (job->repeated) {
        goto done;
    }
    if (rd->n_open > 0 && !(may_share(job->request) && agree(job->request, rd->open[0]->request))) {
        close_unit(rd);
    }
    TRY(open_unit(rd, job, &job->err));
    if (!may_share(job->request)) {
        close_unit(rd);
    }
done:
    job->code = code != TARN_OK ? code : job->code; /* its unit may have failed already */
}

static void apply_all(group_round *rd, commit_job *jobs) {
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        job->code = TARN_OK;
        job->repeated = false;
        job->twin = NULL;
        job->snapshot_id = TARN_NO_SNAPSHOT;
        err_reset(&job->err);
        if (job->make != NULL) {
            close_unit(rd);
            apply_changes(rd, job);
        } else {
            apply_request(rd, job);
        }
    }
    close_unit(rd);
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        if (job->twin != NULL) {
            job->snapshot_id = job->twin->snapshot_id;
            job->code = job->twin->code;
            job->err = job->twin->err;
        }
    }
}

/* ---- the swap ---- */

static bool has_requests(const commit_job *jobs) {
    while (jobs != NULL && (jobs->make != NULL || jobs->request->commit_id == NULL)) {
        jobs = jobs->next;
    }
    return jobs != NULL;
}

static bool holds_ours(const group_round *rd, const tarn_metadata *m) {
    for (int32_t i = 0; i < rd->n_changes; i++) {
        const tarn_change *c = &rd->changes[i];
        if (c->kind == CHANGE_ADD_SNAPSHOT &&
            metadata_snapshot_by_id(m, c->snapshot->snapshot_id) != NULL) {
            return true;
        }
    }
    return false;
}

/* *version: the table after it, or after a conflict as it is now; NULL: not known. A conflict may
 * be the answer to a swap that was sent twice (B28, B29), so before anything is made of it the
 * table is looked at; where it cannot be, the outcome is not known. */
static tarn_code swap(group_round *rd, tarn_outcome_kind *outcome, tarn_table_version **version,
                      tarn_error *err) {
    tarn_error unseen = TARN_ERROR_INIT;
    const commit_group *g = rd->group;
    tarn_str uuid = rd->base->metadata->table_uuid;
    const tarn_requirement same = {REQUIRE_UUID, uuid, 0};
    const tarn_change_set set = {uuid.len > 0 ? 1 : 0, &same, rd->n_changes, rd->changes};
    tarn_code code = catalog_commit(g->catalog, g->table, rd->base, &set, outcome, version, err);
    if (code != TARN_CONFLICT && *outcome != TARN_OUTCOME_UNKNOWN) {
        return code;
    }
    if (catalog_load(g->catalog, g->table, version, &unseen) != TARN_OK) {
        *version = NULL;
        if (*outcome == TARN_NOT_COMMITTED) {
            *outcome = TARN_OUTCOME_UNKNOWN;
            code = err_set(err, TARN_COMMIT_UNKNOWN,
                           "the commit met a conflict, and the table could not be looked at: %s",
                           unseen.message);
        }
    } else if (holds_ours(rd, (*version)->metadata)) {
        *outcome = TARN_COMMITTED;
        err_reset(err);
        code = TARN_OK;
    } else if (*outcome == TARN_OUTCOME_UNKNOWN) {
        table_version_release(*version); /* the swap may yet arrive */
        *version = NULL;
    }
    return code;
}

static void end_units(group_round *rd, tarn_outcome_kind outcome) {
    if (outcome == TARN_NOT_COMMITTED) {
        written_discard(&rd->files, 0);
    }
    for (group_unit *u = rd->units; u != NULL; u = u->next) {
        commit_maker_end(u->maker, outcome);
    }
    rd->units = NULL;
}

static void remember(commit_group *g, tarn_table_version *version) {
    table_version_release(g->known);
    g->known = version;
}

static tarn_code begin_round(group_round *rd, const commit_job *jobs, tarn_error *err) {
    commit_group *g = rd->group;
    tarn_code code = TARN_OK;
    if (g->known != NULL) {
        rd->base = table_version_keep(g->known);
    } else {
        TRY(catalog_load(g->catalog, g->table, &rd->base, err));
        rd->current = true;
    }
    rd->now = rd->base->metadata;
    TRY(compact_round_begin(rd->compact, rd->now, err));
    if (has_requests(jobs)) {
        TRY(commit_index_follow(g->index, g->catalog->store, rd->now, err));
    }
done:
    return code;
}

/* Ids are taken down before the snapshots go that tell them. Failing to trim is no reason to refuse
 * anybody. */
static void trim(group_round *rd, trim_plan *plan) {
    tarn_error err = TARN_ERROR_INIT;
    commit_group *g = rd->group;
    const tarn_metadata *base = rd->base->metadata;
    tarn_code code = trim_find(&rd->arena, rd->now, base, env_now_ms(g->env), plan, &err);
    if (code == TARN_OK && plan->n > 0) {
        const tarn_change_set set = {0, NULL, 1, &plan->change};
        code = commit_index_follow(g->index, g->catalog->store, base, &err);
        code = code == TARN_OK ? apply_set(rd, &set, &err) : code;
    }
    if (code != TARN_OK) {
        plan->n = 0;
        env_log(g->env, TARN_LOG_WARN, "service", "trim", "%s", err.message);
    }
}

/* CONFLICT: to be done again, on the table as it is. */
static tarn_code run_round(group_round *rd, commit_job *jobs, tarn_error *err) {
    commit_group *g = rd->group;
    tarn_outcome_kind outcome = TARN_NOT_COMMITTED;
    tarn_table_version *version = NULL;
    trim_plan plan = {0};
    tarn_code code = TARN_OK;
    TRY(begin_round(rd, jobs, err));
    apply_all(rd, jobs);
    if (rd->n_changes == 0 && !rd->current) {
        code = err_set(err, TARN_CONFLICT, "the table may have changed");
        goto done;
    }
    if (rd->n_changes > 0) {
        trim(rd, &plan);
        rd->compact->swap_us = env_now_us(g->env);
        TRY(swap(rd, &outcome, &version, err));
        trim_files(g->env, g->catalog->store, &plan);
    } else {
        version = table_version_keep(rd->base);
    }
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        if (job->code == TARN_OK) {
            job->version = table_version_keep(version);
        }
    }
done:
    end_units(rd, outcome);
    compact_round_end(rd->compact, outcome);
    remember(g, version);
    return code;
}

void group_run(commit_group *g, commit_job *jobs) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_CONFLICT;
    compact_work compact;
    compact_begin(&compact, g->env, g->catalog->store, g->counters, g->files, jobs);
    for (int attempt = 1; attempt <= MAX_ATTEMPTS && code == TARN_CONFLICT; attempt++) {
        group_round rd;
        memset(&rd, 0, sizeof rd);
        rd.group = g;
        rd.compact = &compact;
        arena_init(&rd.arena, g->env);
        map_init(&rd.ids, &rd.arena);
        map_init(&rd.paths, &rd.arena);
        rd.files.arena = &rd.arena;
        rd.files.store = g->catalog->store;
        if (attempt > 2) { /* another service moves the pointer */
            env_sleep_ms(g->env,
                         (int64_t)(env_random_u64(g->env) % (BACKOFF_MS * (uint64_t)attempt)));
        }
        err_reset(&err);
        code = run_round(&rd, jobs, &err);
        table_version_release(rd.base);
        arena_release(&rd.arena);
    }
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        if (job->code == TARN_OK && code != TARN_OK) {
            job->code = code;
            job->err = err;
        }
    }
    compact_end(&compact, g->known != NULL ? g->known->metadata : NULL);
}
