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
 * *ended: there will never be more, since its name has another file now (it was rotated) or it was
 * cut shorter. */
tarn_code store_tail_read(store_tail *tail, void *dst, size_t cap, int64_t timeout_ms, size_t *got,
                          bool *ended, tarn_error *err) TARN_MUST_USE;
typedef struct store_tail_id {
    uint64_t inode; /* 0: none */
    int64_t born_ns,
        written_ns; /* written: as it was opened. born 0: the file system does not say */
} store_tail_id;
store_tail_id store_tail_who(const store_tail *tail);
void store_tail_close(store_tail *tail); /* takes NULL */

/* Whether path is a folder. */
bool store_is_folder(const char *path);
/* The identity of a regular file; 0: there is none. */
uint64_t store_inode_of(const char *path);
/* The name, beside path or what it links to, of the file with this identity, into name; false:
 * there is none. */
bool store_find_inode(const char *path, uint64_t inode, char *name, size_t cap);
/* path has another file by now: the identity of the one to read after this one. That is path's
 * unless it was rotated more than once: files with its name and a number or date, that came after
 * the one that was read and hold something, come first. 0: there is none. */
uint64_t store_inode_after(const char *path, const store_tail_id *read);

#endif
