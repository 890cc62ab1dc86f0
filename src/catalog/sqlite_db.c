/* catalog/sqlite_db.c - SQLite as a sql_db. Transactions take the write lock first. A lock held by
 * another process is waited for within SQLite for BUSY_TIMEOUT_MS; after that the statement is an
 * error and had no effect. */
#include "catalog/sql_db.h"

#include <sqlite3.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BUSY_TIMEOUT_MS 30000

typedef struct sqlite_db {
    sql_db base;
    sqlite3 *handle;
    const char *path; /* behind this struct */
    bool read_only;   /* opened as it lies on the disk */
    tarn_error why;   /* then: what stood against opening it for changes */
} sqlite_db;

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
    /* EXTRA: the journal's name must be gone for good too, or a power cut brings it back and the
     * commit is rolled back. */
    result = sqlite3_exec(db->handle, "PRAGMA synchronous=EXTRA", NULL, NULL, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "opening", err);
        goto done;
    }
    /* SQLite reads the file only now, so that what is no database is found here. */
    result = sqlite3_exec(db->handle, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL);
    if (result != SQLITE_OK) {
        code = fail(db, result, "opening", err);
    }
done:
    if (code != TARN_OK) {
        (void)sqlite3_close_v2(db->handle);
        db->handle = NULL;
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

static tarn_code open_file(sqlite_db *db, tarn_error *err) {
    char name[4096];
    tarn_code code = open_with(db, db->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &db->why);
    if ((code == TARN_DENIED || (code != TARN_OK && db->why.os_code != 0)) &&
        path_is(db->path, SQLITE_ACCESS_EXISTS) && !is_in_use(db->path) &&
        name_immutable(db->path, name, sizeof name)) {
        db->read_only = true;
        code = open_with(db, name, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    } else if (code != TARN_OK && err != NULL) {
        *err = db->why;
    }
    return code;
}

/* SQLite numbers parameters in the order in which they first appear; $2 is found by its name. */
static int bind_value(sqlite3_stmt *statement, int number, tarn_str value) {
    char name[16];
    (void)snprintf(name, sizeof name, "$%d", number);
    int at = sqlite3_bind_parameter_index(statement, name);
    if (at == 0) {
        return SQLITE_OK; /* this statement does not use it */
    }
    return value.data == NULL ? sqlite3_bind_null(statement, at)
                              : sqlite3_bind_text64(statement, at, value.data, value.len,
                                                    SQLITE_STATIC, SQLITE_UTF8);
}

static tarn_code prepare(sqlite_db *db, const char *sql, int n_args, const tarn_str *args,
                         sqlite3_stmt **out, tarn_error *err) {
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    for (int i = 0; i < n_args && result == SQLITE_OK; i++) {
        result = bind_value(statement, i + 1, args[i]);
    }
    if (result != SQLITE_OK) {
        tarn_code code = fail(db, result, "a statement", err);
        (void)sqlite3_finalize(statement);
        return code;
    }
    *out = statement;
    return TARN_OK;
}

static tarn_code take_row(sqlite3_stmt *statement, tarn_arena *arena, sql_rows *rows, int32_t *cap,
                          tarn_error *err) {
    size_t width = (size_t)rows->n_columns * sizeof *rows->values;
    if (rows->n_rows == *cap) {
        int32_t more = *cap == 0 ? 8 : *cap * 2;
        tarn_str *grown =
            arena_grow(arena, rows->values, (size_t)*cap * width, (size_t)more * width);
        if (grown == NULL) {
            return err_nomem(err);
        }
        rows->values = grown;
        *cap = more;
    }
    for (int i = 0; i < rows->n_columns; i++) {
        tarn_str *to = &rows->values[(size_t)rows->n_rows * (size_t)rows->n_columns + (size_t)i];
        const void *text = sqlite3_column_text(statement, i);
        *to = STR_NULL;
        if (text != NULL) {
            *to = arena_str(arena, str_make(text, (size_t)sqlite3_column_bytes(statement, i)));
        }
        if (text != NULL ? to->data == NULL : sqlite3_column_type(statement, i) != SQLITE_NULL) {
            return err_nomem(err);
        }
    }
    rows->n_rows++;
    return TARN_OK;
}

static tarn_code sqlite_query(sql_db *base, tarn_arena *arena, const char *sql, int n_args,
                              const tarn_str *args, sql_rows *out, tarn_error *err) {
    sqlite_db *db = (sqlite_db *)base;
    sqlite3_stmt *statement = NULL;
    sql_rows rows = {0};
    int32_t cap = 0;
    int result = SQLITE_ROW;
    tarn_code code;
    TRY(prepare(db, sql, n_args, args, &statement, err));
    rows.n_columns = sqlite3_column_count(statement);
    for (;;) {
        result = sqlite3_step(statement);
        if (result != SQLITE_ROW) {
            break;
        }
        TRY(take_row(statement, arena, &rows, &cap, err));
    }
    if (result != SQLITE_DONE) {
        code = fail(db, result, "a statement", err);
        goto done;
    }
    rows.changes = sqlite3_changes(db->handle);
    *out = rows;
done:
    (void)sqlite3_finalize(statement);
    return code;
}

static tarn_code sqlite_begin(sql_db *base, tarn_error *err) {
    sqlite_db *db = (sqlite_db *)base;
    int result = sqlite3_exec(db->handle, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    return result == SQLITE_OK ? TARN_OK : fail(db, result, "a statement", err);
}

static void sqlite_rollback(sql_db *base) {
    sqlite_db *db = (sqlite_db *)base;
    if (sqlite3_get_autocommit(db->handle) == 0) {
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    }
}

static tarn_code sqlite_commit(sql_db *base, bool *refused, tarn_error *err) {
    sqlite_db *db = (sqlite_db *)base;
    *refused = false;
    int result = sqlite3_exec(db->handle, "COMMIT", NULL, NULL, NULL);
    if (result == SQLITE_OK) {
        return TARN_OK;
    }
    tarn_code code = fail(db, result, "a commit", err);
    /* Still inside: nothing was made durable, and the roll-back below undoes it. */
    *refused = sqlite3_get_autocommit(db->handle) == 0 && (result & 0xff) == SQLITE_BUSY;
    sqlite_rollback(base);
    return code;
}

static void sqlite_close(sql_db *base) {
    sqlite_db *db = (sqlite_db *)base;
    (void)sqlite3_close_v2(db->handle);
    env_free(base->env, db);
}

static const sql_db_vtable SQLITE_VTABLE = {
    .by_bytes = "", /* SQLite's own order */
    .has_tables = "SELECT 1 WHERE (SELECT count(*) FROM sqlite_master WHERE type='table' AND "
                  "name IN ('iceberg_tables', 'iceberg_namespace_properties'))=2",
    .has_type = "SELECT 1 FROM pragma_table_info('iceberg_tables') WHERE "
                "lower(name)='iceberg_type'",
    .remote = false,
    .query = sqlite_query,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .close = sqlite_close,
};

tarn_code sql_open_sqlite(tarn_env *env, tarn_str path, sql_db **out, tarn_error *err) {
    sqlite_db *db = env_calloc(env, 1, sizeof *db + path.len + 1);
    if (db == NULL) {
        return err_nomem(err);
    }
    memcpy(db + 1, path.data, path.len);
    db->path = (const char *)(db + 1);
    db->base = (sql_db){.vt = &SQLITE_VTABLE, .env = env, .label = db->path};
    db->why = (tarn_error)TARN_ERROR_INIT;
    tarn_code code = open_file(db, err);
    if (code != TARN_OK) {
        env_free(env, db);
        return code;
    }
    *out = &db->base;
    return TARN_OK;
}
