/* catalog/catalog_rest_int.h - the REST catalog's files: catalog_rest.c has names and loading,
 * rest_namespace.c the namespaces, rest_commit.c what creates and changes tables. */
#ifndef CATALOG_CATALOG_REST_INT_H
#define CATALOG_CATALOG_REST_INT_H

#include <pthread.h>

#include "catalog/rest_client.h"

#define REST_CACHED 64

/* What a table was at its last load, and the tag by which the server knows it. */
typedef struct rest_cached {
    tarn_buf path, etag;
    tarn_table_version *version; /* NULL: free */
    uint64_t used;
} rest_cached;

typedef struct rest_catalog {
    tarn_catalog base;
    rest_client *client;
    pthread_mutex_t lock;
    rest_cached cache[REST_CACHED]; /* guarded by lock */
    uint64_t clock;                 /* guarded: of uses */
} rest_catalog;

/* ["a","b"] */
void rest_put_levels(json_writer *w, const tarn_ident *ident);
/* {"namespace":[...],"name":"..."} */
void rest_put_ident(json_writer *w, const tarn_ident *table);

/* version (empty until now) is filled from a LoadTableResult or CommitTableResponse that was read
 * into its arena. CORRUPT; UNSUPPORTED where its files need what is not had. */
tarn_code rest_take_version(rest_catalog *self, tarn_table_version *version, const json_value *json,
                            const char *label, tarn_error *err) TARN_MUST_USE;
void rest_cache_put(rest_catalog *self, const char *path, tarn_str etag,
                    tarn_table_version *version);
void rest_cache_drop(rest_catalog *self, const char *path);

tarn_code rest_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                    tarn_error *err);
tarn_code rest_commit_table(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                            const tarn_change_set *set, tarn_outcome_kind *outcome,
                            tarn_table_version **out, tarn_error *err);
tarn_code rest_create_table(tarn_catalog *c, const tarn_ident *table,
                            const metadata_new_options *options, tarn_table_version **out,
                            tarn_error *err);

tarn_code rest_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                               tarn_ident **out, int32_t *n, tarn_error *err);
tarn_code rest_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                const tarn_properties *properties, tarn_error *err);
tarn_code rest_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                              tarn_properties *out, tarn_error *err);
tarn_code rest_update_namespace(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                                const tarn_properties *remove, tarn_error *err);
tarn_code rest_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err);

/* A list in pages: take sees each page's document. */
typedef tarn_code (*rest_take_page)(void *ctx, const json_value *page, tarn_error *err);
tarn_code rest_list(rest_catalog *self, tarn_arena *arena, const char *endpoint, const char *path,
                    rest_take_page take, void *ctx, tarn_error *err) TARN_MUST_USE;

#endif
