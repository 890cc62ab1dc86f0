/* apps/tarn/commands.h - the commands as tables, for main.c. Each is defined beside the function
 * that runs it. */
#ifndef TARN_COMMANDS_H
#define TARN_COMMANDS_H

#include "opt.h"

extern const opt_command create_command, ls_command, describe_command, ingest_command, cat_command,
    changes_command, delete_command, update_command, merge_command, log_command, alter_command,
    set_command, rename_command, drop_command, register_command, file_command, serve_command,
    check_command, import_command;

/* Parses into the command's options and starts the env. *n_args < 0: the caller returns *status at
 * once. */
const char **command_begin(const opt_command *command, int argc, char **argv, int *n_args,
                           int *status);

#endif
