/* service/once.h - requests that clients send again under one key (REST specification,
 * "Idempotency-Key"): what was answered is answered again, and done only once.
 *
 * Answers are held in memory for ONCE_LIFETIME_MS. After a restart, or at another server on the
 * same catalog, a key is new: commits are then known by what they did (serve_commit.c), and what
 * else was done before is refused as it would be without a key. */
#ifndef SERVICE_ONCE_H
#define SERVICE_ONCE_H

#include "base/buf.h"

#define ONCE_LIFETIME_MS INT64_C(1800000)
#define ONCE_LIFETIME    "PT30M"

typedef struct once_keys once_keys;

typedef enum once_turn {
    ONCE_RUN,    /* the caller does it, and calls once_end */
    ONCE_REPLAY, /* it was done: status and body say what was answered */
    ONCE_MISUSED /* the key was another request's */
} once_turn;

tarn_code once_keys_new(tarn_env *env, once_keys **out, tarn_error *err) TARN_MUST_USE;
void once_keys_free(once_keys *keys); /* nobody waits any more; takes NULL */

/* A UUID as text. */
bool once_key_valid(tarn_str key);
/* request: a number that tells requests apart. Waits while the same request is at work elsewhere.
 * *has_body: the answer had one, and body (may be empty: too long to be held) has it. */
once_turn once_begin(once_keys *keys, tarn_str key, uint64_t request, int *status, bool *has_body,
                     tarn_buf *body);
/* Only answers that would be the same again are held: 2xx, and 4xx that speak of the request. */
void once_end(once_keys *keys, tarn_str key, int status, tarn_str body);

#endif
