/* Goal: the known bug cases of sinks that restart: B34 (a state set back) and B35 (a commit whose
 * answer was lost, also with its snapshot expired). Method: the tables of the cases, copied into a
 * warehouse; states made by hand, as the job before would have left them. */
#include "sink_case.h"

#include "base/num.h"

static tarn_error err;

static const char *const BUGS = TARN_TEST_SHARED "/bugs";

static tarn_code copy_file(void *ctx, tarn_str path, const store_stat_info *info, tarn_error *e) {
    sink_case *t = ctx;
    tarn_buf bytes;
    char to[600];
    (void)info;
    tarn_str rest;
    const char *at = strstr(path.data, "/tbl/");
    assert_non_null(at);
    rest = str_make(at + 5, path.len - (size_t)(at + 5 - path.data));
    (void)snprintf(to, sizeof to, "%s/ns/t/%.*s", t->c.warehouse, STR_ARG(rest));
    buf_init(&bytes, t->c.env, 0);
    tarn_code code = store_get(t->c.catalog->store, path, 1 << 20, &bytes, e);
    if (code == TARN_OK) {
        code = store_put(t->c.catalog->store, str_of(to), STORE_CREATE, buf_str(&bytes), e);
    }
    buf_release(&bytes);
    return code;
}

/* The case's table as ns.t of a SQLite catalog, whose store finds it by the paths it names. */
static bool open_bug(sink_case *t, tarn_env *env, const char *bug) {
    char from[256];
    char place[128];
    char to[160];
    tarn_store *store = NULL;
    tarn_store *moved = NULL;
    (void)snprintf(from, sizeof from, "%s/%s/tbl", BUGS, bug);
    if (access(from, R_OK) != 0) {
        return false;
    }
    sink_case_init(t, env, CASE_DIR_FILE);
    assert_ok(store_list(t->c.catalog->store, str_of(from), copy_file, t, &err));
    catalog_close(t->c.catalog);
    (void)snprintf(place, sizeof place, "file:///tarn-fixtures/bugs/open/%s/tbl", bug);
    (void)snprintf(to, sizeof to, "%s/ns/t", t->c.warehouse);
    assert_ok(store_file_new(env, false, &store, &err));
    assert_ok(store_moved_new(store, str_of(place), str_of(to), &moved, &err));
    (void)snprintf(from, sizeof from, "%s/bugs.db", t->c.folder);
    assert_ok(catalog_sqlite_new(env, moved, str_of(from), STR("tarn"), str_of(t->c.warehouse),
                                 &t->c.catalog, &err));
    tarn_ident ns = {1, t->c.ident.levels, STR_NULL};
    assert_ok(catalog_create_namespace(t->c.catalog, &ns, NULL, &err));
    (void)snprintf(from, sizeof from, "%s/metadata/v1.metadata.json", place);
    assert_ok(catalog_register(t->c.catalog, &t->c.ident, str_of(from), &err));
    return true;
}

static void put_state(sink_case *t, const char *name, tarn_str body) {
    char path[300];
    tarn_buf all;
    buf_init(&all, t->c.env, 0);
    (void)snprintf(path, sizeof path, "%s/%s", t->state_dir, name);
    assert_ok(buf_printf(&all, &err, "tarn-sink 1 %08x %zu\n", num_crc32(0, body.data, body.len),
                         body.len));
    assert_ok(buf_append_str(&all, body, &err));
    assert_ok(store_put(t->c.catalog->store, str_of(path), STORE_REPLACE, buf_str(&all), &err));
    buf_release(&all);
}

static void put_identity(sink_case *t, const char *committed) {
    put_state(t, "sink",
              STR("{\"sink-id\":\"job-a\",\"operator-id\":\"op-1\",\"table\":\"t\","
                  "\"table-uuid\":\"00000000-0000-4000-8000-000000000001\",\"branch\":\"main\"}"));
    put_state(t, "committed-00000001-000000000001", str_of(committed));
}

static void test_rewound(void **state) { /* B34 */
    (void)state;
    tarn_env *env = test_env();
    sink_case t;
    if (open_bug(&t, env, "B34")) {
        put_identity(&t, "{\"checkpoint\":6,\"snapshot-id\":1002}");
        assert_code(sink_case_open(&t, &err), TARN_CONFLICT);
        assert_non_null(strstr(err.message, "checkpoint 6"));
        assert_non_null(strstr(err.message, "checkpoint 9"));
        assert_non_null(strstr(err.message, "roll the table back"));
        assert_int_equal(sink_case_snapshots(&t), 5);
        /* where the table does not run ahead, numbers go on */
        put_state(&t, "committed-00000001-000000000001",
                  STR("{\"checkpoint\":9,\"snapshot-id\":1005}"));
        assert_ok(sink_case_open(&t, &err));
        assert_ok(sink_case_write(&t, "{\"id\":100}\n", NULL, &err));
        assert_ok(sink_case_checkpoint(&t, NULL, &err));
        assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "10");
        sink_case_done(&t);
    }
    test_env_done(env);
}

/* The delta of checkpoint 18 as the job before left it. */
static void put_delta(sink_case *t, int64_t base) {
    tarn_buf body;
    sink_delta delta;
    tarn_file file;
    sink_identity who = {STR("job-a"), STR("op-1"), STR("t"),
                         STR("00000000-0000-4000-8000-000000000001"), STR("main")};
    memset(&delta, 0, sizeof delta);
    memset(&file, 0, sizeof file);
    file.path = STR("file:///tarn-fixtures/bugs/open/B35/tbl/data/c2.parquet");
    file.record_count = 1;
    file.first_row_id = file.content_offset = file.content_size = -1;
    file.sort_order_id = -1;
    delta.checkpoint = 18;
    delta.epoch = 1;
    delta.base_snapshot_id = base;
    delta.offsets = STR("eighteen");
    (void)snprintf(delta.commit_id, sizeof delta.commit_id, "%s",
                   "11111111-1111-4111-8111-111111111111");
    delta.written.files = &file;
    delta.written.n_files = 1;
    delta.written.rows = 1;
    buf_init(&body, t->c.env, 0);
    assert_ok(delta_write(&who, &delta, &body, &err));
    put_state(t, "checkpoint-000000000018-00000001", buf_str(&body));
    buf_release(&body);
}

/* The summary of checkpoint 18's snapshot is lost with it: only files tell. */
static void forget_summary(sink_case *t) {
    char path[300];
    tarn_buf text;
    buf_init(&text, t->c.env, 0);
    (void)snprintf(path, sizeof path, "%s/ns/t/metadata/v1.metadata.json", t->c.warehouse);
    assert_ok(store_get(t->c.catalog->store, str_of(path), 1 << 20, &text, &err));
    assert_ok(buf_append_char(&text, '\0', &err));
    char *at = strstr((char *)text.data, "\"18\"");
    assert_non_null(at);
    at[2] = '7';
    assert_ok(store_put(t->c.catalog->store, str_of(path), STORE_REPLACE,
                        str_make(text.data, text.len - 1), &err));
    buf_release(&text);
}

static void test_lost_answer(void **state) { /* B35 */
    (void)state;
    tarn_env *env = test_env();
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        sink_case t;
        if (!open_bug(&t, env, "B35")) {
            break;
        }
        put_identity(&t, "{\"checkpoint\":17,\"snapshot-id\":1001}");
        put_delta(&t, forgotten != 0 ? 999 : 1002);
        if (forgotten != 0) {
            forget_summary(&t);
        }
        assert_ok(sink_case_open(&t, &err));
        assert_int_equal(sink_case_snapshots(&t), 3);
        assert_int_equal(sink_case_count(&t, "checkpoint-", NULL), 0);
        assert_true(str_is(sink_offsets(t.sink), "eighteen"));
        assert_ok(sink_case_write(&t, "{\"id\":100}\n", NULL, &err));
        assert_ok(sink_case_checkpoint(&t, NULL, &err));
        assert_string_equal(sink_case_summary(&t, SINK_KEY_CHECKPOINT), "19");
        sink_case_done(&t);
    }
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewound),
        cmocka_unit_test(test_lost_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
