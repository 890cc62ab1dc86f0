/* base/pool.h - the only place with threads. A bounded set of workers per env.
 * Work items own their errors. A waiter runs queued work while it waits, so nested use cannot
 * deadlock. For the same reason no lock may be held while waiting, and a task may itself wait only
 * for I/O and for other tasks. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <pthread.h>

#include "base/env.h"
#include "base/err.h"

typedef struct pool_task pool_task;
struct pool_task {
    tarn_code (*run)(void *ctx, tarn_error *err);
    void *ctx;
    tarn_code code; /* valid after pool_wait */
    tarn_error err;
    int state;       /* private */
    pool_task *next; /* private */
};

/* Queues the task; the memory is the caller's and must live until pool_wait. With one thread it
 * runs at wait. */
void pool_submit(tarn_env *env, pool_task *task);
/* Waits for the task (running it or others meanwhile), copies its error into err, returns its code.
 */
tarn_code pool_wait(tarn_env *env, pool_task *task, tarn_error *err);

/* Runs run(ctx, index) for every index below count on the pool's threads and this one; returns the
 * error of the lowest failing index; after a failure no new index is started. */
tarn_code pool_for(tarn_env *env, size_t count,
                   tarn_code (*run)(void *ctx, size_t index, tarn_error *err), void *ctx,
                   tarn_error *err) TARN_MUST_USE;

/* The same for work that waits for the system more than it computes, on up to 16 threads made for
 * this call; every index runs, also after a failure. Locks may be held; run takes none of them. */
tarn_code pool_for_blocking(size_t count,
                            tarn_code (*run)(void *ctx, size_t index, tarn_error *err), void *ctx,
                            tarn_error *err) TARN_MUST_USE;

/* One piece of such work beside the caller, on a thread made for it. Where no thread can be had,
 * start does it at once. Locks that run takes may not be held at start and join. */
typedef struct pool_errand {
    void (*run)(void *ctx);
    void *ctx;
    pthread_t thread;
    bool started; /* and not joined */
} pool_errand;
void pool_errand_start(pool_errand *errand, void (*run)(void *ctx), void *ctx);
/* The same for what only a thread of its own can do: false where none can be had. */
bool pool_errand_try(pool_errand *errand, void (*run)(void *ctx), void *ctx);
void pool_errand_join(pool_errand *errand); /* also of one that was not started: nothing */

/* Made and freed by env only. */
struct tarn_pool *pool_new(tarn_env *env, uint32_t threads);
void pool_free(struct tarn_pool *pool);

#endif
