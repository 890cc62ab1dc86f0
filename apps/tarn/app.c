/* apps/tarn/app.c - see app.h. */
#include "app.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json.h"

app the_app = {.err = TARN_ERROR_INIT};

static void say_json(const char *event, const char *fmt, va_list args) {
    text t = {0};
    char message[4096];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    vsnprintf(message, sizeof message, fmt, args);
    text_add(&t, "{\"event\":\"%s\",\"time-ms\":%" PRId64 ",\"message\":", event,
             (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    text_add_json(&t, message);
    text_add(&t, "}\n");
    fputs(t.data, stderr);
    free(t.data);
}

void app_say_list(const char *command, const char *event, const char *fmt, va_list args) {
    if (the_app.log_json) {
        say_json(event, fmt, args);
        return;
    }
    bool named = command != NULL && command[0] != '\0';
    fprintf(stderr, "tarn%s%s: ", named ? " " : "", named ? command : "");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
}

void app_say(const char *event, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    app_say_list(NULL, event, fmt, args);
    va_end(args);
}

int app_fail(tarn_code code) {
    const tarn_error *err = &the_app.err;
    const char *message =
        err->code == code && err->message[0] != '\0' ? err->message : tarn_code_text(code);
    if (code == TARN_IO && err->code == code && err->os_code == EPIPE) {
        return 0;
    }
    bool more = err->code == code && err->detail[0] != '\0';
    bool where = !more && code == TARN_NOT_FOUND && the_app.shown_catalog != NULL &&
                 strncmp(message, "table ", 6) == 0;
    const char *detail = more ? err->detail : where ? the_app.shown_catalog : "";
    bool any = more || where;
    app_say("error", "%s%s%s%s%s", message, any ? " (" : "", where ? "catalog " : "", detail,
            any ? ")" : "");
    return code == TARN_CANCELLED ? 130 : (int)code;
}

int app_usage(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    app_say_list(NULL, "error", fmt, args);
    va_end(args);
    return TARN_INVALID;
}

tarn_code app_error(tarn_code code, const char *fmt, ...) {
    va_list args;
    the_app.err.code = code;
    the_app.err.os_code = 0;
    the_app.err.detail[0] = '\0';
    va_start(args, fmt);
    vsnprintf(the_app.err.message, sizeof the_app.err.message, fmt, args);
    va_end(args);
    return code;
}

void *app_keep(void *ptr) {
    void **kept = realloc(the_app.kept, (the_app.n_kept + 1) * sizeof *kept);
    if (kept == NULL) {
        fprintf(stderr, "tarn: out of memory\n");
        exit(TARN_NOMEM);
    }
    the_app.kept = kept;
    kept[the_app.n_kept++] = ptr;
    return ptr;
}

const char *app_plural(int64_t n) {
    return n == 1 ? "" : "s";
}

/* --moved FROM=TO, split once. */
static tarn_code split_moved(void) {
    if (the_app.moved == NULL || the_app.moved_from != NULL) {
        return TARN_OK;
    }
    char *copy = strdup(the_app.moved);
    char *equals = copy != NULL ? strchr(copy, '=') : NULL;
    if (equals == NULL) {
        free(copy);
        return app_error(TARN_INVALID, "--moved takes FROM=TO, not \"%s\"", the_app.moved);
    }
    *equals = '\0';
    the_app.moved_from = copy;
    the_app.moved_to = equals + 1;
    return TARN_OK;
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_local(const char *uri) {
    return begins(uri, "sqlite:") || begins(uri, "dir:");
}

static bool has_scheme(const char *uri) {
    return is_local(uri) || begins(uri, "postgresql:") || begins(uri, "postgres:") ||
           begins(uri, "postgresql+") || begins(uri, "postgres+") || begins(uri, "http://") ||
           begins(uri, "https://");
}

const char *app_shown_uri(const char *uri) {
    if (is_local(uri)) {
        return uri;
    }
    const char *colon = strchr(uri, ':');
    size_t len = colon != NULL ? (size_t)(colon - uri) : 0;
    char *out = colon != NULL ? app_keep(malloc(len + 5)) : NULL;
    if (out == NULL) {
        return colon != NULL ? "..." : uri;
    }
    memcpy(out, uri, len);
    memcpy(out + len, ":...", 5);
    return out;
}

void app_put_property(app_properties *to, const char *key, const char *value) {
    for (size_t i = 0; i < to->n; i++) {
        if (strcmp(to->items[i].key, key) == 0) {
            return;
        }
    }
    if (key != NULL && value != NULL && to->n < sizeof to->items / sizeof to->items[0]) {
        to->items[to->n].key = key;
        to->items[to->n++].value = value;
    }
}

/* A file's first line. */
static tarn_code read_token(const char *path, const char **out) {
    char line[65536];
    FILE *file = fopen(path, "rb");
    bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (!read) {
        return app_error(TARN_IO, "no token could be read from %s", path);
    }
    line[strcspn(line, "\r\n")] = '\0';
    *out = app_keep(strdup(line));
    return *out != NULL ? TARN_OK : app_error(TARN_NOMEM, "out of memory");
}

/* From the command line, else from the environment; .pyiceberg.yaml comes behind them. */
static tarn_code take_properties(app_properties *to) {
    const char *token = getenv("TARN_REST_TOKEN");
    const char *file = getenv("TARN_REST_TOKEN_FILE");
    tarn_code code = TARN_OK;
    for (int i = 0; i < the_app.catalog_properties.count; i++) {
        char *pair = app_keep(strdup(the_app.catalog_properties.items[i]));
        char *equals = pair != NULL ? strchr(pair, '=') : NULL;
        if (equals == NULL || equals == pair) {
            return app_error(TARN_INVALID, "--catalog-property takes KEY=VALUE");
        }
        *equals = '\0';
        app_put_property(to, pair, equals + 1);
    }
    if (token == NULL && file != NULL) {
        code = read_token(file, &token);
    }
    if (token != NULL) {
        app_put_property(to, "token", token);
    }
    if (getenv("TARN_REST_CREDENTIAL") != NULL) {
        app_put_property(to, "credential", getenv("TARN_REST_CREDENTIAL"));
    }
    return code;
}

/* As JSON; NULL: none, or no memory. */
static const char *properties_json(const app_properties *from) {
    text out = {0};
    for (size_t i = 0; i < from->n; i++) {
        text_add(&out, i == 0 ? "{" : ",");
        text_add_json(&out, from->items[i].key);
        text_add(&out, ":");
        text_add_json(&out, from->items[i].value);
    }
    if (from->n > 0) {
        text_add(&out, "}");
    }
    return from->n > 0 ? app_keep(out.data) : NULL;
}

/* "sqlite:////a/b.db" (SQLAlchemy) means /a/b.db, "sqlite:///b.db" means b.db. */
static const char *plain_uri(const char *uri) {
    if (strncmp(uri, "sqlite:///", 10) != 0) {
        return uri;
    }
    size_t len = strlen(uri);
    char *out = app_keep(malloc(len));
    if (out != NULL) {
        snprintf(out, len, "sqlite:%s", uri + 10);
    }
    return out;
}

static const char *path_in(const char *uri) {
    const char *path = strchr(uri, ':') + 1;
    return strncmp(path, "file://", 7) == 0 ? path + 7
           : strncmp(path, "file:", 5) == 0 ? path + 5
                                            : path;
}

tarn_code app_file_code(int os_code) {
    return os_code == ENOENT || os_code == ENOTDIR ? TARN_NOT_FOUND
           : os_code == EACCES || os_code == EPERM ? TARN_DENIED
                                                   : TARN_IO;
}

/* Opening makes a database: a mistyped name must not leave one behind. */
static tarn_code check_there(const char *uri) {
    struct stat info;
    const char *path = path_in(uri);
    if (path[0] == '\0') {
        return app_error(TARN_INVALID, "catalog %s names no path", uri);
    }
    if (stat(path, &info) != 0) {
        the_app.new_catalog = the_app.makes && errno == ENOENT ? path : NULL;
        return the_app.makes || the_app.only_looks || errno != ENOENT
                   ? TARN_OK
                   : app_error(
                         TARN_NOT_FOUND,
                         "there is no catalog at %s (-c or TARN_CATALOG says where it is; tarn "
                         "create makes it, and so does --create of tarn ingest and tarn import)",
                         path);
    }
    if (S_ISDIR(info.st_mode) != (strncmp(uri, "dir:", 4) == 0)) {
        return app_error(TARN_INVALID, "catalog %s is a %s", uri,
                         S_ISDIR(info.st_mode) ? "folder, not a database" : "file, not a folder");
    }
    return TARN_OK;
}

/* A database that is not there would be made by opening it; a folder would not, and holds no table
 * either. NULL: no memory. */
static const char *as_empty(const char *uri) {
    struct stat info;
    const char *path = path_in(uri);
    if (stat(path, &info) == 0) {
        return uri;
    }
    size_t size = strlen(path) + sizeof "dir:";
    char *folder = app_keep(malloc(size));
    if (folder != NULL) {
        (void)snprintf(folder, size, "dir:%s", path);
    }
    return folder;
}

/* The address of the catalog that was chosen, with what goes with it. */
static tarn_code choose_catalog(tarn_catalog_options *options, app_properties *properties,
                                const char **out) {
    const char *uri = the_app.catalog_uri != NULL ? the_app.catalog_uri : getenv("TARN_CATALOG");
    if (uri == NULL) {
        uri = "sqlite:./tarn.db";
    } else if (!has_scheme(uri)) {
        const char *warehouse = NULL;
        const char *found = NULL;
        if (!app_pyiceberg(uri, &found, &warehouse, properties)) {
            return app_error(
                TARN_INVALID,
                "\"%s\" is no catalog: give sqlite:PATH, dir:PATH, postgresql://..., http://..., "
                "https://... or a name from .pyiceberg.yaml",
                app_shown_uri(uri));
        }
        options->name = uri;
        options->warehouse = options->warehouse != NULL ? options->warehouse : warehouse;
        uri = found;
    }
    uri = plain_uri(uri);
    if (uri == NULL) {
        return app_error(TARN_NOMEM, "out of memory");
    }
    if (!has_scheme(uri)) {
        return app_error(
            TARN_UNSUPPORTED,
            "catalog %s of .pyiceberg.yaml is %s; SQLite, PostgreSQL and REST ones can be "
            "opened",
            options->name, app_shown_uri(uri));
    }
    *out = uri;
    the_app.shown_catalog = app_shown_uri(uri);
    return is_local(uri) ? check_there(uri) : TARN_OK;
}

tarn_code app_check_catalog(void) {
    tarn_catalog_options options = TARN_CATALOG_OPTIONS_INIT;
    app_properties properties = {0};
    const char *uri = NULL;
    tarn_code code = split_moved();
    code = code == TARN_OK ? take_properties(&properties) : code;
    return code == TARN_OK ? choose_catalog(&options, &properties, &uri) : code;
}

tarn_code app_catalog(tarn_catalog_handle **out) {
    tarn_catalog_options options = TARN_CATALOG_OPTIONS_INIT;
    app_properties properties = {0};
    const char *uri = NULL;
    if (the_app.catalog != NULL) {
        *out = the_app.catalog;
        return TARN_OK;
    }
    tarn_code code = split_moved();
    if (code == TARN_OK) {
        code = take_properties(&properties);
    }
    if (code != TARN_OK) {
        return code;
    }
    options.moved_from = the_app.moved_from;
    options.moved_to = the_app.moved_to;
    options.warehouse = the_app.warehouse;
    options.no_sync = the_app.no_sync;
    code = choose_catalog(&options, &properties, &uri);
    if (code != TARN_OK) {
        return code;
    }
    options.properties_json = properties_json(&properties);
    uri = the_app.only_looks && is_local(uri) ? as_empty(uri) : uri;
    if (uri == NULL) {
        return app_error(TARN_NOMEM, "out of memory");
    }
    code = tarn_catalog_open(the_app.env, uri, &options, &the_app.catalog, &the_app.err);
    *out = the_app.catalog;
    return code;
}

static bool ends_with(const char *name, const char *ending) {
    size_t len = strlen(name);
    size_t end = strlen(ending);
    return len > end && strcmp(name + len - end, ending) == 0;
}

/* A name without a slash may be a table's as well: app.csv. Then the file must be there. */
static bool is_there(const char *path) {
    return strchr(path, '/') != NULL || access(path, F_OK) == 0;
}

bool app_is_data_file(const char *path) {
    static const char *const endings[] = {".parquet", ".avro", ".ndjson", ".jsonl", ".csv", ".tsv"};
    static const char *const packed[] = {"", ".gz", ".zst"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        for (size_t p = 0; p < sizeof packed / sizeof packed[0]; p++) {
            char ending[16];
            snprintf(ending, sizeof ending, "%s%s", endings[i], packed[p]);
            if (ends_with(path, ending) && is_there(path)) {
                return true;
            }
        }
    }
    return false;
}

bool app_is_path(const char *name) {
    return strncmp(name, "file:", 5) == 0 || name[0] == '/' || strncmp(name, "./", 2) == 0 ||
           strncmp(name, "../", 3) == 0 ||
           (strchr(name, '/') != NULL && strchr(name, '`') == NULL) ||
           (is_there(name) && (ends_with(name, ".json") || ends_with(name, ".json.gz")));
}

static tarn_code open_path(const char *name, tarn_table **out) {
    tarn_catalog_options options = TARN_CATALOG_OPTIONS_INIT;
    tarn_code code = split_moved();
    if (code != TARN_OK) {
        return code;
    }
    options.moved_from = the_app.moved_from;
    options.moved_to = the_app.moved_to;
    return tarn_table_open_path(the_app.env, name, &options, out, &the_app.err);
}

const char *app_last_dot(const char *name, size_t len) {
    const char *last = NULL;
    char quote = '\0';
    for (const char *p = name; p < name + len; p++) {
        if (quote != '\0') {
            quote = *p == quote ? '\0' : quote;
        } else if (*p == '`' || *p == '"') {
            quote = *p;
        } else if (*p == '.') {
            last = p;
        }
    }
    return last;
}

tarn_code app_table(const char *name, tarn_table **out, const char **metadata_table) {
    tarn_catalog_handle *catalog = NULL;
    if (app_is_path(name)) {
        return open_path(name, out);
    }
    tarn_code code = app_catalog(&catalog);
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_table_load(catalog, name, out, &the_app.err);
    const char *dot = app_last_dot(name, strlen(name));
    bool unknown = code == TARN_NOT_FOUND || code == TARN_INVALID;
    if (!unknown || metadata_table == NULL || dot == NULL ||
        app_last_dot(name, (size_t)(dot - name)) == NULL) {
        return code;
    }
    tarn_error first = the_app.err;
    char *base = strndup(name, (size_t)(dot - name));
    if (base == NULL) {
        return app_error(TARN_NOMEM, "out of memory");
    }
    code = tarn_table_load(catalog, base, out, &the_app.err);
    free(base);
    if (code == TARN_OK) {
        *metadata_table = dot + 1;
    } else {
        the_app.err = first;
        code = first.code;
    }
    return code;
}

void app_close(void) {
    for (size_t i = 0; i < the_app.n_kept; i++) {
        free(the_app.kept[i]);
    }
    free(the_app.kept);
    tarn_catalog_close(the_app.catalog);
    tarn_env_free(the_app.env);
    free(the_app.moved_from);
    the_app.catalog = NULL;
    the_app.env = NULL;
}

tarn_code app_stream_error(struct ArrowArrayStream *stream, int status) {
    static const struct {
        int status;
        tarn_code code;
    } codes[] = {{ENOMEM, TARN_NOMEM},
                 {EINVAL, TARN_INVALID},
                 {EBADMSG, TARN_CORRUPT},
                 {EOVERFLOW, TARN_LIMIT},
                 {ENOTRECOVERABLE, TARN_INTERNAL},
                 {ENOENT, TARN_NOT_FOUND},
                 {ECANCELED, TARN_CANCELLED},
                 {EACCES, TARN_DENIED},
                 {ENOTSUP, TARN_UNSUPPORTED},
                 {EIO, TARN_IO}};
    const char *message = stream->get_last_error(stream);
    tarn_code code = TARN_IO;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        code = codes[i].status == status ? codes[i].code : code;
    }
    return app_error(code, "%s", message != NULL ? message : strerror(status));
}

const char *app_format(const char *format) {
    return format != NULL ? format : !the_app.json && isatty(STDOUT_FILENO) ? "table" : "ndjson";
}

tarn_code app_check_format(const char *format) {
    return format == NULL || strcmp(format, "ndjson") == 0 || strcmp(format, "csv") == 0 ||
                   strcmp(format, "table") == 0
               ? TARN_OK
               : app_error(TARN_INVALID, "--format takes ndjson, csv or table, not \"%s\"", format);
}

void app_drop_array(tarn_code code, struct ArrowArray *array) {
    if (code != TARN_OK && array->release != NULL) {
        array->release(array);
    }
}

tarn_code app_print_stream(struct ArrowArrayStream *stream, const char *path, const char *format,
                           int64_t *rows) {
    tarn_file_options options = TARN_FILE_OPTIONS_INIT;
    struct ArrowSchema schema;
    tarn_file_writer *writer = NULL;
    memset(&schema, 0, sizeof schema);
    *rows = 0;
    options.format = strcmp(path, "-") == 0 ? app_format(format) : format;
    int status = stream->get_schema(stream, &schema);
    tarn_code code = status != 0 ? app_stream_error(stream, status) : TARN_OK;
    if (code == TARN_OK) {
        code = tarn_file_writer_open(the_app.env, path, &schema, &options, &writer, &the_app.err);
    }
    while (code == TARN_OK) {
        struct ArrowArray array;
        status = stream->get_next(stream, &array);
        if (status != 0) {
            code = app_stream_error(stream, status);
            break;
        }
        if (array.release == NULL) {
            break;
        }
        *rows += array.length;
        code = tarn_file_writer_write(writer, &array, &the_app.err);
        app_drop_array(code, &array);
    }
    if (code == TARN_OK) {
        code = tarn_file_writer_close(writer, &the_app.err);
    } else {
        tarn_file_writer_abort(writer);
    }
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    stream->release(stream);
    return code;
}

char *app_properties_json(const opt_list *list) {
    text t = {0};
    text_add(&t, "{");
    for (int i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        if (equals == NULL || equals == list->items[i]) {
            app_say("error", "a property is KEY=VALUE, not \"%s\"", list->items[i]);
            free(t.data);
            return NULL;
        }
        char *key = strndup(list->items[i], (size_t)(equals - list->items[i]));
        text_add(&t, "%s", i > 0 ? "," : "");
        text_add_json(&t, key != NULL ? key : "");
        text_add(&t, ":");
        text_add_json(&t, equals + 1);
        free(key);
    }
    text_add(&t, "}");
    return t.data;
}
