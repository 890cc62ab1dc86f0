/* Goal: JSON texts are read exactly as RFC 8259 says, wrong ones are refused with line and column,
 * and what the writer makes is read back the same.
 * Method: tables of texts with their trees or their messages. */
#include "test.h"

#include "base/json.h"

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
} fixture;

static void setup(fixture *f) {
    f->env = test_env();
    arena_init(&f->arena, f->env);
}
static void teardown(fixture *f) {
    arena_release(&f->arena);
    test_env_done(f->env);
}

static void test_reads_what_it_writes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1e5",
        "-12.50E-3",
        "\"\"",
        "[]",
        "{}",
        "[1,2,[3,[]],{}]",
        "{\"a\":{\"b\":[null,true]},\"c\":\"x\"}",
        "\"\xC3\xA9\\\"\\\\\\b\\f\\n\\r\\t\\u0001/\"",
        "123456789012345678901234567890.123456789",
    };
    fixture f;
    setup(&f);
    tarn_error err = TARN_ERROR_INIT;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_value *root = NULL;
        assert_ok(json_parse(&f.arena, str_of(texts[i]), "t", &root, &err));
        tarn_buf out;
        buf_init(&out, f.env, 0);
        json_writer w;
        json_begin(&w, &out, false, &err);
        json_put_value(&w, root);
        assert_ok(json_end(&w));
        assert_int_equal(out.len, strlen(texts[i]));
        assert_memory_equal(out.data, texts[i], out.len);
        buf_release(&out);
    }
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_it_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
