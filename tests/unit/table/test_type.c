/* Goal: types read and write as the specification says and are found, numbered and pruned right.
 * Method: schemas as JSON and text there and back; hostile ones refused; every prune by hand. */
#include "rows.h"

#include "table/type.h"

static const char schema_json[] =
    "{\"type\":\"struct\",\"schema-id\":3,\"identifier-field-ids\":[1],\"fields\":["
    "{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\",\"doc\":\"key\"},"
    "{\"id\":2,\"name\":\"a.b\",\"required\":false,\"type\":\"decimal(9, 2)\",\"initial-default\":"
    "\"1.00\",\"write-default\":\"2.00\"},"
    "{\"id\":3,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":5,"
    "\"element\":{\"type\":\"struct\",\"fields\":[{\"id\":6,\"name\":\"x\",\"required\":false,"
    "\"type\":\"fixed[16]\"},{\"id\":7,\"name\":\"y\",\"required\":false,\"type\":\"timestamptz_ns"
    "\"}]},\"element-required\":false}},"
    "{\"id\":4,\"name\":\"m\",\"required\":false,\"type\":{\"type\":\"map\",\"key-id\":8,\"key\":"
    "\"string\",\"value-id\":9,\"value\":\"geometry(srid:4326)\",\"value-required\":true}}],"
    "\"future\":{\"a\":[1,2]}}";

static const tarn_schema *read_schema(tarn_arena *arena, const char *text) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = NULL;
    const tarn_schema *schema = NULL;
    assert_ok(json_parse(arena, str_of(text), "schema", &json, &err));
    assert_ok(schema_from_json(arena, json, &schema, &err));
    return schema;
}

static void test_schema_json_round_trip(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf buf;
    json_writer w;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    const tarn_schema *schema = read_schema(&arena, schema_json);
    assert_int_equal(schema->schema_id, 3);
    assert_int_equal(schema->n_identifier_ids, 1);
    json_begin(&w, &buf, false, &err);
    schema_put_json(schema, &w);
    assert_ok(json_end(&w));
    assert_ok(buf_append_char(&buf, '\0', &err));
    assert_string_equal((const char *)buf.data, schema_json);

    const tarn_type *copy = type_copy(&arena, schema->root);
    assert_non_null(copy);
    assert_true(type_eq(copy, schema->root));
    buf_release(&buf);
    arena_release(&arena);
    test_env_done(env);
}

static void refuse_schema(tarn_arena *arena, const char *text, const char *part) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = NULL;
    const tarn_schema *schema = NULL;
    assert_ok(json_parse(arena, str_of(text), "schema", &json, &err));
    assert_code(schema_from_json(arena, json, &schema, &err), TARN_CORRUPT);
    assert_null(schema);
    if (strstr(err.message, part) == NULL) {
        fail_msg("\"%s\" did not hold \"%s\"", err.message, part);
    }
}

static void test_bad_schemas(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
#define F(id, name, type)                                                                          \
    "{\"id\":" id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define S(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"
    refuse_schema(&arena, S(F("1", "a", "\"int\"") "," F("1", "b", "\"int\"")), "twice");
    refuse_schema(&arena, S(F("1", "a", "\"int\"") "," F("2", "a", "\"int\"")), "a occurred twice");
    refuse_schema(&arena, S(F("1", "a", "\"decimal(39, 2)\"")), "decimal(39, 2)");
    refuse_schema(&arena, S(F("1", "a", "\"decimal(5, 6)\"")), "decimal(5, 6)");
    refuse_schema(&arena, S(F("1", "a", "\"fixed[0]\"")), "fixed[0]");
    refuse_schema(&arena, S(F("1", "a", "\"in\"")), "in was not the name of a type");
    refuse_schema(&arena, S(F("1.5", "a", "\"int\"")), "id");
    refuse_schema(&arena, S(F("-1", "a", "\"int\"")), "id");
    refuse_schema(&arena, S(F("1", "a", "7")), "neither");
    refuse_schema(&arena, "{\"type\":\"struct\"}", "list of fields");
    refuse_schema(&arena, S(F("1", "a", S(F("1", "b", "\"int\"")))), "twice");
    arena_release(&arena);
    test_env_done(env);
}

static void test_nesting_limit(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    char text[2048] = "";
    const tarn_type *type = NULL;
    arena_init(&arena, env);
    for (int i = 0; i < 150; i++) {
        strcat(text, "list<");
    }
    strcat(text, "int");
    for (int i = 0; i < 150; i++) {
        strcat(text, ">");
    }
    assert_code(type_from_text(&arena, str_of(text), &type, &err), TARN_LIMIT);
    arena_release(&arena);
    test_env_done(env);
}

static void test_text(void **state) {
    (void)state;
    static const char *const texts[] = {
        "long",
        "decimal(38, 10)",
        "fixed[7]",
        "timestamptz_ns",
        "list<string>",
        "map<string, list<int not null>>",
        "struct<a: int not null, \"b c\": map<string, long>, ü: struct<>>",
        "struct<\"quote \"\" and ` within\": int>",
        "geography(srid:4326, spherical)",
        "variant",
    };
    static const char *const bad[] = {"",          "lon",          "decimal(9)",
                                      "list<int",  "list int",     "struct<a, int>",
                                      "int,",      "struct<a: >",  "struct<a: int, a: int>",
                                      "map<int>",  "decimal(0,0)", "fixed[99999999999]",
                                      "list<int>>"};
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf buf;
    const tarn_type *type = NULL;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        buf_reset(&buf);
        assert_ok(type_from_text(&arena, str_of(texts[i]), &type, &err));
        assert_ok(type_text(type, &buf, &err));
        assert_ok(buf_append_char(&buf, '\0', &err));
        assert_string_equal((const char *)buf.data, texts[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (type_from_text(&arena, str_of(bad[i]), &type, &err) != TARN_INVALID) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
    assert_ok(type_from_text(&arena, STR(" BIGINT "), &type, &err));
    assert_ptr_equal(type, type_primitive(TARN_LONG));
    buf_release(&buf);
    arena_release(&arena);
    test_env_done(env);
}

static void test_finding(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    tarn_buf buf;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    const tarn_type *root = read_schema(&arena, schema_json)->root;
    assert_int_equal(type_find_id(root, 7)->id, 7);
    assert_null(type_find_id(root, 70));
    assert_int_equal(type_find_name(root, STR("a.b"), true)->id, 2);
    assert_int_equal(type_find_name(root, STR("l.element.x"), true)->id, 6);
    assert_int_equal(type_find_name(root, STR("l.y"), true)->id, 7);
    assert_int_equal(type_find_name(root, STR("M.VALUE"), false)->id, 9);
    assert_null(type_find_name(root, STR("M.VALUE"), true));
    assert_ok(type_full_name(root, 6, &buf, &err));
    assert_true(str_is(buf_str(&buf), "l.element.x"));
    assert_code(type_full_name(root, 60, &buf, &err), TARN_NOT_FOUND);
    assert_int_equal(type_max_id(root), 9);
    assert_int_equal(type_node_count(root), 9);
    static const int32_t ids[] = {1, 2, 3, 5, 6, 7, 4, 8, 9};
    for (int32_t i = 0; i < 9; i++) {
        assert_int_equal(type_node(root, i)->id, ids[i]);
    }
    assert_null(type_node(root, 9));
    int32_t next = 1;
    const tarn_type *fresh = type_assign_ids(&arena, root, &next);
    assert_int_equal(next, 10);
    assert_int_equal(type_find_name(fresh, STR("l.element"), true)->id, 5);
    assert_int_equal(type_find_name(fresh, STR("l.x"), true)->id, 6);
    assert_int_equal(type_find_name(fresh, STR("m.key"), true)->id, 8);
    buf_release(&buf);
    arena_release(&arena);
    test_env_done(env);
}

static void prune_to(tarn_arena *arena, tarn_env *env, const char *text, const char *picks,
                     const char *want, const char *want_picks) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf buf;
    const tarn_type *type = NULL;
    uint8_t selected[16] = {0};
    buf_init(&buf, env, 0);
    assert_ok(type_from_text(arena, str_of(text), &type, &err));
    size_t n = strlen(picks);
    assert_int_equal(type_node_count(type), n);
    for (size_t i = 0; i < n; i++) {
        selected[i] = picks[i] == '1';
    }
    const tarn_type *pruned = type_prune(arena, type, selected);
    assert_non_null(pruned);
    assert_ok(type_text(pruned, &buf, &err));
    assert_ok(buf_append_char(&buf, '\0', &err));
    assert_string_equal((const char *)buf.data, want);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(selected[i], want_picks[i] == '1');
    }
    buf_release(&buf);
}

static void test_prune(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    prune_to(&arena, env, "struct<a: int, b: struct<c: int, d: int>>", "0001",
             "struct<b: struct<d: int>>", "0101");
    prune_to(&arena, env, "struct<a: int, b: struct<c: int, d: int>>", "0100",
             "struct<b: struct<>>", "0100");
    prune_to(&arena, env, "struct<m: map<struct<k: int>, struct<v: int, w: int>>>", "000001",
             "struct<m: map<struct<k: int>, struct<w: int>>>",
             "1111"
             "01");
    prune_to(&arena, env, "struct<l: list<list<int>>, x: int>", "1000",
             "struct<l: list<list<int>>>", "1110");
    prune_to(&arena, env, "struct<l: list<struct<a: int, b: int>>>", "0001",
             "struct<l: list<struct<b: int>>>", "1101");
    prune_to(&arena, env, "struct<a: int>", "0", "struct<>", "0");
    arena_release(&arena);
    test_env_done(env);
}

static tarn_code exercise(tarn_env *env, tarn_error *err) {
    tarn_arena arena;
    tarn_buf buf;
    json_value *json = NULL;
    json_writer w;
    const tarn_schema *schema = NULL;
    const tarn_type *type = NULL;
    tarn_code code;
    arena_init(&arena, env);
    buf_init(&buf, env, 0);
    TRY(json_parse(&arena, str_of(schema_json), "schema", &json, err));
    TRY(schema_from_json(&arena, json, &schema, err));
    json_begin(&w, &buf, false, err);
    schema_put_json(schema, &w);
    TRY(json_end(&w));
    buf_reset(&buf);
    TRY(type_text(schema->root, &buf, err));
    TRY(type_from_text(&arena, buf_str(&buf), &type, err));
    code = type_copy(&arena, schema->root) != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&buf);
    arena_release(&arena);
    return code;
}

static void test_without_memory(void **state) {
    (void)state;
    each_failure(exercise);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_json_round_trip),
        cmocka_unit_test(test_bad_schemas),
        cmocka_unit_test(test_nesting_limit),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_finding),
        cmocka_unit_test(test_prune),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
