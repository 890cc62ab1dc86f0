/* Goal: the document of a view is read and written whole, and changes do to it what the REST
 * specification and Iceberg Java say.
 * Method: documents and change sets as JSON; one rule a test; every allocation fails once. */
#include "fail_alloc.h"
#include "fixture.h"

#include "iceberg/view.h"

#define SCHEMA(id, name)                                                                           \
    "{\"type\":\"struct\",\"schema-id\":" id ",\"fields\":[{\"id\":1,\"name\":\"" name             \
    "\",\"required\":false,\"type\":\"long\"}]}"
#define SQL(text, dialect) "{\"type\":\"sql\",\"sql\":\"" text "\",\"dialect\":\"" dialect "\"}"
#define VERSION(id, schema, at, representations)                                                   \
    "{\"version-id\":" id ",\"schema-id\":" schema ",\"timestamp-ms\":" at                         \
    ",\"summary\":{\"engine-name\":\"e\"},\"default-namespace\":[\"a\",\"b\"],"                    \
    "\"representations\":[" representations "]}"
#define ADD_VERSION(id, schema, at, representations)                                               \
    "{\"action\":\"add-view-version\",\"view-version\":" VERSION(id, schema, at,                   \
                                                                 representations) "}"
#define ADD_SCHEMA(id, name) "{\"action\":\"add-schema\",\"schema\":" SCHEMA(id, name) "}"
#define SET_CURRENT(id)      "{\"action\":\"set-current-view-version\",\"view-version-id\":" id "}"
#define SET(key, value)      "{\"action\":\"set-properties\",\"updates\":{\"" key "\":\"" value "\"}}"
#define CREATE                                                                                     \
    "{\"action\":\"assign-uuid\",\"uuid\":\"u-1\"},"                                               \
    "{\"action\":\"set-location\",\"location\":\"/v\"}," ADD_SCHEMA("0", "x") "," ADD_VERSION(     \
        "1", "-1", "100", SQL("select 1", "spark")) "," SET_CURRENT("-1")

typedef struct bench {
    tarn_env *env;
    tarn_arena arena;
    const view_metadata *view; /* NULL: none yet */
    tarn_error err;
} bench;

static void bench_open(bench *b) {
    memset(b, 0, sizeof *b);
    b->env = test_env();
    arena_init(&b->arena, b->env);
}

static void bench_close(bench *b) {
    arena_release(&b->arena);
    test_env_done(b->env);
}

/* Applies updates (and a requirement), then writes and reads the document. */
static tarn_code change(bench *b, const char *requirement, const char *updates, int64_t now_ms) {
    view_change_set set;
    json_value *json = NULL;
    tarn_buf text;
    const view_metadata *made;
    buf_init(&text, b->arena.env, 0);
    tarn_code code;
    const char *body =
        arena_printf(&b->arena, "{\"requirements\":[%s],\"updates\":[%s]}", requirement, updates);
    TRY(body != NULL ? TARN_OK : err_nomem(&b->err));
    TRY(json_parse(&b->arena, str_of(body), "request", &json, &b->err));
    TRY(view_changes_from_json(&b->arena, json, &set, &b->err));
    TRY(view_apply(&b->arena, b->view, &set, now_ms, &made, &b->err));
    TRY(view_write(made, &text, &b->err));
    TRY(view_parse(&b->arena, buf_str(&text), "again", &b->view, &b->err));
done:
    buf_release(&text);
    return code;
}

static void make(bench *b) {
    tarn_error err = TARN_ERROR_INIT;
    bench_open(b);
    assert_ok(change(b, "", CREATE, 500));
}

#define expect(b, code, updates) assert_code(change(b, "", updates, 1000), code)

static void created_from_nothing(void **state) {
    (void)state;
    bench b;
    make(&b);
    const view_metadata *v = b.view;
    assert_true(str_is(v->uuid, "u-1") && str_is(v->location, "/v"));
    assert_int_equal(v->format_version, 1);
    assert_int_equal(v->n_schemas, 1);
    assert_int_equal(v->n_versions, 1);
    assert_int_equal(v->current_version_id, 1);
    assert_int_equal(v->versions[0]->schema_id, 0);
    assert_int_equal(v->n_log, 1);
    assert_int_equal(v->log[0].timestamp_ms, 100); /* of the version, as it was just added */
    assert_int_equal(v->versions[0]->n_levels, 2);
    assert_null(v->versions[0]->default_catalog.data);
    bench_close(&b);
}

static void needs_all_parts(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    expect(&b, TARN_INVALID, "");
    expect(&b, TARN_INVALID, "{\"action\":\"assign-uuid\",\"uuid\":\"u\"}");
    expect(&b, TARN_INVALID, SET_CURRENT("-1"));
    expect(&b, TARN_INVALID, ADD_VERSION("1", "-1", "1", SQL("x", "d")));
    expect(&b, TARN_INVALID, ADD_VERSION("1", "7", "1", SQL("x", "d")));
    expect(&b, TARN_INVALID, "{\"action\":\"add-spec\",\"spec\":{}}");
    expect(&b, TARN_INVALID, "{\"action\":\"set-location\"}");
    expect(&b, TARN_INVALID, "{\"action\":\"add-view-version\",\"view-version\":[]}");
    expect(&b, TARN_INVALID, "{\"action\":\"upgrade-format-version\",\"format-version\":2}");
    expect(&b, TARN_INVALID, "{\"action\":\"remove-properties\",\"removals\":{}}");
    assert_null(b.view);
    bench_close(&b);
}

static void requirements(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    make(&b);
    assert_ok(change(&b, "{\"type\":\"assert-view-uuid\",\"uuid\":\"U-1\"}", SET("k", "v"), 1));
    assert_code(change(&b, "{\"type\":\"assert-view-uuid\",\"uuid\":\"u-2\"}", SET("k", "w"), 1),
                TARN_CONFLICT);
    assert_code(change(&b, "{\"type\":\"assert-create\"}", "", 1), TARN_INVALID);
    assert_code(change(&b, "", "{\"action\":\"assign-uuid\",\"uuid\":\"u-2\"}", 1), TARN_INVALID);
    assert_true(str_is(properties_str(&b.view->properties, "k", ""), "v"));
    assert_ok(change(&b, "", "{\"action\":\"remove-properties\",\"removals\":[\"k\",\"z\"]}", 1));
    assert_int_equal(b.view->properties.count, 0);
    bench_close(&b);
}

/* What means the same keeps its id; the log tells every change of the current version. */
static void versions_are_reused(void **state) {
    (void)state;
    bench b;
    make(&b);
    expect(&b, TARN_OK,
           ADD_SCHEMA("5", "y") "," ADD_VERSION("1", "-1", "200",
                                                SQL("select 2", "spark")) "," SET_CURRENT("-1"));
    assert_int_equal(b.view->n_schemas, 2);
    assert_int_equal(b.view->schemas[1]->schema_id, 1);
    assert_int_equal(b.view->current_version_id, 2);
    expect(&b, TARN_OK,
           ADD_SCHEMA("9", "x") "," ADD_VERSION("7", "0", "300",
                                                SQL("select 1", "spark")) "," SET_CURRENT("-1"));
    assert_int_equal(b.view->n_schemas, 2);
    assert_int_equal(b.view->n_versions, 2);
    assert_int_equal(b.view->current_version_id, 1);
    assert_int_equal(b.view->n_log, 3);
    assert_int_equal(b.view->log[1].timestamp_ms, 200);
    assert_int_equal(b.view->log[2].timestamp_ms, 1000); /* it was there: the time is now */
    expect(&b, TARN_OK, SET_CURRENT("1"));
    assert_int_equal(b.view->n_log, 3);
    expect(&b, TARN_INVALID, SET_CURRENT("77"));
    bench_close(&b);
}

static void dialects(void **state) {
    (void)state;
    bench b;
    make(&b);
    expect(&b, TARN_INVALID, ADD_VERSION("2", "0", "2", SQL("a", "trino") "," SQL("b", "Trino")));
    expect(&b, TARN_INVALID, ADD_VERSION("2", "0", "2", SQL("a", "trino")) "," SET_CURRENT("-1"));
    expect(&b, TARN_OK, ADD_VERSION("2", "0", "2", SQL("a", "trino"))); /* it is not current */
    expect(
        &b, TARN_OK,
        ADD_VERSION("2", "0", "2", SQL("a", "trino") "," SQL("b", "SPARK")) "," SET_CURRENT("-1"));
    expect(&b, TARN_OK, SET("replace.drop-dialect.allowed", "true") "," SET_CURRENT("2"));
    assert_int_equal(b.view->current_version_id, 2);
    bench_close(&b);
}

static void old_versions_fall_out(void **state) {
    (void)state;
    bench b;
    make(&b);
    expect(&b, TARN_INVALID, SET("version.history.num-entries", "0"));
    expect(&b, TARN_OK, SET("version.history.num-entries", "2"));
    expect(&b, TARN_OK, ADD_VERSION("1", "0", "2", SQL("b", "spark")) "," SET_CURRENT("2"));
    expect(&b, TARN_OK, SET_CURRENT("1"));
    expect(&b, TARN_OK, ADD_VERSION("1", "0", "3", SQL("c", "spark")));
    assert_int_equal(b.view->n_versions, 2); /* the current one stays, and the newest */
    assert_int_equal(b.view->versions[0]->version_id, 1);
    assert_int_equal(b.view->versions[1]->version_id, 3);
    assert_int_equal(b.view->n_log, 1); /* nothing before a version that is gone */
    assert_int_equal(b.view->log[0].version_id, 1);
    /* All that one change adds stay. */
    expect(&b, TARN_OK,
           ADD_VERSION("1", "0", "4", SQL("d", "spark")) "," ADD_VERSION(
               "1", "0", "5",
               SQL("e", "spark")) "," ADD_VERSION("1", "0", "6",
                                                  SQL("f", "spark")) "," SET_CURRENT("-1"));
    assert_int_equal(b.view->n_versions, 3);
    assert_int_equal(b.view->current_version_id, 6);
    bench_close(&b);
}

static void broken_documents(void **state) {
    (void)state;
    static const struct {
        const char *text;
        tarn_code code;
    } cases[] = {
        {"[]", TARN_CORRUPT},
        {"{}", TARN_CORRUPT},
        {"{\"format-version\":2,\"view-uuid\":\"u\"}", TARN_UNSUPPORTED},
        {"{\"format-version\":1,\"view-uuid\":\"u\",\"location\":\"/v\",\"schemas\":[],"
         "\"current-version-id\":1,\"versions\":[],\"version-log\":[]}",
         TARN_CORRUPT},
        {"{\"format-version\":1,\"view-uuid\":\"u\",\"location\":\"/v\",\"schemas\":[" SCHEMA(
             "0",
             "x") "],\"current-version-id\":1,\"versions\":[" VERSION("1", "0", "1",
                                                                      "{}") "],"
                                                                            "\"version-log\":[]}",
         TARN_CORRUPT},
        {"{\"format-version\":1,\"view-uuid\":\"u\",\"location\":\"/v\",\"schemas\":[" SCHEMA(
             "0",
             "x") "],\"current-version-id\":1,\"versions\":[" VERSION("1", "0", "1",
                                                                      "{\"type\":\"sql\",\"sql\":"
                                                                      "\"x\"}") "],\"version-log\":"
                                                                                "[]}",
         TARN_CORRUPT},
    };
    bench b;
    bench_open(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const view_metadata *out;
        assert_code(view_parse(&b.arena, str_of(cases[i].text), "doc", &out, &b.err),
                    cases[i].code);
    }
    bench_close(&b);
}

/* Members that are not known stay through changes. */
static void unknown_members_are_kept(void **state) {
    (void)state;
    bench b;
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    bench_open(&b);
    static const char document[] =
        "{\"view-uuid\":\"u\",\"format-version\":1,\"location\":\"/"
        "v\",\"properties\":{\"a\":\"b\"},"
        "\"schemas\":[" SCHEMA(
            "0",
            "x") "],\"current-version-id\":1,\"versions\":[{"
                 "\"version-id\":1,\"timestamp-ms\":5,\"schema-id\":0,\"summary\":{},"
                 "\"default-catalog\":\"c\",\"default-namespace\":[],\"representations\":[{"
                 "\"type\":\"plan\","
                 "\"tree\":[1,2]}],\"later\":{\"x\":null}}],"
                 "\"version-log\":[{\"timestamp-ms\":5,\"version-id\":1}],\"much-later\":[true]}";
    assert_ok(view_parse(&b.arena, str_of(document), "doc", &b.view, &err));
    assert_ok(change(&b, "", SET("a", "b"), 9));
    buf_init(&text, b.env, 0);
    assert_ok(view_write(b.view, &text, &err));
    assert_true(str_eq(buf_str(&text), str_of(document)));
    buf_release(&text);
    bench_close(&b);
}

static void without_memory(void **state) {
    (void)state;
    bool failed = true;
    for (uint64_t k = 1; failed; k++) {
        fail_alloc plan;
        bench b = {.env = fail_alloc_env(&plan, k)};
        arena_init(&b.arena, b.env);
        tarn_code code = change(&b, "", CREATE, 1);
        if (code == TARN_OK) {
            code = change(&b, "",
                          SET("version.history.num-entries", "1") "," ADD_VERSION(
                              "1", "0", "2", SQL("b", "spark")) "," SET_CURRENT("-1"),
                          2);
        }
        failed = plan.failed;
        assert_code(code, failed ? TARN_NOMEM : TARN_OK);
        arena_release(&b.arena);
        fail_alloc_done(&plan, b.env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(created_from_nothing),
        cmocka_unit_test(needs_all_parts),
        cmocka_unit_test(requirements),
        cmocka_unit_test(versions_are_reused),
        cmocka_unit_test(dialects),
        cmocka_unit_test(old_versions_fall_out),
        cmocka_unit_test(broken_documents),
        cmocka_unit_test(unknown_members_are_kept),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
