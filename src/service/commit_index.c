/* service/commit_index.c - see commit_index.h. */
#include "service/commit_index.h"

#include "write/commit/commit.h"

static tarn_str first_of(tarn_str s, size_t len) {
    return str_make(s.data != NULL ? s.data : "", s.len < len ? s.len : len);
}

static void init_generation(commit_index *index, int which) {
    arena_init(&index->generations[which].arena, index->env);
    map_init(&index->generations[which].ids, &index->generations[which].arena);
}

void commit_index_init(commit_index *index, tarn_env *env) {
    memset(index, 0, sizeof *index);
    index->env = env;
    index->newest = TARN_NO_SNAPSHOT;
    init_generation(index, 0);
    init_generation(index, 1);
}

void commit_index_release(commit_index *index) {
    arena_release(&index->generations[0].arena);
    arena_release(&index->generations[1].arena);
}

/* The newer generation becomes the older one. Its map names its arena, which moves with it. */
static void turn_over(commit_index *index) {
    arena_release(&index->generations[1].arena);
    arena_move(&index->generations[1].arena, &index->generations[0].arena);
    index->generations[1].ids = index->generations[0].ids;
    index->generations[1].ids.arena = &index->generations[1].arena;
    init_generation(index, 0);
}

static tarn_code add_id(commit_index *index, tarn_str id, int64_t snapshot_id, tarn_error *err) {
    bool added;
    if (index->generations[0].ids.count >= INDEX_IDS) {
        turn_over(index);
    }
    tarn_str kept = arena_str(&index->generations[0].arena, id);
    map_entry *e = kept.data != NULL ? map_put(&index->generations[0].ids, kept, &added) : NULL;
    if (e == NULL) {
        return err_nomem(err);
    }
    e->value.i64 = snapshot_id;
    return TARN_OK;
}

static tarn_code add_snapshot(commit_index *index, tarn_store *store, const tarn_snapshot *s,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_str text, id;
    arena_init(&arena, index->env);
    if (properties_get(&s->summary, "tarn.commit-id", &id)) {
        TRY(add_id(index, id, s->snapshot_id, err));
    }
    TRY(commit_shared_ids(&arena, store, s, &text, err));
    while (text.len > 0 && str_split(&text, '\n', &id)) {
        if (id.len > 0) {
            TRY(add_id(index, id, s->snapshot_id, err));
        }
    }
done:
    arena_release(&arena);
    return code;
}

tarn_code commit_index_follow(commit_index *index, tarn_store *store, const tarn_metadata *m,
                              tarn_error *err) {
    tarn_code code = TARN_OK;
    if (!str_is(first_of(m->table_uuid, sizeof index->uuid - 1), index->uuid)) {
        tarn_str uuid = first_of(m->table_uuid, sizeof index->uuid - 1);
        commit_index_release(index);
        commit_index_init(index, index->env);
        memcpy(index->uuid, uuid.data, uuid.len);
    }
    int32_t first = m->n_snapshots;
    int64_t ids = 0;
    /* New snapshots stand at the end. One of a shared commit counts as many. */
    while (first > 0 && m->snapshots[first - 1]->snapshot_id != index->newest && ids < INDEX_IDS) {
        tarn_str text;
        int64_t shared = 0;
        const tarn_snapshot *s = m->snapshots[--first];
        bool counted = properties_get(&s->summary, COMMIT_SHARED_COUNT, &text) &&
                       str_to_i64(text, &shared) && shared > 0;
        ids += counted ? shared : 1;
    }
    for (int32_t i = first; i < m->n_snapshots; i++) {
        TRY(add_snapshot(index, store, m->snapshots[i], err));
        index->newest = m->snapshots[i]->snapshot_id;
    }
done:
    return code;
}

static bool counts(const tarn_metadata *m, tarn_str branch, int64_t id) {
    const tarn_ref *ref = metadata_ref(m, branch);
    return metadata_snapshot_by_id(m, id) == NULL ||
           (ref != NULL &&
            (ref->snapshot_id == id || metadata_is_ancestor(m, ref->snapshot_id, id)));
}

int64_t commit_index_find(const commit_index *index, const tarn_metadata *m, tarn_str branch,
                          tarn_str id) {
    for (int i = 0; i < 2; i++) {
        const map_entry *e = map_find(&index->generations[i].ids, id);
        if (e != NULL && counts(m, branch, e->value.i64)) {
            return e->value.i64;
        }
    }
    return TARN_NO_SNAPSHOT;
}

tarn_code commit_index_search(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                              tarn_str branch, tarn_str id, int64_t *out, tarn_error *err) {
    const tarn_ref *ref = metadata_ref(m, branch);
    const tarn_snapshot *s = ref != NULL ? metadata_snapshot_by_id(m, ref->snapshot_id) : NULL;
    *out = TARN_NO_SNAPSHOT;
    for (int32_t steps = 0; s != NULL && *out == TARN_NO_SNAPSHOT && steps < m->n_snapshots;
         steps++) {
        tarn_arena arena;
        tarn_str text, piece;
        bool found = properties_get(&s->summary, "tarn.commit-id", &piece) && str_eq(piece, id);
        arena_init(&arena, env);
        tarn_code code = commit_shared_ids(&arena, store, s, &text, err);
        while (!found && code == TARN_OK && text.len > 0 && str_split(&text, '\n', &piece)) {
            found = str_eq(piece, id);
        }
        arena_release(&arena);
        if (code != TARN_OK) {
            return code;
        }
        *out = found ? s->snapshot_id : TARN_NO_SNAPSHOT;
        s = metadata_parent(m, s);
    }
    return TARN_OK;
}
