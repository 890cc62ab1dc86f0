/* service/serve_commit.c - commits of standard clients: requirements and updates, through the
 * table's queue (REST specification, "updateTable"). */
#include "catalog/remote_client.h"
#include "service/homes.h"
#include "service/service_int.h"

/* Snapshots of a commit that others came before: their sequence numbers are taken. */
static bool is_late(const tarn_metadata *base, const tarn_change_set *set) {
    for (int32_t i = 0; i < set->n_changes; i++) {
        const tarn_change *c = &set->changes[i];
        if (c->kind == CHANGE_ADD_SNAPSHOT && base->format_version > 1 &&
            c->snapshot->parent_id != TARN_NO_SNAPSHOT &&
            c->snapshot->sequence_number <= base->last_sequence_number) {
            return true;
        }
    }
    return false;
}

tarn_code rest_read_sent(service_request *r, const tarn_metadata *base, rebase_commit *commit,
                         tarn_error *err) {
    commit->arena = &r->arena;
    commit->deltas = NULL;
    commit->added = r->service->added;
    service_places places;
    tarn_code code = homes_places(r, &r->table, &places, err);
    return code != TARN_OK
               ? code
               : sent_snapshots_read(&r->arena, r->service->catalog->store, &places, base,
                                     &commit->set, &commit->snapshots, &commit->n_snapshots, err);
}

bool rest_wants_exact(service_request *r) {
    const char *said = request_header(r, REMOTE_EXACT_HEADER);
    return said != NULL && str_eq_nocase(str_of(said), STR(REMOTE_EXACT));
}

tarn_code rest_fit_changes(written_files *files, const tarn_metadata *base, rebase_commit *sent,
                           tarn_change_set *out, tarn_error *err) {
    tarn_error stale = TARN_ERROR_INIT;
    if (!is_late(base, &sent->set) && change_check(base, &sent->set, &stale) == TARN_OK) {
        *out = sent->set;
        return TARN_OK;
    }
    if (sent->exact) {
        return err_set(err, TARN_CONFLICT, "%s",
                       stale.code != TARN_OK ? stale.message
                                             : "requirement failed: the table has changed");
    }
    return rebase_make(sent, files, base, out, err);
}

static tarn_code make_commit(commit_job *job, written_files *files, const tarn_metadata *base,
                             tarn_change_set *out, tarn_error *err) {
    return rest_fit_changes(files, base, job->ctx, out, err);
}

bool rest_creates(const tarn_change_set *set) {
    for (int32_t i = 0; i < set->n_requirements; i++) {
        if (set->requirements[i].kind == REQUIRE_CREATE) {
            return true;
        }
    }
    return false;
}

bool rest_was_done(const service_request *r, const tarn_metadata *now, const tarn_change_set *set) {
    bool tells = false; /* whether a change is nobody else's */
    for (int32_t i = 0; i < set->n_changes && r->once_key.len > 0; i++) {
        const tarn_change *c = &set->changes[i];
        if (c->kind == CHANGE_ADD_SNAPSHOT) {
            const tarn_snapshot *there = metadata_snapshot_by_id(now, c->snapshot->snapshot_id);
            if (there == NULL || there->timestamp_ms != c->snapshot->timestamp_ms) {
                return false;
            }
            tells = true;
        } else if (c->kind == CHANGE_ASSIGN_UUID && rest_creates(set)) {
            if (!str_eq_nocase(now->table_uuid, c->text)) {
                return false;
            }
            tells = true;
        }
    }
    return tells;
}

/* A commit that was refused may have been done under its key before a restart. */
static tarn_code settle_refused(service_request *r, service_reply *reply,
                                const tarn_change_set *set, tarn_code code, tarn_error *err) {
    tarn_table_version *now = NULL;
    if ((code != TARN_CONFLICT && code != TARN_INVALID) || r->once_key.len == 0 ||
        catalog_load(r->service->catalog, &r->table, &now, NULL) != TARN_OK) {
        return code;
    }
    if (rest_was_done(r, now->metadata, set)) {
        err_reset(err);
        code = rest_put_table(reply, now->metadata, now->metadata_location, false, err);
    }
    table_version_release(now);
    return code;
}

static tarn_code create_committed(service_request *r, service_reply *reply,
                                  const tarn_change_set *set, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_outcome_kind outcome;
    tarn_code code = TARN_OK;
    code = catalog_commit(r->service->catalog, &r->table, NULL, set, &outcome, &version, err);
    if (code == TARN_CONFLICT) {
        const char *what = rest_taken_by(r, false);
        if (strcmp(what, "Table") == 0) {
            (void)err_set(err, code, "requirement failed: table already exists");
        } else {
            (void)err_set(err, code, "%s already exists: %s", what, rest_ident_text(r, &r->table));
        }
    }
    TRY(code);
    TRY(rest_put_table(reply, version->metadata, version->metadata_location, false, err));
done:
    table_version_release(version);
    return code;
}

static tarn_code read_commit(service_request *r, rebase_commit *out, tarn_error *err) {
    const json_value *body;
    tarn_code code = TARN_OK;
    TRY(request_json(r, &body, err));
    TRY(request_same_ident(r, body, err));
    code = change_set_from_json(&r->arena, body, &out->set, err);
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    TRY(code);
    out->exact = rest_wants_exact(r);
    TRY(homes_allow_changes(r, &r->table, &out->set, err));
done:
    return code;
}

/* The table as it was last seen will do, unless it was made on a newer one. */
static tarn_code look_at_sent(service_request *r, rebase_commit *sent, tarn_table_version **held,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    if (change_set_count(&sent->set, CHANGE_ADD_SNAPSHOT) == 0) {
        return TARN_OK;
    }
    TRY(commit_queue_look(r->service->queues, &r->table, false, held, err));
    code = rest_read_sent(r, (*held)->metadata, sent, err);
    if (code == TARN_CONFLICT || code == TARN_INVALID) {
        table_version_release(*held);
        *held = NULL;
        err_reset(err);
        TRY(commit_queue_look(r->service->queues, &r->table, true, held, err));
        code = rest_read_sent(r, (*held)->metadata, sent, err);
    }
done:
    return code;
}

tarn_code rest_commit_table(service_request *r, service_reply *reply, tarn_error *err) {
    rebase_commit sent;
    commit_job job;
    tarn_table_version *held = NULL; /* what was read of the snapshots has its types */
    tarn_code code = TARN_OK;
    memset(&sent, 0, sizeof sent);
    memset(&job, 0, sizeof job);
    job.err = (tarn_error)TARN_ERROR_INIT;
    TRY(read_commit(r, &sent, err));
    if (rest_creates(&sent.set)) {
        code = rest_read_sent(r, NULL, &sent, err);
        code = code == TARN_OK ? create_committed(r, reply, &sent.set, err) : code;
        code = settle_refused(r, reply, &sent.set, code, err);
        goto done;
    }
    code = look_at_sent(r, &sent, &held, err);
    if (code == TARN_OK) {
        job.make = make_commit;
        job.ctx = &sent;
        code = commit_queue_run(r->service->queues, &r->table, &job);
        *err = job.err;
    }
    if (code != TARN_OK) {
        code = settle_refused(r, reply, &sent.set, code, err);
        goto done;
    }
    TRY(rest_put_table(reply, job.version->metadata, job.version->metadata_location, false, err));
done:
    table_version_release(job.version);
    table_version_release(held);
    return code;
}
