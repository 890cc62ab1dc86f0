/* Goal: the metadata table position_deletes shows the deleted rows that a delete file repeats, and
 * null where it repeats none. Method: a delete file with rows, as its schema was when it was
 * written, is made by hand (no writer of ours repeats rows); the table has a column more by then.
 */
#include "table_rows.h"

#include "format/parquet/parquet_write.h"

static tarn_error err;

/* A committed delete file of these lines. */
static void add_deletes(table_case *c, const char *name, const tarn_type *type, const char *lines) {
    parquet_writer *writer = NULL;
    io_sink *sink = NULL;
    tarn_arena arena;
    tarn_batch batch;
    tarn_file file;
    commit_request request;
    commit_outcome outcome;
    memset(&batch, 0, sizeof batch);
    memset(&request, 0, sizeof request);
    memset(&file, 0, sizeof file);
    file.sort_order_id = -1;
    file.first_row_id = -1;
    file.content_offset = file.content_size = -1;
    arena_init(&arena, c->env);
    tarn_table_version *version = case_load(c);
    char *path =
        arena_printf(&arena, "%.*s/data/%s.parquet", STR_ARG(version->metadata->location), name);
    assert_ok(rows_read(c->env, &arena, type, lines, &batch, &err));
    assert_ok(store_create(c->catalog->store, str_of(path), STORE_CREATE, &sink, &err));
    assert_ok(parquet_writer_new(c->env, type, NULL, sink, &writer, &err));
    assert_ok(parquet_writer_write(writer, &batch, &err));
    assert_ok(parquet_writer_close(writer, &arena, &file, &err));
    parquet_writer_free(writer);
    file.content = TARN_CONTENT_POSITION_DELETES;
    file.path = str_of(path);
    request.kind = COMMIT_ROW_DELTA;
    request.added_deletes = &file;
    request.n_added_deletes = 1;
    request.from_snapshot_id = version->metadata->current_snapshot_id;
    assert_ok(commit_run(c->env, c->catalog, &c->ident, version, &request, &outcome, &err));
    table_version_release(outcome.version);
    batch_release(&batch);
    table_version_release(version);
    arena_release(&arena);
}

static const tarn_type *delete_type(tarn_arena *arena, const tarn_type *row) {
    tarn_field *fields = ARENA_ARRAY(arena, tarn_field, 3);
    assert_non_null(fields);
    fields[0] = (tarn_field){.id = 2147483546, .required = true, .name = STR("file_path")};
    fields[0].type = type_primitive(TARN_STRING);
    fields[1] = (tarn_field){.id = 2147483545, .required = true, .name = STR("pos")};
    fields[1].type = type_primitive(TARN_LONG);
    fields[2] = (tarn_field){.id = 2147483544, .name = STR("row"), .type = row};
    return type_struct(arena, fields, row != NULL ? 3 : 2);
}

static void show(table_case *c, tarn_buf *out) {
    static const tarn_str columns[] = {{"pos", 3}, {"row", 3}};
    scan_options options = case_scan_options();
    metadata_table *table = NULL;
    tarn_batch batch;
    tarn_table_version *version = case_load(c);
    memset(&batch, 0, sizeof batch);
    options.metadata = version->metadata;
    options.columns = columns;
    options.n_columns = 2;
    assert_ok(metadata_table_open(c->env, c->catalog->store, version->metadata, STR("here"),
                                  STR("position_deletes"), &options, &table, &err));
    do {
        batch_release(&batch);
        assert_ok(metadata_table_next(table, &batch, &err));
        if (batch_rows(&batch) > 0) {
            assert_ok(rows_write(&batch, out, &err));
        }
    } while (batch_rows(&batch) > 0);
    batch_release(&batch);
    metadata_table_close(table);
    table_version_release(version);
}

static void rows_are_shown(void **state) {
    (void)state;
    tarn_env *env = test_env();
    table_case c;
    tarn_buf out;
    buf_init(&out, env, 0);
    case_open(&c, env, CASE_DIR_MEMORY);
    case_table(&c, 2, "id long not null, s struct<x: int not null>, v string", NULL, NULL);
    case_append(&c, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    tarn_table_version *version = case_load(&c);
    const tarn_type *root = metadata_schema(version->metadata)->root;
    /* of before v came */
    const tarn_type *older = type_struct(&c.arena, root->fields, 2);
    add_deletes(&c, "with", delete_type(&c.arena, older),
                "{\"file_path\":\"f\",\"pos\":0,\"row\":{\"id\":1,\"s\":{\"x\":7}}}\n"
                "{\"file_path\":\"f\",\"pos\":1,\"row\":null}\n"
                "{\"file_path\":\"f\",\"pos\":2,\"row\":{\"id\":3,\"s\":null}}\n");
    add_deletes(&c, "without", delete_type(&c.arena, NULL), "{\"file_path\":\"f\",\"pos\":5}\n");
    show(&c, &out);
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_string_equal(case_sorted(&c.arena, str_make(out.data, out.len - 1)),
                        "{\"pos\":0,\"row\":{\"id\":1,\"s\":{\"x\":7},\"v\":null}}\n"
                        "{\"pos\":1,\"row\":null}\n"
                        "{\"pos\":2,\"row\":{\"id\":3,\"s\":null,\"v\":null}}\n"
                        "{\"pos\":5,\"row\":null}\n");
    table_version_release(version);
    buf_release(&out);
    case_done(&c);
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_shown)};
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
