/* Fuzz target: variants (format/variant/variant.h). An even first byte: a length, as many bytes of
 * metadata, the value; an odd one: JSON. What is shown is JSON, from which the same is made again.
 * rooms: format */
#include "fuzz.h"

#include "format/variant/variant.h"

/* The JSON text as a variant and back, or why not. */
static tarn_code through(tarn_env *env, tarn_str text, tarn_buf *out) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    json_value *tree = NULL;
    variant_maker m;
    tarn_buf metadata;
    arena_init(&arena, env);
    variant_maker_init(&m, env);
    buf_init(&metadata, env, 0);
    tarn_code code = json_parse(&arena, text, "text", &tree, &err);
    code = code == TARN_OK ? variant_from_json(&m, tree, &metadata, &err) : code;
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        fuzz_check(variant_size(buf_str(&m.out)) == m.out.len);
        fuzz_check(variant_to_json(buf_str(&metadata), buf_str(&m.out), out, &err) == TARN_OK);
    }
    arena_release(&arena);
    variant_maker_release(&m);
    buf_release(&metadata);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_buf first, second, third;
    buf_init(&first, env, 0);
    buf_init(&second, env, 0);
    buf_init(&third, env, 0);
    tarn_code code = TARN_OK;
    if (data[0] % 2 == 0) {
        const size_t len = data[1] < size - 2 ? data[1] : size - 2;
        code = variant_to_json(str_make(data + 2, len), str_make(data + 2 + len, size - 2 - len),
                               &first, &err);
        fuzz_check_error(code, &err);
        fuzz_check(code != TARN_OK || through(env, buf_str(&first), &second) == TARN_OK);
    } else {
        code = through(env, str_make(data + 1, size - 1), &second);
    }
    if (code == TARN_OK) {
        fuzz_check(through(env, buf_str(&second), &third) == TARN_OK);
        fuzz_check(str_eq(buf_str(&second), buf_str(&third)));
    }
    buf_release(&first);
    buf_release(&second);
    buf_release(&third);
    fuzz_env_done(env);
    return 0;
}
