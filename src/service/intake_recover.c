/* service/intake_recover.c - the log after a restart, and its segments when they are not needed any
 * more: the keys of their requests go to a log of their own, which is kept for the keys' lifetime.
 */
#include "service/intake_int.h"

#include <errno.h>
#include <inttypes.h>

#define SEGMENT_BYTES     ((int64_t)32 << 20)
#define KEY_SEGMENT_BYTES ((int64_t)4 << 20)
#define SPARED_BYTES      ((int64_t)1 << 20)  /* of a disk, or a sixteenth of a small one */
#define RENEW_BYTES       ((int64_t)64 << 10) /* less is not worth a segment */

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
    case INTAKE_MARK:
        return intake_mark_read(record, &in->mark, err);
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

/* A log that lost its end, or its files, looks like one that never had them: the other one tells.
 */
static tarn_code check_logs(intake *in, tarn_error *err) {
    store_log_stats rows, keys;
    store_log_count(in->log, &rows);
    store_log_count(in->key_log, &keys);
    if (rows.fresh && !keys.fresh) {
        return err_set(
            err, TARN_CORRUPT,
            "folder %s has a log of keys and none of rows, which was damaged or removed: "
            "bring it back, or remove the folder and lose what it had",
            in->options.dir);
    }
    if (keys.next_position >= in->mark.keys_end) {
        if (keys.next_position > in->mark.keys_end) { /* it ended before it was said */
            in->mark = (intake_mark){keys.next_position, env_now_ms(in->env)};
        }
        return TARN_OK;
    }
    int64_t age = env_now_ms(in->env) - in->mark.time_ms;
    if (age < in->options.key_lifetime_ms) {
        return err_set(err, TARN_CORRUPT,
                       "the log of keys in %s was damaged or removed: rows that are sent again "
                       "would be taken twice until their keys end, in %lld s",
                       in->options.dir, (long long)(in->options.key_lifetime_ms - age) / 1000 + 1);
    }
    env_log(in->env, TARN_LOG_WARN, "service", "intake",
            "the log of keys in %s lost records, whose keys have ended", in->options.dir);
    in->mark = (intake_mark){keys.next_position, 0};
    return TARN_OK;
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
    TRY(check_logs(in, err));
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

static tarn_code append(store_log *log, uint32_t kind, const tarn_buf *text, intake_mark *end,
                        tarn_error *err) {
    store_log_entry entry;
    if (text->len == 0) {
        return TARN_OK;
    }
    memset(&entry, 0, sizeof entry);
    entry.kind = kind;
    entry.parts[0] = buf_str(text);
    tarn_code code = store_log_append(log, &entry, err);
    if (code == TARN_OK) {
        *end = (intake_mark){entry.position + 1, entry.time_ms};
    }
    return code;
}

/* Also where no key came: the mark that was may lie in the segment that goes. */
static tarn_code mark_keys(intake *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_mark unused;
    tarn_buf text;
    buf_init(&text, in->env, 0);
    if (in->mark.keys_end > 0) {
        TRY(intake_mark_write(&in->mark, &text, err));
        TRY(append(in->log, INTAKE_MARK, &text, &unused, err));
    }
done:
    buf_release(&text);
    return code;
}

/* Notes of rows that are in older segments still, and that may lie in the one that goes. */
static tarn_code note_again(intake *in, tarn_error *err) {
    tarn_code code = TARN_OK;
    intake_mark unused;
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
    code = code == TARN_OK ? append(in->log, INTAKE_NOTE, &text, &unused, err) : code;
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
        TRY(append(in->key_log, INTAKE_KEYS, &carry.text, &in->mark, err));
        TRY(mark_keys(in, err));
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

/* Of who holds retiring. */
static void retire_all(intake *in) {
    tarn_error err = TARN_ERROR_INIT;
    tarn_code code = TARN_OK;
    bool found = true;
    while (code == TARN_OK && found) {
        code = retire_one(in, &found, &err);
    }
    found = code == TARN_OK;
    while (code == TARN_OK && found) {
        code = retire_keys(in, &found, &err);
    }
    if (code != TARN_OK) { /* they stay, and are looked at again */
        env_log(in->env, TARN_LOG_WARN, "service", "intake", "%s", err.message);
    }
}

void intake_retire(intake *in) {
    (void)pthread_mutex_lock(&in->retiring);
    retire_all(in);
    (void)pthread_mutex_unlock(&in->retiring);
}

/* ---- a full disk ---- */

static bool has_room(const intake *in, int64_t bytes) {
    int64_t room;
    int64_t size;
    if (!store_log_room(in->log, &room, &size)) {
        return true;
    }
    int64_t spared = size / 16 < SPARED_BYTES ? size / 16 : SPARED_BYTES;
    return room - spared >= bytes;
}

void intake_make_room(intake *in) {
    tarn_error err = TARN_ERROR_INIT;
    (void)pthread_mutex_lock(&in->retiring);
    store_log_renew(in->log, RENEW_BYTES);
    if (note_again(in, &err) == TARN_OK) {
        retire_all(in);
    }
    (void)pthread_mutex_unlock(&in->retiring);
}

tarn_code intake_find_room(intake *in, int64_t bytes, tarn_error *err) {
    bytes += SEGMENT_BYTES / 4096; /* heads, and blocks that are begun */
    if (has_room(in, bytes)) {
        return TARN_OK;
    }
    intake_make_room(in);
    return has_room(in, bytes)
               ? TARN_OK
               : err_os(err, ENOSPC, "log of rows in %s could not be written", in->options.dir);
}
