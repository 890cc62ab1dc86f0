/* catalog/remote_files.c - write results sent to a server that offers batch commit.
 *
 * Invariant: an answer that is not clear is asked for again with the same body: the server knows
 * the commit by its id. A refusal is believed only where no request before it was left open, since
 * one may yet arrive; else it is UNKNOWN. A server that is away is waited for where that is wanted.
 */
#include "base/limits.h"
#include "catalog/catalog_rest_int.h"

#define ENDPOINT      "namespaces/{namespace}/tables/{table}/write-results"
#define TRIES         6
#define FIRST_WAIT_MS 100

bool remote_offers_files(tarn_catalog *c) {
    const remote_catalog *self = (const remote_catalog *)c;
    return remote_has_endpoint(self->client, "POST", ENDPOINT);
}

static tarn_code take_answer(const json_value *json, const char *label, int64_t *snapshot_id,
                             tarn_error *err) {
    tarn_str outcome = STR_NULL;
    (void)json_str(json_get(json, "outcome"), &outcome);
    if (str_is(outcome, "nothing-to-do")) {
        *snapshot_id = TARN_NO_SNAPSHOT;
        return TARN_OK;
    }
    return str_is(outcome, "committed") && json_i64(json_get(json, "snapshot-id"), snapshot_id)
               ? TARN_OK
               : err_set(err, TARN_CORRUPT, "the answer to a commit of table %s was not one",
                         label);
}

static tarn_code send_files(remote_catalog *self, const tarn_ident *table, tarn_str body,
                            bool resent, int64_t *snapshot_id, bool *unclear, tarn_error *err) {
    tarn_arena arena;
    remote_reply reply = {0};
    tarn_code code = TARN_OK;
    arena_init(&arena, self->base.env);
    const char *path = remote_table_path(self->client, &arena, table);
    path = path != NULL
               ? arena_printf(&arena, "%s/write-results%s", path, resent ? "?resent=true" : "")
               : NULL;
    const remote_request request = {
        .method = "POST", .endpoint = ENDPOINT, .path = path, .body = body, .waited = true};
    TRY(remote_send(self->client, &arena, &request, &reply, err));
    code = take_answer(reply.json, ident_label(&arena, table), snapshot_id, err);
    reply.unclear = reply.unclear || code != TARN_OK;
done:
    *unclear = reply.unclear;
    arena_release(&arena);
    return code;
}

tarn_code remote_commit_files(tarn_catalog *c, const tarn_ident *table, tarn_str body,
                              tarn_outcome_kind *outcome, int64_t *snapshot_id, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_error cause = TARN_ERROR_INIT;
    catalog_outage outage = {0};
    bool open = false; /* a request before this one may yet be taken */
    *outcome = TARN_NOT_COMMITTED;
    for (int i = 0; i < TRIES; i++) {
        bool unclear;
        err_reset(&cause);
        tarn_code code = send_files(self, table, body, open, snapshot_id, &unclear, &cause);
        if (code == TARN_OK) {
            *outcome = TARN_COMMITTED;
            catalog_wait_end(c, &outage, true);
            return TARN_OK;
        }
        if (!open && !unclear) {
            return err_as(err, err_set(err, code, "%s", cause.message), &cause);
        }
        open = true;
        if (!unclear && code != TARN_IO) {
            break; /* a refusal, which will be the same */
        }
        if (catalog_wait(c, &outage, &cause)) {
            i = -1; /* as if it had not been away */
        } else {
            env_sleep_ms(c->env, (int64_t)FIRST_WAIT_MS << i);
        }
    }
    catalog_wait_end(c, &outage, !err_is_away(&cause));
    *outcome = TARN_OUTCOME_UNKNOWN;
    (void)err_set(err, TARN_COMMIT_UNKNOWN, "write results were sent: %s", cause.message);
    return err_as(err, TARN_COMMIT_UNKNOWN, &cause);
}
