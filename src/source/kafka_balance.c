/* source/kafka_balance.c - partitions that a consumer group shares among its members.
 *
 *   WAITS --given--> GIVEN --seek--> PLACES --assigned--> READS --taken away--> LEAVES --> WAITS
 *
 * Where partitions stand is kept in the table (sink/shared_offsets.h says why each message is then
 * there once). The group only says who reads what, and may say it too late: so nothing depends on
 * it. Librdkafka tells in a callback, out of a poll; the member answers in the next calls: when
 * partitions are taken away it stops reading, its caller commits the rows given so far, and the
 * next call gives them up; the group waits for that up to max.poll.interval.ms. When partitions are
 * given the caller says where the table stands now.
 *
 * Invariants: 1 offsets (next) are those of rows that were given to the caller; what was fetched
 * and decoded beyond them is forgotten when partitions go, and read again by whoever has them then;
 * 2 all partitions go and come at once (the eager protocol): between two assignments nothing of the
 * first one is left here; 3 a partition is read from where the table said after it was given. */
#include "source/source_int.h"

#ifdef TARN_KAFKA

#include "source/kafka_int.h"

#define POLL_MS 200

tarn_code kafka_balance_check(const kafka_source *k, const char *name, const char *value,
                              tarn_error *err) {
    if (!k->setup->kafka_balance) {
        return TARN_OK;
    }
    bool cooperative =
        strcmp(name, "partition.assignment.strategy") == 0 && strstr(value, "cooperative") != NULL;
    bool other = strcmp(name, "group.protocol") == 0 && strcmp(value, "classic") != 0;
    if (cooperative || other) {
        return err_set(err, TARN_UNSUPPORTED,
                       "%s: Kafka property %s=%s: partitions that are shared go and come all at "
                       "once (range, roundrobin)",
                       k->location, name, value);
    }
    return TARN_OK;
}

/* ---- what the group says ---- */

static void unassign(kafka_source *k) {
    (void)kafka_give(k->rk, NULL);
    if (k->mine != NULL) {
        rd_kafka_topic_partition_list_destroy(k->mine);
        k->mine = NULL;
    }
    k->phase = KAFKA_WAITS;
}

void kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what,
                        rd_kafka_topic_partition_list_t *list, void *opaque) {
    kafka_source *k = opaque;
    bool reads = k->phase == KAFKA_READS || k->phase == KAFKA_PLACES;
    env_log(k->setup->env, TARN_LOG_INFO, "source", "kafka", "%s: %d partitions were %s",
            k->location, list != NULL ? list->cnt : 0,
            what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? "given" : "taken away");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !k->closing) {
        if (k->mine != NULL) {
            rd_kafka_topic_partition_list_destroy(k->mine);
        }
        k->mine = rd_kafka_topic_partition_list_copy(list);
        k->phase = KAFKA_GIVEN;
    } else if (what == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS && reads && !k->closing) {
        k->phase = KAFKA_LEAVES;
    } else {
        unassign(k);
    }
    rd_kafka_yield(rk);
}

source_turn kafka_turn(const kafka_source *k) {
    return k->phase == KAFKA_LEAVES  ? SOURCE_GIVES_UP
           : k->phase == KAFKA_GIVEN ? SOURCE_TAKES_OVER
                                     : SOURCE_READS;
}

/* ---- giving up, taking over ---- */

/* What was fetched and is not given as rows is forgotten. */
static void forget(kafka_source *k) {
    piece_reader_close(k->pieces);
    k->pieces = NULL;
    kafka_avro_free(k->avro);
    k->avro = NULL;
    k->origins.len = 0;
    k->n_given = 0;
    k->n_partitions = 0;
    k->started = false;
}

static void leave(kafka_source *k) {
    forget(k);
    unassign(k);
}

void kafka_balance_end(kafka_source *k) {
    k->closing = true;
    if (k->phase == KAFKA_LEAVES || k->phase == KAFKA_GIVEN) {
        unassign(k); /* the group waits for the answer */
    }
    if (k->mine != NULL) {
        rd_kafka_topic_partition_list_destroy(k->mine);
        k->mine = NULL;
    }
}

static const json_value *member(const json_value *object, tarn_str name) {
    const json_value *v = object != NULL ? object->first : NULL;
    while (v != NULL && !str_eq(v->name, name)) {
        v = v->next;
    }
    return v;
}

static tarn_code take_over(kafka_source *k, const rd_kafka_topic_partition_t *given,
                           const json_value *offsets, tarn_error *err) {
    kafka_partition *p;
    char id[24];
    const char *topic = kafka_own_topic(k, str_of(given->topic));
    if (topic == NULL) {
        return err_set(err, TARN_INVALID, "%s: the group gave a partition of topic %s", k->location,
                       given->topic);
    }
    const json_value *known = member(offsets, str_of(topic));
    const json_value *stands =
        member(known, str_make(id, str_from_i64((int64_t)given->partition, id)));
    tarn_code code = kafka_add_partition(k, topic, given->partition, &p, err);
    if (code != TARN_OK) {
        return code;
    }
    if (stands != NULL && (!json_i64(stands, &p->from) || p->from < 0)) {
        return err_set(err, TARN_INVALID, "the offsets of topic %s are no offsets", topic);
    }
    p->next = p->from;
    p->is_new = stands == NULL && known != NULL && known->first != NULL;
    return TARN_OK;
}

tarn_code kafka_balance_seek(kafka_source *k, const json_value *offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (k->phase == KAFKA_LEAVES) {
        leave(k);
    }
    if (k->phase == KAFKA_WAITS) {
        return TARN_OK;
    }
    forget(k);
    for (int i = 0; i < k->mine->cnt; i++) {
        TRY(take_over(k, &k->mine->elems[i], offsets, err));
    }
    k->phase = KAFKA_PLACES;
done:
    return code;
}

void kafka_balance_moved(kafka_source *k, const char *topic, int32_t id, int64_t to) {
    kafka_partition *p = kafka_find_partition(k, topic, id);
    if (p != NULL) {
        p->from = to;
    }
}

/* ---- until there is something to read ---- */

static tarn_code subscribe(kafka_source *k, tarn_error *err) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(k->n_topics);
    for (int32_t i = 0; i < k->n_topics; i++) {
        (void)rd_kafka_topic_partition_list_add(list, k->topics[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t why = rd_kafka_subscribe(k->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    k->subscribed = why == RD_KAFKA_RESP_ERR_NO_ERROR;
    return k->subscribed ? TARN_OK
                         : err_set(err, TARN_IO, "%s: the group could not be joined: %s",
                                   k->location, rd_kafka_err2str(why));
}

/* Messages that come are of an assignment before: they are read again, by somebody. */
static tarn_code poll_group(kafka_source *k, int64_t timeout_ms, tarn_error *err) {
    tarn_code code = TARN_OK;
    rd_kafka_message_t *m = rd_kafka_consume_queue(k->queue, (int)timeout_ms);
    if (k->failed.code != TARN_OK) {
        *err = k->failed;
        code = err->code;
    } else if (m != NULL && m->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = kafka_message_error(k, m, err);
    }
    if (m != NULL) {
        rd_kafka_message_destroy(m);
    }
    return code;
}

/* Asks the broker about each partition, and begins to read when it has answered for all. */
static tarn_code place_all(kafka_source *k, tarn_error *err) {
    tarn_code code = TARN_OK;
    bool again = false;
    for (int32_t i = 0; i < k->n_partitions && !again; i++) {
        kafka_partition *p = &k->partitions[i];
        if (p->seen < 0) {
            TRY(kafka_place(k, p, p->is_new, &again, err));
        }
    }
    if (!again) {
        TRY(kafka_assign(k, err));
        k->started = true;
        k->phase = KAFKA_READS;
        kafka_came(k);
    }
done:
    return code;
}

tarn_code kafka_balance_start(kafka_source *k, int64_t timeout_ms, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t until = kafka_now_ms(k) + timeout_ms;
    if (!k->subscribed) {
        TRY(subscribe(k, err));
    }
    if (k->phase == KAFKA_LEAVES) {
        leave(k);
    }
    while (k->phase == KAFKA_WAITS || k->phase == KAFKA_PLACES) {
        TRY(env_check_cancel(k->setup->env, err));
        if (k->phase == KAFKA_PLACES) {
            TRY(place_all(k, err));
        }
        if (k->phase == KAFKA_READS) {
            break;
        }
        int64_t left = timeout_ms < 0 ? POLL_MS : until - kafka_now_ms(k);
        TRY(poll_group(k, left > POLL_MS ? POLL_MS : left > 0 ? left : 0, err));
        TRY(kafka_patience(k, err));
        if (timeout_ms >= 0 && kafka_now_ms(k) >= until) {
            break;
        }
    }
done:
    return code;
}

#endif
