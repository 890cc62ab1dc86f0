/* write/commit/commit_regroup.c - delete manifests written anew. Of those that lose a vector the
 * other entries go on as EXISTING, what goes as DELETED by this snapshot. Where manifests are
 * joined, entries are laid together by age, which is when a vector was last replaced: the newest in
 * one manifest, twice as many older ones in the next, and so on. A stream replaces the vectors of
 * files that it wrote lately again and again, and those of old ones hardly ever: so the manifests
 * of these stay as they are, and a commit costs what it touches, not what was ever touched.
 *
 * Invariants: 1 entries keep their snapshot and sequence numbers; 2 so few manifests are made at
 * once that merging (commit_merge.c) does not have to join them again at once. */
#include "write/commit/commit_int.h"

#include <stdlib.h>

#define NEWEST      256   /* entries of the first part, at least */
#define LEAST       128   /* of the last */
#define AT_ONCE     65536 /* entries in memory, about */
#define MERGE_SHARE 8     /* parts: at most this part of commit.manifest.min-count-to-merge */

void regroup_release(regroup *g) {
    for (int32_t i = 0; i < g->n_manifests; i++) {
        arena_release(&g->entries[i]);
    }
    arena_release(&g->arena);
    memset(g, 0, sizeof *g);
}

/* ---- taking ---- */

static tarn_code grow(regroup *g, int64_t more, tarn_error *err) {
    int64_t need = (g->n_live > g->n_gone ? g->n_live : g->n_gone) + more;
    if (g->n_manifests == g->cap_manifests) {
        int32_t cap = g->cap_manifests == 0 ? 16 : g->cap_manifests * 2;
        tarn_arena *entries =
            arena_grow(&g->arena, g->entries, (size_t)g->n_manifests * sizeof *entries,
                       (size_t)cap * sizeof *entries);
        if (entries == NULL) {
            return err_nomem(err);
        }
        g->entries = entries;
        g->cap_manifests = cap;
    }
    if (need > g->cap) {
        size_t size = sizeof *g->live;
        const tarn_entry **live =
            arena_grow(&g->arena, g->live, (size_t)g->cap * size, (size_t)need * 2 * size);
        const tarn_entry **gone =
            arena_grow(&g->arena, g->gone, (size_t)g->cap * size, (size_t)need * 2 * size);
        if (live == NULL || gone == NULL) {
            return err_nomem(err);
        }
        g->live = live;
        g->gone = gone;
        g->cap = (int32_t)need * 2;
    }
    return TARN_OK;
}

tarn_code regroup_take(commit_attempt *a, regroup *g, const tarn_manifest *manifest,
                       const manifest_entries *entries, const uint8_t *goes, tarn_arena *arena,
                       tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_spec *spec = NULL;
    TRY(filter_rewritable(a, manifest, &spec, err));
    if (g->n_manifests > 0 && (!a->merges || g->spec != spec || g->n_live + g->n_gone >= AT_ONCE)) {
        TRY(regroup_write(a, g, err));
    }
    if (g->n_manifests == 0) {
        arena_init(&g->arena, a->work->env);
    }
    TRY(grow(g, entries->count, err));
    for (int64_t i = 0; i < entries->count; i++) {
        if (goes[i]) {
            g->gone[g->n_gone++] = &entries->items[i];
            TRY(filter_note_removed(a, &entries->items[i].file, err));
        } else {
            g->live[g->n_live++] = &entries->items[i];
        }
    }
    g->spec = spec;
    arena_move(&g->entries[g->n_manifests++], arena);
done:
    return code;
}

/* ---- writing ---- */

/* Newest first. */
static int compare_age(const void *x, const void *y) {
    const tarn_entry *const *a = x, *const *b = y;
    int64_t one = (*a)->sequence_number, other = (*b)->sequence_number;
    return (one < other) - (one > other);
}

typedef struct part {
    const tarn_entry *const *gone, *const *live;
    int32_t n_gone, n_live;
} part;

static tarn_code close_part(commit_attempt *a, manifest_writer **writer, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_manifest written;
    manifest_writer *closing = *writer;
    *writer = NULL;
    TRY(manifest_writer_close(closing, &a->arena, &written, err));
    TRY(produce_add_manifest(a, &written, err));
done:
    return code;
}

static tarn_code write_part(commit_attempt *a, const tarn_spec *spec, const part *p,
                            int64_t target_bytes, tarn_error *err) {
    tarn_code code = TARN_OK;
    manifest_writer *writer = NULL;
    tarn_str path;
    for (int32_t i = 0; i < p->n_gone + p->n_live; i++) {
        bool goes = i < p->n_gone;
        tarn_entry entry = goes ? *p->gone[i] : *p->live[i - p->n_gone];
        entry.status = goes ? TARN_ENTRY_DELETED : TARN_ENTRY_EXISTING;
        entry.snapshot_id = goes ? a->work->snapshot_id : entry.snapshot_id;
        if (writer == NULL) {
            TRY(produce_manifest_writer(a, spec, true, &path, &writer, err));
        }
        TRY(manifest_writer_add(writer, &entry, err));
        if (manifest_writer_bytes(writer) >= target_bytes) {
            TRY(close_part(a, &writer, err));
        }
    }
    if (writer != NULL) {
        TRY(close_part(a, &writer, err));
    }
done:
    manifest_writer_abort(writer);
    return code;
}

tarn_code regroup_write(commit_attempt *a, regroup *g, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_properties *properties = &a->metadata->properties;
    int64_t target_bytes, min_count;
    int32_t size = g->n_gone > NEWEST ? g->n_gone : NEWEST;
    TRY(properties_i64(properties, "commit.manifest.target-size-bytes", MERGE_TARGET_BYTES,
                       &target_bytes, err));
    TRY(properties_i64(properties, "commit.manifest.min-count-to-merge", MERGE_MIN_COUNT,
                       &min_count, err));
    part p = {g->gone, g->live, g->n_gone, g->n_live};
    int64_t n_parts = a->merges ? min_count / MERGE_SHARE : 1;
    if (n_parts > 1 && size <= g->n_live - LEAST) {
        qsort(g->live, (size_t)g->n_live, sizeof *g->live, compare_age);
    }
    for (int32_t left = g->n_live; left + p.n_gone > 0; left -= p.n_live) {
        bool cut = n_parts > 1 && size <= left - LEAST;
        p.n_live = cut ? size : left;
        TRY(write_part(a, g->spec, &p, target_bytes, err));
        p.live += p.n_live;
        p.n_gone = 0;
        size = size <= INT32_MAX / 2 ? size * 2 : size;
        n_parts--;
    }
    regroup_release(g);
done:
    return code;
}
