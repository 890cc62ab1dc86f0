/* sink/background.c - see background.h. */
#include "sink/background.h"

static tarn_code copy_offsets(background *b, tarn_error *err) {
    tarn_str offsets = b->committer->committed.offsets;
    tarn_code code = TARN_OK;
    buf_reset(&b->offsets);
    b->has_offsets = false;
    if (offsets.data != NULL) {
        TRY(buf_append_str(&b->offsets, offsets, err));
        b->has_offsets = true;
    }
done:
    return code;
}

/* All of it, or nothing. */
static void move_notes(tarn_buf *from, tarn_buf *to) {
    tarn_error ignored = TARN_ERROR_INIT;
    if (to->len < COMMITTER_NOTES * sizeof(committer_note)) {
        ignored.code = buf_append_str(to, buf_str(from), &ignored);
    }
    buf_reset(from);
}

tarn_code background_init(background *b, tarn_env *env, committer *c, tarn_error *err) {
    memset(b, 0, sizeof *b);
    buf_init(&b->offsets, env, 0);
    buf_init(&b->notes, env, 0);
    b->committer = c;
    b->result.err = (tarn_error)TARN_ERROR_INIT;
    b->result.outcome.snapshot_id = TARN_NO_SNAPSHOT;
    tarn_code code = copy_offsets(b, err);
    if (code == TARN_OK && pthread_mutex_init(&b->lock, NULL) != 0) {
        code = err_set(err, TARN_IO, "a lock could not be made");
    }
    if (code == TARN_OK && pthread_cond_init(&b->moved, NULL) != 0) {
        (void)pthread_mutex_destroy(&b->lock);
        code = err_set(err, TARN_IO, "a lock could not be made");
    }
    if (code != TARN_OK) {
        buf_release(&b->offsets);
        return code;
    }
    b->env = env;
    b->counts = c->counts;
    b->last = c->last;
    move_notes(&c->notes, &b->notes);
    return TARN_OK;
}

/* Not durable, and in nobody's state: as if they had not been written. */
static void drop_list(background *b, sink_pending *p) {
    while (p != NULL) {
        sink_pending *next = p->next;
        write_result_remove(b->committer->options.catalog->store, &p->delta.written);
        sink_pending_free(p);
        p = next;
    }
}

/* Under the lock: nothing more is made durable. */
static bool has_ended(const background *b) {
    return b->result.code != TARN_OK && !b->away;
}

/* Under the lock: what waits, now at work; NULL: the end. */
static sink_pending *take_waiting(background *b) {
    sink_pending *p = b->stop || has_ended(b) ? NULL : b->waiting;
    if (p != NULL) {
        b->waiting = NULL;
        b->n_working = b->n_waiting;
        b->n_waiting = 0;
    }
    b->running = p != NULL;
    (void)pthread_cond_broadcast(&b->moved);
    return p;
}

/* What one turn of the errand did. */
typedef struct turn {
    int32_t pending; /* before it */
    bool ran;        /* the committer */
    tarn_code code;
    tarn_error err;
    commit_outcome outcome;
} turn;

/* Under the lock. */
static void note_result(background *b, const turn *t) {
    const commit_outcome *outcome = &t->outcome;
    background_result *r = &b->result;
    const committer *c = b->committer;
    tarn_error failed = t->err;
    tarn_code code = t->code;
    if (code == TARN_OK) {
        code = copy_offsets(b, &failed);
    }
    r->done += b->n_working + t->pending - committer_pending(c);
    r->commits += t->ran ? c->last.commits : 0;
    move_notes(&b->committer->notes, &b->notes);
    if (outcome->version != NULL) {
        table_version_release(r->outcome.version);
        r->outcome = *outcome;
        r->rows += c->rows;
        r->files += c->files;
        r->any = true;
    }
    if (code != TARN_OK) {
        b->away = r->code == TARN_OK && t->ran && err_is_away(&failed);
    }
    if (code != TARN_OK && r->code == TARN_OK) {
        r->code = code;
        r->err = failed;
        r->outcome.kind = outcome->kind;
    }
    b->counts = c->counts;
    b->last = c->last;
    b->n_working = 0;
}

static void run_all(void *ctx) {
    background *b = ctx;
    (void)pthread_mutex_lock(&b->lock);
    sink_pending *p = take_waiting(b);
    while (p != NULL) {
        bool commits = b->result.code == TARN_OK;
        (void)pthread_mutex_unlock(&b->lock);
        turn t = {.pending = committer_pending(b->committer), .err = TARN_ERROR_INIT};
        t.code = committer_add(b->committer, p, &t.err);
        if (t.code == TARN_OK && commits) {
            t.ran = true;
            t.code = committer_run(b->committer, INT64_MAX, &t.outcome, &t.err);
        }
        (void)pthread_mutex_lock(&b->lock);
        note_result(b, &t);
        p = take_waiting(b);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

void background_push(background *b, sink_pending *p) {
    (void)pthread_mutex_lock(&b->lock);
    while (b->running && b->n_waiting >= BACKGROUND_AHEAD) {
        (void)pthread_cond_wait(&b->moved, &b->lock);
    }
    bool failed = has_ended(b);
    bool start = !failed && !b->running;
    if (!failed) {
        sink_pending **at = &b->waiting;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = p;
        b->n_waiting++;
        b->running = true;
    }
    (void)pthread_mutex_unlock(&b->lock);
    if (failed) {
        drop_list(b, p);
    } else if (start) {
        pool_errand_join(&b->errand); /* it has come to its end */
        pool_errand_start(&b->errand, run_all, b);
    }
}

void background_wait(background *b) {
    pool_errand_join(&b->errand);
    drop_list(b, b->waiting); /* after a failure; else there are none */
    b->waiting = NULL;
    b->n_waiting = 0;
}

void background_wait_for(background *b, int32_t n) {
    (void)pthread_mutex_lock(&b->lock);
    while (b->running && b->result.code == TARN_OK && b->n_waiting + b->n_working > n) {
        (void)pthread_cond_wait(&b->moved, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
}

void background_release(background *b) {
    if (b->env == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&b->lock);
    b->stop = true;
    (void)pthread_mutex_unlock(&b->lock);
    background_wait(b);
    table_version_release(b->result.outcome.version);
    buf_release(&b->offsets);
    buf_release(&b->notes);
    (void)pthread_cond_destroy(&b->moved);
    (void)pthread_mutex_destroy(&b->lock);
    memset(b, 0, sizeof *b);
}

void background_take(background *b, background_result *out) {
    (void)pthread_mutex_lock(&b->lock);
    *out = b->result;
    b->result.outcome.version = NULL;
    b->result.rows = 0;
    b->result.files = 0;
    b->result.any = false;
    b->result.done = 0;
    b->result.commits = 0;
    (void)pthread_mutex_unlock(&b->lock);
}

void background_notes(background *b, tarn_buf *out) {
    (void)pthread_mutex_lock(&b->lock);
    move_notes(&b->notes, out);
    (void)pthread_mutex_unlock(&b->lock);
}

bool background_failed(background *b, tarn_error *err) {
    (void)pthread_mutex_lock(&b->lock);
    bool failed = b->result.code != TARN_OK;
    if (failed) {
        *err = b->result.err;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return failed;
}

int32_t background_counts(background *b, committer_counts *counts, committer_counts *last) {
    (void)pthread_mutex_lock(&b->lock);
    *counts = b->counts;
    *last = b->last;
    int32_t n = b->n_waiting + b->n_working;
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

tarn_code background_offsets(background *b, tarn_buf *out, bool *has, tarn_error *err) {
    (void)pthread_mutex_lock(&b->lock);
    *has = b->has_offsets;
    tarn_code code = buf_append_str(out, buf_str(&b->offsets), err);
    (void)pthread_mutex_unlock(&b->lock);
    return code;
}
