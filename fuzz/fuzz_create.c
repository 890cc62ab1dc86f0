/* Fuzz target: a new table as people describe it (metadata_new of iceberg/metadata.h): schema,
 * partitions and order as three lines. What is made is written and parses.
 * rooms: iceberg */
#include "fuzz.h"

#include "iceberg/metadata.h"

static tarn_str take_line(tarn_str *rest) {
    size_t len = rest->len;
    for (size_t i = 0; i < rest->len; i++) {
        if (rest->data[i] == '\n') {
            len = i;
            break;
        }
    }
    tarn_str line = str_make(rest->data, len);
    size_t used = len < rest->len ? len + 1 : len;
    *rest = str_make(rest->data + used, rest->len - used);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    tarn_str rest = str_make(data, size);
    tarn_str schema = take_line(&rest);
    metadata_new_options options;
    memset(&options, 0, sizeof options);
    options.partition_by = take_line(&rest);
    options.sort_by = rest;
    options.location = str_make("/x", 2);
    const tarn_type *root = NULL;
    if (type_from_text(&arena, schema, &root, &err) == TARN_OK && root->kind == TARN_STRUCT) {
        const tarn_metadata *made = NULL;
        options.root = root;
        tarn_code code = metadata_new(&arena, &options, &made, &err);
        fuzz_check_error(code, &err);
        if (code == TARN_OK) {
            tarn_buf out;
            buf_init(&out, env, 0);
            fuzz_check(metadata_write(made, &out, &err) == TARN_OK);
            fuzz_check(metadata_parse(&arena, buf_str(&out), "output", &made, &err) == TARN_OK);
            buf_release(&out);
        }
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
