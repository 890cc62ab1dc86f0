/* apps/tarn/cmd_changes.c - changes: what commits did to a table's rows. */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "commands.h"

static struct {
    const char *format, *output, *ref, *key, *columns, *where;
    int64_t from, to, limit; /* from 0: the beginning */
    bool net;
} changes_options = {.to = -1, .limit = -1};

static const opt_spec CHANGES_SPECS[] = {
    {"from", 0, OPT_SNAPSHOT, &changes_options.from, "ID",
     "changes after this snapshot (default: since the table began)"},
    {"to", 0, OPT_NUMBER, &changes_options.to, "ID", "up to this snapshot (default: the newest)"},
    {"ref", 0, OPT_TEXT, &changes_options.ref, "NAME", "up to this branch or tag"},
    {"key", 0, OPT_TEXT, &changes_options.key, "COLUMNS",
     "rows of one key that a commit deletes and inserts are updates\n(default: the table's "
     "identifier fields)"},
    {"net", 0, OPT_FLAG, &changes_options.net, "", "only what is left of all commits together"},
    {"columns", 0, OPT_TEXT, &changes_options.columns, "NAMES",
     "comma separated; dotted for nested ones; _change_type and its\nkin too"},
    {"where", 'w', OPT_TEXT, &changes_options.where, "FILTER",
     "only changes for which this is true (of an update each of its\ntwo rows by itself)"},
    {"limit", 'n', OPT_NUMBER, &changes_options.limit, "N", "at most N rows"},
    {"format", 'f', OPT_TEXT, &changes_options.format, "NAME",
     "ndjson, csv or table (default: table on a terminal, else ndjson)"},
    {"output", 'o', OPT_TEXT, &changes_options.output, "FILE",
     "write a file instead: .parquet, .avro, .ndjson, .csv, the texts\nalso .gz or .zst"},
};

const opt_command changes_command = {
    "changes",
    "TABLE",
    "print the rows that commits inserted, deleted and updated",
    "Rows come in commit order, deleted ones first, with the columns _change_type (INSERT, DELETE, "
    "UPDATE_BEFORE,\nUPDATE_AFTER), _change_ordinal and _commit_snapshot_id. Rows that a commit "
    "only "
    "moved to other files are left out,\nand so are commits that replace files. Where a table's "
    "first snapshots expired, --from names one that is left; --net without it tells the rows of "
    "now as inserted.\n\nExamples:\n"
    "  tarn changes app.users --from 3051729675574597004\n"
    "  tarn changes app.users --from 3051729675574597004 --net --key id\n"
    "  tarn changes app.users --where \"_change_type = 'DELETE'\" --columns id,_commit_snapshot_id",
    1,
    1,
    CHANGES_SPECS,
    sizeof CHANGES_SPECS / sizeof CHANGES_SPECS[0]};

int cmd_changes(int argc, char **argv) {
    int n;
    int status;
    int64_t rows;
    tarn_table *table = NULL;
    struct ArrowArrayStream stream;
    tarn_changes_options o = TARN_CHANGES_OPTIONS_INIT;
    const char **args = command_begin(&changes_command, argc, argv, &n, &status);
    if (n < 0) {
        return status;
    }
    o.from_snapshot_id = changes_options.from;
    o.to_snapshot_id = changes_options.to;
    o.ref = changes_options.ref;
    o.key = changes_options.key;
    o.net = changes_options.net;
    o.columns = changes_options.columns;
    o.where = changes_options.where;
    o.limit = changes_options.limit;
    const char *output = changes_options.output != NULL ? changes_options.output : "-";
    tarn_code code =
        changes_options.output != NULL ? TARN_OK : app_check_format(changes_options.format);
    if (code == TARN_OK) {
        code = app_table(args[0], &table, NULL);
    }
    if (code == TARN_OK) {
        code = tarn_table_changes(table, &o, &stream, &the_app.err);
        tarn_table_free(table);
    }
    if (code == TARN_OK) {
        code = app_print_stream(&stream, output, changes_options.format, &rows);
    }
    return code == TARN_OK ? 0 : app_fail(code);
}
