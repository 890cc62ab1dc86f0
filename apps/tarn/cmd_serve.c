/* apps/tarn/cmd_serve.c - serve: the catalog over HTTP until a signal ends it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <tarn/service.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *listen, *name;
    int64_t connections, timeout, body_mb;
} serve_options;

static const opt_spec SERVE_SPECS[] = {
    {"listen", 'l', OPT_TEXT, &serve_options.listen, "HOST:PORT",
     "where to listen (default 127.0.0.1:8181; port 0: any)"},
    {"name", 0, OPT_TEXT, &serve_options.name, "WAREHOUSE",
     "the warehouse name that clients must give (default: any)"},
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
    "SIGINT or SIGTERM ends it after the requests at work.\n\nExample:\n"
    "  tarn serve -c sqlite:tarn.db --listen 127.0.0.1:8181",
    0,
    0,
    SERVE_SPECS,
    sizeof SERVE_SPECS / sizeof SERVE_SPECS[0]};

int cmd_serve(int argc, char **argv) {
    int n, status, got;
    tarn_catalog_handle *catalog;
    tarn_service *service = NULL;
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    sigset_t ends;
    (void)command_begin(&serve_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    the_app.makes = true;
    o.listen = serve_options.listen;
    o.warehouse = serve_options.name;
    o.connections = (uint32_t)serve_options.connections;
    o.timeout_s = (uint32_t)serve_options.timeout;
    o.body_bytes = (uint64_t)serve_options.body_mb << 20;
    /* before any thread, so that all of them leave these to this one */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    tarn_code code = app_catalog(&catalog);
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
    return 0;
}
