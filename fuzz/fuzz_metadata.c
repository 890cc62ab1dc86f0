/* Fuzz target: table metadata (iceberg/metadata.h). What parses is written; what was written parses
 * and is written the same.
 * rooms: iceberg */
#include "fuzz.h"

#include "iceberg/metadata.h"

/* Every look-up that a reader does. */
static void look_around(tarn_env *env, tarn_arena *arena, const tarn_metadata *m) {
    tarn_error err = TARN_ERROR_INIT;
    const tarn_schema *schema = metadata_schema(m);
    fuzz_check(schema != NULL && schema->root != NULL);
    const tarn_snapshot *snapshot = metadata_current_snapshot(m);
    fuzz_check(snapshot == NULL || metadata_snapshot_schema(m, snapshot) != NULL);
    (void)metadata_snapshot_at(m, INT64_MAX);
    (void)metadata_sort_order(m);
    const tarn_spec *spec = metadata_spec(m);
    fuzz_check(spec != NULL);
    const tarn_type *type = NULL;
    tarn_code code = spec_partition_type(arena, spec, m, &type, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK && spec->n_fields > 0) {
        tarn_buf path;
        buf_init(&path, env, 0);
        tarn_value *nulls = ARENA_ARRAY(arena, tarn_value, (size_t)spec->n_fields);
        fuzz_check(nulls != NULL && type->n_fields == spec->n_fields);
        for (int32_t i = 0; i < spec->n_fields; i++) {
            nulls[i] = value_null(type->fields[i].type);
        }
        code = spec_partition_path(spec, nulls, &path, &err);
        fuzz_check_error(code, &err);
        buf_release(&path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_metadata *metadata = NULL;
    tarn_code code = metadata_parse(&arena, str_make(data, size), "input", &metadata, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        tarn_buf once;
        tarn_buf twice;
        buf_init(&once, env, 0);
        buf_init(&twice, env, 0);
        look_around(env, &arena, metadata);
        fuzz_check(metadata_write(metadata, &once, &err) == TARN_OK);
        fuzz_check(metadata_parse(&arena, buf_str(&once), "output", &metadata, &err) == TARN_OK);
        fuzz_check(metadata_write(metadata, &twice, &err) == TARN_OK);
        fuzz_check(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
        buf_release(&once);
        buf_release(&twice);
    }
    arena_release(&arena);
    fuzz_env_done(env);
    return 0;
}
