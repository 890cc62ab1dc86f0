/* apps/tarn/cmd_rows.c - cat: rows of a table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *format, *output, *columns, *where, *as_of, *ref, *metadata_table;
    int64_t limit, snapshot_id, from, to, poll_ms;
    bool stats, case_insensitive, no_prune, count, follow;
} cat_options = {.limit = -1, .snapshot_id = -1, .from = -1, .to = -1, .poll_ms = 1000};

static const opt_spec CAT_SPECS[] = {
    {"format", 'f', OPT_TEXT, &cat_options.format, "NAME",
     "ndjson, csv or table (default: table on a terminal, else ndjson)"},
    {"output", 'o', OPT_TEXT, &cat_options.output, "FILE",
     "write a file instead: .parquet, .avro, .ndjson, .csv, the texts\nalso .gz or .zst (or as "
     "--format says); whole or not at all"},
    {"columns", 0, OPT_TEXT, &cat_options.columns, "NAMES",
     "comma separated; dotted for nested ones"},
    {"where", 'w', OPT_TEXT, &cat_options.where, "FILTER", "only rows for which this is true"},
    {"limit", 'n', OPT_NUMBER, &cat_options.limit, "N", "at most N rows"},
    {"snapshot-id", 0, OPT_NUMBER, &cat_options.snapshot_id, "ID",
     "the table as this snapshot had it"},
    {"as-of", 0, OPT_TEXT, &cat_options.as_of, "TIME",
     "as it was at 2026-01-31T12:00:00 (UTC, or with +02:00), or at\nmilliseconds since 1970"},
    {"ref", 0, OPT_TEXT, &cat_options.ref, "NAME", "a branch or tag"},
    {"from", 0, OPT_SNAPSHOT, &cat_options.from, "ID",
     "only rows appended after this snapshot; start: since the table\nbegan"},
    {"to", 0, OPT_NUMBER, &cat_options.to, "ID", "with --from: up to this snapshot"},
    {"follow", 0, OPT_FLAG, &cat_options.follow, "",
     "print rows as they are appended, until stopped (with --from: also\nthose after it)"},
    {"poll", 0, OPT_NUMBER, &cat_options.poll_ms, "MS",
     "with --follow: look for new snapshots every so often (1000)"},
    {"metadata-table", 0, OPT_TEXT, &cat_options.metadata_table, "NAME",
     "snapshots, history, refs, manifests, files, data_files,\ndelete_files, entries, partitions, "
     "position_deletes,\nmetadata_log_entries, all_..."},
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
    "folder, of a metadata\nfile, or of a single Parquet, Avro, NDJSON or CSV file.\n\n"
    "Filters: = != < <= > >=, in (..), not in, is null, is not null, is nan, like 'abc%', between "
    ".. and .., and, or, not;\n"
    "literals 1, 1.5, 'text', true, date '2026-01-31', timestamp '2026-01-31 "
    "12:00:00'.\n\nExamples:\n"
    "  tarn cat app.events --where \"kind = 'click' and at >= '2026-01-01'\" --limit 10\n"
    "  tarn cat app.events.files --columns file_path,record_count\n"
    "  tarn cat app.events --as-of 2026-01-31T00:00:00 --format csv > then.csv\n"
    "  tarn cat app.events --from 3051729675574597004\n"
    "  tarn cat app.events --from start --follow | consumer",
    1,
    1,
    CAT_SPECS,
    sizeof CAT_SPECS / sizeof CAT_SPECS[0]};

/* After date and time: nothing, "Z", or "+02:00"; minutes to subtract. */
static bool parse_zone(const char *text, int *minutes) {
    int hour = 0;
    int minute = 0;
    int length = 0;
    *minutes = 0;
    if (*text == '\0' || strcmp(text, "Z") == 0) {
        return true;
    }
    if ((*text != '+' && *text != '-') ||
        sscanf(text + 1, "%2d:%2d%n", &hour, &minute, &length) < 2 || text[1 + length] != '\0' ||
        hour > 18 || minute > 59) {
        return false;
    }
    *minutes = (*text == '-' ? -1 : 1) * (hour * 60 + minute);
    return true;
}

/* Milliseconds since 1970, or a date or time, in UTC where it names no zone. */
static bool parse_time(const char *text, int64_t *ms) {
    struct tm tm;
    int date = 0;
    int length = 0;
    int zone = 0;
    double second = 0;
    char *end;
    if (text[strspn(text, "0123456789")] == '\0') {
        return opt_read_number(text, ms);
    }
    memset(&tm, 0, sizeof tm);
    if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &date) < 3) {
        return false;
    }
    length = date;
    if (text[date] == 'T' || text[date] == ' ') {
        const char *clock = text + date + 1;
        if (sscanf(clock, "%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &length) < 2) {
            return false;
        }
        length += date + 1;
        if (text[length] == ':') {
            second = strtod(text + length + 1, &end);
            length = (int)(end - text);
        }
    }
    bool ranges = tm.tm_mon >= 1 && tm.tm_mon <= 12 && tm.tm_mday >= 1 && tm.tm_mday <= 31 &&
                  tm.tm_hour >= 0 && tm.tm_hour <= 23 && tm.tm_min >= 0 && tm.tm_min <= 59 &&
                  second >= 0 && second < 61;
    if (!ranges || !parse_zone(text + length, &zone)) {
        return false;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ms = ((int64_t)timegm(&tm) - zone * 60) * 1000 + (int64_t)(second * 1000);
    *ms = *ms < 0 ? 0 : *ms; /* no table is older */
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
    tarn_code code = TARN_OK;
    *rows = 0;
    while (code == TARN_OK) {
        struct ArrowArray array;
        int status = stream->get_next(stream, &array);
        if (status != 0) {
            code = app_stream_error(stream, status);
        } else if (array.release == NULL) {
            break;
        } else {
            *rows += array.length;
            array.release(&array);
        }
    }
    stream->release(stream);
    return code;
}

/* The rows of o, and which snapshot they are of. */
static tarn_code cat_once(const char *name, tarn_scan_options *o, int64_t *rows,
                          int64_t *snapshot_id) {
    tarn_table *table = NULL;
    tarn_scan_stats stats = TARN_SCAN_STATS_INIT;
    struct ArrowArrayStream stream;
    const char *output = cat_options.output != NULL ? cat_options.output : "-";
    tarn_code code = app_table(name, &table, &o->metadata_table);
    *rows = 0;
    if (code == TARN_OK) {
        code = tarn_table_scan(table, o, &stream, &stats, &the_app.err);
        tarn_table_free(table);
    }
    *snapshot_id = stats.snapshot_id;
    if (code == TARN_OK) {
        code = cat_options.count ? count_rows(&stream, rows)
                                 : app_print_stream(&stream, output, cat_options.format, rows);
    }
    if (code == TARN_OK && cat_options.stats) {
        print_stats(&stats);
    }
    return code;
}

static tarn_code cat_table(const char *name, tarn_scan_options *o) {
    int64_t rows = 0;
    int64_t snapshot_id;
    tarn_code code = cat_once(name, o, &rows, &snapshot_id);
    if (code == TARN_OK && cat_options.count) {
        printf("%" PRId64 "\n", rows);
    }
    return code;
}

/* The newest snapshot; -1: the table has none yet. */
static tarn_code newest_snapshot(const char *name, const tarn_scan_options *o, int64_t *out) {
    tarn_table *table = NULL;
    tarn_scan_options none = *o;
    tarn_scan_stats stats = TARN_SCAN_STATS_INIT;
    struct ArrowArrayStream stream;
    tarn_code code = app_table(name, &table, NULL);
    none.limit = 0;
    none.from_snapshot_id = -1;
    none.where = "false";
    if (code == TARN_OK) {
        code = tarn_table_scan(table, &none, &stream, &stats, &the_app.err);
        tarn_table_free(table);
    }
    if (code == TARN_OK) {
        stream.release(&stream);
        *out = stats.snapshot_id;
    }
    return code;
}

/* Appended rows, snapshot by snapshot, until a signal or a failure ends it. */
static tarn_code cat_follow(const char *name, tarn_scan_options *o) {
    const struct timespec pause = {.tv_sec = cat_options.poll_ms / 1000,
                                   .tv_nsec = cat_options.poll_ms % 1000 * 1000000};
    int64_t seen = -1;
    tarn_code code = TARN_OK;
    if (o->from_snapshot_id < 0) {
        code = newest_snapshot(name, o, &seen);
        o->from_snapshot_id = seen > 0 ? seen : 0;
    }
    while (code == TARN_OK) {
        int64_t newest = -1;
        int64_t rows;
        code = newest_snapshot(name, o, &newest);
        if (code == TARN_OK && newest != seen && newest >= 0) {
            code = cat_once(name, o, &rows, &newest);
            seen = newest;
            o->from_snapshot_id = newest;
        } else if (code == TARN_OK) {
            (void)nanosleep(&pause, NULL);
        }
    }
    return code;
}

/* A single file has one state and no metadata tables. */
static tarn_code cat_file(const char *path) {
    const app_file_rows what = {.format = cat_options.format,
                                .columns = cat_options.columns,
                                .where = cat_options.where,
                                .limit = cat_options.limit,
                                .count = cat_options.count};
    if (cat_options.as_of != NULL || cat_options.ref != NULL || cat_options.snapshot_id >= 0 ||
        cat_options.metadata_table != NULL || cat_options.from >= 0 || cat_options.follow) {
        return app_error(TARN_INVALID,
                         "%s is a single file: it has no snapshots and no metadata tables", path);
    }
    return app_print_file(path, &what);
}

/* What goes with what; an exit status, 0: fine. */
static int check_incremental(tarn_scan_options *o) {
    o->from_snapshot_id = cat_options.from;
    if (cat_options.to >= 0 && (cat_options.from < 0 || cat_options.snapshot_id >= 0)) {
        return app_usage("--to goes with --from, and not with --snapshot-id");
    }
    if (cat_options.to >= 0) {
        o->snapshot_id = cat_options.to;
    }
    if (!cat_options.follow) {
        return 0;
    }
    if (o->snapshot_id >= 0 || cat_options.as_of != NULL || cat_options.count ||
        cat_options.output != NULL || cat_options.metadata_table != NULL || o->limit >= 0) {
        return app_usage("--follow prints rows for ever: it takes no --to, --snapshot-id, --as-of, "
                         "--count, --limit, --output and --metadata-table");
    }
    if (cat_options.poll_ms < 1 || cat_options.poll_ms > 3600000) {
        return app_usage("--poll takes 1 to 3600000 milliseconds");
    }
    if (cat_options.format == NULL) {
        cat_options.format = "ndjson";
    }
    return strcmp(cat_options.format, "ndjson") == 0 ? 0 : app_usage("--follow prints ndjson only");
}

int cmd_cat(int argc, char **argv) {
    int n;
    int status;
    tarn_scan_options o = TARN_SCAN_OPTIONS_INIT;
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
    if (cat_options.output != NULL && (cat_options.count || app_is_data_file(args[0]))) {
        return app_usage("--output takes the rows of a table, without --count");
    }
    status = check_incremental(&o);
    if (status != 0) {
        return status;
    }
    tarn_code code = cat_options.output != NULL ? TARN_OK : app_check_format(cat_options.format);
    if (code == TARN_OK) {
        code = app_is_data_file(args[0]) ? cat_file(args[0])
               : cat_options.follow      ? cat_follow(args[0], &o)
                                         : cat_table(args[0], &o);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}
