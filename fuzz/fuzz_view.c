/* Fuzz target: documents of views and changes of them (iceberg/view.h). A document that parses is
 * written and parses again; changes are applied to it, or to nothing. The input is an object with
 * "view" and "change", either of which may be missing.
 * rooms: iceberg */
#include "fuzz.h"

#include "iceberg/view.h"

/* What is written parses, and is written the same. */
static const view_metadata *round_trip(tarn_env *env, tarn_arena *arena,
                                       const view_metadata *view) {
    tarn_error err = TARN_ERROR_INIT;
    const view_metadata *again = NULL;
    tarn_buf out, second;
    buf_init(&out, env, 0);
    buf_init(&second, env, 0);
    fuzz_check(view_write(view, &out, &err) == TARN_OK);
    fuzz_check(view_parse(arena, buf_str(&out), "output", &again, &err) == TARN_OK);
    fuzz_check(view_write(again, &second, &err) == TARN_OK);
    fuzz_check(str_eq(buf_str(&out), buf_str(&second)));
    buf_release(&second);
    buf_release(&out);
    return again;
}

static const view_metadata *read_view(tarn_env *env, tarn_arena *arena, const json_value *json) {
    tarn_error err = TARN_ERROR_INIT;
    const view_metadata *view = NULL;
    tarn_buf text;
    json_writer w;
    if (json == NULL) {
        return NULL;
    }
    buf_init(&text, env, 0);
    json_begin(&w, &text, false, &err);
    json_put_value(&w, json);
    fuzz_check(json_end(&w) == TARN_OK);
    tarn_code code = view_parse(arena, buf_str(&text), "input", &view, &err);
    fuzz_check_error(code, &err);
    buf_release(&text);
    return code == TARN_OK ? round_trip(env, arena, view) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    json_value *json = NULL;
    view_change_set set;
    if (json_parse(&arena, str_make(data, size), "input", &json, &err) == TARN_OK) {
        const view_metadata *base = read_view(env, &arena, json_get(json, "view"));
        const json_value *change = json_get(json, "change");
        tarn_code code =
            change != NULL ? view_changes_from_json(&arena, change, &set, &err) : TARN_INVALID;
        if (code == TARN_OK) {
            const view_metadata *made = NULL;
            code = view_apply(&arena, base, &set, 1000, &made, &err);
            fuzz_check_error(code, &err);
            if (code == TARN_OK) {
                (void)round_trip(env, &arena, made);
            }
        }
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
