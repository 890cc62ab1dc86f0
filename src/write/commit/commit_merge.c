/* write/commit/commit_merge.c - small manifests joined, as Iceberg's merge append and row delta do:
 * data and delete manifests apart, those of one spec are packed in order into bins of
 * commit.manifest.target-size-bytes; a bin of several is rewritten as one, unless it holds the
 * newest manifest and fewer than commit.manifest.min-count-to-merge. Manifests with key
 * metadata stay as they are. So does, other than in Iceberg, a large one that is more than all
 * smaller ones of its bin together: a stream would else write it again every min-count commits; as
 * it is, an entry is written again only when its manifest doubles. */
#include "write/commit/commit_int.h"

#define LARGE_PART 32 /* of the target size: manifests below are cheap to write again */

typedef struct merge_bin {
    int32_t *members; /* indexes into the old list */
    int32_t count;
    int64_t bytes;
    bool has_new;
} merge_bin;

typedef struct merge_rule {
    int64_t target_bytes, min_count;
    int32_t newest; /* of a content, in the list: its bin is not full yet, also where this commit
                       adds nothing to it */
} merge_rule;

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

static int32_t find_largest(const tarn_manifest *old, const merge_bin *bin) {
    int32_t largest = 0;
    for (int32_t i = 1; i < bin->count; i++) {
        largest = old[bin->members[i]].length > old[bin->members[largest]].length ? i : largest;
    }
    return largest;
}

/* Those that outweigh what they would be joined with stay as they are, and leave the bin. */
static tarn_code leave_large(commit_attempt *a, const merge_rule *rule, const tarn_manifest *old,
                             merge_bin *bin, tarn_error *err) {
    tarn_code code = TARN_OK;
    while (bin->count > 1) {
        int32_t at = find_largest(old, bin);
        const tarn_manifest *m = &old[bin->members[at]];
        if (m->length < rule->target_bytes / LARGE_PART || m->length <= bin->bytes - m->length) {
            break;
        }
        TRY(produce_add_manifest(a, m, err));
        bin->bytes -= m->length;
        bin->count--;
        memmove(&bin->members[at], &bin->members[at + 1],
                (size_t)(bin->count - at) * sizeof *bin->members);
    }
done:
    return code;
}

static tarn_code close_bin(commit_attempt *a, const merge_rule *rule, const tarn_manifest *old,
                           merge_bin *bin, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool due = bin->count > 1 && (!bin->has_new || bin->count >= rule->min_count);
    if (due) {
        TRY(leave_large(a, rule, old, bin, err));
    }
    if (due && bin->count > 1) {
        code = write_bin(a, old, bin, err);
    } else {
        for (int32_t i = 0; i < bin->count && code == TARN_OK; i++) {
            code = produce_add_manifest(a, &old[bin->members[i]], err);
        }
    }
    bin->count = 0;
    bin->bytes = 0;
    bin->has_new = false;
done:
    return code;
}

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
            TRY(close_bin(a, rule, old, bin, err));
        }
        bin->members[bin->count++] = i;
        bin->bytes += old[i].length;
        bin->has_new =
            bin->has_new || i == rule->newest || old[i].added_snapshot_id == a->work->snapshot_id;
    }
    TRY(close_bin(a, rule, old, bin, err));
done:
    return code;
}

/* All of one content: by spec, then those of specs that the table lacks. */
static tarn_code merge_content(commit_attempt *a, merge_rule *rule, const tarn_manifest *old,
                               int32_t n_old, bool is_deletes, merge_bin *bin, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_manifest like;
    rule->newest = 0;
    while (rule->newest < n_old && old[rule->newest].is_deletes != is_deletes) {
        rule->newest++;
    }
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

tarn_code merge_is_wanted(const commit_attempt *a, bool *out, tarn_error *err) {
    const commit_request *request = a->work->request;
    *out = false;
    if (request->kind != COMMIT_MERGE_APPEND && !request->merge) {
        return TARN_OK;
    }
    return properties_bool(&a->metadata->properties, "commit.manifest-merge.enabled", true, out,
                           err);
}

tarn_code merge_manifests(commit_attempt *a, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_properties *properties = &a->metadata->properties;
    const tarn_manifest *old = a->list;
    int32_t n_old = a->n_list;
    merge_rule rule;
    merge_bin bin;
    memset(&bin, 0, sizeof bin);
    TRY(properties_i64(properties, "commit.manifest.target-size-bytes", MERGE_TARGET_BYTES,
                       &rule.target_bytes, err));
    TRY(properties_i64(properties, "commit.manifest.min-count-to-merge", MERGE_MIN_COUNT,
                       &rule.min_count, err));
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
