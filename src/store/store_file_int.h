/* store/store_file_int.h - what the two files of the local store share: store_file.c writes and
 * reads, store_file_list.c walks folders. */
#ifndef STORE_STORE_FILE_INT_H
#define STORE_STORE_FILE_INT_H

#include "store/store.h"

#include <sys/stat.h>

bool store_file_is_temp(tarn_str name); /* left by a writer that died */
bool store_file_is_folder(const char *path);
tarn_code store_file_list(tarn_store *store, tarn_str prefix, store_list_fn fn, void *ctx,
                          tarn_error *err);
tarn_code store_file_list_folder(tarn_store *store, tarn_str folder, store_folder_fn fn, void *ctx,
                                 tarn_error *err);

static inline store_stat_info store_file_info(const struct stat *st) {
    return (store_stat_info){(int64_t)st->st_size,
                             (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000};
}

#endif
