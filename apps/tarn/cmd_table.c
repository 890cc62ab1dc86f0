/* apps/tarn/cmd_table.c - describe and log: what a table is and was. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app.h"
#include "commands.h"
#include "json.h"

static tarn_code load_json(const char *name, char **document, json **out) {
    tarn_table *table = NULL;
    tarn_code code = app_table(name, &table, NULL);
    if (code == TARN_OK) {
        code = tarn_table_metadata_json(table, document, &the_app.err);
    }
    tarn_table_free(table);
    if (code == TARN_OK) {
        *out = json_read(*document);
        code = *out != NULL ? TARN_OK : TARN_NOMEM;
    }
    return code;
}

static const json *find_by(const json *list, const char *key, int64_t id) {
    for (const json *item = list != NULL ? list->first : NULL; item != NULL; item = item->next) {
        if (json_number(item, key, -1) == id) {
            return item;
        }
    }
    return NULL;
}

/* ---- describe ---- */

const opt_command describe_command = {
    "describe",
    "TABLE",
    "show schema, partitioning, properties and snapshots of a table",
    "With --json: the table metadata document.",
    1,
    1,
    NULL,
    0};

static void add_type(text *t, const json *type) {
    if (type == NULL || type->kind == 's') {
        text_add(t, "%s", type != NULL ? type->text : "?");
        return;
    }
    const char *kind = json_text(type, "type", "");
    if (strcmp(kind, "list") == 0) {
        text_add(t, "list<");
        add_type(t, json_at(type, "element"));
    } else if (strcmp(kind, "map") == 0) {
        text_add(t, "map<");
        add_type(t, json_at(type, "key"));
        text_add(t, ", ");
        add_type(t, json_at(type, "value"));
    } else {
        text_add(t, "struct<");
        const json *fields = json_at(type, "fields");
        for (const json *f = fields != NULL ? fields->first : NULL; f != NULL; f = f->next) {
            text_add(t, "%s%s: ", f != fields->first ? ", " : "", json_text(f, "name", ""));
            add_type(t, json_at(f, "type"));
        }
    }
    text_add(t, ">");
}

static void print_schema(const json *schema) {
    const json *fields = json_at(schema, "fields");
    printf("Schema %" PRId64 "\n", json_number(schema, "schema-id", 0));
    for (const json *f = fields != NULL ? fields->first : NULL; f != NULL; f = f->next) {
        text type = {0};
        add_type(&type, json_at(f, "type"));
        printf("  %4" PRId64 "  %-24s %s%s", json_number(f, "id", 0), json_text(f, "name", ""),
               type.data,
               strcmp(json_text(f, "required", "false"), "true") == 0 ? " not null" : "");
        if (json_at(f, "doc") != NULL) {
            printf("  -- %s", json_text(f, "doc", ""));
        }
        printf("\n");
        free(type.data);
    }
}

static const char *field_name(const json *schema, int64_t id) {
    const json *field = find_by(json_at(schema, "fields"), "id", id);
    return json_text(field, "name", "?");
}

/* "bucket[16]" of a column as it is typed: "bucket(16, carrier)". */
static void add_transform(text *t, const json *field, const char *column) {
    const char *transform = json_text(field, "transform", "");
    size_t word = strcspn(transform, "[");
    if (strcmp(transform, "identity") == 0) {
        text_add(t, "%s", column);
    } else if (transform[word] == '[') {
        text_add(t, "%.*s(%.*s, %s)", (int)word, transform, (int)strcspn(transform + word + 1, "]"),
                 transform + word + 1, column);
    } else {
        text_add(t, "%s(%s)", transform, column);
    }
}

static void print_spec(const json *metadata, const json *schema) {
    const json *spec = find_by(json_at(metadata, "partition-specs"), "spec-id",
                               json_number(metadata, "default-spec-id", 0));
    const json *fields = json_at(spec, "fields");
    printf("Partitioned by (spec %" PRId64 ")\n", json_number(spec, "spec-id", 0));
    if (json_count(fields) == 0) {
        printf("  nothing\n");
    }
    for (const json *f = fields != NULL ? fields->first : NULL; f != NULL; f = f->next) {
        text how = {0};
        add_transform(&how, f, field_name(schema, json_number(f, "source-id", 0)));
        printf("  %4" PRId64 "  %-24s %s\n", json_number(f, "field-id", 0),
               json_text(f, "name", ""), how.data);
        free(how.data);
    }
}

static void print_order(const json *metadata, const json *schema) {
    const json *order = find_by(json_at(metadata, "sort-orders"), "order-id",
                                json_number(metadata, "default-sort-order-id", 0));
    const json *fields = json_at(order, "fields");
    if (json_count(fields) == 0) {
        return;
    }
    printf("Sorted by (order %" PRId64 ")\n", json_number(order, "order-id", 0));
    for (const json *f = fields->first; f != NULL; f = f->next) {
        text how = {0};
        add_transform(&how, f, field_name(schema, json_number(f, "source-id", 0)));
        printf("        %s %s %s\n", how.data, json_text(f, "direction", ""),
               json_text(f, "null-order", ""));
        free(how.data);
    }
}

static void print_members(const char *title, const json *object) {
    if (object == NULL || object->first == NULL) {
        return;
    }
    printf("%s\n", title);
    for (const json *m = object->first; m != NULL; m = m->next) {
        printf("        %s = %s\n", m->name, m->text != NULL ? m->text : "");
    }
}

static void print_refs(const json *refs) {
    for (const json *r = refs != NULL ? refs->first : NULL; r != NULL; r = r->next) {
        printf("Ref     %s (%s) -> %s\n", r->name, json_text(r, "type", ""),
               json_text(r, "snapshot-id", ""));
    }
}

int cmd_describe(int argc, char **argv) {
    int n;
    int status;
    char *document = NULL;
    json *m = NULL;
    const char **args = command_begin(&describe_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = load_json(args[0], &document, &m);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    if (the_app.json) {
        printf("%s\n", document);
    } else {
        const json *schema =
            find_by(json_at(m, "schemas"), "schema-id", json_number(m, "current-schema-id", 0));
        schema = schema != NULL ? schema : json_at(m, "schema");
        const json *snapshot = find_by(json_at(m, "snapshots"), "snapshot-id",
                                       json_number(m, "current-snapshot-id", -1));
        printf("Table   %s\nUUID    %s\nFormat  %" PRId64 "\nFolder  %s\nFile    %s\n", args[0],
               json_text(m, "table-uuid", "none"), json_number(m, "format-version", 0),
               json_text(m, "location", ""), json_text(m, "metadata-location", ""));
        print_schema(schema);
        print_spec(m, schema);
        print_order(m, schema);
        print_members("Properties", json_at(m, "properties"));
        print_refs(json_at(m, "refs"));
        printf("Snapshots %zu\n", json_count(json_at(m, "snapshots")));
        print_members("Current snapshot", json_at(snapshot, "summary"));
    }
    json_free(m);
    tarn_text_free(the_app.env, document);
    return 0;
}

/* ---- log ---- */

static struct { int64_t limit; } log_options = {.limit = -1};

static const opt_spec LOG_SPECS[] = {
    {"limit", 'n', OPT_NUMBER, &log_options.limit, "N", "the newest N snapshots"},
};

const opt_command log_command = {
    "log",
    "TABLE",
    "list the snapshots of a table, newest first",
    "* marks the current one. Total rows are those of the data files; row deletes, "
    "positions and keys in delete files and vectors, take some of "
    "them away when they are read. With --json one snapshot object a "
    "line.",
    1,
    1,
    LOG_SPECS,
    sizeof LOG_SPECS / sizeof LOG_SPECS[0]};

static void format_time(int64_t ms, char out[32]) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(out + len, 32 - len, ".%03d", (int)(ms % 1000));
}

static void add_value(text *t, const json *v) {
    if (v->kind == '{' || v->kind == '[') {
        text_add(t, v->kind == '{' ? "{" : "[");
        for (const json *m = v->first; m != NULL; m = m->next) {
            text_add(t, "%s", m != v->first ? "," : "");
            if (m->name != NULL) {
                text_add_json(t, m->name);
                text_add(t, ":");
            }
            add_value(t, m);
        }
        text_add(t, v->kind == '{' ? "}" : "]");
    } else if (v->kind == 's') {
        text_add_json(t, v->text);
    } else {
        text_add(t, "%s",
                 v->kind == '#'   ? v->text
                 : v->kind == 'n' ? "null"
                 : v->boolean     ? "true"
                                  : "false");
    }
}

/* "  main, tag v1": the refs that name a snapshot. */
static void print_refs_of(const json *refs, int64_t id) {
    const char *before = "  ";
    for (const json *r = refs != NULL ? refs->first : NULL; r != NULL; r = r->next) {
        if (json_number(r, "snapshot-id", -1) == id) {
            bool tag = strcmp(json_text(r, "type", ""), "tag") == 0;
            printf("%s%s%s", before, tag ? "tag " : "", r->name);
            before = ", ";
        }
    }
}

static int64_t row_deletes(const json *summary) {
    return strtoll(json_text(summary, "total-position-deletes", "0"), NULL, 10) +
           strtoll(json_text(summary, "total-equality-deletes", "0"), NULL, 10);
}

static void print_snapshot(const json *s, int64_t current, const json *refs) {
    char when[32];
    const json *summary = json_at(s, "summary");
    if (the_app.json) {
        text line = {0};
        add_value(&line, s);
        printf("%s\n", line.data);
        free(line.data);
        return;
    }
    format_time(json_number(s, "timestamp-ms", 0), when);
    printf("%c %-20s %s  %-9s %12s %12s %12s %12" PRId64 " %8s",
           json_number(s, "snapshot-id", 0) == current ? '*' : ' ', json_text(s, "snapshot-id", ""),
           when, json_text(summary, "operation", "?"), json_text(summary, "added-records", "0"),
           json_text(summary, "deleted-records", "0"), json_text(summary, "total-records", "?"),
           row_deletes(summary), json_text(summary, "total-data-files", "?"));
    print_refs_of(refs, json_number(s, "snapshot-id", 0));
    printf("\n");
}

int cmd_log(int argc, char **argv) {
    int n;
    int status;
    char *document = NULL;
    json *m = NULL;
    const char **args = command_begin(&log_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    tarn_code code = load_json(args[0], &document, &m);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    const json *snapshots = json_at(m, "snapshots");
    size_t count = json_count(snapshots);
    const json **items = calloc(count + 1, sizeof *items);
    size_t at = 0;
    for (const json *s = snapshots != NULL ? snapshots->first : NULL; s != NULL && items != NULL;
         s = s->next) {
        items[at++] = s;
    }
    if (!the_app.json) {
        printf("  %-20s %-23s  %-9s %12s %12s %12s %12s %8s\n", "snapshot", "committed (UTC)",
               "operation", "added", "deleted", "total rows", "row deletes", "files");
    }
    for (size_t i = 0; i < at && (log_options.limit < 0 || (int64_t)i < log_options.limit); i++) {
        print_snapshot(items[at - 1 - i], json_number(m, "current-snapshot-id", -1),
                       json_at(m, "refs"));
    }
    free(items);
    json_free(m);
    tarn_text_free(the_app.env, document);
    return 0;
}
