/* service/stream_step.c - see stream_step.h. Flink, Spark and tarn name the stream by a value,
 * Kafka Connect by the key under which its offsets stand. */
#include "service/stream_step.h"

#define KAFKA_PREFIX "kafka.connect.offsets."

static const struct {
    const char *stream;
    const char *part; /* NULL, or: of those that both name, it is the same too */
} NAMES[] = {{"flink.job-id", "flink.operator-id"}, {"spark.sql.streaming.queryId", NULL}};

static bool is_kafka(const tarn_property *p) {
    return str_starts_with(p->key, STR(KAFKA_PREFIX));
}

bool stream_step_is_any(const tarn_snapshot *s) {
    tarn_str value;
    bool any = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && !any; i++) {
        any = properties_get(&s->summary, NAMES[i].stream, &value);
    }
    for (int32_t i = 0; i < s->summary.count && !any; i++) {
        any = is_kafka(&s->summary.items[i]);
    }
    return any;
}

/* Of those that both have. */
static bool differs(const tarn_snapshot *a, const tarn_snapshot *b, const char *key) {
    tarn_str x, y;
    return key != NULL && properties_get(&a->summary, key, &x) &&
           properties_get(&b->summary, key, &y) && !str_eq(x, y);
}

bool stream_step_is_same(const tarn_snapshot *a, const tarn_snapshot *b) {
    tarn_str x, y;
    bool same = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0] && !same; i++) {
        same = properties_get(&a->summary, NAMES[i].stream, &x) &&
               properties_get(&b->summary, NAMES[i].stream, &y) && str_eq(x, y) &&
               !differs(a, b, NAMES[i].part);
    }
    for (int32_t i = 0; i < a->summary.count && !same; i++) {
        for (int32_t k = 0; k < b->summary.count && !same; k++) {
            same = is_kafka(&a->summary.items[i]) &&
                   str_eq(a->summary.items[i].key, b->summary.items[k].key);
        }
    }
    return same;
}
