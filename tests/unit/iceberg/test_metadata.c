/* Goal: every metadata document of the field reads, and what is written says the same.
 * Method: the documents of B26 with their right outcome; every document under the shared fixtures
 * is parsed, written, parsed again and written again, and the two writings are compared; new tables
 * by options; a failing allocator at every step. */
#include <dirent.h>
#include <sys/stat.h>

#include "fixture.h"

#include "iceberg/metadata.h"

static const char b26_head[] = TARN_TEST_FIXTURES "/metadata/b26/";

static tarn_code parse_file(tarn_arena *arena, const char *path, const tarn_metadata **out,
                            tarn_error *err) {
    return metadata_parse(arena, fixture_read(arena, path), path, out, err);
}

static void b26_documents(void **state) { /* B26 */
    (void)state;
    static const struct {
        const char *name;
        int64_t current; /* -1: none; -2: an error that says `says` */
        const char *says;
    } cases[] = {
        {"v2_no_current", -1, NULL},
        {"v2_current_minus_one", -1, NULL},
        {"v2_current_null", -1, NULL},
        {"v2_minimal", -1, NULL},
        {"v2_no_refs", 1001, NULL},
        {"v2_refs_null", 1001, NULL},
        {"v2_no_snapshot_log", 1001, NULL},
        {"v2_snapshot_without_sequence", 1001, NULL},
        {"v2_snapshot_without_summary", 1001, NULL},
        {"v2_unknown_fields", 1001, NULL},
        {"v2_old_schemas_gone", 1001, NULL},
        {"v1_full", 1001, NULL},
        {"v1_minimal", 1001, NULL},
        {"v1_manifests_inline", 1001, NULL},
        {"v9_future", -2, "version 9"},
        {"v2_current_unknown", -2, "4242"},
        {"v2_ref_differs", -2, "main"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_env *env = test_env();
        tarn_error err = TARN_ERROR_INIT;
        tarn_arena arena;
        arena_init(&arena, env);
        char path[512];
        snprintf(path, sizeof path, "%s%s.metadata.json", b26_head, cases[i].name);
        const tarn_metadata *m = NULL;
        tarn_code code = parse_file(&arena, path, &m, &err);
        if (cases[i].current == -2) {
            assert_int_not_equal(code, TARN_OK);
            assert_non_null(strstr(err.message, cases[i].says));
        } else {
            assert_ok(code);
            assert_int_equal(m->current_snapshot_id, cases[i].current);
            const tarn_snapshot *s = metadata_current_snapshot(m);
            assert_int_equal(s != NULL, cases[i].current >= 0);
            assert_int_equal(metadata_ref(m, STR("main")) != NULL, cases[i].current >= 0);
            assert_non_null(metadata_schema(m));
            assert_non_null(metadata_spec(m));
            if (s != NULL) {
                assert_non_null(metadata_snapshot_schema(m, s));
                assert_true(s->manifest_list.len > 0 || s->n_manifests == 1);
                assert_true(metadata_is_ancestor(m, 1001, 1001));
            }
        }
        arena_release(&arena);
        test_env_done(env);
    }
}

static void gzip_by_its_magic(void **state) { /* B26: whatever the name */
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf packed;
    codec_ctx ctx;
    const tarn_metadata *m;
    arena_init(&arena, env);
    buf_init(&packed, env, 0);
    codec_ctx_init(&ctx, env);
    tarn_str text =
        fixture_read(&arena, TARN_TEST_FIXTURES "/metadata/b26/v2_unknown_fields.metadata.json");
    assert_ok(codec_compress(&ctx, CODEC_GZIP, CODEC_LEVEL_DEFAULT, text, &packed, &err));
    assert_ok(metadata_parse(&arena, buf_str(&packed), "packed", &m, &err));
    assert_int_equal(m->current_snapshot_id, 1001);
    packed.data[packed.len - 5] ^= 1; /* a damaged checksum */
    assert_int_not_equal(metadata_parse(&arena, buf_str(&packed), "packed", &m, &err), TARN_OK);
    codec_ctx_release(&ctx);
    buf_release(&packed);
    arena_release(&arena);
    test_env_done(env);
}

/* With snapshots that were kept, whose text is there already, a document is the same; in another
 * version, in which some are written otherwise, too. */
static void check_kept(const tarn_metadata *m, tarn_str written) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena pool, arena;
    tarn_buf first, second;
    arena_init(&pool, env);
    arena_init(&arena, env);
    buf_init(&first, env, 0);
    buf_init(&second, env, 0);
    tarn_metadata kept = *m, other = *m;
    const tarn_metadata *again;
    const tarn_snapshot **list =
        ARENA_ARRAY(&arena, const tarn_snapshot *, (size_t)m->n_snapshots + 1);
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        assert_ok(snapshot_keep(&pool, m->snapshots[i], m->format_version, &list[i], &err));
        assert_true(list[i]->text.len > 0);
    }
    kept.snapshots = list;
    assert_ok(metadata_write(&kept, &first, &err));
    assert_true(str_eq(buf_str(&first), written));
    assert_ok(metadata_read_back(&arena, &kept, "kept", &again, &err));
    buf_reset(&first);
    assert_ok(metadata_write(again, &first, &err));
    assert_true(str_eq(buf_str(&first), written));
    kept.format_version = other.format_version = m->format_version == 3 ? 2 : 3;
    buf_reset(&first);
    assert_ok(metadata_write(&kept, &first, &err));
    assert_ok(metadata_write(&other, &second, &err));
    assert_true(str_eq(buf_str(&first), buf_str(&second)));
    buf_release(&first);
    buf_release(&second);
    arena_release(&arena);
    arena_release(&pool);
    test_env_done(env);
}

static void unknown_members_stay(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf out;
    const tarn_metadata *m;
    arena_init(&arena, env);
    buf_init(&out, env, 0);
    static const char text[] =
        "{\"format-version\":2,\"table-uuid\":\"u\",\"location\":\"l\",\"last-sequence-number\":3,"
        "\"last-updated-ms\":5,\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":"
        "\"struct\",\"schema-id\":0,\"from-tomorrow\":[1],\"fields\":[{\"id\":1,\"name\":\"a\","
        "\"required\":true,\"type\":\"long\"}]}],\"default-spec-id\":0,\"partition-specs\":[{"
        "\"spec-id\":0,\"fields\":[]}],\"last-partition-id\":999,\"sort-orders\":[],"
        "\"current-snapshot-id\":7,\"snapshots\":[{\"snapshot-id\":7,\"sequence-number\":3,"
        "\"timestamp-ms\":5,\"manifest-list\":\"x\",\"key-id\":\"k1\",\"summary\":{\"operation\":"
        "\"append\"}}],\"new-thing\":{\"x\":1.50}}";
    assert_ok(metadata_parse(&arena, str_of(text), "t", &m, &err));
    assert_ok(metadata_write(m, &out, &err));
    assert_ok(buf_append_char(&out, '\0', &err));
    assert_non_null(strstr((char *)out.data, "\"new-thing\":{\"x\":1.50}"));
    assert_non_null(strstr((char *)out.data, "\"key-id\":\"k1\""));
    assert_non_null(strstr((char *)out.data, "\"from-tomorrow\":[1]"));
    assert_null(strstr((char *)out.data, "null"));
    check_kept(m, str_make(out.data, out.len - 1));
    buf_release(&out);
    arena_release(&arena);
    test_env_done(env);
}

static void check_round_trip(const char *path, int *seen) {
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf first, second;
    const tarn_metadata *m, *again;
    arena_init(&arena, env);
    buf_init(&first, env, 0);
    buf_init(&second, env, 0);
    tarn_code code = parse_file(&arena, path, &m, &err);
    if (code == TARN_UNSUPPORTED && strstr(err.message, "view") != NULL) {
        arena_release(&arena); /* views lie in the same catalogs */
        test_env_done(env);
        return;
    }
    if (code != TARN_OK) {
        fail_msg("%s: %s (%s)", path, err.message, err.detail);
    }
    assert_ok(metadata_write(m, &first, &err));
    assert_ok(metadata_parse(&arena, buf_str(&first), path, &again, &err));
    assert_ok(metadata_write(again, &second, &err));
    assert_true(str_eq(buf_str(&first), buf_str(&second)));
    assert_int_equal(m->n_snapshots, again->n_snapshots);
    check_kept(m, buf_str(&first));
    for (int32_t i = 0; i < m->n_specs; i++) {
        const tarn_type *type;
        assert_ok(spec_partition_type(&arena, m->specs[i], m, &type, &err));
        assert_int_equal(type->n_fields, m->specs[i]->n_fields);
    }
    (*seen)++;
    buf_release(&first);
    buf_release(&second);
    arena_release(&arena);
    test_env_done(env);
}

static void walk(const char *folder, int *seen) {
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return;
    }
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        char path[1024];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0) {
            continue;
        }
        if (S_ISDIR(st.st_mode)) {
            walk(path, seen);
        } else if (strstr(e->d_name, ".metadata.json") != NULL && st.st_size > 0) {
            check_round_trip(path, seen);
        }
    }
    closedir(dir);
}

static void shared_documents(void **state) {
    (void)state;
    int seen = 0;
    if (!fixture_exists(TARN_TEST_SHARED "/fixtures/README.md")) {
        skip();
    }
    walk(TARN_TEST_SHARED "/fixtures/iceberg", &seen);
    assert_true(seen > 700);
}

static tarn_code make_new(tarn_arena *arena, int32_t version, const char *type, const char *by,
                          const char *sort, const tarn_metadata **out, tarn_error *err) {
    const tarn_type *root;
    tarn_code code = type_from_text(arena, str_of(type), &root, err);
    if (code != TARN_OK) {
        return code;
    }
    tarn_property property = {STR("owner"), STR("me")};
    tarn_str identifier = STR("a");
    metadata_new_options options = {.format_version = version,
                                    .root = root,
                                    .partition_by = str_of(by),
                                    .sort_by = str_of(sort),
                                    .identifier_names = &identifier,
                                    .n_identifier_names = 1,
                                    .location = STR("/tmp/t"),
                                    .properties = {1, &property}};
    return metadata_new(arena, &options, out, err);
}

/* The version may come as a property, which is not kept; what is said otherwise has precedence. */
static void version_property(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_metadata *m;
    metadata_new_options options = {.location = STR("/tmp/t")};
    tarn_property properties[2] = {{STR("format-version"), STR("3")}, {STR("a"), STR("b")}};
    arena_init(&arena, env);
    assert_ok(type_from_text(&arena, STR("struct<a: long>"), &options.root, &err));
    options.properties = (tarn_properties){2, properties};
    assert_ok(metadata_new(&arena, &options, &m, &err));
    assert_int_equal(m->format_version, 3);
    assert_int_equal(m->properties.count, 1);
    assert_true(str_is(m->properties.items[0].key, "a"));
    options.format_version = 1;
    assert_ok(metadata_new(&arena, &options, &m, &err));
    assert_int_equal(m->format_version, 1);
    options.format_version = 0;
    properties[0].value = STR("4");
    assert_code(metadata_new(&arena, &options, &m, &err), TARN_INVALID);
    err_reset(&err);
    properties[0].value = STR("two");
    assert_code(metadata_new(&arena, &options, &m, &err), TARN_INVALID);
    arena_release(&arena);
    test_env_done(env);
}

static void new_tables(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_metadata *m;
    const char *type = "struct<a: long not null, ts: timestamp, s: string, in: struct<b: int>>";
    arena_init(&arena, env);
    tarn_code code =
        make_new(&arena, 0, type, "month(ts), bucket(16, s), in.b as bb, truncate(s, 4)",
                 "s desc, bucket(4, a) nulls last", &m, &err);
    assert_ok(code);
    assert_int_equal(m->format_version, 2);
    assert_int_equal(m->last_column_id, 5);
    assert_int_equal(m->table_uuid.len, 36);
    const tarn_spec *spec = metadata_spec(m);
    assert_int_equal(spec->n_fields, 4);
    assert_true(str_is(spec->fields[0].name, "ts_month"));
    assert_int_equal(spec->fields[0].field_id, 1000);
    assert_true(str_is(spec->fields[1].name, "s_bucket"));
    assert_int_equal(spec->fields[1].transform.param, 16);
    assert_true(str_is(spec->fields[2].name, "bb"));
    assert_int_equal(spec->fields[2].source_id, 5);
    assert_true(str_is(spec->fields[3].name, "s_trunc"));
    assert_int_equal(m->last_partition_id, 1003);
    const tarn_sort_order *order = metadata_sort_order(m);
    assert_int_equal(order->n_fields, 2);
    assert_true(order->fields[0].descending && order->fields[0].nulls_last);
    assert_true(!order->fields[1].descending && order->fields[1].nulls_last);
    assert_int_equal(metadata_schema(m)->n_identifier_ids, 1);
    static const struct {
        const char *by, *says;
    } bad[] = {{"nothing", "nothing"},
               {"bucket(s)", "number"},
               {"bucket(0, s)", "positive"},
               {"hour(s)", "string"},
               {"day(ts), month(ts)", "redundant"},
               {"zorder(s)", "zorder"},
               {"day(ts) as s", "name of a column"},
               {"day(ts", ")"},
               {"s,", "name"},
               {"s s", "end"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_code(make_new(&arena, 2, type, bad[i].by, "", &m, &err), TARN_INVALID);
        if (strstr(err.message, bad[i].says) == NULL) {
            fail_msg("%s: %s", bad[i].by, err.message);
        }
    }
    assert_code(make_new(&arena, 2, "struct<a: long not null, n: timestamp_ns>", "", "", &m, &err),
                TARN_INVALID);
    assert_ok(make_new(&arena, 3, "struct<a: long not null, n: timestamp_ns>", "", "", &m, &err));
    assert_code(make_new(&arena, 2, "struct<a: long>", "", "", &m, &err), TARN_INVALID);
    arena_release(&arena);
    test_env_done(env);
}

static void no_memory(void **state) {
    (void)state;
    for (int64_t k = 0; k < 500; k++) {
        faulty f;
        tarn_error err = TARN_ERROR_INIT;
        tarn_env *env = faulty_env(&f);
        tarn_arena arena;
        tarn_buf out;
        const tarn_metadata *m;
        arena_init(&arena, env);
        buf_init(&out, env, 0);
        f.left = k;
        tarn_code code = make_new(&arena, 2, "struct<a: long not null, b: string>", "bucket(4, b)",
                                  "b", &m, &err);
        if (code == TARN_OK) {
            code = metadata_write(m, &out, &err);
        }
        if (code == TARN_OK) {
            code = metadata_parse(&arena, buf_str(&out), "x", &m, &err);
        }
        bool done = code == TARN_OK && f.left >= 0;
        f.left = INT64_MAX;
        buf_release(&out);
        arena_release(&arena);
        test_env_done(env);
        if (done) {
            return;
        }
        assert_code(code, TARN_NOMEM);
    }
    fail();
}

/* Changed bytes and cuts: an error or another document, never a crash, and what parses is written.
 */
static void damaged_documents(void **state) {
    (void)state;
    static const char *const names[] = {"v2_unknown_fields", "v1_manifests_inline"};
    for (int f = 0; f < 2; f++) {
        tarn_env *env = test_env();
        tarn_arena all;
        char path[512];
        arena_init(&all, env);
        snprintf(path, sizeof path, "%s%s.metadata.json", b26_head, names[f]);
        tarn_str whole = fixture_read(&all, path);
        char *copy = arena_alloc(&all, whole.len);
        for (size_t i = 0; i < whole.len; i++) {
            tarn_error err = TARN_ERROR_INIT;
            tarn_arena arena;
            tarn_buf out;
            const tarn_metadata *m;
            memcpy(copy, whole.data, whole.len);
            copy[i] = (char)(i % 3 == 0 ? '9' : i % 3 == 1 ? '-' : copy[i] ^ 1);
            arena_init(&arena, env);
            buf_init(&out, env, 0);
            tarn_str text = str_make(copy, i % 7 == 0 ? i : whole.len);
            if (metadata_parse(&arena, text, "damaged", &m, &err) == TARN_OK) {
                assert_ok(metadata_write(m, &out, &err));
            } else {
                assert_int_not_equal(err.message[0], '\0');
            }
            buf_release(&out);
            arena_release(&arena);
        }
        arena_release(&all);
        test_env_done(env);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b26_documents),
        cmocka_unit_test(gzip_by_its_magic),
        cmocka_unit_test(unknown_members_stay),
        cmocka_unit_test(version_property),
        cmocka_unit_test(new_tables),
        cmocka_unit_test(damaged_documents),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(shared_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
