/* service/rebase_delta.c - see rebase_delta.h. The manifests of the snapshot's own say which files
 * it adds and removes; that they say it of all files was seen before (sent_match.h). */
#include "service/rebase_delta.h"

#include "base/map.h"
#include "iceberg/delete_index.h"
#include "read/delete_load.h"

/* Position deletes in files for many data files are read for the names of those. */
#define MAX_DELETE_ROWS 2000000

typedef struct delta_finder {
    tarn_arena *arena;
    tarn_store *store;
    const sent_snapshot *sent;
    rebase_delta *out;
    /* Filled; out points to them. */
    tarn_file *added[2]; /* data, deletes */
    int64_t *sequences[2];
    int32_t n_added[2];
    tarn_entry *removed[2];
    int32_t n_removed[2];
    tarn_map removed_data; /* by path */
    bool plain;            /* all manifests only add data files that inherit everything */
    tarn_error *err;
} delta_finder;

static tarn_code unclear(const delta_finder *d, const tarn_manifest *m, const tarn_file *f,
                         const char *what) {
    return err_set(d->err, TARN_CONFLICT,
                   "requirement failed: the branch has changed, and the commit could not follow: "
                   "file %.*s of manifest %.*s %s",
                   STR_ARG(f->path), STR_ARG(m->path), what);
}

static tarn_code take_added(delta_finder *d, const tarn_entry *e) {
    const tarn_snapshot *s = d->sent->snapshot;
    const bool given = e->sequence_number >= 0;
    const int kind = e->file.content != TARN_CONTENT_DATA;
    const int32_t i = d->n_added[kind]++;
    d->added[kind][i] = e->file;
    d->sequences[kind][i] =
        given && e->sequence_number != s->sequence_number ? e->sequence_number : -1;
    d->plain &=
        kind == 0 && e->file.first_row_id < 0 && (!given || d->sent->metadata->format_version == 1);
    return TARN_OK;
}

static tarn_code take_entry(delta_finder *d, const tarn_manifest *m, const tarn_entry *e) {
    const tarn_snapshot *s = d->sent->snapshot;
    const int kind = e->file.content != TARN_CONTENT_DATA;
    if (e->status == TARN_ENTRY_ADDED) {
        return take_added(d, e);
    }
    d->plain = false;
    if (e->status == TARN_ENTRY_DELETED) {
        if (e->snapshot_id >= 0 && e->snapshot_id != s->snapshot_id) {
            return unclear(d, m, &e->file, "was removed by another snapshot");
        }
        d->removed[kind][d->n_removed[kind]++] = *e;
        if (kind == 0 && map_put(&d->removed_data, e->file.path, NULL) == NULL) {
            return err_nomem(d->err);
        }
    }
    return TARN_OK;
}

/* The least data sequence number that is left: what is older than it reaches nothing. */
static int64_t least_sequence(const sent_snapshot *sent) {
    int64_t least = sent->snapshot->sequence_number;
    for (int32_t i = 0; i < sent->n_list; i++) {
        const tarn_manifest *m = &sent->list[i];
        if (!m->is_deletes && (m->added_files != 0 || m->existing_files != 0) &&
            m->min_sequence_number >= 0 && m->min_sequence_number < least) {
            least = m->min_sequence_number;
        }
    }
    return least;
}

static void drop_followers(delta_finder *d) {
    const int64_t least = least_sequence(d->sent);
    int32_t n = 0;
    for (int32_t i = 0; i < d->n_removed[1]; i++) {
        const tarn_entry *e = &d->removed[1][i];
        tarn_str only = delete_only_file(&e->file);
        bool follows = (only.len > 0 && map_find(&d->removed_data, only) != NULL) ||
                       (e->sequence_number >= 0 && e->sequence_number < least);
        if (!follows) {
            d->removed[1][n++] = *e;
        }
    }
    d->n_removed[1] = n;
}

/* ---- what position deletes name ---- */

static tarn_code find_paths(const delta_finder *d, tarn_map *paths) {
    const delete_loader loader = {.env = d->arena->env, .store = d->store};
    int64_t rows = 0;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < d->n_added[1]; i++) {
        const tarn_file *f = &d->added[1][i];
        tarn_str only = delete_only_file(f);
        if (f->content != TARN_CONTENT_POSITION_DELETES) {
            continue;
        }
        if (only.len > 0) {
            TRY(map_put(paths, only, NULL) != NULL ? TARN_OK : err_nomem(d->err));
            continue;
        }
        rows = f->record_count > MAX_DELETE_ROWS ? MAX_DELETE_ROWS + 1 : rows + f->record_count;
        if (rows > MAX_DELETE_ROWS) {
            return err_set(d->err, TARN_CONFLICT,
                           "requirement failed: the branch has changed, and the commit has more "
                           "than %d position deletes to look through",
                           MAX_DELETE_ROWS);
        }
        TRY(load_paths(&loader, f, paths, d->err));
    }
done:
    return code;
}

static tarn_code find_referenced(delta_finder *d) {
    tarn_code code = TARN_OK;
    tarn_map paths, own;
    map_init(&paths, d->arena);
    map_init(&own, d->arena);
    TRY(find_paths(d, &paths));
    for (int32_t i = 0; i < d->n_added[0]; i++) {
        TRY(map_put(&own, d->added[0][i].path, NULL) != NULL ? TARN_OK : err_nomem(d->err));
    }
    tarn_str *items = ARENA_ARRAY(d->arena, tarn_str, paths.count + 1);
    if (items == NULL) {
        return err_nomem(d->err);
    }
    for (size_t i = 0; i < paths.count; i++) {
        if (map_find(&own, paths.entries[i].key) == NULL) {
            items[d->out->n_referenced++] = paths.entries[i].key;
        }
    }
    d->out->referenced = items;
done:
    return code;
}

/* ---- the whole ---- */

static tarn_code make_room(delta_finder *d) {
    size_t n = 0;
    for (int32_t i = 0; i < d->sent->n_own; i++) {
        n += (size_t)d->sent->own[i].entries.count;
    }
    if (n > INT32_MAX / 2) {
        return err_set(d->err, TARN_LIMIT, "a commit had more than %d files", INT32_MAX / 2);
    }
    for (int kind = 0; kind < 2; kind++) {
        d->added[kind] = ARENA_ARRAY(d->arena, tarn_file, n + 1);
        d->sequences[kind] = ARENA_ARRAY(d->arena, int64_t, n + 1);
        d->removed[kind] = ARENA_ARRAY(d->arena, tarn_entry, n + 1);
        if (d->added[kind] == NULL || d->sequences[kind] == NULL || d->removed[kind] == NULL) {
            return err_nomem(d->err);
        }
    }
    return TARN_OK;
}

static tarn_code fill_delta(delta_finder *d) {
    rebase_delta *out = d->out;
    const sent_snapshot *sent = d->sent;
    tarn_manifest *own = ARENA_ARRAY(d->arena, tarn_manifest, (size_t)sent->n_own + 1);
    if (own == NULL) {
        return err_nomem(d->err);
    }
    out->added = d->added[0];
    out->added_deletes = d->added[1];
    out->added_sequences = d->sequences[0];
    out->added_delete_sequences = d->sequences[1];
    out->n_added = d->n_added[0];
    out->n_added_deletes = d->n_added[1];
    out->removed = d->removed[0];
    out->removed_deletes = d->removed[1];
    out->n_removed = d->n_removed[0];
    out->n_removed_deletes = d->n_removed[1];
    for (int32_t i = 0; i < sent->n_own && d->plain; i++) {
        own[out->n_manifests++] = sent->own[i].listed;
    }
    out->manifests = own;
    return TARN_OK;
}

tarn_code rebase_delta_find(tarn_arena *arena, tarn_store *store, const sent_snapshot *sent,
                            rebase_delta *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    delta_finder d = {.arena = arena, .store = store, .sent = sent, .out = out, .err = err};
    memset(out, 0, sizeof *out);
    d.plain = sent->n_dropped == 0;
    map_init(&d.removed_data, arena);
    TRY(make_room(&d));
    for (int32_t i = 0; i < sent->n_own; i++) {
        const sent_manifest *m = &sent->own[i];
        for (int64_t k = 0; k < m->entries.count; k++) {
            TRY(take_entry(&d, &m->listed, &m->entries.items[k]));
        }
    }
    drop_followers(&d);
    TRY(find_referenced(&d));
    TRY(fill_delta(&d));
    TRY(added_paths_of(arena, out->added, out->n_added, &out->paths, err));
done:
    return code;
}
