/* api/api_table.c - include/tarn/table.h but for edits (api_alter.c). */
#include "api/api_outcome.h"
#include "api/handles.h"
#include "store/store_path.h"

static tarn_code new_table(tarn_env *env, tarn_table **out, tarn_error *err) {
    tarn_table *table = env_calloc(env, 1, sizeof *table);
    if (table == NULL) {
        return err_nomem(err);
    }
    table->env = env;
    arena_init(&table->arena, env);
    *out = table;
    return TARN_OK;
}

tarn_code tarn_table_load(tarn_catalog_handle *catalog, const char *name, tarn_table **out,
                          tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_table *table = NULL;
    TRY(new_table(catalog->env, &table, err));
    table->catalog = handle_keep(catalog);
    tarn_str text = arena_str(&table->arena, str_of(name));
    if (text.data == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(ident_parse(&table->arena, text, false, &table->ident, err));
    TRY(catalog_load(catalog->catalog, &table->ident, &table->version, err));
    *out = table;
    table = NULL;
done:
    tarn_table_free(table);
    return code;
}

tarn_code tarn_table_open_path(tarn_env *env, const char *path, const tarn_catalog_options *options,
                               tarn_table **out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    tarn_store *moved = NULL;
    tarn_table *table = NULL;
    tarn_str absolute;
    TRY(new_table(env, &table, err));
    table->read_only = true;
    table->ident.name = STR("table");
    TRY(store_absolute(&table->arena, str_of(path), &absolute, err));
    TRY(store_for_location(env, absolute, &store, err));
    if (options != NULL && options->moved_from != NULL && options->moved_to != NULL) {
        TRY(store_moved_new(store, str_of(options->moved_from), str_of(options->moved_to), &moved,
                            err));
        store = moved;
    }
    table->catalog = env_calloc(env, 1, sizeof *table->catalog);
    if (table->catalog == NULL) {
        code = err_nomem(err);
        goto done;
    }
    table->catalog->env = env;
    table->catalog->refs = 1;
    code = catalog_path_new(env, store, absolute, &table->catalog->catalog, err);
    if (code != TARN_OK) {
        env_free(env, table->catalog);
        table->catalog = NULL;
        goto done;
    }
    store = NULL;
    TRY(catalog_load(table->catalog->catalog, &table->ident, &table->version, err));
    *out = table;
    table = NULL;
done:
    store_close(store);
    tarn_table_free(table);
    return code;
}

void tarn_table_free(tarn_table *table) {
    if (table == NULL) {
        return;
    }
    table_version_release(table->version);
    handle_release(table->catalog);
    arena_release(&table->arena);
    env_free(table->env, table);
}

tarn_code api_about_table(const tarn_table *table, tarn_code code, tarn_error *err) {
    tarn_buf name;
    if ((code != TARN_INVALID && code != TARN_NOT_FOUND) || table->ident.name.len == 0) {
        return code;
    }
    buf_init(&name, table->env, 0);
    if (ident_text(&table->ident, &name, NULL) == TARN_OK) {
        (void)err_add(err, code, "table %.*s", STR_ARG(buf_str(&name)));
    }
    buf_release(&name);
    return code;
}

tarn_code tarn_table_refresh(tarn_table *table, tarn_error *err) {
    API_ERROR(err);
    tarn_table_version *version;
    tarn_code code = catalog_load(table->catalog->catalog, &table->ident, &version, err);
    if (code == TARN_OK) {
        api_take_version(table, version);
    }
    return code;
}

void api_take_version(tarn_table *table, tarn_table_version *version) {
    if (version != NULL) {
        table_version_release(table->version);
        table->version = version;
    }
}

tarn_code tarn_table_metadata_json(tarn_table *table, char **json_out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_buf text;
    tarn_buf whole;
    json_writer w;
    buf_init(&text, table->env, 0);
    buf_init(&whole, table->env, 0);
    TRY(metadata_write(table->version->metadata, &text, err));
    tarn_str body = str_trim(buf_str(&text));
    tarn_assert(body.len >= 2 && body.data[0] == '{');
    /* the document with one more member in front */
    json_begin(&w, &whole, false, err);
    json_put_string(&w, table->version->metadata_location);
    TRY(json_end(&w));
    tarn_buf joined;
    buf_init(&joined, table->env, 0);
    code = buf_printf(&joined, err, "{\"metadata-location\":");
    if (code == TARN_OK) {
        code = buf_append(&joined, whole.data, whole.len, err);
    }
    if (code == TARN_OK) {
        code = buf_append_char(&joined, ',', err);
    }
    if (code == TARN_OK) {
        code = buf_append_str(&joined, str_from(body, 1), err);
    }
    if (code == TARN_OK) {
        code = api_give_text(table->env, &joined, json_out, err);
    } else {
        buf_release(&joined);
    }
done:
    buf_release(&text);
    buf_release(&whole);
    return code;
}

tarn_code tarn_table_schema_arrow(tarn_table *table, struct ArrowSchema *out, tarn_error *err) {
    API_ERROR(err);
    return type_to_arrow(table->env, metadata_schema(table->version->metadata)->root, out, err);
}

tarn_code api_check_writable(const tarn_table *table, tarn_error *err) {
    return table->read_only ? err_set(err, TARN_UNSUPPORTED,
                                      "table %.*s was opened by path; changes go through a catalog",
                                      STR_ARG(table->version->metadata_location))
                            : TARN_OK;
}

void api_fill_outcome(tarn_outcome *out, const commit_outcome *from) {
    out->state = from->kind == TARN_COMMITTED         ? TARN_COMMIT_DONE
                 : from->kind == TARN_OUTCOME_UNKNOWN ? TARN_COMMIT_MAYBE
                                                      : TARN_COMMIT_NONE;
    out->snapshot_id = from->snapshot_id;
    out->attempts = from->attempts;
}

void api_reset_outcome(tarn_outcome *out) {
    uint32_t size = out->struct_size;
    memset(out, 0, sizeof *out);
    out->struct_size = size;
    out->snapshot_id = -1;
}
