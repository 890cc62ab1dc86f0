/* write/commit/commit_merge.c - small manifests joined, as Iceberg's merge append and row delta do:
 * data and delete manifests apart, those of one spec are packed in order into bins of
 * commit.manifest.target-size-bytes; a bin of several is rewritten as one, unless it holds this
 * commit's new manifest and fewer than commit.manifest.min-count-to-merge. Manifests with key
 * metadata stay as they are. */
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
    /* what this snapshot removed stays told; what older ones removed is not its to tell */
    TRY(produce_read_manifest(a, &arena, manifest, MANIFEST_WANT_ALL, !is_new, &entries, err));
    for (int64_t i = 0; i < entries.count; i++) {
        tarn_entry entry = entries.items[i];
        if (!is_new) {
            entry.status = TARN_ENTRY_EXISTING;
        } else if (entry.status == TARN_ENTRY_ADDED) {
            entry.sequence_number = -1;
            entry.file_sequence_number = -1;
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
    TRY(produce_manifest_writer(a, spec, old[bin->members[0]].is_deletes, &path, &writer, err));
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

typedef struct merge_rule {
    int64_t target_bytes, min_count;
} merge_rule;

/* Manifests of one content and spec. */
static tarn_code merge_some(commit_attempt *a, const merge_rule *rule, const tarn_manifest *old,
                            int32_t n_old, const tarn_manifest *like, merge_bin *bin,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < n_old; i++) {
        if (old[i].is_deletes != like->is_deletes || old[i].spec_id != like->spec_id) {
            continue;
        }
        if (old[i].key_metadata.data != NULL) { /* encrypted, and merged it would not be: B25 */
            TRY(produce_add_manifest(a, &old[i], err));
            continue;
        }
        if (bin->count > 0 && bin->bytes + old[i].length > rule->target_bytes) {
            TRY(close_bin(a, old, bin, rule->min_count, err));
        }
        bin->members[bin->count++] = i;
        bin->bytes += old[i].length;
        bin->has_new = bin->has_new || old[i].added_snapshot_id == a->work->snapshot_id;
    }
    TRY(close_bin(a, old, bin, rule->min_count, err));
done:
    return code;
}

/* All of one content: by spec, then those of specs that the table lacks. */
static tarn_code merge_content(commit_attempt *a, const merge_rule *rule, const tarn_manifest *old,
                               int32_t n_old, bool is_deletes, merge_bin *bin, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_manifest like;
    memset(&like, 0, sizeof like);
    like.is_deletes = is_deletes;
    for (int32_t i = 0; i < a->metadata->n_specs; i++) {
        like.spec_id = a->metadata->specs[i]->spec_id;
        TRY(merge_some(a, rule, old, n_old, &like, bin, err));
    }
    for (int32_t i = 0; i < n_old; i++) {
        if (old[i].is_deletes == is_deletes &&
            metadata_spec_by_id(a->metadata, old[i].spec_id) == NULL) {
            TRY(produce_add_manifest(a, &old[i], err));
        }
    }
done:
    return code;
}

tarn_code merge_manifests(commit_attempt *a, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_properties *properties = &a->metadata->properties;
    bool enabled;
    const tarn_manifest *old = a->list;
    int32_t n_old = a->n_list;
    merge_rule rule;
    merge_bin bin;
    memset(&bin, 0, sizeof bin);
    TRY(properties_bool(properties, "commit.manifest-merge.enabled", true, &enabled, err));
    if (!enabled) {
        return TARN_OK;
    }
    TRY(properties_i64(properties, "commit.manifest.target-size-bytes", TARGET_BYTES,
                       &rule.target_bytes, err));
    TRY(properties_i64(properties, "commit.manifest.min-count-to-merge", MIN_COUNT, &rule.min_count,
                       err));
    bin.members = ARENA_ARRAY(&a->arena, int32_t, (size_t)n_old + 1);
    if (bin.members == NULL) {
        return err_nomem(err);
    }
    a->list = NULL;
    a->n_list = 0;
    a->list_cap = 0;
    TRY(merge_content(a, &rule, old, n_old, false, &bin, err));
    TRY(merge_content(a, &rule, old, n_old, true, &bin, err));
done:
    return code;
}
