/* apps/tarn/cmd_file.c - single files: rows, schema, metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *format, *input_format, *columns, *where, *null_text, *delimiter, *on_bad_row;
    int64_t limit;
    bool no_header, count;
} file_options = {.limit = -1};

static const opt_spec FILE_SPECS[] = {
    {"format", 'f', OPT_TEXT, &file_options.format, "NAME",
     "cat: ndjson, csv or table (default: table on a terminal, else ndjson)"},
    {"input-format", 0, OPT_TEXT, &file_options.input_format, "NAME",
     "parquet, avro, ndjson, csv, json (default: by name, then by content)"},
    {"columns", 0, OPT_TEXT, &file_options.columns, "NAMES", "cat: comma separated"},
    {"where", 'w', OPT_TEXT, &file_options.where, "FILTER",
     "cat: only rows for which this is true"},
    {"limit", 'n', OPT_NUMBER, &file_options.limit, "N", "cat: at most N rows"},
    {"count", 0, OPT_FLAG, &file_options.count, "", "cat: print the number of rows only"},
    {"on-bad-row", 0, OPT_TEXT, &file_options.on_bad_row, "WHAT",
     "cat: stop (default), or skip: bad rows are left out, each with a line on\nstandard error"},
    {"null-text", 0, OPT_TEXT, &file_options.null_text, "TEXT", "CSV: this text is null"},
    {"delimiter", 0, OPT_TEXT, &file_options.delimiter, "CHAR", "CSV: between fields"},
    {"no-header", 0, OPT_FLAG, &file_options.no_header, "", "CSV: no line of names"},
};

const opt_command file_command = {
    "file",
    "cat|schema|meta FILE...",
    "look into Parquet, Avro, NDJSON, CSV, Puffin and metadata files",
    "  cat     rows (of manifests and manifest lists: entries; of a metadata JSON: the document)\n"
    "  schema  the schema as the format itself writes it\n"
    "  meta    footer or header as JSON: row groups, statistics, codecs, key-value metadata, "
    "blobs\n"
    "\"-\" is standard input, with --input-format.\n\nExample:\n"
    "  tarn file cat warehouse/app/events/metadata/*-m0.avro",
    2,
    -1,
    FILE_SPECS,
    sizeof FILE_SPECS / sizeof FILE_SPECS[0]};

static int skip_row(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    (void)raw;
    (void)raw_len;
    fprintf(stderr, "tarn: %s: row %" PRId64 " was left out: %s\n", *(const char **)ctx, line,
            reason);
    return 0;
}

static void fill_options(tarn_file_options *o) {
    *o = (tarn_file_options)TARN_FILE_OPTIONS_INIT;
    o->format = file_options.input_format;
    o->null_text = file_options.null_text;
    o->csv_delimiter = file_options.delimiter;
    o->csv_no_header = file_options.no_header;
}

/* Cuts an array to its first rows; it is the last one printed. */
static void cut_rows(struct ArrowArray *array, int64_t rows) {
    if (array->length > rows) {
        array->length = rows;
    }
}

static tarn_code count_rows(tarn_file_reader *reader, int64_t limit) {
    int64_t rows = 0;
    tarn_code code = TARN_OK;
    while (code == TARN_OK && (limit < 0 || rows < limit)) {
        struct ArrowArray array;
        code = tarn_file_next(reader, &array, &the_app.err);
        if (code != TARN_OK || array.release == NULL) {
            break;
        }
        rows += array.length;
        array.release(&array);
    }
    if (code == TARN_OK) {
        printf("%" PRId64 "\n", limit >= 0 && rows > limit ? limit : rows);
    }
    return code;
}

static tarn_code write_rows(tarn_file_reader *reader, tarn_file_writer *writer, int64_t left) {
    tarn_code code = TARN_OK;
    while (code == TARN_OK && left != 0) {
        struct ArrowArray array;
        code = tarn_file_next(reader, &array, &the_app.err);
        if (code != TARN_OK || array.release == NULL) {
            break;
        }
        if (left > 0) {
            cut_rows(&array, left);
            left -= array.length;
        }
        code = tarn_file_writer_write(writer, &array, &the_app.err);
        app_drop_array(code, &array);
    }
    return code;
}

static tarn_code print_rows(tarn_file_reader *reader, const char *format, int64_t limit) {
    struct ArrowSchema schema;
    tarn_file_options o = TARN_FILE_OPTIONS_INIT;
    tarn_file_writer *writer = NULL;
    memset(&schema, 0, sizeof schema);
    o.format = app_format(format);
    tarn_code code = tarn_file_schema(reader, &schema, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_file_writer_open(the_app.env, "-", &schema, &o, &writer, &the_app.err);
    }
    if (code == TARN_OK) {
        code = write_rows(reader, writer, limit);
    }
    if (code == TARN_OK) {
        code = tarn_file_writer_close(writer, &the_app.err);
    } else {
        tarn_file_writer_abort(writer);
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    return code;
}

static tarn_code print_text(tarn_code (*get)(tarn_file_reader *, char **, tarn_error *),
                            tarn_file_reader *reader) {
    char *text = NULL;
    tarn_code code = get(reader, &text, &the_app.err);
    if (code == TARN_OK) {
        printf("%s\n", text);
    }
    tarn_text_free(the_app.env, text);
    return code;
}

tarn_code app_print_file(const char *path, const app_file_rows *what) {
    tarn_file_options o;
    tarn_file_reader *reader = NULL;
    const char *name = path;
    fill_options(&o);
    if (file_options.on_bad_row != NULL && strcmp(file_options.on_bad_row, "skip") == 0) {
        o.reject = skip_row;
        o.reject_ctx = &name;
    }
    o.columns = what->columns;
    o.where = what->where;
    if (what->limit >= 0 && what->limit < 16384) {
        o.batch_rows = what->limit > 0 ? what->limit : 1;
    }
    tarn_code code = tarn_file_open(the_app.env, path, &o, &reader, &the_app.err);
    if (code == TARN_OK && strcmp(tarn_file_reader_format(reader), "json") == 0) {
        code = print_text(tarn_file_meta_json, reader);
    } else if (code == TARN_OK) {
        code = what->count ? count_rows(reader, what->limit)
                           : print_rows(reader, what->format, what->limit);
    }
    tarn_file_close(reader);
    return code;
}

static tarn_code show_file(const char *what, const char *path) {
    tarn_file_options o;
    tarn_file_reader *reader = NULL;
    const app_file_rows rows = {.format = file_options.format,
                                .columns = file_options.columns,
                                .where = file_options.where,
                                .limit = file_options.limit,
                                .count = file_options.count};
    if (strcmp(what, "cat") == 0) {
        return app_print_file(path, &rows);
    }
    fill_options(&o);
    tarn_code code = tarn_file_open(the_app.env, path, &o, &reader, &the_app.err);
    if (code == TARN_OK) {
        code = print_text(
            strcmp(what, "schema") == 0 ? tarn_file_native_schema : tarn_file_meta_json, reader);
    }
    tarn_file_close(reader);
    return code;
}

int cmd_file(int argc, char **argv) {
    int n;
    int status;
    const char **args = command_begin(&file_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    if (strcmp(args[0], "cat") != 0 && strcmp(args[0], "schema") != 0 &&
        strcmp(args[0], "meta") != 0) {
        return app_usage("file takes cat, schema or meta, not \"%s\"", args[0]);
    }
    const char *bad = file_options.on_bad_row;
    if (bad != NULL && strcmp(bad, "stop") != 0 && strcmp(bad, "skip") != 0) {
        return app_usage("--on-bad-row takes stop or skip, not \"%s\"", bad);
    }
    tarn_code code = app_check_format(file_options.format);
    for (int i = 1; i < n && code == TARN_OK; i++) {
        code = show_file(args[0], args[i]);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}
