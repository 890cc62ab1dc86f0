/* service/connections.c - see connections.h. */
#include "service/connections.h"

#include <pthread.h>
#include <sys/socket.h>

#include "base/pool.h"

#define BYTES_PER_MS 64   /* who is faster is in time */
#define PATIENCE_MS  1000 /* nobody is cut sooner for others */
#define SWEEP_MS     100

struct connections {
    tarn_env *env;
    connection_limits limits;
    pool_errand thread;
    pthread_mutex_t lock; /* of what follows, and of each connection_entry */
    pthread_cond_t came;
    connection_entry *first;
    uint32_t n; /* without those that were cut */
    bool ends;
};

tarn_code connections_new(tarn_env *env, const connection_limits *limits, connections **out,
                          tarn_error *err) {
    connections *c = env_calloc(env, 1, sizeof *c);
    if (c == NULL) {
        return err_nomem(err);
    }
    c->env = env;
    c->limits = *limits;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->came, NULL);
    *out = c;
    return TARN_OK;
}

void connections_free(connections *c) {
    if (c == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->ends = true;
    (void)pthread_cond_signal(&c->came);
    (void)pthread_mutex_unlock(&c->lock);
    pool_errand_join(&c->thread);
    (void)pthread_cond_destroy(&c->came);
    (void)pthread_mutex_destroy(&c->lock);
    env_free(c->env, c);
}

/* The connection's own thread sees the end of its socket and closes it. */
static void cut(connections *c, connection_entry *x) {
    x->cut = true;
    c->n--;
    (void)shutdown(x->fd, SHUT_RDWR);
}

/* What it has sent, or had to take, gives it more time. */
static int64_t bytes_ms(const connection_entry *x) {
    return (int64_t)(x->bytes / BYTES_PER_MS);
}

/* Whether this one goes before others have to. */
static bool is_in_the_way(const connection_entry *x, int64_t now_ms) {
    int64_t age = now_ms - x->since_ms;
    return !x->cut && age >= PATIENCE_MS &&
           (x->stage == CONNECTION_WAITING ||
            (x->stage == CONNECTION_COMING && age > PATIENCE_MS + bytes_ms(x)));
}

/* Cuts the one that is in the way for longest; false: there is none. The caller holds the lock. */
static bool make_room(connections *c, int64_t now_ms) {
    connection_entry *oldest = NULL;
    for (connection_entry *x = c->first; x != NULL; x = x->next) {
        if (is_in_the_way(x, now_ms) && (oldest == NULL || x->since_ms < oldest->since_ms)) {
            oldest = x;
        }
    }
    if (oldest != NULL) {
        cut(c, oldest);
    }
    return oldest != NULL;
}

void connections_sweep(connections *c, int64_t now_ms) {
    (void)pthread_mutex_lock(&c->lock);
    for (connection_entry *x = c->first; x != NULL; x = x->next) {
        if (!x->cut && x->stage != CONNECTION_AT_WORK && now_ms > x->until_ms + bytes_ms(x)) {
            cut(c, x);
        }
    }
    while (c->n > c->limits.connections && make_room(c, now_ms)) {
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static void watch(void *ctx) {
    connections *c = ctx;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->ends) {
        if (c->first == NULL) {
            (void)pthread_cond_wait(&c->came, &c->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&c->lock);
        env_sleep_ms(c->env, SWEEP_MS);
        connections_sweep(c, env_now_ms(c->env));
        (void)pthread_mutex_lock(&c->lock);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

tarn_code connections_watch(connections *c, tarn_error *err) {
    return pool_errand_try(&c->thread, watch, c)
               ? TARN_OK
               : err_set(err, TARN_IO, "a thread for the service could not be started");
}

void connections_open(connections *c, connection_entry *x, int fd) {
    int64_t now_ms = env_now_ms(c->env);
    *x = (connection_entry){.fd = fd,
                            .stage = CONNECTION_WAITING,
                            .since_ms = now_ms,
                            .until_ms = now_ms + c->limits.request_ms};
    (void)pthread_mutex_lock(&c->lock);
    x->surplus = c->n >= c->limits.connections && !make_room(c, now_ms);
    x->next = c->first;
    if (c->first != NULL) {
        c->first->prev = x;
    }
    c->first = x;
    c->n++;
    (void)pthread_cond_signal(&c->came);
    (void)pthread_mutex_unlock(&c->lock);
}

void connections_close(connections *c, connection_entry *x) {
    (void)pthread_mutex_lock(&c->lock);
    c->n -= !x->cut;
    if (x->next != NULL) {
        x->next->prev = x->prev;
    }
    if (x->prev != NULL) {
        x->prev->next = x->next;
    } else {
        c->first = x->next;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

bool connections_admit(connections *c, connection_entry *x) {
    (void)pthread_mutex_lock(&c->lock);
    x->surplus = x->surplus && c->n > c->limits.connections;
    bool admitted = !x->surplus;
    (void)pthread_mutex_unlock(&c->lock);
    return admitted;
}

void connections_stage(connections *c, connection_entry *x, connection_stage stage,
                       uint64_t bytes) {
    int64_t now_ms = env_now_ms(c->env);
    (void)pthread_mutex_lock(&c->lock);
    if (x->stage != stage) {
        x->stage = stage;
        x->since_ms = now_ms;
        x->until_ms = now_ms + c->limits.request_ms;
        x->until_ms += stage == CONNECTION_WAITING ? c->limits.idle_ms : 0;
    }
    x->bytes = bytes;
    (void)pthread_mutex_unlock(&c->lock);
}

int32_t connections_busy(connections *c) {
    int32_t n = 0;
    (void)pthread_mutex_lock(&c->lock);
    for (const connection_entry *x = c->first; x != NULL; x = x->next) {
        n += !x->cut && (x->stage == CONNECTION_AT_WORK || x->stage == CONNECTION_ANSWERING);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return n;
}
