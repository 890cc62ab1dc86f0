/* Goal: reading with 10 million row deletes stays within the memory that the env may take, or says
 * that it can't. Method: a file with 10 million deleted positions, spread so that they are as large
 * in memory as they are together on disk at their worst, as position deletes and as a vector, is
 * scanned by envs with limits: one that has room, and one that has half of what is needed. */
#include "table_rows.h"

#include "write/files/delete_writer.h"

static tarn_error err;

#define DELETES 10000000
#define STEP    400 /* so that no part of the set is dense */

static void delete_rows(table_case *c, const tarn_file *data, delete_kind kind) {
    enum { AT_ONCE = 4000 };
    static int64_t positions[AT_ONCE];
    delete_writer_options options;
    delete_writer *writer = NULL;
    tarn_arena arena;
    write_result written;
    commit_request request;
    commit_outcome outcome;
    memset(&options, 0, sizeof options);
    memset(&written, 0, sizeof written);
    memset(&request, 0, sizeof request);
    arena_init(&arena, c->env);
    tarn_table_version *version = case_load(c);
    options.metadata = version->metadata;
    options.kind = kind;
    assert_ok(delete_writer_new(c->env, c->catalog->store, &options, &writer, &err));
    for (int64_t i = 0; i < DELETES; i += AT_ONCE) {
        for (int64_t k = 0; k < AT_ONCE; k++) {
            positions[k] = (i + k) * STEP;
        }
        assert_ok(delete_writer_add(writer, data, positions, AT_ONCE, &err));
    }
    assert_ok(delete_writer_close(writer, &arena, &written, &err));
    delete_writer_free(writer);
    request.kind = COMMIT_ROW_DELTA;
    request.added_deletes = written.deletes;
    request.n_added_deletes = written.n_deletes;
    request.from_snapshot_id = version->metadata->current_snapshot_id;
    assert_ok(commit_run(c->env, c->catalog, &c->ident, version, &request, &outcome, &err));
    table_version_release(outcome.version);
    table_version_release(version);
    arena_release(&arena);
}

static void make_table(table_case *c, delete_kind kind) {
    scan_options options = case_scan_options();
    tarn_plan *plan = NULL;
    case_table(c, kind == DELETE_VECTOR ? 3 : 2, "id long", NULL, NULL);
    case_append(c, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    tarn_table_version *version = case_load(c);
    options.metadata = version->metadata;
    assert_ok(plan_new(c->env, c->catalog->store, &options, &plan, &err));
    assert_int_equal(plan->n_tasks, 1);
    delete_rows(c, &plan->tasks[0].file, kind);
    plan_free(plan);
    table_version_release(version);
}

/* The table's rows with so much memory; what of it was taken at most. */
static tarn_code read_within(const table_case *made, uint64_t memory, tarn_buf *out,
                             uint64_t *peak) {
    tarn_env_options limits = TARN_ENV_OPTIONS_INIT;
    scan_options options = case_scan_options();
    tarn_env *env = NULL;
    table_case c = *made;
    limits.memory_bytes = memory;
    limits.threads = 2;
    assert_ok(tarn_env_new(&limits, &env, &err));
    c.env = env;
    assert_ok(case_connect(&c, &err));
    tarn_code code = case_scan(&c, &options, NULL, out, NULL, &err);
    *peak = tarn_env_memory_peak(env);
    catalog_close(c.catalog);
    test_env_done(env);
    return code;
}

static void read_deletes(delete_kind kind) {
    tarn_env *env = test_env();
    table_case c;
    tarn_buf out;
    uint64_t peak = 0;
    buf_init(&out, env, 0);
    case_open(&c, env, CASE_DIR_FILE);
    make_table(&c, kind);
    assert_ok(read_within(&c, 128u << 20, &out, &peak));
    assert_true(str_is(buf_str(&out), "{\"id\":2}\n{\"id\":3}\n"));
    assert_in_range(peak, 2 * DELETES, 128u << 20); /* the set itself is counted */
    buf_reset(&out);
    assert_code(read_within(&c, 16u << 20, &out, &peak), TARN_NOMEM);
    assert_in_range(peak, 1, 16u << 20);
    buf_release(&out);
    case_done(&c);
    test_env_done(env);
}

static void positions_within_memory(void **state) {
    (void)state;
    read_deletes(DELETE_POSITION);
}

static void vectors_within_memory(void **state) {
    (void)state;
    read_deletes(DELETE_VECTOR);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(positions_within_memory),
                                       cmocka_unit_test(vectors_within_memory)};
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
