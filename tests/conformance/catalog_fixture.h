/* tests/conformance/catalog_fixture.h - the catalogs that the conformance suite runs on, each with
 * a folder of its own, and short forms of what its cases do. */
#ifndef TARN_TEST_CATALOG_FIXTURE_H
#define TARN_TEST_CATALOG_FIXTURE_H

#include "fail_alloc.h"
#include "tempdir.h"

#include "catalog/catalog.h"

typedef enum kind_of { DIR_CATALOG, SQLITE_CATALOG, POSTGRES_CATALOG, REST_CATALOG } kind_of;

typedef struct kind {
    const char *name;
    kind_of of;
    bool
        named; /* tables have names of their own: they can be renamed, namespaces have properties */
    bool in_memory;
    const char *where; /* environment: its address; NULL: none is needed */
} kind;

static const kind KINDS[] = {
    {"dir-file", DIR_CATALOG, false, false, NULL},
    {"dir-memory", DIR_CATALOG, false, true, NULL},
    {"sqlite-file", SQLITE_CATALOG, true, false, NULL},
    {"sqlite-memory", SQLITE_CATALOG, true, true, NULL},
    {"postgres-file", POSTGRES_CATALOG, true, false, "TARN_TEST_POSTGRES"},
    {"postgres-memory", POSTGRES_CATALOG, true, true, "TARN_TEST_POSTGRES"},
    {"rest", REST_CATALOG, true, false, "TARN_TEST_REST"},
};

typedef struct fixture {
    const kind *kind;
    tarn_env *env;
    tarn_arena arena;
    char folder[64];
    char warehouse[256];
    tarn_store *inner; /* below the fault store; the catalog's */
    store_fault_plan plan;
    tarn_catalog *catalog;
} fixture;

static tarn_error err = TARN_ERROR_INIT;

/* On success the catalog owns its store. */
static tarn_code try_open(fixture *f, tarn_env *env, store_fault_plan *plan, tarn_store **inner,
                          tarn_catalog **out) {
    tarn_store *store = NULL;
    tarn_store *faulty = NULL;
    tarn_str where = str_of(f->kind->where != NULL ? getenv(f->kind->where) : "");
    tarn_str warehouse = str_of(f->warehouse);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/catalog.db", f->folder);
    tarn_code code = f->kind->in_memory ? store_memory_new(env, &store, &err)
                                        : store_file_new(env, false, &store, &err);
    if (code == TARN_OK) {
        *inner = store;
        code = store_fault_new(store, plan, &faulty, &err);
        store = code == TARN_OK ? faulty : store;
    }
    if (code == TARN_OK) {
        switch (f->kind->of) {
        case SQLITE_CATALOG:
            code = catalog_sqlite_new(env, store, str_of(path), STR("c"), warehouse, out, &err);
            break;
        case POSTGRES_CATALOG: /* one database for all: each case has a catalog name of its own */
            code = catalog_postgres_new(env, store, where, str_of(f->folder), warehouse, out, &err);
            break;
        case REST_CATALOG:
            code = catalog_rest_new(env, store, where, &(tarn_properties){0}, out, &err);
            break;
        case DIR_CATALOG:
            code = catalog_dir_new(env, store, warehouse, out, &err);
            break;
        }
    }
    if (code != TARN_OK) {
        store_close(store);
    }
    return code;
}

static tarn_catalog *open_catalog(fixture *f, store_fault_plan *plan, tarn_store **inner) {
    tarn_catalog *catalog = NULL;
    assert_ok(try_open(f, f->env, plan, inner, &catalog));
    return catalog;
}

static void set_up(fixture *f, const kind *k) {
    memset(f, 0, sizeof *f);
    f->kind = k;
    f->env = test_env();
    arena_init(&f->arena, f->env);
    test_tempdir(f->folder);
    (void)snprintf(f->warehouse, sizeof f->warehouse, "%s/warehouse", f->folder);
    if (k->of == REST_CATALOG) { /* the server's own */
        const char *place = getenv("TARN_TEST_REST_WAREHOUSE");
        assert_non_null(place);
        (void)snprintf(f->warehouse, sizeof f->warehouse, "%s", place);
    }
    f->catalog = open_catalog(f, &f->plan, &f->inner);
}

/* One server for all cases: each leaves it as it found it. */
static void wipe_namespace(fixture *f, const tarn_ident *ns) {
    tarn_ident *found = NULL;
    int32_t n = 0;
    assert_ok(catalog_list_tables(f->catalog, &f->arena, ns, &found, &n, &err));
    for (int32_t i = 0; i < n; i++) {
        assert_ok(catalog_drop(f->catalog, &found[i], &err));
    }
    assert_ok(catalog_list_namespaces(f->catalog, &f->arena, ns, &found, &n, &err));
    for (int32_t i = 0; i < n; i++) {
        wipe_namespace(f, &found[i]);
    }
    if (ns->n_levels > 0) {
        tarn_code code = catalog_drop_namespace(f->catalog, ns, &err);
        assert_true(code == TARN_OK || code == TARN_NOT_FOUND); /* it may go with its tables */
    }
}

static void tear_down(fixture *f) {
    if (f->kind->of == REST_CATALOG) {
        tarn_ident all = {0};
        wipe_namespace(f, &all);
    }
    catalog_close(f->catalog);
    arena_release(&f->arena);
    test_tempdir_done(f->folder);
    test_env_done(f->env);
}

static tarn_ident ident(fixture *f, const char *text) {
    tarn_ident out;
    assert_ok(ident_parse(&f->arena, str_of(text), false, &out, &err));
    return out;
}

static tarn_ident ns_ident(fixture *f, const char *text) {
    tarn_ident out;
    assert_ok(ident_parse(&f->arena, str_of(text), true, &out, &err));
    return out;
}

static void make_ns(fixture *f, const char *text) {
    tarn_ident ns = ns_ident(f, text);
    assert_ok(catalog_create_namespace(f->catalog, &ns, NULL, &err));
}

static metadata_new_options table_options(fixture *f) {
    metadata_new_options options = {0};
    assert_ok(
        type_from_text(&f->arena, STR("struct<id: long, name: string>"), &options.root, &err));
    return options;
}

static tarn_code create_in(tarn_catalog *c, fixture *f, const char *name,
                           tarn_table_version **out) {
    metadata_new_options options = table_options(f);
    tarn_ident table = ident(f, name);
    return catalog_create(c, &table, &options, out, &err);
}

static tarn_table_version *load(tarn_catalog *c, fixture *f, const char *name) {
    tarn_table_version *v = NULL;
    tarn_ident table = ident(f, name);
    assert_ok(catalog_load(c, &table, &v, &err));
    return v;
}

static tarn_str property(const tarn_table_version *v, const char *key) {
    return properties_str(&v->metadata->properties, key, "");
}

/* A change set of one property, and room for it. */
typedef struct property_set {
    tarn_property pair;
    tarn_change change;
    tarn_requirement requirement;
    tarn_change_set set;
} property_set;

static const tarn_change_set *set_property(property_set *p, const tarn_table_version *base,
                                           const char *key, const char *value) {
    p->pair = (tarn_property){str_of(key), str_of(value)};
    p->change = (tarn_change){.kind = CHANGE_SET_PROPERTIES, .properties = {1, &p->pair}};
    p->requirement = (tarn_requirement){REQUIRE_UUID, base->metadata->table_uuid, 0};
    p->set = (tarn_change_set){1, &p->requirement, 1, &p->change};
    return &p->set;
}

static tarn_code commit_property(tarn_catalog *c, const tarn_ident *table, tarn_table_version *base,
                                 const char *key, const char *value, tarn_outcome_kind *outcome,
                                 tarn_table_version **out, tarn_error *error) {
    property_set p;
    return catalog_commit(c, table, base, set_property(&p, base, key, value), outcome, out, error);
}

static int count_tables(fixture *f, const char *ns_text) {
    tarn_ident ns = ns_ident(f, ns_text);
    tarn_ident *tables = NULL;
    int32_t n = -1;
    assert_ok(catalog_list_tables(f->catalog, &f->arena, &ns, &tables, &n, &err));
    return n;
}

static void expect_namespaces(fixture *f, const char *parent, const char *want) {
    tarn_ident ns = ns_ident(f, parent);
    tarn_ident *found = NULL;
    int32_t n = 0;
    tarn_buf text;
    buf_init(&text, f->env, 0);
    assert_ok(catalog_list_namespaces(f->catalog, &f->arena, &ns, &found, &n, &err));
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(found[i].n_levels, ns.n_levels + 1);
        assert_ok(ident_text(&found[i], &text, &err));
        assert_ok(buf_append_char(&text, ' ', &err));
    }
    assert_ok(buf_append_char(&text, 0, &err));
    assert_string_equal((const char *)text.data, want);
    buf_release(&text);
}

#endif
