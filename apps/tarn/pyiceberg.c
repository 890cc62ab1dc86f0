/* apps/tarn/pyiceberg.c - catalogs by the names that PyIceberg's configuration gives them.
 *
 *   catalog:
 *     NAME:
 *       uri: sqlite:////path/to.db
 *       warehouse: file:///path
 *       token: of a REST catalog, as credential, scope, header.NAME and more */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "app.h"

static yaml_node_t *member(yaml_document_t *document, yaml_node_t *map, const char *name) {
    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        return NULL;
    }
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        yaml_node_t *key = yaml_document_get_node(document, pair->key);
        if (key->type == YAML_SCALAR_NODE &&
            strcmp((const char *)key->data.scalar.value, name) == 0) {
            return yaml_document_get_node(document, pair->value);
        }
    }
    return NULL;
}

static const char *scalar(yaml_document_t *document, yaml_node_t *map, const char *name) {
    yaml_node_t *node = member(document, map, name);
    return node != NULL && node->type == YAML_SCALAR_NODE
               ? app_keep(strdup((const char *)node->data.scalar.value))
               : NULL;
}

static void take_all(yaml_document_t *document, yaml_node_t *map, app_properties *more) {
    if (map == NULL || map->type != YAML_MAPPING_NODE) {
        return;
    }
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        yaml_node_t *key = yaml_document_get_node(document, pair->key);
        yaml_node_t *value = yaml_document_get_node(document, pair->value);
        if (key->type == YAML_SCALAR_NODE && value->type == YAML_SCALAR_NODE) {
            app_put_property(more, app_keep(strdup((const char *)key->data.scalar.value)),
                             app_keep(strdup((const char *)value->data.scalar.value)));
        }
    }
}

static bool look_in(const char *folder, const char *name, const char **uri, const char **warehouse,
                    app_properties *more) {
    char path[4096];
    yaml_parser_t parser;
    yaml_document_t document;
    bool found = false;
    snprintf(path, sizeof path, "%s/.pyiceberg.yaml", folder);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    if (yaml_parser_initialize(&parser) != 0) {
        yaml_parser_set_input_file(&parser, file);
        if (yaml_parser_load(&parser, &document) != 0) {
            yaml_node_t *catalogs =
                member(&document, yaml_document_get_root_node(&document), "catalog");
            yaml_node_t *catalog = member(&document, catalogs, name);
            *uri = scalar(&document, catalog, "uri");
            *warehouse = scalar(&document, catalog, "warehouse");
            found = *uri != NULL;
            take_all(&document, catalog, more);
            yaml_document_delete(&document);
        } else {
            app_say("warning", "%s line %zu: %s", path, parser.problem_mark.line + 1,
                    parser.problem != NULL ? parser.problem : "not YAML");
        }
        yaml_parser_delete(&parser);
    }
    fclose(file);
    return found;
}

bool app_pyiceberg(const char *name, const char **uri, const char **warehouse,
                   app_properties *more) {
    const char *folders[] = {getenv("PYICEBERG_HOME"), getenv("HOME"), "."};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i] != NULL && look_in(folders[i], name, uri, warehouse, more)) {
            return true;
        }
    }
    return false;
}
