/* apps/tarn/opt.h - options of a command as a table, which parses, prints --help, and feeds the man
 * page and shell completion. */
#ifndef TARN_OPT_H
#define TARN_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum opt_kind {
    OPT_FLAG,
    OPT_TEXT,
    OPT_LIST,
    OPT_NUMBER,  /* 0 or more, of 64 bits */
    OPT_COUNT,   /* 0 or more, of 32 bits */
    OPT_SNAPSHOT /* "start", which is 0, or a snapshot's id */
} opt_kind;

typedef struct opt_list {
    const char **items;
    int count;
} opt_list;

typedef struct opt_spec {
    const char *name; /* "partition-by": given as --partition-by */
    char letter;      /* 0: none */
    opt_kind kind;
    void *value;          /* bool, const char *, opt_list, int64_t */
    const char *argument; /* in help: "TEXT" */
    const char *help;     /* one line, or several with \n */
} opt_spec;

typedef struct opt_command {
    const char *name;    /* "ingest" */
    const char *usage;   /* "TABLE FILE..." */
    const char *summary; /* one line */
    const char
        *about; /* of --help: paragraphs, which are filled, and indented lines, which are not */
    int min_args, max_args; /* max -1: any number */
    const opt_spec *specs;
    size_t n_specs;
} opt_command;

/* Parses argv[0..argc): options anywhere, "--" ends them. Plain arguments go to args (argc entries
 * of room). Returns how many, or -1 after a message on stderr; -2 after --help was printed. */
int opt_parse(const opt_command *command, int argc, char **argv, const char **args);
/* Options of every command that stand before the command's name: index of what comes after them, or
 * -1 after a message on stderr. */
int opt_take_globals(int argc, char **argv);
/* Paragraphs filled to 80 columns; indented lines as they are. */
void opt_print_text(const char *text);
void opt_print_help(const opt_command *command);
/* Which of n names (name_at gives them) somebody who typed this may have meant; NULL: none is near.
 */
const char *opt_nearest(const char *typed, size_t n,
                        const char *(*name_at)(const void *ctx, size_t i), const void *ctx);
/* Where an option's value comes from; the first has the last word. */
typedef enum opt_origin { OPT_DEFAULT = 0, OPT_COMMAND_LINE, OPT_ENVIRONMENT, OPT_FILE } opt_origin;
opt_origin opt_from(const opt_spec *spec);
/* Digits alone, of a number that 64 bits hold. */
bool opt_read_number(const char *text, int64_t *out);
/* The option of a name or letter ('\0': none), of the command or of all; NULL: there is none. */
const opt_spec *opt_find(const opt_command *command, const char *name, size_t len, char letter);
/* The command's options, then those of all; NULL behind the last. */
const opt_spec *opt_at(const opt_command *command, size_t i);
/* text (which stays where it is; NULL for a flag: true) becomes the value. NULL, or what is wrong:
 * "takes a number". */
const char *opt_store(const opt_spec *spec, const char *text, opt_origin from);
/* Values for what the command line left open: of the environment (PREFIX_NAME, in capitals), then
 * of a file of lines "name = value # comment" (path NULL: none). 0, or the exit status after a
 * message on stderr. Variables that begin so and are no option's are told. */
int opt_fill(const opt_command *command, const char *prefix, const char *path);
/* What has a value, as lines of such a file that say where it is from. shown: what may be told of a
 * text. */
void opt_print_given(const opt_command *command,
                     const char *(*shown)(const opt_spec *spec, const char *text));
/* Options that every command takes (main.c). */
const opt_spec *opt_globals(size_t *n);

#endif
