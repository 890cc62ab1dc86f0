/* service/queue.c - see queue.h. A queue lives as long as somebody waits in it. */
#include "service/queue.h"

#include "base/map.h"

#define MAX_ATTEMPTS 20
#define BACKOFF_MS   10

typedef struct commit_queue {
    char *key;
    commit_job *first, *last; /* that wait */
    bool busy;                /* a leader is at work */
    int waiters;              /* callers that hold it */
    pthread_cond_t turn;
    struct commit_queue *next;
} commit_queue;

struct commit_queues {
    tarn_env *env;
    tarn_catalog *catalog;
    service_counters *counters;
    pthread_mutex_t lock;
    commit_queue *queues; /* of tables with commits at work: few */
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

void commit_queues_free(commit_queues *q) {
    if (q != NULL) {
        tarn_assert(q->queues == NULL);
        (void)pthread_mutex_destroy(&q->lock);
        env_free(q->env, q);
    }
}

/* One round of a leader: the jobs it took, on one base. */
typedef struct round {
    commit_queues *queues;
    const tarn_ident *table;
    tarn_arena arena;
    tarn_table_version *base;
    const tarn_metadata *now; /* base with the jobs applied so far */
    tarn_change *changes;     /* of all jobs that hold */
    int32_t n_changes, cap;
} round;

static tarn_code add_changes(round *rd, const tarn_change_set *set, tarn_error *err) {
    if (rd->n_changes + set->n_changes > rd->cap) {
        int32_t cap = (rd->n_changes + set->n_changes) * 2;
        tarn_change *changes =
            arena_grow(&rd->arena, rd->changes, (size_t)rd->cap * sizeof *changes,
                       (size_t)cap * sizeof *changes);
        if (changes == NULL) {
            return err_nomem(err);
        }
        rd->changes = changes;
        rd->cap = cap;
    }
    if (set->n_changes > 0) {
        memcpy(rd->changes + rd->n_changes, set->changes,
               (size_t)set->n_changes * sizeof *set->changes);
    }
    rd->n_changes += set->n_changes;
    return TARN_OK;
}

/* A job that does not hold is done, with its reason; the others are not touched by it. */
static void apply_job(round *rd, commit_job *job) {
    tarn_code code = TARN_OK;
    tarn_change_set set;
    const tarn_metadata *next;
    memset(&set, 0, sizeof set);
    err_reset(&job->err);
    TRY(job->make(job, &rd->arena, rd->now, &set, &job->err));
    TRY(change_check(rd->now, &set, &job->err));
    TRY(change_apply(&rd->arena, rd->now, &set, env_now_ms(rd->queues->env), &next, &job->err));
    TRY(add_changes(rd, &set, &job->err));
    rd->now = next;
done:
    job->code = code;
}

static tarn_code run_round(round *rd, commit_job *jobs, tarn_error *err) {
    tarn_catalog *catalog = rd->queues->catalog;
    tarn_change_set set;
    tarn_requirement same;
    tarn_outcome_kind outcome;
    tarn_table_version *version = NULL;
    tarn_code code = TARN_OK;
    TRY(catalog_load(catalog, rd->table, &rd->base, err));
    rd->now = rd->base->metadata;
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        apply_job(rd, job);
    }
    if (rd->n_changes > 0) {
        memset(&set, 0, sizeof set);
        same = (tarn_requirement){REQUIRE_UUID, rd->base->metadata->table_uuid, 0};
        set.requirements = &same;
        set.n_requirements = rd->base->metadata->table_uuid.len > 0 ? 1 : 0;
        set.changes = rd->changes;
        set.n_changes = rd->n_changes;
        TRY(catalog_commit(catalog, rd->table, rd->base, &set, &outcome, &version, err));
    } else {
        version = table_version_keep(rd->base);
    }
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        if (job->code == TARN_OK) {
            job->version = table_version_keep(version);
        }
    }
done:
    table_version_release(version);
    return code;
}

static void lead(commit_queues *q, const tarn_ident *table, commit_job *jobs) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_CONFLICT;
    for (int attempt = 1; attempt <= MAX_ATTEMPTS && code == TARN_CONFLICT; attempt++) {
        round rd;
        memset(&rd, 0, sizeof rd);
        rd.queues = q;
        rd.table = table;
        arena_init(&rd.arena, q->env);
        if (attempt > 1) { /* another service moved the pointer */
            env_sleep_ms(q->env,
                         (int64_t)(env_random_u64(q->env) % (BACKOFF_MS * (uint64_t)attempt)));
        }
        err_reset(&err);
        code = run_round(&rd, jobs, &err);
        table_version_release(rd.base);
        arena_release(&rd.arena);
    }
    for (commit_job *job = jobs; job != NULL; job = job->next) {
        if (job->code == TARN_OK && code != TARN_OK) {
            job->code = code;
            job->err = err;
        }
        counters_commit(q->counters, job->code);
    }
    counters_group(q->counters);
}

static commit_queue *find_queue(commit_queues *q, const char *key) {
    commit_queue *queue = q->queues;
    while (queue != NULL && strcmp(queue->key, key) != 0) {
        queue = queue->next;
    }
    return queue;
}

static commit_queue *take_queue(commit_queues *q, const tarn_ident *table, tarn_error *err) {
    tarn_buf key;
    commit_queue *queue = NULL;
    buf_init(&key, q->env, 0);
    if (ident_text(table, &key, err) != TARN_OK || buf_append_char(&key, '\0', err) != TARN_OK) {
        buf_release(&key);
        return NULL;
    }
    queue = find_queue(q, (const char *)key.data);
    if (queue == NULL) {
        queue = env_calloc(q->env, 1, sizeof *queue);
        if (queue == NULL) {
            (void)err_nomem(err);
            buf_release(&key);
            return NULL;
        }
        queue->key = (char *)key.data; /* moved */
        memset(&key, 0, sizeof key);
        (void)pthread_cond_init(&queue->turn, NULL);
        queue->next = q->queues;
        q->queues = queue;
    }
    buf_release(&key);
    queue->waiters++;
    return queue;
}

static void leave_queue(commit_queues *q, commit_queue *queue) {
    if (--queue->waiters > 0) {
        return;
    }
    commit_queue **at = &q->queues;
    while (*at != queue) {
        at = &(*at)->next;
    }
    *at = queue->next;
    (void)pthread_cond_destroy(&queue->turn);
    env_free(q->env, queue->key);
    env_free(q->env, queue);
}

/* Takes all that waits, this caller's own job among it, and decides it. */
static void lead_all(commit_queues *q, commit_queue *queue, const tarn_ident *table) {
    commit_job *jobs = queue->first;
    queue->first = queue->last = NULL;
    queue->busy = true;
    (void)pthread_mutex_unlock(&q->lock);
    lead(q, table, jobs);
    (void)pthread_mutex_lock(&q->lock);
    queue->busy = false;
    while (jobs != NULL) {
        commit_job *next = jobs->next; /* its owner may go once it is done */
        jobs->done = true;
        jobs = next;
    }
    (void)pthread_cond_broadcast(&queue->turn);
}

tarn_code commit_queue_run(commit_queues *q, const tarn_ident *table, commit_job *job) {
    job->code = TARN_OK;
    job->version = NULL;
    job->done = false;
    job->next = NULL;
    (void)pthread_mutex_lock(&q->lock);
    commit_queue *queue = take_queue(q, table, &job->err);
    if (queue == NULL) {
        (void)pthread_mutex_unlock(&q->lock);
        job->code = job->err.code;
        return job->code;
    }
    if (queue->last != NULL) {
        queue->last->next = job;
    } else {
        queue->first = job;
    }
    queue->last = job;
    while (!job->done) {
        if (!queue->busy) {
            lead_all(q, queue, table);
        } else {
            (void)pthread_cond_wait(&queue->turn, &q->lock);
        }
    }
    leave_queue(q, queue);
    (void)pthread_mutex_unlock(&q->lock);
    return job->code;
}
