/* sink/task.c - see task.h. Two sets of batches: one fills, the other is worked on by at most one
 * job of the pool; they change places when the job is done. So only the handing over needs the
 * pool's locks. */
#include "sink/task.h"

void task_init(sink_task *t, tarn_env *env, delta_writer *writer, bool direct) {
    memset(t, 0, sizeof *t);
    t->env = env;
    t->writer = writer;
    t->direct = direct;
    atomic_init(&t->idle, true);
    atomic_init(&t->finished_files, 0);
}

static void free_item(sink_task *t, task_item *item) {
    batch_release(&item->batch);
    env_free(t->env, item->kinds);
    memset(item, 0, sizeof *item);
}

static tarn_code write_batch(sink_task *t, const tarn_batch *batch, const uint8_t *kinds,
                             tarn_error *err) {
    tarn_code code = delta_writer_write(t->writer, batch, kinds, err);
    atomic_store(&t->finished_files, delta_writer_finished_files(t->writer));
    return code;
}

static tarn_code run_items(void *ctx, tarn_error *err) {
    sink_task *t = ctx;
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < t->n_working; i++) {
        task_item *item = &t->working[i];
        if (code == TARN_OK) {
            code = write_batch(t, &item->batch, item->kinds, err);
        }
        free_item(t, item);
    }
    t->n_working = 0;
    atomic_store(&t->idle, true);
    return code;
}

static tarn_code wait_job(sink_task *t) {
    tarn_error err = TARN_ERROR_INIT;
    if (t->started) {
        t->started = false;
        tarn_code code = pool_wait(t->env, &t->job, &err);
        if (code != TARN_OK && t->broken == TARN_OK) {
            t->broken = code;
            t->broken_err = err;
        }
    }
    return t->broken;
}

static tarn_code refuse_broken(const sink_task *t, tarn_error *err) {
    if (err != NULL) {
        *err = t->broken_err;
    }
    return t->broken;
}

static void start_job(sink_task *t) {
    memcpy(t->working, t->waiting, sizeof t->working);
    t->n_working = t->n_waiting;
    memset(t->waiting, 0, sizeof t->waiting);
    t->n_waiting = 0;
    memset(&t->job, 0, sizeof t->job);
    t->job.run = run_items;
    t->job.ctx = t;
    t->job.err = (tarn_error)TARN_ERROR_INIT;
    atomic_store(&t->idle, false);
    t->started = true;
    pool_submit(t->env, &t->job);
}

static tarn_code push_item(sink_task *t, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    task_item *item = &t->waiting[t->n_waiting];
    memset(item, 0, sizeof *item);
    if (kinds != NULL) {
        size_t n = (size_t)batch_rows(batch);
        item->kinds = env_alloc(t->env, n + 1);
        if (item->kinds == NULL) {
            return err_nomem(err);
        }
        memcpy(item->kinds, kinds, n);
    }
    batch_move(&item->batch, batch);
    t->n_waiting++;
    return TARN_OK;
}

tarn_code task_write(sink_task *t, tarn_batch *batch, const uint8_t *kinds, tarn_error *err) {
    if (t->direct) {
        return write_batch(t, batch, kinds, err);
    }
    if (t->n_waiting == TASK_QUEUE || (t->started && atomic_load(&t->idle))) {
        (void)wait_job(t); /* back-pressure: the feeder works while it waits */
    }
    if (t->broken != TARN_OK) {
        return refuse_broken(t, err);
    }
    if (t->n_waiting == TASK_QUEUE) {
        start_job(t);
    }
    tarn_code code = push_item(t, batch, kinds, err);
    if (code == TARN_OK && !t->started) {
        start_job(t);
    }
    return code;
}

tarn_code task_flush(sink_task *t, tarn_error *err) {
    while (wait_job(t) == TARN_OK && t->n_waiting > 0) {
        start_job(t);
    }
    return t->broken != TARN_OK ? refuse_broken(t, err) : TARN_OK;
}

void task_release(sink_task *t) {
    (void)wait_job(t);
    for (int32_t i = 0; i < t->n_waiting; i++) {
        free_item(t, &t->waiting[i]);
    }
    delta_writer_free(t->writer);
    memset(t, 0, sizeof *t);
}
