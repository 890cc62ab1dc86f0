/* Goal: metadata tables have the columns and rows that Iceberg 1.10 shows.
 * Method: tables of Spark's below the fixtures, read with the room alone; what is counted was seen
 * in Spark. */
#include "unit/table/rows.h"

#include "read/scan.h"

static tarn_error err;

typedef struct shown {
    tarn_env *env;
    tarn_store *store;
    tarn_arena arena;
    const tarn_metadata *metadata;
    metadata_table *table;
} shown;

static void show(shown *s, const char *metadata_path, const char *name) {
    tarn_store *files;
    tarn_buf bytes;
    char path[512];
    memset(s, 0, sizeof *s);
    s->env = test_env();
    arena_init(&s->arena, s->env);
    buf_init(&bytes, s->env, 0);
    assert_ok(store_file_new(s->env, false, &files, &err));
    assert_ok(
        store_moved_new(files, STR("/tarn-fixtures"), STR(TARN_TEST_FIXTURES), &s->store, &err));
    (void)snprintf(path, sizeof path, "/tarn-fixtures/iceberg/spark/%s", metadata_path);
    assert_ok(store_get(s->store, str_of(path), 1 << 20, &bytes, &err));
    assert_ok(metadata_parse(&s->arena, arena_str(&s->arena, buf_str(&bytes)), metadata_path,
                             &s->metadata, &err));
    buf_release(&bytes);
    scan_options options;
    memset(&options, 0, sizeof options);
    options.metadata = s->metadata;
    options.snapshot_id = TARN_NO_SNAPSHOT;
    options.limit = -1;
    assert_ok(metadata_table_open(s->env, s->store, s->metadata, STR("here"), str_of(name),
                                  &options, &s->table, &err));
}

static void hide(shown *s) {
    metadata_table_close(s->table);
    store_close(s->store);
    arena_release(&s->arena);
    test_env_done(s->env);
}

static int64_t count_rows(shown *s) {
    int64_t rows = 0;
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    do {
        batch_release(&batch);
        assert_ok(metadata_table_next(s->table, &batch, &err));
        rows += batch_rows(&batch);
    } while (batch_rows(&batch) > 0);
    batch_release(&batch);
    return rows;
}

/* Position of a column; -1: none. */
static int find_column(const tarn_type *type, const char *name) {
    for (int32_t i = 0; i < type->n_fields; i++) {
        if (str_is(type->fields[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

static void test_metadata_all_manifests(void **state) {
    (void)state;
    shown s;
    show(&s, "branches_tags/metadata/v9.metadata.json", "manifests");
    assert_int_equal(find_column(metadata_table_type(s.table), "reference_snapshot_id"), -1);
    hide(&s);
    show(&s, "branches_tags/metadata/v9.metadata.json", "all_manifests");
    assert_int_equal(find_column(metadata_table_type(s.table), "reference_snapshot_id"), 12);
    assert_int_equal(count_rows(&s), 1 + 2 + 3 + 4 + 4);
    hide(&s);
}

static void test_metadata_partitions(void **state) {
    (void)state;
    shown s;
    show(&s, "branches_tags/metadata/v9.metadata.json", "partitions");
    assert_int_equal(find_column(metadata_table_type(s.table), "spec_id"), -1);
    assert_int_equal(find_column(metadata_table_type(s.table), "partition"), -1);
    assert_int_equal(count_rows(&s), 1);
    hide(&s);
    show(&s, "partition_evolution_v1/metadata/v6.metadata.json", "partitions");
    assert_int_equal(find_column(metadata_table_type(s.table), "spec_id"), 1);
    assert_int_equal(count_rows(&s), 17);
    hide(&s);
}

static void test_metadata_readable_metrics(void **state) {
    (void)state;
    shown s;
    show(&s, "schema_evolution_nested/metadata/v9.metadata.json", "files");
    const tarn_type *type = metadata_table_type(s.table);
    const tarn_type *metrics = type->fields[type->n_fields - 1].type;
    assert_true(find_column(metrics, "l.element.c.d") >= 0);
    assert_true(find_column(metrics, "m.value.v") >= 0);
    for (int32_t i = 1; i < metrics->n_fields; i++) {
        assert_true(str_cmp(metrics->fields[i - 1].name, metrics->fields[i].name) < 0);
    }
    hide(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata_all_manifests),
        cmocka_unit_test(test_metadata_partitions),
        cmocka_unit_test(test_metadata_readable_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
