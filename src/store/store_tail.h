/* store/store_tail.h - bytes of a local file that grows. Reading waits for a while only. */
#ifndef STORE_STORE_TAIL_H
#define STORE_STORE_TAIL_H

#include "base/env.h"
#include "base/err.h"
#include "base/str.h"

typedef struct store_tail store_tail;

/* Opens path, of the file that name had or has; name must live as long. */
tarn_code store_tail_open(tarn_env *env, const char *path, const char *name, store_tail **out,
                          tarn_error *err) TARN_MUST_USE;
void store_tail_seek(store_tail *tail, int64_t at);
/* What is there now, at most cap bytes; nothing after timeout_ms (-1: waits for ever): *got is 0.
 * *ended: there will never be more, since its name has another file now that was begun (it was
 * rotated), or it was cut: it is shorter, or its last bytes that were read are others now. */
tarn_code store_tail_read(store_tail *tail, void *dst, size_t cap, int64_t timeout_ms, size_t *got,
                          bool *ended, tarn_error *err) TARN_MUST_USE;
bool store_tail_was_cut(const store_tail *tail);
uint64_t store_tail_inode(const store_tail *tail);
/* When it was written last before it was read last, in ns since 1970. */
int64_t store_tail_modified(const store_tail *tail);
void store_tail_close(store_tail *tail); /* takes NULL */

/* Whether path is a folder. */
bool store_is_folder(const char *path);
/* The identity of a regular file; 0: there is none. */
uint64_t store_inode_of(const char *path);

#endif
