/* Goal: names come back from their text as they were, and nothing else passes.
 * Method: tables of texts with their parts; round trips. */
#include "test.h"

#include "catalog/catalog_int.h"

static tarn_error err;

static void parses_names(void **state) {
    (void)state;
    static const struct {
        const char *text, *parts; /* parts joined by '|'; NULL: refused */
    } CASES[] = {
        {"a.b", "a|b"},
        {"t", "t"},
        {"a.b.c.d", "a|b|c|d"},
        {"`a.b`.c", "a.b|c"},
        {"\"a.b\".\"c\"", "a.b|c"},
        {"`a``b`.c", "a`b|c"},
        {"a.`b c`", "a|b c"},
        {"a b.c", "a b|c"},
        {"\xc3\xa4.\xe6\xbc\xa2", "\xc3\xa4|\xe6\xbc\xa2"},
        {"", NULL},
        {".", NULL},
        {"a.", NULL},
        {".a", NULL},
        {"a..b", NULL},
        {"``.a", NULL},
        {"`a", NULL},
        {"`a`b", NULL},
        {"a`b`", NULL},
        {"a\nb", NULL},
        {"a.\x7f", NULL},
        {"a.\xff", NULL},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        tarn_ident ident;
        tarn_buf text;
        tarn_code code = ident_parse(&arena, str_of(CASES[i].text), false, &ident, &err);
        if (CASES[i].parts == NULL) {
            assert_code(code, TARN_INVALID);
            continue;
        }
        assert_ok(code);
        buf_init(&text, env, 0);
        for (int32_t j = 0; j < ident.n_levels; j++) {
            assert_ok(buf_append_str(&text, ident.levels[j], &err));
            assert_ok(buf_append_char(&text, '|', &err));
        }
        assert_ok(buf_append_str(&text, ident.name, &err));
        assert_true(str_is(buf_str(&text), CASES[i].parts));
        /* And back. */
        tarn_ident again;
        buf_reset(&text);
        assert_ok(ident_text(&ident, &text, &err));
        assert_ok(ident_parse(&arena, buf_str(&text), false, &again, &err));
        assert_int_equal(again.n_levels, ident.n_levels);
        assert_true(str_eq(again.name, ident.name));
        buf_release(&text);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void parses_namespaces(void **state) {
    (void)state;
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name);
    tarn_env *env = test_env();
    tarn_arena arena;
    tarn_ident ident;
    arena_init(&arena, env);
    assert_ok(ident_parse(&arena, STR(""), true, &ident, &err));
    assert_int_equal(ident.n_levels, 0);
    assert_ok(ident_parse(&arena, STR("a.b"), true, &ident, &err));
    assert_int_equal(ident.n_levels, 2);
    assert_int_equal(ident.name.len, 0);
    assert_code(ident_parse(&arena, str_make(long_name, sizeof long_name), true, &ident, &err),
                TARN_LIMIT);
    arena_release(&arena);
    test_env_done(env);
}

static void makes_path_parts(void **state) {
    (void)state;
    static const char *const CASES[][2] = {
        {"a b", "a b"},   {"a/b", "a%2Fb"}, {"100%", "100%25"},     {"..", "%2E%2E"},
        {".", "%2E"},     {"a.b", "a.b"},   {"x?y#z", "x%3Fy%23z"}, {"\xc3\xa4", "\xc3\xa4"},
        {"it's", "it's"},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_true(str_is(ident_path_part(&arena, str_of(CASES[i][0])), CASES[i][1]));
    }
    arena_release(&arena);
    test_env_done(env);
}

static void parses_file_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t version, sequence; /* -1: not such a name */
    } CASES[] = {
        {"v1.metadata.json", 1, -1},
        {"v12.gz.metadata.json", 12, -1},
        {"v3.metadata.json.gz", 3, -1},
        {"v0.metadata.json", -1, -1},
        {"v.metadata.json", -1, -1},
        {"v1.metadata.json.crc", -1, -1},
        {".v1.metadata.json", -1, -1},
        {"v99999999999999999999.metadata.json", -1, -1},
        {"00007-a-b.metadata.json", -1, 7},
        {"00007-a.gz.metadata.json", -1, 7},
        {"123456-x.metadata.json", -1, 123456},
        {"00007.metadata.json", -1, -1},
        {"snap-1.avro", -1, -1},
        {"", -1, -1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        int64_t n = -1;
        bool ok = folder_parse_version(str_of(CASES[i].name), &n);
        assert_int_equal(ok ? n : -1, CASES[i].version);
        ok = folder_parse_sequence(str_of(CASES[i].name), &n);
        assert_int_equal(ok ? n : -1, CASES[i].sequence);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_names),
        cmocka_unit_test(parses_namespaces),
        cmocka_unit_test(makes_path_parts),
        cmocka_unit_test(parses_file_names),
    };
    err.struct_size = sizeof err;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
