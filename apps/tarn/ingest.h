/* apps/tarn/ingest.h - what the files of `tarn ingest` share: options, the job at hand.
 *
 *   ingest_options.c   what was asked          ingest_table.c     the table, made and evolved
 *   ingest_run.c       source -> sink, checkpoints                ingest_metrics.c   what is shown
 *   ingest_rejects.c   where bad rows go
 *   ingest_again.c     from the last checkpoint on, after a conflict
 *   ingest_balance.c   partitions that come and go
 *   ingest_away.c      a catalog that is away
 */
#ifndef TARN_INGEST_H
#define TARN_INGEST_H

#include <stdio.h>
#include <time.h>

#include "app.h"
#include "commands.h"
#include "json.h"

#define MEMORY_MB 128 /* where --memory-mb is not said */

typedef struct ingest_choices {
    const char *format, *schema, *partition_by, *sort_by, *identifiers, *null_text, *delimiter,
        *quote, *rejects, *on_bad_row, *branch, *mode, *where, *key, *deletes, *state, *sink_id,
        *interval, *distribution, *op_column, *kafka_group, *schema_registry, *metrics, *log,
        *kafka_wait, *catalog_wait;
    int64_t checkpoint_rows, memory_mb, writers, empty_commit_every;
    bool create, no_header, ignore_unknown, merge, upsert, follow, evolve, accept_rollback,
        kafka_balance, accept_gap;
    opt_list properties, kafka_properties;
    int64_t interval_ms;     /* of interval; -1: none */
    int64_t kafka_wait_ms;   /* 0: not said */
    int64_t catalog_wait_ms; /* of catalog_wait */
} ingest_choices;

extern ingest_choices ingest_options;

typedef struct ingest_mark { /* what was read when a checkpoint was made with these offsets */
    char *offsets;
    int64_t rows, rejected;
} ingest_mark;

typedef struct ingest {
    const char *table_name;
    const char *const *inputs;
    int32_t n_inputs;
    char *properties;       /* JSON */
    char *kafka_properties; /* JSON */
    char *kafka_group;      /* where the user names none */
    char *key;              /* the sink's, once it was opened; NULL: none */
    tarn_table *table;
    struct ArrowSchema schema; /* the table's columns */
    tarn_sink *sink;
    tarn_source *source;
    struct ArrowSchema first_schema; /* rows of a pipe that were read before there was a table */
    struct ArrowArray first;
    uint8_t *first_kinds;
    char *first_bad; /* why the first bad row that was seen before there was a table is bad */
    FILE *rejects;
    bool skip_bad;
    bool rejects_failed; /* a row could not be set aside */
    bool unsettled;      /* a checkpoint may be on its way still */
    bool created;
    bool found;        /* it was there, though --create asked for it */
    bool goes_on;      /* from offsets of its state */
    bool streaming;    /* rows are waited for for a while only: the clock, or a signal, may call */
    bool cut_short;    /* a signal came before the input's end */
    long rejects_kept; /* bytes of rejects that belong to commits */
    int32_t rewinds;   /* one behind the other */
    bool ends_waiting; /* for the catalog, after a signal: */
    struct timespec stopped;
    bool in_hand; /* rows that were read are neither written nor part of the checkpoint to make */
    char *before; /* offsets of what was read before them; NULL: unknown, or not needed */
    int64_t rejected_then;
    bool rewound;               /* the last checkpoint was refused, and its rows come again */
    int64_t checkpoints_before; /* this sink was opened */
    int64_t rows, waiting, rejected, rejected_before, commits, checkpoints;
    int64_t most_rows,
        most_rejected;    /* that metrics told of: rows that come again are no new ones */
    int64_t taken_before; /* read by sources that are closed */
    int64_t last_snapshot;
    int64_t conflicts, commits_before; /* checkpoints that had to be made again; at the last one */
    int tries;                         /* since the last commit */
    struct timespec started, checkpointed;
    double shown_at;
    bool show;
    ingest_mark *marks; /* of the last committed checkpoint, and of those on their way, in order */
    int32_t n_marks, max_marks;
    /* of the last checkpoint */
    double commit_seconds;
    tarn_outcome outcome;
    tarn_sink_stats stats;
    tarn_sink_numbers sum; /* in the table, over sinks */
} ingest;

/* ---- ingest_options.c ---- */
/* 0, or a usage error's status. */
int ingest_check_options(int32_t n_inputs);
void ingest_fill_source(ingest *in, tarn_source_options *o);
void ingest_fill_sink(const ingest *in, tarn_sink_options *o);
bool ingest_is_kafka(const ingest *in);
bool ingest_is_change_stream(void); /* rows come with kinds */

/* ---- ingest_table.c ---- */
tarn_code ingest_open_table(ingest *in);
tarn_code ingest_open_sink(ingest *in);
/* The first one. */
tarn_code ingest_start_sink(ingest *in);
/* Of the same state, with the table as it is now. */
tarn_code ingest_reopen_sink(ingest *in);
/* Columns of a batch that the table lacks are added to it, in a commit of its own. */
tarn_code ingest_evolve(ingest *in, const struct ArrowSchema *batch);

/* ---- ingest_balance.c ---- */
/* Answers what a consumer group asks after each read: a checkpoint, or where the table stands. */
tarn_code ingest_balance(ingest *in);
/* A checkpoint failed with this code (the_app.err): where its rows only come again it is OK. */
tarn_code ingest_rewind(ingest *in, tarn_code code);

/* ---- ingest_away.c ---- */
/* From now on; streams for as long as it takes, unless --catalog-timeout says otherwise. */
tarn_code ingest_wait_for_catalog(ingest *in);
void ingest_wait_no_more(void);

/* ---- ingest_rejects.c ---- */
/* Before there is a state: CONFLICT where the file has something in it. */
tarn_code ingest_create_rejects(ingest *in);
/* Where the stream goes on from these offsets (NULL: it begins): the same, but for what it wrote
 * itself, of which stays what belongs to them. */
tarn_code ingest_open_rejects(ingest *in, const char *offsets);
tarn_code ingest_rejects_error(void);
/* How much of the file belongs to the offsets that are being written, as members of an object. */
void ingest_add_rejects(const ingest *in, text *offsets);
/* A bad row, set aside, skipped, or the end of the job. */
int ingest_on_reject(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason);
/* So that a checkpoint never outlives the bad rows that were set aside before it. */
tarn_code ingest_keep_rejects(const ingest *in);

/* ---- ingest_run.c ---- */
tarn_code ingest_run(ingest *in);
tarn_code ingest_checkpoint(ingest *in);
/* Takes in what the sink did since it was last asked. */
void ingest_note_stats(ingest *in);
/* Waits until every checkpoint is in the table. */
tarn_code ingest_flush(ingest *in);
/* After a failure: what was committed until then, though no checkpoint told of it. */
void ingest_note_rest(ingest *in);
/* SIGINT and SIGTERM end the stream with a checkpoint; a second one cancels. */
void ingest_catch_signals(void);
bool ingest_was_stopped(void);

/* ---- ingest_again.c ---- */
/* Whether what ended the stream is a conflict that reading from the last checkpoint mends. */
bool ingest_may_go_on(ingest *in, tarn_code code);
/* The sink is open again, and the source closed. */
tarn_code ingest_go_on(ingest *in);
/* Rows are counted once, though they come again: a mark is set before a checkpoint is made; at the
 * offsets of the last committed one (NULL: none yet) all before it are forgotten. */
tarn_code ingest_mark_set(ingest *in, const char *offsets);
void ingest_mark_reached(ingest *in, const char *offsets);
/* The source stands at these offsets: the counts of then are those of now. */
tarn_code ingest_mark_back(ingest *in, const char *offsets);
void ingest_mark_free(ingest *in);

/* ---- ingest_metrics.c ---- */
double ingest_seconds_since(const struct timespec *start);
void ingest_show_progress(ingest *in);
void ingest_end_progress(const ingest *in);
/* --metrics before there is anything to tell, so that nobody reads those of another run. */
tarn_code ingest_begin_metrics(ingest *in);
/* --metrics at the end, whatever it was. */
void ingest_end_metrics(ingest *in);
/* After a checkpoint: --metrics and --log. */
tarn_code ingest_report(ingest *in);
/* Checkpoints that became snapshots, each with its own: --log, and with it --metrics. */
void ingest_log_commits(ingest *in);
tarn_code ingest_report_commits(ingest *in);
void ingest_print_result(const ingest *in);

#endif
