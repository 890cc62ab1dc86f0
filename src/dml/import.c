/* dml/import.c - the import: list, look at every file, then make and commit. */
#include "dml/import.h"

#include "base/map.h"
#include "base/pool.h"
#include "dml/import_int.h"
#include "dml/purge.h"
#include "read/scan.h"

/* Files looked at side by side before their entries are put together. */
#define FILES_AT_ONCE 128

/* ---- what the table has already ---- */

typedef struct known_files {
    tarn_arena arena;
    tarn_map paths; /* digests */
} known_files;

static tarn_str spelled(tarn_str path) {
    tarn_str local;
    return store_local_path(path, &local) ? local : path;
}

static tarn_code read_known(tarn_env *env, tarn_store *store, const tarn_metadata *m,
                            known_files *known, tarn_error *err) {
    const scan_options options = {.metadata = m, .snapshot_id = TARN_NO_SNAPSHOT, .limit = -1};
    tarn_plan *plan = NULL;
    tarn_code code = TARN_OK;
    arena_init(&known->arena, env);
    map_init(&known->paths, &known->arena);
    TRY(plan_new(env, store, &options, &plan, err));
    for (int64_t i = 0; i < plan->n_tasks; i++) {
        uint8_t *digest = arena_alloc(&known->arena, 16);
        if (digest == NULL) {
            code = err_nomem(err);
            goto done;
        }
        str_digest(spelled(plan->tasks[i].file.path), digest);
        if (map_put(&known->paths, str_make(digest, 16), NULL) == NULL) {
            code = err_nomem(err);
            goto done;
        }
    }
done:
    plan_free(plan);
    return code;
}

static bool is_known(const known_files *known, tarn_str path) {
    uint8_t digest[16];
    str_digest(spelled(path), digest);
    return map_find(&known->paths, str_make(digest, sizeof digest)) != NULL;
}

/* Refuses files that the table has, or leaves them out. */
static tarn_code sort_out(importer *im, import_result *out, tarn_error *err) {
    known_files known;
    int64_t kept = 0;
    tarn_code code = TARN_OK;
    memset(&known, 0, sizeof known);
    TRY(read_known(im->env, im->catalog->store, im->m, &known, err));
    for (int64_t i = 0; i < im->n_files; i++) {
        if (!is_known(&known, im->files[i].path)) {
            im->files[kept++] = im->files[i];
        } else if (im->options->skip_existing) {
            out->skipped++;
        } else {
            TRY(err_set(err, TARN_CONFLICT, "%.*s is in the table already",
                        STR_ARG(im->files[i].path)));
        }
    }
    im->n_files = kept;
done:
    arena_release(&known.arena);
    return code;
}

/* Somebody may have added the same files since they were looked at. */
static tarn_code check_base(void *ctx, const tarn_metadata *base, tarn_error *err) {
    importer *im = ctx;
    known_files known;
    tarn_code code = TARN_OK;
    memset(&known, 0, sizeof known);
    if (base->current_snapshot_id == im->m->current_snapshot_id) {
        return TARN_OK;
    }
    TRY(read_known(im->env, im->catalog->store, base, &known, err));
    for (int64_t i = 0; i < im->n_entries; i++) {
        if (is_known(&known, im->entries[i].path)) {
            TRY(err_set(err, TARN_CONFLICT, "%.*s was added to the table by somebody else",
                        STR_ARG(im->entries[i].path)));
        }
    }
done:
    arena_release(&known.arena);
    return code;
}

/* ---- the table ---- */

static tarn_code find_mapping(importer *im, tarn_error *err) {
    tarn_str text;
    json_value *json = NULL;
    tarn_code code = TARN_OK;
    if (properties_get(&im->m->properties, NAME_MAPPING_PROPERTY, &text)) {
        code = json_parse(&im->arena, text, NAME_MAPPING_PROPERTY, &json, err);
    } else {
        im->set_mapping = true;
        code = import_mapping(&im->arena, metadata_schema(im->m)->root, &json, err);
    }
    im->mapping = json;
    return code;
}

static tarn_code mapping_text(importer *im, tarn_property *out, tarn_error *err) {
    tarn_buf text;
    json_writer w;
    buf_init(&text, im->env, 0);
    json_begin(&w, &text, false, err);
    json_put_value(&w, im->mapping);
    tarn_code code = json_end(&w);
    out->key = STR(NAME_MAPPING_PROPERTY);
    out->value = code == TARN_OK ? arena_str(&im->arena, buf_str(&text)) : STR("");
    buf_release(&text);
    return code == TARN_OK && out->value.data == NULL ? err_nomem(err) : code;
}

/* What the table would be: the ids that the mapping names are those that creating it gives. */
static tarn_code plan_table(importer *im, tarn_error *err) {
    tarn_code code = TARN_OK;
    const tarn_properties *given = &im->options->properties;
    tarn_property *items = ARENA_ARRAY(&im->arena, tarn_property, (size_t)given->count + 1);
    if (items == NULL) {
        return err_nomem(err);
    }
    TRY(import_schema(im, err));
    im->make.properties = *given;
    im->make.location = STR("unmade");
    TRY(metadata_new(&im->arena, &im->make, &im->m, err));
    im->make.location = STR("");
    TRY(find_mapping(im, err));
    if (im->set_mapping) {
        for (int32_t i = 0; i < given->count; i++) {
            items[i] = given->items[i];
        }
        TRY(mapping_text(im, &items[given->count], err));
        im->make.properties = (tarn_properties){given->count + 1, items};
        im->set_mapping = false;
    }
done:
    return code;
}

static tarn_code load_table(importer *im, tarn_error *err) {
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code = catalog_load(im->catalog, im->ident, &im->version, &why);
    if (code == TARN_NOT_FOUND && im->options->create) {
        return plan_table(im, err);
    }
    if (code != TARN_OK) {
        *err = why;
        return code;
    }
    im->m = im->version->metadata;
    return find_mapping(im, err);
}

/* ---- the files ---- */

typedef struct look_work {
    importer *im;
    int64_t first;
    tarn_arena *arenas;
    tarn_file *files;
} look_work;

static tarn_code look_at(void *ctx, size_t i, tarn_error *err) {
    look_work *w = ctx;
    tarn_code code = env_check_cancel(w->im->env, err);
    return code == TARN_OK ? import_entry(w->im, &w->arenas[i],
                                          &w->im->files[w->first + (int64_t)i], &w->files[i], err)
                           : code;
}

static tarn_code look_at_some(importer *im, int64_t first, size_t n, import_result *out,
                              tarn_error *err) {
    tarn_arena arenas[FILES_AT_ONCE];
    tarn_file files[FILES_AT_ONCE];
    look_work work = {im, first, arenas, files};
    for (size_t i = 0; i < n; i++) {
        arena_init(&arenas[i], im->env);
    }
    tarn_code code = pool_for(im->env, n, look_at, &work, err);
    for (size_t i = 0; i < n && code == TARN_OK; i++) {
        code = file_copy(&im->arena, &files[i], &im->entries[im->n_entries], err);
        if (code == TARN_OK) {
            im->n_entries++;
            out->rows += files[i].record_count;
            out->bytes += files[i].size_bytes;
        }
    }
    for (size_t i = 0; i < n; i++) {
        arena_release(&arenas[i]);
    }
    return code;
}

static tarn_code look_at_all(importer *im, import_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    im->entries = ARENA_ARRAY(&im->arena, tarn_file, (size_t)im->n_files + 1);
    if (im->entries == NULL) {
        return err_nomem(err);
    }
    for (int64_t at = 0; at < im->n_files && code == TARN_OK; at += FILES_AT_ONCE) {
        const int64_t left = im->n_files - at;
        code =
            look_at_some(im, at, (size_t)(left < FILES_AT_ONCE ? left : FILES_AT_ONCE), out, err);
        if (im->options->progress != NULL) {
            im->options->progress(im->options->ctx, im->n_entries, im->n_files);
        }
    }
    out->files = im->n_entries;
    return code;
}

/* ---- the commit ---- */

static tarn_code make_mapping(void *ctx, tarn_arena *arena, const tarn_metadata *base,
                              tarn_change_set *out, tarn_error *err) {
    importer *im = ctx;
    tarn_property *property = ARENA_NEW(arena, tarn_property);
    tarn_change *change = ARENA_NEW(arena, tarn_change);
    tarn_requirement *requirement = ARENA_NEW(arena, tarn_requirement);
    if (property == NULL || change == NULL || requirement == NULL) {
        return err_nomem(err);
    }
    tarn_code code = mapping_text(im, property, err);
    requirement->kind = REQUIRE_CURRENT_SCHEMA_ID;
    requirement->number = base->current_schema_id;
    change->kind = CHANGE_SET_PROPERTIES;
    change->properties = (tarn_properties){1, property};
    *out = (tarn_change_set){1, requirement, 1, change};
    return code != TARN_OK || base->current_schema_id == im->m->current_schema_id
               ? code
               : err_set(err, TARN_CONFLICT, "the table's schema was changed by somebody else");
}

static tarn_code make_namespace(importer *im, tarn_error *err) {
    const tarn_ident ns = {im->ident->n_levels, im->ident->levels, STR("")};
    const tarn_properties none = {0, NULL};
    tarn_error why = TARN_ERROR_INIT;
    tarn_code code =
        ns.n_levels > 0 ? catalog_create_namespace(im->catalog, &ns, &none, &why) : TARN_OK;
    if (code != TARN_OK && code != TARN_CONFLICT) {
        *err = why;
        return code;
    }
    return TARN_OK;
}

/* A table that was made for the files, and got none, goes again: the corrected command makes it
 * anew. It stays where somebody put rows into it meanwhile. Cleaning up is not cancelled. */
static void take_back_table(importer *im, import_result *out, bool cancelled) {
    bool gone;
    tarn_error why = TARN_ERROR_INIT;
    if (cancelled) {
        tarn_env_cancel_reset(im->env);
    }
    if (purge_take_back(im->env, im->catalog, im->ident, im->version->metadata->table_uuid, &gone,
                        &why) != TARN_OK) {
        err_reset(&why); /* what is left of it is in nobody's way */
    }
    out->created = !gone;
    if (cancelled) {
        tarn_env_cancel(im->env);
    }
}

static tarn_code commit_files(importer *im, import_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    commit_outcome mapped = {0};
    commit_request request = {
        .kind = im->options->merge ? COMMIT_MERGE_APPEND : COMMIT_FAST_APPEND,
        .added = im->entries,
        .n_added = (int32_t)im->n_entries,
        .from_snapshot_id = im->m->current_snapshot_id,
        .check = check_base,
        .check_ctx = im,
        .check_each = true,
    };
    if (im->version == NULL) {
        TRY(make_namespace(im, err));
        TRY(catalog_create(im->catalog, im->ident, &im->make, &im->version, err));
        out->created = true;
    } else if (im->set_mapping) {
        TRY(commit_changes(im->env, im->catalog, im->ident, make_mapping, im, &mapped, err));
    }
    TRY(commit_run(im->env, im->catalog, im->ident, NULL, &request, &out->outcome, err));
done:
    if (out->created && code != TARN_OK && out->outcome.kind != TARN_OUTCOME_UNKNOWN) {
        take_back_table(im, out, code == TARN_CANCELLED);
    }
    table_version_release(mapped.version);
    return code;
}

tarn_code dml_import(tarn_env *env, tarn_catalog *catalog, const tarn_ident *table,
                     const import_options *options, import_result *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    importer im = {.env = env, .catalog = catalog, .ident = table, .options = options};
    memset(out, 0, sizeof *out);
    out->outcome.snapshot_id = TARN_NO_SNAPSHOT;
    arena_init(&im.arena, env);
    TRY(import_list(&im, err));
    TRY(load_table(&im, err));
    if (im.version != NULL) {
        TRY(sort_out(&im, out, err));
    }
    TRY(look_at_all(&im, out, err));
    if (!options->dry_run && im.n_entries > 0) {
        TRY(commit_files(&im, out, err));
    }
done:
    table_version_release(im.version);
    arena_release(&im.arena);
    return code;
}
