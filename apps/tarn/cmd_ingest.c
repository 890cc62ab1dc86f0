/* apps/tarn/cmd_ingest.c - rows of files into a table, with a commit at every checkpoint.
 *
 *   for each file: read batches -> sink; rows since the last checkpoint >= --checkpoint-rows?
 * commit at the end: commit the rest. An error or Ctrl-C: what is not committed is removed, what is
 * stays. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"
#include "json.h"

#define CLEAR_REST "\033[K" /* of the line, on a terminal */

static struct {
    const char *format, *schema, *partition_by, *sort_by, *identifiers, *null_text, *delimiter,
        *quote, *rejects, *on_bad_row, *branch, *mode, *where;
    int64_t checkpoint_rows, memory_mb;
    bool create, no_header, ignore_unknown, merge;
    opt_list properties;
} ingest_options;

static const opt_spec INGEST_SPECS[] = {
    {"create", 0, OPT_FLAG, &ingest_options.create, "",
     "make the table from the data if it is not there"},
    {"schema", 0, OPT_TEXT, &ingest_options.schema, "TEXT",
     "with --create: columns, instead of what the data suggests"},
    {"partition-by", 0, OPT_TEXT, &ingest_options.partition_by, "TEXT",
     "with --create: \"month(time_hour), bucket(16, carrier)\""},
    {"sort-by", 0, OPT_TEXT, &ingest_options.sort_by, "TEXT",
     "with --create: the table's sort order"},
    {"identifier", 0, OPT_TEXT, &ingest_options.identifiers, "COLUMNS",
     "with --create: identifier fields"},
    {"property", 'p', OPT_LIST, &ingest_options.properties, "KEY=VALUE",
     "with --create: table property"},
    {"format", 'f', OPT_TEXT, &ingest_options.format, "NAME",
     "ndjson, csv, parquet, avro (default: by name, then by content)"},
    {"checkpoint-rows", 0, OPT_NUMBER, &ingest_options.checkpoint_rows, "N",
     "commit whenever at least N rows are waiting (default: once, at the end)"},
    {"mode", 0, OPT_TEXT, &ingest_options.mode, "MODE",
     "append (default), overwrite (all rows, or those of --where),\nor replace-partitions (those "
     "that the data has rows of)"},
    {"where", 'w', OPT_TEXT, &ingest_options.where, "FILTER",
     "with --mode overwrite: which rows are replaced"},
    {"branch", 0, OPT_TEXT, &ingest_options.branch, "NAME",
     "commit to this branch instead of main"},
    {"null-text", 0, OPT_TEXT, &ingest_options.null_text, "TEXT",
     "CSV: this text is null, besides the empty one"},
    {"delimiter", 0, OPT_TEXT, &ingest_options.delimiter, "CHAR",
     "CSV: between fields (default ,)"},
    {"quote", 0, OPT_TEXT, &ingest_options.quote, "CHAR", "CSV: around fields (default \")"},
    {"no-header", 0, OPT_FLAG, &ingest_options.no_header, "",
     "CSV: no line of names; columns go by position"},
    {"ignore-unknown", 0, OPT_FLAG, &ingest_options.ignore_unknown, "",
     "members that the table has no column for are left out, not rejected"},
    {"on-bad-row", 0, OPT_TEXT, &ingest_options.on_bad_row, "WHAT",
     "NDJSON, CSV: stop (default), skip, or reject (default with\n--rejects)"},
    {"rejects", 0, OPT_TEXT, &ingest_options.rejects, "FILE",
     "bad rows go here as JSON lines: file, line, reason, row"},
    {"merge-append", 0, OPT_FLAG, &ingest_options.merge, "",
     "merge small manifests while committing"},
    {"memory-mb", 0, OPT_NUMBER, &ingest_options.memory_mb, "N",
     "memory for open files (default 128)"},
};

const opt_command ingest_command = {
    "ingest",
    "TABLE FILE...|-",
    "write rows of files, or of standard input, into a table",
    "Files may be NDJSON, CSV (both also gzip or zstd compressed), Parquet or Avro. Rows are "
    "committed at checkpoints; whatever\n"
    "happens, the table holds every committed row once and nothing of the rest.\n\nExamples:\n"
    "  tarn ingest app.flights flights.csv.gz --create --null-text NA \\\n"
    "      --partition-by \"month(time_hour), bucket(16, carrier)\" --checkpoint-rows 100000\n"
    "  zcat events.ndjson.gz | tarn ingest app.events - --format ndjson --rejects bad.ndjson",
    2,
    -1,
    INGEST_SPECS,
    sizeof INGEST_SPECS / sizeof INGEST_SPECS[0]};

typedef struct ingest {
    const char *table_name;
    const char *path; /* of the present file */
    char *properties; /* JSON */
    tarn_table *table;
    tarn_sink *sink;
    tarn_file_reader *first; /* a pipe, opened before there was a table */
    FILE *rejects;
    bool skip_bad;
    bool rejects_failed; /* a row could not be set aside */
    bool created;
    int64_t rows, waiting, rejected, commits, files;
    int64_t last_snapshot;
    struct timespec started;
    double shown_at;
    bool show;
} ingest;

static double seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* One line on a terminal, written again and again; in a log, a line each time. */
static void show_progress(ingest *in, const tarn_file_reader *reader) {
    double elapsed = seconds_since(&in->started);
    int64_t done = 0;
    int64_t total = -1;
    if (!in->show || elapsed - in->shown_at < 0.2) {
        return;
    }
    in->shown_at = elapsed;
    tarn_file_progress(reader, &done, &total);
    bool terminal = isatty(STDERR_FILENO) != 0;
    const char *slash = strrchr(in->path, '/');
    const char *name = slash != NULL                ? slash + 1
                       : strcmp(in->path, "-") == 0 ? "standard input"
                                                    : in->path;
    fprintf(stderr, "%s%s: ", terminal ? "\r" : "", name);
    if (total > 0) { /* what was read of the file may not be decoded yet */
        fprintf(stderr, "%2d%%  ", done < total ? (int)(done * 100 / total) : 99);
    }
    fprintf(stderr, "%" PRId64 " row%s, %.0f rows/s, %" PRId64 " commit%s%s%s", in->rows,
            app_plural(in->rows), (double)in->rows / elapsed, in->commits, app_plural(in->commits),
            in->rejected > 0 ? ", with bad rows" : "", terminal ? CLEAR_REST : "\n");
    fflush(stderr);
}

static void end_progress(const ingest *in) {
    if (in->show && in->shown_at > 0 && isatty(STDERR_FILENO)) {
        fputs("\r" CLEAR_REST, stderr);
    }
}

static int on_reject(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    ingest *in = ctx;
    in->rejected++;
    if (in->rejects != NULL) {
        text t = {0};
        text_add(&t, "{\"file\":");
        text_add_json(&t, in->path);
        text_add(&t, ",\"line\":%" PRId64 ",\"reason\":", line);
        text_add_json(&t, reason);
        text_add(&t, ",\"row\":");
        if (!text_add_json_bytes(&t, raw, raw_len)) {
            text_add(&t, ",\"row-hex\":\"");
            for (size_t i = 0; i < raw_len; i++) {
                text_add(&t, "%02x", (unsigned char)raw[i]);
            }
            text_add(&t, "\"");
        }
        text_add(&t, "}\n");
        in->rejects_failed |= fwrite(t.data, 1, t.len, in->rejects) != t.len;
        free(t.data);
        return in->rejects_failed ? -1 : 0; /* a row that can't be set aside must not be lost */
    }
    return in->skip_bad ? 0 : -1;
}

static void fill_file_options(ingest *in, tarn_file_options *o, const struct ArrowSchema *schema) {
    *o = (tarn_file_options)TARN_FILE_OPTIONS_INIT;
    o->format = ingest_options.format;
    o->null_text = ingest_options.null_text;
    o->csv_delimiter = ingest_options.delimiter;
    o->csv_quote = ingest_options.quote;
    o->csv_no_header = ingest_options.no_header;
    o->ignore_unknown = ingest_options.ignore_unknown;
    o->schema = schema;
    int64_t n = ingest_options.checkpoint_rows;
    o->batch_rows = n > 0 && n < 16384 ? n : 0;
    if (in->rejects != NULL || in->skip_bad) {
        o->reject = on_reject;
        o->reject_ctx = in;
    }
}

/* Standard input, a named pipe, <(...): it can be read once only. */
static bool is_pipe(const char *path) {
    struct stat info;
    return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

/* What the data suggests. The reader of a pipe is kept. */
static tarn_code suggest_schema(ingest *in, const char *path, struct ArrowSchema *schema) {
    tarn_file_options o;
    tarn_file_reader *reader = NULL;
    in->path = path;
    fill_file_options(in, &o, NULL);
    tarn_code code = tarn_file_open(the_app.env, path, &o, &reader, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_file_schema(reader, schema, &the_app.err);
    }
    if (code == TARN_OK && schema->n_children == 0) {
        code = app_error(TARN_INVALID,
                         "%s holds nothing to make columns of; --schema says what they are",
                         strcmp(path, "-") == 0 ? "standard input" : path);
    }
    if (code == TARN_OK && is_pipe(path)) {
        in->first = reader;
        return TARN_OK;
    }
    tarn_file_close(reader);
    return code;
}

static tarn_code create_table(ingest *in, tarn_catalog_handle *catalog, const char *path) {
    tarn_create_options o = TARN_CREATE_OPTIONS_INIT;
    struct ArrowSchema schema;
    tarn_code code = TARN_OK;
    memset(&schema, 0, sizeof schema);
    o.schema_text = ingest_options.schema;
    if (o.schema_text == NULL) {
        code = suggest_schema(in, path, &schema);
        o.schema_arrow = &schema;
    }
    if (code == TARN_OK) {
        o.partition_by = ingest_options.partition_by;
        o.sort_by = ingest_options.sort_by;
        o.identifiers = ingest_options.identifiers;
        o.properties_json = in->properties;
        code = app_create_table(catalog, in->table_name, &o);
        in->created = code == TARN_OK;
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    return code == TARN_CONFLICT ? TARN_OK : code; /* somebody else made it meanwhile */
}

static void warn_if_there(const ingest *in) {
    bool asked = ingest_options.schema != NULL || ingest_options.partition_by != NULL ||
                 ingest_options.sort_by != NULL || ingest_options.identifiers != NULL ||
                 ingest_options.properties.count > 0;
    if (asked && !the_app.quiet) {
        fprintf(
            stderr,
            "tarn: table %s exists and stays as it is: the options of --create are not applied\n",
            in->table_name);
    }
}

static tarn_code open_table(ingest *in, const char *first_path) {
    tarn_catalog_handle *catalog;
    tarn_code code = app_catalog(&catalog);
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_table_load(catalog, in->table_name, &in->table, &the_app.err);
    if (code == TARN_OK && ingest_options.create) {
        warn_if_there(in);
    } else if (code == TARN_NOT_FOUND && ingest_options.create) {
        code = create_table(in, catalog, first_path);
        if (code == TARN_OK) {
            code = tarn_table_load(catalog, in->table_name, &in->table, &the_app.err);
        }
    }
    return code;
}

static tarn_code open_sink(ingest *in) {
    tarn_sink_options o = TARN_SINK_OPTIONS_INIT;
    const char *mode = ingest_options.mode != NULL ? ingest_options.mode : "append";
    o.mode = strcmp(mode, "overwrite") == 0            ? TARN_SINK_OVERWRITE
             : strcmp(mode, "replace-partitions") == 0 ? TARN_SINK_REPLACE_PARTITIONS
                                                       : TARN_SINK_APPEND;
    o.overwrite_where = ingest_options.where;
    o.branch = ingest_options.branch;
    o.merge_manifests = ingest_options.merge;
    o.memory_bytes = (uint64_t)ingest_options.memory_mb << 20;
    return tarn_sink_open(in->table, &o, &in->sink, &the_app.err);
}

static tarn_code rejects_error(void) {
    return app_error(errno == EACCES   ? TARN_DENIED
                     : errno == ENOENT ? TARN_NOT_FOUND
                                       : TARN_IO,
                     "rejects file %s could not be written: %s", ingest_options.rejects,
                     strerror(errno));
}

/* Bad rows are set aside before the good ones around them are there. */
static tarn_code checkpoint(ingest *in) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    if (in->rejects != NULL && fflush(in->rejects) != 0) {
        return rejects_error();
    }
    tarn_code code = tarn_sink_commit(in->sink, &outcome, &the_app.err);
    if (code == TARN_OK && outcome.state == TARN_COMMIT_DONE) {
        in->commits++;
        in->files += outcome.files_added;
        in->last_snapshot = outcome.snapshot_id;
    }
    if (code == TARN_OK) {
        in->waiting = 0;
    }
    return code;
}

/* Rows that do not fit are of this file; the table knows only that they do not fit. */
static void name_input(const ingest *in, tarn_code code) {
    tarn_error *err = &the_app.err;
    if (code == TARN_INVALID && strstr(err->message, in->path) == NULL && err->detail[0] == '\0') {
        snprintf(err->detail, sizeof err->detail, "file %s", in->path);
    }
}

static tarn_code ingest_batches(ingest *in, tarn_file_reader *reader,
                                const struct ArrowSchema *schema) {
    tarn_code code = TARN_OK;
    while (code == TARN_OK) {
        struct ArrowArray array;
        code = tarn_file_next(reader, &array, &the_app.err);
        if (code != TARN_OK || array.release == NULL) {
            break;
        }
        int64_t rows = array.length;
        code = tarn_sink_write(in->sink, schema, &array, &the_app.err);
        if (code != TARN_OK) {
            name_input(in, code);
            app_drop_array(code, &array);
            break;
        }
        in->rows += rows;
        in->waiting += rows;
        if (ingest_options.checkpoint_rows > 0 && in->waiting >= ingest_options.checkpoint_rows) {
            code = checkpoint(in);
        }
        show_progress(in, reader);
    }
    return code;
}

static bool has_column(const struct ArrowSchema *schema, const char *name) {
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (strcmp(schema->children[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The columns of a file that the table has, as --columns takes them; *all: none is unknown. */
static char *known_columns(const struct ArrowSchema *file, const struct ArrowSchema *table,
                           bool *all) {
    text t = {0};
    *all = true;
    text_add(&t, "%s", "");
    for (int64_t i = 0; i < file->n_children; i++) {
        const char *name = file->children[i]->name;
        if (!has_column(table, name)) {
            *all = false;
            continue;
        }
        text_add(&t, "%s\"", t.len > 0 ? "," : "");
        for (const char *c = name; *c != '\0'; c++) {
            text_add(&t, *c == '"' ? "\"\"" : "%c", *c);
        }
        text_add(&t, "\"");
    }
    return t.data;
}

/* Parquet and Avro files have a schema of their own; with --ignore-unknown only what the table has
 * is read of them. Text formats do that by themselves. */
static tarn_code open_input(ingest *in, const char *path, const struct ArrowSchema *table,
                            tarn_file_reader **reader, struct ArrowSchema *schema) {
    tarn_file_options o;
    fill_file_options(in, &o, table);
    tarn_code code = tarn_file_open(the_app.env, path, &o, reader, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_file_schema(*reader, schema, &the_app.err);
    }
    if (code != TARN_OK || !ingest_options.ignore_unknown || is_pipe(path)) {
        return code;
    }
    bool all;
    char *columns = known_columns(schema, table, &all);
    if (!all) {
        schema->release(schema);
        tarn_file_close(*reader);
        *reader = NULL;
        o.columns = columns[0] != '\0' ? columns : NULL;
        code = tarn_file_open(the_app.env, path, &o, reader, &the_app.err);
    }
    if (!all && code == TARN_OK) {
        code = tarn_file_schema(*reader, schema, &the_app.err);
    }
    free(columns);
    return code;
}

static tarn_code ingest_file(ingest *in, const char *path) {
    tarn_file_reader *reader = NULL;
    struct ArrowSchema table_schema;
    struct ArrowSchema schema;
    memset(&schema, 0, sizeof schema);
    in->path = path;
    tarn_code code = tarn_table_schema_arrow(in->table, &table_schema, &the_app.err);
    if (code != TARN_OK) {
        return code;
    }
    if (in->first != NULL) {
        reader = in->first;
        in->first = NULL;
        code = tarn_file_schema(reader, &schema, &the_app.err);
    } else {
        code = open_input(in, path, &table_schema, &reader, &schema);
    }
    if (code == TARN_OK) {
        code = ingest_batches(in, reader, &schema);
    }
    tarn_file_close(reader);
    table_schema.release(&table_schema);
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    return code;
}

/* Inputs are looked at before anything is made; none may be the file that bad rows go to. */
static tarn_code check_inputs(const char **paths, int n) {
    struct stat input;
    struct stat rejects;
    bool there = ingest_options.rejects != NULL && stat(ingest_options.rejects, &rejects) == 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(paths[i], "-") == 0 || strncmp(paths[i], "file:", 5) == 0) {
            continue;
        }
        if (stat(paths[i], &input) != 0 || access(paths[i], R_OK) != 0) {
            return app_error(errno == EACCES   ? TARN_DENIED
                             : errno == ENOENT ? TARN_NOT_FOUND
                                               : TARN_IO,
                             "file %s could not be opened: %s", paths[i], strerror(errno));
        }
        if (S_ISDIR(input.st_mode)) {
            return app_error(TARN_INVALID, "%s is a folder, not a file", paths[i]);
        }
        if (there && input.st_dev == rejects.st_dev && input.st_ino == rejects.st_ino) {
            return app_error(TARN_INVALID, "--rejects %s would overwrite an input", paths[i]);
        }
    }
    if (there && S_ISREG(rejects.st_mode) && rejects.st_size > 0) {
        return app_error(TARN_CONFLICT, "--rejects %s is there already and is not overwritten",
                         ingest_options.rejects);
    }
    return TARN_OK;
}

static int check_options(void) {
    const char *what = ingest_options.on_bad_row;
    const char *mode = ingest_options.mode;
    if (what != NULL && strcmp(what, "stop") != 0 && strcmp(what, "skip") != 0 &&
        strcmp(what, "reject") != 0) {
        return app_usage("--on-bad-row takes stop, skip or reject, not \"%s\"", what);
    }
    if (mode != NULL && strcmp(mode, "append") != 0 && strcmp(mode, "overwrite") != 0 &&
        strcmp(mode, "replace-partitions") != 0) {
        return app_usage("--mode takes append, overwrite or replace-partitions, not \"%s\"", mode);
    }
    if (mode != NULL && strcmp(mode, "append") != 0 && ingest_options.checkpoint_rows > 0) {
        return app_usage("--mode %s replaces rows in one commit; it takes no --checkpoint-rows",
                         mode);
    }
    if (ingest_options.where != NULL && (mode == NULL || strcmp(mode, "overwrite") != 0)) {
        return app_usage("--where goes with --mode overwrite");
    }
    if (what != NULL && strcmp(what, "reject") == 0 && ingest_options.rejects == NULL) {
        return app_usage("--on-bad-row reject needs --rejects FILE");
    }
    if (what != NULL && strcmp(what, "reject") != 0 && ingest_options.rejects != NULL) {
        return app_usage("--rejects goes with --on-bad-row reject, not %s", what);
    }
    return 0;
}

static void print_result(const ingest *in) {
    double elapsed = seconds_since(&in->started);
    if (the_app.json) {
        char id[32] = "null";
        if (in->last_snapshot >= 0) {
            snprintf(id, sizeof id, "%" PRId64, in->last_snapshot);
        }
        printf("{\"rows\":%" PRId64 ",\"rejected\":%" PRId64 ",\"commits\":%" PRId64
               ",\"files\":%" PRId64 ",\"snapshot-id\":%s,\"seconds\":%.3f}\n",
               in->rows, in->rejected, in->commits, in->files, id, elapsed);
    } else if (!the_app.quiet) {
        fprintf(stderr, "%" PRId64 " row%s in %" PRId64 " file%s and %" PRId64 " commit%s, %.1f s",
                in->rows, app_plural(in->rows), in->files, app_plural(in->files), in->commits,
                app_plural(in->commits), elapsed);
        if (in->rejected > 0) {
            fprintf(stderr, "; %" PRId64 " bad row%s %s%s", in->rejected, app_plural(in->rejected),
                    ingest_options.rejects != NULL ? "set aside in " : "skipped",
                    ingest_options.rejects != NULL ? ingest_options.rejects : "");
        }
        fprintf(stderr, "\n");
    }
}

static int finish(ingest *in, tarn_code code) {
    if (code != TARN_OK && code != TARN_CANCELLED && in->rejects_failed) {
        code = rejects_error();
    }
    bool closed = in->rejects == NULL || fclose(in->rejects) == 0;
    if (code == TARN_OK && !closed) {
        code = rejects_error();
    }
    tarn_env_cancel_reset(the_app.env); /* cleaning up is not cancelled */
    tarn_file_close(in->first);
    tarn_sink_free(in->sink);
    tarn_table_free(in->table);
    if (in->created && in->commits == 0 && code != TARN_OK && code != TARN_COMMIT_UNKNOWN) {
        /* so that the corrected command makes it again, with its own columns and partitions */
        tarn_code dropped = tarn_catalog_drop_table(the_app.catalog, in->table_name, true, NULL);
        in->created = dropped != TARN_OK;
    }
    free(in->properties);
    end_progress(in);
    if (code == TARN_OK) {
        print_result(in);
        return 0;
    }
    int status = app_fail(code);
    if (in->commits > 0) {
        fprintf(stderr,
                "tarn: %" PRId64 " row%s of %" PRId64 " commit%s stay; what was read after them is "
                "not in the table\n",
                in->rows - in->waiting, app_plural(in->rows - in->waiting), in->commits,
                app_plural(in->commits));
    } else if (in->created) {
        fprintf(stderr, "tarn: table %s was made and is empty\n", in->table_name);
    }
    return status;
}

static tarn_code open_rejects(ingest *in) {
    const char *what = ingest_options.on_bad_row;
    in->skip_bad = what != NULL && strcmp(what, "skip") == 0;
    if (ingest_options.rejects != NULL) {
        in->rejects = fopen(ingest_options.rejects, "wb");
        return in->rejects != NULL ? TARN_OK : rejects_error();
    }
    return TARN_OK;
}

int cmd_ingest(int argc, char **argv) {
    int n;
    int status;
    ingest in;
    memset(&in, 0, sizeof in);
    in.last_snapshot = -1;
    in.shown_at = -1; /* the first rows are shown at once */
    const char **args = command_begin(&ingest_command, argc, argv, &n, &status);
    status = n < 0 ? status : check_options();
    if (n < 0 || status != 0) {
        return status;
    }
    in.table_name = args[0];
    in.show = !the_app.quiet && (the_app.progress || isatty(STDERR_FILENO));
    the_app.makes = ingest_options.create;
    clock_gettime(CLOCK_MONOTONIC, &in.started);
    in.properties = app_properties_json(&ingest_options.properties);
    if (in.properties == NULL) {
        return TARN_INVALID;
    }
    tarn_code code = check_inputs(args + 1, n - 1);
    if (code == TARN_OK) {
        code = open_rejects(&in);
    }
    if (code == TARN_OK) {
        code = open_table(&in, args[1]);
    }
    if (code == TARN_OK) {
        code = open_sink(&in);
    }
    for (int i = 1; i < n && code == TARN_OK; i++) {
        code = ingest_file(&in, args[i]);
    }
    if (code == TARN_OK) {
        code = checkpoint(&in);
    }
    return finish(&in, code);
}
