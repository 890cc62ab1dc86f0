/* catalog/catalog_dir.c - the Hadoop layout: namespaces are folders of the warehouse, a table is a
 * folder with metadata/vN.metadata.json, and the atomic create of version N+1 is the commit.
 *
 * Invariants
 * 1. Version N+1 is created only by a writer who saw, just before, that N is current and holds the
 *    table that its base is of (same uuid).
 * 2. All writers on one base give version N+1 the same name, since the codec in that name is chosen
 *    by the properties of the base; so the store's atomic create has one winner.
 * 3. The hint is written after the commit and may be late, lost or go backwards; readers follow it
 *    forward, and list where old versions are removed (folder_prefer_highest).
 * 4. Old versions may be removed from the lowest up. A writer that slept since (1) could then
 * create an N+1 that was removed before; it finds later versions that do not know of its document,
 * takes it back and says so.
 * 5. A table may be dropped, and made anew, while a writer sleeps after (1): an N+1 whose N is not
 *    there any more, or is another's, is taken back by who created it (check_base_stayed). Nothing
 *    holds the folder meanwhile, so that for a moment others may see it.
 *
 * Edges: base -> created N+1 -> COMMITTED; exists -> CONFLICT; create failed after it was sent ->
 * look at N+1: ours COMMITTED, another's CONFLICT, absent on a settled store NOT_COMMITTED, else
 * UNKNOWN. */
#include "base/limits.h"
#include "catalog/catalog_int.h"

#include <pthread.h>
#include <stdlib.h>

#define LOAD_TRIES 5

typedef struct dir_catalog {
    tarn_catalog base;
    tarn_str warehouse; /* behind this struct */
    pthread_mutex_t lock;
    /* The versions that it saw last: a document is not read again while what is there begins as it
     * did. Guarded by lock. */
    recent_versions recent;
} dir_catalog;

/* One commit on its way. */
typedef struct dir_commit {
    dir_catalog *self;
    tarn_arena arena;
    const char *label;
    tarn_str table_folder, folder; /* folder: of its metadata */
    tarn_table_version *base;
    int64_t base_number; /* 0: a new table */
    catalog_document doc;
} dir_commit;

static tarn_code append_part(tarn_arena *arena, tarn_str *path, tarn_str part, tarn_error *err) {
    if (str_is(part, ".") || str_is(part, "..") || memchr(part.data, '/', part.len) != NULL) {
        return err_set(err, TARN_INVALID, "name %.*s cannot be a folder's name", STR_ARG(part));
    }
    const char *joined = store_join(arena, *path, part);
    if (joined == NULL) {
        return err_nomem(err);
    }
    *path = str_of(joined);
    return TARN_OK;
}

static tarn_code namespace_folder(const dir_catalog *self, tarn_arena *arena, const tarn_ident *ns,
                                  tarn_str *out, tarn_error *err) {
    tarn_str path = self->warehouse;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < ns->n_levels && code == TARN_OK; i++) {
        code = append_part(arena, &path, ns->levels[i], err);
    }
    *out = path;
    return code;
}

static tarn_code table_folder(const dir_catalog *self, tarn_arena *arena, const tarn_ident *table,
                              tarn_str *out, tarn_error *err) {
    tarn_code code = namespace_folder(self, arena, table, out, err);
    return code != TARN_OK ? code : append_part(arena, out, table->name, err);
}

static tarn_code metadata_folder(tarn_arena *arena, tarn_str folder, tarn_str *out,
                                 tarn_error *err) {
    const char *path = store_join(arena, folder, STR("metadata"));
    *out = str_of(path);
    return path != NULL ? TARN_OK : err_nomem(err);
}

static tarn_code note_version(void *ctx, tarn_str name, const store_stat_info *info,
                              tarn_error *err) {
    int64_t number;
    (void)err;
    if (info != NULL && folder_parse_version(name, &number)) {
        *(bool *)ctx = true;
    }
    return TARN_OK;
}

static tarn_code is_table(dir_catalog *self, tarn_arena *arena, tarn_str folder, bool *out,
                          tarn_error *err) {
    tarn_str metadata;
    tarn_code code;
    *out = false;
    TRY(metadata_folder(arena, folder, &metadata, err));
    code = store_list_folder(self->base.store, metadata, note_version, out, err);
done:
    return code;
}

/* The folders directly below one, that are tables or that are not. */
typedef struct folder_list {
    tarn_arena *arena;
    int32_t n, cap;
    tarn_str *names;
} folder_list;

static tarn_code add_folder(void *ctx, tarn_str name, const store_stat_info *info,
                            tarn_error *err) {
    folder_list *list = ctx;
    tarn_ident ident = {1, &name, STR_NULL};
    if (info != NULL || ident_check_namespace(&ident, NULL) != TARN_OK) {
        return TARN_OK; /* a file, or a folder that no name of ours can say */
    }
    if (list->n == list->cap) {
        int32_t cap = list->cap == 0 ? 16 : list->cap * 2;
        tarn_str *grown = arena_grow(list->arena, list->names, (size_t)list->cap * sizeof *grown,
                                     (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        list->names = grown;
        list->cap = cap;
    }
    list->names[list->n] = arena_str(list->arena, name);
    return list->names[list->n++].data != NULL ? TARN_OK : err_nomem(err);
}

typedef struct folder_search {
    tarn_str name;
    bool found;
} folder_search;

static tarn_code match_folder(void *ctx, tarn_str name, const store_stat_info *info,
                              tarn_error *err) {
    folder_search *search = ctx;
    (void)err;
    search->found = search->found || (info == NULL && str_eq(name, search->name));
    return TARN_OK;
}

/* A namespace is a folder that is not a table; the warehouse itself is always there. */
static tarn_code namespace_exists(dir_catalog *self, tarn_arena *arena, const tarn_ident *ns,
                                  bool *out, tarn_error *err) {
    tarn_str parent;
    tarn_str folder;
    bool table = false;
    tarn_code code;
    if (ns->n_levels == 0) {
        *out = true;
        return TARN_OK;
    }
    tarn_ident above = {ns->n_levels - 1, ns->levels, STR_NULL};
    folder_search search = {ns->levels[ns->n_levels - 1], false};
    TRY(namespace_folder(self, arena, &above, &parent, err));
    TRY(namespace_folder(self, arena, ns, &folder, err));
    TRY(store_list_folder(self->base.store, parent, match_folder, &search, err));
    if (search.found) {
        TRY(is_table(self, arena, folder, &table, err));
    }
    *out = search.found && !table;
done:
    return code;
}

static tarn_code need_namespace(dir_catalog *self, tarn_arena *arena, const tarn_ident *ns,
                                tarn_error *err) {
    bool there = false;
    tarn_ident only = {ns->n_levels, ns->levels, STR_NULL};
    tarn_code code = namespace_exists(self, arena, &only, &there, err);
    if (code == TARN_OK && !there) {
        code =
            err_set(err, TARN_NOT_FOUND, "namespace %s did not exist", ident_label(arena, &only));
    }
    return code;
}

/* Names below ns; for tables, idents with ns as their levels. */
static tarn_code list_below(dir_catalog *self, tarn_arena *arena, const tarn_ident *ns, bool tables,
                            tarn_ident **out, int32_t *n, tarn_error *err) {
    folder_list list = {.arena = arena};
    tarn_str folder;
    int32_t kept = 0;
    tarn_code code;
    TRY(need_namespace(self, arena, ns, err));
    TRY(namespace_folder(self, arena, ns, &folder, err));
    TRY(store_list_folder(self->base.store, folder, add_folder, &list, err));
    tarn_ident *idents = ARENA_ARRAY(arena, tarn_ident, (size_t)list.n + 1);
    size_t n_levels = (size_t)ns->n_levels + 1;
    if (idents == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int32_t i = 0; i < list.n; i++) {
        tarn_str path = folder;
        bool table = false;
        TRY(append_part(arena, &path, list.names[i], err));
        TRY(is_table(self, arena, path, &table, err));
        if (table != tables) {
            continue;
        }
        tarn_str *levels = ARENA_ARRAY(arena, tarn_str, n_levels);
        if (levels == NULL) {
            code = err_nomem(err);
            goto done;
        }
        for (int32_t j = 0; j < ns->n_levels; j++) {
            levels[j] = ns->levels[j];
        }
        levels[ns->n_levels] = list.names[i];
        idents[kept++] = tables ? (tarn_ident){ns->n_levels, levels, list.names[i]}
                                : (tarn_ident){ns->n_levels + 1, levels, STR_NULL};
    }
    *out = idents;
    *n = kept;
done:
    return code;
}

static tarn_code dir_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                     tarn_ident **out, int32_t *n, tarn_error *err) {
    return list_below((dir_catalog *)c, arena, parent, false, out, n, err);
}

static tarn_code dir_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                 tarn_ident **out, int32_t *n, tarn_error *err) {
    return list_below((dir_catalog *)c, arena, ns, true, out, n, err);
}

static tarn_code dir_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                      const tarn_properties *properties, tarn_error *err) {
    dir_catalog *self = (dir_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_ident above = {ns->n_levels - 1, ns->levels, STR_NULL};
    tarn_str folder;
    bool there = false;
    tarn_code code;
    if (properties->count > 0) {
        code = err_set(err, TARN_UNSUPPORTED, "a namespace that is a folder has no properties");
        goto done;
    }
    TRY(namespace_folder(self, &arena, ns, &folder, err));
    TRY(need_namespace(self, &arena, &above, err));
    TRY(namespace_exists(self, &arena, ns, &there, err));
    if (there) {
        code = err_set(err, TARN_CONFLICT, "namespace %s already existed", ident_label(&arena, ns));
        goto done;
    }
    code = store_make_folder(c->store, folder, err);
done:
    arena_release(&arena);
    return code;
}

static tarn_code dir_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                    tarn_properties *out, tarn_error *err) {
    tarn_str folder;
    tarn_code code;
    TRY(need_namespace((dir_catalog *)c, arena, ns, err));
    TRY(namespace_folder((dir_catalog *)c, arena, ns, &folder, err));
    tarn_property *location = ARENA_NEW(arena, tarn_property);
    if (location == NULL) {
        code = err_nomem(err);
        goto done;
    }
    *location = (tarn_property){STR("location"), folder};
    *out = (tarn_properties){1, location};
done:
    return code;
}

static tarn_code dir_update_namespace(tarn_catalog *c, const tarn_ident *ns,
                                      const tarn_properties *set, const tarn_properties *remove,
                                      tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_code code = need_namespace((dir_catalog *)c, &arena, ns, err);
    arena_release(&arena);
    if (code == TARN_OK && set->count + remove->count > 0) {
        code = err_set(err, TARN_UNSUPPORTED, "a namespace that is a folder has no properties");
    }
    return code;
}

static tarn_code note_any(void *ctx, tarn_str name, const store_stat_info *info, tarn_error *err) {
    (void)name;
    (void)info;
    (void)err;
    *(bool *)ctx = true;
    return TARN_OK;
}

static tarn_code dir_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_str folder;
    bool filled = false;
    tarn_code code;
    TRY(need_namespace((dir_catalog *)c, &arena, ns, err));
    TRY(namespace_folder((dir_catalog *)c, &arena, ns, &folder, err));
    TRY(store_list_folder(c->store, folder, note_any, &filled, err));
    if (filled) {
        code = err_set(err, TARN_CONFLICT, "namespace %s was not empty", ident_label(&arena, ns));
        goto done;
    }
    code = store_remove_folder(c->store, folder, err);
done:
    arena_release(&arena);
    return code;
}

static void keep_recent(dir_catalog *self, tarn_table_version *version) {
    (void)pthread_mutex_lock(&self->lock);
    tarn_table_version *old = recent_put(&self->recent, version);
    (void)pthread_mutex_unlock(&self->lock);
    table_version_release(old);
}

/* The version at location, from memory where it is still that. */
static tarn_code read_version(dir_catalog *self, tarn_str location, tarn_table_version **out,
                              tarn_error *err) {
    bool same = false;
    (void)pthread_mutex_lock(&self->lock);
    tarn_table_version *recent = recent_find(&self->recent, location);
    (void)pthread_mutex_unlock(&self->lock);
    tarn_code code = TARN_OK;
    if (recent != NULL) {
        TRY(table_version_is_at(recent, self->base.store, location, &same, err));
    }
    if (same) {
        *out = recent;
        return TARN_OK;
    }
    TRY(catalog_read_version(self->base.env, self->base.store, location, out, err));
    keep_recent(self, *out);
done:
    table_version_release(recent);
    return code;
}

/* The version that was found, or a higher one. */
static tarn_code load_newest(dir_catalog *self, tarn_arena *arena, tarn_str folder, int64_t number,
                             tarn_str location, tarn_table_version **out, tarn_error *err) {
    tarn_table_version *version = NULL;
    int64_t newest = number;
    tarn_code code;
    TRY(read_version(self, location, &version, err));
    if (metadata_wants_removal(version->metadata)) {
        TRY(folder_prefer_highest(self->base.store, arena, folder, &newest, &location, err));
    }
    if (newest > number) {
        table_version_release(version);
        version = NULL;
        TRY(read_version(self, location, &version, err));
    }
    *out = version;
    version = NULL;
done:
    table_version_release(version);
    return code;
}

static tarn_code dir_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                          tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_str folder;
    tarn_str location;
    int64_t number;
    tarn_code code;
    const char *label = ident_label(&arena, table);
    TRY(table_folder((dir_catalog *)c, &arena, table, &folder, err));
    TRY(metadata_folder(&arena, folder, &folder, err));
    /* A version may be removed as an old one between finding and reading it. */
    for (int tries = 0; tries < LOAD_TRIES; tries++) {
        TRY(folder_current_version(c->store, &arena, folder, label, &number, &location, err));
        code = load_newest((dir_catalog *)c, &arena, folder, number, location, out, err);
        if (code != TARN_NOT_FOUND) {
            break;
        }
    }
done:
    arena_release(&arena);
    return code;
}

/* Whether the current document is still of the base's table: a table that was dropped and made anew
 * has another uuid. Invariant 1. */
static tarn_code check_identity(dir_commit *w, tarn_str current, tarn_error *err) {
    tarn_table_version *now = NULL;
    bool same = false;
    tarn_code code;
    TRY(table_version_is_at(w->base, w->self->base.store, current, &same, err));
    if (same) {
        goto done;
    }
    TRY(catalog_read_version(w->self->base.env, w->self->base.store, current, &now, err));
    if (!str_eq(now->metadata->table_uuid, w->base->metadata->table_uuid)) {
        code = err_set(err, TARN_CONFLICT,
                       "table %s was replaced: its uuid was %.*s and now is %.*s", w->label,
                       STR_ARG(w->base->metadata->table_uuid), STR_ARG(now->metadata->table_uuid));
    }
done:
    table_version_release(now);
    return code;
}

static tarn_code check_base(dir_commit *w, tarn_error *err) {
    int64_t number;
    tarn_str location;
    tarn_code code = folder_current_version(w->self->base.store, &w->arena, w->folder, w->label,
                                            &number, &location, err);
    if (w->base == NULL) {
        if (code == TARN_NOT_FOUND) {
            err_reset(err);
            return TARN_OK;
        }
        return code != TARN_OK ? code
                               : err_set(err, TARN_CONFLICT, "table %s already existed", w->label);
    }
    if (code == TARN_OK && metadata_wants_removal(w->base->metadata)) {
        code = folder_prefer_highest(w->self->base.store, &w->arena, w->folder, &number, &location,
                                     err);
    }
    if (code != TARN_OK) {
        return code;
    }
    if (!folder_parse_version(folder_file_name(w->base->metadata_location), &w->base_number) ||
        !store_path_below(w->folder, w->base->metadata_location, NULL)) {
        return err_set(err, TARN_INVALID, "base %.*s was not a version of table %s",
                       STR_ARG(w->base->metadata_location), w->label);
    }
    if (number != w->base_number) {
        return err_set(err, TARN_CONFLICT, "table %s moved from version %lld to %lld", w->label,
                       (long long)w->base_number, (long long)number);
    }
    code = check_identity(w, location, err);
    if (code == TARN_NOT_FOUND) { /* others committed and removed it as an old one meanwhile */
        err_reset(err);
        code = err_set(err, TARN_CONFLICT, "table %s moved on from version %lld, which is gone",
                       w->label, (long long)number);
    }
    return code;
}

/* What Iceberg's own Hadoop tables refuse too: a table that leaves its folder cannot be found. */
static tarn_code check_place(dir_commit *w, tarn_error *err) {
    const tarn_metadata *m = w->doc.version->metadata;
    tarn_str rest;
    tarn_str ignored;
    tarn_str location = m->location;
    if (!store_path_below(w->table_folder, location, &rest) ||
        (rest.len > 0 && !str_is(rest, "/"))) {
        return err_set(err, TARN_INVALID, "table %s in a dir catalog belongs to %.*s, not to %.*s",
                       w->label, STR_ARG(w->table_folder), STR_ARG(location));
    }
    if (properties_get(&m->properties, "write.metadata.path", &ignored)) {
        return err_set(err, TARN_INVALID,
                       "table %s in a dir catalog cannot have its metadata elsewhere "
                       "(write.metadata.path)",
                       w->label);
    }
    return TARN_OK;
}

static tarn_code say_unknown(dir_commit *w, tarn_outcome_kind *outcome, const tarn_error *cause,
                             tarn_error *err) {
    *outcome = TARN_OUTCOME_UNKNOWN;
    return err_set(err, TARN_COMMIT_UNKNOWN, "commit of table %s as %.*s was sent: %s", w->label,
                   STR_ARG(w->doc.version->metadata_location), cause->message);
}

/* The create failed after it was sent: look at what is there. */
static tarn_code resolve(dir_commit *w, tarn_code failed, const tarn_error *cause,
                         tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_buf seen;
    buf_init(&seen, w->self->base.env, LIMIT_METADATA_JSON_BYTES);
    tarn_code code =
        store_get(store, w->doc.version->metadata_location, LIMIT_METADATA_JSON_BYTES, &seen, NULL);
    if (code == TARN_OK && !str_eq(buf_str(&seen), document_bytes(&w->doc))) {
        code = err_set(err, TARN_CONFLICT, "version %lld of table %s was made by another writer",
                       (long long)w->base_number + 1, w->label);
    } else if (code == TARN_OK && w->doc.unique) {
        *outcome = TARN_COMMITTED;
    } else if (code == TARN_NOT_FOUND && (store_traits_of(store) & STORE_SETTLED) != 0) {
        code = err_set(err, failed, "%s", cause->message);
    } else {
        code = say_unknown(w, outcome, cause, err);
    }
    buf_release(&seen);
    return code;
}

/* A document that was there before ours was made cannot follow from ours. */
static bool is_older(dir_commit *w, tarn_str current) {
    tarn_store *store = w->self->base.store;
    store_stat_info theirs;
    store_stat_info ours;
    return store_stat(store, current, &theirs, NULL) == TARN_OK &&
           store_stat(store, w->doc.version->metadata_location, &ours, NULL) == TARN_OK &&
           theirs.modified_ms < ours.modified_ms;
}

/* Invariant 4: with old versions being removed, a created N+1 counts only when it is the highest,
 * or known to what is. (The hint is not asked: it may lead to ours.) */
static tarn_code check_effect(dir_commit *w, tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_table_version *now = NULL;
    int64_t highest = 0;
    tarn_str location = STR_NULL;
    tarn_error cause = TARN_ERROR_INIT;
    tarn_code code = folder_highest_version(store, w->folder, &highest, &cause);
    if (code == TARN_OK && highest == w->base_number + 1) {
        return TARN_OK;
    }
    if (code == TARN_OK) {
        code = folder_find_version(store, &w->arena, w->folder, highest, &location, &cause);
    }
    if (code == TARN_OK && location.data != NULL) {
        code = catalog_read_version(w->self->base.env, store, location, &now, &cause);
    }
    if (now != NULL && document_is_in_history(&w->doc, now)) {
        goto done;
    }
    if (now != NULL && is_older(w, location)) {
        store_discard(store, w->doc.version->metadata_location);
        *outcome = TARN_NOT_COMMITTED;
        code = err_set(err, TARN_CONFLICT, "table %s had moved on to version %lld", w->label,
                       (long long)highest);
        goto done;
    }
    code = say_unknown(w, outcome, &cause, err);
done:
    table_version_release(now);
    return code;
}

/* Invariant 5. Where others went on from ours it stays, as it is the table by now. */
static tarn_code check_base_stayed(dir_commit *w, tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_error cause = TARN_ERROR_INIT;
    int64_t highest = 0;
    bool same = false;
    tarn_code code = table_version_is_at(w->base, store, w->base->metadata_location, &same, &cause);
    if (same || (code != TARN_OK && code != TARN_NOT_FOUND) ||
        folder_highest_version(store, w->folder, &highest, &cause) != TARN_OK ||
        highest != w->base_number + 1) {
        return TARN_OK;
    }
    store_discard(store, w->doc.version->metadata_location);
    *outcome = TARN_NOT_COMMITTED;
    return code == TARN_OK
               ? err_set(err, TARN_CONFLICT, "table %s was replaced meanwhile", w->label)
               : err_set(err, TARN_NOT_FOUND, "table %s was dropped meanwhile", w->label);
}

static tarn_code send_version(dir_commit *w, tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_error cause = TARN_ERROR_INIT;
    bool sent = false;
    tarn_code code = document_send(&w->doc, w->self->base.store, STORE_CREATE, &sent, &cause);
    *outcome = TARN_NOT_COMMITTED;
    if (code == TARN_OK) {
        *outcome = TARN_COMMITTED;
    } else if (code == TARN_CONFLICT) {
        return err_set(err, TARN_CONFLICT, "version %lld of table %s was made by another writer",
                       (long long)w->base_number + 1, w->label);
    } else if (!sent) {
        return err_set(err, code, "%s", cause.message);
    } else {
        code = resolve(w, code, &cause, outcome, err);
    }
    if (*outcome == TARN_COMMITTED && w->doc.trims && w->base != NULL) {
        code = check_effect(w, outcome, err);
    }
    if (*outcome == TARN_COMMITTED && w->base != NULL) {
        code = check_base_stayed(w, outcome, err);
    }
    return code;
}

static tarn_code build_commit(dir_commit *w, const tarn_ident *table, const tarn_change_set *set,
                              tarn_error *err) {
    tarn_code code;
    w->label = ident_label(&w->arena, table);
    TRY(table_folder(w->self, &w->arena, table, &w->table_folder, err));
    TRY(metadata_folder(&w->arena, w->table_folder, &w->folder, err));
    if (w->base == NULL) {
        TRY(need_namespace(w->self, &w->arena, table, err));
    }
    TRY(check_base(w, err));
    TRY(document_build(&w->doc, w->base, set, err));
    TRY(check_place(w, err));
    /* Invariant 2. */
    bool gzip = w->base != NULL && metadata_wants_gzip(w->base->metadata);
    const char *name = folder_version_name(&w->arena, w->base_number + 1, gzip);
    const char *location = name != NULL ? store_join(&w->arena, w->folder, str_of(name)) : NULL;
    if (location == NULL) {
        code = err_nomem(err);
        goto done;
    }
    code = document_pack(&w->doc, str_of(location), gzip, err);
done:
    return code;
}

/* In a table that was made anew meanwhile, the names of old versions are those of new ones. */
static void remove_old(dir_commit *w) {
    tarn_store *store = w->self->base.store;
    const tarn_table_version *v = w->doc.version;
    bool same = false;
    if (w->doc.remove_old && w->doc.n_removed > 0 &&
        table_version_is_at(v, store, v->metadata_location, &same, NULL) == TARN_OK && same) {
        document_remove_old(&w->doc, store);
    }
}

static tarn_code dir_commit_table(tarn_catalog *c, const tarn_ident *table,
                                  tarn_table_version *base, const tarn_change_set *set,
                                  tarn_outcome_kind *outcome, tarn_table_version **out,
                                  tarn_error *err) {
    dir_commit w = {.self = (dir_catalog *)c, .base = base};
    tarn_code code;
    *outcome = TARN_NOT_COMMITTED;
    arena_init(&w.arena, c->env);
    document_init(&w.doc, c->env);
    TRY(build_commit(&w, table, set, err));
    TRY(send_version(&w, outcome, err));
    env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "table=%s metadata=%.*s", w.label,
            STR_ARG(w.doc.version->metadata_location));
    folder_write_hint(c->store, &w.arena, w.folder, w.base_number + 1);
    remove_old(&w);
    keep_recent(w.self, w.doc.version);
    if (out != NULL) {
        *out = table_version_keep(w.doc.version);
    }
done:
    document_release(&w.doc);
    arena_release(&w.arena);
    return code;
}

/* The document must be of the table that this folder is; its bytes become version 1. */
static tarn_code dir_register(tarn_catalog *c, const tarn_ident *table, tarn_str metadata_location,
                              tarn_error *err) {
    dir_commit w = {.self = (dir_catalog *)c};
    tarn_outcome_kind outcome;
    tarn_code code;
    arena_init(&w.arena, c->env);
    document_init(&w.doc, c->env);
    w.label = ident_label(&w.arena, table);
    TRY(table_folder(w.self, &w.arena, table, &w.table_folder, err));
    TRY(metadata_folder(&w.arena, w.table_folder, &w.folder, err));
    TRY(need_namespace(w.self, &w.arena, table, err));
    TRY(check_base(&w, err));
    TRY(catalog_read_version(c->env, c->store, metadata_location, &w.doc.version, err));
    TRY(check_place(&w, err));
    TRY(metadata_write(w.doc.version->metadata, &w.doc.json, err));
    const char *location = store_join(&w.arena, w.folder, STR("v1.metadata.json"));
    if (location == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(document_pack(&w.doc, str_of(location), false, err));
    TRY(send_version(&w, &outcome, err));
    folder_write_hint(c->store, &w.arena, w.folder, 1);
done:
    document_release(&w.doc);
    arena_release(&w.arena);
    return code;
}

static tarn_code dir_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                            tarn_error *err) {
    tarn_arena arena;
    (void)to;
    arena_init(&arena, c->env);
    tarn_code code = err_set(err, TARN_UNSUPPORTED,
                             "a table in a dir catalog is its folder and cannot be renamed: %s",
                             ident_label(&arena, from));
    arena_release(&arena);
    return code;
}

static int compare_versions(const void *a, const void *b) {
    int64_t x = 0;
    int64_t y = 0;
    (void)folder_parse_version(*(const tarn_str *)a, &x);
    (void)folder_parse_version(*(const tarn_str *)b, &y);
    return x < y ? -1 : x > y;
}

static tarn_code add_version(void *ctx, tarn_str name, const store_stat_info *info,
                             tarn_error *err) {
    int64_t number;
    if (info == NULL || !folder_parse_version(name, &number)) {
        return TARN_OK;
    }
    return add_folder(ctx, name, NULL, err);
}

/* Versions go from the lowest up, so that a drop that stops midway leaves the table as it was. */
static tarn_code dir_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, c->env);
    folder_list versions = {.arena = &arena};
    tarn_str folder;
    tarn_str metadata;
    tarn_code code;
    TRY(table_folder((dir_catalog *)c, &arena, table, &folder, err));
    TRY(metadata_folder(&arena, folder, &metadata, err));
    TRY(store_list_folder(c->store, metadata, add_version, &versions, err));
    if (versions.n == 0) {
        code = err_set(err, TARN_NOT_FOUND, "table %s did not exist", ident_label(&arena, table));
        goto done;
    }
    qsort(versions.names, (size_t)versions.n, sizeof *versions.names, compare_versions);
    for (int32_t i = 0; i < versions.n; i++) {
        const char *path = store_join(&arena, metadata, versions.names[i]);
        code = path != NULL ? store_remove(c->store, str_of(path), err) : err_nomem(err);
        if (code != TARN_OK && code != TARN_NOT_FOUND) {
            goto done;
        }
    }
    code = TARN_OK;
    const char *hint = store_join(&arena, metadata, STR(FOLDER_HINT_NAME));
    if (hint != NULL) { /* what is left is an orphan without meaning */
        store_discard(c->store, str_of(hint));
    }
    store_discard_folder(c->store, metadata);
    store_discard_folder(c->store, folder);
done:
    arena_release(&arena);
    return code;
}

/* Nothing holds the table between the look and the drop. */
static tarn_code dir_drop_version(tarn_catalog *c, const tarn_ident *table,
                                  const tarn_table_version *version, tarn_error *err) {
    tarn_table_version *now = NULL;
    tarn_code code = dir_load(c, table, &now, err);
    if (code == TARN_OK && !table_version_is_same(version, now)) {
        code =
            err_set(err, TARN_CONFLICT, "table %.*s moved from %.*s to %.*s", STR_ARG(table->name),
                    STR_ARG(version->metadata_location), STR_ARG(now->metadata_location));
    }
    table_version_release(now);
    return code != TARN_OK ? code : dir_drop(c, table, err);
}

static tarn_code dir_default_location(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                      tarn_str *out, tarn_error *err) {
    return table_folder((dir_catalog *)c, arena, table, out, err);
}

static void dir_close(tarn_catalog *c) {
    dir_catalog *self = (dir_catalog *)c;
    recent_release(&self->recent);
    (void)pthread_mutex_destroy(&self->lock);
    store_close(c->store);
    env_free(c->env, c);
}

static const catalog_vtable DIR_VTABLE = {
    .name = "dir",
    .list_namespaces = dir_list_namespaces,
    .create_namespace = dir_create_namespace,
    .load_namespace = dir_load_namespace,
    .update_namespace = dir_update_namespace,
    .drop_namespace = dir_drop_namespace,
    .list_tables = dir_list_tables,
    .load = dir_load,
    .commit = dir_commit_table,
    .register_table = dir_register,
    .rename_table = dir_rename,
    .drop_table = dir_drop,
    .drop_version = dir_drop_version,
    .numbers = true,
    .default_location = dir_default_location,
    .close = dir_close,
};

tarn_code catalog_dir_new(tarn_env *env, tarn_store *store, tarn_str warehouse, tarn_catalog **out,
                          tarn_error *err) {
    if (warehouse.len == 0) {
        return err_set(err, TARN_INVALID, "the warehouse of a dir catalog was empty");
    }
    if ((store_traits_of(store) & STORE_ATOMIC_CREATE) == 0) {
        return err_set(err, TARN_UNSUPPORTED,
                       "a dir catalog needs a store that creates atomically, which %s does not",
                       store->vt->name);
    }
    dir_catalog *self = env_calloc(env, 1, sizeof *self + warehouse.len);
    if (self == NULL) {
        return err_nomem(err);
    }
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        env_free(env, self);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    char *text = (char *)(self + 1);
    memcpy(text, warehouse.data, warehouse.len);
    self->base = (tarn_catalog){.vt = &DIR_VTABLE, .env = env, .store = store};
    self->warehouse = str_make(text, warehouse.len);
    *out = &self->base;
    return TARN_OK;
}
