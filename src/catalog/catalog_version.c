/* catalog/catalog_version.c - loaded versions of tables, and the snapshots that they share.
 *
 * A commit adds a snapshot to those of its base and changes none. So versions that were made one of
 * the other have their snapshots in one pool, with the text that each has in a document, and a new
 * version costs what is new in it.
 *
 * Invariants: 1 a snapshot of a pool is never changed, moved or freed while the pool lives, which
 * it does as long as one of its versions; 2 each was written and read back (snapshot_keep); 3 a
 * pool holds at most SLACK more than twice what its newest version needs: beyond that (snapshots
 * expired, swaps were lost) a version begins a new one. */
#include <pthread.h>

#include "catalog/catalog_int.h"

#define SLACK        256
#define HEAD_BYTES   1024
#define RECENT_BYTES (32u << 20) /* a larger version is not kept */

struct snapshot_pool {
    tarn_env *env;
    int32_t refs; /* atomic */
    pthread_mutex_t lock;
    tarn_arena arena; /* guarded by lock */
    int64_t count;    /* guarded by lock */
};

static snapshot_pool *pool_new(tarn_env *env) {
    snapshot_pool *pool = env_calloc(env, 1, sizeof *pool);
    if (pool != NULL && pthread_mutex_init(&pool->lock, NULL) != 0) {
        env_free(env, pool);
        return NULL;
    }
    if (pool != NULL) {
        pool->env = env;
        pool->refs = 1;
        arena_init(&pool->arena, env);
    }
    return pool;
}

static void pool_release(snapshot_pool *pool) {
    if (pool != NULL && __atomic_sub_fetch(&pool->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        tarn_env *env = pool->env;
        arena_release(&pool->arena);
        (void)pthread_mutex_destroy(&pool->lock);
        env_free(env, pool);
    }
}

tarn_table_version *table_version_new(tarn_env *env) {
    tarn_table_version *v = env_calloc(env, 1, sizeof *v);
    if (v != NULL) {
        arena_init(&v->arena, env);
        v->refs = 1;
    }
    return v;
}

tarn_table_version *table_version_keep(tarn_table_version *v) {
    (void)__atomic_add_fetch(&v->refs, 1, __ATOMIC_RELAXED);
    return v;
}

void table_version_release(tarn_table_version *v) {
    if (v != NULL && __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        tarn_env *env = v->arena.env;
        pool_release(v->snapshots);
        arena_release(&v->arena);
        env_free(env, v);
    }
}

size_t table_version_bytes(const tarn_table_version *v) {
    size_t bytes = v->arena.used_bytes;
    if (v->snapshots != NULL) {
        (void)pthread_mutex_lock(&v->snapshots->lock);
        bytes += v->snapshots->arena.used_bytes;
        (void)pthread_mutex_unlock(&v->snapshots->lock);
    }
    return bytes;
}

static bool is_worth(snapshot_pool *pool, int32_t n) {
    (void)pthread_mutex_lock(&pool->lock);
    bool worth = pool->count <= 2 * (int64_t)n + SLACK;
    (void)pthread_mutex_unlock(&pool->lock);
    return worth;
}

/* The base's pool where its snapshots can be used as they are, else an empty one. */
static snapshot_pool *choose_pool(tarn_env *env, const tarn_table_version *base,
                                  const tarn_metadata *m) {
    if (base == NULL || base->snapshots == NULL ||
        base->metadata->format_version != m->format_version ||
        !is_worth(base->snapshots, m->n_snapshots)) {
        return pool_new(env);
    }
    (void)__atomic_add_fetch(&base->snapshots->refs, 1, __ATOMIC_RELAXED);
    return base->snapshots;
}

/* How many of m's snapshots, from the first, are base's: what changes leave keeps its order, and
 * what they add comes behind. */
static int32_t count_shared(const tarn_metadata *base, const tarn_metadata *m) {
    int32_t n = 0;
    for (int32_t i = 0; i < base->n_snapshots && n < m->n_snapshots; i++) {
        n += base->snapshots[i] == m->snapshots[n];
    }
    return n;
}

static tarn_code add_all(snapshot_pool *pool, const tarn_metadata *m, const tarn_snapshot **list,
                         int32_t from, tarn_error *err) {
    tarn_code code = TARN_OK;
    (void)pthread_mutex_lock(&pool->lock);
    for (int32_t i = from; i < m->n_snapshots && code == TARN_OK; i++) {
        code = snapshot_keep(&pool->arena, m->snapshots[i], m->format_version, &list[i], err);
        pool->count++;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return code;
}

tarn_code table_version_share(tarn_table_version *v, tarn_arena *arena,
                              const tarn_table_version *base, const tarn_metadata **m,
                              tarn_error *err) {
    const tarn_metadata *given = *m;
    tarn_metadata *shared = ARENA_NEW(arena, tarn_metadata);
    const tarn_snapshot **list =
        ARENA_ARRAY(arena, const tarn_snapshot *, (size_t)given->n_snapshots);
    tarn_assert(v->snapshots == NULL);
    v->snapshots = choose_pool(arena->env, base, given);
    if (shared == NULL || list == NULL || v->snapshots == NULL) {
        return err_nomem(err);
    }
    int32_t n =
        base != NULL && v->snapshots == base->snapshots ? count_shared(base->metadata, given) : 0;
    if (n > 0) {
        memcpy(list, given->snapshots, (size_t)n * sizeof *list);
    }
    tarn_code code = add_all(v->snapshots, given, list, n, err);
    *shared = *given;
    shared->snapshots = list;
    *m = shared;
    return code;
}

/* ---- which document a version is of ---- */

tarn_code table_version_name(tarn_table_version *v, tarn_str location, tarn_str document,
                             tarn_error *err) {
    v->metadata_location = arena_str(&v->arena, location);
    v->head = arena_str(
        &v->arena, str_make(document.data, document.len < HEAD_BYTES ? document.len : HEAD_BYTES));
    v->document_bytes = (int64_t)document.len;
    return v->metadata_location.data != NULL && v->head.data != NULL ? TARN_OK : err_nomem(err);
}

tarn_code table_version_is_at(const tarn_table_version *v, tarn_store *store, tarn_str location,
                              bool *same, tarn_error *err) {
    char head[HEAD_BYTES];
    io_source *source = NULL;
    tarn_code code = TARN_OK;
    *same = false;
    if (!str_eq(v->metadata_location, location)) {
        return TARN_OK;
    }
    TRY(store_open(store, location, v->document_bytes, &source, err));
    if (source->size_bytes == v->document_bytes) {
        TRY(io_read_at(source, 0, head, v->head.len, err));
        *same = str_eq(v->head, str_make(head, v->head.len));
    }
done:
    if (source != NULL) {
        source->close(source);
    }
    return code;
}

bool table_version_is_same(const tarn_table_version *a, const tarn_table_version *b) {
    return str_eq(a->metadata_location, b->metadata_location) &&
           str_eq(a->metadata->table_uuid, b->metadata->table_uuid) &&
           a->metadata->last_updated_ms == b->metadata->last_updated_ms;
}

/* ---- versions kept for the next load ---- */

tarn_table_version *recent_find(const recent_versions *r, tarn_str location) {
    for (int i = 0; i < RECENT_VERSIONS && r->items[i] != NULL; i++) {
        if (str_eq(r->items[i]->metadata_location, location)) {
            return table_version_keep(r->items[i]);
        }
    }
    return NULL;
}

tarn_table_version *recent_put(recent_versions *r, tarn_table_version *version) {
    int at = 0;
    if (table_version_bytes(version) > RECENT_BYTES) {
        return NULL;
    }
    while (at < RECENT_VERSIONS - 1 && r->items[at] != NULL &&
           !str_eq(r->items[at]->metadata->table_uuid, version->metadata->table_uuid)) {
        at++;
    }
    tarn_table_version *old = r->items[at];
    memmove(&r->items[1], &r->items[0], (size_t)at * sizeof r->items[0]);
    r->items[0] = table_version_keep(version);
    return old;
}

void recent_release(recent_versions *r) {
    for (int i = 0; i < RECENT_VERSIONS; i++) {
        table_version_release(r->items[i]);
        r->items[i] = NULL;
    }
}
