/* Goal: a table's whole life through the public interface: made, filled, read, changed, shared,
 * dropped.
 * Method: one story per feature on a dir and an SQLite catalog; rows told as text. */
#include "flow.h"

static tarn_error err;

typedef struct flow_case {
    tarn_env *env;
    char folder[64];
    bool sqlite;
    tarn_catalog_handle *catalog;
    tarn_table *table;
} flow_case;

static void begin(flow_case *f, bool sqlite, const char *partition_by) {
    memset(f, 0, sizeof *f);
    f->env = test_env();
    f->sqlite = sqlite;
    test_tempdir(f->folder);
    assert_ok(flow_connect(f->env, f->folder, sqlite, &f->catalog, &err));
    assert_ok(tarn_catalog_create_namespace(f->catalog, "ns", NULL, &err));
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    options.schema_text = FLOW_SCHEMA;
    options.partition_by = partition_by;
    assert_ok(tarn_catalog_create_table(f->catalog, "ns.t", &options, &err));
    assert_ok(tarn_table_load(f->catalog, "ns.t", &f->table, &err));
}

static void end(flow_case *f) {
    tarn_table_free(f->table);
    tarn_catalog_close(f->catalog);
    test_tempdir_done(f->folder);
    test_env_done(f->env);
}

static void on_both(void (*tell)(flow_case *f), const char *partition_by) {
    for (int i = 0; i < 2; i++) {
        flow_case f;
        begin(&f, i == 1, partition_by);
        tell(&f);
        end(&f);
    }
}

static bool metadata_has(flow_case *f, const char *text) {
    char *json;
    assert_ok(tarn_table_metadata_json(f->table, &json, &err));
    bool has = strstr(json, text) != NULL;
    tarn_text_free(f->env, json);
    return has;
}

static void alter(flow_case *f, const char *edits) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    assert_ok(tarn_table_alter(f->table, edits, &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_DONE);
}

static void alter_fails(flow_case *f, const char *edits, tarn_code code, const char *word) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    assert_code(tarn_table_alter(f->table, edits, &outcome, &err), code);
    assert_int_equal(outcome.state, TARN_COMMIT_NONE);
    if (strstr(err.message, word) == NULL) {
        fail_msg("%s does not say %s", err.message, word);
    }
    memset(&err, 0, sizeof err);
    err.struct_size = sizeof err;
}

/* ---- rows ---- */

static void tell_rows(flow_case *f) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    flow_check(f->table, NULL, "");
    assert_ok(flow_write(f->table, NULL, "1,1,a;2,,b;3,2,", &outcome, &err));
    assert_int_equal(outcome.rows, 3);
    assert_int_equal(outcome.attempts, 1);
    assert_true(outcome.snapshot_id > 0);
    flow_check(f->table, NULL, "1,1,a\n2,null,b\n3,2,null\n");
    flow_check(f->table, "day is null or tag = 'a'", "1,1,a\n2,null,b\n");
    options.columns = "tag, id";
    options.where = "day = 2";
    flow_check_scan(f->table, &options, "null,3\n");
    options = (tarn_scan_options)TARN_SCAN_OPTIONS_INIT;
    options.limit = 0;
    flow_check_scan(f->table, &options, "");
    options.limit = -1;
    options.where = "DAY = 2";
    options.case_insensitive = true;
    flow_check_scan(f->table, &options, "3,2,null\n");
    /* nothing written: no snapshot */
    assert_ok(flow_write(f->table, NULL, "", &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_NONE);
    /* another handle sees it after a refresh */
    tarn_table *other;
    assert_ok(tarn_table_load(f->catalog, "ns.t", &other, &err));
    flow_append(f->table, "4,3,d");
    flow_check(other, NULL, "1,1,a\n2,null,b\n3,2,null\n");
    assert_ok(tarn_table_refresh(other, &err));
    flow_check(other, NULL, "1,1,a\n2,null,b\n3,2,null\n4,3,d\n");
    tarn_table_free(other);
}

static void test_flow_rows(void **state) {
    (void)state;
    on_both(tell_rows, NULL);
    on_both(tell_rows, "day, bucket(4, id)");
}

static void tell_bad_batches(flow_case *f) {
    tarn_sink *sink;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    assert_ok(tarn_sink_open(f->table, NULL, &sink, &err));
    flow_batch *b = flow_batch_of("1,1,a");
    assert_ok(tarn_sink_write(sink, &b->schema, &b->array, &err));
    b = flow_batch_of("2,2,b");
    b->columns[2].schema.name = "tog";
    assert_code(tarn_sink_write(sink, &b->schema, &b->array, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "tog"));
    b->columns[2].schema.name = "tag";
    b->columns[0].validity[0] = 0;
    b->columns[0].array.null_count = 1;
    assert_code(tarn_sink_write(sink, &b->schema, &b->array, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "id"));
    b->columns[0].validity[0] = 1;
    b->columns[0].array.null_count = 0;
    b->schema.n_children = b->array.n_children = 2; /* an optional column may be missing */
    assert_ok(tarn_sink_write(sink, &b->schema, &b->array, &err));
    assert_ok(tarn_sink_commit(sink, &outcome, &err));
    assert_int_equal(outcome.rows, 2);
    tarn_sink_free(sink);
    flow_check(f->table, NULL, "1,1,a\n2,2,null\n");
}

static void test_flow_bad_batches(void **state) {
    (void)state;
    on_both(tell_bad_batches, NULL);
}

/* Several commits of one sink, and rows that were never committed. */
static void tell_checkpoints(flow_case *f) {
    tarn_sink *sink;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    options.merge_manifests = true;
    options.summary_json = "{\"job\":\"nightly\"}";
    assert_ok(tarn_sink_open(f->table, &options, &sink, &err));
    for (int i = 0; i < 5; i++) {
        flow_batch *b = flow_batch_new();
        for (int k = 0; k < 1000; k++) {
            flow_batch_add(b, i * 1000 + k, k % 7, "t");
        }
        assert_ok(tarn_sink_write(sink, &b->schema, &b->array, &err));
        if (i < 4) {
            assert_ok(tarn_sink_commit(sink, &outcome, &err));
            assert_int_equal(outcome.rows, 1000);
        }
    }
    tarn_sink_free(sink);
    assert_true(metadata_has(f, "nightly"));
    tarn_scan_options count = TARN_SCAN_OPTIONS_INIT;
    count.where = "id >= 3998";
    count.columns = "id";
    flow_check_scan(f->table, &count, "3998\n3999\n");
}

static void test_flow_checkpoints(void **state) {
    (void)state;
    on_both(tell_checkpoints, "day");
}

/* Batches whose memory goes as soon as it may, while tasks side by side still write their rows. */
static void tell_many_writers(flow_case *f) {
    tarn_sink *sink;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    options.writers = 3;
    assert_ok(tarn_sink_open(f->table, &options, &sink, &err));
    for (int i = 0; i < 60; i++) {
        flow_batch *b = flow_batch_new();
        for (int k = 0; k < 100; k++) {
            flow_batch_add(b, i * 100 + k, k % 7, k % 2 == 0 ? "even" : "odd");
        }
        assert_ok(tarn_sink_write(sink, &b->schema, &b->array, &err));
        if (i % 20 == 19) {
            assert_ok(tarn_sink_commit(sink, &outcome, &err));
            assert_int_equal(outcome.rows, 2000);
        }
    }
    flow_batch *left = flow_batch_of("1,1,a"); /* freed with the sink, never committed */
    assert_ok(tarn_sink_write(sink, &left->schema, &left->array, &err));
    tarn_sink_free(sink);
    tarn_scan_options some = TARN_SCAN_OPTIONS_INIT;
    some.where = "day = 6 and id < 100";
    flow_check_scan(f->table, &some,
                    "13,6,odd\n20,6,even\n27,6,odd\n34,6,even\n41,6,odd\n48,6,even\n55,6,odd\n"
                    "6,6,even\n62,6,even\n69,6,odd\n76,6,even\n83,6,odd\n90,6,even\n97,6,odd\n");
    some.where = "id >= 5998";
    flow_check_scan(f->table, &some, "5998,0,even\n5999,1,odd\n");
}

static void test_flow_many_writers(void **state) {
    (void)state;
    on_both(tell_many_writers, NULL);
    on_both(tell_many_writers, "day");
}

/* ---- overwrite, delete ---- */

static void tell_overwrite(flow_case *f) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    flow_append(f->table, "1,1,a;2,1,b;3,2,c;4,,d");
    options.mode = TARN_SINK_OVERWRITE;
    options.overwrite_where = "day = 1";
    assert_ok(flow_write(f->table, &options, "5,1,n", &outcome, &err));
    flow_check(f->table, NULL, "3,2,c\n4,null,d\n5,1,n\n");
    options.overwrite_where = "tag >= 'd'"; /* within files */
    assert_ok(flow_write(f->table, &options, "6,2,n", &outcome, &err));
    flow_check(f->table, NULL, "3,2,c\n6,2,n\n");
    options.overwrite_where = "id = 3";
    assert_ok(flow_write(f->table, &options, "", &outcome, &err));
    flow_check(f->table, NULL, "6,2,n\n");
    options.overwrite_where = NULL;
    assert_ok(flow_write(f->table, &options, "7,1,x;8,2,y", &outcome, &err));
    flow_check(f->table, NULL, "7,1,x\n8,2,y\n");
    options.mode = TARN_SINK_REPLACE_PARTITIONS;
    assert_ok(flow_write(f->table, &options, "9,2,z", &outcome, &err));
    flow_check(f->table, NULL, "7,1,x\n9,2,z\n");
    assert_ok(tarn_table_delete(f->table, "id = 7", NULL, &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_DONE);
    assert_int_equal(outcome.rows, 1);
    flow_check(f->table, NULL, "9,2,z\n");
    assert_ok(tarn_table_delete(f->table, "id = 7", NULL, &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_NONE);
    assert_code(tarn_table_delete(f->table, "id = ", NULL, &outcome, &err), TARN_INVALID);
    assert_ok(tarn_table_delete(f->table, "true", NULL, &outcome, &err));
    flow_check(f->table, NULL, "");
}

static void test_flow_overwrite(void **state) {
    (void)state;
    on_both(tell_overwrite, "day");
}

/* ---- rows that change ---- */

static void merge(flow_case *f, const char *rows, const tarn_merge_options *options,
                  int64_t changed, int64_t inserted) {
    struct ArrowArrayStream source;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    flow_stream(flow_batch_of(rows), &source);
    assert_ok(tarn_table_merge(f->table, &source, options, &outcome, &err));
    assert_null(source.release);
    assert_int_equal(outcome.rows, changed);
    assert_int_equal(outcome.rows_inserted, inserted);
}

static void change_rows(flow_case *f, bool marks) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_merge_options options = TARN_MERGE_OPTIONS_INIT;
    flow_append(f->table, "1,1,a;2,1,b;3,2,c;4,2,d");
    assert_ok(
        tarn_table_update(f->table, "tag = 'x', day = day * 10", "id < 3", NULL, &outcome, &err));
    assert_int_equal(outcome.state, TARN_COMMIT_DONE);
    assert_int_equal(outcome.rows, 2);
    flow_check(f->table, NULL, "1,10,x\n2,10,x\n3,2,c\n4,2,d\n");
    assert_ok(tarn_table_delete(f->table, "id = 3", NULL, &outcome, &err));
    assert_int_equal(outcome.rows, 1);
    assert_int_equal(outcome.delete_files_added, marks ? 1 : 0);
    assert_int_equal(outcome.rows_rewritten == 0, marks);
    options.key = "id";
    merge(f, "4,7,m;5,7,n", &options, 1, 1);
    flow_check(f->table, NULL, "1,10,x\n2,10,x\n4,7,m\n5,7,n\n");
    options.matched = TARN_MATCHED_DELETE;
    options.ignore_not_matched = true;
    merge(f, "5,,;6,,", &options, 1, 0);
    flow_check(f->table, NULL, "1,10,x\n2,10,x\n4,7,m\n");
    assert_code(tarn_table_update(f->table, "tag = ", "true", NULL, &outcome, &err), TARN_INVALID);
    assert_code(tarn_table_update(f->table, NULL, "true", NULL, &outcome, &err), TARN_INVALID);
    assert_ok(tarn_table_delete(f->table, "true", NULL, &outcome, &err));
    flow_check(f->table, NULL, "");
}

static void tell_changes(flow_case *f) {
    change_rows(f, false);
    alter(f, "[{\"op\":\"upgrade-format-version\",\"version\":2},{\"op\":\"set-properties\","
             "\"properties\":{\"write.delete.mode\":\"merge-on-read\","
             "\"write.update.mode\":\"merge-on-read\",\"write.merge.mode\":\"merge-on-read\"}}]");
    change_rows(f, true);
    alter(f, "[{\"op\":\"upgrade-format-version\",\"version\":3}]");
    change_rows(f, true);
}

static void test_flow_changes(void **state) {
    (void)state;
    on_both(tell_changes, NULL);
    on_both(tell_changes, "day");
}

/* ---- versions ---- */

static int64_t number_after(flow_case *f, const char *text) {
    char *json;
    assert_ok(tarn_table_metadata_json(f->table, &json, &err));
    char *at = strstr(json, text);
    assert_non_null(at);
    int64_t n = strtoll(at + strlen(text), NULL, 10);
    tarn_text_free(f->env, json);
    return n;
}

static void tell_versions(flow_case *f) {
    char edits[256];
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    tarn_sink_options sink = TARN_SINK_OPTIONS_INIT;
    flow_append(f->table, "1,1,a");
    int64_t first = number_after(f, "\"current-snapshot-id\":");
    int64_t first_ms = number_after(f, "\"last-updated-ms\":");
    alter(f, "[{\"op\":\"set-ref\",\"name\":\"v1\",\"type\":\"tag\"},"
             "{\"op\":\"set-ref\",\"name\":\"audit\",\"type\":\"branch\"},"
             "{\"op\":\"rename-column\",\"path\":\"tag\",\"name\":\"label\"}]");
    alter(f, "[{\"op\":\"rename-column\",\"path\":\"label\",\"name\":\"tag\"}]");
    flow_append(f->table, "2,1,b");
    sink.branch = "audit";
    assert_ok(flow_write(f->table, &sink, "3,1,c", &outcome, &err));
    flow_check(f->table, NULL, "1,1,a\n2,1,b\n");
    options.ref = "audit";
    flow_check_scan(f->table, &options, "1,1,a\n3,1,c\n");
    assert_ok(tarn_table_delete(f->table, "id = 1", "audit", &outcome, &err));
    flow_check_scan(f->table, &options, "3,1,c\n");
    options.ref = "v1";
    flow_check_scan(f->table, &options, "1,1,a\n");
    options.ref = NULL;
    options.snapshot_id = first;
    flow_check_scan(f->table, &options, "1,1,a\n");
    options.snapshot_id = -1;
    options.as_of_ms = first_ms;
    flow_check_scan(f->table, &options, "1,1,a\n");
    struct ArrowArrayStream stream;
    options.as_of_ms = 1;
    assert_code(tarn_table_scan(f->table, &options, &stream, NULL, &err), TARN_NOT_FOUND);
    options.as_of_ms = -1;
    options.ref = "nothing";
    assert_code(tarn_table_scan(f->table, &options, &stream, NULL, &err), TARN_NOT_FOUND);
    options.snapshot_id = first;
    assert_code(tarn_table_scan(f->table, &options, &stream, NULL, &err), TARN_INVALID);
    (void)snprintf(edits, sizeof edits, "[{\"op\":\"rollback\",\"snapshot-id\":%lld}]",
                   (long long)first);
    alter(f, edits);
    flow_check(f->table, NULL, "1,1,a\n");
    alter(f, "[{\"op\":\"remove-ref\",\"name\":\"v1\"}]");
    alter_fails(f, "[{\"op\":\"remove-ref\",\"name\":\"v1\"}]", TARN_NOT_FOUND, "v1");
}

static void test_flow_versions(void **state) {
    (void)state;
    on_both(tell_versions, NULL);
}

/* ---- alter ---- */

static void tell_alter(flow_case *f) {
    flow_append(f->table, "1,1,a;2,2,b");
    alter(f, "[{\"op\":\"add-column\",\"path\":\"more\",\"type\":\"struct<x: int, y: "
             "list<string>>\",\"doc\":\"extra\"},"
             "{\"op\":\"add-column\",\"path\":\"more.z\",\"type\":\"double\"},"
             "{\"op\":\"rename-column\",\"path\":\"day\",\"name\":\"d\"},"
             "{\"op\":\"update-type\",\"path\":\"d\",\"type\":\"long\"},"
             "{\"op\":\"move-first\",\"path\":\"tag\"}]");
    flow_check(f->table, NULL, "a,1,1,null\nb,2,2,null\n");
    alter(f, "[{\"op\":\"move-after\",\"path\":\"tag\",\"other\":\"id\"},"
             "{\"op\":\"move-before\",\"path\":\"d\",\"other\":\"tag\"},"
             "{\"op\":\"update-doc\",\"path\":\"id\",\"doc\":\"the key\"},"
             "{\"op\":\"set-identifiers\",\"columns\":[\"id\"]},"
             "{\"op\":\"add-partition-field\",\"transform\":\"bucket(4, id)\",\"name\":\"shard\"},"
             "{\"op\":\"set-sort-order\",\"text\":\"id desc\"},"
             "{\"op\":\"set-properties\",\"properties\":{\"a\":\"1\",\"b\":true}}]");
    flow_check(f->table, NULL, "1,1,a,null\n2,2,b,null\n");
    assert_true(metadata_has(f, "the key"));
    assert_true(metadata_has(f, "shard"));
    alter(f, "[{\"op\":\"rename-column\",\"path\":\"d\",\"name\":\"day\"},"
             "{\"op\":\"drop-column\",\"path\":\"more\"},"
             "{\"op\":\"rename-partition-field\",\"name\":\"shard\",\"to\":\"s2\"},"
             "{\"op\":\"remove-properties\",\"keys\":[\"a\"]}]");
    assert_false(metadata_has(f, "\"a\":\"1\""));
    assert_true(metadata_has(f, "\"b\":\"true\""));
    flow_append(f->table, "3,3,c");
    alter(f, "[{\"op\":\"drop-partition-field\",\"name\":\"s2\"},"
             "{\"op\":\"set-identifiers\",\"columns\":\"\"},"
             "{\"op\":\"make-optional\",\"path\":\"id\"}]");
    alter(f, "[{\"op\":\"set-partition-by\",\"text\":\"day\"}]");
    flow_append(f->table, "4,4,d");
    flow_check(f->table, NULL, "1,1,a\n2,2,b\n3,3,c\n4,4,d\n");
    flow_check(f->table, "day >= 3 and id <= 3", "3,3,c\n");
    alter_fails(f, "[{\"op\":\"update-type\",\"path\":\"id\",\"type\":\"int\"}]", TARN_INVALID,
                "id");
    alter_fails(f, "[{\"op\":\"drop-column\",\"path\":\"gone\"}]", TARN_INVALID, "gone");
    alter_fails(f, "[{\"op\":\"fly\"}]", TARN_INVALID, "fly");
    alter_fails(f, "[{\"op\":\"add-column\",\"path\":\"x\"}]", TARN_INVALID, "type");
    alter_fails(f, "{}", TARN_INVALID, "array");
    alter_fails(f, "[", TARN_INVALID, "edits");
}

static void test_flow_alter(void **state) {
    (void)state;
    on_both(tell_alter, NULL);
}

static void test_flow_upgrade(void **state) {
    (void)state;
    flow_case f;
    begin(&f, true, NULL);
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    options.schema_text = FLOW_SCHEMA;
    options.partition_by = "day";
    options.format_version = 1;
    assert_ok(tarn_catalog_create_table(f.catalog, "ns.old", &options, &err));
    tarn_table_free(f.table);
    assert_ok(tarn_table_load(f.catalog, "ns.old", &f.table, &err));
    flow_append(f.table, "1,1,a;2,2,b");
    alter(&f, "[{\"op\":\"upgrade-format-version\",\"version\":2}]");
    flow_append(f.table, "3,3,c");
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    assert_ok(tarn_table_delete(f.table, "day = 2", NULL, &outcome, &err));
    flow_check(f.table, NULL, "1,1,a\n3,3,c\n");
    alter_fails(&f, "[{\"op\":\"upgrade-format-version\",\"version\":1}]", TARN_INVALID, "1");
    end(&f);
}

/* ---- metadata tables ---- */

static int count_lines(flow_case *f, const char *name, const char *columns) {
    struct ArrowArrayStream stream;
    int error, n = 0;
    char message[512];
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    options.metadata_table = name;
    options.columns = columns;
    assert_ok(tarn_table_scan(f->table, &options, &stream, NULL, &err));
    char *text = flow_read(&stream, &error, message);
    if (text == NULL) {
        fail_msg("%s: %s", name, message);
        return 0;
    }
    for (char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        n++;
    }
    free(text);
    return n;
}

static void tell_metadata_tables(flow_case *f) {
    static const struct {
        const char *name;
        int rows;
    } want[] = {{"snapshots", 3},    {"history", 3},
                {"refs", 1},         {"manifests", 2},
                {"files", 2},        {"data_files", 2},
                {"delete_files", 0}, {"entries", 3},
                {"partitions", 2},   {"metadata_log_entries", 4},
                {"all_files", 3},    {"all_manifests", 5}};
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    flow_append(f->table, "1,1,a;2,2,b");
    flow_append(f->table, "3,3,c");
    assert_ok(tarn_table_delete(f->table, "day = 2", NULL, &outcome, &err));
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int n = count_lines(f, want[i].name, NULL);
        if (n != want[i].rows && strcmp(want[i].name, "all_files") != 0) {
            fail_msg("%s has %d rows, not %d", want[i].name, n, want[i].rows);
        }
    }
    struct ArrowArrayStream stream;
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    options.metadata_table = "nonsense";
    assert_true(tarn_table_scan(f->table, &options, &stream, NULL, &err) != TARN_OK);
    assert_non_null(strstr(err.message, "nonsense"));
    options.metadata_table = "files";
    options.columns = "record_count";
    options.where = "record_count = 1";
    flow_check_scan(f->table, &options, "1\n1\n");
}

static void test_flow_metadata_tables(void **state) {
    (void)state;
    on_both(tell_metadata_tables, "day");
}

/* ---- names ---- */

static void check_text(flow_case *f, char *json, const char *want) {
    assert_string_equal(json, want);
    tarn_text_free(f->env, json);
}

static void tell_names(flow_case *f) {
    char *json;
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    options.schema_text = FLOW_SCHEMA;
    assert_ok(tarn_catalog_create_namespace(f->catalog, "a", NULL, &err));
    assert_ok(tarn_catalog_create_namespace(f->catalog, "a.b", NULL, &err));
    assert_ok(tarn_catalog_list_namespaces(f->catalog, "a", &json, &err));
    check_text(f, json, "[{\"namespace\":[\"a\",\"b\"]}]");
    assert_ok(tarn_catalog_create_table(f->catalog, "a.b.`t x`", &options, &err));
    assert_code(tarn_catalog_create_table(f->catalog, "a.b.`t x`", &options, &err), TARN_CONFLICT);
    assert_ok(tarn_catalog_list_tables(f->catalog, "a.b", &json, &err));
    check_text(f, json, "[{\"namespace\":[\"a\",\"b\"],\"name\":\"t x\"}]");
    assert_code(tarn_catalog_drop_namespace(f->catalog, "a.b", &err), TARN_CONFLICT);
    tarn_code renamed = tarn_catalog_rename_table(f->catalog, "a.b.`t x`", "ns.y", &err);
    assert_code(renamed, f->sqlite ? TARN_OK : TARN_UNSUPPORTED);
    assert_ok(tarn_catalog_drop_table(f->catalog, f->sqlite ? "ns.y" : "a.b.`t x`", true, &err));
    assert_ok(tarn_catalog_drop_namespace(f->catalog, "a.b", &err));
    assert_ok(tarn_catalog_drop_namespace(f->catalog, "a", &err));
    tarn_table *gone;
    assert_code(tarn_table_load(f->catalog, "a.b.`t x`", &gone, &err), TARN_NOT_FOUND);
    assert_code(tarn_table_load(f->catalog, "ns..x", &gone, &err), TARN_INVALID);
}

static void test_flow_names(void **state) {
    (void)state;
    on_both(tell_names, NULL);
}

static void test_flow_bad_catalogs(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_catalog_handle *catalog;
    assert_code(tarn_catalog_open(env, "nonsense", NULL, &catalog, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_true(tarn_catalog_open(env, "sqlite:/nowhere/at/all.db", NULL, &catalog, NULL) !=
                TARN_OK);
    test_env_done(env);
}

/* ---- the end ---- */

static int files_below(const char *path) {
    struct stat st;
    int n = 0;
    if (lstat(path, &st) != 0) {
        return 0;
    }
    if (!S_ISDIR(st.st_mode)) {
        return 1;
    }
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char below[4096];
            int len = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            assert_true(len > 0 && len < (int)sizeof below);
            n += files_below(below);
        }
    }
    (void)closedir(dir);
    return n;
}

static void tell_purge(flow_case *f) {
    char warehouse[96];
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    flow_append(f->table, "1,1,a;2,2,b;3,2,c");
    assert_ok(tarn_table_delete(f->table, "id = 2", NULL, &outcome, &err));
    alter(f, "[{\"op\":\"add-column\",\"path\":\"x\",\"type\":\"int\"}]");
    (void)snprintf(warehouse, sizeof warehouse, "%s/warehouse", f->folder);
    assert_true(files_below(warehouse) > 8);
    /* a sink that was never committed leaves nothing either */
    tarn_sink *sink;
    assert_ok(tarn_sink_open(f->table, NULL, &sink, &err));
    flow_batch *b = flow_batch_of("9,9,z");
    assert_ok(tarn_sink_write(sink, &b->schema, &b->array, &err));
    tarn_sink_free(sink);
    assert_ok(tarn_catalog_drop_table(f->catalog, "ns.t", true, &err));
    assert_int_equal(files_below(warehouse), 0);
    assert_code(tarn_catalog_drop_table(f->catalog, "ns.t", true, &err), TARN_NOT_FOUND);
    assert_code(tarn_table_refresh(f->table, &err), TARN_NOT_FOUND);
}

static void test_flow_purge(void **state) {
    (void)state;
    on_both(tell_purge, "day");
}

/* A table opened by its folder is read-only; a stream outlives its handle. */
static void tell_open_path(flow_case *f) {
    char path[128];
    tarn_table *table;
    struct ArrowArrayStream stream;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_sink *sink;
    int error;
    char message[512];
    flow_append(f->table, "1,1,a");
    (void)snprintf(path, sizeof path, "%s/warehouse/ns/t", f->folder);
    assert_ok(tarn_table_open_path(f->env, path, NULL, &table, &err));
    assert_code(tarn_sink_open(table, NULL, &sink, &err), TARN_UNSUPPORTED);
    assert_code(tarn_table_delete(table, "true", NULL, &outcome, &err), TARN_UNSUPPORTED);
    assert_code(tarn_table_alter(table, "[]", &outcome, &err), TARN_UNSUPPORTED);
    assert_ok(tarn_table_scan(table, NULL, &stream, NULL, &err));
    tarn_table_free(table);
    char *text = flow_read(&stream, &error, message);
    assert_non_null(text);
    assert_string_equal(text, "1,1,a\n");
    free(text);
    assert_code(tarn_table_open_path(f->env, "/nowhere/at/all", NULL, &table, &err),
                TARN_NOT_FOUND);
}

static void test_flow_open_path(void **state) {
    (void)state;
    on_both(tell_open_path, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_rows),        cmocka_unit_test(test_flow_bad_batches),
        cmocka_unit_test(test_flow_checkpoints), cmocka_unit_test(test_flow_many_writers),
        cmocka_unit_test(test_flow_overwrite),   cmocka_unit_test(test_flow_changes),
        cmocka_unit_test(test_flow_versions),    cmocka_unit_test(test_flow_alter),
        cmocka_unit_test(test_flow_upgrade),     cmocka_unit_test(test_flow_metadata_tables),
        cmocka_unit_test(test_flow_names),       cmocka_unit_test(test_flow_bad_catalogs),
        cmocka_unit_test(test_flow_purge),       cmocka_unit_test(test_flow_open_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
