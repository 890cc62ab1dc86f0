/* catalog/catalog_view.c - the face of every catalog for views and for commits of several tables:
 * names are checked here, and catalogs without the one or the other say so by name. */
#include "base/limits.h"
#include "catalog/catalog_int.h"

void catalog_view_release(catalog_view *v) {
    if (v != NULL) {
        tarn_env *env = v->arena.env;
        arena_release(&v->arena);
        env_free(env, v);
    }
}

tarn_code catalog_view_new(tarn_env *env, tarn_str bytes, tarn_str location, catalog_view **out,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    catalog_view *v = env_calloc(env, 1, sizeof *v);
    if (v == NULL) {
        return err_nomem(err);
    }
    arena_init(&v->arena, env);
    v->metadata_location = arena_str(&v->arena, location);
    if (v->metadata_location.data == NULL) {
        TRY(err_nomem(err));
    }
    TRY(view_parse(&v->arena, bytes, v->metadata_location.data, &v->metadata, err));
    *out = v;
    v = NULL;
done:
    catalog_view_release(v);
    return code;
}

tarn_code catalog_read_view(tarn_env *env, tarn_store *store, tarn_str metadata_location,
                            catalog_view **out, tarn_error *err) {
    tarn_buf bytes;
    tarn_code code;
    buf_init(&bytes, env, LIMIT_METADATA_JSON_BYTES);
    TRY(store_get(store, metadata_location, LIMIT_METADATA_JSON_BYTES, &bytes, err));
    TRY(catalog_view_new(env, buf_str(&bytes), metadata_location, out, err));
done:
    buf_release(&bytes);
    return code;
}

bool catalog_has_views(const tarn_catalog *c) {
    return c->vt->load_view != NULL;
}

static tarn_code check_view(const tarn_catalog *c, const tarn_ident *view, tarn_error *err) {
    if (!catalog_has_views(c)) {
        return err_set(err, TARN_UNSUPPORTED, "a %s catalog has no views", c->vt->name);
    }
    return ident_check_table(view, err);
}

tarn_code catalog_list_views(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                             tarn_ident **out, int32_t *n, tarn_error *err) {
    if (!catalog_has_views(c)) {
        return err_set(err, TARN_UNSUPPORTED, "a %s catalog has no views", c->vt->name);
    }
    tarn_code code = ident_check_namespace(ns, err);
    return code != TARN_OK ? code : c->vt->list_views(c, arena, ns, out, n, err);
}

tarn_code catalog_load_view(tarn_catalog *c, const tarn_ident *view, catalog_view **out,
                            tarn_error *err) {
    tarn_code code = check_view(c, view, err);
    return code != TARN_OK ? code : c->vt->load_view(c, view, out, err);
}

tarn_code catalog_commit_view(tarn_catalog *c, const tarn_ident *view, const catalog_view *base,
                              const view_change_set *set, catalog_view **out, tarn_error *err) {
    tarn_code code = check_view(c, view, err);
    return code != TARN_OK ? code : c->vt->commit_view(c, view, base, set, out, err);
}

tarn_code catalog_register_view(tarn_catalog *c, const tarn_ident *view, tarn_str metadata_location,
                                tarn_error *err) {
    tarn_code code = check_view(c, view, err);
    return code != TARN_OK ? code : c->vt->register_view(c, view, metadata_location, err);
}

tarn_code catalog_rename_view(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                              tarn_error *err) {
    tarn_code code = check_view(c, from, err);
    if (code == TARN_OK) {
        code = ident_check_table(to, err);
    }
    return code != TARN_OK ? code : c->vt->rename_view(c, from, to, err);
}

tarn_code catalog_drop_view(tarn_catalog *c, const tarn_ident *view, tarn_error *err) {
    tarn_code code = check_view(c, view, err);
    return code != TARN_OK ? code : c->vt->drop_view(c, view, err);
}

tarn_code catalog_unregister(tarn_catalog *c, const tarn_ident *table,
                             const tarn_table_version *version, tarn_error *err) {
    if (c->vt->unregister_table == NULL) {
        return err_set(err, TARN_UNSUPPORTED, "a %s catalog cannot let go of a table's files",
                       c->vt->name);
    }
    tarn_code code = ident_check_table(table, err);
    return code != TARN_OK ? code : c->vt->unregister_table(c, table, version, err);
}

tarn_code catalog_drop_version(tarn_catalog *c, const tarn_ident *table,
                               const tarn_table_version *version, tarn_error *err) {
    tarn_code code = ident_check_table(table, err);
    return code != TARN_OK                   ? code
           : c->vt->unregister_table != NULL ? c->vt->unregister_table(c, table, version, err)
                                             : c->vt->drop_version(c, table, version, err);
}

bool catalog_drop_took(const tarn_catalog *c, tarn_str document) {
    int64_t number;
    return c->vt->numbers && folder_parse_version(folder_file_name(document), &number);
}

static bool same_table(const tarn_ident *a, const tarn_ident *b) {
    bool same = a->n_levels == b->n_levels && str_eq(a->name, b->name);
    for (int32_t i = 0; same && i < a->n_levels; i++) {
        same = str_eq(a->levels[i], b->levels[i]);
    }
    return same;
}

tarn_code catalog_commit_many(tarn_catalog *c, const catalog_table_commit *commits, int32_t n,
                              tarn_outcome_kind *outcome, tarn_error *err) {
    *outcome = TARN_NOT_COMMITTED;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < i; j++) {
            if (same_table(&commits[i].table, &commits[j].table)) {
                return err_set(err, TARN_INVALID, "table %.*s was in one commit twice",
                               STR_ARG(commits[i].table.name));
            }
        }
        tarn_code code = ident_check_table(&commits[i].table, err);
        if (code != TARN_OK) {
            return code;
        }
    }
    if (n == 1) {
        return catalog_commit(c, &commits[0].table, commits[0].base, &commits[0].set, outcome, NULL,
                              err);
    }
    if (c->vt->commit_many == NULL) {
        return err_set(err, TARN_UNSUPPORTED, "a %s catalog commits one table at a time",
                       c->vt->name);
    }
    tarn_code code = c->vt->commit_many(c, commits, n, outcome, err);
    tarn_assert((code == TARN_OK) == (*outcome == TARN_COMMITTED));
    tarn_assert((code == TARN_COMMIT_UNKNOWN) == (*outcome == TARN_OUTCOME_UNKNOWN));
    return code;
}
