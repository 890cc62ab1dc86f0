/* api/api_catalog.c - include/tarn/catalog.h over the catalog room. */
#include "api/handles.h"

#include "api/api_outcome.h"
#include "dml/purge.h"
#include "store/store_path.h"

tarn_catalog_handle *handle_keep(tarn_catalog_handle *catalog) {
    __atomic_add_fetch(&catalog->refs, 1, __ATOMIC_RELAXED);
    return catalog;
}

void handle_release(tarn_catalog_handle *catalog) {
    if (catalog == NULL || __atomic_sub_fetch(&catalog->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    catalog_close(catalog->catalog);
    env_free(catalog->env, catalog);
}

tarn_code tarn_catalog_set_wait(tarn_catalog_handle *catalog, const tarn_catalog_wait *wait,
                                tarn_error *err) {
    API_ERROR(err);
    if (wait == NULL) {
        return catalog_set_patience(catalog->catalog, NULL, err);
    }
    const catalog_patience patience = {wait->timeout_ms, wait->ask, wait->ctx};
    return catalog_set_patience(catalog->catalog, &patience, err);
}

void tarn_catalog_close(tarn_catalog_handle *catalog) {
    handle_release(catalog);
}

static tarn_code open_store(tarn_env *env, const tarn_catalog_options *options, tarn_store **out,
                            tarn_error *err) {
    tarn_store *store = NULL;
    tarn_code code = store_file_new(env, !options->no_sync, &store, err);
    if (code == TARN_OK && options->moved_from != NULL && options->moved_to != NULL) {
        tarn_store *moved = NULL;
        code = store_moved_new(store, str_of(options->moved_from), str_of(options->moved_to),
                               &moved, err);
        if (code == TARN_OK) {
            store = moved;
        }
    }
    if (code == TARN_OK) {
        *out = store;
    } else {
        store_close(store);
    }
    return code;
}

/* The folder for new tables: as said, else "warehouse" beside the database. */
static tarn_code find_warehouse(tarn_arena *arena, const tarn_catalog_options *options, tarn_str db,
                                tarn_str *out, tarn_error *err) {
    size_t slash;
    if (options->warehouse != NULL) {
        return store_absolute(arena, str_of(options->warehouse), out, err);
    }
    tarn_str folder = str_find_last_char(db, '/', &slash) ? str_sub(db, 0, slash) : STR(".");
    return store_absolute(arena, str_of(store_join(arena, folder, STR("warehouse"))), out, err);
}

static bool is_postgres(tarn_str uri) {
    return str_starts_with(uri, STR("postgresql:")) || str_starts_with(uri, STR("postgres:")) ||
           str_starts_with(uri, STR("postgresql+")) || str_starts_with(uri, STR("postgres+"));
}

/* Without a warehouse only tables that say their place can be made. */
static tarn_code open_postgres(tarn_env *env, tarn_arena *arena, tarn_str uri,
                               const tarn_catalog_options *options, tarn_store *store,
                               tarn_catalog **out, tarn_error *err) {
    tarn_str warehouse = STR("");
    tarn_code code = TARN_OK;
    if (options->warehouse != NULL) {
        TRY(store_absolute(arena, str_of(options->warehouse), &warehouse, err));
    }
    code = catalog_postgres_new(env, store, uri,
                                str_of(options->name != NULL ? options->name : "tarn"), warehouse,
                                out, err);
done:
    return code;
}

static tarn_code open_rest(tarn_env *env, tarn_arena *arena, tarn_str uri,
                           const tarn_catalog_options *options, tarn_store *store,
                           tarn_catalog **out, tarn_error *err) {
    bool known = options->struct_size >=
                 offsetof(tarn_catalog_options, properties_json) + sizeof options->properties_json;
    tarn_properties given;
    tarn_code code;
    TRY(api_properties(arena, known ? options->properties_json : NULL, "catalog properties", &given,
                       err));
    tarn_property *items = ARENA_ARRAY(arena, tarn_property, (size_t)given.count + 1);
    if (items == NULL) {
        TRY(err_nomem(err));
    }
    int32_t n = 0;
    for (int32_t i = 0; i < given.count; i++) {
        if (options->warehouse == NULL || !str_is(given.items[i].key, "warehouse")) {
            items[n++] = given.items[i];
        }
    }
    if (options->warehouse != NULL) {
        items[n++] = (tarn_property){STR("warehouse"), str_of(options->warehouse)};
    }
    code = catalog_rest_new(env, store, uri, &(tarn_properties){n, items}, out, err);
done:
    return code;
}

static tarn_code open_kind(tarn_env *env, tarn_arena *arena, tarn_str uri,
                           const tarn_catalog_options *options, tarn_store *store,
                           tarn_catalog **out, tarn_error *err) {
    tarn_str path;
    tarn_str warehouse;
    tarn_code code = TARN_OK;
    if (str_starts_with(uri, STR("sqlite:"))) {
        TRY(store_absolute(arena, str_from(uri, 7), &path, err));
        TRY(find_warehouse(arena, options, path, &warehouse, err));
        code = catalog_sqlite_new(env, store, path,
                                  str_of(options->name != NULL ? options->name : "tarn"), warehouse,
                                  out, err);
    } else if (str_starts_with(uri, STR("dir:"))) {
        TRY(store_absolute(arena, str_from(uri, 4), &path, err));
        code = catalog_dir_new(env, store, path, out, err);
    } else if (is_postgres(uri)) {
        code = open_postgres(env, arena, uri, options, store, out, err);
    } else if (str_starts_with(uri, STR("http://")) || str_starts_with(uri, STR("https://"))) {
        code = open_rest(env, arena, uri, options, store, out, err);
    } else { /* it may hold a password */
        size_t colon;
        bool scheme = str_find_char(uri, ':', &colon);
        code =
            err_set(err, TARN_INVALID,
                    "\"%.*s%s\" is no catalog; known are sqlite:PATH, dir:PATH, postgresql://..., "
                    "http://... and https://...",
                    STR_ARG(scheme ? str_sub(uri, 0, colon) : uri), scheme ? ":..." : "");
    }
done:
    return code;
}

tarn_code tarn_catalog_open(tarn_env *env, const char *uri, const tarn_catalog_options *options,
                            tarn_catalog_handle **out, tarn_error *err) {
    API_ERROR(err);
    tarn_catalog_options defaults = TARN_CATALOG_OPTIONS_INIT;
    const tarn_catalog_options *o = options != NULL ? options : &defaults;
    tarn_code code = TARN_OK;
    tarn_store *store = NULL;
    tarn_arena arena;
    tarn_catalog_handle *handle = env_calloc(env, 1, sizeof *handle);
    if (handle == NULL) {
        return err_nomem(err);
    }
    arena_init(&arena, env);
    handle->env = env;
    handle->refs = 1;
    TRY(open_store(env, o, &store, err));
    TRY(open_kind(env, &arena, str_of(uri), o, store, &handle->catalog, err));
    store = NULL;
    *out = handle;
    handle = NULL;
done:
    store_close(store);
    arena_release(&arena);
    env_free(env, handle);
    return code;
}

static void put_levels(json_writer *w, const tarn_ident *ident) {
    json_put_name(w, STR("namespace"));
    json_put_array(w);
    for (int32_t i = 0; i < ident->n_levels; i++) {
        json_put_string(w, ident->levels[i]);
    }
    json_end_array(w);
}

static tarn_code give_idents(tarn_env *env, const tarn_ident *items, int32_t n, bool tables,
                             char **out, tarn_error *err) {
    tarn_buf text;
    json_writer w;
    buf_init(&text, env, 0);
    json_begin(&w, &text, false, err);
    json_put_array(&w);
    for (int32_t i = 0; i < n; i++) {
        json_put_object(&w);
        put_levels(&w, &items[i]);
        if (tables) {
            json_member_str(&w, "name", items[i].name);
        }
        json_end_object(&w);
    }
    json_end_array(&w);
    tarn_code code = json_end(&w);
    if (code != TARN_OK) {
        buf_release(&text);
        return code;
    }
    return api_give_text(env, &text, out, err);
}

static tarn_code parse_namespace(tarn_arena *arena, const char *text, tarn_ident *out,
                                 tarn_error *err) {
    memset(out, 0, sizeof *out);
    return text != NULL && text[0] != '\0' ? ident_parse(arena, str_of(text), true, out, err)
                                           : TARN_OK;
}

tarn_code tarn_catalog_list_namespaces(tarn_catalog_handle *catalog, const char *parent,
                                       char **json_out, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_ident *items;
    int32_t n;
    arena_init(&arena, catalog->env);
    TRY(parse_namespace(&arena, parent, &ident, err));
    TRY(catalog_list_namespaces(catalog->catalog, &arena, &ident, &items, &n, err));
    TRY(give_idents(catalog->env, items, n, false, json_out, err));
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_list_tables(tarn_catalog_handle *catalog, const char *ns, char **json_out,
                                   tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_ident *items;
    int32_t n;
    arena_init(&arena, catalog->env);
    TRY(parse_namespace(&arena, ns, &ident, err));
    TRY(catalog_list_tables(catalog->catalog, &arena, &ident, &items, &n, err));
    TRY(give_idents(catalog->env, items, n, true, json_out, err));
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_load_namespace(tarn_catalog_handle *catalog, const char *ns, char **json_out,
                                      tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_properties properties;
    tarn_buf text;
    json_writer w;
    arena_init(&arena, catalog->env);
    buf_init(&text, catalog->env, 0);
    TRY(parse_namespace(&arena, ns, &ident, err));
    TRY(catalog_load_namespace(catalog->catalog, &arena, &ident, &properties, err));
    json_begin(&w, &text, false, err);
    json_put_object(&w);
    put_levels(&w, &ident);
    json_put_name(&w, STR("properties"));
    json_put_object(&w);
    for (int32_t i = 0; i < properties.count; i++) {
        json_put_name(&w, properties.items[i].key);
        json_put_string(&w, properties.items[i].value);
    }
    json_end_object(&w);
    json_end_object(&w);
    TRY(json_end(&w));
    TRY(api_give_text(catalog->env, &text, json_out, err));
done:
    buf_release(&text);
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_create_namespace(tarn_catalog_handle *catalog, const char *ns,
                                        const char *properties_json, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_properties properties;
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(ns), true, &ident, err));
    TRY(api_properties(&arena, properties_json, "properties", &properties, err));
    TRY(catalog_create_namespace(catalog->catalog, &ident, &properties, err));
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_drop_namespace(tarn_catalog_handle *catalog, const char *ns,
                                      tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(ns), true, &ident, err));
    TRY(catalog_drop_namespace(catalog->catalog, &ident, err));
done:
    arena_release(&arena);
    return code;
}

/* The schema however it was given. */
static tarn_code read_schema(tarn_arena *arena, const tarn_create_options *options,
                             metadata_new_options *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    json_value *json;
    const tarn_schema *schema;
    if (options->schema_json != NULL) {
        TRY(api_json(arena, options->schema_json, "schema", &json, err));
        TRY(api_blame_caller(schema_from_json(arena, json, &schema, err), err));
        out->root = schema->root;
    } else if (options->schema_text != NULL) {
        TRY(type_columns_from_text(arena, str_of(options->schema_text), &out->root, err));
    } else if (options->schema_arrow != NULL) {
        TRY(type_from_arrow(arena, options->schema_arrow, &out->root, err));
    } else {
        code = err_set(err, TARN_INVALID, "a table needs a schema");
    }
done:
    return code;
}

tarn_code tarn_catalog_create_table(tarn_catalog_handle *catalog, const char *table,
                                    const tarn_create_options *options, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    metadata_new_options o;
    tarn_table_version *version = NULL;
    memset(&o, 0, sizeof o);
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(table), false, &ident, err));
    TRY(read_schema(&arena, options, &o, err));
    TRY(api_properties(&arena, options->properties_json, "properties", &o.properties, err));
    TRY(api_names(&arena, options->identifiers, &o.identifier_names, &o.n_identifier_names, err));
    o.format_version = options->format_version;
    o.partition_by = str_of(options->partition_by);
    o.sort_by = str_of(options->sort_by);
    if (options->location != NULL) {
        TRY(store_absolute(&arena, str_of(options->location), &o.location, err));
    }
    TRY(catalog_create(catalog->catalog, &ident, &o, &version, err));
done:
    table_version_release(version);
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_register_table(tarn_catalog_handle *catalog, const char *table,
                                      const char *metadata_location, tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_str location;
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(table), false, &ident, err));
    TRY(store_absolute(&arena, str_of(metadata_location), &location, err));
    TRY(catalog_register(catalog->catalog, &ident, location, err));
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_catalog_rename_table(tarn_catalog_handle *catalog, const char *from, const char *to,
                                    tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident a;
    tarn_ident b;
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(from), false, &a, err));
    TRY(ident_parse(&arena, str_of(to), false, &b, err));
    TRY(catalog_rename(catalog->catalog, &a, &b, err));
done:
    arena_release(&arena);
    return code;
}

tarn_code tarn_table_take_back(tarn_table *table, tarn_error *err) {
    API_ERROR(err);
    bool gone;
    tarn_code code = api_check_writable(table, err);
    return code != TARN_OK ? code
                           : purge_take_back(table->env, table->catalog->catalog, &table->ident,
                                             table->version->metadata->table_uuid, &gone, err);
}

tarn_code tarn_catalog_drop_table(tarn_catalog_handle *catalog, const char *table, bool purge,
                                  tarn_error *err) {
    API_ERROR(err);
    tarn_code code = TARN_OK;
    tarn_arena arena;
    tarn_ident ident;
    tarn_table_version *version = NULL;
    arena_init(&arena, catalog->env);
    TRY(ident_parse(&arena, str_of(table), false, &ident, err));
    code = purge_drop(catalog->catalog, &ident, &version, err);
    if (code != TARN_OK && code != TARN_NOT_FOUND && code != TARN_CONFLICT && !purge) {
        err_reset(err); /* what cannot be read can be forgotten */
        code = catalog_drop(catalog->catalog, &ident, err);
    }
    TRY(code);
    if (purge) {
        TRY(purge_table(catalog->env, catalog->catalog, version, NULL, err));
    }
done:
    table_version_release(version);
    arena_release(&arena);
    return code;
}
