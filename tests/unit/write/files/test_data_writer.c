/* Goal: rows become finished files, each in one result; what is not handed out does not stay.
 * Method: the store is listed after each story: rolling, more partitions than open files, a small
 * memory budget, bad rows, failing memory, and every store call failing in turn, before and after
 * its effect (B64). */
#include "fail_alloc.h"
#include "unit/table/rows.h"

#include "base/map.h"
#include "write/files/data_writer.h"

static tarn_error err;

typedef struct writer_case {
    tarn_env *env;
    tarn_arena arena;
    store_fault_plan plan;
    tarn_store *store;
    const tarn_metadata *metadata;
    data_writer_options options;
} writer_case;

static tarn_code open_case(writer_case *c, tarn_env *env, const char *schema, const char *by,
                           const char *format, const char *target, tarn_error *e) {
    tarn_code code = TARN_OK;
    metadata_new_options options;
    tarn_store *memory = NULL;
    const tarn_property properties[] = {{STR("write.format.default"), str_of(format)},
                                        {STR("write.target-file-size-bytes"), str_of(target)}};
    memset(c, 0, sizeof *c);
    memset(&options, 0, sizeof options);
    c->env = env;
    arena_init(&c->arena, env);
    options.location = STR("/t");
    options.partition_by = str_of(by);
    options.properties = (tarn_properties){2, properties};
    TRY(store_memory_new(env, &memory, e));
    TRY(store_fault_new(memory, &c->plan, &c->store, e));
    memory = NULL;
    TRY(type_from_text(&c->arena, str_of(schema), &options.root, e));
    TRY(metadata_new(&c->arena, &options, &c->metadata, e));
    c->options.metadata = c->metadata;
done:
    store_close(memory);
    return code;
}

static void close_case(writer_case *c) {
    store_close(c->store);
    arena_release(&c->arena);
}

static tarn_code count_object(void *ctx, tarn_str path, const store_stat_info *info,
                              tarn_error *e) {
    (void)path;
    (void)info;
    (void)e;
    ++*(int *)ctx;
    return TARN_OK;
}

static int objects(writer_case *c) {
    int n = 0;
    c->plan.fail_at = 0;
    assert_ok(store_list(c->store, STR("/t"), count_object, &n, &err));
    return n;
}

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* rows of (p int, v long, s string): p is part, or random below -part. */
static tarn_code make_rows(writer_case *c, int32_t part, int rows, uint64_t *seed, tarn_batch *out,
                           tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_builder b;
    TRY(builder_init(&b, c->env, metadata_schema(c->metadata)->root, e));
    for (int i = 0; i < rows; i++) {
        char text[64];
        int64_t v = (int64_t)next_random(seed) * (int64_t)next_random(seed);
        int32_t p = part >= 0 ? part : (int32_t)(next_random(seed) % (uint64_t)-part);
        int n = snprintf(text, sizeof text, "row %lld of %d", (long long)v, (int)p);
        TRY(builder_fixed(&b.children[0], &p, e));
        TRY(builder_fixed(&b.children[1], &v, e));
        TRY(builder_bytes(&b.children[2], str_make(text, (size_t)n), e));
        TRY(builder_close(&b, e));
    }
    TRY(builder_finish_batch(&b, out, e));
done:
    builder_release(&b);
    return code;
}

static tarn_code write_rows(writer_case *c, data_writer *w, int32_t part, int rows, uint64_t *seed,
                            tarn_error *e) {
    tarn_batch batch;
    memset(&batch, 0, sizeof batch);
    tarn_code code = make_rows(c, part, rows, seed, &batch, e);
    if (code == TARN_OK) {
        code = data_writer_write(w, &batch, e);
    }
    batch_release(&batch);
    return code;
}

#define SCHEMA "struct<p: int, v: long, s: string>"

/* Every file of a result is there with its size, once. */
static int64_t check_result(writer_case *c, const write_result *result) {
    tarn_map seen;
    int64_t rows = 0;
    map_init(&seen, &c->arena);
    for (int32_t i = 0; i < result->n_files; i++) {
        const tarn_file *f = &result->files[i];
        store_stat_info info;
        bool added;
        assert_non_null(map_put(&seen, f->path, &added));
        assert_true(added);
        assert_ok(store_stat(c->store, f->path, &info, &err));
        assert_int_equal(info.size_bytes, f->size_bytes);
        assert_true(f->record_count > 0);
        rows += f->record_count;
    }
    assert_int_equal(rows, result->rows);
    return rows;
}

static void rolling(const char *format) {
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 1;
    assert_ok(open_case(&c, env, SCHEMA, NULL, format, "100000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 20; i++) {
        assert_ok(write_rows(&c, w, 1, 2000, &seed, &err));
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 40000);
    assert_true(result.n_files >= 5);
    for (int32_t i = 0; i < result.n_files; i++) {
        assert_true(result.files[i].size_bytes < 250000);
        assert_true(str_ends_with(result.files[i].path, str_of(format)));
    }
    assert_int_equal(objects(&c), result.n_files);
    /* the next checkpoint */
    write_result second;
    assert_ok(write_rows(&c, w, 1, 10, &seed, &err));
    assert_ok(data_writer_close(w, &c.arena, &second, &err));
    assert_int_equal(second.n_files, 1);
    assert_int_equal(check_result(&c, &second), 10);
    assert_int_equal(objects(&c), result.n_files + 1);
    /* an empty one */
    assert_ok(data_writer_close(w, &c.arena, &second, &err));
    assert_int_equal(second.n_files, 0);
    write_result_remove(c.store, &result);
    assert_int_equal(objects(&c), 1);
    data_writer_free(w);
    assert_int_equal(objects(&c), 1);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_rolls(void **state) {
    (void)state;
    rolling("parquet");
    rolling("avro");
}

static void test_writer_max_open(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 2;
    assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "100000000", &err));
    c.options.max_open = 3;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int round = 0; round < 2; round++) {
        for (int32_t p = 0; p < 6; p++) {
            assert_ok(write_rows(&c, w, p, 4096, &seed, &err));
        }
        assert_true(objects(&c) >= 3); /* the first ones were finished to make room */
    }
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 2 * 6 * 4096);
    assert_int_equal(result.n_files, 12);
    for (int32_t i = 0; i < result.n_files; i++) {
        assert_int_equal(result.files[i].n_partition, 1);
        assert_false(result.files[i].partition[0].is_null);
    }
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void budget(const char *format, size_t memory_bytes) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    tarn_env *env = NULL;
    writer_case c;
    data_writer *w;
    write_result result;
    uint64_t seed = 3;
    options.threads = 1;
    assert_ok(tarn_env_new(&options, &env, &err));
    assert_ok(open_case(&c, env, SCHEMA, "p", format, "100000000", &err));
    c.options.memory_bytes = memory_bytes;
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int round = 0; round < 40; round++) {
        assert_ok(write_rows(&c, w, -200, 1000, &seed, &err));
    }
    assert_true(objects(&c) > 0);
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(check_result(&c, &result), 40000);
    assert_true(result.n_files > 200);
    data_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_memory_budget(void **state) {
    (void)state;
    budget("parquet", 300000);
    budget("avro", 300000);
}

static void test_writer_required(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    tarn_batch batch;
    write_result result;
    assert_ok(
        open_case(&c, env, "struct<a: int, b: string not null>", "a", "parquet", "1000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    const tarn_type *root = metadata_schema(c.metadata)->root;
    assert_ok(rows_read(env, &c.arena, root, "{\"a\":1,\"b\":\"x\"}", &batch, &err));
    assert_ok(data_writer_write(w, &batch, &err));
    batch_release(&batch);
    assert_ok(rows_read(env, &c.arena, root, "{\"a\":1,\"b\":\"x\"}\n{\"a\":1,\"b\":null}", &batch,
                        &err));
    assert_code(data_writer_write(w, &batch, &err), TARN_INVALID);
    assert_non_null(strstr(err.message, "column b "));
    err_reset(&err);
    batch_release(&batch);
    assert_ok(data_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.rows, 1);
    data_writer_free(w);
    assert_int_equal(objects(&c), 1);
    close_case(&c);
    test_env_done(env);
}

static void test_writer_options(void **state) {
    (void)state;
    static const struct {
        const char *format, *target, *word;
        tarn_code code;
    } bad[] = {
        {"orc", "1000", "orc", TARN_UNSUPPORTED},
        {"parquet", "big", "write.target-file-size-bytes", TARN_INVALID},
    };
    tarn_env *env = test_env();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        writer_case c;
        data_writer *w;
        assert_ok(open_case(&c, env, SCHEMA, NULL, bad[i].format, bad[i].target, &err));
        assert_code(data_writer_new(env, c.store, &c.options, &w, &err), bad[i].code);
        assert_non_null(strstr(err.message, bad[i].word));
        err_reset(&err);
        close_case(&c);
    }
    test_env_done(env);
}

/* Freed before close: finished files and begun ones are gone. */
static void test_writer_abandoned(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    data_writer *w;
    uint64_t seed = 4;
    assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "50000", &err));
    assert_ok(data_writer_new(env, c.store, &c.options, &w, &err));
    for (int i = 0; i < 6; i++) {
        assert_ok(write_rows(&c, w, -2, 8000, &seed, &err));
    }
    assert_true(objects(&c) > 0);
    data_writer_free(w);
    assert_int_equal(objects(&c), 0);
    close_case(&c);
    test_env_done(env);
}

/* A story that rolls, fans out and closes twice. */
static tarn_code tell(writer_case *c, data_writer **w, write_result results[2], tarn_error *e) {
    tarn_code code = TARN_OK;
    uint64_t seed = 5;
    c->options.max_open = 2;
    TRY(data_writer_new(c->env, c->store, &c->options, w, e));
    TRY(write_rows(c, *w, 1, 3000, &seed, e));
    TRY(write_rows(c, *w, -3, 500, &seed, e));
    TRY(write_rows(c, *w, 2, 3000, &seed, e));
    TRY(data_writer_close(*w, &c->arena, &results[0], e));
    TRY(write_rows(c, *w, -3, 300, &seed, e));
    TRY(data_writer_close(*w, &c->arena, &results[1], e));
done:
    return code;
}

static bool fault_story(tarn_env *env, const char *format, int64_t k, bool after) {
    writer_case c;
    data_writer *w = NULL;
    write_result results[2];
    tarn_error e = TARN_ERROR_INIT;
    memset(results, 0, sizeof results);
    assert_ok(open_case(&c, env, SCHEMA, "p", format, "20000", &err));
    c.plan.fail_at = k;
    c.plan.after = after;
    tarn_code code = tell(&c, &w, results, &e);
    bool clean = code == TARN_OK && c.plan.calls < k;
    c.plan.fail_at = 0;
    if (code != TARN_OK) {
        write_result again;
        tarn_batch batch;
        uint64_t seed = 6;
        assert_code(code, TARN_IO);
        assert_true(e.message[0] != '\0');
        /* it stays failed: nothing is handed out later */
        assert_ok(make_rows(&c, 1, 10, &seed, &batch, &err));
        assert_code(data_writer_write(w, &batch, &e), TARN_IO);
        batch_release(&batch);
        assert_code(data_writer_close(w, &c.arena, &again, &e), TARN_IO);
    }
    data_writer_free(w);
    assert_int_equal(objects(&c), results[0].n_files + results[1].n_files);
    (void)check_result(&c, &results[0]);
    (void)check_result(&c, &results[1]);
    close_case(&c);
    return clean;
}

static void test_writer_store_faults(void **state) {
    (void)state;
    tarn_env *env = test_env();
    for (int kind = 0; kind < 4; kind++) {
        for (int64_t k = 1; !fault_story(env, kind < 2 ? "parquet" : "avro", k, kind % 2); k++) {
            assert_true(k < 1000);
        }
    }
    test_env_done(env);
}

static void test_writer_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        writer_case c;
        data_writer *w = NULL;
        write_result results[2];
        tarn_error e = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, 0);
        memset(results, 0, sizeof results);
        assert_ok(open_case(&c, env, SCHEMA, "p", "parquet", "20000", &err));
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        tarn_code code = tell(&c, &w, results, &e);
        bool failed = plan.failed;
        plan.fail_at = 0;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        data_writer_free(w);
        assert_int_equal(objects(&c), results[0].n_files + results[1].n_files);
        close_case(&c);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
        k += k > 300 ? 1 + k % 17 : 0;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_rolls),         cmocka_unit_test(test_writer_max_open),
        cmocka_unit_test(test_writer_memory_budget), cmocka_unit_test(test_writer_required),
        cmocka_unit_test(test_writer_options),       cmocka_unit_test(test_writer_abandoned),
        cmocka_unit_test(test_writer_store_faults),  cmocka_unit_test(test_writer_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
