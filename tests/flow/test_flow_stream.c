/* Goal: a checkpoint that became durable and could not be committed goes into the table before what
 * is written after it, through the public interface: with deletes by position the next write sees
 * to it. Method: the table's metadata folder is out of the way while a checkpoint is made. */
#include "flow.h"

#include <sys/stat.h>
#include <unistd.h>

static tarn_error err;

typedef struct stream_case {
    tarn_env *env;
    char folder[64];
    char state[96], metadata[128], away[128];
    tarn_catalog_handle *catalog;
    tarn_table *table;
    tarn_sink *sink;
} stream_case;

static void open_sink(stream_case *c, const char *deletes) {
    tarn_sink_options options = TARN_SINK_OPTIONS_INIT;
    options.state_dir = c->state;
    options.upsert = deletes != NULL;
    options.key = deletes != NULL ? "id" : NULL;
    options.deletes = deletes;
    assert_ok(tarn_sink_open(c->table, &options, &c->sink, &err));
}

static void begin(stream_case *c, const char *deletes) {
    tarn_create_options options = TARN_CREATE_OPTIONS_INIT;
    memset(c, 0, sizeof *c);
    c->env = test_env();
    test_tempdir(c->folder);
    (void)snprintf(c->state, sizeof c->state, "%s/state", c->folder);
    assert_ok(flow_connect(c->env, c->folder, false, &c->catalog, &err));
    assert_ok(tarn_catalog_create_namespace(c->catalog, "ns", NULL, &err));
    options.schema_text = FLOW_SCHEMA;
    options.format_version = deletes != NULL && strcmp(deletes, "vector") == 0 ? 3 : 2;
    assert_ok(tarn_catalog_create_table(c->catalog, "ns.t", &options, &err));
    assert_ok(tarn_table_load(c->catalog, "ns.t", &c->table, &err));
    (void)snprintf(c->metadata, sizeof c->metadata, "%s/warehouse/ns/t/metadata", c->folder);
    (void)snprintf(c->away, sizeof c->away, "%s/away", c->folder);
    open_sink(c, deletes);
}

static void end(stream_case *c) {
    tarn_sink_free(c->sink);
    tarn_table_free(c->table);
    tarn_catalog_close(c->catalog);
    test_tempdir_done(c->folder);
    test_env_done(c->env);
}

/* A plain file lies where the folder was: nothing can be committed. */
static void set_aside(const stream_case *c) {
    assert_int_equal(rename(c->metadata, c->away), 0);
    FILE *file = fopen(c->metadata, "wb");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void put_back(const stream_case *c) {
    assert_int_equal(unlink(c->metadata), 0);
    assert_int_equal(rename(c->away, c->metadata), 0);
}

static tarn_code put(stream_case *c, const char *rows) {
    flow_batch *b = flow_batch_of(rows);
    tarn_code code = tarn_sink_write(c->sink, &b->schema, &b->array, &err);
    if (code != TARN_OK) {
        b->array.release(&b->array);
    }
    return code;
}

static void check_offsets(const stream_case *c, const char *want) {
    char *text = NULL;
    assert_ok(tarn_sink_offsets(c->sink, &text, &err));
    assert_string_equal(text, want);
    tarn_text_free(c->env, text);
}

static void test_flow_stream_commit_again(void **state) {
    (void)state;
    static const char *const kinds[] = {NULL, "equality", "position", "vector"};
    for (int k = 0; k < 4; k++) {
        stream_case c;
        tarn_outcome outcome = TARN_OUTCOME_INIT;
        bool indexed = k > 1;
        begin(&c, kinds[k]);
        assert_ok(put(&c, "1,1,a;2,1,a"));
        assert_ok(tarn_sink_checkpoint(c.sink, "\"one\"", &outcome, &err));
        assert_ok(put(&c, k > 0 ? "1,2,b" : "3,2,b"));
        set_aside(&c);
        assert_true(tarn_sink_checkpoint(c.sink, "\"two\"", &outcome, &err) != TARN_OK);
        assert_int_equal(outcome.state, TARN_COMMIT_NONE);
        check_offsets(&c, "\"one\"");
        if (indexed) { /* still out of the way: the next rows are not taken */
            assert_true(put(&c, "1,3,c") != TARN_OK);
            assert_true(put(&c, "1,3,c") != TARN_OK);
        }
        put_back(&c);
        assert_ok(put(&c, k > 0 ? "1,3,c;4,3,c" : "4,3,c"));
        if (indexed) { /* it went before them */
            check_offsets(&c, "\"two\"");
        }
        assert_ok(tarn_sink_checkpoint(c.sink, "\"three\"", &outcome, &err));
        assert_int_equal(outcome.state, TARN_COMMIT_DONE);
        check_offsets(&c, "\"three\"");
        flow_check(c.table, NULL, k > 0 ? "1,3,c\n2,1,a\n4,3,c\n" : "1,1,a\n2,1,a\n3,2,b\n4,3,c\n");
        tarn_sink_free(c.sink);
        open_sink(&c, kinds[k]);
        check_offsets(&c, "\"three\"");
        end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow_stream_commit_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
