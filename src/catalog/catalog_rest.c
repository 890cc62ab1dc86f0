/* catalog/catalog_rest.c - a catalog behind HTTP, as the Iceberg REST specification says: the
 * server keeps the pointer, writes the metadata documents and decides who wins.
 *
 * Invariants
 * 1. What a load gives is what the server answered to that load, or, where it said "not modified",
 *    what it answered to the one whose tag was sent.
 * 2. Data files are reached by this side's store. Where the server lends credentials for another,
 *    that is UNSUPPORTED by name, before anything is read. */
#include "catalog/catalog_rest_int.h"
#include "store/store_path.h"

#include <stdlib.h>

#define ONE_TABLE "namespaces/{namespace}/tables/{table}"

/* ---- the cache ---- */

static remote_cached *find_cached(remote_catalog *self, const char *path) {
    for (size_t i = 0; i < REST_CACHED; i++) {
        remote_cached *e = &self->cache[i];
        if (e->version != NULL && str_eq(buf_str(&e->path), str_of(path))) {
            return e;
        }
    }
    return NULL;
}

static void forget(remote_cached *e) {
    table_version_release(e->version);
    e->version = NULL;
}

/* The version and its tag in arena; NULL: none is kept. */
static tarn_table_version *cached_version(remote_catalog *self, tarn_arena *arena, const char *path,
                                          tarn_str *etag) {
    tarn_table_version *version = NULL;
    (void)pthread_mutex_lock(&self->lock);
    remote_cached *e = find_cached(self, path);
    if (e != NULL) {
        *etag = arena_str(arena, buf_str(&e->etag));
        version = etag->data != NULL ? table_version_keep(e->version) : NULL;
        e->used = ++self->clock;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return version;
}

void remote_cache_put(remote_catalog *self, const char *path, tarn_str etag,
                      tarn_table_version *version) {
    (void)pthread_mutex_lock(&self->lock);
    remote_cached *e = find_cached(self, path);
    for (size_t i = 0; i < REST_CACHED && (e == NULL || e->version != NULL); i++) {
        remote_cached *other = &self->cache[i];
        if (e == NULL || other->version == NULL ||
            (!str_eq(buf_str(&e->path), str_of(path)) && other->used < e->used)) {
            e = other;
        }
    }
    forget(e);
    buf_reset(&e->path);
    buf_reset(&e->etag);
    if (etag.len > 0 && buf_append_str(&e->path, str_of(path), NULL) == TARN_OK &&
        buf_append_str(&e->etag, etag, NULL) == TARN_OK) {
        e->version = table_version_keep(version);
        e->used = ++self->clock;
    }
    (void)pthread_mutex_unlock(&self->lock);
}

void remote_cache_drop(remote_catalog *self, const char *path) {
    (void)pthread_mutex_lock(&self->lock);
    remote_cached *e = find_cached(self, path);
    if (e != NULL) {
        forget(e);
    }
    (void)pthread_mutex_unlock(&self->lock);
}

/* ---- loading ---- */

/* Credentials for a store that this version does not have. */
static bool lends_credentials(const json_value *json) {
    const json_value *lent = json_get(json, "storage-credentials");
    const json_value *config = json_get(json, "config");
    return (json_is(lent, JSON_ARRAY) && lent->count > 0) ||
           json_get(config, "s3.access-key-id") != NULL ||
           json_get(config, "gcs.oauth2.token") != NULL;
}

tarn_code remote_take_version(remote_catalog *self, tarn_table_version *version,
                              const json_value *json, const char *label, tarn_error *err) {
    tarn_str location;
    tarn_str local;
    const json_value *metadata = json_get(json, "metadata");
    const char *server = remote_client_label(self->client);
    tarn_code code;
    if (!json_str(json_get(json, "metadata-location"), &location) || location.len == 0 ||
        !json_is(metadata, JSON_OBJECT)) {
        return err_set(err, TARN_CORRUPT, "the catalog at %s gave no metadata of table %s", server,
                       label);
    }
    version->metadata_location = location;
    const char *what =
        arena_printf(&version->arena, "table %s of the catalog at %s", label, server);
    if (what == NULL) {
        return err_nomem(err);
    }
    code = metadata_from_json(&version->arena, metadata, what, &version->metadata, err);
    if (code == TARN_OK && !store_local_path(version->metadata->location, &local) &&
        lends_credentials(json)) {
        code = err_set(err, TARN_UNSUPPORTED,
                       "table %s is in %.*s, to which the catalog at %s lends credentials: vended "
                       "credentials are not supported",
                       label, STR_ARG(version->metadata->location), server);
    }
    return code;
}

tarn_code remote_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                      tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_table_version *kept = NULL;
    tarn_str etag = STR_NULL;
    remote_reply reply;
    tarn_code code;
    arena_init(&arena, c->env);
    /* The answer is read where the version lives. */
    tarn_table_version *version = table_version_new(c->env);
    const char *path = remote_table_path(self->client, &arena, table);
    const char *asked = path != NULL ? arena_printf(&arena, "%s?snapshots=all", path) : NULL;
    if (version == NULL || asked == NULL) {
        code = err_nomem(err);
        goto done;
    }
    kept = cached_version(self, &arena, path, &etag);
    const remote_request request = {.method = "GET",
                                    .endpoint = ONE_TABLE,
                                    .path = asked,
                                    .etag = kept != NULL ? etag : STR_NULL,
                                    .may_be_304 = kept != NULL,
                                    .waited = true,
                                    .repeatable = true};
    TRY(remote_send(self->client, &version->arena, &request, &reply, err));
    if (reply.status == 304) {
        *out = kept;
        kept = NULL;
        goto done;
    }
    TRY(remote_take_version(self, version, reply.json, ident_label(&arena, table), err));
    remote_cache_put(self, path, reply.etag, version);
    *out = version;
    version = NULL;
done:
    table_version_release(kept);
    table_version_release(version);
    arena_release(&arena);
    return code;
}

/* ---- names ---- */

typedef struct table_list {
    tarn_arena *arena;
    const tarn_ident *ns;
    const char *label;
    tarn_ident *items;
    int32_t n, cap;
} table_list;

static tarn_code take_tables(void *ctx, const json_value *page, tarn_error *err) {
    table_list *list = ctx;
    const json_value *names = json_get(page, "identifiers");
    if (!json_is(names, JSON_ARRAY)) {
        return err_set(err, TARN_CORRUPT, "the catalog at %s gave no list of tables", list->label);
    }
    for (const json_value *v = names->first; v != NULL; v = v->next) {
        tarn_str name;
        if (!json_str(json_get(v, "name"), &name) || name.len == 0) {
            return err_set(err, TARN_CORRUPT, "the catalog at %s listed a table without a name",
                           list->label);
        }
        if (list->n == list->cap) {
            int32_t cap = list->cap == 0 ? 16 : list->cap * 2;
            tarn_ident *grown =
                arena_grow(list->arena, list->items, (size_t)list->cap * sizeof *grown,
                           (size_t)cap * sizeof *grown);
            if (grown == NULL) {
                return err_nomem(err);
            }
            list->items = grown;
            list->cap = cap;
        }
        list->items[list->n++] = (tarn_ident){list->ns->n_levels, list->ns->levels, name};
    }
    return TARN_OK;
}

static int compare_names(const void *a, const void *b) {
    return str_cmp(((const tarn_ident *)a)->name, ((const tarn_ident *)b)->name);
}

static tarn_code remote_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                    tarn_ident **out, int32_t *n, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    table_list list = {arena, ns, remote_client_label(self->client), NULL, 0, 0};
    if (ns->n_levels == 0) { /* tables without a namespace cannot be */
        *n = 0;
        return TARN_OK;
    }
    tarn_code code = remote_list(self, arena, "namespaces/{namespace}/tables",
                                 remote_namespace_path(self->client, arena, ns, "/tables"),
                                 take_tables, &list, err);
    if (code == TARN_OK) {
        if (list.n > 1) {
            qsort(list.items, (size_t)list.n, sizeof *list.items, compare_names);
        }
        *out = list.items;
        *n = list.n;
    }
    return code;
}

static tarn_code table_exists(remote_catalog *self, const tarn_ident *table, bool *out,
                              tarn_error *err) {
    tarn_arena arena;
    remote_reply reply;
    arena_init(&arena, self->base.env);
    remote_request request = {.method = "HEAD",
                              .endpoint = ONE_TABLE,
                              .path = remote_table_path(self->client, &arena, table),
                              .repeatable = true};
    if (!remote_has_endpoint(self->client, "HEAD", ONE_TABLE)) {
        request.method = "GET";
    }
    tarn_code code = remote_send(self->client, &arena, &request, &reply, err);
    *out = code == TARN_OK;
    if (code == TARN_NOT_FOUND) {
        err_reset(err);
        code = TARN_OK;
    }
    arena_release(&arena);
    return code;
}

static tarn_code remote_register(tarn_catalog *c, const tarn_ident *table,
                                 tarn_str metadata_location, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_buf body;
    json_writer w;
    remote_reply reply;
    tarn_code code;
    arena_init(&arena, c->env);
    buf_init(&body, c->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_member_str(&w, "name", table->name);
    json_member_str(&w, "metadata-location", metadata_location);
    json_end_object(&w);
    TRY(json_end(&w));
    const remote_request request = {
        .method = "POST",
        .endpoint = "namespaces/{namespace}/register",
        .path = remote_namespace_path(self->client, &arena, table, "/register"),
        .body = buf_str(&body)};
    code = remote_send(self->client, &arena, &request, &reply, err);
    if (code != TARN_OK && reply.unclear) { /* does the name lead there now? */
        tarn_table_version *now = NULL;
        if (remote_load(c, table, &now, NULL) == TARN_OK &&
            str_eq(now->metadata_location, metadata_location)) {
            err_reset(err);
            code = TARN_OK;
        }
        table_version_release(now);
    }
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

static tarn_code remote_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                               tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_buf body;
    json_writer w;
    remote_reply reply;
    bool old_there = true;
    bool new_there = false;
    tarn_code code;
    arena_init(&arena, c->env);
    buf_init(&body, c->env, 0);
    json_begin(&w, &body, false, err);
    json_put_object(&w);
    json_put_name(&w, STR("source"));
    remote_put_ident(&w, from);
    json_put_name(&w, STR("destination"));
    remote_put_ident(&w, to);
    json_end_object(&w);
    TRY(json_end(&w));
    const remote_request request = {.method = "POST",
                                    .endpoint = "tables/rename",
                                    .path = "tables/rename",
                                    .body = buf_str(&body)};
    code = remote_send(self->client, &arena, &request, &reply, err);
    if (code != TARN_OK && reply.unclear && table_exists(self, from, &old_there, NULL) == TARN_OK &&
        table_exists(self, to, &new_there, NULL) == TARN_OK && !old_there && new_there) {
        err_reset(err);
        code = TARN_OK;
    }
done:
    buf_release(&body);
    arena_release(&arena);
    return code;
}

/* etag: the version that it must be; no data: any. */
static tarn_code send_drop(remote_catalog *self, const tarn_ident *table, tarn_str etag,
                           tarn_error *err) {
    tarn_arena arena;
    remote_reply reply;
    tarn_code code;
    arena_init(&arena, self->base.env);
    const char *path = remote_table_path(self->client, &arena, table);
    remote_request request = {.method = "DELETE", .endpoint = ONE_TABLE, .match = etag};
    request.path = path != NULL ? arena_printf(&arena, "%s?purgeRequested=false", path) : NULL;
    code = remote_send(self->client, &arena, &request, &reply, err);
    if (code != TARN_OK && reply.unclear) { /* is it gone? else it goes now */
        bool there = true;
        if (table_exists(self, table, &there, NULL) == TARN_OK) {
            code = there ? remote_send(self->client, &arena, &request, &reply, err) : TARN_OK;
        }
    }
    if (code == TARN_OK) {
        err_reset(err);
        remote_cache_drop(self, path);
    }
    arena_release(&arena);
    return code;
}

static tarn_code remote_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) {
    return send_drop((remote_catalog *)c, table, STR_NULL, err);
}

/* A request that arrives late must not meet another table: the server is told which it is for. */
static tarn_code remote_drop_version(tarn_catalog *c, const tarn_ident *table,
                                     const tarn_table_version *version, tarn_error *err) {
    remote_catalog *self = (remote_catalog *)c;
    tarn_arena arena;
    tarn_table_version *now = NULL;
    tarn_table_version *kept = NULL;
    tarn_str etag = STR_NULL;
    tarn_code code;
    arena_init(&arena, c->env);
    const char *path = remote_table_path(self->client, &arena, table);
    TRY(path != NULL ? TARN_OK : err_nomem(err));
    TRY(remote_load(c, table, &now, err));
    kept = cached_version(self, &arena, path, &etag);
    etag = kept != NULL && table_version_is_same(kept, version) ? etag : STR_NULL;
    if (!table_version_is_same(now, version)) {
        TRY(err_set(err, TARN_CONFLICT, "table %.*s has changed", STR_ARG(table->name)));
    }
    code = send_drop(self, table, etag, err);
done:
    table_version_release(now);
    table_version_release(kept);
    arena_release(&arena);
    return code;
}

static tarn_code remote_default_location(tarn_catalog *c, tarn_arena *arena,
                                         const tarn_ident *table, tarn_str *out, tarn_error *err) {
    (void)arena;
    (void)table;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED, "the catalog at %s gives its tables their places itself",
                   remote_client_label(((remote_catalog *)c)->client));
}

static void free_catalog(remote_catalog *self) {
    for (size_t i = 0; i < REST_CACHED; i++) {
        forget(&self->cache[i]);
        buf_release(&self->cache[i].path);
        buf_release(&self->cache[i].etag);
    }
    remote_client_free(self->client);
    (void)pthread_mutex_destroy(&self->lock);
    env_free(self->base.env, self);
}

static void remote_close(tarn_catalog *c) {
    store_close(c->store);
    free_catalog((remote_catalog *)c);
}

static void remote_set_hasty(tarn_catalog *c, bool hasty) {
    remote_client_set_hasty(((remote_catalog *)c)->client, hasty);
}

static const catalog_vtable REST_VTABLE = {
    .name = "rest",
    .list_namespaces = remote_list_namespaces,
    .create_namespace = remote_create_namespace,
    .load_namespace = remote_load_namespace,
    .update_namespace = remote_update_namespace,
    .drop_namespace = remote_drop_namespace,
    .list_tables = remote_list_tables,
    .load = remote_load,
    .commit = remote_commit_table,
    .offers_files = remote_offers_files,
    .commit_files = remote_commit_files,
    .create_table = remote_create_table,
    .register_table = remote_register,
    .rename_table = remote_rename,
    .drop_table = remote_drop,
    .drop_version = remote_drop_version,
    .numbers = true,
    .default_location = remote_default_location,
    .close = remote_close,
    .set_hasty = remote_set_hasty,
};

tarn_code catalog_rest_new(tarn_env *env, tarn_store *store, tarn_str uri,
                           const tarn_properties *options, tarn_catalog **out, tarn_error *err) {
    remote_catalog *self = env_calloc(env, 1, sizeof *self);
    if (self == NULL) {
        return err_nomem(err);
    }
    self->base = (tarn_catalog){.vt = &REST_VTABLE, .env = env, .store = store};
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        env_free(env, self);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    for (size_t i = 0; i < REST_CACHED; i++) {
        buf_init(&self->cache[i].path, env, 0);
        buf_init(&self->cache[i].etag, env, 0);
    }
    tarn_code code = remote_client_new(env, uri, options, &self->client, err);
    if (code != TARN_OK) {
        free_catalog(self);
        return code;
    }
    *out = &self->base;
    return TARN_OK;
}
