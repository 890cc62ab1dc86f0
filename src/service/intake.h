/* service/intake.h - rows in: checked against their table, durable in a log, then answered; files
 * and commits of them are made behind that, each row exactly once.
 *
 *   take: key -> decode -> log (one sync for all that wait) -> the table's queue -> answer
 *   worker: what waits for one table -> files -> one commit through its queue (service/queue.h)
 *
 * Invariants: 1 what is acknowledged is durable in the log until it is in the table, or, where the
 * table does not take it any more, in a file of rejected rows; 2 a table with rows says, in its
 * property INTAKE_PROPERTY with the log's id, up to which position it has them, and a commit sets
 * it, and is refused where its base says that its rows are there: so however often it is tried, by
 * whatever process, and whatever snapshots expire, they are there once; 3 rows of a table are
 * committed in the order of their positions, without gaps; 4 bytes that wait are bounded on disk,
 * and decoded ones in memory: what is over that is decoded from the log again. */
#ifndef SERVICE_INTAKE_H
#define SERVICE_INTAKE_H

#include "service/queue.h"

#define INTAKE_PROPERTY "tarn.intake." /* the log's id follows */

typedef struct intake intake;

typedef struct intake_options {
    const char *dir;
    int64_t interval_ms;     /* between commits of a table; 0: 1000 */
    int64_t disk_bytes;      /* the most that is acknowledged and not committed; 0: 1 GiB */
    int64_t key_lifetime_ms; /* 0: 30 minutes */
} intake_options;

/* Reads what the log holds; what was acknowledged is committed from now on. All is borrowed. */
tarn_code intake_open(tarn_env *env, tarn_catalog *catalog, commit_queues *queues,
                      const intake_options *options, intake **out, tarn_error *err) TARN_MUST_USE;
/* The end is near: what waits is committed at once, and whoever waits for it is answered within a
 * few seconds, so that connections can end. Takes NULL. */
void intake_hurry(intake *in);
/* Commits what is acknowledged, as far as it can be within a few seconds; the rest stays in the
 * log. Nobody takes rows any more. Takes NULL. */
void intake_close(intake *in);

typedef enum intake_refusal {
    INTAKE_NO_REFUSAL, /* the error says it all */
    INTAKE_MISUSED,    /* the key was another request's */
    INTAKE_BUSY,       /* too much waits; later it is taken */
    INTAKE_DISK        /* the log could not be written: nothing was taken */
} intake_refusal;

typedef struct intake_request {
    const tarn_ident *table;
    tarn_str key;    /* len 0: none */
    tarn_str caller; /* whose key it is */
    tarn_str body;
    int64_t wait_ms; /* for the commit; 0: not */
} intake_request;

typedef struct intake_answer {
    int64_t rows, position;
    bool repeated;
    /* Asked only with wait_ms: */
    bool committed;      /* all rows are in the table */
    int64_t rejected;    /* so many are in a file of rejected rows instead */
    int64_t snapshot_id; /* that has them; TARN_NO_SNAPSHOT: not known */
} intake_answer;

tarn_code intake_take(intake *in, const intake_request *request, intake_answer *out,
                      intake_refusal *refusal, tarn_error *err) TARN_MUST_USE;
/* False: rows of a table wait for long; text says which and why. */
bool intake_health(intake *in, tarn_buf *text);
/* OpenMetrics text, appended. */
tarn_code intake_metrics(intake *in, tarn_buf *out, tarn_error *err) TARN_MUST_USE;

#endif
