/* store/store_temp.h - a temporary file of this process: bytes that memory does not hold for a
 * while. It has no name, so nothing of it stays, however the process ends. One user at a time. */
#ifndef STORE_STORE_TEMP_H
#define STORE_STORE_TEMP_H

#include "base/env.h"
#include "base/err.h"

typedef struct store_temp store_temp;
/* In the env's folder for such; without one in /var/tmp, which is a disk where /tmp may be memory,
 * and where that can't be written in /tmp. */
tarn_code store_temp_new(tarn_env *env, store_temp **out, tarn_error *err) TARN_MUST_USE;
tarn_code store_temp_append(store_temp *t, const void *data, size_t len,
                            tarn_error *err) TARN_MUST_USE;
int64_t store_temp_bytes(const store_temp *t);
/* Exactly len bytes; fewer there is CORRUPT. */
tarn_code store_temp_read(store_temp *t, int64_t offset, void *dst, size_t len,
                          tarn_error *err) TARN_MUST_USE;
/* Nothing is in it any more, and the disk has its room back. */
tarn_code store_temp_clear(store_temp *t, tarn_error *err) TARN_MUST_USE;
void store_temp_free(store_temp *t); /* takes NULL */

#endif
