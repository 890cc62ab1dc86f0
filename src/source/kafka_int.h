/* source/kafka_int.h - what the files of Kafka share: the consumer, and what its messages become.
 */
#ifndef SOURCE_KAFKA_INT_H
#define SOURCE_KAFKA_INT_H

#include "source/source_int.h"

#ifdef TARN_KAFKA

#include <librdkafka/rdkafka.h>

typedef struct kafka_partition {
    const char *topic;
    int32_t id;
    int64_t from; /* where the table says that it stands, in a group; -1: it says nothing */
    int64_t next; /* behind the rows given; -1: nothing was read, and nothing is known */
    int64_t seen; /* behind the messages fetched */
    int64_t low;  /* when it was looked at */
    int64_t end;  /* where reading ends; -1: never */
    bool done;
    bool is_new; /* in a group: the table knows others of its topic, so that it was added since */
} kafka_partition;

/* Where a member of a group stands with it. */
typedef enum kafka_phase {
    KAFKA_WAITS,  /* has no partitions (and where there is no group) */
    KAFKA_GIVEN,  /* was given partitions; where they stand must be said (seek) */
    KAFKA_PLACES, /* it was said; the broker is asked about them */
    KAFKA_READS,
    KAFKA_LEAVES /* is to give its partitions up, which the next call for rows does */
} kafka_phase;

/* Where a message that was handed on came from. */
typedef struct kafka_origin {
    int32_t partition; /* index */
    int64_t offset;
} kafka_origin;

struct kafka_source {
    source_setup *setup;
    const char *location;
    int64_t taken; /* messages */
    const char *brokers;
    const char **topics;
    int32_t n_topics;
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    kafka_partition *partitions;
    int32_t n_partitions;
    int32_t cap;
    bool from_group; /* the user named the group: it is begun from where it stands */
    bool latest;
    bool started;
    int64_t looked_ms; /* for new partitions */
    int64_t away_ms;   /* since when there was trouble and nothing came; 0: none */
    int64_t told_ms;   /* of it */
    char trouble[256]; /* what it was last */
    char detail[256];  /* of the connection that failed last */
    tarn_buf origins;  /* of messages that are being decoded, oldest first */
    int64_t n_given;   /* of them, given as rows and forgotten, since the beginning */
    tarn_error failed; /* of a callback */
    kafka_phase phase;
    bool subscribed;
    bool closing;
    rd_kafka_topic_partition_list_t *mine; /* what the group gave; NULL: nothing */
    bool text;
    piece_reader *pieces;
    struct kafka_avro *avro;
};

/* ---- kafka.c ---- */
/* The next message, NULL: none within timeout_ms. The caller destroys it. Messages behind a
 * partition's end are passed over. */
tarn_code kafka_take(kafka_source *k, int64_t timeout_ms, rd_kafka_message_t **out,
                     tarn_error *err) TARN_MUST_USE;
bool kafka_all_done(const kafka_source *k);
/* The message goes to a decoder. */
tarn_code kafka_hand_on(kafka_source *k, const rd_kafka_message_t *m,
                        tarn_error *err) TARN_MUST_USE;
/* The first n messages handed on (since the beginning) have been given as rows. */
void kafka_given(kafka_source *k, int64_t n);
/* A bad message, by its number since the beginning (from 1). */
tarn_code kafka_reject(kafka_source *k, int64_t number, tarn_str raw, tarn_str reason,
                       tarn_error *err) TARN_MUST_USE;

/* A message without a value, whose key says what is gone, where rows by key are read that have no
 * word for that. It is told by this reason, not passed over. */
bool kafka_is_lost_delete(const kafka_source *k, const rd_kafka_message_t *m);
#define KAFKA_LOST_DELETE                                                                          \
    "the message has a key and no value: it deletes what rows without a kind cannot delete"

int64_t kafka_now_ms(const kafka_source *k);
kafka_partition *kafka_find_partition(const kafka_source *k, const char *topic, int32_t id);
tarn_code kafka_add_partition(kafka_source *k, const char *topic, int32_t id, kafka_partition **out,
                              tarn_error *err) TARN_MUST_USE;      /* topic lives on */
const char *kafka_own_topic(const kafka_source *k, tarn_str name); /* NULL: none of them */
/* Trouble that may pass: told once, until something comes (kafka_came). Patience ends it without
 * follow: IO. */
void kafka_trouble(kafka_source *k, const char *what, const char *why);
void kafka_came(kafka_source *k);
tarn_code kafka_patience(const kafka_source *k, tarn_error *err) TARN_MUST_USE;
/* Trouble that passes is told, and *again set; the rest is the caller's. */
tarn_code kafka_broker_error(kafka_source *k, rd_kafka_resp_err_t why, const char *what,
                             bool *again, tarn_error *err) TARN_MUST_USE;
tarn_code kafka_message_error(kafka_source *k, const rd_kafka_message_t *m,
                              tarn_error *err) TARN_MUST_USE;
/* Where a partition begins and, without follow, ends. */
tarn_code kafka_place(kafka_source *k, kafka_partition *p, bool is_new, bool *again,
                      tarn_error *err) TARN_MUST_USE;
tarn_code kafka_assign(kafka_source *k, tarn_error *err) TARN_MUST_USE; /* all that are not done */
/* rd_kafka_assign, after which the next one may come at once. */
rd_kafka_resp_err_t kafka_give(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list);

/* ---- kafka_balance.c ---- */
/* Settings that members of a group do not take. */
tarn_code kafka_balance_check(const kafka_source *k, const char *name, const char *value,
                              tarn_error *err) TARN_MUST_USE;
void kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what,
                        rd_kafka_topic_partition_list_t *list, void *opaque);
/* Until partitions are read (k->started), or timeout_ms went by. */
tarn_code kafka_balance_start(kafka_source *k, int64_t timeout_ms, tarn_error *err) TARN_MUST_USE;
tarn_code kafka_balance_seek(kafka_source *k, const json_value *offsets,
                             tarn_error *err) TARN_MUST_USE;
void kafka_balance_moved(kafka_source *k, const char *topic, int32_t id, int64_t to);
void kafka_balance_end(kafka_source *k); /* before the consumer is closed */

/* ---- kafka_json.c ---- */
tarn_code kafka_json_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out,
                          const uint8_t **kinds, bool *ended, tarn_error *err) TARN_MUST_USE;

/* ---- kafka_avro.c ---- */
typedef struct kafka_avro kafka_avro;
tarn_code kafka_avro_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out,
                          const uint8_t **kinds, bool *ended, tarn_error *err) TARN_MUST_USE;
void kafka_avro_free(kafka_avro *a); /* takes NULL */

#endif
#endif
