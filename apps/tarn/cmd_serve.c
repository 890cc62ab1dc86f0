/* apps/tarn/cmd_serve.c - serve: the catalog over HTTP until a signal ends it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tarn/service.h>

#include "app.h"
#include "commands.h"

#define ACCESS_BYTES (1 << 20)

static struct {
    const char *config, *listen, *name, *access, *access_log, *allowed;
    int64_t connections, timeout, body_mb;
    bool check_config;
} serve_options;

static const opt_spec SERVE_SPECS[] = {
    {"config", 0, OPT_TEXT, &serve_options.config, "FILE",
     "options as lines \"name = value\"; the command line and\n$TARN_SERVE_NAME come before them"},
    {"check-config", 0, OPT_FLAG, &serve_options.check_config, "",
     "print what was given, without secrets, and end"},
    {"listen", 'l', OPT_TEXT, &serve_options.listen, "HOST:PORT",
     "where to listen (default 127.0.0.1:8181; port 0: any)"},
    {"name", 0, OPT_TEXT, &serve_options.name, "WAREHOUSE",
     "the warehouse name that clients must give (default: any)"},
    {"access", 0, OPT_TEXT, &serve_options.access, "FILE",
     "who may do what: clients, tokens and roles by namespace, JSON\n(default: everybody "
     "everything, on this machine only)"},
    {"allow-location", 0, OPT_TEXT, &serve_options.allowed, "PATHS",
     "where clients may put tables besides the warehouse, comma\nseparated; / is anywhere"},
    {"access-log", 0, OPT_TEXT, &serve_options.access_log, "FILE",
     "one line of JSON for each request; - is stderr"},
    {"connections", 0, OPT_NUMBER, &serve_options.connections, "N", "at once (default 1000)"},
    {"timeout", 0, OPT_NUMBER, &serve_options.timeout, "SECONDS",
     "of an idle or slow connection (default 60)"},
    {"body-mb", 0, OPT_NUMBER, &serve_options.body_mb, "MIB", "largest request (default 64)"},
};

const opt_command serve_command = {
    "serve",
    "",
    "serve the catalog over HTTP as an Iceberg REST catalog",
    "Spark, Flink, Trino, DuckDB, PyIceberg and tarn itself open it by its URL, which is printed "
    "on standard output. Commits to one table that wait at the same time move its pointer once. "
    "SIGINT or SIGTERM ends it after the requests at work. Each option, also those of every "
    "command, may stand in the environment ($TARN_SERVE_LISTEN is --listen) or in a --config "
    "FILE.\n\nExample:\n"
    "  tarn serve -c sqlite:tarn.db --listen 127.0.0.1:8181",
    0,
    0,
    SERVE_SPECS,
    sizeof SERVE_SPECS / sizeof SERVE_SPECS[0]};

static void log_line(void *ctx, const char *line) {
    FILE *file = ctx;
    flockfile(file);
    fputs(line, file);
    fputc('\n', file);
    fflush(file);
    funlockfile(file);
}

static tarn_code open_log(FILE **out) {
    if (serve_options.access_log == NULL) {
        return TARN_OK;
    }
    *out =
        strcmp(serve_options.access_log, "-") == 0 ? stderr : fopen(serve_options.access_log, "ae");
    return *out != NULL ? TARN_OK
                        : app_error(TARN_IO, "access log %s could not be opened: %s",
                                    serve_options.access_log, strerror(errno));
}

/* Secrets have to be in a file: arguments can be seen by everybody on the machine. */
static tarn_code read_access(char **out) {
    size_t len = 0;
    if (serve_options.access == NULL) {
        return TARN_OK;
    }
    FILE *file = fopen(serve_options.access, "re");
    char *text = file != NULL ? app_keep(calloc(1, ACCESS_BYTES + 1)) : NULL;
    if (text != NULL) {
        len = fread(text, 1, ACCESS_BYTES, file);
    }
    bool bad = file == NULL || text == NULL || ferror(file) || len == ACCESS_BYTES || len == 0;
    if (file != NULL) {
        fclose(file);
    }
    *out = text;
    return bad ? app_error(TARN_INVALID, "access file %s could not be read, is empty or too large",
                           serve_options.access)
               : TARN_OK;
}

/* Of an address with a password its scheme, of a catalog's property its key. */
static const char *shown(const opt_spec *spec, const char *text) {
    if (strcmp(spec->name, "catalog-property") == 0) {
        char *key = app_keep(strdup(text));
        if (key != NULL) {
            key[strcspn(key, "=")] = '\0';
        }
        return key != NULL ? key : "";
    }
    return strcmp(spec->name, "catalog") == 0 ? app_shown_uri(text) : text;
}

/* The command line, then what it left open; -1 and the exit status where that is all. */
static int take_options(int argc, char **argv, int *status) {
    const char **args = app_keep(calloc((size_t)argc + 1, sizeof *args));
    int n = args != NULL ? opt_parse(&serve_command, argc, argv, args) : -1;
    *status = n == -2 ? 0 : TARN_INVALID;
    if (n < 0) {
        return -1;
    }
    const char *config =
        serve_options.config != NULL ? serve_options.config : getenv("TARN_SERVE_CONFIG");
    if (!opt_fill(&serve_command, "TARN_SERVE", config)) {
        return -1;
    }
    if (serve_options.check_config) {
        opt_print_given(&serve_command, shown);
        *status = 0;
        return -1;
    }
    *status = app_start();
    return *status == 0 ? 0 : -1;
}

static bool is_loopback(const char *listen) {
    return listen == NULL || strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0 ||
           strncmp(listen, "localhost:", 10) == 0;
}

int cmd_serve(int argc, char **argv) {
    int status, got;
    tarn_catalog_handle *catalog;
    tarn_service *service = NULL;
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    sigset_t ends;
    char *access = NULL;
    FILE *log = NULL;
    if (take_options(argc, argv, &status) < 0) {
        return status;
    }
    the_app.makes = true;
    o.listen = serve_options.listen;
    o.allowed_locations = serve_options.allowed;
    o.warehouse = serve_options.name;
    o.connections = (uint32_t)serve_options.connections;
    o.timeout_s = (uint32_t)serve_options.timeout;
    o.body_bytes = (uint64_t)serve_options.body_mb << 20;
    if (serve_options.access == NULL && !is_loopback(serve_options.listen)) {
        return app_usage("--listen %s is open to other machines and needs --access FILE",
                         serve_options.listen);
    }
    /* before any thread, so that all of them leave these to this one */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    tarn_code code = read_access(&access);
    o.access_json = access;
    if (code == TARN_OK) {
        code = open_log(&log);
        o.log = log != NULL ? log_line : NULL;
        o.log_ctx = log;
    }
    if (code == TARN_OK) {
        code = app_catalog(&catalog);
    }
    if (code == TARN_OK) {
        code = tarn_service_start(catalog, &o, &service, &the_app.err);
    }
    if (code != TARN_OK) {
        return app_fail(code);
    }
    printf("%s\n", tarn_service_url(service));
    fflush(stdout);
    (void)sigwait(&ends, &got);
    tarn_service_stop(service);
    if (log != NULL && log != stderr) {
        fclose(log);
    }
    return 0;
}
