/* write/commit/commit.c - the commit loop; protocol and invariants in commit.h.
 *
 *   START -> attempt: produce snapshot, catalog_commit
 *     COMMITTED                         -> remove what lost attempts wrote and the table does not
 * name -> END committed NOT_COMMITTED, code CONFLICT      -> reload; our snapshot there? END
 * committed : back off, attempt (commit.retry.*) NOT_COMMITTED, any other code     -> remove all
 * that was written -> END not committed UNKNOWN                           -> reload; our snapshot
 * there? END committed : END unknown, nothing is removed */
#include "write/commit/commit_int.h"

/* For tables that do not say. A lost swap means that somebody else's commit was done, so with many
 * writers it is no sign of a lasting fault: more tries than the 4 that Iceberg's own writers have,
 * closer together than up to a minute. */
#define DEFAULT_RETRIES     20
#define DEFAULT_MAX_WAIT_MS 2000

typedef struct retry_rule {
    int64_t retries, min_wait_ms, max_wait_ms, total_ms;
} retry_rule;

static tarn_code read_retry_rule(const tarn_metadata *m, retry_rule *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    TRY(properties_i64(&m->properties, "commit.retry.num-retries", DEFAULT_RETRIES, &out->retries,
                       err));
    TRY(properties_i64(&m->properties, "commit.retry.min-wait-ms", 100, &out->min_wait_ms, err));
    TRY(properties_i64(&m->properties, "commit.retry.max-wait-ms", DEFAULT_MAX_WAIT_MS,
                       &out->max_wait_ms, err));
    TRY(properties_i64(&m->properties, "commit.retry.total-timeout-ms", 1800000, &out->total_ms,
                       err));
done:
    return code;
}

/* Exponential, with half of it random, so that writers that collided once do not again. */
static void back_off(tarn_env *env, const retry_rule *rule, int32_t attempt) {
    int64_t wait = rule->min_wait_ms < 1 ? 1 : rule->min_wait_ms;
    for (int32_t i = 1; i < attempt && wait < rule->max_wait_ms; i++) {
        wait *= 2;
    }
    wait = wait > rule->max_wait_ms && rule->max_wait_ms > 0 ? rule->max_wait_ms : wait;
    env_sleep_ms(env, wait / 2 + (int64_t)(env_random_u64(env) % (uint64_t)(wait / 2 + 1)));
}

static tarn_str request_branch(const commit_request *request) {
    return request->branch.len > 0 ? request->branch : STR(TARN_MAIN_BRANCH);
}

const tarn_snapshot *commit_find_summary(const tarn_metadata *m, tarn_str branch, const char *key,
                                         tarn_str value, bool *cut) {
    const tarn_ref *ref = metadata_ref(m, branch);
    const tarn_snapshot *s = ref != NULL ? metadata_snapshot_by_id(m, ref->snapshot_id) : NULL;
    bool whole = true;
    const tarn_snapshot *found = NULL;
    /* No chain is longer than there are snapshots: parents that form a ring end here. */
    for (int32_t steps = 0; s != NULL && steps < m->n_snapshots; steps++) {
        tarn_str held;
        if (properties_get(&s->summary, key, &held) && str_eq(held, value)) {
            found = s;
            break;
        }
        const tarn_snapshot *parent = metadata_parent(m, s);
        whole = parent != NULL || s->parent_id == TARN_NO_SNAPSHOT;
        s = parent;
    }
    if (cut != NULL) {
        *cut = !whole;
    }
    return found;
}

/* A snapshot of the branch that carries the commit id already. */
static const tarn_snapshot *find_commit_id(const tarn_metadata *m, const commit_request *request) {
    return request->commit_id != NULL
               ? commit_find_summary(m, request_branch(request), "tarn.commit-id",
                                     str_of(request->commit_id), NULL)
               : NULL;
}

static tarn_code find_parent(commit_attempt *a, tarn_error *err) {
    const tarn_ref *ref = metadata_ref(a->metadata, a->branch);
    if (ref == NULL) {
        return TARN_OK;
    }
    if (ref->is_tag) {
        return err_set(err, TARN_INVALID, "%.*s is a tag; commits go to branches",
                       STR_ARG(a->branch));
    }
    a->parent = metadata_snapshot_by_id(a->metadata, ref->snapshot_id);
    if (a->parent == NULL) {
        return err_set(err, TARN_CORRUPT, "branch %.*s names snapshot %lld, which the table lacks",
                       STR_ARG(a->branch), (long long)ref->snapshot_id);
    }
    return TARN_OK;
}

/* Requirements and changes that put a->snapshot at the head of the branch. */
static void make_changes(commit_attempt *a, tarn_requirement requirements[2],
                         tarn_change changes[2], tarn_change_set *set) {
    const tarn_metadata *m = a->metadata;
    const tarn_ref *ref = metadata_ref(m, a->branch);
    memset(set, 0, sizeof *set);
    memset(requirements, 0, 2 * sizeof *requirements);
    memset(changes, 0, 2 * sizeof *changes);
    int32_t n = 0;
    if (m->table_uuid.len > 0) {
        requirements[n].kind = REQUIRE_UUID;
        requirements[n++].text = m->table_uuid;
    }
    requirements[n].kind = REQUIRE_REF_SNAPSHOT_ID;
    requirements[n].text = a->branch;
    requirements[n++].number = a->parent != NULL ? a->parent->snapshot_id : TARN_NO_SNAPSHOT;
    changes[0].kind = CHANGE_ADD_SNAPSHOT;
    changes[0].snapshot = a->snapshot;
    changes[1].kind = CHANGE_SET_SNAPSHOT_REF;
    if (ref != NULL) {
        changes[1].ref = *ref; /* its retention settings stay */
    } else {
        changes[1].ref.max_ref_age_ms = -1;
        changes[1].ref.max_snapshot_age_ms = -1;
        changes[1].ref.min_snapshots_to_keep = -1;
    }
    changes[1].ref.name = a->branch;
    changes[1].ref.snapshot_id = a->snapshot->snapshot_id;
    set->requirements = requirements;
    set->n_requirements = n;
    set->changes = changes;
    set->n_changes = 2;
}

static tarn_code attempt_commit(commit_work *work, tarn_table_version *base,
                                tarn_outcome_kind *kind, tarn_table_version **version,
                                bool *nothing, path_list *kept, tarn_error *err) {
    commit_attempt a;
    tarn_requirement requirements[2];
    tarn_change changes[2];
    tarn_change_set set;
    tarn_code code = TARN_OK;
    memset(&a, 0, sizeof a);
    a.work = work;
    a.base = base;
    a.metadata = base->metadata;
    a.branch = request_branch(work->request);
    arena_init(&a.arena, work->env);
    *kind = TARN_NOT_COMMITTED;
    *nothing = false;
    work->attempt++;
    TRY(find_parent(&a, err));
    if (work->request->check != NULL) {
        TRY(work->request->check(work->request->check_ctx, a.metadata, err));
    }
    TRY(produce_snapshot(&a, err));
    if (a.snapshot == NULL) {
        *nothing = true;
        goto done;
    }
    kept->count = 0;
    TRY(path_list_add(&work->arena, kept, a.snapshot->manifest_list, err));
    for (int32_t i = 0; i < a.n_list; i++) {
        if (a.list[i].added_snapshot_id == work->snapshot_id) {
            tarn_str path = arena_str(&work->arena, a.list[i].path);
            if (path.data == NULL) {
                code = err_nomem(err);
                goto done;
            }
            TRY(path_list_add(&work->arena, kept, path, err));
        }
    }
    make_changes(&a, requirements, changes, &set);
    code = catalog_commit(work->catalog, work->table, base, &set, kind, version, err);
done:
    arena_release(&a.arena);
    return code;
}

static bool path_list_has(const path_list *list, tarn_str path) {
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i], path)) {
            return true;
        }
    }
    return false;
}

/* Removes what we wrote and the committed snapshot does not name (invariant 3). Failing to is
 * logged, not an error. */
static void clean_up(commit_work *work, const path_list *kept) {
    for (size_t i = 0; i < work->written.count; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_str path = work->written.items[i];
        if (path_list_has(kept, path)) {
            continue;
        }
        tarn_code code = store_remove(work->store, path, &err);
        if (code != TARN_OK && code != TARN_NOT_FOUND && store_exists(work->store, path)) {
            env_log(work->env, TARN_LOG_WARN, "commit", "cleanup", "%s", err.message);
        }
    }
}

/* Looks whether our snapshot is in the table after all: a lost answer, a request sent twice (B28).
 * The fate is only known when the table could be read; *found with the version that has it. */
static tarn_code find_ours(commit_work *work, tarn_table_version **version, bool *found,
                           bool *other, tarn_error *err) {
    *found = false;
    *other = false;
    *version = NULL;
    tarn_code code = catalog_load(work->catalog, work->table, version, err);
    if (code != TARN_OK) {
        return code;
    }
    const tarn_metadata *m = (*version)->metadata;
    const tarn_snapshot *same = find_commit_id(m, work->request);
    *found = true;
    *other = false;
    if (metadata_snapshot_by_id(m, work->snapshot_id) == NULL) {
        *found = *other = same != NULL; /* another process committed the same work */
        work->snapshot_id = same != NULL ? same->snapshot_id : work->snapshot_id;
    }
    return TARN_OK;
}

static void set_committed(commit_work *work, tarn_table_version *version, commit_outcome *outcome) {
    outcome->kind = TARN_COMMITTED;
    outcome->snapshot_id = work->snapshot_id;
    outcome->version = version;
    env_log(work->env, TARN_LOG_INFO, "commit", "committed", "snapshot=%lld attempts=%d",
            (long long)work->snapshot_id, work->attempt);
}

/* The answer to the swap is not known. */
static tarn_code resolve_unknown(commit_work *work, const path_list *kept, commit_outcome *outcome,
                                 tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_error ignored = TARN_ERROR_INIT;
    path_list none = {0};
    bool found;
    bool other;
    outcome->kind = TARN_OUTCOME_UNKNOWN;
    outcome->snapshot_id = work->snapshot_id;
    tarn_code code = find_ours(work, &version, &found, &other, &ignored);
    if (code == TARN_OK && found) {
        err_reset(err);
        clean_up(work, other ? &none : kept);
        set_committed(work, version, outcome);
        return TARN_OK;
    }
    table_version_release(version);
    if (err != NULL && err->code != TARN_COMMIT_UNKNOWN) {
        tarn_error first = *err;
        return err_set(err, TARN_COMMIT_UNKNOWN,
                       "commit of snapshot %lld was sent and its answer is not known: %s",
                       (long long)work->snapshot_id, first.message);
    }
    return TARN_COMMIT_UNKNOWN;
}

/* After a conflict: the newest version in *base; true in *done when the commit turned out to be
 * there. */
static tarn_code refresh(commit_work *work, tarn_table_version **base, const path_list *kept,
                         commit_outcome *outcome, bool *done, tarn_error *err) {
    tarn_table_version *version;
    path_list none = {0};
    bool found;
    bool other;
    *done = false;
    tarn_code code = find_ours(work, &version, &found, &other, err);
    if (code != TARN_OK) {
        return code;
    }
    if (found) {
        clean_up(work, other ? &none : kept);
        set_committed(work, version, outcome);
        *done = true;
        return TARN_OK;
    }
    table_version_release(*base);
    *base = version;
    return TARN_OK;
}

static tarn_code commit_loop(commit_work *work, tarn_table_version **base, commit_outcome *outcome,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    retry_rule rule;
    path_list kept;
    path_list none;
    int64_t started_ms = env_now_ms(work->env);
    memset(&kept, 0, sizeof kept);
    memset(&none, 0, sizeof none);
    TRY(read_retry_rule((*base)->metadata, &rule, err));
    for (;;) {
        bool nothing;
        bool done = false;
        tarn_outcome_kind kind;
        tarn_table_version *version = NULL;
        code = attempt_commit(work, *base, &kind, &version, &nothing, &kept, err);
        outcome->attempts = work->attempt;
        if (kind == TARN_COMMITTED) {
            clean_up(work, &kept);
            set_committed(work, version, outcome);
            return TARN_OK;
        }
        if (kind == TARN_OUTCOME_UNKNOWN) {
            return resolve_unknown(work, &kept, outcome, err);
        }
        if (code == TARN_OK && nothing) {
            goto done;
        }
        if (code != TARN_CONFLICT || work->attempt > rule.retries ||
            env_now_ms(work->env) - started_ms > rule.total_ms) {
            goto done;
        }
        env_log(work->env, TARN_LOG_INFO, "commit", "retry", "attempt=%d reason=%s", work->attempt,
                err != NULL ? err->message : "");
        back_off(work->env, &rule, work->attempt);
        tarn_error conflict = err != NULL ? *err : (tarn_error)TARN_ERROR_INIT;
        int64_t base_head = (*base)->metadata->current_snapshot_id;
        tarn_str base_location = arena_str(&work->arena, (*base)->metadata_location);
        err_reset(err);
        TRY(refresh(work, base, &kept, outcome, &done, err));
        if (done) {
            return TARN_OK;
        }
        if (base_head == (*base)->metadata->current_snapshot_id &&
            str_eq(base_location, (*base)->metadata_location)) {
            /* Nothing moved: the conflict is with what we already knew and will not go away. */
            if (err != NULL) {
                *err = conflict;
            }
            code = TARN_CONFLICT;
            goto done;
        }
    }
done:
    clean_up(work, &none);
    return code;
}

tarn_code commit_run(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     tarn_table_version *base, const commit_request *request,
                     commit_outcome *outcome, tarn_error *err) {
    tarn_code code = TARN_OK;
    commit_work work;
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    memset(&work, 0, sizeof work);
    memset(outcome, 0, sizeof *outcome);
    outcome->snapshot_id = TARN_NO_SNAPSHOT;
    work.env = env;
    work.catalog = catalog;
    work.store = catalog->store;
    work.table = table;
    work.request = request;
    arena_init(&work.arena, env);
    env_uuid_v4(env, work.uuid);
    if (base != NULL) {
        base = table_version_keep(base);
    } else {
        TRY(catalog_load(catalog, table, &base, e));
    }
    do {
        work.snapshot_id = env_random_snapshot_id(env);
    } while (metadata_snapshot_by_id(base->metadata, work.snapshot_id) != NULL);
    const tarn_snapshot *before = find_commit_id(base->metadata, request);
    if (before != NULL) {
        work.snapshot_id = before->snapshot_id;
        set_committed(&work, table_version_keep(base), outcome);
        goto done;
    }
    TRY(commit_loop(&work, &base, outcome, e));
done:
    table_version_release(base);
    arena_release(&work.arena);
    return code;
}
