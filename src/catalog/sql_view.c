/* catalog/sql_view.c - views in a SQL catalog: rows of iceberg_type VIEW in the tables of schema
 * V1, whose documents are named and packed as Iceberg's JdbcCatalog does it. A pointer moves as
 * that of a table does (sql_many.c). */
#include "base/limits.h"
#include "catalog/catalog_sql_int.h"
#include "format/codec.h"
#include "iceberg/location.h"

static tarn_code need_type(const sql_catalog *self, tarn_error *err) {
    return self->has_type
               ? TARN_OK
               : err_set(err, TARN_UNSUPPORTED,
                         "%s has the tables of schema V0, which hold no views", self->db->label);
}

tarn_code sql_list_views(tarn_catalog *c, tarn_arena *arena, const tarn_ident *ns, tarn_ident **out,
                         int32_t *n, tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_code code = need_type(self, err);
    return code != TARN_OK ? code : sql_list(self, arena, SQL_VIEW, ns, out, n, err);
}

tarn_code sql_load_view(tarn_catalog *c, const tarn_ident *view, catalog_view **out,
                        tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    sql_key key;
    tarn_str location;
    tarn_code code;
    arena_init(&arena, c->env);
    TRY(need_type(self, err));
    TRY(sql_key_of(&arena, SQL_VIEW, view, &key, err));
    sql_lock(self);
    code = sql_read_pointer(self, &arena, &key, &location, err);
    sql_unlock(self);
    if (code != TARN_OK) {
        goto done;
    }
    code = catalog_read_view(c->env, c->store, location, out, err);
    if (code == TARN_NOT_FOUND) { /* the view is there: that it cannot be read is damage */
        code = err_set(err, TARN_CORRUPT, "view %s named %.*s, which did not exist", key.label,
                       STR_ARG(location));
    }
done:
    arena_release(&arena);
    return code;
}

tarn_code sql_rename_view(tarn_catalog *c, const tarn_ident *from, const tarn_ident *to,
                          tarn_error *err) {
    tarn_code code = need_type((sql_catalog *)c, err);
    return code != TARN_OK ? code : sql_rename_kind((sql_catalog *)c, SQL_VIEW, from, to, err);
}

tarn_code sql_drop_view(tarn_catalog *c, const tarn_ident *view, tarn_error *err) {
    tarn_code code = need_type((sql_catalog *)c, err);
    return code != TARN_OK ? code : sql_drop_kind((sql_catalog *)c, SQL_VIEW, view, STR_NULL, err);
}

tarn_code sql_register_view(tarn_catalog *c, const tarn_ident *view, tarn_str metadata_location,
                            tarn_error *err) {
    sql_catalog *self = (sql_catalog *)c;
    tarn_arena arena;
    catalog_view *there = NULL;
    sql_key key;
    tarn_code code;
    arena_init(&arena, c->env);
    TRY(need_type(self, err));
    TRY(sql_key_of(&arena, SQL_VIEW, view, &key, err));
    TRY(catalog_read_view(c->env, c->store, metadata_location, &there, err));
    code = sql_register_row(self, &key, metadata_location, err);
done:
    catalog_view_release(there);
    arena_release(&arena);
    return code;
}

/* ---- commit ---- */

typedef struct view_work {
    sql_catalog *self;
    tarn_arena arena;
    tarn_buf json, packed;
    sql_move move;
    catalog_view *made; /* parsed back from what is written */
} view_work;

/* Views are packed unless their property says otherwise, as Iceberg does. */
static bool wants_gzip(const view_metadata *m) {
    return str_eq_nocase(properties_str(&m->properties, "write.metadata.compression-codec", "gzip"),
                         STR("gzip"));
}

static tarn_code pack(view_work *w, tarn_error *err) {
    codec_ctx ctx;
    codec_ctx_init(&ctx, w->self->base.env);
    tarn_code code =
        codec_compress(&ctx, CODEC_GZIP, CODEC_LEVEL_DEFAULT, buf_str(&w->json), &w->packed, err);
    codec_ctx_release(&ctx);
    return code;
}

static tarn_code build(view_work *w, const catalog_view *base, const view_change_set *set,
                       tarn_error *err) {
    tarn_env *env = w->self->base.env;
    const view_metadata *m = NULL;
    tarn_code code;
    TRY(view_apply(&w->arena, base != NULL ? base->metadata : NULL, set, env_now_ms(env), &m, err));
    TRY(view_write(m, &w->json, err));
    bool gzip = wants_gzip(m);
    if (gzip) {
        TRY(pack(w, err));
    }
    w->move.from = base != NULL ? base->metadata_location : STR_NULL;
    const char *name = sql_document_name(w->self, &w->arena, w->move.from, gzip);
    if (name == NULL) {
        TRY(err_nomem(err));
    }
    const tarn_metadata place = {.location = m->location, .properties = m->properties};
    TRY(location_metadata_file(&w->arena, &place, str_of(name), &w->move.to, err));
    TRY(catalog_view_new(env, buf_str(&w->json), w->move.to, &w->made, err));
done:
    return code;
}

/* Before a document is written: would the swap fail now already? */
static tarn_code check_free(view_work *w, const catalog_view *base, tarn_error *err) {
    sql_catalog *self = w->self;
    tarn_str now;
    tarn_code code = TARN_OK;
    if (base != NULL) {
        return TARN_OK;
    }
    sql_lock(self);
    TRY(sql_need_namespace(self, &w->move.key.ns, err));
    for (int kind = SQL_TABLE; kind <= SQL_VIEW && code == TARN_OK; kind++) {
        sql_key key = w->move.key;
        key.kind = (sql_kind)kind;
        code = sql_read_pointer(self, &w->arena, &key, &now, err);
        if (code == TARN_OK) {
            code = err_set(err, TARN_CONFLICT, "%s %s already existed", sql_kind_name(key.kind),
                           key.label);
        } else if (code == TARN_NOT_FOUND) {
            err_reset(err);
            code = TARN_OK;
        }
    }
done:
    sql_unlock(self);
    return code;
}

static tarn_code send_document(view_work *w, tarn_error *err) {
    tarn_store *store = w->self->base.store;
    tarn_outcome_kind outcome = TARN_NOT_COMMITTED;
    tarn_code code = store_put(store, w->move.to, STORE_CREATE,
                               buf_str(w->packed.len > 0 ? &w->packed : &w->json), err);
    bool ours = code != TARN_CONFLICT;
    if (code == TARN_OK) {
        code = sql_move_all(w->self, &w->move, 1, &outcome, err);
    }
    if (outcome == TARN_NOT_COMMITTED && ours) {
        store_discard(store, w->move.to);
    }
    return code;
}

tarn_code sql_commit_view(tarn_catalog *c, const tarn_ident *view, const catalog_view *base,
                          const view_change_set *set, catalog_view **out, tarn_error *err) {
    view_work w = {.self = (sql_catalog *)c};
    tarn_code code;
    arena_init(&w.arena, c->env);
    buf_init(&w.json, c->env, LIMIT_METADATA_JSON_BYTES);
    buf_init(&w.packed, c->env, LIMIT_METADATA_JSON_BYTES);
    TRY(need_type(w.self, err));
    TRY(sql_key_of(&w.arena, SQL_VIEW, view, &w.move.key, err));
    TRY(check_free(&w, base, err));
    TRY(build(&w, base, set, err));
    TRY(send_document(&w, err));
    env_log(c->env, TARN_LOG_INFO, "catalog", "commit", "view=%s metadata=%.*s", w.move.key.label,
            STR_ARG(w.move.to));
    if (out != NULL) {
        *out = w.made;
        w.made = NULL;
    }
done:
    catalog_view_release(w.made);
    buf_release(&w.packed);
    buf_release(&w.json);
    arena_release(&w.arena);
    return code;
}
