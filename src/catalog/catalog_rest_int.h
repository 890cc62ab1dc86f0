/* catalog/catalog_rest_int.h - the REST catalog's files: catalog_rest.c has names and loading,
 * remote_namespace.c the namespaces, remote_commit.c what creates and changes tables. */
#ifndef CATALOG_CATALOG_REST_INT_H
#define CATALOG_CATALOG_REST_INT_H

#include <pthread.h>

#include "catalog/remote_client.h"

#define REST_CACHED 64

/* What a table was at its last load, and the tag by which the server knows it. */
typedef struct remote_cached {
    tarn_buf path, etag;
    tarn_table_version *version; /* NULL: free */
    uint64_t used;
} remote_cached;

typedef struct remote_catalog {
    tarn_catalog base;
    remote_client *client;
    pthread_mutex_t lock;
    remote_cached cache[REST_CACHED]; /* guarded by lock */
    uint64_t clock;                   /* guarded: of uses */
} remote_catalog;

/* ["a","b"] */
void remote_put_levels(json_writer *w, const tarn_ident *ident);
/* {"namespace":[...],"name":"..."} */
void remote_put_ident(json_writer *w, const tarn_ident *table);

/* version (empty until now) is filled from a LoadTableResult or CommitTableResponse that was read
 * into its arena. CORRUPT; UNSUPPORTED where its files need what is not had. */
tarn_code remote_take_version(remote_catalog *self, tarn_table_version *version,
                              const json_value *json, const char *label,
                              tarn_error *err) TARN_MUST_USE;
void remote_cache_put(remote_catalog *self, const char *path, tarn_str etag,
                      tarn_table_version *version);
void remote_cache_drop(remote_catalog *self, const char *path);

tarn_code remote_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                      tarn_error *err);
tarn_code remote_commit_table(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                              const tarn_change_set *set, tarn_outcome_kind *outcome,
                              tarn_table_version **out, tarn_error *err);
/* remote_files.c */
bool remote_offers_files(tarn_catalog *c);
tarn_code remote_commit_files(tarn_catalog *c, const tarn_ident *table, tarn_str body,
                              tarn_outcome_kind *outcome, int64_t *snapshot_id, tarn_error *err);
tarn_code remote_create_table(tarn_catalog *c, const tarn_ident *table,
                              const metadata_new_options *options, tarn_table_version **out,
                              tarn_error *err);

tarn_code remote_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                 tarn_ident **out, int32_t *n, tarn_error *err);
tarn_code remote_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                  const tarn_properties *properties, tarn_error *err);
tarn_code remote_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                tarn_properties *out, tarn_error *err);
tarn_code remote_update_namespace(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                                  const tarn_properties *remove, tarn_error *err);
tarn_code remote_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err);

/* A list in pages: take sees each page's document. */
typedef tarn_code (*remote_take_page)(void *ctx, const json_value *page, tarn_error *err);
tarn_code remote_list(remote_catalog *self, tarn_arena *arena, const char *endpoint,
                      const char *path, remote_take_page take, void *ctx,
                      tarn_error *err) TARN_MUST_USE;

#endif
