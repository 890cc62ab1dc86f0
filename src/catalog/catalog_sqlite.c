/* catalog/catalog_sqlite.c - tables in a SQLite database, in the tables of Iceberg's JDBC catalog,
 * so that JdbcCatalog and PyIceberg's SqlCatalog work on the same file.
 *
 * Invariants
 * 1. The pointer is metadata_location of one row. It moves by an UPDATE that names the base's
 *    location (or by an INSERT under the primary key), inside a transaction that took the write
 *    lock first: one winner per base.
 * 2. The document is whole in the store before the pointer names it; its name is nobody else's.
 * 3. A transaction that failed before COMMIT, or whose COMMIT found the database locked, had no
 *    effect. After any other failure of COMMIT the row is read again: it names our document, or
 * what it names has ours in its log: COMMITTED. It still names the base: NOT_COMMITTED. Else
 * UNKNOWN.
 * 4. A document is removed again only under a definite NOT_COMMITTED. */
#include "catalog/catalog_sqlite_int.h"
#include "iceberg/location.h"

/* Rows of views are not tables; rows from before the column are. */
#define IS_TABLE " AND (iceberg_type='TABLE' OR iceberg_type IS NULL)"
#define ROW      " WHERE catalog_name=?1 AND table_namespace=?2 AND table_name=?3"

/* One commit on its way. */
typedef struct sqlite_work {
    sqlite_catalog *self;
    tarn_arena arena;
    const char *label;
    sqlite_namespace ns;
    tarn_str name;
    tarn_table_version *base; /* NULL: a new table */
    catalog_document doc;
} sqlite_work;

/* sql, and the condition on the type where the database has one. */
#define WITH_TYPE(self, sql) ((self)->has_type ? sql IS_TABLE : sql)

static tarn_code no_table(const char *label, tarn_error *err) {
    return err_set(err, TARN_NOT_FOUND, "table %s did not exist", label);
}

/* The row's pointer, copied into arena. Under the lock. */
static tarn_code read_pointer(sqlite_catalog *self, tarn_arena *arena, tarn_str ns, tarn_str name,
                              const char *label, tarn_str *out, tarn_error *err) {
    const tarn_str args[] = {self->name, ns, name};
    sqlite3_stmt *statement = NULL;
    bool row = false;
    tarn_code code;
    TRY(sqlite_prepare(&self->db,
                       WITH_TYPE(self, "SELECT metadata_location FROM iceberg_tables" ROW), 3, args,
                       &statement, err));
    TRY(sqlite_next(&self->db, statement, &row, err));
    if (!row) {
        code = no_table(label, err);
        goto done;
    }
    tarn_str location = sqlite_text(statement, 0);
    if (location.len == 0) {
        code = err_set(err, TARN_CORRUPT, "table %s had no metadata location in %s", label,
                       self->db.path);
        goto done;
    }
    *out = arena_str(arena, location);
    code = out->data != NULL ? TARN_OK : err_nomem(err);
done:
    (void)sqlite3_finalize(statement);
    return code;
}

static tarn_code sqlite_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                             tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_namespace ns;
    tarn_str location;
    const char *label = ident_label(&arena, table);
    tarn_code code;
    TRY(sqlite_namespace_of(&arena, table, &ns, err));
    sqlite_lock(self);
    code = read_pointer(self, &arena, ns.text, table->name, label, &location, err);
    sqlite_unlock(self);
    if (code != TARN_OK) {
        goto done;
    }
    code = catalog_read_version(c->env, c->store, location, out, err);
    if (code == TARN_NOT_FOUND) { /* the table is there: that it cannot be read is damage */
        code = err_set(err, TARN_CORRUPT, "table %s named %.*s, which did not exist", label,
                       STR_ARG(location));
    }
done:
    arena_release(&arena);
    return code;
}

static tarn_code sqlite_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns_ident,
                                    tarn_ident **out, int32_t *n, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    sqlite_namespace ns;
    sqlite3_stmt *statement = NULL;
    tarn_ident *items = NULL;
    int32_t count = 0;
    int32_t cap = 0;
    bool row = true;
    tarn_code code;
    sqlite_lock(self);
    if (ns_ident->n_levels == 0) { /* tables without a namespace cannot be */
        *n = 0;
        code = TARN_OK;
        goto done;
    }
    TRY(sqlite_namespace_of(arena, ns_ident, &ns, err));
    TRY(sqlite_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text};
    TRY(sqlite_prepare(&self->db,
                       self->has_type
                           ? "SELECT table_name FROM iceberg_tables WHERE catalog_name=?1 AND "
                             "table_namespace=?2" IS_TABLE " ORDER BY 1"
                           : "SELECT table_name FROM iceberg_tables WHERE catalog_name=?1 AND "
                             "table_namespace=?2 ORDER BY 1",
                       2, args, &statement, err));
    for (;;) {
        TRY(sqlite_next(&self->db, statement, &row, err));
        if (!row) {
            break;
        }
        if (count == cap) {
            int32_t more = cap == 0 ? 16 : cap * 2;
            items =
                arena_grow(arena, items, (size_t)cap * sizeof *items, (size_t)more * sizeof *items);
            cap = more;
        }
        tarn_str name = arena_str(arena, sqlite_text(statement, 0));
        if (items == NULL || name.data == NULL) {
            code = err_nomem(err);
            goto done;
        }
        items[count++] = (tarn_ident){ns_ident->n_levels, ns_ident->levels, name};
    }
    *out = items;
    *n = count;
done:
    (void)sqlite3_finalize(statement);
    sqlite_unlock(self);
    return code;
}

static tarn_code insert_row(sqlite_catalog *self, const sqlite_namespace *ns, tarn_str name,
                            tarn_str location, const char *label, tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text, name, location};
    tarn_code code;
    TRY(sqlite_need_namespace(self, ns, err));
    code = sqlite_run(
        &self->db,
        self->has_type ? "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location, iceberg_type) VALUES (?1, ?2, ?3, ?4, 'TABLE')"
                       : "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                         "metadata_location) VALUES (?1, ?2, ?3, ?4)",
        4, args, NULL, err);
    if (code == TARN_CONFLICT) {
        code = err_set(err, TARN_CONFLICT, "table %s already existed", label);
    }
done:
    return code;
}

static tarn_code update_row(sqlite_work *w, tarn_error *err) {
    sqlite_catalog *self = w->self;
    tarn_str now = STR_NULL;
    int changes = 0;
    const tarn_str args[] = {self->name, w->ns.text, w->name, w->doc.version->metadata_location,
                             w->base->metadata_location};
    tarn_code code;
    TRY(sqlite_run(&self->db,
                   WITH_TYPE(self, "UPDATE iceberg_tables SET metadata_location=?4, "
                                   "previous_metadata_location=?5" ROW " AND metadata_location=?5"),
                   5, args, &changes, err));
    if (changes == 0) {
        TRY(read_pointer(self, &w->arena, w->ns.text, w->name, w->label, &now, err));
        code = err_set(err, TARN_CONFLICT, "table %s moved from %.*s to %.*s", w->label,
                       STR_ARG(w->base->metadata_location), STR_ARG(now));
    }
done:
    return code;
}

/* *sent: the failure may have taken effect (invariant 3). */
static tarn_code move_pointer(sqlite_work *w, bool *sent, tarn_error *err) {
    sqlite_catalog *self = w->self;
    bool refused = false;
    tarn_code code;
    *sent = false;
    sqlite_lock(self);
    TRY(sqlite_begin(&self->db, err));
    if (w->base == NULL) {
        TRY(insert_row(self, &w->ns, w->name, w->doc.version->metadata_location, w->label, err));
    } else {
        TRY(update_row(w, err));
    }
    code = sqlite_commit(&self->db, &refused, err);
    *sent = !refused;
done:
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
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

/* What the row says after a COMMIT without a clear answer. */
static tarn_outcome_kind look_again(sqlite_work *w) {
    sqlite_catalog *self = w->self;
    tarn_table_version *now = NULL;
    tarn_str pointer = STR_NULL;
    tarn_outcome_kind outcome = TARN_OUTCOME_UNKNOWN;
    sqlite_lock(self);
    tarn_code code = read_pointer(self, &w->arena, w->ns.text, w->name, w->label, &pointer, NULL);
    sqlite_unlock(self);
    if (code == TARN_NOT_FOUND && w->base == NULL) {
        return TARN_NOT_COMMITTED;
    }
    if (code != TARN_OK) {
        return TARN_OUTCOME_UNKNOWN;
    }
    if (str_eq(pointer, w->doc.version->metadata_location)) {
        return TARN_COMMITTED;
    }
    if (w->base != NULL && str_eq(pointer, w->base->metadata_location)) {
        return TARN_NOT_COMMITTED;
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

static tarn_code swap(sqlite_work *w, tarn_outcome_kind *outcome, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_error cause = TARN_ERROR_INIT;
    bool shown = false;
    bool sent = false;
    tarn_code code = document_send(&w->doc, store, STORE_CREATE_LATER, &shown, &cause);
    if (code == TARN_OK) { /* all that the pointer will lead to */
        code = store_sync(store, &cause);
    }
    if (code == TARN_OK) {
        code = move_pointer(w, &sent, &cause);
        *outcome = code == TARN_OK ? TARN_COMMITTED : sent ? look_again(w) : TARN_NOT_COMMITTED;
    } else if (code == TARN_CONFLICT) {
        shown = false; /* not our file */
    }
    if (*outcome == TARN_NOT_COMMITTED) {
        if (shown) {
            store_discard(store, w->doc.version->metadata_location);
        }
        return err_set(err, code, "%s", cause.message);
    }
    if (*outcome == TARN_OUTCOME_UNKNOWN) {
        return err_set(err, TARN_COMMIT_UNKNOWN, "commit of table %s as %.*s was sent: %s",
                       w->label, STR_ARG(w->doc.version->metadata_location), cause.message);
    }
    return TARN_OK;
}

/* NNNNN-<uuid>.metadata.json: one above the base's number, 0 for a new table or an odd name. */
static tarn_code place_document(sqlite_work *w, tarn_error *err) {
    const tarn_metadata *m = w->doc.version->metadata;
    bool gzip = metadata_wants_gzip(m);
    char uuid[37];
    int64_t number = -1;
    tarn_str location;
    if (w->base != NULL &&
        !folder_parse_sequence(folder_file_name(w->base->metadata_location), &number)) {
        number = -1;
    }
    env_uuid_v4(w->self->base.env, uuid);
    const char *name = arena_printf(&w->arena, "%05lld-%s%s.metadata.json", (long long)number + 1,
                                    uuid, gzip ? ".gz" : "");
    if (name == NULL) {
        return err_nomem(err);
    }
    tarn_code code = location_metadata_file(&w->arena, m, str_of(name), &location, err);
    return code != TARN_OK ? code : document_pack(&w->doc, location, gzip, err);
}

/* Before work is done and a document written: would the swap fail now already? */
static tarn_code check_base(sqlite_work *w, tarn_error *err) {
    sqlite_catalog *self = w->self;
    tarn_str now = STR_NULL;
    tarn_code code;
    sqlite_lock(self);
    if (w->base == NULL) {
        TRY(sqlite_need_namespace(self, &w->ns, err));
    }
    code = read_pointer(self, &w->arena, w->ns.text, w->name, w->label, &now, err);
    if (w->base == NULL && code == TARN_NOT_FOUND) {
        err_reset(err);
        code = TARN_OK;
    } else if (w->base == NULL && code == TARN_OK) {
        code = err_set(err, TARN_CONFLICT, "table %s already existed", w->label);
    } else if (code == TARN_OK && !str_eq(now, w->base->metadata_location)) {
        code = err_set(err, TARN_CONFLICT, "table %s moved from %.*s to %.*s", w->label,
                       STR_ARG(w->base->metadata_location), STR_ARG(now));
    }
done:
    sqlite_unlock(self);
    return code;
}

static tarn_code sqlite_commit_table(tarn_catalog *c, const tarn_ident *table,
                                     tarn_table_version *base, const tarn_change_set *set,
                                     tarn_outcome_kind *outcome, tarn_table_version **out,
                                     tarn_error *err) {
    sqlite_work w = {.self = (sqlite_catalog *)c, .name = table->name, .base = base};
    tarn_code code;
    *outcome = TARN_NOT_COMMITTED;
    arena_init(&w.arena, c->env);
    document_init(&w.doc, c->env);
    w.label = ident_label(&w.arena, table);
    TRY(sqlite_namespace_of(&w.arena, table, &w.ns, err));
    TRY(check_base(&w, err));
    TRY(document_build(&w.doc, base, set, err));
    TRY(place_document(&w, err));
    TRY(swap(&w, outcome, err));
    env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "table=%s metadata=%.*s", w.label,
            STR_ARG(w.doc.version->metadata_location));
    document_remove_old(&w.doc, c->store);
    if (out != NULL) {
        *out = table_version_keep(w.doc.version);
    }
done:
    document_release(&w.doc);
    arena_release(&w.arena);
    return code;
}

static tarn_code sqlite_register(tarn_catalog *c, const tarn_ident *table,
                                 tarn_str metadata_location, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    tarn_table_version *version = NULL;
    sqlite_namespace ns;
    bool refused;
    tarn_code code;
    TRY(sqlite_namespace_of(&arena, table, &ns, err));
    TRY(catalog_read_version(c->env, c->store, metadata_location, &version, err));
    sqlite_lock(self);
    code = sqlite_begin(&self->db, err);
    if (code == TARN_OK) {
        code =
            insert_row(self, &ns, table->name, metadata_location, ident_label(&arena, table), err);
    }
    if (code == TARN_OK) {
        code = sqlite_commit(&self->db, &refused, err);
    }
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
done:
    table_version_release(version);
    arena_release(&arena);
    return code;
}

static tarn_code rename_row(sqlite_catalog *self, tarn_arena *arena, const tarn_ident *from,
                            const tarn_ident *to, tarn_error *err) {
    sqlite_namespace from_ns;
    sqlite_namespace to_ns;
    int changes = 0;
    bool refused;
    tarn_code code;
    TRY(sqlite_namespace_of(arena, from, &from_ns, err));
    TRY(sqlite_namespace_of(arena, to, &to_ns, err));
    TRY(sqlite_begin(&self->db, err));
    TRY(sqlite_need_namespace(self, &to_ns, err));
    const tarn_str args[] = {self->name, from_ns.text, from->name, to_ns.text, to->name};
    code = sqlite_run(
        &self->db,
        WITH_TYPE(self, "UPDATE iceberg_tables SET table_namespace=?4, table_name=?5" ROW), 5, args,
        &changes, err);
    if (code == TARN_CONFLICT) {
        code = err_set(err, TARN_CONFLICT, "table %s already existed", ident_label(arena, to));
    } else if (code == TARN_OK && changes == 0) {
        code = no_table(ident_label(arena, from), err);
    }
    if (code == TARN_OK) {
        code = sqlite_commit(&self->db, &refused, err);
    }
done:
    sqlite_rollback(&self->db);
    return code;
}

static tarn_code sqlite_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                               tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_lock(self);
    tarn_code code = rename_row(self, &arena, from, to, err);
    sqlite_unlock(self);
    arena_release(&arena);
    return code;
}

static tarn_code sqlite_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_namespace ns;
    int changes = 0;
    bool refused;
    tarn_code code;
    sqlite_lock(self);
    TRY(sqlite_namespace_of(&arena, table, &ns, err));
    TRY(sqlite_begin(&self->db, err));
    const tarn_str args[] = {self->name, ns.text, table->name};
    TRY(sqlite_run(&self->db, WITH_TYPE(self, "DELETE FROM iceberg_tables" ROW), 3, args, &changes,
                   err));
    if (changes == 0) {
        code = no_table(ident_label(&arena, table), err);
        goto done;
    }
    /* A namespace that only its tables made stays, as if it had been created. */
    const tarn_str keep[] = {self->name, ns.text};
    TRY(sqlite_run(&self->db,
                   "INSERT OR IGNORE INTO iceberg_namespace_properties (catalog_name, namespace, "
                   "property_key, property_value) VALUES (?1, ?2, 'exists', 'true')",
                   2, keep, NULL, err));
    code = sqlite_commit(&self->db, &refused, err);
done:
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
    arena_release(&arena);
    return code;
}

/* <namespace's location>/<table>; without such a property <warehouse>/<level>/.../<table>. */
static tarn_code sqlite_default_location(tarn_catalog *c, tarn_arena *arena,
                                         const tarn_ident *table, tarn_str *out, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    sqlite_namespace ns;
    tarn_str path;
    tarn_code code;
    TRY(sqlite_namespace_of(arena, table, &ns, err));
    sqlite_lock(self);
    code = sqlite_namespace_location(self, arena, &ns, &path, err);
    sqlite_unlock(self);
    if (code != TARN_OK) {
        goto done;
    }
    bool placed = path.data != NULL;
    path = placed ? path : self->warehouse;
    if (path.len == 0) {
        code =
            err_set(err, TARN_INVALID, "catalog %s had no warehouse for new tables", self->db.path);
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

static void sqlite_close_catalog(tarn_catalog *c) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    sqlite_close(&self->db);
    store_close(c->store);
    (void)pthread_mutex_destroy(&self->lock);
    env_free(c->env, self);
}

static const catalog_vtable SQLITE_VTABLE = {
    .name = "sqlite",
    .list_namespaces = sqlite_list_namespaces,
    .create_namespace = sqlite_create_namespace,
    .load_namespace = sqlite_load_namespace,
    .update_namespace = sqlite_update_namespace,
    .drop_namespace = sqlite_drop_namespace,
    .list_tables = sqlite_list_tables,
    .load = sqlite_load,
    .commit = sqlite_commit_table,
    .register_table = sqlite_register,
    .rename_table = sqlite_rename,
    .drop_table = sqlite_drop,
    .default_location = sqlite_default_location,
    .close = sqlite_close_catalog,
};

/* Makes the tables in a database that lacks them, as Iceberg's JDBC catalog does with schema V1. */
static tarn_code set_up(sqlite_catalog *self, tarn_error *err) {
    bool both = false;
    bool refused;
    tarn_code code;
    TRY(sqlite_has_row(&self->db,
                       "SELECT 1 WHERE (SELECT count(*) FROM sqlite_master WHERE type='table' AND "
                       "name IN ('iceberg_tables', 'iceberg_namespace_properties'))=2",
                       0, NULL, &both, err));
    if (!both) {
        TRY(sqlite_begin(&self->db, err));
        TRY(sqlite_run(&self->db,
                       "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT "
                       "NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT "
                       "NULL, metadata_location VARCHAR(1000), previous_metadata_location "
                       "VARCHAR(1000), iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, "
                       "table_namespace, table_name))",
                       0, NULL, NULL, err));
        TRY(sqlite_run(&self->db,
                       "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name "
                       "VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key "
                       "VARCHAR(255) NOT NULL, property_value VARCHAR(1000), PRIMARY KEY "
                       "(catalog_name, namespace, property_key))",
                       0, NULL, NULL, err));
        TRY(sqlite_commit(&self->db, &refused, err));
    }
    code = sqlite_has_row(&self->db,
                          "SELECT 1 FROM pragma_table_info('iceberg_tables') WHERE "
                          "lower(name)='iceberg_type'",
                          0, NULL, &self->has_type, err);
done:
    sqlite_rollback(&self->db);
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

tarn_code catalog_sqlite_new(tarn_env *env, tarn_store *store, tarn_str db_path,
                             tarn_str catalog_name, tarn_str warehouse, tarn_catalog **out,
                             tarn_error *err) {
    tarn_str path;
    sqlite_catalog *self = NULL;
    tarn_code code;
    if (!store_local_path(db_path, &path) || path.len == 0 ||
        memchr(path.data, 0, path.len) != NULL) {
        return err_set(err, TARN_INVALID, "catalog database \"%.*s\" was not a local file",
                       STR_ARG(db_path));
    }
    if (catalog_name.len == 0) {
        return err_set(err, TARN_INVALID, "the catalog's name was empty");
    }
    self = env_calloc(env, 1, sizeof *self + path.len + catalog_name.len + warehouse.len + 3);
    if (self == NULL) {
        return err_nomem(err);
    }
    char *text = (char *)(self + 1);
    const char *file = put_text(&text, path).data;
    self->name = put_text(&text, catalog_name);
    self->warehouse = put_text(&text, warehouse);
    self->base = (tarn_catalog){&SQLITE_VTABLE, env, store};
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        env_free(env, self);
        return err_set(err, TARN_IO, "a lock could not be made");
    }
    TRY(sqlite_open(&self->db, file, err));
    TRY(set_up(self, err));
    *out = &self->base;
    self = NULL;
done:
    if (self != NULL) {
        sqlite_close(&self->db);
        (void)pthread_mutex_destroy(&self->lock);
        env_free(env, self);
    }
    return code;
}
