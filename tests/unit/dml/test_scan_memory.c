/* Goal: a scan's memory is bounded by its window, not by the table, and so is a writer's.
 * Method: a table of 128 MB of rows in files of 4 MB, written and scanned by envs of their own,
 * whose peaks are looked at. */
#include "table_rows.h"

static tarn_error err;

#define FILES     32
#define ROWS      65536
#define ROW_BYTES 64 /* a long and a text of 56 bytes */

static void fill(tarn_builder *b, int64_t first) {
    char text[64];
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t id = first + i;
        (void)snprintf(text, sizeof text, "%020lld and more of what no dictionary holds",
                       (long long)(id * 2654435761));
        assert_ok(builder_fixed(&b->children[0], &id, &err));
        assert_ok(builder_bytes(&b->children[1], str_make(text, 52), &err));
        assert_ok(builder_close(b, &err));
    }
}

static void write_files(table_case *c, const tarn_table_version *version, tarn_arena *arena) {
    data_writer_options options;
    data_writer *writer = NULL;
    tarn_builder rows;
    memset(&options, 0, sizeof options);
    options.metadata = version->metadata;
    options.memory_bytes = 8 << 20;
    assert_ok(data_writer_new(c->env, c->catalog->store, &options, &writer, &err));
    assert_ok(builder_init(&rows, c->env, metadata_schema(version->metadata)->root, &err));
    for (int64_t i = 0; i < FILES; i++) {
        tarn_batch batch;
        fill(&rows, i * ROWS);
        assert_ok(builder_finish_batch(&rows, &batch, &err));
        assert_ok(data_writer_write(writer, &batch, &err));
        batch_release(&batch);
    }
    builder_release(&rows);
    write_result written;
    commit_request request;
    commit_outcome outcome;
    memset(&request, 0, sizeof request);
    assert_ok(data_writer_close(writer, arena, &written, &err));
    assert_true(written.n_files > FILES / 4);
    data_writer_free(writer);
    request.kind = COMMIT_FAST_APPEND;
    request.added = written.files;
    request.n_added = written.n_files;
    request.from_snapshot_id = TARN_NO_SNAPSHOT;
    assert_ok(commit_run(c->env, c->catalog, &c->ident, NULL, &request, &outcome, &err));
    table_version_release(outcome.version);
}

static void scan_all(tarn_env *env, const char *warehouse) {
    tarn_store *store = NULL;
    tarn_catalog *catalog = NULL;
    tarn_table_version *version = NULL;
    tarn_plan *plan = NULL;
    tarn_scan *scan = NULL;
    tarn_batch batch;
    int64_t rows = 0;
    static const tarn_str level = {"ns", 2};
    const tarn_ident ident = {1, &level, STR("t")};
    scan_options options;
    memset(&options, 0, sizeof options);
    assert_ok(store_file_new(env, false, &store, &err));
    assert_ok(catalog_dir_new(env, store, str_of(warehouse), &catalog, &err));
    assert_ok(catalog_load(catalog, &ident, &version, &err));
    options.metadata = version->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    assert_ok(plan_new(env, catalog->store, &options, &plan, &err));
    assert_ok(scan_open(plan, &scan, &err));
    bool more = true;
    while (more) {
        assert_ok(scan_next(scan, &batch, &err));
        more = batch_rows(&batch) > 0;
        rows += batch_rows(&batch);
        batch_release(&batch);
    }
    assert_int_equal(rows, FILES * ROWS);
    scan_close(scan);
    plan_free(plan);
    table_version_release(version);
    catalog_close(catalog);
}

static void memory_is_bounded(void **state) {
    (void)state;
    static const char *const properties[] = {"write.target-file-size-bytes", "2097152",
                                             "write.parquet.compression-codec", "snappy", NULL};
    const uint64_t table_bytes = (uint64_t)FILES * ROWS * ROW_BYTES;
    tarn_env_options two = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = test_env();
    tarn_env *reader = NULL;
    table_case c;
    tarn_arena arena;
    case_open(&c, env, CASE_DIR_FILE);
    case_table(&c, 2, "id long, text string", NULL, properties);
    tarn_table_version *version = case_load(&c);
    arena_init(&arena, env);
    write_files(&c, version, &arena);
    assert_true(tarn_env_memory_peak(env) < table_bytes / 3);
    two.threads = 2;
    assert_ok(tarn_env_new(&two, &reader, &err));
    scan_all(reader, c.warehouse);
    assert_true(tarn_env_memory_peak(reader) < table_bytes / 2);
    test_env_done(reader);
    arena_release(&arena);
    table_version_release(version);
    case_done(&c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_bounded)};
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
