/* Fuzz target: filters as clients of server-side scan planning send them (iceberg/scan_json.h),
 * read, bound to a table, said again and read again: they mean the same.
 * rooms: iceberg */
#include "base_table.h"
#include "fuzz.h"

#include "iceberg/scan_json.h"

/* The bound filter's text in out; false: it was refused. */
static bool read(tarn_arena *arena, const json_value *json, const tarn_type *root, bool *exact,
                 const tarn_expr **bound, tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *expr = NULL;
    tarn_code code = filter_from_json(arena, json, root, true, &expr, exact, &err);
    if (code == TARN_OK) {
        code = expr_bind(arena, expr, root, true, bound, &err);
    }
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        fuzz_check(expr_text(*bound, out, &err) == TARN_OK);
    }
    return code == TARN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    json_value *json = NULL;
    if (json_parse(&arena, str_make(data, size), "input", &json, &err) == TARN_OK) {
        const tarn_type *root = metadata_schema(base_table(&arena))->root;
        const tarn_expr *bound = NULL, *again = NULL;
        tarn_buf text, json_text, second;
        json_writer w;
        bool exact = false;
        buf_init(&text, env, 0);
        buf_init(&json_text, env, 0);
        buf_init(&second, env, 0);
        if (read(&arena, json, root, &exact, &bound, &text) && exact) {
            json_begin(&w, &json_text, false, &err);
            filter_put_json(bound, &w);
            fuzz_check(json_end(&w) == TARN_OK);
            fuzz_check(json_parse(&arena, buf_str(&json_text), "output", &json, &err) == TARN_OK);
            fuzz_check(read(&arena, json, root, &exact, &again, &second) && exact);
            fuzz_check(str_eq(buf_str(&text), buf_str(&second)));
        }
        buf_release(&second);
        buf_release(&json_text);
        buf_release(&text);
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
