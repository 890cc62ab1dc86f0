/* dml/purge.c - see purge.h. */
#include "dml/purge.h"

#include "base/map.h"
#include "iceberg/manifest.h"
#include "read/scan.h"

#include <stdlib.h>

#define DROP_TRIES 100 /* others' commits that come between the look and the drop */

typedef struct purge_work {
    tarn_env *env;
    const tarn_catalog *catalog;
    tarn_store *store;
    const tarn_metadata *metadata;
    tarn_arena arena;
    tarn_map done; /* paths; value 1: it is gone */
    bool keep_data;
    purge_own_fn is_own;
    int64_t n_failures;
    tarn_code code; /* first failure */
    tarn_error *err;
} purge_work;

static void note(purge_work *w, tarn_code code, const tarn_error *err) {
    if (code == TARN_OK || code == TARN_NOT_FOUND) {
        return;
    }
    if (w->n_failures++ == 0) {
        w->code = code;
        if (w->err != NULL) {
            *w->err = *err;
        }
    }
}

/* A removal that failed is tried again where the file is named again. */
static void remove_once(purge_work *w, tarn_str path) {
    tarn_error err = TARN_ERROR_INIT;
    if (w->is_own != NULL && !w->is_own(w->metadata, path)) {
        return;
    }
    tarn_str kept = arena_str(&w->arena, path);
    map_entry *entry = kept.data != NULL ? map_put(&w->done, kept, NULL) : NULL;
    if (entry == NULL) {
        note(w, err_nomem(&err), &err);
    } else if (entry->value.i64 == 0 && path.len > 0) {
        tarn_code code = store_remove(w->store, path, &err);
        entry->value.i64 = code == TARN_OK || code == TARN_NOT_FOUND;
        note(w, code, &err);
    }
}

static void remove_document(purge_work *w, tarn_str path) {
    if (!catalog_drop_took(w->catalog, path)) {
        remove_once(w, path);
    }
}

static void purge_entries(purge_work *w, const tarn_manifest *manifest) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    io_source *source = NULL;
    manifest_entries entries;
    manifest_read_options options;
    memset(&options, 0, sizeof options);
    arena_init(&arena, w->env);
    tarn_code code = store_open(w->store, manifest->path, manifest->length, &source, &err);
    if (code == TARN_OK) {
        code = manifest_read(&arena, source, w->metadata, manifest, &options, &entries, &err);
        source->close(source);
    }
    for (int64_t i = 0; code == TARN_OK && i < entries.count; i++) {
        remove_once(w, entries.items[i].file.path);
    }
    note(w, code, &err);
    arena_release(&arena);
}

/* What names a file that could not be removed stays, so that the file can still be found. */
static void purge_snapshot(purge_work *w, const tarn_snapshot *snapshot) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_arena arena;
    const tarn_manifest *manifests;
    int32_t n = 0;
    int64_t before = w->n_failures;
    arena_init(&arena, w->env);
    tarn_code code = snapshot_manifests(&arena, w->store, snapshot, &manifests, &n, &err);
    note(w, code, &err);
    for (int32_t i = 0; code == TARN_OK && i < n; i++) {
        int64_t before_entries = w->n_failures;
        if (!w->keep_data && map_find(&w->done, manifests[i].path) == NULL) {
            purge_entries(w, &manifests[i]);
        }
        if (w->n_failures == before_entries) {
            remove_once(w, manifests[i].path);
        }
    }
    if (w->n_failures == before) {
        remove_once(w, snapshot->manifest_list);
    }
    arena_release(&arena);
}

/* The folders of a path up to the table's own. */
static void note_folders(const purge_work *w, tarn_str path, tarn_map *folders) {
    tarn_str location = w->metadata->location;
    size_t slash;
    while (str_find_last_char(path, '/', &slash) && slash >= location.len && location.len > 0) {
        bool added = false;
        path = str_sub(path, 0, slash);
        if (!str_starts_with(path, location) || map_put(folders, path, &added) == NULL || !added) {
            return;
        }
    }
}

static int longer_first(const void *a, const void *b) {
    size_t x = ((const map_entry *)a)->key.len;
    size_t y = ((const map_entry *)b)->key.len;
    return (x < y) - (x > y);
}

/* Folders that are empty now, where they are things of their own. The longest paths first, so that
 * a folder is tried after what lies in it. */
static void discard_folders(purge_work *w) {
    tarn_map folders;
    map_init(&folders, &w->arena);
    for (size_t i = 0; i < w->done.count; i++) {
        note_folders(w, w->done.entries[i].key, &folders);
    }
    if (folders.count > 0) {
        qsort(folders.entries, folders.count, sizeof *folders.entries, longer_first);
    }
    for (size_t i = 0; i < folders.count; i++) {
        store_discard_folder(w->store, folders.entries[i].key);
    }
}

tarn_code purge_drop(tarn_catalog *catalog, const tarn_ident *table, tarn_table_version **out,
                     tarn_error *err) {
    tarn_table_version *first = NULL;
    tarn_table_version *now = NULL;
    tarn_code code = TARN_OK;
    for (int i = 0; i < DROP_TRIES; i++) {
        table_version_release(now);
        now = NULL;
        err_reset(err);
        TRY(catalog_load(catalog, table, &now, err));
        first = first != NULL ? first : table_version_keep(now);
        if (!str_eq(now->metadata->table_uuid, first->metadata->table_uuid)) {
            TRY(err_set(err, TARN_CONFLICT,
                        "table %.*s was made anew while it was to be dropped, and stays",
                        STR_ARG(table->name)));
        }
        code = catalog_drop_version(catalog, table, now, err);
        if (code != TARN_CONFLICT) {
            break;
        }
    }
    TRY(code);
    *out = now;
    now = NULL;
done:
    table_version_release(now);
    table_version_release(first);
    return code;
}

tarn_code purge_table(tarn_env *env, tarn_catalog *catalog, const tarn_table_version *version,
                      purge_own_fn is_own, tarn_error *err) {
    const tarn_metadata *m = version->metadata;
    bool gc;
    tarn_code code = properties_bool(&m->properties, "gc.enabled", true, &gc, err);
    if (code != TARN_OK) {
        return code;
    }
    purge_work w;
    memset(&w, 0, sizeof w);
    w.env = env;
    w.catalog = catalog;
    w.store = catalog->store;
    w.metadata = m;
    w.keep_data = !gc;
    w.is_own = is_own;
    w.err = err;
    arena_init(&w.arena, env);
    map_init(&w.done, &w.arena);
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        purge_snapshot(&w, m->snapshots[i]);
    }
    for (int32_t i = 0; i < m->n_metadata_log && w.n_failures == 0; i++) {
        remove_document(&w, m->metadata_log[i].metadata_file);
    }
    if (w.n_failures == 0) {
        remove_document(&w, version->metadata_location);
    }
    discard_folders(&w);
    arena_release(&w.arena);
    return w.code;
}

tarn_code purge_take_back(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                          tarn_str uuid, bool *gone, tarn_error *err) {
    tarn_table_version *now = NULL;
    tarn_code code = TARN_OK;
    *gone = false;
    TRY(catalog_load(catalog, table, &now, err));
    if (now->metadata->n_snapshots > 0 || !str_eq(now->metadata->table_uuid, uuid)) {
        TRY(err_set(err, TARN_CONFLICT, "table %.*s is others' too by now, and stays",
                    STR_ARG(table->name)));
    }
    TRY(catalog_drop_version(catalog, table, now, err));
    *gone = true;
    code = purge_table(env, catalog, now, NULL, err);
done:
    table_version_release(now);
    return code;
}
