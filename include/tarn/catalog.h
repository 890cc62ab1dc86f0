/* tarn/catalog.h - names and the tables behind them.
 *
 * A catalog is opened by URI: "sqlite:PATH" (the JDBC catalog's tables in an SQLite file),
 * "postgresql://user:password@host:port/db" or "postgresql:host=... dbname=..." (the same tables in
 * PostgreSQL), "dir:PATH" (Hadoop layout in a folder), "http://..." or "https://..." (a server of
 * the Iceberg REST specification). Passwords and tokens are in no message. It is internally locked:
 * any thread. Table names are "ns.table", levels separated by dots; a level that holds a dot or a
 * space is quoted with backticks or double quotes. spec: Iceberg table spec, "Table Metadata";
 * catalogs as Iceberg's JdbcCatalog and HadoopCatalog; Iceberg REST catalog API. */
#ifndef TARN_CATALOG_H
#define TARN_CATALOG_H

#include <stdbool.h>

#include <tarn/arrow.h>
#include <tarn/env.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_catalog_handle tarn_catalog_handle;

typedef struct tarn_catalog_options {
    uint32_t struct_size;
    const char *warehouse;  /* folder or URI for new tables; NULL: "warehouse" beside the SQLite
                               file, or the dir itself; for a REST catalog the name it is asked
                               for by. @borrow */
    const char *name;       /* catalog_name column of the SQL tables; NULL: "tarn". @borrow */
    const char *moved_from; /* reads locations that begin with this ... NULL: none. @borrow */
    const char *moved_to;   /* ... below this instead. @borrow */
    bool no_sync;           /* do not fsync files (tests, scratch data) */
    /* {"key":"value"...} of a REST catalog: token; credential ("id:secret"), oauth2-server-uri,
     * scope, audience, resource; header.NAME; prefix; rest-page-size; ssl.cabundle (a file). NULL:
     * none.
     * @borrow. @since 0.2 */
    const char *properties_json;
} tarn_catalog_options;

#define TARN_CATALOG_OPTIONS_INIT                                                                  \
    { sizeof(tarn_catalog_options), NULL, NULL, NULL, NULL, false, NULL }

/* Opens (sqlite, postgresql: makes the tables if they are missing). INVALID: not a catalog URI; IO,
 * DENIED; UNSUPPORTED: not built in. Cost: one open; a server is asked once. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_open(tarn_env *env,                       /* @keep */
                  const char *uri,                     /* @borrow */
                  const tarn_catalog_options *options, /* @borrow, may be NULL */
                  tarn_catalog_handle **out,           /* @give: tarn_catalog_close */
                  tarn_error *err /* @borrow, may be NULL */);
/* What is told of a catalog whose server or database is away. */
typedef enum tarn_away_event {
    TARN_AWAY_LASTS = 0,  /* it is waited for */
    TARN_AWAY_BEGINS = 1, /* once, where it lasts longer than a moment */
    TARN_AWAY_ENDS = 2    /* once after that */
} tarn_away_event;

typedef struct tarn_catalog_wait {
    uint32_t struct_size;
    int64_t timeout_ms; /* of one outage, before it is an error; -1: for ever */
    /* NULL, or asked about 10 times a second by whoever waits, on any thread, one at a time: ms
     * since the outage began, why as the error says it. false: it is an error now. It must not
     * call the library. @keep */
    bool (*ask)(void *ctx, tarn_away_event event, int64_t ms, const char *why);
    void *ctx; /* @keep */
} tarn_catalog_wait;

#define TARN_CATALOG_WAIT_INIT                                                                     \
    { sizeof(tarn_catalog_wait), 0, NULL, NULL }

/* From now on loading tables and committing to them waits while the server of an http or https
 * catalog, or the database of a postgresql one, is away (TARN_ERROR_AWAY), and tries again, up to
 * 30 seconds apart. What is answered then is as if it had never been away: a commit whose answer
 * was lost is looked for, or sent again, once the catalog is back. Without it (NULL) such calls
 * fail after a few seconds. Not while other threads use the catalog. NOMEM, IO. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_set_wait(tarn_catalog_handle *catalog,  /* @borrow */
                      const tarn_catalog_wait *wait, /* @borrow, may be NULL */
                      tarn_error *err /* @borrow, may be NULL */);
TARN_API void tarn_catalog_close(tarn_catalog_handle *catalog /* @take, may be NULL */);

/* Text results are JSON documents in one allocation of the caller's. */
TARN_API void tarn_text_free(tarn_env *env, /* @borrow */ char *text /* @take, may be NULL */);

/* [{"namespace":["a"]}...] of the direct children of parent (NULL: top level), and
 * [{"namespace":["a"],"name":"t"}...]. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_list_namespaces(tarn_catalog_handle *catalog, /* @borrow */
                             const char *parent,           /* @borrow, may be NULL */
                             char **json_out,              /* @give: tarn_text_free */
                             tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_list_tables(tarn_catalog_handle *catalog, /* @borrow */
                         const char *ns,               /* @borrow */
                         char **json_out,              /* @give: tarn_text_free */
                         tarn_error *err /* @borrow, may be NULL */);
/* {"properties":{...}} of a namespace. NOT_FOUND. */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_load_namespace(tarn_catalog_handle *catalog, /* @borrow */
                            const char *ns,               /* @borrow */
                            char **json_out,              /* @give: tarn_text_free */
                            tarn_error *err /* @borrow, may be NULL */);
/* properties_json: {"key":"value"...} or NULL. CONFLICT: it exists. drop: CONFLICT while it is not
 * empty. @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_create_namespace(tarn_catalog_handle *catalog, /* @borrow */
                              const char *ns,               /* @borrow */
                              const char *properties_json,  /* @borrow, may be NULL */
                              tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_drop_namespace(tarn_catalog_handle *catalog, /* @borrow */
                            const char *ns,               /* @borrow */
                            tarn_error *err /* @borrow, may be NULL */);

typedef struct tarn_create_options {
    uint32_t struct_size;
    int32_t format_version;  /* 0: 2 */
    const char *schema_json; /* Iceberg schema JSON; or NULL and one of the next two. @borrow */
    const char *schema_text; /* "id long not null, name string, tags list<string>". @borrow */
    const struct ArrowSchema *schema_arrow; /* @borrow */
    const char *partition_by; /* "month(ts), bucket(16, carrier)"; NULL: unpartitioned. @borrow */
    const char *sort_by;      /* "a desc nulls last, b"; NULL: unsorted. @borrow */
    const char *identifiers;  /* comma separated column names; NULL: none. @borrow */
    const char *location;     /* NULL: the catalog's choice. @borrow */
    const char *properties_json; /* {"key":"value"...}; NULL: none. @borrow */
} tarn_create_options;

#define TARN_CREATE_OPTIONS_INIT                                                                   \
    { sizeof(tarn_create_options), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Creates an empty table; its namespace must exist. CONFLICT: the name is taken. If it fails the
 * table does not exist. spec: "Table Metadata". @since 0.1 */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_create_table(tarn_catalog_handle *catalog,       /* @borrow */
                          const char *table,                  /* @borrow */
                          const tarn_create_options *options, /* @borrow */
                          tarn_error *err /* @borrow, may be NULL */);
/* Makes a metadata file that exists known under a name. */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_register_table(tarn_catalog_handle *catalog,  /* @borrow */
                            const char *table,             /* @borrow */
                            const char *metadata_location, /* @borrow */
                            tarn_error *err /* @borrow, may be NULL */);
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_rename_table(tarn_catalog_handle *catalog, /* @borrow */
                          const char *from,             /* @borrow */
                          const char *to,               /* @borrow */
                          tarn_error *err /* @borrow, may be NULL */);
/* Forgets the name; with purge also removes the table's data and metadata files (the name goes
 * first). */
TARN_API TARN_MUST_USE tarn_code
tarn_catalog_drop_table(tarn_catalog_handle *catalog, /* @borrow */
                        const char *table,            /* @borrow */
                        bool purge, tarn_error *err /* @borrow, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
