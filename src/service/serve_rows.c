/* service/serve_rows.c - rows as NDJSON (service/intake.h). */
#include <errno.h>

#include "service/service_int.h"
#include "write/commit/request_json.h"

#define WAIT_MS     30000
#define RETRY_AFTER "1"

static bool is_ndjson(const char *type) {
    static const char *const TYPES[] = {"application/x-ndjson",  "application/ndjson",
                                        "application/jsonl",     "application/x-jsonlines",
                                        "application/jsonlines", "application/json-lines"};
    tarn_str rest = str_of(type);
    tarn_str name = rest;
    size_t end;
    if (str_find_char(rest, ';', &end)) {
        name = str_sub(rest, 0, end);
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (str_eq_nocase(str_trim(name), str_of(TYPES[i]))) {
            return true;
        }
    }
    return false;
}

/* A request that was answered already, with a status of its own. */
static tarn_code refuse(service_request *r, service_reply *reply, int status, const char *type,
                        const char *message) {
    reply_refuse(r, reply, status, type, message);
    return TARN_OK;
}

static tarn_code check_type(service_request *r, service_reply *reply, bool *bad) {
    const char *type = request_header(r, "Content-Type");
    const char *encoding = request_header(r, "Content-Encoding");
    *bad = true;
    if (type != NULL && !is_ndjson(type)) {
        return refuse(r, reply, 415, "UnsupportedMediaTypeException",
                      "Rows are sent as application/x-ndjson");
    }
    if (encoding != NULL && !str_eq_nocase(str_of(encoding), STR("identity"))) {
        return refuse(r, reply, 415, "UnsupportedMediaTypeException",
                      "Rows are sent as they are, without a Content-Encoding");
    }
    *bad = false;
    return TARN_OK;
}

static tarn_code read_request(service_request *r, intake_request *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *key = request_header(r, "Idempotency-Key");
    const char *wait;
    static const char *const PARAMETERS[] = {"wait", NULL};
    memset(out, 0, sizeof *out);
    TRY(request_check_query(r, PARAMETERS, err));
    TRY(request_query(r, "wait", &wait, err));
    if (wait != NULL && strcmp(wait, "commit") != 0) {
        code = err_set(err, TARN_INVALID,
                       "query parameter wait is \"%s\", and \"commit\" is all that it takes", wait);
        goto done;
    }
    if (key != NULL && !commit_id_is_good(str_of(key))) {
        code = err_set(err, TARN_INVALID, "header Idempotency-Key is not " COMMIT_ID_RULE);
        goto done;
    }
    out->table = &r->table;
    out->key = str_of(key != NULL ? key : "");
    out->caller = r->caller != NULL ? r->caller->name : STR("");
    out->body = buf_str(&r->body);
    out->wait_ms = wait != NULL ? WAIT_MS : 0;
done:
    return code;
}

static tarn_code put_answer(service_reply *reply, const intake_request *request,
                            const intake_answer *answer, tarn_error *err) {
    json_writer w;
    json_begin(&w, &reply->body, false, err);
    json_put_object(&w);
    json_member_i64(&w, "rows", answer->rows);
    json_member_i64(&w, "position", answer->position);
    json_member_bool(&w, "repeated", answer->repeated);
    if (request->wait_ms > 0) {
        json_member_bool(&w, "committed", answer->committed);
        if (answer->rejected > 0) {
            json_member_i64(&w, "rejected", answer->rejected);
        }
        if (answer->snapshot_id != TARN_NO_SNAPSHOT) {
            json_member_i64(&w, "snapshot-id", answer->snapshot_id);
        }
    }
    json_end_object(&w);
    return json_end(&w);
}

/* What the client can do about it is in the status. */
static tarn_code put_refusal(service_request *r, service_reply *reply, intake_refusal refusal,
                             tarn_code code, tarn_error *err) {
    bool full = err->os_code == ENOSPC || err->os_code == EDQUOT;
    switch (refusal) {
    case INTAKE_MISUSED:
        return refuse(r, reply, 422, "UnprocessableEntityException", err->message);
    case INTAKE_BUSY:
        (void)refuse(r, reply, 503, "ServiceUnavailableException", err->message);
        return reply_header(r, reply, "Retry-After", RETRY_AFTER, err);
    case INTAKE_DISK:
        (void)refuse(r, reply, full ? 507 : 503, "ServiceUnavailableException", err->message);
        return reply_header(r, reply, "Retry-After", RETRY_AFTER, err);
    case INTAKE_NO_REFUSAL:
        break;
    }
    return code;
}

tarn_code rest_rows(service_request *r, service_reply *reply, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_request request;
    intake_answer answer;
    intake_refusal refusal = INTAKE_NO_REFUSAL;
    bool bad;
    if (r->service->intake == NULL) {
        return err_set(err, TARN_UNSUPPORTED,
                       "this service takes no rows: start it with --intake DIR");
    }
    TRY(check_type(r, reply, &bad));
    if (bad) {
        goto done;
    }
    TRY(read_request(r, &request, err));
    code = intake_take(r->service->intake, &request, &answer, &refusal, err);
    if (code != TARN_OK) {
        code = put_refusal(r, reply, refusal, code, err);
        goto done;
    }
    code = put_answer(reply, &request, &answer, err);
done:
    return code;
}
