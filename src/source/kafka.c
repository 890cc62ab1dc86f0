/* source/kafka.c - messages of topics, in all of their partitions, or (kafka_balance.c) in those
 * that a consumer group gives to this process.
 *
 * Offsets are ours: they are kept with the checkpoints, and partitions are assigned from them by
 * hand, all to this process. So there are no rebalances in which rows that were read and not yet
 * committed would belong to somebody else; a second job under the same sink id is fenced by the
 * sink. The consumer group is only told what was committed, for whoever watches its lag. A broker
 * that is gone is waited for; offsets that it no longer has are an error, since rows would be
 * missing. */
#include "source/source_int.h"

bool kafka_is_location(const char *input) {
    return str_starts_with(str_of(input), STR("kafka://"));
}

#ifdef TARN_KAFKA

#include "source/kafka_int.h"

#include <stdio.h>

#define ASK_MS        5000
#define TELL_MS       60000 /* between warnings about brokers that come and go */
#define PATIENCE_MS   60000 /* without follow, where the caller says nothing */
#define PARTITIONS_MS 30000 /* between looks for new partitions */

int64_t kafka_now_ms(const kafka_source *k) {
    return env_now_ms(k->setup->env);
}

/* ---- the location ---- */

static tarn_code split_location(kafka_source *k, tarn_error *err) {
    tarn_arena *arena = &k->setup->arena;
    tarn_str rest = str_from(str_of(k->location), strlen("kafka://"));
    size_t slash;
    if (!str_find_char(rest, '/', &slash) || slash == 0 || slash + 1 == rest.len) {
        return err_set(err, TARN_INVALID,
                       "\"%s\" is no topic; it is named kafka://broker[,broker]/topic[,topic]",
                       k->location);
    }
    k->brokers = arena_str(arena, str_sub(rest, 0, slash)).data;
    tarn_str names = str_from(rest, slash + 1);
    k->topics = ARENA_ARRAY(arena, const char *, names.len + 1);
    if (k->brokers == NULL || k->topics == NULL) {
        return err_nomem(err);
    }
    tarn_str name;
    while (str_split(&names, ',', &name)) {
        if (name.len == 0) {
            continue;
        }
        k->topics[k->n_topics] = arena_str(arena, name).data;
        if (k->topics[k->n_topics++] == NULL) {
            return err_nomem(err);
        }
    }
    return TARN_OK;
}

/* ---- settings ---- */

void kafka_trouble(kafka_source *k, const char *what, const char *why) {
    int64_t now = kafka_now_ms(k);
    (void)snprintf(k->trouble, sizeof k->trouble, "%s%s%s", what, what[0] != '\0' ? ": " : "", why);
    if (k->away_ms == 0 && (k->told_ms == 0 || now - k->told_ms >= TELL_MS)) {
        k->told_ms = now;
        env_log(k->setup->env, TARN_LOG_WARN, "source", "kafka", "%s: %s; waiting for it",
                k->location, k->trouble);
    }
    k->away_ms = k->away_ms != 0 ? k->away_ms : now;
}

void kafka_came(kafka_source *k) {
    k->away_ms = 0;
}

static int64_t patience_of(const kafka_source *k) {
    int64_t ms = k->setup->kafka_timeout_ms;
    return ms != 0 ? ms : PATIENCE_MS;
}

tarn_code kafka_patience(const kafka_source *k, tarn_error *err) {
    int64_t most = patience_of(k);
    if (k->setup->follow || most < 0 || k->away_ms == 0 || kafka_now_ms(k) - k->away_ms < most) {
        return TARN_OK;
    }
    bool more = k->detail[0] != '\0' && strcmp(k->detail, k->trouble) != 0;
    return err_set(err, TARN_IO, "%s: nothing came for %.1f s: %s%s%s", k->location,
                   (double)most / 1000, k->trouble, more ? "; " : "", more ? k->detail : "");
}

/* How long one question may take: no longer than there is patience left. */
static int ask_ms(const kafka_source *k) {
    int64_t most = patience_of(k);
    if (k->setup->follow || most < 0) {
        return ASK_MS;
    }
    most -= k->away_ms != 0 ? kafka_now_ms(k) - k->away_ms : 0;
    return most > ASK_MS ? ASK_MS : most < 1 ? 1 : (int)most;
}

/* Connections that fail are told by errors too, once; here are the words for it. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    kafka_source *k = rd_kafka_opaque(rk);
    if (strcmp(facility, "FAIL") == 0) {
        const char *words = text[0] == '[' ? strstr(text, "]: ") : NULL;
        (void)snprintf(k->detail, sizeof k->detail, "%s", words != NULL ? words + 3 : text);
        level = 7;
    }
    env_log(k->setup->env, level <= 3 ? TARN_LOG_WARN : TARN_LOG_DEBUG, "source", facility, "%s",
            text);
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
    kafka_source *k = opaque;
    char text[256];
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        rd_kafka_resp_err_t why = rd_kafka_fatal_error(rk, text, sizeof text);
        (void)err_set(&k->failed, TARN_IO, "%s: %s (%s)", k->location, text,
                      rd_kafka_err2name(why));
    } else if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
        (void)err_set(&k->failed, TARN_DENIED, "%s: %s", k->location, reason);
    } else {
        kafka_trouble(k, "", reason);
    }
}

static tarn_code set(kafka_source *k, rd_kafka_conf_t *conf, const char *name, const char *value,
                     tarn_error *err) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        return err_set(err, TARN_INVALID, "%s: Kafka property %s: %s", k->location, name, why);
    }
    return TARN_OK;
}

static tarn_code set_given(kafka_source *k, rd_kafka_conf_t *conf, tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *const *p = k->setup->kafka_properties;
    for (; p != NULL && *p != NULL; p += 2) {
        if (strcmp(p[0], "auto.offset.reset") == 0) {
            k->latest = strcmp(p[1], "latest") == 0 || strcmp(p[1], "largest") == 0 ||
                        strcmp(p[1], "end") == 0;
            if (!k->latest && strcmp(p[1], "earliest") != 0 && strcmp(p[1], "smallest") != 0 &&
                strcmp(p[1], "beginning") != 0) {
                return err_set(err, TARN_INVALID, "%s: auto.offset.reset is earliest or latest",
                               k->location);
            }
            continue;
        }
        if (strcmp(p[0], "enable.auto.commit") == 0 || strcmp(p[0], "bootstrap.servers") == 0) {
            return err_set(err, TARN_INVALID, "%s: Kafka property %s is not taken: %s", k->location,
                           p[0],
                           p[0][0] == 'e' ? "offsets are committed with the rows"
                                          : "the brokers are in the location");
        }
        TRY(kafka_balance_check(k, p[0], p[1], err));
        k->from_group = k->from_group || strcmp(p[0], "group.id") == 0;
        TRY(set(k, conf, p[0], p[1], err));
    }
done:
    return code;
}

static tarn_code configure(kafka_source *k, rd_kafka_conf_t *conf, tarn_error *err) {
    tarn_code code = TARN_OK;
    const char *group = k->setup->kafka_group;
    TRY(set(k, conf, "client.id", "tarn", err));
    TRY(set(k, conf, "group.id", "tarn", err));
    TRY(set(k, conf, "queued.max.messages.kbytes", "32768", err));
    TRY(set(k, conf, "log.queue", "true", err));
    TRY(set_given(k, conf, err));
    if (group != NULL && !k->from_group) {
        TRY(set(k, conf, "group.id", group, err));
    }
    TRY(set(k, conf, "bootstrap.servers", k->brokers, err));
    TRY(set(k, conf, "enable.auto.commit", "false", err));
    TRY(set(k, conf, "enable.auto.offset.store", "false", err));
    TRY(set(k, conf, "auto.offset.reset", "error", err));
    TRY(set(k, conf, "enable.partition.eof", k->setup->follow ? "false" : "true", err));
    rd_kafka_conf_set_opaque(conf, k);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (k->setup->kafka_balance) {
        rd_kafka_conf_set_rebalance_cb(conf, kafka_on_rebalance);
    }
done:
    return code;
}

static tarn_code choose_format(kafka_source *k, tarn_error *err) {
    const char *format = k->setup->file.format;
    k->text = format == NULL || str_eq_nocase(str_of(format), STR("ndjson")) ||
              str_eq_nocase(str_of(format), STR("json")) ||
              str_eq_nocase(str_of(format), STR("debezium-json"));
    bool avro = format != NULL && (str_eq_nocase(str_of(format), STR("avro")) ||
                                   str_eq_nocase(str_of(format), STR("debezium-avro")));
    if (avro && k->setup->schema_registry == NULL) {
        return err_set(err, TARN_INVALID, "%s: Avro messages need the URL of their schema registry",
                       k->location);
    }
    return k->text || avro ? TARN_OK
                           : err_set(err, TARN_INVALID,
                                     "%s: messages are ndjson, avro, debezium-json or "
                                     "debezium-avro, not %s",
                                     k->location, format);
}

tarn_code kafka_open(source_setup *setup, const char *location, kafka_source **out,
                     tarn_error *err) {
    tarn_code code = TARN_OK;
    char why[256];
    rd_kafka_conf_t *conf = NULL;
    kafka_source *k = env_calloc(setup->env, 1, sizeof *k);
    if (k == NULL) {
        return err_nomem(err);
    }
    k->setup = setup;
    k->location = arena_strdup(&setup->arena, location);
    buf_init(&k->origins, setup->env, 0);
    if (k->location == NULL) {
        code = err_nomem(err);
        goto done;
    }
    TRY(split_location(k, err));
    TRY(choose_format(k, err));
    conf = rd_kafka_conf_new();
    TRY(configure(k, conf, err));
    k->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (k->rk == NULL) {
        code = err_set(err, TARN_INVALID, "%s: %s", k->location, why);
        goto done;
    }
    conf = NULL;
    (void)rd_kafka_set_log_queue(k->rk, NULL);
    (void)rd_kafka_poll_set_consumer(k->rk);
    k->queue = rd_kafka_queue_get_consumer(k->rk);
    *out = k;
    k = NULL;
done:
    if (conf != NULL) {
        rd_kafka_conf_destroy(conf);
    }
    kafka_close(k);
    return code;
}

void kafka_close(kafka_source *k) {
    if (k == NULL) {
        return;
    }
    tarn_env *env = k->setup->env;
    piece_reader_close(k->pieces);
    kafka_avro_free(k->avro);
    if (k->queue != NULL) {
        rd_kafka_queue_destroy(k->queue);
    }
    if (k->rk != NULL) {
        kafka_balance_end(k);
        (void)rd_kafka_consumer_close(k->rk);
        rd_kafka_destroy(k->rk);
    }
    buf_release(&k->origins);
    env_free(env, k);
}

const char *kafka_name(const kafka_source *k) {
    return k->location;
}

/* ---- partitions ---- */

kafka_partition *kafka_find_partition(const kafka_source *k, const char *topic, int32_t id) {
    for (int32_t i = 0; i < k->n_partitions; i++) {
        if (k->partitions[i].id == id && strcmp(k->partitions[i].topic, topic) == 0) {
            return &k->partitions[i];
        }
    }
    return NULL;
}

tarn_code kafka_add_partition(kafka_source *k, const char *topic, int32_t id, kafka_partition **out,
                              tarn_error *err) {
    kafka_partition *p = kafka_find_partition(k, topic, id);
    if (p == NULL && k->n_partitions == k->cap) {
        size_t cap = k->cap > 0 ? (size_t)k->cap * 2 : 16;
        kafka_partition *grown = arena_grow(&k->setup->arena, k->partitions,
                                            (size_t)k->cap * sizeof *grown, cap * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err);
        }
        k->partitions = grown;
        k->cap = (int32_t)cap;
    }
    if (p == NULL) {
        p = &k->partitions[k->n_partitions++];
        *p = (kafka_partition){topic, id, -1, -1, -1, 0, -1, false, false};
    }
    *out = p;
    return TARN_OK;
}

/* Trouble that passes is told and waited for; the rest is the caller's. */
tarn_code kafka_broker_error(kafka_source *k, rd_kafka_resp_err_t why, const char *what,
                             bool *again, tarn_error *err) {
    switch ((int)why) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return err_set(err, TARN_NOT_FOUND, "%s: %s is not there", k->location, what);
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        return err_set(err, TARN_DENIED, "%s: %s: %s", k->location, what, rd_kafka_err2str(why));
    default:
        break;
    }
    *again = true;
    kafka_trouble(k, what, rd_kafka_err2str(why));
    return TARN_OK;
}

static tarn_code list_topic(kafka_source *k, const char *topic, bool *again, tarn_error *err) {
    const rd_kafka_metadata_t *found = NULL;
    tarn_code code = TARN_OK;
    kafka_partition *p;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(k->rk, topic, NULL);
    if (handle == NULL) {
        return err_set(err, TARN_INVALID, "%s: %s is no name of a topic", k->location, topic);
    }
    rd_kafka_resp_err_t why = rd_kafka_metadata(k->rk, 0, handle, &found, ask_ms(k));
    if (why == RD_KAFKA_RESP_ERR_NO_ERROR && found->topic_cnt == 1) {
        why = found->topics[0].err;
    }
    if (why != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = kafka_broker_error(k, why, topic, again, err);
        goto done;
    }
    for (int i = 0; i < found->topics[0].partition_cnt; i++) {
        TRY(kafka_add_partition(k, topic, found->topics[0].partitions[i].id, &p, err));
    }
    *again = found->topics[0].partition_cnt == 0;
done:
    if (found != NULL) {
        rd_kafka_metadata_destroy(found);
    }
    rd_kafka_topic_destroy(handle);
    return code;
}

/* Where the group stands, where the user named one; -1: nowhere. */
static tarn_code ask_group(kafka_source *k, const kafka_partition *p, int64_t *out, bool *again,
                           tarn_error *err) {
    tarn_code code = TARN_OK;
    *out = -1;
    if (!k->from_group) {
        return TARN_OK;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(list, p->topic, p->id);
    rd_kafka_resp_err_t why = rd_kafka_committed(k->rk, list, ask_ms(k));
    if (why != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = kafka_broker_error(k, why, "the consumer group", again, err);
    } else if (list->elems[0].offset >= 0) {
        *out = list->elems[0].offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return code;
}

static tarn_code check_range(const kafka_source *k, const kafka_partition *p, int64_t low,
                             int64_t high, tarn_error *err) {
    if (p->next < low) {
        return err_set(err, TARN_INVALID,
                       "%s: topic %s partition %d was read up to offset %lld, and begins at %lld "
                       "now: the messages between are gone",
                       k->location, p->topic, p->id, (long long)p->next, (long long)low);
    }
    if (p->next > high) {
        return err_set(err, TARN_INVALID,
                       "%s: topic %s partition %d was read up to offset %lld, and ends at %lld "
                       "now: it is not the same",
                       k->location, p->topic, p->id, (long long)p->next, (long long)high);
    }
    return TARN_OK;
}

/* Where a partition begins and, without follow, ends. */
tarn_code kafka_place(kafka_source *k, kafka_partition *p, bool is_new, bool *again,
                      tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t low;
    int64_t high;
    int64_t group = -1;
    rd_kafka_resp_err_t why =
        rd_kafka_query_watermark_offsets(k->rk, p->topic, p->id, &low, &high, ask_ms(k));
    if (why != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return kafka_broker_error(k, why, p->topic, again, err);
    }
    if (p->next < 0) {
        TRY(ask_group(k, p, &group, again, err));
        if (*again) {
            return TARN_OK;
        }
        p->next = group >= 0 ? group : k->latest && !is_new ? high : low;
    }
    TRY(check_range(k, p, low, high, err));
    p->low = low;
    p->seen = p->next;
    p->end = k->setup->follow ? -1 : high;
    p->done = p->end >= 0 && p->seen >= p->end;
done:
    return code;
}

/* Partitions that go are stopped by librdkafka's own thread, which ends the process where they are
 * taken away again before it has heard that they stopped (its issue 5573). Each question waits for
 * that thread, and what it has to hear stands before the second one. */
rd_kafka_resp_err_t kafka_give(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list) {
    rd_kafka_resp_err_t why = rd_kafka_assign(rk, list);
    for (int i = 0; i < 2; i++) {
        rd_kafka_topic_partition_list_t *now = NULL;
        if (rd_kafka_assignment(rk, &now) == RD_KAFKA_RESP_ERR_NO_ERROR && now != NULL) {
            rd_kafka_topic_partition_list_destroy(now);
        }
    }
    return why;
}

tarn_code kafka_assign(kafka_source *k, tarn_error *err) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(k->n_partitions);
    for (int32_t i = 0; i < k->n_partitions; i++) {
        const kafka_partition *p = &k->partitions[i];
        if (!p->done) {
            rd_kafka_topic_partition_list_add(list, p->topic, p->id)->offset = p->seen;
        }
    }
    rd_kafka_resp_err_t why = kafka_give(k->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return why == RD_KAFKA_RESP_ERR_NO_ERROR
               ? TARN_OK
               : err_set(err, TARN_IO, "%s: partitions could not be assigned: %s", k->location,
                         rd_kafka_err2str(why));
}

/* Partitions that were not there before, from where they begin; *again: ask later. */
static tarn_code find_partitions(kafka_source *k, bool is_new, bool *again, tarn_error *err) {
    tarn_code code = TARN_OK;
    for (int32_t i = 0; i < k->n_topics && !*again; i++) {
        TRY(list_topic(k, k->topics[i], again, err));
    }
    for (int32_t i = 0; i < k->n_partitions && !*again; i++) {
        if (k->partitions[i].seen < 0) {
            TRY(kafka_place(k, &k->partitions[i], is_new, again, err));
        }
    }
done:
    return code;
}

static tarn_code start(kafka_source *k, int64_t timeout_ms, tarn_error *err) {
    tarn_code code = TARN_OK;
    int64_t until = kafka_now_ms(k) + timeout_ms;
    while (!k->started) {
        bool again = false;
        int64_t asked = kafka_now_ms(k);
        TRY(env_check_cancel(k->setup->env, err));
        TRY(find_partitions(k, false, &again, err));
        if (k->failed.code != TARN_OK) {
            *err = k->failed;
            return err->code;
        }
        if (!again) {
            TRY(kafka_assign(k, err));
            k->started = true;
            k->looked_ms = kafka_now_ms(k);
            kafka_came(k);
            continue;
        }
        (void)rd_kafka_poll(k->rk, 0);                        /* what went wrong is told */
        k->away_ms = k->away_ms > asked ? asked : k->away_ms; /* not since the question was over */
        TRY(kafka_patience(k, err));
        if (timeout_ms >= 0 && kafka_now_ms(k) >= until) {
            break;
        }
        env_sleep_ms(k->setup->env, 100);
    }
done:
    return code;
}

static tarn_code look_for_partitions(kafka_source *k, tarn_error *err) {
    bool again = false;
    int32_t before = k->n_partitions;
    if (!k->setup->follow || k->setup->kafka_balance ||
        kafka_now_ms(k) - k->looked_ms < PARTITIONS_MS) {
        return TARN_OK;
    }
    k->looked_ms = kafka_now_ms(k);
    tarn_code code = find_partitions(k, true, &again, err);
    if (code == TARN_OK && k->n_partitions > before && !again) {
        code = kafka_assign(k, err);
    }
    return code;
}

/* ---- messages ---- */

bool kafka_all_done(const kafka_source *k) {
    if (k->setup->follow) {
        return false;
    }
    for (int32_t i = 0; i < k->n_partitions; i++) {
        if (!k->partitions[i].done) {
            return false;
        }
    }
    return k->started;
}

tarn_code kafka_message_error(kafka_source *k, const rd_kafka_message_t *m, tarn_error *err) {
    const char *topic = m->rkt != NULL ? rd_kafka_topic_name(m->rkt) : "";
    kafka_partition *p = kafka_find_partition(k, topic, m->partition);
    bool again = false;
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        kafka_came(k);
        if (p != NULL && p->end >= 0 && m->offset >= p->end) {
            p->done = true;
        }
        return TARN_OK;
    }
    if (m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
        m->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        return err_set(err, TARN_INVALID,
                       "%s: topic %s partition %d no longer has offset %lld: messages are gone",
                       k->location, topic, m->partition, (long long)(p != NULL ? p->seen : -1));
    }
    return kafka_broker_error(k, m->err, topic, &again, err);
}

/* Whether the message is one to read. */
static bool note_message(kafka_source *k, const rd_kafka_message_t *m) {
    kafka_partition *p = kafka_find_partition(k, rd_kafka_topic_name(m->rkt), m->partition);
    if (p == NULL || m->offset < p->seen || (p->end >= 0 && m->offset >= p->end)) {
        if (p != NULL && p->end >= 0 && m->offset >= p->end) {
            p->done = true;
        }
        return false;
    }
    kafka_came(k);
    p->seen = m->offset + 1;
    k->taken++;
    p->done = p->end >= 0 && p->seen >= p->end;
    return true;
}

tarn_code kafka_take(kafka_source *k, int64_t timeout_ms, rd_kafka_message_t **out,
                     tarn_error *err) {
    *out = NULL;
    for (;;) {
        tarn_code code = env_check_cancel(k->setup->env, err);
        int wait = timeout_ms < 0 || timeout_ms > 200 ? 200 : (int)timeout_ms;
        if (code != TARN_OK || k->phase == KAFKA_LEAVES || kafka_all_done(k)) {
            return code;
        }
        rd_kafka_message_t *m = rd_kafka_consume_queue(k->queue, wait);
        if (k->failed.code != TARN_OK) {
            if (m != NULL) {
                rd_kafka_message_destroy(m);
            }
            *err = k->failed;
            return err->code;
        }
        if (m == NULL) {
            code = kafka_patience(k, err);
            if (code != TARN_OK) {
                return code;
            }
            if (timeout_ms >= 0 && timeout_ms <= wait) {
                return TARN_OK;
            }
            timeout_ms = timeout_ms < 0 ? -1 : timeout_ms - wait;
            continue;
        }
        code = m->err != RD_KAFKA_RESP_ERR_NO_ERROR ? kafka_message_error(k, m, err) : TARN_OK;
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && note_message(k, m)) {
            *out = m;
            return TARN_OK;
        }
        rd_kafka_message_destroy(m);
        if (code != TARN_OK) {
            return code;
        }
    }
}

tarn_code kafka_hand_on(kafka_source *k, const rd_kafka_message_t *m, tarn_error *err) {
    const kafka_partition *p = kafka_find_partition(k, rd_kafka_topic_name(m->rkt), m->partition);
    kafka_origin origin = {(int32_t)(p - k->partitions), m->offset};
    return buf_append(&k->origins, &origin, sizeof origin, err);
}

void kafka_given(kafka_source *k, int64_t n) {
    size_t gone = 0;
    kafka_origin origin;
    for (; k->n_given < n && gone + sizeof origin <= k->origins.len; k->n_given++) {
        memcpy(&origin, k->origins.data + gone, sizeof origin);
        k->partitions[origin.partition].next = origin.offset + 1;
        gone += sizeof origin;
    }
    if (gone > 0) {
        memmove(k->origins.data, k->origins.data + gone, k->origins.len - gone);
        k->origins.len -= gone;
    }
}

tarn_code kafka_reject(kafka_source *k, int64_t number, tarn_str raw, tarn_str reason,
                       tarn_error *err) {
    char words[512];
    kafka_origin origin = {0, -1};
    size_t at = (size_t)(number - k->n_given - 1) * sizeof origin;
    if (number > k->n_given && at + sizeof origin <= k->origins.len) {
        memcpy(&origin, k->origins.data + at, sizeof origin);
    }
    const kafka_partition *p = &k->partitions[origin.partition];
    int len = snprintf(words, sizeof words, "topic %s partition %d offset %lld: %.*s", p->topic,
                       p->id, (long long)origin.offset, STR_ARG(reason));
    size_t n = len < 0 ? 0 : (size_t)len < sizeof words ? (size_t)len : sizeof words - 1;
    return file_tell_reject(&k->setup->file, k->location, origin.offset, raw, str_make(words, n),
                            err);
}

bool kafka_is_lost_delete(const kafka_source *k, const rd_kafka_message_t *m) {
    const source_setup *s = k->setup;
    return m->payload == NULL && m->key_len > 0 && s->n_keys > 0 && s->kind_column == NULL &&
           !s->debezium && !s->avro_envelope;
}

/* ---- the source ---- */

tarn_code kafka_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                     bool *ended, tarn_error *err) {
    tarn_code code = TARN_OK;
    if (k->setup->kafka_balance) {
        TRY(kafka_balance_start(k, timeout_ms, err));
    } else if (!k->started) {
        TRY(start(k, timeout_ms, err));
    }
    if (!k->started) {
        return TARN_OK;
    }
    TRY(look_for_partitions(k, err));
    code = k->text ? kafka_json_next(k, timeout_ms, out, kinds, ended, err)
                   : kafka_avro_next(k, timeout_ms, out, kinds, ended, err);
done:
    return code;
}

/* {topic: {partition: next offset}}; of a group: {topic: {partition: [from, to]}} of those that
 * moved since the table was asked. */
void kafka_put(const kafka_source *k, json_writer *w) {
    char id[24];
    json_put_object(w);
    for (int32_t t = 0; t < k->n_topics; t++) {
        json_put_name(w, str_of(k->topics[t]));
        json_put_object(w);
        for (int32_t i = 0; i < k->n_partitions; i++) {
            const kafka_partition *p = &k->partitions[i];
            if (strcmp(p->topic, k->topics[t]) != 0 || p->next < 0 ||
                (k->setup->kafka_balance && p->next == p->from)) {
                continue;
            }
            json_put_name(w, str_make(id, str_from_i64(p->id, id)));
            if (k->setup->kafka_balance) {
                json_put_array(w);
                json_put_i64(w, p->from);
            }
            json_put_i64(w, p->next);
            if (k->setup->kafka_balance) {
                json_end_array(w);
            }
        }
        json_end_object(w);
    }
    json_end_object(w);
}

const char *kafka_own_topic(const kafka_source *k, tarn_str name) {
    for (int32_t i = 0; i < k->n_topics; i++) {
        if (str_is(name, k->topics[i])) {
            return k->topics[i];
        }
    }
    return NULL;
}

tarn_code kafka_seek(kafka_source *k, const json_value *offsets, tarn_error *err) {
    tarn_code code = TARN_OK;
    kafka_partition *p;
    if (k->setup->kafka_balance) {
        return kafka_balance_seek(k, offsets, err);
    }
    for (const json_value *t = offsets->first; t != NULL; t = t->next) {
        const char *topic = kafka_own_topic(k, t->name);
        if (topic == NULL) {
            return err_set(err, TARN_INVALID,
                           "the offsets are of other inputs: of topic %.*s, which %s lacks",
                           STR_ARG(t->name), k->location);
        }
        for (const json_value *v = t->first; v != NULL; v = v->next) {
            int32_t id;
            int64_t offset;
            if (!str_to_i32(v->name, &id) || id < 0 || !json_i64(v, &offset) || offset < 0) {
                return err_set(err, TARN_INVALID, "the offsets of topic %s are no offsets", topic);
            }
            TRY(kafka_add_partition(k, topic, id, &p, err));
            p->next = offset;
        }
    }
done:
    return code;
}

/* Only for whoever watches the group: nothing of ours depends on it. */
tarn_code kafka_committed(kafka_source *k, const json_value *offsets, tarn_error *err) {
    (void)err;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(k->n_partitions);
    for (const json_value *t = offsets->first; t != NULL; t = t->next) {
        const char *topic = kafka_own_topic(k, t->name);
        for (const json_value *v = t->first; v != NULL && topic != NULL; v = v->next) {
            int32_t id;
            int64_t offset;
            bool pair = json_is(v, JSON_ARRAY) && v->count == 2;
            if (str_to_i32(v->name, &id) && json_i64(pair ? v->first->next : v, &offset)) {
                kafka_balance_moved(k, topic, id, offset);
                rd_kafka_topic_partition_list_add(list, topic, id)->offset = offset;
            }
        }
    }
    rd_kafka_resp_err_t why =
        list->cnt > 0 ? rd_kafka_commit(k->rk, list, 1) : RD_KAFKA_RESP_ERR_NO_ERROR;
    if (why != RD_KAFKA_RESP_ERR_NO_ERROR) {
        env_log(k->setup->env, TARN_LOG_WARN, "source", "kafka",
                "%s: the consumer group was not told: %s", k->location, rd_kafka_err2str(why));
    }
    rd_kafka_topic_partition_list_destroy(list);
    return TARN_OK;
}

int64_t kafka_taken(const kafka_source *k) {
    return k->taken;
}

void kafka_progress(const kafka_source *k, int64_t *done, int64_t *total) {
    int64_t all = 0;
    *done = 0;
    for (int32_t i = 0; i < k->n_partitions; i++) {
        const kafka_partition *p = &k->partitions[i];
        *done += p->next >= 0 ? p->next - p->low : 0;
        all += p->end >= 0 ? p->end - p->low : 0;
    }
    *total = k->started && !k->setup->follow ? all : -1;
}

#endif
