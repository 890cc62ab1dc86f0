/* service/rest_commit.c - commits of standard clients: requirements and updates, through the
 * table's queue (REST specification, "updateTable"). */
#include "service/service_int.h"

static tarn_code make_as_sent(commit_job *job, tarn_arena *arena, const tarn_metadata *base,
                              tarn_change_set *out, tarn_error *err) {
    (void)arena;
    (void)base;
    (void)err;
    *out = *(const tarn_change_set *)job->ctx;
    return TARN_OK;
}

static bool creates(const tarn_change_set *set) {
    for (int32_t i = 0; i < set->n_requirements; i++) {
        if (set->requirements[i].kind == REQUIRE_CREATE) {
            return true;
        }
    }
    return false;
}

static tarn_code create_committed(service_request *r, service_reply *reply,
                                  const tarn_change_set *set, tarn_error *err) {
    tarn_table_version *version = NULL;
    tarn_outcome_kind outcome;
    tarn_code code = TARN_OK;
    TRY(catalog_commit(r->service->catalog, &r->table, NULL, set, &outcome, &version, err));
    TRY(rest_put_table(reply, version->metadata, version->metadata_location, false, err));
done:
    table_version_release(version);
    return code;
}

tarn_code rest_commit_table(service_request *r, service_reply *reply, tarn_error *err) {
    const json_value *body;
    tarn_change_set set;
    commit_job job;
    tarn_code code = TARN_OK;
    memset(&set, 0, sizeof set);
    memset(&job, 0, sizeof job);
    job.err = (tarn_error)TARN_ERROR_INIT;
    TRY(request_json(r, &body, err));
    code = change_set_from_json(&r->arena, body, &set, err);
    if (code == TARN_CORRUPT) {
        err->code = code = TARN_INVALID;
    }
    TRY(code);
    if (creates(&set)) {
        TRY(create_committed(r, reply, &set, err));
        goto done;
    }
    job.make = make_as_sent;
    job.ctx = &set;
    code = commit_queue_run(r->service->queues, &r->table, &job);
    if (code != TARN_OK) {
        *err = job.err;
        goto done;
    }
    TRY(rest_put_table(reply, job.version->metadata, job.version->metadata_location, false, err));
done:
    table_version_release(job.version);
    return code;
}
