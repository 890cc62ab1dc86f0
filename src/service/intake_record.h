/* service/intake_record.h - what the records of the intake's log hold: rows as they were sent,
 * notes of what is committed, and keys of requests whose rows' segment is gone. Pure. */
#ifndef SERVICE_INTAKE_RECORD_H
#define SERVICE_INTAKE_RECORD_H

#include "store/store_log.h"

typedef enum intake_kind {
    INTAKE_ROWS = 1,
    INTAKE_NOTE = 2, /* all of a table before a position is committed, or was rejected */
    INTAKE_KEYS = 3,
    INTAKE_MARK = 4 /* how far the log of keys was durable, and since when */
} intake_kind;

#define INTAKE_DIGEST 16

/* A request that was done under a key. */
typedef struct intake_key {
    uint8_t key[INTAKE_DIGEST];
    uint8_t body[INTAKE_DIGEST]; /* of the request under it */
    int64_t position;
    int64_t time_ms;
    int64_t rows;
} intake_key;

typedef struct intake_rows {
    bool keyed;
    uint8_t key[INTAKE_DIGEST], digest[INTAKE_DIGEST];
    int64_t rows;
    tarn_str ident;    /* its name, as ident_text writes it */
    tarn_str identity; /* its uuid, or where it has none its name */
    tarn_str body;
} intake_rows;

typedef struct intake_mark {
    int64_t keys_end; /* position behind the last record of keys; 0: there was none */
    int64_t time_ms;  /* of that record */
} intake_mark;

/* The part in front of the body. */
tarn_code intake_rows_write(const intake_rows *rows, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
/* CORRUPT names place. Borrowed from the record. */
tarn_code intake_rows_read(const store_log_record *record, intake_rows *out,
                           tarn_error *err) TARN_MUST_USE;
tarn_code intake_note_write(tarn_str identity, int64_t committed, tarn_buf *out,
                            tarn_error *err) TARN_MUST_USE; /* appends one */
/* The next note of a payload; *more false: there is none. */
tarn_code intake_note_read(const store_log_record *record, size_t *at, tarn_str *identity,
                           int64_t *committed, bool *more, tarn_error *err) TARN_MUST_USE;
tarn_code intake_mark_write(const intake_mark *mark, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
tarn_code intake_mark_read(const store_log_record *record, intake_mark *out,
                           tarn_error *err) TARN_MUST_USE;
tarn_code intake_key_write(const intake_key *key, tarn_buf *out, tarn_error *err) TARN_MUST_USE;
bool intake_key_read(tarn_str payload, size_t i, intake_key *out); /* the i-th; false: none */

#endif
