/* service/added_files.c - see added_files.h. Who puts a commit on a newer head tells what it adds,
 * so that a crowd of late commits reads nothing of each other's. */
#include "service/added_files.h"

#include "base/map.h"
#include "service/file_index.h"
#include "service/snapshot_files.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct added_record {
    int64_t snapshot_id;
    tarn_str manifest_list;
    added_paths paths;
} added_record;

struct added_files {
    tarn_env *env;
    pthread_mutex_t lock; /* of all that follows */
    struct {
        tarn_arena arena;
        tarn_map records; /* by snapshot ids */
        int64_t weight;
    } generations[2]; /* the newer first */
};

static void init_generation(added_files *known, int which) {
    arena_init(&known->generations[which].arena, known->env);
    map_init(&known->generations[which].records, &known->generations[which].arena);
    known->generations[which].weight = 0;
}

tarn_code added_files_new(tarn_env *env, added_files **out, tarn_error *err) {
    added_files *known = env_calloc(env, 1, sizeof *known);
    if (known == NULL) {
        return err_nomem(err);
    }
    known->env = env;
    (void)pthread_mutex_init(&known->lock, NULL);
    init_generation(known, 0);
    init_generation(known, 1);
    *out = known;
    return TARN_OK;
}

void added_files_free(added_files *known) {
    if (known != NULL) {
        arena_release(&known->generations[0].arena);
        arena_release(&known->generations[1].arena);
        (void)pthread_mutex_destroy(&known->lock);
        env_free(known->env, known);
    }
}

/* ---- hashes in order ---- */

static int compare_hashes(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_hashes(uint64_t *hashes, int32_t n) {
    if (n > 1) {
        qsort(hashes, (size_t)n, sizeof *hashes, compare_hashes);
    }
}

tarn_code added_paths_of(tarn_arena *arena, const tarn_file *files, int32_t n, added_paths *out,
                         tarn_error *err) {
    uint64_t *hashes = ARENA_ARRAY(arena, uint64_t, (size_t)n + 1);
    if (hashes == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < n; i++) {
        hashes[i] = file_index_hash(files[i].path);
    }
    sort_hashes(hashes, n);
    *out = (added_paths){hashes, n};
    return TARN_OK;
}

/* Mostly one against one. */
static bool have_common(added_paths a, added_paths b, uint64_t *hash) {
    const added_paths few = a.n < b.n ? a : b;
    const added_paths many = a.n < b.n ? b : a;
    for (int32_t i = 0; i < few.n; i++) {
        bool found = many.n == 1 ? few.hashes[i] == many.hashes[0]
                                 : bsearch(&few.hashes[i], many.hashes, (size_t)many.n,
                                           sizeof *many.hashes, compare_hashes) != NULL;
        if (found) {
            *hash = few.hashes[i];
            return true;
        }
    }
    return false;
}

/* ---- what is remembered ---- */

static tarn_str key_of(const int64_t *snapshot_id) {
    return str_make((const char *)snapshot_id, sizeof *snapshot_id);
}

/* Under the lock. The newer generation becomes the older one, which is forgotten; its map names its
 * arena, which moves with it. */
static void turn_over(added_files *known) {
    arena_release(&known->generations[1].arena);
    arena_move(&known->generations[1].arena, &known->generations[0].arena);
    known->generations[1].records = known->generations[0].records;
    known->generations[1].records.arena = &known->generations[1].arena;
    known->generations[1].weight = known->generations[0].weight;
    init_generation(known, 0);
}

/* Under the lock. */
static void put_record(added_files *known, const tarn_snapshot *s, added_paths paths) {
    const int64_t weight = ADDED_FILES_SNAPSHOT + (int64_t)paths.n;
    if (known->generations[0].weight + weight > ADDED_FILES_MOST) {
        turn_over(known);
    }
    tarn_arena *arena = &known->generations[0].arena;
    added_record *r = ARENA_NEW(arena, added_record);
    uint64_t *hashes = ARENA_ARRAY(arena, uint64_t, (size_t)paths.n + 1);
    if (r == NULL || hashes == NULL) {
        return;
    }
    if (paths.n > 0) {
        memcpy(hashes, paths.hashes, (size_t)paths.n * sizeof *hashes);
    }
    *r = (added_record){s->snapshot_id, arena_str(arena, s->manifest_list), {hashes, paths.n}};
    if (r->manifest_list.data == NULL) {
        return;
    }
    map_entry *e = map_put(&known->generations[0].records, key_of(&r->snapshot_id), NULL);
    if (e != NULL) {
        e->value.ptr = r;
        known->generations[0].weight += weight;
    }
}

void added_files_remember(added_files *known, const tarn_snapshot *s, added_paths paths) {
    if (ADDED_FILES_SNAPSHOT + (int64_t)paths.n <= ADDED_FILES_MOST && s->manifest_list.len > 0) {
        (void)pthread_mutex_lock(&known->lock);
        put_record(known, s, paths);
        (void)pthread_mutex_unlock(&known->lock);
    }
}

typedef struct added_answer {
    int64_t weight; /* of the snapshot */
    bool hit;
    uint64_t hash;
} added_answer;

static added_answer answer_by(added_paths theirs, added_paths ours) {
    added_answer answer = {.weight = ADDED_FILES_SNAPSHOT + (int64_t)theirs.n};
    answer.hit = have_common(theirs, ours, &answer.hash);
    return answer;
}

/* Under the lock, as long as the result is used. NULL: it is not known. */
static const added_record *find_record(const added_files *known, const tarn_snapshot *s) {
    for (int i = 0; i < 2; i++) {
        const map_entry *e = map_find(&known->generations[i].records, key_of(&s->snapshot_id));
        const added_record *r = e != NULL ? e->value.ptr : NULL;
        if (r != NULL && str_eq(r->manifest_list, s->manifest_list)) {
            return r;
        }
    }
    return NULL;
}

/* ---- what is read ---- */

typedef struct added_reading {
    tarn_arena arena;
    uint64_t *hashes;
    int32_t n, cap;
} added_reading;

static tarn_code take_entry(void *ctx, const tarn_entry *e, tarn_error *err) {
    added_reading *reading = ctx;
    if (e->status != TARN_ENTRY_ADDED) {
        return TARN_OK;
    }
    if (reading->n == reading->cap) {
        int32_t cap = reading->cap == 0 ? 64 : reading->cap * 2;
        if (cap > ADDED_FILES_MOST * 2) {
            return err_set(err, TARN_LIMIT, "a snapshot added more than %lld files",
                           (long long)ADDED_FILES_MOST);
        }
        uint64_t *hashes =
            arena_grow(&reading->arena, reading->hashes, (size_t)reading->cap * sizeof *hashes,
                       (size_t)cap * sizeof *hashes);
        if (hashes == NULL) {
            return err_nomem(err);
        }
        reading->hashes = hashes;
        reading->cap = cap;
    }
    reading->hashes[reading->n++] = file_index_hash(e->file.path);
    return TARN_OK;
}

static tarn_code answer_read(added_files *known, const added_question *q, const tarn_snapshot *s,
                             added_answer *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    added_reading reading;
    memset(&reading, 0, sizeof reading);
    arena_init(&reading.arena, known->env);
    TRY(snapshot_files_read(known->env, q->store, q->metadata, s,
                            &(snapshot_files_taker){take_entry, &reading}, err));
    sort_hashes(reading.hashes, reading.n);
    const added_paths theirs = {reading.hashes, reading.n};
    added_files_remember(known, s, theirs);
    *out = answer_by(theirs, q->paths);
done:
    arena_release(&reading.arena);
    return code;
}

/* ---- the history ---- */

/* A walk from the head back; snapshots mostly stand in their order, so that the parent of the one
 * at `at` is found just before it. */
typedef struct added_walk {
    const tarn_snapshot *s;
    int32_t at, steps;
} added_walk;

static void step_back(const tarn_metadata *m, added_walk *w) {
    const int64_t parent_id = w->s->parent_id;
    w->steps++;
    w->s = NULL;
    if (parent_id == TARN_NO_SNAPSHOT) {
        return;
    }
    for (; w->at >= 0 && w->s == NULL; w->at--) {
        w->s = m->snapshots[w->at]->snapshot_id == parent_id ? m->snapshots[w->at] : NULL;
    }
    if (w->s == NULL) {
        w->at = m->n_snapshots - 1;
        w->s = metadata_snapshot_by_id(m, parent_id);
    }
}

/* Under the lock, which is left while the snapshot is read. */
static tarn_code answer_one(added_files *known, const added_question *q, const tarn_snapshot *s,
                            added_answer *out, tarn_error *err) {
    const added_record *r = find_record(known, s);
    if (r != NULL) {
        *out = answer_by(r->paths, q->paths);
        return TARN_OK;
    }
    (void)pthread_mutex_unlock(&known->lock);
    tarn_code code = answer_read(known, q, s, out, err);
    (void)pthread_mutex_lock(&known->lock);
    return code;
}

tarn_code added_files_ask(added_files *known, const added_question *q, const tarn_snapshot **by,
                          uint64_t *hash, tarn_error *err) {
    const tarn_metadata *m = q->metadata;
    const tarn_snapshot *oldest = NULL;
    added_walk w = {q->head, m->n_snapshots - 1, 0};
    tarn_code code = TARN_OK;
    int64_t weight = 0;
    *by = NULL;
    (void)pthread_mutex_lock(&known->lock);
    while (w.s != NULL && w.s->snapshot_id != q->since_id) {
        added_answer answer;
        TRY(answer_one(known, q, w.s, &answer, err));
        if (answer.hit) {
            *by = w.s;
            *hash = answer.hash;
            goto done;
        }
        weight += answer.weight;
        if (weight > ADDED_FILES_MOST || w.steps > m->n_snapshots) { /* parents may form a ring */
            code = err_set(err, TARN_LIMIT, "more was committed since than is looked through");
            goto done;
        }
        oldest = w.s;
        step_back(m, &w);
    }
    if (w.s == NULL && oldest != NULL &&
        (q->since_id != TARN_NO_SNAPSHOT || oldest->parent_id != TARN_NO_SNAPSHOT)) {
        code = err_set(err, TARN_CONFLICT,
                       "what was committed since snapshot %lld is not all in the history any more",
                       (long long)q->since_id);
    }
done:
    (void)pthread_mutex_unlock(&known->lock);
    return code;
}
