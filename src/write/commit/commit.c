/* write/commit/commit.c - the commit loop; protocol and invariants in commit.h.
 *
 *   START -> attempt: produce snapshot, catalog_commit
 *     COMMITTED: remove what lost attempts wrote and the table does not name; END committed
 *     NOT_COMMITTED, code CONFLICT: reload (after the last attempt too: the conflict may be the
 *         answer to a swap that was sent twice). Our snapshot is there? END committed. It could not
 *         be looked at after a swap? END unknown. Else back off, attempt (commit.retry.*)
 *     NOT_COMMITTED, any other code: remove all that was written; END not committed
 *     UNKNOWN: reload. Our snapshot is there? END committed. Else END unknown, nothing is removed
 */
#include "write/commit/commit_int.h"
#include "write/commit/request_json.h"

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

/* From the first attempt to the last. */
typedef struct commit_life {
    tarn_env *env;
    tarn_catalog *catalog;
    const tarn_ident *table;
    const commit_request *request;
    commit_maker *maker;
    int32_t attempts;
    bool swapped;        /* the last attempt came to its swap */
    int64_t snapshot_id; /* ours, or of the one that did the same work before */
    bool other;          /* that one is not ours */
    bool earlier;        /* ours is in the table as an earlier attempt made it, or a server */
} commit_life;

/* Looks whether our snapshot is in the table after all: a lost answer, a request sent twice (B28).
 * The fate is only known when the table could be read; *found with the version that has it. */
static tarn_code find_ours(commit_life *job, tarn_table_version **version, bool *found,
                           tarn_error *err) {
    *found = false;
    *version = NULL;
    tarn_code code = catalog_load(job->catalog, job->table, version, err);
    if (code != TARN_OK) {
        return code;
    }
    const tarn_metadata *m = (*version)->metadata;
    job->snapshot_id = commit_maker_snapshot_id(job->maker);
    *found = true;
    const tarn_snapshot *ours = metadata_snapshot_by_id(m, job->snapshot_id);
    job->earlier = ours != NULL && job->attempts > 1 && !commit_maker_made(job->maker, ours);
    if (ours == NULL) {
        const tarn_snapshot *same = commit_find_id(m, job->request);
        *found = job->other = same != NULL; /* another process committed the same work */
        job->snapshot_id = same != NULL ? same->snapshot_id : job->snapshot_id;
    }
    return TARN_OK;
}

static void set_committed(const commit_life *job, tarn_table_version *version,
                          commit_outcome *outcome) {
    outcome->kind = TARN_COMMITTED;
    outcome->snapshot_id = job->snapshot_id;
    outcome->version = version;
    env_log(job->env, TARN_LOG_INFO, "commit", "committed", "snapshot=%lld attempts=%d",
            (long long)job->snapshot_id, job->attempts);
}

/* The answer to the swap is not known. */
static tarn_code resolve_unknown(commit_life *job, commit_outcome *outcome, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_error ignored = TARN_ERROR_INIT;
    bool found;
    outcome->kind = TARN_OUTCOME_UNKNOWN;
    outcome->snapshot_id = commit_maker_snapshot_id(job->maker);
    tarn_code code = find_ours(job, &version, &found, &ignored);
    if (code == TARN_OK && found) {
        err_reset(err);
        set_committed(job, version, outcome);
        return TARN_OK;
    }
    table_version_release(version);
    if (err->code != TARN_COMMIT_UNKNOWN) {
        tarn_error first = *err;
        (void)err_set(err, TARN_COMMIT_UNKNOWN,
                      "commit of snapshot %lld was sent and its answer is not known: %s",
                      (long long)outcome->snapshot_id, first.message);
        return err_as(err, TARN_COMMIT_UNKNOWN, &first);
    }
    return TARN_COMMIT_UNKNOWN;
}

/* After a conflict: the newest version in *base; outcome committed when the commit turned out to be
 * there, unknown where that could not be seen of a swap. */
static tarn_code refresh(commit_life *job, tarn_table_version **base, commit_outcome *outcome,
                         tarn_error *err) {
    tarn_table_version *version;
    bool found;
    tarn_code code = find_ours(job, &version, &found, err);
    if (code == TARN_OK && found) {
        set_committed(job, version, outcome);
    } else if (code == TARN_OK) {
        table_version_release(*base);
        *base = version;
    } else if (job->swapped) {
        tarn_error cause = *err;
        outcome->kind = TARN_OUTCOME_UNKNOWN;
        outcome->snapshot_id = commit_maker_snapshot_id(job->maker);
        code = err_set(err, TARN_COMMIT_UNKNOWN,
                       "commit of snapshot %lld met a conflict, and the table could not be looked "
                       "at: %s",
                       (long long)outcome->snapshot_id, cause.message);
        code = err_as(err, code, &cause);
    }
    return code;
}

/* *nothing: there is nothing to do. */
static tarn_code attempt_commit(commit_life *job, tarn_table_version *base, bool *nothing,
                                commit_outcome *outcome, tarn_error *err) {
    tarn_change_set set;
    tarn_code code = TARN_OK;
    outcome->kind = TARN_NOT_COMMITTED;
    outcome->attempts = ++job->attempts;
    job->swapped = false;
    *nothing = false;
    TRY(commit_maker_attempt(job->maker, base->metadata, &set, err));
    if (set.n_changes == 0) {
        *nothing = true;
        goto done;
    }
    job->swapped = true;
    code = catalog_commit(job->catalog, job->table, base, &set, &outcome->kind, &outcome->version,
                          err);
    if (outcome->kind == TARN_COMMITTED) {
        job->snapshot_id = commit_maker_snapshot_id(job->maker);
        set_committed(job, outcome->version, outcome);
    }
done:
    return code;
}

static bool same_version(int64_t head, tarn_str location, const tarn_table_version *now) {
    return head == now->metadata->current_snapshot_id && str_eq(location, now->metadata_location);
}

static tarn_code commit_loop(commit_life *job, tarn_table_version **base, commit_outcome *outcome,
                             tarn_error *err) {
    tarn_code code = TARN_OK;
    retry_rule rule;
    tarn_arena arena;
    int64_t started_ms = env_now_ms(job->env) - catalog_waited_ms(job->catalog);
    arena_init(&arena, job->env);
    TRY(read_retry_rule((*base)->metadata, &rule, err));
    for (;;) {
        bool nothing;
        code = attempt_commit(job, *base, &nothing, outcome, err);
        if (outcome->kind == TARN_OUTCOME_UNKNOWN) {
            code = resolve_unknown(job, outcome, err);
        }
        int64_t spent_ms = env_now_ms(job->env) - catalog_waited_ms(job->catalog) - started_ms;
        bool last = job->attempts > rule.retries || spent_ms > rule.total_ms;
        if (outcome->kind != TARN_NOT_COMMITTED || nothing || code != TARN_CONFLICT ||
            (last && !job->swapped)) {
            goto done;
        }
        if (!last) {
            env_log(job->env, TARN_LOG_INFO, "commit", "retry", "attempt=%d reason=%s",
                    job->attempts, err->message);
            back_off(job->env, &rule, job->attempts);
        }
        tarn_error conflict = *err;
        int64_t base_head = (*base)->metadata->current_snapshot_id;
        tarn_str base_location = arena_str(&arena, (*base)->metadata_location);
        err_reset(err);
        TRY(refresh(job, base, outcome, err));
        if (outcome->kind == TARN_COMMITTED) {
            goto done;
        }
        if (last || same_version(base_head, base_location, *base)) {
            /* Nothing moved: the conflict is with what we already knew and will not go away. */
            *err = conflict;
            code = TARN_CONFLICT;
            goto done;
        }
    }
done:
    arena_release(&arena);
    return code;
}

/* ---- through a catalog that takes write results ---- */

/* The version that holds the snapshot; NULL where it cannot be had, which changes no outcome. */
static tarn_table_version *load_after(const commit_life *job) {
    tarn_table_version *version = NULL;
    tarn_error ignored = TARN_ERROR_INIT;
    return catalog_load(job->catalog, job->table, &version, &ignored) == TARN_OK ? version : NULL;
}

/* The answer is not known: where the table has a snapshot of this id it is. */
static tarn_code find_sent(commit_life *job, const commit_request *request,
                           commit_outcome *outcome) {
    tarn_table_version *version = load_after(job);
    const tarn_snapshot *s = version != NULL ? commit_find_id(version->metadata, request) : NULL;
    if (s == NULL) {
        table_version_release(version);
        return TARN_COMMIT_UNKNOWN;
    }
    job->snapshot_id = s->snapshot_id;
    set_committed(job, version, outcome);
    return TARN_OK;
}

/* Refused by the catalog: where the caller refuses the table too, as it is now, its own words. */
static tarn_code ask_again(const commit_life *job, const commit_request *request, tarn_error *err) {
    tarn_error own = TARN_ERROR_INIT;
    tarn_table_version *version = request->check != NULL ? load_after(job) : NULL;
    if (version != NULL && request->check(request->check_ctx, version->metadata, &own) != TARN_OK) {
        *err = own;
    }
    table_version_release(version);
    return err->code;
}

/* The catalog decides it among others' (service/queue.h). It asks what the request asks of the
 * base; what only the caller can ask is asked here. */
static tarn_code send_request(commit_life *job, const tarn_table_version *base,
                              commit_outcome *outcome, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf body;
    char id[37];
    commit_request request = *job->request;
    buf_init(&body, job->env, 0);
    env_uuid_v4(job->env, id);
    request.commit_id = request.commit_id != NULL ? request.commit_id : id;
    if (request.check != NULL) {
        TRY(request.check(request.check_ctx, base->metadata, err));
    }
    TRY(commit_request_put_json(&request, &body, err));
    outcome->attempts = ++job->attempts;
    code = catalog_commit_files(job->catalog, job->table, buf_str(&body), &outcome->kind,
                                &job->snapshot_id, err);
    if (code == TARN_OK && job->snapshot_id != TARN_NO_SNAPSHOT) {
        set_committed(job, load_after(job), outcome);
    } else if (code == TARN_OK) {
        outcome->kind = TARN_NOT_COMMITTED; /* nothing to do, as commit_run says it */
    } else if (code == TARN_COMMIT_UNKNOWN) {
        code = find_sent(job, &request, outcome);
        if (code == TARN_OK) {
            err_reset(err);
        }
    } else if (code == TARN_CONFLICT) {
        code = ask_again(job, &request, err);
    }
done:
    buf_release(&body);
    return code;
}

tarn_code commit_run(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     tarn_table_version *base, const commit_request *asked, commit_outcome *outcome,
                     tarn_error *err) {
    tarn_code code = TARN_OK;
    commit_request own = *asked;
    const commit_request *request = &own;
    tarn_table_version *first = NULL; /* whose uuid the request has */
    commit_life job = {env,   catalog,          table, request, NULL, 0,
                       false, TARN_NO_SNAPSHOT, false, false};
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    memset(outcome, 0, sizeof *outcome);
    outcome->snapshot_id = TARN_NO_SNAPSHOT;
    if (base != NULL) {
        base = table_version_keep(base);
    } else {
        TRY(catalog_load(catalog, table, &base, e));
    }
    if (own.table_uuid.len == 0) { /* files of one table are none of another of its name */
        first = table_version_keep(base);
        own.table_uuid = first->metadata->table_uuid;
    }
    const tarn_snapshot *before = commit_find_id(base->metadata, request);
    if (before != NULL) {
        job.snapshot_id = before->snapshot_id;
        set_committed(&job, table_version_keep(base), outcome);
        goto done;
    }
    if (catalog_offers_files(catalog) && commit_request_can_travel(request)) {
        TRY(send_request(&job, base, outcome, e));
        goto done;
    }
    TRY(commit_maker_new(env, catalog->store, request, &job.maker, e));
    TRY(commit_loop(&job, &base, outcome, e));
done:
    /* Which files of which attempt an earlier one's snapshot lives by is not told here: none goes.
     */
    commit_maker_end(job.maker, job.other     ? TARN_NOT_COMMITTED
                                : job.earlier ? TARN_OUTCOME_UNKNOWN
                                              : outcome->kind);
    table_version_release(base);
    table_version_release(first);
    return code;
}
