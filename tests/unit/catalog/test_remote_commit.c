/* Goal: what became of a commit to a REST server is said truly where answers are lost, also of a
 * server that puts what is stale on the newer head and so may yet take what arrives late.
 * Method: a server of this test plays a script of answers, one a request to commit, and gives the
 * table as it then is to who looks. */
#include "http_stub.h"
#include "table_case.h"

#include "iceberg/change.h"

static tarn_error err;

enum { AS_IT_WAS, MOVED, WITH_OURS, DOCUMENTS };

/* m: another commit moved the table, and no answer; x: nothing, and no answer; l: taken, and no
 * answer; t: taken; r: refused. */
typedef struct server {
    http_stub stub;
    const char *documents[DOCUMENTS]; /* tables as answers have them */
    const char *script;
    int commits;
    int now;
} server;

static char *answer(const char *status, const char *body) {
    size_t cap = strlen(body) + 128;
    char *text = malloc(cap);
    if (text != NULL) {
        (void)snprintf(text, cap, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", status,
                       strlen(body), body);
    }
    return text;
}

static char *reply(void *ctx, const char *got) {
    server *s = ctx;
    if (strstr(got, "/v1/config") != NULL) {
        return answer("200 OK", "{\"defaults\":{},\"overrides\":{}}");
    }
    if (strncmp(got, "GET", 3) == 0) {
        return answer("200 OK", s->documents[s->now]);
    }
    char step = s->script[s->commits];
    s->commits += step != '\0';
    s->now = step == 'm' ? MOVED : step == 't' || step == 'l' ? WITH_OURS : s->now;
    if (step == 't') {
        return answer("200 OK", s->documents[s->now]);
    }
    return step == 'r' ? answer("409 Conflict", "{\"error\":{\"message\":\"stale\",\"type\":"
                                                "\"CommitFailedException\",\"code\":409}}")
                       : answer("500 Internal Server Error", "");
}

static const char *put_document(table_case *c, const tarn_metadata *m, int number) {
    tarn_buf text;
    buf_init(&text, c->env, 0);
    assert_ok(buf_printf(&text, &err,
                         "{\"metadata-location\":\"/t/metadata/%d.json\",\"metadata\":", number));
    assert_ok(metadata_write(m, &text, &err));
    assert_ok(buf_append_str(&text, STR("}\0"), &err));
    const char *out = arena_str(&c->arena, buf_str(&text)).data;
    buf_release(&text);
    return out;
}

/* An append of that id on m: as changes, and what comes of it. */
static const tarn_metadata *append(table_case *c, const tarn_metadata *m, int64_t id,
                                   tarn_change_set *set) {
    static const tarn_property summary = {{"operation", 9}, {"append", 6}};
    const tarn_metadata *next;
    tarn_snapshot *s = ARENA_NEW(&c->arena, tarn_snapshot);
    tarn_change *changes = ARENA_ARRAY(&c->arena, tarn_change, 2);
    tarn_requirement *same = ARENA_NEW(&c->arena, tarn_requirement);
    *s = (tarn_snapshot){.snapshot_id = id,
                         .parent_id = m->current_snapshot_id,
                         .sequence_number = m->last_sequence_number + 1,
                         .timestamp_ms = m->last_updated_ms + 1,
                         .manifest_list = STR("/t/metadata/list.avro"),
                         .summary = {1, &summary},
                         .first_row_id = -1,
                         .added_rows = -1};
    memset(changes, 0, 2 * sizeof *changes);
    changes[0] = (tarn_change){.kind = CHANGE_ADD_SNAPSHOT, .snapshot = s};
    changes[1] = (tarn_change){.kind = CHANGE_SET_SNAPSHOT_REF,
                               .ref = {.name = STR(TARN_MAIN_BRANCH),
                                       .snapshot_id = id,
                                       .max_ref_age_ms = -1,
                                       .max_snapshot_age_ms = -1,
                                       .min_snapshots_to_keep = -1}};
    *same =
        (tarn_requirement){REQUIRE_REF_SNAPSHOT_ID, STR(TARN_MAIN_BRANCH), m->current_snapshot_id};
    *set = (tarn_change_set){1, same, 2, changes};
    assert_ok(change_apply(&c->arena, m, set, s->timestamp_ms, &next, &err));
    return next;
}

static void no_sleep(void *ctx, int64_t ms) {
    (void)ctx;
    (void)ms;
}

static void play(const char *script, tarn_code want, tarn_outcome_kind want_outcome, int commits) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env;
    table_case c;
    server s;
    tarn_store *store;
    tarn_catalog *remote;
    tarn_table_version *base;
    tarn_table_version *after = NULL;
    tarn_change_set ours;
    tarn_change_set theirs;
    tarn_change_set late;
    tarn_outcome_kind outcome;
    char uri[64];
    options.sleep_ms = no_sleep;
    assert_ok(tarn_env_new(&options, &env, &err));
    case_open(&c, env, CASE_DIR_MEMORY);
    case_table(&c, 2, "a int", NULL, NULL);
    base = case_load(&c);
    memset(&s, 0, sizeof s);
    s.script = script;
    s.documents[AS_IT_WAS] = put_document(&c, base->metadata, 1);
    const tarn_metadata *moved = append(&c, base->metadata, 50, &theirs);
    s.documents[MOVED] = put_document(&c, moved, 2);
    s.documents[WITH_OURS] = put_document(&c, append(&c, moved, 77, &late), 3);
    (void)append(&c, base->metadata, 77, &ours);
    table_version_release(base);
    s.stub.reply = reply;
    s.stub.ctx = &s;
    stub_listen(&s.stub, "", true);
    (void)snprintf(uri, sizeof uri, "http://127.0.0.1:%d", s.stub.port);
    assert_ok(store_memory_new(env, &store, &err));
    assert_ok(
        catalog_rest_new(env, store, str_of(uri), &(tarn_properties){0, NULL}, &remote, &err));
    assert_ok(catalog_load(remote, &c.ident, &base, &err));
    tarn_code code = catalog_commit(remote, &c.ident, base, &ours, &outcome, &after, &err);
    catalog_close(remote);
    stub_stop(&s.stub);
    if (code != want || outcome != want_outcome || s.commits != commits) {
        fail_msg("script %s: %s, outcome %d after %d requests: %s", script, tarn_code_name(code),
                 (int)outcome, s.commits, err.message);
    }
    assert_true((after != NULL) == (outcome == TARN_COMMITTED));
    assert_true(after == NULL || metadata_snapshot_by_id(after->metadata, 77) != NULL);
    err_reset(&err);
    table_version_release(after);
    table_version_release(base);
    case_done(&c);
    test_env_done(env);
}

static void test_remote_clear(void **state) {
    (void)state;
    play("t", TARN_OK, TARN_COMMITTED, 1);
    play("r", TARN_CONFLICT, TARN_NOT_COMMITTED, 1);
}

static void test_remote_lost_answer(void **state) {
    (void)state;
    play("l", TARN_OK, TARN_COMMITTED, 1);
    play("xt", TARN_OK, TARN_COMMITTED, 2);
    play("xl", TARN_OK, TARN_COMMITTED, 2);
    play("xxxxx", TARN_COMMIT_UNKNOWN, TARN_OUTCOME_UNKNOWN, 5);
}

/* The table moved on without ours, and the request may be on its way still: only a refusal that
 * came after that says that it will never be taken. */
static void test_remote_late(void **state) {
    (void)state;
    play("mt", TARN_OK, TARN_COMMITTED, 2);
    play("ml", TARN_OK, TARN_COMMITTED, 2);
    play("mr", TARN_CONFLICT, TARN_NOT_COMMITTED, 2);
    play("mxr", TARN_CONFLICT, TARN_NOT_COMMITTED, 3);
    play("mxxxx", TARN_COMMIT_UNKNOWN, TARN_OUTCOME_UNKNOWN, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remote_clear),
        cmocka_unit_test(test_remote_lost_answer),
        cmocka_unit_test(test_remote_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
