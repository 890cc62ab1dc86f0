/* tarn/source.h - where rows of a stream come from: files, standard input, a followed file, a
 * folder of arriving files, Kafka topics; with a kind for each row where the input is a change
 * stream. A source can say where it stands, and go on from there. One thread at a time. */
#ifndef TARN_SOURCE_H
#define TARN_SOURCE_H

#include <tarn/file.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_source tarn_source;

typedef struct tarn_source_options {
    uint32_t struct_size;
    tarn_file_options file; /* format ("debezium-json", "debezium-avro" and, for Kafka, "avro" with
                               a registry's wire format too), schema, CSV, rejects */
    const char *op_column;  /* column with the kind of a row: c/r/u/d, I/U/D, +I/-U/+U/-D; it is not
                               among the rows' columns. NULL: none. @borrow */
    bool follow;            /* one file that grows, or folders: wait for more */
    const char *kafka_properties_json; /* librdkafka's, by its names; NULL: none. @borrow */
    const char
        *kafka_group; /* consumer group that is told what was committed, where the properties
                         have no group.id (which is also begun from); NULL: "tarn". @borrow */
    const char *schema_registry; /* URL; NULL: none. @borrow */
    bool grow; /* members that the schema lacks become columns of the batches, and ints that do not
                  fit longs, instead of bad rows */
    bool kafka_balance; /* partitions are shared with the other members of the consumer group; see
                           tarn_source_balance */
    const char *key; /* columns, comma separated, that no row may lack, whatever it does: one that
                        lacks them is a bad row (tarn_sink_key says a sink's). NULL: none. @borrow
                        @since 0.2 */
    int64_t kafka_timeout_ms; /* without follow: how long a broker, or the schema registry, may be
                                 away before that is an error (IO); 0: 60000, -1: for ever. With
                                 follow it is waited for. @since 0.2 */
    bool accept_gap; /* with follow, of a file: where rows may be lost, since the file was cut or is
                        gone, or one that came behind it is, that is a warning and the next one is
                        read, instead of an error (INVALID). @since 0.2 */
} tarn_source_options;

#define TARN_SOURCE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tarn_source_options), TARN_FILE_OPTIONS_INIT, NULL, false, NULL, NULL, NULL, false, \
            false, NULL, 0, false                                                                  \
    }

/* Folders give each file once, by name, when it has its name: one that begins with a dot or an
 * underscore, or ends in .tmp or .part, is not complete. Kafka topics are read in all of their
 * partitions, from the offsets sought, else (where group.id is among the properties) from the
 * group's, else from where auto.offset.reset says (default: the earliest); without follow, up to
 * what is there at the beginning.
 *
 * inputs: paths, "-", folders, or one "kafka://broker[,broker]/topic[,topic]". Nothing is read yet.
 */
TARN_API TARN_MUST_USE tarn_code
tarn_source_open(tarn_env *env,                                        /* @keep */
                 const char *const *inputs,                            /* @borrow */
                 int32_t n_inputs, const tarn_source_options *options, /* @borrow, may be NULL */
                 tarn_source **out, /* @give: tarn_source_close */
                 tarn_error *err /* @borrow, may be NULL */);
/* Before the first next (with kafka_balance: whenever it is asked for): goes on after what offsets
 * (of tarn_source_offsets; with kafka_balance of tarn_sink_offsets, "" where it gave none) say.
 * INVALID: offsets of other inputs, or of a file that is shorter now. A pipe is looked at by next,
 * which is INVALID where it begins otherwise than the one of the offsets and that one was not read
 * to its end; if it was, the other one is read whole. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_source_seek(tarn_source *source, /* @borrow */
                 const char *offsets, /* @borrow */ tarn_error *err /* @borrow, may be NULL */);
/* The next rows: array and schema (of this batch) are given; kinds, borrowed until the next call,
 * is NULL where all are inserts. Nothing within timeout_ms: OK with array->release NULL. *ended:
 * there will never be more. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code
tarn_source_next(tarn_source *source,                            /* @borrow */
                 int64_t timeout_ms, struct ArrowSchema *schema, /* @give: its release */
                 struct ArrowArray *array,                       /* @give: its release */
                 const uint8_t **kinds,                          /* @borrow */
                 bool *ended,                                    /* @borrow */
                 tarn_error *err /* @borrow, may be NULL */);
/* After all rows handed out so far, as JSON. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_source_offsets(tarn_source *source, /* @borrow */
                                                     char **out, /* @give: tarn_text_free */
                                                     tarn_error *err /* @borrow, may be NULL */);
/* What a source with kafka_balance is asked by its group, to be looked at after each next.
 * GIVES_UP: a checkpoint of all rows so far, with tarn_source_offsets, and tarn_source_committed
 * after it, before the next call of next, which gives the partitions up. TAKES_OVER:
 * tarn_source_seek to what tarn_sink_offsets says now, before the next call of next; also after a
 * checkpoint that was refused (CONFLICT) or may have happened (COMMIT_UNKNOWN): then what was not
 * committed comes again, to whoever has its partition. The sink keeps the offsets in the table (its
 * table_offsets). */
typedef enum tarn_balance {
    TARN_BALANCE_READS = 0,
    TARN_BALANCE_GIVES_UP = 1,
    TARN_BALANCE_TAKES_OVER = 2
} tarn_balance;
/* @since 0.2 */
TARN_API tarn_balance tarn_source_balance(const tarn_source *source /* @borrow */);
/* Those offsets are in a committed checkpoint: tells the consumer group. @since 0.2 */
TARN_API TARN_MUST_USE tarn_code tarn_source_committed(tarn_source *source, /* @borrow */
                                                       const char *offsets, /* @borrow */
                                                       tarn_error *err /* @borrow, may be NULL */);
/* What is being read now, for messages: a path or location. Valid until the next call. @since 0.2
 */
TARN_API const char *tarn_source_name(const tarn_source *source /* @borrow */);
/* Bytes (files) or messages (Kafka) done, also before it went on from offsets, and in all (-1: not
 * known): for progress. @since 0.2 */
TARN_API void tarn_source_progress(const tarn_source *source, /* @borrow */
                                   int64_t *done,             /* @borrow */
                                   int64_t *total /* @borrow */);
/* Bytes of files as they are stored, or messages of topics, that this source read: never less than
 * before, whatever it went on from. @since 0.2 */
TARN_API int64_t tarn_source_taken(const tarn_source *source /* @borrow */);
TARN_API void tarn_source_close(tarn_source *source /* @take, may be NULL */);

#ifdef __cplusplus
}
#endif
#endif
