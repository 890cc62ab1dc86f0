/* service/file_index.c - see file_index.h. */
#include "service/file_index.h"

#include "iceberg/manifest.h"
#include "service/snapshot_files.h"

/* ---- paths by hash ---- */

static void init_generation(path_memory *p, int which) {
    arena_init(&p->generations[which].arena, p->env);
    map_init(&p->generations[which].paths, &p->generations[which].arena);
    p->generations[which].until_ms = INT64_MIN;
}

static void memory_init(path_memory *p, tarn_env *env) {
    p->env = env;
    init_generation(p, 0);
    init_generation(p, 1);
}

static void memory_release(path_memory *p) {
    arena_release(&p->generations[0].arena);
    arena_release(&p->generations[1].arena);
}

/* The newer generation becomes the older one, which is forgotten: the time of its newest snapshot.
 * A map names its arena, which moves with it. */
static int64_t memory_turn(path_memory *p) {
    int64_t forgotten_ms = p->generations[1].until_ms;
    arena_release(&p->generations[1].arena);
    arena_move(&p->generations[1].arena, &p->generations[0].arena);
    p->generations[1].paths = p->generations[0].paths;
    p->generations[1].paths.arena = &p->generations[1].arena;
    p->generations[1].until_ms = p->generations[0].until_ms;
    init_generation(p, 0);
    return forgotten_ms;
}

static tarn_code memory_put(path_memory *p, uint64_t hash, int64_t snapshot_id, tarn_error *err) {
    tarn_str key = arena_str(&p->generations[0].arena, str_make((const char *)&hash, sizeof hash));
    map_entry *e = key.data != NULL ? map_put(&p->generations[0].paths, key, NULL) : NULL;
    if (e == NULL) {
        return err_nomem(err);
    }
    e->value.i64 = snapshot_id;
    return TARN_OK;
}

static const map_entry *memory_find(const path_memory *p, uint64_t hash) {
    const tarn_str key = str_make((const char *)&hash, sizeof hash);
    const map_entry *e = map_find(&p->generations[0].paths, key);
    return e != NULL ? e : map_find(&p->generations[1].paths, key);
}

/* The same for file:/x, /x and //x, and for s3 and s3a. It stands in tables: it stays as it is. */
uint64_t file_index_hash(tarn_str path) {
    uint64_t hash[2] = {0, 0};
    tarn_str piece;
    tarn_str rest;
    if (!store_local_path(path, &rest)) {
        rest = str_from(path, store_scheme(path).len);
    }
    while (rest.len > 0 && str_split(&rest, '/', &piece)) {
        if (piece.len > 0 && !str_is(piece, ".")) {
            hash[1] = str_hash(piece);
            hash[0] = str_hash(str_make((const char *)hash, sizeof hash));
        }
    }
    return hash[0];
}

/* ---- reading ---- */

static bool read_hash(tarn_str text, uint64_t *out) {
    uint64_t hash = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = str_hex_digit(text.data[i]);
        if (digit < 0) {
            return false;
        }
        hash = hash << 4 | (uint64_t)digit;
    }
    *out = hash;
    return text.len == 16;
}

static void forget_before(file_index *index, int64_t ms) {
    index->since_ms = ms > index->since_ms ? ms : index->since_ms;
}

/* A snapshot whose files are read. */
typedef struct index_reading {
    file_index *index;
    const tarn_snapshot *snapshot;
} index_reading;

static tarn_code add_entry(void *ctx, const tarn_entry *e, tarn_error *err) {
    const index_reading *reading = ctx;
    if (e->status == TARN_ENTRY_EXISTING) {
        return TARN_OK;
    }
    int64_t by = e->status == TARN_ENTRY_ADDED ? reading->snapshot->snapshot_id : TARN_NO_SNAPSHOT;
    return memory_put(&reading->index->added, file_index_hash(e->file.path), by, err);
}

static tarn_code add_merged(file_index *index, tarn_store *store, const tarn_snapshot *s,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_arena arena;
    io_source *source = NULL;
    tarn_str text;
    tarn_str line;
    arena_init(&arena, index->added.env);
    if (!properties_get(&s->summary, COMPACT_SUMMARY, &text) || s->manifest_list.len == 0) {
        goto done;
    }
    TRY(store_open(store, s->manifest_list, -1, &source, err));
    TRY(manifest_list_property(&arena, source, FILE_INDEX_KEY, &text, err));
    while (text.len > 0 && str_split(&text, '\n', &line)) {
        uint64_t hash;
        if (read_hash(line, &hash)) {
            TRY(memory_put(&index->merged, hash, s->snapshot_id, err));
        }
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    arena_release(&arena);
    return code;
}

static tarn_code add_snapshot(file_index *index, tarn_store *store, const tarn_metadata *m,
                              const tarn_snapshot *s, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_error unread = TARN_ERROR_INIT;
    if (index->added.generations[0].paths.count >= FILE_INDEX_PATHS) {
        forget_before(index, memory_turn(&index->added));
    }
    if (index->merged.generations[0].paths.count >= FILE_INDEX_PATHS) {
        (void)memory_turn(&index->merged);
    }
    TRY(add_merged(index, store, s, err));
    index_reading reading = {index, s};
    code = snapshot_files_read(index->added.env, store, m, s,
                               &(snapshot_files_taker){add_entry, &reading}, &unread);
    if (code == TARN_NOMEM) {
        *err = unread;
        goto done;
    }
    if (code != TARN_OK) {
        code = TARN_OK;
        forget_before(index, s->timestamp_ms);
        env_log(index->added.env, TARN_LOG_WARN, "service", "compact", "%s", unread.message);
    }
    if (s->timestamp_ms > index->added.generations[0].until_ms) {
        index->added.generations[0].until_ms = s->timestamp_ms;
    }
done:
    return code;
}

/* Of a table that is met anew: the first snapshot to read. What was before it, or has expired, is
 * not known. */
static int32_t begin_at(file_index *index, const tarn_metadata *m) {
    const int64_t oldest_ms = env_now_ms(index->added.env) - FILE_INDEX_BACK_MS;
    int32_t first = m->n_snapshots;
    int32_t least = first > FILE_INDEX_SNAPSHOTS ? first - FILE_INDEX_SNAPSHOTS : 0;
    while (first > least && m->snapshots[first - 1]->timestamp_ms >= oldest_ms) {
        first--;
    }
    for (int32_t i = 0; i < first; i++) {
        forget_before(index, m->snapshots[i]->timestamp_ms);
    }
    if (m->n_snapshots > 0 && m->snapshots[0]->sequence_number != 1) {
        forget_before(index, m->snapshots[0]->timestamp_ms);
    } else if (m->n_snapshots == 0 && (m->last_sequence_number > 0 || m->format_version == 1)) {
        forget_before(index, m->last_updated_ms);
    }
    return first;
}

/* ---- the index ---- */

void file_index_init(file_index *index, tarn_env *env) {
    memset(index, 0, sizeof *index);
    memory_init(&index->added, env);
    memory_init(&index->merged, env);
    index->newest = TARN_NO_SNAPSHOT;
    index->since_ms = INT64_MIN;
}

void file_index_release(file_index *index) {
    memory_release(&index->added);
    memory_release(&index->merged);
}

tarn_code file_index_follow(file_index *index, tarn_store *store, const tarn_metadata *m,
                            tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_env *env = index->added.env;
    size_t len =
        m->table_uuid.len < sizeof index->uuid - 1 ? m->table_uuid.len : sizeof index->uuid - 1;
    tarn_str uuid = str_make(len > 0 ? m->table_uuid.data : "", len);
    int32_t first = m->n_snapshots;
    while (first > 0 && m->snapshots[first - 1]->snapshot_id != index->newest) {
        first--;
    }
    bool known = first > 0 || (index->newest == TARN_NO_SNAPSHOT && index->begun);
    if (!known || !str_is(uuid, index->uuid)) {
        file_index_release(index);
        file_index_init(index, env);
        memcpy(index->uuid, uuid.data, uuid.len);
        first = begin_at(index, m);
        index->begun = true;
    }
    for (int32_t i = first; i < m->n_snapshots; i++) {
        TRY(add_snapshot(index, store, m, m->snapshots[i], err));
        index->newest = m->snapshots[i]->snapshot_id;
    }
    if (m->n_snapshots > 0) {
        index->newest = m->snapshots[m->n_snapshots - 1]->snapshot_id;
    }
done:
    if (code != TARN_OK) {
        index->begun = false; /* anew the next time */
        index->newest = TARN_NO_SNAPSHOT;
    }
    return code;
}

static bool find_in(const path_memory *p, tarn_str path, int64_t *by) {
    const map_entry *e = memory_find(p, file_index_hash(path));
    if (e != NULL && by != NULL) {
        *by = e->value.i64;
    }
    return e != NULL;
}

bool file_index_has(const file_index *index, tarn_str path, int64_t *by) {
    return find_in(&index->added, path, by);
}

bool file_index_merged(const file_index *index, tarn_str path, int64_t *by) {
    return find_in(&index->merged, path, by);
}

tarn_code file_index_fresh(const file_index *index, tarn_store *store, tarn_str path, bool *out,
                           tarn_error *err) {
    store_stat_info info;
    tarn_code code = store_stat(store, path, &info, err);
    if (code == TARN_OK) {
        bool in_time = index->since_ms == INT64_MIN ||
                       (info.modified_ms > index->since_ms + FILE_INDEX_SKEW_MS &&
                        info.modified_ms <= env_now_ms(index->added.env) + FILE_INDEX_SKEW_MS);
        *out = index->begun && in_time && !file_index_has(index, path, NULL);
    }
    return code;
}

tarn_code file_index_text(tarn_arena *arena, const tarn_str *paths, int32_t n, tarn_str *out,
                          tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    buf_init(&text, arena->env, 0);
    for (int32_t i = 0; i < n; i++) {
        TRY(buf_printf(&text, err, "%016llx\n", (unsigned long long)file_index_hash(paths[i])));
    }
    *out = arena_str(arena, buf_str(&text));
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    buf_release(&text);
    return code;
}
