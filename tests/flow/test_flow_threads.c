/* Goal: any number of writers may append to one table at once, and every acknowledged row is there
 * once.
 * Method: two envs with several threads each, every thread with its own sink, commit after commit;
 * readers scan meanwhile and must see whole commits; at the end the rows are counted one by one.
 * Overwriters of one row a day must leave one row a day. */
#include "flow.h"

#include <pthread.h>
#include <stdatomic.h>

#define ENVS      2
#define THREADS   3
#define COMMITS   6
#define PER_BATCH 10

typedef struct shared_state {
    char folder[64];
    bool sqlite;
    atomic_bool stop;
} shared_state;

typedef struct writer_thread {
    shared_state *shared;
    tarn_catalog_handle *catalog;
    pthread_t thread;
    int number;
    bool acknowledged[COMMITS];
    char failure[1200];
} writer_thread;

static tarn_code write_one(writer_thread *w, tarn_sink *sink, int commit, tarn_error *err) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    flow_batch *b = flow_batch_new();
    for (int k = 0; k < PER_BATCH; k++) {
        flow_batch_add(b, (w->number * COMMITS + commit) * PER_BATCH + k, commit % 3, "x");
    }
    tarn_code code = tarn_sink_write(sink, &b->schema, &b->array, err);
    if (code != TARN_OK) {
        b->array.release(&b->array);
        return code;
    }
    code = tarn_sink_commit(sink, &outcome, err);
    w->acknowledged[commit] = code == TARN_OK && outcome.state == TARN_COMMIT_DONE;
    return code == TARN_CONFLICT ? TARN_OK : code;
}

static void *run_writer(void *arg) {
    writer_thread *w = arg;
    tarn_error err = TARN_ERROR_INIT;
    tarn_table *table = NULL;
    tarn_sink *sink = NULL;
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    options.merge_manifests = w->number % 2 == 0;
    tarn_code code = tarn_table_load(w->catalog, "ns.t", &table, &err);
    if (code == TARN_OK) {
        code = tarn_sink_open(table, &options, &sink, &err);
    }
    for (int i = 0; i < COMMITS && code == TARN_OK; i++) {
        code = write_one(w, sink, i, &err);
    }
    if (code != TARN_OK) {
        (void)snprintf(w->failure, sizeof w->failure, "%s: %s", tarn_code_name(code), err.message);
    }
    tarn_sink_free(sink);
    tarn_table_free(table);
    return NULL;
}

typedef struct reader_thread {
    shared_state *shared;
    tarn_catalog_handle *catalog;
    pthread_t thread;
    int scans;
    char failure[1200];
} reader_thread;

/* Whole commits only: a multiple of PER_BATCH rows, never fewer than before. */
static void *run_reader(void *arg) {
    reader_thread *r = arg;
    tarn_error err = TARN_ERROR_INIT;
    tarn_table *table = NULL;
    int64_t before = 0;
    if (tarn_table_load(r->catalog, "ns.t", &table, &err) != TARN_OK) {
        (void)snprintf(r->failure, sizeof r->failure, "%s", err.message);
        return NULL;
    }
    while (!atomic_load(&r->shared->stop) && r->failure[0] == '\0') {
        struct ArrowArrayStream stream;
        int error = 0;
        char message[512] = "";
        int64_t rows = 0;
        char *text = NULL;
        if (tarn_table_refresh(table, &err) == TARN_OK &&
            tarn_table_scan(table, NULL, &stream, NULL, &err) == TARN_OK) {
            text = flow_read(&stream, &error, message);
        }
        for (char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++) {
            rows++;
        }
        if (text == NULL || rows % PER_BATCH != 0 || rows < before) {
            (void)snprintf(r->failure, sizeof r->failure, "%lld rows after %lld: %s %s",
                           (long long)rows, (long long)before, err.message, message);
        }
        free(text);
        before = rows;
        r->scans++;
    }
    tarn_table_free(table);
    return NULL;
}

static void make_table(shared_state *shared, tarn_catalog_handle *catalog) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    (void)shared;
    options.schema_text = FLOW_SCHEMA;
    options.partition_by = "day";
    options.properties_json = "{\"commit.retry.num-retries\":\"200\",\"commit.retry.min-wait-ms\":"
                              "\"1\",\"commit.retry.max-wait-ms\":\"20\","
                              "\"commit.manifest.min-count-to-merge\":\"4\"}";
    assert_ok(tarn_catalog_create_namespace(catalog, "ns", NULL, &err));
    assert_ok(tarn_catalog_create_table(catalog, "ns.t", &options, &err));
}

static void check_rows(tarn_catalog_handle *catalog, const writer_thread *writers) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table *table;
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    int seen[ENVS * THREADS * COMMITS * PER_BATCH] = {0};
    options.columns = "id";
    assert_ok(tarn_table_load(catalog, "ns.t", &table, &err));
    assert_ok(tarn_table_scan(table, &options, &stream, NULL, &err));
    for (;;) {
        assert_int_equal(stream.get_next(&stream, &array), 0);
        if (array.release == NULL) {
            break;
        }
        const struct ArrowArray *ids = array.children[0];
        for (int64_t i = 0; i < ids->length; i++) {
            seen[((const int64_t *)ids->buffers[1])[ids->offset + i]]++;
        }
        array.release(&array);
    }
    stream.release(&stream);
    for (int w = 0; w < ENVS * THREADS; w++) {
        for (int c = 0; c < COMMITS; c++) {
            for (int k = 0; k < PER_BATCH; k++) {
                assert_int_equal(seen[(w * COMMITS + c) * PER_BATCH + k],
                                 writers[w].acknowledged[c] ? 1 : 0);
            }
        }
    }
    tarn_table_free(table);
}

static void race(bool sqlite) {
    tarn_error err = TARN_ERROR_INIT;
    shared_state shared;
    tarn_env *envs[ENVS];
    tarn_catalog_handle *catalogs[ENVS];
    writer_thread writers[ENVS * THREADS];
    reader_thread reader;
    int done = 0;
    memset(writers, 0, sizeof writers);
    memset(&reader, 0, sizeof reader);
    memset(&shared, 0, sizeof shared);
    shared.sqlite = sqlite;
    test_tempdir(shared.folder);
    for (int e = 0; e < ENVS; e++) {
        envs[e] = test_env();
        assert_ok(flow_connect(envs[e], shared.folder, sqlite, &catalogs[e], &err));
    }
    make_table(&shared, catalogs[0]);
    for (int w = 0; w < ENVS * THREADS; w++) {
        writers[w].shared = &shared;
        writers[w].catalog = catalogs[w % ENVS];
        writers[w].number = w;
        assert_int_equal(pthread_create(&writers[w].thread, NULL, run_writer, &writers[w]), 0);
    }
    reader.shared = &shared;
    reader.catalog = catalogs[1];
    assert_int_equal(pthread_create(&reader.thread, NULL, run_reader, &reader), 0);
    for (int w = 0; w < ENVS * THREADS; w++) {
        assert_int_equal(pthread_join(writers[w].thread, NULL), 0);
        assert_string_equal(writers[w].failure, "");
        for (int c = 0; c < COMMITS; c++) {
            done += writers[w].acknowledged[c];
        }
    }
    atomic_store(&shared.stop, true);
    assert_int_equal(pthread_join(reader.thread, NULL), 0);
    assert_string_equal(reader.failure, "");
    assert_int_equal(done, ENVS * THREADS * COMMITS);
    check_rows(catalogs[0], writers);
    for (int e = 0; e < ENVS; e++) {
        tarn_catalog_close(catalogs[e]);
        test_env_done(envs[e]);
    }
    test_tempdir_done(shared.folder);
}

/* ---- overwriters ---- */

/* Replaces the only row of each day by its own, again and again. */
static void *run_overwriter(void *arg) {
    writer_thread *w = arg;
    tarn_error err = TARN_ERROR_INIT;
    tarn_table *table = NULL;
    tarn_code code = tarn_table_load(w->catalog, "ns.t", &table, &err);
    for (int i = 0; i < COMMITS && code == TARN_OK; i++) {
        char where[32];
        char row[32];
        tarn_outcome outcome = TARN_OUTCOME_INIT;
        tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
        (void)snprintf(where, sizeof where, "day = %d", i % 3);
        (void)snprintf(row, sizeof row, "%d,%d,w%d", w->number * COMMITS + i, i % 3, w->number);
        options.mode = i % 2 == 0 ? TARN_SINK_OVERWRITE : TARN_SINK_REPLACE_PARTITIONS;
        options.overwrite_where = where;
        code = flow_write(table, &options, row, &outcome, &err);
        w->acknowledged[i] = code == TARN_OK && outcome.state == TARN_COMMIT_DONE;
        code = code == TARN_CONFLICT ? TARN_OK : code;
    }
    if (code != TARN_OK) {
        (void)snprintf(w->failure, sizeof w->failure, "%s: %s", tarn_code_name(code), err.message);
    }
    tarn_table_free(table);
    return NULL;
}

/* One row a day is left, and it is one that somebody was told was written. */
static void check_overwritten(tarn_catalog_handle *catalog, const writer_thread *writers) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table *table;
    assert_ok(tarn_table_load(catalog, "ns.t", &table, &err));
    for (int day = 0; day < 3; day++) {
        char where[32];
        struct ArrowArrayStream stream;
        int error;
        char message[512];
        tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
        (void)snprintf(where, sizeof where, "day = %d", day);
        options.where = where;
        options.columns = "id";
        assert_ok(tarn_table_scan(table, &options, &stream, NULL, &err));
        char *text = flow_read(&stream, &error, message);
        assert_non_null(text);
        char *after;
        long id = strtol(text, &after, 10);
        assert_string_equal(after, "\n");
        assert_true(id >= 0 && id < ENVS * THREADS * COMMITS);
        assert_true(writers[id / COMMITS].acknowledged[id % COMMITS]);
        free(text);
    }
    tarn_table_free(table);
}

static void overwrite_race(bool sqlite) {
    tarn_error err = TARN_ERROR_INIT;
    shared_state shared;
    tarn_env *env = test_env();
    tarn_catalog_handle *catalog;
    tarn_table *table;
    writer_thread writers[ENVS * THREADS];
    memset(writers, 0, sizeof writers);
    memset(&shared, 0, sizeof shared);
    test_tempdir(shared.folder);
    assert_ok(flow_connect(env, shared.folder, sqlite, &catalog, &err));
    make_table(&shared, catalog);
    assert_ok(tarn_table_load(catalog, "ns.t", &table, &err));
    flow_append(table, "1000,0,first;1001,1,first;1002,2,first");
    tarn_table_free(table);
    for (int w = 0; w < 4; w++) {
        writers[w].catalog = catalog;
        writers[w].number = w;
        assert_int_equal(pthread_create(&writers[w].thread, NULL, run_overwriter, &writers[w]), 0);
    }
    for (int w = 0; w < 4; w++) {
        assert_int_equal(pthread_join(writers[w].thread, NULL), 0);
        assert_string_equal(writers[w].failure, "");
    }
    check_overwritten(catalog, writers);
    tarn_catalog_close(catalog);
    test_env_done(env);
    test_tempdir_done(shared.folder);
}

static void test_threads_overwrite(void **state) {
    (void)state;
    overwrite_race(false);
    overwrite_race(true);
}

static void test_threads_dir(void **state) {
    (void)state;
    race(false);
}

static void test_threads_sqlite(void **state) {
    (void)state;
    race(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_dir),
                                       cmocka_unit_test(test_threads_sqlite),
                                       cmocka_unit_test(test_threads_overwrite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
