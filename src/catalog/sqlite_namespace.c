/* catalog/sqlite_namespace.c - namespaces of the SQLite catalog. One is there when it has a row of
 * properties (Iceberg's catalogs write exists=true), or when a table or another namespace lies
 * below it.
 *
 * Names are compared by their bytes, case kept; what lies below "ns" is found between "ns." and
 * "ns/". LIKE would take _ and % in names for patterns (B38). */
#include "catalog/catalog_sqlite_int.h"

#define EXISTS_KEY "exists"

tarn_code sqlite_namespace_of(tarn_arena *arena, const tarn_ident *ident, sqlite_namespace *out,
                              tarn_error *err) {
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, arena->env, 0);
    if (ident->n_levels == 0) {
        code = err_set(err, TARN_INVALID, "a SQL catalog needs a namespace");
        goto done;
    }
    for (int32_t i = 0; i < ident->n_levels; i++) {
        size_t at;
        if (str_find_char(ident->levels[i], '.', &at)) {
            code =
                err_set(err, TARN_INVALID,
                        "namespace level %.*s held a dot, which a SQL catalog has between levels",
                        STR_ARG(ident->levels[i]));
            goto done;
        }
        if (i > 0) {
            TRY(buf_append_char(&text, '.', err));
        }
        TRY(buf_append_str(&text, ident->levels[i], err));
    }
    out->text = arena_str(arena, buf_str(&text));
    TRY(buf_append_char(&text, '.', err));
    out->low = arena_str(arena, buf_str(&text));
    text.data[text.len - 1] = '.' + 1;
    out->high = arena_str(arena, buf_str(&text));
    if (out->text.data == NULL || out->low.data == NULL || out->high.data == NULL) {
        code = err_nomem(err);
    }
done:
    buf_release(&text);
    return code;
}

static tarn_code namespace_exists(sqlite_catalog *self, const sqlite_namespace *ns, bool *out,
                                  tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text, ns->low, ns->high};
    return sqlite_has_row(
        &self->db,
        "SELECT 1 FROM iceberg_tables WHERE catalog_name=?1 AND (table_namespace=?2 OR "
        "(table_namespace>=?3 AND table_namespace<?4)) UNION ALL "
        "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name=?1 AND (namespace=?2 OR "
        "(namespace>=?3 AND namespace<?4)) LIMIT 1",
        4, args, out, err);
}

tarn_code sqlite_need_namespace(sqlite_catalog *self, const sqlite_namespace *ns, tarn_error *err) {
    bool there = false;
    tarn_code code = namespace_exists(self, ns, &there, err);
    if (code == TARN_OK && !there) {
        code = err_set(err, TARN_NOT_FOUND, "namespace %.*s did not exist", STR_ARG(ns->text));
    }
    return code;
}

tarn_code sqlite_namespace_location(sqlite_catalog *self, tarn_arena *arena,
                                    const sqlite_namespace *ns, tarn_str *out, tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text};
    sqlite3_stmt *statement = NULL;
    bool row = false;
    tarn_code code;
    *out = STR_NULL;
    TRY(sqlite_prepare(&self->db,
                       "SELECT property_value FROM iceberg_namespace_properties WHERE "
                       "catalog_name=?1 AND namespace=?2 AND property_key='location'",
                       2, args, &statement, err));
    TRY(sqlite_next(&self->db, statement, &row, err));
    if (row && sqlite_text(statement, 0).len > 0) {
        *out = arena_str(arena, sqlite_text(statement, 0));
        code = out->data != NULL ? TARN_OK : err_nomem(err);
    }
done:
    (void)sqlite3_finalize(statement);
    return code;
}

typedef struct ident_list {
    tarn_arena *arena;
    tarn_ident *items;
    int32_t n, cap;
} ident_list;

/* Appends parent + level unless it is the last one already: rows come sorted by the full text, in
 * which "a.b" may part "a" from "a-b" and "a": the last one is not enough, so all are looked at
 * only among names with the same beginning. */
static bool has_level(const ident_list *list, int32_t depth, tarn_str level) {
    for (int32_t i = list->n - 1; i >= 0; i--) {
        tarn_str have = list->items[i].levels[depth];
        if (str_eq(have, level)) {
            return true;
        }
        if (!str_starts_with(have, level)) {
            return false;
        }
    }
    return false;
}

static tarn_code add_level(ident_list *list, const tarn_ident *parent, tarn_str level,
                           tarn_error *err) {
    if (level.len == 0 || has_level(list, parent->n_levels, level)) {
        return TARN_OK;
    }
    if (list->n == list->cap) {
        int32_t cap = list->cap == 0 ? 16 : list->cap * 2;
        tarn_ident *grown = arena_grow(list->arena, list->items, (size_t)list->cap * sizeof *grown,
                                       (size_t)cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        list->items = grown;
        list->cap = cap;
    }
    tarn_str *levels = ARENA_ARRAY(list->arena, tarn_str, (size_t)parent->n_levels + 1);
    tarn_str copy = arena_str(list->arena, level);
    if (levels == NULL || copy.data == NULL) {
        return err_nomem(err);
    }
    for (int32_t i = 0; i < parent->n_levels; i++) {
        levels[i] = parent->levels[i];
    }
    levels[parent->n_levels] = copy;
    list->items[list->n++] = (tarn_ident){parent->n_levels + 1, levels, STR_NULL};
    return TARN_OK;
}

tarn_code sqlite_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                 tarn_ident **out, int32_t *n, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    ident_list list = {.arena = arena};
    sqlite_namespace ns = {STR(""), STR(""), STR("")};
    sqlite3_stmt *statement = NULL;
    bool row = true;
    tarn_code code;
    sqlite_lock(self);
    if (parent->n_levels > 0) {
        TRY(sqlite_namespace_of(arena, parent, &ns, err));
        TRY(sqlite_need_namespace(self, &ns, err));
    }
    const tarn_str args[] = {self->name, ns.low, ns.high};
    TRY(sqlite_prepare(
        &self->db,
        parent->n_levels == 0
            ? "SELECT table_namespace FROM iceberg_tables WHERE catalog_name=?1 UNION "
              "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name=?1 ORDER BY 1"
            : "SELECT table_namespace FROM iceberg_tables WHERE catalog_name=?1 AND "
              "table_namespace>=?2 AND table_namespace<?3 UNION "
              "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name=?1 AND "
              "namespace>=?2 AND namespace<?3 ORDER BY 1",
        parent->n_levels == 0 ? 1 : 3, args, &statement, err));
    for (;;) {
        TRY(sqlite_next(&self->db, statement, &row, err));
        if (!row) {
            break;
        }
        size_t dot;
        tarn_str rest = str_from(sqlite_text(statement, 0), ns.low.len);
        TRY(add_level(&list, parent, str_find_char(rest, '.', &dot) ? str_sub(rest, 0, dot) : rest,
                      err));
    }
    *out = list.items;
    *n = list.n;
done:
    (void)sqlite3_finalize(statement);
    sqlite_unlock(self);
    return code;
}

static tarn_code put_property(sqlite_catalog *self, const sqlite_namespace *ns, tarn_str key,
                              tarn_str value, tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text, key, value.data != NULL ? value : STR("")};
    return sqlite_run(&self->db,
                      "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, "
                      "property_key, property_value) VALUES (?1, ?2, ?3, ?4) ON CONFLICT "
                      "(catalog_name, namespace, property_key) DO UPDATE SET "
                      "property_value=excluded.property_value",
                      4, args, NULL, err);
}

static tarn_code put_properties(sqlite_catalog *self, const sqlite_namespace *ns,
                                const tarn_properties *set, tarn_error *err) {
    tarn_code code = put_property(self, ns, STR(EXISTS_KEY), STR("true"), err);
    for (int32_t i = 0; i < set->count && code == TARN_OK; i++) {
        code = put_property(self, ns, set->items[i].key, set->items[i].value, err);
    }
    return code;
}

static tarn_code check_keys(const tarn_properties *p, tarn_error *err) {
    for (int32_t i = 0; i < p->count; i++) {
        if (p->items[i].key.len == 0 || str_is(p->items[i].key, EXISTS_KEY)) {
            return err_set(err, TARN_INVALID, "namespace property \"%.*s\" is not for use",
                           STR_ARG(p->items[i].key));
        }
    }
    return TARN_OK;
}

tarn_code sqlite_create_namespace(tarn_catalog *c, const tarn_ident *ident,
                                  const tarn_properties *properties, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_namespace ns;
    bool there = false;
    bool refused;
    tarn_code code;
    sqlite_lock(self);
    TRY(check_keys(properties, err));
    TRY(sqlite_namespace_of(&arena, ident, &ns, err));
    TRY(sqlite_begin(&self->db, err));
    TRY(namespace_exists(self, &ns, &there, err));
    if (there) {
        code = err_set(err, TARN_CONFLICT, "namespace %.*s already existed", STR_ARG(ns.text));
        goto done;
    }
    TRY(put_properties(self, &ns, properties, err));
    code = sqlite_commit(&self->db, &refused, err);
done:
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
    arena_release(&arena);
    return code;
}

tarn_code sqlite_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ident,
                                tarn_properties *out, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    sqlite_namespace ns;
    sqlite3_stmt *statement = NULL;
    tarn_property *items = NULL;
    int32_t n = 0;
    int32_t cap = 0;
    bool row = true;
    tarn_code code;
    sqlite_lock(self);
    TRY(sqlite_namespace_of(arena, ident, &ns, err));
    TRY(sqlite_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text};
    TRY(sqlite_prepare(&self->db,
                       "SELECT property_key, property_value FROM iceberg_namespace_properties "
                       "WHERE catalog_name=?1 AND namespace=?2 AND property_key<>'" EXISTS_KEY
                       "' ORDER BY 1",
                       2, args, &statement, err));
    for (;;) {
        TRY(sqlite_next(&self->db, statement, &row, err));
        if (!row) {
            break;
        }
        if (n == cap) {
            int32_t more = cap == 0 ? 8 : cap * 2;
            items =
                arena_grow(arena, items, (size_t)cap * sizeof *items, (size_t)more * sizeof *items);
            cap = more;
        }
        tarn_property p = {arena_str(arena, sqlite_text(statement, 0)),
                           arena_str(arena, sqlite_text(statement, 1))};
        if (items == NULL || p.key.data == NULL || p.value.data == NULL) {
            code = err_nomem(err);
            goto done;
        }
        items[n++] = p;
    }
    *out = (tarn_properties){n, items};
done:
    (void)sqlite3_finalize(statement);
    sqlite_unlock(self);
    return code;
}

tarn_code sqlite_update_namespace(tarn_catalog *c, const tarn_ident *ident,
                                  const tarn_properties *set, const tarn_properties *remove,
                                  tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_namespace ns;
    bool refused;
    tarn_code code;
    sqlite_lock(self);
    TRY(check_keys(set, err));
    TRY(check_keys(remove, err));
    TRY(sqlite_namespace_of(&arena, ident, &ns, err));
    TRY(sqlite_begin(&self->db, err));
    TRY(sqlite_need_namespace(self, &ns, err));
    for (int32_t i = 0; i < remove->count; i++) {
        const tarn_str args[] = {self->name, ns.text, remove->items[i].key};
        TRY(sqlite_run(&self->db,
                       "DELETE FROM iceberg_namespace_properties WHERE catalog_name=?1 AND "
                       "namespace=?2 AND property_key=?3",
                       3, args, NULL, err));
    }
    TRY(put_properties(self, &ns, set, err));
    code = sqlite_commit(&self->db, &refused, err);
done:
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
    arena_release(&arena);
    return code;
}

tarn_code sqlite_drop_namespace(tarn_catalog *c, const tarn_ident *ident, tarn_error *err) {
    sqlite_catalog *self = (sqlite_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sqlite_namespace ns;
    bool filled = false;
    bool refused;
    tarn_code code;
    sqlite_lock(self);
    TRY(sqlite_namespace_of(&arena, ident, &ns, err));
    TRY(sqlite_begin(&self->db, err));
    TRY(sqlite_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text, ns.low, ns.high};
    TRY(sqlite_has_row(&self->db,
                       "SELECT 1 FROM iceberg_tables WHERE catalog_name=?1 AND "
                       "(table_namespace=?2 OR (table_namespace>=?3 AND table_namespace<?4)) "
                       "UNION ALL SELECT 1 FROM iceberg_namespace_properties WHERE "
                       "catalog_name=?1 AND namespace>=?3 AND namespace<?4 LIMIT 1",
                       4, args, &filled, err));
    if (filled) {
        code = err_set(err, TARN_CONFLICT, "namespace %.*s was not empty", STR_ARG(ns.text));
        goto done;
    }
    TRY(sqlite_run(&self->db,
                   "DELETE FROM iceberg_namespace_properties WHERE catalog_name=?1 AND "
                   "namespace=?2",
                   2, args, NULL, err));
    code = sqlite_commit(&self->db, &refused, err);
done:
    sqlite_rollback(&self->db);
    sqlite_unlock(self);
    arena_release(&arena);
    return code;
}
