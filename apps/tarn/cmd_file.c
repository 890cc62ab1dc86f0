/* apps/tarn/cmd_file.c - single files: rows, schema, metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *format, *input_format, *columns, *where, *null_text, *delimiter;
    int64_t limit;
    bool no_header;
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
    {"null-text", 0, OPT_TEXT, &file_options.null_text, "TEXT", "CSV: this text is null"},
    {"delimiter", 0, OPT_TEXT, &file_options.delimiter, "CHAR", "CSV: between fields"},
    {"no-header", 0, OPT_FLAG, &file_options.no_header, "", "CSV: no line of names"},
};

const opt_command file_command = {
    "file",
    "cat|schema|meta FILE...",
    "look into Parquet, Avro, NDJSON, CSV and metadata files",
    "  cat     rows (of manifests and manifest lists: entries; of a metadata JSON: the document)\n"
    "  schema  the schema as the format itself writes it\n"
    "  meta    footer or header as JSON: row groups, statistics, codecs, key-value "
    "metadata\n\nExample:\n"
    "  tarn file cat warehouse/app/events/metadata/*-m0.avro",
    2,
    -1,
    FILE_SPECS,
    sizeof FILE_SPECS / sizeof FILE_SPECS[0]};

static void fill_options(tarn_file_options *o) {
    *o = (tarn_file_options)TARN_FILE_OPTIONS_INIT;
    o->format = file_options.input_format;
    o->columns = file_options.columns;
    o->where = file_options.where;
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

static tarn_code print_rows(tarn_file_reader *reader) {
    struct ArrowSchema schema;
    tarn_file_options o = TARN_FILE_OPTIONS_INIT;
    tarn_file_writer *writer = NULL;
    int64_t left = file_options.limit;
    memset(&schema, 0, sizeof schema);
    o.format = file_options.format != NULL ? file_options.format
               : isatty(STDOUT_FILENO)     ? "table"
                                           : "ndjson";
    tarn_code code = tarn_file_schema(reader, &schema, &the_app.err);
    if (code == TARN_OK) {
        code = tarn_file_writer_open(the_app.env, "-", &schema, &o, &writer, &the_app.err);
    }
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
        if (code != TARN_OK) {
            array.release(&array);
        }
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

static tarn_code show_file(const char *what, const char *path) {
    tarn_file_options o;
    tarn_file_reader *reader = NULL;
    char *text = NULL;
    fill_options(&o);
    tarn_code code = tarn_file_open(the_app.env, path, &o, &reader, &the_app.err);
    if (code == TARN_OK && strcmp(what, "cat") == 0) {
        code = print_rows(reader);
    } else if (code == TARN_OK && strcmp(what, "schema") == 0) {
        code = tarn_file_native_schema(reader, &text, &the_app.err);
    } else if (code == TARN_OK) {
        code = tarn_file_meta_json(reader, &text, &the_app.err);
    }
    if (code == TARN_OK && text != NULL) {
        printf("%s\n", text);
    }
    tarn_text_free(the_app.env, text);
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
    for (int i = 1; i < n; i++) {
        tarn_code code = show_file(args[0], args[i]);
        if (code != TARN_OK) {
            return app_fail(code);
        }
    }
    return 0;
}
