/* Goal: topics are read in all their partitions, every message once, over restarts at any batch,
 * while brokers are gone, with bad messages, tombstones and envelopes; offsets that the broker does
 * not have are refused, and the consumer group is told what was committed. Members of a group that
 * share partitions give them up and take them over at what the table says.
 * Method: librdkafka's mock cluster in this process. */
#include "test.h"

#ifdef TARN_KAFKA

/* clang-format off: the second needs the first */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
/* clang-format on */

#include "source/source_int.h"

#include "source/kafka_int.h"

typedef struct fixture {
    tarn_env *env;
    tarn_arena arena;
    rd_kafka_t *producer;
    rd_kafka_mock_cluster_t *cluster;
    const char *location;
    tarn_file_options file;
    source_options options;
    tarn_error err;
    int seen[64]; /* how often each id came; of deletes, 100 each */
    int rejects;
    char reason[256];
} fixture;

static int on_reject(void *ctx, int64_t line, const char *raw, size_t raw_len, const char *reason) {
    fixture *f = ctx;
    (void)line;
    (void)raw;
    (void)raw_len;
    f->rejects++;
    (void)snprintf(f->reason, sizeof f->reason, "%s", reason);
    return 0;
}

static void begin(fixture *f) {
    tarn_file_options none = TARN_FILE_OPTIONS_INIT;
    tarn_error clean = TARN_ERROR_INIT;
    char why[256];
    memset(f, 0, sizeof *f);
    f->env = test_env();
    f->err = clean;
    arena_init(&f->arena, f->env);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", why, sizeof why), 0);
    f->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(f->producer);
    f->cluster = rd_kafka_handle_mock_cluster(f->producer);
    assert_int_equal(rd_kafka_mock_topic_create(f->cluster, "t", 3, 1), 0);
    f->location =
        arena_printf(&f->arena, "kafka://%s/t", rd_kafka_mock_cluster_bootstraps(f->cluster));
    f->file = none;
    f->file.batch_rows = 1;
    f->file.reject = on_reject;
    f->file.reject_ctx = f;
    f->options.file = &f->file;
    assert_int_equal(type_from_text(&f->arena, STR("struct<id: int>"), &f->options.root, &f->err),
                     TARN_OK);
}

static void end(fixture *f) {
    rd_kafka_destroy(f->producer);
    arena_release(&f->arena);
    test_env_done(f->env);
}

static void produce(fixture *f, int32_t partition, const char *key, const char *value) {
    size_t key_len = key != NULL ? strlen(key) : 0;
    size_t len = value != NULL ? strlen(value) : 0;
    void *bytes = (void *)(uintptr_t)value;
    assert_int_equal(
        rd_kafka_producev(f->producer, RD_KAFKA_V_TOPIC("t"), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_len),
                          RD_KAFKA_V_VALUE(bytes, len), RD_KAFKA_V_END),
        0);
}

static void produce_ids(fixture *f, int from, int to) {
    char value[64];
    for (int i = from; i < to; i++) {
        (void)snprintf(value, sizeof value, "{\"id\":\n%d}", i);
        produce(f, i % 3, NULL, value);
    }
    assert_int_equal(rd_kafka_flush(f->producer, 10000), 0);
}

static void note_rows(fixture *f, const tarn_batch *batch, const uint8_t *kinds) {
    tarn_view id;
    view_column(batch, 0, &id);
    for (int64_t i = 0; i < batch_rows(batch); i++) {
        int32_t value = ((const int32_t *)id.values)[i];
        assert_in_range(value, 0, 63);
        f->seen[value] += kinds != NULL && kinds[i] == 3 ? 100 : 1;
    }
}

/* Reads at most n batches; -1: to the end, or until nothing comes in time. */
static tarn_code read_some(fixture *f, const char *from, int64_t timeout, int n,
                           const char **offsets) {
    tarn_code code = TARN_OK;
    row_source *s = NULL;
    tarn_batch batch;
    bool ended = false;
    tarn_buf text;
    buf_init(&text, f->env, 0);
    memset(&batch, 0, sizeof batch);
    TRY(source_open(f->env, &f->location, 1, &f->options, &s, &f->err));
    if (from != NULL) {
        TRY(source_seek(s, str_of(from), &f->err));
    }
    for (int i = 0; i != n && !ended; i++) {
        const uint8_t *kinds;
        TRY(source_next(s, timeout, &batch, &kinds, &ended, &f->err));
        if (batch_rows(&batch) == 0) {
            break;
        }
        note_rows(f, &batch, kinds);
        batch_release(&batch);
    }
    TRY(source_put_offsets(s, &text, &f->err));
    TRY(source_committed(s, buf_str(&text), &f->err));
    if (offsets != NULL) {
        *offsets = arena_str(&f->arena, buf_str(&text)).data;
    }
done:
    batch_release(&batch);
    buf_release(&text);
    source_close(s);
    return code;
}

#define assert_reads_of(f, call)                                                                   \
    do {                                                                                           \
        if ((call) != TARN_OK) {                                                                   \
            fail_msg("%s (%s)", (f)->err.message, (f)->err.detail);                                \
        }                                                                                          \
    } while (0)
#define assert_reads(call) assert_reads_of(&f, call)

/* Of parts of a second; in so many it has happened, on a slow machine too. */
#define STEPS 3000

static void all_once(fixture *f, int n) {
    for (int i = 0; i < n; i++) {
        if (f->seen[i] != 1) {
            fail_msg("id %d was seen %d times", i, f->seen[i]);
        }
    }
    memset(f->seen, 0, sizeof f->seen);
}

static void every_message_once_over_restarts(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    produce_ids(&f, 0, 12);
    for (int n = 0; n <= 12; n += 3) {
        assert_reads(read_some(&f, NULL, -1, n, &offsets));
        assert_reads(read_some(&f, offsets, -1, -1, &offsets));
        all_once(&f, 12);
    }
    produce_ids(&f, 12, 20); /* what came since */
    assert_reads(read_some(&f, offsets, -1, -1, &offsets));
    for (int i = 0; i < 12; i++) {
        assert_int_equal(f.seen[i], 0);
        f.seen[i] = 1;
    }
    all_once(&f, 20);
    end(&f);
}

static void bad_messages_are_named_and_passed(void **state) {
    (void)state;
    fixture f;
    const char *offsets = NULL;
    begin(&f);
    produce_ids(&f, 0, 3);
    produce(&f, 1, NULL, "bad");
    produce(&f, 1, "k", NULL);
    produce_ids(&f, 3, 6);
    assert_reads(read_some(&f, NULL, -1, -1, &offsets));
    all_once(&f, 6);
    assert_int_equal(f.rejects, 1);
    assert_string_equal(f.reason, "topic t partition 1 offset 1: the record was not a JSON object");
    assert_reads(read_some(&f, offsets, -1, -1, &offsets));
    assert_int_equal(f.rejects, 1);
    end(&f);
}

static void envelopes_take_rows_away_by_key(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    f.file.format = "debezium-json";
    produce(&f, 0, "{\"id\":1}", "{\"op\":\"c\",\"after\":{\"id\":1}}");
    produce(&f, 0, "{\"id\":1}", "{\"op\":\"d\",\"before\":null}");
    produce(&f, 0, "{\"id\":1}", NULL);
    produce(&f, 0, NULL, "{\"op\":\"d\",\"before\":{\"id\":2}}");
    assert_int_equal(rd_kafka_flush(f.producer, 10000), 0);
    assert_reads(read_some(&f, NULL, -1, -1, NULL));
    assert_int_equal(f.seen[1], 101);
    assert_int_equal(f.seen[2], 100);
    assert_int_equal(f.rejects, 0);
    end(&f);
}

static void a_broker_that_is_gone_is_waited_for(void **state) {
    (void)state;
    fixture f;
    row_source *s = NULL;
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended;
    begin(&f);
    f.options.follow = true;
    produce_ids(&f, 0, 6);
    assert_reads(source_open(f.env, &f.location, 1, &f.options, &s, &f.err));
    int n = 0;
    bool gone = false;
    for (int i = 0; i < STEPS && n < 12; i++) {
        if (n == 6 && !gone) {
            assert_int_equal(rd_kafka_mock_broker_set_down(f.cluster, 1), 0);
            assert_reads(source_next(s, 300, &batch, &kinds, &ended, &f.err));
            assert_int_equal(batch_rows(&batch), 0);
            assert_int_equal(rd_kafka_mock_broker_set_up(f.cluster, 1), 0);
            produce_ids(&f, 6, 12);
            gone = true;
        }
        assert_reads(source_next(s, 300, &batch, &kinds, &ended, &f.err));
        assert_false(ended);
        if (batch_rows(&batch) > 0) {
            note_rows(&f, &batch, kinds);
            n += (int)batch_rows(&batch);
        }
        batch_release(&batch);
    }
    all_once(&f, 12);
    source_close(s);
    end(&f);
}

static void offsets_that_are_not_there_are_refused(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    produce_ids(&f, 0, 3);
    assert_int_equal(read_some(&f, "{\"kafka\":{\"t\":{\"0\":7}}}", -1, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "ends at 1 now"));
    assert_int_equal(read_some(&f, "{\"kafka\":{\"other\":{\"0\":7}}}", -1, -1, NULL),
                     TARN_INVALID);
    assert_int_equal(read_some(&f, "{\"inputs\":[]}", -1, -1, NULL), TARN_INVALID);
    f.location = "kafka://nowhere";
    assert_int_equal(read_some(&f, NULL, -1, -1, NULL), TARN_INVALID);
    static const char *const properties[] = {"no.such.thing", "x", NULL};
    f.location = "kafka://127.0.0.1:1/t";
    f.options.kafka_properties = properties;
    assert_int_equal(read_some(&f, NULL, -1, -1, NULL), TARN_INVALID);
    assert_non_null(strstr(f.err.message, "no.such.thing"));
    end(&f);
}

static void a_named_group_is_begun_from(void **state) {
    (void)state;
    fixture f;
    begin(&f);
    produce_ids(&f, 0, 6);
    static const char *const properties[] = {"group.id", "g", NULL};
    f.options.kafka_properties = properties;
    assert_reads(read_some(&f, NULL, -1, -1, NULL));
    all_once(&f, 6);
    produce_ids(&f, 6, 9);
    assert_reads(read_some(&f, NULL, -1, -1, NULL));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(f.seen[i], 0);
        f.seen[i] = 1;
    }
    all_once(&f, 9);
    end(&f);
}

/* ---- a group ---- */

#define MEMBERS 3

typedef struct member {
    row_source *source;
    int given, times; /* rows given and not committed; how often partitions came */
    int ids[64];
} member;

typedef struct group {
    fixture *f;
    int64_t stands[3]; /* of each partition, as the table would say; -1: nothing */
    member members[MEMBERS];
    int refused;
} group;

static void join_group(group *g, int i) {
    assert_reads_of(g->f, source_open(g->f->env, &g->f->location, 1, &g->f->options,
                                      &g->members[i].source, &g->f->err));
    g->members[i].given = 0;
}

static void leave_group(group *g, int i) {
    source_close(g->members[i].source);
    g->members[i].source = NULL;
}

static void seek_group(group *g, member *m) {
    char text[128] = "";
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (g->stands[i] >= 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\"%d\":%d", n > 0 ? "," : "", i,
                                  (int)g->stands[i]);
        }
    }
    char all[160] = "";
    if (n > 0) {
        (void)snprintf(all, sizeof all, "{\"kafka\":{\"t\":{%s}}}", text);
    }
    assert_reads_of(g->f, source_seek(m->source, str_of(all), &g->f->err));
    m->given = 0;
}

/* What the table would do: all moves begin where it stands, or nothing is taken. */
static void commit_group(group *g, member *m) {
    tarn_buf text;
    json_value *json;
    int64_t pairs[3][2];
    bool good = true;
    buf_init(&text, g->f->env, 0);
    assert_reads_of(g->f, source_put_offsets(m->source, &text, &g->f->err));
    assert_reads_of(g->f, json_parse(&g->f->arena, buf_str(&text), "moves", &json, &g->f->err));
    const json_value *topic = json_get(json_get(json, "kafka"), "t");
    for (int i = 0; i < 3; i++) {
        char name[2] = {(char)('0' + i), 0};
        const json_value *pair = json_get(topic, name);
        pairs[i][0] = pairs[i][1] = g->stands[i];
        if (pair != NULL) {
            assert_true(json_i64(pair->first, &pairs[i][0]));
            assert_true(json_i64(pair->first->next, &pairs[i][1]));
        }
        good = good && pairs[i][0] == g->stands[i];
    }
    if (good) {
        for (int i = 0; i < m->given; i++) {
            g->f->seen[m->ids[i]]++;
        }
        for (int i = 0; i < 3; i++) {
            g->stands[i] = pairs[i][1];
        }
        assert_reads_of(g->f, source_committed(m->source, buf_str(&text), &g->f->err));
        m->given = 0;
    } else {
        g->refused++;
        seek_group(g, m);
    }
    buf_release(&text);
}

static void step_member(group *g, member *m, bool commit) {
    tarn_batch batch;
    const uint8_t *kinds;
    bool ended;
    if (m->source == NULL) {
        return;
    }
    assert_reads_of(g->f, source_next(m->source, 50, &batch, &kinds, &ended, &g->f->err));
    assert_false(ended);
    if (batch_rows(&batch) > 0) {
        tarn_view id;
        view_column(&batch, 0, &id);
        for (int64_t i = 0; i < batch_rows(&batch); i++) {
            m->ids[m->given++] = ((const int32_t *)id.values)[i];
        }
    }
    batch_release(&batch);
    if (source_turn_of(m->source) == SOURCE_TAKES_OVER) {
        m->times++;
        seek_group(g, m);
    } else if (commit || source_turn_of(m->source) == SOURCE_GIVES_UP) {
        commit_group(g, m);
    }
}

static int seen_in_all(const fixture *f) {
    int n = 0;
    for (int i = 0; i < 64; i++) {
        n += f->seen[i];
    }
    return n;
}

/* Until so many rows are committed, by whomever. */
static void run_group(group *g, int rows) {
    for (int i = 0; i < STEPS && seen_in_all(g->f) < rows; i++) {
        for (int k = 0; k < MEMBERS; k++) {
            step_member(g, &g->members[k], i % 3 == k);
        }
    }
}

static void begin_group(group *g, fixture *f) {
    static const char *const properties[] = {
        "group.id", "g", "session.timeout.ms", "6000", "heartbeat.interval.ms", "100", NULL};
    memset(g, 0, sizeof *g);
    begin(f);
    g->f = f;
    f->options.follow = true;
    f->options.kafka_balance = true;
    f->options.kafka_properties = properties;
    g->stands[0] = g->stands[1] = g->stands[2] = -1;
}

static void a_group_shares_partitions(void **state) {
    (void)state;
    fixture f;
    group g;
    begin_group(&g, &f);
    produce_ids(&f, 0, 12);
    join_group(&g, 0);
    run_group(&g, 12);
    join_group(&g, 1);
    for (int i = 0; i < STEPS && g.members[1].times == 0; i++) {
        step_member(&g, &g.members[0], false);
        step_member(&g, &g.members[1], false);
    }
    assert_int_equal(g.members[1].times, 1); /* and the first gave up what it had */
    produce_ids(&f, 12, 24);
    run_group(&g, 24);
    leave_group(&g, 0);
    produce_ids(&f, 24, 36);
    run_group(&g, 36);
    all_once(&f, 36);
    leave_group(&g, 1);
    end(&f);
}

/* The table moved on without the member, as where others took over while it slept. */
static void a_member_goes_to_where_the_table_stands(void **state) {
    (void)state;
    fixture f;
    group g;
    begin_group(&g, &f);
    produce_ids(&f, 0, 12);
    join_group(&g, 0);
    member *m = &g.members[0];
    for (int i = 0; i < STEPS && m->given < 12; i++) {
        step_member(&g, m, false);
    }
    assert_int_equal(m->given, 12);
    g.stands[1] = 2; /* ids 1 and 4 */
    f.seen[1] = f.seen[4] = 1;
    commit_group(&g, m);
    assert_int_equal(g.refused, 1);
    run_group(&g, 12);
    all_once(&f, 12);
    leave_group(&g, 0);
    end(&f);
}

/* The ones that are read are given anew, with another right behind it, as to a member that slept.
 */
static void partitions_are_given_again_at_once(void **state) {
    (void)state;
    enum { PARTITIONS = 50, TIMES = 50 };
    fixture f;
    char why[256];
    begin(&f);
    assert_int_equal(rd_kafka_mock_topic_create(f.cluster, "many", PARTITIONS, 1), 0);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *brokers = rd_kafka_mock_cluster_bootstraps(f.cluster);
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why), 0);
    assert_int_equal(rd_kafka_conf_set(conf, "group.id", "g", why, sizeof why), 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    assert_non_null(rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        rd_kafka_topic_partition_list_add(list, "many", i)->offset = 0;
    }
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(kafka_give(rk, list), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    assert_int_equal(kafka_give(rk, NULL), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
    end(&f);
}

static void settings_of_other_groups_are_refused(void **state) {
    (void)state;
    static const char *const sticky[] = {"partition.assignment.strategy", "cooperative-sticky",
                                         NULL};
    static const char *const newer[] = {"group.protocol", "consumer", NULL};
    fixture f;
    begin(&f);
    f.options.kafka_balance = true;
    f.options.kafka_properties = sticky;
    assert_int_equal(read_some(&f, NULL, -1, -1, NULL), TARN_UNSUPPORTED);
    f.options.kafka_properties = newer;
    assert_int_equal(read_some(&f, NULL, -1, -1, NULL), TARN_UNSUPPORTED);
    f.location = "some.ndjson";
    assert_int_equal(read_some(&f, NULL, -1, -1, NULL), TARN_INVALID);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_group_shares_partitions),
                                       cmocka_unit_test(a_member_goes_to_where_the_table_stands),
                                       cmocka_unit_test(partitions_are_given_again_at_once),
                                       cmocka_unit_test(settings_of_other_groups_are_refused),
                                       cmocka_unit_test(every_message_once_over_restarts),
                                       cmocka_unit_test(bad_messages_are_named_and_passed),
                                       cmocka_unit_test(envelopes_take_rows_away_by_key),
                                       cmocka_unit_test(a_broker_that_is_gone_is_waited_for),
                                       cmocka_unit_test(offsets_that_are_not_there_are_refused),
                                       cmocka_unit_test(a_named_group_is_begun_from)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "source/source.h"

/* Without librdkafka a topic is refused by name. */
static void topics_are_refused(void **state) {
    (void)state;
    tarn_env *env = test_env();
    tarn_error err = TARN_ERROR_INIT;
    tarn_file_options file = TARN_FILE_OPTIONS_INIT;
    source_options options;
    row_source *s = NULL;
    const char *input = "kafka://broker/topic";
    memset(&options, 0, sizeof options);
    options.file = &file;
    assert_int_equal(source_open(env, &input, 1, &options, &s, &err), TARN_UNSUPPORTED);
    assert_non_null(strstr(err.message, input));
    test_env_done(env);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(topics_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
