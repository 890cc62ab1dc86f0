/* apps/tarn/opt_fill.c - options from the environment and from a configuration file, by the same
 * table as those of the command line.
 *
 * Invariants: 1 an option that the command line gave is left alone, one that the environment gave
 * is not taken from the file; 2 a file with one wrong line is refused, by its name and line. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"

extern char **environ;

/* What says where to look, or to do something else instead. */
static bool is_for_command_line(const opt_spec *spec) {
    return strcmp(spec->name, "help") == 0 || strcmp(spec->name, "check-config") == 0 ||
           strcmp(spec->name, "config") == 0;
}

static void variable_name(const char *prefix, const opt_spec *spec, char *name, size_t size) {
    snprintf(name, size, "%s_%s", prefix, spec->name);
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
    }
}

/* Whether it is an option's, or one of those that Kubernetes sets for a service of this name. */
static bool is_known_variable(const opt_command *command, const char *prefix, const char *given) {
    char name[128];
    size_t len = strcspn(given, "=");
    const char *rest = given + strlen(prefix) + 1;
    const opt_spec *spec;
    for (size_t i = 0; (spec = opt_at(command, i)) != NULL; i++) {
        variable_name(prefix, spec, name, sizeof name);
        if (strlen(name) == len && strncmp(name, given, len) == 0) {
            return strcmp(spec->name, "help") != 0 && strcmp(spec->name, "check-config") != 0;
        }
    }
    return strncmp(rest, "SERVICE_", 8) == 0 || strncmp(rest, "PORT=", 5) == 0 ||
           strncmp(rest, "PORT_", 5) == 0;
}

static void tell_unknown_variables(const opt_command *command, const char *prefix) {
    size_t len = strlen(prefix);
    for (char **v = environ; *v != NULL; v++) {
        if (strncmp(*v, prefix, len) == 0 && (*v)[len] == '_' &&
            !is_known_variable(command, prefix, *v)) {
            app_say("warning", "$%.*s is no option of tarn %s and is passed over",
                    (int)strcspn(*v, "="), *v, command->name);
        }
    }
}

static bool fill_from_environment(const opt_command *command, const char *prefix) {
    char name[128];
    const opt_spec *spec;
    for (size_t i = 0; (spec = opt_at(command, i)) != NULL; i++) {
        if (opt_from(spec) != OPT_DEFAULT || is_for_command_line(spec)) {
            continue;
        }
        variable_name(prefix, spec, name, sizeof name);
        const char *value = getenv(name);
        const char *why =
            value != NULL && value[0] != '\0' ? opt_store(spec, value, OPT_ENVIRONMENT) : NULL;
        if (why != NULL) {
            fprintf(stderr, "tarn %s: $%s %s, not \"%s\"\n", command->name, name, why, value);
            return false;
        }
    }
    return true;
}

typedef struct config_file {
    const opt_command *command;
    const char *path;
    size_t line;
    const opt_spec *seen[128];
    size_t n_seen;
} config_file;

static bool refuse_line(const config_file *file, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse_line(const config_file *file, const char *fmt, ...) {
    va_list args;
    fprintf(stderr, "tarn %s: %s:%zu: ", file->command->name, file->path, file->line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n");
    return false;
}

static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        len--;
    }
    text[len] = '\0';
    return text;
}

static bool was_seen(config_file *file, const opt_spec *spec) {
    for (size_t i = 0; i < file->n_seen; i++) {
        if (file->seen[i] == spec) {
            return true;
        }
    }
    if (file->n_seen < sizeof file->seen / sizeof file->seen[0]) {
        file->seen[file->n_seen++] = spec;
    }
    return false;
}

static const char *option_name(const void *ctx, size_t i) {
    return opt_at(ctx, i)->name;
}

static bool refuse_name(const config_file *file, const char *name) {
    size_t n = 0;
    while (opt_at(file->command, n) != NULL) {
        n++;
    }
    const char *near = opt_nearest(name, n, option_name, file->command);
    return near != NULL
               ? refuse_line(file, "there is no option \"%s\" (did you mean %s?)", name, near)
               : refuse_line(file, "there is no option \"%s\"", name);
}

/* Takes a comment off the end of a value, and one pair of quotes, in which # is no comment. NULL:
 * what is between the quotes does not end, or something comes after it. */
static char *plain_value(char *text) {
    char quote = text[0];
    if (quote == '"' || quote == '\'') {
        char *end = strchr(text + 1, quote);
        const char *rest = end != NULL ? trim(end + 1) : "?";
        if (end == NULL || (rest[0] != '\0' && rest[0] != '#')) {
            return NULL;
        }
        *end = '\0';
        return text + 1;
    }
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '#' && (c == text || c[-1] == ' ' || c[-1] == '\t')) {
            *c = '\0';
        }
    }
    return trim(text);
}

static bool take_line(config_file *file, char *line) {
    char *text = trim(line);
    if (text[0] == '\0' || text[0] == '#') {
        return true;
    }
    char *equals = strchr(text, '=');
    if (equals == NULL) {
        return refuse_line(file, "this is no \"name = value\"");
    }
    *equals = '\0';
    const char *name = trim(text);
    char *value = plain_value(trim(equals + 1));
    const opt_spec *spec = opt_find(file->command, name, strlen(name), '\0');
    if (spec == NULL || is_for_command_line(spec)) {
        return refuse_name(file, name);
    }
    if (was_seen(file, spec) && spec->kind != OPT_LIST) {
        return refuse_line(file, "%s was given before", name);
    }
    if (value == NULL) {
        return refuse_line(file, "the quotes of %s do not end, or more comes after them", name);
    }
    if (value[0] == '\0') {
        return refuse_line(file, "%s has no value", name);
    }
    if (opt_from(spec) != OPT_DEFAULT && opt_from(spec) != OPT_FILE) {
        return true;
    }
    const char *why = opt_store(spec, app_keep(strdup(value)), OPT_FILE);
    return why == NULL || refuse_line(file, "%s %s, not \"%s\"", name, why, value);
}

static int fill_from_file(const opt_command *command, const char *path) {
    config_file file = {.command = command, .path = path};
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool whole = true;
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        (void)app_error(app_file_code(errno), "configuration %s could not be opened: %s", path,
                        strerror(errno));
        return app_fail(the_app.err.code);
    }
    while (whole && (len = getline(&line, &cap, in)) >= 0) {
        file.line++;
        whole = strlen(line) == (size_t)len ? take_line(&file, line)
                                            : refuse_line(&file, "this line holds a NUL");
    }
    if (whole && ferror(in)) {
        (void)app_error(TARN_IO, "configuration %s could not be read: %s", path, strerror(errno));
        free(line);
        fclose(in);
        return app_fail(TARN_IO);
    }
    free(line);
    fclose(in);
    return whole ? 0 : TARN_INVALID;
}

int opt_fill(const opt_command *command, const char *prefix, const char *path) {
    if (!fill_from_environment(command, prefix)) {
        return TARN_INVALID;
    }
    tell_unknown_variables(command, prefix);
    return path != NULL ? fill_from_file(command, path) : 0;
}

static void print_setting(const opt_spec *spec, const char *value) {
    static const char *const FROM[] = {"default", "command line", "environment", "file"};
    printf("# %s\n%s = %s\n", FROM[opt_from(spec)], spec->name, value);
}

void opt_print_given(const opt_command *command,
                     const char *(*shown)(const opt_spec *spec, const char *text)) {
    char number[24];
    const opt_spec *spec;
    for (size_t i = 0; (spec = opt_at(command, i)) != NULL; i++) {
        if (opt_from(spec) == OPT_DEFAULT || is_for_command_line(spec)) {
            continue;
        }
        switch (spec->kind) {
        case OPT_FLAG:
            print_setting(spec, *(const bool *)spec->value ? "true" : "false");
            break;
        case OPT_TEXT:
            print_setting(spec, shown(spec, *(const char *const *)spec->value));
            break;
        case OPT_NUMBER:
        case OPT_COUNT:
        case OPT_SNAPSHOT:
            snprintf(number, sizeof number, "%lld", (long long)*(const int64_t *)spec->value);
            print_setting(spec, number);
            break;
        case OPT_LIST:
            for (int v = 0; v < ((const opt_list *)spec->value)->count; v++) {
                print_setting(spec, shown(spec, ((const opt_list *)spec->value)->items[v]));
            }
            break;
        }
    }
}
