/* apps/tarn/opt.c - see opt.h. */
#include "opt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

/* "tarn ls: ..." on stderr. */
static void complain(const opt_command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(const opt_command *command, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    app_say_list(command->name, "error", fmt, args);
    va_end(args);
}

static const opt_spec *find_in(const opt_spec *specs, size_t n, const char *name, size_t len,
                               char letter) {
    for (size_t i = 0; i < n; i++) {
        bool by_name =
            name != NULL && strlen(specs[i].name) == len && strncmp(specs[i].name, name, len) == 0;
        if (by_name || (letter != '\0' && specs[i].letter == letter)) {
            return &specs[i];
        }
    }
    return NULL;
}

const opt_spec *opt_find(const opt_command *command, const char *name, size_t len, char letter) {
    size_t n_globals;
    const opt_spec *globals = opt_globals(&n_globals);
    const opt_spec *spec = find_in(command->specs, command->n_specs, name, len, letter);
    return spec != NULL ? spec : find_in(globals, n_globals, name, len, letter);
}

/* Which options have a value, and from where: the command line comes before everything else. */
static struct {
    const opt_spec *spec;
    opt_origin from;
} given[128];
static size_t n_given;

opt_origin opt_from(const opt_spec *spec) {
    for (size_t i = 0; i < n_given; i++) {
        if (given[i].spec == spec) {
            return given[i].from;
        }
    }
    return OPT_DEFAULT;
}

static void note_given(const opt_spec *spec, opt_origin from) {
    if (opt_from(spec) == OPT_DEFAULT && n_given < sizeof given / sizeof given[0]) {
        given[n_given].spec = spec;
        given[n_given++].from = from;
    }
}

static bool flag_value(const char *text, bool *out) {
    *out = text == NULL || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *out || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

bool opt_read_number(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        return false;
    }
    *out = number;
    return true;
}

static const char *store_number(const opt_spec *spec, const char *text) {
    static char why[64];
    const int64_t most = spec->kind == OPT_COUNT ? INT32_MAX : INT64_MAX;
    int64_t number;
    if (opt_read_number(text, &number) && number <= most) {
        *(int64_t *)spec->value = number;
        return NULL;
    }
    snprintf(why, sizeof why, "takes a number from 0 to %lld", (long long)most);
    return why;
}

static const char *store_snapshot(int64_t *value, const char *text) {
    int64_t id = 0;
    if (strcmp(text, "start") != 0 && (!opt_read_number(text, &id) || id == 0)) {
        return "takes the id of a snapshot, or start";
    }
    *value = id;
    return NULL;
}

const char *opt_store(const opt_spec *spec, const char *text, opt_origin from) {
    note_given(spec, from);
    switch (spec->kind) {
    case OPT_FLAG:
        return flag_value(text, spec->value) ? NULL : "takes true or false";
    case OPT_TEXT:
        *(const char **)spec->value = text;
        return NULL;
    case OPT_LIST: {
        opt_list *list = spec->value;
        const char **items = realloc(list->items, ((size_t)list->count + 1) * sizeof *items);
        if (items == NULL) {
            return "found no memory";
        }
        items[list->count++] = text;
        list->items = items;
        return NULL;
    }
    case OPT_NUMBER:
    case OPT_COUNT:
        return store_number(spec, text);
    case OPT_SNAPSHOT:
        return store_snapshot(spec->value, text);
    }
    return NULL;
}

/* Edits from a to b, as far as they matter here: at most 3 are told apart. */
static int distance(const char *a, const char *b, int left) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    if (*a == '\0' && *b == '\0') {
        return 0;
    }
    if (left == 0) {
        return 1;
    }
    int best = *a != '\0' && *b != '\0' ? distance(a + 1, b + 1, left - 1) : left;
    int dropped = *a != '\0' ? distance(a + 1, b, left - 1) : left;
    int added = *b != '\0' ? distance(a, b + 1, left - 1) : left;
    best = dropped < best ? dropped : best;
    best = added < best ? added : best;
    return best + 1;
}

const char *opt_nearest(const char *typed, size_t n,
                        const char *(*name_at)(const void *ctx, size_t i), const void *ctx) {
    int best = strlen(typed) < 4 ? 2 : 3; /* a short word is near to too many */
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        int away = distance(typed, name_at(ctx, i), 2);
        if (away < best) {
            best = away;
            nearest = name_at(ctx, i);
        }
    }
    return nearest;
}

const opt_spec *opt_at(const opt_command *command, size_t i) {
    size_t n;
    const opt_spec *globals = opt_globals(&n);
    if (i < command->n_specs) {
        return &command->specs[i];
    }
    return i - command->n_specs < n ? &globals[i - command->n_specs] : NULL;
}

static const char *option_at(const void *ctx, size_t i) {
    return opt_at(ctx, i)->name;
}

static void report_unknown(const opt_command *command, const char *arg) {
    size_t n;
    (void)opt_globals(&n);
    const char *near =
        arg[1] == '-' ? opt_nearest(arg + 2, command->n_specs + n, option_at, command) : NULL;
    if (near != NULL) {
        complain(command, "unknown option %s (did you mean --%s?)", arg, near);
    } else {
        complain(command, "unknown option %s (see tarn%s%s --help)", arg,
                 command->name[0] != '\0' ? " " : "", command->name);
    }
}

/* One option at argv[at]; the index after it, or -1. */
static int take_option(const opt_command *command, int argc, char **argv, int at) {
    const char *arg = argv[at];
    const char *text = NULL;
    const opt_spec *spec;
    if (arg[1] == '-') {
        const char *equals = strchr(arg, '=');
        size_t len = equals != NULL ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
        spec = opt_find(command, arg + 2, len, '\0');
        text = equals != NULL ? equals + 1 : NULL;
    } else {
        spec = opt_find(command, NULL, 0, arg[1]);
        text = arg[2] != '\0' ? arg + 2 : NULL;
        if (spec != NULL && spec->kind == OPT_FLAG && text != NULL) {
            spec = NULL;
        }
    }
    if (spec == NULL) {
        report_unknown(command, arg);
        return -1;
    }
    if (spec->kind == OPT_FLAG) {
        if (text != NULL) {
            complain(command, "--%s takes no value", spec->name);
            return -1;
        }
    } else if (text == NULL) {
        if (at + 1 == argc) {
            complain(command, "--%s needs %s", spec->name, spec->argument);
            return -1;
        }
        text = argv[++at];
    }
    const char *why = opt_store(spec, text, OPT_COMMAND_LINE);
    if (why != NULL) {
        complain(command, "--%s %s, not \"%s\"", spec->name, why, text);
        return -1;
    }
    return at + 1;
}

int opt_take_globals(int argc, char **argv) {
    static const opt_command none = {.name = ""};
    int at = 1;
    while (at >= 0 && at < argc && argv[at][0] == '-' && argv[at][1] != '\0') {
        at = take_option(&none, argc, argv, at);
    }
    return at;
}

int opt_parse(const opt_command *command, int argc, char **argv, const char **args) {
    int n = 0;
    bool plain = false;
    for (int at = 0; at < argc;) {
        const char *arg = argv[at];
        if (!plain && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
            opt_print_help(command);
            return -2;
        }
        if (!plain && strcmp(arg, "--") == 0) {
            plain = true;
            at++;
        } else if (plain || arg[0] != '-' || arg[1] == '\0') {
            args[n++] = arg;
            at++;
        } else {
            at = take_option(command, argc, argv, at);
            if (at < 0) {
                return -1;
            }
        }
    }
    if (n < command->min_args || (command->max_args >= 0 && n > command->max_args)) {
        complain(command, "takes %s (see tarn %s --help)",
                 command->usage[0] != '\0' ? command->usage : "options and no arguments",
                 command->name);
        return -1;
    }
    return n;
}

static void print_spec(const opt_spec *spec) {
    char left[64];
    const char *help = spec->help;
    snprintf(left, sizeof left, "%c%c%s--%s%s%s", spec->letter != '\0' ? '-' : ' ',
             spec->letter != '\0' ? spec->letter : ' ', spec->letter != '\0' ? ", " : "  ",
             spec->name, spec->kind == OPT_FLAG ? "" : " ",
             spec->kind == OPT_FLAG ? "" : spec->argument);
    printf("  %-30s", left);
    if (strlen(left) > 29) {
        printf("\n  %-30s", "");
    }
    for (;;) {
        const char *line = strchr(help, '\n');
        printf("%.*s\n", line != NULL ? (int)(line - help) : (int)strlen(help), help);
        if (line == NULL) {
            return;
        }
        help = line + 1;
        printf("  %-30s", "");
    }
}

#define HELP_WIDTH 80

/* Words of one paragraph, up to a line break that a blank or indented line follows. */
static const char *print_paragraph(const char *at) {
    size_t column = 0;
    while (*at != '\0' && *at != '\n') {
        size_t len = strcspn(at, " \n");
        if (column > 0 && column + 1 + len > HELP_WIDTH) {
            printf("\n");
            column = 0;
        }
        printf("%s%.*s", column > 0 ? " " : "", (int)len, at);
        column += len + (column > 0);
        at += len;
        bool joins = *at == '\n' && at[1] != '\n' && at[1] != ' ' && at[1] != '\0';
        at += *at == ' ' || joins;
    }
    printf("\n");
    return at;
}

void opt_print_text(const char *at) {
    while (*at != '\0') {
        if (*at == '\n' || *at == ' ') {
            size_t len = strcspn(at, "\n");
            printf("%.*s\n", (int)len, at);
            at += len;
        } else {
            at = print_paragraph(at);
        }
        at += *at == '\n';
    }
}

void opt_print_help(const opt_command *command) {
    size_t n_globals;
    const opt_spec *globals = opt_globals(&n_globals);
    printf("tarn %s - %s\n\nUsage: tarn %s [options]%s%s\n\n", command->name, command->summary,
           command->name, command->usage[0] != '\0' ? " " : "", command->usage);
    opt_print_text(command->about);
    if (command->n_specs > 0) {
        printf("\nOptions:\n");
    }
    for (size_t i = 0; i < command->n_specs; i++) {
        print_spec(&command->specs[i]);
    }
    printf("\nOptions of every command:\n");
    for (size_t i = 0; i < n_globals; i++) {
        print_spec(&globals[i]);
    }
}
