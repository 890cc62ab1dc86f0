/* catalog/catalog_sql_int.h - the SQL catalog's files: catalog_sql.c has the tables and commits,
 * sql_namespace.c the namespaces. Every rule is there once; sql_db.h hides which database it is. */
#ifndef CATALOG_CATALOG_SQL_INT_H
#define CATALOG_CATALOG_SQL_INT_H

#include <pthread.h>

#include "catalog/catalog_int.h"
#include "catalog/sql_db.h"

typedef struct sql_catalog {
    tarn_catalog base;
    pthread_mutex_t lock;
    sql_db *db;               /* guarded by lock */
    bool has_type;            /* schema V1: iceberg_type */
    tarn_str name, warehouse; /* behind this struct */
} sql_catalog;

static inline void sql_lock(sql_catalog *self) {
    (void)pthread_mutex_lock(&self->lock);
}
static inline void sql_unlock(sql_catalog *self) {
    (void)pthread_mutex_unlock(&self->lock);
}

/* A namespace as the database has it: its levels joined by dots; and the texts between which all
 * namespaces below it lie ("ns." and "ns/", the byte after the dot), so that no LIKE is needed. */
typedef struct sql_namespace {
    tarn_str text, low, high;
} sql_namespace;
tarn_code sql_namespace_of(tarn_arena *arena, const tarn_ident *ident, sql_namespace *out,
                           tarn_error *err) TARN_MUST_USE;
/* NOT_FOUND unless ns is there: a row of its own, or anything below it. Under the lock. */
tarn_code sql_need_namespace(sql_catalog *self, const sql_namespace *ns,
                             tarn_error *err) TARN_MUST_USE;
/* Its property "location", or no data. Under the lock. */
tarn_code sql_namespace_location(sql_catalog *self, tarn_arena *arena, const sql_namespace *ns,
                                 tarn_str *out, tarn_error *err) TARN_MUST_USE;

tarn_code sql_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                              tarn_ident **out, int32_t *n, tarn_error *err);
tarn_code sql_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                               const tarn_properties *properties, tarn_error *err);
tarn_code sql_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                             tarn_properties *out, tarn_error *err);
tarn_code sql_update_namespace(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                               const tarn_properties *remove, tarn_error *err);
tarn_code sql_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err);

#endif
