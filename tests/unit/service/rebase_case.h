/* tests/unit/service/rebase_case.h - a standard client: makes a snapshot on the table as it was,
 * and sends it when it has moved on. */
#ifndef REBASE_CASE_H
#define REBASE_CASE_H

#include "unit/write/commit/commit_case.h"

#include "service/group.h"
#include "service/service_int.h"

typedef struct late_client {
    table_case *c;
    tarn_table_version *base; /* that it read */
    commit_request request;
    commit_origin origin;
    commit_maker *maker;
    rebase_commit sent;
    commit_job job;
} late_client;

static inline service_places late_places(void) {
    static const tarn_str anywhere = {"", 0};
    return (service_places){1, &anywhere, {NULL, 0}};
}

/* On the table as it is now. */
static inline void late_open(late_client *l, table_case *c) {
    memset(l, 0, sizeof *l);
    l->c = c;
    l->base = case_load(c);
    l->request = commit_of(COMMIT_FAST_APPEND, NULL, 0);
    l->request.from_snapshot_id = l->base->metadata->current_snapshot_id;
}

/* A snapshot with an operation and sequence numbers of the client's choice. */
static inline void late_origin(late_client *l, const char *operation) {
    l->origin = (commit_origin){.snapshot_id = env_random_snapshot_id(l->c->env),
                                .schema_id = l->base->metadata->current_schema_id,
                                .operation = operation};
    l->request.origin = &l->origin;
}

/* Writes what the client writes. */
static inline void late_make(late_client *l) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(commit_maker_new(l->c->env, l->c->catalog->store, &l->request, &l->maker, &err));
    assert_ok(commit_maker_attempt(l->maker, l->base->metadata, &l->sent.set, &err));
    assert_int_equal(l->sent.set.n_changes, 2);
}

static inline tarn_code late_read(late_client *l, tarn_error *err) {
    const service_places places = late_places();
    l->sent.arena = &l->c->arena;
    return sent_snapshots_read(&l->c->arena, l->c->catalog->store, &places, l->base->metadata,
                               &l->sent.set, &l->sent.snapshots, &l->sent.n_snapshots, err);
}

static inline tarn_code late_fit(commit_job *job, written_files *files, const tarn_metadata *base,
                                 tarn_change_set *out, tarn_error *err) {
    return rest_fit_changes(files, base, job->ctx, out, err);
}

/* As the server gets it; to be run in a group. */
static inline commit_job *late_send(late_client *l) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(late_read(l, &err));
    if (l->sent.added == NULL) { /* that knows nothing */
        assert_ok(added_files_new(l->c->env, &l->sent.added, &err));
    }
    l->job = (commit_job){.make = late_fit, .ctx = &l->sent};
    return &l->job;
}

static inline void late_done(late_client *l) {
    commit_maker_end(l->maker, TARN_OUTCOME_UNKNOWN); /* its files stay, as a client's do */
    added_files_free(l->sent.added);
    table_version_release(l->job.version);
    table_version_release(l->base);
}

static inline void late_run(table_case *c, commit_job *jobs) {
    commit_index index;
    commit_index_init(&index, c->env);
    commit_group group = {
        .env = c->env, .catalog = c->catalog, .table = &c->ident, .index = &index};
    group_run(&group, jobs);
    table_version_release(group.known);
    commit_index_release(&index);
}

#endif
