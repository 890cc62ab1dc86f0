/* Fuzz target: JSON documents (base/json.h). What parses is written, parses again, and is written
 * the same.
 * rooms: base */
#include "fuzz.h"

#include "base/json.h"

static void write_value(tarn_buf *out, const json_value *value, tarn_error *err) {
    json_writer w;
    json_begin(&w, out, false, err);
    json_put_value(&w, value);
    fuzz_check(json_end(&w) == TARN_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    json_value *value = NULL;
    tarn_code code = json_parse(&arena, str_make(data, size), "input", &value, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        tarn_buf once;
        tarn_buf twice;
        json_value *again = NULL;
        buf_init(&once, env, 0);
        buf_init(&twice, env, 0);
        write_value(&once, value, &err);
        fuzz_check(json_parse(&arena, buf_str(&once), "output", &again, &err) == TARN_OK);
        write_value(&twice, again, &err);
        fuzz_check(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
        buf_release(&once);
        buf_release(&twice);
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
