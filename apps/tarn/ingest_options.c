/* apps/tarn/ingest_options.c - the options of `tarn ingest`, and what they are for source and sink.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ingest.h"

#define NOT_SAID            (-1)
#define DEFAULT_INTERVAL_MS 10000 /* of streams that do not end by themselves */
#define KEYED_ROWS_A_MB     1600  /* of a checkpoint whose keys memory alone holds */

ingest_choices ingest_options = {.checkpoint_rows = NOT_SAID, .writers = NOT_SAID};

static const opt_spec INGEST_SPECS[] = {
    {"create", 0, OPT_FLAG, &ingest_options.create, "",
     "make the table from the data if it is not there"},
    {"schema", 0, OPT_TEXT, &ingest_options.schema, "TEXT",
     "with --create: columns, instead of what the data suggests"},
    {"partition-by", 0, OPT_TEXT, &ingest_options.partition_by, "TEXT",
     "with --create: \"month(time_hour), bucket(16, carrier)\""},
    {"sort-by", 0, OPT_TEXT, &ingest_options.sort_by, "TEXT",
     "with --create: the table's sort order"},
    {"identifier", 0, OPT_TEXT, &ingest_options.identifiers, "COLUMNS",
     "with --create: identifier fields (default: those of --key)"},
    {"property", 'p', OPT_LIST, &ingest_options.properties, "KEY=VALUE",
     "with --create: table property"},
    {"format", 'f', OPT_TEXT, &ingest_options.format, "NAME",
     "ndjson, csv, parquet, avro, debezium-json, and of Kafka\ndebezium-avro (default: by name, "
     "then by content)"},
    {"upsert", 0, OPT_FLAG, &ingest_options.upsert, "",
     "a row takes the place of all rows with its key"},
    {"key", 'k', OPT_TEXT, &ingest_options.key, "COLUMNS",
     "with --upsert or a change stream: columns of the key\n(default: the identifier fields)"},
    {"deletes", 0, OPT_TEXT, &ingest_options.deletes, "KIND",
     "how rows are taken away: equality (no state; some engines\nrefuse such tables), position, or "
     "vector (format version 3);\ndefault: the table's property tarn.row-deletes"},
    {"op-column", 0, OPT_TEXT, &ingest_options.op_column, "NAME",
     "column that says what each row does, and is not stored:\nc r u d, I U D, or +I -U +U -D"},
    {"follow", 0, OPT_FLAG, &ingest_options.follow, "",
     "wait for more: lines of one file that grows (also when it\nis rotated, however often: as "
     "NAME.1, NAME-20261130, packed by\ngzip or zstd), files of folders, messages of topics"},
    {"state", 0, OPT_TEXT, &ingest_options.state, "DIR",
     "remember what was read and committed: after a stop or a\nkill the same command goes on, and "
     "every row is there once"},
    {"sink-id", 0, OPT_TEXT, &ingest_options.sink_id, "TEXT",
     "who writes, over restarts (default: in the state folder)"},
    {"accept-rollback", 0, OPT_FLAG, &ingest_options.accept_rollback, "",
     "with --state: go on where the table was rolled back, without\nthe rows that were taken back "
     "(default: an error)"},
    {"accept-gap", 0, OPT_FLAG, &ingest_options.accept_gap, "",
     "with --follow of a file: go on, with a warning, where the\nfile was cut or is gone, or one "
     "that "
     "was rotated behind it is\n(default: an error)"},
    {"checkpoint-rows", 0, OPT_NUMBER, &ingest_options.checkpoint_rows, "N",
     "commit whenever at least N rows are waiting, or more files\nthan memory has room for "
     "(default: once, at the end)"},
    {"checkpoint-interval", 0, OPT_TEXT, &ingest_options.interval, "TIME",
     "commit what came every so often: 500ms, 10s, 5m;\na bare number is seconds (default with "
     "--follow: 10s)"},
    {"empty-commit-every", 0, OPT_COUNT, &ingest_options.empty_commit_every, "N",
     "without rows, commit every N-th checkpoint (default: never)"},
    {"writers", 0, OPT_COUNT, &ingest_options.writers, "N",
     "task writers side by side (default 1)"},
    {"distribution", 0, OPT_TEXT, &ingest_options.distribution, "MODE",
     "of rows among them: none, hash or range (default: the\ntable's write.distribution-mode)"},
    {"mode", 0, OPT_TEXT, &ingest_options.mode, "MODE",
     "append (default), overwrite (all rows, or those of --where),\nor replace-partitions (those "
     "that the data has rows of)"},
    {"where", 'w', OPT_TEXT, &ingest_options.where, "FILTER",
     "with --mode overwrite: which rows are replaced"},
    {"branch", 0, OPT_TEXT, &ingest_options.branch, "NAME",
     "commit to this branch instead of main; one that is not there\nis made of main's rows, and "
     "that is said"},
    {"evolve", 0, OPT_FLAG, &ingest_options.evolve, "",
     "columns that the table lacks are added to it, and ints\nwidened, before rows that need it"},
    {"null-text", 0, OPT_TEXT, &ingest_options.null_text, "TEXT",
     "CSV: this text is null, besides the empty one"},
    {"delimiter", 0, OPT_TEXT, &ingest_options.delimiter, "CHAR",
     "CSV: between fields (default ,)"},
    {"quote", 0, OPT_TEXT, &ingest_options.quote, "CHAR", "CSV: around fields (default \")"},
    {"no-header", 0, OPT_FLAG, &ingest_options.no_header, "",
     "CSV: no line of names; columns go by position"},
    {"ignore-unknown", 0, OPT_FLAG, &ingest_options.ignore_unknown, "",
     "members that the table has no column for are left out, not\nrejected"},
    {"on-bad-row", 0, OPT_TEXT, &ingest_options.on_bad_row, "WHAT",
     "stop (default), skip, or reject (default with --rejects)"},
    {"rejects", 0, OPT_TEXT, &ingest_options.rejects, "FILE",
     "bad rows go here as JSON lines: file, line, reason, row"},
    {"kafka-group", 0, OPT_TEXT, &ingest_options.kafka_group, "NAME",
     "consumer group that is told what was committed, and begun\nfrom where there is no state "
     "(default: tarn-TABLE, not begun\nfrom)"},
    {"kafka-balance", 0, OPT_FLAG, &ingest_options.kafka_balance, "",
     "share the topics' partitions with other processes of the\ngroup; offsets are kept in the "
     "table, "
     "without --state"},
    {"kafka-property", 0, OPT_LIST, &ingest_options.kafka_properties, "KEY=VALUE",
     "setting of librdkafka: security.protocol=SASL_SSL"},
    {"kafka-timeout", 0, OPT_TEXT, &ingest_options.kafka_wait, "TIME",
     "without --follow: how long a broker or schema registry may be\naway before that is an error "
     "(default 60s); with it they are\nwaited for"},
    {"schema-registry", 0, OPT_TEXT, &ingest_options.schema_registry, "URL",
     "where the schemas of Avro messages are"},
    {"catalog-timeout", 0, OPT_TEXT, &ingest_options.catalog_wait, "TIME",
     "how long the server or database of the catalog may be away\nbefore that is an error "
     "(default: "
     "a few seconds; with --follow,\n--state or Kafka it is waited for)"},
    {"merge-append", 0, OPT_FLAG, &ingest_options.merge, "",
     "merge small manifests while committing (streams always do)"},
    {"memory-mb", 0, OPT_COUNT, &ingest_options.memory_mb, "N",
     "memory for open files (default 128)"},
    {"metrics", 0, OPT_TEXT, &ingest_options.metrics, "FILE",
     "OpenMetrics text of this run, written anew at every\ncheckpoint"},
    {"log", 0, OPT_TEXT, &ingest_options.log, "FORMAT",
     "json: a line on stderr per checkpoint and, with --state, per\ncommit, which comes later"},
};

const opt_command ingest_command = {
    "ingest",
    "TABLE FILE...|FOLDER...|-|kafka://BROKER/TOPIC",
    "write rows of files, folders, standard input or Kafka into a table",
    "Files may be NDJSON, CSV (both also gzip or zstd compressed), Parquet or Avro. A folder gives "
    "each of its files once, when it has its name: write it as .name, _name, name.tmp or name.part "
    "and rename it; what comes into it later is not read, and told. Folders in it are passed over. "
    "Rows are committed at checkpoints; whatever "
    "happens, the table holds every "
    "committed row once and nothing of the rest.\n\n"
    "With --state, what was read is remembered together with what was committed: the same command "
    "goes on where the last one stopped or was killed. Ctrl-C then ends with a checkpoint, "
    "and with status 130 where the input's end was not reached (one that is followed has none). "
    "Standard "
    "input or a named pipe is gone on with when it begins with the same bytes (the first 4096 are "
    "looked at): send it again from its beginning. One that begins otherwise is new input and read "
    "whole, if the one before was read to its end; else it is an error.\n\n"
    "Change streams (--op-column, --format debezium-json) and --upsert need a key. The rows that "
    "they take away are found by the readers (--deletes equality), or by tarn, which then keeps an "
    "index of keys in the state folder (position, vector). Which of them may change from one run "
    "to the next; the key of a state folder stays. A change stream's insert of a key that is there "
    "already is a second row of it with equality, and takes its place with position and vector; "
    "add --upsert where such come (snapshots that are sent again, say), and it takes its place "
    "with all of them.\n\n"
    "With --kafka-balance any number of processes with one --kafka-group read the topics of one "
    "table: partitions move among them when one starts, stops or is killed. Where each partition "
    "stands is kept in the table's snapshots, with the rows, so every message is there once. With "
    "--upsert and change streams a key's messages must always come in one partition (so producers "
    "key them), rows are taken away by --deletes equality, and a checkpoint is made at least every "
    "200000 rows unless --checkpoint-rows or --memory-mb say otherwise.\n\nExamples:\n"
    "  tarn ingest app.flights flights.csv.gz --create --null-text NA \\\n"
    "      --partition-by \"month(time_hour), bucket(16, carrier)\" --checkpoint-rows 100000\n"
    "  zcat events.ndjson.gz | tarn ingest app.events - --format ndjson --rejects bad.ndjson\n"
    "  tarn ingest app.events /var/spool/events --follow --state /var/lib/tarn/events\n"
    "  tarn ingest app.users kafka://broker:9092/db.users --format debezium-json --follow \\\n"
    "      --upsert --key id --deletes vector --state /var/lib/tarn/users",
    2,
    -1,
    INGEST_SPECS,
    sizeof INGEST_SPECS / sizeof INGEST_SPECS[0]};

/* ---- checks ---- */

/* "500ms", "10s", "5m", "1h", "7" (seconds) as milliseconds. */
static bool read_duration(const char *words, int64_t *out) {
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}};
    char *end;
    double value = strtod(words, &end);
    for (size_t i = 0; end != words && i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0 && value > 0 && value * (double)units[i].ms <= 1e12) {
            *out = (int64_t)(value * (double)units[i].ms);
            return *out > 0;
        }
    }
    return false;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return word == NULL || strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int check_modes(void) {
    const ingest_choices *o = &ingest_options;
    bool append = o->mode == NULL || strcmp(o->mode, "append") == 0;
    if (!is_one_of(o->mode, "append", "overwrite", "replace-partitions")) {
        return app_usage("--mode takes append, overwrite or replace-partitions, not \"%s\"",
                         o->mode);
    }
    if (!append && o->checkpoint_rows > 0) {
        return app_usage("--mode %s replaces rows in one commit; it takes no --checkpoint-rows",
                         o->mode);
    }
    if (!append && (o->interval != NULL || o->follow)) {
        return app_usage("--mode %s replaces rows in one commit; it takes no %s", o->mode,
                         o->follow ? "--follow" : "--checkpoint-interval");
    }
    if (!append && o->upsert) {
        return app_usage("--upsert goes with --mode append");
    }
    if (o->where != NULL && (append || strcmp(o->mode, "overwrite") != 0)) {
        return app_usage("--where goes with --mode overwrite");
    }
    if (!is_one_of(o->deletes, "equality", "position", "vector")) {
        return app_usage("--deletes takes equality, position or vector, not \"%s\"", o->deletes);
    }
    bool changes = o->upsert || o->key != NULL || ingest_is_change_stream();
    if (changes && o->deletes != NULL && strcmp(o->deletes, "equality") != 0 && o->state == NULL) {
        return app_usage("--deletes %s keeps an index of keys, and needs --state DIR for it",
                         o->deletes);
    }
    if (!is_one_of(o->distribution, "none", "hash", "range")) {
        return app_usage("--distribution takes none, hash or range, not \"%s\"", o->distribution);
    }
    return 0;
}

static int check_bad_rows(void) {
    const char *what = ingest_options.on_bad_row;
    if (!is_one_of(what, "stop", "skip", "reject")) {
        return app_usage("--on-bad-row takes stop, skip or reject, not \"%s\"", what);
    }
    if (what != NULL && strcmp(what, "reject") == 0 && ingest_options.rejects == NULL) {
        return app_usage("--on-bad-row reject needs --rejects FILE");
    }
    if (what != NULL && strcmp(what, "reject") != 0 && ingest_options.rejects != NULL) {
        return app_usage("--rejects goes with --on-bad-row reject, not %s", what);
    }
    return 0;
}

static int check_balance(void) {
    ingest_choices *o = &ingest_options;
    if (!o->kafka_balance) {
        return 0;
    }
    if (o->state != NULL) {
        return app_usage("--kafka-balance keeps offsets in the table; it takes no --state");
    }
    if (o->mode != NULL && strcmp(o->mode, "append") != 0) {
        return app_usage("--kafka-balance goes with --mode append");
    }
    if (o->deletes != NULL &&
        (strcmp(o->deletes, "position") == 0 || strcmp(o->deletes, "vector") == 0)) {
        return app_usage("--deletes %s needs an index of keys, which one process alone has; with "
                         "--kafka-balance take equality",
                         o->deletes);
    }
    if (o->evolve) {
        return app_usage("--evolve changes the table under the other processes of "
                         "--kafka-balance; add columns with `tarn alter` first");
    }
    if (o->create && o->schema == NULL) {
        return app_usage("--create with --kafka-balance needs --schema");
    }
    if (o->checkpoint_rows == 0 && (o->upsert || ingest_is_change_stream())) {
        o->checkpoint_rows = (o->memory_mb > 0 ? o->memory_mb : MEMORY_MB) * KEYED_ROWS_A_MB;
    }
    return 0;
}

/* A zero is no wish for the default. */
static int check_numbers(void) {
    ingest_choices *o = &ingest_options;
    if (o->checkpoint_rows == 0 || o->writers == 0) {
        return app_usage("--%s takes a number of 1 or more",
                         o->writers == 0 ? "writers" : "checkpoint-rows");
    }
    o->checkpoint_rows = o->checkpoint_rows == NOT_SAID ? 0 : o->checkpoint_rows;
    o->writers = o->writers == NOT_SAID ? 0 : o->writers;
    return 0;
}

int ingest_check_options(int32_t n_inputs) {
    ingest_choices *o = &ingest_options;
    int status = check_numbers();
    status = status == 0 ? check_balance() : status;
    status = status == 0 ? check_modes() : status;
    status = status == 0 ? check_bad_rows() : status;
    o->interval_ms = -1;
    if (status != 0) {
        return status;
    }
    if (o->interval != NULL && !read_duration(o->interval, &o->interval_ms)) {
        return app_usage("--checkpoint-interval takes a time as 500ms, 10s, 5m, not \"%s\"",
                         o->interval);
    }
    if (o->kafka_wait != NULL && !read_duration(o->kafka_wait, &o->kafka_wait_ms)) {
        return app_usage("--kafka-timeout takes a time as 500ms, 10s, 5m, not \"%s\"",
                         o->kafka_wait);
    }
    if (o->catalog_wait != NULL && !read_duration(o->catalog_wait, &o->catalog_wait_ms)) {
        return app_usage("--catalog-timeout takes a time as 500ms, 10s, 5m, not \"%s\"",
                         o->catalog_wait);
    }
    if (o->log != NULL && strcmp(o->log, "json") != 0) {
        return app_usage("--log takes json, not \"%s\"", o->log);
    }
    if (o->evolve && o->ignore_unknown) {
        return app_usage("--evolve makes columns of what --ignore-unknown leaves out");
    }
    if (o->writers > 1024 || n_inputs < 1) {
        return app_usage("--writers takes at most 1024");
    }
    return 0;
}

/* ---- for the library ---- */

bool ingest_is_change_stream(void) {
    const char *format = ingest_options.format;
    return ingest_options.op_column != NULL ||
           (format != NULL && strncmp(format, "debezium", 8) == 0);
}

bool ingest_is_kafka(const ingest *in) {
    return strncmp(in->inputs[0], "kafka://", 8) == 0;
}

void ingest_fill_source(ingest *in, tarn_source_options *o) {
    const ingest_choices *c = &ingest_options;
    int64_t n = c->checkpoint_rows;
    *o = (tarn_source_options)TARN_SOURCE_OPTIONS_INIT;
    o->file.format = c->format;
    o->file.null_text = c->null_text;
    o->file.csv_delimiter = c->delimiter;
    o->file.csv_quote = c->quote;
    o->file.csv_no_header = c->no_header;
    o->file.ignore_unknown = c->ignore_unknown;
    o->file.batch_rows = n > 0 && n < 16384 ? n : 0;
    o->op_column = c->op_column;
    o->follow = c->follow;
    o->kafka_properties_json = in->kafka_properties;
    o->kafka_group = in->kafka_group;
    o->kafka_balance = c->kafka_balance;
    o->kafka_timeout_ms = c->kafka_wait_ms;
    o->schema_registry = c->schema_registry;
    o->key = in->key != NULL ? in->key : c->upsert || ingest_is_change_stream() ? c->key : NULL;
    if (c->follow && c->interval_ms < 0) {
        ingest_options.interval_ms = DEFAULT_INTERVAL_MS;
    }
}

void ingest_fill_sink(const ingest *in, tarn_sink_options *o) {
    const ingest_choices *c = &ingest_options;
    const char *mode = c->mode != NULL ? c->mode : "append";
    *o = (tarn_sink_options)TARN_SINK_OPTIONS_INIT;
    o->mode = strcmp(mode, "overwrite") == 0            ? TARN_SINK_OVERWRITE
              : strcmp(mode, "replace-partitions") == 0 ? TARN_SINK_REPLACE_PARTITIONS
                                                        : TARN_SINK_APPEND;
    o->overwrite_where = c->where;
    o->branch = c->branch;
    o->merge_manifests = c->merge;
    o->memory_bytes = (uint64_t)c->memory_mb << 20;
    o->upsert = c->upsert;
    o->changes = ingest_is_change_stream();
    o->key = c->key;
    o->deletes = c->deletes;
    o->state_dir = c->state;
    o->background = c->state != NULL;
    o->sink_id = c->sink_id;
    o->accept_rollback = c->accept_rollback;
    o->table_offsets = !c->kafka_balance        ? NULL
                       : c->kafka_group != NULL ? c->kafka_group
                                                : in->kafka_group;
    o->writers = (int32_t)c->writers;
    o->distribution = c->distribution;
    o->empty_commit_every = (int32_t)c->empty_commit_every;
}
