/* Goal: running out of memory anywhere is NOMEM, and nothing is left behind.
 * Method: a whole life of metadata (make, evolve, commit, plan, write and read manifests) with the
 * k-th allocation failing, for every k until none does. */
#include "fixture.h"

#include "iceberg/evaluate.h"
#include "iceberg/evolve.h"
#include "iceberg/summary.h"

typedef struct life {
    tarn_env *env;
    tarn_arena arena;
    tarn_buf manifest, list;
    tarn_error err;
    const tarn_metadata *m;
    tarn_manifest written;
} life;

#define STEP(expr)                                                                                 \
    do {                                                                                           \
        tarn_code step_ = (expr);                                                                  \
        if (step_ != TARN_OK) {                                                                    \
            return step_;                                                                          \
        }                                                                                          \
    } while (0)

static tarn_code make_table(life *l) {
    const tarn_type *root;
    tarn_property mapping = {STR("schema.name-mapping.default"),
                             STR("[{\"field-id\":1,\"names\":[\"a\"]}]")};
    metadata_new_options options = {.partition_by = STR("bucket(4, s), day(ts)"),
                                    .location = STR("/t"),
                                    .properties = {1, &mapping}};
    STEP(type_from_text(&l->arena,
                        STR("struct<a: int, s: string, ts: timestamp, p: struct<x: int>>"), &root,
                        &l->err));
    options.root = root;
    return metadata_new(&l->arena, &options, &l->m, &l->err);
}

static tarn_code evolve_table(life *l) {
    tarn_change_set set;
    tarn_edit edits[] = {
        {.kind = EVOLVE_ADD_COLUMN, .path = STR("p.y"), .type = type_primitive(TARN_LONG)},
        {.kind = EVOLVE_RENAME_COLUMN, .path = STR("a"), .new_name = STR("b")},
        {.kind = EVOLVE_MOVE_FIRST, .path = STR("s")},
        {.kind = EVOLVE_ADD_PARTITION_FIELD, .text = STR("truncate(3, b)")},
        {.kind = EVOLVE_SET_SORT_ORDER, .text = STR("s desc")}};
    STEP(evolve_changes(&l->arena, l->m, edits, 5, &set, &l->err));
    tarn_buf json;
    json_writer w;
    json_value *parsed;
    buf_init(&json, l->env, 0);
    json_begin(&w, &json, false, &l->err);
    tarn_code code = change_set_put_json(&set, &w, &l->err);
    if (code == TARN_OK) {
        code = json_parse(&l->arena, buf_str(&json), "set", &parsed, &l->err);
    }
    buf_release(&json);
    STEP(code);
    STEP(change_set_from_json(&l->arena, parsed, &set, &l->err));
    return change_apply(&l->arena, l->m, &set, 5, &l->m, &l->err);
}

static tarn_code write_files(life *l) {
    manifest_writer_options options = {.format_version = 2,
                                       .metadata = l->m,
                                       .schema = metadata_schema(l->m),
                                       .spec = metadata_spec(l->m),
                                       .snapshot_id = 7};
    static const metric_bound bound = {1, {"abcd", 4}};
    static const metric_count count = {1, 4};
    tarn_value tuple[] = {value_i32(type_primitive(TARN_INT), 3),
                          value_null(type_primitive(TARN_DATE)),
                          value_i32(type_primitive(TARN_INT), 9)};
    tarn_entry e = {.status = TARN_ENTRY_ADDED,
                    .snapshot_id = -1,
                    .sequence_number = -1,
                    .file_sequence_number = -1,
                    .file = {.path = STR("/t/f"),
                             .spec_id = 1,
                             .n_partition = 3,
                             .partition = tuple,
                             .record_count = 1,
                             .n_lower = 1,
                             .lower = &bound,
                             .n_value_counts = 1,
                             .value_counts = &count,
                             .key_metadata = STR("k")}};
    manifest_writer *w = NULL;
    io_sink *sink = NULL;
    STEP(io_sink_memory(l->env, &l->manifest, &sink, &l->err));
    tarn_code code = manifest_writer_new(l->env, &options, sink, STR("/t/m"), &w, &l->err);
    if (code != TARN_OK) {
        sink->abort(sink);
        return code;
    }
    for (int i = 0; i < 3 && code == TARN_OK; i++) {
        code = manifest_writer_add(w, &e, &l->err);
    }
    if (code != TARN_OK) {
        manifest_writer_abort(w);
        return code;
    }
    STEP(manifest_writer_close(w, &l->arena, &l->written, &l->err));
    manifest_list_options list = {2, 7, -1, 1, -1, STR_NULL, {0}};
    STEP(io_sink_memory(l->env, &l->list, &sink, &l->err));
    code = manifest_list_write(l->env, &list, &l->written, 1, sink, &l->err);
    if (code != TARN_OK) {
        sink->abort(sink);
        return code;
    }
    return sink->finish(sink, &l->err);
}

static tarn_code commit_files(life *l) {
    summary_builder b = {.changed_partitions = 1};
    tarn_snapshot *s = ARENA_NEW(&l->arena, tarn_snapshot);
    if (s == NULL) {
        return TARN_NOMEM;
    }
    s->snapshot_id = 7;
    s->parent_id = TARN_NO_SNAPSHOT;
    s->sequence_number = 1;
    s->manifest_list = STR("/t/l");
    s->first_row_id = s->added_rows = -1;
    STEP(summary_make(&l->arena, "append", &b, NULL, NULL, &s->summary, &l->err));
    tarn_change changes[] = {
        {.kind = CHANGE_ADD_SNAPSHOT, .snapshot = s},
        {.kind = CHANGE_SET_SNAPSHOT_REF, .ref = {STR("main"), 7, false, -1, -1, -1}}};
    tarn_change_set set = {0, NULL, 2, changes};
    STEP(change_apply(&l->arena, l->m, &set, 9, &l->m, &l->err));
    return change_log_previous(&l->arena, l->m, STR("/t/v1"), 4, &l->m, NULL, NULL, &l->err);
}

static tarn_code plan_files(life *l) {
    const tarn_manifest *list;
    const tarn_expr *filter, *residual;
    tarn_evaluator e;
    manifest_entries entries;
    io_source *source = NULL;
    int32_t n;
    STEP(io_source_memory(l->env, "list", l->list.data, l->list.len, &source, &l->err));
    tarn_code code = manifest_list_read(&l->arena, source, &list, &n, &l->err);
    source->close(source);
    STEP(code);
    STEP(io_source_memory(l->env, "manifest", l->manifest.data, l->manifest.len, &source, &l->err));
    code = manifest_read(&l->arena, source, l->m, &list[0], NULL, &entries, &l->err);
    source->close(source);
    STEP(code);
    assert_int_equal(entries.count, 3);
    STEP(expr_parse(&l->arena, STR("b > 3 and s in ('x', 'y', 'z')"), &filter, &l->err));
    STEP(expr_bind(&l->arena, filter, metadata_schema(l->m)->root, true, &filter, &l->err));
    STEP(evaluator_init(&l->arena, l->m, metadata_spec(l->m), filter, &e, &l->err));
    (void)evaluator_manifest(&e, &list[0]);
    return evaluator_residual(&l->arena, &e, entries.items[0].file.partition, &residual, &l->err);
}

static tarn_code live(life *l) {
    STEP(make_table(l));
    STEP(evolve_table(l));
    STEP(write_files(l));
    STEP(commit_files(l));
    return plan_files(l);
}

static void no_memory(void **state) {
    (void)state;
    for (int64_t k = 0; k < 5000; k++) {
        faulty f;
        life l;
        memset(&l, 0, sizeof l);
        l.env = faulty_env(&f);
        l.err = (tarn_error)TARN_ERROR_INIT;
        arena_init(&l.arena, l.env);
        buf_init(&l.manifest, l.env, 0);
        buf_init(&l.list, l.env, 0);
        f.left = k;
        tarn_code code = live(&l);
        bool spared = f.left >= 0;
        f.left = INT64_MAX;
        buf_release(&l.manifest);
        buf_release(&l.list);
        arena_release(&l.arena);
        test_env_done(l.env);
        if (code == TARN_OK && spared) {
            assert_true(k > 50);
            return;
        }
        if (code != TARN_OK && code != TARN_NOMEM) {
            fail_msg("allocation %d: %s %s", (int)k, tarn_code_name(code), l.err.message);
        }
    }
    fail();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
