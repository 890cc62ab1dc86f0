/* Fuzz target: manifest lists (iceberg/manifest.h). What was read is written and read again.
 * rooms: iceberg */
#include "fuzz.h"

#include "iceberg/manifest.h"

static tarn_code read_list(tarn_env *env, tarn_arena *arena, tarn_str bytes,
                           const tarn_manifest **out, int32_t *n, tarn_error *err) {
    io_source *source = NULL;
    fuzz_check(io_source_memory(env, "input", bytes.data, bytes.len, &source, err) == TARN_OK);
    tarn_code code = manifest_list_read(arena, source, out, n, err);
    source->close(source);
    fuzz_check_error(code, err);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_manifest *manifests = NULL;
    int32_t n = 0;
    if (read_list(env, &arena, str_make(data, size), &manifests, &n, &err) == TARN_OK) {
        const tarn_manifest *again = NULL;
        int32_t n_again = 0;
        io_sink *sink = NULL;
        tarn_buf out;
        manifest_list_options options = {.format_version = 2,
                                         .snapshot_id = 1,
                                         .parent_id = -1,
                                         .sequence_number = 1,
                                         .first_row_id = -1};
        buf_init(&out, env, 0);
        fuzz_check(io_sink_memory(env, &out, &sink, &err) == TARN_OK);
        tarn_code code = manifest_list_write(env, &options, manifests, n, sink, &err);
        fuzz_check_error(code, &err);
        if (code != TARN_OK) {
            sink->abort(sink);
        } else {
            fuzz_check(sink->finish(sink, &err) == TARN_OK);
            fuzz_check(read_list(env, &arena, buf_str(&out), &again, &n_again, &err) == TARN_OK);
            fuzz_check(n_again == n);
        }
        buf_release(&out);
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
