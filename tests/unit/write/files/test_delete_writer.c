/* Goal: row deletes become delete files as the specification wants them, each in one result; what
 * is not handed out does not stay. Method: files read back by the readers of this tree, entries
 * held against them; other kinds, formats, granularities; every store call failing in turn, before
 * and after its effect (B64), and every allocation of the env. */
#include "writer_case.h"

#include "format/puffin/puffin.h"
#include "write/files/delete_writer.h"

#define SCHEMA "struct<p: int, v: long>"
#define LONG_PATH                                                                                  \
    "/t/data/p=1/a-name-that-is-longer-than-the-sixteen-characters-of-a-cut-bound-0001.parquet"

static const table_shape plain = {.schema = SCHEMA, .by = "p", .version = 2};

static delete_writer *new_writer(writer_case *c, delete_kind kind) {
    delete_writer *w = NULL;
    const delete_writer_options options = {
        .metadata = c->metadata, .kind = kind, .operation_id = "op"};
    assert_ok(delete_writer_new(c->env, c->store, &options, &w, &err));
    return w;
}

/* A data file in partition p. */
static tarn_file data_file(const char *path, int32_t p) {
    static tarn_value partitions[10];
    partitions[p] = value_i32(type_primitive(TARN_INT), p);
    return (tarn_file){.path = str_of(path), .n_partition = 1, .partition = &partitions[p]};
}

static tarn_code add(delete_writer *w, const char *path, int32_t p, int64_t first, int64_t last,
                     tarn_error *e) {
    tarn_file file = data_file(path, p);
    tarn_code code = TARN_OK;
    for (int64_t i = last; code == TARN_OK && i >= first;
         i--) { /* falling, and one of them twice */
        code = delete_writer_add(w, &file, &i, 1, e);
    }
    return code == TARN_OK ? delete_writer_add(w, &file, &first, 1, e) : code;
}

/* The rows of a position delete file, checked against its entry. */
static void check_positions(writer_case *c, const tarn_file *f, const char *want) {
    tarn_buf text;
    int64_t lines = 0;
    read_back(c, f, &text);
    for (size_t i = 0; i < text.len; i++) {
        lines += text.data[i] == '\n';
    }
    assert_int_equal(f->record_count, lines);
    assert_int_equal(f->content, TARN_CONTENT_POSITION_DELETES);
    assert_int_equal(f->sort_order_id, -1);
    assert_int_equal(f->content_offset, -1);
    assert_int_equal(f->n_partition, 1);
    if (want != NULL) {
        assert_string_equal((const char *)text.data, want);
    }
    buf_release(&text);
}

static void check_bounds(const tarn_file *f, const char *lower, const char *upper) {
    tarn_str bound;
    assert_true(metric_find_bound(f->lower, f->n_lower, 2147483546, &bound));
    assert_true(str_is(bound, lower));
    assert_true(metric_find_bound(f->upper, f->n_upper, 2147483546, &bound));
    assert_true(str_is(bound, upper));
}

static void by_file(const char *format) {
    tarn_env *env = test_env();
    writer_case c;
    write_result result = {0};
    table_shape shape = plain;
    shape.properties[0] = (tarn_property){STR("write.delete.format.default"), str_of(format)};
    shape.n_properties = 1;
    assert_ok(case_open(&c, env, &shape, &err));
    delete_writer *w = new_writer(&c, DELETE_POSITION);
    assert_ok(add(w, "b", 1, 5, 6, &err));
    assert_ok(add(w, LONG_PATH, 1, 0, 2, &err));
    assert_ok(add(w, "a", 2, 7, 7, &err));
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_files, 0);
    assert_int_equal(result.n_deletes, 3);
    assert_int_equal(result.deleted_rows, 6);
    assert_int_equal(result.n_referenced, 3);
    assert_int_equal(result.n_removed_deletes, 0);
    check_positions(&c, &result.deletes[0],
                    "{\"file_path\":\"" LONG_PATH "\",\"pos\":0}\n{\"file_path\":\"" LONG_PATH
                    "\",\"pos\":1}\n{\"file_path\":\"" LONG_PATH "\",\"pos\":2}\n");
    check_bounds(&result.deletes[0], LONG_PATH, LONG_PATH);
    assert_true(str_is(result.deletes[0].referenced_data_file, LONG_PATH));
    assert_true(str_starts_with(result.deletes[0].path, STR("/t/data/p=1/00000-0-op-00001-del")));
    assert_true(str_ends_with(result.deletes[0].path, str_of(format)));
    check_positions(&c, &result.deletes[1],
                    "{\"file_path\":\"b\",\"pos\":5}\n{\"file_path\":\"b\",\"pos\":6}\n");
    check_positions(&c, &result.deletes[2], "{\"file_path\":\"a\",\"pos\":7}\n");
    assert_int_equal(result.deletes[2].partition[0].as.i32, 2);
    assert_int_equal(objects(&c), 3);
    /* the next checkpoint, added to what is there; then an empty one */
    assert_ok(add(w, "b", 1, 9, 9, &err));
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_deletes, 4);
    assert_int_equal(result.n_referenced, 4);
    check_positions(&c, &result.deletes[3], "{\"file_path\":\"b\",\"pos\":9}\n");
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_deletes, 4);
    assert_int_equal(objects(&c), 4);
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_positions_by_file(void **state) {
    (void)state;
    by_file("parquet");
    by_file("avro");
}

static void by_partition(const char *format) {
    tarn_env *env = test_env();
    writer_case c;
    write_result result = {0};
    table_shape shape = plain;
    shape.properties[0] = (tarn_property){STR("write.format.default"), str_of(format)};
    shape.properties[1] = (tarn_property){STR("write.delete.granularity"), STR("partition")};
    shape.n_properties = 2;
    assert_ok(case_open(&c, env, &shape, &err));
    delete_writer *w = new_writer(&c, DELETE_POSITION);
    assert_ok(add(w, "z", 1, 5, 5, &err));
    assert_ok(add(w, "m", 2, 0, 0, &err));
    assert_ok(add(w, "b", 1, 3, 4, &err));
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_deletes, 2);
    check_positions(&c, &result.deletes[0],
                    "{\"file_path\":\"b\",\"pos\":3}\n{\"file_path\":\"b\",\"pos\":4}\n"
                    "{\"file_path\":\"z\",\"pos\":5}\n");
    check_bounds(&result.deletes[0], "b", "z");
    assert_null(result.deletes[0].referenced_data_file.data);
    check_positions(&c, &result.deletes[1], "{\"file_path\":\"m\",\"pos\":0}\n");
    assert_true(str_is(result.deletes[1].referenced_data_file, "m"));
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_positions_by_partition(void **state) {
    (void)state;
    by_partition("parquet");
    by_partition("avro");
}

static void test_positions_roll(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    write_result result = {0};
    table_shape shape = plain;
    shape.properties[0] = (tarn_property){STR("write.delete.target-file-size-bytes"), STR("1000")};
    shape.n_properties = 1;
    assert_ok(case_open(&c, env, &shape, &err));
    delete_writer *w = new_writer(&c, DELETE_POSITION);
    assert_ok(add(w, "b", 1, 0, 49999, &err));
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_true(result.n_deletes > 1);
    assert_int_equal(result.deleted_rows, 50000);
    for (int32_t i = 0; i < result.n_deletes; i++) {
        check_positions(&c, &result.deletes[i], NULL);
        assert_true(str_is(result.deletes[i].referenced_data_file, "b"));
    }
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

/* ---- vectors ---- */

/* A vector's positions are first to last, and its Puffin file says so too. */
static void check_vector(writer_case *c, const tarn_file *f, const int64_t *want, int64_t n) {
    tarn_buf bytes;
    io_source *source = NULL;
    puffin_footer footer;
    tarn_positions *p = NULL;
    int64_t got[16];
    buf_init(&bytes, c->env, 0);
    assert_ok(store_get(c->store, f->path, 1 << 20, &bytes, &err));
    assert_int_equal(bytes.len, f->size_bytes);
    assert_int_equal(f->format, TARN_FORMAT_PUFFIN);
    assert_int_equal(f->content, TARN_CONTENT_POSITION_DELETES);
    assert_int_equal(f->record_count, n);
    assert_ok(io_source_memory(c->env, "file", bytes.data, bytes.len, &source, &err));
    assert_ok(puffin_read_footer(&c->arena, source, &footer, &err));
    source->close(source);
    int32_t found = 0;
    for (int32_t i = 0; i < footer.n_blobs; i++) {
        const puffin_blob *blob = &footer.blobs[i];
        if (blob->offset == f->content_offset) {
            found++;
            assert_int_equal(blob->length, f->content_size);
            assert_true(str_is(blob->properties[0].key, "referenced-data-file"));
            assert_true(str_eq(blob->properties[0].value, f->referenced_data_file));
        }
    }
    assert_int_equal(found, 1);
    tarn_str blob = str_make(bytes.data + f->content_offset, (size_t)f->content_size);
    assert_ok(vector_decode(c->env, blob, n, &p, &err));
    positions_list(p, got);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    positions_free(p);
    buf_release(&bytes);
}

static void test_vectors(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    write_result result = {0};
    table_shape shape = plain;
    shape.version = 3;
    shape.properties[0] = (tarn_property){STR("write.format.default"), STR("avro")};
    shape.n_properties = 1;
    assert_ok(case_open(&c, env, &shape, &err));
    delete_writer *w = new_writer(&c, DELETE_VECTOR);
    tarn_file z = data_file("z", 2);
    tarn_file before_file = data_file("before.puffin", 2);
    const tarn_entry before_entry = {.snapshot_id = 7, .sequence_number = 3, .file = before_file};
    const tarn_entry *replaced[] = {&before_entry};
    const int64_t before_list[] = {1, INT64_C(5000000000)};
    tarn_positions *before = NULL;
    assert_ok(positions_new(env, &before, &err));
    assert_ok(positions_add(before, before_list, 2, &err));
    assert_ok(add(w, "z", 2, 3, 4, &err));
    assert_ok(add(w, "b", 1, 0, 1, &err));
    assert_ok(delete_writer_merge(w, &z, before, replaced, 1, &err));
    positions_free(before);
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_deletes, 2);
    assert_int_equal(objects(&c), 1);
    assert_int_equal(result.deleted_rows, 6);
    const int64_t first[] = {0, 1};
    const int64_t second[] = {1, 3, 4, INT64_C(5000000000)};
    assert_true(str_is(result.deletes[0].referenced_data_file, "b"));
    check_vector(&c, &result.deletes[0], first, 2);
    check_vector(&c, &result.deletes[1], second, 4);
    assert_true(str_is(result.deletes[0].path, "/t/data/00000-0-op-00001-deletes.puffin"));
    assert_int_equal(result.deletes[1].partition[0].as.i32, 2);
    assert_int_equal(result.n_removed_deletes, 1);
    assert_int_equal(result.removed_deletes[0].sequence_number, 3);
    assert_true(str_is(result.removed_deletes[0].file.path, "before.puffin"));
    write_result_remove(c.store, &result);
    assert_int_equal(objects(&c), 0);
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_vectors_roll(void **state) {
    (void)state;
    tarn_env *env = test_env();
    writer_case c;
    write_result result = {0};
    table_shape shape = plain;
    shape.version = 3;
    shape.properties[0] = (tarn_property){STR("write.delete.target-file-size-bytes"), STR("100")};
    shape.n_properties = 1;
    assert_ok(case_open(&c, env, &shape, &err));
    delete_writer *w = new_writer(&c, DELETE_VECTOR);
    for (int i = 0; i < 10; i++) {
        char path[16];
        (void)snprintf(path, sizeof path, "f%d", i);
        assert_ok(add(w, path, i % 2, i, i, &err));
    }
    assert_ok(delete_writer_close(w, &c.arena, &result, &err));
    assert_int_equal(result.n_deletes, 10);
    assert_int_equal(objects(&c), 4); /* three vectors pass the target */
    for (int32_t i = 0; i < 10; i++) {
        int64_t want = i < 5 ? i * 2 : (i - 5) * 2 + 1; /* by partition, then path */
        check_vector(&c, &result.deletes[i], &want, 1);
    }
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        int32_t version;
        delete_kind kind;
        const char *key, *value, *word;
    } bad[] = {
        {1, DELETE_POSITION, "a", "b", "has 1"},
        {3, DELETE_POSITION, "a", "b", "deletion vectors"},
        {2, DELETE_VECTOR, "a", "b", "need format version 3"},
        {2, DELETE_POSITION, "write.delete.granularity", "row", "granularity"},
        {2, DELETE_POSITION, "write.delete.target-file-size-bytes", "x", "target-file-size"},
    };
    tarn_env *env = test_env();
    writer_case c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        delete_writer *w = NULL;
        table_shape shape = plain;
        shape.version = bad[i].version;
        shape.properties[0] = (tarn_property){str_of(bad[i].key), str_of(bad[i].value)};
        shape.n_properties = 1;
        assert_ok(case_open(&c, env, &shape, &err));
        const delete_writer_options options = {.metadata = c.metadata, .kind = bad[i].kind};
        assert_code(delete_writer_new(env, c.store, &options, &w, &err), TARN_INVALID);
        assert_non_null(strstr(err.message, bad[i].word));
        err_reset(&err);
        close_case(&c);
    }
    assert_ok(case_open(&c, env, &plain, &err));
    delete_writer *w = new_writer(&c, DELETE_POSITION);
    tarn_file file = data_file("a", 1);
    int64_t position = -1;
    assert_code(delete_writer_add(w, &file, &position, 1, &err), TARN_INVALID);
    file.path = STR("b");
    file.spec_id = 5;
    assert_code(delete_writer_add(w, &file, &position, 1, &err), TARN_INVALID);
    write_result result = {0};
    assert_ok(delete_writer_close(w, &c.arena, &result, &err)); /* no rows, no files */
    assert_int_equal(result.n_deletes, 0);
    delete_writer_free(w);
    close_case(&c);
    test_env_done(env);
}

/* ---- failures ---- */

/* Two closes, several files each. */
static tarn_code tell(writer_case *c, delete_kind kind, delete_writer **w, write_result *result,
                      tarn_error *e) {
    tarn_code code = TARN_OK;
    tarn_positions *before = NULL;
    const delete_writer_options options = {
        .metadata = c->metadata, .kind = kind, .operation_id = "op"};
    const int64_t list[] = {4, 9};
    tarn_file file = data_file("d", 1);
    const tarn_entry entry = {.file = file};
    const tarn_entry *replaced[] = {&entry};
    TRY(delete_writer_new(c->env, c->store, &options, w, e));
    TRY(positions_new(c->env, &before, e));
    TRY(positions_add(before, list, 2, e));
    for (int round = 0; round < 2; round++) {
        TRY(add(*w, "a", 1, 0, 3, e));
        TRY(add(*w, "b", 2, 0, 3, e));
        TRY(add(*w, "c", 1, 0, 3, e));
        TRY(delete_writer_merge(*w, &file, before, replaced, 1, e));
        TRY(delete_writer_close(*w, &c->arena, result, e));
    }
done:
    positions_free(before);
    return code;
}

static const table_shape *failing_shape(table_shape *shape, delete_kind kind, bool avro) {
    *shape = plain;
    shape->version = kind == DELETE_VECTOR ? 3 : 2;
    shape->properties[0] = (tarn_property){STR("write.delete.target-file-size-bytes"), STR("90")};
    shape->properties[1] =
        (tarn_property){STR("write.format.default"), avro ? STR("avro") : STR("parquet")};
    shape->n_properties = 2;
    return shape;
}

/* Files that a result names are there, each with its size, and no others. */
static void check_kept(writer_case *c, const write_result *result) {
    int distinct = 0;
    for (int32_t i = 0; i < result->n_deletes; i++) {
        store_stat_info info;
        assert_ok(store_stat(c->store, result->deletes[i].path, &info, &err));
        assert_int_equal(info.size_bytes, result->deletes[i].size_bytes);
        distinct += i == 0 || !str_eq(result->deletes[i].path, result->deletes[i - 1].path);
    }
    assert_int_equal(objects(c), distinct);
}

static bool fault_story(tarn_env *env, delete_kind kind, bool avro, int64_t k, bool after) {
    writer_case c;
    delete_writer *w = NULL;
    write_result result = {0};
    table_shape shape;
    tarn_error e = TARN_ERROR_INIT;
    assert_ok(case_open(&c, env, failing_shape(&shape, kind, avro), &err));
    c.plan.fail_at = k;
    c.plan.after = after;
    tarn_code code = tell(&c, kind, &w, &result, &e);
    bool clean = code == TARN_OK && c.plan.calls < k;
    c.plan.fail_at = 0;
    if (code != TARN_OK) { /* it stays failed: nothing is handed out later */
        int32_t n = result.n_deletes;
        assert_code(code, TARN_IO);
        assert_true(e.message[0] != '\0');
        assert_code(add(w, "e", 1, 0, 0, &e), TARN_IO);
        assert_code(delete_writer_close(w, &c.arena, &result, &e), TARN_IO);
        assert_int_equal(result.n_deletes, n);
    }
    delete_writer_free(w);
    check_kept(&c, &result);
    close_case(&c);
    return clean;
}

static void test_store_faults(void **state) {
    (void)state;
    tarn_env *env = test_env();
    for (int kind = 0; kind < 6; kind++) {
        delete_kind deletes = kind < 4 ? DELETE_POSITION : DELETE_VECTOR;
        for (int64_t k = 1; !fault_story(env, deletes, kind < 2, k, kind % 2 != 0); k++) {
            assert_true(k < 1000);
        }
    }
    test_env_done(env);
}

/* Cancelled before the close: an error, and nothing stays. */
static void test_cancelled(void **state) {
    (void)state;
    static const delete_kind kinds[] = {DELETE_POSITION, DELETE_VECTOR};
    for (size_t i = 0; i < 2; i++) {
        tarn_env *env = test_env();
        writer_case c;
        write_result result = {0};
        table_shape shape;
        assert_ok(case_open(&c, env, failing_shape(&shape, kinds[i], false), &err));
        delete_writer *w = new_writer(&c, kinds[i]);
        assert_ok(add(w, "a", 1, 0, 3, &err));
        tarn_env_cancel(env);
        assert_code(delete_writer_close(w, &c.arena, &result, &err), TARN_CANCELLED);
        assert_code(delete_writer_close(w, &c.arena, &result, &err), TARN_CANCELLED);
        assert_int_equal(result.n_deletes, 0);
        delete_writer_free(w);
        tarn_env_cancel_reset(env);
        assert_int_equal(objects(&c), 0);
        close_case(&c);
        test_env_done(env);
    }
}

static void each_allocation(delete_kind kind, bool avro) {
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        writer_case c;
        delete_writer *w = NULL;
        write_result result = {0};
        table_shape shape;
        tarn_error e = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, 0);
        assert_ok(case_open(&c, env, failing_shape(&shape, kind, avro), &err));
        atomic_store(&plan.count, 0);
        plan.fail_at = k;
        tarn_code code = tell(&c, kind, &w, &result, &e);
        bool failed = plan.failed;
        plan.fail_at = 0;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        delete_writer_free(w);
        check_kept(&c, &result);
        close_case(&c);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
        k += k > 400 && !test_every() ? k % 7 : 0;
    }
}

static void test_memory(void **state) {
    (void)state;
    each_allocation(DELETE_POSITION, false);
    each_allocation(DELETE_POSITION, true);
    each_allocation(DELETE_VECTOR, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions_by_file),
        cmocka_unit_test(test_positions_by_partition),
        cmocka_unit_test(test_positions_roll),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_vectors_roll),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_store_faults),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
