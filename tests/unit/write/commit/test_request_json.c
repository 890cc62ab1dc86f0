/* Goal: a request that travels is the same where it arrives, and what is wrong with one is named.
 * Method: requests with every member and with none, written, read and written again; documents with
 * one thing wrong. */
#include "unit/write/commit/commit_case.h"

#include "write/commit/request_json.h"

static tarn_error err;

static void write_request(table_case *c, const commit_request *r, tarn_str *out) {
    tarn_buf text;
    buf_init(&text, c->env, 0);
    assert_ok(commit_request_put_json(r, &text, &err));
    *out = arena_str(&c->arena, buf_str(&text));
    buf_release(&text);
}

static tarn_code read_request(table_case *c, tarn_str text, commit_request *out) {
    json_value *json;
    tarn_table_version *version = case_load(c);
    assert_ok(json_parse(&c->arena, text, "test", &json, &err));
    tarn_code code = commit_request_from_json(&c->arena, json, version->metadata, out, &err);
    table_version_release(version); /* int values have a type of their own */
    return code;
}

static void fill_request(table_case *c, commit_request *r) {
    static const tarn_property mine = {{"sink", 4}, {"s", 1}};
    static const tarn_property extra[] = {{{"a", 1}, {"1", 1}}, {{"b", 1}, {"", 0}}};
    static const commit_fence fence = {
        {2, extra}, {"epoch", 5}, INT64_C(1) << 60, {"step", 4}, 7, 6, 5};
    tarn_file *files = ARENA_ARRAY(&c->arena, tarn_file, 4);
    tarn_entry *entries = ARENA_ARRAY(&c->arena, tarn_entry, 2);
    files[0] = commit_file(c, "a", 1, 5);
    files[1] = commit_file(c, "b", INT32_MIN, 5);
    files[2] = commit_delete_file(c, "d", TARN_CONTENT_EQUALITY_DELETES, 1, 2);
    files[3] = commit_vector(c, "v", &files[0], 4, 2);
    entries[0] = commit_entry(files[2]);
    entries[1] = commit_entry(files[1]);
    *r = commit_of(COMMIT_ROW_DELTA, files, 2);
    r->added_deletes = &files[2];
    r->n_added_deletes = 2;
    r->removed_deletes = &entries[0];
    r->n_removed_deletes = 1;
    r->removed = &entries[1];
    r->n_removed = 1;
    r->referenced = &files[0].path;
    r->n_referenced = 1;
    r->check_new_deletes = r->merge = r->allow_empty = r->share = true;
    r->branch = STR("audit");
    r->from_snapshot_id = INT64_MAX;
    r->mine = &mine;
    r->summary = (tarn_properties){2, extra};
    r->commit_id = "id-1";
    r->table_uuid = STR("u");
    r->fence = &fence;
}

static void test_request_json_round(void **state) {
    (void)state;
    tarn_env *env = test_env();
    table_case c;
    commit_request full, empty, back;
    tarn_str first, second;
    case_open(&c, env, CASE_DIR_MEMORY);
    case_table(&c, 3, "p int, v string", "p", NULL);
    fill_request(&c, &full);
    empty = commit_of(COMMIT_FAST_APPEND, NULL, 0);
    const commit_request *requests[] = {&full, &empty};
    for (int i = 0; i < 2; i++) {
        write_request(&c, requests[i], &first);
        assert_ok(read_request(&c, first, &back));
        write_request(&c, &back, &second);
        assert_true(str_eq(first, second));
    }
    assert_true(commit_request_can_travel(&full));
    full.check_each = true; /* the base that is swapped must be asked */
    assert_false(commit_request_can_travel(&full));
    assert_true(back.from_snapshot_id == TARN_NO_SNAPSHOT && back.fence == NULL &&
                back.mine == NULL && back.commit_id == NULL && !back.share);
    case_done(&c);
    test_env_done(env);
}

static void test_request_json_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"{}", "kind"},
        {"{\"kind\":\"APPEND\"}", "kind"},
        {"{\"kind\":\"append\",\"share\":1}", "share"},
        {"{\"kind\":\"append\",\"branch\":[]}", "branch"},
        {"{\"kind\":\"append\",\"commit-id\":\"\"}", "commit-id"},
        {"{\"kind\":\"append\",\"commit-id\":\"a b\"}", "commit-id"},
        {"{\"kind\":\"append\",\"base-snapshot-id\":1.5}", "base-snapshot-id"},
        {"{\"kind\":\"append\",\"summary\":[]}", "summary"},
        {"{\"kind\":\"append\",\"summary\":{\"a\":1}}", "summary"},
        {"{\"kind\":\"append\",\"mine\":{\"a\":\"1\",\"b\":\"2\"}}", "mine"},
        {"{\"kind\":\"append\",\"fence\":{\"of\":{\"a\":\"1\"},\"number\":\"n\"}}", "fence"},
        {"{\"kind\":\"append\",\"fence\":{\"of\":{\"a\":\"1\"},\"number\":\"n\",\"at-most\":1,"
         "\"step\":\"s\",\"step-below\":2,\"holds\":3}}",
         "fence"},
        {"{\"kind\":\"append\",\"data-files\":{}}", "data-files"},
        {"{\"kind\":\"append\",\"data-files\":[1]}", "file-path"},
        {"{\"kind\":\"append\",\"removed-delete-files\":[{}]}", "file-path"},
        {"{\"kind\":\"append\",\"referenced-data-files\":[1]}", "referenced-data-files"},
    };
    tarn_env *env = test_env();
    table_case c;
    commit_request r;
    case_open(&c, env, CASE_DIR_MEMORY);
    case_table(&c, 2, "p int, v string", "p", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_reset(&err);
        assert_int_equal(read_request(&c, str_of(cases[i].text), &r), TARN_INVALID);
        if (strstr(err.message, cases[i].word) == NULL) {
            fail_msg("%s: %s", cases[i].text, err.message);
        }
    }
    case_done(&c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_request_json_round),
                                       cmocka_unit_test(test_request_json_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
