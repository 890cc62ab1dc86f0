/* catalog/catalog_path.c - one table given by its folder or by a metadata file, for reading. There
 * is no pointer: of a folder the current version is what the hint says (and what follows it), else
 * the highest vN, else the highest NNNNN-<id>; among equal numbers, which a lost attempt may have
 * left, the newest file. */
#include "catalog/catalog_int.h"

#define HINT_BYTES_MAX 1024

typedef struct path_catalog {
    tarn_catalog base;
    tarn_str path; /* behind this struct */
} path_catalog;

typedef struct sequence_search {
    tarn_arena *arena;
    int64_t number; /* -1: none yet */
    int64_t modified_ms;
    tarn_str name;
} sequence_search;

static tarn_code note_sequence(void *ctx, tarn_str name, const store_stat_info *info,
                               tarn_error *err) {
    sequence_search *best = ctx;
    int64_t number;
    if (info == NULL || !folder_parse_sequence(name, &number) || number < best->number) {
        return TARN_OK;
    }
    if (number == best->number && info->modified_ms < best->modified_ms) {
        return TARN_OK;
    }
    best->number = number;
    best->modified_ms = info->modified_ms;
    best->name = arena_str(best->arena, name);
    return best->name.data != NULL ? TARN_OK : err_nomem(err);
}

/* A hint that is a file's name, or one without its end, as some writers of NNNNN- files leave it;
 * *location has no data when it names nothing. */
static tarn_code follow_named_hint(tarn_store *store, tarn_arena *arena, tarn_str folder,
                                   tarn_str *location, tarn_error *err) {
    tarn_buf text;
    int64_t number;
    buf_init(&text, store->env, HINT_BYTES_MAX);
    *location = STR_NULL;
    tarn_code code = TARN_OK;
    const char *path = store_join(arena, folder, STR(FOLDER_HINT_NAME));
    if (path == NULL) {
        code = err_nomem(err);
        goto done;
    }
    if (store_get(store, str_of(path), HINT_BYTES_MAX, &text, NULL) != TARN_OK) {
        goto done;
    }
    tarn_str hint = str_trim(buf_str(&text));
    if (hint.len == 0 || memchr(hint.data, '/', hint.len) != NULL ||
        memchr(hint.data, 0, hint.len) != NULL || str_to_i64(hint, &number)) {
        goto done;
    }
    path = arena_printf(arena, "%.*s%s", STR_ARG(hint),
                        str_ends_with(hint, STR(".json")) ? "" : ".metadata.json");
    path = path != NULL ? store_join(arena, folder, str_of(path)) : NULL;
    if (path == NULL) {
        code = err_nomem(err);
    } else if (store_exists(store, str_of(path))) {
        *location = str_of(path);
    }
done:
    buf_release(&text);
    return code;
}

/* The current document in one folder of metadata; NOT_FOUND when it has none. */
static tarn_code find_in_folder(path_catalog *self, tarn_arena *arena, tarn_str folder,
                                tarn_str *location, tarn_error *err) {
    tarn_store *store = self->base.store;
    sequence_search best = {arena, -1, 0, STR_NULL};
    int64_t number;
    tarn_code code;
    TRY(follow_named_hint(store, arena, folder, location, err));
    if (location->data != NULL) {
        goto done;
    }
    code = folder_current_version(store, arena, folder, "at this path", &number, location, err);
    if (code != TARN_NOT_FOUND) {
        goto done;
    }
    TRY(store_list_folder(store, folder, note_sequence, &best, err));
    if (best.number < 0) {
        code = err_set(err, TARN_NOT_FOUND, "no table metadata was found in %.*s", STR_ARG(folder));
        goto done;
    }
    const char *path = store_join(arena, folder, best.name);
    *location = str_of(path);
    code = path != NULL ? TARN_OK : err_nomem(err);
done:
    return code;
}

static tarn_code find_document(path_catalog *self, tarn_arena *arena, tarn_str *location,
                               tarn_error *err) {
    store_stat_info info;
    tarn_code code = store_stat(self->base.store, self->path, &info, err);
    if (code == TARN_OK) {
        *location = self->path;
        return TARN_OK;
    }
    if (code != TARN_NOT_FOUND) {
        return code;
    }
    const char *folder = store_join(arena, self->path, STR("metadata"));
    if (folder == NULL) {
        return err_nomem(err);
    }
    code = find_in_folder(self, arena, str_of(folder), location, err);
    if (code == TARN_NOT_FOUND) { /* the metadata folder itself was given */
        code = find_in_folder(self, arena, self->path, location, NULL);
        if (code == TARN_OK) {
            err_reset(err);
        }
    }
    return code;
}

static tarn_code path_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                           tarn_error *err) {
    (void)table;
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_str location;
    tarn_code code;
    TRY(find_document((path_catalog *)c, &arena, &location, err));
    code = catalog_read_version(c->env, c->store, location, out, err);
done:
    arena_release(&arena);
    return code;
}

static tarn_code refuse(tarn_catalog *c, tarn_error *err) {
    const path_catalog *self = (const path_catalog *)c;
    return err_set(err, TARN_UNSUPPORTED, "a table given by its path is only read: %.*s",
                   STR_ARG(self->path));
}

static tarn_code path_list(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                           tarn_ident **out, int32_t *n, tarn_error *err) {
    (void)c;
    (void)arena;
    (void)ns;
    (void)err;
    *out = NULL;
    *n = 0;
    return TARN_OK;
}

static tarn_code path_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                       const tarn_properties *properties, tarn_error *err) {
    (void)ns;
    (void)properties;
    return refuse(c, err);
}

static tarn_code path_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                     tarn_properties *out, tarn_error *err) {
    (void)arena;
    (void)ns;
    (void)out;
    return refuse(c, err);
}

static tarn_code path_update_namespace(tarn_catalog *c, const tarn_ident *ns,
                                       const tarn_properties *set, const tarn_properties *remove,
                                       tarn_error *err) {
    (void)ns;
    (void)set;
    (void)remove;
    return refuse(c, err);
}

static tarn_code path_drop(tarn_catalog *c, const tarn_ident *ident, tarn_error *err) {
    (void)ident;
    return refuse(c, err);
}

static tarn_code path_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                             const tarn_change_set *set, tarn_outcome_kind *outcome,
                             tarn_table_version **out, tarn_error *err) {
    (void)table;
    (void)base;
    (void)set;
    (void)out;
    *outcome = TARN_NOT_COMMITTED;
    return refuse(c, err);
}

static tarn_code path_register(tarn_catalog *c, const tarn_ident *table, tarn_str metadata_location,
                               tarn_error *err) {
    (void)table;
    (void)metadata_location;
    return refuse(c, err);
}

static tarn_code path_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                             tarn_error *err) {
    (void)from;
    (void)to;
    return refuse(c, err);
}

static tarn_code path_default_location(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                       tarn_str *out, tarn_error *err) {
    (void)arena;
    (void)table;
    (void)out;
    return refuse(c, err);
}

static void path_close(tarn_catalog *c) {
    store_close(c->store);
    env_free(c->env, c);
}

static const catalog_vtable PATH_VTABLE = {
    .name = "path",
    .list_namespaces = path_list,
    .create_namespace = path_create_namespace,
    .load_namespace = path_load_namespace,
    .update_namespace = path_update_namespace,
    .drop_namespace = path_drop,
    .list_tables = path_list,
    .load = path_load,
    .commit = path_commit,
    .register_table = path_register,
    .rename_table = path_rename,
    .drop_table = path_drop,
    .default_location = path_default_location,
    .close = path_close,
};

tarn_code catalog_path_new(tarn_env *env, tarn_store *store, tarn_str path, tarn_catalog **out,
                           tarn_error *err) {
    if (path.len == 0) {
        return err_set(err, TARN_INVALID, "the path of a table was empty");
    }
    path_catalog *self = env_calloc(env, 1, sizeof *self + path.len);
    if (self == NULL) {
        return err_nomem(err);
    }
    char *text = (char *)(self + 1);
    memcpy(text, path.data, path.len);
    self->base = (tarn_catalog){.vt = &PATH_VTABLE, .env = env, .store = store};
    self->path = str_make(text, path.len);
    *out = &self->base;
    return TARN_OK;
}
