/* base/env.h - the inside of a tarn_env: memory, clock, chance, sleep, log, cancellation.
 * The only place that asks the system for time, random bytes or sleep. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tarn/env.h>

/* All memory of the library comes from here; the env counts it exactly. NULL when there is none.
 * env_realloc(NULL) allocates; env_free(NULL) is allowed. Sizes are kept in front of the block. */
void *env_alloc(tarn_env *env, size_t size_bytes);
void *env_calloc(tarn_env *env, size_t count, size_t size_bytes); /* zeroed; checks the product */
void *env_realloc(tarn_env *env, void *ptr, size_t size_bytes);
void env_free(tarn_env *env, void *ptr);
/* Free memory that the C library keeps goes back to the system; for those who rest. */
void env_trim(const tarn_env *env);
/* Memory that another library takes from the system for us, by its size: counted as if it came from
 * here. false: it would pass the limit, and nothing was counted. */
bool env_count_in(tarn_env *env, size_t size_bytes);
void env_count_out(tarn_env *env, size_t size_bytes);

int64_t env_now_us(tarn_env *env); /* since 1970, UTC */
int64_t env_now_ms(tarn_env *env);
void env_sleep_ms(tarn_env *env, int64_t ms);
/* Waits for at most so long, whatever the clock is set to meanwhile. */
void env_cond_init(pthread_cond_t *cond);
void env_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t ms);
void env_random(tarn_env *env, void *out, size_t len);
uint64_t env_random_u64(tarn_env *env);
int64_t env_random_snapshot_id(tarn_env *env); /* positive, never 0 */
/* 36 characters and a NUL. v4 is random; v7 begins with the time. */
void env_uuid_v4(tarn_env *env, char out[37]);
void env_uuid_v7(tarn_env *env, char out[37]);

const char *env_temp_dir(const tarn_env *env); /* NULL: the system's */
uint32_t env_threads(const tarn_env *env);
/* Worker pool of this env; base/pool.h is its face. */
struct tarn_pool *env_pool(tarn_env *env);

/* OK, or CANCELLED when tarn_env_cancel was called. Called at every I/O boundary. */
tarn_code env_check_cancel(const tarn_env *env, tarn_error *err);

void env_log(tarn_env *env, tarn_log_level level, const char *room, const char *event,
             const char *fmt, ...) TARN_PRINTF(5, 6);

#endif
