/* apps/tarn/cmd_names.c - create, ls, rename, drop, register: names and what they stand for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"
#include "json.h"

/* ---- create ---- */

static struct {
    bool ns, if_not_exists;
    const char *partition_by, *sort_by, *identifiers, *location;
    int64_t format_version;
    opt_list properties;
} create_options;

static const opt_spec CREATE_SPECS[] = {
    {"namespace", 0, OPT_FLAG, &create_options.ns, "", "create a namespace instead of a table"},
    {"if-not-exists", 0, OPT_FLAG, &create_options.if_not_exists, "", "no error if it is there"},
    {"partition-by", 0, OPT_TEXT, &create_options.partition_by, "TEXT",
     "\"month(ts), bucket(16, carrier)\"; transforms: identity,\nbucket, truncate, year, month, "
     "day, hour, void"},
    {"sort-by", 0, OPT_TEXT, &create_options.sort_by, "TEXT", "\"ts desc nulls last, id\""},
    {"identifier", 0, OPT_TEXT, &create_options.identifiers, "COLUMNS",
     "identifier fields (required columns), comma separated"},
    {"property", 'p', OPT_LIST, &create_options.properties, "KEY=VALUE",
     "table property; may be given several times"},
    {"format-version", 0, OPT_COUNT, &create_options.format_version, "N", "1, 2 or 3 (default 2)"},
    {"location", 0, OPT_TEXT, &create_options.location, "PATH",
     "where the table goes (default: below the warehouse)"},
};

const opt_command create_command = {
    "create",
    "TABLE SCHEMA | NAMESPACE --namespace",
    "make an empty table, or a namespace",
    "SCHEMA is \"id long not null, name string, tags list<string>\" or Iceberg's schema JSON. "
    "Types: boolean, int, long,\n"
    "float, double, decimal(P,S), date, time, timestamp, timestamptz, string, uuid, fixed(L), "
    "binary, struct<a: int, ...>,\n"
    "list<T>, map<K, V>; with --format-version 3 also timestamp_ns, timestamptz_ns, variant, "
    "unknown.\n"
    "The namespace of a table is made when it is missing.\n\nExample:\n"
    "  tarn create app.events \"id long not null, at timestamptz, kind string\" --partition-by "
    "\"day(at), bucket(8, id)\"",
    1,
    2,
    CREATE_SPECS,
    sizeof CREATE_SPECS / sizeof CREATE_SPECS[0]};

/* Everything before the last dot outside quotes; NULL: none. */
static char *namespace_of(const char *table) {
    const char *last = app_last_dot(table, strlen(table));
    return last != NULL ? strndup(table, (size_t)(last - table)) : NULL;
}

/* Those above it, too: in a catalog of folders each must be there. */
static tarn_code ensure_namespace(tarn_catalog_handle *catalog, const char *table) {
    char *ns = namespace_of(table);
    if (ns == NULL) {
        return TARN_OK;
    }
    tarn_code code = tarn_catalog_create_namespace(catalog, ns, NULL, &the_app.err);
    if (code == TARN_NOT_FOUND) {
        code = ensure_namespace(catalog, ns);
        if (code == TARN_OK) {
            code = tarn_catalog_create_namespace(catalog, ns, NULL, &the_app.err);
        }
    }
    free(ns);
    return code == TARN_CONFLICT ? TARN_OK : code;
}

/* The namespace is made only for a table that nothing else is wrong with. */
tarn_code app_create_table(tarn_catalog_handle *catalog, const char *table,
                           const tarn_create_options *options) {
    tarn_code code = tarn_catalog_create_table(catalog, table, options, &the_app.err);
    if (code != TARN_NOT_FOUND) {
        return code;
    }
    code = ensure_namespace(catalog, table);
    return code == TARN_OK ? tarn_catalog_create_table(catalog, table, options, &the_app.err)
                           : code;
}

void app_print_done(const char *what, const char *name, const char *more) {
    text line = {0};
    if (!the_app.json) {
        return;
    }
    text_add(&line, "{\"%s\":", what);
    text_add_json(&line, name);
    printf("%s%s%s}\n", line.data, more[0] != '\0' ? "," : "", more);
    free(line.data);
}

static tarn_code create_table(tarn_catalog_handle *catalog, const char *name, const char *schema,
                              const char *properties) {
    tarn_create_options o = TARN_CREATE_OPTIONS_INIT;
    bool is_json = schema[strspn(schema, " \n\t")] == '{';
    o.schema_json = is_json ? schema : NULL;
    o.schema_text = is_json ? NULL : schema;
    o.partition_by = create_options.partition_by;
    o.sort_by = create_options.sort_by;
    o.identifiers = create_options.identifiers;
    o.location = create_options.location;
    o.format_version = (int32_t)create_options.format_version;
    o.properties_json = properties;
    return app_create_table(catalog, name, &o);
}

int cmd_create(int argc, char **argv) {
    int n;
    int status;
    tarn_catalog_handle *catalog;
    the_app.makes = true;
    const char **args = command_begin(&create_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (n != (create_options.ns ? 1 : 2)) {
        return app_usage("create takes %s (see tarn create --help)",
                         create_options.ns ? "NAMESPACE with --namespace" : "TABLE and SCHEMA");
    }
    if (create_options.format_version > 3) {
        return app_usage("--format-version takes 1, 2 or 3");
    }
    if (n == 2 && args[1][strspn(args[1], " \n\t")] == '\0') {
        return app_usage("SCHEMA has no column (see tarn create --help)");
    }
    char *properties = app_properties_json(&create_options.properties);
    if (properties == NULL) {
        return TARN_INVALID;
    }
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK && create_options.ns) {
        code = tarn_catalog_create_namespace(catalog, args[0], properties, &the_app.err);
    } else if (code == TARN_OK) {
        code = create_table(catalog, args[0], args[1], properties);
    }
    free(properties);
    bool there = code == TARN_CONFLICT && create_options.if_not_exists;
    if (code != TARN_OK && !there) {
        return app_fail(code);
    }
    app_print_done(create_options.ns ? "namespace" : "table", args[0],
                   there ? "\"created\":false" : "\"created\":true");
    return 0;
}

/* ---- ls ---- */

static struct { bool namespaces; } ls_options;

static const opt_spec LS_SPECS[] = {
    {"namespaces", 'n', OPT_FLAG, &ls_options.namespaces, "", "namespaces instead of tables"},
};

const opt_command ls_command = {
    "ls",
    "[NAMESPACE]",
    "list tables, of all namespaces or below one",
    "One name a line, as other commands take them. With --json one object a line.",
    0,
    1,
    LS_SPECS,
    sizeof LS_SPECS / sizeof LS_SPECS[0]};

static bool needs_quotes(const char *level) {
    return level[strcspn(level, ".`\" /")] != '\0' || *level == '\0';
}

static void add_level(text *t, const char *level) {
    const char *quote = !needs_quotes(level) ? "" : strchr(level, '`') != NULL ? "\"" : "`";
    text_add(t, "%s%s%s%s", t->len > 0 ? "." : "", quote, level, quote);
}

static void print_ident(const json *ident, text *name) {
    name->len = 0;
    for (const json *level = json_at(ident, "namespace")->first; level != NULL;
         level = level->next) {
        add_level(name, level->text);
    }
    if (json_at(ident, "name") != NULL) {
        add_level(name, json_text(ident, "name", ""));
    }
    if (the_app.json) {
        text line = {0};
        text_add(&line, "{\"name\":");
        text_add_json(&line, name->data);
        text_add(&line, ",\"type\":\"%s\"}",
                 json_at(ident, "name") != NULL ? "table" : "namespace");
        printf("%s\n", line.data);
        free(line.data);
    } else {
        printf("%s\n", name->data);
    }
}

static tarn_code list_below(tarn_catalog_handle *catalog, const char *ns);

static tarn_code list_children(tarn_catalog_handle *catalog, const char *ns) {
    char *document = NULL;
    tarn_code code = tarn_catalog_list_namespaces(catalog, ns, &document, &the_app.err);
    json *list = code == TARN_OK ? json_read(document) : NULL;
    text name = {0};
    for (const json *item = list != NULL ? list->first : NULL; item != NULL && code == TARN_OK;
         item = item->next) {
        name.len = 0;
        for (const json *level = json_at(item, "namespace")->first; level != NULL;
             level = level->next) {
            add_level(&name, level->text);
        }
        if (ls_options.namespaces) {
            text shown = {0};
            print_ident(item, &shown);
            free(shown.data);
        }
        code = list_below(catalog, name.data);
    }
    free(name.data);
    json_free(list);
    tarn_text_free(the_app.env, document);
    return code;
}

static tarn_code list_below(tarn_catalog_handle *catalog, const char *ns) {
    char *document = NULL;
    tarn_code code = TARN_OK;
    if (!ls_options.namespaces && ns != NULL) {
        code = tarn_catalog_list_tables(catalog, ns, &document, &the_app.err);
        json *list = code == TARN_OK ? json_read(document) : NULL;
        text name = {0};
        for (const json *item = list != NULL ? list->first : NULL; item != NULL;
             item = item->next) {
            print_ident(item, &name);
        }
        free(name.data);
        json_free(list);
        tarn_text_free(the_app.env, document);
    }
    return code == TARN_OK ? list_children(catalog, ns) : code;
}

int cmd_ls(int argc, char **argv) {
    int n;
    int status;
    tarn_catalog_handle *catalog;
    const char **args = command_begin(&ls_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK) {
        code = list_below(catalog, n > 0 ? args[0] : NULL);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}

/* ---- rename, drop, register ---- */

const opt_command rename_command = {
    "rename",
    "FROM TO",
    "give a table another name",
    "The table's files stay where they are. Folder catalogs (dir:) cannot rename.",
    2,
    2,
    NULL,
    0};

int cmd_rename(int argc, char **argv) {
    int n;
    int status;
    tarn_catalog_handle *catalog;
    const char **args = command_begin(&rename_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK) {
        code = tarn_catalog_rename_table(catalog, args[0], args[1], &the_app.err);
    }
    if (code != TARN_OK) {
        return app_fail(code);
    }
    app_print_done("table", args[1], "");
    return 0;
}

static struct { bool ns, purge, if_exists; } drop_options;

static const opt_spec DROP_SPECS[] = {
    {"purge", 0, OPT_FLAG, &drop_options.purge, "",
     "remove the table's files too; they are gone for good"},
    {"namespace", 0, OPT_FLAG, &drop_options.ns, "", "drop an empty namespace instead of a table"},
    {"if-exists", 0, OPT_FLAG, &drop_options.if_exists, "", "no error if it is not there"},
};

const opt_command drop_command = {
    "drop",
    "TABLE | NAMESPACE --namespace",
    "forget a table, or an empty namespace",
    "Without --purge the files stay, and `tarn register` can bring the table back. (In a folder\n"
    "catalog, dir:, the metadata files are the name: they go, and data files stay.)",
    1,
    1,
    DROP_SPECS,
    sizeof DROP_SPECS / sizeof DROP_SPECS[0]};

int cmd_drop(int argc, char **argv) {
    int n;
    int status;
    tarn_catalog_handle *catalog;
    const char **args = command_begin(&drop_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK && drop_options.ns) {
        code = tarn_catalog_drop_namespace(catalog, args[0], &the_app.err);
    } else if (code == TARN_OK) {
        code = tarn_catalog_drop_table(catalog, args[0], drop_options.purge, &the_app.err);
    }
    bool missing = code == TARN_NOT_FOUND && drop_options.if_exists;
    if (code != TARN_OK && !missing) {
        return app_fail(code);
    }
    app_print_done(drop_options.ns ? "namespace" : "table", args[0],
                   missing ? "\"dropped\":false" : "\"dropped\":true");
    return 0;
}

const opt_command register_command = {
    "register",
    "TABLE METADATA-FILE",
    "make an existing table known under a name",
    "METADATA-FILE is the table's current metadata JSON; nothing is copied.",
    2,
    2,
    NULL,
    0};

int cmd_register(int argc, char **argv) {
    int n;
    int status;
    tarn_catalog_handle *catalog;
    the_app.makes = true;
    const char **args = command_begin(&register_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK && access(args[1], R_OK) != 0 && strchr(args[1], ':') == NULL) {
        code = app_error(errno == EACCES ? TARN_DENIED : TARN_NOT_FOUND,
                         "metadata file %s could not be read: %s", args[1], strerror(errno));
    }
    if (code == TARN_OK) {
        code = ensure_namespace(catalog, args[0]);
    }
    if (code == TARN_OK) {
        code = tarn_catalog_register_table(catalog, args[0], args[1], &the_app.err);
    }
    if (code != TARN_OK) {
        return app_fail(code);
    }
    app_print_done("table", args[0], "");
    return 0;
}
