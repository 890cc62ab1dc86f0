/* service/serve_transaction.c - commits of several tables, all of them or none (REST specification,
 * "commitTransaction"). What does not hold any more is put on what the tables are now where that is
 * safe, as for one table; a swap that others came before is tried again. */
#include "service/homes.h"
#include "service/service_int.h"

#define MAX_TRIES  20
#define BACKOFF_MS 10

typedef struct transaction {
    service_request *r;
    int32_t n;
    rebase_commit *sent;
    tarn_table_version **held;     /* that the sent snapshots were read with */
    catalog_table_commit *commits; /* with what holds now */
} transaction;

static tarn_code read_one(transaction *t, const json_value *json, int32_t i, tarn_error *err) {
    service_request *r = t->r;
    tarn_ident *table = &t->commits[i].table;
    tarn_ident space;
    tarn_code code = TARN_OK;
    TRY(request_member_ident(r, json, "identifier", table, err));
    r->table = *table;
    space = *table;
    space.name = STR_NULL;
    TRY(request_allow(r, &space, AUTH_WRITE, err));
    t->sent[i].exact = rest_wants_exact(r);
    code = change_set_from_json(&r->arena, json, &t->sent[i].set, err);
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    if (code == TARN_OK) {
        code = homes_allow_changes(r, table, &t->sent[i].set, err);
    }
done:
    return code;
}

static tarn_code read_all(transaction *t, tarn_error *err) {
    service_request *r = t->r;
    const json_value *body;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    const json_value *list = json_get(body, "table-changes");
    if (!json_is(list, JSON_ARRAY) || list->count == 0 || list->count > INT32_MAX) {
        TRY(err_set(err, TARN_INVALID, "member \"table-changes\" is missing, empty or no array"));
    }
    t->sent = ARENA_ARRAY(&r->arena, rebase_commit, list->count);
    t->held = ARENA_ARRAY(&r->arena, tarn_table_version *, list->count);
    t->commits = ARENA_ARRAY(&r->arena, catalog_table_commit, list->count);
    if (t->sent == NULL || t->held == NULL || t->commits == NULL) {
        TRY(err_nomem(err));
    }
    for (const json_value *j = list->first; j != NULL; j = j->next) {
        TRY(read_one(t, j, t->n++, err));
    }
done:
    return code;
}

static void release_bases(transaction *t) {
    for (int32_t i = 0; i < t->n; i++) {
        table_version_release(t->commits[i].base);
        t->commits[i].base = NULL;
    }
}

/* Once: on the table as it is at the first try. */
static tarn_code read_sent(transaction *t, int32_t i, tarn_error *err) {
    tarn_table_version *base = t->commits[i].base;
    if (t->sent[i].arena != NULL) {
        return TARN_OK;
    }
    t->held[i] = base != NULL ? table_version_keep(base) : NULL;
    return rest_read_sent(t->r, base != NULL ? base->metadata : NULL, &t->sent[i], err);
}

/* The table as it is now, and the changes for it. */
static tarn_code fit_one(transaction *t, written_files *files, int32_t i, tarn_error *err) {
    tarn_catalog *catalog = t->r->service->catalog;
    catalog_table_commit *commit = &t->commits[i];
    tarn_code code;
    t->r->table = commit->table;
    code = catalog_load(catalog, &commit->table, &commit->base, err);
    if (rest_creates(&t->sent[i].set)) {
        commit->set = t->sent[i].set;
        if (code == TARN_OK) {
            return err_set(err, TARN_CONFLICT, "requirement failed: table already exists");
        }
        if (code == TARN_NOT_FOUND) {
            err_reset(err);
            code = read_sent(t, i, err);
        }
        return code;
    }
    code = code == TARN_OK ? read_sent(t, i, err) : code;
    return code == TARN_OK
               ? rest_fit_changes(files, commit->base->metadata, &t->sent[i], &commit->set, err)
               : code;
}

/* *moved: somebody else's commit came between, and another try may do. */
static tarn_code try_once(transaction *t, bool *moved, tarn_error *err) {
    tarn_arena arena;
    tarn_outcome_kind outcome = TARN_NOT_COMMITTED;
    tarn_code code = TARN_OK;
    written_files files = {.arena = &arena, .store = t->r->service->catalog->store};
    *moved = false;
    arena_init(&arena, t->r->service->env);
    for (int32_t i = 0; i < t->n; i++) {
        TRY(fit_one(t, &files, i, err));
    }
    code = catalog_commit_many(t->r->service->catalog, t->commits, t->n, &outcome, err);
    *moved = code == TARN_CONFLICT;
done:
    if (outcome == TARN_NOT_COMMITTED) {
        written_discard(&files, 0);
    }
    release_bases(t);
    arena_release(&arena);
    return code;
}

/* As one transaction, all of it was done where one table shows it. */
static bool was_done(transaction *t) {
    bool done = false;
    for (int32_t i = 0; i < t->n && !done; i++) {
        tarn_table_version *now = NULL;
        if (catalog_load(t->r->service->catalog, &t->commits[i].table, &now, NULL) == TARN_OK) {
            done = rest_was_done(t->r, now->metadata, &t->sent[i].set);
        }
        table_version_release(now);
    }
    return done;
}

tarn_code rest_commit_transaction(service_request *r, service_reply *reply, tarn_error *err) {
    transaction t = {.r = r};
    bool moved = true;
    tarn_code code = TARN_OK;
    TRY(read_all(&t, err));
    for (int i = 0; i < MAX_TRIES && moved; i++) {
        err_reset(err);
        if (i > 0) {
            env_sleep_ms(r->service->env, (int64_t)BACKOFF_MS * i);
        }
        code = try_once(&t, &moved, err);
    }
    if ((code == TARN_CONFLICT || code == TARN_INVALID) && r->once_key.len > 0 && was_done(&t)) {
        err_reset(err);
        code = TARN_OK;
    }
    TRY(code);
    reply->status = 204;
done:
    for (int32_t i = 0; i < t.n && t.held != NULL; i++) {
        table_version_release(t.held[i]);
    }
    return code;
}
