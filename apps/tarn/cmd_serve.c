/* apps/tarn/cmd_serve.c - serve: the catalog over HTTP until a signal ends it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <tarn/service.h>

#include "app.h"
#include "commands.h"

#define TEXT_BYTES   (1 << 20)
#define MOST         1000000000 /* of any number that is given */
#define DAY_MS       86400000
#define ACCESS_WORDS "access file"

static struct {
    const char *config, *listen, *name, *access, *access_log, *allowed, *tls_cert, *tls_key;
    const char *intake;
    int64_t intake_interval, intake_mb;
    int64_t connections, timeout, request_timeout, body_mb;
    bool check_config, plain_http;
} serve_options;

static const opt_spec SERVE_SPECS[] = {
    {"config", 0, OPT_TEXT, &serve_options.config, "FILE",
     "options as lines \"name = value\"; the command line and\n$TARN_SERVE_NAME come before them"},
    {"check-config", 0, OPT_FLAG, &serve_options.check_config, "",
     "look at what was given without opening anything, print it\nwithout secrets, and end"},
    {"listen", 'l', OPT_TEXT, &serve_options.listen, "HOST:PORT",
     "where to listen (default 127.0.0.1:8181; port 0: any)"},
    {"name", 0, OPT_TEXT, &serve_options.name, "WAREHOUSE",
     "the warehouse's name: clients that give another one are refused\n(default: any; none is "
     "always "
     "taken)"},
    {"access", 0, OPT_TEXT, &serve_options.access, "FILE",
     "who may do what: clients, tokens and roles by namespace, JSON\n(default: everybody "
     "everything, on this machine only)"},
    {"allow-location", 0, OPT_TEXT, &serve_options.allowed, "PATHS",
     "where clients may put tables besides the warehouse: absolute\npaths or URIs, comma "
     "separated; "
     "/ is anywhere"},
    {"access-log", 0, OPT_TEXT, &serve_options.access_log, "FILE",
     "one line of JSON for each request; - is stderr"},
    {"tls-cert", 0, OPT_TEXT, &serve_options.tls_cert, "FILE",
     "serve HTTPS with this certificate (PEM, with those it was\nissued by)"},
    {"tls-key", 0, OPT_TEXT, &serve_options.tls_key, "FILE",
     "its key (PEM), which not everybody may be able to read"},
    {"plain-http", 0, OPT_FLAG, &serve_options.plain_http, "",
     "listen for other machines without --tls-cert: tokens can be\nread on the way"},
    {"intake", 0, OPT_TEXT, &serve_options.intake, "DIR",
     "take rows over HTTP; DIR keeps them until they are committed"},
    {"intake-interval", 0, OPT_NUMBER, &serve_options.intake_interval, "MS",
     "between commits of rows to a table (default 1000)"},
    {"intake-mb", 0, OPT_NUMBER, &serve_options.intake_mb, "MIB",
     "the most rows that wait for their commits (default 1024)"},
    {"connections", 0, OPT_NUMBER, &serve_options.connections, "N", "at once (default 1000)"},
    {"timeout", 0, OPT_NUMBER, &serve_options.timeout, "SECONDS",
     "of an idle connection (default 60)"},
    {"request-timeout", 0, OPT_NUMBER, &serve_options.request_timeout, "SECONDS",
     "for a request to come whole, and for its answer to be taken;\na second more for each 64 KB "
     "(default 60)"},
    {"body-mb", 0, OPT_NUMBER, &serve_options.body_mb, "MIB", "largest request (default 64)"},
};

const opt_command serve_command = {
    "serve",
    "",
    "serve the catalog over HTTP as an Iceberg REST catalog",
    "Spark, Flink, Trino, DuckDB, PyIceberg and tarn itself open it by its URL, which is printed "
    "on standard output. Commits to one table that wait at the same time move its pointer once. "
    "SIGINT or SIGTERM ends it after the requests at work; SIGHUP has it read the certificate, its "
    "key and the access file again, and open the access log anew. Each option, also those of every "
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
                        : app_error(app_file_code(errno), "access log %s could not be opened: %s",
                                    serve_options.access_log, strerror(errno));
}

/* The file may have been moved away: lines go on where the name leads now. */
static tarn_code reopen_log(FILE *log) {
    FILE *now = NULL;
    if (log == NULL || log == stderr) {
        return TARN_OK;
    }
    tarn_code code = open_log(&now);
    if (code == TARN_OK) {
        flockfile(log);
        fflush(log);
        bool moved = dup2(fileno(now), fileno(log)) >= 0;
        funlockfile(log);
        fclose(now);
        code = moved ? TARN_OK
                     : app_error(TARN_IO, "access log %s could not be opened again",
                                 serve_options.access_log);
    }
    return code;
}

/* A file's text, which the caller frees. is_secret: not everybody may be able to read it. */
static tarn_code read_text(const char *what, const char *path, bool is_secret, char **out) {
    struct stat info;
    size_t len = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL || fstat(fileno(file), &info) != 0) {
        tarn_code code = app_error(app_file_code(errno), "%s %s could not be opened: %s", what,
                                   path, strerror(errno));
        if (file != NULL) {
            fclose(file);
        }
        return code;
    }
    char *text = calloc(1, TEXT_BYTES + 1);
    if (text != NULL) {
        len = fread(text, 1, TEXT_BYTES, file);
    }
    bool bad = text == NULL || ferror(file) || len == TEXT_BYTES || len == 0;
    fclose(file);
    if (is_secret && (info.st_mode & S_IRWXO) != 0) {
        bad = true;
        (void)app_error(TARN_INVALID, "%s %s can be read by everybody on this machine (chmod 600)",
                        what, path);
    } else if (bad) {
        (void)app_error(TARN_INVALID, "%s %s could not be read, is empty or too large", what, path);
    }
    if (bad) {
        free(text);
        return TARN_INVALID;
    }
    *out = text;
    return TARN_OK;
}

/* Secrets have to be in files: arguments can be seen by everybody on the machine. */
typedef struct serve_files {
    char *access, *cert, *key;
} serve_files;

static void free_files(serve_files *files) {
    free(files->access);
    free(files->cert);
    free(files->key);
}

static tarn_code read_files(serve_files *files, tarn_service_options *o) {
    tarn_code code = TARN_OK;
    memset(files, 0, sizeof *files);
    if (serve_options.access != NULL) {
        code = read_text("access file", serve_options.access, false, &files->access);
    }
    if (code == TARN_OK && serve_options.tls_cert != NULL) {
        code = read_text("--tls-cert", serve_options.tls_cert, false, &files->cert);
    }
    if (code == TARN_OK && serve_options.tls_key != NULL) {
        code = read_text("--tls-key", serve_options.tls_key, true, &files->key);
    }
    o->access_json = files->access;
    o->tls_cert_pem = files->cert;
    o->tls_key_pem = files->key;
    return code;
}

/* Which files the library's words are about. */
static tarn_code name_files(tarn_code code) {
    char why[sizeof the_app.err.message];
    bool about_tls = strstr(the_app.err.message, "certificate") != NULL ||
                     strstr(the_app.err.message, "the key ") != NULL;
    if (code == TARN_INVALID && about_tls && serve_options.tls_cert != NULL) {
        snprintf(why, sizeof why, "%s", the_app.err.message);
        code = app_error(code, "--tls-cert %s, --tls-key %s: %s", serve_options.tls_cert,
                         serve_options.tls_key, why);
    }
    if (code == TARN_INVALID && serve_options.access != NULL &&
        strncmp(the_app.err.message, ACCESS_WORDS, sizeof ACCESS_WORDS - 1) == 0) {
        tarn_error said = the_app.err;
        code = app_error(code, ACCESS_WORDS " %s%s", serve_options.access,
                         said.message + sizeof ACCESS_WORDS - 1);
        memcpy(the_app.err.detail, said.detail, sizeof said.detail);
    }
    return code;
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

static bool is_loopback(const char *listen) {
    return listen == NULL || strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0 ||
           strncmp(listen, "localhost:", 10) == 0;
}

/* Numbers that were given say something: none of them may be nothing. */
static int check_numbers(void) {
    for (size_t i = 0; i < sizeof SERVE_SPECS / sizeof SERVE_SPECS[0]; i++) {
        const opt_spec *spec = &SERVE_SPECS[i];
        const int64_t *number = spec->value;
        if (spec->kind == OPT_NUMBER && opt_from(spec) != OPT_DEFAULT &&
            (*number < 1 || *number > MOST)) {
            return app_usage("--%s takes a number from 1 to %d, not %lld", spec->name, MOST,
                             (long long)*number);
        }
    }
    return 0;
}

static bool is_address(const char *listen) {
    const char *colon = strrchr(listen, ':');
    char *end = NULL;
    errno = 0;
    long port = colon != NULL && colon > listen && colon[1] >= '0' && colon[1] <= '9'
                    ? strtol(colon + 1, &end, 10)
                    : -1;
    return port >= 0 && port <= 65535 && *end == '\0';
}

static int check_options(void) {
    int status = check_numbers();
    if (status != 0) {
        return status;
    }
    if (serve_options.listen != NULL && !is_address(serve_options.listen)) {
        return app_usage("--listen %s is no HOST:PORT", serve_options.listen);
    }
    if (serve_options.intake_interval > DAY_MS) {
        return app_usage("--intake-interval takes milliseconds up to %d, a day, not %lld", DAY_MS,
                         (long long)serve_options.intake_interval);
    }
    if ((serve_options.tls_cert != NULL) != (serve_options.tls_key != NULL)) {
        return app_usage("--tls-cert and --tls-key go together");
    }
    if (is_loopback(serve_options.listen)) {
        return 0;
    }
    if (serve_options.access == NULL) {
        return app_usage("--listen %s is open to other machines and needs --access FILE",
                         serve_options.listen);
    }
    if (serve_options.tls_cert == NULL && !serve_options.plain_http) {
        return app_usage("--listen %s is open to other machines: tokens could be read on the way "
                         "without --tls-cert and --tls-key (--plain-http where they cannot)",
                         serve_options.listen);
    }
    return 0;
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
    *status = opt_fill(&serve_command, "TARN_SERVE", config);
    if (*status == 0) {
        *status = check_options();
    }
    if (*status == 0) {
        *status = app_start();
    }
    return *status == 0 ? 0 : -1;
}

/* Tells systemd how it goes (sd_notify(3)); without it, nothing. */
static void notify(const char *state) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path != NULL ? strlen(path) : 0;
    if (len < 2 || len >= sizeof to.sun_path) {
        return;
    }
    memcpy(to.sun_path, path, len);
    to.sun_path[0] = path[0] == '@' ? '\0' : path[0];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, size);
        (void)close(fd);
    }
}

static void reload(tarn_service *service, FILE *log) {
    serve_files files;
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    tarn_code code = read_files(&files, &o);
    if (code == TARN_OK) {
        code = name_files(tarn_service_reload(service, &o, &the_app.err));
    }
    free_files(&files);
    if (code == TARN_OK) {
        code = reopen_log(log);
    }
    if (code != TARN_OK) {
        (void)app_fail(code);
    }
    fprintf(stderr, "tarn: %s\n",
            code == TARN_OK ? "certificate, access file and log are as they are now"
                            : "not read again: what was there before holds");
}

static void run_until_signal(tarn_service *service, FILE *log, const sigset_t *signals) {
    int got = 0;
    printf("%s\n", tarn_service_url(service));
    fflush(stdout);
    notify("READY=1");
    while (sigwait(signals, &got) == 0 && got == SIGHUP) {
        reload(service, log);
    }
    notify("STOPPING=1");
}

static void fill_options(tarn_service_options *o) {
    o->listen = serve_options.listen;
    o->allowed_locations = serve_options.allowed;
    o->warehouse = serve_options.name;
    o->intake_dir = serve_options.intake;
    o->intake_interval_ms = (uint32_t)serve_options.intake_interval;
    o->intake_bytes = (uint64_t)serve_options.intake_mb << 20;
    o->connections = (uint32_t)serve_options.connections;
    o->timeout_s = (uint32_t)serve_options.timeout;
    o->request_timeout_s = (uint32_t)serve_options.request_timeout;
    o->body_bytes = (uint64_t)serve_options.body_mb << 20;
}

/* --check-config: all that can be looked at without opening it. */
static int check_config(void) {
    serve_files files;
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    fill_options(&o);
    the_app.makes = true;
    tarn_code code = read_files(&files, &o);
    code = code == TARN_OK ? name_files(tarn_service_check(the_app.env, &o, &the_app.err)) : code;
    code = code == TARN_OK ? app_check_catalog() : code;
    free_files(&files);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    opt_print_given(&serve_command, shown);
    return 0;
}

static tarn_code start_service(FILE *log, tarn_service **out) {
    tarn_catalog_handle *catalog;
    serve_files files;
    tarn_service_options o = TARN_SERVICE_OPTIONS_INIT;
    fill_options(&o);
    the_app.makes = true;
    o.log = log != NULL ? log_line : NULL;
    o.log_ctx = log;
    tarn_code code = read_files(&files, &o);
    if (code == TARN_OK) { /* before a catalog is made for it */
        code = name_files(tarn_service_check(the_app.env, &o, &the_app.err));
    }
    if (code == TARN_OK) {
        code = app_catalog(&catalog);
    }
    if (code == TARN_OK && the_app.new_catalog != NULL) { /* a mistyped name has no tables */
        app_say("info", "there was no catalog at %s: a new one was made", the_app.new_catalog);
    }
    if (code == TARN_OK) {
        code = name_files(tarn_service_start(catalog, &o, out, &the_app.err));
    }
    free_files(&files);
    return code;
}

int cmd_serve(int argc, char **argv) {
    int status;
    tarn_service *service = NULL;
    sigset_t signals;
    FILE *log = NULL;
    if (take_options(argc, argv, &status) < 0) {
        return status;
    }
    if (serve_options.check_config) {
        return check_config();
    }
    /* before any thread, so that all of them leave these to this one */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    tarn_code code = open_log(&log);
    if (code == TARN_OK) {
        code = start_service(log, &service);
    }
    if (code == TARN_OK) {
        run_until_signal(service, log, &signals);
        tarn_service_stop(service);
    }
    if (log != NULL && log != stderr) {
        fclose(log);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}
