/* apps/tarn/main.c - the command: which subcommand, options of all, signals, exit status. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "commands.h"

static const opt_spec GLOBALS[] = {
    {"catalog", 'c', OPT_TEXT, &the_app.catalog_uri, "URI",
     "sqlite:PATH, dir:PATH, postgresql://HOST:PORT/DB,\nhttp://..., https://... (REST), or a name "
     "of\n.pyiceberg.yaml (default: $TARN_CATALOG,\nelse sqlite:./tarn.db)"},
    {"catalog-property", 0, OPT_LIST, &the_app.catalog_properties, "KEY=VALUE",
     "of a REST catalog: token, credential, scope,\noauth2-server-uri, header.NAME... (secrets "
     "better "
     "in\n$TARN_REST_TOKEN, $TARN_REST_TOKEN_FILE or\n$TARN_REST_CREDENTIAL)"},
    {"warehouse", 0, OPT_TEXT, &the_app.warehouse, "PATH",
     "where new tables go (default: warehouse beside the database)"},
    {"moved", 0, OPT_TEXT, &the_app.moved, "FROM=TO",
     "read locations below FROM as if they were below TO"},
    {"threads", 0, OPT_COUNT, &the_app.threads, "N", "worker threads (default: one per processor)"},
    {"no-sync", 0, OPT_FLAG, &the_app.no_sync, "", "do not wait for the disk (scratch data only)"},
    {"json", 0, OPT_FLAG, &the_app.json, "", "print JSON instead of text"},
    {"progress", 0, OPT_FLAG, &the_app.progress, "",
     "show progress even where stderr is no terminal"},
    {"quiet", 'q', OPT_FLAG, &the_app.quiet, "", "print errors only"},
    {"verbose", 'v', OPT_FLAG, &the_app.verbose, "", "log what is done on stderr"},
    {"help", 'h', OPT_FLAG, NULL, "", "this text"},
};

const opt_spec *opt_globals(size_t *n) {
    *n = sizeof GLOBALS / sizeof GLOBALS[0];
    return GLOBALS;
}

static const struct {
    const opt_command *command;
    int (*run)(int argc, char **argv);
} COMMANDS[] = {
    {&create_command, cmd_create}, {&ls_command, cmd_ls},         {&describe_command, cmd_describe},
    {&ingest_command, cmd_ingest}, {&cat_command, cmd_cat},       {&changes_command, cmd_changes},
    {&delete_command, cmd_delete}, {&update_command, cmd_update}, {&merge_command, cmd_merge},
    {&log_command, cmd_log},       {&alter_command, cmd_alter},   {&set_command, cmd_set},
    {&rename_command, cmd_rename}, {&drop_command, cmd_drop},     {&register_command, cmd_register},
    {&file_command, cmd_file},     {&serve_command, cmd_serve},   {&check_command, cmd_check},
    {&import_command, cmd_import},
};
#define N_COMMANDS (sizeof COMMANDS / sizeof COMMANDS[0])

static void print_usage(void) {
    printf("tarn %s - rows into Apache Iceberg tables, and back\n\nUsage: tarn COMMAND [options] "
           "...\n\nCommands:\n",
           tarn_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("  %-10s %s\n", COMMANDS[i].command->name, COMMANDS[i].command->summary);
    }
    printf("\n");
    opt_print_text(
        "Tables are named ns.table in the catalog (-c, $TARN_CATALOG, or sqlite:./tarn.db), "
        "or by the path of a table folder or metadata file. Exit status: 0, or the number "
        "of the error's kind (tarn man). `tarn COMMAND --help` says more; `tarn completion "
        "bash` and `tarn man` print what their names say.");
}

/* Completion for bash, made from the tables of options. */
static int print_completion(void) {
    size_t n_globals;
    const opt_spec *globals = opt_globals(&n_globals);
    printf(
        "_tarn() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  case ${COMP_WORDS[1]-} in\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const opt_command *c = COMMANDS[i].command;
        printf("  %s) words='", c->name);
        for (size_t o = 0; o < c->n_specs; o++) {
            printf("--%s ", c->specs[o].name);
        }
        for (size_t o = 0; o < n_globals; o++) {
            printf("--%s ", globals[o].name);
        }
        printf("' ;;\n");
    }
    printf("  esac\n  if [ \"$COMP_CWORD\" = 1 ]; then words='");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("%s ", COMMANDS[i].command->name);
    }
    printf("'; fi\n  if [[ $cur == -* || $COMP_CWORD == 1 ]]; then\n    mapfile -t COMPREPLY < "
           "<(compgen -W \"$words\" -- "
           "\"$cur\")\n  else\n    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n  "
           "fi\n}\ncomplete -o filenames -F _tarn tarn\n");
    return 0;
}

/* roff: a line must not begin with a dot or quote, and backslashes and hyphens are escaped. */
static void print_roff(const char *text) {
    bool line_start = true;
    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\'')) {
            printf("\\&");
        }
        line_start = *text == '\n';
        if (*text == '\\') {
            printf("\\e");
        } else if (*text == '-') {
            printf("\\-");
        } else {
            putchar(*text);
        }
    }
}

/* Paragraphs are filled, indented lines are not. */
static void print_roff_text(const char *at) {
    bool filled = true;
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        char *line = strndup(at, len);
        bool fills = line == NULL || line[0] != ' ';
        if (len == 0) {
            printf("%s.PP\n", filled ? "" : ".fi\n");
            fills = true;
        } else if (fills != filled) {
            printf("%s\n", fills ? ".fi" : ".nf");
        }
        if (line != NULL && len > 0) {
            print_roff(line);
            printf("\n");
        }
        filled = fills;
        free(line);
        at += len + (at[len] == '\n');
    }
    printf("%s", filled ? "" : ".fi\n");
}

static void print_man_options(const opt_spec *specs, size_t n) {
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n.B ");
        if (specs[i].letter != '\0') {
            printf("\\-%c, ", specs[i].letter);
        }
        printf("\\-\\-");
        print_roff(specs[i].name);
        if (specs[i].kind != OPT_FLAG) {
            printf(" ");
            print_roff(specs[i].argument);
        }
        printf("\n");
        print_roff(specs[i].help);
        printf("\n");
    }
}

static int print_man(void) {
    size_t n_globals;
    const opt_spec *globals = opt_globals(&n_globals);
    printf(".TH TARN 1 \"\" \"tarn %s\"\n.SH NAME\ntarn \\- rows into Apache Iceberg tables, and "
           "back\n.SH SYNOPSIS\n.B tarn\n"
           "COMMAND [options] ...\n.SH COMMANDS\n",
           tarn_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const opt_command *c = COMMANDS[i].command;
        printf(".SS tarn %s ", c->name);
        print_roff(c->usage);
        printf("\n");
        print_roff(c->summary);
        printf(".\n.PP\n");
        print_roff_text(c->about);
        print_man_options(c->specs, c->n_specs);
    }
    printf(".SH OPTIONS OF EVERY COMMAND\n");
    print_man_options(globals, n_globals);
    printf(".SH EXIT STATUS\n");
#define MAN_CODE(name, number, what)                                                               \
    printf(".TP\n.B %d\n%s: %s\n", number == TARN_CANCELLED ? 130 : number, #name, what);
    TARN_CODE_MAP(MAN_CODE)
#undef MAN_CODE
    return 0;
}

/* The first Ctrl-C asks the work to end, the second ends the process: the table is whole in both
 * cases. */
static void on_signal(int number) {
    static volatile sig_atomic_t seen = 0;
    if (seen != 0) {
        _exit(128 + number);
    }
    seen = 1;
    tarn_env_cancel(the_app.env);
}

static void log_event(void *ctx, tarn_log_level level, const char *room, const char *event,
                      const char *text) {
    (void)ctx;
    if (the_app.verbose || level <= TARN_LOG_WARN) {
        bool warning = level <= TARN_LOG_WARN;
        app_say(warning ? "warning" : "info", "%s%s (%s: %s)",
                warning && !the_app.log_json ? "warning: " : "", text, room, event);
    }
}

int app_start(void) {
    tarn_env_options options = TARN_ENV_OPTIONS_INIT;
    options.threads = (uint32_t)the_app.threads;
    options.log = log_event;
    const char *temp_dir = getenv("TMPDIR");
    options.temp_dir = temp_dir != NULL && temp_dir[0] != '\0' ? temp_dir : NULL;
    tarn_code code = tarn_env_new(&options, &the_app.env, &the_app.err);
    if (code != TARN_OK) {
        return app_fail(code);
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return 0;
}

static const char *command_at(const void *ctx, size_t i) {
    (void)ctx;
    return COMMANDS[i].command->name;
}

static bool is_reader_gone(void) {
    struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/* What was printed may not have found room: no status says 0 then. The last part of it may have
 * found some after an earlier one was lost, so the stream's own mark counts too. */
static int end_output(int status) {
    bool last = fflush(stdout) != 0;
    int why = errno;
    if ((last || ferror(stdout) != 0) && status == 0 && !is_reader_gone()) {
        app_say("error", "could not write standard output: %s",
                last ? strerror(why) : "an earlier part of it was not taken");
        status = TARN_IO;
    }
    return status;
}

static int run_command(size_t i, int argc, char **argv) {
    int status = COMMANDS[i].run(argc, argv);
    app_close();
    return status;
}

/* Before options are read, so that what is wrong with them is said in the same way. */
static bool wants_json_log(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--log=json") == 0 ||
            (strcmp(argv[i], "--log") == 0 && i + 1 < argc && strcmp(argv[i + 1], "json") == 0)) {
            return true;
        }
    }
    return false;
}

static int run(int argc, char **argv) {
    for (size_t i = 0; i < N_COMMANDS && argc == 3 && strcmp(argv[1], "help") == 0; i++) {
        if (strcmp(argv[2], COMMANDS[i].command->name) == 0) {
            opt_print_help(COMMANDS[i].command);
            return 0;
        }
    }
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage();
        return argc < 2 ? TARN_INVALID : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tarn %s\n", tarn_version());
        return 0;
    }
    if (strcmp(argv[1], "completion") == 0) {
        return print_completion();
    }
    if (strcmp(argv[1], "man") == 0) {
        return print_man();
    }
    the_app.log_json = wants_json_log(argc, argv);
    int at = opt_take_globals(argc, argv);
    if (at < 0 || at == argc) {
        return at < 0 ? TARN_INVALID : app_usage("no command was given (see tarn --help)");
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[at], COMMANDS[i].command->name) == 0) {
            return run_command(i, argc - at - 1, argv + at + 1);
        }
    }
    const char *near = opt_nearest(argv[at], N_COMMANDS, command_at, NULL);
    fprintf(stderr, "tarn: unknown command %s (%s%s)\n", argv[at],
            near != NULL ? "did you mean " : "see tarn --help", near != NULL ? near : "");
    return TARN_INVALID;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* these two are errors of write: */
    signal(SIGXFSZ, SIG_IGN);
    return end_output(run(argc, argv));
}
