/* catalog/catalog_sqlite_int.h - the SQLite catalog's two files: catalog_sqlite.c has the tables
 * and commits, sqlite_namespace.c the namespaces. */
#ifndef CATALOG_CATALOG_SQLITE_INT_H
#define CATALOG_CATALOG_SQLITE_INT_H

#include <pthread.h>

#include "catalog/catalog_int.h"
#include "catalog/sqlite_db.h"

typedef struct sqlite_catalog {
    tarn_catalog base;
    pthread_mutex_t lock;
    sqlite_db db;             /* guarded by lock */
    bool has_type;            /* schema V1: iceberg_type */
    tarn_str name, warehouse; /* behind this struct, with the database's path */
} sqlite_catalog;

static inline void sqlite_lock(sqlite_catalog *self) {
    (void)pthread_mutex_lock(&self->lock);
}
static inline void sqlite_unlock(sqlite_catalog *self) {
    (void)pthread_mutex_unlock(&self->lock);
}

/* A namespace as the database has it: its levels joined by dots; and the texts between which all
 * namespaces below it lie ("ns." and "ns/", the byte after the dot), so that no LIKE is needed. */
typedef struct sqlite_namespace {
    tarn_str text, low, high;
} sqlite_namespace;
tarn_code sqlite_namespace_of(tarn_arena *arena, const tarn_ident *ident, sqlite_namespace *out,
                              tarn_error *err) TARN_MUST_USE;
/* NOT_FOUND unless ns is there: a row of its own, or anything below it. Under the lock. */
tarn_code sqlite_need_namespace(sqlite_catalog *self, const sqlite_namespace *ns,
                                tarn_error *err) TARN_MUST_USE;
/* Its property "location", or no data. Under the lock. */
tarn_code sqlite_namespace_location(sqlite_catalog *self, tarn_arena *arena,
                                    const sqlite_namespace *ns, tarn_str *out,
                                    tarn_error *err) TARN_MUST_USE;

tarn_code sqlite_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                 tarn_ident **out, int32_t *n, tarn_error *err);
tarn_code sqlite_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                  const tarn_properties *properties, tarn_error *err);
tarn_code sqlite_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                tarn_properties *out, tarn_error *err);
tarn_code sqlite_update_namespace(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                                  const tarn_properties *remove, tarn_error *err);
tarn_code sqlite_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err);

#endif
