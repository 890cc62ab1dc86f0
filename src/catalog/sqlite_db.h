/* catalog/sqlite_db.h - the little of SQLite that the catalog needs: statements with text
 * parameters, transactions that take the write lock first, and its errors as ours. One thread at a
 * time: the catalog's lock is held. */
#ifndef CATALOG_SQLITE_DB_H
#define CATALOG_SQLITE_DB_H

#include <sqlite3.h>

#include "base/err.h"
#include "base/str.h"

typedef struct sqlite_db {
    sqlite3 *handle;
    const char *path; /* for errors; lives as long as handle */
    bool read_only;   /* opened as it lies on the disk */
    tarn_error why;   /* then: what stood against opening it for changes */
} sqlite_db;

/* Opens or makes the database; one that is made gets a write-ahead log. A log asks even readers for
 * room in its folder: where there is none (a full disk, a folder that cannot be written) and nobody
 * else has the database open, it is read as it lies. Changes then fail with what stood against
 * them. */
tarn_code sqlite_open(sqlite_db *db, const char *path, tarn_error *err) TARN_MUST_USE;
void sqlite_close(sqlite_db *db);

/* A statement with args bound to ?1, ?2, ...; data NULL binds NULL. */
tarn_code sqlite_prepare(sqlite_db *db, const char *sql, int n_args, const tarn_str *args,
                         sqlite3_stmt **out, tarn_error *err) TARN_MUST_USE;
tarn_code sqlite_next(sqlite_db *db, sqlite3_stmt *statement, bool *row,
                      tarn_error *err) TARN_MUST_USE;
/* Valid until the next step; data NULL for NULL. */
tarn_str sqlite_text(sqlite3_stmt *statement, int column);
/* Runs to the end; *changes (may be NULL) is the number of rows changed. A broken uniqueness is
 * CONFLICT. */
tarn_code sqlite_run(sqlite_db *db, const char *sql, int n_args, const tarn_str *args, int *changes,
                     tarn_error *err) TARN_MUST_USE;
/* Whether the query has a row. */
tarn_code sqlite_has_row(sqlite_db *db, const char *sql, int n_args, const tarn_str *args,
                         bool *out, tarn_error *err) TARN_MUST_USE;

tarn_code sqlite_begin(sqlite_db *db, tarn_error *err) TARN_MUST_USE;
/* *refused: the transaction certainly had no effect. Otherwise a failure leaves it open what the
 * disk holds. */
tarn_code sqlite_commit(sqlite_db *db, bool *refused, tarn_error *err) TARN_MUST_USE;
void sqlite_rollback(sqlite_db *db); /* also when none is open */

#endif
