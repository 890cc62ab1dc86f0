/* Goal: Puffin files and deletion vectors are read as others write them, written as the
 * specification says, and never believed.
 * Method: files of Iceberg's own library, of hand and with a packed footer (BUGS B20); files of
 * ours read back; every byte changed, every length cut, every allocation failing in turn. */
#include "format/puffin/puffin.h"

#include "base/num.h"
#include "fail_alloc.h"
#include "test.h"

static tarn_str read_fixture(tarn_arena *arena, const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/puffin/%s.puffin", TARN_TEST_FIXTURES, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    uint8_t *data = arena_alloc(arena, 1 << 16);
    size_t len = fread(data, 1, 1 << 16, f);
    fclose(f);
    return str_make(data, len);
}

static tarn_code read_footer(tarn_arena *arena, tarn_str bytes, puffin_footer *out,
                             tarn_error *err) {
    io_source *source = NULL;
    tarn_code code = io_source_memory(arena->env, "x.puffin", bytes.data, bytes.len, &source, err);
    if (code == TARN_OK) {
        code = puffin_read_footer(arena, source, out, err);
        source->close(source);
    }
    return code;
}

static tarn_str blob_bytes(tarn_str file, const puffin_blob *blob) {
    return str_sub(file, (size_t)blob->offset, (size_t)blob->length);
}

static tarn_str property(const puffin_blob *blob, const char *key) {
    for (int32_t i = 0; i < blob->n_properties; i++) {
        if (str_is(blob->properties[i].key, key)) {
            return blob->properties[i].value;
        }
    }
    fail_msg("no property %s", key);
    return STR_NULL;
}

static void check_vector(tarn_env *env, tarn_str bytes, const int64_t *want, int64_t n) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_positions *p = NULL;
    int64_t got[16];
    assert_ok(vector_decode(env, bytes, n, &p, &err));
    assert_int_equal(positions_count(p), n);
    positions_list(p, got);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    positions_free(p);
    assert_code(vector_decode(env, bytes, n + 1, &p, &err), TARN_CORRUPT);
}

static void test_bug_b20(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    puffin_footer footer;
    tarn_positions *p = NULL;
    const int64_t first[] = {1, 3, 9};
    const int64_t second[] = {0, 5};
    arena_init(&arena, env);
    tarn_str framed = read_fixture(&arena, "b20_framed");
    assert_ok(read_footer(&arena, framed, &footer, &err));
    assert_int_equal(footer.n_blobs, 1);
    assert_true(str_is(footer.blobs[0].type, "deletion-vector-v1"));
    check_vector(env, blob_bytes(framed, &footer.blobs[0]), first, 3);
    tarn_str two = read_fixture(&arena, "b20_two_in_one_file");
    assert_ok(read_footer(&arena, two, &footer, &err));
    assert_int_equal(footer.n_blobs, 2);
    check_vector(env, blob_bytes(two, &footer.blobs[0]), first, 3);
    check_vector(env, blob_bytes(two, &footer.blobs[1]), second, 2);
    tarn_str bare = read_fixture(&arena, "b20_bare_blob");
    assert_code(read_footer(&arena, bare, &footer, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "x.puffin"));
    assert_non_null(strstr(err.message, "PFA1"));
    check_vector(env, bare, first, 3);
    tarn_str bad = read_fixture(&arena, "b20_bad_crc");
    assert_ok(read_footer(&arena, bad, &footer, &err));
    assert_code(vector_decode(env, blob_bytes(bad, &footer.blobs[0]), 3, &p, &err), TARN_CORRUPT);
    assert_non_null(strstr(err.message, "checksum"));
    assert_null(p);
    arena_release(&arena);
    test_env_done(env);
}

static void check_java(tarn_arena *arena, const char *name) {
    tarn_error err = TARN_ERROR_INIT;
    puffin_footer footer;
    tarn_str file = read_fixture(arena, name);
    assert_ok(read_footer(arena, file, &footer, &err));
    assert_int_equal(footer.n_blobs, 5);
    assert_int_equal(footer.n_properties, 1);
    assert_true(str_starts_with(footer.properties[0].value, STR("Apache Iceberg 1.10.1")));
    for (int32_t i = 0; i < footer.n_blobs; i++) {
        const puffin_blob *blob = &footer.blobs[i];
        tarn_positions *p = NULL;
        int64_t cardinality = 0;
        assert_int_equal(blob->n_fields, 1);
        assert_int_equal(blob->fields[0], 2147483645);
        assert_int_equal(blob->snapshot_id, -1);
        assert_int_equal(blob->codec.len, 0);
        assert_true(str_ends_with(property(blob, "referenced-data-file"), STR(".parquet")));
        assert_true(str_to_i64(property(blob, "cardinality"), &cardinality));
        assert_ok(vector_decode(arena->env, blob_bytes(file, blob), cardinality, &p, &err));
        positions_free(p);
    }
}

/* A file of Iceberg 1.10, and the same with its footer packed. */
static void test_java(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    check_java(&arena, "java");
    check_java(&arena, "lz4_footer");
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code write_file(tarn_env *env, tarn_buf *out, tarn_error *err) {
    static const int32_t field = 2147483645;
    tarn_code code;
    io_sink *sink = NULL;
    puffin_writer *w = NULL;
    tarn_positions *p = NULL;
    tarn_buf vector;
    int64_t size = 0;
    buf_init(&vector, env, 0);
    TRY(positions_new(env, &p, err));
    TRY(io_sink_memory(env, out, &sink, err));
    code = puffin_writer_new(env, sink, &w, err);
    if (code != TARN_OK) {
        sink->abort(sink);
        goto done;
    }
    for (int64_t i = 0; i < 3; i++) {
        const puffin_property name = {STR("referenced-data-file"), STR("a \"b\".parquet")};
        const puffin_blob blob = {.type = STR("deletion-vector-v1"),
                                  .fields = &field,
                                  .n_fields = 1,
                                  .snapshot_id = -1,
                                  .sequence_number = -1,
                                  .properties = &name,
                                  .n_properties = (int32_t)(i % 2)};
        int64_t offset = 0;
        int64_t position = i * i;
        buf_reset(&vector);
        TRY(positions_add(p, &position, 1, err));
        TRY(vector_encode(p, &vector, err));
        TRY(puffin_writer_add(w, &blob, buf_str(&vector), &offset, err));
    }
    puffin_writer *closing = w;
    w = NULL;
    TRY(puffin_writer_close(closing, &size, err));
    code = (size_t)size == out->len ? TARN_OK : TARN_INTERNAL;
done:
    puffin_writer_abort(w);
    positions_free(p);
    buf_release(&vector);
    return code;
}

static void test_round_trip(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf file;
    puffin_footer footer;
    const int64_t want[] = {0, 1, 4};
    arena_init(&arena, env);
    buf_init(&file, env, 0);
    assert_ok(write_file(env, &file, &err));
    assert_ok(read_footer(&arena, buf_str(&file), &footer, &err));
    assert_int_equal(footer.n_blobs, 3);
    assert_true(str_is(footer.properties[0].key, "created-by"));
    assert_true(str_starts_with(footer.properties[0].value, STR("tarn")));
    int64_t offset = 4;
    for (int32_t i = 0; i < 3; i++) {
        const puffin_blob *blob = &footer.blobs[i];
        assert_int_equal(blob->offset, offset);
        offset += blob->length;
        check_vector(env, blob_bytes(buf_str(&file), blob), want, i + 1);
        assert_int_equal(blob->n_properties, i % 2);
    }
    assert_true(str_is(property(&footer.blobs[1], "referenced-data-file"), "a \"b\".parquet"));
    buf_release(&file);
    arena_release(&arena);
    test_env_done(env);
}

/* Every byte of a footer changed, and every length: an error, or a footer within its file. */
static void check_damaged(tarn_env *env, tarn_str file) {
    uint8_t *bytes = test_malloc(file.len);
    for (size_t i = 0; i < file.len * 3; i++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_arena arena;
        puffin_footer footer;
        arena_init(&arena, env);
        memcpy(bytes, file.data, file.len);
        bytes[i / 3] ^= (uint8_t)(i % 3 == 0 ? 1 : i % 3 == 1 ? 0x80 : 0xff);
        tarn_code code = read_footer(&arena, str_make(bytes, file.len), &footer, &err);
        assert_true(code == TARN_OK || code == TARN_CORRUPT || code == TARN_INVALID);
        for (int32_t b = 0; code == TARN_OK && b < footer.n_blobs; b++) {
            assert_true(footer.blobs[b].offset >= 4);
            assert_true(footer.blobs[b].length <= (int64_t)file.len - footer.blobs[b].offset);
        }
        assert_true(code == TARN_OK || err.message[0] != '\0');
        arena_release(&arena);
    }
    for (size_t len = 0; len < file.len; len++) {
        tarn_error err = TARN_ERROR_INIT;
        tarn_arena arena;
        puffin_footer footer;
        arena_init(&arena, env);
        assert_code(read_footer(&arena, str_sub(file, 0, len), &footer, &err), TARN_CORRUPT);
        arena_release(&arena);
    }
    test_free(bytes);
}

static void test_damaged(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    check_damaged(env, read_fixture(&arena, "b20_two_in_one_file"));
    check_damaged(env, read_fixture(&arena, "lz4_footer"));
    tarn_str blob = read_fixture(&arena, "b20_bare_blob");
    for (size_t i = 0; i < blob.len * 8; i++) { /* the checksum sees every bit */
        tarn_error err = TARN_ERROR_INIT;
        tarn_positions *p = NULL;
        uint8_t bytes[64];
        memcpy(bytes, blob.data, blob.len);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_code(vector_decode(env, str_make(bytes, blob.len), -1, &p, &err), TARN_CORRUPT);
        assert_code(vector_decode(env, str_sub(blob, 0, i / 8), -1, &p, &err), TARN_CORRUPT);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void test_memory(void **state) {
    (void)state;
    for (uint64_t k = 1;; k++) {
        fail_alloc plan;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = fail_alloc_env(&plan, k);
        tarn_buf file;
        tarn_arena arena;
        puffin_footer footer;
        buf_init(&file, env, 0);
        arena_init(&arena, env);
        tarn_code code = write_file(env, &file, &err);
        if (code == TARN_OK) {
            code = read_footer(&arena, buf_str(&file), &footer, &err);
        } else {
            assert_int_equal(file.len, 0);
        }
        bool failed = plan.failed;
        assert_int_equal(code, failed ? TARN_NOMEM : TARN_OK);
        buf_release(&file);
        arena_release(&arena);
        fail_alloc_done(&plan, env);
        if (!failed) {
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bug_b20),    cmocka_unit_test(test_java),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
