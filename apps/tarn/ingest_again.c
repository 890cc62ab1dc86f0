/* apps/tarn/ingest_again.c - a stream goes on by itself where a checkpoint could not be committed
 * because of what others did to the table: it does what the same command, run again, would do.
 *
 * conflict -> sink of the same state, opened again (it commits or gives up what is durable) ->
 * source, opened again and sought to the offsets of the last committed checkpoint. Nothing of the
 * checkpoint that failed is in the table, nor of those behind it, and their rows come again. Only
 * where the inputs can be read again, and only so many times without a checkpoint between. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ingest.h"

#define MAX_TRIES     6
#define FIRST_WAIT_MS 100

/* Standard input and pipes are gone once they are read. */
static bool can_read_again(const ingest *in) {
    struct stat info;
    for (int32_t i = 0; i < in->n_inputs && !ingest_is_kafka(in); i++) {
        const char *path = in->inputs[i];
        if (strcmp(path, "-") == 0 ||
            (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))) {
            return false;
        }
    }
    return true;
}

bool ingest_may_go_on(ingest *in, tarn_code code) {
    if (code != TARN_CONFLICT || ingest_options.state == NULL || ingest_was_stopped()) {
        return false;
    }
    ingest_note_rest(in);
    if (in->commits > in->commits_before) {
        in->tries = 0;
    }
    in->commits_before = in->commits;
    return in->tries < MAX_TRIES && can_read_again(in);
}

/* ---- what is counted ---- */

static bool is_mark(const ingest_mark *mark, const char *offsets) {
    return strcmp(mark->offsets, offsets != NULL ? offsets : "") == 0;
}

static void drop_marks(ingest *in, int32_t n) { /* the oldest */
    for (int32_t i = 0; i < n; i++) {
        free(in->marks[i].offsets);
    }
    for (int32_t i = n; i < in->n_marks; i++) {
        in->marks[i - n] = in->marks[i];
    }
    in->n_marks -= n;
}

/* The newest with these offsets: those of checkpoints between which nothing was read are alike. */
static int32_t find_mark(const ingest *in, const char *offsets) {
    int32_t at = in->n_marks - 1;
    while (at >= 0 && !is_mark(&in->marks[at], offsets)) {
        at--;
    }
    return at;
}

static tarn_code add_mark(ingest *in, const char *offsets, int64_t rows, int64_t rejected) {
    if (in->n_marks == in->max_marks) {
        int32_t max = in->max_marks > 0 ? 2 * in->max_marks : 8;
        ingest_mark *grown = realloc(in->marks, (size_t)max * sizeof *grown);
        if (grown == NULL) {
            return app_error(TARN_NOMEM, "out of memory");
        }
        in->marks = grown;
        in->max_marks = max;
    }
    ingest_mark mark = {strdup(offsets != NULL ? offsets : ""), rows, rejected};
    if (mark.offsets == NULL) {
        return app_error(TARN_NOMEM, "out of memory");
    }
    in->marks[in->n_marks++] = mark;
    return TARN_OK;
}

tarn_code ingest_mark_set(ingest *in, const char *offsets) {
    return add_mark(in, offsets, in->rows, in->rejected);
}

void ingest_mark_reached(ingest *in, const char *offsets) {
    int32_t at = find_mark(in, offsets);
    if (at > 0) {
        drop_marks(in, at);
    }
}

/* Without a mark it is the beginning: bad rows were seen at most, to make the table, and come
 * again.
 */
tarn_code ingest_mark_back(ingest *in, const char *offsets) {
    int32_t at = find_mark(in, offsets);
    int64_t rows = 0;
    int64_t rejected = 0;
    if (at >= 0) {
        rows = in->rows = in->marks[at].rows;
        rejected = in->rejected = in->rejected_before = in->marks[at].rejected;
    }
    drop_marks(in, in->n_marks);
    return add_mark(in, offsets, rows, rejected);
}

void ingest_mark_free(ingest *in) {
    drop_marks(in, in->n_marks);
    free(in->marks);
    in->marks = NULL;
    in->max_marks = 0;
}

/* ---- from the last checkpoint on ---- */

/* Others that are at it, a compaction, say, get time to end. */
static void wait_a_little(const ingest *in) {
    int64_t ms = (int64_t)FIRST_WAIT_MS << in->tries;
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&wait, NULL); /* a signal ends it */
}

static tarn_code reopen(ingest *in) {
    in->taken_before += in->source != NULL ? tarn_source_taken(in->source) : 0;
    tarn_source_close(in->source);
    in->source = NULL;
    if (in->rejects != NULL) { /* opened again, and cut where the last checkpoint was */
        FILE *rejects = in->rejects;
        in->rejects = NULL;
        if (fclose(rejects) != 0) {
            return ingest_rejects_error();
        }
    }
    return ingest_reopen_sink(in);
}

tarn_code ingest_go_on(ingest *in) {
    tarn_error why = the_app.err;
    wait_a_little(in);
    in->tries++;
    in->conflicts++;
    in->waiting = 0;
    in->stats = (tarn_sink_stats)TARN_SINK_STATS_INIT;
    the_app.err = (tarn_error)TARN_ERROR_INIT;
    tarn_code code = reopen(in);
    if (code == TARN_OK && in->tries == 1 && !the_app.quiet) {
        ingest_end_progress(in);
        app_say("warning", "going on from the last committed checkpoint: %s", why.message);
    }
    return code;
}
