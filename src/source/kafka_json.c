/* source/kafka_json.c - JSON messages: each becomes one line of the text that a piece_reader
 * decodes, so lines read are messages read. A message without a value is an empty line,
 * or the mark and its key. */
#include "source/kafka_int.h"

#ifdef TARN_KAFKA

typedef struct message_feed {
    byte_feed base;
    kafka_source *kafka;
} message_feed;

/* The key of a message of changes follows its value (format/text/text_change.c). */
#define KEY_MARK '\x1e'

/* Line ends are white space between JSON's tokens, and may stand nowhere else. */
static tarn_code append_json(tarn_buf *into, const void *data, size_t len, tarn_error *err) {
    size_t start = into->len;
    tarn_code code = buf_append(into, data, len, err);
    if (code != TARN_OK || len == 0) {
        return code;
    }
    uint8_t *p = into->data + start;
    uint8_t *end = into->data + into->len;
    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        *p++ = ' ';
    }
    return TARN_OK;
}

static tarn_code append_message(const kafka_source *k, const rd_kafka_message_t *m, tarn_buf *into,
                                tarn_error *err) {
    tarn_code code = TARN_OK;
    if (m->payload != NULL) {
        TRY(append_json(into, m->payload, m->len, err));
        if (k->setup->debezium && m->key != NULL && m->key_len > 0) {
            TRY(buf_append_char(into, KEY_MARK, err));
            TRY(append_json(into, m->key, m->key_len, err));
        }
    } else if (kafka_is_lost_delete(k, m)) {
        TRY(buf_append_char(into, KEY_MARK, err)); /* no row: on_reject tells what it is */
        TRY(append_json(into, m->key, m->key_len, err));
    }
    code = buf_append_char(into, '\n', err);
done:
    return code;
}

static tarn_code more_messages(byte_feed *feed, tarn_buf *into, size_t want, int64_t timeout_ms,
                               bool *ended, tarn_error *err) {
    message_feed *f = (message_feed *)feed;
    kafka_source *k = f->kafka;
    tarn_code code = TARN_OK;
    rd_kafka_message_t *m = NULL;
    for (size_t stop = into->len + want; into->len < stop; timeout_ms = 0) {
        TRY(kafka_take(k, timeout_ms, &m, err));
        if (m == NULL) {
            break;
        }
        TRY(append_message(k, m, into, err));
        TRY(kafka_hand_on(k, m, err));
        rd_kafka_message_destroy(m);
        m = NULL;
    }
    *ended = kafka_all_done(k);
done:
    if (m != NULL) {
        rd_kafka_message_destroy(m);
    }
    return code;
}

static void close_feed(byte_feed *feed) {
    env_free(feed->env, feed);
}

static tarn_code on_reject(void *ctx, int64_t line, tarn_str raw, tarn_str reason,
                           tarn_error *err) {
    if (raw.len > 0 && raw.data[0] == KEY_MARK) {
        raw = str_from(raw, 1);
        reason = STR(KAFKA_LOST_DELETE);
    }
    return kafka_reject(ctx, line, raw, reason, err);
}

static tarn_code open_pieces(kafka_source *k, tarn_error *err) {
    source_setup *s = k->setup;
    piece_request q;
    message_feed *f = env_calloc(s->env, 1, sizeof *f);
    if (f == NULL) {
        return err_nomem(err);
    }
    f->base = (byte_feed){s->env, k->location, more_messages, close_feed};
    f->kafka = k;
    memset(&q, 0, sizeof q);
    q.root = s->root;
    q.kind_column = s->kind_column;
    q.grow = s->grow;
    q.text.kind = TEXT_NDJSON;
    q.text.ignore_unknown = s->file.ignore_unknown;
    q.text.batch_rows = s->file.batch_rows;
    q.text.debezium = s->debezium;
    q.text.keys = s->keys;
    q.text.n_keys = s->n_keys;
    q.text.reject = on_reject;
    q.text.reject_ctx = k;
    tarn_code code = piece_reader_open(&f->base, &q, &k->pieces, err);
    if (code != TARN_OK) {
        env_free(s->env, f);
    }
    return code;
}

tarn_code kafka_json_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out,
                          const uint8_t **kinds, bool *ended, tarn_error *err) {
    tarn_code code = TARN_OK;
    file_position at;
    if (k->pieces == NULL) {
        TRY(open_pieces(k, err));
    }
    code = piece_reader_next(k->pieces, timeout_ms, out, ended, err);
    if (code == TARN_OK) {
        *kinds = piece_reader_kinds(k->pieces);
        piece_reader_position(k->pieces, &at);
        kafka_given(k, at.lines);
    }
done:
    return code;
}

#endif
