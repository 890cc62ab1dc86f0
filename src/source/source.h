/* source/source.h - rows of a stream: files one behind the other, a file that grows, folders where
 * files arrive, or Kafka topics; with kinds of rows for change streams, and offsets to go on from.
 *
 * Offsets are JSON: {"inputs": [{"path": ..., what is done of it}]} or {"kafka": {topic:
 * {partition: next offset}}}, with kafka_balance {topic: {partition: [from, to]}} of what moved
 * since it was sought. They say what was read up to the rows given last, and how to know the
 * same file again: its size and a hash of its first bytes. */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include "source/file_reader.h"

typedef struct source_options {
    const tarn_file_options *file; /* columns, where and schema are not looked at */
    const tarn_type *root;         /* columns to read text as; NULL: what the data suggests */
    const char *kind_column;       /* NULL: none */
    bool follow;
    bool grow; /* columns that root lacks are added to it, and types widened */
    const char *const *kafka_properties; /* names and values by turns, ended by NULL; or NULL */
    const char *kafka_group;             /* told what was committed, where no property
                                            group.id is; NULL: "tarn" */
    const char *schema_registry;         /* URL; NULL: none */
    int64_t kafka_timeout_ms; /* without follow: how long a broker or registry may be away; 0: 60
                                 s; -1: for ever */
    const tarn_str *keys;     /* columns that no row may lack, whatever it does: it is a bad row */
    int32_t n_keys;
    bool accept_gap;    /* a followed file that can't be gone on with, or one behind it that is not
                           there, is a warning */
    bool kafka_balance; /* partitions are shared with the group's other members: see
                           kafka_balance.c and sink/shared_offsets.h */
} source_options;

/* What the group asks of its member, with kafka_balance. */
typedef enum source_turn {
    SOURCE_READS,
    SOURCE_GIVES_UP,  /* commit what was read before the next source_next, which gives it up */
    SOURCE_TAKES_OVER /* source_seek to where the table stands now, before the next source_next */
} source_turn;

typedef struct row_source row_source;
/* What options point to is copied, but for root. */
tarn_code source_open(tarn_env *env, const char *const *inputs, int32_t n,
                      const source_options *options, row_source **out,
                      tarn_error *err) TARN_MUST_USE;
/* Before the first next; with kafka_balance at any time: what was not committed is dropped. len 0:
 * nothing was read yet. */
tarn_code source_seek(row_source *s, tarn_str offsets, tarn_error *err) TARN_MUST_USE;
source_turn source_turn_of(const row_source *s);
/* Next rows within timeout_ms (-1: waits for ever); kinds (until the next call) is NULL where all
 * are inserts. The batch's type lives until the next call. */
tarn_code source_next(row_source *s, int64_t timeout_ms, tarn_batch *out, const uint8_t **kinds,
                      bool *ended, tarn_error *err) TARN_MUST_USE;
tarn_code source_put_offsets(row_source *s, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code source_committed(row_source *s, tarn_str offsets, tarn_error *err) TARN_MUST_USE;
/* What is read now, for messages. */
const char *source_name(const row_source *s);
void source_progress(const row_source *s, int64_t *done, int64_t *total);
/* Bytes or messages that were read since it was opened: never less than before. */
int64_t source_taken(const row_source *s);
void source_close(row_source *s); /* takes NULL */

#endif
