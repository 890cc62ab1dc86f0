/* catalog/sqlite_db.c - SQLite behind a small face. A lock held by another process is waited for
 * within SQLite for BUSY_TIMEOUT_MS; after that the statement is an error and had no effect. */
#include "catalog/sqlite_db.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* What SQLite's own access to files says of a path; a file without a byte does not exist. */
static bool path_is(const char *path, int how) {
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    int yes = 0;
    return files != NULL && files->xAccess(files, path, how, &yes) == SQLITE_OK && yes != 0;
}

/* What the system said. SQLite tries to open a file that it may not write for reading, and what is
 * kept is the answer to that. */
static int find_os_code(const sqlite_db *db, int primary) {
    char folder[4096];
    const char *slash = strrchr(db->path, '/');
    size_t len = slash != NULL ? (size_t)(slash - db->path) + 1 : 0;
    if (primary == SQLITE_FULL) {
        return ENOSPC;
    }
    if (primary != SQLITE_CANTOPEN && primary != SQLITE_IOERR) {
        return 0;
    }
    int os_code = sqlite3_system_errno(db->handle);
    if (primary == SQLITE_CANTOPEN && len > 0 && len < sizeof folder) {
        memcpy(folder, db->path, len);
        folder[len] = '\0';
        if (!path_is(folder, SQLITE_ACCESS_READWRITE)) {
            os_code = errno;
        }
    }
    return os_code;
}

static tarn_code fail(const sqlite_db *db, int result, const char *what, tarn_error *err) {
    if ((result & 0xff) == SQLITE_BUSY || (result & 0xff) == SQLITE_LOCKED) {
        return err_set(err, TARN_IO, "catalog database %s was locked by another for too long",
                       db->path);
    }
    int primary = result & 0xff;
    if (db->read_only && primary == SQLITE_READONLY) {
        return err_set(err, db->why.code, "%s", db->why.message);
    }
    int os_code = find_os_code(db, primary);
    if (os_code != 0) {
        return err_os(err, os_code, "catalog database %s: %s failed", db->path, what);
    }
    return err_set(err, code_of(result), "catalog database %s: %s failed: %s", db->path, what,
                   db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(result));
}

static tarn_code open_with(sqlite_db *db, const char *name, int flags, tarn_error *err) {
    tarn_code code = TARN_OK;
    int result = sqlite3_open_v2(name, &db->handle, flags | SQLITE_OPEN_FULLMUTEX, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "opening", err);
        goto done;
    }
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
    result = sqlite3_exec(db->handle, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "opening", err);
        goto done;
    }
    /* SQLite reads the file only now, so that what is no database is found here. */
    bool filled = false;
    code = sqlite_has_row(db, "SELECT 1 FROM sqlite_master", 0, NULL, &filled, err);
done:
    if (code != TARN_OK) {
        sqlite_close(db);
    }
    return code;
}

/* A log or journal beside it with something in it: somebody has it open, or died with a change half
 * done. */
static bool is_in_use(const char *path) {
    static const char *const endings[] = {"-wal", "-journal"};
    char name[4096];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        int len = snprintf(name, sizeof name, "%s%s", path, endings[i]);
        if ((size_t)len >= sizeof name || path_is(name, SQLITE_ACCESS_EXISTS)) {
            return true;
        }
    }
    return false;
}

/* "file:PATH?immutable=1"; false: too long. */
static bool name_immutable(const char *path, char *out, size_t cap) {
    static const char tail[] = "?immutable=1";
    size_t at = (size_t)snprintf(out, cap, "file:");
    for (; *path != '\0'; path++) {
        if (at + 4 + sizeof tail > cap) {
            return false;
        }
        bool special = *path == '?' || *path == '#' || *path == '%';
        at += (size_t)snprintf(out + at, cap - at, special ? "%%%02X" : "%c", (unsigned char)*path);
    }
    (void)snprintf(out + at, cap - at, "%s", tail);
    return true;
}

tarn_code sqlite_open(sqlite_db *db, const char *path, tarn_error *err) {
    char name[4096];
    db->path = path;
    db->handle = NULL;
    db->read_only = false;
    db->why = (tarn_error)TARN_ERROR_INIT;
    tarn_code code = open_with(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db->why);
    if ((code == TARN_DENIED || (code != TARN_OK && db->why.os_code != 0)) &&
        path_is(path, SQLITE_ACCESS_EXISTS) && !is_in_use(path) &&
        name_immutable(path, name, sizeof name)) {
        db->read_only = true;
        code = open_with(db, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    } else if (code != TARN_OK && err != NULL) {
        *err = db->why;
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
