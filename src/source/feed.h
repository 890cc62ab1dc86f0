/* source/feed.h - bytes of text as they come, whoever they come from. */
#ifndef SOURCE_FEED_H
#define SOURCE_FEED_H

#include "base/buf.h"
#include "base/io.h"
#include "format/codec.h"
#include "store/store_stdio.h"
#include "store/store_tail.h"

typedef struct byte_feed byte_feed;
struct byte_feed {
    tarn_env *env;
    const char *name;
    /* Appends what there is, about want bytes at most, and waits timeout_ms (-1: for ever) for the
     * first of them. *ended: there will never be more. */
    tarn_code (*more)(byte_feed *feed, tarn_buf *into, size_t want, int64_t timeout_ms, bool *ended,
                      tarn_error *err);
    void (*close)(byte_feed *feed);
};

/* All of stream, which never waits. Takes it on success. */
tarn_code feed_stream(io_stream *stream, byte_feed **out, tarn_error *err) TARN_MUST_USE;
/* A pipe's bytes as they come (store_pipe_open), unpacked: head bytes first, then those from start
 * on. sum is feed_pipe_sum of those before start; -1: not known. Takes pipe on success. */
typedef struct feed_part {
    codec_kind codec;
    int64_t head, start, sum;
} feed_part;
tarn_code feed_pipe(io_stream *pipe, const feed_part *part, byte_feed **out,
                    tarn_error *err) TARN_MUST_USE;
/* A checksum of all that was unpacked of such a feed's pipe, and how much that is. */
uint32_t feed_pipe_sum(const byte_feed *feed, int64_t *bytes);
/* Of a file that grows, opened at its beginning: head bytes first, then those from start on. Takes
 * tail on success. */
tarn_code feed_tail(tarn_env *env, const char *name, store_tail *tail, int64_t head, int64_t start,
                    byte_feed **out, tarn_error *err) TARN_MUST_USE;

#endif
