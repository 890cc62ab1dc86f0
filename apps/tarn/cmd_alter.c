/* apps/tarn/cmd_alter.c - alter and set: everything but rows. Each makes the edits of
 * tarn_table_alter and commits them together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "commands.h"
#include "json.h"

static int commit_edits(const char *name, const char *edits) {
    tarn_table *table = NULL;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_code code = app_table(name, &table, NULL);
    if (code == TARN_OK) {
        code = tarn_table_alter(table, edits, &outcome, &the_app.err);
    }
    tarn_table_free(table);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    if (the_app.json) {
        text line = {0};
        text_add(&line, "{\"table\":");
        text_add_json(&line, name);
        printf("%s,\"committed\":%s,\"attempts\":%d}\n", line.data,
               outcome.state == TARN_COMMIT_DONE ? "true" : "false", (int)outcome.attempts);
        free(line.data);
    }
    return 0;
}

/* ---- alter ---- */

static struct {
    const char *doc, *name, *after, *before, *initial;
    bool first, replace;
    int64_t snapshot_id, max_age;
} alter_options = {.snapshot_id = -1, .max_age = -1};

static const opt_spec ALTER_SPECS[] = {
    {"doc", 0, OPT_TEXT, &alter_options.doc, "TEXT", "add-column: what it holds"},
    {"default", 0, OPT_TEXT, &alter_options.initial, "VALUE",
     "add-column: of rows that are there, and of rows without it (version 3)"},
    {"first", 0, OPT_FLAG, &alter_options.first, "", "add-column, move: before all others"},
    {"before", 0, OPT_TEXT, &alter_options.before, "COLUMN", "add-column, move: before this one"},
    {"after", 0, OPT_TEXT, &alter_options.after, "COLUMN", "add-column, move: after this one"},
    {"name", 0, OPT_TEXT, &alter_options.name, "NAME", "add-partition: the field's name"},
    {"snapshot-id", 0, OPT_NUMBER, &alter_options.snapshot_id, "ID",
     "branch, tag: at this snapshot (default: the current one)"},
    {"replace", 0, OPT_FLAG, &alter_options.replace, "", "branch, tag: move the one that is there"},
    {"max-ref-age-ms", 0, OPT_NUMBER, &alter_options.max_age, "MS",
     "branch, tag: how long it is kept"},
};

const opt_command alter_command = {
    "alter",
    "TABLE EDIT [ARGUMENT...]",
    "change schema, partitioning, order, refs or format version",
    "Edits:\n"
    "  add-column PATH TYPE       with --doc, --default, --first, --before, --after;\n"
    "                             PATH may be a.b\n"
    "  drop-column PATH\n"
    "  rename-column PATH NAME\n"
    "  update-type PATH TYPE      int to long, float to double, decimal to more digits\n"
    "  make-optional PATH\n"
    "  update-doc PATH TEXT\n"
    "  move PATH                  with --first, --before, --after\n"
    "  set-identifiers COLUMNS    comma separated\n"
    "  partition-by TEXT          a whole new spec for data written from now on\n"
    "  add-partition TRANSFORM    \"bucket(16, carrier)\", with --name\n"
    "  drop-partition NAME\n"
    "  rename-partition NAME NEW\n"
    "  sort-by TEXT               a whole new order; \"\" for none\n"
    "  branch NAME, tag NAME      with --snapshot-id\n"
    "  drop-ref NAME\n"
    "  rollback ID                makes an earlier snapshot current again\n"
    "  upgrade VERSION            format version 2 or 3\n"
    "  location PATH\n\n"
    "Example:\n  tarn alter app.events add-column country string --after kind",
    2,
    4,
    ALTER_SPECS,
    sizeof ALTER_SPECS / sizeof ALTER_SPECS[0]};

typedef struct alter_rule {
    const char *edit, *op;
    int n_args;                 /* after the edit */
    const char *first, *second; /* member names of the arguments */
    int64_t most;               /* of an argument that is a number; 0: it is text */
} alter_rule;

static const alter_rule RULES[] = {
    {"add-column", "add-column", 2, "path", "type", 0},
    {"drop-column", "drop-column", 1, "path", NULL, 0},
    {"rename-column", "rename-column", 2, "path", "name", 0},
    {"update-type", "update-type", 2, "path", "type", 0},
    {"make-optional", "make-optional", 1, "path", NULL, 0},
    {"update-doc", "update-doc", 2, "path", "doc", 0},
    {"set-identifiers", "set-identifiers", 1, "columns", NULL, 0},
    {"partition-by", "set-partition-by", 1, "text", NULL, 0},
    {"add-partition", "add-partition-field", 1, "transform", NULL, 0},
    {"drop-partition", "drop-partition-field", 1, "name", NULL, 0},
    {"rename-partition", "rename-partition-field", 2, "name", "to", 0},
    {"sort-by", "set-sort-order", 1, "text", NULL, 0},
    {"branch", "set-ref", 1, "name", NULL, 0},
    {"tag", "set-ref", 1, "name", NULL, 0},
    {"drop-ref", "remove-ref", 1, "name", NULL, 0},
    {"rollback", "rollback", 1, "snapshot-id", NULL, INT64_MAX},
    {"upgrade", "upgrade-format-version", 1, "version", NULL, INT32_MAX},
    {"location", "set-location", 1, "location", NULL, 0},
};

static void add_member(text *t, const char *name, const char *value) {
    text_add(t, ",\"%s\":", name);
    text_add_json(t, value);
}

/* A sibling of path: --after b for a.c means a.b. */
static void add_other(text *t, const char *path, const char *other) {
    const char *dot = app_last_dot(path, strlen(path));
    char *whole = NULL;
    if (dot != NULL && app_last_dot(other, strlen(other)) == NULL) {
        size_t len = (size_t)(dot - path) + strlen(other) + 2;
        whole = malloc(len);
        if (whole != NULL) {
            snprintf(whole, len, "%.*s.%s", (int)(dot - path), path, other);
        }
    }
    add_member(t, "other", whole != NULL ? whole : other);
    free(whole);
}

static void add_move(text *t, const char *path) {
    if (alter_options.first) {
        text_add(t, ",{\"op\":\"move-first\"");
        add_member(t, "path", path);
        text_add(t, "}");
    } else if (alter_options.before != NULL || alter_options.after != NULL) {
        text_add(t, ",{\"op\":\"%s\"", alter_options.before != NULL ? "move-before" : "move-after");
        add_member(t, "path", path);
        add_other(t, path,
                  alter_options.before != NULL ? alter_options.before : alter_options.after);
        text_add(t, "}");
    }
}

static void add_options(text *t, const alter_rule *rule) {
    if (alter_options.doc != NULL && strcmp(rule->edit, "add-column") == 0) {
        add_member(t, "doc", alter_options.doc);
    }
    if (alter_options.initial != NULL && strcmp(rule->edit, "add-column") == 0) {
        add_member(t, "default", alter_options.initial);
    }
    if (alter_options.name != NULL && strcmp(rule->edit, "add-partition") == 0) {
        add_member(t, "name", alter_options.name);
    }
    if (strcmp(rule->op, "set-ref") == 0) {
        add_member(t, "type", rule->edit);
        if (alter_options.snapshot_id >= 0) {
            text_add(t, ",\"snapshot-id\":%" PRId64, alter_options.snapshot_id);
        }
        if (alter_options.replace) {
            text_add(t, ",\"replace\":true");
        }
        if (alter_options.max_age >= 0) {
            text_add(t, ",\"max-ref-age-ms\":%" PRId64, alter_options.max_age);
        }
    }
}

/* An option that the edit does nothing with is a mistake. */
static const char *stray_option(const char *edit) {
    bool adds = strcmp(edit, "add-column") == 0;
    bool moves = adds || strcmp(edit, "move") == 0;
    bool refs = strcmp(edit, "branch") == 0 || strcmp(edit, "tag") == 0;
    const struct {
        const char *name;
        bool given, fits;
    } options[] = {{"doc", alter_options.doc != NULL, adds},
                   {"default", alter_options.initial != NULL, adds},
                   {"first", alter_options.first, moves},
                   {"before", alter_options.before != NULL, moves},
                   {"after", alter_options.after != NULL, moves},
                   {"name", alter_options.name != NULL, strcmp(edit, "add-partition") == 0},
                   {"snapshot-id", alter_options.snapshot_id >= 0, refs},
                   {"replace", alter_options.replace, refs},
                   {"max-ref-age-ms", alter_options.max_age >= 0, refs}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].given && !options[i].fits) {
            return options[i].name;
        }
    }
    return NULL;
}

static void add_argument(text *t, const alter_rule *rule, const char *name, const char *value) {
    int64_t number;
    if (rule->most > 0 && opt_read_number(value, &number)) {
        text_add(t, ",\"%s\":%" PRId64, name, number);
    } else {
        add_member(t, name, value);
    }
}

int cmd_alter(int argc, char **argv) {
    int n;
    int status;
    text edits = {0};
    const alter_rule *rule = NULL;
    const char **args = command_begin(&alter_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    const char *stray = stray_option(args[1]);
    if (stray != NULL) {
        return app_usage("alter %s takes no --%s", args[1], stray);
    }
    if (strcmp(args[1], "move") == 0) {
        if (n != 3 ||
            (!alter_options.first && alter_options.before == NULL && alter_options.after == NULL)) {
            return app_usage("alter move takes PATH and --first, --before or --after");
        }
        text_add(&edits, "[");
        add_move(&edits, args[2]);
        edits.data[1] = ' '; /* the comma before the only edit */
    } else {
        for (size_t i = 0; i < sizeof RULES / sizeof RULES[0] && rule == NULL; i++) {
            rule = strcmp(args[1], RULES[i].edit) == 0 ? &RULES[i] : NULL;
        }
        if (rule == NULL || n - 2 != rule->n_args) {
            return rule == NULL ? app_usage("\"%s\" is no edit (see tarn alter --help)", args[1])
                                : app_usage("alter %s takes %d argument%s (see tarn alter --help)",
                                            args[1], rule->n_args, app_plural(rule->n_args));
        }
        int64_t number;
        if (rule->most > 0 && (!opt_read_number(args[2], &number) || number > rule->most)) {
            return app_usage("alter %s takes a number up to %" PRId64 ", not \"%s\"", args[1],
                             rule->most, args[2]);
        }
        text_add(&edits, "[{\"op\":\"%s\"", rule->op);
        add_argument(&edits, rule, rule->first, args[2]);
        if (rule->second != NULL) {
            add_argument(&edits, rule, rule->second, args[3]);
        }
        add_options(&edits, rule);
        text_add(&edits, "}");
        if (strcmp(rule->edit, "add-column") == 0) {
            add_move(&edits, args[2]);
        }
    }
    text_add(&edits, "]");
    status = commit_edits(args[0], edits.data);
    free(edits.data);
    return status;
}

/* ---- set ---- */

static struct { opt_list unset; } set_options;

static const opt_spec SET_SPECS[] = {
    {"unset", 0, OPT_LIST, &set_options.unset, "KEY",
     "remove this property; may be given several times"},
};

const opt_command set_command = {
    "set",
    "TABLE [KEY=VALUE...]",
    "set or remove table properties",
    "Names are Iceberg's, for example write.parquet.compression-codec=zstd.\n\nExample:\n"
    "  tarn set app.events write.target-file-size-bytes=134217728 --unset comment",
    1,
    -1,
    SET_SPECS,
    sizeof SET_SPECS / sizeof SET_SPECS[0]};

int cmd_set(int argc, char **argv) {
    int n;
    int status;
    text edits = {0};
    const char **args = command_begin(&set_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (n == 1 && set_options.unset.count == 0) {
        return app_usage("set takes KEY=VALUE or --unset KEY");
    }
    for (int i = 1; i < n; i++) {
        const char *equals = strchr(args[i], '=');
        if (equals == NULL || equals == args[i]) {
            return app_usage("a property is KEY=VALUE, not \"%s\"", args[i]);
        }
    }
    text_add(&edits, "[{\"op\":\"set-properties\",\"properties\":{");
    for (int i = 1; i < n; i++) {
        const char *equals = strchr(args[i], '=');
        char *key = strndup(args[i], (size_t)(equals - args[i]));
        text_add(&edits, "%s", i > 1 ? "," : "");
        text_add_json(&edits, key != NULL ? key : "");
        text_add(&edits, ":");
        text_add_json(&edits, equals + 1);
        free(key);
    }
    text_add(&edits, "}}");
    if (set_options.unset.count > 0) {
        text_add(&edits, ",{\"op\":\"remove-properties\",\"keys\":[");
        for (int i = 0; i < set_options.unset.count; i++) {
            text_add(&edits, "%s", i > 0 ? "," : "");
            text_add_json(&edits, set_options.unset.items[i]);
        }
        text_add(&edits, "]}");
    }
    text_add(&edits, "]");
    status = commit_edits(args[0], edits.data);
    free(edits.data);
    return status;
}
