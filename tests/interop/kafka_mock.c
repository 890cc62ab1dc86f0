/* A broker in memory, librdkafka's mock cluster, for tests of the command: prints its address, then
 * does what the lines of its input say, and says "ok" to each:
 *   produce PARTITION FROM TO [KEYS]   messages {"id": FROM} to {"id": TO - 1}; with KEYS
 *                                      {"key": id % KEYS * PARTITIONS + PARTITION, "n": id}
 *   bad PARTITION                      a message that is no JSON
 *
 * usage: kafka_mock TOPIC PARTITIONS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off: the second needs the first */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
/* clang-format on */

static const char *topic;
static int partitions;

static int send_text(rd_kafka_t *rk, int partition, const char *text) {
    return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                             RD_KAFKA_V_VALUE((void *)text, strlen(text)), RD_KAFKA_V_END) == 0;
}

static int obey(rd_kafka_t *rk, const char *line) {
    char text[128];
    int partition;
    int from;
    int to;
    int keys = 0;
    int ok = 1;
    if (sscanf(line, "bad %d", &partition) == 1) {
        ok = send_text(rk, partition, "bad");
    } else if (sscanf(line, "produce %d %d %d %d", &partition, &from, &to, &keys) >= 3) {
        for (int i = from; i < to && ok; i++) {
            if (keys > 0) {
                (void)snprintf(text, sizeof text, "{\"key\":%d,\"n\":%d}",
                               i % keys * partitions + partition, i);
            } else {
                (void)snprintf(text, sizeof text, "{\"id\":%d}", i);
            }
            ok = send_text(rk, partition, text);
        }
    } else {
        ok = 0;
    }
    return ok && rd_kafka_flush(rk, 10000) == 0;
}

int main(int argc, char **argv) {
    char why[256];
    char line[256];
    if (argc != 3) {
        return 2;
    }
    topic = argv[1];
    partitions = atoi(argv[2]);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", why, sizeof why) != 0 ||
        rd_kafka_conf_set(conf, "linger.ms", "0", why, sizeof why) != 0) {
        return 1;
    }
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    rd_kafka_mock_cluster_t *cluster = rk != NULL ? rd_kafka_handle_mock_cluster(rk) : NULL;
    if (cluster == NULL || rd_kafka_mock_topic_create(cluster, topic, partitions, 1) != 0) {
        return 1;
    }
    printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        puts(obey(rk, line) ? "ok" : "failed");
        fflush(stdout);
    }
    rd_kafka_destroy(rk);
    return 0;
}
