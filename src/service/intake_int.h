/* service/intake_int.h - what the intake's files share: intake_take.c takes rows, intake.c runs the
 * workers, intake_table.c makes snapshots of what waits, intake_recover.c reads the log after a
 * restart. */
#ifndef SERVICE_INTAKE_INT_H
#define SERVICE_INTAKE_INT_H

#include "base/map.h"
#include "base/pool.h"
#include "service/intake.h"
#include "service/intake_decode.h"
#include "service/intake_keys.h"
#include "write/files/data_writer.h"

#include <stdatomic.h>

#define INTAKE_WORKERS   4
#define INTAKE_DUE_BYTES ((int64_t)32 << 20) /* so much is committed before its time */

/* A request that waits for the commit of its rows; its own, and under the intake's lock. */
typedef struct intake_waiter {
    struct intake_item *item; /* while it is not done */
    bool done;
    int64_t rejected;    /* of its rows */
    int64_t snapshot_id; /* that has the others; TARN_NO_SNAPSHOT: not known */
    struct intake_waiter *next;
} intake_waiter;

/* The rows of one request. */
typedef struct intake_item {
    int64_t position, rows, bytes;
    store_log_place place;
    bool durable;
    int64_t rejected; /* of its rows, in the last try to write them */
    intake_waiter *waiters;
    char *reason;                /* its rows cannot be written: they are rejected; NULL: they can */
    intake_batches batches;      /* none: they are decoded from the log */
    tarn_table_version *version; /* of the batches' type */
    struct intake_item *next;
} intake_item;

/* Files that wait for their commit. */
typedef struct intake_work {
    bool ready;
    bool sent; /* a commit of them may have happened */
    int32_t n_items;
    int64_t first, end; /* positions */
    int64_t bytes;
    tarn_arena arena;
    write_result written;
} intake_work;

typedef struct intake_table {
    struct intake *in;
    tarn_str identity; /* in the intake's arena */
    const char *ident; /* its name as far as is known, in the arena too; guarded by the intake's
                          lock, as all here but work, which is the worker's that made it busy */
    intake_item *first, *last;
    int64_t bytes; /* of durable items */
    int64_t due_ms;
    int64_t since_ms;            /* the oldest waits since */
    tarn_table_version *version; /* as it was last seen; NULL: long ago */
    int64_t loaded_ms;           /* when that was */
    int64_t committed;           /* positions before it are */
    bool active;                 /* in the list */
    bool busy;
    bool uncertain; /* rows that wait may be in the table: it is to be asked */
    int32_t failures;
    tarn_error last_err;
    intake_work work;
    struct intake_table *next; /* of those with items, or a version */
} intake_table;

typedef struct intake_counters {
    atomic_llong requests, rows, repeated, refused, commits, failures, committed_rows, rejected;
} intake_counters;

struct intake {
    tarn_env *env;
    tarn_catalog *catalog;
    tarn_store *folder; /* where rejected rows go */
    commit_queues *queues;
    intake_options options;
    char *property; /* of tables */
    store_log *log;
    store_log *key_log; /* keys of rows whose segments are gone */
    intake_mark mark;   /* of it; once it is open, of who holds retiring */
    intake_keys *keys;
    pthread_mutex_t lock; /* taken after the log's */
    pthread_cond_t due, moved;
    tarn_arena arena;
    tarn_map tables; /* by identity */
    tarn_map names;  /* by name: the table that has it, as far as is known */
    intake_table *active;
    int64_t waiting_bytes; /* acknowledged or about to be */
    int64_t decoded_bytes;
    int64_t worked_ms; /* when a turn ended whose memory may still be held; 0: none */
    bool hurrying;     /* nobody waits for the interval */
    bool stopping;
    int64_t stop_ms;
    pthread_t opener;
    pool_errand workers[INTAKE_WORKERS];
    pthread_mutex_t retiring; /* one at a time lets segments go */
    intake_counters counters;
};

/* intake.c. Under the lock. */
intake_table *intake_find_table(struct intake *in, tarn_str identity, tarn_error *err);
tarn_code intake_name_table(intake_table *t, tarn_str ident, tarn_error *err) TARN_MUST_USE;
void intake_see_table(intake_table *t, tarn_table_version *version);
void intake_push_item(intake_table *t, intake_item *item);
void intake_item_free(tarn_env *env, intake_item *item); /* takes NULL */
tarn_str intake_identity(const tarn_metadata *m, tarn_str ident);

/* intake_table.c: one try to commit what waits. The table is busy; no lock is held. */
tarn_code intake_table_run(intake_table *t, tarn_error *err);

/* intake_reject.c: rows that a table does not take, to files of the log's folder. */
typedef struct intake_rejects {
    struct intake *in;
    const char *ident;
    int64_t first; /* of the commit that goes on without them: the file's name */
    int64_t position;
    tarn_str reason; /* of all rows; len 0: the reader's */
    tarn_buf text;
    int64_t n;
} intake_rejects;
tarn_code intake_reject_row(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                            tarn_error *err);
/* Every line of a body. */
tarn_code intake_reject_body(intake_rejects *rejects, tarn_str body, tarn_error *err) TARN_MUST_USE;
void intake_rejects_begin(intake_rejects *rejects, const intake_table *t, const char *ident);
tarn_code intake_rejects_end(intake_rejects *rejects, tarn_error *err) TARN_MUST_USE; /* durable */

/* intake_recover.c */
tarn_code intake_recover(struct intake *in, tarn_error *err) TARN_MUST_USE; /* opens the logs */
void intake_retire(struct intake *in); /* segments that nobody needs; any thread */
/* Before rows of so many bytes are logged: what notes and keys need must stay free, so that
 * segments can go. IO: the disk is full, also after all that is not needed went. */
tarn_code intake_find_room(struct intake *in, int64_t bytes, tarn_error *err) TARN_MUST_USE;
void intake_make_room(struct intake *in); /* also the segment that is written to, where it can go */

#endif
