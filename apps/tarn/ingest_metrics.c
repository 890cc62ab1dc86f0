/* apps/tarn/ingest_metrics.c - what `tarn ingest` tells of itself: a line of progress, a metrics
 * file, JSON lines, and the result. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingest.h"

#define CLEAR_REST "\033[K" /* of the line, on a terminal */

double ingest_seconds_since(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* ---- progress ---- */

/* One line on a terminal, written again and again; in a log, a line each time. */
void ingest_show_progress(ingest *in) {
    double elapsed = ingest_seconds_since(&in->started);
    int64_t done = 0;
    int64_t total = -1;
    if (!in->show || elapsed - in->shown_at < 0.2) {
        return;
    }
    in->shown_at = elapsed;
    tarn_source_progress(in->source, &done, &total);
    bool terminal = isatty(STDERR_FILENO) != 0;
    const char *path = tarn_source_name(in->source);
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : strcmp(path, "-") == 0 ? "standard input" : path;
    fprintf(stderr, "%s%s: ", terminal ? "\r" : "", name);
    if (total > 0) { /* what was read of the file may not be decoded yet */
        fprintf(stderr, "%2d%%  ", done < total ? (int)(done * 100 / total) : 99);
    }
    fprintf(stderr, "%" PRId64 " row%s, %.0f rows/s, %" PRId64 " commit%s%s", in->rows,
            app_plural(in->rows), (double)in->rows / elapsed, in->commits, app_plural(in->commits),
            in->rejected > 0 ? ", with bad rows" : "");
    if (in->commits > 0) {
        fprintf(stderr, " (the last %.0f ms)", in->commit_seconds * 1000);
    }
    fprintf(stderr, "%s", terminal ? CLEAR_REST : "\n");
    fflush(stderr);
}

void ingest_end_progress(const ingest *in) {
    if (in->show && in->shown_at > 0 && isatty(STDERR_FILENO)) {
        fputs("\r" CLEAR_REST, stderr);
    }
}

/* ---- metrics ---- */

static void put_metric(text *t, const char *name, const char *type, const char *help,
                       const char *table, double value) {
    bool counter = strcmp(type, "counter") == 0;
    text_add(t, "# TYPE tarn_ingest_%s %s\n# HELP tarn_ingest_%s %s\ntarn_ingest_%s%s{table=", name,
             type, name, help, name, counter ? "_total" : "");
    text_add_json(t, table);
    text_add(t, "} %.15g\n", value);
}

/* A counter never goes down: rows that come again after a conflict were counted. */
static int64_t most(int64_t *known, int64_t now) {
    *known = now > *known ? now : *known;
    return *known;
}

static text make_metrics(ingest *in) {
    text t = {0};
    const char *table = in->table_name;
    int64_t taken = in->taken_before + (in->source != NULL ? tarn_source_taken(in->source) : 0);
    put_metric(&t, "rows", "counter", "Rows read.", table, (double)most(&in->most_rows, in->rows));
    put_metric(&t, "rejected_rows", "counter", "Bad rows set aside or skipped.", table,
               (double)most(&in->most_rejected, in->rejected));
    put_metric(&t, "read", "counter",
               "Bytes of files or messages of topics read by this run, also again.", table,
               (double)taken);
    put_metric(&t, "checkpoints", "counter", "Checkpoints made.", table, (double)in->checkpoints);
    put_metric(&t, "commits", "counter", "Snapshots committed.", table, (double)in->commits);
    put_metric(&t, "rows_written", "counter", "Rows of data files committed.", table,
               (double)in->sum.rows);
    put_metric(&t, "rows_deleted", "counter", "Entries of delete files committed.", table,
               (double)in->sum.deleted_rows);
    put_metric(&t, "data_files", "counter", "Data files committed.", table,
               (double)in->sum.data_files);
    put_metric(&t, "delete_files", "counter", "Delete files committed.", table,
               (double)in->sum.delete_files);
    put_metric(&t, "written_bytes", "counter", "Bytes of both.", table, (double)in->sum.bytes);
    put_metric(&t, "commit_retries", "counter", "Commits tried again after a conflict.", table,
               (double)in->sum.retries);
    put_metric(&t, "checkpoint_conflicts", "counter",
               "Checkpoints made again after others changed the table.", table,
               (double)in->conflicts);
    put_metric(&t, "last_commit_seconds", "gauge", "What the last checkpoint took.", table,
               in->commit_seconds);
    put_metric(&t, "last_commit_rows", "gauge", "Rows of the last checkpoint.", table,
               (double)in->waiting);
    put_metric(&t, "pending_checkpoints", "gauge", "Durable, and not committed.", table,
               (double)in->stats.pending);
    put_metric(&t, "writers", "gauge", "Task writers.", table, (double)in->stats.writers);
    put_metric(&t, "open_files", "gauge", "Data files being written, as the checkpoint began.",
               table, (double)in->stats.open_files);
    put_metric(&t, "memory_bytes", "gauge", "Memory of the library.", table,
               (double)in->stats.memory_bytes);
    put_metric(&t, "memory_peak_bytes", "gauge", "The most it was.", table,
               (double)in->stats.memory_peak_bytes);
    put_metric(&t, "uptime_seconds", "gauge", "Since the command began.", table,
               ingest_seconds_since(&in->started));
    text_add(&t, "# EOF\n");
    return t;
}

static tarn_code metrics_error(const char *path) {
    return app_error(app_file_code(errno), "metrics file %s could not be written: %s", path,
                     strerror(errno));
}

/* Under another name first: a reader sees the one or the other whole. */
static tarn_code write_metrics(ingest *in) {
    text name = {0};
    text t = make_metrics(in);
    tarn_code code = TARN_OK;
    text_add(&name, "%s.tmp", ingest_options.metrics);
    FILE *file = fopen(name.data, "wb");
    bool ok = file != NULL && fwrite(t.data, 1, t.len, file) == t.len;
    ok = file != NULL && fclose(file) == 0 && ok;
    if (!ok || rename(name.data, ingest_options.metrics) != 0) {
        code = metrics_error(ingest_options.metrics);
        (void)unlink(name.data);
    }
    free(name.data);
    free(t.data);
    return code;
}

tarn_code ingest_begin_metrics(ingest *in) {
    return ingest_options.metrics != NULL ? write_metrics(in) : TARN_OK;
}

void ingest_end_metrics(ingest *in) {
    tarn_error known = the_app.err;
    if (ingest_options.metrics != NULL && write_metrics(in) != TARN_OK) {
        the_app.err = known; /* why it ends is to be said */
    }
}

static void begin_event(text *t, const ingest *in, const char *event) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_add(t, "{\"event\":\"%s\",\"time-ms\":%" PRId64 ",\"table\":", event,
             (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    text_add_json(t, in->table_name);
}

/* With a state its snapshot is told by an event of its own: another commit's is not this one's. */
static void log_checkpoint(const ingest *in) {
    text t = {0};
    const tarn_sink_numbers *last = &in->stats.last;
    bool now = ingest_options.state == NULL && in->outcome.snapshot_id >= 0;
    begin_event(&t, in, "checkpoint");
    text_add(&t,
             ",\"checkpoint\":%" PRId64 ",\"rows\":%" PRId64 ",\"rows-total\":%" PRId64
             ",\"rejected\":%" PRId64 ",\"rows-deleted\":%" PRId64 ",\"data-files\":%" PRId64
             ",\"delete-files\":%" PRId64 ",\"bytes\":%" PRId64,
             in->checkpoints, in->waiting, in->rows, in->rejected, last->deleted_rows,
             last->data_files, last->delete_files, last->bytes);
    if (ingest_options.state == NULL) { /* else its commit comes later, and has its own */
        text_add(&t, ",\"commit-ms\":%.1f,\"attempts\":%d", in->commit_seconds * 1000,
                 in->outcome.attempts);
    }
    text_add(&t, ",\"writers\":%d,\"open-files\":%d,\"memory-bytes\":%" PRIu64 ",\"snapshot-id\":",
             in->stats.writers, in->stats.open_files, in->stats.memory_bytes);
    text_add(&t, now ? "%" PRId64 "}\n" : "null}\n", in->outcome.snapshot_id);
    fputs(t.data, stderr);
    free(t.data);
}

void ingest_log_commits(ingest *in) {
    tarn_sink_committed c = TARN_SINK_COMMITTED_INIT;
    bool streams = ingest_options.state != NULL;
    while (streams && tarn_sink_next_commit(in->sink, &c)) {
        text t = {0};
        bool own = in->conflicts > 0 || c.checkpoint > 0;
        in->last_snapshot = own ? c.snapshot_id : in->last_snapshot;
        if (ingest_options.log == NULL) {
            continue;
        }
        int64_t number = in->checkpoints_before + c.checkpoint;
        begin_event(&t, in, "committed");
        text_add(&t, number > 0 ? ",\"checkpoint\":%" PRId64 : ",\"checkpoint\":null", number);
        text_add(&t,
                 ",\"rows\":%" PRId64 ",\"rows-deleted\":%" PRId64 ",\"data-files\":%" PRId64
                 ",\"delete-files\":%" PRId64 ",\"bytes\":%" PRId64 ",\"commit-ms\":%" PRId64
                 ",\"attempts\":%" PRId64 ",\"snapshot-id\":%" PRId64 "}\n",
                 c.numbers.rows, c.numbers.deleted_rows, c.numbers.data_files,
                 c.numbers.delete_files, c.numbers.bytes, c.numbers.commit_ms,
                 c.numbers.retries + 1, c.snapshot_id);
        fputs(t.data, stderr);
        free(t.data);
    }
}

tarn_code ingest_report_commits(ingest *in) {
    ingest_log_commits(in);
    return ingest_options.metrics != NULL ? write_metrics(in) : TARN_OK;
}

tarn_code ingest_report(ingest *in) {
    if (ingest_options.log != NULL) {
        log_checkpoint(in);
    }
    return ingest_report_commits(in);
}

/* ---- the result ---- */

/* The members of the result, as JSON, behind what t has; a line of a log is one write. */
static void print_members(const ingest *in, FILE *to, text *t, double elapsed) {
    char id[32] = "null";
    if (in->last_snapshot >= 0) {
        snprintf(id, sizeof id, "%" PRId64, in->last_snapshot);
    }
    text_add(t,
             "\"rows\":%" PRId64 ",\"rejected\":%" PRId64 ",\"commits\":%" PRId64
             ",\"files\":%" PRId64 ",\"snapshot-id\":%s,\"seconds\":%.3f}\n",
             in->rows, in->rejected, in->commits, in->sum.data_files, id, elapsed);
    fputs(t->data, to);
    free(t->data);
}

void ingest_print_result(const ingest *in) {
    double elapsed = ingest_seconds_since(&in->started);
    text t = {0};
    if (the_app.json) {
        text_add(&t, "{");
        print_members(in, stdout, &t, elapsed);
    } else if (the_app.log_json && !the_app.quiet) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        text_add(&t, "{\"event\":\"done\",\"time-ms\":%" PRId64 ",",
                 (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        print_members(in, stderr, &t, elapsed);
    } else if (!the_app.quiet) {
        fprintf(stderr, "%" PRId64 " row%s in %" PRId64 " file%s and %" PRId64 " commit%s, %.1f s",
                in->rows, app_plural(in->rows), in->sum.data_files, app_plural(in->sum.data_files),
                in->commits, app_plural(in->commits), elapsed);
        if (in->rejected > 0) {
            fprintf(stderr, "; %" PRId64 " bad row%s %s%s", in->rejected, app_plural(in->rejected),
                    ingest_options.rejects != NULL ? "set aside in " : "skipped",
                    ingest_options.rejects != NULL ? ingest_options.rejects : "");
        }
        fprintf(stderr, "\n");
    }
}
