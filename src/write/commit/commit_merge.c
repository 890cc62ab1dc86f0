/* write/commit/commit_merge.c - small data manifests joined, as Iceberg's merge append does:
 * manifests of one spec are packed in order into bins of commit.manifest.target-size-bytes; a bin
 * of several is rewritten as one, unless it holds this commit's new manifest and fewer than
 * commit.manifest.min-count-to-merge. Manifests with key metadata stay as they are. */
#include "write/commit/commit_int.h"

#define TARGET_BYTES (8 << 20)
#define MIN_COUNT    100

typedef struct merge_bin {
    int32_t *members; /* indexes into the old list */
    int32_t count;
    int64_t bytes;
    bool has_new;
} merge_bin;

static tarn_code add_entries(commit_attempt *a, const tarn_manifest *manifest,
                             manifest_writer *writer, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    manifest_entries entries;
    bool is_new = manifest->added_snapshot_id == a->work->snapshot_id;
    arena_init(&arena, a->work->env);
    TRY(produce_read_manifest(a, &arena, manifest, MANIFEST_WANT_ALL, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        tarn_entry entry = entries.items[i];
        if (is_new) {
            entry.status = TARN_ENTRY_ADDED;
            entry.sequence_number = -1;
            entry.file_sequence_number = -1;
        } else {
            entry.status = TARN_ENTRY_EXISTING;
        }
        TRY(manifest_writer_add(writer, &entry, err));
    }
done:
    arena_release(&arena);
    return code;
}

static tarn_code write_bin(commit_attempt *a, const tarn_manifest *old, const merge_bin *bin,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    manifest_writer *writer = NULL;
    tarn_str path;
    tarn_manifest merged;
    const tarn_spec *spec = metadata_spec_by_id(a->metadata, old[bin->members[0]].spec_id);
    if (spec == NULL) {
        return err_set(err, TARN_CORRUPT,
                       "manifest %.*s has partition spec %d, which the table lacks",
                       STR_ARG(old[bin->members[0]].path), old[bin->members[0]].spec_id);
    }
    TRY(produce_manifest_writer(a, spec, false, &path, &writer, err));
    for (int32_t i = 0; i < bin->count; i++) {
        TRY(add_entries(a, &old[bin->members[i]], writer, err));
    }
    manifest_writer *closing = writer;
    writer = NULL;
    TRY(manifest_writer_close(closing, &a->arena, &merged, err));
    TRY(produce_add_manifest(a, &merged, err));
done:
    manifest_writer_abort(writer);
    return code;
}

static tarn_code close_bin(commit_attempt *a, const tarn_manifest *old, merge_bin *bin,
                           int64_t min_count, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (bin->count > 1 && (!bin->has_new || bin->count >= min_count)) {
        code = write_bin(a, old, bin, err);
    } else {
        for (int32_t i = 0; i < bin->count && code == TARN_OK; i++) {
            code = produce_add_manifest(a, &old[bin->members[i]], err);
        }
    }
    bin->count = 0;
    bin->bytes = 0;
    bin->has_new = false;
    return code;
}

static tarn_code merge_spec(commit_attempt *a, const tarn_manifest *old, int32_t n_old,
                            int32_t spec_id, merge_bin *bin, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t target;
    int64_t min_count;
    TRY(properties_i64(&a->metadata->properties, "commit.manifest.target-size-bytes", TARGET_BYTES,
                       &target, err));
    TRY(properties_i64(&a->metadata->properties, "commit.manifest.min-count-to-merge", MIN_COUNT,
                       &min_count, err));
    for (int32_t i = 0; i < n_old; i++) {
        if (old[i].is_deletes || old[i].spec_id != spec_id) {
            continue;
        }
        if (old[i].key_metadata.data != NULL) { /* encrypted, and merged it would not be: B25 */
            TRY(produce_add_manifest(a, &old[i], err));
            continue;
        }
        if (bin->count > 0 && bin->bytes + old[i].length > target) {
            TRY(close_bin(a, old, bin, min_count, err));
        }
        bin->members[bin->count++] = i;
        bin->bytes += old[i].length;
        bin->has_new = bin->has_new || old[i].added_snapshot_id == a->work->snapshot_id;
    }
    TRY(close_bin(a, old, bin, min_count, err));
done:
    return code;
}

tarn_code merge_manifests(commit_attempt *a, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool enabled;
    const tarn_manifest *old = a->list;
    int32_t n_old = a->n_list;
    merge_bin bin;
    memset(&bin, 0, sizeof bin);
    TRY(properties_bool(&a->metadata->properties, "commit.manifest-merge.enabled", true, &enabled,
                        err));
    if (!enabled) {
        return TARN_OK;
    }
    bin.members = ARENA_ARRAY(&a->arena, int32_t, (size_t)n_old + 1);
    if (bin.members == NULL) {
        return err_nomem(err);
    }
    a->list = NULL;
    a->n_list = 0;
    a->list_cap = 0;
    for (int32_t i = 0; i < a->metadata->n_specs; i++) {
        TRY(merge_spec(a, old, n_old, a->metadata->specs[i]->spec_id, &bin, err));
    }
    for (int32_t i = 0; i < n_old; i++) {
        if (old[i].is_deletes || metadata_spec_by_id(a->metadata, old[i].spec_id) == NULL) {
            TRY(produce_add_manifest(a, &old[i], err));
        }
    }
done:
    return code;
}
