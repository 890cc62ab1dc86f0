/* catalog/sql_db.c - what is the same over every database: statements in the database's own words,
 * and the short forms of a query. */
#include "catalog/sql_db.h"
#include "base/buf.h"

#include <stdlib.h>

#define BY_BYTES "{C}"

/* sql with the database's word for {C}; NULL: no memory. */
static const char *in_own_words(const sql_db *db, tarn_arena *arena, const char *sql) {
    const size_t mark = sizeof BY_BYTES - 1;
    const char *at = strstr(sql, BY_BYTES);
    if (at == NULL) {
        return sql;
    }
    tarn_buf out;
    tarn_code code = TARN_OK;
    buf_init(&out, arena->env, 0);
    for (; at != NULL && code == TARN_OK; sql = at + mark, at = strstr(sql, BY_BYTES)) {
        code = buf_append(&out, sql, (size_t)(at - sql), NULL);
        if (code == TARN_OK) {
            code = buf_append_str(&out, str_of(db->vt->by_bytes), NULL);
        }
    }
    if (code == TARN_OK) {
        code = buf_append_str(&out, str_of(sql), NULL);
    }
    const char *text = code == TARN_OK ? arena_str(arena, buf_str(&out)).data : NULL;
    buf_release(&out);
    return text;
}

tarn_code sql_query(sql_db *db, tarn_arena *arena, const char *sql, int n_args,
                    const tarn_str *args, sql_rows *out, tarn_error *err) {
    const char *own = in_own_words(db, arena, sql);
    return own != NULL ? db->vt->query(db, arena, own, n_args, args, out, err) : err_nomem(err);
}

tarn_code sql_run(sql_db *db, const char *sql, int n_args, const tarn_str *args, int64_t *changes,
                  tarn_error *err) {
    tarn_arena arena;
    sql_rows rows;
    arena_init(&arena, db->env);
    tarn_code code = sql_query(db, &arena, sql, n_args, args, &rows, err);
    if (code == TARN_OK && changes != NULL) {
        *changes = rows.changes;
    }
    arena_release(&arena);
    return code;
}

tarn_code sql_has_row(sql_db *db, const char *sql, int n_args, const tarn_str *args, bool *out,
                      tarn_error *err) {
    tarn_arena arena;
    sql_rows rows;
    arena_init(&arena, db->env);
    tarn_code code = sql_query(db, &arena, sql, n_args, args, &rows, err);
    if (code == TARN_OK) {
        *out = rows.n_rows > 0;
    }
    arena_release(&arena);
    return code;
}

tarn_code sql_change(sql_db *db, const char *sql, int n_args, const tarn_str *args,
                     int64_t *changes, bool *refused, tarn_error *err) {
    tarn_code code;
    *refused = true;
    if (db->vt->change != NULL) {
        return db->vt->change(db, sql, n_args, args, changes, refused, err);
    }
    TRY(sql_begin(db, err));
    TRY(sql_run(db, sql, n_args, args, changes, err));
    code = sql_commit(db, refused, err);
done:
    sql_rollback(db);
    return code;
}

static int compare_values(const void *a, const void *b) {
    return str_cmp(*(const tarn_str *)a, *(const tarn_str *)b);
}

void sql_sort(sql_rows *rows) {
    if (rows->n_rows > 1) {
        qsort(rows->values, (size_t)rows->n_rows, (size_t)rows->n_columns * sizeof *rows->values,
              compare_values);
    }
}

tarn_code sql_begin(sql_db *db, tarn_error *err) {
    return db->vt->begin(db, err);
}

tarn_code sql_commit(sql_db *db, bool *refused, tarn_error *err) {
    return db->vt->commit(db, refused, err);
}

void sql_rollback(sql_db *db) {
    db->vt->rollback(db);
}

void sql_close(sql_db *db) {
    if (db != NULL) {
        db->vt->close(db);
    }
}
