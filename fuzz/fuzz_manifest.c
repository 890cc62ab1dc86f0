/* Fuzz target: manifests (iceberg/manifest.h), read as a table sees them whose schema and spec are
 * those of the seeds.
 * rooms: iceberg */
#include "base_table.h"
#include "fuzz.h"

#include "iceberg/manifest.h"

static void check_entries(const manifest_entries *entries) {
    for (int64_t i = 0; i < entries->count; i++) {
        const tarn_file *file = &entries->items[i].file;
        fuzz_check(file->n_partition >= 0 && (file->n_partition == 0 || file->partition != NULL));
        fuzz_check(file->path.len == 0 || file->path.data != NULL);
        fuzz_check(file->record_count >= 0);
        uint8_t sum = 0; /* touches every byte that an entry holds */
        for (int32_t k = 0; k < file->n_lower; k++) {
            for (size_t b = 0; b < file->lower[k].bytes.len; b++) {
                sum = (uint8_t)(sum + (uint8_t)file->lower[k].bytes.data[b]);
            }
        }
        for (size_t b = 0; b < file->path.len; b++) {
            sum = (uint8_t)(sum + (uint8_t)file->path.data[b]);
        }
        for (int32_t k = 0; k < file->n_partition; k++) {
            (void)value_hash(&file->partition[k]);
        }
        (void)sum;
    }
}

static void read_manifest(tarn_env *env, const uint8_t *data, size_t size, unsigned want) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    arena_init(&arena, env);
    const tarn_metadata *metadata = base_table(&arena);
    io_source *source = NULL;
    manifest_read_options options = {.want = want, .live_only = want == 0};
    manifest_entries entries = {0};
    fuzz_check(io_source_memory(env, "input", data, size, &source, &err) == TARN_OK);
    tarn_code code = manifest_read(&arena, source, metadata, NULL, &options, &entries, &err);
    fuzz_check_error(code, &err);
    if (code == TARN_OK) {
        check_entries(&entries);
    }
    source->close(source);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tarn_env *env = fuzz_env();
    read_manifest(env, data, size, MANIFEST_WANT_ALL);
    read_manifest(env, data, size, 0);
    fuzz_env_done(env);
    return 0;
}
