/* service/intake_keys.h - the requests of the last time under a key: rows that are sent again are
 * answered as before, and taken once. What is known here is in the log too. Any thread. */
#ifndef SERVICE_INTAKE_KEYS_H
#define SERVICE_INTAKE_KEYS_H

#include "service/intake_record.h"

typedef enum intake_turn {
    INTAKE_TURN_TAKE,     /* the caller does it, and calls intake_keys_end */
    INTAKE_TURN_REPEATED, /* it was done */
    INTAKE_TURN_MISUSED,  /* the key was another request's */
    INTAKE_TURN_FULL      /* too many are remembered */
} intake_turn;

typedef struct intake_keys intake_keys;
tarn_code intake_keys_new(tarn_env *env, int64_t lifetime_ms, int64_t most, intake_keys **out,
                          tarn_error *err) TARN_MUST_USE;
void intake_keys_free(intake_keys *keys); /* nobody waits any more; takes NULL */
/* Waits while the same request is at work elsewhere. done: of REPEATED. */
intake_turn intake_keys_begin(intake_keys *keys, const intake_key *key, intake_key *done);
/* done: with position, rows and time; NULL: it came to nothing. */
void intake_keys_end(intake_keys *keys, const intake_key *key, const intake_key *done);
/* One that was done before; too old ones, and known ones, are passed. */
tarn_code intake_keys_add(intake_keys *keys, const intake_key *key, tarn_error *err) TARN_MUST_USE;
int64_t intake_keys_count(intake_keys *keys);

#endif
