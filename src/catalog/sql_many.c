/* catalog/sql_many.c - several pointers of a SQL catalog moved in one transaction: all of them or
 * none. The invariants are those of catalog_sql.c; a lost answer is settled by reading all rows
 * again: as the transaction is one, what one row shows holds for all. */
#include "catalog/catalog_sql_int.h"

static tarn_code move_one(sql_catalog *self, tarn_arena *arena, const sql_move *move,
                          tarn_error *err) {
    const sql_key *key = &move->key;
    const tarn_str args[] = {self->name, key->ns.text, key->name, move->to, move->from};
    int64_t changes = 0;
    tarn_str now = STR_NULL;
    tarn_code code = TARN_OK;
    if (move->from.data == NULL) {
        return sql_insert_row(self, key, move->to, err);
    }
    TRY(sql_run(self->db,
                SQL_OF_KIND(self, key->kind,
                            "UPDATE iceberg_tables SET metadata_location=$4, "
                            "previous_metadata_location=$5 WHERE catalog_name=$1 AND "
                            "table_namespace=$2 AND table_name=$3 AND metadata_location=$5"),
                5, args, &changes, err));
    if (changes == 0) {
        TRY(sql_read_pointer(self, arena, key, &now, err));
        code = err_set(err, TARN_CONFLICT, "%s %s moved from %.*s to %.*s",
                       sql_kind_name(key->kind), key->label, STR_ARG(move->from), STR_ARG(now));
    }
done:
    return code;
}

/* *sent: the failure may have taken effect. */
static tarn_code try_moves(sql_catalog *self, const sql_move *moves, int32_t n, bool *sent,
                           tarn_error *err) {
    tarn_arena arena;
    bool refused = true;
    tarn_code code;
    *sent = false;
    arena_init(&arena, self->base.env);
    sql_lock(self);
    TRY(sql_begin(self->db, err));
    for (int32_t i = 0; i < n; i++) {
        TRY(move_one(self, &arena, &moves[i], err));
    }
    code = sql_commit(self->db, &refused, err);
    *sent = !refused;
done:
    sql_rollback(self->db);
    sql_unlock(self);
    arena_release(&arena);
    return code;
}

/* What the rows say after a commit without a clear answer: COMMITTED when one names our document,
 * NOT_COMMITTED when one stands where it stood. */
static tarn_outcome_kind look_again(sql_catalog *self, const sql_move *moves, int32_t n) {
    tarn_outcome_kind outcome = TARN_OUTCOME_UNKNOWN;
    tarn_arena arena;
    arena_init(&arena, self->base.env);
    sql_lock(self);
    for (int32_t i = 0; i < n && outcome == TARN_OUTCOME_UNKNOWN; i++) {
        tarn_str now = STR_NULL;
        tarn_code code = sql_read_pointer(self, &arena, &moves[i].key, &now, NULL);
        if (code == TARN_OK && str_eq(now, moves[i].to)) {
            outcome = TARN_COMMITTED;
        } else if (moves[i].from.data == NULL ? code == TARN_NOT_FOUND
                                              : code == TARN_OK && str_eq(now, moves[i].from)) {
            outcome = TARN_NOT_COMMITTED;
        }
    }
    sql_unlock(self);
    arena_release(&arena);
    return outcome;
}

tarn_code sql_move_all(sql_catalog *self, const sql_move *moves, int32_t n,
                       tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_error cause = TARN_ERROR_INIT;
    bool sent = false;
    bool unclear = false;
    tarn_code code = TARN_OK;
    *outcome = TARN_NOT_COMMITTED;
    for (int i = 0; i < SQL_SWAP_TRIES; i++) {
        code = try_moves(self, moves, n, &sent, &cause);
        if (code == TARN_OK) {
            *outcome = TARN_COMMITTED;
            return TARN_OK;
        }
        if (!sent && !unclear) {
            *outcome = TARN_NOT_COMMITTED;
            return err_set(err, code, "%s", cause.message);
        }
        unclear = true;
        *outcome = look_again(self, moves, n);
        if (*outcome == TARN_COMMITTED) {
            return TARN_OK;
        }
        if (*outcome == TARN_NOT_COMMITTED && !self->db->vt->remote) {
            return err_set(err, code, "%s", cause.message);
        }
    }
    *outcome = TARN_OUTCOME_UNKNOWN;
    return err_set(err, TARN_COMMIT_UNKNOWN, "a commit of %d pointers (%s %s) was sent: %s", n,
                   sql_kind_name(moves[0].key.kind), moves[0].key.label, cause.message);
}

/* ---- several tables ---- */

typedef struct many {
    sql_catalog *self;
    tarn_arena arena;
    int32_t n;
    const catalog_table_commit *commits;
    catalog_document *docs;
    bool *shown; /* the document may be in the store */
    sql_move *moves;
} many;

static tarn_code prepare(many *m, int32_t i, tarn_error *err) {
    const catalog_table_commit *c = &m->commits[i];
    sql_move *move = &m->moves[i];
    tarn_code code;
    TRY(sql_key_of(&m->arena, SQL_TABLE, &c->table, &move->key, err));
    TRY(document_build(&m->docs[i], c->base, &c->set, err));
    TRY(sql_place_document(m->self, &m->arena, c->base, &m->docs[i], err));
    move->from = c->base != NULL ? c->base->metadata_location : STR_NULL;
    move->to = m->docs[i].version->metadata_location;
done:
    return code;
}

static tarn_code make_room(many *m, tarn_error *err) {
    m->docs = ARENA_ARRAY(&m->arena, catalog_document, (size_t)m->n);
    m->shown = ARENA_ARRAY(&m->arena, bool, (size_t)m->n);
    m->moves = ARENA_ARRAY(&m->arena, sql_move, (size_t)m->n);
    if (m->docs == NULL || m->shown == NULL || m->moves == NULL) {
        m->n = 0;
        return err_nomem(err);
    }
    for (int32_t i = 0; i < m->n; i++) {
        document_init(&m->docs[i], m->self->base.env);
    }
    return TARN_OK;
}

static void finish(many *m, tarn_outcome_kind outcome) {
    tarn_store *store = m->self->base.store;
    for (int32_t i = 0; i < m->n; i++) {
        if (outcome == TARN_COMMITTED) {
            document_remove_old(&m->docs[i], store);
        } else if (outcome == TARN_NOT_COMMITTED && m->shown[i]) {
            store_discard(store, m->docs[i].version->metadata_location);
        }
        document_release(&m->docs[i]);
    }
    arena_release(&m->arena);
}

tarn_code sql_commit_many(tarn_catalog *c, const catalog_table_commit *commits, int32_t n,
                          tarn_outcome_kind *outcome, tarn_error *err) {
    many m = {.self = (sql_catalog *)c, .n = n, .commits = commits};
    tarn_code code;
    arena_init(&m.arena, c->env);
    TRY(make_room(&m, err));
    for (int32_t i = 0; i < n; i++) {
        TRY(prepare(&m, i, err));
    }
    for (int32_t i = 0; i < n; i++) {
        code = document_send(&m.docs[i], c->store, STORE_CREATE_LATER, &m.shown[i], err);
        m.shown[i] = m.shown[i] && code != TARN_CONFLICT;
        TRY(code);
    }
    TRY(store_sync(c->store, err));
    code = sql_move_all(m.self, m.moves, n, outcome, err);
    if (code == TARN_OK) {
        env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "tables=%d first=%s", n,
                m.moves[0].key.label);
    }
done:
    finish(&m, *outcome);
    return code;
}
