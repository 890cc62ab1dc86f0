/* apps/tarn/cmd_rows.c - cat and delete: rows of a table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *format, *columns, *where, *as_of, *ref, *metadata_table;
    int64_t limit, snapshot_id;
    bool stats, case_insensitive, no_prune, count;
} cat_options = {.limit = -1, .snapshot_id = -1};

static const opt_spec CAT_SPECS[] = {
    {"format", 'f', OPT_TEXT, &cat_options.format, "NAME",
     "ndjson, csv or table (default: table on a terminal, else ndjson)"},
    {"columns", 0, OPT_TEXT, &cat_options.columns, "NAMES",
     "comma separated; dotted for nested ones"},
    {"where", 'w', OPT_TEXT, &cat_options.where, "FILTER", "only rows for which this is true"},
    {"limit", 'n', OPT_NUMBER, &cat_options.limit, "N", "at most N rows"},
    {"snapshot-id", 0, OPT_NUMBER, &cat_options.snapshot_id, "ID",
     "the table as this snapshot had it"},
    {"as-of", 0, OPT_TEXT, &cat_options.as_of, "TIME",
     "as it was at 2026-01-31T12:00:00 (UTC), or at milliseconds since 1970"},
    {"ref", 0, OPT_TEXT, &cat_options.ref, "NAME", "a branch or tag"},
    {"metadata-table", 0, OPT_TEXT, &cat_options.metadata_table, "NAME",
     "snapshots, history, refs, manifests, files, data_files,\ndelete_files, entries, partitions, "
     "metadata_log_entries, all_..."},
    {"count", 0, OPT_FLAG, &cat_options.count, "", "print the number of rows only"},
    {"stats", 0, OPT_FLAG, &cat_options.stats, "",
     "say on stderr what was read and what was pruned"},
    {"case-insensitive", 'i', OPT_FLAG, &cat_options.case_insensitive, "",
     "column names in any case"},
    {"no-prune", 0, OPT_FLAG, &cat_options.no_prune, "",
     "read everything, filter rows only (for comparing)"},
};

const opt_command cat_command = {
    "cat",
    "TABLE",
    "print rows of a table, or of one of its metadata tables",
    "TABLE is ns.table, ns.table.snapshots (and other metadata tables), or the path of a table "
    "folder or metadata file.\n\n"
    "Filters: = != < <= > >=, in (..), not in, is null, is not null, is nan, like 'abc%', between "
    ".. and .., and, or, not;\n"
    "literals 1, 1.5, 'text', true, date '2026-01-31', timestamp '2026-01-31 "
    "12:00:00'.\n\nExamples:\n"
    "  tarn cat app.events --where \"kind = 'click' and at >= '2026-01-01'\" --limit 10\n"
    "  tarn cat app.events.files --columns file_path,record_count\n"
    "  tarn cat app.events --as-of 2026-01-31T00:00:00 --format csv > then.csv",
    1,
    1,
    CAT_SPECS,
    sizeof CAT_SPECS / sizeof CAT_SPECS[0]};

/* Milliseconds since 1970, or a date or time in UTC. */
static bool parse_time(const char *text, int64_t *ms) {
    struct tm tm;
    int year, month, day, hour = 0, minute = 0;
    double second = 0;
    char *end;
    long long number = strtoll(text, &end, 10);
    if (*end == '\0' && end != text) {
        *ms = number;
        return true;
    }
    int n = sscanf(text, "%d-%d-%d%*[T ]%d:%d:%lf", &year, &month, &day, &hour, &minute, &second);
    if (n != 3 && n < 5) {
        return false;
    }
    memset(&tm, 0, sizeof tm);
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    *ms = (int64_t)timegm(&tm) * 1000 + (int64_t)(second * 1000);
    return true;
}

static void print_stats(const tarn_scan_stats *s) {
    fprintf(stderr,
            "tarn: manifests %" PRId64 " (%" PRId64 " skipped), files %" PRId64 " (%" PRId64
            " skipped), row groups %" PRId64 " (%" PRId64 " skipped), pages skipped %" PRId64
            ", rows read %" PRId64 ", rows matched %" PRId64 "\n",
            s->manifests, s->manifests_skipped, s->files, s->files_skipped, s->row_groups,
            s->row_groups_skipped, s->pages_skipped, s->rows_read, s->rows_matched);
}

static tarn_code count_rows(struct ArrowArrayStream *stream, int64_t *rows) {
    *rows = 0;
    tarn_code code = TARN_OK;
    for (;;) {
        struct ArrowArray array;
        if (stream->get_next(stream, &array) != 0) {
            const char *message = stream->get_last_error(stream);
            the_app.err.code = code = TARN_IO;
            snprintf(the_app.err.message, sizeof the_app.err.message, "%s",
                     message != NULL ? message : "read failed");
            break;
        }
        if (array.release == NULL) {
            break;
        }
        *rows += array.length;
        array.release(&array);
    }
    stream->release(stream);
    return code;
}

int cmd_cat(int argc, char **argv) {
    int n;
    int status;
    int64_t rows = 0;
    tarn_table *table = NULL;
    tarn_scan_options o = TARN_SCAN_OPTIONS_INIT;
    tarn_scan_stats stats = TARN_SCAN_STATS_INIT;
    struct ArrowArrayStream stream;
    const char **args = command_begin(&cat_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    o.metadata_table = cat_options.metadata_table;
    o.columns = cat_options.columns;
    o.where = cat_options.where;
    o.limit = cat_options.limit;
    o.snapshot_id = cat_options.snapshot_id;
    o.ref = cat_options.ref;
    o.case_insensitive = cat_options.case_insensitive;
    o.no_prune = cat_options.no_prune;
    if (cat_options.as_of != NULL && !parse_time(cat_options.as_of, &o.as_of_ms)) {
        return app_usage("--as-of takes a time such as 2026-01-31T12:00:00, not \"%s\"",
                         cat_options.as_of);
    }
    tarn_code code = app_table(args[0], &table, &o.metadata_table);
    if (code == TARN_OK) {
        code = tarn_table_scan(table, &o, &stream, &stats, &the_app.err);
        tarn_table_free(table);
    }
    if (code == TARN_OK) {
        code = cat_options.count ? count_rows(&stream, &rows)
                                 : app_print_stream(&stream, cat_options.format, &rows);
    }
    if (code == TARN_OK && cat_options.count) {
        printf("%" PRId64 "\n", rows);
    }
    if (code == TARN_OK && cat_options.stats) {
        print_stats(&stats);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}

/* ---- delete ---- */

static struct { const char *where, *branch; } delete_options;

static const opt_spec DELETE_SPECS[] = {
    {"where", 'w', OPT_TEXT, &delete_options.where, "FILTER",
     "which rows go (required; \"true\" for all)"},
    {"branch", 0, OPT_TEXT, &delete_options.branch, "NAME", "on this branch instead of main"},
};

const opt_command delete_command = {
    "delete",
    "TABLE --where FILTER",
    "remove rows, by metadata where whole files match, else by rewriting files",
    "One commit; the rows stay readable in earlier snapshots.\n\nExample:\n  tarn delete "
    "app.events --where \"at < '2025-01-01'\"",
    1,
    1,
    DELETE_SPECS,
    sizeof DELETE_SPECS / sizeof DELETE_SPECS[0]};

int cmd_delete(int argc, char **argv) {
    int n;
    int status;
    tarn_table *table = NULL;
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    const char **args = command_begin(&delete_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (delete_options.where == NULL) {
        return app_usage("delete needs --where FILTER");
    }
    tarn_code code = app_table(args[0], &table, NULL);
    if (code == TARN_OK) {
        code = tarn_table_delete(table, delete_options.where, delete_options.branch, &outcome,
                                 &the_app.err);
    }
    tarn_table_free(table);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    if (the_app.json) {
        printf("{\"snapshot-id\":%" PRId64 ",\"rows-deleted\":%" PRId64
               ",\"rows-rewritten\":%" PRId64 ",\"files-removed\":%d}\n",
               outcome.snapshot_id, outcome.rows, outcome.rows_rewritten, outcome.files_removed);
    } else if (!the_app.quiet) {
        fprintf(stderr, "%" PRId64 " rows deleted, %" PRId64 " rewritten, %d files removed%s\n",
                outcome.rows, outcome.rows_rewritten, outcome.files_removed,
                outcome.rows == 0 ? "; nothing to commit" : "");
    }
    return 0;
}
