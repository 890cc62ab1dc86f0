/* apps/tarn/cmd_ingest.c - rows of a stream into a table (ingest.h says which file does what).
 *
 * inputs looked at -> table opened or made -> sink -> source -> rows, with a commit at every
 * checkpoint. An error or Ctrl-C: what is not committed is removed, what is stays; a stream that is
 * waited for (--follow, --state, --checkpoint-interval) ends with a checkpoint instead. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest.h"

/* Inputs are looked at before anything is made; none may be the file that bad rows go to. */
static tarn_code check_inputs(const ingest *in) {
    struct stat input;
    struct stat rejects;
    bool there = ingest_options.rejects != NULL && stat(ingest_options.rejects, &rejects) == 0;
    for (int i = 0; i < in->n_inputs; i++) {
        const char *path = in->inputs[i];
        if (strcmp(path, "-") == 0 || strncmp(path, "file:", 5) == 0 ||
            strncmp(path, "kafka://", 8) == 0) {
            continue;
        }
        if (stat(path, &input) != 0 || access(path, R_OK) != 0) {
            return app_error(app_file_code(errno), "file %s could not be opened: %s", path,
                             strerror(errno));
        }
        if (there && input.st_dev == rejects.st_dev && input.st_ino == rejects.st_ino) {
            return app_error(TARN_INVALID, "--rejects %s would overwrite an input", path);
        }
    }
    if (there && ingest_options.state == NULL && S_ISREG(rejects.st_mode) && rejects.st_size > 0) {
        return app_error(TARN_CONFLICT, "--rejects %s is there already and is not overwritten",
                         ingest_options.rejects);
    }
    return TARN_OK;
}

/* Options that would do nothing here were meant for something else. */
static int check_effects(const ingest *in) {
    const ingest_choices *o = &ingest_options;
    const char *of_kafka = o->kafka_balance                ? "--kafka-balance"
                           : o->kafka_group != NULL        ? "--kafka-group"
                           : o->kafka_properties.count > 0 ? "--kafka-property"
                           : o->kafka_wait != NULL         ? "--kafka-timeout"
                           : o->schema_registry != NULL    ? "--schema-registry"
                                                           : NULL;
    if (of_kafka != NULL && !ingest_is_kafka(in)) {
        return app_usage("%s goes with a kafka:// input", of_kafka);
    }
    if (o->accept_rollback && o->state == NULL) {
        return app_usage("--accept-rollback goes with --state");
    }
    if (o->accept_gap && !o->follow) {
        return app_usage("--accept-gap goes with --follow");
    }
    if (o->key != NULL && !o->upsert && !ingest_is_change_stream()) {
        return app_usage("--key goes with --upsert, --op-column or --format debezium-json: without "
                         "them rows are added, and take no other's place");
    }
    return 0;
}

/* What to do about an input that has more than the table. */
static void add_hint(tarn_code code) {
    tarn_error *err = &the_app.err;
    if (code == TARN_INVALID && err->detail[0] == '\0' && !ingest_options.evolve &&
        strstr(err->message, "was not in the schema") != NULL) {
        snprintf(err->detail, sizeof err->detail,
                 "--ignore-unknown leaves it out, --evolve makes it a column%s%s",
                 ingest_options.op_column != NULL ? ", --op-column names another: " : "",
                 ingest_options.op_column != NULL ? ingest_options.op_column : "");
    }
}

static void release(ingest *in) {
    if (in->first.release != NULL) {
        in->first.release(&in->first);
    }
    if (in->first_schema.release != NULL) {
        in->first_schema.release(&in->first_schema);
    }
    free(in->first_kinds);
    free(in->first_bad);
    ingest_mark_free(in);
    free(in->before);
    tarn_source_close(in->source);
    tarn_sink_free(in->sink);
    if (in->schema.release != NULL) {
        in->schema.release(&in->schema);
    }
    tarn_table_free(in->table);
    free(in->properties);
    free(in->kafka_properties);
    free(in->kafka_group);
    tarn_text_free(the_app.env, in->key);
}

/* The rest must not be taken for read. */
static int tell_cut_short(void) {
    app_say("info", "stopped before the end of the input: rows up to there are in the table%s",
            ingest_options.state != NULL ? ", the same command goes on" : "");
    return 130;
}

/* Releases all, and what was made for nothing goes, so that the corrected command makes it again,
 * with its own columns and partitions. Not where another job took over (DENIED), or others use the
 * table by now. */
static void take_back(ingest *in, tarn_code code) {
    tarn_table *table = in->table;
    bool wanted = in->created && in->commits == 0 && code != TARN_OK &&
                  code != TARN_COMMIT_UNKNOWN && code != TARN_DENIED && table != NULL;
    if (wanted && in->sink != NULL) {
        tarn_sink_forget(in->sink);
    }
    in->table = NULL;
    release(in);
    if (wanted) {
        tarn_code dropped = tarn_table_take_back(table, NULL);
        in->created = dropped != TARN_OK && dropped != TARN_CONFLICT;
    }
    tarn_table_free(table);
}

static int finish(ingest *in, tarn_code code) {
    if (code != TARN_OK && code != TARN_CANCELLED && in->rejects_failed) {
        code = ingest_rejects_error();
    }
    bool closed = in->rejects == NULL || fclose(in->rejects) == 0;
    if (code == TARN_OK && !closed) {
        code = ingest_rejects_error();
    }
    if (code != TARN_OK) {
        ingest_note_rest(in);
    }
    ingest_end_metrics(in);
    tarn_env_cancel_reset(the_app.env); /* cleaning up is not cancelled */
    ingest_wait_no_more();
    take_back(in, code);
    ingest_end_progress(in);
    if (code == TARN_OK) {
        ingest_print_result(in);
        return in->cut_short ? tell_cut_short() : 0;
    }
    add_hint(code);
    int status = app_fail(code);
    if (in->ends_waiting && ingest_options.state != NULL) {
        app_say("info",
                "stopped while the catalog was away: what is not in the table is in the state "
                "folder as far as it was read, and the same command goes on");
        return status;
    }
    /* with a state more may be read than committed by now */
    int64_t rows = ingest_options.state != NULL ? in->sum.rows : in->rows - in->waiting;
    if (in->commits > 0) {
        app_say("info",
                "%" PRId64 " row%s of %" PRId64 " commit%s stay; what was read after them is "
                "not in the table",
                rows, app_plural(rows), in->commits, app_plural(in->commits));
    } else if (in->created) {
        app_say("info", "table %s was made and is empty", in->table_name);
    }
    return status;
}

/* A stream that is waited for reacts to the clock and to signals between rows. */
static void prepare(ingest *in) {
    const char *what = ingest_options.on_bad_row;
    in->last_snapshot = -1;
    in->shown_at = -1; /* the first rows are shown at once */
    in->show = !the_app.quiet && !the_app.log_json && (the_app.progress || isatty(STDERR_FILENO));
    in->skip_bad = what != NULL && strcmp(what, "skip") == 0;
    in->streaming = ingest_options.follow || ingest_options.state != NULL ||
                    ingest_options.interval != NULL || ingest_is_kafka(in);
    the_app.makes = ingest_options.create;
    clock_gettime(CLOCK_MONOTONIC, &in->started);
    if (in->streaming) {
        ingest_catch_signals();
    }
}

/* A group that the user names is a setting like others, and begun from. */
static char *kafka_properties(void) {
    char *given = app_properties_json(&ingest_options.kafka_properties);
    text t = {0};
    if (given == NULL || ingest_options.kafka_group == NULL) {
        return given;
    }
    text_add(&t, "%.*s%s\"group.id\":", (int)strlen(given) - 1, given,
             strcmp(given, "{}") == 0 ? "" : ",");
    text_add_json(&t, ingest_options.kafka_group);
    text_add(&t, "}");
    free(given);
    return t.data;
}

static char *default_group(const ingest *in) {
    text t = {0};
    text_add(&t, "tarn-%s",
             ingest_options.sink_id != NULL ? ingest_options.sink_id : in->table_name);
    return t.data;
}

int cmd_ingest(int argc, char **argv) {
    int n;
    int status;
    ingest in;
    memset(&in, 0, sizeof in);
    const char **args = command_begin(&ingest_command, argc, argv, &n, &status);
    status = n < 0 ? status : ingest_check_options(n - 1);
    if (n < 0 || status != 0) {
        return status;
    }
    in.table_name = args[0];
    in.inputs = args + 1;
    in.n_inputs = n - 1;
    status = check_effects(&in);
    if (status != 0) {
        return status;
    }
    prepare(&in);
    in.properties = app_properties_json(&ingest_options.properties);
    in.kafka_properties = kafka_properties();
    in.kafka_group = default_group(&in);
    if (in.properties == NULL || in.kafka_properties == NULL) {
        return TARN_INVALID;
    }
    tarn_code code = check_inputs(&in);
    code = code == TARN_OK ? ingest_begin_metrics(&in) : code;
    code = code == TARN_OK ? ingest_open_table(&in) : code;
    code = code == TARN_OK ? ingest_start_sink(&in) : code;
    code = code == TARN_OK ? ingest_wait_for_catalog(&in) : code;
    code = code == TARN_OK ? ingest_run(&in) : code;
    return finish(&in, code);
}
