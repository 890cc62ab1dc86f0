/* service/intake.c - see intake.h: rows are taken on their connections' threads; a few workers turn
 * what waits into commits, each table by one worker at a time, when its interval is over, when much
 * waits, or when the service ends. */
#include "service/intake_int.h"

#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define INTERVAL_MS   1000
#define DISK_BYTES    ((int64_t)1 << 30)
#define KEY_MS        INT64_C(1800000)
#define DUE_BYTES     ((int64_t)32 << 20) /* so much is committed before its time */
#define DECODED_BYTES ((int64_t)96 << 20) /* bodies whose batches are kept until their commit */
#define STOP_MS       10000
#define BACKOFF_MS    100
#define BACKOFF_MOST  30000
#define IDLE_MS       60000 /* then what is known of a table is forgotten */
#define UNWELL_MS     30000 /* rows that wait longer after failures are no good health */

tarn_str intake_identity(const tarn_metadata *m, tarn_str ident) {
    return m->table_uuid.len > 0 ? m->table_uuid : ident;
}

static struct timespec time_in(const intake *in, int64_t ms) {
    int64_t us = env_now_us(in->env) + ms * 1000;
    return (struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
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
    t->snapshot_id = TARN_NO_SNAPSHOT;
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

static void unlink_item(intake_table *t, const intake_item *item) {
    intake_item *before = NULL;
    intake_item **at = &t->first;
    while (*at != item) {
        before = *at;
        at = &(*at)->next;
    }
    *at = item->next;
    if (t->last == item) {
        t->last = before;
    }
    t->bytes -= item->bytes;
}

/* ---- taking ---- */

/* A request on its way into the log. */
typedef struct taking {
    intake *in;
    intake_table *table;
    intake_item *item;
    store_log_entry entry;
} taking;

static void on_placed(store_log_entry *e) {
    taking *k = e->ctx;
    k->item->position = e->position;
    (void)pthread_mutex_lock(&k->in->lock);
    intake_push_item(k->table, k->item);
    (void)pthread_mutex_unlock(&k->in->lock);
}

static void on_settled(store_log_entry *e, bool durable) {
    taking *k = e->ctx;
    intake *in = k->in;
    (void)pthread_mutex_lock(&in->lock);
    k->item->place = e->place;
    k->item->durable = durable;
    if (!durable) {
        unlink_item(k->table, k->item);
    } else if (k->table->bytes >= DUE_BYTES) {
        k->table->due_ms = 0;
    }
    (void)pthread_cond_signal(&in->due);
    (void)pthread_mutex_unlock(&in->lock);
}

/* Whether there is room for what is about to be taken; then it counts. */
static bool reserve(intake *in, intake_item *item, bool *decoded) {
    (void)pthread_mutex_lock(&in->lock);
    bool room = in->waiting_bytes + item->bytes <= in->options.disk_bytes || in->waiting_bytes == 0;
    if (room) {
        in->waiting_bytes += item->bytes;
        *decoded = in->decoded_bytes + item->bytes <= DECODED_BYTES;
        in->decoded_bytes += *decoded ? item->bytes : 0;
    }
    (void)pthread_mutex_unlock(&in->lock);
    return room;
}

static void unreserve(intake *in, const intake_item *item) {
    (void)pthread_mutex_lock(&in->lock);
    in->waiting_bytes -= item->bytes;
    in->decoded_bytes -= item->batches.n > 0 ? item->bytes : 0;
    (void)pthread_mutex_unlock(&in->lock);
}

/* A table that rows can be written to at all. */
static tarn_code probe(intake *in, const tarn_metadata *m, tarn_error *err) {
    data_writer_options options;
    data_writer *writer = NULL;
    memset(&options, 0, sizeof options);
    options.metadata = m;
    tarn_code code = data_writer_new(in->env, in->catalog->store, &options, &writer, err);
    data_writer_free(writer);
    return code;
}

static intake_table *find_named(const intake *in, tarn_str ident) {
    const map_entry *e = map_find(&in->names, ident);
    return e != NULL ? e->value.ptr : NULL;
}

/* The table as it was seen last, if that is not long ago; where rows of it wait they will see the
 * newest, so that a catalog that is slow, or away, keeps nobody waiting. */
static bool look_back(intake *in, tarn_str ident, bool anyhow, intake_table **table,
                      tarn_table_version **version) {
    int64_t now = env_now_ms(in->env);
    (void)pthread_mutex_lock(&in->lock);
    intake_table *t = find_named(in, ident);
    bool known = t != NULL && t->version != NULL &&
                 (anyhow || t->first != NULL || now - t->loaded_ms < in->options.interval_ms);
    if (known) {
        *table = t;
        *version = table_version_keep(t->version);
    }
    (void)pthread_mutex_unlock(&in->lock);
    return known;
}

static tarn_code look(intake *in, const intake_request *request, tarn_str ident, bool fresh,
                      intake_table **table, tarn_table_version **version, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_table_version *now = NULL;
    if (!fresh && look_back(in, ident, false, table, version)) {
        return TARN_OK;
    }
    code = commit_queue_look(in->queues, request->table, true, &now, err);
    if (code != TARN_OK && code != TARN_NOT_FOUND && !fresh &&
        look_back(in, ident, true, table, version)) {
        return TARN_OK;
    }
    TRY(code);
    TRY(probe(in, now->metadata, err));
    (void)pthread_mutex_lock(&in->lock);
    *table = intake_find_table(in, intake_identity(now->metadata, ident), err);
    code = *table == NULL ? err->code : intake_name_table(*table, ident, err);
    if (code == TARN_OK) {
        intake_see_table(*table, now);
        *version = now;
        now = NULL;
    }
    (void)pthread_mutex_unlock(&in->lock);
done:
    table_version_release(now);
    return code;
}

static tarn_code decode_request(intake *in, const intake_request *request, tarn_str ident,
                                intake_table **table, intake_item *item, tarn_error *err) {
    tarn_code code = TARN_INVALID;
    for (int i = 0; i < 2 && code == TARN_INVALID; i++) { /* the table may have moved on */
        table_version_release(item->version);
        item->version = NULL;
        err_reset(err);
        TRY(look(in, request, ident, i > 0, table, &item->version, err));
        code = intake_decode(in->env, request->body, metadata_schema(item->version->metadata)->root,
                             NULL, NULL, &item->batches, err);
    }
    TRY(code);
    item->rows = item->batches.rows;
    if (item->rows == 0) {
        code = err_set(err, TARN_INVALID, "the body has no rows");
    }
done:
    return code;
}

static void fill_rows(const intake_request *request, const intake_key *key, tarn_str ident,
                      const taking *k, intake_rows *out) {
    memset(out, 0, sizeof *out);
    out->keyed = request->key.len > 0;
    memcpy(out->key, key->key, INTAKE_DIGEST);
    memcpy(out->digest, key->body, INTAKE_DIGEST);
    out->rows = k->item->rows;
    out->ident = ident;
    out->identity = k->table->identity;
}

/* In the log and in the table's queue, or nowhere. */
static tarn_code log_rows(intake *in, const intake_request *request, const intake_key *key,
                          tarn_str ident, taking *k, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_rows rows;
    tarn_buf head;
    buf_init(&head, in->env, 0);
    fill_rows(request, key, ident, k, &rows);
    TRY(intake_rows_write(&rows, &head, err));
    k->entry.kind = INTAKE_ROWS;
    k->entry.parts[0] = buf_str(&head);
    k->entry.parts[1] = request->body;
    k->entry.keep = true;
    k->entry.placed = on_placed;
    k->entry.settled = on_settled;
    k->entry.ctx = k;
    code = store_log_append(in->log, &k->entry, err);
done:
    buf_release(&head);
    return code;
}

static tarn_code refuse_busy(const intake *in, tarn_error *err) {
    return err_set(err, TARN_LIMIT,
                   "more than %lld MiB of rows wait for their commits: send them again later",
                   (long long)(in->options.disk_bytes >> 20));
}

static tarn_code take_rows(intake *in, const intake_request *request, const intake_key *key,
                           tarn_str ident, intake_key *done, intake_refusal *refusal,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    taking k;
    bool decoded = false;
    memset(&k, 0, sizeof k);
    k.in = in;
    k.item = env_calloc(in->env, 1, sizeof *k.item);
    if (k.item == NULL) {
        return err_nomem(err);
    }
    k.item->bytes = (int64_t)request->body.len;
    TRY(decode_request(in, request, ident, &k.table, k.item, err));
    if (!reserve(in, k.item, &decoded)) {
        *refusal = INTAKE_BUSY;
        code = refuse_busy(in, err);
        goto done;
    }
    int64_t rows = k.item->rows;
    if (!decoded) {
        intake_batches_release(&k.item->batches);
    }
    code = log_rows(in, request, key, ident, &k, err);
    if (code != TARN_OK) {
        *refusal = code == TARN_IO || code == TARN_DENIED ? INTAKE_DISK : INTAKE_NO_REFUSAL;
        unreserve(in, k.item);
        goto done;
    }
    k.item = NULL; /* the queue's */
    done->position = k.entry.position;
    done->time_ms = k.entry.time_ms;
    done->rows = rows;
done:
    intake_item_free(in->env, k.item);
    return code;
}

/* Before a position all items of the table are done. */
static bool is_done(const intake_table *t, int64_t position) {
    return t == NULL || t->first == NULL || t->first->position > position;
}

static void wait_commit(intake *in, const intake_request *request, tarn_str ident,
                        intake_answer *out) {
    const struct timespec until = time_in(in, request->wait_ms);
    (void)pthread_mutex_lock(&in->lock);
    const intake_table *t = find_named(in, ident);
    bool timely = true;
    while (timely && !is_done(t, out->position)) {
        timely = pthread_cond_timedwait(&in->moved, &in->lock, &until) != ETIMEDOUT;
    }
    out->committed = is_done(t, out->position);
    out->snapshot_id = out->committed && t != NULL ? t->snapshot_id : TARN_NO_SNAPSHOT;
    (void)pthread_mutex_unlock(&in->lock);
}

static void digest_request(const intake_request *request, tarn_str ident, intake_key *key) {
    uint8_t parts[2][INTAKE_DIGEST];
    memset(key, 0, sizeof *key);
    str_digest(request->key, parts[0]);
    str_digest(request->caller, parts[1]);
    str_digest(str_make(parts, sizeof parts), key->key);
    str_digest(ident, parts[0]);
    str_digest(request->body, parts[1]);
    str_digest(str_make(parts, sizeof parts), key->body);
}

static tarn_code begin_key(intake *in, const intake_request *request, const intake_key *key,
                           intake_key *done, bool *repeated, intake_refusal *refusal,
                           tarn_error *err) {
    switch (intake_keys_begin(in->keys, key, done)) {
    case INTAKE_TURN_MISUSED:
        *refusal = INTAKE_MISUSED;
        return err_set(err, TARN_INVALID, "the key \"%.*s\" was another request's",
                       STR_ARG(request->key));
    case INTAKE_TURN_FULL:
        *refusal = INTAKE_BUSY;
        return err_set(err, TARN_LIMIT, "more than %d keys are remembered: send it again later",
                       LIMIT_INTAKE_KEYS);
    case INTAKE_TURN_REPEATED:
        *repeated = true;
        break;
    case INTAKE_TURN_TAKE:
        break;
    }
    return TARN_OK;
}

tarn_code intake_take(intake *in, const intake_request *request, intake_answer *out,
                      intake_refusal *refusal, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_key key;
    intake_key done;
    tarn_buf text;
    bool repeated = false;
    bool keyed = request->key.len > 0;
    *refusal = INTAKE_NO_REFUSAL;
    buf_init(&text, in->env, 0);
    TRY(ident_text(request->table, &text, err));
    tarn_str ident = buf_str(&text);
    digest_request(request, ident, &key);
    done = key;
    if (keyed) {
        TRY(begin_key(in, request, &key, &done, &repeated, refusal, err));
    }
    if (!repeated) {
        code = take_rows(in, request, &key, ident, &done, refusal, err);
        if (keyed) {
            intake_keys_end(in->keys, &key, code == TARN_OK ? &done : NULL);
        }
    }
    TRY(code);
    memset(out, 0, sizeof *out);
    out->rows = done.rows;
    out->position = done.position;
    out->repeated = repeated;
    out->snapshot_id = TARN_NO_SNAPSHOT;
    (void)atomic_fetch_add(&in->counters.requests, 1);
    (void)atomic_fetch_add(repeated ? &in->counters.repeated : &in->counters.rows,
                           repeated ? 1 : done.rows);
    if (request->wait_ms > 0) {
        wait_commit(in, request, ident, out);
    }
done:
    (void)atomic_fetch_add(&in->counters.refused, code != TARN_OK);
    buf_release(&text);
    return code;
}

/* ---- workers ---- */

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
        if (t->due_ms <= now || (in->stopping && t->failures == 0)) {
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
        t->due_ms = t->bytes >= DUE_BYTES ? 0 : now + in->options.interval_ms;
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

static void wait_due(intake *in, int64_t ms) {
    const struct timespec until = time_in(in, ms > 0 ? ms : 1);
    (void)pthread_cond_timedwait(&in->due, &in->lock, &until);
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
            wait_due(in, in->stopping && wait_ms > 100 ? 100 : wait_ms);
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
    (void)pthread_cond_init(&in->due, NULL);
    (void)pthread_cond_init(&in->moved, NULL);
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

void intake_close(intake *in) {
    if (in == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&in->lock);
    in->stopping = true;
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
        if (t->first != NULL && t->failures > 0 && now - t->since_ms > UNWELL_MS) {
            well = false;
            (void)!buf_printf(text, NULL, "rows of table %s wait for %lld s: %s", t->ident,
                              (long long)(now - t->since_ms) / 1000, t->last_err.message);
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
