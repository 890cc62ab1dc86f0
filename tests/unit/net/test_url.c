/* Goal: names become parts of addresses that mean only themselves, and addresses are shown without
 * what is secret in them. Method: fixed cases, and every byte. */
#include "test.h"

#include "net/url.h"

static void encodes(void **state) {
    (void)state;
    static const char *const CASES[][2] = {
        {"", ""},
        {"abc-._~09", "abc-._~09"},
        {"a b", "a%20b"},
        {"a/b", "a%2Fb"},
        {"..", "%2E%2E"},
        {".", "%2E"},
        {"...", "..."},
        {"100%", "100%25"},
        {"\xc3\xa4", "%C3%A4"},
        {"\x1f", "%1F"},
        {"a+b&c=d?#", "a%2Bb%26c%3Dd%3F%23"},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_string_equal(url_encode(&arena, str_of(CASES[i][0])).data, CASES[i][1]);
    }
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        tarn_str out = url_encode(&arena, str_make(&byte, 1));
        assert_true(out.len == 1 || out.len == 3);
        for (size_t i = 0; i < out.len; i++) {
            assert_true(out.data[i] > 0x20 && out.data[i] < 0x7f);
        }
    }
    arena_release(&arena);
    test_env_done(env);
}

static void shows_no_secret(void **state) {
    (void)state;
    static const char *const CASES[][2] = {
        {"http://h:1/a/b?token=x#y", "http://h:1/a/b"},
        {"https://user:p@ss@h/", "https://h/"},
        {"http://u@[::1]:80?x", "http://[::1]:80"},
        {"h/p", "h/p"},
        {"", ""},
        {"http://h#u@x", "http://h"},
    };
    tarn_env *env = test_env();
    tarn_arena arena;
    arena_init(&arena, env);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_string_equal(url_label(&arena, str_of(CASES[i][0])), CASES[i][1]);
    }
    arena_release(&arena);
    test_env_done(env);
}

static void finds_hosts(void **state) {
    (void)state;
    assert_true(str_is(url_host(STR("http://h:1/a")), "h"));
    assert_true(str_is(url_host(STR("http://u:p@h:1/a@b")), "h"));
    assert_true(str_is(url_host(STR("http://[::1]:80/")), "::1"));
    assert_int_equal(url_host(STR("http://")).len, 0);
    assert_int_equal(url_host(STR("http://[::1")).len, 0);
    assert_true(url_is_loopback(STR("http://LocalHost/")));
    assert_true(url_is_loopback(STR("http://127.9.0.1:8")));
    assert_true(url_is_loopback(STR("https://[::1]/")));
    assert_false(url_is_loopback(STR("http://localhost.example/")));
    assert_false(url_is_loopback(STR("http://h/127.0.0.1")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes),
        cmocka_unit_test(shows_no_secret),
        cmocka_unit_test(finds_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
