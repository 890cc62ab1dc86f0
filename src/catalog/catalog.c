/* catalog/catalog.c - the face of every catalog: names are checked once here, loaded versions are
 * read here, and a commit's three answers are held to their error codes here.
 *
 * Invariants of a commit:
 * 1. outcome COMMITTED if and only if the code is OK; UNKNOWN if and only if COMMIT_UNKNOWN.
 * 2. NOT_COMMITTED is said only when the pointer was not sent, or was refused, or was seen not to
 *    have moved; everything else that fails is UNKNOWN, and then nothing is deleted. */
#include "base/limits.h"
#include "catalog/catalog_int.h"

tarn_code catalog_read_version(tarn_env *env, tarn_store *store, tarn_str metadata_location,
                               tarn_table_version **out, tarn_error *err) {
    tarn_buf bytes;
    tarn_table_version *v = NULL;
    tarn_code code;
    buf_init(&bytes, env, LIMIT_METADATA_JSON_BYTES);
    TRY(store_get(store, metadata_location, LIMIT_METADATA_JSON_BYTES, &bytes, err));
    v = table_version_new(env);
    if (v == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(table_version_name(v, metadata_location, buf_str(&bytes), err));
    TRY(metadata_parse(&v->arena, buf_str(&bytes), v->metadata_location.data, &v->metadata, err));
    *out = v;
    v = NULL;
done:
    table_version_release(v);
    buf_release(&bytes);
    return code;
}

tarn_code catalog_list_namespaces(tarn_catalog *c, tarn_arena *arena, const tarn_ident *parent,
                                  tarn_ident **out, int32_t *n, tarn_error *err) {
    tarn_code code = ident_check_namespace(parent, err);
    return code != TARN_OK ? code : c->vt->list_namespaces(c, arena, parent, out, n, err);
}

static tarn_code check_one_namespace(const tarn_ident *ns, tarn_error *err) {
    if (ns->n_levels == 0) {
        return err_set(err, TARN_INVALID, "a namespace's name was empty");
    }
    return ident_check_namespace(ns, err);
}

tarn_code catalog_create_namespace(tarn_catalog *c, const tarn_ident *ns,
                                   const tarn_properties *properties, tarn_error *err) {
    static const tarn_properties NONE = {0, NULL};
    tarn_code code = check_one_namespace(ns, err);
    return code != TARN_OK
               ? code
               : c->vt->create_namespace(c, ns, properties != NULL ? properties : &NONE, err);
}

tarn_code catalog_load_namespace(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                                 tarn_properties *out, tarn_error *err) {
    tarn_code code = check_one_namespace(ns, err);
    return code != TARN_OK ? code : c->vt->load_namespace(c, arena, ns, out, err);
}

tarn_code catalog_update_namespace(tarn_catalog *c, const tarn_ident *ns,
                                   const tarn_properties *set, const tarn_properties *remove,
                                   tarn_error *err) {
    static const tarn_properties NONE = {0, NULL};
    tarn_code code = check_one_namespace(ns, err);
    return code != TARN_OK ? code
                           : c->vt->update_namespace(c, ns, set != NULL ? set : &NONE,
                                                     remove != NULL ? remove : &NONE, err);
}

tarn_code catalog_drop_namespace(tarn_catalog *c, const tarn_ident *ns, tarn_error *err) {
    tarn_code code = check_one_namespace(ns, err);
    return code != TARN_OK ? code : c->vt->drop_namespace(c, ns, err);
}

tarn_code catalog_list_tables(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns,
                              tarn_ident **out, int32_t *n, tarn_error *err) {
    tarn_code code = ident_check_namespace(ns, err);
    return code != TARN_OK ? code : c->vt->list_tables(c, arena, ns, out, n, err);
}

tarn_code catalog_load(tarn_catalog *c, const tarn_ident *table, tarn_table_version **out,
                       tarn_error *err) {
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    catalog_outage outage = {0};
    tarn_code code = ident_check_table(table, e);
    if (code != TARN_OK) {
        return code;
    }
    do {
        err_reset(e);
        code = c->vt->load(c, table, out, e);
    } while (code != TARN_OK && catalog_wait(c, &outage, e));
    catalog_wait_end(c, &outage, code == TARN_OK || !err_is_away(e));
    return code;
}

static bool requires_create(const tarn_change_set *set) {
    for (int32_t i = 0; i < set->n_requirements; i++) {
        if (set->requirements[i].kind == REQUIRE_CREATE) {
            return true;
        }
    }
    return false;
}

tarn_code catalog_commit(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                         const tarn_change_set *set, tarn_outcome_kind *outcome,
                         tarn_table_version **out, tarn_error *err) {
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    catalog_outage outage = {0};
    *outcome = TARN_NOT_COMMITTED;
    tarn_code code = ident_check_table(table, e);
    if (code != TARN_OK) {
        return code;
    }
    if (base == NULL && !requires_create(set)) {
        return err_set(e, TARN_INVALID,
                       "a commit without a base must require that the table %.*s "
                       "does not exist",
                       STR_ARG(table->name));
    }
    do { /* what may have been sent is settled there */
        err_reset(e);
        code = c->vt->commit(c, table, base, set, outcome, out, e);
    } while (code != TARN_OK && *outcome == TARN_NOT_COMMITTED && catalog_wait(c, &outage, e));
    catalog_wait_end(c, &outage, code == TARN_OK || !err_is_away(e));
    tarn_assert((code == TARN_OK) == (*outcome == TARN_COMMITTED));
    tarn_assert((code == TARN_COMMIT_UNKNOWN) == (*outcome == TARN_OUTCOME_UNKNOWN));
    return code;
}

bool catalog_offers_files(tarn_catalog *c) {
    return c->vt->commit_files != NULL && c->vt->offers_files(c);
}

tarn_code catalog_commit_files(tarn_catalog *c, const tarn_ident *table, tarn_str body,
                               tarn_outcome_kind *outcome, int64_t *snapshot_id, tarn_error *err) {
    *outcome = TARN_NOT_COMMITTED;
    tarn_error local = TARN_ERROR_INIT;
    tarn_error *e = err != NULL ? err : &local;
    catalog_outage outage = {0};
    *snapshot_id = TARN_NO_SNAPSHOT;
    tarn_code code = ident_check_table(table, e);
    if (code != TARN_OK) {
        return code;
    }
    do {
        err_reset(e);
        code = c->vt->commit_files(c, table, body, outcome, snapshot_id, e);
    } while (code != TARN_OK && *outcome == TARN_NOT_COMMITTED && catalog_wait(c, &outage, e));
    catalog_wait_end(c, &outage, code == TARN_OK || !err_is_away(e));
    tarn_assert((code == TARN_OK) == (*outcome == TARN_COMMITTED));
    tarn_assert((code == TARN_COMMIT_UNKNOWN) == (*outcome == TARN_OUTCOME_UNKNOWN));
    return code;
}

tarn_code catalog_register(tarn_catalog *c, const tarn_ident *table, tarn_str metadata_location,
                           tarn_error *err) {
    tarn_code code = ident_check_table(table, err);
    return code != TARN_OK ? code : c->vt->register_table(c, table, metadata_location, err);
}

tarn_code catalog_rename(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                         tarn_error *err) {
    tarn_code code = ident_check_table(from, err);
    if (code == TARN_OK) {
        code = ident_check_table(to, err);
    }
    return code != TARN_OK ? code : c->vt->rename_table(c, from, to, err);
}

tarn_code catalog_drop(tarn_catalog *c, const tarn_ident *table, tarn_error *err) {
    tarn_code code = ident_check_table(table, err);
    return code != TARN_OK ? code : c->vt->drop_table(c, table, err);
}

tarn_code catalog_default_location(tarn_catalog *c, tarn_arena *arena, const tarn_ident *table,
                                   tarn_str *out, tarn_error *err) {
    tarn_code code = ident_check_table(table, err);
    return code != TARN_OK ? code : c->vt->default_location(c, arena, table, out, err);
}

bool catalog_keeps_ids(const tarn_catalog *c) {
    return c->vt->create_table == NULL;
}

tarn_code catalog_create(tarn_catalog *c, const tarn_ident *table,
                         const metadata_new_options *options, tarn_table_version **out,
                         tarn_error *err) {
    tarn_arena arena;
    arena_init(&arena, c->env);
    metadata_new_options filled = *options;
    const tarn_metadata *m = NULL;
    tarn_change_set set = {0};
    tarn_outcome_kind outcome;
    tarn_code code;
    TRY(ident_check_table(table, err));
    if (c->vt->create_table != NULL) {
        code = c->vt->create_table(c, table, options, out, err);
        goto done;
    }
    if (filled.location.len == 0) {
        TRY(c->vt->default_location(c, &arena, table, &filled.location, err));
    }
    TRY(metadata_new(&arena, &filled, &m, err));
    TRY(change_set_create(&arena, m, &set, err));
    code = catalog_commit(c, table, NULL, &set, &outcome, out, err);
done:
    arena_release(&arena);
    return code;
}

void catalog_close(tarn_catalog *c) {
    if (c != NULL) {
        catalog_waiting_free(c);
        c->vt->close(c);
    }
}
