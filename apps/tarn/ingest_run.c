/* apps/tarn/ingest_run.c - from the source into the sink, with a checkpoint whenever rows or time
 * ask for one.
 *
 * With a state folder, offsets go with every checkpoint: {"rejects-bytes": n, "rejects": FILE,
 * "source": ...}. Bad rows that were set aside after it are cut off again when the stream goes on
 * from it, since they will come again. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ingest.h"

#define LOOK_MS    200 /* how long rows are waited for at once */
#define FILES_A_MB 170 /* that are done: half of the memory, by 3 KB each */

/* ---- signals ---- */

static atomic_int stop_asked; /* lock-free: set by a handler, looked at by any thread */

static void on_signal(int number) {
    int before = atomic_fetch_add(&stop_asked, 1);
    if (before > 1) {
        _exit(128 + number);
    }
    if (before > 0) {
        tarn_env_cancel(the_app.env);
    }
}

void ingest_catch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool ingest_was_stopped(void) {
    return atomic_load(&stop_asked) > 0;
}

/* ---- checkpoints ---- */

static char *make_offsets(const ingest *in, const char *source) {
    text t = {0};
    if (ingest_options.kafka_balance) { /* the table's, which others merge theirs into */
        text_add(&t, "%s", source);
        return t.data;
    }
    text_add(&t, "{");
    ingest_add_rejects(in, &t);
    text_add(&t, "\"source\":%s}", source);
    return t.data;
}

/* The source's part of what make_offsets wrote, in place. */
static char *offsets_of_source(char *offsets) {
    char *source = strstr(offsets, "\"source\":");
    size_t len = strlen(offsets);
    if (source == NULL || len == 0) {
        return NULL;
    }
    offsets[len - 1] = '\0';
    return source + strlen("\"source\":");
}

void ingest_note_stats(ingest *in) {
    tarn_sink_numbers before = in->stats.total;
    const tarn_sink_numbers *now = &in->stats.total;
    in->stats = (tarn_sink_stats)TARN_SINK_STATS_INIT;
    tarn_sink_stats_get(in->sink, &in->stats);
    in->sum.rows += now->rows - before.rows;
    in->sum.deleted_rows += now->deleted_rows - before.deleted_rows;
    in->sum.data_files += now->data_files - before.data_files;
    in->sum.delete_files += now->delete_files - before.delete_files;
    in->sum.bytes += now->bytes - before.bytes;
    in->sum.retries += now->retries - before.retries;
    in->commits += now->commits - before.commits;
}

static void note_outcome(ingest *in, const tarn_outcome *outcome) {
    in->outcome = *outcome;
    in->commit_seconds = ingest_seconds_since(&in->checkpointed);
    ingest_note_stats(in);
    if (outcome->state == TARN_COMMIT_DONE) {
        in->last_snapshot = outcome->snapshot_id;
    }
}

/* The source hears of what is in the table, not of what is on its way there. */
static tarn_code tell_source(ingest *in) {
    char *offsets = NULL;
    tarn_code code = tarn_sink_offsets(in->sink, &offsets, &the_app.err);
    if (code == TARN_OK && offsets != NULL) {
        ingest_mark_reached(in, offsets);
        const char *source = offsets_of_source(offsets);
        code = source != NULL ? tarn_source_committed(in->source, source, &the_app.err) : TARN_OK;
    }
    tarn_text_free(the_app.env, offsets);
    return code;
}

/* Of the rows that the sink has: not of those in hand, which the source counts as read. */
static tarn_code read_offsets(const ingest *in, char **out) {
    char *source = NULL;
    if (in->in_hand) {
        *out = strdup(in->before);
        return *out != NULL ? TARN_OK : app_error(TARN_NOMEM, "out of memory");
    }
    tarn_code code = tarn_source_offsets(in->source, &source, &the_app.err);
    *out = code == TARN_OK ? make_offsets(in, source) : NULL;
    tarn_text_free(the_app.env, source);
    return code;
}

/* Bad rows are set aside before the good ones around them are there. */
tarn_code ingest_checkpoint(ingest *in) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    char *offsets = NULL;
    tarn_code code = TARN_OK;
    clock_gettime(CLOCK_MONOTONIC, &in->checkpointed);
    code = ingest_keep_rejects(in);
    if (code != TARN_OK) {
        return code;
    }
    if (ingest_options.state == NULL && !ingest_is_kafka(in)) {
        code = tarn_sink_commit(in->sink, &outcome, &the_app.err);
        note_outcome(in, &outcome);
    } else {
        code = read_offsets(in, &offsets);
        if (code == TARN_OK && ingest_options.state != NULL) {
            code = ingest_mark_set(in, offsets);
        }
        if (code == TARN_OK) {
            code = tarn_sink_checkpoint(in->sink, offsets, &outcome, &the_app.err);
            note_outcome(in, &outcome); /* of those before it too, which it may fail of */
        }
        if (code == TARN_OK && ingest_options.state != NULL) {
            code = tell_source(in);
        } else if (code == TARN_OK) {
            const char *source =
                ingest_options.kafka_balance ? offsets : offsets_of_source(offsets);
            code = tarn_source_committed(in->source, source, &the_app.err);
        }
    }
    free(offsets);
    in->rewound = false;
    if (code != TARN_OK && ingest_options.kafka_balance) {
        return ingest_rewind(in, code);
    }
    if (code == TARN_OK) {
        in->checkpoints++;
        in->unsettled = ingest_options.state != NULL; /* then commits come behind */
        in->rewinds = 0;
        in->rejects_kept = in->rejects != NULL ? ftell(in->rejects) : 0;
        code = ingest_report(in);
        in->rejected_before = in->rejected;
        in->waiting = 0;
    }
    return code;
}

tarn_code ingest_flush(ingest *in) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    if (!in->unsettled) {
        return TARN_OK;
    }
    in->unsettled = false;
    tarn_code code = tarn_sink_flush(in->sink, &outcome, &the_app.err);
    note_outcome(in, &outcome);
    if (code == TARN_OK) {
        code = tell_source(in);
    }
    return code == TARN_OK ? ingest_report_commits(in) : code;
}

void ingest_note_rest(ingest *in) {
    tarn_outcome outcome = TARN_OUTCOME_INIT;
    tarn_error known = TARN_ERROR_INIT;
    if (in->sink != NULL) {
        known.code = tarn_sink_flush(in->sink, &outcome, &known); /* what was said already */
        note_outcome(in, &outcome);
        ingest_log_commits(in);
    }
}

/* Files that are done take memory until they are committed, and there is no end to them where rows
 * go round more partitions than memory has room for. */
static bool is_full(const ingest *in) {
    const ingest_choices *o = &ingest_options;
    tarn_sink_stats stats = TARN_SINK_STATS_INIT;
    if (o->checkpoint_rows <= 0 && o->interval_ms <= 0 && o->state == NULL) {
        return false; /* all rows are one commit */
    }
    tarn_sink_stats_get(in->sink, &stats);
    int64_t mb = o->memory_mb > 0 ? o->memory_mb : MEMORY_MB;
    return stats.finished_files > mb * FILES_A_MB;
}

static bool is_time(const ingest *in) {
    int64_t every = ingest_options.interval_ms;
    bool any = in->waiting > 0 || in->rejected > in->rejected_before ||
               ingest_options.empty_commit_every > 0;
    if (ingest_options.checkpoint_rows > 0 && in->waiting >= ingest_options.checkpoint_rows) {
        return true;
    }
    return every > 0 && any && ingest_seconds_since(&in->checkpointed) * 1000 >= (double)every;
}

/* ---- rows ---- */

/* Rows that do not fit are of this file; the table knows only that they do not fit. */
static void name_input(const ingest *in, tarn_code code) {
    tarn_error *err = &the_app.err;
    const char *name = tarn_source_name(in->source);
    if (code == TARN_INVALID && strstr(err->message, name) == NULL && err->detail[0] == '\0') {
        snprintf(err->detail, sizeof err->detail, "file %s", name);
    }
}

/* Rows as people count them: an update of an envelope is one change, though its row before it is
 * with it. */
static int64_t count_rows(const uint8_t *kinds, int64_t n) {
    const char *format = ingest_options.format;
    bool envelopes = kinds != NULL && format != NULL && strncmp(format, "debezium", 8) == 0;
    int64_t rows = n;
    for (int64_t i = 0; envelopes && i < n; i++) {
        rows -= kinds[i] == 1; /* update-before */
    }
    return rows;
}

/* Takes schema and array. */
static tarn_code write_rows(ingest *in, struct ArrowSchema *schema, struct ArrowArray *array,
                            const uint8_t *kinds) {
    tarn_code code = ingest_options.evolve ? ingest_evolve(in, schema) : TARN_OK;
    int64_t rows = count_rows(kinds, array->length);
    if (code == TARN_OK) {
        code = kinds != NULL ? tarn_sink_write_changes(in->sink, schema, array, kinds, &the_app.err)
                             : tarn_sink_write(in->sink, schema, array, &the_app.err);
    }
    schema->release(schema);
    if (code != TARN_OK) {
        name_input(in, code);
        app_drop_array(code, array);
        return code;
    }
    in->rows += rows;
    in->waiting += rows;
    return TARN_OK;
}

static tarn_code write_first(ingest *in) {
    struct ArrowArray array = in->first;
    if (array.release == NULL) {
        return TARN_OK;
    }
    memset(&in->first, 0, sizeof in->first);
    tarn_code code = write_rows(in, &in->first_schema, &array, in->first_kinds);
    free(in->first_kinds);
    in->first_kinds = NULL;
    return code;
}

/* Opens the source for the table's columns, where the state says that it stood. */
static tarn_code open_source(ingest *in) {
    tarn_source_options o;
    char *offsets = NULL;
    tarn_code code = tarn_sink_offsets(in->sink, &offsets, &the_app.err);
    if (code == TARN_OK && ingest_options.state != NULL) {
        code = ingest_mark_back(in, offsets);
    }
    ingest_fill_source(in, &o);
    o.file.schema = &in->schema;
    o.grow = ingest_options.evolve;
    o.accept_gap = ingest_options.accept_gap;
    if (code == TARN_OK && in->source == NULL) {
        o.file.reject = ingest_on_reject;
        o.file.reject_ctx = in;
        code =
            tarn_source_open(the_app.env, in->inputs, in->n_inputs, &o, &in->source, &the_app.err);
    }
    bool own = ingest_options.state != NULL; /* offsets, not those of a group in the table */
    code = code == TARN_OK ? ingest_open_rejects(in, own ? offsets : NULL) : code;
    if (code == TARN_OK && offsets != NULL && !ingest_options.kafka_balance) {
        char *source = offsets_of_source(offsets);
        code = source != NULL
                   ? tarn_source_seek(in->source, source, &the_app.err)
                   : app_error(TARN_INVALID,
                               "the state folder %s holds offsets that this command did not write",
                               ingest_options.state);
    }
    tarn_text_free(the_app.env, offsets);
    return code;
}

/* A checkpoint that comes between a batch's reading and its writing is of what was before it. */
static tarn_code note_before(ingest *in) {
    free(in->before);
    in->before = NULL;
    in->rejected_then = in->rejected;
    bool kept = ingest_options.state != NULL || ingest_is_kafka(in);
    return kept ? read_offsets(in, &in->before) : TARN_OK;
}

static tarn_code read_on(ingest *in, bool *ended) {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const uint8_t *kinds;
    tarn_code code = ingest_options.evolve ? note_before(in) : TARN_OK;
    if (code != TARN_OK) {
        return code;
    }
    code = tarn_source_next(in->source, in->streaming ? LOOK_MS : -1, &schema, &array, &kinds,
                            ended, &the_app.err);
    if (code == TARN_OK && array.release != NULL) {
        code = write_rows(in, &schema, &array, kinds);
    } else if (code == TARN_OK && !*ended) {
        code = ingest_flush(in); /* there is time for it */
    }
    return code == TARN_OK && ingest_options.kafka_balance ? ingest_balance(in) : code;
}

static tarn_code run_stream(ingest *in) {
    bool ended = false;
    tarn_code code = TARN_OK;
    clock_gettime(CLOCK_MONOTONIC, &in->checkpointed);
    code = code == TARN_OK ? write_first(in) : code;
    while (code == TARN_OK && !ended && !ingest_was_stopped()) {
        code = read_on(in, &ended);
        if (code == TARN_OK && (ended || is_time(in) || is_full(in))) {
            code = ingest_checkpoint(in);
            ended = ended && !in->rewound;
        }
        ingest_show_progress(in);
    }
    in->cut_short = !ended && !ingest_options.follow; /* what is followed has no end */
    code = code == TARN_OK && !ended ? ingest_checkpoint(in) : code;
    return code == TARN_OK ? ingest_flush(in) : code;
}

tarn_code ingest_run(ingest *in) {
    tarn_code code = open_source(in);
    if (code != TARN_OK) {
        return code; /* nothing was read that could come again */
    }
    code = run_stream(in);
    while (ingest_may_go_on(in, code)) {
        code = ingest_go_on(in);
        code = code == TARN_OK ? open_source(in) : code;
        if (code != TARN_OK) {
            break;
        }
        code = run_stream(in);
    }
    return code;
}
