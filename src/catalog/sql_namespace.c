/* catalog/sql_namespace.c - namespaces of the SQL catalog. One is there when it has a row of
 * properties (Iceberg's catalogs write exists=true), or when a table or another namespace lies
 * below it.
 *
 * Names are compared by their bytes, case kept; what lies below "ns" is found between "ns." and
 * "ns/". LIKE would take _ and % in names for patterns (B38). */
#include "catalog/catalog_sql_int.h"

#define EXISTS_KEY "exists"

tarn_code sql_namespace_of(tarn_arena *arena, const tarn_ident *ident, sql_namespace *out,
                           tarn_error *err) {
    tarn_buf text;
    tarn_code code = TARN_OK;
    buf_init(&text, arena->env, 0);
    if (ident->n_levels == 0) {
        code = ident->name.len == 0
                   ? err_set(err, TARN_INVALID, "a SQL catalog needs a namespace")
                   : err_set(err, TARN_INVALID,
                             "table %.*s has no namespace, and a SQL catalog needs one: ns.%.*s",
                             STR_ARG(ident->name), STR_ARG(ident->name));
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

static tarn_code namespace_exists(sql_catalog *self, const sql_namespace *ns, bool *out,
                                  tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text, ns->low, ns->high};
    return sql_has_row(
        self->db,
        "SELECT 1 FROM iceberg_tables WHERE catalog_name=$1 AND (table_namespace=$2 OR "
        "(table_namespace{C}>=$3 AND table_namespace{C}<$4)) UNION ALL "
        "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name=$1 AND (namespace=$2 OR "
        "(namespace{C}>=$3 AND namespace{C}<$4)) LIMIT 1",
        4, args, out, err);
}

tarn_code sql_need_namespace(sql_catalog *self, const sql_namespace *ns, tarn_error *err) {
    bool there = false;
    tarn_code code = namespace_exists(self, ns, &there, err);
    if (code == TARN_OK && !there) {
        code = err_set(err, TARN_NOT_FOUND, "namespace %.*s did not exist", STR_ARG(ns->text));
    }
    return code;
}

tarn_code sql_namespace_location(sql_catalog *self, tarn_arena *arena, const sql_namespace *ns,
                                 tarn_str *out, tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text};
    sql_rows rows;
    *out = STR_NULL;
    tarn_code code = sql_query(self->db, arena,
                               "SELECT property_value FROM iceberg_namespace_properties WHERE "
                               "catalog_name=$1 AND namespace=$2 AND property_key='location'",
                               2, args, &rows, err);
    if (code == TARN_OK && rows.n_rows > 0 && sql_value(&rows, 0, 0).len > 0) {
        *out = sql_value(&rows, 0, 0);
    }
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

tarn_code sql_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                              tarn_ident **out, int32_t *n, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    ident_list list = {.arena = arena};
    sql_namespace ns = {STR(""), STR(""), STR("")};
    sql_rows rows;
    bool top = parent->n_levels == 0;
    tarn_code code;
    sql_lock(self);
    if (!top) {
        TRY(sql_namespace_of(arena, parent, &ns, err));
        TRY(sql_need_namespace(self, &ns, err));
    }
    const tarn_str args[] = {self->name, ns.low, ns.high};
    TRY(sql_query(self->db, arena,
                  top ? "SELECT table_namespace FROM iceberg_tables WHERE catalog_name=$1 UNION "
                        "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name=$1"
                      : "SELECT table_namespace FROM iceberg_tables WHERE catalog_name=$1 AND "
                        "table_namespace{C}>=$2 AND table_namespace{C}<$3 UNION "
                        "SELECT namespace FROM iceberg_namespace_properties WHERE "
                        "catalog_name=$1 AND namespace{C}>=$2 AND namespace{C}<$3",
                  top ? 1 : 3, args, &rows, err));
    sql_sort(&rows);
    for (int32_t i = 0; i < rows.n_rows; i++) {
        size_t dot;
        tarn_str rest = str_from(sql_value(&rows, i, 0), ns.low.len);
        TRY(add_level(&list, parent, str_find_char(rest, '.', &dot) ? str_sub(rest, 0, dot) : rest,
                      err));
    }
    *out = list.items;
    *n = list.n;
done:
    sql_unlock(self);
    return code;
}

static tarn_code put_property(sql_catalog *self, const sql_namespace *ns, tarn_str key,
                              tarn_str value, tarn_error *err) {
    const tarn_str args[] = {self->name, ns->text, key, value.data != NULL ? value : STR("")};
    return sql_run(self->db,
                   "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, "
                   "property_key, property_value) VALUES ($1, $2, $3, $4) ON CONFLICT "
                   "(catalog_name, namespace, property_key) DO UPDATE SET "
                   "property_value=excluded.property_value",
                   4, args, NULL, err);
}

static tarn_code put_properties(sql_catalog *self, const sql_namespace *ns,
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

tarn_code sql_create_namespace(tarn_catalog *c, const tarn_ident *ident,
                               const tarn_properties *properties, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sql_namespace ns;
    bool there = false;
    bool refused;
    tarn_code code;
    sql_lock(self);
    TRY(check_keys(properties, err));
    TRY(sql_namespace_of(&arena, ident, &ns, err));
    TRY(sql_begin(self->db, err));
    TRY(namespace_exists(self, &ns, &there, err));
    if (there) {
        code = err_set(err, TARN_CONFLICT, "namespace %.*s already existed", STR_ARG(ns.text));
        goto done;
    }
    TRY(put_properties(self, &ns, properties, err));
    code = sql_commit(self->db, &refused, err);
done:
    sql_rollback(self->db);
    sql_unlock(self);
    arena_release(&arena);
    return code;
}

tarn_code sql_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ident,
                             tarn_properties *out, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    sql_namespace ns;
    sql_rows rows;
    tarn_code code;
    sql_lock(self);
    TRY(sql_namespace_of(arena, ident, &ns, err));
    TRY(sql_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text};
    TRY(sql_query(self->db, arena,
                  "SELECT property_key, property_value FROM iceberg_namespace_properties "
                  "WHERE catalog_name=$1 AND namespace=$2 AND property_key<>'" EXISTS_KEY "'",
                  2, args, &rows, err));
    sql_sort(&rows);
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)rows.n_rows);
    if (items == NULL) {
        code = err_nomem(err);
        goto done;
    }
    for (int32_t i = 0; i < rows.n_rows; i++) {
        tarn_str value = sql_value(&rows, i, 1);
        items[i] = (tarn_property){sql_value(&rows, i, 0), value.data != NULL ? value : STR("")};
    }
    *out = (tarn_properties){rows.n_rows, items};
done:
    sql_unlock(self);
    return code;
}

tarn_code sql_update_namespace(tarn_catalog *c, const tarn_ident *ident, const tarn_properties *set,
                               const tarn_properties *remove, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sql_namespace ns;
    bool refused;
    tarn_code code;
    sql_lock(self);
    TRY(check_keys(set, err));
    TRY(check_keys(remove, err));
    TRY(sql_namespace_of(&arena, ident, &ns, err));
    TRY(sql_begin(self->db, err));
    TRY(sql_need_namespace(self, &ns, err));
    for (int32_t i = 0; i < remove->count; i++) {
        const tarn_str args[] = {self->name, ns.text, remove->items[i].key};
        TRY(sql_run(self->db,
                    "DELETE FROM iceberg_namespace_properties WHERE catalog_name=$1 AND "
                    "namespace=$2 AND property_key=$3",
                    3, args, NULL, err));
    }
    TRY(put_properties(self, &ns, set, err));
    code = sql_commit(self->db, &refused, err);
done:
    sql_rollback(self->db);
    sql_unlock(self);
    arena_release(&arena);
    return code;
}

tarn_code sql_drop_namespace(tarn_catalog *c, const tarn_ident *ident, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    arena_init(&arena, c->env);
    sql_namespace ns;
    bool filled = false;
    bool refused;
    tarn_code code;
    sql_lock(self);
    TRY(sql_namespace_of(&arena, ident, &ns, err));
    TRY(sql_begin(self->db, err));
    TRY(sql_need_namespace(self, &ns, err));
    const tarn_str args[] = {self->name, ns.text, ns.low, ns.high};
    TRY(sql_has_row(self->db,
                    "SELECT 1 FROM iceberg_tables WHERE catalog_name=$1 AND "
                    "(table_namespace=$2 OR (table_namespace{C}>=$3 AND table_namespace{C}<$4)) "
                    "UNION ALL SELECT 1 FROM iceberg_namespace_properties WHERE "
                    "catalog_name=$1 AND namespace{C}>=$3 AND namespace{C}<$4 LIMIT 1",
                    4, args, &filled, err));
    if (filled) {
        code = err_set(err, TARN_CONFLICT, "namespace %.*s was not empty", STR_ARG(ns.text));
        goto done;
    }
    TRY(sql_run(self->db,
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name=$1 AND "
                "namespace=$2",
                2, args, NULL, err));
    code = sql_commit(self->db, &refused, err);
done:
    sql_rollback(self->db);
    sql_unlock(self);
    arena_release(&arena);
    return code;
}
