/* service/queue.c - see queue.h: who leads, and what is remembered of tables.
 *
 * A caller that finds nobody at work leads: it takes all that waits, its own job among it, and
 * decides it; then the first of those that came meanwhile leads. */
#include "service/queue.h"

#include "service/group.h"

#include <pthread.h>

/* Where very many commit at once, swaps of one table begin no closer than this: groups grow, and
 * snapshots stay few (a store that takes some 15 conditional writes of a key in a second sets no
 * other pace). */
#define PACE_JOBS 128
#define PACE_US   70000
#define MAX_IDLE  32 /* tables that are remembered without a commit at work */

typedef struct commit_queue {
    char *key;
    commit_job *first, *last; /* that wait */
    bool busy;                /* a leader is at work */
    int users;                /* callers that hold it: whose jobs wait or are being decided */
    uint64_t used;
    tarn_table_version *known; /* NULL: nothing */
    commit_index index;        /* the leader's, as the next */
    file_index files;
    int64_t swap_us; /* when the last group began; 0: it was small */
    struct commit_queue *next;
} commit_queue;

struct commit_queues {
    tarn_env *env;
    tarn_catalog *catalog;
    service_counters *counters;
    pthread_mutex_t lock; /* of all that follows, and of the queues but for what is the leader's */
    commit_queue *queues;
    int idle;
    uint64_t clock;
};

tarn_code commit_queues_new(tarn_env *env, tarn_catalog *catalog, service_counters *counters,
                            commit_queues **out, tarn_error *err) {
    commit_queues *q = env_calloc(env, 1, sizeof *q);
    if (q == NULL) {
        return err_nomem(err);
    }
    q->env = env;
    q->catalog = catalog;
    q->counters = counters;
    (void)pthread_mutex_init(&q->lock, NULL);
    *out = q;
    return TARN_OK;
}

static void drop_queue(commit_queues *q, commit_queue *queue) {
    commit_queue **at = &q->queues;
    while (*at != queue) {
        at = &(*at)->next;
    }
    *at = queue->next;
    table_version_release(queue->known);
    commit_index_release(&queue->index);
    file_index_release(&queue->files);
    env_free(q->env, queue->key);
    env_free(q->env, queue);
}

void commit_queues_free(commit_queues *q) {
    if (q != NULL) {
        while (q->queues != NULL) {
            tarn_assert(q->queues->users == 0);
            drop_queue(q, q->queues);
        }
        (void)pthread_mutex_destroy(&q->lock);
        env_free(q->env, q);
    }
}

static commit_queue *add_queue(commit_queues *q, char *key) {
    commit_queue *queue = env_calloc(q->env, 1, sizeof *queue);
    if (queue != NULL) {
        queue->key = key;
        commit_index_init(&queue->index, q->env);
        file_index_init(&queue->files, q->env);
        queue->next = q->queues;
        q->queues = queue;
        q->idle++; /* until it is taken */
    }
    return queue;
}

/* Under the lock. NULL: no memory. */
static commit_queue *take_queue(commit_queues *q, const tarn_ident *table, tarn_error *err) {
    tarn_buf key;
    commit_queue *queue = NULL;
    buf_init(&key, q->env, 0);
    if (ident_text(table, &key, err) != TARN_OK || buf_append_char(&key, '\0', err) != TARN_OK) {
        buf_release(&key);
        return NULL;
    }
    queue = q->queues;
    while (queue != NULL && strcmp(queue->key, (const char *)key.data) != 0) {
        queue = queue->next;
    }
    if (queue == NULL) {
        queue = add_queue(q, (char *)key.data);
        if (queue == NULL) {
            (void)err_nomem(err);
        } else {
            memset(&key, 0, sizeof key); /* moved */
        }
    }
    buf_release(&key);
    if (queue != NULL) {
        q->idle -= queue->users == 0;
        queue->users++;
        queue->used = ++q->clock;
    }
    return queue;
}

/* Under the lock. */
static void leave_queue(commit_queues *q, commit_queue *queue) {
    if (--queue->users > 0) {
        return;
    }
    if (++q->idle > MAX_IDLE) {
        commit_queue *oldest = NULL;
        for (commit_queue *other = q->queues; other != NULL; other = other->next) {
            if (other->users == 0 && (oldest == NULL || other->used < oldest->used)) {
                oldest = other;
            }
        }
        drop_queue(q, oldest);
        q->idle--;
    }
}

/* Without the lock. */
static void keep_pace(commit_queues *q, commit_queue *queue) {
    int64_t now = env_now_us(q->env);
    if (queue->swap_us != 0 && now < queue->swap_us + PACE_US && now >= queue->swap_us) {
        env_sleep_ms(q->env, (queue->swap_us + PACE_US - now) / 1000);
    }
}

/* Under the lock. *n: how many jobs it takes. */
static commit_job *take_jobs(commit_queue *queue, int *n) {
    commit_job *jobs = queue->first;
    queue->first = queue->last = NULL;
    *n = 0;
    for (const commit_job *job = jobs; job != NULL; job = job->next) {
        (*n)++;
    }
    return jobs;
}

/* Under the lock: the leader's work is done, for itself and for those it decided. The next leader,
 * or NULL. */
static commit_job *hand_over(commit_queues *q, commit_queue *queue, int n) {
    commit_job *next = queue->first;
    queue->busy = next != NULL;
    if (next != NULL) {
        next->leads = true;
    }
    queue->users -= n - 1;
    leave_queue(q, queue);
    return next;
}

/* Takes all that waits and decides it. Callers are woken without the lock, and take it no more. */
static void lead(commit_queues *q, commit_queue *queue, const tarn_ident *table,
                 const commit_job *own) {
    int n;
    keep_pace(q, queue);
    int64_t began_us = env_now_us(q->env);
    (void)pthread_mutex_lock(&q->lock);
    commit_job *jobs = take_jobs(queue, &n);
    commit_group group = {q->env,       q->catalog,  table,        &queue->index,
                          queue->known, q->counters, &queue->files};
    if (group.known != NULL) {
        (void)table_version_keep(group.known);
    }
    (void)pthread_mutex_unlock(&q->lock);
    group_run(&group, jobs);
    counters_group(q->counters);
    (void)pthread_mutex_lock(&q->lock);
    table_version_release(queue->known);
    queue->known = group.known;
    queue->swap_us = n >= PACE_JOBS ? began_us : 0;
    commit_job *leader = hand_over(q, queue, n);
    (void)pthread_mutex_unlock(&q->lock);
    if (leader != NULL) {
        (void)sem_post(&leader->turn);
    }
    while (jobs != NULL) {
        commit_job *job = jobs;
        jobs = job->next; /* its owner may go once it is told */
        counters_commit(q->counters, job->code);
        if (job != own) {
            (void)sem_post(&job->turn);
        }
    }
}

static void wait_turn(commit_job *job) {
    while (sem_wait(&job->turn) != 0) { /* a signal came */
    }
}

tarn_code commit_queue_run(commit_queues *q, const tarn_ident *table, commit_job *job) {
    job->code = TARN_OK;
    job->version = NULL;
    job->leads = false;
    job->next = NULL;
    (void)pthread_mutex_lock(&q->lock);
    commit_queue *queue = take_queue(q, table, &job->err);
    if (queue == NULL) {
        (void)pthread_mutex_unlock(&q->lock);
        job->code = job->err.code;
        return job->code;
    }
    (void)sem_init(&job->turn, 0, 0);
    if (queue->last != NULL) {
        queue->last->next = job;
    } else {
        queue->first = job;
    }
    queue->last = job;
    if (!queue->busy) {
        queue->busy = job->leads = true;
    }
    bool leads = job->leads;
    (void)pthread_mutex_unlock(&q->lock);
    if (!leads) {
        wait_turn(job);
    }
    if (job->leads) {
        lead(q, queue, table, job);
    }
    (void)sem_destroy(&job->turn);
    return job->code;
}

tarn_code commit_queue_look(commit_queues *q, const tarn_ident *table, bool fresh,
                            tarn_table_version **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *version = NULL;
    (void)pthread_mutex_lock(&q->lock);
    commit_queue *queue = take_queue(q, table, err);
    if (queue == NULL) {
        (void)pthread_mutex_unlock(&q->lock);
        return err != NULL ? err->code : TARN_NOMEM;
    }
    if (queue->known != NULL && !fresh) {
        version = table_version_keep(queue->known);
    } else {
        (void)pthread_mutex_unlock(&q->lock);
        code = catalog_load(q->catalog, table, &version, err);
        (void)pthread_mutex_lock(&q->lock);
        if (code == TARN_OK && !queue->busy) {
            table_version_release(queue->known);
            queue->known = table_version_keep(version);
        }
    }
    leave_queue(q, queue);
    (void)pthread_mutex_unlock(&q->lock);
    if (code == TARN_OK) {
        *out = version;
    }
    return code;
}
