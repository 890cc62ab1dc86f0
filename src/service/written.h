/* service/written.h - files that were written for a commit that may not come about, so that they
 * can be removed when it did not. */
#ifndef SERVICE_WRITTEN_H
#define SERVICE_WRITTEN_H

#include "store/store.h"

typedef struct written_files {
    tarn_arena *arena; /* paths live there, and whatever else the commit is made of */
    tarn_store *store;
    tarn_str *paths;
    int32_t n, cap;
} written_files;

/* Before the file is created: a failure may leave it there all the same. */
tarn_code written_add(written_files *files, tarn_str path, tarn_error *err) TARN_MUST_USE;
/* Removes all but the first `keep`. Only for a commit that certainly did not happen. */
void written_discard(written_files *files, int32_t keep);

#endif
