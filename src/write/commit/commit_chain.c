/* write/commit/commit_chain.c - several commits as a chain of snapshots with one swap: each is made
 * on the metadata that has the ones before it, which no document holds. One attempt: whoever is
 * refused goes on with commit_run, one by one, which finds what was committed after all by commit
 * id. */
#include "write/commit/commit_int.h"

typedef struct chain {
    tarn_env *env;
    tarn_arena arena;
    commit_maker **makers;
    int32_t n_makers;
    tarn_change *changes; /* an added snapshot for each, then one that moves the branch */
    tarn_change_set set;
} chain;

static tarn_code refuse_known(const commit_chain *requests, const tarn_metadata *m,
                              tarn_error *err) {
    for (int32_t i = 0; i < requests->n; i++) {
        const tarn_snapshot *s = commit_find_id(m, &requests->requests[i]);
        if (s != NULL) {
            return err_set(err, TARN_CONFLICT,
                           "commit %s is in the table already, as snapshot "
                           "%lld",
                           requests->requests[i].commit_id, (long long)s->snapshot_id);
        }
    }
    return TARN_OK;
}

/* The branch moves once, to the last one. */
static tarn_code add_step(chain *c, const tarn_change_set *step, tarn_error *err) {
    if (step->n_changes != 2 || step->changes[0].kind != CHANGE_ADD_SNAPSHOT ||
        step->changes[1].kind != CHANGE_SET_SNAPSHOT_REF) {
        return err_set(err, TARN_INVALID, "a commit of a chain made no snapshot");
    }
    if (c->set.n_changes == 0) {
        c->set.requirements = step->requirements; /* as of the base */
        c->set.n_requirements = step->n_requirements;
    } else {
        c->set.n_changes--;
    }
    memcpy(&c->changes[c->set.n_changes], step->changes, 2 * sizeof *step->changes);
    c->set.n_changes += 2;
    return TARN_OK;
}

static tarn_code make_chain(chain *c, tarn_store *store, const commit_chain *requests,
                            const tarn_metadata *base, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_metadata *now = base;
    c->makers = ARENA_ARRAY(&c->arena, commit_maker *, (size_t)requests->n);
    c->changes = ARENA_ARRAY(&c->arena, tarn_change, (size_t)requests->n + 1);
    if (c->makers == NULL || c->changes == NULL) {
        return err_nomem(err);
    }
    c->set.changes = c->changes;
    for (int32_t i = 0; i < requests->n; i++) {
        tarn_change_set step;
        TRY(commit_maker_new(c->env, store, &requests->requests[i], &c->makers[i], err));
        c->n_makers++;
        TRY(commit_maker_attempt(c->makers[i], now, &step, err));
        TRY(add_step(c, &step, err));
        if (i + 1 < requests->n) {
            TRY(change_apply(&c->arena, now, &step, env_now_ms(c->env), &now, err));
        }
        requests->snapshot_ids[i] = commit_maker_snapshot_id(c->makers[i]);
    }
done:
    return code;
}

/* A conflict may be the answer to a swap that was sent twice: is the last of ours there? */
static tarn_code settle_conflict(tarn_catalog *catalog, const tarn_ident *table,
                                 commit_outcome *outcome, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_error cause = TARN_ERROR_INIT;
    if (catalog_load(catalog, table, &version, &cause) != TARN_OK) {
        outcome->kind = TARN_OUTCOME_UNKNOWN;
        (void)err_set(err, TARN_COMMIT_UNKNOWN,
                      "commit of snapshot %lld met a conflict, and the table could not be looked "
                      "at: %s",
                      (long long)outcome->snapshot_id, cause.message);
        return err_as(err, TARN_COMMIT_UNKNOWN, &cause);
    }
    if (metadata_snapshot_by_id(version->metadata, outcome->snapshot_id) == NULL) {
        table_version_release(version);
        return TARN_CONFLICT;
    }
    err_reset(err);
    outcome->kind = TARN_COMMITTED;
    outcome->version = version;
    return TARN_OK;
}

tarn_code commit_run_chain(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                           const commit_chain *requests, commit_outcome *outcome, tarn_error *err) {
    tarn_code code = TARN_OK;
    chain c;
    tarn_table_version *base = NULL;
    memset(&c, 0, sizeof c);
    memset(outcome, 0, sizeof *outcome);
    outcome->snapshot_id = TARN_NO_SNAPSHOT;
    c.env = env;
    arena_init(&c.arena, env);
    if (catalog_offers_files(catalog)) { /* then the catalog makes the snapshots, and joins them */
        return err_set(err, TARN_UNSUPPORTED, "catalog %s makes snapshots by itself",
                       catalog->vt->name);
    }
    TRY(catalog_load(catalog, table, &base, err));
    TRY(refuse_known(requests, base->metadata, err));
    TRY(make_chain(&c, catalog->store, requests, base->metadata, err));
    outcome->attempts = 1;
    code = catalog_commit(catalog, table, base, &c.set, &outcome->kind, &outcome->version, err);
    outcome->snapshot_id = requests->snapshot_ids[requests->n - 1];
    if (code == TARN_CONFLICT) {
        code = settle_conflict(catalog, table, outcome, err);
    }
done:
    for (int32_t i = 0; i < c.n_makers; i++) {
        commit_maker_end(c.makers[i], outcome->kind);
    }
    table_version_release(base);
    arena_release(&c.arena);
    return code;
}
