/* apps/tarn/begin.c - what every command does first. */
#include <stdio.h>
#include <stdlib.h>

#include "app.h"
#include "commands.h"

const char **command_begin(const opt_command *command, int argc, char **argv, int *n_args,
                           int *status) {
    const char **args = app_keep(calloc((size_t)argc + 1, sizeof *args));
    *status = TARN_INVALID;
    *n_args = args != NULL ? opt_parse(command, argc, argv, args) : -1;
    if (*n_args == -2) {
        *status = 0;
    }
    if (*n_args >= 0) {
        *status = app_start();
        *n_args = *status == 0 ? *n_args : -1;
    }
    return args;
}
