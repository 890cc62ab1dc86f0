/* Makes a table, appends two rows, reads them back: docs/c-api.md goes through it. Build: see
 * examples/CMakeLists.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tarn/tarn.h>

static void check(tarn_code code, const tarn_error *err) {
    if (code != TARN_OK) {
        fprintf(stderr, "%s: %s %s\n", tarn_code_name(code), err->message, err->detail);
        exit(1);
    }
}

/* ---- two rows as an Arrow struct array of (id: int64, name: utf8); all memory is static, so
 * release only marks it ---- */

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}
static void release_array(struct ArrowArray *array) {
    array->release = NULL;
}

static void make_rows(struct ArrowSchema *schema, struct ArrowArray *array) {
    static const int64_t ids[] = {1, 2};
    static const int32_t offsets[] = {0, 5, 8};
    static const void *id_buffers[] = {NULL, ids};
    static const void *name_buffers[] = {NULL, offsets, "larchfir"};
    static const void *struct_buffers[] = {NULL};
    static struct ArrowSchema id_field, name_field;
    static struct ArrowSchema *fields[] = {&id_field, &name_field};
    static struct ArrowArray id_array, name_array;
    static struct ArrowArray *columns[] = {&id_array, &name_array};
    id_field = (struct ArrowSchema){
        .format = "l", .name = "id", .flags = ARROW_FLAG_NULLABLE, .release = release_schema};
    name_field = (struct ArrowSchema){
        .format = "u", .name = "name", .flags = ARROW_FLAG_NULLABLE, .release = release_schema};
    *schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = 2, .children = fields, .release = release_schema};
    id_array = (struct ArrowArray){
        .length = 2, .n_buffers = 2, .buffers = id_buffers, .release = release_array};
    name_array = (struct ArrowArray){
        .length = 2, .n_buffers = 3, .buffers = name_buffers, .release = release_array};
    *array = (struct ArrowArray){.length = 2,
                                 .n_buffers = 1,
                                 .buffers = struct_buffers,
                                 .n_children = 2,
                                 .children = columns,
                                 .release = release_array};
}

static void append(tarn_table *table) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_sink *sink = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    make_rows(&schema, &array);
    check(tarn_sink_open(table, NULL, &sink, &err), &err);
    check(tarn_sink_write(sink, &schema, &array, &err), &err);
    check(tarn_sink_commit(sink, &outcome, &err), &err);
    printf("snapshot %lld: %lld rows in %d files\n", (long long)outcome.snapshot_id,
           (long long)outcome.rows, outcome.files_added);
    tarn_sink_free(sink);
}

static void read_back(tarn_table *table) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_scan_options options = TARN_SCAN_OPTIONS_INIT;
    struct ArrowArrayStream stream;
    struct ArrowArray batch;
    options.where = "id > 1";
    check(tarn_table_scan(table, &options, &stream, NULL, &err), &err);
    while (stream.get_next(&stream, &batch) == 0 && batch.release != NULL) {
        printf("%lld rows with id > 1\n", (long long)batch.length);
        batch.release(&batch);
    }
    stream.release(&stream);
}

int main(int argc, char **argv) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_env *env = NULL;
    tarn_catalog_handle *catalog = NULL;
    tarn_table *table = NULL;
    tarn_create_options create = TARN_CREATE_OPTIONS_INIT;
    const char *uri = argc > 1 ? argv[1] : "sqlite:./example.db";
    create.schema_text = "id long, name string";
    check(tarn_env_new(NULL, &env, &err), &err);
    check(tarn_catalog_open(env, uri, NULL, &catalog, &err), &err);
    tarn_code code = tarn_catalog_create_namespace(catalog, "forest", NULL, &err);
    check(code == TARN_CONFLICT ? TARN_OK : code, &err); /* there already is fine */
    code = tarn_catalog_create_table(catalog, "forest.trees", &create, &err);
    check(code == TARN_CONFLICT ? TARN_OK : code, &err);
    check(tarn_table_load(catalog, "forest.trees", &table, &err), &err);
    append(table);
    read_back(table);
    tarn_table_free(table);
    tarn_catalog_close(catalog);
    tarn_env_free(env);
    return 0;
}
