/* source/kafka_none.c - Kafka, where it was not built in. */
#include "source/source_int.h"

#ifndef TARN_KAFKA

tarn_code kafka_open(source_setup *setup, const char *location, kafka_source **out,
                     tarn_error *err) {
    (void)setup;
    (void)out;
    return err_set(err, TARN_UNSUPPORTED,
                   "%s: this tarn was built without Kafka (TARN_KAFKA, librdkafka)", location);
}

void kafka_close(kafka_source *k) {
    (void)k;
}

tarn_code kafka_seek(kafka_source *k, const json_value *offsets, tarn_error *err) {
    (void)k;
    (void)offsets;
    (void)err;
    return TARN_UNSUPPORTED;
}

tarn_code kafka_next(kafka_source *k, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                     bool *ended, tarn_error *err) {
    (void)k;
    (void)timeout_ms;
    (void)out;
    (void)kinds;
    (void)ended;
    (void)err;
    return TARN_UNSUPPORTED;
}

void kafka_put(const kafka_source *k, json_writer *w) {
    (void)k;
    json_put_null(w);
}

tarn_code kafka_committed(kafka_source *k, const json_value *offsets, tarn_error *err) {
    (void)k;
    (void)offsets;
    (void)err;
    return TARN_UNSUPPORTED;
}

source_turn kafka_turn(const kafka_source *k) {
    (void)k;
    return SOURCE_READS;
}

const char *kafka_name(const kafka_source *k) {
    (void)k;
    return "";
}

int64_t kafka_taken(const kafka_source *k) {
    (void)k;
    return 0;
}

void kafka_progress(const kafka_source *k, int64_t *done, int64_t *total) {
    (void)k;
    *done = 0;
    *total = -1;
}

#endif
