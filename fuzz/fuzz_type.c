/* Fuzz target: types and values as people type them (table/type.h, table/value.h). The input is a
 * type, and after the first newline a text for a value of that type. What parses has a text, which
 * parses to the same.
 * rooms: table */
#include "fuzz.h"

#include "table/value.h"

static void check_value(tarn_env *env, tarn_arena *arena, const tarn_type *type, tarn_str text) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_value value;
    tarn_code code = value_from_text(arena, type, text, &value, &err);
    fuzz_check_error(code, &err);
    if (code != TARN_OK || value.is_null) {
        return;
    }
    tarn_buf out;
    buf_init(&out, env, 0);
    tarn_value again;
    fuzz_check(value_to_text(&value, &out, &err) == TARN_OK);
    fuzz_check(value_from_text(arena, type, buf_str(&out), &again, &err) == TARN_OK);
    fuzz_check(value_eq(&value, &again));
    tarn_str binary;
    fuzz_check(value_to_binary(arena, &value, &binary, &err) == TARN_OK);
    fuzz_check(value_from_binary(type, binary, &again, &err) == TARN_OK);
    fuzz_check(value_eq(&value, &again));
    buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t type_size = newline != NULL ? (size_t)(newline - data) : size;
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_type *type = NULL;
    tarn_code code = type_from_text(&arena, str_make(data, type_size), &type, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        tarn_buf out;
        buf_init(&out, env, 0);
        const tarn_type *again = NULL;
        fuzz_check(type_text(type, &out, &err) == TARN_OK);
        fuzz_check(type_from_text(&arena, buf_str(&out), &again, &err) == TARN_OK);
        fuzz_check(type_same_shape(type, again));
        buf_release(&out);
        if (newline != NULL && !type_is_nested(type)) {
            check_value(env, &arena, type, str_make(newline + 1, size - type_size - 1));
        }
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
