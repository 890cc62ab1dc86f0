/* tests/sim/sim_db.c - a database of one row under the real SQL catalog (catalog/sql_db.h): it
 * knows the statements that move a table's pointer, and their faults. As SQLite a transaction holds
 * the one lock of writers and is over when its COMMIT was answered; as PostgreSQL a change may have
 * its effect after its connection was lost. */
#include "sim.h"

#include "catalog/sql_db.h"

#include <string.h>

#define MAX_LATE 16

typedef struct row_change {
    bool any, inserts;
    tarn_str from, to;
} row_change;

typedef struct row_db {
    sql_db base;
    sim_process *process;
    bool in_transaction;
    row_change staged;
} row_db;

static struct {
    tarn_str pointer; /* len 0: no row */
    const row_db *writer;
    int64_t down_until_us;
    row_change late[MAX_LATE];
    int n_late;
} database;

tarn_code __wrap_sql_open_postgres(tarn_env *env, tarn_str uri, sql_db **out, tarn_error *err);

static sim_verdict call_db(const row_db *db) {
    sim_verdict verdict = sim_call(db->process, SIM.plan.swap_faults);
    return sim_outage(&database.down_until_us, verdict) && verdict == SIM_DONE ? SIM_FAILED
                                                                               : verdict;
}

/* True: the row changed. */
static bool apply_change(const row_change *c) {
    if (!c->any || (c->inserts ? database.pointer.len > 0 : !str_eq(database.pointer, c->from))) {
        return false;
    }
    database.pointer = c->to;
    sim_saw_version(c->to);
    return true;
}

static tarn_code fail_db(tarn_error *err) {
    sim_trace("the database is lost");
    return err_set(err, TARN_IO, "the database was lost");
}

static tarn_code one_value(tarn_arena *arena, tarn_str value, sql_rows *out, tarn_error *err) {
    out->values = ARENA_ARRAY(arena, tarn_str, 1);
    if (out->values == NULL) {
        return err_nomem(err);
    }
    out->n_rows = out->n_columns = 1;
    out->values[0] = arena_str(arena, value);
    return TARN_OK;
}

static row_change read_change(const char *sql, const tarn_str *args) {
    row_change c = {.any = true, .inserts = strncmp(sql, "INSERT", 6) == 0};
    c.to = arena_str(&SIM.arena, args[3]);
    c.from = c.inserts ? STR_NULL : arena_str(&SIM.arena, args[4]);
    return c;
}

static bool moves_pointer(const char *sql) {
    return strncmp(sql, "UPDATE iceberg_tables SET metadata_location=", 44) == 0 ||
           strncmp(sql, "INSERT INTO iceberg_tables", 26) == 0;
}

static tarn_code db_query(sql_db *base, tarn_arena *arena, const char *sql, int n_args,
                          const tarn_str *args, sql_rows *out, tarn_error *err) {
    row_db *db = (row_db *)base;
    (void)n_args;
    memset(out, 0, sizeof *out);
    if (call_db(db) != SIM_DONE) {
        return fail_db(err);
    }
    if (moves_pointer(sql)) { /* in a transaction: it holds the lock */
        db->staged = read_change(sql, args);
        bool holds = db->staged.inserts ? database.pointer.len == 0
                                        : str_eq(database.pointer, db->staged.from);
        db->staged.any = holds;
        out->changes = holds;
        return holds || !db->staged.inserts ? TARN_OK
                                            : err_set(err, TARN_CONFLICT, "the row was there");
    }
    if (strncmp(sql, "SELECT metadata_location FROM iceberg_tables", 44) == 0) {
        return database.pointer.len > 0 && strstr(sql, "'VIEW'") == NULL
                   ? one_value(arena, database.pointer, out, err)
                   : TARN_OK;
    }
    if (strcmp(sql, "HAS") == 0 || strncmp(sql, "SELECT 1 FROM iceberg_tables", 28) == 0) {
        return one_value(arena, STR("1"), out, err);
    }
    out->changes = 1;
    return TARN_OK;
}

static tarn_code db_change(sql_db *base, const char *sql, int n_args, const tarn_str *args,
                           int64_t *changes, bool *refused, tarn_error *err) {
    row_db *db = (row_db *)base;
    (void)n_args;
    sim_verdict verdict = call_db(db);
    row_change c = read_change(sql, args);
    *changes = 1;
    *refused = false;
    if (verdict == SIM_FAILED) {
        if (!db->process->dead && sim_chance(3) == 0) {
            *refused = true;
        } else if (database.n_late < MAX_LATE && sim_chance(2) == 0) {
            database.late[database.n_late++] = c;
        }
        return fail_db(err);
    }
    *changes = apply_change(&c);
    return verdict == SIM_LOST ? fail_db(err) : TARN_OK;
}

static bool nobody_writes(void *ctx) {
    (void)ctx;
    return database.writer == NULL;
}

static tarn_code db_begin(sql_db *base, tarn_error *err) {
    row_db *db = (row_db *)base;
    if (call_db(db) != SIM_DONE) {
        return fail_db(err);
    }
    while (sim_is_actor() && database.writer != NULL) {
        sim_wait("the database's lock", nobody_writes, NULL);
    }
    database.writer = db;
    db->in_transaction = true;
    db->staged = (row_change){0};
    return TARN_OK;
}

static void db_rollback(sql_db *base) {
    row_db *db = (row_db *)base;
    if (db->in_transaction) {
        database.writer = NULL;
        db->in_transaction = false;
    }
}

static tarn_code db_commit(sql_db *base, bool *refused, tarn_error *err) {
    row_db *db = (row_db *)base;
    sim_verdict verdict = call_db(db);
    *refused = verdict == SIM_FAILED && sim_chance(2) == 0;
    if (verdict != SIM_FAILED) {
        (void)apply_change(&db->staged);
    }
    db_rollback(base);
    return verdict == SIM_DONE ? TARN_OK : fail_db(err);
}

static void db_close(sql_db *base) {
    env_free(base->env, base);
}

static const sql_db_vtable AS_SQLITE = {.by_bytes = "",
                                        .has_tables = "HAS",
                                        .has_type = "HAS",
                                        .query = db_query,
                                        .begin = db_begin,
                                        .commit = db_commit,
                                        .rollback = db_rollback,
                                        .close = db_close};
static const sql_db_vtable AS_POSTGRES = {.by_bytes = "",
                                          .has_tables = "HAS",
                                          .has_type = "HAS",
                                          .remote = true,
                                          .query = db_query,
                                          .change = db_change,
                                          .begin = db_begin,
                                          .commit = db_commit,
                                          .rollback = db_rollback,
                                          .close = db_close};

tarn_code __wrap_sql_open_postgres(tarn_env *env, tarn_str uri, sql_db **out, tarn_error *err) {
    row_db *db = env_calloc(env, 1, sizeof *db);
    (void)uri;
    if (db == NULL) {
        return err_nomem(err);
    }
    db->base = (sql_db){
        .vt = SIM.plan.kind == SIM_SQLITE ? &AS_SQLITE : &AS_POSTGRES, .env = env, .label = "sim"};
    db->process = sim_process_of(env);
    *out = &db->base;
    return TARN_OK;
}

static void bring_late(void *ctx) {
    (void)ctx;
    while (SIM.working > 0 || database.n_late > 0) {
        sim_sleep_us(sim_delay_us());
        if (database.n_late > 0) {
            row_change c = database.late[0];
            database.late[0] = database.late[--database.n_late];
            sim_trace("a change of the database arrives late: %s",
                      apply_change(&c) ? "taken" : "its base is gone");
        }
    }
}

void sim_db_begin(void) {
    memset(&database, 0, sizeof database);
    if (SIM.plan.kind == SIM_POSTGRES) {
        sim_spawn("late-db", bring_late, NULL);
    }
}
