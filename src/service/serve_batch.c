/* service/serve_batch.c - batch commit: write results of clients, through the table's queue.
 *
 * A client is believed in nothing that can be looked at: its files must lie where the table's files
 * lie, must be there and have the size and the rows that it says, and what it says of them, and
 * the columns of Parquet files, must fit the table's schema and specs. */
#include "service/compact.h"
#include "service/file_check.h"
#include "service/service_int.h"
#include "write/commit/request_json.h"

/* ---- what clients say ---- */

static tarn_code check_shape(const tarn_file *f, bool deletes, tarn_error *err) {
    bool vector = f->format == TARN_FORMAT_PUFFIN;
    if (deletes != (f->content != TARN_CONTENT_DATA)) {
        return err_set(err, TARN_INVALID, "file %.*s is not of the content that its list is for",
                       STR_ARG(f->path));
    }
    if (f->format == TARN_FORMAT_OTHER || (vector && f->content != TARN_CONTENT_POSITION_DELETES)) {
        return err_set(err, TARN_INVALID, "file %.*s is of a format that its content cannot have",
                       STR_ARG(f->path));
    }
    if (f->record_count < 0 || f->size_bytes <= 0) {
        return err_set(err, TARN_INVALID, "file %.*s has %lld records in %lld bytes",
                       STR_ARG(f->path), (long long)f->record_count, (long long)f->size_bytes);
    }
    if ((f->content == TARN_CONTENT_EQUALITY_DELETES) != (f->n_equality_ids > 0)) {
        return err_set(err, TARN_INVALID, "file %.*s: equality deletes, and they alone, have ids",
                       STR_ARG(f->path));
    }
    if (vector &&
        (f->content_offset < 0 || f->content_size <= 0 ||
         f->content_offset > f->size_bytes - f->content_size || f->referenced_data_file.len == 0)) {
        return err_set(err, TARN_INVALID, "vector %.*s does not lie in its file or names no file",
                       STR_ARG(f->path));
    }
    return TARN_OK;
}

/* NOT_FOUND: it is not there. */
static tarn_code check_file(service_request *r, const tarn_metadata *m, const tarn_file *f,
                            bool deletes, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_stat_info info;
    TRY(check_shape(f, deletes, err));
    if (memchr(f->path.data, '\0', f->path.len) != NULL || !places_are_own(m, f->path)) {
        return err_set(err, TARN_INVALID, "file %.*s does not lie below the table's location",
                       STR_ARG(f->path));
    }
    TRY(file_check_entry(m, f, err));
    TRY(store_stat(r->service->catalog->store, f->path, &info, err));
    if (info.size_bytes != f->size_bytes) {
        code = err_set(err, TARN_INVALID, "file %.*s has %lld bytes, and %lld were said",
                       STR_ARG(f->path), (long long)info.size_bytes, (long long)f->size_bytes);
        goto done;
    }
    TRY(file_check_footer(r->service->env, r->service->catalog->store, m, f, err));
done:
    return code;
}

/* Names in the summary that say what the table's own accounts are. */
static tarn_code check_summary(const commit_request *request, tarn_error *err) {
    for (int32_t i = 0; i < request->summary.count; i++) {
        tarn_str key = request->summary.items[i].key;
        if (str_is(key, "operation") || str_is(key, "tarn.commit-id") ||
            str_is(key, COMMIT_SHARED_COUNT) || str_is(key, COMPACT_SUMMARY) || key.len == 0) {
            return err_set(err, TARN_INVALID, "summary entry \"%.*s\" is not for clients to set",
                           STR_ARG(key));
        }
    }
    return TARN_OK;
}

/* *absent: the first that is not there. That is no lie where the request was done before, which the
 * queue knows. */
static tarn_code check_files(service_request *r, const tarn_metadata *m,
                             const commit_request *request, tarn_str *absent, tarn_error *err) {
    *absent = STR_NULL;
    for (int32_t i = 0; i < request->n_added + request->n_added_deletes; i++) {
        bool deletes = i >= request->n_added;
        const tarn_file *f =
            deletes ? &request->added_deletes[i - request->n_added] : &request->added[i];
        tarn_code code = check_file(r, m, f, deletes, err);
        if (code == TARN_NOT_FOUND) {
            err_reset(err);
            *absent = absent->len > 0 ? *absent : f->path;
        } else if (code != TARN_OK) {
            return code;
        }
    }
    return TARN_OK;
}

/* ---- the request ---- */

/* REST specification, "Idempotency-Key": the same as a commit id. */
static tarn_code take_key(service_request *r, commit_request *request, tarn_error *err) {
    const char *key = request_header(r, "Idempotency-Key");
    if (key == NULL || request->commit_id != NULL) {
        return TARN_OK;
    }
    request->commit_id = arena_strdup(&r->arena, key);
    if (request->commit_id == NULL) {
        return err_nomem(err);
    }
    return commit_id_is_good(str_of(key))
               ? TARN_OK
               : err_set(err, TARN_INVALID, "header Idempotency-Key is not " COMMIT_ID_RULE);
}

static tarn_code read_request(service_request *r, const json_value *body, bool fresh,
                              tarn_table_version **held, commit_job *job, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *version = NULL;
    commit_request *request = ARENA_NEW(&r->arena, commit_request);
    if (request == NULL) {
        return err_nomem(err);
    }
    TRY(commit_queue_look(r->service->queues, &r->table, fresh, &version, err));
    TRY(commit_request_from_json(&r->arena, body, version->metadata, request, err));
    TRY(take_key(r, request, err));
    TRY(check_summary(request, err));
    TRY(check_files(r, version->metadata, request, &job->absent, err));
    if (request->table_uuid.len == 0) { /* partition values were read as this table's */
        request->table_uuid = arena_str(&r->arena, version->metadata->table_uuid);
        code = request->table_uuid.data != NULL ? TARN_OK : err_nomem(err);
    }
    job->request = request;
done:
    *held = version; /* types of partition values are its own */
    return code;
}

static tarn_code put_outcome(service_reply *reply, const commit_job *job, tarn_error *err) {
    json_writer w;
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_member_str(&w, "outcome",
                    job->snapshot_id != TARN_NO_SNAPSHOT ? STR("committed") : STR("nothing-to-do"));
    if (job->snapshot_id != TARN_NO_SNAPSHOT) {
        json_member_i64(&w, "snapshot-id", job->snapshot_id);
    }
    json_member_bool(&w, "repeated", job->repeated);
    json_member_str(&w, "metadata-location", job->version->metadata_location);
    json_end_object(&w);
    return json_end(&w);
}

tarn_code rest_write_results(service_request *r, service_reply *reply, tarn_error *err) {
    static const char *const PARAMETERS[] = {"resent", NULL};
    const json_value *body;
    tarn_table_version *held = NULL;
    commit_job job;
    tarn_code code = TARN_OK;
    memset(&job, 0, sizeof job);
    job.err = (tarn_error)TARN_ERROR_INIT;
    TRY(request_check_query(r, PARAMETERS, err));
    TRY(request_query_bool(r, "resent", false, &job.resent, err));
    TRY(request_json(r, &body, err));
    code = read_request(r, body, false, &held, &job, err);
    if (code == TARN_CONFLICT || code == TARN_INVALID) { /* the table may have moved on */
        table_version_release(held);
        held = NULL;
        err_reset(err);
        code = read_request(r, body, true, &held, &job, err);
    }
    TRY(code);
    code = commit_queue_run(r->service->queues, &r->table, &job);
    if (code != TARN_OK) {
        *err = job.err;
        goto done;
    }
    TRY(put_outcome(reply, &job, err));
done:
    table_version_release(job.version);
    table_version_release(held);
    return code;
}
