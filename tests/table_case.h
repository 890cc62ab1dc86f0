/* tests/table_case.h - one table on a catalog and a store of choice, for tests of the rooms that
 * write and read: rows go in and come out as lines of JSON.
 *
 * The store is a memory or file store below a fault wrapper whose plan is open to the test. The
 * catalog is dir or sqlite (its database always lies in a fresh folder). */
#ifndef TARN_TEST_TABLE_CASE_H
#define TARN_TEST_TABLE_CASE_H

#include "tempdir.h"
#include "unit/table/rows.h"

#include "base/map.h"
#include "catalog/catalog.h"
#include "iceberg/manifest.h"

typedef enum case_kind {
    CASE_DIR_MEMORY,
    CASE_DIR_FILE,
    CASE_SQLITE_MEMORY,
    CASE_SQLITE_FILE
} case_kind;
#define CASE_KINDS 4

typedef struct table_case {
    tarn_env *env;
    case_kind kind;
    char folder[64];
    char warehouse[96];
    store_fault_plan plan;
    tarn_catalog *catalog;
    tarn_arena arena; /* for the case's life */
    tarn_ident ident; /* ns.t */
} table_case;

static inline bool case_is_sqlite(case_kind kind) {
    return kind == CASE_SQLITE_MEMORY || kind == CASE_SQLITE_FILE;
}
static inline bool case_is_file(case_kind kind) {
    return kind == CASE_DIR_FILE || kind == CASE_SQLITE_FILE;
}

/* The catalog, on the folder that is there. */
static inline tarn_code case_connect(table_case *c, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_store *inner = NULL;
    tarn_store *store = NULL;
    char db[128];
    if (case_is_file(c->kind)) {
        TRY(store_file_new(c->env, false, &inner, err));
    } else {
        TRY(store_memory_new(c->env, &inner, err));
    }
    TRY(store_fault_new(inner, &c->plan, &store, err));
    inner = NULL;
    if (case_is_sqlite(c->kind)) {
        (void)snprintf(db, sizeof db, "%s/catalog.db", c->folder);
        TRY(catalog_sqlite_new(c->env, store, str_of(db), STR("tarn"), str_of(c->warehouse),
                               &c->catalog, err));
    } else {
        TRY(catalog_dir_new(c->env, store, str_of(c->warehouse), &c->catalog, err));
    }
    store = NULL;
done:
    store_close(inner);
    store_close(store);
    return code;
}

/* A catalog with the namespace ns, and no table. */
static inline void case_open(table_case *c, tarn_env *env, case_kind kind) {
    static const tarn_str level = {"ns", 2};
    tarn_error err = TARN_ERROR_INIT;
    memset(c, 0, sizeof *c);
    c->env = env;
    c->kind = kind;
    c->ident = (tarn_ident){1, &level, STR("t")};
    tarn_ident ns = {1, &level, STR_NULL};
    arena_init(&c->arena, env);
    test_tempdir(c->folder);
    (void)snprintf(c->warehouse, sizeof c->warehouse, "%s/warehouse", c->folder);
    assert_ok(case_connect(c, &err));
    assert_ok(catalog_create_namespace(c->catalog, &ns, NULL, &err));
}

static inline void case_done(table_case *c) {
    catalog_close(c->catalog);
    arena_release(&c->arena);
    test_tempdir_done(c->folder);
}

/* A table ns.t. properties: NULL, or key, value, key, value, ..., NULL. */
static inline tarn_code case_create(table_case *c, int32_t format_version, const char *schema,
                                    const char *partition_by, const char *const *properties,
                                    tarn_error *err) {
    tarn_code code = TARN_OK;
    metadata_new_options options;
    tarn_property items[16];
    memset(&options, 0, sizeof options);
    options.format_version = format_version;
    options.partition_by = str_of(partition_by);
    for (; properties != NULL && properties[2 * options.properties.count] != NULL;
         options.properties.count++) {
        items[options.properties.count].key = str_of(properties[2 * options.properties.count]);
        items[options.properties.count].value =
            str_of(properties[2 * options.properties.count + 1]);
    }
    options.properties.items = items;
    char text[512];
    (void)snprintf(text, sizeof text, "struct<%s>", schema);
    TRY(type_from_text(&c->arena, str_of(text), &options.root, err));
    TRY(catalog_create(c->catalog, &c->ident, &options, NULL, err));
done:
    return code;
}

static inline void case_table(table_case *c, int32_t format_version, const char *schema,
                              const char *partition_by, const char *const *properties) {
    tarn_error err = TARN_ERROR_INIT;
    assert_ok(case_create(c, format_version, schema, partition_by, properties, &err));
}

static inline tarn_table_version *case_load(table_case *c) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_table_version *version = NULL;
    assert_ok(catalog_load(c->catalog, &c->ident, &version, &err));
    return version;
}

/* ---- what lies in the store against what the table names ---- */

typedef struct case_files {
    tarn_arena arena;
    tarn_map named; /* paths the table names */
    tarn_map found; /* paths in the store below the table's location */
} case_files;

static inline void case_name(case_files *files, tarn_str path) {
    assert_non_null(map_put(&files->named, arena_str(&files->arena, path), NULL));
}

static inline void case_name_snapshot(table_case *c, case_files *files, const tarn_metadata *m,
                                      const tarn_snapshot *s) {
    tarn_error err = TARN_ERROR_INIT;
    io_source *source = NULL;
    const tarn_manifest *manifests;
    int32_t n = 0;
    case_name(files, s->manifest_list);
    assert_ok(store_open(c->catalog->store, s->manifest_list, -1, &source, &err));
    assert_ok(manifest_list_read(&files->arena, source, &manifests, &n, &err));
    source->close(source);
    for (int32_t i = 0; i < n; i++) {
        manifest_read_options options = {0};
        manifest_entries entries;
        case_name(files, manifests[i].path);
        assert_ok(
            store_open(c->catalog->store, manifests[i].path, manifests[i].length, &source, &err));
        assert_ok(manifest_read(&files->arena, source, m, &manifests[i], &options, &entries, &err));
        source->close(source);
        for (int64_t j = 0; j < entries.count; j++) {
            case_name(files, entries.items[j].file.path);
        }
    }
}

static inline tarn_code case_find(void *ctx, tarn_str path, const store_stat_info *info,
                                  tarn_error *err) {
    case_files *files = ctx;
    (void)info;
    return map_put(&files->found, arena_str(&files->arena, path), NULL) != NULL ? TARN_OK
                                                                                : err_nomem(err);
}

static inline void case_files_init(table_case *c, case_files *files) {
    arena_init(&files->arena, c->env);
    map_init(&files->named, &files->arena);
    map_init(&files->found, &files->arena);
}

static inline bool case_is_hint(tarn_str path) {
    return str_ends_with(path, STR("version-hint.text"));
}

/* Everything the table names is there; what else lies there is counted (and the first of it
 * named). */
static inline int case_count_orphans(table_case *c, char first[256]) {
    tarn_error err = TARN_ERROR_INIT;
    case_files files;
    tarn_table_version *version = case_load(c);
    const tarn_metadata *m = version->metadata;
    case_files_init(c, &files);
    case_name(&files, version->metadata_location);
    for (int32_t i = 0; i < m->n_metadata_log; i++) {
        case_name(&files, m->metadata_log[i].metadata_file);
    }
    for (int32_t i = 0; i < m->n_snapshots; i++) {
        case_name_snapshot(c, &files, m, m->snapshots[i]);
    }
    assert_ok(store_list(c->catalog->store, m->location, case_find, &files, &err));
    for (size_t i = 0; i < files.named.count; i++) {
        if (map_find(&files.found, files.named.entries[i].key) == NULL) {
            fail_msg("the table names %.*s, which is not there",
                     STR_ARG(files.named.entries[i].key));
        }
    }
    int orphans = 0;
    for (size_t i = 0; i < files.found.count; i++) {
        tarn_str path = files.found.entries[i].key;
        if (map_find(&files.named, path) == NULL && !case_is_hint(path) && orphans++ == 0) {
            (void)snprintf(first, 256, "%.*s", STR_ARG(path));
        }
    }
    arena_release(&files.arena);
    table_version_release(version);
    return orphans;
}

static inline void case_check_files(table_case *c, int orphans_allowed) {
    char first[256] = "";
    int orphans = case_count_orphans(c, first);
    if (orphans > orphans_allowed) {
        fail_msg("%d orphans where %d were allowed, such as %s", orphans, orphans_allowed, first);
    }
}

#endif
