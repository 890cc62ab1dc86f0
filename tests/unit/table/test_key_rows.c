/* Goal: two rows have equal key bytes exactly where their key columns are equal as the spec
 * compares them: nulls are values, widened columns keep their keys, zeros and NaNs are one each.
 * Method: rows as JSON, keys of all pairs compared with what the test says of each row; memory
 * that fails. */
#include "rows.h"
#include "torture.h"

#include "table/key_rows.h"

#define FIELD(id, name, type)                                                                      \
    "{\"id\":" id ",\"name\":\"" name "\",\"required\":false,\"type\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

typedef struct key_case {
    tarn_env *env;
    tarn_arena arena;
    tarn_batch batch;
    key_rows keys;
} key_case;

static void open_case(key_case *c, const char *type_json, const char *lines) {
    tarn_error err = TARN_ERROR_INIT;
    json_value *json = NULL;
    const tarn_type *type = NULL;
    memset(c, 0, sizeof *c);
    c->env = test_env();
    arena_init(&c->arena, c->env);
    key_rows_init(&c->keys, c->env);
    assert_ok(json_parse(&c->arena, str_of(type_json), "type", &json, &err));
    assert_ok(type_from_json(&c->arena, json, &type, &err));
    assert_ok(rows_read(c->env, &c->arena, type, lines, &c->batch, &err));
}

static void close_case(key_case *c) {
    batch_release(&c->batch);
    key_rows_release(&c->keys);
    arena_release(&c->arena);
    test_env_done(c->env);
}

/* groups: a letter a row; rows of one letter have one key. */
static void check_groups(key_case *c, const int32_t *ids, int32_t n, const char *groups) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(key_encode(&c->keys, &c->batch, ids, n, &err));
    assert_int_equal(c->keys.rows, strlen(groups));
    for (int64_t i = 0; i < c->keys.rows; i++) {
        for (int64_t j = 0; j < c->keys.rows; j++) {
            if (str_eq(key_at(&c->keys, i), key_at(&c->keys, j)) != (groups[i] == groups[j])) {
                fail_msg("rows %d and %d of %s", (int)i, (int)j, groups);
            }
        }
    }
}

static void keys_of_all_kinds(void **state) {
    key_case c;
    const int32_t text[] = {1, 2};
    const int32_t swapped[] = {2, 1};
    const int32_t number[] = {3};
    const int32_t rest[] = {4, 5, 6, 7, 8, 9};
    const int32_t none[] = {10};
    (void)state;
    open_case(
        &c,
        STRUCT(FIELD("1", "a", "\"string\"") "," FIELD("2", "b", "\"string\"") "," FIELD("3", "d", "\"double\"") "," FIELD("4", "i", "\"int\"") "," FIELD(
            "5", "t",
            "\"boolean\"") "," FIELD("6", "n",
                                     "\"decimal(20, 2)\"") "," FIELD("7", "u",
                                                                     "\"uuid\"") "," FIELD("8", "f",
                                                                                           "\"f"
                                                                                           "ixe"
                                                                                           "d["
                                                                                           "2]"
                                                                                           "\"") "," FIELD("9",
                                                                                                           "w",
                                                                                                           "\"date\"") "," FIELD("10",
                                                                                                                                 "z",
                                                                                                                                 "\"unknown\"")),
        "{\"a\":\"ab\",\"b\":\"c\",\"d\":0.0,\"i\":1,\"t\":true,\"n\":\"1.00\"}\n"
        "{\"a\":\"a\",\"b\":\"bc\",\"d\":-0.0,\"i\":1,\"t\":true,\"n\":\"1.00\"}\n"
        "{\"a\":\"abc\",\"b\":\"\",\"d\":1.5,\"i\":1,\"t\":false,\"n\":\"1.00\"}\n"
        "{\"a\":\"abc\",\"d\":0,\"i\":1,\"t\":true,\"n\":\"-1.00\"}\n"
        "{\"a\":null,\"b\":\"abc\",\"d\":null,\"i\":1,\"t\":true,\"n\":\"1.00\","
        "\"u\":\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"}\n"
        "{\"a\":\"ab\",\"b\":\"c\",\"d\":2.0,\"i\":1,\"t\":true,\"n\":\"1.00\","
        "\"f\":\"0a0b\"}\n"
        "{\"a\":null,\"b\":null,\"d\":null,\"i\":1,\"t\":true,\"n\":\"1.00\","
        "\"w\":\"2020-01-01\"}\n");
    check_groups(&c, text, 2, "abcdeaf");
    check_groups(&c, swapped, 2, "abcdeaf");
    check_groups(&c, number, 1, "aabacdc");
    check_groups(&c, rest, 6, "aabcdef");
    check_groups(&c, none, 1, "aaaaaaa");
    check_groups(&c, none, 0, "aaaaaaa");
    close_case(&c);
}

/* Nested keys, where the struct's null is the key's, and rows that begin within their buffers. */
static void keys_below_structs(void **state) {
    key_case c;
    tarn_error err = TARN_ERROR_INIT;
    tarn_batch part;
    const int32_t ids[] = {3, 1};
    (void)state;
    open_case(&c,
              STRUCT(FIELD("1", "a", "\"int\"") "," FIELD(
                  "2", "s", STRUCT(FIELD("3", "x", "\"long\"") "," FIELD("4", "y", "\"int\"")))),
              "{\"a\":1,\"s\":{\"x\":5,\"y\":1}}\n{\"a\":1,\"s\":null}\n"
              "{\"a\":1,\"s\":{\"x\":null}}\n{\"a\":1,\"s\":{\"x\":5,\"y\":2}}\n{\"a\":2}\n");
    check_groups(&c, ids, 2, "abbac");
    assert_ok(batch_slice(c.env, &c.batch, 1, 3, &part, &err));
    batch_release(&c.batch);
    batch_move(&c.batch, &part);
    check_groups(&c, ids, 2, "bba");
    close_case(&c);
}

/* One column as it was and as it is. */
static void check_widened(const char *narrow, const char *wide, const char *lines) {
    key_case a;
    key_case b;
    tarn_error err = TARN_ERROR_INIT;
    const int32_t id = 1;
    char type[200];
    snprintf(type, sizeof type, STRUCT(FIELD("1", "a", "\"%s\"")), narrow);
    open_case(&a, type, lines);
    snprintf(type, sizeof type, STRUCT(FIELD("1", "a", "\"%s\"")), wide);
    open_case(&b, type, lines);
    assert_ok(key_encode(&a.keys, &a.batch, &id, 1, &err));
    assert_ok(key_encode(&b.keys, &b.batch, &id, 1, &err));
    assert_int_equal(a.keys.bytes.len, b.keys.bytes.len);
    assert_memory_equal(a.keys.bytes.data, b.keys.bytes.data, b.keys.bytes.len);
    close_case(&a);
    close_case(&b);
}

static void widened_keys_stay(void **state) {
    (void)state;
    check_widened("int", "long", "{\"a\":-5}\n{\"a\":7}\n{\"a\":null}\n");
    check_widened("float", "double", "{\"a\":-0.0}\n{\"a\":1.5}\n{\"a\":null}\n");
    check_widened("decimal(5, 2)", "decimal(12, 2)", "{\"a\":\"-1.25\"}\n{\"a\":\"7.00\"}\n");
}

static void nan_is_one_key(void **state) {
    key_case c;
    tarn_error err = TARN_ERROR_INIT;
    const int32_t id = 1;
    const uint64_t nans[] = {UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000123)};
    tarn_builder b;
    (void)state;
    open_case(&c, STRUCT(FIELD("1", "a", "\"double\"")), "{\"a\":1}\n");
    const tarn_type *type = c.batch.type;
    batch_release(&c.batch);
    assert_ok(builder_init(&b, c.env, type, &err));
    for (int i = 0; i < 2; i++) {
        assert_ok(builder_fixed(&b.children[0], &nans[i], &err));
        assert_ok(builder_close(&b, &err));
    }
    assert_ok(builder_finish_batch(&b, &c.batch, &err));
    builder_release(&b);
    check_groups(&c, &id, 1, "aa");
    close_case(&c);
}

static void nested_types_are_no_keys(void **state) {
    key_case c;
    tarn_error err = TARN_ERROR_INIT;
    const int32_t id = 2;
    const int32_t absent = 9;
    (void)state;
    open_case(&c, STRUCT(FIELD("2", "s", STRUCT(FIELD("3", "x", "\"long\"")))), "{\"s\":null}\n");
    assert_code(key_encode(&c.keys, &c.batch, &id, 1, &err), TARN_INVALID);
    assert_string_equal(err.message, "the column with field id 2 is a struct, and no key");
    assert_code(key_encode(&c.keys, &c.batch, &absent, 1, &err), TARN_INTERNAL);
    close_case(&c);
}

static void keys_without_memory(void **state) {
    key_case c;
    const int32_t ids[] = {1, 2};
    tarn_code code = TARN_NOMEM;
    (void)state;
    open_case(&c, STRUCT(FIELD("1", "a", "\"string\"") "," FIELD("2", "b", "\"int\"")),
              "{\"a\":\"x\",\"b\":1}\n{\"a\":null,\"b\":2}\n");
    for (int64_t k = 1; code != TARN_OK; k++) {
        test_memory memory = {0};
        tarn_env *env = test_env_memory(&memory);
        tarn_error err = TARN_ERROR_INIT;
        key_rows keys;
        key_rows_init(&keys, env);
        memory.fail_at = k;
        code = key_encode(&keys, &c.batch, ids, 2, &err);
        memory.fail_at = 0;
        assert_true(code == TARN_OK || code == TARN_NOMEM);
        key_rows_release(&keys);
        test_env_done(env);
    }
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_all_kinds),        cmocka_unit_test(keys_below_structs),
        cmocka_unit_test(widened_keys_stay),        cmocka_unit_test(nan_is_one_key),
        cmocka_unit_test(nested_types_are_no_keys), cmocka_unit_test(keys_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
