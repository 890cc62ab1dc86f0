/* service/intake_recover.c - the log after a restart, and its segments when they are not needed any
 * more: the keys of their requests go to a log of their own, which is kept for the keys' lifetime.
 */
#include "service/intake_int.h"

#include <inttypes.h>

#define SEGMENT_BYTES     ((int64_t)32 << 20)
#define KEY_SEGMENT_BYTES ((int64_t)4 << 20)

/* ---- after a restart ---- */

static tarn_code take_note(intake *in, const store_log_record *record, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_str identity;
    int64_t committed;
    size_t at = 0;
    for (;;) {
        bool more;
        TRY(intake_note_read(record, &at, &identity, &committed, &more, err));
        if (!more) {
            break;
        }
        intake_table *t = intake_find_table(in, identity, err);
        if (t == NULL) {
            code = err->code;
            goto done;
        }
        t->committed = committed > t->committed ? committed : t->committed;
    }
done:
    return code;
}

static tarn_code add_key(intake *in, const store_log_record *record, const intake_rows *rows,
                         tarn_error *err) {
    intake_key key;
    memcpy(key.key, rows->key, INTAKE_DIGEST);
    memcpy(key.body, rows->digest, INTAKE_DIGEST);
    key.position = record->position;
    key.time_ms = record->time_ms;
    key.rows = rows->rows;
    return rows->keyed ? intake_keys_add(in->keys, &key, err) : TARN_OK;
}

static tarn_code take_rows(intake *in, const store_log_record *record, bool *keep,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_rows rows;
    TRY(intake_rows_read(record, &rows, err));
    TRY(add_key(in, record, &rows, err));
    intake_table *t = intake_find_table(in, rows.identity, err);
    if (t == NULL) {
        return err->code;
    }
    TRY(intake_name_table(t, rows.ident, err));
    intake_item *item = env_calloc(in->env, 1, sizeof *item);
    if (item == NULL) {
        return err_nomem(err);
    }
    item->position = record->position;
    item->rows = rows.rows;
    item->bytes = (int64_t)rows.body.len;
    item->place = record->place;
    item->durable = true;
    t->uncertain = true;
    intake_push_item(t, item);
    in->waiting_bytes += item->bytes;
    *keep = true;
done:
    return code;
}

static tarn_code take_record(void *ctx, const store_log_record *record, bool *keep,
                             tarn_error *err) {
    intake *in = ctx;
    tarn_error own = TARN_ERROR_INIT;
    err = err != NULL ? err : &own;
    switch (record->kind) {
    case INTAKE_ROWS:
        return take_rows(in, record, keep, err);
    case INTAKE_NOTE:
        return take_note(in, record, err);
    default:
        return err_set(err, TARN_UNSUPPORTED,
                       "the record at position %" PRId64
                       " of the log is of a kind (%u) that a newer "
                       "version wrote",
                       record->position, record->kind);
    }
}

static tarn_code take_keys(void *ctx, const store_log_record *record, bool *keep, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake *in = ctx;
    intake_key key;
    (void)keep;
    for (size_t i = 0; code == TARN_OK && intake_key_read(record->payload, i, &key); i++) {
        code = intake_keys_add(in->keys, &key, err);
    }
    return code;
}

/* What a note that stands behind them says of rows. */
static void pass_noted(intake *in, intake_table *t) {
    while (t->first != NULL && t->first->position < t->committed) {
        intake_item *item = t->first;
        t->first = item->next;
        t->last = t->first != NULL ? t->last : NULL;
        t->bytes -= item->bytes;
        in->waiting_bytes -= item->bytes;
        store_log_release(in->log, &item->place);
        intake_item_free(in->env, item);
    }
}

tarn_code intake_recover(intake *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    const store_log_options rows = {in->options.dir, "rows", SEGMENT_BYTES};
    const store_log_options keys = {in->options.dir, "keys", KEY_SEGMENT_BYTES};
    TRY(store_log_open(in->env, &rows, take_record, in, &in->log, err));
    TRY(store_log_open(in->env, &keys, take_keys, in, &in->key_log, err));
    for (size_t i = 0; i < in->tables.count; i++) {
        pass_noted(in, in->tables.entries[i].value.ptr);
    }
    intake_retire(in);
done:
    return code;
}

/* ---- letting go ---- */

typedef struct key_carry {
    intake *in;
    tarn_buf text;
} key_carry;

static tarn_code carry_key(void *ctx, const store_log_record *record, bool *keep, tarn_error *err) {
    tarn_code code = TARN_OK;
    key_carry *c = ctx;
    intake_rows rows;
    (void)keep;
    if (record->kind != INTAKE_ROWS) {
        return TARN_OK;
    }
    TRY(intake_rows_read(record, &rows, err));
    if (rows.keyed && env_now_ms(c->in->env) - record->time_ms < c->in->options.key_lifetime_ms) {
        intake_key key;
        memcpy(key.key, rows.key, INTAKE_DIGEST);
        memcpy(key.body, rows.digest, INTAKE_DIGEST);
        key.position = record->position;
        key.time_ms = record->time_ms;
        key.rows = rows.rows;
        code = intake_key_write(&key, &c->text, err);
    }
done:
    return code;
}

static tarn_code append(store_log *log, uint32_t kind, const tarn_buf *text, tarn_error *err) {
    store_log_entry entry;
    if (text->len == 0) {
        return TARN_OK;
    }
    memset(&entry, 0, sizeof entry);
    entry.kind = kind;
    entry.parts[0] = buf_str(text);
    return store_log_append(log, &entry, err);
}

/* Notes of rows that are in older segments still, and that may lie in the one that goes. */
static tarn_code note_again(intake *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    tarn_buf text;
    buf_init(&text, in->env, 0);
    (void)pthread_mutex_lock(&in->lock);
    for (size_t i = 0; code == TARN_OK && i < in->tables.count; i++) {
        const intake_table *t = in->tables.entries[i].value.ptr;
        if (t->committed > 0) {
            code = intake_note_write(t->identity, t->committed, &text, err);
        }
    }
    (void)pthread_mutex_unlock(&in->lock);
    code = code == TARN_OK ? append(in->log, INTAKE_NOTE, &text, err) : code;
    buf_release(&text);
    return code;
}

static tarn_code retire_one(intake *in, bool *found, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t segment;
    bool oldest;
    key_carry carry = {in, {0}};
    buf_init(&carry.text, in->env, 0);
    TRY(store_log_find_free(in->log, INT64_MAX, carry_key, &carry, &segment, &oldest, found, err));
    if (*found) {
        TRY(append(in->key_log, INTAKE_KEYS, &carry.text, err));
        if (!oldest) {
            TRY(note_again(in, err));
        }
        store_log_remove(in->log, segment);
    }
done:
    buf_release(&carry.text);
    return code;
}

static tarn_code pass_record(void *ctx, const store_log_record *record, bool *keep,
                             tarn_error *err) {
    (void)ctx;
    (void)record;
    (void)keep;
    (void)err;
    return TARN_OK;
}

/* A key is older than the record that it was carried by. */
static tarn_code retire_keys(intake *in, bool *found, tarn_error *err) {
    int64_t segment;
    bool oldest;
    int64_t before = env_now_ms(in->env) - in->options.key_lifetime_ms;
    tarn_code code =
        store_log_find_free(in->key_log, before, pass_record, NULL, &segment, &oldest, found, err);
    if (code == TARN_OK && *found) {
        store_log_remove(in->key_log, segment);
    }
    return code;
}

void intake_retire(intake *in) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    bool found = true;
    (void)pthread_mutex_lock(&in->retiring);
    while (code == TARN_OK && found) {
        code = retire_one(in, &found, &err);
    }
    found = code == TARN_OK;
    while (code == TARN_OK && found) {
        code = retire_keys(in, &found, &err);
    }
    (void)pthread_mutex_unlock(&in->retiring);
    if (code != TARN_OK) { /* they stay, and are looked at again */
        env_log(in->env, TARN_LOG_WARN, "service", "intake", "%s", err.message);
    }
}
