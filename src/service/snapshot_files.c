/* service/snapshot_files.c - see snapshot_files.h. */
#include "service/snapshot_files.h"

#include "read/scan.h"

static tarn_code read_manifest(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                               const tarn_manifest *manifest, const snapshot_files_taker *taker,
                               tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    io_source *source = NULL;
    manifest_entries entries;
    const manifest_read_options options = {0};
    arena_init(&arena, env);
    TRY(store_open(store, manifest->path, manifest->length, &source, err));
    TRY(manifest_read(&arena, source, m, manifest, &options, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        TRY(taker->take(taker->ctx, &entries.items[i], err));
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    arena_release(&arena);
    return code;
}

tarn_code snapshot_files_read(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              const tarn_snapshot *s, const snapshot_files_taker *taker,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    const tarn_manifest *manifests;
    int32_t n;
    arena_init(&arena, env);
    TRY(snapshot_manifests(&arena, store, s, &manifests, &n, err));
    for (int32_t i = 0; i < n; i++) {
        const tarn_manifest *one = &manifests[i];
        if (one->added_snapshot_id == s->snapshot_id && !one->is_deletes &&
            (one->added_files != 0 || one->deleted_files != 0)) {
            TRY(read_manifest(env, store, m, one, taker, err));
        }
    }
done:
    arena_release(&arena);
    return code;
}
