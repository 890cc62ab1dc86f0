/* catalog/catalog_sql.c - tables in a SQL database, in the tables of Iceberg's JDBC catalog, so
 * that JdbcCatalog and PyIceberg's SqlCatalog work on the same database.
 *
 * Invariants
 * 1. The pointer is metadata_location of one row. It moves by an UPDATE that names the base's
 *    location (or by an INSERT under the primary key), inside a transaction: one winner per base.
 * 2. The document is whole in the store before the pointer names it; its name is nobody else's.
 * 3. A transaction that failed before COMMIT, or whose COMMIT the database refused, had no effect.
 *    After any other failure of COMMIT the row is read again: it names our document, or what it
 *    names has ours in its log: COMMITTED. It still names the base: NOT_COMMITTED where the
 *    database is a file; from a server the swap may still be on its way, so it is sent again, until
 *    it is taken or refused: a swap that comes twice finds its base gone and changes nothing. Else
 *    UNKNOWN.
 * 4. A document is removed again only under a definite NOT_COMMITTED. */
#include "catalog/catalog_sql_int.h"
#include "iceberg/location.h"

#define ROW " WHERE catalog_name=$1 AND table_namespace=$2 AND table_name=$3"

/* One commit on its way. */
typedef struct sql_work {
    sql_catalog *self;
    tarn_arena arena;
    sql_key key;
    tarn_table_version *base; /* NULL: a new table */
    catalog_document doc;
    catalog_outage outage;
} sql_work;

static tarn_code no_row(sql_kind kind, const char *label, tarn_error *err) {
    return err_set(err, TARN_NOT_FOUND, "%s %s did not exist", sql_kind_name(kind), label);
}

tarn_code sql_read_pointer(sql_catalog *self, tarn_arena *arena, const sql_key *key, tarn_str *out,
                           tarn_error *err) {
    const tarn_str args[] = {self->name, key->ns.text, key->name};
    sql_rows rows;
    tarn_code code =
        sql_query(self->db, arena,
                  SQL_OF_KIND(self, key->kind, "SELECT metadata_location FROM iceberg_tables" ROW),
                  3, args, &rows, err);
    if (code != TARN_OK) {
        return code;
    }
    if (rows.n_rows == 0) {
        return no_row(key->kind, key->label, err);
    }
    *out = sql_value(&rows, 0, 0);
    return out->len > 0 ? TARN_OK
                        : err_set(err, TARN_CORRUPT, "%s %s had no metadata location in %s",
                                  sql_kind_name(key->kind), key->label, self->db->label);
}

tarn_code sql_key_of(tarn_arena *arena, sql_kind kind, const tarn_ident *ident, sql_key *out,
                     tarn_error *err) {
    *out = (sql_key){.kind = kind, .label = ident_label(arena, ident), .name = ident->name};
    return sql_namespace_of(arena, ident, &out->ns, err);
}

static void keep_recent(sql_catalog *self, tarn_table_version *version) {
    sql_lock(self);
    tarn_table_version *old = recent_put(&self->recent, version);
    sql_unlock(self);
    table_version_release(old);
}

static tarn_code sql_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                          tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sql_key key;
    tarn_str location;
    tarn_str before = STR_NULL;
    tarn_code code;
    TRY(sql_key_of(&arena, SQL_TABLE, table, &key, err));
    for (;;) {
        sql_lock_waited(self);
        code = sql_read_pointer(self, &arena, &key, &location, err);
        tarn_table_version *recent = code == TARN_OK ? recent_find(&self->recent, location) : NULL;
        sql_unlock(self);
        if (recent != NULL) {
            *out = recent;
            break;
        }
        if (code != TARN_OK) {
            break;
        }
        if (str_eq(location, before)) { /* the table is there: that it cannot be read is damage */
            code = err_set(err, TARN_CORRUPT, "table %s named %.*s, which did not exist", key.label,
                           STR_ARG(location));
            break;
        }
        code = catalog_read_version(c->env, c->store, location, out, err);
        if (code != TARN_NOT_FOUND) {
            break;
        }
        before = location; /* has the pointer moved on, and the document been removed since? */
        err_reset(err);
    }
done:
    arena_release(&arena);
    return code;
}

tarn_code sql_list(sql_catalog *self, tarn_arena *arena, sql_kind kind, const tarn_ident *ns_ident,
                   tarn_ident **out, int32_t *n, tarn_error *err) {
    sql_namespace ns;
    sql_rows rows;
    tarn_code code;
    sql_lock(self);
    if (ns_ident->n_levels == 0) { /* tables without a namespace cannot be */
        *n = 0;
        code = TARN_OK;
        goto done;
    }
    TRY(sql_namespace_of(arena, ns_ident, &ns, err));
    TRY(sql_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text};
    TRY(sql_query(self->db, arena,
                  SQL_OF_KIND(self, kind,
                              "SELECT table_name FROM iceberg_tables WHERE catalog_name=$1 AND "
                              "table_namespace=$2"),
                  2, args, &rows, err));
    sql_sort(&rows);
    tarn_ident *items = ARENA_ARRAY(arena, tarn_ident, (size_t)rows.n_rows);
    if (items == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int32_t i = 0; i < rows.n_rows; i++) {
        items[i] = (tarn_ident){ns_ident->n_levels, ns_ident->levels, sql_value(&rows, i, 0)};
    }
    *out = items;
    *n = rows.n_rows;
done:
    sql_unlock(self);
    return code;
}

static tarn_code sql_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                 tarn_ident **out, int32_t *n, tarn_error *err) {
    return sql_list((sql_catalog *)c, arena, SQL_TABLE, ns, out, n, err);
}

tarn_code sql_insert_row(sql_catalog *self, const sql_key *key, tarn_str location,
                         tarn_error *err) {
    const tarn_str args[] = {self->name, key->ns.text, key->name, location,
                             key->kind == SQL_VIEW ? STR("VIEW") : STR("TABLE")};
    tarn_code code;
    TRY(sql_need_namespace(self, &key->ns, err));
    code = sql_run(self->db,
                   self->has_type
                       ? "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location, iceberg_type) VALUES ($1, $2, $3, $4, $5)"
                       : "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location) VALUES ($1, $2, $3, $4)",
                   self->has_type ? 5 : 4, args, NULL, err);
    if (code == TARN_CONFLICT) {
        code = err_set(err, TARN_CONFLICT, "%s %s already existed", sql_kind_name(key->kind),
                       key->label);
    }
done:
    return code;
}

static tarn_code fail_moved(sql_work *w, tarn_str now, tarn_error *err) {
    return err_set(err, TARN_CONFLICT, "table %s moved from %.*s to %.*s", w->key.label,
                   STR_ARG(w->base->metadata_location), STR_ARG(now));
}

static tarn_code update_row(sql_work *w, bool *sent, tarn_error *err) {
    sql_catalog *self = w->self;
    tarn_str now = STR_NULL;
    int64_t changes = 0;
    bool refused = true;
    const tarn_str args[] = {self->name, w->key.ns.text, w->key.name,
                             w->doc.version->metadata_location, w->base->metadata_location};
    tarn_code code =
        sql_change(self->db,
                   SQL_OF_KIND(self, SQL_TABLE,
                               "UPDATE iceberg_tables SET metadata_location=$4, "
                               "previous_metadata_location=$5" ROW " AND metadata_location=$5"),
                   5, args, &changes, &refused, err);
    *sent = !refused;
    if (code == TARN_OK && changes == 0) {
        *sent = false;
        TRY(sql_read_pointer(self, &w->arena, &w->key, &now, err));
        code = fail_moved(w, now, err);
    }
done:
    return code;
}

static tarn_code create_row(sql_work *w, bool *sent, tarn_error *err) {
    sql_catalog *self = w->self;
    bool refused = false;
    tarn_code code;
    TRY(sql_begin(self->db, err));
    TRY(sql_insert_row(self, &w->key, w->doc.version->metadata_location, err));
    code = sql_commit(self->db, &refused, err);
    *sent = !refused;
done:
    sql_rollback(self->db);
    return code;
}

/* *sent: the failure may have taken effect (invariant 3). */
static tarn_code move_pointer(sql_work *w, bool *sent, tarn_error *err) {
    *sent = false;
    sql_lock_waited(w->self);
    tarn_code code = w->base == NULL ? create_row(w, sent, err) : update_row(w, sent, err);
    sql_unlock(w->self);
    return code;
}

static bool log_has(const tarn_metadata *m, tarn_str location) {
    for (int32_t i = 0; i < m->n_metadata_log; i++) {
        if (str_eq(m->metadata_log[i].metadata_file, location)) {
            return true;
        }
    }
    return false;
}

/* What the row says after a COMMIT without a clear answer. *at_base: that the pointer stands where
 * it stood. */
static tarn_outcome_kind look_again(sql_work *w, bool *at_base) {
    sql_catalog *self = w->self;
    tarn_table_version *now = NULL;
    tarn_str pointer = STR_NULL;
    tarn_outcome_kind outcome = TARN_OUTCOME_UNKNOWN;
    sql_lock_waited(self);
    tarn_code code = sql_read_pointer(self, &w->arena, &w->key, &pointer, NULL);
    sql_unlock(self);
    *at_base = w->base == NULL ? code == TARN_NOT_FOUND
                               : code == TARN_OK && str_eq(pointer, w->base->metadata_location);
    if (*at_base) {
        return TARN_NOT_COMMITTED;
    }
    if (code != TARN_OK) {
        return TARN_OUTCOME_UNKNOWN;
    }
    if (str_eq(pointer, w->doc.version->metadata_location)) {
        return TARN_COMMITTED;
    }
    if (catalog_read_version(self->base.env, self->base.store, pointer, &now, NULL) == TARN_OK) {
        if (document_is_in_history(&w->doc, now)) {
            outcome = TARN_COMMITTED;
        } else if (w->base != NULL && log_has(now->metadata, w->base->metadata_location)) {
            outcome = TARN_NOT_COMMITTED;
        }
    }
    table_version_release(now);
    return outcome;
}

/* Moves the pointer and finds out whether it moved. A failure's code and cause are those of the
 * last try; where another's commit was seen it is CONFLICT. */
static tarn_code settle(sql_work *w, tarn_outcome_kind *outcome, tarn_error *cause) {
    bool sent = false;
    bool unclear = false; /* a try before this one may have had its effect */
    bool at_base = false;
    tarn_code code = TARN_OK;
    for (int i = 0; i < SQL_SWAP_TRIES; i++) {
        code = move_pointer(w, &sent, cause);
        if (code == TARN_OK) {
            *outcome = TARN_COMMITTED;
            return TARN_OK;
        }
        if (!sent && !unclear) {
            *outcome = TARN_NOT_COMMITTED;
            return code;
        }
        unclear = true;
        *outcome = look_again(w, &at_base);
        if (*outcome == TARN_COMMITTED) {
            return TARN_OK;
        }
        if (*outcome == TARN_NOT_COMMITTED && !at_base) {
            return err_set(cause, TARN_CONFLICT, "table %s was moved by another commit",
                           w->key.label);
        }
        if (!w->self->db->vt->remote) {
            return code;
        }
        if (catalog_wait(&w->self->base, &w->outage, cause)) {
            i = -1; /* as if it had not been away */
        }
    }
    *outcome = TARN_OUTCOME_UNKNOWN;
    return code;
}

static tarn_code swap(sql_work *w, tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_error cause = TARN_ERROR_INIT;
    bool shown = false;
    tarn_code code = document_send(&w->doc, store, STORE_CREATE_LATER, &shown, &cause);
    if (code == TARN_OK) { /* all that the pointer will lead to */
        code = store_sync(store, &cause);
    }
    if (code == TARN_OK) {
        code = settle(w, outcome, &cause);
        catalog_wait_end(&w->self->base, &w->outage, code == TARN_OK || !err_is_away(&cause));
    } else if (code == TARN_CONFLICT) {
        shown = false; /* not our file */
    }
    if (*outcome == TARN_NOT_COMMITTED) {
        if (shown) {
            store_discard(store, w->doc.version->metadata_location);
        }
        return err_as(err, err_set(err, code, "%s", cause.message), &cause);
    }
    if (*outcome == TARN_OUTCOME_UNKNOWN) {
        (void)err_set(err, TARN_COMMIT_UNKNOWN, "commit of table %s as %.*s was sent: %s",
                      w->key.label, STR_ARG(w->doc.version->metadata_location), cause.message);
        return err_as(err, TARN_COMMIT_UNKNOWN, &cause);
    }
    return TARN_OK;
}

const char *sql_document_name(sql_catalog *self, tarn_arena *arena, tarn_str base, bool gzip) {
    char uuid[37];
    int64_t number = -1;
    if (base.len > 0 && !folder_parse_sequence(folder_file_name(base), &number)) {
        number = -1;
    }
    env_uuid_v4(self->base.env, uuid);
    return arena_printf(arena, "%05lld-%s%s.metadata.json", (long long)number + 1, uuid,
                        gzip ? ".gz" : "");
}

tarn_code sql_place_document(sql_catalog *self, tarn_arena *arena, const tarn_table_version *base,
                             catalog_document *doc, tarn_error *err) {
    const tarn_metadata *m = doc->version->metadata;
    bool gzip = metadata_wants_gzip(m);
    tarn_str location;
    const char *name =
        sql_document_name(self, arena, base != NULL ? base->metadata_location : STR_NULL, gzip);
    if (name == NULL) {
        return err_nomem(err);
    }
    tarn_code code = location_metadata_file(arena, m, str_of(name), &location, err);
    return code != TARN_OK ? code : document_pack(doc, location, gzip, err);
}

/* Before work is done and a document written: would the swap fail now already? */
static tarn_code check_base(sql_work *w, tarn_error *err) {
    sql_catalog *self = w->self;
    tarn_str now = STR_NULL;
    tarn_code code;
    sql_lock_waited(self);
    if (w->base == NULL) {
        TRY(sql_need_namespace(self, &w->key.ns, err));
    }
    code = sql_read_pointer(self, &w->arena, &w->key, &now, err);
    if (w->base == NULL && code == TARN_NOT_FOUND) {
        err_reset(err);
        code = TARN_OK;
    } else if (w->base == NULL && code == TARN_OK) {
        code = err_set(err, TARN_CONFLICT, "table %s already existed", w->key.label);
    } else if (code == TARN_OK && !str_eq(now, w->base->metadata_location)) {
        code = fail_moved(w, now, err);
    }
done:
    sql_unlock(self);
    return code;
}

static tarn_code sql_commit_table(tarn_catalog *c, const tarn_ident *table,
                                  tarn_table_version *base, const tarn_change_set *set,
                                  tarn_outcome_kind *outcome, tarn_table_version **out,
                                  tarn_error *err) {
    sql_work w = {.self = (sql_catalog *)c, .base = base};
    tarn_code code;
    *outcome = TARN_NOT_COMMITTED;
    arena_init(&w.arena, c->env);
    document_init(&w.doc, c->env);
    TRY(sql_key_of(&w.arena, SQL_TABLE, table, &w.key, err));
    TRY(check_base(&w, err));
    TRY(document_build(&w.doc, base, set, err));
    TRY(sql_place_document(w.self, &w.arena, base, &w.doc, err));
    TRY(swap(&w, outcome, err));
    env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "table=%s metadata=%.*s", w.key.label,
            STR_ARG(w.doc.version->metadata_location));
    document_remove_old(&w.doc, c->store);
    keep_recent(w.self, w.doc.version);
    if (out != NULL) {
        *out = table_version_keep(w.doc.version);
    }
done:
    document_release(&w.doc);
    arena_release(&w.arena);
    return code;
}

tarn_code sql_register_row(sql_catalog *self, const sql_key *key, tarn_str location,
                           tarn_error *err) {
    bool refused;
    sql_lock(self);
    tarn_code code = sql_begin(self->db, err);
    if (code == TARN_OK) {
        code = sql_insert_row(self, key, location, err);
    }
    if (code == TARN_OK) {
        code = sql_commit(self->db, &refused, err);
    }
    sql_rollback(self->db);
    sql_unlock(self);
    return code;
}

static tarn_code sql_register(tarn_catalog *c, const tarn_ident *table, tarn_str metadata_location,
                              tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_table_version *version = NULL;
    sql_key key;
    tarn_code code;
    TRY(sql_key_of(&arena, SQL_TABLE, table, &key, err));
    TRY(catalog_read_version(c->env, c->store, metadata_location, &version, err));
    code = sql_register_row(self, &key, metadata_location, err);
done:
    table_version_release(version);
    arena_release(&arena);
    return code;
}

static tarn_code rename_row(sql_catalog *self, const sql_key *from, const sql_key *to,
                            tarn_error *err) {
    const tarn_str args[] = {self->name, from->ns.text, from->name, to->ns.text, to->name};
    int64_t changes = 0;
    bool refused;
    tarn_code code;
    TRY(sql_begin(self->db, err));
    TRY(sql_need_namespace(self, &to->ns, err));
    code = sql_run(self->db,
                   SQL_OF_KIND(self, from->kind,
                               "UPDATE iceberg_tables SET table_namespace=$4, table_name=$5" ROW),
                   5, args, &changes, err);
    if (code == TARN_CONFLICT) {
        code = err_set(err, TARN_CONFLICT, "%s %s already existed", sql_kind_name(to->kind),
                       to->label);
    } else if (code == TARN_OK && changes == 0) {
        code = no_row(from->kind, from->label, err);
    }
    if (code == TARN_OK) {
        code = sql_commit(self->db, &refused, err);
    }
done:
    sql_rollback(self->db);
    return code;
}

tarn_code sql_rename_kind(sql_catalog *self, sql_kind kind, const tarn_ident *from,
                          const tarn_ident *to, tarn_error *err) {
    tarn_arena arena;
    sql_key from_key, to_key;
    tarn_code code;
    arena_init(&arena, self->base.env);
    TRY(sql_key_of(&arena, kind, from, &from_key, err));
    TRY(sql_key_of(&arena, kind, to, &to_key, err));
    sql_lock(self);
    code = rename_row(self, &from_key, &to_key, err);
    sql_unlock(self);
done:
    arena_release(&arena);
    return code;
}

static tarn_code sql_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                            tarn_error *err) {
    return sql_rename_kind((sql_catalog *)c, SQL_TABLE, from, to, err);
}

/* at: the pointer that it must have; no data: any. */
static tarn_code drop_row(sql_catalog *self, const sql_key *key, tarn_str at, tarn_error *err) {
    const tarn_str args[] = {self->name, key->ns.text, key->name, at};
    const bool any = at.data == NULL;
    tarn_arena arena;
    tarn_str now;
    int64_t changes = 0;
    bool refused;
    tarn_code code;
    arena_init(&arena, self->base.env);
    TRY(sql_begin(self->db, err));
    code = sql_read_pointer(self, &arena, key, &now, err);
    if (code == TARN_CORRUPT && any) { /* such a row can go, too */
        err_reset(err);
        code = TARN_OK;
    }
    TRY(code);
    if (!any && !str_eq(at, now)) {
        TRY(err_set(err, TARN_CONFLICT, "%s %s moved from %.*s to %.*s", sql_kind_name(key->kind),
                    key->label, STR_ARG(at), STR_ARG(now)));
    }
    const char *sql =
        any ? SQL_OF_KIND(self, key->kind, "DELETE FROM iceberg_tables" ROW)
            : SQL_OF_KIND(self, key->kind,
                          "DELETE FROM iceberg_tables" ROW " AND metadata_location=$4");
    TRY(sql_run(self->db, sql, any ? 3 : 4, args, &changes, err));
    if (!any && changes == 0) { /* between the two */
        TRY(err_set(err, TARN_CONFLICT, "%s %s moved from %.*s", sql_kind_name(key->kind),
                    key->label, STR_ARG(at)));
    }
    /* A namespace that only its tables made stays, as if it had been created. */
    TRY(sql_run(
        self->db,
        "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, "
        "property_key, property_value) VALUES ($1, $2, 'exists', 'true') ON CONFLICT DO NOTHING",
        2, args, NULL, err));
    code = sql_commit(self->db, &refused, err);
done:
    sql_rollback(self->db);
    arena_release(&arena);
    return code;
}

tarn_code sql_drop_kind(sql_catalog *self, sql_kind kind, const tarn_ident *ident, tarn_str at,
                        tarn_error *err) {
    tarn_arena arena;
    sql_key key;
    tarn_code code;
    arena_init(&arena, self->base.env);
    TRY(sql_key_of(&arena, kind, ident, &key, err));
    sql_lock(self);
    code = drop_row(self, &key, at, err);
    sql_unlock(self);
done:
    arena_release(&arena);
    return code;
}

static tarn_code sql_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) {
    return sql_drop_kind((sql_catalog *)c, SQL_TABLE, table, STR_NULL, err);
}

static tarn_code sql_unregister(tarn_catalog *c, const tarn_ident *table,
                                const tarn_table_version *version, tarn_error *err) {
    return sql_drop_kind((sql_catalog *)c, SQL_TABLE, table, version->metadata_location, err);
}

/* <namespace's location>/<table>; without such a property <warehouse>/<level>/.../<table>. */
static tarn_code sql_default_location(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                      tarn_str *out, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    sql_namespace ns;
    tarn_str path;
    tarn_code code;
    TRY(sql_namespace_of(arena, table, &ns, err));
    sql_lock(self);
    code = sql_namespace_location(self, arena, &ns, &path, err);
    sql_unlock(self);
    if (code != TARN_OK) {
        goto done;
    }
    bool placed = path.data != NULL;
    path = placed ? path : self->warehouse;
    if (path.len == 0) {
        code = err_set(err, TARN_INVALID, "catalog %s had no warehouse for new tables",
                       self->db->label);
        goto done;
    }
    for (int32_t i = placed ? table->n_levels : 0; i <= table->n_levels; i++) {
        tarn_str name = i < table->n_levels ? table->levels[i] : table->name;
        if (name.len == 0) {
            break; /* a namespace's own location */
        }
        tarn_str part = ident_path_part(arena, name);
        const char *joined = part.data != NULL ? store_join(arena, path, part) : NULL;
        if (joined == NULL) {
            code = err_nomem(err);
            goto done;
        }
        path = str_of(joined);
    }
    *out = path;
done:
    return code;
}

static void sql_close_catalog(tarn_catalog *c) {
    sql_catalog *self = (sql_catalog *)c;
    recent_release(&self->recent);
    sql_close(self->db);
    store_close(c->store);
    (void)pthread_mutex_destroy(&self->lock);
    env_free(c->env, self);
}

static void sql_set_hasty(tarn_catalog *c, bool hasty) {
    sql_catalog *self = (sql_catalog *)c;
    sql_lock(self);
    self->hasty = hasty;
    sql_unlock(self);
}

static const catalog_vtable SQL_VTABLE = {
    .name = "sql",
    .list_namespaces = sql_list_namespaces,
    .create_namespace = sql_create_namespace,
    .load_namespace = sql_load_namespace,
    .update_namespace = sql_update_namespace,
    .drop_namespace = sql_drop_namespace,
    .list_tables = sql_list_tables,
    .load = sql_load,
    .commit = sql_commit_table,
    .register_table = sql_register,
    .rename_table = sql_rename,
    .drop_table = sql_drop,
    .default_location = sql_default_location,
    .unregister_table = sql_unregister,
    .commit_many = sql_commit_many,
    .list_views = sql_list_views,
    .load_view = sql_load_view,
    .commit_view = sql_commit_view,
    .register_view = sql_register_view,
    .rename_view = sql_rename_view,
    .drop_view = sql_drop_view,
    .close = sql_close_catalog,
    .set_hasty = sql_set_hasty,
};

/* Makes the tables in a database that lacks them, as Iceberg's JDBC catalog does with schema V1. */
static tarn_code make_tables(sql_catalog *self, tarn_error *err) {
    tarn_code code;
    TRY(sql_run(self->db,
                "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
                "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
                "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
                "iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, "
                "table_name))",
                0, NULL, NULL, err));
    TRY(sql_run(self->db,
                "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name "
                "VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key "
                "VARCHAR(255) NOT NULL, property_value VARCHAR(1000), PRIMARY KEY "
                "(catalog_name, namespace, property_key))",
                0, NULL, NULL, err));
done:
    return code;
}

static tarn_code set_up(sql_catalog *self, tarn_error *err) {
    bool both = false;
    tarn_code code;
    TRY(sql_has_row(self->db, self->db->vt->has_tables, 0, NULL, &both, err));
    if (!both) {
        code = make_tables(self, err);
        if (code == TARN_CONFLICT) { /* another made them at this moment */
            err_reset(err);
            TRY(sql_has_row(self->db, self->db->vt->has_tables, 0, NULL, &both, err));
            code = both ? TARN_OK : make_tables(self, err);
        }
    }
    if (code == TARN_OK) {
        code = sql_has_row(self->db, self->db->vt->has_type, 0, NULL, &self->has_type, err);
    }
done:
    return code;
}

static tarn_str put_text(char **to, tarn_str s) {
    tarn_str copy = str_make(*to, s.len);
    if (s.len > 0) {
        memcpy(*to, s.data, s.len);
    }
    (*to)[s.len] = 0;
    *to += s.len + 1;
    return copy;
}

static tarn_code check_name(tarn_str catalog_name, tarn_error *err) {
    return catalog_name.len > 0 ? TARN_OK
                                : err_set(err, TARN_INVALID, "the catalog's name was empty");
}

/* Over a database that was opened; db stays the caller's on failure. */
static tarn_code open_over(sql_db *db, tarn_store *store, tarn_str catalog_name, tarn_str warehouse,
                           tarn_catalog **out, tarn_error *err) {
    tarn_env *env = db->env;
    sql_catalog *self = env_calloc(env, 1, sizeof *self + catalog_name.len + warehouse.len + 2);
    if (self == NULL) {
        return err_nomem(err);
    }
    char *text = (char *)(self + 1);
    self->db = db;
    self->name = put_text(&text, catalog_name);
    self->warehouse = put_text(&text, warehouse);
    self->base = (tarn_catalog){.vt = &SQL_VTABLE, .env = env, .store = store};
    tarn_code code = pthread_mutex_init(&self->lock, NULL) == 0
                         ? TARN_OK
                         : err_set(err, TARN_IO, "a lock could not be made");
    if (code != TARN_OK) {
        env_free(env, self);
        return code;
    }
    code = set_up(self, err);
    if (code != TARN_OK) {
        (void)pthread_mutex_destroy(&self->lock);
        env_free(env, self);
        return code;
    }
    *out = &self->base;
    return TARN_OK;
}

tarn_code catalog_sqlite_new(tarn_env *env, tarn_store *store, tarn_str db_path,
                             tarn_str catalog_name, tarn_str warehouse, tarn_catalog **out,
                             tarn_error *err) {
    tarn_str path;
    sql_db *db = NULL;
    tarn_code code;
    if (!store_local_path(db_path, &path) || path.len == 0 ||
        memchr(path.data, 0, path.len) != NULL) {
        return err_set(err, TARN_INVALID, "catalog database \"%.*s\" was not a local file",
                       STR_ARG(db_path));
    }
    TRY(check_name(catalog_name, err));
    TRY(sql_open_sqlite(env, path, &db, err));
    TRY(open_over(db, store, catalog_name, warehouse, out, err));
    db = NULL;
done:
    sql_close(db);
    return code;
}

tarn_code catalog_postgres_new(tarn_env *env, tarn_store *store, tarn_str uri,
                               tarn_str catalog_name, tarn_str warehouse, tarn_catalog **out,
                               tarn_error *err) {
    sql_db *db = NULL;
    tarn_code code;
    TRY(check_name(catalog_name, err));
    TRY(sql_open_postgres(env, uri, &db, err));
    TRY(open_over(db, store, catalog_name, warehouse, out, err));
    db = NULL;
done:
    sql_close(db);
    return code;
}
