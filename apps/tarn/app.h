/* apps/tarn/app.h - what commands share: the env, the catalog as the user chose it, tables by name
 * or path, how errors end. */
#ifndef TARN_APP_H
#define TARN_APP_H

#include <tarn/tarn.h>

#include <stdarg.h>

#include "opt.h"

typedef struct app {
    tarn_env *env;
    tarn_error err;
    /* options of every command */
    const char *catalog_uri;
    const char *warehouse;
    const char *moved;           /* FROM=TO */
    opt_list catalog_properties; /* KEY=VALUE */
    bool json;
    bool quiet;
    bool progress;
    bool no_sync;
    int64_t threads;
    bool verbose;
    bool log_json;                /* what is said on standard error is a JSON object a line */
    bool only_looks;              /* it changes nothing: a catalog that is not there is empty */
    bool makes;                   /* the command may make the catalog where there is none */
    const char *shown_catalog;    /* what may be said of the one that was chosen */
    const char *new_catalog;      /* path where there was none when it was opened; else NULL */
    tarn_catalog_handle *catalog; /* opened when first needed */
    void **kept;                  /* freed by app_close */
    size_t n_kept;
    char *moved_from;
    const char *moved_to;
} app;

extern app the_app; /* options are parsed into it; signal handlers reach its env */

/* A line on standard error: "tarn: text", or with log_json an object with event ("error",
 * "warning", "info"), time-ms and message. command (may be NULL) says who. */
void app_say(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_say_list(const char *command, const char *event, const char *fmt, va_list args);
/* Exit status for a code: 0, else the code's number; 130 for CANCELLED. Prints "tarn: message
 * (detail)". Whoever read standard output and went away has seen enough: quiet, and 0. */
int app_fail(tarn_code code);
/* Fills the_app.err; code. */
tarn_code app_error(tarn_code code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The kind of error that errno is of a file that was named: NOT_FOUND, DENIED, else IO. */
tarn_code app_file_code(int os_code);
/* Memory that lives as long as the command: frees ptr in app_close. Returns ptr. */
void *app_keep(void *ptr);
/* Makes the env and catches signals; exit status. */
int app_start(void);
/* A usage error: prints and returns 2. */
int app_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* OK or an error in the_app.err. */
tarn_code app_catalog(tarn_catalog_handle **out);
/* Whether what names the catalog is of a kind that can be opened, without opening it. */
tarn_code app_check_catalog(void);
/* Table by "ns.name", path or URI. metadata_table (may be NULL) gets the last part of
 * "ns.name.snapshots" where no such table exists but ns.name does. */
tarn_code app_table(const char *name, tarn_table **out, const char **metadata_table);
bool app_is_path(const char *name);
/* The last dot outside quotes; NULL: none. */
const char *app_last_dot(const char *name, size_t len);
void app_close(void);

/* What may be shown of a catalog's address, which may hold a password: of others than local ones
 * the scheme. */
const char *app_shown_uri(const char *uri);

/* Properties of the catalog that is opened; a key's first value stays. */
typedef struct app_properties {
    struct {
        const char *key, *value;
    } items[64];
    size_t n;
} app_properties;
void app_put_property(app_properties *to, const char *key, const char *value);
/* Finds name in .pyiceberg.yaml (PYICEBERG_HOME, home, here): uri, warehouse, and what else is said
 * of the catalog into more. False: no such file or name; a broken file is reported on stderr.
 * Strings live as long as the command. */
bool app_pyiceberg(const char *name, const char **uri, const char **warehouse,
                   app_properties *more);

/* An array that was not taken, after a failure. */
void app_drop_array(tarn_code code, struct ArrowArray *array);
/* What get_schema or get_next of a stream said, as a code with its message in the_app.err. */
tarn_code app_stream_error(struct ArrowArrayStream *stream, int status);
/* stream's rows to standard output in a format ("ndjson", "csv", "table"; NULL: table on a
 * terminal, ndjson in a pipe or with --json). Takes the stream. */
tarn_code app_print_stream(struct ArrowArrayStream *stream, const char *path, const char *format,
                           int64_t *rows);
const char *app_format(const char *format);
tarn_code app_check_format(const char *format);

/* Rows of one file, to standard output or (format "count") only their number. */
typedef struct app_file_rows {
    const char *format, *columns, *where;
    int64_t limit; /* -1: all */
    bool count;
} app_file_rows;
tarn_code app_print_file(const char *path, const app_file_rows *what);
/* Whether this names a file of rows, by its ending. */
bool app_is_data_file(const char *path);

/* "1 row", "2 rows": for "%s". */
const char *app_plural(int64_t n);

/* Makes an empty table, and its namespace if that is missing. */
tarn_code app_create_table(tarn_catalog_handle *catalog, const char *table,
                           const tarn_create_options *options);
/* With --json, {"what":"name"} with more members ("\"created\":true") on standard output. */
void app_print_done(const char *what, const char *name, const char *more);

/* KEY=VALUE arguments as a JSON object; NULL after a message. The caller frees. */
char *app_properties_json(const opt_list *list);

/* Commands: argv after the command's name; exit status. */
int cmd_create(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_describe(int argc, char **argv);
int cmd_alter(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_drop(int argc, char **argv);
int cmd_rename(int argc, char **argv);
int cmd_register(int argc, char **argv);
int cmd_ingest(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_changes(int argc, char **argv);
int cmd_delete(int argc, char **argv);
int cmd_update(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_file(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_import(int argc, char **argv);

#endif
