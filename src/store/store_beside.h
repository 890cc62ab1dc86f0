/* store/store_beside.h - the files beside a local one: where it is found again under another name,
 * and what came behind it. */
#ifndef STORE_STORE_BESIDE_H
#define STORE_STORE_BESIDE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

typedef struct store_beside {
    const char *path;
    tarn_str name;
    uint64_t inode;
    int64_t size;
    int64_t modified; /* ns since 1970 */
    int64_t born;     /* when it was made, as an inode may come again; 0: not known */
} store_beside;

typedef struct store_beside_list {
    store_beside *files; /* regular ones, no links, in no order */
    int32_t n;
    tarn_str name;   /* of path itself */
    tarn_str target; /* of the file that it means: another one where path is a symbolic link */
    int32_t named;   /* that file; -1: it is not there */
} store_beside_list;

/* The folder of the file that path means, as it was at one moment: while names move in it, it is
 * looked at again. All is of arena. A folder that is not there has none. */
tarn_code store_list_beside(tarn_env *env, tarn_arena *arena, const char *path,
                            store_beside_list *out, tarn_error *err) TARN_MUST_USE;

#endif
