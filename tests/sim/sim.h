/* tests/sim/sim.h - a simulated world in which the real commit path runs: one seed, one history.
 *
 * What is real: the commit loop, the REST client, the service with its queue and groups, the SQL
 * and dir catalogs. What is simulated, by wrapping the calls that reach it (see CMakeLists.txt):
 *   sim_schedule.c  time, chance, and who runs: one thread at a time, which hands on at every call
 *   sim_store.c     a store in memory that fails, loses answers, and does things late
 *   sim_db.c        a database of one row under the SQL catalog, with the same faults
 *   sim_net.c       HTTP between clients and services that die and come back
 *   sim_model.c     what must be true of every version of the table, looked at when it appears
 *   sim_rows.c      data files with rows in them, where services merge files
 *   sim_actors.c    writers, row deltas, compaction, property changes, readers
 * Invariants: 1 nothing but the seed decides; 2 a process that died changes nothing any more. */
#ifndef TARN_SIM_H
#define TARN_SIM_H

#include "base/map.h"
#include "catalog/catalog.h"
#include "write/commit/commit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the schedule ---- */

void sim_schedule_begin(uint64_t seed);
void sim_spawn(const char *name, void (*run)(void *ctx), void *ctx);
void sim_run(void); /* until every actor has ended */
bool sim_is_actor(void);
void sim_yield(void);
void sim_sleep_us(int64_t us);
/* Until ready says so. what: for the report, where it never does. */
void sim_wait(const char *what, bool (*ready)(void *ctx), void *ctx);
int64_t sim_now_us(void);
uint32_t sim_chance(uint32_t n); /* 0 .. n - 1 */
bool sim_one_in(uint32_t n);     /* n 0: never */
void sim_random(void *out, size_t len);
void sim_trace(const char *fmt, ...) TARN_PRINTF(1, 2);
/* Says seed, cause and the last events, and ends the program. */
void sim_fail(const char *fmt, ...) TARN_PRINTF(1, 2) __attribute__((noreturn));

/* ---- the world ---- */

typedef enum sim_kind { SIM_DIR, SIM_SQLITE, SIM_POSTGRES } sim_kind;

typedef struct sim_plan { /* what the seed chose; faults come once in so many calls, 0: never */
    uint64_t seed;
    sim_kind kind;
    int32_t format_version;
    bool partitioned, trims, gzip, removes_old, settled;
    bool crowd;    /* many appenders at the same services, without rest */
    bool compacts; /* services merge small files before they commit */
    bool branches; /* some work on a branch that grows beside main */
    int servers;
    uint32_t store_faults, swap_faults, net_faults; /* swap: of what moves the pointer */
    uint32_t stalls;                                /* a call that takes seconds */
    uint32_t server_calls, client_calls;            /* lives of processes, at most; 0: no end */
} sim_plan;

typedef struct sim_world {
    sim_plan plan;
    tarn_env *env;    /* of the world itself */
    tarn_arena arena; /* for the history's life */
    tarn_store *disk;
    bool calm;   /* no more faults */
    int working; /* actors that others work for */
    int64_t swaps, acked, open, refused, deaths, replies_lost, merged;
    int files; /* named so far */
} sim_world;
extern sim_world SIM;

#define SIM_WAREHOUSE "/sim"
extern const tarn_ident SIM_TABLE;

/* A process: what it does fails for good once it died. */
typedef struct sim_process {
    char name[24];
    tarn_env *env;
    int64_t skew_us;    /* of its clock */
    int64_t calls_left; /* -1: no end */
    bool dead;
    struct sim_process *next;
} sim_process;
void sim_process_begin(sim_process *p, const char *name, uint32_t calls);
void sim_process_end(sim_process *p); /* nothing of its memory may be left */
sim_process *sim_process_of(const tarn_env *env);

/* What becomes of a call that changes something. */
typedef enum sim_verdict {
    SIM_DONE,
    SIM_FAILED, /* nothing happened */
    SIM_LOST    /* it happened, and the answer was lost */
} sim_verdict;
sim_verdict sim_call(sim_process *p, uint32_t faults); /* hands on first */
/* What befell a thing may befall it for a while: down until then. Tells whether it is down. */
bool sim_outage(int64_t *until_us, sim_verdict verdict);
int64_t sim_delay_us(void); /* of what arrives late: short, or long */

tarn_store *sim_store_new(sim_process *p);
tarn_catalog *sim_catalog_new(sim_process *p); /* over the store; NULL: it could not */
void sim_db_begin(void);
void sim_make_table(void);

/* ---- services ---- */

void sim_net_begin(void); /* with SIM.plan.servers services */
/* A catalog of one of the services. whole: write results too, as tarn's own clients use them. */
tarn_catalog *sim_remote_new(sim_process *p, bool whole);

/* ---- the model ---- */

#define SIM_MAX_OPS  512
#define SIM_MAX_ROWS 1024
#define SIM_OP_ROWS  6
#define SIM_BRANCHES 2

typedef enum sim_state { OP_NEW, OP_SENT, OP_DONE, OP_REFUSED } sim_state;
/* A commit that somebody wants: rows that it adds, and one that it deletes. */
typedef struct sim_op {
    const char *client;
    int number;
    int branch;
    sim_state state;
    bool unclear; /* an attempt may still have its effect */
    int n_rows, rows[SIM_OP_ROWS];
    int kills;           /* 0: none */
    int64_t snapshot_id; /* that its rows were first seen in */
} sim_op;

/* A data file: its rows. A delete file: the rows that it takes from one data file. */
typedef struct sim_file {
    tarn_str path, target; /* target: of a delete file */
    int n_rows;
    const int *rows;
} sim_file;

void sim_model_begin(void);
const tarn_metadata *sim_table(void);                              /* the newest version */
tarn_str sim_branch(int branch);                                   /* its name; 0 is main */
const tarn_snapshot *sim_head(const tarn_metadata *m, int branch); /* NULL: none */
sim_op *sim_op_new(const char *client, int number, int branch);
int sim_row_new(sim_op *op);
void sim_op_sent(sim_op *op);
void sim_op_done(sim_op *op); /* it was acknowledged: it is there now */
void sim_op_refused(sim_op *op);
void sim_file_add(tarn_str path, tarn_str target, int n_rows, const int *rows);
const sim_file *sim_file_find(tarn_str path);
/* A document became current. */
void sim_saw_version(tarn_str location);
void sim_saw_created(tarn_str path); /* in the store: with dir catalogs, a version may be current */
void sim_saw_removed(tarn_str path);
/* What a reader found of a snapshot: files, live and not. */
void sim_saw_read(int64_t snapshot_id, int64_t n_files);
bool sim_is_live(int64_t snapshot_id); /* it is in the newest version */
void sim_model_end(void);

tarn_file sim_rows_write(int part, int n_rows, const int *rows);
int sim_rows_read(const tarn_file *file, int *rows); /* room for SIM_MAX_ROWS */

/* ---- the actors ---- */
void sim_actors_begin(void);

#endif
