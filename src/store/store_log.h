/* store/store_log.h - records that are durable when their append returns: numbered, in segment
 * files of one folder. Appends of any threads that wait at the same time are written and synced
 * together, by the first of them.
 *
 * Invariants: 1 a record has the next position, and positions are never given again once something
 * of a higher one was durable; 2 entries are placed in the order of their positions, and settled
 * (durable or lost) before any later group is placed as durable; 3 every record says up to where
 * its segment was durable when it was written, and every segment how far the one before was: so a
 * damaged record that was acknowledged is CORRUPT, and one that never was is a torn tail and no
 * record; 4 nothing is written behind a tail that may be torn: a new segment begins; 5 where the
 * segment that would say how far one was durable is gone, the file ends there; 6 a folder has one
 * owner. */
#ifndef STORE_STORE_LOG_H
#define STORE_STORE_LOG_H

#include "base/buf.h"

#include <semaphore.h>

typedef struct store_log store_log;

/* Where a record lies. */
typedef struct store_log_place {
    int64_t segment;
    int64_t offset;
    uint32_t length; /* of its payload */
} store_log_place;

typedef struct store_log_record {
    uint32_t kind;
    int64_t position;
    int64_t time_ms;
    store_log_place place;
    tarn_str payload;
} store_log_record;

/* One append; the caller's until it returns. */
typedef struct store_log_entry {
    uint32_t kind;
    tarn_str parts[2]; /* of the payload, one behind the other */
    bool keep;         /* its segment stays until store_log_release was called for it */
    /* May be NULL. placed: position is known, nothing is durable; settled: it is, with its place,
     * or it never will be. On any thread, under the log's lock: neither may call the log. */
    void (*placed)(struct store_log_entry *e);
    void (*settled)(struct store_log_entry *e, bool durable);
    void *ctx;
    int64_t position; /* filled */
    int64_t time_ms;
    store_log_place place;
    /* private */
    uint32_t body_crc;
    sem_t turn;
    bool leads;
    tarn_code code;
    tarn_error err;
    struct store_log_entry *next;
} store_log_entry;

typedef struct store_log_options {
    const char *dir;  /* made if it is not there */
    const char *name; /* of the segments' files */
    int64_t segment_bytes;
} store_log_options;

/* keep: as of store_log_entry. record lives during the call. */
typedef tarn_code (*store_log_fn)(void *ctx, const store_log_record *record, bool *keep,
                                  tarn_error *err);

/* Reads all records in their order, then begins a new segment. A tail that is cut off is told by a
 * warning, and so is a disk on which no
 * segment can be begun: the first append that finds room does it. CORRUPT names file and offset;
 * CONFLICT: the folder has another owner. */
tarn_code store_log_open(tarn_env *env, const store_log_options *options, store_log_fn fn,
                         void *ctx, store_log **out, tarn_error *err) TARN_MUST_USE;
void store_log_close(store_log *log);           /* nobody appends any more; takes NULL */
const char *store_log_id(const store_log *log); /* a UUID, made with the first segment */
/* Failing changes nothing: the record is not there, and a later append may succeed. */
tarn_code store_log_append(store_log *log, store_log_entry *entry, tarn_error *err) TARN_MUST_USE;
/* The payload of a durable record. */
tarn_code store_log_read(store_log *log, const store_log_place *place, tarn_buf *out,
                         tarn_error *err) TARN_MUST_USE;
/* A kept record is not needed any more. */
void store_log_release(store_log *log, const store_log_place *place);
/* A segment (never the one that is written to) without kept records, whose newest record is older
 * than before_ms; its records are given to fn. *found false: there is none. *oldest: no segment
 * before it is left. */
tarn_code store_log_find_free(store_log *log, int64_t before_ms, store_log_fn fn, void *ctx,
                              int64_t *segment, bool *oldest, bool *found,
                              tarn_error *err) TARN_MUST_USE;
void store_log_remove(store_log *log, int64_t segment);
/* The next append begins a new segment where the one that is written to keeps nothing and has so
 * many bytes: it can then be let go. Where none can be begun, the append goes on in the old one. */
void store_log_renew(store_log *log, int64_t bytes);
/* What the folder's disk has room for, and its size; false: not known. */
bool store_log_room(const store_log *log, int64_t *room, int64_t *size);

typedef struct store_log_stats {
    int64_t bytes, segments, records, syncs, next_position;
    bool fresh; /* there was none when it was opened */
} store_log_stats;
void store_log_count(store_log *log, store_log_stats *out);

#endif
