/* apps/tarn/cmd_import.c - files that are there already become a table's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *partition_by, *key_types, *if_exists;
    int64_t format_version;
    opt_list properties;
    bool create, dry_run, merge;
} import_options;

static const opt_spec IMPORT_SPECS[] = {
    {"create", 0, OPT_FLAG, &import_options.create, "",
     "make the table if it is not there: its columns are the union of the\nfiles', then the keys "
     "of "
     "the folders"},
    {"partition-by", 'p', OPT_TEXT, &import_options.partition_by, "TEXT",
     "with --create: \"day(ts), region\" (default: the folders' keys)"},
    {"key-types", 0, OPT_TEXT, &import_options.key_types, "TEXT",
     "with --create: types of folder keys, \"month int, code string\"\n(default: int, long or date "
     "where all values are written so, else\nstring)"},
    {"format-version", 0, OPT_COUNT, &import_options.format_version, "N",
     "with --create: of the table (default 2)"},
    {"property", 0, OPT_LIST, &import_options.properties, "KEY=VALUE",
     "with --create: of the table"},
    {"if-exists", 0, OPT_TEXT, &import_options.if_exists, "WHAT",
     "files that the table has already: fail (default) or skip"},
    {"merge-append", 0, OPT_FLAG, &import_options.merge, "",
     "merge small manifests while committing"},
    {"dry-run", 0, OPT_FLAG, &import_options.dry_run, "",
     "look at every file and say what would be done"},
};

const opt_command import_command = {
    "import",
    "TABLE FOLDER",
    "make existing Parquet and Avro files a table's, without rewriting them",
    "Files below FOLDER stay where they are and belong to the table from then on. Folders named "
    "\"key=value\" give partition values (percent escapes decoded once, "
    "__HIVE_DEFAULT_PARTITION__ is null). Names that begin with _ or . are passed over. Every file "
    "is looked at before one commit adds them all.\n\nExamples:\n"
    "  tarn import app.events /data/events --create\n"
    "  tarn import app.events /data/events --if-exists skip --dry-run",
    2,
    2,
    IMPORT_SPECS,
    sizeof IMPORT_SPECS / sizeof IMPORT_SPECS[0]};

typedef struct importing {
    bool show;
    bool unwiped;
    time_t shown_at;
} importing;

static void on_progress(void *ctx, int64_t done, int64_t total) {
    importing *state = ctx;
    const time_t now = time(NULL);
    if (!state->show || now == state->shown_at) {
        return;
    }
    const bool terminal = isatty(STDERR_FILENO) != 0;
    state->shown_at = now;
    state->unwiped = terminal;
    fprintf(stderr, "%simport: %" PRId64 " of %" PRId64 " files%s", terminal ? "\r" : "", done,
            total, terminal ? "\033[K" : "\n");
    fflush(stderr);
}

static void print_report(const char *table, const tarn_import_report *r, const tarn_outcome *o) {
    if (the_app.json) {
        printf("{\"files\":%" PRId64 ",\"skipped\":%" PRId64 ",\"rows\":%" PRId64
               ",\"bytes\":%" PRId64 ",\"created\":%s,\"dry-run\":%s,\"snapshot-id\":",
               r->files, r->skipped, r->rows, r->bytes, r->created ? "true" : "false",
               import_options.dry_run ? "true" : "false");
        if (o->snapshot_id < 0) {
            printf("null}\n");
        } else {
            printf("%" PRId64 "}\n", o->snapshot_id);
        }
        return;
    }
    if (the_app.quiet) {
        return;
    }
    printf("%s %" PRId64 " file%s of %" PRId64 " row%s (%" PRId64 " bytes) in%s %s",
           import_options.dry_run ? "would import" : "imported", r->files, app_plural(r->files),
           r->rows, app_plural(r->rows), r->bytes, r->created ? "to new table" : "to", table);
    if (r->skipped > 0) {
        printf("; %" PRId64 " were there already", r->skipped);
    }
    if (o->snapshot_id >= 0) {
        printf(" (snapshot %" PRId64 ")", o->snapshot_id);
    }
    printf("\n");
}

int cmd_import(int argc, char **argv) {
    int n;
    int status;
    const char **args = command_begin(&import_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    const char *exists = import_options.if_exists;
    if (exists != NULL && strcmp(exists, "fail") != 0 && strcmp(exists, "skip") != 0) {
        return app_usage("--if-exists takes fail or skip, not \"%s\"", exists);
    }
    if (!import_options.create &&
        (import_options.partition_by != NULL || import_options.key_types != NULL)) {
        return app_usage("--partition-by and --key-types need --create");
    }
    importing state = {.show = !the_app.quiet && (the_app.progress || isatty(STDERR_FILENO))};
    tarn_import_options o = TARN_IMPORT_OPTIONS_INIT;
    tarn_import_report report = TARN_IMPORT_REPORT_INIT;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_catalog_handle *catalog = NULL;
    char *properties = app_properties_json(&import_options.properties);
    if (properties == NULL) {
        return TARN_INVALID;
    }
    the_app.makes = import_options.create && !import_options.dry_run;
    the_app.only_looks = import_options.create && import_options.dry_run;
    o.create = import_options.create;
    o.partition_by = import_options.partition_by;
    o.key_types = import_options.key_types;
    o.format_version = (int32_t)import_options.format_version;
    o.properties_json = properties;
    o.dry_run = import_options.dry_run;
    o.skip_existing = exists != NULL && strcmp(exists, "skip") == 0;
    o.merge_append = import_options.merge;
    o.progress = on_progress;
    o.progress_ctx = &state;
    tarn_code code = app_catalog(&catalog);
    if (code == TARN_OK) {
        code = tarn_table_import(catalog, args[0], args[1], &o, &report, &outcome, &the_app.err);
    }
    if (state.unwiped) {
        fputs("\r\033[K", stderr);
    }
    if (code == TARN_OK) {
        print_report(args[0], &report, &outcome);
    }
    free(properties);
    return code == TARN_OK ? 0 : app_fail(code);
}
