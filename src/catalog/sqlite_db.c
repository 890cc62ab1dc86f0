/* catalog/sqlite_db.c - SQLite behind a small face. A lock held by another process is waited for
 * within SQLite for BUSY_TIMEOUT_MS; after that the statement is an error and had no effect. */
#include "catalog/sqlite_db.h"

#define BUSY_TIMEOUT_MS 30000

static tarn_code code_of(int result) {
    switch (result & 0xff) { /* the primary code */
    case SQLITE_NOMEM:
        return TARN_NOMEM;
    case SQLITE_CONSTRAINT:
        return TARN_CONFLICT;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return TARN_DENIED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return TARN_CORRUPT;
    default:
        return TARN_IO;
    }
}

static tarn_code fail(const sqlite_db *db, int result, const char *what, tarn_error *err) {
    if ((result & 0xff) == SQLITE_BUSY || (result & 0xff) == SQLITE_LOCKED) {
        return err_set(err, TARN_IO, "catalog database %s was locked by another for too long",
                       db->path);
    }
    return err_set(err, code_of(result), "catalog database %s: %s failed: %s", db->path, what,
                   db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(result));
}

static tarn_code start_new(sqlite_db *db, tarn_error *err) {
    bool filled = false;
    tarn_code code = sqlite_has_row(db, "SELECT 1 FROM sqlite_master", 0, NULL, &filled, err);
    if (code == TARN_OK && !filled) {
        /* Readers then never wait for writers. Where it cannot be had, the default does. */
        (void)sqlite3_exec(db->handle, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    }
    return code;
}

tarn_code sqlite_open(sqlite_db *db, const char *path, tarn_error *err) {
    db->path = path;
    db->handle = NULL;
    tarn_code code = TARN_OK;
    int result =
        sqlite3_open_v2(path, &db->handle,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "opening", err);
        goto done;
    }
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    result = sqlite3_exec(db->handle, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "a setting", err);
        goto done;
    }
    code = start_new(db, err);
done:
    if (code != TARN_OK) {
        sqlite_close(db);
    }
    return code;
}

void sqlite_close(sqlite_db *db) {
    (void)sqlite3_close_v2(db->handle);
    db->handle = NULL;
}

tarn_code sqlite_prepare(sqlite_db *db, const char *sql, int n_args, const tarn_str *args,
                         sqlite3_stmt **out, tarn_error *err) {
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    for (int i = 0; i < n_args && result == SQLITE_OK; i++) {
        result = args[i].data == NULL
                     ? sqlite3_bind_null(statement, i + 1)
                     : sqlite3_bind_text64(statement, i + 1, args[i].data, args[i].len,
                                           SQLITE_STATIC, SQLITE_UTF8);
    }
    if (result != SQLITE_OK) {
        tarn_code code = fail(db, result, "a statement", err);
        (void)sqlite3_finalize(statement);
        return code;
    }
    *out = statement;
    return TARN_OK;
}

tarn_code sqlite_next(sqlite_db *db, sqlite3_stmt *statement, bool *row, tarn_error *err) {
    int result = sqlite3_step(statement);
    *row = result == SQLITE_ROW;
    return *row || result == SQLITE_DONE ? TARN_OK : fail(db, result, "a statement", err);
}

tarn_str sqlite_text(sqlite3_stmt *statement, int column) {
    const void *text = sqlite3_column_text(statement, column);
    return text != NULL ? str_make(text, (size_t)sqlite3_column_bytes(statement, column))
                        : STR_NULL;
}

tarn_code sqlite_run(sqlite_db *db, const char *sql, int n_args, const tarn_str *args, int *changes,
                     tarn_error *err) {
    sqlite3_stmt *statement = NULL;
    bool row = true;
    tarn_code code = sqlite_prepare(db, sql, n_args, args, &statement, err);
    while (code == TARN_OK && row) {
        code = sqlite_next(db, statement, &row, err);
    }
    if (code == TARN_OK && changes != NULL) {
        *changes = sqlite3_changes(db->handle);
    }
    (void)sqlite3_finalize(statement);
    return code;
}

tarn_code sqlite_has_row(sqlite_db *db, const char *sql, int n_args, const tarn_str *args,
                         bool *out, tarn_error *err) {
    sqlite3_stmt *statement = NULL;
    tarn_code code = sqlite_prepare(db, sql, n_args, args, &statement, err);
    if (code == TARN_OK) {
        code = sqlite_next(db, statement, out, err);
    }
    (void)sqlite3_finalize(statement);
    return code;
}

tarn_code sqlite_begin(sqlite_db *db, tarn_error *err) {
    return sqlite_run(db, "BEGIN IMMEDIATE", 0, NULL, NULL, err);
}

tarn_code sqlite_commit(sqlite_db *db, bool *refused, tarn_error *err) {
    *refused = false;
    int result = sqlite3_exec(db->handle, "COMMIT", NULL, NULL, NULL);
    if (result == SQLITE_OK) {
        return TARN_OK;
    }
    tarn_code code = fail(db, result, "a commit", err);
    /* Still inside: nothing was made durable, and the roll-back below undoes it. */
    *refused = sqlite3_get_autocommit(db->handle) == 0 && (result & 0xff) == SQLITE_BUSY;
    sqlite_rollback(db);
    return code;
}

void sqlite_rollback(sqlite_db *db) {
    if (sqlite3_get_autocommit(db->handle) == 0) {
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    }
}
