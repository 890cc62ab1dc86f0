/* sink/sink_history.c - what a branch's snapshots say about a sink. Also those of Flink's sink,
 * whose numbering means the same, so that its job can be taken over under its own id. */
#include "base/map.h"
#include "read/scan.h"
#include "sink/committer.h"

#define FLINK_JOB        "flink.job-id"
#define FLINK_OPERATOR   "flink.operator-id"
#define FLINK_CHECKPOINT "flink.max-committed-checkpoint-id"

static bool is_ours(const tarn_snapshot *s, const char *id_key, const char *operator_key,
                    tarn_str sink_id, tarn_str operator_id) {
    tarn_str value;
    return properties_get(&s->summary, id_key, &value) && str_eq(value, sink_id) &&
           (!properties_get(&s->summary, operator_key, &value) || str_eq(value, operator_id));
}

static tarn_code read_snapshot(const tarn_snapshot *s, const char *checkpoint_key,
                               sink_history *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t checkpoint;
    int64_t epoch;
    TRY(properties_i64(&s->summary, checkpoint_key, 0, &checkpoint, err));
    TRY(properties_i64(&s->summary, SINK_KEY_EPOCH, 0, &epoch, err));
    if (checkpoint > out->checkpoint) {
        out->checkpoint = checkpoint;
        out->snapshot_id = s->snapshot_id;
    }
    out->epoch = epoch > out->epoch ? epoch : out->epoch;
done:
    if (code != TARN_OK) {
        (void)err_add(err, code, "summary of snapshot %lld", (long long)s->snapshot_id);
    }
    return code;
}

tarn_code sink_history_read(const tarn_metadata *m, tarn_str branch, tarn_str sink_id,
                            tarn_str operator_id, bool newest_only, sink_history *out,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    memset(out, 0, sizeof *out);
    out->snapshot_id = TARN_NO_SNAPSHOT;
    const tarn_snapshot *s = metadata_head(m, branch);
    for (int32_t steps = 0; s != NULL && steps <= m->n_snapshots; steps++) {
        bool ours = is_ours(s, SINK_KEY_ID, SINK_KEY_OPERATOR, sink_id, operator_id);
        bool flink = !ours && is_ours(s, FLINK_JOB, FLINK_OPERATOR, sink_id, operator_id);
        if (ours || flink) {
            TRY(read_snapshot(s, ours ? SINK_KEY_CHECKPOINT : FLINK_CHECKPOINT, out, err));
            if (newest_only) {
                break;
            }
        }
        s = metadata_parent(m, s);
    }
done:
    return code;
}

bool sink_history_reaches(const tarn_metadata *m, tarn_str branch, int64_t snapshot_id) {
    const tarn_snapshot *s = metadata_head(m, branch);
    if (s == NULL) {
        return snapshot_id == TARN_NO_SNAPSHOT;
    }
    for (int32_t steps = 0; steps <= m->n_snapshots; steps++) {
        if (s->snapshot_id == snapshot_id) {
            return true;
        }
        if (s->parent_id == TARN_NO_SNAPSHOT) {
            return snapshot_id == TARN_NO_SNAPSHOT;
        }
        s = metadata_parent(m, s);
        if (s == NULL) {
            return false;
        }
    }
    return false;
}

typedef struct file_search {
    tarn_env *env;
    tarn_store *store;
    const tarn_metadata *metadata;
    tarn_arena arena;
    tarn_map wanted; /* paths of the delta */
    tarn_map seen;   /* manifests that were read */
    bool found;
} file_search;

static tarn_code search_manifest(file_search *f, const tarn_manifest *manifest, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    io_source *source = NULL;
    manifest_read_options options = {0};
    manifest_entries entries;
    arena_init(&arena, f->env);
    TRY(store_open(f->store, manifest->path, manifest->length, &source, err));
    TRY(manifest_read(&arena, source, f->metadata, manifest, &options, &entries, err));
    for (int64_t i = 0; i < entries.count && !f->found; i++) {
        f->found = map_find(&f->wanted, entries.items[i].file.path) != NULL;
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    arena_release(&arena);
    return code;
}

static tarn_code search_snapshot(file_search *f, const tarn_snapshot *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_manifest *manifests;
    int32_t n;
    TRY(snapshot_manifests(&f->arena, f->store, s, &manifests, &n, err));
    for (int32_t i = 0; i < n && !f->found; i++) {
        bool added;
        if (map_put(&f->seen, manifests[i].path, &added) == NULL) {
            return err_nomem(err);
        }
        if (added) {
            TRY(search_manifest(f, &manifests[i], err));
        }
    }
done:
    return code;
}

static tarn_code want_files(file_search *f, const tarn_file *files, int32_t n, tarn_error *err) {
    for (int32_t i = 0; i < n; i++) {
        if (map_put(&f->wanted, files[i].path, NULL) == NULL) {
            return err_nomem(err);
        }
    }
    return TARN_OK;
}

tarn_code sink_history_has_files(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                                 const sink_delta *delta, bool *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_search f;
    memset(&f, 0, sizeof f);
    f.env = env;
    f.store = store;
    f.metadata = m;
    arena_init(&f.arena, env);
    map_init(&f.wanted, &f.arena);
    map_init(&f.seen, &f.arena);
    TRY(want_files(&f, delta->written.files, delta->written.n_files, err));
    TRY(want_files(&f, delta->written.deletes, delta->written.n_deletes, err));
    for (int32_t i = m->n_snapshots - 1; i >= 0 && !f.found; i--) {
        TRY(search_snapshot(&f, m->snapshots[i], err));
    }
    *out = f.found;
done:
    arena_release(&f.arena);
    return code;
}
