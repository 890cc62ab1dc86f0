/* apps/tarn/ingest_table.c - the table that rows go into: opened, made from what the data suggests,
 * and evolved when rows bring columns that it lacks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ingest.h"

/* Standard input, a named pipe, <(...), a topic: it is read once only. */
static bool is_read_once(const ingest *in) {
    struct stat info;
    const char *path = in->inputs[0];
    return ingest_is_kafka(in) || strcmp(path, "-") == 0 ||
           (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

/* ---- making it ---- */

static void drop_first(ingest *in) {
    if (in->first.release != NULL) {
        in->first.release(&in->first);
    }
    if (in->first_schema.release != NULL) {
        in->first_schema.release(&in->first_schema);
    }
    free(in->first_kinds);
    in->first_kinds = NULL;
    tarn_source_close(in->source);
    in->source = NULL;
}

/* Bad rows are told when they are read again, if good ones make a table. */
static int pass_reject(void *ctx, int64_t line, const char *raw, size_t raw_len,
                       const char *reason) {
    ingest *in = ctx;
    (void)raw;
    (void)raw_len;
    if (in->first_bad == NULL) {
        text t = {0};
        text_add(&t, ": line %" PRId64 ": %s", line, reason);
        in->first_bad = t.data;
    }
    return 0;
}

static tarn_code nothing_there(const ingest *in) {
    return app_error(TARN_INVALID,
                     "%s holds nothing to make columns of%s; --schema says what they are",
                     strcmp(in->inputs[0], "-") == 0 ? "standard input" : in->inputs[0],
                     in->first_bad != NULL ? in->first_bad : "");
}

/* A file's columns without its rows, which are read later on. */
static tarn_code read_columns(ingest *in) {
    tarn_source_options o;
    tarn_file_reader *reader = NULL;
    ingest_fill_source(in, &o);
    tarn_code code = tarn_file_open(the_app.env, in->inputs[0], &o.file, &reader, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_file_schema(reader, &in->first_schema, &the_app.err);
    }
    tarn_file_close(reader);
    return code == TARN_OK && in->first_schema.n_children == 0 ? nothing_there(in) : code;
}

static bool is_plain_file(const ingest *in) {
    struct stat info;
    const char *path = in->inputs[0];
    bool uri = strncmp(path, "file:", 5) == 0;
    return !ingest_is_change_stream() && (uri || (stat(path, &info) == 0 && S_ISREG(info.st_mode)));
}

/* The first rows tell what columns there are. They are kept where they cannot be read again. */
static tarn_code read_first(ingest *in) {
    tarn_source_options o;
    const uint8_t *kinds = NULL;
    bool ended = false;
    ingest_fill_source(in, &o);
    o.grow = ingest_options.evolve;
    o.file.reject = is_read_once(in) ? ingest_on_reject : pass_reject;
    o.file.reject_ctx = in;
    tarn_code code = is_read_once(in) ? ingest_create_rejects(in) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_source_open(the_app.env, in->inputs, in->n_inputs, &o, &in->source, &the_app.err);
    while (code == TARN_OK && in->first.release == NULL && !ended) {
        code = tarn_source_next(in->source, in->streaming ? 200 : -1, &in->first_schema, &in->first,
                                &kinds, &ended, &the_app.err);
        if (ingest_was_stopped()) {
            return app_error(TARN_CANCELLED, "cancelled");
        }
    }
    if (code != TARN_OK) {
        return code;
    }
    if (in->first.release == NULL || in->first_schema.n_children == 0) {
        return nothing_there(in);
    }
    if (kinds != NULL) {
        in->first_kinds = malloc((size_t)in->first.length + 1);
        if (in->first_kinds == NULL) {
            return app_error(TARN_NOMEM, "out of memory");
        }
        memcpy(in->first_kinds, kinds, (size_t)in->first.length);
    }
    return TARN_OK;
}

static bool is_in_list(const char *list, const char *name) {
    size_t len = strlen(name);
    for (const char *p = list; p != NULL && *p != '\0'; p = strchr(p, ',')) {
        p += strspn(p, ", `\"");
        const char *end = p + strcspn(p, ",`\"");
        while (end > p && end[-1] == ' ') {
            end--;
        }
        if ((size_t)(end - p) == len && memcmp(p, name, len) == 0) {
            return true;
        }
        p = end;
    }
    return false;
}

/* Identifier fields are required, which no sample of rows can say of a column. */
static void require(struct ArrowSchema *schema, const char *columns) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct ArrowSchema *column = schema->children[i];
        if (is_in_list(columns, column->name)) {
            column->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
        }
    }
}

/* The properties asked for, and the kind of deletes, which is the table's for ever. */
static char *creation_properties(const ingest *in) {
    text t = {0};
    size_t len = strlen(in->properties);
    if (ingest_options.deletes == NULL) {
        text_add(&t, "%s", in->properties);
        return t.data;
    }
    text_add(&t, "%.*s%s\"tarn.row-deletes\":", (int)len - 1, in->properties,
             strcmp(in->properties, "{}") == 0 ? "" : ",");
    text_add_json(&t, ingest_options.deletes);
    text_add(&t, "}");
    return t.data;
}

static tarn_code create_table(ingest *in, tarn_catalog_handle *catalog) {
    tarn_create_options o = TARN_CREATE_OPTIONS_INIT;
    const ingest_choices *c = &ingest_options;
    tarn_code code = TARN_OK;
    bool keyed = c->upsert || ingest_is_change_stream();
    o.identifiers = c->identifiers != NULL ? c->identifiers : keyed ? c->key : NULL;
    o.schema_text = c->schema;
    if (o.schema_text == NULL) {
        code = is_plain_file(in) ? read_columns(in) : read_first(in);
        o.schema_arrow = &in->first_schema;
    }
    if (code == TARN_OK) {
        char *properties = creation_properties(in);
        if (o.schema_arrow != NULL) {
            require(&in->first_schema, o.identifiers);
        }
        o.partition_by = c->partition_by;
        o.sort_by = c->sort_by;
        o.properties_json = properties;
        o.format_version = c->deletes != NULL && strcmp(c->deletes, "vector") == 0 ? 3 : 0;
        code = app_create_table(catalog, in->table_name, &o);
        in->created = code == TARN_OK;
        free(properties);
    }
    if (!is_read_once(in)) {
        drop_first(in);
    }
    return code == TARN_CONFLICT ? TARN_OK : code; /* somebody else made it meanwhile */
}

/* A stream that goes on with its own table is the same command again. */
static void warn_if_there(const ingest *in) {
    const ingest_choices *c = &ingest_options;
    bool asked = c->schema != NULL || c->partition_by != NULL || c->sort_by != NULL ||
                 c->identifiers != NULL || c->properties.count > 0;
    if (asked && in->found && !the_app.quiet && !in->goes_on) {
        app_say("warning",
                "table %s exists and stays as it is: the options of --create are not applied",
                in->table_name);
    }
}

/* Whether --key names the column; quoted names are looked at without their quotes. */
static bool is_key(const char *name) {
    const char *at = ingest_options.key;
    size_t len = strlen(name);
    while (at != NULL && *at != '\0') {
        at += strspn(at, " ,\"`");
        size_t n = strcspn(at, ",\"`");
        while (n > 0 && at[n - 1] == ' ') {
            n--;
        }
        if (n == len && strncmp(at, name, n) == 0) {
            return true;
        }
        at += strcspn(at, ",");
    }
    return false;
}

/* The table's columns as the input is read: a row without its key is a bad row of the input, with
 * its line, and not a failure of the table. */
static tarn_code read_schema(ingest *in) {
    if (in->schema.release != NULL) {
        in->schema.release(&in->schema);
    }
    tarn_code code = tarn_table_schema_arrow(in->table, &in->schema, &the_app.err);
    for (int64_t i = 0; code == TARN_OK && i < in->schema.n_children; i++) {
        if (is_key(in->schema.children[i]->name)) {
            in->schema.children[i]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
        }
    }
    return code;
}

/* A name that was mistyped looks like a new branch. */
static tarn_code note_branch(const ingest *in) {
    const char *branch = ingest_options.branch;
    char *document = NULL;
    if (branch == NULL || strcmp(branch, "main") == 0 || the_app.quiet) {
        return TARN_OK;
    }
    tarn_code code = tarn_table_metadata_json(in->table, &document, &the_app.err);
    json *metadata = code == TARN_OK ? json_read(document) : NULL;
    if (metadata != NULL && json_at(json_at(metadata, "refs"), branch) == NULL) {
        app_say("info",
                "branch %s of table %s did not exist; the first commit makes it, and it begins "
                "with main's rows",
                branch, in->table_name);
    }
    json_free(metadata);
    tarn_text_free(the_app.env, document);
    return code;
}

tarn_code ingest_open_table(ingest *in) {
    tarn_catalog_handle *catalog;
    tarn_code code = app_catalog(&catalog);
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_table_load(catalog, in->table_name, &in->table, &the_app.err);
    if (code == TARN_OK && ingest_options.create) {
        in->found = true;
    } else if (code == TARN_NOT_FOUND && ingest_options.create) {
        code = create_table(in, catalog);
        if (code == TARN_OK) {
            code = tarn_table_load(catalog, in->table_name, &in->table, &the_app.err);
        }
    }
    bool missing = code == TARN_NOT_FOUND && strstr(the_app.err.message, "did not exist") != NULL;
    if (missing && !ingest_options.create) {
        return app_error(code, "table %s did not exist (--create makes it from the data)",
                         in->table_name);
    }
    code = code == TARN_OK ? read_schema(in) : code;
    return code == TARN_OK ? note_branch(in) : code;
}

static tarn_code look_at_offsets(ingest *in) {
    char *offsets = NULL;
    tarn_code code = TARN_OK;
    if (ingest_options.state != NULL) {
        code = tarn_sink_offsets(in->sink, &offsets, &the_app.err);
        in->goes_on = offsets != NULL;
        tarn_text_free(the_app.env, offsets);
    }
    return code;
}

tarn_code ingest_start_sink(ingest *in) {
    tarn_code code = ingest_open_sink(in);
    code = code == TARN_OK ? look_at_offsets(in) : code;
    if (code == TARN_OK) {
        warn_if_there(in);
    }
    return code;
}

tarn_code ingest_open_sink(ingest *in) {
    tarn_sink_options o;
    ingest_fill_sink(in, &o);
    tarn_text_free(the_app.env, in->key);
    in->key = NULL;
    in->checkpoints_before = in->checkpoints;
    tarn_code code = tarn_sink_open(in->table, &o, &in->sink, &the_app.err);
    code = code == TARN_OK ? tarn_sink_key(in->sink, &in->key, &the_app.err) : code;
    if (code == TARN_OK) {
        in->stats = (tarn_sink_stats)TARN_SINK_STATS_INIT;
        tarn_sink_stats_get(in->sink, &in->stats);
    }
    return code;
}

tarn_code ingest_reopen_sink(ingest *in) {
    tarn_sink_free(in->sink);
    in->sink = NULL;
    tarn_code code = tarn_table_refresh(in->table, &the_app.err);
    code = code == TARN_OK ? read_schema(in) : code;
    code = code == TARN_OK ? ingest_open_sink(in) : code;
    if (code == TARN_OK) { /* it committed what was on its way */
        in->stats = (tarn_sink_stats)TARN_SINK_STATS_INIT;
        ingest_note_stats(in);
    }
    return code;
}

/* ---- evolving it ---- */

static bool put_type(text *t, const struct ArrowSchema *s);

static bool put_parts(text *t, const struct ArrowSchema *s) {
    bool ok = true;
    text_add(t, "struct<");
    for (int64_t i = 0; i < s->n_children && ok; i++) {
        text_add(t, "%s", i > 0 ? ", `" : "`");
        for (const char *c = s->children[i]->name; *c != '\0'; c++) {
            text_add(t, *c == '`' ? "``" : "%c", *c);
        }
        text_add(t, "`: ");
        ok = put_type(t, s->children[i]);
    }
    text_add(t, ">");
    return ok;
}

/* A column's type as people write it; false: of a kind that no schema text has. */
static bool put_type(text *t, const struct ArrowSchema *s) {
    static const struct {
        const char *format, *type;
    } known[] = {{"b", "boolean"}, {"i", "int"},          {"l", "long"},           {"f", "float"},
                 {"g", "double"},  {"u", "string"},       {"z", "binary"},         {"tdD", "date"},
                 {"ttu", "time"},  {"tsu:", "timestamp"}, {"tsn:", "timestamp_ns"}};
    const char *f = s->format;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(f, known[i].format) == 0) {
            text_add(t, "%s", known[i].type);
            return true;
        }
    }
    if (strncmp(f, "tsu:", 4) == 0 || strncmp(f, "tsn:", 4) == 0) {
        text_add(t, f[2] == 'u' ? "timestamptz" : "timestamptz_ns");
    } else if (f[0] == 'd' && f[1] == ':') {
        text_add(t, "decimal(%.*s, %s)", (int)strcspn(f + 2, ","), f + 2, strchr(f, ',') + 1);
    } else if (strncmp(f, "w:", 2) == 0) {
        text_add(t, "fixed[%s]", f + 2);
    } else if (strcmp(f, "+s") == 0) {
        return put_parts(t, s);
    } else if (strcmp(f, "+l") == 0) {
        text_add(t, "list<");
        bool ok = put_type(t, s->children[0]);
        text_add(t, ">");
        return ok;
    } else if (strcmp(f, "+m") == 0) {
        text_add(t, "map<");
        bool ok = put_type(t, s->children[0]->children[0]);
        text_add(t, ", ");
        ok = ok && put_type(t, s->children[0]->children[1]);
        text_add(t, ">");
        return ok;
    } else {
        return false;
    }
    return true;
}

static const struct ArrowSchema *find_column(const struct ArrowSchema *schema, const char *name) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (strcmp(schema->children[i]->name, name) == 0) {
            return schema->children[i];
        }
    }
    return NULL;
}

/* The path of a column that is there, or the one that a new column of this name goes below. */
static void add_edit(text *edits, const char *path, const char *name, const struct ArrowSchema *s) {
    text type = {0};
    if (put_type(&type, s)) {
        text_add(edits, "%s{\"op\":\"%s\",\"%s\":", edits->len > 1 ? "," : "",
                 name != NULL ? "add-column" : "update-type", name != NULL ? "parent" : "path");
        text_add_json(edits, path);
        if (name != NULL) {
            text_add(edits, ",\"name\":");
            text_add_json(edits, name);
        }
        text_add(edits, ",\"type\":");
        text_add_json(edits, type.data);
        text_add(edits, "}");
    }
    free(type.data);
}

/* Whether a column of format `have` should become one of format `want`. */
static bool is_wider(const char *have, const char *want) {
    int p0, s0, p1, s1;
    if (strcmp(have, "i") == 0 || strcmp(have, "f") == 0) {
        return strcmp(want, have[0] == 'i' ? "l" : "g") == 0;
    }
    return sscanf(have, "d:%d,%d", &p0, &s0) == 2 && sscanf(want, "d:%d,%d", &p1, &s1) == 2 &&
           s0 == s1 && p1 > p0;
}

static void compare(text *edits, const char *parent, const struct ArrowSchema *table,
                    const struct ArrowSchema *batch);

static void compare_part(text *edits, const char *parent, const char *name,
                         const struct ArrowSchema *known, const struct ArrowSchema *column);

/* A column, a list's element, a map's value; keys of maps never change. */
static void compare_type(text *edits, const char *path, const struct ArrowSchema *known,
                         const struct ArrowSchema *column) {
    if (is_wider(known->format, column->format)) {
        add_edit(edits, path, NULL, column);
    } else if (strcmp(known->format, column->format) != 0) {
        return;
    } else if (strcmp(known->format, "+l") == 0) {
        compare_part(edits, path, "element", known->children[0], column->children[0]);
    } else if (strcmp(known->format, "+m") == 0) {
        compare_part(edits, path, "value", known->children[0]->children[1],
                     column->children[0]->children[1]);
    } else if (strcmp(known->format, "+s") == 0) {
        compare(edits, path, known, column);
    }
}

static void compare_part(text *edits, const char *parent, const char *name,
                         const struct ArrowSchema *known, const struct ArrowSchema *column) {
    text path = {0};
    text_add(&path, "%s%s%s", parent, parent[0] != '\0' ? "." : "", name);
    compare_type(edits, path.data, known, column);
    free(path.data);
}

static void compare(text *edits, const char *parent, const struct ArrowSchema *table,
                    const struct ArrowSchema *batch) {
    for (int64_t i = 0; i < batch->n_children; i++) {
        const struct ArrowSchema *column = batch->children[i];
        const struct ArrowSchema *known = find_column(table, column->name);
        if (known != NULL) {
            compare_part(edits, parent, column->name, known, column);
        } else {
            add_edit(edits, parent, column->name, column);
        }
    }
}

/* Rows wait in the columns of before. */
static tarn_code end_schema(ingest *in) {
    int64_t rejected = in->rejected;
    in->in_hand = in->before != NULL;
    in->rejected = in->rejected_then;
    tarn_code code = ingest_checkpoint(in);
    in->rejected = rejected;
    in->in_hand = false;
    return code;
}

tarn_code ingest_evolve(ingest *in, const struct ArrowSchema *batch) {
    text edits = {0};
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_code code = TARN_OK;
    text_add(&edits, "[");
    compare(&edits, "", &in->schema, batch);
    if (edits.len > 1) {
        text_add(&edits, "]");
        code = in->waiting > 0 ? end_schema(in) : TARN_OK;
        code = code == TARN_OK ? ingest_flush(in) : code;
        if (code == TARN_OK) {
            tarn_sink_free(in->sink);
            in->sink = NULL;
            code = tarn_table_refresh(in->table, &the_app.err);
        }
        code = code == TARN_OK ? tarn_table_alter(in->table, edits.data, &outcome, &the_app.err)
                               : code;
        code = code == TARN_OK ? read_schema(in) : code;
        code = code == TARN_OK ? ingest_open_sink(in) : code;
    }
    free(edits.data);
    return code;
}
