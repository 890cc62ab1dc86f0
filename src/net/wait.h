/* net/wait.h - waiting for a socket that a library of others owns. */
#ifndef NET_WAIT_H
#define NET_WAIT_H

#include "base/env.h"
#include "base/err.h"

/* Until fd has bytes to read, or its peer went away: *ready; false: timeout_ms went by. CANCELLED
 * at once when the env is cancelled, unless it must be waited for (what was sent has to be known).
 */
tarn_code net_wait_readable(tarn_env *env, int fd, int64_t timeout_ms, bool cancellable,
                            bool *ready, tarn_error *err) TARN_MUST_USE;

#endif
