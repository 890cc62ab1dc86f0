/* base/pool_blocking.c - work that waits for the system (fsync) on threads of its own, made for one
 * call or errand: waiting for a disk must not hold the workers, and a disk merges what waits at
 * once. */
#include "base/pool.h"

#include <signal.h>
#include <string.h>

#define BLOCKING_THREADS 16

typedef struct blocking_work {
    tarn_code (*run)(void *ctx, size_t index, tarn_error *err);
    void *ctx;
    size_t count;
    pthread_mutex_t lock;
    size_t next;      /* guarded by lock, as all below */
    size_t failed_at; /* lowest failing index; count: none */
    tarn_code code;
    tarn_error error;
} blocking_work;

static void *run_indexes(void *arg) {
    blocking_work *work = arg;
    for (;;) {
        (void)pthread_mutex_lock(&work->lock);
        size_t index = work->next < work->count ? work->next++ : work->count;
        (void)pthread_mutex_unlock(&work->lock);
        if (index == work->count) {
            return NULL;
        }
        tarn_error error = TARN_ERROR_INIT;
        tarn_code code = work->run(work->ctx, index, &error);
        (void)pthread_mutex_lock(&work->lock);
        if (code != TARN_OK && index < work->failed_at) {
            work->failed_at = index;
            work->code = code;
            work->error = error;
        }
        (void)pthread_mutex_unlock(&work->lock);
    }
}

tarn_code pool_for_blocking(size_t count,
                            tarn_code (*run)(void *ctx, size_t index, tarn_error *err), void *ctx,
                            tarn_error *err) {
    blocking_work work;
    pthread_t threads[BLOCKING_THREADS];
    size_t n_threads = 0;
    sigset_t all;
    sigset_t before;
    memset(&work, 0, sizeof work);
    work.run = run;
    work.ctx = ctx;
    work.count = count;
    work.failed_at = count;
    if (pthread_mutex_init(&work.lock, NULL) != 0) {
        return err_nomem(err);
    }
    sigfillset(&all); /* signals are the caller's business, not these threads' */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    while (n_threads + 1 < count && n_threads < BLOCKING_THREADS &&
           pthread_create(&threads[n_threads], NULL, run_indexes, &work) == 0) {
        n_threads++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)run_indexes(&work); /* with no thread to be had, all of it */
    for (size_t i = 0; i < n_threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_mutex_destroy(&work.lock);
    if (work.failed_at < count && err != NULL) {
        *err = work.error;
    }
    return work.failed_at < count ? work.code : TARN_OK;
}

static void *run_errand(void *arg) {
    pool_errand *errand = arg;
    errand->run(errand->ctx);
    return NULL;
}

bool pool_errand_try(pool_errand *errand, void (*run)(void *ctx), void *ctx) {
    sigset_t all;
    sigset_t before;
    errand->run = run;
    errand->ctx = ctx;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    errand->started = pthread_create(&errand->thread, NULL, run_errand, errand) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errand->started;
}

void pool_errand_start(pool_errand *errand, void (*run)(void *ctx), void *ctx) {
    if (!pool_errand_try(errand, run, ctx)) {
        run(ctx);
    }
}

void pool_errand_join(pool_errand *errand) {
    if (errand->started) {
        (void)pthread_join(errand->thread, NULL);
        errand->started = false;
    }
}
