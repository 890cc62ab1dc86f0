/* catalog/catalog.h - the one pointer that moves. A catalog maps names to the current metadata
 * document of each table; commit is compare-and-swap whatever lies under it. Internally locked: any
 * thread. Names are arrays of levels; a table is its namespace's levels and a name. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include <tarn/catalog.h>

#include "iceberg/change.h"
#include "iceberg/view.h"
#include "store/store.h"

typedef struct tarn_ident {
    int32_t n_levels;
    const tarn_str *levels; /* namespace */
    tarn_str name;          /* table; len 0: the namespace itself */
} tarn_ident;

/* One loaded version of a table: everything in it lives as long as it does. Counted references, so
 * that commits and scans can share it. */
typedef struct snapshot_pool snapshot_pool; /* catalog_version.c */
typedef struct tarn_table_version {
    tarn_arena arena;
    snapshot_pool *snapshots; /* where they live if not in arena; NULL: in arena */
    const tarn_metadata *metadata;
    tarn_str metadata_location;
    tarn_str head; /* how the document there begins, packed or not, and its size: no other */
    int64_t document_bytes; /* document has both, as ids and times come first */
    int32_t refs;           /* atomic */
} tarn_table_version;
tarn_table_version *table_version_keep(tarn_table_version *v);
void table_version_release(tarn_table_version *v); /* takes NULL */

/* The three answers of a commit. UNKNOWN: the swap was sent and neither a refusal nor our change
 * could be seen; nothing may be deleted. */
typedef enum tarn_outcome_kind {
    TARN_NOT_COMMITTED = 0,
    TARN_COMMITTED = 1,
    TARN_OUTCOME_UNKNOWN = 2
} tarn_outcome_kind;

/* One loaded version of a view; one owner. */
typedef struct catalog_view {
    tarn_arena arena;
    const view_metadata *metadata;
    tarn_str metadata_location;
} catalog_view;
void catalog_view_release(catalog_view *v); /* takes NULL */

/* One table of a commit of several. */
typedef struct catalog_table_commit {
    tarn_ident table;
    tarn_table_version *base; /* NULL: create; set then has REQUIRE_CREATE */
    tarn_change_set set;
} catalog_table_commit;

typedef struct tarn_catalog tarn_catalog;
typedef struct catalog_vtable {
    const char *name;
    tarn_code (*list_namespaces)(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                 tarn_ident **out, int32_t *n,
                                 tarn_error *err); /* direct children */
    tarn_code (*create_namespace)(tarn_catalog *c, const tarn_ident *ns,
                                  const tarn_properties *properties, tarn_error *err);
    tarn_code (*load_namespace)(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                tarn_properties *out, tarn_error *err);
    tarn_code (*update_namespace)(tarn_catalog *c, const tarn_ident *ns, const tarn_properties *set,
                                  const tarn_properties *remove, tarn_error *err);
    tarn_code (*drop_namespace)(tarn_catalog *c, const tarn_ident *ns,
                                tarn_error *err); /* CONFLICT when not empty */
    tarn_code (*list_tables)(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                             tarn_ident **out, int32_t *n, tarn_error *err);
    tarn_code (*load)(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                      tarn_error *err);
    /* base NULL: create (set has REQUIRE_CREATE; CONFLICT when it exists). Writes a metadata
     * document and moves the pointer. outcome is always filled; out (may be NULL) the new version
     * when committed. */
    tarn_code (*commit)(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                        const tarn_change_set *set, tarn_outcome_kind *outcome,
                        tarn_table_version **out, tarn_error *err);
    /* NULL, or whether the catalog takes write results itself (batch commit). */
    bool (*offers_files)(tarn_catalog *c);
    /* Commits write results (body: write/commit/request_json.h, with a commit id) once, however
     * often they are sent; outcome is always filled, snapshot_id (TARN_NO_SNAPSHOT: there was
     * nothing to do) when committed. */
    tarn_code (*commit_files)(tarn_catalog *c, const tarn_ident *table, tarn_str body,
                              tarn_outcome_kind *outcome, int64_t *snapshot_id, tarn_error *err);
    /* NULL: a commit without a base does. A catalog that has it chooses the table's uuid and, where
     * options name none, its location. */
    tarn_code (*create_table)(tarn_catalog *c, const tarn_ident *table,
                              const metadata_new_options *options, tarn_table_version **out,
                              tarn_error *err);
    tarn_code (*register_table)(tarn_catalog *c, const tarn_ident *table,
                                tarn_str metadata_location, tarn_error *err);
    tarn_code (*rename_table)(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                              tarn_error *err);
    tarn_code (*drop_table)(tarn_catalog *c, const tarn_ident *table,
                            tarn_error *err); /* the pointer only; purge is done above */
    tarn_code (*default_location)(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                  tarn_str *out, tarn_error *err);
    /* Drops the pointer if it still is that of version; CONFLICT when it moved. NULL: a table
     * cannot leave the catalog without its files. */
    tarn_code (*unregister_table)(tarn_catalog *c, const tarn_ident *table,
                                  const tarn_table_version *version, tarn_error *err);
    /* The same of a drop; NULL where unregister_table is one. */
    tarn_code (*drop_version)(tarn_catalog *c, const tarn_ident *table,
                              const tarn_table_version *version, tarn_error *err);
    bool numbers; /* it may keep tables in numbered documents, which go when one is dropped */
    /* NULL where the catalog cannot move several pointers at once. All commits or none of them;
     * outcome as of commit. */
    tarn_code (*commit_many)(tarn_catalog *c, const catalog_table_commit *commits, int32_t n,
                             tarn_outcome_kind *outcome, tarn_error *err);
    /* Views; all NULL where the catalog has none. A table and a view cannot have one name. */
    tarn_code (*list_views)(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                            tarn_ident **out, int32_t *n, tarn_error *err);
    tarn_code (*load_view)(tarn_catalog *c, const tarn_ident *view, catalog_view **out,
                           tarn_error *err);
    /* base NULL: create. CONFLICT: it was there, or another moved it; COMMIT_UNKNOWN as of tables.
     */
    tarn_code (*commit_view)(tarn_catalog *c, const tarn_ident *view, const catalog_view *base,
                             const view_change_set *set, catalog_view **out, tarn_error *err);
    tarn_code (*register_view)(tarn_catalog *c, const tarn_ident *view, tarn_str metadata_location,
                               tarn_error *err);
    tarn_code (*rename_view)(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                             tarn_error *err);
    tarn_code (*drop_view)(tarn_catalog *c, const tarn_ident *view, tarn_error *err);
    void (*close)(tarn_catalog *c);
    /* NULL where nothing can be away. hasty: in loads and commits what was not reached is not tried
     * again, as the caller does that. */
    void (*set_hasty)(tarn_catalog *c, bool hasty);
} catalog_vtable;

typedef struct catalog_waiting catalog_waiting; /* catalog_wait.c */

struct tarn_catalog {
    const catalog_vtable *vt;
    tarn_env *env;
    tarn_store *store;        /* of its warehouse; owned */
    catalog_waiting *waiting; /* NULL: that it is away is an error at once */
};

/* While the server or database is away (err_is_away), catalog_load, catalog_commit and
 * catalog_commit_files wait for it, so that what they answer is as if it had never been: a commit
 * whose answer was lost is settled when it is back. */
typedef struct catalog_patience {
    int64_t timeout_ms; /* of one outage; -1: for ever; 0: none */
    /* NULL, or asked about 10 times a second by whoever waits, from any thread, one at a time;
     * false: it is an error now. */
    bool (*ask)(void *ctx, tarn_away_event event, int64_t ms, const char *why);
    void *ctx;
} catalog_patience;
/* NULL: none. Not while other threads use the catalog, but for setting none. */
tarn_code catalog_set_patience(tarn_catalog *c, const catalog_patience *patience,
                               tarn_error *err) TARN_MUST_USE;
int64_t catalog_waited_ms(tarn_catalog *c); /* in all calls that are over */

/* Checked wrappers: one for each of the above, catalog_<verb>(...). */
tarn_code catalog_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                  tarn_ident **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                   const tarn_properties *properties,
                                   tarn_error *err) TARN_MUST_USE;
tarn_code catalog_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                 tarn_properties *out, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_update_namespace(tarn_catalog *c, const tarn_ident *ns,
                                   const tarn_properties *set, const tarn_properties *remove,
                                   tarn_error *err) TARN_MUST_USE;
tarn_code catalog_drop_namespace(tarn_catalog *c, const tarn_ident *ns,
                                 tarn_error *err) TARN_MUST_USE;
tarn_code catalog_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                              tarn_ident **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                       tarn_error *err) TARN_MUST_USE;
tarn_code catalog_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                         const tarn_change_set *set, tarn_outcome_kind *outcome,
                         tarn_table_version **out, tarn_error *err) TARN_MUST_USE;
bool catalog_offers_files(tarn_catalog *c);
tarn_code catalog_commit_files(tarn_catalog *c, const tarn_ident *table, tarn_str body,
                               tarn_outcome_kind *outcome, int64_t *snapshot_id,
                               tarn_error *err) TARN_MUST_USE;
tarn_code catalog_register(tarn_catalog *c, const tarn_ident *table, tarn_str metadata_location,
                           tarn_error *err) TARN_MUST_USE;
tarn_code catalog_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                         tarn_error *err) TARN_MUST_USE;
tarn_code catalog_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) TARN_MUST_USE;
/* Where a new table of that name would lie. */
tarn_code catalog_default_location(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                   tarn_str *out, tarn_error *err) TARN_MUST_USE;
/* Creates a table: metadata_new with a location by default, then commit. */
/* Whether tables are made with the ids that metadata_new_options.keep_ids asks for; where a server
 * makes them it gives ids of its own. */
bool catalog_keeps_ids(const tarn_catalog *c);
tarn_code catalog_create(tarn_catalog *c, const tarn_ident *table,
                         const metadata_new_options *options, tarn_table_version **out,
                         tarn_error *err) TARN_MUST_USE;
/* UNSUPPORTED where the catalog has no views, or commits one table at a time (one table it takes in
 * any case). */
tarn_code catalog_commit_many(tarn_catalog *c, const catalog_table_commit *commits, int32_t n,
                              tarn_outcome_kind *outcome, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_unregister(tarn_catalog *c, const tarn_ident *table,
                             const tarn_table_version *version, tarn_error *err) TARN_MUST_USE;
/* catalog_drop of the table as version has it: CONFLICT where it has moved on, or is another by
 * now. dir catalogs, and servers that do not know If-Match, can only be looked at right before. */
tarn_code catalog_drop_version(tarn_catalog *c, const tarn_ident *table,
                               const tarn_table_version *version, tarn_error *err) TARN_MUST_USE;
/* Whether a document of a table that was dropped went with it, and the name may be that of another
 * by now. */
bool catalog_drop_took(const tarn_catalog *c, tarn_str document);
bool catalog_has_views(const tarn_catalog *c);
tarn_code catalog_list_views(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                             tarn_ident **out, int32_t *n, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_load_view(tarn_catalog *c, const tarn_ident *view, catalog_view **out,
                            tarn_error *err) TARN_MUST_USE;
tarn_code catalog_commit_view(tarn_catalog *c, const tarn_ident *view, const catalog_view *base,
                              const view_change_set *set, catalog_view **out,
                              tarn_error *err) TARN_MUST_USE;
tarn_code catalog_register_view(tarn_catalog *c, const tarn_ident *view, tarn_str metadata_location,
                                tarn_error *err) TARN_MUST_USE;
tarn_code catalog_rename_view(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                              tarn_error *err) TARN_MUST_USE;
tarn_code catalog_drop_view(tarn_catalog *c, const tarn_ident *view, tarn_error *err) TARN_MUST_USE;
void catalog_close(tarn_catalog *c); /* takes NULL */

/* dir:  warehouse folder; ns levels are folders, a table is a folder with
 * metadata/vN.metadata.json, found by version-hint.text and then forward (Hadoop layout). The
 * pointer is the atomic create of the next vN. Rename is UNSUPPORTED (as in Iceberg's
 * HadoopCatalog). Takes store on success. */
tarn_code catalog_dir_new(tarn_env *env, tarn_store *store, tarn_str warehouse, tarn_catalog **out,
                          tarn_error *err) TARN_MUST_USE;
/* sqlite:  the JDBC catalog's tables iceberg_tables, iceberg_namespace_properties (schema V1 with
 * iceberg_type; V0 tables are read and used), so that PyIceberg's SqlCatalog and Iceberg's
 * JdbcCatalog open the same file. catalog_name is the column's value. Takes store on success. */
tarn_code catalog_sqlite_new(tarn_env *env, tarn_store *store, tarn_str db_path,
                             tarn_str catalog_name, tarn_str warehouse, tarn_catalog **out,
                             tarn_error *err) TARN_MUST_USE;
/* postgresql:  the same tables and rules in a PostgreSQL database. uri is postgresql://... or
 * libpq's "host=... dbname=..."; its password is in no message. UNSUPPORTED where it was not built
 * in. */
tarn_code catalog_postgres_new(tarn_env *env, tarn_store *store, tarn_str uri,
                               tarn_str catalog_name, tarn_str warehouse, tarn_catalog **out,
                               tarn_error *err) TARN_MUST_USE;
/* http:, https:  a server of the Iceberg REST specification. options as remote_client.h says; their
 * secrets are in no message. Data files are reached by store. UNSUPPORTED where it was not built
 * in; DENIED, IO where the server cannot be asked for its configuration. */
tarn_code catalog_rest_new(tarn_env *env, tarn_store *store, tarn_str uri,
                           const tarn_properties *options, tarn_catalog **out,
                           tarn_error *err) TARN_MUST_USE;
/* One table by folder or metadata file, read-only (for paths given on the command line): any ident
 * names it. A folder takes the highest version (hint, then newest by name or number). */
tarn_code catalog_path_new(tarn_env *env, tarn_store *store, tarn_str path, tarn_catalog **out,
                           tarn_error *err) TARN_MUST_USE;

/* Shared by all of them. */
tarn_code catalog_read_version(tarn_env *env, tarn_store *store, tarn_str metadata_location,
                               tarn_table_version **out, tarn_error *err) TARN_MUST_USE;
tarn_code catalog_read_view(tarn_env *env, tarn_store *store, tarn_str metadata_location,
                            catalog_view **out, tarn_error *err) TARN_MUST_USE;
/* "ns.name" or `a.b`.name with quotes; checks lengths and control characters. */
tarn_code ident_parse(tarn_arena *arena, tarn_str text, bool is_namespace, tarn_ident *out,
                      tarn_error *err) TARN_MUST_USE;
tarn_code ident_text(const tarn_ident *ident, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
