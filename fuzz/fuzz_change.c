/* Fuzz target: changes of a table as the REST catalog sends them (iceberg/change.h), parsed, said
 * again, and applied to a table. What they make is metadata that is written and parses.
 * rooms: iceberg */
#include "base_table.h"
#include "fuzz.h"

#include "iceberg/change.h"

static void apply_changes(tarn_env *env, tarn_arena *arena, const tarn_change_set *set) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_metadata *made = NULL;
    const tarn_metadata *again = NULL;
    tarn_code code = change_apply(arena, base_table(arena), set, 1000, &made, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        tarn_buf out;
        buf_init(&out, env, 0);
        fuzz_check(metadata_write(made, &out, &err) == TARN_OK);
        fuzz_check(metadata_parse(arena, buf_str(&out), "output", &again, &err) == TARN_OK);
        buf_release(&out);
    }
    made = NULL;
    code = change_apply(arena, NULL, set, 1000, &made, &err); /* as a new table */
    fuzz_check_error(code, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    json_value *json = NULL;
    tarn_change_set set;
    memset(&set, 0, sizeof set);
    if (json_parse(&arena, str_make(data, size), "input", &json, &err) == TARN_OK) {
        tarn_code code = change_set_from_json(&arena, json, &set, &err);
        fuzz_check_error(code, &err);
        if (code == TARN_OK) {
            tarn_buf out;
            json_writer w;
            buf_init(&out, env, 0);
            json_begin(&w, &out, false, &err);
            fuzz_check(change_set_put_json(&set, &w, &err) == TARN_OK);
            fuzz_check(json_end(&w) == TARN_OK);
            fuzz_check(json_parse(&arena, buf_str(&out), "output", &json, &err) == TARN_OK);
            fuzz_check(change_set_from_json(&arena, json, &set, &err) == TARN_OK);
            buf_release(&out);
            apply_changes(env, &arena, &set);
        }
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
