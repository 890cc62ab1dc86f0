/* Fuzz target: filters as people type them (table/expr.h): parsed, said again as text, bound to a
 * schema that has every kind.
 * rooms: table */
#include "fuzz.h"

#include "table/expr.h"

static const char schema_text[] =
    "struct<a: int, b: long, c: string, d: double, e: float, f: boolean, g: date, h: timestamp, "
    "i: timestamptz, j: time, k: decimal(9, 2), l: uuid, m: binary, n: fixed[4], s: struct<x: int, "
    "y: string>, t: list<int>>";

/* Text of what text says, or false where parentheses that were added pass the limit of nesting. */
static bool say_again(tarn_arena *arena, tarn_buf *text) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_expr *expr = NULL;
    tarn_code code = expr_parse(arena, buf_str(text), &expr, &err);
    fuzz_check(code == TARN_OK || code == TARN_LIMIT);
    buf_reset(text);
    fuzz_check(code != TARN_OK || expr_text(expr, text, &err) == TARN_OK);
    return code == TARN_OK;
}

/* A number of many digits is rounded when it is first said; from then on nothing changes. */
static void check_text(tarn_env *env, tarn_arena *arena, const tarn_expr *expr) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf text;
    tarn_buf before;
    buf_init(&text, env, 0);
    buf_init(&before, env, 0);
    fuzz_check(expr_text(expr, &text, &err) == TARN_OK);
    if (say_again(arena, &text)) {
        fuzz_check(buf_append_str(&before, buf_str(&text), &err) == TARN_OK);
        if (say_again(arena, &text)) {
            fuzz_check(text.len == before.len && memcmp(text.data, before.data, text.len) == 0);
        }
    }
    buf_release(&text);
    buf_release(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_expr *expr = NULL;
    tarn_code code = expr_parse(&arena, str_make(data, size), &expr, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        check_text(env, &arena, expr);
        const tarn_type *root = NULL;
        const tarn_expr *bound = NULL;
        int32_t next_id = 1;
        fuzz_check(type_from_text(&arena, str_make(schema_text, sizeof schema_text - 1), &root,
                                  &err) == TARN_OK);
        root = type_assign_ids(&arena, root, &next_id);
        fuzz_check(root != NULL);
        code = expr_bind(&arena, expr, root, false, &bound, &err);
        fuzz_check_error(code, &err);
        if (code == TARN_OK) {
            tarn_buf text;
            buf_init(&text, env, 0);
            fuzz_check(expr_text(bound, &text, &err) == TARN_OK);
            fuzz_check(expr_not(&arena, bound) != NULL);
            buf_release(&text);
        }
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
