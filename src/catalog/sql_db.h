/* catalog/sql_db.h - the little of a database that the SQL catalog needs: statements with text
 * parameters, whose rows are held whole, and transactions. Two databases lie under it: SQLite
 * (sqlite_db.c) and PostgreSQL (postgres_db.c). One thread at a time: the catalog's lock is held.
 *
 * Statements are written once for both: parameters are $1, $2, ..., and {C} stands behind a text
 * that is compared by its bytes, whatever order the database sorts texts in. */
#ifndef CATALOG_SQL_DB_H
#define CATALOG_SQL_DB_H

#include "base/arena.h"
#include "base/err.h"

typedef struct sql_rows {
    int32_t n_rows, n_columns;
    tarn_str *values; /* row by row; data NULL for NULL */
    int64_t changes;  /* rows inserted, updated or deleted */
} sql_rows;

static inline tarn_str sql_value(const sql_rows *rows, int32_t row, int32_t column) {
    return rows->values[(size_t)row * (size_t)rows->n_columns + (size_t)column];
}

typedef struct sql_db sql_db;
typedef struct sql_db_vtable {
    const char *by_bytes;   /* what {C} stands for */
    const char *has_tables; /* a row when both tables are there */
    const char *has_type;   /* a row when iceberg_tables has the column iceberg_type */
    bool remote;            /* a statement may take effect after its connection was lost */
    /* args bound to $1, $2, ...; data NULL binds NULL. A broken uniqueness is CONFLICT. Values live
     * in arena. */
    tarn_code (*query)(sql_db *db, tarn_arena *arena, const char *sql, int n_args,
                       const tarn_str *args, sql_rows *out, tarn_error *err);
    /* One change as a transaction of its own; NULL: begin, query and commit do. */
    tarn_code (*change)(sql_db *db, const char *sql, int n_args, const tarn_str *args,
                        int64_t *changes, bool *refused, tarn_error *err);
    tarn_code (*begin)(sql_db *db, tarn_error *err);
    tarn_code (*commit)(sql_db *db, bool *refused, tarn_error *err);
    void (*rollback)(sql_db *db);
    void (*close)(sql_db *db);
} sql_db_vtable;

struct sql_db {
    const sql_db_vtable *vt;
    tarn_env *env;
    const char *label; /* for errors: never a password */
    bool hasty;        /* a server that is not there is not tried again */
};

tarn_code sql_query(sql_db *db, tarn_arena *arena, const char *sql, int n_args,
                    const tarn_str *args, sql_rows *out, tarn_error *err) TARN_MUST_USE;
/* *changes (may be NULL) is the number of rows changed. */
tarn_code sql_run(sql_db *db, const char *sql, int n_args, const tarn_str *args, int64_t *changes,
                  tarn_error *err) TARN_MUST_USE;
/* Whether the query has a row. */
tarn_code sql_has_row(sql_db *db, const char *sql, int n_args, const tarn_str *args, bool *out,
                      tarn_error *err) TARN_MUST_USE;
/* One statement as a transaction of its own. *refused as of sql_commit. */
tarn_code sql_change(sql_db *db, const char *sql, int n_args, const tarn_str *args,
                     int64_t *changes, bool *refused, tarn_error *err) TARN_MUST_USE;
/* By the bytes of the first column. */
void sql_sort(sql_rows *rows);

/* A transaction in which what was read about names stays true until it ends: no other one of this
 * kind, and no other change of names, comes between. */
tarn_code sql_begin(sql_db *db, tarn_error *err) TARN_MUST_USE;
/* *refused: the transaction certainly had no effect. Otherwise a failure leaves open what the
 * database holds. */
tarn_code sql_commit(sql_db *db, bool *refused, tarn_error *err) TARN_MUST_USE;
void sql_rollback(sql_db *db); /* also when none is open */
void sql_close(sql_db *db);    /* takes NULL */

/* Opens or makes the file; one that is made gets a write-ahead log. A log asks even readers for
 * room in its folder: where there is none (a full disk, a folder that cannot be written) and nobody
 * else has the database open, it is read as it lies. Changes then fail with what stood against
 * them. path must be absolute. */
tarn_code sql_open_sqlite(tarn_env *env, tarn_str path, sql_db **out,
                          tarn_error *err) TARN_MUST_USE;
/* Connects by a URI (postgresql://user:password@host:port/db?...) or libpq's "host=... dbname=...".
 * A connection that is lost is made again before the next statement. */
tarn_code sql_open_postgres(tarn_env *env, tarn_str uri, sql_db **out,
                            tarn_error *err) TARN_MUST_USE;

#endif
