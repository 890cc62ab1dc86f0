/* catalog/postgres_db.c - PostgreSQL as a sql_db, through libpq.
 *
 * Invariants
 * 1. What a caller sees of the connection is its label (host, port, database); the password is in
 * no message, not even where the server or libpq quotes what it was given.
 * 2. A failure is "lost" when the connection broke, or the answer did not come in time, after the
 *    statement was sent: it may have taken effect. An error that the server answered had none.
 * 3. Outside of a transaction only what may be repeated is sent by query: it is sent again once
 *    over a new connection. A transaction that is lost is over; COMMIT is never repeated.
 * 4. A transaction holds a lock on the table of namespaces, which readers and moves of pointers do
 *    not ask for: what it read about names is true until it ends, also beside other engines, whose
 *    inserts wait for it. */
#include "base/buf.h"
#include "base/limits.h"
#include "catalog/sql_db.h"

#ifdef TARN_POSTGRES

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/wait.h"

#define CONNECT_TIMEOUT_S "10"
#define ANSWER_MS         60000
#define RECONNECT_TRIES   20
#define RECONNECT_WAIT_MS 250
#define MAX_ARGS          8
#define TEXT_OID          25

typedef struct postgres_db {
    sql_db base;
    PQconninfoOption *options; /* as given */
    PGconn *conn;              /* NULL: to be made */
    bool in_transaction;
    bool lost;       /* of the last statement: it may have taken effect */
    char label[512]; /* base.label */
} postgres_db;

static const char *option(const postgres_db *db, const char *name) {
    for (const PQconninfoOption *o = db->options; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, name) == 0) {
            return o->val;
        }
    }
    return NULL;
}

/* text in one line without the password; out is of fixed size, as a message is. */
static const char *redact(const postgres_db *db, const char *text, char *out, size_t cap) {
    const char *given = option(db, "password");
    const char *secret = given == NULL && db->conn != NULL ? PQpass(db->conn) : given;
    size_t n = secret != NULL ? strlen(secret) : 0;
    size_t len = 0;
    while (*text != '\0' && len + 4 < cap) {
        if (n > 0 && strncmp(text, secret, n) == 0) {
            memcpy(out + len, "***", 3);
            len += 3;
            text += n;
        } else {
            out[len++] = *text == '\n' || *text == '\t' ? ' ' : *text;
            text++;
        }
    }
    while (len > 0 && out[len - 1] == ' ') {
        len--;
    }
    out[len] = '\0';
    return out;
}

static tarn_code code_of(const char *state) {
    static const struct {
        const char *state; /* or its class, two characters */
        tarn_code code;
    } CODES[] = {
        {"23505", TARN_CONFLICT}, {"40001", TARN_CONFLICT}, {"40P01", TARN_CONFLICT},
        {"42P07", TARN_CONFLICT}, {"42501", TARN_DENIED},   {"28", TARN_DENIED},
        {"25006", TARN_DENIED},   {"22", TARN_INVALID},     {"3D000", TARN_NOT_FOUND},
        {"XX001", TARN_CORRUPT},  {"XX002", TARN_CORRUPT},
    };
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0] && state != NULL; i++) {
        if (strncmp(state, CODES[i].state, strlen(CODES[i].state)) == 0) {
            return CODES[i].code;
        }
    }
    return TARN_IO;
}

static void disconnect(postgres_db *db) {
    PQfinish(db->conn); /* takes NULL */
    db->conn = NULL;
}

/* A connection that could not be made has no SQLSTATE, only words. */
static tarn_code fail_connect(postgres_db *db, tarn_error *err) {
    char text[400];
    bool no_room = db->conn == NULL;
    const char *said = no_room ? "" : PQerrorMessage(db->conn);
    bool denied = !no_room && (PQconnectionNeedsPassword(db->conn) ||
                               strstr(said, "authentication failed") != NULL ||
                               strstr(said, "no pg_hba.conf entry") != NULL);
    bool absent = strstr(said, "does not exist") != NULL && strstr(said, "database") != NULL;
    tarn_code code = no_room ? err_nomem(err)
                             : err_set(err,
                                       denied   ? TARN_DENIED
                                       : absent ? TARN_NOT_FOUND
                                                : TARN_IO,
                                       "catalog database %s could not be reached: %s", db->label,
                                       redact(db, said, text, sizeof text));
    disconnect(db);
    return code == TARN_IO ? err_set_away(err, code) : code;
}

static tarn_code connect_once(postgres_db *db, tarn_error *err) {
    const char *names[64];
    const char *values[64];
    size_t n = 0;
    for (const PQconninfoOption *o = db->options; o->keyword != NULL && n < 58; o++) {
        if (o->val != NULL && strcmp(o->keyword, "client_encoding") != 0) {
            names[n] = o->keyword;
            values[n++] = o->val;
        }
    }
    names[n] = "client_encoding";
    values[n++] = "UTF8";
    names[n] = "fallback_application_name";
    values[n++] = "tarn";
    if (option(db, "connect_timeout") == NULL) {
        names[n] = "connect_timeout";
        values[n++] = CONNECT_TIMEOUT_S;
    }
    names[n] = NULL;
    values[n] = NULL;
    disconnect(db);
    db->conn = PQconnectdbParams(names, values, 0);
    return PQstatus(db->conn) == CONNECTION_OK ? TARN_OK : fail_connect(db, err);
}

/* A connection, made again where it was lost: a server that restarts is waited for a little. */
static tarn_code need_connection(postgres_db *db, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (db->conn != NULL && PQstatus(db->conn) == CONNECTION_OK) {
        return TARN_OK;
    }
    for (int i = 0; i < (db->base.hasty ? 1 : RECONNECT_TRIES); i++) {
        TRY(env_check_cancel(db->base.env, err));
        code = connect_once(db, err);
        if (code != TARN_IO) {
            break;
        }
        env_sleep_ms(db->base.env, db->base.hasty ? 0 : RECONNECT_WAIT_MS);
    }
    if (code == TARN_OK) {
        env_log(db->base.env, TARN_LOG_WARN, "catalog", "reconnect", "database=%s", db->label);
        err_reset(err);
    }
done:
    return code;
}

static tarn_code fail_lost(postgres_db *db, const char *why, tarn_error *err) {
    char text[400];
    const char *said = why != NULL ? why : PQerrorMessage(db->conn);
    tarn_code code = err_set(err, TARN_IO, "catalog database %s was lost: %s", db->label,
                             redact(db, said, text, sizeof text));
    db->lost = true;
    disconnect(db);
    return err_set_away(err, code);
}

/* The last result of what was sent; the caller clears it. NULL: lost, and err says so. */
static PGresult *take_result(postgres_db *db, tarn_error *err) {
    PGresult *last = NULL;
    for (;;) {
        bool ready = true;
        while (PQisBusy(db->conn) && ready) {
            if (net_wait_readable(db->base.env, PQsocket(db->conn), ANSWER_MS, false, &ready,
                                  err) != TARN_OK ||
                (ready && PQconsumeInput(db->conn) == 0)) {
                PQclear(last);
                (void)fail_lost(db, NULL, err);
                return NULL;
            }
        }
        if (!ready) {
            PQclear(last);
            (void)fail_lost(db, "no answer came in time", err);
            return NULL;
        }
        PGresult *next = PQgetResult(db->conn);
        if (next == NULL) {
            break;
        }
        bool failed = last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR;
        PQclear(failed ? next : last); /* the first failure of several statements is the cause */
        last = failed ? last : next;
    }
    if (last == NULL || PQstatus(db->conn) != CONNECTION_OK) {
        PQclear(last);
        (void)fail_lost(db, NULL, err);
        return NULL;
    }
    return last;
}

static tarn_code check_result(postgres_db *db, PGresult *result, tarn_error *err) {
    char text[400];
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        return TARN_OK;
    }
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    /* "statement completion unknown" and trouble with the connection are no answers. */
    db->lost = state == NULL || strncmp(state, "08", 2) == 0 || strcmp(state, "40003") == 0;
    (void)err_set(
        err, code_of(state), "catalog database %s: a statement failed: %s", db->label,
        redact(db, said != NULL ? said : PQresultErrorMessage(result), text, sizeof text));
    bool away = db->lost || strncmp(state, "57P", 3) == 0; /* it is shut down, or starts */
    return away ? err_set_away(err, code_of(state)) : code_of(state);
}

/* One statement with parameters; *out is the caller's to clear. Texts go as they are (format 1), so
 * that a NUL in one is refused and not an end. */
static tarn_code send_one(postgres_db *db, const char *sql, int n_args, const tarn_str *args,
                          PGresult **out, tarn_error *err) {
    Oid types[MAX_ARGS];
    const char *values[MAX_ARGS];
    int lengths[MAX_ARGS];
    int formats[MAX_ARGS];
    tarn_assert(n_args <= MAX_ARGS);
    db->lost = false;
    for (int i = 0; i < n_args; i++) {
        if (args[i].len > LIMIT_SQL_TEXT_BYTES) {
            return err_set(err, TARN_LIMIT, "a text of %zu bytes was too long for catalog %s",
                           args[i].len, db->label);
        }
        types[i] = TEXT_OID;
        values[i] = args[i].data;
        lengths[i] = (int)args[i].len;
        formats[i] = 1;
    }
    if (PQsendQueryParams(db->conn, sql, n_args, types, values, lengths, formats, 0) == 0) {
        return fail_lost(db, NULL, err);
    }
    PGresult *result = take_result(db, err);
    if (result == NULL) {
        return TARN_IO;
    }
    tarn_code code = check_result(db, result, err);
    if (code != TARN_OK) {
        PQclear(result);
        return code;
    }
    *out = result;
    return TARN_OK;
}

static tarn_code copy_rows(tarn_arena *arena, const PGresult *result, sql_rows *out,
                           tarn_error *err) {
    sql_rows rows = {.n_rows = PQntuples(result), .n_columns = PQnfields(result)};
    size_t n = (size_t)rows.n_rows * (size_t)rows.n_columns;
    rows.values = ARENA_ARRAY(arena, tarn_str, n);
    if (rows.values == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < rows.n_rows; i++) {
        for (int32_t j = 0; j < rows.n_columns; j++) {
            if (PQgetisnull(result, i, j)) {
                continue;
            }
            tarn_str *to = &rows.values[(size_t)i * (size_t)rows.n_columns + (size_t)j];
            *to = arena_str(arena,
                            str_make(PQgetvalue(result, i, j), (size_t)PQgetlength(result, i, j)));
            if (to->data == NULL) {
                return err_nomem(err);
            }
        }
    }
    *out = rows;
    return TARN_OK;
}

static int64_t changes_of(PGresult *result) {
    int64_t n = 0;
    return str_to_i64(str_of(PQcmdTuples(result)), &n) ? n : 0;
}

static tarn_code postgres_query(sql_db *base, tarn_arena *arena, const char *sql, int n_args,
                                const tarn_str *args, sql_rows *out, tarn_error *err) {
    postgres_db *db = (postgres_db *)base;
    PGresult *result = NULL;
    tarn_code code;
    TRY(env_check_cancel(base->env, err));
    if (!db->in_transaction) {
        TRY(need_connection(db, err));
    } else if (db->conn == NULL) {
        (void)err_set(err, TARN_IO, "catalog database %s was lost", db->label);
        TRY(err_set_away(err, TARN_IO));
    }
    code = send_one(db, sql, n_args, args, &result, err);
    if (code == TARN_IO && db->conn == NULL && !db->in_transaction) {
        TRY(need_connection(db, err));
        code = send_one(db, sql, n_args, args, &result, err);
    }
    if (code == TARN_OK) {
        code = copy_rows(arena, result, out, err);
        out->changes = changes_of(result);
    }
done:
    PQclear(result);
    return code;
}

/* One change that is a transaction of its own, in one exchange. */
static tarn_code postgres_change(sql_db *base, const char *sql, int n_args, const tarn_str *args,
                                 int64_t *changes, bool *refused, tarn_error *err) {
    postgres_db *db = (postgres_db *)base;
    PGresult *result = NULL;
    tarn_code code;
    *refused = true;
    TRY(env_check_cancel(base->env, err));
    TRY(need_connection(db, err));
    code = send_one(db, sql, n_args, args, &result, err);
    *refused = code != TARN_OK && !db->lost;
    if (code == TARN_OK) {
        *changes = changes_of(result);
    }
done:
    PQclear(result);
    return code;
}

/* Words of our own, possibly several statements, which then are one exchange. */
static tarn_code send_words(postgres_db *db, const char *sql, PGresult **out, tarn_error *err) {
    db->lost = false;
    if (PQsendQuery(db->conn, sql) == 0) {
        return fail_lost(db, NULL, err);
    }
    *out = take_result(db, err);
    return *out != NULL ? check_result(db, *out, err) : TARN_IO;
}

static void postgres_rollback(sql_db *base) {
    postgres_db *db = (postgres_db *)base;
    PGresult *result = NULL;
    if (db->in_transaction && db->conn != NULL) {
        if (send_words(db, "ROLLBACK", &result, NULL) != TARN_OK) {
            disconnect(db); /* which the server takes for the same */
        }
        PQclear(result);
    }
    db->in_transaction = false;
}

static tarn_code postgres_begin(sql_db *base, tarn_error *err) {
    static const char BEGIN[] =
        "BEGIN; SET LOCAL lock_timeout='30s'; "
        "LOCK TABLE iceberg_namespace_properties IN SHARE ROW EXCLUSIVE MODE";
    postgres_db *db = (postgres_db *)base;
    PGresult *result = NULL;
    tarn_code code;
    TRY(need_connection(db, err));
    code = send_words(db, BEGIN, &result, err);
    if (code == TARN_IO && db->conn == NULL) { /* it was stale */
        TRY(need_connection(db, err));
        code = send_words(db, BEGIN, &result, err);
    }
    db->in_transaction = true;
    if (code != TARN_OK) {
        postgres_rollback(base);
    }
done:
    PQclear(result);
    return code;
}

static tarn_code postgres_commit(sql_db *base, bool *refused, tarn_error *err) {
    postgres_db *db = (postgres_db *)base;
    PGresult *result = NULL;
    tarn_code code;
    *refused = false;
    if (db->conn == NULL) {
        *refused = true; /* COMMIT was not sent */
        (void)err_set(err, TARN_IO, "catalog database %s was lost", db->label);
        return err_set_away(err, TARN_IO);
    }
    code = send_words(db, "COMMIT", &result, err);
    db->in_transaction = false;
    if (code == TARN_OK && strcmp(PQcmdStatus(result), "COMMIT") != 0) {
        code = err_set(err, TARN_IO, "catalog database %s rolled a commit back", db->label);
    }
    *refused = code != TARN_OK && !db->lost;
    PQclear(result);
    return code;
}

static void postgres_close(sql_db *base) {
    postgres_db *db = (postgres_db *)base;
    disconnect(db);
    PQconninfoFree(db->options);
    env_free(base->env, db);
}

static const sql_db_vtable POSTGRES_VTABLE = {
    .by_bytes = " COLLATE \"C\"",
    .has_tables = "SELECT 1 WHERE to_regclass('iceberg_tables') IS NOT NULL AND "
                  "to_regclass('iceberg_namespace_properties') IS NOT NULL",
    .has_type = "SELECT 1 FROM pg_attribute WHERE attrelid=to_regclass('iceberg_tables') AND "
                "attname='iceberg_type' AND NOT attisdropped",
    .remote = true,
    .query = postgres_query,
    .change = postgres_change,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .close = postgres_close,
};

/* "postgresql:" in front of keywords, and SQLAlchemy's "postgresql+driver:", are ours to take off.
 */
static const char *as_libpq(tarn_arena *arena, tarn_str uri) {
    size_t colon;
    tarn_str rest = uri;
    if (str_starts_with(uri, STR("postgres")) && str_find_char(uri, ':', &colon)) {
        rest = str_from(uri, colon + 1);
        if (str_starts_with(rest, STR("//"))) {
            return arena_printf(arena, "postgresql:%.*s", (int)rest.len, rest.data);
        }
    }
    return arena_str(arena, rest).data;
}

static void make_label(postgres_db *db) {
    const char *host = option(db, "host");
    const char *port = option(db, "port");
    const char *name = option(db, "dbname");
    host = host != NULL ? host : option(db, "hostaddr");
    (void)snprintf(db->label, sizeof db->label, "postgresql://%s%s%s/%s", host != NULL ? host : "",
                   port != NULL ? ":" : "", port != NULL ? port : "", name != NULL ? name : "");
}

tarn_code sql_open_postgres(tarn_env *env, tarn_str uri, sql_db **out, tarn_error *err) {
    tarn_arena arena;
    postgres_db *db = NULL;
    char *why = NULL;
    tarn_code code = TARN_OK;
    arena_init(&arena, env);
    if (uri.len > LIMIT_SQL_TEXT_BYTES || memchr(uri.data, 0, uri.len) != NULL) {
        TRY(err_set(err, TARN_INVALID, "the address of the catalog's database was not one"));
    }
    const char *text = as_libpq(&arena, uri);
    db = text != NULL ? env_calloc(env, 1, sizeof *db) : NULL;
    if (db == NULL) {
        TRY(err_nomem(err));
    }
    db->base = (sql_db){.vt = &POSTGRES_VTABLE, .env = env, .label = db->label};
    db->options = PQconninfoParse(text, &why);
    PQfreemem(why); /* it quotes what was given, with the password */
    if (db->options == NULL) {
        TRY(err_set(err, TARN_INVALID,
                    "the address of the catalog's database was neither "
                    "postgresql://user:password@host:port/db nor keyword=value pairs"));
    }
    make_label(db);
    TRY(connect_once(db, err));
    *out = &db->base;
    db = NULL;
done:
    if (db != NULL) {
        postgres_close(&db->base);
    }
    arena_release(&arena);
    return code;
}

#else

tarn_code sql_open_postgres(tarn_env *env, tarn_str uri, sql_db **out, tarn_error *err) {
    (void)env;
    (void)uri;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED,
                   "catalogs in PostgreSQL were switched off when this was built (TARN_POSTGRES)");
}

#endif
