/* service/intake.c - see intake.h: a few workers turn what waits into commits, each table by one
 * worker at a time, when its interval is over, when much waits, or when the service ends. */
#include "service/intake_int.h"

#include "base/limits.h"

#include <stdio.h>

#define INTERVAL_MS  1000
#define DISK_BYTES   ((int64_t)1 << 30)
#define KEY_MS       INT64_C(1800000)
#define STOP_MS      10000
#define BACKOFF_MS   100
#define BACKOFF_MOST 30000
#define IDLE_MS      60000 /* then what is known of a table is forgotten */
#define REST_MS      5000  /* then what was needed for the work is given back */
#define UNWELL_MS    30000 /* rows that wait longer behind their time are no good health */

tarn_str intake_identity(const tarn_metadata *m, tarn_str ident) {
    return m->table_uuid.len > 0 ? m->table_uuid : ident;
}

void intake_item_free(tarn_env *env, intake_item *item) {
    if (item != NULL) {
        intake_batches_release(&item->batches);
        table_version_release(item->version);
        env_free(env, item->reason);
        env_free(env, item);
    }
}

/* ---- tables ---- */

intake_table *intake_find_table(intake *in, tarn_str identity, tarn_error *err) {
    map_entry *e = map_find(&in->tables, identity);
    if (e != NULL) {
        return e->value.ptr;
    }
    if (in->tables.count >= LIMIT_INTAKE_TABLES) {
        (void)err_set(err, TARN_LIMIT, "rows for more than %d tables were sent",
                      LIMIT_INTAKE_TABLES);
        return NULL;
    }
    intake_table *t = ARENA_NEW(&in->arena, intake_table);
    tarn_str copy = arena_str(&in->arena, identity);
    e = t != NULL && copy.data != NULL ? map_put(&in->tables, copy, NULL) : NULL;
    if (e == NULL) {
        (void)err_nomem(err);
        return NULL;
    }
    e->value.ptr = t;
    t->in = in;
    t->identity = copy;
    return t;
}

tarn_code intake_name_table(intake_table *t, tarn_str ident, tarn_error *err) {
    intake *in = t->in;
    map_entry *e = map_find(&in->names, ident);
    if (e == NULL && in->names.count >= LIMIT_INTAKE_TABLES) {
        return err_set(err, TARN_LIMIT, "rows for more than %d tables were sent",
                       LIMIT_INTAKE_TABLES);
    }
    if (e == NULL) {
        const char *copy = arena_str(&in->arena, ident).data;
        e = copy != NULL ? map_put(&in->names, str_make(copy, ident.len), NULL) : NULL;
    }
    if (e == NULL) {
        return err_nomem(err);
    }
    e->value.ptr = t;
    t->ident = e->key.data;
    return TARN_OK;
}

static void activate(intake_table *t) {
    if (!t->active) {
        t->active = true;
        t->next = t->in->active;
        t->in->active = t;
    }
}

void intake_push_item(intake_table *t, intake_item *item) {
    if (t->first == NULL) {
        t->since_ms = env_now_ms(t->in->env);
        t->due_ms = t->since_ms + t->in->options.interval_ms;
        activate(t);
    }
    *(t->last != NULL ? &t->last->next : &t->first) = item;
    t->last = item;
    t->bytes += item->bytes;
}

void intake_see_table(intake_table *t, tarn_table_version *version) {
    table_version_release(t->version);
    t->version = table_version_keep(version);
    t->loaded_ms = env_now_ms(t->in->env);
    activate(t);
}

/* ---- workers ---- */

/* By a clock that may have been set back. */
static bool is_due(const intake_table *t, int64_t now) {
    const intake *in = t->in;
    int64_t longest =
        in->options.interval_ms > BACKOFF_MOST ? in->options.interval_ms : BACKOFF_MOST;
    return t->due_ms <= now || t->due_ms > now + longest || (in->hurrying && t->failures == 0);
}

/* Under the lock: a table whose turn has come, made busy; or how long nobody's comes. */
static intake_table *find_due(intake *in, int64_t now, int64_t *wait_ms) {
    *wait_ms = 1000;
    intake_table **at = &in->active;
    while (*at != NULL) {
        intake_table *t = *at;
        if (t->first == NULL && !t->busy && now - t->loaded_ms > IDLE_MS) {
            table_version_release(t->version);
            t->version = NULL;
            *at = t->next;
            t->active = false;
            continue;
        }
        at = &t->next;
        if (t->busy || t->first == NULL || !t->first->durable) {
            continue;
        }
        if (is_due(t, now)) {
            t->busy = true;
            return t;
        }
        *wait_ms = t->due_ms - now < *wait_ms ? t->due_ms - now : *wait_ms;
    }
    return NULL;
}

static void end_turn(intake_table *t, tarn_code code, const tarn_error *err) {
    intake *in = t->in;
    int64_t now = env_now_ms(in->env);
    if (code == TARN_OK) {
        t->failures = 0;
        t->due_ms = t->bytes >= INTAKE_DUE_BYTES ? 0 : now + in->options.interval_ms;
    } else {
        int32_t shift = t->failures < 9 ? t->failures : 9;
        int64_t wait = (int64_t)BACKOFF_MS << shift;
        t->failures++;
        t->last_err = *err;
        t->due_ms = now + (wait < BACKOFF_MOST ? wait : BACKOFF_MOST);
        (void)atomic_fetch_add(&in->counters.failures, 1);
        env_log(in->env, TARN_LOG_WARN, "service", "intake", "rows of table %s wait: %s", t->ident,
                err->message);
    }
    t->busy = false;
    in->worked_ms = now;
    (void)pthread_cond_broadcast(&in->due);
}

/* Under the lock: nothing that could be committed waits any more. */
static bool is_drained(const intake *in, int64_t now) {
    for (const intake_table *t = in->active; t != NULL; t = t->next) {
        if (t->busy || (t->first != NULL && t->failures < 3)) {
            return now >= in->stop_ms;
        }
    }
    return true;
}

/* Under the lock, which is let go meanwhile. */
static void rest(intake *in, int64_t wait_ms) {
    if (in->worked_ms == 0 || in->waiting_bytes > 0 ||
        env_now_ms(in->env) - in->worked_ms < REST_MS) {
        env_cond_wait(&in->due, &in->lock, in->stopping && wait_ms > 100 ? 100 : wait_ms);
        return;
    }
    in->worked_ms = 0;
    (void)pthread_mutex_unlock(&in->lock);
    env_trim(in->env);
    (void)pthread_mutex_lock(&in->lock);
}

static void run_worker(void *ctx) {
    intake *in = ctx;
    if (pthread_equal(pthread_self(), in->opener)) {
        return; /* no thread could be had for it */
    }
    (void)pthread_mutex_lock(&in->lock);
    while (!in->stopping || !is_drained(in, env_now_ms(in->env))) {
        int64_t wait_ms;
        intake_table *t = find_due(in, env_now_ms(in->env), &wait_ms);
        if (t == NULL) {
            rest(in, wait_ms);
            continue;
        }
        (void)pthread_mutex_unlock(&in->lock);
        tarn_error err = TARN_ERROR_INIT;
        tarn_code code = intake_table_run(t, &err);
        intake_retire(in);
        (void)pthread_mutex_lock(&in->lock);
        end_turn(t, code, &err);
    }
    (void)pthread_mutex_unlock(&in->lock);
}

/* ---- opening and closing ---- */

static tarn_code start_workers(intake *in, tarn_error *err) {
    int started = 0;
    in->opener = pthread_self();
    for (int i = 0; i < INTAKE_WORKERS; i++) {
        pool_errand_start(&in->workers[i], run_worker, in);
        started += in->workers[i].started;
    }
    return started > 0 ? TARN_OK : err_set(err, TARN_IO, "no thread could be had to commit rows");
}

static void fill_options(const intake_options *given, intake_options *out) {
    *out = *given;
    out->interval_ms = given->interval_ms > 0 ? given->interval_ms : INTERVAL_MS;
    out->disk_bytes = given->disk_bytes > 0 ? given->disk_bytes : DISK_BYTES;
    out->key_lifetime_ms = given->key_lifetime_ms > 0 ? given->key_lifetime_ms : KEY_MS;
}

tarn_code intake_open(tarn_env *env, tarn_catalog *catalog, commit_queues *queues,
                      const intake_options *options, intake **out, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake *in = env_calloc(env, 1, sizeof *in);
    if (in == NULL) {
        return err_nomem(err);
    }
    in->env = env;
    in->catalog = catalog;
    in->queues = queues;
    (void)pthread_mutex_init(&in->lock, NULL);
    (void)pthread_mutex_init(&in->retiring, NULL);
    env_cond_init(&in->due);
    env_cond_init(&in->moved);
    arena_init(&in->arena, env);
    map_init(&in->tables, &in->arena);
    map_init(&in->names, &in->arena);
    fill_options(options, &in->options);
    in->options.dir = arena_strdup(&in->arena, options->dir);
    if (in->options.dir == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(store_for_location(env, str_of(in->options.dir), &in->folder, err));
    TRY(intake_keys_new(env, in->options.key_lifetime_ms, LIMIT_INTAKE_KEYS, &in->keys, err));
    TRY(intake_recover(in, err));
    in->property = arena_printf(&in->arena, INTAKE_PROPERTY "%s", store_log_id(in->log));
    if (in->property == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(start_workers(in, err));
    *out = in;
    in = NULL;
done:
    intake_close(in);
    return code;
}

static void free_table(intake *in, intake_table *t) {
    while (t->first != NULL) {
        intake_item *next = t->first->next;
        intake_item_free(in->env, t->first);
        t->first = next;
    }
    table_version_release(t->version);
    arena_release(&t->work.arena);
}

void intake_hurry(intake *in) {
    if (in != NULL) {
        (void)pthread_mutex_lock(&in->lock);
        in->hurrying = true;
        (void)pthread_cond_broadcast(&in->due);
        (void)pthread_cond_broadcast(&in->moved);
        (void)pthread_mutex_unlock(&in->lock);
    }
}

void intake_close(intake *in) {
    if (in == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&in->lock);
    in->hurrying = in->stopping = true;
    in->stop_ms = env_now_ms(in->env) + STOP_MS;
    (void)pthread_cond_broadcast(&in->due);
    (void)pthread_mutex_unlock(&in->lock);
    for (int i = 0; i < INTAKE_WORKERS; i++) {
        pool_errand_join(&in->workers[i]);
    }
    for (size_t i = 0; i < in->tables.count; i++) {
        free_table(in, in->tables.entries[i].value.ptr);
    }
    store_log_close(in->log);
    store_log_close(in->key_log);
    intake_keys_free(in->keys);
    store_close(in->folder);
    (void)pthread_cond_destroy(&in->due);
    (void)pthread_cond_destroy(&in->moved);
    (void)pthread_mutex_destroy(&in->lock);
    (void)pthread_mutex_destroy(&in->retiring);
    arena_release(&in->arena);
    env_free(in->env, in);
}

/* ---- for those who run it ---- */

bool intake_health(intake *in, tarn_buf *text) {
    bool well = true;
    int64_t now = env_now_ms(in->env);
    (void)pthread_mutex_lock(&in->lock);
    for (const intake_table *t = in->active; t != NULL && well; t = t->next) {
        if (t->first != NULL && now - t->since_ms > in->options.interval_ms + UNWELL_MS) {
            well = false;
            (void)!buf_printf(text, NULL, "rows of table %s wait for %lld s: %s", t->ident,
                              (long long)(now - t->since_ms) / 1000,
                              t->failures > 0 ? t->last_err.message : "their commit does not end");
        }
    }
    (void)pthread_mutex_unlock(&in->lock);
    return well;
}

static tarn_code put_metric(tarn_buf *out, const char *name, const char *type, int64_t value,
                            tarn_error *err) {
    return buf_printf(out, err, "# TYPE tarn_intake_%s %s\ntarn_intake_%s%s %lld\n", name, type,
                      name, strcmp(type, "counter") == 0 ? "_total" : "", (long long)value);
}

tarn_code intake_metrics(intake *in, tarn_buf *out, tarn_error *err) {
    tarn_code code = TARN_OK;
    store_log_stats log;
    intake_counters *c = &in->counters;
    store_log_count(in->log, &log);
    (void)pthread_mutex_lock(&in->lock);
    int64_t waiting = in->waiting_bytes;
    (void)pthread_mutex_unlock(&in->lock);
    TRY(put_metric(out, "requests", "counter", atomic_load(&c->requests), err));
    TRY(put_metric(out, "requests_repeated", "counter", atomic_load(&c->repeated), err));
    TRY(put_metric(out, "requests_refused", "counter", atomic_load(&c->refused), err));
    TRY(put_metric(out, "rows", "counter", atomic_load(&c->rows), err));
    TRY(put_metric(out, "rows_committed", "counter", atomic_load(&c->committed_rows), err));
    TRY(put_metric(out, "rows_rejected", "counter", atomic_load(&c->rejected), err));
    TRY(put_metric(out, "commits", "counter", atomic_load(&c->commits), err));
    TRY(put_metric(out, "commits_failed", "counter", atomic_load(&c->failures), err));
    TRY(put_metric(out, "log_syncs", "counter", log.syncs, err));
    TRY(put_metric(out, "log_records", "counter", log.records, err));
    TRY(put_metric(out, "log_bytes", "gauge", log.bytes, err));
    TRY(put_metric(out, "waiting_bytes", "gauge", waiting, err));
    TRY(put_metric(out, "keys", "gauge", intake_keys_count(in->keys), err));
done:
    return code;
}
