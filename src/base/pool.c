/* base/pool.c - the workers of an env. The only place with threads.
 *
 * One queue, one lock. A queue holds tasks, each run once, and crowds: the shared work of a
 * pool_for, which stays at its place while indexes are left, so that every free worker joins it.
 * 1. A task's state changes only under the lock; after DONE is set and the lock is let go, the pool
 *    touches the task no more, since its owner may free it.
 * 2. Nobody waits for a queued task: a waiter takes it out and runs it. So whatever is waited for
 *    is running somewhere, work forms a tree, and nested use cannot deadlock.
 * 3. A waiter whose task runs elsewhere helps with other tasks, but only MAX_HELP deep over the
 *    whole pool: a helper of a helper of a helper would otherwise grow one stack without bound.
 * Workers start one by one, when work is queued and nobody is idle. */
#include "base/pool.h"

#include <signal.h>
#include <string.h>

#define MAX_HELP 64

enum { TASK_NEW, TASK_QUEUED, TASK_RUNNING, TASK_DONE, TASK_CROWD };

typedef struct crowd {
    pool_task node; /* first: the queue holds it as a task */
    tarn_env *env;
    tarn_code (*run)(void *ctx, size_t index, tarn_error *err);
    void *ctx;
    size_t count;
    size_t next;       /* guarded by lock */
    size_t helpers;    /* workers inside; guarded by lock */
    bool queued;       /* guarded by lock */
    bool failed;       /* guarded by lock */
    size_t failed_at;  /* lowest failing index; guarded by lock */
    tarn_code code;    /* of failed_at; guarded by lock */
    tarn_error *error; /* the caller's, may be NULL; guarded by lock */
} crowd;

struct tarn_pool {
    tarn_env *env;
    pthread_mutex_t lock;
    pthread_cond_t work; /* something was queued, or stop */
    pthread_cond_t done; /* a task is done, or a helper left a crowd */
    pool_task *first;    /* guarded by lock, as all below */
    pool_task *last;
    size_t queued;
    uint32_t started;
    uint32_t idle;
    uint32_t helping;
    bool stop;
    uint32_t max_workers;
    pthread_t workers[];
};

static void push(struct tarn_pool *pool, pool_task *task) {
    task->next = NULL;
    if (pool->last != NULL) {
        pool->last->next = task;
    } else {
        pool->first = task;
    }
    pool->last = task;
    pool->queued++;
}

static void take_out(struct tarn_pool *pool, pool_task *task) {
    pool_task *before = NULL;
    pool_task *at = pool->first;
    while (at != NULL && at != task) {
        before = at;
        at = at->next;
    }
    if (at == NULL) {
        return;
    }
    if (before != NULL) {
        before->next = task->next;
    } else {
        pool->first = task->next;
    }
    if (pool->last == task) {
        pool->last = before;
    }
    task->next = NULL;
    pool->queued--;
}

/* Lock held; let go while the task runs. */
static void run_task(struct tarn_pool *pool, pool_task *task) {
    task->state = TASK_RUNNING;
    pthread_mutex_unlock(&pool->lock);
    tarn_code code = task->run(task->ctx, &task->err);
    pthread_mutex_lock(&pool->lock);
    task->code = code;
    task->state = TASK_DONE;
    pthread_cond_broadcast(&pool->done);
}

static void leave_queue(struct tarn_pool *pool, crowd *work) {
    if (work->queued) {
        work->queued = false;
        take_out(pool, &work->node);
    }
}

/* Lock held; let go while an index runs. Runs indexes until none is left or one failed. */
static void run_crowd(struct tarn_pool *pool, crowd *work) {
    while (!work->failed && work->next < work->count) {
        size_t index = work->next++;
        if (work->next == work->count) {
            leave_queue(pool, work);
        }
        pthread_mutex_unlock(&pool->lock);
        tarn_error err = TARN_ERROR_INIT;
        tarn_code code = env_check_cancel(work->env, &err);
        if (code == TARN_OK) {
            code = work->run(work->ctx, index, &err);
        }
        pthread_mutex_lock(&pool->lock);
        if (code != TARN_OK && (!work->failed || index < work->failed_at)) {
            work->failed = true;
            work->failed_at = index;
            work->code = code;
            if (work->error != NULL) {
                *work->error = err;
            }
        }
    }
    leave_queue(pool, work);
}

/* Lock held. Runs the oldest piece of work; false when there is none. */
static bool run_next(struct tarn_pool *pool) {
    pool_task *task = pool->first;
    if (task == NULL) {
        return false;
    }
    if (task->state == TASK_CROWD) {
        crowd *work = (crowd *)task;
        work->helpers++;
        run_crowd(pool, work);
        work->helpers--;
        pthread_cond_broadcast(&pool->done);
        return true;
    }
    take_out(pool, task);
    run_task(pool, task);
    return true;
}

static void *work_on(void *arg) {
    struct tarn_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (!run_next(pool)) {
            pool->idle++;
            pthread_cond_wait(&pool->work, &pool->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Lock held. Signals stay with the caller's threads. A worker that cannot be had is not missed:
 * waiters do the work. */
static void start_worker(struct tarn_pool *pool) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return;
    }
    if (pthread_create(&pool->workers[pool->started], NULL, work_on, pool) == 0) {
        pool->started++;
    } else {
        pool->max_workers = pool->started;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Lock held. The idle may have been called already and not have woken yet, so everything that
 * waits in the queue is weighed against them, not only what is new. */
static void wake_workers(struct tarn_pool *pool, size_t added) {
    size_t wanted = pool->queued - 1 + added;
    while (wanted > pool->idle && pool->started < pool->max_workers) {
        start_worker(pool);
        wanted--;
    }
    if (wanted > 1) {
        pthread_cond_broadcast(&pool->work);
    } else {
        pthread_cond_signal(&pool->work);
    }
}

void pool_submit(tarn_env *env, pool_task *task) {
    struct tarn_pool *pool = env_pool(env);
    tarn_error clean = TARN_ERROR_INIT;
    pthread_mutex_lock(&pool->lock);
    tarn_assert(task->state == TASK_NEW || task->state == TASK_DONE);
    task->code = TARN_OK;
    task->err = clean;
    task->state = TASK_QUEUED;
    push(pool, task);
    wake_workers(pool, 1);
    pthread_mutex_unlock(&pool->lock);
}

tarn_code pool_wait(tarn_env *env, pool_task *task, tarn_error *err) {
    struct tarn_pool *pool = env_pool(env);
    pthread_mutex_lock(&pool->lock);
    if (task->state == TASK_QUEUED) {
        take_out(pool, task);
        run_task(pool, task);
    }
    while (task->state == TASK_RUNNING) {
        bool helped = false;
        if (pool->helping < MAX_HELP) {
            pool->helping++;
            helped = run_next(pool);
            pool->helping--;
        }
        if (!helped) {
            pthread_cond_wait(&pool->done, &pool->lock);
        }
    }
    bool done = task->state == TASK_DONE;
    pthread_mutex_unlock(&pool->lock);
    if (!done) {
        return err_set(err, TARN_INTERNAL, "a task was waited for that had not been submitted");
    }
    if (task->code != TARN_OK && err != NULL) {
        *err = task->err;
    }
    return task->code;
}

tarn_code pool_for(tarn_env *env, size_t count,
                   tarn_code (*run)(void *ctx, size_t index, tarn_error *err), void *ctx,
                   tarn_error *err) {
    if (count == 0) {
        return TARN_OK;
    }
    struct tarn_pool *pool = env_pool(env);
    crowd work;
    memset(&work, 0, sizeof work);
    work.node.state = TASK_CROWD;
    work.env = env;
    work.run = run;
    work.ctx = ctx;
    work.count = count;
    work.error = err;
    pthread_mutex_lock(&pool->lock);
    if (count > 1 && pool->max_workers > 0) {
        work.queued = true;
        push(pool, &work.node);
        wake_workers(pool, count - 1);
    }
    run_crowd(pool, &work);
    while (work.helpers > 0) {
        pthread_cond_wait(&pool->done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return work.failed ? work.code : TARN_OK;
}

struct tarn_pool *pool_new(tarn_env *env, uint32_t threads) {
    uint32_t workers = threads > 0 ? threads - 1 : 0; /* the caller's own thread is the other one */
    struct tarn_pool *pool = env_calloc(env, 1, sizeof *pool + workers * sizeof(pthread_t));
    if (pool == NULL) {
        return NULL;
    }
    pool->env = env;
    pool->max_workers = workers;
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        env_free(env, pool);
        return NULL;
    }
    if (pthread_cond_init(&pool->work, NULL) != 0) {
        pthread_mutex_destroy(&pool->lock);
        env_free(env, pool);
        return NULL;
    }
    if (pthread_cond_init(&pool->done, NULL) != 0) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        env_free(env, pool);
        return NULL;
    }
    return pool;
}

void pool_free(struct tarn_pool *pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->started; i++) {
        pthread_join(pool->workers[i], NULL);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    env_free(pool->env, pool);
}
