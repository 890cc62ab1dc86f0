/* apps/tarn/cmd_check.c - whether a table follows the specification. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"
#include "json.h"

/* Of each rule so many findings are shown as text; the others are counted. */
#define SHOWN_OF_RULE 10
#define RULES_MOST    64

static struct { bool deep, all, strict; } check_options;

static const opt_spec CHECK_SPECS[] = {
    {"deep", 0, OPT_FLAG, &check_options.deep, "",
     "open every live file too: rows, field ids, statistics"},
    {"all", 0, OPT_FLAG, &check_options.all, "",
     "show every finding (default: the first 10 of a kind)"},
    {"strict", 0, OPT_FLAG, &check_options.strict, "", "warnings count as errors"},
};

const opt_command check_command = {
    "check",
    "TABLE",
    "look for what is wrong with a table's metadata, manifests and files",
    "Reads only. Each finding names its kind, the file, what was found, and the section of the "
    "Iceberg specification that says otherwise. Errors may lose rows or stop readers; warnings "
    "are deviations that readers bear. Exit status 6 (CORRUPT) when there was an "
    "error.\n\nExamples:\n"
    "  tarn check app.events\n"
    "  tarn check --deep --json warehouse/app/events | jq .findings",
    1,
    1,
    CHECK_SPECS,
    sizeof CHECK_SPECS / sizeof CHECK_SPECS[0]};

typedef struct checking {
    text findings; /* JSON */
    struct {
        const char *rule;
        int64_t count;
    } rules[RULES_MOST];
    size_t n_rules;
    bool show;    /* progress */
    bool unwiped; /* a line of progress is on the terminal */
    time_t shown_at;
} checking;

static void wipe(checking *state) {
    if (state->unwiped) {
        fputs("\r\033[K", stderr);
        state->unwiped = false;
    }
}

static int64_t count_rule(checking *state, const char *rule) {
    for (size_t i = 0; i < state->n_rules; i++) {
        if (strcmp(state->rules[i].rule, rule) == 0) {
            return ++state->rules[i].count;
        }
    }
    if (state->n_rules < RULES_MOST) {
        state->rules[state->n_rules].rule = rule; /* of the library, for ever */
        state->rules[state->n_rules++].count = 1;
    }
    return 1;
}

static void add_json(text *t, const tarn_finding *f) {
    text_add(t, "%s\n {\"severity\":\"%s\",\"rule\":\"%s\",\"place\":", t->len > 0 ? "," : "",
             f->is_error ? "error" : "warning", f->rule);
    text_add_json(t, f->place);
    text_add(t, ",\"message\":");
    text_add_json(t, f->message);
    text_add(t, ",\"section\":");
    text_add_json(t, f->section);
    text_add(t, "}");
}

static int on_finding(void *ctx, const tarn_finding *f) {
    checking *state = ctx;
    if (the_app.json) {
        add_json(&state->findings, f);
        return 0;
    }
    const int64_t n = count_rule(state, f->rule);
    if (n <= SHOWN_OF_RULE || check_options.all) {
        wipe(state);
        printf("%s [%s] %s\n  %s (spec: %s)\n", f->is_error ? "error" : "warning", f->rule,
               f->place, f->message, f->section);
    }
    return 0;
}

static void on_progress(void *ctx, const tarn_check_report *r) {
    checking *state = ctx;
    const time_t now = time(NULL);
    if (!state->show || now == state->shown_at) {
        return;
    }
    const bool terminal = isatty(STDERR_FILENO) != 0;
    state->shown_at = now;
    state->unwiped = terminal;
    fprintf(stderr,
            "%schecking: %" PRId64 " snapshot%s, %" PRId64 " manifest%s, %" PRId64 " file%s%s",
            terminal ? "\r" : "", r->snapshots, app_plural(r->snapshots), r->manifests,
            app_plural(r->manifests), r->files, app_plural(r->files), terminal ? "\033[K" : "\n");
    fflush(stderr);
}

static void print_report(checking *state, const char *name, const tarn_check_report *r) {
    if (the_app.json) {
        text head = {0};
        text_add_json(&head, name);
        printf("{\"table\":%s,\"ok\":%s,\"errors\":%" PRId64 ",\"warnings\":%" PRId64
               ",\"snapshots\":%" PRId64 ",\"manifests\":%" PRId64 ",\"entries\":%" PRId64
               ",\"files\":%" PRId64 ",\"opened\":%" PRId64 ",\"findings\":[%s]}\n",
               head.data, r->errors == 0 ? "true" : "false", r->errors, r->warnings, r->snapshots,
               r->manifests, r->entries, r->files, r->opened,
               state->findings.data != NULL ? state->findings.data : "");
        free(head.data);
        return;
    }
    for (size_t i = 0; i < state->n_rules && !check_options.all; i++) {
        if (state->rules[i].count > SHOWN_OF_RULE) {
            printf("%" PRId64 " more of [%s] (--all shows them)\n",
                   state->rules[i].count - SHOWN_OF_RULE, state->rules[i].rule);
        }
    }
    if (!the_app.quiet) {
        printf("%s: %" PRId64 " error%s, %" PRId64 " warning%s in %" PRId64 " snapshot%s, %" PRId64
               " manifest%s, %" PRId64 " entries, %" PRId64 " live file%s\n",
               name, r->errors, app_plural(r->errors), r->warnings, app_plural(r->warnings),
               r->snapshots, app_plural(r->snapshots), r->manifests, app_plural(r->manifests),
               r->entries, r->files, app_plural(r->files));
    }
}

int cmd_check(int argc, char **argv) {
    int n;
    int status;
    const char **args = command_begin(&check_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    checking state = {.show = !the_app.quiet && (the_app.progress || isatty(STDERR_FILENO))};
    tarn_check_options o = TARN_CHECK_OPTIONS_INIT;
    tarn_check_report report = TARN_CHECK_REPORT_INIT;
    tarn_table *table = NULL;
    tarn_code code = app_table(args[0], &table, NULL);
    o.deep = check_options.deep;
    o.found = on_finding;
    o.progress = on_progress;
    o.ctx = &state;
    if (code == TARN_OK) {
        code = tarn_table_check(table, &o, &report, &the_app.err);
        wipe(&state);
    }
    if (code == TARN_OK) {
        print_report(&state, args[0], &report);
    }
    free(state.findings.data);
    tarn_table_free(table);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    const bool bad = report.errors > 0 || (check_options.strict && report.warnings > 0);
    return bad ? TARN_CORRUPT : 0;
}
