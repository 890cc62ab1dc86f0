/* catalog/catalog_wait.c - a catalog whose server or database is away is waited for: calls that
 * failed so (err_is_away) are made again, later and later, until it is back.
 *
 *   call fails -> catalog_wait: true, after a while -> the call again ... -> catalog_wait_end
 *
 * Invariants: 1 an outage is one for all threads: it begins with the first call that fails, and is
 * told once; 2 who waits is asked whether to go on every WAIT_SLICE_MS, one thread at a time; 3
 * when one thread finds the catalog back the others try at once; 4 nothing is said here about what
 * a call that failed has done: only what may be made again comes here. */
#include "catalog/catalog_int.h"

#include <pthread.h>

#define FIRST_WAIT_MS   100
#define LONGEST_WAIT_MS 30000
#define WAIT_SLICE_MS   100
#define TELL_AFTER_MS   1000 /* what is back before is not worth a word */

struct catalog_waiting {
    catalog_patience patience;
    pthread_mutex_t lock;
    int32_t calls;    /* guarded, as all below: that wait now */
    int64_t since_ms; /* while any does */
    bool told;
    uint32_t backs; /* how often an outage ended */
    int64_t waited_ms;
};

tarn_code catalog_set_patience(tarn_catalog *c, const catalog_patience *patience, tarn_error *err) {
    bool waits = patience != NULL && patience->timeout_ms != 0;
    if (c->waiting == NULL && waits) {
        catalog_waiting *w = env_calloc(c->env, 1, sizeof *w);
        if (w == NULL) {
            return err_nomem(err);
        }
        if (pthread_mutex_init(&w->lock, NULL) != 0) {
            env_free(c->env, w);
            return err_set(err, TARN_IO, "a lock could not be made");
        }
        c->waiting = w;
    }
    if (c->waiting != NULL) {
        (void)pthread_mutex_lock(&c->waiting->lock);
        c->waiting->patience = waits ? *patience : (catalog_patience){0};
        (void)pthread_mutex_unlock(&c->waiting->lock);
    }
    if (c->vt->set_hasty != NULL) {
        c->vt->set_hasty(c, waits);
    }
    return TARN_OK;
}

void catalog_waiting_free(tarn_catalog *c) {
    if (c->waiting != NULL) {
        (void)pthread_mutex_destroy(&c->waiting->lock);
        env_free(c->env, c->waiting);
        c->waiting = NULL;
    }
}

/* Under the lock. */
static bool tell(const catalog_waiting *w, tarn_away_event event, int64_t ms, const char *why) {
    return w->patience.ask == NULL || w->patience.ask(w->patience.ctx, event, ms, why);
}

/* Under the lock: whether the outage is waited for longer. */
static bool go_on(tarn_catalog *c, const tarn_error *err) {
    catalog_waiting *w = c->waiting;
    int64_t limit = w->patience.timeout_ms;
    int64_t ms = env_now_ms(c->env) - w->since_ms;
    if (limit == 0 || (limit > 0 && ms >= limit) || env_check_cancel(c->env, NULL) != TARN_OK) {
        return false;
    }
    if (ms >= TELL_AFTER_MS && !w->told) {
        w->told = true;
        env_log(c->env, TARN_LOG_INFO, "catalog", "away", "%s", err->message);
        return tell(w, TARN_AWAY_BEGINS, ms, err->message);
    }
    return tell(w, TARN_AWAY_LASTS, ms, err->message);
}

bool catalog_wait(tarn_catalog *c, catalog_outage *o, const tarn_error *err) {
    catalog_waiting *w = c->waiting;
    if (w == NULL || !err_is_away(err)) {
        return false;
    }
    (void)pthread_mutex_lock(&w->lock);
    if (!o->began) {
        o->began = true;
        if (w->calls++ == 0) {
            w->since_ms = env_now_ms(c->env);
            w->told = false;
        }
    }
    uint32_t backs = w->backs;
    bool more = go_on(c, err);
    int64_t left = LONGEST_WAIT_MS;
    if (o->tries < 8) {
        left = (int64_t)FIRST_WAIT_MS << o->tries++;
    }
    while (more && left > 0 && backs == w->backs) {
        (void)pthread_mutex_unlock(&w->lock);
        env_sleep_ms(c->env, left < WAIT_SLICE_MS ? left : WAIT_SLICE_MS);
        left -= WAIT_SLICE_MS;
        (void)pthread_mutex_lock(&w->lock);
        more = go_on(c, err);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return more;
}

void catalog_wait_end(tarn_catalog *c, catalog_outage *o, bool back) {
    catalog_waiting *w = c->waiting;
    if (!o->began || w == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    int64_t now = env_now_ms(c->env);
    w->waited_ms += now - w->since_ms;
    w->calls--;
    w->backs += back;
    if (back && w->told) {
        w->told = false;
        env_log(c->env, TARN_LOG_INFO, "catalog", "back", "after_ms=%lld",
                (long long)(now - w->since_ms));
        (void)tell(w, TARN_AWAY_ENDS, now - w->since_ms, "");
    }
    w->since_ms = back ? now : w->since_ms; /* for those that still wait it is another one */
    (void)pthread_mutex_unlock(&w->lock);
    *o = (catalog_outage){0};
}

int64_t catalog_waited_ms(tarn_catalog *c) {
    catalog_waiting *w = c->waiting;
    if (w == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&w->lock);
    int64_t ms = w->waited_ms;
    (void)pthread_mutex_unlock(&w->lock);
    return ms;
}
