/* service/intake_take.c - one request: its key, its rows against the table, the log, and the wait
 * for their commit; on its connection's thread.
 *
 * Invariants: 1 an item is in its table's queue from before its record is written, in the order of
 * positions, and goes from there when it could not be made durable; 2 a request that waits hangs at
 * its item, and is told what became of it by whoever takes the item out. */
#include "service/intake_int.h"

#include "base/limits.h"

#include <errno.h>

#define HURRY_MS      2000                /* the longest wait when the service ends */
#define DECODED_BYTES ((int64_t)96 << 20) /* bodies whose batches are kept until their commit */

/* A request on its way into the log. */
typedef struct taking {
    intake *in;
    const intake_request *request;
    tarn_str ident;
    intake_key key;
    intake_waiter waiter;
    intake_table *table;
    intake_item *item;
    store_log_entry entry;
} taking;

/* ---- the table ---- */

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

/* The table as it was seen last, if that is not long ago; where rows of it wait they will see the
 * newest, so that a catalog that is slow, or away, keeps nobody waiting. */
static bool look_back(taking *k, bool anyhow) {
    intake *in = k->in;
    int64_t now = env_now_ms(in->env);
    (void)pthread_mutex_lock(&in->lock);
    const map_entry *e = map_find(&in->names, k->ident);
    intake_table *t = e != NULL ? e->value.ptr : NULL;
    bool known = t != NULL && t->version != NULL &&
                 (anyhow || t->first != NULL || now - t->loaded_ms < in->options.interval_ms);
    if (known) {
        k->table = t;
        k->item->version = table_version_keep(t->version);
    }
    (void)pthread_mutex_unlock(&in->lock);
    return known;
}

static tarn_code look(taking *k, bool fresh, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake *in = k->in;
    tarn_table_version *now = NULL;
    if (!fresh && look_back(k, false)) {
        return TARN_OK;
    }
    code = commit_queue_look(in->queues, k->request->table, true, &now, err);
    if (code != TARN_OK && code != TARN_NOT_FOUND && !fresh && look_back(k, true)) {
        return TARN_OK;
    }
    TRY(code);
    TRY(probe(in, now->metadata, err));
    (void)pthread_mutex_lock(&in->lock);
    k->table = intake_find_table(in, intake_identity(now->metadata, k->ident), err);
    code = k->table == NULL ? err->code : intake_name_table(k->table, k->ident, err);
    if (code == TARN_OK) {
        intake_see_table(k->table, now);
        k->item->version = now;
        now = NULL;
    }
    (void)pthread_mutex_unlock(&in->lock);
done:
    table_version_release(now);
    return code;
}

static tarn_code decode(taking *k, tarn_error *err) {
    tarn_code code = TARN_INVALID;
    intake_item *item = k->item;
    for (int i = 0; i < 2 && code == TARN_INVALID; i++) { /* the table may have moved on */
        table_version_release(item->version);
        item->version = NULL;
        err_reset(err);
        TRY(look(k, i > 0, err));
        code = intake_decode(k->in->env, k->request->body,
                             metadata_schema(item->version->metadata)->root, NULL, NULL,
                             &item->batches, err);
    }
    TRY(code);
    item->rows = item->batches.rows;
    if (item->rows == 0) {
        code = err_set(err, TARN_INVALID, "the body has no rows");
    }
done:
    return code;
}

/* ---- the log ---- */

static void on_placed(store_log_entry *e) {
    taking *k = e->ctx;
    k->item->position = e->position;
    (void)pthread_mutex_lock(&k->in->lock);
    intake_push_item(k->table, k->item);
    (void)pthread_mutex_unlock(&k->in->lock);
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

static void on_settled(store_log_entry *e, bool durable) {
    taking *k = e->ctx;
    intake *in = k->in;
    intake_table *t = k->table;
    (void)pthread_mutex_lock(&in->lock);
    k->item->place = e->place;
    k->item->durable = durable;
    if (!durable) {
        unlink_item(t, k->item);
    } else if (t->bytes >= INTAKE_DUE_BYTES && t->failures == 0) {
        t->due_ms = 0;
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

static void fill_rows(const taking *k, intake_rows *out) {
    memset(out, 0, sizeof *out);
    out->keyed = k->request->key.len > 0;
    memcpy(out->key, k->key.key, INTAKE_DIGEST);
    memcpy(out->digest, k->key.body, INTAKE_DIGEST);
    out->rows = k->item->rows;
    out->ident = k->ident;
    out->identity = k->table->identity;
}

/* In the log and in the table's queue, or nowhere. */
static tarn_code log_rows(taking *k, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_rows rows;
    tarn_buf head;
    buf_init(&head, k->in->env, 0);
    fill_rows(k, &rows);
    TRY(intake_rows_write(&rows, &head, err));
    k->entry.kind = INTAKE_ROWS;
    k->entry.parts[0] = buf_str(&head);
    k->entry.parts[1] = k->request->body;
    k->entry.keep = true;
    k->entry.placed = on_placed;
    k->entry.settled = on_settled;
    k->entry.ctx = k;
    TRY(intake_find_room(k->in, (int64_t)(head.len + k->request->body.len), err));
    code = store_log_append(k->in->log, &k->entry, err);
    if (code == TARN_IO && (err->os_code == ENOSPC || err->os_code == EDQUOT)) {
        intake_make_room(k->in); /* for those who come again */
    }
done:
    buf_release(&head);
    return code;
}

static tarn_code refuse_busy(const intake *in, tarn_error *err) {
    return err_set(err, TARN_LIMIT,
                   "more than %lld MiB of rows wait for their commits: send them again later",
                   (long long)(in->options.disk_bytes >> 20));
}

/* done: filled, the key's. */
static tarn_code take_rows(taking *k, intake_key *done, intake_refusal *refusal, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake *in = k->in;
    bool decoded = false;
    k->item = env_calloc(in->env, 1, sizeof *k->item);
    if (k->item == NULL) {
        return err_nomem(err);
    }
    k->item->bytes = (int64_t)k->request->body.len;
    k->waiter.item = k->item;
    k->item->waiters = k->request->wait_ms > 0 ? &k->waiter : NULL;
    TRY(decode(k, err));
    if (!reserve(in, k->item, &decoded)) {
        *refusal = INTAKE_BUSY;
        code = refuse_busy(in, err);
        goto done;
    }
    int64_t rows = k->item->rows;
    if (!decoded) {
        intake_batches_release(&k->item->batches);
    }
    code = log_rows(k, err);
    if (code != TARN_OK) {
        *refusal = code == TARN_IO || code == TARN_DENIED ? INTAKE_DISK : INTAKE_NO_REFUSAL;
        unreserve(in, k->item);
        goto done;
    }
    k->item = NULL; /* the queue's */
    *done = k->key;
    done->position = k->entry.position;
    done->time_ms = k->entry.time_ms;
    done->rows = rows;
done:
    intake_item_free(in->env, k->item);
    return code;
}

/* ---- the wait ---- */

/* Under the lock: the item of a position, while it waits. */
static intake_item *find_item(const intake *in, int64_t position) {
    for (const intake_table *t = in->active; t != NULL; t = t->next) {
        bool between =
            t->first != NULL && t->first->position <= position && position <= t->last->position;
        for (intake_item *i = between ? t->first : NULL; i != NULL; i = i->next) {
            if (i->position == position) {
                return i;
            }
        }
    }
    return NULL;
}

/* Another request under the key was answered; its rows may wait still. */
static void join_wait(intake *in, int64_t position, intake_waiter *w) {
    (void)pthread_mutex_lock(&in->lock);
    w->item = find_item(in, position);
    w->done = w->item == NULL;
    if (!w->done) {
        w->next = w->item->waiters;
        w->item->waiters = w;
    }
    (void)pthread_mutex_unlock(&in->lock);
}

static void wait_commit(intake *in, intake_waiter *w, int64_t wait_ms, intake_answer *out) {
    int64_t until = env_now_ms(in->env) + wait_ms;
    int64_t left = wait_ms;
    bool hurried = false;
    (void)pthread_mutex_lock(&in->lock);
    while (!w->done && left > 0) {
        int64_t most = in->hurrying && HURRY_MS < wait_ms ? HURRY_MS : wait_ms;
        until = in->hurrying && !hurried ? env_now_ms(in->env) + most : until;
        hurried = in->hurrying;
        env_cond_wait(&in->moved, &in->lock, left < most ? left : most);
        left = until - env_now_ms(in->env);
    }
    if (!w->done) {
        intake_waiter **at = &w->item->waiters;
        while (*at != w) {
            at = &(*at)->next;
        }
        *at = w->next;
    }
    out->committed = w->done && w->rejected == 0;
    out->rejected = w->rejected;
    out->snapshot_id = w->snapshot_id;
    (void)pthread_mutex_unlock(&in->lock);
}

/* ---- the request ---- */

static void digest_request(taking *k) {
    uint8_t parts[2][INTAKE_DIGEST];
    str_digest(k->request->key, parts[0]);
    str_digest(k->request->caller, parts[1]);
    str_digest(str_make(parts, sizeof parts), k->key.key);
    str_digest(k->ident, parts[0]);
    str_digest(k->request->body, parts[1]);
    str_digest(str_make(parts, sizeof parts), k->key.body);
}

static tarn_code begin_key(taking *k, intake_key *done, bool *repeated, intake_refusal *refusal,
                           tarn_error *err) {
    switch (intake_keys_begin(k->in->keys, &k->key, done)) {
    case INTAKE_TURN_MISUSED:
        *refusal = INTAKE_MISUSED;
        return err_set(err, TARN_INVALID, "the key \"%.*s\" was another request's",
                       STR_ARG(k->request->key));
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
    taking k;
    intake_key done;
    tarn_buf text;
    bool repeated = false;
    bool keyed = request->key.len > 0;
    *refusal = INTAKE_NO_REFUSAL;
    memset(&k, 0, sizeof k);
    buf_init(&text, in->env, 0);
    TRY(ident_text(request->table, &text, err));
    k.in = in;
    k.request = request;
    k.ident = buf_str(&text);
    k.waiter.snapshot_id = TARN_NO_SNAPSHOT;
    digest_request(&k);
    if (keyed) {
        TRY(begin_key(&k, &done, &repeated, refusal, err));
    }
    if (!repeated) {
        code = take_rows(&k, &done, refusal, err);
        if (keyed) {
            intake_keys_end(in->keys, &k.key, code == TARN_OK ? &done : NULL);
        }
    } else if (request->wait_ms > 0) {
        join_wait(in, done.position, &k.waiter);
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
        wait_commit(in, &k.waiter, request->wait_ms, out);
    }
done:
    (void)atomic_fetch_add(&in->counters.refused, code != TARN_OK);
    buf_release(&text);
    return code;
}
