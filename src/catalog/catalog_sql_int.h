/* catalog/catalog_sql_int.h - the SQL catalog's files: catalog_sql.c has the tables and commits,
 * sql_many.c commits of several pointers at once, sql_view.c the views, sql_namespace.c the
 * namespaces. Every rule is there once; sql_db.h hides which database it is. */
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
    bool hasty;               /* set_hasty; guarded by lock */
    tarn_str name, warehouse; /* behind this struct */
    /* The versions that it committed last, newest first: their documents have names that are nobody
     * else's, so that a pointer that still names one need not be followed. Guarded by lock. */
    recent_versions recent;
} sql_catalog;

static inline void sql_lock(sql_catalog *self) {
    (void)pthread_mutex_lock(&self->lock);
}
/* For calls that are made again where the database is away, if that is wanted. */
static inline void sql_lock_waited(sql_catalog *self) {
    sql_lock(self);
    self->db->hasty = self->hasty;
}
static inline void sql_unlock(sql_catalog *self) {
    self->db->hasty = false;
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

/* What a row of iceberg_tables names. Rows from before the column iceberg_type are tables. */
typedef enum sql_kind { SQL_TABLE, SQL_VIEW } sql_kind;
static inline const char *sql_kind_name(sql_kind kind) {
    return kind == SQL_VIEW ? "view" : "table";
}
/* sql, and the condition on the type where the database has one. */
#define SQL_OF_KIND(self, kind, sql)                                                               \
    ((kind) == SQL_VIEW  ? sql " AND iceberg_type='VIEW'"                                          \
     : !(self)->has_type ? sql                                                                     \
                         : sql " AND (iceberg_type='TABLE' OR iceberg_type IS NULL)")

#define SQL_SWAP_TRIES 5 /* a server that went away and came back */

/* A row's place. */
typedef struct sql_key {
    sql_kind kind;
    const char *label; /* for errors */
    sql_namespace ns;
    tarn_str name;
} sql_key;
tarn_code sql_key_of(tarn_arena *arena, sql_kind kind, const tarn_ident *ident, sql_key *out,
                     tarn_error *err) TARN_MUST_USE;

/* The row's pointer, in arena. Under the lock. */
tarn_code sql_read_pointer(sql_catalog *self, tarn_arena *arena, const sql_key *key, tarn_str *out,
                           tarn_error *err) TARN_MUST_USE;
/* CONFLICT when the name is taken. Under the lock, in a transaction. */
tarn_code sql_insert_row(sql_catalog *self, const sql_key *key, tarn_str location,
                         tarn_error *err) TARN_MUST_USE;
/* These take the lock themselves. */
tarn_code sql_register_row(sql_catalog *self, const sql_key *key, tarn_str location,
                           tarn_error *err) TARN_MUST_USE;
tarn_code sql_list(sql_catalog *self, tarn_arena *arena, sql_kind kind, const tarn_ident *ns,
                   tarn_ident **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
tarn_code sql_rename_kind(sql_catalog *self, sql_kind kind, const tarn_ident *from,
                          const tarn_ident *to, tarn_error *err) TARN_MUST_USE;
/* at: CONFLICT unless the pointer is this; no data: whatever it is. */
tarn_code sql_drop_kind(sql_catalog *self, sql_kind kind, const tarn_ident *ident, tarn_str at,
                        tarn_error *err) TARN_MUST_USE;

/* NNNNN-<uuid>.metadata.json: one above the number of base's name, 0 without one. NULL: no memory.
 */
const char *sql_document_name(sql_catalog *self, tarn_arena *arena, tarn_str base, bool gzip);
/* Names and packs the document that follows base (NULL: a new table). */
tarn_code sql_place_document(sql_catalog *self, tarn_arena *arena, const tarn_table_version *base,
                             catalog_document *doc, tarn_error *err) TARN_MUST_USE;

/* One pointer of several that move together. */
typedef struct sql_move {
    sql_key key;
    tarn_str from; /* no data: a new row */
    tarn_str to;
} sql_move;
/* All of them or none, in one transaction. CONFLICT: somebody else moved one, or has the name;
 * outcome is always filled, and OK if and only if COMMITTED. */
tarn_code sql_move_all(sql_catalog *self, const sql_move *moves, int32_t n,
                       tarn_outcome_kind *outcome, tarn_error *err) TARN_MUST_USE;

tarn_code sql_commit_many(tarn_catalog *c, const catalog_table_commit *commits, int32_t n,
                          tarn_outcome_kind *outcome, tarn_error *err);
tarn_code sql_list_views(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns, tarn_ident **out,
                         int32_t *n, tarn_error *err);
tarn_code sql_load_view(tarn_catalog *c, const tarn_ident *view, catalog_view **out,
                        tarn_error *err);
tarn_code sql_commit_view(tarn_catalog *c, const tarn_ident *view, const catalog_view *base,
                          const view_change_set *set, catalog_view **out, tarn_error *err);
tarn_code sql_register_view(tarn_catalog *c, const tarn_ident *view, tarn_str metadata_location,
                            tarn_error *err);
tarn_code sql_rename_view(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                          tarn_error *err);
tarn_code sql_drop_view(tarn_catalog *c, const tarn_ident *view, tarn_error *err);

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
